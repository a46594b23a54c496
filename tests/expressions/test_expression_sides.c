/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Boundary conditions of named formulas. */
// ctest: np=1,4
#include "problem_fixture.h"

START_TEST(an_expression_may_have_conditions_of_its_own)
{
    trl_gidx n[3];
    for (int level = 0; level < 3; ++level) {
        static const char *const fusions[] = {"none", "node", "full"};
        new_deck();
        say("grid: {cells: [5]}\nexpressions:\n  p: {formula: \"T*T\", boundary: {x-: {dirichlet: 4}, x+: {neumann: "
            "\"T\"}}}\n  e: \"ddx(p)\"\n"
            "equations:\n  T: {initial: \"1 + x\", ddt: \"ddx(ddx(p))\"}\ntime: {dt: 0.01, steps: 2}\noutput: {fields: "
            "[p, e]}\nrun: {fusion: %s}\n",
            fusions[level]);
        ck_ok(open_problem());
        ck_ok(run_steps(2));
        const double *e = values_of("e", n), *p = values_of("p", n), *t = values_of("T", n);
        ck_assert(near(e[0], (p[0] - 4) / 0.1, 1e-13));
        ck_assert(near(e[5], t[4], 1e-13));
        ck_assert(near(e[2], (p[2] - p[1]) / 0.2, 1e-13));
    }
    close_problem();
}
END_TEST

/* Where a formula has points on a side its condition sets them, all or some, the last of x, y, z wins: what is given
 * there is a flux, and what goes in or out is what it says. */
START_TEST(an_expression_has_its_conditions_on_the_side)
{
    trl_gidx n[3];
    for (int level = 0; level < 3; ++level) {
        static const char *const fusions[] = {"none", "node", "full"};
        new_deck();
        say("grid: {cells: [6, 4]}\nexpressions:\n  q: {formula: \"-0.1*ddx(T)\", boundary: {x-: {dirichlet: \"3 + "
            "t\"}, x+: [{where: \"y > 0.6\", dirichlet: \"T\"}, {where: \"y > 0.3\", robin: {a: 2, b: 0, c: 1}}, "
            "{neumann: 0}]}}\n  w: {formula: \"at(T, node)\", boundary: {x-: {dirichlet: 7}, x+: {outflow: true}, y-: "
            "{dirichlet: 8}, y+: {expression: nine}}}\n  nine: 9\nequations:\n  T: {initial: \"2 + x*x + y\", ddt: "
            "\"-ddx(q)\", boundary: {x-: {neumann: 0}, x+: {neumann: 1}, y-: {neumann: 0}, y+: {neumann: 0}}}\ntime: "
            "{method: euler, dt: 0.01, steps: 2}\noutput: {fields: [q, w]}\nrun: {fusion: %s}\n",
            fusions[level]);
        ck_ok(open_problem());
        ck_ok(run_steps(2));
        const double *q = values_of("q", n), *t = values_of("T", n);
        ck_assert_int_eq(n[0], 6);
        for (int j = 0; j < 4; ++j) ck_assert(near(q[7 * j], 3.02, 1e-14));
        ck_assert(near(q[7 * 3 + 6], t[6 * 3 + 5], 1e-14));
        ck_assert(near(q[7 * 2 + 6], t[6 * 2 + 5], 1e-14)); /* y = 0.625 */
        ck_assert(near(q[7 * 1 + 6], 0.5, 1e-14));
        ck_assert(near(q[6], -0.1, 1e-12)); /* what the formula says */
        const double *w = values_of("w", n);
        for (int i = 0; i < 7; ++i) ck_assert(near(w[i], 8, 0) && near(w[7 * 4 + i], 9, 0));
        for (int j = 1; j < 4; ++j) ck_assert(near(w[7 * j], 7, 0) && !near(w[7 * j + 6], 7, 1e-3));
    }
    close_problem();
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, an_expression_may_have_conditions_of_its_own);
    tcase_add_test(tc, an_expression_has_its_conditions_on_the_side);
}

TRL_TEST_MAIN("sides of expressions", add_tests)
