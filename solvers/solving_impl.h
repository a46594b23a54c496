/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Equations without a time derivative among the steps of a simulation, and the flow's pressure, which is one of them:
 * solve_equations.c and flow.c. */
#ifndef TRLI_SOLVING_IMPL_H
#define TRLI_SOLVING_IMPL_H

#include "flow_impl.h"
#include "solve_impl.h"

struct trli_solving {
    trl_simulation *sim;
    bool in_steps;
    int time_scalar;
    int *at;             /* [equations] the fields that are solved on */
    int *stage;          /* [stages][equations] where a stage's values are */
    trli_program *load;  /* the present state to these fields */
    trli_program *guess; /* the present solutions to the next level */
    int nsolvers;
    trli_solver **solver; /* in the order in which they need each other */
    int flow_solver;      /* the one of the pressure, or -1 */
    bool changing;        /* dt, or the step, is read */
    double dt;            /* of the last solution of the present state */
    trl_gidx step;
    const trli_next_step *made; /* the step whose results are solved on; NULL: of none, or of stages before */
};

/* Equations that are solved together: the data of the request for their solver. */
typedef struct trli_system {
    const struct trli_solving *solving;
    const int *equation;
} trli_system;

/* The instance that equations are solved in, in a program of that, and that of the step's start, or none. */
TRL_NODISCARD trl_err trli_solving_instance(const struct trli_solving *so, trli_program *program, trli_instance **in,
                                            trli_instance **old);
/* A - B of an equation that is solved, in that instance or one of the values of another stage. */
TRL_NODISCARD trl_err trli_solving_residual(trl_simulation *sim, trli_instance *in, int equation, trli_ir_value *value);
/* Where the last results of a variable are that are to be looked at, and the step that they are of if it is not over:
 * during what is solved after its last stage; else NULL. */
int trli_solving_result(const trl_simulation *sim, int variable);
const trli_next_step *trli_solving_made(const trl_simulation *sim);
/* Put the values of a stage where equations are solved; again: back. */
void trli_solving_swap(const struct trli_solving *so, int stage);

/* ---- solve_order.c ---- */

/* component[v]: the system of equation v; systems are numbered in the order in which they are solved. */
TRL_NODISCARD trl_err trli_solving_order(trl_simulation *sim, int *component, int *count);

/* ---- solve_equations.c ---- */

/* Compile what solves equations without a time derivative, once the state's fields are there. */
TRL_NODISCARD trl_err trli_solving_prepare(trl_simulation *sim);
/* The fields of the values that a stage makes, [equations]: they outlive its program. */
void trli_solving_note_stage(trl_simulation *sim, int stage, const int *field);
/* After the passes, before the model is frozen. */
void trli_solving_equalise(trl_simulation *sim);
/* After the passes: whether what is solved for follows from dt, or the step. */
bool trli_solving_reads_steps(const trl_simulation *sim);
/* Once there is a frame. */
void trli_solving_begin(trl_simulation *sim);
void trli_solving_destroy(trl_simulation *sim);
void trli_solving_mark_fields(const trl_simulation *sim, bool *needed);
/* A system's solver, numbered as in trl_simulation_solver. */
const trli_solver *trli_solving_nth(const trl_simulation *sim, int solver);
/* A grid of a solver's multigrid, and the simulation on it; NULL: there is no such level. */
const trl_grid *trli_solving_grid(const trl_simulation *sim, int solver, int level);
const trl_simulation *trli_solving_level(const trl_simulation *sim, int solver, int level);
/* Solve from the initial values, to them; called before dt is known and then again, because what bounds it may need
 * solutions, while what reads it is solved for after, with the first guess until then. Collective: yes. */
TRL_NODISCARD trl_err trli_solve_initial(trl_simulation *sim, bool dt_known);
/* Solve where the present state lies between the ends of the last step. Collective: yes. */
TRL_NODISCARD trl_err trli_solve_between(trl_simulation *sim);
/* The present state is that of a checkpoint, solved for with that dt. */
void trli_solving_resume(trl_simulation *sim, trl_gidx step, double dt);
/* Parts of a step: before the first stage, where first guesses of new values are those of the present ones; after each
 * one, at the end. Collective: yes. */
TRL_NODISCARD trl_err trli_solve_before(trl_simulation *sim, const trli_next_step *next);
TRL_NODISCARD trl_err trli_solve_guess(trl_simulation *sim, trl_gidx step, double time);
TRL_NODISCARD trl_err trli_solve_stage(trl_simulation *sim, const trli_next_step *next, int stage, double time);
void trli_solve_after(trl_simulation *sim, const trli_next_step *next);
/* A step with what is solved after each stage. Collective: yes. */
TRL_NODISCARD trl_err trli_solve_step(trl_simulation *sim, const trli_next_step *next, bool check);

/* ---- carried.c: corrections of first guesses ---- */

/* How often a step solves each system, but for a flow's pressure. */
int trli_solving_solves(const struct trli_solving *so);
/* What is solved from here on are a step's systems; other ones; the step is accepted, or not; forget all. */
void trli_solving_begin_step(const trl_simulation *sim);
void trli_solving_leave_step(const trl_simulation *sim);
void trli_solving_end_step(const trl_simulation *sim, bool accepted);
void trli_solving_forget_steps(const trl_simulation *sim);

#endif
