// ctest: np=1
/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Assignments: how good they are, and what they never do. */
#include "trl_test.h"

#include <time.h>

#include "../../scheduler/context_impl.h"
#include "place_graph.h"

enum { MOST_TASKS = 40 };

static double predicted(const place_graph *g, const trli_platform *machine, const uint8_t *executor)
{
    trli_transfers transfers;
    trli_prediction prediction;
    if (trli_transfers_find(test_ctx, &g->graph, machine, executor, &transfers) ||
        trli_predict(test_ctx, &g->graph, machine, executor, &transfers, true, &prediction))
        ck_abort_msg("%s", test_messages());
    const double seconds = prediction.seconds;
    trli_prediction_free(&prediction);
    trli_transfers_free(&transfers);
    return seconds;
}

static void assign(const place_graph *g, const trli_platform *machine, trli_placement_kind kind, uint8_t *executor)
{
    memset(executor, TRLI_EXECUTORS, (size_t)g->graph.tasks);
    ck_ok(trli_assign(test_ctx, &g->graph, machine, kind, executor));
}

/* ---- random problems ---- */

/* Devices are up to 8 times as fast as the workers, or slower, and copies take from next to nothing to several times
 * as long as tasks. */
static trli_platform random_machine(uint64_t *state, int executors)
{
    trli_platform machine = place_machine(executors, 0.0, 1.0);
    const double slow = (double[]){0.01, 0.1, 0.5, 2.0}[place_below(state, 4)];
    for (int e = 0; e < executors; ++e) {
        machine.parallel[e] = e ? 1 : 1 + place_below(state, 4);
        machine.launch[e] = e ? 0.5 * place_below(state, 3) : 0.0;
        for (int f = 0; f < executors; ++f) machine.link[e][f] = (trli_route){5.0 * slow, 20.0 / slow};
    }
    return machine;
}

static void random_times(uint64_t *state, place_graph *g)
{
    double speed[TRLI_EXECUTORS];
    for (int e = 0; e < g->executors; ++e) speed[e] = e ? 0.5 + 0.1 * place_below(state, 80) : 1.0;
    for (int32_t t = 0; t < g->graph.tasks; ++t) {
        const double work = 1.0 + place_below(state, 100);
        const int only = place_below(state, 10);
        for (int e = 0; e < g->executors; ++e)
            g->seconds[t * g->executors + e] = work / speed[e] * (0.5 + 0.01 * place_below(state, 100));
        if (only == 0) g->eligible[t] = 1;
        if (only == 1 && g->executors > 1) g->eligible[t] &= (uint16_t)~1u;
    }
}

/* Each task makes data of its own from those of up to three tasks before it. */
static place_graph *random_dag(uint64_t *state, int32_t tasks, int executors, int32_t reach)
{
    place_graph *g = place_graph_new(tasks, tasks, 4 * tasks, 3 * tasks, executors);
    for (int32_t t = 0; t < tasks; ++t) {
        int32_t read[3];
        const int wanted = place_below(state, 4);
        place_task(g, 0.0);
        g->handle[t].bytes = (size_t)place_below(state, 1000);
        for (int k = 0; t && k < wanted; ++k) {
            bool twice = false;
            read[k] = t - 1 - place_below(state, t < reach ? t : reach);
            for (int j = 0; j < k; ++j) twice |= read[j] == read[k];
            if (twice) continue;
            place_access(g, read[k], TRL_READ);
            place_depend(g, read[k], t);
        }
        place_access(g, t, TRL_WRITE);
    }
    place_finish(g);
    random_times(state, g);
    return g;
}

/* Units get what all of them may do. */
static void agree_on_eligibility(place_graph *g, const int32_t *unit)
{
    for (int32_t t = 0; t < g->graph.tasks; ++t) g->eligible[unit[t]] &= g->eligible[t];
    for (int32_t t = 0; t < g->graph.tasks; ++t) {
        if (unit[t] == t && !g->eligible[t]) g->eligible[t] = (uint16_t)((1u << g->executors) - 1);
        g->eligible[t] = g->eligible[unit[t]];
    }
}

/* ---- quality ---- */

typedef struct exhaustion {
    const place_graph *g;
    const trli_platform *machine;
    const int32_t *unit;
    uint8_t executor[MOST_TASKS];
    double best;
} exhaustion;

static void try_all(exhaustion *x, int32_t task)
{
    if (task == x->g->graph.tasks) {
        const double seconds = predicted(x->g, x->machine, x->executor);
        if (seconds < x->best) x->best = seconds;
        return;
    }
    for (int e = 0; e < x->machine->executors; ++e) {
        if (!(x->g->eligible[task] >> e & 1)) continue;
        if (x->executor[x->unit[task]] != e && x->unit[task] != task) continue;
        x->executor[task] = (uint8_t)e;
        try_all(x, task + 1);
    }
}

/* All that may be there on one executor, the rest on the first that may do it. */
static double predicted_on_one(const place_graph *g, const trli_platform *machine, int one)
{
    uint8_t executor[MOST_TASKS];
    for (int32_t t = 0; t < g->graph.tasks; ++t) {
        int e = one;
        if (!(g->eligible[t] >> one & 1)) {
            for (e = 0; !(g->eligible[t] >> e & 1);) ++e;
        }
        executor[t] = (uint8_t)e;
    }
    return predicted(g, machine, executor);
}

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* How many times as long as the best placement of all. */
static double ratio_to_best(uint64_t seed)
{
    static const int32_t most[] = {0, 0, 12, 8, 6};
    uint64_t state = seed;
    uint8_t executor[MOST_TASKS];
    uint16_t valid[MOST_TASKS];
    int32_t unit[MOST_TASKS], follows[MOST_TASKS];
    const int executors = seed % 2 ? 2 : 3 + place_below(&state, 2);
    const trli_platform machine = random_machine(&state, executors);
    const int32_t tasks = 1 + place_below(&state, most[executors]);
    place_graph *g = seed % 5 ? random_dag(&state, tasks, executors, 6) : place_random(&state, tasks, 4, executors);
    if (seed % 3 == 0) place_random_valid(&state, g, valid);
    if (seed % 6 == 0) place_random_rotation(&state, g, follows);
    place_units(g, unit);
    agree_on_eligibility(g, unit);
    exhaustion x = {.g = g, .machine = &machine, .unit = unit, .best = 1e30};
    try_all(&x, 0);
    assign(g, &machine, TRLI_PLACE_finish_time, executor);
    const double seconds = predicted(g, &machine, executor);
    for (int e = 0; e < executors; ++e) ck_assert_double_le(seconds, predicted_on_one(g, &machine, e));
    place_graph_free(g);
    ck_assert_double_ge(seconds, x.best);
    return x.best > 0.0 ? seconds / x.best : 1.0;
}

START_TEST(finish_time_is_near_the_best_placement_of_all)
{
    enum { ALL = 500 };
    double ratio[ALL];
    const int n = test_cases(ALL, 10);
    for (int i = 0; i < n; ++i) ratio[i] = ratio_to_best((uint64_t)i + 1);
    if (n < ALL) return; /* too few to tell */
    qsort(ratio, ALL, sizeof *ratio, compare_doubles);
    ck_assert_double_le(ratio[ALL / 2], 1.01);
    ck_assert_double_le(ratio[ALL * 99 / 100], 1.15);
}
END_TEST

/* ---- what is never done ---- */

static void check_random_assignment(uint64_t seed, trli_placement_kind kind)
{
    uint64_t state = seed;
    uint8_t executor[MOST_TASKS], again[MOST_TASKS];
    int32_t unit[MOST_TASKS], follows[8];
    uint16_t valid[8];
    const int executors = 1 + place_below(&state, 5);
    const trli_platform machine = random_machine(&state, executors);
    place_graph *g = place_random(&state, 1 + place_below(&state, MOST_TASKS), 8, executors);
    random_times(&state, g);
    place_random_valid(&state, g, valid);
    place_random_rotation(&state, g, follows);
    place_units(g, unit);
    agree_on_eligibility(g, unit);
    assign(g, &machine, kind, executor);
    assign(g, &machine, kind, again);
    ck_assert_mem_eq(executor, again, (size_t)g->graph.tasks);
    for (int e = 0; e < executors && kind == TRLI_PLACE_finish_time; ++e)
        ck_assert_double_le(predicted(g, &machine, executor), predicted_on_one(g, &machine, e));
    for (int32_t t = 0; t < g->graph.tasks; ++t) {
        ck_assert(g->eligible[t] >> executor[t] & 1);
        ck_assert_int_eq(executor[t], executor[unit[t]]);
    }
    place_graph_free(g);
}

START_TEST(keeps_to_what_tasks_are_eligible_for_and_groups_together)
{
    const uint64_t last = (uint64_t)test_cases(300, 5);
    for (uint64_t seed = 1; seed <= last; ++seed) {
        for (int kind = 0; kind < TRLI_PLACEMENTS; ++kind) check_random_assignment(seed, (trli_placement_kind)kind);
    }
}
END_TEST

/* A task makes data on a device, and workers do faster what follows of it: where the host waits for a device anyway,
 * they do, but where it would go ahead only if that saves more than a quarter. */
START_TEST(lets_the_host_go_ahead_of_a_gpu_unless_workers_save_a_quarter)
{
    trli_platform machine = place_machine(2, 0.5, 1e6);
    uint8_t executor[2];
    for (int last = 1; last < 8; ++last) {
        place_graph *g = place_graph_new(2, 1, 2, 1, 2);
        place_task(g, 6.0);
        place_access(g, 0, TRL_WRITE);
        place_task(g, last);
        place_access(g, 0, TRL_READ);
        place_depend(g, 0, 1);
        g->seconds[0] = 100.0;
        g->seconds[2] = 0.125;
        place_finish(g);
        const double alone = 6 + last, together = 6 + 0.5 + 0.125;
        machine.kind[1] = TRL_KIND_MOCK;
        assign(g, &machine, TRLI_PLACE_finish_time, executor);
        ck_assert(executor[0] == 1 && executor[1] == 0);
        machine.kind[1] = TRL_KIND_GPU;
        assign(g, &machine, TRLI_PLACE_finish_time, executor);
        ck_assert_int_eq(executor[1], alone * (1 - TRLI_GAIN_AHEAD) < together);
        place_graph_free(g);
    }
}
END_TEST

/* Two tasks that add, one for the CPU, the other for a device alone. */
START_TEST(parts_a_group_rather_than_override_what_its_tasks_are_eligible_for)
{
    const trli_platform machine = place_machine(2, 1.0, 1.0);
    uint8_t executor[2];
    place_graph *g = place_graph_new(2, 1, 2, 1, 2);
    for (int t = 0; t < 2; ++t) {
        place_task(g, 1.0);
        place_access(g, 0, TRL_ADD);
        g->eligible[t] = (uint16_t)(1 << t);
    }
    place_finish(g);
    for (int kind = 0; kind < TRLI_PLACEMENTS; ++kind) {
        assign(g, &machine, (trli_placement_kind)kind, executor);
        ck_assert(executor[0] == 0 && executor[1] == 1);
    }
    place_graph_free(g);
}
END_TEST

/* ---- time levels ---- */

enum { STRIP_HANDLES = 5 }; /* of a patch: what it has, its rim, the halo, and the first two of the next level */

/* A step of patches in a row: each copies the rims of its neighbours to its halo, and then computes. Levels rotate. */
static place_graph *strip(int patches, int stages, int executors, int32_t *follows)
{
    const int levels = stages + 1, per_level = 3 * patches;
    place_graph *g = place_graph_new(2 * patches * stages, levels * per_level, 9 * patches * stages,
                                     200 * patches * patches * stages * stages, executors);
    for (int s = 0; s < stages; ++s) {
        for (int p = 0; p < patches; ++p) {
            place_task(g, 0.05); /* halo */
            for (int q = p - 1; q <= p + 1; q += 2)
                if (q >= 0 && q < patches) place_access(g, s * per_level + 3 * q + 1, TRL_READ);
            place_access(g, s * per_level + 3 * p + 2, TRL_READ_WRITE);
        }
        for (int p = 0; p < patches; ++p) {
            place_task(g, 1.0); /* kernel */
            for (int k = 0; k < 3; ++k) place_access(g, s * per_level + 3 * p + k, TRL_READ);
            for (int k = 0; k < 2; ++k) place_access(g, (s + 1) * per_level + 3 * p + k, TRL_WRITE);
        }
    }
    for (int h = 0; h < levels * per_level; ++h) {
        g->handle[h].bytes = (size_t[]){1000, 40, 40}[h % 3];
        follows[h] = h;
    }
    for (int h = 0; h < per_level; ++h) {
        follows[h] = stages * per_level + h;
        follows[stages * per_level + h] = h;
    }
    for (int t = 0; t < g->graph.tasks; ++t) g->seconds[t * executors] *= 20.0; /* workers are slow */
    g->graph.follows = follows;
    place_depend_by_accesses(g);
    place_finish(g);
    return g;
}

/* Each device has patches that follow each other, in all stages; only rims are copied, in each stage two where two
 * devices meet. */
static void check_strip(const place_graph *g, const trli_platform *machine, int patches, int stages,
                        const uint8_t *executor)
{
    const int devices = machine->executors - 1;
    trli_place_graph steady = g->graph;
    trli_transfers first, transfers;
    uint16_t *valid = place_calloc((size_t)steady.handles, sizeof *valid);
    ck_ok(trli_transfers_find(test_ctx, &steady, machine, executor, &first));
    for (int32_t h = 0; h < steady.handles; ++h) valid[h] = (uint16_t)trli_steady_spaces(&steady, &first, h);
    steady.valid = valid;
    ck_ok(trli_transfers_find(test_ctx, &steady, machine, executor, &transfers));
    for (int s = 0; s < stages; ++s)
        for (int p = 0; p < patches; ++p)
            ck_assert_int_eq(executor[(2 * s + 1) * patches + p], 1 + p * devices / patches);
    for (int32_t x = 0; x < transfers.list.count; ++x)
        ck_assert_uint_eq(steady.handle[((const trli_transfer *)transfers.list.data)[x].handle].bytes, 40);
    if (devices > 1) ck_assert_int_eq(transfers.list.count, 2 * stages * (devices - 1));
    trli_transfers_free(&transfers);
    trli_transfers_free(&first);
    free(valid);
}

START_TEST(keeps_patches_and_their_neighbours_together)
{
    enum { PATCHES = 8, STAGES = 4 };
    for (int devices = 1; devices <= 4; devices *= 2)
        for (int stages = 2; stages <= STAGES; ++stages) {
            int32_t follows[(STAGES + 1) * 3 * PATCHES];
            uint16_t valid[(STAGES + 1) * 3 * PATCHES];
            uint8_t executor[2 * PATCHES * STAGES];
            trli_platform machine = place_machine(devices + 1, 0.05, 1000.0);
            place_graph *g = strip(PATCHES, stages, devices + 1, follows);
            for (int h = 0; h < g->graph.handles; ++h) valid[h] = 1u << TRLI_ANYWHERE;
            g->graph.valid = valid;
            assign(g, &machine, TRLI_PLACE_finish_time, executor);
            check_strip(g, &machine, PATCHES, stages, executor);
            place_graph_free(g);
        }
}
END_TEST

/* ---- memory ---- */

static void check_memory(const place_graph *g, const trli_platform *machine, const uint8_t *executor)
{
    for (int e = 0; e < machine->executors; ++e) {
        size_t bytes = 0;
        bool touched[64] = {0};
        for (int32_t t = 0, a = 0; t < g->graph.tasks; ++t) {
            for (; a < g->access_first[t + 1]; ++a)
                touched[g->handle[g->access[a].handle].block + 32] |= executor[t] == e;
        }
        for (int32_t h = 0; h < g->graph.handles; ++h)
            bytes += touched[g->handle[h].block + 32] ? g->handle[h].bytes : 0;
        if (machine->bytes[e]) ck_assert_uint_le(bytes, machine->bytes[e]);
    }
}

START_TEST(never_gives_a_device_more_than_its_memory_holds)
{
    uint8_t executor[MOST_TASKS];
    for (uint64_t seed = 1; seed <= 200; ++seed) {
        uint64_t state = seed;
        trli_platform machine = random_machine(&state, 4);
        place_graph *g = random_dag(&state, MOST_TASKS, 4, 8);
        for (int32_t h = 0; h < g->graph.handles; ++h) g->handle[h].block = place_below(&state, 60) - 30;
        for (int32_t t = 0; t < g->graph.tasks; ++t) g->eligible[t] |= 1;
        for (int e = 1; e < 4; ++e) machine.bytes[e] = 1 + (size_t)place_below(&state, 10000);
        for (int kind = 0; kind < TRLI_PLACEMENTS; ++kind) {
            assign(g, &machine, (trli_placement_kind)kind, executor);
            check_memory(g, &machine, executor);
        }
        place_graph_free(g);
    }
}
END_TEST

/* Three tasks of 10 bytes each. The first two share a block with each other. */
static place_graph *make_three(void)
{
    place_graph *g = place_graph_new(3, 3, 3, 1, 2);
    for (int32_t t = 0; t < 3; ++t) {
        place_task(g, 1.0);
        g->seconds[2 * t] = 100.0;
        g->handle[t] = (trl_policy_handle){.bytes = 10, .block = t == 2 ? 9 : 5};
        place_access(g, t, TRL_WRITE);
    }
    place_finish(g);
    return g;
}

START_TEST(places_elsewhere_what_is_too_large_for_a_device)
{
    trli_platform machine = place_machine(2, 0.0, 1.0);
    uint8_t executor[3];
    place_graph *g = make_three();
    for (int kind = 0; kind < TRLI_PLACEMENTS; ++kind) {
        machine.bytes[1] = 30;
        assign(g, &machine, (trli_placement_kind)kind, executor);
        ck_assert_mem_eq(executor, ((const uint8_t[]){1, 1, 1}), 3);
        machine.bytes[1] = 29;
        assign(g, &machine, (trli_placement_kind)kind, executor);
        ck_assert_mem_eq(executor, ((const uint8_t[]){1, 1, 0}), 3);
        machine.bytes[1] = 19;
        assign(g, &machine, (trli_placement_kind)kind, executor);
        ck_assert_mem_eq(executor, ((const uint8_t[]){0, 0, 1}), 3);
        machine.bytes[1] = 9;
        assign(g, &machine, (trli_placement_kind)kind, executor);
        ck_assert_mem_eq(executor, ((const uint8_t[]){0, 0, 0}), 3);
    }
    place_graph_free(g);
}
END_TEST

START_TEST(keeps_memory_for_tasks_that_have_no_other_place)
{
    trli_platform machine = place_machine(2, 0.0, 1.0);
    uint8_t executor[3];
    place_graph *g = make_three();
    machine.bytes[1] = 29;
    g->eligible[2] = 2;
    for (int kind = 0; kind < TRLI_PLACEMENTS; ++kind) {
        assign(g, &machine, (trli_placement_kind)kind, executor);
        ck_assert_mem_eq(executor, ((const uint8_t[]){0, 0, 1}), 3);
    }
    place_graph_free(g);
}
END_TEST

START_TEST(refuses_tasks_that_fit_into_no_memory)
{
    trli_platform machine = place_machine(2, 0.0, 1.0);
    uint8_t executor[3];
    place_graph *g = make_three();
    machine.bytes[1] = 29;
    for (int t = 0; t < 3; ++t) g->eligible[t] = 2;
    for (int kind = 0; kind < TRLI_PLACEMENTS; ++kind) {
        test_clear();
        ck_fails(trli_assign(test_ctx, &g->graph, &machine, (trli_placement_kind)kind, executor), TRL_ERR_MEMORY,
                 "no placement of 3 tasks on 2 executors fits into their memory");
    }
    place_graph_free(g);
}
END_TEST

/* ---- large graphs ---- */

/* In 0.2 seconds of a core: the limit is there to see what is not linear. */
START_TEST(places_a_hundred_thousand_tasks_in_a_second)
{
    const int32_t tasks = test_cases(100000, 10);
    uint64_t state = 1;
    uint8_t *executor = place_calloc((size_t)tasks, 1);
    const trli_platform machine = random_machine(&state, 5);
    place_graph *g = random_dag(&state, tasks, 5, 300);
    for (int kind = 0; kind < TRLI_PLACEMENTS; ++kind) {
        const clock_t start = clock(); /* of this process */
        assign(g, &machine, (trli_placement_kind)kind, executor);
        if (!TEST_SANITIZED) ck_assert_int_lt(clock() - start, CLOCKS_PER_SEC);
    }
    free(executor);
    place_graph_free(g);
}
END_TEST

/* ---- memory of the passes ---- */

static trl_err assign_and_predict(const place_graph *g, const trli_platform *machine)
{
    trl_err err;
    uint8_t executor[MOST_TASKS];
    trli_transfers transfers = {0};
    trli_prediction prediction = {0};
    for (int kind = 0; kind < TRLI_PLACEMENTS; ++kind)
        TRL_TRY(trli_assign(test_ctx, &g->graph, machine, (trli_placement_kind)kind, executor));
    TRL_TRY(trli_transfers_find(test_ctx, &g->graph, machine, executor, &transfers));
    TRL_TRY(trli_predict(test_ctx, &g->graph, machine, executor, &transfers, false, &prediction));
done:
    trli_transfers_free(&transfers);
    trli_prediction_free(&prediction);
    return err;
}

START_TEST(fails_cleanly_wherever_memory_runs_out)
{
    uint64_t state = 3;
    const size_t limit = test_ctx->memory.limit;
    const trli_platform machine = random_machine(&state, 3);
    place_graph *g = place_random(&state, 20, 5, 3);
    int failures = 0;
    trl_err err = TRL_ERR_MEMORY;
    for (size_t room = 0; err; room += 16) {
        trl_memory_stats before, after;
        trl_memory_get_stats(test_ctx, &before);
        test_ctx->memory.limit = before.bytes + room;
        err = assign_and_predict(g, &machine);
        test_ctx->memory.limit = limit;
        test_clear();
        trl_memory_get_stats(test_ctx, &after);
        ck_assert(err == TRL_OK || err == TRL_ERR_MEMORY);
        ck_assert_uint_eq(after.bytes, before.bytes);
        failures += err != TRL_OK;
    }
    ck_assert_int_gt(failures, 100);
    place_graph_free(g);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, finish_time_is_near_the_best_placement_of_all);
    tcase_add_test(tc, keeps_to_what_tasks_are_eligible_for_and_groups_together);
    tcase_add_test(tc, lets_the_host_go_ahead_of_a_gpu_unless_workers_save_a_quarter);
    tcase_add_test(tc, parts_a_group_rather_than_override_what_its_tasks_are_eligible_for);
    tcase_add_test(tc, keeps_patches_and_their_neighbours_together);
    tcase_add_test(tc, never_gives_a_device_more_than_its_memory_holds);
    tcase_add_test(tc, places_elsewhere_what_is_too_large_for_a_device);
    tcase_add_test(tc, keeps_memory_for_tasks_that_have_no_other_place);
    tcase_add_test(tc, refuses_tasks_that_fit_into_no_memory);
    tcase_add_test(tc, places_a_hundred_thousand_tasks_in_a_second);
    tcase_add_test(tc, fails_cleanly_wherever_memory_runs_out);
}

TRL_TEST_MAIN("placement_assign", add_tests)
