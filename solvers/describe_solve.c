/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The plan's lines about what is solved. */
#include <inttypes.h>

#include "describe_impl.h"

void trli_describe_solvers(const trli_listing *l)
{
    for (int i = 0; i < trl_simulation_solvers(l->sim); ++i) {
        const trl_solve_stats *s = trl_simulation_solver(l->sim, i);
        trli_listing_say(l, "solve        %s: a %s system%s", s->unknowns, s->linear ? "linear" : "nonlinear",
                         !s->linear    ? ", by Newton's method with products of the exact Jacobian"
                         : s->singular ? ""
                                       : ", whose matrix is applied, not stored");
        if (s->singular) trli_listing_say(l, "  constants are in its null space: the mean of the first guess is kept");
        if (s->solves == 0) continue;
        trli_listing_say(l, "  %s with preconditioner %s%s: %d iterations, residual %.3g of %.3g", s->method,
                         s->preconditioner, s->why ? s->why : "", s->last_iterations, s->last_residual,
                         s->last_reference);
    }
}
