/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The sums of derivatives that bound dt, against differences: each point of each unknown is moved, the right-hand sides
 * are computed anew, and the largest sum of a row is what the Jacobian says. Every operator, every location, random
 * right-hand sides. */
// ctest: sanitize=none timeout=300
#include "../expressions/problem_fixture.h"
#include "model_run_impl.h"

#include <limit_impl.h>

enum {
    FIELDS = 4,
    NX = 12,
    NY = 11,
    POINTS = NX * NY,
#ifdef TRL_SMALL_SIZES
    RANDOM = 3,
    EVERY = 5 /* sanitizers are slow */
#else
    RANDOM = 60,
    EVERY = 1
#endif
};
static const char *const names[FIELDS] = {"a", "b", "c", "d"};
static const char *const places[FIELDS] = {"cell", "xface", "yface", "node"};

static unsigned long state = 7;

static int draw(int n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int)((state >> 33) % (unsigned long)n);
}

static double *at(int field, int point)
{
    trl_array array = trli_frame_array(sim->frame, field, 0, 0);
    return (double *)array.at + trl_array_offset(&array, point % NX, point / NX, 0);
}

/* The right-hand sides at all points. */
static void evaluate(double *rates)
{
    ck_ok(trli_program_run_agreed(sim, sim->step));
    for (int v = 0; v < FIELDS; ++v)
        for (int p = 0; p < POINTS; ++p)
            rates[v * POINTS + p] = (*at(sim->equation[v].next, p) - *at(sim->equation[v].state, p)) / sim->dt;
}

/* The largest sum over a row of each block of the Jacobian, from differences. */
static void difference(double largest[FIELDS][FIELDS])
{
    static double up[FIELDS * POINTS], down[FIELDS * POINTS], sum[FIELDS][FIELDS][POINTS];
    const double eps = 1e-5;
    memset(sum, 0, sizeof sum);
    memset(largest, 0, sizeof(double[FIELDS][FIELDS]));
    for (int j = 0; j < FIELDS; ++j)
        for (int q = 0; q < POINTS; ++q) {
            double *value = at(sim->equation[j].state, q), before = *value;
            *value = before + eps;
            evaluate(up);
            *value = before - eps;
            evaluate(down);
            *value = before;
            for (int i = 0; i < FIELDS; ++i)
                for (int p = 0; p < POINTS; ++p)
                    sum[i][j][p] += fabs(up[i * POINTS + p] - down[i * POINTS + p]) / (2 * eps);
        }
    for (int i = 0; i < FIELDS; ++i)
        for (int j = 0; j < FIELDS; ++j)
            for (int p = 0; p < POINTS; ++p) largest[i][j] = fmax(largest[i][j], sum[i][j][p]);
}

static double said(int i, int j)
{
    const trli_jacobian *jacobian = sim->bound->jacobian;
    for (int k = jacobian->first[i]; k < jacobian->first[i + 1]; ++k)
        if (jacobian->block[k].column == j)
            return trli_quantity_value(sim, &jacobian->block[k].part[TRLI_COUPLING_SIZE]);
    return 0;
}

static void open_system(const char *const ddt[FIELDS])
{
    new_deck();
    say("grid: {cells: [%d, %d], length: [6, 4], periodic: [true, true], patches: [1, 1]}\n", NX, NY);
    say("stencils: {wide: {to: cell, points: [[[-2, 1], 0.5], [[1, 0], -0.75], [[0, 0], 2]]}}\n");
    say("equations:\n");
    for (int v = 0; v < FIELDS; ++v)
        say("  %s: {location: %s, initial: \"0.8 + 0.3*sin(2*pi*x/6 + %d) + 0.2*cos(2*pi*y/4 - %d)\", ddt: \"%s\"}\n",
            names[v], places[v], v, v, ddt[v]);
    say("time: {method: euler, dt: 0.5, steps: 1}\n");
    ck_ok(open_problem());
    ck_ok(trl_simulation_initialise(sim));
    ck_assert(!sim->bound->jacobian->by_sums);
}

/* exact: no limiter and no reduction, whose derivatives are only bounded. */
static void check_system(const char *const ddt[FIELDS], bool exact)
{
    static double largest[FIELDS][FIELDS];
    open_system(ddt);
    difference(largest);
    for (int i = 0; i < FIELDS; ++i)
        for (int j = 0; j < FIELDS; ++j) {
            const double mine = said(i, j), close = 2e-5 * (1 + largest[i][j]);
            const bool right = mine >= largest[i][j] - close && (!exact || mine <= largest[i][j] + close);
            ck_assert_msg(right, "d(%s)/d%s: %.9g, by differences %.9g", ddt[i], names[j], mine, largest[i][j]);
        }
    trl_context_clear_diagnostics(test_ctx);
}

/* One right-hand side in the equation at a location, the others zero. */
static void check_one(const char *text, int location, bool exact)
{
    const char *ddt[FIELDS] = {"0", "0", "0", "0"};
    ddt[location] = text;
    check_system(ddt, exact);
}

START_TEST(every_operator_has_the_sums_that_differences_give)
{
    static const struct {
        const char *text;
        int location;
    } cases[] = {{"laplacian(1*a)", 0},
                 {"-a*laplacian(1*a)", 0},
                 {"laplacian(laplacian(a))", 0},
                 {"laplacian(1*b)", 1},
                 {"d2dx(1*a)", 0},
                 {"d2dy(1*c)", 2},
                 {"cddx(a*a)", 0},
                 {"cddy(d)", 3},
                 {"cmeanx(a)", 0},
                 {"cmeany(b^2)", 1},
                 {"div(a*grad(1*a))", 0},
                 {"div(grad(1*a)/a)", 0},
                 {"div4(grad4(1*a))", 0},
                 {"div([b, c])", 0},
                 {"ddx(a)", 1},
                 {"ddy(a)", 2},
                 {"ddx(c)", 3},
                 {"ddy(b)", 3},
                 {"ddx(at(a, xface))", 0},
                 {"at(b, cell)", 0},
                 {"at(d, cell)", 0},
                 {"at(a, node)", 3},
                 {"at(c, xface)", 1},
                 {"at4(a, xface)", 1},
                 {"harmonic(a, yface)", 2},
                 {"box_filter(a, 3)", 0},
                 {"box_filter(a, 5) - a", 0},
                 {"tophat_filter(a, 2)", 0},
                 {"wide(sin(a))", 0},
                 {"extrapolate(a, x-)", 1},
                 {"extrapolate(a, y+)", 2},
                 {"curl([b, c])", 3},
                 {"strain([b, c])", 0},
                 {"div([a, d]*strain([b, c], x))", 1},
                 {"mag([at(b, cell), at(c, cell)])", 0},
                 {"dot([at(b, cell), at(c, cell)], at(grad(a), cell))", 0},
                 {"-div(advective_flux(1*a, [b, c]))", 0},
                 {"-div(advective_flux(a*a, [b, c], upwind))", 0},
                 {"-div(advective_flux(1*a, [1 + a, a]))", 0},
                 {"at(ddx(a), cell)*at(d, cell)", 0},
                 {"left(a).x", 1},
                 {"right(a).y", 2},
                 {"old(a)*a", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i += EVERY) check_one(cases[i].text, cases[i].location, true);
}
END_TEST

START_TEST(limiters_and_reductions_are_not_underestimated)
{
    static const char *const limiters[] = {"minmod", "vanleer", "superbee", "mc", "koren", "charm", "ospre", "smart"};
    char text[128];
    for (size_t l = 0; l < sizeof limiters / sizeof *limiters; l += EVERY) {
        snprintf(text, sizeof text, "-div(advective_flux(a + 0.4*x*(6-x), [b, -c], %s))", limiters[l]);
        check_one(text, 0, false);
    }
    check_one("a*integral(a*a)", 0, false);
    check_one("integral(a) - a", 0, false);
    check_one("-norm(b)*at(b, cell)", 0, false);
    check_one("domain_max(a*(1 + 0.01*x + 0.013*y))*a", 0, false); /* no two points attain it */
    check_one("probe(a, [1.3, 2.1])*a", 0, false);
}
END_TEST

/* The transport of its own unknown is the rule's: a coefficient of another unknown still couples. */
START_TEST(what_the_rule_knows_is_left_out)
{
    const char *ddt[FIELDS] = {"0.3*laplacian(a) - div(advective_flux(a, [b, c])) - 2*a", "0", "0", "0"};
    open_system(ddt);
    ck_assert_double_eq_tol(said(0, 0), 2, 1e-12);
    ck_assert_double_gt(said(0, 1), 0.1);
    ck_assert_double_gt(trli_quantity_value(sim, &sim->bound->known[0]), 1);
    trl_context_clear_diagnostics(test_ctx);
}
END_TEST

/* ---- random right-hand sides ---- */

static void grow(char *text, size_t size, int depth, int location)
{
    static const char *const binary[] = {"(%s + %s)",        "(%s - 0.5*%s)",     "%s*%s",
                                         "%s/(2 + %s^2)",    "if(x < 2, %s, %s)", "atan2(%s, 3 + %s)",
                                         "hypot(%s, 1 + %s)"};
    static const char *const unary[] = {"sin(%s)",  "exp(-%s^2)", "sqrt(2 + %s^2)",    "tanh(%s)",
                                        "(%s)^3",   "-%s",        "box_filter(%s, 3)", "laplacian(%s)",
                                        "d2dx(%s)", "cddy(%s)",   "cmeanx(%s)",        "d2dy(%s)"};
    char one[2048], two[2048];
    if (depth == 0) {
        int f = draw(FIELDS);
        if (f == location)
            snprintf(text, size, "(1*%s)", names[f]);
        else
            snprintf(text, size, "at(%s, %s)", names[f], places[location]);
        return;
    }
    grow(one, sizeof one, depth - 1, location);
    switch (draw(3)) {
    case 0:
        grow(two, sizeof two, draw(depth), location);
        snprintf(text, size, binary[draw(sizeof binary / sizeof *binary)], one, two);
        return;
    case 1:
        snprintf(text, size, unary[draw(sizeof unary / sizeof *unary)], one);
        return;
    default: /* by way of another location: a step along an axis changes the bit of it */
        grow(one, sizeof one, depth - 1, location ^ 1);
        snprintf(text, size, draw(2) ? "ddx(%s)" : "at(%s, %s)", one, places[location]);
    }
}

START_TEST(random_right_hand_sides_have_the_sums_that_differences_give)
{
    for (int trial = 0; trial < RANDOM; ++trial) {
        char text[FIELDS][4096];
        const char *ddt[FIELDS];
        for (int v = 0; v < FIELDS; ++v) {
            grow(text[v], sizeof text[v], 1 + draw(3), v);
            ddt[v] = text[v];
        }
        check_system(ddt, true);
    }
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_unchecked_fixture(tc, NULL, close_problem);
    tcase_add_test(tc, every_operator_has_the_sums_that_differences_give);
    tcase_add_test(tc, limiters_and_reductions_are_not_underestimated);
    tcase_add_test(tc, what_the_rule_knows_is_left_out);
    tcase_add_test(tc, random_right_hand_sides_have_the_sums_that_differences_give);
}

TRL_TEST_MAIN("bound_rows", add_tests)
