/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* A serial policy with every optional member, which checks what it is told: the view of the graph at setup and at each
 * start, the order of calls, and that no task is completed outside of a run. What is wrong first it records as an error
 * of the context; then its setup fails or, in a run, it gives no more tasks away: the run stalls. */
#include <trl_policy.h>

typedef struct witness {
    const trl_policy_graph *graph;
    bool inside, wrong;
    int32_t kept, completed;
    int32_t first, last; /* -1: none */
} witness;

static void complain(witness *s, const char *what)
{
    if (!s->wrong) (void)trl_fail(s->graph->ctx, TRL_ERR_PLUGIN, NULL, "witness policy: %s", what);
    s->wrong = true;
}

static const char *fault_of_task(const trl_policy_graph *g, int32_t t)
{
    int urgency = trl_policy_urgency(g, t);
    if (urgency < 0 || urgency >= TRL_URGENCIES) return "an urgency is out of range";
    if (!(trl_policy_kinds(g, t) & 1u << TRL_KIND_CPU)) return "a task has no variant for workers";
    if (g->access_first[t] > g->access_first[t + 1]) return "ranges of accesses are not ascending";
    trl_policy_access access;
    int32_t n = 0;
    for (; trl_policy_task_access(g, t, n, &access); ++n)
        if (access.handle < 0 || access.handle >= g->handles || access.mode < TRL_READ || access.mode > TRL_ADD ||
            *trl_policy_handle_name(g, access.handle) == 0)
            return "an access is none";
    if (n != g->access_first[t + 1] - g->access_first[t]) return "a task has another number of accesses";
    if (g->first[t] > g->first[t + 1]) return "ranges of successors are not ascending";
    for (int32_t i = g->first[t]; i < g->first[t + 1]; ++i) {
        int32_t after = g->successors[i];
        if (after < 0 || after >= g->tasks || after == t) return "a successor is no other task";
        if (!(g->weight[t] >= g->weight[after])) return "a task weighs less than its successor";
        if (i > g->first[t] && trl_policy_urgency(g, g->successors[i - 1]) > trl_policy_urgency(g, after))
            return "successors are not in the order of their urgency";
    }
    return NULL;
}

static const char *fault_of_graph(const trl_policy_graph *g)
{
    const char *fault = NULL;
    if (g->ctx == NULL || g->workers != 1) return "a serial policy has one worker and a context";
    if (g->tasks > 0 && (!g->weight || !g->first || !g->successors || !g->roots))
        return "an array of the graph is missing";
    if (g->nroots < 0 || g->nroots > g->tasks) return "the number of roots is out of range";
    for (int32_t i = 1; i < g->nroots; ++i)
        if (trl_policy_urgency(g, g->roots[i - 1]) > trl_policy_urgency(g, g->roots[i]))
            return "roots are not in the order of their urgency";
    for (int32_t t = 0; fault == NULL && t < g->tasks; ++t) fault = fault_of_task(g, t);
    return fault;
}

static trl_err setup(const trl_policy_graph *graph, void **state)
{
    const char *fault = fault_of_graph(graph);
    if (fault) return trl_fail(graph->ctx, TRL_ERR_PLUGIN, NULL, "witness policy: %s", fault);
    trl_err err = trl_memory_alloc(graph->ctx, sizeof(witness), "witness policy", state);
    if (err == TRL_OK) *(witness *)*state = (witness){.graph = graph, .first = -1, .last = -1};
    return err;
}

static void teardown(const trl_policy_graph *graph, void **state)
{
    trl_memory_free(graph->ctx, state);
}

static void ready(void *state, int worker, int32_t task, int urgency)
{
    witness *s = state;
    if (!s->inside || worker != 0 || urgency != trl_policy_urgency(s->graph, task))
        complain(s, "a task became ready outside of a run, on no worker, or with another urgency");
    *trl_policy_link(s->graph, task) = -1;
    if (s->first < 0)
        s->first = task;
    else
        *trl_policy_link(s->graph, s->last) = task;
    s->last = task;
    ++s->kept;
}

static void start(void *state, int32_t nroots, const int32_t *roots)
{
    witness *s = state;
    const char *fault = fault_of_graph(s->graph);
    if (fault) complain(s, fault);
    if (s->inside || s->kept != 0) complain(s, "a run starts inside a run, or with tasks of the last one");
    s->inside = true;
    s->completed = 0;
    for (int32_t i = 0; i < nroots; ++i) ready(s, 0, roots[i], trl_policy_urgency(s->graph, roots[i]));
}

static int32_t take(void *state, int worker)
{
    witness *s = state;
    int32_t task = s->first;
    if (worker != 0) complain(s, "the worker of a serial policy is not 0");
    if (task < 0 || s->wrong) return -1;
    s->first = *trl_policy_link(s->graph, task);
    --s->kept;
    return task;
}

static bool holds(void *state)
{
    witness *s = state;
    return s->first >= 0 && !s->wrong;
}

static void completed(void *state, int worker, int32_t task)
{
    witness *s = state;
    if (worker != 0 || !s->inside || task < 0) complain(s, "a task is completed outside of a run");
    if (task < s->graph->tasks && ++s->completed > s->graph->tasks) complain(s, "more tasks are completed than exist");
}

static void finish(void *state)
{
    witness *s = state;
    if (!s->inside) complain(s, "a run is finished that has not started");
    s->inside = false;
    s->kept = 0;
    s->first = -1;
}

TRL_API extern const trl_policy trl_policy_plugin;

const trl_policy trl_policy_plugin = {
    .size = sizeof(trl_policy),
    .abi = TRL_POLICY_ABI,
    .name = "witness",
    .serial = true,
    .setup = setup,
    .teardown = teardown,
    .start = start,
    .ready = ready,
    .take = take,
    .holds = holds,
    .completed = completed,
    .finish = finish,
};
