/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Calls: tasks of a graph that run another one, its body, in a frame of their own, until a function says that it is
 * enough. Freeze copies the body's tasks into the graph, so that they are tasks as others are, for policies, locks and
 * traces: the call's task is what the body's first ones wait for, and a task behind its last ones, the end, ends a
 * round. The successors of the call are those of the end; for another round it releases those of the call's task
 * again. */
#ifndef TRL_CALLS_IMPL_H
#define TRL_CALLS_IMPL_H

#include "graph_impl.h"
#include "worker_impl.h"

struct trli_run_state;

typedef struct trli_call {
    trl_call_desc desc;         /* `name` is not kept */
    int32_t task;               /* the call */
    int32_t first, end;         /* tasks of the body: first <= t < end; the end of a round */
    int32_t around;             /* the call to whose body it belongs, or TRLI_NONE */
    int32_t handles, resources; /* of the graph: the body's begin here */
} trli_call;

/* A call in a run. */
typedef struct trli_call_run {
    void *frame;    /* of the body */
    int64_t rounds; /* done */
    bool again;     /* another one follows */
} trli_call_run;

static inline trli_call *trli_graph_calls(const trl_graph *graph)
{
    return graph->calls.data;
}

/* Copy the bodies of a graph's calls into it, while it is frozen, before anything is flattened. */
TRL_NODISCARD trl_err trli_calls_expand(trl_graph *graph);
/* Whether a task's type is that of a body, which is in the phase of the call. */
bool trli_calls_phase_apart(const trl_graph *graph, int32_t task);
/* USAGE if devices may run tasks of a graph that has calls, or of a body. */
TRL_NODISCARD trl_err trli_calls_check_placed(const trl_graph *graph);

TRL_NODISCARD trl_err trli_calls_create(struct trli_run_state *run);
void trli_calls_destroy(struct trli_run_state *run);
/* The call whose body or end a task is, spawned ones included; or TRLI_NONE. */
int32_t trli_call_of(const struct trli_run_state *run, int32_t task);
/* The end of the call in whose body a task is, which waits for what the task spawns; or TRLI_NONE. */
int32_t trli_call_end(const struct trli_run_state *run, int32_t task);
void *trli_call_frame(const struct trli_run_state *run, int32_t task);
/* The innermost call around a task whose body is the graph of a public name; NULL: there is none. */
/* Once it is flattened: USAGE if two calls that no dependencies put in order may not go on at once
 * (trl_call_desc.apart). Fails with MEMORY. */
TRL_NODISCARD trl_err trli_calls_check_apart(const trl_graph *graph);
const trli_call *trli_call_named(const struct trli_run_state *run, int32_t task, int64_t name);
/* The index behind the public name of a task, or of a resource, of the graph or of a body in which `here` is. Fail with
 * USAGE. */
TRL_NODISCARD trl_err trli_run_task(const struct trli_run_state *run, int32_t here, trl_task name, int32_t *task);
TRL_NODISCARD trl_err trli_run_resource(const struct trli_run_state *run, int32_t here, trl_resource name,
                                        int32_t *resource);
/* The same for a handle; TRLI_NONE: it has no such name. */
int32_t trli_run_handle(const struct trli_run_state *run, int32_t here, trl_handle name);
/* The end of a round is complete: the task whose successors are released, the end itself or, for another round, whose
 * tasks count as remaining from here on, the call. What the call locks is released with the last round. */
int32_t trli_call_continue(struct trli_run_state *run, trli_worker *worker, int32_t end);

#endif
