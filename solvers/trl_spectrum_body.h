/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The spectral radius of small non-negative matrices, with the same bits in C and in kernels for GPUs. */
#ifndef TRL_SPECTRUM_BODY_H
#define TRL_SPECTRUM_BODY_H

#ifndef __cplusplus /* after functions in the text of a kernel */
#include <stdbool.h>

#include <trl_functions_body.h>
#endif

#ifdef __CUDACC__ /* before loops whose ends compilers do not know: unrolled, they make a kernel that runs once long */
#define TRLI_ROLLED _Pragma("unroll 1")
#define TRLI_OUT_OF_LINE TRL_KERNEL_APART
#else
#define TRLI_ROLLED
#define TRLI_OUT_OF_LINE TRL_BODY
#endif

/* Who does a computation: in C one alone, in kernels a thread of a block whose threads share out rows. What is not by
 * rows all of them do, with equal results. */
typedef struct trli_lane {
    int first, step; /* its rows */
} trli_lane;

TRL_BODY trli_lane trli_alone(void)
{
    const trli_lane alone = {0, 1};
    return alone;
}

/* Wait for the others. */
TRL_BODY void trli_meet(trli_lane lane)
{
#ifdef __CUDACC__
    if (lane.step > 1) __syncthreads();
#else
    (void)lane;
#endif
}

TRL_BODY double trli_radius_of_two(const double *m)
{
    const double half = (m[0] - m[3]) / 2;
    return (m[0] + m[3]) / 2 + trl_fn_hypot(half, TRL_FN_SQRT(m[1]) * TRL_FN_SQRT(m[2]));
}

/* Scale rows and columns alike until both have about one norm (Osborne 1960), so that units of the unknowns do not
 * matter. */
TRL_BODY void trli_balance_norms(int n, double *m)
{
    const int sweeps = 20;
    const double close = 0.05;
    bool alike = false;
    TRLI_ROLLED
    for (int k = 0; k < sweeps && !alike; ++k) {
        alike = true;
        TRLI_ROLLED
        for (int i = 0; i < n; ++i) {
            double row = 0, column = 0;
            TRLI_ROLLED
            for (int j = 0; j < n; ++j) {
                if (j == i) continue;
                row += m[i * n + j];
                column += m[j * n + i];
            }
            if (!(row > 0 && column > 0)) continue;
            if (trl_fn_abs(row - column) <= close * row) continue;
            alike = false;
            const double f = TRL_FN_SQRT(column) / TRL_FN_SQRT(row);
            TRLI_ROLLED
            for (int j = 0; j < n; ++j) {
                if (j == i) continue;
                m[i * n + j] *= f;
                m[j * n + i] /= f;
            }
        }
    }
}

/* From a positive vector x: y = m x, and the ratios of its values and those of x, which are bounds of the radius. */
TRL_BODY void trli_radius_ratios(trli_lane lane, int n, const double *m, const double *x, double *y, double *ratio)
{
    TRLI_ROLLED
    for (int i = lane.first; i < n; i += lane.step) {
        double sum = 0;
        TRLI_ROLLED
        for (int j = 0; j < n; ++j) sum += m[i * n + j] * x[j];
        y[i] = sum;
        ratio[i] = sum / x[i];
    }
    trli_meet(lane);
}

/* The largest value, 0 at least; NaN is none. */
TRL_BODY double trli_largest_of(int n, const double *x)
{
    double largest = 0;
    TRLI_ROLLED
    for (int i = 0; i < n; ++i) largest = x[i] > largest ? x[i] : largest;
    return largest;
}

TRL_BODY double trli_least_of(int n, const double *x)
{
    double least = TRL_FN_INF;
    TRLI_ROLLED
    for (int i = 0; i < n; ++i) least = x[i] < least ? x[i] : least;
    return least;
}

/* Of a finite n x n matrix, n > 2. */
TRL_BODY double trli_radius_of_many(trli_lane lane, int n, double *matrix, double *work)
{
    const int most = 10000;
    const double close = 1e-9, least = 1e-300;
    double *x = work, *y = work + n, *ratio = y + n, best = TRL_FN_INF;
    trli_meet(lane);
    if (lane.first == 0) trli_balance_norms(n, matrix);
    TRLI_ROLLED
    for (int i = lane.first; i < n; i += lane.step) x[i] = 1;
    trli_meet(lane);
    TRLI_ROLLED
    for (int k = 0; k < most; ++k) {
        trli_radius_ratios(lane, n, matrix, x, y, ratio);
        const double low = trli_least_of(n, ratio), high = trli_largest_of(n, ratio);
        best = high < best ? high : best;
        if (high - low <= close * high) break;
        /* A shift by about the radius keeps cycles, whose eigenvalues have one magnitude, from oscillating. */
        const double shift = (low + high) / 2;
        TRLI_ROLLED
        for (int i = lane.first; i < n; i += lane.step) y[i] += shift * x[i];
        trli_meet(lane);
        const double largest = trli_largest_of(n, y);
        TRLI_ROLLED
        for (int i = lane.first; i < n; i += lane.step) {
            x[i] = y[i] / largest;
            if (!(x[i] > least)) x[i] = least;
        }
        trli_meet(lane);
    }
    return best;
}

/* The spectral radius of a dense non-negative n x n matrix by rows, which is overwritten; exact to rounding for n = 1
 * and 2, otherwise an upper bound within 1e-9 of it (Collatz 1942, Wielandt 1950), or as close as 10,000 iterations
 * come. Infinite entries give infinity, NaN gives NaN. work: [3 n]. */
TRLI_OUT_OF_LINE double trli_spectral_radius(trli_lane lane, int n, double *matrix, double *work)
{
    bool infinite = false;
    TRLI_ROLLED
    for (int i = 0; i < n * n; ++i) {
        if (matrix[i] != matrix[i]) return TRL_FN_NAN;
        infinite |= trl_fn_abs(matrix[i]) == TRL_FN_INF;
    }
    if (infinite) return TRL_FN_INF;
    return n == 1 ? matrix[0] : n == 2 ? trli_radius_of_two(matrix) : trli_radius_of_many(lane, n, matrix, work);
}

#endif
