/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The workers of a problem: split as the deck says, or adapting. */
// ctest: np=1,2
#include "../expressions/problem_fixture.h"

static trl_err open_with(const char *scheduler, const char *threads)
{
    char of_scheduler[64], of_threads[64];
    const char *const set[] = {of_scheduler, of_threads};
    trl_err err = TRL_OK;
    snprintf(of_scheduler, sizeof of_scheduler, "run.scheduler=%s", scheduler);
    snprintf(of_threads, sizeof of_threads, "run.threads=%s", threads);
    new_deck();
    say("grid: {cells: [96, 128], periodic: [true, true]}\nequations: {T: {initial: \"sin(2*pi*x)\", ddt: "
        "\"laplacian(T)\"}}\n"
        "time: {dt: 1e-6, steps: 30}\n");
    close_problem();
    TRL_TRY(trl_context_set_threads(test_ctx, 3));
    TRL_TRY(open_problem_with(2, set));
done:
    return err;
}

static void check_workers(int tasks, int operators)
{
    trl_simulation_stats stats;
    trl_simulation_get_stats(sim, &stats);
    ck_assert_int_eq(stats.task_workers, tasks);
    ck_assert_int_eq(stats.operator_workers, operators);
}

static void append_line(void *data, const char *line)
{
    char *text = data;
    size_t used = strlen(text);
    snprintf(text + used, 4096 - used, "%s\n", line);
}

static void check_plan(const char *line)
{
    char text[4096] = "";
    ck_ok(trl_simulation_describe(sim, false, append_line, text));
    ck_assert_msg(strstr(text, line) != NULL, "no '%s' in\n%s", line, text);
}

/* The warnings about something, of which there are n; the last one is kept. */
static int count_warnings(const char *about, char *last, size_t size)
{
    const trl_diagnostic *list;
    int n = trl_context_diagnostics(test_ctx, &list), found = 0;
    for (int i = 0; i < n; ++i)
        if (list[i].severity == TRL_WARNING && strstr(list[i].text, about)) {
            ++found;
            snprintf(last, size, "%s", list[i].text);
        }
    return found;
}

START_TEST(a_split_of_the_deck_stays_through_all_runs)
{
    static const char *const schedulers[] = {"priority", "hybrid"};
    for (int s = 0; s < 2; ++s)
        for (int tasks = 0; tasks <= 3; ++tasks) {
            char split[64], line[96];
            snprintf(split, sizeof split, "{tasks: %d, operators: %d}", tasks, 3 - tasks);
            snprintf(line, sizeof line, "workers      3 per rank: %d for tasks, %d for operators, policy %s", tasks,
                     3 - tasks, schedulers[s]);
            ck_ok(open_with(schedulers[s], split));
            check_plan(line);
            ck_ok(run_steps(30));
            check_workers(tasks, 3 - tasks);
        }
    close_problem();
}
END_TEST

START_TEST(workers_that_were_not_split_adapt)
{
    char text[256];
    ck_ok(open_with("priority", "3"));
    check_plan("workers      3 per rank, policy priority\n");
    check_workers(3, 0);
    ck_ok(run_steps(30));
    trl_simulation_stats stats;
    trl_simulation_get_stats(sim, &stats);
    ck_assert_int_eq(stats.task_workers + stats.operator_workers, 3);
    ck_assert_int_ge(stats.task_workers, 1);
    ck_assert_int_eq(count_warnings("split", text, sizeof text), 0);
    close_problem();
}
END_TEST

START_TEST(a_split_that_the_scheduler_cannot_have_is_a_warning)
{
    char text[256];
    trl_context_clear_diagnostics(test_ctx);
    ck_ok(open_with("serial", "{tasks: 1, operators: 2}"));
    ck_assert_int_eq(count_warnings("split", text, sizeof text), 1);
    ck_assert_str_eq(text, "the split is not used: scheduler 'serial' has 1 worker, not 1 + 2");
    check_plan("workers      1 per rank, policy serial\n");
    ck_ok(run_steps(1));
    check_workers(1, 0);
    trl_context_clear_diagnostics(test_ctx);
    ck_ok(open_with("serial", "{tasks: 1, operators: 0}"));
    ck_assert_int_eq(count_warnings("split", text, sizeof text), 0);
    trl_context_clear_diagnostics(test_ctx);
    close_problem();
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, a_split_of_the_deck_stays_through_all_runs);
    tcase_add_test(tc, workers_that_were_not_split_adapt);
    tcase_add_test(tc, a_split_that_the_scheduler_cannot_have_is_a_warning);
}

TRL_TEST_MAIN("pools", add_tests)
