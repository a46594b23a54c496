/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Residuals whose squares are no numbers: solve_scale.c. */
#ifndef TRLI_SOLVE_SCALE_IMPL_H
#define TRLI_SOLVE_SCALE_IMPL_H

#include "krylov_impl.h"

TRL_NODISCARD trl_err trli_solver_compile_scaling(trli_solver *s);
/* Whether norms of that size, and what a solution makes of them, have squares that are numbers. */
bool trli_norm_is_ordinary(double norm);
/* r and c, and the norm and sums of r, times a factor. Collective: yes. */
TRL_NODISCARD trl_err trli_solver_scale_residual(trli_solver *s, double factor, double *norm);
TRL_NODISCARD trl_err trli_solver_scale_correction(trli_solver *s, double factor);
/* The largest magnitude of a vector, and of the unknowns times the power. Collective: yes. */
TRL_NODISCARD trl_err trli_solver_find_largest(const trli_solver *s, const trli_vector *v, double *largest);
TRL_NODISCARD trl_err trli_solver_find_largest_x(const trli_solver *s, double *largest);
/* Unless r is zero, or its norm no number: scale it such that the norm is ordinary. *norm: of r; *ratio: by what power,
 * and it, are larger now. Collective: yes. */
TRL_NODISCARD trl_err trli_solver_choose_power(trli_solver *s, double *norm, double *ratio);
/* Whether a residual is small enough, or no more than what its terms are rounded by: where these are large beside their
 * sum, no method gets further. No for tolerances that no sum can have. Collective: yes. */
TRL_NODISCARD trl_err trli_solver_is_rounding(trli_solver *s, double norm, bool *is);

#endif
