/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <stdlib.h>
#include <string.h>

#include "bench_dag_impl.h"

enum { PREDECESSORS_MAX = 5, LOCKS_MAX = 2 };

int32_t trli_draw(uint64_t *sequence, int32_t n)
{
    /* The finaliser of splitmix64 (Steele, Lea, Flood 2014) on a Weyl sequence. */
    uint64_t z = *sequence += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (int32_t)(((z ^ (z >> 31)) >> 33) % (uint64_t)n);
}

static trl_err allocate(trl_context *ctx, int64_t n, size_t size, void *array)
{
    void *memory = calloc((size_t)n + 1, size); /* an index of n parts has n + 1 ends */
    memcpy(array, &memory, sizeof memory);
    return memory ? TRL_OK : trl_fail(ctx, TRL_ERR_MEMORY, NULL, "no memory for a benchmark's graph");
}

/* Room for n tasks with at most `most` dependencies. */
static trl_err begin(trl_context *ctx, int32_t n, int64_t most, trli_dag *dag)
{
    trl_err err = TRL_OK;
    *dag = (trli_dag){.tasks = n};
    TRL_TRY(allocate(ctx, n, sizeof *dag->pred_first, &dag->pred_first));
    TRL_TRY(allocate(ctx, most, sizeof *dag->predecessors, &dag->predecessors));
    TRL_TRY(allocate(ctx, n, sizeof *dag->names, &dag->names));
done:
    return err;
}

static void add(trli_dag *dag, int32_t predecessor)
{
    dag->predecessors[dag->dependencies++] = predecessor;
}

/* Turn the edges round. */
static trl_err finish(trl_context *ctx, trli_dag *dag)
{
    trl_err err = TRL_OK;
    TRL_TRY(allocate(ctx, dag->tasks + 1, sizeof *dag->first, &dag->first));
    TRL_TRY(allocate(ctx, dag->dependencies, sizeof *dag->successors, &dag->successors));
    for (int32_t d = 0; d < dag->dependencies; ++d) ++dag->first[dag->predecessors[d] + 2];
    for (int32_t t = 2; t <= dag->tasks; ++t) dag->first[t] += dag->first[t - 1];
    for (int32_t t = 0; t < dag->tasks; ++t) /* first[p + 1] runs from the begin of p's part to its end */
        for (int32_t d = dag->pred_first[t]; d < dag->pred_first[t + 1]; ++d)
            dag->successors[dag->first[dag->predecessors[d] + 1]++] = t;
done:
    return err;
}

trl_err trli_dag_independent(trl_context *ctx, int32_t n, trli_dag *dag)
{
    trl_err err = begin(ctx, n, 0, dag);
    return err == TRL_OK ? finish(ctx, dag) : err;
}

trl_err trli_dag_chain(trl_context *ctx, int32_t n, trli_dag *dag)
{
    trl_err err = TRL_OK;
    TRL_TRY(begin(ctx, n, n, dag));
    for (int32_t t = 0; t < n; ++t) {
        if (t > 0) add(dag, t - 1);
        dag->pred_first[t + 1] = dag->dependencies;
    }
    TRL_TRY(finish(ctx, dag));
done:
    return err;
}

trl_err trli_dag_wavefront(trl_context *ctx, int32_t n, trli_dag *dag)
{
    trl_err err = TRL_OK;
    TRL_TRY(begin(ctx, n * n, 2 * (int64_t)n * n, dag));
    for (int32_t t = 0; t < n * n; ++t) {
        if (t % n > 0) add(dag, t - 1);
        if (t >= n) add(dag, t - n);
        dag->pred_first[t + 1] = dag->dependencies;
    }
    TRL_TRY(finish(ctx, dag));
done:
    return err;
}

static bool holds(const int32_t *list, int32_t n, int32_t value)
{
    for (int32_t i = 0; i < n; ++i)
        if (list[i] == value) return true;
    return false;
}

trl_err trli_dag_random(trl_context *ctx, int32_t n, int32_t window, trli_dag *dag)
{
    uint64_t sequence = 1;
    trl_err err = TRL_OK;
    TRL_TRY(begin(ctx, n, PREDECESSORS_MAX * (int64_t)n, dag));
    for (int32_t t = 0; t < n; ++t) {
        int32_t begin_of = dag->pred_first[t], wanted = 1 + trli_draw(&sequence, PREDECESSORS_MAX);
        for (int32_t i = 0; i < wanted && t > 0; ++i) {
            int32_t predecessor = t - 1 - trli_draw(&sequence, t < window ? t : window);
            if (!holds(dag->predecessors + begin_of, dag->dependencies - begin_of, predecessor)) add(dag, predecessor);
        }
        dag->pred_first[t + 1] = dag->dependencies;
    }
    TRL_TRY(finish(ctx, dag));
done:
    return err;
}

trl_err trli_dag_stencil(trl_context *ctx, int32_t width, int32_t steps, trli_dag *dag)
{
    trl_err err = TRL_OK;
    TRL_TRY(begin(ctx, width * steps, 3 * (int64_t)width * steps, dag));
    for (int32_t t = 0; t < width * steps; ++t) {
        for (int32_t x = t % width - 1; t >= width && x <= t % width + 1; ++x)
            if (x >= 0 && x < width) add(dag, (t / width - 1) * width + x);
        dag->pred_first[t + 1] = dag->dependencies;
    }
    TRL_TRY(finish(ctx, dag));
done:
    return err;
}

trl_err trli_dag_add_locks(trl_context *ctx, int32_t roots, int32_t children, trli_dag *dag)
{
    uint64_t sequence = 2;
    int32_t leaves = roots * children, used = 0;
    trl_err err = TRL_OK;
    dag->resources = roots + leaves;
    TRL_TRY(allocate(ctx, dag->resources, sizeof *dag->parent, &dag->parent));
    TRL_TRY(allocate(ctx, dag->resources, sizeof *dag->resource_names, &dag->resource_names));
    TRL_TRY(allocate(ctx, dag->tasks, sizeof *dag->lock_first, &dag->lock_first));
    TRL_TRY(allocate(ctx, LOCKS_MAX * (int64_t)dag->tasks, sizeof *dag->locks, &dag->locks));
    for (int32_t r = 0; r < dag->resources; ++r) dag->parent[r] = r < roots ? -1 : (r - roots) / children;
    for (int32_t t = 0; t < dag->tasks; ++t) {
        int32_t wanted = 1 + trli_draw(&sequence, LOCKS_MAX);
        for (int32_t i = 0; i < wanted; ++i) {
            bool root = trli_draw(&sequence, 16) == 0;
            int32_t r = root || leaves == 0 ? trli_draw(&sequence, roots) : roots + trli_draw(&sequence, leaves);
            if (!holds(dag->locks + dag->lock_first[t], used - dag->lock_first[t], r)) dag->locks[used++] = r;
        }
        dag->lock_first[t + 1] = used;
    }
done:
    return err;
}

/* Who locked a resource, and what is below it, last: what a later lock of either must wait for. In a forest of depth 2
 * a lock of a root follows one of each of its children, and a lock of a child one of itself and of its root. */
typedef struct last_locks {
    int32_t *of; /* [resources] or -1 */
    int32_t roots, children;
} last_locks;

static void wait_for(trli_dag *dag, int32_t task, int32_t before)
{
    int32_t begin_of = dag->pred_first[task];
    if (before < 0 || before == task) return;
    if (!holds(dag->predecessors + begin_of, dag->dependencies - begin_of, before)) add(dag, before);
}

static void order_one(trli_dag *dag, last_locks *last, int32_t task, int32_t r, const int32_t *parent)
{
    wait_for(dag, task, last->of[r]);
    if (parent[r] >= 0) wait_for(dag, task, last->of[parent[r]]);
    for (int32_t c = 0; parent[r] < 0 && c < last->children; ++c)
        wait_for(dag, task, last->of[last->roots + r * last->children + c]);
}

trl_err trli_dag_order_conflicts(trl_context *ctx, const trli_dag *dag, trli_dag *ordered)
{
    last_locks last = {0};
    trl_err err = TRL_OK;
    for (int32_t r = 0; r < dag->resources; ++r) last.roots += dag->parent[r] < 0;
    last.children = last.roots ? dag->resources / last.roots - 1 : 0;
    int64_t most = dag->dependencies + (int64_t)dag->tasks * LOCKS_MAX * (2 + last.children);
    TRL_TRY(begin(ctx, dag->tasks, most, ordered));
    TRL_TRY(allocate(ctx, dag->resources, sizeof *last.of, &last.of));
    memset(last.of, -1, (size_t)dag->resources * sizeof *last.of);
    for (int32_t t = 0; t < dag->tasks; ++t) {
        for (int32_t d = dag->pred_first[t]; d < dag->pred_first[t + 1]; ++d) add(ordered, dag->predecessors[d]);
        for (int32_t l = dag->lock_first[t]; l < dag->lock_first[t + 1]; ++l)
            order_one(ordered, &last, t, dag->locks[l], dag->parent);
        for (int32_t l = dag->lock_first[t]; l < dag->lock_first[t + 1]; ++l) last.of[dag->locks[l]] = t;
        ordered->pred_first[t + 1] = ordered->dependencies;
    }
    TRL_TRY(finish(ctx, ordered));
done:
    free(last.of);
    return err;
}

void trli_dag_destroy(trli_dag *dag)
{
    free(dag->pred_first);
    free(dag->predecessors);
    free(dag->first);
    free(dag->successors);
    free(dag->parent);
    free(dag->lock_first);
    free(dag->locks);
    free(dag->names);
    free(dag->resource_names);
    *dag = (trli_dag){0};
}

static trl_err add_locks(const trli_dag *dag, trl_graph *graph)
{
    trl_err err = TRL_OK;
    for (int32_t r = 0; r < dag->resources; ++r) {
        trl_resource parent = dag->parent[r] < 0 ? TRL_NO_PARENT : dag->resource_names[dag->parent[r]];
        const trl_resource_desc desc = {.name = "resource", .parent = parent};
        TRL_TRY(trl_graph_add_resource(graph, &desc, &dag->resource_names[r]));
    }
    for (int32_t t = 0; t < dag->tasks && dag->lock_first; ++t)
        for (int32_t l = dag->lock_first[t]; l < dag->lock_first[t + 1]; ++l)
            TRL_TRY(trl_graph_add_lock(graph, dag->names[t], dag->resource_names[dag->locks[l]]));
done:
    return err;
}

trl_err trli_dag_build(trl_context *ctx, const trli_dag *dag, trl_task_fn run, void *data, size_t stride,
                       trl_graph **graph)
{
    trl_task_desc desc = {.name = "task", .variant = {{run}}, .chunks = 1};
    trl_err err = TRL_OK;
    TRL_TRY(trl_graph_create(ctx, "benchmark", graph));
    TRL_TRY(trl_graph_reserve(*graph, dag->tasks, dag->dependencies));
    for (int32_t t = 0; t < dag->tasks; ++t) {
        desc.data = data ? (char *)data + (size_t)t * stride : NULL;
        TRL_TRY(trl_graph_add_task(*graph, &desc, &dag->names[t]));
        for (int32_t d = dag->pred_first[t]; d < dag->pred_first[t + 1]; ++d)
            TRL_TRY(trl_graph_add_dependency(*graph, dag->names[dag->predecessors[d]], dag->names[t]));
    }
    TRL_TRY(add_locks(dag, *graph));
    TRL_TRY(trl_graph_freeze(*graph));
    trl_graph_set_timing(*graph, false);
done:
    return err;
}
