/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Making, advancing and observing a simulation. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "adaptive_impl.h"
#include "clock_impl.h"
#include "columns_impl.h"
#include "context_impl.h"
#include "execution_impl.h"
#include "executor_impl.h"
#include "gpu_blocking_impl.h"
#include "help_impl.h"
#include "implicit_impl.h"
#include "kernels_impl.h"
#include "late_impl.h"
#include "lifecycle_impl.h"
#include "model_run_impl.h"
#include "multistep_impl.h"
#include "pipeline_impl.h"
#include "simulation_layout_impl.h"
#include "slot_plan_impl.h"
#include "solving_impl.h"
#include "time_blocking_impl.h"
#include "tree_impl.h"

trl_err trli_formula_of(trl_simulation *sim, const trl_text *text, trl_formula **formula)
{
    *formula = NULL;
    return text->chars ? trl_formula_parse(sim->ctx, text, formula) : TRL_OK;
}

static trl_err scalar_formula(trl_simulation *sim, const trl_value *value, const char *what, const char *name,
                              trl_formula **formula)
{
    if (value->count != 1)
        return trl_fail(sim->ctx, TRL_ERR_INPUT, &value->place, "'%s' of equation '%s' is a scalar, not a list of %d",
                        what, name, value->count);
    return trli_formula_of(sim, value->text, formula);
}

static trl_err parse_equation(trl_simulation *sim, int v)
{
    trli_equation *eq = &sim->equation[v];
    const trl_equation_entry *deck = eq->deck = &sim->problem->equation[v];
    trl_err err = TRL_OK, first = TRL_OK;
    eq->rate = -1;
    eq->mask_field = eq->exact_field = eq->exact_shown = -1;
    err = scalar_formula(sim, &deck->initial, "initial", deck->name, &eq->initial);
    first = err;
    if (deck->solve.chars) {
        err = trli_formula_of(sim, &deck->solve, &eq->solve);
        if (err == TRL_OK) err = trli_formula_of(sim, &deck->equals, &eq->equals);
    } else {
        static const trl_text none = {.chars = "0"};
        err = deck->ddt.count ? scalar_formula(sim, &deck->ddt, "ddt", deck->name, &eq->ddt)
                              : trli_formula_of(sim, &none, &eq->ddt);
    }
    first = first != TRL_OK ? first : err;
    err = trli_formula_of(sim, &deck->mask, &eq->mask);
    first = first != TRL_OK ? first : err;
    err = trli_formula_of(sim, &deck->exact, &eq->exact);
    return first != TRL_OK ? first : err;
}

trl_err trli_simulation_parse(trl_simulation *sim)
{
    const trl_problem *p = sim->problem;
    trl_err first = TRL_OK, err;
    sim->equation = trli_new(sim->ctx, (size_t)p->nequations + 1, sizeof *sim->equation);
    sim->series = trli_new(sim->ctx, (size_t)p->nseries + 1, sizeof *sim->series);
    sim->series_scalar = trli_new(sim->ctx, (size_t)p->nseries + 1, sizeof *sim->series_scalar);
    sim->series_value = trli_new(sim->ctx, (size_t)p->nseries + 1, sizeof *sim->series_value);
    if (!sim->equation || !sim->series || !sim->series_scalar || !sim->series_value)
        return trli_no_memory(sim->ctx, NULL, "for %d equations", p->nequations);
    sim->nequations = p->nequations;
    for (int v = 0; v < p->nequations; ++v)
        if ((err = parse_equation(sim, v)) != TRL_OK && first == TRL_OK) first = err;
    for (int i = 0; i < p->nseries; ++i)
        if ((err = trli_formula_of(sim, &p->series[i].value, &sim->series[i])) != TRL_OK && first == TRL_OK)
            first = err;
    err = trli_formula_of(sim, &p->time.stop, &sim->stop);
    return first != TRL_OK ? first : err;
}

trl_err trli_simulation_make_model(trl_simulation *sim, const trli_model *finer)
{
    const trl_problem *p = sim->problem;
    trl_err err = TRL_OK;
    trli_variable *variables = trli_new(sim->ctx, (size_t)p->nequations + 1, sizeof *variables);
    if (!variables) return trli_no_memory(sim->ctx, NULL, "for %d equations", p->nequations);
    for (int v = 0; v < p->nequations; ++v) {
        const trl_equation_entry *e = &p->equation[v];
        variables[v] = (trli_variable){.name = e->name,
                                       .location = trl_location_on(e->location, p->grid.dim),
                                       .names = e->names,
                                       .boundary = e->boundary,
                                       .initial = sim->equation[v].initial,
                                       .mask = sim->equation[v].mask,
                                       .ddt = sim->equation[v].ddt,
                                       .implicit = sim->equation[v].implicit,
                                       .place = e->place};
    }
    const trli_model_request request = {.layout = sim->layout,
                                        .parameters = p->parameters,
                                        .fusion = p->fusion,
                                        .compile = p->compile,
                                        .fast_math = p->fast_math,
                                        .balance = p->balance,
                                        .disabled_passes = p->disabled_passes,
                                        .nentries = p->nexpressions,
                                        .entries = p->expression,
                                        .nvariables = p->nequations,
                                        .variables = variables,
                                        .nstencils = p->nstencils,
                                        .stencils = p->stencil,
                                        .workers = sim->workers,
                                        .finer = finer};
    err = trli_model_create(sim->ctx, &request, &sim->model);
    for (int v = 0; v < p->nequations && err == TRL_OK; ++v)
        trli_model_note_location(sim->model, p->equation[v].location);
    for (int e = 0; e < p->nexpressions && err == TRL_OK; ++e)
        if (p->expression[e].location >= 0)
            trli_model_note_location(sim->model, (trl_location)p->expression[e].location);
    trli_free(variables);
    return err;
}

/* without: what the formula is, if it may have no noise; else NULL. */
static trl_err mark_formula(trl_simulation *sim, const trl_formula *f, const trl_scope *names, const char *without)
{
    trl_err err = TRL_OK;
    if (!f) return TRL_OK;
    TRL_TRY(trli_tree_mark_used(sim->model, f, names));
    if (without) TRL_TRY(trli_tree_refuse_noise(sim->model, f, names, without));
done:
    return err;
}

static trl_err mark_text(trl_simulation *sim, const trl_text *text, const trl_scope *names, const char *without)
{
    trl_formula *f;
    trl_err err = trli_formula_of(sim, text, &f);
    if (err == TRL_OK) err = mark_formula(sim, f, names, without);
    trl_formula_destroy(&f);
    return err;
}

static trl_err mark_value(trl_simulation *sim, const trl_value *value, const trl_scope *names, const char *without)
{
    trl_err err = TRL_OK;
    for (int i = 0; i < value->count && err == TRL_OK; ++i) err = mark_text(sim, &value->text[i], names, without);
    return err;
}

static trl_err mark_boundary(trl_simulation *sim, const trl_bc_side sides[6], const trl_scope *names)
{
    static const char what[] = "a boundary condition";
    trl_err err = TRL_OK;
    for (int s = 0; s < 6; ++s)
        for (int i = 0; i < sides[s].npieces; ++i) {
            const trl_bc_piece *p = &sides[s].piece[i];
            TRL_TRY(mark_text(sim, &p->where, names, what));
            TRL_TRY(mark_value(sim, &p->value, names, what));
            TRL_TRY(mark_value(sim, &p->b, names, what));
            TRL_TRY(mark_value(sim, &p->c, names, what));
            for (int e = 0; p->expression && e < sim->model->front->nentries; ++e)
                if (strcmp(sim->model->front->entry[e].deck->name, p->expression) == 0)
                    sim->model->front->entry[e].used = true;
        }
done:
    return err;
}

/* What the user asks for, directly, is where the tree is entered from. */
static trl_err mark_used(trl_simulation *sim)
{
    const trl_problem *p = sim->problem;
    trl_err err = TRL_OK;
    for (int v = 0; v < sim->nequations; ++v) {
        const trli_equation *eq = &sim->equation[v];
        TRL_TRY(mark_formula(sim, eq->initial, eq->deck->names, "an initial value"));
        TRL_TRY(mark_formula(sim, eq->ddt, eq->deck->names, NULL));
        TRL_TRY(mark_formula(sim, eq->implicit, eq->deck->names, "an implicit term"));
        TRL_TRY(mark_formula(sim, eq->solve, eq->deck->names, "an equation that is solved"));
        TRL_TRY(mark_formula(sim, eq->equals, eq->deck->names, "an equation that is solved"));
        TRL_TRY(mark_formula(sim, eq->mask, eq->deck->names, "a mask"));
        TRL_TRY(mark_formula(sim, eq->exact, eq->deck->names, "an exact solution"));
        TRL_TRY(mark_boundary(sim, eq->deck->boundary, eq->deck->names));
    }
    for (int i = 0; i < p->nseries; ++i) TRL_TRY(mark_formula(sim, sim->series[i], p->series[i].names, NULL));
    for (int i = 0; i < p->nprofiles; ++i) TRL_TRY(mark_text(sim, &p->profile[i].value, p->parameters, NULL));
    TRL_TRY(mark_formula(sim, sim->stop, p->parameters, NULL));
    for (int i = 0; i < p->noutputs; ++i)
        TRL_TRY(mark_text(sim, &(trl_text){p->output[i], p->output_place[i], true}, p->parameters, NULL));
    for (int i = 0; i < p->receivers.nvalues; ++i)
        TRL_TRY(
            mark_text(sim, &(trl_text){p->receivers.value[i], p->receivers.value_place[i], true}, p->parameters, NULL));
    for (int i = 0; i < p->nkept; ++i)
        TRL_TRY(mark_text(sim, &(trl_text){p->keep[i], p->keep_place[i], true}, p->parameters, NULL));
    TRL_TRY(mark_value(sim, &p->time.speed, p->parameters, "a bound of dt"));
    TRL_TRY(mark_value(sim, &p->time.diffusivity, p->parameters, "a bound of dt"));
    for (int e = 0; e < p->nexpressions; ++e)
        TRL_TRY(mark_boundary(sim, p->expression[e].boundary, p->expression[e].names));
    trli_tree_spread_used(sim->model);
    for (int e = 0; e < sim->model->front->nentries; ++e)
        if (!sim->model->front->entry[e].used)
            trl_warn(sim->ctx, &p->expression[e].place, "nothing uses expression '%s'", p->expression[e].name);
done:
    return err;
}

/* The deck's split of the workers, unless the scheduler has another number of them, as serial does. */
static trl_err create_workers(trl_simulation *sim)
{
    const trl_problem *p = sim->problem;
    const trl_diagnostic *list;
    const int said = trl_context_diagnostics(sim->ctx, &list);
    trl_err err = trl_workers_create(sim->ctx, p->scheduler, &sim->workers);
    if (err != TRL_OK) trli_diagnostics_locate(sim->ctx, said, &p->scheduler_place);
    TRL_TRY(err);
    trl_workers_set_adaptive(sim->workers, p->adapt_workers);
    TRL_TRY(trli_simulation_open_devices(sim));
    if (p->task_workers == 0 && p->operator_workers == 0) goto done;
    int count = trl_workers_count(sim->workers);
    sim->split = p->task_workers + p->operator_workers == count;
    if (sim->split)
        TRL_TRY(trl_workers_set_pools(sim->workers, p->task_workers, p->operator_workers));
    else
        trl_warn(sim->ctx, &p->threads_place, "the split is not used: scheduler '%s' has %d worker%s, not %d + %d",
                 p->scheduler, count, count == 1 ? "" : "s", p->task_workers, p->operator_workers);
done:
    return err;
}

static trl_err create(trl_simulation *sim)
{
    const trl_problem *p = sim->problem;
    trl_err err;
    sim->integrator = trl_integrator_of(p->time.method);
    TRL_TRY(trli_add_rates(sim));
    p = sim->problem;
    if (!sim->integrator)
        return trl_fail(sim->ctx, TRL_ERR_INPUT, &p->time.method_place, "there is no time integration method %d",
                        (int)p->time.method);
    sim->steps_wanted = p->time.steps;
    sim->time = sim->base_time = p->time.start;
    sim->dt = p->time.dt;
    TRL_TRY(trli_check_time(sim));
    TRL_TRY(trli_adaptive_start(sim));
    TRL_TRY(create_workers(sim));
    TRL_TRY(trl_loop_create(sim->ctx, sim->workers, &sim->loop));
    TRL_TRY(trli_simulation_cut(sim));
    TRL_TRY(trli_simulation_parse(sim));
    trli_note_rates(sim);
    TRL_TRY(trli_split_terms(sim));
    TRL_TRY(trli_simulation_make_model(sim, NULL));
    TRL_TRY(trli_add_sensitivities(sim));
    TRL_TRY(trli_declare_rates(sim));
    TRL_TRY(mark_used(sim));
    TRL_TRY(trli_compile_programs(sim));
    TRL_TRY(trli_late_create(sim));
    trli_flow_begin(sim);
    TRL_TRY(trli_time_blocking_create(sim));
done:
    return err;
}

trl_err trl_simulation_create(trl_context *ctx, const trl_problem *problem, trl_simulation **sim)
{
    double start = trli_clock();
    if (!ctx || !sim) return TRL_ERR_USAGE;
    *sim = NULL;
    if (!problem) return trl_fail(ctx, TRL_ERR_USAGE, NULL, "a simulation is made without its problem");
    trl_simulation *s = trli_new(ctx, 1, sizeof *s);
    trl_err err = s ? TRL_OK : trli_no_memory(ctx, NULL, "for a simulation");
    trl_context_begin_phase(ctx);
    if (s) {
        s->ctx = ctx;
        s->problem = problem;
        err = create(s);
        s->compile_seconds = trli_clock() - start;
    }
    err = trl_context_end_phase(ctx, err);
    if (err != TRL_OK) trl_simulation_destroy(&s);
    *sim = s;
    return err;
}

void trl_simulation_destroy(trl_simulation **sim)
{
    trl_simulation *s = sim ? *sim : NULL;
    if (!s) return;
    *sim = NULL;
    trli_late_destroy(s);
    trli_time_blocking_destroy(&s->blocking);
    trli_gpu_blocking_destroy(&s->gpu_blocking);
    trli_receivers_destroy(&s->receivers);
    trli_columns_destroy(s);
    trli_bound_destroy(&s->bound);
    trli_solving_destroy(s);
    trli_implicit_destroy(s);
    trli_multistep_destroy(s);
    trli_frame_destroy(&s->frame);
    trli_model_destroy(&s->model);
    for (int v = 0; v < s->nequations; ++v) {
        trl_formula_destroy(&s->equation[v].initial);
        trl_formula_destroy(&s->equation[v].ddt);
        trl_formula_destroy(&s->equation[v].implicit);
        trl_formula_destroy(&s->equation[v].solve);
        trl_formula_destroy(&s->equation[v].equals);
        trl_formula_destroy(&s->equation[v].mask);
        trl_formula_destroy(&s->equation[v].exact);
    }
    for (int i = 0; s->sensitivity && i < s->nequations - s->problem->nequations; ++i) trli_free(s->sensitivity[i]);
    trli_free(s->sensitivity);
    for (int i = 0; s->series && i < s->problem->nseries; ++i) trl_formula_destroy(&s->series[i]);
    trl_loop_destroy(&s->loop);
    trl_workers_destroy(&s->workers);
    trl_devices_close(&s->devices);
    trl_trace_destroy(&s->trace);
    trl_layout_destroy(&s->layout);
    trli_rates_destroy(s);
    trli_free(s->equation);
    trli_free(s->error);
    trli_free(s->levels);
    trl_formula_destroy(&s->stop);
    trli_free(s->series);
    trli_free(s->series_scalar);
    trli_free(s->series_value);
    trli_free(s->shown);
    trli_free(s->kept);
    trli_free(s);
}

void trli_set_dt(const trl_simulation *sim, const trli_next_step *next)
{
    const trl_integrator *by = sim->integrator;
    double *scalar = sim->frame->scalar;
    scalar[TRLI_SCALAR_DT] = next->dt;
    if (by->leapfrog) scalar[sim->kick_scalar] = (next->before + next->dt) / 2;
    for (int s = 1; s < by->stages; ++s)
        scalar[sim->stage_time[s]] = by->c[s] == 1 ? next->time : next->from + by->c[s] * next->dt;
    scalar[sim->stage_time[by->stages]] = next->time;
}

void trli_set_times(trl_simulation *sim, const trli_next_step *next)
{
    double *scalar = sim->frame->scalar;
    sim->frame->step_number = next->number - 1;
    scalar[TRLI_SCALAR_STEP_TIME] = next->from;
    scalar[TRLI_SCALAR_STEP] = (double)(next->number - 1);
    if (sim->integrator->leapfrog) scalar[sim->half_scalar] = next->before / 2;
    trli_set_dt(sim, next);
}

void trli_set_present(trl_simulation *sim)
{
    trli_set_times(sim, &(trli_next_step){.number = sim->step_number + 1,
                                          .from = sim->time,
                                          .dt = sim->dt,
                                          .time = sim->time,
                                          .before = sim->step_number > 0 ? sim->dt : 0});
}

trl_err trl_simulation_initialise(trl_simulation *sim)
{
    trl_err err = TRL_OK;
    bool evaluated = false;
    if (!sim) return TRL_ERR_USAGE;
    trl_context_begin_phase(sim->ctx);
    trli_set_present(sim);
    trli_first_rates_forget(sim);
    trli_multistep_forget(sim);
    TRL_TRY(trli_run_lasting(sim));
    TRL_TRY(trli_run_checked(sim, sim->initial, 0, sim->time, true));
    evaluated = !sim->solving;
    TRL_TRY(trli_solve_initial(sim, false));
    TRL_TRY(trli_check_first_step(sim));
    trli_set_present(sim);
    TRL_TRY(trli_solve_initial(sim, true));
    if (sim->implicit) TRL_TRY(trli_implicit_foresee(sim));
    if (!sim->multistep) TRL_TRY(trli_limit_warn(sim));
    err = trli_evaluate_kept(sim, false);
done:
    err = trl_context_end_phase(sim->ctx, err);
    /* Before step 0 it is the deck that is wrong. */
    return err == TRL_ERR_NUMERICS && evaluated ? TRL_ERR_INPUT : err;
}

bool trl_simulation_done(const trl_simulation *sim)
{
    return trli_done_at(sim, sim->step_number, sim->time);
}

double trl_simulation_time(const trl_simulation *sim)
{
    return sim->time;
}

double trl_simulation_dt(const trl_simulation *sim)
{
    return sim->dt;
}

trl_gidx trl_simulation_step_number(const trl_simulation *sim)
{
    return sim->step_number;
}

int trl_simulation_stages(const trl_simulation *sim)
{
    return sim->integrator->stages;
}

void trl_simulation_set_steps(trl_simulation *sim, trl_gidx steps)
{
    sim->steps_wanted = steps;
}

int trl_simulation_fields(const trl_simulation *sim)
{
    return sim->nshown;
}

const trl_field_info *trl_simulation_field(const trl_simulation *sim, int field)
{
    return &sim->shown[field].info;
}

const trl_layout *trl_simulation_layout(const trl_simulation *sim)
{
    return sim->layout;
}

trl_workers *trl_simulation_workers(const trl_simulation *sim)
{
    return sim->workers;
}

trl_err trl_simulation_observe(trl_simulation *sim)
{
    trl_observed row = {.there = true};
    trl_err err = TRL_OK;
    if (!sim) return TRL_ERR_USAGE;
    TRL_TRY(trl_simulation_settle(sim));
    while (row.there) TRL_TRY(trl_simulation_observed(sim, true, &row));
    err = trl_simulation_fetched(sim);
    if (!sim->late || sim->any_devices) TRL_TRY(trl_context_agree(sim->ctx, err)); /* only devices fail on one rank */
    trli_set_present(sim);
    TRL_TRY(trli_evaluate_kept(sim, true));
    TRL_TRY(trli_run_checked(sim, sim->observe, sim->step_number, sim->time, false));
    for (int i = 0; i < sim->problem->nseries; ++i) sim->series_value[i] = sim->frame->scalar[sim->series_scalar[i]];
    err = trli_columns_find(sim);
done:
    return err;
}

trl_err trl_simulation_stops(trl_simulation *sim, bool *stops)
{
    trl_err err = TRL_OK;
    if (!sim || !stops) return TRL_ERR_USAGE;
    *stops = false;
    if (!sim->stop) return TRL_OK;
    trli_set_present(sim);
    TRL_TRY(trli_program_run_agreed(sim, sim->stopped));
    *stops = sim->frame->scalar[sim->stop_scalar] != 0;
done:
    return err;
}

trl_array trl_simulation_array(const trl_simulation *sim, int field, int local_patch)
{
    trl_err err = trli_check_held(sim, &sim->shown[field]);
    const bool held = err == TRL_OK;
    if (held) err = trli_frame_fetch_patch(sim->frame, sim->shown[field].field, local_patch);
    if (err != TRL_OK) ((trl_simulation *)sim)->fetched = err;
    trl_array array = trli_frame_array(sim->frame, sim->shown[field].field, local_patch, 0);
    if (!held) array.at = NULL;
    return array;
}

trl_err trl_simulation_fetched(trl_simulation *sim)
{
    const trl_err err = sim->fetched;
    sim->fetched = TRL_OK;
    return err;
}

const double *trl_simulation_series(const trl_simulation *sim)
{
    return sim->series_value;
}

void trl_simulation_get_stats(const trl_simulation *sim, trl_simulation_stats *stats)
{
    trl_pool_stats memory;
    trl_memory_stats all;
    double cells = 0;
    trl_field_manager_get_stats(sim->frame->memory, 0, &memory);
    trl_memory_get_stats(sim->ctx, &all);
    for (int p = 0; p < sim->layout->nlocal; ++p) {
        const trl_patch *patch = &sim->layout->patch[p];
        cells += (double)patch->cells[0] * patch->cells[1] * patch->cells[2];
    }
    *stats = (trl_simulation_stats){.planned_bytes = sim->model->slots->bytes,
                                    .peak_bytes = (int64_t)memory.peak,
                                    .held_bytes = (int64_t)memory.in_use,
                                    .metadata_bytes = (int64_t)all.metadata_peak_bytes,
                                    .metadata_allocations = all.metadata_allocations,
                                    .bytes_per_cell_step = (int64_t)((double)sim->step->run->bytes_moved / cells + 0.5),
                                    .policy = trl_workers_policy(sim->workers),
                                    .running_policy = trl_workers_running_policy(sim->workers),
                                    .comm_bytes = sim->comm_bytes,
                                    .comm_messages = sim->comm_messages,
                                    .solver_bytes = sim->ctx->sent.bytes,
                                    .solver_messages = sim->ctx->sent.messages,
                                    .messages_between_gpus = sim->frame ? trli_frame_far_messages(sim->frame) : 0,
                                    .allocations_after_first_step = sim->allocations,
                                    .compile_seconds = sim->compile_seconds};
    const trli_ways *ways = &sim->model->machine.ways;
    const trli_help_given given = trli_help_get_given(sim->frame ? sim->frame->help : NULL);
    stats->helped_points = given.points;
    stats->helped = given.seconds;
    stats->helped_per_step = given.step_share;
    if (ways->known) stats->latency = sim->model->machine.shares ? ways->shared_s : ways->message_s;
    trl_workers_get_pools(sim->workers, &stats->task_workers, &stats->operator_workers);
    trl_graph_get_stats(sim->step->run->graph, &stats->step_graph);
    stats->tasks_per_step = stats->step_graph.tasks;
    trl_graph_get_placement(sim->step->run->graph, &stats->placement);
    for (int i = 0; i < sim->model->nprograms; ++i) {
        trl_placement_stats placement;
        trl_graph_get_placement(sim->model->program[i]->run->graph, &placement);
        for (int w = 0; w < TRL_WAYS; ++w) {
            stats->device_copies[w] += placement.copies[w];
            stats->device_bytes[w] += placement.bytes[w];
        }
    }
    for (int i = 0; sim->devices && i < sim->devices->n; ++i)
        stats->device_waits += atomic_load_explicit(&sim->devices->device[i]->waits, memory_order_relaxed);
    stats->device_copies[TRL_WAY_OUT] += sim->frame->fetched_copies;
    stats->device_bytes[TRL_WAY_OUT] += sim->frame->fetched_bytes;
    stats->device_copies[TRL_WAY_IN] += sim->frame->sent_copies;
    stats->device_bytes[TRL_WAY_IN] += sim->frame->sent_bytes;
}

void trl_simulation_get_compile_stats(const trl_simulation *sim, trl_compile_stats *stats)
{
    const trli_compiler *compiler = sim->model->run->compiler;
    *stats = sim->compiled;
    if (!compiler) return;
    const trli_compiler_stats s = trli_compiler_get_stats(compiler);
    stats->under_way = s.under_way;
    stats->compiled += s.compiled;
    stats->cached += s.cached;
    stats->received += s.received;
    stats->seconds += s.seconds;
    stats->keeps |= s.keeps;
}

trl_err trl_simulation_write_dot(const trl_simulation *sim, bool tasks, FILE *out)
{
    return tasks ? trl_graph_write_dot(sim->step->run->graph, out) : trli_tree_write_dot(sim->model, out);
}

trl_err trl_simulation_write_kernels(trl_simulation *sim, trl_kind kind, FILE *out)
{
    trl_err err = TRL_OK;
    TRL_TRY(trli_kernels_write(sim->step, kind, out));
    if (kind == TRL_KIND_GPU) err = trli_gpu_blocking_write(sim, out);
done:
    return err;
}

trl_err trl_simulation_trace(trl_simulation *sim, int64_t events)
{
    trl_err err;
    if (sim->trace) return trl_fail(sim->ctx, TRL_ERR_USAGE, NULL, "this simulation is traced already");
    TRL_TRY(trl_trace_create(sim->ctx, trl_workers_count(sim->workers), events, &sim->trace));
    TRL_TRY(trl_workers_set_trace(sim->workers, sim->trace));
done:
    return err;
}

trl_err trl_simulation_write_trace(const trl_simulation *sim, FILE *out)
{
    if (!sim->trace) return trl_fail(sim->ctx, TRL_ERR_USAGE, NULL, "this simulation is not traced");
    return trl_trace_write(sim->trace, out);
}
