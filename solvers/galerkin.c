/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Coarser grids that have entries in place of equations: when they are made, and cycles on them. */
#include <math.h>

#include "algebraic_impl.h"
#include "arithmetic_impl.h"
#include "diagonal_impl.h"
#include "galerkin_impl.h"
#include "memory_impl.h"
#include "spatialops_impl.h"

/* Points of the boxes around a rank's patches: interpolation has up to eight entries for each, numbered by int. Where
 * patches are thinner than what lies around them ranks get all values of the grid. */
enum { POINTS_EACH_MOST = 1 << 27, POINTS_GATHERED_MOST = 1 << 23, AXIS_MOST = 1 << 30 };

typedef struct unknown_grids {
    trli_entries a;       /* of the first grid */
    trli_algebraic *rest; /* all others; NULL: not made yet */
} unknown_grids;

struct trli_galerkin {
    trli_solver *s;
    const trli_grid_level *level; /* the first grid */
    trl_loop *loop;
    trli_sparse_crew *crew;
    unknown_grids *of; /* [unknowns] once there are fields */
    double *known;     /* [scalars] of the model, with which the entries were found */
    double mixed;      /* of entries with the wrong sign */
    bool made;         /* entries are those of this step: */
    trl_gidx step;
};

/* Of the rank that has the most. */
static double points_each(const trl_layout *layout)
{
    double points = trli_layout_most(layout);
    for (int a = 0; a < layout->grid.dim; ++a) points *= trli_layout_thickest(layout, a) + 2 * TRLI_TRANSFER_DEPTH;
    return points;
}

const char *trli_galerkin_missing(const trli_solver *s)
{
    const trl_layout *layout = s->sim->layout;
    const trl_grid *grid = &layout->grid;
    const bool may_do_without = trli_solver_finds_contrast(s);
    double cells = 1;
    if (!s->star) return "rows are of more than the nearest points along axes";
    for (int a = 0; a < grid->dim; ++a) {
        if (grid->periodic[a] && grid->cells[a] < 3) return "a period has fewer than three points";
        if (grid->cells[a] > AXIS_MOST) return "an axis has more than 2^30 points";
        cells *= (double)grid->cells[a];
    }
    if (trli_transfer_gathers(layout) && cells > POINTS_GATHERED_MOST)
        return "patches are thinner than two cells, so that each rank would hold more than 8 million values";
    if (may_do_without && points_each(layout) > POINTS_EACH_MOST) return "a rank has more than 134 million points";
    return NULL;
}

static trl_err no_memory(const trli_galerkin *st)
{
    return trli_no_memory(st->s->sim->ctx, NULL, "for coarser grids");
}

void trli_galerkin_destroy(trli_galerkin **galerkin)
{
    trli_galerkin *st = *galerkin;
    *galerkin = NULL;
    if (!st) return;
    for (int i = 0; st->of && i < st->s->ask.n; ++i) {
        trli_algebraic_destroy(&st->of[i].rest);
        trli_entries_free(&st->of[i].a);
    }
    trli_free(st->of);
    trli_sparse_crew_destroy(&st->crew);
    trli_free(st->known);
    trli_free(st);
}

trl_err trli_galerkin_create(trli_solver *s, const trli_grid_level *level, trl_loop *loop, trli_galerkin **galerkin)
{
    const double points = points_each(s->sim->layout);
    if (points > POINTS_EACH_MOST)
        return trl_fail(
            s->sim->ctx, TRL_ERR_INPUT, &s->ask.place,
            "coarser grids for '%s' would have the entries of more than %d points on a rank: use %.0f ranks "
            "or more, or preconditioner jacobi",
            s->ask.names, POINTS_EACH_MOST, ceil(points / POINTS_EACH_MOST * s->sim->layout->ranks));
    trli_galerkin *st = *galerkin = trli_new(s->sim->ctx, 1, sizeof *st);
    if (!st) return trli_no_memory(s->sim->ctx, NULL, "for coarser grids");
    *st = (trli_galerkin){.s = s, .level = level, .loop = loop};
    return TRL_OK;
}

/* ---- from the entries of the first grid ---- */

static trl_err make_first(trli_galerkin *st)
{
    /* Of several unknowns one may have constants in the null space of its own derivatives, and not the system: its
     * residual has a mean then, which rounding errors of sums over all points must not divide. */
    const double lost = st->s->ask.n > 1 ? 1e-7 : TRLI_LOST;
    const trli_model *model = st->s->sim->model;
    trl_err err = TRL_OK;
    TRL_TRY(trli_sparse_crew_create(model->ctx, st->loop, st->s->settings.replicate, &st->crew));
    st->of = trli_new(model->ctx, (size_t)st->s->ask.n, sizeof *st->of);
    if (!st->of) return no_memory(st);
    for (int i = 0; i < st->s->ask.n; ++i) {
        unknown_grids *u = &st->of[i];
        int axes = 0;
        TRL_TRY(trli_entries_create(st->s, i, st->level, st->crew, &u->a));
        for (int axis = 0; axis < 3; ++axis) axes += u->a.n[axis] > 1;
        TRL_TRY(trli_algebraic_create(model->ctx, st->crew, axes, lost, &u->rest));
    }
    st->known = trli_new(model->ctx, (size_t)model->nscalars + 1, sizeof *st->known);
    if (!st->known) err = no_memory(st);
done:
    return err;
}

/* Whether entries are to be found again. Of coefficients that are fields those of a step's first stage are near enough
 * to what others have; which steps these are does not depend on where a run began. */
static bool are_others(trli_galerkin *st)
{
    const trli_solver *s = st->s;
    const bool first = !st->made || st->step != s->step || s->sim->problem->time.none || s->sim->multistep;
    const bool changed = trli_solver_scalars_change(s, st->known);
    st->step = s->step;
    return !st->made || changed || (trli_solver_reads_fields(s) && first);
}

double trli_galerkin_mixed(const trli_galerkin *st)
{
    return st->mixed;
}

/* Interpolation and smoothing are made for neighbours that count with one sign; they stand some of the other. */
bool trli_galerkin_is_mixed(const trli_galerkin *st)
{
    const double most = 0.5;
    const trl_solver_entry *e = &st->s->settings;
    return st->mixed > most && e->method == TRL_SOLVE_AUTO && e->preconditioner == TRL_PRECONDITIONER_AUTO;
}

static trl_err find_entries(trli_galerkin *st)
{
    trl_err err = TRL_OK;
    st->mixed = 0;
    for (int i = 0; i < st->s->ask.n; ++i) {
        double mixed = 0;
        TRL_TRY(trli_entries_find(&st->of[i].a));
        if (st->s->krylov == TRL_SOLVE_BICGSTAB) TRL_TRY(trli_entries_mixed(&st->of[i].a, &mixed));
        st->mixed = fmax(st->mixed, mixed);
    }
    st->made = true;
done:
    return err;
}

static trl_err make_grids(unknown_grids *u)
{
    trli_row_owners *const rows = trli_algebraic_owners(u->rest);
    trl_err err = TRL_OK;
    TRL_TRY(trli_entries_split(&u->a, rows));
    TRL_TRY(trli_entries_product(&u->a, rows, trli_algebraic_finest(u->rest)));
    TRL_TRY(trli_algebraic_make(u->rest));
    trli_entries_read(&u->a, u->rest);
done:
    return err;
}

trl_err trli_galerkin_prepare(trli_galerkin *st)
{
    trl_solve_stats *stats = &st->s->stats;
    trl_err err = TRL_OK;
    if (!st->known) TRL_TRY(make_first(st));
    if (!are_others(st)) return TRL_OK;
    TRL_TRY(find_entries(st));
    if (trli_galerkin_is_mixed(st)) return TRL_OK;
    for (int i = 0; i < st->s->ask.n; ++i) TRL_TRY(make_grids(&st->of[i]));
    if (stats->coarse == TRL_COARSE_ENTRIES) stats->levels = 1 + trli_algebraic_levels(st->of[0].rest);
done:
    return err;
}

const trli_algebraic *trli_galerkin_rest(const trli_galerkin *st, int unknown)
{
    return st->of ? st->of[unknown].rest : NULL;
}

/* ---- a cycle ---- */

static trl_err cycle(trli_galerkin *st, unknown_grids *u, trl_solve_cycle kind, int residual, int solution)
{
    trl_err err = TRL_OK;
    TRL_TRY(trli_sparse_restrict(&u->a, residual, trli_algebraic_residual(u->rest), st->loop));
    const trl_err coarse = trli_algebraic_cycle(u->rest, kind);
    err = trli_sparse_prolong(&u->a, trli_algebraic_solution(u->rest), solution, st->loop);
    if (coarse != TRL_OK) err = coarse;
done:
    return err;
}

trl_err trli_galerkin_cycle(trli_galerkin *st, trl_solve_cycle kind, const int *residual, const int *solution)
{
    trl_err err = TRL_OK;
    for (int i = 0; i < st->s->ask.n; ++i) {
        const trl_err of = cycle(st, &st->of[i], kind, residual[i], solution[i]);
        if (err == TRL_OK) err = of;
    }
    return err;
}
