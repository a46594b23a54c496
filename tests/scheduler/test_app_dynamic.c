// ctest: np=1
/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Work that is known only while it runs: walks that park on data from elsewhere, an iteration that stops on a
 * condition, a search by levels in cyclic phases, and recursion. */
#include "trl_test.h"

#include "app_support.h"

#include "lattice.h"

#include <math.h>

/* ---- walks over a tree whose nodes come from elsewhere ---- */

enum { REMOTE_NODES = 1023, WALKERS = 9, DELIVERED_AT_ONCE = 3 };

/* Node n has the children 2 n + 1 and 2 n + 2. Its value is there only after it was delivered. */
typedef struct remote_node {
    int64_t value;
    int deliveries;
    int next_request; /* of the list of requests; -1: the last */
    _Atomic bool requested;
    trl_event delivered;
} remote_node;

typedef struct remote_tree {
    remote_node nodes[REMOTE_NODES];
    _Atomic int first_request;
    _Atomic int walking; /* tasks of walks not complete */
    _Atomic int64_t sums[WALKERS];
    trl_task report;
    int64_t total;
    struct walk *walks; /* [WALKERS][REMOTE_NODES] */
} remote_tree;

typedef struct walk {
    remote_tree *tree;
    int node, walker;
} walk;

static int64_t remote_value(int node)
{
    return (int64_t)node * node + 1;
}

/* Walker w leaves out what is below multiples of w + 3, but the root. */
static bool walker_enters(int walker, int node)
{
    return node < REMOTE_NODES && (node == 0 || node % (walker + 3) != 0);
}

static void request_node(remote_tree *t, int node)
{
    remote_node *n = &t->nodes[node];
    /* acquire: poll_link is done with next_request when it takes the flag back */
    if (atomic_exchange_explicit(&n->requested, true, memory_order_acquire)) return;
    int first = atomic_load_explicit(&t->first_request, memory_order_relaxed);
    do {
        n->next_request = first;
        /* release: who takes the list sees next_request */
    } while (!atomic_compare_exchange_weak_explicit(&t->first_request, &first, node, memory_order_release,
                                                    memory_order_relaxed));
}

static trl_err spawn_walk(trl_run *run, remote_tree *t, int walker, int node);

static trl_err run_walk(void *data, const trl_task_args *args, bool *done)
{
    const walk *w = data;
    remote_tree *t = w->tree;
    trl_err err = TRL_OK;
    (void)done;
    /* relaxed, here and below: sums are read after the event of all walkers, `walking` comes to zero once */
    atomic_fetch_add_explicit(&t->sums[w->walker], t->nodes[w->node].value, memory_order_relaxed);
    for (int child = 2 * w->node + 1; child <= 2 * w->node + 2; ++child) {
        if (walker_enters(w->walker, child)) TRL_TRY(spawn_walk(args->run, t, w->walker, child));
    }
    if (atomic_fetch_sub_explicit(&t->walking, 1, memory_order_acq_rel) == 1)
        err = trl_run_signal_task(args->run, t->report, 1);
done:
    return err;
}

/* The walk goes on at a node when it was delivered; meanwhile the workers do something else. */
static trl_err spawn_walk(trl_run *run, remote_tree *t, int walker, int node)
{
    walk *w = &t->walks[walker * REMOTE_NODES + node];
    *w = (walk){.tree = t, .node = node, .walker = walker};
    atomic_fetch_add_explicit(&t->walking, 1, memory_order_relaxed);
    request_node(t, node);
    return trl_run_spawn(
        run,
        &(trl_spawn_desc){
            .name = "walk", .variant = {{run_walk}}, .data = w, .nwaits = 1, .waits = &t->nodes[node].delivered},
        NULL);
}

static trl_err run_start_walks(void *data, const trl_task_args *args, bool *done)
{
    remote_tree *t = data;
    trl_err err = TRL_OK;
    (void)done;
    for (int n = 0; n < REMOTE_NODES; ++n) TRL_TRY(trl_run_create_event(args->run, 1, &t->nodes[n].delivered));
    for (int w = 0; w < WALKERS; ++w) TRL_TRY(spawn_walk(args->run, t, w, 0));
done:
    return err;
}

/* The link to elsewhere: delivers a few requested nodes each time it is polled, until all walks are complete. */
static trl_err poll_link(void *data, const trl_task_args *args, bool *done)
{
    remote_tree *t = data;
    /* acquire: sees the list that request_node released */
    int node = atomic_exchange_explicit(&t->first_request, -1, memory_order_acquire);
    for (int k = 0; node >= 0; ++k) {
        remote_node *n = &t->nodes[node];
        int next = n->next_request;
        if (k < DELIVERED_AT_ONCE) {
            n->value = remote_value(node);
            ++n->deliveries;
            trl_err err = trl_run_signal(args->run, n->delivered, 1);
            if (err != TRL_OK) return err;
        } else {                                                               /* later: back on the list */
            atomic_store_explicit(&n->requested, false, memory_order_release); /* release: next_request was read */
            request_node(t, node);
        }
        node = next;
    }
    *done = atomic_load_explicit(&t->walking, memory_order_relaxed) == 0;
    return TRL_OK;
}

/* Waits for a signal of the last walk, not for tasks of the graph. */
static trl_err run_report(void *data, const trl_task_args *args, bool *done)
{
    remote_tree *t = data;
    (void)args;
    (void)done;
    t->total = 0;
    for (int w = 0; w < WALKERS; ++w) t->total += atomic_load_explicit(&t->sums[w], memory_order_relaxed);
    return TRL_OK;
}

static void clear_remote_tree(remote_tree *t)
{
    /* relaxed: no run is in progress */
    atomic_store_explicit(&t->first_request, -1, memory_order_relaxed);
    atomic_store_explicit(&t->walking, 0, memory_order_relaxed);
    for (int w = 0; w < WALKERS; ++w) atomic_store_explicit(&t->sums[w], 0, memory_order_relaxed);
    for (int n = 0; n < REMOTE_NODES; ++n) {
        t->nodes[n].value = INT32_MIN;
        t->nodes[n].deliveries = 0;
        atomic_store_explicit(&t->nodes[n].requested, false, memory_order_relaxed);
    }
}

static int64_t walk_serially(int walker, int node, bool visited[REMOTE_NODES])
{
    if (!walker_enters(walker, node)) return 0;
    visited[node] = true;
    return remote_value(node) + walk_serially(walker, 2 * node + 1, visited) +
           walk_serially(walker, 2 * node + 2, visited);
}

START_TEST(walks_park_until_their_node_is_delivered)
{
    trl_workers *workers = make_workers(&app_settings[_i]);
    trl_graph *graph = app_graph("walk");
    remote_tree *t = app_calloc(1, sizeof *t);
    trl_task link, start;
    t->walks = app_calloc((size_t)WALKERS * REMOTE_NODES, sizeof *t->walks);
    start = app_task(graph, "start", run_start_walks, t, 0);
    ck_ok(trl_graph_add_task(
        graph,
        &(trl_task_desc){.name = "link", .variant = {{poll_link}}, .data = t, .chunks = 1, .flags = TRL_TASK_POLL},
        &link));
    ck_ok(trl_graph_add_dependency(graph, start, link));
    ck_ok(trl_graph_add_task(
        graph, &(trl_task_desc){.name = "report", .variant = {{run_report}}, .data = t, .chunks = 1, .signals = 1},
        &t->report));
    ck_ok(trl_graph_freeze(graph));
    for (int run = 0; run < 5; ++run) {
        bool visited[REMOTE_NODES] = {false};
        int64_t total = 0;
        clear_remote_tree(t);
        ck_ok(trl_graph_run(graph, workers, NULL));
        for (int w = 0; w < WALKERS; ++w) {
            int64_t expected = walk_serially(w, 0, visited);
            ck_assert_int_eq(atomic_load_explicit(&t->sums[w], memory_order_relaxed), expected);
            total += expected;
        }
        ck_assert_int_eq(t->total, total);
        for (int n = 0; n < REMOTE_NODES; ++n) ck_assert_int_eq(t->nodes[n].deliveries, visited[n]);
    }
    trl_graph_destroy(&graph);
    trl_workers_destroy(&workers);
    free(t->walks);
    free(t);
}
END_TEST

/* ---- Jacobi iteration for -u'' = 1, u = 0 at both ends ---- */

enum { POINTS = 113, BLOCKS = 9, BATCH = 25 };
static const double tolerance = 1e-5;

typedef struct jacobi {
    double x[2][POINTS + 2];
    double change[BLOCKS]; /* sum of |difference| in the last iteration */
    int iterations;
    struct jacobi_block *blocks; /* [BATCH][BLOCKS] */
} jacobi;

typedef struct jacobi_block {
    jacobi *of;
    int from, block; /* x[from] -> x[!from] */
} jacobi_block;

static void iterate_block(jacobi *j, int from, int block)
{
    const double *old = j->x[from];
    double *new = j->x[!from], h = 1.0 / (POINTS + 1), change = 0.0;
    for (int i = 1 + POINTS * block / BLOCKS; i < 1 + POINTS * (block + 1) / BLOCKS; ++i) {
        new[i] = 0.5 * (old[i - 1] + old[i + 1] + h * h);
        change += fabs(new[i] - old[i]);
    }
    j->change[block] = change;
}

static bool converged(const jacobi *j)
{
    double change = 0.0;
    for (int b = 0; b < BLOCKS; ++b) change += j->change[b];
    return change < tolerance;
}

static trl_err run_jacobi_block(void *data, const trl_task_args *args, bool *done)
{
    const jacobi_block *b = data;
    (void)args;
    (void)done;
    iterate_block(b->of, b->from, b->block);
    return TRL_OK;
}

static trl_err run_jacobi_check(void *data, const trl_task_args *args, bool *done);

/* A batch of iterations: each block after the block and its neighbours an iteration before, then a check. Two arrays
 * are enough: a block's values are overwritten after its neighbours read them. */
static trl_err spawn_batch(jacobi *j, trl_run *run)
{
    trl_event ready[2][BLOCKS], last;
    trl_err err;
    TRL_TRY(trl_run_create_event(run, BLOCKS, &last));
    for (int k = 0; k < BATCH; ++k) {
        for (int b = 0; b < BLOCKS; ++b) {
            jacobi_block *data = &j->blocks[k * BLOCKS + b];
            int first = b ? b - 1 : 0, end = b + 2 < BLOCKS ? b + 2 : BLOCKS;
            *data = (jacobi_block){.of = j, .from = (j->iterations + k) % 2, .block = b};
            trl_spawn_desc desc = {.name = "block",
                                   .variant = {{run_jacobi_block}},
                                   .data = data,
                                   .nwaits = k ? end - first : 0,
                                   .waits = &ready[(k + 1) % 2][first],
                                   .signals = k == BATCH - 1 ? last : 0};
            TRL_TRY(trl_run_spawn(run, &desc, &ready[k % 2][b]));
        }
    }
    j->iterations += BATCH;
    TRL_TRY(trl_run_spawn(
        run,
        &(trl_spawn_desc){.name = "check", .variant = {{run_jacobi_check}}, .data = j, .nwaits = 1, .waits = &last},
        NULL));
done:
    return err;
}

static trl_err run_jacobi_check(void *data, const trl_task_args *args, bool *done)
{
    jacobi *j = data;
    (void)done;
    return j->iterations && converged(j) ? TRL_OK : spawn_batch(j, args->run);
}

static void clear_jacobi(jacobi *j)
{
    j->iterations = 0;
    for (int i = 0; i < POINTS + 2; ++i) j->x[0][i] = j->x[1][i] = i % (POINTS + 1) ? 1.0 : 0.0;
}

START_TEST(jacobi_stops_by_its_own_result_and_equals_the_serial_one_to_the_bit)
{
    trl_workers *workers = make_workers(&app_settings[_i]);
    trl_graph *graph = app_graph("jacobi");
    jacobi serial = {.iterations = 0}, tasks = {.blocks = app_calloc((size_t)BATCH * BLOCKS, sizeof *tasks.blocks)};
    trl_graph_stats stats;
    clear_jacobi(&serial);
    do {
        for (int k = 0; k < BATCH; ++k) {
            for (int b = 0; b < BLOCKS; ++b) iterate_block(&serial, serial.iterations % 2, b);
            ++serial.iterations;
        }
    } while (!converged(&serial));
    ck_assert_int_gt(serial.iterations, (int64_t)100 * BATCH);
    app_task(graph, "begin", run_jacobi_check, &tasks, 0);
    ck_ok(trl_graph_freeze(graph));
    for (int run = 0; run < 2; ++run) {
        clear_jacobi(&tasks);
        ck_ok(trl_graph_run(graph, workers, NULL));
        ck_assert_int_eq(tasks.iterations, serial.iterations);
        ck_assert_int_eq(memcmp(tasks.x, serial.x, sizeof serial.x), 0);
    }
    trl_graph_get_stats(graph, &stats);
    ck_assert_int_eq(stats.spawned, 2 * ((int64_t)serial.iterations * BLOCKS + serial.iterations / BATCH));
    for (int i = 0; i < POINTS + 2; ++i) {
        double x = (double)i / (POINTS + 1);
        ck_assert_double_eq_tol(serial.x[serial.iterations % 2][i], 0.5 * x * (1.0 - x), 1e-3);
    }
    trl_graph_destroy(&graph);
    trl_workers_destroy(&workers);
    free(tasks.blocks);
}
END_TEST

/* ---- Cuthill-McKee ordering, level by level in cyclic phases ---- */

enum { EXPANDED_AT_ONCE = 16, EXPAND = 3, GATHER = 2, ADVANCE = 1 };

typedef struct expand_part {
    ordering *of;
    int begin, end; /* positions */
} expand_part;

/* Neighbours of the current level get the first of it for a parent. Tasks of the phase meet in the same vertices. */
static trl_err run_expand(void *data, const trl_task_args *args, bool *done)
{
    const expand_part *p = data;
    (void)args;
    (void)done;
    for (int at = p->begin; at < p->end; ++at) {
        const vertex *v = &p->of->vertices[p->of->order[at]];
        for (int k = 0; k < v->degree; ++k) {
            vertex *w = &p->of->vertices[v->neighbour[k]];
            /* relaxed: the phase ends before anybody relies on the least */
            int parent = atomic_load_explicit(&w->parent, memory_order_relaxed);
            while (!w->placed && at < parent &&
                   !atomic_compare_exchange_weak_explicit(&w->parent, &parent, at, memory_order_relaxed,
                                                          memory_order_relaxed)) {
            }
        }
    }
    return TRL_OK;
}

static trl_err run_advance(void *data, const trl_task_args *args, bool *done);

/* Append the next level, sorted; the task that goes on is of the phase after this one. */
static trl_err run_gather(void *data, const trl_task_args *args, bool *done)
{
    ordering *o = data;
    sort_key keys[VERTICES];
    int count = 0;
    (void)done;
    for (int v = 0; v < VERTICES; ++v) {
        int parent = atomic_load_explicit(&o->vertices[v].parent, memory_order_relaxed); /* relaxed: as above */
        if (o->vertices[v].placed || parent == VERTICES) continue;
        keys[count++] = (sort_key){.parent = parent, .degree = o->vertices[v].degree, .vertex = v};
    }
    qsort(keys, (size_t)count, sizeof *keys, compare_keys);
    o->level = o->count;
    for (int k = 0; k < count; ++k) {
        o->vertices[keys[k].vertex].placed = true;
        o->order[o->count++] = keys[k].vertex;
    }
    if (count == 0) return TRL_OK;
    return trl_run_spawn(
        args->run, &(trl_spawn_desc){.name = "advance", .variant = {{run_advance}}, .data = o, .type = ADVANCE}, NULL);
}

/* Work for the first two phases: their turns come again. The one that gathers is spawned first and still comes last. */
static trl_err run_advance(void *data, const trl_task_args *args, bool *done)
{
    ordering *o = data;
    trl_err err;
    (void)done;
    TRL_TRY(trl_run_spawn(
        args->run, &(trl_spawn_desc){.name = "gather", .variant = {{run_gather}}, .data = o, .type = GATHER}, NULL));
    for (int at = o->level, part = 0; at < o->count; at += EXPANDED_AT_ONCE, ++part) {
        int end = at + EXPANDED_AT_ONCE;
        o->parts[part] = (expand_part){.of = o, .begin = at, .end = end < o->count ? end : o->count};
        TRL_TRY(trl_run_spawn(
            args->run,
            &(trl_spawn_desc){.name = "expand", .variant = {{run_expand}}, .data = &o->parts[part], .type = EXPAND},
            NULL));
    }
done:
    return err;
}

static void start_ordering(ordering *o, int first)
{
    for (int v = 0; v < VERTICES; ++v) {
        atomic_store_explicit(&o->vertices[v].parent, VERTICES, memory_order_relaxed); /* relaxed: no run yet */
        o->vertices[v].placed = v == first;
    }
    o->order[0] = first;
    o->count = 1;
    o->level = 0;
}

START_TEST(phases_that_come_round_again_order_a_lattice_as_a_queue_does)
{
    trl_workers *workers = make_workers(&app_settings[_i]);
    trl_graph *graph = app_graph("cuthill mckee");
    ordering *o = app_calloc(1, sizeof *o);
    int expected[VERTICES], names[VERTICES];
    o->parts = app_calloc(VERTICES, sizeof *o->parts);
    for (int i = 0; i < VERTICES; ++i) names[i] = i;
    ck_ok(trl_graph_add_phase(graph, "expand", EXPAND, EXPAND + 1));
    ck_ok(trl_graph_add_phase(graph, "gather", GATHER, GATHER + 1));
    ck_ok(trl_graph_add_phase(graph, "advance", ADVANCE, ADVANCE + 1));
    app_task(graph, "advance", run_advance, o, ADVANCE); /* the first two phases are empty at first */
    ck_ok(trl_graph_freeze(graph));
    for (uint64_t seed = 1; seed <= 4; ++seed) {
        make_lattice(o, seed);
        start_ordering(o, (int)seed * 50);
        order_serially(o, expected);
        ck_ok(trl_graph_run(graph, workers, NULL));
        ck_assert_int_eq(o->count, VERTICES);
        ck_assert_int_eq(memcmp(o->order, expected, sizeof expected), 0);
        ck_assert_int_lt(bandwidth(o, o->order), bandwidth(o, names) / 8);
    }
    trl_graph_destroy(&graph);
    trl_workers_destroy(&workers);
    free(o->parts);
    free(o);
}
END_TEST

/* ---- recursion ---- */

enum { FIBONACCI = APP_SANITIZED ? 14 : 18, FRAMES = 1 << 14 };

typedef struct frame {
    struct recursion *of;
    int n;
    int64_t value;
    const struct frame *parts[2];
    trl_event join; /* signalled when the value is known; 0: nobody waits */
} frame;

typedef struct recursion {
    frame *frames;
    _Atomic int used;
    _Atomic int64_t ones; /* leaves that are 1 */
    int64_t after_scope;
} recursion;

/* relaxed: frames are reached through the tasks' data, which the runtime publishes */
static frame *new_frame(recursion *r, int n, trl_event join)
{
    int at = atomic_fetch_add_explicit(&r->used, 1, memory_order_relaxed);
    if (at >= FRAMES) return NULL;
    r->frames[at] = (frame){.of = r, .n = n, .join = join};
    return &r->frames[at];
}

static trl_err run_sum(void *data, const trl_task_args *args, bool *done)
{
    frame *f = data;
    (void)args;
    (void)done;
    f->value = f->parts[0]->value + f->parts[1]->value;
    return TRL_OK;
}

/* fib(n): two tasks, and one that adds their results when both have joined. Only the last one signals whom fib(n) was
 * called by. */
static trl_err run_fibonacci(void *data, const trl_task_args *args, bool *done)
{
    frame *f = data;
    trl_event both;
    trl_err err = TRL_OK;
    (void)done;
    if (f->n < 2) {
        f->value = f->n;
        return f->join ? trl_run_signal(args->run, f->join, 1) : TRL_OK;
    }
    TRL_TRY(trl_run_create_event(args->run, 2, &both));
    for (int k = 0; k < 2; ++k) {
        frame *part = new_frame(f->of, f->n - 1 - k, both);
        if (!part) return TRL_ERR_BUG;
        f->parts[k] = part;
        TRL_TRY(trl_run_spawn(
            args->run, &(trl_spawn_desc){.name = "fibonacci", .variant = {{run_fibonacci}}, .data = part}, NULL));
    }
    TRL_TRY(trl_run_spawn(
        args->run,
        &(trl_spawn_desc){
            .name = "sum", .variant = {{run_sum}}, .data = f, .nwaits = 1, .waits = &both, .signals = f->join},
        NULL));
done:
    return err;
}

static int64_t fibonacci(int n)
{
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

START_TEST(recursion_joins_by_events)
{
    trl_workers *workers = make_workers(&app_settings[_i]);
    trl_graph *graph = app_graph("fibonacci");
    recursion r = {.frames = app_calloc(FRAMES, sizeof *r.frames)};
    frame *top = new_frame(&r, FIBONACCI, 0);
    app_task(graph, "fibonacci", run_fibonacci, top, 0);
    ck_ok(trl_graph_freeze(graph));
    for (int run = 0; run < 3; ++run) {
        atomic_store_explicit(&r.used, 1, memory_order_relaxed); /* relaxed: no run is in progress */
        top->value = -1;
        ck_ok(trl_graph_run(graph, workers, NULL));
        ck_assert_int_eq(top->value, fibonacci(FIBONACCI));
    }
    trl_graph_destroy(&graph);
    trl_workers_destroy(&workers);
    free(r.frames);
}
END_TEST

/* fib(n) as the number of leaves that are 1: nobody joins, the scope of the first task does. */
static trl_err run_leaves(void *data, const trl_task_args *args, bool *done)
{
    frame *f = data;
    trl_err err = TRL_OK;
    (void)done;
    /* relaxed: read after the scope has ended */
    if (f->n < 2) atomic_fetch_add_explicit(&f->of->ones, f->n, memory_order_relaxed);
    for (int k = 0; f->n >= 2 && k < 2; ++k) {
        frame *part = new_frame(f->of, f->n - 1 - k, 0);
        if (!part) return TRL_ERR_BUG;
        TRL_TRY(trl_run_spawn(args->run, &(trl_spawn_desc){.name = "leaves", .variant = {{run_leaves}}, .data = part},
                              NULL));
    }
done:
    return err;
}

static trl_err run_after_scope(void *data, const trl_task_args *args, bool *done)
{
    recursion *r = data;
    (void)args;
    (void)done;
    r->after_scope = atomic_load_explicit(&r->ones, memory_order_relaxed); /* relaxed: as above */
    return TRL_OK;
}

START_TEST(successors_of_a_scope_see_all_that_it_created)
{
    trl_workers *workers = make_workers(&app_settings[_i]);
    trl_graph *graph = app_graph("scope");
    recursion r = {.frames = app_calloc(FRAMES, sizeof *r.frames)};
    trl_task top, after;
    ck_ok(trl_graph_add_task(graph,
                             &(trl_task_desc){.name = "leaves",
                                              .variant = {{run_leaves}},
                                              .data = new_frame(&r, FIBONACCI, 0),
                                              .chunks = 1,
                                              .flags = TRL_TASK_SCOPE},
                             &top));
    after = app_task(graph, "after", run_after_scope, &r, 0);
    ck_ok(trl_graph_add_dependency(graph, top, after));
    ck_ok(trl_graph_freeze(graph));
    for (int run = 0; run < 3; ++run) {
        atomic_store_explicit(&r.used, 1, memory_order_relaxed); /* relaxed: no run is in progress */
        atomic_store_explicit(&r.ones, 0, memory_order_relaxed);
        ck_ok(trl_graph_run(graph, workers, NULL));
        ck_assert_int_eq(r.after_scope, fibonacci(FIBONACCI));
    }
    trl_graph_destroy(&graph);
    trl_workers_destroy(&workers);
    free(r.frames);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_loop_test(tc, walks_park_until_their_node_is_delivered, 0, APP_SETTINGS);
    tcase_add_loop_test(tc, jacobi_stops_by_its_own_result_and_equals_the_serial_one_to_the_bit, 0, APP_SETTINGS);
    tcase_add_loop_test(tc, phases_that_come_round_again_order_a_lattice_as_a_queue_does, 0, APP_SETTINGS);
    tcase_add_loop_test(tc, recursion_joins_by_events, 0, APP_SETTINGS);
    tcase_add_loop_test(tc, successors_of_a_scope_see_all_that_it_created, 0, APP_SETTINGS);
}

TRL_TEST_MAIN("dynamic", add_tests)
