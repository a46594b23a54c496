/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The placement that a graph is run with. In the first runs each executor runs every task that it may, to be timed;
 * then tasks are placed by these times, and again when times drift. */

#include <string.h>

#include "placed_run_impl.h"
#include "placement_assign_impl.h"
#include "placement_run_impl.h"

double *trli_placement_seconds_at(const trli_placement *p, int32_t task, int executor)
{
    return &p->seconds[(size_t)task * (size_t)p->platform.executors + (size_t)executor];
}

/* A wide task occupies all workers. */
double trli_placement_on_workers(const trli_placement *p, int32_t task, double sum)
{
    const int32_t chunks = trli_graph_records(p->graph)[task].chunks;
    return sum / (chunks < p->workers ? chunks : p->workers);
}

/* Whether the workers' tasks are mostly wide: then the workers count as one slot, else as many slots as workers. */
static bool mostly_wide(const trli_placement *p)
{
    double wide = 0, all = 0;
    for (int32_t t = 0; t < p->graph->task_count; ++t) {
        const double s = *trli_placement_seconds_at(p, t, 0);
        all += s;
        if (trli_graph_records(p->graph)[t].chunks > 1) wide += s;
    }
    return 2 * wide > all;
}

/* ---- choosing ---- */

bool trli_placement_may_run(const trli_placement *p, int32_t task, int executor)
{
    return p->eligible[task] & 1u << executor;
}

static void find_eligible(trli_placement *p)
{
    for (int32_t t = 0; t < p->graph->task_count; ++t) {
        p->eligible[t] = 0;
        for (int e = 0; e < p->platform.executors; ++e)
            if ((e == 0 || !p->excluded[e]) && trli_placed_eligible(p->graph, t, p->platform.kind[e]))
                p->eligible[t] |= (uint16_t)(1u << e);
        p->eligible[p->unit[t]] &= p->eligible[t];
    }
    for (int32_t t = 0; t < p->graph->task_count; ++t) p->eligible[t] = p->eligible[p->unit[t]];
}

trli_place_graph trli_placement_view(const trli_placement *p)
{
    trli_place_graph view = trli_graph_to_place(p->graph);
    view.eligible = p->eligible;
    view.seconds = p->seconds;
    view.valid = p->steady;
    return view;
}

/* Bodies of calls that devices may do, each as a graph whose runs follow one another: where it leaves data it finds it.
 * By times, or in equal parts on the devices. */
static trl_err assign_bodies(const trli_placement *p, const double *seconds, bool to_devices, uint8_t *executor)
{
    trl_context *ctx = p->graph->ctx;
    trl_err err = TRL_OK;
    uint8_t *of_body = NULL;
    for (int32_t c = 0; c < p->graph->calls.count; ++c) {
        const trli_call *call = &trli_graph_calls(p->graph)[c];
        const trl_graph *body = call->desc.body;
        if (!trli_call_is_open(p->graph, c)) continue;
        trli_place_graph view = trli_graph_to_place(body);
        view.eligible = p->eligible + call->first;
        view.seconds = seconds + (size_t)call->first * (size_t)p->platform.executors;
        view.valid = p->steady; /* ANYWHERE, of fewer handles */
        trli_free(of_body);
        of_body = trli_new(ctx, (size_t)body->task_count + 1, sizeof *of_body);
        if (!of_body) return trli_no_memory(ctx, NULL, "for a placement");
        TRL_TRY(to_devices ? trli_assign_to_devices(ctx, &view, &p->platform, of_body)
                           : trli_assign(ctx, &view, &p->platform, p->rule.kind, of_body));
        memcpy(executor + call->first, of_body, (size_t)trli_own_tasks(body)); /* its calls come behind it */
    }
done:
    trli_free(of_body);
    return err;
}

/* Place by times. Data that is there when a run begins lies where an equal previous run left it. */
static trl_err assign(trli_placement *p, uint8_t *executor)
{
    const trli_place_graph view = trli_placement_view(p);
    trl_err err;
    p->platform.parallel[0] = mostly_wide(p) ? 1 : p->workers;
    if (p->policy) return trli_policy_assign(p, executor);
    TRL_TRY(trli_assign(p->graph->ctx, &view, &p->platform, p->rule.kind, executor));
    err = assign_bodies(p, p->seconds, false, executor);
done:
    return err;
}

void trli_placement_put_on(const trli_placement *p, int e, uint8_t *executor)
{
    for (int32_t t = 0; t < p->graph->task_count; ++t) executor[t] = (uint8_t)(trli_placement_may_run(p, t, e) ? e : 0);
}

/* The next number of a sequence (Marsaglia, "Xorshift RNGs", 2003). */
static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* One executor for each unit. */
static void spread(trli_placement *p, uint8_t *executor)
{
    for (int32_t t = 0; t < p->graph->task_count; ++t) {
        unsigned may = p->eligible[t];
        executor[t] = executor[p->unit[t]];
        if (p->unit[t] < t) continue;
        for (int skip = (int)((next_random(&p->rule.seed) >> 33) % (uint64_t)__builtin_popcount(may)); skip > 0; --skip)
            may &= may - 1;
        executor[t] = (uint8_t)__builtin_ctz(may);
    }
}

/* No task was timed: all count as equally long. */
static trl_err deal(const trli_placement *p, uint8_t *executor)
{
    trli_place_graph view = trli_placement_view(p);
    const size_t n = (size_t)view.tasks * (size_t)p->platform.executors;
    double *seconds = trli_new(p->graph->ctx, n + 1, sizeof *seconds);
    if (!seconds) return trli_no_memory(p->graph->ctx, NULL, "for a placement");
    for (size_t i = 0; i < n; ++i) seconds[i] = 1.0;
    view.seconds = seconds;
    trl_err err = trli_assign_to_devices(p->graph->ctx, &view, &p->platform, executor);
    if (err == TRL_OK) err = assign_bodies(p, seconds, true, executor);
    trli_free(seconds);
    return err;
}

/* The graph must be placed again. */
void trli_placement_drop(trli_placement *p)
{
    for (int i = 0; p->placed && i < TRL_WAYS; ++i) {
        p->copies[i] += p->placed->copies[i];
        p->bytes[i] += p->placed->bytes[i];
    }
    for (int32_t t = 0; p->placed && t < p->graph->task_count; ++t) p->done[p->executor[t]] += p->runs + p->untimed;
    trli_placed_destroy(&p->placed);
}

static void follow_file(const trli_placement *p, uint8_t *executor)
{
    for (int32_t t = 0; t < p->graph->task_count; ++t)
        executor[t] = trli_placement_may_run(p, t, p->fixed[t]) ? p->fixed[t] : 0;
}

bool trli_placement_follows(const trli_placement *p)
{
    return p->graph->leader && p->rule.mode == TRLI_PLACE_BY_TIMES && !p->rule.named && !p->asked_policy;
}

/* Where the leader's first task ran last. */
static int find_leader(const trli_placement *p)
{
    trl_graph *leader = p->graph->leader;
    int e = 0;
    pthread_mutex_lock(&leader->placing);
    if (leader->placement && leader->task_count > 0) e = leader->placement->executor[0];
    pthread_mutex_unlock(&leader->placing);
    return e;
}

static trl_err choose_executors(trli_placement *p, uint8_t *executor)
{
    trl_err err = TRL_OK;
    if (p->rule.mode == TRLI_PLACE_BY_FILE)
        follow_file(p, executor);
    else if (p->rule.mode == TRLI_PLACE_AT_RANDOM)
        spread(p, executor);
    else if (p->rule.mode == TRLI_PLACE_ON_DEVICES)
        err = deal(p, executor);
    else if (p->stage < p->platform.executors)
        trli_placement_put_on(p, p->stage, executor);
    else if (p->single >= 0)
        trli_placement_put_on(p, p->single, executor);
    else
        err = assign(p, executor);
    return err;
}

static trl_err place(trli_placement *p)
{
    trl_err err;
    trli_placement_drop(p);
    TRL_TRY(choose_executors(p, p->executor));
    TRL_TRY(trli_placed_create(p->graph, p->devices, &p->platform, p->executor, p->late, &p->placed));
    p->runs = p->untimed = p->sum_ns = 0;
    p->least_ns = INT64_MAX;
done:
    return err;
}

/* With a single executor there is nothing to time. */
static bool has_choice(const trli_placement *p)
{
    for (int32_t t = 0; t < p->graph->task_count; ++t)
        if (p->eligible[t] & ~1u) return true;
    return false;
}

void trli_placement_free(trli_placement *p)
{
    if (!p) return;
    trli_policy_end(p);
    trli_placed_destroy(&p->placed);
    trli_free(p->executor);
    trli_free(p->fixed);
    trli_free(p->unit);
    trli_free(p->eligible);
    trli_free(p->seconds);
    trli_free(p->latest);
    trli_free(p->steady);
    trli_free(p);
}

static trl_err read_file(trli_placement *p)
{
    if (!trli_placement_has_file(&p->rule, p->graph)) {
        p->rule = (trli_placement_rule){.mode = TRLI_PLACE_BY_TIMES};
        return TRL_OK;
    }
    p->fixed = trli_new(p->graph->ctx, (size_t)p->graph->task_count + 1, sizeof *p->fixed);
    if (!p->fixed) return trli_no_memory(p->graph->ctx, NULL, "for a placement");
    return trli_placement_file_read(p->graph, &p->platform, &p->rule.file, p->fixed);
}

/* Whether tasks wait for more than their predecessors: for the turn of their phase, or for signals. A copy that waits
 * for what comes before one of its readers could then wait for what another of its readers holds up. */
static bool waits_beyond_edges(const trl_graph *graph)
{
    const trli_task_record *record = trli_graph_records(graph);
    for (int32_t t = 0; t < graph->task_count; ++t)
        if (record[t].flags & (TRLI_TASK_PHASED | TRLI_TASK_SIGNALLED)) return true;
    return false;
}

/* The first task of each task's unit, those of bodies included. */
static trl_err find_units(const trl_graph *graph, int32_t *unit)
{
    const trli_place_graph view = trli_graph_to_place(graph);
    trl_err err;
    TRL_TRY(trli_units_find(graph->ctx, &view, unit));
    for (int32_t c = 0; c < graph->calls.count; ++c) { /* those in bodies come later */
        const trli_call *call = &trli_graph_calls(graph)[c];
        const trli_place_graph body = trli_graph_to_place(call->desc.body);
        TRL_TRY(trli_units_find(graph->ctx, &body, unit + call->first));
        for (int32_t t = call->first; t < call->end; ++t) unit[t] += call->first;
    }
done:
    return err;
}

static trl_err create(trl_graph *graph, const trli_placing *placing, trli_placement **result)
{
    const size_t n = (size_t)graph->task_count + 1;
    trl_err err = TRL_OK;
    trli_placement *p = trli_new(graph->ctx, 1, sizeof *p);
    if (!p) return trli_no_memory(graph->ctx, NULL, "for a placement");
    p->graph = graph;
    p->devices = placing->devices;
    p->platform = placing->platform;
    p->rule = p->asked = placing->rule;
    p->asked_policy = placing->policy;
    p->asked_late = placing->late;
    p->late = placing->late && !waits_beyond_edges(graph);
    p->workers = p->platform.parallel[0];
    p->rule.seed += (uint64_t)graph->task_count; /* each graph has another sequence */
    p->executor = trli_new(graph->ctx, n, sizeof *p->executor);
    p->unit = trli_new(graph->ctx, n, sizeof *p->unit);
    p->eligible = trli_new(graph->ctx, n, sizeof *p->eligible);
    p->seconds = trli_new(graph->ctx, n * (size_t)p->platform.executors, sizeof *p->seconds);
    p->latest = trli_new(graph->ctx, n, sizeof *p->latest);
    p->steady = trli_new(graph->ctx, (size_t)graph->handles.count + 1, sizeof *p->steady);
    if (!p->executor || !p->unit || !p->eligible || !p->seconds || !p->latest || !p->steady)
        TRL_TRY(trli_no_memory(graph->ctx, NULL, "for a placement"));
    for (int64_t h = 0; h < graph->handles.count; ++h) p->steady[h] = 1u << TRLI_ANYWHERE;
    p->single = -1;
    TRL_TRY(find_units(graph, p->unit));
    find_eligible(p);
    if (p->rule.mode == TRLI_PLACE_BY_FILE) TRL_TRY(read_file(p));
    if (!has_choice(p) || p->rule.mode != TRLI_PLACE_BY_TIMES || trli_placement_follows(p))
        p->stage = p->platform.executors;
    if (has_choice(p) && p->rule.mode == TRLI_PLACE_BY_TIMES && !p->rule.named) p->policy = placing->policy;
    *result = p;
    p = NULL;
done:
    trli_placement_free(p);
    return err;
}

void trli_placement_destroy(trl_graph *graph)
{
    trli_placement_free(graph->placement);
    graph->placement = NULL;
}

/* Leave out a device whose memory is too small, or that failed. */
static void exclude(trli_placement *p, int executor)
{
    p->excluded[executor] = true;
    find_eligible(p);
    if (p->stage == executor) trli_placement_next_stage(p);
    trli_placement_drop(p);
}

/* Provide memory in all spaces. A device that lacks memory is left out, unless the user asked for it. */
static trl_err provide(trli_placement *p, void *frame, bool running)
{
    int space = 0;
    trl_err err = trli_placed_provide(p->placed, frame, &space);
    if (err != TRL_ERR_MEMORY) return err;
    trl_device *device = trli_device_of(p->devices, space);
    if (running || p->devices->required)
        return trl_fail(p->graph->ctx, err, NULL, "device %d (%s) has no memory for the data of '%s'", space - 1,
                        device->info.name, p->graph->name);
    trl_warn(p->graph->ctx, NULL, "device %d (%s) has no memory for the data of '%s', which is run without it",
             space - 1, device->info.name, p->graph->name);
    atomic_store(&device->full, true);
    exclude(p, space);
    return TRL_OK;
}

/* Place without the devices that failed. */
static trl_err be_placed(trli_placement *p)
{
    for (int e = 1; e < p->platform.executors && p->runs_now == 0; ++e)
        if (!p->excluded[e] && !trli_device_usable(trli_device_of(p->devices, e))) exclude(p, e);
    const int leader = trli_placement_follows(p) ? find_leader(p) : p->single;
    if (p->single != leader && p->runs_now == 0) {
        p->single = leader;
        trli_placement_drop(p);
    }
    return p->placed ? TRL_OK : place(p);
}

static bool same_rule(const trli_placement_rule *a, const trli_placement_rule *b)
{
    return a->mode == b->mode && a->named == b->named && a->kind == b->kind && a->seed == b->seed &&
           a->file.text == b->file.text;
}

/* The placement of a graph for these workers: that of earlier runs, or a new one. */
static trl_err find_placement(trl_graph *graph, const trli_placing *placing)
{
    const trli_placement *p = graph->placement;
    const bool fits = p && p->devices == placing->devices && p->workers == placing->platform.parallel[0] &&
                      p->asked_policy == placing->policy;
    const bool same = fits && same_rule(&p->asked, &placing->rule) && p->asked_late == placing->late;
    if (p && (p->runs_now > 0 || (fits && p->used) || same)) return TRL_OK;
    trli_placement_destroy(graph);
    return create(graph, placing, &graph->placement);
}

bool trli_placement_is_by_times(const trli_placement *p)
{
    return p->rule.mode == TRLI_PLACE_BY_TIMES && has_choice(p) && !trli_placement_follows(p);
}

trl_err trli_placement_begin(trl_graph *graph, const trli_placing *placing, void *frame, trli_placed **placed,
                             bool *apart)
{
    trl_err err;
    pthread_mutex_lock(&graph->placing);
    TRL_TRY(find_placement(graph, placing));
    trli_placement *p = graph->placement;
    const bool running = p->runs_now > 0;
    do {
        TRL_TRY(be_placed(p));
        TRL_TRY(provide(p, frame, running));
    } while (!p->placed);
    p->used = true;
    *placed = p->placed;
    *apart = trli_placement_is_by_times(p) && (p->stage < p->platform.executors || p->runs < TRLI_PLACEMENT_TRIED);
    ++p->runs_now;
done:
    pthread_mutex_unlock(&graph->placing);
    return err;
}

trl_err trli_placement_hold(trl_graph *graph, const trli_placing *placing, trli_placed **placed)
{
    trl_err err;
    pthread_mutex_lock(&graph->placing);
    TRL_TRY(find_placement(graph, placing));
    TRL_TRY(be_placed(graph->placement));
    *placed = graph->placement->placed;
    ++graph->placement->runs_now;
done:
    pthread_mutex_unlock(&graph->placing);
    return err;
}

void trli_placement_release(trl_graph *graph)
{
    pthread_mutex_lock(&graph->placing);
    --graph->placement->runs_now;
    pthread_mutex_unlock(&graph->placing);
}

void trli_graph_set_leading(trl_graph *graph, bool leads)
{
    graph->leads = leads;
}

bool trli_graph_left_to_devices(trl_graph *graph)
{
    pthread_mutex_lock(&graph->placing);
    const trli_placed *placed = graph->placement ? graph->placement->placed : NULL;
    const bool left = placed && placed->overlaps;
    pthread_mutex_unlock(&graph->placing);
    return left;
}

void trl_graph_follow(trl_graph *graph, trl_graph *leader)
{
    if (graph->leader == leader) return;
    pthread_mutex_lock(&graph->placing);
    graph->leader = leader;
    trli_placement_destroy(graph); /* another one is made for the next run */
    pthread_mutex_unlock(&graph->placing);
}

void trl_graph_forget_times(trl_graph *graph)
{
    pthread_mutex_lock(&graph->placing);
    trli_placement *p = graph->placement;
    if (p && p->runs_now == 0 && trli_placement_is_by_times(p)) {
        memset(p->seconds, 0, (size_t)graph->task_count * (size_t)p->platform.executors * sizeof *p->seconds);
        trli_placement_time_again(p);
    }
    pthread_mutex_unlock(&graph->placing);
}

/* Names of tasks belong to the graph, but the name of a spawned task to the placed graph, which may be freed. */
static void note_failed(trl_graph *graph, const trl_graph *placed)
{
    const bool copied = placed->failed_name == placed->copied_name;
    if (copied) memcpy(graph->copied_name, placed->copied_name, sizeof graph->copied_name);
    graph->failed_name = copied ? graph->copied_name : placed->failed_name;
}

void trli_placement_end(trl_graph *graph, trl_err err, int64_t ns, bool timed)
{
    trli_placement *p = graph->placement;
    pthread_mutex_lock(&graph->placing);
    --p->runs_now;
    note_failed(graph, p->placed->graph);
    ++graph->runs;
    if (err == TRL_OK) trli_placement_learn(p, ns, timed);
    pthread_mutex_unlock(&graph->placing);
}

/* ---- without a run ---- */

bool trli_placement_is_timed(const trli_placement *p)
{
    return trli_placement_is_by_times(p) && p->stage >= p->platform.executors;
}

/* Expected seconds of a task on an executor before any task was timed. */
static double estimate_seconds(const trli_placement *p, int32_t task, int e)
{
    const double least = 1e-7; /* time to take a task from a queue and call it */
    const trli_task_info *info = &trli_graph_info(p->graph)[task];
    const double alone = info->cost > least ? info->cost : least;
    if (e == 0) return trli_placement_on_workers(p, task, alone);
    return trli_figures_seconds(&trli_device_of(p->devices, e)->figures, alone, info->bytes, info->flops);
}

trl_err trli_placement_estimate(trl_graph *graph, const trli_placing *placing, trli_placement **result)
{
    trli_placement *p = NULL;
    trl_err err;
    *result = NULL;
    TRL_TRY(create(graph, placing, &p));
    for (int32_t t = 0; t < graph->task_count; ++t)
        for (int e = 0; e < p->platform.executors; ++e)
            if (trli_placement_may_run(p, t, e)) *trli_placement_seconds_at(p, t, e) = estimate_seconds(p, t, e);
    p->stage = p->platform.executors;
    TRL_TRY(choose_executors(p, p->executor));
    *result = p;
    p = NULL;
done:
    trli_placement_free(p);
    return err;
}
