/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include "factors_impl.h"

#include <klu.h>
#include <math.h>
#include <stdio.h>

#include "context_impl.h"
#include "memory_impl.h"

struct trli_factors {
    int n;
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

static const char singular[] = "its matrix is singular, or as good as singular";

static void drop(trli_factors *f)
{
    if (f->numeric) klu_free_numeric(&f->numeric, &f->common);
    if (f->symbolic) klu_free_symbolic(&f->symbolic, &f->common);
}

trl_err trli_factors_make(trl_context *ctx, const trli_columns *c, double operations, trli_factors **factors,
                          const char **why)
{
    trli_factors *f = *factors;
    *why = NULL;
    if (!f) f = *factors = trli_new(ctx, 1, sizeof *f);
    if (!f) return trli_no_memory(ctx, NULL, "for factors of a matrix");
    drop(f);
    f->n = c->n;
    if (!klu_defaults(&f->common)) return trl_fail(ctx, TRL_ERR_BUG, NULL, "KLU cannot begin");
    f->symbolic = klu_analyze(c->n, c->begin, c->row, &f->common);
    if (f->symbolic && f->symbolic->est_flops > operations)
        *why = "its factors would take too long";
    else if (f->symbolic)
        f->numeric = klu_factor(c->begin, c->row, c->value, f->symbolic, &f->common);
    if (*why) return TRL_OK;
    if (f->common.status == KLU_OUT_OF_MEMORY) return trli_no_memory(ctx, NULL, "for factors of a matrix");
    if (f->common.status == KLU_TOO_LARGE) *why = "its factors would be too large";
    if (f->common.status == KLU_SINGULAR || (!*why && !f->numeric)) *why = singular;
    if (!*why && !(klu_rcond(f->symbolic, f->numeric, &f->common) && f->common.rcond > 1e-15)) *why = singular;
    return TRL_OK;
}

void trli_factors_solve(trli_factors *f, double *x)
{
    klu_solve(f->symbolic, f->numeric, f->n, 1, x, &f->common);
}

void trli_factors_destroy(trli_factors **factors)
{
    if (*factors) drop(*factors);
    trli_free(*factors);
    *factors = NULL;
}
