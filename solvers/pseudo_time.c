/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Dual time: explicit steps of dx/dtau = -F(x)/D in pseudo-time tau, D the diagonal of F's Jacobian, so that each point
 * has a step of its own size. A step has several stages (Alexiades, Amiez & Gremaud 1996) whose sizes together damp all
 * eigenvalues of D^-1 J between a least and a largest one, as far as they are real. One that makes the residual much
 * larger is taken back, and the sizes are halved. */
#include <math.h>

#include "diagonal_impl.h"
#include "memory_impl.h"
#include "pseudo_time_impl.h"
#include "solve_ahead_impl.h"
#include "solve_errors_impl.h"
#include "solve_prepare_impl.h"
#include "solve_scale_impl.h"

enum { STAGES = 6 };

/* The order in which the stages' roots come: no sum of the first ones is large (Lebedev & Finogenov 1971). */
static const int order[STAGES] = {1, 6, 3, 4, 2, 5};

struct trli_pseudo_time {
    trli_program *move, *keep, *back; /* x' = x + size * r/D; start = x; x' = start */
    trli_vector start;
    int size; /* scalar */
};

static trl_err compile_move(trli_solver *s, struct trli_pseudo_time *p, trli_ir_value *r, trli_ir_value *value)
{
    trli_ir *ir = &s->sim->model->ir;
    trl_err err = TRL_OK;
    TRL_TRY(trli_solver_begin(s, "step in pseudo-time", &p->move));
    trli_solver_read(s, s->r.now, r);
    trli_krylov_precondition(s, r, value);
    for (int i = 0; i < s->ask.n; ++i)
        value[i] = trli_ir_binary(ir, TRLI_OP_ADD, trli_ir_field(ir, s->x.now[i]),
                                  trli_ir_binary(ir, TRLI_OP_MUL, trli_ir_scalar(ir, p->size), value[i]));
    err = trli_solver_store(s, p->move, s->x.next, value);
done:
    return err;
}

static trl_err compile_copy(trli_solver *s, const char *name, const int *to, const int *from, trli_ir_value *value,
                            trli_program **program)
{
    trl_err err = TRL_OK;
    TRL_TRY(trli_solver_begin(s, name, program));
    trli_solver_read(s, from, value);
    err = trli_solver_store(s, *program, to, value);
done:
    return err;
}

trl_err trli_pseudo_time_compile(trli_solver *s)
{
    trli_ir_value *value = NULL;
    trl_err err = TRL_OK;
    struct trli_pseudo_time *p = s->pseudo_time = trli_model_keep(s->sim->model, sizeof *p);
    if (!p) return s->sim->model->ir.err;
    if (s->inverse_value[0] < 0)
        return trl_fail(s->sim->ctx, TRL_ERR_INPUT, &s->settings.place,
                        "steps in pseudo-time need the operator's diagonal, which for '%s' is not known as a formula: "
                        "use method auto",
                        s->ask.names);
    value = trli_new(s->sim->ctx, 2 * (size_t)s->ask.n, sizeof *value);
    if (!value) return trli_no_memory(s->sim->ctx, NULL, "for a solver");
    s->stats.pseudo_time = true;
    p->size = trli_model_add_scalar(s->sim->model, 0);
    TRL_TRY(trli_vector_add(s, "start", false, &p->start));
    TRL_TRY(compile_move(s, p, value + s->ask.n, value));
    TRL_TRY(compile_copy(s, "start in pseudo-time", p->start.now, s->x.now, value, &p->keep));
    err = compile_copy(s, "back in pseudo-time", s->x.next, p->start.now, value, &p->back);
done:
    trli_free(value);
    return err;
}

/* The least eigenvalue that is taken for one: that of rows that their diagonal dominates, or a share of the largest. */
static double least_of(double row)
{
    const double share = 0.01;
    return row < 2 ? fmax(2 - row, share * row) : share * row;
}

/* All stages of a step, of a share of their sizes, to the residual after it. */
static trl_err take_step(trli_solver *s, double share, double *norm)
{
    const double pi = 3.14159265358979323846;
    struct trli_pseudo_time *p = s->pseudo_time;
    trl_err err = TRL_OK;
    TRL_TRY(trli_solver_run_diagonal(s));
    const double row = s->bounded ? fmax(trli_solver_largest_row(s), 1) : 2, least = least_of(row);
    for (int j = 0; j < STAGES; ++j) {
        const double root = (row + least) / 2 + (row - least) / 2 * cos((2 * order[j] - 1) * pi / (2 * STAGES));
        trli_solver_set(s, p->size, share / root / (s->scaled ? 1 : s->power));
        TRL_TRY(trli_solver_program(s, p->move));
        trli_vector_swap(s, &s->x);
        TRL_TRY(trli_solver_residual(s, norm));
    }
done:
    return err;
}

trl_err trli_pseudo_time_run(trli_solver *s, bool (*solved)(const trli_solver *s, double norm), double *norm)
{
    const double more = 2, much = 100, least = 1e-3;
    struct trli_pseudo_time *p = s->pseudo_time;
    int *steps = &s->stats.last_iterations;
    double share = 1, best = *norm;
    bool rounding;
    trl_err err = TRL_OK;
    s->stats.method = "steps in pseudo-time";
    s->stats.preconditioner = "jacobi";
    TRL_TRY(trli_solver_balance(s, s->linear ? s->settings.tolerance : s->settings.newton_tolerance));
    while (!solved(s, *norm)) {
        const double before = *norm;
        if (*steps >= s->settings.iterations) {
            TRL_TRY(trli_solver_is_rounding(s, *norm, &rounding));
            if (rounding) return TRL_OK;
            s->least = best;
            TRL_TRY(trli_solver_refuse_singular(s, *norm));
            return trli_solver_too_slow(s, *norm, s->fine, *steps);
        }
        TRL_TRY(trli_solver_program(s, p->keep));
        TRL_TRY(take_step(s, share, norm));
        ++*steps;
        ++s->stats.iterations;
        best = fmin(best, *norm);
        if (*norm <= fmin(more * before, much * best)) continue;
        share /= 2;
        if (share < least) {
            TRL_TRY(trli_solver_is_rounding(s, *norm, &rounding));
            return rounding ? TRL_OK : trli_solver_grows(s, *norm, best);
        }
        TRL_TRY(trli_solver_program(s, p->back));
        trli_vector_swap(s, &s->x);
        TRL_TRY(trli_solver_residual(s, norm));
    }
done:
    return err;
}
