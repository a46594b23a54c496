/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Steps that go on while the ranks agree on the one before. */
#ifndef TRLI_LATE_IMPL_H
#define TRLI_LATE_IMPL_H

#include "limit_impl.h"
#include "simulation_impl.h"

/* Where a simulation is in time. */
typedef struct trli_reached {
    trl_gidx number, run; /* steps in all, and by this program */
    double time, dt, from;
    trli_control control;
} trli_reached;

/* A dt that comes while its step runs. */
typedef struct trli_late_dt {
    bool under_way;       /* the step has begun, and not got it */
    bool awaited;         /* it is not known */
    trl_err before;       /* of this rank, in what bounds it: until the others are told */
    int said;             /* messages then */
    trli_next_step *next; /* the step, which gets it */
    trli_rate rate;       /* once it is known */
} trli_late_dt;

/* Rows of series on their way. */
typedef struct trli_late_rows trli_late_rows;

/* The last steps, or the last run of a step, while the ranks agree on them. */
typedef struct trli_late_steps {
    bool within; /* a step of several runs is under way: the ranks agree on each of them beside the next one */
    bool pending;
    bool failed; /* this rank, in them */
    bool lost;   /* trl_simulation_settle failed after the next step was asked for */
    /* The first of them whose results are not finite on this rank; -1: the step before them; count: none. */
    int count, bad;
    bool unlooked;   /* when the last ones were settled, devices of some rank were still at them */
    trl_gidx number; /* after the first */
    double time[TRLI_STEPS_MOST];
    trli_nonfinite *nonfinite; /* [lanes] of step `bad` */
    trli_reached reached;      /* before them */
    trli_reached earlier;      /* before those that were pending before them */
    trli_late_dt *dt;          /* NULL: dt is known before a step begins */
    trl_err noted;             /* what failed on this rank outside of steps: the next agreement on steps tells */
    trli_late_rows *rows;      /* NULL: rows of series are found at once */
} trli_late_steps;

/* Once there is a frame: on several ranks, steps may go on while the ranks agree on the last ones. Collective: yes. */
TRL_NODISCARD trl_err trli_late_create(trl_simulation *sim);
/* Collective: yes, if steps are pending. */
void trli_late_destroy(trl_simulation *sim);
/* Whether steps wait for trl_simulation_settle: the same on all ranks. */
bool trli_late_is_pending(const trl_simulation *sim);
/* Whether this rank failed in them: it computes no more, but takes part in messages. */
bool trli_late_is_failed(const trl_simulation *sim);
/* Whether a run that ended so was made, and took part in all messages. Plugins return what they like. */
bool trli_was_made(const trl_simulation *sim, trl_err err);
/* Settle what is pending, and look no further: what devices made of the last steps is looked at with the next one.
 * Collective: yes. */
TRL_NODISCARD trl_err trli_late_settle(trl_simulation *sim);
/* Steps from the present time ended so: err of this rank, and the first whose results are not finite, -1 for the step
 * before them, or count; the frame says what is not. None is pending. */
TRL_NODISCARD trl_err trli_late_pend(trl_simulation *sim, trl_err err, const trli_next_step *next, int count, int bad);
/* Work of this rank ended so, after which it takes part in messages all the same: within a step, the ranks agree on
 * that beside what follows; else at once. Collective: yes. */
TRL_NODISCARD trl_err trli_agree_within(trl_simulation *sim, trl_err err);
/* A step, which may be pending after it. Collective: yes. */
TRL_NODISCARD trl_err trli_step_later(trl_simulation *sim);
/* Run what does a step, as trli_run_step; the step may be pending after it. Collective: yes. */
TRL_NODISCARD trl_err trli_take_step(trl_simulation *sim, trli_next_step *next);
/* Run a program that is a part of a step or all of it, which is pending after it; those before it are settled.
 * check: look at the results. Collective: yes. */
TRL_NODISCARD trl_err trli_run_within(trl_simulation *sim, trli_program *program, trl_gidx step, double time,
                                      bool check);
/* Run a program whose reductions are deferred, and of which nobody is told how it ended: who fails spoils them. */
TRL_NODISCARD trl_err trli_run_deferring(trl_simulation *sim, trli_program *program);
/* Run a program for a step, which is pending after it, and at which devices may be still; those before it are settled.
 * Collective: yes. */
TRL_NODISCARD trl_err trli_run_later(trl_simulation *sim, trli_program *program, const trli_next_step *next);

/* ---- late_rows.c ---- */

/* *rows: one piece of memory, or NULL if rows are found at once on this rank, as on all. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_late_rows_create(const trl_simulation *sim, trli_late_rows **rows);

/* ---- run_checked.c ---- */

/* Whether devices of this rank failed whose memory is in use still. */
bool trli_devices_failed(const trl_simulation *sim);
/* The number of this rank, plus one, if a device of it failed, or had no memory, and no warning has said so; else 0. */
int64_t trli_devices_untold(const trl_simulation *sim);
/* Say so, on all ranks alike, of the largest of these numbers. */
void trli_devices_warn(const trl_simulation *sim, int64_t rank);

/* Run a program of a step from its start, once; check: look at the results of the step before, at least. *bad: as
 * trli_late_pend has it. *again: devices failed, and the CPU has to run it again. Collective: yes. */
TRL_NODISCARD trl_err trli_run_and_agree(trl_simulation *sim, trli_program *program, trl_gidx step, bool check,
                                         int *bad, bool *again);

/* ---- device_dt.c ---- */

/* Before the programs are frozen: let GPUs find dt, where they may. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_device_dt_prepare(trl_simulation *sim);
/* After the program that bounds dt: have its results on the host. Fails with DEVICE. */
TRL_NODISCARD trl_err trli_device_dt_fetch(trl_simulation *sim);
/* Of a step that a GPU has made, in the place frame->late.step: find its dt on the host, which has to be the same.
 * Fails as trli_next_step_of, without a message that counts where the step is made again. */
TRL_NODISCARD trl_err trli_device_dt_confirm(trl_simulation *sim, trli_next_step *next);
/* Whether GPUs may find the dt of the next step, and such a step, at which they may be still after it. *taken: it was
 * made; else it has to be made in another way. Fails as trli_next_step_of and trli_run_checked. */
bool trli_dt_is_on_devices(const trl_simulation *sim);
TRL_NODISCARD trl_err trli_step_on_devices(trl_simulation *sim, trli_next_step *next, bool *taken);

/* ---- late_dt.c ---- */

/* The step to come, as if it had the last dt. */
trli_next_step trli_step_like_the_last(const trl_simulation *sim);

/* Before the programs are frozen: let a step under cfl begin before dt is known, where it may. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_late_dt_prepare(trl_simulation *sim);
/* Once they are: *dt: NULL if no step does. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_late_dt_create(const trl_simulation *sim, trli_late_dt **dt);
/* Whether the next step does. */
bool trli_dt_comes_late(const trl_simulation *sim);
/* Such a step, which may be pending after it; fails as trli_next_step_of and trli_take_step. Collective: yes. */
TRL_NODISCARD trl_err trli_step_before_dt(trl_simulation *sim, trli_next_step *next);
/* Within it, whether this rank failed in what bounds dt: it computes no more, but takes part in messages. */
bool trli_late_dt_is_failed(const trl_simulation *sim);
/* After a run of a step, and after those before it are settled: if dt has come in it, the step gets it, *time is that
 * of its end, and *made what this rank has to tell. Fails as trli_next_step_of; the run does not count then. */
TRL_NODISCARD trl_err trli_late_dt_end_run(trl_simulation *sim, trl_err *made, double *time);
/* Before the host reads dt in a step: wait for it, if it is under way. Fails as trli_next_step_of. Collective: yes. */
TRL_NODISCARD trl_err trli_late_dt_await(trl_simulation *sim);

#endif
