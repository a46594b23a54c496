/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Inside of a field, and how work on its patches is cut into chunks. */
#ifndef TRLI_FIELD_IMPL_H
#define TRLI_FIELD_IMPL_H

#include <stdalign.h>

#include <trl_field.h>
#include <trl_field_manager.h>
#include <trl_operator.h>

#include "residence_impl.h"
#include "spatialops_impl.h"

/* A box to compute on a patch, and its chunks: some planes for the caller, if it takes more than the others, and the
 * parts of the rest. */
typedef struct trli_field_work {
    trl_box box;
    trl_lidx ahead; /* planes of the caller */
    int parts[3];   /* along each axis */
    int first;      /* chunk, counted over all patches */
} trli_field_work;

/* What computes a field from others, as its chunks see it: one line of memory. */
typedef struct trli_application trli_application;
struct trli_application {
    alignas(64) const trl_operator *op; /* of a flux: what it reads */
    trl_field *in[3], *out;
    void (*run)(const trli_application *a, const trl_array *in, const trl_array *out, const trl_box *box);
    int ninputs;
    int limiter, axis; /* of a flux */
    int streaming;     /* with streaming stores */
};

struct trl_field {
    trli_application application; /* the last one; written only if the next one differs, for workers read it */
    trl_operator flux_reads;      /* what a flux into this field reads: the application's operator then */
    trl_context *ctx;
    trl_field_manager *manager;
    const trl_layout *layout;
    char *name;
    trl_location location;
    trl_lidx ghost_lo[3], ghost_hi[3];
    trl_array *array;  /* [local patch], as the next ones. at: NULL until the first use */
    trl_block **block; /* its memory */
    trl_box *valid;
    trli_residence *residence;
    trl_field_device *device; /* where it lives; NULL: on the host */
    trli_cache_line line;     /* at which long rows begin */
    trli_field_work *work;    /* of the operator that computes the field */
    int chunks, workers;      /* of all work, cut for so many workers; workers 0: not cut */
    int values;               /* read for a point by the operator that it is cut for */
    trl_exchange *exchange;   /* NULL until the first */
    /* Of a field that lives on a device on all ranks; NULL until the first. */
    trl_exchange *exchange_there;
    trli_rooms *rooms;
    const trl_field_device *rooms_of;
};

/* USAGE unless the owned points of all patches are valid. */
TRL_NODISCARD trl_err trli_field_require_owned(const trl_field *field);

#endif
