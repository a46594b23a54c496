/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Resources while a graph is built, and the wants of tasks in the form that runs use. */
#include <string.h>

#include "locks_impl.h"

static const char build_memory[] = "task graph";

static const trli_resource *resources_of(const trl_graph *graph)
{
    return graph->resources.data;
}

static const char *name_of(const trl_graph *graph, int32_t resource)
{
    return trli_graph_text(graph, resources_of(graph)[resource].name);
}

/* ---- building ---- */

trl_err trli_graph_resource(trl_graph *graph, trl_resource name, int32_t *resource)
{
    *resource = (int32_t)(name & INT32_MAX);
    if (trli_graph_owns(graph, name, graph->resources.count)) return TRL_OK;
    return trl_fail(graph->ctx, TRL_ERR_USAGE, NULL,
                    "graph '%s' has no resource %lld: it belongs to another graph or to none", graph->name,
                    (long long)name);
}

/* The number of ancestors of a resource. */
static int count_levels(const trl_graph *graph, int32_t resource)
{
    const trli_resource *all = resources_of(graph);
    int levels = 0;
    for (int32_t r = all[resource].parent; r >= 0; r = all[r].parent) ++levels;
    return levels;
}

static bool has_data(const trli_resource *resource)
{
    return resource->data != NULL && resource->bytes > 0;
}

/* Compares without sums, which could wrap around. */
static bool is_inside(const trli_resource *part, const trli_resource *whole)
{
    uintptr_t first = (uintptr_t)part->data, start = (uintptr_t)whole->data;
    return first >= start && part->bytes <= whole->bytes && first - start <= whole->bytes - part->bytes;
}

/* Data must lie inside the data of the nearest ancestor that has some. */
static trl_err check_resource(trl_graph *graph, const trl_resource_desc *desc, const trli_resource *resource)
{
    const trli_resource *all = resources_of(graph);
    if (desc->name == NULL) {
        return trl_fail(graph->ctx, TRL_ERR_USAGE, NULL, "a resource of graph '%s' is refused: it needs a name",
                        graph->name);
    }
    if (desc->data == NULL && desc->bytes > 0) {
        return trl_fail(graph->ctx, TRL_ERR_USAGE, NULL,
                        "resource '%s' of graph '%s' is refused: it has %zu bytes and no data", desc->name, graph->name,
                        desc->bytes);
    }
    if (graph->resources.count == INT32_MAX / 2) {
        return trl_fail(graph->ctx, TRL_ERR_INPUT, NULL, "graph '%s' has more than %d resources", graph->name,
                        INT32_MAX / 2);
    }
    int32_t above = resource->parent;
    if (above >= 0 && count_levels(graph, above) + 2 > TRLI_RESOURCE_LEVELS) {
        return trl_fail(graph->ctx, TRL_ERR_USAGE, NULL,
                        "resource '%s' of graph '%s' is refused: it is more than %d levels deep", desc->name,
                        graph->name, TRLI_RESOURCE_LEVELS);
    }
    while (above >= 0 && !has_data(&all[above])) above = all[above].parent;
    if (above < 0 || !has_data(resource) || is_inside(resource, &all[above])) return TRL_OK;
    return trl_fail(graph->ctx, TRL_ERR_USAGE, NULL,
                    "resource '%s' of graph '%s' is refused: its data are not inside those of '%s'", desc->name,
                    graph->name, name_of(graph, above));
}

trl_err trl_graph_add_resource(trl_graph *graph, const trl_resource_desc *desc, trl_resource *result)
{
    trl_err err;
    trli_resource resource = {.parent = TRLI_NONE, .data = desc->data, .bytes = desc->bytes};
    TRL_TRY(trli_graph_check_open(graph));
    if (desc->parent != TRL_NO_PARENT) TRL_TRY(trli_graph_resource(graph, desc->parent, &resource.parent));
    TRL_TRY(check_resource(graph, desc, &resource));
    TRL_TRY(trli_list_reserve(graph->ctx, &graph->resources, 1, sizeof resource, build_memory));
    TRL_TRY(trli_graph_add_name(graph, desc->name, &resource.name));
    ((trli_resource *)graph->resources.data)[graph->resources.count] = resource;
    *result = trli_graph_public(graph, (int32_t)graph->resources.count++);
done:
    return err;
}

static trl_err add_wish(trl_graph *graph, trl_task task, trl_resource resource, int32_t mode)
{
    trl_err err;
    trli_wish wish = {.mode = mode};
    TRL_TRY(trli_graph_check_open(graph));
    TRL_TRY(trli_graph_task(graph, task, &wish.task));
    TRL_TRY(trli_graph_resource(graph, resource, &wish.resource));
    TRL_TRY(trli_list_reserve(graph->ctx, &graph->wishes, 1, sizeof wish, build_memory));
    ((trli_wish *)graph->wishes.data)[graph->wishes.count++] = wish;
done:
    return err;
}

trl_err trl_graph_add_lock(trl_graph *graph, trl_task task, trl_resource resource)
{
    return add_wish(graph, task, resource, TRLI_LOCK);
}

trl_err trl_graph_add_use(trl_graph *graph, trl_task task, trl_resource resource)
{
    return add_wish(graph, task, resource, TRLI_USE);
}

/* ---- what one task wants ---- */

/* Shell's method: in place, for lists that are nearly always short. Gaps: Ciura 2001. */
static void sort_wants(int64_t n, trli_want *want)
{
    static const int64_t gaps[] = {1 << 26, 1 << 22, 1 << 18, 1 << 15, 6013, 2543, 1073, 701,
                                   301,     132,     57,      23,      10,   4,    1};
    for (size_t g = 0; g < sizeof gaps / sizeof *gaps; ++g) {
        for (int64_t i = gaps[g]; i < n; ++i) {
            trli_want moved = want[i];
            int64_t k = i;
            for (; k >= gaps[g] && want[k - gaps[g]].resource > moved.resource; k -= gaps[g])
                want[k] = want[k - gaps[g]];
            want[k] = moved;
        }
    }
}

/* Sort, and keep the strongest mode of each resource: of LOCK and USE, of LOCK_BELOW and USE_BELOW. */
static int64_t merge_wants(int64_t n, trli_want *want)
{
    int64_t kept = 0;
    sort_wants(n, want);
    for (int64_t i = 0; i < n; ++i) {
        if (kept > 0 && want[kept - 1].resource == want[i].resource) {
            if (want[kept - 1].mode < want[i].mode) want[kept - 1].mode = want[i].mode;
        } else {
            want[kept++] = want[i];
        }
    }
    return kept;
}

static trli_want *find_want(int64_t n, trli_want *want, int32_t resource)
{
    while (n > 0) {
        int64_t half = n / 2;
        if (want[half].resource == resource) return &want[half];
        if (want[half].resource < resource) {
            want += half + 1;
            n -= half + 1;
        } else {
            n = half;
        }
    }
    return NULL;
}

/* Drop a want that lies below another want; if the lower one is a lock, the upper one becomes a lock. */
static int64_t drop_covered(const trl_graph *graph, int64_t n, trli_want *want)
{
    enum { COVERED = TRLI_MODES /* a bit above those of a mode: what is covered still locks what is above it */ };
    const trli_resource *all = resources_of(graph);
    int64_t kept = 0;
    for (int64_t i = 0; i < n; ++i) {
        for (int32_t r = all[want[i].resource].parent; r >= 0; r = all[r].parent) {
            trli_want *above = find_want(n, want, r);
            if (above == NULL) continue;
            above->mode |= want[i].mode & TRLI_LOCK;
            want[i].mode |= COVERED;
        }
    }
    for (int64_t i = 0; i < n; ++i)
        if (!(want[i].mode & COVERED)) want[kept++] = want[i];
    return kept;
}

int32_t trli_graph_normalise_wants(const trl_graph *graph, int32_t n, trli_want *want)
{
    int64_t kept = drop_covered(graph, merge_wants(n, want), want);
    for (int64_t i = 0; i < kept; ++i) want[i].mode |= TRLI_UNFOLD;
    return (int32_t)kept;
}

int32_t trli_graph_unfold_wants(const trl_graph *graph, int32_t n, trli_want *want)
{
    const trli_resource *all = resources_of(graph);
    int64_t end = n;
    for (int64_t i = 0; i < n; ++i) {
        want[i].mode &= ~TRLI_UNFOLD;
        int32_t above = want[i].mode == TRLI_LOCK ? TRLI_LOCK_BELOW : TRLI_USE_BELOW;
        for (int32_t r = all[want[i].resource].parent; r >= 0; r = all[r].parent)
            want[end++] = (trli_want){.resource = r, .mode = above};
    }
    return (int32_t)merge_wants(end, want);
}

/* ---- freezing ---- */

/* The order of two siblings with data by address; of different parents, any order that keeps siblings together. */
static bool comes_before(const trli_resource *a, const trli_resource *b)
{
    if (a->parent != b->parent) return a->parent < b->parent;
    return (uintptr_t)a->data < (uintptr_t)b->data;
}

/* Move the element at `at` down until no child is greater (heap sort of resource numbers). */
static void sift(const trli_resource *all, int32_t *heap, int32_t at, int32_t n)
{
    int32_t moved = heap[at];
    for (int32_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && comes_before(&all[heap[child]], &all[heap[child + 1]])) ++child;
        if (!comes_before(&all[moved], &all[heap[child]])) break;
        heap[at] = heap[child];
    }
    heap[at] = moved;
}

static void sort_resources(const trli_resource *all, int32_t *list, int32_t n)
{
    for (int32_t i = n / 2 - 1; i >= 0; --i) sift(all, list, i, n);
    for (int32_t end = n - 1; end > 0; --end) {
        int32_t last = list[end];
        list[end] = list[0];
        list[0] = last;
        sift(all, list, 0, end);
    }
}

/* In the order of addresses, overlapping siblings include an overlapping pair of neighbours. */
static trl_err check_siblings(trl_graph *graph)
{
    trl_err err;
    const trli_resource *all = resources_of(graph);
    int32_t n = 0;
    void *memory = NULL;
    TRL_TRY(trl_memory_alloc(graph->ctx, (size_t)graph->resources.count * sizeof(int32_t), build_memory, &memory));
    int32_t *list = memory;
    for (int32_t i = 0; i < graph->resources.count; ++i)
        if (has_data(&all[i])) list[n++] = i;
    sort_resources(all, list, n);
    for (int32_t i = 0; i + 1 < n; ++i) {
        const trli_resource *a = &all[list[i]], *b = &all[list[i + 1]];
        if (a->parent != b->parent || (uintptr_t)b->data - (uintptr_t)a->data >= a->bytes) continue;
        int32_t older = list[i] < list[i + 1] ? list[i] : list[i + 1];
        err = trl_fail(graph->ctx, TRL_ERR_USAGE, NULL,
                       "graph '%s': the data of resources '%s' and '%s' overlap, but neither is above the other",
                       graph->name, name_of(graph, older), name_of(graph, list[i] + list[i + 1] - older));
        goto done;
    }
done:
    trl_memory_free(graph->ctx, &memory);
    return err;
}

/* The wants of all tasks in one array, in the order added; first[t] and first[t + 1] enclose those of task t. */
static trl_err group_wishes(trl_graph *graph, int32_t *first, trli_want **result)
{
    trl_err err;
    const trli_wish *wish = graph->wishes.data;
    int64_t n = graph->wishes.count;
    void *memory;
    TRL_TRY(trl_memory_alloc(graph->ctx, (size_t)n * sizeof **result, build_memory, &memory));
    *result = memory;
    for (int64_t i = 0; i < n; ++i) ++first[wish[i].task];
    for (int32_t t = 0; t < graph->task_count; ++t) first[t + 1] += first[t];
    /* From the last wish to the first: first[t] moves from the end of task t's wishes to their start. */
    for (int64_t i = n - 1; i >= 0; --i)
        (*result)[--first[wish[i].task]] = (trli_want){.resource = wish[i].resource, .mode = wish[i].mode};
done:
    return err;
}

/* The largest number of wants that unfolding can make of these. */
static int64_t room_for(const trl_graph *graph, int32_t n, const trli_want *want)
{
    int64_t room = n;
    for (int32_t i = 0; i < n; ++i) room += count_levels(graph, want[i].resource);
    return room;
}

static trl_err flatten_wants(trl_graph *graph, const trli_want *grouped, trli_list *wants)
{
    trl_err err = TRL_OK;
    int32_t *first = graph->want_first, start = 0;
    for (int32_t t = 0; t < graph->task_count; ++t) {
        int32_t n = first[t + 1] - start;
        int64_t room = room_for(graph, n, grouped + start);
        if (n > 0) {
            trli_graph_records(graph)[t].flags |= TRLI_TASK_WANTS;
            if (room > INT32_MAX - wants->count) {
                err = trl_fail(graph->ctx, TRL_ERR_INPUT, NULL,
                               "the tasks of graph '%s' want more than %d resources, those above included", graph->name,
                               INT32_MAX);
                goto done;
            }
            TRL_TRY(trli_list_reserve(graph->ctx, wants, room, sizeof *grouped, build_memory));
            trli_want *want = (trli_want *)wants->data + wants->count;
            memcpy(want, grouped + start, (size_t)n * sizeof *want);
            n = trli_graph_unfold_wants(graph, trli_graph_normalise_wants(graph, n, want), want);
        }
        start = first[t + 1];
        first[t] = (int32_t)wants->count;
        wants->count += n;
    }
    first[graph->task_count] = (int32_t)wants->count;
done:
    return err;
}

trl_err trli_graph_flatten_resources(trl_graph *graph)
{
    trl_err err;
    size_t bytes = ((size_t)graph->task_count + 1) * sizeof *graph->want_first;
    void *memory;
    trli_want *grouped = NULL;
    trli_list wants = {.data = NULL};
    TRL_TRY(check_siblings(graph));
    if (graph->wishes.count > INT32_MAX) {
        err = trl_fail(graph->ctx, TRL_ERR_INPUT, NULL, "graph '%s' has more than %d locks and uses", graph->name,
                       INT32_MAX);
        goto done;
    }
    TRL_TRY(trl_memory_alloc(graph->ctx, bytes, build_memory, &memory));
    graph->want_first = memset(memory, 0, bytes);
    if (graph->wishes.count == 0) goto done;
    TRL_TRY(group_wishes(graph, graph->want_first, &grouped));
    TRL_TRY(flatten_wants(graph, grouped, &wants));
    graph->want = wants.data;
    wants = (trli_list){.data = NULL};
done:
    memory = grouped;
    trl_memory_free(graph->ctx, &memory);
    trli_list_free(&wants);
    return err;
}
