/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include "calls_impl.h"

#include <float.h>
#include <stdio.h>
#include <string.h>

#include "engine_impl.h"
#include "memory_impl.h"
#include "nodes_impl.h"
#include "placed_calls_impl.h"

static const char build_memory[] = "task graph";

/* ---- what the two tasks of a call do ---- */

static trli_call_run *state_of(const trli_call *call, const trl_task_args *args)
{
    trli_run_state *run = args->run->run;
    return &run->call[call - trli_graph_calls(run->graph)];
}

static trl_err begin_call(void *data, const trl_task_args *args, bool *done)
{
    const trli_call *call = data;
    trli_call_run *state = state_of(call, args);
    (void)done;
    trl_err err = TRL_OK;
    state->frame = args->frame;
    state->rounds = 0;
    state->again = false;
    if (call->desc.begin) err = call->desc.begin(call->desc.data, args, &state->frame);
    const trl_err begun = call->placed ? trli_placed_call_begin(call, args) : TRL_OK;
    return err != TRL_OK ? err : begun;
}

static trl_err end_round(void *data, const trl_task_args *args, bool *done)
{
    const trli_call *call = data;
    const trl_graph *graph = args->run->run->graph;
    trli_call_run *state = state_of(call, args);
    bool again = false;
    trl_err err = TRL_OK;
    (void)done;
    ++state->rounds;
    if (call->placed) trli_placed_round_end(state->placed, state, args->failed);
    if (!call->desc.again) return TRL_OK;
    err = call->desc.again(call->desc.data, args, state->rounds, &again);
    state->again = again && state->rounds < call->desc.rounds && (err == TRL_OK || call->desc.flags & TRL_TASK_ALWAYS);
    if (err != TRL_OK || state->again == again) return err;
    return trl_fail(graph->ctx, TRL_ERR_NUMERICS, NULL,
                    "call '%s' of graph '%s' is not over after %lld rounds, the most that it may have",
                    trli_graph_task_name(graph, call->task), graph->name, (long long)state->rounds);
}

/* ---- building ---- */

static trl_err check_desc(const trl_graph *graph, const trl_call_desc *desc)
{
    const char *fault = NULL;
    if (!desc->name || !desc->body)
        fault = "it needs a name and a body";
    else if (!desc->body->frozen)
        fault = "its body is not frozen; call trl_graph_freeze for it first";
    else if (desc->body->ctx != graph->ctx)
        fault = "its body belongs to another context";
    else if (desc->body->phases.count > 0)
        fault = "its body has phases; give the body's tasks dependencies instead";
    else if (desc->body->placed)
        fault = "its body stands for another graph";
    else if (desc->again && desc->rounds < 1)
        fault = "it may go round, and 'rounds' does not say how often at most";
    else if (desc->flags & ~(unsigned)TRL_TASK_ALWAYS)
        fault = "of flags it may have TRL_TASK_ALWAYS alone";
    if (!fault) return TRL_OK;
    return trl_fail(graph->ctx, TRL_ERR_USAGE, NULL, "call '%s' of graph '%s' is refused: %s",
                    desc->name ? desc->name : "", graph->name, fault);
}

/* After an error, too: tasks of the body that run always find their frame. */
trl_err trli_graph_put_call(trl_graph *graph, const trl_call_desc *desc, const trli_placed_body *placed, trl_task *task)
{
    trl_err err;
    const trl_task_desc begin = {.name = desc->name,
                                 .variant = {[TRL_KIND_CPU] = {begin_call}},
                                 .chunks = 1,
                                 .flags = TRL_TASK_ALWAYS,
                                 .type = desc->type,
                                 .priority = desc->priority};
    TRL_TRY(trli_list_reserve(graph->ctx, &graph->calls, 1, sizeof(trli_call), build_memory));
    TRL_TRY(trl_graph_add_task(graph, &begin, task));
    const int32_t index = (int32_t)(*task & INT32_MAX);
    trli_graph_records(graph)[index].flags |= TRLI_TASK_CALL;
    trli_graph_calls(graph)[graph->calls.count++] = (trli_call){
        .desc = *desc, .task = index, .around = TRLI_NONE, .first = TRLI_NONE, .end = TRLI_NONE, .placed = placed};
done:
    return err;
}

trl_err trl_graph_add_call(trl_graph *graph, const trl_call_desc *desc, trl_task *task)
{
    trl_err err;
    TRL_TRY(trli_graph_check_open(graph));
    TRL_TRY(check_desc(graph, desc));
    TRL_TRY(trli_graph_put_call(graph, desc, NULL, task));
done:
    return err;
}

/* ---- freezing ---- */

/* Names of a body's tasks in the graph: 'call/task'. */
static trl_err add_name(trl_graph *graph, const char *call, const char *name, int64_t *at)
{
    trl_err err;
    char *text = NULL;
    void *memory;
    const size_t bytes = strlen(call) + strlen(name) + 2;
    TRL_TRY(trl_memory_alloc(graph->ctx, bytes, build_memory, &memory));
    text = memory;
    snprintf(text, bytes, "%s/%s", call, name);
    TRL_TRY(trli_graph_add_name(graph, text, at));
done:
    memory = text;
    trl_memory_free(graph->ctx, &memory);
    return err;
}

/* Tasks of one kind follow each other and have one name. */
static trl_err copy_tasks(trl_graph *graph, const trli_call *call)
{
    trl_err err = TRL_OK;
    const trl_graph *body = call->desc.body;
    const trli_task_info *info = trli_graph_info(body);
    char *name = NULL;
    size_t bytes = strlen(trli_graph_task_name(graph, call->task)) + 1;
    void *memory;
    TRL_TRY(trl_memory_alloc(graph->ctx, bytes, build_memory, &memory));
    name = strcpy(memory, trli_graph_task_name(graph, call->task)); /* the list of names moves as it grows */
    int64_t at = 0, last = -1;
    for (int32_t t = 0; t < body->task_count; ++t) {
        const int32_t index = graph->task_count;
        if (info[t].name != last) TRL_TRY(add_name(graph, name, trli_graph_task_name(body, t), &at));
        last = info[t].name;
        trli_graph_records(graph)[index] = trli_graph_records(body)[t];
        trli_graph_records(graph)[index].flags &= (uint16_t)~TRLI_TASK_WANTS;
        trli_graph_info(graph)[index] = info[t];
        trli_graph_info(graph)[index].name = at;
        graph->records.count = graph->info.count = ++graph->task_count;
    }
    graph->polls += body->polls;
    graph->scopes += body->scopes;
    graph->kinds |= body->kinds;
    graph->flags |= body->flags;
    graph->costs |= body->costs;
done:
    memory = name;
    trl_memory_free(graph->ctx, &memory);
    return err;
}

static trl_err add_end(trl_graph *graph, const trli_call *call)
{
    trl_err err;
    trl_task end;
    int64_t name;
    const trli_task_record *begin = &trli_graph_records(graph)[call->task];
    const trl_task_desc desc = {.name = "end of a round",
                                .variant = {[TRL_KIND_CPU] = {end_round}},
                                .chunks = 1,
                                .flags = call->desc.flags,
                                .type = begin->type,
                                .priority = call->desc.priority};
    TRL_TRY(trl_graph_add_task(graph, &desc, &end));
    TRL_TRY(add_name(graph, trli_graph_task_name(graph, call->task), "end of a round", &name));
    trli_graph_info(graph)[call->end].name = name;
    trli_graph_records(graph)[call->end].flags |= TRLI_TASK_END;
done:
    return err;
}

static trl_err copy_edges(trl_graph *graph, const trli_call *call)
{
    trl_err err;
    const trl_graph *body = call->desc.body;
    const trli_task_record *record = trli_graph_records(body);
    TRL_TRY(trli_graph_add_edge(graph, call->task, call->end));
    for (int32_t t = 0; t < body->task_count; ++t) {
        if (body->predecessors[t] == 0) TRL_TRY(trli_graph_add_edge(graph, call->task, call->first + t));
        if (record[t].first == record[t].end) TRL_TRY(trli_graph_add_edge(graph, call->first + t, call->end));
        for (int32_t i = record[t].first; i < record[t].end; ++i)
            TRL_TRY(trli_graph_add_edge(graph, call->first + t, call->first + body->successors[i]));
    }
done:
    return err;
}

static trl_err copy_accesses(trl_graph *graph, const trli_call *call)
{
    trl_err err = TRL_OK;
    const trl_graph *body = call->desc.body;
    const int64_t n = body->handles.count, accesses = body->access_first[body->task_count];
    TRL_TRY(trli_list_reserve(graph->ctx, &graph->handles, n, sizeof(trl_policy_handle), build_memory));
    TRL_TRY(trli_list_reserve(graph->ctx, &graph->accesses, accesses, sizeof(trli_added_access), build_memory));
    for (int64_t h = 0; h < n; ++h) {
        trl_policy_handle handle = ((const trl_policy_handle *)body->handles.data)[h];
        TRL_TRY(trli_graph_add_name(graph, trli_graph_text(body, handle.name), &handle.name));
        ((trl_policy_handle *)graph->handles.data)[graph->handles.count++] = handle;
    }
    for (int32_t t = 0; t < body->task_count; ++t)
        for (int32_t a = body->access_first[t]; a < body->access_first[t + 1]; ++a)
            ((trli_added_access *)graph->accesses.data)[graph->accesses.count++] = (trli_added_access){
                call->first + t, call->handles + body->access[a].handle, body->access[a].mode, body->access[a].part};
done:
    return err;
}

/* Two calls may have one body, so the data of its resources, which were checked with it, are not those of siblings. */
static trl_err copy_resources(trl_graph *graph, const trli_call *call)
{
    trl_err err = TRL_OK;
    const trl_graph *body = call->desc.body;
    TRL_TRY(
        trli_list_reserve(graph->ctx, &graph->resources, body->resources.count, sizeof(trli_resource), build_memory));
    for (int64_t r = 0; r < body->resources.count; ++r) {
        trli_resource resource = ((const trli_resource *)body->resources.data)[r];
        if (resource.parent >= 0) resource.parent += call->resources;
        resource.data = NULL;
        resource.bytes = 0;
        TRL_TRY(trli_graph_add_name(graph, trli_graph_text(body, resource.name), &resource.name));
        ((trli_resource *)graph->resources.data)[graph->resources.count++] = resource;
    }
    for (int32_t t = 0; t < body->task_count; ++t)
        for (int32_t i = body->want_first[t]; i < body->want_first[t + 1]; ++i) {
            if (body->want[i].mode > TRLI_LOCK) continue; /* of one above, which follows */
            TRL_TRY(trli_list_reserve(graph->ctx, &graph->wishes, 1, sizeof(trli_wish), build_memory));
            ((trli_wish *)graph->wishes.data)[graph->wishes.count++] =
                (trli_wish){call->first + t, call->resources + body->want[i].resource, body->want[i].mode};
        }
done:
    return err;
}

/* The body's own calls, whose bodies it has copied. */
static trl_err copy_calls(trl_graph *graph, int32_t around)
{
    trl_err err;
    const trl_graph *body = trli_graph_calls(graph)[around].desc.body;
    const int32_t base = (int32_t)graph->calls.count;
    TRL_TRY(trli_list_reserve(graph->ctx, &graph->calls, body->calls.count, sizeof(trli_call), build_memory));
    const trli_call outer = trli_graph_calls(graph)[around];
    for (int64_t c = 0; c < body->calls.count; ++c) {
        trli_call call = trli_graph_calls(body)[c];
        call.task += outer.first;
        call.first += outer.first;
        call.end += outer.first;
        call.handles += outer.handles;
        call.resources += outer.resources;
        call.around = call.around == TRLI_NONE ? around : base + call.around;
        trli_graph_calls(graph)[graph->calls.count++] = call;
    }
done:
    return err;
}

/* The edges added last come from `accesses` of calls, too: what follows a call follows its end. */
static void follow_ends(trl_graph *graph, int32_t calls)
{
    trli_dependency *edge = graph->edges.data;
    trli_task_record *record = trli_graph_records(graph);
    for (int32_t c = 0; c < calls; ++c) record[trli_graph_calls(graph)[c].task].first = c;
    for (int64_t i = 0; i < graph->edges.count; ++i)
        if (record[edge[i].before].flags & TRLI_TASK_CALL)
            edge[i].before = trli_graph_calls(graph)[record[edge[i].before].first].end;
}

trl_err trli_calls_list(trl_graph *graph)
{
    trl_err err;
    void *memory;
    const size_t n = (size_t)graph->task_count + 1;
    TRL_TRY(trl_memory_alloc(graph->ctx, n * sizeof *graph->call_of, build_memory, &memory));
    graph->call_of = memory;
    for (size_t t = 0; t < n; ++t) graph->call_of[t] = TRLI_NONE;
    for (int32_t c = 0; c < graph->calls.count; ++c) {
        trli_call *call = &trli_graph_calls(graph)[c];
        for (int32_t t = call->first; t <= call->end; ++t) graph->call_of[t] = c;
        trli_graph_records(graph)[call->task].data = trli_graph_records(graph)[call->end].data = call;
    }
done:
    return err;
}

/* Where the bodies will lie. */
static trl_err find_places(trl_graph *graph, int32_t calls)
{
    trl_err err;
    int64_t tasks = graph->task_count;
    for (int32_t c = 0; c < calls; ++c) {
        trli_call *call = &trli_graph_calls(graph)[c];
        const int64_t n = call->desc.body->task_count;
        if (tasks + n + 1 > INT32_MAX / 2)
            return trl_fail(graph->ctx, TRL_ERR_INPUT, NULL, "graph '%s' has more than %d tasks; use fewer patches",
                            graph->name, INT32_MAX / 2);
        call->first = (int32_t)tasks;
        call->end = (int32_t)(tasks + n);
        tasks += n + 1;
    }
    const int64_t more = tasks - graph->task_count;
    TRL_TRY(trli_list_reserve(graph->ctx, &graph->records, more, sizeof(trli_task_record), build_memory));
    TRL_TRY(trli_list_reserve(graph->ctx, &graph->info, more, sizeof(trli_task_info), build_memory));
done:
    return err;
}

trl_err trli_calls_expand(trl_graph *graph)
{
    trl_err err;
    const int32_t calls = (int32_t)graph->calls.count;
    if (calls == 0) return TRL_OK;
    graph->sealed = false; /* for the ends, which are added */
    TRL_TRY(find_places(graph, calls));
    follow_ends(graph, calls);
    for (int32_t c = 0; c < calls; ++c) {
        trli_call *call = &trli_graph_calls(graph)[c];
        call->handles = (int32_t)graph->handles.count;
        call->resources = (int32_t)graph->resources.count;
        TRL_TRY(copy_tasks(graph, call));
        TRL_TRY(add_end(graph, call));
        TRL_TRY(copy_edges(graph, call));
        TRL_TRY(copy_accesses(graph, call));
        TRL_TRY(copy_resources(graph, call));
    }
    for (int32_t c = 0; c < calls; ++c) TRL_TRY(copy_calls(graph, c));
    TRL_TRY(trli_calls_list(graph));
done:
    graph->sealed = true;
    return err;
}

/* ---- calls that may not go on at once ---- */

/* Whether a call is in the body of another one. */
static bool is_within(const trl_graph *graph, int32_t inner, int32_t outer)
{
    while (inner != TRLI_NONE && inner != outer) inner = trli_graph_calls(graph)[inner].around;
    return inner == outer;
}

/* Mark the tasks that follow one of them. */
static void mark_followers(const trl_graph *graph, int32_t task, bool *follows)
{
    const trli_task_record *record = trli_graph_records(graph);
    memset(follows, 0, (size_t)graph->task_count);
    follows[task] = true;
    for (int32_t k = 0; k < graph->task_count; ++k) {
        const int32_t t = graph->order[k];
        for (int32_t i = record[t].first; follows[t] && i < record[t].end; ++i) follows[graph->successors[i]] = true;
    }
}

static trl_err check_pair(const trl_graph *graph, const trli_call *one, const trli_call *other)
{
    const char *why = one->desc.apart(one->desc.data, other->desc.data, one->around == other->around);
    if (!why) return TRL_OK;
    return trl_fail(graph->ctx, TRL_ERR_USAGE, NULL,
                    "calls '%s' and '%s' of graph '%s' may not go on at once: %s; add a dependency between them",
                    trli_graph_task_name(graph, one->task), trli_graph_task_name(graph, other->task), graph->name, why);
}

/* ordered: [calls][calls] whether one follows the end of another one. */
static trl_err check_pairs(const trl_graph *graph, const bool *ordered)
{
    const trli_call *call = trli_graph_calls(graph);
    const int32_t n = (int32_t)graph->calls.count;
    trl_err err = TRL_OK;
    for (int32_t c = 0; c < n; ++c)
        for (int32_t d = 0; d < c; ++d) {
            if (!call[c].desc.apart || call[c].desc.apart != call[d].desc.apart) continue;
            if (is_within(graph, c, d) || is_within(graph, d, c)) continue;
            if (!ordered[c * n + d] && !ordered[d * n + c]) TRL_TRY(check_pair(graph, &call[d], &call[c]));
        }
done:
    return err;
}

trl_err trli_calls_check_apart(const trl_graph *graph)
{
    const trli_call *call = trli_graph_calls(graph);
    const int32_t n = (int32_t)graph->calls.count;
    bool *follows = NULL, *ordered = NULL, any = false;
    trl_err err = TRL_OK;
    for (int32_t c = 0; c < n; ++c) any |= call[c].desc.apart != NULL;
    if (!any || n == 1 || graph->placed) return TRL_OK;
    follows = trli_new(graph->ctx, (size_t)graph->task_count, sizeof *follows);
    ordered = trli_new(graph->ctx, (size_t)n * (size_t)n, sizeof *ordered);
    if (!follows || !ordered) TRL_TRY(trli_no_memory(graph->ctx, NULL, "for the calls of graph '%s'", graph->name));
    for (int32_t c = 0; c < n; ++c) {
        mark_followers(graph, call[c].end, follows);
        for (int32_t d = 0; d < n; ++d) ordered[d * n + c] = follows[call[d].task];
    }
    err = check_pairs(graph, ordered);
done:
    trli_free(follows);
    trli_free(ordered);
    return err;
}

bool trli_calls_phase_apart(const trl_graph *graph, int32_t task)
{
    if (!graph->call_of || graph->call_of[task] == TRLI_NONE) return false;
    const trli_call *call = &trli_graph_calls(graph)[graph->call_of[task]];
    return task != call->end || call->around != TRLI_NONE;
}

/* ---- runs ---- */

trl_err trli_calls_create(trli_run_state *run)
{
    trl_err err;
    void *memory;
    const size_t n = (size_t)run->graph->calls.count;
    if (n == 0) return TRL_OK;
    TRL_TRY(trl_memory_alloc(run->graph->ctx, n * sizeof *run->call, "calls", &memory));
    run->call = memset(memory, 0, n * sizeof *run->call);
done:
    return err;
}

void trli_calls_destroy(trli_run_state *run)
{
    void *memory = run->call;
    trl_memory_free(run->graph->ctx, &memory);
    run->call = NULL;
}

int32_t trli_call_of(const trli_run_state *run, int32_t task)
{
    if (!run->call) return TRLI_NONE;
    return task < run->view.tasks ? run->graph->call_of[task] : trli_node_of(run, task)->call;
}

int32_t trli_call_end(const trli_run_state *run, int32_t task)
{
    const int32_t c = trli_call_of(run, task);
    return c == TRLI_NONE ? TRLI_NONE : trli_graph_calls(run->graph)[c].end;
}

void *trli_call_frame(const trli_run_state *run, int32_t task)
{
    const int32_t c = trli_call_of(run, task);
    return c == TRLI_NONE ? run->frame : run->call[c].frame;
}

const trli_call *trli_call_named(const trli_run_state *run, int32_t task, int64_t name)
{
    for (int32_t c = trli_call_of(run, task); c != TRLI_NONE; c = trli_graph_calls(run->graph)[c].around) {
        const trli_call *call = &trli_graph_calls(run->graph)[c];
        if (call->desc.body->serial == (uint32_t)(name >> 32)) return call;
    }
    return NULL;
}

trl_err trli_run_task(const trli_run_state *run, int32_t here, trl_task name, int32_t *task)
{
    const trli_call *call = trli_call_named(run, here, name);
    const trli_placed *placed = call ? (call->placed ? call->placed->of : NULL) : run->graph->placed;
    const trl_err err = trli_graph_task(placed ? placed->logical : call ? call->desc.body : run->graph, name, task);
    if (err != TRL_OK) return err;
    if (placed) *task = placed->node_of[*task];
    if (call) *task += call->first;
    return TRL_OK;
}

trl_err trli_run_resource(const trli_run_state *run, int32_t here, trl_resource name, int32_t *resource)
{
    const trli_call *call = trli_call_named(run, here, name);
    const trl_err err = trli_graph_resource(call ? call->desc.body : run->graph, name, resource);
    if (call) *resource += call->resources;
    return err;
}

int32_t trli_run_handle(const trli_run_state *run, int32_t here, trl_handle name)
{
    const trli_call *call = trli_call_named(run, here, name);
    const trl_graph *graph = call ? call->desc.body : run->graph;
    if (!trli_graph_owns(graph, name, graph->handles.count)) return TRLI_NONE;
    return (int32_t)(name & INT32_MAX) + (call ? call->handles : 0);
}

/* Relaxed: the round's tasks count before any of them can be complete, while the end is not yet counted. */
static void begin_round(trli_run_state *run, const trli_call *call)
{
    const int64_t tasks = call->end - call->first + 1;
    atomic_fetch_add_explicit(&run->remaining, tasks, memory_order_relaxed);
    atomic_fetch_add_explicit(&run->repeated, tasks, memory_order_relaxed);
    for (int32_t i = 0; i < run->nsignalled; ++i) {
        const int32_t t = run->signalled[i];
        if (t < call->first || t >= call->end) continue;
        atomic_store_explicit(&run->signals_left[i], trli_graph_info(run->graph)[t].signals, memory_order_relaxed);
    }
}

int32_t trli_call_continue(trli_run_state *run, trli_worker *worker, int32_t end)
{
    const int32_t c = run->graph->call_of[end];
    const trli_call *call = &trli_graph_calls(run->graph)[c];
    const trli_want *want;
    if (run->call[c].again) {
        run->call[c].again = false;
        begin_round(run, call);
        if (call->placed) trli_placed_round_again(run, c, end);
        return call->task;
    }
    if (call->placed) trli_placed_call_end(run, c, end);
    if (trli_record(run, call->task)->flags & TRLI_TASK_WANTS) {
        const int32_t n = trli_wants(run, call->task, &want);
        trli_locks_release(run, worker, n, want);
    }
    return end;
}
