/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_kernels_impl.h"
#include "model_run_impl.h"

enum { ROUNDS = 9, QUICK_ROUNDS = 2, COPIES_MOST = 4 };

#define TRANSPORT(count)                                                                                         \
    {                                                                                                            \
        .name = "transport, n = " #count, .dim = 3, .unknowns = count, .coefficients = 3,                        \
        .formula = {"-div(advective_flux(f#, [u, v, w])) + div(0.01*grad(f#))"}, .coefficient = {"u", "v", "w"}, \
        .at = {TRL_XFACE, TRL_YFACE, TRL_ZFACE}, .length = {1.1, 1.2, 1.3}, .dt = 1, .lo = 0.5, .hi = 1.5,       \
        .by_hand = TRLI_SYSTEM_TRANSPORT, .gate = 0.9                                                            \
    }
/* Of the sizes that others have, the arrays of all ways would not fit the memory of common machines. */
#define TRANSPORT_LARGE(count, cells_)                                                                           \
    {                                                                                                            \
        .name = "transport, n = " #count, .dim = 3, .unknowns = count, .coefficients = 3, .cells = cells_,       \
        .formula = {"-div(advective_flux(f#, [u, v, w])) + div(0.01*grad(f#))"}, .coefficient = {"u", "v", "w"}, \
        .at = {TRL_XFACE, TRL_YFACE, TRL_ZFACE}, .length = {1.1, 1.2, 1.3}, .dt = 1, .lo = 0.5, .hi = 1.5,       \
        .by_hand = TRLI_SYSTEM_TRANSPORT, .gate = 0.9                                                            \
    }
#define HEAT_K(name_, formula_, by_hand_)                                                                       \
    {                                                                                                           \
        .name = name_, .dim = 3, .unknowns = 1, .coefficients = 1, .formula = {formula_}, .coefficient = {"k"}, \
        .at = {TRL_CELL}, .length = {1.1, 1.2, 1.3}, .dt = 0.1, .lo = 0.5, .hi = 1.5, .by_hand = by_hand_,      \
        .gate = 0.95                                                                                            \
    }

static const trli_kernel_case cases[] = {
    HEAT_K("heat_k", "div(k*grad(f1))", TRLI_SYSTEM_HEAT_K),
    HEAT_K("heat_k, harmonic", "div(harmonic(k, faces)*grad(f1))", TRLI_SYSTEM_HARMONIC),
    TRANSPORT(1),
    TRANSPORT(16),
    TRANSPORT(30),
    TRANSPORT_LARGE(60, 64),
    TRANSPORT_LARGE(100, 64),
    TRANSPORT_LARGE(200, 48),
    {.name = "kinetics, n = 60",
     .dim = 3,
     .unknowns = 60,
     .cells = 64,
     .formula = {"div(0.01*grad(f#)) + 1.1*f#+1*f#+7 - 0.9*f#*f#+13 + 0.7*f#+3*f#+19 - 0.8*f#*f#+5 + 1.3*f#+11*f#+23 - "
                 "0.6*f#*f#+29"
                 " + 0.3*f#+2*f#+17 - 0.4*f#*f#+31 + 0.2*f#+37*f#+41 - 1.2*f#*f#+43"},
     .nothers = 15,
     .other = {1, 7, 13, 3, 19, 5, 11, 23, 29, 2, 17, 31, 37, 41, 43},
     .length = {1.1, 1.2, 1.3},
     .dt = 0.1,
     .lo = 0.5,
     .hi = 1.5,
     .by_hand = TRLI_SYSTEM_KINETICS,
     .gate = 0.9},
    {.name = "coupled, n = 30",
     .dim = 3,
     .unknowns = 30,
     .formula = {"div(grad(f#)) + prod(j=1..30, exp(f{j}))"},
     .length = {1.1, 1.2, 1.3},
     .dt = 0.01,
     .hi = 1.0 / 30,
     .by_hand = TRLI_SYSTEM_COUPLED,
     .gate = 0.9},
    {.name = "gray_scott",
     .dim = 2,
     .unknowns = 2,
     .formula = {"0.16*laplacian(f1) - f1*f2^2 + 0.037*(1 - f1)", "0.08*laplacian(f2) + f1*f2^2 - (0.037 + 0.06)*f2"},
     .dt = 1,
     .hi = 1,
     .by_hand = TRLI_SYSTEM_GRAY_SCOTT,
     .gate = 0.9},
    {.name = "burgers",
     .dim = 2,
     .unknowns = 2,
     .formula = {"-dot([f1, f2], at(grad(f#), cell)) + 0.01*laplacian(f#)"},
     .length = {1.1, 1.2},
     .dt = 1,
     .lo = 0.5,
     .hi = 1.5,
     .by_hand = TRLI_SYSTEM_BURGERS,
     .gate = 0.9},
};
enum { CASES = sizeof cases / sizeof *cases };

/* All contenders of one case, size and number of threads: Trellis, the ways by hand, the copy. */
typedef struct match {
    trli_bench *bench;
    trli_kernel_size size, copied;
    int rounds, nways;
    bool small; /* fits the caches: results belong there for their next reader */
    trli_formulas formulas;
    trli_hand_state hand[TRLI_WAYS_MOST], copy;
    trli_contender contender[TRLI_WAYS_MOST + 2];
    int best;
    char what[80];
} match;

/* ---- what they computed ---- */

/* Unknown u of the first hand-written way is what all others must agree with, bit by bit. */
static trl_err check_unknown(const match *m, const trli_hand_state *hand, int u)
{
    const trli_hand_state *first = &m->hand[0];
    const trl_array t = trli_frame_array(m->formulas.frame, m->formulas.now[u], 0, 0);
    for (int k = 0; k < first->n[2]; ++k)
        for (int j = 0; j < first->n[1]; ++j) {
            const ptrdiff_t at = j * first->sy + k * first->sz;
            const double *row = hand ? hand->now[u] + at : (double *)t.at + trl_array_offset(&t, 0, j, k);
            if (memcmp(row, first->now[u] + at, (size_t)first->n[0] * sizeof *row))
                return trl_fail(m->bench->ctx, TRL_ERR_BUG, NULL,
                                "%s: '%s' and '%s' do not agree on unknown %d in row y = %d, z = %d",
                                m->size.what->name, hand ? hand->way->name : "Trellis", first->way->name, u + 1, j, k);
            for (int i = 0; i < first->n[0] && !hand; ++i)
                if (!(fabs(row[i]) <= DBL_MAX) || row[i] == 0)
                    return trl_fail(m->bench->ctx, TRL_ERR_BUG, NULL, "%s: the number %g was timed", m->size.what->name,
                                    row[i]);
        }
    return TRL_OK;
}

static trl_err check(void *data)
{
    const match *m = data;
    trl_err err = TRL_OK;
    for (int u = 0; u < m->size.what->unknowns; ++u) {
        TRL_TRY(check_unknown(m, NULL, u));
        for (int way = 1; way < m->nways; ++way) TRL_TRY(check_unknown(m, &m->hand[way], u));
    }
done:
    return err;
}

/* ---- report ---- */

static void report_contender(const match *m, int c, const trli_spread *rate, const trli_spread *ratio, double fraction)
{
    trli_json *json = m->bench->json;
    printf("%-54s %7.0f (%5.0f to %5.0f) %5.2f (%4.2f to %5.2f) %8.2f\n", m->contender[c].name, 1e-6 * rate->median,
           1e-6 * rate->min, 1e-6 * rate->max, ratio->median, ratio->min, ratio->max, fraction);
    trli_json_begin_object(json);
    trli_json_key(json, "case");
    trli_json_string(json, m->size.what->name);
    trli_json_key(json, "name");
    trli_json_string(json, m->contender[c].name);
    trli_json_key(json, "cells");
    trli_json_integer(json, m->size.grid.cells[0]);
    trli_json_key(json, "threads");
    trli_json_integer(json, m->size.threads);
    trli_spread_report(json, "updates_per_s", rate);
    trli_spread_report(json, "ratio_best_by_hand", ratio);
    trli_json_key(json, "fraction_of_copy");
    trli_json_number(json, fraction);
    trli_json_key(json, "best_by_hand");
    trli_json_bool(json, c == m->best);
    trli_json_end_object(json);
}

/* The fastest way by hand. What fits a cache belongs there, so streaming is then shown, but no competitor. */
static int find_best(const match *m, int *faithful)
{
    int best = -1;
    double least = INFINITY;
    *faithful = -1;
    for (int c = 1; c <= m->nways; ++c) {
        const trli_hand_way *way = m->hand[c - 1].way;
        const double seconds = 1 / trli_rate(&m->contender[c], m->rounds, 1).median;
        if (way->faithful) *faithful = c;
        if (way->faithful || (m->small && way->streaming) || seconds >= least) continue;
        least = seconds;
        best = c;
    }
    return best;
}

void trli_verdict_add(trli_verdicts *v, const char *of, const char *what, double value, double limit, bool at_least)
{
    if (v->n == TRLI_VERDICTS_MOST) return;
    snprintf(v->what[v->n], sizeof v->what[0], "%s, %s", of, what);
    v->gate[v->n] = (trli_gate){v->what[v->n], value, limit, at_least};
    ++v->n;
}

static void report(match *m, trli_verdicts *v)
{
    const trli_kernel_case *what = m->size.what;
    const int copy = m->nways + 1;
    const double cells = (double)m->size.grid.cells[0] * (double)m->size.grid.cells[1] * (double)m->size.grid.cells[2];
    const double updates = cells * what->unknowns * m->size.steps;
    /* what must move, over what the copy moves */
    const double bytes = (2.0 * what->unknowns + what->coefficients) / (2.0 * m->copied.what->unknowns);
    int faithful;
    m->best = find_best(m, &faithful);
    snprintf(m->what, sizeof m->what, "%s, %d^%d, %d thread%s", what->name, (int)m->size.grid.cells[0], what->dim,
             m->size.threads, m->size.threads > 1 ? "s" : "");
    printf("\n%s: %d rounds of %d step%s\n%-54s %24s %21s %8s\n", m->what, m->rounds, m->size.steps,
           m->size.steps > 1 ? "s" : "", "", "million updates/s", "of best by hand", "of copy");
    for (int c = 0; c <= m->nways; ++c) {
        const trli_spread rate = trli_rate(&m->contender[c], m->rounds, updates);
        const trli_spread ratio = trli_ratio(&m->contender[c], &m->contender[m->best], m->rounds);
        report_contender(m, c, &rate, &ratio,
                         bytes * trli_ratio(&m->contender[c], &m->contender[copy], m->rounds).median);
        if (c == 0) trli_verdict_add(v, m->what, "of the best by hand", ratio.median, what->gate, true);
    }
    if (faithful > 0) {
        const trli_spread ratio = trli_ratio(&m->contender[0], &m->contender[faithful], m->rounds);
        printf("%.1f (%.1f to %.1f) times '%s'\n", ratio.median, ratio.min, ratio.max, m->contender[faithful].name);
        trli_verdict_add(v, m->what, "of equation by equation", ratio.median, 10, true);
    }
    if (what->by_hand == TRLI_SYSTEM_HEAT_K && m->small && m->size.threads == 1) {
        const double ns = 1e9 / trli_rate(&m->contender[0], m->rounds, updates).median;
        printf("%.3f ns per cell and step\n", ns);
        trli_verdict_add(v, m->what, "ns per cell", ns, 0.8, false);
    }
}

/* ---- a match ---- */

static trl_err prepare(match *m, const trli_kernel_case *what, int cells, trli_kernel_case *copied)
{
    trl_context *ctx = m->bench->ctx;
    trl_err err = TRL_OK;
    const int threads = m->size.threads;
    const double updates = pow(cells, what->dim) * what->unknowns;
    trli_kernel_size_set(what, cells, &m->size);
    m->size.threads = threads;
    m->size.steps = (int)((m->bench->quick ? 1 << 16 : 1 << 25) / updates);
    if (m->size.steps < 1 || what->by_hand == TRLI_SYSTEM_COUPLED) m->size.steps = 1;
    const double bytes = 8 * pow(cells, what->dim) * (2 * what->unknowns + what->coefficients);
    m->small = bytes < (double)trl_context_cache_bytes(ctx, 0);
    TRL_TRY(trli_formulas_create(ctx, &m->size, &m->formulas));
    m->contender[0] = (trli_contender){.name = "Trellis", .run = trli_formulas_run, .data = &m->formulas};
    const trli_hand_way *way = trli_hand_ways(what->by_hand, &m->nways);
    for (int w = 0; w < m->nways; ++w) {
        TRL_TRY(trli_hand_create(ctx, &m->size, &way[w], &m->hand[w]));
        m->contender[w + 1] = (trli_contender){.name = way[w].name, .run = trli_hand_run, .data = &m->hand[w]};
    }
    *copied = *what;
    copied->coefficients = 0;
    if (copied->unknowns > COPIES_MOST) copied->unknowns = COPIES_MOST;
    m->copied = m->size;
    m->copied.what = copied;
    TRL_TRY(trli_hand_create(ctx, &m->copied, trli_hand_copy(!m->small), &m->copy));
    m->contender[m->nways + 1] = (trli_contender){.name = "copy", .run = trli_hand_run, .data = &m->copy};
done:
    return err;
}

static trl_err play(trli_bench *bench, const trli_kernel_case *what, int cells, int threads, trli_verdicts *v)
{
    match *m = calloc(1, sizeof *m);
    trli_kernel_case copied;
    trl_err err = TRL_OK;
    if (!m) return trl_fail(bench->ctx, TRL_ERR_MEMORY, NULL, "no memory for a benchmark");
    m->bench = bench;
    m->size.threads = threads;
    m->rounds = bench->quick ? QUICK_ROUNDS : ROUNDS;
    TRL_TRY(trl_context_set_threads(bench->ctx, threads));
    TRL_TRY(prepare(m, what, cells, &copied));
    TRL_TRY(trli_rounds_run(m->contender, m->nways + 2, m->rounds));
    TRL_TRY(check(m));
    report(m, v);
done:
    trli_hand_destroy(&m->copy);
    for (int w = 0; w < m->nways; ++w) trli_hand_destroy(&m->hand[w]);
    trli_formulas_destroy(&m->formulas);
    free(m);
    return err;
}

trl_err trli_bench_kernels(trli_bench *bench)
{
    static const int sizes[2][2] = {{512, 128}, {32, 12}}; /* [quick][3-D] */
    const int small = bench->quick ? 9 : 64;
    trli_verdicts v = {.n = 0};
    trli_limits one, all;
    trl_err err = TRL_OK;
    TRL_TRY(trli_limits_measure(bench, &one, &all));
    trli_json_key(bench->json, "results");
    trli_json_begin_array(bench->json);
    for (int c = 0; c < CASES; ++c) {
        const int cells = cases[c].cells && !bench->quick ? cases[c].cells : sizes[bench->quick][cases[c].dim > 2];
        if (cases[c].by_hand <= TRLI_SYSTEM_HARMONIC) TRL_TRY(play(bench, &cases[c], small, 1, &v));
        TRL_TRY(play(bench, &cases[c], cells, 1, &v));
        if (all.threads > 1) TRL_TRY(play(bench, &cases[c], cells, all.threads, &v));
    }
    TRL_TRY(trli_reductions_play(bench, sizes[bench->quick][1], 1, &v));
    if (all.threads > 1) TRL_TRY(trli_reductions_play(bench, sizes[bench->quick][1], all.threads, &v));
    trli_json_end_array(bench->json);
    trli_gates_report(bench, v.gate, v.n);
done:
    return err;
}
