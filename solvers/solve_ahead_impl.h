/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* What a solver gives a GPU to do before it knows the results of a program. */
#ifndef TRLI_SOLVE_AHEAD_IMPL_H
#define TRLI_SOLVE_AHEAD_IMPL_H

#include "krylov_impl.h"

/* ---- solve_ahead.c ---- */

/* Means that are measured: of x, or of what it is to begin with. */
typedef struct trli_measured {
    double *mean; /* [n] */
    int of;       /* of solver->means */
    bool told;    /* a GPU tells them: they are to be taken */
} trli_measured;

/* As trli_solver_program, of a program that tells its results (trli_program_tells), but for these: *told: they are to
 * be taken, before its next run; else they are there. Collective: yes. */
TRL_NODISCARD trl_err trli_solver_program_telling(trli_solver *s, trli_program *program, bool *told);
/* The same of a program whose scalars a GPU finds, too. */
TRL_NODISCARD trl_err trli_solver_program_later(trli_solver *s, trli_program *program, bool *told);
TRL_NODISCARD trl_err trli_solver_take(const trli_solver *s, const trli_program *program, bool told);
/* Behind the residual of x, before it is looked at: let the method begin, if it is to and can: s->ahead. Collective:
 * yes. */
TRL_NODISCARD trl_err trli_solver_begin_method(trli_solver *s);
/* What one GPU of one process is given from here to the end is one launch (trli_chain_begin); such parts may be within
 * one another. Fail with DEVICE, MEMORY, the first one before anything was begun. */
TRL_NODISCARD trl_err trli_solver_begin_launch(trli_solver *s);
TRL_NODISCARD trl_err trli_solver_end_launch(trli_solver *s);
/* A solve begins, the next one of its step; and has needed so many iterations. */
void trli_solver_find_place(trli_solver *s);
void trli_solver_note_iterations(trli_solver *s);
/* Whether the residual of zero, where a direct solution is trusted, may be found with the next function. */
bool trli_solver_may_go_ahead(const trli_solver *s);
/* Find it, and if a GPU tells of it give that the direct solution to do meanwhile: s->ahead. m: of the guess, taken if
 * they are told. Collective: yes. */
TRL_NODISCARD trl_err trli_solver_go_ahead(trli_solver *s, const trli_residual *r, const trli_measured *m);

/* ---- solve_means.c ---- */

/* Means that a program has found. */
TRL_NODISCARD trl_err trli_solver_take_means(const trli_solver *s, const trli_measured *m);
/* Find them, unless a GPU tells them later. Collective: yes. */
TRL_NODISCARD trl_err trli_solver_measure_means(trli_solver *s, trli_measured *m);
/* Where constants are in the null space, the solution has the mean that the guess had. Collective: yes. */
TRL_NODISCARD trl_err trli_solver_restore_means(trli_solver *s, const double *wanted);
/* Whether products have no mean for unknown i, so that r is to have none. Of a linear system that is looked at where
 * constants are in the null space alone. */
bool trli_solver_is_balanced(const trli_solver *s, int i);
/* See that r has no mean where the operator cannot make one: NUMERICS if that is more than rounding, else it is left
 * out, which the other function does. Collective: yes. */
TRL_NODISCARD trl_err trli_solver_balance(trli_solver *s, double tolerance);
TRL_NODISCARD trl_err trli_solver_centre(trli_solver *s);

/* ---- direct.c ---- */

/* Of one unknown: x.next = the solution for r, with a mean if that may be chosen. Collective: yes. */
TRL_NODISCARD trl_err trli_direct_go_ahead(trli_solver *s, double mean);

#endif
