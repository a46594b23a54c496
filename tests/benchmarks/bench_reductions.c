/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Reductions of formulas: exact sums, the same for any order, and extremes; against plain loops in vectors, whose sums
 * are rounded, and depend on the order. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench_kernels_impl.h"
#include "cost_impl.h"
#include "lifecycle_impl.h"
#include "lower_impl.h"
#include "parts_impl.h"
#include "pipeline_impl.h"
#include "vector_impl.h"

enum { FIELDS = 3, VALUES_MOST = 4, LANES = 32, ROUNDS = 9, QUICK_ROUNDS = 2 };

typedef struct reduced {
    const char *formula;
    trli_reduce_kind kind;
} reduced;

/* A loop by hand over n doubles of each field, a multiple of LANES, into results that others have begun. */
typedef void (*hand_loop)(const double *const f[FIELDS], ptrdiff_t n, double result[VALUES_MOST]);

typedef struct reduction_case {
    const char *name;
    int fields, nvalues;
    reduced value[VALUES_MOST];
    hand_loop by_hand;
} reduction_case;

/* ---- by hand ---- */

static void begin_with(double *lane, double value)
{
    for (int u = 0; u < LANES; ++u) lane[u] = value;
}

static void take(trli_reduce_kind kind, double x, double *result)
{
    if (kind == TRLI_REDUCE_SUM) *result += x;
    if (kind == TRLI_REDUCE_MIN && x < *result) *result = x;
    if (kind == TRLI_REDUCE_MAX && x > *result) *result = x;
}

static void take_lanes(trli_reduce_kind kind, const double *lane, double *result)
{
    for (int u = 0; u < LANES; ++u) take(kind, lane[u], result);
}

TRLI_CLONES static void dot(const double *const f[FIELDS], ptrdiff_t n, double result[VALUES_MOST])
{
    double s[LANES] = {0};
    for (ptrdiff_t i = 0; i < n; i += LANES)
        for (int u = 0; u < LANES; ++u) s[u] += f[0][i + u] * f[1][i + u];
    take_lanes(TRLI_REDUCE_SUM, s, &result[0]);
}

TRLI_CLONES static void norm(const double *const f[FIELDS], ptrdiff_t n, double result[VALUES_MOST])
{
    double s[LANES] = {0};
    for (ptrdiff_t i = 0; i < n; i += LANES)
        for (int u = 0; u < LANES; ++u) s[u] += f[0][i + u] * f[0][i + u];
    take_lanes(TRLI_REDUCE_SUM, s, &result[0]);
}

TRLI_CLONES static void bound(const double *const f[FIELDS], ptrdiff_t n, double result[VALUES_MOST])
{
    double e[LANES];
    begin_with(e, -INFINITY);
    for (ptrdiff_t i = 0; i < n; i += LANES)
        for (int u = 0; u < LANES; ++u) {
            const double x = 1.5 * fabs(f[0][i + u]) + 2.5 * fabs(f[1][i + u]) + 3.5 * fabs(f[2][i + u]);
            e[u] = x > e[u] ? x : e[u];
        }
    take_lanes(TRLI_REDUCE_MAX, e, &result[0]);
}

TRLI_CLONES static void moments(const double *const f[FIELDS], ptrdiff_t n, double result[VALUES_MOST])
{
    double s[LANES] = {0}, q[LANES] = {0}, lo[LANES], hi[LANES];
    begin_with(lo, INFINITY);
    begin_with(hi, -INFINITY);
    for (ptrdiff_t i = 0; i < n; i += LANES)
        for (int u = 0; u < LANES; ++u) {
            const double x = f[0][i + u];
            s[u] += x;
            q[u] += x * x;
            lo[u] = x < lo[u] ? x : lo[u];
            hi[u] = x > hi[u] ? x : hi[u];
        }
    take_lanes(TRLI_REDUCE_SUM, s, &result[0]);
    take_lanes(TRLI_REDUCE_SUM, q, &result[1]);
    take_lanes(TRLI_REDUCE_MIN, lo, &result[2]);
    take_lanes(TRLI_REDUCE_MAX, hi, &result[3]);
}

TRLI_STREAM_VARIANTS(TRLI_STREAM_COPY)

static const reduction_case cases[] = {
    {"dot product", 2, 1, {{"f1*f2", TRLI_REDUCE_SUM}}, dot},
    {"norm", 1, 1, {{"f1*f1", TRLI_REDUCE_SUM}}, norm},
    {"cfl bound", 3, 1, {{"1.5*abs(f1) + 2.5*abs(f2) + 3.5*abs(f3)", TRLI_REDUCE_MAX}}, bound},
    {"sum, squares, least, largest",
     1,
     4,
     {{"f1", TRLI_REDUCE_SUM}, {"f1*f1", TRLI_REDUCE_SUM}, {"f1", TRLI_REDUCE_MIN}, {"f1", TRLI_REDUCE_MAX}},
     moments},
};
enum { CASES = sizeof cases / sizeof *cases };

/* ---- all ways ---- */

typedef struct match {
    trl_context *ctx;
    const reduction_case *what;
    int threads, sweeps; /* of one run */
    trl_grid grid;
    trl_layout *layout;
    trl_workers *workers;
    trl_formula *formula[VALUES_MOST];
    trli_model *model;
    trli_program *program;
    trli_frame *frame;
    int field[FIELDS], scalar[VALUES_MOST];
    ptrdiff_t n; /* doubles of a field by hand */
    double *f[FIELDS], *copied;
    double *part;                /* by hand: [thread][VALUES_MOST], a line of the cache each */
    double by_hand[VALUES_MOST]; /* results */
    trli_contender contender[3]; /* Trellis, by hand, the copy */
} match;

static double value_at(int field, ptrdiff_t i)
{
    return 0.1 * (field + 1) + (double)((uint32_t)(i + 7 * field) * 2654435761u) * 0x1p-32 - (i % 3 == 0);
}

static trl_err declare(match *m)
{
    static const char *const name[FIELDS] = {"f1", "f2", "f3"};
    static const trl_bc_side no_sides[6];
    trli_variable variable[FIELDS];
    for (int v = 0; v < FIELDS; ++v)
        variable[v] = (trli_variable){.name = name[v], .location = TRL_CELL, .boundary = no_sides};
    const trli_model_request request = {.layout = m->layout,
                                        .fusion = TRL_FUSION_FULL,
                                        .compile = TRL_COMPILE_ALWAYS,
                                        .nvariables = FIELDS,
                                        .variables = variable,
                                        .workers = m->workers};
    return trli_model_create(m->ctx, &request, &m->model);
}

static trl_err add_reductions(match *m)
{
    trli_instance *in = NULL;
    trl_err err = TRL_OK;
    TRL_TRY(trli_instance_create(m->model, m->program, TRLI_SCALAR_STEP_TIME, 0, NULL, &in));
    for (int v = 0; v < FIELDS; ++v) in->variable[v] = m->field[v];
    TRL_TRY(trli_instance_prepare(in));
    for (int r = 0; r < m->what->nvalues; ++r) {
        const reduced *what = &m->what->value[r];
        trli_ir_value value;
        TRL_TRY(trl_formula_parse(m->ctx, &(trl_text){.chars = what->formula}, &m->formula[r]));
        TRL_TRY(trli_lower_at(in, m->formula[r], NULL, TRL_CELL, &value));
        TRL_TRY(trli_program_reduce(m->program, m->what->name, value, TRL_CELL, what->kind, true, NULL, &m->scalar[r]));
        TRL_TRY(trli_program_add_scalar_root(m->program, m->scalar[r]));
    }
done:
    trli_instance_destroy(&in);
    return err;
}

static trl_err compile(match *m)
{
    trl_err err = TRL_OK;
    TRL_TRY(trl_layout_create(m->ctx, &m->grid, (int[3]){1, 1, 1}, NULL, &m->layout));
    TRL_TRY(trl_workers_create(m->ctx, "priority", &m->workers));
    TRL_TRY(declare(m));
    for (int v = 0; v < FIELDS; ++v) {
        m->field[v] = trli_model_add_field(m->model, m->model->variable[v].name, TRL_CELL);
        if (m->field[v] < 0) TRL_TRY(m->model->ir.err);
        m->model->field[m->field[v]].persistent = true;
    }
    TRL_TRY(trli_program_create(m->model, "reduce", &m->program));
    TRL_TRY(add_reductions(m));
    TRL_TRY(trli_program_analyse(m->program));
    TRL_TRY(trli_program_fold(m->program));
    TRL_TRY(trli_program_count_work(m->program));
    TRL_TRY(trli_program_part(m->program));
    TRL_TRY(trli_model_freeze(m->model, NULL, NULL));
    TRL_TRY(trli_frame_create(m->model, &m->frame));
done:
    return err;
}

static void set_values(const match *m)
{
    const trl_lidx cells = (trl_lidx)m->grid.cells[0];
    for (int v = 0; v < FIELDS; ++v) {
        const trl_array a = trli_frame_array(m->frame, m->field[v], 0, 0);
        for (ptrdiff_t i = 0; i < m->n; ++i) {
            const trl_lidx x = (trl_lidx)(i % cells), y = (trl_lidx)(i / cells % cells),
                           z = (trl_lidx)(i / cells / cells);
            m->f[v][i] = ((double *)a.at)[trl_array_offset(&a, x, y, z)] = value_at(v, i);
        }
    }
}

static trl_err run_trellis(void *data)
{
    const match *m = data;
    trl_err err = TRL_OK;
    for (int s = 0; s < m->sweeps; ++s) TRL_TRY(trli_program_run(m->program, m->frame));
done:
    return err;
}

static void hand_member(trli_team *team, int member, void *data)
{
    match *m = data;
    ptrdiff_t begin, end;
    trli_team_share(team, member, m->n / LANES, &begin, &end);
    const double *const f[FIELDS] = {m->f[0] + begin * LANES, m->f[1] + begin * LANES, m->f[2] + begin * LANES};
    for (int s = 0; s < m->sweeps; ++s) {
        double *part = m->part + (ptrdiff_t)member * TRLI_LINE;
        for (int r = 0; r < VALUES_MOST; ++r) part[r] = m->what->value[r].kind == TRLI_REDUCE_SUM ? 0 : f[0][0];
        if (m->what->value[0].kind == TRLI_REDUCE_MAX) part[0] = -INFINITY;
        m->what->by_hand(f, (end - begin) * LANES, part);
        trli_team_barrier(team);
        for (int r = 0; r < m->what->nvalues && member == 0; ++r) {
            m->by_hand[r] = part[r];
            for (int t = 1; t < m->threads; ++t)
                take(m->what->value[r].kind, m->part[(ptrdiff_t)t * TRLI_LINE + r], &m->by_hand[r]);
        }
        trli_team_barrier(team);
    }
}

static trl_err run_hand(void *data)
{
    match *m = data;
    return trli_team_run(m->ctx, m->threads, hand_member, m);
}

static void copy_member(trli_team *team, int member, void *data)
{
    const match *m = data;
    ptrdiff_t begin, end;
    trli_team_share(team, member, m->n / LANES, &begin, &end);
    for (int s = 0; s < m->sweeps; ++s) {
        TRLI_STREAM_CALL(copy, m->copied + begin * LANES, m->f[0] + begin * LANES, (end - begin) * LANES);
        trli_team_barrier(team);
    }
}

static trl_err run_copy(void *data)
{
    match *m = data;
    return trli_team_run(m->ctx, m->threads, copy_member, m);
}

/* Sums by hand are rounded; extremes are the same. */
static trl_err check(const match *m)
{
    for (int r = 0; r < m->what->nvalues; ++r) {
        const double a = m->frame->scalar[m->scalar[r]], b = m->by_hand[r];
        if (!(fabs(a - b) <= (m->what->value[r].kind == TRLI_REDUCE_SUM ? 1e-9 * fabs(b) : 0)))
            return trl_fail(m->ctx, TRL_ERR_BUG, NULL, "%s: Trellis has %.17g, and the loop by hand %.17g",
                            m->what->name, a, b);
    }
    return TRL_OK;
}

/* ---- report ---- */

static void report_contender(trli_bench *bench, const match *m, int c, int rounds, double *of_copy)
{
    trli_json *json = bench->json;
    const trli_spread rate = trli_rate(&m->contender[c], rounds, (double)m->n * m->sweeps);
    const trli_spread ratio = trli_ratio(&m->contender[c], &m->contender[1], rounds);
    *of_copy = m->what->fields / 2.0 * trli_ratio(&m->contender[c], &m->contender[2], rounds).median;
    printf("%-54s %7.0f (%5.0f to %5.0f) %5.2f (%4.2f to %5.2f) %8.2f\n", m->contender[c].name, 1e-6 * rate.median,
           1e-6 * rate.min, 1e-6 * rate.max, ratio.median, ratio.min, ratio.max, *of_copy);
    trli_json_begin_object(json);
    trli_json_key(json, "case");
    trli_json_string(json, m->what->name);
    trli_json_key(json, "name");
    trli_json_string(json, m->contender[c].name);
    trli_json_key(json, "cells");
    trli_json_integer(json, m->grid.cells[0]);
    trli_json_key(json, "threads");
    trli_json_integer(json, m->threads);
    trli_spread_report(json, "points_per_s", &rate);
    trli_spread_report(json, "ratio_by_hand", &ratio);
    trli_json_key(json, "fraction_of_copy");
    trli_json_number(json, *of_copy);
    trli_json_end_object(json);
}

static void report(trli_bench *bench, const match *m, int rounds, trli_verdicts *v)
{
    char what[80];
    double of_copy, by_hand;
    snprintf(what, sizeof what, "%s, %d^3, %d thread%s", m->what->name, (int)m->grid.cells[0], m->threads,
             m->threads > 1 ? "s" : "");
    printf("\n%s: %d rounds of %d sweep%s\n%-54s %24s %21s %8s\n", what, rounds, m->sweeps, m->sweeps > 1 ? "s" : "",
           "", "million points/s", "of the loop by hand", "of copy");
    report_contender(bench, m, 0, rounds, &of_copy);
    report_contender(bench, m, 1, rounds, &by_hand);
    trli_verdict_add(v, what, "of the copy limit of what it reads", of_copy, 0.9, true);
}

static trl_err play(trli_bench *bench, const reduction_case *what, int cells, int threads, trli_verdicts *v)
{
    const int rounds = bench->quick ? QUICK_ROUNDS : ROUNDS;
    match m = {.ctx = bench->ctx, .what = what, .threads = threads, .n = (ptrdiff_t)cells * cells * cells};
    trl_err err = TRL_OK;
    m.sweeps = (int)((bench->quick ? 1 << 16 : 1 << 26) / m.n) + 1;
    m.grid = (trl_grid){.dim = 3};
    for (int a = 0; a < 3; ++a) {
        m.grid.cells[a] = cells;
        m.grid.length[a] = m.grid.spacing[a] = 1;
        m.grid.spacing[a] /= cells;
        m.grid.periodic[a] = true;
    }
    TRL_TRY(trl_context_set_threads(bench->ctx, threads));
    for (int i = 0; i < FIELDS; ++i) TRL_TRY(trli_bench_alloc(m.ctx, (size_t)m.n, &m.f[i]));
    TRL_TRY(trli_bench_alloc(m.ctx, (size_t)m.n, &m.copied));
    TRL_TRY(trli_bench_alloc(m.ctx, (size_t)threads * TRLI_LINE, &m.part));
    TRL_TRY(compile(&m));
    set_values(&m);
    m.contender[0] = (trli_contender){.name = "Trellis, exact sums", .run = run_trellis, .data = &m};
    m.contender[1] = (trli_contender){.name = "loop in vectors, rounded sums", .run = run_hand, .data = &m};
    m.contender[2] = (trli_contender){.name = "streaming copy", .run = run_copy, .data = &m};
    TRL_TRY(trli_rounds_run(m.contender, 3, rounds));
    TRL_TRY(check(&m));
    report(bench, &m, rounds, v);
done:
    trli_frame_destroy(&m.frame);
    trli_model_destroy(&m.model);
    for (int r = 0; r < VALUES_MOST; ++r) trl_formula_destroy(&m.formula[r]);
    trl_workers_destroy(&m.workers);
    trl_layout_destroy(&m.layout);
    for (int i = 0; i < FIELDS; ++i) free(m.f[i]);
    free(m.copied);
    free(m.part);
    return err;
}

trl_err trli_reductions_play(trli_bench *bench, int cells, int threads, trli_verdicts *v)
{
    trl_err err = TRL_OK;
    for (int c = 0; c < CASES; ++c) TRL_TRY(play(bench, &cases[c], cells, threads, v));
done:
    return err;
}
