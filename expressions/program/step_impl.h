/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Steps of a program. */
#ifndef TRLI_STEP_IMPL_H
#define TRLI_STEP_IMPL_H

#include "demand_impl.h"
#include "side_impl.h"
#include "slab_impl.h"

/* A kernel at one of its points. A value that is needed at n offsets is computed n times; one that varies neither along x nor, in more
 * than one dimension, along y is computed outside of the loop over points and counts nothing. */
typedef struct trli_work {
    double flops;         /* + - * / sqrt, comparisons and choices 1 each, functions by a table (cost.c) */
    double additions;     /* the same by the time that they take, with loads and stores */
    int inputs, outputs;  /* fields, 8 bytes each */
    int values, samples;  /* computed values; at all their offsets */
    int call, plane, row; /* of those, once for a call, a plane and a row (or for its points, along x) */
} trli_work;

typedef enum trli_op_kind {
    TRLI_STEP_KERNEL,
    TRLI_STEP_PLUGIN,
    TRLI_STEP_FILL,
    TRLI_STEP_PLANES,
    TRLI_STEP_REDUCE,
    TRLI_STEP_SCALAR
} trli_step_kind;

typedef enum trli_reduce_kind { TRLI_REDUCE_SUM, TRLI_REDUCE_MIN, TRLI_REDUCE_MAX, TRLI_REDUCE_POINT } trli_reduce_kind;

typedef struct trli_step {
    trli_step_kind kind;
    const char *label;
    bool live;
    /* KERNEL: values to fields. REDUCE, SCALAR: one value to a scalar. */
    int nout;
    int *field;
    trli_value *value;
    bool check;    /* KERNEL, PLANES: the outputs must be finite */
    int *variable; /* with check: the variable of each output */
    trli_kernel *kernel;
    bool strains_caches;        /* KERNEL: the fields that it reads and stores do */
    trli_native_fn native;      /* KERNEL: compiled, or NULL: interpreted */
    trli_work work;             /* KERNEL, once analysed */
    struct trli_tuning *tuning; /* of a kernel that may be compiled; NULL: it is not */
    int *input;                 /* fields read, in the kernel's or plugin's order */
    int ninputs;
    /* REDUCE, SCALAR */
    int scalar;
    trli_reduce_kind reduce;
    trl_location location;
    trl_gidx point[3];
    bool weighted;          /* SUM: points on a non-periodic side count half */
    bool inside;            /* leave out points whose inputs lie beyond a side */
    int8_t fixed_planes[6]; /* planes at a side that are left out */
    /* PLUGIN */
    int entry;
    int time_scalar, stage;
    /* FILL, PLANES; KERNEL: those at the ends of rows, each set before its row is computed */
    int nslabs;
    trli_slab *slab;
    /* FILL, PLANES */
    trli_side (*sides)[6]; /* [nout] */
    bool again;            /* KERNEL, PLUGIN: what another step computed, on more points, if some reader needs them */
    struct trli_demand
        *extent;        /* KERNEL, PLUGIN: of such another step, what its own readers need; NULL: the field's demand */
    bool exchange_only; /* FILL: of ghosts that are points of the domain */
    int nplanes;        /* PLANES: the sides that it sets, in that order */
    trli_plane *plane;
    int nexchanged;
    int *exchanged;                    /* fields in the exchange's order */
    trl_footprint *exchanged_reach;    /* [nexchanged]: which of their ghosts */
    struct trl_exchange *exchange;     /* once there are tasks */
    trl_array *exchange_array;         /* [nexchanged][local patch], set before each exchange */
    const trl_array **exchange_arrays; /* [nexchanged]: its rows */
} trli_step;

#endif
