// ctest: np=1 labels=threads
/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Data of spawned tasks in graphs that devices take part in: workers do them, and what they touch is on the host. That
 * this holds of any graph is tested in test_placed_graphs.c. */
#include "trl_test.h"

#include "app_support.h"
#include "mock_support.h"

enum { SPACES = 3, NEST = 3 };

/* A number in each memory. */
typedef struct numbers {
    double *at[SPACES];
    double host;
    uint32_t valid;
    trl_handle handle;
    trl_spawn_access access;
    trl_access outer, inner; /* of the task of the graph, and of the one that is spawned */
    bool scope;
    int depth, calls, space;
    double seen;
} numbers;

static trl_err provide_number(void *data, void *frame, int64_t key, int space)
{
    numbers *n = frame;
    void *memory;
    (void)data, (void)key;
    if (space == 0 || n->at[space]) return TRL_OK;
    const trl_err err = mock(space - 1)->ops->allocate(mock(space - 1), sizeof(double), &memory);
    if (err == TRL_OK) n->at[space] = memory;
    return err;
}

static int locate_number(void *data, void *frame, int64_t key, int32_t part, int space,
                         trl_memory_box piece[TRL_MEMORY_BOXES])
{
    numbers *n = frame;
    (void)data, (void)key, (void)part;
    piece[0] = (trl_memory_box){.at = n->at[space], .row = sizeof(double), .rows = 1, .planes = 1};
    return 1;
}

static uint32_t *valid_number(void *data, void *frame, int64_t key)
{
    (void)data, (void)key;
    return &((numbers *)frame)->valid;
}

/* A device makes the number 42. */
static trl_err make(void *data, const trl_task_args *args, bool *done)
{
    numbers *n = args->frame;
    (void)data, (void)done;
    *n->at[args->space] = 42;
    n->space = args->space;
    return TRL_OK;
}

/* What is spawned reads it, and counts it up if it may. */
static trl_err touch(void *data, const trl_task_args *args, bool *done)
{
    numbers *n = args->frame;
    (void)data, (void)done;
    if (args->space != 0) return TRL_ERR_BUG;
    n->seen = *n->at[0];
    if (n->inner != TRL_READ) *n->at[0] += 1;
    ++n->calls;
    return TRL_OK;
}

static trl_err spawn(void *data, const trl_task_args *args, bool *done)
{
    numbers *n = args->frame;
    (void)data, (void)done;
    const bool last = n->depth-- == 0;
    n->access = (trl_spawn_access){n->handle, n->inner};
    const trl_spawn_desc desc = {
        .name = last ? "touch" : "between",
        .variant = {[TRL_KIND_CPU] = {last ? touch : spawn}, [TRL_KIND_MOCK] = {last ? touch : spawn}},
        .naccesses = last,
        .accesses = &n->access};
    return trl_run_spawn(args->run, &desc, NULL);
}

/* A device makes the number, `outer` has it and spawns tasks that spawn one another, the last of which touches it, and
 * a device reads it. */
static trl_err run_numbers(numbers *n, const char *policy)
{
    trl_graph *graph;
    trl_workers *workers = make_workers(&(setting){policy, 2});
    trl_task task[3];
    static const trl_graph_memory memory = {NULL, provide_number, locate_number, valid_number};
    const trl_task_desc desc[3] = {
        {.name = "make", .variant = {[TRL_KIND_CPU] = {make}, [TRL_KIND_MOCK] = {make}}, .chunks = 1},
        {.name = "outer", .variant = {{spawn}}, .chunks = 1, .flags = n->scope ? TRL_TASK_SCOPE : 0},
        {.name = "look", .variant = {[TRL_KIND_CPU] = {make}, [TRL_KIND_MOCK] = {make}}, .chunks = 1},
    };
    const trl_access access[3] = {TRL_WRITE, n->outer, TRL_READ_WRITE};
    if (trl_workers_places(workers)) {
        ck_ok(trl_workers_set_devices(workers, devices));
        ck_ok(trl_workers_set_placement(workers, "devices"));
    }
    ck_ok(trl_graph_create(test_ctx, "numbers", &graph));
    ck_ok(trl_graph_set_memory(graph, &memory));
    ck_ok(trl_graph_add_handle(graph, &(trl_handle_desc){.name = "number", .bytes = sizeof(double)}, &n->handle));
    for (int i = 0; i < 3; ++i) {
        ck_ok(trl_graph_add_task(graph, &desc[i], &task[i]));
        ck_ok(trl_graph_add_access(graph, task[i], n->handle, access[i]));
    }
    ck_ok(trl_graph_freeze(graph));
    n->at[0] = &n->host;
    n->valid = 1;
    const trl_err err = trl_graph_run(graph, workers, n);
    if (err == TRL_OK) ck_assert_int_eq(n->space, trl_workers_places(workers) ? 1 : 0);
    trl_graph_destroy(&graph);
    trl_workers_destroy(&workers);
    for (int s = 1; s < SPACES; ++s)
        if (n->at[s]) mock(s - 1)->ops->release(mock(s - 1), n->at[s]);
    return err;
}

static const char *const policies[] = {"serial", "hybrid"};

START_TEST(spawned_tasks_are_done_by_workers_and_find_what_a_device_made)
{
    open_mocks("1");
    for (int depth = 0; depth < NEST; ++depth)
        for (int write = 0; write < 2; ++write) {
            numbers n = {.outer = write ? TRL_READ_WRITE : TRL_READ,
                         .inner = write ? TRL_READ_WRITE : TRL_READ,
                         .scope = true,
                         .depth = depth};
            ck_ok(run_numbers(&n, policies[_i]));
            ck_assert_int_eq(n.calls, 1);
            ck_assert(n.seen == 42);
        }
    close_mocks();
}
END_TEST

/* The same rule with devices and without, so that what works on workers alone works on devices, too. */
START_TEST(what_a_spawned_task_touches_is_had_by_the_task_in_whose_scope_it_is)
{
    static const struct {
        trl_access outer, inner;
        bool scope, good;
    } cases[] = {
        {TRL_READ, TRL_READ, true, true},        {TRL_READ, TRL_WRITE, true, false},
        {TRL_READ, TRL_ADD, true, false},        {TRL_WRITE, TRL_READ, true, true},
        {TRL_READ_WRITE, TRL_WRITE, true, true}, {TRL_READ_WRITE, TRL_ADD, true, true},
        {TRL_ADD, TRL_ADD, true, true},          {TRL_ADD, TRL_READ, true, false},
        {TRL_ADD, TRL_READ_WRITE, true, false},  {TRL_WRITE_PART, TRL_WRITE_PART, true, true},
        {TRL_WRITE_PART, TRL_READ, true, false}, {TRL_READ_WRITE, TRL_READ, false, false},
    };
    open_mocks("1");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        numbers n = {
            .outer = cases[i].outer, .inner = cases[i].inner, .scope = cases[i].scope, .depth = (int)(i % NEST)};
        if (cases[i].good) {
            ck_ok(run_numbers(&n, policies[_i]));
            continue;
        }
        ck_fails(run_numbers(&n, policies[_i]), TRL_ERR_USAGE,
                 cases[i].scope
                     ? "graph 'numbers': task 'touch' cannot be spawned: it touches 'number' in a way in which "
                       "'outer', in whose scope it is, does not; add that access to 'outer'"
                     : "graph 'numbers': task 'touch' cannot be spawned: it touches data, and is in the scope "
                       "of no task of the graph; give the task that spawns it TRL_TASK_SCOPE");
        ck_assert_int_eq(n.calls, 0);
        test_clear();
    }
    close_mocks();
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_loop_test(tc, spawned_tasks_are_done_by_workers_and_find_what_a_device_made, 0, 2);
    tcase_add_loop_test(tc, what_a_spawned_task_touches_is_had_by_the_task_in_whose_scope_it_is, 0, 2);
}

TRL_TEST_MAIN("spawned data", add_tests)
