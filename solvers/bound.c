/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* From the blocks of the Jacobian to the largest rate. In units of 1/dt: transport that was found by its rule, real
 * eigenvalues by half of their size (the step of euler for diffusion), imaginary ones by the size over the method's
 * interval, what is neither for sure by the size over the method's half disc. docs/decks.md says it in words. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "arithmetic_impl.h"
#include "limit_impl.h"
#include "spectrum_impl.h"

/* A component being bounded. */
typedef struct view {
    const trl_simulation *sim;
    const trli_jacobian *jacobian;
    int component, size;
    const int *member;
    double scale;   /* of real parts: the method's stability where 1/rate is to be its stable step, else 1 */
    bool wide;      /* some block reads more than one point */
    int sign;       /* of the couplings' products: -1 imaginary, 1 real, 0 not known */
    bool dominated; /* the diagonal is negative and outweighs columns or rows */
} view;

static double part_of(const view *v, const trli_coupling *b, trli_coupling_part part)
{
    return trli_quantity_value(v->sim, &b->part[part]);
}

static bool is_known(const trli_coupling *b, trli_coupling_part part)
{
    return b->part[part].kind != TRLI_QUANTITY_NONE;
}

static bool inside(const view *v, const trli_coupling *b)
{
    return b->column >= 0 && v->jacobian->component[b->column] == v->component;
}

static const trli_coupling *find_block(const trli_jacobian *j, int row, int column)
{
    int lo = j->first[row], hi = j->first[row + 1];
    while (lo < hi) {
        int middle = lo + (hi - lo) / 2;
        if (j->block[middle].column < column)
            lo = middle + 1;
        else
            hi = middle;
    }
    return lo < j->first[row + 1] && j->block[lo].column == column ? &j->block[lo] : NULL;
}

static double tolerance(const view *v, const trli_coupling *b)
{
    const double rounding = 1e-12;
    return rounding * part_of(v, b, TRLI_COUPLING_SIZE);
}

/* -1 or 1: all values have that sign, up to rounding; 0: not known. most, least: the largest of the values and of their
 * negatives. */
static int sign_of(const view *v, const trli_coupling *b, trli_coupling_part most, trli_coupling_part least)
{
    if (!is_known(b, most) || !is_known(b, least)) return 0;
    if (part_of(v, b, most) <= tolerance(v, b)) return -1;
    return part_of(v, b, least) <= tolerance(v, b) ? 1 : 0;
}

static bool vanishes(const view *v, const trli_coupling *b, trli_coupling_part most, trli_coupling_part least)
{
    return part_of(v, b, most) <= tolerance(v, b) && part_of(v, b, least) <= tolerance(v, b);
}

static bool is_even(const view *v, const trli_coupling *b)
{
    return part_of(v, b, TRLI_COUPLING_EVEN) >= part_of(v, b, TRLI_COUPLING_ODD);
}

/* The sign of the product of two blocks' symbols, or 0. Odd ones are imaginary: with equal signs along each axis the
 * product is negative. */
static int product_sign(const view *v, const trli_coupling *a, const trli_coupling *b)
{
    if (part_of(v, a, TRLI_COUPLING_UNSIGNED) > tolerance(v, a) ||
        part_of(v, b, TRLI_COUPLING_UNSIGNED) > tolerance(v, b))
        return 0;
    if (is_even(v, a) != is_even(v, b)) return 0;
    if (is_even(v, a))
        return sign_of(v, a, TRLI_COUPLING_REAL_MOST, TRLI_COUPLING_REAL_LEAST) *
               sign_of(v, b, TRLI_COUPLING_REAL_MOST, TRLI_COUPLING_REAL_LEAST);
    int sign = 0;
    for (int axis = 0; axis < v->sim->layout->grid.dim; ++axis) {
        const trli_coupling_part most = TRLI_COUPLING_X_MOST + 2 * (trli_coupling_part)axis, least = most + 1;
        if (!is_known(a, most) || !is_known(b, most)) return 0;
        if (vanishes(v, a, most, least) || vanishes(v, b, most, least)) continue;
        const int here = -sign_of(v, a, most, least) * sign_of(v, b, most, least);
        if (here == 0 || here == -sign) return 0;
        sign = here;
    }
    return sign;
}

/* Whether what leaves a point, by the diagonal, is all that enters others, or more: the eigenvalues are in discs that
 * touch 0. */
static bool is_dominated(const view *v)
{
    bool rows = true, columns = true;
    for (int i = 0; i < v->size; ++i) {
        const int e = v->member[i];
        const trli_coupling *diagonal = find_block(v->jacobian, e, e);
        if (!diagonal || !is_known(diagonal, TRLI_COUPLING_DISC) ||
            part_of(v, diagonal, TRLI_COUPLING_DISC) > tolerance(v, diagonal))
            return false;
        const double size = part_of(v, diagonal, TRLI_COUPLING_SIZE) * (1 + 1e-12);
        double row = 0, column = 0;
        for (int k = v->jacobian->first[e]; k < v->jacobian->first[e + 1]; ++k)
            if (inside(v, &v->jacobian->block[k]) && v->jacobian->block[k].column != e)
                row += part_of(v, &v->jacobian->block[k], TRLI_COUPLING_SIZE);
        for (int k = 0; k < v->size; ++k) {
            const trli_coupling *b = v->member[k] == e ? NULL : find_block(v->jacobian, v->member[k], e);
            if (b) column += part_of(v, b, TRLI_COUPLING_SIZE);
        }
        rows &= row <= size;
        columns &= column <= size;
    }
    return rows || columns;
}

static void look_at(view *v)
{
    bool negative = true, positive = true;
    for (int i = 0; i < v->size; ++i)
        for (int k = v->jacobian->first[v->member[i]]; k < v->jacobian->first[v->member[i] + 1]; ++k) {
            const trli_coupling *b = &v->jacobian->block[k];
            if (!inside(v, b)) continue;
            v->wide |= b->wide;
            if (b->row == b->column) continue;
            const trli_coupling *back = find_block(v->jacobian, b->column, b->row);
            const int sign = back ? product_sign(v, b, back) : 0;
            negative &= sign < 0;
            positive &= sign > 0;
        }
    v->sign = negative ? -1 : positive ? 1 : 0;
    v->dominated = v->sign == 0 && is_dominated(v);
}

/* What an equation makes of its own unknown, beside the transport that was found: real and imaginary rates. */
static void own_rates(const view *v, const trli_coupling *b, double *real, double *imaginary, double *neither)
{
    const double size = part_of(v, b, TRLI_COUPLING_SIZE);
    *real = size;
    *imaginary = *neither = 0;
    if (!b->wide || (is_known(b, TRLI_COUPLING_DISC) && part_of(v, b, TRLI_COUPLING_DISC) <= tolerance(v, b))) return;
    *real = part_of(v, b, TRLI_COUPLING_EVEN);
    *imaginary = part_of(v, b, TRLI_COUPLING_ODD);
    *neither = part_of(v, b, TRLI_COUPLING_UNSIGNED);
    if (*imaginary <= tolerance(v, b)) *imaginary = 0;
}

/* Fill the component's matrices of rates: one of what has real eigenvalues, or none for sure, one of what oscillates.
 * Returns the mean damping of its equations. */
static double fill(const view *v, const trli_bound *bound, double *rates, double *waves)
{
    const trl_integrator *m = v->sim->integrator;
    const int n = v->size;
    double damping = 0;
    memset(rates, 0, (size_t)(n * n) * sizeof *rates);
    memset(waves, 0, (size_t)(n * n) * sizeof *waves);
    for (int i = 0; i < n; ++i) {
        const int e = v->member[i];
        const double known = trli_quantity_value(v->sim, &bound->known[e]);
        rates[i * n + i] = known / v->scale;
        damping += 2 * known / n;
        for (int k = 0; k < n; ++k) {
            const trli_coupling *b = find_block(v->jacobian, e, v->member[k]);
            double real, imaginary, neither;
            if (!b) continue;
            if (k == i) {
                own_rates(v, b, &real, &imaginary, &neither);
                rates[i * n + i] += real / (2 * v->scale) + neither / m->radius;
                /* In a disc through 0 what oscillates needs damping of its own: 2 d/(d^2 + w^2) is the step. */
                const double own = real + 2 * known;
                if (m->imaginary == 0 && own > 1e-12 * imaginary)
                    rates[i * n + i] += imaginary * imaginary / (2 * own);
                else
                    waves[i * n + i] += imaginary;
                const bool damps = b->wide ? sign_of(v, b, TRLI_COUPLING_REAL_MOST, TRLI_COUPLING_REAL_LEAST) < 0
                                           : part_of(v, b, TRLI_COUPLING_DISC) <= 0;
                if (damps) damping += real / n;
                continue;
            }
            const double size = part_of(v, b, TRLI_COUPLING_SIZE);
            if (v->sign < 0)
                waves[i * n + k] = size;
            else
                rates[i * n + k] = v->sign > 0 || v->dominated ? size / (2 * v->scale) : size / m->radius;
        }
    }
    return damping;
}

/* The largest sum of a row, where a component is too large for its spectral radius. */
static double largest_row(const view *v, const trli_bound *bound)
{
    double largest = 0;
    for (int i = 0; i < v->size; ++i) {
        const int e = v->member[i];
        double row = 0;
        for (int k = v->jacobian->first[e]; k < v->jacobian->first[e + 1]; ++k)
            if (inside(v, &v->jacobian->block[k])) row += part_of(v, &v->jacobian->block[k], TRLI_COUPLING_SIZE);
        row = row / v->sim->integrator->radius + trli_quantity_value(v->sim, &bound->known[e]) / v->scale;
        largest = trli_max_or_nan(largest, row);
    }
    return largest;
}

static trli_rate component_rate(const trl_simulation *sim, int component, double scale)
{
    const trli_bound *bound = sim->bound;
    const trli_jacobian *j = bound->jacobian;
    view v = {.sim = sim,
              .jacobian = j,
              .component = component,
              .size = j->begin[component + 1] - j->begin[component],
              .member = j->member + j->begin[component],
              .scale = scale};
    trli_rate r = {.index = v.member[0], .by = v.size > 1 ? TRLI_BY_COUPLING : TRLI_BY_ITSELF};
    if (v.size > TRLI_LARGEST_COMPONENT) {
        r.rate = largest_row(&v, bound);
        r.by = TRLI_BY_SUMS;
        return r;
    }
    look_at(&v);
    const int n = v.size;
    double *rates = j->work, *waves = rates + n * n, *work = waves + n * n;
    const double damping = fill(&v, bound, rates, waves), interval = sim->integrator->imaginary;
    if (n == 1 && 2 * trli_quantity_value(sim, &bound->known[v.member[0]]) / scale >= rates[0] + waves[0])
        r.by = TRLI_BY_TRANSPORT;
    bool oscillates = false;
    for (int i = 0; i < n * n; ++i) oscillates |= waves[i] > 0;
    r.wavelike = oscillates;
    for (int i = 0; i < n * n && interval > 0; ++i) rates[i] += waves[i] / interval;
    if (!oscillates || interval > 0) {
        r.rate = trli_spectral_radius(n, rates, work);
        return r;
    }
    /* Couplings likewise, with d and w growing alike towards the shortest waves. Kinetics at a point oscillate at a
     * rate of their own, which steps can resolve. */
    const double w = trli_spectral_radius(n, waves, work);
    r.rate = trli_spectral_radius(n, rates, work);
    if (!v.wide)
        r.rate += w;
    else if (!(damping <= 1e-12 * w))
        r.rate += w * w / (2 * damping);
    else
        r.unstable = true;
    return r;
}

static bool decides(const trli_rate *r, const trli_rate *so_far)
{
    if (r->unstable || so_far->unstable) return r->unstable && !so_far->unstable;
    return !isnan(so_far->rate) && !(r->rate <= so_far->rate); /* the first that is NaN */
}

static void take(const trli_rate *r, trli_rate *largest)
{
    if (decides(r, largest)) *largest = *r;
}

static trli_rate rate_by_sums(const trl_simulation *sim, double scale)
{
    const trli_bound *bound = sim->bound;
    trli_rate r = {.by = TRLI_BY_SUMS};
    double known = 0, sum = 0;
    for (int v = 0; v < sim->nequations; ++v) {
        const double one = trli_quantity_value(sim, &bound->known[v]);
        if (one <= known || isnan(known)) continue;
        known = one;
        r.index = v;
    }
    for (int i = 0; i < bound->jacobian->nsums; ++i)
        sum = trli_max_or_nan(sum, trli_quantity_value(sim, &bound->jacobian->sum[i]));
    r.rate = known / scale + sum / sim->integrator->radius;
    if (sum == 0) r.by = TRLI_BY_TRANSPORT;
    return r;
}

trli_rate trli_bound_rate(const trl_simulation *sim, bool unscaled)
{
    const trli_bound *bound = sim->bound;
    const double scale = unscaled ? 1 : sim->integrator->stability;
    trli_rate largest = {.by = TRLI_BY_NOTHING, .index = -1};
    if (bound->jacobian->by_sums) {
        const trli_rate r = rate_by_sums(sim, scale);
        take(&r, &largest);
    }
    for (int c = 0; c < bound->jacobian->ncomponents && !bound->jacobian->by_sums; ++c) {
        const trli_rate r = component_rate(sim, c, scale);
        take(&r, &largest);
    }
    for (int i = 0; i < bound->nplugins; ++i) {
        const trli_rate r = {.rate = 1 / trli_quantity_value(sim, &bound->plugin_dt[i]) / scale,
                             .by = TRLI_BY_PLUGIN,
                             .index = bound->plugin[i]};
        take(&r, &largest);
    }
    if (bound->given.kind != TRLI_QUANTITY_NONE) {
        const trli_rate r = {.rate = trli_quantity_value(sim, &bound->given) / scale, .by = TRLI_BY_GIVEN};
        take(&r, &largest);
    }
    return largest;
}

void trli_rate_words(const trl_simulation *sim, const trli_rate *rate, size_t size, char *words)
{
    const trli_jacobian *j = sim->bound->jacobian;
    const char *name = rate->index >= 0 && rate->by != TRLI_BY_PLUGIN && rate->by != TRLI_BY_NOTHING
                           ? sim->equation[rate->index].deck->name
                           : "";
    size_t used = 0;
    switch (rate->by) {
    case TRLI_BY_NOTHING:
        snprintf(words, size, "nothing");
        break;
    case TRLI_BY_TRANSPORT:
        snprintf(words, size, "the advection and diffusion of '%s'", name);
        break;
    case TRLI_BY_ITSELF:
        snprintf(words, size, "'%s' in the equation of '%s'", j->text[rate->index], name);
        break;
    case TRLI_BY_COUPLING: {
        const int c = j->component[rate->index], n = j->begin[c + 1] - j->begin[c], shown = n > 4 ? 3 : n;
        used = (size_t)snprintf(words, size, "the %scoupling of ", rate->wavelike ? "oscillating " : "");
        for (int i = 0; i < shown && used < size; ++i)
            used += (size_t)snprintf(words + used, size - used, "%s'%s'",
                                     i == 0       ? ""
                                     : i == n - 1 ? " and "
                                                  : ", ",
                                     sim->equation[j->member[j->begin[c] + i]].deck->name);
        if (shown < n && used < size) snprintf(words + used, size - used, " and %d more", n - shown);
        break;
    }
    case TRLI_BY_SUMS:
        snprintf(words, size,
                 "the largest sum over a row of the Jacobian, with what is coupled too much to look closer");
        break;
    case TRLI_BY_PLUGIN:
        snprintf(words, size, "the stable_dt of '%s'", sim->model->front->entry[rate->index].deck->name);
        break;
    case TRLI_BY_GIVEN:
        snprintf(words, size, "speed and diffusivity");
        break;
    }
}
