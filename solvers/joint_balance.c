/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Whether unknowns cancel in a sum of a linear system's equations over all points: J^T w = 0 for weights w that are
 * one number for each equation, as where unknowns exchange what no side takes. Then the right-hand side must cancel in
 * the same sum, or there is no solution. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "lifecycle_impl.h"
#include "memory_impl.h"
#include "solve_ahead_impl.h"
#include "solve_errors_impl.h"
#include "solve_look_impl.h"

enum { UNKNOWNS_MOST = 16, RANDOM = 2, SAMPLES_MOST = UNKNOWNS_MOST + RANDOM };

struct trli_joint_sums {
    trli_program *program;
    int sum[UNKNOWNS_MOST], size[UNKNOWNS_MOST]; /* scalars: of an equation's values of q, and of their magnitudes */
};

/* What equations' sums are of products with ones of each unknown, and with random vectors, over what those of the
 * latter would be without signs. */
typedef struct samples {
    int n, count;
    double size[UNKNOWNS_MOST];
    double of[SAMPLES_MOST][UNKNOWNS_MOST];
} samples;

static trl_err add_sum(trli_solver *s, trli_program *program, int i, trli_ir_value v, int *scalar)
{
    const trl_location location = s->sim->model->variable[s->ask.variable[i]].location;
    trl_err err = TRL_OK;
    TRL_TRY(trli_program_reduce(program, "sum of q", v, location, TRLI_REDUCE_SUM, true, NULL, scalar));
    err = trli_program_add_scalar_root(program, *scalar);
done:
    return err;
}

trl_err trli_solver_compile_joint_sums(trli_solver *s)
{
    trli_ir *ir = &s->sim->model->ir;
    trl_err err = TRL_OK;
    if (!s->linear || s->ask.n == 1 || s->ask.n > UNKNOWNS_MOST) return TRL_OK;
    struct trli_joint_sums *j = trli_model_keep(s->sim->model, sizeof *j);
    trli_ir_value *q = trli_new(s->sim->ctx, (size_t)s->ask.n, sizeof *q);
    if (!j || !q) TRL_TRY(trli_no_memory(s->sim->ctx, NULL, "for a solver"));
    TRL_TRY(trli_solver_begin(s, "sums of products", &j->program));
    j->program->once = true;
    trli_solver_read(s, s->q.now, q);
    for (int i = 0; i < s->ask.n; ++i) {
        TRL_TRY(add_sum(s, j->program, i, q[i], &j->sum[i]));
        TRL_TRY(add_sum(s, j->program, i, trli_ir_unary(ir, TRLI_OP_ABS, q[i]), &j->size[i]));
    }
    s->joint = j;
done:
    trli_free(q);
    return err;
}

/* Of the product with ones of an unknown, or a random vector. */
static trl_err add_sample(trli_solver *s, int one, int noise, samples *a)
{
    trl_err err = TRL_OK;
    TRL_TRY(trli_solver_try(s, one, noise));
    TRL_TRY(trli_solver_program(s, s->joint->program));
    for (int i = 0; i < a->n; ++i) {
        a->of[a->count][i] = trli_solver_scalar(s, s->joint->sum[i]);
        if (noise >= 0) a->size[i] = fmax(a->size[i], trli_solver_scalar(s, s->joint->size[i]));
    }
    ++a->count;
done:
    return err;
}

/* *usable: all equations have values. */
static trl_err find_samples(trli_solver *s, samples *a, bool *usable)
{
    trl_err err = TRL_OK;
    *a = (samples){.n = s->ask.n};
    *usable = true;
    for (int i = 0; i < a->n; ++i) TRL_TRY(add_sample(s, i, -1, a));
    for (int k = 0; k < RANDOM; ++k) TRL_TRY(add_sample(s, -1, k, a));
    for (int i = 0; i < a->n; ++i) {
        *usable &= a->size[i] > 0 && isfinite(a->size[i]);
        for (int k = 0; k < a->count && *usable; ++k) a->of[k][i] /= a->size[i];
    }
done:
    return err;
}

/* Gauss and Jordan's elimination of the first rows, by the largest entries; pivot[k]: the column of row k. Returns the
 * rank. */
static int eliminate(samples *a, int rows, int *pivot)
{
    const double rounding = 1e-12;
    int rank = 0;
    for (bool used[UNKNOWNS_MOST] = {false}; rank < rows && rank < a->n; ++rank) {
        int row = rank, column = 0;
        double most = 0, kept[UNKNOWNS_MOST];
        for (int k = rank; k < rows; ++k)
            for (int i = 0; i < a->n; ++i)
                if (!used[i] && fabs(a->of[k][i]) > most) most = fabs(a->of[row = k][column = i]);
        if (!(most > rounding)) break;
        memcpy(kept, a->of[row], sizeof kept);
        memcpy(a->of[row], a->of[rank], sizeof kept);
        for (int i = 0; i < a->n; ++i) a->of[rank][i] = kept[i] / kept[column];
        for (int k = 0; k < rows; ++k) {
            const double factor = k == rank ? 0 : a->of[k][column];
            for (int i = 0; i < a->n; ++i) a->of[k][i] -= factor * a->of[rank][i];
        }
        used[column] = true;
        pivot[rank] = column;
    }
    return rank;
}

/* Weights with which all samples cancel, 1 for the equation `column` that no pivot is of; the largest one is 1 then. */
static void find_weights(const samples *a, int rank, const int *pivot, int column, double *weight)
{
    double most = 0;
    memset(weight, 0, (size_t)a->n * sizeof *weight);
    weight[column] = 1 / a->size[column];
    for (int k = 0; k < rank; ++k) weight[pivot[k]] = -a->of[k][column] / a->size[pivot[k]];
    for (int i = 0; i < a->n; ++i)
        if (fabs(weight[i]) > 1.000001 * fabs(most)) most = weight[i];
    for (int i = 0; i < a->n; ++i) weight[i] /= most;
}

/* Sums of the residual of zero; x and r are what they were. */
static trl_err find_sums(trli_solver *s, double *sum)
{
    double norm;
    trl_err err = TRL_OK;
    TRL_TRY(trli_solver_begin_at_zero(s, &norm));
    memcpy(sum, s->r_sum, (size_t)s->ask.n * sizeof *sum);
    trli_vector_swap(s, &s->x);
    err = trli_solver_begin_at(s, &norm);
done:
    return err;
}

/* What is left of the residual at least, since unknowns make only what cancels in the sum. */
static double left_of(const trli_solver *s, const double *weight, const double *of_zero, double *mean)
{
    double sum = 0, squares = 0;
    int first = 0;
    for (int i = 0; i < s->ask.n; ++i) {
        sum += weight[i] * of_zero[i];
        squares += weight[i] * weight[i] * s->points[i];
        if (fabs(weight[i]) > fabs(weight[first])) first = i;
    }
    *mean = sum / s->points[first];
    return trli_solver_norm(s, sum * sum / squares);
}

/* Whether weights that cancel all samples cancel any product: those of two random vectors show by one what those of
 * ones have left open. */
static bool are_enough(const samples *a, int rank)
{
    samples ones = *a;
    int pivot[UNKNOWNS_MOST];
    return rank < eliminate(&ones, a->n, pivot) + RANDOM;
}

trl_err trli_solver_refuse_joint(trli_solver *s)
{
    const double little = 1e-9;
    samples a;
    double mean, weight[UNKNOWNS_MOST], of_zero[UNKNOWNS_MOST];
    int pivot[UNKNOWNS_MOST];
    bool usable;
    trl_err err = TRL_OK;
    if (!s->joint) return TRL_OK;
    TRL_TRY(find_samples(s, &a, &usable));
    if (!usable) return TRL_OK;
    samples whole = a;
    const int rank = eliminate(&whole, a.count, pivot);
    if (rank == a.n || !are_enough(&a, rank)) return TRL_OK;
    TRL_TRY(find_sums(s, of_zero));
    for (int column = 0; column < a.n; ++column) {
        bool open = true;
        for (int k = 0; k < rank; ++k) open &= pivot[k] != column;
        if (!open) continue;
        find_weights(&whole, rank, pivot, column, weight);
        for (int i = 0; i < a.n; ++i)
            if (fabs(weight[i]) < little) weight[i] = 0;
        if (left_of(s, weight, of_zero, &mean) > s->enough) return trli_solver_joint_inconsistent(s, weight, mean);
    }
done:
    return err;
}
