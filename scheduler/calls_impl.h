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

struct trli_placed_body;
struct trli_placed_run;
struct trli_run_state;

typedef struct trli_call {
    trl_call_desc desc;         /* `name` is not kept */
    int32_t task;               /* the call */
    int32_t first, end;         /* tasks of the body: first <= t < end; the end of a round */
    int32_t around;             /* the call to whose body it belongs, or TRLI_NONE */
    int32_t handles, resources; /* of the graph: the body's begin here */
    /* In a graph that stands for another one: the body is one, too, in the place of `body`'s; else NULL. */
    const struct trli_placed_body *placed;
} trli_call;

/* What placement sees of a graph with calls: each is one task, with its own accesses. */
typedef struct trli_shown_calls {
    int32_t *first;                 /* [tasks + 1] access_first without accesses of bodies */
    int32_t *ends;                  /* [tasks] of a call its end, of others themselves */
    bool *parted;                   /* [calls] it writes parts of data, or adds to some */
    int32_t bare_call, bare_handle; /* a call that lacks an access to data of its body; TRLI_NONE: none does */
} trli_shown_calls;

/* A call in a run. */
typedef struct trli_call_run {
    void *frame;                    /* of the body */
    int64_t rounds;                 /* done */
    bool again;                     /* another one follows */
    bool under_way;                 /* a round of a body that is placed */
    struct trli_placed_run *placed; /* of such a body, else NULL */
} trli_call_run;

static inline trli_call *trli_graph_calls(const trl_graph *graph)
{
    return graph->calls.data;
}

/* Accesses as placement sees them: access[first[t]..first[t + 1]) of task t. */
static inline const int32_t *trli_shown_accesses(const trl_graph *graph)
{
    return graph->shown ? graph->shown->first : graph->access_first;
}

/* trl_graph_add_call, checked before. placed: as in trli_call. */
TRL_NODISCARD trl_err trli_graph_put_call(trl_graph *graph, const trl_call_desc *desc,
                                          const struct trli_placed_body *placed, trl_task *task);
/* Copy the bodies of a graph's calls into it, while it is frozen, before anything is flattened. */
TRL_NODISCARD trl_err trli_calls_expand(trl_graph *graph);
/* Once it is flattened: USAGE if two calls that no dependencies put in order may not go on at once
 * (trl_call_desc.apart). Fails with MEMORY. */
TRL_NODISCARD trl_err trli_calls_check_apart(const trl_graph *graph);
/* Whether a task's type is that of a body, which is in the phase of the call. */
bool trli_calls_phase_apart(const trl_graph *graph, int32_t task);
/* Find the call of each task, and give calls and ends their data; those in bodies come behind those around them. Fails
 * with MEMORY. */
TRL_NODISCARD trl_err trli_calls_list(trl_graph *graph);

/* ---- calls_placed.c ---- */

/* Once accesses are flattened: the graph as placement sees it, in which a call is one task, for workers. Fails with
 * MEMORY. */
TRL_NODISCARD trl_err trli_calls_show(trl_graph *graph);
void trli_shown_calls_destroy(trl_graph *graph);
/* USAGE if devices may do tasks of a graph, or have data of it, and a call does not say what its body touches. */
TRL_NODISCARD trl_err trli_calls_check_placed(const trl_graph *graph);
/* Whether devices may do tasks of a call's body: it, and those around it, run in the frame and the memory of the
 * graph, and each of them makes what it writes alone. */
bool trli_call_is_open(const trl_graph *graph, int32_t call);
/* Tasks, handles, and resources of a frozen graph that are no body's come first; how many of them there are. */
int32_t trli_own_tasks(const trl_graph *graph);
int64_t trli_own_handles(const trl_graph *graph);
int64_t trli_own_resources(const trl_graph *graph);
/* For trli_place_graph: where calls whose bodies are placed need data, if these executors do the tasks. [accesses] of
 * the graph as placement sees it; NULL: it has no such calls. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_calls_called(const trl_graph *graph, const uint8_t *executor, uint16_t **called);

/* ---- runs ---- */

TRL_NODISCARD trl_err trli_calls_create(struct trli_run_state *run);
void trli_calls_destroy(struct trli_run_state *run);
/* The call whose body or end a task is, spawned ones included; or TRLI_NONE. */
int32_t trli_call_of(const struct trli_run_state *run, int32_t task);
/* The end of the call in whose body a task is, which waits for what the task spawns; or TRLI_NONE. */
int32_t trli_call_end(const struct trli_run_state *run, int32_t task);
void *trli_call_frame(const struct trli_run_state *run, int32_t task);
/* The innermost call around a task whose body is the graph of a public name; NULL: there is none. */
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
