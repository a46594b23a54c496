/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Inside of a task graph: what freeze makes for policies and runs. Everything is a flat array; tasks are int32
 * indices. */
#ifndef TRL_GRAPH_IMPL_H
#define TRL_GRAPH_IMPL_H

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include <trl_graph.h>
#include <trl_policy.h>

#include "active_impl.h"
#include "clock_impl.h"
#include "context_impl.h"

/* Flags beside those of trl_graph.h: they mark tasks that need a slow path. */
enum {
    TRLI_TASK_WANTS = 1 << 8,      /* locks or uses resources */
    TRLI_TASK_PHASED = 1 << 9,     /* its type belongs to a phase */
    TRLI_TASK_WIDE = 1 << 10,      /* has several chunks */
    TRLI_TASK_EVENT = 1 << 11,     /* a node without a function, see dynamic.c */
    TRLI_TASK_RANKED = 1 << 12,    /* its description says how urgent it is */
    TRLI_TASK_SIGNALLED = 1 << 13, /* waits for signals, too */
    TRLI_TASK_CALL = 1 << 14,      /* a call, and */
    TRLI_TASK_END = 1 << 15,       /* the end of its rounds, see calls_impl.h */
};

/* The part of a task that runs read: half a cache line. */
typedef struct trli_task_record {
    trl_task_fn run;
    void *data;
    int32_t first, end; /* its successors: graph->successors[first..end), the most urgent first */
    int32_t chunks;
    uint16_t flags;
    uint8_t urgency, type;
} trli_task_record;

/* The rest of a task's description. */
typedef struct trli_task_info {
    int64_t name; /* offset in graph->names */
    double cost;
    double bytes, flops; /* 0: unknown */
    int32_t signals;
    int8_t priority;
    uint8_t kind; /* of the executor that runs the task */
    trl_variant variant[TRL_KINDS];
} trli_task_info;

typedef struct trli_dependency {
    int32_t before, after;
} trli_dependency;

/* The last accesses to a piece of data while the graph is built: lists in graph->touches, -1 if empty. */
typedef struct trli_touched {
    int32_t writers;    /* one writer; or several that wrote parts or added */
    int32_t readers;    /* readers since the writers */
    int32_t before;     /* tasks that each of several writers follows */
    int32_t mode, part; /* of the writers: a trl_access, and whose data it is */
} trli_touched;

typedef struct trli_touch {
    int32_t task;
    int32_t next; /* -1: end of the list */
} trli_touch;

typedef struct trli_added_access {
    int32_t task, handle, mode, part;
} trli_added_access;

typedef struct trli_resource {
    int64_t name;   /* offset in graph->names */
    int32_t parent; /* -1: none */
    const void *data;
    size_t bytes;
} trli_resource;

enum { TRLI_USE, TRLI_LOCK };

/* A task wants a resource, while the graph is built. */
typedef struct trli_wish {
    int32_t task, resource, mode;
} trli_wish;

/* A want of a task. A task's wants are ascending, without repetitions and without those that an ancestor covers. In
 * a frozen graph each ancestor is listed too, with its mode. */
typedef struct trli_want {
    int32_t resource, mode;
} trli_want;

/* All on which the launches of a graph's calls by a device depend, in a frame, but the contents of the memory of
 * devices: equal bytes, equal launches. data: of the graph's memory; to: room for the bytes, whose number is returned;
 * NULL: for the number alone, which does not change. Thread: the one that runs the graph. */
typedef size_t (*trli_state_fn)(void *data, void *frame, int space, void *to);

struct trl_graph {
    trl_context *ctx;
    char *name;
    uint32_t serial;           /* upper half of the names of the graph's tasks, handles and resources */
    bool sealed, frozen;       /* freeze was called; freeze succeeded */
    bool timing, costs, leads; /* costs: some task has one; leads: trli_graph_set_leading */
    unsigned flags;            /* flags of any of its tasks */
    unsigned kinds;            /* kinds of executor for which some task has a variant, a bit each */
    int32_t task_count, polls; /* tasks; tasks with TRL_TASK_POLL */
    int32_t scopes;            /* tasks with TRL_TASK_SCOPE */

    /* Growing while the graph is built; edges to wishes are released by freeze. */
    trli_list records;   /* trli_task_record */
    trli_list info;      /* trli_task_info */
    trli_list names;     /* char: all names, NUL between them */
    trli_list resources; /* trli_resource */
    trli_list phases;    /* trli_phase */
    trli_list handles;   /* trl_policy_handle */
    trli_list homes;     /* int32_t, of each handle, as trli_graph_set_home says; empty: none has one */
    trli_list pieces;    /* int32_t, of each handle: boxes in which it lies; empty: one each */
    trli_list follows;   /* int32_t, of each handle: see trl_placement_problem; empty: no handles rotate */
    trli_list edges;     /* trli_dependency */
    trli_list touched;   /* trli_touched, of each handle */
    trli_list touches;   /* trli_touch */
    trli_list accesses;  /* trli_added_access */
    trli_list wishes;    /* trli_wish */
    trli_list calls;     /* trli_call; those in bodies from freeze on */

    /* Made by freeze. */
    int32_t *successors;
    int32_t *predecessors;  /* number of predecessors of each task */
    int32_t *order;         /* topological, first in first out */
    int32_t nroots, *roots; /* tasks without predecessors and signals, by class, then as added */
    double *weight;         /* critical path from the start of the task to the end of the graph */
    double *path;           /* scratch of trl_graph_get_stats and of ranking */
    int32_t *call_of;       /* [tasks] the call in whose body a task is, or whose end it is; -1: none. NULL: no calls */
    struct trli_shown_calls *shown; /* calls_impl.h; NULL: there are no calls */
    int32_t *first;                 /* [tasks + 1] the records' ranges of successors, for policies */
    int32_t *want_first;            /* [tasks + 1] wants of a task: want[want_first[t]..want_first[t + 1]) */
    trli_want *want;
    int32_t *access_first; /* [tasks + 1] accesses of a task: access[access_first[t]..access_first[t + 1]) */
    trl_policy_access *access;
    double ranked_tau_inf;            /* critical path at the last ranking */
    trl_graph_memory memory;          /* memory of handles; all NULL: there is none */
    trli_state_fn state;              /* of calls by devices; NULL: unknown */
    struct trli_placed *placed;       /* of a graph that runs in place of another one; else NULL */
    struct trli_placement *placement; /* of a graph that has, or may get, another one to run in its place; else NULL */
    pthread_mutex_t placing;          /* held while `placed` changes; that of the leader may be taken inside */
    trl_graph *leader;                /* of trl_graph_follow, or NULL */

    /* State of the runs: see engine_impl.h. The guard is held while the following members are read or written, and
     * while ranks change: only when no run, or no other run, is in progress. */
    _Atomic bool guard;
    int in_progress;               /* runs */
    struct trli_run_state *states; /* states of runs in progress, and of past runs for reuse */
    const char *failed_name;       /* name of the task that failed in the run that ended last; NULL: none */
    char copied_name[64];          /* storage of the name of a spawned task */
    int workers;                   /* of the last run */
    trli_active active;            /* of workers that adapt */

    /* Timing. */
    double *mean_s[TRL_KINDS];     /* by kind of executor and task, moving average; 0: never timed */
    int64_t outstanding_ns;        /* of all runs, with poll tasks started and not complete */
    double idle_share, late_share; /* ns: of all runs, of workers idle meanwhile, divided by how many took part */
    int64_t runs, timed_runs, spawned, repeated;
    double timed_wall, timed_share; /* s: of timed runs; of their tasks divided by the number of workers */
};

static inline void trli_graph_lock(trl_graph *graph)
{
    while (atomic_exchange_explicit(&graph->guard, true, memory_order_acquire)) sched_yield();
}

static inline void trli_graph_unlock(trl_graph *graph)
{
    atomic_store_explicit(&graph->guard, false, memory_order_release);
}

static inline trli_task_record *trli_graph_records(const trl_graph *graph)
{
    return graph->records.data;
}

static inline trli_task_info *trli_graph_info(const trl_graph *graph)
{
    return graph->info.data;
}

static inline const char *trli_graph_text(const trl_graph *graph, int64_t at)
{
    return (const char *)graph->names.data + at;
}

/* Whether a task is ready when a run begins. */
static inline bool trli_graph_is_root(const trl_graph *graph, int32_t task)
{
    if (graph->predecessors[task] > 0) return false;
    return !(graph->flags & TRLI_TASK_SIGNALLED && trli_graph_records(graph)[task].flags & TRLI_TASK_SIGNALLED);
}

const char *trli_graph_task_name(const trl_graph *graph, int32_t task);
/* Append text and its NUL to the names. */
TRL_NODISCARD trl_err trli_graph_add_name(trl_graph *graph, const char *text, int64_t *at);

/* Calls by GPUs do nothing but trli_gpu_enqueue: they may be left out where it is known what they enqueue. Before the
 * first run. */
void trli_graph_set_state(trl_graph *graph, trli_state_fn state);

/* Add a dependency between tasks. */
TRL_NODISCARD trl_err trli_graph_add_edge(trl_graph *graph, int32_t before, int32_t after);
/* The boxes of a handle's data, each of which takes the latency of a copy. */
/* Of data that other graphs touch between the runs of this one: a number from 1 on that is the same in all of them.
 * Tasks that write data of one home are placed together where neighbours are, so that it stays where it is. */
TRL_NODISCARD trl_err trli_graph_set_home(trl_graph *graph, trl_handle handle, int32_t home);
TRL_NODISCARD trl_err trli_graph_set_pieces(trl_graph *graph, trl_handle handle, int32_t pieces);
/* Sort the accesses by their tasks, each handle once; complete the list of what rotates. */
TRL_NODISCARD trl_err trli_graph_flatten_accesses(trl_graph *graph);
/* USAGE if the graph is frozen. */
TRL_NODISCARD trl_err trli_graph_check_open(trl_graph *graph);
/* The index behind a public name; USAGE if the name is of another graph. */
TRL_NODISCARD trl_err trli_graph_task(trl_graph *graph, trl_task name, int32_t *task);
TRL_NODISCARD trl_err trli_graph_resource(trl_graph *graph, trl_resource name, int32_t *resource);
/* Whether a public name belongs to one of this graph's `count` things of a kind. */
static inline bool trli_graph_owns(const trl_graph *graph, int64_t name, int64_t count)
{
    return name >= 0 && name >> 32 == graph->serial && (int64_t)(uint32_t)name < count;
}
static inline int64_t trli_graph_public(const trl_graph *graph, int32_t index)
{
    return (int64_t)graph->serial << 32 | index;
}

/* Flatten the edges into successors, predecessors and order. */
TRL_NODISCARD trl_err trli_graph_flatten(trl_graph *graph);
/* Check the resources, and normalise and flatten the wants of tasks. */
TRL_NODISCARD trl_err trli_graph_flatten_resources(trl_graph *graph);
/* Bring n wants of one task into the form of trli_want; returns how many are left. */
int32_t trli_graph_normalise_wants(const trl_graph *graph, int32_t n, trli_want *want);
/* Check the phases against the dependencies, and mark their tasks. */
TRL_NODISCARD trl_err trli_graph_flatten_phases(trl_graph *graph);

/* Find weights and urgencies from the times known now, and sort successors and roots by them. */
void trli_graph_rank(trl_graph *graph);
/* Whether measured times have moved so far from those of the last ranking that a new ranking is worth its time. */
bool trli_graph_ranks_drifted(const trl_graph *graph);
/* Fold the time of a task, run by an executor of a kind, into its moving average. */
void trli_graph_average_time(trl_graph *graph, int32_t task, trl_kind kind, double seconds);
/* Fold the times of a timed run, by task, into the moving averages of the kinds that ran them, and clear the times. */
void trli_graph_average_times(trl_graph *graph, _Atomic int64_t *run_ns);
/* Free the memory of runs. */
void trli_run_states_destroy(trl_graph *graph);

#endif
