/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Which kernels of a model are compiled, when, and how a compiled one is called in place of the interpreter. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "clock_impl.h"
#include "compute_impl.h"
#include "context_impl.h"
#include "gpu_impl.h"
#include "kernels_impl.h"
#include "memstream_impl.h"
#include "parts_impl.h"
#include "pipeline_impl.h"
#include "tasks_impl.h"

_Static_assert(TRLI_LAYERS_OF_ROW <= TRL_KERNEL_GHOSTS, "kernels have room for the layers that passes give them");

/* With `auto`, a run has to last this long (s) before compilers are started: a short run ends sooner without them.
 * Kernels in the cache are loaded at once. */
static const double worth_compiling = 0.25;
/* Between two looks (s) for what compilers have done: short programs run some thousand times a second. */
static const double poll_interval = 0.01;

/* Whether some slab of a kernel is set by a function outside its loops. */
static bool has_edges(const trli_model *model, const trli_step_plan *p)
{
    for (int k = 0; k < p->nslabs; ++k)
        if (!trli_slab_is_within(model, &p->slab[k])) return true;
    return false;
}

/* A part of a step's kernel. layer: room for as many as the part has slabs. */
static trli_emit_request part_of(const trli_program *program, const trli_step *s, const trli_step_part *part,
                                 bool edges, trli_emit_layer *layer)
{
    const trli_model *model = program->model;
    const trli_step_plan *p = trli_plan_of(program, s);
    /* With rows of many arrays, two planes at once gain nothing and take twice as long to compile. */
    const unsigned pairs = trli_parts_of(program, s)->n > 1 ? TRL_PASS_PAIRS : 0;
    trli_emit_request wanted = {.disabled_passes = model->settings.disabled_passes | pairs,
                                .reads = &part->reads,
                                .nroots = part->nroots,
                                .roots = part->value,
                                .check_finite = s->variable != NULL,
                                .edges = edges,
                                .layer = layer};
    const int at = model->field[s->field[0]].location & 1;
    for (int axis = 2; axis >= 0; --axis)
        for (int k = 0; k < part->nslabs; ++k) {
            const trli_slab *slab = &p->slab[part->slab[k]];
            if (!trli_slab_is_within(model, slab) || slab->axis != axis) continue;
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

/* Add the parts of a step's kernel. use: by part. */
static trl_err add_parts(trli_codes *codes, const trli_program *program, const trli_step *s, trli_code_use *use)
{
    trli_model *model = program->model;
    const trli_parts *parts = trli_parts_of(program, s);
    const bool edges = has_edges(model, trli_plan_of(program, s));
    trl_err err = TRL_OK;
    for (int i = 0; i < parts->n; ++i) {
        trli_emit_layer *layer = trli_new(model->ctx, (size_t)parts->part[i].nslabs + 1, sizeof *layer);
        if (!layer) return trli_no_memory(model->ctx, NULL, "for kernel '%s'", s->label);
        const trli_emit_request wanted = part_of(program, s, &parts->part[i], edges, layer);
        TRL_TRY(trli_codes_add(codes, &wanted, &use[i]));
    }
done:
    return err;
}

/* Note which slabs a step's kernel computes itself, once it has its texts. */
static void find_within(const trli_program *program, const trli_step *s, const trli_code_use *use, trli_slab_run *slab)
{
    const trli_parts *parts = trli_parts_of(program, s);
    const trli_step_plan *p = trli_plan_of(program, s);
    bool all = true;
    for (int i = 0; i < parts->n; ++i) all &= use[i].code->text != NULL;
    for (int k = 0; k < p->nslabs; ++k) slab[k].within = trli_slab_is_within(program->model, &p->slab[k]) && all;
}

/* Add the slabs of a step that are kernels of their own. */
static trl_err add_slabs(trli_codes *codes, const trli_program *program, const trli_step *s)
{
    const trli_step_plan *p = trli_plan_of(program, s);
    trli_slab_run *slab = trli_run_of(program, s)->slab;
    trl_err err = TRL_OK;
    for (int k = 0; k < p->nslabs; ++k) {
        const trli_emit_request wanted = slab_of(program->model, s, &p->slab[k]);
        if (slab[k].kernel && !slab[k].within) TRL_TRY(trli_codes_add(codes, &wanted, &slab[k].use));
    }
done:
    return err;
}

/* Join the texts of a step's parts; equal texts appear once. */
static trl_err join_texts(const trli_model *model, const trli_step_run *run, int nparts, trli_memstream *text)
{
    if (!trli_memstream_open(model->ctx, text)) return trli_no_memory(model->ctx, NULL, "for the texts of kernels");
    for (int i = 0; i < nparts; ++i)
        if (i > 0 && run->part[i].code == run->part[i - 1].code)
            fputc('=', text->out);
        else
            fputs(run->part[i].code->text, text->out);
    if (!trli_memstream_close(text)) return trli_no_memory(model->ctx, NULL, "for the texts of kernels");
    return TRL_OK;
}

static uint64_t digest_of(const char *text)
{
    uint64_t digest[2];
    trli_digest_start(digest);
    trli_digest_bytes(digest, text, strlen(text));
    return digest[0];
}

/* Make the tuning of a kernel's loop over its box, once its texts are there. */
static trl_err tune(const trli_program *program, const trli_step *s)
{
    const trli_model *model = program->model;
    const trli_parts *parts = trli_parts_of(program, s);
    trli_step_run *run = trli_run_of(program, s);
    trli_tuning_request tuned = {.label = s->label,
                                 .nout = s->nout,
                                 .reads = &trli_plan_of(program, s)->reads,
                                 .nparts = parts->n,
                                 .shared_rows = parts->shared_rows,
                                 .streaming = trli_plan_of(program, s)->exceeds_caches,
                                 .compiler = model->run->compiler};
    trli_memstream text = {0};
    bool all = true;
    trl_err err = TRL_OK;
    tuned.points = trli_model_points(model, model->field[s->field[0]].location, &tuned.row);
    for (int i = 0; i < parts->n; ++i) {
        const trli_step_part *part = &parts->part[i];
        all &= run->part[i].code->text != NULL;
        if (run->part[i].code->interleave > tuned.interleave) tuned.interleave = run->part[i].code->interleave;
        if (tuned.part_reads && part->nroots + part->reads.nfields <= tuned.part_nout + tuned.part_reads->nfields)
            continue;
        tuned.part_nout = part->nroots;
        tuned.part_reads = &part->reads;
    }
    if (all) TRL_TRY(join_texts(model, run, parts->n, &text));
    tuned.text = text.text;
    if (text.text) run->texts = digest_of(text.text);
    err = trli_tuning_create(model->ctx, &tuned, &run->tuning);
done:
    trli_memstream_discard(&text);
    return err;
}

/* Whether a program's kernels are compiled: a program that runs once ends before a compiler does. */
static bool is_compiled(const trli_program *program)
{
    return !program->once || program->model->settings.compile != TRL_COMPILE_AUTO;
}

/* Call for each live step of the programs that are compiled. */
static trl_err for_steps(trli_model *model, bool kernels, trl_err (*call)(const trli_program *, const trli_step *))
{
    trl_err err = TRL_OK;
    for (int i = 0; i < model->nprograms; ++i) {
        const trli_program *program = model->program[i];
        for (int s = 0; s < program->nsteps && is_compiled(program); ++s)
            if (program->plan->step[s].live && (!kernels || program->step[s].kind == TRLI_STEP_KERNEL))
                TRL_TRY(call(program, &program->step[s]));
    }
done:
    return err;
}

static trl_err request_parts(const trli_program *program, const trli_step *s)
{
    return add_parts(program->model->run->codes, program, s, trli_run_of(program, s)->part);
}

static trl_err request_slabs(const trli_program *program, const trli_step *s)
{
    const trli_step_run *run = trli_run_of(program, s);
    if (s->kind == TRLI_STEP_KERNEL) find_within(program, s, run->part, run->slab);
    return add_slabs(program->model->run->codes, program, s);
}

/* Reductions at single points are interpreted: a compiler takes longer than they do. */
static trl_err request_reductions(const trli_program *program)
{
    trli_reductions *all = &program->run->reductions;
    trl_err err = TRL_OK;
    for (int i = 0; i < all->ngroups; ++i) {
        trli_reduction_group *group = &all->group[i];
        const trli_emit_request wanted = {.disabled_passes = program->model->settings.disabled_passes | TRL_PASS_PAIRS,
                                          .reads = &group->reads,
                                          .nroots = group->n,
                                          .roots = group->value,
                                          .merge = group->merges ? group->merge : NULL};
        if (group->kernel && all->reduction[group->first].step->reduce.kind != TRLI_REDUCE_POINT)
            TRL_TRY(trli_codes_add(program->model->run->codes, &wanted, &group->use));
    }
done:
    return err;
}

/* The kernels that make sums, too: each is one part, and sets the layers at the ends of its rows itself. */
static trl_err request_fused(const trli_program *program)
{
    trli_reductions *all = &program->run->reductions;
    trl_err err = TRL_OK;
    for (int i = 0; i < all->nfused; ++i) {
        trli_fused_sums *fused = &all->fused[i];
        const trli_step_part *part = trli_parts_of(program, fused->step)->part;
        trli_emit_layer *layer = trli_new(program->model->ctx, (size_t)part->nslabs + 1, sizeof *layer);
        if (!layer) return trli_no_memory(program->model->ctx, NULL, "for kernel '%s'", fused->step->label);
        trli_emit_request wanted = part_of(program, fused->step, part, false, layer);
        wanted.disabled_passes |= TRL_PASS_PAIRS | TRL_PASS_GROUPS;
        wanted.reads = &fused->reads;
        wanted.nroots = fused->nroots;
        wanted.roots = fused->value;
        wanted.merge = fused->merge;
        wanted.nstored = fused->nstored;
        TRL_TRY(trli_codes_add(program->model->run->codes, &wanted, &fused->use));
    }
done:
    return err;
}

/* Write the texts of all kernels, then of the slabs that are not within them. */
static trl_err write_texts(trli_model *model)
{
    trl_err err = TRL_OK;
    TRL_TRY(trli_codes_create(&trli_dialect_cpu, &model->ir, &model->walk, &model->run->codes));
    TRL_TRY(for_steps(model, true, request_parts));
    for (int i = 0; i < model->nprograms; ++i)
        if (is_compiled(model->program[i])) {
            TRL_TRY(request_reductions(model->program[i]));
            TRL_TRY(request_fused(model->program[i]));
        }
    TRL_TRY(trli_codes_emit(model->run->codes));
    TRL_TRY(for_steps(model, false, request_slabs));
    TRL_TRY(trli_codes_emit(model->run->codes));
done:
    return err;
}

/* Note which kernels have all of their functions. */
static void find_native(const trli_model *model)
{
    for (int i = 0; i < model->nprograms; ++i)
        for (int s = 0; s < model->program[i]->nsteps; ++s) {
            const trli_parts *parts = &model->program[i]->parts[s];
            trli_step_run *run = &model->program[i]->run->step[s];
            run->native = parts->n > 0;
            for (int k = 0; k < parts->n && run->native; ++k) run->native = trli_native_of(&run->part[k]) != NULL;
        }
}

/* Load what is compiled. Returns how many functions are still being compiled. */
static int poll_compiler(const trli_model *model, bool wait)
{
    const int left = trli_compiler_poll(model->run->compiler, wait);
    find_native(model);
    return left;
}

/* With `always`, fail with the reason why kernels are not compiled. */
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
    if (model->settings.compile == TRL_COMPILE_NEVER || model->settings.gpus_alone) return TRL_OK;
    TRL_TRY(trli_compiler_create(model->ctx, model->settings.fast_math, &model->run->compiler));
    TRL_TRY(write_texts(model));
    TRL_TRY(for_steps(model, true, tune));
    TRL_TRY(trli_codes_compile(model->run->codes, model->run->compiler));
    TRL_TRY(trli_compiler_share(model->run->compiler));
    find_native(model);
    model->run->compiling = true;
    if (model->settings.compile != TRL_COMPILE_ALWAYS) goto done;
    model->run->compiling = poll_compiler(model, true) > 0;
    TRL_TRY(trli_context_stopped(model->ctx));
    TRL_TRY(check_compiled(model));
done:
    return err;
}

/* With `auto`, go on with the interpreter and warn with the reason. */
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
    if (time - model->run->first_run < worth_compiling || time - model->run->polled < poll_interval) return;
    model->run->polled = time;
    model->run->compiling = poll_compiler(model, false) > 0;
    if (model->run->compiling) return;
    warn_interpreted(model);
    for (int i = 0; i < model->nprograms; ++i) trl_graph_forget_times(model->program[i]->run->graph);
}

static void write_fields(const trli_model *model, const char *what, int n, const int *field, FILE *out)
{
    fprintf(out, "   %s", what);
    for (int i = 0; i < n; ++i) fprintf(out, " %s", model->field[field[i]].name);
    fputc('\n', out);
}

/* A text or the reason for having none, after a comment that has been begun. */
static void write_text(const char *text, const char *why, FILE *out)
{
    if (text)
        fprintf(out, "*/\n%s\n", text);
    else
        fprintf(out, "   interpreted: %s */\n\n", why);
}

static void write_slab(const trli_program *program, trl_kind kind, const trli_step *s, int k, FILE *out)
{
    const trli_model *model = program->model;
    const trli_slab *slab = &trli_plan_of(program, s)->slab[k];
    const trli_slab_run *run = &trli_run_of(program, s)->slab[k];
    const trli_code *code = kind == TRL_KIND_GPU ? run->gpu.code : run->use.code;
    const char *where = slab->layer > 0 ? "beyond" : "on";
    const char *when = s->kind != TRLI_STEP_KERNEL ? ""
                       : kind == TRL_KIND_GPU      ? ", before the kernel above"
                                                   : ", with the rows of the kernel above";
    fprintf(out, "/* %s, layer %d %s %c%c%s\n", model->field[slab->field].name, slab->layer, where, "xyz"[slab->axis],
            "-+"[slab->side], when);
    write_fields(model, "input ", slab->ninputs, slab->input, out);
    write_text(code ? code->text : NULL, code ? code->why : "its points read each other", out);
}

/* The functions of a kernel's parts, each once, with the results that it computes first. */
static void write_parts(const trli_program *program, const trli_step *s, const trli_parts *parts,
                        const trli_code_use *use, FILE *out)
{
    for (int i = 0; i < parts->n; ++i) {
        int before = 0, like = 0;
        while (use[before].code != use[i].code) ++before;
        for (int k = 0; k < parts->n; ++k) like += use[k].code == use[i].code;
        if (before < i) continue;
        if (parts->n > 1) {
            fprintf(out, "%s %d part%s of %d, the first:\n   output", i == 0 ? "  " : "/*", like, like > 1 ? "s" : "",
                    parts->n);
            for (int r = 0; r < parts->part[i].nroots; ++r)
                fprintf(out, " %s", program->model->field[s->field[parts->part[i].root[r]]].name);
            fputc('\n', out);
            write_fields(program->model, "input ", parts->part[i].reads.nfields, parts->part[i].reads.field, out);
        }
        write_text(use[i].code->text, use[i].code->why, out);
    }
}

static void write_kernel(const trli_program *program, trl_kind kind, const trli_step *s, FILE *out)
{
    const trli_model *model = program->model;
    const trli_step_plan *p = trli_plan_of(program, s);
    const trli_step_run *run = trli_run_of(program, s);
    fprintf(out, "/* %s\n", s->label);
    write_fields(model, "output", s->nout, s->field, out);
    write_fields(model, "input ", p->ninputs, p->input, out);
    if (kind == TRL_KIND_GPU)
        write_parts(program, s, trli_gpu_parts_of(program, s), run->gpu, out);
    else
        write_parts(program, s, trli_parts_of(program, s), run->part, out);
}

/* Whether a form was called before the n-th call of a step. */
static bool is_called_before(const trli_program *program, const trli_step *s, int n, const trli_form_call *call)
{
    trli_form_call other;
    for (const trli_step *step = program->step; step <= s; ++step)
        for (int i = 0; (step < s || i < n) && trli_gpu_form_call(program, step, i, &other); ++i)
            if (other.called == call->called && other.form == call->form) return true;
    return false;
}

/* CUDA forms, with the first step that calls them. */
static trl_err write_forms(const trli_program *program, const trli_step *s, FILE *out)
{
    trli_form_call call;
    trl_err err = TRL_OK;
    for (int n = 0; trli_gpu_form_call(program, s, n, &call); ++n) {
        const bool evaluates = call.form == TRLI_FORM_EVALUATE;
        const char *why;
        char *text;
        if (is_called_before(program, s, n, &call)) continue;
        TRL_TRY(trli_gpu_plugin_text(program->model, call.called, call.form, &text, &why));
        fprintf(out, "/* %s'%s', the CUDA form of type '%s'\n", evaluates ? "" : "stable_dt of ", call.called->name,
                call.called->type);
        if (evaluates)
            write_fields(program->model, "output", call.called->noutputs, call.slab ? &call.slab->field : s->field,
                         out);
        write_fields(program->model, "input ", call.called->ninputs, call.slab ? call.slab->input : s->plugin.input,
                     out);
        write_text(text, why, out);
        trli_free(text);
    }
done:
    return err;
}

static void write_fused(const trli_program *program, trl_kind kind, FILE *out)
{
    const trli_reductions *all = &program->run->reductions;
    for (int i = 0; i < all->nfused; ++i) {
        const trli_fused_sums *f = &all->fused[i];
        const trli_code *code = kind == TRL_KIND_GPU ? f->gpu.code : f->use.code;
        if (!code) continue;
        fprintf(out, "/* %s, with sums\n", f->step->label);
        write_fields(program->model, "output", f->step->nout, f->step->field, out);
        write_fields(program->model, "input ", f->reads.nfields, f->reads.field, out);
        write_text(code->text, code->why, out);
    }
}

static void write_reductions(const trli_program *program, trl_kind kind, FILE *out)
{
    const trli_model *model = program->model;
    const trli_reductions *all = &program->run->reductions;
    for (int i = 0; i < all->ngroups; ++i) {
        const trli_reduction_group *group = &all->group[i];
        const trli_code *code = kind == TRL_KIND_GPU ? group->gpu.code : group->use.code;
        if (!code) continue;
        for (int r = 0; r < group->n; ++r)
            fprintf(out, "%s %s", r ? "," : "/* values of", all->reduction[group->first + r].step->label);
        fputc('\n', out);
        write_fields(model, "input ", group->reads.nfields, group->reads.field, out);
        write_text(code->text, code->why, out);
    }
}

trl_err trli_kernels_write(trli_program *program, trl_kind kind, FILE *out)
{
    const bool gpu = kind == TRL_KIND_GPU;
    trli_model *model = program->model;
    trl_err err = TRL_OK;
    if (gpu) TRL_TRY(trli_gpu_write_texts(model));
    if (!gpu && !model->run->codes) TRL_TRY(write_texts(model));
    for (int i = 0; i < program->nsteps; ++i) {
        const trli_step *s = &program->step[i];
        const trli_step_plan *p = &program->plan->step[i];
        const trli_step_run *run = &program->run->step[i];
        if (!p->live) continue;
        if (s->kind == TRLI_STEP_KERNEL) write_kernel(program, kind, s, out);
        if (gpu) TRL_TRY(write_forms(program, s, out));
        for (int k = 0; k < p->nslabs; ++k) {
            const bool within = gpu ? run->gpu_folds : run->slab[k].within;
            if (run->slab[k].kernel && !within) write_slab(program, kind, s, k, out);
        }
    }
    write_reductions(program, kind, out);
    write_fused(program, kind, out);
    if (ferror(out)) err = trl_fail(model->ctx, TRL_ERR_IO, NULL, "the kernels cannot be written: %s", strerror(errno));
done:
    return err;
}
