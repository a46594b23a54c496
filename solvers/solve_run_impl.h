/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* A solution of a system: solve_run.c, and where it is not linear newton.c. */
#ifndef TRLI_SOLVE_RUN_IMPL_H
#define TRLI_SOLVE_RUN_IMPL_H

#include "krylov_impl.h"

/* Whether the residual last found is small enough, also beside what is tolerated; and the one to solve to. */
bool trli_solver_is_solved(const trli_solver *s, double norm);
double trli_solver_goal(const trli_solver *s, double norm);
/* A residual far below those that the power was chosen by gets another one, unless it is small enough. */
TRL_NODISCARD trl_err trli_solver_watch(trli_solver *s, double *norm);
/* Solve J c = r as far as the target says. *norm: of r, before and after. Collective: yes. */
TRL_NODISCARD trl_err trli_solver_solve_linear(trli_solver *s, double target, double *norm);

/* ---- newton.c ---- */

/* The programs of steps, if the system is not linear. */
TRL_NODISCARD trl_err trli_newton_compile(trli_solver *s);
/* From x, whose residual r has, to a solution. *norm: of r. Collective: yes. */
TRL_NODISCARD trl_err trli_newton_run(trli_solver *s, double *norm);

#endif
