/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Runs of placed graphs: launches give their commands to devices, watches ask whether devices came to a fence. No
 * thread waits for a device. */
#include "arithmetic_impl.h"
#include "placed_impl.h"

/* ---- where data is ---- */

static const trl_policy_handle *handle_of(const trli_placed *p, int32_t handle)
{
    return (const trl_policy_handle *)p->logical->handles.data + handle;
}

static uint32_t *valid_of(const trli_placed *p, void *frame, int32_t handle)
{
    const trl_graph_memory *memory = &p->logical->memory;
    return memory->valid(memory->data, frame, handle_of(p, handle)->key);
}

trl_err trli_placed_provide(const trli_placed *p, void *frame)
{
    const trl_graph_memory *memory = &p->logical->memory;
    const trli_provision *all = p->provisions.data;
    trl_err err = TRL_OK;
    for (int64_t i = 0; i < p->provisions.count; ++i)
        TRL_TRY(memory->provide(memory->data, frame, handle_of(p, all[i].handle)->key, all[i].space));
done:
    return err;
}

/* ---- copies ---- */

/* The space from which a transfer copies in this run; -1: nothing is to be copied, the value is there already, or
 * nowhere. */
static int find_source(const trli_placed *p, const trli_transfer *t, void *frame)
{
    if (t->from != TRLI_ANYWHERE) return t->from;
    const uint32_t valid = *valid_of(p, frame, t->handle);
    if (valid == 0 || valid & 1u << t->to) return -1;
    return __builtin_ctz(valid);
}

/* The part of the data that the first reader asks for. */
static int32_t part_of(const trli_placed *p, const trli_transfer *t)
{
    const trl_graph *graph = p->logical;
    int32_t a = graph->access_first[t->reader];
    while (graph->access[a].handle != t->handle) ++a;
    return graph->access[a].part;
}

static trl_err copy_pieces(trli_run_state *run, const trli_transfer *t, int from, trl_device *device,
                           trli_stream stream)
{
    const trli_placed *p = run->graph->placed;
    const trl_graph_memory *memory = &p->logical->memory;
    const int64_t key = handle_of(p, t->handle)->key;
    const int32_t part = part_of(p, t);
    const int way = from == 0 ? 0 : t->to == 0 ? 1 : 2;
    trl_piece source[TRL_PIECES_MAX], target[TRL_PIECES_MAX];
    int64_t bytes = 0;
    trl_err err = TRL_OK;
    const int n = memory->locate(memory->data, run->frame, key, part, from, source);
    (void)memory->locate(memory->data, run->frame, key, part, t->to, target);
    for (int i = 0; i < n; ++i) {
        const trli_box_copy copy = trli_copy_of_pieces(&source[i], from, &target[i], t->to);
        TRL_TRY(device->ops->copy(device, stream, &copy));
        bytes += (int64_t)copy.row * copy.rows * copy.planes;
    }
    /* Relaxed: read when the run is over. */
    atomic_fetch_add_explicit(&run->placed->copies[way], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&run->placed->bytes[way], bytes, memory_order_relaxed);
done:
    return err;
}

/* ---- launches ---- */

static trl_err call(trli_run_state *run, const trli_launch *launch, trl_device *device, int32_t number)
{
    const trli_placed *p = launch->placed;
    const int32_t t = p->call[number];
    const trl_task_args args = {
        .chunks = 1, .worker = run->view.workers + launch->space - 1, .space = launch->space, .frame = run->frame};
    trli_fence **timer = run->placed->fence + p->nfences + (ptrdiff_t)2 * number;
    trl_err err = TRL_OK;
    if (run->watched) TRL_TRY(device->ops->set(device, TRLI_STREAM_COMPUTE, timer[0]));
    TRL_TRY(device->ops->call(device, TRLI_STREAM_COMPUTE, trli_graph_info(p->logical)[t].variant[device->kind].run,
                              trli_graph_records(p->logical)[t].data, &args));
    if (run->watched) TRL_TRY(device->ops->set(device, TRLI_STREAM_COMPUTE, timer[1]));
done:
    return err;
}

/* Relaxed: who sees the launch complete sees the mark. */
static trl_err set_fence(trli_run_state *run, trl_device *device, trli_stream stream, int32_t fence)
{
    trl_err err;
    TRL_TRY(device->ops->set(device, stream, run->placed->fence[fence]));
    atomic_store_explicit(&run->placed->set[fence], true, memory_order_relaxed);
done:
    return err;
}

static trl_err wait_for(const trli_run_state *run, trl_device *device, trli_stream stream, int32_t fence)
{
    if (!atomic_load_explicit(&run->placed->set[fence], memory_order_relaxed)) return TRL_OK;
    return device->ops->wait(device, stream, run->placed->fence[fence]);
}

static trl_err launch_region(trli_run_state *run, const trli_launch *launch)
{
    const trli_placed *p = launch->placed;
    const trli_command *c = (const trli_command *)p->commands.data + launch->first;
    trl_device *device = trli_device_of(p->devices, launch->space);
    trl_err err = TRL_OK;
    for (int32_t i = 0; i < launch->n; ++i)
        TRL_TRY(c[i].kind == TRLI_COMMAND_WAIT  ? wait_for(run, device, (trli_stream)c[i].stream, c[i].index)
                : c[i].kind == TRLI_COMMAND_SET ? set_fence(run, device, (trli_stream)c[i].stream, c[i].index)
                                                : call(run, launch, device, c[i].index));
done:
    return err;
}

/* The device that gives or takes is only known now if the value may be anywhere: so is the stream, and the fence. */
static trl_err launch_transfer(trli_run_state *run, const trli_launch *launch)
{
    const trli_placed *p = launch->placed;
    const trli_command *c = (const trli_command *)p->commands.data + launch->first;
    const trli_transfer *t = (const trli_transfer *)p->transfers.list.data + (launch - p->launch - p->nregions);
    const int from = find_source(p, t, run->frame);
    trl_err err = TRL_OK;
    if (from < 0) return TRL_OK;
    trl_device *device = trli_device_of(p->devices, t->to > 0 ? t->to : from);
    const int32_t other = launch->space > 0 ? 0 : from - 1; /* of the fences, one for each device */
    for (int32_t i = 0; i < launch->n; ++i)
        TRL_TRY(c[i].kind == TRLI_COMMAND_WAIT  ? wait_for(run, device, (trli_stream)c[i].stream, c[i].index)
                : c[i].kind == TRLI_COMMAND_SET ? set_fence(run, device, (trli_stream)c[i].stream, c[i].index + other)
                                                : copy_pieces(run, t, from, device, (trli_stream)c[i].stream));
done:
    return err;
}

trl_err trli_placed_launch(void *data, const trl_task_args *args, bool *done)
{
    const trli_launch *launch = data;
    const bool region = launch - launch->placed->launch < launch->placed->nregions;
    (void)done;
    return region ? launch_region(args->run->run, launch) : launch_transfer(args->run->run, launch);
}

trl_err trli_placed_watch(void *data, const trl_task_args *args, bool *done)
{
    const trli_watch *watch = data;
    const trli_placed *p = watch->placed;
    trli_run_state *run = args->run->run;
    trl_err err = TRL_OK;
    for (int32_t f = watch->fence; f < watch->fence + watch->n; ++f) {
        if (!atomic_load_explicit(&run->placed->set[f], memory_order_relaxed)) continue;
        trl_device *device = trli_device_of(p->devices, p->fence_space[f]);
        TRL_TRY(device->ops->passed(device, run->placed->fence[f], done));
    }
done:
    return err;
}

/* ---- the state of a run ---- */

static trl_err create_fence(const trli_placed *p, int space, trli_fence **fence)
{
    trl_device *device = trli_device_of(p->devices, space);
    return device->ops->fence_create(device, fence);
}

static int space_of_call(const trli_placed *p, int32_t number)
{
    return p->executor[p->call[number]];
}

trl_err trli_placed_run_create(trli_run_state *run)
{
    const trli_placed *p = run->graph->placed;
    trl_context *ctx = run->graph->ctx;
    trl_err err = TRL_OK;
    if (!p) return TRL_OK;
    trli_placed_run *state = run->placed = trli_new(ctx, 1, sizeof *state);
    if (!state) return trli_no_memory(ctx, NULL, "for runs of a placed graph");
    state->fence = trli_new(ctx, (size_t)p->nfences + 2 * (size_t)p->ncalls + 1, sizeof *state->fence);
    state->set = trli_new(ctx, (size_t)p->nfences + 1, sizeof *state->set);
    if (!state->fence || !state->set) return trli_no_memory(ctx, NULL, "for runs of a placed graph");
    for (int32_t f = 0; f < p->nfences; ++f) TRL_TRY(create_fence(p, p->fence_space[f], &state->fence[f]));
    for (int32_t c = 0; c < 2 * p->ncalls; ++c)
        TRL_TRY(create_fence(p, space_of_call(p, c / 2), &state->fence[p->nfences + c]));
done:
    return err;
}

void trli_placed_run_destroy(trli_run_state *run)
{
    const trli_placed *p = run->graph->placed;
    trli_placed_run *state = run->placed;
    if (!state) return;
    for (int32_t f = 0; state->fence && f < p->nfences + 2 * p->ncalls; ++f) {
        const int space = f < p->nfences ? p->fence_space[f] : space_of_call(p, (f - p->nfences) / 2);
        trl_device *device = trli_device_of(p->devices, space);
        if (state->fence[f]) device->ops->fence_destroy(device, state->fence[f]);
    }
    trli_free(state->fence);
    trli_free((void *)state->set);
    trli_free(state);
    run->placed = NULL;
}

void trli_placed_run_start(trli_run_state *run)
{
    const trli_placed *p = run->graph->placed;
    for (int32_t f = 0; p && f < p->nfences; ++f)
        atomic_store_explicit(&run->placed->set[f], false, memory_order_relaxed); /* no worker is inside */
}

static void note_times(const trli_run_state *run, double *seconds)
{
    const trli_placed *p = run->graph->placed;
    for (int32_t c = 0; c < p->ncalls; ++c) {
        trl_device *device = trli_device_of(p->devices, space_of_call(p, c));
        trli_fence **timer = run->placed->fence + p->nfences + (ptrdiff_t)2 * c;
        seconds[p->call[c]] = device->ops->seconds(device, timer[0], timer[1]);
    }
    for (int32_t i = 0; i < run->graph->task_count; ++i)
        if (p->task_of[i] >= 0)
            seconds[p->task_of[i]] = 1e-9 * (double)atomic_load_explicit(&run->run_ns[i], memory_order_relaxed);
}

void trli_placed_run_finish(trli_run_state *run, double *seconds)
{
    trli_placed *p = run->graph->placed;
    for (int64_t h = 0; h < p->logical->handles.count; ++h) {
        const uint32_t now = p->transfers.valid_after[h];
        uint32_t *valid = valid_of(p, run->frame, (int32_t)h);
        if (!valid) continue;
        *valid = now & 1u << TRLI_ANYWHERE ? (*valid ? *valid | (now & ~(1u << TRLI_ANYWHERE)) : 0) : now;
    }
    for (int i = 0; i < 3; ++i) {
        p->copies[i] += atomic_exchange_explicit(&run->placed->copies[i], 0, memory_order_relaxed);
        p->bytes[i] += atomic_exchange_explicit(&run->placed->bytes[i], 0, memory_order_relaxed);
    }
    if (seconds && run->watched) note_times(run, seconds);
}
