/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* In place of transform_fftw.c in a build without FFTW: there are no transforms. */
#include "transform_impl.h"

const char *trli_transform_library(void)
{
    return NULL;
}

trl_err trli_transform_create(trl_context *ctx, trli_transform_kind kind, int n, trli_line_pairs pairs,
                              trli_transform **transform)
{
    (void)kind, (void)n, (void)pairs, (void)transform;
    return trl_fail(ctx, TRL_ERR_BUG, NULL, "this build has no FFTW");
}

void trli_transform_destroy(trli_transform **transform)
{
    (void)transform;
}

void trli_transform_line(const trli_transform *transform, bool back, double *line, double *scratch)
{
    (void)transform, (void)back, (void)line, (void)scratch;
}

void trli_transform_row(const trli_transform *transform, bool back, double *from, double *to, double *scratch)
{
    (void)transform, (void)back, (void)from, (void)to, (void)scratch;
}

void trli_transform_lines(const trli_transform *transform, bool back, bool first, double *lines)
{
    (void)transform, (void)back, (void)first, (void)lines;
}

double trli_transform_norm(const trli_transform *transform)
{
    (void)transform;
    return 1;
}

double trli_transform_operations(const trli_transform *transform)
{
    (void)transform;
    return 0;
}
