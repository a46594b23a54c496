/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The scalability study of Robison's thesis (2014, ch. 4): n scalars that diffuse, each with a source of its own value
 * or of all values, run by task threads, operator threads and ranks. Values are constant in space, so that a run has an
 * exact solution. Faithful runs have a kernel for each expression, optimised ones what the compiler makes of them. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench_scalability_impl.h"
#include "memory_impl.h"

enum { TEXT_ROOM = 4096 };

typedef struct figure {
    const char *name, *shows;
    const char *along, *lines;  /* of the picture: its axis, and what there is a line for each number of */
    int cells[3][3], equations; /* cells: with less than 12 cores, as in the thesis, and where time is short */
    int (*choose)(int cores, trli_study_point *point);
} figure;

/* What varies between the curves of a figure. The first ones are measured first. */
typedef struct variant {
    const char *name;
    bool coupled, convection, faithful;
} variant;

static const variant variants[] = {
    {"coupled, faithful", true, false, true},
    {"coupled, optimised", true, false, false},
    {"uncoupled, faithful", false, false, true},
    {"uncoupled, optimised", false, false, false},
    {"coupled with convection, faithful", true, true, true},
    {"coupled with convection, optimised", true, true, false},
};
enum { VARIANTS = sizeof variants / sizeof *variants, MAIN_VARIANTS = 2 };

/* ---- which splits a figure has ---- */

/* 1, 2, 4, 8, .. and the number of cores. */
static int next_count(int n, int cores)
{
    return n < cores && 2 * n > cores ? cores : 2 * n;
}

static bool is_coarse(int n, int cores)
{
    for (int power = 1; power <= n; power *= 4)
        if (power == n) return true;
    return n == cores;
}

/* More than cores in all only where these are few. */
static int tasks_and_operators(int cores, trli_study_point *point)
{
    int n = 0;
    for (int tasks = 1; tasks <= cores; tasks = next_count(tasks, cores))
        for (int operators = 1; operators <= cores && n < TRLI_STUDY_POINTS; operators = next_count(operators, cores))
            if (cores < 12 || tasks + operators <= cores)
                point[n++] = (trli_study_point){.ranks = 1,
                                                .tasks = tasks,
                                                .operators = operators,
                                                .coarse = is_coarse(tasks, cores) && is_coarse(operators, cores)};
    return n;
}

static int over_operators(int cores, trli_study_point *point)
{
    const int n = tasks_and_operators(cores, point);
    for (int i = 0; i < n; ++i) {
        point[i].place = point[i].operators;
        point[i].curve = point[i].tasks;
    }
    return n;
}

static int over_tasks(int cores, trli_study_point *point)
{
    const int n = tasks_and_operators(cores, point);
    for (int i = 0; i < n; ++i) {
        point[i].place = point[i].tasks;
        point[i].curve = point[i].operators;
    }
    return n;
}

static int each_alone(int cores, trli_study_point *point)
{
    int n = 0;
    for (int count = 1; count <= cores && n + 3 <= TRLI_STUDY_POINTS; count = next_count(count, cores)) {
        const trli_study_point base = {.ranks = 1, .place = count, .coarse = is_coarse(count, cores)};
        for (int kind = 0; kind < 3; ++kind) {
            trli_study_point *p = &point[n++];
            *p = base;
            p->curve = -1 - kind;
            if (kind == 0) p->ranks = count;
            p->tasks = kind == 1 ? count : kind == 0;
            p->operators = kind == 2 ? count : 0;
        }
    }
    return n;
}

/* As many task threads and operator threads as cores, under more and more ranks. */
static int both_under_ranks(int cores, trli_study_point *point)
{
    int n = 0;
    for (int ranks = 1; ranks <= cores && n < TRLI_STUDY_POINTS; ++ranks)
        if (cores % ranks == 0)
            point[n++] = (trli_study_point){.ranks = ranks,
                                            .tasks = cores / ranks,
                                            .operators = cores / ranks,
                                            .place = ranks,
                                            .curve = 2 * cores,
                                            .coarse = is_coarse(ranks, cores)};
    return n;
}

/* Ranks of a quarter of the cores each, at least one. */
static int ranks_of_parts(int cores, trli_study_point *point)
{
    const int part = cores >= 4 ? cores / 4 : 1;
    int n = 0;
    for (int tasks = 1; tasks <= part; tasks = next_count(tasks, part))
        for (int ranks = 1; ranks * part <= cores && n < TRLI_STUDY_POINTS; ranks *= 2)
            point[n++] = (trli_study_point){.ranks = ranks,
                                            .tasks = tasks,
                                            .operators = part - tasks,
                                            .place = ranks * part,
                                            .curve = tasks,
                                            .coarse = is_coarse(tasks, part)};
    return n;
}

static const figure figures[] = {
    {"4.3",
     "speed over operator threads, by task threads",
     "operator threads",
     "task threads",
     {{128, 96, 64}, {256, 128, 128}, {128, 96, 64}},
     16,
     over_operators},
    {"4.4",
     "speed over task threads, by operator threads",
     "task threads",
     "operator threads",
     {{128, 96, 64}, {256, 128, 128}, {128, 96, 64}},
     16,
     over_tasks},
    {"4.5",
     "ranks, task threads and operator threads, each alone",
     "count",
     "",
     {{66, 66, 66}, {120, 120, 120}, {66, 66, 66}},
     24,
     each_alone},
    {"4.6",
     "task and operator threads together, under ranks",
     "ranks",
     "threads in all",
     {{66, 66, 66}, {120, 120, 120}, {66, 66, 66}},
     24,
     both_under_ranks},
    {"4.7",
     "strong scaling of ranks that have threads",
     "cores",
     "task threads",
     {{64, 64, 64}, {256, 256, 256}, {128, 128, 128}},
     16,
     ranks_of_parts},
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
             "run: {time_blocking: 1, compile: always, fusion: %s}\n",
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

/* A problem, and what its runs need. */
typedef struct study {
    const variant *variant;
    const figure *figure;
    trli_curves curves;
    trli_launch launch;
} study;

/* All that is measured, and for how long. */
typedef struct studies {
    trli_bench *bench;
    study *study; /* [n] those of a figure in a row */
    int n;
    double end;     /* of the time for all runs */
    double seconds; /* of a run's steps; 0: as many as the problem's size says */
} studies;

static double updates_of(const trli_curves *c)
{
    return (double)c->stages * c->cells[0] * c->cells[1] * c->cells[2] * c->equations;
}

/* Where time is short: as many as it allows, from what one thread takes. */
static int choose_steps(const studies *all, const study *s, const trli_study_point *p)
{
    enum { FIRST = 3, LEAST = 6, MOST = 60 };
    const trli_study_point *one = &s->curves.point[0];
    if (all->bench->quick) return 5;
    if (all->seconds <= 0) return (int)(1e9 / updates_of(&s->curves)) + 20;
    if (one->n == 0) return FIRST;
    const int cores = trli_study_workers(p) < all->bench->threads ? trli_study_workers(p) : all->bench->threads;
    return (int)fmin(fmax(all->seconds / (one->time.median / (0.5 * cores)), LEAST), MOST);
}

static trl_err check(trli_bench *bench, const study *s, const char *report, int steps)
{
    static const double tolerance = 1e-9;
    const double least = trli_report_number(report, "\"phi1\"", "\"min\""),
                 expected = exact(s->variant, s->curves.equations, steps);
    if (fabs(least - expected) <= tolerance * expected) return TRL_OK;
    return trl_fail(bench->ctx, TRL_ERR_BUG, NULL, "%s: phi1 is %.17g after %d steps, and should be %.17g",
                    s->variant->name, least, steps, expected);
}

/* Measure a point once more. A step's time is the median of the run's. */
static trl_err run_once(const studies *all, study *s, trli_study_point *p)
{
    trli_bench *bench = all->bench;
    const int steps = choose_steps(all, s, p);
    char number[32], threads[80], *report = NULL;
    trl_err err = TRL_OK;
    snprintf(number, sizeof number, "%d", steps);
    snprintf(threads, sizeof threads, "run.threads={tasks: %d, operators: %d}", p->tasks, p->operators);
    const char *const extra[] = {"--set", threads, "--steps", number, NULL};
    TRL_TRY(trli_launch_run(&s->launch, p->ranks, p->tasks + p->operators, extra, &report));
    TRL_TRY(check(bench, s, report, steps));
    const double seconds = trli_report_number(report, "\"step_s\"", "\"median\"");
    if (!(seconds > 0)) TRL_TRY(trl_fail(bench->ctx, TRL_ERR_BUG, NULL, "%s: a report has no times", s->variant->name));
    p->seconds[p->n++] = seconds;
    p->time = trli_spread_of(p->seconds, p->n);
    p->messages = trli_report_number(report, "\"comm\"", "\"messages\"") / steps;
    p->bytes = trli_report_number(report, "\"comm\"", "\"bytes\"") / steps;
    if (p == &s->curves.point[0])
        s->curves.bytes_per_cell = trli_report_number(report, "\"bytes_per_cell_step\"", NULL);
done:
    trli_free(report);
    return err;
}

/* ---- which runs are made ---- */

/* What tells most about all figures comes first: 0 to LEVELS - 1, for a first time; all points again after that. */
enum { LEVELS = 3 };

static int level_of(const study *s, const trli_study_point *p, bool short_of_time)
{
    const bool first = p == &s->curves.point[0], main = s->variant - variants < MAIN_VARIANTS;
    return short_of_time ? !main + !(first || p->coarse) : 0;
}

/* Figures 4.3 and 4.4 show the same runs. */
static const study *find_twin(const studies *all, const study *s)
{
    for (const study *other = all->study; other < s; ++other)
        if (other->variant == s->variant && (other->figure->choose == over_operators) &&
            s->figure->choose == over_tasks)
            return other;
    return NULL;
}

static trl_err measure_at(const studies *all, study *s, int level, int round)
{
    trli_curves *c = &s->curves;
    const bool limited = all->seconds > 0, backwards = round % 2 == 1;
    trl_err err = TRL_OK;
    for (int k = 0; k < c->n; ++k) {
        trli_study_point *p = &c->point[backwards ? c->n - 1 - k : k];
        if (p->n > round || level_of(s, p, limited) > level) continue;
        const double expected = 1 + fmax(all->seconds, 6 * c->point[0].time.median);
        if (limited && trli_bench_clock() + expected > all->end) return TRL_OK;
        TRL_TRY(run_once(all, s, p));
    }
done:
    return err;
}

static trl_err measure_all(studies *all)
{
    const int rounds = all->bench->quick ? 1 : TRLI_STUDY_ROUNDS;
    trl_err err = TRL_OK;
    for (int round = 0; round < rounds; ++round)
        for (int level = round > 0 || !(all->seconds > 0) ? LEVELS - 1 : 0; level < LEVELS; ++level)
            for (int i = 0; i < all->n; ++i)
                if (!find_twin(all, &all->study[i])) TRL_TRY(measure_at(all, &all->study[i], level, round));
    for (int i = 0; i < all->n; ++i) {
        study *s = &all->study[i];
        const study *twin = find_twin(all, s);
        for (int k = 0; twin && k < s->curves.n; ++k) {
            const trli_study_point own = s->curves.point[k];
            s->curves.point[k] = twin->curves.point[k];
            s->curves.point[k].place = own.place;
            s->curves.point[k].curve = own.curve;
        }
        if (twin) s->curves.bytes_per_cell = twin->curves.bytes_per_cell;
    }
done:
    return err;
}

static trl_err start(const studies *all, const figure *f, const variant *v, study *s)
{
    const trli_bench *bench = all->bench;
    trli_curves *c = &s->curves;
    char text[TEXT_ROOM];
    *s = (study){.variant = v,
                 .figure = f,
                 .launch = {.ctx = bench->ctx},
                 .curves = {.figure = f->name,
                            .shows = f->shows,
                            .name = v->name,
                            .along = f->along,
                            .lines = f->lines,
                            .stages = 3,
                            .equations = bench->quick ? 4 : f->equations}};
    const int size = bench->threads < 12 ? 0 : all->seconds > 0 ? 2 : 1;
    for (int a = 0; a < 3; ++a) c->cells[a] = bench->quick ? 8 : f->cells[size][a];
    c->point[0] = (trli_study_point){.ranks = 1, .tasks = 1};
    c->n = 1 + f->choose(bench->threads, c->point + 1);
    write_deck(v, c->cells, c->equations, text);
    return trli_launch_prepare(&s->launch, text);
}

/* ---- what is said ---- */

static void report_point(trli_json *json, const trli_curves *c, const trli_study_point *p, int cores)
{
    const int workers = trli_study_workers(p), used = workers < cores ? workers : cores;
    const double speedup = c->point[0].time.median / p->time.median;
    printf("  %5d %6d %10d %11.4g %9.2f %11.2f\n", p->ranks, p->tasks, p->operators, p->time.median, speedup,
           speedup / used);
    trli_json_begin_object(json);
    trli_json_key(json, "ranks");
    trli_json_integer(json, p->ranks);
    trli_json_key(json, "task_threads");
    trli_json_integer(json, p->tasks);
    trli_json_key(json, "operator_threads");
    trli_json_integer(json, p->operators);
    trli_spread_report(json, "seconds_per_step", &p->time);
    trli_json_key(json, "speedup");
    trli_json_number(json, speedup);
    trli_json_key(json, "efficiency");
    trli_json_number(json, speedup / used);
    trli_json_end_object(json);
}

static void report_curves(trli_bench *bench, const trli_curves *c, const trli_study_costs *costs)
{
    const double roof = trli_study_roofline(c, bench->threads, costs);
    printf("\n%s, %d x %d x %d cells, %d equations; memory alone would take %.4g s on all cores\n"
           "  ranks  tasks  operators  s per step   speedup  efficiency\n",
           c->name, c->cells[0], c->cells[1], c->cells[2], c->equations, roof);
    trli_json_begin_object(bench->json);
    trli_json_key(bench->json, "curves");
    trli_json_string(bench->json, c->name);
    trli_json_key(bench->json, "roofline_s");
    trli_json_number(bench->json, roof);
    trli_json_key(bench->json, "points");
    trli_json_begin_array(bench->json);
    for (int k = 0; k < c->n; ++k)
        if (c->point[k].n > 0) report_point(bench->json, c, &c->point[k], bench->threads);
    trli_json_end_array(bench->json);
    trli_json_end_object(bench->json);
}

/* Whether anything was measured beside the run of one thread. */
static bool has_curves(const trli_curves *c)
{
    bool any = false;
    for (int k = 1; k < c->n; ++k) any |= c->point[k].n > 0;
    return any && c->point[0].n > 0;
}

static trl_err report_figure(trli_bench *bench, const study *first, const trli_study_costs *costs)
{
    trli_curves shown[VARIANTS];
    int n = 0;
    trl_err err = TRL_OK;
    printf("\nfigure %s: %s\n", first->figure->name, first->figure->shows);
    trli_json_begin_object(bench->json);
    trli_json_key(bench->json, "figure");
    trli_json_string(bench->json, first->figure->name);
    trli_json_key(bench->json, "shows");
    trli_json_string(bench->json, first->figure->shows);
    trli_json_key(bench->json, "variants");
    trli_json_begin_array(bench->json);
    for (int v = 0; v < VARIANTS; ++v) {
        if (!has_curves(&first[v].curves)) continue;
        shown[n++] = first[v].curves;
        report_curves(bench, &first[v].curves, costs);
    }
    trli_json_end_array(bench->json);
    trli_json_end_object(bench->json);
    if (n == 0) printf("nothing was measured beside one thread in this time: --minutes gives it more\n");
    if (bench->pictures && n > 0) TRL_TRY(trli_study_draw(bench->ctx, bench->pictures, shown, n, costs));
done:
    return err;
}

static trl_err report(const studies *all, const trli_study_costs *costs)
{
    trli_bench *bench = all->bench;
    trli_curves *curves = trli_new(bench->ctx, (size_t)all->n + 1, sizeof *curves);
    trl_err err = TRL_OK;
    if (!curves) return trli_no_memory(bench->ctx, NULL, "for %d curves", all->n);
    trli_json_key(bench->json, "figures");
    trli_json_begin_array(bench->json);
    for (int i = 0; i < all->n; i += VARIANTS) TRL_TRY(report_figure(bench, &all->study[i], costs));
    trli_json_end_array(bench->json);
    for (int i = 0; i < all->n; ++i) curves[i] = all->study[i].curves;
    trli_study_compare(bench, curves, all->n, costs);
done:
    trli_free(curves);
    return err;
}

static trl_err measure_costs(trli_bench *bench, trli_study_costs *costs)
{
    trli_bench brief = *bench;
    trli_limits one, all;
    trl_err err = TRL_OK;
    brief.quick = bench->quick || bench->minutes > 0;
    TRL_TRY(trli_limits_measure(&brief, &one, &all));
    *costs = (trli_study_costs){.one = one.copy, .all = all.copy, .cores = bench->threads};
    TRL_TRY(trli_study_measure_costs(bench, costs));
done:
    return err;
}

trl_err trli_bench_scalability(trli_bench *bench)
{
    static study study[FIGURES * VARIANTS];
    studies all = {.bench = bench, .study = study, .end = trli_bench_clock() + 60 * bench->minutes};
    trli_study_costs costs;
    trl_err err = TRL_OK;
    if (bench->minutes > 0) all.seconds = fmin(fmax(0.1 * bench->minutes, 0.1), 2);
    for (int f = 0; f < FIGURES; ++f)
        for (int v = 0; v < VARIANTS; ++v)
            if (!bench->figure || strcmp(bench->figure, figures[f].name) == 0)
                TRL_TRY(start(&all, &figures[f], &variants[v], &study[all.n++]));
    if (all.n == 0)
        TRL_TRY(trl_fail(bench->ctx, TRL_ERR_INPUT, NULL,
                         "trellis bench scalability: there is no figure '%s'; use one "
                         "of 4.3, 4.4, 4.5, 4.6, 4.7",
                         bench->figure));
    trli_json_key(bench->json, "cores");
    trli_json_integer(bench->json, bench->threads);
    TRL_TRY(measure_costs(bench, &costs));
    TRL_TRY(measure_all(&all));
    TRL_TRY(report(&all, &costs));
done:
    for (int i = 0; i < all.n; ++i) trli_launch_clean(&study[i].launch);
    return err;
}
