/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The lowering of operators of the formula language: a function for each family of them; old values, random numbers. */
#include <string.h>

#include "operators_impl.h"
#include "parameters_impl.h"
#include "symbols_impl.h"

static const trli_operator_fn family_of[] = {
#define FAMILY_OF(NAME, name, least, most, family, kind, axis, signature, doc) \
    [TRL_FORMULA_##NAME] = trli_lower_##family,
    TRL_FORMULA_OPERATOR_LIST(FAMILY_OF)
#undef FAMILY_OF
};

trl_err trli_lower_old(trli_lowering *lw, const trl_formula_operator *op, const trl_ast *node, const trl_scope *scope,
                       trli_operand *operand)
{
    trli_lowering then = *lw;
    (void)op;
    trl_err err = trli_instance_old(lw->instance, &then.instance);
    return err == TRL_OK ? trli_lower_node(&then, node->arg[0], scope, operand) : err;
}

/* Points that do not advance with `ddt` have no rate: masked ones, and those on sides that a condition sets. */
static trl_err held_still(trli_lowering *lw, const trli_variable *variable, trli_ir_value *rate)
{
    const trl_grid *grid = &lw->model->layout->grid;
    const trli_ir_value zero = trli_ir_constant(lw->ir, 0);
    trl_err err = TRL_OK;
    if (variable->mask) {
        trli_ir_value mask;
        TRL_TRY(trli_lower_at(lw->instance, variable->mask, variable->names, variable->location, &mask));
        *rate = trli_ir_select(lw->ir, mask, *rate, zero);
    }
    for (int s = 0; s < 6; ++s) {
        const trl_bc_side *side = &variable->boundary[s];
        bool set = false;
        if (s / 2 >= grid->dim || grid->periodic[s / 2] || !(variable->location >> (s / 2) & 1)) continue;
        for (int i = 0; i < side->npieces; ++i) set |= side->piece[i].kind == TRL_BC_DIRICHLET;
        if (set) *rate = trli_ir_select(lw->ir, trli_ir_at_side(lw->ir, s / 2, s % 2), zero, *rate);
    }
done:
    return err != TRL_OK ? err : lw->ir->err;
}

trl_err trli_lower_ddt(trli_lowering *lw, const trl_formula_operator *op, const trl_ast *node, const trl_scope *scope,
                       trli_operand *operand)
{
    char name[256] = "";
    const trl_ast *f = node->arg[0];
    trl_err err = TRL_OK;
    (void)op;
    if (!lw->instance->rates)
        return trli_lower_fail(lw, node,
                               "ddt(f) is known in output.series and time.stop only: write the formula of the time "
                               "derivative here");
    if (f->kind == TRL_AST_NAME) TRL_TRY(trl_name_expand(lw->model->ctx, lw->text, f, scope, name, sizeof name));
    const trli_symbol *symbol = *name ? trli_symbol_find(lw->model, name) : NULL;
    if (!symbol || symbol->kind != TRLI_SYMBOL_VARIABLE)
        return trli_lower_fail(lw, f, "ddt(f) is the time derivative of an equation, and this is none: name one");
    const trli_variable *variable = &lw->model->variable[symbol->index];
    const trli_variable *of = variable->direction ? &lw->model->variable[variable->of] : variable;
    trli_ir_value rate;
    if (!of->ddt) return trli_lower_fail(lw, f, "'%s' is solved for, and has no time derivative", of->name);
    /* An equation cannot ask for its own rate, and so on without end. */
    lw->instance->rates = false;
    err = trli_lower_at(lw->instance, of->ddt, of->names, of->location, &rate);
    if (err == TRL_OK && of->implicit) {
        trli_ir_value more;
        err = trli_lower_at(lw->instance, of->implicit, of->names, of->location, &more);
        if (err == TRL_OK) rate = trli_ir_binary(lw->ir, TRLI_OP_ADD, rate, more);
    }
    if (err == TRL_OK && of->less) {
        trli_ir_value less;
        err = trli_lower_at(lw->instance, of->less, of->less_names, of->location, &less);
        if (err == TRL_OK) rate = trli_ir_binary(lw->ir, TRLI_OP_SUB, rate, less);
    }
    lw->instance->rates = true;
    TRL_TRY(err);
    if (variable->direction) TRL_TRY(trli_tangent(lw->instance, variable->direction, rate, &rate));
    if (rate < 0) rate = trli_ir_constant(lw->ir, 0);
    TRL_TRY(held_still(lw, variable, &rate));
    *operand = trli_operand_scalar(variable->location, rate);
done:
    return err;
}

trl_err trli_lower_random(trli_lowering *lw, const trl_formula_operator *op, const trl_ast *node,
                          const trl_scope *scope, trli_operand *operand)
{
    double seed;
    (void)op;
    trl_err err = trli_lower_number(lw, node->arg[0], scope, &seed);
    if (err == TRL_OK) *operand = trli_operand_scalar(TRLI_ANYWHERE, trli_ir_random(lw->ir, seed));
    return err;
}

static bool differentiates(trl_operator_kind kind)
{
    return kind == TRL_GRADIENT || kind == TRL_GRADIENT4 || kind == TRL_CENTRAL_GRADIENT || kind == TRL_SECOND ||
           kind == TRL_LAPLACIAN || kind == TRL_DIV || kind == TRL_DIV4 || kind == TRL_CURL;
}

/* Whether a formula says by itself that it is the same at all points: names of entries may mean anything. */
static bool is_alike(const trl_ast *node, const trl_scope *scope)
{
    const char *word = trli_lower_word(node);
    double number;
    if (word && (strcmp(word, "t") == 0 || strcmp(word, "dt") == 0 || strcmp(word, "pi") == 0)) return true;
    if (node->kind == TRL_AST_NAME) return word && trl_scope_find(scope, word, &number);
    if (node->kind == TRL_AST_FAMILY || node->kind == TRL_AST_SIDE) return false;
    if (node->kind == TRL_AST_CALL && !trl_function_find(node->part[0].text)) return false;
    for (int i = 0; i < node->nargs; ++i)
        if (!is_alike(node->arg[i], scope)) return false;
    return true;
}

trl_err trli_lower_operator(trli_lowering *lw, const trl_formula_operator *op, const trl_ast *node,
                            const trl_scope *scope, trli_operand *operand)
{
    const int allowed = node->nargs < op->least ? op->least : op->most;
    if (node->nargs < op->least || node->nargs > op->most)
        return trli_lower_fail(lw, node, "'%s' takes %d argument%s, not %d: %s", op->name, allowed,
                               allowed == 1 ? "" : "s", node->nargs, op->signature);
    const trl_err err = family_of[op->id](lw, op, node, scope, operand);
    if (err == TRL_OK && differentiates(op->kind) && is_alike(node->arg[0], scope)) {
        const trl_place place = trl_text_place(lw->text, node->begin, node->end);
        trl_warn(lw->model->ctx, &place, "this is 0 everywhere: the argument of '%s' does not depend on space",
                 op->name);
    }
    return err;
}
