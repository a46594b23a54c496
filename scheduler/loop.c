/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <string.h>

#include <trl_loop.h>

/* Graphs of one wide task, run again and again, whose parts share out the chunks of the present run. Each part costs some 20 ns: a
 * short loop has one for each worker, others so many that what else the workers do evens out. */
enum { SHORT, LONG, GRAPHS, LONG_PARTS = 8 /* of a worker */ };

struct trl_loop {
    trl_context *ctx;
    trl_workers *workers;
    trl_graph *graph[GRAPHS];
    trl_loop_fn fn;
    void *data;
    int chunks;
};

static trl_err run_chunks(const trl_loop *loop, int first, int end, int worker)
{
    trl_err err = TRL_OK;
    for (int chunk = first; chunk < end; ++chunk) TRL_TRY(loop->fn(loop->data, chunk, loop->chunks, worker));
done:
    return err;
}

static trl_err run_part(void *data, const trl_task_args *args, bool *done)
{
    const trl_loop *loop = data;
    int64_t chunks = loop->chunks;
    (void)done;
    return run_chunks(loop, (int)(chunks * args->chunk / args->chunks),
                      (int)(chunks * (args->chunk + 1) / args->chunks), args->worker);
}

static trl_err make_graph(trl_loop *loop, int parts, trl_graph **graph)
{
    trl_err err;
    trl_task task;
    TRL_TRY(trl_graph_create(loop->ctx, "loop", graph));
    TRL_TRY(trl_graph_add_task(
        *graph, &(trl_task_desc){.name = "chunks", .run = run_part, .data = loop, .chunks = parts}, &task));
    TRL_TRY(trl_graph_freeze(*graph));
    TRL_TRY(trl_graph_prepare(*graph, loop->workers));
done:
    return err;
}

trl_err trl_loop_create(trl_context *ctx, trl_workers *workers, trl_loop **result)
{
    trl_err err;
    trl_loop *loop = NULL;
    void *memory;
    *result = NULL;
    TRL_TRY(trl_memory_alloc(ctx, sizeof *loop, "a parallel loop", &memory));
    loop = memory;
    *loop = (trl_loop){.ctx = ctx, .workers = workers};
    TRL_TRY(make_graph(loop, trl_workers_count(workers), &loop->graph[SHORT]));
    TRL_TRY(make_graph(loop, LONG_PARTS * trl_workers_count(workers), &loop->graph[LONG]));
    *result = loop;
    loop = NULL;
done:
    trl_loop_destroy(&loop);
    return err;
}

void trl_loop_destroy(trl_loop **loop)
{
    if (*loop == NULL) return;
    trl_context *ctx = (*loop)->ctx;
    void *memory = *loop;
    for (int g = 0; g < GRAPHS; ++g) trl_graph_destroy(&(*loop)->graph[g]);
    trl_memory_free(ctx, &memory);
    *loop = NULL;
}

trl_err trl_loop_run(trl_loop *loop, int chunks, trl_loop_fn fn, void *data)
{
    const trl_loop alone = {.fn = fn, .data = data, .chunks = chunks};
    /* One worker, or one chunk: nobody to share with. */
    if (trl_loop_workers(loop) == 1 || chunks <= 1) return run_chunks(&alone, 0, chunks, 0);
    loop->fn = fn;
    loop->data = data;
    loop->chunks = chunks;
    return trl_graph_run(loop->graph[chunks > trl_loop_workers(loop) ? LONG : SHORT], loop->workers);
}

int trl_loop_workers(const trl_loop *loop)
{
    return loop ? trl_workers_count(loop->workers) : 1;
}
