/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Programs of a grid of multigrid: steps of smoothing, residuals, corrections, exchanges. A step makes a
 * solution of the last two, so that it reads three vectors and writes one. */
#include <math.h>

#include "compile_impl.h"
#include "diagonal_impl.h"
#include "grid_level_impl.h"
#include "lower_impl.h"
#include "memory_impl.h"
#include "parameters_impl.h"
#include "sides_impl.h"
#include "symbols_impl.h"

/* What stands beyond a side, relative to what is inside. */
void trli_grid_level_factors(const trli_solver *s, int unknown, double factor[6])
{
    const trl_bc_side *sides = s->sim->model->variable[s->ask.variable[unknown]].boundary;
    for (int side = 0; side < 6; ++side) {
        bool zero = sides[side].npieces > 0;
        for (int i = 0; i < sides[side].npieces; ++i) zero &= sides[side].piece[i].kind == TRL_BC_DIRICHLET;
        factor[side] = zero ? -1 : 1;
    }
}

static bool relaxes(const trli_solver *s)
{
    return s->settings.smoother > TRL_SMOOTHER_CHEBYSHEV;
}

/* Whether the first two steps from zero are one sweep over the right-hand side: with a diagonal that is a number the
 * first is a multiple of that, beyond sides, too. */
static bool starts_at_once(const trli_solver *s)
{
    const bool number = trli_ir_node(&s->sim->model->ir, s->inverse_value[0])->op == TRLI_OP_CONSTANT;
    return s->ask.n == 1 && number && !relaxes(s) && !trli_solver_has_gaps(s);
}

trl_err trli_grid_level_add_vectors(trli_grid_level *l)
{
    trli_solver *s = l->solver;
    trli_model *model = s->sim->model;
    trl_err err = TRL_OK;
    trli_vector b = {s->r.now, NULL};
    TRL_TRY(trli_vector_add(s, "mg z", true, &l->z));
    if (!relaxes(s)) TRL_TRY(trli_vector_add(s, "mg before", false, &l->before));
    TRL_TRY(trli_vector_add(s, "mg r", false, &l->r));
    if (l->own) TRL_TRY(trli_vector_add(s, "mg b", false, &b));
    TRL_TRY(trli_saddle_add_part(l));
    l->b = b.now;
    l->old = trli_model_add_scalar(model, 0);
    l->new = trli_model_add_scalar(model, 0);
    l->transfer = trli_model_keep(model, ((size_t)s->ask.n + 1) * sizeof(trli_grid_transfer *));
    TRL_TRY(model->ir.err);
    for (int i = 0; i < s->ask.n; ++i) {
        const trli_variable *v = &model->variable[s->ask.variable[i]];
        const int field[] = {l->z.now[i], l->b[i]};
        for (int k = 0; k < (starts_at_once(s) ? 2 : 1); ++k) {
            model->field[field[k]].exchanged = true;
            model->field[field[k]].boundary = (trli_boundary_source){v->boundary, v->names, v->name, v->place};
        }
    }
    err = model->ir.err;
done:
    return err;
}

trl_err trli_grid_level_add_coefficients(trli_grid_level *l, const trli_solver *finest)
{
    trli_model *model = l->sim->model;
    const int n = l->sim->nequations;
    l->old_field = trli_model_keep(model, ((size_t)n + 1) * sizeof *l->old_field);
    for (int v = 0; v < n && model->ir.err == TRL_OK; ++v) {
        const int state = l->sim->equation[v].state;
        l->old_field[v] = state;
        model->field[state].persistent |= finest->needs[v];
        if (finest->old_field[v] < 0) continue; /* else a field of its own: it does not change with the unknowns */
        const char *name = trli_model_name(model, "%s:old", model->variable[v].name);
        const int field = trli_model_add_field(model, name, model->variable[v].location);
        if (field < 0) return model->ir.err;
        trli_set_conditions(l->sim, v, field, field);
        model->field[field].persistent = finest->needs_old[v];
        l->old_field[v] = field;
    }
    return model->ir.err;
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

static trl_err open_making(trli_grid_level *l, trli_program *program, making *m)
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

/* z' = new * inverse * b, the first step from zero */
static trl_err compile_begin(trli_grid_level *l)
{
    trli_solver *s = l->solver;
    const trli_ir_value new = trli_ir_scalar(&s->sim->model->ir, l->new);
    making m = {0};
    trl_err err = TRL_OK;
    TRL_TRY(trli_solver_begin(s, "start of a cycle", &l->begin));
    TRL_TRY(open_making(l, l->begin, &m));
    trli_solver_read(s, l->b, m.b);
    if (s->constraint)
        TRL_TRY(trli_saddle_change(l, m.in, new, m.a));
    else
        trli_krylov_relax(s, new, m.b, m.a);
    for (int i = 0; i < s->ask.n; ++i) TRL_TRY(trli_solver_masked(s, m.in, i, &m.a[i]));
    TRL_TRY(trli_solver_store(s, l->begin, l->z.next, m.a));
done:
    close_making(&m);
    return err;
}

/* What an interpolated correction says of points that are no unknowns does not count. */
static trl_err compile_clip(trli_grid_level *l)
{
    trli_solver *s = l->solver;
    making m = {0};
    trl_err err = TRL_OK;
    if (!trli_solver_has_gaps(s)) return TRL_OK;
    TRL_TRY(trli_solver_begin(s, "correction", &l->clip));
    TRL_TRY(open_making(l, l->clip, &m));
    trli_solver_read(s, l->z.now, m.a);
    for (int i = 0; i < s->ask.n; ++i) TRL_TRY(trli_solver_masked(s, m.in, i, &m.a[i]));
    TRL_TRY(trli_solver_store(s, l->clip, l->z.next, m.a));
done:
    close_making(&m);
    return err;
}

/* The products of the Jacobian with a vector. */
trl_err trli_grid_level_products(const trli_grid_level *l, trli_instance *in, const int *with, trli_ir_value *value)
{
    trli_solver *s = l->solver;
    trli_model *model = s->sim->model;
    trl_err err = TRL_OK;
    for (int v = 0; v < model->nvariables; ++v)
        if (model->variable[v].direction == s->direction)
            in->variable[v] = with[trli_solver_unknown_of(s, model->variable[v].of)];
    TRL_TRY(trli_solver_fill_products(s, in));
    for (int i = 0; i < s->ask.n; ++i) {
        TRL_TRY(s->ask.residual(s->ask.data, in, i, &value[i]));
        TRL_TRY(trli_tangent(in, s->direction, value[i], &value[i]));
        if (value[i] < 0) value[i] = trli_ir_constant(&model->ir, 0);
    }
done:
    return err;
}

/* b - J z */
trl_err trli_grid_level_residuals(const trli_grid_level *l, trli_instance *in, trli_ir_value *value)
{
    trli_ir *ir = &l->solver->sim->model->ir;
    trl_err err = TRL_OK;
    TRL_TRY(trli_grid_level_products(l, in, l->z.now, value));
    for (int i = 0; i < l->solver->ask.n; ++i)
        value[i] = trli_ir_binary(ir, TRLI_OP_SUB, trli_ir_field(ir, l->b[i]), value[i]);
done:
    return err;
}

/* z' = inverse * (old * b - new * inverse * J b) */
static trl_err compile_start(trli_grid_level *l)
{
    trli_solver *s = l->solver;
    trli_ir *ir = &s->sim->model->ir;
    const trli_ir_value inverse = s->inverse_value[0], old = trli_ir_scalar(ir, l->old);
    making m = {0};
    trl_err err = TRL_OK;
    if (!starts_at_once(s)) return TRL_OK;
    TRL_TRY(trli_solver_begin(s, "first two steps of a cycle", &l->start));
    TRL_TRY(open_making(l, l->start, &m));
    TRL_TRY(trli_grid_level_products(l, m.in, l->b, m.a));
    const trli_ir_value less = times(ir, times(ir, trli_ir_scalar(ir, l->new), inverse), m.a[0]);
    m.a[0] = trli_ir_binary(ir, TRLI_OP_SUB, times(ir, old, trli_ir_field(ir, l->b[0])), less);
    m.a[0] = times(ir, inverse, m.a[0]);
    err = trli_solver_store(s, l->start, l->z.next, m.a);
done:
    close_making(&m);
    return err;
}

/* What a step adds the residual's share to: old * z, or with the solution before z + old * (z - before). */
static trli_ir_value carried(const trli_grid_level *l, bool before, int i)
{
    trli_ir *ir = &l->solver->sim->model->ir;
    const trli_ir_value z = trli_ir_field(ir, l->z.now[i]), old = trli_ir_scalar(ir, l->old);
    if (!before) return times(ir, old, z);
    const trli_ir_value change = trli_ir_binary(ir, TRLI_OP_SUB, z, trli_ir_field(ir, l->before.now[i]));
    return trli_ir_binary(ir, TRLI_OP_ADD, z, times(ir, old, change));
}

/* z' = what is carried + new * inverse * (b - J z) */
static trl_err compile_step(trli_grid_level *l, const char *name, bool before, trli_program **program)
{
    trli_solver *s = l->solver;
    trli_ir *ir = &s->sim->model->ir;
    making m = {0};
    trl_err err = TRL_OK;
    TRL_TRY(trli_solver_begin(s, name, program));
    TRL_TRY(open_making(l, *program, &m));
    if (s->constraint) {
        TRL_TRY(trli_saddle_change(l, m.in, trli_ir_scalar(ir, l->new), m.b));
    } else {
        TRL_TRY(trli_grid_level_residuals(l, m.in, m.a));
        trli_krylov_relax(s, trli_ir_scalar(ir, l->new), m.a, m.b);
    }
    for (int i = 0; i < s->ask.n; ++i) {
        m.a[i] = trli_ir_binary(ir, TRLI_OP_ADD, carried(l, before, i), m.b[i]);
        TRL_TRY(trli_solver_masked(s, m.in, i, &m.a[i]));
    }
    err = trli_solver_store(s, *program, l->z.next, m.a);
done:
    close_making(&m);
    return err;
}

/* r = b - J z */
static trl_err compile_residual(trli_grid_level *l)
{
    trli_solver *s = l->solver;
    making m = {0};
    trl_err err = TRL_OK;
    TRL_TRY(trli_solver_begin(s, "residual of a cycle", &l->residual));
    TRL_TRY(open_making(l, l->residual, &m));
    TRL_TRY(trli_grid_level_residuals(l, m.in, m.a));
    for (int i = 0; i < s->ask.n; ++i) TRL_TRY(trli_solver_masked(s, m.in, i, &m.a[i]));
    err = trli_solver_store(s, l->residual, l->r.now, m.a);
done:
    close_making(&m);
    return err;
}

trl_err trli_grid_level_read(trli_grid_level *l, const char *name, trli_program **program, int depth, int n,
                             const int *field)
{
    trli_solver *s = l->solver;
    making m = {0};
    const trl_offsets none = {{0, 0, 0}, {0, 0, 0}};
    trl_err err = TRL_OK;
    TRL_TRY(trli_solver_begin(s, name, program));
    TRL_TRY(open_making(l, *program, &m));
    for (int i = 0; i < n; ++i) s->sim->model->field[field[i]].exchanged = true;
    TRL_TRY(trli_instance_fill_fields(m.in, n, field));
    for (int i = 0; i < n; ++i) TRL_TRY(trli_program_read(*program, field[i], depth, &none));
done:
    close_making(&m);
    return err;
}

trl_err trli_grid_level_compile(trli_grid_level *l)
{
    trl_err err = TRL_OK;
    TRL_TRY(compile_residual(l));
    TRL_TRY(compile_clip(l));
    if (relaxes(l->solver)) return trli_relaxation_compile(l);
    TRL_TRY(trli_saddle_compile(l));
    TRL_TRY(compile_begin(l));
    TRL_TRY(compile_start(l));
    TRL_TRY(compile_step(l, "first step of smoothing", false, &l->first));
    err = compile_step(l, "smoothing", true, &l->smooth);
done:
    return err;
}

trl_err trli_grid_level_compile_last(trli_grid_level *l, const int *other, int *with_b, int *with_other)
{
    trli_solver *s = l->solver;
    const size_t n = (size_t)s->ask.n + 1;
    trli_ir_value *z = trli_new(s->sim->ctx, n, sizeof *z), *r = trli_new(s->sim->ctx, n, sizeof *r);
    trl_err err = TRL_OK;
    if (l->relaxation) {
        err = trli_relaxation_compile_last(l, other, with_b, with_other);
        goto done;
    }
    if (!z || !r) TRL_TRY(trli_no_memory(s->sim->ctx, NULL, "for multigrid"));
    TRL_TRY(compile_step(l, "last step of smoothing", true, &l->last));
    trli_solver_read(s, l->z.next, z);
    trli_solver_read(s, l->b, r);
    TRL_TRY(trli_solver_dot(s, l->last, "r.z", r, z, with_b));
    trli_solver_read(s, other, r);
    TRL_TRY(trli_solver_dot(s, l->last, "r.z before", r, z, with_other));
done:
    trli_free(z);
    trli_free(r);
    return err;
}

void trli_grid_level_equalise(const trli_grid_level *l)
{
    const trli_vector other = {l->z.next, l->before.now};
    trli_vector_equalise(l->solver, &l->z);
    if (!l->relaxation) trli_vector_equalise(l->solver, &other);
    trli_vector_equalise(l->solver, &l->z);
}

double trli_grid_level_bytes(const trli_grid_level *l)
{
    double points = 0;
    for (int p = 0; p < l->sim->layout->nlocal; ++p) {
        const trl_box cells = trl_patch_owned(l->sim->layout, &l->sim->layout->patch[p], TRL_CELL);
        points += (double)trl_box_points(&cells);
    }
    return points * l->solver->ask.n * (double)sizeof(double);
}

void trli_grid_level_find_largest(trli_grid_level *l, const trli_grid_level *finer)
{
    if (!l->solver->bounded) {
        l->largest = finer->largest;
        l->own_row = finer->own_row;
        return;
    }
    const double row = trli_solver_largest_row(l->solver);
    l->largest = isfinite(row) && row > 1 ? row : 1;
    l->own_row = trli_solver_largest_own_row(l->solver);
}
