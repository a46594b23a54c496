/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Runs of placed graphs: launches issue their commands to devices, and watches test whether devices have passed a
 * fence. No thread waits for a device. */
#include "arithmetic_impl.h"
#include <string.h>

#include "placed_impl.h"
#include "trace_impl.h"

/* ---- places of data ---- */

static const trl_policy_handle *handle_of(const trli_placed *p, int32_t handle)
{
    return (const trl_policy_handle *)p->logical->handles.data + handle;
}

static uint32_t *valid_of(const trli_placed *p, void *frame, int32_t handle)
{
    const trl_graph_memory *memory = &p->logical->memory;
    return memory->valid(memory->data, frame, handle_of(p, handle)->key);
}

trl_err trli_placed_provide(const trli_placed *p, void *frame, int *space)
{
    const trl_graph_memory *memory = &p->logical->memory;
    const trli_provision *all = p->provisions.data;
    trl_err err = TRL_OK;
    for (int64_t i = 0; i < p->provisions.count; ++i) {
        *space = all[i].space;
        TRL_TRY(memory->provide(memory->data, frame, handle_of(p, all[i].handle)->key, *space));
    }
done:
    return err;
}

/* A timer is a pair of fences around a call, by its number, or around a transfer: */
static int32_t timer_of_transfer(const trli_placed *p, int32_t number)
{
    return p->ncalls + number;
}

static int32_t timers(const trli_placed *p)
{
    return p->ncalls + (int32_t)p->transfers.list.count;
}

/* The device to which the fences belong; 0: none, because the device is chosen when the run begins. */
static int space_of_timer(const trli_placed *p, int32_t timer)
{
    const trli_transfer *transfer = p->transfers.list.data;
    if (timer < p->ncalls) return p->executor[p->call[timer]];
    const trli_transfer *t = &transfer[timer - p->ncalls];
    return t->to > 0 ? t->to : t->from == TRLI_ANYWHERE ? 0 : t->from;
}

static bool is_lost(const trli_placed *p, int space)
{
    return space > 0 && atomic_load_explicit(&trli_device_of(p->devices, space)->lost, memory_order_relaxed);
}

static trl_err set_timer(const trli_run_state *run, trl_device *device, trli_stream stream, int32_t timer, int end)
{
    const trli_placed *p = run->graph->placed;
    trl_err err = TRL_OK;
    if (!run->watched || space_of_timer(p, timer) == 0) return TRL_OK;
    TRL_TRY(trli_fence_set(device, stream, run->placed->fence[trli_placed_fences(p) + (ptrdiff_t)2 * timer + end]));
    if (end) atomic_store_explicit(&run->placed->set[trli_placed_fences(p) + timer], true, memory_order_relaxed);
done:
    return err;
}

/* ---- copies ---- */

/* The space from which a transfer copies in this run; not that of a lost device, if there is another. -1: nothing is
 * copied, because the value is there already, or nowhere. */
static int find_source(const trli_placed *p, const trli_transfer *t, void *frame)
{
    if (t->from != TRLI_ANYWHERE) return t->from;
    const uint32_t valid = *valid_of(p, frame, t->handle);
    if (valid == 0 || valid & 1u << t->to) return -1;
    for (int space = 0; space <= p->devices->n; ++space)
        if (valid & 1u << space && !is_lost(p, space)) return space;
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

static trl_err copy_pieces(trli_run_state *run, const trli_transfer *t, int from, trl_device *device,
                           trli_stream stream, copy_list *copies)
{
    const trli_placed *p = run->graph->placed;
    const trl_graph_memory *memory = &p->logical->memory;
    const int64_t key = handle_of(p, t->handle)->key;
    const int32_t timer = timer_of_transfer(p, (int32_t)(t - (const trli_transfer *)p->transfers.list.data));
    const int32_t part = part_of(p, t);
    const trl_way way = from == 0 ? TRL_WAY_IN : t->to == 0 ? TRL_WAY_OUT : TRL_WAY_ACROSS;
    trl_memory_box source[TRL_MEMORY_BOXES], target[TRL_MEMORY_BOXES];
    int64_t bytes = 0;
    trl_err err = TRL_OK;
    const int n = memory->locate(memory->data, run->frame, key, part, from, source);
    (void)memory->locate(memory->data, run->frame, key, part, t->to, target);
    TRL_TRY(set_timer(run, device, stream, timer, 0));
    for (int i = 0; i < n; ++i) {
        const trli_box_copy copy = trli_copy_of_boxes(&source[i], from, &target[i], t->to);
        if (copies->n == TRLI_COPIES) TRL_TRY(flush_copies(device, stream, copies));
        if (copies->n == 0) copies->ticket = (trli_ticket){&run->placed->outcome, t->reader};
        copies->copy[copies->n++] = copy;
        bytes += (int64_t)copy.row * copy.rows * copy.planes;
    }
    if (run->watched) TRL_TRY(flush_copies(device, stream, copies));
    TRL_TRY(set_timer(run, device, stream, timer, 1));
    /* Relaxed: read after the run. */
    atomic_fetch_add_explicit(&run->placed->copies[way], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&run->placed->bytes[way], bytes, memory_order_relaxed);
done:
    return err;
}

/* ---- launches ---- */

static trl_err call(trli_run_state *run, const trli_launch *launch, trl_device *device, trli_stream stream,
                    int32_t number)
{
    const trli_placed *p = launch->placed;
    const int32_t t = p->call[number];
    const trl_task_args args = {.chunks = 1,
                                .worker = run->view.workers + launch->space - 1,
                                .space = launch->space,
                                .alone = p->alone,
                                .frame = run->frame};
    trl_err err;
    TRL_TRY(set_timer(run, device, stream, number, 0));
    TRL_TRY(device->ops->call(device, stream, trli_graph_info(p->logical)[t].variant[device->kind].run,
                              trli_graph_records(p->logical)[t].data, &args, (trli_ticket){&run->placed->outcome, t}));
    TRL_TRY(set_timer(run, device, stream, number, 1));
done:
    if (err) trli_outcome_note((trli_ticket){&run->placed->outcome, t}, err);
    return err;
}

static trl_err do_command(trli_run_state *run, const trli_launch *launch, trl_device *device,
                          const trli_device_command *c)
{
    const trli_stream stream = (trli_stream)c->stream;
    return c->kind == TRLI_COMMAND_CALL  ? call(run, launch, device, stream, c->index)
           : c->kind == TRLI_COMMAND_SET ? trli_placed_set(run, device, stream, c->index)
                                         : trli_placed_wait(run, device, stream, c->index);
}

/* What enqueues the calls of a row; NULL: each is made by itself, with waits between them or fences around it. */
static trli_relaunch *find_relaunch(const trli_run_state *run, const trli_device_command *c, int32_t n)
{
    const trli_placed *p = run->graph->placed;
    const trli_device_command *first = NULL;
    for (int32_t i = n - 1; i >= 0 && p->relaunch && !run->watched; --i) {
        if (c[i].kind == TRLI_COMMAND_CALL)
            first = &c[i];
        else if (atomic_load_explicit(&run->placed->set[c[i].index], memory_order_relaxed))
            return NULL;
    }
    return first ? p->relaunch[first->index] : NULL;
}

/* A row of commands. Scalars, and with them the state, are at rest where only the caller is at tasks. */
static trl_err launch_row(trli_run_state *run, const trli_launch *launch, trl_device *device,
                          const trli_device_command *c, int32_t n)
{
    const trli_placed *p = launch->placed;
    const trli_relaunch_state state = {p->logical->state, p->logical->memory.data, run->frame};
    trli_relaunch *relaunch = find_relaunch(run, c, n);
    bool done = false;
    trl_err err = TRL_OK;
    if (trli_outcome_err(&run->placed->outcome) != TRL_OK) return TRL_OK; /* nothing else of this run is done */
    if (relaunch) TRL_TRY(trli_relaunch_begin(relaunch, p->light ? &state : NULL, &done));
    for (int32_t i = 0, calls = 0; i < n && !done && err == TRL_OK; ++i) {
        if (relaunch && c[i].kind == TRLI_COMMAND_CALL) trli_relaunch_gather(relaunch, calls++);
        err = do_command(run, launch, device, &c[i]);
    }
    if (relaunch && !done) err = trli_relaunch_end(relaunch, err);
done:
    return err;
}

/* After a failure the host must still wait for work that the device got before: set the fences nevertheless. */
static void set_fences(trli_run_state *run, trl_device *device, const trli_device_command *c, int32_t n, int32_t other)
{
    for (int32_t i = 0; i < n; ++i)
        if (c[i].kind == TRLI_COMMAND_SET)
            (void)!trli_placed_set(run, device, (trli_stream)c[i].stream, c[i].index + other);
}

static trl_err launch_region(trli_run_state *run, const trli_launch *launch)
{
    const trli_placed *p = launch->placed;
    const trli_device_command *c = (const trli_device_command *)p->commands.data + launch->first;
    trl_device *device = trli_device_of(p->devices, launch->space);
    trl_err err = TRL_OK;
    int32_t i = 0;
    TRL_TRY(trli_placed_wait_for_runs(run, device, TRLI_STREAM_COMPUTE));
    if (p->urgent) TRL_TRY(trli_placed_wait_for_runs(run, device, TRLI_STREAM_URGENT));
    for (int32_t n, calls; i<launch->n; i += n> 0 ? n : 1) {
        n = trli_placed_row(p, c + i, launch->n - i, &calls);
        TRL_TRY(n > 0 ? launch_row(run, launch, device, c + i, n) : do_command(run, launch, device, c + i));
    }
done:
    if (err) set_fences(run, device, c + i, launch->n - i, 0);
    return err;
}

static const trli_transfer *transfer_of(const trli_placed *p, const trli_device_command *c)
{
    return (const trli_transfer *)p->transfers.list.data + c->index;
}

/* The space from which the first of the launch's transfers that copies something does so; -1: there is none. */
static int first_source(const trli_run_state *run, const trli_launch *launch, const trli_device_command *c)
{
    int from = -1;
    for (int32_t i = 0; i < launch->n && from < 0; ++i)
        if (c[i].kind == TRLI_COMMAND_COPY)
            from = find_source(launch->placed, transfer_of(launch->placed, &c[i]), run->frame);
    return from;
}

static trl_err transfer_command(trli_run_state *run, const trli_launch *launch, trl_device *device,
                                const trli_device_command *c, int32_t other, copy_list *copies)
{
    const trli_stream stream = (trli_stream)c->stream;
    trl_err err = TRL_OK;
    if (c->kind == TRLI_COMMAND_COPY) {
        const trli_transfer *t = transfer_of(launch->placed, c);
        const int from = find_source(launch->placed, t, run->frame);
        return from < 0 ? TRL_OK : copy_pieces(run, t, from, device, stream, copies);
    }
    if (c->kind != TRLI_COMMAND_SET) return trli_placed_wait(run, device, stream, c->index);
    TRL_TRY(flush_copies(device, stream, copies));
    err = trli_placed_set(run, device, stream, c->index + other);
done:
    return err;
}

/* If the value may be in any space, its device, and with it the stream and the fence, are known only now. */
static trl_err launch_transfers(trli_run_state *run, const trli_launch *launch)
{
    const trli_placed *p = launch->placed;
    const trli_device_command *c = (const trli_device_command *)p->commands.data + launch->first;
    const int from = first_source(run, launch, c);
    copy_list copies = {.n = 0};
    trl_err err = TRL_OK;
    if (from < 0) return TRL_OK;
    trl_device *device = trli_device_of(p->devices, launch->space > 0 ? launch->space : from);
    const int32_t other = launch->space > 0 ? 0 : from - 1; /* offset among the fences, one for each device */
    const trli_stream stream = (trli_stream)c->stream;
    int32_t i = 0;
    TRL_TRY(trli_placed_wait_for_runs(run, device, stream));
    for (; i < launch->n; ++i) TRL_TRY(transfer_command(run, launch, device, &c[i], other, &copies));
    TRL_TRY(flush_copies(device, stream, &copies));
done:
    if (err) set_fences(run, device, c + i, launch->n - i, other);
    return err;
}

trl_err trli_placed_launch(void *data, const trl_task_args *args, bool *done)
{
    const trli_launch *launch = data;
    trli_run_state *run = args->run->run;
    const bool region = launch - launch->placed->launch < launch->placed->nregions;
    const trl_err err = region ? launch_region(run, launch) : launch_transfers(run, launch);
    (void)done;
    if (err) trli_outcome_note((trli_ticket){&run->placed->outcome, launch->task}, err);
    return err;
}

trl_err trli_placed_watch(void *data, const trl_task_args *args, bool *done)
{
    const trli_watch *watch = data;
    const trli_placed *p = watch->placed;
    trli_run_state *run = args->run->run;
    trl_device *last = NULL;
    trl_err err = TRL_OK;
    for (int32_t f = watch->fence; f < watch->fence + watch->n; ++f) {
        if (!atomic_load_explicit(&run->placed->set[f], memory_order_relaxed)) continue;
        trl_device *device = last = trli_device_of(p->devices, ((const int32_t *)p->fences.data)[f]);
        TRL_TRY(device->ops->passed(device, run->placed->fence[f], done));
    }
    if (*done && last) atomic_fetch_add_explicit(&last->waits, 1, memory_order_relaxed);
    if (*done) err = trli_outcome_err(&run->placed->outcome);
done:
    if (err) trli_outcome_note((trli_ticket){&run->placed->outcome, watch->task}, err);
    return err;
}

const char *trli_placed_failed(const trli_run_state *run, int32_t task)
{
    const trli_placed *p = run->graph->placed;
    const int32_t t = p->task_of[task];
    return trli_graph_task_name(p->logical, t < 0 ? trli_outcome_number(&run->placed->outcome) : t);
}

/* ---- the state of a run ---- */

/* A lost device gets no work, and so no fences. */
static trl_err create_fence(const trli_placed *p, int space, bool timed, trli_fence **fence)
{
    trl_device *device = trli_device_of(p->devices, space);
    return is_lost(p, space) ? TRL_OK : device->ops->fence_create(device, timed, fence);
}

trl_err trli_placed_run_create(trli_run_state *run)
{
    const trli_placed *p = run->graph->placed;
    trl_context *ctx = run->graph->ctx;
    trl_err err = TRL_OK;
    if (!p) return TRL_OK;
    trli_placed_run *state = run->placed = trli_new(ctx, 1, sizeof *state);
    if (!state) return trli_no_memory(ctx, NULL, "for runs of a placed graph");
    state->fence = trli_new(ctx, (size_t)trli_placed_fences(p) + 2 * (size_t)timers(p) + 1, sizeof *state->fence);
    state->set = trli_new(ctx, (size_t)trli_placed_fences(p) + (size_t)timers(p) + 1, sizeof *state->set);
    state->number = trli_new(ctx, (size_t)trli_placed_fences(p) + 1, sizeof *state->number);
    state->busy = trli_new(ctx, (size_t)p->ncalls + 1, sizeof *state->busy);
    state->call_begin = trli_new(ctx, (size_t)p->logical->task_count + 1, sizeof *state->call_begin);
    if (!state->fence || !state->set || !state->number || !state->busy || !state->call_begin)
        return trli_no_memory(ctx, NULL, "for runs of a placed graph");
    for (int32_t f = 0; f < trli_placed_fences(p); ++f)
        TRL_TRY(create_fence(p, ((const int32_t *)p->fences.data)[f], false, &state->fence[f]));
    for (int32_t t = 0; t < 2 * timers(p); ++t)
        if (space_of_timer(p, t / 2) > 0)
            TRL_TRY(create_fence(p, space_of_timer(p, t / 2), true, &state->fence[trli_placed_fences(p) + t]));
    for (int d = 1; d <= p->devices->n; ++d) TRL_TRY(create_fence(p, d, true, &state->origin[d]));
    TRL_TRY(trli_placed_times_create(run));
done:
    return err;
}

void trli_placed_run_destroy(trli_run_state *run)
{
    const trli_placed *p = run->graph->placed;
    trli_placed_run *state = run->placed;
    if (!state) return;
    trli_placed_times_destroy(run);
    for (int d = 1; d <= p->devices->n; ++d)
        if (state->origin[d])
            trli_device_of(p->devices, d)->ops->fence_destroy(trli_device_of(p->devices, d), state->origin[d]);
    for (int32_t f = 0; state->fence && f < trli_placed_fences(p) + 2 * timers(p); ++f) {
        const int space = f < trli_placed_fences(p) ? ((const int32_t *)p->fences.data)[f]
                                                    : space_of_timer(p, (f - trli_placed_fences(p)) / 2);
        if (space == 0) continue;
        trl_device *device = trli_device_of(p->devices, space);
        if (state->fence[f]) device->ops->fence_destroy(device, state->fence[f]);
    }
    trli_free(state->fence);
    trli_free((void *)state->set);
    trli_free(state->number);
    trli_free(state->busy);
    trli_free(state->call_begin);
    trli_free(state);
    run->placed = NULL;
}

/* A device that does not answer fails when it gets work. */
void trli_placed_run_start(trli_run_state *run)
{
    const trli_placed *p = run->graph->placed;
    if (!p) return;
    for (int32_t f = 0; f < trli_placed_fences(p) + timers(p); ++f)
        atomic_store_explicit(&run->placed->set[f], false, memory_order_relaxed); /* no worker is inside */
    trli_placed_fences_start(run);
    atomic_store_explicit(&run->placed->outcome.first, 0, memory_order_relaxed);
    if (!run->watched || timers(p) == 0) return;
    for (int d = 1; d <= p->devices->n && !p->overlaps; ++d)
        trli_device_of(p->devices, d)
            ->ops->finish(trli_device_of(p->devices, d)); /* what runs before it do counts not */
    trli_placed_times_meet(run);
    run->placed->origin_ns = trli_now_ns();
    for (int d = 1; d <= p->devices->n; ++d) {
        trl_device *device = trli_device_of(p->devices, d);
        if (!is_lost(p, d)) (void)device->ops->set(device, TRLI_STREAM_COMPUTE, run->placed->origin[d]);
    }
}

/* ---- its end ---- */

/* Seconds of the host's clock since the run began. */
static trli_busy_span span_of(const trli_run_state *run, int32_t timer)
{
    const trli_placed *p = run->graph->placed;
    const int space = space_of_timer(p, timer);
    trl_device *device = trli_device_of(p->devices, space);
    trli_fence **fence = run->placed->fence + trli_placed_fences(p) + (ptrdiff_t)2 * timer;
    return (trli_busy_span){device->ops->seconds(device, run->placed->origin[space], fence[0]),
                            device->ops->seconds(device, run->placed->origin[space], fence[1])};
}

static void trace_timer(const trli_run_state *run, trl_trace *trace, int32_t timer, trli_busy_span span)
{
    const trli_placed *p = run->graph->placed;
    const int device = space_of_timer(p, timer) - 1;
    const int64_t begin = run->placed->origin_ns + (int64_t)(1e9 * span.begin);
    const int64_t end = run->placed->origin_ns + (int64_t)(1e9 * span.end);
    if (timer < p->ncalls) {
        trli_trace_add_device(trace, device, TRLI_STREAM_COMPUTE, TRLI_TRACE_CALL,
                              trli_graph_task_name(p->logical, p->call[timer]), begin, end);
        return;
    }
    const trli_transfer *t = (const trli_transfer *)p->transfers.list.data + (timer - p->ncalls);
    trli_trace_add_device(trace, device, t->to > 0 ? TRLI_STREAM_IN : TRLI_STREAM_OUT, TRLI_TRACE_COPY,
                          trli_graph_text(p->logical, handle_of(p, t->handle)->name), begin, end);
}

/* For the placement, and for who asks the graph that is placed. */
static void note_time(const trli_placed *p, int32_t task, double now, double *seconds)
{
    const int e = p->executor[task];
    seconds[task] = now;
    trli_graph_average_time(p->logical, task, e ? trli_device_of(p->devices, e)->kind : TRL_KIND_CPU, now);
}

static void note_times(trli_run_state *run, double *seconds)
{
    const trli_placed *p = run->graph->placed;
    const trli_transfer *transfer = p->transfers.list.data;
    trl_trace *trace = trli_workers_trace(run->workers);
    int32_t calls = 0, spans = 0;
    double end = 0;
    trli_placed_times_start(run);
    for (int32_t t = 0; t < timers(p); ++t) {
        if (t == p->ncalls) spans = trli_placed_times_merge(run, calls);
        if (!atomic_load_explicit(&run->placed->set[trli_placed_fences(p) + t], memory_order_relaxed)) continue;
        const trli_busy_span span = span_of(run, t);
        end = trli_max_double(end, span.end);
        if (t < p->ncalls) {
            note_time(p, p->call[t], span.end - span.begin, seconds);
            trli_placed_times_call(run, calls++, p->call[t], span);
        } else {
            trli_placed_times_copy(run, spans, &transfer[t - p->ncalls], span);
        }
        if (trace) trace_timer(run, trace, t, span);
    }
    trli_placed_times_end(run, end);
    for (int32_t i = 0; i < run->graph->task_count; ++i)
        if (p->task_of[i] >= 0)
            note_time(p, p->task_of[i], 1e-9 * (double)atomic_load_explicit(&run->run_ns[i], memory_order_relaxed),
                      seconds);
}

/* The spaces with valid data after the run, if the data was valid in `before`. */
static uint32_t valid_after(const trli_placed *p, int64_t handle, uint32_t before)
{
    const uint32_t now = p->transfers.valid_after[handle], anywhere = 1u << TRLI_ANYWHERE;
    if (!(now & anywhere)) return now;
    return before ? before | (now & ~anywhere) : 0;
}

/* The same if it is unknown what was written and copied: the spaces of `before` whose data the run does not
 * overwrite. If there are none, one space stands for the value, whose content is unknown. */
static uint32_t valid_after_failure(const trli_placed *p, int64_t handle, uint32_t before)
{
    const uint32_t kept = before & ~(uint32_t)p->changed[handle];
    return kept ? kept : before & -before;
}

static void note_valid(const trli_run_state *run, bool well)
{
    const trli_placed *p = run->graph->placed;
    for (int64_t h = 0; h < p->logical->handles.count; ++h) {
        uint32_t *valid = valid_of(p, run->frame, (int32_t)h);
        if (valid) *valid = well ? valid_after(p, h, *valid) : valid_after_failure(p, h, *valid);
    }
}

#ifdef TRL_POISON /* builds for testing: data in a memory where it is not valid holds NaN after a run */
static void fill_with_nan(const trl_memory_box *box)
{
    for (int k = 0; k < box->planes; ++k)
        for (int j = 0; j < box->rows; ++j)
            memset((char *)box->at + k * box->plane_stride + j * box->row_stride, 0xff, box->row);
}

/* The memory of mock devices is the process's. */
static void poison(const trli_run_state *run, int32_t handle, int space)
{
    const trli_placed *p = run->graph->placed;
    const trl_graph_memory *memory = &p->logical->memory;
    trl_memory_box box[TRL_MEMORY_BOXES];
    const uint32_t *valid = valid_of(p, run->frame, handle);
    if (space > 0 && (is_lost(p, space) || trli_device_of(p->devices, space)->kind != TRL_KIND_MOCK)) return;
    if (!valid || *valid >> space & 1 || p->part[handle] < 0) return;
    const int n = memory->locate(memory->data, run->frame, handle_of(p, handle)->key, p->part[handle], space, box);
    for (int i = 0; i < n; ++i) fill_with_nan(&box[i]);
}

static void poison_invalid(const trli_run_state *run)
{
    const trli_placed *p = run->graph->placed;
    const trli_provision *provided = p->provisions.data;
    if (p->overlaps) return;
    for (int32_t h = 0; h < p->logical->handles.count; ++h) poison(run, h, 0);
    for (int64_t i = 0; i < p->provisions.count; ++i) poison(run, provided[i].handle, provided[i].space);
}
#endif

void trli_placed_run_finish(trli_run_state *run, bool well, double *seconds)
{
    trli_placed *p = run->graph->placed;
    const int64_t copies = atomic_load_explicit(&run->placed->copies[TRL_WAY_IN], memory_order_relaxed) +
                           atomic_load_explicit(&run->placed->copies[TRL_WAY_OUT], memory_order_relaxed);
    for (int d = 1; d <= p->devices->n && (!well || (p->overlaps && (run->watched || copies > 0))); ++d) {
        trl_device *device = trli_device_of(p->devices, d);
        device->ops->finish(device);
        const trl_err before = well ? TRL_OK : trli_device_finish(device);
        (void)before; /* earlier runs failed: the device is lost now */
    }
    note_valid(run, well);
#ifdef TRL_POISON
    if (well) poison_invalid(run);
#endif
    for (int i = 0; i < TRL_WAYS; ++i) {
        p->copies[i] += atomic_exchange_explicit(&run->placed->copies[i], 0, memory_order_relaxed);
        p->bytes[i] += atomic_exchange_explicit(&run->placed->bytes[i], 0, memory_order_relaxed);
    }
    if (well && run->watched) note_times(run, seconds);
}
