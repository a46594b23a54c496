/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* From a placement to the graph that is run. */
#include <stdlib.h>
#include <string.h>

#include "placed_calls_impl.h"

static const char what[] = "placed graph";

typedef struct builder {
    trli_placed *placed;
    trl_graph *logical;
    trl_context *ctx;
    trli_placed_nodes nodes;
    uint8_t *executor; /* [tasks] 0 of those of bodies, which are placed apart */
    const trli_transfer *transfer;
    int32_t *order, *region; /* [nodes] */
    int32_t *group;          /* [transfers] the first transfer of its launch */
    int32_t *node;           /* [nodes] a task of the new graph */
    int32_t *task_of;        /* [tasks of the new graph without bodies] its logical task, or -1 */
    int32_t *launch;         /* [nodes] the launch of a task on a device, or -1 */
    int32_t *fence;          /* [nodes] set when the node is done, of a group when all are; -1: no one waits for it */
    bool *watched;           /* [nodes] the host waits for the fence; of a group its last one's */
    int32_t *head;           /* [launches] its first node */
    int32_t *last;           /* [launches][2] its last node; of a region the last that is urgent, too */
    int32_t *waited;         /* [fences][streams] the last launch, plus one, that waits for it there */
    int free_type;           /* a type outside of all phases, for launches and watches */
} builder;

static bool is_launched(const builder *b, int32_t x)
{
    return x >= b->nodes.tasks || b->nodes.space[x] > 0;
}

static trli_stream stream_of(const builder *b, int32_t x)
{
    const bool urgent = x < b->nodes.tasks && trli_graph_records(b->logical)[x].flags & TRL_TASK_URGENT;
    if (x < b->nodes.tasks) return b->placed->urgent && urgent ? TRLI_STREAM_URGENT : TRLI_STREAM_COMPUTE;
    return b->transfer[x - b->nodes.tasks].to > 0 ? TRLI_STREAM_IN : TRLI_STREAM_OUT;
}

/* The last node on the stream of x of its launch. */
static int32_t *last_of(const builder *b, int32_t x)
{
    return &b->last[2 * b->launch[x] + (stream_of(b, x) == TRLI_STREAM_URGENT)];
}

static bool same_stream(const builder *b, int32_t x, int32_t y)
{
    return b->nodes.space[x] == b->nodes.space[y] && b->nodes.space[x] > 0 && stream_of(b, x) == stream_of(b, y);
}

/* ---- how nodes wait for each other ---- */

/* A transfer that copies nothing where the value is there when the run begins. */
static bool is_seldom(const builder *b, int32_t x)
{
    return x >= b->nodes.tasks && b->transfer[x - b->nodes.tasks].from == TRLI_ANYWHERE;
}

/* How many fences a fence stands for: where the device is chosen when the run begins, one for each device. */
static int32_t fences_of(const builder *b, int32_t x)
{
    return b->nodes.space[x] > 0 ? 1 : b->placed->devices->n;
}

static trl_err add_fences(builder *b, int32_t x)
{
    trli_list *fences = &b->placed->fences;
    const int32_t n = fences_of(b, x), space = b->nodes.space[x];
    trl_err err;
    TRL_TRY(trli_list_reserve(b->ctx, fences, n, sizeof(int32_t), what));
    b->fence[x] = (int32_t)fences->count;
    b->placed->joint[fences->count] = x >= b->nodes.tasks && b->transfer[x - b->nodes.tasks].to > 0 && !b->watched[x] &&
                                      trli_device_of(b->placed->devices, space)->kind == TRL_KIND_GPU;
    for (int32_t i = 0; i < n; ++i) ((int32_t *)fences->data)[fences->count++] = space > 0 ? space : i + 1;
done:
    return err;
}

/* Workers may order tasks, send what devices have packed, and compute scalars, which launches read when they are
 * called, but may touch no data. */
static bool may_overlap(const builder *b)
{
    const trl_graph *graph = b->logical;
    const trl_policy_handle *handle = graph->handles.data;
    for (int i = 0; i < b->placed->devices->n; ++i)
        if (!b->placed->devices->device[i]->captures) return false;
    if (b->placed->lent) return false; /* a round waits for its devices */
    for (int32_t i = 0; i < b->nodes.n - b->nodes.tasks; ++i)
        if (b->transfer[i].from == 0 || b->transfer[i].to == 0) return false;
    for (int32_t t = 0; t < graph->task_count; ++t)
        for (int32_t a = graph->access_first[t]; a < graph->access_first[t + 1] && b->placed->executor[t] == 0; ++a)
            if (handle[graph->access[a].handle].bytes > 0) return false;
    return b->placed->nregions > 0;
}

/* Whether some launch of each run waits for a node. */
static bool is_followed(const builder *b, int32_t x)
{
    for (int32_t k = b->nodes.after_first[x]; k < b->nodes.after_first[x + 1]; ++k)
        if (is_launched(b, b->nodes.after[k]) && !is_seldom(b, b->nodes.after[k])) return true;
    return false;
}

/* The host waits for the launches that no other one follows: then the devices are done, unless the run failed. The last
 * transfer of a group has the fence for all, which have equal successors. */
static trl_err find_fences(builder *b)
{
    const trli_placed_nodes *nodes = &b->nodes;
    trl_err err = TRL_OK;
    for (int32_t i = 0; i < nodes->n; ++i) {
        const int32_t x = b->order[i];
        if (!is_launched(b, x) || (x >= nodes->tasks && *last_of(b, x) != x)) continue;
        bool wanted = false;
        for (int32_t k = nodes->after_first[x]; k < nodes->after_first[x + 1]; ++k) {
            const int32_t y = nodes->after[k];
            b->watched[x] |= !is_launched(b, y);
            wanted |= is_launched(b, y) && !same_stream(b, x, y);
        }
        if (*last_of(b, x) == x && !b->placed->overlaps && !is_followed(b, x)) b->watched[x] = true;
        if (wanted || b->watched[x]) TRL_TRY(add_fences(b, x));
        b->placed->nwatches += b->watched[x];
    }
    for (int32_t x = nodes->tasks; x < nodes->n; ++x) b->fence[x] = b->fence[*last_of(b, x)];
done:
    return err;
}

/* ---- commands ---- */

static trl_err add_command(builder *b, trli_launch *launch, trli_device_command_kind kind, trli_stream stream,
                           int32_t index)
{
    trli_list *commands = &b->placed->commands;
    trl_err err;
    TRL_TRY(trli_list_reserve(b->ctx, commands, 1, sizeof(trli_device_command), what));
    ((trli_device_command *)commands->data)[commands->count++] =
        (trli_device_command){.kind = (uint8_t)kind, .stream = (uint8_t)stream, .index = index};
    ++launch->n;
done:
    return err;
}

static trl_err add_waits(builder *b, trli_launch *launch, int32_t x)
{
    const trli_placed_nodes *nodes = &b->nodes;
    const int32_t number = b->launch[x];
    trl_err err = TRL_OK;
    for (int32_t k = nodes->before_first[x]; k < nodes->before_first[x + 1]; ++k) {
        const int32_t y = nodes->before[k];
        if (!is_launched(b, y) || same_stream(b, x, y)) continue;
        int32_t *waited = &b->waited[b->fence[y] * TRLI_STREAMS + (int32_t)stream_of(b, x)];
        if (*waited == number + 1) continue;
        *waited = number + 1;
        const trli_device_command_kind kind = is_seldom(b, y) ? TRLI_COMMAND_WAIT_IF_SET : TRLI_COMMAND_WAIT;
        for (int32_t f = 0; f < fences_of(b, y); ++f)
            TRL_TRY(add_command(b, launch, kind, stream_of(b, x), b->fence[y] + f));
    }
done:
    return err;
}

static trl_err add_commands(builder *b, int32_t x)
{
    trli_launch *launch = &b->placed->launch[b->launch[x]];
    const bool call = x < b->nodes.tasks;
    trl_err err = TRL_OK;
    if (launch->n == 0) launch->first = (int32_t)b->placed->commands.count;
    TRL_TRY(add_waits(b, launch, x));
    TRL_TRY(add_command(b, launch, call ? TRLI_COMMAND_CALL : TRLI_COMMAND_COPY, stream_of(b, x),
                        call ? b->placed->ncalls : x - b->nodes.tasks));
    if (call) b->placed->call[b->placed->ncalls++] = x;
    if (b->fence[x] >= 0 && (call || *last_of(b, x) == x))
        TRL_TRY(add_command(b, launch, TRLI_COMMAND_SET, stream_of(b, x), b->fence[x]));
done:
    return err;
}

/* ---- tasks ---- */

static trl_err add_node(builder *b, const trl_task_desc *desc, int32_t logical, int32_t *node)
{
    trl_task task;
    trl_err err;
    TRL_TRY(trl_graph_add_task(b->placed->graph, desc, &task));
    *node = (int32_t)(task & INT32_MAX);
    b->task_of[*node] = logical;
done:
    return err;
}

static trl_err add_wants_and_accesses(builder *b, int32_t t)
{
    const trl_graph *logical = b->logical;
    trl_err err = TRL_OK;
    for (int32_t i = logical->want_first[t]; i < logical->want_first[t + 1]; ++i) {
        const trl_task task = trli_graph_public(b->placed->graph, b->node[t]);
        const trl_resource resource = trli_graph_public(b->placed->graph, logical->want[i].resource);
        TRL_TRY(logical->want[i].mode == TRLI_LOCK ? trl_graph_add_lock(b->placed->graph, task, resource)
                                                   : trl_graph_add_use(b->placed->graph, task, resource));
    }
    for (int32_t i = logical->access_first[t]; i < logical->access_first[t + 1]; ++i) {
        trli_list *accesses = &b->placed->graph->accesses;
        const trl_policy_access *a = &logical->access[i];
        TRL_TRY(trli_list_reserve(b->ctx, accesses, 1, sizeof(trli_added_access), what));
        ((trli_added_access *)accesses->data)[accesses->count++] =
            (trli_added_access){b->node[t], a->handle, a->mode, a->part};
    }
done:
    return err;
}

/* A task for workers as it is. */
static trl_err add_worker_task(builder *b, int32_t t)
{
    const trl_graph *logical = b->logical;
    const trli_task_info *info = &trli_graph_info(logical)[t];
    const trli_task_record *record = &trli_graph_records(logical)[t];
    const unsigned flags = TRL_TASK_POLL | TRL_TASK_ALWAYS | TRL_TASK_SCOPE | TRL_TASK_WHOLE;
    const trl_task_desc desc = {.name = trli_graph_task_name(logical, t),
                                .variant = {[TRL_KIND_CPU] = info->variant[TRL_KIND_CPU]},
                                .data = record->data,
                                .chunks = record->chunks,
                                .flags = record->flags & flags,
                                .cost = info->cost,
                                .type = record->type,
                                .priority = info->priority,
                                .signals = info->signals};
    trl_err err;
    TRL_TRY(add_node(b, &desc, t, &b->node[t]));
    TRL_TRY(add_wants_and_accesses(b, t));
done:
    return err;
}

static const char *name_of(const builder *b, int32_t x)
{
    const trl_policy_handle *handle = b->logical->handles.data;
    if (x < b->nodes.tasks) return trli_graph_task_name(b->logical, x);
    return trli_graph_text(b->logical, handle[b->transfer[x - b->nodes.tasks].handle].name);
}

/* The logical task to name if x fails: the task itself, or the first reader of what a transfer brings. */
static int32_t blamed(const builder *b, int32_t x)
{
    return x < b->nodes.tasks ? x : b->transfer[x - b->nodes.tasks].reader;
}

static trl_err add_launch(builder *b, int32_t x)
{
    trli_launch *launch = &b->placed->launch[b->launch[x]];
    const trl_task_desc desc = {.name = name_of(b, x),
                                .variant = {{trli_placed_launch}},
                                .data = launch,
                                .chunks = 1,
                                .type = b->free_type,
                                .priority = 1};
    if (launch->n > 0) { /* a further member of a region, or a group */
        b->node[x] = b->node[b->head[b->launch[x]]];
        return TRL_OK;
    }
    b->head[b->launch[x]] = x;
    launch->task = blamed(b, x);
    return add_node(b, &desc, -1, &b->node[x]);
}

static trl_err add_watch(builder *b, int32_t x)
{
    trli_placed *p = b->placed;
    trli_watch *watch = &p->watch[p->nwatches++];
    const trl_task_desc desc = {.name = name_of(b, x),
                                .variant = {{trli_placed_watch}},
                                .data = watch,
                                .chunks = 1,
                                .type = b->free_type,
                                .flags = TRL_TASK_POLL | TRL_TASK_ALWAYS};
    const trli_placed_nodes *nodes = &b->nodes;
    int32_t node;
    trl_err err;
    *watch = (trli_watch){p, b->fence[x], fences_of(b, x), blamed(b, x)};
    TRL_TRY(add_node(b, &desc, -1, &node));
    TRL_TRY(trli_graph_add_edge(p->graph, b->node[x], node));
    for (int32_t k = nodes->after_first[x]; k < nodes->after_first[x + 1]; ++k)
        if (!is_launched(b, nodes->after[k])) TRL_TRY(trli_graph_add_edge(p->graph, node, b->node[nodes->after[k]]));
done:
    return err;
}

static bool is_in_body(const builder *b, int32_t x)
{
    return b->logical->call_of && x < b->nodes.tasks && b->logical->call_of[x] != TRLI_NONE;
}

/* A call, whose successors are those of its end. Freeze adds the body. */
static trl_err add_call(builder *b, int32_t number)
{
    const trli_call *call = &trli_graph_calls(b->logical)[number];
    const trli_placed_body *body = &b->placed->body[number];
    trl_call_desc desc = call->desc;
    trl_task task;
    trl_err err;
    desc.name = trli_graph_task_name(b->logical, call->task);
    if (body->of) desc.body = body->of->graph;
    TRL_TRY(trli_graph_put_call(b->placed->graph, &desc, body->of ? body : NULL, &task));
    b->node[call->task] = b->node[call->end] = (int32_t)(task & INT32_MAX);
    b->task_of[b->node[call->task]] = call->task;
    TRL_TRY(add_wants_and_accesses(b, call->task));
done:
    return err;
}

/* Calls have the numbers of those of the logical graph. */
static trl_err add_tasks(builder *b)
{
    trl_err err = TRL_OK;
    for (int32_t c = 0; c < b->logical->calls.count; ++c)
        if (trli_graph_calls(b->logical)[c].around == TRLI_NONE) TRL_TRY(add_call(b, c));
    for (int32_t i = 0; i < b->nodes.n; ++i) {
        const int32_t x = b->order[i];
        if (is_in_body(b, x) || (x < b->nodes.tasks && trli_graph_records(b->logical)[x].flags & TRLI_TASK_CALL))
            continue;
        if (!is_launched(b, x)) {
            TRL_TRY(add_worker_task(b, x));
            continue;
        }
        TRL_TRY(add_launch(b, x));
        TRL_TRY(add_commands(b, x));
    }
    for (int32_t t = 0; t < b->nodes.tasks; ++t) b->placed->node_of[t] = b->node[t];
done:
    return err;
}

/* Whether a node has none in the graph yet: a task of a body that is not the end of the call itself. */
static bool comes_with_body(const builder *b, int32_t x)
{
    if (!is_in_body(b, x)) return false;
    const trli_call *call = &trli_graph_calls(b->logical)[b->logical->call_of[x]];
    return x != call->end || call->around != TRLI_NONE;
}

static trl_err add_edges(builder *b)
{
    const trli_placed_nodes *nodes = &b->nodes;
    trl_err err = TRL_OK;
    for (int32_t x = 0; x < nodes->n; ++x)
        for (int32_t k = nodes->after_first[x]; k < nodes->after_first[x + 1] && !comes_with_body(b, x); ++k) {
            const int32_t y = nodes->after[k];
            if (is_in_body(b, y) || (is_launched(b, x) && !is_launched(b, y))) continue; /* the latter by a watch */
            if (b->node[x] != b->node[y]) TRL_TRY(trli_graph_add_edge(b->placed->graph, b->node[x], b->node[y]));
        }
    b->placed->nwatches = 0;
    for (int32_t x = 0; x < nodes->n; ++x)
        if (b->watched[x]) TRL_TRY(add_watch(b, x));
done:
    return err;
}

/* ---- the rest of the graph ---- */

/* Copy what tasks refer to: handles, resources and phases, with the same numbers. Those of bodies come with them. */
static trl_err copy_names(builder *b)
{
    trl_graph *to = b->placed->graph;
    const trl_graph *from = b->logical;
    const trl_policy_handle *handle = from->handles.data;
    const trli_resource *resource = from->resources.data;
    const trli_phase *phase = from->phases.data;
    trl_err err = TRL_OK;
    for (int64_t i = 0; i < trli_own_handles(from); ++i) {
        const trl_handle_desc desc = {trli_graph_text(from, handle[i].name), handle[i].bytes, handle[i].block,
                                      handle[i].key};
        trl_handle added;
        TRL_TRY(trl_graph_add_handle(to, &desc, &added));
    }
    for (int64_t i = 0; i < trli_own_resources(from); ++i) {
        const trl_resource parent = resource[i].parent < 0 ? TRL_NO_PARENT : trli_graph_public(to, resource[i].parent);
        const trl_resource_desc desc = {trli_graph_text(from, resource[i].name), parent, resource[i].data,
                                        resource[i].bytes};
        trl_resource added;
        TRL_TRY(trl_graph_add_resource(to, &desc, &added));
    }
    for (int64_t i = 0; i < from->phases.count; ++i)
        TRL_TRY(trl_graph_add_phase(to, trli_graph_text(from, phase[i].name), phase[i].first_type, phase[i].end_type));
done:
    return err;
}

static trl_err number_launches(builder *b, int32_t regions)
{
    trli_placed *p = b->placed;
    const int32_t transfers = b->nodes.n - b->nodes.tasks;
    p->nregions = regions;
    p->nlaunches = regions + transfers;
    p->launch = trli_new(b->ctx, (size_t)p->nlaunches + 1, sizeof *p->launch);
    b->head = trli_new(b->ctx, (size_t)p->nlaunches + 1, sizeof *b->head);
    b->last = trli_new(b->ctx, 2 * (size_t)p->nlaunches + 1, sizeof *b->last);
    if (!p->launch || !b->head || !b->last) return trli_no_memory(b->ctx, NULL, "for a placed graph");
    for (int32_t i = 0; i < b->nodes.n; ++i) {
        const int32_t x = b->order[i];
        b->launch[x] = x < b->nodes.tasks ? b->region[x] : regions + b->group[x - b->nodes.tasks];
        if (b->launch[x] < 0) continue;
        p->launch[b->launch[x]] = (trli_launch){.placed = p, .space = b->nodes.space[x]};
        *last_of(b, x) = x;
    }
    return TRL_OK;
}

static trl_err make_arrays(builder *b)
{
    trli_placed *p = b->placed;
    const size_t n = (size_t)b->nodes.n + 1, tasks = (size_t)b->nodes.tasks + 1;
    b->order = trli_new(b->ctx, n, sizeof *b->order);
    b->region = trli_new(b->ctx, n, sizeof *b->region);
    b->group = trli_new(b->ctx, n, sizeof *b->group);
    b->node = trli_new(b->ctx, n, sizeof *b->node);
    b->launch = trli_new(b->ctx, n, sizeof *b->launch);
    b->fence = trli_new(b->ctx, n, sizeof *b->fence);
    b->watched = trli_new(b->ctx, n, sizeof *b->watched);
    p->node_of = trli_new(b->ctx, tasks, sizeof *p->node_of);
    p->call = trli_new(b->ctx, tasks, sizeof *p->call);
    b->task_of = trli_new(b->ctx, 2 * n, sizeof *b->task_of); /* a node and its watch */
    if (!b->order || !b->region || !b->group || !b->node || !b->launch || !b->fence || !b->watched || !p->node_of ||
        !p->call || !b->task_of)
        return trli_no_memory(b->ctx, NULL, "for a placed graph");
    for (size_t x = 0; x < n; ++x) b->fence[x] = b->launch[x] = -1;
    return TRL_OK;
}

static void free_builder(builder *b)
{
    trli_placed_nodes_free(&b->nodes);
    void *arrays[] = {b->task_of, b->executor, b->order,   b->region, b->group, b->node,
                      b->launch,  b->fence,    b->watched, b->head,   b->last,  b->waited};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; ++i) trli_free(arrays[i]);
}

/* If all types are of phases, devices run no task, and what is copied to the host does not wait: a copy could follow a
 * task of a later phase. */
static void find_free_type(builder *b)
{
    const trli_phase *phase = b->logical->phases.data;
    for (b->free_type = 0; b->free_type < TRL_TASK_TYPES; ++b->free_type) {
        bool phased = false;
        for (int64_t i = 0; i < b->logical->phases.count; ++i)
            phased |= b->free_type >= phase[i].first_type && b->free_type < phase[i].end_type;
        if (!phased) return;
    }
    b->free_type = 0;
    b->placed->late = false;
}

/* TRELLIS_GPU_URGENT=off leaves all calls on one stream. */
static bool has_urgent(const builder *b)
{
    const trl_devices *devices = b->placed->devices;
    const char *text = getenv("TRELLIS_GPU_URGENT");
    return (devices->n > 1 || b->logical->flags & TRL_TASK_VARIES) && devices->device[0]->kind == TRL_KIND_GPU &&
           b->logical->flags & TRL_TASK_URGENT && !(text && strcmp(text, "off") == 0);
}

static trl_err freeze(builder *b)
{
    trli_placed *p = b->placed;
    const size_t own = (size_t)p->graph->task_count;
    trl_err err;
    TRL_TRY(trl_graph_freeze(p->graph));
    p->task_of = trli_new(b->ctx, (size_t)p->graph->task_count + 1, sizeof *p->task_of);
    if (!p->task_of) return trli_no_memory(b->ctx, NULL, "for a placed graph");
    memcpy(p->task_of, b->task_of, own * sizeof *p->task_of);
done:
    return err;
}

static trl_err build(builder *b)
{
    trli_placed *p = b->placed;
    int32_t regions;
    trl_err err;
    find_free_type(b);
    p->urgent = has_urgent(b);
    p->alone = trli_placed_alone(p);
    TRL_TRY(trli_placed_nodes_find(b->logical, b->executor, &p->transfers, p->late, &b->nodes));
    b->transfer = p->transfers.list.data;
    TRL_TRY(make_arrays(b));
    TRL_TRY(trli_regions_find(b->ctx, &b->nodes, b->order, b->region, &regions));
    TRL_TRY(trli_groups_find(p, &b->nodes, b->order, b->group));
    TRL_TRY(number_launches(b, regions));
    p->joint = trli_new(b->ctx, (size_t)b->nodes.n * (size_t)p->devices->n + 1, sizeof *p->joint);
    if (!p->joint) TRL_TRY(trli_no_memory(b->ctx, NULL, "for a placed graph"));
    p->overlaps = may_overlap(b);
    p->light = trli_placed_is_light(p);
    TRL_TRY(find_fences(b));
    b->waited = trli_new(b->ctx, (size_t)p->fences.count * TRLI_STREAMS + 1, sizeof *b->waited);
    p->watch = trli_new(b->ctx, (size_t)p->nwatches + 1, sizeof *p->watch);
    if (!b->waited || !p->watch) TRL_TRY(trli_no_memory(b->ctx, NULL, "for a placed graph"));
    TRL_TRY(trl_graph_create(b->ctx, b->logical->name, &p->graph));
    p->graph->serial = b->logical->serial; /* the logical graph keeps the names */
    p->graph->placed = p;
    TRL_TRY(copy_names(b));
    TRL_TRY(add_tasks(b));
    TRL_TRY(add_edges(b));
    if (b->logical->calls.count == 0 && !p->lent) TRL_TRY(trli_placed_relaunches_create(p, &b->nodes));
    TRL_TRY(freeze(b));
    TRL_TRY(trli_placed_data_find(p));
    TRL_TRY(trli_placed_bodies_join(p));
done:
    return err;
}

/* What is lent to a body is in all spaces where it is read, and stays as it is. */
static trl_err find_transfers(builder *b, const trli_platform *platform)
{
    trli_placed *p = b->placed;
    trl_graph *logical = b->logical;
    trli_place_graph view = trli_graph_to_place(logical);
    const uint16_t everywhere = (uint16_t)((1u << platform->executors) - 1);
    uint16_t *called = NULL, *valid = trli_new(b->ctx, (size_t)logical->handles.count + 1, sizeof *valid);
    trl_err err = TRL_OK;
    if (!valid) return trli_no_memory(b->ctx, NULL, "for a placed graph");
    for (int64_t h = 0; h < logical->handles.count; ++h)
        valid[h] = p->lent && p->lent[h] ? everywhere : 1u << TRLI_ANYWHERE;
    TRL_TRY(trli_calls_called(logical, p->executor, &called));
    view.valid = valid;
    view.called = called;
    TRL_TRY(trli_transfers_find(b->ctx, &view, platform, b->executor, &p->transfers));
done:
    trli_free(valid);
    trli_free(called);
    return err;
}

trl_err trli_placed_create_in(trl_graph *logical, const trl_devices *devices, const trli_platform *platform,
                              const uint8_t *executor, bool late, bool *lent, trli_placed **placed)
{
    trl_context *ctx = logical->ctx;
    builder b = {.logical = logical, .ctx = ctx};
    const size_t own = (size_t)trli_own_tasks(logical), n = (size_t)logical->task_count;
    trl_err err = TRL_OK;
    *placed = NULL;
    trli_placed *p = b.placed = trli_new(ctx, 1, sizeof *p);
    if (!p) {
        trli_free(lent);
        return trli_no_memory(ctx, NULL, "for a placed graph");
    }
    p->logical = logical;
    p->devices = devices;
    p->late = late;
    p->lent = lent;
    p->executor = trli_new(ctx, n + 1, sizeof *p->executor);
    b.executor = trli_new(ctx, n + 1, sizeof *b.executor);
    if (!p->executor || !b.executor) TRL_TRY(trli_no_memory(ctx, NULL, "for a placed graph"));
    memcpy(p->executor, executor, n * sizeof *executor);
    memcpy(b.executor, executor, own * sizeof *executor);
    TRL_TRY(find_transfers(&b, platform));
    TRL_TRY(trli_placed_bodies_create(p, platform));
    TRL_TRY(build(&b));
    *placed = p;
    p = NULL;
done:
    free_builder(&b);
    trli_placed_destroy(&p);
    return err;
}

trl_err trli_placed_create(trl_graph *logical, const trl_devices *devices, const trli_platform *platform,
                           const uint8_t *executor, bool late, trli_placed **placed)
{
    return trli_placed_create_in(logical, devices, platform, executor, late, NULL, placed);
}

void trli_placed_destroy(trli_placed **placed)
{
    trli_placed *p = *placed;
    *placed = NULL;
    if (!p) return;
    trl_graph_destroy(&p->graph);
    trli_placed_bodies_destroy(p);
    trli_placed_relaunches_destroy(p);
    trli_transfers_free(&p->transfers);
    trli_list_free(&p->commands);
    trli_list_free(&p->fences);
    trli_list_free(&p->provisions);
#ifdef TRL_POISON
    trli_free(p->part);
#endif
    void *arrays[] = {p->executor, p->node_of, p->task_of, p->launch, p->joint,
                      p->watch,    p->call,    p->changed, p->lent,   p};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; ++i) trli_free(arrays[i]);
}
