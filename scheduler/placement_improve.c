/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Placements compared by predicted cost, and small ones improved. */
#include <math.h>
#include <string.h>

#include "placement_assign_impl.h"

/* Tasks, edges and accesses that are simulated in all while a placement is improved; the largest graph for which
 * that pays. */
enum { MOST_PLAYED = 1000000, MOST_SIZE = 20000 };

/* A lower bound of a run: some executor is busy for this long. */
static double least_seconds(const trli_assignment *a)
{
    const size_t executors = (size_t)a->machine->executors;
    double sum[TRLI_EXECUTORS] = {0}, least = 0.0;
    for (int32_t t = 0; t < a->graph->tasks; ++t)
        sum[a->executor[t]] += a->graph->seconds[(size_t)t * executors + a->executor[t]];
    for (size_t e = 0; e < executors; ++e)
        if (sum[e] / a->machine->parallel[e] > least) least = sum[e] / a->machine->parallel[e];
    return least;
}

/* Seconds of copies that cost as much as one second of a run: where times are other than predicted, copies show. */
static const double hidden = 32.0;

/* Whether runs are left to GPUs, whose host goes ahead: as may_overlap in placed.c. */
static bool goes_ahead(const trli_assignment *a, const trli_transfers *transfers)
{
    const trli_place_graph *g = a->graph;
    const trli_transfer *transfer = transfers->list.data;
    bool any = false;
    for (int64_t x = 0; x < transfers->list.count; ++x)
        if (transfer[x].from == 0 || transfer[x].to == 0) return false;
    for (int32_t t = 0; t < g->tasks; ++t) {
        const int e = a->executor[t];
        any |= e > 0;
        if (e > 0 && a->machine->kind[e] != TRL_KIND_GPU) return false;
        for (int32_t i = g->access_first[t]; e == 0 && i < g->access_first[t + 1]; ++i)
            if (g->handle[g->access[i].handle].bytes > 0) return false;
    }
    return any;
}

static double cost_of(const trli_assignment *a, const trli_prediction *prediction, const trli_transfers *transfers)
{
    double sum = 0.0;
    for (int64_t x = 0; x < transfers->list.count; ++x) sum += prediction->copy_end[x] - prediction->copy_start[x];
    return (goes_ahead(a, transfers) ? 1 - TRLI_GAIN_AHEAD : 1) * (prediction->seconds + sum / hidden);
}

trl_err trli_best_compare(trli_assignment *a, trli_best *best)
{
    trl_err err = TRL_OK;
    trli_transfers transfers = {0};
    trli_prediction prediction = {0};
    const double least = least_seconds(a);
    if ((1 - TRLI_GAIN_AHEAD) * least >= best->cost || least > best->most) return TRL_OK;
    TRL_TRY(trli_transfers_of(a->ctx, a->graph, a->machine, a->values, a->executor, &transfers));
    TRL_TRY(trli_predict(a->ctx, a->graph, a->machine, a->executor, &transfers, true, &prediction));
    const double cost = cost_of(a, &prediction, &transfers);
    if (cost < best->cost && prediction.seconds <= best->most) {
        best->cost = cost;
        best->seconds = prediction.seconds;
        memcpy(best->executor, a->executor, (size_t)a->graph->tasks);
    }
done:
    trli_prediction_free(&prediction);
    trli_transfers_free(&transfers);
    return err;
}

/* ---- moves ---- */

typedef struct climb {
    trli_assignment *a;
    trli_best *best;
    int32_t left; /* placements that may still be simulated */
} climb;

static int executor_of(const trli_assignment *a, int32_t unit)
{
    return a->executor[a->unit_task[a->unit_first[unit]]];
}

static bool move(const trli_assignment *a, int32_t unit, int executor)
{
    if (!(a->may[unit] >> executor & 1) || executor_of(a, unit) == executor) return false;
    for (int32_t i = a->unit_first[unit]; i < a->unit_first[unit + 1]; ++i)
        a->executor[a->unit_task[i]] = (uint8_t)executor;
    return true;
}

/* Keep a move if runs cost less, else undo it. */
static trl_err settle(climb *c)
{
    trl_err err = TRL_OK;
    trli_assignment *a = c->a;
    --c->left;
    if (trli_assignment_fits(a)) TRL_TRY(trli_best_compare(a, c->best));
done:
    memcpy(a->executor, c->best->executor, (size_t)a->graph->tasks);
    return err;
}

/* Whether some task of the cluster was moved. */
static bool move_cluster(const trli_assignment *a, const trli_clusters *clusters, int32_t number, int executor)
{
    bool moved = false;
    for (int32_t t = 0; t < a->graph->tasks; ++t)
        if (clusters->of[t] == number) moved |= move(a, a->unit[t], executor);
    return moved;
}

static trl_err move_clusters(climb *c, const trli_clusters *clusters)
{
    trl_err err = TRL_OK;
    for (int32_t k = 0; k < clusters->n; ++k) {
        for (int e = 0; e < c->a->machine->executors && c->left > 0; ++e)
            if (move_cluster(c->a, clusters, k, e)) TRL_TRY(settle(c));
    }
done:
    return err;
}

static trl_err move_units(climb *c)
{
    trl_err err = TRL_OK;
    for (int32_t unit = 0; unit < c->a->units; ++unit) {
        for (int e = 0; e < c->a->machine->executors && c->left > 0; ++e)
            if (move(c->a, unit, e)) TRL_TRY(settle(c));
    }
done:
    return err;
}

static trl_err exchange_units(climb *c)
{
    trl_err err = TRL_OK;
    for (int32_t u = 0; u < c->a->units; ++u) {
        for (int32_t v = u + 1; v < c->a->units && c->left > 0; ++v) {
            const int from = executor_of(c->a, u), to = executor_of(c->a, v);
            if (from == to || !(c->a->may[u] >> to & 1) || !(c->a->may[v] >> from & 1)) continue;
            if (move(c->a, u, to) && move(c->a, v, from)) TRL_TRY(settle(c));
        }
    }
done:
    return err;
}

trl_err trli_best_improve(trli_assignment *a, const trli_clusters *chains, const trli_clusters *strands,
                          trli_best *best)
{
    trl_err err = TRL_OK;
    climb c = {.a = a, .best = best};
    double before = INFINITY;
    const int32_t tasks = a->graph->tasks;
    const int64_t size = (int64_t)tasks + a->graph->first[tasks] + a->graph->access_first[tasks];
    if (size == 0 || size > MOST_SIZE) return TRL_OK;
    c.left = (int32_t)(MOST_PLAYED / size);
    memcpy(a->executor, best->executor, (size_t)tasks);
    while (best->cost < before && c.left > 0) {
        before = best->cost;
        TRL_TRY(move_clusters(&c, strands));
        TRL_TRY(move_clusters(&c, chains));
        TRL_TRY(move_units(&c));
        TRL_TRY(exchange_units(&c));
    }
done:
    return err;
}
