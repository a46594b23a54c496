/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* `trellis plot`: a picture of fields of a run, or of its series. What is read for it; plot_draw_impl.h has what draws
 * it, and plot_cmd.c joins them. Everything is serial: only rank 0 plots. */
#ifndef TRLI_PLOT_IMPL_H
#define TRLI_PLOT_IMPL_H

#include <hdf5.h>

#include <trl_grid.h>

enum { TRLI_PLOT_FIELDS = 6 /* panels of one picture */ };
/* Axes of a picture beside x, y, z: time, and the numbers of a profile's points or a spectrum's waves. */
enum { TRLI_PLOT_TIME = 3, TRLI_PLOT_NUMBER = 4 };

typedef struct trli_plot_request {
    const char *path; /* of a file of fields, a folder of them, or a file of series */
    int nfields;      /* 0: the first field of the file */
    const char *field[TRLI_PLOT_FIELDS];
    bool sliced[3]; /* by axis: cut with the plane at slice[axis] */
    double slice[3];
    bool timed; /* the step nearest to time; otherwise the last one */
    double time;
} trli_plot_request;

/* An axis of a picture: where the values lie along it. */
typedef struct trli_plot_axis {
    int axis;         /* 0 to 2: x, y, z; TRLI_PLOT_TIME, TRLI_PLOT_NUMBER */
    double low, high; /* the domain, or the first and the last time */
    double first;     /* coordinate of the first point */
    double spacing;
    const double *at; /* [points] ascending, in place of first and spacing; NULL: not so */
    trl_gidx points;
    bool wraps; /* point 0 is also the point after the last: periodic points on faces */
} trli_plot_axis;

static inline char trli_plot_axis_name(int axis)
{
    return "xyztk"[axis];
}

static inline double trli_plot_axis_place(const trli_plot_axis *axis, trl_gidx point)
{
    return axis->at ? axis->at[point] : axis->first + (double)point * axis->spacing;
}

/* The values of one panel: a line or a plane of a field at a step, a line of it over time, a series, or a profile. */
typedef struct trli_plot_data {
    char *name;
    trl_gidx step; /* the last one where an axis is time */
    double time;
    int naxes;              /* 1: a line; 2: a plane */
    trli_plot_axis axis[2]; /* horizontal, vertical */
    int nplanes;            /* cuts that led here */
    struct {
        int axis;
        double at; /* coordinate of the points on the plane */
    } plane[3];
    double *value;    /* [axis[1].points][axis[0].points] */
    double *times;    /* what `at` of an axis of time points to, or NULL */
    double low, high; /* over the finite values; both NaN when there is none */
    trl_gidx not_finite;
    bool logarithmic; /* of a line: its values are all positive, and several powers of ten */
} trli_plot_data;

typedef struct trli_plot_set {
    int n;
    trli_plot_data panel[TRLI_PLOT_FIELDS];
} trli_plot_set;

/* plot_data.c: range and count of what is not finite, from the values. */
void trli_plot_data_scan(trli_plot_data *data);
void trli_plot_release(trli_plot_set *set);
/* Which of the names is meant: the one wanted, or the first where wanted is NULL. INPUT error for a name that is not
 * there, with what is; `of` says of what there are names: "field", "series". */
TRL_NODISCARD trl_err trli_plot_choose(trl_context *ctx, const char *path, const char *of, const char *wanted, int n,
                                       char *const *name, int *chosen);

/* plot_source.c: the output times of a run. A source is one file of fields, or a folder of them. */
typedef struct trli_plot_source trli_plot_source;
/* every: all times; otherwise only the one that the request asks for, without a look at more files than that needs.
 * IO errors: missing, not HDF5, truncated or being written, no step yet, attributes that do not fit. Thread: main. */
TRL_NODISCARD trl_err trli_plot_source_open(trl_context *ctx, const trli_plot_request *request, bool every,
                                            trli_plot_source **source);
int trli_plot_source_times(const trli_plot_source *source);
/* Read what the request asks for at a time. A 3-D field with no plane given is cut in the middle of z; a plane is moved
 * to the nearest points, and no more than it is read. Further IO errors: shapes that do not fit. INPUT errors: unknown
 * field (what is there is listed), a plane outside the domain or along an axis the grid lacks. */
TRL_NODISCARD trl_err trli_plot_source_read(trli_plot_source *source, const trli_plot_request *request, int which,
                                            trli_plot_set *set);
void trli_plot_source_close(trli_plot_source **source);

/* A file of fields that is open at one of its times. */
typedef struct trli_plot_file {
    trl_context *ctx;
    const char *path;
    hid_t file; /* -1: not open */
    trl_grid grid;
    int index; /* of the time */
    trl_gidx step;
    double time;
    char **tag; /* [ntags] */
    int ntags;
} trli_plot_file;
/* plot_panel.c: one field of such a file; errors as above. */
TRL_NODISCARD trl_err trli_plot_panel_read(const trli_plot_file *file, const trli_plot_request *request,
                                           const char *wanted, trli_plot_data *data);

/* plot_history.c: lines over all times of a source, as planes of space and time. INPUT errors: what is left after
 * cutting is no line; there is one time only. */
TRL_NODISCARD trl_err trli_plot_history_read(trl_context *ctx, const trli_plot_request *request, trli_plot_set *set);

/* plot_series.c: columns of series.csv as lines over time, and columns U_0, U_1, .. of one profile or spectrum,
 * `U`, as a line over these numbers; without names in the request, the first ones. INPUT error: a time is asked for,
 * and nothing is drawn at one. */
bool trli_plot_is_series(const char *path);
TRL_NODISCARD trl_err trli_plot_series_read(trl_context *ctx, const trli_plot_request *request, trli_plot_set *set);

#endif
