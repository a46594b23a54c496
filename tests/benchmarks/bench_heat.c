/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_dag_impl.h"
#include "bench_heat_impl.h"

enum { LOOPS_MAX = 16, STEPS_LEAST = 8, SETTLING = 448, ROUNDS = 7, QUICK_ROUNDS = 2 };

/* What Trellis is asked to do: a form of the equation, a fusion, and compiled kernels or the interpreter. */
static const struct {
    const char *name, *fusion, *compile;
    bool laplacian, blocked;
} asked[] = {
    {"interpreter, fluxes, fusion none", "none", "never", false, false},
    {"interpreter, fluxes, fusion node", "node", "never", false, false},
    {"interpreter, fluxes, fusion full", "full", "never", false, false},
    {"interpreter, laplacian, fusion none", "none", "never", true, false},
    {"interpreter, laplacian, fusion full", "full", "never", true, false},
    {"compiled, fluxes, fusion none", "none", "always", false, false},
    {"compiled, fluxes, fusion full", "full", "always", false, false},
    {"compiled, laplacian, fusion full", "full", "always", true, false},
    {"compiled, laplacian, fusion full, in blocks of steps", "full", "always", true, true},
};
enum {
    ASKED = sizeof asked / sizeof *asked,
    FLUXES_INTERPRETED = 2,
    INTERPRETED = 4,
    FLUXES = ASKED - 3, /* from here on also at sizes for which not all have room */
    LAPLACIAN = ASKED - 2,
    BLOCKED = ASKED - 1,
    FEW_FROM = 300, /* cells along an axis */
    GATED_FROM = 128,
    GATES_MOST = 32
};

typedef struct match match;

/* One of Trellis's runs. */
typedef struct heat_run {
    trli_case c;
    match *all;
    bool laplacian;
} heat_run;

/* All contenders at one size and number of threads. */
struct match {
    trli_bench *bench;
    trli_heat heat;
    heat_run run[ASKED];
    int first; /* of Trellis's runs */
    int nways;
    trli_heat_loops loops[LOOPS_MAX];
    int rounds;
    trli_contender contender[ASKED + LOOPS_MAX]; /* Trellis's runs, then the hand-written ways */
    double form_difference;                      /* of the two forms, relative to the largest value */
};

typedef struct verdicts {
    trli_gate gate[GATES_MOST];
    char what[GATES_MOST][96];
    int n;
} verdicts;

static const char deck_text[] =
    "trellis: 1\n"
    "grid: {cells: [%d, %d, %d], length: [1.1, 1.2, 1.3]}\n"
    "parameters: {k: %.17g}\n"
    "%s"
    "equations:\n"
    "  T:\n"
    "    initial: \"sin(3*x)*cos(2*y)*sin(4*z) + 0.2*random(7) + 0.5\"\n"
    "    ddt: \"%s\"\n"
    "    boundary: {x-: {dirichlet: 0}, x+: {dirichlet: 0}, y-: {dirichlet: 0}, y+: {dirichlet: 0}, z-: {dirichlet: 0},"
    " z+: {dirichlet: 0}}\n"
    "time: {method: euler, dt: %.17g, steps: 1000000000}\n"
    "run: {fusion: %s, compile: %s}\n";

static trl_err run_steps(void *data)
{
    heat_run *run = data;
    trl_err err = TRL_OK;
    for (int s = 0; s < run->all->heat.steps; ++s) TRL_TRY(trl_simulation_step(run->c.sim));
done:
    return err;
}

static bool is_last(void *data, trl_gidx step, double time, double dt)
{
    const heat_run *run = data;
    (void)time, (void)dt;
    return step % run->all->heat.steps == 0;
}

static trl_err run_blocks_of_steps(void *data)
{
    heat_run *run = data;
    trl_err err = TRL_OK;
    const trl_gidx end = trl_simulation_step_number(run->c.sim) + run->all->heat.steps;
    while (trl_simulation_step_number(run->c.sim) < end) TRL_TRY(trl_simulation_advance(run->c.sim, is_last, run));
done:
    return err;
}

/* Let the simulation find how many steps it takes at once, and start again. */
static trl_err settle(heat_run *run)
{
    trl_err err = TRL_OK;
    const double dt = trl_simulation_dt(run->c.sim);
    while (trl_simulation_step_number(run->c.sim) < SETTLING) TRL_TRY(run_blocks_of_steps(run));
    TRL_TRY(trl_simulation_resume(run->c.sim, 0, 0, dt));
    TRL_TRY(trl_simulation_initialise(run->c.sim));
done:
    return err;
}

/* The hand-written unfused loops of a form are what all others of that form must agree with, bit by bit. */
static const trli_heat_loops *reference(const match *m, bool laplacian)
{
    return &m->loops[laplacian];
}

static const double *row_of(const trli_heat_loops *loops, ptrdiff_t j, ptrdiff_t k)
{
    return loops->now + j * loops->heat->stride[1] + k * loops->heat->stride[2];
}

static trl_err check_run(void *data)
{
    const heat_run *run = data;
    const trli_heat *h = &run->all->heat;
    trl_array t = trl_simulation_array(run->c.sim, 0, 0);
    for (int k = 0; k < h->n[2]; ++k)
        for (int j = 0; j < h->n[1]; ++j)
            if (memcmp((double *)t.at + trl_array_offset(&t, 0, j, k),
                       row_of(reference(run->all, run->laplacian), j, k), (size_t)h->n[0] * sizeof(double)))
                return trl_fail(run->all->bench->ctx, TRL_ERR_BUG, NULL,
                                "Trellis and the hand-written loops do not agree in row y = %d, z = %d", j, k);
    return TRL_OK;
}

static trl_err check_loops(const match *m, int way)
{
    const trli_heat_loops *loops = &m->loops[way];
    for (int k = 0; k < m->heat.n[2]; ++k)
        for (int j = 0; j < m->heat.n[1]; ++j)
            if (memcmp(row_of(loops, j, k), row_of(reference(m, loops->way->laplacian), j, k),
                       (size_t)m->heat.n[0] * sizeof(double)))
                return trl_fail(m->bench->ctx, TRL_ERR_BUG, NULL,
                                "the hand-written loops '%s' do not agree with the unfused ones in row y = %d, z = %d",
                                loops->way->name, j, k);
    return TRL_OK;
}

/* The two forms round differently; and whatever is timed must have been made of proper numbers. */
static trl_err check_forms(void *data)
{
    match *m = data;
    double largest = 0, difference = 0;
    bool proper = true;
    trl_err err = TRL_OK;
    for (int way = 0; way < m->nways; ++way) TRL_TRY(check_loops(m, way));
    for (int k = 0; k < m->heat.n[2]; ++k)
        for (int j = 0; j < m->heat.n[1]; ++j) {
            const double *a = row_of(reference(m, false), j, k), *b = row_of(reference(m, true), j, k);
            for (int i = 0; i < m->heat.n[0]; ++i) {
                largest = fmax(largest, fabs(a[i]));
                difference = fmax(difference, fabs(a[i] - b[i]));
                proper &= a[i] != 0 && fabs(a[i]) <= DBL_MAX;
            }
        }
    m->form_difference = difference / largest;
    if (!proper || !(m->form_difference <= 1e-12))
        err = trl_fail(m->bench->ctx, TRL_ERR_BUG, NULL, "the two forms of the heat equation differ by %g",
                       m->form_difference);
done:
    return err;
}

static trl_err create_run(match *m, int i)
{
    const trli_heat *h = &m->heat;
    heat_run *run = &m->run[i];
    char text[2048];
    snprintf(text, sizeof text, deck_text, h->n[0], h->n[1], h->n[2], h->k,
             asked[i].laplacian ? "" : "expressions: {q: \"-k*grad(T)\"}\n",
             asked[i].laplacian ? "k*laplacian(T)" : "-div(q)", h->dt, asked[i].fusion, asked[i].compile);
    run->all = m;
    run->laplacian = asked[i].laplacian;
    m->contender[i] = (trli_contender){.name = asked[i].name,
                                       .run = asked[i].blocked ? run_blocks_of_steps : run_steps,
                                       .check = check_run,
                                       .data = run};
    const trl_err err = trli_case_create(m->bench->ctx, text, TRLI_ON_CORES, &run->c);
    return err == TRL_OK && asked[i].blocked ? settle(run) : err;
}

static trl_err create_loops(match *m, const trli_heat_way *way)
{
    trli_heat_loops *loops = &m->loops[m->nways];
    trl_array t = trl_simulation_array(m->run[m->first].c.sim, 0, 0);
    trl_err err = trli_heat_loops_create(m->bench->ctx, &m->heat, way, loops);
    if (err != TRL_OK) return err;
    for (int k = 0; k < m->heat.n[2]; ++k)
        for (int j = 0; j < m->heat.n[1]; ++j)
            memcpy((double *)row_of(loops, j, k), (double *)t.at + trl_array_offset(&t, 0, j, k),
                   (size_t)m->heat.n[0] * sizeof(double));
    m->contender[ASKED + m->nways++] = (trli_contender){.name = way->name, .run = trli_heat_loops_run, .data = loops};
    return TRL_OK;
}

/* All ways, or beside the unfused ones those that win where fields are large. */
static trl_err create_all_loops(match *m)
{
    int n;
    const trli_heat_way *way = trli_heat_ways(&n);
    trl_err err = TRL_OK;
    for (int w = 0; w < n; ++w)
        if (m->first == 0 || w < 2 || way[w].steps == 8 || (way[w].ahead && way[w].block == 0))
            TRL_TRY(create_loops(m, &way[w]));
done:
    return err;
}

static void destroy(match *m)
{
    for (int way = 0; way < m->nways; ++way) trli_heat_loops_destroy(&m->loops[way]);
    for (int i = ASKED - 1; i >= 0; --i)
        trli_case_destroy(&m->run[i].c); /* backwards: each restores the thread's binding */
}

/* The fastest hand-written fused way, of all or of those that take one step at a time. */
static int best_fused(const match *m, bool single)
{
    int best = -1;
    double most = 0;
    for (int way = 2; way < m->nways; ++way) {
        const double speed = trli_rate(&m->contender[ASKED + way], m->rounds, 1).median;
        if (speed <= most || (single && m->loops[way].way->steps > 0)) continue;
        most = speed;
        best = ASKED + way;
    }
    return best;
}

static void add_gate(const match *m, verdicts *v, int contender, int other, const char *what, double limit)
{
    if (v->n == GATES_MOST) return;
    snprintf(v->what[v->n], sizeof v->what[0], "%d^3, %d thread%s: %s", m->heat.n[0], m->heat.threads,
             m->heat.threads > 1 ? "s" : "", what);
    const double ratio = trli_ratio(&m->contender[contender], &m->contender[other], m->rounds).median;
    v->gate[v->n] = (trli_gate){v->what[v->n], ratio, limit, true};
    ++v->n;
}

static void judge(const match *m, verdicts *v)
{
    if (m->heat.n[0] < GATED_FROM) return;
    add_gate(m, v, LAPLACIAN, best_fused(m, true), "full fusion, of the best single step by hand", 0.95);
    add_gate(m, v, BLOCKED, best_fused(m, false), "in blocks of steps, of the best by hand", 0.95);
    if (m->first > 0) return;
    add_gate(m, v, INTERPRETED, LAPLACIAN, "interpreted, of compiled", 1.0 / 3);
    add_gate(m, v, FLUXES_INTERPRETED, FLUXES, "interpreted, of compiled, fluxes", 1.0 / 3);
}

static void report(match *m, const trli_limits *limits)
{
    trli_json *json = m->bench->json;
    double cells = (double)m->heat.n[0] * m->heat.n[1] * m->heat.n[2] * m->heat.steps;
    int best = best_fused(m, false);
    printf("\n%d^3 cells, %d thread%s, %d rounds of %d steps\n", m->heat.n[0], m->heat.threads,
           m->heat.threads > 1 ? "s" : "", m->rounds, m->heat.steps);
    printf("%-46s %22s %20s %20s %9s\n", "", "million updates/s", "of unfused loops", "of best fused", "of 16 B");
    for (int c = m->first; c < ASKED + m->nways; ++c) {
        const trli_contender *contender = &m->contender[c];
        bool laplacian = c < ASKED ? asked[c].laplacian : m->loops[c - ASKED].way->laplacian;
        trli_spread rate = trli_rate(contender, m->rounds, cells);
        trli_spread unfused = trli_ratio(contender, &m->contender[ASKED + laplacian], m->rounds);
        trli_spread fused = trli_ratio(contender, &m->contender[best], m->rounds);
        double fraction = rate.median * 16 / limits->copy;
        printf("%-46s %6.0f (%5.0f to %5.0f) %5.2f (%4.2f to %5.2f) %5.2f (%4.2f to %5.2f) %9.2f\n", contender->name,
               1e-6 * rate.median, 1e-6 * rate.min, 1e-6 * rate.max, unfused.median, unfused.min, unfused.max,
               fused.median, fused.min, fused.max, fraction);
        trli_json_begin_object(json);
        trli_json_key(json, "name");
        trli_json_string(json, contender->name);
        trli_json_key(json, "cells");
        trli_json_integer(json, m->heat.n[0]);
        trli_json_key(json, "threads");
        trli_json_integer(json, m->heat.threads);
        trli_spread_report(json, "updates_per_s", &rate);
        trli_spread_report(json, "ratio_unfused", &unfused);
        trli_spread_report(json, "ratio_best_fused", &fused);
        trli_json_key(json, "fraction_of_16_bytes");
        trli_json_number(json, fraction);
        trli_json_key(json, "best_fused");
        trli_json_bool(json, c == best);
        trli_json_end_object(json);
    }
    printf("same bits in all of one form; the forms differ by %.1e of the largest value\n", m->form_difference);
}

static trl_err play(trli_bench *bench, int cells, const trli_limits *limits, verdicts *v)
{
    match *m = calloc(1, sizeof *m);
    trl_err err = TRL_OK;
    if (!m) return trl_fail(bench->ctx, TRL_ERR_MEMORY, NULL, "no memory for a benchmark");
    double per_step = (double)cells * cells * cells, work = bench->quick ? 1 << 16 : 1 << 25;
    m->bench = bench;
    m->rounds = bench->quick ? QUICK_ROUNDS : ROUNDS;
    m->heat = (trli_heat){.n = {cells, cells, cells},
                          .k = 0.7,
                          .threads = limits->threads,
                          .steps = (int)(work / per_step) > STEPS_LEAST ? (int)(work / per_step) : STEPS_LEAST,
                          .spacing = {1.1 / cells, 1.2 / cells, 1.3 / cells}};
    m->heat.dt = 0.1 * m->heat.spacing[0] * m->heat.spacing[0] / m->heat.k;
    trli_heat_shape(&m->heat);
    m->first = cells < FEW_FROM ? 0 : FLUXES;
    TRL_TRY(trl_context_set_threads(bench->ctx, limits->threads));
    for (int i = m->first; i < ASKED; ++i) TRL_TRY(create_run(m, i));
    TRL_TRY(create_all_loops(m));
    m->contender[ASKED].check = NULL;
    TRL_TRY(trli_rounds_run(m->contender + m->first, ASKED + m->nways - m->first, m->rounds));
    TRL_TRY(check_forms(m));
    report(m, limits);
    judge(m, v);
done:
    destroy(m);
    free(m);
    return err;
}

trl_err trli_bench_heat(trli_bench *bench)
{
    static const int sizes[] = {64, 128, 256, 384}, quick_sizes[] = {24};
    const int *size = bench->quick ? quick_sizes : sizes;
    int nsizes = bench->quick ? 1 : (int)(sizeof sizes / sizeof *sizes);
    trli_limits one, all;
    verdicts v = {.n = 0};
    trl_err err = TRL_OK;
    TRL_TRY(trli_limits_measure(bench, &one, &all));
    trli_json_key(bench->json, "results");
    trli_json_begin_array(bench->json);
    for (int s = 0; s < nsizes; ++s) {
        TRL_TRY(play(bench, size[s], &one, &v));
        if (all.threads > 1) TRL_TRY(play(bench, size[s], &all, &v));
    }
    trli_json_end_array(bench->json);
    if (v.n > 0) trli_gates_report(bench, v.gate, v.n);
done:
    return err;
}
