/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include "placed_calls_impl.h"

#include <stdlib.h>
#include <string.h>

static const char what[] = "placed graph";

/* ---- making ---- */

static int compare_spots(const void *x, const void *y)
{
    const trli_spot *a = x, *b = y;
    return (a->key > b->key) - (a->key < b->key);
}

static const trli_spot *find_spot(const trli_list *spots, int64_t key)
{
    const trli_spot wanted = {.key = key};
    if (spots->count == 0) return NULL;
    return bsearch(&wanted, spots->data, (size_t)spots->count, sizeof wanted, compare_spots);
}

/* The data that a call writes, by key. */
static trl_err find_found(const trli_placed *p, const trli_call *call, trli_placed_body *body)
{
    const trl_graph *graph = p->logical;
    trli_list *found = &body->found;
    trl_err err = TRL_OK;
    for (int32_t a = graph->access_first[call->task]; a < graph->access_first[call->task + 1]; ++a) {
        const trl_policy_handle *handle = trli_placed_handle(p, graph->access[a].handle);
        if (handle->bytes == 0 || graph->access[a].mode == TRL_READ) continue;
        TRL_TRY(trli_list_reserve(graph->ctx, found, 1, sizeof(trli_spot), what));
        ((trli_spot *)found->data)[found->count++] = (trli_spot){handle->key, p->transfers.found[a]};
    }
    if (found->count > 0) qsort(found->data, (size_t)found->count, sizeof(trli_spot), compare_spots);
done:
    return err;
}

/* All other data of the body is only read. */
static trl_err find_lent(const trl_graph *logical, const trli_list *found, bool **result)
{
    const trl_policy_handle *handle = logical->handles.data;
    bool *lent = *result = trli_new(logical->ctx, (size_t)logical->handles.count + 1, sizeof *lent);
    if (!lent) return trli_no_memory(logical->ctx, NULL, "for a placed graph");
    for (int64_t h = 0; h < logical->handles.count; ++h)
        lent[h] = handle[h].bytes > 0 && !find_spot(found, handle[h].key);
    return TRL_OK;
}

static trl_err create_body(trli_placed *p, const trli_platform *platform, const trli_call *call, trli_placed_body *body)
{
    trl_err err;
    bool *lent = NULL;
    body->first = call->first;
    TRL_TRY(find_found(p, call, body));
    TRL_TRY(find_lent(call->desc.body, &body->found, &lent));
    err = trli_placed_create_in(call->desc.body, p->devices, platform, p->executor + call->first, p->late, lent,
                                &body->of);
    lent = NULL; /* is the body's */
done:
    trli_free(lent);
    return err;
}

trl_err trli_placed_bodies_create(trli_placed *p, const trli_platform *platform)
{
    trl_err err = TRL_OK;
    const int32_t n = p->nbodies = (int32_t)p->logical->calls.count;
    if (n == 0) return TRL_OK;
    p->body = trli_new(p->logical->ctx, (size_t)n, sizeof *p->body);
    if (!p->body) {
        p->nbodies = 0;
        return trli_no_memory(p->logical->ctx, NULL, "for a placed graph");
    }
    for (int32_t c = 0; c < n; ++c) {
        const trli_call *call = &trli_graph_calls(p->logical)[c];
        if (call->around == TRLI_NONE && trli_call_is_open(p->logical, c))
            TRL_TRY(create_body(p, platform, call, &p->body[c]));
    }
done:
    return err;
}

void trli_placed_bodies_destroy(trli_placed *p)
{
    for (int32_t c = 0; c < p->nbodies; ++c) {
        trli_placed_destroy(&p->body[c].of);
        trli_list_free(&p->body[c].found);
        trli_list_free(&p->body[c].provisions);
    }
    trli_free(p->body);
    p->body = NULL;
}

int32_t trli_placed_regions(const trli_placed *p)
{
    int32_t regions = p->nregions;
    for (int32_t c = 0; c < p->nbodies; ++c)
        if (p->body[c].of) regions += trli_placed_regions(p->body[c].of);
    return regions;
}

/* A body lies in the graph in a row, as in the logical one, but with the tasks of a placed graph. */
static void join_tasks(trli_placed *p, int32_t number)
{
    const trli_call *from = &trli_graph_calls(p->logical)[number], *to = &trli_graph_calls(p->graph)[number];
    const trli_placed *of = p->body[number].of;
    for (int32_t i = 0; to->first + i < to->end; ++i) {
        const int32_t t = of ? of->task_of[i] : i;
        p->task_of[to->first + i] = t < 0 ? -1 : from->first + t;
    }
    for (int32_t t = 0; from->first + t < from->end; ++t)
        p->node_of[from->first + t] = to->first + (of ? of->node_of[t] : t);
    p->task_of[to->end] = from->end;
    p->node_of[from->end] = to->end;
}

static trl_err find_provisions(const trli_placed *p, trli_placed_body *body)
{
    const trli_provision *all = p->provisions.data;
    trli_list *list = &body->provisions;
    trl_err err = TRL_OK;
    for (int64_t i = 0; i < p->provisions.count; ++i) {
        if (!find_spot(&body->found, trli_placed_handle(p, all[i].handle)->key)) continue;
        TRL_TRY(trli_list_reserve(p->logical->ctx, list, 1, sizeof *all, what));
        ((trli_provision *)list->data)[list->count++] = all[i];
    }
done:
    return err;
}

trl_err trli_placed_bodies_join(trli_placed *p)
{
    trl_err err = TRL_OK;
    if (!p->body) return TRL_OK;
    for (int32_t c = 0; c < p->logical->calls.count; ++c) {
        if (trli_graph_calls(p->logical)[c].around != TRLI_NONE) continue;
        join_tasks(p, c);
        TRL_TRY(find_provisions(p, &p->body[c]));
    }
done:
    return err;
}

/* ---- runs ---- */

int32_t trli_placed_base(const trli_run_state *run, int32_t call)
{
    const trli_call *calls = trli_graph_calls(run->graph);
    int32_t base = 0;
    for (int32_t c = call; c != TRLI_NONE; c = calls[c].around) base += calls[c].placed->first;
    return base;
}

/* Functions of a call may have exchanged memory of data that it writes. */
static trl_err provide(const trli_placed *p, const trli_list *provisions, bool lent, void *frame)
{
    const trl_graph_memory *memory = &p->logical->memory;
    const trli_provision *all = provisions->data;
    trl_err err = TRL_OK;
    for (int64_t i = 0; i < provisions->count && err == TRL_OK; ++i) {
        if (lent && p->lent[all[i].handle]) continue;
        err = memory->provide(memory->data, frame, trli_placed_handle(p, all[i].handle)->key, all[i].space);
        if (err == TRL_ERR_MEMORY)
            err = trl_fail(p->logical->ctx, err, NULL, "device %d (%s) has no memory for the data of '%s'",
                           all[i].space - 1, trli_device_of(p->devices, all[i].space)->info.name, p->logical->name);
    }
    return err;
}

/* The memory of a frame is provided by one thread at a time. */
static trl_err provide_alone(const trli_run_state *run, const trli_placed *p, const trli_list *provisions, bool lent,
                             void *frame)
{
    pthread_mutex_t *placing = &run->graph->placed->logical->placing;
    pthread_mutex_lock(placing);
    const trl_err err = provide(p, provisions, lent, frame);
    pthread_mutex_unlock(placing);
    return err;
}

/* After an error devices do nothing in a round, though it may come. */
static trl_err begin_round(trli_placed_run *state, trli_call_run *call, bool failed)
{
    trl_err err = TRL_OK;
    trli_placed_round_start(state);
    if (failed) return TRL_OK;
    err = provide_alone(state->run, state->of, &state->of->provisions, true, state->frame);
    call->under_way = err == TRL_OK;
    return err;
}

/* As the plan says, of what has a value. */
static void set_found(const trli_placed_body *body, void *frame)
{
    const trl_graph_memory *memory = &body->of->logical->memory;
    const trli_spot *spot = body->found.data;
    const uint32_t anywhere = 1u << TRLI_ANYWHERE;
    for (int64_t i = 0; i < body->found.count; ++i) {
        uint32_t *valid = spot[i].spaces ? memory->valid(memory->data, frame, spot[i].key) : NULL;
        const uint32_t now = spot[i].spaces & ~anywhere;
        if (!valid) continue;
        if (!(spot[i].spaces & anywhere))
            *valid = now;
        else if (*valid)
            *valid |= now;
    }
}

trl_err trli_placed_call_begin(const trli_call *call, const trl_task_args *args)
{
    trli_run_state *run = args->run->run;
    trli_call_run *state = &run->call[call - trli_graph_calls(run->graph)];
    state->placed->frame = state->frame;
    if (state->frame != args->frame) {
        trli_placed_round_start(state->placed);
        return trl_fail(run->graph->ctx, TRL_ERR_USAGE, NULL,
                        "call '%s' of graph '%s' says by 'in_frame' that its body runs in the frame of the graph, and "
                        "its function 'begin' sets another one; leave the frame as it is, or take 'in_frame' away",
                        trli_graph_task_name(run->graph, call->task), run->graph->name);
    }
    if (!args->failed) set_found(call->placed, state->frame);
    return begin_round(state->placed, state, args->failed);
}

void trli_placed_round_end(trli_placed_run *state, trli_call_run *call, bool failed)
{
    if (!call->under_way) return;
    call->under_way = false;
    trli_placed_round_finish(state, !failed && trli_outcome_err(&state->outcome) == TRL_OK);
}

static bool has_failed(const trli_run_state *run)
{
    return atomic_load_explicit(&run->error, memory_order_relaxed) != TRL_OK;
}

void trli_placed_round_again(trli_run_state *run, int32_t call, int32_t end)
{
    const trl_err err = begin_round(run->call[call].placed, &run->call[call], has_failed(run));
    if (err != TRL_OK) trli_run_fail(run, end, err);
}

void trli_placed_call_end(trli_run_state *run, int32_t call, int32_t end)
{
    const trli_call *calls = trli_graph_calls(run->graph);
    const trli_placed_body *body = calls[call].placed;
    const int32_t around = calls[call].around;
    const trli_placed_run *outer = around == TRLI_NONE ? run->placed : run->call[around].placed;
    if (!calls[call].desc.again || has_failed(run)) return;
    const trl_err err = provide_alone(run, outer->of, &body->provisions, false, outer->frame);
    if (err != TRL_OK) trli_run_fail(run, end, err);
}
