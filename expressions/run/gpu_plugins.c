/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* CUDA forms of plugins: their texts become kernels like those of formulas, whose threads call them point by point. */
#include <stdio.h>
#include <string.h>

#include "gpu_impl.h"
#include "memory_impl.h"
#include "memstream_impl.h"
#include "pipeline_impl.h"

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
    "    __device__ double &computed(int n) const\n"
    "    {\n"
    "        const trl_kernel_array &a = array[TRL_POINT_REQUIRED + n];\n"
    "        return a.at[i + j * a.stride[1] + k * a.stride[2]];\n"
    "    }\n"
    "    __device__ double number(int n) const { return scalar[n]; }\n"
    "    __device__ double coordinate(int axis) const\n"
    "    {\n"
    "        const long long at = axis == 0 ? i : axis == 1 ? j : k;\n"
    "        return trl_kernel_coordinate(&call->grid, axis, TRL_POINT_LOCATION >> axis & 1 ? 0.0 : 0.5,\n"
    "                                     call->grid.first[axis] + at);\n"
    "    }\n"
    "    __device__ double spacing(int axis) const { return call->grid.spacing[axis]; }\n"
    "};\n";

static const char kernel_text[] =
    "    const long long i = call.lo[0] + (long long)blockIdx.x * blockDim.x + threadIdx.x;\n"
    "    const long long j = call.lo[1] + (long long)blockIdx.y * blockDim.y + threadIdx.y;\n"
    "    const long long first = call.lo[2] + blockIdx.z * call.planes, rest = call.hi[2] - first;\n"
    "    const long long end = first + (rest < call.planes ? rest : call.planes);\n"
    "    if (i >= call.hi[0] || j >= call.hi[1]) return;\n"
    "    for (long long k = first; k < end; ++k) {\n"
    "        const trl_point point = {&call, arrays.array, scalars.value + 4, i, j, k, scalars.value[0],\n"
    "                                 scalars.value[1], scalars.value[2], (int)scalars.value[3]};\n"
    "        evaluate(point);\n"
    "    }\n"
    "}\n";
_Static_assert(TRLI_GPU_PLUGIN_SCALARS == 4, "the text has this number");

static const char too_many_locations[] = "its results are at more than one location";

trl_err trli_gpu_plugin_text(const trli_model *model, const trli_opaque *called, char **text, const char **why)
{
    enum { TEXTS = sizeof called->cuda->text / sizeof *called->cuda->text };
    trli_memstream made;
    *text = NULL;
    *why = called->one_location ? NULL : too_many_locations;
    if (*why) return TRL_OK;
    if (!trli_memstream_open(model->ctx, &made)) return trli_no_memory(model->ctx, NULL, "for kernels of GPUs");
    fprintf(made.out, "#define TRL_POINT_REQUIRED %d\n#define TRL_POINT_LOCATION %d\n%s", called->ninputs,
            (int)called->location, point_text);
    for (int i = 0; i < TEXTS && called->cuda->text[i]; ++i) fprintf(made.out, "%s\n", called->cuda->text[i]);
    fprintf(made.out,
            "#line 1 \"trl_kernel.cu\"\n"
            "extern \"C\" __global__ void __launch_bounds__(TRL_KERNEL_THREADS)\n"
            "trl_kernel(const __grid_constant__ trl_kernel_launch call, const __grid_constant__ trl_kernel_arrays<%d> "
            "arrays,\n           const __grid_constant__ trl_kernel_scalars<%d> scalars)\n{\n%s",
            called->ninputs + called->noutputs, TRLI_GPU_PLUGIN_SCALARS + called->cuda->nnumbers, kernel_text);
    *text = trli_memstream_close(&made) ? made.text : NULL;
    return *text ? TRL_OK : trli_no_memory(model->ctx, NULL, "for kernels of GPUs");
}

static trl_err add_plugin(trli_model *model, const trli_opaque *called, trli_gpu_plugin *plugin)
{
    const int n = called->cuda->nnumbers;
    char *text = NULL;
    trl_err err = TRL_OK;
    TRL_TRY(trli_gpu_plugin_text(model, called, &text, &plugin->why));
    if (!text) goto done;
    plugin->number = trli_new(model->ctx, (size_t)n + 1, sizeof *plugin->number);
    if (!plugin->number) TRL_TRY(trli_no_memory(model->ctx, NULL, "for numbers of '%s'", called->name));
    if (n > 0) called->cuda->set_numbers(called->state, plugin->number);
    err = trli_gpu_kernels_add(model->run->gpu_kernels, text, called->ninputs + called->noutputs,
                               TRLI_GPU_PLUGIN_SCALARS + n, &plugin->kernel);
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
    trl_err err = TRL_OK;
    for (int i = 0; i < program->nsteps; ++i) {
        const trli_step *s = &program->step[i];
        if (s->kind != TRLI_STEP_PLUGIN || !program->plan->step[i].live || !s->plugin.called->cuda) continue;
        trli_gpu_plugin *plugin = &model->run->gpu_plugin[s->plugin.called->number];
        trli_gpu_plugin_times(s, time);
        for (int t = 0; t < TRLI_GPU_PLUGIN_TIMES; ++t) model->run->gpu_reads[time[t]] = true;
        if (plugin->called) continue;
        plugin->called = s->plugin.called;
        TRL_TRY(add_plugin(model, plugin->called, plugin));
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

static const char *find_why(const trli_gpu_plugin *plugin)
{
    if (!plugin->kernel) return plugin->why;
    return plugin->kernel->function ? NULL : plugin->kernel->why;
}

trl_err trli_gpu_check_plugins(const trli_model *model)
{
    for (int i = 0; i < model->nopaques; ++i) {
        const trli_opaque *called = model->run->gpu_plugin[i].called;
        const char *why = called ? find_why(&model->run->gpu_plugin[i]) : NULL;
        if (!why) continue;
        if (called->cuda_only)
            return trl_fail(model->ctx, TRL_ERR_PLUGIN, &called->place,
                            "'%s' is to be computed by GPUs ('device: gpu'), but the CUDA form of type '%s' cannot be "
                            "used: %s",
                            called->name, called->type, why);
        trl_warn(model->ctx, &called->place,
                 "'%s' is computed by the CPU: the CUDA form of type '%s' cannot be used: %s", called->name,
                 called->type, why);
    }
    return TRL_OK;
}

const char *trli_gpu_plugin_form(const trli_model *model, const trli_opaque *called)
{
    if (!called->cuda) return NULL;
    if (!model->run->gpu_plugin) return "in C (its CUDA form is for GPUs)";
    if (find_why(&model->run->gpu_plugin[called->number])) return "in C (its CUDA form cannot be used)";
    return "in CUDA on GPUs, in C elsewhere";
}

void trli_gpu_plugins_destroy(const trli_model *model)
{
    trli_gpu_plugin *plugin = model->run->gpu_plugin;
    for (int i = 0; plugin && i < model->nopaques; ++i) trli_free(plugin[i].number);
    trli_free(plugin);
    model->run->gpu_plugin = NULL;
}
