/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Which keys of a solver are refused because its method does not use them. */
#include "trl_test.h"

#include "deck_fixture.h"

#define EQUATION "  p: {solve: \"p = 1\", solver: s}\n"

static const char *const preconditioners[] = {"auto", "multigrid", "none", "jacobi"};

/* Each key by a letter, with a value that is not the default, and the part of it that a message points at. */
static const struct {
    char letter;
    const char *text, *name;
} keys[] = {{'t', "tolerance: 1e-3", "tolerance"},
            {'a', "absolute: 1", "absolute"},
            {'i', "iterations: 7", "iterations"},
            {'c', "cycle: w", "cycle"},
            {'s', "smoother: line", "smoother"},
            {'e', "replicate: 5", "replicate"},
            {'r', "restart: 4", "restart"},
            {'o', "single_reduction: true", "single_reduction"},
            {'N', "newton: {tolerance: 1e-3}", "newton.tolerance"},
            {'n', "newton: {iterations: 7}", "newton.iterations"}};

/* What methods use with each preconditioner; NULL: it is refused itself. */
static const struct {
    const char *method, *used[4];
} methods[] = {{"auto", {"taicseNn", "taicseNn", "taiNn", "taiNn"}},
               {"direct", {"ta", NULL, NULL, NULL}},
               {"multigrid", {"taicseNn", NULL, NULL, NULL}},
               {"cg", {"taicseoNn", "taicseoNn", "taioNn", "taioNn"}},
               {"pipelined_cg", {"taiNn", "taicseNn", "taiNn", "taiNn"}},
               {"bicgstab", {"taioNn", "taicseoNn", "taioNn", "taioNn"}},
               {"gmres", {"tairNn", "taicserNn", "tairNn", "tairNn"}},
               {"pseudo_time", {"taiN", NULL, NULL, NULL}}};

static void check_key(int m, int p, int k)
{
    char text[512], said[128];
    const char *used = methods[m].used[p];
    snprintf(text, sizeof text, HEAD "solvers: {s: {method: %s, preconditioner: %s, %s}}\nequations:\n" EQUATION,
             methods[m].method, preconditioners[p], keys[k].text);
    snprintf(said, sizeof said, "which does not use '%s'", used ? keys[k].name : "preconditioner");
    trl_context_clear_diagnostics(test_ctx);
    if (used && strchr(used, keys[k].letter))
        ck_ok(read_text(text));
    else
        ck_fails(read_text(text), TRL_ERR_INPUT, said);
}

START_TEST(keys_that_a_method_does_not_use_are_refused)
{
    for (int m = 0; m < (int)(sizeof methods / sizeof *methods); ++m)
        for (int p = 0; p < 4; ++p)
            for (int k = 0; k < (int)(sizeof keys / sizeof *keys); ++k) check_key(m, p, k);
}
END_TEST

/* The deck as used has them all. */
START_TEST(defaults_are_no_settings)
{
    for (int m = 0; m < (int)(sizeof methods / sizeof *methods); ++m) {
        char text[512];
        snprintf(text, sizeof text,
                 HEAD
                 "solvers: {s: {method: %s, preconditioner: auto, tolerance: 1.0e-8, absolute: 0, "
                 "iterations: 200, cycle: auto, smoother: auto, replicate: 1e4, restart: 30, single_reduction: false, "
                 "newton: {tolerance: 1e-08, iterations: 20}}}\nequations:\n" EQUATION,
                 methods[m].method);
        ck_ok(read_text(text));
    }
}
END_TEST

static const char *warning(void)
{
    const trl_diagnostic *list;
    const int n = trl_context_diagnostics(test_ctx, &list);
    return n > 0 ? list[n - 1].text : "";
}

/* What bdf asks of a solver that equations with `solve` name, too. */
START_TEST(keys_may_be_for_one_of_several_equations)
{
    const char *const solver = "solvers: {s: {restart: 4, tolerance: 1e-3}}\nequations:\n";
    const char *const steps = "  u: {initial: 1, ddt: \"-u\", solver: s}\ntime: {method: bdf, end: 1}\n";
    char text[512];
    snprintf(text, sizeof text, HEAD "%s" EQUATION "%s", solver, steps);
    ck_ok(read_text(text));
    ck_assert_str_eq(warning(), "");
    snprintf(text, sizeof text, HEAD "%s%s", solver, steps);
    ck_ok(read_text(text));
    ck_assert_ptr_nonnull(strstr(warning(), "bdf does not use 'tolerance' of solver 's'"));
}
END_TEST

START_TEST(says_which_solvers_nothing_uses)
{
    ck_ok(read_text(HEAD "solvers: {s: {method: cg}}\n" TAIL));
    ck_assert_str_eq(warning(), "nothing uses solver 's': no equation names it");
    trl_context_clear_diagnostics(test_ctx);
    ck_ok(read_text(HEAD "solvers: {s: {method: cg}}\nequations: {u: {initial: 0, ddt: 0, solver: s}}\n"
                         "time: {dt: 0.1, steps: 1, method: rk4}\n"));
    ck_assert_str_eq(warning(), "nothing uses solver 's': rk4 solves no system for 'u'");
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_checked_fixture(tc, open_registry, close_all);
    tcase_add_test(tc, keys_that_a_method_does_not_use_are_refused);
    tcase_add_test(tc, defaults_are_no_settings);
    tcase_add_test(tc, keys_may_be_for_one_of_several_equations);
    tcase_add_test(tc, says_which_solvers_nothing_uses);
}

TRL_TEST_MAIN("solver_keys", add_tests)
