/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Smoothing by relaxation of points or lines of one colour after those of another. No two neighbours have one colour,
 * so within a colour any order gives the same bits. In the adjoint of a sweep colours come in the opposite order. */
#include <math.h>

#include "compile_impl.h"
#include "execution_impl.h"
#include "executor_impl.h"
#include "grid_level_impl.h"
#include "line_sweeps_impl.h"
#include "memory_impl.h"

enum { COARSEST_SWEEPS = 8 };

struct trli_relaxation {
    int colour;                    /* scalar: the present one */
    int steps;                     /* of a sweep: colours of points, or of lines along all axes */
    trli_program *first, *program; /* of points: from zero, and from what there is */
    trli_program *last;            /* of points: `program`, with sums; of lines: the sums. NULL: not asked for */
    trli_program *clear, *product; /* of lines: z = 0, and r = J z */
    int nlines;                    /* axes of lines; 0: points */
    trli_line_sweeps *lines[3];    /* [nlines] */
};

const char *trli_relaxation_missing(const trli_solver *s)
{
    const trl_grid *grid = &s->sim->layout->grid;
    const unsigned axes = trli_line_axes(s, grid);
    bool all = true;
    if (s->ask.n != 1) return "smoothers in colours are for one unknown";
    if (!s->star) return "smoothers in colours need rows of the nearest points along axes";
    if (s->settings.smoother != TRL_SMOOTHER_LINE) return NULL;
    for (int axis = 0; axis < grid->dim; ++axis) {
        bool across = false;
        for (int a = 0; a < grid->dim; ++a) across |= a != axis && grid->cells[a] > 1;
        all &= across || !(axes >> axis & 1);
    }
    return all ? NULL : "a line is the whole grid";
}

/* ---- points ---- */

static trli_ir_value number(trli_ir *ir, double value)
{
    return trli_ir_constant(ir, value);
}

/* a - n * floor(a / n) */
static trli_ir_value remainder_of(trli_ir *ir, trli_ir_value a, int n)
{
    const trli_ir_value quotient = trli_ir_binary(ir, TRLI_OP_DIV, a, number(ir, n)),
                        whole = trli_ir_function(ir, TRL_FUNCTION_FLOOR, quotient, TRLI_NO_VALUE);
    return trli_ir_binary(ir, TRLI_OP_SUB, a, trli_ir_binary(ir, TRLI_OP_MUL, number(ir, n), whole));
}

/* The colour of a point: the sum over the axes of its place's remainder by 2, but of 2 for the last of an odd period.
 */
static trli_ir_value colour_of(const trli_grid_level *l, int colours)
{
    const trl_grid *grid = &l->sim->layout->grid;
    const trl_location location = l->sim->model->variable[l->solver->ask.variable[0]].location;
    trli_ir *ir = &l->sim->model->ir;
    trli_ir_value sum = number(ir, 0);
    for (int a = 0; a < grid->dim; ++a) {
        const int bit = location >> a & 1, n = (int)trl_grid_points(grid, location, a);
        const trli_ir_value x = trli_ir_coordinate(ir, a, bit),
                            from = trli_ir_binary(ir, TRLI_OP_SUB, x, number(ir, grid->origin[a])),
                            cells = trli_ir_binary(ir, TRLI_OP_DIV, from, number(ir, grid->spacing[a])),
                            moved = bit ? trli_ir_binary(ir, TRLI_OP_ADD, cells, number(ir, 0.5)) : cells,
                            i = trli_ir_function(ir, TRL_FUNCTION_FLOOR, moved, TRLI_NO_VALUE);
        trli_ir_value own = remainder_of(ir, i, 2);
        if (trli_colour_is_odd(grid, location, a))
            own = trli_ir_select(ir, trli_ir_binary(ir, TRLI_OP_EQ, i, number(ir, n - 1)), number(ir, 2), own);
        sum = trli_ir_binary(ir, TRLI_OP_ADD, sum, own);
    }
    return remainder_of(ir, sum, colours);
}

/* z' = z + inverse * (b - J z) at points of a colour; from zero inverse * b there. */
static trl_err compile_points(trli_grid_level *l, const char *name, bool from_zero, trli_program **program)
{
    const trli_relaxation *r = l->relaxation;
    trli_solver *s = l->solver;
    trli_ir *ir = &s->sim->model->ir;
    trli_instance *in = NULL, *old = NULL;
    trli_ir_value value, z = from_zero ? number(ir, 0) : trli_ir_field(ir, l->z.now[0]);
    trl_err err = TRL_OK;
    TRL_TRY(trli_solver_begin(s, name, program));
    TRL_TRY(s->ask.instance(s->ask.data, *program, &in, &old));
    value = trli_ir_field(ir, l->b[0]);
    if (!from_zero) TRL_TRY(trli_grid_level_residuals(l, in, &value));
    value = trli_ir_binary(ir, TRLI_OP_ADD, z, trli_ir_binary(ir, TRLI_OP_MUL, s->inverse_value[0], value));
    value = trli_ir_select(ir, trli_ir_binary(ir, TRLI_OP_EQ, colour_of(l, r->steps), trli_ir_scalar(ir, r->colour)),
                           value, z);
    TRL_TRY(trli_solver_masked(s, in, 0, &value));
    err = trli_solver_store(s, *program, l->z.next, &value);
done:
    trli_instance_destroy(&in);
    trli_instance_destroy(&old);
    return err;
}

/* ---- lines ---- */

static trl_err compile_lines(trli_grid_level *l)
{
    trli_relaxation *r = l->relaxation;
    trli_solver *s = l->solver;
    trli_instance *in = NULL, *old = NULL;
    const unsigned axes = trli_line_axes(s, &l->sim->layout->grid);
    trli_ir_value value = number(&s->sim->model->ir, 0);
    trl_err err = TRL_OK;
    TRL_TRY(trli_solver_begin(s, "start of lines", &r->clear));
    TRL_TRY(trli_solver_store(s, r->clear, l->z.next, &value));
    TRL_TRY(trli_solver_begin(s, "product of lines", &r->product));
    TRL_TRY(s->ask.instance(s->ask.data, r->product, &in, &old));
    TRL_TRY(trli_grid_level_products(l, in, l->z.now, &value));
    TRL_TRY(trli_solver_masked(s, in, 0, &value));
    TRL_TRY(trli_solver_store(s, r->product, l->r.now, &value));
    for (int a = 0; a < 3; ++a) {
        if (!(axes >> a & 1)) continue;
        TRL_TRY(trli_line_sweeps_create(l, a, &r->lines[r->nlines]));
        r->steps += trli_line_sweeps_colours(r->lines[r->nlines++]);
    }
done:
    trli_instance_destroy(&in);
    trli_instance_destroy(&old);
    return err;
}

/* ---- both ---- */

trl_err trli_relaxation_compile(trli_grid_level *l)
{
    const trl_grid *grid = &l->sim->layout->grid;
    const trl_location location = l->sim->model->variable[l->solver->ask.variable[0]].location;
    trl_err err = TRL_OK;
    trli_relaxation *r = l->relaxation = trli_new(l->sim->ctx, 1, sizeof *r);
    if (!r) return trli_no_memory(l->sim->ctx, NULL, "for multigrid");
    r->colour = trli_model_add_scalar(l->sim->model, 0);
    TRL_TRY(l->sim->model->ir.err);
    if (l->solver->settings.smoother == TRL_SMOOTHER_LINE) return compile_lines(l);
    r->steps = 2;
    for (int a = 0; a < grid->dim; ++a) r->steps += r->steps == 2 && trli_colour_is_odd(grid, location, a);
    TRL_TRY(compile_points(l, "start of relaxation", true, &r->first));
    err = compile_points(l, "relaxation", false, &r->program);
done:
    return err;
}

void trli_relaxation_destroy(trli_relaxation **relaxation)
{
    for (int i = 0; *relaxation && i < (*relaxation)->nlines; ++i) trli_line_sweeps_destroy(&(*relaxation)->lines[i]);
    trli_free(*relaxation);
    *relaxation = NULL;
}

trl_err trli_relaxation_compile_last(trli_grid_level *l, const int *other, int *with_b, int *with_other)
{
    trli_relaxation *r = l->relaxation;
    trli_solver *s = l->solver;
    const int *z = r->nlines ? l->z.now : l->z.next;
    trli_ir_value a, b;
    trl_err err = TRL_OK;
    if (r->nlines)
        TRL_TRY(trli_solver_begin(s, "sums of lines", &r->last));
    else
        TRL_TRY(compile_points(l, "last relaxation", false, &r->last));
    trli_solver_read(s, z, &a);
    trli_solver_read(s, l->b, &b);
    TRL_TRY(trli_solver_dot(s, r->last, "r.z", &b, &a, with_b));
    trli_solver_read(s, other, &b);
    err = trli_solver_dot(s, r->last, "r.z before", &b, &a, with_other);
done:
    return err;
}

void trli_relaxation_follow(const trli_grid_level *l)
{
    const trli_relaxation *r = l->relaxation;
    if (!r) return;
    const trli_program *const programs[] = {r->first, r->program, r->last, r->clear, r->product};
    for (size_t i = 0; i < sizeof programs / sizeof *programs; ++i)
        if (programs[i]) trl_graph_follow(programs[i]->run->graph, l->residual->run->graph);
}

/* ---- running ---- */

static void note(trl_err *first, trl_err err)
{
    if (*first == TRL_OK) *first = err;
}

/* z = 1 at some points, r = J z. */
static trl_err multiply(void *data)
{
    const trli_grid_level *l = data;
    trl_err err = TRL_OK;
    if (l->clip) {
        err = trli_solver_run_alone(l->solver, l->clip);
        trli_vector_swap(l->solver, &l->z);
    }
    note(&err, trli_solver_run_alone(l->solver, l->relaxation->product));
    return err;
}

trl_err trli_relaxation_prepare(const trli_grid_level *l, trl_loop *loop)
{
    trl_err err = TRL_OK;
    for (int i = 0; i < l->relaxation->nlines; ++i)
        note(&err, trli_line_sweeps_find(l->relaxation->lines[i], multiply, (void *)l, loop));
    return err;
}

/* first: of a smoothing from zero. */
static void relax_points(trl_err *err, const trli_grid_level *l, int colour, bool first, bool sums)
{
    const trli_relaxation *r = l->relaxation;
    trli_solver_set(l->solver, r->colour, colour);
    note(err, trli_solver_run_alone(l->solver, sums ? r->last : first ? r->first : r->program));
    trli_vector_swap(l->solver, &l->z);
}

static void relax_lines(trl_err *err, const trli_grid_level *l, int colour, bool first, bool sums, trl_loop *loop)
{
    const trli_relaxation *r = l->relaxation;
    int i = 0;
    for (; colour >= trli_line_sweeps_colours(r->lines[i]); ++i) colour -= trli_line_sweeps_colours(r->lines[i]);
    if (first) {
        note(err, trli_solver_run_alone(l->solver, r->clear));
        trli_vector_swap(l->solver, &l->z);
    } else {
        note(err, trli_solver_run_alone(l->solver, l->residual));
    }
    note(err, trli_line_sweeps_run(r->lines[i], first ? l->b[0] : l->r.now[0], l->z.now[0], colour, loop));
    if (sums) note(err, trli_solver_run_alone(l->solver, r->last));
}

trl_err trli_relax(const trli_grid_level *l, const trli_smoothing *how, trl_loop *loop)
{
    const trli_relaxation *r = l->relaxation;
    const int sweeps = how->coarsest ? COARSEST_SWEEPS : 1, n = sweeps * r->steps;
    trl_err err = TRL_OK;
    for (int k = 0; k < n; ++k) {
        const bool back = how->coarsest ? k >= n / 2 : how->adjoint, first = how->from_zero && k == 0;
        const int colour = back ? r->steps - 1 - k % r->steps : k % r->steps;
        if (r->nlines)
            relax_lines(&err, l, colour, first, how->sums && k + 1 == n, loop);
        else
            relax_points(&err, l, colour, first, how->sums && k + 1 == n);
    }
    return err;
}

static double bytes_of(const trli_program *program)
{
    return program ? (double)program->run->bytes_moved : 0;
}

double trli_relaxation_bytes(const trli_grid_level *l, bool coarsest)
{
    const trli_relaxation *r = l->relaxation;
    const int sweeps = coarsest ? COARSEST_SWEEPS : 2, others = r->steps * sweeps - 1;
    if (!r->nlines) return bytes_of(r->first) + others * bytes_of(r->program);
    double bytes = bytes_of(r->clear) + others * bytes_of(l->residual);
    for (int i = 0; i < r->nlines; ++i) bytes += sweeps * trli_line_sweeps_bytes(r->lines[i]);
    return bytes;
}
