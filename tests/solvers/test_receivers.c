/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Values at points have the bits of `probe`, wherever the points lie and however the problem is cut and computed. */
// ctest: np=1,2,3,4 short=1,3
#include "../expressions/problem_fixture.h"

enum { POINTS = 40, VALUES = 7 };

static const char *const names[] = {"T", "N", "q", "wide", "mean", "p"};
static const char *const shown[VALUES] = {"T", "N", "q.x", "q.y", "wide", "mean", "p"};
static double at[POINTS][2];
static trl_place places[6];

/* Points inside, on sides, on cell centres and faces, and at the corners. */
static void make_points(void)
{
    for (int i = 0; i < POINTS; ++i) {
        at[i][0] = fmod(0.13 + 0.381966 * i, 1.0);
        at[i][1] = 1.3 * fmod(0.07 + 0.618034 * i, 1.0);
    }
    static const double special[][2] = {{0, 0},        {1, 1.3},         {0, 1.3},    {1, 0},           {0.5, 0},
                                        {0.999, 1.29}, {1.0 / 24, 0.05}, {0.25, 1.3}, {0.5 / 12, 0.65}, {0, 0.55}};
    memcpy(at, special, sizeof special);
}

static void say_deck(bool probes)
{
    new_deck();
    say("grid: {cells: [12, 13], length: [1, 1.3], periodic: [true, false]}\nparameters: {k: 0.02}\nexpressions:\n"
        "  q: \"-k*grad(T)\"\n  wide: \"laplacian(T)*T + x + t\"\n  mean: \"integral(T) + y\"\n"
        "  p: {formula: \"T*T\", boundary: {y-: {neumann: 0.3}, y+: {dirichlet: 1}}}\n"
        "equations:\n"
        "  T: {initial: \"sin(2*pi*x)*y\", ddt: \"-div(q)\", boundary: {y-: {dirichlet: \"t\"}, y+: {neumann: 0.1}}}\n"
        "  N: {location: node, initial: \"cos(2*pi*x)\", ddt: \"k*laplacian(N)\", boundary: {y-: {neumann: 1}, y+: "
        "{dirichlet: 0}}}\n"
        "time: {method: rk4, dt: 1e-3, steps: 3}\n");
    if (!probes) return;
    say("output: {series: {values: {");
    for (int v = 0; v < VALUES; ++v)
        for (int i = 0; i < POINTS; ++i)
            say("%sv%d_%d: \"probe(%s, [%.17g, %.17g])\"", v + i ? ", " : "", v, i, shown[v], at[i][0], at[i][1]);
    say("}}}\n");
}

/* Open the deck said with receivers, as a driver would fill them in. */
static trl_err open_with_receivers(int n, int nvalues, const char *const *value, int nsets, const char *const *set)
{
    static trl_problem problem;
    trl_err err = TRL_OK;
    close_problem();
    TRL_TRY(trl_registry_create(test_ctx, &registry));
    const trli_deck_request request = {.path = "test.yaml", .text = deck_text, .nsets = nsets, .set = set};
    TRL_TRY(trli_deck_read(test_ctx, registry, &request, &deck));
    problem = *trli_deck_problem(deck);
    if (problem.compile == TRL_COMPILE_AUTO) problem.compile = TRL_COMPILE_NEVER;
    problem.receivers =
        (trl_receivers_entry){n, at[0], nvalues, value, places, {.file = "deck.yaml", .line = 3, .column = 5}};
    err = trl_simulation_create(test_ctx, &problem, &sim);
done:
    return err;
}

START_TEST(has_the_bits_of_probe_in_every_way)
{
    static const char *ways[][2] = {{"run.fusion=full"},
                                    {"run.fusion=none"},
                                    {"run.fusion=node", "run.balance=1e-6"},
                                    {"run.balance=1e6", "grid.patches=[4, 1]"},
                                    {"run.compile=always"},
                                    {"grid.patches=[2, 3]", "run.scheduler=serial"},
                                    {"grid.patches=[4, 3]", "run.owners=random:1"},
                                    {"grid.patches=[3, 4]", "run.passes.slots=false"}};
    double wanted[3][VALUES * POINTS];
    const double *const *found;
    test_compile_quickly();
    make_points();
    say_deck(true);
    ck_ok(open_problem());
    ck_ok(trl_simulation_initialise(sim));
    for (int s = 0; s < 3; ++s) {
        ck_ok(trl_simulation_observe(sim));
        memcpy(wanted[s], trl_simulation_series(sim), sizeof wanted[s]);
        ck_ok(trl_simulation_step(sim));
    }
    for (size_t w = 0; w < sizeof ways / sizeof *ways; ++w) {
        say_deck(false);
        ck_ok(open_with_receivers(POINTS, 6, names, ways[w][1] ? 2 : 1, ways[w]));
        ck_assert_int_eq(trl_simulation_received(sim), VALUES);
        ck_ok(trl_simulation_initialise(sim));
        for (int s = 0; s < 3; ++s) {
            ck_ok(trl_simulation_receive(sim, &found));
            for (int v = 0; v < VALUES; ++v)
                for (int i = 0; i < POINTS; ++i)
                    ck_assert_msg(memcmp(&found[v][i], &wanted[s][v * POINTS + i], sizeof(double)) == 0,
                                  "%s at [%g, %g] after step %d is %.17g, its probe %.17g, with %s", shown[v], at[i][0],
                                  at[i][1], s, found[v][i], wanted[s][v * POINTS + i], ways[w][0]);
            ck_ok(trl_simulation_step(sim));
        }
        for (int v = 0; v < VALUES; ++v) ck_assert_str_eq(trl_simulation_received_name(sim, v), shown[v]);
    }
    close_problem();
}
END_TEST

START_TEST(needs_no_condition_at_a_side_that_no_point_is_near)
{
    static const char *const value[] = {"T"};
    const double *const *found;
    new_deck();
    say("grid: {cells: [12, 12]}\nequations: {T: {initial: \"x + 10*y\", ddt: \"0\"}}\ntime: {dt: 1, steps: 1}\n");
    at[0][0] = at[0][1] = 0.5;
    at[1][0] = 1 / 24.0;
    at[1][1] = 0.3;
    ck_ok(open_with_receivers(2, 1, value, 0, NULL));
    ck_ok(trl_simulation_initialise(sim));
    ck_ok(trl_simulation_receive(sim, &found));
    ck_assert(near(found[0][0], 5.5, 1e-14) && near(found[0][1], 3 + 1 / 24.0, 1e-14));
    at[1][0] = 0.04; /* before the first cell's centre */
    ck_fails(open_with_receivers(2, 1, value, 0, NULL), TRL_ERR_INPUT, "'T'");
}
END_TEST

/* -0.05 + 0.7 is below 0.65, and 1 / (1/49) is more than 49. */
START_TEST(takes_an_end_for_a_place_where_rounding_puts_it_beyond)
{
    static const char *const value[] = {"T"};
    const double *const *found;
    new_deck();
    say("grid: {cells: [49, 8], length: [1, 0.7], origin: [0, -0.05]}\nequations: {T: {location: node, initial: "
        "\"x + 10*y\", ddt: \"0\"}}\ntime: {dt: 1, steps: 1}\n"
        "output: {series: {values: {T: \"probe(T, [1, 0.65])\"}}}\n");
    at[0][0] = 1;
    at[0][1] = 0.65;
    ck_ok(open_with_receivers(1, 1, value, 0, NULL));
    ck_ok(trl_simulation_initialise(sim));
    ck_ok(trl_simulation_observe(sim));
    ck_ok(trl_simulation_receive(sim, &found));
    ck_assert(near(found[0][0], 7.5, 1e-14));
    ck_assert_double_eq(trl_simulation_series(sim)[0], found[0][0]);
    at[0][1] = 0.65 + 1e-14;
    ck_fails(open_with_receivers(1, 1, value, 0, NULL), TRL_ERR_INPUT, "receiver 0 of 1 (from 0) lies outside");
    trl_context_clear_diagnostics(test_ctx);
}
END_TEST

START_TEST(rejects_points_outside_and_unknown_names)
{
    static const char *const unknown[] = {"nothing"};
    make_points();
    say_deck(false);
    at[7][1] = 1.31;
    ck_fails(open_with_receivers(POINTS, 6, names, 0, NULL), TRL_ERR_INPUT,
             "deck.yaml:3:5: receiver 7 of 40 (from 0) lies outside the domain: y = 1.31, and the domain goes from 0 "
             "to 1.3");
    trl_context_clear_diagnostics(test_ctx);
    at[7][1] = NAN;
    ck_fails(open_with_receivers(POINTS, 6, names, 0, NULL), TRL_ERR_INPUT, "receiver 7 of 40");
    trl_context_clear_diagnostics(test_ctx);
    make_points();
    ck_fails(open_with_receivers(POINTS, 1, unknown, 0, NULL), TRL_ERR_INPUT, "nothing computes 'nothing'");
    trl_context_clear_diagnostics(test_ctx);
    ck_ok(open_problem());
    const double *const *found;
    ck_fails(trl_simulation_receive(sim, &found), TRL_ERR_USAGE, "this problem has no receivers");
    close_problem();
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, has_the_bits_of_probe_in_every_way);
    tcase_add_test(tc, needs_no_condition_at_a_side_that_no_point_is_near);
    tcase_add_test(tc, takes_an_end_for_a_place_where_rounding_puts_it_beyond);
    tcase_add_test(tc, rejects_points_outside_and_unknown_names);
}

TRL_TEST_MAIN("receivers", add_tests)
