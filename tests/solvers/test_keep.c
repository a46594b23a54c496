/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Fields that are kept: after a step they hold their formula of the values then, however the step is computed, and
 * nothing else changes. */
// ctest: np=1,2,3,4 short=1,3
#include "../expressions/problem_fixture.h"

#include <frame_impl.h>
#include <model_impl.h>
#include <simulation_impl.h>

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
                                    {"grid.patches=[4, 3]", "run.owners=random:1"},
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

/* ---- locks ---- */

/* Where the inner points of a shown field on the first patch have their values: a bit 1 << space each. */
static uint32_t spaces_of(const char *name)
{
    const int field = sim->shown[field_index(name)].field;
    return sim->frame->valid[sim->model->field[field].slot][0];
}

static int64_t bytes_now(int space)
{
    trl_pool_stats stats;
    trl_field_manager_get_stats(sim->frame->memory, space, &stats);
    return (int64_t)stats.in_use;
}

static void check_no_array(const char *name)
{
    trl_field_stats stats;
    const trl_layout *layout = trl_simulation_layout(sim);
    char text[100];
    snprintf(text, sizeof text, "'%s' is unlocked, and has no values; trl_simulation_lock it before", name);
    if (layout->nlocal > 0) {
        ck_assert_ptr_null(trl_simulation_array(sim, field_index(name), 0).at);
        ck_fails(trl_simulation_fetched(sim), TRL_ERR_USAGE, text);
        test_clear();
    }
    ck_ok(trl_simulation_fetched(sim));
    ck_fails(trl_simulation_field_stats(sim, field_index(name), &stats), TRL_ERR_USAGE, text);
    test_clear();
}

/* Unlock after step 2 what was locked, and lock it again after step 3. */
static void lock_and_unlock(const char *placement, uint64_t wanted[STEPS][NAMES], bool on_device)
{
    const char *settings[] = {placement, "run.compile=always", "run.devices=auto"};
    ck_ok(open_problem_with(placement ? 3 : 1, placement ? settings : settings + 1));
    ck_ok(trl_simulation_initialise(sim));
    const int curved = field_index("curved"), q[2] = {field_index("q.x"), field_index("q.y")};
    for (int step = 1; step <= STEPS; ++step) {
        const bool unlocked = step == 3;
        ck_ok(trl_simulation_step(sim));
        if (on_device && !unlocked) ck_assert_uint_eq(spaces_of("curved") & 1, 0);
        for (int i = 0; i < NAMES; ++i) {
            if (unlocked && (strcmp(names[i], "curved") == 0 || names[i][0] == 'q'))
                check_no_array(names[i]);
            else
                ck_assert_msg(hash_of(names[i]) == wanted[step - 1][i], "%s has other bits after step %d, %s", names[i],
                              step, placement ? placement : "on workers");
        }
        if (on_device && !unlocked) ck_assert_uint_ne(spaces_of("curved") & 1, 0); /* it was fetched */
        const int64_t host = bytes_now(0), device = on_device ? bytes_now(1) + bytes_now(2) : 0;
        if (step == 2) {
            ck_ok(trl_simulation_unlock(sim, q[0]));
            ck_assert_int_eq(bytes_now(0), host); /* q.y is still locked */
            ck_ok(trl_simulation_unlock(sim, q[1]));
            ck_ok(trl_simulation_unlock(sim, curved));
            ck_ok(trl_simulation_unlock(sim, curved)); /* changes nothing */
            ck_assert_int_lt(bytes_now(0), host);
            if (on_device) ck_assert_int_lt(bytes_now(1) + bytes_now(2), device);
        } else if (step == 3) {
            ck_ok(trl_simulation_lock(sim, curved));
            ck_ok(trl_simulation_lock(sim, curved));
            ck_ok(trl_simulation_lock(sim, q[1])); /* by which q.x has its values, too */
            ck_ok(trl_simulation_lock(sim, q[0]));
            ck_assert_int_gt(bytes_now(0), host);
        }
    }
    trl_simulation_stats stats;
    trl_simulation_get_stats(sim, &stats);
    ck_assert_int_eq(stats.peak_bytes, stats.planned_bytes);
    ck_assert_int_eq(stats.held_bytes, stats.planned_bytes);
    close_problem();
}

START_TEST(unlocked_fields_have_no_memory_and_locked_ones_their_values_wherever_these_are)
{
    static const char *none[2];
    uint64_t wanted[STEPS][NAMES];
    test_compile_quickly();
    say_deck("ssprk3", "fields: [T, N, q, curved, square, held]");
    run_steps_with(none, true, wanted);
    say_deck("ssprk3", "fields: [square, held], keep: [q, curved, square, held]");
    lock_and_unlock(NULL, wanted, false);
    setenv("TRL_MOCK_DEVICES", "2", 1);
    lock_and_unlock("run.placement=devices", wanted, trl_context_ranks(test_ctx) == 1);
    lock_and_unlock("run.placement=random:5", wanted, false);
    unsetenv("TRL_MOCK_DEVICES");
}
END_TEST

START_TEST(what_is_written_keeps_its_memory_and_is_evaluated_to_be_written)
{
    say_deck("euler", "fields: [square], keep: [square]");
    ck_ok(open_problem());
    ck_ok(trl_simulation_initialise(sim));
    const int64_t bytes = bytes_now(0);
    ck_ok(trl_simulation_unlock(sim, field_index("square")));
    ck_assert_int_eq(bytes_now(0), bytes);
    ck_ok(trl_simulation_step(sim));
    ck_assert(!is_square());
    ck_ok(trl_simulation_observe(sim));
    ck_assert(is_square());
    ck_ok(trl_simulation_lock(sim, field_index("square")));
    ck_ok(trl_simulation_step(sim));
    ck_assert(is_square());
    close_problem();
}
END_TEST

START_TEST(only_what_is_kept_is_locked)
{
    say_deck("euler", "fields: [T, curved], keep: [q]");
    ck_ok(open_problem());
    ck_fails(trl_simulation_lock(sim, field_index("curved")), TRL_ERR_USAGE,
             "'curved' is not kept, and cannot be locked or unlocked; add it to output.keep");
    test_clear();
    ck_fails(trl_simulation_unlock(sim, -1), TRL_ERR_USAGE, "field -1 of 5 cannot be locked or unlocked");
    test_clear();
    ck_ok(trl_simulation_unlock(sim, field_index("T"))); /* an equation is current anyway */
    ck_ok(trl_simulation_initialise(sim));
    (void)hash_of("T");
    close_problem();
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, has_the_values_of_an_output_after_each_step_in_every_way);
    tcase_add_test(tc, is_the_formula_of_the_values_after_whatever_changed_them);
    tcase_add_test(tc, is_shown_as_kept_and_written_only_if_it_is_output);
    tcase_add_test(tc, unlocked_fields_have_no_memory_and_locked_ones_their_values_wherever_these_are);
    tcase_add_test(tc, what_is_written_keeps_its_memory_and_is_evaluated_to_be_written);
    tcase_add_test(tc, only_what_is_kept_is_locked);
}

TRL_TEST_MAIN("keep", add_tests)
