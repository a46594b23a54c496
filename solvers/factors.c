/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include "factors_impl.h"

#include <klu.h>
#include <math.h>
#include <stdio.h>

#include "context_impl.h"
#include "memory_impl.h"

struct trli_factors {
    int n, room;          /* room: entries that there is memory for */
    double *row, *column; /* [n] powers of two: entries times these of their row and column are about 1 */
    double *value;        /* [room] these */
    klu_common common;
    klu_symbolic *symbolic; /* NULL: none */
    klu_numeric *numeric;   /* likewise */
};

const char *trli_factors_library(void)
{
    static char text[32];
    snprintf(text, sizeof text, "KLU %d.%d.%d", KLU_MAIN_VERSION, KLU_SUB_VERSION, KLU_SUBSUB_VERSION);
    return text;
}

static void drop(trli_factors *f)
{
    if (f->numeric) klu_free_numeric(&f->numeric, &f->common);
    if (f->symbolic) klu_free_symbolic(&f->symbolic, &f->common);
}

static trl_err provide(trl_context *ctx, const trli_columns *c, trli_factors *f)
{
    const int entries = c->begin[c->n];
    if (c->n != f->n) {
        trli_free(f->row);
        trli_free(f->column);
        f->row = trli_new(ctx, (size_t)c->n, sizeof *f->row);
        f->column = trli_new(ctx, (size_t)c->n, sizeof *f->column);
        f->n = f->row && f->column ? c->n : 0;
    }
    if (entries > f->room) {
        trli_free(f->value);
        f->value = trli_new(ctx, (size_t)entries, sizeof *f->value);
        f->room = f->value ? entries : 0;
    }
    return f->n == c->n && f->room >= entries ? TRL_OK : trli_no_memory(ctx, NULL, "for factors of a matrix");
}

static double power_over(double size)
{
    int exponent = 0;
    if (size > 0) frexp(size, &exponent);
    return ldexp(1, -exponent);
}

/* Rows first, then columns: unknowns and equations may have any units. */
static void scale(const trli_columns *c, trli_factors *f)
{
    for (int i = 0; i < c->n; ++i) f->row[i] = 0;
    for (int e = 0; e < c->begin[c->n]; ++e) f->row[c->row[e]] = fmax(f->row[c->row[e]], fabs(c->value[e]));
    for (int i = 0; i < c->n; ++i) f->row[i] = power_over(f->row[i]);
    for (int j = 0; j < c->n; ++j) {
        double size = 0;
        for (int e = c->begin[j]; e < c->begin[j + 1]; ++e) size = fmax(size, f->row[c->row[e]] * fabs(c->value[e]));
        f->column[j] = power_over(size);
        for (int e = c->begin[j]; e < c->begin[j + 1]; ++e)
            f->value[e] = f->row[c->row[e]] * c->value[e] * f->column[j];
    }
}

/* Rounding errors leave pivots where the matrix is singular. */
static bool is_singular(const trli_columns *c, trli_factors *f)
{
    const double most = 1e14;
    if (f->common.status == KLU_SINGULAR || !f->numeric) return true;
    return !klu_condest((int *)c->begin, f->value, f->symbolic, f->numeric, &f->common) || !(f->common.condest < most);
}

trl_err trli_factors_make(trl_context *ctx, const trli_columns *c, double operations, trli_factors **factors,
                          const char **why)
{
    trli_factors *f = *factors;
    trl_err err = TRL_OK;
    *why = NULL;
    if (!f) f = *factors = trli_new(ctx, 1, sizeof *f);
    if (!f) return trli_no_memory(ctx, NULL, "for factors of a matrix");
    drop(f);
    TRL_TRY(provide(ctx, c, f));
    scale(c, f);
    if (!klu_defaults(&f->common)) return trl_fail(ctx, TRL_ERR_BUG, NULL, "KLU cannot begin");
    f->common.scale = 0;
    f->symbolic = klu_analyze(c->n, c->begin, c->row, &f->common);
    if (f->symbolic && f->symbolic->est_flops > operations) {
        *why = "its factors would take too long";
        return TRL_OK;
    }
    if (f->symbolic) f->numeric = klu_factor(c->begin, c->row, f->value, f->symbolic, &f->common);
    if (f->common.status == KLU_OUT_OF_MEMORY) return trli_no_memory(ctx, NULL, "for factors of a matrix");
    if (f->common.status == KLU_TOO_LARGE)
        *why = "its factors would be too large";
    else if (is_singular(c, f))
        *why = "its matrix is singular, or as good as singular";
done:
    return err;
}

void trli_factors_solve(trli_factors *f, double *x)
{
    for (int i = 0; i < f->n; ++i) x[i] *= f->row[i];
    klu_solve(f->symbolic, f->numeric, f->n, 1, x, &f->common);
    for (int i = 0; i < f->n; ++i) x[i] *= f->column[i];
}

void trli_factors_destroy(trli_factors **factors)
{
    trli_factors *f = *factors;
    if (!f) return;
    drop(f);
    trli_free(f->row);
    trli_free(f->column);
    trli_free(f->value);
    trli_free(*factors);
    *factors = NULL;
}
