/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Products and quotients: all factors are collected first, so that cell-centred scalars meet face values by one
 * interpolation of their product. Products of vectors. */

#include "memory_impl.h"
#include "operators_impl.h"
#include "products_impl.h"

typedef struct factor {
    trli_operand operand;
    bool divides;
    const trl_ast *node;
} factor;

typedef struct product {
    int n;
    factor *factor;
    int components;
} product;

static int count_factors(const trl_ast *node)
{
    int n = 1;
    for (; node->kind == TRL_AST_BINARY && (node->op == TRL_AST_MUL || node->op == TRL_AST_DIV); node = node->arg[0])
        ++n;
    return n;
}

static trl_err collect(trli_lowering *lw, const trl_ast *node, const trl_scope *scope, product *p)
{
    trl_err err = TRL_OK;
    for (int i = p->n - 1; i >= 0; --i) {
        factor *f = &p->factor[i];
        f->divides = i > 0 && node->op == TRL_AST_DIV;
        f->node = i > 0 ? node->arg[1] : node;
        TRL_TRY(trli_lower_node(lw, f->node, scope, &f->operand));
        if (f->divides) trli_operand_flatten(&f->operand);
        if (f->operand.components && f->divides) {
            err = trli_lower_fail(lw, f->node,
                                  "a vector cannot divide: take a component with .x, or its length with mag()");
            trli_advise_cells(lw, f->node, scope);
            return err;
        }
        if (f->operand.components) p->components = f->operand.components;
        if (i > 0) node = node->arg[0];
    }
done:
    return err;
}

static int factor_location(const factor *f, int c)
{
    return f->operand.location[f->operand.components ? c : 0];
}

static bool is_face(int location)
{
    return location == TRL_XFACE || location == TRL_YFACE || location == TRL_ZFACE;
}

static trl_err fail_factors(trli_lowering *lw, const trl_ast *node, const product *p, int i, int target, int location)
{
    trl_err err =
        trli_lower_fail(lw, node, "factors at %s and %s cannot be multiplied: interpolate one with at(..., %s)",
                        trli_location_text(lw->model, target), trli_location_text(lw->model, location),
                        trli_location_text(lw->model, target));
    trli_advise_at(lw, p->factor[i].node, target);
    if (i == 1) trli_advise_at(lw, p->factor[0].node, location);
    trli_advise_central(lw, node);
    return err;
}

/* Where component c of the product lies: the common location, or the face that cell-centred scalars are interpolated
 * to. */
static trl_err find_target(trli_lowering *lw, const trl_ast *node, const product *p, int c, int *target)
{
    *target = TRLI_ANYWHERE;
    for (int i = 0; i < p->n; ++i) {
        int location = factor_location(&p->factor[i], c), joined;
        if (trli_location_join(*target, location, &joined))
            *target = joined;
        else if (*target == TRL_CELL && is_face(location))
            *target = location;
        else if (!(location == TRL_CELL && is_face(*target)))
            return fail_factors(lw, node, p, i, *target, location);
    }
    for (int i = 0; i < p->n; ++i) {
        const factor *f = &p->factor[i];
        if (f->operand.components && factor_location(f, c) == TRL_CELL && *target != TRL_CELL)
            return trli_lower_fail(lw, f->node,
                                   "this vector is at cells and its factor at %s: only scalars are interpolated by "
                                   "themselves, use at(..., faces)",
                                   trli_location_text(lw->model, *target));
    }
    return TRL_OK;
}

/* The product of the cell-centred factors on one side of the fraction bar, interpolated once. */
static trl_err cell_group(trli_lowering *lw, const product *p, bool divides, int target, trli_ir_value *value)
{
    trli_ir_value group = TRLI_NO_VALUE;
    for (int i = 0; i < p->n; ++i) {
        const factor *f = &p->factor[i];
        if (f->divides != divides || factor_location(f, 0) != TRL_CELL || f->operand.components) continue;
        group = group < 0 ? f->operand.value[0] : trli_ir_binary(lw->ir, TRLI_OP_MUL, group, f->operand.value[0]);
    }
    return trli_operator_result(lw, "at", trli_interpolate(lw, group, TRL_CELL, target), target, value);
}

static trl_err multiply(trli_lowering *lw, const product *p, int c, int target, trli_ir_value *value)
{
    bool grouped[2] = {false, false};
    trl_err err = TRL_OK;
    for (int i = 0; i < p->n; ++i) {
        const factor *f = &p->factor[i];
        trli_ir_value v;
        bool cell = factor_location(f, c) == TRL_CELL && target != TRL_CELL;
        if (cell && grouped[f->divides]) continue;
        if (cell) {
            grouped[f->divides] = true;
            TRL_TRY(cell_group(lw, p, f->divides, target, &v));
        } else {
            v = trli_operand_at(lw, &f->operand, c, target);
        }
        *value = i == 0 ? v : trli_ir_binary(lw->ir, f->divides ? TRLI_OP_DIV : TRLI_OP_MUL, *value, v);
    }
done:
    return err;
}

trl_err trli_lower_product(trli_lowering *lw, const trl_ast *node, const trl_scope *scope, trli_operand *operand)
{
    trl_err err = TRL_OK;
    product p = {.n = count_factors(node)};
    p.factor = trli_new(lw->model->ctx, (size_t)p.n, sizeof *p.factor);
    if (!p.factor) return trli_no_memory(lw->model->ctx, NULL, "for %d factors", p.n);
    TRL_TRY(collect(lw, node, scope, &p));
    *operand = (trli_operand){.components = p.components};
    for (int c = 0; c < trli_operand_count(operand); ++c) {
        TRL_TRY(find_target(lw, node, &p, c, &operand->location[c]));
        TRL_TRY(multiply(lw, &p, c, operand->location[c], &operand->value[c]));
    }
done:
    trli_free(p.factor);
    return err;
}

trl_err trli_lower_product_of_vectors(trli_lowering *lw, const trl_formula_operator *op, const trl_ast *node,
                                      const trl_scope *scope, trli_operand *operand)
{
    trli_operand v[2];
    trl_err err = TRL_OK;
    trli_ir *ir = lw->ir;
    bool cross = op->id == TRL_FORMULA_CROSS;
    for (int i = 0; i < node->nargs; ++i) TRL_TRY(trli_lower_vector(lw, node->arg[i], scope, &v[i]));
    if (node->nargs == 1) v[1] = v[0];
    int location = TRLI_ANYWHERE;
    for (int i = 0; i < 2; ++i)
        for (int a = 0; a < lw->dim; ++a)
            if (!trli_location_join(location, v[i].location[a], &location))
                return trli_lower_fail(
                    lw, node, "'%s' needs all components at one location, for example at(..., cell): here %s and %s",
                    op->name, trli_location_text(lw->model, location), trli_location_text(lw->model, v[i].location[a]));
    if (cross && lw->dim != 3) return trli_lower_fail(lw, node, "cross needs a 3-D grid");
    *operand = (trli_operand){.components = cross ? 3 : 0, .location = {location, location, location}};
    for (int c = 0; cross && c < 3; ++c) {
        int a = (c + 1) % 3, b = (c + 2) % 3;
        trli_ir_value p = trli_ir_binary(ir, TRLI_OP_MUL, trli_operand_at(lw, &v[0], a, location),
                                         trli_operand_at(lw, &v[1], b, location));
        trli_ir_value q = trli_ir_binary(ir, TRLI_OP_MUL, trli_operand_at(lw, &v[0], b, location),
                                         trli_operand_at(lw, &v[1], a, location));
        operand->value[c] = trli_ir_binary(ir, TRLI_OP_SUB, p, q);
    }
    for (int a = 0; !cross && a < lw->dim; ++a) {
        trli_ir_value p = trli_ir_binary(ir, TRLI_OP_MUL, trli_operand_at(lw, &v[0], a, location),
                                         trli_operand_at(lw, &v[1], a, location));
        operand->value[0] = a == 0 ? p : trli_ir_binary(ir, TRLI_OP_ADD, operand->value[0], p);
    }
    if (node->nargs == 1) operand->value[0] = trli_ir_unary(ir, TRLI_OP_SQRT, operand->value[0]);
done:
    return err;
}
