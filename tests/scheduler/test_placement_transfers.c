// ctest: np=1
/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Transfers: each value is copied to each space where it is needed, once, from where that takes least; and however the
 * tasks and copies come, so long as each waits for what it says, no task reads anything but what was last written. */
#include "trl_test.h"

#include "place_graph.h"

enum { MOST_TASKS = 30, MOST_HANDLES = 6, MOST_SPACES = 16, MOST_INSTANCES = 3 * MOST_TASKS + MOST_HANDLES * 5 };

/* ---- the oracle: every instance of every version is an object ---- */

typedef struct instance {
    int32_t handle, version;
    int space;
    int32_t transfer; /* that made it; -1: none */
} instance;

typedef struct world {
    const place_graph *g;
    const trli_platform *machine;
    const uint8_t *executor;
    const trli_transfers *transfers;
    instance instance[2 * MOST_INSTANCES];
    int instances;
    int32_t version[MOST_HANDLES], writer[MOST_HANDLES], mode[MOST_HANDLES], part[MOST_HANDLES];
    bool foreign[MOST_HANDLES]; /* the last version needs nothing of the one before: it is other data */
    int32_t used;               /* transfers so far */
} world;

static instance *find_instance(world *w, int32_t handle, int32_t version, int space)
{
    for (int i = 0; i < w->instances; ++i) {
        instance *in = &w->instance[i];
        if (in->handle == handle && in->version == version && in->space == space) return in;
    }
    return NULL;
}

static void add_instance(world *w, int32_t handle, int space, int32_t transfer)
{
    w->instance[w->instances++] = (instance){handle, w->version[handle], space, transfer};
}

static double copy_seconds(const world *w, int32_t handle, int from, int to)
{
    const trli_route *link = &w->machine->link[from][to];
    return link->latency + (double)w->g->handle[handle].bytes / link->rate;
}

/* The next transfer is the one that the oracle wants. */
static void expect_transfer(world *w, int32_t task, int32_t handle, int32_t version)
{
    const trli_transfer *got = &((const trli_transfer *)w->transfers->list.data)[w->used];
    const int to = w->executor[task];
    ck_assert_int_lt(w->used, w->transfers->list.count);
    const instance *from = find_instance(w, handle, version, got->from);
    ck_assert_ptr_nonnull(from);
    ck_assert(got->handle == handle && got->reader == task && got->to == to && got->source == from->transfer);
    if (find_instance(w, handle, version, TRLI_ANYWHERE)) ck_assert_int_eq(got->from, TRLI_ANYWHERE);
    for (int s = 0; s < w->machine->executors && got->from != TRLI_ANYWHERE; ++s) {
        if (!find_instance(w, handle, version, s)) continue;
        ck_assert_double_le(copy_seconds(w, handle, got->from, to), copy_seconds(w, handle, s, to));
    }
    w->instance[w->instances++] = (instance){handle, version, to, w->used++};
}

static bool anywhere(world *w, int32_t handle, int32_t version)
{
    for (int s = 0; s < MOST_SPACES; ++s)
        if (find_instance(w, handle, version, s)) return true;
    return false;
}

static void oracle_access(world *w, int32_t task, int32_t a)
{
    const int32_t h = w->g->access[a].handle;
    const trl_access mode = (trl_access)w->g->access[a].mode;
    const bool turned = mode != TRL_READ && w->part[h] != w->g->access[a].part;
    const bool joins = place_shared(mode) && w->mode[h] == (int32_t)mode && !turned;
    const int32_t wanted = joins ? w->version[h] - 1 : w->version[h];
    const int space = w->executor[task];
    int32_t transfer = -1;
    if (!joins) w->foreign[h] = turned;
    if (mode != TRL_WRITE && !w->foreign[h] && anywhere(w, h, wanted) && w->g->handle[h].bytes > 0) {
        if (!find_instance(w, h, wanted, space)) expect_transfer(w, task, h, wanted);
        transfer = find_instance(w, h, wanted, space)->transfer;
    }
    ck_assert_int_eq(w->transfers->access_transfer[a], transfer);
    if (transfer >= 0 && !joins)
        ck_assert_int_eq(((const trli_transfer *)w->transfers->list.data)[transfer].writer, w->writer[h]);
    if (mode != TRL_READ) {
        w->version[h] += !joins;
        w->writer[h] = task;
        if (!joins) add_instance(w, h, space, -1);
    }
    w->mode[h] = (int32_t)mode;
    if (mode != TRL_READ) w->part[h] = w->g->access[a].part;
}

static void compare_with_oracle(const place_graph *g, const trli_platform *machine, const uint8_t *executor,
                                const trli_transfers *transfers)
{
    world *w = place_calloc(1, sizeof *w);
    *w = (world){.g = g, .machine = machine, .executor = executor, .transfers = transfers};
    for (int32_t h = 0; h < g->graph.handles; ++h) {
        w->writer[h] = w->mode[h] = -1;
        w->part[h] = place_first_part(g, h);
        for (int s = 0; s < MOST_SPACES; ++s)
            if ((g->graph.valid ? g->graph.valid[h] : 1) >> s & 1) add_instance(w, h, s, -1);
    }
    for (int32_t t = 0; t < g->graph.tasks; ++t) {
        for (int32_t a = g->access_first[t]; a < g->access_first[t + 1]; ++a) oracle_access(w, t, a);
    }
    ck_assert_int_eq(w->used, transfers->list.count);
    for (int32_t h = 0; h < g->graph.handles; ++h) {
        for (int s = 0; s < MOST_SPACES && g->handle[h].bytes; ++s)
            ck_assert_int_eq(transfers->valid_after[h] >> s & 1, find_instance(w, h, w->version[h], s) != NULL);
    }
    free(w);
}

/* ---- runs in random orders ---- */

typedef struct play {
    const place_graph *g;
    const uint8_t *executor;
    const trli_transfers *transfers;
    bool done[MOST_TASKS], copied[3 * MOST_TASKS];
    int64_t content[MOST_HANDLES][MOST_SPACES]; /* a sum for each value; 0: none */
    int32_t part[MOST_HANDLES][MOST_SPACES];    /* whose it is */
    int anywhere[MOST_HANDLES];                 /* the space that has what is ANYWHERE */
} play;

static const trli_transfer *transfer_of(const play *p, int32_t i)
{
    return &((const trli_transfer *)p->transfers->list.data)[i];
}

static bool may_copy(const play *p, int32_t i)
{
    const trli_transfer *x = transfer_of(p, i);
    if (p->copied[i] || (x->source >= 0 && !p->copied[x->source])) return false;
    for (int32_t k = x->writers_first; k < x->writers_end; ++k)
        if (!p->done[((const int32_t *)p->transfers->writers.data)[k]]) return false;
    return true;
}

static bool may_run(const play *p, int32_t task)
{
    if (p->done[task]) return false;
    for (int32_t t = 0; t < p->g->graph.tasks; ++t) {
        for (int32_t i = p->g->first[t]; i < p->g->first[t + 1]; ++i)
            if (p->g->successors[i] == task && !p->done[t]) return false;
    }
    for (int32_t a = p->g->access_first[task]; a < p->g->access_first[task + 1]; ++a)
        if (p->transfers->access_transfer[a] >= 0 && !p->copied[p->transfers->access_transfer[a]]) return false;
    return true;
}

/* What each task sees, and what it leaves: sums do not care for the order of a group. Who writes other data than what
 * is there does not see that. seen: [accesses]. */
static void run_task(int64_t *content, int32_t *part, const place_graph *g, int32_t a, int32_t task, int64_t *seen)
{
    const trl_access mode = (trl_access)g->access[a].mode;
    const int64_t own = (int64_t)(task + 1) * 1000003 + g->access[a].handle;
    if (mode != TRL_READ) {
        if (*part != g->access[a].part) *content = 0;
        *part = g->access[a].part;
    }
    seen[a] = mode == TRL_WRITE || place_shared(mode) ? 0 : *content;
    if (mode == TRL_WRITE) *content = own;
    if (mode == TRL_READ_WRITE) *content = *content * 31 % 1000000007 + own;
    if (place_shared(mode)) *content += own;
}

static void play_one(play *p, int32_t i, int64_t *seen)
{
    const int32_t tasks = p->g->graph.tasks;
    if (i >= tasks) {
        const trli_transfer *x = transfer_of(p, i - tasks);
        const int from = x->from == TRLI_ANYWHERE ? p->anywhere[x->handle] : x->from;
        p->content[x->handle][x->to] = p->content[x->handle][from];
        p->part[x->handle][x->to] = p->part[x->handle][from];
        p->copied[i - tasks] = true;
        return;
    }
    for (int32_t a = p->g->access_first[i]; a < p->g->access_first[i + 1]; ++a)
        run_task(&p->content[p->g->access[a].handle][p->executor[i]], &p->part[p->g->access[a].handle][p->executor[i]],
                 p->g, a, i, seen);
    p->done[i] = true;
}

/* All tasks and copies, one after the other, chosen at random among those that may come next. */
static void play_in_random_order(play *p, uint64_t *state, int64_t *seen)
{
    const int32_t n = p->g->graph.tasks + (int32_t)p->transfers->list.count;
    for (int32_t step = 0; step < n; ++step) {
        int32_t chosen = -1, candidates = 0;
        for (int32_t i = 0; i < n; ++i) {
            const bool may = i < p->g->graph.tasks ? may_run(p, i) : may_copy(p, i - p->g->graph.tasks);
            if (may && place_below(state, ++candidates) == 0) chosen = i;
        }
        ck_assert_int_ge(chosen, 0);
        play_one(p, chosen, seen);
    }
}

static void compare_runs(const place_graph *g, const trli_platform *machine, const uint8_t *executor,
                         const trli_transfers *transfers, uint64_t *state)
{
    int64_t serial[3 * MOST_TASKS], seen[3 * MOST_TASKS], content[MOST_HANDLES];
    int32_t part[MOST_HANDLES];
    play *p = place_calloc(1, sizeof *p);
    *p = (play){.g = g, .executor = executor, .transfers = transfers};
    for (int32_t h = 0; h < g->graph.handles; ++h) {
        const unsigned valid = g->graph.valid ? g->graph.valid[h] : 1;
        content[h] = valid ? h + 1 : 0;
        part[h] = place_first_part(g, h);
        for (int s = 0; s < machine->executors; ++s) {
            p->content[h][s] = valid >> s & 1 ? h + 1 : 0;
            p->part[h][s] = part[h];
        }
        p->anywhere[h] = place_below(state, machine->executors);
        if (valid >> TRLI_ANYWHERE) p->content[h][p->anywhere[h]] = h + 1;
    }
    for (int32_t t = 0; t < g->graph.tasks; ++t) {
        for (int32_t a = g->access_first[t]; a < g->access_first[t + 1]; ++a)
            run_task(&content[g->access[a].handle], &part[g->access[a].handle], g, a, t, serial);
    }
    play_in_random_order(p, state, seen);
    for (int32_t a = 0; a < g->access_first[g->graph.tasks]; ++a)
        if (g->handle[g->access[a].handle].bytes) ck_assert_int_eq(seen[a], serial[a]);
    for (int32_t h = 0; h < g->graph.handles; ++h) {
        for (int s = 0; s < machine->executors && g->handle[h].bytes; ++s)
            if (transfers->valid_after[h] >> s & 1) ck_assert_int_eq(p->content[h][s], content[h]);
    }
    free(p);
}

static void check_random_graph(uint64_t seed)
{
    uint64_t state = seed;
    uint16_t valid[MOST_HANDLES];
    uint8_t executor[MOST_TASKS];
    int32_t unit[MOST_TASKS];
    trli_transfers transfers;
    const int executors = 1 + place_below(&state, 5);
    trli_platform machine = place_machine(executors, 0.0, 1.0);
    place_graph *g =
        place_random(&state, 1 + place_below(&state, MOST_TASKS), 1 + place_below(&state, MOST_HANDLES), executors);
    for (int e = 0; e < executors; ++e) {
        for (int f = 0; f < executors; ++f)
            machine.link[e][f] = (trli_route){place_below(&state, 4), 1.0 + place_below(&state, 1000)};
    }
    place_random_valid(&state, g, valid);
    place_units(g, unit);
    for (int32_t t = 0; t < g->graph.tasks; ++t)
        executor[t] = unit[t] == t ? (uint8_t)place_below(&state, executors) : executor[unit[t]];
    ck_ok(trli_transfers_find(test_ctx, &g->graph, &machine, executor, &transfers));
    compare_with_oracle(g, &machine, executor, &transfers);
    compare_runs(g, &machine, executor, &transfers, &state);
    trli_transfers_free(&transfers);
    place_graph_free(g);
}

START_TEST(copies_each_value_once_to_each_space_that_needs_it)
{
    for (uint64_t seed = 1; seed <= 1000; ++seed) check_random_graph(seed);
}
END_TEST

/* Two tasks add, on a device, to what the host has; a second device and the host read the sum. */
START_TEST(lets_all_who_add_wait_for_the_copy_and_the_copy_of_the_sum_for_all_of_them)
{
    const uint8_t executor[] = {1, 1, 2, 0};
    const trli_platform machine = place_machine(3, 1.0, 1.0);
    trli_transfers transfers;
    place_graph *g = place_graph_new(4, 1, 4, 16, 3);
    for (int t = 0; t < 4; ++t) {
        place_task(g, 1.0);
        place_access(g, 0, t < 2 ? TRL_ADD : TRL_READ);
    }
    place_depend_by_accesses(g);
    place_finish(g);
    ck_ok(trli_transfers_find(test_ctx, &g->graph, &machine, executor, &transfers));
    const trli_transfer *x = transfers.list.data;
    const int32_t *writers = transfers.writers.data;
    ck_assert_int_eq(transfers.list.count, 3);
    ck_assert(transfers.access_transfer[0] == 0 && transfers.access_transfer[1] == 0);
    ck_assert(x[0].writer == -1 && x[0].writers_first == x[0].writers_end);
    ck_assert(x[1].writer == 1 && x[1].writers_end - x[1].writers_first == 2);
    ck_assert(writers[x[1].writers_first] == 0 && writers[x[1].writers_first + 1] == 1);
    ck_assert(transfers.valid_after[0] == 7);
    trli_transfers_free(&transfers);
    place_graph_free(g);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, copies_each_value_once_to_each_space_that_needs_it);
    tcase_add_test(tc, lets_all_who_add_wait_for_the_copy_and_the_copy_of_the_sum_for_all_of_them);
}

TRL_TEST_MAIN("placement_transfers", add_tests)
