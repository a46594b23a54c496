/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* CUDA forms of plugins: their texts become kernels like those of formulas, whose threads call them point by point. */
#include <stdio.h>
#include <string.h>

#include "gpu_impl.h"
#include "memory_impl.h"
#include "memstream_impl.h"
#include "pipeline_impl.h"
#include "plan_impl.h"

/* What a form sees of a point. Behind it follows the form, then the kernel. */
static const char point_text[] =
    "struct trl_point {\n"
    "    const trl_kernel_launch *call;\n"
    "    const trl_kernel_array *array;\n"
    "    const double *scalar;\n"
    "    long long i, j, k;\n"
    "    double t, t_step, dt;\n"
    "    int stage;\n"
    "    __device__ double required(int n) const\n"
    "    {\n"
    "        const trl_kernel_array &a = array[n];\n"
    "        return a.at[i + j * a.stride[1] + k * a.stride[2]];\n"
    "    }\n"
    "    __device__ double required(int n, int di, int dj, int dk) const\n"
    "    {\n"
    "        const trl_kernel_array &a = array[n];\n"
    "        return a.at[i + di + (j + dj) * a.stride[1] + (k + dk) * a.stride[2]];\n"
    "    }\n"
    "    __device__ double number(int n) const { return scalar[n]; }\n"
    "    __device__ double coordinate(int axis) const\n"
    "    {\n"
    "        const long long at = axis == 0 ? i : axis == 1 ? j : k;\n"
    "        return trl_kernel_coordinate(&call->grid, axis, TRL_POINT_LOCATION >> axis & 1 ? 0.0 : 0.5,\n"
    "                                     call->grid.first[axis] + at);\n"
    "    }\n"
    "    __device__ double spacing(int axis) const { return call->grid.spacing[axis]; }\n";

static const char computed_text[] = "    __device__ double &computed(int n) const\n"
                                    "    {\n"
                                    "        const trl_kernel_array &a = array[TRL_POINT_REQUIRED + n];\n"
                                    "        return a.at[i + j * a.stride[1] + k * a.stride[2]];\n"
                                    "    }\n";

/* Of modifiers; first: along the axis, by array. */
static const char side_text[] =
    "    int axis, side;\n"
    "    const double *first;\n"
    "    __device__ double from_side(int n, int m) const\n"
    "    {\n"
    "        const trl_kernel_array &a = array[n];\n"
    "        const long long at = (long long)first[n] + (side ? -m : m);\n"
    "        return a.at[(axis == 0 ? at : i) + (axis == 1 ? at : j) * a.stride[1] + (axis == 2 ? at : k) * "
    "a.stride[2]];\n"
    "    }\n"
    "    __device__ double inside(int n, int m) const { return from_side(n, m); }\n"
    "    __device__ double target(int m) const { return from_side(TRL_POINT_REQUIRED, m); }\n"
    "    __device__ int layer() const\n"
    "    {\n"
    "        const long long at = axis == 0 ? i : axis == 1 ? j : k, owned = (long long)first[TRL_POINT_REQUIRED];\n"
    "        return (int)(side ? at - owned : owned - at);\n"
    "    }\n";

static const char here_text[] =
    "{&call, arrays.array, scalars.value + TRL_POINT_GIVEN, i, j, k, scalars.value[0], scalars.value[1], "
    "scalars.value[2], (int)scalars.value[3]";
static const char here_at_side_text[] = ", (int)scalars.value[4], (int)scalars.value[5], scalars.value + 6";
_Static_assert(TRLI_GPU_PLUGIN_SCALARS == 4 && TRLI_GPU_SIDE_SCALARS == 2, "texts have these numbers");

static const char head_text[] =
    "#line 1 \"trl_kernel.cu\"\n"
    "extern \"C\" __global__ void __launch_bounds__(TRL_KERNEL_THREADS)\n"
    "trl_kernel(const __grid_constant__ trl_kernel_launch call, const __grid_constant__ trl_kernel_arrays<%d> "
    "arrays,\n           const __grid_constant__ trl_kernel_scalars<%d> scalars)\n{\n";

static const char evaluate_text[] =
    "    const long long i = call.lo[0] + (long long)blockIdx.x * blockDim.x + threadIdx.x;\n"
    "    const long long j = call.lo[1] + (long long)blockIdx.y * blockDim.y + threadIdx.y;\n"
    "    const long long first = call.lo[2] + blockIdx.z * call.planes, rest = call.hi[2] - first;\n"
    "    const long long end = first + (rest < call.planes ? rest : call.planes);\n"
    "    if (i >= call.hi[0] || j >= call.hi[1]) return;\n"
    "    for (long long k = first; k < end; ++k) {\n"
    "        const trl_point point = TRL_POINT_HERE;\n"
    "        evaluate(point);\n"
    "    }\n"
    "}\n";

static const char stable_dt_text[] =
    "    trl_kernel_extreme least = {call.share[0].extreme, false};\n"
    "    const long long across = call.hi[1] - call.lo[1], rows = across * (call.hi[2] - call.lo[2]);\n"
    "    for (long long above = (long long)blockIdx.y * blockDim.y; above < rows;\n"
    "         above += (long long)gridDim.y * blockDim.y) {\n"
    "        const long long row = above + threadIdx.y, plane = trl_kernel_quotient(row, across);\n"
    "        const long long j = call.lo[1] + row - plane * across, k = call.lo[2] + plane;\n"
    "        for (long long left = call.lo[0] + (long long)blockIdx.x * blockDim.x; left < call.hi[0];\n"
    "             left += (long long)gridDim.x * blockDim.x) {\n"
    "            const long long i = left + threadIdx.x;\n"
    "            if (row >= rows || i >= call.hi[0]) continue;\n"
    "            const trl_point point = TRL_POINT_HERE;\n"
    "            trl_kernel_merge_extreme(&least, stable_dt(point), true);\n"
    "        }\n"
    "    }\n"
    "    trl_kernel_end_extreme(&least, &call.share[0], true);\n"
    "}\n";

static const char too_many_locations[] = "its results are at more than one location";

static bool is_modifier(const trli_opaque *called)
{
    return called->flags & TRL_EXPR_MODIFIER;
}

int trli_gpu_form_given(const trli_opaque *called)
{
    return TRLI_GPU_PLUGIN_SCALARS + (is_modifier(called) ? TRLI_GPU_SIDE_SCALARS + called->ninputs + 1 : 0);
}

/* Inputs, then what it stores. */
static int arrays_of(const trli_opaque *called, trli_form form)
{
    return called->ninputs + (form == TRLI_FORM_EVALUATE ? called->noutputs : 0);
}

static void write_form(const trli_opaque *called, trli_form form, FILE *out)
{
    enum { TEXTS = sizeof called->cuda[0]->text / sizeof *called->cuda[0]->text };
    const trl_cuda_form *cuda = called->cuda[form];
    const bool stores = form == TRLI_FORM_EVALUATE, at_side = stores && is_modifier(called);
    const int arrays = arrays_of(called, form);
    fprintf(out, "#define TRL_POINT_REQUIRED %d\n#define TRL_POINT_LOCATION %d\n#define TRL_POINT_GIVEN %d\n",
            called->ninputs, (int)called->location, trli_gpu_form_given(called));
    fprintf(out, "#define TRL_POINT_HERE %s%s}\n%s%s%s};\n", here_text, at_side ? here_at_side_text : "", point_text,
            stores ? computed_text : "", at_side ? side_text : "");
    for (int i = 0; i < TEXTS && cuda->text[i]; ++i) fprintf(out, "%s\n", cuda->text[i]);
    fprintf(out, head_text, arrays > 0 ? arrays : 1, trli_gpu_form_given(called) + cuda->nnumbers);
    fputs(stores ? evaluate_text : stable_dt_text, out);
}

trl_err trli_gpu_plugin_text(const trli_model *model, const trli_opaque *called, trli_form form, char **text,
                             const char **why)
{
    trli_memstream made;
    *text = NULL;
    *why = called->one_location || form != TRLI_FORM_EVALUATE ? NULL : too_many_locations;
    if (*why) return TRL_OK;
    if (!trli_memstream_open(model->ctx, &made)) return trli_no_memory(model->ctx, NULL, "for kernels of GPUs");
    write_form(called, form, made.out);
    *text = trli_memstream_close(&made) ? made.text : NULL;
    return *text ? TRL_OK : trli_no_memory(model->ctx, NULL, "for kernels of GPUs");
}

bool trli_gpu_form_call(const trli_program *program, const trli_step *s, int n, trli_form_call *call)
{
    const trli_step_plan *p = trli_plan_of(program, s);
    const trli_plugin_step *own = trli_step_plugin(s);
    const trli_form form = s->kind == TRLI_STEP_STABLE_DT ? TRLI_FORM_STABLE_DT : TRLI_FORM_EVALUATE;
    *call = (trli_form_call){.form = form};
    if (own && own->called->cuda[form] && n-- == 0) call->called = own->called;
    for (int k = 0; k < p->nslabs && !call->called; ++k) {
        const trli_slab *slab = &p->slab[k];
        if (slab->kind != TRLI_SLAB_MODIFIER || !slab->modifier->cuda[TRLI_FORM_EVALUATE] || n-- > 0) continue;
        *call = (trli_form_call){slab->modifier, TRLI_FORM_EVALUATE, slab};
    }
    return p->live && call->called;
}

static trl_err add_form(trli_model *model, const trli_form_call *call, trli_gpu_form *form)
{
    const trl_cuda_form *cuda = call->called->cuda[call->form];
    const int n = cuda->nnumbers;
    char *text = NULL;
    trl_err err = TRL_OK;
    if (form->called) return TRL_OK;
    form->called = call->called;
    TRL_TRY(trli_gpu_plugin_text(model, call->called, call->form, &text, &form->why));
    if (!text) goto done;
    form->number = trli_new(model->ctx, (size_t)n + 1, sizeof *form->number);
    if (!form->number) TRL_TRY(trli_no_memory(model->ctx, NULL, "for numbers of '%s'", call->called->name));
    if (n > 0) cuda->set_numbers(call->called->state, form->number);
    err = trli_gpu_kernels_add(model->run->gpu_kernels, text, arrays_of(call->called, call->form),
                               trli_gpu_form_given(call->called) + n, &form->kernel);
done:
    trli_free(text);
    return err;
}

void trli_gpu_plugin_times(const trli_step *s, int scalar[TRLI_GPU_PLUGIN_TIMES])
{
    scalar[0] = s->time_scalar;
    scalar[1] = TRLI_SCALAR_STEP_TIME;
    scalar[2] = TRLI_SCALAR_DT;
}

static trl_err add_program(trli_model *model, const trli_program *program)
{
    int time[TRLI_GPU_PLUGIN_TIMES];
    trli_form_call call;
    trl_err err = TRL_OK;
    for (int i = 0; i < program->nsteps; ++i)
        for (int n = 0; trli_gpu_form_call(program, &program->step[i], n, &call); ++n) {
            trli_gpu_plugin_times(&program->step[i], time);
            for (int t = 0; t < TRLI_GPU_PLUGIN_TIMES; ++t) model->run->gpu_reads[time[t]] = true;
            TRL_TRY(add_form(model, &call, &model->run->gpu_plugin[call.called->number].form[call.form]));
        }
done:
    return err;
}

trl_err trli_gpu_request_plugins(trli_model *model)
{
    trl_err err = TRL_OK;
    model->run->gpu_plugin = trli_new(model->ctx, (size_t)model->nopaques + 1, sizeof *model->run->gpu_plugin);
    if (!model->run->gpu_plugin) return trli_no_memory(model->ctx, NULL, "for kernels of GPUs");
    for (int i = 0; i < model->nprograms; ++i)
        if (!model->program[i]->once) TRL_TRY(add_program(model, model->program[i]));
done:
    return err;
}

static const char *find_why(const trli_gpu_form *form)
{
    if (!form->kernel) return form->why;
    return form->kernel->function ? NULL : form->kernel->why;
}

static trl_err check_form(const trli_model *model, const trli_gpu_form *form, bool evaluates)
{
    const trli_opaque *called = form->called;
    const char *why = called ? find_why(form) : NULL;
    if (!why) return TRL_OK;
    if (called->cuda_only && evaluates)
        return trl_fail(model->ctx, TRL_ERR_PLUGIN, &called->place,
                        "'%s' is to be computed by GPUs ('device: gpu'), but the CUDA form of type '%s' cannot be "
                        "used: %s",
                        called->name, called->type, why);
    trl_warn(model->ctx, &called->place, "%s'%s' is computed by the CPU: the CUDA form of type '%s' cannot be used: %s",
             evaluates ? "" : "stable_dt of ", called->name, called->type, why);
    return TRL_OK;
}

trl_err trli_gpu_check_plugins(const trli_model *model)
{
    trl_err err = TRL_OK;
    for (int i = 0; i < model->nopaques; ++i)
        for (int f = 0; f < TRLI_FORMS; ++f)
            TRL_TRY(check_form(model, &model->run->gpu_plugin[i].form[f], f == TRLI_FORM_EVALUATE));
done:
    return err;
}

const char *trli_gpu_plugin_form(const trli_model *model, const trli_opaque *called)
{
    if (!called->cuda[TRLI_FORM_EVALUATE]) return NULL;
    if (!model->run->gpu_plugin) return "in C (its CUDA form is for GPUs)";
    if (find_why(&model->run->gpu_plugin[called->number].form[TRLI_FORM_EVALUATE]))
        return "in C (its CUDA form cannot be used)";
    return "in CUDA on GPUs, in C elsewhere";
}

void trli_gpu_plugins_destroy(const trli_model *model)
{
    trli_gpu_plugin *plugin = model->run->gpu_plugin;
    for (int i = 0; plugin && i < model->nopaques; ++i)
        for (int f = 0; f < TRLI_FORMS; ++f) trli_free(plugin[i].form[f].number);
    trli_free(plugin);
    model->run->gpu_plugin = NULL;
}
