/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Which grids multigrid has, and for which systems there is any. */
#include <math.h>

#include "diagonal_impl.h"
#include "galerkin_impl.h"
#include "spatialops_impl.h"

enum { COARSEST_CELLS = 4 };

static bool has_strengths(const trli_solver *s, const trl_grid *grid)
{
    bool known = true;
    for (int a = 0; a < grid->dim; ++a) known &= s->strength[a] > 0 || grid->flat[a];
    return known;
}

/* How strongly neighbours along an axis are coupled: by the operator's numbers; where it has none, by the distance. */
static double strength_along(const trli_solver *s, const trl_grid *grid, int axis)
{
    return has_strengths(s, grid) ? s->strength[axis] : 1 / (grid->spacing[axis] * grid->spacing[axis]);
}

unsigned trli_line_axes(const trli_solver *s, const trl_grid *grid)
{
    const double alike = 0.99; /* of two axes the later one: neighbouring lines are neighbours in memory */
    int axis = -1;
    unsigned all = 0;
    for (int a = 0; a < grid->dim; ++a) {
        if (grid->cells[a] <= 2) continue;
        all |= 1u << a;
        if (axis < 0 || strength_along(s, grid, a) > alike * strength_along(s, grid, axis)) axis = a;
    }
    return has_strengths(s, grid) && axis >= 0 ? 1u << axis : all;
}

/* Whether values may be constant along an axis. */
static bool is_open(const trli_solver *s, int axis)
{
    const trli_variable *v = &s->sim->model->variable[s->ask.variable[0]];
    bool open = true;
    for (int side = 2 * axis; side < 2 * axis + 2; ++side)
        open &= v->boundary[side].npieces != 1 || v->boundary[side].piece[0].kind != TRL_BC_DIRICHLET;
    return open;
}

/* Whether nothing goes through the sides of an axis, and what has one cell along it one value of each unknown. */
static bool is_closed(const trli_solver *s, const trl_grid *grid, int axis)
{
    bool closed = true;
    for (int i = 0; i < s->ask.n; ++i) {
        const trli_variable *v = &s->sim->model->variable[s->ask.variable[i]];
        closed &= grid->periodic[axis] || !((int)v->location >> axis & 1);
        for (int side = 2 * axis; side < 2 * axis + 2; ++side)
            for (int p = 0; p < v->boundary[side].npieces; ++p) {
                const trl_bc_kind kind = v->boundary[side].piece[p].kind;
                closed &= kind == TRL_BC_NEUMANN || kind == TRL_BC_OUTFLOW;
            }
    }
    return closed;
}

/* Smoothing works along axes of strong coupling, so only these are made coarser: the others wait. Those with
 * lines go along with the strongest of the others. What is constant along an axis is not smoothed by its strong
 * coupling, so while others have many cells a closed one is made coarser down to one cell. */
bool trli_coarsen(const trli_solver *s, const trl_grid *fine, const bool held[3], trl_grid *coarse)
{
    const double weak = 0.28; /* of the strongest: an axis that is about half as strong goes along */
    const unsigned lines = s->settings.smoother == TRL_SMOOTHER_LINE ? trli_line_axes(s, fine) : 0;
    double most = 0;
    bool many = false, may[3];
    *coarse = *fine;
    for (int a = 0; a < fine->dim; ++a) many |= fine->cells[a] > COARSEST_CELLS && !held[a];
    for (int a = 0; a < fine->dim; ++a) {
        may[a] = !held[a] && fine->cells[a] > (is_closed(s, fine, a) ? 1 : COARSEST_CELLS);
        if (may[a] && !(lines >> a & 1)) most = fmax(most, strength_along(s, fine, a));
    }
    for (int a = 0; a < fine->dim && many; ++a) {
        if (!may[a] || (!(lines >> a & 1) && strength_along(s, fine, a) < weak * most)) continue;
        coarse->cells[a] = (fine->cells[a] + 1) / 2;
        coarse->spacing[a] = coarse->length[a] / (double)coarse->cells[a];
    }
    for (int a = 0; a < fine->dim; ++a) coarse->flat[a] = coarse->cells[a] == 1 && is_closed(s, fine, a);
    return many;
}

/* Whether coarser grids keep few cells along such an axis, while others become coarser: so many that it costs more than
 * making entries, which takes as long as some tens of iterations of a method around cycles. */
static bool coarsens_unevenly(const trli_solver *s)
{
    const double much = s->settings.method == TRL_SOLVE_MULTIGRID ? 16 : 1000;
    const trl_grid *grid = &s->sim->layout->grid;
    double open = 0, least = INFINITY;
    if (s->settings.smoother == TRL_SMOOTHER_LINE || s->ask.steps) return false; /* steps have 1 in their operators */
    for (int a = 0; a < grid->dim; ++a) {
        trl_gidx n = grid->cells[a];
        while (n > COARSEST_CELLS) n = (n + 1) / 2;
        const double ratio = (double)n / (double)grid->cells[a], strength = strength_along(s, grid, a) * ratio * ratio;
        if (n > 1 && is_open(s, a) && !is_closed(s, grid, a)) open = fmax(open, strength);
        if (n < grid->cells[a]) least = fmin(least, strength);
    }
    return open > much * least;
}

const char *trli_multigrid_needs_entries(const trli_solver *s)
{
    bool varies = false;
    if (s->constraint) return NULL; /* entries are of each unknown alone */
    for (int i = 0; i < s->ask.n; ++i)
        varies |= trli_ir_node(&s->sim->model->ir, s->inverse_value[i])->op != TRLI_OP_CONSTANT;
    if (varies) return "these vary";
    if (trli_solver_drifts(s) > 0) return "it has first derivatives";
    return coarsens_unevenly(s) ? "along an axis without given values few cells are left long before others" : NULL;
}

/* Of coefficients, that coarser grids' equations do not see through: corrections may be too large by as much, and
 * cycles alone lose more than they gain where those are twice what they should be. */
const char *trli_multigrid_wants_entries(const trli_solver *s)
{
    const bool alone = s->settings.method == TRL_SOLVE_MULTIGRID;
    if (s->tied) return NULL;
    if (trli_solver_contrast(s) > (alone ? 2 : 100))
        return alone ? "its diagonal differs more than twofold between points"
                     : "its diagonal differs more than a hundredfold between points";
    return s->skewed ? "its first derivatives outweigh the second ones" : NULL;
}

static trl_lidx thinnest_of(const trl_layout *layout)
{
    trl_lidx least = INT32_MAX;
    for (int a = 0; a < 3; ++a)
        if (layout->counts[a] > 1 && trli_layout_thinnest(layout, a) < least) least = trli_layout_thinnest(layout, a);
    return least;
}

/* A grid that is shared costs messages in each sweep; one that every rank has costs the points that are others'. */
trl_err trli_coarse_layout(const trli_solver *finest, const trl_layout *fine, const trl_grid *grid, trl_lidx *thinnest,
                           trl_layout **coarse)
{
    int by[3], patches = fine->npatches;
    double cells = 1;
    *coarse = NULL;
    trli_layout_merging(fine, grid, *thinnest, by);
    for (int a = 0; a < 3; ++a) patches /= by[a];
    for (int a = 0; a < grid->dim; ++a) cells *= (double)grid->cells[a];
    const double spared = cells - cells / (patches < fine->ranks ? patches : fine->ranks);
    const bool possible = patches == fine->npatches || trli_layout_most(fine) == 1;
    if (patches > 1 && possible && spared >= finest->settings.replicate && !trli_transfer_gathers(fine)) {
        const trl_err err = trli_layout_create_coarse(fine, grid, by, coarse);
        if (err == TRL_OK) *thinnest = thinnest_of(*coarse) + 1;
        return err;
    }
    return trli_layout_create_whole(fine->ctx, grid, coarse);
}

const char *trli_multigrid_missing(const trli_solver *s)
{
    trl_grid coarse;
    const bool held[3] = {false, false, false};
    if (s->inverse_value[0] < 0) return "the operator's diagonal is not known";
    if (!s->ask.on_grid) return "the system is none of the deck's";
    if (s->opaque) return "coefficients of the operator are no formulas";
    if (s->reduces) return "the operator contains a sum or an extreme over all points";
    if (!s->bounded) return "the rows of the operator are long";
    if (!trli_coarsen(s, &s->sim->layout->grid, held, &coarse)) return "the grid has few cells";
    if (s->settings.smoother > TRL_SMOOTHER_CHEBYSHEV) return trli_relaxation_missing(s);
    return NULL;
}

const char *trli_multigrid_unasked(const trli_solver *s)
{
    return s->settings.method == TRL_SOLVE_PIPELINED_CG ? "pipelined_cg is made for short iterations" : NULL;
}
