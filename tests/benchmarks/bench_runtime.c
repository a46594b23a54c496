/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <dlfcn.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_dag_impl.h"
#include "context_impl.h"

enum {
    ROUND_TRIPS = 100000,
    SPINS = 20000, /* looks before a thread yields: the other may need its core */
};

/* Further apart than this, two round trips are those of different pairs of cores. */
static const double same_cores = 1.5;

/* Load average of a machine that does nothing else. */
static const double idle_load = 0.5;

/* ---- the serial replay ---- */

trl_err trli_replay_create(trl_context *ctx, const trli_dag *dag, trl_task_fn run, trli_replay *replay)
{
    *replay = (trli_replay){.dag = dag, .run = run};
    replay->missing = calloc((size_t)dag->tasks, sizeof *replay->missing);
    replay->queue = calloc((size_t)dag->tasks, sizeof *replay->queue);
    if (!replay->missing || !replay->queue) {
        trli_replay_destroy(replay);
        return trl_fail(ctx, TRL_ERR_MEMORY, NULL, "no memory to replay a graph");
    }
    for (int32_t t = 0; t < dag->tasks; ++t) replay->missing[t] = dag->pred_first[t + 1] - dag->pred_first[t];
    return TRL_OK;
}

void trli_replay_destroy(trli_replay *replay)
{
    free(replay->missing);
    free(replay->queue);
    *replay = (trli_replay){0};
}

void trli_replay_run(trli_replay *replay)
{
    const trli_dag *dag = replay->dag;
    const trl_task_args args = {.chunks = 1};
    int32_t head = 0, tail = 0;
    for (int32_t t = 0; t < dag->tasks; ++t)
        if (dag->pred_first[t] == dag->pred_first[t + 1]) replay->queue[tail++] = t;
    while (head < tail) {
        int32_t t = replay->queue[head++];
        bool done = true;
        if (replay->run(NULL, &args, &done) != TRL_OK) return;
        for (int32_t d = dag->first[t]; d < dag->first[t + 1]; ++d) {
            int32_t s = dag->successors[d];
            /* Acquire and release as several threads would need; one thread replays. */
            if (atomic_fetch_sub_explicit(&replay->missing[s], 1, memory_order_acq_rel) > 1) continue;
            /* Relaxed: nobody counts before the next replay. */
            atomic_store_explicit(&replay->missing[s], dag->pred_first[s + 1] - dag->pred_first[s],
                                  memory_order_relaxed);
            replay->queue[tail++] = s;
        }
    }
}

/* ---- other runtimes ---- */

void trli_baselines_load(trli_bench *bench, trli_baselines *baselines)
{
    static const char *const names[] = {"openmp", "tbb"};
    *baselines = (trli_baselines){0};
    trli_json_key(bench->json, "baselines");
    trli_json_begin_array(bench->json);
    for (size_t i = 0; i < sizeof names / sizeof *names; ++i) {
        char path[4096];
        const trli_baseline *(*export)(void) = NULL;
        snprintf(path, sizeof path, "%s/%s.so", TRL_BASELINE_FOLDER, names[i]);
        void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        void *symbol = library ? dlsym(library, "trli_baseline_export") : NULL;
        if (!symbol) {
            printf("not built, left out: %s\n", names[i]);
            if (library) dlclose(library);
            continue;
        }
        memcpy(&export, &symbol, sizeof symbol); /* ISO C knows no cast from data to a function */
        baselines->list[baselines->count++] = export();
        trli_json_string(bench->json, names[i]);
    }
    trli_json_end_array(bench->json);
}

static void pin(void *data, int member)
{
    const trl_context *ctx = data;
    if (trl_context_pinned(ctx)) trli_topology_pin(&ctx->topology, member);
}

trl_err trli_baselines_start(trl_context *ctx, const trli_baselines *baselines, int threads)
{
    for (int b = 0; b < baselines->count; ++b) {
        if (baselines->list[b]->start(threads, pin, ctx) == 0) continue;
        while (b-- > 0) baselines->list[b]->stop();
        return trl_fail(ctx, TRL_ERR_MEMORY, NULL, "cannot start the threads of %s", baselines->list[b + 1]->name);
    }
    return TRL_OK;
}

void trli_baselines_stop(const trli_baselines *baselines)
{
    for (int b = 0; b < baselines->count; ++b) baselines->list[b]->stop();
}

/* ---- the distance between two cores ---- */

typedef struct ball {
    _Alignas(128) _Atomic int turn; /* whose turn it is; 128: processors fetch pairs of lines */
    _Alignas(128) int member;       /* who plays with member 0 */
    double seconds;
} ball;

static void play(trli_team *team, int member, void *data)
{
    ball *b = data;
    trli_team_barrier(team);
    if (member != 0 && member != b->member) return;
    int own = member != 0;
    double start = trli_bench_clock();
    for (int i = 0; i < ROUND_TRIPS; ++i) {
        /* Relaxed: the line itself is all that travels. */
        for (int spins = 0; atomic_load_explicit(&b->turn, memory_order_relaxed) != own; ++spins)
            if (spins > SPINS) sched_yield();
        atomic_store_explicit(&b->turn, !own, memory_order_relaxed);
    }
    if (member == 0) b->seconds = (trli_bench_clock() - start) / ROUND_TRIPS;
}

trl_err trli_round_trip(trl_context *ctx, int other, double *seconds)
{
    ball b = {.member = other};
    trl_err err = trli_team_run(ctx, other + 1, play, &b);
    *seconds = b.seconds;
    return err;
}

trl_err trli_round_trips(trli_bench *bench, int threads, const char *key, double *seconds)
{
    trli_json *json = bench->json;
    double last = 0, load = 0;
    trl_err err = TRL_OK;
    *seconds = 0;
    if (getloadavg(&load, 1) != 1) load = NAN;
    printf("%s: %.1f threads ran on this machine in the last minute", key, load);
    if (threads > 1) {
        TRL_TRY(trli_round_trip(bench->ctx, 1, seconds));
        printf(", round trip of a cache line %.0f ns between cores 0 and 1", 1e9 * *seconds);
    }
    if (threads > 2) {
        TRL_TRY(trli_round_trip(bench->ctx, threads - 1, &last));
        printf(", %.0f ns between 0 and %d", 1e9 * last, threads - 1);
    }
    putchar('\n');
    /* Until the first run nothing of the load is ours, later at most a thread for each worker, and those of the
     * baselines that spin. */
    int own = threads > 1 || strcmp(key, "before") != 0 ? threads : 0;
    if (load > own + idle_load) bench->busy = true;
    trli_json_key(json, key);
    trli_json_begin_object(json);
    trli_json_key(json, "load_average");
    trli_json_number(json, load);
    trli_json_key(json, "round_trip_s");
    trli_json_number(json, threads > 1 ? *seconds : NAN);
    trli_json_key(json, "round_trip_last_s");
    trli_json_number(json, threads > 2 ? last : NAN);
    trli_json_end_object(json);
done:
    return err;
}

void trli_round_trips_compare(double before, double after)
{
    if (before > same_cores * after || after > same_cores * before)
        puts("caution: the distance between the cores changed meanwhile; rounds of this table differ in more than "
             "noise");
}

int trli_thread_counts(const trli_bench *bench, int *counts, int max)
{
    int n = 0;
    for (int threads = 1; threads < bench->threads && n < max - 1; threads *= 2) counts[n++] = threads;
    counts[n++] = bench->threads;
    return n;
}

/* ---- gates ---- */

bool trli_gate_met(const trli_gate *gate)
{
    return gate->at_least ? gate->value >= gate->limit : gate->value <= gate->limit; /* false for NAN */
}

void trli_gates_report(trli_bench *bench, const trli_gate *gate, int n)
{
    trli_json *json = bench->json;
    trli_json_key(json, "gates");
    trli_json_begin_array(json);
    printf("\n%-72s %10s %10s\n", "gate", "measured", "limit");
    for (int g = 0; g < n; ++g) {
        const char *verdict = isnan(gate[g].value) ? "not measured" : trli_gate_met(&gate[g]) ? "ok" : "MISSED";
        printf("%-72s %10.3g %s %7.3g  %s\n", gate[g].what, gate[g].value,
               gate[g].at_least ? ">=" : "<=", gate[g].limit, verdict);
        trli_json_begin_object(json);
        trli_json_key(json, "gate");
        trli_json_string(json, gate[g].what);
        trli_json_key(json, "value");
        trli_json_number(json, gate[g].value);
        trli_json_key(json, "limit");
        trli_json_number(json, gate[g].limit);
        trli_json_key(json, "verdict");
        trli_json_string(json, verdict);
        trli_json_end_object(json);
    }
    trli_json_end_array(json);
    trli_json_key(json, "busy");
    trli_json_bool(json, bench->busy);
    if (bench->quick) puts("with --quick these say nothing about speed");
    if (bench->busy) puts("caution: other programs used the cores meanwhile; neither ok nor MISSED can be relied on");
}
