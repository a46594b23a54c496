/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* In place of cvode.c in a build without SUNDIALS: there are no multistep methods. */
#include <trl_context.h>

#include "cvode_impl.h"

const char *trli_cvode_library(void)
{
    return NULL;
}

trl_err trli_cvode_create(const trli_cvode_request *request, trli_cvode **cvode)
{
    *cvode = NULL;
    return trl_fail(request->ctx, TRL_ERR_BUG, NULL, "this build has no SUNDIALS");
}

void trli_cvode_destroy(trli_cvode **cvode)
{
    (void)cvode;
}

double *trli_cvode_values(trli_cvode *cvode)
{
    (void)cvode;
    return NULL;
}

trl_err trli_cvode_begin(trli_cvode *cvode, double t, double dt)
{
    (void)cvode, (void)t, (void)dt;
    return TRL_ERR_BUG;
}

trl_err trli_cvode_step(trli_cvode *cvode, double toward, bool land, double *t, double *next_dt, const char **message)
{
    (void)cvode, (void)toward, (void)land, (void)t, (void)next_dt, (void)message;
    return TRL_ERR_BUG;
}

trl_err trli_cvode_between(trli_cvode *cvode, double t, const double **values)
{
    (void)cvode, (void)t, (void)values;
    return TRL_ERR_BUG;
}

void trli_cvode_get_stats(const trli_cvode *cvode, trli_cvode_stats *stats)
{
    (void)cvode;
    *stats = (trli_cvode_stats){0};
}
