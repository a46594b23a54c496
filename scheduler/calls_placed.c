/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Calls in graphs whose tasks are placed. Placement is decided for whole runs, and a body goes round within one, so a
 * call is one task for it: workers do the body, on data that is on the host from before the first round until after the
 * last one. What that data is, the accesses of the call say. */
#include <stdlib.h>
#include <string.h>

#include "calls_impl.h"
#include "memory_impl.h"

/* ---- accesses ---- */

/* Data that a call, or its body, touches. */
typedef struct touch {
    int64_t key;
    int32_t handle;
    bool reads, writes;
} touch;

static int compare_keys(const void *x, const void *y)
{
    const touch *a = x, *b = y;
    return (a->key > b->key) - (a->key < b->key);
}

/* Accesses of tasks first <= t < end to data that may be copied, by key, each key once; returns how many. */
static int32_t gather(const trl_graph *graph, int32_t first, int32_t end, touch *touches)
{
    const trl_policy_handle *handle = graph->handles.data;
    int32_t n = 0, kept = 0;
    for (int32_t a = graph->access_first[first]; a < graph->access_first[end]; ++a) {
        const trl_policy_access *access = &graph->access[a];
        if (handle[access->handle].bytes > 0)
            touches[n++] = (touch){.key = handle[access->handle].key,
                                   .handle = access->handle,
                                   .reads = access->mode != TRL_WRITE,
                                   .writes = access->mode != TRL_READ};
    }
    qsort(touches, (size_t)n, sizeof *touches, compare_keys);
    for (int32_t i = 0; i < n; ++i) {
        if (kept > 0 && touches[kept - 1].key == touches[i].key) {
            touches[kept - 1].reads |= touches[i].reads;
            touches[kept - 1].writes |= touches[i].writes;
        } else {
            touches[kept++] = touches[i];
        }
    }
    return kept;
}

/* Data that is read and not written in a body was there before. */
static bool covers(const touch *call, const touch *body)
{
    return call && (call->writes || !body->writes) && (call->reads || body->writes);
}

static trl_err find_bare(const trl_graph *graph, int32_t number)
{
    trli_shown_calls *shown = graph->shown;
    const trli_call *call = &trli_graph_calls(graph)[number];
    const int32_t *first = graph->access_first;
    const size_t own = (size_t)(first[call->task + 1] - first[call->task]);
    const size_t inner = (size_t)(first[call->end + 1] - first[call->first]);
    touch *touches = trli_new(graph->ctx, own + inner, sizeof *touches), *of_body = touches + own;
    if (!touches) return trli_no_memory(graph->ctx, NULL, "for the calls of graph '%s'", graph->name);
    const int32_t n = gather(graph, call->task, call->task + 1, touches);
    const int32_t m = gather(graph, call->first, call->end + 1, of_body);
    for (int32_t i = 0; i < m && shown->bare_call == TRLI_NONE; ++i) {
        if (covers(bsearch(&of_body[i], touches, (size_t)n, sizeof *touches, compare_keys), &of_body[i])) continue;
        shown->bare_call = number;
        shown->bare_handle = of_body[i].handle;
    }
    trli_free(touches);
    return TRL_OK;
}

trl_err trli_calls_show(trl_graph *graph)
{
    const int32_t tasks = graph->task_count;
    trl_err err = TRL_OK;
    if (graph->calls.count == 0) return TRL_OK;
    trli_shown_calls *shown = graph->shown = trli_new(graph->ctx, 1, sizeof *shown);
    if (shown) shown->first = trli_new(graph->ctx, (size_t)tasks + 1, sizeof *shown->first);
    if (shown) shown->ends = trli_new(graph->ctx, (size_t)tasks + 1, sizeof *shown->ends);
    if (!shown || !shown->first || !shown->ends)
        return trli_no_memory(graph->ctx, NULL, "for the calls of graph '%s'", graph->name);
    const int32_t bodies = trli_graph_calls(graph)[0].first; /* and ends; they come behind all others */
    shown->bare_call = shown->bare_handle = TRLI_NONE;
    for (int32_t t = 0; t <= tasks; ++t) {
        shown->first[t] = graph->access_first[t < bodies ? t : bodies];
        shown->ends[t] = t;
    }
    for (int32_t c = 0; c < graph->calls.count; ++c) {
        const trli_call *call = &trli_graph_calls(graph)[c];
        shown->ends[call->task] = call->end;
        if (call->around == TRLI_NONE) TRL_TRY(find_bare(graph, c));
    }
done:
    return err;
}

void trli_shown_calls_destroy(trl_graph *graph)
{
    if (!graph->shown) return;
    trli_free(graph->shown->first);
    trli_free(graph->shown->ends);
    trli_free(graph->shown);
    graph->shown = NULL;
}

trl_err trli_calls_check_placed(const trl_graph *graph)
{
    const trli_call *calls = trli_graph_calls(graph);
    for (int64_t c = 0; c < graph->calls.count && !graph->memory.locate; ++c) {
        if (!calls[c].desc.body->memory.locate) continue;
        return trl_fail(graph->ctx, TRL_ERR_USAGE, NULL,
                        "graph '%s' cannot run on workers that have devices: devices may have data of '%s', the body "
                        "of its call '%s', and the graph has no memory; set it by trl_graph_set_memory, take the "
                        "devices away, or run the body by a loop of trl_graph_run",
                        graph->name, calls[c].desc.body->name, trli_graph_task_name(graph, calls[c].task));
    }
    const trli_shown_calls *shown = graph->shown;
    if (!graph->memory.locate || !shown || shown->bare_call == TRLI_NONE) return TRL_OK;
    return trl_fail(graph->ctx, TRL_ERR_USAGE, NULL,
                    "graph '%s' cannot run on workers that have devices: its call '%s' does not say that the body "
                    "touches '%s', or how; add that access to the call",
                    graph->name, trli_graph_task_name(graph, calls[shown->bare_call].task),
                    trli_graph_text(graph, ((const trl_policy_handle *)graph->handles.data)[shown->bare_handle].name));
}

/* ---- the graph that is run ---- */

trl_err trli_calls_take_over(trl_graph *graph, const trl_graph *logical, const int32_t *node)
{
    const int64_t n = logical->calls.count;
    trl_err err = TRL_OK;
    if (n == 0) return TRL_OK;
    TRL_TRY(trli_list_reserve(graph->ctx, &graph->calls, n, sizeof(trli_call), "task graph"));
    graph->calls.count = n;
    for (int64_t c = 0; c < n; ++c) {
        const trli_call *from = &trli_graph_calls(logical)[c];
        trli_call *to = &trli_graph_calls(graph)[c];
        *to = *from;
        to->task = node[from->task];
        to->first = node[from->first]; /* the end, of an empty body */
        to->end = node[from->end];
        trli_graph_records(graph)[to->task].flags |= TRLI_TASK_CALL;
        trli_graph_records(graph)[to->end].flags |= TRLI_TASK_END;
    }
    err = trli_calls_list(graph);
done:
    return err;
}
