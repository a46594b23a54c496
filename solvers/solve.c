/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Systems of equations: their vectors and programs, and Newton's method. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "diagonal_impl.h"
#include "direct_impl.h"
#include "executor_impl.h"
#include "first_guess_impl.h"
#include "lifecycle_impl.h"
#include "lower_impl.h"
#include "lu_impl.h"
#include "memory_impl.h"
#include "multigrid_impl.h"
#include "parameters_impl.h"
#include "pseudo_time_impl.h"
#include "sides_impl.h"
#include "solve_look_impl.h"
#include "solve_prepare_impl.h"
#include "solve_reads_impl.h"
#include "solve_run_impl.h"
#include "solve_scale_impl.h"
#include "solve_vectors_impl.h"
#include "symbols_impl.h"
#include "told_sums_impl.h"

static trl_err no_memory(const trli_solver *s)
{
    return trli_no_memory(s->sim->ctx, NULL, "to solve for '%s'", s->ask.names);
}

bool trli_solver_has_gaps(const trli_solver *s)
{
    const trli_model *model = s->sim->model;
    bool any = false;
    for (int i = 0; i < s->ask.n; ++i) {
        const trli_variable *v = &model->variable[s->ask.variable[i]];
        any |= v->mask != NULL;
        for (int side = 0; side < 2 * model->layout->grid.dim; ++side)
            any |= trli_sides_set_parts(model, &v->boundary[side], v->location, side);
    }
    return any;
}

trl_err trli_solver_masked(const trli_solver *s, trli_instance *in, int i, trli_ir_value *value)
{
    trli_model *model = s->sim->model;
    const trli_variable *v = &model->variable[s->ask.variable[i]];
    trli_ir_value mask;
    trl_err err = TRL_OK;
    if (!in->fill.filled && trli_solver_has_gaps(s)) TRL_TRY(trli_instance_fill(in)); /* masks may read neighbours */
    TRL_TRY(trli_sides_replace_set(in, in->variable[s->ask.variable[i]], trli_ir_constant(&model->ir, 0), value));
    if (!v->mask) return TRL_OK;
    TRL_TRY(trli_lower_at(in, v->mask, v->names, v->location, &mask));
    *value = trli_ir_select(&model->ir, mask, *value, trli_ir_constant(&model->ir, 0));
done:
    return err;
}

static trl_err list_of_values(const trli_solver *s, trli_ir_value **list)
{
    *list = trli_new(s->sim->ctx, (size_t)s->ask.n + 1, sizeof **list);
    return *list ? TRL_OK : no_memory(s);
}

/* ---- the programs ---- */

static trl_err add_scalars(trli_solver *s, int **list)
{
    *list = trli_model_keep(s->sim->model, ((size_t)s->ask.n + 1) * sizeof **list);
    for (int i = 0; i < s->ask.n && *list; ++i) (*list)[i] = trli_model_add_scalar(s->sim->model, 0);
    return s->sim->model->ir.err;
}

/* The tangents of the unknowns, as variables of the model. */
static trl_err add_tangents(trli_solver *s)
{
    trli_model *model = s->sim->model;
    trl_err err = TRL_OK;
    TRL_TRY(trli_direction_add(model, trli_model_name(model, "%s:", s->ask.names), &s->direction));
    model->direction[s->direction - 1].solved = s->ask.names;
    if (s->d.now) trli_vector_multiplies(s, &s->d);
    for (int i = 0; i < s->ask.n; ++i) {
        trli_variable variable = model->variable[s->ask.variable[i]];
        variable.name = trli_model_name(model, "%s:d%d", variable.name, s->direction);
        variable.initial = NULL;
        variable.ddt = NULL;
        variable.direction = s->direction;
        variable.of = s->ask.variable[i];
        TRL_TRY(trli_variable_add(model, &variable));
    }
done:
    return err;
}

static trl_err value_of_residual(const trli_solver *s, trli_instance *in, int i, bool of_zero, trli_ir_value *value)
{
    trl_err err = TRL_OK;
    if (of_zero) return s->ask.at_zero(s->ask.data, in, value);
    TRL_TRY(s->ask.residual(s->ask.data, in, i, value));
    *value = trli_ir_unary(&s->sim->model->ir, TRLI_OP_NEG, *value);
    err = trli_solver_masked(s, in, i, value);
done:
    return err;
}

/* The residual over what is tolerated of each unknown, which has the values x. */
static trl_err compile_error(trli_solver *s, trli_program *program, const trli_ir_value *r, int *scalar)
{
    trli_ir *ir = &s->sim->model->ir;
    trli_ir_value *ratio = NULL;
    trl_err err = TRL_OK;
    *scalar = -1;
    if (s->ask.absolute == 0) return TRL_OK;
    TRL_TRY(list_of_values(s, &ratio));
    trli_solver_read(s, s->x.now, ratio);
    for (int i = 0; i < s->ask.n; ++i) {
        const trli_ir_value x = trli_ir_unary(ir, TRLI_OP_ABS, ratio[i]);
        const trli_ir_value tolerated =
            trli_ir_binary(ir, TRLI_OP_ADD, trli_ir_constant(ir, s->ask.absolute),
                           trli_ir_binary(ir, TRLI_OP_MUL, trli_ir_constant(ir, s->ask.relative), x));
        ratio[i] = trli_ir_binary(ir, TRLI_OP_DIV, r[i], tolerated);
    }
    err = trli_solver_dot(s, program, "error", ratio, ratio, scalar);
done:
    trli_free(ratio);
    return err;
}

/* r = values, which are read from there then, and sums of it. */
static trl_err store_residual(trli_solver *s, trli_residual *r, trli_ir_value *value)
{
    trl_err err = TRL_OK;
    r->sum = trli_model_keep(s->sim->model, ((size_t)s->ask.n + 1) * sizeof *r->sum);
    TRL_TRY(s->sim->model->ir.err);
    TRL_TRY(trli_solver_store(s, r->program, s->r.now, value));
    trli_solver_read(s, s->r.now, value);
    TRL_TRY(trli_solver_dot(s, r->program, "r.r", value, value, &r->rr));
    for (int i = 0; i < s->ask.n; ++i) {
        TRL_TRY(trli_program_reduce(r->program, "sum of r", value[i],
                                    s->sim->model->variable[s->ask.variable[i]].location, TRLI_REDUCE_SUM, true, NULL,
                                    &r->sum[i]));
        TRL_TRY(trli_program_add_scalar_root(r->program, r->sum[i]));
    }
done:
    return err;
}

/* The square of the residual of zero, beside that of x. value: room. */
static trl_err compile_zero(trli_solver *s, trli_instance *in, trli_ir_value *value, trli_residual *r)
{
    trl_err err = TRL_OK;
    r->zero = -1;
    if (!s->ask.at_zero) return TRL_OK;
    for (int i = 0; i < s->ask.n; ++i) TRL_TRY(value_of_residual(s, in, i, true, &value[i]));
    err = trli_solver_dot(s, r->program, "residual of zero", value, value, &r->zero);
done:
    return err;
}

/* r = -F(x), sums of it, and what the request calls its size and tolerates. */
static trl_err compile_residual(trli_solver *s, const char *name, bool sized, bool of_zero, trli_residual *r)
{
    trli_instance *in = NULL, *old = NULL;
    trli_ir_value *value = NULL;
    trl_err err = TRL_OK;
    TRL_TRY(list_of_values(s, &value));
    TRL_TRY(trli_solver_begin(s, name, &r->program));
    TRL_TRY(s->ask.instance(s->ask.data, r->program, &in, &old));
    if (!s->ask.keeps_points) TRL_TRY(trli_instance_planes(in, false));
    TRL_TRY(trli_instance_fill(in));
    TRL_TRY(trli_instance_prepare(in));
    for (int i = 0; i < s->ask.n; ++i) TRL_TRY(value_of_residual(s, in, i, of_zero, &value[i]));
    TRL_TRY(store_residual(s, r, value));
    TRL_TRY(compile_error(s, r->program, value, &r->error));
    if (!of_zero) TRL_TRY(compile_zero(s, in, value, r));
    r->size = -1;
    if (sized) {
        trli_ir_value size;
        TRL_TRY(s->ask.size(s->ask.data, in, of_zero, &size));
        TRL_TRY(trli_solver_masked(s, in, 0, &size));
        TRL_TRY(trli_solver_dot(s, r->program, "size", &size, &size, &r->size));
    }
    for (int i = 0; i < s->ask.n && !of_zero; ++i) TRL_TRY(trli_program_add_root(r->program, s->x.now[i]));
done:
    trli_instance_destroy(&in);
    trli_instance_destroy(&old);
    trli_free(value);
    return err;
}

static trl_err compile_residuals(trli_solver *s)
{
    const bool sized = s->ask.size != NULL;
    trl_err err = TRL_OK;
    s->size = -1;
    TRL_TRY(compile_residual(s, "residual", sized, false, &s->residual));
    if (sized) TRL_TRY(compile_residual(s, "residual alone", false, false, &s->residual_alone));
    if (!s->ask.at_zero) goto done;
    TRL_TRY(compile_residual(s, "residual of zero", sized, true, &s->of_zero));
    if (!sized) goto done;
    TRL_TRY(compile_residual(s, "residual of zero alone", false, true, &s->of_zero_alone));
    trli_program_tells(s->of_zero_alone.program);
done:
    return err;
}

/* Terms need not be as small as the unknowns and the residual are. */
static trl_err compile_terms(trli_solver *s)
{
    trli_instance *in = NULL, *old = NULL;
    trli_ir_value *value = NULL;
    trl_err err = TRL_OK;
    TRL_TRY(list_of_values(s, &value));
    TRL_TRY(trli_solver_begin(s, "sizes of terms", &s->terms));
    s->terms->once = true;
    TRL_TRY(s->ask.instance(s->ask.data, s->terms, &in, &old));
    if (!s->ask.keeps_points) TRL_TRY(trli_instance_planes(in, false));
    TRL_TRY(trli_instance_fill(in));
    TRL_TRY(trli_instance_prepare(in));
    for (int i = 0; i < s->ask.n; ++i) {
        TRL_TRY(value_of_residual(s, in, i, false, &value[i]));
        value[i] = trli_ir_size_of_terms(&s->sim->model->ir, value[i]);
    }
    TRL_TRY(trli_solver_store(s, s->terms, s->q.now, value));
    trli_solver_read(s, s->q.now, value);
    err = trli_solver_dot(s, s->terms, "sizes of terms", value, value, &s->terms_size);
done:
    trli_instance_destroy(&in);
    trli_instance_destroy(&old);
    trli_free(value);
    return err;
}

/* q = J d */
static trl_err compile_apply(trli_solver *s)
{
    trli_model *model = s->sim->model;
    trli_instance *in = NULL, *old = NULL;
    trli_ir_value *value = NULL;
    bool varies = false, mask_varies = false;
    trl_err err = TRL_OK;
    TRL_TRY(list_of_values(s, &value));
    TRL_TRY(trli_solver_begin(s, "product", &s->apply));
    TRL_TRY(s->ask.instance(s->ask.data, s->apply, &in, &old));
    const int first = s->first_tangent = model->nvariables - s->ask.n;
    for (int i = 0; i < s->ask.n; ++i) in->variable[first + i] = s->d.now[i];
    for (int v = 0; v < s->sim->nequations; ++v) {
        s->in_field[v] = in->variable[v];
        s->old_field[v] = old ? old->variable[v] : -1;
    }
    TRL_TRY(trli_solver_fill_products(s, in));
    for (int i = 0; i < s->ask.n; ++i) {
        const trl_location location = model->variable[s->ask.variable[i]].location;
        TRL_TRY(s->ask.residual(s->ask.data, in, i, &value[i]));
        TRL_TRY(trli_tangent(in, s->direction, value[i], &value[i]));
        if (value[i] < 0 && s->ask.missing)
            TRL_TRY(trl_fail(s->sim->ctx, TRL_ERR_INPUT, &s->ask.place, "%s", s->ask.missing));
        if (value[i] < 0 && s->ask.n == 1)
            TRL_TRY(trl_fail(s->sim->ctx, TRL_ERR_INPUT, &s->ask.place,
                             "the equation does not contain its unknown '%s': nothing can be solved for",
                             s->ask.names));
        if (value[i] < 0) value[i] = trli_ir_constant(&model->ir, 0);
        TRL_TRY(trli_solver_depends(s, s->apply, value[i], location, &varies));
        TRL_TRY(trli_solver_masked(s, in, i, &value[i]));
        TRL_TRY(trli_solver_depends(s, s->apply, value[i], location, &mask_varies)); /* notes what masks read */
    }
    TRL_TRY(trli_solver_sides_depend(s, &varies));
    s->linear = !varies;
    TRL_TRY(trli_solver_find_needs(s, in, old));
    TRL_TRY(trli_solver_store(s, s->apply, s->q.now, value));
done:
    trli_instance_destroy(&in);
    trli_instance_destroy(&old);
    trli_free(value);
    return err;
}

static trl_err sum_up(trli_solver *s, trli_program *program, const int *field, int i, int *sum)
{
    trli_model *model = s->sim->model;
    return trli_program_reduce(program, "sum", trli_ir_field(&model->ir, field[i]),
                               model->variable[s->ask.variable[i]].location, TRLI_REDUCE_SUM, true, NULL, sum);
}

/* With which a vector has the mean that is wanted, of an unknown of which it is free; of others sums may be of points
 * that sides have still to set. */
static trl_err offset_of_mean(trli_solver *s, trli_program *program, const trli_vector *v, int i, trli_ir_value *offset)
{
    trli_ir *ir = &s->sim->model->ir;
    int sum, scalar;
    trl_err err = TRL_OK;
    TRL_TRY(sum_up(s, program, v->now, i, &sum));
    const trli_ir_value mean =
        trli_ir_binary(ir, TRLI_OP_DIV, trli_ir_scalar(ir, sum), trli_ir_scalar(ir, s->x_points[i]));
    const trli_ir_value change = trli_ir_binary(ir, TRLI_OP_SUB, trli_ir_scalar(ir, s->x_wanted[i]), mean);
    TRL_TRY(trli_program_scalar(program, "offset",
                                trli_ir_select(ir, trli_ir_scalar(ir, s->x_free[i]), change, trli_ir_constant(ir, 0)),
                                &scalar));
    *offset = trli_ir_scalar(ir, scalar);
done:
    return err;
}

/* next = now + offset; offset: NULL: of the mean. */
static trl_err compile_offset(trli_solver *s, const char *name, const trli_vector *v, const int *offset,
                              trli_program **program)
{
    trli_ir *ir = &s->sim->model->ir;
    trli_instance *in = NULL, *old = NULL;
    trli_ir_value *value = NULL;
    trl_err err = TRL_OK;
    TRL_TRY(list_of_values(s, &value));
    TRL_TRY(trli_solver_begin(s, name, program));
    TRL_TRY(s->ask.instance(s->ask.data, *program, &in, &old));
    for (int i = 0; i < s->ask.n; ++i) {
        if (offset)
            value[i] = trli_ir_scalar(ir, offset[i]);
        else
            TRL_TRY(offset_of_mean(s, *program, v, i, &value[i]));
        TRL_TRY(trli_solver_masked(s, in, i, &value[i]));
        value[i] = trli_ir_binary(ir, TRLI_OP_ADD, trli_ir_field(ir, v->now[i]), value[i]);
    }
    TRL_TRY(trli_solver_store(s, *program, v->next, value));
done:
    trli_instance_destroy(&in);
    trli_instance_destroy(&old);
    trli_free(value);
    return err;
}

/* x' = a + length * (b - a), or a + length * b */
static trl_err compile_step(trli_solver *s, const char *what, const int *a, const int *b, bool between,
                            trli_program **program)
{
    trli_ir *ir = &s->sim->model->ir;
    trli_ir_value *value = NULL;
    trl_err err = TRL_OK;
    TRL_TRY(list_of_values(s, &value));
    TRL_TRY(trli_solver_begin(s, what, program));
    for (int i = 0; i < s->ask.n; ++i) {
        const trli_ir_value from = trli_ir_field(ir, a[i]);
        trli_ir_value along = trli_ir_field(ir, b[i]);
        if (between) along = trli_ir_binary(ir, TRLI_OP_SUB, along, from);
        along = trli_ir_binary(ir, TRLI_OP_MUL, trli_ir_scalar(ir, s->length), along);
        value[i] = trli_ir_binary(ir, TRLI_OP_ADD, from, along);
    }
    err = trli_solver_store(s, *program, s->x.next, value);
done:
    trli_free(value);
    return err;
}

static trl_err compile_means(trli_solver *s, const char *what, const int *field, int of)
{
    trli_program **program = &s->means[of];
    trl_err err = TRL_OK;
    TRL_TRY(trli_solver_begin(s, what, program));
    for (int i = 0; i < s->ask.n; ++i) {
        TRL_TRY(sum_up(s, *program, field, i, &s->x_sum[of][i]));
        TRL_TRY(trli_program_add_scalar_root(*program, s->x_sum[of][i]));
    }
    if (s->ask.size) trli_program_tells(*program);
done:
    return err;
}

/* x = from */
static trl_err compile_guess(trli_solver *s)
{
    trli_ir_value *value = NULL;
    trl_err err = TRL_OK;
    TRL_TRY(list_of_values(s, &value));
    TRL_TRY(trli_solver_begin(s, "first guess", &s->guess));
    trli_solver_read(s, s->ask.from, value);
    err = trli_solver_store(s, s->guess, s->x.next, value);
done:
    trli_free(value);
    return err;
}

/* Programs of x alone: zero, a step along c, sums and offsets. */
static trl_err compile_moves(trli_solver *s)
{
    trli_ir *ir = &s->sim->model->ir;
    trli_ir_value *value = NULL;
    trl_err err = TRL_OK;
    TRL_TRY(list_of_values(s, &value));
    TRL_TRY(trli_solver_begin(s, "zero", &s->zero));
    for (int i = 0; i < s->ask.n; ++i) value[i] = trli_ir_constant(ir, 0);
    TRL_TRY(trli_solver_store(s, s->zero, s->x.next, value));
    TRL_TRY(compile_means(s, "mean", s->x.now, 0));
    if (s->ask.from) TRL_TRY(compile_means(s, "mean of the guess", s->ask.from, 1));
    TRL_TRY(compile_offset(s, "shift", &s->x, NULL, &s->shift));
    TRL_TRY(compile_offset(s, "balance", &s->r, s->r_offset, &s->centre));
    trli_solver_read(s, s->r.next, value);
    TRL_TRY(trli_solver_dot(s, s->centre, "r.r", value, value, &s->centred_rr));
    if (s->ask.from) TRL_TRY(compile_step(s, "guess", s->ask.from, s->x.now, true, &s->extrapolate));
    if (s->ask.from) TRL_TRY(compile_guess(s));
    if (!s->linear) err = compile_step(s, "step", s->x.now, s->c.now, false, &s->move);
done:
    trli_free(value);
    return err;
}

/* ---- making ---- */

static trl_err copy_request(trli_solver *s, const trli_solve_request *request)
{
    trli_model *model = s->sim->model;
    const size_t n = (size_t)request->n, bytes = (n + 1) * sizeof(int), equations = (size_t)s->sim->nequations;
    int *variable = trli_model_keep(model, bytes), *field = trli_model_keep(model, bytes);
    trl_err err = TRL_OK;
    model->joint = true;
    TRL_TRY(model->ir.err);
    s->ask = *request;
    s->ask.names = trli_model_name(model, "%s", request->names);
    s->settings = *request->settings;
    s->ask.variable = memcpy(variable, request->variable, n * sizeof(int));
    s->ask.field = memcpy(field, request->field, n * sizeof(int));
    s->singular = trli_model_keep(model, n + 1);
    s->balanced = trli_model_keep(model, n + 1);
    s->points = trli_model_keep(model, (n + 1) * sizeof *s->points);
    s->inverse_value = trli_model_keep(model, (n + 1) * sizeof *s->inverse_value);
    s->bound_number = trli_model_keep(model, (2 * n + 1) * sizeof *s->bound_number);
    s->bound_scalar = trli_model_keep(model, 2 * bytes);
    s->skewness_number = trli_model_keep(model, 3 * (n + 1) * sizeof *s->skewness_number);
    s->skewness_scalar = trli_model_keep(model, 3 * bytes);
    s->in_field = trli_model_keep(model, (equations + 1) * sizeof *s->in_field);
    s->old_field = trli_model_keep(model, (equations + 1) * sizeof *s->old_field);
    bool **const read[] = {&s->reads, &s->reads_old, &s->needs, &s->needs_old};
    for (int k = 0; k < 4; ++k) *read[k] = trli_model_keep(model, equations + 1);
    s->mean = trli_model_keep(model, (n + 1) * sizeof *s->mean);
    s->r_sum = trli_model_keep(model, (n + 1) * sizeof *s->r_sum);
    for (int k = 0; k < 2; ++k) s->x_sum[k] = trli_model_keep(model, bytes);
    TRL_TRY(model->ir.err);
    int **const lists[] = {&s->one, &s->noise, &s->with_one, &s->r_offset, &s->x_points, &s->x_wanted, &s->x_free};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; ++i) TRL_TRY(add_scalars(s, lists[i]));
    s->length = trli_model_add_scalar(model, 0);
    for (int i = 0; i < s->ask.n; ++i) s->inverse_value[i] = TRLI_NO_VALUE;
    err = model->ir.err;
done:
    return err;
}

static trl_err add_vectors(trli_solver *s)
{
    trl_err err = TRL_OK;
    TRL_TRY(trli_vector_add(s, "solved", true, &s->x));
    for (int i = 0; i < s->ask.n; ++i) { /* x is what the caller has; all points of it move */
        s->x.now[i] = s->ask.field[i];
        memset(s->sim->model->field[s->x.next[i]].fixed_planes, 0, sizeof s->sim->model->field->fixed_planes);
    }
    TRL_TRY(trli_vector_add(s, "residual", true, &s->r));
    TRL_TRY(trli_vector_add(s, "direction", true, &s->d));
    TRL_TRY(trli_vector_add(s, "product", false, &s->q));
done:
    return err;
}

static trl_err compile(trli_solver *s)
{
    trl_err err = TRL_OK;
    TRL_TRY(add_vectors(s));
    TRL_TRY(add_tangents(s));
    TRL_TRY(compile_apply(s));
    if (!s->ask.products_alone) TRL_TRY(compile_residuals(s));
    if (!s->ask.products_alone) TRL_TRY(compile_terms(s));
    s->c = s->x;
    if (!s->linear && !s->ask.products_alone) TRL_TRY(trli_vector_add(s, "correction", true, &s->c));
    const trl_solve_method method = s->settings.method;
    if (s->settings.preconditioner != TRL_PRECONDITIONER_NONE || method == TRL_SOLVE_MULTIGRID ||
        method == TRL_SOLVE_PSEUDO_TIME)
        TRL_TRY(trli_solver_compile_diagonal(s));
    if (s->ask.products_alone) {
        s->stats = (trl_solve_stats){.unknowns = s->ask.names, .linear = s->linear};
        TRL_TRY(trli_solver_choose_preconditioner(s));
        if (s->inverse_value[0] >= 0 && s->settings.preconditioner != TRL_PRECONDITIONER_MULTIGRID)
            err = trli_solver_compile_coupling(s);
        goto done;
    }
    TRL_TRY(trli_solver_compile_trials(s));
    TRL_TRY(compile_moves(s));
    TRL_TRY(trli_solver_compile_scaling(s));
    if (method != TRL_SOLVE_PSEUDO_TIME) TRL_TRY(trli_newton_compile(s));
    s->stats = (trl_solve_stats){.unknowns = s->ask.names, .linear = s->linear};
    if (method == TRL_SOLVE_PSEUDO_TIME) return trli_pseudo_time_compile(s);
    TRL_TRY(trli_solver_choose_direct(s));
    if (method != TRL_SOLVE_DIRECT && method != TRL_SOLVE_LU) TRL_TRY(trli_solver_choose_preconditioner(s));
    TRL_TRY(trli_krylov_compile(s));
    err = trli_guess_history_compile(s);
done:
    return err;
}

trl_err trli_solver_add(trl_simulation *sim, const trli_solve_request *request, trli_solver **solver)
{
    trl_err err = TRL_OK;
    trli_solver *s = *solver = trli_new(sim->ctx, 1, sizeof *s);
    if (!s) return trli_no_memory(sim->ctx, NULL, "for a solver");
    s->sim = sim;
    s->power = s->trial = 1;
    s->first_field = sim->model->nfields;
    TRL_TRY(copy_request(s, request));
    TRL_TRY(compile(s));
    s->end_field = sim->model->nfields;
done:
    return err;
}

trl_err trli_solver_add_given(trli_solver *solver, const int *right)
{
    trli_solver *s = solver;
    trli_residual *r = &s->given;
    trli_ir_value *value = NULL;
    trl_err err = TRL_OK;
    r->size = r->error = -1;
    if (s->settings.method == TRL_SOLVE_PSEUDO_TIME)
        return trl_fail(
            s->sim->ctx, TRL_ERR_INPUT, &s->settings.place,
            "bdf needs '%s' for products with the Jacobian, which steps in pseudo-time do not solve for: use "
            "method auto",
            s->ask.names);
    TRL_TRY(list_of_values(s, &value));
    TRL_TRY(trli_solver_begin(s, "right-hand side", &r->program));
    trli_solver_read(s, right, value);
    for (int i = 0; i < s->ask.n; ++i) value[i] = trli_ir_unary(&s->sim->model->ir, TRLI_OP_NEG, value[i]);
    err = store_residual(s, r, value);
done:
    trli_free(value);
    return err;
}

trl_err trli_solver_add_level(trl_simulation *sim, const trli_solver *finest, const trli_solve_request *request,
                              const int *old_field, trli_solver **solver)
{
    trl_err err = TRL_OK;
    trli_solver *s = *solver = trli_new(sim->ctx, 1, sizeof *s);
    if (!s) return trli_no_memory(sim->ctx, NULL, "for a solver");
    s->sim = sim;
    s->finest = finest;
    s->first_field = sim->model->nfields;
    TRL_TRY(copy_request(s, request));
    s->ask.data = s;
    memcpy(s->old_field, old_field, (size_t)sim->nequations * sizeof *old_field);
    TRL_TRY(add_tangents(s));
    TRL_TRY(trli_solver_compile_diagonal(s));
done:
    if (err != TRL_OK) trli_solver_destroy(solver);
    return err;
}

void trli_solver_destroy(trli_solver **solver)
{
    if (*solver) trli_multigrid_destroy(&(*solver)->multigrid);
    if (*solver) trli_direct_destroy(&(*solver)->direct);
    if (*solver) trli_lu_free((*solver)->made[TRL_SOLVE_LU]);
    if (*solver) trli_chain_destroy(&(*solver)->launch);
    if (*solver) trli_free((*solver)->scalar);
    trli_free(*solver);
    *solver = NULL;
}
