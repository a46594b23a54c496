/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Right-hand sides whose squares are no numbers, or lose digits: the residual, and of linear systems the unknowns while
 * a method has them, are multiplied by a power of two. So solutions have the digits that they have for others, and
 * those whose squares are numbers cost nothing. */
#include <float.h>
#include <math.h>

#include "context_impl.h"
#include "late_impl.h"
#include "memory_impl.h"
#include "model_run_impl.h"
#include "solve_errors_impl.h"
#include "solve_scale_impl.h"

/* Squares of norms from 2^-400 to 2^400, times those of any tolerance, are far from the ends of numbers. */
enum { ORDINARY = 400 };

bool trli_norm_is_ordinary(double norm)
{
    return norm >= ldexp(1, -ORDINARY) && norm <= ldexp(1, ORDINARY);
}

static void times(const trli_solver *s, const int *field, trli_ir_value *value)
{
    trli_ir *ir = &s->sim->model->ir;
    trli_solver_read(s, field, value);
    for (int i = 0; i < s->ask.n; ++i)
        value[i] = trli_ir_binary(ir, TRLI_OP_MUL, trli_ir_scalar(ir, s->factor), value[i]);
}

trl_err trli_solver_compile_scaling(trli_solver *s)
{
    trli_model *model = s->sim->model;
    trli_ir_value *value = trli_new(s->sim->ctx, (size_t)s->ask.n + 1, sizeof *value);
    trl_err err = TRL_OK;
    s->scaled_sum = trli_model_keep(model, ((size_t)s->ask.n + 1) * sizeof *s->scaled_sum);
    if (!value || !s->scaled_sum) TRL_TRY(trli_no_memory(s->sim->ctx, NULL, "for a solver"));
    s->factor = trli_model_add_scalar(model, 0);
    TRL_TRY(trli_solver_begin(s, "scaled correction", &s->scale_c));
    s->scale_c->once = true;
    times(s, s->c.now, value);
    TRL_TRY(trli_solver_store(s, s->scale_c, s->c.next, value));
    TRL_TRY(trli_solver_begin(s, "scaled residual", &s->scale_r));
    s->scale_r->once = true;
    times(s, s->r.now, value);
    TRL_TRY(trli_solver_store(s, s->scale_r, s->r.next, value));
    trli_solver_read(s, s->r.next, value);
    TRL_TRY(trli_solver_dot(s, s->scale_r, "r.r", value, value, &s->scaled_rr));
    for (int i = 0; i < s->ask.n; ++i) {
        TRL_TRY(trli_program_reduce(s->scale_r, "sum of r", value[i], model->variable[s->ask.variable[i]].location,
                                    TRLI_REDUCE_SUM, true, NULL, &s->scaled_sum[i]));
        TRL_TRY(trli_program_add_scalar_root(s->scale_r, s->scaled_sum[i]));
    }
done:
    trli_free(value);
    return err;
}

trl_err trli_solver_is_rounding(trli_solver *s, double norm, bool *is)
{
    const double few = 8 * DBL_EPSILON, least = 1e-14;
    const double tolerance = s->linear ? s->settings.tolerance : s->settings.newton_tolerance;
    bool lost;
    trl_err err = TRL_OK;
    *is = norm <= s->enough;
    if (*is || tolerance < least) return TRL_OK;
    TRL_TRY(trli_solver_program(s, s->terms));
    *is = norm <= few * trli_solver_norm(s, trli_solver_scalar(s, s->terms_size)) * s->power;
    if (*is && s->linear) {
        TRL_TRY(trli_solver_is_lost(s, norm, &lost));
        *is = !lost;
    }
done:
    return err;
}

trl_err trli_solver_scale_residual(trli_solver *s, double factor, double *norm)
{
    trl_err err = TRL_OK;
    trli_solver_set(s, s->factor, factor);
    TRL_TRY(trli_solver_program(s, s->scale_r));
    trli_vector_swap(s, &s->r);
    *norm = s->r_norm = trli_solver_norm(s, trli_solver_scalar(s, s->scaled_rr));
    for (int i = 0; i < s->ask.n; ++i) s->r_sum[i] = trli_solver_scalar(s, s->scaled_sum[i]);
done:
    return err;
}

trl_err trli_solver_scale_correction(trli_solver *s, double factor)
{
    trl_err err = TRL_OK;
    trli_solver_set(s, s->factor, factor);
    TRL_TRY(trli_solver_program(s, s->scale_c));
    trli_vector_swap(s, &s->c);
    s->brought = false;
done:
    return err;
}

trl_err trli_solver_find_largest(const trli_solver *s, const trli_vector *v, double *largest)
{
    trl_simulation *sim = s->sim;
    trl_err err = TRL_OK;
    *largest = 0;
    for (int i = 0; i < s->ask.n && err == TRL_OK; ++i)
        for (int p = 0; p < sim->layout->nlocal && err == TRL_OK; ++p) {
            double extreme[2];
            err = trli_frame_extremes(sim->frame, v->now[i], p, sim->loop, extreme);
            *largest = fmax(*largest, fmax(-extreme[0], extreme[1]));
        }
    if (!sim->late || sim->any_devices) TRL_TRY(trl_context_agree(sim->ctx, err)); /* on the host all are there */
    TRL_TRY(trli_allreduce(sim->ctx, largest, 1, MPI_DOUBLE, MPI_MAX));
done:
    return err;
}

trl_err trli_solver_find_largest_x(const trli_solver *s, double *largest)
{
    const trl_err err = trli_solver_find_largest(s, &s->x, largest);
    if (!s->scaled) *largest *= s->power;
    return err;
}

trl_err trli_solver_choose_power(trli_solver *s, double *norm, double *ratio)
{
    const int most = 1000; /* both it and its inverse are numbers */
    double largest;
    trl_err err = TRL_OK;
    *ratio = 1;
    if (isnan(*norm)) return TRL_OK;
    TRL_TRY(trli_solver_find_largest(s, &s->r, &largest));
    if (!isfinite(largest) || largest == 0) return TRL_OK;
    const int before = ilogb(s->power), wanted = before - ilogb(largest);
    const int power = wanted > most ? most : wanted < -most ? -most : wanted;
    *ratio = ldexp(1, power - before);
    s->power = ldexp(1, power);
    err = trli_solver_scale_residual(s, *ratio, norm);
done:
    return err;
}
