/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Fields that are kept: after a step they hold their formula of the values then, however the step is computed, and
 * nothing else changes. */
// ctest: np=1,2,3,4 short=1,3
#include "../expressions/problem_fixture.h"

enum { STEPS = 5 };

static void say_deck(const char *method, const char *output)
{
    new_deck();
    say("grid: {cells: [24, 26], length: [1, 1.3], periodic: [true, false]}\nparameters: {k: 0.02}\nexpressions:\n"
        "  q: \"-k*grad(T)\"\n  curved: \"laplacian(T)*T + norm(N)*x + t\"\n  square: \"T*T + t\"\n"
        "  held: {formula: \"T + 2*N\", evaluate: step}\n"
        "equations:\n"
        "  T: {initial: \"sin(2*pi*x)*y\", ddt: \"-div(q) - 0.1*curved + 0.01*held\", boundary: {y-: {dirichlet: "
        "\"t\"}, y+: {neumann: 0}}}\n"
        "  N: {initial: \"cos(2*pi*x)\", ddt: \"k*laplacian(N) - square\", boundary: {y-: {neumann: 1}, y+: {neumann: "
        "0}}}\n"
        "time: {method: %s, dt: 1e-3, steps: %d}\noutput: {%s}\n",
        method, STEPS, output);
}

static const char *const names[] = {"T", "N", "q.x", "q.y", "curved", "square", "held"};
enum { NAMES = sizeof names / sizeof *names };

/* The hashes of all names after each step; observe: they are output. */
static void run_steps_with(const char *setting[2], bool observe, uint64_t hash[STEPS][NAMES])
{
    ck_ok(open_problem_with(setting[1] ? 2 : setting[0] ? 1 : 0, setting));
    ck_ok(trl_simulation_initialise(sim));
    for (int s = 0; s < STEPS; ++s) {
        ck_ok(trl_simulation_step(sim));
        if (observe) ck_ok(trl_simulation_observe(sim));
        for (int i = 0; i < NAMES; ++i) hash[s][i] = hash_of(names[i]);
    }
    close_problem();
}

START_TEST(has_the_values_of_an_output_after_each_step_in_every_way)
{
    static const char *ways[][2] = {{"run.fusion=full"},
                                    {"run.fusion=node"},
                                    {"run.fusion=none"},
                                    {"run.balance=1e-6"},
                                    {"run.balance=1e6", "grid.patches=[4, 1]"},
                                    {"run.compile=always"},
                                    {"grid.patches=[2, 3]", "run.scheduler=serial"},
                                    {"run.passes.slots=false"}};
    static const char *none[2];
    uint64_t wanted[STEPS][NAMES], found[STEPS][NAMES];
    test_compile_quickly();
    for (int m = 0; m < 2; ++m) {
        const char *method = m ? "euler" : "rk4";
        say_deck(method, "fields: [T, N, q, curved, square, held]");
        run_steps_with(none, true, wanted);
        for (size_t w = 0; w < sizeof ways / sizeof *ways; ++w) {
            if (!test_has((int)w + m, 2)) continue;
            say_deck(method, w % 2 ? "fields: [N, curved], keep: [q, curved, square, held, T]"
                                   : "keep: [q, curved, square, held]");
            run_steps_with(ways[w], false, found);
            for (int s = 0; s < STEPS; ++s)
                for (int i = 0; i < NAMES; ++i)
                    ck_assert_msg(found[s][i] == wanted[s][i], "%s has other bits after step %d of %s with %s",
                                  names[i], s + 1, method, ways[w][0]);
        }
    }
}
END_TEST

/* Whether `square` is the square of T, and time, now. */
static bool is_square(void)
{
    const trl_layout *layout = trl_simulation_layout(sim);
    const double t = trl_simulation_time(sim);
    bool good = true;
    for (int p = 0; p < layout->nlocal; ++p) {
        const trl_array a = trl_simulation_array(sim, field_index("T"), p),
                        b = trl_simulation_array(sim, field_index("square"), p);
        for (trl_lidx j = a.owned.lo[1]; j < a.owned.hi[1]; ++j)
            for (trl_lidx i = a.owned.lo[0]; i < a.owned.hi[0]; ++i) {
                const double T = ((const double *)a.at)[trl_array_offset(&a, i, j, 0)];
                good = good && ((const double *)b.at)[trl_array_offset(&b, i, j, 0)] == T * T + t;
            }
    }
    return good;
}

static bool stops_at_three(void *data, trl_gidx step, double time, double dt)
{
    (void)data, (void)time, (void)dt;
    return step == 3;
}

START_TEST(is_the_formula_of_the_values_after_whatever_changed_them)
{
    say_deck("ssprk3", "keep: [square]");
    say("run: {time_blocking: 3, fusion: full}\n");
    ck_ok(open_problem());
    ck_ok(trl_simulation_initialise(sim));
    ck_assert(is_square());
    while (!trl_simulation_done(sim)) {
        ck_ok(trl_simulation_advance(sim, stops_at_three, NULL));
        ck_assert(is_square());
    }
    ck_ok(trl_simulation_resume(sim, 1, 1e-3, 1e-3));
    ck_ok(trl_simulation_observe(sim));
    ck_assert(is_square());
    close_problem();
}
END_TEST

START_TEST(is_shown_as_kept_and_written_only_if_it_is_output)
{
    say_deck("euler", "fields: [N, curved], keep: [q, curved, T]");
    ck_ok(open_problem());
    ck_assert_int_eq(trl_simulation_fields(sim), 5);
    static const struct {
        const char *name;
        bool equation, output, kept;
    } wanted[] = {{"T", true, false, true},
                  {"N", true, true, false},
                  {"curved", false, true, true},
                  {"q.x", false, false, true},
                  {"q.y", false, false, true}};
    for (int f = 0; f < 5; ++f) {
        const trl_field_info *info = trl_simulation_field(sim, f);
        ck_assert_str_eq(info->name, wanted[f].name);
        ck_assert(info->equation == wanted[f].equation && info->output == wanted[f].output &&
                  info->kept == wanted[f].kept);
    }
    close_problem();
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, has_the_values_of_an_output_after_each_step_in_every_way);
    tcase_add_test(tc, is_the_formula_of_the_values_after_whatever_changed_them);
    tcase_add_test(tc, is_shown_as_kept_and_written_only_if_it_is_output);
}

TRL_TEST_MAIN("keep", add_tests)
