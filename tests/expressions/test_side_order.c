/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Boundary values that read points which other conditions set: each is there before it is read, whatever the order of
 * the deck, and conditions that need one another are refused. */
// ctest: np=1,2 timeout=100 sanitize=1
#include "problem_fixture.h"

static const char *const fusion[] = {"none", "node", "full"};

/* Equations in both orders. */
static void say_both(bool swapped, const char *first, const char *second)
{
    say("equations:\n%s%s", swapped ? second : first, swapped ? first : second);
}

static void check_reads_another_side(const char *method, bool swapped, const char *level)
{
    trl_gidx n[3];
    new_deck();
    say("grid: {cells: [8]}\n");
    say_both(swapped,
             "  f: {location: xface, initial: x, ddt: \"0.1*laplacian(f)\", boundary: {x-: {dirichlet: \"0.3*b\"}, x+: "
             "{neumann: 0}}}\n",
             "  b: {location: xface, initial: \"1 + x\", ddt: 0, boundary: {x-: {dirichlet: \"1 + sin(1000*t)\"}, x+: "
             "{neumann: 0}}}\n");
    say("time: {method: %s, dt: 1e-3, steps: 3}\nrun: {fusion: %s}\n", method, level);
    ck_ok(open_problem());
    for (int step = 0; step <= 3; ++step) {
        ck_ok(step ? trl_simulation_step(sim) : trl_simulation_initialise(sim));
        const double b = 1 + sin(1000 * trl_simulation_time(sim));
        ck_assert(near(values_of("b", n)[0], b, 1e-14));
        ck_assert(near(values_of("f", n)[0], 0.3 * b, 1e-14));
        for (int i = 1; i <= 8; ++i) ck_assert(isfinite(values_of("f", n)[i]));
    }
}

START_TEST(a_value_on_a_side_follows_the_one_that_it_reads_in_any_order_of_equations)
{
    static const char *const method[] = {"euler", "ssprk2", "ssprk3", "rk4"};
    for (int m = 0; m < 4; ++m)
        for (int swapped = 0; swapped < 2; ++swapped)
            for (int level = 0; level < 3; ++level) check_reads_another_side(method[m], swapped, fusion[level]);
    close_problem();
}
END_TEST

/* f's side x- reads b at the corners, where b's sides y- and y+ set it; c reads f in turn. */
START_TEST(a_corner_that_another_axis_sets_is_there_too)
{
    trl_gidx n[3];
    for (int level = 0; level < 3; ++level) {
        new_deck();
        say("grid: {cells: [4, 4]}\n");
        say("equations:\n"
            "  c: {location: yface, initial: 0, ddt: 0, boundary: {x-: {neumann: 0}, x+: {neumann: 0}, y-: {dirichlet: "
            "\"integral(f)\"}, y+: {dirichlet: \"at(f, yface)\"}}}\n"
            "  f: {location: node, initial: 0, ddt: 0, boundary: {x-: {dirichlet: \"10*b\"}, x+: {neumann: 0}, y-: "
            "{neumann: 0}, y+: {neumann: 0}}}\n"
            "  b: {location: node, initial: 1, ddt: 0, boundary: {x-: {dirichlet: \"2 + t\"}, x+: {neumann: 0}, y-: "
            "{dirichlet: 3}, y+: {dirichlet: \"4 + x\"}}}\n"
            "time: {dt: 0.5, steps: 2, method: rk4}\nrun: {fusion: %s}\n",
            fusion[level]);
        ck_ok(open_problem());
        ck_ok(run_steps(2));
        const double *f = values_of("f", n), *c = values_of("c", n);
        for (int j = 0; j < 5; ++j) ck_assert(near(f[5 * j], j == 0 ? 30 : j == 4 ? 40 : 30, 1e-15));
        for (int i = 0; i < 4; ++i) {
            ck_assert(near(c[i], (15 + 30 + 30 + 30 + 20) / 32.0, 1e-14));
            ck_assert(near(c[16 + i], i == 0 ? 20 : 0, 1e-15));
        }
    }
    close_problem();
}
END_TEST

/* What is interpolated along a side is read on other patches, beyond periodic sides, and after these points are set. */
START_TEST(neighbours_along_a_side_are_those_of_other_patches)
{
    static const char *const patches[] = {"auto", "[1, 2]", "[2, 2]"};
    trl_gidx n[3];
    for (int p = 0; p < 3; ++p)
        for (int level = 0; level < 3; ++level) {
            new_deck();
            say("grid: {cells: [4, 6], periodic: [false, true], patches: %s}\n", patches[p]);
            say("equations:\n"
                "  f: {location: node, initial: 0, ddt: 0, boundary: {x-: {dirichlet: \"at(b, node)\"}, x+: {neumann: "
                "0}}}\n"
                "  b: {location: xface, initial: 7, ddt: 0, boundary: {x-: {dirichlet: \"(1 + t)*y^2\"}, x+: {neumann: "
                "0}}}\n"
                "time: {dt: 0.5, steps: 2, method: ssprk3}\nrun: {fusion: %s}\n",
                fusion[level]);
            ck_ok(open_problem());
            ck_ok(run_steps(2));
            const double *f = values_of("f", n);
            for (int j = 0; j < 6; ++j) {
                const double above = (j + 0.5) / 6, below = ((j + 5) % 6 + 0.5) / 6;
                ck_assert(near(f[5 * j], above * above + below * below, 1e-14));
            }
        }
    close_problem();
}
END_TEST

START_TEST(old_values_are_those_of_the_step_s_start_and_at_first_the_initial_ones)
{
    trl_gidx n[3];
    new_deck();
    say("grid: {cells: [4]}\nequations:\n"
        "  d: {location: xface, initial: \"3 + x\", ddt: 1, boundary: {x-: {dirichlet: \"old(d)\"}, x+: {dirichlet: "
        "\"2*old(c)\"}}}\n"
        "  c: {initial: \"1 + x\", ddt: 1, boundary: {x-: {dirichlet: \"0.5*c\"}, x+: {neumann: c}}}\n"
        "time: {dt: 0.5, steps: 2, method: rk4}\noutput: {fields: [d, g], every: {steps: 1}}\nexpressions: {g: "
        "\"ddx(c)\"}\n");
    ck_ok(open_problem());
    ck_ok(run_steps(0));
    for (int step = 0; step <= 2; ++step) {
        const double *d = values_of("d", n), *g = values_of("g", n), old = 1.875 + (step > 1 ? 0.5 : 0),
                     first = 1.125 + 0.5 * step, last = 1.875 + 0.5 * step;
        ck_assert(near(d[0], 3, 1e-15));
        ck_assert(near(d[4], 2 * old, 1e-14));
        ck_assert(near(g[0], 4 * (first - (2 * 0.5 * first - first)), 1e-13));
        ck_assert(near(g[4], last, 1e-13));
        if (step == 2) break;
        ck_ok(trl_simulation_step(sim));
        ck_ok(trl_simulation_observe(sim));
    }
    close_problem();
}
END_TEST

static void check_cycle(const char *equations, const char *message)
{
    new_deck();
    say("grid: {cells: [4, 4], periodic: [false, false]}\nequations:\n%stime: {dt: 0.5, steps: 1, method: rk4}\n",
        equations);
    ck_fails(open_problem(), TRL_ERR_INPUT, message);
    close_problem();
}

START_TEST(conditions_that_need_each_other_are_refused_with_the_whole_cycle)
{
    check_cycle("  d: {location: xface, initial: 0, ddt: 0, boundary: {x-: {dirichlet: \"0.3*d\"}}}\n",
                "boundary values need each other in a cycle: 'd' on x- -> 'd' on x-; old(...), the value at the start "
                "of the step, breaks it");
    check_cycle("  a: {location: xface, initial: 0, ddt: 0, boundary: {x+: {dirichlet: \"1 + b\"}}}\n"
                "  b: {location: xface, initial: 0, ddt: 0, boundary: {x+: {robin: {a: 2, b: 0, c: c}}}}\n"
                "  c: {location: xface, initial: 0, ddt: 0, boundary: {x+: [{where: \"y > 0.5\", dirichlet: a}, "
                "{neumann: 0}]}}\n",
                "boundary values need each other in a cycle: 'a' on x+ -> 'b' on x+ -> 'c' on x+ -> 'a' on x+;");
    check_cycle("  a: {location: xface, initial: 0, ddt: 0, boundary: {x-: {dirichlet: \"integral(a)\"}}}\n",
                "boundary values need each other in a cycle: 'a' on x- -> integral -> 'a' on x-;");
    /* Only at the corner, which no later axis sets. */
    check_cycle("  a: {location: node, initial: 0, ddt: 0, boundary: {x-: {dirichlet: b}}}\n"
                "  b: {location: node, initial: 0, ddt: 0, boundary: {y-: {dirichlet: a}}}\n",
                "boundary values need each other in a cycle: 'a' on x- -> 'b' on y- -> 'a' on x-;");
}
END_TEST

START_TEST(a_cycle_that_a_later_axis_overrides_is_none)
{
    trl_gidx n[3];
    new_deck();
    say("grid: {cells: [2, 2]}\nequations:\n"
        "  a: {location: node, initial: 1, ddt: 0, boundary: {x-: {dirichlet: \"b + 1\"}, y-: {dirichlet: 5}}}\n"
        "  b: {location: node, initial: 2, ddt: 0, boundary: {y-: {dirichlet: \"a + 1\"}}}\n"
        "time: {dt: 0.5, steps: 1}\n");
    ck_ok(open_problem());
    ck_ok(run_steps(1));
    const double *a = values_of("a", n), *b = values_of("b", n);
    ck_assert_double_eq(a[0], 5);
    ck_assert_double_eq(b[0], 6);
    ck_assert_double_eq(a[3], 3);
    close_problem();
}
END_TEST

START_TEST(ghosts_that_nothing_has_set_yet_are_not_read)
{
    new_deck();
    say("grid: {cells: [4, 4]}\nequations:\n"
        "  f: {location: node, initial: 0, ddt: 0, boundary: {x-: {dirichlet: \"integral(laplacian(c))\"}}}\n"
        "  c: {initial: x, ddt: 0, boundary: {x-: {neumann: 0}, x+: {neumann: 0}, y-: {neumann: 0}, y+: {neumann: "
        "0}}}\n"
        "time: {dt: 0.5, steps: 1}\n");
    ck_fails(
        open_problem(), TRL_ERR_INPUT,
        "a boundary value needs neighbours of 'c' beyond a side before its ghosts there are set: use points inside, "
        "or old(...), the value at the start of the step");
    close_problem();
    new_deck();
    say("grid: {cells: [4], patches: [2]}\nstencils:\n  third: {to: cell, points: [[[2], 1]]}\nequations:\n"
        "  f: {initial: 0, ddt: \"laplacian(f)\", boundary: {x-: {dirichlet: \"third(c)\"}, x+: {neumann: 0}}}\n"
        "  c: {initial: x, ddt: 0, boundary: {x-: {neumann: 0}, x+: {neumann: 0}}}\ntime: {dt: 0.001, steps: 1}\n");
    ck_fails(
        open_problem(), TRL_ERR_INPUT,
        "this boundary value reads 'c' at the 3 points next to x-, and a patch there has only 2: use fewer patches "
        "or more cells");
    close_problem();
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, a_value_on_a_side_follows_the_one_that_it_reads_in_any_order_of_equations);
    tcase_add_test(tc, a_corner_that_another_axis_sets_is_there_too);
    tcase_add_test(tc, neighbours_along_a_side_are_those_of_other_patches);
    tcase_add_test(tc, old_values_are_those_of_the_step_s_start_and_at_first_the_initial_ones);
    tcase_add_test(tc, conditions_that_need_each_other_are_refused_with_the_whole_cycle);
    tcase_add_test(tc, a_cycle_that_a_later_axis_overrides_is_none);
    tcase_add_test(tc, ghosts_that_nothing_has_set_yet_are_not_read);
}

TRL_TEST_MAIN("side_order", add_tests)
