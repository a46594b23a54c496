// ctest: np=1 timeout=300 optimise=2
/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Conflicts: what may not run at once does not, what may does, and every task runs once.
 *
 * How conflicts are seen: each resource has a part of its own, and what a task wants of a resource it wants of the
 * parts of all that is below as well. Then two tasks conflict exactly if one locks a part that the other one locks or
 * uses. While it runs a task counts itself in on its parts and looks who else is there. */
#include "trl_test.h"

#include <sched.h>
#include <stdatomic.h>
#include <trl_graph.h>

#include "policy_settings.h"

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
enum { SLOWER = 20 };
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
enum { SLOWER = 20 };
#else
enum { SLOWER = 1 };
#endif
#else
enum { SLOWER = 1 };
#endif

enum { RESOURCES = 100, WANTS = 9, LOCKER = 1 << 16 };

typedef struct part {
    _Atomic int32_t inside; /* users, and LOCKER for each that locks it */
    int64_t value;          /* of the lockers: not atomic, on purpose */
} part;

typedef struct forest {
    int parent[RESOURCES];
    trl_resource resource[RESOURCES];
    part part[RESOURCES];
    int64_t locks[RESOURCES]; /* how often the part is locked in a run */
    _Atomic int32_t conflicts;
} forest;

typedef struct visitor {
    forest *forest;
    int8_t wants[RESOURCES]; /* of each part: 0 nothing, 1 use, 2 lock */
    int chunks, calls;       /* of a wide task; of a poll task until it is done */
    int nwants, at[WANTS];
    bool locks[WANTS];
    _Atomic int32_t entered, left;
    int32_t runs;
} visitor;

static uint64_t random_bits(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return *seed >> 33;
}

static int random_below(uint64_t *seed, int n)
{
    return (int)(random_bits(seed) % (uint64_t)n);
}

/* Relaxed throughout: who conflicts is seen in the order of changes of one count, and the counts order nothing else. */
static void enter_parts(visitor *v)
{
    for (int r = 0; r < RESOURCES; ++r) {
        part *p = &v->forest->part[r];
        if (v->wants[r] == 0) continue;
        bool locks = v->wants[r] == 2;
        int32_t others = atomic_fetch_add_explicit(&p->inside, locks ? LOCKER : 1, memory_order_relaxed);
        if (locks ? others != 0 : others >= LOCKER)
            atomic_fetch_add_explicit(&v->forest->conflicts, 1, memory_order_relaxed);
        if (locks) ++p->value;
    }
}

static void leave_parts(visitor *v)
{
    for (int r = 0; r < RESOURCES; ++r) {
        if (v->wants[r] == 0) continue;
        atomic_fetch_sub_explicit(&v->forest->part[r].inside, v->wants[r] == 2 ? LOCKER : 1, memory_order_relaxed);
    }
}

/* The first chunk, or call, enters, the last one leaves. Now and then another thread gets the core meanwhile. */
static trl_err visit(void *data, const trl_task_args *args, bool *done)
{
    visitor *v = data;
    int32_t all = v->chunks > 1 ? v->chunks : v->calls;
    if (atomic_fetch_add_explicit(&v->entered, 1, memory_order_relaxed) == 0) enter_parts(v);
    if (((unsigned)v->runs + (unsigned)args->worker) % 16 == 0) sched_yield();
    /* Acquire and release: the last one leaves after all are done. */
    bool last = atomic_fetch_add_explicit(&v->left, 1, memory_order_acq_rel) == all - 1;
    if (last) {
        leave_parts(v);
        atomic_store_explicit(&v->entered, 0, memory_order_relaxed);
        atomic_store_explicit(&v->left, 0, memory_order_relaxed);
        ++v->runs;
    }
    *done = last || v->chunks > 1;
    return TRL_OK;
}

static bool is_below(const forest *f, int resource, int above)
{
    while (resource >= 0 && resource != above) resource = f->parent[resource];
    return resource == above;
}

static void want(visitor *v, int resource, bool lock)
{
    for (int r = 0; r < RESOURCES; ++r) {
        if (is_below(v->forest, r, resource) && v->wants[r] < 1 + lock) v->wants[r] = (int8_t)(1 + lock);
    }
    v->at[v->nwants] = resource;
    v->locks[v->nwants++] = lock;
}

/* Mostly narrow wants: whoever locks a root runs alone. */
static void choose_wants(visitor *v, uint64_t *seed)
{
    int n = 1 + random_below(seed, random_below(seed, 3) == 0 ? WANTS : 1);
    for (int i = 0; i < n; ++i) {
        int r = random_below(seed, RESOURCES), other = random_below(seed, RESOURCES);
        want(v, r > other ? r : other, random_below(seed, 3) > 0);
    }
    for (int r = 0; r < RESOURCES; ++r) v->forest->locks[r] += v->wants[r] == 2;
}

/* A few trees; a parent is one of the resources shortly before, so that they become deep. */
static void grow(forest *f, trl_graph *graph, uint64_t *seed)
{
    int depth[RESOURCES], deepest = 0;
    for (int r = 0; r < RESOURCES; ++r) {
        f->parent[r] = r < 3 ? -1 : r - 1 - random_below(seed, r < 24 ? r : 24);
        depth[r] = f->parent[r] < 0 ? 0 : depth[f->parent[r]] + 1;
        if (depth[r] > deepest) deepest = depth[r];
        trl_resource_desc desc = {.name = "r", .parent = f->parent[r] < 0 ? TRL_NO_PARENT : f->resource[f->parent[r]]};
        ck_ok(trl_graph_add_resource(graph, &desc, &f->resource[r]));
    }
    ck_assert_int_ge(deepest, 4);
}

static void check_forest(const forest *f, int64_t runs)
{
    ck_assert_int_eq(f->conflicts, 0);
    for (int r = 0; r < RESOURCES; ++r) {
        ck_assert_int_eq(f->part[r].inside, 0);
        ck_assert_int_eq(f->part[r].value, runs * f->locks[r]);
    }
}

static trl_task add_visitor(trl_graph *graph, visitor *v, uint64_t *seed)
{
    trl_task task;
    int kind = random_below(seed, 50);
    v->chunks = kind == 0 ? 5 : 1;
    v->calls = kind == 1 ? 3 : 1;
    trl_task_desc desc = {.name = "visit",
                          .variant = {{visit}},
                          .data = v,
                          .chunks = v->chunks,
                          .flags = kind == 1 ? TRL_TASK_POLL : 0,
                          .priority = random_below(seed, 3) - 1};
    choose_wants(v, seed);
    ck_ok(trl_graph_add_task(graph, &desc, &task));
    for (int i = 0; i < v->nwants; ++i) {
        trl_resource resource = v->forest->resource[v->at[i]];
        ck_ok(v->locks[i] ? trl_graph_add_lock(graph, task, resource) : trl_graph_add_use(graph, task, resource));
    }
    return task;
}

static const setting stressed[] = {{"serial", 1}, {"priority", 1}, {"priority", 2}, {"priority", 4}, {"priority", 8}};

START_TEST(conflicting_tasks_of_random_forests_never_run_at_once)
{
    enum { FORESTS = 5, TASKS = 4000 };
    const int runs = test_long() ? 50 : 5; /* in the long form, a million tasks for each number of workers */
    trl_workers *workers = make_workers(&stressed[_i]);
    int tasks = TASKS / SLOWER;
    visitor *visitors = calloc((size_t)tasks, sizeof *visitors);
    trl_task *task = calloc((size_t)tasks, sizeof *task);
    for (uint64_t n = 0; n < FORESTS; ++n) {
        static forest f;
        uint64_t seed = 17 * n + 3;
        trl_graph *graph;
        memset(&f, 0, sizeof f);
        memset(visitors, 0, (size_t)tasks * sizeof *visitors);
        ck_ok(trl_graph_create(test_ctx, "forest", &graph));
        grow(&f, graph, &seed);
        for (int t = 0; t < tasks; ++t) {
            visitors[t].forest = &f;
            task[t] = add_visitor(graph, &visitors[t], &seed);
            if (t > 0 && random_below(&seed, 4) == 0)
                ck_ok(trl_graph_add_dependency(graph, task[random_below(&seed, t)], task[t]));
        }
        ck_ok(trl_graph_freeze(graph));
        for (int run = 0; run < runs; ++run) ck_ok(trl_graph_run(graph, workers, NULL));
        check_forest(&f, runs);
        for (int t = 0; t < tasks; ++t) ck_assert_int_eq(visitors[t].runs, runs);
        trl_graph_destroy(&graph);
    }
    free(task);
    free(visitors);
    trl_workers_destroy(&workers);
}
END_TEST

typedef struct spawner {
    visitor *visitors;
    int count;
} spawner;

static trl_err spawn_visitors(void *data, const trl_task_args *args, bool *done)
{
    spawner *s = data;
    trl_err err = TRL_OK;
    (void)done;
    for (int i = 0; i < s->count && err == TRL_OK; ++i) {
        visitor *v = &s->visitors[i];
        trl_resource locks[WANTS], uses[WANTS];
        trl_spawn_desc desc = {.name = "visit", .variant = {{visit}}, .data = v, .locks = locks, .uses = uses};
        for (int k = 0; k < v->nwants; ++k) {
            trl_resource resource = v->forest->resource[v->at[k]];
            if (v->locks[k])
                locks[desc.nlocks++] = resource;
            else
                uses[desc.nuses++] = resource;
        }
        err = trl_run_spawn(args->run, &desc, NULL);
    }
    return err;
}

START_TEST(conflicting_spawned_tasks_never_run_at_once)
{
    enum { SPAWNERS = 8, EACH = 500, RUNS = 5 };
    trl_workers *workers = make_workers(&stressed[_i]);
    static forest f;
    static visitor visitors[SPAWNERS][EACH];
    spawner spawners[SPAWNERS];
    uint64_t seed = 5;
    trl_graph *graph;
    trl_task task;
    memset(&f, 0, sizeof f);
    memset(visitors, 0, sizeof visitors);
    ck_ok(trl_graph_create(test_ctx, "spawned", &graph));
    grow(&f, graph, &seed);
    for (int s = 0; s < SPAWNERS; ++s) {
        spawners[s] = (spawner){visitors[s], EACH};
        trl_task_desc desc = {.name = "spawn", .variant = {{spawn_visitors}}, .data = &spawners[s], .chunks = 1};
        ck_ok(trl_graph_add_task(graph, &desc, &task));
        for (int i = 0; i < EACH; ++i) {
            visitors[s][i].forest = &f;
            visitors[s][i].chunks = visitors[s][i].calls = 1;
            choose_wants(&visitors[s][i], &seed);
        }
    }
    ck_ok(trl_graph_freeze(graph));
    for (int run = 0; run < RUNS; ++run) ck_ok(trl_graph_run(graph, workers, NULL));
    check_forest(&f, RUNS);
    for (int s = 0; s < SPAWNERS; ++s)
        for (int i = 0; i < EACH; ++i) ck_assert_int_eq(visitors[s][i].runs, RUNS);
    trl_graph_destroy(&graph);
    trl_workers_destroy(&workers);
}
END_TEST

/* ---- two tasks ---- */

/* Wants are resources of this tree, in capitals to lock them: a, below it b and c, below b d; and another root, z. */
typedef struct pair {
    const char *one, *other;
    bool conflict;
} pair;

static const pair pairs[] = {
    {"A", "A", true},    {"A", "a", true},   {"a", "a", false},  {"A", "z", false},   {"A", "Z", false},
    {"B", "C", false},   {"A", "B", true},   {"A", "b", true},   {"A", "D", true},    {"A", "d", true},
    {"a", "B", true},    {"a", "b", false},  {"a", "D", true},   {"a", "d", false},   {"B", "d", true},
    {"D", "c", false},   {"d", "B", true},   {"bZ", "cA", true}, {"bz", "cz", false}, {"Bz", "Cz", false},
    {"BZ", "Cz", true},  {"Aa", "z", false}, {"aD", "c", true},  {"bD", "c", false},  {"AD", "zz", false},
    {"ad", "ab", false}, {"CD", "b", true},  {"CD", "z", false},
};
enum { PAIRS = sizeof pairs / sizeof *pairs };

typedef struct meeting {
    _Atomic int32_t inside, met;
    bool wait; /* for the other one */
} meeting;

static trl_err meet(void *data, const trl_task_args *args, bool *done)
{
    meeting *m = data;
    (void)args;
    (void)done;
    atomic_fetch_add(&m->inside, 1);
    for (int looks = 0; m->wait ? atomic_load(&m->met) == 0 : looks < 20; ++looks) {
        if (atomic_load(&m->inside) == 2) atomic_store(&m->met, 1);
        sched_yield();
    }
    atomic_fetch_sub(&m->inside, 1);
    return TRL_OK;
}

static void add_tree(trl_graph *graph, trl_resource *resource)
{
    static const char names[] = "abcdz", parents[] = "-aab-";
    for (int i = 0; i < 5; ++i) {
        const char *parent = strchr(names, parents[i]), name[] = {names[i], 0};
        trl_resource_desc desc = {.name = name, .parent = parent ? resource[parent - names] : TRL_NO_PARENT};
        ck_ok(trl_graph_add_resource(graph, &desc, &resource[i]));
    }
}

static void add_wants(trl_graph *graph, trl_task task, const trl_resource *resource, const char *wants)
{
    static const char uses[] = "abcdz", locks[] = "ABCDZ";
    for (; *wants; ++wants) {
        const char *use = strchr(uses, *wants), *lock = strchr(locks, *wants);
        ck_ok(use ? trl_graph_add_use(graph, task, resource[use - uses])
                  : trl_graph_add_lock(graph, task, resource[lock - locks]));
    }
}

/* Two tasks that may run at once wait for each other; two that may not look out for each other. */
START_TEST(two_tasks_run_at_once_unless_one_locks_what_the_other_has)
{
    const setting two = {"priority", 2};
    const pair *p = &pairs[_i];
    trl_workers *workers = make_workers(&two);
    trl_graph *graph;
    trl_resource resource[5];
    meeting m = {.wait = !p->conflict};
    ck_ok(trl_graph_create(test_ctx, "pair", &graph));
    add_tree(graph, resource);
    for (int i = 0; i < 2; ++i) {
        trl_task task;
        ck_ok(trl_graph_add_task(graph, &(trl_task_desc){.name = "meet", .variant = {{meet}}, .data = &m, .chunks = 1},
                                 &task));
        add_wants(graph, task, resource, i == 0 ? p->one : p->other);
    }
    ck_ok(trl_graph_freeze(graph));
    for (int run = 0; run < 100; ++run) {
        atomic_store(&m.met, 0);
        ck_ok(trl_graph_run(graph, workers, NULL));
        ck_assert_msg(atomic_load(&m.met) == !p->conflict, "%s and %s", p->one, p->other);
    }
    trl_graph_destroy(&graph);
    trl_workers_destroy(&workers);
}
END_TEST

static trl_err raise_flag(void *data, const trl_task_args *args, bool *done)
{
    _Atomic int *flag = data;
    (void)args;
    (void)done;
    atomic_store(flag, 1);
    return TRL_OK;
}

static trl_err wait_for_flag(void *data, const trl_task_args *args, bool *done)
{
    _Atomic int *flag = data;
    (void)args;
    (void)done;
    while (atomic_load(flag) == 0) sched_yield();
    return TRL_OK;
}

static trl_err do_nothing(void *data, const trl_task_args *args, bool *done)
{
    (void)data;
    (void)args;
    (void)done;
    return TRL_OK;
}

/* The first holds z until the third has run, which needs c; the second wants both and cannot have z. */
START_TEST(a_waiting_task_holds_nothing)
{
    static const char *const wants[] = {"Z", "CZ", "C"};
    const setting two = {"priority", 2};
    trl_workers *workers = make_workers(&two);
    trl_graph *graph;
    trl_resource resource[5];
    _Atomic int flag = 0;
    ck_ok(trl_graph_create(test_ctx, "waiting", &graph));
    add_tree(graph, resource);
    for (int i = 0; i < 3; ++i) {
        trl_task task;
        trl_task_fn run[] = {wait_for_flag, do_nothing, raise_flag};
        trl_task_desc desc = {.name = "t", .variant = {{run[i]}}, .data = &flag, .chunks = 1, .priority = 1 - i};
        ck_ok(trl_graph_add_task(graph, &desc, &task));
        add_wants(graph, task, resource, wants[i]);
    }
    ck_ok(trl_graph_freeze(graph));
    for (int run = 0; run < 200; ++run) {
        atomic_store(&flag, 0);
        ck_ok(trl_graph_run(graph, workers, NULL));
    }
    trl_graph_destroy(&graph);
    trl_workers_destroy(&workers);
}
END_TEST

/* The first holds z, being polled, until the last one has begun, which holds c until the third has run, which needs z.
 * The second needs both: it waits for z from the start, and when it is woken finds c taken. */
typedef struct chain {
    bool begun, ran;
    int calls;
} chain;

static trl_err poll_until_begun(void *data, const trl_task_args *args, bool *done)
{
    (void)args;
    *done = ((chain *)data)->begun;
    return TRL_OK;
}

static trl_err run_chain(void *data, const trl_task_args *args, bool *done)
{
    (void)args;
    (void)done;
    ((chain *)data)->ran = true;
    return TRL_OK;
}

static trl_err poll_until_ran(void *data, const trl_task_args *args, bool *done)
{
    chain *c = data;
    (void)args;
    c->begun = true;
    *done = c->ran || ++c->calls > 10000;
    return TRL_OK;
}

START_TEST(a_woken_task_that_must_wait_elsewhere_wakes_the_next)
{
    trl_workers *workers = make_workers(&stressed[_i]);
    trl_graph *graph;
    trl_resource resource[5];
    chain c = {.begun = false};
    const trl_task_desc descs[] = {
        {.name = "first",
         .variant = {{poll_until_begun}},
         .data = &c,
         .chunks = 1,
         .flags = TRL_TASK_POLL,
         .priority = 1},
        {.name = "both", .variant = {{do_nothing}}, .chunks = 1, .priority = 1},
        {.name = "third", .variant = {{run_chain}}, .data = &c, .chunks = 1},
        {.name = "before last", .variant = {{do_nothing}}, .chunks = 1, .priority = -1},
        {.name = "last", .variant = {{poll_until_ran}}, .data = &c, .chunks = 1, .flags = TRL_TASK_POLL},
    };
    static const char *const wants[] = {"Z", "CZ", "Z", "", "C"};
    trl_task task[5];
    ck_ok(trl_graph_create(test_ctx, "chain", &graph));
    add_tree(graph, resource);
    for (int i = 0; i < 5; ++i) {
        ck_ok(trl_graph_add_task(graph, &descs[i], &task[i]));
        add_wants(graph, task[i], resource, wants[i]);
    }
    ck_ok(trl_graph_add_dependency(graph, task[3], task[4]));
    ck_ok(trl_graph_freeze(graph));
    ck_ok(trl_graph_run(graph, workers, NULL));
    ck_assert_int_le(c.calls, 10000);
    trl_graph_destroy(&graph);
    trl_workers_destroy(&workers);
}
END_TEST

static trl_err fail_once(void *data, const trl_task_args *args, bool *done)
{
    bool *fails = data;
    (void)args;
    (void)done;
    if (!*fails) return TRL_OK;
    *fails = false;
    return trl_fail(test_ctx, TRL_ERR_NUMERICS, NULL, "once");
}

static trl_err count_call(void *data, const trl_task_args *args, bool *done)
{
    (void)args;
    (void)done;
    ++*(int *)data;
    return TRL_OK;
}

/* An error leaves many tasks waiting, of which every fourth is still called; the next run finds all resources free. */
START_TEST(tasks_that_wait_when_another_one_fails_are_not_left_behind)
{
    enum { TASKS = 400 };
    trl_workers *workers = make_workers(&stressed[_i]);
    trl_graph *graph;
    trl_task first, task;
    trl_resource resource[5];
    bool fails = true;
    int always = 0, others = 0;
    ck_ok(trl_graph_create(test_ctx, "failing", &graph));
    add_tree(graph, resource);
    ck_ok(trl_graph_add_task(
        graph, &(trl_task_desc){.name = "f", .variant = {{fail_once}}, .data = &fails, .chunks = 1}, &first));
    add_wants(graph, first, resource, "A");
    for (int i = 0; i < TASKS; ++i) {
        trl_task_desc desc = {.name = "t",
                              .variant = {{count_call}},
                              .data = i % 4 ? &others : &always,
                              .chunks = 1,
                              .flags = i % 4 ? 0 : TRL_TASK_ALWAYS};
        ck_ok(trl_graph_add_task(graph, &desc, &task));
        add_wants(graph, task, resource, i % 3 ? "DZ" : "AZ");
    }
    ck_ok(trl_graph_freeze(graph));
    ck_fails(trl_graph_run(graph, workers, NULL), TRL_ERR_NUMERICS, "once");
    ck_assert_int_eq(always, TASKS / 4);
    others = 0;
    ck_ok(trl_graph_run(graph, workers, NULL));
    ck_assert_int_eq(always, (int64_t)2 * (TASKS / 4));
    ck_assert_int_eq(others, TASKS - TASKS / 4);
    trl_graph_destroy(&graph);
    trl_workers_destroy(&workers);
}
END_TEST

static void add_tests(TCase *tc)
{
    const int counts = sizeof stressed / sizeof *stressed;
    tcase_add_loop_test(tc, two_tasks_run_at_once_unless_one_locks_what_the_other_has, 0, PAIRS);
    tcase_add_test(tc, a_waiting_task_holds_nothing);
    tcase_add_loop_test(tc, a_woken_task_that_must_wait_elsewhere_wakes_the_next, 0, 2);
    tcase_add_loop_test(tc, tasks_that_wait_when_another_one_fails_are_not_left_behind, 0, counts);
    tcase_add_loop_test(tc, conflicting_tasks_of_random_forests_never_run_at_once, 0, counts);
    tcase_add_loop_test(tc, conflicting_spawned_tasks_never_run_at_once, 0, counts);
}

TRL_TEST_MAIN("locks", add_tests)
