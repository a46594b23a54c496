/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Messages of solvers, with what may help. */
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "context_impl.h"
#include "flow_impl.h"
#include "multigrid_impl.h"
#include "solve_errors_impl.h"
#include "solve_scale_impl.h"

/* Where a solution is that of a state which does not change. */
#define STEPS_IN_TIME "let steps in time come to it (ddt in place of solve, method beuler with a tolerance)"

static bool is_lenient(const trli_solver *s)
{
    return s->sim->control.lenient;
}

trl_err trli_solver_fails(const trli_solver *s, const char *format, ...)
{
    trli_control *c = &s->sim->control;
    va_list args;
    va_start(args, format);
    vsnprintf(c->why, sizeof c->why, format, args);
    va_end(args);
    c->why_place = &s->ask.place;
    c->unsolved |= c->lenient;
    return c->lenient ? TRL_ERR_NUMERICS : trl_fail(s->sim->ctx, TRL_ERR_NUMERICS, c->why_place, "%s", c->why);
}

/* A norm as it is without the power that it is found with. */
static double plain(const trli_solver *s, double norm)
{
    return norm / s->power;
}

trl_err trli_solver_inconsistent(const trli_solver *s, int i, double mean)
{
    struct trli_flow *flow = s->sim->flow;
    mean = plain(s, mean);
    if (s->ask.unbalanced && flow->may_differ) {
        flow->differs = true;
        return TRL_ERR_NUMERICS;
    }
    const char *name = s->sim->model->variable[s->ask.variable[i]].name;
    const double *spacing = s->sim->layout->grid.spacing;
    if (s->ask.unbalanced) {
        const double amount =
            -mean * s->points[i] * spacing[0] * spacing[1] * spacing[2] / s->sim->frame->scalar[*s->ask.scaled_by];
        return trli_solver_fails(
            s, "no '%s' solves its equation at step %" PRId64 ", t = %.10g: %s %s than %s by %.6g; %s", name, s->step,
            *s->ask.balanced_at, s->ask.unbalanced, amount < 0 ? "less" : "more", s->ask.than_what, fabs(amount),
            s->ask.balance);
    }
    return trli_solver_fails(
        s,
        "no '%s' solves its equation at step %" PRId64 ", t = %.10g: the conditions on its sides leave it "
        "free up to a constant, and then both sides of the equation need the same mean; they differ by "
        "%.6g, of a norm of %.6g. Balance sources and boundary fluxes, or give one side a dirichlet or "
        "robin condition",
        name, s->step, s->time, -mean, plain(s, s->reference));
}

trl_err trli_solver_joint_inconsistent(const trli_solver *s, const double *weight, double mean)
{
    char sum[256] = "";
    for (int i = 0; i < s->ask.n; ++i) {
        const size_t used = strlen(sum);
        const char *sign = weight[i] < 0 ? used ? " - " : "-" : used ? " + " : "";
        char factor[32] = "";
        if (weight[i] == 0) continue;
        if (fabs(fabs(weight[i]) - 1) > 1e-6) snprintf(factor, sizeof factor, "%.6g*", fabs(weight[i]));
        snprintf(sum + used, sizeof sum - used, "%s%s%s", sign, factor,
                 s->sim->model->variable[s->ask.variable[i]].name);
    }
    return trli_solver_fails(
        s,
        "no '%s' solves its equation at step %" PRId64 ", t = %.10g: in the sum of the equations of %s over all points "
        "unknowns cancel, and then both sides of it need the same mean; they differ by %.6g, of a norm of %.6g. "
        "Balance sources and boundary fluxes, give one side a dirichlet or robin condition, or look for an equation "
        "that follows from others",
        s->ask.names, s->step, s->time, sum, -plain(s, mean), plain(s, s->reference));
}

trl_err trli_solver_has_null_space(const trli_solver *s, double left)
{
    return trli_solver_fails(
        s,
        "no '%s' solves its equation at step %" PRId64
        ", t = %.10g: a residual of %.3g is left, where that of zero is %.3g: %s",
        s->ask.names, s->step, s->time, plain(s, left), plain(s, s->reference),
        s->ask.cut_off ? s->ask.cut_off
                       : "the equation is singular: there are values that add nothing to it, and sources that do not "
                         "suit them. Look for a part of the domain that a mask or coefficients of 0 cut off from all "
                         "dirichlet and robin conditions, and balance sources and fluxes there; for constants that "
                         "several unknowns may have together; or for an oscillation that fits between the sides");
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

/* Of an implicit step, whose operator has 1 beside dt times derivatives: any method solves it once dt is small. */
static const char *smaller_dt(const trli_solver *s, bool of_two)
{
    if (!s->ask.steps || is_lenient(s)) return ""; /* the latter take one anyway */
    if (s->sim->problem->time.adaptive) return of_two ? "take a smaller dt.min, or " : "take a smaller dt.min, ";
    return of_two ? "take a smaller dt, or " : "take a smaller dt, ";
}

/* Whether an unknown is not in its own equation, where rows are known: bicgstab may break down at the start then. */
static bool lacks_own(const trli_solver *s)
{
    bool lacks = false;
    for (int i = s->ask.n; s->ask.n > 1 && s->bounded && i < 2 * s->ask.n; ++i)
        lacks |= s->bound_scalar[i] < 0 && s->bound_number[i] == 0;
    return lacks;
}

/* In place of one for linear systems that does not come to the solution. */
static const char *another_method(const trli_solver *s, char *text, size_t size)
{
    const int enough = 200, most = s->settings.iterations;
    const char *other = s->inverse_value[0] >= 0 ? ", or another preconditioner" : "";
    if (s->pseudo_time) return "method auto";
    if (s->method == TRL_SOLVE_GMRES)
        snprintf(text, size, "a larger restart (it is %d)%s", s->settings.restart, other);
    else if (s->method == TRL_SOLVE_BICGSTAB)
        snprintf(text, size, "method gmres with a large restart (restart: %d)%s", most < enough ? most : enough,
                 lacks_own(s) ? "" : other);
    else
        snprintf(text, size, "another method or preconditioner");
    return text;
}

/* What may help where a method goes astray. Whether the operator of a linear system is singular was looked at before,
 * if the method could tell. */
static const char *other_ways(const trli_solver *s, char *text, size_t size)
{
    char method[128];
    snprintf(text, size, "%suse %s, under 'solvers'%s", smaller_dt(s, true), another_method(s, method, sizeof method),
             s->ask.steps ? "" : "; or the equation is singular, and has no solution");
    return text;
}

/* Whether cycles may be better: where auto has the choice it does not take them. */
static bool may_have_cycles(const trli_solver *s)
{
    const bool chosen = s->settings.preconditioner == TRL_PRECONDITIONER_AUTO && !trli_multigrid_unasked(s);
    return !s->cycles && !s->cycles_failed && !chosen && !s->pseudo_time && !trli_multigrid_missing(s);
}

trl_err trli_solver_not_finite(const trli_solver *s, const char *when)
{
    char cause[400] = "";
    trl_err err = TRL_OK;
    if (!is_lenient(s)) TRL_TRY(trli_solver_find_cause(s, &s->r, cause, sizeof cause));
    err = trli_solver_fails(s, "the residual of '%s' is not finite %s, at step %" PRId64 ", t = %.10g%s%c %s",
                            s->ask.names, when, s->step, s->time, cause, *cause ? ';' : ':',
                            remedy(s, s->ask.finite
                                          ? s->ask.finite
                                          : "look at the equation's coefficients, and at its initial values, the "
                                            "first guess"));
done:
    return err;
}

trl_err trli_solver_diverged(const trli_solver *s, const char *when)
{
    char what[400], ways[320];
    snprintf(what, sizeof what, "the method diverged: look for coefficients that are not finite; else %s",
             other_ways(s, ways, sizeof ways));
    return trli_solver_fails(s, "the residual of '%s' is not finite %s, at step %" PRId64 ", t = %.10g: %s",
                             s->ask.names, when, s->step, s->time, remedy(s, what));
}

trl_err trli_solver_grows(const trli_solver *s, double norm, double best)
{
    return trli_solver_fails(
        s,
        "steps in pseudo-time do not solve for '%s', at step %" PRId64 ", t = %.10g: the residual grows from "
        "%.3g to %.3g however small they are, as where a rate of the equation has the sign of growth; %s",
        s->ask.names, s->step, s->time, plain(s, best), plain(s, norm), remedy(s, "use method auto"));
}

trl_err trli_solver_singular(const trli_solver *s, bool nan)
{
    const char *first = s->linear ? "" : " at its first guess";
    bool masked = false;
    if (s->looked && is_lenient(s))
        return trli_solver_fails(s, "the derivative of the equation of '%s' is %s", s->ask.names,
                                 nan ? "not finite" : "zero");
    for (int i = 0; i < s->ask.n; ++i) masked |= s->sim->model->variable[s->ask.variable[i]].mask != NULL;
    if (s->all_points == 0 && !masked)
        return trli_solver_fails(
            s,
            "there is no point at which to solve for '%s': dirichlet conditions set all that there are. "
            "Take more cells between these sides, or give the values by an expression",
            s->ask.names);
    if (s->all_points == 0)
        return trli_solver_fails(
            s,
            "there is no point at which to solve for '%s': its mask is 0 everywhere, at t = %.10g. Let the "
            "mask be 1 where the equation holds; if it is to hold nowhere, give the values by an expression",
            s->ask.names, s->time);
    if (nan) {
        char cause[400];
        const trl_err err = trli_solver_find_cause(s, &s->q, cause, sizeof cause);
        if (err != TRL_OK) return err;
        return trli_solver_fails(
            s, "the derivative of the equation of '%s' is not finite%s%s%c look at its coefficients%s", s->ask.names,
            first, cause, *cause ? ';' : ':', s->linear ? "" : ", or begin with another guess (initial)");
    }
    return trli_solver_fails(s, "the equation of '%s' is singular%s: nothing in it changes with its unknown%s",
                             s->ask.names, first, s->linear ? "" : " there; begin with another one (initial)");
}

trl_err trli_solver_too_slow(const trli_solver *s, double norm, double target, int iterations)
{
    const double much = 100;
    char what[480], other[320];
    if (!(norm <= much * s->reference))
        snprintf(what, sizeof what, "that is much more than of zero, so more iterations will not help: %s",
                 other_ways(s, other, sizeof other));
    else if (!s->linear && s->stats.singular)
        snprintf(what, sizeof what,
                 "the derivative of its equation leaves it free up to a constant, so there may be no solution: balance "
                 "sources and boundary fluxes, or give one side a dirichlet or robin condition; else allow more "
                 "iterations");
    else if (may_have_cycles(s))
        snprintf(what, sizeof what, "%suse preconditioner multigrid, or allow more iterations, under 'solvers'",
                 smaller_dt(s, false));
    else
        snprintf(what, sizeof what, "%sallow more iterations, or use %s, under 'solvers'%s", smaller_dt(s, false),
                 another_method(s, other, sizeof other),
                 s->pseudo_time && !s->linear && !s->ask.steps ? "; or " STEPS_IN_TIME : "");
    return trli_solver_fails(s,
                             "%s with preconditioner %s did not solve for '%s' in %d iterations, at step %" PRId64
                             ", t = %.10g: the residual is %.3g, and %.3g is wanted; %s",
                             s->stats.method, s->stats.preconditioner, s->ask.names, iterations, s->step, s->time,
                             plain(s, norm), plain(s, target), remedy(s, what));
}

void trli_solver_warn_of_factors(trli_solver *s)
{
    if (s->warned) return;
    s->warned = true;
    trl_warn(s->sim->ctx, &s->ask.place,
             "iterations did not lead to the solution for '%s', at step %" PRId64 ", t = %.10g, which sparse factors "
             "then gave; %s",
             s->ask.names, s->step, s->time, remedy(s, "method lu, under 'solvers', begins with these"));
}

trl_err trli_solver_stalls(const trli_solver *s, double norm, double target, int iterations)
{
    const bool bicgstab = s->inverse_value[0] >= 0 && !lacks_own(s);
    const bool cycles = may_have_cycles(s);
    char what[200];
    snprintf(what, sizeof what, "%suse a larger restart (it is %d)%s%s, under 'solvers'", smaller_dt(s, true),
             s->settings.restart,
             !bicgstab             ? ""
             : s->cycles || cycles ? ", method bicgstab"
                                   : ", or method bicgstab",
             s->cycles ? ", or preconditioner jacobi"
             : cycles  ? ", or preconditioner multigrid"
                       : "");
    return trli_solver_fails(s,
                             "gmres with preconditioner %s does not get on for '%s', at step %" PRId64
                             ", t = %.10g: the residual stagnates at %.3g after %d iterations, and %.3g is wanted; %s",
                             s->stats.preconditioner, s->ask.names, s->step, s->time, plain(s, norm), iterations,
                             plain(s, target), remedy(s, what));
}

trl_err trli_solver_broke_down(const trli_solver *s, double norm, double target, int iterations)
{
    const bool pipelined = s->method == TRL_SOLVE_PIPELINED_CG;
    char what[400], other[320];
    if (s->method == TRL_SOLVE_MULTIGRID)
        snprintf(what, sizeof what,
                 "cycles alone lose more than they gain here: use method cg or bicgstab with preconditioner multigrid");
    else if (s->method == TRL_SOLVE_CG || pipelined)
        snprintf(what, sizeof what, "%sthe operator may be symmetric but of both signs: %suse method %sgmres",
                 pipelined ? "rounding errors may have added up in its products, or " : "", smaller_dt(s, true),
                 pipelined ? "cg, or " : "");
    else
        snprintf(what, sizeof what, "%s%s",
                 s->method == TRL_SOLVE_GMRES ? "no vector of its basis makes it smaller: " : "",
                 other_ways(s, other, sizeof other));
    return trli_solver_fails(s,
                             "%s broke down after %d iterations for '%s', at step %" PRId64
                             ", t = %.10g: the residual is %.3g, and %.3g is wanted; %s",
                             s->stats.method, iterations, s->ask.names, s->step, s->time, plain(s, norm),
                             plain(s, target), remedy(s, what));
}

/* What a step of Newton's method that is not found, or leads nowhere, may have met. */
static const char *no_root(const trli_solver *s)
{
    if (s->ask.steps && s->sim->problem->time.adaptive)
        return is_lenient(s) ? "a smaller dt is tried" : "take a smaller dt.min, unless there is no solution at all";
    return s->ask.steps ? "take a smaller dt, unless there is no solution at all"
                        : "there may be no solution; if there is one, begin nearer to it (initial), or " STEPS_IN_TIME;
}

trl_err trli_solver_no_step(const trli_solver *s)
{
    return trli_solver_fails(
        s,
        "Newton's method does not get on for '%s', at step %" PRId64
        ", t = %.10g: the residual is %.3g, and %.3g is wanted, but %s finds no step to take, as where the "
        "derivative of the equation is singular: %s",
        s->ask.names, s->step, s->time, plain(s, s->at_x), plain(s, s->fine), s->stats.method, no_root(s));
}

trl_err trli_solver_is_flat(const trli_solver *s, int i, double mean)
{
    return trli_solver_fails(
        s,
        "Newton's method finds no step to take for '%s', at step %" PRId64
        ", t = %.10g: at the present values its equation does not change with constants that are added to "
        "it, and then both sides need the same mean; they differ by %.6g, of a norm of %.6g: %s",
        s->sim->model->variable[s->ask.variable[i]].name, s->step, s->time, -plain(s, mean), plain(s, s->reference),
        no_root(s));
}

/* Whether rounding errors of the equation's terms, that products with its derivative tell the sizes of, may be as large
 * as a residual. Collective: yes. */
static trl_err find_whether_rounding(const trli_solver *s, double norm, bool *rounding)
{
    const double many = 1e4 * DBL_EPSILON, far = 1e-3;
    double largest;
    const trl_err err = trli_solver_find_largest_x(s, &largest);
    *rounding = norm <= many * (s->reference + s->scale * largest);
    *rounding &= s->linear || norm <= far * s->reference; /* else Newton's method has gone astray to large values */
    return err;
}

trl_err trli_solver_no_progress(const trli_solver *s, double norm, double target)
{
    bool rounding = false;
    char other[320];
    trl_err err = TRL_OK;
    if (!is_lenient(s)) TRL_TRY(find_whether_rounding(s, norm, &rounding));
    const char *reason = rounding    ? "double precision does not reach so far: use a larger tolerance, under 'solvers'"
                         : s->linear ? other_ways(s, other, sizeof other)
                                     : no_root(s);
    err = trli_solver_fails(
        s, "the residual of '%s' stays at %.3g, and %.3g is wanted, at step %" PRId64 ", t = %.10g: %s%s", s->ask.names,
        plain(s, norm), plain(s, target), s->step, s->time, s->linear ? "" : "Newton's method does not get on; ",
        reason);
done:
    return err;
}

trl_err trli_solver_newton_too_slow(const trli_solver *s, double norm, double target)
{
    return trli_solver_fails(s,
                             "Newton's method did not solve for '%s' in %d iterations, at step %" PRId64
                             ", t = %.10g: the residual is %.3g, and %.3g is wanted; allow more of them (solvers.*."
                             "newton.iterations), or %s",
                             s->ask.names, s->stats.last_newton, s->step, s->time, plain(s, norm), plain(s, target),
                             s->ask.steps
                                 ? (s->sim->problem->time.adaptive ? "take a smaller dt.min" : "take a smaller dt")
                                 : "begin nearer to a solution (initial), if there is one");
}
