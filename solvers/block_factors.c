/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Factors of the matrices that couple many unknowns of a point. Few of these react with each other, so most entries are
 * 0, and factors have fewer others than an inverse. Which unknown is eliminated next follows from where entries are
 * (Markowitz 1957), not from their values: rates of reactions and of decay need no rows that change places. */
#include "diagonal_impl.h"
#include "lifecycle_impl.h"

typedef struct factors {
    trli_ir *ir;
    int n;
    trli_ir_value m[TRLI_FACTORS_MOST][TRLI_FACTORS_MOST];
    bool done[TRLI_FACTORS_MOST];
    trli_ir_value enough; /* where all pivots are */
} factors;

static bool has(const factors *f, int i, int j)
{
    return !trli_ir_is_zero(f->ir, f->m[i][j]);
}

/* How many entries the elimination of k may add at most. */
static int cost(const factors *f, int k)
{
    int rows = 0, columns = 0;
    for (int i = 0; i < f->n; ++i) {
        if (i == k || f->done[i]) continue;
        rows += has(f, i, k);
        columns += has(f, k, i);
    }
    return rows * columns;
}

static int choose(const factors *f)
{
    int best = -1, least = 0;
    for (int k = 0; k < f->n; ++k) {
        if (f->done[k] || !has(f, k, k)) continue;
        const int c = cost(f, k);
        if (best >= 0 && c >= least) continue;
        best = k;
        least = c;
    }
    for (int k = 0; k < f->n && best < 0; ++k) /* zero pivots: there are no factors */
        if (!f->done[k]) best = k;
    return best;
}

static void eliminate(factors *f, int k, trli_ir_value unit)
{
    const double rounding = 1e-10;
    trli_ir *ir = f->ir;
    const trli_ir_value least = trli_ir_binary(ir, TRLI_OP_MUL, trli_ir_constant(ir, rounding), unit),
                        enough = trli_ir_binary(ir, TRLI_OP_LT, least, trli_ir_unary(ir, TRLI_OP_ABS, f->m[k][k]));
    f->enough = f->enough < 0 ? enough : trli_ir_select(ir, enough, f->enough, trli_ir_constant(ir, 0));
    f->done[k] = true;
    f->m[k][k] = trli_ir_binary(ir, TRLI_OP_DIV, trli_ir_constant(ir, 1), f->m[k][k]);
    for (int i = 0; i < f->n; ++i) {
        if (f->done[i] || !has(f, i, k)) continue;
        f->m[i][k] = trli_ir_binary(ir, TRLI_OP_MUL, f->m[i][k], f->m[k][k]);
        for (int j = 0; j < f->n; ++j)
            if (!f->done[j] && has(f, k, j))
                f->m[i][j] = trli_ir_binary(ir, TRLI_OP_SUB, f->m[i][j],
                                            trli_ir_binary(ir, TRLI_OP_MUL, f->m[i][k], f->m[k][j]));
    }
}

/* Points that are no unknowns are none in the rows of others, nor are others in theirs. */
static trl_err load(factors *f, trli_solver *s, trli_instance *in, const trli_ir_value *entry, const int *unknown)
{
    trl_err err = TRL_OK;
    for (int i = 0; i < f->n; ++i)
        for (int j = 0; j < f->n; ++j) {
            f->m[i][j] = entry[unknown[i] * s->ask.n + unknown[j]];
            if (i == j || !has(f, i, j)) continue;
            TRL_TRY(trli_solver_masked(s, in, unknown[i], &f->m[i][j]));
            TRL_TRY(trli_solver_masked(s, in, unknown[j], &f->m[i][j]));
        }
done:
    return err;
}

/* Without factors the inverse of the diagonal stays. */
static trl_err store(const factors *f, trli_solver *s, trli_instance *in, const int *unknown)
{
    trl_err err = TRL_OK;
    for (int i = 0; i < f->n; ++i)
        for (int j = 0; j < f->n; ++j) {
            trli_ir_value *value = &s->block_value[unknown[i] * s->ask.n + unknown[j]], own = f->m[i][j];
            if (i != j && !has(f, i, j)) continue;
            if (i == j) TRL_TRY(trli_solver_masked(s, in, unknown[i], &own));
            *value = trli_ir_select(f->ir, f->enough, own,
                                    i == j ? s->inverse_value[unknown[i]] : trli_ir_constant(f->ir, 0));
        }
done:
    return err;
}

trl_err trli_solver_factor(trli_solver *s, trli_instance *in, const trli_ir_value *entry, int count, const int *unknown)
{
    trli_ir *ir = &s->sim->model->ir;
    factors f = {.ir = ir, .n = count, .enough = TRLI_NO_VALUE};
    trl_err err = TRL_OK;
    TRL_TRY(load(&f, s, in, entry, unknown));
    for (int k = 0; k < count; ++k) {
        const int next = choose(&f);
        const trli_ir_value diagonal = entry[unknown[next] * (s->ask.n + 1)];
        eliminate(&f, next,
                  trli_ir_is_zero(ir, diagonal) ? trli_ir_constant(ir, 1) : trli_ir_unary(ir, TRLI_OP_ABS, diagonal));
        s->eliminated[s->neliminated++] = unknown[next];
    }
    err = store(&f, s, in, unknown);
done:
    return err;
}

/* *value less factor times other. */
static void subtract(const trli_solver *s, trli_ir_value *value, trli_ir_value factor, trli_ir_value other)
{
    trli_ir *ir = &s->sim->model->ir;
    if (trli_ir_is_zero(ir, factor) || trli_ir_is_zero(ir, other)) return;
    *value = trli_ir_binary(ir, TRLI_OP_SUB, *value, trli_ir_binary(ir, TRLI_OP_MUL, factor, other));
}

void trli_solver_use_factors(const trli_solver *s, const trli_ir_value *r, trli_ir_value *z)
{
    const int n = s->ask.n, *const order = s->eliminated;
    for (int k = 0; k < s->neliminated; ++k) {
        const int i = order[k];
        z[i] = r[i];
        for (int l = 0; l < k; ++l) subtract(s, &z[i], s->block_value[i * n + order[l]], z[order[l]]);
    }
    for (int k = s->neliminated - 1; k >= 0; --k) {
        const int i = order[k];
        for (int l = k + 1; l < s->neliminated; ++l) subtract(s, &z[i], s->block_value[i * n + order[l]], z[order[l]]);
        if (trli_ir_is_zero(&s->sim->model->ir, z[i])) continue;
        z[i] = trli_ir_binary(&s->sim->model->ir, TRLI_OP_MUL, s->block_value[i * (n + 1)], z[i]);
    }
}
