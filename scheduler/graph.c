/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <float.h>
#include <string.h>

#include "calls_impl.h"
#include "placement_run_impl.h"

static const char build_memory[] = "task graph";

const char *trli_graph_task_name(const trl_graph *graph, int32_t task)
{
    return trli_graph_text(graph, trli_graph_info(graph)[task].name);
}

trl_err trli_graph_add_name(trl_graph *graph, const char *text, int64_t *at)
{
    trl_err err;
    int64_t bytes = (int64_t)strlen(text) + 1;
    TRL_TRY(trli_list_reserve(graph->ctx, &graph->names, bytes, 1, build_memory));
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
    /* Relaxed: each graph only needs a number of its own. 31 bits keep public names positive; 0 belongs to no graph. */
    graph->serial = 1 + atomic_fetch_add_explicit(&ctx->graphs, 1, memory_order_relaxed) % (INT32_MAX - 1);
    pthread_mutex_init(&graph->placing, NULL);
    copy = NULL;
    *result = graph;
done:
    trl_memory_free(ctx, &copy);
    return err;
}

/* Release memory by its address, since it is held by pointers of several types. */
static void release(trl_context *ctx, void *memory)
{
    trl_memory_free(ctx, &memory);
}

void trl_graph_destroy(trl_graph **result)
{
    trl_graph *graph = *result;
    if (graph == NULL) return;
    trl_context *ctx = graph->ctx;
    trli_placement_destroy(graph);
    trli_run_states_destroy(graph);
    trli_shown_calls_destroy(graph);
    trli_list *arrays[] = {&graph->records, &graph->info,    &graph->names,    &graph->phases, &graph->resources,
                           &graph->edges,   &graph->handles, &graph->follows,  &graph->pieces, &graph->homes,
                           &graph->touched, &graph->touches, &graph->accesses, &graph->wishes, &graph->calls};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; ++i) trli_list_free(arrays[i]);
    void *blocks[] = {graph->successors,   graph->predecessors, graph->order, graph->roots,
                      graph->weight,       graph->path,         graph->first, graph->want_first,
                      graph->access_first, graph->access,       graph->name,  graph->call_of};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; ++i) release(ctx, blocks[i]);
    for (int k = 0; k < TRL_KINDS; ++k) release(ctx, graph->mean_s[k]);
    trli_free(graph->want);
    pthread_mutex_destroy(&graph->placing);
    release(ctx, graph);
    *result = NULL;
}

trl_err trli_graph_check_open(trl_graph *graph)
{
    if (!graph->sealed) return TRL_OK;
    return trl_fail(graph->ctx, TRL_ERR_USAGE, NULL, "graph '%s' is frozen: nothing can be added to it", graph->name);
}

trl_err trli_graph_task(trl_graph *graph, trl_task name, int32_t *task)
{
    *task = (int32_t)(name & INT32_MAX);
    if (trli_graph_owns(graph, name, graph->task_count)) return TRL_OK;
    return trl_fail(graph->ctx, TRL_ERR_USAGE, NULL,
                    "graph '%s' has no task %lld: it belongs to another graph or to none", graph->name,
                    (long long)name);
}

static trl_err check_desc(trl_graph *graph, const trl_task_desc *desc)
{
    unsigned known =
        TRL_TASK_POLL | TRL_TASK_ALWAYS | TRL_TASK_SCOPE | TRL_TASK_WHOLE | TRL_TASK_URGENT | TRL_TASK_VARIES;
    const char *fault = NULL;
    if (!desc->name || !desc->variant[TRL_KIND_CPU].run)
        fault = "it needs a name and a function for workers";
    else if (desc->chunks < 1)
        fault = "it needs at least 1 chunk";
    else if (desc->flags & ~known)
        fault = "it has unknown flags";
    else if ((desc->flags & TRL_TASK_POLL) && desc->chunks > 1)
        fault = "a poll task has 1 chunk";
    else if (!(desc->cost >= 0.0 && desc->cost <= DBL_MAX))
        fault = "its cost is negative, infinite or not a number";
    else if (desc->type < 0 || desc->type >= TRL_TASK_TYPES)
        fault = "its type is not in 0..255";
    else if (desc->priority < -1 || desc->priority > 1)
        fault = "its priority is not -1, 0 or 1";
    else if (desc->signals < 0 || desc->signals > INT32_MAX / 2)
        fault = "it waits for a negative or absurd number of signals";
    if (!fault) return TRL_OK;
    return trl_fail(graph->ctx, TRL_ERR_USAGE, NULL, "task '%s' of graph '%s' is refused: %s",
                    desc->name ? desc->name : "", graph->name, fault);
}

/* Inline: names are short, and every task that is added comes through here. */
static bool equal(const char *a, const char *b)
{
    while (*a && *a == *b) ++a, ++b;
    return *a == *b;
}

/* Tasks of one kind are added in sequence: a name equal to the last task's is stored once. */
static trl_err add_task_name(trl_graph *graph, const char *name, int64_t *at)
{
    if (graph->task_count > 0) {
        *at = trli_graph_info(graph)[graph->task_count - 1].name;
        if (equal(trli_graph_text(graph, *at), name)) return TRL_OK;
    }
    return trli_graph_add_name(graph, name, at);
}

static unsigned flags_of(const trl_task_desc *desc)
{
    unsigned flags = desc->flags;
    if (desc->chunks > 1) flags |= TRLI_TASK_WIDE;
    if (desc->priority != 0 || desc->flags & TRL_TASK_POLL) flags |= TRLI_TASK_RANKED;
    if (desc->signals > 0) flags |= TRLI_TASK_SIGNALLED;
    return flags;
}

trl_err trl_graph_reserve(trl_graph *graph, int64_t tasks, int64_t dependencies)
{
    trl_err err;
    TRL_TRY(trli_graph_check_open(graph));
    if (tasks < 0 || dependencies < 0) {
        err = trl_fail(graph->ctx, TRL_ERR_USAGE, NULL, "graph '%s': a negative number of tasks or dependencies",
                       graph->name);
        goto done;
    }
    TRL_TRY(trli_list_reserve(graph->ctx, &graph->records, tasks, sizeof(trli_task_record), build_memory));
    TRL_TRY(trli_list_reserve(graph->ctx, &graph->info, tasks, sizeof(trli_task_info), build_memory));
    TRL_TRY(trli_list_reserve(graph->ctx, &graph->edges, dependencies, sizeof(trli_dependency), build_memory));
done:
    return err;
}

trl_err trl_graph_add_task(trl_graph *graph, const trl_task_desc *desc, trl_task *task)
{
    trl_err err;
    int64_t name;
    int32_t index = graph->task_count;
    TRL_TRY(trli_graph_check_open(graph));
    TRL_TRY(check_desc(graph, desc));
    if (index == INT32_MAX / 2) {
        err = trl_fail(graph->ctx, TRL_ERR_INPUT, NULL, "graph '%s' has more than %d tasks; use fewer patches",
                       graph->name, index);
        goto done;
    }
    TRL_TRY(trli_list_reserve(graph->ctx, &graph->records, 1, sizeof(trli_task_record), build_memory));
    TRL_TRY(trli_list_reserve(graph->ctx, &graph->info, 1, sizeof(trli_task_info), build_memory));
    TRL_TRY(add_task_name(graph, desc->name, &name));
    trli_graph_records(graph)[index] = (trli_task_record){
        .run = desc->variant[TRL_KIND_CPU].run,
        .data = desc->data,
        .chunks = desc->chunks,
        .flags = (uint16_t)flags_of(desc),
        .type = (uint8_t)desc->type,
    };
    trli_graph_info(graph)[index] = (trli_task_info){.name = name,
                                                     .cost = desc->cost,
                                                     .signals = (int32_t)desc->signals,
                                                     .priority = (int8_t)desc->priority,
                                                     .kind = TRL_KIND_CPU};
    memcpy(trli_graph_info(graph)[index].variant, desc->variant, sizeof desc->variant);
    graph->records.count = graph->info.count = ++graph->task_count;
    if (desc->flags & TRL_TASK_POLL) ++graph->polls;
    if (desc->flags & TRL_TASK_SCOPE) ++graph->scopes;
    graph->costs = graph->costs || desc->cost > 0.0;
    for (unsigned k = 0; k < TRL_KINDS; ++k)
        if (desc->variant[k].run) graph->kinds |= 1u << k;
    graph->flags |= trli_graph_records(graph)[index].flags;
    *task = trli_graph_public(graph, index);
done:
    return err;
}

trl_err trli_graph_add_edge(trl_graph *graph, int32_t before, int32_t after)
{
    trl_err err;
    TRL_TRY(trli_list_reserve(graph->ctx, &graph->edges, 1, sizeof(trli_dependency), build_memory));
    ((trli_dependency *)graph->edges.data)[graph->edges.count++] = (trli_dependency){before, after};
done:
    return err;
}

trl_err trl_graph_add_dependency(trl_graph *graph, trl_task before, trl_task after)
{
    trl_err err;
    int32_t first, second;
    TRL_TRY(trli_graph_check_open(graph));
    TRL_TRY(trli_graph_task(graph, before, &first));
    TRL_TRY(trli_graph_task(graph, after, &second));
    TRL_TRY(trli_graph_add_edge(graph, first, second));
done:
    return err;
}

trl_err trl_graph_set_work(trl_graph *graph, trl_task task, double bytes, double flops)
{
    trl_err err;
    int32_t index;
    TRL_TRY(trli_graph_task(graph, task, &index));
    trli_graph_info(graph)[index].bytes = bytes;
    trli_graph_info(graph)[index].flops = flops;
done:
    return err;
}

trl_err trl_graph_set_cost(trl_graph *graph, trl_task task, double cost)
{
    trl_err err;
    int32_t index;
    TRL_TRY(trli_graph_task(graph, task, &index));
    if (!(cost >= 0.0 && cost <= DBL_MAX)) {
        err = trl_fail(graph->ctx, TRL_ERR_USAGE, NULL,
                       "task '%s' of graph '%s': a cost is negative, infinite or not a number",
                       trli_graph_task_name(graph, index), graph->name);
        goto done;
    }
    trli_graph_info(graph)[index].cost = cost;
    graph->costs = graph->costs || cost > 0.0;
    for (int k = 0; k < TRL_KINDS; ++k)
        if (graph->mean_s[k]) graph->mean_s[k][index] = 0; /* measured times are out of date, too */
    graph->ranked_tau_inf = -1.0;
done:
    return err;
}

static trl_err alloc(trl_graph *graph, size_t count, size_t size, void *result)
{
    void *memory;
    trl_err err = trl_memory_alloc(graph->ctx, count * size, build_memory, &memory);
    if (err == TRL_OK) memcpy(result, &memory, sizeof memory);
    return err;
}

static trl_err alloc_results(trl_graph *graph)
{
    trl_err err;
    size_t n = (size_t)graph->task_count + 1;
    /* The topological order begins with all tasks without predecessors. */
    for (int32_t at = 0; at < graph->task_count && graph->predecessors[graph->order[at]] == 0; ++at)
        graph->nroots += trli_graph_is_root(graph, graph->order[at]);
    TRL_TRY(alloc(graph, n, sizeof *graph->path, &graph->path));
    TRL_TRY(alloc(graph, n, sizeof *graph->weight, &graph->weight));
    TRL_TRY(alloc(graph, (size_t)graph->nroots, sizeof *graph->roots, &graph->roots));
done:
    return err;
}

/* Arrays that only runs need: times, and lists for policies. */
static trl_err alloc_times(trl_graph *graph)
{
    trl_err err;
    size_t n = (size_t)graph->task_count + 1;
    const trli_task_record *record = trli_graph_records(graph);
    for (int k = 0; k < TRL_KINDS; ++k) {
        if (!(graph->kinds & 1u << k)) continue;
        TRL_TRY(alloc(graph, n, sizeof *graph->mean_s[k], &graph->mean_s[k]));
        memset(graph->mean_s[k], 0, n * sizeof *graph->mean_s[k]);
    }
    TRL_TRY(alloc(graph, n, sizeof *graph->first, &graph->first));
    for (int32_t t = 0; t < graph->task_count; ++t) graph->first[t] = record[t].first;
    graph->first[graph->task_count] = graph->task_count > 0 ? record[graph->task_count - 1].end : 0;
done:
    return err;
}

void trli_graph_set_state(trl_graph *graph, trli_state_fn state)
{
    graph->state = state;
}

trl_err trl_graph_set_memory(trl_graph *graph, const trl_graph_memory *memory)
{
    if (graph->runs > 0 || graph->in_progress > 0)
        return trl_fail(graph->ctx, TRL_ERR_USAGE, NULL, "graph '%s' has run: its memory stays what it is",
                        graph->name);
    graph->memory = *memory;
    return TRL_OK;
}

trl_err trl_graph_freeze(trl_graph *graph)
{
    trl_err err;
    TRL_TRY(trli_graph_check_open(graph));
    graph->sealed = true;
    TRL_TRY(trli_calls_expand(graph));
    TRL_TRY(trli_graph_flatten(graph));
    TRL_TRY(trli_calls_check_apart(graph));
    TRL_TRY(trli_graph_flatten_resources(graph));
    TRL_TRY(trli_graph_flatten_accesses(graph));
    TRL_TRY(trli_calls_show(graph));
    TRL_TRY(trli_graph_flatten_phases(graph));
    TRL_TRY(alloc_results(graph));
    TRL_TRY(alloc_times(graph));
    trli_graph_rank(graph);
    trli_list *done_with[] = {&graph->edges, &graph->touched, &graph->touches, &graph->accesses, &graph->wishes};
    for (size_t i = 0; i < sizeof done_with / sizeof *done_with; ++i) trli_list_free(done_with[i]);
    graph->frozen = true;
done:
    return err;
}
