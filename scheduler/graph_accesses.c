/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Data handles and accesses of tasks: they give dependencies while a graph is built, and lists by task once it is
 * frozen. */
#include <string.h>

#include "graph_impl.h"

static const char build_memory[] = "task graph";

static trli_touched *touched_of(const trl_graph *graph)
{
    return graph->touched.data;
}

static trli_touch *touches_of(const trl_graph *graph)
{
    return graph->touches.data;
}

static trl_err find_handle(trl_graph *graph, trl_handle name, int32_t *handle)
{
    *handle = (int32_t)(name & INT32_MAX);
    if (trli_graph_owns(graph, name, graph->handles.count)) return TRL_OK;
    return trl_fail(graph->ctx, TRL_ERR_USAGE, NULL,
                    "graph '%s' has no data handle %lld: it belongs to another graph or to none", graph->name,
                    (long long)name);
}

trl_err trl_graph_add_handle(trl_graph *graph, const trl_handle_desc *desc, trl_handle *handle)
{
    trl_err err;
    int64_t at;
    TRL_TRY(trli_graph_check_open(graph));
    if (desc->name == NULL)
        return trl_fail(graph->ctx, TRL_ERR_USAGE, NULL, "a data handle of graph '%s' is refused: it needs a name",
                        graph->name);
    TRL_TRY(trli_list_reserve(graph->ctx, &graph->handles, 1, sizeof(trl_policy_handle), build_memory));
    TRL_TRY(trli_list_reserve(graph->ctx, &graph->touched, 1, sizeof(trli_touched), build_memory));
    TRL_TRY(trli_graph_add_name(graph, desc->name, &at));
    ((trl_policy_handle *)graph->handles.data)[graph->handles.count] =
        (trl_policy_handle){.name = at, .bytes = desc->bytes, .block = desc->block, .key = desc->key};
    touched_of(graph)[graph->touched.count++] = (trli_touched){-1, -1, -1, TRL_WRITE, 0};
    *handle = trli_graph_public(graph, (int32_t)graph->handles.count++);
done:
    return err;
}

static trl_err push(trl_graph *graph, int32_t *list, int32_t task)
{
    trl_err err;
    TRL_TRY(trli_list_reserve(graph->ctx, &graph->touches, 1, sizeof(trli_touch), build_memory));
    touches_of(graph)[graph->touches.count] = (trli_touch){.task = task, .next = *list};
    *list = (int32_t)graph->touches.count++;
done:
    return err;
}

/* The task that was added last among those of a list. */
static trl_err follow(trl_graph *graph, int32_t list, int32_t task)
{
    trl_err err = TRL_OK;
    for (int32_t i = list; i >= 0; i = touches_of(graph)[i].next) {
        const int32_t other = touches_of(graph)[i].task;
        if (other != task) TRL_TRY(trli_graph_add_edge(graph, other, task));
    }
done:
    return err;
}

static bool is_on(const trl_graph *graph, int32_t list, int32_t task)
{
    for (int32_t i = list; i >= 0; i = touches_of(graph)[i].next)
        if (touches_of(graph)[i].task == task) return true;
    return false;
}

/* A linear search: lists are short, because a reader among several writers is as rare as a task that reads twice. */
static trl_err add_read(trl_graph *graph, int32_t task, trli_touched *t)
{
    trl_err err = TRL_OK;
    if (t->mode < TRL_WRITE_PART && is_on(graph, t->writers, task)) return TRL_OK;
    TRL_TRY(follow(graph, t->writers, task));
    TRL_TRY(push(graph, &t->readers, task));
done:
    return err;
}

/* The task follows all readers. Readers follow the writers before them, so the writers need no edge if there are
 * readers. */
static trl_err add_write(trl_graph *graph, int32_t task, trli_touched *t)
{
    trl_err err = TRL_OK;
    TRL_TRY(follow(graph, t->readers >= 0 ? t->readers : t->writers, task));
    *t = (trli_touched){.writers = -1, .readers = -1, .before = -1, .mode = TRL_WRITE};
    TRL_TRY(push(graph, &t->writers, task));
done:
    return err;
}

/* One of several writers in any order: each follows the tasks that the first of them follows. */
static trl_err add_shared(trl_graph *graph, int32_t task, trli_touched *t, trl_access mode, int32_t part)
{
    trl_err err = TRL_OK;
    if (t->mode != (int32_t)mode || t->part != part || t->readers >= 0) {
        const int32_t before = t->readers >= 0 ? t->readers : t->writers;
        *t = (trli_touched){.writers = -1, .readers = -1, .before = before, .mode = (int32_t)mode, .part = part};
    }
    TRL_TRY(follow(graph, t->before, task));
    TRL_TRY(push(graph, &t->writers, task));
done:
    return err;
}

trl_err trl_graph_add_access(trl_graph *graph, trl_task task, trl_handle handle, trl_access access)
{
    return trl_graph_add_part_access(graph, task, handle, access, 0);
}

trl_err trl_graph_add_part_access(trl_graph *graph, trl_task task, trl_handle handle, trl_access access, int32_t part)
{
    trl_err err;
    int32_t index, touched;
    TRL_TRY(trli_graph_check_open(graph));
    TRL_TRY(trli_graph_task(graph, task, &index));
    TRL_TRY(find_handle(graph, handle, &touched));
    if (access < TRL_READ || access > TRL_ADD)
        return trl_fail(graph->ctx, TRL_ERR_USAGE, NULL,
                        "graph '%s': an access must be read, write, both, write a part or add", graph->name);
    trli_touched *t = &touched_of(graph)[touched];
    TRL_TRY(access == TRL_READ        ? add_read(graph, index, t)
            : access < TRL_WRITE_PART ? add_write(graph, index, t)
                                      : add_shared(graph, index, t, access, part));
    TRL_TRY(trli_list_reserve(graph->ctx, &graph->accesses, 1, sizeof(trli_added_access), build_memory));
    ((trli_added_access *)graph->accesses.data)[graph->accesses.count++] =
        (trli_added_access){index, touched, (int32_t)access, part};
done:
    return err;
}

/* ---- what else is known of handles ---- */

/* Give a list an entry for each handle: `same`, or its number. */
static trl_err list_by_handle(trl_graph *graph, trli_list *list, int32_t same)
{
    trl_err err;
    const int64_t missing = graph->handles.count - list->count;
    TRL_TRY(trli_list_reserve(graph->ctx, list, missing, sizeof(int32_t), build_memory));
    for (; list->count < graph->handles.count; ++list->count)
        ((int32_t *)list->data)[list->count] = same >= 0 ? same : (int32_t)list->count;
done:
    return err;
}

trl_err trli_graph_set_pieces(trl_graph *graph, trl_handle handle, int32_t pieces)
{
    trl_err err;
    int32_t h;
    TRL_TRY(find_handle(graph, handle, &h));
    TRL_TRY(list_by_handle(graph, &graph->pieces, 1));
    ((int32_t *)graph->pieces.data)[h] = pieces;
done:
    return err;
}

trl_err trli_graph_set_home(trl_graph *graph, trl_handle handle, int32_t home)
{
    trl_err err;
    int32_t h;
    TRL_TRY(find_handle(graph, handle, &h));
    TRL_TRY(list_by_handle(graph, &graph->homes, 0));
    ((int32_t *)graph->homes.data)[h] = home;
done:
    return err;
}

trl_err trl_graph_rotate(trl_graph *graph, int n, const trl_handle *handles)
{
    trl_err err;
    int32_t from, to;
    TRL_TRY(trli_graph_check_open(graph));
    TRL_TRY(list_by_handle(graph, &graph->follows, -1));
    int32_t *follows = graph->follows.data;
    for (int i = 0; i < n; ++i) {
        TRL_TRY(find_handle(graph, handles[i], &from));
        TRL_TRY(find_handle(graph, handles[i + 1 < n ? i + 1 : 0], &to));
        if (from == to || follows[to] != to)
            return trl_fail(graph->ctx, TRL_ERR_USAGE, NULL,
                            "graph '%s': data handle '%s' is in two rotations, or twice in one", graph->name,
                            trli_graph_text(graph, ((const trl_policy_handle *)graph->handles.data)[to].name));
        follows[to] = from;
    }
done:
    return err;
}

/* ---- freezing ---- */

/* Move the accesses [start, end) of a task to the end of those of the tasks before it. Two accesses of a task to one
 * piece of data become one: with their common mode, or else read and write. place: by handle, the last access that
 * was kept; it belongs to this task if it is not before `kept`. Returns the new end. */
static int32_t merge(trl_policy_access *access, int32_t start, int32_t end, int32_t kept, int32_t *place)
{
    const int32_t own = kept;
    for (int32_t i = start; i < end; ++i) {
        int32_t *k = &place[access[i].handle];
        if (*k < own) {
            *k = kept;
            access[kept++] = access[i];
        } else if (access[*k].mode != access[i].mode) {
            access[*k].mode = TRL_READ_WRITE;
        }
    }
    return kept;
}

trl_err trli_graph_flatten_accesses(trl_graph *graph)
{
    trl_err err;
    const trli_added_access *all = graph->accesses.data;
    const int64_t n = graph->accesses.count;
    const size_t bytes = ((size_t)graph->task_count + 1) * sizeof *graph->access_first;
    const size_t place_bytes = ((size_t)graph->handles.count + 1) * sizeof(int32_t);
    void *memory, *place = NULL;
    if (graph->follows.count > 0) TRL_TRY(list_by_handle(graph, &graph->follows, -1));
    if (graph->pieces.count > 0) TRL_TRY(list_by_handle(graph, &graph->pieces, 1));
    if (graph->homes.count > 0) TRL_TRY(list_by_handle(graph, &graph->homes, 0));
    if (n > INT32_MAX)
        return trl_fail(graph->ctx, TRL_ERR_INPUT, NULL, "graph '%s' has more than %d accesses", graph->name,
                        INT32_MAX);
    TRL_TRY(trl_memory_alloc(graph->ctx, bytes, build_memory, &memory));
    int32_t *first = graph->access_first = memset(memory, 0, bytes);
    TRL_TRY(trl_memory_alloc(graph->ctx, (size_t)(n + 1) * sizeof *graph->access, build_memory, &memory));
    graph->access = memory;
    for (int64_t i = 0; i < n; ++i) ++first[all[i].task];
    for (int32_t t = 0; t < graph->task_count; ++t) first[t + 1] += first[t];
    /* From the last access to the first: first[t] moves from the end of task t's accesses to their start. */
    for (int64_t i = n - 1; i >= 0; --i)
        graph->access[--first[all[i].task]] =
            (trl_policy_access){.handle = all[i].handle, .mode = all[i].mode, .part = all[i].part};
    TRL_TRY(trl_memory_alloc(graph->ctx, place_bytes, build_memory, &place));
    memset(place, -1, place_bytes);
    int32_t kept = 0;
    for (int32_t t = 0, start = 0; t < graph->task_count; ++t) {
        const int32_t end = first[t + 1];
        first[t] = kept;
        kept = merge(graph->access, start, end, kept, place);
        start = end;
    }
    first[graph->task_count] = kept;
done:
    trl_memory_free(graph->ctx, &place);
    return err;
}
