/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* What boundary conditions cost: a step with a condition on each side beside the same step whose ghosts nobody sets. */
#include <stdio.h>
#include <stdlib.h>

#include "bench_dag_impl.h"
#include "bench_kernels_impl.h"
#include "model_run_impl.h"

/* A difference of some percent shows in many short rounds, not in a few long ones: single ones spread by tens of
 * percent. Steps are even: each round then begins with the same one of the two levels of fields. */
enum { ROUNDS = 601, QUICK_ROUNDS = 2, STEPS = 4, STEPS_OF_MANY = 2, GATES = 8 };

#define VALUE(number)                   \
    {                                   \
        .count = 1, .text = &(trl_text) \
        {                               \
            .chars = number             \
        }                               \
    }
#define SIDE(...)                              \
    {                                          \
        .npieces = 1, .piece = &(trl_bc_piece) \
        {                                      \
            __VA_ARGS__                        \
        }                                      \
    }

static const trl_bc_side sides[6] = {
    SIDE(.kind = TRL_BC_DIRICHLET, .value = VALUE("1")),
    SIDE(.kind = TRL_BC_NEUMANN, .value = VALUE("0.1*t")),
    SIDE(.kind = TRL_BC_DIRICHLET, .value = VALUE("0.5 + 0.1*x")),
    SIDE(.kind = TRL_BC_NEUMANN, .value = VALUE("0")),
    SIDE(.kind = TRL_BC_ROBIN, .value = VALUE("1"), .b = VALUE("2"), .c = VALUE("3")),
    SIDE(.kind = TRL_BC_OUTFLOW),
};

#define WITH(name_, unknowns_, coefficients_, formula_)                                                                \
    {                                                                                                                  \
        .name = name_, .dim = 3, .unknowns = unknowns_, .coefficients = coefficients_, .formula = {formula_},          \
        .coefficient = {"u", "v", "w"}, .at = {TRL_XFACE, TRL_YFACE, TRL_ZFACE}, .length = {1.1, 1.2, 1.3}, .dt = 0.1, \
        .lo = 0.5, .hi = 1.5, .boundary = sides                                                                        \
    }

static const trli_kernel_case cases[] = {
    WITH("heat", 1, 0, "div(0.01*grad(f1))"),
    WITH("transport, n = 16", 16, 3, "-div(advective_flux(f#, [u, v, w])) + div(0.01*grad(f#))"),
};

typedef struct duel {
    trli_kernel_size size;
    trli_formulas formulas;
    trli_contender contender[2];
} duel;

static void report(const trli_bench *bench, const duel *d, int rounds, trli_gate *gate, char *what, size_t room)
{
    const trli_kernel_size *size = &d->size;
    const trli_spread speed = trli_ratio(&d->contender[0], &d->contender[1], rounds);
    const double cells = (double)size->grid.cells[0] * (double)size->grid.cells[1] * (double)size->grid.cells[2];
    const double updates = cells * size->what->unknowns * size->steps;
    const double share = 100 * (1 - speed.median);
    snprintf(what, room, "%s, %d^3, %d thread%s: conditions, %% of a step", size->what->name, (int)size->grid.cells[0],
             size->threads, size->threads > 1 ? "s" : "");
    printf("%-20s %4d^3 %2d thread%s %8.0f %8.0f %7.1f (%.1f to %.1f)\n", size->what->name, (int)size->grid.cells[0],
           size->threads, size->threads > 1 ? "s" : " ", 1e-6 * trli_rate(&d->contender[0], rounds, updates).median,
           1e-6 * trli_rate(&d->contender[1], rounds, updates).median, share, 100 * (1 - speed.max),
           100 * (1 - speed.min));
    trli_json_begin_object(bench->json);
    trli_json_key(bench->json, "case");
    trli_json_string(bench->json, size->what->name);
    trli_json_key(bench->json, "cells");
    trli_json_integer(bench->json, size->grid.cells[0]);
    trli_json_key(bench->json, "threads");
    trli_json_integer(bench->json, size->threads);
    trli_spread_report(bench->json, "speed_of_stale", &speed);
    trli_json_end_object(bench->json);
    *gate = (trli_gate){what, share, 3, false};
}

/* Numbers that are not finite would be looked for again. */
static trl_err check(void *data)
{
#ifdef TRL_POISON /* builds for testing: ghosts that nobody sets are NaN */
    (void)data;
    return TRL_OK;
#else
    const trli_formulas *f = data;
    for (int w = 0; w < f->model->run->nworkers; ++w)
        if (f->frame->nonfinite[w].found)
            return trl_fail(f->ctx, TRL_ERR_BUG, NULL, "%s: the number %g was timed", f->size->what->name,
                            f->frame->nonfinite[w].value);
    return TRL_OK;
#endif
}

static trl_err play(trli_bench *bench, const trli_kernel_case *what, int cells, int threads, trli_gate *gate,
                    char *text, size_t room)
{
    const int rounds = bench->quick ? QUICK_ROUNDS : ROUNDS;
    duel *d = calloc(1, sizeof *d);
    trl_err err = TRL_OK;
    if (!d) return trl_fail(bench->ctx, TRL_ERR_MEMORY, NULL, "no memory for a benchmark");
    TRL_TRY(trl_context_set_threads(bench->ctx, threads));
    trli_kernel_size_set(what, cells, &d->size);
    d->size.threads = threads;
    d->size.steps = what->unknowns > 1 ? STEPS_OF_MANY : STEPS;
    TRL_TRY(trli_formulas_create(bench->ctx, &d->size, &d->formulas));
    d->contender[0] =
        (trli_contender){.name = "conditions", .run = trli_formulas_run, .check = check, .data = &d->formulas};
    d->contender[1] = (trli_contender){.name = "stale", .run = trli_formulas_run_stale, .data = &d->formulas};
    TRL_TRY(trli_rounds_run(d->contender, 2, rounds));
    report(bench, d, rounds, gate, text, room);
done:
    trli_formulas_destroy(&d->formulas);
    free(d);
    return err;
}

trl_err trli_bench_boundary(trli_bench *bench)
{
    const int cells = bench->quick ? 16 : 128, all = bench->threads;
    trli_gate gate[GATES];
    char what[GATES][128];
    int n = 0;
    trl_err err = TRL_OK;
    printf("%-36s %17s   conditions\n%-36s %8s %8s %% of a step\n", "", "million updates/s", "", "with", "without");
    trli_json_key(bench->json, "results");
    trli_json_begin_array(bench->json);
    for (size_t c = 0; c < sizeof cases / sizeof *cases; ++c)
        for (int threads = 1; threads <= all; threads = threads < all ? all : all + 1, ++n)
            TRL_TRY(play(bench, &cases[c], cells, threads, &gate[n], what[n], sizeof what[0]));
    trli_json_end_array(bench->json);
    trli_gates_report(bench, gate, n);
done:
    return err;
}
