/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Profiles as columns of series: the mean of a value over all axes but one, at each of its points along that one.
 * Points on sides of the domain weigh half, as in integrals. */
#ifndef TRLI_PROFILES_IMPL_H
#define TRLI_PROFILES_IMPL_H

#include "simulation_impl.h"

/* Make the program that evaluates them. INPUT: no such axis, or a vector. */
TRL_NODISCARD trl_err trli_profiles_compile(trl_simulation *sim);
void trli_profiles_destroy(trl_simulation *sim);
/* Columns of profile i of the problem. */
int trli_profile_columns(const trl_simulation *sim, int i);
/* Begin to compute all columns from the present values: *own: of this rank, an error before, or until now, of which its
 * part tells; then, later, wait for the parts of the others. *failed: one of them has told of an error.
 * Collective: yes. */
TRL_NODISCARD trl_err trli_profiles_begin(trl_simulation *sim, trl_err *own);
TRL_NODISCARD trl_err trli_profiles_end(trl_simulation *sim, double *value, bool *failed);
/* Both at once. Collective: yes. */
TRL_NODISCARD trl_err trli_profiles_find(trl_simulation *sim, double *value);

#endif
