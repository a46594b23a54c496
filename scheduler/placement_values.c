/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The value that each access needs or makes. */
#include <stdlib.h>

#include "placement_values_impl.h"

/* State of a handle between two accesses. */
typedef struct handle_state {
    int32_t value;  /* its value */
    int32_t before; /* the one that those need who change it together, or -1 */
    int32_t mode;   /* of the last access; -1: there was none */
    int32_t part;   /* of the value */
} handle_state;

/* State of a block: whose data is there when a run begins is whose data is accessed first. */
typedef struct block_state {
    bool accessed;
    int32_t part; /* of the first access */
} block_state;

static int32_t new_value(trli_values *values, handle_state *state, int32_t handle)
{
    state->value = values->count++;
    values->handle[state->value] = handle;
    return state->value;
}

static void see_access(trli_values *values, handle_state *state, block_state *block, const trl_policy_access *access,
                       int32_t at)
{
    if (!block->accessed) *block = (block_state){true, access->part};
    if (state->mode < 0) state->part = block->part;
    const bool shared = access->mode == TRL_WRITE_PART || access->mode == TRL_ADD;
    const bool joins = shared && state->mode == access->mode && state->part == access->part;
    const bool foreign = access->mode != TRL_READ && state->part != access->part;
    if (!joins) state->before = access->mode == TRL_WRITE || foreign ? -1 : state->value;
    values->needs[at] = state->before;
    values->makes[at] = -1;
    if (access->mode != TRL_READ) {
        values->makes[at] = joins ? state->value : new_value(values, state, access->handle);
        state->part = access->part;
    }
    state->mode = access->mode;
}

typedef struct piece {
    int64_t block;
    int32_t handle;
} piece;

static int compare_pieces(const void *x, const void *y)
{
    const piece *a = x, *b = y;
    if (a->block != b->block) return a->block < b->block ? -1 : 1;
    return (a->handle > b->handle) - (a->handle < b->handle);
}

static trl_err number_blocks(trl_context *ctx, const trli_place_graph *graph, trli_values *values)
{
    const int32_t handles = graph->handles;
    piece *pieces = trli_new(ctx, (size_t)handles, sizeof *pieces);
    if (!pieces) return trli_no_memory(ctx, NULL, "for %d data handles", handles);
    for (int32_t h = 0; h < handles; ++h) pieces[h] = (piece){graph->handle[h].block, h};
    qsort(pieces, (size_t)handles, sizeof *pieces, compare_pieces);
    for (int32_t i = 0; i < handles; ++i) {
        if (i == 0 || pieces[i].block != pieces[i - 1].block) ++values->blocks;
        values->block[pieces[i].handle] = values->blocks - 1;
    }
    trli_free(pieces);
    return TRL_OK;
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
            if (values->makes[a] >= 0) values->writer[--first[values->makes[a]]] = graph->ends ? graph->ends[t] : t;
    }
}

trl_err trli_values_find(trl_context *ctx, const trli_place_graph *graph, trli_values *values)
{
    const int32_t accesses = graph->access_first[graph->tasks];
    const size_t most = (size_t)accesses + (size_t)graph->handles;
    handle_state *state = trli_new(ctx, (size_t)graph->handles, sizeof *state);
    block_state *block = trli_new(ctx, (size_t)graph->handles, sizeof *block);
    trl_err err = TRL_OK;
    *values = (trli_values){.count = graph->handles,
                            .needs = trli_new(ctx, (size_t)accesses, sizeof *values->needs),
                            .makes = trli_new(ctx, (size_t)accesses, sizeof *values->makes),
                            .handle = trli_new(ctx, most, sizeof *values->handle),
                            .last = trli_new(ctx, (size_t)graph->handles, sizeof *values->last),
                            .writer_first = trli_new(ctx, most + 1, sizeof *values->writer_first),
                            .writer = trli_new(ctx, (size_t)accesses, sizeof *values->writer),
                            .block = trli_new(ctx, (size_t)graph->handles, sizeof *values->block)};
    if (!state || !block || !values->needs || !values->makes || !values->handle || !values->last ||
        !values->writer_first || !values->writer || !values->block) {
        err = trli_no_memory(ctx, NULL, "for the values of a graph of %d tasks", graph->tasks);
        goto done;
    }
    TRL_TRY(number_blocks(ctx, graph, values));
    for (int32_t h = 0; h < graph->handles; ++h) {
        state[h] = (handle_state){.value = h, .before = h, .mode = -1};
        values->handle[h] = h;
    }
    for (int32_t a = 0; a < accesses; ++a) {
        const int32_t h = graph->access[a].handle;
        see_access(values, &state[h], &block[values->block[h]], &graph->access[a], a);
    }
    list_writers(graph, values);
    for (int32_t h = 0; h < graph->handles; ++h) values->last[h] = state[h].value;
done:
    trli_free(state);
    trli_free(block);
    if (err) trli_values_free(values);
    return err;
}

void trli_values_free(trli_values *values)
{
    trli_free(values->needs);
    trli_free(values->makes);
    trli_free(values->handle);
    trli_free(values->last);
    trli_free(values->writer_first);
    trli_free(values->writer);
    trli_free(values->block);
    *values = (trli_values){0};
}
