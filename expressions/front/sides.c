/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The steps that set sides, in an order in which each value is there before it is read. A condition may read points
 * that other conditions set, reductions and plugins that read such points, and neighbours on other patches. So the
 * steps that lowering conditions appended, the planes of points on sides, and exchanges of fields that are not yet
 * complete are items with dependencies, and are appended again in an order that keeps these dependencies. If there is
 * no such order, the conditions need one another. */
#include <string.h>

#include "boundary_impl.h"
#include "memory_impl.h"
#include "side_order_impl.h"
#include "sides_impl.h"

/* Get ready for what lowering conditions appends to the program. */
static trl_err begin(trli_instance *in, bool check, trli_arranging *ar)
{
    trli_program *program = in->program;
    *ar = (trli_arranging){.in = in,
                           .model = in->model,
                           .first = program->nsteps,
                           .ncandidates = program->ncandidates,
                           .inner = program->arranging,
                           .check = check};
    program->arranging = true;
    return trli_instance_sides(in, &ar->conditions);
}

static void end(trli_arranging *ar)
{
    ar->in->program->arranging = ar->inner;
    for (int i = 0; i < ar->nitems; ++i)
        if (ar->taken && ar->item[i].kind == TRLI_ITEM_STEP && !ar->item[i].done)
            trli_step_free(&ar->step[ar->item[i].step]);
    for (int i = 0; ar->sides && i < 6 * ar->model->nvariables; ++i) trli_free(ar->sides[i / 6][i % 6].piece);
    trli_free(ar->sides);
    trli_free(ar->variable_of);
    trli_free(ar->plane_of);
    trli_free(ar->field_writer);
    trli_free(ar->field_filler);
    trli_free(ar->scalar_writer);
    trli_free(ar->exchange_of);
    trli_free(ar->step);
    trli_free(ar->item);
    trli_free(ar->edge);
}

static bool may_set(const trli_model_field *f, int side)
{
    return f->boundary.side && f->location >> side / 2 & 1 && trli_side_may_set(&f->boundary.side[side]);
}

/* Whether planes of a variable are asked for. */
static bool is_asked_for(const trli_arranging *ar, int v)
{
    const trli_variable *variable = &ar->model->variable[v];
    const int along = ar->in->planes_along;
    if (ar->in->variable[v] < 0 || (along && variable->direction != along)) return false;
    return !ar->in->rates_only || variable->is_rate;
}

static trl_err lower_planes(trli_arranging *ar)
{
    trli_model *model = ar->model;
    trl_err err = TRL_OK;
    ar->sides = trli_new(model->ctx, (size_t)model->nvariables + 1, sizeof *ar->sides);
    if (!ar->sides) return trli_no_memory_for_sides(model);
    for (int i = 0; i < 2 * model->layout->grid.dim * model->nvariables; ++i) {
        const int axis = i / (2 * model->nvariables), v = i / 2 % model->nvariables, s = 2 * axis + i % 2;
        const int field = ar->in->variable[v];
        if (!is_asked_for(ar, v) || !may_set(&model->field[field], s)) continue;
        TRL_TRY(trli_boundary_lower_side(ar->conditions, field, s, &ar->sides[v][s]));
    }
done:
    return err;
}

/* Whether a condition sets points, and of tangents along a direction alone: points that change along it. */
static bool sets_points(const trli_side *side, bool changing)
{
    bool sets = false;
    for (int p = 0; p < side->npieces; ++p)
        sets |= trli_sets_points(&side->piece[p]) && (!changing || side->piece[p].da >= 0 || side->piece[p].modifier);
    return sets;
}

/* Lower the sides that set points, and make items of these; of the axes in their order, as their points are set. */
static trl_err add_planes(trli_arranging *ar)
{
    trli_model *model = ar->model;
    const int n = model->nvariables;
    trl_err err = TRL_OK;
    TRL_TRY(lower_planes(ar));
    ar->plane_of = trli_new(model->ctx, 6 * (size_t)n + 1, sizeof *ar->plane_of);
    if (!ar->plane_of) return trli_no_memory_for_sides(model);
    for (int i = 0; i < 6 * n; ++i) ar->plane_of[i] = -1;
    for (int i = 0; i < 6 * n; ++i) {
        const int v = i / 2 % n, s = 2 * (i / (2 * n)) + i % 2;
        bool any = !ar->in->planes_along;
        for (int k = 0; k < 6; ++k) any |= sets_points(&ar->sides[v][k], true);
        if (!any || !sets_points(&ar->sides[v][s], false)) continue;
        ar->plane_of[6 * v + s] = ar->nitems;
        TRL_TRY(trli_side_item(ar, &(trli_item){.kind = TRLI_ITEM_PLANE, .variable = v, .side = s}));
    }
done:
    return err;
}

static int *list_of_none(trl_context *ctx, size_t n)
{
    int *list = trli_new(ctx, n + 1, sizeof *list);
    for (size_t i = 0; list && i < n; ++i) list[i] = -1;
    return list;
}

/* Whether the ghosts of a variable are not set yet. */
static bool is_to_be_filled(const trli_instance *in, int v)
{
    return !in->fill.filled && in->variable[v] >= 0 && (!in->fill.rates_only || in->model->variable[v].is_rate);
}

/* Make items of the steps that lowering appended. */
static trl_err add_steps(trli_arranging *ar)
{
    const trli_program *program = ar->in->program;
    const size_t nf = (size_t)ar->model->nfields, nv = (size_t)ar->model->nvariables;
    trl_err err = TRL_OK;
    ar->nsteps = program->nsteps - ar->first;
    ar->variable_of = list_of_none(ar->model->ctx, nf);
    ar->field_writer = list_of_none(ar->model->ctx, nf);
    ar->field_filler = list_of_none(ar->model->ctx, nf);
    ar->scalar_writer = list_of_none(ar->model->ctx, (size_t)ar->model->nscalars);
    ar->exchange_of = list_of_none(ar->model->ctx, nv);
    ar->step = trli_new(ar->model->ctx, (size_t)ar->nsteps + 1, sizeof *ar->step);
    if (!ar->variable_of || !ar->field_writer || !ar->field_filler || !ar->scalar_writer || !ar->exchange_of ||
        !ar->step)
        return trli_no_memory_for_sides(ar->model);
    for (int v = 0; v < ar->model->nvariables; ++v)
        if (is_to_be_filled(ar->in, v)) ar->variable_of[ar->in->variable[v]] = v;
    if (ar->nsteps > 0) memcpy(ar->step, program->step + ar->first, (size_t)ar->nsteps * sizeof *ar->step);
    for (int i = 0; i < ar->nsteps; ++i) TRL_TRY(trli_side_item(ar, &(trli_item){.kind = TRLI_ITEM_STEP, .step = i}));
done:
    return err;
}

/* ---- the order ---- */

static void push(trli_arranging *ar, int i)
{
    trli_queue *q = &ar->ready[ar->item[i].kind];
    ar->item[i].next = -1;
    if (q->head < 0)
        q->head = i;
    else
        ar->item[q->tail].next = i;
    q->tail = i;
}

static int pop(trli_queue *q, const trli_item *items)
{
    const int i = q->head;
    q->head = items[i].next;
    return i;
}

static void finish(trli_arranging *ar, int i)
{
    ar->item[i].done = true;
    for (int e = ar->item[i].first_edge; e >= 0; e = ar->edge[e].next)
        if (--ar->item[ar->edge[e].after].waits == 0) push(ar, ar->edge[e].after);
}

/* The fields of a chain of items, each once; their places by variable stay in exchange_of. */
static trl_err list_fields(trli_arranging *ar, int head, int *n, int **field, int **variable)
{
    int count = 0;
    *n = 0;
    for (int i = head; i >= 0; i = ar->item[i].next) ++count;
    *field = trli_model_keep(ar->model, ((size_t)count + 1) * sizeof **field);
    *variable = trli_model_keep(ar->model, ((size_t)count + 1) * sizeof **variable);
    if (!*field || !*variable) return ar->model->ir.err;
    for (int i = head; i >= 0; i = ar->item[i].next) {
        const int v = ar->item[i].variable;
        if (ar->exchange_of[v] >= 0) continue;
        ar->exchange_of[v] = *n;
        (*variable)[*n] = v;
        (*field)[(*n)++] = ar->in->variable[v];
    }
    return TRL_OK;
}

/* Append one step for a chain of planes, in their order, or of exchanges. */
static trl_err append_chain(trli_arranging *ar, int head)
{
    const bool planes = ar->item[head].kind == TRLI_ITEM_PLANE;
    int n, *field, *variable, count = 0;
    trl_err err = TRL_OK;
    TRL_TRY(list_fields(ar, head, &n, &field, &variable));
    trli_step *step =
        trli_program_append(ar->in->program, planes ? TRLI_STEP_PLANES : TRLI_STEP_FILL, planes ? "sides" : "ghosts");
    if (!step) return ar->model->ir.err;
    trli_side(*sides)[6] = trli_new(ar->model->ctx, (size_t)n, sizeof *sides);
    if (!sides) return trli_no_memory_for_sides(ar->model);
    if (planes)
        step->planes.sides = sides;
    else
        step->fill = (trli_fill_step){.sides = sides, .exchange_only = true};
    step->nout = n;
    step->field = field;
    step->variable = planes && ar->check ? variable : NULL;
    step->time_scalar = ar->in->time_scalar;
    step->stage = ar->in->stage;
    for (int i = head; i >= 0; i = ar->item[i].next) ++count;
    trli_plane *plane = planes ? trli_model_keep(ar->model, (size_t)count * sizeof *plane) : NULL;
    if (planes && !plane) return ar->model->ir.err;
    if (planes) step->planes.plane = plane;
    for (int i = head; planes && i >= 0; i = ar->item[i].next) {
        const trli_item *it = &ar->item[i];
        const int of = ar->exchange_of[it->variable];
        plane[step->planes.nplanes++] = (trli_plane){of, (int8_t)(it->side / 2), (int8_t)(it->side % 2)};
        sides[of][it->side] = ar->sides[it->variable][it->side];
        ar->sides[it->variable][it->side] = (trli_side){0};
    }
    for (int i = 0; i < n; ++i) ar->exchange_of[variable[i]] = -1;
done:
    return err;
}

static trl_err flush_planes(trli_arranging *ar)
{
    const int head = ar->pending.head;
    ar->pending.head = -1;
    return head < 0 ? TRL_OK : append_chain(ar, head);
}

static trl_err append_ready_step(trli_arranging *ar)
{
    const int i = pop(&ar->ready[TRLI_ITEM_STEP], ar->item);
    const trli_step *s = &ar->step[ar->item[i].step];
    trl_err err = TRL_OK;
    TRL_TRY(flush_planes(ar));
    trli_step *step = trli_program_append(ar->in->program, s->kind, s->label);
    if (!step) return ar->model->ir.err;
    *step = *s;
    finish(ar, i);
done:
    return err;
}

/* All exchanges that are ready, as one. */
static trl_err append_exchanges(trli_arranging *ar)
{
    const int head = ar->ready[TRLI_ITEM_EXCHANGE].head;
    trl_err err = TRL_OK;
    TRL_TRY(flush_planes(ar));
    TRL_TRY(append_chain(ar, head));
    ar->ready[TRLI_ITEM_EXCHANGE].head = -1;
    for (int i = head, next; i >= 0; i = next) {
        next = ar->item[i].next;
        finish(ar, i);
    }
done:
    return err;
}

static void take_plane(trli_arranging *ar)
{
    const int i = pop(&ar->ready[TRLI_ITEM_PLANE], ar->item);
    ar->item[i].next = -1;
    if (ar->pending.head < 0)
        ar->pending.head = i;
    else
        ar->item[ar->pending.tail].next = i;
    ar->pending.tail = i;
    finish(ar, i);
}

/* ---- cycles ---- */

/* An item that is not done and that this one waits for. */
static int awaited(const trli_arranging *ar, int i)
{
    for (int e = 0; e < ar->nedges; ++e)
        if (ar->edge[e].after == i && !ar->item[ar->edge[e].before].done) return ar->edge[e].before;
    return -1;
}

static const char *name_of(const trli_arranging *ar, int field)
{
    const trli_model_field *f = &ar->model->field[field];
    return f->boundary.name ? f->boundary.name : f->name;
}

static void write_item(const trli_arranging *ar, int i, char *path, size_t size)
{
    const trli_item *it = &ar->item[i];
    const size_t used = strlen(path);
    const char *arrow = used ? " -> " : "";
    if (it->kind == TRLI_ITEM_PLANE)
        snprintf(path + used, size - used, "%s'%s' on %c%c", arrow, name_of(ar, ar->in->variable[it->variable]),
                 "xyz"[it->side / 2], it -> side % 2 ? '+' : '-');
    else if (it->kind == TRLI_ITEM_STEP && ar->step[it->step].kind != TRLI_STEP_FILL)
        snprintf(path + used, size - used, "%s%s", arrow, ar->step[it->step].label ? ar->step[it->step].label : "");
}

static trl_err report_cycle(const trli_arranging *ar)
{
    char path[4096] = "";
    int start = 0;
    while (ar->item[start].done) ++start;
    for (int k = 0; k < ar->nitems; ++k) start = awaited(ar, start); /* now on the cycle */
    for (int k = 0; ar->item[start].kind != TRLI_ITEM_PLANE; ++k) {
        if (k == ar->nitems)
            return trl_fail(ar->model->ctx, TRL_ERR_BUG, NULL, "steps of boundary values wait for each other");
        start = awaited(ar, start);
    }
    const trli_item *it = &ar->item[start];
    for (int i = start, first = 1; first || i != start; first = 0, i = awaited(ar, i))
        write_item(ar, i, path, sizeof path);
    write_item(ar, start, path, sizeof path);
    return trl_fail(
        ar->model->ctx, TRL_ERR_INPUT, &ar->sides[it->variable][it->side].piece[0].place,
        "boundary values need each other in a cycle: %s; old(...), the value at the start of the step, breaks it",
        path);
}

/* ---- all of it ---- */

static void append_ready(trli_arranging *ar, trl_err *err)
{
    while (*err == TRL_OK) {
        if (ar->ready[TRLI_ITEM_STEP].head >= 0)
            *err = append_ready_step(ar);
        else if (ar->ready[TRLI_ITEM_PLANE].head >= 0)
            take_plane(ar);
        else if (ar->ready[TRLI_ITEM_EXCHANGE].head >= 0)
            *err = append_exchanges(ar);
        else
            break;
    }
}

/* Append the steps that lowering conditions appended, and what sets points on sides, in an order of their dependencies.
 */
static trl_err arrange(trli_arranging *ar)
{
    trli_program *program = ar->in->program;
    int finished = 0;
    trl_err err = TRL_OK;
    TRL_TRY(add_steps(ar));
    TRL_TRY(trli_side_orders(ar));
    if (ar->nitems == ar->nsteps) goto done; /* they are in a valid order */
    for (int kind = 0; kind < TRLI_ITEM_KINDS; ++kind) ar->ready[kind].head = -1;
    ar->pending.head = -1;
    program->nsteps = ar->first;
    program->ncandidates =
        ar->ncandidates; /* their positions mean nothing now, and what is not stored is computed by its readers */
    ar->taken = true;
    for (int i = 0; i < ar->nitems; ++i)
        if (ar->item[i].waits == 0) push(ar, i);
    append_ready(ar, &err);
    TRL_TRY(err);
    TRL_TRY(flush_planes(ar));
    for (int i = 0; i < ar->nitems; ++i) finished += ar->item[i].done;
    if (finished < ar->nitems) err = report_cycle(ar);
done:
    return err;
}

/* Steps of an instance from here on are those of conditions, up to the fill. */
static void note_start(trli_instance *in)
{
    if (in->fill.conditions_from < 0) in->fill.conditions_from = in->program->nsteps;
}

trl_err trli_sides_visit(trli_instance *instance, int field, trl_err (*visit)(void *data, trli_ir_value value),
                         void *data)
{
    trli_side lowered[6] = {{0}};
    trli_instance *sides;
    trl_err err = TRL_OK;
    TRL_TRY(trli_instance_sides(instance, &sides));
    TRL_TRY(trli_boundary_lower(sides, field, lowered));
    for (int s = 0; s < 6; ++s) TRL_TRY(trli_side_visit(instance->model, &lowered[s], visit, data));
done:
    for (int s = 0; s < 6; ++s) trli_free(lowered[s].piece);
    return err;
}

trl_err trli_instance_planes(trli_instance *instance, bool check)
{
    trli_arranging ar;
    trl_err err = TRL_OK;
    note_start(instance);
    TRL_TRY(begin(instance, check, &ar));
    TRL_TRY(add_planes(&ar));
    if (ar.nitems > 0) TRL_TRY(arrange(&ar));
done:
    end(&ar);
    return err;
}

/* Append the fill of fields, and of those that lowering their conditions adds. */
static trl_err append_fill(trli_arranging *ar, int n, const int *field)
{
    trli_model *model = ar->model;
    const size_t room = (size_t)n + (size_t)model->nvariables * (size_t)model->ndirections + 1;
    trli_side(*lowered)[6] = trli_new(ar->model->ctx, room, sizeof *lowered);
    int *copy = trli_model_keep(model, room * sizeof *copy);
    trl_err err = TRL_OK;
    if (!lowered || !copy) TRL_TRY(trli_no_memory_for_sides(model));
    memcpy(copy, field, (size_t)n * sizeof *copy);
    for (int i = 0, more = 0; i < n; ++i) {
        TRL_TRY(trli_boundary_lower(ar->conditions, copy[i], lowered[i]));
        while (more < ar->in->fill.nmore) copy[n++] = ar->in->fill.more[more++];
    }
    trli_step *step = trli_program_append(ar->in->program, TRLI_STEP_FILL, "fill");
    if (!step) TRL_TRY(model->ir.err);
    step->nout = n;
    step->field = copy;
    step->fill.sides = lowered;
    step->time_scalar = ar->in->time_scalar;
    step->stage = ar->in->stage;
    return TRL_OK;
done:
    for (int i = 0; lowered && i < 6 * n; ++i) trli_free(lowered[i / 6][i % 6].piece);
    trli_free(lowered);
    return err;
}

trl_err trli_instance_fill_fields(trli_instance *instance, int n, const int *field)
{
    trli_arranging ar;
    trl_err err = TRL_OK;
    if (instance->fill.open) { /* conditions that it is for may need these, and these what it is for */
        for (int i = 0; i < n; ++i) instance->fill.more[instance->fill.nmore++] = field[i];
        return TRL_OK;
    }
    TRL_TRY(begin(instance, false, &ar));
    TRL_TRY(append_fill(&ar, n, field));
    ar.fills_last = n > 1;
    if (!ar.inner && instance->program->nsteps > ar.first + 1) TRL_TRY(arrange(&ar));
done:
    end(&ar);
    return err;
}

trl_err trli_instance_fill_field(trli_instance *instance, int field)
{
    return trli_instance_fill_fields(instance, 1, &field);
}

/* What conditions read is computed before there are ghosts. Where others read it beyond the points owned, it is
 * computed again, on more of them: the analysis finds out. */
static trl_err repeat_steps(trli_instance *in)
{
    trli_program *program = in->program;
    const int end = program->nsteps;
    for (int i = in->fill.conditions_from; i < end; ++i) {
        const trli_step s = program->step[i];
        if (!trli_step_computes(&s)) continue;
        if (in->model->field[s.field[0]].exchanged) continue;
        trli_ir_value *value = s.value ? trli_model_keep(in->model, (size_t)s.nout * sizeof *value) : NULL;
        int *field = trli_model_keep(in->model, (size_t)s.nout * sizeof *field);
        trli_step *again = trli_program_append(program, s.kind, s.label);
        if (!field || !again || (s.value && !value)) return in->model->ir.err;
        *again = s;
        again->again = true;
        again->field = memcpy(field, s.field, (size_t)s.nout * sizeof *field);
        if (value) again->value = memcpy(value, s.value, (size_t)s.nout * sizeof *value);
    }
    return TRL_OK;
}

trl_err trli_instance_fill(trli_instance *instance)
{
    const trli_model *model = instance->model;
    int n = 0, *fields = trli_new(model->ctx, (size_t)model->nvariables + 1, sizeof *fields);
    trli_arranging ar = {.in = instance};
    trl_err err = TRL_OK;
    if (!fields) return trli_no_memory_for_sides(model);
    for (int v = 0; v < model->nvariables; ++v)
        if (is_to_be_filled(instance, v)) fields[n++] = instance->variable[v];
    instance->fill.more =
        trli_new(model->ctx, (size_t)model->nvariables * (size_t)model->ndirections + 1, sizeof *instance->fill.more);
    if (!instance->fill.more) TRL_TRY(trli_no_memory_for_sides(model));
    note_start(instance);
    TRL_TRY(begin(instance, false, &ar));
    instance->fill.open = true;
    TRL_TRY(append_fill(&ar, n, fields));
    ar.fills_last = true;
    if (instance->program->nsteps > ar.first + 1) TRL_TRY(arrange(&ar));
    instance->fill.filled = true;
    TRL_TRY(repeat_steps(instance));
done:
    trli_free(fields);
    trli_free(instance->fill.more);
    instance->fill.more = NULL;
    instance->fill.nmore = 0;
    instance->fill.open = false;
    end(&ar);
    return err;
}

/* ---- points that are set in part of a side ---- */

bool trli_sides_set_parts(const trli_model *model, const trl_bc_side *deck, trl_location location, int s)
{
    return location >> s / 2 & 1 && !model->layout->grid.periodic[s / 2] && !trli_side_is_fixed(deck) &&
           trli_side_may_set(deck);
}

void trli_side_replace_set(trli_ir *ir, const trli_side *side, int s, trli_ir_value there, trli_ir_value *value)
{
    trli_ir_value on_side = *value;
    for (int i = side->npieces - 1; i >= 0; --i) {
        const trli_piece *p = &side->piece[i];
        const trli_ir_value given = there >= 0 ? there : p->da >= 0 ? p->da : trli_ir_constant(ir, 0);
        const trli_ir_value here = trli_sets_points(p) ? given : *value;
        on_side = p->where < 0 ? here : trli_ir_select(ir, p->where, here, on_side);
    }
    *value = trli_ir_select(ir, trli_ir_at_side(ir, s / 2, s % 2), on_side, *value);
}

static trl_err replace_on_side(trli_instance *sides, int field, int s, trli_ir_value there, trli_ir_value *value)
{
    trli_side lowered = {0};
    trl_err err = TRL_OK;
    TRL_TRY(trli_boundary_lower_side(sides, field, s, &lowered));
    trli_side_replace_set(&sides->model->ir, &lowered, s, there, value);
    err = sides->model->ir.err;
done:
    trli_free(lowered.piece);
    return err;
}

trl_err trli_sides_replace_set(trli_instance *instance, int field, trli_ir_value there, trli_ir_value *value)
{
    const trli_model_field f = instance->model->field[field];
    trli_instance *sides;
    trl_err err = TRL_OK;
    if (!f.boundary.side) return TRL_OK;
    TRL_TRY(trli_instance_sides(instance, &sides));
    for (int s = 0; s < 2 * instance->model->layout->grid.dim; ++s)
        if (trli_sides_set_parts(instance->model, &f.boundary.side[s], f.location, s))
            TRL_TRY(replace_on_side(sides, field, s, there, value));
done:
    return err;
}
