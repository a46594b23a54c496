// ctest: np=1
/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The program of docs/scheduler.md: heat flows between the cells of a ring. */
#include <stdio.h>

#include <trl_graph.h>

enum { CELLS = 6, CHUNKS = 2, STEPS = 10 };

static double heat[CELLS], flow[CELLS], part[CHUNKS], total;
static int number[CELLS];

/* Between a cell and the next one: changes the flows of both. */
static trl_err exchange(void *data, const trl_task_args *args, bool *done)
{
    int i = *(const int *)data, j = (i + 1) % CELLS;
    double q = (heat[j] - heat[i]) / 4;
    (void)args, (void)done;
    flow[i] += q;
    flow[j] -= q;
    return TRL_OK;
}

static trl_err update(void *data, const trl_task_args *args, bool *done)
{
    int i = *(const int *)data;
    (void)args, (void)done;
    heat[i] += flow[i];
    flow[i] = 0;
    return TRL_OK;
}

/* Called once for each chunk, by several workers at once. */
static trl_err sum(void *data, const trl_task_args *args, bool *done)
{
    int first = CELLS * args->chunk / args->chunks, end = CELLS * (args->chunk + 1) / args->chunks;
    (void)data, (void)done;
    part[args->chunk] = 0;
    for (int i = first; i < end; ++i) part[args->chunk] += heat[i];
    return TRL_OK;
}

static trl_err add_up(void *data, const trl_task_args *args, bool *done)
{
    (void)data, (void)args, (void)done;
    total = part[0] + part[1];
    return TRL_OK;
}

static trl_err build(trl_graph *graph)
{
    trl_err err;
    trl_task sums, ends, exchanges[CELLS], updates[CELLS];
    trl_resource flows[CELLS];
    trl_task_desc desc = {.name = "sum", .variant = {{sum}}, .chunks = CHUNKS, .cost = 4};
    TRL_TRY(trl_graph_add_task(graph, &desc, &sums));
    desc = (trl_task_desc){.name = "add up", .variant = {{add_up}}, .chunks = 1, .cost = 1};
    TRL_TRY(trl_graph_add_task(graph, &desc, &ends));
    TRL_TRY(trl_graph_add_dependency(graph, sums, ends));
    for (int i = 0; i < CELLS; ++i) {
        char name[32];
        number[i] = i;
        snprintf(name, sizeof name, "flow %d", i);
        trl_resource_desc resource = {.name = name, .parent = TRL_NO_PARENT};
        TRL_TRY(trl_graph_add_resource(graph, &resource, &flows[i]));
        desc = (trl_task_desc){.name = "exchange", .variant = {{exchange}}, .data = &number[i], .chunks = 1, .cost = 3};
        TRL_TRY(trl_graph_add_task(graph, &desc, &exchanges[i]));
        desc = (trl_task_desc){.name = "update", .variant = {{update}}, .data = &number[i], .chunks = 1, .cost = 2};
        TRL_TRY(trl_graph_add_task(graph, &desc, &updates[i]));
        TRL_TRY(trl_graph_add_dependency(graph, updates[i], sums));
    }
    for (int i = 0, j = 1; i < CELLS; ++i, j = (i + 1) % CELLS) {
        TRL_TRY(trl_graph_add_lock(graph, exchanges[i], flows[i])); /* not at the same time, in any order */
        TRL_TRY(trl_graph_add_lock(graph, exchanges[i], flows[j]));
        TRL_TRY(trl_graph_add_dependency(graph, exchanges[i], updates[i])); /* first one, then the other */
        TRL_TRY(trl_graph_add_dependency(graph, exchanges[i], updates[j]));
    }
    TRL_TRY(trl_graph_freeze(graph));
done:
    return err;
}

static trl_err solve(trl_context *ctx)
{
    trl_err err;
    trl_graph *graph = NULL;
    trl_workers *workers = NULL;
    TRL_TRY(trl_graph_create(ctx, "ring", &graph));
    TRL_TRY(build(graph));
    TRL_TRY(trl_graph_write_text(graph, stdout));
    TRL_TRY(trl_workers_create(ctx, "priority", &workers));
    heat[0] = 64;
    for (int step = 0; step < STEPS; ++step) TRL_TRY(trl_graph_run(graph, workers, NULL));
    printf("heat %g, of it %g in cell 0\n", total, heat[0]);
done:
    trl_graph_destroy(&graph);
    trl_workers_destroy(&workers);
    return err;
}

static void report(const trl_context *ctx)
{
    const trl_diagnostic *list;
    char text[1000];
    int n = trl_context_diagnostics(ctx, &list);
    for (int i = 0; i < n; ++i) {
        trl_diagnostic_format(&list[i], text, sizeof text);
        fputs(text, stderr);
    }
}

int main(int argc, char **argv)
{
    trl_context *ctx = NULL;
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);
    trl_err err = trl_context_create(MPI_COMM_WORLD, NULL, &ctx);
    if (err == TRL_OK) err = solve(ctx);
    if (ctx) report(ctx);
    trl_context_destroy(&ctx);
    MPI_Finalize();
    return err != TRL_OK || total != 64;
}
