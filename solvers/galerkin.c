/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Coarser grids that have entries in place of equations: when they are made, and cycles on them. */
#include <string.h>

#include "algebraic_impl.h"
#include "galerkin_impl.h"
#include "memory_impl.h"

/* Each rank holds the entries of all points, some 120 bytes a point: those of larger grids would fill its memory. */
enum { POINTS_MOST = 1 << 22 };

struct trli_galerkin {
    trli_solver *s;
    trl_loop *loop;
    trli_entries a;             /* of the first grid */
    trli_sparse_transfer first; /* from it to the others */
    trli_algebraic *rest;       /* NULL: not made yet */
    double *known;              /* [scalars] of the model, with which the entries were found; NULL: they were not */
};

const char *trli_galerkin_missing(const trli_solver *s)
{
    const trl_grid *grid = &s->sim->layout->grid;
    if (s->ask.n != 1) return "it has several unknowns";
    if (!s->star) return "rows are of more than the nearest points along axes";
    if (trli_solver_reads_fields(s) && !s->sim->problem->time.none) return "coefficients are others in each step";
    if (grid->cells[0] * grid->cells[1] > POINTS_MOST / grid->cells[2])
        return "each rank would hold the entries of more than 4 million points";
    for (int a = 0; a < grid->dim; ++a)
        if (grid->periodic[a] && grid->cells[a] < 3) return "a period has fewer than three points";
    return NULL;
}

static trl_err no_memory(const trli_galerkin *st)
{
    return trli_no_memory(st->s->sim->ctx, NULL, "for coarser grids");
}

static void clear(trli_galerkin *st)
{
    trli_algebraic_destroy(&st->rest);
    trli_sparse_transfer_free(&st->first);
}

void trli_galerkin_destroy(trli_galerkin **galerkin)
{
    trli_galerkin *st = *galerkin;
    *galerkin = NULL;
    if (!st) return;
    clear(st);
    trli_free(st->a.entry);
    trli_free(st->known);
    trli_free(st);
}

trl_err trli_galerkin_create(trli_solver *s, trl_loop *loop, trli_galerkin **galerkin)
{
    static const int offsets[][3] = {{0, 0, 0}, {-1, 0, 0}, {1, 0, 0}, {0, -1, 0}, {0, 1, 0}, {0, 0, -1}, {0, 0, 1}};
    const trl_simulation *sim = s->sim;
    const trl_grid *grid = &sim->layout->grid;
    const trl_location location = sim->model->variable[s->ask.variable[0]].location;
    trli_galerkin *st = *galerkin = trli_new(sim->ctx, 1, sizeof *st);
    if (!st) return trli_no_memory(sim->ctx, NULL, "for coarser grids");
    st->s = s;
    st->loop = loop;
    for (int axis = 0; axis < 3; ++axis) {
        st->a.n[axis] = axis < grid->dim ? (int)trl_grid_points(grid, location, axis) : 1;
        st->a.periodic[axis] = axis < grid->dim && grid->periodic[axis];
    }
    for (int e = 0; e < TRLI_ENTRIES_MOST; ++e)
        if (e == 0 || st->a.n[(e - 1) / 2] > 1) memcpy(st->a.offset[st->a.entries++], offsets[e], sizeof offsets[e]);
    st->a.entry = trli_new(sim->ctx, (size_t)(trli_entries_points(&st->a) * st->a.entries), sizeof(double));
    st->known = trli_new(sim->ctx, (size_t)sim->model->nscalars + 1, sizeof *st->known);
    return st->a.entry && st->known ? TRL_OK : no_memory(st);
}

/* ---- from the entries of the first grid ---- */

static trl_err make_rest(trli_galerkin *st)
{
    trl_context *ctx = st->s->sim->ctx;
    trli_sparse all = {0}, coarse = {0};
    int axes = 0;
    trl_err err = TRL_OK;
    for (int axis = 0; axis < 3; ++axis) axes += st->a.n[axis] > 1;
    TRL_TRY(trli_sparse_transfer_create(st->s->sim, &st->a, &st->first));
    TRL_TRY(trli_entries_sparse(ctx, &st->a, &all));
    TRL_TRY(trli_sparse_product(ctx, &all, &st->first.p, &st->first.back, &coarse));
    err = trli_algebraic_create(ctx, st->loop, &coarse, axes, &st->rest);
done:
    trli_sparse_free(&all);
    trli_sparse_free(&coarse);
    return err;
}

trl_err trli_galerkin_prepare(trli_galerkin *st)
{
    const bool changed = trli_solver_scalars_change(st->s, st->known) || trli_solver_reads_fields(st->s) || !st->rest;
    trl_err err = TRL_OK;
    if (!changed) return TRL_OK;
    clear(st);
    TRL_TRY(trli_entries_find(st->s, &st->a));
    TRL_TRY(make_rest(st));
    st->s->stats.levels = 1 + trli_algebraic_levels(st->rest);
done:
    return err;
}

/* ---- a cycle ---- */

trl_err trli_galerkin_cycle(trli_galerkin *st, trl_solve_cycle kind, int residual, int solution)
{
    trl_simulation *sim = st->s->sim;
    const trl_err before = trli_sparse_restrict(&st->first, sim, residual, trli_algebraic_residual(st->rest), st->loop);
    const trl_err coarse = trli_algebraic_cycle(st->rest, kind);
    const trl_err after = trli_sparse_prolong(&st->first, trli_algebraic_solution(st->rest), sim, solution, st->loop);
    return before != TRL_OK ? before : coarse != TRL_OK ? coarse : after;
}
