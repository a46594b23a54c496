/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* After transform_passes_body.h: lines of the direct solver on a GPU (slabs_gpu.c). */
#if defined(__CUDACC__) && !defined(TRL_LINES_BODY_H)
#define TRL_LINES_BODY_H

/* Where lines are, in arrays whose strides are along the line, across lines, and along the third axis: box of the
 * launch: n points, lines across, rows of these. */
struct trl_lines {
    long long across, rest; /* the first line's */
    int lanes;
};

TRL_BODY trl_lines trl_lines_here(const trl_kernel_launch &call)
{
    trl_lines here;
    here.across = (long long)blockIdx.x * TRL_LANES;
    here.rest = blockIdx.y;
    here.lanes = call.hi[1] - here.across < TRL_LANES ? (int)(call.hi[1] - here.across) : TRL_LANES;
    return here;
}

TRL_BODY double *trl_lines_first(const trl_kernel_array &array, const trl_lines &here)
{
    return array.at + here.across * array.stride[1] + here.rest * array.stride[2];
}

/* Lines that lie along x, of n values, side by side; lanes without one get the first. */
TRL_BODY void trl_lines_take(const trl_kernel_array &array, const trl_lines &here, int n, double *to)
{
    const double *from = trl_lines_first(array, here);
    for (int p = (int)threadIdx.x; p < n * TRL_LANES; p += TRL_LANES * TRL_WORKERS) {
        const int l = p / n, i = p - l * n;
        to[i * TRLI_LANES + l] = from[(l < here.lanes ? l : 0) * array.stride[1] + i * array.stride[0]];
    }
}

TRL_BODY void trl_lines_give(const trl_kernel_array &array, const trl_lines &here, int n, bool add, const double *from)
{
    double *to = trl_lines_first(array, here);
    for (int p = (int)threadIdx.x; p < n * here.lanes; p += TRL_LANES * TRL_WORKERS) {
        const int l = p / n, i = p - l * n;
        double *at = to + l * array.stride[1] + i * array.stride[0];
        const double value = from[i * TRLI_LANES + l];
        *at = add ? *at + value : value;
    }
}

/* The sum of the eigenvalues along two axes of line `across`, `rest`. */
TRL_BODY double trl_lines_eigenvalue(const double *across, const double *rest, long long a, long long r)
{
    return (across ? across[a] : 0) + (rest ? rest[r] : 0);
}

/* Of kernels that transform: the arrays are the lines, what comes out, the table of the transform and its indices, and
 * eigenvalues along the lines, across, and along the third axis, or NULL: all zero. */
enum { TRL_LINES_IN, TRL_LINES_OUT, TRL_LINES_TABLE, TRL_LINES_INDEX, TRL_LINES_VALUE };
enum { TRL_LINES_ADD, TRL_LINES_SCALE, TRL_LINES_CENTRE, TRL_LINES_NULL, TRL_LINES_MEAN }; /* and the scalars */

/* Divide spectra by eigenvalues; the first of all may be zero. */
TRL_BODY void trl_lines_divide(const trl_kernel_array *array, const double *scalar, const trl_lines &here, int n,
                               long long across, double *f)
{
    const double *value = array[TRL_LINES_VALUE].at;
    const long long line = here.across + TRL_LANE < across ? here.across + TRL_LANE : here.across;
    const double lambda =
        trl_lines_eigenvalue(array[TRL_LINES_VALUE + 1].at, array[TRL_LINES_VALUE + 2].at, line, here.rest);
    const double scale = scalar[TRL_LINES_SCALE], centre = scalar[TRL_LINES_CENTRE];
    const bool null = scalar[TRL_LINES_NULL] != 0 && here.across + TRL_LANE == 0 && here.rest == 0;
    for (int i = TRL_WORKER; i < n; i += TRL_WORKERS) {
        double *at = f + i * TRLI_LANES + TRL_LANE;
        const double of_row = centre + (value ? value[i] : 0);
        *at = null && i == 0 ? scalar[TRL_LINES_MEAN] : *at * scale / (of_row + lambda);
    }
}

/* Transform lines; or, if another transform follows, divide what comes out and transform it back. of_rows: lines lie
 * along x. */
template <bool of_rows, bool divided, class first, class then>
TRL_BODY void trl_lines_transform(const trl_kernel_launch &call, const trl_kernel_array *array, const double *scalar)
{
    TRL_KERNEL_SHARED(room);
    const trl_lines here = trl_lines_here(call);
    const int n = first::n;
    const double *table = array[TRL_LINES_TABLE].at;
    const int *index = (const int *)array[TRL_LINES_INDEX].at;
    const trl_kernel_array in = array[TRL_LINES_IN], out = array[TRL_LINES_OUT];
    double *const to = of_rows ? nullptr : trl_lines_first(out, here);
    double *a = room, *b = room + first::room * TRLI_LANES, *have;
    if (of_rows) {
        trl_lines_take(in, here, n, b);
        __syncthreads();
        have = first::template run<false>(b, TRLI_LANES, nullptr, 0, a, b, table, index);
    } else {
        have = first::template run<!divided>(trl_lines_first(in, here), in.stride[0], to, out.stride[0], a, b, table,
                                             index);
    }
    if (divided) {
        double *other = have == a ? b : a;
        __syncthreads();
        trl_lines_divide(array, scalar, here, n, call.hi[1], have);
        __syncthreads();
        have = then::template run<!of_rows>(have, TRLI_LANES, to, out.stride[0], other, have, table, index);
    }
    if (of_rows) {
        __syncthreads();
        trl_lines_give(out, here, n, scalar[TRL_LINES_ADD] != 0, have);
    }
}

/* Solve tridiagonal systems, a line by a thread (slabs.c). Arrays are the lines, room for as many values, the entries
 * of rows, and eigenvalues and their weights along both other axes. */
enum { TRL_ELIMINATE_SCALE, TRL_ELIMINATE_NULL, TRL_ELIMINATE_SETS, TRL_ELIMINATE_BALANCED, TRL_ELIMINATE_MEAN };

TRL_BODY void trl_lines_set_mean(double *f, long long step, long long n, double mean)
{
    double sum = 0;
    for (long long i = 0; i < n; ++i) sum += f[i * step];
    const double more = mean - sum / n;
    for (long long i = 0; i < n; ++i) f[i * step] += more;
}

TRL_BODY void trl_lines_eliminate(const trl_kernel_launch &call, const trl_kernel_array *array, const double *scalar)
{
    const long long across = (long long)blockIdx.x * blockDim.x + threadIdx.x, rest = blockIdx.y, n = call.hi[0];
    const double *lower = array[2].at, *middle = array[3].at, *upper = array[4].at;
    const double *weight = array[7].at, *rest_weight = array[8].at;
    if (across >= call.hi[1]) return;
    const long long step = array[0].stride[0], above_step = array[1].stride[0];
    double *f = array[0].at + across * array[0].stride[1] + rest * array[0].stride[2];
    double *above = array[1].at + across * array[1].stride[1] + rest * array[1].stride[2];
    const double second = array[6].at ? array[6].at[rest] : 0, first = array[5].at ? array[5].at[across] : 0;
    const bool weighted = weight || rest_weight, null = scalar[TRL_ELIMINATE_NULL] != 0 && across == 0 && rest == 0;
    const bool sets = null && scalar[TRL_ELIMINATE_SETS] != 0;
    double before = 0, f_before = 0, lambda = first + second;
    if (sets && scalar[TRL_ELIMINATE_BALANCED] != 0) trl_lines_set_mean(f, step, n, 0);
    for (long long i = 0; i < n; ++i) {
        if (weighted) lambda = (weight ? weight[i] : 1) * first + (rest_weight ? rest_weight[i] : 1) * second;
        const double l = lower[i];
        double inverse = 1 / (middle[i] + lambda - l * before);
        if (null && i == n - 1) inverse = 0; /* this row follows from the others */
        before = above[i * above_step] = upper[i] * inverse;
        f_before = f[i * step] = (f[i * step] * scalar[TRL_ELIMINATE_SCALE] - l * f_before) * inverse;
    }
    for (long long i = n - 2; i >= 0; --i) f[i * step] -= above[i * above_step] * f[(i + 1) * step];
    if (sets) trl_lines_set_mean(f, step, n, scalar[TRL_ELIMINATE_MEAN]);
}

/* From one box to another: strides are along x, y and z. */
TRL_BODY void trl_lines_move(const trl_kernel_launch &call, const trl_kernel_array *array, const double *scalar)
{
    const long long n = call.hi[0], rows = call.hi[1], all = n * rows * call.hi[2];
    const trl_kernel_array in = array[TRL_LINES_IN], out = array[TRL_LINES_OUT];
    const bool add = scalar[TRL_LINES_ADD] != 0;
    for (long long p = (long long)blockIdx.x * blockDim.x + threadIdx.x; p < all;
         p += (long long)gridDim.x * blockDim.x) {
        const long long row = trl_kernel_quotient(p, n), k = trl_kernel_quotient(row, rows);
        const long long i = p - row * n, j = row - k * rows;
        const double value = in.at[i * in.stride[0] + j * in.stride[1] + k * in.stride[2]];
        double *to = out.at + i * out.stride[0] + j * out.stride[1] + k * out.stride[2];
        *to = add ? *to + value : value;
    }
}

#endif
