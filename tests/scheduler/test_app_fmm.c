// ctest: np=1 optimise=2
/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The task graph of the fast multipole method, with an exact oracle: by dependencies and locks, by phases alone, and
 * spawned while it runs, with events for dependencies on tasks that do not exist yet. */
#include "trl_test.h"

#include "app_support.h"

#include "fmm_tree.h"

enum { P2M, M2M, M2L, L2L, L2P, P2P, OPERATORS };
static const char *const operator_names[OPERATORS] = {"P2M", "M2M", "M2L", "L2L", "L2P", "P2P"};

typedef struct fmm_task {
    fmm_tree *tree;
    int operator, level, unit;
} fmm_task;

static void apply(const fmm_task *t)
{
    switch (t->operator) {
    case P2M:
        fmm_p2m(t->tree, t->unit);
        break;
    case M2M:
        fmm_m2m(t->tree, t->level, t->unit);
        break;
    case M2L:
        fmm_m2l(t->tree, t->level, t->unit);
        break;
    case L2L:
        fmm_l2l(t->tree, t->level, t->unit);
        break;
    case L2P:
        fmm_l2p(t->tree, t->unit);
        break;
    default:
        fmm_p2p(t->tree, t->unit);
        break;
    }
}

static trl_err run_operator(void *data, const trl_task_args *args, bool *done)
{
    (void)args;
    (void)done;
    apply(data);
    return TRL_OK;
}

/* ---- resources: to add to the mu of a unit, of all children of a unit, and to the results of a unit of leaves ---- */

typedef struct fmm_locks {
    trl_resource *mu, *children, *result; /* [units], [units above the leaves], [units of leaves] */
} fmm_locks;

static fmm_locks add_locks(trl_graph *graph, const fmm_tree *t)
{
    int leaf_units = fmm_units(t, t->depth), units = fmm_first_unit(t, t->depth + 1);
    fmm_locks locks = {.mu = app_calloc((size_t)units, sizeof *locks.mu),
                       .children = app_calloc((size_t)units, sizeof *locks.children),
                       .result = app_calloc((size_t)leaf_units, sizeof *locks.result)};
    for (int level = 0; level <= t->depth; ++level) {
        for (int u = 0; u < fmm_units(t, level); ++u) {
            int at = fmm_first_unit(t, level) + u;
            trl_resource parent = level ? locks.children[fmm_first_unit(t, level - 1) + u / 8] : TRL_NO_PARENT;
            locks.mu[at] = app_resource(graph, "mu", parent);
            if (level < t->depth) locks.children[at] = app_resource(graph, "children's mu", TRL_NO_PARENT);
        }
    }
    for (int u = 0; u < leaf_units; ++u) locks.result[u] = app_resource(graph, "result", TRL_NO_PARENT);
    return locks;
}

static void free_locks(fmm_locks *locks)
{
    free(locks->mu);
    free(locks->children);
    free(locks->result);
}

/* What the task adds to, or TRL_NO_PARENT. */
static trl_resource lock_of(const fmm_locks *locks, const fmm_task *t)
{
    int at = fmm_first_unit(t->tree, t->level) + t->unit;
    switch (t->operator) {
    case M2L:
        return locks->mu[at];
    case L2L:
        return locks->children[at];
    case L2P:
    case P2P:
        return locks->result[t->unit];
    default:
        return TRL_NO_PARENT;
    }
}

/* ---- all tasks, one after the other ---- */

typedef struct fmm_graph {
    fmm_tree tree;
    trl_graph *graph;
    fmm_locks locks;
    fmm_task *data;
    int count;
    trl_task *tasks[OPERATORS]; /* [units] */
} fmm_graph;

static bool exists(const fmm_tree *t, int operator, int level)
{
    return operator== M2L ||(operator== M2M || operator== L2L ? level < t->depth : level == t->depth);
}

static void add_unit_tasks(fmm_graph *g, int level, int unit, int (*type_of)(const fmm_task *))
{
    int at = fmm_first_unit(&g->tree, level) + unit;
    for (int o = 0; o < OPERATORS; ++o) {
        if (!exists(&g->tree, o, level)) continue;
        fmm_task *data = &g->data[g->count++];
        *data = (fmm_task){.tree = &g->tree, .operator= o, .level = level, .unit = unit};
        trl_task task = g->tasks[o][at] = app_task(g->graph, operator_names[o], run_operator, data, type_of(data));
        trl_resource lock = lock_of(&g->locks, data);
        if (lock != TRL_NO_PARENT) app_must(trl_graph_add_lock(g->graph, task, lock));
    }
}

static fmm_graph *make_tasks(int depth, int grain, int (*type_of)(const fmm_task *))
{
    fmm_graph *g = app_calloc(1, sizeof *g);
    g->tree = fmm_create(depth, grain);
    g->graph = app_graph("fmm");
    size_t units = (size_t)fmm_first_unit(&g->tree, depth + 1);
    g->data = app_calloc(OPERATORS * units, sizeof *g->data);
    for (int o = 0; o < OPERATORS; ++o) g->tasks[o] = app_calloc(units, sizeof *g->tasks[o]);
    g->locks = add_locks(g->graph, &g->tree);
    for (int level = 0; level <= depth; ++level) {
        for (int u = 0; u < fmm_units(&g->tree, level); ++u) add_unit_tasks(g, level, u, type_of);
    }
    return g;
}

static void free_fmm_graph(fmm_graph *g)
{
    trl_graph_destroy(&g->graph);
    fmm_free(&g->tree);
    free_locks(&g->locks);
    free(g->data);
    for (int o = 0; o < OPERATORS; ++o) free(g->tasks[o]);
    free(g);
}

static void run_and_check(fmm_graph *g, trl_workers *workers, int runs)
{
    for (int run = 0; run < runs; ++run) {
        fmm_clear(&g->tree);
        ck_ok(trl_graph_run(g->graph, workers, NULL));
        ck_assert_int_eq(fmm_wrong_leaves(&g->tree), 0);
        ck_assert_int_eq(g->tree.omega[0], fmm_boxes(g->tree.depth));
    }
}

/* ---- dependencies ---- */

static void add_edge(fmm_graph *g, trl_task before, trl_task after)
{
    app_must(trl_graph_add_dependency(g->graph, before, after));
}

static void add_unit_edges(fmm_graph *g, int level, int unit)
{
    const fmm_tree *t = &g->tree;
    int at = fmm_first_unit(t, level) + unit, below = fmm_first_unit(t, level + 1), units[FMM_LIST];
    int parent = level ? fmm_first_unit(t, level - 1) + unit / 8 : -1, up = level < t->depth ? M2M : P2M;
    for (int k = 0; up == M2M && k < fmm_child_units(t, level); ++k)
        add_edge(g, g->tasks[level + 1 < t->depth ? M2M : P2M][below + 8 * unit + k], g->tasks[M2M][at]);
    for (int i = fmm_source_units(t, level, unit, units) - 1; i >= 0; --i)
        add_edge(g, g->tasks[up][fmm_first_unit(t, level) + units[i]], g->tasks[M2L][at]);
    trl_task down = g->tasks[level < t->depth ? L2L : L2P][at];
    add_edge(g, g->tasks[M2L][at], down);
    if (level) add_edge(g, g->tasks[L2L][parent], down);
}

static int operator_type(const fmm_task *t)
{
    return t->operator;
}

static fmm_graph *make_static(int depth, int grain)
{
    fmm_graph *g = make_tasks(depth, grain, operator_type);
    for (int level = 0; level <= depth; ++level) {
        for (int u = 0; u < fmm_units(&g->tree, level); ++u) add_unit_edges(g, level, u);
    }
    ck_ok(trl_graph_freeze(g->graph));
    return g;
}

typedef struct fmm_case {
    int depth, grain, runs;
    int64_t tasks, dependencies; /* 0: not known from elsewhere */
} fmm_case;

/* Counts of a task per box: Morgenstern 2024, with each image of a periodic box counted once. */
static const fmm_case static_cases[] = {
    {3, 0, 3, 2267, 100889},  {4, 1, 3, 0, 0},
#if !APP_SANITIZED
    {4, 0, 2, 18139, 887321}, {5, 0, 1, 145115, 7178777},
    {5, 1, 2, 0, 0},          {6, 1, 1, 0, 0},
    {6, 2, 1, 0, 0},
#endif
};
enum { STATIC_CASES = sizeof static_cases / sizeof *static_cases };

START_TEST(every_leaf_hears_of_every_leaf_once_by_dependencies_and_locks)
{
    const fmm_case *c = &static_cases[_i];
    if (c->dependencies > 1000000 && !test_long()) return; /* as much time as for all others */
    fmm_graph *g = make_static(c->depth, c->grain);
    trl_graph_stats stats;
    trl_graph_get_stats(g->graph, &stats);
    ck_assert_int_eq(stats.tasks, g->count);
    if (c->tasks) ck_assert_int_eq(stats.tasks, c->tasks);
    if (c->dependencies) ck_assert_int_eq(stats.dependencies, c->dependencies);
    for (int s = 0; s < APP_SETTINGS; ++s) {
        trl_workers *workers = make_workers(&app_settings[s]);
        run_and_check(g, workers, c->runs);
        trl_workers_destroy(&workers);
    }
    free_fmm_graph(g);
}
END_TEST

/* ---- phases ---- */

/* P2M, M2M from the last level up, M2L, L2L down, L2P; P2P at any time. The numbers of types do not follow the
 * order. */
enum { TYPE_M2M = 20, TYPE_L2L = 40 };

static int phase_type(const fmm_task *t)
{
    return t->operator== M2M ? TYPE_M2M + t->level : t->operator== L2L ? TYPE_L2L + t->level : t->operator;
}

static fmm_graph *make_phases(int depth, int grain)
{
    fmm_graph *g = make_tasks(depth, grain, phase_type);
    ck_ok(trl_graph_add_phase(g->graph, "P2M", P2M, P2M + 1));
    for (int l = depth - 1; l >= 0; --l) ck_ok(trl_graph_add_phase(g->graph, "M2M", TYPE_M2M + l, TYPE_M2M + l + 1));
    ck_ok(trl_graph_add_phase(g->graph, "M2L", M2L, M2L + 1));
    for (int l = 0; l < depth; ++l) ck_ok(trl_graph_add_phase(g->graph, "L2L", TYPE_L2L + l, TYPE_L2L + l + 1));
    ck_ok(trl_graph_add_phase(g->graph, "L2P", L2P, L2P + 1));
    ck_ok(trl_graph_freeze(g->graph));
    return g;
}

START_TEST(phases_alone_order_the_passes)
{
    static const fmm_case cases[] = {{3, 0, 3, 0, 0}, {APP_SANITIZED ? 3 : 5, 1, 2, 0, 0}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; ++c) {
        fmm_graph *g = make_phases(cases[c].depth, cases[c].grain);
        trl_workers *workers = make_workers(&app_settings[_i]);
        trl_graph_stats stats;
        trl_graph_get_stats(g->graph, &stats);
        ck_assert_int_eq(stats.dependencies, 0);
        run_and_check(g, workers, cases[c].runs);
        trl_workers_destroy(&workers);
        free_fmm_graph(g);
    }
}
END_TEST

/* ---- spawned ---- */

/* A task per unit spawns the unit's operators, which wait for events of units that may not have been expanded, and
 * those that expand its children. */
typedef struct fmm_spawner {
    fmm_tree tree;
    fmm_locks locks;
    struct spawned_task *data;   /* [OPERATORS][units] */
    struct spawned_task *expand; /* [units] */
    trl_event *omega;            /* [units] fires when the unit's omega is known */
    trl_event *mu;               /* [units] fires when its mu is complete */
    int units;
} fmm_spawner;

typedef struct spawned_task {
    fmm_task task;
    fmm_spawner *of;
} spawned_task;

static trl_err run_spawned(void *data, const trl_task_args *args, bool *done)
{
    const spawned_task *s = data;
    const fmm_task *t = &s->task;
    (void)done;
    apply(t);
    for (int k = 0; t->operator== L2L && k<fmm_child_units(t->tree, t->level); ++k) {
        int child = fmm_first_unit(t->tree, t->level + 1) + 8 * t->unit + k;
        trl_err err = trl_run_signal(args->run, s->of->mu[child], 1);
        if (err != TRL_OK) return err;
    }
    return TRL_OK;
}

static trl_err spawn_operator(trl_run *run, const spawned_task *at, int operator, int nwaits, const trl_event *waits,
                              trl_event signals)
{
    fmm_spawner *s = at->of;
    spawned_task *data = &s->data[operator* s->units + fmm_first_unit(&s->tree, at->task.level) + at->task.unit];
    *data = *at;
    data->task.operator= operator;
    trl_resource lock = lock_of(&s->locks, &data->task);
    return trl_run_spawn(run,
                         &(trl_spawn_desc){.name = operator_names[operator],
                                           .variant = {{run_spawned}},
                                           .data = data,
                                           .type = operator,
                                           .nwaits = nwaits,
                                           .waits = waits,
                                           .signals = signals,
                                           .nlocks = lock != TRL_NO_PARENT,
                                           .locks = &lock},
                         NULL);
}

static trl_err spawn_operators(trl_run *run, const spawned_task *at)
{
    const fmm_spawner *s = at->of;
    const fmm_tree *t = &s->tree;
    int level = at->task.level, unit = at->task.unit, units[FMM_LIST];
    int first = fmm_first_unit(t, level), below = fmm_first_unit(t, level + 1) + 8 * unit;
    int nwaits = fmm_source_units(t, level, unit, units);
    trl_event waits[FMM_LIST];
    trl_err err;
    for (int i = 0; i < nwaits; ++i) waits[i] = s->omega[first + units[i]];
    TRL_TRY(spawn_operator(run, at, M2L, nwaits, waits, s->mu[first + unit]));
    if (level < t->depth) {
        TRL_TRY(spawn_operator(run, at, L2L, 1, &s->mu[first + unit], 0));
        TRL_TRY(spawn_operator(run, at, M2M, fmm_child_units(t, level), &s->omega[below], s->omega[first + unit]));
    } else {
        TRL_TRY(spawn_operator(run, at, L2P, 1, &s->mu[first + unit], 0));
        TRL_TRY(spawn_operator(run, at, P2P, 0, NULL, 0));
        TRL_TRY(spawn_operator(run, at, P2M, 0, NULL, s->omega[first + unit]));
    }
done:
    return err;
}

static trl_err run_expand(void *data, const trl_task_args *args, bool *done)
{
    const spawned_task *at = data;
    fmm_spawner *s = at->of;
    int level = at->task.level, unit = at->task.unit;
    trl_err err = spawn_operators(args->run, at);
    (void)done;
    for (int k = 0; err == TRL_OK && level < s->tree.depth && k < fmm_child_units(&s->tree, level); ++k) {
        spawned_task *child = &s->expand[fmm_first_unit(&s->tree, level + 1) + 8 * unit + k];
        *child = *at;
        child->task.level = level + 1;
        child->task.unit = 8 * unit + k;
        err = trl_run_spawn(
            args->run, &(trl_spawn_desc){.name = "expand", .variant = {{run_expand}}, .data = child, .type = OPERATORS},
            NULL);
    }
    return err;
}

/* The only task that the graph has from the start. */
static trl_err run_begin(void *data, const trl_task_args *args, bool *done)
{
    fmm_spawner *s = data;
    trl_err err = TRL_OK;
    for (int u = 0; u < s->units; ++u) {
        TRL_TRY(trl_run_create_event(args->run, 1, &s->omega[u]));
        TRL_TRY(trl_run_create_event(args->run, u == 0 ? 1 : 2, &s->mu[u])); /* its list's part, its parent's part */
    }
    s->expand[0] = (spawned_task){.task = {.tree = &s->tree}, .of = s};
    TRL_TRY(run_expand(&s->expand[0], args, done));
done:
    return err;
}

static trl_graph *make_spawner(fmm_spawner *s, int depth, int grain)
{
    trl_graph *graph = app_graph("spawned fmm");
    *s = (fmm_spawner){.tree = fmm_create(depth, grain)};
    s->units = fmm_first_unit(&s->tree, depth + 1);
    s->data = app_calloc((size_t)OPERATORS * s->units, sizeof *s->data);
    s->expand = app_calloc((size_t)s->units, sizeof *s->expand);
    s->omega = app_calloc((size_t)s->units, sizeof *s->omega);
    s->mu = app_calloc((size_t)s->units, sizeof *s->mu);
    s->locks = add_locks(graph, &s->tree);
    app_task(graph, "begin", run_begin, s, OPERATORS);
    ck_ok(trl_graph_freeze(graph));
    return graph;
}

static void free_spawner(fmm_spawner *s)
{
    fmm_free(&s->tree);
    free_locks(&s->locks);
    free(s->data);
    free(s->expand);
    free(s->omega);
    free(s->mu);
}

START_TEST(spawned_tasks_wait_for_events_of_tasks_to_come)
{
    static const fmm_case cases[] = {{3, 0, 3, 0, 0}, {4, 1, 2, 0, 0}, {APP_SANITIZED ? 4 : 5, 1, 2, 0, 0}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; ++c) {
        fmm_spawner s;
        trl_graph *graph = make_spawner(&s, cases[c].depth, cases[c].grain);
        trl_workers *workers = make_workers(&app_settings[_i]);
        int leaf_units = fmm_units(&s.tree, s.tree.depth), inner_units = s.units - leaf_units;
        trl_graph_stats stats;
        for (int run = 0; run < cases[c].runs; ++run) {
            fmm_clear(&s.tree);
            ck_ok(trl_graph_run(graph, workers, NULL));
            ck_assert_int_eq(fmm_wrong_leaves(&s.tree), 0);
            ck_assert_int_eq(s.tree.omega[0], fmm_boxes(s.tree.depth));
        }
        trl_graph_get_stats(graph, &stats); /* 4 operators on leaves, 3 above, and all expansions but the first */
        ck_assert_int_eq(stats.spawned,
                         cases[c].runs * ((int64_t)4 * leaf_units + (int64_t)3 * inner_units + s.units - 1));
        trl_workers_destroy(&workers);
        trl_graph_destroy(&graph);
        free_spawner(&s);
    }
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_loop_test(tc, every_leaf_hears_of_every_leaf_once_by_dependencies_and_locks, 0, STATIC_CASES);
    tcase_add_loop_test(tc, phases_alone_order_the_passes, 0, APP_SETTINGS);
    tcase_add_loop_test(tc, spawned_tasks_wait_for_events_of_tasks_to_come, 0, APP_SETTINGS);
}

TRL_TEST_MAIN("fmm", add_tests)
