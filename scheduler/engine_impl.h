/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* A run of a frozen graph: what the files that execute it share. Here tasks are int32 numbers, as in trl_policy.h. */
#ifndef TRL_ENGINE_IMPL_H
#define TRL_ENGINE_IMPL_H

#include "calls_impl.h"
#include "dynamic_impl.h"
#include "locks_impl.h"
#include "phases_impl.h"
#include "policy_impl.h"
#include "polls_impl.h"
#include "wide_impl.h"

/* What a task waits for: predecessors and signals. When `missing` reaches zero it is reset to `all` for the next
 * run. */
typedef struct trli_join {
    _Atomic int32_t missing;
    int32_t all;
} trli_join;

/* The state of a run. A state is made when more runs than before are in progress, and again for other workers; later
 * runs reuse it. */
typedef struct trli_run_state {
    trli_job job;
    trl_graph *graph;
    struct trli_run_state *next; /* of the list of the graph's states */
    trl_workers *workers;
    void *frame;
    uint32_t asker; /* of the messages of its tasks */
    bool taken;     /* in use by a run, which can be cancelled; guarded */
    int active;     /* workers that take part, if their number adapts */
    bool alone;     /* a single worker runs all tasks: */
    bool by_caller; /* the caller, and the others are left asleep */
    _Atomic int error;
    const trl_policy *policy;
    void *policy_state;
    trl_policy_graph view;
    trli_join *join; /* [tasks] */
    int32_t *link;   /* [tasks] in the list that holds the task: of the policy, a lock, a phase, the poll tasks */
    _Atomic int32_t *scope; /* [tasks] open tasks of a TRL_TASK_SCOPE task, itself included; NULL: there are none */
    trli_lock *lock;        /* [resources] */
    trli_wide_pool wide;
    trli_polls polls;
    trli_phases phases;
    struct trli_nodes *nodes;                           /* spawned tasks and events */
    trli_call_run *call;                                /* [calls] NULL: there are none */
    struct trli_placed_run *placed;                     /* state of a placed graph; else NULL */
    int32_t nsignalled;                                 /* tasks that wait for signals */
    int32_t *signalled;                                 /* [nsignalled] ascending */
    _Atomic int32_t *signals_left;                      /* [nsignalled] */
    uint64_t workers_serial;                            /* workers for which the state was made */
    bool explained;                                     /* a message was recorded with the error */
    bool watched;                                       /* each task is timed or traced */
    bool dirty;                                         /* the last run ended before all tasks were complete */
    int32_t wake_after;                                 /* tasks that a worker keeps before it wakes another worker */
    alignas(TRLI_CACHE_LINE) _Atomic int64_t remaining; /* tasks not complete; the run is over at zero */
    /* Low half: workers that may find or make work. High half: how often a worker began to. */
    alignas(TRLI_CACHE_LINE) _Atomic uint64_t activity;
    alignas(TRLI_CACHE_LINE) _Atomic bool ended; /* a worker is ending the run early */
    const char *failed_name; /* of the task that failed (a copy, for a spawned task); NULL: none failed */
    char copied_name[64];
    /* Times, ns. Relaxed: read after all workers have left. */
    _Atomic int64_t *run_ns;        /* [tasks] of a timed run */
    _Atomic int64_t spawned_ns;     /* of all spawned ones */
    _Atomic int64_t repeated;       /* tasks of rounds of calls after the first; no time */
    _Atomic int64_t outstanding_ns; /* time with poll tasks started and not complete */
    _Atomic int64_t idle_ns;        /* idle time of workers meanwhile, */
    _Atomic int64_t idle_late_ns;   /* and of such time what is late: */
    _Atomic int64_t late_ns;        /* time in which the worker that polls waited for what was not sent yet */
} trli_run_state;

/* What a task function knows of its run: valid while it runs. */
struct trl_run {
    trli_run_state *run;
    trli_worker *worker;
    int32_t task;
};

/* ---- run_state.c ---- */

/* Get a state for a run of the graph with these workers in a frame. USAGE if the graph is already running in this
 * frame. */
TRL_NODISCARD trl_err trli_run_take(trl_graph *graph, trl_workers *workers, const trl_policy *policy, uint64_t serial,
                                    void *frame, trli_run_state **run);
/* Return the state for later runs. Guarded. */
void trli_run_give_back(trli_run_state *run);

/* ---- run.c ---- */

void trli_run_start(trli_run_state *run, bool traced);
/* Record the time of a run, and return its error. Guarded. */
TRL_NODISCARD trl_err trli_run_finish(trli_run_state *run, int64_t ns);
/* Whether the run is over. Acquire: sees all that its tasks wrote. */
static inline bool trli_run_over(const trli_run_state *run)
{
    return atomic_load_explicit(&run->remaining, memory_order_acquire) <= 0;
}
/* Record a task's error if it is the first of the run. */
void trli_run_fail(trli_run_state *run, int32_t task, trl_err err);
/* End a run in which no task can run although tasks are left: after an error, or after a deadlock, which is
 * reported. */
void trli_run_end_early(trli_run_state *run);
/* The name of any task, spawned ones included, for messages and traces. */
const char *trli_task_name(const trli_run_state *run, int32_t task);

/* ---- engine.c ---- */

/* The job of a run. Works until nothing is found and other jobs are in progress. */
int trli_run_work(trli_job *job, trli_worker *worker);
bool trli_run_job_over(const trli_job *job);
/* A task's predecessors are complete: pass the task to its phase or to the policy. */
void trli_ready(trli_run_state *run, trli_worker *worker, int32_t task);
/* Pass it to the policy. */
void trli_hand_over(trli_run_state *run, trli_worker *worker, int32_t task);
/* One predecessor, or signal, of a task of the graph has arrived. */
void trli_arrive(trli_run_state *run, trli_worker *worker, int32_t task, int32_t n);
/* The function of a task returned for the last time: release its locks; without an open scope, complete the task. */
void trli_complete(trli_run_state *run, trli_worker *worker, int32_t task);
/* A task and its scope are complete: release successors or fire its event, and count. */
void trli_finish(trli_run_state *run, trli_worker *worker, int32_t task);
/* No task is ready, running or polled. */
bool trli_run_quiet(trli_run_state *run);
/* Call the function of a task, or skip it after an error. chunk: TRLI_NONE for all chunks in one call. Returns
 * whether the task is done. again: the task was called in this run before and asked for more. */
bool trli_task_call(trli_run_state *run, trli_worker *worker, int32_t task, int chunk, bool again);

/* ---- pools.c ---- */

/* Deal workers to the pools for the next run, using the measurements of this run. */
void trli_pools_adapt(const trli_run_state *run, int count, trli_worker *worker);

static inline trli_task_record *trli_record(const trli_run_state *run, int32_t task)
{
    return task < run->view.tasks ? &trli_graph_records(run->graph)[task] : trli_node_record(run, task);
}

static inline int32_t *trli_link(const trli_run_state *run, int32_t task)
{
    return task < run->view.tasks ? &run->link[task] : trli_node_link(run, task);
}

/* Whether the completion of a task can depend on other tasks: the task has a scope, or is spawned and may be in one. */
static inline bool trli_is_scoped(const trli_run_state *run, int32_t task)
{
    return task >= run->view.tasks || trli_graph_records(run->graph)[task].flags & TRL_TASK_SCOPE;
}

/* The resources that a task wants; returns their number. */
static inline int32_t trli_wants(const trli_run_state *run, int32_t task, const trli_want **want)
{
    if (task >= run->view.tasks) return trli_node_wants(run, task, want);
    const int32_t *first = run->graph->want_first;
    *want = run->graph->want + first[task];
    return first[task + 1] - first[task];
}

#endif
