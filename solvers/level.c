/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Coarser grids of a problem: models of the same expressions and equations. */
#include "compile_impl.h"
#include "executor_impl.h"
#include "lifecycle_impl.h"
#include "memory_impl.h"
#include "multigrid_impl.h"
#include "pipeline_impl.h"
#include "spatialops_impl.h"

/* These have no interpreter, and what they have of a finer grid should stay there. */
static bool has_gpus(const trl_simulation *fine)
{
    return fine->devices && fine->devices->n > 0 && fine->devices->device[0]->kind == TRL_KIND_GPU;
}

static trl_err make(trl_simulation *fine, trli_level *level)
{
    trl_simulation *sim = level->sim;
    trl_err err = TRL_OK;
    sim->ctx = fine->ctx;
    sim->problem = &level->problem;
    sim->integrator = fine->integrator;
    sim->workers = fine->workers;
    sim->devices = fine->devices;
    sim->any_devices = fine->any_devices;
    TRL_TRY(trli_simulation_parse(sim));
    TRL_TRY(trli_simulation_make_model(sim, fine->model));
    for (int v = 0; v < sim->nequations; ++v) {
        trli_equation *eq = &sim->equation[v];
        eq->state = eq->next = trli_model_add_field(sim->model, eq->deck->name, sim->model->variable[v].location);
        TRL_TRY(sim->model->ir.err);
        trli_set_conditions(sim, v, eq->state, eq->state);
    }
done:
    return err;
}

trl_err trli_level_create(trl_simulation *fine, trl_layout **layout, trli_level **level)
{
    const trl_grid *grid = &(*layout)->grid;
    trli_level *l = *level = trli_new(fine->ctx, 1, sizeof *l);
    double cells = 1;
    trl_err err = TRL_OK;
    if (l) l->sim = trli_new(fine->ctx, 1, sizeof *l->sim);
    if (!l || !l->sim) TRL_TRY(trli_no_memory(fine->ctx, NULL, "for a coarser grid"));
    l->sim->layout = *layout;
    *layout = NULL;
    l->problem = *fine->problem;
    l->problem.grid = *grid;
    l->problem.nseries = l->problem.nspectra = l->problem.nprofiles = l->problem.noutputs = l->problem.nkept = 0;
    l->problem.series_solvers = false;
    l->problem.receivers.nvalues = 0;
    l->problem.time.stop = (trl_text){0};
    for (int a = 0; a < grid->dim; ++a) cells *= (double)grid->cells[a];
    const bool small = cells < TRLI_LEVEL_CELLS_COMPILED;
    if (small && !has_gpus(fine)) l->problem.compile = TRL_COMPILE_NEVER;
    TRL_TRY(make(fine, l));
    l->sim->model->settings.gpus_alone = small;
done:
    trl_layout_destroy(layout);
    if (err != TRL_OK) trli_level_destroy(level);
    return err;
}

/* What exchanges and conditions will refuse. */
static bool is_thin(const trli_model *model)
{
    bool thin = false;
    for (int a = 0; a < model->layout->grid.dim; ++a) {
        const trl_lidx cells = trli_layout_thinnest(model->layout, a);
        if (model->layout->counts[a] == 1 && !model->layout->grid.periodic[a]) continue;
        for (int f = 0; f < model->nfields; ++f)
            thin |= model->field[f].ghost_lo[a] > cells || model->field[f].ghost_hi[a] > cells;
    }
    return thin;
}

trl_err trli_level_plan(trli_level *level)
{
    const trl_err err = trli_passes_run(level->sim->model);
    if (err != TRL_OK || !is_thin(level->sim->model)) return err;
    return trl_fail(level->sim->ctx, TRL_ERR_INPUT, NULL, "a coarser grid, or its patches, are thin");
}

trl_err trli_level_freeze(trli_level *level, trli_solver *solver)
{
    trli_model *model = level->sim->model;
    trl_err err = TRL_OK;
    TRL_TRY(trli_model_freeze(model, NULL, NULL));
    TRL_TRY(trli_frame_create(model, &level->sim->frame));
    trli_solver_clear(solver);
done:
    return err;
}

void trli_level_destroy(trli_level **level)
{
    trli_level *l = *level;
    *level = NULL;
    if (!l) return;
    if (l->sim) { /* these are the fine grid's */
        l->sim->workers = NULL;
        l->sim->devices = NULL;
        trl_simulation_destroy(&l->sim);
    }
    trli_free(l);
}
