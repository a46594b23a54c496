/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <string.h>

#include <plot_impl.h>

#include "memory_impl.h"

static trl_err refuse(trl_context *ctx, const trli_plot_request *request, const trli_plot_data *line, int ntimes)
{
    const trl_place place = {.file = request->path};
    if (line->naxes != 1)
        return trl_fail(ctx, TRL_ERR_INPUT, NULL,
                        "--spacetime draws a line over time, and '%s' has %d axes: cut it with --slice to one, as %s",
                        line->name, line->naxes + line->nplanes,
                        line->naxes + line->nplanes == 2 ? "--slice y=0.5" : "--slice y=0.5,z=0.5");
    if (ntimes < 2)
        return trl_fail(ctx, TRL_ERR_INPUT, &place,
                        "--spacetime needs several output times, and there is one; output.every in the deck says when "
                        "fields are written");
    return TRL_OK;
}

/* The first line becomes a plane with room for the lines of all times. */
static trl_err make_plane(trl_context *ctx, const trli_plot_data *line, int ntimes, trli_plot_data *plane)
{
    *plane = *line;
    plane->name = trli_copy_text(ctx, line->name);
    plane->value = trli_new(ctx, (size_t)line->axis[0].points * (size_t)ntimes, sizeof(double));
    plane->times = trli_new(ctx, (size_t)ntimes, sizeof(double));
    plane->naxes = 2;
    plane->axis[1] = (trli_plot_axis){.axis = TRLI_PLOT_TIME, .at = plane->times, .points = ntimes};
    if (plane->name && plane->value && plane->times) return TRL_OK;
    return trli_no_memory(ctx, NULL, "for '%s' at %d times", line->name, ntimes);
}

/* Put the lines of a time into the planes. */
static trl_err add_time(trl_context *ctx, const trli_plot_request *request, int which, const trli_plot_set *lines,
                        trli_plot_set *planes)
{
    const trl_place place = {.file = request->path};
    for (int i = 0; i < planes->n; ++i) {
        const trli_plot_data *line = &lines->panel[i];
        trli_plot_data *plane = &planes->panel[i];
        const size_t points = (size_t)plane->axis[0].points;
        if (line->axis[0].points != plane->axis[0].points || strcmp(line->name, plane->name))
            return trl_fail(ctx, TRL_ERR_IO, &place,
                            "at step %" TRL_GIDX_FMT " there are other fields or cells than "
                            "at the first step",
                            line->step);
        memcpy(plane->value + (size_t)which * points, line->value, points * sizeof(double));
        plane->times[which] = line->time;
        plane->step = line->step;
        plane->time = line->time;
    }
    return TRL_OK;
}

/* Times that go up, which an axis needs. */
static trl_err finish(trl_context *ctx, const trli_plot_request *request, trli_plot_data *plane)
{
    const trl_place place = {.file = request->path};
    trli_plot_axis *axis = &plane->axis[1];
    for (trl_gidx i = 1; i < axis->points; ++i)
        if (!(plane->times[i] > plane->times[i - 1]))
            return trl_fail(ctx, TRL_ERR_IO, &place, "its times do not grow: %g is followed by %g", plane->times[i - 1],
                            plane->times[i]);
    axis->low = plane->times[0];
    axis->high = plane->times[axis->points - 1];
    trli_plot_data_scan(plane);
    return TRL_OK;
}

trl_err trli_plot_history_read(trl_context *ctx, const trli_plot_request *request, trli_plot_set *set)
{
    trl_err err;
    trli_plot_source *source = NULL;
    trli_plot_set lines = {0};
    *set = (trli_plot_set){0};
    TRL_TRY(trli_plot_source_open(ctx, request, true, &source));
    const int ntimes = trli_plot_source_times(source);
    for (int k = 0; k < ntimes; ++k) {
        TRL_TRY(trli_plot_source_read(source, request, k, &lines));
        for (int i = 0; i < lines.n && k == 0; ++i) {
            TRL_TRY(refuse(ctx, request, &lines.panel[i], ntimes));
            set->n = i + 1;
            TRL_TRY(make_plane(ctx, &lines.panel[i], ntimes, &set->panel[i]));
        }
        TRL_TRY(add_time(ctx, request, k, &lines, set));
        trli_plot_release(&lines);
    }
    for (int i = 0; i < set->n; ++i) TRL_TRY(finish(ctx, request, &set->panel[i]));
done:
    trli_plot_source_close(&source);
    trli_plot_release(&lines);
    if (err != TRL_OK) trli_plot_release(set);
    return err;
}
