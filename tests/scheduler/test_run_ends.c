// ctest: np=1
/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Runs that do not end well: a task fails, the run is cancelled, or it stalls. Then what is said, and that the graph
 * runs again. */
#include "trl_test.h"

#include "context_impl.h"
#include "policy_settings.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

/* What a task does when called, and how often it was. */
typedef struct action {
    _Atomic int calls, failed_calls;
    trl_err result;
    const char *message; /* NULL: none */
    trl_graph *cancels;
    trl_task signals; /* `count` times, if that is not 0 */
    int64_t count;
} action;

static trl_err act(void *data, const trl_task_args *args, bool *done)
{
    action *a = data;
    (void)done;
    atomic_fetch_add(&a->calls, 1);
    if (args->failed) atomic_fetch_add(&a->failed_calls, 1);
    if (a->message) (void)trl_fail(test_ctx, a->result, NULL, "%s", a->message);
    if (a->cancels) trl_graph_cancel(a->cancels);
    return a->count ? trl_run_signal_task(args->run, a->signals, a->count) : a->result;
}

static trl_task add(trl_graph *graph, const char *name, action *a, trl_task_desc desc)
{
    trl_task task;
    desc.name = name;
    desc.variant[TRL_KIND_CPU].run = act;
    desc.data = a;
    desc.chunks = desc.chunks ? desc.chunks : 1;
    ck_ok(trl_graph_add_task(graph, &desc, &task));
    return task;
}

/* The errors (there may be warnings) are exactly this one. */
static void check_message(const char *text)
{
    const trl_diagnostic *d;
    int errors = 0, n = trl_context_diagnostics(test_ctx, &d);
    for (int i = 0; i < n; ++i) {
        if (d[i].severity != TRL_ERROR) continue;
        ck_assert_str_eq(d[i].text, text);
        ++errors;
    }
    ck_assert_msg(errors == 1, "%d errors: %s", errors, test_messages());
    trl_context_clear_diagnostics(test_ctx);
}

/* ---- failures ---- */

START_TEST(a_task_that_fails_without_a_message_is_named)
{
    trl_workers *workers = make_workers(&settings[_i]);
    trl_graph *graph;
    action good = {.result = TRL_OK}, bad = {.result = TRL_ERR_NUMERICS};
    char text[256];
    ck_ok(trl_graph_create(test_ctx, "step", &graph));
    trl_task first = add(graph, "first", &good, (trl_task_desc){.type = 0});
    trl_task second = add(graph, "blow up", &bad, (trl_task_desc){.chunks = _i % 2 ? 3 : 1});
    trl_task third = add(graph, "third", &good, (trl_task_desc){.type = 0});
    ck_ok(trl_graph_add_dependency(graph, first, second));
    ck_ok(trl_graph_add_dependency(graph, second, third));
    ck_ok(trl_graph_freeze(graph));
    ck_assert_ptr_null(trl_graph_failed_task(graph)); /* there was no run */
    for (int run = 0; run < 2; ++run) {
        ck_assert_int_eq(trl_graph_run(graph, workers, NULL), TRL_ERR_NUMERICS);
        ck_assert_str_eq(trl_graph_failed_task(graph), "blow up");
        snprintf(text, sizeof text, "task 'blow up' of graph 'step' failed: %s", trl_err_meaning(TRL_ERR_NUMERICS));
        check_message(text);
    }
    ck_assert_int_eq(atomic_load(&good.calls), 2);
    bad.result = TRL_OK;
    ck_ok(trl_graph_run(graph, workers, NULL));
    ck_assert_ptr_null(trl_graph_failed_task(graph));
    ck_assert_str_eq(test_messages(), "");
    ck_assert_int_eq(atomic_load(&good.calls), 4);
    trl_graph_destroy(&graph);
    trl_workers_destroy(&workers);
}
END_TEST

START_TEST(a_task_that_says_why_it_fails_has_the_only_word)
{
    trl_workers *workers = make_workers(&settings[_i]);
    trl_graph *graph;
    action bad = {.result = TRL_ERR_IO, .message = "the disk is full"};
    ck_ok(trl_graph_create(test_ctx, "step", &graph));
    add(graph, "write", &bad, (trl_task_desc){.type = 0});
    ck_ok(trl_graph_freeze(graph));
    trl_warn(test_ctx, NULL, "a message of before"); /* explains nothing */
    ck_assert_int_eq(trl_graph_run(graph, workers, NULL), TRL_ERR_IO);
    ck_assert_ptr_null(strstr(test_messages(), "task 'write'"));
    ck_assert_ptr_nonnull(strstr(test_messages(), "the disk is full"));
    ck_assert_str_eq(trl_graph_failed_task(graph), "write");
    bad.message = NULL;
    ck_fails(trl_graph_run(graph, workers, NULL), TRL_ERR_IO, "task 'write' of graph 'step' failed: ");
    trl_graph_destroy(&graph);
    trl_workers_destroy(&workers);
}
END_TEST

START_TEST(the_name_of_a_failed_task_is_not_cut)
{
    trl_workers *workers = make_workers(&settings[0]);
    trl_graph *graph;
    action bad = {.result = TRL_ERR_IO};
    char name[301];
    memset(name, 'x', 300);
    name[300] = 0;
    ck_ok(trl_graph_create(test_ctx, "step", &graph));
    add(graph, name, &bad, (trl_task_desc){.type = 0});
    ck_ok(trl_graph_freeze(graph));
    ck_assert_int_eq(trl_graph_run(graph, workers, NULL), TRL_ERR_IO);
    trl_workers_destroy(&workers);
    ck_assert_str_eq(trl_graph_failed_task(graph), name);
    trl_graph_destroy(&graph);
}
END_TEST

/* ---- cancelling ---- */

START_TEST(a_cancelled_run_calls_only_always_tasks_and_the_graph_runs_again)
{
    trl_workers *workers = make_workers(&settings[_i]);
    trl_graph *graph;
    action cancels = {.result = TRL_OK}, normal = {.result = TRL_OK}, always = {.result = TRL_OK};
    ck_ok(trl_graph_create(test_ctx, "step", &graph));
    trl_task first = add(graph, "cancels", &cancels, (trl_task_desc){.type = 0});
    trl_task second = add(graph, "normal", &normal, (trl_task_desc){.type = 0});
    trl_task third = add(graph, "always", &always, (trl_task_desc){.flags = TRL_TASK_ALWAYS});
    ck_ok(trl_graph_add_dependency(graph, first, second));
    ck_ok(trl_graph_add_dependency(graph, second, third));
    trl_graph_cancel(graph); /* no run is in progress: nothing happens */
    ck_ok(trl_graph_freeze(graph));
    trl_graph_cancel(graph);
    for (int round = 1; round <= 3; ++round) {
        cancels.cancels = NULL;
        ck_ok(trl_graph_run(graph, workers, NULL));
        ck_assert_int_eq(atomic_load(&normal.calls), round);
        trl_graph_cancel(graph);
        cancels.cancels = graph;
        ck_assert_int_eq(trl_graph_run(graph, workers, NULL), TRL_ERR_INTERRUPTED);
        check_message("the run of graph 'step' was cancelled");
        ck_assert_ptr_null(trl_graph_failed_task(graph));
        ck_assert_int_eq(atomic_load(&normal.calls), round);
        ck_assert_int_eq(atomic_load(&always.calls), (int64_t)2 * round);
        ck_assert_int_eq(atomic_load(&always.failed_calls), round);
    }
    trl_graph_destroy(&graph);
    trl_workers_destroy(&workers);
}
END_TEST

START_TEST(an_error_before_a_cancellation_wins)
{
    trl_workers *workers = make_workers(&settings[_i]);
    trl_graph *graph;
    action bad = {.result = TRL_ERR_IO}, cancels = {.result = TRL_OK};
    ck_ok(trl_graph_create(test_ctx, "step", &graph));
    trl_task first = add(graph, "bad", &bad, (trl_task_desc){.type = 0});
    trl_task second = add(graph, "cancels", &cancels, (trl_task_desc){.flags = TRL_TASK_ALWAYS});
    ck_ok(trl_graph_add_dependency(graph, first, second));
    ck_ok(trl_graph_freeze(graph));
    cancels.cancels = graph;
    ck_assert_int_eq(trl_graph_run(graph, workers, NULL), TRL_ERR_IO);
    ck_assert_str_eq(trl_graph_failed_task(graph), "bad");
    trl_graph_destroy(&graph);
    trl_workers_destroy(&workers);
}
END_TEST

typedef struct other_thread {
    trl_graph *graph;
    _Atomic bool started;
} other_thread;

/* Waits for ever, unless the run fails. */
static trl_err poll_until_failed(void *data, const trl_task_args *args, bool *done)
{
    other_thread *o = data;
    atomic_store(&o->started, true);
    *done = args->failed;
    return TRL_OK;
}

static void *cancel_when_started(void *data)
{
    other_thread *o = data;
    while (!atomic_load(&o->started)) sched_yield();
    trl_graph_cancel(o->graph);
    return NULL;
}

START_TEST(another_thread_can_cancel_a_run)
{
    trl_workers *workers = make_workers(&settings[_i]);
    other_thread o = {.started = false};
    trl_task task;
    ck_ok(trl_graph_create(test_ctx, "step", &o.graph));
    trl_task_desc desc = {
        .name = "poll", .variant = {{poll_until_failed}}, .data = &o, .chunks = 1, .flags = TRL_TASK_POLL};
    ck_ok(trl_graph_add_task(o.graph, &desc, &task));
    ck_ok(trl_graph_freeze(o.graph));
    for (int run = 0; run < 5; ++run) {
        pthread_t thread;
        atomic_store(&o.started, false);
        ck_assert_int_eq(pthread_create(&thread, NULL, cancel_when_started, &o), 0);
        trl_err err = trl_graph_run(o.graph, workers, NULL);
        pthread_join(thread, NULL);
        ck_assert_int_eq(err, TRL_ERR_INTERRUPTED);
        check_message("the run of graph 'step' was cancelled");
    }
    trl_graph_destroy(&o.graph);
    trl_workers_destroy(&workers);
}
END_TEST

/* ---- stalls ---- */

START_TEST(a_run_that_stalls_says_who_waits_and_the_graph_runs_when_signalled)
{
    trl_workers *workers = make_workers(&settings[_i]);
    trl_graph *graph;
    action gives = {.result = TRL_OK}, waits = {.result = TRL_OK}, after = {.result = TRL_OK};
    ck_ok(trl_graph_create(test_ctx, "step", &graph));
    trl_task giver = add(graph, "giver", &gives, (trl_task_desc){.type = 0});
    trl_task waiter = add(graph, "waiter", &waits, (trl_task_desc){.signals = 3});
    ck_ok(trl_graph_add_dependency(graph, waiter, add(graph, "after", &after, (trl_task_desc){.type = 0})));
    ck_ok(trl_graph_add_dependency(graph, giver, waiter));
    ck_ok(trl_graph_freeze(graph));
    gives.signals = waiter;
    for (int round = 1; round <= 3; ++round) {
        gives.count = 0;
        ck_assert_int_eq(trl_graph_run(graph, workers, NULL), TRL_ERR_USAGE);
        check_message(
            "graph 'step' is stalled: nothing can run and 2 tasks are left; 'waiter' waits for 3 more signals");
        ck_assert_ptr_null(trl_graph_failed_task(graph));
        gives.count = 1;
        ck_assert_int_eq(trl_graph_run(graph, workers, NULL), TRL_ERR_USAGE);
        check_message(
            "graph 'step' is stalled: nothing can run and 2 tasks are left; 'waiter' waits for 2 more signals");
        ck_assert_int_eq(atomic_load(&waits.calls), round - 1);
        gives.count = 3;
        ck_ok(trl_graph_run(graph, workers, NULL));
        ck_assert_int_eq(atomic_load(&waits.calls), round);
        ck_assert_int_eq(atomic_load(&after.calls), round);
    }
    ck_assert_int_eq(atomic_load(&gives.calls), 9);
    trl_graph_destroy(&graph);
    trl_workers_destroy(&workers);
}
END_TEST

/* The error is the reason, not that nobody signals any more. */
START_TEST(after_an_error_a_run_does_not_stall)
{
    trl_workers *workers = make_workers(&settings[_i]);
    trl_graph *graph;
    action gives = {.result = TRL_ERR_IO}, waits = {.result = TRL_OK};
    ck_ok(trl_graph_create(test_ctx, "step", &graph));
    add(graph, "giver", &gives, (trl_task_desc){.type = 0});
    gives.signals = add(graph, "waiter", &waits, (trl_task_desc){.signals = 1});
    ck_ok(trl_graph_freeze(graph));
    for (int round = 1; round <= 3; ++round) {
        gives.count = 0;
        ck_assert_int_eq(trl_graph_run(graph, workers, NULL), TRL_ERR_IO);
        ck_assert_str_eq(trl_graph_failed_task(graph), "giver");
        ck_assert_ptr_null(strstr(test_messages(), "stalled"));
        gives.count = 1;
        ck_ok(trl_graph_run(graph, workers, NULL));
        ck_assert_int_eq(atomic_load(&waits.calls), round);
    }
    trl_graph_destroy(&graph);
    trl_workers_destroy(&workers);
}
END_TEST

START_TEST(refuses_more_signals_than_a_task_waits_for)
{
    static const int64_t bad[] = {3, -1, INT64_MAX, (int64_t)1 << 32};
    trl_workers *workers = make_workers(&settings[_i]);
    trl_graph *graph;
    action gives = {.result = TRL_OK}, waits = {.result = TRL_OK};
    ck_ok(trl_graph_create(test_ctx, "step", &graph));
    trl_task giver = add(graph, "giver", &gives, (trl_task_desc){.type = 0});
    trl_task waiter = add(graph, "waiter", &waits, (trl_task_desc){.signals = 2});
    ck_ok(trl_graph_freeze(graph));
    gives.signals = waiter;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i) {
        char text[128];
        gives.count = bad[i];
        snprintf(text, sizeof text, "graph 'step': task 'waiter' is signalled %lld times, but it waits for less",
                 (long long)bad[i]);
        ck_assert_int_eq(trl_graph_run(graph, workers, NULL), TRL_ERR_USAGE);
        check_message(text);
        ck_assert_str_eq(trl_graph_failed_task(graph), "giver");
    }
    gives.signals = giver; /* waits for none */
    gives.count = 1;
    ck_fails(trl_graph_run(graph, workers, NULL), TRL_ERR_USAGE, "task 'giver' is signalled 1 times");
    gives.signals = waiter + 1;
    ck_fails(trl_graph_run(graph, workers, NULL), TRL_ERR_USAGE, "it belongs to another graph or to none");
    ck_assert_int_eq(atomic_load(&waits.calls), 0);
    gives.signals = waiter;
    gives.count = 2;
    ck_ok(trl_graph_run(graph, workers, NULL));
    ck_assert_int_eq(atomic_load(&waits.calls), 1);
    trl_graph_destroy(&graph);
    trl_workers_destroy(&workers);
}
END_TEST

/* Signals and predecessors from all workers at once. */
START_TEST(signals_of_many_tasks_and_predecessors_meet)
{
    enum { GIVERS = 200, RUNS = 20 };
    trl_workers *workers = make_workers(&settings[_i]);
    trl_graph *graph;
    action gives = {.count = 1}, waits = {.result = TRL_OK}, before = {.result = TRL_OK};
    ck_ok(trl_graph_create(test_ctx, "meeting", &graph));
    gives.signals = add(graph, "waiter", &waits, (trl_task_desc){.signals = GIVERS});
    for (int i = 0; i < GIVERS; ++i) {
        add(graph, "giver", &gives, (trl_task_desc){.type = 0});
        trl_task task = add(graph, "before", &before, (trl_task_desc){.type = 0});
        ck_ok(trl_graph_add_dependency(graph, task, gives.signals));
    }
    ck_ok(trl_graph_freeze(graph));
    for (int run = 1; run <= RUNS; ++run) {
        ck_ok(trl_graph_run(graph, workers, NULL));
        ck_assert_int_eq(atomic_load(&waits.calls), run);
    }
    trl_graph_destroy(&graph);
    trl_workers_destroy(&workers);
}
END_TEST

/* ---- errors that are forgiven ---- */

static void *forgive_all(void *data)
{
    (void)data;
    trli_diagnostics_forgive(test_ctx, 0);
    return NULL;
}

static int count_errors(void)
{
    const trl_diagnostic *d;
    int errors = 0, n = trl_context_diagnostics(test_ctx, &d);
    for (int i = 0; i < n; ++i) errors += d[i].severity == TRL_ERROR;
    return errors;
}

/* Errors of many tasks, by whichever worker, belong to the thread that runs the graph. */
START_TEST(errors_of_a_run_are_forgiven_by_the_thread_that_made_it_and_by_no_other)
{
    enum { RUNS = 12 };
    trl_workers *workers = make_workers(&settings[_i]);
    trl_graph *graph;
    action bad = {.result = TRL_ERR_NUMERICS, .message = "too hot"};
    pthread_t other;
    ck_ok(trl_graph_create(test_ctx, "step", &graph));
    for (int i = 0; i < 20; ++i) (void)add(graph, "bad", &bad, (trl_task_desc){.flags = TRL_TASK_ALWAYS});
    ck_ok(trl_graph_freeze(graph));
    for (int run = 0; run < RUNS; ++run) ck_assert_int_eq(trl_graph_run(graph, workers, NULL), TRL_ERR_NUMERICS);
    const int errors = count_errors();
    ck_assert_int_ge(errors, 20 * RUNS);
    ck_assert_int_eq(pthread_create(&other, NULL, forgive_all, NULL), 0);
    pthread_join(other, NULL);
    ck_assert_int_eq(count_errors(), errors);
    trli_diagnostics_forgive(test_ctx, 0);
    ck_assert_int_eq(count_errors(), 0);
    trl_graph_destroy(&graph);
    trl_workers_destroy(&workers);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_loop_test(tc, errors_of_a_run_are_forgiven_by_the_thread_that_made_it_and_by_no_other, 0, SETTINGS);
    tcase_add_loop_test(tc, a_task_that_fails_without_a_message_is_named, 0, SETTINGS);
    tcase_add_loop_test(tc, a_task_that_says_why_it_fails_has_the_only_word, 0, SETTINGS);
    tcase_add_test(tc, the_name_of_a_failed_task_is_not_cut);
    tcase_add_loop_test(tc, a_cancelled_run_calls_only_always_tasks_and_the_graph_runs_again, 0, SETTINGS);
    tcase_add_loop_test(tc, an_error_before_a_cancellation_wins, 0, SETTINGS);
    tcase_add_loop_test(tc, another_thread_can_cancel_a_run, 0, SETTINGS);
    tcase_add_loop_test(tc, a_run_that_stalls_says_who_waits_and_the_graph_runs_when_signalled, 0, SETTINGS);
    tcase_add_loop_test(tc, after_an_error_a_run_does_not_stall, 0, SETTINGS);
    tcase_add_loop_test(tc, refuses_more_signals_than_a_task_waits_for, 0, SETTINGS);
    tcase_add_loop_test(tc, signals_of_many_tasks_and_predecessors_meet, 0, SETTINGS);
}

TRL_TEST_MAIN("run_ends", add_tests)
