/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_tasks_impl.h"

enum { ROUNDS = 9, QUICK_ROUNDS = 2, COUNTS_MAX = 8, WARMING = 3, GATE_THREADS = 2, WINDOW = 1000, CHILDREN = 8 };

static const char trellis[] = "Trellis", with_locks[] = "Trellis, with locks", replay_name[] = "serial replay",
                  openmp[] = "OpenMP tasks";

trl_err trli_tasks_nothing(void *data, const trl_task_args *args, bool *done)
{
    (void)data, (void)args, (void)done;
    return TRL_OK;
}

void trli_tasks_nothing_plain(void *data, int32_t task)
{
    (void)data, (void)task;
}

/* ---- ways ---- */

static trl_err run_way(void *data)
{
    const trli_way *way = data;
    trl_err err = TRL_OK;
    for (int r = 0; r < way->repeats && err == TRL_OK; ++r) {
        if (way->graph)
            err = trl_graph_run(way->graph, way->workers, NULL);
        else if (way->replay)
            trli_replay_run(way->replay);
        else if (way->loop)
            err = way->loop(way->data);
        else if (way->baseline->run(way->made) != 0)
            err = TRL_ERR_BUG;
    }
    return err;
}

trli_way *trli_tasks_add(trli_tasks *tasks, const char *name, int repeats)
{
    trli_way *way = &tasks->way[tasks->ways];
    *way = (trli_way){.name = name, .repeats = repeats, .workers = tasks->workers};
    tasks->contender[tasks->ways] = (trli_contender){.name = name, .run = run_way, .data = way};
    tasks->shares[tasks->ways++][0] = '\0';
    return way;
}

trl_err trli_tasks_warm(trli_way *way)
{
    trl_err err = TRL_OK;
    for (int r = 0; r < WARMING && err == TRL_OK; ++r) err = trl_graph_run(way->graph, way->workers, NULL);
    return err;
}

void trli_tasks_clear(trli_tasks *tasks)
{
    for (int w = 0; w < tasks->ways; ++w) {
        trl_graph_destroy(&tasks->way[w].graph);
        if (tasks->way[w].made) tasks->way[w].baseline->destroy(tasks->way[w].made);
    }
    tasks->ways = 0;
}

static int find(const trli_tasks *tasks, const char *name)
{
    for (int w = 0; w < tasks->ways; ++w)
        if (strcmp(tasks->way[w].name, name) == 0) return w;
    return -1;
}

/* Of one run: ways differ in how often they repeat it. */
static trli_spread time_ratio(const trli_tasks *tasks, int way, int other)
{
    double ratio[TRLI_ROUNDS_MAX];
    for (int r = 0; r < tasks->rounds; ++r)
        ratio[r] = tasks->contender[way].seconds[r] / tasks->way[way].repeats /
                   (tasks->contender[other].seconds[r] / tasks->way[other].repeats);
    return trli_spread_of(ratio, tasks->rounds);
}

double trli_tasks_ratio(const trli_tasks *tasks, const char *name, const char *other)
{
    int a = find(tasks, name), b = find(tasks, other);
    return a < 0 || b < 0 ? NAN : time_ratio(tasks, a, b).median;
}

static trli_spread run_seconds(const trli_tasks *tasks, int way)
{
    double seconds[TRLI_ROUNDS_MAX];
    for (int r = 0; r < tasks->rounds; ++r) seconds[r] = tasks->contender[way].seconds[r] / tasks->way[way].repeats;
    return trli_spread_of(seconds, tasks->rounds);
}

double trli_tasks_seconds(const trli_tasks *tasks, const char *name)
{
    int way = find(tasks, name);
    return way < 0 ? NAN : run_seconds(tasks, way).median;
}

static void print_ratio(trli_json *json, const trli_tasks *tasks, int way, int other, const char *key)
{
    if (other < 0 || way == other) {
        printf(" %24s", "");
        return;
    }
    trli_spread ratio = time_ratio(tasks, way, other);
    printf(" %7.2f (%6.2f, %6.2f)", ratio.median, ratio.min, ratio.max);
    trli_spread_report(json, key, &ratio);
}

trl_err trli_tasks_measure(trli_tasks *tasks)
{
    trli_json *json = tasks->bench->json;
    trl_err err = trli_rounds_run(tasks->contender, tasks->ways, tasks->rounds);
    for (int w = 0; w < tasks->ways && err == TRL_OK; ++w) {
        trli_spread ns = run_seconds(tasks, w);
        double scale = 1e9 / tasks->tasks;
        ns = (trli_spread){ns.median * scale, ns.min * scale, ns.max * scale};
        trli_json_begin_object(json);
        trli_json_key(json, "case");
        trli_json_string(json, tasks->name);
        trli_json_key(json, "name");
        trli_json_string(json, tasks->way[w].name);
        trli_json_key(json, "threads");
        trli_json_integer(json, tasks->threads);
        trli_json_key(json, "tasks");
        trli_json_integer(json, tasks->tasks);
        trli_spread_report(json, "ns", &ns);
        printf("%-26s %-24s %8.1f (%7.1f, %7.1f)", w == 0 ? tasks->name : "", tasks->way[w].name, ns.median, ns.min,
               ns.max);
        print_ratio(json, tasks, w, 0, "ratio_floor");
        print_ratio(json, tasks, w, find(tasks, openmp), "ratio_openmp");
        if (tasks->shares[w][0]) {
            trli_json_key(json, "shares");
            trli_json_string(json, tasks->shares[w]);
        }
        printf("  %s\n", tasks->shares[w]);
        trli_json_end_object(json);
    }
    return err;
}

/* ---- who ran what: an untimed run that counts and checks ---- */

typedef struct counter {
    _Alignas(64) int64_t tasks;
} counter;

typedef struct census {
    const trli_dag *dag;
    counter *of_worker;
    int32_t *ran; /* [tasks] how often; one task's is written by that task, and read by those after it */
    _Atomic bool early;
} census;

typedef struct citizen {
    census *all;
    int32_t task;
} citizen;

static trl_err count(void *data, const trl_task_args *args, bool *done)
{
    const citizen *c = data;
    const trli_dag *dag = c->all->dag;
    (void)done;
    for (int32_t d = dag->pred_first[c->task]; d < dag->pred_first[c->task + 1]; ++d)
        if (c->all->ran[dag->predecessors[d]] != 1)
            atomic_store_explicit(&c->all->early, true, memory_order_relaxed); /* looked at after the run */
    ++c->all->ran[c->task];
    ++c->all->of_worker[args->worker].tasks;
    return TRL_OK;
}

static void describe(const trli_tasks *tasks, const counter *of_worker, int64_t all, char *text, size_t size)
{
    size_t used = (size_t)snprintf(text, size, "%%");
    for (int w = 0; w < tasks->threads && used < size; ++w)
        used += (size_t)snprintf(text + used, size - used, " %.0f", 100.0 * (double)of_worker[w].tasks / (double)all);
}

static trl_err check(trli_tasks *tasks, const census *all)
{
    bool early = atomic_load_explicit(&all->early, memory_order_relaxed); /* the run is over */
    for (int32_t t = 0; t < all->dag->tasks; ++t)
        if (all->ran[t] != 1)
            return trl_fail(tasks->bench->ctx, TRL_ERR_BUG, NULL, "%s: task %d ran %d times", tasks->name, t,
                            all->ran[t]);
    if (!early) return TRL_OK;
    return trl_fail(tasks->bench->ctx, TRL_ERR_BUG, NULL, "%s: a task ran before its predecessors", tasks->name);
}

static trl_err take_census(trli_tasks *tasks, const trli_dag *dag, int way)
{
    census all = {.dag = dag};
    citizen *citizens = calloc((size_t)dag->tasks, sizeof *citizens);
    trl_graph *graph = NULL;
    trl_err err = TRL_OK;
    all.of_worker = aligned_alloc(64, (size_t)tasks->threads * sizeof *all.of_worker);
    all.ran = calloc((size_t)dag->tasks, sizeof *all.ran);
    if (!citizens || !all.of_worker || !all.ran)
        TRL_TRY(trl_fail(tasks->bench->ctx, TRL_ERR_MEMORY, NULL, "no memory to count tasks"));
    for (int32_t t = 0; t < dag->tasks; ++t) citizens[t] = (citizen){.all = &all, .task = t};
    TRL_TRY(trli_dag_build(tasks->bench->ctx, dag, count, citizens, sizeof *citizens, &graph));
    for (int warm = 0; warm < 2; ++warm) { /* the second run is like the timed ones */
        memset(all.ran, 0, (size_t)dag->tasks * sizeof *all.ran);
        memset(all.of_worker, 0, (size_t)tasks->threads * sizeof *all.of_worker);
        TRL_TRY(trl_graph_run(graph, tasks->workers, NULL));
        TRL_TRY(check(tasks, &all));
    }
    describe(tasks, all.of_worker, dag->tasks, tasks->shares[way], sizeof tasks->shares[way]);
done:
    trl_graph_destroy(&graph);
    free(citizens);
    free(all.of_worker);
    free(all.ran);
    return err;
}

/* ---- cases ---- */

typedef struct shape {
    const char *name;
    int32_t n, quick_n;
    trl_err (*make)(trl_context *ctx, int32_t n, trli_dag *dag);
    int repeats;
    bool locks;
} shape;

static trl_err make_random(trl_context *ctx, int32_t n, trli_dag *dag)
{
    return trli_dag_random(ctx, n, WINDOW, dag);
}

static trl_err add_trellis(trli_tasks *tasks, const char *name, const trli_dag *dag, int repeats)
{
    trli_way *way = trli_tasks_add(tasks, name, repeats);
    trl_err err = TRL_OK;
    TRL_TRY(trli_dag_build(tasks->bench->ctx, dag, trli_tasks_nothing, NULL, 0, &way->graph));
    TRL_TRY(trli_tasks_warm(way));
    TRL_TRY(take_census(tasks, dag, tasks->ways - 1));
done:
    return err;
}

static trl_err add_baselines(trli_tasks *tasks, const trli_dag_view *view, int repeats)
{
    for (int b = 0; b < tasks->baselines->count; ++b) {
        const trli_baseline *baseline = tasks->baselines->list[b];
        trli_way *way = trli_tasks_add(tasks, baseline->name, repeats);
        way->baseline = baseline;
        way->made = baseline->create(view, trli_tasks_nothing_plain, NULL);
        if (!way->made)
            return trl_fail(tasks->bench->ctx, TRL_ERR_MEMORY, NULL, "%s cannot make a graph", baseline->name);
    }
    return TRL_OK;
}

static trl_err play(trli_tasks *tasks, const shape *shape)
{
    trl_context *ctx = tasks->bench->ctx;
    int repeats = tasks->bench->quick ? 1 : shape->repeats;
    trli_dag dag = {0};
    trli_dag_view view;
    trli_replay replay = {0};
    trl_err err = TRL_OK;
    tasks->name = shape->name;
    TRL_TRY(shape->make(ctx, tasks->bench->quick ? shape->quick_n : shape->n, &dag));
    tasks->tasks = dag.tasks;
    view = (trli_dag_view){dag.tasks, dag.pred_first, dag.predecessors};
    TRL_TRY(trli_replay_create(ctx, &dag, trli_tasks_nothing, &replay));
    trli_tasks_add(tasks, replay_name, repeats)->replay = &replay;
    TRL_TRY(add_trellis(tasks, trellis, &dag, repeats));
    if (shape->locks) { /* the graph above was built without */
        TRL_TRY(trli_dag_add_locks(ctx, dag.tasks / 100 + 1, CHILDREN, &dag));
        TRL_TRY(add_trellis(tasks, with_locks, &dag, repeats));
    }
    TRL_TRY(add_baselines(tasks, &view, 1));
    TRL_TRY(trli_tasks_measure(tasks));
done:
    trli_replay_destroy(&replay);
    trli_dag_destroy(&dag);
    return err;
}

typedef struct loop {
    int32_t n;
    trl_task_fn run;
} loop;

/* The floor of a wide task: its function called for each chunk. */
static trl_err call_all(void *data)
{
    const loop *l = data;
    trl_err err = TRL_OK;
    for (int32_t chunk = 0; chunk < l->n && err == TRL_OK; ++chunk) {
        const trl_task_args args = {.chunk = chunk, .chunks = l->n};
        bool done = true;
        err = l->run(NULL, &args, &done);
    }
    return err;
}

static trl_err count_chunks(void *data, const trl_task_args *args, bool *done)
{
    (void)done;
    ++((counter *)data)[args->worker].tasks;
    return TRL_OK;
}

static trl_err build_wide(trli_tasks *tasks, trl_task_fn run, void *data, trl_graph **graph)
{
    const trl_task_desc desc = {.name = "wide", .variant = {{run}}, .data = data, .chunks = tasks->tasks};
    trl_task task;
    trl_err err = TRL_OK;
    TRL_TRY(trl_graph_create(tasks->bench->ctx, "wide", graph));
    TRL_TRY(trl_graph_add_task(*graph, &desc, &task));
    TRL_TRY(trl_graph_freeze(*graph));
    trl_graph_set_timing(*graph, false);
done:
    return err;
}

static trl_err play_wide(trli_tasks *tasks)
{
    /* volatile: as little known to the compiler as a task's function is to the runtime */
    trl_task_fn volatile run = trli_tasks_nothing;
    loop all = {.n = tasks->bench->quick ? 1000 : 1000000, .run = run};
    counter *of_worker = aligned_alloc(64, (size_t)tasks->threads * sizeof *of_worker);
    trl_graph *counting = NULL;
    int64_t sum = 0;
    trl_err err = TRL_OK;
    if (!of_worker) return trl_fail(tasks->bench->ctx, TRL_ERR_MEMORY, NULL, "no memory to count chunks");
    memset(of_worker, 0, (size_t)tasks->threads * sizeof *of_worker);
    tasks->name = "wide task, per chunk";
    tasks->tasks = all.n;
    trli_way *calls = trli_tasks_add(tasks, "loop of calls", 5);
    calls->loop = call_all;
    calls->data = &all;
    trli_way *own = trli_tasks_add(tasks, trellis, 5);
    TRL_TRY(build_wide(tasks, trli_tasks_nothing, NULL, &own->graph));
    TRL_TRY(trli_tasks_warm(own));
    TRL_TRY(build_wide(tasks, count_chunks, of_worker, &counting));
    TRL_TRY(trl_graph_run(counting, tasks->workers, NULL));
    for (int w = 0; w < tasks->threads; ++w) sum += of_worker[w].tasks;
    if (sum != all.n)
        TRL_TRY(trl_fail(tasks->bench->ctx, TRL_ERR_BUG, NULL, "%lld of %d chunks ran", (long long)sum, all.n));
    describe(tasks, of_worker, sum, tasks->shares[1], sizeof tasks->shares[1]);
    TRL_TRY(trli_tasks_measure(tasks));
done:
    trl_graph_destroy(&counting);
    free(of_worker);
    return err;
}

static const shape shapes[] = {
    {"1e6 independent tasks", 1000000, 1000, trli_dag_independent, 1, false},
    {"chain of 1e5", 100000, 1000, trli_dag_chain, 5, false},
    {"wavefront 300 x 300", 300, 30, trli_dag_wavefront, 5, false},
    {"random, 1e5 tasks", 100000, 1000, make_random, 5, true},
};

static void score_of(const trli_tasks *tasks, trli_tasks_score *score)
{
    if (strstr(tasks->name, "independent")) score->independent = trli_tasks_ratio(tasks, trellis, openmp);
    if (strstr(tasks->name, "chain")) score->chain = trli_tasks_ratio(tasks, trellis, replay_name);
    if (strstr(tasks->name, "wavefront")) score->wavefront = trli_tasks_ratio(tasks, trellis, replay_name);
    if (strstr(tasks->name, "random")) score->locks = trli_tasks_ratio(tasks, with_locks, trellis);
    if (strstr(tasks->name, "wide")) score->wide = 1e9 * trli_tasks_seconds(tasks, trellis) / tasks->tasks;
}

static trl_err play_all(trli_tasks *tasks, trli_tasks_score *score)
{
    trli_tasks_score other, *here = tasks->threads == GATE_THREADS ? score : &other;
    trl_err err = TRL_OK;
    printf("\n%-26s %-24s %8s %-18s %24s %24s  %s\n", "case", "way", "ns/task", "(least, most)", "of the first",
           "of OpenMP", "tasks by worker");
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; ++s) {
        TRL_TRY(play(tasks, &shapes[s]));
        score_of(tasks, here);
        trli_tasks_clear(tasks);
    }
    TRL_TRY(play_wide(tasks));
    score_of(tasks, here);
    trli_tasks_clear(tasks);
    TRL_TRY(trli_tasks_loops(tasks));
    trli_tasks_clear(tasks);
    TRL_TRY(trli_tasks_rounds(tasks));
    TRL_TRY(trli_tasks_dynamic(tasks));
    if (tasks->threads == 1) TRL_TRY(trli_tasks_construct(tasks, score));
    if (tasks->threads > 1) TRL_TRY(trli_tasks_conflicts(tasks, here));
done:
    return err;
}

static trl_err with_threads(trli_bench *bench, const trli_baselines *baselines, int threads, trli_tasks_score *score)
{
    trli_tasks *tasks = calloc(1, sizeof *tasks);
    double before = 0, after = 0;
    bool started = false;
    trl_err err = TRL_OK;
    if (!tasks) return trl_fail(bench->ctx, TRL_ERR_MEMORY, NULL, "no memory for a benchmark");
    *tasks = (trli_tasks){.bench = bench, .baselines = baselines, .threads = threads};
    tasks->rounds = bench->quick ? QUICK_ROUNDS : ROUNDS;
    trli_json_begin_object(bench->json);
    trli_json_key(bench->json, "threads");
    trli_json_integer(bench->json, threads);
    printf("\n%d thread%s, %d rounds\n", threads, threads > 1 ? "s" : "", tasks->rounds);
    TRL_TRY(trl_context_set_threads(bench->ctx, threads));
    TRL_TRY(trli_round_trips(bench, threads, "before", &before));
    TRL_TRY(trli_baselines_start(bench->ctx, baselines, threads));
    started = true;
    TRL_TRY(trl_workers_create(bench->ctx, "priority", &tasks->workers));
    trli_json_key(bench->json, "results");
    trli_json_begin_array(bench->json);
    TRL_TRY(play_all(tasks, score));
    trli_json_end_array(bench->json);
done:
    trli_tasks_clear(tasks);
    trl_workers_destroy(&tasks->workers);
    if (started) trli_baselines_stop(baselines);
    free(tasks);
    if (err != TRL_OK) return err;
    err = trli_round_trips(bench, threads, "after", &after);
    trli_json_end_object(bench->json);
    trli_round_trips_compare(before, after);
    return err;
}

trl_err trli_bench_tasks(trli_bench *bench)
{
    int counts[COUNTS_MAX], n = trli_thread_counts(bench, counts, COUNTS_MAX);
    trli_tasks_score score = {NAN, NAN, NAN, NAN, NAN, NAN, NAN};
    trli_baselines baselines;
    trl_err err = TRL_OK;
    trli_baselines_load(bench, &baselines);
    trli_json_key(bench->json, "runs");
    trli_json_begin_array(bench->json);
    for (int i = 0; i < n; ++i) TRL_TRY(with_threads(bench, &baselines, counts[i], &score));
    trli_json_end_array(bench->json);
    const trli_gate gates[] = {
        {"chain, time of the serial replay's, 2 threads", score.chain, 3.5, false},
        {"wavefront, time of the serial replay's, 2 threads", score.wavefront, 2.6, false},
        {"independent tasks, time of OpenMP's, 2 threads", score.independent, 0.6, false},
        {"wide task, ns per chunk, 2 threads", score.wide, 10, false},
        {"random graph with locks, time of the same without, 2 threads", score.locks, 2.5, false},
        {"conflicts, time of the same conflicts in a forced order, 2 threads", score.conflicts, 1, false},
        {"construction, ns per task and dependency", score.construction, 30, false},
    };
    trli_gates_report(bench, gates, (int)(sizeof gates / sizeof *gates));
done:
    return err;
}
