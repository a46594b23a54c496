/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* What a solver makes ready for an operator, and chooses, before it solves. */
#ifndef TRLI_SOLVE_PREPARE_IMPL_H
#define TRLI_SOLVE_PREPARE_IMPL_H

#include "krylov_impl.h"

/* Why there are no cycles any more. */
extern const char trli_cycles_failed[];

/* Before anything else of a solve: a direct solution needs no guess. Collective: yes. */
TRL_NODISCARD trl_err trli_solver_choose_start(trli_solver *s, bool *directly);
/* Run the program of the diagonal, unless the Jacobian is as it was. Collective: yes. */
TRL_NODISCARD trl_err trli_solver_run_diagonal(trli_solver *s);
/* Before a method runs. Collective: yes. */
TRL_NODISCARD trl_err trli_solver_prepare(trli_solver *s);
/* Whether that would leave all as it is, and a method has cycles. */
bool trli_solver_is_prepared(const trli_solver *s);
/* The words of what was chosen. */
const char *trli_solver_preconditioner(const trli_solver *s);
/* Whether cycles may stop early for jacobi's sake: at cells without a mask they rarely fail, and often where jacobi
 * fails, too. */
bool trli_solver_is_doubtful(const trli_solver *s);
/* Whether the preconditioner is chosen for an operator that need not be symmetric; and this one is not. Then coarser
 * grids have entries, unless what is not symmetric is small on the coarsest one, too. */
bool trli_solver_may_be_questionable(const trli_solver *s);
bool trli_solver_is_questionable(const trli_solver *s);

/* ---- skewness.c ---- */

/* The program that finds how far the operator is from a symmetric one, where it may be questionable. */
TRL_NODISCARD trl_err trli_solver_compile_skewness(trli_solver *s);
/* s->skewed: in questionable cases, that is too far for coarser grids that have the equation; s->tied: these need to
 * know what couples unknowns. Collective: yes. */
TRL_NODISCARD trl_err trli_solver_find_skewness(trli_solver *s);

/* Compile a direct solution where it is asked for, or possible and nothing else is. Fails with INPUT. */
TRL_NODISCARD trl_err trli_solver_choose_direct(trli_solver *s);
/* Multigrid likewise; else what is known of the diagonal. */
TRL_NODISCARD trl_err trli_solver_choose_preconditioner(trli_solver *s);

#endif
