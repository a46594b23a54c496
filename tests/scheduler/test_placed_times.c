// ctest: np=1
/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* How much of the time of copies devices compute, and how early copied values are there. */
#include "trl_test.h"

#include <placed_run_impl.h>

enum { TASKS = 5, CALLS = 4 };

/* A run of a placed graph of which only the times are looked at. */
typedef struct watched {
    trl_graph logical, graph;
    trli_placed placed;
    trli_placed_run state;
    trli_busy_span busy[CALLS];
    double call_begin[TASKS];
    trli_run_state run;
} watched;

static trli_run_state *begin(watched *w)
{
    *w = (watched){.logical = {.task_count = TASKS}};
    w->placed.logical = &w->logical;
    w->graph.placed = &w->placed;
    w->state.busy = w->busy;
    w->state.call_begin = w->call_begin;
    w->run.graph = &w->graph;
    w->run.placed = &w->state;
    trli_placed_times_start(&w->run);
    return &w->run;
}

START_TEST(counts_the_time_in_which_some_device_computes_once)
{
    static watched w;
    trli_run_state *run = begin(&w);
    /* Busy from 1 to 4 and from 6 to 7, by calls in no order, of which some overlap. */
    trli_placed_times_call(run, 0, 0, (trli_busy_span){6, 7});
    trli_placed_times_call(run, 1, 1, (trli_busy_span){2, 4});
    trli_placed_times_call(run, 2, 2, (trli_busy_span){1, 3});
    trli_placed_times_call(run, 3, 3, (trli_busy_span){2, 2.5});
    const int32_t spans = trli_placed_times_merge(run, 4);
    ck_assert_int_eq(spans, 2);
    trli_placed_times_copy(run, spans, &(trli_transfer){.reader = 4}, (trli_busy_span){0, 2});
    ck_assert_double_eq(w.placed.times.copying, 2);
    ck_assert_double_eq(w.placed.times.overlapped, 1);
    trli_placed_times_copy(run, spans, &(trli_transfer){.reader = 4}, (trli_busy_span){3, 6.5});
    ck_assert_double_eq(w.placed.times.copying, 5.5);
    ck_assert_double_eq(w.placed.times.overlapped, 2.5);
    trli_placed_times_copy(run, spans, &(trli_transfer){.reader = 4}, (trli_busy_span){4, 6});
    ck_assert_double_eq(w.placed.times.overlapped, 2.5);
    ck_assert_int_eq(w.placed.times.leads, 0);
}
END_TEST

START_TEST(tells_how_long_a_copied_value_waits_for_its_reader)
{
    static watched w;
    trli_run_state *run = begin(&w);
    trli_placed_times_call(run, 0, 2, (trli_busy_span){5, 6});
    const int32_t spans = trli_placed_times_merge(run, 1);
    trli_placed_times_copy(run, spans, &(trli_transfer){.reader = 2}, (trli_busy_span){1, 2});
    trli_placed_times_copy(run, spans, &(trli_transfer){.reader = 2}, (trli_busy_span){2, 4});
    trli_placed_times_copy(run, spans, &(trli_transfer){.reader = 1}, (trli_busy_span){2, 3}); /* of the workers */
    ck_assert_int_eq(w.placed.times.leads, 2);
    ck_assert_double_eq(w.placed.times.lead, 3 + 1);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, counts_the_time_in_which_some_device_computes_once);
    tcase_add_test(tc, tells_how_long_a_copied_value_waits_for_its_reader);
}

TRL_TEST_MAIN("placed times", add_tests)
