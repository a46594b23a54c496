/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The basis that gmres makes by classical Gram-Schmidt with one message. */
#include <math.h>
#include <string.h>

#include "frame_impl.h"
#include "run_fixture.h"
#include "simulation_impl.h"

#ifdef TRL_SMALL_SIZES /* sanitizers are slow */
enum { CELLS = 24, EACH = 3 };
#else
enum { CELLS = 24, EACH = 1 };
#endif

/* Leave the basis of the last restart in place. */
static int solve(const char *left, int cells, const char *solver)
{
    open_text("grid: {cells: [%d, %d]}\nequations:\n  p: {initial: 0, solve: \"%s = 1 + 5*sin(13*x*y)\", solver: s, "
              "boundary: {x-: {dirichlet: 0}, x+: {dirichlet: 0}, y-: {dirichlet: 0}, y+: {neumann: 0}}}\n"
              "solvers: {s: {method: gmres, iterations: 4000, %s}}\nrun: {compile: never}\n",
              cells, cells, left, solver);
    return (int)trl_simulation_solver(sim, 0)->last_iterations;
}

static const trl_array *vector_of_basis(int k)
{
    static trl_array array[2];
    static int other;
    char name[40];
    snprintf(name, sizeof name, "p:basis%d", k);
    for (int f = 0; f < sim->model->nfields; ++f)
        if (strcmp(sim->model->field[f].name, name) == 0) {
            array[other = !other] = trli_frame_array(sim->frame, f, 0, 0);
            return &array[other];
        }
    ck_abort_msg("no field '%s'", name);
}

static double product(const trl_array *a, const trl_array *b, int cells)
{
    double sum = 0;
    for (int j = 0; j < cells; ++j)
        for (int i = 0; i < cells; ++i)
            sum += ((const double *)a->at)[trl_array_offset(a, i, j, 0)] *
                   ((const double *)b->at)[trl_array_offset(b, i, j, 0)];
    return sum;
}

/* What products of vectors are beyond 0 and 1: of the first ones up to `last`, and of those behind them up to `end`,
 * which are of the restart before. */
static double loss_of(int last, int end, int cells)
{
    double most = 0;
    for (int i = 0; i <= end; ++i)
        for (int k = i > last ? last + 1 : 0; k <= i; ++k) {
            const trl_array *a = vector_of_basis(i), *b = vector_of_basis(k);
            most = fmax(most, fabs(product(a, b, cells) - (i == k)));
        }
    return most;
}

/* A residual that is foreseen from the small problem is as exact as the basis is orthogonal. */
START_TEST(vectors_of_the_basis_are_orthogonal)
{
    static const char wind[] = "laplacian(p) - 20*cddx(p) - 10*cddy(p)", carried[] = "laplacian(p) - 3000*cddx(p)",
                      jumps[] = "div(exp(6*sin(9*x*y))*grad(p))";
    static const struct {
        const char *left, *solver;
    } cases[] = {{"laplacian(p)", "restart: 100, tolerance: 1e-12, preconditioner: none"},
                 {jumps, "restart: 100, tolerance: 1e-9, preconditioner: jacobi"},
                 {"div(exp(3*sin(9*x*y))*grad(p))", "restart: 100, tolerance: 1e-9, preconditioner: none"},
                 {wind, "restart: 100, tolerance: 1e-12, preconditioner: jacobi"},
                 {carried, "restart: 60, tolerance: 1e-10, preconditioner: none"},
                 {"laplacian(p)", "restart: 30, tolerance: 1e-13, preconditioner: multigrid"},
                 {wind, "restart: 30, tolerance: 1e-13, preconditioner: multigrid"}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c += EACH) {
        const int restart = atoi(cases[c].solver + strlen("restart: "));
        const int n = solve(cases[c].left, CELLS, cases[c].solver);
        const double loss = loss_of(n % restart, n < restart ? n : restart, CELLS);
        ck_assert_msg(loss < 1e-11, "%s, %s: %g after %d iterations", cases[c].left, cases[c].solver, loss, n);
        close_problem();
    }
}
END_TEST

/* Two cells an axis have four vectors, the last one of rounding errors before its second projection. */
START_TEST(a_small_basis_is_exhausted)
{
    for (int cells = 2; cells <= 4; ++cells) {
        const int n = solve("laplacian(p) - 20*cddx(p)", cells, "tolerance: 1e-13, preconditioner: none");
        ck_assert_int_le(n, cells * cells);
        ck_assert(trl_simulation_solver(sim, 0)->last_residual < 1e-13 * trl_simulation_solver(sim, 0)->last_reference);
        ck_assert_double_lt(loss_of(n - 1, n - 1, cells), 1e-11);
        close_problem();
    }
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, vectors_of_the_basis_are_orthogonal);
    tcase_add_test(tc, a_small_basis_is_exhausted);
}

TRL_TEST_MAIN("gmres", add_tests)
