// ctest: np=1
/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Accesses: the dependencies that follow from their modes, against all pairs of accesses, and what a frozen graph and
 * its policies know of them. */
#include "trl_test.h"

#include <engine_impl.h>

static int random_below(uint64_t *state, int n)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (int)((*state >> 33) % (uint64_t)n);
}

enum { TASKS = 24, HANDLES = 3, GRAPHS = 300 };

static trl_err do_nothing(void *data, const trl_task_args *args, bool *done)
{
    (void)data, (void)args, (void)done;
    return TRL_OK;
}

static trl_task add(trl_graph *graph)
{
    trl_task task;
    ck_ok(trl_graph_add_task(graph, &(trl_task_desc){.name = "t", .variant = {{do_nothing}}, .chunks = 1}, &task));
    return task;
}

static trl_handle add_handle(trl_graph *graph, const char *name, size_t bytes, int64_t block)
{
    trl_handle handle;
    const trl_handle_desc desc = {.name = name, .bytes = bytes, .block = block};
    ck_ok(trl_graph_add_handle(graph, &desc, &handle));
    return handle;
}

typedef struct reach {
    bool from[TASKS][TASKS];
} reach;

static void close_over(reach *r)
{
    for (int k = 0; k < TASKS; ++k)
        for (int i = 0; i < TASKS; ++i)
            for (int j = 0; j < TASKS; ++j) r->from[i][j] |= r->from[i][k] && r->from[k][j];
}

/* Whether two accesses to one piece of memory may come in any order; parts: which data each means. */
static bool commute(trl_access a, int a_part, trl_access b, int b_part)
{
    return a == b && (a == TRL_READ || ((a == TRL_WRITE_PART || a == TRL_ADD) && a_part == b_part));
}

START_TEST(tasks_are_ordered_where_their_accesses_do_not_commute_and_nowhere_else)
{
    uint64_t state = 11;
    for (int g = 0; g < GRAPHS; ++g) {
        trl_graph *graph;
        trl_handle handle[HANDLES];
        int at[2 * TASKS], task[2 * TASKS], part[2 * TASKS], n = 0;
        trl_access mode[2 * TASKS];
        static reach expected, found;
        memset(&expected, 0, sizeof expected);
        memset(&found, 0, sizeof found);
        ck_ok(trl_graph_create(test_ctx, "accesses", &graph));
        for (int h = 0; h < HANDLES; ++h) handle[h] = add_handle(graph, "h", 8, h);
        for (int t = 0; t < TASKS; ++t) {
            const trl_task name = add(graph);
            for (int twice = random_below(&state, 2); twice >= 0; --twice, ++n) {
                task[n] = t;
                at[n] = random_below(&state, HANDLES);
                mode[n] = (trl_access)random_below(&state, TRL_ADD + 1);
                part[n] = random_below(&state, 4) == 0;
                ck_ok(trl_graph_add_part_access(graph, name, handle[at[n]], mode[n], part[n]));
            }
        }
        for (int j = 0; j < n; ++j)
            for (int i = 0; i < j; ++i)
                if (at[i] == at[j] && task[i] != task[j] && !commute(mode[i], part[i], mode[j], part[j]))
                    expected.from[task[i]][task[j]] = true;
        ck_ok(trl_graph_freeze(graph));
        for (int t = 0; t < TASKS; ++t)
            for (int32_t i = graph->first[t]; i < graph->first[t + 1]; ++i) found.from[t][graph->successors[i]] = true;
        close_over(&expected);
        close_over(&found);
        for (int i = 0; i < TASKS; ++i)
            for (int j = 0; j < TASKS; ++j)
                ck_assert_msg(expected.from[i][j] == found.from[i][j], "graph %d: t%d %s before t%d", g, i,
                              found.from[i][j] ? "need not be" : "must be", j);
        trl_graph_destroy(&graph);
    }
}
END_TEST

START_TEST(a_frozen_graph_keeps_what_each_task_does_with_each_piece_of_data)
{
    trl_graph *graph;
    ck_ok(trl_graph_create(test_ctx, "kept", &graph));
    const trl_handle a = add_handle(graph, "a", 100, 7), b = add_handle(graph, "b", 0, -1);
    const trl_task first = add(graph), none = add(graph), last = add(graph);
    (void)none;
    ck_ok(trl_graph_add_access(graph, first, a, TRL_READ));
    ck_ok(trl_graph_add_access(graph, last, a, TRL_READ));
    ck_ok(trl_graph_add_access(graph, first, b, TRL_WRITE_PART));
    ck_ok(trl_graph_add_access(graph, last, b, TRL_ADD));
    ck_ok(trl_graph_add_access(graph, last, a, TRL_WRITE));
    ck_ok(trl_graph_add_access(graph, last, b, TRL_ADD));
    ck_ok(trl_graph_freeze(graph));
    const trl_policy_handle *handle = graph->handles.data;
    const int32_t first_of[] = {0, 2, 2, 4};
    const trl_policy_access access[] = {
        {0, TRL_READ, 0}, {1, TRL_WRITE_PART, 0}, {0, TRL_READ_WRITE, 0}, {1, TRL_ADD, 0}};
    ck_assert(memcmp(graph->access_first, first_of, sizeof first_of) == 0);
    for (int i = 0; i < 4; ++i) {
        ck_assert_int_eq(graph->access[i].handle, access[i].handle);
        ck_assert_int_eq(graph->access[i].mode, access[i].mode);
    }
    ck_assert_uint_eq(handle[0].bytes, 100);
    ck_assert_int_eq(handle[0].block, 7);
    ck_assert_str_eq(trli_graph_text(graph, handle[1].name), "b");
    trl_graph_destroy(&graph);
}
END_TEST

typedef struct spawning {
    trl_handle handle[HANDLES];
    trl_spawn_access access[HANDLES];
    int32_t before; /* handles of the graph around the body */
    _Atomic int seen;
} spawning;

static trl_err look_at_accesses(void *data, const trl_task_args *args, bool *done)
{
    spawning *s = data;
    const trl_policy_graph *view = &args->run->run->view;
    trl_policy_access access;
    int32_t n = 0;
    (void)done;
    for (; trl_policy_task_access(view, args->run->task, n, &access); ++n)
        if (n >= HANDLES || access.handle != s->before + (int32_t)(s->access[n].handle & INT32_MAX) ||
            access.mode != (int32_t)s->access[n].access)
            return TRL_ERR_BUG;
    atomic_fetch_add(&s->seen, n);
    return TRL_OK;
}

static trl_err spawn_some(void *data, const trl_task_args *args, bool *done)
{
    spawning *s = data;
    trl_err err = TRL_OK;
    (void)done;
    for (int n = 0; n <= HANDLES; ++n) {
        const trl_spawn_desc desc = {
            .name = "looker", .variant = {{look_at_accesses}}, .data = s, .naccesses = n, .accesses = s->access};
        TRL_TRY(trl_run_spawn(args->run, &desc, NULL));
    }
done:
    return err;
}

static trl_err spawn_bad(void *data, const trl_task_args *args, bool *done)
{
    const trl_spawn_access foreign = {*(trl_handle *)data, TRL_READ};
    const trl_spawn_desc desc = {.name = "bad", .variant = {{do_nothing}}, .naccesses = 1, .accesses = &foreign};
    (void)done;
    return trl_run_spawn(args->run, &desc, NULL);
}

/* In a graph; and in one that is the body of a call in a call, among handles of graphs around it. */
START_TEST(policies_see_the_accesses_of_spawned_tasks)
{
    enum { LEVELS = 3 };
    trl_graph *level[LEVELS] = {NULL}, *graph;
    trl_workers *workers;
    spawning s = {.seen = 0};
    trl_task task;
    ck_ok(trl_workers_create(test_ctx, "priority", &workers));
    ck_ok(trl_graph_create(test_ctx, "spawned", &graph));
    for (int h = 0; h < HANDLES; ++h) {
        s.handle[h] = add_handle(graph, "h", 8, h);
        s.access[h] = (trl_spawn_access){s.handle[h], (trl_access)h};
    }
    const trl_task_desc desc = {.name = "spawner", .variant = {{spawn_some}}, .data = &s, .chunks = 1};
    ck_ok(trl_graph_add_task(graph, &desc, &task));
    ck_ok(trl_graph_add_access(graph, task, s.handle[1], TRL_READ));
    ck_ok(trl_graph_freeze(graph));
    level[0] = graph;
    for (int l = 1; _i && l < LEVELS; ++l) {
        ck_ok(trl_graph_create(test_ctx, "around", &level[l]));
        for (int h = 0; h < l; ++h, ++s.before) (void)add_handle(level[l], "another", 8, h);
        ck_ok(trl_graph_add_call(level[l], &(trl_call_desc){.name = "call", .body = graph}, &task));
        ck_ok(trl_graph_freeze(level[l]));
        graph = level[l];
    }
    for (int run = 0; run < 3; ++run) ck_ok(trl_graph_run(graph, workers, NULL));
    ck_assert_int_eq(atomic_load(&s.seen), 3 * HANDLES * (HANDLES + 1) / 2);
    ck_assert_int_eq(graph->access_first[graph->task_count], 1);
    ck_assert_int_eq(graph->access[0].handle, s.before + 1);
    for (int l = LEVELS - 1; l >= 0; --l) trl_graph_destroy(&level[l]);
    trl_workers_destroy(&workers);
}
END_TEST

START_TEST(refuses_a_spawned_task_that_touches_data_of_no_graph)
{
    trl_graph *graph;
    trl_workers *workers;
    trl_task task;
    trl_handle none = -3;
    ck_ok(trl_workers_create(test_ctx, "serial", &workers));
    ck_ok(trl_graph_create(test_ctx, "spawned", &graph));
    const trl_task_desc desc = {.name = "spawner", .variant = {{spawn_bad}}, .data = &none, .chunks = 1};
    ck_ok(trl_graph_add_task(graph, &desc, &task));
    ck_ok(trl_graph_freeze(graph));
    ck_fails(
        trl_graph_run(graph, workers, NULL), TRL_ERR_USAGE,
        "graph 'spawned': task 'bad' cannot be spawned: it touches something that is no data handle of this graph");
    trl_graph_destroy(&graph);
    trl_workers_destroy(&workers);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, tasks_are_ordered_where_their_accesses_do_not_commute_and_nowhere_else);
    tcase_add_test(tc, a_frozen_graph_keeps_what_each_task_does_with_each_piece_of_data);
    tcase_add_loop_test(tc, policies_see_the_accesses_of_spawned_tasks, 0, 2);
    tcase_add_test(tc, refuses_a_spawned_task_that_touches_data_of_no_graph);
}

TRL_TEST_MAIN("accesses", add_tests)
