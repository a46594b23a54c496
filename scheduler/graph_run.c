/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Runs of graphs: on workers, and on their devices. */
#include <string.h>

#include "calls_impl.h"
#include "context_impl.h"
#include "placed_run_impl.h"
#include "trace_impl.h"
#include "workers_impl.h"

/* ---- devices ---- */

trl_err trl_workers_finish(trl_workers *workers)
{
    const trl_devices *devices = workers->placing.devices;
    trl_err err = TRL_OK;
    for (int i = 0; devices && i < devices->n; ++i) TRL_TRY(trli_device_finish(devices->device[i]));
done:
    return err;
}

bool trl_workers_pending(const trl_workers *workers)
{
    const trl_devices *devices = workers->placing.devices;
    bool pending = false;
    for (int i = 0; devices && i < devices->n; ++i) pending |= devices->device[i]->ends > 0;
    return pending;
}

bool trl_workers_places(const trl_workers *workers)
{
    return workers->placing.policy || strcmp(workers->name, "hybrid") == 0;
}

int trl_workers_lanes(const trl_workers *workers)
{
    return workers->count + (workers->placing.devices ? workers->placing.devices->n : 0);
}

const trl_devices *trl_workers_devices(const trl_workers *workers)
{
    return workers->placing.devices;
}

/* ---- runs of graphs ---- */

static trl_err check_run(const trl_graph *graph, const trl_workers *w)
{
    if (!graph->frozen)
        return trl_fail(w->ctx, TRL_ERR_USAGE, NULL, "graph '%s' is not frozen; call trl_graph_freeze first",
                        graph->name);
    if (graph->ctx != w->ctx)
        return trl_fail(w->ctx, TRL_ERR_USAGE, NULL, "graph '%s' and the workers belong to different contexts",
                        graph->name);
    return w->placing.devices ? trli_calls_check_placed(graph) : TRL_OK;
}

/* Give back a state whose run did not begin. */
static void give_up(trli_run_state *run)
{
    trli_graph_lock(run->graph);
    trli_run_give_back(run);
    trli_graph_unlock(run->graph);
}

/* Workers without devices count as one executor. */
static trli_placing placing_of(const trl_workers *workers)
{
    trli_placing placing = workers->placing;
    if (!placing.devices)
        placing.platform = (trli_platform){.executors = 1, .kind = {TRL_KIND_CPU}, .parallel = {workers->count}};
    return placing;
}

/* A file that does not fit the graph, or a policy that places it wrongly, is reported before the first run. */
static trl_err try_placement(trl_graph *graph, const trl_workers *workers)
{
    const trli_placing placing = placing_of(workers);
    trli_placement *placement;
    const trl_err err = trli_placement_estimate(graph, &placing, &placement);
    trli_placement_free(placement);
    return err;
}

static trl_err prepare(trl_graph *graph, trl_workers *workers)
{
    trl_err err;
    trli_run_state *run;
    TRL_TRY(trli_run_take(graph, workers, workers->policy, workers->serial, NULL, &run));
    give_up(run);
done:
    return err;
}

/* A graph some of whose tasks devices may run. */
static bool is_placed(const trl_graph *graph, const trl_workers *workers)
{
    return workers->placing.devices && graph->memory.locate;
}

trl_err trl_graph_prepare(trl_graph *graph, trl_workers *workers)
{
    trl_err err;
    trli_placed *placed;
    TRL_TRY(check_run(graph, workers));
    const bool by_policy = workers->placing.policy && workers->placing.devices;
    if (trli_placement_has_file(&workers->placing.rule, graph) || by_policy) TRL_TRY(try_placement(graph, workers));
    if (!is_placed(graph, workers)) return prepare(graph, workers);
    TRL_TRY(trli_placement_hold(graph, &workers->placing, &placed));
    err = prepare(placed->graph, workers);
    trli_placement_release(graph);
done:
    return err;
}

/* Where devices do all that takes time, or nothing does, waking workers takes longer than what is left for them. */
static bool is_left_to_devices(const trl_graph *graph)
{
    return graph->placed && graph->placed->light;
}

/* A placed graph reports its run to its placement. */
static trl_err end_run(trli_run_state *run, trl_workers *w, int64_t ns)
{
    trl_graph *graph = run->graph;
    pthread_mutex_t *placing = graph->placed ? &graph->placed->logical->placing : NULL;
    if (placing) pthread_mutex_lock(placing);
    trli_graph_lock(graph);
    trl_err err = trli_run_finish(run, ns);
    if (w->adapts && !is_left_to_devices(graph)) trli_active_learn(&graph->active, w->count, ns);
    if (w->tasks == 0 && w->operators == 0) trli_pools_adapt(run, w->count, w->worker);
    trli_run_give_back(run);
    trli_graph_unlock(graph);
    if (placing) pthread_mutex_unlock(placing);
    return err;
}

/* failed: an error that the run begins with. */
static trl_err run_once(trli_run_state *run, trl_workers *w, trl_err failed)
{
    run->by_caller = is_left_to_devices(run->graph);
    run->alone = w->count == 1 || run->by_caller || (w->adapts && run->active == 1);
    if (w->adapts && !run->by_caller) trli_workers_set_active(w, run->active);
    int64_t start = trli_now_ns();
    int at = trli_workers_claim(w);
    if (at == TRLI_NONE) {
        give_up(run);
        return trl_fail(w->ctx, TRL_ERR_USAGE, NULL, "graph '%s' cannot run: the workers are at %d other jobs",
                        run->graph->name, TRLI_JOBS);
    }
    trli_run_start(run, w->trace != NULL);
    /* Relaxed: no worker is inside. */
    if (failed != TRL_OK) atomic_store_explicit(&run->error, (int)failed, memory_order_relaxed);
    run->explained = failed != TRL_OK;
    if (run->by_caller)
        trli_workers_do_alone(w, at, &run->job);
    else
        trli_workers_do(w, at, &run->job, 0);
    int64_t end = trli_now_ns();
    if (w->trace) trli_trace_add_run(w->trace, run->graph->name, start, end);
    return end_run(run, w, end - start);
}

static trl_err begin_placed(trl_graph *graph, trl_workers *w, void *frame, trli_placed **placed, bool *timed,
                            trli_run_state **run)
{
    bool apart;
    trl_err err;
    TRL_TRY(trli_placement_begin(graph, &w->placing, frame, placed, &apart));
    err = trli_placed_enter(*placed, apart, timed);
    if (err == TRL_OK) err = trli_run_take((*placed)->graph, w, w->policy, w->serial, frame, run);
    if (err != TRL_OK) trli_placement_end(graph, err, 0, *timed);
done:
    return err;
}

/* Run on the workers and their devices, as a placement says. If a device or a policy fails before the run, the run
 * is made without it, since other ranks wait for messages of its tasks. It then returns the error nevertheless if
 * the policy failed, or the user asked for the device. */
static trl_err run_placed(trl_graph *graph, trl_workers *w, void *frame)
{
    const trl_devices *devices = w->placing.devices;
    trl_err err, failed = TRL_OK;
    trli_run_state *run;
    trli_placed *placed;
    bool timed;
    const trl_diagnostic *list;
    const int said = trl_context_diagnostics(w->ctx, &list);
    err = begin_placed(graph, w, frame, &placed, &timed, &run);
    for (int i = 0; i <= devices->n && (err == TRL_ERR_DEVICE || err == TRL_ERR_PLUGIN); ++i) {
        if (failed != TRL_ERR_PLUGIN) failed = err;
        err = begin_placed(graph, w, frame, &placed, &timed, &run);
    }
    if (err != TRL_OK) return err;
    const int64_t start = trli_now_ns();
    if (failed == TRL_ERR_DEVICE && !devices->required) trli_diagnostics_forgive(w->ctx, said);
    err = run_once(run, w, TRL_OK);
    if (err == TRL_OK) err = trli_placed_leave(placed, timed);
    trli_placement_end(graph, err, trli_now_ns() - start, timed);
    return err == TRL_OK && (devices->required || failed == TRL_ERR_PLUGIN) ? failed : err;
}

trl_err trl_workers_set_devices(trl_workers *workers, const trl_devices *devices)
{
    trl_err err;
    TRL_TRY(trli_workers_check_idle(workers));
    workers->placing.devices = devices && devices->n > 0 ? devices : NULL;
    if (workers->placing.devices) TRL_TRY(trli_platform_of(devices, workers->count, &workers->placing.platform));
done:
    return err;
}

trl_err trl_workers_set_placement(trl_workers *workers, const char *placement)
{
    trl_err err;
    TRL_TRY(trli_workers_check_idle(workers));
    TRL_TRY(trli_placement_rule_of(workers->ctx, placement, &workers->placing.rule));
done:
    return err;
}

trl_err trl_workers_set_prefetch(trl_workers *workers, bool on)
{
    trl_err err;
    TRL_TRY(trli_workers_check_idle(workers));
    workers->placing.late = !on;
done:
    return err;
}

trl_err trl_workers_set_placement_file(trl_workers *workers, const char *path, const char *text, const char *graph)
{
    trl_err err;
    TRL_TRY(trli_workers_check_idle(workers));
    workers->placing.rule =
        (trli_placement_rule){.mode = TRLI_PLACE_BY_FILE, .file = {.path = path, .text = text, .graph = graph}};
done:
    return err;
}

static trl_err run_graph(trl_graph *graph, trl_workers *w, void *frame, trl_err failed)
{
    trl_err err;
    trli_run_state *run;
    TRL_TRY(check_run(graph, w));
    if (trli_is_inside())
        return trl_fail(w->ctx, TRL_ERR_USAGE, NULL, "graph '%s' cannot run inside a task: spawn tasks instead",
                        graph->name);
    if (failed == TRL_OK && is_placed(graph, w)) return run_placed(graph, w, frame);
    TRL_TRY(trli_run_take(graph, w, w->policy, w->serial, frame, &run));
    err = run_once(run, w, failed);
done:
    return err;
}

trl_err trl_graph_run(trl_graph *graph, trl_workers *w, void *frame)
{
    return run_graph(graph, w, frame, TRL_OK);
}

trl_err trl_graph_drain(trl_graph *graph, trl_workers *w, void *frame)
{
    trl_err err = run_graph(graph, w, frame, TRL_ERR_INTERRUPTED);
    return err == TRL_ERR_INTERRUPTED ? TRL_OK : err;
}

/* ---- placements as text ---- */

/* The placement if it is based on measured times; else the estimated one, also in *estimated for the caller to free. */
static trl_err find_placement(trl_graph *graph, const trl_workers *workers, trli_placement **estimated,
                              const trli_placement **placement)
{
    trl_err err;
    *estimated = NULL;
    TRL_TRY(check_run(graph, workers));
    *placement = graph->placement;
    if (graph->placement && trli_placement_is_timed(graph->placement)) return TRL_OK;
    const trli_placing placing = placing_of(workers);
    TRL_TRY(trli_placement_estimate(graph, &placing, estimated));
    *placement = *estimated;
done:
    return err;
}

trl_err trl_graph_write_placement(trl_graph *graph, const trl_workers *workers, FILE *out)
{
    trl_err err;
    trli_placement *estimated;
    const trli_placement *p;
    TRL_TRY(find_placement(graph, workers, &estimated, &p));
    TRL_TRY(trli_placement_explain(p, estimated == NULL, out));
done:
    trli_placement_free(estimated);
    return err;
}

trl_err trl_graph_write_placement_file(trl_graph *graph, const trl_workers *workers, FILE *out)
{
    trl_err err;
    trli_placement *estimated;
    const trli_placement *p;
    TRL_TRY(find_placement(graph, workers, &estimated, &p));
    TRL_TRY(trli_placement_file_write(graph, p->executor, out));
done:
    trli_placement_free(estimated);
    return err;
}
