/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Inside of a field, and how work on its patches is cut into chunks. */
#ifndef TRLI_FIELD_IMPL_H
#define TRLI_FIELD_IMPL_H

#include <trl_field.h>
#include <trl_field_manager.h>

#include "spatialops_impl.h"

/* A box to compute on a patch, and its chunks. */
typedef struct trli_work {
    trl_box box;
    int parts[3]; /* along each axis */
    int first;    /* chunk, counted over all patches */
} trli_work;

struct trl_field {
    trl_context *ctx;
    const trl_layout *layout;
    char *name;
    trl_location location;
    trl_lidx ghost_lo[3], ghost_hi[3];
    trl_array *array;  /* [local patch], as the next ones. at: NULL until the first use */
    trl_block **block; /* its memory */
    trl_box *valid;
    trli_work *work;        /* of the operator that computes the field */
    int chunks, workers;    /* of all work, cut for so many workers; workers 0: not cut */
    trl_exchange *exchange; /* NULL until the first */
};

#endif
