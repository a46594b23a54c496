/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* What the Jacobian of a system reads: the unknowns, so that it changes with them, and fields that multigrid needs on
 * coarser grids. */
#include <string.h>

#include "memory_impl.h"
#include "reads_impl.h"
#include "sides_impl.h"
#include "solve_reads_impl.h"

/* The Jacobian reads a field that neither the program nor that of what no step changes computes. */
static void note_reading(trli_solver *s, int field)
{
    bool known = false;
    for (int i = 0; i < s->ask.n; ++i) known |= field == s->d.now[i];
    for (int v = 0; v < s->sim->nequations; ++v) {
        const bool now = s->in_field[v] == field, old = !now && s->old_field[v] == field;
        s->reads[v] |= now;
        s->reads_old[v] |= old;
        known |= now || old;
    }
    s->opaque |= !known;
}

static trl_err no_memory(const trli_solver *s)
{
    return trli_no_memory(s->sim->ctx, NULL, "to solve for '%s'", s->ask.names);
}

/* The Jacobian reads a scalar that the program does not compute. */
static trl_err note_scalar(trli_solver *s, int scalar)
{
    for (int i = 0; i < s->nscalars; ++i)
        if (s->scalar[i] == scalar) return TRL_OK;
    if (!trli_make_room(s->sim->ctx, &s->scalar, s->nscalars, 1, &s->scalars_room, sizeof *s->scalar))
        return no_memory(s);
    s->scalar[s->nscalars++] = scalar;
    return TRL_OK;
}

/* Values that are looked at, and where they are computed. */
typedef struct place {
    trli_ir_value value;
    int location; /* -1: anywhere */
} place;

typedef struct places {
    int n, capacity;
    place *list;
} places;

static trl_err push(const trli_solver *s, places *pending, trli_ir_value value, int location)
{
    if (value < 0) return TRL_OK;
    if (!trli_make_room(s->sim->ctx, &pending->list, pending->n, 1, &pending->capacity, sizeof *pending->list))
        return no_memory(s);
    pending->list[pending->n++] = (place){value, location};
    return TRL_OK;
}

/* Values of conditions are put aside. */
typedef struct aside {
    const trli_solver *s;
    places *pending;
} aside;

static trl_err put_aside(void *data, trli_ir_value value)
{
    const aside *to = data;
    return push(to->s, to->pending, value, -1);
}

/* The ghosts of a field follow from what its conditions read. Those of tangents: see below. */
static trl_err push_sides(trli_solver *s, const trli_program *program, int field, places *pending)
{
    aside to = {s, pending};
    trl_err err = TRL_OK;
    for (int k = 0; k < program->nsteps; ++k) {
        const trli_step *step = &program->step[k];
        for (int o = 0; step->kind == TRLI_STEP_FILL && o < step->nout; ++o)
            for (int side = 0; step->field[o] == field && side < 6; ++side)
                if (!step->fill.sides[o][side].tangent)
                    TRL_TRY(trli_side_visit(s->sim->model, &step->fill.sides[o][side], put_aside, &to));
    }
done:
    return err;
}

/* The step that computes a node: of the program, or of what no step changes. *lasts: of the latter. */
static const trli_step *producer_of(const trli_solver *s, const trli_program *program, const trli_node *node,
                                    int *which, bool *lasts)
{
    const trli_program *lasting = s->sim->model->lasting;
    const trli_step *producer = trli_program_producer(program, node, which);
    *lasts = !producer && lasting && (producer = trli_program_producer(lasting, node, which));
    return producer;
}

/* A node that a value is made of. */
static trl_err look_at(trli_solver *s, const trli_program *program, trli_node node, places *pending, bool *does)
{
    int which;
    bool lasts;
    const trli_step *producer = producer_of(s, program, &node, &which, &lasts);
    for (int i = 0; node.op == TRLI_OP_FIELD && i < s->ask.n; ++i) *does |= node.index == s->x.now[i];
    if (producer && producer->kind == TRLI_STEP_PLUGIN) s->opaque = true; /* nobody knows */
    s->unseen |= producer && producer->kind == TRLI_STEP_PLUGIN && !lasts;
    *does |= producer && producer->kind == TRLI_STEP_PLUGIN && !lasts;
    s->reduces |= producer && producer->kind == TRLI_STEP_REDUCE;
    if (node.op == TRLI_OP_FIELD && !producer) note_reading(s, node.index);
    if (node.op == TRLI_OP_SCALAR && !producer) return note_scalar(s, node.index);
    if (!producer || !producer->value) return TRL_OK;
    const int location = producer->kind == TRLI_STEP_REDUCE ? (int)producer->reduce.location
                         : producer->nout > 0               ? (int)s->sim->model->field[producer->field[which]].location
                                                            : -1;
    return push(s, pending, producer->value[which], location);
}

/* The conditions of what is read at other points than the value's own, or of what these points are computed from. */
static trl_err look_beyond(trli_solver *s, const trli_program *program, const place *at, bool *seen, places *pending)
{
    trli_model *model = s->sim->model;
    trli_reads reads = {0};
    trl_err err = TRL_OK;
    TRL_TRY(trli_reads_find(&model->ir, &model->walk, 1, &at->value, &reads));
    for (int i = 0; i < reads.nfields; ++i) {
        const int field = reads.field[i];
        const trl_offsets hull = trl_footprint_hull(&reads.footprint[i]);
        bool beyond = at->location != (int)model->field[field].location;
        int which;
        for (int a = 0; a < 3; ++a) beyond |= hull.lo[a] < 0 || hull.hi[a] > 0;
        if (!beyond || seen[field]) continue;
        seen[field] = true;
        TRL_TRY(push_sides(s, program, field, pending));
        const trli_node node = {.op = TRLI_OP_FIELD, .index = field};
        const trli_step *producer = trli_program_producer(program, &node, &which);
        if (producer && producer->value) TRL_TRY(push(s, pending, producer->value[which], -1));
    }
done:
    trli_reads_free(&reads);
    return err;
}

trl_err trli_solver_depends(trli_solver *s, const trli_program *program, trli_ir_value value, trl_location location,
                            bool *does)
{
    trli_model *model = s->sim->model;
    const size_t nf = (size_t)model->nfields;
    trli_walk walk = {0};
    places pending = {0};
    bool *seen = trli_new(model->ctx, 2 * nf + (size_t)model->nscalars + 1, sizeof *seen); /* then those with sides */
    trl_err err = TRL_OK;
    if (!seen) TRL_TRY(no_memory(s));
    TRL_TRY(push(s, &pending, value, (int)location));
    while (pending.n > 0) { /* to the end: what is read is noted on the way */
        const place at = pending.list[--pending.n];
        TRL_TRY(trli_ir_walk(&model->ir, &walk, 1, &at.value));
        for (int32_t k = 0; k < walk.count; ++k) {
            const trli_node node = *trli_ir_node(&model->ir, walk.list[k]);
            if (node.op != TRLI_OP_FIELD && node.op != TRLI_OP_SCALAR) continue;
            bool *known = &seen[node.op == TRLI_OP_FIELD ? (size_t)node.index : nf + (size_t)node.index];
            if (!*known) TRL_TRY(look_at(s, program, node, &pending, does));
            *known = true;
        }
        TRL_TRY(look_beyond(s, program, &at, seen + nf + model->nscalars, &pending));
    }
done:
    trli_walk_free(&walk);
    trli_free(pending.list);
    trli_free(seen);
    return err;
}

/* What a condition of a tangent reads, at the points of its location. */
typedef struct condition {
    trli_solver *s;
    trl_location location;
    bool *does;
} condition;

static trl_err look_at_condition(void *data, trli_ir_value value)
{
    const condition *of = data;
    return trli_solver_depends(of->s, of->s->apply, value, of->location, of->does);
}

/* The ghosts of a tangent are multiples of its field, where factors of a condition robin change along it. */
static bool reads_field(const trli_side *side)
{
    bool reads = false;
    for (int p = 0; p < side->npieces; ++p)
        reads |= side->piece[p].kind == TRL_BC_ROBIN && (side->piece[p].da >= 0 || side->piece[p].db >= 0);
    return reads;
}

static trl_err look_at_side(condition *of, const trli_side *side)
{
    trli_model *model = of->s->sim->model;
    trl_err err = TRL_OK;
    if (!side->tangent) return TRL_OK;
    TRL_TRY(trli_side_visit(model, side, look_at_condition, of));
    if (reads_field(side)) err = look_at_condition(of, trli_ir_field(&model->ir, side->primal));
done:
    return err;
}

trl_err trli_solver_sides_depend(trli_solver *s, bool *does)
{
    trli_model *model = s->sim->model;
    trl_err err = TRL_OK;
    for (int k = 0; k < s->apply->nsteps; ++k) {
        const trli_step *step = &s->apply->step[k];
        trli_side(*const sides)[6] = trli_step_sides(step);
        for (int o = 0; sides && o < step->nout; ++o) {
            condition of = {s, model->field[step->field[o]].location, does};
            for (int side = 0; side < 6; ++side) TRL_TRY(look_at_side(&of, &sides[o][side]));
        }
    }
done:
    return err;
}

/* Equations whose values, at present or at the start of the step, are read. */
typedef struct needs {
    const trli_solver *s;
    const int *field; /* [equations] that have them */
    bool *needs;      /* [equations] */
    bool more;
} needs;

static trl_err note_needs(void *data, trli_ir_value value)
{
    needs *of = data;
    trli_model *model = of->s->sim->model;
    trli_reads reads = {0};
    trl_err err = TRL_OK;
    if (value < 0) return TRL_OK;
    TRL_TRY(trli_reads_find(&model->ir, &model->walk, 1, &value, &reads));
    for (int i = 0; i < reads.nfields; ++i)
        for (int v = 0; v < of->s->sim->nequations; ++v) {
            if (reads.field[i] != of->field[v] || of->needs[v]) continue;
            of->needs[v] = of->more = true;
        }
done:
    trli_reads_free(&reads);
    return err;
}

/* To what is needed add what conditions of that read, and those of that, until there is no more. */
static trl_err follow_conditions(needs *of, trli_instance *in)
{
    const int n = of->s->sim->nequations;
    bool *seen = trli_new(of->s->sim->ctx, (size_t)n + 1, sizeof *seen);
    trl_err err = TRL_OK;
    if (!seen) TRL_TRY(no_memory(of->s));
    for (of->more = true; of->more;) {
        of->more = false;
        for (int v = 0; v < n; ++v) {
            if (!of->needs[v] || seen[v]) continue;
            seen[v] = true;
            TRL_TRY(trli_sides_visit(in, of->field[v], note_needs, of));
        }
    }
done:
    trli_free(seen);
    return err;
}

trl_err trli_solver_find_needs(trli_solver *s, trli_instance *in, trli_instance *old)
{
    const size_t n = (size_t)s->sim->nequations;
    needs now = {s, s->in_field, memcpy(s->needs, s->reads, n), false},
          before = {s, s->old_field, memcpy(s->needs_old, s->reads_old, n), false};
    const bool coarse = s->settings.preconditioner == TRL_PRECONDITIONER_AUTO ||
                        s->settings.preconditioner == TRL_PRECONDITIONER_MULTIGRID;
    trl_err err = TRL_OK;
    if (s->opaque || s->reduces || !(coarse || s->settings.method == TRL_SOLVE_MULTIGRID)) return TRL_OK;
    TRL_TRY(follow_conditions(&now, in));
    if (old) err = follow_conditions(&before, old);
done:
    return err;
}
