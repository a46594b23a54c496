/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The rows of a Jacobian: the derivatives of a value at a point by the values that it is made of, each at its offset
 * from the point. */
#ifndef TRLI_PARTIALS_IMPL_H
#define TRLI_PARTIALS_IMPL_H

#include "derivative_impl.h"
#include "instance_impl.h"
#include "model_impl.h"

typedef struct trli_partial_derivative {
    int variable;        /* of the model; -1: all of them together */
    bool no_cse;         /* read in a marked part of a formula (trli_instance_marked) */
    bool everywhere;     /* through a reduction: the sum of the magnitudes at all points, without offset */
    int16_t offset[3];   /* in points of the variable */
    trli_ir_value value; /* the derivative, or TRLI_NO_VALUE */
    trli_ir_value
        bound; /* what its magnitude may exceed that by: limiters have no single derivative; or TRLI_NO_VALUE */
} trli_partial_derivative;

typedef struct trli_partials trli_partials;

/* in: where the values were lowered, which stores nothing (trli_instance_marked). */
TRL_NODISCARD trl_err trli_partials_create(trli_instance *in, trli_partials **partials);
void trli_partials_destroy(trli_partials **partials);
/* What a row needs to be found. own: a variable whose readings in marked parts do not count, or -1. budget: entries of
 * lists that may be made. *n = -1: more are needed. The list is valid until the next call. coarse: one entry for
 * everything, a bound that ignores offsets and signs, at linear cost. */
TRL_NODISCARD trl_err trli_partials_of(trli_partials *partials, trli_ir_value value, int own, int budget, bool coarse,
                                       const trli_partial_derivative **list, int *n);
/* An opaque expression that the last value depends on, which has no stable_dt and whose inputs depend on
 * variables; or NULL. */
const trli_opaque *trli_partials_plugin(const trli_partials *partials);
/* The same value with CSE, as kernels need it. */
TRL_NODISCARD trl_err trli_partials_together(trli_partials *partials, trli_ir_value value, trli_ir_value *together);

#endif
