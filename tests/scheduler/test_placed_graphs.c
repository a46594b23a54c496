// ctest: np=1 labels=threads timeout=300
/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Random graphs on workers and mock devices, however placed: the bits of a plain loop, no more copies than values need,
 * and no trace of runs that failed. */
#include "trl_test.h"

#include "app_support.h"
#include "mock_support.h"
#include "placement_run_impl.h"

#include "placed_data.h"

#include "placed_graph.h"

#include "placed_maker.h"

#include "placed_plain.h"

#include "placed_pair.h"

#include <pthread.h>

/* Of how many graphs, for each of the sets of devices; a device is opened for each graph in fewer, as that takes more
 * time than the runs. */
enum {
    GRAPHS = APP_SANITIZED ? 12 : 60,
    LONG_GRAPHS = APP_SANITIZED ? 200 : 2000,
    OPENED_GRAPHS = APP_SANITIZED ? 6 : 12,
    FRAMES = 4, /* at the most */
    PLACEMENTS = 6,
    PLACED_ON_DEVICES = 2, /* of them: stays as it is */
    RUNS = 5,
    LEARNING_RUNS = 28, /* all executors were timed, and a placement was held against them */
};

static const char *const mocks[] = {"1", "2", "4", "1:latency=20us;1:launch=10us", "2:clock=virtual,rate=100M"};
enum { MOCKS = sizeof mocks / sizeof *mocks };

static int graphs(void)
{
    return test_long() ? LONG_GRAPHS : GRAPHS;
}

static int opened_graphs(void)
{
    return test_long() ? LONG_GRAPHS / 2 : OPENED_GRAPHS;
}

/* Tasks are placed by the built-in policies, or by that of a plugin. */
static trl_workers *make_hybrid(int threads)
{
    static const char *const policies[] = {"hybrid", TRL_TEST_PLUGIN_DIR "/placement_greedy.so"};
    trl_workers *workers = make_workers(&(setting){policies[threads == 2], threads});
    ck_ok(trl_workers_set_devices(workers, devices));
    return workers;
}

/* What all runs of the graph copied, with the frames of so many pairs. */
static void check_copies(pair *p, int n)
{
    trl_placement_stats stats;
    int64_t copies = 0, out = 0, bytes = 0, tasks = 0;
    trl_graph_get_placement(p->g->graph, &stats);
    for (int i = 0; i < n; ++i) {
        copies += p[i].f->copies;
        out += p[i].f->copies_out;
        bytes += p[i].f->bytes;
    }
    for (int e = 0; e < stats.executors; ++e) tasks += stats.tasks[e];
    if (stats.copies[TRL_WAY_OUT] != out) fault(p, "copies to the host:", stats.copies[TRL_WAY_OUT], out);
    if (stats.copies[TRL_WAY_IN] + stats.copies[TRL_WAY_ACROSS] != copies - out)
        fault(p, "copies to devices:", stats.copies[TRL_WAY_IN] + stats.copies[TRL_WAY_ACROSS], copies - out);
    if (stats.bytes[TRL_WAY_IN] + stats.bytes[TRL_WAY_OUT] + stats.bytes[TRL_WAY_ACROSS] != bytes)
        fault(p, "bytes copied of", bytes, stats.bytes[TRL_WAY_IN]);
    if (stats.executors > 0 && tasks != p->g->own + p->g->inner)
        fault(p, "tasks placed:", tasks, p->g->own + p->g->inner);
    must(p);
}

/* A run that follows equal ones copies what its placement said. */
static void check_steady(pair *p, trl_workers *workers)
{
    trl_placement_stats stats;
    int64_t copies, bytes;
    for (int run = 0; run < 2 * p->g->nhandles; ++run) run_well(p, workers); /* all data went round twice */
    copies = p->f->copies;
    bytes = p->f->bytes;
    run_well(p, workers);
    trl_graph_get_placement(p->g->graph, &stats);
    if (p->f->copies - copies != stats.transfers)
        fault(p, "transfers planned:", stats.transfers, p->f->copies - copies);
    if (p->f->bytes - bytes != stats.transfer_bytes)
        fault(p, "bytes planned:", stats.transfer_bytes, p->f->bytes - bytes);
    must(p);
}

static void add_up(const pair *p, int64_t made[TRL_WAYS])
{
    trl_placement_stats stats;
    trl_graph_get_placement(p->g->graph, &stats);
    for (int way = 0; way < TRL_WAYS; ++way) made[way] += stats.copies[way];
}

/* The rule for a graph, and whether copies are made early; returns how often it is run. */
static int choose_placement(trl_workers *workers, uint64_t seed)
{
    static const char *const rules[PLACEMENTS] = {"random", "auto", "devices", "round_robin", "random", "min_load"};
    char random[32];
    const int which = (int)(seed % PLACEMENTS);
    snprintf(random, sizeof random, "random:%llu", (unsigned long long)seed);
    ck_ok(trl_workers_set_placement(workers, which % 4 == 0 ? random : rules[which]));
    ck_ok(trl_workers_set_prefetch(workers, seed / PLACEMENTS % 2));
    return which % 2 ? LEARNING_RUNS : RUNS;
}

START_TEST(runs_give_the_bits_of_a_plain_loop_and_copy_no_more_than_values_need)
{
    open_mocks(mocks[_i]);
    trl_workers *workers = make_hybrid(1 + _i % 3);
    int64_t made[TRL_WAYS] = {0}, rounds = 0, exchanges = 0;
    /* Without prefetch: one with phases, in which a copy may not wait for a phase that its own reader holds up; and one
     * in which it comes for a task behind a call, added before those poll tasks that another reader waits for. */
    static const uint64_t more[] = {936, 1841};
    for (uint64_t i = 0, seed; i < (uint64_t)graphs() + sizeof more / sizeof *more; ++i) {
        const int runs =
            choose_placement(workers, seed = i < (uint64_t)graphs() ? i + 1 : more[i - (uint64_t)graphs()]);
        pair p = make_pair(seed + 100000 * (uint64_t)_i);
        for (int run = 0; run < runs; ++run) {
            run_well(&p, workers);
            must(&p);
        }
        if (seed % PLACEMENTS == PLACED_ON_DEVICES && count_open(p.g) == 0) check_steady(&p, workers);
        check_copies(&p, 1);
        add_up(&p, made);
        rounds += p.rounds;
        exchanges += p.exchanges;
        free_pair(&p);
    }
    /* Each graph's copies are what its values need; there are enough of them. From which of several memories a value is
     * copied depends on measured links. */
    ck_assert_int_gt(made[TRL_WAY_IN] + made[TRL_WAY_ACROSS], 12 * graphs());
    ck_assert_int_gt(made[TRL_WAY_OUT], 5 * graphs());
    if (trl_devices_opened(devices) > 1) ck_assert_int_gt(made[TRL_WAY_ACROSS], graphs() / 6);
    ck_assert_int_gt(rounds, 5 * graphs());
    if (!APP_SANITIZED) ck_assert_int_gt(exchanges, graphs() / 6);
    trl_workers_destroy(&workers);
    close_mocks();
}
END_TEST

/* ---- several runs at once ---- */

typedef struct runner {
    pair p;
    trl_workers *workers;
    int runs;
} runner;

static void *run_repeatedly(void *data)
{
    runner *r = data;
    for (int run = 0; run < r->runs && !r->p.fault[0]; ++run) run_well(&r->p, r->workers);
    return NULL;
}

/* Runners of one graph, in frames of their own. */
static void make_runners(runner *r, int n, trl_workers *workers, uint64_t seed, int runs)
{
    placed_graph *g = make_placed_graph(seed);
    for (int i = 0; i < n; ++i)
        r[i] = (runner){.p = {.g = g,
                              .f = new_data_frame(g, g->nhandles, seed + 7 * (uint64_t)i),
                              .plain = new_data_frame(g, g->nhandles, seed + 7 * (uint64_t)i)},
                        .workers = workers,
                        .runs = runs};
}

/* The first as it says, the others well, all at once. */
static void run_at_once(runner *r, int n, void *(*first)(void *data))
{
    pthread_t thread[FRAMES];
    for (int i = 1; i < n; ++i) ck_assert_int_eq(pthread_create(&thread[i], NULL, run_repeatedly, &r[i]), 0);
    first(&r[0]);
    for (int i = 1; i < n; ++i) pthread_join(thread[i], NULL);
    for (int i = 0; i < n; ++i) must(&r[i].p);
}

static void free_runners(runner *r, int n)
{
    for (int i = 1; i < n; ++i) free_frames(&r[i].p);
    free_pair(&r[0].p);
}

START_TEST(runs_in_several_frames_at_once_have_the_bits_of_each_alone)
{
    open_mocks(mocks[_i]);
    trl_workers *workers = make_hybrid(1 + _i % 3);
    for (uint64_t seed = 1; seed <= (uint64_t)graphs() / 2; ++seed) {
        const int n = 2 + (int)(seed % (FRAMES - 1));
        runner r[FRAMES];
        pair p[FRAMES];
        make_runners(r, n, workers, seed + 500000, choose_placement(workers, seed));
        run_at_once(r, n, run_repeatedly);
        for (int i = 0; i < n; ++i) p[i] = r[i].p;
        check_copies(p, n);
        free_runners(r, n);
    }
    trl_workers_destroy(&workers);
    close_mocks();
}
END_TEST

/* ---- runs that end early ---- */

/* What a run that ended early may have changed begins anew; what no task writes is as it was, wherever it is valid. */
static void begin_anew(pair *p)
{
    ++p->resets;
    for (int h = 0; h < p->g->nhandles; ++h) {
        if (!p->g->handle[h].written) continue;
        set_data(p->f, &p->g->handle[h], h, p->g->seed + p->resets);
        set_data(p->plain, &p->g->handle[h], h, p->g->seed + p->resets);
    }
}

/* Tasks that are to be called after an error, too, are. Those that wait for signals, scopes or phases may wait for what
 * was left out. */
static void check_always(pair *p)
{
    bool certain[DATA_NODES];
    for (int i = 0; i < p->g->own; ++i) {
        const placed_node *n = &p->g->node[i];
        certain[i] = n->signals == 0 && p->g->phases == 0;
        for (int k = 0; k < i && certain[i]; ++k) certain[i] = certain[k] && !(p->g->node[k].flags & TRL_TASK_SCOPE);
        if (certain[i] && n->flags & TRL_TASK_ALWAYS && atomic_load(&p->f->calls[i]) == 0)
            fault(p, "not called after an error:", i, 0);
    }
}

/* A task of a call's body is named after the call, too: "n3/n3". */
static bool is_named(const char *name, const placed_node *n)
{
    const size_t length = strlen(n->name);
    return name && strncmp(name, n->name, length) == 0 && (name[length] == 0 || name[length] == '/');
}

static void check_end(pair *p, trl_err err, trl_err expected)
{
    trl_graph_forget_times(p->g->graph); /* the name outlives what was run */
    const char *name = trl_graph_failed_task(p->g->graph);
    if (err != expected) fault(p, "a run ended with", err, expected);
    if (expected == TRL_ERR_NUMERICS && !is_named(name, &p->g->node[p->f->fail_at]))
        fault(p, "another task has failed than", p->f->fail_at, 0);
    check_always(p);
    p->f->fail_at = p->f->cancel_at = NONE;
    begin_anew(p);
    test_clear();
}

/* Every second run fails at some task. */
static void *fail_repeatedly(void *data)
{
    runner *r = data;
    uint64_t state = r->p.g->seed;
    for (int run = 0; run < r->runs && !r->p.fault[0]; ++run) {
        if (run % 2 == 0) {
            run_well(&r->p, r->workers);
            continue;
        }
        r->p.f->fail_at = app_below(&state, r->p.g->own);
        const trl_err err = run_frame(&r->p, r->workers);
        if (err != TRL_ERR_NUMERICS) fault(&r->p, "a run ended with", err, TRL_ERR_NUMERICS);
        r->p.f->fail_at = NONE;
        begin_anew(&r->p);
    }
    return NULL;
}

START_TEST(a_run_that_fails_leaves_another_one_at_the_same_time_as_it_is)
{
    open_mocks(mocks[_i]);
    trl_workers *workers = make_hybrid(1 + _i % 3);
    for (uint64_t seed = 1; seed <= (uint64_t)graphs() / 6; ++seed) {
        ck_ok(trl_workers_set_placement(workers, "devices"));
        runner r[2];
        make_runners(r, 2, workers, seed + 1300000, 2 * RUNS);
        run_at_once(r, 2, fail_repeatedly);
        test_clear();
        free_runners(r, 2);
    }
    trl_workers_destroy(&workers);
    close_mocks();
}
END_TEST

START_TEST(runs_that_end_early_leave_nothing_behind)
{
    open_mocks(mocks[_i]);
    trl_workers *workers = make_hybrid(1 + _i % 3);
    for (uint64_t seed = 1; seed <= (uint64_t)graphs(); ++seed) {
        choose_placement(workers, seed);
        pair p = make_pair(seed + 700000);
        for (int run = 0; run < RUNS; ++run) {
            int *at = run % 2 ? &p.f->cancel_at : &p.f->fail_at;
            *at = app_below(&p.g->state, run % 2 ? p.g->own : p.g->count);
            if (run % 2 && (p.g->node[*at].on_mocks || is_open(&p.g->node[*at])))
                *at = NONE; /* calls of devices know no run to cancel */
            const bool early = *at != NONE;
            const trl_err err = run_frame(&p, workers);
            if (early) check_end(&p, err, run % 2 ? TRL_ERR_INTERRUPTED : TRL_ERR_NUMERICS);
            if (!early) begin_anew(&p);
            run_well(&p, workers);
            must(&p);
        }
        free_pair(&p);
    }
    trl_workers_destroy(&workers);
    close_mocks();
}
END_TEST

/* ---- devices that fail ---- */

/* The first run that a device fails in; the next one is right. A lost device does nothing any more: its tasks go to the
 * others. */
static void check_faulty(uint64_t seed, const char *fault)
{
    char settings[64];
    uint64_t state = seed;
    snprintf(settings, sizeof settings, "1:latency=10us;1:fail=%s@%d;1", fault, 1 + app_below(&state, 40));
    open_mocks(settings);
    trl_workers *workers = make_hybrid(1 + (int)(seed % 3));
    ck_ok(trl_workers_set_placement(workers, seed % 2 ? "devices" : "random:1"));
    pair p = make_pair(seed + 900000);
    for (int run = 0; run < 2 * RUNS; ++run) {
        uint32_t before[DATA_HANDLES];
        memcpy(before, p.f->valid, sizeof before);
        const trl_err err = run_frame(&p, workers);
        if (err == TRL_OK) check_well(&p, before);
        if (err != TRL_OK) {
            if (strcmp(fault, "lost") == 0) /* with all that it held */
                for (int h = 0; h < p.g->nhandles; ++h) p.g->handle[h].written |= !(p.f->valid[h] & ~4u);
            check_end(&p, err, TRL_ERR_DEVICE);
            run_well(&p, workers);
        }
        must(&p);
    }
    free_pair(&p);
    trl_workers_destroy(&workers);
    close_mocks();
}

START_TEST(the_run_after_one_in_which_a_device_failed_is_right)
{
    static const char *const faults[] = {"call", "copy", "lost"};
    for (uint64_t seed = 1; seed <= (uint64_t)opened_graphs(); ++seed) check_faulty(seed, faults[_i]);
}
END_TEST

/* ---- before the first run ---- */

static trl_memory_stats memory_now(void)
{
    trl_memory_stats stats;
    trl_memory_get_stats(test_ctx, &stats);
    return stats;
}

START_TEST(a_prepared_graph_is_placed_and_its_first_run_allocates_nothing)
{
    open_mocks(mocks[_i]);
    trl_workers *workers = make_hybrid(1 + _i % 3);
    for (uint64_t seed = 1; seed <= (uint64_t)graphs() / 3; ++seed) {
        trl_placement_stats stats;
        pair p = make_pair(seed + 1700000);
        ck_ok(trl_workers_set_placement(workers, "min_load")); /* is not used */
        ck_ok(trl_graph_prepare(p.g->graph, workers));
        choose_placement(workers, seed);
        ck_ok(trl_graph_prepare(p.g->graph, workers));
        ck_ok(trl_graph_prepare(p.g->graph, workers));
        trl_graph_get_placement(p.g->graph, &stats);
        ck_assert_int_eq(stats.executors, 1 + trl_devices_opened(devices));
        for (int h = 0; h < p.g->nhandles; ++h)
            for (int s = 1; s < stats.executors; ++s)
                ck_ok(provide_data(p.g, p.f, DATA_KEY + (int64_t)h * DATA_KEY_STEP, s));
        const trl_memory_stats before = memory_now();
        ck_ok(run_frame(&p, workers));
        if (p.g->count == p.g->own) /* spawned tasks take memory when there are some */
            ck_assert_int_eq(memory_now().allocations, before.allocations);
        must(&p);
        free_pair(&p);
    }
    trl_workers_destroy(&workers);
    close_mocks();
}
END_TEST

/* ---- timing ---- */

/* Seconds of copies that timed runs have shown. */
static double copying(const pair *p)
{
    return p->g->graph->placement->placed->times.copying;
}

/* Each task has a time of the kind that ran it. */
static bool tasks_have_times(const pair *p)
{
    const trli_placement *placement = p->g->graph->placement;
    for (int t = 0; t < p->g->own; ++t) {
        const int e = placement->executor[t];
        const trl_kind kind = e ? trli_device_of(placement->devices, e)->kind : TRL_KIND_CPU;
        if (!(trl_graph_task_seconds(p->g->graph, p->g->node[t].task, kind) > 0)) return false;
    }
    return true;
}

START_TEST(timing_may_begin_and_end_when_a_graph_is_placed)
{
    enum { SAMPLES = 3 }; /* the first runs are timed */
    bool any = false;
    open_mocks("1:latency=10us");
    trl_workers *workers = make_hybrid(2);
    ck_ok(trl_workers_set_placement(workers, "devices"));
    for (uint64_t seed = 1; !any; ++seed) {
        pair p = make_pair(seed + 1500000);
        for (int run = 0; run < SAMPLES; ++run) run_well(&p, workers);
        ck_assert(tasks_have_times(&p));
        double before = copying(&p);
        run_well(&p, workers);
        ck_assert_double_eq(copying(&p), before);
        begin_anew(&p); /* is to be copied again */
        trl_graph_set_timing(p.g->graph, true);
        run_well(&p, workers);
        any = copying(&p) > before;
        before = copying(&p);
        trl_graph_set_timing(p.g->graph, false);
        run_well(&p, workers);
        ck_assert_double_eq(copying(&p), before);
        must(&p);
        free_pair(&p);
        ck_assert_int_lt(seed, 50);
    }
    trl_workers_destroy(&workers);
    close_mocks();
}
END_TEST

/* ---- following ---- */

/* The executor of the leader's first task has all that it may do. */
static bool is_beside(const trl_graph *graph, const trl_graph *leader)
{
    const trli_placement *p = graph->placement;
    const int e = leader->placement->executor[0];
    bool beside = true;
    for (int32_t t = 0; t < graph->task_count; ++t) beside &= p->executor[t] == (p->eligible[t] >> e & 1 ? e : 0);
    return beside;
}

START_TEST(a_graph_that_follows_another_one_runs_where_that_does_and_is_not_timed)
{
    bool moved = false;
    for (uint64_t seed = 1; seed <= (uint64_t)opened_graphs() / 2 || !moved; ++seed) {
        open_mocks(mocks[seed % 3]);
        const int threads = 1 + (int)(seed % 3);
        trl_workers *workers = make_hybrid(threads);
        pair leader = make_pair(seed + 1700000), p = make_pair(seed + 1800000);
        int last = -1;
        trl_graph_follow(p.g->graph, leader.g->graph);
        for (int run = 0; run < 20; ++run) {
            run_well(&leader, workers);
            run_well(&p, workers);
            ck_assert_int_eq(trli_placement_follows(p.g->graph->placement), threads != 2); /* a plugin places */
            if (threads == 2) continue;
            ck_assert(is_beside(p.g->graph, leader.g->graph));
            ck_assert(!trli_placement_is_timed(p.g->graph->placement));
            const int now = leader.g->graph->placement->executor[0];
            moved |= last >= 0 && now != last;
            last = now;
        }
        must(&leader);
        must(&p);
        trl_graph_follow(p.g->graph, NULL);
        bring_home(p.f, p.g->nhandles);
        run_well(&p, workers);
        ck_assert(!trli_placement_follows(p.g->graph->placement));
        free_pair(&p);
        free_pair(&leader);
        trl_workers_destroy(&workers);
        close_mocks();
        ck_assert(moved || seed < 50);
    }
}
END_TEST

/* ---- other workers, other devices ---- */

START_TEST(a_graph_may_go_on_with_other_workers_and_devices)
{
    for (uint64_t seed = 1; seed <= (uint64_t)opened_graphs() / 2; ++seed) {
        pair p = make_pair(seed + 1100000);
        trl_devices *old = NULL;
        for (int turn = 0; turn < 4; ++turn) {
            open_mocks(mocks[(seed + (uint64_t)turn) % 3]);
            trl_workers *workers = make_hybrid(1 + (int)((seed + (uint64_t)turn) % 2));
            const int runs = choose_placement(workers, seed) / 5;
            if (turn % 2) ck_ok(trl_graph_prepare(p.g->graph, workers));
            for (int run = 0; run < runs; ++run) run_well(&p, workers);
            if (turn == 2) { /* none for a while */
                bring_home(p.f, p.g->nhandles);
                ck_ok(trl_workers_set_devices(workers, NULL));
                run_well(&p, workers);
            }
            must(&p);
            bring_home(p.f, p.g->nhandles);
            leave_devices(p.f, p.g->nhandles);
            trl_workers_destroy(&workers);
            trl_devices_close(&old); /* its last traces in the graph went with the first run on the next */
            old = devices;
        }
        free_pair(&p);
        devices = old;
        close_mocks();
    }
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_loop_test(tc, runs_give_the_bits_of_a_plain_loop_and_copy_no_more_than_values_need, 0, MOCKS);
    tcase_add_loop_test(tc, runs_in_several_frames_at_once_have_the_bits_of_each_alone, 0, MOCKS);
    tcase_add_loop_test(tc, a_run_that_fails_leaves_another_one_at_the_same_time_as_it_is, 0, MOCKS);
    tcase_add_loop_test(tc, runs_that_end_early_leave_nothing_behind, 0, MOCKS);
    tcase_add_loop_test(tc, the_run_after_one_in_which_a_device_failed_is_right, 0, 3);
    tcase_add_loop_test(tc, a_prepared_graph_is_placed_and_its_first_run_allocates_nothing, 0, MOCKS);
    tcase_add_test(tc, timing_may_begin_and_end_when_a_graph_is_placed);
    tcase_add_test(tc, a_graph_that_follows_another_one_runs_where_that_does_and_is_not_timed);
    tcase_add_test(tc, a_graph_may_go_on_with_other_workers_and_devices);
}

TRL_TEST_MAIN("placed graphs", add_tests)
