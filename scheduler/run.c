/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The beginning, end and failure of runs. */
#include <stdlib.h>
#include <string.h>

#include "engine_impl.h"
#include "memstream_impl.h"
#include "placed_run_impl.h"
#include "placement_run_impl.h"
#include "workers_impl.h"

/* ---- one run ---- */

/* Relaxed: no worker is inside. */
static void set_joins(trli_run_state *run)
{
    const trl_graph *graph = run->graph;
    const trli_task_info *info = trli_graph_info(graph);
    for (int32_t t = 0; t < graph->task_count; ++t) {
        run->join[t].all = graph->predecessors[t] + info[t].signals;
        atomic_store_explicit(&run->join[t].missing, run->join[t].all, memory_order_relaxed);
    }
}

static void start_roots(trli_run_state *run)
{
    const trl_graph *graph = run->graph;
    const trli_task_record *record = trli_graph_records(graph);
    bool at_once = run->policy->start && run->phases.count == 0;
    if (run->policy->start) run->policy->start(run->policy_state, at_once ? graph->nroots : 0, graph->roots);
    for (int32_t i = 0; !at_once && i < graph->nroots; ++i) {
        int32_t root = graph->roots[i];
        if (record[root].flags & TRLI_TASK_PHASED && !trli_phase_admits(run, root)) continue;
        run->policy->ready(run->policy_state, 0, root, record[root].urgency);
    }
}

void trli_run_start(trli_run_state *run, bool traced)
{
    trl_graph *graph = run->graph;
    run->watched |= traced;
    if (run->dirty) {
        set_joins(run);
        for (int32_t t = 0; graph->scopes > 0 && t < graph->task_count; ++t)
            atomic_store_explicit(&run->scope[t], 1, memory_order_relaxed);
        trli_nodes_clear(run);
        trli_locks_start(run);
    }
    run->dirty = false;
    for (int32_t i = 0; i < run->nsignalled; ++i)
        atomic_store_explicit(&run->signals_left[i], trli_graph_info(graph)[run->signalled[i]].signals,
                              memory_order_relaxed);
    trli_placed_run_start(run);
    trli_wide_start(run);
    trli_polls_start(run);
    trli_phases_start(run);
    run->failed_name = NULL;
    run->explained = false;
    /* Relaxed: the workers enter a run after its caller published it with release. */
    atomic_store_explicit(&run->remaining, graph->task_count, memory_order_relaxed);
    atomic_store_explicit(&run->repeated, 0, memory_order_relaxed);
    atomic_store_explicit(&run->activity, 0, memory_order_relaxed);
    atomic_store_explicit(&run->ended, false, memory_order_relaxed);
    start_roots(run);
}

const char *trli_task_name(const trli_run_state *run, int32_t task)
{
    return task < run->view.tasks ? trli_graph_task_name(run->graph, task) : trli_node_name(run, task);
}

void trli_run_fail(trli_run_state *run, int32_t task, trl_err err)
{
    int none = TRL_OK;
    bool explained = trli_diagnostics_said();
    /* Relaxed: only the winner writes the following members, which are read after the run. */
    if (!atomic_compare_exchange_strong_explicit(&run->error, &none, (int)err, memory_order_relaxed,
                                                 memory_order_relaxed))
        return;
    run->explained = explained;
    if (task == TRLI_NONE) return;
    run->failed_name =
        run->placed && task < run->view.tasks ? trli_placed_failed(run, task) : trli_task_name(run, task);
    if (task < run->view.tasks) return;
    snprintf(run->copied_name, sizeof run->copied_name, "%s", run->failed_name);
    run->failed_name = run->copied_name;
}

/* The policy's order follows the measured times. */
static void learn(trli_run_state *run, int64_t ns)
{
    enum { WAKE_NS = 5000, MOST = 64 };
    trl_graph *graph = run->graph;
    const int64_t tasks = graph->task_count + atomic_load_explicit(&run->repeated, memory_order_relaxed);
    double mean = (double)ns * run->view.workers / (double)(tasks + 1);
    run->wake_after = mean * MOST < WAKE_NS ? MOST : mean > WAKE_NS ? 1 : (int32_t)(WAKE_NS / mean);
    if (!run->watched) return;
    double sum = 0;
    for (int32_t t = 0; t < graph->task_count; ++t) /* relaxed: all workers have left the run */
        sum += (double)atomic_load_explicit(&run->run_ns[t], memory_order_relaxed);
    trli_graph_average_times(graph, run->run_ns);
    sum += (double)atomic_exchange_explicit(&run->spawned_ns, 0, memory_order_relaxed);
    ++graph->timed_runs;
    graph->timed_wall += 1e-9 * (double)ns;
    graph->timed_share += 1e-9 * sum / run->view.workers;
    if (graph->in_progress == 1 && trli_graph_ranks_drifted(graph)) trli_graph_rank(graph);
}

/* A task that fails should record a message; if it did not, its name is reported. */
static void explain(const trli_run_state *run, trl_err err)
{
    if (err == TRL_OK || run->explained) return;
    if (run->failed_name)
        (void)trl_fail(run->graph->ctx, err, NULL, "task '%s' of graph '%s' failed: %s", run->failed_name,
                       run->graph->name, trl_err_meaning(err));
    else
        (void)trl_fail(run->graph->ctx, err, NULL, "the run of graph '%s' was cancelled", run->graph->name);
}

static void note_failed(trl_graph *graph, const trli_run_state *run)
{
    const bool copied = run->failed_name == run->copied_name;
    if (copied) memcpy(graph->copied_name, run->copied_name, sizeof graph->copied_name);
    graph->failed_name = copied ? graph->copied_name : run->failed_name;
}

/* Workers that had a share in the run: the others waited for no message. */
static int participants(const trli_run_state *run)
{
    if (run->alone) return 1;
    return run->workers->adapts ? run->active : run->view.workers;
}

trl_err trli_run_finish(trli_run_state *run, int64_t ns)
{
    trl_graph *graph = run->graph;
    if (run->policy->finish) run->policy->finish(run->policy_state);
    /* Relaxed: all workers have left the run. */
    graph->outstanding_ns += atomic_exchange_explicit(&run->outstanding_ns, 0, memory_order_relaxed);
    graph->idle_share += (double)atomic_exchange_explicit(&run->idle_ns, 0, memory_order_relaxed) / participants(run);
    graph->late_share +=
        (double)atomic_exchange_explicit(&run->idle_late_ns, 0, memory_order_relaxed) / participants(run);
    graph->spawned += trli_nodes_finish(run);
    graph->repeated += atomic_load_explicit(&run->repeated, memory_order_relaxed);
    ++graph->runs;
    note_failed(graph, run);
    trl_err err = (trl_err)atomic_load_explicit(&run->error, memory_order_relaxed);
    if (graph->placed) trli_placed_run_finish(run, err == TRL_OK, graph->placed->logical->placement->latest);
    if (err == TRL_OK) learn(run, ns);
    explain(run, err);
    return err;
}

void trl_graph_cancel(trl_graph *graph)
{
    pthread_mutex_lock(&graph->placing);
    if (graph->placement && graph->placement->placed) trl_graph_cancel(graph->placement->placed->graph);
    pthread_mutex_unlock(&graph->placing);
    trli_graph_lock(graph);
    for (trli_run_state *run = graph->states; run; run = run->next) {
        int none = TRL_OK;
        if (!run->taken) continue;
        atomic_compare_exchange_strong_explicit(&run->error, &none, TRL_ERR_INTERRUPTED, memory_order_relaxed,
                                                memory_order_relaxed);
    }
    trli_graph_unlock(graph);
}

const char *trl_graph_failed_task(const trl_graph *graph)
{
    return graph->failed_name;
}

/* ---- deadlocks ---- */

enum { REPORTED = 10 /* tasks of each kind that are listed, at most */ };

static void report_signals(const trli_run_state *run, FILE *out)
{
    int said = 0;
    for (int32_t i = 0; i < run->nsignalled && said < REPORTED; ++i) {
        int left = (int)atomic_load_explicit(&run->signals_left[i], memory_order_relaxed);
        if (left == 0) continue;
        fprintf(out, "; '%s' waits for %d more signal%s", trli_task_name(run, run->signalled[i]), left,
                left == 1 ? "" : "s");
        ++said;
    }
}

static void report_held(const trli_run_state *run, FILE *out)
{
    const trli_phases *phases = &run->phases;
    const trli_phase *phase = run->graph->phases.data;
    int current = phases->count ? atomic_load_explicit(&phases->current, memory_order_relaxed) : 0;
    for (int p = 0; p < phases->count; ++p)
        for (int32_t t = phases->held[p], said = 0; t != TRLI_NONE && said < REPORTED; t = *trli_link(run, t), ++said)
            fprintf(out, "; '%s' waits for phase '%s' to end", trli_task_name(run, t),
                    trli_graph_text(run->graph, phase[current].name));
}

static void report_stall(trli_run_state *run)
{
    trli_memstream text;
    long long left = atomic_load_explicit(&run->remaining, memory_order_relaxed);
    bool written = trli_memstream_open(run->graph->ctx, &text);
    if (written) {
        report_signals(run, text.out);
        report_held(run, text.out);
        trli_nodes_report(run, text.out, REPORTED);
        written = trli_memstream_close(&text);
    }
    trl_err err =
        trl_fail(run->graph->ctx, TRL_ERR_USAGE, NULL, "graph '%s' is stalled: nothing can run and %lld %s left%s",
                 run->graph->name, left, left == 1 ? "task is" : "tasks are", written ? text.text : "");
    trli_memstream_discard(&text);
    run->explained = true;
    atomic_store_explicit(&run->error, (int)err, memory_order_relaxed); /* read after the run */
}

void trli_run_end_early(trli_run_state *run)
{
    /* Acquire: what the workers, all idle now, did before. */
    if (atomic_exchange_explicit(&run->ended, true, memory_order_acquire)) return;
    if (atomic_load_explicit(&run->error, memory_order_relaxed) == TRL_OK) report_stall(run);
    run->dirty = true;
    atomic_store_explicit(&run->remaining, 0, memory_order_seq_cst); /* see end_activity in engine.c */
    trli_workers_wake_all(run->workers);
}
