/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The memory of a program's tasks. */
#include "memory_impl.h"
#include "tasks_impl.h"

trl_err trli_task_chunk_for(trl_context *ctx, struct trli_task_data *d, int n, trli_task_chunk **chunk)
{
    enum { FIRST = 32, MOST = 8192 };
    const int last = d->nchunks > 0 ? d->chunk[d->nchunks - 1].capacity : FIRST / 2;
    int capacity = last < MOST ? 2 * last : MOST;
    if (capacity < n) capacity = n;
    *chunk = d->nchunks > 0 ? &d->chunk[d->nchunks - 1] : NULL;
    if (*chunk && (*chunk)->n + n <= (*chunk)->capacity) return TRL_OK;
    if (!trli_make_room(ctx, &d->chunk, d->nchunks, 1, &d->capacity, sizeof *d->chunk))
        return trli_no_memory(ctx, NULL, "for tasks");
    *chunk = &d->chunk[d->nchunks];
    **chunk = (trli_task_chunk){.task = trli_new(ctx, (size_t)capacity, sizeof *(*chunk)->task), .capacity = capacity};
    if (!(*chunk)->task) return trli_no_memory(ctx, NULL, "for %d tasks", capacity);
    ++d->nchunks;
    return TRL_OK;
}

void trli_tasks_free(trli_program *program)
{
    struct trli_task_data *d = program->run->tasks;
    trl_graph_destroy(&program->run->graph);
    if (!d) return;
    for (int i = 0; i < d->nchunks; ++i) trli_free(d->chunk[i].task);
    trli_free(d->chunk);
    trli_free(d);
    program->run->tasks = NULL;
}
