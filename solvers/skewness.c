/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* How far an operator is from a symmetric one, as coarser grids see it. Derivatives of an equation by values at
 * opposite places differ where there is advection. Their difference over their sizes, times the number of cells along
 * the axis, is half of v L/D for a speed v, a diffusivity D and the length L of the domain, whatever the mesh. So its
 * mean tells what is left of symmetry on the coarsest grid, where L is a few cells. And whether unknowns are tied: they
 * couple each other faster than what comes through the domain, of which entries would not tell coarser grids. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "diagonal_impl.h"
#include "partials_impl.h"
#include "solve_prepare_impl.h"

/* Whether two derivatives are by values of one unknown at opposite places, and the first of the two is the former. */
static bool are_opposite(const trli_partial_derivative *a, const trli_partial_derivative *b)
{
    int sign = 0;
    if (a->variable != b->variable || a->everywhere || b->everywhere || a->value < 0 || b->value < 0) return false;
    for (int x = 2; x >= 0; --x) {
        if (a->offset[x] != -b->offset[x]) return false;
        if (a->offset[x]) sign = a->offset[x];
    }
    return sign > 0;
}

static double cells_between(const trl_grid *grid, const int16_t offset[3])
{
    double cells = 0;
    for (int x = 0; x < 3; ++x) cells = fmax(cells, abs(offset[x]) * (double)grid->cells[x]);
    return cells;
}

/* Of an equation: whether other unknowns at the same point count for more than what comes through the domain, as the
 * slowest decay by diffusion and v/L say. The sum over points is positive if so at some of them. The number 0 where
 * there are no others. */
static trl_err find_tied(trli_solver *s, trli_solver_rows *rows, const trli_partial_derivative *list, int n, int own,
                         trli_ir_value *tied)
{
    const double much = 10, slowest = 5, few = 0.1; /* of the sum of 2 D/L^2; of the points */
    const int16_t here[3] = {0, 0, 0};
    trli_ir *ir = &s->sim->model->ir;
    trli_ir_value coupling = TRLI_NO_VALUE, rates = trli_ir_constant(ir, 0);
    *tied = rates;
    for (int k = 0; k < n; ++k) {
        const trli_partial_derivative *a = &list[k];
        const double cells = cells_between(&s->sim->layout->grid, a->offset);
        const bool other = a->variable != own && memcmp(a->offset, here, sizeof here) == 0;
        if (a->everywhere || a->value < 0) continue;
        if (other) trli_add_magnitude(ir, &coupling, a->value);
        if (a->variable != own || cells == 0) continue;
        const trli_ir_value share = trli_ir_constant(ir, slowest / (cells * cells));
        trli_add_magnitude(ir, &rates, trli_ir_binary(ir, TRLI_OP_MUL, share, a->value));
        for (int l = 0; l < n; ++l) {
            if (!are_opposite(a, &list[l])) continue;
            const trli_ir_value more = trli_ir_binary(ir, TRLI_OP_SUB, a->value, list[l].value);
            trli_add_magnitude(ir, &rates, trli_ir_binary(ir, TRLI_OP_DIV, more, trli_ir_constant(ir, cells)));
        }
    }
    if (coupling < 0) return TRL_OK;
    const trli_ir_value least = trli_ir_binary(ir, TRLI_OP_MUL, trli_ir_constant(ir, much), rates);
    *tied = trli_ir_select(ir, trli_ir_binary(ir, TRLI_OP_LT, least, coupling), trli_ir_constant(ir, 1),
                           trli_ir_constant(ir, -few));
    return trli_partials_together(rows->partials, *tied, tied);
}

/* At a point, and whether there are such values: else the former is 0. TRLI_NO_VALUE where that is not known. */
static trl_err find_row(trli_solver *s, trli_solver_rows *rows, int i, trli_ir_value *skewness, trli_ir_value *counts,
                        trli_ir_value *tied)
{
    enum { ENTRIES = 20000, LONGEST = 100 };
    trli_ir *ir = &s->sim->model->ir;
    const trli_ir_value zero = trli_ir_constant(ir, 0), one = trli_ir_constant(ir, 1);
    const trli_partial_derivative *list;
    trli_ir_value f, differences = TRLI_NO_VALUE, sizes = TRLI_NO_VALUE;
    int n;
    trl_err err = TRL_OK;
    *skewness = TRLI_NO_VALUE;
    *counts = *tied = zero;
    TRL_TRY(s->ask.residual(s->ask.data, rows->marked, i, &f));
    TRL_TRY(trli_partials_of(rows->partials, f, -1, ENTRIES, false, &list, &n));
    if (n > LONGEST) return TRL_OK;
    TRL_TRY(find_tied(s, rows, list, n, s->ask.variable[i], tied));
    for (int k = 0; k < n; ++k)
        for (int l = 0; l < n; ++l) {
            if (!are_opposite(&list[k], &list[l])) continue;
            const trli_ir_value cells = trli_ir_constant(ir, cells_between(&s->sim->layout->grid, list[k].offset)),
                                more = trli_ir_binary(ir, TRLI_OP_SUB, list[k].value, list[l].value);
            trli_add_magnitude(ir, &differences, trli_ir_binary(ir, TRLI_OP_MUL, cells, more));
            trli_add_magnitude(ir, &sizes, list[k].value);
            trli_add_magnitude(ir, &sizes, list[l].value);
        }
    *skewness = zero;
    if (differences < 0) return TRL_OK;
    const trli_ir_value none = trli_ir_binary(ir, TRLI_OP_EQ, sizes, zero);
    *skewness = trli_ir_select(ir, none, zero, trli_ir_binary(ir, TRLI_OP_DIV, differences, sizes));
    *counts = trli_ir_select(ir, none, zero, one);
    TRL_TRY(trli_partials_together(rows->partials, *skewness, skewness));
    err = trli_partials_together(rows->partials, *counts, counts);
done:
    return err;
}

/* A number, or the sum over all points. */
static trl_err add_sum(trli_solver *s, int i, const char *label, trli_ir_value v, double *number, int *scalar)
{
    const trl_location location = s->sim->model->variable[s->ask.variable[i]].location;
    const trli_node *n = v < 0 ? NULL : trli_ir_node(&s->sim->model->ir, v);
    trl_err err = TRL_OK;
    *scalar = -1;
    *number = n ? n->number : INFINITY;
    if (!n || n->op == TRLI_OP_CONSTANT) return TRL_OK;
    TRL_TRY(trli_program_reduce(s->skewness, label, v, location, TRLI_REDUCE_SUM, false, NULL, scalar));
    err = trli_program_add_scalar_root(s->skewness, *scalar);
done:
    return err;
}

trl_err trli_solver_compile_skewness(trli_solver *s)
{
    trli_solver_rows rows = {0};
    trli_ir_value skewness, counts, tied;
    trl_err err = TRL_OK;
    if (!trli_solver_may_be_questionable(s) && s->ask.n == 1) return TRL_OK;
    TRL_TRY(trli_solver_begin_rows(s, "skewness", &s->skewness, &rows));
    for (int i = 0; i < s->ask.n; ++i) {
        double *number = &s->skewness_number[3 * i];
        int *scalar = &s->skewness_scalar[3 * i];
        TRL_TRY(find_row(s, &rows, i, &skewness, &counts, &tied));
        TRL_TRY(add_sum(s, i, "skewness", skewness, number, scalar));
        TRL_TRY(add_sum(s, i, "points of it", counts, number + 1, scalar + 1));
        TRL_TRY(add_sum(s, i, "tied", tied, number + 2, scalar + 2));
    }
done:
    trli_solver_end_rows(&rows);
    return err;
}

static double sum_of(const trli_solver *s, int k)
{
    return s->skewness_scalar[k] >= 0 ? trli_solver_scalar(s, s->skewness_scalar[k]) : s->skewness_number[k];
}

trl_err trli_solver_find_skewness(trli_solver *s)
{
    const double most = 4;
    const bool questionable = trli_solver_is_questionable(s);
    trl_err err = TRL_OK;
    s->skewed = s->tied = false;
    if (!questionable && s->ask.n == 1) return TRL_OK;
    TRL_TRY(trli_solver_program(s, s->skewness));
    for (int i = 0; i < s->ask.n; ++i) {
        const double sum = sum_of(s, 3 * i), points = s->skewness_scalar[3 * i] >= 0 ? sum_of(s, 3 * i + 1) : 1;
        s->skewed |= questionable && !(sum <= most * points);
        s->tied |= sum_of(s, 3 * i + 2) > 0;
    }
done:
    return err;
}
