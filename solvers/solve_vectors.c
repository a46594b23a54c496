/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* A solver's vectors: fields that programs read and write, and what the programs of all methods are made of. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "compile_impl.h"
#include "first_guess_impl.h"
#include "lifecycle_impl.h"
#include "memory_impl.h"
#include "partials_impl.h"
#include "sides_impl.h"
#include "solve_vectors_impl.h"

static int add_field(trli_solver *s, const char *name, int i)
{
    trli_model *model = s->sim->model;
    const trli_variable *v = &model->variable[s->ask.variable[i]];
    const int field = trli_model_add_field(model, trli_model_name(model, "%s:%s", v->name, name), v->location);
    if (field < 0) return field;
    trli_model_field *f = &model->field[field];
    f->persistent = f->keeps_planes = true;
    memcpy(f->fixed_planes, model->field[s->ask.field[i]].fixed_planes, sizeof f->fixed_planes);
    return field;
}

trl_err trli_vector_add(trli_solver *s, const char *name, bool pair, trli_vector *v)
{
    trli_model *model = s->sim->model;
    const size_t bytes = ((size_t)s->ask.n + 1) * sizeof(int);
    v->now = trli_model_keep(model, bytes);
    v->next = pair ? trli_model_keep(model, bytes) : NULL;
    for (int i = 0; i < s->ask.n && model->ir.err == TRL_OK; ++i) {
        v->now[i] = add_field(s, name, i);
        if (pair) v->next[i] = add_field(s, trli_model_name(model, "%s'", name), i);
    }
    return model->ir.err;
}

void trli_vector_multiplies(const trli_solver *s, const trli_vector *v)
{
    trli_model *model = s->sim->model;
    for (int i = 0; i < s->ask.n; ++i) {
        const trli_variable *variable = &model->variable[s->ask.variable[i]];
        trli_model_field *f = &model->field[v->now[i]];
        f->exchanged = true;
        f->boundary = (trli_boundary_source){variable->boundary, variable->names, variable->name, variable->place};
    }
}

void trli_vector_swap(const trli_solver *s, const trli_vector *v)
{
    for (int i = 0; i < s->ask.n; ++i) trli_frame_swap(s->sim->frame, v->now[i], v->next[i]);
}

double trli_solver_scalar(const trli_solver *s, int scalar)
{
    const trli_frame *frame = s->sim->frame;
    return frame->scalar_valid[scalar] & 1 ? frame->scalar[scalar] : (double)NAN;
}

void trli_solver_set(const trli_solver *s, int scalar, double value)
{
    s->sim->frame->scalar[scalar] = value;
    s->sim->frame->scalar_valid[scalar] = 1;
}

double trli_solver_norm(const trli_solver *s, double square)
{
    return sqrt(square / s->all_points);
}

/* Fields at the same points are computed in one sweep: their values read the same fields. */
static trl_err store_fields(trli_solver *s, trli_program *program, int n, const int *field, const trli_ir_value *value)
{
    const size_t room = (size_t)n + 1;
    int *to = trli_new(s->sim->ctx, room, sizeof *to);
    trli_ir_value *of = trli_new(s->sim->ctx, room, sizeof *of);
    bool *stored = trli_new(s->sim->ctx, room, sizeof *stored);
    trl_err err = TRL_OK;
    if (!to || !of || !stored) TRL_TRY(trli_no_memory(s->sim->ctx, NULL, "for a solver"));
    for (int i = 0; i < n; ++i) {
        int count = 0;
        for (int j = i; j < n; ++j) {
            if (stored[j] || (j > i && !trli_share_sweep(s->sim, field[i], field[j]))) continue;
            stored[j] = true;
            to[count] = field[j];
            of[count++] = value[j];
        }
        if (count > 0)
            TRL_TRY(trli_program_add_kernel(program, s->sim->model->field[field[i]].name, count, to, of, NULL));
        TRL_TRY(trli_program_add_root(program, field[i]));
    }
done:
    trli_free(to);
    trli_free(of);
    trli_free(stored);
    return err;
}

trl_err trli_solver_store(trli_solver *s, trli_program *program, const int *field, const trli_ir_value *value)
{
    return store_fields(s, program, s->ask.n, field, value);
}

trl_err trli_assignments_create(trli_solver *s, int vectors, trli_assignments *a)
{
    const int room = vectors * s->ask.n;
    *a = (trli_assignments){.s = s, .room = room};
    a->field = trli_new(s->sim->ctx, (size_t)room + 1, sizeof *a->field);
    a->value = trli_new(s->sim->ctx, (size_t)room + 1, sizeof *a->value);
    a->a = trli_new(s->sim->ctx, (size_t)s->ask.n + 1, sizeof *a->a);
    a->b = trli_new(s->sim->ctx, (size_t)s->ask.n + 1, sizeof *a->b);
    const bool all = a->field && a->value && a->a && a->b;
    return all ? TRL_OK : trli_no_memory(s->sim->ctx, NULL, "for a solver");
}

void trli_assignments_free(trli_assignments *a)
{
    trli_free(a->field);
    trli_free(a->value);
    trli_free(a->a);
    trli_free(a->b);
}

trl_err trli_assignments_begin(trli_assignments *a, const char *name, trli_program **program)
{
    const trl_err err = trli_solver_begin(a->s, name, program);
    a->program = *program;
    return err;
}

void trli_assignments_add(trli_assignments *a, const int *to, int i, trli_ir_value value)
{
    assert(a->n < a->room);
    a->field[a->n] = to[i];
    a->value[a->n++] = value;
}

trl_err trli_assignments_store(trli_assignments *a)
{
    const int n = a->n;
    a->n = 0;
    return n == 0 ? TRL_OK : store_fields(a->s, a->program, n, a->field, a->value);
}

trl_err trli_solver_dot(trli_solver *s, trli_program *program, const char *label, const trli_ir_value *a,
                        const trli_ir_value *b, int *scalar)
{
    trli_ir *ir = &s->sim->model->ir;
    trli_ir_value sum = TRLI_NO_VALUE;
    trl_err err = TRL_OK;
    int one;
    for (int i = 0; i < s->ask.n; ++i) {
        const trli_ir_value value = b ? trli_ir_binary(ir, TRLI_OP_MUL, a[i], b[i]) : a[i];
        TRL_TRY(trli_program_reduce(program, label, value, s->sim->model->variable[s->ask.variable[i]].location,
                                    TRLI_REDUCE_SUM, true, NULL, &one));
        const trli_ir_value part = trli_ir_scalar(ir, one);
        sum = sum < 0 ? part : trli_ir_binary(ir, TRLI_OP_ADD, sum, part);
    }
    TRL_TRY(trli_program_scalar(program, label, sum, scalar));
    TRL_TRY(trli_program_add_scalar_root(program, *scalar));
done:
    return err;
}

trl_err trli_solver_begin(trli_solver *s, const char *what, trli_program **program)
{
    const char *name = trli_model_name(s->sim->model, "%s of %s", what, s->ask.names);
    const trl_err err = trli_program_create(s->sim->model, name, program);
    if (err == TRL_OK) (*program)->place = s->ask.place;
    if (err == TRL_OK) (*program)->fuses_sums = (*program)->fetched = true;
    return err;
}

trl_err trli_solver_begin_rows(trli_solver *s, const char *what, trli_program **program, trli_solver_rows *rows)
{
    static const trli_marks none = {0}; /* instances keep it */
    trl_err err = TRL_OK;
    *rows = (trli_solver_rows){0};
    TRL_TRY(trli_solver_begin(s, what, program));
    TRL_TRY(s->ask.instance(s->ask.data, *program, &rows->in, &rows->old));
    TRL_TRY(trli_instance_fill(rows->in));
    TRL_TRY(trli_instance_marked(rows->in, &none, &rows->marked));
    rows->marked->with_sides = true; /* a row beside a side has what coefficients are beyond it */
    TRL_TRY(trli_instance_prepare(rows->marked));
    TRL_TRY(trli_partials_create(rows->marked, &rows->partials));
done:
    return err;
}

void trli_solver_end_rows(trli_solver_rows *rows)
{
    trli_partials_destroy(&rows->partials);
    trli_instance_marked_destroy(&rows->marked);
    trli_instance_destroy(&rows->in);
    trli_instance_destroy(&rows->old);
}

void trli_solver_read(const trli_solver *s, const int *field, trli_ir_value *value)
{
    for (int i = 0; i < s->ask.n; ++i) value[i] = trli_ir_field(&s->sim->model->ir, field[i]);
}

/* Fields that change places have one shape. */
static void equalise(trli_model *model, int a, int b)
{
    trli_model_field *f = &model->field[a], *g = &model->field[b];
    for (int i = 0; i < 3; ++i) {
        f->ghost_lo[i] = g->ghost_lo[i] = f->ghost_lo[i] > g->ghost_lo[i] ? f->ghost_lo[i] : g->ghost_lo[i];
        f->ghost_hi[i] = g->ghost_hi[i] = f->ghost_hi[i] > g->ghost_hi[i] ? f->ghost_hi[i] : g->ghost_hi[i];
    }
}

void trli_vector_equalise(const trli_solver *s, const trli_vector *v)
{
    for (int i = 0; i < s->ask.n; ++i) equalise(s->sim->model, v->now[i], v->next[i]);
}

void trli_solver_end_fields(trli_solver *solver)
{
    solver->end_field = solver->sim->model->nfields;
}

trl_err trli_solver_run_alone(trli_solver *s, const trli_program *program)
{
    int64_t bytes, messages;
    trl_simulation *counts = s->finest ? s->finest->sim : s->sim;
    trli_program_set_leading(program, true);
    const trl_err err = trli_program_run(program, s->sim->frame);
    trli_frame_traffic(s->sim->frame, program, &bytes, &messages);
    counts->comm_bytes += bytes;
    counts->comm_messages += messages;
    return err;
}

/* What only this solver has: its fields are those added while it was made. */
void trli_solver_equalise(trli_solver *solver)
{
    trli_model *model = solver->sim->model;
    for (int i = 0; i < solver->ask.n; ++i) {
        equalise(model, solver->x.now[i], solver->x.next[i]);
        equalise(model, solver->d.now[i], solver->d.next[i]);
    }
    trli_guess_history_equalise(solver);
    if (solver->multigrid) trli_multigrid_equalise(solver->multigrid);
}

trl_err trli_solver_product_with(trli_solver *s, trli_program *program)
{
    return trli_solver_product_of(s, program, s->d.now, s->q.now);
}

trl_err trli_solver_fill_products(const trli_solver *s, trli_instance *in)
{
    trl_err err = TRL_OK;
    in->planes_along = s->direction;
    TRL_TRY(trli_instance_planes(in, false));
    TRL_TRY(trli_instance_fill(in));
    err = trli_instance_prepare(in);
done:
    return err;
}

trl_err trli_solver_product_values(trli_solver *s, trli_program *program, const int *of, trli_ir_value *value)
{
    trli_instance *in = NULL, *old = NULL;
    trl_err err = TRL_OK;
    TRL_TRY(s->ask.instance(s->ask.data, program, &in, &old));
    for (int i = 0; i < s->ask.n; ++i) in->variable[s->first_tangent + i] = of[i];
    TRL_TRY(trli_solver_fill_products(s, in));
    for (int i = 0; i < s->ask.n; ++i) {
        TRL_TRY(s->ask.residual(s->ask.data, in, i, &value[i]));
        TRL_TRY(trli_tangent(in, s->direction, value[i], &value[i]));
        if (value[i] < 0) value[i] = trli_ir_constant(&s->sim->model->ir, 0);
        TRL_TRY(trli_solver_masked(s, in, i, &value[i]));
    }
done:
    trli_instance_destroy(&in);
    trli_instance_destroy(&old);
    return err;
}

trl_err trli_solver_product_of(trli_solver *s, trli_program *program, const int *of, const int *to)
{
    trli_ir_value *value = trli_new(s->sim->ctx, (size_t)s->ask.n + 1, sizeof *value);
    trl_err err = TRL_OK;
    if (!value) return trli_no_memory(s->sim->ctx, NULL, "for a solver");
    TRL_TRY(trli_solver_product_values(s, program, of, value));
    err = trli_solver_store(s, program, to, value);
done:
    trli_free(value);
    return err;
}

static void clear_array(const trl_array *a)
{
    const trl_box *h = &a->held;
    for (trl_lidx k = h->lo[2]; k < h->hi[2]; ++k)
        for (trl_lidx j = h->lo[1]; j < h->hi[1]; ++j)
            memset((double *)a->at + trl_array_offset(a, h->lo[0], j, k), 0,
                   (size_t)(h->hi[0] - h->lo[0]) * sizeof(double));
}

/* What a step reads, and what the conditions do that it fills ghosts or sides by: part 0, 1, ..., nslabs. */
static trli_reads reads_of(const trli_step_plan *plan, int part)
{
    if (!plan->live) return (trli_reads){0};
    if (part == 0) return plan->reads;
    const trli_slab *slab = &plan->slab[part - 1];
    return slab->kind == TRLI_SLAB_KERNEL ? slab->reads : (trli_reads){0};
}

static bool reads_steps(const trli_step_plan *plan)
{
    for (int part = 0; part <= plan->nslabs; ++part) {
        const trli_reads reads = reads_of(plan, part);
        for (int r = 0; r < reads.nscalars; ++r)
            if (reads.scalar[r] == TRLI_SCALAR_DT || reads.scalar[r] == TRLI_SCALAR_STEP) return true;
    }
    return false;
}

bool trli_solver_reads_steps(const trli_solver *solver)
{
    const trli_program *const programs[] = {solver->residual.program, solver->apply};
    for (size_t i = 0; i < sizeof programs / sizeof *programs; ++i)
        for (int k = 0; k < programs[i]->nsteps; ++k)
            if (reads_steps(&programs[i]->plan->step[k])) return true;
    return false;
}

bool trli_solver_reads_fields(const trli_solver *s)
{
    for (int v = 0; v < s->sim->nequations; ++v)
        if (s->reads[v] || s->reads_old[v]) return true;
    return s->opaque;
}

bool trli_solver_scalars_differ(const trli_solver *s, const double *known)
{
    bool any = false;
    for (int i = 0; i < s->nscalars; ++i) any |= known[s->scalar[i]] != s->sim->frame->scalar[s->scalar[i]];
    return any;
}

bool trli_solver_scalars_change(const trli_solver *s, double *known)
{
    const bool any = trli_solver_scalars_differ(s, known);
    for (int i = 0; i < s->nscalars; ++i) known[s->scalar[i]] = s->sim->frame->scalar[s->scalar[i]];
    return any;
}

bool trli_solver_reads(const trli_solver *solver, int equation)
{
    return solver->reads[equation];
}

void trli_clear_field(const trl_simulation *sim, int field)
{
    for (int p = 0; p < sim->layout->nlocal; ++p) {
        const trl_array array = trli_frame_array(sim->frame, field, p, 0);
        clear_array(&array);
    }
    trli_frame_written(sim->frame, field);
}

void trli_solver_clear(trli_solver *solver)
{
    solver->current = false;
    for (int f = solver->first_field; f < solver->end_field; ++f)
        if (solver->sim->model->field[f].persistent) trli_clear_field(solver->sim, f);
}

/* ---- of those that have products alone ---- */

const int *trli_solver_direction(const trli_solver *solver)
{
    return solver->d.now;
}

const int *trli_solver_product(const trli_solver *solver)
{
    return solver->q.now;
}

trl_err trli_solver_multiply(trli_solver *solver, trl_gidx step, double time)
{
    solver->step = step;
    solver->time = time;
    return trli_solver_program(solver, solver->apply);
}

bool trli_solver_has_diagonal(const trli_solver *solver)
{
    return solver->inverse_value[0] >= 0;
}

const int *trli_solver_inverse(const trli_solver *solver)
{
    return solver->inverse.now;
}

double trli_solver_inverse_number(const trli_solver *solver, int i)
{
    return trli_ir_node(&solver->sim->model->ir, solver->inverse_value[i])->number;
}

const int *trli_solver_right_side(const trli_solver *solver)
{
    return solver->r.now;
}

const int *trli_solver_cycle_result(const trli_solver *solver)
{
    return trli_multigrid_solution(solver->multigrid);
}

trl_err trli_solver_cycle(trli_solver *solver)
{
    return trli_multigrid_cycle(solver->multigrid, solver->r.now);
}

trl_solve_stats *trli_solver_stats(trli_solver *solver)
{
    return &solver->stats;
}

void trli_solver_mark_fields(const trli_solver *solver, bool *needed)
{
    for (int f = solver->first_field; f < solver->end_field; ++f) needed[f] = solver->sim->model->field[f].persistent;
    for (int i = 0; i < solver->ask.n; ++i) needed[solver->ask.field[i]] = true;
}
