/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Runs of placed graphs: launches issue their commands to devices, and watches test whether devices have passed a
 * fence. No thread waits for a device. */
#include "placed_calls_impl.h"

/* ---- places of data ---- */

trl_err trli_placed_provide(const trli_placed *p, void *frame, int *space)
{
    const trl_graph_memory *memory = &p->logical->memory;
    const trli_provision *all = p->provisions.data;
    trl_err err = TRL_OK;
    for (int64_t i = 0; i < p->provisions.count; ++i) {
        *space = all[i].space;
        TRL_TRY(memory->provide(memory->data, frame, trli_placed_handle(p, all[i].handle)->key, *space));
    }
    for (int32_t c = 0; c < p->nbodies; ++c)
        if (p->body[c].of) TRL_TRY(trli_placed_provide(p->body[c].of, frame, space));
done:
    return err;
}

static trl_err set_timer(const trli_placed_run *state, trl_device *device, trli_stream stream, int32_t timer, int end)
{
    const trli_placed *p = state->of;
    trl_err err = TRL_OK;
    if (!state->run->watched || trli_placed_timer_space(p, timer) == 0) return TRL_OK;
    TRL_TRY(trli_fence_set(device, stream, state->fence[trli_placed_fences(p) + (ptrdiff_t)2 * timer + end]));
    if (end) atomic_store_explicit(&state->set[trli_placed_fences(p) + timer], true, memory_order_relaxed);
done:
    return err;
}

/* ---- copies ---- */

/* The space from which a transfer copies in this run; not that of a lost device, if there is another. -1: nothing is
 * copied, because the value is there already, or nowhere. */
static int find_source(const trli_placed *p, const trli_transfer *t, void *frame)
{
    if (t->from != TRLI_ANYWHERE) return t->from;
    const uint32_t valid = *trli_placed_valid(p, frame, t->handle);
    if (valid == 0 || valid & 1u << t->to) return -1;
    for (int space = 0; space <= p->devices->n; ++space)
        if (valid & 1u << space && !trli_placed_is_lost(p, space)) return space;
    return __builtin_ctz(valid);
}

/* The part of the data that the first reader needs. */
static int32_t part_of(const trli_placed *p, const trli_transfer *t)
{
    const trl_graph *graph = p->logical;
    int32_t a = graph->access_first[t->reader];
    while (graph->access[a].handle != t->handle) ++a;
    return graph->access[a].part;
}

/* Copies of a launch that are given to the device together. */
typedef struct copy_list {
    int n;
    trli_box_copy copy[TRLI_COPIES];
    trli_ticket ticket; /* of the first */
} copy_list;

static trl_err flush_copies(trl_device *device, trli_stream stream, copy_list *copies)
{
    const int n = copies->n;
    copies->n = 0;
    return n > 0 ? trli_device_copies(device, stream, n, copies->copy, copies->ticket) : TRL_OK;
}

static trl_err copy_pieces(trli_placed_run *state, const trli_transfer *t, int from, trl_device *device,
                           trli_stream stream, copy_list *copies)
{
    const trli_placed *p = state->of;
    const trl_graph_memory *memory = &p->logical->memory;
    const int64_t key = trli_placed_handle(p, t->handle)->key;
    const int32_t timer = p->ncalls + (int32_t)(t - (const trli_transfer *)p->transfers.list.data);
    const int32_t part = part_of(p, t);
    const trl_way way = from == 0 ? TRL_WAY_IN : t->to == 0 ? TRL_WAY_OUT : TRL_WAY_ACROSS;
    trl_memory_box source[TRL_MEMORY_BOXES], target[TRL_MEMORY_BOXES];
    int64_t bytes = 0;
    trl_err err = TRL_OK;
    const int n = memory->locate(memory->data, state->frame, key, part, from, source);
    (void)memory->locate(memory->data, state->frame, key, part, t->to, target);
    TRL_TRY(set_timer(state, device, stream, timer, 0));
    for (int i = 0; i < n; ++i) {
        const trli_box_copy copy = trli_copy_of_boxes(&source[i], from, &target[i], t->to);
        if (copies->n == TRLI_COPIES) TRL_TRY(flush_copies(device, stream, copies));
        if (copies->n == 0) copies->ticket = (trli_ticket){&state->outcome, t->reader};
        copies->copy[copies->n++] = copy;
        bytes += (int64_t)copy.row * copy.rows * copy.planes;
    }
    if (state->run->watched) TRL_TRY(flush_copies(device, stream, copies));
    TRL_TRY(set_timer(state, device, stream, timer, 1));
    /* Relaxed: read after the run. */
    atomic_fetch_add_explicit(&state->copies[way], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&state->bytes[way], bytes, memory_order_relaxed);
done:
    return err;
}

/* ---- launches ---- */

static trl_err call(trli_placed_run *state, const trli_launch *launch, trl_device *device, trli_stream stream,
                    int32_t number)
{
    const trli_placed *p = launch->placed;
    const int32_t t = p->call[number];
    const trl_task_args args = {.chunks = 1,
                                .worker = state->run->view.workers + launch->space - 1,
                                .space = launch->space,
                                .alone = p->alone,
                                .frame = state->frame};
    trl_err err;
    TRL_TRY(set_timer(state, device, stream, number, 0));
    TRL_TRY(device->ops->call(device, stream, trli_graph_info(p->logical)[t].variant[device->kind].run,
                              trli_graph_records(p->logical)[t].data, &args, (trli_ticket){&state->outcome, t}));
    TRL_TRY(set_timer(state, device, stream, number, 1));
done:
    if (err) trli_outcome_note((trli_ticket){&state->outcome, t}, err);
    return err;
}

static trl_err do_command(trli_placed_run *state, const trli_launch *launch, trl_device *device,
                          const trli_device_command *c)
{
    const trli_stream stream = (trli_stream)c->stream;
    return c->kind == TRLI_COMMAND_CALL  ? call(state, launch, device, stream, c->index)
           : c->kind == TRLI_COMMAND_SET ? trli_placed_set(state, device, stream, c->index)
                                         : trli_placed_wait(state, device, stream, c->index);
}

/* What enqueues the calls of a row; NULL: each is made by itself, with waits between them or fences around it. */
static trli_relaunch *find_relaunch(const trli_placed_run *state, const trli_device_command *c, int32_t n)
{
    const trli_placed *p = state->of;
    const trli_device_command *first = NULL;
    for (int32_t i = n - 1; i >= 0 && p->relaunch && !state->run->watched; --i) {
        if (c[i].kind == TRLI_COMMAND_CALL)
            first = &c[i];
        else if (atomic_load_explicit(&state->set[c[i].index], memory_order_relaxed))
            return NULL;
    }
    return first ? p->relaunch[first->index] : NULL;
}

/* A row of commands. Scalars, and with them the state, are at rest where only the caller is at tasks. */
static trl_err launch_row(trli_placed_run *state, const trli_launch *launch, trl_device *device,
                          const trli_device_command *c, int32_t n)
{
    const trli_placed *p = launch->placed;
    const trli_relaunch_state known = {p->logical->state, p->logical->memory.data, state->frame};
    trli_relaunch *relaunch = find_relaunch(state, c, n);
    bool done = false;
    trl_err err = TRL_OK;
    if (trli_outcome_err(&state->outcome) != TRL_OK) return TRL_OK; /* nothing else of this run is done */
    if (relaunch) TRL_TRY(trli_relaunch_begin(relaunch, p->light ? &known : NULL, &done));
    for (int32_t i = 0, calls = 0; i < n && !done && err == TRL_OK; ++i) {
        if (relaunch && c[i].kind == TRLI_COMMAND_CALL) trli_relaunch_gather(relaunch, calls++);
        err = do_command(state, launch, device, &c[i]);
    }
    if (relaunch && !done) err = trli_relaunch_end(relaunch, err);
done:
    return err;
}

/* After a failure the host must still wait for work that the device got before: set the fences nevertheless. */
static void set_fences(trli_placed_run *state, trl_device *device, const trli_device_command *c, int32_t n,
                       int32_t other)
{
    for (int32_t i = 0; i < n; ++i)
        if (c[i].kind == TRLI_COMMAND_SET)
            (void)!trli_placed_set(state, device, (trli_stream)c[i].stream, c[i].index + other);
}

static trl_err launch_region(trli_placed_run *state, const trli_launch *launch)
{
    const trli_placed *p = launch->placed;
    const trli_device_command *c = (const trli_device_command *)p->commands.data + launch->first;
    trl_device *device = trli_device_of(p->devices, launch->space);
    trl_err err = TRL_OK;
    int32_t i = 0;
    TRL_TRY(trli_placed_wait_for_runs(state, device, TRLI_STREAM_COMPUTE));
    if (p->urgent) TRL_TRY(trli_placed_wait_for_runs(state, device, TRLI_STREAM_URGENT));
    for (int32_t n, calls; i<launch->n; i += n> 0 ? n : 1) {
        n = trli_placed_row(p, c + i, launch->n - i, &calls);
        TRL_TRY(n > 0 ? launch_row(state, launch, device, c + i, n) : do_command(state, launch, device, c + i));
    }
done:
    if (err) set_fences(state, device, c + i, launch->n - i, 0);
    return err;
}

static const trli_transfer *transfer_of(const trli_placed *p, const trli_device_command *c)
{
    return (const trli_transfer *)p->transfers.list.data + c->index;
}

/* The space from which the first of the launch's transfers that copies something does so; -1: there is none. */
static int first_source(const trli_placed_run *state, const trli_launch *launch, const trli_device_command *c)
{
    int from = -1;
    for (int32_t i = 0; i < launch->n && from < 0; ++i)
        if (c[i].kind == TRLI_COMMAND_COPY)
            from = find_source(launch->placed, transfer_of(launch->placed, &c[i]), state->frame);
    return from;
}

static trl_err transfer_command(trli_placed_run *state, const trli_launch *launch, trl_device *device,
                                const trli_device_command *c, int32_t other, copy_list *copies)
{
    const trli_stream stream = (trli_stream)c->stream;
    trl_err err = TRL_OK;
    if (c->kind == TRLI_COMMAND_COPY) {
        const trli_transfer *t = transfer_of(launch->placed, c);
        const int from = find_source(launch->placed, t, state->frame);
        return from < 0 ? TRL_OK : copy_pieces(state, t, from, device, stream, copies);
    }
    if (c->kind != TRLI_COMMAND_SET) return trli_placed_wait(state, device, stream, c->index);
    TRL_TRY(flush_copies(device, stream, copies));
    err = trli_placed_set(state, device, stream, c->index + other);
done:
    return err;
}

/* If the value may be in any space, its device, and with it the stream and the fence, are known only now. */
static trl_err launch_transfers(trli_placed_run *state, const trli_launch *launch)
{
    const trli_placed *p = launch->placed;
    const trli_device_command *c = (const trli_device_command *)p->commands.data + launch->first;
    const int from = first_source(state, launch, c);
    copy_list copies = {.n = 0};
    trl_err err = TRL_OK;
    if (from < 0) return TRL_OK;
    trl_device *device = trli_device_of(p->devices, launch->space > 0 ? launch->space : from);
    const int32_t other = launch->space > 0 ? 0 : from - 1; /* offset among the fences, one for each device */
    const trli_stream stream = (trli_stream)c->stream;
    int32_t i = 0;
    TRL_TRY(trli_placed_wait_for_runs(state, device, stream));
    for (; i < launch->n; ++i) TRL_TRY(transfer_command(state, launch, device, &c[i], other, &copies));
    TRL_TRY(flush_copies(device, stream, &copies));
done:
    if (err) set_fences(state, device, c + i, launch->n - i, other);
    return err;
}

/* Of the run, or of the call whose body's task is called. */
static trli_placed_run *state_of(const trl_run *here)
{
    const int32_t call = trli_call_of(here->run, here->task);
    return call == TRLI_NONE ? here->run->placed : here->run->call[call].placed;
}

trl_err trli_placed_launch(void *data, const trl_task_args *args, bool *done)
{
    const trli_launch *launch = data;
    trli_placed_run *state = state_of(args->run);
    const bool region = launch - launch->placed->launch < launch->placed->nregions;
    const trl_err err = region ? launch_region(state, launch) : launch_transfers(state, launch);
    (void)done;
    if (err) trli_outcome_note((trli_ticket){&state->outcome, launch->task}, err);
    return err;
}

trl_err trli_placed_watch(void *data, const trl_task_args *args, bool *done)
{
    const trli_watch *watch = data;
    const trli_placed *p = watch->placed;
    trli_placed_run *state = state_of(args->run);
    trl_device *last = NULL;
    trl_err err = TRL_OK;
    for (int32_t f = watch->fence; f < watch->fence + watch->n; ++f) {
        if (!atomic_load_explicit(&state->set[f], memory_order_relaxed)) continue;
        trl_device *device = last = trli_device_of(p->devices, ((const int32_t *)p->fences.data)[f]);
        TRL_TRY(device->ops->passed(device, state->fence[f], done));
    }
    if (*done && last) atomic_fetch_add_explicit(&last->waits, 1, memory_order_relaxed);
    if (*done) err = trli_outcome_err(&state->outcome);
done:
    if (err) trli_outcome_note((trli_ticket){&state->outcome, watch->task}, err);
    return err;
}

const char *trli_placed_failed(const trli_run_state *run, int32_t task)
{
    const trli_placed *p = run->graph->placed;
    const int32_t call = trli_call_of(run, task);
    int32_t t = p->task_of[task];
    if (t >= 0) return trli_graph_task_name(p->logical, t);
    t = trli_outcome_number(&(call == TRLI_NONE ? run->placed : run->call[call].placed)->outcome);
    return trli_graph_task_name(p->logical, trli_placed_base(run, call) + t);
}

/* ---- the state of a run ---- */

/* A lost device gets no work, and so no fences. */
static trl_err create_fence(const trli_placed *p, int space, bool timed, trli_fence **fence)
{
    trl_device *device = trli_device_of(p->devices, space);
    return trli_placed_is_lost(p, space) ? TRL_OK : device->ops->fence_create(device, timed, fence);
}

static trl_err create_state(trli_run_state *run, const trli_placed *p, trli_placed_run **result)
{
    trl_context *ctx = run->graph->ctx;
    const size_t fences = (size_t)trli_placed_fences(p), timers = (size_t)trli_placed_timers(p);
    trl_err err = TRL_OK;
    trli_placed_run *state = *result = trli_new(ctx, 1, sizeof *state);
    if (!state) return trli_no_memory(ctx, NULL, "for runs of a placed graph");
    state->of = p;
    state->run = run;
    state->fence = trli_new(ctx, fences + 2 * timers + 1, sizeof *state->fence);
    state->set = trli_new(ctx, fences + timers + 1, sizeof *state->set);
    state->number = trli_new(ctx, fences + 1, sizeof *state->number);
    state->busy = trli_new(ctx, (size_t)p->ncalls + 1, sizeof *state->busy);
    state->call_begin = trli_new(ctx, (size_t)p->logical->task_count + 1, sizeof *state->call_begin);
    state->seconds = trli_new(ctx, (size_t)p->ncalls + 1, sizeof *state->seconds);
    if (!state->fence || !state->set || !state->number || !state->busy || !state->call_begin || !state->seconds)
        return trli_no_memory(ctx, NULL, "for runs of a placed graph");
    for (size_t f = 0; f < fences; ++f)
        TRL_TRY(create_fence(p, ((const int32_t *)p->fences.data)[f], false, &state->fence[f]));
    for (size_t t = 0; t < 2 * timers; ++t) {
        const int space = trli_placed_timer_space(p, (int32_t)(t / 2));
        if (space > 0) TRL_TRY(create_fence(p, space, true, &state->fence[fences + t]));
    }
done:
    return err;
}

trl_err trli_placed_run_create(trli_run_state *run)
{
    const trli_placed *p = run->graph->placed;
    trl_err err = TRL_OK;
    if (!p) return TRL_OK;
    TRL_TRY(create_state(run, p, &run->placed));
    for (int d = 1; d <= p->devices->n; ++d) TRL_TRY(create_fence(p, d, true, &run->placed->origin[d]));
    TRL_TRY(trli_placed_times_create(run));
    for (int64_t c = 0; c < run->graph->calls.count; ++c) {
        const trli_call *call = &trli_graph_calls(run->graph)[c];
        if (call->placed) TRL_TRY(create_state(run, call->placed->of, &run->call[c].placed));
    }
done:
    return err;
}

static void destroy_state(trli_placed_run **result)
{
    trli_placed_run *state = *result;
    *result = NULL;
    if (!state) return;
    const trli_placed *p = state->of;
    for (int32_t f = 0; state->fence && f < trli_placed_fences(p) + 2 * trli_placed_timers(p); ++f) {
        const int space = f < trli_placed_fences(p) ? ((const int32_t *)p->fences.data)[f]
                                                    : trli_placed_timer_space(p, (f - trli_placed_fences(p)) / 2);
        if (space == 0) continue;
        trl_device *device = trli_device_of(p->devices, space);
        if (state->fence[f]) device->ops->fence_destroy(device, state->fence[f]);
    }
    trli_free(state->fence);
    trli_free((void *)state->set);
    trli_free(state->number);
    trli_free(state->busy);
    trli_free(state->call_begin);
    trli_free(state->seconds);
    trli_free(state);
}

void trli_placed_run_destroy(trli_run_state *run)
{
    const trli_placed *p = run->graph->placed;
    if (!run->placed) return;
    trli_placed_times_destroy(run);
    for (int d = 1; d <= p->devices->n; ++d)
        if (run->placed->origin[d])
            trli_device_of(p->devices, d)->ops->fence_destroy(trli_device_of(p->devices, d), run->placed->origin[d]);
    for (int64_t c = 0; run->call && c < run->graph->calls.count; ++c) destroy_state(&run->call[c].placed);
    destroy_state(&run->placed);
}

/* No worker is inside. */
void trli_placed_round_start(trli_placed_run *state)
{
    for (int32_t f = 0; f < trli_placed_fences(state->of) + trli_placed_timers(state->of); ++f)
        atomic_store_explicit(&state->set[f], false, memory_order_relaxed);
    trli_placed_fences_start(state);
    atomic_store_explicit(&state->outcome.first, 0, memory_order_relaxed);
}

/* A device that does not answer fails when it gets work. */
void trli_placed_run_start(trli_run_state *run)
{
    const trli_placed *p = run->graph->placed;
    if (!p) return;
    run->placed->frame = run->frame;
    trli_placed_round_start(run->placed);
    for (int64_t c = 0; c < run->graph->calls.count; ++c) run->call[c].under_way = false;
    if (!run->watched || (trli_placed_timers(p) == 0 && !p->body)) return;
    for (int d = 1; d <= p->devices->n && !p->overlaps; ++d)
        trli_device_of(p->devices, d)
            ->ops->finish(trli_device_of(p->devices, d)); /* what runs before it do counts not */
    trli_placed_times_meet(run);
    run->placed->origin_ns = trli_now_ns();
    for (int d = 1; d <= p->devices->n; ++d) {
        trl_device *device = trli_device_of(p->devices, d);
        if (!trli_placed_is_lost(p, d)) (void)device->ops->set(device, TRLI_STREAM_COMPUTE, run->placed->origin[d]);
    }
}
