/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Part of trl_kernel_body.h: values that follow from the grid and the point alone. */
#ifndef TRL_KERNEL_POINT_BODY_H
#define TRL_KERNEL_POINT_BODY_H

typedef struct trl_kernel_grid {
    double origin[3], spacing[3];
    long long cells[3], first[3]; /* of the grid; global index of the patch's first cell */
    int periodic[3], unused;      /* 0: so that equal grids have equal bytes */
} trl_kernel_grid;

TRL_BODY long long trl_kernel_wrap(const trl_kernel_grid *g, int axis, long long i)
{
    long long n = g->cells[axis], r;
    if (!g->periodic[axis]) return i;
    r = i % n;
    return r < 0 ? r + n : r;
}

/* Coordinate of global point i; shift: 0 on faces of the axis, 0.5 at centres. */
TRL_BODY double trl_kernel_coordinate(const trl_kernel_grid *g, int axis, double shift, long long i)
{
    return g->origin[axis] + ((double)trl_kernel_wrap(g, axis, i) + shift) * g->spacing[axis];
}

/* 1 at one point of an axis, 0 at others. */
TRL_BODY double trl_kernel_at(long long where, long long i)
{
    return i == where ? 1.0 : 0.0;
}

/* Uniform in [0, 1) from seed bits and global cell: SplitMix64 (Steele, Lea and Flood 2014). */
TRL_BODY double trl_kernel_random(unsigned long long seed, const trl_kernel_grid *g, long long i, long long j,
                                  long long k)
{
    unsigned long long h = seed;
    long long cell[3];
    int a;
    cell[0] = i, cell[1] = j, cell[2] = k;
    for (a = 0; a < 3; ++a) {
        h += 0x9e3779b97f4a7c15ull + (unsigned long long)trl_kernel_wrap(g, a, cell[a]);
        h = (h ^ h >> 30) * 0xbf58476d1ce4e5b9ull;
        h = (h ^ h >> 27) * 0x94d049bb133111ebull;
        h ^= h >> 31;
    }
    return (double)(h >> 11) * 0x1p-53;
}

/* A number of the point, at any location, with more room for ghosts than any formula reads; it is a whole one, so that
 * no order of operations changes it. */
TRL_BODY double trl_kernel_point(const trl_kernel_grid *g, long long i, long long j, long long k)
{
    const double row = (double)(g->cells[0] + 256), plane = (double)(g->cells[1] + 256);
    return (double)trl_kernel_wrap(g, 0, i) +
           row * ((double)trl_kernel_wrap(g, 1, j) + plane * (double)trl_kernel_wrap(g, 2, k));
}

/* What point i of an axis gets of 1 that is put at coordinate `where`, per length: linear weights of the two points
 * around it, over the length that an integral counts a point with, which is half a cell on a side. Where there is no
 * point beyond it, one gets all. */
TRL_BODY double trl_kernel_share(const trl_kernel_grid *g, int axis, double shift, double where, long long i)
{
    const double s = (where - g->origin[axis]) / g->spacing[axis] - shift;
    long long n = g->cells[axis], below = (long long)s, last = shift == 0.0 ? n : n - 1,
              at = trl_kernel_wrap(g, axis, i);
    double weight, share;
    below -= (double)below > s;
    weight = s - (double)below;
    if (!g->periodic[axis]) {
        if (below < 0) below = 0, weight = 0.0;
        if (below >= last) below = last, weight = 0.0;
    }
    share = at == trl_kernel_wrap(g, axis, below) ? 1.0 - weight : 0.0;
    if (weight > 0.0 && at == trl_kernel_wrap(g, axis, below + 1)) share += weight;
    if (!g->periodic[axis] && shift == 0.0 && (at == 0 || at == n)) share *= 2.0;
    return share / g->spacing[axis];
}

#endif
