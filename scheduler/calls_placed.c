/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Calls as placement sees them. Placement is decided for whole runs, and a body goes round within one, so a call is one
 * task of its graph, whose accesses say what the body touches; and the body is a graph of its own, placed for its
 * rounds (placed_calls.c). Bodies that devices may not do are done by workers, on data that is on the host from before
 * the first round until after the last one. */
#include <stdlib.h>
#include <string.h>

#include "calls_impl.h"
#include "memory_impl.h"
#include "placement_impl.h"

/* ---- accesses ---- */

/* Data that a call, or its body, touches. */
typedef struct touch {
    int64_t key;
    int32_t handle;
    bool reads, writes;
    uint16_t spaces; /* of those who touch it, a bit each */
} touch;

static int compare_keys(const void *x, const void *y)
{
    const touch *a = x, *b = y;
    return (a->key > b->key) - (a->key < b->key);
}

/* Accesses of a task to data that may be copied. */
static int32_t add_touches(const trl_graph *graph, int32_t task, uint16_t spaces, touch *touches, int32_t n)
{
    const trl_policy_handle *handle = graph->handles.data;
    for (int32_t a = graph->access_first[task]; a < graph->access_first[task + 1]; ++a) {
        const trl_policy_access *access = &graph->access[a];
        if (handle[access->handle].bytes > 0)
            touches[n++] = (touch){.key = handle[access->handle].key,
                                   .handle = access->handle,
                                   .reads = access->mode != TRL_WRITE,
                                   .writes = access->mode != TRL_READ,
                                   .spaces = spaces};
    }
    return n;
}

/* Sort n of them by key, and merge those of one key; returns how many are left. */
static int32_t merge_touches(touch *touches, int32_t n)
{
    int32_t kept = 0;
    qsort(touches, (size_t)n, sizeof *touches, compare_keys);
    for (int32_t i = 0; i < n; ++i) {
        if (kept > 0 && touches[kept - 1].key == touches[i].key) {
            touches[kept - 1].reads |= touches[i].reads;
            touches[kept - 1].writes |= touches[i].writes;
            touches[kept - 1].spaces |= touches[i].spaces;
        } else {
            touches[kept++] = touches[i];
        }
    }
    return kept;
}

/* Accesses of tasks first <= t < end, by key, each key once. */
static int32_t gather(const trl_graph *graph, int32_t first, int32_t end, touch *touches)
{
    int32_t n = 0;
    for (int32_t t = first; t < end; ++t) n = add_touches(graph, t, 0, touches, n);
    return merge_touches(touches, n);
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

/* Whether a call writes parts of data, or adds to some, beside other tasks. */
static bool is_parted(const trl_graph *graph, const trli_call *call)
{
    const trl_policy_handle *handle = graph->handles.data;
    bool parted = false;
    for (int32_t a = graph->access_first[call->task]; a < graph->access_first[call->task + 1]; ++a)
        parted |= handle[graph->access[a].handle].bytes > 0 && graph->access[a].mode >= TRL_WRITE_PART;
    return parted;
}

trl_err trli_calls_show(trl_graph *graph)
{
    const int32_t tasks = graph->task_count;
    trl_err err = TRL_OK;
    if (graph->calls.count == 0) return TRL_OK;
    trli_shown_calls *shown = graph->shown = trli_new(graph->ctx, 1, sizeof *shown);
    if (shown) shown->first = trli_new(graph->ctx, (size_t)tasks + 1, sizeof *shown->first);
    if (shown) shown->ends = trli_new(graph->ctx, (size_t)tasks + 1, sizeof *shown->ends);
    if (shown) shown->parted = trli_new(graph->ctx, (size_t)graph->calls.count, sizeof *shown->parted);
    if (!shown || !shown->first || !shown->ends || !shown->parted)
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
        shown->parted[c] = is_parted(graph, call);
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
    trli_free(graph->shown->parted);
    trli_free(graph->shown);
    graph->shown = NULL;
}

static trl_err check_bare(const trl_graph *graph)
{
    const trli_shown_calls *shown = graph->shown;
    if (!shown || shown->bare_call == TRLI_NONE) return TRL_OK;
    return trl_fail(graph->ctx, TRL_ERR_USAGE, NULL,
                    "graph '%s' cannot run on workers that have devices: its call '%s' does not say that the body "
                    "touches '%s', or how; add that access to the call",
                    graph->name, trli_graph_task_name(graph, trli_graph_calls(graph)[shown->bare_call].task),
                    trli_graph_text(graph, ((const trl_policy_handle *)graph->handles.data)[shown->bare_handle].name));
}

trl_err trli_calls_check_placed(const trl_graph *graph)
{
    const trli_call *calls = trli_graph_calls(graph);
    trl_err err = TRL_OK;
    for (int64_t c = 0; c < graph->calls.count && !graph->memory.locate; ++c) {
        if (!calls[c].desc.body->memory.locate) continue;
        return trl_fail(graph->ctx, TRL_ERR_USAGE, NULL,
                        "graph '%s' cannot run on workers that have devices: devices may have data of '%s', the body "
                        "of its call '%s', and the graph has no memory; set it by trl_graph_set_memory, take the "
                        "devices away, or run the body by a loop of trl_graph_run",
                        graph->name, calls[c].desc.body->name, trli_graph_task_name(graph, calls[c].task));
    }
    if (!graph->memory.locate) return TRL_OK;
    TRL_TRY(check_bare(graph));
    for (int32_t c = 0; c < graph->calls.count; ++c)
        if (trli_call_is_open(graph, c)) TRL_TRY(check_bare(calls[c].desc.body));
done:
    return err;
}

/* ---- bodies that devices may do ---- */

static bool same_memory(const trl_graph_memory *a, const trl_graph_memory *b)
{
    return a->locate && a->data == b->data && a->provide == b->provide && a->locate == b->locate &&
           a->valid == b->valid;
}

bool trli_call_is_open(const trl_graph *graph, int32_t call)
{
    bool open = true;
    for (int32_t c = call; c != TRLI_NONE && open; c = trli_graph_calls(graph)[c].around) {
        const trl_call_desc *desc = &trli_graph_calls(graph)[c].desc;
        open = !graph->shown->parted[c] && (!desc->begin || desc->in_frame) &&
               same_memory(&graph->memory, &desc->body->memory);
    }
    return open;
}

int32_t trli_own_tasks(const trl_graph *graph)
{
    return graph->calls.count > 0 ? trli_graph_calls(graph)[0].first : graph->task_count;
}

int64_t trli_own_handles(const trl_graph *graph)
{
    return graph->calls.count > 0 ? trli_graph_calls(graph)[0].handles : graph->handles.count;
}

int64_t trli_own_resources(const trl_graph *graph)
{
    return graph->calls.count > 0 ? trli_graph_calls(graph)[0].resources : graph->resources.count;
}

/* Tasks that are no calls: what these touch, their bodies do. */
static trl_err find_called(const trl_graph *graph, const trli_call *call, const uint8_t *executor, uint16_t *called)
{
    const int32_t *first = graph->access_first;
    const trl_policy_handle *handle = graph->handles.data;
    int32_t n = 0;
    touch *touches = trli_new(graph->ctx, (size_t)(first[call->end] - first[call->first]), sizeof *touches);
    if (!touches) return trli_no_memory(graph->ctx, NULL, "for the calls of graph '%s'", graph->name);
    for (int32_t t = call->first; t < call->end; ++t)
        if (!(trli_graph_records(graph)[t].flags & TRLI_TASK_CALL))
            n = add_touches(graph, t, (uint16_t)(1u << executor[t]), touches, n);
    n = merge_touches(touches, n);
    for (int32_t a = first[call->task]; a < first[call->task + 1]; ++a) {
        const touch key = {.key = handle[graph->access[a].handle].key};
        const touch *found = bsearch(&key, touches, (size_t)n, sizeof *touches, compare_keys);
        called[a] = 1u << TRLI_CALLED;
        if (graph->access[a].mode != TRL_READ)
            called[a] |= 1u << TRLI_ANYWHERE;
        else if (found)
            called[a] |= found->spaces;
    }
    trli_free(touches);
    return TRL_OK;
}

trl_err trli_calls_called(const trl_graph *graph, const uint8_t *executor, uint16_t **called)
{
    trl_err err = TRL_OK;
    *called = NULL;
    for (int32_t c = 0; c < graph->calls.count; ++c) {
        const trli_call *call = &trli_graph_calls(graph)[c];
        if (call->around != TRLI_NONE || !trli_call_is_open(graph, c)) continue;
        if (!*called)
            *called = trli_new(graph->ctx, (size_t)trli_shown_accesses(graph)[graph->task_count] + 1, sizeof **called);
        if (!*called) return trli_no_memory(graph->ctx, NULL, "for the calls of graph '%s'", graph->name);
        TRL_TRY(find_called(graph, call, executor, *called));
    }
done:
    return err;
}
