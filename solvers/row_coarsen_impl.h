/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* From a matrix whose rows the ranks share to the next coarser one. */
#ifndef TRLI_ROW_COARSEN_IMPL_H
#define TRLI_ROW_COARSEN_IMPL_H

#include "row_owners_impl.h"

/* Points that are chosen one after the other, on one rank. Ranks share each matrix that has more. */
enum { TRLI_BLOCK_POINTS = 1 << 17 };

typedef struct trli_row_coarsening {
    trli_sparse_crew *crew;
    trli_splitting *splitting;
    double worth;                  /* the next one has no larger share of the points */
    const trli_row_owners *owners; /* of a, connected: all that have entries in this rank's columns are known */
    trli_sparse *a, *p, *back;     /* own rows; those of p and back are made: interpolation from points that stay, whose
                                    * columns are rows of `coarse`, and to this rank's */
    trli_row_owners *coarse;       /* made: all that own rows read of the next matrix */
    trli_sparse *product;          /* made: own rows of that matrix */
} trli_row_coarsening;

/* *made: there is a next one. Collective: yes. */
TRL_NODISCARD trl_err trli_row_coarsen(const trli_row_coarsening *w, bool *made);

#endif
