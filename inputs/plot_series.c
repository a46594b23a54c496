/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <plot_impl.h>

#include "files_impl.h"
#include "memory_impl.h"

enum {
    BEFORE = 2,        /* columns in front of the values: step, time */
    NUMBERED_LEAST = 4 /* columns of a profile or a spectrum */
};

/* The text of a file of series, cut into lines and names. */
typedef struct table {
    trl_context *ctx;
    const char *path;
    char *text;
    char **name; /* [n] of the values */
    int n;
    char *rows; /* in text: what follows the header */
    trl_gidx nrows;
    /* What there is to draw: series, and profiles and spectra. */
    int ncurves;
    char **curve; /* [n], ncurves of them there: names */
    int *first;   /* [n] columns: the first, */
    int *count;   /* [n] and how many */
} table;

bool trli_plot_is_series(const char *path)
{
    const char *dot = strrchr(path, '.');
    return dot && !strcmp(dot, ".csv");
}

static trl_err fail_table(const table *t, const char *what)
{
    const trl_place place = {.file = t->path};
    return trl_fail(t->ctx, TRL_ERR_IO, &place, "%s", what);
}

/* "step,time,mass,peak": the commas become ends of names. */
static trl_err read_header(table *t)
{
    static const char start[] = "step,time,";
    char *end = strchr(t->text, '\n'), *rest;
    int32_t room = 0;
    if (strncmp(t->text, start, sizeof start - 1) || !end)
        return fail_table(t, "is not a file of series: its first line is not 'step,time,' and names of values");
    *end = 0;
    t->rows = end + 1;
    for (char *word = strtok_r(t->text + sizeof start - 1, ",\r", &rest); word; word = strtok_r(NULL, ",\r", &rest)) {
        if (!trli_make_room(t->ctx, &t->name, t->n, 1, &room, sizeof *t->name))
            return trli_no_memory(t->ctx, NULL, "for the names of %d series", t->n);
        t->name[t->n++] = word;
    }
    for (const char *c = strchr(t->rows, '\n'); c; c = strchr(c + 1, '\n')) ++t->nrows;
    if (t->n == 0) return fail_table(t, "holds no series");
    return t->nrows > 0 ? TRL_OK : fail_table(t, "holds no values yet");
}

/* How many columns from one on are U_0, U_1, ..; `length` of U. */
static int count_numbered(const table *t, int first, size_t *length)
{
    const char *name = t->name[first], *bar = strrchr(name, '_');
    int count = 0;
    *length = bar ? (size_t)(bar - name) : 0;
    for (; *length > 0 && first + count < t->n; ++count) {
        char number[16];
        snprintf(number, sizeof number, "_%d", count);
        const char *other = t->name[first + count];
        if (strncmp(other, name, *length) || strcmp(other + *length, number)) break;
    }
    return count;
}

static trl_err find_curves(table *t)
{
    t->curve = trli_new(t->ctx, (size_t)t->n, sizeof *t->curve);
    t->first = trli_new(t->ctx, (size_t)t->n, sizeof *t->first);
    t->count = trli_new(t->ctx, (size_t)t->n, sizeof *t->count);
    if (!t->curve || !t->first || !t->count) return trli_no_memory(t->ctx, NULL, "for %d series", t->n);
    for (int c = 0; c < t->n; c += t->count[t->ncurves++]) {
        size_t length;
        const int numbered = count_numbered(t, c, &length);
        const bool alone = numbered < NUMBERED_LEAST;
        char *name = trli_copy_text(t->ctx, t->name[c]);
        if (!name) return trli_no_memory(t->ctx, NULL, "for the name of a series");
        if (!alone) name[length] = 0;
        t->curve[t->ncurves] = name;
        t->first[t->ncurves] = c;
        t->count[t->ncurves] = alone ? 1 : numbered;
    }
    return TRL_OK;
}

static trl_err open_table(trl_context *ctx, const char *path, table *t)
{
    const trl_place place = {.file = path};
    size_t size;
    trl_err err;
    *t = (table){.ctx = ctx, .path = path};
    TRL_TRY(trli_file_read(ctx, TRL_ERR_IO, &place, path, INT64_MAX, &t->text, &size));
    TRL_TRY(read_header(t));
    TRL_TRY(find_curves(t));
done:
    return err;
}

static void close_table(table *t)
{
    for (int i = 0; i < t->ncurves; ++i) trli_free(t->curve[i]);
    trli_free(t->curve);
    trli_free(t->first);
    trli_free(t->count);
    trli_free(t->name);
    trli_free(t->text);
}

/* Numbers of a row: the step, the time, and some columns. False: it has fewer. */
static bool read_row(const char *row, int column, int count, double number[])
{
    const int first = column + BEFORE, last = first + count - 1;
    for (int c = 0; c <= last; ++c) {
        char *end;
        double value = strtod(row, &end);
        const bool ends = *end == ',' || (c == last && (*end == '\n' || *end == '\r'));
        if (isspace((unsigned char)*row) || end == row || !ends) return false;
        if (c < BEFORE || c >= first) number[c < BEFORE ? c : c - column] = value;
        row = end + 1;
    }
    return true;
}

static trl_err fail_row(const table *t, trl_gidx line)
{
    const trl_place place = {.file = t->path, .line = (int)line};
    return trl_fail(t->ctx, TRL_ERR_IO, &place, "this line does not hold a number for each name of the first one");
}

/* A logarithmic axis shows more where values are positive and go through several powers of ten. */
static bool wants_logarithm(const trli_plot_data *data)
{
    return data->low > 0 && data->high >= 1000 * data->low;
}

static trl_err read_column(const table *t, int column, trli_plot_data *data)
{
    const char *row = t->rows;
    data->naxes = 1;
    data->name = trli_copy_text(t->ctx, t->name[column]);
    data->value = trli_new(t->ctx, (size_t)t->nrows, sizeof *data->value);
    data->times = trli_new(t->ctx, (size_t)t->nrows, sizeof *data->times);
    if (!data->name || !data->value || !data->times)
        return trli_no_memory(t->ctx, NULL, "for %" TRL_GIDX_FMT " values of '%s'", t->nrows, t->name[column]);
    data->axis[0] = (trli_plot_axis){.axis = TRLI_PLOT_TIME, .at = data->times, .points = t->nrows};
    for (trl_gidx i = 0; i < t->nrows; ++i) {
        double number[BEFORE + 1];
        if (!read_row(row, column, 1, number) || !isfinite(number[1])) return fail_row(t, i + 2);
        data->step = (trl_gidx)number[0];
        data->times[i] = data->time = number[1];
        data->value[i] = number[BEFORE];
        row = strchr(row, '\n') + 1;
    }
    trli_plot_axis *axis = &data->axis[0];
    axis->low = data->times[0];
    axis->high = data->times[t->nrows - 1];
    if (!(axis->high > axis->low)) axis->high = axis->low + 1; /* one time */
    trli_plot_data_scan(data);
    data->logarithmic = wants_logarithm(data);
    return TRL_OK;
}

/* A profile or a spectrum at the time that is nearest to the one wanted, or the last one. */
static trl_err read_numbered(const table *t, const trli_plot_request *request, int curve, trli_plot_data *data)
{
    const int count = t->count[curve];
    double *number = trli_new(t->ctx, (size_t)(BEFORE + count), sizeof *number), apart = INFINITY;
    const char *row = t->rows;
    trl_err err = TRL_OK;
    data->naxes = 1;
    data->name = trli_copy_text(t->ctx, t->curve[curve]);
    data->value = trli_new(t->ctx, (size_t)count, sizeof *data->value);
    if (!number || !data->name || !data->value)
        TRL_TRY(trli_no_memory(t->ctx, NULL, "for %d values of '%s'", count, t->curve[curve]));
    data->axis[0] = (trli_plot_axis){.axis = TRLI_PLOT_NUMBER, .high = count - 1, .spacing = 1, .points = count};
    for (trl_gidx i = 0; i < t->nrows; ++i) {
        if (!read_row(row, t->first[curve], count, number) || !isfinite(number[1])) TRL_TRY(fail_row(t, i + 2));
        row = strchr(row, '\n') + 1;
        const double off = request->timed ? fabs(number[1] - request->time) : (double)(t->nrows - i);
        if (!(off < apart)) continue;
        apart = off;
        data->step = (trl_gidx)number[0];
        data->time = number[1];
        memcpy(data->value, number + BEFORE, (size_t)count * sizeof *data->value);
    }
    trli_plot_data_scan(data);
    data->logarithmic = wants_logarithm(data);
done:
    trli_free(number);
    return err;
}

/* A curve by its name, or one column of a profile by its own. */
static trl_err read_panel(const table *t, const trli_plot_request *request, int i, trli_plot_data *data)
{
    const char *wanted = request->nfields ? request->field[i] : t->curve[i];
    int curve;
    trl_err err = TRL_OK;
    for (curve = 0; curve < t->ncurves; ++curve)
        if (!strcmp(t->curve[curve], wanted)) break;
    for (int c = 0; c < t->n && curve == t->ncurves; ++c)
        if (!strcmp(t->name[c], wanted)) return read_column(t, c, data);
    TRL_TRY(trli_plot_choose(t->ctx, request->path, "series", wanted, t->ncurves, t->curve, &curve));
    err = t->count[curve] > 1 ? read_numbered(t, request, curve, data) : read_column(t, t->first[curve], data);
done:
    return err;
}

trl_err trli_plot_series_read(trl_context *ctx, const trli_plot_request *request, trli_plot_set *set)
{
    bool at_time = false;
    table t;
    trl_err err;
    *set = (trli_plot_set){0};
    TRL_TRY(open_table(ctx, request->path, &t));
    int n = request->nfields ? request->nfields : t.ncurves < TRLI_PLOT_FIELDS ? t.ncurves : TRLI_PLOT_FIELDS;
    for (int i = 0; i < n; ++i) {
        set->n = i + 1;
        TRL_TRY(read_panel(&t, request, i, &set->panel[i]));
        at_time |= set->panel[i].axis[0].axis == TRLI_PLOT_NUMBER;
    }
    if (request->timed && !at_time)
        err = trl_fail(ctx, TRL_ERR_INPUT, NULL, "trellis plot: '%s' holds series, which have no --time; leave it out",
                       request->path);
done:
    close_table(&t);
    if (err != TRL_OK) trli_plot_release(set);
    return err;
}
