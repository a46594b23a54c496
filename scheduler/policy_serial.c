/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* First in, first out, on the caller alone: the reference that every other policy must match. A list by the tasks'
 * links. */
#include <string.h>

#include <trl_policy.h>

typedef struct serial_state {
    const trl_policy_graph *graph;
    int32_t first, last; /* -1: none */
} serial_state;

static trl_err setup(const trl_policy_graph *graph, void **state)
{
    trl_err err = trl_memory_alloc(graph->ctx, sizeof(serial_state), "serial policy", state);
    if (err == TRL_OK) *(serial_state *)*state = (serial_state){graph, -1, -1};
    return err;
}

static void teardown(const trl_policy_graph *graph, void **state)
{
    trl_memory_free(graph->ctx, state);
}

static void ready(void *state, int worker, int32_t task, int urgency)
{
    serial_state *s = state;
    (void)worker, (void)urgency;
    *trl_policy_link(s->graph, task) = -1;
    if (s->first < 0)
        s->first = task;
    else
        *trl_policy_link(s->graph, s->last) = task;
    s->last = task;
}

static int32_t take(void *state, int worker)
{
    serial_state *s = state;
    int32_t task = s->first;
    (void)worker;
    if (task >= 0) s->first = *trl_policy_link(s->graph, task);
    return task;
}

static bool holds(void *state)
{
    return ((serial_state *)state)->first >= 0;
}

static void finish(void *state)
{
    ((serial_state *)state)->first = -1;
}

const trl_policy trli_policy_serial = {
    .size = sizeof(trl_policy),
    .abi = TRL_POLICY_ABI,
    .name = "serial",
    .serial = true,
    .setup = setup,
    .teardown = teardown,
    .ready = ready,
    .take = take,
    .holds = holds,
    .finish = finish,
};
