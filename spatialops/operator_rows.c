/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Kernels of direct application: each is one expression of the leaves of a point, and becomes a loop over contiguous x,
 * in vectors whatever the operator's axis: by the compiler, and by hand where results are streamed. A term that is
 * subtracted has a negative scale, and a weight of 1 or -1 may be a product: the bits are the same. */
#include <stdint.h>

#include <trl_limiter_body.h>

#include "operator_impl.h"
#include "vector_impl.h"

enum { PAIR = 2 * TRLI_LINE };

/* Leaf l, which moves with term t, at a point, or at as many as `values` are. N is the same as seen from leaf `first`
 * of the term: with one term it leaves compilers a register more, and a step from row to row that waits for memory
 * costs short rows a quarter. */
#define V(l, t) (*(const values *)&(c.in[l] + step##t)[i])
#define N(l, first, t) (*(const values *)&(c.in[first] + step##t)[i + (c.in[l] - c.in[first])])
#define W(l) (c.weight[l] * N(l, 0, 0))
#define S(t) c.scale[t]

#define ROWS                                 \
    for (ptrdiff_t k = 0; k < c.planes; ++k) \
        for (ptrdiff_t j = 0; j < c.rows; ++j)
#define ROW                                                            \
    double *const out = c.out + k * c.out_step[1] + j * c.out_step[0]; \
    const ptrdiff_t step0 = k * c.in_step[0][1] + j * c.in_step[0][0]; \
    const ptrdiff_t step1 = k * c.in_step[1][1] + j * c.in_step[1][0]; \
    const ptrdiff_t step2 = k * c.in_step[2][1] + j * c.in_step[2][0]; \
    (void)step1, (void)step2

/* By the compiler, through the caches. Short rows feel how their loop goes: those of whole lines have no rest to look
 * for, and of more than two lines those of an even number take two at a time (on Zen 5 rows of four lines run 1.1
 * to 1.3 times as fast, rows of two lines would run slower; on a Xeon all are alike). */
#define POINTS(begin, end, value) \
    TRLI_INDEPENDENT              \
    for (ptrdiff_t i = (begin); i < (end); ++i) out[i] = (value);
#define PAIRS(end, value)                                  \
    for (ptrdiff_t pair = 0; pair < (end); pair += PAIR) { \
        POINTS(pair, pair + PAIR, value)                   \
    }
#define EACH_ROW(points) \
    ROWS                 \
    {                    \
        ROW;             \
        points           \
    }
#define LOOP(name, value)                                                 \
    TRLI_CLONES static void name##_through(const trli_rows *rows)         \
    {                                                                     \
        typedef double values;                                            \
        const trli_rows c = *rows; /* which no store to out can change */ \
        const ptrdiff_t whole = c.n & -(ptrdiff_t)TRLI_LINE;              \
        if (c.n % PAIR == 0 && c.n > PAIR)                                \
            EACH_ROW(PAIRS(c.n, value))                                   \
        else if (whole == c.n)                                            \
            EACH_ROW(POINTS(0, whole, value))                             \
        else                                                              \
            EACH_ROW(POINTS(0, c.n, value))                               \
    }

/* By hand, with streaming stores: an expression that vectors allow, in whole vectors to aligned addresses. */
#define PAST(width, name, value)                                                  \
    TRLI_TARGET##width static void name##_streaming##width(const trli_rows *rows) \
    {                                                                             \
        typedef trli_loose##width values;                                         \
        const trli_rows c = *rows; /* which no store to out can change */         \
        ROWS                                                                      \
        {                                                                         \
            ROW;                                                                  \
            const double *ahead = c.in[c.first] + step0 + c.ahead;                \
            for (ptrdiff_t line = 0; line < c.n; line += TRLI_LINE) {             \
                if (c.ahead) __builtin_prefetch(&ahead[line]);                    \
                for (ptrdiff_t i = line; i < line + TRLI_LINE; i += (width))      \
                    TRLI_STREAM_STORE##width(&out[i], (value));                   \
            }                                                                     \
        }                                                                         \
    }
#define PAST1(name, value) PAST(1, name, value)
#define PAST2(name, value) PAST(2, name, value)
#define PAST4(name, value) PAST(4, name, value)
#define PAST8(name, value) PAST(8, name, value)
#define PAST_CALL(name, value)                          \
    static void name##_streaming(const trli_rows *rows) \
    {                                                   \
        TRLI_STREAM_CALL(name##_streaming, rows);       \
    }

/* ---- what they compute ---- */

#define SUM1 W(0)
#define SUM2 SUM1 + W(1)
#define SUM3 SUM2 + W(2)
#define SUM4 SUM3 + W(3)
#define SUM5 SUM4 + W(4)
#define SUM6 SUM5 + W(5)
#define SUM7 SUM6 + W(6)
#define SUM8 SUM7 + W(7)
/* Of points whose weights are 1, as those of box filters. */
#define ONES3 N(0, 0, 0) + N(1, 0, 0) + N(2, 0, 0)
#define ONES5 ONES3 + N(3, 0, 0) + N(4, 0, 0)
#define ONES7 ONES5 + N(5, 0, 0) + N(6, 0, 0)
#define COUNTS(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8)
/* In the order of the points, also where out holds the sum of those before. */
#define ADD1 out[i] + W(0)
#define ADD2 ADD1 + W(1)
#define ADD3 ADD2 + W(2)
#define ADD4 ADD3 + W(3)
#define ADD5 ADD4 + W(4)
#define ADD6 ADD5 + W(5)
#define ADD7 ADD6 + W(6)
#define ADD8 ADD7 + W(7)

#define MEAN(a, b, t) (V(a, t) + V(b, t))
#define DIFFERENCE(a, b, t) (V(a, t) - V(b, t))
#define SECOND(a, b) (V(a, 0) + V(b, 0) + c.weight[2] * V(2, 0))

#define KERNELS(X)                                                                                                    \
    X(sum1, (SUM1)*S(0))                                                                                              \
    X(sum2, (SUM2)*S(0))                                                                                              \
    X(sum3, (SUM3)*S(0))                                                                                              \
    X(sum4, (SUM4)*S(0))                                                                                              \
    X(sum5, (SUM5)*S(0))                                                                                              \
    X(sum6, (SUM6)*S(0))                                                                                              \
    X(sum7, (SUM7)*S(0))                                                                                              \
    X(sum8, (SUM8)*S(0))                                                                                              \
    X(ones3, (ONES3)*S(0))                                                                                            \
    X(ones5, (ONES5)*S(0))                                                                                            \
    X(ones7, (ONES7)*S(0))                                                                                            \
    X(mean, (N(0, 0, 0) + N(1, 0, 0)) * S(0))                                                                         \
    X(difference, (N(0, 0, 0) - N(1, 0, 0)) * S(0))                                                                   \
    X(difference_2, DIFFERENCE(0, 1, 0) * S(0) + DIFFERENCE(2, 3, 1) * S(1))                                          \
    X(difference_3, DIFFERENCE(0, 1, 0) * S(0) + DIFFERENCE(2, 3, 1) * S(1) + DIFFERENCE(4, 5, 2) * S(2))             \
    X(second, (N(0, 0, 0) + N(1, 0, 0) + W(2)) * S(0))                                                                \
    X(second_2, SECOND(0, 1) * S(0) + SECOND(3, 4) * S(1))                                                            \
    X(second_3, SECOND(0, 1) * S(0) + SECOND(3, 4) * S(1) + SECOND(6, 7) * S(2))                                      \
    X(mean_mean, (MEAN(0, 1, 0) * S(0) + MEAN(2, 3, 0) * S(0)) * S(1))                                                \
    X(mean_mean_mean,                                                                                                 \
      ((MEAN(0, 1, 0) * S(0) + MEAN(2, 3, 0) * S(0)) * S(1) + (MEAN(4, 5, 0) * S(0) + MEAN(6, 7, 0) * S(0)) * S(1)) * \
          S(2))                                                                                                       \
    X(flux_central, V(0, 0) * ((N(1, 1, 1) + N(2, 1, 1)) * 0.5))
KERNELS(LOOP)
TRLI_STREAM_LIST(KERNELS, PAST)
KERNELS(PAST_CALL)

#define ADD_KERNEL(n) LOOP(add##n, (ADD##n) * S(0))
COUNTS(ADD_KERNEL)
#undef ADD_KERNEL

/* Points are chosen, not results: one reconstruction, and nothing branches. */
#define UPWIND(from_minus, from_plus) (0.0 <= V(0, 0) ? V(from_minus, 1) : V(from_plus, 1))
#define FLUX_KERNEL(NAME, name, psi) \
    LOOP(flux_##name, V(0, 0) * trl_limiter_face_##name(UPWIND(3, 4), UPWIND(1, 2), UPWIND(2, 1)))
TRL_LIMITER_LIST(FLUX_KERNEL)
#undef FLUX_KERNEL

/* Of the fluxes with a limiter this one waits for memory, the others compute. */
#define PAST_UPWIND(X) X(flux_upwind, V(0, 0) * TRLI_BY_SIGN(V(0, 0), V(1, 1), V(2, 1)))
TRLI_STREAM_LIST(PAST_UPWIND, PAST)
PAST_UPWIND(PAST_CALL)

/* ---- which one suits ---- */

#define BOTH(name)                       \
    {                                    \
        name##_through, name##_streaming \
    }

trli_rows_kernel trli_rows_sum(const trl_stencil_point *point, int npoints)
{
#define SUM_ROW(n) BOTH(sum##n),
    static const trli_rows_kernel sums[TRLI_SUM_POINTS] = {COUNTS(SUM_ROW)};
#undef SUM_ROW
    static const trli_rows_kernel ones[TRLI_SUM_POINTS] = {[2] = BOTH(ones3), [4] = BOTH(ones5), [6] = BOTH(ones7)};
    bool all_ones = true;
    for (int p = 0; p < npoints; ++p) all_ones &= point[p].weight == 1;
    return all_ones && ones[npoints - 1].through ? ones[npoints - 1] : sums[npoints - 1];
}

trli_rows_kernel trli_rows_add(int npoints)
{
#define ADD_ROW(n) {add##n##_through, NULL},
    static const trli_rows_kernel table[TRLI_SUM_POINTS] = {COUNTS(ADD_ROW)};
#undef ADD_ROW
    return table[npoints - 1];
}

trli_rows_kernel trli_rows_flux(int limiter)
{
#define FLUX_ROW(NAME, name, psi) {flux_##name##_through, NULL},
    static const trli_rows_kernel central = BOTH(flux_central);
    static const trli_rows_kernel upwind = BOTH(flux_upwind);
    static const trli_rows_kernel table[TRL_LIMITER_COUNT] = {TRL_LIMITER_LIST(FLUX_ROW)};
#undef FLUX_ROW
    return limiter < 0 ? central : limiter == TRL_LIMITER_UPWIND ? upwind : table[limiter];
}

/* Operators whose terms and passes are all alike. The third weight is any. */
static const struct {
    int terms, passes, points;
    double weight[2]; /* of the first points */
    bool shared;      /* the last point is one value for all terms */
    trli_rows_kernel kernel;
} fused[] = {
    {1, 1, 2, {1, 1}, false, BOTH(mean)},           {1, 1, 2, {1, -1}, false, BOTH(difference)},
    {2, 1, 2, {1, -1}, false, BOTH(difference_2)},  {3, 1, 2, {1, -1}, false, BOTH(difference_3)},
    {1, 1, 3, {1, 1}, false, BOTH(second)},         {2, 1, 3, {1, 1}, true, BOTH(second_2)},
    {3, 1, 3, {1, 1}, true, BOTH(second_3)},        {1, 2, 2, {1, 1}, false, BOTH(mean_mean)},
    {1, 3, 2, {1, 1}, false, BOTH(mean_mean_mean)},
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

bool trli_rows_fused(const trl_operator *op, trli_rows *rows, trli_rows_kernel *kernel)
{
    for (size_t i = 0; i < sizeof fused / sizeof *fused; ++i)
        if (suits(op, i)) {
            set_factors(op, rows);
            *kernel = fused[i].kernel;
            return true;
        }
    if (op->nterms > 1 || op->term[0].npasses > 1 || op->term[0].pass[0].npoints > TRLI_SUM_POINTS) return false;
    set_factors(op, rows);
    *kernel = trli_rows_sum(op->term[0].pass[0].point, op->term[0].pass[0].npoints);
    return true;
}

/* ---- streaming ---- */

#define STREAM_ROW(width, attribute)                                                                 \
    attribute static void stream_row##width(double *to, const double *from, ptrdiff_t n)             \
    {                                                                                                \
        ptrdiff_t i = 0;                                                                             \
        for (; i < n && (uintptr_t)&to[i] % (TRLI_LINE * sizeof(double)) != 0; ++i) to[i] = from[i]; \
        for (; i + TRLI_LINE <= n; i += TRLI_LINE)                                                   \
            for (int v = 0; v < TRLI_LINE; v += (width))                                             \
                TRLI_STREAM_STORE##width(&to[i + v], *(const trli_loose##width *)&from[i + v]);      \
        for (; i < n; ++i) to[i] = from[i];                                                          \
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
