/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* What values of the IR read: fields with the offsets at which they are read, and scalars. */
#ifndef TRLI_READS_IMPL_H
#define TRLI_READS_IMPL_H

#include <trl_field.h>

#include "ir_impl.h"

/* All that a set of roots reads when the roots are computed at one point. A kernel of these roots takes its inputs in
 * this order. */
typedef struct trli_reads {
    int nfields, nscalars;
    int *field;               /* [nfields], each once */
    trl_footprint *footprint; /* [nfields] */
    int *scalar;              /* [nscalars], each once */
} trli_reads;

/* Fails (INPUT) if a root reads so far that offsets outgrow their type. reads is set, and not freed before. */
TRL_NODISCARD trl_err trli_reads_find(const trli_ir *ir, trli_walk *walk, int nroots, const trli_ir_value *roots,
                                      trli_reads *reads);
/* The same, with the inputs in the order of a walk in depth: that of values of one form is the same. */
TRL_NODISCARD trl_err trli_reads_find_in_depth(const trli_ir *ir, trli_walk *walk, int nroots,
                                               const trli_ir_value *roots, trli_reads *reads);
void trli_reads_free(trli_reads *reads);

#endif
