/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* A linear system, by one method after another. */
#include <limits.h>
#include <math.h>

#include "solve_errors_impl.h"
#include "solve_prepare_impl.h"
#include "solve_run_impl.h"

enum { CYCLES_TRIED = 40, UNSYMMETRIC_TRIED = 60 };

/* Before another method: it begins with c = 0 where c is not x, so r is to be what it was; and with x = 0 where
 * nothing of x is left, or x is hardly better than at the start: what a method in trouble leaves is hard for others. */
static trl_err begin_again(trli_solver *s, double start, double *norm)
{
    const double hardly = 0.01;
    if (!s->linear) return trli_solver_begin_at(s, norm);
    return *norm > hardly * start || trli_krylov_lost(s, *norm) ? trli_solver_begin_at_zero(s, norm) : TRL_OK;
}

/* Where jacobi, too, does not solve, cycles are the last that is left, with all of the iterations, whatever speaks
 * against them; but not in steps, which may be smaller. */
static bool may_insist(const trli_solver *s)
{
    return s->multigrid && !s->cycles && !s->insists && s->method != TRL_SOLVE_DIRECT &&
           s->settings.preconditioner == TRL_PRECONDITIONER_AUTO && !s->takes_given && !s->sim->control.lenient;
}

static const char iterations_failed[] = ", because iterations did not lead to the solution: method lu begins with it";

static trl_err run_method(trli_solver *s, double target, int most, double *norm, int *iterations, bool *broken)
{
    const trli_krylov_type *type = trli_krylov_of(s, s->method);
    s->stats.method = type->words;
    s->stats.preconditioner = trli_solver_preconditioner(s);
    if (s->method == TRL_SOLVE_LU && s->factored)
        s->stats.why = iterations_failed;
    else if (s->stats.why == iterations_failed)
        s->stats.why = NULL;
    s->stalled = *broken = false;
    *iterations = 0;
    const trl_err err = type->run(s, trli_krylov_made(s, type), target, most, iterations, norm, broken);
    s->r_norm = -1;
    s->stats.iterations += *iterations;
    s->stats.last_iterations += *iterations;
    return err;
}

/* If they do not solve either, what jacobi left is what is said. *norm: of r, which has begun from `start`. */
static trl_err insist(trli_solver *s, double target, double start, double *norm)
{
    const trl_solve_method method = s->method;
    const bool stalled = s->stalled;
    int iterations;
    bool broken;
    trl_err err = TRL_OK;
    s->insists = true;
    TRL_TRY(trli_solver_prepare(s));
    s->method = method;
    if (!s->cycles) return TRL_OK;
    TRL_TRY(begin_again(s, start, norm));
    TRL_TRY(run_method(s, target, s->settings.iterations, norm, &iterations, &broken));
    if (*norm <= fmax(target, s->enough)) return TRL_OK;
    s->cycles = false;
    s->stalled = stalled;
    s->stats.method = trli_krylov_of(s, s->method)->words;
    s->stats.preconditioner = trli_solver_preconditioner(s);
done:
    return err;
}

/* The last that is left: factors of the matrix. If these do not solve either, what was before them is said. */
static trl_err factor(trli_solver *s, double target, double start, double *norm)
{
    const trl_solve_method method = s->method;
    const bool stalled = s->stalled, cycles = s->cycles;
    int iterations;
    bool broken;
    trl_err err = TRL_OK;
    s->factored = true;
    s->cycles = false;
    s->method = TRL_SOLVE_LU;
    TRL_TRY(begin_again(s, start, norm));
    TRL_TRY(run_method(s, target, s->settings.iterations, norm, &iterations, &broken));
    if (*norm <= fmax(target, s->enough)) {
        trli_solver_warn_of_factors(s);
        return TRL_OK;
    }
    s->factored = false;
    s->cycles = cycles;
    s->method = method;
    s->stalled = stalled;
    s->stats.method = trli_krylov_of(s, s->method)->words;
    s->stats.preconditioner = trli_solver_preconditioner(s);
    s->stats.why = NULL;
done:
    return err;
}

/* Steps may be smaller. */
static bool may_factor(const trli_solver *s)
{
    return s->made[TRL_SOLVE_LU] && s->settings.method == TRL_SOLVE_AUTO && s->method != TRL_SOLVE_LU &&
           !s->sim->control.lenient;
}

trl_err trli_solver_solve_linear(trli_solver *s, double target, double *norm)
{
    const trli_krylov_type *type = trli_krylov_of(s, s->method);
    const bool may_give_up = s->cycles && !s->insists && s->method != TRL_SOLVE_MULTIGRID &&
                             s->method != TRL_SOLVE_DIRECT && s->settings.preconditioner == TRL_PRECONDITIONER_AUTO;
    const double start = *norm;
    double last;
    int iterations;
    bool broken;
    trl_err err = TRL_OK;
    const int tried = s->krylov == TRL_SOLVE_BICGSTAB ? UNSYMMETRIC_TRIED
                      : trli_solver_is_doubtful(s)    ? CYCLES_TRIED
                                                      : INT_MAX;
    const int most = may_give_up && tried < s->settings.iterations ? tried : s->settings.iterations;
    s->brought &= type == &trli_krylov_direct;
    TRL_TRY(run_method(s, target, most, norm, &iterations, &broken));
    if (*norm <= fmax(target, s->enough)) return TRL_OK;
    if (s->method == TRL_SOLVE_MULTIGRID && s->made[TRL_SOLVE_BICGSTAB]) {
        s->method = TRL_SOLVE_BICGSTAB; /* cycles alone need not converge where unknowns are coupled or left out */
        TRL_TRY(begin_again(s, start, norm));
        return trli_solver_solve_linear(s, target, norm);
    }
    if (may_give_up) {
        s->cycles = false;
        s->cycles_failed = true;
        s->stats.no_multigrid = trli_cycles_failed;
        TRL_TRY(begin_again(s, start, norm));
        return trli_solver_solve_linear(s, target, norm);
    }
    if (broken && s->settings.method == TRL_SOLVE_AUTO && s->method == TRL_SOLVE_CG) {
        s->method = TRL_SOLVE_BICGSTAB; /* of a linear system it goes on from where cg came to */
        TRL_TRY(begin_again(s, start, norm));
        return trli_solver_solve_linear(s, target, norm);
    }
    last = *norm;
    if (may_insist(s)) TRL_TRY(insist(s, target, start, &last));
    if (!(last <= fmax(target, s->enough)) && may_factor(s)) TRL_TRY(factor(s, target, start, &last));
    if (last <= fmax(target, s->enough)) {
        *norm = last;
        return TRL_OK;
    }
    TRL_TRY(trli_solver_refuse_singular(s, last));
    if (broken && !s->linear && !s->takes_given) return trli_solver_no_step(s);
    if (!isfinite(*norm)) return trli_solver_diverged(s, "while its linear system is solved");
    err = broken       ? trli_solver_broke_down(s, *norm, target, iterations)
          : s->stalled ? trli_solver_stalls(s, *norm, target, iterations)
                       : trli_solver_too_slow(s, *norm, target, iterations);
done:
    return err;
}
