/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* After trl_lines_body.h: whole planes of the direct solver, which a block transforms along both axes in its shared
 * memory (slabs_gpu.c). The box of a launch is n points along x, along y, and planes, one for each block. */
#if defined(__CUDACC__) && !defined(TRL_PLANES_BODY_H)
#define TRL_PLANES_BODY_H

/* The arrays are the planes, what comes out, and tables and indices of both axes; the scalar TRL_LINES_ADD. */
enum { TRL_PLANES_TABLE_X = TRL_LINES_TABLE, TRL_PLANES_INDEX_X, TRL_PLANES_TABLE_Y, TRL_PLANES_INDEX_Y };
enum { TRL_PLANES_THREADS = TRL_LANES * TRL_WORKERS };

/* A plane in shared memory has rows at an odd pitch, so that lanes that are rows do not meet in a bank. */
template <int nx, int ny> struct trl_whole_plane {
    static constexpr int n = nx * ny, pitch = nx | 1, room = pitch * ny;
    static __device__ __forceinline__ int place(int p)
    {
        return p + p / nx * (pitch - nx);
    }
    static __device__ __forceinline__ double *at(const trl_kernel_array &array, int p)
    {
        const int j = p / nx, i = p - j * nx;
        return array.at + i * array.stride[0] + j * array.stride[1] + blockIdx.x * array.stride[2];
    }
};

/* Each thread has several values on their way at once: there are few threads to wait for memory. */
template <class plane> TRL_BODY void trl_plane_take(const trl_kernel_array &array, double *to)
{
    enum { MOST = 16 };
    for (int first = (int)threadIdx.x; first < plane::n; first += MOST * TRL_PLANES_THREADS) {
        double value[MOST];
#pragma unroll
        for (int k = 0, p = first; k < MOST; ++k, p += TRL_PLANES_THREADS)
            if (p < plane::n) value[k] = *plane::at(array, p);
#pragma unroll
        for (int k = 0, p = first; k < MOST; ++k, p += TRL_PLANES_THREADS)
            if (p < plane::n) to[plane::place(p)] = value[k];
    }
}

template <class plane> TRL_BODY void trl_plane_give(const trl_kernel_array &array, bool add, const double *from)
{
    enum { MOST = 8 };
    for (int first = (int)threadIdx.x; first < plane::n; first += MOST * TRL_PLANES_THREADS) {
        double before[MOST];
#pragma unroll
        for (int k = 0, p = first; k < MOST; ++k, p += TRL_PLANES_THREADS)
            if (p < plane::n && add) before[k] = *plane::at(array, p);
#pragma unroll
        for (int k = 0, p = first; k < MOST; ++k, p += TRL_PLANES_THREADS) {
            if (p >= plane::n) continue;
            const double value = from[plane::place(p)];
            *plane::at(array, p) = add ? before[k] + value : value;
        }
    }
}

/* Where lines are: strides along a line and from one to the next. */
struct trl_plane_lines {
    double *at;
    long long step, across;
};

/* Transform lines, as many at once as there are lanes; in_place: `to` are the same. Lanes without a line do what the
 * first lane does, and write the same values, or in place to a buffer. All threads are there when it is done. */
template <class transform, int lines, bool in_place>
TRL_BODY void trl_plane_transform(const trl_plane_lines &from, const trl_plane_lines &to, double *a, double *b,
                                  const double *table, const int *index)
{
#pragma unroll 1
    for (int first = 0; first < lines; first += TRL_LANES) {
        const bool is = lines % TRL_LANES == 0 || first + TRL_LANE < lines, aside = in_place && !is;
        const int line = is ? first + TRL_LANE : first;
        double *const spare = transform::ends_with_a ? b : a; /* the last pass does not read it */
        transform::template run<true>(from.at + line * from.across - TRL_LANE, from.step,
                                      aside ? spare : to.at + line * to.across - TRL_LANE, aside ? TRLI_LANES : to.step,
                                      a, b, table, index);
        /* The next pass may begin to write to it while others are in that last one. */
        double *const busy = transform::ends_with_a ? a : b;
        a = spare;
        b = busy;
    }
    __syncthreads();
}

template <bool back, class along_x, class along_y>
TRL_BODY void trl_planes_transform(const trl_kernel_launch &, const trl_kernel_array *array, const double *scalar)
{
    TRL_KERNEL_SHARED(shared);
    typedef trl_whole_plane<along_x::n, along_y::n> plane;
    const trl_kernel_array in = array[TRL_LINES_IN], out = array[TRL_LINES_OUT];
    const double *table_x = array[TRL_PLANES_TABLE_X].at, *table_y = array[TRL_PLANES_TABLE_Y].at;
    const int *index_x = (const int *)array[TRL_PLANES_INDEX_X].at,
              *index_y = (const int *)array[TRL_PLANES_INDEX_Y].at;
    double *const a = shared + plane::room;
    double *const b = a + (along_x::room > along_y::room ? along_x::room : along_y::room) * TRLI_LANES;
    const trl_plane_lines rows = {shared, 1, plane::pitch}, columns = {shared, plane::pitch, 1};
    trl_plane_take<plane>(in, shared);
    __syncthreads();
    if (back) {
        trl_plane_transform<along_y, along_x::n, true>(columns, columns, a, b, table_y, index_y);
        trl_plane_transform<along_x, along_y::n, true>(rows, rows, a, b, table_x, index_x);
        trl_plane_give<plane>(out, scalar[TRL_LINES_ADD] != 0, shared);
    } else {
        const trl_plane_lines to = {out.at + blockIdx.x * out.stride[2], out.stride[1], out.stride[0]};
        trl_plane_transform<along_x, along_y::n, true>(rows, rows, a, b, table_x, index_x);
        trl_plane_transform<along_y, along_x::n, false>(columns, to, a, b, table_y, index_y);
    }
}

#endif
