// ctest: np=1 optimise=2
/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Particles: gravity by a Barnes-Hut tree, and forces of short range on a periodic grid of cells. Tasks that add to the
 * same particles conflict; nothing orders them. */
#include "trl_test.h"

#include "app_support.h"

#include "octree.h"

/* ---- gravity ---- */

enum { BODIES = APP_SANITIZED ? 900 : 4000, PAIRS_OF_A_TASK = 400 };
static const double opening = 0.5;

typedef struct interaction {
    octree_cell *a, *b; /* b acts on a from far; or a with b direct; or inside of a */
    bool far;
} interaction;

typedef struct gravity {
    octree *tree;
    trl_graph *graph;
    trl_resource *resources; /* [ncells] */
    trl_task *centres;       /* [ncells] */
    interaction *list;
    int count, capacity;
} gravity;

static trl_err run_centre(void *data, const trl_task_args *args, bool *done)
{
    (void)args;
    (void)done;
    octree_summarise(data);
    return TRL_OK;
}

static trl_err run_interaction(void *data, const trl_task_args *args, bool *done)
{
    const interaction *i = data;
    (void)args;
    (void)done;
    if (i->far) {
        octree_far(i->a, i->b);
    } else {
        octree_direct(i->a, i->b);
    }
    return TRL_OK;
}

static void add_interaction(gravity *g, octree_cell *a, octree_cell *b, bool far)
{
    if (g->count == g->capacity) ck_abort_msg("more than %d interactions", g->capacity);
    g->list[g->count++] = (interaction){.a = a, .b = b, .far = far};
}

/* All pairs with one particle in each cell. Small cells above the leaves are taken whole: locks at all levels. */
static void list_pairs(gravity *g, octree_cell *a, octree_cell *b)
{
    if (octree_apart(a, b, opening)) {
        add_interaction(g, a, b, true);
        add_interaction(g, b, a, true);
    } else if ((!a->children && !b->children) || a->count * b->count <= PAIRS_OF_A_TASK) {
        add_interaction(g, a, b, false);
    } else {
        octree_cell *split = !b->children || (a->children && a->half >= b->half) ? a : b, *other = split == a ? b : a;
        for (int k = 0; k < split->children; ++k) list_pairs(g, &g->tree->cells[split->child[k]], other);
    }
}

static void list_inside(gravity *g, octree_cell *a)
{
    if (!a->children || a->count * a->count <= PAIRS_OF_A_TASK) {
        add_interaction(g, a, a, false);
        return;
    }
    for (int k = 0; k < a->children; ++k) {
        list_inside(g, &g->tree->cells[a->child[k]]);
        for (int l = 0; l < k; ++l) list_pairs(g, &g->tree->cells[a->child[k]], &g->tree->cells[a->child[l]]);
    }
}

static void add_gravity_tasks(gravity *g)
{
    octree *t = g->tree;
    for (int c = 0; c < t->ncells; ++c) {
        int parent = t->cells[c].parent;
        g->resources[c] = app_resource(g->graph, "cell", parent < 0 ? TRL_NO_PARENT : g->resources[parent]);
        g->centres[c] = app_task(g->graph, "centre", run_centre, &t->cells[c], 0);
        if (parent >= 0) app_must(trl_graph_add_dependency(g->graph, g->centres[c], g->centres[parent]));
    }
    for (int i = 0; i < g->count; ++i) {
        const interaction *at = &g->list[i];
        int a = (int)(at->a - t->cells), b = (int)(at->b - t->cells);
        trl_task task = app_task(g->graph, at->far ? "far" : "direct", run_interaction, &g->list[i], 1 + at->far);
        app_must(trl_graph_add_lock(g->graph, task, g->resources[a]));
        if (at->far) {
            app_must(trl_graph_add_dependency(g->graph, g->centres[b], task));
        } else {
            app_must(trl_graph_add_lock(g->graph, task, g->resources[b])); /* a second time when a is b */
        }
    }
}

static gravity make_gravity(uint64_t seed)
{
    gravity g = {.tree = octree_create(BODIES, seed), .graph = app_graph("gravity"), .capacity = 40 * BODIES};
    g.resources = app_calloc((size_t)g.tree->ncells, sizeof *g.resources);
    g.centres = app_calloc((size_t)g.tree->ncells, sizeof *g.centres);
    g.list = app_calloc((size_t)g.capacity, sizeof *g.list);
    list_inside(&g, &g.tree->cells[0]);
    add_gravity_tasks(&g);
    ck_ok(trl_graph_freeze(g.graph));
    return g;
}

static void free_gravity(gravity *g)
{
    trl_graph_destroy(&g->graph);
    octree_free(g->tree);
    free(g->resources);
    free(g->centres);
    free(g->list);
}

static void clear_particles(octree *t)
{
    for (int i = 0; i < t->count; ++i) {
        particle *p = &t->particles[i];
        memset(p->a, 0, sizeof p->a);
        p->bound = 0.0;
        p->seen = 0;
    }
}

static void run_list(gravity *g)
{
    bool done;
    clear_particles(g->tree);
    for (int c = g->tree->ncells - 1; c >= 0; --c) octree_summarise(&g->tree->cells[c]);
    for (int i = 0; i < g->count; ++i) ck_ok(run_interaction(&g->list[i], NULL, &done));
}

static double distance(const double a[3], const double b[3])
{
    return sqrt((a[0] - b[0]) * (a[0] - b[0]) + (a[1] - b[1]) * (a[1] - b[1]) + (a[2] - b[2]) * (a[2] - b[2]));
}

static double length(const double a[3])
{
    return distance(a, (const double[3]){0.0, 0.0, 0.0});
}

START_TEST(barnes_hut_is_as_close_to_direct_sums_as_the_opening_angle_says)
{
    gravity g = make_gravity(3);
    particle *p = g.tree->particles;
    trl_workers *workers = make_workers(&app_settings[_i]);
    double sum = 0.0;
    int64_t far = 0; /* pairs that act from far */
    for (int i = 0; i < g.count; ++i) far += g.list[i].far ? g.list[i].a->count * g.list[i].b->count : 0;
    ck_assert_int_gt(far, BODIES * BODIES / 20);
    clear_particles(g.tree);
    ck_ok(trl_graph_run(g.graph, workers, NULL));
    for (int i = 0; i < BODIES; ++i) {
        particle direct = {.mass = p[i].mass};
        memcpy(direct.x, p[i].x, sizeof direct.x);
        for (int j = 0; j < BODIES; ++j) {
            if (j != i) octree_act_on(&direct, p[j].x, p[j].mass);
        }
        double error = distance(direct.a, p[i].a);
        ck_assert_int_eq(p[i].seen, BODIES - 1);
        ck_assert_double_le(error, p[i].bound + 1e-12 * length(direct.a));
        sum += error / length(direct.a);
    }
    ck_assert_double_lt(sum / BODIES, 0.01);
    ck_assert_double_gt(sum / BODIES, 1e-6); /* something was approximated */
    trl_workers_destroy(&workers);
    free_gravity(&g);
}
END_TEST

START_TEST(barnes_hut_tasks_in_any_order_add_up_to_the_serial_sums)
{
    gravity g = make_gravity(4);
    particle *p = g.tree->particles;
    trl_workers *workers = make_workers(&app_settings[_i]);
    double(*serial)[3] = app_calloc(BODIES, sizeof *serial);
    run_list(&g);
    for (int i = 0; i < BODIES; ++i) memcpy(serial[i], p[i].a, sizeof serial[i]);
    for (int run = 0; run < 4; ++run) {
        clear_particles(g.tree);
        for (int c = 0; c < g.tree->ncells; ++c) g.tree->cells[c].mass = NAN;
        ck_ok(trl_graph_run(g.graph, workers, NULL));
        for (int i = 0; i < BODIES; ++i) {
            ck_assert_int_eq(p[i].seen, BODIES - 1);
            ck_assert_double_le(distance(serial[i], p[i].a), 1e-12 * length(serial[i]));
        }
    }
    free(serial);
    trl_workers_destroy(&workers);
    free_gravity(&g);
}
END_TEST

/* ---- forces of short range ---- */

enum { ATOMS_OF_A_CELL = 6, NEIGHBOURS = 13, MD_STEPS = 3 };

typedef struct atom {
    double x[3], v[3], f[3];
    double sizes; /* sum of the sizes of the forces on it */
    int pairs;
} atom;

/* cells[0] x cells[1] x cells[2] cubes of side 1, the distance at which forces end. Atoms stay in their cells. */
typedef struct box {
    int cells[3], count;
    atom *atoms; /* [count][ATOMS_OF_A_CELL] */
} box;

typedef struct cell_task {
    box *of;
    int a, b; /* a: inside of one cell */
} cell_task;

/* The force on p from q: a smooth repulsion, zero at distance 1. */
static void pair_force(const box *b, atom *p, atom *q)
{
    double d[3], r2 = 0.0;
    for (int axis = 0; axis < 3; ++axis) {
        d[axis] = p->x[axis] - q->x[axis];
        d[axis] -= b->cells[axis] * nearbyint(d[axis] / b->cells[axis]); /* the nearest image */
        r2 += d[axis] * d[axis];
    }
    if (r2 >= 1.0) return;
    double factor = (1.0 - r2) * (1.0 - r2) / (r2 + 0.01);
    for (int axis = 0; axis < 3; ++axis) {
        p->f[axis] += factor * d[axis];
        q->f[axis] -= factor * d[axis];
    }
    p->sizes += factor * sqrt(r2);
    q->sizes += factor * sqrt(r2);
    ++p->pairs;
    ++q->pairs;
}

static trl_err run_forces(void *data, const trl_task_args *args, bool *done)
{
    const cell_task *t = data;
    atom *a = &t->of->atoms[(size_t)t->a * ATOMS_OF_A_CELL], *b = &t->of->atoms[(size_t)t->b * ATOMS_OF_A_CELL];
    (void)args;
    (void)done;
    for (int i = 0; i < ATOMS_OF_A_CELL; ++i) {
        for (int j = t->a == t->b ? i + 1 : 0; j < ATOMS_OF_A_CELL; ++j) pair_force(t->of, &a[i], &b[j]);
    }
    return TRL_OK;
}

static void clear_forces(atom *p)
{
    memset(p->f, 0, sizeof p->f);
    p->sizes = 0.0;
    p->pairs = 0;
}

static trl_err run_clear(void *data, const trl_task_args *args, bool *done)
{
    const cell_task *t = data;
    (void)args;
    (void)done;
    for (int i = 0; i < ATOMS_OF_A_CELL; ++i) clear_forces(&t->of->atoms[t->a * ATOMS_OF_A_CELL + i]);
    return TRL_OK;
}

static void kick(atom *p)
{
    for (int axis = 0; axis < 3; ++axis) p->v[axis] += 1e-3 * p->f[axis];
}

static trl_err run_kick(void *data, const trl_task_args *args, bool *done)
{
    const cell_task *t = data;
    (void)args;
    (void)done;
    for (int i = 0; i < ATOMS_OF_A_CELL; ++i) kick(&t->of->atoms[t->a * ATOMS_OF_A_CELL + i]);
    return TRL_OK;
}

static int cell_at(const box *b, int i, int j, int k)
{
    const int *n = b->cells;
    return ((i + n[0]) % n[0] * n[1] + (j + n[1]) % n[1]) * n[2] + (k + n[2]) % n[2];
}

static box make_box(int nx, int ny, int nz, uint64_t seed)
{
    box b = {.cells = {nx, ny, nz}, .count = nx * ny * nz};
    b.atoms = app_calloc((size_t)b.count * ATOMS_OF_A_CELL, sizeof *b.atoms);
    for (int c = 0; c < b.count; ++c) {
        const int corner[3] = {c / (ny * nz), c / nz % ny, c % nz};
        for (int i = 0; i < ATOMS_OF_A_CELL; ++i) {
            atom *p = &b.atoms[c * ATOMS_OF_A_CELL + i];
            for (int axis = 0; axis < 3; ++axis) {
                p->x[axis] = corner[axis] + app_uniform(&seed);
                p->v[axis] = app_uniform(&seed) - 0.5;
            }
        }
    }
    return b;
}

/* The cells after the one in the middle, of the 27 around: each pair of neighbours once. */
static int half_shell(const box *b, int cell, int neighbours[NEIGHBOURS])
{
    int i = cell / (b->cells[1] * b->cells[2]), j = cell / b->cells[2] % b->cells[1], k = cell % b->cells[2];
    for (int n = 14; n < 27; ++n) neighbours[n - 14] = cell_at(b, i + n / 9 - 1, j + n / 3 % 3 - 1, k + n % 3 - 1);
    return NEIGHBOURS;
}

/* clear -> forces -> kick of each cell; the forces' tasks conflict in each cell. */
static void add_md_tasks(trl_graph *graph, box *b, cell_task *data)
{
    trl_task *clear = app_calloc((size_t)b->count, sizeof *clear), *kicks = app_calloc((size_t)b->count, sizeof *kicks);
    trl_resource *cells = app_calloc((size_t)b->count, sizeof *cells);
    for (int c = 0; c < b->count; ++c) {
        cell_task *own = data++;
        *own = (cell_task){.of = b, .a = c, .b = c};
        clear[c] = app_task(graph, "clear", run_clear, own, 0);
        kicks[c] = app_task(graph, "kick", run_kick, own, 1);
        cells[c] = app_resource(graph, "cell", TRL_NO_PARENT);
    }
    for (int c = 0; c < b->count; ++c) {
        int pairs[NEIGHBOURS + 1] = {c};
        int count = 1 + half_shell(b, c, pairs + 1);
        for (int n = 0; n < count; ++n) {
            *data = (cell_task){.of = b, .a = c, .b = pairs[n]};
            trl_task task = app_task(graph, n ? "pair" : "self", run_forces, data++, 2);
            for (int side = 0; side < (n ? 2 : 1); ++side) {
                int cell = side ? pairs[n] : c;
                app_must(trl_graph_add_dependency(graph, clear[cell], task));
                app_must(trl_graph_add_dependency(graph, task, kicks[cell]));
                app_must(trl_graph_add_lock(graph, task, cells[cell]));
            }
        }
    }
    free(clear);
    free(kicks);
    free(cells);
}

/* Forces by all pairs of atoms, and the kicks. */
static void direct_step(box *b)
{
    int atoms = b->count * ATOMS_OF_A_CELL;
    for (int i = 0; i < atoms; ++i) clear_forces(&b->atoms[i]);
    for (int i = 0; i < atoms; ++i) {
        for (int j = i + 1; j < atoms; ++j) pair_force(b, &b->atoms[i], &b->atoms[j]);
    }
    for (int i = 0; i < atoms; ++i) kick(&b->atoms[i]);
}

static void check_step(const box *b, const box *direct)
{
    double momentum[3] = {0.0}, sizes = 0.0;
    for (int i = 0; i < b->count * ATOMS_OF_A_CELL; ++i) {
        const atom *p = &b->atoms[i], *q = &direct->atoms[i];
        ck_assert_int_eq(p->pairs, q->pairs);
        ck_assert_double_le(distance(p->f, q->f), 1e-12 * (1.0 + q->sizes));
        ck_assert_double_le(distance(p->v, q->v), 1e-12 * (1.0 + length(q->v)));
        for (int axis = 0; axis < 3; ++axis) momentum[axis] += p->f[axis];
        sizes += p->sizes;
    }
    ck_assert_double_gt(sizes, 0.1 * b->count);
    ck_assert_double_le(length(momentum), 1e-14 * sizes);
}

static const int grids[][3] = {{3, 3, 3}, {3, 4, 5}, {APP_SANITIZED ? 4 : 7, 5, 6}};
enum { GRIDS = sizeof grids / sizeof *grids };

START_TEST(forces_of_neighbour_cells_are_those_of_all_pairs_and_keep_the_momentum)
{
    const int *n = grids[_i % GRIDS];
    trl_workers *workers = make_workers(&app_settings[_i / GRIDS]);
    trl_graph *graph = app_graph("forces");
    box b = make_box(n[0], n[1], n[2], 5), direct = make_box(n[0], n[1], n[2], 5);
    cell_task *data = app_calloc((size_t)b.count * (NEIGHBOURS + 2), sizeof *data);
    trl_graph_stats stats;
    add_md_tasks(graph, &b, data);
    ck_ok(trl_graph_freeze(graph));
    trl_graph_get_stats(graph, &stats);
    ck_assert_int_eq(stats.tasks, (int64_t)b.count * (NEIGHBOURS + 3));
    for (int step = 0; step < MD_STEPS; ++step) {
        ck_ok(trl_graph_run(graph, workers, NULL));
        direct_step(&direct);
        check_step(&b, &direct);
    }
    trl_graph_destroy(&graph);
    trl_workers_destroy(&workers);
    free(data);
    free(b.atoms);
    free(direct.atoms);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_loop_test(tc, barnes_hut_is_as_close_to_direct_sums_as_the_opening_angle_says, 0, APP_SETTINGS);
    tcase_add_loop_test(tc, barnes_hut_tasks_in_any_order_add_up_to_the_serial_sums, 0, APP_SETTINGS);
    tcase_add_loop_test(tc, forces_of_neighbour_cells_are_those_of_all_pairs_and_keep_the_momentum, 0,
                        GRIDS * APP_SETTINGS);
}

TRL_TEST_MAIN("bodies", add_tests)
