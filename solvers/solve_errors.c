/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Messages of solvers, with what may help. */
#include <inttypes.h>

#include "solve_errors_impl.h"

/* Steps that can be shorter are, where there is no solution: this is no error then. */
static bool may_fail(const trli_solver *s)
{
    trli_control *c = &s->sim->control;
    c->unsolved |= c->lenient;
    return c->lenient;
}

/* What helps where central differences meet a wind that is strong beside what diffuses over a cell: neighbours count
 * with both signs then. */
static const char *remedy(const trli_solver *s, const char *other)
{
    if (!s->multigrid || !trli_multigrid_has_both_signs(s->multigrid)) return other;
    return "neighbours count with both signs, as in central differences of first derivatives where a cell is longer "
           "than twice the diffusivity over the speed: take fluxes from upwind (advective_flux(p, u, upwind)), or more "
           "cells";
}

trl_err trli_solver_not_finite(const trli_solver *s, const char *when)
{
    if (may_fail(s)) return TRL_ERR_NUMERICS;
    return trl_fail(s->sim->ctx, TRL_ERR_NUMERICS, &s->ask.place,
                    "the residual of '%s' is not finite %s, at step %" PRId64 ", t = %.10g: %s", s->ask.names, when,
                    s->step, s->time,
                    remedy(s, "look at the equation's coefficients, and at its initial values, the first guess"));
}

trl_err trli_solver_too_slow(const trli_solver *s, double norm, double target, int iterations)
{
    if (may_fail(s)) return TRL_ERR_NUMERICS;
    return trl_fail(s->sim->ctx, TRL_ERR_NUMERICS, &s->ask.place,
                    "%s with preconditioner %s did not solve for '%s' in %d iterations, at step %" PRId64
                    ", t = %.10g: the residual is %.3g, and %.3g is wanted; %s",
                    s->stats.method, s->stats.preconditioner, s->ask.names, iterations, s->step, s->time, norm, target,
                    remedy(s, "allow more iterations, or use another method or preconditioner, under 'solvers'"));
}

trl_err trli_solver_broke_down(const trli_solver *s, double norm, double target, int iterations)
{
    const char *what = "use method gmres, or another preconditioner";
    if (may_fail(s)) return TRL_ERR_NUMERICS;
    if (s->method == TRL_SOLVE_CG) what = "the operator may be symmetric but of both signs: use method gmres";
    if (s->method == TRL_SOLVE_PIPELINED_CG)
        what = "rounding errors may have added up in its products, or the operator is symmetric but of both signs: use "
               "method cg, or gmres";
    return trl_fail(s->sim->ctx, TRL_ERR_NUMERICS, &s->ask.place,
                    "%s broke down after %d iterations for '%s', at step %" PRId64
                    ", t = %.10g: the residual is %.3g, and %.3g is wanted; %s",
                    s->stats.method, iterations, s->ask.names, s->step, s->time, norm, target, remedy(s, what));
}

trl_err trli_solver_no_progress(const trli_solver *s, double norm, double target)
{
    if (may_fail(s)) return TRL_ERR_NUMERICS;
    return trl_fail(s->sim->ctx, TRL_ERR_NUMERICS, &s->ask.place,
                    "the residual of '%s' stays at %.3g, and %.3g is wanted, at step %" PRId64
                    ", t = %.10g: %s; use a larger tolerance under 'solvers'",
                    s->ask.names, norm, target, s->step, s->time,
                    s->linear ? "double precision does not reach so far, or the system has no solution"
                              : "Newton's method does not get on, so double precision does not reach so far, or a "
                                "first guess nearer to a solution is needed (initial)");
}

trl_err trli_solver_newton_too_slow(const trli_solver *s, double norm, double target)
{
    if (may_fail(s)) return TRL_ERR_NUMERICS;
    return trl_fail(s->sim->ctx, TRL_ERR_NUMERICS, &s->ask.place,
                    "Newton's method did not solve for '%s' in %d iterations, at step %" PRId64
                    ", t = %.10g: the residual is %.3g, and %.3g is wanted; allow more of them (solvers.*."
                    "newton.iterations), or give a better first guess",
                    s->ask.names, s->stats.last_newton, s->step, s->time, norm, target);
}
