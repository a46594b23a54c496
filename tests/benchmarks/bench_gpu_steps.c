/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The steps of a deck on a GPU, for benchmarks: their results and their times. */
#include <math.h>

#include "bench_gpu_impl.h"
#include "bench_impl.h"

enum { ROUNDS = 5 };

double trli_gpu_visit(const trl_simulation *sim, int field, double *values, bool compare)
{
    const trl_array a = trl_simulation_array(sim, field, 0);
    double most = 0;
    for (trl_lidx k = 0, at = 0; k < a.owned.hi[2]; ++k)
        for (trl_lidx j = 0; j < a.owned.hi[1]; ++j)
            for (trl_lidx i = 0; i < a.owned.hi[0]; ++i, ++at) {
                const double v = ((const double *)a.at)[trl_array_offset(&a, i, j, k)];
                if (!compare)
                    values[at] = v;
                else if (!(fabs(v - values[at]) <= most))
                    most = fabs(v - values[at]);
            }
    return most;
}

static bool is_last(void *data, trl_gidx step, double time, double dt)
{
    (void)time;
    (void)dt;
    return step >= *(const trl_gidx *)data;
}

/* As runs of decks do. */
trl_err trli_gpu_make_steps(trl_simulation *sim, int steps)
{
    trl_gidx last = trl_simulation_step_number(sim) + steps;
    trl_err err = TRL_OK;
    while (trl_simulation_step_number(sim) < last) TRL_TRY(trl_simulation_advance_pending(sim, is_last, &last));
    err = trl_workers_finish(trl_simulation_workers(sim));
done:
    return err;
}

trl_err trli_gpu_time_steps(trl_simulation *sim, int steps, double *seconds)
{
    double round[ROUNDS];
    trl_err err = TRL_OK;
    TRL_TRY(trli_gpu_make_steps(sim, steps)); /* until the ways to take them have been tried */
    for (int i = 0; i < ROUNDS; ++i) {
        const double start = trli_bench_clock();
        TRL_TRY(trli_gpu_make_steps(sim, steps));
        round[i] = trli_bench_clock() - start;
    }
    *seconds = trli_spread_of(round, ROUNDS).median / steps;
done:
    return err;
}
