/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Which kernels of a model are compiled, when, and how a compiled one is called in place of the interpreter. */
#include <stdlib.h>

#include "clock_impl.h"
#include "emit_impl.h"
#include "tasks_impl.h"

/* With `auto`, a run has to last this long (s) before compilers are started: short ones end sooner without. What is in the cache is
 * taken at once. */
static const double worth_compiling = 0.25;

static trl_err request_kernel(trli_model *model, trli_step *s)
{
    char *text = NULL;
    const char *why;
    int turns;
    trl_err err;
    TRL_TRY(trli_emit_kernel(&trli_dialect_cpu, &model->ir, &model->walk, s->kernel, s->nout, s->value, s->check,
                             &turns, &text, &why));
    if (!text) goto done;
    TRL_TRY(trli_tuning_create(model, s, turns, &s->tuning));
    TRL_TRY(trli_compiler_add(model->compiler, text, &s->native));
done:
    free(text);
    return err;
}

/* A deck that insists is told what is in the way. */
static trl_err check_compiled(trli_model *model)
{
    int compiled, cached, failed;
    const char *why;
    trli_compiler_get_stats(model->compiler, &compiled, &cached, &failed, &why);
    if (!why) return TRL_OK;
    return trl_fail(model->ctx, TRL_ERR_INPUT, NULL,
                    "run.compile: always asks for compiled kernels, but %s; use auto or never, or mend it", why);
}

trl_err trli_kernels_request(trli_model *model)
{
    trl_err err = TRL_OK;
    if (model->compile == TRLI_COMPILE_NEVER) return TRL_OK;
    TRL_TRY(trli_compiler_create(model->ctx, &model->compiler));
    for (int i = 0; i < model->nprograms; ++i) {
        const trli_program *program = model->program[i];
        if (program->once && model->compile == TRLI_COMPILE_AUTO) continue; /* it is over before a compiler is */
        for (int s = 0; s < program->nsteps; ++s) {
            trli_step *step = &program->step[s];
            if (step->live && step->kind == TRLI_STEP_KERNEL) TRL_TRY(request_kernel(model, step));
        }
    }
    model->compiling = true;
    if (model->compile != TRLI_COMPILE_ALWAYS) goto done;
    model->compiling = trli_compiler_poll(model->compiler, true) > 0;
    TRL_TRY(check_compiled(model));
done:
    return err;
}

void trli_kernels_poll(trli_model *model)
{
    if (!model->compiling) return;
    double time = trli_clock();
    if (model->first_run == 0) model->first_run = time;
    if (time - model->first_run < worth_compiling) return;
    model->compiling = trli_compiler_poll(model->compiler, false) > 0;
}

static void write_fields(const trli_model *model, const char *what, int n, const int *field, FILE *out)
{
    fprintf(out, "   %s", what);
    for (int i = 0; i < n; ++i) fprintf(out, " %s", model->field[field[i]].name);
    fputc('\n', out);
}

trl_err trli_kernels_write(trli_program *program, unsigned device, FILE *out)
{
    const trli_dialect *dialect = device == TRL_DEVICE_GPU ? &trli_dialect_cuda : &trli_dialect_cpu;
    trli_model *model = program->model;
    char *text = NULL;
    trl_err err = TRL_OK;
    for (int i = 0; i < program->nsteps; ++i) {
        const char *why;
        int turns;
        const trli_step *s = &program->step[i];
        if (!s->live || s->kind != TRLI_STEP_KERNEL) continue;
        TRL_TRY(trli_emit_kernel(dialect, &model->ir, &model->walk, s->kernel, s->nout, s->value, s->check, &turns,
                                 &text, &why));
        fprintf(out, "/* %s\n", s->label);
        write_fields(model, "output", s->nout, s->field, out);
        write_fields(model, "input ", s->ninputs, s->input, out);
        if (text)
            fprintf(out, "*/\n%s\n", text);
        else
            fprintf(out, "   interpreted: %s */\n\n", why);
        free(text);
        text = NULL;
    }
    if (ferror(out)) err = trl_fail(model->ctx, TRL_ERR_IO, NULL, "the kernels cannot be written");
done:
    free(text);
    return err;
}

/* ---- calls ---- */

size_t trli_native_scratch(const trli_step *s)
{
    return (size_t)(s->ninputs + s->nout) * sizeof(trl_kernel_array);
}

static void set_array(trl_kernel_array *to, const trl_array *from)
{
    to->at = from->at;
    for (int a = 0; a < 3; ++a) to->stride[a] = from->stride[a];
}

bool trli_native_evaluate(const trli_task *t, const trli_kernel_run *run, const trl_box *box)
{
    const trli_step *s = t->step;
    trl_kernel_array *array = run->scratch;
    const trl_kernel_grid grid = trli_kernel_grid_of(run);
    trl_kernel_call call = {.input = array, .output = array + s->ninputs, .scalar = run->scalar, .grid = &grid};
    for (int i = 0; i < s->ninputs; ++i) set_array(&array[i], &run->input[i]);
    for (int o = 0; o < s->nout; ++o) set_array(&array[s->ninputs + o], &run->output[o]);
    for (int a = 0; a < 3; ++a) {
        call.lo[a] = box->lo[a];
        call.hi[a] = box->hi[a];
    }
    return trli_sweep(s->native, s->tuning, &call);
}
