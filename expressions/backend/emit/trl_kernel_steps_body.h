/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* After trl_kernel_launch_body.h: several steps of one field in one pass over memory (temporal blocking, 2.5-D tiles).
 *
 * A block of threads has a tile along x and y, which overlaps others by as many points as there are steps, and goes up
 * z. In each iteration it takes a plane of the field, and computes of each level (the field after one step, after two,
 * ...) the plane below that of the level before: level l + 1 at t - l - 1 from level l at t - l - 2, t - l - 1 and
 * t - l. Of a level the middle plane is in shared memory, for neighbours along x and y; of the other two a thread needs
 * its own column alone. A thread has some rows, so that neighbours along y are its own for the most part. Points whose
 * neighbours are outside of the tile become wrong, one more from each side at each level, and are not stored.
 *
 * Beyond a periodic side a tile has the points from the other side, and computes them as they are computed there: such
 * an axis has as many points as a tile, or more. Ghosts beyond other sides are the point's matter: it does not read the
 * tile there. */
#if defined(__CUDACC__) && !defined(TRL_KERNEL_STEPS_BODY_H)
#define TRL_KERNEL_STEPS_BODY_H

#ifndef TRL_KERNEL_SHARED /* what a block's threads have in common, as large as the launch says */
#define TRL_KERNEL_SHARED(name) extern __shared__ double name[]
#endif

/* The tile of a block: points along x and y, rows of a thread, blocks of a multiprocessor. */
template <int of_steps, int of_wide, int of_high, int of_rows, int at_once> struct trl_kernel_steps_tile {
    static constexpr int steps = of_steps, wide = of_wide, high = of_high, rows = of_rows;
    static constexpr int threads = wide * (high / rows), blocks = at_once;
    static constexpr int plane = wide * (high + 2); /* with a row at each end, which nothing valid follows from */
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

/* next(level, i, j, k, star): the value of a point one step later. wraps: axes that are periodic, a bit each.
 * call.planes: along z, of a block; the box is the field's own points. */
template <class tile, int wraps, bool check, class point>
TRL_BODY void trl_kernel_take_steps(const trl_kernel_launch &call, const trl_kernel_array &from,
                                    const trl_kernel_array &to, const point &next)
{
    constexpr int steps = tile::steps, wide = tile::wide, rows = tile::rows, plane = tile::plane;
    TRL_KERNEL_SHARED(memory);
    double *const input = memory, *const level = memory + 3 * plane; /* three planes; one of each level between */
    const int tx = (int)threadIdx.x % wide, ty = (int)threadIdx.x / wide, own = (ty * rows + 1) * wide + tx;
    const int nx = (int)(call.hi[0] - call.lo[0]), ny = (int)(call.hi[1] - call.lo[1]),
              nz = (int)(call.hi[2] - call.lo[2]);
    const int x = (int)blockIdx.x * (wide - 2 * steps) - steps + tx;
    const int y = (int)blockIdx.y * (tile::high - 2 * steps) - steps + ty * rows;
    const int first = (int)(blockIdx.z * call.planes), end = first + call.planes < nz ? first + (int)call.planes : nz;
    const int i = (int)call.lo[0] + trl_kernel_fold<(wraps & 1) != 0>(x, nx);
    unsigned row[rows], mine = 0; /* values from the first of a plane; rows whose points are stored, a bit each */
    double below[steps][rows];
    int excess = 0; /* the upper halves */
#pragma unroll
    for (int r = 0; r < rows; ++r) {
        const bool inner = ty * rows + r >= steps && ty * rows + r < tile::high - steps && y + r < ny;
        row[r] = (unsigned)i +
                 (unsigned)(call.lo[1] + trl_kernel_fold<(wraps & 2) != 0>(y + r, ny)) * (unsigned)from.stride[1];
        if (inner && tx >= steps && tx < wide - steps && x < nx) mine |= 1u << r;
#pragma unroll
        for (int l = 0; l < steps; ++l) below[l][r] = 0;
    }
    for (int p = (int)threadIdx.x; p < (2 + steps) * plane; p += tile::threads) memory[p] = 0;
    __syncthreads();
    const auto take = [&](int z, double *slot) {
        const double *const at = from.at + (call.lo[2] + trl_kernel_fold<(wraps & 4) != 0>(z, nz)) * from.stride[2];
#pragma unroll
        for (int r = 0; r < rows; ++r) trl_kernel_fetch(slot + own + r * wide, at + row[r]);
    };
    double *now = input, *later = input + plane, *before = input + 2 * plane;
    take(first - steps, now);
    trl_kernel_arrived();
    __syncthreads();
#pragma unroll 1
    for (int t = first - steps; t < end + steps; ++t) {
        double value[rows];
        if (t + 1 < end + steps) take(t + 1, later);
#pragma unroll
        for (int r = 0; r < rows; ++r) value[r] = now[own + r * wide];
#pragma unroll
        for (int l = 0; l < steps; ++l) {
            double *const in = l == 0 ? before : level + (l - 1) * plane;
            const int z = t - l - 1;
            const int k = (int)call.lo[2] + trl_kernel_fold<(wraps & 4) != 0>(z, nz);
            const bool here = z >= first && z < end;
            double column[rows + 2], old[rows];
#pragma unroll
            for (int r = 0; r < rows + 2; ++r) column[r] = in[own + (r - 1) * wide];
#pragma unroll
            for (int r = 0; r < rows; ++r) {
                const int j = (int)call.lo[1] + trl_kernel_fold<(wraps & 2) != 0>(y + r, ny);
                const trl_kernel_star<wide> star = {in + own + r * wide, column[r],   column[r + 1],
                                                    column[r + 2],       below[l][r], value[r]};
                const double result = next(l, i, j, k, star);
                below[l][r] = column[r + 1];
                old[r] = value[r];
                value[r] = result;
                if (check && here && (mine >> r & 1)) excess |= (int)(trl_kernel_excess(result) >> 32);
            }
            if (l == 0) continue;
            __syncthreads(); /* all have read the level's plane */
#pragma unroll
            for (int r = 0; r < rows; ++r) in[own + r * wide] = old[r];
        }
        if (t - steps >= first) {
            double *const at = to.at + (call.lo[2] + t - steps) * to.stride[2];
#pragma unroll
            for (int r = 0; r < rows; ++r)
                if (mine >> r & 1) at[row[r]] = value[r];
        }
        trl_kernel_arrived();
        __syncthreads();
        double *const spare = before;
        before = now;
        now = later;
        later = spare;
    }
    if (excess < 0) *call.nonfinite = 1;
}

#endif
