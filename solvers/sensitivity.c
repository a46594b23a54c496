/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Forward sensitivities: which equations depend on a parameter, and the equations that are added for their derivatives.
 */
#include <string.h>

#include "derivative_impl.h"
#include "memory_impl.h"
#include "parameters_impl.h"
#include "simulation_impl.h"
#include "symbols_impl.h"

/* The graph of mentions for one parameter. Its nodes are the variables, then the entries. */
typedef struct search {
    trl_simulation *sim;
    trli_instance *in; /* to lower parameters in */
    trli_derivative by_parameter;
    int nnodes, node; /* node: whose formulas are being read */
    const trl_text *text;
    const trl_scope *names;
    bool *depends, *reached;
    int nedges, capacity;
    int (*edge)[2]; /* from the node that mentions to the node that is mentioned */
} search;

static trl_err add_edge(search *s, int to)
{
    if (!trli_make_room(s->sim->ctx, &s->edge, s->nedges, 1, &s->capacity, sizeof *s->edge))
        return trli_no_memory(s->sim->ctx, NULL, "for %d dependencies", s->nedges + 1);
    s->edge[s->nedges][0] = s->node;
    s->edge[s->nedges++][1] = to;
    return TRL_OK;
}

static trl_err add_symbol_edge(search *s, const trli_symbol *symbol)
{
    int base = symbol->kind == TRLI_SYMBOL_VARIABLE ? 0 : s->sim->model->nvariables;
    return add_edge(s, base + symbol->index);
}

static trl_err visit_name(void *data, const char *name, const trl_ast *node)
{
    search *s = data;
    trli_model *model = s->sim->model;
    trli_lowering lw = {
        .instance = s->in, .model = model, .ir = &model->ir, .text = s->text, .dim = model->layout->grid.dim};
    trli_operand operand;
    trli_ir_value tangent;
    char component[272];
    bool found;
    trl_err err = TRL_OK;
    (void)node;
    TRL_TRY(trli_lower_parameter(&lw, name, s->names, &operand, &found));
    if (found) {
        TRL_TRY(trli_derivative_of(&s->by_parameter, operand.value[0], &tangent));
        s->depends[s->node] |= tangent != TRLI_NO_VALUE;
        return TRL_OK;
    }
    const trli_symbol *symbol = trli_symbol_find(model, name);
    if (symbol) return add_symbol_edge(s, symbol);
    for (int a = 0; a < model->layout->grid.dim; ++a) { /* a vector that a plugin entry computes by components */
        snprintf(component, sizeof component, "%s.%c", name, "xyz"[a]);
        symbol = trli_symbol_find(model, component);
        if (symbol) TRL_TRY(add_symbol_edge(s, symbol));
    }
done:
    return err;
}

static trl_err read_formula(search *s, const trl_formula *formula, const trl_scope *names)
{
    s->text = &formula->text;
    s->names = names;
    return trl_ast_visit_names(s->sim->ctx, &formula->text, formula->root, names, visit_name, s);
}

static trl_err read_value(search *s, const trl_value *value, const trl_scope *names)
{
    trl_err err = TRL_OK;
    for (int i = 0; i < value->count && err == TRL_OK; ++i) {
        trl_formula *f;
        err = trli_formula_of(s->sim, &value->text[i], &f);
        if (err == TRL_OK) err = read_formula(s, f, names);
        trl_formula_destroy(&f);
    }
    return err;
}

static trl_err read_boundary(search *s, const trl_bc_side sides[6], const trl_scope *names)
{
    const trli_model *model = s->sim->model;
    trl_err err = TRL_OK;
    for (int side = 0; side < 6; ++side)
        for (int i = 0; i < sides[side].npieces; ++i) {
            const trl_bc_piece *p = &sides[side].piece[i];
            TRL_TRY(read_value(s, &p->value, names));
            TRL_TRY(read_value(s, &p->b, names));
            TRL_TRY(read_value(s, &p->c, names));
            for (int e = 0; p->expression && e < model->front->nentries; ++e)
                if (strcmp(model->front->entry[e].deck->name, p->expression) == 0)
                    TRL_TRY(add_edge(s, model->nvariables + e));
        }
done:
    return err;
}

static trl_err read_all(search *s)
{
    const trli_model *model = s->sim->model;
    trl_err err = TRL_OK;
    for (int v = 0; v < model->nvariables; ++v) {
        const trli_equation *eq = &s->sim->equation[v];
        s->node = v;
        TRL_TRY(read_formula(s, eq->initial, eq->deck->names));
        TRL_TRY(read_formula(s, eq->ddt, eq->deck->names));
        TRL_TRY(read_boundary(s, eq->deck->boundary, eq->deck->names));
    }
    for (int e = 0; e < model->front->nentries; ++e) {
        const trli_entry *entry = &model->front->entry[e];
        s->node = model->nvariables + e;
        for (int i = 0; i < entry->nformulas; ++i) TRL_TRY(read_formula(s, entry->formula[i], entry->deck->names));
        for (int i = 0; i < entry->nrequired; ++i)
            TRL_TRY(add_symbol_edge(s, &model->front->symbol[entry->required[i].symbol]));
        TRL_TRY(read_boundary(s, entry->deck->boundary, entry->deck->names));
    }
done:
    return err;
}

/* What mentions something that depends on the parameter depends on it; what is mentioned by something reached is
 * reached. */
static void spread(search *s)
{
    for (bool again = true; again;) {
        again = false;
        for (int i = 0; i < s->nedges; ++i) {
            int from = s->edge[i][0], to = s->edge[i][1];
            again |= (s->depends[to] && !s->depends[from]) || (s->reached[from] && !s->reached[to]);
            s->depends[from] |= s->depends[to];
            s->reached[to] |= s->reached[from];
        }
    }
}

static trl_err find_equation(trl_simulation *sim, const trl_sensitivity_entry *wanted, int *equation)
{
    const trl_problem *p = sim->problem;
    const char *near = NULL, **known = trli_new(sim->ctx, (size_t)p->nequations + 1, sizeof *known);
    *equation = -1;
    for (int v = 0; known && v < p->nequations; ++v) {
        known[v] = p->equation[v].name;
        if (strcmp(known[v], wanted->equation) == 0) *equation = v;
    }
    if (known) near = trl_name_nearest(wanted->equation, known, p->nequations);
    trli_free(known);
    if (*equation >= 0) return TRL_OK;
    return trl_fail(sim->ctx, TRL_ERR_INPUT, &wanted->equation_place, "'%s' is no equation%s%s%s", wanted->equation,
                    near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

static trl_err find_direction(trl_simulation *sim, const trl_sensitivity_entry *wanted, int *direction)
{
    const trl_scope *parameters = sim->problem->parameters;
    const trli_model *model = sim->model;
    double value;
    for (*direction = 1; *direction <= model->ndirections; ++*direction)
        if (strcmp(model->direction[*direction - 1].name, wanted->parameter) == 0) return TRL_OK;
    if (trl_scope_find(parameters, wanted->parameter, &value))
        return trli_direction_add(sim->model, wanted->parameter, direction);
    const char *near = parameters ? trl_name_nearest(wanted->parameter, parameters->name, parameters->n) : NULL;
    return trl_fail(sim->ctx, TRL_ERR_INPUT, &wanted->parameter_place, "'%s' is no parameter of the deck%s%s%s",
                    wanted->parameter, near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

static trl_err claim_name(trl_simulation *sim, const trl_place *place, const trl_equation_entry *of,
                          const char *parameter, const char *name)
{
    const trli_symbol *taken = trli_symbol_find(sim->model, name);
    double value;
    if (!trl_name_valid(name))
        return trl_fail(sim->ctx, TRL_ERR_INPUT, place, "the sensitivity of '%s' to '%s' has too long a name", of->name,
                        parameter);
    if (!taken && !trl_scope_find(sim->problem->parameters, name, &value)) return TRL_OK;
    return trl_fail(sim->ctx, TRL_ERR_INPUT, place,
                    "the sensitivity of '%s' to '%s' is called '%s', and that name is taken by %s: rename one",
                    of->name, parameter, name,
                    !taken                                ? "a parameter"
                    : taken->kind == TRLI_SYMBOL_VARIABLE ? "an equation"
                                                          : "an expression");
}

/* Append the equation of one derivative: all of it but name and place is that of the equation. */
static trl_err add_equation(trl_simulation *sim, int of, int direction, const trl_place *place)
{
    trli_model *model = sim->model;
    const char *parameter = model->direction[direction - 1].name;
    const trl_equation_entry *primal = sim->equation[of].deck;
    const char *name = trli_model_name(model, "%s_%s", primal->name, parameter);
    int n = sim->nequations - sim->problem->nequations;
    trl_err err = TRL_OK;
    if (sim->equation[of].is_rate || (sim->declared && sim->declared->equation[of].ddt2.count > 0))
        return trl_fail(
            sim->ctx, TRL_ERR_INPUT, place,
            "the sensitivity of '%s' to '%s' is one of an equation with ddt2, and there are none yet: write "
            "it as two equations with ddt",
            primal->name, parameter);
    TRL_TRY(claim_name(sim, place, primal, parameter, name));
    trli_equation *equations = trli_resize(sim->ctx, sim->equation, (size_t)sim->nequations + 1, sizeof *equations);
    if (equations) sim->equation = equations;
    trl_equation_entry **entries = trli_resize(sim->ctx, sim->sensitivity, (size_t)n + 1, sizeof *entries);
    if (entries) sim->sensitivity = entries;
    trl_equation_entry *entry = trli_new(sim->ctx, 1, sizeof *entry);
    if (!equations || !entries || !entry) {
        trli_free(entry);
        return trli_no_memory(sim->ctx, NULL, "for %d equations", sim->nequations + 1);
    }
    *entry = *primal;
    entry->name = name;
    entry->place = *place;
    entry->initial = entry->ddt = (trl_value){0};
    entry->exact = (trl_text){0};
    entries[n] = entry;
    trli_equation *eq = &equations[sim->nequations++];
    *eq = (trli_equation){.deck = entry, .mask_field = -1, .exact_field = -1, .exact_shown = -1};
    eq->direction = direction;
    eq->of = of;
    TRL_TRY(trli_formula_of(sim, &entry->mask, &eq->mask));
    trli_variable variable = model->variable[of];
    variable.name = name;
    variable.place = *place;
    variable.initial = NULL;
    variable.ddt = NULL;
    variable.mask = eq->mask;
    variable.direction = direction;
    variable.of = of;
    TRL_TRY(trli_variable_add(model, &variable));
done:
    return err;
}

/* Mark, for one direction, the equations whose derivatives are needed: wanted[v] is the place that asks, or NULL. */
static trl_err find_needed(trl_simulation *sim, int direction, const trl_place **wanted)
{
    trli_model *model = sim->model;
    const char *parameter = model->direction[direction - 1].name;
    search s = {.sim = sim, .nnodes = model->nvariables + model->front->nentries, .by_parameter = {.ir = &model->ir}};
    trli_ir_value scalar = trli_ir_scalar(&model->ir, model->direction[direction - 1].scalar);
    trl_err err = TRL_OK;
    s.depends = trli_new(sim->ctx, (size_t)s.nnodes + 1, sizeof *s.depends);
    s.reached = trli_new(sim->ctx, (size_t)s.nnodes + 1, sizeof *s.reached);
    if (!s.depends || !s.reached) err = trli_no_memory(sim->ctx, NULL, "for %d names", s.nnodes);
    TRL_TRY(err);
    TRL_TRY(trli_instance_create(model, NULL, TRLI_SCALAR_STEP_TIME, 0, NULL, &s.in));
    TRL_TRY(trli_derivative_set(&s.by_parameter, scalar, trli_ir_constant(&model->ir, 1)));
    TRL_TRY(read_all(&s));
    for (int v = 0; v < model->nvariables; ++v) s.reached[v] = wanted[v] != NULL;
    spread(&s);
    const trl_place *place = NULL;
    for (int v = 0; v < model->nvariables; ++v) {
        if (wanted[v] && !s.depends[v])
            trl_warn(sim->ctx, wanted[v], "equation '%s' does not depend on '%s': its sensitivity stays zero",
                     model->variable[v].name, parameter);
        if (wanted[v] && !place) place = wanted[v];
    }
    for (int v = 0; v < model->nvariables; ++v)
        if (!wanted[v] && s.reached[v] && s.depends[v]) wanted[v] = place;
done:
    trli_instance_destroy(&s.in);
    trli_derivative_free(&s.by_parameter);
    trli_free(s.depends);
    trli_free(s.reached);
    trli_free(s.edge);
    return err;
}

trl_err trli_add_sensitivities(trl_simulation *sim)
{
    const trl_problem *p = sim->problem;
    int n = p->nequations, directions = 0;
    const trl_place **wanted = trli_new(sim->ctx, ((size_t)n + 1) * ((size_t)p->nsensitivities + 1), sizeof *wanted);
    trl_err err = TRL_OK, first = TRL_OK;
    if (!wanted) return trli_no_memory(sim->ctx, NULL, "for %d equations", n);
    for (int v = 0; v < n && p->nsensitivities > 0; ++v)
        if (sim->equation[v].solve)
            TRL_TRY(trl_fail(sim->ctx, TRL_ERR_INPUT, &p->sensitivity[0].equation_place,
                             "there are no sensitivities yet of problems in which an equation is solved, as '%s' is",
                             sim->equation[v].deck->name));
    for (int i = 0; i < p->nsensitivities; ++i) {
        const trl_sensitivity_entry *entry = &p->sensitivity[i];
        int equation, direction;
        trl_err one = find_equation(sim, entry, &equation);
        if (one == TRL_OK) one = find_direction(sim, entry, &direction);
        if (first == TRL_OK) first = one;
        if (one == TRL_OK) wanted[(direction - 1) * n + equation] = &entry->parameter_place;
    }
    TRL_TRY(first);
    directions = sim->model->ndirections;
    for (int d = 1; d <= directions; ++d) TRL_TRY(find_needed(sim, d, &wanted[(ptrdiff_t)(d - 1) * n]));
    for (int d = 1; d <= directions; ++d)
        for (int v = 0; v < n; ++v)
            if (wanted[(d - 1) * n + v]) TRL_TRY(add_equation(sim, v, d, wanted[(d - 1) * n + v]));
done:
    trli_free(wanted);
    return err;
}
