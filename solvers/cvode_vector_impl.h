/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Vectors of SUNDIALS: numbers in memory that the context counts, worked on by all workers, with exact sums. */
#ifndef TRLI_CVODE_VECTOR_IMPL_H
#define TRLI_CVODE_VECTOR_IMPL_H

#include <sundials/sundials_nvector.h>

#include <trl_field.h>

#include "cvode_impl.h"

/* What all vectors of a system share. */
typedef struct trli_vectors {
    trl_context *ctx;
    trl_loop *loop;
    int64_t n;
    double points;
    trl_sum *sum;     /* [workers] */
    double *greatest; /* [workers] */
    trl_err err;      /* the first error of an operation, none of which can say so */
} trli_vectors;

TRL_NODISCARD trl_err trli_vectors_create(const trli_cvode_request *request, trli_vectors *vectors);
void trli_vectors_destroy(trli_vectors *vectors);
/* NULL: there is no memory. */
N_Vector trli_vectors_new(trli_vectors *vectors, SUNContext sundials);
double *trli_vectors_values(N_Vector vector);

#endif
