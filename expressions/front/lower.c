/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* What the lowering of all kinds of nodes and operators shares. */
#include <stdio.h>
#include <string.h>

#include <trl_formula_operators.h>

#include "lower_impl.h"

trl_err trli_lower_node(trli_lowering *lw, const trl_ast *node, const trl_scope *scope, trli_operand *operand)
{
    trli_instance *in = lw->instance;
    if (!in->marks || !trli_marks_have(in->marks, node)) return in->ops->node(lw, node, scope, operand);
    trli_lowering unshared = *lw;
    unshared.instance = in->no_cse;
    return trli_lower_node(&unshared, node, scope, operand);
}

trl_err trli_lower_named(trli_instance *instance, const trl_formula *formula, const trl_scope *scope, int nnamed,
                         const trli_named_value *named, trli_operand *operand)
{
    trli_lowering lw = {.instance = instance,
                        .model = instance->model,
                        .ir = &instance->model->ir,
                        .text = &formula->text,
                        .dim = instance->model->layout->grid.dim,
                        .nnamed = nnamed,
                        .named = named};
    trl_err err = trli_lower_node(&lw, formula->root, scope, operand);
    return err != TRL_OK ? err : lw.ir->err;
}

trl_err trli_lower(trli_instance *instance, const trl_formula *formula, const trl_scope *scope, trli_operand *operand)
{
    return trli_lower_named(instance, formula, scope, 0, NULL, operand);
}

const char *trli_central_advice(const trl_ast *node)
{
    const char *advice = "";
    if (node->kind == TRL_AST_CALL) {
        const trl_formula_operator *op = trl_formula_operator_find(node->part[0].text);
        switch (op ? op->id : TRL_FORMULA_OPERATORS) {
        case TRL_FORMULA_DDX:
            return ", or use cddx(s) for ddx(s): it stays where s is";
        case TRL_FORMULA_DDY:
            return ", or use cddy(s) for ddy(s): it stays where s is";
        case TRL_FORMULA_DDZ:
            return ", or use cddz(s) for ddz(s): it stays where s is";
        default:
            break;
        }
    }
    for (int i = 0; i < node->nargs && !*advice; ++i) advice = trli_central_advice(node->arg[i]);
    return advice;
}

/* The text of a part of a formula, if it is not too long to be repeated. */
static bool short_text(const trli_lowering *lw, const trl_ast *node)
{
    enum { REPEATED = 60 };
    return node->end > node->begin && node->end - node->begin <= REPEATED &&
           !memchr(lw->text->chars + node->begin, '\n', (size_t)(node->end - node->begin));
}

void trli_advise_at(trli_lowering *lw, const trl_ast *node, int location)
{
    const char *where = trli_location_text(lw->model, location);
    const int length = node->end - node->begin;
    const char *part = lw->text->chars + node->begin;
    if (location < 0) return;
    if (short_text(lw, node))
        trl_advise(lw->model->ctx, "write `at(%.*s, %s)` for `%.*s`", length, part, where, length, part);
    else
        trl_advise(lw->model->ctx, "write `at(..., %s)` around the part that begins with `%.20s`", where, part);
}

void trli_advise_central(trli_lowering *lw, const trl_ast *node)
{
    const trl_formula_operator *op = node->kind == TRL_AST_CALL ? trl_formula_operator_find(node->part[0].text) : NULL;
    if (op && op->id >= TRL_FORMULA_DDX && op->id <= TRL_FORMULA_DDZ && short_text(lw, node))
        trl_advise(lw->model->ctx, "write `c%.*s`: the central difference stays where its argument is",
                   node->end - node->begin, lw->text->chars + node->begin);
    for (int i = 0; i < node->nargs; ++i) trli_advise_central(lw, node->arg[i]);
}

/* Some operand of a product as an argument of dot(), whose components all lie at one place. */
static void write_factor(const trli_lowering *lw, const trl_ast *node, const trli_operand *f, char *to, size_t room)
{
    int common = TRLI_ANYWHERE;
    bool together = true;
    for (int c = 0; c < f->components; ++c) together &= trli_location_join(common, f->location[c], &common);
    snprintf(to, room, together ? "%.*s" : "at(%.*s, cell)", node->end - node->begin, lw->text->chars + node->begin);
}

void trli_advise_dot(trli_lowering *lw, const trl_ast *node, const trl_scope *scope)
{
    const bool product = node->kind == TRL_AST_BINARY && node->op == TRL_AST_MUL && short_text(lw, node);
    trli_operand f[2] = {{0}};
    char text[2][96];
    for (int i = 0; i < node->nargs && node->kind != TRL_AST_CALL; ++i) trli_advise_dot(lw, node->arg[i], scope);
    for (int i = 0; i < 2 && product; ++i) {
        if (trli_lower_node(lw, node->arg[i], scope, &f[i]) != TRL_OK || f[i].components == 0) return;
        write_factor(lw, node->arg[i], &f[i], text[i], sizeof text[i]);
    }
    if (product) trl_advise(lw->model->ctx, "write `dot(%s, %s)` for the sum of the products", text[0], text[1]);
}

void trli_advise_cells(trli_lowering *lw, const trl_ast *node, const trl_scope *scope)
{
    const trl_formula_operator *op = node->kind == TRL_AST_CALL ? trl_formula_operator_find(node->part[0].text) : NULL;
    const char *where = node->nargs > 1 ? trli_lower_word(node->arg[1]) : NULL;
    trli_operand f;
    for (int i = 0; i < node->nargs && !op && node->kind != TRL_AST_COMPONENT; ++i)
        trli_advise_cells(lw, node->arg[i], scope);
    if (!op || op->id != TRL_FORMULA_AT || !where || strcmp(where, "faces") != 0 || !short_text(lw, node)) return;
    const trl_ast *part = node->arg[0];
    if (trli_lower_node(lw, part, scope, &f) != TRL_OK || f.components || f.location[0] != TRL_CELL) return;
    const bool sum = part->kind == TRL_AST_BINARY;
    const char *text = lw->text->chars;
    trl_advise(lw->model->ctx,
               "write `%s%.*s%s` for `%.*s`: where it meets a vector on faces, it is interpolated to them",
               sum ? "(" : "", part->end - part->begin, text + part->begin, sum ? ")" : "", node->end - node->begin,
               text + node->begin);
}

static trl_err fail_vector(trli_lowering *lw, const trl_ast *node, const trl_scope *scope, const char *advice)
{
    const trl_err err = trli_lower_fail(lw, node, "a scalar is needed here, not a vector%s", advice);
    trli_advise_dot(lw, node, scope);
    trli_advise_cells(lw, node, scope);
    return err;
}

static trl_err fail_at(trli_instance *instance, const trl_formula *formula, int found, int wanted)
{
    trli_model *model = instance->model;
    const trl_ast *root = formula->root;
    trli_lowering lw = {.instance = instance, .model = model, .text = &formula->text};
    trl_err err = trli_text_fail(model->ctx, &formula->text, root->begin, root->end,
                                 "this is at %s, and %s is needed: interpolate with at(..., %s)%s",
                                 trli_location_text(model, found), trli_location_text(model, wanted),
                                 trli_location_text(model, wanted), trli_central_advice(root));
    trli_advise_central(&lw, root);
    trli_advise_at(&lw, root, wanted);
    return err;
}

trl_err trli_lower_at(trli_instance *instance, const trl_formula *formula, const trl_scope *scope,
                      trl_location location, trli_ir_value *value)
{
    trli_operand operand;
    trl_err err = trli_lower(instance, formula, scope, &operand);
    if (err != TRL_OK) return err;
    const trl_ast *root = formula->root;
    trli_operand_flatten(&operand);
    if (operand.components) {
        trli_lowering lw = {.instance = instance,
                            .model = instance->model,
                            .ir = &instance->model->ir,
                            .text = &formula->text,
                            .dim = instance->model->layout->grid.dim};
        return fail_vector(&lw, root, scope, "");
    }
    if (operand.location[0] != TRLI_ANYWHERE && operand.location[0] != (int)location)
        return fail_at(instance, formula, operand.location[0], (int)location);
    *value = trli_ir_place(&instance->model->ir, operand.value[0], location);
    return instance->model->ir.err;
}

trl_err trli_lower_scalar(trli_lowering *lw, const trl_ast *node, const trl_scope *scope, bool placed,
                          trli_operand *operand)
{
    trl_err err = trli_lower_node(lw, node, scope, operand);
    if (err != TRL_OK) return err;
    trli_operand_flatten(operand);
    if (operand->components) return fail_vector(lw, node, scope, ": take a component with .x, or mag()");
    if (placed && operand->location[0] == TRLI_ANYWHERE)
        *operand = trli_operand_scalar(TRL_CELL, trli_operand_at(lw, operand, 0, TRL_CELL));
    return TRL_OK;
}

trl_err trli_lower_vector(trli_lowering *lw, const trl_ast *node, const trl_scope *scope, trli_operand *v)
{
    trl_err err = trli_lower_node(lw, node, scope, v);
    if (err != TRL_OK || v->components) return err;
    if (lw->dim > 1)
        return trli_lower_fail(
            lw, node,
            "a vector is needed here, not a scalar: write [a, b%s], a component for each axis, or grad() of the "
            "scalar",
            lw->dim == 3 ? ", c" : "");
    v->components = 1;
    return TRL_OK;
}

trl_err trli_lower_placed(trli_lowering *lw, const trl_ast *node, const trl_scope *scope, trli_operand *f)
{
    trl_err err = trli_lower_node(lw, node, scope, f);
    if (err != TRL_OK) return err;
    for (int c = 0; c < trli_operand_count(f); ++c) {
        if (f->location[c] != TRLI_ANYWHERE) continue;
        f->value[c] = trli_operand_at(lw, f, c, TRL_CELL);
        f->location[c] = TRL_CELL;
    }
    return TRL_OK;
}

trl_err trli_lower_fail_axis(trli_lowering *lw, const trl_ast *node, const char *name, int axis)
{
    trl_err err = trli_lower_fail(lw, node, "'%s' needs an axis that this %d-D grid lacks", name, lw->dim);
    trl_advise(lw->model->ctx, "give `grid.cells` %d numbers, one for each axis", axis + 1);
    return err;
}

/* ---- words as arguments ---- */

const char *trli_lower_word(const trl_ast *node)
{
    return node->kind == TRL_AST_NAME && node->nparts == 1 && !node->part[0].index ? node->part[0].text : NULL;
}

trl_err trli_lower_fail_word(trli_lowering *lw, const trl_ast *node, const char *what, const char *const *words, int n)
{
    const char *given = trli_lower_word(node), *near = given ? trl_name_nearest(given, words, n) : NULL;
    char list[256];
    size_t used = 0;
    for (int i = 0; i < n && used < sizeof list; ++i)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s",
                                 i == 0      ? ""
                                 : i < n - 1 ? ", "
                                             : " or ",
                                 words[i]);
    trl_err err = trli_lower_fail(lw, node, "this is no %s: %s%s%s%s", what, list, near ? "; did you mean '" : "",
                                  near ? near : "", near ? "'?" : "");
    if (near) trli_advise_names(lw->model->ctx, given, words, n);
    return err;
}

/* ---- operands and results ---- */

trli_ir_value trli_operand_at(trli_lowering *lw, const trli_operand *operand, int c, int location)
{
    if (!operand->components) c = 0;
    return location == TRLI_ANYWHERE ? operand->value[c]
                                     : trli_ir_place(lw->ir, operand->value[c], (trl_location)location);
}

trli_ir_value trli_interpolate(trli_lowering *lw, trli_ir_value value, int from, int to)
{
    const trl_operator_desc desc = {.kind = TRL_INTERPOLANT, .from = (trl_location)from, .to = (trl_location)to};
    trl_operator *op;
    if (from == to) return value;
    trl_err err = trl_operator_create(lw->model->ctx, lw->ir->grid, &desc, &op);
    if (err != TRL_OK) {
        if (lw->ir->err == TRL_OK) lw->ir->err = err;
        return value;
    }
    value = trli_ir_operator(lw->ir, op, &value);
    trl_operator_destroy(&op);
    return value;
}

trl_err trli_operator_result(trli_lowering *lw, const char *name, trli_ir_value value, int location,
                             trli_ir_value *result)
{
    *result = value;
    const bool far = trli_ir_reaches_far(lw->ir, value);
    if (lw->model->settings.fusion != TRL_FUSION_NONE && !far) return lw->ir->err;
    return trli_operator_stored(lw, name, far ? trli_far_text : "run.fusion is none", value, location, result);
}

trl_err trli_operator_stored(trli_lowering *lw, const char *name, const char *why, trli_ir_value value, int location,
                             trli_ir_value *result)
{
    const trli_node *n = trli_ir_node(lw->ir, value);
    *result = value;
    if (lw->instance->inline_only) return lw->ir->err;
    if (n->unplaced || !n->varies || n->op == TRLI_OP_FIELD) return lw->ir->err;
    int field;
    trl_err err = trli_program_store(lw->instance->program, name, why, value, (trl_location)location, NULL, &field);
    if (err == TRL_OK) *result = trli_ir_field(lw->ir, field);
    return err;
}
