/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Solving: from where, to which residual, by which methods, and what is said when there is no solution. */
#include <float.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>

#include "direct_impl.h"
#include "first_guess_impl.h"
#include "pseudo_time_impl.h"
#include "solve_ahead_impl.h"
#include "solve_errors_impl.h"
#include "solve_look_impl.h"
#include "solve_prepare_impl.h"
#include "solve_run_impl.h"
#include "solve_scale_impl.h"

enum { LINEAR_ROUNDS = 8, LOOK_EVERY = 8 };

/* ---- residuals ---- */

/* What its program has found. */
static void read_residual(trli_solver *s, const trli_residual *r, double *norm)
{
    *norm = s->r_norm = trli_solver_norm(s, trli_solver_scalar(s, r->rr));
    if (r->size >= 0) {
        s->size = trli_solver_norm(s, trli_solver_scalar(s, r->size));
        s->sized_step = s->step;
    }
    s->error = r->error < 0 ? 0 : trli_solver_norm(s, trli_solver_scalar(s, r->error));
    for (int i = 0; i < s->ask.n; ++i) s->r_sum[i] = trli_solver_scalar(s, r->sum[i]);
}

static trl_err find_residual(trli_solver *s, const trli_residual *r, double *norm)
{
    const bool scaled = s->scaled;
    trl_err err = TRL_OK;
    if (scaled) TRL_TRY(trli_solver_scale_correction(s, 1 / s->power));
    TRL_TRY(trli_solver_program(s, r->program));
    read_residual(s, r, norm);
    if (s->power != 1) TRL_TRY(trli_solver_scale_residual(s, s->power, norm));
    if (scaled) err = trli_solver_scale_correction(s, s->power);
done:
    return err;
}

trl_err trli_solver_residual(trli_solver *s, double *norm)
{
    return find_residual(s, s->residual_alone.program ? &s->residual_alone : &s->residual, norm);
}

/* Residuals that are no more than this may be what the least numbers, which have few digits, are rounded by. */
static const double least_residual = 0x1p-1040;

/* The residual that is left where nothing but rounding errors is. */
static double lost_to_rounding(const trli_solver *s)
{
    return s->size >= 0 && isfinite(s->size) ? 2 * DBL_EPSILON * s->size * s->power : 0;
}

/* Whether a solution need not be looked at: one of the same operator, by the same method, was what was wanted, at the
 * start of the step, or so much so that it will be in further steps. In some of these one is looked at all the same. */
static bool trusts(const trli_solver *s)
{
    const bool sure = s->sure && s->step % LOOK_EVERY != 0;
    return s->trusted && s->power == 1 && (s->trusted_step == s->step || sure) && s->method == s->trusted_method &&
           s->trusted_diagonal == s->ndiagonals;
}

/* After a solution that was looked at. inner: the residual by the method: a direct solution is to come below what is
 * wanted, conjugate gradients are to know how far they have come. Only systems of many solves in a step have a size. */
static void judge_trust(trli_solver *s, double norm, double inner, double target)
{
    const double enough = 0.1, more = 1e-3;
    const bool direct = s->method == TRL_SOLVE_DIRECT, cg = s->method == TRL_SOLVE_CG;
    const double off = direct ? norm : fabs(norm - inner);
    s->trusted = s->residual_alone.program && (direct || (cg && s->residual_alone.error < 0)) && off <= enough * target;
    s->sure = off <= more * target;
    s->trusted_step = s->step;
    s->trusted_method = s->method;
    s->trusted_diagonal = s->ndiagonals;
}

/* Whether a residual is no rounding error, however large numbers have become in a few steps. */
static bool is_clear(const trli_solver *s, double norm)
{
    return norm > 1e3 * lost_to_rounding(s);
}

static trl_err clear(trli_solver *s)
{
    const trl_err err = trli_solver_program(s, s->zero);
    trli_vector_swap(s, &s->x);
    s->brought = false;
    return err;
}

/* Whether a norm says how large others are. */
static bool is_known(double reference)
{
    return isfinite(reference) && reference != 0;
}

/* Whether a solve of the step has found a size by which rounding errors are much less than what is wanted, even if
 * numbers have become larger since. reference: the residual of zero. */
static bool is_sized(const trli_solver *s, double reference)
{
    const bool finer = s->ask.finer > 0 && s->settings.absolute == 0 && s->ask.finer < s->settings.tolerance;
    const double wanted =
        fmax((finer ? s->ask.finer : s->settings.tolerance) * reference, s->settings.absolute * s->power);
    return s->sized_step == s->step && wanted > 1e2 * lost_to_rounding(s);
}

/* The residual of x; points on sides are set, which products may read. The method may begin with it before the host
 * takes its sums. sized: find the size, too. *reference: the residual of zero, if that is known. */
static trl_err find_residual_of_guess(trli_solver *s, bool sized, double *reference, double *norm)
{
    const trli_residual *r = sized ? &s->residual : &s->residual_alone;
    bool due;
    trl_err err = TRL_OK;
    if (s->power != 1) return find_residual(s, r, norm);
    TRL_TRY(trli_solver_program_later(s, r->program, &due));
    if (due) TRL_TRY(trli_solver_begin_method(s));
    TRL_TRY(trli_solver_take(s, r->program, due));
    if (due) err = trli_check_passed_step(s->sim);
    read_residual(s, r, norm);
    if (r->zero >= 0) *reference = trli_solver_norm(s, trli_solver_scalar(s, r->zero));
done:
    return err;
}

/* Whether a norm is one of rounding errors of ordinary numbers, as that of 0 is where a flow has no divergence. */
static bool is_of_rounding(const trli_solver *s, double norm)
{
    const double lost = s->sized_step == s->step ? lost_to_rounding(s) : 0;
    return norm <= lost && trli_norm_is_ordinary(lost);
}

/* The residual of zero, which r has, is not to be lost to its squares. */
static trl_err use_power(trli_solver *s, double *norm)
{
    double ratio;
    if (trli_norm_is_ordinary(*norm) || is_of_rounding(s, *norm)) return TRL_OK;
    s->ahead = false;
    return trli_solver_choose_power(s, norm, &ratio);
}

/* The same where both residuals have come together, and r has that of the guess. */
static trl_err use_power_of_zero(trli_solver *s, double *reference, double *norm)
{
    double ratio, before = *norm;
    trl_err err = TRL_OK;
    if (trli_norm_is_ordinary(*reference) || is_of_rounding(s, *reference)) return TRL_OK;
    s->ahead = false;
    TRL_TRY(trli_solver_choose_power(s, norm, &ratio));
    if (before == 0 && *norm == 0) return TRL_OK; /* the guess is the solution */
    s->power = 1;
    TRL_TRY(find_residual(s, &s->of_zero, reference));
    TRL_TRY(use_power(s, reference));
    err = find_residual(s, &s->residual, norm);
done:
    return err;
}

/* A guess that is so far off is none, if there is another one. */
static trl_err use_power_of_guess(trli_solver *s, double *reference, double *norm)
{
    const double before = s->power, far = 1e24; /* times an ordinary norm its square is a number */
    double ratio;
    trl_err err = TRL_OK;
    if (!is_known(*reference)) {
        TRL_TRY(use_power(s, norm));
        *reference = *norm;
    }
    if (trli_norm_is_ordinary(*norm) || *norm <= far * *reference) return TRL_OK;
    TRL_TRY(trli_solver_choose_power(s, norm, &ratio));
    *reference *= ratio;
    if (!s->linear || ratio == 1) return TRL_OK;
    s->power = before;
    *reference /= ratio;
    TRL_TRY(clear(s));
    err = find_residual(s, &s->residual, norm);
done:
    return err;
}

/* norm(F(0)), or where that says nothing of the guess; and the residual of the guess, or of zero if that is as good to
 * begin with. at_zero: x is zero, or to be made so. m: of the guess. */
static trl_err find_reference(trli_solver *s, bool from_zero, const trli_measured *m, double *reference, double *norm)
{
    const bool without_x = s->of_zero.program != NULL;
    const trli_residual *sized = without_x ? &s->of_zero : &s->residual;
    const trli_residual *alone = without_x ? &s->of_zero_alone : &s->residual_alone;
    const bool at_once = !alone->program || (from_zero && !trusts(s));
    const trli_residual *of_reference = at_once ? sized : alone;
    const bool ahead = from_zero && !at_once && trli_solver_may_go_ahead(s);
    const bool later = !ahead && !from_zero && without_x; /* it comes with the other one */
    const bool sized_before = later && s->residual_alone.program && is_sized(s, s->reference);
    trl_err err = TRL_OK;
    s->ahead = false;
    if (!ahead && m->told) TRL_TRY(trli_solver_take_means(s, m));
    if (!without_x) TRL_TRY(trli_guess_provide(s));
    if (!without_x) TRL_TRY(clear(s));
    if (ahead) {
        TRL_TRY(trli_solver_go_ahead(s, alone, m));
        read_residual(s, alone, reference);
    } else if (!later) {
        TRL_TRY(find_residual(s, of_reference, reference));
    }
    if (!at_once && from_zero && s->sized_step != s->step && !is_clear(s, *reference))
        TRL_TRY(find_residual(s, sized, reference));
    if (!later) TRL_TRY(use_power(s, reference));
    if (!later) *norm = *reference;
    s->at_zero = !later && from_zero && is_known(*reference);
    if (s->at_zero) goto done;
    TRL_TRY(trli_guess_provide(s));
    if (!without_x) trli_vector_swap(s, &s->x);
    TRL_TRY(find_residual_of_guess(s, !sized_before, reference, norm));
    if (later) TRL_TRY(use_power_of_zero(s, reference, norm));
    if (trli_guess_withdraw(s, *norm, *reference) || (sized_before && !is_sized(s, *reference))) {
        TRL_TRY(find_residual(s, &s->residual, norm));
        s->ahead = false;
    }
    err = use_power_of_guess(s, reference, norm);
done:
    return err;
}

trl_err trli_solver_begin_at(trli_solver *s, double *norm)
{
    bool any = false;
    trl_err err = TRL_OK;
    TRL_TRY(s->takes_given ? find_residual(s, &s->given, norm) : trli_solver_residual(s, norm));
    for (int i = 0; i < s->ask.n; ++i) any |= trli_solver_is_balanced(s, i);
    if (any) err = trli_solver_centre(s);
done:
    return err;
}

trl_err trli_solver_begin_at_zero(trli_solver *s, double *norm)
{
    const trl_err err = clear(s);
    return err == TRL_OK ? trli_solver_begin_at(s, norm) : err;
}

/* Of the errors that a request tolerates. */
static const double share = 0.01;

bool trli_solver_is_solved(const trli_solver *s, double norm)
{
    return norm <= s->fine && s->error <= share;
}

double trli_solver_goal(const trli_solver *s, double norm)
{
    return s->error <= share ? s->fine : fmin(s->fine, 0.5 * share / s->error * norm);
}

trl_err trli_solver_watch(trli_solver *s, double *norm)
{
    const bool enough = trli_norm_is_ordinary(s->fine) && *norm <= s->fine;
    double ratio;
    trl_err err = TRL_OK;
    if (trli_norm_is_ordinary(*norm) || enough || s->reference == 0) return TRL_OK;
    TRL_TRY(trli_solver_choose_power(s, norm, &ratio));
    s->reference *= ratio;
    s->fine *= ratio;
    s->enough *= ratio;
    s->lost *= ratio;
    s->least *= ratio;
done:
    return err;
}

/* Of a linear system, whose c is x: x has the power while a method has it. */
static trl_err scale_x(trli_solver *s)
{
    if (s->power == 1) return TRL_OK;
    s->wanted_mean *= s->power;
    s->scaled = true;
    return s->at_zero ? TRL_OK : trli_solver_scale_correction(s, s->power);
}

static trl_err scale_x_back(trli_solver *s)
{
    if (s->power == 1) return TRL_OK;
    s->wanted_mean /= s->power;
    s->scaled = false;
    return trli_solver_scale_correction(s, 1 / s->power);
}

/* The residual that is computed anew may be larger than that of the method, which adds up rounding errors. */
static trl_err linear(trli_solver *s, double *norm)
{
    double inner;
    bool rounding;
    trl_err err = TRL_OK;
    TRL_TRY(trli_solver_watch(s, norm));
    s->least = *norm;
    if (!trli_solver_is_solved(s, *norm)) TRL_TRY(trli_solver_prepare(s));
    for (int k = 0; !trli_solver_is_solved(s, *norm); ++k) {
        const double before = *norm, target = trli_solver_goal(s, *norm);
        if (!isfinite(*norm))
            return k ? trli_solver_diverged(s, "after its system was solved")
                     : trli_solver_not_finite(s, "at the first guess");
        TRL_TRY(trli_solver_balance(s, s->settings.tolerance));
        TRL_TRY(scale_x(s));
        inner = *norm;
        TRL_TRY(trli_solver_solve_linear(s, 0.9 * target, &inner));
        TRL_TRY(scale_x_back(s));
        if (trusts(s)) {
            *norm = s->method == TRL_SOLVE_DIRECT ? s->stats.last_residual : inner;
            return TRL_OK;
        }
        TRL_TRY(trli_solver_residual(s, norm));
        if (k == 0) judge_trust(s, *norm, inner, target);
        const double power = s->power;
        TRL_TRY(trli_solver_watch(s, norm));
        if (trli_solver_is_solved(s, *norm)) break;
        if (k < LINEAR_ROUNDS && *norm < 0.5 * before * (s->power / power)) continue;
        TRL_TRY(trli_solver_is_rounding(s, *norm, &rounding));
        if (rounding) break;
        if (s->method != TRL_SOLVE_DIRECT || s->settings.method != TRL_SOLVE_AUTO) {
            TRL_TRY(trli_solver_refuse_singular(s, *norm));
            return trli_solver_no_progress(s, *norm, target);
        }
        s->direct_failed = true; /* from where it came to, others go on */
        s->mean_set = false;
        s->stats.no_direct = "rounding errors are too large for it";
        TRL_TRY(trli_solver_prepare(s));
        k = 0;
    }
done:
    return err;
}

/* Nothing but solutions with the same means comes between those of a step where there are many. */
static bool knows_means(const trli_solver *s)
{
    return s->ask.size && s->mean_known && s->mean_step == s->step;
}

/* At the operator, if it may be another one than that which was looked at. */
static trl_err look(trli_solver *s)
{
    bool unknown = trli_solver_is_unknown(s);
    double norm;
    trl_err err = TRL_OK;
    if (!unknown) TRL_TRY(trli_solver_constants_change(s, &unknown));
    if (!unknown) return TRL_OK;
    TRL_TRY(trli_guess_provide(s));
    TRL_TRY(trli_solver_residual(s, &norm)); /* sets points on sides */
    TRL_TRY(trli_solver_look(s));
done:
    return err;
}

static trl_err solve(trli_solver *s, double *mean)
{
    double norm;
    bool directly;
    trli_measured measured = {.mean = mean, .of = s->guess_due};
    trl_err err = TRL_OK;
    s->stats.last_iterations = s->stats.last_newton = 0;
    s->cycles_failed = s->insists = s->direct_failed = s->factored =
        false; /* anew in each solve, so that a restart takes the same way */
    s->brought = s->prepared = s->takes_given = s->scaled = false;
    s->reference /= s->power;
    s->power = 1;
    trli_solver_find_place(s);
    TRL_TRY(look(s));
    s->method = s->settings.method == TRL_SOLVE_AUTO ? s->krylov : s->settings.method; /* likewise */
    if (s->stats.singular && !knows_means(s)) TRL_TRY(trli_solver_measure_means(s, &measured));
    TRL_TRY(trli_solver_choose_start(s, &directly));
    TRL_TRY(trli_guess_begin(s));
    TRL_TRY(find_reference(s, directly, &measured, &s->reference, &norm));
    s->guess_due = false;
    if (!isfinite(norm)) return trli_solver_not_finite(s, "at the first guess");
    const double tolerance = s->linear ? s->settings.tolerance : s->settings.newton_tolerance;
    s->lost = fmax(lost_to_rounding(s), least_residual * s->power);
    s->enough = fmax(fmax(tolerance * s->reference, s->settings.absolute * s->power), s->lost);
    s->fine = s->ask.finer > 0 && s->settings.absolute == 0
                  ? fmin(s->enough, fmax(s->ask.finer * s->reference, s->lost))
                  : s->enough;
    s->mean_set = s->at_zero && s->stats.singular && trli_direct_sets_mean(s->direct);
    s->wanted_mean = s->mean_set ? mean[0] : 0;
    if (s->pseudo_time) {
        if (s->linear) TRL_TRY(scale_x(s));
        TRL_TRY(trli_pseudo_time_run(s, trli_solver_is_solved, &norm));
        if (s->linear) TRL_TRY(scale_x_back(s));
    } else {
        TRL_TRY(s->linear ? linear(s, &norm) : trli_newton_run(s, &norm));
    }
    if (s->at_zero && s->of_zero.program) TRL_TRY(clear(s)); /* that was good enough */
    s->mean_set &= !s->at_zero;
    TRL_TRY(trli_solver_follow_constants(s));
    if (s->stats.singular && !s->mean_set) TRL_TRY(trli_solver_restore_means(s, mean));
    s->mean_known = s->stats.singular;
    s->mean_step = s->step;
    TRL_TRY(trli_guess_note(s));
    trli_solver_note_iterations(s);
    ++s->stats.solves;
    s->stats.last_residual = norm / s->power;
    s->stats.last_reference = s->reference / s->power;
done:
    return err;
}

trl_err trli_solver_run(trli_solver *solver, trl_gidx step, double time)
{
    solver->step = step;
    solver->time = time;
    return solve(solver, solver->mean);
}

/* r has the given right-hand side; c is zero when the method has begun. */
static trl_err solve_given(trli_solver *s, double tolerance)
{
    double norm;
    trl_err err = TRL_OK;
    s->power = 1;
    TRL_TRY(find_residual(s, &s->given, &norm));
    TRL_TRY(use_power(s, &norm));
    s->reference = norm;
    s->lost = least_residual * s->power;
    s->enough = s->fine = fmax(tolerance * norm, s->lost);
    s->mean_set = s->at_zero = s->ahead = false;
    if (s->linear) TRL_TRY(clear(s));
    if (!isfinite(norm)) return trli_solver_not_finite(s, "in a product with the Jacobian");
    TRL_TRY(trli_solver_balance(s, INFINITY));
    if (!s->prepared) TRL_TRY(trli_solver_prepare(s));
    s->least = norm;
    TRL_TRY(trli_solver_solve_linear(s, s->enough, &norm));
    if (s->power != 1) TRL_TRY(trli_solver_scale_correction(s, 1 / s->power));
    for (int i = 0; i < s->ask.n; ++i) s->mean[i] = 0;
    if (s->linear && s->stats.singular) err = trli_solver_restore_means(s, s->mean);
    ++s->stats.solves;
done:
    return err;
}

trl_err trli_solver_run_given(trli_solver *solver, double tolerance, trl_gidx step, double time)
{
    solver->step = step;
    solver->time = time;
    solver->takes_given = true;
    return solve_given(solver, tolerance);
}

const int *trli_solver_correction(const trli_solver *solver)
{
    return solver->c.now;
}

bool trli_solver_is_linear(const trli_solver *solver)
{
    return solver->linear;
}

void trli_solver_bring(trli_solver *solver, const trl_offsets *around)
{
    solver->ask.brings = true;
    solver->ask.around = *around;
}

bool trli_solver_brought(const trli_solver *solver)
{
    return solver->brought;
}

void trli_solver_forget(trli_solver *solver)
{
    solver->trusted = solver->mean_known = false;
    solver->sized_step = -1;
}
