/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Phases: groups of task types whose tasks never overlap in time. In its phase's turn a task passes freely; other
 * tasks are held back. The turn moves under a lock, which also guards the lists of held tasks; the counts of open
 * tasks need no lock. */
#include <string.h>

#include "engine_impl.h"

static const trli_phase *phases_of(const trl_graph *graph)
{
    return graph->phases.data;
}

trl_err trl_graph_add_phase(trl_graph *graph, const char *name, int first_type, int end_type)
{
    trl_err err;
    int64_t at;
    TRL_TRY(trli_graph_check_open(graph));
    if (first_type < 0 || first_type >= end_type || end_type > TRL_TASK_TYPES)
        return trl_fail(graph->ctx, TRL_ERR_USAGE, NULL,
                        "phase '%s' of graph '%s': types %d to %d are not a range in 0..%d", name, graph->name,
                        first_type, end_type - 1, TRL_TASK_TYPES - 1);
    for (int64_t p = 0; p < graph->phases.count; ++p) {
        const trli_phase *other = &phases_of(graph)[p];
        if (first_type >= other->end_type || other->first_type >= end_type) continue;
        return trl_fail(graph->ctx, TRL_ERR_USAGE, NULL, "phases '%s' and '%s' of graph '%s' share task types",
                        trli_graph_text(graph, other->name), name, graph->name);
    }
    TRL_TRY(trli_list_reserve(graph->ctx, &graph->phases, 1, sizeof(trli_phase), "task graph"));
    TRL_TRY(trli_graph_add_name(graph, name, &at));
    ((trli_phase *)graph->phases.data)[graph->phases.count++] = (trli_phase){at, first_type, end_type};
done:
    return err;
}

/* The phase of a type, or TRLI_NONE. */
static int phase_of(const trl_graph *graph, int type)
{
    for (int p = 0; p < (int)graph->phases.count; ++p)
        if (type >= phases_of(graph)[p].first_type && type < phases_of(graph)[p].end_type) return p;
    return TRLI_NONE;
}

trl_err trli_graph_flatten_phases(trl_graph *graph)
{
    trli_task_record *record = trli_graph_records(graph);
    for (int32_t t = 0; graph->phases.count > 0 && t < graph->task_count; ++t)
        if (phase_of(graph, record[t].type) != TRLI_NONE && !trli_calls_phase_apart(graph, t))
            record[t].flags |= TRLI_TASK_PHASED;
    for (int32_t t = 0; graph->phases.count > 0 && t < graph->task_count; ++t) {
        if (!(record[t].flags & TRLI_TASK_PHASED)) continue;
        int phase = phase_of(graph, record[t].type);
        for (int32_t i = record[t].first; i < record[t].end; ++i) {
            int32_t after = graph->successors[i];
            int later = phase_of(graph, record[after].type);
            if (later >= phase || !(record[after].flags & TRLI_TASK_PHASED)) continue;
            return trl_fail(graph->ctx, TRL_ERR_INPUT, NULL,
                            "graph '%s': task '%s' of phase '%s' waits for '%s' of the later phase '%s'", graph->name,
                            trli_graph_task_name(graph, after), trli_graph_text(graph, phases_of(graph)[later].name),
                            trli_graph_task_name(graph, t), trli_graph_text(graph, phases_of(graph)[phase].name));
        }
    }
    return TRL_OK;
}

trl_err trli_phases_create(trli_run_state *run)
{
    static const char what[] = "phases";
    trl_err err = TRL_OK;
    trli_phases *phases = &run->phases;
    const trl_graph *graph = run->graph;
    size_t n = (size_t)graph->phases.count;
    void *memory;
    if (n == 0) return TRL_OK;
    TRL_TRY(trl_memory_alloc(graph->ctx, n * sizeof *phases->open, what, &memory));
    phases->open = memory;
    TRL_TRY(trl_memory_alloc(graph->ctx, n * sizeof *phases->at_start, what, &memory));
    phases->at_start = memset(memory, 0, n * sizeof *phases->at_start);
    TRL_TRY(trl_memory_alloc(graph->ctx, n * sizeof *phases->held, what, &memory));
    phases->held = memory;
    for (int type = 0; type < TRL_TASK_TYPES; ++type) phases->of_type[type] = (int16_t)phase_of(graph, type);
    const trli_task_record *record = trli_graph_records(graph);
    for (int32_t t = 0; t < graph->task_count; ++t)
        if (record[t].flags & TRLI_TASK_PHASED) ++phases->at_start[phases->of_type[record[t].type]];
    pthread_mutex_init(&phases->lock, NULL);
    phases->count = (int)n;
done:
    return err;
}

void trli_phases_destroy(trli_run_state *run)
{
    trli_phases *phases = &run->phases;
    void *blocks[] = {(void *)phases->open, phases->at_start, phases->held};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; ++i) trl_memory_free(run->graph->ctx, &blocks[i]);
    if (phases->count > 0) pthread_mutex_destroy(&phases->lock);
}

/* Relaxed: no worker is inside yet. */
void trli_phases_start(trli_run_state *run)
{
    trli_phases *phases = &run->phases;
    int first = 0;
    for (int p = phases->count - 1; p >= 0; --p) {
        atomic_store_explicit(&phases->open[p], phases->at_start[p], memory_order_relaxed);
        phases->held[p] = TRLI_NONE;
        if (phases->at_start[p] > 0) first = p;
    }
    atomic_store_explicit(&phases->current, first, memory_order_relaxed);
}

/* seq_cst here, at the counts and at the turn: of a task that leaves (or arrives) and one that advances the turn, at
 * least one sees the other; and a task of the new phase sees what the tasks of the old one wrote. */
bool trli_phase_admits(trli_run_state *run, int32_t task)
{
    trli_phases *phases = &run->phases;
    int phase = phases->of_type[trli_record(run, task)->type];
    if (atomic_load_explicit(&phases->current, memory_order_seq_cst) == phase) return true;
    pthread_mutex_lock(&phases->lock);
    bool admitted = atomic_load_explicit(&phases->current, memory_order_seq_cst) == phase;
    if (!admitted) {
        *trli_link(run, task) = phases->held[phase];
        phases->held[phase] = task;
    }
    pthread_mutex_unlock(&phases->lock);
    return admitted;
}

/* Give the turn to the next phase with tasks, if the present phase has none left; returns the tasks that may now
 * start, by their links. */
static int32_t take_turn(trli_phases *phases)
{
    int32_t freed = TRLI_NONE;
    pthread_mutex_lock(&phases->lock);
    int current = atomic_load_explicit(&phases->current, memory_order_seq_cst), next = current;
    while (atomic_load_explicit(&phases->open[next], memory_order_seq_cst) == 0) {
        next = (next + 1) % phases->count;
        if (next == current) break;
    }
    if (next != current) {
        atomic_store_explicit(&phases->current, next, memory_order_seq_cst);
        freed = phases->held[next];
        phases->held[next] = TRLI_NONE;
    }
    pthread_mutex_unlock(&phases->lock);
    return freed;
}

static void pass_turn(trli_run_state *run, trli_worker *worker)
{
    for (int32_t task = take_turn(&run->phases); task != TRLI_NONE;) {
        int32_t next = *trli_link(run, task);
        trli_hand_over(run, worker, task);
        task = next;
    }
}

/* A phase without tasks gets its first one under the lock: a thread that advances the turn has either seen that
 * task, or advances before the task asks whether it is admitted. Relaxed: see trli_phase_admits for what the
 * exchange publishes. */
static void open_one(trli_phases *phases, int phase)
{
    int64_t n = atomic_load_explicit(&phases->open[phase], memory_order_relaxed);
    while (n > 0)
        if (atomic_compare_exchange_weak_explicit(&phases->open[phase], &n, n + 1, memory_order_seq_cst,
                                                  memory_order_relaxed))
            return;
    pthread_mutex_lock(&phases->lock);
    atomic_fetch_add_explicit(&phases->open[phase], 1, memory_order_seq_cst);
    pthread_mutex_unlock(&phases->lock);
}

void trli_phase_enter(trli_run_state *run, trli_worker *worker, int type)
{
    trli_phases *phases = &run->phases;
    if (phases->count == 0 || phases->of_type[type] == TRLI_NONE) return;
    open_one(phases, phases->of_type[type]);
    int current = atomic_load_explicit(&phases->current, memory_order_seq_cst);
    if (atomic_load_explicit(&phases->open[current], memory_order_seq_cst) == 0) pass_turn(run, worker);
}

void trli_phase_leave(trli_run_state *run, trli_worker *worker, int type)
{
    trli_phases *phases = &run->phases;
    int phase = phases->of_type[type];
    if (atomic_fetch_sub_explicit(&phases->open[phase], 1, memory_order_seq_cst) > 1) return;
    if (atomic_load_explicit(&phases->current, memory_order_seq_cst) == phase) pass_turn(run, worker);
}
