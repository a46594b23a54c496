/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Where fields live: in the host's memory, or in a device's. What is computed there is a statement, whose kernel
 * expressions/run/field_device.c makes as those of formulas are made. */
#ifndef TRLI_RESIDENCE_IMPL_H
#define TRLI_RESIDENCE_IMPL_H

#include <executor_impl.h>
#include <trl_boundary.h>
#include <trl_field_manager.h>
#include <trl_reduction.h>

#include "reduction_impl.h"

typedef enum trli_statement_kind {
    TRLI_STATEMENT_OPERATOR, /* of its inputs */
    TRLI_STATEMENT_PASS,     /* of input 0 */
    TRLI_STATEMENT_FLUX,     /* of the velocity and the advected value */
    TRLI_STATEMENT_TERM      /* of a reduction: of input 0 where input 1, if there is one, is not zero */
} trli_statement_kind;

enum { TRLI_STATEMENT_INPUTS = 32 };

/* What a device computes of a box of a patch. */
typedef struct trli_statement {
    trli_statement_kind kind;
    const char *label; /* for messages */
    union {
        const trl_operator *op;
        const trl_pass *pass;
        struct {
            int limiter, axis;
            trl_location phi;
        } flux;
        struct {
            trl_reduction kind;
            trli_merge merge;
            bool weighted; /* points on sides of the domain count less */
            trl_location location;
        } term; /* merged into the device's share; without an output */
    };
    const trl_layout *layout;
    int patch; /* local */
    trl_box box;
    int ninputs;
    trl_array input[TRLI_STATEMENT_INPUTS], output; /* in the device's memory */
} trli_statement;

/* Functions that return trl_err fail with DEVICE or MEMORY. Thread: main. */
typedef struct trli_field_device_ops {
    /* REQUIRED. Enqueue a statement. *done = false: there is no kernel for it, and nothing was enqueued. */
    trl_err (*compute)(trl_field_device *device, const trli_statement *statement, bool *done);
    /* REQUIRED. Empty the share that terms are merged into; wait for what was merged. */
    trl_err (*clear_share)(trl_field_device *device, trli_merge merge);
    trl_err (*fetch_share)(trl_field_device *device, trli_partial *partial);
    /* REQUIRED. Memory for values between statements, which what is enqueued later may overwrite. */
    trl_err (*scratch)(trl_field_device *device, int which, size_t bytes, void **memory);
} trli_field_device_ops;
enum { TRLI_FIELD_SCRATCHES = 2 };

/* The first member of what implements it. */
struct trl_field_device {
    const trli_field_device_ops *ops;
    trl_context *ctx;
    trl_field_manager *manager;
    trl_device *device;
    int space;  /* of the manager */
    int fields; /* that live there */
    int64_t bytes_in, bytes_out;
};

typedef struct trli_residence {
    void *there;            /* memory of the device; NULL: none yet */
    bool is_here, is_there; /* where values are current */
} trli_residence;

/* USAGE unless all fields live in one place. */
TRL_NODISCARD trl_err trli_field_together(const trl_field *out, int n, trl_field *const *in);
/* Have the host's arrays of all patches, before workers ask for them. changes: they will write. */
TRL_NODISCARD trl_err trli_field_bring(trl_field *field, bool changes);
/* The array on local patch p in the memory of the device where the field lives. copied: with current values. */
TRL_NODISCARD trl_err trli_field_there(trl_field *field, int p, bool copied, trl_array *array);
/* The device has changed the array: the host has no current values any more. */
void trli_field_changed_there(trl_field *field, int p);

/* ---- reduction_device.c ---- */

/* What the terms of a field, all or those in a mask, merge into on this rank. *done = false: the host has to. */
TRL_NODISCARD trl_err trli_reduce_there(trl_field *field, trl_reduction kind, trli_merge merge, bool weighted,
                                        const trl_mask *mask, trli_partial *partial, bool *done);
/* Eight times the sum of the weights of this rank's points. */
int64_t trli_weights_eighths(const trl_layout *layout, trl_location location, bool weighted, const trl_mask *mask);

#endif
