/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Paths of tasks for devices. */
#include "placement_values_impl.h"

/* Chains under construction. The first and the last task of a chain know each other. */
typedef struct chains {
    int32_t *next, *before; /* [tasks] in the chain; -1: none */
    int32_t *other_end;     /* [tasks] for a first task the last one, and the reverse */
    uint16_t *devices;      /* [tasks] for a first task: the devices that may run all of its chain */
} chains;

static unsigned devices_of(const trli_place_graph *graph, int32_t task)
{
    return graph->eligible[task] & ~1u;
}

/* Every task is a chain of its own at first. Two chains become one where an edge leads from the last task of one to
 * the first task of the other and some device may run all of their tasks. So a task whose only successor has no
 * other predecessor always shares its chain, and no chain is empty. */
static void follow_edge(chains *c, int32_t from, int32_t to)
{
    if (c->next[from] >= 0 || c->before[to] >= 0) return;
    const int32_t first = c->other_end[from], last = c->other_end[to];
    if (!(c->devices[first] & c->devices[to])) return;
    c->devices[first] &= c->devices[to];
    c->next[from] = to;
    c->before[to] = from;
    c->other_end[first] = last;
    c->other_end[last] = first;
}

static void number(const chains *c, const trli_place_graph *graph, int32_t *chain, int32_t *count)
{
    for (int32_t i = 0; i < graph->tasks; ++i) {
        const int32_t first = graph->order[i];
        if (!devices_of(graph, first)) {
            chain[first] = -1;
        } else if (c->before[first] < 0) {
            for (int32_t t = first; t >= 0; t = c->next[t]) chain[t] = *count;
            ++*count;
        }
    }
}

trl_err trli_chains(trl_context *ctx, const trli_place_graph *graph, int32_t *chain, int32_t *count)
{
    trl_err err = TRL_OK;
    const size_t tasks = (size_t)graph->tasks;
    trli_scratch scratch = {.ctx = ctx};
    chains c = {.next = trli_scratch_new(&scratch, tasks, sizeof *c.next),
                .before = trli_scratch_new(&scratch, tasks, sizeof *c.before),
                .other_end = trli_scratch_new(&scratch, tasks, sizeof *c.other_end),
                .devices = trli_scratch_new(&scratch, tasks, sizeof *c.devices)};
    *count = 0;
    if (scratch.failed) {
        err = trli_no_memory(ctx, NULL, "for the chains of a graph of %d tasks", graph->tasks);
        goto done;
    }
    for (int32_t t = 0; t < graph->tasks; ++t) {
        c.next[t] = c.before[t] = -1;
        c.other_end[t] = t;
        c.devices[t] = (uint16_t)devices_of(graph, t);
    }
    for (int32_t i = 0; i < graph->tasks; ++i) {
        const int32_t t = graph->order[i];
        for (int32_t k = graph->first[t]; k < graph->first[t + 1]; ++k) follow_edge(&c, t, graph->successors[k]);
    }
    number(&c, graph, chain, count);
done:
    trli_scratch_free(&scratch);
    return err;
}
