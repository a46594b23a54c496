/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Ways to assign an executor to each task. */
#include <math.h>
#include <string.h>

#include "arithmetic_impl.h"
#include "placement_assign_impl.h"

static trl_err fits_nowhere(const trli_assignment *a)
{
    return trl_fail(a->ctx, TRL_ERR_MEMORY, NULL,
                    "no placement of %d tasks on %d executors fits into their memory; use more devices, a smaller "
                    "problem, or let more tasks be done by the CPU",
                    a->graph->tasks, a->machine->executors);
}

/* ---- the earliest finish ---- */

/* Put every unit that fits on one executor there, and the others on the first executor where they fit. */
static bool place_all_on(trli_assignment *a, int executor)
{
    trli_assignment_clear(a);
    for (int32_t u = 0; u < a->units; ++u)
        if (!trli_unit_place_near(a, u, executor)) return false;
    return true;
}

/* *complete: there is a placement, a->executor. */
static trl_err compare_finish_time(trli_assignment *a, const uint16_t *first, trli_best *best, bool *complete)
{
    trl_err err;
    TRL_TRY(trli_assign_finish_time(a, first, complete));
    if (*complete) TRL_TRY(trli_best_compare(a, best));
done:
    return err;
}

static bool is_anywhere(const trli_assignment *a, int32_t handle)
{
    return trli_first_spaces(a->graph, handle) >> TRLI_ANYWHERE & 1;
}

/* Where values lie that are ANYWHERE when a run begins: where equal runs with this placement leave them. Returns
 * whether that is news. */
static trl_err find_again(const trli_assignment *a, const uint8_t *executor, uint16_t *first, bool *changed)
{
    trl_err err = TRL_OK;
    trli_transfers transfers = {0};
    bool any = false;
    *changed = false;
    for (int32_t h = 0; h < a->graph->handles; ++h) any = any || is_anywhere(a, h);
    if (!any) return TRL_OK;
    TRL_TRY(trli_transfers_of(a->ctx, a->graph, a->machine, a->values, executor, &transfers));
    for (int32_t h = 0; h < a->graph->handles; ++h) {
        if (!is_anywhere(a, h)) continue;
        const uint16_t now = (uint16_t)trli_steady_spaces(a->graph, &transfers, h);
        *changed = *changed || now != first[h];
        first[h] = now;
    }
done:
    trli_transfers_free(&transfers);
    return err;
}

/* Where tasks end first depends on where values lie that a run finds: where the best placement leaves them, then,
 * some times, where the placement that follows from it does. */
static trl_err compare_again(trli_assignment *a, uint16_t *first, trli_best *best)
{
    enum { ROUNDS = 3 };
    trl_err err;
    bool changed, complete;
    TRL_TRY(find_again(a, best->executor, first, &changed));
    for (int i = 0; changed && i < ROUNDS; ++i) {
        TRL_TRY(compare_finish_time(a, first, best, &complete));
        if (!complete || !a->graph->follows) break; /* else what runs write is not where they find values */
        TRL_TRY(find_again(a, a->executor, first, &changed));
    }
done:
    return err;
}

/* All on one executor, the first of the fastest. Placements that follow are at least as fast. */
static trl_err compare_single(trli_assignment *a, trli_best *best)
{
    trl_err err = TRL_OK;
    for (int e = a->machine->executors - 1; e >= 0; --e) {
        const double cost = best->cost;
        if (!place_all_on(a, e)) continue;
        best->cost = INFINITY;
        TRL_TRY(trli_best_compare(a, best));
        if (best->cost == INFINITY) best->cost = cost;
        best->most = best->seconds;
    }
done:
    return err;
}

/* Neighbouring strands on one executor: all devices take part, or the workers as well. */
static trl_err compare_blocks(trli_assignment *a, const trli_clusters *strands, trli_best *best)
{
    const unsigned all = (1u << a->machine->executors) - 1;
    trl_err err = TRL_OK;
    for (int workers = 0; workers < 2; ++workers) {
        bool complete;
        TRL_TRY(trli_assign_blocks(a, strands->of, strands->n, workers ? all : all & ~1u, &complete));
        if (complete) TRL_TRY(trli_best_compare(a, best));
    }
done:
    return err;
}

static trl_err find_best(trli_assignment *a, const trli_clusters *chains, trli_best *best)
{
    trl_err err;
    bool complete;
    trli_clusters strands = {.of = trli_new(a->ctx, (size_t)a->graph->tasks, sizeof *strands.of)};
    uint16_t *first = trli_new(a->ctx, (size_t)a->graph->handles, sizeof *first);
    if (!first || !strands.of) {
        err = trli_no_memory(a->ctx, NULL, "to assign %d tasks", a->graph->tasks);
        goto done;
    }
    for (int32_t h = 0; h < a->graph->handles; ++h) first[h] = (uint16_t)trli_first_spaces(a->graph, h);
    TRL_TRY(trli_strands_find(a->ctx, a->graph, a->values, strands.of, &strands.n));
    TRL_TRY(compare_single(a, best));
    TRL_TRY(compare_finish_time(a, first, best, &complete));
    TRL_TRY(compare_blocks(a, &strands, best));
    if (best->cost == INFINITY) TRL_TRY(fits_nowhere(a));
    TRL_TRY(compare_again(a, first, best));
    TRL_TRY(trli_best_improve(a, chains, &strands, best));
done:
    trli_free(strands.of);
    trli_free(first);
    return err;
}

/* ---- chains to devices ---- */

typedef struct chain_info {
    uint16_t devices; /* [chains] devices that may run all of the chain */
    int32_t length;
} chain_info;

/* The next device after the previous one that may run the chain. */
static int next_device(const chain_info *chain, int executors, int before)
{
    int e = before;
    do {
        e = e + 1 < executors ? e + 1 : 1;
    } while (!(chain->devices >> e & 1) && e != before);
    return e;
}

/* The first of the devices with the fewest tasks. */
static int least_loaded(const chain_info *chain, int executors, const int64_t *load)
{
    int best = 0;
    for (int e = 1; e < executors; ++e)
        if (chain->devices >> e & 1 && (best == 0 || load[e] < load[best])) best = e;
    return best;
}

/* device: [chains]. 0 if the machine has no device for a chain. */
static void deal_chains(const trli_platform *machine, const chain_info *info, int32_t chains, trli_placement_kind kind,
                        uint8_t *device)
{
    int64_t load[TRLI_EXECUTORS] = {0};
    int last = 0;
    for (int32_t c = 0; c < chains; ++c) {
        if (info[c].devices >> 1 == 0) continue;
        last = kind == TRLI_PLACE_round_robin ? next_device(&info[c], machine->executors, last)
                                              : least_loaded(&info[c], machine->executors, load);
        load[last] += info[c].length;
        device[c] = (uint8_t)last;
    }
}

static trl_err place_chains(trli_assignment *a, const int32_t *chain, int32_t chains, trli_placement_kind kind)
{
    trl_err err = TRL_OK;
    trli_scratch scratch = {.ctx = a->ctx};
    chain_info *info = trli_scratch_new(&scratch, (size_t)chains, sizeof *info);
    uint8_t *device = trli_scratch_new(&scratch, (size_t)chains, sizeof *device);
    if (scratch.failed) {
        err = trli_no_memory(a->ctx, NULL, "to assign %d chains of tasks", chains);
        goto done;
    }
    for (int32_t c = 0; c < chains; ++c) info[c].devices = (uint16_t)((1u << a->machine->executors) - 1);
    for (int32_t t = 0; t < a->graph->tasks; ++t) {
        if (chain[t] < 0) continue;
        info[chain[t]].devices &= a->graph->eligible[t];
        ++info[chain[t]].length;
    }
    deal_chains(a->machine, info, chains, kind, device);
    trli_assignment_clear(a);
    for (int32_t i = 0; i < a->graph->tasks; ++i) {
        const int32_t t = a->graph->order[i];
        if (a->executor[t] != TRLI_UNPLACED) continue;
        if (!trli_unit_place_near(a, a->unit[t], chain[t] < 0 ? 0 : device[chain[t]])) {
            err = fits_nowhere(a);
            goto done;
        }
    }
done:
    trli_scratch_free(&scratch);
    return err;
}

trl_err trli_assign(trl_context *ctx, const trli_place_graph *graph, const trli_platform *machine,
                    trli_placement_kind kind, uint8_t *executor)
{
    trl_err err;
    trli_values values = {0};
    trli_assignment a = {.ctx = ctx, .graph = graph, .machine = machine, .values = &values};
    trli_best best = {.cost = INFINITY, .seconds = INFINITY, .most = INFINITY, .executor = executor};
    trli_clusters chains = {.of = trli_new(ctx, (size_t)graph->tasks, sizeof *chains.of)};
    if (!chains.of) return trli_no_memory(ctx, NULL, "to assign %d tasks", graph->tasks);
    TRL_TRY(trli_chains(ctx, graph, chains.of, &chains.n));
    TRL_TRY(trli_values_find(ctx, graph, &values));
    TRL_TRY(trli_assignment_begin(&a));
    if (kind == TRLI_PLACE_finish_time) {
        TRL_TRY(find_best(&a, &chains, &best));
    } else {
        TRL_TRY(place_chains(&a, chains.of, chains.n, kind));
        memcpy(executor, a.executor, (size_t)graph->tasks);
    }
done:
    trli_assignment_end(&a);
    trli_values_free(&values);
    trli_free(chains.of);
    return err;
}

trl_err trli_assign_to_devices(trl_context *ctx, const trli_place_graph *graph, const trli_platform *machine,
                               uint8_t *executor)
{
    trl_err err;
    bool complete;
    trli_values values = {0};
    trli_assignment a = {.ctx = ctx, .graph = graph, .machine = machine, .values = &values};
    int32_t strands, *strand = trli_new(ctx, (size_t)graph->tasks, sizeof *strand);
    if (!strand) return trli_no_memory(ctx, NULL, "to assign %d tasks", graph->tasks);
    TRL_TRY(trli_values_find(ctx, graph, &values));
    TRL_TRY(trli_assignment_begin(&a));
    TRL_TRY(trli_strands_find(ctx, graph, &values, strand, &strands));
    TRL_TRY(trli_assign_blocks(&a, strand, strands, ~1u, &complete));
    if (!complete) TRL_TRY(fits_nowhere(&a));
    memcpy(executor, a.executor, (size_t)graph->tasks);
done:
    trli_assignment_end(&a);
    trli_values_free(&values);
    trli_free(strand);
    return err;
}
