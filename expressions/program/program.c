/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Programs: lists of steps in a valid serial order, grown while formulas are lowered. */
#include <string.h>

#include "memory_impl.h"
#include "model_impl.h"

trl_err trli_program_create(trli_model *model, const char *name, trli_program **program)
{
    *program = NULL;
    if (trli_make_room(model->ctx, &model->program, model->nprograms, 1, &model->programs_capacity,
                       sizeof *model->program))
        *program = trli_new(model->ctx, 1, sizeof **program);
    if (!*program) return trli_no_memory(model->ctx, NULL, "for program '%s'", name);
    **program = (trli_program){.model = model, .number = model->nprograms, .name = name};
    model->program[model->nprograms++] = *program;
    return TRL_OK;
}

void trli_step_free(trli_step *step)
{
    trli_side(*sides)[6] = trli_step_sides(step);
    for (int i = 0; sides && i < 6 * step->nout; ++i) trli_free(sides[i / 6][i % 6].piece);
    trli_free(sides);
}

void trli_program_destroy(trli_program **program)
{
    trli_program *p = *program;
    *program = NULL;
    if (!p) return;
    for (int i = 0; i < p->nsteps; ++i) trli_step_free(&p->step[i]);
    trli_free(p->step);
    trli_free(p->work);
    trli_free(p->root);
    trli_free(p->scalar_root);
    trli_free(p->stored_field);
    trli_free(p->candidate);
    trli_free(p);
}

trli_step *trli_program_append(trli_program *program, trli_step_kind kind, const char *label)
{
    trl_context *ctx = program->model->ctx;
    if (!trli_make_room(ctx, &program->step, program->nsteps, 1, &program->capacity, sizeof *program->step)) {
        program->model->ir.err =
            trli_no_memory(ctx, NULL, "for %d steps of program '%s'", program->nsteps + 1, program->name);
        return NULL;
    }
    trli_step *s = &program->step[program->nsteps++];
    *s = (trli_step){.kind = kind, .label = label, .place = program->place, .scalar = -1};
    return s;
}

static void *keep_copy(trli_model *model, const void *data, size_t bytes)
{
    void *copy = trli_model_keep(model, bytes);
    if (copy) memcpy(copy, data, bytes);
    return copy;
}

trl_err trli_program_add_kernel(trli_program *program, const char *label, int n, const int *field,
                                const trli_ir_value *value, const int *variable)
{
    trli_model *model = program->model;
    trli_step *step = trli_program_append(program, TRLI_STEP_KERNEL, label);
    if (!step) return model->ir.err;
    step->nout = n;
    step->field = keep_copy(model, field, (size_t)n * sizeof *field);
    step->value = keep_copy(model, value, (size_t)n * sizeof *value);
    if (variable) step->variable = keep_copy(model, variable, (size_t)n * sizeof *variable);
    return model->ir.err;
}

/* The table from values to the fields that hold them, grown with the IR. */
static trl_err reserve_stored(trli_program *program, trli_ir_value value)
{
    if (value < program->stored_count) return TRL_OK;
    int n = 2 * (value + 1);
    int *table = trli_resize(program->model->ctx, program->stored_field, (size_t)n, sizeof *table);
    if (!table) return trli_no_memory(program->model->ctx, NULL, "for %d stored values", n);
    for (int i = program->stored_count; i < n; ++i) table[i] = -1;
    program->stored_field = table;
    program->stored_count = n;
    return TRL_OK;
}

trl_err trli_program_store(trli_program *program, const char *name, const char *why, trli_ir_value value,
                           trl_location location, const trli_boundary_source *boundary, int *field)
{
    trli_model *model = program->model;
    trl_err err = TRL_OK;
    TRL_TRY(reserve_stored(program, value));
    *field = program->stored_field[value];
    /* One value at two locations differs in its box; a value with conditions of its own is a field of its own. */
    if (!boundary && *field >= 0 && model->field[*field].location == location) return TRL_OK;
    *field = trli_model_add_field(model, name, location);
    if (*field < 0) return model->ir.err;
    model->field[*field].why = why;
    if (boundary) {
        model->field[*field].exchanged = true;
        model->field[*field].boundary = *boundary;
    } else {
        program->stored_field[value] = *field;
    }
    TRL_TRY(trli_program_add_kernel(program, name, 1, field, &value, NULL));
done:
    return err;
}

trl_err trli_program_add_candidate(trli_program *program, const char *name, trli_ir_value value, trl_location location)
{
    const trli_node *n = trli_ir_node(&program->model->ir, value);
    if (n->op == TRLI_OP_NEG) { /* readers take the sign into their own operations */
        name = trli_model_name(program->model, "-%s", name);
        value = n->arg[0];
    }
    if (!trli_make_room(program->model->ctx, &program->candidate, program->ncandidates, 1,
                        &program->candidates_capacity, sizeof *program->candidate))
        return trli_no_memory(program->model->ctx, NULL, "for %d named values of program '%s'",
                              program->ncandidates + 1, program->name);
    program->candidate[program->ncandidates++] =
        (trli_candidate){.name = name, .value = value, .location = location, .position = program->nsteps};
    return TRL_OK;
}

static const trli_step *find_reduction(const trli_program *program, const trli_step *wanted)
{
    for (int i = 0; i < program->nsteps; ++i) {
        const trli_step *s = &program->step[i];
        const trli_reduce_step *a = &s->reduce, *b = &wanted->reduce;
        if (s->kind == wanted->kind && s->value[0] == wanted->value[0] && a->kind == b->kind &&
            a->location == b->location && a->weighted == b->weighted &&
            memcmp(a->point, b->point, sizeof a->point) == 0)
            return s;
    }
    return NULL;
}

trl_err trli_program_reduce(trli_program *program, const char *label, trli_ir_value value, trl_location location,
                            trli_reduce_kind kind, bool weighted, const trl_gidx *point, int *scalar)
{
    trli_model *model = program->model;
    trli_step wanted = {.kind = TRLI_STEP_REDUCE,
                        .value = &value,
                        .reduce = {.kind = kind, .location = location, .weighted = weighted}};
    if (model->ir.err != TRL_OK) return model->ir.err;
    if (point) memcpy(wanted.reduce.point, point, sizeof wanted.reduce.point);
    const trli_step *same = find_reduction(program, &wanted);
    if (same) {
        *scalar = same->scalar;
        return TRL_OK;
    }
    *scalar = trli_model_add_scalar(model, 0);
    trli_step *step = trli_program_append(program, TRLI_STEP_REDUCE, label);
    if (*scalar < 0 || !step) return model->ir.err;
    step->value = keep_copy(model, &value, sizeof value);
    step->scalar = *scalar;
    step->reduce = wanted.reduce;
    return model->ir.err;
}

trl_err trli_program_set_scalar(trli_program *program, const char *label, trli_ir_value value, int scalar)
{
    trli_step *step = trli_program_append(program, TRLI_STEP_SCALAR, label);
    if (!step) return program->model->ir.err;
    step->value = keep_copy(program->model, &value, sizeof value);
    step->scalar = scalar;
    return program->model->ir.err;
}

trl_err trli_program_scalar(trli_program *program, const char *label, trli_ir_value value, int *scalar)
{
    trli_model *model = program->model;
    if (model->ir.err != TRL_OK) return model->ir.err;
    const trli_node *n = trli_ir_node(&model->ir, value);
    if (n->op == TRLI_OP_SCALAR) {
        *scalar = n->index;
        return TRL_OK;
    }
    *scalar = trli_model_add_scalar(model, n->op == TRLI_OP_CONSTANT ? n->number : 0);
    if (*scalar < 0 || n->op == TRLI_OP_CONSTANT) return model->ir.err;
    return trli_program_set_scalar(program, label, value, *scalar);
}

trl_err trli_program_read(trli_program *program, int field, int depth, const trl_offsets *side)
{
    trli_model *model = program->model;
    trli_step *step = trli_program_append(program, TRLI_STEP_READ, "read");
    if (!step) return model->ir.err;
    step->read = (trli_read_step){.field = keep_copy(model, &field, sizeof field), .depth = depth, .side = *side};
    return model->ir.err;
}

const trli_step *trli_program_producer(const trli_program *program, const trli_node *n, int *which)
{
    for (int i = 0; i < program->nsteps; ++i) {
        const trli_step *s = &program->step[i];
        for (*which = 0; n->op == TRLI_OP_FIELD && trli_step_computes(s) && *which < s->nout; ++*which)
            if (s->field[*which] == n->index) return s;
        *which = 0;
        if (n->op == TRLI_OP_SCALAR && s->scalar == n->index) return s;
    }
    return NULL;
}

static trl_err add_root(trli_program *program, int **list, int *n, int *capacity, int value)
{
    if (!trli_make_room(program->model->ctx, list, *n, 1, capacity, sizeof **list))
        return trli_no_memory(program->model->ctx, NULL, "for the results of program '%s'", program->name);
    (*list)[(*n)++] = value;
    return TRL_OK;
}

trl_err trli_program_add_root(trli_program *program, int field)
{
    return add_root(program, &program->root, &program->nroots, &program->roots_capacity, field);
}

trl_err trli_program_add_scalar_root(trli_program *program, int scalar)
{
    return add_root(program, &program->scalar_root, &program->nscalar_roots, &program->scalar_roots_capacity, scalar);
}
