/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Kernels of direct application: each is one expression of the leaves of a point, and becomes a loop over contiguous x, in vectors
 * whatever the operator's axis. A term that is subtracted has a negative scale, and a weight of 1 or -1 may be a product: the bits are
 * the same. */
#include <stdint.h>

#include <trl_limiter_body.h>

#include "operator_impl.h"
#include "vector_impl.h"

/* Leaf l, which moves with term t. */
#define V(l, t) (c.in[l] + step##t)[i]
#define W(l, t) (c.weight[l] * V(l, t))
#define S(t) c.scale[t]

#define KERNEL(name, value)                                                        \
    TRLI_CLONES static void name(const trli_rows *rows)                            \
    {                                                                              \
        const trli_rows c = *rows; /* a copy: no store to out can change it */     \
        for (ptrdiff_t k = 0; k < c.planes; ++k)                                   \
            for (ptrdiff_t j = 0; j < c.rows; ++j) {                               \
                double *const out = c.out + k * c.out_step[1] + j * c.out_step[0]; \
                const ptrdiff_t step0 = k * c.in_step[0][1] + j * c.in_step[0][0]; \
                const ptrdiff_t step1 = k * c.in_step[1][1] + j * c.in_step[1][0]; \
                const ptrdiff_t step2 = k * c.in_step[2][1] + j * c.in_step[2][0]; \
                (void)step1, (void)step2;                                          \
                TRLI_INDEPENDENT                                                   \
                for (ptrdiff_t i = 0; i < c.n; ++i) out[i] = (value);              \
            }                                                                      \
    }

/* ---- sums of any weights ---- */

#define SUM1 W(0, 0)
#define SUM2 SUM1 + W(1, 0)
#define SUM3 SUM2 + W(2, 0)
#define SUM4 SUM3 + W(3, 0)
#define SUM5 SUM4 + W(4, 0)
#define SUM6 SUM5 + W(5, 0)
#define SUM7 SUM6 + W(6, 0)
#define SUM8 SUM7 + W(7, 0)
#define SUM_LIST(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8)
/* In the order of the points, also where out holds the sum of those before. */
#define ADD1 out[i] + W(0, 0)
#define ADD2 ADD1 + W(1, 0)
#define ADD3 ADD2 + W(2, 0)
#define ADD4 ADD3 + W(3, 0)
#define ADD5 ADD4 + W(4, 0)
#define ADD6 ADD5 + W(5, 0)
#define ADD7 ADD6 + W(6, 0)
#define ADD8 ADD7 + W(7, 0)

#define SUM_KERNELS(n) KERNEL(sum##n, (SUM##n) * S(0)) KERNEL(add##n, (ADD##n) * S(0))
SUM_LIST(SUM_KERNELS)
#undef SUM_KERNELS

trli_rows_kernel trli_rows_sum(int npoints, bool add)
{
#define SUM_ROW(n) {sum##n, add##n},
    static const trli_rows_kernel table[TRLI_SUM_POINTS][2] = {SUM_LIST(SUM_ROW)};
#undef SUM_ROW
    return table[npoints - 1][add];
}

/* ---- whole operators ---- */

#define MEAN(a, b, t) (V(a, t) + V(b, t))
#define DIFFERENCE(a, b, t) (V(a, t) - V(b, t))
#define SECOND(a, b, t) (V(a, t) + V(b, t) + W(2, 0))

KERNEL(mean, MEAN(0, 1, 0) * S(0))
KERNEL(difference, DIFFERENCE(0, 1, 0) * S(0))
KERNEL(difference_2, DIFFERENCE(0, 1, 0) * S(0) + DIFFERENCE(2, 3, 1) * S(1))
KERNEL(difference_3, DIFFERENCE(0, 1, 0) * S(0) + DIFFERENCE(2, 3, 1) * S(1) + DIFFERENCE(4, 5, 2) * S(2))
KERNEL(second, SECOND(0, 1, 0) * S(0))
KERNEL(second_2, SECOND(0, 1, 0) * S(0) + SECOND(3, 4, 0) * S(1))
KERNEL(second_3, SECOND(0, 1, 0) * S(0) + SECOND(3, 4, 0) * S(1) + SECOND(6, 7, 0) * S(2))
KERNEL(mean_mean, (MEAN(0, 1, 0) * S(0) + MEAN(2, 3, 0) * S(0)) * S(1))
KERNEL(mean_mean_mean,
       ((MEAN(0, 1, 0) * S(0) + MEAN(2, 3, 0) * S(0)) * S(1) + (MEAN(4, 5, 0) * S(0) + MEAN(6, 7, 0) * S(0)) * S(1)) *
           S(2))

/* Operators whose terms and passes are all alike. The third weight is any. */
static const struct {
    int terms, passes, points;
    double weight[2]; /* of the first points */
    bool shared;      /* the last point is one value for all terms */
    trli_rows_kernel kernel;
} fused[] = {
    {1, 1, 2, {1, 1}, false, mean},           {1, 1, 2, {1, -1}, false, difference},
    {2, 1, 2, {1, -1}, false, difference_2},  {3, 1, 2, {1, -1}, false, difference_3},
    {1, 1, 3, {1, 1}, false, second},         {2, 1, 3, {1, 1}, true, second_2},
    {3, 1, 3, {1, 1}, true, second_3},        {1, 2, 2, {1, 1}, false, mean_mean},
    {1, 3, 2, {1, 1}, false, mean_mean_mean},
};

static bool shares_last(const trl_operator *op)
{
    const trl_stencil_point *first = &op->term[0].pass[0].point[op->term[0].pass[0].npoints - 1];
    for (int t = 1; t < op->nterms; ++t) {
        const trl_stencil_point *last = &op->term[t].pass[0].point[op->term[t].pass[0].npoints - 1];
        if (op->term[t].input != op->term[0].input || last->weight != first->weight) return false;
        for (int a = 0; a < 3; ++a)
            if (last->offset[a] != first->offset[a]) return false;
    }
    return true;
}

static bool suits(const trl_operator *op, size_t i)
{
    if (op->nterms != fused[i].terms) return false;
    for (int t = 0; t < op->nterms; ++t) {
        if (op->term[t].npasses != fused[i].passes) return false;
        for (int p = 0; p < op->term[t].npasses; ++p) {
            const trl_pass *pass = &op->term[t].pass[p];
            if (pass->npoints != fused[i].points) return false;
            for (int w = 0; w < 2; ++w)
                if (pass->point[w].weight != fused[i].weight[w]) return false;
        }
    }
    return !fused[i].shared || shares_last(op);
}

static void set_factors(const trl_operator *op, trli_rows *rows)
{
    int leaf = 0;
    for (int t = 0; t < op->nterms; ++t) {
        const trl_term *term = &op->term[t];
        for (int p = 0; p < term->npasses; ++p) rows->scale[t + p] = term->pass[p].scale;
        if (term->minus) rows->scale[t + term->npasses - 1] *= -1;
        for (int n = 0; term->npasses == 1 && n < term->pass[0].npoints; ++n)
            rows->weight[leaf++] = term->pass[0].point[n].weight;
    }
}

trli_rows_kernel trli_rows_fused(const trl_operator *op, trli_rows *rows)
{
    for (size_t i = 0; i < sizeof fused / sizeof *fused; ++i)
        if (suits(op, i)) {
            set_factors(op, rows);
            return fused[i].kernel;
        }
    if (op->nterms > 1 || op->term[0].npasses > 1 || op->term[0].pass[0].npoints > TRLI_SUM_POINTS) return NULL;
    set_factors(op, rows);
    return trli_rows_sum(op->term[0].pass[0].npoints, false);
}

/* ---- advective fluxes ---- */

KERNEL(flux_central, V(0, 0) * (MEAN(1, 2, 1) * 0.5))
/* Points are chosen, not results: one reconstruction, and nothing branches. */
#define UPWIND(from_minus, from_plus) (0.0 <= V(0, 0) ? V(from_minus, 1) : V(from_plus, 1))
#define FLUX_KERNEL(NAME, name, psi) \
    KERNEL(flux_##name, V(0, 0) * trl_limiter_face_##name(UPWIND(3, 4), UPWIND(1, 2), UPWIND(2, 1)))
TRL_LIMITER_LIST(FLUX_KERNEL)
#undef FLUX_KERNEL

trli_rows_kernel trli_rows_flux(int limiter)
{
#define FLUX_ROW(NAME, name, psi) flux_##name,
    static const trli_rows_kernel table[TRL_LIMITER_COUNT] = {TRL_LIMITER_LIST(FLUX_ROW)};
#undef FLUX_ROW
    return limiter < 0 ? flux_central : table[limiter];
}

/* ---- streaming ---- */

enum { LINE = 8 }; /* values of a cache line */

#define STREAM_ROW(width, attribute)                                                            \
    attribute static void stream_row##width(double *to, const double *from, ptrdiff_t n)        \
    {                                                                                           \
        ptrdiff_t i = 0;                                                                        \
        for (; i < n && (uintptr_t)&to[i] % (LINE * sizeof(double)) != 0; ++i) to[i] = from[i]; \
        for (; i + LINE <= n; i += LINE)                                                        \
            for (int v = 0; v < LINE; v += (width))                                             \
                TRLI_STREAM_STORE##width(&to[i + v], *(const trli_loose##width *)&from[i + v]); \
        for (; i < n; ++i) to[i] = from[i];                                                     \
    }
TRLI_STREAM_VARIANTS(STREAM_ROW)

void trli_stream_rows(double *to, ptrdiff_t to_step, const double *from, ptrdiff_t from_step, ptrdiff_t n,
                      ptrdiff_t rows)
{
    for (ptrdiff_t j = 0; j < rows; ++j) TRLI_STREAM_CALL(stream_row, to + j * to_step, from + j * from_step, n);
}

void trli_stream_end(void)
{
    TRLI_STREAM_FENCE();
}
