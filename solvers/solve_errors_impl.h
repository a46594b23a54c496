/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* What is said when a system is not solved. All fail with NUMERICS. Where a step may be shorter instead it is no error,
 * and the simulation's control keeps the message. */
#ifndef TRLI_SOLVE_ERRORS_IMPL_H
#define TRLI_SOLVE_ERRORS_IMPL_H

#include "krylov_impl.h"

/* With any message. */
TRL_NODISCARD trl_err trli_solver_fails(const trli_solver *s, const char *format, ...) TRL_PRINTF(2, 3);
/* Both sides of the equation of unknown i, which is free up to a constant, differ in the mean. */
TRL_NODISCARD trl_err trli_solver_inconsistent(const trli_solver *s, int i, double mean);
/* Of a system: unknowns cancel in the sum of its equations with these weights, [n], and both sides of it differ in the
 * mean. */
TRL_NODISCARD trl_err trli_solver_joint_inconsistent(const trli_solver *s, const double *weight, double mean);
/* The same as the former at values at which the derivative alone leaves unknown i free. */
TRL_NODISCARD trl_err trli_solver_is_flat(const trli_solver *s, int i, double mean);
TRL_NODISCARD trl_err trli_solver_not_finite(const trli_solver *s, const char *when);
/* There are vectors of which the operator of a linear system makes nothing, and a residual is left for that. */
TRL_NODISCARD trl_err trli_solver_has_null_space(const trli_solver *s, double left);
/* The same of a solution on the way from a residual that is finite. */
TRL_NODISCARD trl_err trli_solver_diverged(const trli_solver *s, const char *when);
/* In pseudo-time, from the least residual that there was. */
TRL_NODISCARD trl_err trli_solver_grows(const trli_solver *s, double norm, double best);
/* The derivative of the equation is zero, or no number; or it has no points. */
TRL_NODISCARD trl_err trli_solver_singular(const trli_solver *s, bool nan);
TRL_NODISCARD trl_err trli_solver_too_slow(const trli_solver *s, double norm, double target, int iterations);
/* Restarts of gmres do not bring the residual down. */
TRL_NODISCARD trl_err trli_solver_stalls(const trli_solver *s, double norm, double target, int iterations);
TRL_NODISCARD trl_err trli_solver_broke_down(const trli_solver *s, double norm, double target, int iterations);
/* A step of Newton's method is not solved for. */
TRL_NODISCARD trl_err trli_solver_no_step(const trli_solver *s);
/* A residual that is as small as it gets. Collective: yes. */
TRL_NODISCARD trl_err trli_solver_no_progress(const trli_solver *s, double norm, double target);
TRL_NODISCARD trl_err trli_solver_newton_too_slow(const trli_solver *s, double norm, double target);

/* Once: what auto took instead is slow. */
void trli_solver_warn_of_factors(trli_solver *s);

/* ---- solve_causes.c ---- */

/* What is known of values that are not finite: a robin condition that gives none; else the first point of a vector, and
 * the side that it is at. Text that is "" or begins with a colon. Collective: yes. */
TRL_NODISCARD trl_err trli_solver_find_cause(const trli_solver *s, const trli_vector *v, char *text, size_t size);

/* ---- stats.c ---- */

/* The first one of those of all ranks; how its value, point and coordinates are said. Collective: the former. */
TRL_NODISCARD trl_err trli_first_nonfinite(const trl_simulation *sim, trli_nonfinite *first);
void trli_nonfinite_text(const trl_simulation *sim, const trli_nonfinite *f, char *text, size_t size);

/* ---- joint_balance.c ---- */

/* A linear system was not solved: fails if unknowns cancel in a sum of its equations, and sources do not. Collective:
 * yes. */
TRL_NODISCARD trl_err trli_solver_refuse_joint(trli_solver *s);

/* ---- null_space.c ---- */

/* A linear system was not solved, and r has that norm: fails if there is no solution, because the operator is singular,
 * unless a step may be shorter instead. What the unknowns hold is lost. Collective: yes. */
TRL_NODISCARD trl_err trli_solver_refuse_singular(trli_solver *s, double norm);
/* The residual of a linear system is one of rounding errors. *lost: of values that have grown without a solution, as
 * nearly all of them is in the null space; fails where a sum of equations tells so. Collective: yes. */
TRL_NODISCARD trl_err trli_solver_is_lost(trli_solver *s, double norm, bool *lost);

#endif
