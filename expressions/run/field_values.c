/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <math.h>

#include <trl_limiter_body.h>

#include "cache_impl.h"
#include "field_values_impl.h"

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
    case TRLI_STATEMENT_TERM:
        add_numbers(digest, 3, (const int[]){(int)s->term.kind, (int)s->term.merge, s->term.weighted});
        break;
    }
}
