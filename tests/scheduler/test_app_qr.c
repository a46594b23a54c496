// ctest: np=1
/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Tiled QR factorisation (Buttari, Langou, Kurzak, Dongarra 2009): dependencies from data handles, tiles by LAPACK. */
#ifndef TRL_TEST_LAPACKE
int main(int argc, char **argv)
{
    (void)argc, (void)argv;
    return 77; /* built without LAPACKE */
}
#else
#include "trl_test.h"

#include "app_support.h"

#include <float.h>
#include <lapacke.h>
#include <math.h>

/* rows x columns tiles of size x size numbers, each tile by columns; inner: columns of a block reflector. */
typedef struct tiled {
    int rows, columns, size, inner;
    double *tiles;   /* [rows][columns][size * size]: R in and above the diagonal tiles, the reflectors below */
    double *factors; /* [rows][columns][inner * size]: triangular factors of the block reflectors */
    double *scratch; /* [workers][size * size] */
} tiled;

static double *tile(const tiled *q, int i, int j)
{
    return q->tiles + (size_t)(i * q->columns + j) * (size_t)(q->size * q->size);
}

static double *factor(const tiled *q, int i, int j)
{
    return q->factors + (size_t)(i * q->columns + j) * (size_t)(q->inner * q->size);
}

static tiled make_tiled(int rows, int columns, int size, int inner, int workers)
{
    tiled q = {.rows = rows, .columns = columns, .size = size, .inner = inner};
    size_t tiles = (size_t)rows * columns, entries = (size_t)size * size;
    q.tiles = app_calloc(tiles * entries, sizeof *q.tiles);
    q.factors = app_calloc(tiles * (size_t)(inner * size), sizeof *q.factors);
    q.scratch = app_calloc((size_t)workers * entries, sizeof *q.scratch);
    return q;
}

static void free_tiled(tiled *q)
{
    free(q->tiles);
    free(q->factors);
    free(q->scratch);
}

/* ---- tasks ---- */

typedef struct tile_task {
    const tiled *q;
    int i, j, k; /* row, column, step */
} tile_task;

static trl_err lapack_result(lapack_int info)
{
    return info == 0 ? TRL_OK : TRL_ERR_NUMERICS;
}

static double *scratch(const tiled *q, int worker)
{
    return q->scratch + (size_t)worker * (size_t)(q->size * q->size);
}

/* QR of the diagonal tile. */
static trl_err run_geqrt(void *data, const trl_task_args *args, bool *done)
{
    const tile_task *t = data;
    const tiled *q = t->q;
    (void)done;
    return lapack_result(LAPACKE_dgeqrt_work(LAPACK_COL_MAJOR, q->size, q->size, q->inner, tile(q, t->k, t->k), q->size,
                                             factor(q, t->k, t->k), q->inner, scratch(q, args->worker)));
}

/* Apply its reflectors to a tile in the same row. */
static trl_err apply_diagonal(const tiled *q, int k, char trans, double *c, double *work)
{
    return lapack_result(LAPACKE_dgemqrt_work(LAPACK_COL_MAJOR, 'L', trans, q->size, q->size, q->size, q->inner,
                                              tile(q, k, k), q->size, factor(q, k, k), q->inner, c, q->size, work));
}

static trl_err run_ormqr(void *data, const trl_task_args *args, bool *done)
{
    const tile_task *t = data;
    (void)done;
    return apply_diagonal(t->q, t->k, 'T', tile(t->q, t->k, t->j), scratch(t->q, args->worker));
}

/* QR of R on top of a tile below it. */
static trl_err run_tsqrt(void *data, const trl_task_args *args, bool *done)
{
    const tile_task *t = data;
    const tiled *q = t->q;
    (void)done;
    return lapack_result(LAPACKE_dtpqrt_work(LAPACK_COL_MAJOR, q->size, q->size, 0, q->inner, tile(q, t->k, t->k),
                                             q->size, tile(q, t->i, t->k), q->size, factor(q, t->i, t->k), q->inner,
                                             scratch(q, args->worker)));
}

/* Apply its reflectors to two tiles of another column. */
static trl_err apply_pair(const tiled *q, int i, int k, char trans, double *upper, double *lower, double *work)
{
    return lapack_result(LAPACKE_dtpmqrt_work(LAPACK_COL_MAJOR, 'L', trans, q->size, q->size, q->size, 0, q->inner,
                                              tile(q, i, k), q->size, factor(q, i, k), q->inner, upper, q->size, lower,
                                              q->size, work));
}

static trl_err run_tsmqr(void *data, const trl_task_args *args, bool *done)
{
    const tile_task *t = data;
    (void)done;
    return apply_pair(t->q, t->i, t->k, 'T', tile(t->q, t->k, t->j), tile(t->q, t->i, t->j),
                      scratch(t->q, args->worker));
}

/* ---- the graph ---- */

typedef struct qr_graph {
    trl_graph *graph;
    tile_task *data;
    int count;
    trl_handle *tiles; /* [rows][columns] of whole tiles; of those on the diagonal, R */
    trl_handle *below; /* [columns] of what is below the diagonal of tile k, k: tsqrt leaves it alone */
} qr_graph;

static trl_task add_tile_task(qr_graph *g, const tiled *q, const char *name, trl_task_fn run, int i, int j, int k)
{
    tile_task *data = &g->data[g->count++];
    *data = (tile_task){.q = q, .i = i, .j = j, .k = k};
    return app_task(g->graph, name, run, data, 0);
}

static void access_tile(qr_graph *g, const tiled *q, trl_task task, int i, int j, trl_access access)
{
    ck_ok(trl_graph_add_access(g->graph, task, g->tiles[i * q->columns + j], access));
}

static void add_step(qr_graph *g, const tiled *q, int k)
{
    trl_task task = add_tile_task(g, q, "geqrt", run_geqrt, k, k, k);
    access_tile(g, q, task, k, k, TRL_READ_WRITE);
    ck_ok(trl_graph_add_access(g->graph, task, g->below[k], TRL_WRITE));
    for (int j = k + 1; j < q->columns; ++j) {
        task = add_tile_task(g, q, "ormqr", run_ormqr, k, j, k);
        ck_ok(trl_graph_add_access(g->graph, task, g->below[k], TRL_READ));
        access_tile(g, q, task, k, j, TRL_READ_WRITE);
    }
    for (int i = k + 1; i < q->rows; ++i) {
        task = add_tile_task(g, q, "tsqrt", run_tsqrt, i, k, k);
        access_tile(g, q, task, k, k, TRL_READ_WRITE);
        access_tile(g, q, task, i, k, TRL_READ_WRITE);
        for (int j = k + 1; j < q->columns; ++j) {
            task = add_tile_task(g, q, "tsmqr", run_tsmqr, i, j, k);
            access_tile(g, q, task, i, k, TRL_READ);
            access_tile(g, q, task, k, j, TRL_READ_WRITE);
            access_tile(g, q, task, i, j, TRL_READ_WRITE);
        }
    }
}

static qr_graph make_qr_graph(const tiled *q)
{
    qr_graph g = {.graph = app_graph("qr")};
    g.data = app_calloc((size_t)q->rows * q->columns * q->columns, sizeof *g.data);
    g.tiles = app_calloc((size_t)q->rows * q->columns, sizeof *g.tiles);
    g.below = app_calloc((size_t)q->columns, sizeof *g.below);
    for (int i = 0; i < q->rows * q->columns; ++i) g.tiles[i] = app_handle(g.graph, "tile");
    for (int k = 0; k < q->columns; ++k) g.below[k] = app_handle(g.graph, "below the diagonal");
    for (int k = 0; k < q->columns; ++k) add_step(&g, q, k);
    ck_ok(trl_graph_freeze(g.graph));
    return g;
}

static void free_qr_graph(qr_graph *g)
{
    trl_graph_destroy(&g->graph);
    free(g->data);
    free(g->tiles);
    free(g->below);
}

/* ---- checks ---- */

static double get(const tiled *q, const double *tiles, int row, int column)
{
    const double *t = tiles + (size_t)((row / q->size) * q->columns + column / q->size) * (size_t)(q->size * q->size);
    return t[(column % q->size) * q->size + row % q->size];
}

/* The first columns of Q, [rows * size][columns * size]: the reflectors applied to those of the identity, last ones
 * first. */
static double *form_q(const tiled *q)
{
    tiled identity = make_tiled(q->rows, q->columns, q->size, q->inner, 1);
    double *work = q->scratch;
    for (int d = 0; d < q->columns * q->size; ++d)
        tile(&identity, d / q->size, d / q->size)[(size_t)(d % q->size) * (q->size + 1)] = 1.0;
    for (int k = q->columns - 1; k >= 0; --k) {
        for (int j = 0; j < q->columns; ++j) {
            for (int i = q->rows - 1; i > k; --i)
                ck_ok(apply_pair(q, i, k, 'N', tile(&identity, k, j), tile(&identity, i, j), work));
            ck_ok(apply_diagonal(q, k, 'N', tile(&identity, k, j), work));
        }
    }
    double *result = identity.tiles;
    identity.tiles = NULL;
    free_tiled(&identity);
    return result;
}

/* ||A - QR|| / (||A|| n eps) and ||I - Q'Q|| / (n eps) in the Frobenius norm, n the number of columns. */
static void residuals(const tiled *q, const double *a, double *factorisation, double *orthogonality)
{
    int m = q->rows * q->size, n = q->columns * q->size;
    double *v = form_q(q);
    double difference = 0.0, norm = 0.0, deviation = 0.0;
    for (int j = 0; j < n; ++j) {
        for (int i = 0; i < m; ++i) {
            double sum = 0.0, aij = get(q, a, i, j);
            for (int k = 0; k <= j; ++k) sum += get(q, v, i, k) * get(q, q->tiles, k, j);
            difference += (aij - sum) * (aij - sum);
            norm += aij * aij;
        }
        for (int i = 0; i < n; ++i) {
            double sum = i == j ? -1.0 : 0.0;
            for (int k = 0; k < m; ++k) sum += get(q, v, k, i) * get(q, v, k, j);
            deviation += sum * sum;
        }
    }
    *factorisation = sqrt(difference / norm) / (n * DBL_EPSILON);
    *orthogonality = sqrt(deviation) / (n * DBL_EPSILON);
    free(v);
}

typedef struct qr_case {
    int rows, columns, size, inner;
} qr_case;

static const qr_case cases[] = {
    {1, 1, 16, 16}, {1, 1, 32, 8}, {4, 1, 16, 8}, {6, 6, 16, 4}, {9, 5, 16, 16}, {5, 5, 32, 8}, {7, 3, 32, 32},
};
enum { CASES = sizeof cases / sizeof *cases };

/* Factor a with one setting, twice; the second time into what the first one left. */
static void factor_with(const setting *s, tiled *q, const double *a, size_t bytes)
{
    trl_workers *workers = make_workers(s);
    qr_graph g = make_qr_graph(q);
    double *first = app_calloc(1, bytes);
    for (int run = 0; run < 2; ++run) {
        memcpy(q->tiles, a, bytes);
        ck_ok(trl_graph_run(g.graph, workers, NULL));
        if (run == 0) memcpy(first, q->tiles, bytes);
    }
    ck_assert_int_eq(memcmp(first, q->tiles, bytes), 0);
    free(first);
    free_qr_graph(&g);
    trl_workers_destroy(&workers);
}

START_TEST(factors_are_accurate_and_the_same_to_the_bit_with_any_workers)
{
    const qr_case *c = &cases[_i];
    enum { MOST_WORKERS = 4 };
    size_t bytes = (size_t)(c->rows * c->columns * c->size * c->size) * sizeof(double);
    double *a = app_calloc(1, bytes), *serial = app_calloc(1, bytes), factorisation, orthogonality;
    uint64_t random = (uint64_t)_i + 1;
    for (size_t i = 0; i < bytes / sizeof *a; ++i) a[i] = 2.0 * app_uniform(&random) - 1.0;
    for (int s = 0; s < APP_SETTINGS; ++s) {
        tiled q = make_tiled(c->rows, c->columns, c->size, c->inner, MOST_WORKERS);
        factor_with(&app_settings[s], &q, a, bytes);
        if (s == 0) memcpy(serial, q.tiles, bytes);
        ck_assert_int_eq(memcmp(serial, q.tiles, bytes), 0);
        residuals(&q, a, &factorisation, &orthogonality);
        ck_assert_double_lt(factorisation, 10.0);
        ck_assert_double_lt(orthogonality, 10.0);
        free_tiled(&q);
    }
    free(a);
    free(serial);
}
END_TEST

START_TEST(handles_give_as_many_tasks_as_the_algorithm_has)
{
    /* 9 x 9 tiles: Gonnet, Chalk and Schaller 2016 (QuickSched) count 285 tasks. */
    tiled q = make_tiled(9, 9, 1, 1, 1);
    qr_graph g = make_qr_graph(&q);
    trl_graph_stats stats;
    trl_graph_get_stats(g.graph, &stats);
    ck_assert_int_eq(stats.tasks, 285);
    /* With tasks of cost 1 the last row is reached after 9; from then on each step adds a tsmqr there and what follows
     * it. */
    ck_assert_double_eq(stats.tau_inf, 9 + 2 * 8);
    free_qr_graph(&g);
    free_tiled(&q);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_loop_test(tc, factors_are_accurate_and_the_same_to_the_bit_with_any_workers, 0, CASES);
    tcase_add_test(tc, handles_give_as_many_tasks_as_the_algorithm_has);
}

TRL_TEST_MAIN("qr", add_tests)
#endif
