/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Whether a system that was not solved has no solution, because its operator is singular. */
#include <math.h>

#include "solve_ahead_impl.h"
#include "solve_errors_impl.h"
#include "solve_look_impl.h"
#include "solve_scale_impl.h"

/* Rounding errors of a product with the operator, relative to the sizes of its factors. */
static const double rounding = 1e-12;

/* Whether x is much larger than what its product with the operator tells, which is `product` at most: all of x is in
 * the null space then, but for a part that rounding errors hide. */
static trl_err is_null(const trli_solver *s, double product, bool *null)
{
    double largest;
    trl_err err = TRL_OK;
    *null = false;
    if (!isfinite(product)) return TRL_OK;
    TRL_TRY(trli_solver_find_largest_x(s, &largest));
    *null = isfinite(largest) && product <= rounding * s->scale * largest;
done:
    return err;
}

/* Constants of a whole unknown, which were found before, are none of what is looked for. */
static trl_err leave_constants_out(trli_solver *s)
{
    bool any = false;
    for (int i = 0; i < s->ask.n; ++i) {
        s->mean[i] = 0;
        s->singular[i] = s->singular[i] && s->balanced[i];
        any |= s->singular[i];
    }
    return any ? trli_solver_restore_means(s, s->mean) : TRL_OK;
}

/* The method that failed solves J x = 0 from x = d, where q = J d; *product: of what is left. That is a system with a
 * solution: if the method does not solve this one either, it tells nothing. */
static trl_err find_null_part(trli_solver *s, double *product)
{
    const double far = 1e-14;
    const trli_krylov_type *type = trli_krylov_of(s, s->method);
    int iterations;
    bool broken = false;
    trl_err err = TRL_OK;
    TRL_TRY(trli_solver_program(s, s->take_trial));
    trli_vector_swap(s, &s->x);
    trli_vector_swap(s, &s->r);
    const double target = far * trli_solver_norm(s, trli_solver_scalar(s, s->trial_rr));
    s->ahead = s->stalled = false;
    s->r_norm = -1;
    err = type->run(s, trli_krylov_made(s, type), target, s->settings.iterations, &iterations, product, &broken);
    TRL_TRY(err);
    *product = fmax(*product, target);
    err = leave_constants_out(s);
done:
    return err;
}

/* Whether something is left of random values and ones. */
static trl_err find_null_vector(trli_solver *s, bool *found)
{
    double product;
    int one = 0;
    trl_err err = TRL_OK;
    while (one < s->ask.n && s->singular[one] && s->balanced[one]) ++one;
    TRL_TRY(trli_solver_try(s, one, 0));
    TRL_TRY(find_null_part(s, &product));
    err = is_null(s, product, found);
done:
    return err;
}

/* What is left of the right-hand side, of a symmetric operator: the part of it that is in the null space, which is at
 * right angles to all that the operator makes. */
static trl_err find_amount(trli_solver *s, double *amount)
{
    double norm;
    trl_err err = TRL_OK;
    TRL_TRY(trli_solver_begin_at_zero(s, &norm));
    TRL_TRY(trli_solver_program(s, s->take_residual));
    trli_vector_swap(s, &s->d);
    TRL_TRY(trli_solver_program(s, s->apply));
    TRL_TRY(find_null_part(s, &norm));
    TRL_TRY(trli_solver_begin_at(s, &norm)); /* nothing of it in the residual */
    TRL_TRY(trli_solver_program(s, s->measure));
    const double along = trli_solver_scalar(s, s->xr), xx = trli_solver_scalar(s, s->xx);
    *amount = xx > 0 ? fabs(along) / sqrt(xx * s->all_points) : 0;
done:
    return err;
}

/* *left: of the residual, if there is no solution; else 0. singular: the operator is, as far as that is known. */
static trl_err find_what_is_left(trli_solver *s, bool singular, double *left)
{
    const double least = s->least;
    const bool iterates = !s->pseudo_time && s->method != TRL_SOLVE_DIRECT;
    trl_err err = TRL_OK;
    if (!singular && iterates) TRL_TRY(find_null_vector(s, &singular));
    *left = singular ? least : 0;
    if (singular && iterates && s->krylov == TRL_SOLVE_CG) TRL_TRY(find_amount(s, left));
done:
    return err;
}

trl_err trli_solver_is_lost(trli_solver *s, double norm, bool *lost)
{
    const double much = 0.1;
    trl_err err = TRL_OK;
    TRL_TRY(trli_solver_refuse_joint(s));
    TRL_TRY(is_null(s, norm + s->reference, lost));
    *lost &= norm > much * s->reference;
done:
    return err;
}

trl_err trli_solver_refuse_singular(trli_solver *s, double norm)
{
    double left;
    bool singular;
    trl_err err = TRL_OK;
    if (!s->linear || s->sim->control.lenient) return TRL_OK;
    const double least = s->least;
    TRL_TRY(is_null(s, norm + s->reference, &singular));
    TRL_TRY(trli_solver_refuse_joint(s));
    TRL_TRY(find_what_is_left(s, singular, &left));
    s->least = least;
    if (left > s->enough) err = trli_solver_has_null_space(s, left);
done:
    return err;
}
