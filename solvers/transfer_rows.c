/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Loops of transfers between grids over rows along x. Each value is the same sum in the same order, by vectors or
 * not. */
#include "multigrid_impl.h"
#include "vector_impl.h"

/* Points of a row beyond which values of the next rows are asked for. */
enum { AHEAD = 256 };

TRLI_CLONES static void sum_rows(const trli_weighted_rows *of, double *line, int n, int shift, int ahead)
{
    int k = of->n < 4 ? 0 : 4;
    if (k == 0)
        for (int i = 0; i < n; ++i) line[i] = 0;
    else {
        const double *a = of->row[0] + shift, *b = of->row[1] + shift, *c = of->row[2] + shift, *d = of->row[3] + shift;
        const double w0 = of->weight[0], w1 = of->weight[1], w2 = of->weight[2], w3 = of->weight[3];
        for (int i = 0; ahead > 0 && i < n; i += TRLI_LINE) {
            __builtin_prefetch(c + i + ahead);
            __builtin_prefetch(d + i + ahead);
        }
        TRLI_INDEPENDENT
        for (int i = 0; i < n; ++i) line[i] = 0.0 + w0 * a[i] + w1 * b[i] + w2 * c[i] + w3 * d[i];
    }
    for (; k < of->n; ++k) {
        const double *row = of->row[k] + shift, weight = of->weight[k];
        TRLI_INDEPENDENT
        for (int i = 0; i < n; ++i) line[i] += weight * row[i];
    }
}

TRLI_CLONES static void join_rows(double *line, int begin, int end, int shift, double *const from[4],
                                  const double weight[4])
{
    const double *a = from[0], *b = from[1], *c = from[2], *d = from[3];
    const double w0 = weight[0], w1 = weight[1], w2 = weight[2], w3 = weight[3];
    TRLI_INDEPENDENT
    for (int i = begin; i < end; ++i) line[i + shift] = w0 * a[i] + w1 * b[i] + w2 * c[i] + w3 * d[i];
}

static double sum_of(const double *weight, const double *value, int n)
{
    double sum = 0;
    if (n == 4) return sum + weight[0] * value[0] + weight[1] * value[1] + weight[2] * value[2] + weight[3] * value[3];
    for (int a = 0; a < n; ++a) sum += weight[a] * value[a];
    return sum;
}

static void restrict_each(const trli_axis_transfer *x, double *coarse, const double *line, int lo, int hi)
{
    for (int j = lo; j < hi; ++j) coarse[j] = sum_of(x->back[j], line + x->first[j], x->count[j]) + 0.0;
}

static void add_each(const trli_axis_transfer *x, double *fine, const double *line, int lo, int hi)
{
    for (int i = lo; i < hi; ++i)
        fine[i] += x->weight[0][i] * line[x->from[0][i]] + x->weight[1][i] * line[x->from[1][i]];
}

#if defined(__x86_64__)
enum { LANES = TRLI_TRANSFER_LANES };

static bool has_vectors(void)
{
    return __builtin_cpu_supports("avx512f");
}

/* Of fine points where the transfer is steady, as many as whole vectors have: each takes from less than a vector. */
TRLI_TARGET8 static void add_vectors(const trli_axis_transfer *x, double *fine, const double *line, int lo, int hi)
{
    for (int i = lo; i < hi; i += LANES) {
        __m512d sum[2];
        __builtin_prefetch(fine + i + AHEAD, 1);
        for (int side = 0; side < 2; ++side) {
            const int *from = x->from[side] + i;
            const __m256i at = _mm256_sub_epi32(_mm256_loadu_si256((const __m256i *)from), _mm256_set1_epi32(from[0]));
            const __m512d values = _mm512_permutexvar_pd(_mm512_cvtepi32_epi64(at), _mm512_loadu_pd(line + from[0]));
            sum[side] = _mm512_mul_pd(_mm512_loadu_pd(x->weight[side] + i), values);
        }
        const __m512d more = _mm512_add_pd(sum[0], sum[1]);
        _mm512_storeu_pd(fine + i, _mm512_add_pd(_mm512_loadu_pd(fine + i), more));
    }
}

/* Of coarse points that take from up to four fine ones, in two vectors from their first one on. */
TRLI_TARGET8 static void restrict_vectors(const trli_axis_transfer *x, double *coarse, const double *line, int lo,
                                          int hi)
{
    for (int j = lo; j < hi; j += LANES) {
        const int first = x->first[j];
        const __m512i at = _mm512_cvtepi32_epi64(
            _mm256_sub_epi32(_mm256_loadu_si256((const __m256i *)(x->first + j)), _mm256_set1_epi32(first)));
        __m512d sum = _mm512_setzero_pd();
        for (int k = 0; k < TRLI_TRANSFER_FEW; ++k) {
            const double *from = line + first + k;
            const __m512d weight = _mm512_loadu_pd(x->few[k] + j);
            const __m512d value = _mm512_permutex2var_pd(_mm512_loadu_pd(from), at, _mm512_loadu_pd(from + LANES));
            const __mmask8 counts = _mm512_cmp_pd_mask(weight, _mm512_setzero_pd(), _CMP_NEQ_UQ);
            sum = _mm512_mask_add_pd(sum, counts, sum, _mm512_mul_pd(weight, value));
        }
        _mm512_storeu_pd(coarse + j, _mm512_add_pd(sum, _mm512_setzero_pd()));
    }
}
#else
enum { LANES = 1 };

static bool has_vectors(void)
{
    return false;
}

#define add_vectors(...) ((void)0)
#define restrict_vectors(...) ((void)0)
#endif

/* Points of a run that whole vectors have, of those asked for. */
static void whole_vectors(const int run[2], int lo, int hi, int *begin, int *end)
{
    *begin = lo > run[0] ? lo : run[0];
    *end = hi < run[1] ? hi : run[1];
    if (!has_vectors() || *end < *begin + LANES)
        *begin = *end = lo;
    else
        *end -= (*end - *begin) % LANES;
}

void trli_transfer_sum(const trli_weighted_rows *of, double *line, int n, int shift, int ahead)
{
    sum_rows(of, line, n, shift, ahead);
}

void trli_transfer_join(double *line, int begin, int end, int shift, double *const from[4], const double weight[4])
{
    join_rows(line, begin, end, shift, from, weight);
}

void trli_transfer_add(const trli_axis_transfer *x, double *fine, const double *line, int lo, int hi)
{
    int begin, end;
    whole_vectors(x->steady, lo, hi, &begin, &end);
    add_each(x, fine, line, lo, begin);
    add_vectors(x, fine, line, begin, end);
    add_each(x, fine, line, end, hi);
}

void trli_transfer_restrict(const trli_axis_transfer *x, double *coarse, const double *line, int lo, int hi)
{
    int begin, end;
    whole_vectors(x->even, lo, hi, &begin, &end);
    restrict_each(x, coarse, line, lo, begin);
    restrict_vectors(x, coarse, line, begin, end);
    restrict_each(x, coarse, line, end, hi);
}
