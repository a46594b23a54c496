/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* From the blocks of the Jacobian to the largest rate, with the same bits in C and, after trl_spectrum_body.h, in
 * kernels for GPUs. In units of 1/dt: transport that was found by its rule, real eigenvalues by half of their size (the
 * step of euler for diffusion), imaginary ones by the size over the method's interval, what is neither for sure by the
 * size over the method's half disc. docs/decks.md says it in words. */
#ifndef TRL_BOUND_BODY_H
#define TRL_BOUND_BODY_H

#ifndef __cplusplus
#include "trl_spectrum_body.h"
#endif

/* A number: a constant, or a scalar of the model once the program has run. */
typedef enum trli_quantity_kind { TRLI_QUANTITY_NONE, TRLI_QUANTITY_CONSTANT, TRLI_QUANTITY_SCALAR } trli_quantity_kind;
typedef struct trli_quantity {
    trli_quantity_kind kind;
    int scalar;
    double constant;
} trli_quantity;

/* What is known of one block of the Jacobian, the derivatives of an equation's right-hand side by one unknown at all
 * offsets: the largest of all points. The sums of the magnitudes of all derivatives, of their parts that are even and
 * odd about the point, and of what has no sign; how far magnitudes beside the point exceed minus that at the point (not
 * above 0: a disc in the left half plane that touches 0); the real part of the symbol at wave numbers 0 and pi and its
 * negative; the imaginary part along an axis at pi/2 and its negative. */
#define TRLI_COUPLING_LIST(X) \
    X(SIZE)                   \
    X(EVEN)                   \
    X(ODD) X(UNSIGNED) X(DISC) X(REAL_MOST) X(REAL_LEAST) X(X_MOST) X(X_LEAST) X(Y_MOST) X(Y_LEAST) X(Z_MOST) X(Z_LEAST)
typedef enum trli_coupling_part {
#define TRLI_COUPLING_ENUM(name) TRLI_COUPLING_##name,
    TRLI_COUPLING_LIST(TRLI_COUPLING_ENUM)
#undef TRLI_COUPLING_ENUM
        TRLI_COUPLING_PARTS
} trli_coupling_part;

typedef struct trli_coupling {
    int row, column; /* equations; column -1: any of them */
    bool wide;       /* it reads more than one point */
    trli_quantity part[TRLI_COUPLING_PARTS];
} trli_coupling;

enum {
    TRLI_LARGEST_COMPONENT =
        400, /* of equations that the spectral radius is found for; the largest sum over a row beyond */
};

typedef enum trli_decider {
    TRLI_BY_NOTHING,
    TRLI_BY_TRANSPORT,
    TRLI_BY_ITSELF,
    TRLI_BY_COUPLING,
    TRLI_BY_SUMS,
    TRLI_BY_PLUGIN,
    TRLI_BY_GIVEN
} trli_decider;

typedef struct trli_rate {
    double rate; /* 1/dt */
    trli_decider by;
    int index;     /* of the equation or plugin */
    bool wavelike; /* the coupling is an oscillation */
    bool unstable; /* an oscillation that the method has no stable step for */
} trli_rate;

/* All that the largest rate follows from: the linearised system (trli_jacobian), what else bounds dt (trli_bound), the
 * method. */
typedef struct trli_rates {
    int dim, nequations, ncomponents, nsums, nplugins;
    int largest; /* equations of a component, at most */
    bool by_sums;
    double radius, imaginary, scale; /* scale: of real parts: the method's stability where 1/rate is to be its stable
                                        step, else 1 */
    const trli_coupling *block;
    const int *first, *component, *member, *begin;
    const trli_quantity *known, *sum, *plugin_dt, *given; /* [nequations], [nsums], [nplugins], [1] */
    const double *scalar;                                 /* by the numbers of the quantities */
} trli_rates;

/* Numbers that a component needs meanwhile: two matrices and three vectors. */
#define TRLI_RATE_WORK(size) ((size) > TRLI_LARGEST_COMPONENT ? 0 : 2 * (size) * (size) + 3 * (size))

/* A component being bounded. */
typedef struct trli_rate_view {
    const trli_rates *all;
    trli_lane lane;
    int component, size;
    const int *member;
    bool wide;      /* some block reads more than one point */
    int sign;       /* of the couplings' products: -1 imaginary, 1 real, 0 not known */
    bool dominated; /* the diagonal is negative and outweighs columns or rows */
} trli_rate_view;

TRL_BODY double trli_quantity_of(const trli_quantity *quantity, const double *scalar)
{
    return quantity->kind == TRLI_QUANTITY_CONSTANT ? quantity->constant
           : quantity->kind == TRLI_QUANTITY_SCALAR ? scalar[quantity->scalar]
                                                    : 0;
}

TRL_BODY double trli_part_of(const trli_rate_view *v, const trli_coupling *b, int part)
{
    return trli_quantity_of(&b->part[part], v->all->scalar);
}

TRL_BODY double trli_known_of(const trli_rate_view *v, int equation)
{
    return trli_quantity_of(&v->all->known[equation], v->all->scalar);
}

TRL_BODY bool trli_part_is_known(const trli_coupling *b, int part)
{
    return b->part[part].kind != TRLI_QUANTITY_NONE;
}

TRL_BODY bool trli_is_coupled_inside(const trli_rate_view *v, const trli_coupling *b)
{
    return b->column >= 0 && v->all->component[b->column] == v->component;
}

TRL_BODY const trli_coupling *trli_find_block(const trli_rates *all, int row, int column)
{
    int lo = all->first[row], hi = all->first[row + 1];
    while (lo < hi) {
        const int middle = lo + (hi - lo) / 2;
        if (all->block[middle].column < column)
            lo = middle + 1;
        else
            hi = middle;
    }
    const bool found = lo < all->first[row + 1] && all->block[lo].column == column;
    return found ? &all->block[lo] : (const trli_coupling *)0;
}

TRL_BODY double trli_tolerance(const trli_rate_view *v, const trli_coupling *b)
{
    const double rounding = 1e-12;
    return rounding * trli_part_of(v, b, TRLI_COUPLING_SIZE);
}

/* -1 or 1: all values have that sign, up to rounding; 0: not known. most, least: the largest of the values and of their
 * negatives. */
TRL_BODY int trli_sign_of(const trli_rate_view *v, const trli_coupling *b, int most, int least)
{
    if (!trli_part_is_known(b, most) || !trli_part_is_known(b, least)) return 0;
    if (trli_part_of(v, b, most) <= trli_tolerance(v, b)) return -1;
    return trli_part_of(v, b, least) <= trli_tolerance(v, b) ? 1 : 0;
}

TRL_BODY bool trli_vanishes(const trli_rate_view *v, const trli_coupling *b, int most, int least)
{
    return trli_part_of(v, b, most) <= trli_tolerance(v, b) && trli_part_of(v, b, least) <= trli_tolerance(v, b);
}

TRL_BODY bool trli_is_even(const trli_rate_view *v, const trli_coupling *b)
{
    return trli_part_of(v, b, TRLI_COUPLING_EVEN) >= trli_part_of(v, b, TRLI_COUPLING_ODD);
}

/* The sign of the product of two blocks' symbols, or 0. Odd ones are imaginary: with equal signs along each axis the
 * product is negative. */
TRL_BODY int trli_product_sign(const trli_rate_view *v, const trli_coupling *a, const trli_coupling *b)
{
    int sign = 0;
    if (trli_part_of(v, a, TRLI_COUPLING_UNSIGNED) > trli_tolerance(v, a) ||
        trli_part_of(v, b, TRLI_COUPLING_UNSIGNED) > trli_tolerance(v, b))
        return 0;
    if (trli_is_even(v, a) != trli_is_even(v, b)) return 0;
    if (trli_is_even(v, a))
        return trli_sign_of(v, a, TRLI_COUPLING_REAL_MOST, TRLI_COUPLING_REAL_LEAST) *
               trli_sign_of(v, b, TRLI_COUPLING_REAL_MOST, TRLI_COUPLING_REAL_LEAST);
    TRLI_ROLLED
    for (int axis = 0; axis < v->all->dim; ++axis) {
        const int most = TRLI_COUPLING_X_MOST + 2 * axis, least = most + 1;
        if (!trli_part_is_known(a, most) || !trli_part_is_known(b, most)) return 0;
        if (trli_vanishes(v, a, most, least) || trli_vanishes(v, b, most, least)) continue;
        const int here = -trli_sign_of(v, a, most, least) * trli_sign_of(v, b, most, least);
        if (here == 0 || here == -sign) return 0;
        sign = here;
    }
    return sign;
}

/* Whether what leaves a point, by the diagonal, is all that enters others, or more: the eigenvalues are in discs that
 * touch 0. */
TRL_BODY bool trli_is_dominated(const trli_rate_view *v)
{
    bool rows = true, columns = true;
    TRLI_ROLLED
    for (int i = 0; i < v->size; ++i) {
        const int e = v->member[i];
        const trli_coupling *diagonal = trli_find_block(v->all, e, e);
        if (!diagonal || !trli_part_is_known(diagonal, TRLI_COUPLING_DISC) ||
            trli_part_of(v, diagonal, TRLI_COUPLING_DISC) > trli_tolerance(v, diagonal))
            return false;
        const double size = trli_part_of(v, diagonal, TRLI_COUPLING_SIZE) * (1 + 1e-12);
        double row = 0, column = 0;
        TRLI_ROLLED
        for (int k = v->all->first[e]; k < v->all->first[e + 1]; ++k)
            if (trli_is_coupled_inside(v, &v->all->block[k]) && v->all->block[k].column != e)
                row += trli_part_of(v, &v->all->block[k], TRLI_COUPLING_SIZE);
        TRLI_ROLLED
        for (int k = 0; k < v->size; ++k) {
            const trli_coupling *b = v->member[k] == e ? 0 : trli_find_block(v->all, v->member[k], e);
            if (b) column += trli_part_of(v, b, TRLI_COUPLING_SIZE);
        }
        rows &= row <= size;
        columns &= column <= size;
    }
    return rows || columns;
}

/* What look_at sees in rows of the component, together. */
typedef struct trli_row_view {
    bool wide, negative, positive;
} trli_row_view;

TRL_BODY void trli_look_at_row(const trli_rate_view *v, int row, trli_row_view *see)
{
    TRLI_ROLLED
    for (int k = v->all->first[row]; k < v->all->first[row + 1]; ++k) {
        const trli_coupling *b = &v->all->block[k];
        if (!trli_is_coupled_inside(v, b)) continue;
        see->wide |= b->wide;
        if (v->size == 1 || b->row == b->column) continue;
        const trli_coupling *back = trli_find_block(v->all, b->column, b->row);
        const int sign = back ? trli_product_sign(v, b, back) : 0;
        see->negative &= sign < 0;
        see->positive &= sign > 0;
    }
}

/* seen: [size] */
TRL_BODY void trli_look_at(trli_rate_view *v, double *seen)
{
    trli_row_view see = {false, v->size > 1, true};
    TRLI_ROLLED
    for (int i = v->lane.first; i < v->size; i += v->lane.step) trli_look_at_row(v, v->member[i], &see);
    TRLI_ROLLED
    for (int i = v->lane.first; i < v->size; i += v->lane.step)
        seen[i] = (see.wide ? 1 : 0) + (see.negative ? 2 : 0) + (see.positive ? 4 : 0);
    trli_meet(v->lane);
    TRLI_ROLLED
    for (int i = 0; i < v->size; ++i) {
        const int row = (int)seen[i];
        see.wide |= (row & 1) != 0;
        see.negative &= (row & 2) != 0;
        see.positive &= (row & 4) != 0;
    }
    v->wide = see.wide;
    v->sign = see.negative ? -1 : see.positive ? 1 : 0;
    v->dominated = v->sign == 0 && trli_is_dominated(v);
    trli_meet(v->lane);
}

/* What an equation makes of its own unknown, beside the transport that was found: real and imaginary rates. */
TRL_BODY void trli_own_rates(const trli_rate_view *v, const trli_coupling *b, double *real, double *imaginary,
                             double *neither)
{
    *real = trli_part_of(v, b, TRLI_COUPLING_SIZE);
    *imaginary = *neither = 0;
    if (!b->wide ||
        (trli_part_is_known(b, TRLI_COUPLING_DISC) && trli_part_of(v, b, TRLI_COUPLING_DISC) <= trli_tolerance(v, b)))
        return;
    *real = trli_part_of(v, b, TRLI_COUPLING_EVEN);
    *imaginary = trli_part_of(v, b, TRLI_COUPLING_ODD);
    *neither = trli_part_of(v, b, TRLI_COUPLING_UNSIGNED);
    if (*imaginary <= trli_tolerance(v, b)) *imaginary = 0;
}

/* The entry on the diagonal of both matrices; returns the damping. */
TRL_BODY double trli_fill_own(const trli_rate_view *v, const trli_coupling *b, double known, double *rate, double *wave)
{
    const trli_rates *all = v->all;
    double real, imaginary, neither;
    trli_own_rates(v, b, &real, &imaginary, &neither);
    *rate += real / (2 * all->scale) + neither / all->radius;
    /* In a disc through 0 what oscillates needs damping of its own: 2 d/(d^2 + w^2) is the step. */
    const double own = real + 2 * known;
    if (all->imaginary == 0 && own > 1e-12 * imaginary)
        *rate += imaginary * imaginary / (2 * own);
    else
        *wave += imaginary;
    const bool damps = b->wide ? trli_sign_of(v, b, TRLI_COUPLING_REAL_MOST, TRLI_COUPLING_REAL_LEAST) < 0
                               : trli_part_of(v, b, TRLI_COUPLING_DISC) <= 0;
    return damps ? real / v->size : 0;
}

/* A row of both matrices; own: the damping by what the equation makes of its own unknown. */
TRL_BODY void trli_fill_row(const trli_rate_view *v, int i, double known, double *rate, double *wave, double *own)
{
    const trli_rates *all = v->all;
    TRLI_ROLLED
    for (int k = 0; k < v->size; ++k) rate[k] = wave[k] = 0;
    rate[i] = known / all->scale;
    *own = 0;
    TRLI_ROLLED
    for (int k = 0; k < v->size; ++k) {
        const trli_coupling *b = trli_find_block(all, v->member[i], v->member[k]);
        if (!b) continue;
        if (k == i) {
            *own = trli_fill_own(v, b, known, &rate[i], &wave[i]);
            continue;
        }
        const double size = trli_part_of(v, b, TRLI_COUPLING_SIZE);
        if (v->sign < 0)
            wave[k] = size;
        else
            rate[k] = v->sign > 0 || v->dominated ? size / (2 * all->scale) : size / all->radius;
    }
}

/* Fill the component's matrices of rates: one of what has real eigenvalues, or none for sure, one of what oscillates.
 * Returns the mean damping of its equations. work: [2 size] */
TRL_BODY double trli_fill_rates(const trli_rate_view *v, double *rates, double *waves, double *work)
{
    const int n = v->size;
    double damping = 0;
    TRLI_ROLLED
    for (int i = v->lane.first; i < n; i += v->lane.step) {
        const double known = trli_known_of(v, v->member[i]);
        work[i] = 2 * known / n;
        trli_fill_row(v, i, known, &rates[i * n], &waves[i * n], &work[n + i]);
    }
    trli_meet(v->lane);
    TRLI_ROLLED
    for (int i = 0; i < n; ++i) {
        damping += work[i];
        damping += work[n + i];
    }
    return damping;
}

/* The larger one; NaN if one is. */
TRL_BODY double trli_rate_max(double a, double b)
{
    return a != a || a > b ? a : b;
}

/* The largest sum of a row, where a component is too large for its spectral radius. */
TRL_BODY double trli_largest_row(const trli_rate_view *v)
{
    double largest = 0;
    TRLI_ROLLED
    for (int i = 0; i < v->size; ++i) {
        const int e = v->member[i];
        double row = 0;
        TRLI_ROLLED
        for (int k = v->all->first[e]; k < v->all->first[e + 1]; ++k)
            if (trli_is_coupled_inside(v, &v->all->block[k]))
                row += trli_part_of(v, &v->all->block[k], TRLI_COUPLING_SIZE);
        row = row / v->all->radius + trli_known_of(v, e) / v->all->scale;
        largest = trli_rate_max(largest, row);
    }
    return largest;
}

/* The rate of a component's matrices. */
TRL_BODY void trli_rate_of_matrices(const trli_rate_view *v, double damping, double *rates, double *waves, double *work,
                                    trli_rate *r)
{
    const int n = v->size;
    const double interval = v->all->imaginary;
    TRLI_ROLLED
    for (int i = 0; i < n * n; ++i) r->wavelike |= waves[i] > 0;
    TRLI_ROLLED
    for (int i = v->lane.first; i < n * n && interval > 0; i += v->lane.step) rates[i] += waves[i] / interval;
    trli_meet(v->lane);
    const bool apart = r->wavelike && !(interval > 0);
    /* Couplings likewise, with d and w growing alike towards the shortest waves. Kinetics at a point oscillate at a
     * rate of their own, which steps can resolve. */
    const double w = apart ? trli_spectral_radius(v->lane, n, waves, work) : 0;
    r->rate = trli_spectral_radius(v->lane, n, rates, work);
    if (!apart) return;
    if (!v->wide)
        r->rate += w;
    else if (!(damping <= 1e-12 * w))
        r->rate += w * w / (2 * damping);
    else
        r->unstable = true;
}

/* Of the equations of a component, by all threads of a block, or one alone. work: [TRLI_RATE_WORK(their number)]. */
TRL_BODY trli_rate trli_component_rate(const trli_rates *all, trli_lane lane, int component, double *work)
{
    const int n = all->largest == 1 ? 1 : all->begin[component + 1] - all->begin[component];
    const trli_rate_view start = {all, lane, component, n, all->member + all->begin[component], false, 0, false};
    trli_rate_view v = start;
    trli_rate r = {0, n > 1 ? TRLI_BY_COUPLING : TRLI_BY_ITSELF, v.member[0], false, false};
    if (n > TRLI_LARGEST_COMPONENT) {
        r.rate = trli_largest_row(&v);
        r.by = TRLI_BY_SUMS;
        return r;
    }
    double *const rates = work, *const waves = rates + n * n, *const vectors = waves + n * n;
    trli_look_at(&v, vectors);
    const double damping = trli_fill_rates(&v, rates, waves, vectors);
    if (n == 1 && 2 * trli_known_of(&v, v.member[0]) / all->scale >= rates[0] + waves[0]) r.by = TRLI_BY_TRANSPORT;
    trli_rate_of_matrices(&v, damping, rates, waves, vectors, &r);
    return r;
}

/* Where there are too many blocks to look at each. */
TRL_BODY trli_rate trli_rate_by_sums(const trli_rates *all)
{
    trli_rate r = {0, TRLI_BY_SUMS, 0, false, false};
    double known = 0, sum = 0;
    TRLI_ROLLED
    for (int v = 0; v < all->nequations; ++v) {
        const double one = trli_quantity_of(&all->known[v], all->scalar);
        if (one <= known || known != known) continue;
        known = one;
        r.index = v;
    }
    TRLI_ROLLED
    for (int i = 0; i < all->nsums; ++i) sum = trli_rate_max(sum, trli_quantity_of(&all->sum[i], all->scalar));
    r.rate = known / all->scale + sum / all->radius;
    if (sum == 0) r.by = TRLI_BY_TRANSPORT;
    return r;
}

TRL_BODY void trli_rate_take(const trli_rate *r, trli_rate *largest)
{
    const bool waves = r->unstable || largest->unstable, stops = r->unstable && !largest->unstable;
    /* The first that is NaN. */
    if (waves ? stops : largest->rate == largest->rate && !(r->rate <= largest->rate)) *largest = *r;
}

/* Of what bounds dt beside components, or if there are only sums. largest: of all components. */
TRL_BODY void trli_rate_of_others(const trli_rates *all, trli_rate *largest)
{
    if (all->by_sums) {
        const trli_rate r = trli_rate_by_sums(all);
        trli_rate_take(&r, largest);
    }
    TRLI_ROLLED
    for (int i = 0; i < all->nplugins; ++i) {
        const trli_rate r = {1 / trli_quantity_of(&all->plugin_dt[i], all->scalar) / all->scale, TRLI_BY_PLUGIN, i,
                             false, false};
        trli_rate_take(&r, largest);
    }
    if (all->given->kind == TRLI_QUANTITY_NONE) return;
    const trli_rate r = {trli_quantity_of(all->given, all->scalar) / all->scale, TRLI_BY_GIVEN, 0, false, false};
    trli_rate_take(&r, largest);
}

/* Where no rate is above 0, nothing bounds dt. */
TRL_BODY trli_rate trli_rate_of_nothing(void)
{
    const trli_rate r = {0, TRLI_BY_NOTHING, -1, false, false};
    return r;
}

#endif
