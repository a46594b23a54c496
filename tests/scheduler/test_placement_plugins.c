// ctest: np=1 labels=threads
/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Placement policies from shared objects: what they see and decide, which are refused, and what becomes of runs whose
 * policy fails. Their runs are tested with those of built-in ones in test_placed_graphs.c. */
#include "trl_test.h"

#include <trl_policy.h>
#include <unistd.h>

#include "app_support.h"
#include "mock_support.h"

#include "placed_data.h"

#include "placed_graph.h"

#include "placed_maker.h"

#include "placed_plain.h"

#define GREEDY TRL_TEST_PLUGIN_DIR "/placement_greedy.so"
#define BAD TRL_TEST_PLUGIN_DIR "/placement_bad.so"

enum { SEEDS = 40, RUNS = 12 };

static trl_workers *make_plugin_workers(const char *path)
{
    trl_workers *workers = make_workers(&(setting){path, 2});
    ck_ok(trl_workers_set_devices(workers, devices));
    return workers;
}

/* ---- a graph by hand: `make` is twice as fast on the device; `look` reads 1 MB that it made; `local` has no variant
 * for devices, and `peek` reads what it made ---- */

static trl_err nothing(void *data, const trl_task_args *args, bool *done)
{
    (void)data, (void)args, (void)done;
    return TRL_OK;
}

static void add(trl_graph *graph, const char *name, bool on_devices, double cost, trl_handle handle, trl_access mode)
{
    trl_task task;
    const trl_task_desc desc = {
        .name = name,
        .variant = {[TRL_KIND_CPU] = {nothing}, [TRL_KIND_MOCK] = {on_devices ? nothing : NULL}},
        .chunks = 1,
        .cost = cost};
    ck_ok(trl_graph_add_task(graph, &desc, &task));
    ck_ok(trl_graph_add_access(graph, task, handle, mode));
}

static trl_graph *make_by_hand(void)
{
    trl_graph *graph;
    trl_handle big, small;
    ck_ok(trl_graph_create(test_ctx, "by hand", &graph));
    ck_ok(trl_graph_add_handle(graph, &(trl_handle_desc){.name = "big", .bytes = 1000000, .block = 0}, &big));
    ck_ok(trl_graph_add_handle(graph, &(trl_handle_desc){.name = "small", .bytes = 8, .block = 1}, &small));
    add(graph, "make", true, 1e-3, big, TRL_WRITE);
    add(graph, "look", true, 1e-4, big, TRL_READ);
    add(graph, "local", false, 1e-5, small, TRL_WRITE);
    add(graph, "peek", true, 1e-4, small, TRL_READ);
    ck_ok(trl_graph_freeze(graph));
    return graph;
}

/* What plans say of the graph. */
static char *placement_text(trl_graph *graph, trl_workers *workers, bool file)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    ck_assert_ptr_nonnull(out);
    ck_ok(file ? trl_graph_write_placement_file(graph, workers, out) : trl_graph_write_placement(graph, workers, out));
    fclose(out);
    return text;
}

START_TEST(a_placement_policy_from_a_file_decides_by_times_and_copies)
{
    trl_graph *graph = make_by_hand();
    open_mocks("1:speed=2,latency=1ms,rate=1G");
    trl_workers *workers = make_plugin_workers(GREEDY);
    ck_assert(trl_workers_places(workers));
    ck_assert_str_eq(trl_workers_policy(workers), GREEDY);
    ck_assert_str_eq(trl_workers_running_policy(workers), "priority"); /* it brings no queues */
    char *lines = placement_text(graph, workers, true), *plan = placement_text(graph, workers, false);
    ck_assert_ptr_nonnull(strstr(plan, "greedy"));
    ck_assert_msg(strstr(lines, "make                        1  device 0\n") &&
                      strstr(lines, "look                        1  device 0\n") && /* big is there */
                      strstr(lines, "local                       1  workers\n") &&
                      strstr(lines, "peek                        1  workers\n"), /* a copy would take 1 ms */
                  "%s", lines);
    free(lines);
    free(plan);
    ck_ok(trl_workers_set_placement(workers, "finish_time")); /* who names a rule gets that */
    plan = placement_text(graph, workers, false);
    ck_assert_ptr_null(strstr(plan, "greedy"));
    free(plan);
    trl_graph_destroy(&graph);
    trl_workers_destroy(&workers);
    close_mocks();
}
END_TEST

/* ---- what is refused ---- */

/* A copy of the bad policy, which looks at the variable when it is loaded. */
static void check_refused(const char *what, const char *format, const char *more)
{
    char path[] = "/tmp/trellis_policy_XXXXXX.so", message[256], command[512];
    trl_workers *workers;
    int file = mkstemps(path, 3);
    ck_assert_int_ge(file, 0);
    close(file);
    snprintf(command, sizeof command, "cp '%s' '%s'", BAD, path);
    ck_assert_int_eq(system(command), 0);
    setenv("TRL_TEST_PLACEMENT", what, 1);
    snprintf(message, sizeof message, format, path, more);
    ck_fails(trl_workers_create(test_ctx, path, &workers), TRL_ERR_PLUGIN, message);
    ck_assert_ptr_null(workers);
    test_clear();
    unsetenv("TRL_TEST_PLACEMENT");
    unlink(path);
}

START_TEST(refuses_a_placement_policy_of_another_abi_or_size_or_without_a_required_member)
{
    char sizes[100];
    snprintf(sizes, sizeof sizes, "%zu, this Trellis has 2 and %zu: rebuild it", sizeof(trl_placement_policy),
             sizeof(trl_placement_policy));
    check_refused("abi", "policy '%s' has abi 1 and size %s", sizes);
    snprintf(sizes, sizeof sizes, "8, this Trellis has 2 and %zu: rebuild it", sizeof(trl_placement_policy));
    check_refused("size", "policy '%s' has abi 2 and size %s", sizes);
    check_refused("name", "policy '%s' lacks the required member '%s'", "name");
    check_refused("place", "policy '%s' lacks the required member '%s'", "place");
}
END_TEST

/* ---- what fails later ---- */

/* Before the first run by trl_graph_prepare; and in a run, which is made all the same, since other ranks may wait for
 * it, and is right. Returns whether the graph let the policy do wrong. */
static bool check_wrong(uint64_t seed, const char *what, const char *message)
{
    trl_workers *workers = make_plugin_workers(BAD);
    placed_graph *g = make_placed_graph(seed);
    data_frame *f = new_data_frame(g, g->nhandles, seed), *plain = new_data_frame(g, g->nhandles, seed);
    setenv("TRL_TEST_PLACEMENT", what, 1);
    const trl_err prepared = trl_graph_prepare(g->graph, workers);
    if (prepared != TRL_OK) {
        ck_assert_int_eq(prepared, TRL_ERR_PLUGIN);
        ck_assert_msg(strstr(test_messages(), message), "seed %d: %s", (int)seed, test_messages());
        test_clear();
    }
    int failures = 0;
    for (int run = 0; run < RUNS; ++run) {
        for (int i = 0; i < g->count; ++i) {
            atomic_store(&f->calls[i], 0);
            atomic_store(&f->where[i], 0);
        }
        const trl_err err = trl_graph_run(g->graph, workers, f);
        if (err != TRL_OK) {
            ck_assert_int_eq(err, TRL_ERR_PLUGIN);
            ck_assert_msg(strstr(test_messages(), message), "seed %d: %s", (int)seed, test_messages());
            ++failures;
            test_clear();
        }
        do_plainly(g, plain);
        for (int h = 0; h < g->nhandles; ++h)
            for (int s = 0; s < DATA_SPACES; ++s)
                for (int i = 0; f->valid[h] >> s & 1 && i < g->handle[h].words; ++i)
                    ck_assert_msg(*data_word(f, &g->handle[h], h, s, i) == *data_word(plain, &g->handle[h], h, 0, i),
                                  "seed %d, run %d: wrong data of a handle", (int)seed, run);
    }
    ck_assert_int_eq(failures, prepared != TRL_OK); /* it is left out then */
    unsetenv("TRL_TEST_PLACEMENT");
    free_data_frame(&f, g->nhandles);
    free_data_frame(&plain, g->nhandles);
    free_placed_graph(&g);
    trl_workers_destroy(&workers);
    return prepared != TRL_OK;
}

static const struct {
    const char *what, *message;
} wrongs[] = {
    {"", ""},
    {"executor", "on executor 9 of 2"},
    {"ineligible", "on executor 1, which may not do it (see `eligible`)"},
    {"unit", "which makes a value with it, on "},
    {"silence", "placement policy 'bad' failed (a value of the solution is not finite"},
    {"no setup", "this policy wants other graphs"},
};

START_TEST(a_policy_that_does_wrong_is_an_error_before_the_first_run_and_spoils_none)
{
    int caught = 0;
    open_mocks("1");
    for (uint64_t seed = 1; seed <= SEEDS / (APP_SANITIZED ? 4 : 1); ++seed)
        caught += check_wrong(seed, wrongs[_i].what, wrongs[_i].message);
    close_mocks();
    if (_i == 0)
        ck_assert_int_eq(caught, 0);
    else
        ck_assert_int_gt(caught, 0);
}
END_TEST

START_TEST(memory_that_does_not_suffice_is_an_error)
{
    trl_graph *graph = make_by_hand();
    open_mocks("1:bytes=1000");
    trl_workers *workers = make_plugin_workers(BAD);
    ck_assert_str_eq(trl_workers_running_policy(workers), BAD); /* with queues of its own */
    ck_fails(trl_graph_prepare(graph, workers), TRL_ERR_PLUGIN,
             "placement policy 'bad' puts more on an executor than its memory holds, of graph 'by hand' (see `bytes`)");
    trl_graph_destroy(&graph);
    trl_workers_destroy(&workers);
    close_mocks();
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, a_placement_policy_from_a_file_decides_by_times_and_copies);
    tcase_add_test(tc, refuses_a_placement_policy_of_another_abi_or_size_or_without_a_required_member);
    tcase_add_loop_test(tc, a_policy_that_does_wrong_is_an_error_before_the_first_run_and_spoils_none, 0,
                        sizeof wrongs / sizeof *wrongs);
    tcase_add_test(tc, memory_that_does_not_suffice_is_an_error);
}

TRL_TEST_MAIN("placement plugins", add_tests)
