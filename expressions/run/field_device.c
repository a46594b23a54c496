/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Fields of drivers on a GPU: a statement becomes a value of an IR of its own, the value a kernel's text, by the
 * emitter that formulas have. A kernel is made once for all statements of one form, and launched without waiting. */
#include <string.h>

#include <trl_field_device.h>

#include "cache_impl.h"
#include "emit_impl.h"
#include "executor_impl.h"
#include "field_values_impl.h"
#include "gpu_kernel_impl.h"
#include "interpreter_impl.h"
#include "memory_impl.h"

/* A form of statements, its kernel, and which input each of the kernel's arrays is. */
typedef struct form {
    uint64_t digest[2];
    const trli_gpu_kernel *kernel; /* NULL: it has no text */
    int narrays, nscalars;         /* inputs, and numbers of a statement, that it reads */
    int input[TRLI_STATEMENT_INPUTS], number[TRLI_STATEMENT_NUMBERS];
} form;

typedef struct gpu_fields {
    trl_field_device base;
    trli_gpu_kernels *kernels;
    trli_gpu_kernel *clear, *pieces;
    form *form;
    int nforms, capacity;
    trl_kernel_partial *share;
    void *scratch[TRLI_FIELD_SCRATCHES];
    size_t scratch_bytes[TRLI_FIELD_SCRATCHES];
    int64_t launches;
    bool told; /* that the host computes what GPUs do not */
} gpu_fields;

static gpu_fields *gpu_of(trl_field_device *device)
{
    return (gpu_fields *)device;
}

/* ---- forms ---- */

/* Arrays of one statement, the inputs that a kernel reads, then its output. */
typedef struct arrays {
    int n;
    const trl_array *array[TRLI_STATEMENT_INPUTS + 1];
    trl_lidx low[3];
} arrays;

static arrays list_arrays(const trli_statement *s, int ninputs, const int *input)
{
    arrays all = {.n = 0};
    for (int i = 0; i < ninputs; ++i) all.array[all.n++] = &s->input[input[i]];
    if (s->kind != TRLI_STATEMENT_TERM) all.array[all.n++] = &s->output;
    for (int i = 0; i < all.n; ++i)
        for (int a = 0; a < 3; ++a)
            if (i == 0 || all.array[i]->held.lo[a] < all.low[a]) all.low[a] = all.array[i]->held.lo[a];
    return all;
}

/* Whether bytes from the lowest point of any array to the last one of another need more than 32 bits. */
static bool is_wide(const arrays *all)
{
#ifdef TRL_SMALL_SIZES /* builds for testing: small problems have them, too */
    const long long most = 1 << 14;
#else
    const long long most = UINT32_MAX;
#endif
    for (int i = 0; i < all->n; ++i) {
        long long values = 0;
        for (int a = 0; a < 3; ++a)
            values += ((long long)all->array[i]->held.hi[a] - all->low[a]) * all->array[i]->stride[a];
        if (values * (long long)sizeof(double) > most) return true;
    }
    return false;
}

/* By array the first that has the same strides. */
static void list_shapes(const arrays *all, int *shape)
{
    for (int i = 0; i < all->n; ++i)
        for (shape[i] = 0; shape[i] < i; ++shape[i])
            if (memcmp(all->array[shape[i]]->stride, all->array[i]->stride, sizeof all->array[i]->stride) == 0) break;
}

static void tell(gpu_fields *g, const char *label, const char *why)
{
    if (!g->told) trl_warn(g->base.ctx, NULL, "'%s' is computed by the host, not by the GPU: %s", label, why);
    g->told = true;
}

/* The kernel of a value. */
static trl_err make_kernel(gpu_fields *g, const trli_statement *s, const trli_ir *ir, trli_walk *walk,
                           trli_ir_value root, form *f)
{
    trli_reads reads;
    trli_emitted emitted = {.text = NULL};
    trli_gpu_kernel *kernel = NULL;
    int shape[TRLI_STATEMENT_INPUTS + 1];
    trl_err err;
    TRL_TRY(trli_reads_find(ir, walk, 1, &root, &reads));
    f->narrays = reads.nfields;
    f->nscalars = reads.nscalars;
    memcpy(f->input, reads.field, (size_t)reads.nfields * sizeof *f->input);
    memcpy(f->number, reads.scalar, (size_t)reads.nscalars * sizeof *f->number);
    const arrays all = list_arrays(s, f->narrays, f->input);
    const bool merges = s->kind == TRLI_STATEMENT_TERM;
    list_shapes(&all, shape);
    const trli_emit_request wanted = {.reads = &reads,
                                      .nroots = 1,
                                      .roots = &root,
                                      .merge = merges ? &s->term.merge : NULL,
                                      .weighted = merges && s->term.weighted,
                                      .shape = merges ? NULL : shape,
                                      .wide = is_wide(&all)};
    TRL_TRY(trli_emit_kernel(&trli_dialect_cuda, ir, walk, &wanted, &emitted));
    if (emitted.text) {
        TRL_TRY(trli_gpu_kernels_add(g->kernels, emitted.text, all.n, reads.nscalars, &kernel));
        trli_gpu_kernels_compile(g->kernels);
    }
    f->kernel = kernel && kernel->function ? kernel : NULL;
    if (!f->kernel) tell(g, s->label, kernel ? kernel->why : emitted.why);
done:
    trli_free(emitted.text);
    trli_reads_free(&reads);
    return err;
}

static trl_err make_form(gpu_fields *g, const trli_statement *s, form *f)
{
    trli_ir ir = {.ctx = NULL};
    trli_walk walk = {.list = NULL};
    trli_ir_value root;
    trl_err err;
    TRL_TRY(trli_ir_init(&ir, g->base.ctx, &s->layout->grid));
    TRL_TRY(trli_statement_value(&ir, s, &root));
    err = make_kernel(g, s, &ir, &walk, root, f);
done:
    trli_walk_free(&walk);
    trli_ir_free(&ir);
    return err;
}

/* The strides of arrays, and how far they reach, are part of a form. */
static void find_digest(const trli_statement *s, uint64_t digest[2])
{
    int every[TRLI_STATEMENT_INPUTS], shape[TRLI_STATEMENT_INPUTS + 1];
    trli_statement_digest(s, digest);
    for (int i = 0; i < s->ninputs; ++i) every[i] = i;
    const arrays all = list_arrays(s, s->ninputs, every);
    const bool wide = is_wide(&all);
    list_shapes(&all, shape);
    trli_digest_bytes(digest, shape, (size_t)all.n * sizeof *shape);
    trli_digest_bytes(digest, &wide, sizeof wide);
}

static trl_err find_form(gpu_fields *g, const trli_statement *s, const form **found)
{
    form made = {.narrays = 0};
    trl_err err = TRL_OK;
    find_digest(s, made.digest);
    for (int i = 0; i < g->nforms; ++i)
        if (memcmp(g->form[i].digest, made.digest, sizeof made.digest) == 0) {
            *found = &g->form[i];
            return TRL_OK;
        }
    if (!trli_make_room(g->base.ctx, &g->form, g->nforms, 1, &g->capacity, sizeof made))
        return trli_no_memory(g->base.ctx, NULL, "for a kernel of '%s'", s->label);
    TRL_TRY(make_form(g, s, &made));
    g->form[g->nforms] = made;
    *found = &g->form[g->nforms++];
done:
    return err;
}

/* ---- launches ---- */

static trl_err launch(gpu_fields *g, const trli_gpu_kernel *kernel, trli_gpu_call *call)
{
    const trli_gpu_api *api;
    void *stream;
    trl_err err;
    TRL_TRY(trli_gpu_use(g->base.device, TRLI_STREAM_COMPUTE, &api, &stream));
    ++g->launches;
    err = trli_gpu_launch(g->kernels, kernel, call, g->base.device->space, stream);
done:
    return err;
}

/* Where points lie on sides: their values count less. */
static void set_sides(const trli_statement *s, trl_kernel_launch *launch)
{
    static const long long nowhere = 1LL << 60;
    const trl_layout *layout = s->layout;
    for (int a = 0; a < 3; ++a) {
        const bool sides = (int)s->term.location >> a & 1 && !layout->grid.periodic[a];
        launch->from[a] = sides ? -layout->patch[s->patch].first[a] : nowhere;
        launch->to[a] = sides ? layout->grid.cells[a] - layout->patch[s->patch].first[a] : nowhere;
    }
}

static trl_err compute(trl_field_device *device, const trli_statement *s, bool *done)
{
    gpu_fields *g = gpu_of(device);
    const trli_kernel_run on = {.grid = &s->layout->grid, .patch = &s->layout->patch[s->patch]};
    trl_kernel_array array[TRLI_STATEMENT_INPUTS + 1] = {{.at = NULL}};
    double scalar[TRLI_STATEMENT_NUMBERS] = {0};
    const form *f = NULL;
    trl_err err;
    TRL_TRY(find_form(g, s, &f));
    *done = f->kernel != NULL;
    if (!*done) return TRL_OK;
    const arrays all = list_arrays(s, f->narrays, f->input);
    trli_gpu_call call = {.label = s->label,
                          .launch = {.grid = trli_kernel_grid_of(&on), .share = g->share},
                          .array = array,
                          .scalar = scalar,
                          .nresults = 1};
    for (int i = 0; i < f->nscalars; ++i) scalar[i] = s->number[f->number[i]];
    for (int a = 0; a < 3; ++a) {
        call.launch.lo[a] = s->box.lo[a];
        call.launch.hi[a] = s->box.hi[a];
        call.launch.low[a] = all.low[a];
    }
    for (int i = 0; i < all.n; ++i) {
        array[i].at = all.array[i]->at;
        for (int a = 0; a < 3; ++a) array[i].stride[a] = all.array[i]->stride[a];
    }
    if (s->kind == TRLI_STATEMENT_TERM) {
        call.shape = TRLI_GPU_MERGING;
        set_sides(s, &call.launch);
    }
    err = launch(g, f->kernel, &call);
done:
    return err;
}

/* ---- reductions ---- */

_Static_assert(sizeof(trl_kernel_partial) == sizeof(trli_partial), "kernels merge into partial results");

static trl_err clear_share(trl_field_device *device, trli_merge merge)
{
    gpu_fields *g = gpu_of(device);
    trl_kernel_array none = {.at = NULL};
    double start[TRLI_GPU_SHARES] = {0};
    trli_partial empty;
    trli_gpu_call call = {
        .label = "reduction", .launch = {.share = g->share, .hi = {1, 1, 1}}, .array = &none, .scalar = start};
    trli_partial_clear(&empty, merge);
    start[0] = empty.extreme;
    return launch(g, g->clear, &call);
}

/* Wait for a stream on which something was enqueued. */
static trl_err wait_for(trl_device *device, const trli_gpu_api *api, void *stream)
{
    const int code = api->stream_finish(stream);
    return code ? trli_gpu_fail(device, code, "work on fields") : TRL_OK;
}

static trl_err fetch_share(trl_field_device *device, trli_partial *partial)
{
    const gpu_fields *g = gpu_of(device);
    const trli_gpu_api *api;
    void *stream;
    trl_err err;
    TRL_TRY(trli_gpu_use(device->device, TRLI_STREAM_COMPUTE, &api, &stream));
    TRL_TRY(trli_gpu_copy_bytes(device->device, partial, g->share, sizeof *partial, stream));
    err = wait_for(device->device, api, stream);
done:
    return err;
}

static trl_err finish(trl_field_device *device)
{
    const trli_gpu_api *api;
    void *stream;
    trl_err err;
    TRL_TRY(trli_gpu_use(device->device, TRLI_STREAM_COMPUTE, &api, &stream));
    err = wait_for(device->device, api, stream);
done:
    return err;
}

/* ---- copies ---- */

_Static_assert(TRLI_FIELD_PIECES == (int)TRLI_GPU_PIECES, "a launch takes as many");

static trl_err copy_pieces(trl_field_device *device, int n, const trli_piece_copy *piece)
{
    gpu_fields *g = gpu_of(device);
    trl_kernel_array array[2 * TRLI_GPU_PIECES] = {{.at = NULL}};
    double extent[3 * TRLI_GPU_PIECES] = {0};
    trli_gpu_call call = {
        .label = "ghosts", .launch = {.hi = {0, n, 1}}, .array = array, .scalar = extent, .shape = TRLI_GPU_BY_PIECES};
    for (int i = 0; i < n; ++i) {
        long long points = 1;
        array[2 * i].at = piece[i].from;
        array[2 * i + 1].at = piece[i].to;
        for (int a = 0; a < 3; ++a) {
            array[2 * i].stride[a] = piece[i].from_stride[a];
            array[2 * i + 1].stride[a] = piece[i].to_stride[a];
            extent[3 * i + a] = piece[i].extent[a];
            points *= piece[i].extent[a];
        }
        if (points > call.launch.hi[0]) call.launch.hi[0] = points;
    }
    return launch(g, g->pieces, &call);
}

/* ---- memory ---- */

static trl_err space_allocate(void *data, size_t bytes, void **memory)
{
    trl_device *device = data;
    return device->ops->allocate(device, bytes, memory);
}

static void space_free(void *data, void *memory)
{
    trl_device *device = data;
    device->ops->release(device, memory);
}

static trl_err space_copy(trl_device *device, void *to, const void *from, size_t bytes, bool in)
{
    const trli_box_copy copy = {.to = to,
                                .from = from,
                                .to_space = in ? device->space : 0,
                                .from_space = in ? 0 : device->space,
                                .row = bytes,
                                .rows = 1,
                                .planes = 1};
    device->ops->finish(device);
    return trli_device_copy_now(device, 1, &copy);
}

static trl_err space_copy_in(void *data, void *to, const void *from, size_t bytes)
{
    return space_copy(data, to, from, bytes, true);
}

static trl_err space_copy_out(void *data, void *to, const void *from, size_t bytes)
{
    return space_copy(data, to, from, bytes, false);
}

static const trl_space_ops space_ops = {"GPU", space_allocate, space_free, space_copy_in, space_copy_out};

static trl_err no_room(const gpu_fields *g, size_t bytes)
{
    return trl_fail(g->base.ctx, TRL_ERR_MEMORY, NULL,
                    "the GPU has no memory left for %zu bytes between kernels; use a smaller grid", bytes);
}

static trl_err scratch(trl_field_device *device, int which, size_t bytes, void **memory)
{
    gpu_fields *g = gpu_of(device);
    trl_device *d = device->device;
    if (bytes > g->scratch_bytes[which]) {
        d->ops->finish(d);
        d->ops->release(d, g->scratch[which]);
        g->scratch[which] = NULL;
        g->scratch_bytes[which] = 0;
        const trl_err err = d->ops->allocate(d, bytes, &g->scratch[which]);
        if (err != TRL_OK) return err == TRL_ERR_MEMORY ? no_room(g, bytes) : err;
        g->scratch_bytes[which] = bytes;
    }
    *memory = g->scratch[which];
    return TRL_OK;
}

/* ---- the device ---- */

static const trli_field_device_ops ops = {.compute = compute,
                                          .clear_share = clear_share,
                                          .fetch_share = fetch_share,
                                          .copy_pieces = copy_pieces,
                                          .finish = finish,
                                          .scratch = scratch};

trl_err trl_field_device_create(trl_field_manager *manager, const trl_devices *devices, int index,
                                trl_field_device **device)
{
    trl_context *ctx = devices->ctx;
    gpu_fields *g = NULL;
    void *share;
    trl_err err = TRL_OK;
    *device = NULL;
    if (index < 0 || index >= devices->n)
        return trl_fail(ctx, TRL_ERR_USAGE, NULL, "fields cannot live on device %d: %d are open", index, devices->n);
    if (devices->device[index]->kind != TRL_KIND_GPU)
        return trl_fail(ctx, TRL_ERR_DEVICE, NULL, "fields cannot live on device %d: it is no GPU", index);
    g = trli_new(ctx, 1, sizeof *g);
    if (!g) return trli_no_memory(ctx, NULL, "for fields of a GPU");
    g->base = (trl_field_device){.ops = &ops, .ctx = ctx, .manager = manager, .device = devices->device[index]};
    TRL_TRY(trli_gpu_kernels_create(ctx, devices, &g->kernels));
    TRL_TRY(trli_gpu_kernels_add_clear(g->kernels, &g->clear));
    TRL_TRY(trli_gpu_kernels_add_pieces(g->kernels, &g->pieces));
    trli_gpu_kernels_compile(g->kernels);
    if (!g->clear->function || !g->pieces->function)
        TRL_TRY(trl_fail(ctx, TRL_ERR_DEVICE, NULL, "fields cannot live on a GPU: %s",
                         g->clear->function ? g->pieces->why : g->clear->why));
    TRL_TRY(space_allocate(g->base.device, sizeof *g->share, &share));
    g->share = share;
    TRL_TRY(trl_field_manager_add_space(manager, &space_ops, g->base.device, &g->base.space));
    *device = &g->base;
    g = NULL;
done:
    if (g) {
        trl_field_device *failed = &g->base;
        trl_field_device_destroy(&failed);
    }
    return err;
}

void trl_field_device_destroy(trl_field_device **device)
{
    gpu_fields *g = *device ? gpu_of(*device) : NULL;
    *device = NULL;
    if (!g) return;
    trl_device *d = g->base.device;
    d->ops->finish(d);
    d->ops->release(d, g->share);
    for (int i = 0; i < TRLI_FIELD_SCRATCHES; ++i) d->ops->release(d, g->scratch[i]);
    trli_gpu_kernels_destroy(&g->kernels);
    trli_free(g->form);
    trli_free(g);
}

trl_err trl_field_device_finish(trl_field_device *device)
{
    return finish(device);
}

trl_field_device_stats trl_field_device_get_stats(const trl_field_device *device)
{
    const gpu_fields *g = (const gpu_fields *)device;
    return (trl_field_device_stats){.fields = device->fields,
                                    .kernels = g->nforms,
                                    .launches = g->launches,
                                    .bytes_in = device->bytes_in,
                                    .bytes_out = device->bytes_out};
}
