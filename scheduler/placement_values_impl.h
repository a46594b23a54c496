/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Values: what tasks make and need of each other, wherever they run. */
#ifndef TRLI_PLACEMENT_VALUES_IMPL_H
#define TRLI_PLACEMENT_VALUES_IMPL_H

#include "placement_impl.h"

/* A value is the content of a handle between two writes. The values below `handles` are there when a run begins:
 * value h is the first of handle h. A group, tasks that write parts or add without another access between them,
 * makes one value. Who writes some data needs nothing of what other data left in the same memory: that may lie
 * elsewhere in it, and a copy would overwrite what is still read there. */
typedef struct trli_values {
    int32_t count;
    int32_t *needs, *makes; /* [accesses] the value that an access needs or makes, or -1; those of a group agree */
    int32_t *handle;        /* [values] */
    int32_t *last;          /* [handles] the value when a run ends */
    int32_t *writer_first, *writer; /* the tasks that make v: writer[writer_first[v]..writer_first[v + 1]) */
    int32_t blocks;
    int32_t *block; /* [handles] number of the block, 0 <= number < blocks */
} trli_values;

TRL_NODISCARD trl_err trli_values_find(trl_context *ctx, const trli_place_graph *graph, trli_values *values);
void trli_values_free(trli_values *values);

/* As trli_transfers_find, with values that were found before. */
TRL_NODISCARD trl_err trli_transfers_of(trl_context *ctx, const trli_place_graph *graph, const trli_platform *machine,
                                        const trli_values *values, const uint8_t *executor, trli_transfers *transfers);

/* Temporary memory of one call, freed at its end. */
typedef struct trli_scratch {
    trl_context *ctx;
    void *piece[24];
    int count;
    bool failed; /* an allocation failed */
} trli_scratch;

/* As trli_new. */
static inline void *trli_scratch_new(trli_scratch *scratch, size_t count, size_t size)
{
    void *piece = trli_new(scratch->ctx, count, size);
    scratch->failed = scratch->failed || !piece;
    return scratch->piece[scratch->count++] = piece;
}

static inline void trli_scratch_free(trli_scratch *scratch)
{
    while (scratch->count > 0) trli_free(scratch->piece[--scratch->count]);
}

/* Seconds for a copy of a handle's data. */
static inline double trli_copy_seconds(const trli_place_graph *graph, const trli_platform *machine, int32_t handle,
                                       int from, int to)
{
    const trli_route *link = &machine->link[from][to];
    const double pieces = graph->pieces ? graph->pieces[handle] : 1;
    return link->latency * pieces + (link->rate > 0.0 ? (double)graph->handle[handle].bytes / link->rate : 0.0);
}

/* The first of the spaces, a bit each, from which a copy to `to` takes least; `to` if it is one of them. */
int trli_cheapest_source(const trli_place_graph *graph, const trli_platform *machine, int32_t handle, unsigned spaces,
                         int to);

static inline unsigned trli_first_spaces(const trli_place_graph *graph, int32_t handle)
{
    return graph->valid ? graph->valid[handle] : 1u;
}

#endif
