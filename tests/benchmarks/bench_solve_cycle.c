/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Cycles of multigrid: a V cycle beside the time that its kernels' and transfers' bytes take at the speed of a copy;
 * and conjugate gradients with such cycles in boxes that grow with ranks and threads. */
#include <stdio.h>
#include <stdlib.h>

#include "bench_solve_impl.h"
#include "context_impl.h"
#include "multigrid_impl.h"
#include "simulation_impl.h"
#include "solving_impl.h"
#include "vector_impl.h"

enum { CYCLE_ROUNDS = 25, SOLVE_ROUNDS = 7, QUICK_ROUNDS = 2, WIDTH = 8 };

TRLI_STREAM_VARIANTS(TRLI_STREAM_COPY)

static const char deck_text[] =
    "trellis: 1\n"
    "grid: {cells: [%d, %d, %d], length: [%d, %d, %d]}\n"
    "solvers: {s: {method: cg, preconditioner: multigrid, cycle: v, tolerance: 1e-8}}\n" TRLI_BENCH_POISSON_TEXT;

/* A box of so many cubes along each axis, cells of which are cubes. */
static trl_err open_box(const trli_bench *bench, int cells, const int cubes[3], int threads, trli_case *c)
{
    char text[1024];
    trl_err err = TRL_OK;
    snprintf(text, sizeof text, deck_text, cells * cubes[0], cells * cubes[1], cells * cubes[2], cubes[0], cubes[1],
             cubes[2]);
    TRL_TRY(trl_context_set_threads(bench->ctx, threads));
    TRL_TRY(trli_case_create(bench->ctx, text, TRLI_ON_CORES, c));
    err = trli_bench_clear(c);
done:
    return err;
}

/* ---- a cycle ---- */

static trl_err run_cycle(void *data)
{
    trli_solver *s = data;
    return trli_multigrid_cycle(s->multigrid, s->r.now);
}

/* As many bytes as this rank's part of a cycle reads and writes, half of them read, and by as many threads. */
typedef struct copying {
    trl_context *ctx;
    int threads, passes;
    ptrdiff_t n;
    double *from, *to;
} copying;

static trl_err open_copying(trl_context *ctx, double bytes, int threads, copying *c)
{
    const double most = 256 << 20; /* of an array: no cache holds it */
    trl_err err = TRL_OK;
    *c = (copying){.ctx = ctx, .threads = threads, .passes = (int)(bytes / 2 / most) + 1};
    c->n = (ptrdiff_t)(bytes / 2 / sizeof(double) / c->passes / WIDTH) * WIDTH;
    TRL_TRY(trli_bench_alloc(ctx, (size_t)c->n, &c->from));
    TRL_TRY(trli_bench_alloc(ctx, (size_t)c->n, &c->to));
    for (ptrdiff_t i = 0; i < c->n; ++i) c->from[i] = 1.0 + (double)i;
done:
    return err;
}

static void copy_part(trli_team *team, int member, void *data)
{
    const copying *c = data;
    ptrdiff_t begin, end;
    trli_team_share(team, member, c->n / WIDTH, &begin, &end);
    begin *= WIDTH;
    end *= WIDTH;
    for (int pass = 0; pass < c->passes; ++pass) TRLI_STREAM_CALL(copy, &c->to[begin], &c->from[begin], end - begin);
}

/* All ranks at once. */
static trl_err run_copy(void *data)
{
    copying *c = data;
    return trl_context_agree(c->ctx, trli_team_run(c->ctx, c->threads, copy_part, c));
}

static trl_err check_copy(void *data)
{
    const copying *c = data;
    if (c->n > 0 && c->to[c->n - 1] != c->from[c->n - 1])
        return trl_fail(c->ctx, TRL_ERR_BUG, NULL, "the copy that a cycle is measured against copies wrong numbers");
    return TRL_OK;
}

static void report_cycle(const trli_bench *bench, int cells, int threads, trli_contender *contender, int rounds,
                         double bytes)
{
    const trli_spread ratio = trli_ratio(&contender[1], &contender[0], rounds);
    const trli_spread t = trli_spread_of(contender[0].seconds, rounds),
                      copy = trli_spread_of(contender[1].seconds, rounds);
    printf("%d^3 cells, %d x %d: %.2f ms (%.2f to %.2f), %.0f bytes a point: %.2f (%.2f to %.2f) times their copy, at "
           "%.1f GB/s\n",
           cells, trl_context_ranks(bench->ctx), threads, 1e3 * t.median, 1e3 * t.min, 1e3 * t.max,
           bytes / ((double)cells * cells * cells), ratio.median, ratio.min, ratio.max, 1e-9 * bytes / copy.median);
    trli_bench_begin_row(bench, "V cycle", cells, threads);
    trli_json_key(bench->json, "bytes");
    trli_json_number(bench->json, bytes);
    trli_spread_report(bench->json, "seconds", &t);
    trli_spread_report(bench->json, "copy_seconds", &copy);
    trli_spread_report(bench->json, "of_copy", &ratio);
    trli_json_end_object(bench->json);
}

trl_err trli_bench_solve_cycle(trli_solve_study *study, int cells, int threads)
{
    trli_bench *bench = study->bench;
    const int rounds = bench->quick ? QUICK_ROUNDS : CYCLE_ROUNDS, cube[3] = {1, 1, 1};
    copying copy = {0};
    trli_case c = {0};
    double bytes, norm;
    trl_err err = TRL_OK;
    TRL_TRY(open_box(bench, cells, cube, threads, &c));
    trli_solver *s = trli_bench_solver_of(&c);
    trli_contender contender[] = {{.name = "V cycle", .run = run_cycle, .data = s},
                                  {.name = "copy", .run = run_copy, .check = check_copy, .data = &copy}};
    bytes = trli_multigrid_cycle_bytes(s->multigrid);
    TRL_TRY(trl_context_agree(bench->ctx, open_copying(bench->ctx, bytes, threads, &copy)));
    TRL_TRY(trli_allreduce(bench->ctx, &bytes, 1, MPI_DOUBLE, MPI_SUM));
    TRL_TRY(trli_solver_residual(s, &norm)); /* what the cycle is for */
    TRL_TRY(trli_rounds_run(contender, 2, rounds));
    report_cycle(bench, cells, threads, contender, rounds, bytes);
done:
    free(copy.from);
    free(copy.to);
    trli_case_destroy(&c);
    return err;
}

/* ---- weak scaling ---- */

static trl_err solve(void *data)
{
    return trli_solve_initial(((trli_case *)data)->sim, false);
}

static trl_err clear(void *data)
{
    return trli_bench_clear(data);
}

trl_err trli_bench_solve_weak(trli_solve_study *study, int cells, int threads)
{
    trli_bench *bench = study->bench;
    const int rounds = bench->quick ? QUICK_ROUNDS : SOLVE_ROUNDS, workers = trl_context_ranks(bench->ctx) * threads;
    trli_case c = {0};
    trli_contender contender = {.name = "cg with multigrid", .run = solve, .after = clear, .data = &c};
    int cubes[3] = {0};
    trl_err err = TRL_OK;
    MPI_Dims_create(workers, 3, cubes);
    const int along[3] = {cubes[2], cubes[1], cubes[0]}; /* the most cubes along z */
    TRL_TRY(open_box(bench, cells, along, threads, &c));
    TRL_TRY(trli_rounds_run(&contender, 1, rounds));
    const trli_spread t = trli_spread_of(contender.seconds, rounds);
    const int iterations = trl_simulation_solver(c.sim, 0)->last_iterations;
    if (workers == 1 && study->one_rank == 0) study->one_rank = t.median;
    printf("%d cubes of %d^3 cells, %d x %d: %.1f ms (%.1f to %.1f), %d iterations", workers, cells,
           trl_context_ranks(bench->ctx), threads, 1e3 * t.median, 1e3 * t.min, 1e3 * t.max, iterations);
    if (study->one_rank > 0) printf(", %.2f of one thread's speed for each", study->one_rank / t.median);
    printf("\n");
    trli_bench_begin_row(bench, "cg with multigrid", cells, threads);
    trli_json_key(bench->json, "iterations");
    trli_json_integer(bench->json, iterations);
    trli_spread_report(bench->json, "seconds", &t);
    trli_json_end_object(bench->json);
done:
    trli_case_destroy(&c);
    return err;
}
