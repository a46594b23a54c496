/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Operands: what a part of a formula is, a scalar or a vector with the location of each component. */
#ifndef TRLI_OPERAND_IMPL_H
#define TRLI_OPERAND_IMPL_H

#include "ir_impl.h"

#define TRLI_ANYWHERE (-1) /* no location: numbers, coordinates, t, reductions */

typedef struct trli_operand {
    int components; /* 0: a scalar; else one per axis of the grid */
    int location[3];
    trli_ir_value value[3];
} trli_operand;

trli_operand trli_operand_scalar(int location, trli_ir_value value);
/* A vector of one component, which all are in 1-D, becomes a scalar; others stay. */
void trli_operand_flatten(trli_operand *operand);
/* Number of values: components of a vector, 1 of a scalar. */
static inline int trli_operand_count(const trli_operand *operand)
{
    return operand->components ? operand->components : 1;
}
/* The location two values have in common: equal, or one of them has none; false if they differ. */
bool trli_location_join(int a, int b, int *joined);

#endif
