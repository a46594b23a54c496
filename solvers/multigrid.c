/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Geometric multigrid by V, W and F cycles: the equation is compiled again for each coarser grid, and points of two
 * grids are joined by linear interpolation and its transpose. Large grids are the ranks', cut alike, or into fewer
 * patches that several ranks have; every rank has all of the small ones. */
#include <math.h>
#include <string.h>

#include "diagonal_impl.h"
#include "execution_impl.h"
#include "galerkin_impl.h"
#include "grid_level_impl.h"
#include "kernels_impl.h"
#include "late_impl.h"
#include "memory_impl.h"
#include "multigrid_impl.h"
#include "solve_ahead_impl.h"

enum { LEVELS_MOST = 24 };

struct trli_multigrid {
    trli_solver *solver;
    int n;
    trli_grid_level level[LEVELS_MOST];
    trli_galerkin *galerkin; /* coarser grids by their entries; NULL: by their equations */
    bool chooses;            /* there are both, for coefficients that are others in each step; and */
    bool by_entries;         /* cycles take these */
    int *taken;              /* [ntaken] fields that take the residual's place */
    int32_t ntaken, taken_capacity;
    trl_loop *loop;
    trli_gpu_row *row; /* of a cycle on small grids */
    double *known;     /* [scalars] of the model, with which lines were prepared; NULL: there were none */
};

/* ---- coefficients that are fields ---- */

static trl_err add_means(struct trli_multigrid *m, trli_grid_level *l, const trli_transfer_request *request)
{
    const trli_solver *s = m->solver;
    trli_transfer_request mean = *request;
    trl_err err = TRL_OK;
    mean.mean = true;
    for (int v = 0; v < s->sim->nequations; ++v) {
        mean.location = s->sim->model->variable[v].location;
        if (!s->needs[v] && !s->needs_old[v]) continue;
        if (!l->mean[mean.location]) TRL_TRY(trli_transfer_create(s->sim->ctx, &mean, &l->mean[mean.location]));
    }
done:
    return err;
}

/* ---- making ---- */

/* What joins a grid with the next coarser one. */
static trl_err add_transfers(struct trli_multigrid *m, trli_grid_level *l, const trl_layout *coarse)
{
    trli_solver *s = m->solver;
    trli_transfer_request request = {.fine = l->sim->layout, .coarse = coarse, .workers = trl_loop_workers(m->loop)};
    trl_err err = TRL_OK;
    for (int i = 0; i < s->ask.n; ++i) {
        request.location = s->sim->model->variable[s->ask.variable[i]].location;
        trli_grid_level_factors(s, i, request.factor);
        TRL_TRY(trli_transfer_create(s->sim->ctx, &request, &l->transfer[i]));
    }
    err = add_means(m, l, &request);
done:
    return err;
}

/* Axes along which a grid is made coarser than it can be, for what its equations read, stay as they are; *any. */
static void hold_few(const trl_grid *fine, const trl_grid *coarse, bool held[3], bool *any)
{
    trl_gidx least = INT64_MAX;
    *any = false;
    for (int a = 0; a < fine->dim; ++a)
        if (coarse->cells[a] < fine->cells[a] && coarse->cells[a] < least) least = coarse->cells[a];
    for (int a = 0; a < fine->dim; ++a) {
        const bool few = coarse->cells[a] < fine->cells[a] && coarse->cells[a] == least;
        held[a] |= few;
        *any |= few;
    }
}

/* All coarser grids, as far as there are any. */
static trl_err add_levels(struct trli_multigrid *m)
{
    trl_grid grid = m->solver->sim->layout->grid, coarse;
    bool held[3] = {false, false, false}, fits, go_on = true;
    trl_err err = TRL_OK;
    while (go_on && m->n < LEVELS_MOST && trli_coarsen(m->level[m->n - 1].solver, &grid, held, &coarse)) {
        trli_grid_level *l = &m->level[m->n - 1];
        ++m->n;
        TRL_TRY(trli_level_make(m->solver, l->sim->layout, &coarse, l + 1, &fits));
        if (fits) {
            TRL_TRY(add_transfers(m, l, l[1].sim->layout));
            grid = coarse;
        } else {
            --m->n;
            hold_few(&grid, &coarse, held, &go_on);
        }
    }
done:
    return err;
}

trl_err trli_multigrid_compile(trli_solver *s)
{
    const trl_grid grid = s->sim->layout->grid;
    trl_err err = TRL_OK;
    struct trli_multigrid *m = s->multigrid = trli_new(s->sim->ctx, 1, sizeof *m);
    if (!m) return trli_no_memory(s->sim->ctx, NULL, "for multigrid");
    m->solver = s;
    s->stats.smoother = s->settings.smoother > TRL_SMOOTHER_CHEBYSHEV ? s->settings.smoother : TRL_SMOOTHER_AUTO;
    s->stats.line_axes = trli_line_axes(s, &grid);
    m->level[0] = (trli_grid_level){.sim = s->sim, .solver = s};
    m->n = 1;
    TRL_TRY(trli_grid_level_add_vectors(&m->level[0]));
    TRL_TRY(trli_grid_level_compile(&m->level[0]));
    TRL_TRY(trl_loop_create(s->sim->ctx, s->sim->workers, &m->loop));
    TRL_TRY(trli_gpu_row_create(s->sim->ctx, &m->row));
    s->stats.entries = trli_multigrid_needs_entries(s);
    m->by_entries = s->stats.entries && !trli_galerkin_missing(s);
    m->chooses = m->by_entries && trli_solver_finds_contrast(s);
    TRL_TRY(trli_level_read_neighbours(s, &m->level[0], !m->by_entries || m->chooses));
    if (m->by_entries) {
        s->stats.coarse = m->chooses ? TRL_COARSE_EITHER : TRL_COARSE_ENTRIES;
        TRL_TRY(trli_galerkin_create(s, &m->level[0], m->loop, &m->galerkin));
        if (!m->chooses) goto done;
        s->stats.entries = NULL; /* until they are chosen */
    }
    err = add_levels(m);
done:
    return err;
}

static void destroy_level(struct trli_multigrid *m, trli_grid_level *l)
{
    for (int i = 0; l->transfer && i < m->solver->ask.n; ++i) trli_transfer_destroy(&l->transfer[i]);
    for (int i = 0; i < TRLI_LOCATIONS; ++i) trli_transfer_destroy(&l->mean[i]);
    trli_relaxation_destroy(&l->relaxation);
    if (l != m->level) trli_level_end(l);
}

void trli_multigrid_destroy(struct trli_multigrid **multigrid)
{
    struct trli_multigrid *m = *multigrid;
    *multigrid = NULL;
    if (!m) return;
    trli_galerkin_destroy(&m->galerkin);
    for (int k = m->n - 1; k >= 0; --k) destroy_level(m, &m->level[k]);
    trl_loop_destroy(&m->loop);
    trli_gpu_row_destroy(&m->row);
    trli_free(m->taken);
    trli_free(m->known);
    trli_free(m);
}

void trli_multigrid_equalise(struct trli_multigrid *m)
{
    const trli_solver *s = m->solver;
    const trli_vector taken = {m->level[0].z.now, s->d.now}; /* d takes the solution of a cycle */
    for (int round = 0; round < 2; ++round) {
        trli_grid_level_equalise(&m->level[0]);
        trli_vector_equalise(s, &taken);
        trli_vector_equalise(s, &s->d);
        trli_vector_equalise(s, &s->r);
        for (int k = 0; k < m->ntaken; k += s->ask.n) {
            const trli_vector pair = {s->r.now, m->taken + k};
            trli_vector_equalise(s, &pair);
        }
    }
}

trl_err trli_multigrid_take(struct trli_multigrid *m, const trli_vector *residual)
{
    const int n = m->solver->ask.n, *const fields[] = {residual->now, residual->next};
    for (int k = 0; k < 2 && fields[k]; ++k) {
        if (!trli_make_room(m->solver->sim->ctx, &m->taken, m->ntaken, n, &m->taken_capacity, sizeof *m->taken))
            return trli_no_memory(m->solver->sim->ctx, NULL, "for multigrid");
        memcpy(m->taken + m->ntaken, fields[k], (size_t)n * sizeof *m->taken);
        m->ntaken += n;
    }
    return TRL_OK;
}

bool trli_multigrid_by_entries(const struct trli_multigrid *m)
{
    return m->by_entries && !m->chooses;
}

const trli_galerkin *trli_multigrid_galerkin(const struct trli_multigrid *m)
{
    return m->galerkin;
}

bool trli_multigrid_is_mixed(const struct trli_multigrid *m)
{
    return m->by_entries && trli_galerkin_is_mixed(m->galerkin);
}

bool trli_multigrid_has_both_signs(const struct trli_multigrid *m)
{
    const double rounding = 1e-6;
    return m->galerkin && trli_galerkin_mixed(m->galerkin) > rounding;
}

int trli_multigrid_levels(const struct trli_multigrid *m)
{
    return m->n;
}

const trl_grid *trli_multigrid_grid(const struct trli_multigrid *m, int level)
{
    return &m->level[level].sim->layout->grid;
}

const trl_simulation *trli_multigrid_simulation(const struct trli_multigrid *m, int level)
{
    return m->level[level].sim;
}

/* ---- a cycle ---- */

/* A chain of runs goes on after an error, as the other ranks do, and says so at its end. */
typedef struct chain {
    struct trli_multigrid *m;
    trl_err err;
    bool sums;         /* the last step of the cycle makes them */
    trli_gpu_row *row; /* to which all is added; NULL: it is done */
} chain;

static void note(chain *c, trl_err err)
{
    if (c->err == TRL_OK) c->err = err;
}

static void run(chain *c, const trli_grid_level *l, const trli_program *program)
{
    if (c->row)
        trli_gpu_row_run(c->row, l->sim->frame, program);
    else
        note(c, trli_solver_run_alone(l->solver, program));
}

static void smooth(chain *c, const trli_grid_level *l, trli_smoothing how)
{
    how.sums &= c->sums;
    how.row = c->row;
    note(c, trli_smooth(l, &how, c->m->loop));
}

static void find_residual(chain *c, const trli_grid_level *l)
{
    run(c, l, l->residual);
    if (l->ghosts) run(c, l, l->ghosts);
}

static void restrict_residual(chain *c, int k)
{
    trli_grid_level *l = &c->m->level[k], *coarse = l + 1;
    find_residual(c, l);
    for (int i = 0; i < l->solver->ask.n; ++i)
        if (c->row)
            trli_restrict_in_row(l->transfer[i], l->sim, l->r.now[i], coarse->sim, coarse->b[i], c->row);
        else
            note(c, trli_restrict(l->transfer[i], l->sim, l->r.now[i], coarse->sim, coarse->b[i], c->m->loop));
}

static void clip(chain *c, const trli_grid_level *l)
{
    if (!l->clip) return;
    run(c, l, l->clip);
    trli_vector_swap(l->solver, &l->z);
}

static void correct(chain *c, int k)
{
    trli_grid_level *l = &c->m->level[k], *coarse = l + 1;
    if (coarse->solutions) run(c, coarse, coarse->solutions);
    for (int i = 0; i < l->solver->ask.n; ++i)
        if (c->row)
            trli_prolong_in_row(l->transfer[i], coarse->sim, coarse->z.now[i], l->sim, l->z.now[i], c->row);
        else
            note(c, trli_prolong(l->transfer[i], coarse->sim, coarse->z.now[i], l->sim, l->z.now[i], c->m->loop));
    clip(c, l);
}

/* Conjugate gradients want a cycle that is: else relaxation gains more where colours always come in the same order. */
static bool is_symmetric(const struct trli_multigrid *m)
{
    return m->solver->method == TRL_SOLVE_CG || m->solver->method == TRL_SOLVE_PIPELINED_CG;
}

static bool cycle_in_row(chain *c, int k); /* false: a GPU has not done it */

/* Whether grids are so small from one on that a launch of what is done there takes longer than that. */
static bool may_be_in_row(const chain *c, int k, trl_solve_cycle kind)
{
    const trli_grid_level *l = &c->m->level[k];
    const bool once = kind == TRL_CYCLE_V || k + 2 >= c->m->n, small = trli_grid_level_bytes(l) <= 8 * TRLI_ROW_POINTS;
    return k > 0 && once && small && !c->row && !l->relaxation && !l->solver->constraint;
}

/* The same equation on a grid and all coarser ones. The coarsest is solved at once. */
static void cycle(chain *c, int k, trl_solve_cycle kind, bool from_zero)
{
    const trli_grid_level *l = &c->m->level[k];
    const bool coarsest = k + 1 == c->m->n, twice = kind != TRL_CYCLE_V && k + 2 < c->m->n;
    if (from_zero && may_be_in_row(c, k, kind) && cycle_in_row(c, k)) return;
    smooth(c, l, (trli_smoothing){.coarsest = coarsest, .from_zero = from_zero, .sums = coarsest && k == 0});
    if (coarsest) return;
    restrict_residual(c, k);
    cycle(c, k + 1, kind, true);
    if (twice) cycle(c, k + 1, kind == TRL_CYCLE_F ? TRL_CYCLE_V : kind, false);
    correct(c, k);
    smooth(c, l, (trli_smoothing){.adjoint = is_symmetric(c->m), .sums = k == 0});
}

static bool cycle_in_row(chain *c, int k)
{
    const trli_grid_level *l = &c->m->level[k];
    bool done;
    trli_gpu_row_begin(c->m->row, l->sim->frame, l->b[0], &done);
    if (!done) return false;
    c->row = c->m->row;
    cycle(c, k, TRL_CYCLE_V, true);
    c->row = NULL;
    note(c, trli_gpu_row_end(c->m->row, &done));
    return done;
}

/* Where coarser grids have entries. */
static void cycle_by_entries(chain *c, trl_solve_cycle kind)
{
    const trli_grid_level *l = &c->m->level[0];
    smooth(c, l, (trli_smoothing){.from_zero = true});
    find_residual(c, l);
    note(c, trli_galerkin_cycle(c->m->galerkin, kind, l->r.now, l->z.now));
    clip(c, l);
    smooth(c, l, (trli_smoothing){.adjoint = is_symmetric(c->m), .sums = true});
}

/* By itself a cycle gains from solving coarser grids better; conjugate gradients make up for what it leaves there.
 * Where there is advection each coarser grid leaves more of what goes along with it, which only further visits find. */
static trl_solve_cycle kind_of(const struct trli_multigrid *m)
{
    const trli_solver *s = m->solver;
    const trl_solve_cycle asked = s->settings.cycle;
    if (asked != TRL_CYCLE_AUTO) return asked;
    const bool advection = m->by_entries && s->krylov == TRL_SOLVE_BICGSTAB;
    return s->method == TRL_SOLVE_MULTIGRID || advection ? TRL_CYCLE_F : TRL_CYCLE_V;
}

static trl_err run_cycle(struct trli_multigrid *m, const int *residual, bool sums)
{
    chain c = {.m = m, .sums = sums};
    trli_solver *s = m->solver;
    const trli_vector pair = {s->r.now, (int *)residual};
    const bool other = residual != s->r.now;
    for (int k = 0; k < m->n; ++k) trli_kernels_poll(m->level[k].sim->model);
    const trl_err begun = trli_solver_begin_launch(s);
    note(&c, begun);
    if (other) trli_vector_swap(s, &pair); /* in whose place programs look for the residual */
    if (m->by_entries)
        cycle_by_entries(&c, kind_of(m));
    else
        cycle(&c, 0, kind_of(m), true);
    if (other) trli_vector_swap(s, &pair);
    if (begun == TRL_OK) note(&c, trli_solver_end_launch(s));
    return trli_agree_within(s->sim, c.err);
}

trl_err trli_multigrid_cycle(struct trli_multigrid *m, const int *residual)
{
    return run_cycle(m, residual, false);
}

trl_err trli_multigrid_compile_sums(struct trli_multigrid *m, const int *other, int *with_r, int *with_other)
{
    return trli_grid_level_compile_last(&m->level[0], other, with_r, with_other);
}

trl_err trli_multigrid_cycle_with_sums(struct trli_multigrid *m)
{
    return run_cycle(m, m->solver->r.now, true);
}

const int *trli_multigrid_solution(const struct trli_multigrid *m)
{
    return m->level[0].z.now;
}

static double bytes_of(const trli_program *program)
{
    return program ? (double)program->run->bytes_moved : 0;
}

/* Residuals and corrections are read on one grid, and on the other written, or added to what is there. */
double trli_multigrid_cycle_bytes(const struct trli_multigrid *m)
{
    double bytes = 0;
    for (int k = 0; k < m->n; ++k) {
        const trli_grid_level *l = &m->level[k];
        const bool coarsest = k + 1 == m->n;
        bytes += trli_smoothing_bytes(l, coarsest);
        if (coarsest) break;
        bytes += bytes_of(l->residual) + bytes_of(l->clip);
        bytes += 3 * trli_grid_level_bytes(l) + 2 * trli_grid_level_bytes(l + 1);
    }
    return bytes;
}

/* A grid's coefficients from those of the next finer one. */
static void average(chain *c, trli_grid_level *fine, trli_grid_level *coarse)
{
    const trli_solver *s = c->m->solver;
    const int n = s->sim->nequations;
    for (int v = 0; v < 2 * n; ++v) {
        const bool old = v >= n;
        if (!trli_level_reads(s, v % n, old)) continue;
        const trli_grid_transfer *mean = fine->mean[s->sim->model->variable[v % n].location];
        note(c, trli_restrict(mean, fine->sim, trli_level_coefficient(fine, v % n, old), coarse->sim,
                              trli_level_coefficient(coarse, v % n, old), c->m->loop));
    }
}

/* What a cycle does on coarser grids takes less than to move its values. Each has one residual of the finest grid. */
static void stay_together(const struct trli_multigrid *m)
{
    const trli_grid_level *l = m->level;
    const trli_program *const others[] = {l->begin,
                                          l->first,
                                          l->start,
                                          l->smooth,
                                          l->last,
                                          l->clip,
                                          l->saddle.from_zero,
                                          l->saddle.others,
                                          l->saddle.constraints};
    for (size_t i = 0; i < sizeof others / sizeof *others; ++i)
        if (others[i]) trl_graph_follow(others[i]->run->graph, l->residual->run->graph);
    trli_relaxation_follow(l);
    for (int k = 1; k < m->n; ++k)
        for (int i = 0; i < l[k].sim->model->nprograms; ++i)
            trl_graph_follow(l[k].sim->model->program[i]->run->graph, l->residual->run->graph);
}

/* What is relaxed is prepared again when the operator may be another one. The ranks agree on memory alone. */
static trl_err may_be_others(struct trli_multigrid *m, bool *are)
{
    const trli_solver *s = m->solver;
    trl_context *ctx = s->sim->ctx;
    trl_err err = TRL_OK;
    *are = false;
    if (!m->level[0].relaxation) return TRL_OK;
    const bool first = !m->known;
    if (first) {
        m->known = trli_new(ctx, (size_t)s->sim->model->nscalars + 1, sizeof *m->known);
        TRL_TRY(trl_context_agree(ctx, m->known ? TRL_OK : trli_no_memory(ctx, NULL, "for multigrid")));
    }
    *are = trli_solver_scalars_change(s, m->known) || first || trli_solver_reads_fields(s);
done:
    return err;
}

/* The times of the system are those of all grids; coefficients may have changed with them. */
trl_err trli_multigrid_prepare(struct trli_multigrid *m, double time)
{
    chain c = {.m = m};
    const double *fine = m->solver->sim->frame->scalar;
    bool relaxed;
    trl_err err = TRL_OK;
    TRL_TRY(may_be_others(m, &relaxed));
    if (m->level[0].coefficients) run(&c, &m->level[0], m->level[0].coefficients);
    trli_grid_level_find_largest(&m->level[0], NULL);
    if (m->chooses) m->solver->stats.entries = trli_multigrid_wants_entries(m->solver);
    if (m->chooses) m->by_entries = m->solver->stats.entries != NULL;
    if (relaxed) note(&c, trli_relaxation_prepare(&m->level[0], m->loop));
    if (m->by_entries) {
        TRL_TRY(trli_agree_within(m->solver->sim, c.err));
        return trli_galerkin_prepare(m->galerkin);
    }
    stay_together(m);
    for (int k = 1; k < m->n; ++k) {
        double *scalar = m->level[k].sim->frame->scalar;
        memcpy(scalar, fine, TRLI_SCALARS_FIXED * sizeof *scalar);
        scalar[TRLI_SCALAR_STEP_TIME] = time;
        average(&c, &m->level[k - 1], &m->level[k]);
        if (m->level[k].coefficients) run(&c, &m->level[k], m->level[k].coefficients);
        run(&c, &m->level[k], m->level[k].solver->diagonal);
        note(&c, trli_frame_fetch_scalars(m->level[k].sim->frame));
        trli_grid_level_find_largest(&m->level[k], &m->level[k - 1]);
        if (relaxed) note(&c, trli_relaxation_prepare(&m->level[k], m->loop));
    }
    err = trli_agree_within(m->solver->sim, c.err);
done:
    return err;
}
