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
    TRLI_STATEMENT_COMBINE,  /* the sum of inputs times numbers */
    TRLI_STATEMENT_ASSIGN,   /* where input 0 is not zero: input 2, or the number; else input 1 */
    TRLI_STATEMENT_LAYER,    /* ghosts, or points on a side, of input 0 */
    TRLI_STATEMENT_TERM      /* of a reduction: of input 0 where input 1, if there is one, is not zero */
} trli_statement_kind;

enum { TRLI_STATEMENT_INPUTS = 32, TRLI_STATEMENT_NUMBERS = 24 };

/* A piece of a condition, for one layer. */
typedef struct trli_ghost_piece {
    trl_bc_kind kind;
    bool keeps;    /* the value stays as it is */
    bool ratio;    /* the value is c / a: robin at b = 0 */
    int where;     /* input that says where the piece holds; -1: everywhere */
    int value[3];  /* inputs a, b, c; -1: numbers, of which each piece has three */
    double factor; /* of the value */
    /* Where the layer is the one that an operator is solved for: the operator's only pass, how far the point of its
     * result is from the ghost, and the ghost's weight. NULL: another layer. */
    const trl_pass *pass;
    int to_result;
    double weight;
} trli_ghost_piece;
enum { TRLI_GHOST_PIECES = TRLI_STATEMENT_NUMBERS / 3 };

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
            int axis, side, m; /* m 0: the points on the side */
            bool on_side;      /* the location has points there */
            double spacing;
            int npieces;
            const trli_ghost_piece *piece;
        } layer;
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
    int nnumbers;
    double number[TRLI_STATEMENT_NUMBERS];
    trl_array input[TRLI_STATEMENT_INPUTS], output; /* in the device's memory */
} trli_statement;

/* A box of values that is copied within the memory of devices. */
typedef struct trli_piece_copy {
    double *from, *to;
    ptrdiff_t from_stride[3], to_stride[3];
    trl_lidx extent[3];
} trli_piece_copy;
enum { TRLI_FIELD_PIECES = 32 };

/* Functions that return trl_err fail with DEVICE or MEMORY. Thread: main. */
typedef struct trli_field_device_ops {
    /* REQUIRED. Enqueue a statement. *done = false: there is no kernel for it, and nothing was enqueued. */
    trl_err (*compute)(trl_field_device *device, const trli_statement *statement, bool *done);
    /* REQUIRED. Empty the share that terms are merged into; wait for what was merged. */
    trl_err (*clear_share)(trl_field_device *device, trli_merge merge);
    trl_err (*fetch_share)(trl_field_device *device, trli_partial *partial);
    /* REQUIRED. Enqueue copies of n <= TRLI_FIELD_PIECES pieces, none of which overlaps another one's target. */
    trl_err (*copy_pieces)(trl_field_device *device, int n, const trli_piece_copy *piece);
    /* REQUIRED. Wait until all that was enqueued is done. */
    trl_err (*finish)(trl_field_device *device);
    /* REQUIRED. Memory for values between statements, which what is enqueued later may overwrite. */
    trl_err (*scratch)(trl_field_device *device, int which, size_t bytes, void **memory);
} trli_field_device_ops;
enum { TRLI_FIELD_PASSES = 2, TRLI_FIELD_SIDES, TRLI_FIELD_SCRATCHES = TRLI_FIELD_SIDES + 1 };

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

/* ---- residence_exchange.c ---- */

typedef struct trli_rooms trli_rooms; /* exchange_impl.h */
/* Ghosts of a field that lives on a device on all ranks. Collective: yes. */
TRL_NODISCARD trl_err trli_exchange_there(trl_field *field, trl_exchange *exchange);
/* Before the first: room for messages in the device's memory. *rooms: NULL with one rank. Collective: yes. */
TRL_NODISCARD trl_err trli_rooms_there(trl_field *field, trl_exchange *exchange, trli_rooms **rooms);

/* ---- mask_device.c ---- */

/* dst = src, or the number without src, at the owned points in a mask. *done = false: the host has to. */
TRL_NODISCARD trl_err trli_assign_there(const trl_mask *mask, trl_field *src, double number, trl_field *dst,
                                        bool *done);

/* ---- reduction_device.c ---- */

/* What the terms of a field, all or those in a mask, merge into on this rank. *done = false: the host has to. */
TRL_NODISCARD trl_err trli_reduce_there(trl_field *field, trl_reduction kind, trli_merge merge, bool weighted,
                                        const trl_mask *mask, trli_partial *partial, bool *done);
/* Eight times the sum of the weights of this rank's points. */
int64_t trli_weights_eighths(const trl_layout *layout, trl_location location, bool weighted, const trl_mask *mask);

#endif
