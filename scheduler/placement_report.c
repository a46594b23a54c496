/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* A placement in numbers. */
#include <string.h>

#include "placed_calls_impl.h"
#include "placement_run_impl.h"

static const char *word_of(const trli_placement *p)
{
    switch (p->rule.mode) {
    case TRLI_PLACE_BY_TIMES:
        break;
    case TRLI_PLACE_AT_RANDOM:
        return "random";
    case TRLI_PLACE_ON_DEVICES:
        return "devices";
    case TRLI_PLACE_BY_FILE:
        return "file";
    }
    if (trli_placement_follows(p)) return "another graph";
    if (p->single >= 0) return "one executor";
    if (!trli_placement_is_timed(p)) return "trials";
    return p->policy ? "policy" : "times";
}

static void count_devices(const trli_placement *p, trl_placement_stats *stats)
{
    for (int e = 1; e < p->platform.executors; ++e)
        stats->peak[e] = atomic_load_explicit(&trli_device_of(p->devices, e)->peak, memory_order_relaxed);
}

/* What runs of the current placement have shown. */
static void count_placed(const trli_placed *placed, trl_placement_stats *stats)
{
    const trli_placed_times *t = &placed->times;
    stats->regions = trli_placed_regions(placed);
    stats->on_devices = t->least;
    if (t->copying > 0) stats->overlap = t->overlapped / t->copying;
    if (t->leads > 0) stats->lead = t->lead / (double)t->leads;
}

void trl_graph_get_placement(const trl_graph *graph, trl_placement_stats *stats)
{
    const trli_placement *p = graph->placement;
    trli_outlook outlook;
    *stats = (trl_placement_stats){.single = -1, .by = "", .overlap = -1, .lead = -1};
    if (!p) return;
    stats->executors = p->platform.executors;
    for (int32_t t = 0; t < graph->task_count; ++t) ++stats->tasks[p->executor[t]];
    stats->by = word_of(p);
    stats->timed = trli_placement_is_timed(p);
    stats->single = p->single;
    if (p->runs > 0 && p->least_ns < INT64_MAX) stats->measured = 1e-9 * (double)p->least_ns;
    for (int i = 0; i < TRL_WAYS; ++i) {
        stats->copies[i] = p->copies[i] + (p->placed ? p->placed->copies[i] : 0);
        stats->bytes[i] = p->bytes[i] + (p->placed ? p->placed->bytes[i] : 0);
    }
    for (int e = 0; e < stats->executors; ++e)
        stats->done[e] = p->done[e] + (p->placed ? (p->runs + p->untimed) * stats->tasks[e] : 0);
    count_devices(p, stats);
    if (p->placed) count_placed(p->placed, stats);
    if (trli_outlook_make(p, &outlook) != TRL_OK) return;
    stats->transfers = outlook.transfers.list.count;
    stats->transfer_bytes = trli_outlook_bytes(p, &outlook);
    stats->chains = outlook.chains;
    for (int e = 1; e < stats->executors; ++e) stats->planned[e] = outlook.memory[e];
    if (stats->timed) {
        stats->predicted = outlook.prediction.seconds;
        memcpy(stats->busy, outlook.prediction.busy, sizeof stats->busy);
    }
    trli_outlook_free(&outlook);
}
