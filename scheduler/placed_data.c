/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* What the runs of a placed graph do with data as a whole: where it needs memory, and where it is overwritten. */
#include "placed_calls_impl.h"

static const char what[] = "placed graph";

static trl_err add_provision(trli_placed *p, uint16_t *spaces, int32_t handle, int space)
{
    trl_err err = TRL_OK;
    if (spaces[handle] & 1u << space) return TRL_OK;
    spaces[handle] |= (uint16_t)(1u << space);
    TRL_TRY(trli_list_reserve(p->logical->ctx, &p->provisions, 1, sizeof(trli_provision), what));
    ((trli_provision *)p->provisions.data)[p->provisions.count++] = (trli_provision){handle, space};
done:
    return err;
}

/* The memory of data that devices use, and of data of the host that each run copies. Memory is provided once for each
 * block, whichever parts are used. */
static trl_err find_provisions(trli_placed *p)
{
    const trl_graph *graph = p->logical;
    const int32_t *first = trli_shown_accesses(graph);
    const trli_transfer *transfer = p->transfers.list.data;
    trl_err err = TRL_OK;
    uint16_t *spaces = trli_new(graph->ctx, (size_t)graph->handles.count + 1, sizeof *spaces);
    if (!spaces) return trli_no_memory(graph->ctx, NULL, "for a placed graph");
    for (int32_t t = 0; t < graph->task_count; ++t)
        for (int32_t a = first[t]; a < first[t + 1] && p->executor[t] > 0; ++a)
            TRL_TRY(add_provision(p, spaces, graph->access[a].handle, p->executor[t]));
    for (int64_t i = 0; i < p->transfers.list.count; ++i) {
        if (transfer[i].from == 0 || transfer[i].to == 0) TRL_TRY(add_provision(p, spaces, transfer[i].handle, 0));
        if (transfer[i].to > 0) TRL_TRY(add_provision(p, spaces, transfer[i].handle, transfer[i].to)); /* of a call */
    }
done:
    trli_free(spaces);
    return err;
}

/* Of a task, a bit each. */
static uint16_t may_write(const trli_placed *p, int32_t task)
{
    const trli_task_record *record = &trli_graph_records(p->logical)[task];
    if (!(record->flags & TRLI_TASK_CALL)) return (uint16_t)(1u << p->executor[task]);
    const int64_t call = (const trli_call *)record->data - trli_graph_calls(p->logical);
    return p->body[call].of ? (uint16_t)((2u << p->devices->n) - 1) : 1;
}

/* Spaces where tasks write, and to which their results are copied. A call whose body is placed may write anywhere. */
static trl_err find_changed(trli_placed *p)
{
    const trl_graph *graph = p->logical;
    const int32_t *first = trli_shown_accesses(graph);
    const trli_transfer *transfer = p->transfers.list.data;
    p->changed = trli_new(graph->ctx, (size_t)graph->handles.count + 1, sizeof *p->changed);
    if (!p->changed) return trli_no_memory(graph->ctx, NULL, "for a placed graph");
    for (int32_t t = 0; t < graph->task_count; ++t)
        for (int32_t a = first[t]; a < first[t + 1]; ++a)
            if (graph->access[a].mode != TRL_READ) p->changed[graph->access[a].handle] |= may_write(p, t);
    for (int64_t i = 0; i < p->transfers.list.count; ++i)
        if (transfer[i].writer >= 0 || transfer[i].from != TRLI_ANYWHERE)
            p->changed[transfer[i].handle] |= (uint16_t)(1u << transfer[i].to);
    return TRL_OK;
}

/* Of tasks of models, which take their time for data. */
bool trli_placed_is_light(const trli_placed *p)
{
    const size_t little = (size_t)1 << 16; /* bytes, in the time that it takes to wake a worker */
    const trl_graph *graph = p->logical;
    const trl_policy_handle *handle = graph->handles.data;
    size_t bytes = 0;
    for (int32_t t = 0; t < graph->task_count; ++t) {
        const bool works = p->executor[t] == 0 && !(trli_graph_records(graph)[t].flags & TRLI_TASK_CALL);
        for (int32_t a = graph->access_first[t]; a < graph->access_first[t + 1] && works; ++a)
            bytes += handle[graph->access[a].handle].bytes;
    }
    return graph->state && bytes < little;
}

#ifdef TRL_POISON
static trl_err find_parts(trli_placed *p)
{
    const trl_graph *graph = p->logical;
    p->part = trli_new(graph->ctx, (size_t)graph->handles.count + 1, sizeof *p->part);
    if (!p->part) return trli_no_memory(graph->ctx, NULL, "for a placed graph");
    for (int64_t h = 0; h < graph->handles.count; ++h) p->part[h] = -1;
    for (int32_t a = 0; a < trli_shown_accesses(graph)[graph->task_count]; ++a)
        p->part[graph->access[a].handle] = graph->access[a].part;
    return TRL_OK;
}
#endif

trl_err trli_placed_data_find(trli_placed *p)
{
    trl_err err = TRL_OK;
    TRL_TRY(find_provisions(p));
    TRL_TRY(find_changed(p));
#ifdef TRL_POISON
    TRL_TRY(find_parts(p));
#endif
done:
    return err;
}
