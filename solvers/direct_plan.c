/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Which transforms diagonalise an operator, and its eigenvalues. */
#include <math.h>

#include "direct_impl.h"
#include "memory_impl.h"

/* Entries are compared with rounding errors of this size, relative to the largest of all. */
static const double rounding = 1e-13;

/* Second differences along an axis. */
typedef struct differences {
    trli_transform_kind kind;
    double weight; /* of a neighbour */
    double centre; /* the diagonal inside */
} differences;

static bool same(double a, double b, double scale)
{
    return fabs(a - b) <= rounding * scale;
}

static double largest_entry(const trli_line line[3])
{
    double most = 0;
    for (int a = 0; a < 3; ++a)
        for (int i = 0; i < line[a].n; ++i)
            most = fmax(most, fmax(fabs(line[a].diagonal[i]), fmax(fabs(line[a].lower[i]), fabs(line[a].upper[i]))));
    return most;
}

/* What stands beyond an end, in terms of the end's row; -1: nothing of these. */
enum { EVEN, ODD, POINT_EVEN, POINT_ODD, ENDS };

static int find_end(double diagonal, double inward, const differences *d, double scale)
{
    if (same(inward, 2 * d->weight, scale) && same(diagonal, d->centre, scale)) return POINT_EVEN;
    if (!same(inward, d->weight, scale)) return -1;
    if (same(diagonal, d->centre + d->weight, scale)) return EVEN;
    if (same(diagonal, d->centre - d->weight, scale)) return ODD;
    return same(diagonal, d->centre, scale) ? POINT_ODD : -1;
}

/* Two points have no row inside. */
static bool find_pair(const trli_line *l, double scale, differences *d)
{
    const double a = l->diagonal[0], b = l->diagonal[1], up = l->upper[0], down = l->lower[1];
    *d = (differences){.weight = fmin(fabs(up), fabs(down)) == fabs(up) ? up : down, .centre = a};
    if (same(up, down, scale)) {
        d->centre = same(a, b, scale) ? a - up : (a + b) / 2;
        d->kind = same(a, b, scale)            ? TRLI_TRANSFORM_EVEN
                  : same(a - b, 2 * up, scale) ? TRLI_TRANSFORM_EVEN_ODD
                                               : TRLI_TRANSFORM_ODD_EVEN;
        return same(a, b, scale) || same(fabs(a - b), 2 * fabs(up), scale);
    }
    d->kind = same(up, 2 * down, scale) ? TRLI_TRANSFORM_POINT_EVEN_ODD : TRLI_TRANSFORM_POINT_ODD_EVEN;
    return same(a, b, scale) && (same(up, 2 * down, scale) || same(down, 2 * up, scale));
}

/* Whether lines can be transformed. */
static bool find_differences(const trli_line *l, double scale, differences *d)
{
    static const int kinds[ENDS][ENDS] = {
        [EVEN] = {TRLI_TRANSFORM_EVEN, TRLI_TRANSFORM_EVEN_ODD, -1, -1},
        [ODD] = {TRLI_TRANSFORM_ODD_EVEN, TRLI_TRANSFORM_ODD, -1, -1},
        [POINT_EVEN] = {-1, -1, TRLI_TRANSFORM_POINT_EVEN, TRLI_TRANSFORM_POINT_EVEN_ODD},
        [POINT_ODD] = {-1, -1, TRLI_TRANSFORM_POINT_ODD_EVEN, TRLI_TRANSFORM_POINT_ODD}};
    const int last = l->n - 1;
    *d = (differences){.weight = l->lower[l->base], .centre = l->diagonal[l->base]};
    if (l->n == 2 && !l->periodic) return find_pair(l, scale, d);
    for (int i = l->periodic ? 0 : 1; i < (l->periodic ? l->n : last); ++i)
        if (!same(l->lower[i], d->weight, scale) || !same(l->upper[i], d->weight, scale) ||
            !same(l->diagonal[i], d->centre, scale))
            return false;
    d->kind = TRLI_TRANSFORM_PERIODIC;
    if (l->periodic) return true;
    const int before = find_end(l->diagonal[0], l->upper[0], d, scale);
    const int after = find_end(l->diagonal[last], l->lower[last], d, scale);
    if (before < 0 || after < 0 || kinds[before][after] < 0) return false;
    d->kind = (trli_transform_kind)kinds[before][after];
    return true;
}

/* Of second differences; so written, small ones are exact. */
static double eigenvalue(trli_transform_kind kind, int n, int k, double weight)
{
    double angle = 0;
    switch (kind) {
#define CASE(NAME, words, t)    \
    case TRLI_TRANSFORM_##NAME: \
        angle = t;              \
        break;
        TRLI_TRANSFORM_LIST(CASE)
#undef CASE
    case TRLI_TRANSFORMS:
        break;
    }
    const double s = sin(0.5 * M_PI * angle);
    return -4 * weight * s * s;
}

static trl_err transform_axis(trl_context *ctx, int n, const differences *d, trli_direct_plan *plan, int axis)
{
    trl_err err = TRL_OK;
    double *value = plan->axis[axis].value = trli_new(ctx, (size_t)n, sizeof *value);
    if (!value) return trli_no_memory(ctx, NULL, "for a direct solver");
    plan->axis[axis].kind = d->kind;
    for (int k = 0; k < n; ++k) value[k] = eigenvalue(d->kind, n, k, d->weight);
    TRL_TRY(trli_transform_create(ctx, d->kind, n, &plan->axis[axis].transform));
    plan->scale /= trli_transform_norm(plan->axis[axis].transform);
done:
    return err;
}

/* Elimination without pivoting is safe where the diagonal dominates, whatever eigenvalue is added. */
static bool dominates(const trli_line *l, double middle, double least, double most)
{
    for (int i = 0; i < l->n; ++i) {
        const double a = l->diagonal[i] + middle + least, b = l->diagonal[i] + middle + most;
        const double beside = (1 - 1e-10) * (fabs(i > 0 ? l->lower[i] : 0) + fabs(i + 1 < l->n ? l->upper[i] : 0));
        if (a * b < 0 || fabs(a) < beside || fabs(b) < beside) return false;
    }
    return true;
}

static trl_err sweep_axis(trl_context *ctx, const trli_line *l, double middle, trli_direct_plan *plan)
{
    plan->lower = trli_new(ctx, 3 * (size_t)l->n, sizeof(double));
    if (!plan->lower) return trli_no_memory(ctx, NULL, "for a direct solver");
    plan->middle = plan->lower + l->n;
    plan->upper = plan->middle + l->n;
    plan->swept = true;
    for (int i = 0; i < l->n; ++i) {
        plan->lower[i] = i > 0 ? l->lower[i] : 0;
        plan->middle[i] = l->diagonal[i] + middle;
        plan->upper[i] = i + 1 < l->n ? l->upper[i] : 0;
    }
    return TRL_OK;
}

static double common_of(const trli_line *l, const differences *d)
{
    return d->centre - l->diagonal[l->base] + 2 * d->weight;
}

/* What the other axes have in common on the diagonal of axis `last`, and the range of their eigenvalues. */
static double others(const trli_line line[3], const differences d[3], int last, double *least, double *most)
{
    double sum = 0;
    *least = *most = 0;
    for (int a = 0; a < 3; ++a) {
        if (a == last || line[a].n == 1) continue;
        sum += common_of(&line[a], &d[a]);
        *least += fmin(0, -4 * d[a].weight);
        *most += fmax(0, -4 * d[a].weight);
    }
    return sum;
}

/* The axis that comes last: the one that has to be swept, else the last one that can be, else the last. */
static void choose_last(const trli_line line[3], const differences d[3], const bool can[3], int wanted,
                        trli_direct_plan *plan)
{
    double least, most;
    plan->swept = true;
    for (int a = 2; a >= 0; --a) {
        plan->last = a;
        if (wanted >= 0 ? a == wanted : line[a].n > 1 && !can[a]) return;
    }
    for (int a = 2; a >= 0; --a) {
        plan->last = a;
        const double middle = others(line, d, a, &least, &most);
        if (line[a].n > 1 && !line[a].periodic && dominates(&line[a], middle, least, most)) return;
    }
    plan->swept = false;
    for (int a = 0; a < 3; ++a)
        if (line[a].n > 1) plan->last = a;
}

trl_err trli_direct_plan_create(trl_context *ctx, const trli_line line[3], int wanted, bool singular,
                                trli_direct_plan *plan, const char **why)
{
    const double scale = largest_entry(line);
    differences d[3] = {0};
    bool can[3] = {true, true, true};
    double least, most;
    trl_err err = TRL_OK;
    *plan = (trli_direct_plan){.singular = singular, .scale = 1};
    *why = NULL;
    for (int a = 0; a < 3; ++a) {
        plan->axis[a].n = line[a].n;
        if (line[a].n > 1) can[a] = find_differences(&line[a], scale, &d[a]);
    }
    choose_last(line, d, can, wanted, plan);
    for (int a = 0; a < 3; ++a) {
        if (a == plan->last && plan->swept) continue;
        if (!can[a]) *why = "along more than one axis its coefficients vary, or its conditions are of the kind robin";
        plan->axis[a].common = common_of(&line[a], &d[a]);
        if (line[a].n > 1 && can[a]) TRL_TRY(transform_axis(ctx, line[a].n, &d[a], plan, a));
    }
    const trli_line *l = &line[plan->last];
    const double middle = others(line, d, plan->last, &least, &most);
    if (plan->swept && l->periodic && l->n > 1) *why = "the operator's coefficients vary along a periodic axis";
    if (plan->swept) TRL_TRY(sweep_axis(ctx, l, middle, plan));
    plan->centre = d[plan->last].centre + 2 * d[plan->last].weight + middle;
    if (l->n == 1) plan->centre = l->diagonal[0] + middle;
done:
    return err;
}

trl_err trli_direct_plan_add_weights(trl_context *ctx, trli_direct_plan *plan)
{
    const int n = plan->axis[plan->last].n;
    for (int a = 0; a < 3; ++a) {
        if (!plan->axis[a].transform) continue;
        double *weight = plan->axis[a].weight = trli_new(ctx, (size_t)n, sizeof *weight);
        if (!weight) return trli_no_memory(ctx, NULL, "for a direct solver");
        for (int i = 0; i < n; ++i) weight[i] = 1;
    }
    return TRL_OK;
}

void trli_direct_plan_use_weights(trli_direct_plan *plan)
{
    const int n = plan->axis[plan->last].n;
    for (int a = 0; a < 3; ++a) {
        double *weight = plan->axis[a].weight;
        bool ones = true;
        for (int i = 0; weight && i < n; ++i) ones &= same(weight[i], 1, 1);
        for (int i = 0; !ones && i < n; ++i) plan->middle[i] += plan->axis[a].common * (weight[i] - 1);
        if (!ones) continue;
        trli_free(weight);
        plan->axis[a].weight = NULL;
    }
}

void trli_direct_plan_destroy(trli_direct_plan *plan)
{
    for (int a = 0; a < 3; ++a) {
        trli_transform_destroy(&plan->axis[a].transform);
        trli_free(plan->axis[a].value);
        trli_free(plan->axis[a].weight);
    }
    trli_free(plan->lower);
    *plan = (trli_direct_plan){0};
}
