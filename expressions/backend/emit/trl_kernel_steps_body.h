/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* After trl_kernel_launch_body.h: several steps of some fields in one pass over memory (temporal blocking, 2.5-D
 * tiles).
 *
 * A block of threads has a tile along x and y, which overlaps others by as many points as there are steps, and goes up
 * z. In each iteration it takes a plane of each field, and computes of each level (the fields after one step, after
 * two, ...) the plane below that of the level before: level l + 1 at t - l - 1 from level l at t - l - 2, t - l - 1 and
 * t - l. Of a level the middle plane is in shared memory, for neighbours along x and y; of the other two a thread needs
 * its own column alone. A thread has some rows, so that neighbours along y are its own for the most part. Points whose
 * neighbours are outside of the tile become wrong, one more from each side at each level, and are not stored. In 2-D a
 * level follows the other in place.
 *
 * Beyond a periodic side a tile has the points from the other side, and computes them as they are computed there: such
 * an axis has as many points as a tile, or more. Ghosts beyond other sides are the point's matter: it does not read the
 * tile there. Fields that are not stepped are read where they lie in memory. Where the grid is cut along z, planes
 * below and above the box are read where they lie, in the memory of other GPUs, and computed as they are there: nothing
 * is exchanged between the steps. */
#if defined(__CUDACC__) && !defined(TRL_KERNEL_STEPS_BODY_H)
#define TRL_KERNEL_STEPS_BODY_H

#define TRL_KERNEL_CUT 8

#ifndef TRL_KERNEL_SHARED /* what a block's threads have in common, as large as the launch says */
#define TRL_KERNEL_SHARED(name) extern __shared__ double name[]
#endif

/* The tile of a block: fields that are stepped, steps, points along x and y, rows of a thread, blocks of a
 * multiprocessor. */
template <int of_fields, int of_steps, int of_wide, int of_high, int of_rows, int at_once>
struct trl_kernel_steps_tile {
    static constexpr int fields = of_fields, steps = of_steps, wide = of_wide, high = of_high, rows = of_rows;
    static constexpr int threads = wide * (high / rows), blocks = at_once;
    static constexpr int plane = wide * (high + 2) + 2; /* with a row and a point at each end: nothing valid follows */
};

/* Fields before and after the steps, which lie in memory alike: values from a row to the next, and from a plane. */
template <int n> struct trl_kernel_stepped {
    const double *from[n];
    double *to[n];
    long long row, plane;
    const trl_kernel_array *below, *above; /* [n] of a cut grid: with planes below the box, and above, by its indices */
};

/* What a point reads of a level: in its plane, and along z. */
template <int wide> struct trl_kernel_star {
    const double *at;
    double south, here, north, below, above;

    template <int x, int y> __device__ double plane() const
    {
        if constexpr (x == 0 && y == 0) return here;
        if constexpr (x == 0 && y == -1) return south;
        if constexpr (x == 0 && y == 1) return north;
        return at[x + y * wide];
    }
};

/* An index from the lowest point of an axis of n points, less than n beyond it: from the other side, or that of the
 * last point. */
template <bool wraps> TRL_BODY int trl_kernel_fold(int i, int n)
{
    if (wraps) return i < 0 ? i + n : i < n ? i : i - n;
    return i < 0 ? 0 : i < n ? i : n - 1;
}

/* Where a thread's points are. wraps: axes that are periodic, a bit each; and a bit where the grid is cut along z. */
template <class tile, int wraps> struct trl_kernel_steps_thread {
    static constexpr bool cut = (wraps & TRL_KERNEL_CUT) != 0;
    const trl_kernel_launch &call;
    int own, y, i;            /* the first row: in a plane of the tile, of the box; the column, of the array */
    unsigned row[tile::rows]; /* values from the first of a plane of the arrays */
    unsigned mine;            /* rows whose points are stored, a bit each */

    __device__ __forceinline__ trl_kernel_steps_thread(const trl_kernel_launch &launch, long long stride)
        : call(launch), mine(0)
    {
        const int tx = (int)threadIdx.x % tile::wide, ty = (int)threadIdx.x / tile::wide * tile::rows;
        const int x = (int)blockIdx.x * (tile::wide - 2 * tile::steps) - tile::steps + tx;
        const bool inner = tx >= tile::steps && tx < tile::wide - tile::steps && x < count(0);
        own = (ty + 1) * tile::wide + tx + 1;
        y = (int)blockIdx.y * (tile::high - 2 * tile::steps) - tile::steps + ty;
        i = (int)call.lo[0] + trl_kernel_fold<(wraps & 1) != 0>(x, count(0));
#pragma unroll
        for (int r = 0; r < tile::rows; ++r) {
            const bool within = ty + r >= tile::steps && ty + r < tile::high - tile::steps && y + r < count(1);
            row[r] = (unsigned)i + (unsigned)j(r) * (unsigned)stride;
            if (inner && within) mine |= 1u << r;
        }
    }
    __device__ __forceinline__ int count(int axis) const
    {
        return (int)(call.hi[axis] - call.lo[axis]);
    }
    __device__ __forceinline__ int j(int r) const
    {
        return (int)call.lo[1] + trl_kernel_fold<(wraps & 2) != 0>(y + r, count(1));
    }
    __device__ __forceinline__ int k(int z) const
    {
        return (int)call.lo[2] + (cut ? z : trl_kernel_fold<(wraps & 4) != 0>(z, count(2)));
    }
    /* Plane z of a field. */
    __device__ __forceinline__ const double *plane(const trl_kernel_stepped<tile::fields> &stepped, int f, int z) const
    {
        const double *from = stepped.from[f];
        if (cut && z < 0) from = stepped.below[f].at;
        if (cut && z >= count(2)) from = stepped.above[f].at;
        return from + k(z) * stepped.plane;
    }
};

/* Whether some of the points of a level whose rows have a bit in `checked` are not finite: below 0. */
template <class tile>
TRL_BODY int trl_kernel_steps_excess(const double (&value)[tile::fields][tile::rows], unsigned checked)
{
    int excess = 0; /* the upper halves, which have the sign */
#pragma unroll
    for (int f = 0; f < tile::fields; ++f)
#pragma unroll
        for (int r = 0; r < tile::rows; ++r)
            excess |= (int)(trl_kernel_excess(value[f][r]) >> 32) & (int)(checked << (31 - r));
    return excess;
}

template <class tile, class thread>
TRL_BODY void trl_kernel_steps_store(const thread &of, const trl_kernel_stepped<tile::fields> &stepped, int k,
                                     const double (&value)[tile::fields][tile::rows])
{
#pragma unroll
    for (int f = 0; f < tile::fields; ++f) {
        double *const at = stepped.to[f] + k * stepped.plane;
#pragma unroll
        for (int r = 0; r < tile::rows; ++r)
            if (of.mine >> r & 1) at[of.row[r]] = value[f][r];
    }
}

/* Copy a value to shared memory, until trl_kernel_arrived. */
TRL_BODY void trl_kernel_fetch(double *to, const double *from)
{
#ifdef __CUDA_ARCH__
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::"r"((unsigned)__cvta_generic_to_shared(to)), "l"(from));
#else
    *to = *from;
#endif
}

TRL_BODY void trl_kernel_arrived(void)
{
#ifdef __CUDA_ARCH__
    asm volatile("cp.async.wait_all;");
#endif
}

/* Begin to copy plane z of the fields, each to planes of its own, `apart` values from those of the one before. */
template <class tile, class thread>
TRL_BODY void trl_kernel_steps_take(const thread &of, const trl_kernel_stepped<tile::fields> &stepped, int z,
                                    double *to, int apart)
{
#pragma unroll
    for (int f = 0; f < tile::fields; ++f) {
        const double *const at = of.plane(stepped, f, z);
#pragma unroll
        for (int r = 0; r < tile::rows; ++r) trl_kernel_fetch(to + f * apart + of.own + r * tile::wide, at + of.row[r]);
    }
}

/* A level at plane k, from that before it, which has the plane above in `value` and that below in `below`, and k itself
 * at `in`; flat: k in `value` and at `in`. Then `value` is the level's own, and `above` what it was. */
template <class tile, bool flat, class thread, class point>
TRL_BODY void trl_kernel_steps_level(const thread &of, const point &next, int level, int k, const double *in, int apart,
                                     double (&below)[tile::fields][tile::rows],
                                     double (&value)[tile::fields][tile::rows],
                                     double (&above)[tile::fields][tile::rows])
{
    constexpr int fields = tile::fields, rows = tile::rows, wide = tile::wide;
    double column[fields][rows + 2];
#pragma unroll
    for (int f = 0; f < fields; ++f)
#pragma unroll
        for (int r = 0; r < rows + 2; ++r)
            column[f][r] = flat && r > 0 && r <= rows ? value[f][r - 1] : in[f * apart + of.own + (r - 1) * wide];
#pragma unroll
    for (int r = 0; r < rows; ++r) {
        trl_kernel_star<wide> star[fields];
        double result[fields];
#pragma unroll
        for (int f = 0; f < fields; ++f)
            star[f] = {in + f * apart + of.own + r * wide,
                       column[f][r],
                       column[f][r + 1],
                       column[f][r + 2],
                       below[f][r],
                       value[f][r]};
        next(level, of.row[r], of.i, of.j(r), k, star, result);
#pragma unroll
        for (int f = 0; f < fields; ++f) {
            below[f][r] = column[f][r + 1];
            above[f][r] = value[f][r];
            value[f][r] = result[f];
        }
    }
}

/* next(level, row, i, j, k, star, result): the fields' values of a point one level later. check: each so many levels,
 * results have to be finite; 0: none has. call.planes: along z, of a
 * block; the box is the fields' own points. */
template <class tile, int wraps, int check, class point>
TRL_BODY void trl_kernel_take_steps(const trl_kernel_launch &call, const trl_kernel_stepped<tile::fields> &stepped,
                                    const point &next)
{
    constexpr int fields = tile::fields, steps = tile::steps, wide = tile::wide, rows = tile::rows, plane = tile::plane,
                  apart = (2 + steps) * plane; /* three of the input, and one of each level between */
    TRL_KERNEL_SHARED(memory);
    const trl_kernel_steps_thread<tile, wraps> of(call, stepped.row);
    const int nz = of.count(2), first = (int)(blockIdx.z * call.planes);
    const int end = first + call.planes < nz ? first + (int)call.planes : nz;
    double below[steps][fields][rows] = {};
    int excess = 0;
    for (int p = (int)threadIdx.x; p < fields * apart; p += tile::threads) memory[p] = 0;
    __syncthreads();
    double *now = memory, *later = memory + plane, *before = memory + 2 * plane;
    trl_kernel_steps_take<tile>(of, stepped, first - steps, now, apart);
    trl_kernel_arrived();
    __syncthreads();
#pragma unroll 1
    for (int t = first - steps; t < end + steps; ++t) {
        double value[fields][rows], above[fields][rows];
        if (t + 1 < end + steps) trl_kernel_steps_take<tile>(of, stepped, t + 1, later, apart);
#pragma unroll
        for (int f = 0; f < fields; ++f)
#pragma unroll
            for (int r = 0; r < rows; ++r) value[f][r] = now[f * apart + of.own + r * wide];
#pragma unroll
        for (int l = 0; l < steps; ++l) {
            double *const in = l == 0 ? before : memory + (2 + l) * plane;
            const int z = t - l - 1, least = first - steps; /* of what lies in memory; no result follows from others */
            trl_kernel_steps_level<tile, false>(of, next, l, of.k(z < least ? least : z), in, apart, below[l], value,
                                                above);
            if (check > 0 && (l + 1) % check == 0)
                excess |= trl_kernel_steps_excess<tile>(value, z >= first && z < end ? of.mine : 0);
            if (l == 0) continue;
            __syncthreads(); /* all have read the level's plane */
#pragma unroll
            for (int f = 0; f < fields; ++f)
#pragma unroll
                for (int r = 0; r < rows; ++r) in[f * apart + of.own + r * wide] = above[f][r];
        }
        if (t - steps >= first) trl_kernel_steps_store<tile>(of, stepped, (int)call.lo[2] + t - steps, value);
        trl_kernel_arrived();
        __syncthreads();
        double *const spare = before;
        before = now;
        now = later;
        later = spare;
    }
    if (excess < 0) *call.nonfinite = 1;
}

/* The same where there is one plane. Levels take turns with two planes of shared memory: who writes to one has waited
 * for those who read it. */
template <class tile, int wraps, int check, class point>
TRL_BODY void trl_kernel_take_flat_steps(const trl_kernel_launch &call, const trl_kernel_stepped<tile::fields> &stepped,
                                         const point &next)
{
    constexpr int fields = tile::fields, steps = tile::steps, wide = tile::wide, rows = tile::rows, plane = tile::plane;
    TRL_KERNEL_SHARED(memory);
    const trl_kernel_steps_thread<tile, wraps> of(call, stepped.row);
    const int k = (int)call.lo[2];
    double value[fields][rows], none[fields][rows] = {};
    int excess = 0;
#pragma unroll
    for (int f = 0; f < fields; ++f)
#pragma unroll
        for (int r = 0; r < rows; ++r) value[f][r] = (stepped.from[f] + k * stepped.plane)[of.row[r]];
#pragma unroll 1
    for (int l = 0; l < steps; ++l) {
        double *const in = memory + (l % 2) * fields * plane;
#pragma unroll
        for (int f = 0; f < fields; ++f)
#pragma unroll
            for (int r = 0; r < rows; ++r) in[f * plane + of.own + r * wide] = value[f][r];
        __syncthreads();
        trl_kernel_steps_level<tile, true>(of, next, l, k, in, plane, none, value, none);
        if (check > 0 && (l + 1) % check == 0) excess |= trl_kernel_steps_excess<tile>(value, of.mine);
    }
    trl_kernel_steps_store<tile>(of, stepped, k, value);
    if (excess < 0) *call.nonfinite = 1;
}

#endif
