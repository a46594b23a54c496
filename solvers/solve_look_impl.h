/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* What the operator of a system is like, seen by products with trial vectors: solve_look.c; the programs of these:
 * solve_trials.c. */
#ifndef TRLI_SOLVE_LOOK_IMPL_H
#define TRLI_SOLVE_LOOK_IMPL_H

#include "krylov_impl.h"

/* The programs of trial vectors. */
TRL_NODISCARD trl_err trli_solver_compile_trials(trli_solver *s);
/* Whether it may be looked at more than once. */
bool trli_solver_looks_again(const trli_solver *s);
/* d = 1 of an unknown, or one of two random vectors; -1: none of these. q = J d. Collective: yes. */
TRL_NODISCARD trl_err trli_solver_try(trli_solver *s, int one, int noise);
/* Whether the operator may have other properties than those that were found, if any were. */
bool trli_solver_is_unknown(const trli_solver *s);
/* Whether constants are in the null space of other unknowns than before, where values of other equations may change
 * that, or own ones: a product for each unknown, or two. Collective: yes. */
TRL_NODISCARD trl_err trli_solver_constants_change(trli_solver *s, bool *change);
/* Of an equation that is not linear, find this at the present values, if there were such unknowns. Collective: yes. */
TRL_NODISCARD trl_err trli_solver_follow_constants(trli_solver *s);
/* Whether products have no mean far from the present values, too, where the equation is not linear: no values give its
 * sides other means then. c changes. Collective: yes. */
TRL_NODISCARD trl_err trli_solver_stays_balanced(trli_solver *s, int i, bool *balanced);
/* The unknowns of which constants are in the null space, and whether the operator is symmetric. Collective: yes. */
TRL_NODISCARD trl_err trli_solver_look(trli_solver *s);

/* ---- joint_balance.c ---- */

/* The program of equations' sums over all points, of a linear system of several. */
TRL_NODISCARD trl_err trli_solver_compile_joint_sums(trli_solver *s);

#endif
