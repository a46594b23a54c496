/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The program of a time step with all its stages. Stage updates are ordinary values of the IR, so that the compiler
 * fuses them without knowing about time integration. */
#include <string.h>

#include "compile_impl.h"
#include "implicit_impl.h"
#include "lifecycle_impl.h"
#include "lower_impl.h"
#include "memory_impl.h"
#include "multistep_impl.h"
#include "sides_impl.h"
#include "solving_impl.h"

/* Outputs of one kernel in the making: fields of one location and box. */
typedef struct batch {
    int n;
    int *field, *variable;
    trli_ir_value *value;
} batch;

static trl_err batch_init(trl_simulation *sim, batch *b)
{
    size_t n = 2 * (size_t)sim->nequations + 1; /* new values, and slopes that later stages need */
    *b = (batch){.field = trli_new(sim->ctx, n, sizeof *b->field),
                 .variable = trli_new(sim->ctx, n, sizeof *b->variable),
                 .value = trli_new(sim->ctx, n, sizeof *b->value)};
    if (b->field && b->variable && b->value) return TRL_OK;
    return trli_no_memory(sim->ctx, NULL, "for %d equations", sim->nequations);
}

static void batch_free(batch *b)
{
    trli_free(b->field);
    trli_free(b->variable);
    trli_free(b->value);
}

static void batch_add(batch *b, int field, trli_ir_value value, int variable)
{
    b->field[b->n] = field;
    b->value[b->n] = value;
    b->variable[b->n++] = variable;
}

static trl_err batch_flush(batch *b, trli_program *program, const char *label, bool check)
{
    trl_err err = TRL_OK;
    if (b->n > 0) err = trli_program_add_kernel(program, label, b->n, b->field, b->value, check ? b->variable : NULL);
    b->n = 0;
    return err;
}

/* A stage in the making. */
typedef struct stage {
    int number;
    trli_program *program;
    trli_instance *in;    /* values u_s */
    trli_ir_value *slope; /* f_k of equation v: [k * nequations + v] */
} stage;

/* Whether an equation's rate is the number 0, in this stage and those before: its value stays what it was, to the last
 * bit, which weights that add up to 1 do not promise. */
static bool stays(const trl_simulation *sim, const stage *st, int v)
{
    bool zero = !sim->integrator->leapfrog && !sim->equation[v].solve;
    for (int k = 0; k <= st->number && zero; ++k)
        zero = trli_ir_is_zero(&sim->model->ir, st->slope[k * sim->nequations + v]);
    return zero;
}

/* u_{s+1} of an equation from the integrator's table. */
static trli_ir_value stage_update(trl_simulation *sim, const stage *st, int v)
{
    const trl_integrator *m = sim->integrator;
    trli_ir *ir = &sim->model->ir;
    trli_ir_value dt = trli_ir_scalar(ir, TRLI_SCALAR_DT), u0 = trli_ir_field(ir, sim->equation[v].state),
                  sum = TRLI_NO_VALUE;
    if (m->leapfrog) return trli_leapfrog_update(sim, v, st->slope);
    if (stays(sim, st, v)) return u0;
    if (m->shu_osher) {
        trli_ir_value us = trli_ir_field(ir, st->in->variable[v]);
        trli_ir_value step = trli_ir_binary(ir, TRLI_OP_MUL, dt, st->slope[st->number * sim->nequations + v]);
        trli_ir_value moved = trli_ir_binary(ir, TRLI_OP_ADD, us, step);
        double alpha = m->alpha[st->number];
        if (alpha == 0) return moved;
        return trli_ir_binary(ir, TRLI_OP_ADD, trli_ir_binary(ir, TRLI_OP_MUL, trli_ir_constant(ir, alpha), u0),
                              trli_ir_binary(ir, TRLI_OP_MUL, trli_ir_constant(ir, 1 - alpha), moved));
    }
    for (int k = 0; k <= st->number; ++k) {
        if (m->a[st->number][k] == 0) continue;
        trli_ir_value term = trli_ir_binary(ir, TRLI_OP_MUL, trli_ir_constant(ir, m->a[st->number][k]),
                                            st->slope[k * sim->nequations + v]);
        sum = sum < 0 ? term : trli_ir_binary(ir, TRLI_OP_ADD, sum, term);
    }
    return trli_ir_binary(ir, TRLI_OP_ADD, u0, trli_ir_binary(ir, TRLI_OP_MUL, dt, sum));
}

static bool slope_needed_later(const trl_simulation *sim, int k)
{
    const trl_integrator *m = sim->integrator;
    if (sim->problem->time.adaptive && m->error[k] != 0) return true;
    for (int s = k + 1; s < m->stages && !m->shu_osher && !m->leapfrog; ++s)
        if (m->a[s][k] != 0) return true;
    return false;
}

bool trli_share_sweep(const trl_simulation *sim, int a, int b)
{
    const trli_model *model = sim->model;
    const unsigned differs = model->field[a].location ^ model->field[b].location;
    if (model->settings.fusion != TRL_FUSION_FULL) return false;
    for (int axis = 0; axis < 3; ++axis)
        if (differs >> axis & 1 && !model->layout->grid.periodic[axis]) return false;
    return memcmp(model->field[a].fixed_planes, model->field[b].fixed_planes, sizeof model->field[a].fixed_planes) == 0;
}

/* Append one equation's new value to the batch, and its slope if later stages need that. */
static trl_err add_update(trl_simulation *sim, stage *st, int v, int target, batch *b)
{
    trli_model *model = sim->model;
    const trli_equation *eq = &sim->equation[v];
    trli_ir_value *slope = &st->slope[st->number * sim->nequations + v], f = *slope;
    trl_err err = TRL_OK;
    trli_ir_value value = stage_update(sim, st, v);
    if (model->variable[v].mask) {
        trli_ir_value mask;
        TRL_TRY(trli_lower_at(st->in, model->variable[v].mask, eq->deck->names, model->variable[v].location, &mask));
        value = trli_ir_select(&model->ir, mask, value, trli_ir_field(&model->ir, eq->state));
    }
    batch_add(b, target, value, v);
    if (slope_needed_later(sim, st->number) && !(st->number == 0 && trli_first_rates(sim))) {
        int field = trli_model_add_field(model, trli_model_name(model, "%s:k%d", eq->deck->name, st->number + 1),
                                         model->variable[v].location);
        if (field < 0) return model->ir.err;
        batch_add(b, field, f, v);
        model->field[field].persistent = sim->solving != NULL; /* later stages are other programs */
        if (sim->solving) TRL_TRY(trli_program_add_root(st->program, field));
        *slope = trli_ir_field(&model->ir, field);
    }
done:
    return err;
}

static trl_err compile_updates(trl_simulation *sim, stage *st, const int *target)
{
    batch b;
    bool *added = trli_new(sim->ctx, (size_t)sim->nequations + 1, sizeof *added);
    trl_err err = batch_init(sim, &b);
    const bool last = st->number + 1 == sim->integrator->stages;
    if (!added) err = trli_no_memory(sim->ctx, NULL, "for %d equations", sim->nequations);
    TRL_TRY(err);
    for (int v = 0; v < sim->nequations; ++v) {
        if (added[v] || sim->equation[v].solve) continue;
        for (int w = v; w < sim->nequations; ++w) {
            if (added[w] || sim->equation[w].solve || (w > v && !trli_share_sweep(sim, target[v], target[w]))) continue;
            TRL_TRY(add_update(sim, st, w, target[w], &b));
            added[w] = true;
        }
        TRL_TRY(batch_flush(&b, st->program, sim->equation[v].deck->name, last));
    }
done:
    batch_free(&b);
    trli_free(added);
    return err;
}

/* A tangent as an ordinary value. */
static trl_err derivative_of(trl_simulation *sim, trli_instance *in, int direction, trli_ir_value value,
                             trli_ir_value *tangent)
{
    trl_err err = trli_tangent(in, direction, value, tangent);
    if (err == TRL_OK && *tangent < 0) *tangent = trli_ir_constant(&sim->model->ir, 0);
    return err == TRL_OK ? sim->model->ir.err : err;
}

static trl_err lower_slopes(trl_simulation *sim, stage *st)
{
    trl_err first = TRL_OK;
    for (int v = 0; v < sim->nequations; ++v) {
        const trli_equation *eq = &sim->equation[v];
        if (eq->solve) continue;
        trli_ir_value *slope = &st->slope[(size_t)st->number * (size_t)sim->nequations];
        trl_err err = eq->direction ? derivative_of(sim, st->in, eq->direction, slope[eq->of], &slope[v])
                                    : trli_lower_at(st->in, eq->ddt, eq->deck->names, sim->model->variable[v].location,
                                                    &slope[v]);
        if (first == TRL_OK) first = err;
    }
    return first;
}

/* The rates of a stage as those of the state that the step before has made. */
static void take_first_rates(trl_simulation *sim, stage *st)
{
    for (int v = 0; v < sim->nequations; ++v) st->slope[v] = trli_ir_field(&sim->model->ir, trli_first_rates(sim)[v]);
}

/* Store the rates of a stage to fields, and take them from there. */
static trl_err store_slopes(trl_simulation *sim, stage *st, const int *field)
{
    trli_ir_value *slope = &st->slope[(size_t)st->number * (size_t)sim->nequations];
    batch b;
    bool *added = trli_new(sim->ctx, (size_t)sim->nequations + 1, sizeof *added);
    trl_err err = batch_init(sim, &b);
    if (!added) err = trli_no_memory(sim->ctx, NULL, "for %d equations", sim->nequations);
    TRL_TRY(err);
    for (int v = 0; v < sim->nequations; ++v) {
        for (int w = v; w < sim->nequations; ++w) {
            if (added[w] || (w > v && !trli_share_sweep(sim, field[v], field[w]))) continue;
            batch_add(&b, field[w], slope[w], w);
            added[w] = true;
        }
        TRL_TRY(batch_flush(&b, st->program, sim->equation[v].deck->name, false));
        TRL_TRY(trli_program_add_root(st->program, field[v]));
        slope[v] = trli_ir_field(&sim->model->ir, field[v]);
    }
done:
    batch_free(&b);
    trli_free(added);
    return err;
}

trl_err trli_store_rates(trl_simulation *sim, trli_instance *in, const int *field)
{
    stage st = {.program = in->program, .in = in};
    trl_err err = TRL_OK;
    st.slope = trli_new(sim->ctx, (size_t)sim->nequations + 1, sizeof *st.slope);
    if (!st.slope) return trli_no_memory(sim->ctx, NULL, "for %d equations", sim->nequations);
    TRL_TRY(lower_slopes(sim, &st));
    err = store_slopes(sim, &st, field);
done:
    trli_free(st.slope);
    return err;
}

static trl_err stage_targets(trl_simulation *sim, int number, int *target)
{
    for (int v = 0; v < sim->nequations; ++v) {
        if (number + 1 == sim->integrator->stages || sim->equation[v].solve) {
            target[v] = sim->equation[v].next;
            continue;
        }
        const char *name = trli_model_name(sim->model, "%s:%d", sim->equation[v].deck->name, number + 1);
        target[v] = trli_model_add_field(sim->model, name, sim->model->variable[v].location);
        if (target[v] < 0) return sim->model->ir.err;
        trli_set_conditions(sim, v, target[v], target[sim->equation[v].of]);
    }
    return TRL_OK;
}

/* The instances of a stage in its program. Where solvers stand between stages, each is a program of its own, and what
 * it needs of the start of the step is evaluated in it. */
static trl_err begin_stage(trl_simulation *sim, int s, const int *target, trli_instance **in, trli_instance **start)
{
    trl_err err = TRL_OK;
    if (s > 0 && !sim->solving) { /* the stage before has made it */
        sim->part[s] = sim->part[0];
        return trli_instance_fill(*in);
    }
    const bool last = !sim->solving || s + 1 == sim->integrator->stages;
    const char *name = last ? TRLI_STEP_PROGRAM : trli_model_name(sim->model, "%s, stage %d", TRLI_STEP_PROGRAM, s + 1);
    TRL_TRY(trli_program_create(sim->model, name, &sim->part[s]));
    sim->part[s]->each_step = true;
    TRL_TRY(trli_instance_of_present(sim, sim->part[s], s ? start : in));
    if (s == 0) goto done;
    trli_instance_destroy(in);
    TRL_TRY(trli_instance_create(sim->model, sim->part[s], sim->stage_time[s], s, *start, in));
    for (int v = 0; v < sim->nequations; ++v) (*in)->variable[v] = target[v];
    TRL_TRY(trli_instance_fill(*in));
done:
    return err;
}

static trl_err compile_stage(trl_simulation *sim, trli_instance **in, trli_instance **start, trli_ir_value *slope,
                             int s, int *target)
{
    trl_err err = TRL_OK;
    TRL_TRY(begin_stage(sim, s, target, &in[s], &start[s]));
    stage st = {.number = s, .program = sim->part[s], .in = in[s], .slope = slope};
    if (s == 0 && trli_first_rates(sim)) {
        take_first_rates(sim, &st);
    } else {
        TRL_TRY(trli_instance_prepare(st.in));
        TRL_TRY(lower_slopes(sim, &st));
    }
    TRL_TRY(stage_targets(sim, s, target));
    TRL_TRY(compile_updates(sim, &st, target));
    trli_instance *old = start[s] ? start[s] : in[0];
    TRL_TRY(trli_instance_create(sim->model, st.program, sim->stage_time[s + 1], s + 1, old, &in[s + 1]));
    for (int v = 0; v < sim->nequations; ++v) in[s + 1]->variable[v] = target[v];
    TRL_TRY(trli_instance_planes(in[s + 1], s + 1 == sim->integrator->stages));
    trli_solving_note_stage(sim, s, target);
    TRL_TRY(trli_flow_compile_stage(sim, s, slope + (size_t)s * (size_t)sim->nequations));
    for (int v = 0; v < sim->nequations; ++v)
        if (!sim->equation[v].solve && (sim->solving || s + 1 == sim->integrator->stages))
            TRL_TRY(trli_program_add_root(st.program, target[v]));
done:
    return err;
}

/* The slopes with the weights of the error. */
static trl_err compile_errors(trl_simulation *sim, trli_instance *next, const trli_ir_value *slope)
{
    const trl_integrator *m = sim->integrator;
    trli_ir *ir = &sim->model->ir;
    trli_ir_value *sum = trli_new(sim->ctx, (size_t)sim->nequations + 1, sizeof *sum);
    trl_err err = TRL_OK;
    if (!sum) return trli_no_memory(sim->ctx, NULL, "for %d equations", sim->nequations);
    for (int v = 0; v < sim->nequations; ++v) {
        sum[v] = TRLI_NO_VALUE;
        for (int k = 0; k <= m->stages && !sim->equation[v].solve; ++k) {
            if (m->error[k] == 0) continue;
            const trli_ir_value term =
                trli_ir_binary(ir, TRLI_OP_MUL, trli_ir_constant(ir, m->error[k]), slope[k * sim->nequations + v]);
            sum[v] = sum[v] < 0 ? term : trli_ir_binary(ir, TRLI_OP_ADD, sum[v], term);
        }
    }
    err = trli_compile_errors(sim, next, sum);
    trli_free(sum);
    return err;
}

/* Where new values are solved for behind the last stage, a program of its own sees them. */
static trl_err begin_estimate(trl_simulation *sim, trli_instance **next, trli_instance **start)
{
    const int stages = sim->integrator->stages;
    trl_err err = TRL_OK;
    if (!sim->solving) return TRL_OK;
    trli_instance_destroy(next);
    TRL_TRY(trli_program_create(sim->model, "errors", &sim->estimate));
    TRL_TRY(trli_instance_of_present(sim, sim->estimate, start));
    TRL_TRY(trli_instance_create(sim->model, sim->estimate, sim->stage_time[stages], stages, *start, next));
    for (int v = 0; v < sim->nequations; ++v) (*next)->variable[v] = sim->equation[v].next;
done:
    return err;
}

/* The slopes of the new values, and what follows from all slopes. */
static trl_err compile_estimate(trl_simulation *sim, trli_instance *next, trli_ir_value *slope)
{
    stage st = {.number = sim->integrator->stages, .program = next->program, .in = next, .slope = slope};
    trl_err err = TRL_OK;
    TRL_TRY(trli_instance_fill(next));
    TRL_TRY(trli_instance_prepare(next));
    TRL_TRY(lower_slopes(sim, &st));
    if (trli_last_rates(sim)) TRL_TRY(store_slopes(sim, &st, trli_last_rates(sim)));
    for (int v = 0; v < sim->nequations; ++v)
        if (!sim->equation[v].solve) TRL_TRY(trli_flow_subtract(next, v, &slope[st.number * sim->nequations + v]));
    TRL_TRY(trli_dense_add_sums(sim, st.program, slope));
    TRL_TRY(compile_errors(sim, next, slope));
done:
    return err;
}

trl_err trli_compile_step(trl_simulation *sim)
{
    trli_instance *in[TRL_STAGES_MAX + 1] = {NULL}, *start[TRL_STAGES_MAX + 1] = {NULL};
    int stages = sim->integrator->stages;
    trli_ir_value *slope = trli_new(sim->ctx, (size_t)(stages + 1) * (size_t)sim->nequations + 1, sizeof *slope);
    int *target = trli_new(sim->ctx, (size_t)sim->nequations + 1, sizeof *target);
    trl_err err = TRL_OK;
    if (!slope || !target) TRL_TRY(trli_no_memory(sim->ctx, NULL, "for %d equations", sim->nequations));
    TRL_TRY(trli_dense_prepare(sim));
    if (sim->integrator->multistep) {
        err = trli_multistep_compile(sim);
        goto done;
    }
    if (sim->integrator->implicit) {
        err = trli_compile_implicit(sim);
        goto done;
    }
    TRL_TRY(trli_first_rates_prepare(sim));
    sim->stage_time[0] = TRLI_SCALAR_STEP_TIME;
    for (int s = 1; s <= stages; ++s) sim->stage_time[s] = trli_model_add_scalar(sim->model, 0);
    for (int s = 0; s < stages; ++s) TRL_TRY(compile_stage(sim, in, start, slope, s, target));
    sim->step = sim->part[stages - 1];
    if (sim->problem->time.adaptive) {
        TRL_TRY(begin_estimate(sim, &in[stages], &start[stages]));
        TRL_TRY(compile_estimate(sim, in[stages], slope));
    }
done:
    for (int s = 0; s <= stages; ++s) {
        trli_instance_destroy(&in[s]);
        trli_instance_destroy(&start[s]);
    }
    trli_free(slope);
    trli_free(target);
    return err;
}
