/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Parameters in formulas: their numbers, and values that stay symbolic where they depend on the parameter of a
 * direction. */
#include <string.h>

#include "memory_impl.h"
#include "parameters_impl.h"

typedef struct trli_defined {
    const trl_definition *definition;
    trli_ir_value value;
} trli_defined;

static const trl_scope *find_level(const trl_scope *scope, const char *name, int *i)
{
    for (; scope; scope = scope->outer)
        if ((*i = trl_scope_position(scope, name)) >= 0) return scope;
    return NULL;
}

trl_err trli_direction_add(trli_model *model, const char *name, int *direction)
{
    double value;
    if (!trli_make_room(model->ctx, &model->direction, model->ndirections, 1, &model->directions_capacity,
                        sizeof *model->direction))
        return trli_no_memory(model->ctx, NULL, "for %d directions", model->ndirections + 1);
    bool parameter = trl_scope_find(model->front->parameters, name, &value);
    model->direction[model->ndirections++] =
        (trli_direction){.name = name, .scalar = parameter ? trli_model_add_scalar(model, value) : -1};
    *direction = model->ndirections;
    return model->ir.err;
}

trl_err trli_direction_of_time(trli_model *model, int *direction)
{
    trl_err err = trli_direction_add(model, "t", direction);
    if (err == TRL_OK) model->direction[*direction - 1].time = true;
    return err;
}

static trl_err remember_definition(trli_model *model, const trl_definition *definition, trli_ir_value value)
{
    if (!trli_make_room(model->ctx, &model->front->defined, model->front->ndefined, 1, &model->front->defined_capacity,
                        sizeof *model->front->defined))
        return trli_no_memory(model->ctx, NULL, "for %d parameters", model->front->ndefined + 1);
    model->front->defined[model->front->ndefined++] = (trli_defined){definition, value};
    return TRL_OK;
}

static bool find_definition(const trli_model *model, const trl_definition *definition, trli_ir_value *value)
{
    for (int k = 0; k < model->front->ndefined; ++k)
        if (model->front->defined[k].definition == definition) {
            *value = model->front->defined[k].value;
            return true;
        }
    return false;
}

/* Parameters whose formulas are to be lowered, innermost last: each after those that it needs, so that nothing
 * recurses. */
typedef struct definitions {
    trli_lowering *lw;
    const trl_scope *scope; /* of the formula being looked through */
    int n, capacity;
    struct wanted {
        const trl_scope *level;
        int i;
    } * wanted;
} definitions;

static trl_err want(definitions *d, const trl_scope *level, int i)
{
    trli_ir_value value;
    if (!level->definition || find_definition(d->lw->model, &level->definition[i], &value)) return TRL_OK;
    if (!trli_make_room(d->lw->model->ctx, &d->wanted, d->n, 1, &d->capacity, sizeof *d->wanted))
        return trli_no_memory(d->lw->model->ctx, NULL, "for %d parameters", d->n + 1);
    d->wanted[d->n++] = (struct wanted){level, i};
    return TRL_OK;
}

static trl_err want_name(void *data, const char *name, const trl_ast *node)
{
    definitions *d = data;
    int i;
    const trl_scope *level = find_level(d->scope, name, &i);
    (void)node;
    return level ? want(d, level, i) : TRL_OK;
}

/* Lower the parameter wanted last: its number, unless it depends on a direction's. If it needs others first, they are
 * wanted now. */
static trl_err define_last(definitions *d)
{
    const struct wanted last = d->wanted[d->n - 1];
    const trl_definition *definition = &last.level->definition[last.i];
    trli_model *model = d->lw->model;
    trl_scope scope = {.outer = last.level};
    trl_formula *formula = NULL;
    trli_operand operand;
    const int before = d->n;
    trl_err err = TRL_OK;
    if (find_definition(model, definition, &operand.value[0])) {
        --d->n;
        return TRL_OK;
    }
    if (definition->indices) {
        scope = *definition->indices;
        scope.outer = last.level;
    }
    d->scope = &scope;
    TRL_TRY(trl_formula_parse(model->ctx, &definition->text, &formula));
    TRL_TRY(trl_ast_visit_names(model->ctx, &formula->text, formula->root, &scope, want_name, d));
    if (d->n > before) goto done;
    TRL_TRY(trli_lower(d->lw->instance, formula, &scope, &operand));
    trli_ir_value value = operand.value[0];
    if (trli_ir_node(d->lw->ir, value)->op == TRLI_OP_CONSTANT)
        value = trli_ir_constant(d->lw->ir, last.level->value[last.i]);
    TRL_TRY(remember_definition(model, definition, value));
    --d->n;
done:
    trl_formula_destroy(&formula);
    return err;
}

static trl_err lower_definition(trli_lowering *lw, const trl_scope *level, int i, trli_ir_value *value)
{
    definitions d = {.lw = lw};
    trl_err err = want(&d, level, i);
    while (err == TRL_OK && d.n > 0) err = define_last(&d);
    trli_free(d.wanted);
    if (err == TRL_OK) find_definition(lw->model, &level->definition[i], value);
    return err;
}

trl_err trli_lower_parameter(trli_lowering *lw, const char *name, const trl_scope *scope, trli_operand *operand,
                             bool *found)
{
    const trli_model *model = lw->model;
    int i;
    const trl_scope *level = find_level(scope, name, &i);
    trl_err err = TRL_OK;
    *found = level != NULL;
    if (!level) return TRL_OK;
    trli_ir_value value = trli_ir_constant(lw->ir, level->value[i]);
    if (model->ndirections && level->definition) TRL_TRY(lower_definition(lw, level, i, &value));
    for (int d = 0; d < model->ndirections && level == model->front->parameters; ++d)
        if (model->direction[d].scalar >= 0 && strcmp(model->direction[d].name, name) == 0)
            value = trli_ir_scalar(lw->ir, model->direction[d].scalar);
    *operand = trli_operand_scalar(TRLI_ANYWHERE, value);
done:
    return err;
}

trl_err trli_lower_number(trli_lowering *lw, const trl_ast *node, const trl_scope *scope, double *number)
{
    trli_operand operand;
    trl_err err = TRL_OK;
    TRL_TRY(trl_ast_number(lw->model->ctx, lw->text, node, scope, number));
    if (lw->model->ndirections == 0) return TRL_OK;
    TRL_TRY(trli_lower_node(lw, node, scope, &operand));
    if (trli_ir_node(lw->ir, operand.value[0])->op != TRLI_OP_CONSTANT)
        err = trli_lower_fail(lw, node,
                              "this depends on a parameter of `sensitivity`, and it is fixed when the formula is read: "
                              "there is no derivative by it");
done:
    return err;
}
