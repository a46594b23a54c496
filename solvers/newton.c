/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Newton's method. A step goes so far along the correction that the residual falls, or if it does not what the
 * preconditioner makes of it, with the Jacobian of before the step: an estimate of what is left to correct (Deuflhard
 * 2011, 3.3: natural monotonicity). Where a fast reaction has come to balance its residual is a rounding error, and
 * after a step of the slow unknowns, squared, many times larger than all others, though the next step takes it away. */
#include <math.h>

#include "memory_impl.h"
#include "solve_ahead_impl.h"
#include "solve_errors_impl.h"
#include "solve_look_impl.h"
#include "solve_prepare_impl.h"
#include "solve_run_impl.h"
#include "solve_scale_impl.h"

enum { HALVINGS = 12 };

trl_err trli_newton_compile(trli_solver *s)
{
    const size_t n = (size_t)s->ask.n;
    trli_ir_value *r = NULL, *z = NULL;
    trl_err err = TRL_OK;
    if (s->linear || s->inverse_value[0] < 0) return TRL_OK;
    r = trli_new(s->sim->ctx, n, sizeof *r);
    z = trli_new(s->sim->ctx, n, sizeof *z);
    if (!r || !z) TRL_TRY(trli_no_memory(s->sim->ctx, NULL, "for a solver"));
    TRL_TRY(trli_solver_begin(s, "what is left to correct", &s->estimate));
    trli_solver_read(s, s->r.now, r);
    trli_krylov_precondition(s, r, z);
    err = trli_solver_dot(s, s->estimate, "z.z", z, z, &s->estimated);
done:
    trli_free(r);
    trli_free(z);
    return err;
}

/* How far x goes along c, and what is known of the place that it leaves. */
typedef struct stride {
    double length, residual;
    double left; /* to correct; -1: not known yet */
} stride;

static trl_err go(trli_solver *s, double length, double *norm)
{
    trl_err err = TRL_OK;
    trli_solver_set(s, s->length, length / s->power);
    TRL_TRY(trli_solver_program(s, s->move));
    trli_vector_swap(s, &s->x);
    err = trli_solver_residual(s, norm);
done:
    return err;
}

static trl_err estimate(trli_solver *s, double *left)
{
    const trl_err err = trli_solver_program(s, s->estimate);
    *left = sqrt(trli_solver_scalar(s, s->estimated));
    return err;
}

/* Whether less is left to correct where x is now, whose residual r has. */
static trl_err is_nearer(trli_solver *s, stride *p, double norm, bool *nearer)
{
    double left;
    trl_err err = TRL_OK;
    *nearer = false;
    if (!s->estimate || !isfinite(norm)) return TRL_OK;
    TRL_TRY(estimate(s, &left));
    if (p->left < 0) {
        trli_vector_swap(s, &s->x);
        TRL_TRY(trli_solver_residual(s, &norm));
        TRL_TRY(estimate(s, &p->left));
        trli_vector_swap(s, &s->x);
        TRL_TRY(trli_solver_residual(s, &norm));
    }
    *nearer = left <= (1 - 1e-4 * p->length) * p->left;
done:
    return err;
}

/* Where a step does not get nearer, but the residual was small enough but for what is tolerated, rounding errors are as
 * large: *stuck. */
static trl_err move(trli_solver *s, double target, double *norm, bool *stuck)
{
    stride p = {1, *norm, -1};
    bool nearer = false;
    trl_err err = TRL_OK;
    for (int k = 0; k < HALVINGS && !nearer; ++k, p.length /= 2) {
        TRL_TRY(go(s, p.length, norm));
        nearer = *norm <= (1 - 1e-4 * p.length) * p.residual || *norm <= target;
        if (!nearer) TRL_TRY(is_nearer(s, &p, *norm, &nearer));
        if (!nearer) trli_vector_swap(s, &s->x);
    }
    if (nearer) return TRL_OK;
    *norm = p.residual;
    TRL_TRY(trli_solver_is_rounding(s, *norm, stuck));
    if (!*stuck) err = trli_solver_no_progress(s, *norm, target);
done:
    return err;
}

/* How exactly a step of Newton's method is worth being computed (Eisenstat & Walker 1996, choice 2). */
static double forcing(double norm, double before, double target)
{
    const double ratio = before > 0 ? norm / before : 1, most = 0.1;
    const double eta = fmin(most, 0.9 * ratio * ratio);
    return fmax(eta * norm, 0.5 * target);
}

trl_err trli_newton_run(trli_solver *s, double *norm)
{
    double before = 0, inner;
    bool stuck = false;
    trl_err err = TRL_OK;
    TRL_TRY(trli_solver_watch(s, norm));
    while (!trli_solver_is_solved(s, *norm) && !stuck) {
        const double target = trli_solver_goal(s, *norm);
        if (!isfinite(*norm)) return trli_solver_not_finite(s, "in Newton's method");
        if (s->stats.last_newton == s->settings.newton_iterations) {
            TRL_TRY(trli_solver_is_rounding(s, *norm, &stuck));
            return stuck ? TRL_OK : trli_solver_newton_too_slow(s, *norm, target);
        }
        const double wanted = forcing(*norm, before, target);
        if (s->stats.last_newton > 0) TRL_TRY(trli_solver_follow_constants(s));
        TRL_TRY(trli_solver_balance(s, s->settings.newton_tolerance));
        TRL_TRY(trli_solver_prepare(s));
        s->least = s->at_x = inner = *norm;
        TRL_TRY(trli_solver_solve_linear(s, wanted, &inner));
        before = *norm;
        TRL_TRY(move(s, target, norm, &stuck));
        ++s->stats.last_newton;
        const double power = s->power;
        TRL_TRY(trli_solver_watch(s, norm));
        before *= s->power / power;
    }
done:
    return err;
}
