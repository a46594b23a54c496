/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Policies: in which order and by whom the ready tasks of a run are executed (queue policies), and which executor does
 * which task of a graph (placement policies). Dependencies, locks, phases, spawned tasks, wide tasks, errors and
 * communication are the runtime's: a queue policy only keeps the ready tasks between `ready` and `take`, a placement
 * policy only fills an assignment before a run, where there are devices.
 *
 * A policy plugin is a shared object that exports a datum, which is checked before any of its functions is called:
 * `const trl_policy trl_policy_plugin`, `const trl_placement_policy trl_placement_plugin`, or both. With a placement
 * policy alone the queues are those of `priority`. */
#ifndef TRL_POLICY_H
#define TRL_POLICY_H

#include <stdbool.h>
#include <stdint.h>

#include <trl_graph.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { TRL_POLICY_ABI = 2 };

/* The built-in policies. X(name, runs, doc): `runs` is the policy that has the work done. */
#define TRL_POLICY_LIST(X)                                                                          \
    X(serial, serial, "first in, first out on one thread: the reference")                           \
    X(priority, priority, "most urgent first, on queues of each worker that the others steal from") \
    X(hybrid, priority, "priority, and devices do the tasks that are placed on them")

/* What a task does with a piece of data. */
typedef struct trl_policy_access {
    int32_t handle; /* 0 <= handle < handles */
    int32_t mode;   /* a trl_access */
    int32_t part;   /* of the data, the caller's number */
} trl_policy_access;

typedef struct trl_policy_handle {
    int64_t name;  /* for trl_policy_handle_name */
    size_t bytes;  /* 0: unknown */
    int64_t block; /* whose memory it is */
    int64_t key;   /* the caller's number for it */
} trl_policy_handle;

/* A frozen graph, as policies see it. Tasks are numbers: 0 <= task < tasks those of the graph in the order added, above
 * them spawned ones, whose numbers are used again. All arrays live as long as the graph; `weight`, `roots` and the
 * order of `successors` change between runs. */
typedef struct trl_policy_graph {
    trl_context *ctx;
    int workers; /* 0 <= worker < workers below */
    int32_t tasks;
    int32_t nroots;
    const int32_t *roots; /* tasks that are ready when a run begins, by class, then in the order added */
    const double
        *weight; /* [tasks] the critical path from the task's start to the end of the graph, in s or units of cost */
    /* Successors of t: successors[first[t]] .. successors[first[t + 1] - 1], the most urgent first. */
    const int32_t *first, *successors;
    /* Data, and what the graph's tasks do with it: access[access_first[t]] .. access[access_first[t + 1] - 1], each
     * handle once. */
    int32_t handles;
    const trl_policy_handle *handle;
    const int32_t *access_first;
    const trl_policy_access *access;
} trl_policy_graph;

/* Whether a name is that of a built-in policy. */
TRL_API bool trl_policy_is_known(const char *name);

enum { TRL_URGENCIES = 8 };

/* The life of a policy's state:
 *     setup                            before the first run of a graph with the workers
 *       start, or ready for each root  a run begins: no worker is inside
 *       ready, take, holds, completed  by the workers, at once
 *       finish                         the run is over: no worker is inside
 *     teardown                         before the graph or the workers go
 * A graph that is in several runs at once has a state for each. */
typedef struct trl_policy {
    uint32_t size;    /* sizeof(trl_policy) */
    uint32_t abi;     /* TRL_POLICY_ABI */
    const char *name; /* identity: lower case */
    /* Take the successor just released before asking `take`: what the finished task touched is still in the worker's
     * cache. */
    bool run_next;
    /* Only the caller of trl_graph_run works, and nothing of the run is atomic. */
    bool serial;

    /* REQUIRED. Allocate what runs of this graph need. *state may stay NULL. Thread: the caller of the first run; no
     * lock held. */
    trl_err (*setup)(const trl_policy_graph *graph, void **state);

    /* REQUIRED. Release it; *state may be NULL or half made. Thread: as setup. */
    void (*teardown)(const trl_policy_graph *graph, void **state);

    /* OPTIONAL. A run begins, and these tasks are ready, the most urgent first. Absent: `ready` is called for each by
     * worker 0. Thread: the caller of the run, before any worker is inside. */
    void (*start)(void *state, int32_t nroots, const int32_t *roots);

    /* REQUIRED. A task became ready: keep it. urgency: its class by priority, then weight: 0 (to be served first) ..
     * TRL_URGENCIES - 1. Thread: any worker, at any time in a run. */
    void (*ready)(void *state, int worker, int32_t task, int urgency);

    /* REQUIRED. Give one ready task to the worker, or -1. What was written before `ready(task)` is visible after
     * `take` returned it (release and acquire). May miss a task for a while, but not for ever. Thread: as ready. */
    int32_t (*take)(void *state, int worker);

    /* REQUIRED. Whether any task is kept: never false while one is and no other call is going on. Thread: as ready. */
    bool (*holds)(void *state);

    /* OPTIONAL. A task is complete and its successors are not yet released: a policy may, for example, start
     * transfers of its results. Thread: as ready. */
    void (*completed)(void *state, int worker, int32_t task);

    /* OPTIONAL. The run is over: keep nothing (after an error some tasks were never taken). Thread: as start. */
    void (*finish)(void *state);
} trl_policy;

/* Kinds of executor that a task has a variant for: a bit 1 << kind for each. */
TRL_API unsigned trl_policy_kinds(const trl_policy_graph *graph, int32_t task);
TRL_API const char *trl_policy_handle_name(const trl_policy_graph *graph, int32_t handle);
/* The i-th access of any task, spawned tasks included, from `ready` until the task is complete; false: it has fewer. */
TRL_API bool trl_policy_task_access(const trl_policy_graph *graph, int32_t task, int32_t i, trl_policy_access *access);
/* The class of a task: what `ready` is told. */
TRL_API int trl_policy_urgency(const trl_policy_graph *graph, int32_t task);
/* Four bytes for each task, which the policy owns from `ready` until `take` returns the task: linked lists of any
 * length need no memory. */
TRL_API int32_t *trl_policy_link(const trl_policy_graph *graph, int32_t task);

/* ---- placement policies ---- */

/* What a placement policy sees: a graph, and executors with the times that they take. Executor 0 are the workers, whose
 * data is in the host's memory, the others are devices. Valid during a call. */
typedef struct trl_placement_problem {
    trl_context *ctx;
    const char *graph; /* its name */
    int executors;
    const trl_kind *kind; /* [executors] */
    const int *parallel;  /* [executors] tasks at once */
    const double *launch; /* [executors] s that a call costs beside its work */
    const size_t *bytes;  /* [executors] of the memory; 0: any number */
    int32_t tasks;
    const int32_t *first, *successors; /* of t: successors[first[t]] .. successors[first[t + 1] - 1] */
    const int32_t *order;              /* [tasks] topological */
    /* Of t: access[access_first[t]] .. access[access_first[t + 1] - 1]; none of tasks in bodies of calls: those of the
     * calls say what is touched. */
    const int32_t *access_first;
    const trl_policy_access *access;
    int32_t handles;
    const trl_policy_handle *handle; /* handles of one `block` share its memory */
    const uint16_t *eligible;        /* [tasks] executors that have a variant for it, a bit 1 << e each; never 0 */
    const double *seconds;           /* [tasks][executors] measured or estimated; 0 where it is not eligible */
    const int32_t *unit; /* [tasks] the first of the tasks that need one executor with it: they make a value together */
    const struct trli_placement *of;
    const int32_t *follows; /* [handles] the handle whose data after a run is this one's before the next (see
                               trl_graph_rotate); NULL: itself, for all */
} trl_placement_problem;

/* The life of a placement policy's state:
 *     setup     before the first placement of a graph with the workers
 *     place     when all executors were timed; again when times have drifted, kernels have changed or a device is left
 *               out; and without a run, by estimates, for plans and before the first run
 *     teardown  before the graph or the workers go, or after a call that failed
 * After `place` the assignment is checked: executors that may do their tasks, one for each unit, memory that suffices.
 * One that fails the check is a PLUGIN error that names the policy and the task. As for built-in placements, what one
 * executor alone did faster is done so. */
typedef struct trl_placement_policy {
    uint32_t size;    /* sizeof(trl_placement_policy) */
    uint32_t abi;     /* TRL_POLICY_ABI */
    const char *name; /* identity: lower case */

    /* OPTIONAL. Allocate what placing this graph needs; *state is NULL. Thread: the caller of a run. */
    trl_err (*setup)(const trl_placement_problem *view, void **state);

    /* REQUIRED. Fill executor[tasks]; it is the workers for all at first. The same view has to give the same result.
     * Thread: as setup. */
    trl_err (*place)(void *state, const trl_placement_problem *view, uint8_t *executor);

    /* OPTIONAL. Release the state, which may be NULL or half made. Thread: as setup. */
    void (*teardown)(trl_context *ctx, void **state);
} trl_placement_policy;

/* Seconds of a copy of so many bytes between the memories of two executors. */
TRL_API double trl_placement_copy_seconds(const trl_placement_problem *view, int from, int to, size_t bytes);
/* Seconds of a run with an assignment, copies and their overlap with computing included. Fails with PLUGIN if it would
 * fail the check, MEMORY. */
TRL_API TRL_NODISCARD trl_err trl_placement_predict(const trl_placement_problem *view, const uint8_t *executor,
                                                    double *seconds);
TRL_API const char *trl_placement_task_name(const trl_placement_problem *view, int32_t task);

#ifdef __cplusplus
}
#endif
#endif
