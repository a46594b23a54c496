/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* What values are but for the fields that they read and the numbers that they contain: equations of one form have one
 * signature, and one compiled function computes all of them. */
#ifndef TRLI_SIGNATURE_IMPL_H
#define TRLI_SIGNATURE_IMPL_H

#include "reads_impl.h"

/* Equal words: equal signatures. */
typedef struct trli_signature {
    uint64_t hash; /* of the words, once all are added */
    int32_t *word;
    int32_t nwords, words_capacity;
    trli_ir_value *number; /* the constants, in the order of a walk in depth */
    int32_t nnumbers, numbers_capacity;
} trli_signature;

/* Add the nodes of roots to an empty signature. Fields are named by their place in `reads`, which has all of them.
 * Scalars, seeds and places of point sources are part of the signature. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_signature_find(const trli_ir *ir, trli_walk *walk, const trli_reads *reads, int nroots,
                                          const trli_ir_value *roots, trli_signature *signature);
/* Add what else distinguishes what is made of the values. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_signature_add(const trli_ir *ir, trli_signature *signature, int32_t word);
bool trli_signatures_equal(const trli_signature *a, const trli_signature *b);
void trli_signature_free(trli_signature *signature);

#endif
