/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The value that each access needs or makes. */
#include "placement_values_impl.h"

/* State of a handle between two accesses. */
typedef struct handle_state {
    int32_t value, before; /* its value, and the one before it */
    int32_t mode;          /* of the last access */
} handle_state;

static int32_t new_value(trli_values *values, handle_state *state, int32_t handle)
{
    state->before = state->value;
    state->value = values->count++;
    values->handle[state->value] = handle;
    return state->value;
}

static void see_access(trli_values *values, handle_state *state, const trl_policy_access *access, int32_t at)
{
    const bool shared = access->mode == TRL_WRITE_PART || access->mode == TRL_ADD;
    const bool joins = shared && state->mode == access->mode;
    values->makes[at] = -1;
    values->needs[at] = access->mode == TRL_WRITE ? -1 : joins ? state->before : state->value;
    if (access->mode != TRL_READ) values->makes[at] = joins ? state->value : new_value(values, state, access->handle);
    state->mode = access->mode;
}

static void list_writers(const trli_place_graph *graph, trli_values *values)
{
    int32_t *first = values->writer_first;
    const int32_t accesses = graph->access_first[graph->tasks];
    for (int32_t a = 0; a < accesses; ++a)
        if (values->makes[a] >= 0) ++first[values->makes[a]];
    for (int32_t v = 0; v < values->count; ++v) first[v + 1] += first[v];
    /* From the last access to the first: first[v] moves from the end of v's writers to their start. */
    for (int32_t t = graph->tasks - 1; t >= 0; --t) {
        for (int32_t a = graph->access_first[t + 1] - 1; a >= graph->access_first[t]; --a)
            if (values->makes[a] >= 0) values->writer[--first[values->makes[a]]] = t;
    }
}

trl_err trli_values_find(trl_context *ctx, const trli_place_graph *graph, trli_values *values)
{
    const int32_t accesses = graph->access_first[graph->tasks];
    const size_t most = (size_t)accesses + (size_t)graph->handles;
    handle_state *state = trli_new(ctx, (size_t)graph->handles, sizeof *state);
    *values = (trli_values){.count = graph->handles,
                            .needs = trli_new(ctx, (size_t)accesses, sizeof *values->needs),
                            .makes = trli_new(ctx, (size_t)accesses, sizeof *values->makes),
                            .handle = trli_new(ctx, most, sizeof *values->handle),
                            .last = trli_new(ctx, (size_t)graph->handles, sizeof *values->last),
                            .writer_first = trli_new(ctx, most + 1, sizeof *values->writer_first),
                            .writer = trli_new(ctx, (size_t)accesses, sizeof *values->writer)};
    if (!state || !values->needs || !values->makes || !values->handle || !values->last || !values->writer_first ||
        !values->writer) {
        trli_values_free(values);
        trli_free(state);
        return trli_no_memory(ctx, NULL, "for the values of a graph of %d tasks", graph->tasks);
    }
    for (int32_t h = 0; h < graph->handles; ++h) {
        state[h] = (handle_state){.value = h, .before = h, .mode = TRL_READ};
        values->handle[h] = h;
    }
    for (int32_t a = 0; a < accesses; ++a) see_access(values, &state[graph->access[a].handle], &graph->access[a], a);
    list_writers(graph, values);
    for (int32_t h = 0; h < graph->handles; ++h) values->last[h] = state[h].value;
    trli_free(state);
    return TRL_OK;
}

void trli_values_free(trli_values *values)
{
    trli_free(values->needs);
    trli_free(values->makes);
    trli_free(values->handle);
    trli_free(values->last);
    trli_free(values->writer_first);
    trli_free(values->writer);
    *values = (trli_values){0};
}
