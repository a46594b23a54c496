/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* means.csv: what the columns of series.csv are in the mean over time. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "files_impl.h"
#include "memory_impl.h"
#include "writers_impl.h"

/* By the trapezoidal rule. On rank 0. */
typedef struct means {
    trl_context *ctx;
    int n;
    double from, first, last; /* times: asked for, and of the first and last line since then */
    double *before, *sum;     /* [n] values at `last`; integrals over time */
    double *mean;             /* [n] */
    trli_series_file *file;
} means;

static void add(means *m, double time, const double *values)
{
    if (time < m->from) return;
    if (isnan(m->first)) m->first = m->last = time;
    for (int i = 0; i < m->n; ++i) {
        if (time > m->last) m->sum[i] += (time - m->last) * 0.5 * (m->before[i] + values[i]);
        m->before[i] = values[i];
        m->mean[i] = time > m->first ? m->sum[i] / (time - m->first) : values[i];
    }
    m->last = time;
}

/* The number behind the next comma; *line: behind it. */
static bool next_number(const char **line, double *number)
{
    char *end;
    if (**line != ',') return false;
    errno = 0;
    *number = strtod(*line + 1, &end);
    if (end == *line + 1) return false;
    *line = end;
    return true;
}

/* The lines that a restart has kept of series.csv. */
static trl_err add_kept(means *m, const char *folder, double *values)
{
    char *path = NULL, *text = NULL;
    size_t size;
    trl_err err = TRL_OK;
    TRL_TRY(trli_format(m->ctx, &path, "%s/series.csv", folder));
    TRL_TRY(trli_file_read(m->ctx, TRL_ERR_IO, NULL, path, INT64_MAX, &text, &size));
    for (const char *line = strchr(text, '\n'); line && line[1]; line = strchr(line, '\n')) {
        double time = 0;
        bool whole = true;
        line += 1 + strcspn(line + 1, ",\n");
        whole &= next_number(&line, &time);
        for (int i = 0; i < m->n && whole; ++i) whole &= next_number(&line, &values[i]);
        if (!whole)
            TRL_TRY(trl_fail(m->ctx, TRL_ERR_INPUT, NULL,
                             "'%s' has a line that is not of %d numbers, from which means over time would go on: "
                             "restore the file, or begin anew",
                             path, m->n + 2));
        add(m, time, values);
    }
done:
    trli_free(text);
    trli_free(path);
    return err;
}

static void destroy(means **at)
{
    means *m = *at;
    *at = NULL;
    if (!m) return;
    trli_free(m->before);
    trli_free(m->sum);
    trli_free(m->mean);
    trli_free(m);
}

static trl_err create(const trli_writer_request *request, means **made)
{
    const size_t n = (size_t)request->nseries + 1;
    means *m = *made = trli_new(request->ctx, 1, sizeof *m);
    if (!m) return trli_no_memory(request->ctx, NULL, "for means of %d series", request->nseries);
    *m = (means){.ctx = request->ctx, .n = request->nseries, .from = request->means_from, .first = NAN};
    m->before = trli_new(m->ctx, n, sizeof *m->before);
    m->sum = trli_new(m->ctx, n, sizeof *m->sum);
    m->mean = trli_new(m->ctx, n, sizeof *m->mean);
    if (!m->before || !m->sum || !m->mean) return trli_no_memory(m->ctx, NULL, "for means of %d series", m->n);
    if (request->append && trl_context_rank(m->ctx) == 0) return add_kept(m, request->folder, m->mean);
    return TRL_OK;
}

static trl_err open_writer(const trli_writer_request *request, void **state)
{
    means *m;
    trl_err err = trl_context_agree(request->ctx, create(request, &m));
    if (err == TRL_OK)
        err = trli_series_create(m->ctx, request->folder, "means.csv", m->n, request->series, request->append,
                                 request->after_step, &m->file);
    if (err != TRL_OK) destroy(&m);
    *state = m;
    return err;
}

static trl_err write_means(void *state, trl_gidx step, double time, const double *values)
{
    means *m = state;
    add(m, time, values);
    return isnan(m->first) ? TRL_OK : trli_series_append(m->file, step, time, m->mean);
}

static trl_err close_writer(void **state)
{
    means *m = *state;
    const trl_err err = trli_series_close(&m->file);
    destroy(&m);
    *state = NULL;
    return err;
}

const trli_writer trli_writer_means = {
    .name = "means.csv",
    .file = "means.csv",
    .means = true,
    .open = open_writer,
    .series = write_means,
    .close = close_writer,
};
