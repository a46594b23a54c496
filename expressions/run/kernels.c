/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Which kernels of a model are compiled, when, and how a compiled one is called in place of the interpreter. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "clock_impl.h"
#include "context_impl.h"
#include "emit_impl.h"
#include "kernels_impl.h"
#include "pipeline_impl.h"
#include "tasks_impl.h"

_Static_assert(TRLI_LAYERS_OF_ROW <= TRL_KERNEL_GHOSTS, "kernels have room for the layers that passes give them");

/* With `auto`, a run has to last this long (s) before compilers are started: short ones end sooner without. What is in
 * the cache is taken at once. */
static const double worth_compiling = 0.25;

/* Whether the kernel of a step computes the ghosts of a layer itself; those at the ends of rows are before its loops.
 */
static bool is_within(const trli_model *model, const trli_slab *slab)
{
    return slab->of_row && !(model->settings.disabled_passes & (TRL_PASS_GHOSTS | TRL_PASS_HOISTING));
}

/* The kernel of a step. layer: room for as many as the step has slabs. */
static trli_emit_request kernel_of(const trli_program *program, const trli_step *s, trli_emit_layer *layer)
{
    const trli_model *model = program->model;
    const trli_step_plan *p = trli_plan_of(program, s);
    trli_emit_request wanted = {.disabled_passes = model->settings.disabled_passes,
                                .reads = &p->reads,
                                .nroots = s->nout,
                                .roots = s->value,
                                .check_finite = s->variable != NULL,
                                .layer = layer};
    const int at = model->field[s->field[0]].location & 1;
    for (int axis = 2; axis >= 0; --axis)
        for (int k = 0; k < p->nslabs; ++k) {
            const trli_slab *slab = &p->slab[k];
            wanted.edges |= !is_within(model, slab);
            if (!is_within(model, slab) || slab->axis != axis) continue;
            layer[wanted.nlayers++] = (trli_emit_layer){
                .field = slab->field,
                .axis = axis,
                .side = slab->side,
                .layer = slab->layer,
                .further =
                    axis == 0 && slab->kind != TRLI_SLAB_IMAGE ? at - (int)(model->field[slab->field].location & 1) : 0,
                .image = slab->kind == TRLI_SLAB_IMAGE,
                .value = slab->value};
        }
    return wanted;
}

/* A layer of ghosts at a side of x has one point along x. */
static trli_emit_request slab_of(const trli_model *model, const trli_step *s, const trli_slab *slab)
{
    return (trli_emit_request){.disabled_passes = model->settings.disabled_passes,
                               .reads = &slab->reads,
                               .nroots = 1,
                               .roots = &slab->value,
                               .check_finite = s->kind == TRLI_STEP_PLANES && s->variable,
                               .thin = slab->axis == 0 && model->layout->grid.dim > 1};
}

static trl_err emit(trli_model *model, const trli_dialect *dialect, const trli_emit_request *wanted,
                    trli_emitted *emitted)
{
    return trli_emit_kernel(dialect, &model->ir, &model->walk, wanted, emitted);
}

/* The text of a step's kernel, and which of its slabs that does without. */
static trl_err emit_step(const trli_program *program, const trli_step *s, trli_emitted *emitted)
{
    trli_model *model = program->model;
    const trli_step_plan *p = trli_plan_of(program, s);
    trli_slab_run *slab = program->run ? trli_run_of(program, s)->slab : NULL;
    trl_err err = TRL_OK;
    trli_emit_layer *layer = trli_new(model->ctx, (size_t)(p->nslabs + 1), sizeof *layer);
    if (!layer) return trli_no_memory(model->ctx, NULL, "for kernel '%s'", s->label);
    const trli_emit_request wanted = kernel_of(program, s, layer);
    TRL_TRY(emit(model, &trli_dialect_cpu, &wanted, emitted));
    for (int k = 0; slab && k < p->nslabs; ++k) slab[k].within = is_within(model, &p->slab[k]) && emitted->text;
done:
    trli_free(layer);
    return err;
}

static trl_err request_step(trli_program *program, const trli_step *s)
{
    trli_model *model = program->model;
    const trli_step_plan *p = trli_plan_of(program, s);
    trli_step_run *run = trli_run_of(program, s);
    trli_emitted emitted;
    trl_err err = TRL_OK;
    if (s->kind == TRLI_STEP_KERNEL) {
        TRL_TRY(emit_step(program, s, &emitted));
        trli_tuning_request tuned = {.label = s->label,
                                     .nout = s->nout,
                                     .reads = &p->reads,
                                     .streaming = p->strains_caches,
                                     .interleave = emitted.interleave,
                                     .text = emitted.text,
                                     .compiler = model->run->compiler};
        tuned.points = trli_model_points(model, model->field[s->field[0]].location, &tuned.row);
        err = trli_tuning_create(model->ctx, &tuned, &run->tuning);
        if (err == TRL_OK && emitted.text) err = trli_compiler_add(model->run->compiler, emitted.text, &run->native);
        trli_free(emitted.text);
        TRL_TRY(err);
    }
    for (int k = 0; k < p->nslabs; ++k) {
        const trli_emit_request wanted = slab_of(model, s, &p->slab[k]);
        if (!run->slab[k].kernel || run->slab[k].within) continue;
        TRL_TRY(emit(model, &trli_dialect_cpu, &wanted, &emitted));
        if (emitted.text) err = trli_compiler_add(model->run->compiler, emitted.text, &run->slab[k].native);
        trli_free(emitted.text);
        TRL_TRY(err);
    }
done:
    return err;
}

/* A deck that insists is told what is in the way. */
static trl_err check_compiled(trli_model *model)
{
    const char *why = trli_compiler_get_stats(model->run->compiler).why;
    if (!why) return TRL_OK;
    return trl_fail(model->ctx, TRL_ERR_INPUT, NULL,
                    "run.compile: always asks for compiled kernels, but %s; use auto or never, or fix it", why);
}

trl_err trli_kernels_request(trli_model *model)
{
    trl_err err = TRL_OK;
    if (model->settings.compile == TRL_COMPILE_NEVER) return TRL_OK;
    TRL_TRY(trli_compiler_create(model->ctx, model->settings.fast_math, &model->run->compiler));
    for (int i = 0; i < model->nprograms; ++i) {
        trli_program *program = model->program[i];
        if (program->once && model->settings.compile == TRL_COMPILE_AUTO)
            continue; /* it is over before a compiler is */
        for (int s = 0; s < program->nsteps; ++s)
            if (program->plan->step[s].live) TRL_TRY(request_step(program, &program->step[s]));
    }
    model->run->compiling = true;
    if (model->settings.compile != TRL_COMPILE_ALWAYS) goto done;
    model->run->compiling = trli_compiler_poll(model->run->compiler, true) > 0;
    TRL_TRY(trli_context_stopped(model->ctx));
    TRL_TRY(check_compiled(model));
done:
    return err;
}

/* A deck that leaves it open goes on with the interpreter, and is told why. */
static void warn_interpreted(trli_model *model)
{
    const char *why = trli_compiler_get_stats(model->run->compiler).why;
    if (why)
        trl_warn(model->ctx, NULL,
                 "kernels are interpreted, which takes several times as long: %s; fix it, or accept it with "
                 "run.compile: never",
                 why);
}

void trli_kernels_poll(trli_model *model)
{
    if (!model->run->compiling) return;
    double time = trli_clock();
    if (model->run->first_run == 0) model->run->first_run = time;
    if (time - model->run->first_run < worth_compiling) return;
    model->run->compiling = trli_compiler_poll(model->run->compiler, false) > 0;
    if (!model->run->compiling) warn_interpreted(model);
}

static void write_fields(const trli_model *model, const char *what, int n, const int *field, FILE *out)
{
    fprintf(out, "   %s", what);
    for (int i = 0; i < n; ++i) fprintf(out, " %s", model->field[field[i]].name);
    fputc('\n', out);
}

/* The text of a kernel or of the reason for having none, after a comment that has been begun. */
static void write_text(const trli_emitted *emitted, FILE *out)
{
    if (emitted->text)
        fprintf(out, "*/\n%s\n", emitted->text);
    else
        fprintf(out, "   interpreted: %s */\n\n", emitted->why);
    trli_free(emitted->text);
}

static trl_err write_slab(const trli_program *program, const trli_step *s, const trli_slab *slab, FILE *out)
{
    trli_model *model = program->model;
    const trli_emit_request wanted = slab_of(program->model, s, slab);
    const char *where = slab->layer > 0 ? "beyond" : "on";
    const char *when = s->kind == TRLI_STEP_KERNEL ? ", with the rows of the kernel above" : "";
    const char side = "-+"[slab->side];
    trli_emitted emitted;
    trl_err err = TRL_OK;
    TRL_TRY(emit(model, &trli_dialect_cpu, &wanted, &emitted));
    fprintf(out, "/* %s, layer %d %s %c%c%s\n", model->field[slab->field].name, slab->layer, where, "xyz"[slab->axis],
            side, when);
    write_fields(model, "input ", slab->ninputs, slab->input, out);
    write_text(&emitted, out);
done:
    return err;
}

static trl_err write_kernel(const trli_program *program, const trli_dialect *dialect, const trli_step *s, FILE *out)
{
    trli_model *model = program->model;
    const trli_step_plan *p = trli_plan_of(program, s);
    const trli_emit_request whole = {
        .reads = &p->reads, .nroots = s->nout, .roots = s->value, .check_finite = s->variable != NULL};
    trli_emitted emitted;
    trl_err err = TRL_OK;
    if (dialect == &trli_dialect_cpu)
        TRL_TRY(emit_step(program, s, &emitted));
    else
        TRL_TRY(emit(model, dialect, &whole, &emitted));
    fprintf(out, "/* %s\n", s->label);
    write_fields(model, "output", s->nout, s->field, out);
    write_fields(model, "input ", p->ninputs, p->input, out);
    write_text(&emitted, out);
done:
    return err;
}

trl_err trli_kernels_write(trli_program *program, unsigned device, FILE *out)
{
    const trli_dialect *dialect = device == TRL_DEVICE_GPU ? &trli_dialect_cuda : &trli_dialect_cpu;
    trli_model *model = program->model;
    trl_err err = TRL_OK;
    for (int i = 0; i < program->nsteps; ++i) {
        const trli_step *s = &program->step[i];
        const trli_step_plan *p = &program->plan->step[i];
        const trli_slab_run *slab = program->run->step[i].slab;
        if (!p->live) continue;
        if (s->kind == TRLI_STEP_KERNEL) TRL_TRY(write_kernel(program, dialect, s, out));
        for (int k = 0; k < p->nslabs && dialect == &trli_dialect_cpu; ++k)
            if (slab[k].kernel && !slab[k].within) TRL_TRY(write_slab(program, s, &p->slab[k], out));
    }
    if (ferror(out)) err = trl_fail(model->ctx, TRL_ERR_IO, NULL, "the kernels cannot be written: %s", strerror(errno));
done:
    return err;
}

/* ---- calls ---- */

void trli_native_set_array(trl_kernel_array *to, const trl_array *from)
{
    to->at = from->at;
    for (int a = 0; a < 3; ++a) to->stride[a] = from->stride[a];
}

static const long long all_rows = 1LL << 40;

void trli_native_ready(trl_kernel_call *call, const trli_kernel_run *run, int ninputs, int noutputs,
                       trl_kernel_array *array, const trl_kernel_grid *grid)
{
    for (int i = 0; i < ninputs; ++i) trli_native_set_array(&array[i], &run->input[i]);
    for (int o = 0; o < noutputs; ++o) trli_native_set_array(&array[ninputs + o], &run->output[o]);
    *call = (trl_kernel_call){.input = array,
                              .output = array + ninputs,
                              .scalar = run->scalar,
                              .grid = grid,
                              .block = all_rows,
                              .interleave = 1};
}

void trli_native_set_inside(const trli_program *program, const trli_step *step, const trl_patch *patch,
                            const trl_array *input, trl_kernel_inside *inside)
{
    const trl_layout *layout = program->model->layout;
    const trli_step_plan *p = trli_plan_of(program, step);
    const trli_slab_run *run = trli_run_of(program, step)->slab;
    for (int i = 0; i < p->ninputs; ++i)
        for (int a = 0; a < 3; ++a) {
            inside[i].lo[a] = input[i].held.lo[a];
            inside[i].hi[a] = input[i].held.hi[a];
        }
    for (int k = 0; k < p->nslabs; ++k) {
        const trli_slab *slab = &p->slab[k];
        const int a = slab->axis;
        if (!run[k].within || slab->layer > 1 || !trli_slab_is_at(layout, patch, slab)) continue;
        const trl_box owned = trl_patch_owned(layout, patch, program->model->field[slab->field].location);
        const bool image = slab->kind == TRLI_SLAB_IMAGE;
        if (slab->side || image) inside[slab->read_as].hi[a] = owned.hi[a];
        if (!slab->side || image) inside[slab->read_as].lo[a] = owned.lo[a];
    }
}

void trli_native_set_box(trl_kernel_call *call, const trl_box *box)
{
    for (int a = 0; a < 3; ++a) {
        call->lo[a] = box->lo[a];
        call->hi[a] = box->hi[a];
    }
}
