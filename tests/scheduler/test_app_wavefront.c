// ctest: np=1
/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Shapes of graphs with exact results: the wavefront of a longest common subsequence, diamonds, fork and join, chains
 * of wide tasks. */
#include "trl_test.h"

#include "app_support.h"

/* ---- wavefront ---- */

enum { ROWS = 611, COLUMNS = 503, BLOCK = 37 };

/* length[i][j]: of the longest common subsequence of the first i and the first j letters; row and column 0 are zero. */
typedef struct lcs {
    char down[ROWS], across[COLUMNS];
    int length[ROWS + 1][COLUMNS + 1];
} lcs;

typedef struct lcs_block {
    lcs *of;
    int row, column; /* of its first letter */
} lcs_block;

static void fill_lcs(lcs *l, int row, int end_row, int column, int end_column)
{
    for (int i = row; i < end_row; ++i) {
        for (int j = column; j < end_column; ++j) {
            int above = l->length[i][j + 1], left = l->length[i + 1][j];
            if (l->down[i] == l->across[j]) {
                l->length[i + 1][j + 1] = l->length[i][j] + 1;
            } else {
                l->length[i + 1][j + 1] = above > left ? above : left;
            }
        }
    }
}

static trl_err run_lcs_block(void *data, const trl_task_args *args, bool *done)
{
    lcs_block *b = data;
    int end_row = b->row + BLOCK < ROWS ? b->row + BLOCK : ROWS;
    int end_column = b->column + BLOCK < COLUMNS ? b->column + BLOCK : COLUMNS;
    (void)args;
    (void)done;
    fill_lcs(b->of, b->row, end_row, b->column, end_column);
    return TRL_OK;
}

enum { BLOCK_ROWS = (ROWS + BLOCK - 1) / BLOCK, BLOCK_COLUMNS = (COLUMNS + BLOCK - 1) / BLOCK };

static void add_lcs_blocks(trl_graph *graph, lcs *l, lcs_block blocks[BLOCK_ROWS][BLOCK_COLUMNS])
{
    trl_task above[BLOCK_COLUMNS], left = 0;
    for (int i = 0; i < BLOCK_ROWS; ++i) {
        for (int j = 0; j < BLOCK_COLUMNS; ++j) {
            blocks[i][j] = (lcs_block){.of = l, .row = i * BLOCK, .column = j * BLOCK};
            trl_task task = app_task(graph, "block", run_lcs_block, &blocks[i][j], 0);
            if (i) app_must(trl_graph_add_dependency(graph, above[j], task));
            if (j) app_must(trl_graph_add_dependency(graph, left, task));
            above[j] = left = task;
        }
    }
}

START_TEST(a_wavefront_of_blocks_finds_the_longest_common_subsequence)
{
    trl_workers *workers = make_workers(&app_settings[_i]);
    trl_graph *graph = app_graph("lcs");
    lcs *serial = app_calloc(1, sizeof *serial), *blocked = app_calloc(1, sizeof *blocked);
    lcs_block blocks[BLOCK_ROWS][BLOCK_COLUMNS];
    trl_graph_stats stats;
    add_lcs_blocks(graph, blocked, blocks);
    ck_ok(trl_graph_freeze(graph));
    trl_graph_get_stats(graph, &stats);
    ck_assert_int_eq(stats.tasks, (int64_t)BLOCK_ROWS * BLOCK_COLUMNS);
    ck_assert_int_eq(stats.dependencies, (BLOCK_ROWS - 1) * BLOCK_COLUMNS + BLOCK_ROWS * (BLOCK_COLUMNS - 1));
    for (uint64_t seed = 1; seed <= 5; ++seed) {
        uint64_t random = seed;
        memset(serial, 0, sizeof *serial);
        for (int i = 0; i < ROWS; ++i) serial->down[i] = (char)('a' + app_below(&random, 4));
        for (int j = 0; j < COLUMNS; ++j) serial->across[j] = (char)('a' + app_below(&random, 4));
        memcpy(blocked, serial, sizeof *serial);
        fill_lcs(serial, 0, ROWS, 0, COLUMNS);
        ck_ok(trl_graph_run(graph, workers, NULL));
        ck_assert_int_gt(serial->length[ROWS][COLUMNS], COLUMNS / 2);
        ck_assert_int_eq(memcmp(serial, blocked, sizeof *serial), 0);
    }
    trl_graph_destroy(&graph);
    trl_workers_destroy(&workers);
    free(serial);
    free(blocked);
}
END_TEST

/* ---- diamond ---- */

enum { WIDTH = 24, DIAMOND = 2 * WIDTH - 1 };

/* Rows of 1, 2, .. WIDTH, .. 2, 1 values, each the sum of its neighbours in the row above. */
typedef struct diamond_node {
    const struct diamond_node *above[2];
    uint64_t value;
} diamond_node;

static trl_err run_diamond_node(void *data, const trl_task_args *args, bool *done)
{
    diamond_node *n = data;
    (void)args;
    (void)done;
    n->value = n->above[0] || n->above[1] ? 0 : 1;
    for (int i = 0; i < 2; ++i) n->value += n->above[i] ? n->above[i]->value : 0;
    return TRL_OK;
}

static int diamond_width(int row)
{
    return row < WIDTH ? row + 1 : DIAMOND - row;
}

static void add_diamond(trl_graph *graph, diamond_node nodes[DIAMOND][WIDTH])
{
    trl_task tasks[DIAMOND][WIDTH];
    for (int i = 0; i < DIAMOND; ++i) {
        for (int j = 0; j < diamond_width(i); ++j) {
            int first = i < WIDTH ? j - 1 : j; /* of the two neighbours above */
            tasks[i][j] = app_task(graph, "node", run_diamond_node, &nodes[i][j], 0);
            nodes[i][j] = (diamond_node){.value = 0};
            for (int k = 0; k < 2; ++k) {
                if (i == 0 || first + k < 0 || first + k >= diamond_width(i - 1)) continue;
                nodes[i][j].above[k] = &nodes[i - 1][first + k];
                ck_ok(trl_graph_add_dependency(graph, tasks[i - 1][first + k], tasks[i][j]));
            }
        }
    }
}

START_TEST(a_diamond_counts_its_paths)
{
    trl_workers *workers = make_workers(&app_settings[_i]);
    trl_graph *graph = app_graph("diamond");
    diamond_node nodes[DIAMOND][WIDTH];
    uint64_t paths = 1; /* binomial(2 (WIDTH - 1), WIDTH - 1) */
    for (uint64_t k = 1; k < WIDTH; ++k) paths = paths * (WIDTH - 1 + k) / k;
    add_diamond(graph, nodes);
    ck_ok(trl_graph_freeze(graph));
    for (int run = 0; run < 10; ++run) {
        for (int i = 0; i < DIAMOND; ++i) {
            for (int j = 0; j < WIDTH; ++j) nodes[i][j].value = 0;
        }
        ck_ok(trl_graph_run(graph, workers, NULL));
        ck_assert_uint_eq(nodes[DIAMOND - 1][0].value, paths);
    }
    trl_graph_destroy(&graph);
    trl_workers_destroy(&workers);
}
END_TEST

/* ---- fork and join ---- */

enum { ROUNDS = 20, BRANCHES = 31 };

/* fork: value + 1 to each branch; branch k: times k; join: their sum. */
typedef struct fork_round {
    uint64_t in, branch[BRANCHES];
    const uint64_t *before;
} fork_round;

typedef struct branch {
    fork_round *of;
    int index;
} branch;

static trl_err run_fork(void *data, const trl_task_args *args, bool *done)
{
    fork_round *r = data;
    (void)args;
    (void)done;
    r->in = 1;
    for (int k = 0; r->before && k < BRANCHES; ++k) r->in += r->before[k];
    return TRL_OK;
}

static trl_err run_branch(void *data, const trl_task_args *args, bool *done)
{
    branch *b = data;
    (void)args;
    (void)done;
    b->of->branch[b->index] = b->of->in * (uint64_t)b->index;
    return TRL_OK;
}

START_TEST(forks_and_joins_follow_each_other)
{
    trl_workers *workers = make_workers(&app_settings[_i]);
    trl_graph *graph = app_graph("fork and join");
    fork_round rounds[ROUNDS + 1];
    branch branches[ROUNDS][BRANCHES];
    trl_task forks[ROUNDS + 1];
    uint64_t expected = 1;
    for (int i = 0; i <= ROUNDS; ++i) {
        rounds[i] = (fork_round){.before = i ? rounds[i - 1].branch : NULL};
        forks[i] = app_task(graph, "fork", run_fork, &rounds[i], 0);
        for (int k = 0; i && k < BRANCHES; ++k) {
            branches[i - 1][k] = (branch){.of = &rounds[i - 1], .index = k};
            trl_task task = app_task(graph, "branch", run_branch, &branches[i - 1][k], 1);
            ck_ok(trl_graph_add_dependency(graph, forks[i - 1], task));
            ck_ok(trl_graph_add_dependency(graph, task, forks[i]));
        }
        if (i) expected = 1 + expected * (BRANCHES * (BRANCHES - 1) / 2); /* modulo 2^64, as in the tasks */
    }
    ck_ok(trl_graph_freeze(graph));
    for (int run = 0; run < 10; ++run) {
        for (int i = 0; i <= ROUNDS; ++i) {
            rounds[i].in = 0;
            memset(rounds[i].branch, 0, sizeof rounds[i].branch);
        }
        ck_ok(trl_graph_run(graph, workers, NULL));
        ck_assert_uint_eq(rounds[ROUNDS].in, expected);
    }
    trl_graph_destroy(&graph);
    trl_workers_destroy(&workers);
}
END_TEST

/* ---- a chain of wide tasks ---- */

enum { VALUES = 1000, CHUNKS = 13, STEPS = 40 };

/* Each value becomes the sum of three neighbours, over the ends: chunks read what others wrote a step before. */
typedef struct chain {
    uint64_t values[2][VALUES];
} chain;

typedef struct chain_step {
    chain *of;
    int from; /* values[from] -> values[!from] */
} chain_step;

static void add_neighbours(chain *c, int from, int begin, int end)
{
    const uint64_t *old = c->values[from];
    for (int i = begin; i < end; ++i)
        c->values[!from][i] = old[(i + VALUES - 1) % VALUES] + old[i] + old[(i + 1) % VALUES];
}

static trl_err run_chain_step(void *data, const trl_task_args *args, bool *done)
{
    chain_step *s = data;
    (void)done;
    add_neighbours(s->of, s->from, VALUES * args->chunk / args->chunks, VALUES * (args->chunk + 1) / args->chunks);
    return TRL_OK;
}

START_TEST(chunks_of_a_chain_of_wide_tasks_add_exactly)
{
    trl_workers *workers = make_workers(&app_settings[_i]);
    trl_graph *graph = app_graph("chain");
    chain serial, wide;
    chain_step steps[STEPS];
    trl_task before = 0;
    for (int i = 0; i < STEPS; ++i) {
        trl_task task;
        steps[i] = (chain_step){.of = &wide, .from = i % 2};
        ck_ok(trl_graph_add_task(
            graph,
            &(trl_task_desc){
                .name = "step", .variant = {{run_chain_step}}, .data = &steps[i], .chunks = 1 + i % CHUNKS},
            &task));
        if (i) ck_ok(trl_graph_add_dependency(graph, before, task));
        before = task;
    }
    ck_ok(trl_graph_freeze(graph));
    for (int run = 0; run < 10; ++run) {
        for (int i = 0; i < VALUES; ++i) serial.values[0][i] = (uint64_t)i * i + run;
        memset(serial.values[1], 0, sizeof serial.values[1]);
        wide = serial;
        for (int i = 0; i < STEPS; ++i) add_neighbours(&serial, i % 2, 0, VALUES);
        ck_ok(trl_graph_run(graph, workers, NULL));
        ck_assert_int_eq(memcmp(&serial, &wide, sizeof serial), 0);
    }
    trl_graph_destroy(&graph);
    trl_workers_destroy(&workers);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_loop_test(tc, a_wavefront_of_blocks_finds_the_longest_common_subsequence, 0, APP_SETTINGS);
    tcase_add_loop_test(tc, a_diamond_counts_its_paths, 0, APP_SETTINGS);
    tcase_add_loop_test(tc, forks_and_joins_follow_each_other, 0, APP_SETTINGS);
    tcase_add_loop_test(tc, chunks_of_a_chain_of_wide_tasks_add_exactly, 0, APP_SETTINGS);
}

TRL_TEST_MAIN("wavefront", add_tests)
