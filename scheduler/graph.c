/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <string.h>

#include "graph_impl.h"

static const char build_memory[] = "task graph";

static trli_handle *handles_of(const trl_graph *graph)
{
    return graph->handles.data;
}

static trli_reader *readers_of(const trl_graph *graph)
{
    return graph->readers.data;
}

const char *trli_graph_task_name(const trl_graph *graph, trl_task task)
{
    const int64_t *at = graph->name_at.data;
    return (const char *)graph->names.data + at[task];
}

/* Append text and its NUL to the names. */
static trl_err add_name(trl_graph *graph, const char *text, int64_t *at)
{
    trl_err err;
    int64_t bytes = (int64_t)strlen(text) + 1;
    TRL_TRY(trli_array_reserve(graph->ctx, &graph->names, bytes, 1, build_memory));
    memcpy((char *)graph->names.data + graph->names.count, text, (size_t)bytes);
    *at = graph->names.count;
    graph->names.count += bytes;
done:
    return err;
}

trl_err trl_graph_create(trl_context *ctx, const char *name, trl_graph **result)
{
    trl_err err;
    void *memory = NULL, *copy = NULL;
    trl_graph *graph;
    size_t bytes = strlen(name) + 1;
    *result = NULL;
    TRL_TRY(trl_memory_alloc(ctx, bytes, build_memory, &copy));
    TRL_TRY(trl_memory_alloc(ctx, sizeof *graph, build_memory, &memory));
    graph = memset(memory, 0, sizeof *graph);
    graph->ctx = ctx;
    graph->name = memcpy(copy, name, bytes);
    copy = NULL;
    *result = graph;
done:
    trl_memory_free(ctx, &copy);
    return err;
}

/* Of pointers to any type: what they point to is set free by its address, not through the pointer's type. */
static void release(trl_context *ctx, void *memory)
{
    trl_memory_free(ctx, &memory);
}

void trl_graph_destroy(trl_graph **result)
{
    trl_graph *graph = *result;
    if (graph == NULL) return;
    trl_context *ctx = graph->ctx;
    for (int i = 0; i < TRLI_POLICIES; ++i) trli_policy_get((trli_policy_index)i)->invalidate(graph, &graph->state[i]);
    trli_array *arrays[] = {&graph->records, &graph->costs,   &graph->name_at, &graph->names,
                            &graph->edges,   &graph->handles, &graph->readers};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; ++i) trli_array_free(ctx, arrays[i]);
    release(ctx, graph->successors);
    release(ctx, graph->predecessors);
    release(ctx, graph->order);
    release(ctx, graph->path);
    release(ctx, (void *)graph->task_ns);
    release(ctx, graph->name);
    release(ctx, graph);
    *result = NULL;
}

static trl_err check_open(trl_graph *graph)
{
    if (!graph->sealed) return TRL_OK;
    return trl_fail(graph->ctx, TRL_ERR_USAGE, NULL, "graph '%s' is frozen: nothing can be added to it", graph->name);
}

static trl_err check_task(trl_graph *graph, trl_task task)
{
    if (task >= 0 && task < graph->task_count) return TRL_OK;
    return trl_fail(graph->ctx, TRL_ERR_USAGE, NULL, "graph '%s' has no task %d; it has %d", graph->name, task,
                    graph->task_count);
}

static trl_err check_handle(trl_graph *graph, trl_handle handle)
{
    if (handle >= 0 && handle < graph->handles.count) return TRL_OK;
    return trl_fail(graph->ctx, TRL_ERR_USAGE, NULL, "graph '%s' has no data handle %d; it has %d", graph->name, handle,
                    (int)graph->handles.count);
}

static trl_err check_desc(trl_graph *graph, const trl_task_desc *desc)
{
    unsigned known = TRL_TASK_POLL | TRL_TASK_ALWAYS;
    const char *fault = NULL;
    if (!desc->name || !desc->run)
        fault = "it needs a name and a function";
    else if (desc->chunks < 1)
        fault = "it needs at least 1 chunk";
    else if (desc->flags & ~known)
        fault = "it has unknown flags";
    else if ((desc->flags & TRL_TASK_POLL) && desc->chunks > 1)
        fault = "a poll task has 1 chunk";
    else if (!(desc->cost >= 0.0))
        fault = "its cost is negative or not a number";
    if (!fault) return TRL_OK;
    return trl_fail(graph->ctx, TRL_ERR_USAGE, NULL, "task '%s' of graph '%s' is refused: %s",
                    desc->name ? desc->name : "", graph->name, fault);
}

trl_err trl_graph_add_task(trl_graph *graph, const trl_task_desc *desc, trl_task *task)
{
    trl_err err;
    int64_t name;
    int32_t index = graph->task_count;
    TRL_TRY(check_open(graph));
    TRL_TRY(check_desc(graph, desc));
    TRL_TRY(trli_array_reserve(graph->ctx, &graph->records, 1, sizeof(trli_task_record), build_memory));
    TRL_TRY(trli_array_reserve(graph->ctx, &graph->costs, 1, sizeof(double), build_memory));
    TRL_TRY(trli_array_reserve(graph->ctx, &graph->name_at, 1, sizeof(int64_t), build_memory));
    TRL_TRY(add_name(graph, desc->name, &name));
    trli_graph_records(graph)[index] =
        (trli_task_record){.run = desc->run, .data = desc->data, .chunks = desc->chunks, .flags = (uint8_t)desc->flags};
    ((double *)graph->costs.data)[index] = desc->cost;
    ((int64_t *)graph->name_at.data)[index] = name;
    graph->records.count = graph->costs.count = graph->name_at.count = ++graph->task_count;
    if (desc->flags & TRL_TASK_POLL) ++graph->polls;
    *task = index;
done:
    return err;
}

static trl_err add_edge(trl_graph *graph, trl_task before, trl_task after)
{
    trl_err err;
    TRL_TRY(trli_array_reserve(graph->ctx, &graph->edges, 1, sizeof(trli_edge), build_memory));
    ((trli_edge *)graph->edges.data)[graph->edges.count++] = (trli_edge){before, after};
done:
    return err;
}

trl_err trl_graph_add_dependency(trl_graph *graph, trl_task before, trl_task after)
{
    trl_err err;
    TRL_TRY(check_open(graph));
    TRL_TRY(check_task(graph, before));
    TRL_TRY(check_task(graph, after));
    TRL_TRY(add_edge(graph, before, after));
done:
    return err;
}

trl_err trl_graph_add_handle(trl_graph *graph, const char *name, trl_handle *handle)
{
    trl_err err;
    int64_t at;
    TRL_TRY(check_open(graph));
    TRL_TRY(trli_array_reserve(graph->ctx, &graph->handles, 1, sizeof(trli_handle), build_memory));
    TRL_TRY(add_name(graph, name, &at));
    *handle = (trl_handle)graph->handles.count++;
    handles_of(graph)[*handle] = (trli_handle){.name = at, .writer = -1, .readers = -1};
done:
    return err;
}

static trl_err add_read(trl_graph *graph, trl_task task, trli_handle *handle)
{
    trl_err err = TRL_OK;
    if (handle->writer == task) return TRL_OK;
    if (handle->writer >= 0) TRL_TRY(add_edge(graph, handle->writer, task));
    TRL_TRY(trli_array_reserve(graph->ctx, &graph->readers, 1, sizeof(trli_reader), build_memory));
    readers_of(graph)[graph->readers.count] = (trli_reader){.task = task, .next = handle->readers};
    handle->readers = (int32_t)graph->readers.count++;
done:
    return err;
}

/* Readers since the last writer follow it already, so where there are some the writer itself needs no edge. */
static trl_err add_write(trl_graph *graph, trl_task task, trli_handle *handle)
{
    trl_err err = TRL_OK;
    bool follows = handle->writer < 0 || handle->writer == task;
    for (int32_t i = handle->readers; i >= 0; i = readers_of(graph)[i].next) {
        trl_task reader = readers_of(graph)[i].task;
        if (reader == task) continue;
        TRL_TRY(add_edge(graph, reader, task));
        follows = true;
    }
    if (!follows) TRL_TRY(add_edge(graph, handle->writer, task));
    handle->writer = task;
    handle->readers = -1;
done:
    return err;
}

trl_err trl_graph_add_access(trl_graph *graph, trl_task task, trl_handle handle, trl_access access)
{
    trl_err err;
    trli_handle *h;
    TRL_TRY(check_open(graph));
    TRL_TRY(check_task(graph, task));
    TRL_TRY(check_handle(graph, handle));
    h = &handles_of(graph)[handle];
    TRL_TRY(access == TRL_READ ? add_read(graph, task, h) : add_write(graph, task, h));
done:
    return err;
}

static trl_err alloc_results(trl_graph *graph)
{
    trl_err err;
    size_t n = (size_t)graph->task_count;
    void *memory;
    TRL_TRY(trl_memory_alloc(graph->ctx, n * sizeof *graph->path, build_memory, &memory));
    graph->path = memory;
    TRL_TRY(trl_memory_alloc(graph->ctx, n * sizeof *graph->task_ns, build_memory, &memory));
    graph->task_ns = memory;
    for (size_t i = 0; i < n; ++i) atomic_init(&graph->task_ns[i], 0);
done:
    return err;
}

trl_err trl_graph_freeze(trl_graph *graph)
{
    trl_err err;
    TRL_TRY(check_open(graph));
    graph->sealed = true;
    TRL_TRY(trli_graph_flatten(graph));
    trli_array_free(graph->ctx, &graph->edges);
    trli_array_free(graph->ctx, &graph->handles);
    trli_array_free(graph->ctx, &graph->readers);
    TRL_TRY(alloc_results(graph));
    for (int i = 0; i < TRLI_POLICIES; ++i) {
        TRL_TRY(trli_policy_get((trli_policy_index)i)->setup(graph, &graph->state[i]));
    }
    graph->frozen = true;
done:
    return err;
}
