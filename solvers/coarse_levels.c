/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The coarser grids of multigrid: the equation compiled again, the fields that it reads, and how such a grid is cut. */
#include "context_impl.h"
#include "grid_level_impl.h"
#include "lower_impl.h"
#include "memory_impl.h"
#include "sides_impl.h"

/* Where a grid has the values that the Jacobian reads of an equation, at present or at the start of the step. */
int trli_level_coefficient(const trli_grid_level *l, int v, bool old)
{
    const trli_solver *s = l->solver;
    if (!l->own) return old ? s->old_field[v] : s->in_field[v];
    return old ? l->old_field[v] : l->sim->equation[v].state;
}

bool trli_level_reads(const trli_solver *finest, int v, bool old)
{
    return old ? finest->needs_old[v] : finest->needs[v];
}

static trl_err read_coefficients(const trli_solver *s, trli_grid_level *l)
{
    const int n = s->sim->nequations;
    int *field = trli_new(s->sim->ctx, 2 * (size_t)n + 1, sizeof *field), count = 0;
    trl_err err = TRL_OK;
    if (!field) return trli_no_memory(s->sim->ctx, NULL, "for multigrid");
    for (int v = 0; v < 2 * n; ++v)
        if (trli_level_reads(s, v % n, v >= n)) field[count++] = trli_level_coefficient(l, v % n, v >= n);
    if (count > 0)
        err =
            trli_grid_level_read(l, "coefficients of neighbours", &l->coefficients, TRLI_TRANSFER_DEPTH, count, field);
    trli_free(field);
    return err;
}

/* The coarser grids' systems have the residual of the first, and their own states and tangents. */
static trl_err level_instance(void *data, trli_program *program, trli_instance **in, trli_instance **old)
{
    const trli_solver *s = data;
    const trl_simulation *sim = s->sim;
    const int *start = s->old_field;
    trl_err err = TRL_OK;
    if (s->finest->old_field[0] >= 0) {
        TRL_TRY(trli_instance_create(sim->model, program, TRLI_SCALAR_STEP_TIME, 0, NULL, old));
        for (int v = 0; v < sim->nequations; ++v) (*old)->variable[v] = start[v];
        TRL_TRY(trli_instance_fill(*old));
    }
    TRL_TRY(trli_instance_create(sim->model, program, TRLI_SCALAR_STEP_TIME, 1, *old, in));
    for (int v = 0; v < sim->nequations; ++v) (*in)->variable[v] = sim->equation[v].state;
done:
    return err;
}

static trl_err level_residual(void *data, trli_instance *in, int i, trli_ir_value *value)
{
    const trli_solver *level = data;
    return level->finest->ask.residual(level->finest->ask.data, in, i, value);
}

/* What restriction reads of neighbours, where patches meet. coefficients: they are restricted, too. */
trl_err trli_level_read_neighbours(const trli_solver *finest, trli_grid_level *l, bool coefficients)
{
    trl_err err = TRL_OK;
    if (l->sim->layout->npatches == 1 || trli_transfer_gathers(l->sim->layout)) return TRL_OK;
    TRL_TRY(
        trli_grid_level_read(l, "residuals of neighbours", &l->ghosts, TRLI_TRANSFER_DEPTH, finest->ask.n, l->r.now));
    if (coefficients) err = read_coefficients(finest, l);
done:
    return err;
}

/* With programs, on a layout that it takes, even if it fails. */
static trl_err compile_level(trli_solver *finest, trl_layout **layout, trli_grid_level *l)
{
    const bool cut = (*layout)->npatches > 1;
    trli_solve_request request = finest->ask;
    int *field = trli_new(finest->sim->ctx, (size_t)request.n + 1, sizeof *field);
    trl_err err = TRL_OK;
    if (!field) TRL_TRY(trli_no_memory(finest->sim->ctx, NULL, "for multigrid"));
    TRL_TRY(trli_level_create(finest->sim, layout, &l->own));
    l->sim = l->own->sim;
    for (int i = 0; i < request.n; ++i) field[i] = l->sim->equation[finest->ask.variable[i]].state;
    TRL_TRY(trli_grid_level_add_coefficients(l, finest));
    request.field = field;
    request.settings = &finest->settings;
    request.instance = level_instance;
    request.residual = level_residual;
    TRL_TRY(trli_solver_add_level(l->sim, finest, &request, l->old_field, &l->solver));
    TRL_TRY(trli_grid_level_add_vectors(l));
    TRL_TRY(trli_grid_level_compile(l));
    TRL_TRY(trli_level_read_neighbours(finest, l, true));
    if (cut) TRL_TRY(trli_grid_level_read(l, "solutions of neighbours", &l->solutions, 1, request.n, l->z.now));
    trli_solver_end_fields(l->solver);
    err = trli_level_plan(l->own);
done:
    trl_layout_destroy(layout);
    trli_free(field);
    return err;
}

void trli_level_end(trli_grid_level *l)
{
    trli_relaxation_destroy(&l->relaxation);
    trli_solver_destroy(&l->solver);
    trli_level_destroy(&l->own);
}

trl_err trli_level_make(trli_solver *finest, const trl_layout *fine, const trl_grid *grid, trli_grid_level *l,
                        bool *fits)
{
    trl_context *ctx = finest->sim->ctx;
    const trl_diagnostic *list;
    const int said = trl_context_diagnostics(ctx, &list);
    trl_layout *layout;
    trl_lidx thinnest = TRLI_TRANSFER_DEPTH;
    bool again = true;
    trl_err err = TRL_OK;
    *fits = true;
    while (again) {
        TRL_TRY(trli_coarse_layout(finest, fine, grid, &thinnest, &layout));
        again = layout->npatches > 1;
        err = compile_level(finest, &layout, l);
        if (err != TRL_ERR_INPUT) break;
        trli_diagnostics_drop(ctx, said);
        trli_level_end(l);
        *l = (trli_grid_level){0};
        *fits = again;
    }
    if (!*fits) return TRL_OK;
    TRL_TRY(err);
    trli_grid_level_equalise(l);
    err = trli_level_freeze(l->own, l->solver);
done:
    return err;
}
