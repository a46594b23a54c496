/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* How fast each core is while all of them work, by loops by hand that exchange nothing. On a virtual machine some take
 * twice as long as others for a while: the host runs two of them on one core. */
#include <stdlib.h>

#include "bench_heat_impl.h"
#include "memory_impl.h"

enum { CELLS = 64, SWEEPS_LEAST = 4 };
static const double seconds = 0.05, quick_seconds = 0.002;

typedef struct core_loops {
    trli_heat heat;
    double seconds;
    double *level[2]; /* [members][2][heat.points] */
    double *rate;     /* [members] */
} core_loops;

static void sweep(const trli_heat *h, const trli_heat_coefficients *c, const double *t, double *out)
{
    for (ptrdiff_t z = 0; z < h->n[2]; ++z)
        for (ptrdiff_t y = 0; y < h->n[1]; ++y) {
            const ptrdiff_t row = h->origin + z * h->stride[2] + y * h->stride[1];
            trli_heat_row(&out[row], &t[row], c);
        }
}

static void work(trli_team *team, int member, void *data)
{
    core_loops *l = data;
    const trli_heat *h = &l->heat;
    trli_heat_coefficients c;
    double *t = l->level[0] + member * h->points, *out = l->level[1] + member * h->points;
    trli_heat_set_coefficients(h, &c);
    for (ptrdiff_t i = 0; i < h->points; ++i) t[i] = out[i] = (double)(i % 7);
    sweep(h, &c, t, out);
    trli_team_barrier(team);
    const double start = trli_bench_clock();
    double time = 0;
    int sweeps = 0;
    while (sweeps < SWEEPS_LEAST || time < l->seconds) {
        sweep(h, &c, sweeps % 2 ? out : t, sweeps % 2 ? t : out);
        ++sweeps;
        time = trli_bench_clock() - start;
    }
    l->rate[member] = (double)sweeps * CELLS * CELLS * CELLS / time;
}

trl_err trli_cores_measure(trli_bench *bench, double *rate)
{
    const int n = bench->threads;
    core_loops l = {.heat = {.n = {CELLS, CELLS, CELLS}, .k = 1, .dt = 1e-6, .spacing = {1, 1, 1}},
                    .seconds = bench->quick ? quick_seconds : seconds,
                    .rate = rate};
    trl_err err = TRL_OK;
    trli_heat_shape(&l.heat);
    for (int i = 0; i < 2; ++i) TRL_TRY(trli_bench_alloc(bench->ctx, (size_t)(n * l.heat.points), &l.level[i]));
    TRL_TRY(trli_team_run(bench->ctx, n, work, &l));
done:
    for (int i = 0; i < 2; ++i) free(l.level[i]);
    return err;
}

double trli_cores_allow(const double *rate, int n, int ranks, int threads)
{
    double all = 0, least = 0;
    for (int r = 0; r < ranks; ++r) {
        double sum = 0;
        for (int i = 0; i < threads; ++i) sum += rate[r * (n / ranks) + i];
        if (r == 0 || sum < least) least = sum;
        all += sum;
    }
    return ranks * least / all;
}
