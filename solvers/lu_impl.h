/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The method lu. */
#ifndef TRLI_LU_IMPL_H
#define TRLI_LU_IMPL_H

#include "krylov_impl.h"

/* Why a system cannot be solved by factors, in words that follow "because"; NULL: it may be. */
const char *trli_lu_missing(const trli_solver *s);
/* Whether auto takes it where nothing else solves. */
bool trli_lu_may_help(const trli_solver *s);
TRL_NODISCARD trl_err trli_lu_impossible(const trli_solver *s, const char *why);
/* What a run has made. method: NULL, or trli_krylov_lu's. */
void trli_lu_free(trli_krylov *method);

#endif
