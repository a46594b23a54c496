/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The devices of a simulation, and where its tasks are done. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "context_impl.h"
#include "execution_impl.h"
#include "executor_impl.h"
#include "simulation_layout_impl.h"
#include "solving_impl.h"

static trl_err open_devices(trl_simulation *sim)
{
    const trl_problem *p = sim->problem;
    const trl_diagnostic *list;
    const int said = trl_context_diagnostics(sim->ctx, &list);
    if (p->model_devices) return trl_devices_open_model(sim->ctx, p->model_devices, &sim->devices);
    const trl_err err = trl_devices_open(sim->ctx, p->devices ? p->devices : "auto", &sim->devices);
    if (err != TRL_OK) trli_diagnostics_locate(sim->ctx, said, &p->devices_place);
    return err;
}

trl_err trli_simulation_open_devices(trl_simulation *sim)
{
    const trl_problem *p = sim->problem;
    const char *placement = p->placement ? p->placement : getenv("TRL_PLACEMENT");
    trl_err err = TRL_OK;
    if (!trl_workers_places(sim->workers)) {
        if (p->model_devices)
            return trl_fail(sim->ctx, TRL_ERR_INPUT, NULL,
                            "scheduler '%s' uses no devices; use hybrid: --set run.scheduler=hybrid", p->scheduler);
        if (p->devices && strcmp(p->devices, "auto") != 0 && strcmp(p->devices, "cpu") != 0)
            return trl_fail(sim->ctx, TRL_ERR_INPUT, &p->devices_place,
                            "devices '%s': scheduler '%s' uses none; use scheduler 'hybrid', or devices 'cpu'",
                            p->devices, p->scheduler);
        if (p->placement)
            trl_warn(sim->ctx, &p->placement_place, "the placement is not used: scheduler '%s' uses no devices",
                     p->scheduler);
        return TRL_OK;
    }
    TRL_TRY(open_devices(sim));
    if (p->compile == TRL_COMPILE_NEVER && sim->devices && sim->devices->n > 0 &&
        sim->devices->device[0]->kind == TRL_KIND_GPU)
        trl_warn(sim->ctx, NULL, "GPUs do nothing, because run.compile is never; use auto, or run.devices: cpu");
    TRL_TRY(trl_workers_set_devices(sim->workers, sim->devices));
    TRL_TRY(trl_workers_set_prefetch(sim->workers, !p->no_prefetch));
    if (p->placement_text)
        err = trl_workers_set_placement_file(sim->workers, p->placement, p->placement_text, TRLI_STEP_PROGRAM);
    else if (placement)
        err = trl_workers_set_placement(sim->workers, placement);
done:
    return err;
}

static bool solves(const trl_simulation *sim)
{
    const trl_problem *p = sim->problem;
    bool any = sim->integrator->implicit;
    for (int e = 0; e < p->nequations; ++e) any |= p->equation[e].solve.chars != NULL;
    return any;
}

/* Whether each of several devices is to have a slab. Where equations are solved they would wait for each other many
 * times in a step, or for the host: one has all, if it has room. */
static bool pays_to_cut(const trl_simulation *sim, double cells, int slabs)
{
    static const double cells_least = 1 << 23, fields = 40; /* of a patch; of a flow with its solver, about */
    const double bytes = sizeof(double) * fields * cells;
    bool fits = true;
    for (int i = 0; i < sim->devices->n; ++i)
        fits &= sim->devices->device[i]->info.bytes == 0 || bytes < (double)sim->devices->device[i]->info.bytes;
    return cells >= cells_least * slabs && !(solves(sim) && fits);
}

/* One patch needs one GPU: tasks that several share out wait for each other's copies, and what one GPU is given at once
 * they are given launch by launch. A deck that names GPUs, or has a placement, keeps them. */
static trl_err leave_gpus(trl_simulation *sim)
{
    const trl_problem *p = sim->problem;
    const bool named = p->devices && strcmp(p->devices, "auto") != 0 && strcmp(p->devices, "gpu") != 0;
    const int n = sim->devices ? trl_devices_opened(sim->devices) : 0;
    if (n < 2 || named || p->placement_text || sim->devices->device[0]->kind != TRL_KIND_GPU) return TRL_OK;
    trl_devices_keep(sim->devices, 1);
    sim->left_gpus = n - 1;
    return trl_workers_set_devices(sim->workers, sim->devices);
}

/* A patch for each rank; where ranks have several devices each, for each device, as slabs: their halos are contiguous
 * in memory. Small grids are not worth cutting. */
trl_err trli_simulation_cut(trl_simulation *sim)
{
    const trl_problem *p = sim->problem;
    const trl_grid *grid = &p->grid;
    const int axis = grid->dim - 1;
    int devices = sim->devices ? trl_devices_opened(sim->devices) : 0, slabs[3] = {1, 1, 1};
    int64_t any = devices > 0;
    trl_err err = TRL_OK;
    TRL_TRY(trli_agree_max(sim->ctx, TRL_OK, 1, &any));
    sim->any_devices = any > 0;
    if (!p->patches_auto) return trli_simulation_deal(sim, p->patches);
    TRL_TRY(trli_allreduce(sim->ctx, &devices, 1, MPI_INT, MPI_MIN));
    slabs[axis] = devices * trl_context_ranks(sim->ctx);
    double cells = 1;
    for (int a = 0; a < grid->dim; ++a) cells *= (double)grid->cells[a];
    const bool cut = devices > 1 && slabs[axis] <= grid->cells[axis] && pays_to_cut(sim, cells, slabs[axis]);
    TRL_TRY(trli_simulation_deal(sim, cut ? slabs : NULL));
    if (!cut) err = leave_gpus(sim);
done:
    return err;
}

const trl_devices *trl_simulation_devices(const trl_simulation *sim)
{
    return sim->devices;
}

trl_err trl_simulation_write_placement(const trl_simulation *sim, FILE *out)
{
    return trl_graph_write_placement(sim->step->run->graph, sim->workers, out);
}

trl_err trl_simulation_write_placement_file(const trl_simulation *sim, FILE *out)
{
    return trl_graph_write_placement_file(sim->step->run->graph, sim->workers, out);
}

/* The n-th program of those of the simulation and, if they are no more than that, of its coarser grids; *n: how many
 * are left to go. NULL: there is none. */
static const trli_program *find_program(const trl_simulation *sim, int *n)
{
    const trl_simulation *level = sim;
    for (int s = -1; s < trl_simulation_solvers(sim); ++s)
        for (int k = 1; s < 0 ? k == 1 : (level = trli_solving_level(sim, s, k)) != NULL; ++k) {
            if (*n < level->model->nprograms) return level->model->program[*n];
            *n -= level->model->nprograms;
        }
    return NULL;
}

int trl_simulation_programs(const trl_simulation *sim)
{
    int n = INT_MAX;
    (void)find_program(sim, &n);
    return INT_MAX - n;
}

void trl_simulation_program(const trl_simulation *sim, int program, trl_program_stats *stats)
{
    const trli_program *p = find_program(sim, &program);
    *stats = (trl_program_stats){.name = p->name, .grid = &p->model->layout->grid};
    trl_graph_get_placement(p->run->graph, &stats->placement);
}
