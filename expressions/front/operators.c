/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The lowering of operators of the formula language: a function for each family of them; old values, random numbers. */
#include "operators_impl.h"
#include "parameters_impl.h"

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

trl_err trli_lower_random(trli_lowering *lw, const trl_formula_operator *op, const trl_ast *node,
                          const trl_scope *scope, trli_operand *operand)
{
    double seed;
    (void)op;
    trl_err err = trli_lower_number(lw, node->arg[0], scope, &seed);
    if (err == TRL_OK) *operand = trli_operand_scalar(TRLI_ANYWHERE, trli_ir_random(lw->ir, seed));
    return err;
}

trl_err trli_lower_operator(trli_lowering *lw, const trl_formula_operator *op, const trl_ast *node,
                            const trl_scope *scope, trli_operand *operand)
{
    const int allowed = node->nargs < op->least ? op->least : op->most;
    if (node->nargs < op->least || node->nargs > op->most)
        return trli_lower_fail(lw, node, "'%s' takes %d argument%s, not %d: %s", op->name, allowed,
                               allowed == 1 ? "" : "s", node->nargs, op->signature);
    return family_of[op->id](lw, op, node, scope, operand);
}
