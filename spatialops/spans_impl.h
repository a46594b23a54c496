/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Sweeps over the owned points of this rank's patches, in pieces of rows, by all workers of a loop. */
#ifndef TRLI_SPANS_IMPL_H
#define TRLI_SPANS_IMPL_H

#include <trl_field.h>
#include <trl_loop.h>

enum {
    TRLI_SPAN_POINTS = 1024, /* at most, per span */
    TRLI_SPAN_CHUNKS = 64    /* at most, per sweep */
};

/* n owned points of local patch `patch` along x, from (i, j, k) on. */
typedef struct trli_span {
    int patch;
    trl_lidx i, j, k, n;
} trli_span;

/* Called for every span once; spans of one chunk by one worker, in order. */
typedef trl_err (*trli_span_fn)(void *data, const trli_span *span, int chunk);

/* Chunks of a sweep, 1 to TRLI_SPAN_CHUNKS. */
int trli_span_chunks(const trl_loop *loop, const trl_layout *layout, trl_location location);
trl_err trli_span_sweep(trl_loop *loop, const trl_layout *layout, trl_location location, trli_span_fn fn, void *data);
/* USAGE unless the owned points of a field are valid on all local patches. */
trl_err trli_span_require(const trl_field *field);

#endif
