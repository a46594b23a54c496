/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The smallest and the largest value of each equation: cheap enough to be looked at in a run. */
#include <math.h>

#include "context_impl.h"
#include "model_run_impl.h"
#include "simulation_impl.h"

static void scan_patch(const trl_array *f, double extreme[2])
{
    double least = extreme[0], most = extreme[1];
    for (trl_lidx k = f->owned.lo[2]; k < f->owned.hi[2]; ++k)
        for (trl_lidx j = f->owned.lo[1]; j < f->owned.hi[1]; ++j) {
            const double *row = (const double *)f->at + trl_array_offset(f, 0, j, k);
            for (trl_lidx i = f->owned.lo[0]; i < f->owned.hi[0]; ++i) {
                const double value = row[(ptrdiff_t)i * f->stride[0]];
                /* Both are combined by max; a NaN, which may stand where a mask is 0, changes nothing. */
                least = -value > least ? -value : least;
                most = value > most ? value : most;
            }
        }
    extreme[0] = least;
    extreme[1] = most;
}

trl_err trl_simulation_extremes(trl_simulation *sim, double *extremes)
{
    if (!sim) return TRL_ERR_USAGE;
    if (!extremes) return trl_fail(sim->ctx, TRL_ERR_USAGE, NULL, "extremes need room for them");
    trl_err err = TRL_OK;
    for (int v = 0; v < sim->nequations && err == TRL_OK; ++v)
        err = trli_frame_fetch(sim->frame, sim->equation[v].state);
    err = trl_context_agree(sim->ctx, err);
    if (err != TRL_OK) return err;
    for (int v = 0; v < sim->nequations; ++v) {
        extremes[2 * v] = extremes[2 * v + 1] = -INFINITY;
        for (int p = 0; p < sim->layout->nlocal; ++p) {
            const trl_array f = trli_frame_array(sim->frame, sim->equation[v].state, p, 0);
            scan_patch(&f, &extremes[2 * v]);
        }
    }
    err = trli_allreduce(sim->ctx, extremes, 2 * sim->nequations, MPI_DOUBLE, MPI_MAX);
    for (int v = 0; v < sim->nequations; ++v) extremes[2 * v] = -extremes[2 * v];
    return err;
}
