/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* What the operator of a system is like: whether it is symmetric, and what is in its null space. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "late_impl.h"
#include "lower_impl.h"
#include "memory_impl.h"
#include "reads_impl.h"
#include "solve_errors_impl.h"
#include "solve_look_impl.h"
#include "solve_scale_impl.h"

/* Rounding errors of a product with the operator, relative to the sizes of its factors, stay below this. */
static const double rounding = 1e-12;

/* How far from present values an operator is looked at, the first one where it is a number. */
enum { DISTANCES = 3 };
static const double distance[DISTANCES] = {1, 1e-2, 1e-4};

/* ---- what may change it ---- */

/* The n-th field of other equations that the operator reads, whose steps change it; -1: there are fewer. */
static int other_field(const trli_solver *s, int n)
{
    const bool fixed = s->sim->problem->time.none || s->ask.varying; /* that of a pressure is symmetric with all */
    for (int v = 0; v < s->sim->nequations && !fixed; ++v) {
        bool own = false;
        for (int i = 0; i < s->ask.n; ++i) own |= s->ask.variable[i] == v;
        if (s->reads[v] && !own && n-- == 0) return s->in_field[v];
        if (s->reads_old[v] && n-- == 0) return s->old_field[v];
    }
    return -1;
}

/* Whether conditions may leave constants of an unknown alone. */
static bool may_be_free(const trli_solver *s, int i)
{
    if (s->ask.steps) return false; /* they have 1 in their operators */
    const trli_variable *v = &s->sim->model->variable[s->ask.variable[i]];
    for (int side = 0; side < 2 * s->sim->layout->grid.dim; ++side)
        if (v->boundary[side].npieces == 1 && v->boundary[side].piece[0].kind == TRL_BC_DIRICHLET) return false;
    return true;
}

/* Values of other fields may change whether constants are in the null space, and of an equation that is not linear its
 * own. A pressure's operator is of the same kind with all values. */
static bool is_watched(const trli_solver *s)
{
    bool any = false;
    for (int i = 0; i < s->ask.n; ++i) any |= may_be_free(s, i);
    return any && (!s->linear || other_field(s, 0) >= 0);
}

bool trli_solver_looks_again(const trli_solver *s)
{
    bool again = s->unseen || is_watched(s);
    for (int i = 0; i < s->nscalars; ++i) again |= s->scalar[i] != TRLI_SCALAR_DT;
    return again && !s->sim->problem->time.none;
}

/* ---- trials ---- */

static void set_ones(const trli_solver *s, double size, const int *one, int which)
{
    for (int i = 0; i < s->ask.n; ++i) trli_solver_set(s, one[i], i == which ? size : 0);
}

static trl_err run_trial(trli_solver *s, int noise)
{
    trl_err err = TRL_OK;
    TRL_TRY(trli_solver_program(s, s->probe[noise + 1]));
    trli_vector_swap(s, &s->d);
    TRL_TRY(trli_solver_program(s, s->apply));
done:
    return err;
}

trl_err trli_solver_try(trli_solver *s, int one, int noise)
{
    set_ones(s, s->trial, s->one, one);
    for (int i = 0; i < s->ask.n; ++i) trli_solver_set(s, s->noise[i], s->trial);
    return run_trial(s, noise);
}

/* Random values of one unknown alone. */
static trl_err try_alone(trli_solver *s, int i)
{
    set_ones(s, s->trial, s->one, -1);
    set_ones(s, s->trial, s->noise, i);
    return run_trial(s, 0);
}

static trl_err compare(trli_solver *s, int one, int noise, double *product)
{
    s->with = noise + 1;
    set_ones(s, 1, s->with_one, one);
    const trl_err err = trli_solver_program(s, s->compare[s->with]);
    *product = trli_solver_scalar(s, s->compared[s->with]);
    return err;
}

/* The square of the length of the last trial vector if it had the size 1. */
static double square_of_trial(const trli_solver *s)
{
    return trli_solver_scalar(s, s->dd[s->with]) / (s->trial * s->trial);
}

/* Of the last product, or with a comparison with ones of the unknown's row. */
static double size_of_product(const trli_solver *s)
{
    return sqrt(trli_solver_scalar(s, s->qq[s->with]));
}

/* The products of two random vectors with the operator and each other, both ways. */
typedef struct cross_products {
    double product[2], size[2], length[2];
} cross_products;

static trl_err cross(trli_solver *s, int k, cross_products *c)
{
    trl_err err = TRL_OK;
    TRL_TRY(trli_solver_try(s, -1, k));
    TRL_TRY(compare(s, -1, 1 - k, &c->product[k]));
    c->size[k] = size_of_product(s);
    c->length[k] = sqrt(square_of_trial(s));
done:
    return err;
}

static bool are_equal(const cross_products *c)
{
    return fabs(c->product[0] - c->product[1]) <= rounding * (c->size[0] * c->length[1] + c->size[1] * c->length[0]);
}

/* Whether an unknown's row of the last product has no mean, and cannot have one. */
static trl_err find_balance(trli_solver *s, int i, bool *balanced)
{
    double sum;
    const trl_err err = compare(s, i, -1, &sum);
    *balanced = !s->ask.steps && fabs(sum) <= rounding * size_of_product(s) * sqrt(s->points[i]);
    return err;
}

static double scale_of(const trli_solver *s, const cross_products *c)
{
    return c->length[0] > 0 ? c->size[0] / c->length[0] / s->trial : 0;
}

/* *scale: the largest product of a unit vector with the operator that random vectors show. */
static trl_err find_symmetry(trli_solver *s, double *scale, bool *symmetric)
{
    cross_products c;
    trl_err err = TRL_OK;
    for (int k = 0; k < 2; ++k) {
        TRL_TRY(cross(s, k, &c));
        for (int i = 0; i < s->ask.n; ++i) {
            bool balanced;
            TRL_TRY(find_balance(s, i, &balanced));
            s->balanced[i] = balanced && (k == 0 || s->balanced[i]);
        }
    }
    *symmetric = are_equal(&c);
    *scale = scale_of(s, &c);
done:
    return err;
}

/* Whether constants of an unknown are in the null space: beside what its equations and others make of random values of
 * it, as those of another unknown may be any number of times larger. */
static trl_err find_singular(trli_solver *s, int i, bool *singular)
{
    double product, scale = s->scale;
    trl_err err = TRL_OK;
    *singular = false;
    if (s->ask.steps) return TRL_OK;
    if (s->ask.n > 1) {
        TRL_TRY(try_alone(s, i));
        TRL_TRY(compare(s, -1, 0, &product));
        scale = size_of_product(s) / sqrt(trli_solver_scalar(s, s->dd[s->with]));
    }
    TRL_TRY(trli_solver_try(s, i, -1));
    TRL_TRY(compare(s, -1, 0, &product));
    *singular = size_of_product(s) / s->trial <= rounding * scale * sqrt(s->points[i]);
done:
    return err;
}

/* Bring a field to the host. Where no rank has devices it is there, and nobody waits for others. */
static trl_err fetch(const trl_simulation *sim, int field)
{
    const trl_err err = trli_frame_fetch(sim->frame, field);
    return sim->late && !sim->any_devices ? err : trl_context_agree(sim->ctx, err);
}

/* Copy the direction d to the correction c. */
static trl_err take_direction(trli_solver *s)
{
    const trl_simulation *sim = s->sim;
    trl_err err = TRL_OK;
    for (int i = 0; i < s->ask.n; ++i) {
        const int from = s->d.now[i], to = s->c.now[i];
        TRL_TRY(fetch(sim, from));
        for (int p = 0; p < sim->layout->nlocal; ++p) {
            const trl_array a = trli_frame_array(sim->frame, from, p, 0), b = trli_frame_array(sim->frame, to, p, 0);
            const trl_box *box = &a.owned;
            for (trl_lidx k = box->lo[2]; k < box->hi[2]; ++k)
                for (trl_lidx j = box->lo[1]; j < box->hi[1]; ++j)
                    memcpy((double *)b.at + trl_array_offset(&b, box->lo[0], j, k),
                           (double *)a.at + trl_array_offset(&a, box->lo[0], j, k),
                           (size_t)(box->hi[0] - box->lo[0]) * sizeof(double));
        }
        trli_frame_written(sim->frame, to);
    }
done:
    return err;
}

/* Whether the Jacobian of an equation that is not linear is symmetric at a distance from the first guess; *norm: of the
 * residual there. */
static trl_err symmetric_at(trli_solver *s, double away, bool *symmetric, double *norm)
{
    cross_products c;
    trl_err err = TRL_OK;
    trli_solver_set(s, s->length, away / s->trial);
    TRL_TRY(trli_solver_program(s, s->move));
    trli_vector_swap(s, &s->x);
    TRL_TRY(trli_solver_residual(s, norm)); /* sets points on sides */
    for (int k = 0; k < 2; ++k) TRL_TRY(cross(s, k, &c));
    *symmetric = are_equal(&c) || !isfinite(*norm);
    trli_vector_swap(s, &s->x);
done:
    return err;
}

/* Whether it is so beside the first guess, too: that of p*ddx(p) is at p = 0, and that of div(p*grad(p^2)) nearly so
 * where p is small. So the answer is that of the equation, not of the values from which a run begins or goes on. The
 * farther away the more is seen, if functions are defined. */
static trl_err stays_symmetric(trli_solver *s, bool *symmetric)
{
    double norm = INFINITY;
    trl_err err = TRL_OK;
    TRL_TRY(trli_solver_try(s, -1, 0));
    TRL_TRY(take_direction(s));
    for (int i = 0; i < DISTANCES && !isfinite(norm); ++i) TRL_TRY(symmetric_at(s, distance[i], symmetric, &norm));
done:
    return err;
}

/* ---- at a distance from the values of other equations ---- */

/* Go through a patch's points of a field: keep its values, and add something above zero, up to `most` of them, by the
 * direction d, the same on any ranks; or, with 0, put the kept ones back. *kept: where they are, or are to be. */
static void disturb_patch(const trli_solver *s, int field, int p, double most, double **kept)
{
    const bool back = most == 0;
    const trl_array a = trli_frame_array(s->sim->frame, field, p, 0);
    const trl_array d = trli_frame_array(s->sim->frame, s->d.now[0], p, 0);
    trl_lidx at[3], of[3];
    for (at[2] = a.owned.lo[2]; at[2] < a.owned.hi[2]; ++at[2])
        for (at[1] = a.owned.lo[1]; at[1] < a.owned.hi[1]; ++at[1])
            for (at[0] = a.owned.lo[0]; at[0] < a.owned.hi[0]; ++at[0]) {
                double *value = (double *)a.at + trl_array_offset(&a, at[0], at[1], at[2]);
                for (int k = 0; k < 3; ++k) { /* there may be a point more at the end of the grid */
                    const trl_lidx last = d.owned.hi[k] - 1, here = at[k] - a.owned.lo[k] + d.owned.lo[k];
                    of[k] = here < last ? here : last;
                }
                const double noise = ((const double *)d.at)[trl_array_offset(&d, of[0], of[1], of[2])];
                const double more = 0.5 + noise / s->trial;
                if (!back) *(*kept)++ = *value;
                *value = back ? *(*kept)++ : *value + most * more * (*value != 0 ? fabs(*value) : 1);
            }
}

static void disturb(const trli_solver *s, double most, double *kept)
{
    for (int n = 0; other_field(s, n) >= 0; ++n) {
        for (int p = 0; p < s->sim->layout->nlocal; ++p) disturb_patch(s, other_field(s, n), p, most, &kept);
        trli_frame_written(s->sim->frame, other_field(s, n));
    }
}

static trl_err fetch_others(const trli_solver *s, size_t *points)
{
    const trl_simulation *sim = s->sim;
    trl_err err = TRL_OK;
    TRL_TRY(fetch(sim, s->d.now[0]));
    for (int n = 0; other_field(s, n) >= 0; ++n) {
        TRL_TRY(fetch(sim, other_field(s, n)));
        for (int p = 0; p < sim->layout->nlocal; ++p) {
            const trl_array a = trli_frame_array(sim->frame, other_field(s, n), p, 0);
            *points += (size_t)(a.owned.hi[0] - a.owned.lo[0]) * (size_t)(a.owned.hi[1] - a.owned.lo[1]) *
                       (size_t)(a.owned.hi[2] - a.owned.lo[2]);
        }
    }
done:
    return err;
}

/* Whether the operator is symmetric with other values of the fields that it reads, too: with a wind that begins to blow
 * it is at rest alone. So again the answer is that of the equation. */
static trl_err symmetric_with_others(trli_solver *s, bool *symmetric)
{
    cross_products c;
    size_t points = 0;
    double *kept = NULL;
    trl_err err = TRL_OK;
    if (other_field(s, 0) < 0) return TRL_OK;
    TRL_TRY(trli_solver_try(s, -1, 0));
    TRL_TRY(fetch_others(s, &points));
    kept = trli_new(s->sim->ctx, points + 1, sizeof *kept);
    if (!kept) err = trli_no_memory(s->sim->ctx, NULL, "for a solver");
    TRL_TRY(trl_context_agree(s->sim->ctx, err));
    for (int i = 0, finite = 0; i < DISTANCES && !finite; ++i) {
        disturb(s, distance[i], kept);
        for (int k = 0; k < 2 && err == TRL_OK; ++k) err = cross(s, k, &c);
        disturb(s, 0, kept);
        TRL_TRY(err);
        finite = isfinite(c.product[0]) && isfinite(c.product[1]);
        *symmetric = !finite || are_equal(&c);
    }
done:
    trli_free(kept);
    return err;
}

/* ---- the answers ---- */

/* dt is a factor of terms that are there with any other dt, too. Fields may change which points are unknowns, and with
 * that means, if constants are in the null space. Nobody knows what plugins compute in steps. */
bool trli_solver_is_unknown(const trli_solver *s)
{
    const bool steps = !s->sim->problem->time.none;
    bool changed = !s->looked || (steps && ((s->unseen && s->place == 0) || (s->stats.singular && s->gaps_move)));
    for (int i = 0; i < s->nscalars && !changed; ++i) {
        const int k = s->scalar[i];
        changed = k != TRLI_SCALAR_DT && s->seen[k] != s->sim->frame->scalar[k];
    }
    return changed;
}

/* Whether constants of an unknown are in the null space, and then whether they are in the adjoint's. Where the equation
 * is not linear the operator may have become larger. */
static trl_err find_constants(trli_solver *s, int i, bool *singular, bool *balanced)
{
    cross_products c;
    trl_err err = TRL_OK;
    *balanced = s->balanced[i];
    if (!s->linear) {
        TRL_TRY(cross(s, 0, &c));
        s->scale = scale_of(s, &c);
        TRL_TRY(find_balance(s, i, balanced));
    }
    TRL_TRY(find_singular(s, i, singular));
    if (!*singular || !s->linear) return TRL_OK;
    TRL_TRY(cross(s, 0, &c));
    err = find_balance(s, i, balanced);
done:
    return err;
}

trl_err trli_solver_constants_change(trli_solver *s, bool *change)
{
    trl_err err = TRL_OK;
    *change = false;
    if (!is_watched(s)) return TRL_OK;
    for (int i = 0; i < s->ask.n && !*change; ++i) {
        bool singular, balanced;
        if (!may_be_free(s, i)) continue;
        TRL_TRY(find_constants(s, i, &singular, &balanced));
        *change = singular != s->singular[i] || balanced != s->balanced[i];
    }
done:
    return err;
}

trl_err trli_solver_follow_constants(trli_solver *s)
{
    bool any = false;
    trl_err err = TRL_OK;
    for (int i = 0; i < s->ask.n; ++i) any |= s->singular[i] || s->balanced[i];
    if (s->linear || !any) return TRL_OK;
    s->ahead = s->stats.singular = false;
    for (int i = 0; i < s->ask.n; ++i) {
        if (may_be_free(s, i)) TRL_TRY(find_constants(s, i, &s->singular[i], &s->balanced[i]));
        s->stats.singular |= s->singular[i];
    }
done:
    return err;
}

trl_err trli_solver_stays_balanced(trli_solver *s, int i, bool *balanced)
{
    cross_products c;
    double norm = INFINITY;
    trl_err err = TRL_OK;
    *balanced = true;
    if (s->linear) return TRL_OK;
    TRL_TRY(trli_solver_try(s, -1, 1));
    TRL_TRY(take_direction(s));
    for (double away = 100; away > 1e-5 && !isfinite(norm); away /= 100) {
        trli_solver_set(s, s->length, away / s->trial);
        TRL_TRY(trli_solver_program(s, s->move));
        trli_vector_swap(s, &s->x);
        TRL_TRY(trli_solver_residual(s, &norm)); /* sets points on sides */
        if (isfinite(norm)) TRL_TRY(cross(s, 0, &c));
        if (isfinite(norm)) TRL_TRY(find_balance(s, i, balanced));
        trli_vector_swap(s, &s->x);
    }
    err = trli_solver_residual(s, &norm);
done:
    return err;
}

/* What the answers are for. */
static trl_err note_scalars(trli_solver *s)
{
    trl_err err = TRL_OK;
    if (!s->seen) {
        s->seen = trli_model_keep(s->sim->model, ((size_t)s->sim->model->nscalars + 1) * sizeof *s->seen);
        if (!s->seen) err = trli_no_memory(s->sim->ctx, NULL, "for a solver");
        TRL_TRY(trl_context_agree(s->sim->ctx, err));
    }
    (void)trli_solver_scalars_change(s, s->seen);
done:
    return err;
}

/* Conjugate gradients are asked for, and the operator is not symmetric, perhaps not any more. */
static trl_err refuse_unsymmetric(const trli_solver *s)
{
    const char *method = s->method == TRL_SOLVE_CG ? "cg" : "pipelined_cg";
    if (!s->looked)
        return trl_fail(s->sim->ctx, TRL_ERR_INPUT, &s->ask.place,
                        "%s is for symmetric operators, and that of '%s' is not: use method auto, bicgstab or gmres",
                        method, s->ask.names);
    return trli_solver_fails(
        s,
        "%s is for symmetric operators, and that of '%s' is not symmetric any more, at step %" PRId64
        ", t = %.10g: use method auto, bicgstab or gmres",
        method, s->ask.names, s->step, s->time);
}

/* Where squares of what the operator makes of vectors of length 1 are no numbers, others are tried. */
static trl_err choose_trial(trli_solver *s)
{
    double largest;
    trl_err err = TRL_OK;
    s->trial = 1;
    TRL_TRY(trli_solver_try(s, -1, 0));
    TRL_TRY(trli_solver_find_largest(s, &s->q, &largest));
    if (largest > 0 && isfinite(largest)) s->trial = ldexp(1, -ilogb(largest) / 2);
done:
    return err;
}

trl_err trli_solver_look(trli_solver *s)
{
    bool symmetric = false;
    double product;
    trl_err err = TRL_OK;
    s->all_points = 0;
    s->trial = 1;
    for (int i = 0; i < s->ask.n; ++i) {
        TRL_TRY(trli_solver_try(s, i, -1));
        TRL_TRY(compare(s, i, -1, &product));
        s->points[i] = square_of_trial(s);
        s->all_points += s->points[i];
    }
    TRL_TRY(find_symmetry(s, &s->scale, &symmetric));
    if (!trli_norm_is_ordinary(s->scale) && s->all_points > 0) {
        TRL_TRY(choose_trial(s));
        TRL_TRY(find_symmetry(s, &s->scale, &symmetric));
    }
    if (!(s->scale > 0)) TRL_TRY(trli_solver_singular(s, isnan(s->scale)));
    s->stats.singular = false;
    for (int i = 0; i < s->ask.n; ++i) {
        TRL_TRY(find_singular(s, i, &s->singular[i]));
        s->stats.singular |= s->singular[i];
    }
    if (symmetric && !s->linear) TRL_TRY(stays_symmetric(s, &symmetric));
    if (symmetric) TRL_TRY(symmetric_with_others(s, &symmetric));
    s->krylov = symmetric && !s->constraint ? TRL_SOLVE_CG : TRL_SOLVE_BICGSTAB;
    s->method = s->settings.method != TRL_SOLVE_AUTO ? s->settings.method : s->krylov;
    if (s->settings.method == TRL_SOLVE_AUTO)
        s->stats.why = symmetric && s->constraint ? ", because it is a saddle point"
                       : symmetric                ? ", because the operator is symmetric"
                                                  : ", because the operator is not symmetric";
    if ((s->method == TRL_SOLVE_CG || s->method == TRL_SOLVE_PIPELINED_CG) && !symmetric)
        TRL_TRY(refuse_unsymmetric(s));
    TRL_TRY(note_scalars(s));
    s->looked = true;
    ++s->stats.looks;
done:
    return err;
}
