// ctest: np=1
/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* What the earliest finish takes into account, before anything is improved: examples with one worker, or more, and one
 * device. */
#include "trl_test.h"

#include "../../scheduler/placement_assign_impl.h"
#include "place_graph.h"

/* A task that takes that long on the host and on the device; below 0: not there. It reads up to two handles. */
static void add(place_graph *g, double host, double device, int32_t read, int32_t also, int32_t writes)
{
    const int32_t t = place_task(g, 0.0);
    g->eligible[t] = (uint16_t)((host >= 0.0) | (device >= 0.0) << 1);
    g->seconds[2 * t] = host;
    g->seconds[2 * t + 1] = device;
    if (read >= 0) place_access(g, read, TRL_READ);
    if (also >= 0) place_access(g, also, TRL_READ);
    if (writes >= 0) place_access(g, writes, TRL_WRITE);
}

static place_graph *new_graph(void)
{
    return place_graph_new(8, 8, 24, 64, 2);
}

static void expect(place_graph *g, const trli_platform *machine, const uint8_t *expected)
{
    trli_values values;
    trli_assignment a = {.ctx = test_ctx, .graph = &g->graph, .machine = machine, .values = &values};
    const uint16_t first[] = {1, 1, 1, 1, 1, 1, 1, 1};
    bool complete;
    place_depend_by_accesses(g);
    place_finish(g);
    ck_ok(trli_values_find(test_ctx, &g->graph, &values));
    ck_ok(trli_assignment_begin(&a));
    ck_ok(trli_assign_finish_time(&a, first, &complete));
    ck_assert(complete);
    for (int32_t t = 0; t < g->graph.tasks; ++t)
        ck_assert_msg(a.executor[t] == expected[t], "task %d is on %d", (int)t, a.executor[t]);
    trli_assignment_end(&a);
    trli_values_free(&values);
    place_graph_free(g);
}

/* The task in front of the longer path gets the device. */
START_TEST(begins_with_the_longest_path)
{
    trli_platform machine = place_machine(2, 0.0, 0.0);
    place_graph *g = new_graph();
    machine.parallel[0] = 2;
    add(g, 8.0, 5.0, -1, -1, 0);
    add(g, 8.0, 5.0, -1, -1, 1);
    add(g, 100.0, 100.0, 1, -1, 2);
    expect(g, &machine, (const uint8_t[]){0, 1, 0});
}
END_TEST

/* Of two paths of equal times that with the copy is longer. */
START_TEST(counts_copies_into_the_longest_path)
{
    const trli_platform machine = place_machine(2, 0.0, 1.0);
    place_graph *g = new_graph();
    g->handle[1].bytes = 100;
    add(g, 8.0, 5.0, -1, -1, 0);
    add(g, 8.0, 5.0, -1, -1, 1);
    add(g, 7.0, -1.0, 0, -1, 2);
    add(g, 7.0, -1.0, 1, -1, 3);
    expect(g, &machine, (const uint8_t[]){0, 1, 0, 0});
}
END_TEST

/* Copies of 10 s each: the first reader has its data on the device after 10 s, the next ones later. */
START_TEST(sees_that_links_are_busy)
{
    trli_platform machine = place_machine(2, 10.0, 0.0);
    place_graph *g = new_graph();
    machine.parallel[0] = 3;
    for (int32_t t = 0; t < 3; ++t) add(g, 13.0, 1.0, t, -1, -1);
    expect(g, &machine, (const uint8_t[]){1, 0, 0});
}
END_TEST

START_TEST(copies_one_after_the_other_for_one_task)
{
    const trli_platform machine = place_machine(2, 10.0, 0.0);
    place_graph *g = new_graph();
    add(g, 15.0, 1.0, 0, 1, -1);
    expect(g, &machine, (const uint8_t[]){0});
}
END_TEST

START_TEST(copies_nothing_twice)
{
    const trli_platform machine = place_machine(2, 10.0, 0.0);
    place_graph *g = new_graph();
    add(g, -1.0, 1.0, 0, -1, 1);
    add(g, 12.5, 1.0, 0, -1, -1);
    add(g, 100.0, -1.0, 1, -1, -1);
    expect(g, &machine, (const uint8_t[]){1, 1, 0});
}
END_TEST

/* The worker waits 12 s for the device: time enough for the last task, which it does not get behind what waits. */
START_TEST(uses_idle_times)
{
    const trli_platform machine = place_machine(2, 2.0, 0.0);
    place_graph *g = new_graph();
    add(g, -1.0, 10.0, -1, -1, 0);
    add(g, 8.0, -1.0, 0, -1, -1);
    add(g, 5.0, 8.0, -1, -1, -1);
    expect(g, &machine, (const uint8_t[]){1, 0, 0});
}
END_TEST

START_TEST(gives_each_worker_one_task_at_once)
{
    trli_platform machine = place_machine(2, 0.0, 0.0);
    place_graph *g = new_graph();
    machine.parallel[0] = 2;
    for (int t = 0; t < 4; ++t) add(g, 4.0, 5.0, -1, -1, -1);
    expect(g, &machine, (const uint8_t[]){0, 0, 1, 0});
}
END_TEST

START_TEST(counts_a_launch_once_for_tasks_in_a_row)
{
    trli_platform machine = place_machine(2, 0.0, 0.0);
    place_graph *g = new_graph();
    machine.launch[1] = 5.0;
    add(g, -1.0, 1.0, -1, -1, 0);
    add(g, 2.0, 1.0, 0, -1, 1);
    expect(g, &machine, (const uint8_t[]){1, 1});
}
END_TEST

/* The first of two tasks that add would end sooner on the host, both together on the device. */
START_TEST(looks_at_all_tasks_that_need_one_executor)
{
    const trli_platform machine = place_machine(2, 0.0, 0.0);
    place_graph *g = new_graph();
    add(g, 40.0, 60.0, -1, -1, -1);
    place_access(g, 0, TRL_ADD);
    add(g, 60.0, 1.0, -1, -1, -1);
    place_access(g, 0, TRL_ADD);
    expect(g, &machine, (const uint8_t[]){1, 1});
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, begins_with_the_longest_path);
    tcase_add_test(tc, counts_copies_into_the_longest_path);
    tcase_add_test(tc, sees_that_links_are_busy);
    tcase_add_test(tc, copies_one_after_the_other_for_one_task);
    tcase_add_test(tc, copies_nothing_twice);
    tcase_add_test(tc, uses_idle_times);
    tcase_add_test(tc, gives_each_worker_one_task_at_once);
    tcase_add_test(tc, counts_a_launch_once_for_tasks_in_a_row);
    tcase_add_test(tc, looks_at_all_tasks_that_need_one_executor);
}

TRL_TEST_MAIN("placement_finish", add_tests)
