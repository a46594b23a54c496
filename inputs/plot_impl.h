/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* `trellis plot`: a picture of fields of a run. Reading, drawing and writing know nothing of each other
 * but the types here; plot_cmd.c joins them. Everything is serial: only rank 0 plots. */
#ifndef TRLI_PLOT_IMPL_H
#define TRLI_PLOT_IMPL_H

#include <trl_grid.h>

/* ---- reading (plot_read.c) ---- */

enum { TRLI_PLOT_FIELDS = 6 }; /* panels of one picture */

typedef struct trli_plot_request {
    const char *path; /* of a file of fields, or a folder of them */
    int nfields;      /* 0: the first field of the file */
    const char *field[TRLI_PLOT_FIELDS];
    bool sliced[3]; /* by axis: cut with the plane at slice[axis] */
    double slice[3];
    bool timed; /* the step nearest to time; otherwise the last one */
    double time;
    const char *picture; /* NULL: <fields joined by _>.png in the current folder */
} trli_plot_request;

/* An axis of a picture: where the values lie along it. */
typedef struct trli_plot_axis {
    int axis;         /* 0 to 2: x, y, z */
    double low, high; /* the domain */
    double first;     /* coordinate of the first point */
    double spacing;
    trl_gidx points;
    bool wraps; /* point 0 is also the point after the last: periodic points on faces */
} trli_plot_axis;

/* The values of one panel: a line or a plane of a field at a step. */
typedef struct trli_plot_data {
    char *name;
    trl_gidx step;
    double time;
    int naxes;              /* 1: a line; 2: a plane */
    trli_plot_axis axis[2]; /* horizontal, vertical */
    int nplanes;            /* cuts that led here */
    struct {
        int axis;
        double at; /* coordinate of the points on the plane */
    } plane[3];
    double *value;    /* [axis[1].points][axis[0].points] */
    double low, high; /* over the finite values; both NaN when there is none */
    trl_gidx not_finite;
} trli_plot_data;

typedef struct trli_plot_set {
    int n;
    trli_plot_data panel[TRLI_PLOT_FIELDS];
} trli_plot_set;

/* Read what the request asks for. A 3-D field with no plane given is cut in the middle of z; a plane is moved to the
 * nearest points. IO errors: missing, not HDF5, truncated or being written, no step yet, attributes or shapes that
 * do not fit. INPUT errors: unknown field (what is there is listed), a plane outside the domain or along an axis the
 * grid lacks. Thread: main. */
TRL_NODISCARD trl_err trli_plot_read(trl_context *ctx, const trli_plot_request *request, trli_plot_set *set);
void trli_plot_release(trli_plot_set *set);

/* ---- colours (plot_colour.c) ---- */

typedef struct trli_colour {
    uint8_t red, green, blue;
} trli_colour;

enum { TRLI_COLOURS = 257 }; /* odd: a diverging map has its neutral colour exactly at zero */

typedef struct trli_colour_map {
    trli_colour entry[TRLI_COLOURS]; /* from the lowest value to the highest */
    bool diverging;
    double low, high; /* the values at the ends */
} trli_colour_map;

/* Colours for values from low to high. Sequential: lightness rises evenly from dark blue over purple and orange to
 * light yellow, at equal steps of colour difference. Diverging, blue over white to red with its ends at equal
 * distance of zero, where the smaller of -low and high is at least half of the larger. Both are curves in OKLab (B.
 * Ottosson, "A perceptual color space for image processing", 2020). */
void trli_colour_map_make(double low, double high, trli_colour_map *map);
/* Colour of a value; grey when it is not finite. */
trli_colour trli_colour_of(const trli_colour_map *map, double value);
/* OKLab lightness of a colour, 0 to 1. */
double trli_colour_lightness(trli_colour colour);

/* ---- canvas (plot_canvas.c) ---- */

/* Pixels and a mask of coverage: strokes are gathered in the mask, where overlaps count once, and painted together. */
typedef struct trli_canvas {
    int width, height;
    uint8_t *pixel; /* [height][width][3], the top row first */
    uint8_t *mask;  /* [height][width] */
    int dirty[4];   /* left, top, right, bottom (exclusive) of the mask in use */
    int clip[4];    /* likewise: where strokes may fall */
} trli_canvas;

/* A white canvas. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_canvas_create(trl_context *ctx, int width, int height, trli_canvas **canvas);
void trli_canvas_destroy(trli_canvas **canvas);
trli_colour trli_canvas_get(const trli_canvas *canvas, int x, int y);
/* Whole pixels, clipped to the canvas. */
void trli_canvas_rectangle(trli_canvas *canvas, int x, int y, int width, int height, trli_colour colour);
/* Confine strokes to a rectangle; width 0: the whole canvas. */
void trli_canvas_clip(trli_canvas *canvas, int x, int y, int width, int height);
/* Add an anti-aliased segment with round ends to the mask. Pixel (i, j) has its centre at (i + 0.5, j + 0.5). */
void trli_canvas_stroke(trli_canvas *canvas, double x0, double y0, double x1, double y1, double width);
/* Paint what the mask gathered, and clear it. */
void trli_canvas_paint(trli_canvas *canvas, trli_colour colour);

/* ---- text (plot_font.c) ---- */

typedef struct trli_font {
    double size;   /* height of capitals in pixels, stroke included */
    double weight; /* width of strokes in pixels */
    trli_colour colour;
} trli_font;

typedef enum trli_anchor { TRLI_LEFT, TRLI_CENTRE, TRLI_RIGHT } trli_anchor;

/* Width in pixels of text: UTF-8 of ASCII, minus, times, multiplication dot and raised digits; a box stands for any
 * other character. */
double trli_text_width(const trli_font *font, const char *text);
/* Draw text with its baseline at y, anchored at x. */
void trli_text_draw(trli_canvas *canvas, const trli_font *font, double x, double y, trli_anchor anchor,
                    const char *text);
/* The same turned to read upwards: the baseline is the vertical line at x, the text is centred at y. */
void trli_text_draw_upwards(trli_canvas *canvas, const trli_font *font, double x, double y, const char *text);

/* ---- axes (plot_axes.c) ---- */

enum { TRLI_TICKS = 24 };

/* Numbers along an axis. value = offset + label * 10^exponent. */
typedef struct trli_ticks {
    int n;
    double at[TRLI_TICKS];
    char label[TRLI_TICKS][24];
    char factor[128]; /* what is shown once beside the axis: the power of ten, the offset, or nothing */
} trli_ticks;

/* Ticks at round numbers (1, 2 or 5 times a power of ten) within [low, high]: at most about `wanted`, at least two.
 * One tick where low == high. */
void trli_ticks_make(double low, double high, int wanted, trli_ticks *ticks);
/* A number as a title shows it: six digits, a true minus, the exponent raised. */
void trli_number_format(double value, char *buffer, size_t size);

typedef enum trli_axis_side { TRLI_BELOW, TRLI_BESIDE_LEFT, TRLI_BESIDE_RIGHT } trli_axis_side;

/* The font of the numbers. */
extern const trli_font trli_label_font;

/* A rectangle of whole pixels inside a frame. */
typedef struct trli_frame {
    int x, y, width, height;
} trli_frame;

/* Outward ticks with labels along an edge of a frame that spans [low, high], and the factor at its end. */
void trli_axis_draw(trli_canvas *canvas, const trli_frame *frame, trli_axis_side edge, double low, double high,
                    const trli_ticks *ticks);
/* Pixels that the ticks and labels take outside the frame. */
int trli_axis_extent(trli_axis_side edge, const trli_ticks *ticks);
/* A frame of one-pixel lines around the rectangle. */
void trli_frame_draw(trli_canvas *canvas, const trli_frame *frame);

/* ---- the figure (plot_figure.c) ---- */

/* Where a panel came to lie. */
typedef struct trli_plot_panel {
    trli_frame area; /* of the data */
    trli_frame bar;  /* of the colours; width 0: none */
} trli_plot_panel;

/* Draw all panels, at most three in a row, on a canvas that fits them. panels: NULL, or an array of set->n that says
 * where they lie. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_figure_draw(trl_context *ctx, const trli_plot_set *set, trli_canvas **canvas,
                                       trli_plot_panel *panels);

/* ---- the file (plot_png.c) ---- */

/* Write the canvas as a PNG, aside and then renamed. IO errors name the path and the reason. */
TRL_NODISCARD trl_err trli_png_write(trl_context *ctx, const char *path, const trli_canvas *canvas);

#endif
