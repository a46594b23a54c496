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

enum { BEFORE = 2 }; /* columns in front of the values: step, time */

/* The text of a file of series, cut into lines and names. */
typedef struct table {
    trl_context *ctx;
    const char *path;
    char *text;
    char **name; /* [n] of the values */
    int n;
    char *rows; /* in text: what follows the header */
    trl_gidx nrows;
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

static trl_err open_table(trl_context *ctx, const char *path, table *t)
{
    const trl_place place = {.file = path};
    size_t size;
    trl_err err;
    *t = (table){.ctx = ctx, .path = path};
    TRL_TRY(trli_file_read(ctx, TRL_ERR_IO, &place, path, INT64_MAX, &t->text, &size));
    TRL_TRY(read_header(t));
done:
    return err;
}

static void close_table(table *t)
{
    trli_free(t->name);
    trli_free(t->text);
}

/* Numbers of a row: the step, the time, and one column. False: it has fewer. */
static bool read_row(const char *row, int column, double number[3])
{
    const int last = column + BEFORE;
    for (int c = 0; c <= last; ++c) {
        char *end;
        double value = strtod(row, &end);
        const bool ends = *end == ',' || (c == last && (*end == '\n' || *end == '\r'));
        if (isspace((unsigned char)*row) || end == row || !ends) return false;
        if (c < BEFORE || c == last) number[c < BEFORE ? c : BEFORE] = value;
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
        double number[3];
        if (!read_row(row, column, number) || !isfinite(number[1])) return fail_row(t, i + 2);
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

trl_err trli_plot_series_read(trl_context *ctx, const trli_plot_request *request, trli_plot_set *set)
{
    table t;
    trl_err err;
    *set = (trli_plot_set){0};
    TRL_TRY(open_table(ctx, request->path, &t));
    int n = request->nfields ? request->nfields : t.n < TRLI_PLOT_FIELDS ? t.n : TRLI_PLOT_FIELDS;
    for (int i = 0; i < n; ++i) {
        int column = i;
        set->n = i + 1;
        if (request->nfields)
            TRL_TRY(trli_plot_choose(ctx, request->path, "series", request->field[i], t.n, t.name, &column));
        TRL_TRY(read_column(&t, column, &set->panel[i]));
    }
done:
    close_table(&t);
    if (err != TRL_OK) trli_plot_release(set);
    return err;
}
