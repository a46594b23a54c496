/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The expression tree: what is found wrong with names, places and locations, and chains of very many expressions. */
// ctest: np=1 timeout=300
#include <time.h>

#include "problem_fixture.h"

#define GRID "grid: {cells: [8, 8]}\n"
/* A chain that a recursion would not survive; shorter where every access is checked. */
#ifdef __SANITIZE_ADDRESS__
enum { LONGEST = 10000 };
#else
enum { LONGEST = 100000 };
#endif
#define TIME "time: {dt: 0.1, steps: 1}\n"

/* The deck has exactly these messages, in order, without the source lines. */
static void check_messages(const char *text, trl_err code, const char *expected)
{
    char found[8192] = "";
    const trl_diagnostic *d;
    size_t used = 0;
    new_deck();
    say("%s", text);
    trl_err err = open_problem();
    int n = trl_context_diagnostics(test_ctx, &d);
    for (int i = 0; i < n && used < sizeof found; ++i)
        used += (size_t)snprintf(found + used, sizeof found - used, "%d:%d: %s%s\n", d[i].line, d[i].column,
                                 d[i].severity == TRL_WARNING ? "warning: " : "", d[i].text);
    ck_assert_msg(err == code, "got %s, expected %s: %s", trl_err_name(err), trl_err_name(code), found);
    ck_assert_str_eq(found, expected);
    close_problem();
    test_clear();
}

START_TEST(a_cycle_is_reported_with_its_whole_path)
{
    check_messages(GRID "expressions:\n  a: \"b + 1\"\n  b: \"2*c\"\n  c: \"x*d\"\n  d: \"exp(b)\"\nequations: {T: "
                        "{initial: 0, ddt: a}}\n" TIME,
                   TRL_ERR_INPUT, "5:3: expressions depend on each other in a cycle: b -> c -> d -> b\n");
    check_messages(GRID "expressions:\n  a: \"a + 1\"\nequations: {T: {initial: 0, ddt: a}}\n" TIME, TRL_ERR_INPUT,
                   "4:3: expressions depend on each other in a cycle: a -> a\n");
    check_messages(GRID "equations:\n  T: {initial: \"2*U\", ddt: 0}\n  U: {initial: \"f\", ddt: 0}\nexpressions: {f: "
                        "\"T + 1\"}\n" TIME,
                   TRL_ERR_INPUT, "6:15: initial values depend on each other in a cycle: f -> T -> U -> f\n");
}
END_TEST

START_TEST(a_missing_name_is_reported_with_the_nearest_one)
{
    check_messages(
        GRID "expressions: {pressure: \"x\"}\nequations: {T: {initial: pressure, ddt: \"2*presure\"}}\n" TIME,
        TRL_ERR_INPUT,
        "4:44: nothing computes 'presure': it is no equation, expression or parameter; did you mean 'pressure'?\n");
    check_messages(
        GRID "parameters: {kappa: 1}\nequations: {T: {initial: 0, ddt: \"kapa*T\"}}\n" TIME, TRL_ERR_INPUT,
        "4:35: nothing computes 'kapa': it is no equation, expression or parameter; did you mean 'kappa'?\n");
    check_messages(GRID "equations: {T: {initial: 0, ddt: \"quite_other\"}}\n" TIME, TRL_ERR_INPUT,
                   "3:35: nothing computes 'quite_other': it is no equation, expression or parameter\n");
}
END_TEST

START_TEST(what_nothing_uses_is_a_warning)
{
    check_messages(GRID "expressions: {a: \"b\", b: \"x\", c: \"x\"}\nequations: {T: {initial: 0, ddt: \"c\"}}\n" TIME,
                   TRL_OK, "3:15: warning: nothing uses expression 'a'\n3:23: warning: nothing uses expression 'b'\n");
    /* initial values, boundary values, conditions, masks, exact solutions, outputs and series are uses */
    check_messages(
        GRID "expressions: {a: \"x\", b: \"x\", c: \"x\", d: \"x > 0\", e: \"x\", f: \"x\", g: \"x\", h: \"x > y\"}\n"
             "equations: {T: {initial: a, ddt: \"ddx(ddx(T))\", mask: d, exact: e, boundary: {x-: [{where: h, "
             "dirichlet: b}, {neumann: 0}], x+: {robin: {a: 1, b: 1, c: c}}}}}\n" TIME
             "output: {fields: [f], series: {every: {steps: 1}, values: {s: \"integral(g)\"}}}\n",
        TRL_OK, "");
}
END_TEST

START_TEST(values_at_two_locations_are_not_combined)
{
    static const struct {
        const char *ddt, *message;
    } cases[] = {
        {"T + at(T, xface)",
         "3:35: values at cell and xface cannot be combined: interpolate one with at(..., cell) or at(..., xface)\n"},
        {"at(T, xface)", "3:35: this is at xface, and cell is needed: interpolate with at(..., cell)\n"},
        {"at(T, xface)*at(T, yface)",
         "3:35: factors at xface and yface cannot be multiplied: interpolate one with at(..., xface)\n"},
        {"div(grad(T)*at(T, node))",
         "3:39: factors at xface and node cannot be multiplied: interpolate one with at(..., xface)\n"},
        {"min(T, at(T, yface))",
         "3:35: values at cell and yface cannot be combined: interpolate one with at(..., cell) or at(..., yface)\n"},
        {"if(at(T, node) > 0, T, 0)",
         "3:35: values at cell and node cannot be combined: interpolate one with at(..., cell) or at(..., node)\n"},
        {"mag(grad(T))",
         "3:35: 'mag' needs all components at one location, for example at(..., cell): here xface and yface\n"},
        {"T^at(T, node)",
         "3:35: values at cell and node cannot be combined: interpolate one with at(..., cell) or at(..., node)\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        char text[400];
        snprintf(text, sizeof text, GRID "equations: {T: {initial: 0, ddt: \"%s\"}}\n" TIME, cases[i].ddt);
        check_messages(text, TRL_ERR_INPUT, cases[i].message);
    }
}
END_TEST

START_TEST(every_error_of_a_deck_is_reported_once)
{
    check_messages(GRID "equations:\n  T: {initial: \"foo\", ddt: \"laplacian(T) + bar\"}\n  U: {initial: 0, ddt: \"U "
                        "+ [1, 2]\"}\n" TIME,
                   TRL_ERR_INPUT,
                   "4:17: nothing computes 'foo': it is no equation, expression or parameter\n"
                   "4:44: nothing computes 'bar': it is no equation, expression or parameter\n"
                   "5:25: a vector and a scalar cannot be combined by '+': take the vector's divergence with div(), a "
                   "component with .x, or its length with mag()\n");
    check_messages(GRID "equations:\n  T: {initial: 0, ddt: \"laplacian(T)\", boundary: {x-: {dirichlet: 0}, x+: "
                        "{neumann: 0}, y-: {neumann: 0}}}\n"
                        "time: {dt: 0.001, steps: 1, method: rk4}\noutput: {series: {every: {steps: 1}, values: {a: "
                        "\"integral(laplacian(T))\"}}}\n",
                   TRL_ERR_INPUT,
                   "4:3: 'T' needs a boundary condition on y+: an operator reads 1 point beyond that side\n");
}
END_TEST

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* A chain of n expressions, each from the one before: e1 = x, e(i+1) = step(e(i)). The deck names them backwards. */
static double compile_chain(int n, const char *first, const char *next, const char *fusion)
{
    new_deck();
    say("grid: {cells: [4]}\nexpressions:\n");
    for (int i = n; i > 1; --i) {
        say("  e%d: \"", i);
        say(next, i - 1);
        say("\"\n");
    }
    say("  e1: \"%s\"\nequations: {T: {initial: 1, ddt: e%d}}\n"
        "time: {dt: 0.1, steps: 1, method: euler}\nrun: {fusion: %s}\n",
        first, n, fusion);
    close_problem();
    ck_ok(trl_registry_create(test_ctx, &registry));
    ck_ok(trli_deck_read(test_ctx, registry, &(trli_deck_request){.path = "test.yaml", .text = deck_text}, &deck));
    double started = now();
    ck_ok(create_simulation());
    return now() - started;
}

START_TEST(chains_of_very_many_expressions_compile_and_give_the_right_value)
{
    static const char *const fusions[] = {"full", "node", "none"};
    static const int lengths[] = {31, 8000, LONGEST};
    trl_gidx n[3];
    for (int level = 0; level < 3; ++level)
        for (int l = 0; l < (level < 2 ? 3 : 2); ++l) {
            double seconds = compile_chain(lengths[l], "T", "e%d + 0.5", fusions[level]);
            if (trl_context_rank(test_ctx) == 0)
                printf("chain of %d, fusion %s: %.3f s\n", lengths[l], fusions[level], seconds);
            ck_ok(run_steps(1));
            ck_assert_double_eq_tol(values_of("T", n)[2], 1 + 0.1 * (1 + 0.5 * (lengths[l] - 1)), 1e-9);
        }
    close_problem();
}
END_TEST

START_TEST(a_chain_of_coordinates_is_placed_once)
{
    trl_gidx n[3];
    for (int level = 0; level < 2; ++level) {
        double seconds = compile_chain(LONGEST, "x", "e%d + x", level ? "node" : "full");
        if (trl_context_rank(test_ctx) == 0) printf("chain of %d without location: %.3f s\n", LONGEST, seconds);
        ck_ok(run_steps(1));
        ck_assert_double_eq_tol(values_of("T", n)[2], 1 + 0.1 * 0.625 * LONGEST, 1e-6);
    }
    close_problem();
}
END_TEST

/* Each stencil needs one more ghost layer. */
static void say_long_stencil(int cells)
{
    new_deck();
    say("grid: {cells: [%d], length: [%d], periodic: [true]}\nexpressions:\n  e1: \"at(at(T, xface), cell)\"\n", cells,
        cells);
    for (int i = 2; i <= 150; ++i) say("  e%d: \"at(at(e%d, xface), cell)\"\n", i, i - 1);
    say("equations: {T: {initial: \"if(x > 10 and x < 11, 1000, 1)\", ddt: 0}}\n" TIME "output: {fields: [e150]}\n");
}

START_TEST(a_long_chain_of_stencils_is_right_or_refused)
{
    enum { CELLS = 320 };
    static const char *const fusions[] = {"run.fusion=full", "run.fusion=node", "run.fusion=none"};
    trl_gidx n[3];
    static double expected[CELLS], before[CELLS];
    for (int i = 0; i < CELLS; ++i) expected[i] = i == 10 ? 1000 : 1;
    for (int k = 0; k < 150; ++k) {
        memcpy(before, expected, sizeof before);
        for (int i = 0; i < CELLS; ++i)
            expected[i] = 0.25 * (before[(i + CELLS - 1) % CELLS] + 2 * before[i] + before[(i + 1) % CELLS]);
    }
    for (int level = 0; level < 3; ++level) {
        say_long_stencil(CELLS);
        ck_ok(open_set(fusions[level]));
        ck_ok(run_steps(0));
        const double *f = values_of("e150", n);
        for (int i = 0; i < CELLS; ++i) ck_assert(near(f[i], expected[i], 1e-11));
        say_long_stencil(100);
        ck_fails(open_set(fusions[level]), TRL_ERR_INPUT, "stencils reach 150 points of");
        test_clear();
    }
    close_problem();
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, a_cycle_is_reported_with_its_whole_path);
    tcase_add_test(tc, a_missing_name_is_reported_with_the_nearest_one);
    tcase_add_test(tc, what_nothing_uses_is_a_warning);
    tcase_add_test(tc, values_at_two_locations_are_not_combined);
    tcase_add_test(tc, every_error_of_a_deck_is_reported_once);
    tcase_add_test(tc, chains_of_very_many_expressions_compile_and_give_the_right_value);
    tcase_add_test(tc, a_chain_of_coordinates_is_placed_once);
    tcase_add_test(tc, a_long_chain_of_stencils_is_right_or_refused);
}

TRL_TEST_MAIN("tree", add_tests)
