/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Derivatives of values of the IR by forward mode: every node has one tangent, made of nodes of the same IR, so that
 * what the tangents of several values have in common is shared, with each other and with the values themselves.
 * docs/sensitivity.md lists the rules. */
#ifndef TRLI_DERIVATIVE_IMPL_H
#define TRLI_DERIVATIVE_IMPL_H

#include "value_map_impl.h"

/* Tangents: a value, TRLI_NO_VALUE for a zero known from the structure, or: */
#define TRLI_TANGENT_UNKNOWN (-2)

typedef struct trli_derivative trli_derivative;
struct trli_derivative {
    trli_ir *ir;
    /* The tangent of a field or scalar that none was set for: sets it, or asks for what it is made of by
     * trli_derivative_need and returns; it is then called again. NULL: zero. */
    trl_err (*leaf)(trli_derivative *d, trli_ir_value v);
    void *data;
    trli_value_map known;   /* values whose tangents are known */
    trli_ir_value *tangent; /* [known.count] */
    int32_t tangents_capacity;
    trli_ir_value *stack; /* values whose tangents are wanted, innermost last */
    int32_t nstack, stack_capacity;
};

/* The tangent of one operation from those of its operands; TRLI_NO_VALUE: zero. Not for leaves and limiters. */
trli_ir_value trli_node_tangent(trli_ir *ir, trli_ir_value v, const trli_ir_value t[3]);
/* Which operands have a say in a node's tangent: bit i. */
unsigned trli_operands_that_count(const trli_node *n);

void trli_derivative_free(trli_derivative *d);
TRL_NODISCARD trl_err trli_derivative_set(trli_derivative *d, trli_ir_value v, trli_ir_value tangent);
/* The tangent of a value if it is known by now; else TRLI_TANGENT_UNKNOWN, and it is found next. For leaf. */
TRL_NODISCARD trl_err trli_derivative_need(trli_derivative *d, trli_ir_value v, trli_ir_value *tangent);
/* The tangent of a value. */
TRL_NODISCARD trl_err trli_derivative_of(trli_derivative *d, trli_ir_value v, trli_ir_value *tangent);

#endif
