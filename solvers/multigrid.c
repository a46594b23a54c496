/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Geometric multigrid by V, W and F cycles with Chebyshev smoothing (Adams, Brezina, Hu & Tuminaro 2003): the equation
 * is compiled again for each coarser grid, and points of two grids are joined by linear interpolation and its
 * transpose. The first grid is the ranks'; every rank has all coarser ones, smaller than it by a factor of 4 or 8. */
#include <math.h>
#include <string.h>

#include "compile_impl.h"
#include "kernels_impl.h"
#include "lower_impl.h"
#include "memory_impl.h"
#include "multigrid_impl.h"
#include "parameters_impl.h"
#include "sides_impl.h"
#include "symbols_impl.h"

enum { SMOOTHING = 2, COARSEST_STEPS = 24, LEVELS_MOST = 24, LOCATIONS = 8 };

typedef struct grid_level {
    trl_simulation *sim;
    trli_level *own;     /* NULL: the first grid, the problem's */
    trli_solver *solver; /* whose vectors and tangents these are */
    trli_vector z, r, d; /* solution, residual, direction */
    int *old_field;      /* [equations] of a coarser grid: the state at the start of the step, where it is read */
    trli_program *begin, *smooth, *clip, *ghosts, *coefficients;
    int old, new;                        /* scalars: factors of the last direction and of the residual in the next */
    trli_grid_transfer **transfer;       /* [unknowns] to the next coarser one */
    trli_grid_transfer *mean[LOCATIONS]; /* of coefficients, where there are any */
    double largest;                      /* eigenvalue of the inverse diagonal times the operator: not more than this */
} grid_level;

struct trli_multigrid {
    trli_solver *solver;
    int n;
    grid_level level[LEVELS_MOST];
    trl_loop *loop;
};

/* ---- programs of a grid ---- */

/* What stands beyond a side, relative to what is inside. */
static void find_factors(const trli_solver *s, int unknown, double factor[6])
{
    const trl_bc_side *sides = s->sim->model->variable[s->ask.variable[unknown]].boundary;
    for (int side = 0; side < 6; ++side) {
        bool zero = sides[side].npieces > 0;
        for (int i = 0; i < sides[side].npieces; ++i) zero &= sides[side].piece[i].kind == TRL_BC_DIRICHLET;
        factor[side] = zero ? -1 : 1;
    }
}

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
    l->transfer = trli_model_keep(model, ((size_t)s->ask.n + 1) * sizeof(trli_grid_transfer *));
    TRL_TRY(model->ir.err);
    for (int i = 0; i < s->ask.n; ++i) {
        const trli_variable *v = &model->variable[s->ask.variable[i]];
        trli_model_field *d = &model->field[l->d.now[i]];
        d->exchanged = true;
        d->boundary = (trli_boundary_source){v->boundary, v->names, v->name, v->place};
    }
    err = model->ir.err;
done:
    return err;
}

static trli_ir_value times(trli_ir *ir, trli_ir_value a, trli_ir_value b)
{
    return trli_ir_binary(ir, TRLI_OP_MUL, a, b);
}

/* A program in the making: its instances, and a value for each unknown. */
typedef struct making {
    trli_instance *in, *old;
    trli_ir_value *a, *b;
} making;

static trl_err open_making(grid_level *l, trli_program *program, making *m)
{
    trli_solver *s = l->solver;
    const size_t n = (size_t)s->ask.n + 1;
    trl_err err = TRL_OK;
    *m = (making){.a = trli_new(s->sim->ctx, n, sizeof *m->a), .b = trli_new(s->sim->ctx, n, sizeof *m->b)};
    if (!m->a || !m->b) TRL_TRY(trli_no_memory(s->sim->ctx, NULL, "for multigrid"));
    TRL_TRY(s->ask.instance(s->ask.data, program, &m->in, &m->old));
done:
    return err;
}

static void close_making(making *m)
{
    trli_instance_destroy(&m->in);
    trli_instance_destroy(&m->old);
    trli_free(m->a);
    trli_free(m->b);
}

/* r' = the residual to begin with, z' = 0, d' = new * inverse * r */
static trl_err compile_begin(grid_level *l, const int *residual)
{
    trli_solver *s = l->solver;
    trli_ir *ir = &s->sim->model->ir;
    making m = {0};
    trl_err err = TRL_OK;
    TRL_TRY(trli_solver_begin(s, "start of a cycle", &l->begin));
    TRL_TRY(open_making(l, l->begin, &m));
    for (int i = 0; i < s->ask.n; ++i) {
        m.a[i] = trli_ir_field(ir, residual[i]);
        TRL_TRY(trli_solver_masked(s, m.in, i, &m.a[i]));
        m.b[i] = times(ir, times(ir, trli_ir_scalar(ir, l->new), s->inverse_value[i]), m.a[i]);
    }
    TRL_TRY(trli_solver_store(s, l->begin, l->r.next, m.a));
    TRL_TRY(trli_solver_store(s, l->begin, l->d.next, m.b));
    for (int i = 0; i < s->ask.n; ++i) m.a[i] = trli_ir_constant(ir, 0);
    TRL_TRY(trli_solver_store(s, l->begin, l->z.next, m.a));
done:
    close_making(&m);
    return err;
}

/* What an interpolated correction says of points that are no unknowns does not count. */
static trl_err compile_clip(grid_level *l)
{
    trli_solver *s = l->solver;
    making m = {0};
    trl_err err = TRL_OK;
    if (!trli_solver_has_gaps(s)) return TRL_OK;
    TRL_TRY(trli_solver_begin(s, "correction", &l->clip));
    TRL_TRY(open_making(l, l->clip, &m));
    trli_solver_read(s, l->d.now, m.a);
    for (int i = 0; i < s->ask.n; ++i) TRL_TRY(trli_solver_masked(s, m.in, i, &m.a[i]));
    TRL_TRY(trli_solver_store(s, l->clip, l->d.next, m.a));
done:
    close_making(&m);
    return err;
}

static int nth_unknown(const trli_solver *s, int variable)
{
    for (int i = 0; i < s->ask.n; ++i)
        if (s->ask.variable[i] == variable) return i;
    return 0;
}

/* The products of the Jacobian with d, where it counts. */
static trl_err products(grid_level *l, trli_instance *in, trli_ir_value *value)
{
    trli_solver *s = l->solver;
    trli_model *model = s->sim->model;
    trl_err err = TRL_OK;
    for (int v = 0; v < model->nvariables; ++v)
        if (model->variable[v].direction == s->direction)
            in->variable[v] = l->d.now[nth_unknown(s, model->variable[v].of)];
    TRL_TRY(trli_instance_fill(in));
    TRL_TRY(trli_instance_prepare(in));
    for (int i = 0; i < s->ask.n; ++i) {
        TRL_TRY(s->ask.residual(s->ask.data, in, i, &value[i]));
        TRL_TRY(trli_tangent(in, s->direction, value[i], &value[i]));
        if (value[i] < 0) value[i] = trli_ir_constant(&model->ir, 0);
        TRL_TRY(trli_solver_masked(s, in, i, &value[i]));
    }
done:
    return err;
}

/* r' = r - J d, z' = z + d, d' = old * d + new * inverse * r' */
static trl_err compile_smooth(grid_level *l)
{
    trli_solver *s = l->solver;
    trli_ir *ir = &s->sim->model->ir;
    making m = {0};
    trl_err err = TRL_OK;
    TRL_TRY(trli_solver_begin(s, "smoothing", &l->smooth));
    TRL_TRY(open_making(l, l->smooth, &m));
    TRL_TRY(products(l, m.in, m.a));
    for (int i = 0; i < s->ask.n; ++i) {
        const trli_ir_value d = trli_ir_field(ir, l->d.now[i]);
        const trli_ir_value r = trli_ir_binary(ir, TRLI_OP_SUB, trli_ir_field(ir, l->r.now[i]), m.a[i]);
        const trli_ir_value z = trli_ir_binary(ir, TRLI_OP_ADD, trli_ir_field(ir, l->z.now[i]), d);
        const trli_ir_value again = times(ir, trli_ir_scalar(ir, l->old), d);
        const trli_ir_value more = times(ir, times(ir, trli_ir_scalar(ir, l->new), s->inverse_value[i]), r);
        const int field[] = {l->r.next[i], l->z.next[i], l->d.next[i]};
        const trli_ir_value value[] = {r, z, trli_ir_binary(ir, TRLI_OP_ADD, again, more)};
        TRL_TRY(trli_program_add_kernel(l->smooth, "smooth", 3, field, value, NULL));
        for (int k = 0; k < 3; ++k) TRL_TRY(trli_program_add_root(l->smooth, field[k]));
    }
done:
    close_making(&m);
    return err;
}

/* Where patches meet, restriction reads values of others. */
static trl_err read_neighbours(grid_level *l, const char *name, trli_program **program, int n, const int *field)
{
    trli_solver *s = l->solver;
    making m = {0};
    const trl_offsets none = {{0, 0, 0}, {0, 0, 0}};
    trl_err err = TRL_OK;
    TRL_TRY(trli_solver_begin(s, name, program));
    TRL_TRY(open_making(l, *program, &m));
    for (int i = 0; i < n; ++i) {
        s->sim->model->field[field[i]].exchanged = true;
        TRL_TRY(trli_instance_fill_field(m.in, field[i]));
        TRL_TRY(trli_program_read(*program, field[i], TRLI_TRANSFER_DEPTH, &none));
    }
done:
    close_making(&m);
    return err;
}

/* ---- coefficients that are fields ---- */

/* Where a grid has the values that the Jacobian reads of an equation, at present or at the start of the step. */
static int coefficient(const grid_level *l, int v, bool old)
{
    const trli_solver *s = l->solver;
    if (!l->own) return old ? s->old_field[v] : s->in_field[v];
    return old ? l->old_field[v] : l->sim->equation[v].state;
}

static bool is_read(const trli_solver *finest, int v, bool old)
{
    return old ? finest->reads_old[v] : finest->reads[v];
}

/* The fields of a coarser grid that get coefficients outlive programs. */
static trl_err add_coefficients(const trli_solver *finest, grid_level *l)
{
    trli_model *model = l->sim->model;
    const int n = l->sim->nequations;
    l->old_field = trli_model_keep(model, ((size_t)n + 1) * sizeof *l->old_field);
    for (int v = 0; v < n && model->ir.err == TRL_OK; ++v) {
        const int state = l->sim->equation[v].state;
        l->old_field[v] = state;
        model->field[state].persistent |= finest->reads[v];
        if (finest->old_field[v] < 0) continue; /* else a field of its own: it does not change with the unknowns */
        const char *name = trli_model_name(model, "%s:old", model->variable[v].name);
        const int field = trli_model_add_field(model, name, model->variable[v].location);
        if (field < 0) return model->ir.err;
        trli_set_conditions(l->sim, v, field, field);
        model->field[field].persistent = finest->reads_old[v];
        l->old_field[v] = field;
    }
    return model->ir.err;
}

static trl_err add_means(struct trli_multigrid *m, grid_level *l, const trl_layout *layout,
                         const trli_transfer_request *request)
{
    const trli_solver *s = m->solver;
    trli_transfer_request mean = *request;
    trl_err err = TRL_OK;
    mean.mean = true;
    for (int v = 0; v < s->sim->nequations; ++v) {
        mean.location = s->sim->model->variable[v].location;
        if (!s->reads[v] && !s->reads_old[v]) continue;
        if (!l->mean[mean.location]) TRL_TRY(trli_transfer_create(s->sim->ctx, layout, &mean, &l->mean[mean.location]));
    }
done:
    return err;
}

/* Of the first grid. */
static trl_err read_coefficients(grid_level *l)
{
    const trli_solver *s = l->solver;
    const int n = s->sim->nequations;
    int *field = trli_new(s->sim->ctx, 2 * (size_t)n + 1, sizeof *field), count = 0;
    trl_err err = TRL_OK;
    if (!field) return trli_no_memory(s->sim->ctx, NULL, "for multigrid");
    for (int v = 0; v < 2 * n; ++v)
        if (is_read(s, v % n, v >= n)) field[count++] = coefficient(l, v % n, v >= n);
    if (count > 0) err = read_neighbours(l, "coefficients of neighbours", &l->coefficients, count, field);
    trli_free(field);
    return err;
}

/* ---- making ---- */

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

static trl_err make_level(trli_solver *finest, const trl_grid *grid, grid_level *l)
{
    trli_solve_request request = finest->ask;
    int *field = trli_new(finest->sim->ctx, (size_t)request.n + 1, sizeof *field);
    trl_err err = TRL_OK;
    if (!field) TRL_TRY(trli_no_memory(finest->sim->ctx, NULL, "for multigrid"));
    TRL_TRY(trli_level_create(finest->sim, grid, &l->own));
    l->sim = l->own->sim;
    for (int i = 0; i < request.n; ++i) field[i] = l->sim->equation[finest->ask.variable[i]].state;
    TRL_TRY(add_coefficients(finest, l));
    request.field = field;
    request.settings = &finest->settings;
    request.instance = level_instance;
    request.residual = level_residual;
    TRL_TRY(trli_solver_add_level(l->sim, finest, &request, l->old_field, &l->solver));
    TRL_TRY(add_vectors(l));
    TRL_TRY(compile_begin(l, l->r.now));
    TRL_TRY(compile_clip(l));
    TRL_TRY(compile_smooth(l));
    trli_solver_end_fields(l->solver);
    TRL_TRY(trli_level_freeze(l->own, l->solver, &l->d));
done:
    trli_free(field);
    return err;
}

/* What joins a grid with the next coarser one. */
static trl_err add_transfers(struct trli_multigrid *m, grid_level *l, const trl_grid *fine, const trl_grid *coarse)
{
    trli_solver *s = m->solver;
    const trl_layout *layout = l->own ? NULL : s->sim->layout;
    trli_transfer_request request = {.fine = fine, .coarse = coarse, .workers = trl_loop_workers(m->loop)};
    trl_err err = TRL_OK;
    for (int i = 0; i < s->ask.n; ++i) {
        request.location = s->sim->model->variable[s->ask.variable[i]].location;
        find_factors(s, i, request.factor);
        TRL_TRY(trli_transfer_create(s->sim->ctx, layout, &request, &l->transfer[i]));
    }
    TRL_TRY(add_means(m, l, layout, &request));
    if (!layout || layout->npatches == 1 || l->transfer[0]->gathers) goto done;
    TRL_TRY(read_neighbours(l, "residuals of neighbours", &l->ghosts, s->ask.n, l->r.now));
    err = read_coefficients(l);
done:
    return err;
}

trl_err trli_multigrid_compile(trli_solver *s)
{
    trl_grid grid = s->sim->layout->grid, coarse;
    trl_err err = TRL_OK;
    struct trli_multigrid *m = s->multigrid = trli_new(s->sim->ctx, 1, sizeof *m);
    if (!m) return trli_no_memory(s->sim->ctx, NULL, "for multigrid");
    m->solver = s;
    m->level[0] = (grid_level){.sim = s->sim, .solver = s};
    m->n = 1;
    TRL_TRY(add_vectors(&m->level[0]));
    TRL_TRY(compile_begin(&m->level[0], s->r.now));
    TRL_TRY(compile_clip(&m->level[0]));
    TRL_TRY(compile_smooth(&m->level[0]));
    TRL_TRY(trl_loop_create(s->sim->ctx, s->sim->workers, &m->loop));
    for (; m->n < LEVELS_MOST && trli_coarsen(m->level[m->n - 1].solver, &grid, &coarse); grid = coarse) {
        TRL_TRY(add_transfers(m, &m->level[m->n - 1], &grid, &coarse));
        ++m->n;
        TRL_TRY(make_level(s, &coarse, &m->level[m->n - 1]));
    }
done:
    return err;
}

static void destroy_level(struct trli_multigrid *m, grid_level *l)
{
    for (int i = 0; l->transfer && i < m->solver->ask.n; ++i) trli_transfer_destroy(&l->transfer[i]);
    for (int i = 0; i < LOCATIONS; ++i) trli_transfer_destroy(&l->mean[i]);
    if (l == m->level) return;
    trli_solver_destroy(&l->solver);
    trli_level_destroy(&l->own);
}

void trli_multigrid_destroy(struct trli_multigrid **multigrid)
{
    struct trli_multigrid *m = *multigrid;
    *multigrid = NULL;
    if (!m) return;
    trl_loop_destroy(&m->loop);
    for (int k = m->n - 1; k >= 0; --k) destroy_level(m, &m->level[k]);
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

const trl_simulation *trli_multigrid_simulation(const struct trli_multigrid *m, int level)
{
    return m->level[level].sim;
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

/* The first direction damps eigenvalues from `least` on best by itself. */
static void first_direction(const grid_level *l, double least)
{
    set(l, 0, 2 / (l->largest + least));
}

/* Steps along directions, the first of which is there, that damp eigenvalues from `least` on. The last one leaves a
 * first direction for steps that go on. */
static void smooth(chain *c, const grid_level *l, int steps, double least)
{
    const double middle = (l->largest + least) / 2, half = (l->largest - least) / 2;
    const double sigma = middle / half;
    double rho = 1 / sigma;
    for (int k = 0; k < steps; ++k) {
        const double next = 1 / (2 * sigma - rho);
        set(l, next * rho, 2 * next / half);
        if (k + 1 == steps) first_direction(l, least);
        run(c, l, l->smooth);
        swap(l);
        rho = next;
    }
}

static double least_of(const grid_level *l, bool coarsest)
{
    return l->largest * (coarsest ? 0.02 : 0.5 / l->sim->layout->grid.dim);
}

/* From z = 0. */
static void begin_grid(chain *c, int k)
{
    const grid_level *l = &c->m->level[k];
    first_direction(l, least_of(l, k + 1 == c->m->n));
    run(c, l, l->begin);
    swap(l);
}

static void restrict_residual(chain *c, int k)
{
    grid_level *l = &c->m->level[k], *coarse = l + 1;
    if (l->ghosts) run(c, l, l->ghosts);
    for (int i = 0; i < l->solver->ask.n; ++i)
        note(c, trli_restrict(l->transfer[i], l->sim, l->r.now[i], coarse->sim, coarse->r.now[i], c->m->loop));
}

/* z' = z + the coarser grid's solution */
static void correct(chain *c, int k)
{
    grid_level *l = &c->m->level[k], *coarse = l + 1;
    for (int i = 0; i < l->solver->ask.n; ++i)
        note(c, trli_prolong(l->transfer[i], coarse->sim, coarse->z.now[i], l->sim, l->d.now[i], c->m->loop));
    if (l->clip) {
        run(c, l, l->clip);
        trli_vector_swap(l->solver, &l->d);
    }
    first_direction(l, least_of(l, false));
    run(c, l, l->smooth);
    swap(l);
}

/* The same equation on a grid and all coarser ones, once it has a first direction. The coarsest is solved at once. */
static void cycle(chain *c, int k, trl_solve_cycle kind)
{
    const grid_level *l = &c->m->level[k];
    const bool coarsest = k + 1 == c->m->n, twice = kind != TRL_CYCLE_V && k + 2 < c->m->n;
    smooth(c, l, coarsest ? COARSEST_STEPS : SMOOTHING, least_of(l, coarsest));
    if (coarsest) return;
    restrict_residual(c, k);
    begin_grid(c, k + 1);
    cycle(c, k + 1, kind);
    if (twice) cycle(c, k + 1, kind == TRL_CYCLE_F ? TRL_CYCLE_V : kind);
    correct(c, k);
    smooth(c, l, SMOOTHING, least_of(l, false));
}

/* By itself a cycle gains from solving coarser grids better; conjugate gradients make up for what it leaves there. */
static trl_solve_cycle kind_of(const trli_solver *s)
{
    const trl_solve_cycle asked = s->settings.cycle;
    if (asked != TRL_CYCLE_AUTO) return asked;
    return s->method == TRL_SOLVE_MULTIGRID ? TRL_CYCLE_F : TRL_CYCLE_V;
}

trl_err trli_multigrid_cycle(struct trli_multigrid *m, const int *residual)
{
    chain c = {m, TRL_OK};
    trli_solver *s = m->solver;
    const trli_vector pair = {s->r.now, (int *)residual};
    const bool other = residual != s->r.now;
    for (int k = 0; k < m->n; ++k) trli_kernels_poll(m->level[k].sim->model);
    if (other) trli_vector_swap(s, &pair); /* in whose place programs look for the residual */
    begin_grid(&c, 0);
    if (other) trli_vector_swap(s, &pair);
    cycle(&c, 0, kind_of(s));
    return trl_context_agree(s->sim->ctx, c.err);
}

const int *trli_multigrid_solution(const struct trli_multigrid *m)
{
    return m->level[0].z.now;
}

/* A grid's coefficients from those of the next finer one. */
static void average(chain *c, grid_level *fine, grid_level *coarse)
{
    const trli_solver *s = c->m->solver;
    const int n = s->sim->nequations;
    for (int v = 0; v < 2 * n; ++v) {
        const bool old = v >= n;
        if (!is_read(s, v % n, old)) continue;
        const trli_grid_transfer *mean = fine->mean[s->sim->model->variable[v % n].location];
        note(c, trli_restrict(mean, fine->sim, coefficient(fine, v % n, old), coarse->sim,
                              coefficient(coarse, v % n, old), c->m->loop));
    }
}

static void find_largest(grid_level *l)
{
    const double row = trli_solver_largest_row(l->solver);
    l->largest = isfinite(row) && row > 1 ? row : 1;
}

/* The times of the system are those of all grids; coefficients may have changed with them. */
trl_err trli_multigrid_prepare(struct trli_multigrid *m, double time)
{
    chain c = {m, TRL_OK};
    const double *fine = m->solver->sim->frame->scalar;
    if (m->level[0].coefficients) run(&c, &m->level[0], m->level[0].coefficients);
    find_largest(&m->level[0]);
    for (int k = 1; k < m->n; ++k) {
        double *scalar = m->level[k].sim->frame->scalar;
        memcpy(scalar, fine, TRLI_SCALARS_FIXED * sizeof *scalar);
        scalar[TRLI_SCALAR_STEP_TIME] = time;
        average(&c, &m->level[k - 1], &m->level[k]);
        run(&c, &m->level[k], m->level[k].solver->diagonal);
        find_largest(&m->level[k]);
    }
    return trl_context_agree(m->solver->sim->ctx, c.err);
}
