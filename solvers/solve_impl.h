/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Systems F(u) = 0 for some of a model's variables: Newton's method, whose linear systems are solved in Krylov
 * subspaces. Products with the Jacobian are tangents of F, so no matrix is stored; all work is in programs of the
 * simulation's model, and the host decides between them. A linear F is solved in one step of Newton's method. */
#ifndef TRLI_SOLVE_IMPL_H
#define TRLI_SOLVE_IMPL_H

#include "simulation_impl.h"

typedef struct trli_solver trli_solver;

/* A system to be solved. Arrays and strings are copied, or live as long as the simulation; data lives until
 * trli_solver_add returns. */
typedef struct trli_solve_request {
    const char *names; /* of the unknowns, for messages */
    trl_place place;   /* of the system, likewise */
    const trl_solver_entry *settings;
    int n;               /* unknowns */
    const int *variable; /* [n] of the model, whose locations, conditions on sides and masks hold */
    const int *field;    /* [n] persistent fields: the first guess, and then the solution */
    /* Make the instance of a program in which F is evaluated, where the unknowns are in `field`, and if it needs one
     * that of the start of the step, with its ghosts filled. The caller adds tangents, has ghosts filled, and destroys
     * both. */
    trl_err (*instance)(void *data, trli_program *program, trli_instance **in, trli_instance **old);
    /* The value of F for unknown i in it. */
    trl_err (*residual)(void *data, trli_instance *in, int i, trli_ir_value *value);
    /* OPTIONAL, of one unknown: how large the numbers are whose differences both sides of the equation are. What is
     * lost of them by rounding counts as no residual. */
    trl_err (*size)(void *data, trli_instance *in, bool at_zero, trli_ir_value *value);
    /* OPTIONAL: errors of the unknowns that are tolerated, where residuals are errors: what is left is a hundredth of
     * them at most, unless rounding errors are larger. */
    double relative, absolute;
    double finer; /* OPTIONAL: aim at this residual relative to that of zero, where rounding errors allow it */
    /* OPTIONAL, of one unknown: -F where that is zero, if conditions on sides leave nothing of it then. */
    trl_err (*at_zero)(void *data, trli_instance *in, trli_ir_value *value);
    const int *from;    /* OPTIONAL [n] fields of an earlier solution, that guesses are made with */
    int solves;         /* OPTIONAL: of a step, whose first guesses may follow from those of steps before */
    bool steps;         /* it is of an implicit step: the smaller dt, the nearer is the first guess */
    bool varying;       /* auto may take multigrid although coefficients are fields */
    bool keeps_points;  /* points on sides are what the caller set them to, not what conditions say now */
    bool brings;        /* trli_solver_bring was called: */
    trl_offsets around; /* the points around patches that are wanted, too */
    /* OPTIONAL, what messages say: what is wrong if both sides do not have the same mean, before "more than", or "less
     * than", than_what "by" an amount, which is their integral over the scalar scaled_by, at the time *balanced_at, and
     * the remedy; what may be wrong if values are not finite; what is, if both sides differ in the mean over a part
     * of the domain that nothing joins to the rest; and if the unknown is in no equation. */
    const char *unbalanced, *than_what, *balance, *finite, *cut_off, *missing;
    const int *scaled_by;
    const double *balanced_at;
    void *data;
    bool on_grid; /* residual is one of formulas alone, and can be had in the model of another grid: multigrid may be */
    bool products_alone; /* it is not run: the caller has a method, of products with the Jacobian and preconditioners
                          */
} trli_solve_request;

/* Compile the programs that solve a system; before the model's passes are run. Fails with INPUT, MEMORY: what there is
 * of the solver then is destroyed once the ranks agree, since its coarser grids exchange. */
TRL_NODISCARD trl_err trli_solver_add(trl_simulation *sim, const trli_solve_request *request, trli_solver **solver);
void trli_solver_destroy(trli_solver **solver);
/* After the passes, before the model is frozen: fields that change places have one shape. */
void trli_solver_equalise(trli_solver *solver);
/* Once there is a frame: the vectors are zero. */
void trli_solver_clear(trli_solver *solver);
/* Whether F depends on dt or on the number of the step. */
bool trli_solver_reads_steps(const trli_solver *solver);
/* Whether the derivative of F is computed with the values of an equation. */
bool trli_solver_reads(const trli_solver *solver, int equation);
/* Solve from what the fields hold; the host has set the instance's time. step and time: for messages. Fails with
 * NUMERICS: no convergence, an inconsistent or singular system, values that are not finite. Collective: yes. */
TRL_NODISCARD trl_err trli_solver_run(trli_solver *solver, trl_gidx step, double time);
/* Before a solve, of a system with `from`: that is the guess, which is copied if a method needs it. */
void trli_solver_guess(trli_solver *solver);
/* After a solve that failed: the first guess has no corrections, and they are forgotten. */
void trli_solver_take_guess_back(trli_solver *solver);
/* Before a solve, of a system with `from`: the guess is from + factor * (x - from), unless the last solution was a
 * direct one, which needs none. Collective: yes. */
TRL_NODISCARD trl_err trli_solver_extrapolate(trli_solver *solver, double factor, trl_gidx step, double time);
/* The solves that follow are those of a step, in the order of all steps, until it is left; corrections of first
 * guesses stay once the step is accepted. Or forget all of them. */
void trli_solver_begin_step(trli_solver *solver);
void trli_solver_leave_step(trli_solver *solver);
void trli_solver_end_step(trli_solver *solver, bool accepted);
void trli_solver_forget_steps(trli_solver *solver);
/* How many fields have corrections, and the i-th of them; after all were forgotten: it has values again. */
int trli_solver_carried(const trli_solver *solver);
int trli_solver_carried_field(const trli_solver *solver, int i, bool *known);
void trli_solver_carry(trli_solver *solver, int i);
/* While it is compiled: systems J c = -right will be solved, too, with the Jacobian J of F. right: [n] fields. */
TRL_NODISCARD trl_err trli_solver_add_given(trli_solver *solver, const int *right);
/* Solve one, to a residual relative to that of zero, with the preconditioner of the last run. A linear F does not
 * read its unknowns here: their fields become c. Fails like trli_solver_run. Collective: yes. */
TRL_NODISCARD trl_err trli_solver_run_given(trli_solver *solver, double tolerance, trl_gidx step, double time);
/* [n] fields of c. */
const int *trli_solver_correction(const trli_solver *solver);
bool trli_solver_is_linear(const trli_solver *solver);
/* Before the first solve, of one unknown: each patch's field is to have what other ranks own around it, too. Whether
 * the last solution brought that along: a direct one does. */
void trli_solver_bring(trli_solver *solver, const trl_offsets *around);
bool trli_solver_brought(const trli_solver *solver);
/* The next solve takes nothing from those of its step before it, as after a restart. */
void trli_solver_forget(trli_solver *solver);
/* Before the first solve, of a linear system whose coefficients are known: see which preconditioner it will have where
 * the operator is symmetric. Collective: yes. */
TRL_NODISCARD trl_err trli_solver_foresee(trli_solver *solver, trl_gidx step, double time);
/* Of one that has products alone: fields [n] of what the Jacobian is applied to, and of the product. */
const int *trli_solver_direction(const trli_solver *solver);
const int *trli_solver_product(const trli_solver *solver);
/* Apply it. step and time: for messages. Collective: yes. */
TRL_NODISCARD trl_err trli_solver_multiply(trli_solver *solver, trl_gidx step, double time);
/* Make the preconditioner for the values that the instance's fields have. gamma: on other grids, dt. *cycles: it is one
 * of multigrid; else the inverse of the diagonal. Collective: yes. */
TRL_NODISCARD trl_err trli_solver_prepare_cycles(trli_solver *solver, double gamma, bool *cycles);
/* Then, with other values: smoothing on the first grid, whose residuals have these, needs their diagonal, too. Blocks
 * of earlier values may be far from an inverse. Collective: yes. */
TRL_NODISCARD trl_err trli_solver_refresh(trli_solver *solver);
/* Whether there is an inverse of the diagonal. [n] fields of it; NULL: they are numbers, which the next function gives.
 */
bool trli_solver_has_diagonal(const trli_solver *solver);
const int *trli_solver_inverse(const trli_solver *solver);
double trli_solver_inverse_number(const trli_solver *solver, int i);
/* Whether it is known how the derivatives of all equations by all unknowns at the same point couple these; find them;
 * and the field of that of equation i by unknown j, or -1 where it is *number. */
bool trli_solver_has_coupling(const trli_solver *solver);
TRL_NODISCARD trl_err trli_solver_find_coupling(trli_solver *solver);
int trli_solver_coupling(const trli_solver *solver, int i, int j, double *number);
/* Fields [n] of what a cycle of multigrid is for, and of what it gives. */
const int *trli_solver_right_side(const trli_solver *solver);
const int *trli_solver_cycle_result(const trli_solver *solver);
TRL_NODISCARD trl_err trli_solver_cycle(trli_solver *solver);
trl_solve_stats *trli_solver_stats(trli_solver *solver);
/* Mark the fields of whose values a run of a program may make use. */
void trli_solver_mark_fields(const trli_solver *solver, bool *needed);

/* The systems of equations that are solved, and that of implicit terms; NULL: there is none. */
int trli_solving_count(const trl_simulation *sim);
const trli_solver *trli_solving_solver(const trl_simulation *sim, int solver);
const trli_solver *trli_implicit_solver(const trl_simulation *sim);

#endif
