/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Inside of a run: what the files that execute a frozen graph share. Here tasks are int32 numbers, as in trl_policy.h. */
#ifndef TRL_ENGINE_IMPL_H
#define TRL_ENGINE_IMPL_H

#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>

#include "graph_impl.h"

enum { TRLI_CACHE_LINE = 64, TRLI_NONE = -1 };

/* A member that keeps what lies before it from what follows: processors that fetch a line of memory may fetch its neighbour, too. */
#define TRLI_APART(name) char name[TRLI_CACHE_LINE]

struct trli_worker;

/* What came of working on a job, as bits: there was something to do; the job was left before it was over. */
enum { TRLI_WORKED = 1, TRLI_NOT_OVER = 2 };

/* Something that workers do together: a run of a graph or of a loop, of which it is the first member. */
typedef struct trli_job {
    /* Work on it until it is over, or there is nothing to do for this worker. */
    int (*work)(struct trli_job *job, struct trli_worker *worker);
    /* Nothing is left to begin with. */
    bool (*over)(const struct trli_job *job);
} trli_job;

/* What a task waits for: predecessors, and signals. Back to `all` when it comes to zero, ready for the next run. */
typedef struct trli_join {
    _Atomic int32_t missing;
    int32_t all;
} trli_join;

/* One thread of a trl_workers. Members are used by that thread only, but for the atomic ones. */
typedef struct trli_worker {
    alignas(TRLI_CACHE_LINE) trl_workers *workers;
    pthread_t thread;
    int index;
    uint32_t turn;                /* of the job that it is at, as its caller says */
    _Atomic bool operators;       /* prefers chunks of wide tasks */
    int32_t next;                 /* released by the task before, runs next; TRLI_NONE: none */
    int32_t pushed;               /* tasks given to the policy and not taken back, roughly: what others could do */
    int64_t completed;            /* tasks, not yet subtracted from the run's remaining */
    int64_t credit;               /* part of the run's remaining: for tasks that this worker may still spawn */
    _Atomic int64_t foreign;      /* takes from the pool that it does not prefer */
    struct trli_trace_lane *lane; /* NULL: no trace */
    TRLI_APART(before);
    /* A caller waits here. */
    alignas(TRLI_CACHE_LINE) _Atomic(trli_job *) at; /* the job that it is at; not said of worker 0, the caller */
    const void *shared[2], *own; /* lines with which its last job began, read and written: it may be the next one too */
    TRLI_APART(after);
} trli_worker;

/* Chunks fall into one share of neighbours per worker. A worker hands itself those of its own share, then of the others': from task to
 * task it meets the same part of the data, which its cache still holds. */
typedef struct trli_share {
    /* Chunks handed out, and in the high half in which turn: in any other turn there are none yet. */
    alignas(TRLI_CACHE_LINE) _Atomic uint64_t handed_out;
    int32_t first, count;     /* chunks */
    _Atomic int32_t complete; /* chunks of the whole wide task; in the first share only */
    TRLI_APART(after);
} trli_share;

/* The operator pool: wide tasks in the order in which they became ready, each in a slot of its own. */
typedef struct trli_wide_pool {
    alignas(TRLI_CACHE_LINE) _Atomic int32_t head; /* next slot to take from */
    alignas(TRLI_CACHE_LINE) _Atomic int32_t tail; /* next slot to fill */
    _Atomic int32_t *slot;                         /* [count + 1] TRLI_NONE: empty, as the last one always is */
    int32_t count, shares;                         /* wide tasks; shares of each */
    int32_t *first_share;                          /* [tasks] of wide tasks, in `share` */
    trli_share *share;
    uint32_t turn; /* of the shares: a run */
} trli_wide_pool;

/* How a task wants a resource, beside TRLI_USE and TRLI_LOCK: it wants one below. What spawned tasks want is stored without
 * the resources above, to which TRLI_UNFOLD refers. */
enum { TRLI_USE_BELOW = 2, TRLI_LOCK_BELOW = 3, TRLI_MODES = 4, TRLI_UNFOLD = 8 };
enum { TRLI_RESOURCE_LEVELS = 64, TRLI_SPAWN_WANTS = 4 /* at most */ };

/* A resource in a run, see locks.c. */
typedef struct trli_lock {
    alignas(TRLI_CACHE_LINE) _Atomic uint64_t state; /* what is granted here and below; for which modes tasks wait */
    _Atomic bool busy;                               /* guards what follows */
    int8_t turn;                                     /* mode whose list is looked at first */
    int32_t first[TRLI_MODES], last[TRLI_MODES];     /* lists of waiting tasks, by their links */
} trli_lock;

/* Started poll tasks. */
typedef struct trli_polls {
    alignas(TRLI_CACHE_LINE) _Atomic int32_t open; /* started and not complete */
    _Atomic bool owned;                            /* a worker tests them, and owns `waiting` */
    _Atomic int64_t tested_ns;                     /* when a round ended last */
    _Atomic int32_t started;                       /* not yet seen by an owner, by their links */
    int32_t waiting;                               /* the others, by their links */
} trli_polls;

typedef struct trli_phases {
    int count;
    int16_t of_type[TRL_TASK_TYPES]; /* phase or TRLI_NONE */
    _Atomic int current;
    _Atomic int64_t *open; /* [count] tasks that exist and are not complete */
    int64_t *at_start;     /* [count] of the graph */
    int32_t *held;         /* [count] ready tasks of phases that do not have the turn, by their links */
    pthread_mutex_t lock;  /* guards held and the turn */
} trli_phases;

/* All that a graph keeps for its runs; made by the first one, and again when the workers are others. */
typedef struct trli_run {
    trli_job job;
    trl_graph *graph;
    trl_workers *workers;
    const trl_policy *policy;
    void *policy_state;
    trl_policy_graph view;
    trli_join *join;        /* [tasks] */
    int32_t *link;          /* [tasks] of the list that a task is on: of the policy, a lock, a phase, the poll tasks */
    _Atomic int32_t *scope; /* [tasks] open tasks of a TRL_TASK_SCOPE task, itself included; NULL: there are none */
    trli_lock *lock;        /* [resources] */
    trli_wide_pool wide;
    trli_polls polls;
    trli_phases phases;
    struct trli_nodes *nodes;                           /* spawned tasks and events */
    int32_t nsignalled;                                 /* tasks that wait for signals */
    int32_t *signalled;                                 /* [nsignalled] ascending */
    _Atomic int32_t *signals_left;                      /* [nsignalled] */
    uint64_t workers_serial;                            /* of the workers it was made for */
    bool explained;                                     /* a message was recorded with the error */
    bool watched;                                       /* each task is timed or traced */
    bool dirty;                                         /* the last run ended before all tasks were complete */
    int32_t wake_after;                                 /* tasks that a worker keeps before it wakes another one */
    alignas(TRLI_CACHE_LINE) _Atomic int64_t remaining; /* tasks not complete; the run is over at zero */
    /* Low half: workers that may find or make work. High half: how often one began to. */
    alignas(TRLI_CACHE_LINE) _Atomic uint64_t activity;
    alignas(TRLI_CACHE_LINE) _Atomic bool ended; /* a worker ends the run early */
    const char *failed_name;                     /* of the task that failed, of a spawned one a copy; NULL: none */
    char copied_name[64];
} trli_run;

/* What a task function knows of its run: valid while it runs. */
struct trl_run {
    trli_run *run;
    trli_worker *worker;
    int32_t task;
};

/* Have a line at hand to write; of an address that is gone it does nothing. */
static inline void trli_prefetch_to_write(const void *line)
{
#if defined(__x86_64__)
    __asm__ volatile("prefetchw (%0)" : : "r"(line)); /* compilers that do not know the processor only fetch to read */
#else
    __builtin_prefetch(line, 1);
#endif
}

/* ---- workers.c ---- */

/* One step of waiting: a pause of the processor, or a yield where threads outnumber cores. */
void trli_workers_pause(const trl_workers *workers);
/* Sleep for a while, or until woken, unless the job is over. A sleeping worker holds no task, so a wake-up that comes too early or is lost costs
 * time and nothing else. */
void trli_workers_sleep(trl_workers *workers, const trli_job *job);
/* Wake a sleeping worker if there is one; all of them. */
void trli_workers_wake_one(trl_workers *workers);
void trli_workers_wake_all(trl_workers *workers);
/* Whether there are other jobs in progress. */
bool trli_workers_wanted_elsewhere(const trl_workers *workers);
/* A place for a job among those in progress, for trli_workers_do; TRLI_NONE: all are taken. */
int trli_workers_claim(trl_workers *workers);
/* Have the workers do a job, ready to begin, the caller among them; returns when it is over and nobody is at it any more. Workers learn the
 * turn, any number, without reading a line of the job. */
void trli_workers_do(trl_workers *workers, int place, trli_job *job, uint32_t turn);
/* The trace of the workers, or NULL. */
trl_trace *trli_workers_trace(const trl_workers *workers);

/* ---- run.c ---- */

/* Make what the runs of a graph with these workers need; ready it for one run. */
TRL_NODISCARD trl_err trli_run_create(trl_graph *graph, trl_workers *workers, const trl_policy *policy,
                                      uint64_t serial);
void trli_run_start(trli_run *run, bool traced);
/* Account for a run that took so long, and return its error. */
TRL_NODISCARD trl_err trli_run_finish(trli_run *run, int64_t ns);
/* Whether the run is over. Acquire: sees all that its tasks wrote. */
static inline bool trli_run_over(const trli_run *run)
{
    return atomic_load_explicit(&run->remaining, memory_order_acquire) <= 0;
}
/* Record a task's error, if it is the run's first. */
void trli_run_fail(trli_run *run, int32_t task, trl_err err);
/* End a run in which nothing can happen any more though tasks are left: after an error, or a stall, which is reported. */
void trli_run_end_early(trli_run *run);
/* The name of any task, for messages and traces. */
const char *trli_task_name(const trli_run *run, int32_t task);

/* ---- engine.c ---- */

/* The job of a run. Until nothing is found here and other jobs are in progress. */
int trli_run_work(trli_job *job, trli_worker *worker);
bool trli_run_job_over(const trli_job *job);
/* Whether the calling thread is at a job already; say that it is, or is no more. */
bool trli_is_inside(void);
void trli_set_inside(bool inside);
/* A task's predecessors are complete: hand it to its phase or the policy. */
void trli_ready(trli_run *run, trli_worker *worker, int32_t task);
/* Hand it to the policy. */
void trli_hand_over(trli_run *run, trli_worker *worker, int32_t task);
/* One thing less that a task of the graph waits for. */
void trli_arrive(trli_run *run, trli_worker *worker, int32_t task, int32_t n);
/* The function of a task returned for good: release its locks; without open scope, finish it. */
void trli_complete(trli_run *run, trli_worker *worker, int32_t task);
/* A task and its scope are complete: release successors or fire its event, and count. */
void trli_finish(trli_run *run, trli_worker *worker, int32_t task);
/* Nothing is ready, under way or being tested. */
bool trli_run_quiet(trli_run *run);
/* Call the function of a task, or skip it after an error. Returns whether it is complete; `again`: it was called in this run before
 * and asked for more. */
bool trli_call(trli_run *run, trli_worker *worker, int32_t task, int chunk, bool again);

/* ---- wide.c ---- */

/* Deal chunks evenly to shares, and begin to count turns. */
void trli_shares_deal(trli_share *share, int32_t shares, int64_t chunks);
/* The next chunks for a worker: the first, and how many; or TRLI_NONE. Each is handed out once in a turn; a turn begins, with the next
 * number, when all have left the one before. */
int32_t trli_shares_take(trli_share *share, int32_t shares, uint32_t turn, int worker, int *count);
/* Whether all chunks of a share are handed out. */
bool trli_share_over(const trli_share *share, uint32_t turn);
TRL_NODISCARD trl_err trli_wide_create(trli_run *run);
void trli_wide_destroy(trli_run *run);
void trli_wide_start(trli_run *run);
/* Put a task's chunks up for taking. */
void trli_wide_open(trli_run *run, int32_t task);
/* Chunks to work on, `count` from `chunk` on, and their task; or TRLI_NONE. */
int32_t trli_wide_take(trli_run *run, const trli_worker *worker, int *chunk, int *count);
bool trli_wide_visible(const trli_run *run);
/* So many chunks are done; whether they were the last of their task. */
bool trli_wide_done(trli_run *run, int32_t task, int count);

/* ---- polls.c ---- */

void trli_polls_start(trli_run *run);
/* A poll task asked for more. */
void trli_poll_later(trli_run *run, int32_t task);
/* Become the one who tests poll tasks, if there are any and nobody does. */
bool trli_polls_own(trli_run *run);
void trli_polls_disown(trli_run *run);
/* ns of all runs so far with poll tasks open; negative: unknown just now, one worker notes an end and another a beginning. */
int64_t trli_polls_outstanding(const trli_run *run);
/* Call all started poll tasks once. Only by their owner. */
void trli_polls_round(trli_run *run, trli_worker *worker);
/* Between two tasks: a round, when the last one is long ago. */
void trli_polls_if_due(trli_run *run, trli_worker *worker);

/* ---- locks.c ---- */

TRL_NODISCARD trl_err trli_locks_create(trli_run *run);
void trli_locks_destroy(trli_run *run);
void trli_locks_start(trli_run *run);
/* Take all of n wants at once: true. Or leave the task waiting at the first that is not to be had, holding nothing: false. It comes
 * back through trli_hand_over and must then come here again, after an error too; when this returns false it may be complete already. */
bool trli_locks_acquire(trli_run *run, trli_worker *worker, int32_t task, int32_t n, const trli_want *want);
void trli_locks_release(trli_run *run, trli_worker *worker, int32_t n, const trli_want *want);

/* ---- graph_resources.c ---- */

/* Add to the normalised wants of a task those above them: each resource once with its mode, ascending. There is room. Returns how
 * many there are. */
int32_t trli_graph_unfold_wants(const trl_graph *graph, int32_t n, trli_want *want);

/* ---- phases.c ---- */

TRL_NODISCARD trl_err trli_phases_create(trli_run *run);
void trli_phases_destroy(trli_run *run);
void trli_phases_start(trli_run *run);
/* Whether a ready task's phase has the turn; if not, it is held back. */
bool trli_phase_admits(trli_run *run, int32_t task);
/* A task of a type was spawned; one is complete. */
void trli_phase_enter(trli_run *run, trli_worker *worker, int type);
void trli_phase_leave(trli_run *run, trli_worker *worker, int type);

/* ---- dynamic.c ---- */

TRL_NODISCARD trl_err trli_nodes_create(trli_run *run);
void trli_nodes_destroy(trli_run *run);
/* After a run: how many tasks were spawned in it. */
int64_t trli_nodes_finish(trli_run *run);
/* Forget all nodes: after a run that ended early. */
void trli_nodes_clear(trli_run *run);
trli_task_record *trli_node_record(const trli_run *run, int32_t task);
int32_t *trli_node_link(const trli_run *run, int32_t task);
const char *trli_node_name(const trli_run *run, int32_t task);
int32_t trli_node_wants(const trli_run *run, int32_t task, const trli_want **want);
/* A spawned task is complete: fire its event, count down what it signals. */
void trli_node_complete(trli_run *run, trli_worker *worker, int32_t task);
/* A task that has a scope, or is in one, is complete: close what that completes. */
void trli_scope_leave(trli_run *run, trli_worker *worker, int32_t task);
/* Append to text what the waiting nodes wait for. */
void trli_nodes_report(const trli_run *run, FILE *out, int most);

static inline trli_task_record *trli_record(const trli_run *run, int32_t task)
{
    return task < run->view.tasks ? &trli_graph_records(run->graph)[task] : trli_node_record(run, task);
}

static inline int32_t *trli_link(const trli_run *run, int32_t task)
{
    return task < run->view.tasks ? &run->link[task] : trli_node_link(run, task);
}

/* Whether a task counts as complete only when others are: it has a scope, or is spawned and may be in one. */
static inline bool trli_is_scoped(const trli_run *run, int32_t task)
{
    return task >= run->view.tasks || trli_graph_records(run->graph)[task].flags & TRL_TASK_SCOPE;
}

/* What a task wants; returns how many. */
static inline int32_t trli_wants(const trli_run *run, int32_t task, const trli_want **want)
{
    if (task >= run->view.tasks) return trli_node_wants(run, task, want);
    const int32_t *first = run->graph->want_first;
    *want = run->graph->want + first[task];
    return first[task + 1] - first[task];
}

/* ---- policies.c, pools.c ---- */

/* The policy of a name; library: of a plugin, to be closed. */
TRL_NODISCARD trl_err trli_policy_find(trl_context *ctx, const char *name, const trl_policy **policy, void **library);
void trli_policy_close(void *library);

/* Deal workers to the pools for the next run, from what this one showed. */
void trli_pools_adapt(const trli_run *run, int count, trli_worker *worker);

extern const trl_policy trli_policy_serial, trli_policy_priority;

#endif
