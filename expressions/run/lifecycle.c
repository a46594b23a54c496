/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Making, freezing and destroying a model, to which all folders of expressions/ contribute. */

#include <stdlib.h>
#include <string.h>

#include "balance_impl.h"
#include "context_impl.h"
#include "cost_impl.h"
#include "executor_impl.h"
#include "found_scalars_impl.h"
#include "front_impl.h"
#include "gpu_impl.h"
#include "gpu_kernel_impl.h"
#include "halos_impl.h"
#include "kernels_impl.h"
#include "late_scalars_impl.h"
#include "lifecycle_impl.h"
#include "memory_impl.h"
#include "model_run_impl.h"
#include "pipeline_impl.h"
#include "program_calls_impl.h"
#include "slot_plan_impl.h"
#include "tasks_impl.h"
#include "told_sums_impl.h"
#include "ways_impl.h"

static bool has_gpus(const trl_workers *workers)
{
    const trl_devices *devices = trl_workers_devices(workers);
    return devices && devices->n > 0 && devices->device[0]->kind == TRL_KIND_GPU;
}

static trl_err copy_request(trli_model *model, const trli_model_request *request)
{
    model->layout = request->layout;
    model->settings.fusion = request->fusion;
    model->settings.compile = request->compile;
    model->settings.fast_math = request->fast_math;
    model->settings.disabled_passes = request->disabled_passes;
    model->settings.line = has_gpus(request->workers) ? TRLI_CACHE_LINE_GPU : TRLI_CACHE_LINE_CPU;
    model->variable = trli_new(model->ctx, (size_t)request->nvariables + 1, sizeof *model->variable);
    if (!model->variable) return trli_no_memory(model->ctx, NULL, "for a model of %d equations", request->nvariables);
    model->nvariables = request->nvariables;
    for (int v = 0; v < request->nvariables; ++v) model->variable[v] = request->variables[v];
    return TRL_OK;
}

static trl_err create_run(trli_model *model, trl_workers *workers)
{
    trli_model_run *run = model->run = trli_new(model->ctx, 1, sizeof *run);
    if (run) {
        run->workers = workers;
        run->nworkers = trl_workers_count(workers);
        run->lanes = trl_workers_lanes(workers);
    }
    return run ? TRL_OK : trli_no_memory(model->ctx, NULL, "to run a model");
}

static void destroy_run(trli_model *model)
{
    trli_model_run *run = model->run;
    if (!run) return;
    trli_gpu_plugins_destroy(model);
    trli_gpu_kernels_destroy(&run->gpu_kernels);
    trli_compiler_destroy(&run->compiler);
    trli_codes_destroy(&run->codes);
    trli_codes_destroy(&run->gpu_codes);
    trli_free(run->gpu_reads);
    trli_free(run->found);
    trli_free(run->part);
    trli_free(run);
}

enum { USUAL_DIVISION = 12, USUAL_EXPONENTIAL = 36 /* additions, as measured on one machine */ };

/* All ranks decide by the same figures, and all grids; with run.balance, all machines do. */
static trl_err find_balance(trli_model *model, const trli_model_request *request)
{
    const trl_grid *grid = &request->layout->grid;
    double values = 3.0 * request->nvariables / trl_context_ranks(model->ctx); /* two levels, and a stage */
    trl_err err = TRL_OK;
    trli_balance *b = &model->machine.balance;
    if (request->finer)
        *b = request->finer->machine.balance;
    else
        TRL_TRY(trli_balance_find(model->ctx, model->run->workers, b));
    for (int a = 0; a < grid->dim; ++a) values *= (double)grid->cells[a];
    model->machine.streaming = values * sizeof(double) > b->caches;
    model->machine.deciding = *b;
    if (request->balance <= 0) goto done;
    model->machine.deciding.operations = request->balance * trli_model_bandwidth(model);
    model->machine.deciding.division = USUAL_DIVISION;
    model->machine.deciding.exponential = USUAL_EXPONENTIAL;
done:
    return err;
}

/* About what a rank sends to a neighbour before a kernel: a layer of a patch for each equation. */
static double message_bytes(const trl_layout *layout, int nvariables)
{
    double most = 0;
    for (int across = 0; across < layout->grid.dim; ++across) {
        double points = 1;
        for (int a = 0; a < layout->grid.dim; ++a)
            if (a != across) points *= (double)layout->grid.cells[a] / layout->counts[a];
        if (layout->counts[across] > 1 && points > most) most = points;
    }
    return most * nvariables * (double)sizeof(double);
}

/* Launchers need not give all ranks the same environment: that of rank 0 counts. */
static trl_err find_helping(trl_context *ctx, trli_helping *helping)
{
    const char *text = getenv("TRELLIS_HELPING");
    int told = TRLI_HELPING_AUTO;
    if (text && strcmp(text, "off") == 0) told = TRLI_HELPING_OFF;
    if (text && strcmp(text, "always") == 0) told = TRLI_HELPING_ALWAYS;
    const trl_err err = trli_broadcast(ctx, &told, 1, MPI_INT, 0);
    *helping = (trli_helping)told;
    return err;
}

/* How ranks of a node exchange, all alike. With run.balance nothing that is measured decides. */
static trl_err choose_ways(trli_model *model, const trli_model_request *request)
{
    trli_machine *machine = &model->machine;
    trl_err err = TRL_OK;
    machine->shares = model->ctx->ranks > 1 && !(model->settings.disabled_passes & TRL_PASS_SHARED);
    if (!machine->shares) return TRL_OK;
    if (request->finer) {
        machine->helping = request->finer->machine.helping;
        machine->ways = request->finer->machine.ways;
    } else {
        TRL_TRY(find_helping(model->ctx, &machine->helping));
        if (request->balance <= 0) TRL_TRY(trli_ways_find(model->ctx, &machine->ways));
    }
    if (request->balance > 0) return TRL_OK;
    machine->shares = trli_ways_share(&machine->ways, message_bytes(request->layout, request->nvariables));
done:
    return err;
}

trl_err trli_model_create(trl_context *ctx, const trli_model_request *request, trli_model **model)
{
    trl_err err = TRL_OK;
    trli_model *m = trli_new(ctx, 1, sizeof *m);
    *model = NULL;
    if (!m) return trli_no_memory(ctx, NULL, "for a model");
    m->ctx = ctx;
    TRL_TRY(copy_request(m, request));
    TRL_TRY(create_run(m, request->workers));
    TRL_TRY(find_balance(m, request));
    TRL_TRY(choose_ways(m, request));
    TRL_TRY(trli_ir_init(&m->ir, ctx, &request->layout->grid));
    m->ir.no_cse = m->settings.disabled_passes & TRL_PASS_SHARING;
    for (int i = 0; i < TRLI_SCALARS_FIXED; ++i) trli_model_add_scalar(m, 0);
    TRL_TRY(m->ir.err);
    TRL_TRY(trli_front_create(m, request));
    *model = m;
    m = NULL;
done:
    trli_model_destroy(&m);
    return err;
}

void trli_model_destroy(trli_model **model)
{
    trli_model *m = *model;
    *model = NULL;
    if (!m) return;
    for (int i = 0; i < m->nprograms; ++i) {
        trli_execution_destroy(m->program[i]);
        trli_parts_destroy(m->program[i]);
        trli_plan_destroy(&m->program[i]->plan);
        trli_program_destroy(&m->program[i]);
    }
    trli_free(m->program);
    trli_free(m->meeting);
    trli_slot_plan_destroy(&m->slots);
    trli_front_destroy(&m->front);
    for (int i = 0; i < m->nowned; ++i) trli_free(m->owned[i]);
    trli_free(m->owned);
    trli_ir_free(&m->ir);
    trli_walk_free(&m->walk);
    trli_free(m->changes);
    trli_free(m->variable);
    trli_free(m->direction);
    trli_free(m->field);
    trli_free(m->scalar);
    destroy_run(m);
    trli_free(m);
}

/* The kernels of a step and of its slabs, as the interpreter takes them. */
static trl_err make_kernels(trli_model *model, const trli_step *s, const trli_step_plan *p, trli_step_run *run)
{
    trl_err err = TRL_OK;
    if (s->value && s->kind != TRLI_STEP_REDUCE)
        TRL_TRY(trli_kernel_create(&model->ir, &model->walk, &p->reads, s->nout ? s->nout : 1, s->value, &run->kernel));
    for (int k = 0; k < p->nslabs; ++k) {
        const trli_slab *slab = &p->slab[k];
        if (slab->kind != TRLI_SLAB_KERNEL) continue;
        TRL_TRY(trli_kernel_create(&model->ir, &model->walk, &slab->reads, 1, &slab->value, &run->slab[k].kernel));
    }
done:
    return err;
}

trl_err trli_execution_create(trli_program *program)
{
    trli_program_execution *run = program->run = trli_new(program->model->ctx, 1, sizeof *run);
    const int n = program->nsteps;
    if (run) run->step = trli_new(program->model->ctx, (size_t)n + 1, sizeof *run->step);
    bool all = run && run->step;
    for (int i = 0; all && i < n; ++i) {
        run->step[i].slab =
            trli_new(program->model->ctx, (size_t)program->plan->step[i].nslabs + 1, sizeof *run->step[i].slab);
        run->step[i].part = trli_new(program->model->ctx, (size_t)program->parts[i].n + 1, sizeof *run->step[i].part);
        all = run->step[i].slab && run->step[i].part;
    }
    trl_err err = TRL_OK;
    for (int i = 0; all && i < n; ++i)
        if (program->plan->step[i].live)
            TRL_TRY(make_kernels(program->model, &program->step[i], &program->plan->step[i], &run->step[i]));
    if (all) TRL_TRY(trli_reductions_create(program, &run->reductions));
    if (all) TRL_TRY(trli_fused_sums_find(program));
    if (all) return TRL_OK;
    err = trli_no_memory(program->model->ctx, NULL, "to run program '%s'", program->name);
done:
    return err;
}

void trli_execution_destroy(trli_program *program)
{
    trli_program_execution *run = program->run;
    if (!run) return;
    trli_tasks_free(program);
    for (int i = 0; run->step && i < program->nsteps; ++i) {
        const int nslabs = run->step[i].slab ? program->plan->step[i].nslabs : 0;
        for (int k = 0; k < nslabs; ++k) trli_kernel_destroy(&run->step[i].slab[k].kernel);
        trli_kernel_destroy(&run->step[i].kernel);
        trli_tuning_destroy(&run->step[i].tuning);
        trli_free(run->step[i].slab);
        trli_free(run->step[i].part);
        trli_free(run->step[i].gpu);
    }
    trli_free(run->step);
    for (int i = 0; i < run->nexchanges; ++i) trl_exchange_destroy(&run->exchanged[i].plan);
    trli_free(run->exchanged);
    trli_reductions_free(&run->reductions);
    trli_free(run);
    program->run = NULL;
}

/* Every worker's scratch has room for the step that needs the most. */
static void plan_scratch(trli_model *model)
{
    const size_t telling = trli_told_sums_scratch();
    size_t most = trli_gpu_halos_scratch(model);
    if (telling > most) most = telling;
    for (int i = 0; i < model->nprograms; ++i) {
        const trli_program *program = model->program[i];
        const size_t reducing = trli_reductions_scratch(&program->run->reductions);
        const size_t merging = trli_gpu_reductions_scratch(&program->run->reductions);
        const size_t late = trli_late_scalars_scratch(program);
        const size_t found = trli_found_scalars_scratch(program);
        if (reducing > most) most = reducing;
        if (late > most) most = late;
        if (found > most) most = found;
        if (merging > most) most = merging;
        for (int s = 0; s < program->nsteps; ++s) {
            if (!program->plan->step[s].live) continue;
            const size_t need = trli_step_scratch(program, &program->step[s]);
            const size_t launch = trli_gpu_scratch(program, &program->step[s]);
            if (need > most) most = need;
            if (launch > most) most = launch;
        }
    }
    model->run->scratch_bytes = (most + sizeof(double) - 1) / sizeof(double) * sizeof(double);
    model->slots->bytes += (int64_t)model->run->scratch_bytes * model->run->lanes;
}

static void find_exchanged_axes(trli_model *model)
{
    const trl_layout *layout = model->layout;
    for (int i = 0; i < model->nprograms; ++i)
        for (int s = 0; s < model->program[i]->nsteps; ++s) {
            const trli_step_plan *p = &model->program[i]->plan->step[s];
            for (int e = 0; p->live && e < p->exchanged.n; ++e) {
                const trl_offsets reach = trl_footprint_hull(&p->exchanged.reach[e]);
                for (int a = 0; a < 3; ++a) {
                    const bool others = layout->counts[a] > 1 || layout->grid.periodic[a];
                    if (others && (reach.lo[a] < 0 || reach.hi[a] > 0)) model->run->exchanged_axes |= 1u << a;
                }
            }
        }
}

trl_err trli_model_freeze(trli_model *model, const trli_program *step, const struct trli_rotation *rotation)
{
    trl_err err = TRL_OK;
    TRL_TRY(trli_slots_plan(model));
    for (int i = 0; i < model->nprograms; ++i) TRL_TRY(trli_execution_create(model->program[i]));
    if (model->late) model->late->share = model->run->nreductions++;
    for (int i = 0; i < model->nprograms; ++i)
        model->program[i]->run->told_share = model->program[i]->tells ? model->run->nreductions++ : -1;
    find_exchanged_axes(model);
    model->run->points = trli_points_of(model);
    TRL_TRY(trli_points_measure(model));
    TRL_TRY(trli_gpu_choose_messages(model, trli_gpu_request(model)));
    plan_scratch(model);
    for (int i = 0; i < model->nprograms; ++i)
        TRL_TRY(trli_tasks_build(model->program[i], model->program[i] == step ? rotation : NULL));
    TRL_TRY(trli_kernels_request(model));
done:
    return err;
}

bool trli_program_is_empty(const trli_program *program)
{
    bool any = false;
    for (int i = 0; i < program->nsteps; ++i) any |= program->plan->step[i].live;
    return !any;
}

/* A run that may not be takes part in the messages of other ranks, whose threads may have been luckier. */
static trl_err run_in(const trli_program *program, trli_frame *frame,
                      trl_err (*run)(trl_graph *, trl_workers *, void *))
{
    const trl_err claimed = trli_frame_claim(frame, program, &program);
    trli_program_note_run(program, frame);
    const trl_err err =
        (claimed == TRL_OK ? run : trl_graph_drain)(program->run->graph, program->model->run->workers, frame);
    const trl_err left = trli_frame_leave(frame, &program);
    return claimed != TRL_OK ? claimed : err != TRL_OK ? err : left;
}

void trli_program_set_leading(const trli_program *program, bool leads)
{
    trli_graph_set_leading(program->run->graph, leads);
}

trl_err trli_program_run(const trli_program *program, trli_frame *frame)
{
    return run_in(program, frame, trl_graph_run);
}

trl_err trli_program_drain(const trli_program *program, trli_frame *frame)
{
    return run_in(program, frame, trl_graph_drain);
}
