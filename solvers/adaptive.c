/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Steps whose size follows from an estimate of their error. A method's table gives the difference of two solutions of
 * different order; e is its weighted root mean square over all points of all equations,
 *     e^2 = sum (difference / (absolute + relative max(|u_n|, |u_{n+1}|)))^2 / points.
 * A step with e <= 1 is accepted. The next dt is that of a PI controller (Gustafsson 1991; Hairer, Norsett & Wanner
 * 1993, II.4). Sums are exact and powers Trellis's own: all ranks choose the same, on any number of them. A rejected
 * step leaves no trace, as the present level is not written before a step is accepted. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <trl_functions_body.h>

#include "adaptive_impl.h"
#include "compile_impl.h"
#include "context_impl.h"
#include "lower_impl.h"
#include "memory_impl.h"
#include "model_run_impl.h"
#include "multistep_impl.h"
#include "sides_impl.h"

static const double safety = 0.9, least_factor = 0.2, largest_factor = 10, memory = 0.04, least_error = 1e-4;

/* ---- the estimate ---- */

trl_err trli_zero_where_set(trl_simulation *sim, trli_instance *in, int v, int field, trli_ir_value *value)
{
    const trli_equation *eq = &sim->equation[v];
    const trli_model_field *f = &sim->model->field[field];
    trli_ir *ir = &sim->model->ir;
    const trli_ir_value zero = trli_ir_constant(ir, 0);
    trli_ir_value mask;
    trl_err err = TRL_OK;
    for (int s = 0; s < 2 * sim->layout->grid.dim; ++s)
        if (f->fixed_planes[s]) *value = trli_ir_select(ir, trli_ir_at_side(ir, s / 2, s % 2), zero, *value);
    TRL_TRY(trli_sides_replace_set(in, field, zero, value));
    if (eq->mask) {
        TRL_TRY(trli_lower_at(in, eq->mask, eq->deck->names, sim->model->variable[v].location, &mask));
        *value = trli_ir_select(ir, mask, *value, zero);
    }
done:
    return err;
}

/* The difference of the two solutions over what is tolerated, of an equation at its points that advance. */
static trl_err error_of(trl_simulation *sim, trli_instance *in, trli_ir_value sum, int v, trli_ir_value *ratio)
{
    const trl_time_entry *p = &sim->problem->time;
    const trli_equation *eq = &sim->equation[v];
    trli_ir *ir = &sim->model->ir;
    trli_ir_value before = trli_ir_unary(ir, TRLI_OP_ABS, trli_ir_field(ir, eq->state)),
                  after = trli_ir_unary(ir, TRLI_OP_ABS, trli_ir_field(ir, eq->next)),
                  size = trli_ir_binary(ir, TRLI_OP_MAX, before, after),
                  tolerated = trli_ir_binary(ir, TRLI_OP_ADD, trli_ir_constant(ir, p->absolute),
                                             trli_ir_binary(ir, TRLI_OP_MUL, trli_ir_constant(ir, p->relative), size)),
                  difference = trli_ir_binary(ir, TRLI_OP_MUL, trli_ir_scalar(ir, TRLI_SCALAR_DT), sum);
    *ratio = trli_ir_binary(ir, TRLI_OP_DIV, difference, tolerated);
    return trli_zero_where_set(sim, in, v, eq->state, ratio);
}

/* The number of an equation's points, or a reduction of its mask. */
static trl_err count_points(trl_simulation *sim, trli_instance *in, int v, trli_error *e)
{
    const trli_equation *eq = &sim->equation[v];
    const trl_grid *g = &sim->layout->grid;
    const trl_location location = sim->model->variable[v].location;
    trli_ir *ir = &sim->model->ir;
    trli_ir_value mask;
    trl_err err = TRL_OK;
    e->points = 1;
    e->count_scalar = -1;
    for (int a = 0; a < g->dim; ++a) e->points *= (double)g->cells[a] + (location >> a & 1 && !g->periodic[a]);
    if (!eq->mask) return TRL_OK;
    TRL_TRY(trli_lower_at(in, eq->mask, eq->deck->names, location, &mask));
    mask = trli_ir_place(ir, trli_ir_select(ir, mask, trli_ir_constant(ir, 1), trli_ir_constant(ir, 0)), location);
    TRL_TRY(trli_program_reduce(in->program, "points", mask, location, TRLI_REDUCE_SUM, false, NULL, &e->count_scalar));
    TRL_TRY(trli_program_add_scalar_root(in->program, e->count_scalar));
done:
    return err;
}

trl_err trli_compile_errors(trl_simulation *sim, trli_instance *in, const trli_ir_value *sum)
{
    trli_model *model = sim->model;
    trl_err err = TRL_OK;
    sim->error = trli_new(sim->ctx, (size_t)sim->nequations + 1, sizeof *sim->error);
    if (!sim->error) return trli_no_memory(sim->ctx, NULL, "for the errors of %d equations", sim->nequations);
    for (int v = 0; v < sim->nequations; ++v) {
        const char *name = trli_model_name(model, "%s:error", sim->equation[v].deck->name);
        const trl_location location = model->variable[v].location;
        trli_error *e = &sim->error[v];
        trli_ir_value ratio, square;
        e->field = -1;
        if (sim->equation[v].solve) continue;
        TRL_TRY(error_of(sim, in, sum[v], v, &ratio));
        e->field = trli_model_add_field(model, name, location);
        if (e->field < 0) return model->ir.err;
        model->field[e->field].persistent = true;
        TRL_TRY(trli_program_add_kernel(in->program, name, 1, &e->field, &ratio, NULL));
        TRL_TRY(trli_program_add_root(in->program, e->field));
        ratio = trli_ir_field(&model->ir, e->field);
        square = trli_ir_binary(&model->ir, TRLI_OP_MUL, ratio, ratio);
        TRL_TRY(trli_program_reduce(in->program, name, square, location, TRLI_REDUCE_SUM, false, NULL, &e->scalar));
        TRL_TRY(trli_program_add_scalar_root(in->program, e->scalar));
        TRL_TRY(count_points(sim, in, v, e));
    }
done:
    return err;
}

/* Of the step that ran last. */
static double error_norm(const trl_simulation *sim)
{
    const double *scalar = sim->frame->scalar;
    double sum = 0, points = 0;
    for (int v = 0; v < sim->nequations; ++v) {
        const trli_error *e = &sim->error[v];
        if (e->field < 0) continue;
        sum += scalar[e->scalar];
        points += e->count_scalar < 0 ? e->points : scalar[e->count_scalar];
    }
    return points > 0 ? sqrt(sum / points) : 0;
}

/* ---- dt ---- */

trl_err trli_adaptive_start(trl_simulation *sim)
{
    const trl_time_entry *p = &sim->problem->time;
    const double most = p->dt_max > 0 ? p->dt_max : INFINITY, share = 1e-3;
    double first = p->dt_initial;
    if (!p->adaptive) return TRL_OK;
    if (first <= 0) first = p->has_end ? fmin(most, share * (p->end - p->start)) : most;
    if (!isfinite(first))
        return trl_fail(sim->ctx, TRL_ERR_INPUT, &p->dt_place,
                        "without 'end', nothing says how large the first step may be: give time.method.dt an "
                        "'initial' or a 'max'");
    sim->dt = sim->control.dt = fmin(first, most);
    sim->control.error = least_error;
    return TRL_OK;
}

double trli_next_landing(const trl_time_entry *p, double time)
{
    double landing = p->has_end ? p->end : INFINITY;
    for (int i = 0; i < p->nlandings; ++i) {
        const double at = p->landing[i], rounding = 1e-12 * fabs(at);
        if (at > time + rounding && at < landing) landing = at;
    }
    return landing;
}

void trli_adaptive_choose(const trl_simulation *sim, trli_next_step *next)
{
    const double landing = trli_next_landing(&sim->problem->time, next->from), rest = landing - next->from,
                 dt = sim->control.dt;
    next->dt = rest <= dt * (1 + 1e-6) ? rest : rest < 2 * dt ? rest / 2 : dt;
    next->time = next->dt == rest ? landing : next->from + next->dt;
}

/* Factors of dt after a step with an error: of one that is accepted, and of one that is not. */
static double factor_of(const trl_simulation *sim, double error, bool accepted)
{
    const double order = sim->integrator->error_order, exponent = 1 / order - 0.75 * memory;
    if (!isfinite(error)) return least_factor;
    double factor = safety * trl_fn_pow(fmax(error, 1e-10), -exponent);
    if (accepted) factor *= trl_fn_pow(sim->control.error, memory);
    return fmin(fmax(factor, least_factor), accepted && sim->control.rejected ? 1 : largest_factor);
}

static void accept(trl_simulation *sim, const trli_next_step *next, double error)
{
    const trl_time_entry *p = &sim->problem->time;
    trli_control *c = &sim->control;
    double dt = next->dt * factor_of(sim, error, true);
    if (next->dt < c->dt && dt < c->dt) dt = c->dt; /* it was shortened, or half of a rest */
    if (p->dt_max > 0) dt = fmin(dt, p->dt_max);
    c->dt = fmax(dt, p->dt_min);
    c->error = fmax(error, least_error);
    c->rejected = false;
    ++c->naccepted;
}

/* ---- steps that fail ---- */

/* Where the largest error is. */
typedef struct largest_error {
    double ratio; /* -1: none was found */
    int equation;
    trl_gidx point[3];
} largest_error;

static double magnitude_of(double ratio)
{
    return isnan(ratio) ? INFINITY : fabs(ratio);
}

static trl_err find_on_rank(const trl_simulation *sim, largest_error *largest)
{
    trl_err err = TRL_OK;
    for (int v = 0; v < sim->nequations; ++v) {
        if (sim->error[v].field < 0) continue;
        TRL_TRY(trli_frame_fetch(sim->frame, sim->error[v].field));
        for (int p = 0; p < sim->layout->nlocal; ++p) {
            const trl_patch *patch = &sim->layout->patch[p];
            const trl_array f = trli_frame_array(sim->frame, sim->error[v].field, p, 0);
            for (trl_lidx k = f.owned.lo[2]; k < f.owned.hi[2]; ++k)
                for (trl_lidx j = f.owned.lo[1]; j < f.owned.hi[1]; ++j)
                    for (trl_lidx i = f.owned.lo[0]; i < f.owned.hi[0]; ++i) {
                        const double ratio = magnitude_of(((const double *)f.at)[trl_array_offset(&f, i, j, k)]);
                        if (ratio <= largest->ratio) continue;
                        *largest =
                            (largest_error){ratio, v, {patch->first[0] + i, patch->first[1] + j, patch->first[2] + k}};
                    }
        }
    }
done:
    return err;
}

static trl_err find_largest(trl_simulation *sim, largest_error *largest)
{
    trl_err err = TRL_OK;
    *largest = (largest_error){.ratio = -1};
    TRL_TRY(trl_context_agree(sim->ctx, find_on_rank(sim, largest)));
    for (int r = 0; r < trl_context_ranks(sim->ctx); ++r) {
        largest_error other = *largest;
        TRL_TRY(trli_broadcast(sim->ctx, &other, sizeof other, MPI_BYTE, r));
        const bool same = other.ratio == largest->ratio && other.equation == largest->equation;
        if (other.ratio > largest->ratio || (other.ratio == largest->ratio && other.equation < largest->equation) ||
            (same && trli_point_before(other.point, largest->point)))
            *largest = other;
    }
done:
    return err;
}

/* No step is small enough. Collective: yes. */
static trl_err fail_small(trl_simulation *sim, const trli_next_step *next)
{
    const trl_time_entry *p = &sim->problem->time;
    const trl_grid *g = &sim->layout->grid;
    char cell[96] = "", where[128] = "", bound[64] = "what changes t";
    largest_error largest;
    trl_err err = find_largest(sim, &largest);
    if (err != TRL_OK) return err;
    for (int a = 0; a < g->dim; ++a) {
        size_t c = strlen(cell), w = strlen(where);
        snprintf(cell + c, sizeof cell - c, "%s%" PRId64, a ? ", " : "", largest.point[a]);
        snprintf(where + w, sizeof where - w, "%s%c = %.6g", a ? ", " : "", "xyz"[a],
                 trl_grid_coordinate(g, sim->model->variable[largest.equation].location, a, largest.point[a]));
    }
    if (p->dt_min > 0) snprintf(bound, sizeof bound, "min %.6g", p->dt_min);
    sim->stalled = true;
    return trl_context_agree(
        sim->ctx, trl_fail(sim->ctx, TRL_ERR_NUMERICS, &p->dt_place,
                           "dt fell below %s at step %" PRId64
                           ", t = %.10g: with dt = %.6g the error of '%s' at cell (%s), %s, is %.3g times what is "
                           "tolerated; use a larger tolerance, a smaller min, or look for a singularity there",
                           bound, next->number - 1, next->from, next->dt, sim->equation[largest.equation].deck->name,
                           cell, where, largest.ratio));
}

/* A smaller dt helps a solver that fails, if only as its first guess is better then, and may do so for as long as the
 * run lasts. */
void trli_warn_of_unsolved(trl_simulation *sim, double dt)
{
    const int64_t many = 10, share = 3;
    trli_control *c = &sim->control;
    if (c->warned || c->nunsolved < many || share * c->nunsolved <= c->naccepted) return;
    c->warned = true;
    trl_warn(sim->ctx, c->why_place,
             "solvers choose dt, not errors of steps: %" PRId64 " times there was no solution, in %" PRId64
             " steps; now dt is %.3g. The last time: %s",
             c->nunsolved, c->naccepted, dt, c->why);
}

/* Where solvers find no solution the step is no error, but too large. */
static trl_err try_step(trl_simulation *sim, const trli_next_step *next)
{
    trli_control *c = &sim->control;
    trli_set_times(sim, next);
    c->lenient = true;
    c->unsolved = false;
    const trl_err err = trli_run_step(sim, next);
    c->lenient = false;
    return c->unsolved ? TRL_OK : err;
}

trl_err trli_adaptive_step(trl_simulation *sim, trli_next_step *next)
{
    const trl_time_entry *p = &sim->problem->time;
    trli_control *c = &sim->control;
    trl_err err = TRL_OK;
    if (sim->multistep) return trli_multistep_step(sim, next);
    TRL_TRY(trli_first_rates_find(sim, next));
    for (;;) {
        TRL_TRY(try_step(sim, next));
        const double error = c->unsolved ? INFINITY : error_norm(sim);
        if (error <= 1) {
            accept(sim, next, error);
            return TRL_OK;
        }
        const trli_next_step tried = *next;
        c->dt = fmax(next->dt * factor_of(sim, error, false), p->dt_min);
        c->rejected = true;
        ++c->nrejected;
        c->nunsolved += c->unsolved;
        trli_adaptive_choose(sim, next);
        trli_warn_of_unsolved(sim, next->dt);
        if (tried.dt > p->dt_min && trli_step_leads_on(next)) continue;
        if (!c->unsolved) return fail_small(sim, &tried);
        trli_set_times(sim, &tried); /* again, to hear why */
        return trli_run_step(sim, &tried);
    }
done:
    return err;
}

int trl_simulation_order(const trl_simulation *sim)
{
    return sim->integrator->multistep ? sim->control.order : sim->integrator->order;
}

int64_t trl_simulation_rejected(const trl_simulation *sim)
{
    return sim->control.nrejected;
}

int64_t trl_simulation_unsolved(const trl_simulation *sim)
{
    return sim->control.nunsolved;
}

void trl_simulation_get_control(const trl_simulation *sim, double control[TRL_CONTROLS])
{
    control[0] = sim->control.dt;
    control[1] = sim->control.error;
}

void trl_simulation_set_control(trl_simulation *sim, const double control[TRL_CONTROLS])
{
    if (!(control[0] > 0) || !isfinite(control[0])) return;
    sim->control.dt = control[0];
    sim->control.error = control[1];
}
