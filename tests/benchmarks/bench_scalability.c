/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The scalability study of Robison's thesis (2014, ch. 4): n scalars that diffuse, each with a source of its own value
 * or of all values, run by task threads, operator threads and ranks. Values are constant in space, so that a run has an
 * exact solution. Faithful runs have a kernel for each expression, optimised ones what the compiler makes of them. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench_launch_impl.h"
#include "memory_impl.h"

enum { POINTS_MOST = 64, TEXT_ROOM = 4096, ROUNDS = 3 };

/* Threads of each of so many ranks. */
typedef struct split {
    int ranks, tasks, operators;
    double seconds[ROUNDS];
} split;

typedef struct figure {
    const char *name, *shows;
    int cells[2][3], equations; /* cells: with less than 12 cores, and as in the thesis */
    int (*choose)(int cores, split *point);
} figure;

/* What varies between the curves of a figure. */
typedef struct variant {
    const char *name;
    bool coupled, convection, faithful;
} variant;

static const variant variants[] = {
    {"uncoupled, faithful", false, false, true},
    {"uncoupled, optimised", false, false, false},
    {"coupled, faithful", true, false, true},
    {"coupled, optimised", true, false, false},
    {"coupled with convection, faithful", true, true, true},
    {"coupled with convection, optimised", true, true, false},
};
enum { VARIANTS = sizeof variants / sizeof *variants };

/* ---- which splits a figure has ---- */

/* 1, 2, 4, 8, .. and the number of cores. */
static int next_count(int n, int cores)
{
    return n < cores && 2 * n > cores ? cores : 2 * n;
}

static int tasks_beside_operators(int cores, split *point)
{
    int n = 0;
    for (int tasks = 1; tasks <= cores; tasks = next_count(tasks, cores))
        for (int operators = 1; operators <= cores && n < POINTS_MOST; operators = next_count(operators, cores))
            point[n++] = (split){.ranks = 1, .tasks = tasks, .operators = operators};
    return n;
}

static int each_alone(int cores, split *point)
{
    int n = 0;
    for (int count = 1; count <= cores && n + 3 <= POINTS_MOST; count = next_count(count, cores)) {
        point[n++] = (split){.ranks = count, .tasks = 1};
        point[n++] = (split){.ranks = 1, .tasks = count};
        point[n++] = (split){.ranks = 1, .operators = count};
    }
    return n;
}

/* As many task threads and operator threads as cores, under more and more ranks. */
static int both_under_ranks(int cores, split *point)
{
    int n = 0;
    for (int ranks = 1; ranks <= cores && n < POINTS_MOST; ++ranks)
        if (cores % ranks == 0)
            point[n++] = (split){.ranks = ranks, .tasks = cores / ranks, .operators = cores / ranks};
    return n;
}

/* Ranks of a quarter of the cores each, at least one. */
static int ranks_of_parts(int cores, split *point)
{
    const int part = cores >= 4 ? cores / 4 : 1;
    int n = 0;
    for (int tasks = 1; tasks <= part; tasks = next_count(tasks, part))
        for (int ranks = 1; ranks * part <= cores && n < POINTS_MOST; ranks *= 2)
            point[n++] = (split){.ranks = ranks, .tasks = tasks, .operators = part};
    return n;
}

static const figure figures[] = {
    {"4.3",
     "speed over operator threads, by task threads",
     {{128, 96, 64}, {256, 128, 128}},
     16,
     tasks_beside_operators},
    {"4.4",
     "speed over task threads, by operator threads",
     {{128, 96, 64}, {256, 128, 128}},
     16,
     tasks_beside_operators},
    {"4.5", "ranks, task threads and operator threads, each alone", {{66, 66, 66}, {120, 120, 120}}, 24, each_alone},
    {"4.6", "task and operator threads together, under ranks", {{66, 66, 66}, {120, 120, 120}}, 24, both_under_ranks},
    {"4.7", "strong scaling of ranks that have threads", {{64, 64, 64}, {256, 256, 256}}, 16, ranks_of_parts},
};
enum { FIGURES = sizeof figures / sizeof *figures };

/* ---- runs ---- */

static const double dt = 1e-5;

static void write_deck(const variant *v, const int cells[3], int equations, char text[TEXT_ROOM])
{
    snprintf(text, TEXT_ROOM,
             "trellis: 1\n"
             "grid: {cells: [%d, %d, %d]}\n"
             "expressions: {velocity: [1, 0.5, 0.25]}\n"
             "equations:\n"
             "  \"phi{i}\":\n"
             "    for: {i: 1..%d}\n"
             "    initial: \"0\"\n"
             "    ddt: \"div(grad(phi{i}))%s + %s\"\n"
             "    boundary: {x-: {neumann: 0}, x+: {neumann: 0}, y-: {neumann: 0}, y+: {neumann: 0}, z-: {neumann: 0},"
             " z+: {neumann: 0}}\n"
             "time: {method: ssprk3, dt: %g, end: 1}\n"
             "run: {time_blocking: 1, fusion: %s}\n",
             cells[0], cells[1], cells[2], equations,
             v->convection ? " - div(advective_flux(phi{i}, velocity)) + phi{i}*div(velocity)" : "",
             v->coupled ? "prod(j=1..{n}, exp(phi{j}))" : "exp(phi{i})", dt, v->faithful ? "node" : "full");
    if (!v->coupled) return;
    char number[8], *at = strstr(text, "{n}");
    const int digits = snprintf(number, sizeof number, "%d", equations);
    memmove(at + digits, at + 3, strlen(at + 3) + 1);
    memcpy(at, number, (size_t)digits);
}

/* Of all values after so many steps. */
static double exact(const variant *v, int equations, int steps)
{
    const double n = v->coupled ? equations : 1;
    return -log1p(-n * steps * dt) / n;
}

static trl_err run_once(trli_bench *bench, const trli_launch *launch, const variant *v, int equations, int steps,
                        const split *s, double *seconds)
{
    static const double tolerance = 1e-9;
    char number[32], threads[80], *report = NULL;
    trl_err err = TRL_OK;
    snprintf(number, sizeof number, "%d", steps);
    snprintf(threads, sizeof threads, "run.threads={tasks: %d, operators: %d}", s->tasks, s->operators);
    const char *const extra[] = {"--set", threads, "--steps", number, NULL};
    TRL_TRY(trli_launch_run(launch, s->ranks, s->tasks + s->operators, extra, &report));
    *seconds = trli_report_number(report, "\"loop\"", NULL) / steps;
    const double least = trli_report_number(report, "\"phi1\"", "\"min\""), expected = exact(v, equations, steps);
    if (!(fabs(least - expected) <= tolerance * expected))
        err = trl_fail(bench->ctx, TRL_ERR_BUG, NULL, "%s: phi1 is %.17g after %d steps, and should be %.17g", v->name,
                       least, steps, expected);
    if (err == TRL_OK && !(*seconds > 0))
        err = trl_fail(bench->ctx, TRL_ERR_BUG, NULL, "%s: the report of a run has no times", v->name);
done:
    trli_free(report);
    return err;
}

static void report_point(trli_json *json, const split *s, const trli_spread *time, double one, int cores)
{
    const int used = s->ranks * (s->tasks + s->operators) < cores ? s->ranks * (s->tasks + s->operators) : cores;
    const double speedup = one / time->median;
    printf("  %5d %6d %10d %11.4g %9.2f %11.2f\n", s->ranks, s->tasks, s->operators, time->median, speedup,
           speedup / used);
    trli_json_begin_object(json);
    trli_json_key(json, "ranks");
    trli_json_integer(json, s->ranks);
    trli_json_key(json, "task_threads");
    trli_json_integer(json, s->tasks);
    trli_json_key(json, "operator_threads");
    trli_json_integer(json, s->operators);
    trli_spread_report(json, "seconds_per_step", time);
    trli_json_key(json, "speedup");
    trli_json_number(json, speedup);
    trli_json_key(json, "efficiency");
    trli_json_number(json, speedup / used);
    trli_json_end_object(json);
}

/* All splits of a figure, and one thread for comparison, in turns. */
static trl_err measure(trli_bench *bench, const figure *f, const variant *v)
{
    split point[POINTS_MOST + 1] = {{.ranks = 1, .tasks = 1}};
    int cells[3];
    char text[TEXT_ROOM];
    const int n = 1 + f->choose(bench->threads, point + 1), rounds = bench->quick ? 1 : ROUNDS;
    const int equations = bench->quick ? 4 : f->equations;
    trli_launch launch = {.ctx = bench->ctx};
    trl_err err = TRL_OK;
    for (int a = 0; a < 3; ++a) cells[a] = bench->quick ? 8 : f->cells[bench->threads >= 12][a];
    const double updates = 3.0 * cells[0] * cells[1] * cells[2] * equations;
    const int steps = bench->quick ? 5 : (int)(1e9 / updates) + 20;
    write_deck(v, cells, equations, text);
    TRL_TRY(trli_launch_prepare(&launch, text));
    for (int r = 0; r < rounds; ++r)
        for (int i = 0; i < n; ++i) {
            split *s = &point[r % 2 ? n - 1 - i : i];
            TRL_TRY(run_once(bench, &launch, v, equations, steps, s, &s->seconds[r]));
        }
    printf("\n%s, %d x %d x %d cells, %d equations\n  ranks  tasks  operators  s per step   speedup  efficiency\n",
           v->name, cells[0], cells[1], cells[2], equations);
    trli_json_begin_object(bench->json);
    trli_json_key(bench->json, "curves");
    trli_json_string(bench->json, v->name);
    trli_json_key(bench->json, "points");
    trli_json_begin_array(bench->json);
    double one = 0;
    for (int i = 0; i < n; ++i) {
        const trli_spread time = trli_spread_of(point[i].seconds, rounds);
        if (i == 0) one = time.median;
        report_point(bench->json, &point[i], &time, one, bench->threads);
    }
    trli_json_end_array(bench->json);
    trli_json_end_object(bench->json);
    fflush(stdout);
done:
    trli_launch_clean(&launch);
    return err;
}

static trl_err measure_figure(trli_bench *bench, const figure *f)
{
    trl_err err = TRL_OK;
    printf("\nfigure %s: %s\n", f->name, f->shows);
    trli_json_begin_object(bench->json);
    trli_json_key(bench->json, "figure");
    trli_json_string(bench->json, f->name);
    trli_json_key(bench->json, "shows");
    trli_json_string(bench->json, f->shows);
    trli_json_key(bench->json, "variants");
    trli_json_begin_array(bench->json);
    for (int v = 0; v < VARIANTS; ++v) TRL_TRY(measure(bench, f, &variants[v]));
    trli_json_end_array(bench->json);
    trli_json_end_object(bench->json);
done:
    return err;
}

trl_err trli_bench_scalability(trli_bench *bench)
{
    bool any = false;
    trl_err err = TRL_OK;
    trli_json_key(bench->json, "cores");
    trli_json_integer(bench->json, bench->threads);
    trli_json_key(bench->json, "figures");
    trli_json_begin_array(bench->json);
    for (int f = 0; f < FIGURES; ++f) {
        if (bench->figure && strcmp(bench->figure, figures[f].name) != 0) continue;
        any = true;
        TRL_TRY(measure_figure(bench, &figures[f]));
    }
    if (!any)
        TRL_TRY(trl_fail(bench->ctx, TRL_ERR_INPUT, NULL,
                         "trellis bench scalability: there is no figure '%s'; use one "
                         "of 4.3, 4.4, 4.5, 4.6, 4.7",
                         bench->figure));
    trli_json_end_array(bench->json);
done:
    return err;
}
