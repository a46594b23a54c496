/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Policies: how the tasks of a frozen graph are brought to the workers; and what policies get from the workers. */
#ifndef TRL_POLICY_IMPL_H
#define TRL_POLICY_IMPL_H

#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>

#include <trl_graph.h>

enum { TRLI_CACHE_LINE = 64 };

/* One thread of a trl_workers. Members are used by that thread only. */
typedef struct trli_worker {
    alignas(TRLI_CACHE_LINE) trl_workers *workers;
    pthread_t thread;
    int index;
    bool woken;               /* slept since it last took a task */
    trl_task next;            /* released by the task before, runs next; -1: none */
    int32_t taken, taken_end; /* tasks taken from the ready queue at once, as positions in it */
    int32_t sinks;            /* ends of the graph completed here and not yet counted */
} trli_worker;

/* An algorithm of scheduling. No slot is called with a lock held. `state` is the policy's own part of a graph. */
typedef struct trli_policy {
    /* Whether workers other than the caller of trl_graph_run take part. */
    bool parallel;

    /* REQUIRED. Allocate what runs need and get ready for the first one. Thread: main, in freeze. */
    trl_err (*setup)(trl_graph *graph, void **state);

    /* REQUIRED. Release all of it; *state may be NULL or half made. Thread: main. */
    void (*invalidate)(trl_graph *graph, void **state);

    /* REQUIRED. Call tasks through trli_task_call until all are complete, then return. Thread: every worker that takes
     * part, at the same time; a worker may come late, or again after the end. */
    void (*run)(trl_graph *graph, void *state, trli_worker *worker);

    /* REQUIRED. A task is complete: release its successors. Once per task and run. Thread: any worker inside run. */
    void (*task_done)(trl_graph *graph, void *state, trli_worker *worker, trl_task task);

    /* REQUIRED. Get ready for the next run. Thread: the caller of trl_graph_run, all workers being outside. */
    void (*finish)(trl_graph *graph, void *state);
} trli_policy;

/* X(name, policy). A name may stand for the policy of another: hybrid without devices is priority. */
#define TRLI_POLICY_LIST(X) \
    X(serial, SERIAL)       \
    X(priority, PRIORITY)   \
    X(hybrid, PRIORITY)

/* The policies themselves: each has a state in every frozen graph. */
typedef enum trli_policy_index { TRLI_SERIAL, TRLI_PRIORITY, TRLI_POLICIES } trli_policy_index;

extern const trli_policy trli_policy_serial, trli_policy_priority;
const trli_policy *trli_policy_get(trli_policy_index index);

/* Started poll tasks, tested in turns. One thread at a time. */
typedef struct trli_polls {
    trl_task *waiting; /* room for every poll task of the graph */
    int32_t count;
    int64_t tested_ns; /* when the last round ended */
} trli_polls;

/* Between tasks, started poll tasks are tested at this interval. */
enum { TRLI_POLL_INTERVAL_NS = 20000 };

/* Call every waiting poll task once; hand those that are complete to task_done. Returns their number. */
int32_t trli_polls_round(trli_polls *polls, const trli_policy *policy, trl_graph *graph, void *state,
                         trli_worker *worker);

/* One step of waiting: a pause of the processor, or a yield where threads outnumber cores. */
void trli_workers_pause(const trl_workers *workers);
/* Sleep unless ready(arg) holds. What makes it hold is stored with memory_order_seq_cst before trli_workers_wake is
 * called, and loaded so by ready: then no wake-up is lost. May return early. */
void trli_workers_sleep(trl_workers *workers, bool (*ready)(void *arg), void *arg);
void trli_workers_wake_one(trl_workers *workers);
void trli_workers_wake_all(trl_workers *workers);

#endif
