/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* A policy: last in, first out, one list under a lock. It has no `start` and no `completed`. */
#include <pthread.h>

#include <trl_policy.h>

typedef struct lifo {
    const trl_policy_graph *graph;
    pthread_mutex_t lock;
    int32_t first; /* -1: none */
} lifo;

static trl_err setup(const trl_policy_graph *graph, void **state)
{
    trl_err err = trl_memory_alloc(graph->ctx, sizeof(lifo), "lifo policy", state);
    if (err != TRL_OK) return err;
    lifo *s = *state;
    *s = (lifo){.graph = graph, .first = -1};
    pthread_mutex_init(&s->lock, NULL);
    return TRL_OK;
}

static void teardown(const trl_policy_graph *graph, void **state)
{
    lifo *s = *state;
    if (s == NULL) return;
    pthread_mutex_destroy(&s->lock);
    trl_memory_free(graph->ctx, state);
}

static void ready(void *state, int worker, int32_t task, int urgency)
{
    lifo *s = state;
    (void)worker, (void)urgency;
    pthread_mutex_lock(&s->lock);
    *trl_policy_link(s->graph, task) = s->first;
    s->first = task;
    pthread_mutex_unlock(&s->lock);
}

static int32_t take(void *state, int worker)
{
    lifo *s = state;
    (void)worker;
    pthread_mutex_lock(&s->lock);
    int32_t task = s->first;
    if (task >= 0) s->first = *trl_policy_link(s->graph, task);
    pthread_mutex_unlock(&s->lock);
    return task;
}

static bool holds(void *state)
{
    lifo *s = state;
    pthread_mutex_lock(&s->lock);
    bool any = s->first >= 0;
    pthread_mutex_unlock(&s->lock);
    return any;
}

static void finish(void *state)
{
    ((lifo *)state)->first = -1;
}

TRL_API extern const trl_policy trl_policy_plugin;

const trl_policy trl_policy_plugin = {
    .size = sizeof(trl_policy),
    .abi = TRL_POLICY_ABI,
    .name = "lifo",
    .setup = setup,
    .teardown = teardown,
    .ready = ready,
    .take = take,
    .holds = holds,
    .finish = finish,
};
