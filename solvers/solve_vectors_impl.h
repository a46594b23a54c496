/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* What programs with several products and vectors are made of. */
#ifndef TRLI_SOLVE_VECTORS_IMPL_H
#define TRLI_SOLVE_VECTORS_IMPL_H

#include "krylov_impl.h"

/* While it is compiled: products with the Jacobian are taken of a vector's `now`, too. */
void trli_vector_multiplies(const trli_solver *s, const trli_vector *v);
/* The values of J of, for [n] unknowns; and append: to = J of. */
TRL_NODISCARD trl_err trli_solver_product_values(trli_solver *s, trli_program *program, const int *of,
                                                 trli_ir_value *value);
TRL_NODISCARD trl_err trli_solver_product_of(trli_solver *s, trli_program *program, const int *of, const int *to);
/* Fields and values that one sweep stores, while a program is made. */
typedef struct trli_assignments {
    trli_solver *s;
    trli_program *program;
    int n, room; /* room: of all fields of so many vectors */
    int *field;
    trli_ir_value *value;
    trli_ir_value *a, *b; /* [n unknowns] values of two vectors, for who makes the program */
} trli_assignments;

TRL_NODISCARD trl_err trli_assignments_create(trli_solver *s, int vectors, trli_assignments *a);
void trli_assignments_free(trli_assignments *a);
/* From now on for a new program. */
TRL_NODISCARD trl_err trli_assignments_begin(trli_assignments *a, const char *name, trli_program **program);
/* Add: field = value of unknown i. */
void trli_assignments_add(trli_assignments *a, const int *to, int i, trli_ir_value value);
/* Append what was added, of which nothing is left. */
TRL_NODISCARD trl_err trli_assignments_store(trli_assignments *a);

#endif
