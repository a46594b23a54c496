/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include "bench_dag_impl.h"
#include "vector_impl.h"

enum { REPETITIONS = 30 }; /* the best counts: others may use the core meanwhile */

TRLI_CLONES static double busy(int64_t n, double x)
{
    for (int64_t i = 0; i < n; ++i) x = __builtin_fma(x, 0.999999, 1e-6); /* toward 1, so that nothing overflows */
    return x;
}

double trli_busy(int64_t n, double x)
{
    return busy(n, x); /* clones stay local: their resolver would be exported */
}

double trli_busy_rate(bool quick)
{
    int64_t n = quick ? 10000 : 1000000;
    double best = 0, x = 0.5;
    for (int repetition = 0; repetition < REPETITIONS; ++repetition) {
        double start = trli_bench_clock();
        x = trli_busy(n, x);
        double rate = (double)n / (trli_bench_clock() - start);
        if (rate > best) best = rate;
    }
    return x > 2 ? 0 : best; /* x is at most 1: it is looked at so that the loop is not left out */
}
