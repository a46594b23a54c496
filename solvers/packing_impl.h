/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The owned points of fields of some equations as one vector: of each equation, patch after patch, row after row. */
#ifndef TRLI_PACKING_IMPL_H
#define TRLI_PACKING_IMPL_H

#include <trl_loop.h>

#include "simulation_impl.h"

typedef struct trli_packing {
    trl_simulation *sim;
    trl_loop *loop;
    int n;          /* equations */
    int64_t *row;   /* [n * patches + 1] the first row, along x, of an equation on a patch */
    int64_t *first; /* [n * patches + 1] and the first number */
} trli_packing;

/* Once the simulation has a frame. */
TRL_NODISCARD trl_err trli_packing_create(trl_simulation *sim, int n, const int *equation, trli_packing *packing);
void trli_packing_destroy(trli_packing *packing);
/* Numbers of this rank; and where those of the i-th equation begin. */
int64_t trli_packing_size(const trli_packing *packing);
int64_t trli_packing_begin(const trli_packing *packing, int i);
/* values = what fields, [n], have; values = (minus - fields)/over. Fails with DEVICE. */
TRL_NODISCARD trl_err trli_pack(const trli_packing *packing, const int *field, double *values);
TRL_NODISCARD trl_err trli_pack_difference(const trli_packing *packing, const double *minus, const int *field,
                                           double over, double *values);
/* Of one field, at the location of the first equation: values that lie `stride` from each other. */
TRL_NODISCARD trl_err trli_pack_one(const trli_packing *packing, int field, int stride, double *values);
/* Let fields, [n], have values. */
TRL_NODISCARD trl_err trli_unpack(const trli_packing *packing, const double *values, const int *field);

#endif
