/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* How far an operator is from a symmetric one, as coarser grids see it. Derivatives of an equation by values at
 * opposite places differ where there is advection. Their difference over their sizes, times the number of cells along
 * the axis, is half of v L/D for a speed v, a diffusivity D and the length L of the domain, whatever the mesh. So its
 * mean tells what is left of symmetry on the coarsest grid, where L is a few cells. */
#include <math.h>
#include <stdlib.h>

#include "partials_impl.h"
#include "solve_prepare_impl.h"

static void add_magnitude(trli_ir *ir, trli_ir_value *sum, trli_ir_value v)
{
    const trli_ir_value size = trli_ir_unary(ir, TRLI_OP_ABS, v);
    *sum = *sum < 0 ? size : trli_ir_binary(ir, TRLI_OP_ADD, *sum, size);
}

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

/* At a point, and whether there are such values: else the former is 0. TRLI_NO_VALUE where that is not known. */
static trl_err find_row(trli_solver *s, trli_solver_rows *rows, int i, trli_ir_value *skewness, trli_ir_value *counts)
{
    enum { ENTRIES = 20000, LONGEST = 100 };
    trli_ir *ir = &s->sim->model->ir;
    const trli_ir_value zero = trli_ir_constant(ir, 0), one = trli_ir_constant(ir, 1);
    const trli_partial_derivative *list;
    trli_ir_value f, differences = TRLI_NO_VALUE, sizes = TRLI_NO_VALUE;
    int n;
    trl_err err = TRL_OK;
    *skewness = TRLI_NO_VALUE;
    *counts = zero;
    TRL_TRY(s->ask.residual(s->ask.data, rows->marked, i, &f));
    TRL_TRY(trli_partials_of(rows->partials, f, -1, ENTRIES, false, &list, &n));
    if (n > LONGEST) return TRL_OK;
    for (int k = 0; k < n; ++k)
        for (int l = 0; l < n; ++l) {
            if (!are_opposite(&list[k], &list[l])) continue;
            const trli_ir_value cells = trli_ir_constant(ir, cells_between(&s->sim->layout->grid, list[k].offset)),
                                more = trli_ir_binary(ir, TRLI_OP_SUB, list[k].value, list[l].value);
            add_magnitude(ir, &differences, trli_ir_binary(ir, TRLI_OP_MUL, cells, more));
            add_magnitude(ir, &sizes, list[k].value);
            add_magnitude(ir, &sizes, list[l].value);
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

/* Numbers, or sums over all points. */
static trl_err add_row(trli_solver *s, int i, trli_ir_value skewness, trli_ir_value counts)
{
    const trl_location location = s->sim->model->variable[s->ask.variable[i]].location;
    const trli_node *n = skewness < 0 ? NULL : trli_ir_node(&s->sim->model->ir, skewness);
    int *scalar = &s->skewness_scalar[2 * i];
    trl_err err = TRL_OK;
    scalar[0] = scalar[1] = -1;
    s->skewness_number[i] = n ? n->number : INFINITY;
    if (!n || n->op == TRLI_OP_CONSTANT) return TRL_OK;
    TRL_TRY(trli_program_reduce(s->skewness, "skewness", skewness, location, TRLI_REDUCE_SUM, false, NULL, scalar));
    TRL_TRY(trli_program_add_scalar_root(s->skewness, scalar[0]));
    TRL_TRY(
        trli_program_reduce(s->skewness, "points of it", counts, location, TRLI_REDUCE_SUM, false, NULL, scalar + 1));
    err = trli_program_add_scalar_root(s->skewness, scalar[1]);
done:
    return err;
}

trl_err trli_solver_compile_skewness(trli_solver *s)
{
    trli_solver_rows rows = {0};
    trli_ir_value skewness, counts;
    trl_err err = TRL_OK;
    if (!trli_solver_may_be_questionable(s)) return TRL_OK;
    TRL_TRY(trli_solver_begin_rows(s, "skewness", &s->skewness, &rows));
    for (int i = 0; i < s->ask.n; ++i) {
        TRL_TRY(find_row(s, &rows, i, &skewness, &counts));
        TRL_TRY(add_row(s, i, skewness, counts));
    }
done:
    trli_solver_end_rows(&rows);
    return err;
}

trl_err trli_solver_find_skewness(trli_solver *s, bool *skewed)
{
    const double most = 4;
    trl_err err = TRL_OK;
    *skewed = false;
    if (!trli_solver_is_questionable(s)) return TRL_OK;
    TRL_TRY(trli_solver_program(s, s->skewness));
    for (int i = 0; i < s->ask.n; ++i) {
        const int *scalar = &s->skewness_scalar[2 * i];
        const bool varies = scalar[0] >= 0;
        const double sum = varies ? trli_solver_scalar(s, scalar[0]) : s->skewness_number[i],
                     points = varies ? trli_solver_scalar(s, scalar[1]) : 1;
        *skewed |= !(sum <= most * points);
    }
done:
    return err;
}
