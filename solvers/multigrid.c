/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Geometric multigrid by V cycles with Chebyshev smoothing (Adams, Brezina, Hu & Tuminaro 2003): the equation is
 * compiled again for each coarser grid, and cells of two grids are joined by linear interpolation and its transpose.
 * The first grid is the ranks'; every rank has all coarser ones, which are smaller than it by a factor of 4 or 8. */
#include <math.h>
#include <string.h>

#include "kernels_impl.h"
#include "lower_impl.h"
#include "memory_impl.h"
#include "multigrid_impl.h"
#include "parameters_impl.h"
#include "sides_impl.h"
#include "symbols_impl.h"

enum { SMOOTHING = 2, COARSEST_STEPS = 24, COARSEST_CELLS = 4, LEVELS_MOST = 24 };

/* Of the inverse diagonal times the operator: eigenvalues of rows that sum up to zero are at most this. */
static const double largest_eigenvalue = 2;

typedef struct grid_level {
    trl_simulation *sim;
    trli_level *own;     /* NULL: the first grid, the problem's */
    trli_solver *solver; /* whose vectors and tangents these are */
    trli_vector z, r, d; /* solution, residual, direction */
    trli_program *begin, *smooth, *ghosts;
    int old, new;                 /* scalars: factors of the last direction and of the residual in the next one */
    trli_grid_transfer *transfer; /* to the next coarser one */
} grid_level;

struct trli_multigrid {
    trli_solver *solver;
    int n;
    grid_level level[LEVELS_MOST];
    trl_loop *loop;
};

/* ---- which grids ---- */

/* How strongly neighbours along an axis are coupled: by the operator's numbers; where it has none, by the distance. */
static double strength_along(const trli_solver *s, const trl_grid *grid, int axis)
{
    bool known = true;
    for (int a = 0; a < grid->dim; ++a) known &= s->strength[a] > 0;
    return known ? s->strength[axis] : 1 / (grid->spacing[axis] * grid->spacing[axis]);
}

/* Smoothing works along axes of strong coupling, so only these are made coarser: the others wait. */
static bool coarsen(const trli_solver *s, const trl_grid *fine, trl_grid *coarse)
{
    const double weak = 0.28; /* of the strongest: an axis that is about half as strong goes along */
    double most = 0;
    bool any = false;
    *coarse = *fine;
    for (int a = 0; a < fine->dim; ++a)
        if (fine->cells[a] > COARSEST_CELLS) most = fmax(most, strength_along(s, fine, a));
    for (int a = 0; a < fine->dim; ++a) {
        if (fine->cells[a] <= COARSEST_CELLS || strength_along(s, fine, a) < weak * most) continue;
        coarse->cells[a] = (fine->cells[a] + 1) / 2;
        coarse->spacing[a] = coarse->length[a] / (double)coarse->cells[a];
        any = true;
    }
    return any;
}

/* What stands beyond a side, relative to what is inside. */
static void find_factors(const trli_solver *s, double factor[6])
{
    const trl_bc_side *sides = s->sim->model->variable[s->ask.variable[0]].boundary;
    for (int side = 0; side < 6; ++side) {
        bool zero = sides[side].npieces > 0;
        for (int i = 0; i < sides[side].npieces; ++i) zero &= sides[side].piece[i].kind == TRL_BC_DIRICHLET;
        factor[side] = zero ? -1 : 1;
    }
}

const char *trli_multigrid_missing(const trli_solver *s)
{
    const trl_layout *layout = s->sim->layout;
    const trli_variable *v = &s->sim->model->variable[s->ask.variable[0]];
    trl_grid coarse;
    if (s->ask.n > 1) return "several unknowns are solved for together";
    if (v->location != TRL_CELL) return "the unknown is not at cells";
    if (v->mask) return "the unknown has a mask";
    if (s->inverse_value[0] < 0) return "the operator's diagonal is not known";
    if (!s->ask.on_grid) return "the system is none of the deck's";
    if (s->reads_fields) return "the operator's coefficients are fields";
    if (!coarsen(s, &layout->grid, &coarse)) return "the grid has few cells";
    return NULL;
}

/* ---- programs of a grid ---- */

static trl_err add_vectors(grid_level *l)
{
    trli_solver *s = l->solver;
    trli_model *model = s->sim->model;
    trl_err err = TRL_OK;
    TRL_TRY(trli_vector_add(s, "mg z", true, &l->z));
    TRL_TRY(trli_vector_add(s, "mg r", true, &l->r));
    TRL_TRY(trli_vector_add(s, "mg d", true, &l->d));
    l->old = trli_model_add_scalar(model, 0);
    l->new = trli_model_add_scalar(model, 0);
    const trli_variable *v = &model->variable[s->ask.variable[0]];
    trli_model_field *d = &model->field[l->d.now[0]];
    d->exchanged = true;
    d->boundary = (trli_boundary_source){v->boundary, v->names, v->name, v->place};
    err = model->ir.err;
done:
    return err;
}

static trli_ir_value times(trli_ir *ir, trli_ir_value a, trli_ir_value b)
{
    return trli_ir_binary(ir, TRLI_OP_MUL, a, b);
}

/* r' = the residual to begin with, z' = 0, d' = new * inverse * r */
static trl_err compile_begin(grid_level *l, int residual)
{
    trli_solver *s = l->solver;
    trli_ir *ir = &s->sim->model->ir;
    const trli_ir_value r = trli_ir_field(ir, residual), zero = trli_ir_constant(ir, 0);
    const trli_ir_value d = times(ir, times(ir, trli_ir_scalar(ir, l->new), s->inverse_value[0]), r);
    trl_err err = TRL_OK;
    TRL_TRY(trli_solver_begin(s, "start of a cycle", &l->begin));
    TRL_TRY(trli_solver_store(s, l->begin, l->r.next, &r));
    TRL_TRY(trli_solver_store(s, l->begin, l->z.next, &zero));
    TRL_TRY(trli_solver_store(s, l->begin, l->d.next, &d));
done:
    return err;
}

static trl_err tangent_of(grid_level *l, trli_instance *in, trli_ir_value *value)
{
    trli_solver *s = l->solver;
    trl_err err = TRL_OK;
    for (int v = 0; v < s->sim->model->nvariables; ++v)
        if (s->sim->model->variable[v].direction == s->direction) in->variable[v] = l->d.now[0];
    TRL_TRY(trli_instance_fill(in));
    TRL_TRY(s->ask.residual(s->ask.data, in, 0, value));
    TRL_TRY(trli_tangent(in, s->direction, *value, value));
done:
    return err;
}

/* r' = r - J d, z' = z + d, d' = old * d + new * inverse * r' */
static trl_err compile_smooth(grid_level *l)
{
    trli_solver *s = l->solver;
    trli_ir *ir = &s->sim->model->ir;
    trli_instance *in = NULL, *old = NULL;
    trli_ir_value product;
    trl_err err = TRL_OK;
    TRL_TRY(trli_solver_begin(s, "smoothing", &l->smooth));
    TRL_TRY(s->ask.instance(s->ask.data, l->smooth, &in, &old));
    TRL_TRY(tangent_of(l, in, &product));
    const trli_ir_value d = trli_ir_field(ir, l->d.now[0]);
    const trli_ir_value r = trli_ir_binary(ir, TRLI_OP_SUB, trli_ir_field(ir, l->r.now[0]), product);
    const trli_ir_value z = trli_ir_binary(ir, TRLI_OP_ADD, trli_ir_field(ir, l->z.now[0]), d);
    const trli_ir_value again = times(ir, trli_ir_scalar(ir, l->old), d);
    const trli_ir_value more = times(ir, times(ir, trli_ir_scalar(ir, l->new), s->inverse_value[0]), r);
    const int field[] = {l->r.next[0], l->z.next[0], l->d.next[0]};
    const trli_ir_value value[] = {r, z, trli_ir_binary(ir, TRLI_OP_ADD, again, more)};
    TRL_TRY(trli_program_add_kernel(l->smooth, "smooth", 3, field, value, NULL));
    for (int i = 0; i < 3; ++i) TRL_TRY(trli_program_add_root(l->smooth, field[i]));
done:
    trli_instance_destroy(&in);
    trli_instance_destroy(&old);
    return err;
}

/* Where patches meet, restriction reads residuals of others. */
static trl_err compile_ghosts(grid_level *l)
{
    trli_solver *s = l->solver;
    trli_instance *in = NULL, *old = NULL;
    const trl_offsets none = {{0, 0, 0}, {0, 0, 0}};
    trl_err err = TRL_OK;
    s->sim->model->field[l->r.now[0]].exchanged = true;
    TRL_TRY(trli_solver_begin(s, "residuals of neighbours", &l->ghosts));
    TRL_TRY(s->ask.instance(s->ask.data, l->ghosts, &in, &old));
    TRL_TRY(trli_instance_fill_field(in, l->r.now[0]));
    TRL_TRY(trli_program_read(l->ghosts, l->r.now[0], TRLI_TRANSFER_DEPTH, &none));
done:
    trli_instance_destroy(&in);
    trli_instance_destroy(&old);
    return err;
}

/* ---- making ---- */

/* The coarser grids' systems have the residual of the first, and their own states and tangents. */
static trl_err level_instance(void *data, trli_program *program, trli_instance **in, trli_instance **old)
{
    const trl_simulation *sim = ((const trli_solver *)data)->sim;
    (void)old;
    const trl_err err = trli_instance_create(sim->model, program, TRLI_SCALAR_STEP_TIME, 0, NULL, in);
    for (int v = 0; err == TRL_OK && v < sim->nequations; ++v) (*in)->variable[v] = sim->equation[v].state;
    return err;
}

static trl_err level_residual(void *data, trli_instance *in, int i, trli_ir_value *value)
{
    const trli_solver *level = data;
    return level->finest->ask.residual(level->finest->ask.data, in, i, value);
}

static trl_err make_level(trli_solver *finest, const trl_grid *grid, grid_level *l)
{
    trli_solve_request request = finest->ask;
    trl_err err = TRL_OK;
    TRL_TRY(trli_level_create(finest->sim, grid, &l->own));
    l->sim = l->own->sim;
    const int field = l->sim->equation[finest->ask.variable[0]].state;
    request.field = &field;
    request.settings = &finest->settings;
    request.instance = level_instance;
    request.residual = level_residual;
    TRL_TRY(trli_solver_add_level(l->sim, finest, &request, &l->solver));
    TRL_TRY(add_vectors(l));
    TRL_TRY(compile_begin(l, l->r.now[0]));
    TRL_TRY(compile_smooth(l));
    trli_solver_end_fields(l->solver);
    TRL_TRY(trli_level_freeze(l->own, l->solver, &l->d));
done:
    return err;
}

trl_err trli_multigrid_compile(trli_solver *s)
{
    trl_grid grid = s->sim->layout->grid, coarse;
    double factor[6];
    trl_err err = TRL_OK;
    struct trli_multigrid *m = s->multigrid = trli_new(s->sim->ctx, 1, sizeof *m);
    if (!m) return trli_no_memory(s->sim->ctx, NULL, "for multigrid");
    m->solver = s;
    m->level[0] = (grid_level){.sim = s->sim, .solver = s};
    m->n = 1;
    find_factors(s, factor);
    TRL_TRY(add_vectors(&m->level[0]));
    TRL_TRY(compile_begin(&m->level[0], s->r.now[0]));
    TRL_TRY(compile_smooth(&m->level[0]));
    TRL_TRY(trl_loop_create(s->sim->ctx, s->sim->workers, &m->loop));
    for (; m->n < LEVELS_MOST && coarsen(m->level[m->n - 1].solver, &grid, &coarse); grid = coarse) {
        const trl_layout *layout = m->n == 1 ? s->sim->layout : NULL;
        TRL_TRY(trli_transfer_create(s->sim->ctx, layout, &grid, &coarse, factor, trl_loop_workers(m->loop),
                                     &m->level[m->n - 1].transfer));
        if (layout && layout->npatches > 1 && !m->level[0].transfer->gathers) TRL_TRY(compile_ghosts(&m->level[0]));
        ++m->n;
        TRL_TRY(make_level(s, &coarse, &m->level[m->n - 1]));
    }
done:
    return err;
}

void trli_multigrid_destroy(struct trli_multigrid **multigrid)
{
    struct trli_multigrid *m = *multigrid;
    *multigrid = NULL;
    if (!m) return;
    trl_loop_destroy(&m->loop);
    for (int k = m->n - 1; k >= 0; --k) {
        trli_transfer_destroy(&m->level[k].transfer);
        if (k == 0) continue;
        trli_solver_destroy(&m->level[k].solver);
        trli_level_destroy(&m->level[k].own);
    }
    trli_free(m);
}

void trli_multigrid_equalise(struct trli_multigrid *m)
{
    const grid_level *l = &m->level[0];
    trli_vector_equalise(m->solver, &l->d);
    trli_vector_equalise(m->solver, &l->r);
}

int trli_multigrid_levels(const struct trli_multigrid *m)
{
    return m->n;
}

const trl_grid *trli_multigrid_grid(const struct trli_multigrid *m, int level)
{
    return &m->level[level].sim->layout->grid;
}

/* ---- a cycle ---- */

/* A chain of runs goes on after an error, as the other ranks do, and says so at its end. */
typedef struct chain {
    struct trli_multigrid *m;
    trl_err err;
} chain;

static void note(chain *c, trl_err err)
{
    if (c->err == TRL_OK) c->err = err;
}

static void run(chain *c, const grid_level *l, const trli_program *program)
{
    note(c, trli_solver_run_alone(l->solver, program));
}

static void swap(const grid_level *l)
{
    trli_vector_swap(l->solver, &l->z);
    trli_vector_swap(l->solver, &l->r);
    trli_vector_swap(l->solver, &l->d);
}

static void set(const grid_level *l, double old, double new)
{
    trli_solver_set(l->solver, l->old, old);
    trli_solver_set(l->solver, l->new, new);
}

/* Steps along directions, the first of which is there, that damp eigenvalues from `least` on. */
static void smooth(chain *c, const grid_level *l, int steps, double least)
{
    const double middle = (largest_eigenvalue + least) / 2, half = (largest_eigenvalue - least) / 2;
    const double sigma = middle / half;
    double rho = 1 / sigma;
    for (int k = 0; k < steps; ++k) {
        const double next = 1 / (2 * sigma - rho);
        set(l, next * rho, 2 * next / half);
        run(c, l, l->smooth);
        swap(l);
        rho = next;
    }
}

static double least_of(const grid_level *l, bool coarsest)
{
    return coarsest ? 0.02 * largest_eigenvalue : 1.0 / l->sim->layout->grid.dim;
}

static void first_direction(const grid_level *l, double least)
{
    set(l, 0, 2 / (largest_eigenvalue + least));
}

static void go_down(chain *c, int k)
{
    grid_level *l = &c->m->level[k], *coarse = l + 1;
    const bool coarsest = k + 1 == c->m->n;
    const double least = least_of(l, coarsest);
    first_direction(l, least);
    run(c, l, l->begin);
    swap(l);
    smooth(c, l, coarsest ? COARSEST_STEPS : SMOOTHING, least);
    if (coarsest) return;
    if (l->ghosts) run(c, l, l->ghosts);
    note(c, trli_restrict(l->transfer, l->sim, l->r.now[0], coarse->sim, coarse->r.now[0], c->m->loop));
}

static void go_up(chain *c, int k)
{
    grid_level *l = &c->m->level[k], *coarse = l + 1;
    const double least = least_of(l, false);
    note(c, trli_prolong(l->transfer, coarse->sim, coarse->z.now[0], l->sim, l->d.now[0], c->m->loop));
    first_direction(l, least);
    run(c, l, l->smooth);
    swap(l);
    smooth(c, l, SMOOTHING, least);
}

trl_err trli_multigrid_cycle(struct trli_multigrid *m)
{
    chain c = {m, TRL_OK};
    for (int k = 0; k < m->n; ++k) trli_kernels_poll(m->level[k].sim->model);
    for (int k = 0; k < m->n; ++k) go_down(&c, k);
    for (int k = m->n - 2; k >= 0; --k) go_up(&c, k);
    return trl_context_agree(m->solver->sim->ctx, c.err);
}

int trli_multigrid_solution(const struct trli_multigrid *m)
{
    return m->level[0].z.now[0];
}

/* The times of the system are those of all grids; coefficients may have changed with them. */
trl_err trli_multigrid_prepare(struct trli_multigrid *m, double time)
{
    chain c = {m, TRL_OK};
    const double *fine = m->solver->sim->frame->scalar;
    for (int k = 1; k < m->n; ++k) {
        double *scalar = m->level[k].sim->frame->scalar;
        memcpy(scalar, fine, TRLI_SCALARS_FIXED * sizeof *scalar);
        scalar[TRLI_SCALAR_STEP_TIME] = time;
        run(&c, &m->level[k], m->level[k].solver->diagonal);
    }
    return trl_context_agree(m->solver->sim->ctx, c.err);
}
