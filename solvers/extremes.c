/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The smallest and the largest value of each equation: cheap enough to be looked at in a run. */
#include <math.h>

#include "context_impl.h"
#include "model_run_impl.h"
#include "simulation_impl.h"

/* Of all patches of this rank; the least by its negative, so that both are combined by max. */
static trl_err find_local(trl_simulation *sim, int v, double extreme[2])
{
    trl_err err = TRL_OK;
    extreme[0] = extreme[1] = -INFINITY;
    for (int p = 0; p < sim->layout->nlocal; ++p) {
        double found[2];
        TRL_TRY(trli_frame_extremes(sim->frame, sim->equation[v].state, p, sim->loop, found));
        extreme[0] = fmax(extreme[0], -found[0]);
        extreme[1] = fmax(extreme[1], found[1]);
    }
done:
    return err;
}

trl_err trl_simulation_extremes(trl_simulation *sim, double *extremes)
{
    if (!sim) return TRL_ERR_USAGE;
    if (!extremes) return trl_fail(sim->ctx, TRL_ERR_USAGE, NULL, "extremes need room for them");
    trl_err err = TRL_OK;
    /* Ranks that are several have looked at it when they settled. */
    if (sim->unchecked && trl_context_ranks(sim->ctx) == 1) err = trli_check_last_step(sim, false);
    for (int v = 0; v < sim->nequations && err == TRL_OK; ++v) err = find_local(sim, v, &extremes[2 * v]);
    err = trl_context_agree(sim->ctx, err);
    if (err != TRL_OK) return err;
    err = trli_allreduce(sim->ctx, extremes, 2 * sim->nequations, MPI_DOUBLE, MPI_MAX);
    for (int v = 0; v < sim->nequations; ++v) extremes[2 * v] = -extremes[2 * v];
    return err;
}
