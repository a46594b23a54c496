/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* From a problem to programs: initial values, a step, and what is observed. */
#include <string.h>

#include "columns_impl.h"
#include "compile_impl.h"
#include "cost_impl.h"
#include "implicit_impl.h"
#include "lasting_impl.h"
#include "late_impl.h"
#include "lifecycle_impl.h"
#include "limit_impl.h"
#include "lower_impl.h"
#include "memory_impl.h"
#include "multistep_impl.h"
#include "pipeline_impl.h"
#include "sides_impl.h"
#include "slot_plan_impl.h"
#include "solving_impl.h"
#include "symbols_impl.h"
#include "tangent_impl.h"
#include "time_blocking_impl.h"

void trli_set_conditions(trl_simulation *sim, int v, int field, int of)
{
    const trl_equation_entry *deck = sim->equation[v].deck;
    trli_model_field *f = &sim->model->field[field];
    f->exchanged = true;
    f->boundary = (trli_boundary_source){deck->boundary, deck->names, deck->name, deck->place};
    if (sim->equation[v].is_rate) {
        f->direction = sim->time_direction;
        f->primal = of;
    }
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
    trli_set_conditions(sim, v, eq->state, sim->equation[eq->of].state);
    trli_set_conditions(sim, v, eq->next, sim->equation[eq->of].next);
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

trl_err trli_instance_of_state(trl_simulation *sim, trli_program *program, trli_instance **instance)
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
    TRL_TRY(trli_instance_of_state(sim, sim->initial, &values));
    TRL_TRY(trli_instance_of_state(sim, sim->initial, &state));
    TRL_TRY(trli_instance_of_state(sim, sim->initial, &before));
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

/* Whether the state of an equation is of an earlier time: users do not see it under its name. */
static bool is_behind(const trl_simulation *sim, int v)
{
    return sim->integrator->leapfrog && sim->equation[v].is_rate;
}

/* The rate of that name whose state is of an earlier time, or -1. */
static int behind_of(const trl_simulation *sim, const char *name)
{
    for (int v = 0; v < sim->nequations; ++v)
        if (is_behind(sim, v) && strcmp(sim->equation[v].deck->name, name) == 0) return v;
    return -1;
}

/* The equation whose state a name stands for, or -1. */
static int find_equation(const trl_simulation *sim, const char *name)
{
    const trli_symbol *s = trli_symbol_find(sim->model, name);
    return s && s->kind == TRLI_SYMBOL_VARIABLE && !is_behind(sim, s->index) ? s->index : -1;
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
        TRL_TRY(trli_show_field(sim, &info, field, behind_of(sim, name)));
    }
done:
    trl_formula_destroy(&formula);
    return err;
}

/* The shown field that has the values of an equation at the present time, or -1. */
static int find_shown(const trl_simulation *sim, int v)
{
    if (!is_behind(sim, v)) return v;
    for (int i = 0; i < sim->nshown; ++i)
        if (sim->shown[i].equation == v && i != v) return i;
    return -1;
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
    const int direction = eq->is_rate ? sim->time_direction : eq->direction;
    const trl_formula *exact = direction ? sim->equation[eq->of].exact : eq->exact;
    if (exact) TRL_TRY(trli_lower_at(in, exact, eq->deck->names, location, &value));
    /* An exact solution written without the parameter says nothing about how it changes with it. */
    if (exact && direction) TRL_TRY(trli_tangent(in, direction, value, &value));
    if (exact && eq->is_rate && value < 0) value = trli_ir_constant(&sim->model->ir, 0);
    if (exact && value >= 0) {
        const char *name = trli_model_name(sim->model, "%s:exact", eq->deck->name);
        TRL_TRY(observe_value(sim, sim->observe, name, value, location, &eq->exact_field));
        const int shown = find_shown(sim, v);
        if (shown >= 0) sim->shown[shown].info.exact = sim->nshown;
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
    TRL_TRY(trli_instance_of_present(sim, *program, in));
    (*in)->rates = true;
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
        const char *name = sim->equation[v].deck->name;
        if (is_behind(sim, v)) name = trli_model_name(sim->model, "%s" TRL_HALF_STEP_BEFORE, name);
        const trl_field_info info = {.name = name,
                                     .location = sim->model->variable[v].location,
                                     .equation = true,
                                     .output = sim->problem->noutputs == 0 && !sim->problem->writes_nothing &&
                                               !sim->equation[v].is_rate,
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

bool trli_equation_sets_points(const trl_simulation *sim, int v)
{
    const trl_bc_side *boundary = sim->equation[v].deck->boundary;
    bool any = false;
    for (int s = 0; s < 2 * sim->layout->grid.dim; ++s)
        any |= sim->model->field[sim->equation[v].state].fixed_planes[s] ||
               trli_sides_set_parts(sim->model, &boundary[s], sim->model->variable[v].location, s);
    return any;
}

void trli_equalise(trli_model *model, int a, int b)
{
    trli_model_field *one = &model->field[a], *other = &model->field[b];
    for (int i = 0; i < 3; ++i) {
        if (other->ghost_lo[i] > one->ghost_lo[i]) one->ghost_lo[i] = other->ghost_lo[i];
        if (other->ghost_hi[i] > one->ghost_hi[i]) one->ghost_hi[i] = other->ghost_hi[i];
        other->ghost_lo[i] = one->ghost_lo[i];
        other->ghost_hi[i] = one->ghost_hi[i];
    }
}

static int64_t count_ghosts(const trli_model *model)
{
    int64_t n = 0;
    for (int f = 0; f < model->nfields; ++f)
        for (int a = 0; a < 3; ++a) n += model->field[f].ghost_lo[a] + model->field[f].ghost_hi[a];
    return n;
}

/* Fields that exchange their memory, in pairs, get one shape, until all that are joined by pairs have it. */
static void equalise_all(trl_simulation *sim)
{
    int64_t before;
    do {
        before = count_ghosts(sim->model);
        for (int v = 0; v < sim->nequations; ++v)
            trli_equalise(sim->model, sim->equation[v].state, sim->equation[v].next);
        trli_first_rates_equalise(sim);
        trli_dense_equalise(sim);
        trli_solving_equalise(sim);
        trli_implicit_equalise(sim);
        trli_multistep_equalise(sim);
    } while (count_ghosts(sim->model) != before);
}

/* Where dt follows from cfl, what bounds it is found before each step; where that changes what is solved for, it is
 * solved for again before the step. */
static void share_ghosts(const trl_simulation *sim)
{
    const trl_time_entry *p = &sim->problem->time;
    if (p->cfl <= 0 || p->adaptive || sim->bound->constant || sim->multistep || trli_solving_reads_steps(sim)) return;
    sim->model->joint = true;
    trli_program_follow(sim->part[0], sim->limit);
}

trl_err trli_compile_programs(trl_simulation *sim)
{
    trli_instance *lasting = NULL;
    trl_err err = TRL_OK, first = TRL_OK;
    trl_err (*const part[])(trl_simulation *) = {compile_initial,          trli_solving_prepare, trli_compile_step,
                                                 trli_first_rates_compile, trli_dense_compile,   compile_observe};
    TRL_TRY(trli_leapfrog_check(sim));
    TRL_TRY(trli_lasting_begin(sim->model, &lasting));
    for (int v = 0; v < sim->nequations; ++v) TRL_TRY(add_state(sim, v));
    TRL_TRY(find_rotation(sim));
    if (sim->integrator->leapfrog) {
        sim->kick_scalar = trli_model_add_scalar(sim->model, 0);
        sim->half_scalar = trli_model_add_scalar(sim->model, 0);
    }
    for (size_t i = 0; i < sizeof part / sizeof *part; ++i) { /* go on after an error: the user hears of all of them */
        err = part[i](sim);
        if (first == TRL_OK) first = err;
    }
    TRL_TRY(first);
    TRL_TRY(compile_stop(sim)); /* errors of series are told by now */
    TRL_TRY(trli_receivers_compile(sim));
    TRL_TRY(trli_columns_compile(sim));
    TRL_TRY(trli_compile_limit(sim, sim->problem->time.cfl > 0));
    TRL_TRY(trli_late_dt_prepare(sim));
    TRL_TRY(trli_device_dt_prepare(sim));
    TRL_TRY(trli_passes_run(sim->model));
    share_ghosts(sim);
    TRL_TRY(trli_time_blocking_prepare(sim));
    TRL_TRY(trli_passes_run_lasting(sim->model));
    equalise_all(sim);
    TRL_TRY(trli_model_freeze(sim->model, sim->step, &sim->rotation));
    TRL_TRY(trli_memory_agree(sim->ctx, (size_t)sim->model->slots->bytes));
    TRL_TRY(trli_frame_create(sim->model, &sim->frame));
    trli_solving_begin(sim);
    trli_implicit_begin(sim);
    TRL_TRY(trli_multistep_begin(sim));
done:
    trli_lasting_end(sim->model, &lasting);
    return err;
}
