/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The diagonal of a system's Jacobian, and by Gershgorin's theorem a bound of the eigenvalues of its inverse times the
 * Jacobian. */
#include <math.h>
#include <stdlib.h>

#include "diagonal_impl.h"
#include "lifecycle_impl.h"
#include "memory_impl.h"
#include "parameters_impl.h"
#include "partials_impl.h"
#include "sides_impl.h"

static void note_strength(trli_solver *s, const trli_partial_derivative *e)
{
    const trli_node *n = e->value < 0 ? NULL : trli_ir_node(&s->sim->model->ir, e->value);
    const int far = abs(e->offset[0]) + abs(e->offset[1]) + abs(e->offset[2]);
    s->star &= !e->everywhere && far <= 1;
    s->plain &= n && n->op == TRLI_OP_CONSTANT && e->bound < 0 && !e->everywhere && far <= 1;
    for (int a = 0; a < 3; ++a) {
        const bool along = e->offset[a] && !e->offset[(a + 1) % 3] && !e->offset[(a + 2) % 3];
        if (!along || !n || n->op != TRLI_OP_CONSTANT) continue;
        s->strength[a] = fmax(s->strength[a], fabs(n->number));
        s->drift[a] += e->offset[a] * n->number;
    }
}

/* An unknown's row of the Jacobian: TRLI_NO_VALUE where it is not known. */
typedef struct row {
    trli_ir_value diagonal;   /* its equation's derivative by the unknown at the same point; of several it may be 0 */
    trli_ir_value magnitudes; /* the sum of the magnitudes of all derivatives by unknowns */
    trli_ir_value own;        /* of those by this unknown */
} row;

int trli_solver_unknown_of(const trli_solver *s, int variable)
{
    for (int i = 0; i < s->ask.n; ++i)
        if (s->ask.variable[i] == variable) return i;
    return -1;
}

void trli_add_magnitude(trli_ir *ir, trli_ir_value *sum, trli_ir_value v)
{
    const trli_ir_value size = trli_ir_unary(ir, TRLI_OP_ABS, v);
    *sum = *sum < 0 ? size : trli_ir_binary(ir, TRLI_OP_ADD, *sum, size);
}

static void add_entry(trli_ir *ir, trli_ir_value *sum, const trli_partial_derivative *e)
{
    if (e->value >= 0) trli_add_magnitude(ir, sum, e->value);
    if (e->bound >= 0) trli_add_magnitude(ir, sum, e->bound);
}

static trl_err find_row(trli_solver *s, trli_instance *in, trli_partials *partials, int i, row *r)
{
    enum { ENTRIES = 20000, LONGEST = 100 };
    trli_ir *ir = &s->sim->model->ir;
    const trli_partial_derivative *list;
    int n;
    trl_err err = TRL_OK;
    trli_ir_value f;
    bool complete = true;
    *r = (row){s->ask.n > 1 ? trli_ir_constant(ir, 0) : TRLI_NO_VALUE, TRLI_NO_VALUE, TRLI_NO_VALUE};
    TRL_TRY(s->ask.residual(s->ask.data, in, i, &f));
    TRL_TRY(trli_partials_of(partials, f, -1, ENTRIES, false, &list, &n));
    for (int k = 0; k < n; ++k) {
        const trli_partial_derivative *e = &list[k];
        const bool here = !e->everywhere && !e->offset[0] && !e->offset[1] && !e->offset[2];
        if (e->variable == s->ask.variable[i] && here) r->diagonal = e->value;
        if (e->variable == s->ask.variable[i]) note_strength(s, e);
        if (trli_solver_unknown_of(s, e->variable) < 0) continue;
        s->coupled |= e->variable != s->ask.variable[i];
        complete &= !e->everywhere;
        if (n > LONGEST) continue;
        add_entry(ir, &r->magnitudes, e);
        if (e->variable == s->ask.variable[i]) add_entry(ir, &r->own, e);
    }
    if (!complete || n > LONGEST) r->magnitudes = r->own = TRLI_NO_VALUE;
    if (r->diagonal >= 0) TRL_TRY(trli_partials_together(partials, r->diagonal, &r->diagonal));
    if (r->magnitudes >= 0) TRL_TRY(trli_partials_together(partials, r->magnitudes, &r->magnitudes));
    if (r->own >= 0) TRL_TRY(trli_partials_together(partials, r->own, &r->own));
done:
    return err;
}

/* The largest sum of a row's magnitudes over its diagonal: a number where it is one, else found with the diagonal.
 * k: i, or ask.n + i for those of the row's own unknown. */
static trl_err add_bound(trli_solver *s, int i, int k, trli_ir_value ratio)
{
    const trl_location location = s->sim->model->variable[s->ask.variable[i]].location;
    trl_err err = TRL_OK;
    s->bounded &= ratio >= 0;
    if (ratio < 0) return TRL_OK;
    const trli_node *n = trli_ir_node(&s->sim->model->ir, ratio);
    s->bound_scalar[k] = -1;
    if (n->op == TRLI_OP_CONSTANT) {
        s->bound_number[k] = n->number;
        return TRL_OK;
    }
    TRL_TRY(trli_program_reduce(s->diagonal, "largest row", ratio, location, TRLI_REDUCE_MAX, false, NULL,
                                &s->bound_scalar[k]));
    TRL_TRY(trli_program_add_scalar_root(s->diagonal, s->bound_scalar[k]));
done:
    return err;
}

static trl_err add_bounds(trli_solver *s, const trli_ir_value *all, const trli_ir_value *own)
{
    trl_err err = TRL_OK;
    for (int i = 0; i < s->ask.n; ++i) {
        TRL_TRY(add_bound(s, i, i, all[i]));
        if (s->ask.n > 1) TRL_TRY(add_bound(s, i, s->ask.n + i, own[i]));
    }
done:
    return err;
}

/* *value over the diagonal. */
static void over_diagonal(trli_solver *s, int i, trli_ir_value *value)
{
    trli_ir *ir = &s->sim->model->ir;
    if (*value >= 0)
        *value = trli_ir_binary(ir, TRLI_OP_MUL, *value, trli_ir_unary(ir, TRLI_OP_ABS, s->inverse_value[i]));
}

trl_err trli_solver_invert(trli_solver *s, trli_instance *in, int i, trli_ir_value diagonal)
{
    trli_ir *ir = &s->sim->model->ir;
    const trli_ir_value one = trli_ir_constant(ir, 1), zero = trli_ir_constant(ir, 0);
    const trli_ir_value inverse = trli_ir_binary(ir, TRLI_OP_DIV, one, diagonal);
    s->inverse_value[i] = trli_ir_select(ir, trli_ir_binary(ir, TRLI_OP_EQ, diagonal, zero), one, inverse);
    return trli_solver_masked(s, in, i, &s->inverse_value[i]);
}

/* all, own: [n] of the magnitudes of rows over their diagonals. */
static trl_err find_rows(trli_solver *s, trli_solver_rows *rows, trli_ir_value *all, trli_ir_value *own)
{
    bool known = true;
    row r;
    trl_err err = TRL_OK;
    s->bounded = s->plain = s->star = true;
    for (int i = 0; i < s->ask.n && known; ++i) {
        TRL_TRY(find_row(s, rows->marked, rows->partials, i, &r));
        known = r.diagonal >= 0;
        if (!known) break;
        TRL_TRY(trli_solver_invert(s, rows->in, i, r.diagonal));
        all[i] = r.magnitudes;
        own[i] = r.own;
        over_diagonal(s, i, &all[i]);
        over_diagonal(s, i, &own[i]);
    }
    s->bounded &= known;
    s->plain &= known;
    for (int i = 0; i < s->ask.n && !known; ++i) s->inverse_value[i] = TRLI_NO_VALUE;
    if (!known) return TRL_OK;
    TRL_TRY(trli_solver_find_saddle(s, rows, all, own));
    if (!s->constraint) TRL_TRY(trli_solver_find_blocks(s, rows, all, own));
    err = add_bounds(s, all, own);
done:
    return err;
}

bool trli_solver_finds_contrast(const trli_solver *s)
{
    const bool coloured = s->settings.smoother > TRL_SMOOTHER_CHEBYSHEV;
    const bool again = !s->sim->problem->time.none || !s->linear;
    return (coloured && !trli_solver_has_gaps(s)) || (trli_solver_reads_fields(s) && again) || s->ask.n > 1;
}

/* Extremes of an unknown's diagonal. */
static trl_err add_extreme(trli_solver *s, int i)
{
    static const char *const label[] = {"largest diagonal", "smallest diagonal"};
    trli_ir *ir = &s->sim->model->ir;
    const trl_location location = s->sim->model->variable[s->ask.variable[i]].location;
    const trli_ir_value zero = trli_ir_constant(ir, 0), inverse = trli_ir_unary(ir, TRLI_OP_ABS, s->inverse_value[i]);
    const trli_ir_value own = trli_ir_binary(ir, TRLI_OP_DIV, trli_ir_constant(ir, 1), inverse);
    const trli_ir_value value[] = {trli_ir_select(ir, trli_ir_binary(ir, TRLI_OP_EQ, inverse, zero), zero, own),
                                   inverse};
    int *scalar = &s->extreme[2 * i];
    trl_err err = TRL_OK;
    scalar[0] = scalar[1] = -1;
    if (trli_ir_node(ir, inverse)->op == TRLI_OP_CONSTANT) return TRL_OK;
    for (int k = 0; k < 2; ++k) {
        TRL_TRY(
            trli_program_reduce(s->diagonal, label[k], value[k], location, TRLI_REDUCE_MAX, false, NULL, &scalar[k]));
        TRL_TRY(trli_program_add_scalar_root(s->diagonal, scalar[k]));
    }
done:
    return err;
}

/* With which coarser grids are chosen. */
static trl_err add_extremes(trli_solver *s)
{
    trl_err err = TRL_OK;
    if (s->finest || !s->star || !trli_solver_finds_contrast(s)) return TRL_OK;
    s->extreme = trli_model_keep(s->sim->model, 2 * (size_t)s->ask.n * sizeof *s->extreme);
    if (!s->extreme) return s->sim->model->ir.err;
    for (int i = 0; i < s->ask.n && err == TRL_OK; ++i) err = add_extreme(s, i);
    return err;
}

double trli_solver_contrast(const trli_solver *s)
{
    double most = 1;
    for (int i = 0; s->extreme && i < s->ask.n; ++i) {
        const int *scalar = &s->extreme[2 * i];
        if (scalar[0] >= 0) most = fmax(most, trli_solver_scalar(s, scalar[0]) * trli_solver_scalar(s, scalar[1]));
    }
    return most;
}

/* A number where it is one, else in a field. */
static trl_err store_inverse(trli_solver *s)
{
    bool varies = false;
    trl_err err = TRL_OK;
    for (int i = 0; i < s->ask.n && s->inverse_value[i] >= 0; ++i)
        varies |= trli_ir_node(&s->sim->model->ir, s->inverse_value[i])->op != TRLI_OP_CONSTANT;
    if (varies) TRL_TRY(add_extremes(s));
    if (!varies || (s->block_value && !s->ask.products_alone)) return TRL_OK; /* else the diagonal's is asked for */
    TRL_TRY(trli_vector_add(s, "inverse", false, &s->inverse));
    TRL_TRY(trli_solver_store(s, s->diagonal, s->inverse.now, s->inverse_value));
    trli_solver_read(s, s->inverse.now, s->inverse_value);
done:
    return err;
}

trl_err trli_solver_compile_diagonal(trli_solver *s)
{
    trli_solver_rows rows = {0};
    trli_ir_value *bound = trli_new(s->sim->ctx, 2 * (size_t)s->ask.n, sizeof *bound);
    trl_err err = TRL_OK;
    if (!bound) return trli_no_memory(s->sim->ctx, NULL, "for a solver");
    TRL_TRY(trli_solver_begin_rows(s, "diagonal", &s->diagonal, &rows));
    TRL_TRY(find_rows(s, &rows, bound, bound + s->ask.n));
    err = store_inverse(s);
done:
    trli_solver_end_rows(&rows);
    trli_free(bound);
    return err;
}

static double largest_of(const trli_solver *s, int begin)
{
    double most = 0;
    for (int k = begin; k < begin + s->ask.n; ++k)
        most = fmax(most, s->bound_scalar[k] < 0 ? s->bound_number[k] : trli_solver_scalar(s, s->bound_scalar[k]));
    return most;
}

double trli_solver_largest_row(const trli_solver *s)
{
    return largest_of(s, 0);
}

double trli_solver_largest_own_row(const trli_solver *s)
{
    return largest_of(s, s->ask.n > 1 ? s->ask.n : 0);
}

int trli_solver_drifts(const trli_solver *s)
{
    const double rounding = 1e-10;
    int n = 0;
    for (int a = 0; a < 3; ++a) n += fabs(s->drift[a]) > rounding * s->strength[a];
    return n;
}
