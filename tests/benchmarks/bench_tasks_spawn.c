/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <stdio.h>
#include <stdlib.h>

#include "bench_tasks_impl.h"

enum { TREE_DEPTH = 17, QUICK_DEPTH = 10 };

/* Tasks numbered as in a heap: `number` creates 2*number + 1 and 2*number + 2, or number 0 creates all others. */
typedef struct node {
    struct node *all;
    int32_t number, count;
} node;

static trl_err spawn(const trl_task_args *args, const node *parent, int32_t child, trl_task_fn run)
{
    const trl_spawn_desc desc = {.name = "spawned", .variant = {{run}}, .data = &parent->all[child]};
    return trl_run_spawn(args->run, &desc, NULL);
}

static trl_err grow(void *data, const trl_task_args *args, bool *done)
{
    const node *n = data;
    trl_err err = TRL_OK;
    (void)done;
    for (int32_t child = 2 * n->number + 1; child <= 2 * n->number + 2 && child < n->count; ++child)
        TRL_TRY(spawn(args, n, child, grow));
done:
    return err;
}

static trl_err scatter(void *data, const trl_task_args *args, bool *done)
{
    const node *n = data;
    trl_err err = TRL_OK;
    (void)done;
    for (int32_t child = 1; child < n->count; ++child) TRL_TRY(spawn(args, n, child, trli_tasks_nothing));
done:
    return err;
}

typedef struct tree_of {
    const trli_baseline *baseline;
    int depth;
} tree_of;

static trl_err grow_other(void *data)
{
    const tree_of *tree = data;
    return tree->baseline->tree(tree->depth, trli_tasks_nothing_plain, NULL) == 0 ? TRL_OK : TRL_ERR_BUG;
}

static trl_err build(trli_tasks *tasks, trl_task_fn run, node *root)
{
    const trl_task_desc desc = {.name = "root", .variant = {{run}}, .data = root, .chunks = 1};
    trli_way *way = trli_tasks_add(tasks, "Trellis", 3);
    trl_task task;
    trl_err err = TRL_OK;
    TRL_TRY(trl_graph_create(tasks->bench->ctx, "spawn", &way->graph));
    TRL_TRY(trl_graph_add_task(way->graph, &desc, &task));
    TRL_TRY(trl_graph_freeze(way->graph));
    trl_graph_set_timing(way->graph, false);
    TRL_TRY(trli_tasks_warm(way));
done:
    return err;
}

/* The runs created all tasks, each once. */
static trl_err check(trli_tasks *tasks)
{
    trl_graph_stats stats;
    trl_graph_get_stats(tasks->way[0].graph, &stats);
    if (stats.spawned == stats.runs * (tasks->tasks - 1)) return TRL_OK;
    return trl_fail(tasks->bench->ctx, TRL_ERR_BUG, NULL, "%lld tasks were spawned in %lld runs instead of %d each",
                    (long long)stats.spawned, (long long)stats.runs, tasks->tasks - 1);
}

static trl_err play(trli_tasks *tasks, const char *name, trl_task_fn run, node *nodes)
{
    int depth = tasks->bench->quick ? QUICK_DEPTH : TREE_DEPTH;
    tree_of tree[TRLI_BASELINES_MAX];
    trl_err err = TRL_OK;
    tasks->name = name;
    TRL_TRY(build(tasks, run, nodes));
    for (int b = 0; b < tasks->baselines->count && run == grow; ++b) {
        if (!tasks->baselines->list[b]->tree) continue;
        tree[b] = (tree_of){tasks->baselines->list[b], depth};
        trli_way *way = trli_tasks_add(tasks, tree[b].baseline->name, 1);
        way->loop = grow_other;
        way->data = &tree[b];
    }
    TRL_TRY(trli_tasks_measure(tasks));
    TRL_TRY(check(tasks));
done:
    trli_tasks_clear(tasks);
    return err;
}

trl_err trli_tasks_dynamic(trli_tasks *tasks)
{
    int32_t n = (1 << (tasks->bench->quick ? QUICK_DEPTH : TREE_DEPTH)) - 1;
    node *nodes = calloc((size_t)n, sizeof *nodes);
    trl_err err = TRL_OK;
    if (!nodes) return trl_fail(tasks->bench->ctx, TRL_ERR_MEMORY, NULL, "no memory for the data of tasks");
    for (int32_t i = 0; i < n; ++i) nodes[i] = (node){nodes, i, n};
    tasks->tasks = n;
    TRL_TRY(play(tasks, "spawned by one", scatter, nodes));
    TRL_TRY(play(tasks, "spawned as a tree", grow, nodes));
done:
    free(nodes);
    return err;
}
