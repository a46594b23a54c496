/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Sensitivities against exact ones, with their orders in space and time; which equations are added, and what is said of
 * them. */
// ctest: np=1,2 sanitize=1
#include "../expressions/problem_fixture.h"

static double error_of(const char *name)
{
    trl_field_stats stats;
    ck_ok(trl_simulation_field_stats(sim, field_index(name), &stats));
    ck_assert(stats.has_error);
    return stats.error_linf;
}

static void check_order(const char *what, const double error[3], double expected)
{
    for (int i = 1; i < 3; ++i) {
        double order = log2(error[i - 1] / error[i]);
        ck_assert_msg(fabs(order - expected) < 0.1, "%s: order %.3f, expected %g", what, order, expected);
    }
}

START_TEST(the_sensitivity_of_heat_to_its_diffusivity_converges_with_order_two)
{
    double error[3];
    for (int level = 0; level < 3; ++level) {
        new_deck();
        say("grid: {cells: [%d]}\n"
            "parameters: {k: 0.4}\n"
            "equations: {T: {initial: \"sin(pi*x)\", ddt: \"k*laplacian(T)\", exact: \"exp(-k*pi^2*t)*sin(pi*x)\",\n"
            "  boundary: {x-: {dirichlet: 0}, x+: {dirichlet: 0}}}}\n"
            "sensitivity: {T: [k]}\n"
            "time: {method: ssprk3, dt: %.17g, end: 0.1}\n",
            16 << level, 2e-3 / (1 << 2 * level));
        ck_ok(open_problem());
        ck_ok(run_steps(50 << 2 * level));
        error[level] = error_of("T_k");
    }
    check_order("heat", error, 2);
    close_problem();
}
END_TEST

START_TEST(the_sensitivity_of_decay_has_the_order_of_each_method)
{
    static const struct {
        const char *name;
        double order;
    } methods[] = {{"euler", 1}, {"ssprk2", 2}, {"ssprk3", 3}, {"rk4", 4}};
    for (size_t m = 0; m < sizeof methods / sizeof *methods; ++m) {
        double error[3];
        for (int level = 0; level < 3; ++level) {
            new_deck();
            say("grid: {cells: [4]}\n"
                "parameters: {k: 1.3, c: 2}\n"
                "equations: {T: {initial: \"c/k\", ddt: \"-k*T\", exact: \"c/k*exp(-k*t)\"}}\n"
                "sensitivity: {T: [k, c]}\n"
                "time: {method: %s, dt: %.17g, end: 1}\n",
                methods[m].name, 0.0125 / (1 << level));
            ck_ok(open_problem());
            ck_ok(run_steps(80 << level));
            error[level] = error_of("T_k");
            ck_assert_double_le(fabs(error_of("T_c") - error_of("T") / 2), 1e-15); /* T is c times something */
        }
        check_order(methods[m].name, error, methods[m].order);
    }
    close_problem();
}
END_TEST

static char listing[8192];

static void note_line(void *data, const char *line)
{
    (void)data;
    size_t used = strlen(listing);
    snprintf(listing + used, sizeof listing - used, "%s\n", line);
}

START_TEST(equations_are_added_where_the_parameter_is_felt_and_nowhere_else)
{
    new_deck();
    say("grid: {cells: [8], periodic: [true]}\n"
        "parameters: {k: 1, q: \"2*k\", other: 3}\n"
        "expressions: {rate: \"q*x\"}\n"
        "equations:\n"
        "  T: {initial: \"x\", ddt: \"-U\"}\n"
        "  U: {initial: \"x\", ddt: \"-V - Z\", exact: \"x\"}\n"
        "  V: {initial: \"rate\", ddt: \"0\"}\n"
        "  W: {initial: \"k\", ddt: \"-k*T\"}\n" /* nobody needs it */
        "  Z: {initial: \"x\", ddt: \"-other*Z\"}\n"
        "sensitivity: {T: [k], Z: [other]}\n"
        "time: {dt: 0.1, steps: 1}\n");
    ck_ok(open_problem());
    listing[0] = 0;
    ck_ok(trl_simulation_describe(sim, false, note_line, NULL));
    static const char *const there[] = {"sensitivity of T to k at cell", "sensitivity of U to k at cell\n",
                                        "sensitivity of V to k at cell", "sensitivity of Z to other at cell"};
    for (size_t i = 0; i < sizeof there / sizeof *there; ++i) ck_assert_ptr_nonnull(strstr(listing, there[i]));
    ck_assert_ptr_null(strstr(listing, "of W to"));
    ck_assert_ptr_null(strstr(listing, "of Z to k"));
    ck_assert_ptr_null(strstr(listing, "of T to other"));
    /* U has an exact solution that does not say how it depends on k. */
    ck_ok(run_steps(1));
    trl_field_stats stats;
    ck_ok(trl_simulation_field_stats(sim, field_index("U_k"), &stats));
    ck_assert(!stats.has_error);
    ck_assert(trl_simulation_field(sim, field_index("T_k"))->output);
    ck_assert_str_eq(test_messages(), "");
    close_problem();
}
END_TEST

START_TEST(members_of_families_are_named_in_lists)
{
    new_deck();
    say("grid: {cells: [8]}\n"
        "parameters: {n: 2, \"D{i}\": {for: {i: 1..2}, values: [1, \"n/4\"]}}\n"
        "equations:\n"
        "  \"c{i}\": {for: {i: 1..2}, initial: \"D{i}\", ddt: \"-D{i}*c{i}\", exact: \"D{i}*exp(-D{i}*t)\"}\n"
        "sensitivity: {\"c{1..2}\": [\"D{1..2}\"], c2: [n]}\n"
        "time: {method: rk4, dt: 0.01, steps: 10}\n");
    ck_ok(open_problem());
    ck_ok(run_steps(10));
    ck_assert_double_le(error_of("c1_D1"), 1e-9);
    ck_assert_double_le(error_of("c2_D2"), 1e-9);
    ck_assert_ptr_nonnull(strstr(test_messages(), "equation 'c1' does not depend on 'D2'"));
    ck_assert_ptr_nonnull(strstr(test_messages(), "equation 'c2' does not depend on 'D1'"));
    close_problem();
}
END_TEST

START_TEST(long_chains_of_parameters_are_followed)
{
    const int links = 3000;
    new_deck();
    say("grid: {cells: [4]}\n"
        "parameters:\n  p0: 0.5\n");
    for (int i = links; i > 0; --i) say("  p%d: \"p%d + (p%d - p%d)/2\"\n", i, i - 1, i - 1, i > 1 ? i - 2 : 0);
    say("equations: {T: {initial: 1, ddt: \"-p%d*T\", exact: \"exp(-p%d*t)\"}}\n"
        "sensitivity: {T: [p0]}\n"
        "time: {method: rk4, dt: 0.01, steps: 10}\n",
        links, links);
    ck_ok(open_problem());
    ck_ok(run_steps(10));
    ck_assert_double_le(error_of("T_p0"), 1e-9);
    close_problem();
}
END_TEST

START_TEST(a_parameter_that_an_equation_does_not_feel_is_a_warning)
{
    new_deck();
    say("grid: {cells: [8]}\n"
        "parameters: {k: 1, other: 3}\n"
        "equations:\n"
        "  T: {initial: \"x\", ddt: \"-k*T\"}\n"
        "  U: {initial: \"x\", ddt: \"-other*U + T\"}\n"
        "sensitivity: {T: [other], U: [other]}\n"
        "time: {dt: 0.1, steps: 1}\n");
    ck_ok(open_problem());
    ck_assert_ptr_nonnull(
        strstr(test_messages(), "equation 'T' does not depend on 'other': its sensitivity stays zero"));
    ck_assert_ptr_null(strstr(test_messages(), "'U'"));
    ck_ok(run_steps(1));
    trl_field_stats stats;
    ck_ok(trl_simulation_field_stats(sim, field_index("T_other"), &stats));
    ck_assert_double_eq(stats.max, 0);
    ck_assert_double_eq(stats.min, 0);
    close_problem();
}
END_TEST

/* ---- plugins ---- */

static trl_err twice_advertise(const void *state, trl_deps *deps)
{
    trl_err err = trl_deps_compute(deps, "out", TRL_CELL);
    (void)state;
    return err == TRL_OK ? trl_deps_require(deps, "in", TRL_CELL, NULL, NULL) : err;
}

static trl_err twice_bind(void *state, const trl_binding *binding)
{
    (void)state, (void)binding;
    return TRL_OK;
}

static trl_err twice_evaluate(const void *state, const trl_eval_args *args, const trl_box *box)
{
    (void)state;
    for (trl_lidx i = box->lo[0]; i < box->hi[0]; ++i)
        ((double *)args->computed[0].at)[trl_array_offset(&args->computed[0], i, 0, 0)] =
            2 * ((double *)args->required[0].at)[trl_array_offset(&args->required[0], i, 0, 0)];
    return TRL_OK;
}

static const trl_expr_type twice = {.abi = TRL_PLUGIN_ABI,
                                    .size = sizeof(trl_expr_type),
                                    .name = "twice",
                                    .doc = "twice its input",
                                    .flags = TRL_EXPR_POINTWISE | TRL_EXPR_TILED,
                                    .advertise_dependents = twice_advertise,
                                    .bind_fields = twice_bind,
                                    .evaluate = twice_evaluate};

static trl_err open_with_plugin(const char *input)
{
    static const trl_expr_type *const types[] = {&twice, NULL};
    new_deck();
    say("grid: {cells: [8]}\n"
        "parameters: {k: 1}\n"
        "expressions:\n"
        "  still: \"1 + x\"\n"
        "  P: {type: twice, computes: [doubled], inputs: {in: %s}}\n"
        "equations:\n"
        "  T: {initial: \"x\", ddt: \"-k*T + doubled\"}\n"
        "sensitivity: {T: [k]}\n"
        "time: {method: euler, dt: 0.1, steps: 1}\n",
        input);
    test_types = types;
    trl_err err = open_problem();
    test_types = NULL;
    return err;
}

START_TEST(a_plugin_in_the_way_is_an_error_at_its_place)
{
    ck_fails(open_with_plugin("T"), TRL_ERR_INPUT,
             "test.yaml:6:3: 'P' depends on 'k', and what type 'twice' computes has no derivative");
    close_problem();
}
END_TEST

START_TEST(a_plugin_that_does_not_feel_the_parameter_is_in_nobodys_way)
{
    trl_gidx n[3];
    ck_ok(open_with_plugin("still"));
    ck_ok(run_steps(1));
    const double *v = values_of("T_k", n);
    for (int i = 0; i < 8; ++i) ck_assert(near(v[i], -0.1 * (i + 0.5) / 8, 1e-15));
    close_problem();
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, the_sensitivity_of_heat_to_its_diffusivity_converges_with_order_two);
    tcase_add_test(tc, the_sensitivity_of_decay_has_the_order_of_each_method);
    tcase_add_test(tc, equations_are_added_where_the_parameter_is_felt_and_nowhere_else);
    tcase_add_test(tc, members_of_families_are_named_in_lists);
    tcase_add_test(tc, long_chains_of_parameters_are_followed);
    tcase_add_test(tc, a_parameter_that_an_equation_does_not_feel_is_a_warning);
    tcase_add_test(tc, a_plugin_in_the_way_is_an_error_at_its_place);
    tcase_add_test(tc, a_plugin_that_does_not_feel_the_parameter_is_in_nobodys_way);
}

TRL_TEST_MAIN("sensitivity_exact", add_tests)
