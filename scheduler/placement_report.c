/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* What a placement is, in numbers and as text. */
#include <errno.h>
#include <string.h>

#include "placement_run_impl.h"

/* Transfers and times of a run after equal ones. */
static trl_err predict(const trli_placement *p, trli_transfers *transfers, trli_prediction *prediction)
{
    const trli_place_graph view = trli_placement_view(p);
    trl_context *ctx = p->graph->ctx;
    trl_err err;
    TRL_TRY(trli_transfers_find(ctx, &view, &p->platform, p->executor, transfers));
    TRL_TRY(trli_predict(ctx, &view, &p->platform, p->executor, transfers, true, prediction));
done:
    return err;
}

static bool is_timed(const trli_placement *p)
{
    return p->rule.mode == TRLI_PLACE_BY_TIMES && p->stage >= p->platform.executors;
}

void trl_graph_get_placement(const trl_graph *graph, trl_placement_stats *stats)
{
    const trli_placement *p = graph->placement;
    trli_transfers transfers = {0};
    trli_prediction prediction = {0};
    *stats = (trl_placement_stats){.single = -1};
    if (!p) return;
    stats->executors = p->platform.executors;
    for (int32_t t = 0; t < graph->task_count; ++t) ++stats->tasks[p->executor[t]];
    stats->timed = is_timed(p);
    stats->single = p->single;
    if (p->runs > 0 && p->least_ns < INT64_MAX) stats->measured = 1e-9 * (double)p->least_ns;
    for (int i = 0; i < TRL_WAYS; ++i) {
        stats->copies[i] = p->copies[i] + (p->placed ? p->placed->copies[i] : 0);
        stats->bytes[i] = p->bytes[i] + (p->placed ? p->placed->bytes[i] : 0);
    }
    if (p->placed) stats->regions = p->placed->nregions;
    if (stats->timed && predict(p, &transfers, &prediction) == TRL_OK) {
        stats->transfers = transfers.list.count;
        stats->predicted = prediction.seconds;
        memcpy(stats->busy, prediction.busy, sizeof stats->busy);
    }
    trli_prediction_free(&prediction);
    trli_transfers_free(graph->ctx, &transfers);
}

/* ---- text ---- */

static void write_executor(int e, FILE *out)
{
    if (e == 0)
        fprintf(out, "workers");
    else
        fprintf(out, "device %d", e - 1);
}

static void write_task(const trli_placement *p, int32_t t, const trli_prediction *prediction, FILE *out)
{
    const char *between = "";
    fprintf(out, "%-24s ", trli_graph_task_name(p->graph, t));
    write_executor(p->executor[t], out);
    if (prediction->start) fprintf(out, "  %.3g .. %.3g us", 1e6 * prediction->start[t], 1e6 * prediction->end[t]);
    fputs("  (", out);
    for (int e = 0; e < p->platform.executors; ++e) {
        const double s = p->seconds[(size_t)t * (size_t)p->platform.executors + (size_t)e];
        fputs(between, out);
        write_executor(e, out);
        if (!(p->eligible[t] & 1u << e))
            fputs(" cannot", out);
        else if (s > 0)
            fprintf(out, " %.3g us", 1e6 * s);
        else
            fputs(" not timed", out);
        between = ", ";
    }
    fputs(")\n", out);
}

static void write_transfer(const trli_placement *p, const trli_transfer *t, int32_t i,
                           const trli_prediction *prediction, FILE *out)
{
    const trl_policy_handle *handle = (const trl_policy_handle *)p->graph->handles.data + t->handle;
    fprintf(out, "copy of %s, %zu bytes, from ", trli_graph_text(p->graph, handle->name), handle->bytes);
    write_executor(t->from, out);
    fputs(" to ", out);
    write_executor(t->to, out);
    if (prediction->copy_start)
        fprintf(out, "  %.3g .. %.3g us", 1e6 * prediction->copy_start[i], 1e6 * prediction->copy_end[i]);
    fprintf(out, ", for %s\n", trli_graph_task_name(p->graph, t->reader));
}

trl_err trl_graph_write_placement(const trl_graph *graph, FILE *out)
{
    const trli_placement *p = graph->placement;
    trli_transfers transfers = {0};
    trli_prediction prediction = {0};
    trl_err err = TRL_OK;
    if (!p) return TRL_OK;
    TRL_TRY(predict(p, &transfers, &prediction));
    for (int32_t i = 0; i < graph->task_count; ++i) write_task(p, graph->order[i], &prediction, out);
    for (int32_t i = 0; i < (int32_t)transfers.list.count; ++i)
        write_transfer(p, (const trli_transfer *)transfers.list.data + i, i, &prediction, out);
    if (fflush(out) != 0 || ferror(out))
        err = trl_fail(graph->ctx, TRL_ERR_IO, NULL, "cannot write the placement: %s", strerror(errno));
done:
    trli_prediction_free(&prediction);
    trli_transfers_free(graph->ctx, &transfers);
    return err;
}
