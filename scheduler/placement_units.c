/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Which tasks need a common executor, and what memory they need there. */
#include <stdlib.h>
#include <string.h>

#include "placement_assign_impl.h"

/* ---- units ---- */

static int32_t root_of(int32_t *unit, int32_t task)
{
    for (; unit[task] != task; task = unit[task]) unit[task] = unit[unit[task]];
    return task;
}

/* The least task of a unit is its root. */
static void join(int32_t *unit, int32_t task, int32_t other)
{
    const int32_t a = root_of(unit, task), b = root_of(unit, other);
    if (a < b) {
        unit[b] = a;
    } else {
        unit[a] = b;
    }
}

static void join_writers(const trli_place_graph *graph, const trli_values *v, int32_t *unit)
{
    for (int32_t t = 0; t < graph->tasks; ++t) unit[t] = t;
    for (int32_t i = 0; i < v->count; ++i) {
        if (graph->handle[v->handle[i]].bytes == 0) continue; /* the value has no bytes: it only orders tasks */
        for (int32_t k = v->writer_first[i] + 1; k < v->writer_first[i + 1]; ++k)
            join(unit, v->writer[k - 1], v->writer[k]);
    }
}

trl_err trli_units_find(trl_context *ctx, const trli_place_graph *graph, int32_t *unit)
{
    trl_err err;
    trli_values values;
    TRL_TRY(trli_values_find(ctx, graph, &values));
    join_writers(graph, &values, unit);
    for (int32_t t = 0; t < graph->tasks; ++t) unit[t] = root_of(unit, t);
    trli_values_free(&values);
done:
    return err;
}

static uint16_t eligible_of(const trli_assignment *a, int32_t task)
{
    return (uint16_t)(a->graph->eligible[task] & ((1u << a->machine->executors) - 1));
}

/* Number the units by their least tasks. If no executor may run all tasks of a unit, each of them is a unit of its
 * own: eligibility is never overridden. may: by root, the executors that may run all. */
static void number_units(trli_assignment *a, const uint16_t *may, int32_t *number)
{
    for (int32_t t = 0; t < a->graph->tasks; ++t) {
        const int32_t root = root_of(a->unit, t);
        const bool whole = may[root] != 0;
        number[t] = whole && root < t ? number[root] : a->units++;
        a->may[number[t]] = whole ? may[root] : eligible_of(a, t);
    }
    memcpy(a->unit, number, (size_t)a->graph->tasks * sizeof *number);
}

static void list_units(trli_assignment *a)
{
    for (int32_t t = 0; t < a->graph->tasks; ++t) ++a->unit_first[a->unit[t]];
    for (int32_t u = 0; u < a->units; ++u) a->unit_first[u + 1] += a->unit_first[u];
    for (int32_t t = a->graph->tasks - 1; t >= 0; --t) a->unit_task[--a->unit_first[a->unit[t]]] = t;
}

static trl_err find_units(trli_assignment *a)
{
    trl_err err = TRL_OK;
    const size_t tasks = (size_t)a->graph->tasks;
    trli_scratch scratch = {.ctx = a->ctx};
    uint16_t *may = trli_scratch_new(&scratch, tasks, sizeof *may);
    int32_t *number = trli_scratch_new(&scratch, tasks, sizeof *number);
    if (scratch.failed) {
        err = trli_no_memory(a->ctx, NULL, "to assign %d tasks", a->graph->tasks);
        goto done;
    }
    join_writers(a->graph, a->values, a->unit);
    for (int32_t t = 0; t < a->graph->tasks; ++t) may[t] = eligible_of(a, t);
    for (int32_t t = 0; t < a->graph->tasks; ++t) may[root_of(a->unit, t)] &= eligible_of(a, t);
    number_units(a, may, number);
    list_units(a);
done:
    trli_scratch_free(&scratch);
    return err;
}

/* ---- memory ---- */

/* Bytes that the executor needs for a unit beyond what it already holds; take: count them as taken. */
static size_t more_bytes(trli_assignment *a, int32_t unit, int executor, bool take)
{
    const int32_t search = ++a->search, *first = a->graph->access_first;
    size_t bytes = 0;
    for (int32_t i = a->unit_first[unit]; i < a->unit_first[unit + 1]; ++i) {
        const int32_t t = a->unit_task[i];
        for (int32_t k = first[t]; k < first[t + 1]; ++k) {
            const int32_t b = a->values->block[a->graph->access[k].handle];
            if (a->seen[b] == search || a->held[b] >> executor & 1) continue;
            a->seen[b] = search;
            bytes += a->block_bytes[b];
            if (take) a->held[b] |= (uint16_t)(1u << executor);
        }
    }
    return bytes;
}

static void forget_memory(trli_assignment *a)
{
    memset(a->held, 0, (size_t)a->values->blocks * sizeof *a->held);
    memset(a->used, 0, sizeof a->used);
}

bool trli_unit_fits(trli_assignment *a, int32_t unit, int executor)
{
    const size_t most = a->machine->bytes[executor];
    if (!(a->may[unit] >> executor & 1)) return false;
    if (most == 0) return true;
    const size_t more = more_bytes(a, unit, executor, false);
    return a->used[executor] <= most && more <= most - a->used[executor];
}

void trli_unit_place(trli_assignment *a, int32_t unit, int executor)
{
    if (a->machine->bytes[executor]) a->used[executor] += more_bytes(a, unit, executor, true);
    for (int32_t i = a->unit_first[unit]; i < a->unit_first[unit + 1]; ++i)
        a->executor[a->unit_task[i]] = (uint8_t)executor;
}

bool trli_unit_place_near(trli_assignment *a, int32_t unit, int executor)
{
    int e = executor;
    if (!trli_unit_fits(a, unit, e)) {
        for (e = 0; e < a->machine->executors && !trli_unit_fits(a, unit, e);) ++e;
    }
    if (e == a->machine->executors) return false;
    trli_unit_place(a, unit, e);
    return true;
}

bool trli_assignment_fits(trli_assignment *a)
{
    forget_memory(a);
    for (int32_t u = 0; u < a->units; ++u) {
        const int e = a->executor[a->unit_task[a->unit_first[u]]];
        if (!trli_unit_fits(a, u, e)) return false;
        trli_unit_place(a, u, e);
    }
    return true;
}

/* ---- life ---- */

void trli_assignment_clear(trli_assignment *a)
{
    memset(a->executor, TRLI_UNPLACED, (size_t)a->graph->tasks);
    forget_memory(a);
    for (int32_t u = 0; u < a->units; ++u) {
        for (int e = 0; e < a->machine->executors; ++e)
            if (a->may[u] == 1u << e && a->machine->bytes[e]) a->used[e] += more_bytes(a, u, e, true);
    }
}

trl_err trli_assignment_begin(trli_assignment *a)
{
    trl_err err;
    const size_t tasks = (size_t)a->graph->tasks, blocks = (size_t)a->values->blocks;
    trli_scratch *s = &a->scratch;
    *s = (trli_scratch){.ctx = a->ctx};
    a->unit = trli_scratch_new(s, tasks, sizeof *a->unit);
    a->unit_first = trli_scratch_new(s, tasks + 1, sizeof *a->unit_first);
    a->unit_task = trli_scratch_new(s, tasks, sizeof *a->unit_task);
    a->may = trli_scratch_new(s, tasks, sizeof *a->may);
    a->block_bytes = trli_scratch_new(s, blocks, sizeof *a->block_bytes);
    a->held = trli_scratch_new(s, blocks, sizeof *a->held);
    a->seen = trli_scratch_new(s, blocks, sizeof *a->seen);
    a->executor = trli_scratch_new(s, tasks, sizeof *a->executor);
    if (s->failed) {
        err = trli_no_memory(a->ctx, NULL, "to assign %d tasks", a->graph->tasks);
        goto done;
    }
    TRL_TRY(find_units(a));
    for (int32_t h = 0; h < a->graph->handles; ++h) a->block_bytes[a->values->block[h]] += a->graph->handle[h].bytes;
    trli_assignment_clear(a);
done:
    if (err) trli_assignment_end(a);
    return err;
}

void trli_assignment_end(trli_assignment *a)
{
    trli_scratch_free(&a->scratch);
}
