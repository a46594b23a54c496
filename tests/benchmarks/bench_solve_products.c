/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Products with the Jacobian, of which Newton-Krylov and implicit steps are made, beside an explicit step of the same
 * terms, which is one right-hand side, and beside the residual with its norm. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench_solve_impl.h"
#include "execution_impl.h"
#include "simulation_impl.h"
#include "solve_look_impl.h"
#include "solving_impl.h"

enum { ROUNDS = 41, QUICK_ROUNDS = 2, DECK_ROOM = 2048 };

#define SIDES                                                                                                     \
    "boundary: {x-: {dirichlet: 0}, x+: {dirichlet: 0}, y-: {dirichlet: 0}, y+: {dirichlet: 0}, z-: {dirichlet: " \
    "0}, z+: {dirichlet: 0}}"
#define FLAT                                                                                                \
    "boundary: {x-: {neumann: 0}, x+: {neumann: 0}, y-: {neumann: 0}, y+: {neumann: 0}, z-: {neumann: 0}, " \
    "z+: {neumann: 0}}"
#define WAVES "sin(3*x)*cos(2*y + z)"
#define GRID "trellis: 1\ngrid: {cells: [%d, %d, %d]}\nrun: {compile: always, time_blocking: 1}\n"
#define EXPLICIT "time: {method: euler, dt: 1e-9, steps: 1000000}\n"
#define IMPLICIT "time: {method: beuler, dt: 1e-5, steps: 1000000}\nsolvers: {s: {tolerance: 1e-2}}\n"

#define RATE_U "1 + u^2*v - 4.4*u + 0.02*laplacian(u)"
#define RATE_V "3.4*u - u^2*v + 0.02*laplacian(v)"

/* Terms, solved for and as a right-hand side. */
static const struct {
    const char *name, *solved, *rate;
} asked[] = {
    {"Newton, laplacian(u) + exp(u) = f",
     "equations:\n  u: {initial: '0.1*" WAVES "', solve: 'laplacian(u) + exp(u) = 7', solver: s, " SIDES "}\n"
     "solvers: {s: {method: cg, preconditioner: multigrid, newton: {tolerance: 0.1}}}\n",
     "equations:\n  u: {initial: '" WAVES "', ddt: 'laplacian(u) + exp(u)', " SIDES "}\n" EXPLICIT},
    {"Newton, div((1 + u^2)*grad(u))",
     "equations:\n  u: {initial: '" WAVES "', ddt: {implicit: 'div((1 + u^2)*grad(u))'}, solver: s, " SIDES
     "}\n" IMPLICIT,
     "equations:\n  u: {initial: '" WAVES "', ddt: 'div((1 + u^2)*grad(u))', " SIDES "}\n" EXPLICIT},
    {"IMEX, 0.1*laplacian(u) beside a wind",
     "equations:\n  u: {initial: '" WAVES
     "', ddt: {explicit: '-div(advective_flux(u, [1, 0.5, 0.2], upwind))', implicit: "
     "'0.1*laplacian(u)'}, solver: s, " SIDES "}\n" IMPLICIT,
     "equations:\n  u: {initial: '" WAVES "', ddt: '0.1*laplacian(u)', " SIDES "}\n" EXPLICIT},
    {"Brusselator, two unknowns",
     "equations:\n  u: {initial: '1 + " WAVES "', ddt: {implicit: '" RATE_U "'}, solver: s, " FLAT "}\n"
     "  v: {initial: '3 + " WAVES "', ddt: {implicit: '" RATE_V "'}, solver: s, " FLAT "}\n" IMPLICIT,
     "equations:\n  u: {initial: '1 + " WAVES "', ddt: '" RATE_U "', " FLAT "}\n"
     "  v: {initial: '3 + " WAVES "', ddt: '" RATE_V "', " FLAT "}\n" EXPLICIT},
};

enum { RATE, PRODUCT, RESIDUAL, WAYS };

static trl_err step(void *data)
{
    return trl_simulation_step(((trli_case *)data)->sim);
}

static trl_err multiply(void *data)
{
    trli_solver *s = data;
    return trli_solver_program(s, s->apply);
}

static trl_err find_residual(void *data)
{
    double norm;
    return trli_solver_residual(data, &norm);
}

static trl_err open_case(const trli_bench *bench, int cells, const char *terms, trli_case *c)
{
    char text[DECK_ROOM];
    const int length = snprintf(text, sizeof text, GRID, cells, cells, cells);
    snprintf(text + length, sizeof text - (size_t)length, "%s", terms);
    return trli_case_create(bench->ctx, text, TRLI_ON_CORES, c);
}

static void report(const trli_bench *bench, const char *name, int cells, int threads, trli_contender *contender,
                   int rounds, const double bytes[WAYS])
{
    static const char *const key[WAYS] = {"right_side", "product", "residual"};
    double least[WAYS];
    const trli_spread ratio = trli_ratio(&contender[RATE], &contender[PRODUCT], rounds);
    trli_bench_begin_row(bench, name, cells, threads);
    trli_spread_report(bench->json, "product_of_right_side", &ratio);
    printf("%-38s %d x %d", name, trl_context_ranks(bench->ctx), threads);
    for (int i = 0; i < WAYS; ++i) {
        const trli_spread t = trli_spread_of(contender[i].seconds, rounds);
        least[i] = t.min;
        printf(" %8.2f %7.2f %4.0f", 1e3 * t.median, 1e3 * t.min, bytes[i]);
        trli_spread_report(bench->json, key[i], &t);
    }
    printf("  %.2f (%.2f to %.2f); of the least times %.2f\n", ratio.median, ratio.min, ratio.max,
           least[PRODUCT] / least[RATE]);
    trli_json_end_object(bench->json);
}

static trl_err measure(trli_bench *bench, int which, int cells, int threads)
{
    const int rounds = bench->quick ? QUICK_ROUNDS : ROUNDS;
    trli_case solved = {0}, rate = {0};
    trl_err err = TRL_OK;
    TRL_TRY(open_case(bench, cells, asked[which].solved, &solved));
    TRL_TRY(open_case(bench, cells, asked[which].rate, &rate));
    if (!solved.sim->solving) TRL_TRY(trl_simulation_step(solved.sim)); /* of the step's dt, and times */
    trli_solver *s = trli_bench_solver_of(&solved);
    TRL_TRY(trli_solver_try(s, -1, 0)); /* a random direction */
    trli_contender contender[WAYS] = {[RATE] = {.name = "right-hand side", .run = step, .data = &rate},
                                      [PRODUCT] = {.name = "product", .run = multiply, .data = s},
                                      [RESIDUAL] = {.name = "residual", .run = find_residual, .data = s}};
    TRL_TRY(trli_rounds_run(contender, WAYS, rounds));
    double size;
    TRL_TRY(trli_solver_residual(s, &size));
    if (!(size > 0 && isfinite(size)))
        TRL_TRY(trl_fail(bench->ctx, TRL_ERR_BUG, NULL, "'%s' has a residual of %g", asked[which].name, size));
    const double points = (double)s->sim->layout->patch[0].cells[0] * s->sim->layout->patch[0].cells[1] *
                          s->sim->layout->patch[0].cells[2] * s->sim->layout->nlocal;
    const double bytes[WAYS] = {(double)rate.sim->step->run->bytes_moved / points,
                                (double)s->apply->run->bytes_moved / points,
                                (double)s->residual.program->run->bytes_moved / points};
    report(bench, asked[which].name, cells, threads, contender, rounds, bytes);
done:
    trli_case_destroy(&solved);
    trli_case_destroy(&rate);
    return err;
}

trl_err trli_bench_solve_products(trli_solve_study *study, int cells, int threads)
{
    trl_err err = TRL_OK;
    TRL_TRY(trl_context_set_threads(study->bench->ctx, threads));
    printf(
        "%d^3 cells: ms, the least, and bytes of kernels a point, of a right-hand side, a product and a residual; the "
        "product's time over that of the right-hand side\n",
        cells);
    for (size_t i = 0; i < sizeof asked / sizeof *asked; ++i) TRL_TRY(measure(study->bench, (int)i, cells, threads));
done:
    return err;
}
