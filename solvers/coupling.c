/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The derivatives of a system's equations by its unknowns at the same point. */
#include "diagonal_impl.h"
#include "lifecycle_impl.h"
#include "memory_impl.h"
#include "partials_impl.h"
#include "point_blocks_impl.h"
#include "sides_impl.h"

/* The derivatives of equation i by each unknown, [n]. *known: formulas give all of them. */
static trl_err find_row(trli_solver *s, trli_instance *marked, trli_partials *partials, int i, trli_ir_value *row,
                        bool *known)
{
    enum { ENTRIES = 20000 };
    const trli_partial_derivative *list;
    trli_ir_value f;
    int n;
    trl_err err = TRL_OK;
    for (int j = 0; j < s->ask.n; ++j) row[j] = trli_ir_constant(&s->sim->model->ir, 0);
    TRL_TRY(s->ask.residual(s->ask.data, marked, i, &f));
    TRL_TRY(trli_partials_of(partials, f, -1, ENTRIES, false, &list, &n));
    for (int k = 0; k < n; ++k) {
        const trli_partial_derivative *e = &list[k];
        const int j = trli_solver_unknown_of(s, e->variable);
        if (j < 0 || e->everywhere || e->offset[0] || e->offset[1] || e->offset[2]) continue;
        *known &= e->value >= 0;
        if (e->value >= 0) row[j] = e->value;
    }
    for (int j = 0; j < s->ask.n; ++j) TRL_TRY(trli_partials_together(partials, row[j], &row[j]));
done:
    return err;
}

trl_err trli_solver_find_point_rows(trli_solver *s, const trli_solver_rows *rows, trli_ir_value *entry, bool *known)
{
    trl_err err = TRL_OK;
    *known = true;
    for (int i = 0; i < s->ask.n && *known; ++i)
        TRL_TRY(find_row(s, rows->marked, rows->partials, i, entry + (size_t)i * (size_t)s->ask.n, known));
done:
    return err;
}

static bool at_one_place(const trli_solver *s)
{
    const trli_variable *variable = s->sim->model->variable;
    bool same = true;
    for (int i = 1; i < s->ask.n; ++i)
        same &= variable[s->ask.variable[i]].location == variable[s->ask.variable[0]].location;
    return same;
}

/* Of a row: *to where the entry is to be stored; what is stored is the entry then. */
static trl_err find_place(trli_solver *s, trli_program *program, const char *what, int i, int j, bool scalars,
                          trli_ir_value *entry, int *to)
{
    trli_model *model = s->sim->model;
    const trli_variable *v = &model->variable[s->ask.variable[i]];
    const trli_node *node = trli_ir_node(&model->ir, *entry);
    const char *name = trli_model_name(model, "%s:%s%d", v->name, what, j);
    int scalar;
    trl_err err = TRL_OK;
    *to = -1;
    if (node->op == TRLI_OP_CONSTANT || (scalars && node->op == TRLI_OP_SCALAR)) return model->ir.err;
    if (scalars && node->varies == 0) {
        TRL_TRY(trli_program_scalar(program, name, *entry, &scalar));
        TRL_TRY(trli_program_add_scalar_root(program, scalar));
        *entry = trli_ir_scalar(&model->ir, scalar);
        return model->ir.err;
    }
    *to = trli_model_add_field(model, name, v->location);
    if (*to >= 0) model->field[*to].persistent = true;
    err = model->ir.err;
done:
    return err;
}

/* One kernel for the rows from `begin` on, to before `end`, which are at one place. */
static trl_err store_rows(trli_solver *s, trli_program *program, const char *what, int begin, int end, bool scalars,
                          trli_ir_value *entry)
{
    const int n = s->ask.n;
    const size_t most = (size_t)(end - begin) * (size_t)n;
    int *to = trli_new(s->sim->ctx, most, sizeof *to), count = 0, field;
    trli_ir_value *value = trli_new(s->sim->ctx, most, sizeof *value);
    trl_err err = TRL_OK;
    if (!to || !value) TRL_TRY(trli_no_memory(s->sim->ctx, NULL, "for a solver"));
    for (int k = begin * n; k < end * n; ++k) {
        TRL_TRY(find_place(s, program, what, k / n, k % n, scalars, &entry[k], &field));
        if (field < 0) continue;
        to[count] = field;
        value[count++] = entry[k];
        entry[k] = trli_ir_field(&s->sim->model->ir, field);
    }
    if (count == 0) goto done;
    TRL_TRY(trli_program_add_kernel(program, what, count, to, value, NULL));
    for (int k = 0; k < count; ++k) TRL_TRY(trli_program_add_root(program, to[k]));
done:
    trli_free(to);
    trli_free(value);
    return err;
}

trl_err trli_solver_store_matrix(trli_solver *s, trli_program *program, const char *what, bool scalars,
                                 trli_ir_value *entry)
{
    const int n = s->ask.n, step = at_one_place(s) ? n : 1;
    trl_err err = TRL_OK;
    for (int i = 0; i < n && err == TRL_OK; i += step) err = store_rows(s, program, what, i, i + step, scalars, entry);
    return err;
}

/* Where an unknown does not advance its equation is that of the identity. */
static trl_err clear_masked(trli_solver *s, trli_instance *in, int i, trli_ir_value *row)
{
    trli_ir *ir = &s->sim->model->ir;
    const trli_ir_value one = trli_ir_constant(ir, 1);
    trl_err err = TRL_OK;
    for (int j = 0; j < s->ask.n; ++j) {
        if (i == j) row[j] = trli_ir_binary(ir, TRLI_OP_SUB, row[j], one);
        TRL_TRY(trli_solver_masked(s, in, i, &row[j]));
        if (i == j) row[j] = trli_ir_binary(ir, TRLI_OP_ADD, row[j], one);
    }
done:
    return err;
}

trl_err trli_solver_compile_coupling(trli_solver *s)
{
    const size_t n = (size_t)s->ask.n;
    trli_model *model = s->sim->model;
    trli_solver_rows rows = {0};
    bool known = true;
    trl_err err = TRL_OK;
    if (!s->coupled || n > TRLI_BLOCK_MOST || !at_one_place(s)) return TRL_OK;
    trli_ir_value *row = trli_model_keep(model, (n * n + 1) * sizeof *row);
    s->coupling = trli_model_keep(model, (n * n + 1) * sizeof *s->coupling);
    s->coupling_number = trli_model_keep(model, (n * n + 1) * sizeof *s->coupling_number);
    TRL_TRY(model->ir.err);
    TRL_TRY(trli_solver_begin_rows(s, "coupling", &s->couple, &rows));
    TRL_TRY(trli_solver_find_point_rows(s, &rows, row, &known));
    for (int i = 0; i < s->ask.n && known; ++i) TRL_TRY(clear_masked(s, rows.in, i, row + (size_t)i * n));
    if (known) TRL_TRY(trli_solver_store_matrix(s, s->couple, "coupling", false, row));
    for (size_t k = 0; k < n * n && known; ++k) {
        const trli_node *node = trli_ir_node(&model->ir, row[k]);
        s->coupling[k] = node->op == TRLI_OP_FIELD ? node->index : -1;
        s->coupling_number[k] = node->number;
    }
    if (!known) s->coupling = NULL;
done:
    trli_solver_end_rows(&rows);
    return err;
}

bool trli_solver_has_coupling(const trli_solver *solver)
{
    return solver->coupling != NULL;
}

trl_err trli_solver_find_coupling(trli_solver *solver)
{
    return trli_solver_program(solver, solver->couple);
}

int trli_solver_coupling(const trli_solver *solver, int i, int j, double *number)
{
    const int at = i * solver->ask.n + j;
    *number = solver->coupling_number[at];
    return solver->coupling[at];
}
