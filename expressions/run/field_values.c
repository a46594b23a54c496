/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <math.h>

#include <trl_limiter_body.h>

#include "cache_impl.h"
#include "field_values_impl.h"
#include "side_impl.h"

/* ---- values ---- */

static trl_err flux_value(trli_ir *ir, const trli_statement *s, trli_ir_value *value)
{
    const trli_ir_value u = trli_ir_field(ir, 0), phi = trli_ir_field(ir, 1);
    const int axis = s->flux.axis;
    const trl_operator_desc desc = {
        .kind = TRL_INTERPOLANT, .from = s->flux.phi, .to = (trl_location)((int)s->flux.phi ^ 1 << axis)};
    trl_operator *mean = NULL;
    trli_ir_value face;
    trl_err err = TRL_OK;
    if (s->flux.limiter >= 0) {
        face = trli_ir_upwind(ir, phi, (int)s->flux.phi, axis, s->flux.limiter, u);
    } else {
        TRL_TRY(trl_operator_create(ir->ctx, ir->grid, &desc, &mean));
        face = trli_ir_operator(ir, mean, &phi);
    }
    *value = trli_ir_binary(ir, TRLI_OP_MUL, u, face);
done:
    trl_operator_destroy(&mean);
    return err;
}

static trli_ir_value term_value(trli_ir *ir, const trli_statement *s)
{
    const trli_ir_value f = trli_ir_field(ir, 0);
    trli_ir_value term = f;
    double none = 0; /* what changes no result */
    if (s->term.kind == TRL_REDUCE_L1 || s->term.kind == TRL_REDUCE_LINF) term = trli_ir_unary(ir, TRLI_OP_ABS, f);
    if (s->term.kind == TRL_REDUCE_L2) term = trli_ir_binary(ir, TRLI_OP_MUL, f, f);
    if (s->term.merge == TRLI_MERGE_MIN) none = INFINITY;
    if (s->term.merge == TRLI_MERGE_MAX) none = -INFINITY;
    return s->ninputs < 2 ? term : trli_ir_select(ir, trli_ir_field(ir, 1), term, trli_ir_constant(ir, none));
}

static trli_ir_value combined_value(trli_ir *ir, const trli_statement *s)
{
    trli_ir_value sum = TRLI_NO_VALUE;
    for (int i = 0; i < s->ninputs; ++i) {
        const trli_ir_value term = trli_ir_binary(ir, TRLI_OP_MUL, trli_ir_scalar(ir, i), trli_ir_field(ir, i));
        sum = i == 0 ? term : trli_ir_binary(ir, TRLI_OP_ADD, sum, term);
    }
    return sum;
}

static trli_ir_value assigned_value(trli_ir *ir, const trli_statement *s)
{
    const trli_ir_value value = s->ninputs > 2 ? trli_ir_field(ir, 2) : trli_ir_scalar(ir, 0);
    return trli_ir_select(ir, trli_ir_field(ir, 0), value, trli_ir_field(ir, 1));
}

/* The ghost for which the operator of a condition has the value. */
static trli_ir_value solved_value(trli_ir *ir, const trli_ghost_piece *p, int axis, trli_ir_value value)
{
    const trli_ir_value f = trli_ir_field(ir, 0);
    trli_ir_value rest = trli_ir_binary(ir, TRLI_OP_DIV, value, trli_ir_constant(ir, p->pass->scale));
    for (int i = 0; i < p->pass->npoints; ++i) {
        const trl_stencil_point *point = &p->pass->point[i];
        const int offset = p->to_result + point->offset[axis];
        const trli_ir_value weight = trli_ir_constant(ir, point->weight);
        if (offset == 0) continue;
        rest = trli_ir_binary(ir, TRLI_OP_SUB, rest,
                              trli_ir_binary(ir, TRLI_OP_MUL, weight, trli_ir_shift(ir, f, axis, offset)));
    }
    return trli_ir_binary(ir, TRLI_OP_DIV, rest, trli_ir_constant(ir, p->weight));
}

/* A piece of a layer, at its ghosts or points. */
static trli_ir_value piece_value(trli_ir *ir, const trli_statement *s, int number)
{
    const trli_ghost_piece *p = &s->layer.piece[number];
    const int axis = s->layer.axis, m = s->layer.m, inward = s->layer.side ? -1 : 1;
    const int span = m == 0 ? 0 : s->layer.on_side ? 2 * m : 2 * m - 1;
    const trli_ir_value f = trli_ir_field(ir, 0);
    trli_ir_value v[3];
    if (p->keeps) return f;
    for (int i = 0; i < 3; ++i)
        v[i] = p->value[i] >= 0 ? trli_ir_field(ir, p->value[i]) : trli_ir_scalar(ir, 3 * number + i);
    if (p->ratio) v[0] = trli_ir_binary(ir, TRLI_OP_DIV, v[2], v[0]);
    if (m == 0) return v[0];
    if (p->pass) return solved_value(ir, p, axis, v[0]);
    if (p->factor != 1) v[0] = trli_ir_binary(ir, TRLI_OP_MUL, v[0], trli_ir_constant(ir, p->factor));
    return trli_ir_ghost(ir, p->kind, s->layer.on_side, span * s->layer.spacing,
                         trli_ir_shift(ir, f, axis, inward * span), trli_ir_shift(ir, f, axis, inward * m), v);
}

static trli_ir_value layer_value(trli_ir *ir, const trli_statement *s)
{
    trli_ir_value value = TRLI_NO_VALUE;
    for (int i = s->layer.npieces - 1; i >= 0; --i) {
        const trli_ir_value here = piece_value(ir, s, i);
        const int where = s->layer.piece[i].where;
        value = where < 0 ? here : trli_ir_select(ir, trli_ir_field(ir, where), here, value);
    }
    return value;
}

trl_err trli_statement_value(trli_ir *ir, const trli_statement *s, trli_ir_value *value)
{
    trli_ir_value in[TRLI_STATEMENT_INPUTS];
    trl_err err = TRL_OK;
    for (int i = 0; i < s->ninputs; ++i) in[i] = trli_ir_field(ir, i);
    switch (s->kind) {
    case TRLI_STATEMENT_OPERATOR:
        *value = trli_ir_operator(ir, s->op, in);
        break;
    case TRLI_STATEMENT_PASS:
        *value = trli_ir_pass(ir, s->pass, in[0]);
        break;
    case TRLI_STATEMENT_FLUX:
        err = flux_value(ir, s, value);
        break;
    case TRLI_STATEMENT_COMBINE:
        *value = combined_value(ir, s);
        break;
    case TRLI_STATEMENT_ASSIGN:
        *value = assigned_value(ir, s);
        break;
    case TRLI_STATEMENT_LAYER:
        *value = layer_value(ir, s);
        break;
    case TRLI_STATEMENT_TERM:
        *value = term_value(ir, s);
        break;
    }
    return err != TRL_OK ? err : ir->err;
}

/* ---- digests ---- */

static void add_numbers(uint64_t digest[2], int n, const int *numbers)
{
    trli_digest_bytes(digest, numbers, (size_t)n * sizeof *numbers);
}

static void add_pass(uint64_t digest[2], const trl_pass *pass)
{
    add_numbers(digest, 1, &pass->npoints);
    trli_digest_bytes(digest, &pass->scale, sizeof pass->scale);
    for (int i = 0; i < pass->npoints; ++i) {
        trli_digest_bytes(digest, pass->point[i].offset, sizeof pass->point[i].offset);
        trli_digest_bytes(digest, &pass->point[i].weight, sizeof pass->point[i].weight);
    }
}

static void add_operator(uint64_t digest[2], const trl_operator *op)
{
    for (int t = 0; t < op->nterms; ++t) {
        const trl_term *term = &op->term[t];
        add_numbers(digest, 3, (const int[]){term->input, term->minus, term->npasses});
        for (int p = 0; p < term->npasses; ++p) add_pass(digest, &term->pass[p]);
    }
}

static void add_layer(uint64_t digest[2], const trli_statement *s)
{
    add_numbers(digest, 5, (const int[]){s->layer.axis, s->layer.side, s->layer.m, s->layer.on_side, s->layer.npieces});
    trli_digest_bytes(digest, &s->layer.spacing, sizeof s->layer.spacing);
    for (int i = 0; i < s->layer.npieces; ++i) {
        const trli_ghost_piece *p = &s->layer.piece[i];
        add_numbers(digest, 4, (const int[]){(int)p->kind, p->keeps, p->ratio, p->where});
        add_numbers(digest, 3, p->value);
        trli_digest_bytes(digest, &p->factor, sizeof p->factor);
        if (!p->pass) continue;
        add_pass(digest, p->pass);
        add_numbers(digest, 1, &p->to_result);
        trli_digest_bytes(digest, &p->weight, sizeof p->weight);
    }
}

void trli_statement_digest(const trli_statement *s, uint64_t digest[2])
{
    trli_digest_start(digest);
    add_numbers(digest, 3, (const int[]){(int)s->kind, s->layout->grid.dim, s->ninputs});
    switch (s->kind) {
    case TRLI_STATEMENT_OPERATOR:
        add_operator(digest, s->op);
        break;
    case TRLI_STATEMENT_PASS:
        add_pass(digest, s->pass);
        break;
    case TRLI_STATEMENT_FLUX:
        add_numbers(digest, 3, (const int[]){s->flux.limiter, s->flux.axis, (int)s->flux.phi});
        break;
    case TRLI_STATEMENT_COMBINE:
    case TRLI_STATEMENT_ASSIGN:
        break;
    case TRLI_STATEMENT_LAYER:
        add_layer(digest, s);
        break;
    case TRLI_STATEMENT_TERM:
        add_numbers(digest, 3, (const int[]){(int)s->term.kind, (int)s->term.merge, s->term.weighted});
        break;
    }
}
