/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* From a problem to programs: initial values, one time step with all its stages, and what is observed. Stage updates
 * are ordinary values of the IR, so that the compiler fuses them without knowing about time integration. */
#include <string.h>

#include "cost_impl.h"
#include "lifecycle_impl.h"
#include "lower_impl.h"
#include "memory_impl.h"
#include "pipeline_impl.h"
#include "sides_impl.h"
#include "simulation_impl.h"
#include "symbols_impl.h"
#include "tangent_impl.h"

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

static void set_boundary(trl_simulation *sim, int v, int field)
{
    const trl_equation_entry *deck = sim->equation[v].deck;
    trli_model_field *f = &sim->model->field[field];
    f->exchanged = true;
    f->boundary = (trli_boundary_source){deck->boundary, deck->names, deck->name, deck->place};
    for (int s = 0; s < 2 * sim->layout->grid.dim; ++s)
        f->fixed_planes[s] =
            f->location >> s / 2 & 1 && !sim->layout->grid.periodic[s / 2] && trli_side_is_fixed(&deck->boundary[s]);
}

static trl_err add_state(trl_simulation *sim, int v)
{
    trli_equation *eq = &sim->equation[v];
    trli_model *model = sim->model;
    trl_location location = model->variable[v].location;
    eq->state = trli_model_add_field(model, eq->deck->name, location);
    eq->next = trli_model_add_field(model, trli_model_name(model, "%s:np1", eq->deck->name), location);
    if (eq->state < 0 || eq->next < 0) return model->ir.err;
    set_boundary(sim, v, eq->state);
    set_boundary(sim, v, eq->next);
    model->field[eq->state].persistent = model->field[eq->next].persistent = true;
    return TRL_OK;
}

static trl_err find_rotation(trl_simulation *sim)
{
    const int n = sim->nequations;
    sim->levels = trli_new(sim->ctx, 2 * (size_t)n + 1, sizeof *sim->levels);
    if (!sim->levels) return trli_no_memory(sim->ctx, NULL, "for %d equations", n);
    for (int v = 0; v < n; ++v) {
        sim->levels[v] = sim->equation[v].state;
        sim->levels[n + v] = sim->equation[v].next;
    }
    sim->rotation = (trli_rotation){n, sim->levels, sim->levels + n};
    return TRL_OK;
}

static trl_err instance_of_state(trl_simulation *sim, trli_program *program, trli_instance **instance)
{
    trl_err err = trli_instance_create(sim->model, program, TRLI_SCALAR_STEP_TIME, 0, NULL, instance);
    for (int v = 0; err == TRL_OK && v < sim->nequations; ++v) (*instance)->variable[v] = sim->equation[v].state;
    return err;
}

static trl_err compile_initial(trl_simulation *sim)
{
    trli_instance *values = NULL, *state = NULL, *before = NULL;
    trl_err err = TRL_OK, first = TRL_OK;
    TRL_TRY(trli_program_create(sim->model, "initial", &sim->initial));
    sim->initial->once = true;
    TRL_TRY(instance_of_state(sim, sim->initial, &values));
    TRL_TRY(instance_of_state(sim, sim->initial, &state));
    TRL_TRY(instance_of_state(sim, sim->initial, &before));
    values->initial = true;
    before->begins = values; /* there is no step yet: old(f) is f's initial value */
    state->old = before;
    TRL_TRY(trli_instance_prepare(values));
    for (int v = 0; v < sim->nequations; ++v) {
        const trli_equation *eq = &sim->equation[v];
        trli_operand operand;
        trl_err one = trli_lower_symbol(values, trli_symbol_find(sim->model, eq->deck->name), &operand);
        if (one == TRL_OK)
            one = trli_program_add_kernel(sim->initial, eq->deck->name, 1, &eq->state, &operand.value[0], &v);
        if (one == TRL_OK) one = trli_program_add_root(sim->initial, eq->state);
        if (first == TRL_OK) first = one;
    }
    TRL_TRY(first);
    TRL_TRY(trli_instance_planes(state, true));
done:
    trli_instance_destroy(&values);
    trli_instance_destroy(&state);
    trli_instance_destroy(&before);
    return err;
}

/* A stage in the making. */
typedef struct stage {
    int number;
    trli_instance *in;          /* values u_s */
    const trli_instance *first; /* values u_0 */
    trli_ir_value *slope;       /* f_k of equation v: [k * nequations + v] */
} stage;

/* u_{s+1} of an equation from the integrator's table. */
static trli_ir_value stage_update(const trl_simulation *sim, const stage *st, int v)
{
    const trl_integrator *m = sim->integrator;
    trli_ir *ir = &sim->model->ir;
    trli_ir_value dt = trli_ir_scalar(ir, TRLI_SCALAR_DT), u0 = trli_ir_field(ir, st->first->variable[v]),
                  sum = TRLI_NO_VALUE;
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

static bool slope_needed_later(const trl_integrator *m, int k)
{
    for (int s = k + 1; s < m->stages && !m->shu_osher; ++s)
        if (m->a[s][k] != 0) return true;
    return false;
}

static bool same_box(const trli_model *model, int a, int b)
{
    return model->field[a].location == model->field[b].location &&
           memcmp(model->field[a].fixed_planes, model->field[b].fixed_planes, sizeof model->field[a].fixed_planes) == 0;
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
        value = trli_ir_select(&model->ir, mask, value, trli_ir_field(&model->ir, st->first->variable[v]));
    }
    batch_add(b, target, value, v);
    if (slope_needed_later(sim->integrator, st->number)) {
        int field = trli_model_add_field(model, trli_model_name(model, "%s:k%d", eq->deck->name, st->number + 1),
                                         model->variable[v].location);
        if (field < 0) return model->ir.err;
        batch_add(b, field, f, v);
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
    bool last = st->number + 1 == sim->integrator->stages, together = sim->model->settings.fusion == TRL_FUSION_FULL;
    if (!added) err = trli_no_memory(sim->ctx, NULL, "for %d equations", sim->nequations);
    TRL_TRY(err);
    for (int v = 0; v < sim->nequations; ++v) {
        if (added[v]) continue;
        /* Equations with one box read much the same fields: with full fusion they are one sweep. */
        for (int w = v; w < sim->nequations; ++w) {
            if (added[w] || (w > v && !(together && same_box(sim->model, target[v], target[w])))) continue;
            TRL_TRY(add_update(sim, st, w, target[w], &b));
            added[w] = true;
        }
        TRL_TRY(batch_flush(&b, sim->step, sim->equation[v].deck->name, last));
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
        trli_ir_value *slope = &st->slope[(size_t)st->number * (size_t)sim->nequations];
        trl_err err = eq->direction ? derivative_of(sim, st->in, eq->direction, slope[eq->of], &slope[v])
                                    : trli_lower_at(st->in, eq->ddt, eq->deck->names, sim->model->variable[v].location,
                                                    &slope[v]);
        if (first == TRL_OK) first = err;
    }
    return first;
}

static trl_err stage_targets(trl_simulation *sim, int number, int *target)
{
    for (int v = 0; v < sim->nequations; ++v) {
        if (number + 1 == sim->integrator->stages) {
            target[v] = sim->equation[v].next;
            continue;
        }
        const char *name = trli_model_name(sim->model, "%s:%d", sim->equation[v].deck->name, number + 1);
        target[v] = trli_model_add_field(sim->model, name, sim->model->variable[v].location);
        if (target[v] < 0) return sim->model->ir.err;
        set_boundary(sim, v, target[v]);
    }
    return TRL_OK;
}

static trl_err compile_stage(trl_simulation *sim, trli_instance **in, trli_ir_value *slope, int s)
{
    stage st = {.number = s, .in = in[s], .first = in[0], .slope = slope};
    int *target = trli_new(sim->ctx, (size_t)sim->nequations + 1, sizeof *target);
    trl_err err = TRL_OK;
    if (!target) return trli_no_memory(sim->ctx, NULL, "for %d equations", sim->nequations);
    TRL_TRY(trli_instance_fill(st.in));
    TRL_TRY(trli_instance_prepare(st.in));
    TRL_TRY(lower_slopes(sim, &st));
    TRL_TRY(stage_targets(sim, s, target));
    TRL_TRY(compile_updates(sim, &st, target));
    TRL_TRY(trli_instance_create(sim->model, sim->step, sim->stage_time[s + 1], s + 1, in[0], &in[s + 1]));
    for (int v = 0; v < sim->nequations; ++v) in[s + 1]->variable[v] = target[v];
    TRL_TRY(trli_instance_planes(in[s + 1], s + 1 == sim->integrator->stages));
done:
    trli_free(target);
    return err;
}

static trl_err compile_step(trl_simulation *sim)
{
    trli_instance *in[TRL_STAGES_MAX + 1] = {NULL};
    int stages = sim->integrator->stages;
    trli_ir_value *slope = trli_new(sim->ctx, (size_t)stages * (size_t)sim->nequations + 1, sizeof *slope);
    trl_err err = TRL_OK;
    if (!slope) return trli_no_memory(sim->ctx, NULL, "for %d equations", sim->nequations);
    TRL_TRY(trli_program_create(sim->model, TRLI_STEP_PROGRAM, &sim->step));
    sim->stage_time[0] = TRLI_SCALAR_STEP_TIME;
    for (int s = 1; s <= stages; ++s) sim->stage_time[s] = trli_model_add_scalar(sim->model, 0);
    TRL_TRY(instance_of_state(sim, sim->step, &in[0]));
    for (int s = 0; s < stages; ++s) TRL_TRY(compile_stage(sim, in, slope, s));
    for (int v = 0; v < sim->nequations; ++v) TRL_TRY(trli_program_add_root(sim->step, sim->equation[v].next));
done:
    for (int s = 0; s <= stages; ++s) trli_instance_destroy(&in[s]);
    trli_free(slope);
    return err;
}

trl_err trli_show_field(trl_simulation *sim, const trl_field_info *info, int field, int equation)
{
    if (!trli_make_room(sim->ctx, &sim->shown, sim->nshown, 1, &sim->shown_capacity, sizeof *sim->shown))
        return trli_no_memory(sim->ctx, NULL, "for %d output fields", sim->nshown + 1);
    sim->shown[sim->nshown] = (trli_shown){.info = *info, .field = field, .equation = equation, .kept = -1};
    sim->shown[sim->nshown++].info.location_word = trli_location_text(sim->model, (int)info->location);
    return TRL_OK;
}

/* Evaluate a value into a field of its own in a program. */
static trl_err observe_value(trl_simulation *sim, trli_program *program, const char *name, trli_ir_value value,
                             trl_location location, int *field)
{
    trl_err err = TRL_OK;
    *field = trli_model_add_field(sim->model, name, location);
    if (*field < 0) return sim->model->ir.err;
    sim->model->field[*field].persistent = true;
    TRL_TRY(trli_program_add_kernel(program, name, 1, field, &value, NULL));
    TRL_TRY(trli_program_add_root(program, *field));
done:
    return err;
}

static int find_equation(const trl_simulation *sim, const char *name)
{
    const trli_symbol *s = trli_symbol_find(sim->model, name);
    return s && s->kind == TRLI_SYMBOL_VARIABLE ? s->index : -1;
}

static bool is_in(const char *name, int n, const char *const *names)
{
    for (int i = 0; i < n; ++i)
        if (strcmp(names[i], name) == 0) return true;
    return false;
}

/* Show what a name stands for, evaluated by the instance's program. */
static trl_err show_name(trl_simulation *sim, trli_instance *in, const char *name, const trl_place *place,
                         trl_field_info info)
{
    const trl_text text = {name, *place, true};
    trl_formula *formula = NULL;
    trli_operand operand;
    trl_err err = TRL_OK;
    int equation = find_equation(sim, name);
    if (equation >= 0) {
        sim->shown[equation].info.output |= info.output;
        sim->shown[equation].info.kept |= info.kept;
        return TRL_OK;
    }
    TRL_TRY(trl_formula_parse(sim->ctx, &text, &formula));
    in->program->place = trl_text_place(&text, formula->root->begin, formula->root->end);
    TRL_TRY(trli_lower(in, formula, sim->problem->parameters, &operand));
    for (int c = 0; c < (operand.components ? operand.components : 1); ++c) {
        info.location = operand.location[c] == TRLI_ANYWHERE ? TRL_CELL : (trl_location)operand.location[c];
        info.name = operand.components ? trli_model_name(sim->model, "%s.%c", name, "xyz"[c]) : name;
        trli_ir_value value = trli_ir_place(&sim->model->ir, operand.value[c], info.location);
        int field;
        TRL_TRY(observe_value(sim, in->program, info.name, value, info.location, &field));
        TRL_TRY(trli_show_field(sim, &info, field, -1));
    }
done:
    trl_formula_destroy(&formula);
    return err;
}

static trl_err observe_equation(trl_simulation *sim, trli_instance *in, int v)
{
    trli_equation *eq = &sim->equation[v];
    trl_location location = sim->model->variable[v].location;
    trli_ir_value value = TRLI_NO_VALUE;
    trl_err err = TRL_OK;
    sim->observe->place = (trl_place){0};
    if (eq->mask) {
        TRL_TRY(trli_lower_at(in, eq->mask, eq->deck->names, location, &value));
        TRL_TRY(observe_value(sim, sim->observe, trli_model_name(sim->model, "%s:mask", eq->deck->name), value,
                              location, &eq->mask_field));
    }
    const trl_formula *exact = eq->direction ? sim->equation[eq->of].exact : eq->exact;
    if (exact) TRL_TRY(trli_lower_at(in, exact, eq->deck->names, location, &value));
    /* An exact solution written without the parameter says nothing about how it changes with it. */
    if (exact && eq->direction) TRL_TRY(trli_tangent(in, eq->direction, value, &value));
    if (exact && value >= 0) {
        const char *name = trli_model_name(sim->model, "%s:exact", eq->deck->name);
        TRL_TRY(observe_value(sim, sim->observe, name, value, location, &eq->exact_field));
        sim->shown[v].info.exact = sim->nshown;
        const trl_field_info info = {.name = name, .location = location, .exact = -1, .is_exact = true};
        TRL_TRY(trli_show_field(sim, &info, eq->exact_field, v));
    }
done:
    return err;
}

static trl_err check_number(const trl_simulation *sim, const trl_formula *f, const trli_operand *operand,
                            const char *what)
{
    if (operand->components <= 1 && !trli_ir_node(&sim->model->ir, operand->value[0])->varies) return TRL_OK;
    trl_place place = trl_text_place(&f->text, f->root->begin, f->root->end);
    return trl_fail(sim->ctx, TRL_ERR_INPUT, &place,
                    "%s is one number, and this %s: use integral, norm, domain_max, domain_min or probe", what,
                    operand->components > 1 ? "is a vector" : "varies over the domain");
}

static trl_err observe_series(trl_simulation *sim, trli_instance *in, int i)
{
    trli_operand operand;
    trl_err err = TRL_OK;
    const trl_formula *f = sim->series[i];
    sim->observe->place = trl_text_place(&f->text, f->root->begin, f->root->end);
    TRL_TRY(trli_lower(in, f, sim->problem->series[i].names, &operand));
    TRL_TRY(check_number(sim, f, &operand, "a value of a series"));
    TRL_TRY(trli_program_scalar(sim->observe, sim->problem->series[i].name, operand.value[0], &sim->series_scalar[i]));
    TRL_TRY(trli_program_add_scalar_root(sim->observe, sim->series_scalar[i]));
done:
    return err;
}

trl_err trli_begin_observing(trl_simulation *sim, const char *name, trli_program **program, trli_instance **in)
{
    trl_err err;
    TRL_TRY(trli_program_create(sim->model, name, program));
    TRL_TRY(instance_of_state(sim, *program, in));
    (*in)->rates = true;
    err = trli_instance_fill(*in);
done:
    return err;
}

/* Show a name that is kept: it has a program that runs after each step, and is not evaluated again when it is written.
 */
static trl_err show_kept(trl_simulation *sim, const char *name, const trl_place *place, bool output)
{
    trli_kept *kept = &sim->kept[sim->nkept];
    const int first = sim->nshown;
    const trl_field_info info = {.output = output, .exact = -1, .kept = true};
    trli_instance *in = NULL;
    trl_err err = TRL_OK;
    if (find_equation(sim, name) >= 0) return show_name(sim, NULL, name, place, info);
    TRL_TRY(trli_begin_observing(sim, trli_model_name(sim->model, "kept %s", name), &kept->program, &in));
    TRL_TRY(show_name(sim, in, name, place, info));
    for (int i = first; i < sim->nshown; ++i) sim->shown[i].kept = sim->nkept;
    kept->nlocked = sim->nshown - first;
    kept->output = output;
    ++sim->nkept;
done:
    trli_instance_destroy(&in);
    return err;
}

/* What is written, by an instance of the program `observe`, and what is kept. */
static trl_err show_names(trl_simulation *sim, trli_instance *in)
{
    const trl_problem *p = sim->problem;
    trl_err err = TRL_OK, first = TRL_OK;
    sim->kept = trli_new(sim->ctx, (size_t)p->nkept + 1, sizeof *sim->kept);
    if (!sim->kept) return trli_no_memory(sim->ctx, NULL, "for %d kept fields", p->nkept);
    for (int i = 0; i < p->noutputs; ++i) {
        const trl_field_info info = {.output = true, .exact = -1};
        err = is_in(p->output[i], p->nkept, p->keep) ? show_kept(sim, p->output[i], &p->output_place[i], true)
                                                     : show_name(sim, in, p->output[i], &p->output_place[i], info);
        if (first == TRL_OK) first = err;
    }
    for (int i = 0; i < p->nkept; ++i) {
        if (is_in(p->keep[i], p->noutputs, p->output)) continue;
        err = show_kept(sim, p->keep[i], &p->keep_place[i], false);
        if (first == TRL_OK) first = err;
    }
    return first;
}

static trl_err compile_observe(trl_simulation *sim)
{
    trli_instance *in = NULL;
    trl_err err = TRL_OK, first = TRL_OK, one;
    for (int v = 0; v < sim->nequations; ++v) {
        const trl_field_info info = {.name = sim->equation[v].deck->name,
                                     .location = sim->model->variable[v].location,
                                     .equation = true,
                                     .output = sim->problem->noutputs == 0,
                                     .exact = -1};
        TRL_TRY(trli_show_field(sim, &info, sim->equation[v].state, v));
    }
    TRL_TRY(trli_begin_observing(sim, "observe", &sim->observe, &in));
    first = show_names(sim, in);
    for (int v = 0; v < sim->nequations; ++v) /* a sensitivity is written with its equation */
        if (sim->equation[v].direction) sim->shown[v].info.output |= sim->shown[sim->equation[v].of].info.output;
    for (int v = 0; v < sim->nequations; ++v)
        if ((one = observe_equation(sim, in, v)) != TRL_OK && first == TRL_OK) first = one;
    for (int i = 0; i < sim->problem->nseries; ++i)
        if ((one = observe_series(sim, in, i)) != TRL_OK && first == TRL_OK) first = one;
    err = first;
done:
    trli_instance_destroy(&in);
    return err;
}

/* A program of its own: it computes what the condition needs, and no output. */
static trl_err compile_stop(trl_simulation *sim)
{
    const int n = sim->problem->nseries;
    trli_instance *in = NULL;
    trli_named_value *named = NULL;
    trli_operand operand;
    trl_err err = TRL_OK;
    if (!sim->stop) return TRL_OK;
    TRL_TRY(trli_begin_observing(sim, "stop", &sim->stopped, &in));
    named = trli_new(sim->ctx, (size_t)n + 1, sizeof *named);
    if (!named) TRL_TRY(trli_no_memory(sim->ctx, NULL, "for %d series", n));
    for (int i = 0; i < n; ++i) {
        TRL_TRY(trli_lower(in, sim->series[i], sim->problem->series[i].names, &operand));
        named[i] = (trli_named_value){sim->problem->series[i].name, operand.value[0]};
    }
    named[n] = (trli_named_value){"step", trli_ir_scalar(&sim->model->ir, TRLI_SCALAR_STEP)};
    TRL_TRY(trli_lower_named(in, sim->stop, sim->problem->parameters, n + 1, named, &operand));
    TRL_TRY(check_number(sim, sim->stop, &operand, "the condition of time.stop"));
    TRL_TRY(trli_program_scalar(sim->stopped, "stop", operand.value[0], &sim->stop_scalar));
    TRL_TRY(trli_program_add_scalar_root(sim->stopped, sim->stop_scalar));
done:
    trli_free(named);
    trli_instance_destroy(&in);
    return err;
}

/* Two time levels exchange their memory, so they have one shape. */
static void equalise_levels(trl_simulation *sim)
{
    for (int v = 0; v < sim->nequations; ++v) {
        trli_model_field *a = &sim->model->field[sim->equation[v].state],
                         *b = &sim->model->field[sim->equation[v].next];
        for (int i = 0; i < 3; ++i) {
            if (b->ghost_lo[i] > a->ghost_lo[i]) a->ghost_lo[i] = b->ghost_lo[i];
            if (b->ghost_hi[i] > a->ghost_hi[i]) a->ghost_hi[i] = b->ghost_hi[i];
            b->ghost_lo[i] = a->ghost_lo[i];
            b->ghost_hi[i] = a->ghost_hi[i];
        }
    }
}

trl_err trli_compile_programs(trl_simulation *sim)
{
    trl_err err = TRL_OK, first = TRL_OK;
    trl_err (*const part[])(trl_simulation *) = {compile_initial, compile_step, compile_observe};
    for (int v = 0; v < sim->nequations; ++v) TRL_TRY(add_state(sim, v));
    TRL_TRY(find_rotation(sim));
    for (size_t i = 0; i < sizeof part / sizeof *part; ++i) { /* go on after an error: the user hears of all of them */
        err = part[i](sim);
        if (first == TRL_OK) first = err;
    }
    TRL_TRY(first);
    TRL_TRY(compile_stop(sim)); /* errors of series are told by now */
    TRL_TRY(trli_receivers_compile(sim));
    TRL_TRY(trli_compile_limit(sim, sim->problem->time.cfl > 0));
    TRL_TRY(trli_passes_run(sim->model));
    TRL_TRY(trli_time_blocking_prepare(sim));
    equalise_levels(sim);
    TRL_TRY(trli_model_freeze(sim->model, sim->step, &sim->rotation));
    TRL_TRY(trli_frame_create(sim->model, &sim->frame));
done:
    return err;
}
