/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Directions of differentiation in a model: parameters that stay symbolic, and the derivatives of what instances hold. */
#include <stdlib.h>
#include <string.h>

#include "derivative_impl.h"
#include "instance_impl.h"
#include "lower_impl.h"

typedef struct trli_defined {
    const trl_definition *definition;
    trli_value value;
} trli_defined;

typedef struct trli_tangent {
    trli_derivative d;
    trli_instance *in;
    int direction;
} trli_tangent_of;

/* ---- parameters ---- */

static const trl_scope *find_level(const trl_scope *names, const char *name, int *i)
{
    for (; names; names = names->outer)
        if ((*i = trl_scope_position(names, name)) >= 0) return names;
    return NULL;
}

trl_err trli_direction_add(trli_model *model, const char *name, int *direction)
{
    double value;
    trli_direction *longer = realloc(model->direction, ((size_t)model->ndirections + 1) * sizeof *longer);
    if (!longer)
        return trl_fail(model->ctx, TRL_ERR_MEMORY, NULL, "no memory for %d directions", model->ndirections + 1);
    model->direction = longer;
    bool parameter = trl_scope_find(model->parameters, name, &value);
    longer[model->ndirections++] = (trli_direction){name, parameter ? trli_model_add_scalar(model, value) : -1};
    *direction = model->ndirections;
    return model->ir.err;
}

int trli_tangent_variable(const trli_model *model, int direction, int variable)
{
    for (int v = 0; v < model->nvariables; ++v)
        if (model->variable[v].direction == direction && model->variable[v].of == variable) return v;
    return -1;
}

static trl_err remember_definition(trli_model *model, const trl_definition *definition, trli_value value)
{
    if (model->ndefined == model->defined_capacity) {
        int more = model->defined_capacity ? 2 * model->defined_capacity : 16;
        trli_defined *longer = realloc(model->defined, (size_t)more * sizeof *longer);
        if (!longer) return trl_fail(model->ctx, TRL_ERR_MEMORY, NULL, "no memory for %d parameters", more);
        model->defined = longer;
        model->defined_capacity = more;
    }
    model->defined[model->ndefined++] = (trli_defined){definition, value};
    return TRL_OK;
}

static bool find_definition(const trli_model *model, const trl_definition *definition, trli_value *value)
{
    for (int k = 0; k < model->ndefined; ++k)
        if (model->defined[k].definition == definition) {
            *value = model->defined[k].value;
            return true;
        }
    return false;
}

/* Parameters whose formulas are to be lowered, innermost last: each after those that it needs, so that nothing recurses. */
typedef struct definitions {
    trli_lowering *lw;
    const trl_scope *names; /* of the formula being looked through */
    int n, capacity;
    struct wanted {
        const trl_scope *level;
        int i;
    } * wanted;
} definitions;

static trl_err want(definitions *d, const trl_scope *level, int i)
{
    trli_value value;
    if (!level->definition || find_definition(d->lw->model, &level->definition[i], &value)) return TRL_OK;
    if (d->n == d->capacity) {
        int more = d->capacity ? 2 * d->capacity : 16;
        struct wanted *longer = realloc(d->wanted, (size_t)more * sizeof *longer);
        if (!longer) return trl_fail(d->lw->model->ctx, TRL_ERR_MEMORY, NULL, "no memory for %d parameters", more);
        d->wanted = longer;
        d->capacity = more;
    }
    d->wanted[d->n++] = (struct wanted){level, i};
    return TRL_OK;
}

static trl_err want_name(void *data, const char *name, const trl_ast *node)
{
    definitions *d = data;
    int i;
    const trl_scope *level = find_level(d->names, name, &i);
    (void)node;
    return level ? want(d, level, i) : TRL_OK;
}

/* Lower the parameter wanted last: its number, unless it depends on a direction's. If it needs others first, they are wanted now. */
static trl_err define_last(definitions *d)
{
    const struct wanted last = d->wanted[d->n - 1];
    const trl_definition *definition = &last.level->definition[last.i];
    trli_model *model = d->lw->model;
    trl_scope names = {.outer = last.level};
    trl_formula *formula = NULL;
    trli_operand operand;
    const int before = d->n;
    trl_err err = TRL_OK;
    if (find_definition(model, definition, &operand.value[0])) {
        --d->n;
        return TRL_OK;
    }
    if (definition->indices) {
        names = *definition->indices;
        names.outer = last.level;
    }
    d->names = &names;
    TRL_TRY(trl_formula_parse(model->ctx, &definition->text, &formula));
    TRL_TRY(trl_ast_visit_names(model->ctx, &formula->text, formula->root, &names, want_name, d));
    if (d->n > before) goto done;
    TRL_TRY(trli_lower(d->lw->instance, formula, &names, &operand));
    trli_value value = operand.value[0];
    if (trli_ir_node(d->lw->ir, value)->op == TRLI_OP_CONSTANT)
        value = trli_ir_constant(d->lw->ir, last.level->value[last.i]);
    TRL_TRY(remember_definition(model, definition, value));
    --d->n;
done:
    trl_formula_destroy(&formula);
    return err;
}

static trl_err lower_definition(trli_lowering *lw, const trl_scope *level, int i, trli_value *value)
{
    definitions d = {.lw = lw};
    trl_err err = want(&d, level, i);
    while (err == TRL_OK && d.n > 0) err = define_last(&d);
    free(d.wanted);
    if (err == TRL_OK) find_definition(lw->model, &level->definition[i], value);
    return err;
}

trl_err trli_lower_parameter(trli_lowering *lw, const char *name, const trl_scope *names, trli_operand *operand,
                             bool *found)
{
    const trli_model *model = lw->model;
    int i;
    const trl_scope *level = find_level(names, name, &i);
    trl_err err = TRL_OK;
    *found = level != NULL;
    if (!level) return TRL_OK;
    trli_value value = trli_ir_constant(lw->ir, level->value[i]);
    if (model->ndirections && level->definition) TRL_TRY(lower_definition(lw, level, i, &value));
    for (int d = 0; d < model->ndirections && level == model->parameters; ++d)
        if (model->direction[d].scalar >= 0 && strcmp(model->direction[d].name, name) == 0)
            value = trli_ir_scalar(lw->ir, model->direction[d].scalar);
    *operand = trli_operand_scalar(TRLI_ANYWHERE, value);
done:
    return err;
}

trl_err trli_lower_number(trli_lowering *lw, const trl_ast *node, const trl_scope *names, double *number)
{
    trli_operand operand;
    trl_err err = TRL_OK;
    TRL_TRY(trl_ast_number(lw->model->ctx, lw->text, node, names, number));
    if (lw->model->ndirections == 0) return TRL_OK;
    TRL_TRY(trli_lower_node(lw, node, names, &operand));
    if (trli_ir_node(lw->ir, operand.value[0])->op != TRLI_OP_CONSTANT)
        err = trli_lower_fail(lw, node,
                              "this depends on a parameter of `sensitivity`, and it is fixed when the formula is read: "
                              "there is no derivative by it");
done:
    return err;
}

/* ---- leaves ---- */

static const char *parameter_of(const trli_tangent_of *t)
{
    return t->in->model->direction[t->direction - 1].name;
}

static trl_err plugin_fails(const trli_tangent_of *t, int entry)
{
    const trl_expression_entry *deck = t->in->model->entry[entry].deck;
    return trl_fail(t->in->model->ctx, TRL_ERR_INPUT, &deck->place,
                    "'%s' depends on '%s', and what type '%s' computes has no derivative: write it as a formula, or "
                    "take the sensitivity out",
                    deck->name, parameter_of(t), deck->type->name);
}

static trl_err reduce(const trli_tangent_of *t, const trli_step *like, trli_value value, trli_reduce_kind kind,
                      trli_value *result)
{
    int scalar;
    trl_err err = trli_program_reduce(t->in->program, like->label, value, like->reduce.location, kind,
                                      like->reduce.weighted, like->reduce.point, &scalar);
    if (err == TRL_OK) *result = trli_ir_scalar(t->d.ir, scalar);
    return err;
}

/* Sums and probes are linear. The largest value changes as the value does where it is the largest, on average over such points. */
static trl_err scalar_leaf(trli_tangent_of *t, trli_value v, const trli_step *producer)
{
    trli_ir *ir = t->d.ir;
    trl_err err = TRL_OK;
    trli_value inner = TRLI_NO_VALUE, points;
    if (!producer || producer->kind == TRLI_STEP_STABLE_DT) return trli_derivative_set(&t->d, v, TRLI_NO_VALUE);
    const trli_step s = *producer; /* the program's steps may move */
    const trli_value value = s.value[0];
    TRL_TRY(trli_derivative_need(&t->d, value, &inner));
    if (inner == TRLI_TANGENT_UNKNOWN) return TRL_OK;
    if (inner >= 0 && s.kind == TRLI_STEP_REDUCE) {
        bool linear = s.reduce.kind == TRLI_REDUCE_SUM || s.reduce.kind == TRLI_REDUCE_POINT;
        trli_value attained = trli_ir_binary(ir, TRLI_OP_EQ, value, v);
        if (!linear) inner = trli_ir_select(ir, attained, inner, trli_ir_constant(ir, 0));
        TRL_TRY(reduce(t, &s, inner, linear ? s.reduce.kind : TRLI_REDUCE_SUM, &inner));
        if (!linear) {
            TRL_TRY(reduce(t, &s, attained, TRLI_REDUCE_SUM, &points));
            inner = trli_ir_binary(ir, TRLI_OP_DIV, inner, points);
        }
    }
    TRL_TRY(trli_derivative_set(&t->d, v, inner));
done:
    return err;
}

/* The tangent of a field with boundary values of its own is one, too. */
static trl_err bounded_tangent(trli_tangent_of *t, int field, trli_value inner, trli_value *tangent)
{
    trli_model *model = t->in->model;
    trli_side lowered[6] = {{0}};
    trli_instance *sides;
    trl_err err = TRL_OK;
    const trli_boundary_source source = model->field[field].boundary;
    const char *name = trli_model_name(model, "%s_%s", model->field[field].name, parameter_of(t));
    trli_value value = inner < 0 ? trli_ir_constant(t->d.ir, 0) : inner;
    int stored = trli_model_add_field(model, name, model->field[field].location);
    if (stored < 0) return model->ir.err;
    model->field[stored].exchanged = true;
    model->field[stored].boundary = source;
    model->field[stored].direction = t->direction;
    model->field[stored].primal = field;
    TRL_TRY(trli_instance_sides(t->in, &sides));
    TRL_TRY(trli_boundary_lower(sides, stored, lowered));
    *tangent = TRLI_NO_VALUE;
    if (inner < 0 && trli_boundary_is_zero(lowered)) goto done;
    TRL_TRY(trli_program_add_kernel(t->in->program, name, 1, &stored, &value, NULL));
    TRL_TRY(trli_instance_fill_field(t->in, stored));
    *tangent = trli_ir_field(t->d.ir, stored);
done:
    for (int s = 0; s < 6; ++s) free(lowered[s].piece);
    return err;
}

static trl_err stored_leaf(trli_tangent_of *t, trli_value v, trli_value value)
{
    trli_model *model = t->in->model;
    int field = t->d.ir->node[v].index, stored;
    trli_value inner = TRLI_NO_VALUE;
    trl_err err = TRL_OK;
    TRL_TRY(trli_derivative_need(&t->d, value, &inner));
    if (inner == TRLI_TANGENT_UNKNOWN) return TRL_OK;
    if (model->field[field].boundary.side) {
        TRL_TRY(bounded_tangent(t, field, inner, &inner));
    } else if (inner >= 0 && !t->in->inline_only) {
        const trli_node *n = trli_ir_node(t->d.ir, inner);
        if (n->varies && n->op != TRLI_OP_FIELD) {
            const char *name = trli_model_name(model, "%s_%s", model->field[field].name, parameter_of(t));
            TRL_TRY(trli_program_store(t->in->program, name, "it is the derivative of a stored field", inner,
                                       model->field[field].location, NULL, &stored));
            inner = trli_ir_field(t->d.ir, stored);
        }
    }
    TRL_TRY(trli_derivative_set(&t->d, v, inner));
done:
    return err;
}

/* What a plugin computes changes with its inputs and boundary values in a way only it knows. */
static trl_err plugin_leaf(trli_tangent_of *t, trli_value v, const trli_step *producer)
{
    const int entry = producer->plugin.entry, ninputs = producer->plugin.ninputs, *input = producer->plugin.input;
    const trli_field *field = &t->in->model->field[t->d.ir->node[v].index];
    bool ready = true, zero = true;
    trl_err err = TRL_OK;
    for (int i = 0; i < ninputs; ++i) {
        trli_value inner = TRLI_NO_VALUE;
        TRL_TRY(trli_derivative_need(&t->d, trli_ir_field(t->d.ir, input[i]), &inner));
        ready &= inner != TRLI_TANGENT_UNKNOWN;
        zero &= inner == TRLI_NO_VALUE;
    }
    if (!ready) return TRL_OK;
    if (!zero) return plugin_fails(t, entry);
    trli_value tangent = TRLI_NO_VALUE;
    if (field->boundary.side) TRL_TRY(bounded_tangent(t, t->d.ir->node[v].index, TRLI_NO_VALUE, &tangent));
    TRL_TRY(trli_derivative_set(&t->d, v, tangent));
done:
    return err;
}

/* An expression evaluated once a step belongs to the instance at the start of the step. */
static bool is_of_old(const trli_instance *in, trli_value v)
{
    const trli_model *model = in->model;
    for (int e = 0; in->old && e < model->nentries; ++e) {
        const trli_operand *operand = &in->old->formula[e].operand;
        if (!model->entry[e].has_boundary || model->entry[e].deck->evaluate != TRL_EVALUATE_STEP) continue;
        for (int c = 0;
             in->old->formula[e].state == TRLI_MEMO_DONE && c < (operand->components ? operand->components : 1); ++c)
            if (operand->value[c] == v) return true;
    }
    return false;
}

static trl_err leaf(trli_derivative *d, trli_value v)
{
    trli_tangent_of *t = d->data;
    const trli_node n = d->ir->node[v];
    const trli_model *model = t->in->model;
    trli_value tangent;
    trl_err err = TRL_OK;
    int which;
    for (int i = 0; n.op == TRLI_OP_FIELD && i < model->nvariables; ++i)
        if (model->variable[i].direction && t->in->variable[i] == n.index)
            return trl_fail(
                model->ctx, TRL_ERR_INPUT, &model->variable[i].place,
                "the derivative by '%s' of something that uses '%s' would be a second derivative, and there "
                "are none yet",
                parameter_of(t), model->variable[i].name);
    if (is_of_old(t->in, v)) {
        TRL_TRY(trli_tangent((trli_instance *)t->in->old, t->direction, v, &tangent));
        return trli_derivative_set(d, v, tangent);
    }
    const trli_step *producer = trli_program_producer(t->in->program, &n, &which);
    if (n.op == TRLI_OP_SCALAR) return scalar_leaf(t, v, producer);
    if (!producer)
        return trl_fail(model->ctx, TRL_ERR_BUG, NULL, "nothing computes field '%s'", model->field[n.index].name);
    return producer->kind == TRLI_STEP_PLUGIN ? plugin_leaf(t, v, producer) : stored_leaf(t, v, producer->value[which]);
done:
    return err;
}

/* ---- instances ---- */

/* The tangents of the variables' values in an instance. */
static trl_err seed(trli_tangent_of *t, const trli_instance *in)
{
    const trli_model *model = t->in->model;
    trl_err err = TRL_OK;
    for (int v = 0; v < model->nvariables; ++v)
        if (!model->variable[v].direction && in->variable[v] >= 0)
            TRL_TRY(trli_derivative_set(&t->d, trli_ir_field(t->d.ir, in->variable[v]), TRLI_NO_VALUE));
    for (int v = 0; v < model->nvariables; ++v) {
        const trli_variable *variable = &model->variable[v];
        if (variable->direction != t->direction || in->variable[v] < 0) continue;
        trli_value primal = trli_ir_field(t->d.ir, in->variable[variable->of]);
        TRL_TRY(trli_derivative_set(&t->d, primal, trli_ir_field(t->d.ir, in->variable[v])));
    }
done:
    return err;
}

static trl_err make_tangent(trli_instance *in, int direction, trli_tangent_of **made)
{
    trli_ir *ir = &in->model->ir;
    int scalar = in->model->direction[direction - 1].scalar;
    trl_err err = TRL_OK;
    trli_tangent_of *t = *made = calloc(1, sizeof *t);
    if (!t) return trl_fail(ir->ctx, TRL_ERR_MEMORY, NULL, "no memory for derivatives");
    t->d = (trli_derivative){.ir = ir, .leaf = leaf, .data = t};
    t->in = in;
    t->direction = direction;
    if (in->old) TRL_TRY(seed(t, in->old));
    TRL_TRY(seed(t, in));
    if (scalar >= 0) TRL_TRY(trli_derivative_set(&t->d, trli_ir_scalar(ir, scalar), trli_ir_constant(ir, 1)));
done:
    return err;
}

trl_err trli_tangent(trli_instance *in, int direction, trli_value value, trli_value *tangent)
{
    trl_err err = TRL_OK;
    if (!in->tangent) {
        in->tangent = calloc((size_t)in->model->ndirections, sizeof *in->tangent);
        if (!in->tangent) return trl_fail(in->model->ctx, TRL_ERR_MEMORY, NULL, "no memory for derivatives");
        in->ntangents = in->model->ndirections;
    }
    if (!in->tangent[direction - 1]) TRL_TRY(make_tangent(in, direction, &in->tangent[direction - 1]));
    TRL_TRY(trli_derivative_of(&in->tangent[direction - 1]->d, value, tangent));
done:
    return err;
}

void trli_tangents_free(trli_instance *in)
{
    for (int d = 0; d < in->ntangents; ++d) {
        if (in->tangent[d]) trli_derivative_free(&in->tangent[d]->d);
        free(in->tangent[d]);
    }
    free(in->tangent);
    in->tangent = NULL;
    in->ntangents = 0;
}
