/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench_grain_impl.h"

enum {
    POINTS_PER_CORE = 4, /* the setting of Task Bench (Slaughter et al. 2020), whose efficiency this measures */
    STEPS = 1000,
    QUICK_STEPS = 20,
    ROUNDS = 7,
    FEW_ROUNDS = 3, /* of long tasks, which differ less */
    LENGTHS = 12,
    WARMING = 3, /* in its first runs the workers time each task */
    TARGETS = 3,
    COUNTS_MAX = 8,
};

static const double first_length = 0.05e-6, growth = 2, long_task = 10e-6, target[TARGETS] = {0.5, 0.75, 0.95};

typedef struct sweep {
    const trli_dag *dag;
    int32_t width;
    int64_t iterations; /* of the length that is measured now */
    int32_t *step;      /* [2][width] of which step a point's value is, for even and odd steps */
    double *value;      /* [width*8] of a point, a line apart */
    _Atomic bool wrong;
} sweep;

typedef struct point {
    sweep *all;
    int32_t task;
} point;

/* A point's task: check that the values of the step before are there, work, and leave its own. */
static void compute(void *data, int32_t task)
{
    sweep *s = data;
    int32_t now = task / s->width, x = task % s->width;
    const int32_t *before = s->step + (size_t)s->width * ((now + 1) % 2);
    for (int32_t y = x > 0 ? x - 1 : 0; now > 0 && y <= x + 1 && y < s->width; ++y)
        if (before[y] != now - 1)
            atomic_store_explicit(&s->wrong, true, memory_order_relaxed); /* looked at after the run */
    s->value[(size_t)8 * x] = trli_busy(s->iterations, s->value[(size_t)8 * x]);
    s->step[(size_t)s->width * (now % 2) + x] = now;
}

static trl_err compute_task(void *data, const trl_task_args *args, bool *done)
{
    const point *p = data;
    (void)args, (void)done;
    compute(p->all, p->task);
    return TRL_OK;
}

/* ---- ways ---- */

static trl_err run_loop(void *data)
{
    sweep *s = data;
    for (int32_t t = 0; t < s->dag->tasks; ++t) compute(s, t);
    return TRL_OK;
}

typedef struct way {
    sweep *all;
    trl_graph *graph;
    trl_workers *workers;
    const trli_baseline *baseline;
    void *made;
} way;

static trl_err run_way(void *data)
{
    const way *w = data;
    if (w->graph) return trl_graph_run(w->graph, w->workers, NULL);
    return w->baseline->run(w->made) == 0 ? TRL_OK : TRL_ERR_BUG;
}

enum { LOOP, TRELLIS, OTHERS, WAYS_MAX = OTHERS + TRLI_BASELINES_MAX };

typedef struct grain {
    trli_bench *bench;
    int threads, ways;
    trli_dag dag;
    trli_dag_view view;
    sweep all;
    point *points;
    way way[WAYS_MAX];
    trli_contender contender[WAYS_MAX];
    double length[LENGTHS];               /* seconds of a task in the loop */
    double efficiency[WAYS_MAX][LENGTHS]; /* medians */
    double reached[WAYS_MAX][TARGETS];    /* seconds of a task; infinite: not reached */
} grain;

static void destroy(grain *g)
{
    for (int w = 0; w < g->ways; ++w) {
        trl_graph_destroy(&g->way[w].graph);
        if (g->way[w].made) g->way[w].baseline->destroy(g->way[w].made);
    }
    free(g->points);
    free(g->all.step);
    free(g->all.value);
    trli_dag_destroy(&g->dag);
}

static trl_err create(grain *g, trl_workers *workers, const trli_baselines *baselines)
{
    trl_context *ctx = g->bench->ctx;
    int32_t width = POINTS_PER_CORE * g->threads;
    trl_err err = TRL_OK;
    TRL_TRY(trli_dag_stencil(ctx, width, g->bench->quick ? QUICK_STEPS : STEPS, &g->dag));
    g->view = (trli_dag_view){g->dag.tasks, g->dag.pred_first, g->dag.predecessors};
    g->all = (sweep){.dag = &g->dag, .width = width};
    g->all.step = calloc(2 * (size_t)width, sizeof *g->all.step);
    g->all.value = calloc(8 * (size_t)width, sizeof *g->all.value);
    g->points = calloc((size_t)g->dag.tasks, sizeof *g->points);
    if (!g->all.step || !g->all.value || !g->points)
        TRL_TRY(trl_fail(ctx, TRL_ERR_MEMORY, NULL, "no memory for the points of a benchmark"));
    for (int32_t t = 0; t < g->dag.tasks; ++t) g->points[t] = (point){&g->all, t};
    g->contender[LOOP] = (trli_contender){.name = "loop on one thread", .run = run_loop, .data = &g->all};
    g->contender[TRELLIS] = (trli_contender){.name = "Trellis", .run = run_way, .data = &g->way[TRELLIS]};
    g->way[TRELLIS].workers = workers;
    g->ways = OTHERS;
    TRL_TRY(trli_dag_build(ctx, &g->dag, compute_task, g->points, sizeof *g->points, &g->way[TRELLIS].graph));
    for (int r = 0; r < WARMING; ++r) TRL_TRY(trl_graph_run(g->way[TRELLIS].graph, workers, NULL));
    for (int b = 0; b < baselines->count; ++b) {
        way *w = &g->way[g->ways];
        w->baseline = baselines->list[b];
        g->contender[g->ways++] = (trli_contender){.name = w->baseline->name, .run = run_way, .data = w};
        w->made = w->baseline->create(&g->view, compute, &g->all);
        if (!w->made) TRL_TRY(trl_fail(ctx, TRL_ERR_MEMORY, NULL, "%s cannot make a graph", w->baseline->name));
    }
done:
    return err;
}

static trl_err measure_length(grain *g, int l, double rate)
{
    trli_json *json = g->bench->json;
    double nominal = first_length * pow(growth, l);
    int rounds = g->bench->quick ? 1 : nominal < long_task ? ROUNDS : FEW_ROUNDS;
    trl_err err = TRL_OK;
    g->all.iterations = (int64_t)(nominal * rate);
    TRL_TRY(trli_rounds_run(g->contender, g->ways, rounds));
    /* relaxed: the runs are over */
    if (atomic_load_explicit(&g->all.wrong, memory_order_relaxed))
        TRL_TRY(trl_fail(g->bench->ctx, TRL_ERR_BUG, NULL, "a task ran before the tasks of the step before"));
    double loop[TRLI_ROUNDS_MAX];
    for (int r = 0; r < rounds; ++r) loop[r] = g->contender[LOOP].seconds[r] / g->dag.tasks;
    trli_spread length = trli_spread_of(loop, rounds);
    g->length[l] = length.median;
    printf("%12.3f", 1e6 * length.median);
    trli_json_begin_object(json);
    trli_spread_report(json, "task_s", &length);
    for (int w = TRELLIS; w < g->ways; ++w) {
        trli_spread e = trli_ratio(&g->contender[w], &g->contender[LOOP], rounds);
        e = (trli_spread){e.median / g->threads, e.min / g->threads, e.max / g->threads};
        g->efficiency[w][l] = e.median;
        printf("  %6.3f (%5.3f, %5.3f)", e.median, e.min, e.max);
        trli_spread_report(json, g->contender[w].name, &e);
    }
    putchar('\n');
    trli_json_end_object(json);
done:
    return err;
}

/* The shortest task from which on all longer ones reach the target: between two measured lengths, linear in the
 * logarithm. At the shortest length measured if that reaches it; infinite if the longest does not. */
static double reach(const grain *g, int w, double wanted)
{
    const double *e = g->efficiency[w];
    int l = LENGTHS;
    while (l > 0 && e[l - 1] >= wanted) --l;
    if (l == LENGTHS) return INFINITY;
    if (l == 0) return g->length[0];
    double part = (wanted - e[l - 1]) / (e[l] - e[l - 1]);
    return g->length[l - 1] * pow(g->length[l] / g->length[l - 1], part);
}

static void report(grain *g)
{
    trli_json *json = g->bench->json;
    trli_json_key(json, "reached");
    trli_json_begin_array(json);
    printf("task length in us at %27s %10s %10s\n", "50%", "75%", "95%");
    for (int w = TRELLIS; w < g->ways; ++w) {
        printf("  %-36s", g->contender[w].name);
        trli_json_begin_object(json);
        trli_json_key(json, "name");
        trli_json_string(json, g->contender[w].name);
        trli_json_key(json, "seconds_at_50_75_95_percent");
        trli_json_begin_array(json);
        for (int i = 0; i < TARGETS; ++i) {
            double at = g->reached[w][i] = reach(g, w, target[i]);
            trli_json_number(json, at);
            printf(" %s%9.3f", at == g->length[0] ? "<" : " ", 1e6 * at);
        }
        putchar('\n');
        trli_json_end_array(json);
        trli_json_end_object(json);
    }
    trli_json_end_array(json);
}

static trl_err play(grain *g, trl_workers *workers, const trli_baselines *baselines)
{
    trli_json *json = g->bench->json;
    double rate = trli_busy_rate(g->bench->quick);
    trl_err err = TRL_OK;
    TRL_TRY(create(g, workers, baselines));
    printf("efficiency, median (least, most)\n%12s", "task, us");
    for (int w = TRELLIS; w < g->ways; ++w) printf("  %22s", g->contender[w].name);
    putchar('\n');
    trli_json_key(json, "lengths");
    trli_json_begin_array(json);
    for (int l = 0; l < LENGTHS; ++l) TRL_TRY(measure_length(g, l, rate));
    trli_json_end_array(json);
    report(g);
done:
    return err;
}

static trl_err with_threads(trli_bench *bench, const trli_baselines *baselines, int threads, grain *g, double *slower)
{
    trl_workers *workers = NULL;
    double before = 0, after = 0;
    bool started = false;
    trl_err err = TRL_OK;
    *g = (grain){.bench = bench, .threads = threads};
    trli_json_begin_object(bench->json);
    trli_json_key(bench->json, "threads");
    trli_json_integer(bench->json, threads);
    printf("\n%d thread%s, %d points\n", threads, threads > 1 ? "s" : "", POINTS_PER_CORE * threads);
    TRL_TRY(trl_context_set_threads(bench->ctx, threads));
    TRL_TRY(trli_round_trips(bench, threads, "before", &before));
    TRL_TRY(trli_baselines_start(bench->ctx, baselines, threads));
    started = true;
    TRL_TRY(trl_workers_create(bench->ctx, "priority", &workers));
    TRL_TRY(play(g, workers, baselines));
    TRL_TRY(trli_grain_large(bench, workers, threads, slower));
done:
    destroy(g);
    trl_workers_destroy(&workers);
    if (started) trli_baselines_stop(baselines);
    if (err != TRL_OK) return err;
    err = trli_round_trips(bench, threads, "after", &after);
    trli_json_end_object(bench->json);
    trli_round_trips_compare(before, after);
    return err;
}

trl_err trli_bench_grain(trli_bench *bench)
{
    enum { AT_50, AT_75, AT_95 };
    int counts[COUNTS_MAX], n = trli_thread_counts(bench, counts, COUNTS_MAX);
    double at_2[TARGETS] = {NAN, NAN, NAN}, at_16 = NAN, slower = NAN;
    grain *g = calloc(1, sizeof *g);
    trli_baselines baselines;
    trl_err err = TRL_OK;
    if (!g) return trl_fail(bench->ctx, TRL_ERR_MEMORY, NULL, "no memory for a benchmark");
    trli_baselines_load(bench, &baselines);
    trli_json_key(bench->json, "runs");
    trli_json_begin_array(bench->json);
    for (int i = 0; i < n; ++i) {
        TRL_TRY(with_threads(bench, &baselines, counts[i], g, &slower));
        for (int t = 0; t < TARGETS && counts[i] == 2; ++t) at_2[t] = 1e6 * g->reached[TRELLIS][t];
        if (counts[i] == 16) at_16 = 1e6 * g->reached[TRELLIS][AT_50];
    }
    trli_json_end_array(bench->json);
    const trli_gate gates[] = {
        {"task length at 75% efficiency on 2 cores, us", at_2[AT_75], 0.5, false},
        {"task length at 95% efficiency on 2 cores, us", at_2[AT_95], 10, false},
        {"task length at 50% efficiency on 16 cores, us", at_16, 0.5, false},
        {"few large tasks, time of the same work without a runtime", slower, 1.01, false},
    };
    trli_gates_report(bench, gates, (int)(sizeof gates / sizeof *gates));
done:
    free(g);
    return err;
}
