// ctest: np=1
/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Policies from shared objects: what they see, in which order they are called, and which are refused. Their runs are
 * tested with those of the built-in policies in test_policies.c. */
#include "trl_test.h"

#include <trl_policy.h>
#include <unistd.h>

#define LIFO TRL_TEST_PLUGIN_DIR "/policy_lifo.so"
#define WITNESS TRL_TEST_PLUGIN_DIR "/policy_witness.so"
#define BAD TRL_TEST_PLUGIN_DIR "/policy_bad.so"

typedef struct journal {
    int entry[64];
    _Atomic int count; /* several workers write notes */
} journal;

typedef struct note {
    journal *journal;
    int number;
    trl_err result;
} note;

static trl_err write_note(void *data, const trl_task_args *args, bool *done)
{
    note *n = data;
    (void)args;
    (void)done;
    n->journal->entry[n->journal->count++ % 64] = n->number;
    return n->result;
}

static trl_workers *make_workers(const char *policy, int threads)
{
    trl_workers *workers;
    ck_ok(trl_context_set_threads(test_ctx, threads));
    ck_ok(trl_workers_create(test_ctx, policy, &workers));
    ck_assert_str_eq(trl_workers_policy(workers), policy);
    return workers;
}

/* A root, three tasks after it and one after those; costs 1, 3, 2, 1, 1. */
static trl_graph *make_fork(journal *j, note notes[5])
{
    static const double costs[] = {1.0, 3.0, 2.0, 1.0, 1.0};
    trl_graph *graph;
    trl_task task[5];
    ck_ok(trl_graph_create(test_ctx, "fork", &graph));
    for (int i = 0; i < 5; ++i) {
        notes[i] = (note){j, i, TRL_OK};
        trl_task_desc desc = {.name = "t", .variant = {{write_note}}, .data = &notes[i], .chunks = 1, .cost = costs[i]};
        ck_ok(trl_graph_add_task(graph, &desc, &task[i]));
    }
    for (int i = 1; i < 4; ++i) {
        ck_ok(trl_graph_add_dependency(graph, task[0], task[i]));
        ck_ok(trl_graph_add_dependency(graph, task[i], task[4]));
    }
    ck_ok(trl_graph_freeze(graph));
    return graph;
}

/* It is given the most urgent one first. */
START_TEST(a_policy_from_a_file_decides_the_order)
{
    const int expected[] = {0, 3, 2, 1, 4};
    journal j = {.count = 0};
    note notes[5];
    trl_graph *graph = make_fork(&j, notes);
    trl_workers *workers = make_workers(LIFO, 1);
    ck_ok(trl_graph_run(graph, workers, NULL));
    trl_graph_destroy(&graph);
    trl_workers_destroy(&workers);
    ck_assert_int_eq(j.count, 5);
    ck_assert_mem_eq(j.entry, expected, sizeof expected);
}
END_TEST

START_TEST(workers_may_go_before_the_graph_that_they_ran)
{
    journal j = {.count = 0};
    note notes[5];
    trl_memory_stats before, after;
    trl_memory_get_stats(test_ctx, &before);
    trl_graph *graph = make_fork(&j, notes);
    for (int i = 0; i < 3; ++i) {
        trl_workers *workers = make_workers(i == 1 ? "priority" : LIFO, 1);
        ck_ok(trl_graph_run(graph, workers, NULL));
        trl_workers_destroy(&workers);
    }
    ck_assert_int_eq(j.count, 15);
    trl_graph_destroy(&graph);
    trl_memory_get_stats(test_ctx, &after);
    ck_assert_uint_eq(before.bytes, after.bytes);
}
END_TEST

START_TEST(a_policy_sees_the_graph_and_is_called_in_the_order_that_is_documented)
{
    journal j = {.count = 0};
    note notes[5];
    trl_graph *graph = make_fork(&j, notes);
    trl_workers *workers = make_workers(WITNESS, 2);
    trl_err err[6];
    ck_assert_int_eq(trl_workers_count(workers), 1);
    for (int run = 0; run < 6; ++run) {
        notes[2].result = run == 2 ? TRL_ERR_IO : TRL_OK;
        err[run] = trl_graph_run(graph, workers, NULL);
    }
    trl_graph_destroy(&graph);
    trl_workers_destroy(&workers);
    for (int run = 0; run < 6; ++run)
        ck_assert_msg(err[run] == (run == 2 ? TRL_ERR_IO : TRL_OK), "run %d: %s: %s", run, trl_err_name(err[run]),
                      test_messages());
}
END_TEST

START_TEST(a_policy_that_cannot_be_set_up_fails_the_run_and_leaves_nothing)
{
    journal j = {.count = 0};
    note notes[5];
    trl_memory_stats before, after;
    unsetenv("TRL_TEST_POLICY");
    trl_memory_get_stats(test_ctx, &before);
    trl_graph *graph = make_fork(&j, notes);
    trl_workers *workers = make_workers(BAD, 2);
    ck_fails(trl_graph_run(graph, workers, NULL), TRL_ERR_DEVICE, "this policy wants another machine");
    trl_context_clear_diagnostics(test_ctx);
    ck_fails(trl_graph_prepare(graph, workers), TRL_ERR_DEVICE, "this policy wants another machine");
    trl_workers_destroy(&workers);
    ck_assert_int_eq(j.count, 0);
    workers = make_workers("priority", 2);
    ck_ok(trl_graph_run(graph, workers, NULL));
    ck_assert_int_eq(j.count, 5);
    trl_graph_destroy(&graph);
    trl_workers_destroy(&workers);
    trl_memory_get_stats(test_ctx, &after);
    ck_assert_uint_eq(before.bytes, after.bytes);
}
END_TEST

/* No workers are made, none are left behind, and the message is exactly this one. */
static void check_refused(const char *policy, const char *message)
{
    trl_workers *workers;
    const trl_diagnostic *d;
    trl_context_clear_diagnostics(test_ctx);
    ck_ok(trl_context_set_threads(test_ctx, 2));
    ck_assert_int_eq(trl_workers_create(test_ctx, policy, &workers), TRL_ERR_PLUGIN);
    ck_assert_ptr_null(workers);
    ck_assert_int_eq(trl_context_diagnostics(test_ctx, &d), 1);
    ck_assert_str_eq(d[0].text, message);
    ck_ok(trl_context_set_threads(test_ctx, 1));
}

/* A copy of the bad policy, which looks at the variable when it is loaded. */
static void check_bad(const char *what, const char *format)
{
    char path[] = "/tmp/trellis_policy_XXXXXX.so", message[256], command[512];
    int file = mkstemps(path, 3);
    ck_assert_int_ge(file, 0);
    close(file);
    snprintf(command, sizeof command, "cp '%s' '%s'", BAD, path);
    ck_assert_int_eq(system(command), 0);
    snprintf(message, sizeof message, format, path, what);
    setenv("TRL_TEST_POLICY", what, 1);
    check_refused(path, message);
    unsetenv("TRL_TEST_POLICY");
    unlink(path);
}

START_TEST(refuses_a_policy_of_another_abi_or_size)
{
    char message[256];
    snprintf(message, sizeof message, "policy '%%s' has abi 8 and size %zu, this Trellis has 2 and %zu: rebuild it",
             sizeof(trl_policy), sizeof(trl_policy));
    check_bad("abi", message);
    snprintf(message, sizeof message, "policy '%%s' has abi 2 and size 8, this Trellis has 2 and %zu: rebuild it",
             sizeof(trl_policy));
    check_bad("size", message);
}
END_TEST

START_TEST(refuses_a_policy_without_a_required_member)
{
    static const char *const members[] = {"name", "setup", "teardown", "ready", "take", "holds"};
    for (size_t i = 0; i < sizeof members / sizeof *members; ++i)
        check_bad(members[i], "policy '%s' lacks the required member '%s'");
}
END_TEST

START_TEST(refuses_a_library_that_exports_no_policy)
{
    check_refused(TRL_TEST_PLUGIN_DIR "/no_entry.so",
                  "'" TRL_TEST_PLUGIN_DIR "/no_entry.so' is no policy plugin: it exports neither "
                  "trl_policy_plugin nor trl_placement_plugin");
}
END_TEST

START_TEST(refuses_a_file_that_is_no_library_or_is_not_there)
{
    char path[] = "/tmp/trellis_policy_XXXXXX.so", message[256];
    int file = mkstemps(path, 3);
    ck_assert_int_ge(file, 0);
    ck_assert_int_eq((int)write(file, "a policy\n", 9), 9);
    close(file);
    snprintf(message, sizeof message, "cannot load policy '%s': %s: file too short", path, path);
    check_refused(path, message);
    unlink(path);
    check_refused(
        "/nowhere/policy.so",
        "cannot load policy '/nowhere/policy.so': /nowhere/policy.so: cannot open shared object file: No such "
        "file or directory");
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, a_policy_from_a_file_decides_the_order);
    tcase_add_test(tc, a_policy_sees_the_graph_and_is_called_in_the_order_that_is_documented);
    tcase_add_test(tc, a_policy_that_cannot_be_set_up_fails_the_run_and_leaves_nothing);
    tcase_add_test(tc, refuses_a_policy_of_another_abi_or_size);
    tcase_add_test(tc, refuses_a_policy_without_a_required_member);
    tcase_add_test(tc, refuses_a_library_that_exports_no_policy);
    tcase_add_test(tc, refuses_a_file_that_is_no_library_or_is_not_there);
    tcase_add_test(tc, workers_may_go_before_the_graph_that_they_ran);
}

TRL_TEST_MAIN("policy_plugins", add_tests)
