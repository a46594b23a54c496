/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include "gpu_row_impl.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "arithmetic_impl.h"
#include "compute_impl.h"
#include "context_impl.h"
#include "executor_impl.h"
#include "found_scalars_impl.h"
#include "gpu_impl.h"
#include "gpu_kernel_impl.h"
#include "memory_impl.h"
#include "memstream_impl.h"
#include "pipeline_impl.h"

enum {
    THREADS_MOST = 512, /* so that a thread may have 128 registers */
    FUNCTIONS = 20,     /* of a row */
    RUNS = 36,
    FIELDS = 32,
    ARRAYS = 8, /* of a call */
    SCALARS = 8,
    FAILURES = 3, /* rows in vain, after which none is begun */
    WARP = 32
};

/* A call: of which function, and which arrays of the row it has. As in the text. */
typedef struct one_call {
    double scalar[SCALARS];
    unsigned char function, array[ARRAYS], unused[7];
} one_call;

/* launch: by function; all calls of one have the same. */
typedef struct all_calls {
    trl_kernel_launch launch[FUNCTIONS];
    long long n;
    one_call call[RUNS];
} all_calls;
_Static_assert(sizeof(one_call) == 80 && sizeof(all_calls) % sizeof(double) == 0, "the text has it so");

typedef struct function {
    const char *text;
    int narrays, nscalars;
} function;

struct trli_gpu_row {
    trl_context *ctx;
    int n, failures;
    function function[FUNCTIONS];
    trli_gpu_kernel *kernel; /* of the first so many functions: */
    int nkernel;
    /* Of the present row: */
    const trli_model *model;
    trl_device *device;
    trl_kernel_array array[FIELDS];
    int narrays;
    bool fits;
    all_calls calls;
};

/* ---- the text ---- */

/* A kernel becomes a function of a thread that stands for one of its threads. What one run wrote the next one reads,
 * so that no load may go past the caches that stores go through. */
static const char head[] =
    "#define TRL_KERNEL_HAS_BARRIERS\n"
    "struct trl_row_place {\n    unsigned x, y, z;\n};\n"
    "struct trl_row_at {\n    trl_row_place block, thread, threads;\n};\n"
    "struct trl_row_call {\n    double scalar[8];\n    unsigned char function, array[8], unused[7];\n};\n"
    "struct trl_row_calls {\n    trl_kernel_launch launch[20];\n    long long n;\n    trl_row_call call[36];\n};\n"
    "#define __restrict__\n";
_Static_assert(SCALARS == 8 && ARRAYS == 8 && FUNCTIONS == 20 && RUNS == 36 && FIELDS == 32,
               "texts have these numbers");

static const char before_kernel[] = "extern \"C\" __global__ void __launch_bounds__(TRL_KERNEL_THREADS)\ntrl_kernel(";
static const char by_value[] = "const __grid_constant__ ";

/* false: it is not written as kernels are. */
static bool put_function(FILE *out, const char *text, int number)
{
    const char *const kernel = strstr(text, before_kernel);
    if (!kernel) return false;
    (void)fprintf(out,
                  "#undef trl_kernel\n#define trl_kernel trl_row_kernel_%d\n%.*s"
                  "#define blockIdx at.block\n#define threadIdx at.thread\n#define blockDim at.threads\n"
                  "TRL_KERNEL_APART void trl_row_%d(const trl_row_at at, ",
                  number, (int)(kernel - text), text, number);
    const char *at = kernel + strlen(before_kernel);
    for (const char *next; (next = strstr(at, by_value)) != NULL;) {
        (void)fprintf(out, "%.*sconst ", (int)(next - at), at);
        at = next + strlen(by_value);
        const size_t type = strcspn(at, " ,)");
        (void)fprintf(out, "%.*s &", (int)type, at);
        at += type + (at[type] == ' '); /* before a name */
    }
    (void)fprintf(out, "%s#undef blockIdx\n#undef threadIdx\n#undef blockDim\n", at);
    return true;
}

static void put_kernel(const trli_gpu_row *row, FILE *out)
{
    (void)fprintf(
        out,
        "#undef trl_kernel\n"
        "extern \"C\" __global__ void __launch_bounds__(%d)\n"
        "trl_kernel(const __grid_constant__ trl_kernel_launch,\n"
        "           const __grid_constant__ trl_kernel_arrays<32> arrays,\n"
        "           const __grid_constant__ trl_row_calls calls)\n"
        "{\n"
        "    __shared__ trl_kernel_array array[8];\n"
        "    __shared__ trl_kernel_launch launch;\n"
        "    const unsigned thread = threadIdx.x, threads = blockDim.x;\n"
        "    for (int c = 0; c < (int)calls.n; ++c) {\n"
        "        const int function = calls.call[c].function;\n"
        "        const unsigned words = sizeof launch / sizeof(long long);\n"
        "        for (unsigned i = thread; i < words; i += threads)\n"
        "            ((long long *)&launch)[i] = ((const long long *)&calls.launch[function])[i];\n"
        "        for (unsigned i = thread; i < 8; i += threads) array[i] = arrays.array[calls.call[c].array[i]];\n"
        "        __syncthreads();\n"
        "        const unsigned nx = (unsigned)(launch.hi[0] - launch.lo[0]);\n"
        "        const unsigned ny = (unsigned)(launch.hi[1] - launch.lo[1]);\n"
        "        const unsigned n = nx * ny * (unsigned)(launch.hi[2] - launch.lo[2]);\n"
        "        for (unsigned p = thread; p < n; p += threads) {\n"
        "            const trl_row_at at = {{0, 0, p / (nx * ny)}, {p %% nx, p / nx %% ny, 0}, {nx, ny, 1}};\n"
        "            switch (function) {\n",
        THREADS_MOST);
    for (int f = 0; f < row->n; ++f)
        (void)fprintf(out,
                      "            case %d:\n"
                      "                trl_row_%d(at, launch, *(const trl_kernel_arrays<%d> *)array,\n"
                      "                           *(const trl_kernel_scalars<%d> *)calls.call[c].scalar);\n"
                      "                break;\n",
                      f, f, row->function[f].narrays, row->function[f].nscalars);
    (void)fputs("            }\n        }\n        __syncthreads();\n    }\n}\n", out);
}
_Static_assert(sizeof(trl_kernel_launch) % sizeof(long long) == 0, "it is copied word by word");

/* For all functions that there are now. */
static trl_err ask(trli_gpu_row *row)
{
    trli_gpu_kernels *kernels = row->model->run->gpu_kernels;
    trli_memstream text = {0};
    bool written = true;
    trl_err err = TRL_OK;
    row->kernel = NULL;
    row->nkernel = row->n;
    if (!trli_memstream_open(row->ctx, &text)) return trli_no_memory(row->ctx, NULL, "for the text of a kernel");
    (void)fputs(head, text.out);
    for (int f = 0; f < row->n; ++f) written &= put_function(text.out, row->function[f].text, f);
    put_kernel(row, text.out);
    if (!trli_memstream_close(&text)) return trli_no_memory(row->ctx, NULL, "for the text of a kernel");
    if (written)
        err = trli_gpu_kernels_add(kernels, text.text, FIELDS, (int)(sizeof row->calls / sizeof(double)), &row->kernel);
    if (written && err == TRL_OK) trli_gpu_kernels_compile(kernels);
    if (row->kernel && !row->kernel->function)
        trl_warn(row->ctx, NULL, "cycles on small grids take more launches of GPUs: %s", row->kernel->why);
    trli_memstream_discard(&text);
    return err;
}

/* ---- which programs ---- */

/* The only kernel of a program, which needs nothing done before it; NULL: there is no such one. */
static const trli_step *find_kernel(const trli_program *program)
{
    const trli_step *found = NULL;
    for (int i = 0; i < program->nsteps; ++i) {
        const trli_step *s = &program->step[i];
        const trli_step_plan *p = &program->plan->step[i];
        if (!p->live || s->kind == TRLI_STEP_READ) continue;
        if (s->kind == TRLI_STEP_FILL && p->nslabs == 0 && trli_gpu_goes_round(program, &p->exchanged)) continue;
        if (s->kind != TRLI_STEP_KERNEL || found) return NULL;
        found = s;
    }
    return found;
}

static bool can_do(const trli_step_task *t)
{
    if (t->fused || !trli_gpu_does_kernel(t) || (t->plan->nslabs > 0 && !t->run->gpu_folds)) return false;
    return trli_gpu_parts_of(t->program, t->step)->n == 1 && t->program->run->reductions.n == 0;
}

/* ---- rows ---- */

trl_err trli_gpu_row_create(trl_context *ctx, trli_gpu_row **row)
{
    *row = trli_new(ctx, 1, sizeof **row);
    if (!*row) return trli_no_memory(ctx, NULL, "for launches of a GPU");
    (*row)->ctx = ctx;
    return TRL_OK;
}

void trli_gpu_row_destroy(trli_gpu_row **row)
{
    trli_free(*row);
    *row = NULL;
}

void trli_gpu_row_begin(trli_gpu_row *row, const trli_frame *frame, int field, bool *begun)
{
    const trli_model *model = row->model = frame->model;
    const uint32_t spaces = trli_frame_spaces(frame, field, 0);
    *begun = false;
    if (row->failures == FAILURES || !model->run->gpu_kernels || trl_context_ranks(row->ctx) > 1) return;
    if (model->layout->npatches > 1 || spaces == 0 || spaces & 1) return;
    row->device = trli_device_of(trl_workers_devices(model->run->workers), __builtin_ctz(spaces));
    *begun = row->fits = row->device->kind == TRL_KIND_GPU && trli_device_usable(row->device);
    row->narrays = 0;
    memset(row->array, 0, sizeof row->array);
    memset(&row->calls, 0, sizeof row->calls);
}

trl_device *trli_gpu_row_device(const trli_gpu_row *row)
{
    return row->device;
}

void trli_gpu_row_spoil(trli_gpu_row *row)
{
    row->fits = false;
}

/* Which array of the row one is. */
static unsigned char note_array(trli_gpu_row *row, const trl_kernel_array *array)
{
    int i = 0;
    while (i < row->narrays && memcmp(&row->array[i], array, sizeof *array) != 0) ++i;
    row->fits &= i < FIELDS;
    if (i == FIELDS) return 0;
    row->array[i] = *array;
    if (i == row->narrays) ++row->narrays;
    return (unsigned char)i;
}

/* Which function a text is: a new one, if it was not called before. */
static unsigned char note_function(trli_gpu_row *row, const char *text, int narrays, int nscalars)
{
    int f = 0;
    while (f < row->n && row->function[f].text != text) ++f;
    row->fits &= f < FUNCTIONS;
    if (f == FUNCTIONS) return 0;
    row->function[f] = (function){text, narrays, nscalars > 0 ? nscalars : 1};
    if (f == row->n) ++row->n;
    return (unsigned char)f;
}

/* Whether a function's launch is as in the calls before, if there were some: a grid's. */
static bool is_same(const trli_gpu_row *row, const trl_kernel_launch *launch, unsigned char f)
{
    for (long long c = 0; c < row->calls.n; ++c)
        if (row->calls.call[c].function == f) return memcmp(&row->calls.launch[f], launch, sizeof *launch) == 0;
    return true;
}

void trli_gpu_row_call(trli_gpu_row *row, const char *text, const trli_gpu_call *call, int narrays, int nscalars)
{
    trl_kernel_launch launch = call->launch;
    long long points = 1;
    for (int a = 0; a < 3; ++a) points *= launch.hi[a] - launch.lo[a];
    row->fits &= row->calls.n < RUNS && narrays <= ARRAYS && nscalars <= SCALARS && points <= TRLI_ROW_POINTS;
    if (!row->fits || points <= 0) return;
    one_call *to = &row->calls.call[row->calls.n];
    launch.planes = 1;
    to->function = note_function(row, text, narrays, nscalars);
    for (int i = 0; i < narrays; ++i) to->array[i] = note_array(row, &call->array[i]);
    memcpy(to->scalar, call->scalar, (size_t)nscalars * sizeof *to->scalar);
    row->fits &= is_same(row, &launch, to->function);
    row->calls.launch[to->function] = launch;
    ++row->calls.n;
}

/* Whether a run leaves some of a result's points as they were, on sides with given values. */
static bool leaves_points(const trli_frame *frame, const trli_program *program, const trli_step *s, int output)
{
    const trl_layout *layout = frame->model->layout;
    const trl_box box = trli_step_box(program, s, output, 0),
                  owned = trl_patch_owned(layout, &layout->patch[0], frame->model->field[s->field[output]].location);
    return trl_box_points(&box) < trl_box_points(&owned);
}

/* Let the GPU have memory for what a run writes; and the values of points that the run leaves. */
static bool take_result(trli_frame *frame, int field, bool leaves, int space)
{
    const bool there = trli_frame_spaces(frame, field, 0) >> space & 1;
    if (!leaves || there) return trli_frame_provide(frame, field, space) == TRL_OK;
    return trli_frame_fetch(frame, field) == TRL_OK && trli_frame_send(frame, field, space) == TRL_OK;
}

/* Whether the GPU has what a run reads; and memory for what it writes, which is the run's then. */
static bool take_fields(const trli_gpu_row *row, trli_frame *frame, const trli_program *program, const trli_step *s,
                        const trli_step_part *part)
{
    const int space = row->device->space;
    bool all = true;
    for (int i = 0; i < part->reads.nfields; ++i) all &= trli_frame_spaces(frame, part->reads.field[i], 0) >> space & 1;
    for (int i = 0; i < part->reads.nscalars; ++i) all &= !trli_is_found(frame->model, part->reads.scalar[i]);
    for (int r = 0; r < part->nroots; ++r) {
        const int field = s->field[part->root[r]];
        all = all && take_result(frame, field, leaves_points(frame, program, s, part->root[r]), space);
        if (all) trli_frame_written_in(frame, field, space);
    }
    return all;
}

void trli_gpu_row_run(trli_gpu_row *row, trli_frame *frame, const trli_program *program)
{
    const trl_task_args args = {.frame = frame, .chunks = 1, .space = row->device->space};
    const trli_step *s = find_kernel(program);
    trl_kernel_array array[ARRAYS];
    double scalar[SCALARS + 1] = {0};
    trli_gpu_call call;
    row->fits &= s != NULL;
    if (!row->fits) return;
    const trli_step_task task = {.program = (trli_program *)program,
                                 .step = s,
                                 .plan = trli_plan_of(program, s),
                                 .run = trli_run_of(program, s),
                                 .fused = trli_fused_sums_of(program, s),
                                 .box = trli_step_box(program, s, 0, 0)};
    row->fits &= can_do(&task);
    if (!row->fits) return;
    const trli_step_part *part = trli_gpu_parts_of(program, s)->part;
    const trli_code_use *use = task.run->gpu;
    const int narrays = part->reads.nfields + part->nroots, nscalars = part->reads.nscalars + use->code->ngiven;
    row->fits &= narrays <= ARRAYS && nscalars <= SCALARS && take_fields(row, frame, program, s, part);
    if (!row->fits) return;
    trli_gpu_call_in(&args, &task, part, array, scalar, &call);
    trli_gpu_take_scalars(&args, use, &part->reads, &call);
    trli_gpu_row_call(row, use->code->text, &call, narrays, nscalars);
}

static trl_err launch(void *data, const trl_task_args *args, bool *done)
{
    trli_gpu_row *row = data;
    long long most = 1;
    for (int f = 0; f < row->n; ++f) {
        const trl_kernel_launch *l = &row->calls.launch[f];
        most = trli_max(most, (l->hi[0] - l->lo[0]) * (l->hi[1] - l->lo[1]) * (l->hi[2] - l->lo[2]));
    }
    const trli_gpu_layout layout = {.blocks = {1, 1, 1},
                                    .threads = (unsigned)trli_min(trli_ceil_div(most, WARP) * WARP, THREADS_MOST)};
    trli_gpu_call call = {.label = "small grids",
                          .launch = {.hi = {1, 1, 1}},
                          .array = row->array,
                          .scalar = (double *)&row->calls,
                          .shape = TRLI_GPU_GIVEN,
                          .layout = &layout};
    (void)done;
    return trli_gpu_launch(row->model->run->gpu_kernels, row->kernel, &call, args->space, args->stream);
}

/* A device that fails leaves the row to others. */
trl_err trli_gpu_row_end(trli_gpu_row *row, bool *done)
{
    const trl_task_args args = {.chunks = 1, .space = row->device->space};
    const trl_diagnostic *list;
    const int said = trl_context_diagnostics(row->ctx, &list);
    trl_err err = TRL_OK;
    *done = false;
    if (row->fits && row->nkernel != row->n) TRL_TRY(ask(row));
    *done = row->fits && row->kernel && row->kernel->function &&
            trli_device_call(row->device, launch, row, &args) == TRL_OK;
    if (!*done) trli_diagnostics_forgive(row->ctx, said);
    row->failures += !*done;
done:
    return err;
}
