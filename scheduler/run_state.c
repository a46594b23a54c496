/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The states of the runs of a graph: one for each run in progress, kept for later runs; and what policies see of
 * them. */
#include <string.h>

#include "placed_run_impl.h"

static const char what[] = "runs of a task graph";

static const trli_run_state *state_of(const trl_policy_graph *graph)
{
    return (const trli_run_state *)((const char *)graph - offsetof(trli_run_state, view));
}

int32_t *trl_policy_link(const trl_policy_graph *graph, int32_t task)
{
    return trli_link(state_of(graph), task);
}

int trl_policy_urgency(const trl_policy_graph *graph, int32_t task)
{
    return trli_record(state_of(graph), task)->urgency;
}

unsigned trl_policy_kinds(const trl_policy_graph *graph, int32_t task)
{
    const trli_run_state *run = state_of(graph);
    unsigned kinds = 0;
    if (task >= graph->tasks) return 1u << TRL_KIND_CPU;
    for (unsigned k = 0; k < TRL_KINDS; ++k)
        if (trli_graph_info(run->graph)[task].variant[k].run) kinds |= 1u << k;
    return kinds;
}

const char *trl_policy_handle_name(const trl_policy_graph *graph, int32_t handle)
{
    return trli_graph_text(state_of(graph)->graph, graph->handle[handle].name);
}

bool trl_policy_task_access(const trl_policy_graph *graph, int32_t task, int32_t i, trl_policy_access *access)
{
    const trl_spawn_access *spawned;
    if (task < graph->tasks) {
        if (i >= graph->access_first[task + 1] - graph->access_first[task]) return false;
        *access = graph->access[graph->access_first[task] + i];
        return true;
    }
    if (i >= trli_node_accesses(state_of(graph), task, &spawned)) return false;
    *access =
        (trl_policy_access){trli_run_handle(state_of(graph), task, spawned[i].handle), (int32_t)spawned[i].access, 0};
    return true;
}

static trl_err alloc(trli_run_state *run, size_t count, size_t size, void *result)
{
    void *memory;
    trl_err err = trl_memory_alloc(run->graph->ctx, count * size, what, &memory);
    if (err == TRL_OK) memcpy(result, &(void *){memset(memory, 0, count * size)}, sizeof memory);
    return err;
}

static void set_view(trli_run_state *run, int workers)
{
    const trl_graph *graph = run->graph;
    run->view = (trl_policy_graph){
        .ctx = graph->ctx,
        .workers = workers,
        .tasks = graph->task_count,
        .nroots = graph->nroots,
        .roots = graph->roots,
        .weight = graph->weight,
        .first = graph->first,
        .successors = graph->successors,
        .handles = (int32_t)graph->handles.count,
        .handle = graph->handles.data,
        .access_first = graph->access_first,
        .access = graph->access,
    };
}

static trl_err alloc_arrays(trli_run_state *run)
{
    trl_err err;
    const trl_graph *graph = run->graph;
    const trli_task_info *info = trli_graph_info(graph);
    size_t n = (size_t)graph->task_count;
    int32_t signalled = 0;
    TRL_TRY(alloc(run, n, sizeof *run->join, &run->join));
    TRL_TRY(alloc(run, n, sizeof *run->link, &run->link));
    TRL_TRY(alloc(run, n, sizeof *run->run_ns, &run->run_ns));
    if (graph->scopes > 0) TRL_TRY(alloc(run, n, sizeof *run->scope, &run->scope));
    for (size_t t = 0; t < n; ++t) signalled += info[t].signals > 0;
    TRL_TRY(alloc(run, (size_t)signalled, sizeof *run->signalled, &run->signalled));
    TRL_TRY(alloc(run, (size_t)signalled, sizeof *run->signals_left, &run->signals_left));
    for (size_t t = 0; t < n; ++t)
        if (info[t].signals > 0) run->signalled[run->nsignalled++] = (int32_t)t;
    TRL_TRY(trli_wide_create(run));
    TRL_TRY(trli_locks_create(run));
    TRL_TRY(trli_phases_create(run));
    TRL_TRY(trli_nodes_create(run));
    TRL_TRY(trli_calls_create(run));
    TRL_TRY(trli_placed_run_create(run));
done:
    return err;
}

static void destroy(trli_run_state *run)
{
    const trl_graph *graph = run->graph;
    if (run->policy) run->policy->teardown(&run->view, &run->policy_state);
    trli_wide_destroy(run);
    trli_locks_destroy(run);
    trli_phases_destroy(run);
    trli_nodes_destroy(run);
    trli_placed_run_destroy(run); /* with the states of calls */
    trli_calls_destroy(run);
    void *blocks[] = {run->join,           run->link, (void *)run->scope, run->signalled, (void *)run->signals_left,
                      (void *)run->run_ns, run};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; ++i) trl_memory_free(graph->ctx, &blocks[i]);
}

void trli_run_states_destroy(trl_graph *graph)
{
    while (graph->states) {
        trli_run_state *run = graph->states;
        graph->states = run->next;
        destroy(run);
    }
}

static trl_err create(trl_graph *graph, trl_workers *workers, const trl_policy *policy, uint64_t serial,
                      trli_run_state **result)
{
    trl_err err;
    void *memory;
    trli_run_state *run = NULL;
    TRL_TRY(trl_memory_alloc(graph->ctx, sizeof *run, what, &memory));
    run = memset(memory, 0, sizeof *run);
    run->job = (trli_job){trli_run_work, trli_run_job_over};
    run->graph = graph;
    run->workers = workers;
    run->workers_serial = serial;
    run->wake_after = 1;
    run->dirty = true;
    set_view(run, trl_workers_count(workers));
    TRL_TRY(alloc_arrays(run));
    run->policy = policy;
    TRL_TRY(policy->setup(&run->view, &run->policy_state));
    *result = run;
    run = NULL;
done:
    if (run) destroy(run);
    return err;
}

/* ---- taking ---- */

/* What a GPU is given together would be cut for the times of a part. */
static bool in_chain(const trl_graph *graph)
{
    return graph->placed && graph->placed->devices->n == 1 && graph->placed->devices->device[0]->chain;
}

/* Times are measured in the first runs, and now and then in one more. */
static bool is_sample(const trl_graph *graph)
{
    if (in_chain(graph)) return false;
    return graph->runs < 3 || graph->runs % 64 == 0;
}

/* Guarded. */
static void take(trl_graph *graph, trli_run_state *run, void *frame)
{
    run->taken = true;
    run->frame = frame;
    run->asker = trli_diagnostics_asker();
    atomic_store_explicit(&run->error, TRL_OK, memory_order_relaxed); /* published by the guard, and to the workers */
    run->active = trli_active_workers(&graph->active, run->view.workers);
    run->watched = (graph->placed ? graph->placed->logical : graph)->timing || is_sample(graph);
    graph->workers = run->view.workers;
    if (graph->in_progress++ == 0 && graph->ranked_tau_inf < 0) trli_graph_rank(graph);
}

/* A state that was made for these workers; *busy: the frame is in a run; *stale: a state made for other workers,
 * which is not needed any more. Guarded. */
static trli_run_state *find(trl_graph *graph, uint64_t serial, const void *frame, bool *busy, trli_run_state **stale)
{
    trli_run_state *found = NULL;
    *busy = false;
    *stale = NULL;
    for (trli_run_state **at = &graph->states; *at;) {
        trli_run_state *run = *at;
        *busy |= run->taken && run->frame == frame;
        if (!run->taken && run->workers_serial != serial) {
            *at = run->next;
            run->next = *stale;
            *stale = run;
            continue;
        }
        if (!run->taken && !found) found = run;
        at = &run->next;
    }
    return found;
}

static void destroy_all(trli_run_state *run)
{
    while (run) {
        trli_run_state *next = run->next;
        destroy(run);
        run = next;
    }
}

trl_err trli_run_take(trl_graph *graph, trl_workers *workers, const trl_policy *policy, uint64_t serial, void *frame,
                      trli_run_state **run)
{
    trl_err err = TRL_OK;
    bool busy;
    trli_run_state *stale;
    trli_graph_lock(graph);
    *run = find(graph, serial, frame, &busy, &stale);
    if (*run && !busy) take(graph, *run, frame);
    trli_graph_unlock(graph);
    destroy_all(stale);
    if (busy)
        return trl_fail(graph->ctx, TRL_ERR_USAGE, NULL, "graph '%s' cannot run: it is running%s", graph->name,
                        frame ? " in this frame" : "");
    if (*run) return TRL_OK;
    TRL_TRY(create(graph, workers, policy, serial, run));
    trli_graph_lock(graph);
    (*run)->next = graph->states;
    graph->states = *run;
    take(graph, *run, frame);
    trli_graph_unlock(graph);
done:
    return err;
}

void trli_run_give_back(trli_run_state *run)
{
    run->taken = false;
    --run->graph->in_progress;
}
