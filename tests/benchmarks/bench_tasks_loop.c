/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* What it costs to begin and end a loop: one short chunk for each worker. */
#include <stdlib.h>
#include <string.h>

#include <trl_loop.h>

#include "bench_tasks_impl.h"

enum { LOOPS = 20000, QUICK_LOOPS = 100 };

static const double chunk_seconds =
    2e-7; /* as long as it takes the last worker to begin: nobody takes another one's chunk */

typedef struct slot {
    _Alignas(64) double value;
} slot;

typedef struct loops {
    trl_context *ctx;
    trl_loop *loop;
    slot *of_worker;
    int threads, count;
    int64_t length; /* of a chunk */
} loops;

static void meet(trli_team *team, int member, void *data)
{
    const loops *l = data;
    for (int i = 0; i < l->count; ++i) {
        l->of_worker[member].value = trli_busy(l->length, 0.5);
        trli_team_barrier(team);
    }
}

static trl_err run_team(void *data)
{
    const loops *l = data;
    return trli_team_run(l->ctx, l->threads, meet, data);
}

static trl_err run_chunk(void *data, int chunk, int chunks, int worker)
{
    const loops *l = data;
    (void)chunk, (void)chunks;
    l->of_worker[worker].value = trli_busy(l->length, 0.5);
    return TRL_OK;
}

static trl_err run_loops(void *data)
{
    const loops *l = data;
    trl_err err = TRL_OK;
    for (int i = 0; i < l->count && err == TRL_OK; ++i) err = trl_loop_run(l->loop, l->threads, run_chunk, data);
    return err;
}

static void add(trli_tasks *tasks, const char *name, trl_err (*run)(void *data), loops *l)
{
    trli_way *way = trli_tasks_add(tasks, name, 1);
    way->loop = run;
    way->data = l;
}

trl_err trli_tasks_loops(trli_tasks *tasks)
{
    const bool quick = tasks->bench->quick;
    loops l = {.ctx = tasks->bench->ctx, .threads = tasks->threads, .count = quick ? QUICK_LOOPS : LOOPS};
    trl_err err = TRL_OK;
    l.length = (int64_t)(chunk_seconds * trli_busy_rate(quick)) + 1;
    l.of_worker = aligned_alloc(64, (size_t)l.threads * sizeof *l.of_worker);
    if (!l.of_worker) TRL_TRY(trl_fail(l.ctx, TRL_ERR_MEMORY, NULL, "no memory for what loops compute"));
    TRL_TRY(trl_loop_create(l.ctx, tasks->workers, &l.loop));
    tasks->name = "loop of 0.2 us each";
    tasks->tasks = l.count;
    add(tasks, "threads at a barrier", run_team, &l);
    add(tasks, "Trellis", run_loops, &l);
    TRL_TRY(trli_tasks_measure(tasks));
done:
    trl_loop_destroy(&l.loop);
    free(l.of_worker);
    return err;
}
