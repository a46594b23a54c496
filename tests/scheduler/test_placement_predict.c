// ctest: np=1
/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Placements on a virtual clock: goldens by hand, and what must hold of any run. */
#include "trl_test.h"

#include "place_graph.h"

typedef struct prediction {
    trli_transfers transfers;
    trli_prediction times;
} prediction;

static prediction predict(const place_graph *g, const trli_platform *machine, const uint8_t *executor, bool prefetch)
{
    prediction p;
    ck_ok(trli_transfers_find(test_ctx, &g->graph, machine, executor, &p.transfers));
    ck_ok(trli_predict(test_ctx, &g->graph, machine, executor, &p.transfers, prefetch, &p.times));
    return p;
}

static void free_prediction(prediction *p)
{
    trli_transfers_free(&p->transfers);
    trli_prediction_free(&p->times);
}

static double predicted_seconds(const place_graph *g, const trli_platform *machine, const uint8_t *executor,
                                bool prefetch)
{
    prediction p = predict(g, machine, executor, prefetch);
    const double seconds = p.times.seconds;
    free_prediction(&p);
    return seconds;
}

static const trli_transfer *transfer_of(const prediction *p, int32_t x)
{
    return &((const trli_transfer *)p->transfers.list.data)[x];
}

static void close_graph(place_graph *g)
{
    place_depend_by_accesses(g);
    place_finish(g);
}

/* A task that writes one handle and reads up to three. */
static int32_t add(place_graph *g, double seconds, int32_t writes, int reads, const int32_t *read)
{
    const int32_t t = place_task(g, seconds);
    for (int k = 0; k < reads; ++k) place_access(g, read[k], TRL_READ);
    place_access(g, writes, TRL_WRITE);
    return t;
}

/* ---- goldens ---- */

/* Fig. 3.19 of Robison (2014): D and E are ready early, F and then C late, and B, on a device, needs C, D and E. */
START_TEST(copies_what_is_ready_early_before_the_last_producer_ends)
{
    enum { D, E, F, C, B };
    const uint8_t executor[] = {0, 0, 0, 0, 1};
    trli_platform machine = place_machine(2, 0.0, 1.0);
    place_graph *g = place_graph_new(5, 5, 16, 64, 2);
    machine.parallel[0] = 3;
    add(g, 1.0, D, 0, NULL);
    add(g, 1.0, E, 0, NULL);
    add(g, 2.0, F, 0, NULL);
    add(g, 2.0, C, 1, (const int32_t[]){F});
    add(g, 1.0, B, 3, (const int32_t[]){C, D, E});
    close_graph(g);
    prediction early = predict(g, &machine, executor, true), late = predict(g, &machine, executor, false);
    ck_assert_int_eq(early.transfers.list.count, 3);
    for (int32_t x = 0; x < 3; ++x) {
        const int32_t handle = transfer_of(&early, x)->handle;
        if (handle != C) ck_assert_double_lt(early.times.copy_end[x], early.times.end[C]);
        ck_assert_double_ge(late.times.copy_start[x], late.times.end[C]);
    }
    /* D's and E's copies end at 2 and 3, C at 4, its copy at 5. Without prefetch three copies begin at 4. */
    ck_assert_double_eq(early.times.start[B], 5.0);
    ck_assert_double_eq(late.times.start[B], 7.0);
    ck_assert_double_eq(early.times.seconds, 6.0);
    free_prediction(&early);
    free_prediction(&late);
    place_graph_free(g);
}
END_TEST

/* Fig. 3.18: the result of one GPU is read by three other GPUs and two CPU tasks. */
START_TEST(copies_a_result_once_to_each_of_its_consumers_spaces)
{
    const uint8_t executor[] = {1, 2, 3, 4, 0, 0};
    trli_platform machine = place_machine(5, 0.0, 1.0);
    place_graph *g = place_graph_new(6, 6, 16, 64, 5);
    int copies[5] = {0};
    machine.parallel[0] = 2;
    add(g, 1.0, 0, 0, NULL);
    for (int32_t t = 1; t < 6; ++t) add(g, 1.0, t, 1, (const int32_t[]){0});
    close_graph(g);
    prediction p = predict(g, &machine, executor, true);
    ck_assert_int_eq(p.transfers.list.count, 4);
    for (int32_t x = 0; x < 4; ++x) {
        ck_assert(transfer_of(&p, x)->from == 1 && transfer_of(&p, x)->source == -1);
        ++copies[transfer_of(&p, x)->to];
        ck_assert_double_eq(p.times.copy_start[x], 1.0);
    }
    ck_assert(copies[0] == 1 && copies[2] == 1 && copies[3] == 1 && copies[4] == 1);
    ck_assert_double_eq(p.times.seconds, 3.0);
    free_prediction(&p);
    place_graph_free(g);
}
END_TEST

/* Fig. 3.15: five unit nodes, a chain of four among them. Costs of edges are added to the longest path where two
 * devices take part. */
START_TEST(adds_copies_to_the_longest_path)
{
    trli_platform machine = place_machine(2, 0.25, 4.0);
    place_graph *g = place_graph_new(5, 5, 16, 64, 2);
    machine.parallel[0] = 8;
    add(g, 1.0, 0, 0, NULL);
    for (int32_t t = 1; t < 4; ++t) add(g, 1.0, t, 1, (const int32_t[]){t - 1});
    add(g, 1.0, 4, 1, (const int32_t[]){0});
    close_graph(g);
    ck_assert_double_eq(predicted_seconds(g, &machine, (const uint8_t[]){0, 0, 0, 0, 0}, true), 4.0);
    ck_assert_double_eq(predicted_seconds(g, &machine, (const uint8_t[]){0, 0, 0, 0, 1}, true), 4.0);
    ck_assert_double_eq(predicted_seconds(g, &machine, (const uint8_t[]){0, 0, 1, 1, 0}, true), 4.5);
    ck_assert_double_eq(predicted_seconds(g, &machine, (const uint8_t[]){0, 1, 0, 1, 0}, true), 5.5);
    place_graph_free(g);
}
END_TEST

/* Two tasks of the same time: the second one's result has to be copied. */
START_TEST(serves_first_what_is_copied_afterwards)
{
    const uint8_t executor[] = {0, 0, 0, 1};
    const trli_platform machine = place_machine(2, 3.0, 1.0);
    place_graph *g = place_graph_new(4, 4, 16, 64, 2);
    add(g, 1.0, 0, 0, NULL);
    add(g, 1.0, 1, 0, NULL);
    add(g, 1.0, 2, 1, (const int32_t[]){0});
    add(g, 1.0, 3, 1, (const int32_t[]){1});
    close_graph(g);
    prediction p = predict(g, &machine, executor, true);
    ck_assert(p.times.start[1] == 0.0 && p.times.start[0] == 1.0);
    ck_assert_double_eq(p.times.seconds, 6.0);
    free_prediction(&p);
    place_graph_free(g);
}
END_TEST

/* Three tasks of a device in a row, then one that waits for the host. */
START_TEST(launches_tasks_that_follow_each_other_once)
{
    const uint8_t executor[] = {1, 1, 1, 0, 1};
    trli_platform machine = place_machine(2, 0.0, 0.0);
    place_graph *g = place_graph_new(5, 5, 16, 64, 2);
    machine.launch[1] = 0.5;
    add(g, 1.0, 0, 0, NULL);
    for (int32_t t = 1; t < 5; ++t) add(g, 1.0, t, 1, (const int32_t[]){t - 1});
    close_graph(g);
    prediction p = predict(g, &machine, executor, true);
    ck_assert_double_eq(p.times.start[3], 3.5);
    ck_assert_double_eq(p.times.end[4], 6.0);
    ck_assert_double_eq(p.times.busy[1], 5.0);
    ck_assert_double_eq(p.times.busy[0], 1.0);
    free_prediction(&p);
    place_graph_free(g);
}
END_TEST

/* Data of three boxes between data of one. */
START_TEST(counts_the_latency_of_each_box_of_a_copy)
{
    const uint8_t executor[] = {0, 1};
    const int32_t pieces[] = {3, 1};
    const trli_platform machine = place_machine(2, 0.5, 4.0);
    place_graph *g = place_graph_new(2, 2, 16, 64, 2);
    add(g, 1.0, 0, 0, NULL);
    add(g, 1.0, 1, 1, (const int32_t[]){0});
    close_graph(g);
    ck_assert_double_eq(predicted_seconds(g, &machine, executor, true), 1.0 + 0.75 + 1.0);
    g->graph.pieces = pieces;
    ck_assert_double_eq(predicted_seconds(g, &machine, executor, true), 1.0 + 1.75 + 1.0);
    place_graph_free(g);
}
END_TEST

/* ---- what must hold of any run ---- */

typedef struct case_data {
    const place_graph *g;
    const trli_platform *machine;
    const uint8_t *executor;
    prediction p;
    double ready[64], requested[64];      /* of tasks: all they wait for is complete; their predecessors are */
    double value_there[256], wanted[256]; /* of copies */
    int from[256];
} case_data;

static double later(double a, double b)
{
    return a > b ? a : b;
}

static void find_ready(case_data *c)
{
    const trli_place_graph *g = &c->g->graph;
    for (int32_t t = 0; t < g->tasks; ++t) {
        for (int32_t i = g->first[t]; i < g->first[t + 1]; ++i) {
            const int32_t after = g->successors[i];
            c->ready[after] = c->requested[after] = later(c->requested[after], c->p.times.end[t]);
        }
    }
    for (int32_t t = 0; t < g->tasks; ++t) {
        for (int32_t a = g->access_first[t]; a < g->access_first[t + 1]; ++a) {
            int32_t x = c->p.transfers.access_transfer[a];
            if (x >= 0) c->ready[t] = later(c->ready[t], c->p.times.copy_end[x]);
            for (; x >= 0; x = transfer_of(&c->p, x)->source)
                if (c->wanted[x] < 0) c->wanted[x] = c->requested[t]; /* the first one in order */
        }
    }
    for (int32_t x = 0; x < c->p.transfers.list.count; ++x) {
        const trli_transfer *transfer = transfer_of(&c->p, x);
        const int32_t *writers = c->p.transfers.writers.data;
        for (int32_t i = transfer->writers_first; i < transfer->writers_end; ++i)
            c->value_there[x] = later(c->value_there[x], c->p.times.end[writers[i]]);
        if (transfer->source >= 0) c->value_there[x] = later(c->value_there[x], c->p.times.copy_end[transfer->source]);
    }
}

/* Where runs leave data, if they find what is ANYWHERE in these spaces: every task's executor has what it touches, and
 * nobody else what it writes. */
static void follow_run(const case_data *c, const uint16_t *before, uint16_t *after)
{
    const trli_place_graph *g = &c->g->graph;
    for (int32_t h = 0; h < g->handles; ++h) {
        int32_t mode = TRL_READ, part = -1;
        after[h] = g->valid && !(g->valid[h] >> TRLI_ANYWHERE & 1) ? g->valid[h] : before[h];
        for (int32_t t = 0; t < g->tasks; ++t) {
            for (int32_t a = g->access_first[t]; a < g->access_first[t + 1]; ++a) {
                if (g->access[a].handle != h) continue;
                const bool joins =
                    place_shared((trl_access)mode) && mode == g->access[a].mode && part == g->access[a].part;
                const bool valid = after[h] > 0 && g->handle[h].bytes > 0;
                mode = g->access[a].mode;
                part = g->access[a].part;
                if (mode != TRL_READ && !joins) after[h] = 0;
                if (mode != TRL_READ || valid) after[h] |= (uint16_t)(1u << c->executor[t]);
            }
        }
    }
}

/* A run like those before it: what is ANYWHERE is where they left it. */
static void find_sources(case_data *c)
{
    uint16_t before[8] = {0}, after[8];
    for (int32_t h = 0; h < c->g->graph.handles; ++h) before[h] = 1u << TRLI_ANYWHERE;
    for (int run = 0; run < 40; ++run) {
        follow_run(c, before, after);
        for (int32_t h = 0; h < c->g->graph.handles; ++h)
            before[h] = after[c->g->graph.follows ? c->g->graph.follows[h] : h];
    }
    for (int32_t x = 0; x < c->p.transfers.list.count; ++x) {
        const trli_transfer *t = transfer_of(&c->p, x);
        const unsigned left = before[t->handle];
        c->from[x] = t->from;
        if (t->from != TRLI_ANYWHERE) continue;
        for (int s = c->machine->executors - 1; s >= 0; --s)
            if (left >> s & 1) c->from[x] = s;
        if (left == 0 || left >> t->to & 1) c->from[x] = t->to; /* no value, or it is there */
    }
}

/* Tasks of an executor in progress at a time. */
static int running_at(const case_data *c, int executor, double time)
{
    int n = 0;
    for (int32_t t = 0; t < c->g->graph.tasks; ++t)
        n += c->executor[t] == executor && c->p.times.start[t] <= time && c->p.times.end[t] > time;
    return n;
}

static bool ends_at(const case_data *c, int executor, double time)
{
    for (int32_t t = 0; t < c->g->graph.tasks; ++t)
        if (c->executor[t] == executor && c->p.times.end[t] == time) return true;
    return false;
}

static void check_tasks(const case_data *c)
{
    double last = 0.0;
    for (int32_t t = 0; t < c->g->graph.tasks; ++t) {
        const int e = c->executor[t];
        const double start = c->p.times.start[t], taken = c->p.times.end[t] - start;
        const double seconds = c->g->seconds[t * c->g->executors + e];
        ck_assert_double_ge(start, c->ready[t]);
        ck_assert_int_le(running_at(c, e, start), c->machine->parallel[e]);
        ck_assert_double_eq_tol(taken, seconds + (ends_at(c, e, start) ? 0.0 : c->machine->launch[e]), 1e-9);
        last = later(last, c->p.times.end[t]);
        /* No executor is idle while a task waits for it. */
        for (int32_t u = 0; u < c->g->graph.tasks; ++u) {
            const double end = c->p.times.end[u];
            if (c->executor[u] == e && end >= c->ready[t] && end < start)
                ck_assert_int_eq(running_at(c, e, end), c->machine->parallel[e]);
        }
        if (c->ready[t] < start) ck_assert_int_eq(running_at(c, e, c->ready[t]), c->machine->parallel[e]);
    }
    ck_assert_double_eq(last, c->p.times.seconds);
}

static void check_copies(const case_data *c, bool prefetch)
{
    const int32_t n = (int32_t)c->p.transfers.list.count;
    for (int32_t x = 0; x < n; ++x) {
        const trli_transfer *a = transfer_of(&c->p, x);
        const double may = prefetch ? c->value_there[x] : later(c->value_there[x], c->wanted[x]);
        double free_from = may;
        ck_assert_double_ge(c->p.times.copy_start[x], may);
        ck_assert_double_eq_tol(c->p.times.copy_end[x] - c->p.times.copy_start[x],
                                c->from[x] == a->to ? 0.0 : 5.0 + (double)c->g->handle[a->handle].bytes / 20.0, 1e-9);
        for (int32_t y = 0; y < n; ++y) {
            const trli_transfer *b = transfer_of(&c->p, y);
            if (x == y || c->from[x] == a->to || c->from[x] != c->from[y] || a->to != b->to) continue;
            ck_assert(c->p.times.copy_end[x] <= c->p.times.copy_start[y] ||
                      c->p.times.copy_end[y] <= c->p.times.copy_start[x]);
            if (c->p.times.copy_end[y] <= c->p.times.copy_start[x])
                free_from = later(free_from, c->p.times.copy_end[y]);
        }
        /* It begins when the value is there, or when another copy leaves the link. */
        ck_assert_double_eq(c->p.times.copy_start[x], free_from);
    }
}

/* Returns how long the run takes, as a part of how long it takes without prefetch. */
static double check_random_run(uint64_t seed)
{
    double seconds[2];
    uint64_t state = seed;
    uint8_t executor[40];
    uint16_t valid[8];
    int32_t unit[40], follows[8];
    const int executors = 1 + place_below(&state, 5);
    trli_platform machine = place_machine(executors, 5.0, 20.0);
    place_graph *g = place_random(&state, 1 + place_below(&state, 40), 1 + place_below(&state, 8), executors);
    for (int e = 0; e < executors; ++e) {
        machine.launch[e] = e ? 3.0 : 0.0;
        machine.parallel[e] = 1 + place_below(&state, 3);
    }
    place_random_valid(&state, g, valid);
    place_random_rotation(&state, g, follows);
    place_units(g, unit);
    for (int32_t t = 0; t < g->graph.tasks; ++t)
        executor[t] = unit[t] == t ? (uint8_t)place_below(&state, executors) : executor[unit[t]];
    for (int prefetch = 0; prefetch < 2; ++prefetch) {
        case_data *c = place_calloc(1, sizeof *c);
        *c = (case_data){.g = g, .machine = &machine, .executor = executor};
        c->p = predict(g, &machine, executor, prefetch);
        seconds[prefetch] = c->p.times.seconds;
        for (int32_t x = 0; x < 256; ++x) c->wanted[x] = -1;
        find_ready(c);
        find_sources(c);
        check_tasks(c);
        check_copies(c, prefetch);
        free_prediction(&c->p);
        free(c);
    }
    place_graph_free(g);
    return seconds[false] > 0.0 ? seconds[true] / seconds[false] : 1.0;
}

/* To begin a copy early can delay a more urgent one on the same link, but rarely does. */
START_TEST(starts_tasks_and_copies_as_soon_as_it_may_and_never_before)
{
    enum { RUNS = 300 };
    double sum = 0.0;
    int slower = 0;
    for (uint64_t seed = 1; seed <= RUNS; ++seed) {
        const double part = check_random_run(seed);
        sum += part;
        slower += part > 1.0 + 1e-9;
    }
    ck_assert_double_lt(sum / RUNS, 0.97);
    ck_assert_int_le(slower, RUNS / 50);
}
END_TEST

/* What a device makes at the end of each run is read at the beginning of the next: by itself without a copy, by the
 * host with one. */
START_TEST(begins_where_the_run_before_ended)
{
    static const uint16_t valid[] = {1u << TRLI_ANYWHERE, 1};
    const trli_platform machine = place_machine(2, 10.0, 0.0);
    place_graph *g = place_graph_new(2, 2, 16, 64, 2);
    g->graph.valid = valid;
    add(g, 1.0, 1, 1, (const int32_t[]){0});
    add(g, 1.0, 0, 1, (const int32_t[]){1});
    close_graph(g);
    ck_assert_double_eq(predicted_seconds(g, &machine, (const uint8_t[]){0, 0}, true), 2.0);
    ck_assert_double_eq(predicted_seconds(g, &machine, (const uint8_t[]){1, 1}, true), 2.0);
    ck_assert_double_eq(predicted_seconds(g, &machine, (const uint8_t[]){0, 1}, true), 22.0);
    place_graph_free(g);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, copies_what_is_ready_early_before_the_last_producer_ends);
    tcase_add_test(tc, copies_a_result_once_to_each_of_its_consumers_spaces);
    tcase_add_test(tc, adds_copies_to_the_longest_path);
    tcase_add_test(tc, serves_first_what_is_copied_afterwards);
    tcase_add_test(tc, launches_tasks_that_follow_each_other_once);
    tcase_add_test(tc, counts_the_latency_of_each_box_of_a_copy);
    tcase_add_test(tc, begins_where_the_run_before_ended);
    tcase_add_test(tc, starts_tasks_and_copies_as_soon_as_it_may_and_never_before);
}

TRL_TEST_MAIN("placement_predict", add_tests)
