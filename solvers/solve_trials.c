/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The programs of trial vectors, whose products with a system's operator tell what this is like. */
#include "lower_impl.h"
#include "memory_impl.h"
#include "reads_impl.h"
#include "solve_look_impl.h"

/* A factor times 1, and the k-th random vector, or -1: none, times a factor. */
static trl_err trial(trli_solver *s, trli_instance *in, const int *one, int k, trli_ir_value noise, int i,
                     trli_ir_value *value)
{
    trli_ir *ir = &s->sim->model->ir;
    *value = trli_ir_scalar(ir, one[i]);
    if (k >= 0) {
        const trli_ir_value random =
            trli_ir_binary(ir, TRLI_OP_SUB, trli_ir_random(ir, 2.0 * i + k + 1), trli_ir_constant(ir, 0.5));
        *value = trli_ir_binary(ir, TRLI_OP_ADD, *value, trli_ir_binary(ir, TRLI_OP_MUL, noise, random));
    }
    return trli_solver_masked(s, in, i, value);
}

/* Of linear systems: x = d, and r is the residual of J x = 0; d = r; products of x and r. */
static trl_err compile_null_space(trli_solver *s, trli_ir_value *a, trli_ir_value *b)
{
    trl_err err = TRL_OK;
    TRL_TRY(trli_solver_begin(s, "taking of a trial", &s->take_trial));
    s->take_trial->once = true;
    trli_solver_read(s, s->d.now, a);
    trli_solver_read(s, s->q.now, b);
    for (int i = 0; i < s->ask.n; ++i) b[i] = trli_ir_unary(&s->sim->model->ir, TRLI_OP_NEG, b[i]);
    TRL_TRY(trli_solver_store(s, s->take_trial, s->x.next, a));
    TRL_TRY(trli_solver_store(s, s->take_trial, s->r.next, b));
    TRL_TRY(trli_solver_dot(s, s->take_trial, "r.r", b, b, &s->trial_rr));
    TRL_TRY(trli_solver_begin(s, "taking of the residual", &s->take_residual));
    s->take_residual->once = true;
    trli_solver_read(s, s->r.now, b);
    TRL_TRY(trli_solver_store(s, s->take_residual, s->d.next, b));
    TRL_TRY(trli_solver_begin(s, "part in the null space", &s->measure));
    s->measure->once = true;
    trli_solver_read(s, s->x.now, a);
    TRL_TRY(trli_solver_dot(s, s->measure, "x.x", a, a, &s->xx));
    err = trli_solver_dot(s, s->measure, "x.r", a, b, &s->xr);
done:
    return err;
}

/* Whether a trial is zero where fields say so that steps change: masks, and conditions in pieces. */
static trl_err find_moving_gaps(trli_solver *s, const trli_ir_value *trial)
{
    trli_model *model = s->sim->model;
    trli_reads reads = {0};
    int which;
    trl_err err = TRL_OK;
    TRL_TRY(trli_reads_find(&model->ir, &model->walk, s->ask.n, trial, &reads));
    for (int i = 0; i < reads.nfields; ++i) {
        const trli_node node = {.op = TRLI_OP_FIELD, .index = reads.field[i]};
        s->gaps_move |= !model->lasting || !trli_program_producer(model->lasting, &node, &which);
    }
done:
    trli_reads_free(&reads);
    return err;
}

/* d = a trial. a: room */
static trl_err compile_probe(trli_solver *s, int k, bool once, trli_ir_value *a)
{
    trli_program **program = &s->probe[k + 1];
    trli_instance *in = NULL, *old = NULL;
    trl_err err = TRL_OK;
    TRL_TRY(trli_solver_begin(s, k < 0 ? "trial of ones" : k ? "other trial" : "trial", program));
    (*program)->once = once;
    TRL_TRY(s->ask.instance(s->ask.data, *program, &in, &old));
    for (int i = 0; i < s->ask.n; ++i)
        TRL_TRY(trial(s, in, s->one, k, trli_ir_scalar(&s->sim->model->ir, s->noise[i]), i, &a[i]));
    TRL_TRY(find_moving_gaps(s, a));
    err = trli_solver_store(s, *program, s->d.next, a);
done:
    trli_instance_destroy(&in);
    trli_instance_destroy(&old);
    return err;
}

/* Products of q with another trial, and with itself: with ones that of an unknown's own row. a, b: room */
static trl_err compile_comparison(trli_solver *s, int k, bool once, trli_ir_value *a, trli_ir_value *b)
{
    trli_program **program = &s->compare[k + 1];
    trli_instance *in = NULL, *old = NULL;
    trl_err err = TRL_OK;
    TRL_TRY(trli_solver_begin(s, k < 0 ? "comparison with ones" : k ? "other comparison" : "comparison", program));
    (*program)->once = once;
    TRL_TRY(s->ask.instance(s->ask.data, *program, &in, &old));
    for (int i = 0; i < s->ask.n; ++i)
        TRL_TRY(trial(s, in, s->with_one, k, trli_ir_constant(&s->sim->model->ir, 1), i, &a[i]));
    trli_solver_read(s, s->q.now, b);
    TRL_TRY(trli_solver_dot(s, *program, "q.trial", a, b, &s->compared[k + 1]));
    for (int i = 0; i < s->ask.n && k < 0; ++i) b[i] = trli_ir_binary(&s->sim->model->ir, TRLI_OP_MUL, a[i], b[i]);
    TRL_TRY(trli_solver_dot(s, *program, "q.q", b, b, &s->qq[k + 1]));
    trli_solver_read(s, s->d.now, a);
    err = trli_solver_dot(s, *program, "d.d", a, a, &s->dd[k + 1]);
done:
    trli_instance_destroy(&in);
    trli_instance_destroy(&old);
    return err;
}

trl_err trli_solver_compile_trials(trli_solver *s)
{
    const bool once = !trli_solver_looks_again(s);
    trli_ir_value *a = trli_new(s->sim->ctx, (size_t)s->ask.n + 1, sizeof *a);
    trli_ir_value *b = trli_new(s->sim->ctx, (size_t)s->ask.n + 1, sizeof *b);
    trl_err err = TRL_OK;
    if (!a || !b) TRL_TRY(trli_no_memory(s->sim->ctx, NULL, "for a solver"));
    for (int k = -1; k < 2; ++k) TRL_TRY(compile_probe(s, k, once, a));
    for (int k = -1; k < 2; ++k) TRL_TRY(compile_comparison(s, k, once, a, b));
    if (s->linear) TRL_TRY(compile_null_space(s, a, b));
    err = trli_solver_compile_joint_sums(s);
done:
    trli_free(a);
    trli_free(b);
    return err;
}
