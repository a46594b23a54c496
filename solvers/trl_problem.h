/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The description of a problem: what a deck says, after includes, families and parameters are resolved. A driver in C
 * fills the same structs. All arrays and strings belong to the caller and must outlive the simulation made from them.
 */
#ifndef TRL_PROBLEM_H
#define TRL_PROBLEM_H

#include <trl_entry.h>
#include <trl_integrator.h>
#include <trl_solver.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct trl_equation_entry {
    const char *name;
    trl_place place;
    const trl_scope *names;
    trl_location location;
    trl_value initial, ddt;
    trl_value ddt2, initial_rate; /* ddt2 in place of ddt, the other has no count: an equation of second order in time.
                                     initial_rate without count: 0 */
    trl_value implicit;           /* terms of the rate beside ddt, which then may have no count; without count: none */
    trl_text solve, equals;       /* in place of ddt: solve = equals, or without equals solve = 0 */
    const trl_solver_entry *solver; /* NULL: all its defaults */
    trl_text mask, exact;           /* absent: none */
    trl_bc_side boundary[6];
} trl_equation_entry;

/* When something happens: every so many steps, or at times. At most one of these is set. All zero: only at the start
 * and the end. */
typedef struct trl_every {
    trl_gidx steps;
    double time;      /* at its multiples */
    int nat;          /* at times of a list */
    const double *at; /* [nat], in any order */
    int log;          /* so many times per decade: at 10^(k/log) for all whole numbers k */
} trl_every;

/* Points at which values are wanted. */
typedef struct trl_receivers_entry {
    int n;
    const double *at;         /* [n][grid.dim] */
    int nvalues;              /* 0: none are wanted */
    const char *const *value; /* names of quantities; vectors by their plain name */
    const trl_place *value_place;
    trl_place place; /* of the points, for messages */
} trl_receivers_entry;

typedef struct trl_series_entry {
    const char *name;
    trl_text value;
    const trl_scope *names; /* indices of a family in front of the parameters */
} trl_series_entry;

/* Wanted: half of the square of some fields by wave number, as columns behind the series. */
typedef struct trl_spectrum_entry {
    const char *name;
    int nfields;
    const char *const *field; /* equations, or fields that are written; components of vectors as "q.x" */
    int axis;                 /* waves along it; -1: along all axes, by the size of their wave vector */
    trl_place place;
} trl_spectrum_entry;

/* Wanted: means of a value over the other axes, at each point along one of them, as columns behind the spectra. */
typedef struct trl_profile_entry {
    const char *name;
    trl_text value; /* not a vector */
    int axis;       /* along it */
    trl_place place;
} trl_profile_entry;

/* Wanted: the derivative of an equation by a global parameter. */
typedef struct trl_sensitivity_entry {
    const char *equation, *parameter;
    trl_place equation_place, parameter_place;
} trl_sensitivity_entry;

typedef struct trl_time_entry {
    bool none; /* the problem has no time: it is solved once; nothing else here counts */
    trl_method method;
    trl_place method_place;
    double dt;                    /* fixed; 0: from cfl */
    double cfl;                   /* C */
    trl_value speed, diffusivity; /* count 0: found in the equations */
    double dt_min, dt_max;        /* 0: none */
    bool adaptive;                /* dt follows from the estimate of an embedded method; dt and cfl are 0 */
    double relative, absolute;    /* adaptive: tolerated of the error */
    double dt_initial;            /* adaptive; 0: chosen */
    bool dense;                   /* adaptive: values between the ends of steps are wanted */
    int nlandings;
    const double *landing; /* [nlandings] adaptive: times that steps land on, beside end */
    trl_gidx steps;        /* -1: none */
    double start, end;
    bool has_end;
    trl_text stop; /* ends the run where it holds; it knows values of series by their names, and `step`. Absent: none */
    trl_every stop_every; /* when that is looked at; all zero: after each step */
    trl_place place, dt_place;
} trl_time_entry;

/* A flow whose velocity has no divergence. */
typedef struct trl_incompressible_entry {
    int n;                       /* of components, the grid's axes; 0: there is none */
    const char *const *velocity; /* [n] equations at xface, yface, zface, whose ddt has no gradient of the pressure */
    const trl_place *velocity_place;
    const char *pressure; /* an equation at cells: solve is div(grad(p)/density), equals div(velocity) */
    trl_text density;
    const trl_text *gradient; /* [n] what the velocity changes by: the pressure's derivatives over the density */
    trl_place place, pressure_place;
} trl_incompressible_entry;

typedef struct trl_problem {
    trl_grid grid;
    bool patches_auto;
    int patches[3];
    trl_place patches_place;
    bool owners_auto;  /* by blocks or along the curve, where ghosts cost less to exchange */
    trl_owners owners; /* else; with or without shares, and with auto too: */
    int nshares;       /* of owners.share; 0: there are none, and one for each rank else */
    trl_place shares_place;
    bool shares_auto;            /* shares follow what ranks were seen to compute, while steps go on */
    const trl_scope *parameters; /* all numbers, outermost scope */
    int nexpressions;
    const trl_expression_entry *expression;
    int nequations;
    const trl_equation_entry *equation;
    int nstencils;
    const trl_stencil_entry *stencil;
    int nsensitivities;
    const trl_sensitivity_entry *sensitivity;
    trl_incompressible_entry incompressible;
    trl_time_entry time;
    int noutputs;
    const char *const *output; /* names of fields wanted in the output; vectors by their plain name */
    const trl_place *output_place;
    bool writes_nothing; /* of fields, not even of equations, which are the default where noutputs is 0 */
    int nkept;
    const char *const *keep; /* names of fields that are evaluated after each step, written or not */
    const trl_place *keep_place;
    int nseries;
    const trl_series_entry *series;
    int nspectra; /* 0 without series */
    const trl_spectrum_entry *spectrum;
    int nprofiles; /* 0 without series */
    const trl_profile_entry *profile;
    bool series_solvers; /* columns of what steps and systems took */
    trl_receivers_entry receivers;
    const char *scheduler; /* a name of TRL_POLICY_LIST, or FILE.so */
    const char *devices;   /* for trl_devices_open; NULL: "auto" */
    trl_place scheduler_place, devices_place;
    const char *placement; /* for trl_workers_set_placement; NULL: what TRL_PLACEMENT says, or "auto" */
    trl_place placement_place;
    bool no_prefetch;           /* see trl_workers_set_prefetch */
    const char *placement_text; /* NULL, or what the file `placement` holds: trl_workers_set_placement_file */
    const char *model_devices;  /* NULL, or what is planned for in place of `devices`: trl_devices_open_model */
    trl_fusion fusion;
    double balance;           /* additions in the time of a byte, for the cost model; 0: measured */
    unsigned disabled_passes; /* TRL_PASS_... */
    trl_compile compile;
    int time_blocking; /* steps in one pass over memory, at most; 1: one at a time; 0: auto */
    trl_place time_blocking_place;
    int task_workers, operator_workers; /* all threads of the context, split by what they prefer; 0, 0: adapt */
    bool adapt_workers;                 /* each graph is run by as many of the workers as are fastest */
    trl_place threads_place;
    bool nan_check;
    bool fast_math; /* compiled kernels may round a product and a sum together */
} trl_problem;

#ifdef __cplusplus
}
#endif
#endif
