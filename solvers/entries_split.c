/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Where neighbours are coupled most strongly along one axis here and along another there: each point of the first grid
 * that is odd along an axis of strong coupling is left out, and interpolated along such axes alone. */
#include <math.h>
#include <string.h>

#include "galerkin_impl.h"
#include "memory_impl.h"

static int64_t point(const trli_entries *a, const int at[3])
{
    return at[0] + (int64_t)a->n[0] * (at[1] + (int64_t)a->n[1] * at[2]);
}

/* How strongly a point is coupled along each axis, its equation summed over the others. */
static void strengths_at(const trli_entries *a, int64_t p, double strength[3])
{
    const double *entry = a->entry + p * a->entries;
    const double sign = entry[0] < 0 ? 1 : -1;
    for (int axis = 0; axis < 3; ++axis) {
        double sum = 0;
        for (int e = 1; e < a->entries; ++e)
            if (a->offset[e][axis]) sum += entry[e];
        strength[axis] = fmax(0, sign * sum);
    }
}

trl_err trli_entries_sparse(trl_context *ctx, const trli_entries *a, trli_sparse *m)
{
    const int n = (int)trli_entries_points(a);
    trli_sparse_rows making;
    int at[3];
    trl_err err = TRL_OK;
    TRL_TRY(trli_sparse_begin(ctx, n, n, m, &making));
    for (at[2] = 0; at[2] < a->n[2]; ++at[2])
        for (at[1] = 0; at[1] < a->n[1]; ++at[1])
            for (at[0] = 0; at[0] < a->n[0]; ++at[0]) {
                const double *entry = a->entry + point(a, at) * a->entries;
                for (int e = 0; e < a->entries; ++e) {
                    int to[3];
                    for (int c = 0; c < 3; ++c) to[c] = (at[c] + a->offset[e][c] + a->n[c]) % a->n[c];
                    if (entry[e] != 0) TRL_TRY(trli_sparse_entry(&making, (int)point(a, to), entry[e]));
                }
                trli_sparse_end_row(&making);
            }
done:
    return err;
}

/* ---- interpolation ---- */

/* Bits of the axes along which a point is left out. */
static int left_out(const trli_entries *a, const int at[3])
{
    const double weak = 0.28; /* of the strongest: an axis that is about half as strong goes along */
    double strength[3], most = 0;
    int bits = 0;
    strengths_at(a, point(a, at), strength);
    for (int axis = 0; axis < 3; ++axis) most = fmax(most, strength[axis]);
    for (int axis = 0; axis < 3; ++axis)
        if (at[axis] % 2 && strength[axis] > 0 && strength[axis] >= weak * most) bits |= 1 << axis;
    return bits;
}

static int code_of(const int offset[3])
{
    return offset[0] + 1 + 3 * (offset[1] + 1) + 9 * (offset[2] + 1);
}

/* weight[code of an offset from the point that is interpolated] += factor times the weights of the point `at`, which
 * lies at an offset from that one: its own, or by its equation those of neighbours along axes on which it is left out.
 * These are left out along fewer. */
static void add_weights(const trli_entries *a, const int at[3], const int offset[3], double factor, double *weight)
{
    const double *entry = a->entry + point(a, at) * a->entries;
    const int own = left_out(a, at);
    double centre = 0;
    if (!own) weight[code_of(offset)] += factor;
    for (int e = 0; e < a->entries && own; ++e) {
        bool along = false;
        for (int axis = 0; axis < 3; ++axis) along |= a->offset[e][axis] && own >> axis & 1;
        if (!along) centre += entry[e];
    }
    for (int e = 1; e < a->entries && own && centre != 0; ++e) {
        int to[3], further[3];
        bool along = false;
        for (int axis = 0; axis < 3; ++axis) {
            along |= a->offset[e][axis] && own >> axis & 1;
            to[axis] = (at[axis] + a->offset[e][axis] + a->n[axis]) % a->n[axis];
            further[axis] = offset[axis] + a->offset[e][axis];
        }
        if (along && entry[e] != 0) add_weights(a, to, further, -factor * entry[e] / centre, weight);
    }
}

/* Numbers of the points that stay. */
static int number_points(const trli_entries *a, int *number)
{
    int at[3], p = 0, coarse = 0;
    for (at[2] = 0; at[2] < a->n[2]; ++at[2])
        for (at[1] = 0; at[1] < a->n[1]; ++at[1])
            for (at[0] = 0; at[0] < a->n[0]; ++at[0], ++p)
                number[p] = a->entry[(int64_t)p * a->entries] != 0 && !left_out(a, at) ? coarse++ : -1;
    return coarse;
}

static trl_err add_row(const trli_entries *a, const int *number, const int at[3], trli_sparse_rows *making)
{
    double weight[TRLI_AROUND] = {0};
    const int none[3] = {0, 0, 0};
    trl_err err = TRL_OK;
    if (a->entry[point(a, at) * a->entries] != 0) add_weights(a, at, none, 1, weight);
    for (int code = 0; code < TRLI_AROUND; ++code) {
        const int offset[3] = {code % 3 - 1, code / 3 % 3 - 1, code / 9 - 1};
        int to[3];
        if (weight[code] == 0) continue;
        for (int c = 0; c < 3; ++c) to[c] = (at[c] + offset[c] + a->n[c]) % a->n[c];
        TRL_TRY(trli_sparse_entry(making, number[point(a, to)], weight[code]));
    }
    trli_sparse_end_row(making);
done:
    return err;
}

trl_err trli_entries_split(trl_context *ctx, const trli_entries *a, int *number, trli_sparse *p)
{
    trli_sparse_rows making;
    int at[3];
    trl_err err = TRL_OK;
    const int coarse = number_points(a, number);
    TRL_TRY(trli_sparse_begin(ctx, (int)trli_entries_points(a), coarse, p, &making));
    for (at[2] = 0; at[2] < a->n[2]; ++at[2])
        for (at[1] = 0; at[1] < a->n[1]; ++at[1])
            for (at[0] = 0; at[0] < a->n[0]; ++at[0]) TRL_TRY(add_row(a, number, at, &making));
done:
    return err;
}
