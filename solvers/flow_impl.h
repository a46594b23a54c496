/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Incompressible flow: velocities u' = f(u) - grad(p)/rho with div(u) = 0. A stage first makes u*, without the pressure
 * of its own slope, w being the factor of that slope times dt; then p solves div(grad(p)/rho) = div(u*)/w, and
 * u = u* - w grad(p)/rho. With p, slopes of later stages are f(u) - grad(p)/rho: this is the method applied to the
 * flow's equations, of its own order in time for the velocity (Hairer, Lubich & Roche 1989; Sanderse & Koren 2012). */
#ifndef TRLI_FLOW_IMPL_H
#define TRLI_FLOW_IMPL_H

#include "simulation_impl.h"

struct trli_solving;
struct trli_solve_request;

struct trli_flow {
    int n, velocity[3], pressure; /* equations */
    trl_formula *gradient[3];     /* of the pressure, over the density */
    trl_formula *density;
    int weight, inverse; /* scalars: w, 1/w */
    int moved[3];        /* fields that velocities move to */
    double moved_at;     /* the time that they are of, for messages */
    /* The pressure after a step is that of the stage at its end, or where there is none what the first and the last
     * stage's ones extrapolate to: of_held times the one of stage `held`, plus of_last times that of the last. */
    int held; /* -1: that of the last stage alone */
    double of_held, of_last;
    int held_field, pressure_field; /* what is kept of it, and the field of the sum, which may be the same; or -1 */
    trli_program *start, *move[TRL_STAGES_MAX];
    /* Instead, the pressure after a step is solved for once more, with what the new velocities change by. */
    bool again;
    int ahead[3], behind[3];     /* fields: velocities a time w later and earlier without the pressure */
    int ahead_time, behind_time; /* scalars */
    trli_program *tried;
    /* Where sides begin or cease to be walls within w, these changes need not be balanced: of one side of the present
     * time they may be. */
    trli_program *one_sided;
    int later;                /* scalar: 1: after it, 0: before it */
    bool may_differ, differs; /* what flows in and out: that is no error; it did */
    /* Implicit stages are solved for with the pressure before them, which is then left out again. */
    int before[3]; /* fields: what the velocity is less by for it; or -1 */
    trli_program *hold, *leave_out;
};

/* Instead of the number of a stage: initial velocities; velocities that have no divergence. */
enum { TRLI_FLOW_START = -1, TRLI_FLOW_DONE = -2 };

/* Find the flow's equations, before others are compiled that solve. INPUT if something does not go with it. */
TRL_NODISCARD trl_err trli_flow_prepare(trl_simulation *sim);
/* Fields that velocities move to, and the program that makes the initial ones free of divergence. */
TRL_NODISCARD trl_err trli_flow_compile(trl_simulation *sim);
/* What follows a stage's pressure. slope: [equations] of the stage; those that later stages read get the pressure's
 * gradient. */
TRL_NODISCARD trl_err trli_flow_compile_stage(trl_simulation *sim, int stage, trli_ir_value *slope);
/* Once it is known that no rank has devices (`late`): the pressure's solver brings what moves of the velocities read
 * around patches, if it can, so that these need no exchange. */
void trli_flow_begin(trl_simulation *sim);
void trli_flow_destroy(trl_simulation *sim);
/* Mark the fields of whose values a run of a program may make use. */
void trli_flow_mark_fields(const trl_simulation *sim, bool *needed);
/* The field that equation v moves to, whose memory it changes with; or -1. */
int trli_flow_moved(const trl_simulation *sim, int v);
/* Whether variable v is a component of the velocity. */
bool trli_flow_has(const trl_simulation *sim, int v);
/* The equation of the pressure, or -1. */
int trli_flow_pressure(const trl_simulation *sim);
/* The divergence as the right-hand side of the pressure's equation, in an instance of any grid. */
trli_ir_value trli_flow_scaled(trli_instance *in, const trl_simulation *sim, trli_ir_value divergence);
/* What a solver for the pressure is asked besides. n: unknowns of its system. INPUT if there are others. */
TRL_NODISCARD trl_err trli_flow_request(const struct trli_solving *so, int n, struct trli_solve_request *request);
/* Set the factor w before the pressure of a stage is solved for. */
void trli_flow_weigh(const trl_simulation *sim, int stage, double dt);
void trli_flow_set_weight(const trl_simulation *sim, double w);
/* The scalar w. */
int trli_flow_weight(const trl_simulation *sim);
/* Solve for the pressure of a stage, or TRLI_FLOW_START, and make the velocities free of divergence, where equations
 * are solved. Coefficients are those of the stage's start. Collective: yes. */
TRL_NODISCARD trl_err trli_flow_project(const struct trli_solving *so, int stage, trl_gidx step, double time);

/* Note what the pressure as it is changes a component v of the velocity by in an implicit stage: in a field, which
 * that stage is solved for with; -1: there is none. Collective: yes. */
TRL_NODISCARD trl_err trli_flow_hold(trl_simulation *sim, int stage, const trli_next_step *next);
int trli_flow_held(const trl_simulation *sim, int v);
/* How often an implicit stage and its pressure are solved for in turn; 1 without a flow. */
int trli_flow_passes(const trl_simulation *sim);
/* In a program with an instance of the step's start: set points on sides, where equations are solved, as conditions do
 * at the present time there. Copies leave such points as they were. */
TRL_NODISCARD trl_err trli_flow_set_points(trl_simulation *sim, trli_program *program, trli_instance *old);
/* A rate of variable v as the pressure leaves it; others stay what they are. */
TRL_NODISCARD trl_err trli_flow_subtract(trli_instance *in, int v, trli_ir_value *rate);
/* Whether the pressure after a step is solved for once more; then solve for it where equations are solved, with the
 * changes of velocities around the present time in dt/2; else nothing. Collective: yes. */
bool trli_flow_solves_again(const trl_simulation *sim);
TRL_NODISCARD trl_err trli_flow_compile_again(trl_simulation *sim);
TRL_NODISCARD trl_err trli_flow_find_pressure(const struct trli_solving *so, double dt, trl_gidx step, double time);

/* A field beside a variable's, at its points, that outlives its program; and store a value at the variable's points in
 * a field. */
TRL_NODISCARD trl_err trli_flow_add_field(trl_simulation *sim, int v, const char *what, int *field);
TRL_NODISCARD trl_err trli_flow_store(trl_simulation *sim, trli_program *program, int v, int field,
                                      trli_ir_value value);

#endif
