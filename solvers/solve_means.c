/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Means of unknowns and residuals where constants are in the null space. */
#include <math.h>

#include "solve_ahead_impl.h"
#include "solve_errors_impl.h"
#include "solve_look_impl.h"

trl_err trli_solver_take_means(const trli_solver *s, const trli_measured *m)
{
    const trl_err err = trli_solver_take(s, s->means[m->of], m->told);
    for (int i = 0; i < s->ask.n; ++i) m->mean[i] = trli_solver_scalar(s, s->x_sum[m->of][i]) / s->points[i];
    return err;
}

trl_err trli_solver_measure_means(trli_solver *s, trli_measured *m)
{
    trl_err err = TRL_OK;
    TRL_TRY(trli_solver_program_telling(s, s->means[m->of], &m->told));
    if (!m->told) err = trli_solver_take_means(s, m);
done:
    return err;
}

trl_err trli_solver_restore_means(trli_solver *s, const double *wanted)
{
    trl_err err = TRL_OK;
    for (int i = 0; i < s->ask.n; ++i) {
        trli_solver_set(s, s->x_points[i], s->points[i]);
        trli_solver_set(s, s->x_wanted[i], wanted[i]);
        trli_solver_set(s, s->x_free[i], s->singular[i]);
    }
    TRL_TRY(trli_solver_program(s, s->shift));
    trli_vector_swap(s, &s->x);
    s->brought = false;
done:
    return err;
}

trl_err trli_solver_centre(trli_solver *s)
{
    const trl_err err = trli_solver_program(s, s->centre);
    trli_vector_swap(s, &s->r);
    s->r_norm = trli_solver_norm(s, trli_solver_scalar(s, s->centred_rr));
    return err;
}

bool trli_solver_is_balanced(const trli_solver *s, int i)
{
    return s->balanced[i] && (s->singular[i] || !s->linear);
}

/* Both sides of an equation have different means, and products have no mean. Where they have one at other values than
 * the present ones, steps in pseudo-time go on; *free: no. */
static trl_err refuse_mean(trli_solver *s, int i, bool *free)
{
    const double mean = s->r_sum[i] / s->points[i];
    bool balanced;
    trl_err err = TRL_OK;
    TRL_TRY(trli_solver_stays_balanced(s, i, &balanced));
    *free = balanced || !s->pseudo_time;
    if (*free) return balanced ? trli_solver_inconsistent(s, i, mean) : trli_solver_is_flat(s, i, mean);
    s->singular[i] = s->balanced[i] = s->stats.singular = false;
    for (int k = 0; k < s->ask.n; ++k) s->stats.singular |= s->singular[k];
done:
    return err;
}

/* A mean that is much less than what is to be left of the residual stays. */
trl_err trli_solver_balance(trli_solver *s, double tolerance)
{
    const double little = 1e-3;
    bool any = false;
    trl_err err = TRL_OK;
    for (int i = 0; i < s->ask.n; ++i) {
        const double mean = s->r_sum[i] / s->points[i];
        bool free_mean = trli_solver_is_balanced(s, i);
        if (free_mean && fabs(mean) > fmax(tolerance * s->reference, s->lost)) TRL_TRY(refuse_mean(s, i, &free_mean));
        trli_solver_set(s, s->r_offset[i], free_mean ? -mean : 0);
        any |= free_mean && fabs(mean) > little * s->fine;
    }
    if (!any || s->mean_set) return TRL_OK;
    TRL_TRY(trli_solver_centre(s));
    s->ahead = false;
done:
    return err;
}
