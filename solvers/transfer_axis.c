/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Along one axis: which points of two grids are joined, and by which weights. */
#include <math.h>
#include <string.h>

#include "memory_impl.h"
#include "multigrid_impl.h"

/* The position of a fine point among coarse ones: point *j and the weight of the next one. */
static void coarse_points(const trli_axis_transfer *t, int i, int *j, double w[2])
{
    const double ratio = (double)t->coarse_cells / t->fine_cells;
    const double at = t->on_faces ? i * ratio : (i + 0.5) * ratio - 0.5;
    *j = (int)floor(at);
    w[1] = at - *j;
    w[0] = 1 - w[1];
}

static void make_rows(trli_axis_transfer *t, const double factor[2])
{
    for (int i = 0; i < t->fine; ++i) {
        int j;
        double w[2];
        coarse_points(t, i, &j, w);
        t->from[0][i] = j;
        t->from[1][i] = j + 1;
        if (t->periodic) {
            t->from[0][i] = (j + t->coarse) % t->coarse;
            t->from[1][i] = (j + 1) % t->coarse;
        } else if (j < 0) {
            w[1] += factor[0] * w[0];
            w[0] = 0;
            t->from[0][i] = 0;
        } else if (j + 1 == t->coarse) {
            w[0] += t->on_faces ? 0 : factor[1] * w[1];
            w[1] = 0;
            t->from[1][i] = j;
        }
        if (w[1] == 0) t->from[1][i] = t->from[0][i]; /* none beyond it is read */
        t->weight[0][i] = w[0];
        t->weight[1][i] = w[1];
    }
}

/* Where nothing goes round the ends. */
static void find_steady(trli_axis_transfer *t)
{
    int lo = 0, hi = 1;
    for (int i = 1, begin = 0; i < t->fine; ++i) {
        for (int side = 0; side < 2; ++side) {
            const int more = t->from[side][i] - t->from[side][i - 1];
            if (more < 0 || more > 1) begin = i;
        }
        if (i + 1 - begin <= hi - lo) continue;
        lo = begin;
        hi = i + 1;
    }
    t->steady[0] = lo;
    t->steady[1] = hi;
}

/* The longest run of coarse points that vectors restrict to. */
static void find_even(trli_axis_transfer *t)
{
    int lo = 0, hi = 0;
    for (int j = 0, begin = 0; j < t->coarse; ++j) {
        const int more = j > 0 ? t->first[j] - t->first[j - 1] : 0;
        for (int k = 0; k < TRLI_TRANSFER_FEW; ++k) t->few[k][j] = k < t->count[j] ? t->back[j][k] : 0;
        if (more < 0 || more > 2) begin = j;
        if (t->count[j] > TRLI_TRANSFER_FEW) begin = j + 1;
        if (j + 1 - begin <= hi - lo) continue;
        lo = begin;
        hi = j + 1;
    }
    t->even[0] = lo;
    t->even[1] = hi;
}

/* Points on a side stand for half a cell. */
static double share(const trli_axis_transfer *t, int i, int n)
{
    return t->on_faces && !t->periodic && (i == 0 || i + 1 == n) ? 0.5 : 1;
}

/* The weight of fine point i in the transpose's row j, in which constants stay what they are. */
static double transposed(const trli_axis_transfer *t, const double factor[2], int i, int j)
{
    const bool inside = t->periodic || (i >= 0 && i < t->fine);
    int at;
    double w[2], sum = 0;
    if (!inside) return 0;
    coarse_points(t, i, &at, w);
    for (int side = 0; side < 2; ++side) {
        const int to = at + side;
        if (to == j) sum += w[side];
        if (t->periodic || t->on_faces) continue;
        if (to == -1 && j == 0) sum += factor[0] * w[side];
        if (to == t->coarse && j + 1 == t->coarse) sum += factor[1] * w[side];
    }
    return sum * t->coarse_cells / t->fine_cells * share(t, i, t->fine) / share(t, j, t->coarse);
}

/* The weight of fine point i in the mean over a coarse cell, or at a coarse face. */
static double averaged(const trli_axis_transfer *t, int i, int j)
{
    const double ratio = (double)t->fine_cells / t->coarse_cells;
    if (t->on_faces) return fmax(0, 1 - fabs(i - j * ratio));
    return fmax(0, fmin(i + 1, (j + 1) * ratio) - fmax(i, j * ratio)) / ratio;
}

static void make_columns(trli_axis_transfer *t, bool mean, const double factor[2])
{
    for (int j = 0; j < t->coarse; ++j) {
        const double at = (t->on_faces ? j : j + 0.5) * t->fine_cells / t->coarse_cells;
        const int centre = t->centre[j] = (int)floor(at);
        t->first[j] = centre - TRLI_TRANSFER_DEPTH;
        t->count[j] = 2 * TRLI_TRANSFER_DEPTH + 1;
        for (int k = 0; k < t->count[j]; ++k) {
            const int i = t->first[j] + k;
            t->back[j][k] = mean ? averaged(t, i, j) : transposed(t, factor, i, j);
        }
        while (t->count[j] > 1 && t->back[j][t->count[j] - 1] == 0) --t->count[j];
        int zero = 0;
        while (zero + 1 < t->count[j] && t->back[j][zero] == 0) ++zero;
        memmove(t->back[j], t->back[j] + zero, (size_t)(t->count[j] - zero) * sizeof(double));
        t->first[j] += zero;
        t->count[j] -= zero;
    }
}

static trl_err make_room(trl_context *ctx, trli_axis_transfer *t)
{
    for (int side = 0; side < 2; ++side) {
        t->from[side] = trli_new(ctx, (size_t)t->fine, sizeof *t->from[side]);
        t->weight[side] = trli_new(ctx, (size_t)t->fine, sizeof *t->weight[side]);
        if (!t->from[side] || !t->weight[side]) return trli_no_memory(ctx, NULL, "for a transfer between grids");
    }
    for (int k = 0; k < TRLI_TRANSFER_FEW; ++k) {
        t->few[k] = trli_new(ctx, (size_t)t->coarse, sizeof *t->few[k]);
        if (!t->few[k]) return trli_no_memory(ctx, NULL, "for a transfer between grids");
    }
    t->first = trli_new(ctx, (size_t)t->coarse, sizeof *t->first);
    t->count = trli_new(ctx, (size_t)t->coarse, sizeof *t->count);
    t->centre = trli_new(ctx, (size_t)t->coarse, sizeof *t->centre);
    t->back = trli_new(ctx, (size_t)t->coarse, sizeof *t->back);
    if (!t->first || !t->count || !t->centre || !t->back)
        return trli_no_memory(ctx, NULL, "for a transfer between grids");
    return TRL_OK;
}

trl_err trli_axis_transfer_make(trl_context *ctx, trli_axis_transfer *t, bool mean, const double factor[2])
{
    const int more = t->on_faces && !t->periodic;
    t->fine = t->fine_cells + more;
    t->coarse = t->coarse_cells + more;
    const trl_err err = make_room(ctx, t);
    if (err != TRL_OK) return err;
    make_rows(t, factor);
    find_steady(t);
    make_columns(t, mean, factor);
    find_even(t);
    return TRL_OK;
}

void trli_axis_transfer_free(trli_axis_transfer *t)
{
    for (int side = 0; side < 2; ++side) {
        trli_free(t->from[side]);
        trli_free(t->weight[side]);
    }
    for (int k = 0; k < TRLI_TRANSFER_FEW; ++k) trli_free(t->few[k]);
    trli_free(t->first);
    trli_free(t->count);
    trli_free(t->centre);
    trli_free(t->back);
}
