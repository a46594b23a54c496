/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Consequences of a placement, for reports. */
#include <stdint.h>
#include <string.h>

#include "placement_assign_impl.h"
#include "placement_run_impl.h"

/* Paths of tasks on one device. */
static trl_err find_chains(const trli_placement *p, trli_outlook *o)
{
    trli_place_graph view = trli_placement_view(p);
    trl_context *ctx = p->graph->ctx;
    const size_t n = (size_t)view.tasks + 1;
    trl_err err = TRL_OK;
    uint16_t *placed = trli_new(ctx, n, sizeof *placed);
    o->chain = trli_new(ctx, n, sizeof *o->chain);
    if (!placed || !o->chain) TRL_TRY(trli_no_memory(ctx, NULL, "for a placement"));
    for (int32_t t = 0; t < view.tasks; ++t) placed[t] = (uint16_t)(1u << p->executor[t]);
    view.eligible = placed;
    TRL_TRY(trli_chains(ctx, &view, o->chain, &o->chains));
done:
    trli_free(placed);
    return err;
}

/* The regions of bodies of calls are counted as if they were the graph's. */
static trl_err find_regions(const trli_placement *p, const trli_transfers *transfers, trli_outlook *o)
{
    trl_context *ctx = p->graph->ctx;
    trli_placed_nodes nodes = {0};
    int32_t *order = NULL;
    trl_err err;
    TRL_TRY(trli_placed_nodes_find(p->graph, p->executor, transfers, p->late, &nodes));
    order = trli_new(ctx, (size_t)nodes.n + 1, sizeof *order);
    o->region = trli_new(ctx, (size_t)nodes.n + 1, sizeof *o->region);
    if (!order || !o->region) TRL_TRY(trli_no_memory(ctx, NULL, "for a placement"));
    for (int32_t x = 0; x < nodes.n; ++x) o->region[x] = -1;
    TRL_TRY(trli_regions_find(ctx, &nodes, order, o->region, &o->regions));
done:
    trli_placed_nodes_free(&nodes);
    trli_free(order);
    return err;
}

/* The blocks of memory that the tasks of an executor touch. */
static trl_err find_memory(const trli_placement *p, trli_outlook *o)
{
    const trli_place_graph view = trli_placement_view(p);
    trl_context *ctx = p->graph->ctx;
    trli_platform counting = p->platform;
    trli_values values = {0};
    trli_assignment a = {.ctx = ctx, .graph = &view, .machine = &counting, .values = &values};
    trl_err err;
    for (int e = 0; e < counting.executors; ++e)
        counting.bytes[e] = SIZE_MAX; /* no limit, so that all memory is counted */
    TRL_TRY(trli_values_find(ctx, &view, &values));
    TRL_TRY(trli_assignment_begin(&a));
    memcpy(a.executor, p->executor, (size_t)view.tasks);
    (void)trli_assignment_fits(&a);
    memcpy(o->memory, a.used, sizeof o->memory);
done:
    trli_assignment_end(&a);
    trli_values_free(&values);
    return err;
}

/* The copies of a run that follows equal runs, which left values where they are read again. */
static trl_err find_transfers(const trli_placement *p, const trli_place_graph *of, const trli_transfers *first,
                              trli_outlook *o)
{
    trli_place_graph view = *of;
    trl_context *ctx = p->graph->ctx;
    trl_err err;
    uint16_t *valid = trli_new(ctx, (size_t)view.handles + 1, sizeof *valid);
    if (!valid) return trli_no_memory(ctx, NULL, "for a placement");
    for (int32_t h = 0; h < view.handles; ++h) {
        valid[h] = (uint16_t)trli_steady_spaces(&view, first, h);
        if (valid[h] == 0) valid[h] = 1; /* no task touches it */
    }
    view.valid = valid;
    TRL_TRY(trli_transfers_find(ctx, &view, &p->platform, p->executor, &o->transfers));
    TRL_TRY(trli_predict(ctx, &view, &p->platform, p->executor, &o->transfers, !p->late, &o->prediction));
done:
    trli_free(valid);
    return err;
}

trl_err trli_outlook_make(const trli_placement *p, trli_outlook *outlook)
{
    trli_place_graph view = trli_placement_view(p);
    trl_context *ctx = p->graph->ctx;
    trli_transfers first = {0};
    uint16_t *called = NULL;
    trl_err err;
    *outlook = (trli_outlook){0};
    TRL_TRY(trli_calls_called(p->graph, p->executor, &called));
    view.called = called;
    TRL_TRY(trli_transfers_find(ctx, &view, &p->platform, p->executor, &first));
    TRL_TRY(find_chains(p, outlook));
    TRL_TRY(find_regions(p, &first, outlook));
    TRL_TRY(find_memory(p, outlook));
    TRL_TRY(find_transfers(p, &view, &first, outlook));
done:
    trli_free(called);
    trli_transfers_free(&first);
    if (err != TRL_OK) trli_outlook_free(outlook);
    return err;
}

int64_t trli_outlook_bytes(const trli_placement *p, const trli_outlook *o)
{
    const trl_policy_handle *handle = p->graph->handles.data;
    const trli_transfer *transfer = o->transfers.list.data;
    int64_t bytes = 0;
    for (int64_t i = 0; i < o->transfers.list.count; ++i) bytes += (int64_t)handle[transfer[i].handle].bytes;
    return bytes;
}

void trli_outlook_free(trli_outlook *outlook)
{
    trli_free(outlook->chain);
    trli_free(outlook->region);
    trli_transfers_free(&outlook->transfers);
    trli_prediction_free(&outlook->prediction);
    *outlook = (trli_outlook){0};
}
