/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* A simulation: a problem compiled to frozen task graphs, its state, and the functions that advance and observe it. */
#ifndef TRL_SIMULATION_H
#define TRL_SIMULATION_H

#include <stdio.h>

#include <trl_graph.h>
#include <trl_problem.h>

#ifdef __cplusplus
extern "C" {
#endif

/* NULL for a simulation, a problem or a result is a USAGE error of the functions that can fail. */
typedef struct trl_simulation trl_simulation;

/* Check everything and compile. Errors and warnings are recorded in the context with the places of the deck.
 * Collective: yes; all ranks return the same error. The problem must outlive the simulation. */
TRL_API TRL_NODISCARD trl_err trl_simulation_create(trl_context *ctx, const trl_problem *problem, trl_simulation **sim);
TRL_API void trl_simulation_destroy(trl_simulation **sim);

/* Evaluate the initial values (time start, step 0). Non-finite values are a NUMERICS error naming tag, cell and
 * coordinates. Collective: yes. */
TRL_API TRL_NODISCARD trl_err trl_simulation_initialise(trl_simulation *sim);
/* Advance one step: dt from the deck or cfl, shortened to land on end. NUMERICS errors name tag, cell, step and time;
 * the state is then that of before the step. A dt that no longer changes t is one, too. Collective: yes. */
TRL_API TRL_NODISCARD trl_err trl_simulation_step(trl_simulation *sim);
/* Advance by one step or, where that is possible and pays (time blocking), by some more, up to the first one after
 * which `stop` says so (NULL: none); it may be asked about later steps than are taken. As so many calls of
 * trl_simulation_step, to the bit; but after a NUMERICS error, which is about the first bad step, the state is lost.
 * Between several ranks steps after which `stop` says no are pending: the next call may fail for them, and whoever
 * looks at the state all the same calls trl_simulation_settle before. Collective: yes. */
typedef bool (*trl_stop)(void *data, trl_gidx step, double time, double dt);
TRL_API TRL_NODISCARD trl_err trl_simulation_advance(trl_simulation *sim, trl_stop stop, void *data);
/* The same, but after the last step, too, the ranks may not have agreed on it. */
TRL_API TRL_NODISCARD trl_err trl_simulation_advance_pending(trl_simulation *sim, trl_stop stop, void *data);
/* Wait until all ranks know how pending steps ended. Fails as trl_simulation_advance. Collective: yes. */
TRL_API TRL_NODISCARD trl_err trl_simulation_settle(trl_simulation *sim);
/* Whether the last step failed before it began, since dt could not be chosen or no longer changes t: the state is then
 * that of before it, however many steps a call takes. */
TRL_API bool trl_simulation_stalled(const trl_simulation *sim);
/* Whether steps or end is reached. */
TRL_API bool trl_simulation_done(const trl_simulation *sim);

TRL_API double trl_simulation_time(const trl_simulation *sim);
/* Steps that were taken several at a time, in passes over memory or launches of a GPU. Thread: one at a time. */
TRL_API trl_gidx trl_simulation_in_passes(const trl_simulation *sim);
/* Steps, each a pass over memory, that a GPU was given together with others. Thread: one at a time. */
TRL_API trl_gidx trl_simulation_in_chains(const trl_simulation *sim);
/* Steps that were rejected so far, as their error was not tolerated or a system had no solution. */
TRL_API int64_t trl_simulation_rejected(const trl_simulation *sim);
/* Where dt follows from errors: how many times so far a system had no solution, so that dt became smaller. */
TRL_API int64_t trl_simulation_unsolved(const trl_simulation *sim);
/* Of the method; where it varies, that of the last step, or 0 before any. */
TRL_API int trl_simulation_order(const trl_simulation *sim);
/* What the next dt follows from where it follows from errors: part of a checkpoint, set after resuming. Numbers that
 * cannot be are ignored. */
enum { TRL_CONTROLS = 2 };
TRL_API void trl_simulation_get_control(const trl_simulation *sim, double control[TRL_CONTROLS]);
TRL_API void trl_simulation_set_control(trl_simulation *sim, const double control[TRL_CONTROLS]);
TRL_API double trl_simulation_dt(const trl_simulation *sim); /* of the last step, or the next one before any */
TRL_API trl_gidx trl_simulation_step_number(const trl_simulation *sim);
TRL_API int trl_simulation_stages(const trl_simulation *sim);
/* Override the number of steps (--steps) before stepping. */
TRL_API void trl_simulation_set_steps(trl_simulation *sim, trl_gidx steps);

/* What the name of a rate ends in whose values are those half a step before, as leapfrog has them: "w_t:half". */
#define TRL_HALF_STEP_BEFORE ":half"

/* Fields that can be observed: every equation first, in deck order, then the output fields, then those that are kept
 * but not written, then (names ending in ":exact") the exact solutions. A vector gives one field per component, "q.x".
 */
typedef struct trl_field_info {
    const char *name;
    trl_location location;
    bool equation; /* advanced in time: part of a checkpoint */
    bool output;   /* wanted in the files of fields */
    int exact;     /* field index of its exact solution, or -1 */
    bool is_exact;
    bool kept;                 /* evaluated after each step, while it is locked */
    const char *location_word; /* what the deck calls its location: in 2-D "node" and "zedge" are one place */
} trl_field_info;
TRL_API int trl_simulation_fields(const trl_simulation *sim);
TRL_API const trl_field_info *trl_simulation_field(const trl_simulation *sim, int field);
TRL_API const trl_layout *trl_simulation_layout(const trl_simulation *sim);
/* The workers of a simulation, for loops of the caller's own between the calls of other functions. */
TRL_API trl_workers *trl_simulation_workers(const trl_simulation *sim);

/* The devices of a simulation; NULL: its scheduler uses none. */
TRL_API const trl_devices *trl_simulation_devices(const trl_simulation *sim);
/* How the tasks of a step are placed, as text: trl_graph_write_placement. Fails with MEMORY, IO. */
TRL_API TRL_NODISCARD trl_err trl_simulation_write_placement(const trl_simulation *sim, FILE *out);
/* The same as lines that a run of the problem takes as placement_text. Fails with MEMORY, IO. */
TRL_API TRL_NODISCARD trl_err trl_simulation_write_placement_file(const trl_simulation *sim, FILE *out);

/* Evaluate outputs, exact solutions and series from the present state; after it the arrays below hold them. Equations'
 * arrays are always current; those of fields that are kept and locked are so after initialise, step, advance and
 * observe.
 * Collective: yes. */
TRL_API TRL_NODISCARD trl_err trl_simulation_observe(trl_simulation *sim);
/* Between several ranks, where no series needs the reduction of another and steps may be pending: evaluate the series
 * of the present state, which may be pending, without waiting for their values. After each later step, before the next
 * row, trl_simulation_observed brings the rows under way on; *row: if it is there, trl_simulation_series has the oldest
 * one now. It fails as trl_simulation_observe would have. wait: after trl_simulation_settle, or after an error of a
 * step, for the oldest row; after an error only those come that were brought on before. Nothing else is observed in
 * between. USAGE: trl_simulation_observes_later says no, or the row before was not brought on. Collective: yes. */
TRL_API bool trl_simulation_observes_later(const trl_simulation *sim);
TRL_API TRL_NODISCARD trl_err trl_simulation_observe_later(trl_simulation *sim);
typedef struct trl_observed {
    bool there;
    trl_gidx step; /* after which it was */
    double time;
} trl_observed;
TRL_API TRL_NODISCARD trl_err trl_simulation_observed(trl_simulation *sim, bool wait, trl_observed *row);
/* What this rank alone did beside the steps ended so: if it failed, a later step fails on all ranks. For simulations
 * that observe later. Collective: no. */
TRL_API void trl_simulation_note(trl_simulation *sim, trl_err err);
/* Whether steps have values between their ends, as problem.time.dense asks for. */
TRL_API bool trl_simulation_interpolates(const trl_simulation *sim);
/* Let the state, its time and all that is observed be those of a time inside the last step, by the method's dense
 * output, until the next step or the function after this one. USAGE: there is no such time. Collective: yes. */
TRL_API TRL_NODISCARD trl_err trl_simulation_interpolate(trl_simulation *sim, double time);
/* Back to the end of the step. Collective: yes. */
TRL_API TRL_NODISCARD trl_err trl_simulation_return(trl_simulation *sim);
/* The values of a field on a local patch (position in layout->local); valid until the next step, advance or observe. */
TRL_API trl_array trl_simulation_array(const trl_simulation *sim, int field, int local_patch);
/* Fields that are kept are locked at first: evaluated after each step, for the caller to look at, wherever their values
 * are; trl_simulation_array fetches them. Unlocked ones are not evaluated any more, and their memory, on devices too,
 * goes back, unless they are written: their arrays have no address, which trl_simulation_fetched reports (USAGE). A
 * vector gives its memory back when all of its components are unlocked. Those locked again have memory at once, and
 * values from the next step, advance or observe on. Equations can be both, and stay as they are. Fails with USAGE: not
 * kept (add it to output.keep); MEMORY; DEVICE. Collective: yes. */
TRL_API TRL_NODISCARD trl_err trl_simulation_lock(trl_simulation *sim, int field);
TRL_API TRL_NODISCARD trl_err trl_simulation_unlock(trl_simulation *sim, int field);
/* Whether all arrays that were asked for since the last call have their values, which devices may have had: fails with
 * DEVICE if not, USAGE if one is unlocked. Collective: no. */
TRL_API TRL_NODISCARD trl_err trl_simulation_fetched(trl_simulation *sim);
/* Values of the series after observe, in deck order, and then the columns of spectra; how many, and their names. */
TRL_API int trl_simulation_series_count(const trl_simulation *sim);
TRL_API const char *trl_simulation_series_name(const trl_simulation *sim, int value);
TRL_API const double *trl_simulation_series(const trl_simulation *sim);

/* Interpolate the values of the problem's receivers linearly from the present state, as `probe` does, to the bit.
 * (*values)[v][i]: of value v, of which there are trl_simulation_received, a vector has one per component, at point i;
 * valid until the next call. Every rank gets all. USAGE: there are none. Collective: yes. */
TRL_API TRL_NODISCARD trl_err trl_simulation_receive(trl_simulation *sim, const double *const **values);
TRL_API int trl_simulation_received(const trl_simulation *sim);
TRL_API const char *trl_simulation_received_name(const trl_simulation *sim, int value);

/* Whether the problem's time.stop holds now; false without one. The same on all ranks. Collective: yes. */
TRL_API TRL_NODISCARD trl_err trl_simulation_stops(trl_simulation *sim, bool *stops);

/* Statistics over owned, unmasked points, the same bits on any decomposition. Collective: yes. */
typedef struct trl_field_stats {
    double min, max, sum, l2;
    uint64_t hash;
    bool masked; /* a mask is 0 at all points: l2 and errors are NaN */
    bool has_error;
    double error_l1, error_l2, error_linf; /* against the exact solution */
} trl_field_stats;
TRL_API TRL_NODISCARD trl_err trl_simulation_field_stats(trl_simulation *sim, int field, trl_field_stats *stats);

/* The least and the largest value of every equation, extremes[2*v] and extremes[2*v + 1], now; points where a mask is 0
 * count, NaNs do not. One pass over the equations. Collective: yes. */
TRL_API TRL_NODISCARD trl_err trl_simulation_extremes(trl_simulation *sim, double *extremes);

/* Restart: the caller fills the equations' arrays (owned points) and then sets step, time and the dt of the last step.
 * With a fixed dt, t = start + step*dt goes on as such if the time is one of these, else from there. USAGE: step or
 * time cannot be. */
TRL_API TRL_NODISCARD trl_err trl_simulation_resume(trl_simulation *sim, trl_gidx step, double time, double dt);

/* Fields beside the state that help later steps to solve their equations: part of a checkpoint, each while it is known.
 * To resume without them costs iterations, not accuracy. After trl_simulation_resume, which forgets all, the caller
 * names those that have values again, in their order. */
typedef struct trl_carried_info {
    const char *name;
    trl_location location;
    const char *location_word;
    bool known;
} trl_carried_info;
TRL_API int trl_simulation_carried(const trl_simulation *sim);
TRL_API trl_carried_info trl_simulation_carried_field(const trl_simulation *sim, int i);
TRL_API trl_array trl_simulation_carried_array(const trl_simulation *sim, int i, int local_patch);
TRL_API void trl_simulation_carry(trl_simulation *sim, int i);

/* Let the next step follow from the state alone, as after trl_simulation_resume: multistep methods forget the steps
 * before, and begin at order 1. To be called where a checkpoint is written, so that the run goes on as one that resumes
 * there. Nothing by other methods. */
TRL_API void trl_simulation_begin_anew(trl_simulation *sim);

/* Why a simulation cannot go to other patches, in words; NULL: it can. The same on all ranks. */
TRL_API const char *trl_simulation_stays(const trl_simulation *sim);
/* Seconds in which this rank's workers had nothing of its own to do but to wait for other ranks, or computed for them,
 * in runs of programs so far, less those that it would have taken for what others computed for it. */
TRL_API double trl_simulation_waited(const trl_simulation *sim);
/* The layout that a simulation of a problem that does not stay would have, for trl_layout_destroy. Fails with INPUT,
 * MEMORY, MPI. Collective: yes. */
TRL_API TRL_NODISCARD trl_err trl_simulation_foresee(const trl_simulation *sim, const trl_problem *problem,
                                                     trl_layout **layout);
/* Make a simulation of the same problem but for other patches, owners or shares, which outlives it, and let it stand
 * where `from` stands: its steps have the same bits. `from` can only be destroyed then; after a failure *to is NULL,
 * and `from` goes on. Between settled steps of a simulation that does not stay. Fails with USAGE, INPUT, MEMORY, MPI.
 * Collective: yes. */
TRL_API TRL_NODISCARD trl_err trl_simulation_move(trl_simulation *from, const trl_problem *problem,
                                                  trl_simulation **to);

/* What trellis plan and the report show. */
typedef struct trl_simulation_stats {
    int64_t planned_bytes,
        peak_bytes;     /* fields and the workers' scratch on this rank: by the plan; the most held at once, */
    int64_t held_bytes; /* and now */
    int64_t metadata_bytes, metadata_allocations; /* of this rank: the most that was held at once; made so far */
    int64_t bytes_per_cell_step;                  /* read and written by all kernels of a step, per cell */
    int64_t tasks_per_step;
    const char *policy, *running_policy;   /* the scheduler asked for, and the one that runs in its place */
    int task_workers, operator_workers;    /* of this rank, by what they prefer now */
    int64_t comm_bytes, comm_messages;     /* sent by this rank so far, by kernels, */
    int64_t solver_bytes, solver_messages; /* and by solvers beside these, and where they were prepared */
    int64_t helped_points;                 /* of kernels of other ranks of its node that this rank computed, */
    double helped;                         /* seconds of threads that it took, and in a timed step, by a worker */
    double helped_per_step;
    double latency; /* seconds of a small exchange of two ranks of a node, measured when the run began; 0: it was not */
    int64_t messages_between_gpus; /* of each exchange once, those that a GPU packs into another rank's memory */
    int64_t allocations_after_first_step;
    trl_graph_stats step_graph;
    trl_placement_stats placement;                           /* of the tasks of a step */
    int64_t device_copies[TRL_WAYS], device_bytes[TRL_WAYS]; /* so far */
    int64_t device_waits; /* how often this rank could not go on before a device had done what it had been given */
    double compile_seconds;
} trl_simulation_stats;
TRL_API void trl_simulation_get_stats(const trl_simulation *sim, trl_simulation_stats *stats);
/* The programs of a simulation, those of coarser grids of multigrid behind the others: what was run, and where. */
typedef struct trl_program_stats {
    const char *name;
    const trl_grid *grid;
    trl_placement_stats placement; /* executors 0: it was never placed */
} trl_program_stats;
TRL_API int trl_simulation_programs(const trl_simulation *sim);
TRL_API void trl_simulation_program(const trl_simulation *sim, int program, trl_program_stats *stats);
/* Systems that are solved, and what solving the i-th did so far. */
TRL_API int trl_simulation_solvers(const trl_simulation *sim);
TRL_API const trl_solve_stats *trl_simulation_solver(const trl_simulation *sim, int solver);
/* Compiled kernels of this rank: compilers work in the background while the simulation goes on with the interpreter. */
typedef struct trl_compile_stats {
    int under_way, compiled, cached; /* cached: they came from the user's cache */
    int received;                    /* from the rank of the node that compiled them, or has them in its cache */
    double seconds;                  /* that compilers took for those compiled, one after the other */
    bool keeps;                      /* what was compiled is in the cache now */
} trl_compile_stats;
TRL_API void trl_simulation_get_compile_stats(const trl_simulation *sim, trl_compile_stats *stats);
/* What lets the bits of two runs of the problem differ, by the number of ranks, threads or patches, by when kernels are
 * compiled, or by the machine: fast_math, and types of expressions that do not promise TRL_EXPR_PURE. The i-th reason
 * as text; false: there are not so many. */
TRL_API bool trl_simulation_inexact(const trl_simulation *sim, int i, size_t size, char *text);
/* A kernel of a step, in the order in which they run. Bytes and flops of one of its points: 8 bytes for each field read
 * or written, a flop for each + - * / sqrt, comparison and choice, functions by what they cost. Predicted: the larger
 * of bytes by the bandwidth and operations by the rate that were measured of this machine. Times are of a step, on this
 * rank's workers together. */
typedef struct trl_kernel_stats {
    const char *name; /* of its first result */
    int results, inputs, bytes_per_point;
    double flops_per_point;
    bool memory_bound;
    double predicted, measured; /* s; measured: mean of timed steps, 0 before the first */
} trl_kernel_stats;
TRL_API int trl_simulation_kernels(const trl_simulation *sim);
TRL_API void trl_simulation_get_kernel(const trl_simulation *sim, int kernel, trl_kernel_stats *stats);
/* The plan as text (expressions, kernels, ghost widths, memory, tasks, tau_1, tau_inf, P(G)), appended through write;
 * rank 0's view. */
TRL_API TRL_NODISCARD trl_err trl_simulation_describe(const trl_simulation *sim, bool verbose,
                                                      void (*write)(void *data, const char *line), void *data);
/* The source of every kernel of a step that is compiled, with what it computes, and of the others why they are not.
 * kind: TRL_KIND_CPU (C) or TRL_KIND_GPU (CUDA). Fails with MEMORY, IO. */
TRL_API TRL_NODISCARD trl_err trl_simulation_write_kernels(trl_simulation *sim, trl_kind kind, FILE *out);
/* The values of every kernel of a step, from which that source is made: one operation a line. a1[1,0] is a1 one point
 * further along x; in parentheses, the number of offsets that a value is needed at, and where it is computed if not at
 * each point. Fails with MEMORY, IO. */
TRL_API TRL_NODISCARD trl_err trl_simulation_write_values(trl_simulation *sim, FILE *out);
/* Graphviz of the dependency graph (expressions) or of the task graph of a step. */
TRL_API TRL_NODISCARD trl_err trl_simulation_write_dot(const trl_simulation *sim, bool tasks, FILE *out);

/* Record what this rank's workers do from now on, the first `events` of each (see trl_trace_create). Once. Fails with
 * MEMORY, USAGE. */
TRL_API TRL_NODISCARD trl_err trl_simulation_trace(trl_simulation *sim, int64_t events);
/* What was recorded so far, as trl_trace_write does. Fails with IO, USAGE: nothing is recorded. */
TRL_API TRL_NODISCARD trl_err trl_simulation_write_trace(const trl_simulation *sim, FILE *out);

#ifdef __cplusplus
}
#endif
#endif
