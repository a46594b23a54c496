/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* From the entries of a grid to those of the next coarser one. */
#include <math.h>
#include <string.h>

#include "galerkin_impl.h"

void trli_entries_compact(trli_entries *a)
{
    a->entries = 0;
    for (int code = 0; code < 28; ++code) {
        const int c = code == 0 ? 13 : code - 1; /* the origin first, and once */
        const int offset[3] = {c % 3 - 1, c / 3 % 3 - 1, c / 9 - 1};
        bool held = code == 0 || c != 13;
        for (int axis = 0; axis < 3; ++axis) held &= a->n[axis] > 1 || offset[axis] == 0;
        if (held) memcpy(a->offset[a->entries++], offset, sizeof offset);
    }
}

/* How strongly neighbours along each axis are coupled, in the mean over points, relative to their own entries. */
static void find_strengths(const trli_entries *a, double strength[3])
{
    const int64_t n = trli_entries_points(a);
    for (int axis = 0; axis < 3; ++axis) strength[axis] = 0;
    for (int64_t p = 0; p < n; ++p) {
        const double *entry = a->entry + p * a->entries;
        for (int e = 1; e < a->entries && entry[0] != 0; ++e)
            for (int axis = 0; axis < 3; ++axis)
                if (a->offset[e][axis]) strength[axis] += fabs(entry[e] / entry[0]);
    }
}

bool trli_entries_halved(const trli_entries *a, bool halved[3])
{
    enum { COARSEST = 4 };
    const double weak = 0.28; /* of the strongest: an axis that is about half as strong goes along */
    double strength[3], most = 0;
    bool any = false;
    find_strengths(a, strength);
    for (int axis = 0; axis < 3; ++axis)
        if (a->n[axis] > COARSEST) most = fmax(most, strength[axis]);
    for (int axis = 0; axis < 3; ++axis) any |= halved[axis] = a->n[axis] > COARSEST && strength[axis] >= weak * most;
    return any;
}

/* ---- interpolation ---- */

static int64_t point(const trli_entries *a, const int at[3])
{
    return at[0] + (int64_t)a->n[0] * (at[1] + (int64_t)a->n[1] * at[2]);
}

/* The place of a neighbour; false: it is beyond a side. */
static bool step_to(const trli_entries *a, const int at[3], const int offset[3], int to[3])
{
    for (int axis = 0; axis < 3; ++axis) {
        to[axis] = at[axis] + offset[axis];
        if (a->periodic[axis]) to[axis] = (to[axis] + a->n[axis]) % a->n[axis];
        if (to[axis] < 0 || to[axis] >= a->n[axis]) return false;
    }
    return true;
}

/* Bits of the axes along which a point lies between two coarse ones. */
static int between(const bool halved[3], const int at[3])
{
    int bits = 0;
    for (int axis = 0; axis < 3; ++axis)
        if (halved[axis] && at[axis] % 2) bits |= 1 << axis;
    return bits;
}

/* A point's equation, with no right-hand side and summed over the axes along which it is a coarse one, gives its value
 * from those of neighbours that are between fewer coarse points, whose shares are known. */
static void find_share(const trli_entries *a, const bool halved[3], const int at[3], double *share)
{
    const int64_t p = point(a, at);
    const double *entry = a->entry + p * a->entries;
    const int own = between(halved, at);
    double *to = share + p * TRLI_CORNERS, centre = 0;
    for (int c = 0; c < TRLI_CORNERS; ++c) to[c] = 0;
    if (entry[0] == 0) return;
    to[0] = own == 0;
    for (int e = 0; e < a->entries && own; ++e) {
        int offset[3], other[3], bits = 0, upper = 0;
        for (int axis = 0; axis < 3; ++axis) {
            offset[axis] = own >> axis & 1 ? a->offset[e][axis] : 0;
            bits |= (offset[axis] != 0) << axis;
            upper |= (offset[axis] > 0) << axis;
        }
        if (!bits) centre += entry[e];
        if (!bits || entry[e] == 0 || !step_to(a, at, offset, other)) continue;
        const double *from = share + point(a, other) * TRLI_CORNERS;
        for (int c = 0; c < TRLI_CORNERS; ++c)
            if (!(c & bits) && from[c] != 0) to[c | upper] -= entry[e] * from[c];
    }
    for (int c = 0; c < TRLI_CORNERS && own; ++c) to[c] = centre != 0 ? to[c] / centre : 0;
}

typedef struct sharing {
    const trli_entries *a;
    const bool *halved;
    double *share;
    int axes; /* points that lie between coarse ones along so many axes */
} sharing;

static int count_bits(int bits)
{
    return (bits & 1) + (bits >> 1 & 1) + (bits >> 2 & 1);
}

static void rows_of(int64_t rows, int chunk, int chunks, int64_t *begin, int64_t *end)
{
    *begin = rows * chunk / chunks;
    *end = rows * (chunk + 1) / chunks;
}

static trl_err share_chunk(void *data, int chunk, int chunks, int worker)
{
    const sharing *w = data;
    const int *n = w->a->n;
    int64_t begin, end;
    (void)worker;
    rows_of((int64_t)n[1] * n[2], chunk, chunks, &begin, &end);
    for (int64_t row = begin; row < end; ++row)
        for (int i = 0; i < n[0]; ++i) {
            const int at[3] = {i, (int)(row % n[1]), (int)(row / n[1])};
            if (count_bits(between(w->halved, at)) == w->axes) find_share(w->a, w->halved, at, w->share);
        }
    return TRL_OK;
}

static int chunks_for(const trl_loop *loop, const int n[3])
{
    const int64_t rows = (int64_t)n[1] * n[2], most = 4 * (int64_t)trl_loop_workers(loop);
    return (int)(rows < most ? rows : most);
}

trl_err trli_entries_shares(const trli_entries *a, const bool halved[3], trl_loop *loop, double *share)
{
    sharing w = {a, halved, share, 0};
    trl_err err = TRL_OK;
    for (; w.axes <= 3; ++w.axes) TRL_TRY(trl_loop_run(loop, chunks_for(loop, a->n), share_chunk, &w));
done:
    return err;
}

/* ---- P^T A P ---- */

typedef struct multiplying {
    const trli_entries *a;
    const bool *halved;
    const double *share;
    trli_entries *coarse;
    int entry_at[TRLI_ENTRIES_MOST]; /* by code of an offset */
} multiplying;

static int code_of(const int offset[3])
{
    return offset[0] + 1 + 3 * (offset[1] + 1) + 9 * (offset[2] + 1);
}

/* What fine point `other`, with some factor, adds to the row of coarse point `at`. */
static void add_column(const multiplying *w, const int at[3], const int other[3], double factor, double *row)
{
    const double *share = w->share + point(w->a, other) * TRLI_CORNERS;
    for (int c = 0; c < TRLI_CORNERS; ++c) {
        int offset[3];
        if (share[c] == 0) continue;
        for (int axis = 0; axis < 3; ++axis) {
            const int n = w->coarse->n[axis];
            const int to = w->halved[axis] ? other[axis] / 2 + (c >> axis & 1) : other[axis];
            offset[axis] = to - at[axis];
            if (!w->coarse->periodic[axis]) continue;
            if (offset[axis] > 1) offset[axis] -= n;
            if (offset[axis] < -1) offset[axis] += n;
        }
        row[w->entry_at[code_of(offset)]] += factor * share[c];
    }
}

/* Where a fine point near a coarse one has its share; false: it has none. */
static bool near_point(const multiplying *w, const int at[3], int code, int fine[3], int *corner)
{
    int offset[3] = {code % 3 - 1, code / 3 % 3 - 1, code / 9 - 1}, centre[3];
    *corner = 0;
    for (int axis = 0; axis < 3; ++axis) {
        if (offset[axis] && !w->halved[axis]) return false;
        centre[axis] = w->halved[axis] ? 2 * at[axis] : at[axis];
        *corner |= (offset[axis] < 0) << axis;
    }
    if (!step_to(w->a, centre, offset, fine)) return false;
    for (int axis = 0; axis < 3; ++axis)
        if (offset[axis] && fine[axis] % 2 == 0) return false; /* two coarse points meet where a period is odd */
    return true;
}

static void find_row(const multiplying *w, const int at[3])
{
    const trli_entries *a = w->a;
    double *row = w->coarse->entry + point(w->coarse, at) * w->coarse->entries;
    for (int e = 0; e < w->coarse->entries; ++e) row[e] = 0;
    for (int code = 0; code < TRLI_ENTRIES_MOST; ++code) {
        int fine[3], other[3], corner;
        if (!near_point(w, at, code, fine, &corner)) continue;
        const double share = w->share[point(a, fine) * TRLI_CORNERS + corner];
        const double *entry = a->entry + point(a, fine) * a->entries;
        for (int e = 0; e < a->entries && share != 0; ++e)
            if (entry[e] != 0 && step_to(a, fine, a->offset[e], other)) add_column(w, at, other, share * entry[e], row);
    }
}

static trl_err multiply_chunk(void *data, int chunk, int chunks, int worker)
{
    const multiplying *w = data;
    const int *n = w->coarse->n;
    int64_t begin, end;
    (void)worker;
    rows_of((int64_t)n[1] * n[2], chunk, chunks, &begin, &end);
    for (int64_t row = begin; row < end; ++row)
        for (int i = 0; i < n[0]; ++i) find_row(w, (int[3]){i, (int)(row % n[1]), (int)(row / n[1])});
    return TRL_OK;
}

trl_err trli_entries_product(const trli_entries *a, const bool halved[3], const double *share, trl_loop *loop,
                             trli_entries *coarse)
{
    multiplying w = {a, halved, share, coarse, {0}};
    for (int e = 0; e < coarse->entries; ++e) w.entry_at[code_of(coarse->offset[e])] = e;
    return trl_loop_run(loop, chunks_for(loop, coarse->n), multiply_chunk, &w);
}
