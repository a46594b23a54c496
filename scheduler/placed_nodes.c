/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The tasks of a placed graph with the transfers between them: predecessors and successors. A task that waits for a
 * transfer of another task's result does not wait for that task as well. */
#include <string.h>

#include "arithmetic_impl.h"
#include "placed_impl.h"

/* ---- a graph as placement sees it ---- */

bool trli_placed_eligible(const trl_graph *graph, int32_t task, trl_kind kind)
{
    enum {
        ONLY_WORKERS =
            TRLI_TASK_WANTS | TRLI_TASK_PHASED | TRLI_TASK_SIGNALLED | TRL_TASK_POLL | TRL_TASK_SCOPE | TRL_TASK_ALWAYS
    };
    const trli_task_info *info = &trli_graph_info(graph)[task];
    if (!info->variant[kind].run) return false;
    if (kind == TRL_KIND_CPU) return true;
    if (trli_graph_records(graph)[task].flags & ONLY_WORKERS) return false;
    return !graph->call_of || graph->call_of[task] == TRLI_NONE || trli_call_is_open(graph, graph->call_of[task]);
}

trli_place_graph trli_graph_to_place(const trl_graph *graph)
{
    return (trli_place_graph){.tasks = graph->task_count,
                              .first = graph->first,
                              .successors = graph->successors,
                              .order = graph->order,
                              .access_first = trli_shown_accesses(graph),
                              .access = graph->access,
                              .handles = (int32_t)graph->handles.count,
                              .handle = graph->handles.data,
                              .follows = graph->follows.count > 0 ? graph->follows.data : NULL,
                              .homes = graph->homes.count > 0 ? graph->homes.data : NULL,
                              .pieces = graph->pieces.count > 0 ? graph->pieces.data : NULL,
                              .own = trli_own_tasks(graph),
                              .ends = graph->shown ? graph->shown->ends : NULL};
}

/* ---- nodes ---- */

typedef struct finder {
    trl_graph *logical;
    const trli_transfers *transfers;
    const trli_transfer *transfer;
    trli_placed_nodes *nodes;
    trli_list edges;                /* trli_dependency */
    int32_t *mark;                  /* [tasks] the last task, plus one, that waits for its result by a transfer */
    int32_t *before_first, *before; /* predecessors of the logical tasks */
    int32_t *wanted;                /* [transfers] the task that a late transfer waits with; NULL: none is late */
} finder;

static trl_err find_wanted(finder *f)
{
    const trli_place_graph graph = trli_graph_to_place(f->logical);
    trl_context *ctx = f->logical->ctx;
    f->wanted = trli_new(ctx, (size_t)f->transfers->list.count + 1, sizeof *f->wanted);
    if (!f->wanted) return trli_no_memory(ctx, NULL, "for a placed graph");
    return trli_transfers_wanted(ctx, &graph, f->transfers, f->wanted);
}

static trl_err add_edge(finder *f, int32_t before, int32_t after)
{
    trl_err err;
    TRL_TRY(trli_list_reserve(f->logical->ctx, &f->edges, 1, sizeof(trli_dependency), "placed graph"));
    ((trli_dependency *)f->edges.data)[f->edges.count++] = (trli_dependency){before, after};
done:
    return err;
}

/* Predecessors of a transfer: the tasks that wrote the value, or the transfer that brought it to where it is copied
 * from; and, of a late one, those of the task that wants it. */
static trl_err add_transfer(finder *f, int32_t number)
{
    const trli_transfer *t = &f->transfer[number];
    const int32_t *writer = f->transfers->writers.data;
    trl_err err = TRL_OK;
    for (int32_t i = 0; f->wanted && i < f->logical->predecessors[f->wanted[number]]; ++i)
        TRL_TRY(add_edge(f, f->before[f->before_first[f->wanted[number]] + i], f->nodes->tasks + number));
    if (t->source >= 0) TRL_TRY(add_edge(f, f->nodes->tasks + t->source, f->nodes->tasks + number));
    for (int32_t i = t->writers_first; i < t->writers_end; ++i)
        TRL_TRY(add_edge(f, writer[i], f->nodes->tasks + number));
done:
    return err;
}

/* The transfers that a task waits for. The tasks that wrote the copied values are complete by then. */
static trl_err follow_transfer(finder *f, int32_t task, int32_t number)
{
    const int32_t *writer = f->transfers->writers.data;
    trl_err err;
    TRL_TRY(add_edge(f, f->nodes->tasks + number, task));
    while (f->transfer[number].source >= 0) number = f->transfer[number].source;
    for (int32_t i = f->transfer[number].writers_first; i < f->transfer[number].writers_end; ++i)
        f->mark[writer[i]] = task + 1;
done:
    return err;
}

/* *more: of the list of further transfers, which is by task, how many belong to the tasks before. */
static trl_err add_task(finder *f, int32_t task, int64_t *more)
{
    const int32_t *first = trli_shown_accesses(f->logical);
    const trli_awaited *awaited = f->transfers->more.data;
    trl_err err = TRL_OK;
    for (; *more < f->transfers->more.count && awaited[*more].task == task; ++*more)
        TRL_TRY(follow_transfer(f, task, awaited[*more].transfer));
    for (int32_t a = first[task]; a < first[task + 1]; ++a)
        if (f->transfers->access_transfer[a] >= 0) TRL_TRY(follow_transfer(f, task, f->transfers->access_transfer[a]));
    for (int32_t i = f->before_first[task]; i < f->before_first[task + 1]; ++i)
        if (f->mark[f->before[i]] != task + 1) TRL_TRY(add_edge(f, f->before[i], task));
done:
    return err;
}

/* The predecessors of the logical tasks. */
static void list_predecessors(finder *f)
{
    const trl_graph *graph = f->logical;
    const trli_task_record *record = trli_graph_records(graph);
    int32_t *first = f->before_first;
    /* first[t + 1] is where the list of t is filled, and ends as its end. */
    for (int32_t t = 1; t < graph->task_count; ++t) first[t + 1] = first[t] + graph->predecessors[t - 1];
    for (int32_t t = 0; t < graph->task_count; ++t)
        for (int32_t i = record[t].first; i < record[t].end; ++i) f->before[first[graph->successors[i] + 1]++] = t;
}

/* ---- flat arrays ---- */

static trl_err flatten(finder *f)
{
    trli_placed_nodes *nodes = f->nodes;
    const trli_dependency *edge = f->edges.data;
    const int64_t m = f->edges.count;
    trl_context *ctx = f->logical->ctx;
    nodes->after = trli_new(ctx, (size_t)m + 1, sizeof *nodes->after);
    nodes->before = trli_new(ctx, (size_t)m + 1, sizeof *nodes->before);
    nodes->after_first = trli_new(ctx, (size_t)nodes->n + 2, sizeof *nodes->after_first);
    nodes->before_first = trli_new(ctx, (size_t)nodes->n + 2, sizeof *nodes->before_first);
    if (!nodes->after || !nodes->before || !nodes->after_first || !nodes->before_first)
        return trli_no_memory(ctx, NULL, "for a placed graph");
    /* Shifted by one: first[x + 1] is where the list of x is filled, and ends as its end. */
    for (int64_t i = 0; i < m; ++i) {
        if (edge[i].before + 2 <= nodes->n) ++nodes->after_first[edge[i].before + 2];
        if (edge[i].after + 2 <= nodes->n) ++nodes->before_first[edge[i].after + 2];
    }
    for (int32_t x = 0; x < nodes->n; ++x) {
        nodes->after_first[x + 1] += nodes->after_first[x];
        nodes->before_first[x + 1] += nodes->before_first[x];
    }
    for (int64_t i = 0; i < m; ++i) {
        nodes->after[nodes->after_first[edge[i].before + 1]++] = edge[i].after;
        nodes->before[nodes->before_first[edge[i].after + 1]++] = edge[i].before;
    }
    return TRL_OK;
}

static void number_polls(trli_placed_nodes *nodes, const trli_task_record *record)
{
    int32_t polls = 0;
    for (int32_t x = 0; x < nodes->tasks; ++x)
        if (record[x].flags & TRL_TASK_POLL) nodes->poll[x] = ++polls;
}

/* Levels, weights and polls follow the edges: visit each node after its predecessors. */
static trl_err find_levels(finder *f, const uint8_t *executor)
{
    trli_placed_nodes *nodes = f->nodes;
    trl_context *ctx = f->logical->ctx;
    const trli_task_record *record = trli_graph_records(f->logical);
    trl_err err = TRL_OK;
    int32_t *missing = trli_new(ctx, (size_t)nodes->n + 1, sizeof *missing), count = 0;
    int32_t *order = trli_new(ctx, (size_t)nodes->n + 1, sizeof *order);
    if (!missing || !order) TRL_TRY(trli_no_memory(ctx, NULL, "for a placed graph"));
    number_polls(nodes, record);
    for (int32_t x = 0; x < nodes->n; ++x) {
        missing[x] = nodes->before_first[x + 1] - nodes->before_first[x];
        if (missing[x] == 0) order[count++] = x;
    }
    for (int32_t i = 0; i < count; ++i) {
        const int32_t x = order[i];
        nodes->level[x] += nodes->poll[x] > 0;
        nodes->held[x] |= x < nodes->tasks && record[x].flags & (TRLI_TASK_PHASED | TRLI_TASK_SIGNALLED);
        for (int32_t k = nodes->after_first[x]; k < nodes->after_first[x + 1]; ++k) {
            const int32_t y = nodes->after[k];
            const bool host_waits = y < nodes->tasks && executor[y] == 0 && nodes->space[x] > 0;
            const int32_t level = nodes->level[x] + host_waits;
            if (nodes->level[y] < level) nodes->level[y] = level;
            nodes->held[y] |= nodes->held[x];
            if (--missing[y] == 0) order[count++] = y;
        }
    }
    for (int32_t i = count - 1; i >= 0; --i) {
        const int32_t x = order[i];
        double behind = 0;
        nodes->feeds[x] = INT32_MAX;
        for (int32_t k = nodes->after_first[x]; k < nodes->after_first[x + 1]; ++k) {
            const int32_t y = nodes->after[k];
            behind = trli_max_double(behind, nodes->weight[y]);
            if (nodes->feeds[y] < nodes->feeds[x]) nodes->feeds[x] = nodes->feeds[y];
            if (nodes->poll[y] > 0 && nodes->poll[y] < nodes->feeds[x]) nodes->feeds[x] = nodes->poll[y];
        }
        if (x >= nodes->tasks) nodes->weight[x] = behind;
    }
done:
    trli_free(missing);
    trli_free(order);
    return err;
}

trl_err trli_placed_nodes_find(trl_graph *logical, const uint8_t *executor, const trli_transfers *transfers, bool late,
                               trli_placed_nodes *nodes)
{
    trl_context *ctx = logical->ctx;
    const size_t edges = (size_t)logical->first[logical->task_count];
    int64_t more = 0;
    finder f = {.logical = logical, .transfers = transfers, .transfer = transfers->list.data, .nodes = nodes};
    trl_err err = TRL_OK;
    *nodes =
        (trli_placed_nodes){.tasks = logical->task_count, .n = logical->task_count + (int32_t)transfers->list.count};
    nodes->space = trli_new(ctx, (size_t)nodes->n + 1, sizeof *nodes->space);
    nodes->level = trli_new(ctx, (size_t)nodes->n + 1, sizeof *nodes->level);
    nodes->held = trli_new(ctx, (size_t)nodes->n + 1, sizeof *nodes->held);
    nodes->poll = trli_new(ctx, (size_t)nodes->n + 1, sizeof *nodes->poll);
    nodes->feeds = trli_new(ctx, (size_t)nodes->n + 1, sizeof *nodes->feeds);
    nodes->weight = trli_new(ctx, (size_t)nodes->n + 1, sizeof *nodes->weight);
    f.mark = trli_new(ctx, (size_t)nodes->tasks + 1, sizeof *f.mark);
    f.before_first = trli_new(ctx, (size_t)nodes->tasks + 2, sizeof *f.before_first);
    f.before = trli_new(ctx, edges + 1, sizeof *f.before);
    if (!nodes->space || !nodes->level || !nodes->held || !nodes->poll || !nodes->feeds || !nodes->weight || !f.mark ||
        !f.before_first || !f.before)
        TRL_TRY(trli_no_memory(ctx, NULL, "for a placed graph"));
    for (int32_t t = 0; t < nodes->tasks; ++t) {
        nodes->space[t] = executor[t];
        nodes->weight[t] = logical->weight[t];
    }
    for (int64_t i = 0; i < transfers->list.count; ++i) {
        const trli_transfer *t = &f.transfer[i];
        nodes->space[nodes->tasks + i] = t->to > 0 ? t->to : t->from == TRLI_ANYWHERE ? 0 : t->from;
    }
    list_predecessors(&f);
    if (late) TRL_TRY(find_wanted(&f));
    for (int32_t i = 0; i < (int32_t)transfers->list.count; ++i) TRL_TRY(add_transfer(&f, i));
    for (int32_t t = 0; t < nodes->tasks; ++t) TRL_TRY(add_task(&f, t, &more));
    TRL_TRY(flatten(&f));
    TRL_TRY(find_levels(&f, executor));
done:
    trli_list_free(&f.edges);
    trli_free(f.mark);
    trli_free(f.before_first);
    trli_free(f.before);
    trli_free(f.wanted);
    return err;
}

bool trli_placed_alone(const trli_placed *placed)
{
    for (int32_t t = 0; t < placed->logical->task_count; ++t)
        for (int i = 0; i < placed->devices->n && placed->executor[t] == 0; ++i)
            if (trli_placed_eligible(placed->logical, t, placed->devices->device[i]->kind)) return false;
    return true;
}

void trli_placed_nodes_free(trli_placed_nodes *nodes)
{
    trli_free(nodes->after_first);
    trli_free(nodes->after);
    trli_free(nodes->before_first);
    trli_free(nodes->before);
    trli_free(nodes->space);
    trli_free(nodes->level);
    trli_free(nodes->held);
    trli_free(nodes->poll);
    trli_free(nodes->feeds);
    trli_free(nodes->weight);
}
