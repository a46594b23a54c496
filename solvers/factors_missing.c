/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* In place of factors.c in a build without SuiteSparse: there are no sparse factors. */
#include <trl_context.h>

#include "factors_impl.h"

const char *trli_factors_library(void)
{
    return NULL;
}

trl_err trli_factors_make(trl_context *ctx, const trli_columns *columns, double operations, trli_factors **factors,
                          const char **why)
{
    (void)columns, (void)operations, (void)factors, (void)why;
    return trl_fail(ctx, TRL_ERR_BUG, NULL, "this build has no SuiteSparse");
}

void trli_factors_solve(trli_factors *factors, double *x)
{
    (void)factors, (void)x;
}

void trli_factors_destroy(trli_factors **factors)
{
    (void)factors;
}
