/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#ifndef TRLI_SIMULATION_IMPL_H
#define TRLI_SIMULATION_IMPL_H

#include <trl_integrator.h>
#include <trl_simulation.h>

#include "frame_impl.h"
#include "instance_impl.h"
#include "time_plan_impl.h"

/* The name of the program that does a step, and of its task graph. */
#define TRLI_STEP_PROGRAM "step"

/* One equation, parsed. */
typedef struct trli_equation {
    const trl_equation_entry *deck;
    trl_formula *initial, *ddt, *mask, *exact;
    trl_formula *implicit;       /* terms of the rate beside ddt that stages are solved for, or NULL */
    trl_formula *solve, *equals; /* without ddt: both sides; equals NULL: 0 */
    int state,
        next; /* model fields: level n and the level being computed; memory is exchanged after each accepted step */
    int mask_field, exact_field; /* model fields, or -1 */
    int exact_shown;             /* index of the exact solution among the shown fields, or -1 */
    int direction, of; /* direction not 0: the derivative along it of equation `of`, without formulas of its own */
    bool is_rate;      /* it is the time derivative of equation `of`, which is of second order */
    int rate;          /* of second order: the equation that is its rate; else -1 */
} trli_equation;

/* A field that users can observe. */
typedef struct trli_shown {
    trl_field_info info;
    int field;    /* of the model */
    int equation; /* whose mask applies, or -1 */
    int kept;     /* by which of the programs of what is kept it is evaluated, or -1 */
    bool unlocked;
} trli_shown;

/* A name that is kept, other than that of an equation. */
typedef struct trli_kept {
    trli_program *program; /* evaluates its fields */
    int nlocked;           /* of its fields */
    bool output;           /* they are written, too */
    bool vacant;           /* they have no memory */
} trli_kept;

/* The estimate of an equation's error in a step. */
typedef struct trli_error {
    int field;        /* error over what is tolerated */
    int scalar;       /* sum of its squares */
    double points;    /* summed over, unless there is a mask: */
    int count_scalar; /* their number, or -1 */
} trli_error;

/* What the next dt follows from. */
typedef struct trli_control {
    double dt, error; /* wanted; of the last step */
    bool rejected;    /* the present step was */
    int order;        /* by a multistep method, of the last step; 0: there is none */
    bool lenient;     /* it is no error if a solver finds no solution: */
    bool unsolved;    /* one did not, and said */
    char why[1200];   /* so, of the equation at */
    const trl_place *why_place;
    bool warned;                             /* of that */
    int64_t nrejected, nunsolved, naccepted; /* in this run: steps; how many times there was no solution; steps */
} trli_control;

struct trl_simulation {
    trl_context *ctx;
    const trl_problem *problem;
    const trl_problem *declared; /* NULL, or the caller's problem, where `problem` is that with rates as equations: */
    trl_problem *extended;
    int first_rate;     /* among its equations */
    int time_direction; /* of differentiation, of the conditions of rates; 0: there are none */
    const trl_integrator *integrator;
    trl_layout *layout;
    trl_workers *workers;
    trl_loop *loop;       /* over fields between steps */
    bool unchecked;       /* devices may still be at the last step: what it made was not looked at */
    trl_devices *devices; /* NULL: the scheduler uses none */
    bool any_devices;     /* some rank has some */
    int left_gpus;        /* of this rank, that were closed again */
    trl_err fetched;      /* an error of trl_simulation_array, which cannot say so */
    bool split;           /* the workers' preferences are the deck's, not adapted */
    trl_trace *trace;     /* NULL: not wanted */
    trli_model *model;
    trli_frame *frame; /* of all programs */
    int nequations;
    trli_equation *equation;
    trl_equation_entry *
        *sensitivity; /* [nequations - problem->nequations] what the equations added for `sensitivity` point to */
    trl_formula **series;
    int *series_scalar;
    double *series_value;
    trl_formula *stop; /* NULL: none */
    int stop_scalar;   /* what it gives */
    int nshown, shown_capacity;
    trli_shown *shown;
    int kick_scalar, half_scalar;       /* by leapfrog: by what rates are advanced, and half of the last dt */
    int stage_time[TRL_STAGES_MAX + 1]; /* scalars; the last is the time of the new values */
    trli_program *initial, *step, *observe, *stopped, *limit; /* stopped: NULL without stop */
    int nkept;
    trli_kept *kept;                  /* [nkept] */
    struct trli_receivers *receivers; /* NULL: none */
    struct trli_spectra *spectra;     /* NULL: none */
    struct trli_profiles *profiles;   /* NULL: none */
    int ncolumns;                     /* of series, behind those of formulas */
    const char **column;              /* [ncolumns] names */
    struct trli_bound *bound;         /* what the program `limit` computes and what is done with it */
    trl_gidx step_number, steps_wanted;
    double time, dt, from; /* from: where the last step began */
    trli_error *error;     /* [nequations] of adaptive steps, or NULL */
    trli_control control;
    trl_gidx base_step; /* with a fixed dt, t = base_time + (step - base_step)*dt */
    double base_time;
    bool stalled;        /* the last step failed before it began: dt could not be chosen */
    trl_gidx steps_run;  /* by this program, a restart not counted */
    int64_t allocations; /* on the step path after the first step; there should be none */
    int64_t comm_bytes, comm_messages;
    double compile_seconds;
    trli_program *estimate; /* of the error, once all is solved; NULL: the last part of a step has it, if any does */
    trli_program *part[TRL_STAGES_MAX];     /* of a step, by stage: solvers stand between them; else all are `step` */
    struct trli_implicit *implicit;         /* NULL: the method is explicit */
    struct trli_multistep *multistep;       /* NULL: the method is one of single steps */
    struct trli_first_rates *first_rates;   /* NULL: no step leaves rates to the next one */
    struct trli_dense *dense;               /* NULL: no values between the ends of steps are wanted */
    struct trli_solving *solving;           /* NULL: nothing is solved */
    struct trli_flow *flow;                 /* NULL: no velocity is free of divergence */
    struct trli_slopes *slopes;             /* NULL: explicit slopes keep their divergence */
    int *levels;                            /* [2][equations] fields: the two levels of the state */
    trli_rotation rotation;                 /* of them */
    struct trli_time_blocking *blocking;    /* NULL: one step at a time */
    struct trli_gpu_blocking *gpu_blocking; /* the same */
    bool devices_block;                     /* nothing but devices is in the way of `blocking` */
    trl_gidx in_passes, in_chains; /* steps that were taken several at a time; those that a GPU was given together */
    const char *not_blocked;       /* NULL, or why */
    trl_compile_stats compiled;    /* before it went to this layout */
    struct trli_late_steps *late;  /* NULL: the ranks agree on each step before the next one */
};

enum { TRLI_STEPS_MOST = 64 /* of a pass over memory */ };

/* A step to come. */
typedef struct trli_next_step {
    trl_gidx number; /* after it */
    double from, dt, time;
    double before; /* dt of the step before it; 0: there is none */
} trli_next_step;

/* steps.c */
/* Whether the numbers of time are usable: INPUT. */
TRL_NODISCARD trl_err trli_check_time(const trl_simulation *sim);
/* When a step of next->dt ends, and its dt if that is the end of the run. */
void trli_end_step(const trl_simulation *sim, trli_next_step *next);
/* The step after one of size dt that ended at number and time; it may lead nowhere. */
TRL_NODISCARD trl_err trli_choose_step(trl_simulation *sim, trl_gidx number, double time, double dt,
                                       trli_next_step *next);
/* Whether dt is a number of the deck. */
bool trli_dt_is_fixed(const trl_simulation *sim);
/* Whether t changes in a step, and stays finite. */
bool trli_step_leads_on(const trli_next_step *next);
/* NUMERICS, saying why, if it does not lead on. */
TRL_NODISCARD trl_err trli_check_step(trl_simulation *sim, const trli_next_step *next);
/* The step after the present one, checked; whether that failed is noted. Collective: yes. */
TRL_NODISCARD trl_err trli_next_step_of(trl_simulation *sim, trli_next_step *next);
/* What is wrong with dt before step 0: INPUT, NUMERICS. Collective: yes. */
TRL_NODISCARD trl_err trli_check_first_step(trl_simulation *sim);
/* Run what does a step; dt and times are set. Collective: yes. */
TRL_NODISCARD trl_err trli_run_step(trl_simulation *sim, const trli_next_step *next);
/* Whether steps or end is reached at a step's number and time. */
bool trli_done_at(const trl_simulation *sim, trl_gidx number, double time);
/* stats.c: the order of points. */
bool trli_point_before(const trl_gidx a[3], const trl_gidx b[3]);
/* simulation.c: parse the formulas of the problem; make its model. finer: NULL, or a finer grid's, which lives on. */
TRL_NODISCARD trl_err trli_simulation_parse(trl_simulation *sim);
TRL_NODISCARD trl_err trli_simulation_make_model(trl_simulation *sim, const trli_model *finer);
/* simulation.c: the scalars of the frame for a step. */
void trli_set_times(trl_simulation *sim, const trli_next_step *next);
/* Those of them that follow from its dt. */
void trli_set_dt(const trl_simulation *sim, const trli_next_step *next);
/* The same when there is no step: what is evaluated belongs to the present time. */
void trli_set_present(trl_simulation *sim);
/* The worst of all ranks' errors, which all return, and of *result. Collective: yes. */
TRL_NODISCARD trl_err trli_agree_on_result(trl_simulation *sim, trl_err err, int *result);
/* Let the new level be the present one, and the other way round. */
void trli_swap_levels(trl_simulation *sim);
/* Take note that steps were taken, the last of them this one. */
void trli_accept_steps(trl_simulation *sim, const trli_next_step *last, int count);
/* solve_vectors.c: let a field be zero. */
void trli_clear_field(const trl_simulation *sim, int field);
/* keep.c */
/* Evaluate what is kept and locked from the present state; observing: and what is to be written. Collective: yes. */
TRL_NODISCARD trl_err trli_evaluate_kept(trl_simulation *sim, bool observing);
/* USAGE if a shown field has no memory. */
TRL_NODISCARD trl_err trli_check_held(const trl_simulation *sim, const trli_shown *shown);

/* second_order.c */
/* Give each equation with ddt2 one for its rate, which follows the others of the problem. */
TRL_NODISCARD trl_err trli_add_rates(trl_simulation *sim);
/* Of the parsed equations, note which are rates. */
void trli_note_rates(trl_simulation *sim);
/* In the model: rates have conditions that are the time derivatives of their equations' ones. */
TRL_NODISCARD trl_err trli_declare_rates(trl_simulation *sim);
void trli_rates_destroy(trl_simulation *sim);

/* sensitivity.c: add the equations that `sensitivity` asks for. */
TRL_NODISCARD trl_err trli_add_sensitivities(trl_simulation *sim);
/* receivers.c */
/* Check the points and make the program of the problem's receivers, in an instance of the state. */
TRL_NODISCARD trl_err trli_receivers_compile(trl_simulation *sim);
void trli_receivers_destroy(struct trli_receivers **receivers);
/* compile.c: a program that evaluates things from the present state. */
TRL_NODISCARD trl_err trli_begin_observing(trl_simulation *sim, const char *name, trli_program **program,
                                           trli_instance **in);
/* compile.c: the programs of a simulation. */
TRL_NODISCARD trl_err trli_compile_programs(trl_simulation *sim);
/* limit.c: the program of what bounds the time step. required: cfl needs it. */
TRL_NODISCARD trl_err trli_compile_limit(trl_simulation *sim, bool required);
void trli_bound_destroy(struct trli_bound **bound);
/* See that the devices have been through the last step, and that its results are finite; else the step fails as it
 * would have. over: another one was begun, and with it the alarms of that. Collective: yes. */
TRL_NODISCARD trl_err trli_check_last_step(trl_simulation *sim, bool over);
/* The same where a device is done with it, and no run that checks its own results has begun since: of several devices
 * another one may tell later. */
TRL_NODISCARD trl_err trli_check_passed_step(trl_simulation *sim);
/* Run a program, with `check` one whose kernels check their results; all ranks return the same. A step that follows one
 * which devices are still at is given to them before it is known what that one made. Collective: yes. */
TRL_NODISCARD trl_err trli_run_checked(trl_simulation *sim, trli_program *program, trl_gidx step, double time,
                                       bool check);
/* Run a program; all ranks return the same error. Collective: yes. */
TRL_NODISCARD trl_err trli_program_run_agreed(trl_simulation *sim, trli_program *program);
/* Evaluate what no step changes: before the first program that reads it, and after a device failed. Collective: yes. */
TRL_NODISCARD trl_err trli_run_lasting(trl_simulation *sim);
/* The next dt from cfl; INPUT errors when nothing bounds it or it falls below min. Collective: yes. */
TRL_NODISCARD trl_err trli_limit_step(trl_simulation *sim, double *dt);
/* Warn if the fixed dt is beyond the stable one. Collective: yes. */
TRL_NODISCARD trl_err trli_limit_warn(trl_simulation *sim);
/* A new observable field. */
TRL_NODISCARD trl_err trli_show_field(trl_simulation *sim, const trl_field_info *info, int field, int equation);
/* Report the first value that is not finite, over all ranks: NUMERICS. step and time: of the values. Collective: yes.
 */
trl_err trli_report_nonfinite(trl_simulation *sim, trl_gidx step, double time);
/* explain.c: why a kernel of a program is not a part of one before it; NULL: there is none before. */
const char *trli_reason_not_fused(const trli_program *program, int step, char *buffer, size_t size);
trl_kernel_stats trli_kernel_stats_of(const trli_program *program, const trli_step *step);
TRL_NODISCARD trl_err trli_formula_of(trl_simulation *sim, const trl_text *text, trl_formula **formula);

#endif
