/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Formulas to values of the IR, in an instance: names, arithmetic, functions. */
#include <stdio.h>
#include <string.h>

#include <trl_functions_body.h>

#include "nodes_impl.h"
#include "operators_impl.h"
#include "parameters_impl.h"
#include "products_impl.h"
#include "symbols_impl.h"

static trl_err location_mismatch(trli_lowering *lw, const trl_ast *node, int a, int b)
{
    const char *at_a = trli_location_text(lw->model, a), *at_b = trli_location_text(lw->model, b);
    trl_err err = trli_lower_fail(
        lw, node, "values at %s and %s cannot be combined: interpolate one with at(..., %s) or at(..., %s)%s", at_a,
        at_b, at_a, at_b, trli_central_advice(node));
    const trl_ast *first = node->nargs >= 2 ? node->arg[node->nargs - 2] : NULL;
    if (first) {
        trli_advise_at(lw, first, b);
        trli_advise_at(lw, node->arg[node->nargs - 1], a);
    }
    trli_advise_central(lw, node);
    return err;
}

/* In 1-D a vector that meets a scalar is one. */
static void make_alike(trli_operand *a, trli_operand *b)
{
    if (a->components == b->components) return;
    trli_operand_flatten(a);
    trli_operand_flatten(b);
}

/* Apply an operation to each component of two values of one shape. */
static trl_err combine(trli_lowering *lw, const trl_ast *node, trli_op op, trli_operand *a, trli_operand *b,
                       trli_operand *operand)
{
    make_alike(a, b);
    *operand = (trli_operand){.components = a->components};
    if (a->components != b->components)
        return trli_lower_fail(lw, node,
                               "a vector and a scalar cannot be combined by '%s': take the vector's divergence with "
                               "div(), a component with .x, or its length with mag()",
                               trli_op_name(op));
    for (int c = 0; c < trli_operand_count(a); ++c) {
        if (!trli_location_join(a->location[c], b->location[c], &operand->location[c]))
            return location_mismatch(lw, node, a->location[c], b->location[c]);
        operand->value[c] = trli_ir_binary(lw->ir, op, trli_operand_at(lw, a, c, operand->location[c]),
                                           trli_operand_at(lw, b, c, operand->location[c]));
    }
    return TRL_OK;
}

static trl_err lower_binary(trli_lowering *lw, const trl_ast *node, const trl_scope *scope, trli_operand *operand)
{
    static const struct {
        trli_op op;
        bool swap, vectors;
    } table[] = {
        [TRL_AST_OR] = {TRLI_OP_OR, false, false},   [TRL_AST_AND] = {TRLI_OP_AND, false, false},
        [TRL_AST_LT] = {TRLI_OP_LT, false, false},   [TRL_AST_LE] = {TRLI_OP_LE, false, false},
        [TRL_AST_GT] = {TRLI_OP_LT, true, false},    [TRL_AST_GE] = {TRLI_OP_LE, true, false},
        [TRL_AST_EQ] = {TRLI_OP_EQ, false, false},   [TRL_AST_NE] = {TRLI_OP_NE, false, false},
        [TRL_AST_ADD] = {TRLI_OP_ADD, false, true},  [TRL_AST_SUB] = {TRLI_OP_SUB, false, true},
        [TRL_AST_POW] = {TRLI_OP_POW, false, false},
    };
    trli_operand a, b;
    trl_err err = TRL_OK;
    if (node->op == TRL_AST_MUL || node->op == TRL_AST_DIV) return trli_lower_product(lw, node, scope, operand);
    bool vectors = table[node->op].vectors;
    TRL_TRY(vectors ? trli_lower_node(lw, node->arg[0], scope, &a)
                    : trli_lower_scalar(lw, node->arg[0], scope, false, &a));
    TRL_TRY(vectors ? trli_lower_node(lw, node->arg[1], scope, &b)
                    : trli_lower_scalar(lw, node->arg[1], scope, false, &b));
    if (node->op == TRL_AST_POW) {
        int location;
        if (!trli_location_join(a.location[0], b.location[0], &location))
            return location_mismatch(lw, node, a.location[0], b.location[0]);
        *operand = trli_operand_scalar(location, trli_ir_power(lw->ir, trli_operand_at(lw, &a, 0, location),
                                                               trli_operand_at(lw, &b, 0, location)));
        return TRL_OK;
    }
    err =
        combine(lw, node, table[node->op].op, table[node->op].swap ? &b : &a, table[node->op].swap ? &a : &b, operand);
    if (err != TRL_OK && a.components != b.components) {
        trli_advise_dot(lw, node, scope);
        trli_advise_cells(lw, node, scope);
    }
done:
    return err;
}

static trl_err lower_unary(trli_lowering *lw, const trl_ast *node, const trl_scope *scope, trli_operand *operand)
{
    trl_err err = trli_lower_node(lw, node->arg[0], scope, operand);
    if (err != TRL_OK || node->op == TRL_AST_POS) return err;
    if (node->op == TRL_AST_NOT) trli_operand_flatten(operand);
    if (node->op == TRL_AST_NOT && operand->components) return trli_lower_fail(lw, node, "'not' needs a scalar");
    for (int c = 0; c < trli_operand_count(operand); ++c)
        operand->value[c] =
            trli_ir_unary(lw->ir, node->op == TRL_AST_NOT ? TRLI_OP_NOT : TRLI_OP_NEG, operand->value[c]);
    return TRL_OK;
}

static trl_err lower_vector(trli_lowering *lw, const trl_ast *node, const trl_scope *scope, trli_operand *operand)
{
    trl_err err = TRL_OK;
    if (node->nargs != lw->dim)
        return trli_lower_fail(lw, node, "a vector needs one component per axis of the grid: %d, not %d", lw->dim,
                               node->nargs);
    *operand = (trli_operand){.components = lw->dim};
    for (int c = 0; c < node->nargs; ++c) {
        trli_operand part;
        TRL_TRY(trli_lower_scalar(lw, node->arg[c], scope, false, &part));
        operand->location[c] = part.location[0];
        operand->value[c] = part.value[0];
    }
done:
    return err;
}

static trl_err lower_component(trli_lowering *lw, const trl_ast *node, const trl_scope *scope, trli_operand *operand)
{
    trli_operand whole;
    trl_err err = TRL_OK;
    if (node->axis >= lw->dim)
        return trli_lower_fail_axis(lw, node, (char[]){'.', (char)('x' + node->axis), 0}, node->axis);
    TRL_TRY(trli_lower_node(lw, node->arg[0], scope, &whole));
    if (!whole.components && lw->dim > 1)
        return trli_lower_fail(lw, node, "'.%c' needs a vector, and this is a scalar", "xyz"[node->axis]);
    *operand = trli_operand_scalar(whole.location[node->axis], whole.value[node->axis]);
done:
    return err;
}

static trl_err lower_family(trli_lowering *lw, const trl_ast *node, const trl_scope *scope, trli_operand *operand)
{
    long lo, hi;
    double value;
    const char *const index = node->part[0].text;
    const trl_scope inner = {.n = 1, .name = &index, .value = &value, .outer = scope};
    trl_err err = trli_family_range(lw->model->ctx, lw->text, node, scope, NULL, &lo, &hi);
    for (int i = 0; err == TRL_OK && i < 2; ++i) err = trli_lower_number(lw, node->arg[i], scope, &value);
    if (err != TRL_OK) return err;
    trli_op op = node->op == TRL_AST_ADD ? TRLI_OP_ADD : TRLI_OP_MUL;
    *operand = trli_operand_scalar(TRLI_ANYWHERE, trli_ir_constant(lw->ir, op == TRLI_OP_ADD ? 0 : 1));
    for (long i = lo; i <= hi; ++i) {
        trli_operand term, sum;
        value = (double)i;
        TRL_TRY(trli_lower_node(lw, node->arg[2], &inner, &term));
        if (i == lo) {
            *operand = term;
            continue;
        }
        TRL_TRY(combine(lw, node, op, operand, &term, &sum));
        *operand = sum;
    }
done:
    return err;
}

bool trli_lower_reserved(trli_lowering *lw, const char *name, trli_operand *operand, int *missing_axis)
{
    static const char *const coordinates[] = {"x", "y", "z"}, *const widths[] = {"dx", "dy", "dz"};
    trli_ir *ir = lw->ir;
    *missing_axis = -1;
    for (int a = 0; a < 3; ++a) {
        bool coordinate = strcmp(name, coordinates[a]) == 0;
        if (!coordinate && strcmp(name, widths[a]) != 0) continue;
        if (a >= lw->dim) *missing_axis = a;
        *operand = trli_operand_scalar(TRLI_ANYWHERE, coordinate ? trli_ir_coordinate(ir, a, TRLI_UNPLACED)
                                                                 : trli_ir_constant(ir, ir->grid->spacing[a]));
        return true;
    }
    if (strcmp(name, "t") == 0)
        *operand = trli_operand_scalar(TRLI_ANYWHERE, trli_ir_scalar(ir, lw->instance->time_scalar));
    else if (strcmp(name, "dt") == 0)
        *operand = trli_operand_scalar(TRLI_ANYWHERE, trli_ir_scalar(ir, TRLI_SCALAR_DT));
    else if (strcmp(name, "pi") == 0)
        *operand = trli_operand_scalar(TRLI_ANYWHERE, trli_ir_constant(ir, 0x1.921fb54442d18p+1));
    else
        return false;
    return true;
}

/* A vector that a plugin entry computes by its components "q.x", "q.y", ... */
static trl_err lower_split_vector(trli_lowering *lw, const char *name, trli_operand *operand, bool *found)
{
    trl_err err = TRL_OK;
    char component[272];
    *found = false;
    *operand = (trli_operand){.components = lw->dim};
    for (int a = 0; a < lw->dim; ++a) {
        trli_operand part;
        snprintf(component, sizeof component, "%s.%c", name, "xyz"[a]);
        const trli_symbol *symbol = trli_symbol_find(lw->model, component);
        if (!symbol) return TRL_OK;
        TRL_TRY(trli_lower_symbol(lw->instance, symbol, &part));
        operand->location[a] = part.location[0];
        operand->value[a] = part.value[0];
    }
    *found = true;
done:
    return err;
}

/* A name that nothing computes: it may be a part of what is written differently here. */
static trl_err unknown_name(trli_lowering *lw, const trl_ast *node, const char *name)
{
    trli_notation other;
    const trl_place place = trl_text_place(lw->text, node->begin, node->end);
    if (!trli_notation_find(lw->text->chars, node->begin, node->end, &other) ||
        (*other.of && !trli_symbol_find(lw->model, other.of)))
        return trli_symbol_missing(lw->model, &place, name);
    trl_err err = trli_text_fail(lw->model->ctx, lw->text, other.begin, other.end, "nothing computes '%s': write %s",
                                 name, other.here);
    trl_advise(lw->model->ctx, "write `%s`", other.here);
    return err;
}

static trl_err lower_name(trli_lowering *lw, const trl_ast *node, const trl_scope *scope, trli_operand *operand)
{
    char name[256];
    int axis;
    bool found;
    trl_err err = TRL_OK;
    TRL_TRY(trl_name_expand(lw->model->ctx, lw->text, node, scope, name, sizeof name));
    for (int i = 0; i < lw->nnamed; ++i) {
        if (strcmp(lw->named[i].name, name) != 0) continue;
        *operand = trli_operand_scalar(TRLI_ANYWHERE, lw->named[i].value);
        return TRL_OK;
    }
    TRL_TRY(trli_lower_parameter(lw, name, scope, operand, &found));
    if (found) return TRL_OK;
    if (trli_lower_reserved(lw, name, operand, &axis))
        return axis < 0 ? TRL_OK : trli_lower_fail_axis(lw, node, name, axis);
    const trli_symbol *symbol = trli_symbol_find(lw->model, name);
    if (symbol) return trli_lower_symbol(lw->instance, symbol, operand);
    TRL_TRY(lower_split_vector(lw, name, operand, &found));
    if (!found) err = unknown_name(lw, node, name);
done:
    return err;
}

static trl_err lower_if(trli_lowering *lw, const trl_ast *node, const trl_scope *scope, trli_operand *operand)
{
    trli_operand c, a, b;
    trl_err err = TRL_OK;
    if (node->nargs != 3)
        return trli_lower_fail(lw, node, "'if' takes 3 arguments, if(condition, then, else), not %d", node->nargs);
    if (trli_decided(node->arg[0], scope)) {
        double decided;
        TRL_TRY(trl_ast_number(lw->model->ctx, lw->text, node->arg[0], scope, &decided));
        return trli_lower_node(lw, node->arg[decided != 0 ? 1 : 2], scope, operand);
    }
    TRL_TRY(trli_lower_scalar(lw, node->arg[0], scope, false, &c));
    TRL_TRY(trli_lower_node(lw, node->arg[1], scope, &a));
    TRL_TRY(trli_lower_node(lw, node->arg[2], scope, &b));
    make_alike(&a, &b);
    if (a.components != b.components)
        return trli_lower_fail(lw, node, "the two branches of 'if' are a vector and a scalar");
    *operand = (trli_operand){.components = a.components};
    for (int i = 0; i < trli_operand_count(&a); ++i) {
        int location;
        if (!trli_location_join(a.location[i], b.location[i], &location))
            return location_mismatch(lw, node, a.location[i], b.location[i]);
        if (!trli_location_join(location, c.location[0], &operand->location[i]))
            return location_mismatch(lw, node, location, c.location[0]);
        operand->value[i] = trli_ir_select(lw->ir, trli_operand_at(lw, &c, 0, operand->location[i]),
                                           trli_operand_at(lw, &a, i, operand->location[i]),
                                           trli_operand_at(lw, &b, i, operand->location[i]));
    }
done:
    return err;
}

/* Functions that are operations of the IR of their own; the others are calls. */
trli_ir_value trli_lower_function_value(trli_ir *ir, const trl_function *f, trli_ir_value a, trli_ir_value b)
{
    switch ((trl_function_id)f->id) {
    case TRL_FUNCTION_SQRT:
        return trli_ir_unary(ir, TRLI_OP_SQRT, a);
    case TRL_FUNCTION_ABS:
        return trli_ir_unary(ir, TRLI_OP_ABS, a);
    case TRL_FUNCTION_MIN:
        return trli_ir_binary(ir, TRLI_OP_MIN, a, b);
    case TRL_FUNCTION_MAX:
        return trli_ir_binary(ir, TRLI_OP_MAX, a, b);
    default:
        return trli_ir_function(ir, f->id, a, b);
    }
}

/* A function of numbers. */
static trl_err lower_function(trli_lowering *lw, const trl_ast *node, const trl_scope *scope, const trl_function *f,
                              trli_operand *operand)
{
    trl_err err = TRL_OK;
    if (node->nargs < f->arity || (node->nargs > f->arity && !f->many))
        return trli_lower_fail(lw, node, "'%s' takes %d argument%s, not %d", f->name, f->arity,
                               f->arity == 1 ? ""
                               : f->many     ? "s or more"
                                             : "s",
                               node->nargs);
    TRL_TRY(trli_lower_scalar(lw, node->arg[0], scope, false, operand));
    if (f->arity == 1) {
        operand->value[0] = trli_lower_function_value(lw->ir, f, operand->value[0], TRLI_NO_VALUE);
        return TRL_OK;
    }
    for (int i = 1; i < node->nargs; ++i) {
        trli_operand b;
        int location;
        TRL_TRY(trli_lower_scalar(lw, node->arg[i], scope, false, &b));
        if (!trli_location_join(operand->location[0], b.location[0], &location))
            return location_mismatch(lw, node, operand->location[0], b.location[0]);
        *operand = trli_operand_scalar(location,
                                       trli_lower_function_value(lw->ir, f, trli_operand_at(lw, operand, 0, location),
                                                                 trli_operand_at(lw, &b, 0, location)));
    }
done:
    return err;
}

/* Whether a name is that of a value. */
static bool is_value(const trli_lowering *lw, const char *name, const trl_scope *scope)
{
    double number;
    return trli_symbol_find(lw->model, name) || trl_scope_find(scope, name, &number);
}

static trl_err unknown_call(trli_lowering *lw, const trl_ast *node, const trl_scope *scope, const char *name)
{
    const char *known[256], *near, *synonym = trl_name_synonym(name);
    int n = 0, count;
    const trl_function *functions = trl_functions(&count);
    for (int i = 0; i < count && n < 128; ++i) known[n++] = functions[i].name;
    for (int i = 0; i < TRL_FORMULA_OPERATORS && n < 256; ++i) known[n++] = trl_formula_operator_at(i)->name;
    for (int i = 0; i < lw->model->front->nstencils && n < 256; ++i) known[n++] = lw->model->front->stencil[i]->name;
    near = trl_name_nearest(name, known, n);
    trl_err err = synonym ? trli_lower_fail(lw, node, "'%s' is no function or operator; write %s", name, synonym)
                  : near
                      ? trli_lower_fail(lw, node, "'%s' is no function or operator; did you mean '%s'?", name, near)
                      : trli_lower_fail(lw, node, "'%s' is no function or operator; `trellis types` lists them", name);
    if (synonym) trl_advise(lw->model->ctx, "write `%s`", synonym);
    if (is_value(lw, name, scope)) trl_advise(lw->model->ctx, "write `%s*(...)`, if it is a product", name);
    if (!synonym) trli_advise_names(lw->model->ctx, name, known, n);
    if (!synonym) trl_advise(lw->model->ctx, "look among what `trellis types` lists");
    return err;
}

static trl_err lower_call(trli_lowering *lw, const trl_ast *node, const trl_scope *scope, trli_operand *operand)
{
    const char *name = node->part[0].text;
    if (strcmp(name, "if") == 0) return lower_if(lw, node, scope, operand);
    const trl_function *f = trl_function_find(name);
    if (f) return lower_function(lw, node, scope, f, operand);
    const trl_operator *stencil = trli_stencil_find(lw->model, name);
    if (stencil) return trli_lower_stencil(lw, node, scope, stencil, operand);
    const trl_formula_operator *op = trl_formula_operator_find(name);
    return op ? trli_lower_operator(lw, op, node, scope, operand) : unknown_call(lw, node, scope, name);
}

trl_err trli_lower_by_kind(trli_lowering *lw, const trl_ast *node, const trl_scope *scope, trli_operand *operand)
{
    switch (node->kind) {
    case TRL_AST_NUMBER:
        *operand = trli_operand_scalar(TRLI_ANYWHERE, trli_ir_constant(lw->ir, node->number));
        return TRL_OK;
    case TRL_AST_NAME:
        return lower_name(lw, node, scope, operand);
    case TRL_AST_CALL:
        return lower_call(lw, node, scope, operand);
    case TRL_AST_UNARY:
        return lower_unary(lw, node, scope, operand);
    case TRL_AST_BINARY:
        return lower_binary(lw, node, scope, operand);
    case TRL_AST_VECTOR:
        return lower_vector(lw, node, scope, operand);
    case TRL_AST_COMPONENT:
        return lower_component(lw, node, scope, operand);
    case TRL_AST_FAMILY:
        return lower_family(lw, node, scope, operand);
    case TRL_AST_SIDE: /* read by extrapolate itself */
        break;
    }
    return trl_fail(lw->model->ctx, TRL_ERR_BUG, NULL, "unexpected kind %d in a syntax tree", (int)node->kind);
}
