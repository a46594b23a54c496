/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* -div(grad(u)) = f on the unit square, u = 0 on its sides, at cells: programs for Jacobi's method, conjugate gradients
 * and the two grids of a cycle, as bodies of calls in task graphs. */
#ifndef POISSON_GRAPH_H
#define POISSON_GRAPH_H

#include <math.h>

#include "trl_test.h"

#include <cost_impl.h>
#include <lifecycle_impl.h>
#include <lower_impl.h>
#include <parts_impl.h>
#include <pipeline_impl.h>
#include <program_calls_impl.h>
#include <sides_impl.h>

#include "multigrid_impl.h"

/* Vectors, of which those before NEXT change places with their next values. */
enum { POISSON_U, POISSON_R, POISSON_D, POISSON_NEXT, POISSON_F = POISSON_NEXT, POISSON_Q, POISSON_VECTORS };

typedef struct poisson {
    trl_context *ctx;
    trl_layout *layout;
    trl_workers *workers;
    trli_model *model;
    trli_frame *frame;
    trl_formula *laplacian;
    int now[POISSON_VECTORS], next[POISSON_NEXT];
    trli_program *sweep;    /* next u, of Jacobi's method with weight `omega`, and the norm of u's residual */
    trli_program *residual; /* r of u, and its norm */
    trli_program *start;    /* of conjugate gradients: r and d of u, and r.r */
    trli_program *step;     /* next u, r, d and r.r; rho is that of r */
    trli_program *edge;     /* of r, that a restriction reads around patches; */
    trli_program *ghosts;   /* of u, that an interpolation does */
    int sweep_rr, residual_rr, start_rr, step_rr, omega, rho;
} poisson;

static const trl_bc_piece poisson_zero = {.kind = TRL_BC_DIRICHLET,
                                          .value = {.count = 1, .text = &(const trl_text){.chars = "0"}}};
static const trl_bc_side poisson_sides[6] = {{.npieces = 1, .piece = &poisson_zero},
                                             {.npieces = 1, .piece = &poisson_zero},
                                             {.npieces = 1, .piece = &poisson_zero},
                                             {.npieces = 1, .piece = &poisson_zero}};

static inline trli_ir *poisson_ir(const poisson *p)
{
    return &p->model->ir;
}

static inline trli_ir_value poisson_op(const poisson *p, trli_op op, trli_ir_value a, trli_ir_value b)
{
    return trli_ir_binary(poisson_ir(p), op, a, b);
}

static inline trli_ir_value poisson_now(const poisson *p, int vector)
{
    return trli_ir_field(poisson_ir(p), p->now[vector]);
}

static inline trl_err poisson_fields(poisson *p)
{
    static const char *const names[POISSON_VECTORS] = {"u", "r", "d", "f", "q"};
    for (int v = 0; v < POISSON_VECTORS; ++v)
        for (int next = 0; next <= (v < POISSON_NEXT); ++next) {
            const int field = trli_model_add_field(p->model, names[v], TRL_CELL);
            if (field < 0) return p->model->ir.err;
            *(next ? &p->next[v] : &p->now[v]) = field;
            p->model->field[field].persistent = p->model->field[field].exchanged = true;
            p->model->field[field].boundary = (trli_boundary_source){.side = poisson_sides, .name = names[v]};
        }
    return TRL_OK;
}

/* div(grad(.)) of a vector, whose ghosts are filled. */
static inline trl_err poisson_laplacian(const poisson *p, trli_program *program, int vector, trli_ir_value *value)
{
    trli_instance *in = NULL;
    trl_err err = TRL_OK;
    TRL_TRY(trli_instance_create(p->model, program, TRLI_SCALAR_STEP_TIME, 0, NULL, &in));
    in->variable[0] = p->now[vector];
    TRL_TRY(trli_instance_fill(in));
    TRL_TRY(trli_instance_prepare(in));
    TRL_TRY(trli_lower_at(in, p->laplacian, NULL, TRL_CELL, value));
done:
    trli_instance_destroy(&in);
    return err;
}

static inline trl_err poisson_store(const poisson *p, trli_program *program, int n, const int *field,
                                    const trli_ir_value *value)
{
    trl_err err = TRL_OK;
    TRL_TRY(trli_program_add_kernel(program, p->model->field[field[0]].name, n, field, value, NULL));
    for (int i = 0; i < n; ++i) TRL_TRY(trli_program_add_root(program, field[i]));
done:
    return err;
}

static inline trl_err poisson_dot(const poisson *p, trli_program *program, trli_ir_value a, trli_ir_value b,
                                  int *scalar)
{
    trl_err err = TRL_OK;
    TRL_TRY(trli_program_reduce(program, "dot", poisson_op(p, TRLI_OP_MUL, a, b), TRL_CELL, TRLI_REDUCE_SUM, false,
                                NULL, scalar));
    TRL_TRY(trli_program_add_scalar_root(program, *scalar));
done:
    return err;
}

static inline trl_err poisson_residual(const poisson *p, trli_program *program, trli_ir_value *r)
{
    trl_err err = TRL_OK;
    TRL_TRY(poisson_laplacian(p, program, POISSON_U, r));
    *r = poisson_op(p, TRLI_OP_ADD, poisson_now(p, POISSON_F), *r);
done:
    return err;
}

static inline trl_err poisson_add_sweep(poisson *p)
{
    trl_err err = TRL_OK;
    trli_ir_value r, value;
    const double *h = p->layout->grid.spacing;
    const double diagonal = 2 / (h[0] * h[0]) + 2 / (h[1] * h[1]);
    p->omega = trli_model_add_scalar(p->model, 1);
    TRL_TRY(trli_program_create(p->model, "sweep", &p->sweep));
    TRL_TRY(poisson_residual(p, p->sweep, &r));
    value = poisson_op(p, TRLI_OP_DIV, r, trli_ir_constant(poisson_ir(p), diagonal));
    value = poisson_op(p, TRLI_OP_MUL, trli_ir_scalar(poisson_ir(p), p->omega), value);
    value = poisson_op(p, TRLI_OP_ADD, poisson_now(p, POISSON_U), value);
    TRL_TRY(poisson_store(p, p->sweep, 1, &p->next[POISSON_U], &value));
    TRL_TRY(poisson_dot(p, p->sweep, r, r, &p->sweep_rr));
done:
    return err;
}

/* Have points around others' there, for who reads them after the program. */
static inline trl_err poisson_read(const poisson *p, const char *name, int vector, int depth, trli_program **program)
{
    static const trl_offsets none = {{0, 0, 0}, {0, 0, 0}};
    trli_instance *in = NULL;
    trl_err err = TRL_OK;
    TRL_TRY(trli_program_create(p->model, name, program));
    TRL_TRY(trli_instance_create(p->model, *program, TRLI_SCALAR_STEP_TIME, 0, NULL, &in));
    TRL_TRY(trli_instance_fill_field(in, p->now[vector]));
    TRL_TRY(trli_program_read(*program, p->now[vector], depth, &none));
done:
    trli_instance_destroy(&in);
    return err;
}

static inline trl_err poisson_add_residuals(poisson *p)
{
    trl_err err = TRL_OK;
    trli_ir_value r[2];
    const int both[2] = {p->now[POISSON_R], p->now[POISSON_D]};
    TRL_TRY(trli_program_create(p->model, "residual", &p->residual));
    TRL_TRY(poisson_residual(p, p->residual, &r[0]));
    TRL_TRY(poisson_store(p, p->residual, 1, both, r));
    TRL_TRY(poisson_dot(p, p->residual, r[0], r[0], &p->residual_rr));
    TRL_TRY(poisson_read(p, "edge", POISSON_R, 2, &p->edge));
    TRL_TRY(trli_program_create(p->model, "start", &p->start));
    TRL_TRY(poisson_residual(p, p->start, &r[0]));
    r[1] = r[0];
    TRL_TRY(poisson_store(p, p->start, 2, both, r));
    TRL_TRY(poisson_dot(p, p->start, r[0], r[0], &p->start_rr));
    TRL_TRY(poisson_read(p, "ghosts", POISSON_U, 1, &p->ghosts));
done:
    return err;
}

/* to = a + factor * b */
static inline trl_err poisson_combine(const poisson *p, int to, trli_ir_value a, trli_ir_value factor, trli_ir_value b)
{
    const trli_ir_value value = poisson_op(p, TRLI_OP_ADD, a, poisson_op(p, TRLI_OP_MUL, factor, b));
    return poisson_store(p, p->step, 1, &p->next[to], &value);
}

static inline trl_err poisson_add_step(poisson *p)
{
    trl_err err = TRL_OK;
    trli_ir *ir = poisson_ir(p);
    trli_ir_value q, alpha, next;
    int dq;
    p->rho = trli_model_add_scalar(p->model, 0);
    TRL_TRY(trli_program_create(p->model, "step", &p->step));
    TRL_TRY(poisson_laplacian(p, p->step, POISSON_D, &q));
    q = trli_ir_unary(ir, TRLI_OP_NEG, q);
    TRL_TRY(poisson_store(p, p->step, 1, &p->now[POISSON_Q], &q));
    q = poisson_now(p, POISSON_Q);
    TRL_TRY(poisson_dot(p, p->step, poisson_now(p, POISSON_D), q, &dq));
    alpha = poisson_op(p, TRLI_OP_DIV, trli_ir_scalar(ir, p->rho), trli_ir_scalar(ir, dq));
    TRL_TRY(poisson_combine(p, POISSON_U, poisson_now(p, POISSON_U), alpha, poisson_now(p, POISSON_D)));
    TRL_TRY(poisson_combine(p, POISSON_R, poisson_now(p, POISSON_R), trli_ir_unary(ir, TRLI_OP_NEG, alpha), q));
    next = trli_ir_field(ir, p->next[POISSON_R]);
    TRL_TRY(poisson_dot(p, p->step, next, next, &p->step_rr));
    TRL_TRY(poisson_combine(p, POISSON_D, next,
                            poisson_op(p, TRLI_OP_DIV, trli_ir_scalar(ir, p->step_rr), trli_ir_scalar(ir, p->rho)),
                            poisson_now(p, POISSON_D)));
done:
    return err;
}

/* Levels that change places have one shape. */
static inline void poisson_equalise(const poisson *p)
{
    for (int v = 0; v < POISSON_NEXT; ++v) {
        trli_model_field *f = &p->model->field[p->now[v]], *g = &p->model->field[p->next[v]];
        for (int a = 0; a < 3; ++a) {
            f->ghost_lo[a] = g->ghost_lo[a] = f->ghost_lo[a] > g->ghost_lo[a] ? f->ghost_lo[a] : g->ghost_lo[a];
            f->ghost_hi[a] = g->ghost_hi[a] = f->ghost_hi[a] > g->ghost_hi[a] ? f->ghost_hi[a] : g->ghost_hi[a];
        }
    }
}

static inline trl_err poisson_make(poisson *p)
{
    const trli_variable variable = {.name = "v", .location = TRL_CELL, .boundary = poisson_sides};
    const trli_model_request request = {.layout = p->layout,
                                        .fusion = TRL_FUSION_FULL,
                                        .compile = TRL_COMPILE_NEVER,
                                        .nvariables = 1,
                                        .variables = &variable,
                                        .workers = p->workers};
    trl_err err = TRL_OK;
    TRL_TRY(trl_formula_parse(p->ctx, &(trl_text){.chars = "div(grad(v))"}, &p->laplacian));
    TRL_TRY(trli_model_create(p->ctx, &request, &p->model));
    TRL_TRY(poisson_fields(p));
    TRL_TRY(poisson_add_sweep(p));
    TRL_TRY(poisson_add_residuals(p));
    TRL_TRY(poisson_add_step(p));
    trli_program *const programs[] = {p->sweep, p->residual, p->edge, p->start, p->ghosts, p->step};
    for (size_t i = 0; i < sizeof programs / sizeof *programs; ++i) {
        TRL_TRY(trli_program_analyse(programs[i]));
        TRL_TRY(trli_program_fold(programs[i]));
        TRL_TRY(trli_program_count_work(programs[i]));
        TRL_TRY(trli_program_part(programs[i]));
    }
    poisson_equalise(p);
    TRL_TRY(trli_model_freeze(p->model, NULL, NULL));
    TRL_TRY(trli_frame_create(p->model, &p->frame));
done:
    return err;
}

/* On a grid of n x n cells, a patch for each rank. */
static inline void poisson_create(poisson *p, trl_context *ctx, trl_workers *workers, int n)
{
    const trl_grid grid = {.dim = 2, .cells = {n, n, 1}, .length = {1, 1, 1}, .spacing = {1.0 / n, 1.0 / n, 1}};
    const int ranks = trl_context_ranks(ctx), rows = ranks % 2 == 0 && ranks > 2 ? 2 : 1;
    *p = (poisson){.ctx = ctx, .workers = workers};
    trl_err err = trl_layout_create(ctx, &grid, (int[3]){ranks / rows, rows, 1}, NULL, &p->layout);
    if (err == TRL_OK) err = poisson_make(p);
    ck_assert_msg(err == TRL_OK, "%s: %s", trl_err_name(err), test_messages());
}

static inline void poisson_destroy(poisson *p)
{
    trli_frame_destroy(&p->frame);
    trli_model_destroy(&p->model);
    trl_formula_destroy(&p->laplacian);
    trl_layout_destroy(&p->layout);
}

/* Values of all that is held: ghosts too, which nobody reads before they are set. */
static inline void poisson_set(const poisson *p, int field, double (*value)(double x, double y))
{
    const trl_grid *grid = &p->layout->grid;
    for (int patch = 0; patch < p->layout->nlocal; ++patch) {
        const trl_array a = trli_frame_array(p->frame, field, patch, 0);
        const trl_gidx *first = p->layout->patch[patch].first;
        for (trl_lidx j = a.owned.lo[1]; j < a.owned.hi[1]; ++j)
            for (trl_lidx i = a.owned.lo[0]; i < a.owned.hi[0]; ++i)
                ((double *)a.at)[trl_array_offset(&a, i, j, 0)] =
                    value ? value(trl_grid_coordinate(grid, TRL_CELL, 0, first[0] + i),
                                  trl_grid_coordinate(grid, TRL_CELL, 1, first[1] + j))
                          : 0;
    }
    trli_frame_written(p->frame, field);
}

/* The same on any ranks for the same values. */
static inline uint64_t poisson_hash(const poisson *p, int field)
{
    uint64_t hash = 0;
    for (int patch = 0; patch < p->layout->nlocal; ++patch) {
        const trl_array a = trli_frame_array(p->frame, field, patch, 0);
        hash += trl_array_hash(p->layout, &p->layout->patch[patch], TRL_CELL, &a);
    }
    MPI_Allreduce(MPI_IN_PLACE, &hash, 1, MPI_UINT64_T, MPI_SUM, trl_context_comm(p->ctx));
    return hash;
}

static inline void poisson_swap(const poisson *p, int vector)
{
    trli_frame_swap(p->frame, p->now[vector], p->next[vector]);
}

/* The root mean square of what a program has found. */
static inline double poisson_norm(const poisson *p, int scalar)
{
    const trl_gidx *cells = p->layout->grid.cells;
    return sqrt(p->frame->scalar[scalar] / (double)(cells[0] * cells[1]));
}

#endif
