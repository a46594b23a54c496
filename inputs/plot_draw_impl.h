/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Drawing for `trellis plot`, with cairo: colours, text, axes, panels, figures and their files. */
#ifndef TRLI_PLOT_DRAW_IMPL_H
#define TRLI_PLOT_DRAW_IMPL_H

#include <cairo.h>

#include "plot_impl.h"

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
/* What is drawn next has this colour. */
void trli_colour_use(cairo_t *cairo, trli_colour colour);

/* ---- text (plot_text.c) ---- */

typedef struct trli_font {
    double size; /* height of capitals in pixels */
    trli_colour colour;
} trli_font;

typedef enum trli_anchor { TRLI_LEFT, TRLI_CENTRE, TRLI_RIGHT } trli_anchor;

/* Width in pixels of UTF-8 text. The font is DejaVu Sans, or what fontconfig has in its place. Where it lacks a true
 * minus or raised digits, as the font inside cairo does, which is drawn on a system without any, they are spelled in
 * ASCII. */
double trli_text_width(const trli_font *font, const char *text);
/* Draw text with its baseline at y, anchored at x. */
void trli_text_draw(cairo_t *cairo, const trli_font *font, double x, double y, trli_anchor anchor, const char *text);
/* The same turned to read upwards: the baseline is the vertical line at x, the text is centred at y. */
void trli_text_draw_upwards(cairo_t *cairo, const trli_font *font, double x, double y, const char *text);

/* ---- numbers at axes (plot_ticks.c) ---- */

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
/* Ticks at powers of ten; low, high and the places of the ticks are exponents. */
void trli_ticks_make_powers(double low, double high, int wanted, trli_ticks *ticks);
/* A number as a title shows it: six digits, a true minus, the exponent raised. */
void trli_number_format(double value, char *buffer, size_t size);

/* ---- axes (plot_axes.c) ---- */

typedef enum trli_axis_side { TRLI_BELOW, TRLI_BESIDE_LEFT, TRLI_BESIDE_RIGHT } trli_axis_side;

/* The font of the numbers. */
extern const trli_font trli_label_font;

/* A rectangle of whole pixels inside a frame. */
typedef struct trli_plot_area {
    int x, y, width, height;
} trli_plot_area;

/* Outward ticks with labels along an edge of a frame that spans [low, high], and the factor at its end. */
void trli_axis_draw(cairo_t *cairo, const trli_plot_area *frame, trli_axis_side edge, double low, double high,
                    const trli_ticks *ticks);
/* Pixels that the ticks and labels take outside the frame. */
int trli_axis_extent(trli_axis_side edge, const trli_ticks *ticks);
/* A frame of one-pixel lines around the rectangle. */
void trli_plot_area_draw(cairo_t *cairo, const trli_plot_area *frame);
/* A rectangle of whole pixels in one colour. */
void trli_fill(cairo_t *cairo, int x, int y, int width, int height, trli_colour colour);

/* ---- what fills a panel ---- */

/* plot_plane.c: each point colours the part of the frame nearest to it; a pixel that shows several, their mean. */
TRL_NODISCARD trl_err trli_plane_draw(trl_context *ctx, cairo_t *cairo, const trli_plot_data *data,
                                      const trli_colour_map *map, const trli_plot_area *area);
/* plot_contour.c: the line where the values, linear between points, have this level. */
void trli_contour_draw(cairo_t *cairo, const trli_plot_data *data, double level, const trli_plot_area *area);
/* plot_line.c: a curve through the points, over a vertical axis. */
typedef struct trli_line_axis {
    bool logarithmic;
    double low, high; /* at its ends: values, or their decimal logarithms */
} trli_line_axis;
void trli_line_draw(cairo_t *cairo, const trli_plot_data *data, const trli_line_axis *axis, const trli_plot_area *area);

/* ---- the figure (plot_figure.c) ---- */

typedef struct trli_plot_style {
    bool ranged; /* all panels show values from low to high */
    double low, high;
    int contours; /* lines in each plane, at equal steps of the value */
    int size;     /* pixels of the longer side of a panel's data; 0: as the number of panels suggests */
} trli_plot_style;

/* Where a panel came to lie. */
typedef struct trli_plot_panel {
    trli_plot_area area; /* of the data */
    trli_plot_area bar;  /* of the colours; width 0: none */
} trli_plot_panel;

/* All panels, at most three in a row. The set must live as long. */
typedef struct trli_figure trli_figure;
/* Lay them out. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_figure_create(trl_context *ctx, const trli_plot_set *set, const trli_plot_style *style,
                                         trli_figure **figure);
/* Pixels that it needs. */
void trli_figure_size(const trli_figure *figure, int *width, int *height);
const trli_plot_panel *trli_figure_panel(const trli_figure *figure, int panel);
/* Fails with MEMORY. */
TRL_NODISCARD trl_err trli_figure_draw(const trli_figure *figure, cairo_t *cairo);
void trli_figure_destroy(trli_figure **figure);

/* ---- files of pictures ---- */

/* plot_picture.c: a white picture to draw on, and its file, written aside and then renamed: PNG, or SVG or PDF where
 * the name ends so. */
typedef struct trli_picture trli_picture;
/* INPUT error for a name with another ending; IO and MEMORY. */
TRL_NODISCARD trl_err trli_picture_begin(trl_context *ctx, const char *path, int width, int height,
                                         trli_picture **picture);
cairo_t *trli_picture_cairo(const trli_picture *picture);
/* Write the file, unless `ended` is an error: then it is removed. IO errors name the path and the reason. Returns
 * `ended`, or IO. */
TRL_NODISCARD trl_err trli_picture_end(trli_picture **picture, trl_err ended);

/* plot_movie.c: an animated PNG, ten pictures a second, written aside and then renamed. */
typedef struct trli_movie trli_movie;
TRL_NODISCARD trl_err trli_movie_begin(trl_context *ctx, const char *path, int pictures, int width, int height,
                                       trli_movie **movie);
/* White, to draw the next picture on. */
cairo_t *trli_movie_cairo(const trli_movie *movie);
TRL_NODISCARD trl_err trli_movie_add(trli_movie *movie);
/* As trli_picture_end. */
TRL_NODISCARD trl_err trli_movie_end(trli_movie **movie, trl_err ended);

/* plot_reel.c: a picture of each time of a source, all alike: of one size, with the range of values over all times. */
typedef struct trli_reel trli_reel;
TRL_NODISCARD trl_err trli_reel_open(trl_context *ctx, const trli_plot_request *request, trli_reel **reel);
/* What is drawn at the first time, without its values. */
const trli_plot_set *trli_reel_first(const trli_reel *reel);
/* Write an animated PNG; or a file for each picture where the name holds a place for its number, as "%04d", numbered
 * from 0. */
TRL_NODISCARD trl_err trli_reel_draw(trli_reel *reel, const trli_plot_style *style, const char *path);
void trli_reel_close(trli_reel **reel);

#endif
