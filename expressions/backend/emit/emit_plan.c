/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* What an emitted kernel computes where. A node is computed once for every offset at which it is needed (a sample).
 * Loop-invariant code motion: a sample is computed in the innermost loop whose index it depends on; samples along a row
 * that cost much are kept in a row buffer outside of the loops that they do not depend on. Loop fission: results that
 * read different rows are stored by loops of their own, so that the values of each loop fit in the machine's registers;
 * what the loops share and is not cheap is computed before them, into row buffers too. */
#include <stdlib.h>
#include <string.h>

#include "emit_plan_impl.h"
#include "memory_impl.h"

enum {
    BUFFERS_MOST = 32,
    BUFFER_COST = 8, /* worth a load and a store outside of the innermost loop */
    SHARE_COST = 3,  /* and within it */
    COST_MOST = 1000,
    DIVISION_COST = 8,
    PAIR_MOST = 200,  /* values of a plane */
    ROWS_MOST = 12,   /* that one loop goes through: as many pointers as there are registers */
    ROWS_SHARING = 14 /* where its results share more than is cheap: a few from memory, for a buffer */
};

/* ---- samples ---- */

static int32_t input_of(const trli_emitter *e, int field)
{
    int n = e->reads->nfields;
    for (int i = 0; i < n; ++i)
        if (e->reads->field[i] == field) return i;
    return -1;
}

/* The ghosts of an input that a sample may be one of; they may be new. */
static trl_err ghosts_of(trli_emitter *e, const trli_sample *in, const trli_emit_layer *layer, int32_t *found)
{
    const trli_ghosts wanted = {.input = input_of(e, layer->field),
                                .axis = layer->axis,
                                .side = layer->side,
                                .y = in->offset[1],
                                .z = in->offset[2],
                                .image = layer->image && layer->axis > 0};
    for (int32_t g = 0; g < e->nghosts; ++g) {
        const trli_ghosts *at = &e->ghosts[g];
        *found = g;
        if (at->input == wanted.input && at->axis == wanted.axis && at->side == wanted.side && at->y == wanted.y &&
            at->z == wanted.z)
            return TRL_OK;
    }
    if (!trli_make_room(e->ir->ctx, &e->ghosts, e->nghosts, 1, &e->ghosts_capacity, sizeof *e->ghosts))
        return trli_no_memory(e->ir->ctx, NULL, "to emit the ghosts of %d rows", e->nghosts + 1);
    e->ghosts[e->nghosts] = wanted;
    *found = e->nghosts++;
    return TRL_OK;
}

/* Whether a sample is in the row that it may leave, or in the one beside it; those of the upper of two planes are above
 * others, too. */
static bool is_beside(const trli_sample *in, int axis)
{
    return axis == 0 || (in->offset[0] == 0 && (axis == 1 || in->offset[1] == 0));
}

/* The ghost of a layer that a field's sample may be, if it may. Along x, that depends on the lane: it is computed for
 * the end of the row. */
static trl_err add_ghost(trli_emitter *e, int32_t i, const trli_emit_layer *layer)
{
    const trli_sample in = e->sample[i];
    const int by = in.offset[layer->axis], beyond = layer->side ? by + layer->further : -by;
    const int most = layer->axis == 0 ? beyond : 1; /* rows read those beside them */
    int8_t offset[3] = {in.offset[0], in.offset[1], in.offset[2]};
    trl_err err = TRL_OK;
    int16_t end = 0;
    int32_t ghosts = -1, sample;
    if (trli_sample_node(e, i)->index != layer->field || beyond < 1 || most < layer->layer) return TRL_OK;
    if (!is_beside(&in, layer->axis)) return TRL_OK;
    TRL_TRY(ghosts_of(e, &in, layer, &ghosts));
    if (e->ghosts[ghosts].image) return TRL_OK;
    if (layer->axis == 0) {
        e->sample[i].beyond = ghosts;
        offset[0] = (int8_t)(layer->side ? layer->layer - 1 : -layer->layer);
        end = (int16_t)(1 + 2 * e->ghosts[ghosts].input + (layer->image ? 1 - layer->side : layer->side));
    }
    const trli_ir_value v = trli_emit_see_through(e, layer->value, offset);
    TRL_TRY(trli_emit_sample(e, v, offset, end, &sample));
    e->ghosts[ghosts].sample[layer->layer - 1] = sample;
    if (e->ghosts[ghosts].depth < layer->layer) e->ghosts[ghosts].depth = layer->layer;
done:
    return err;
}

/* The ghosts that the first samples may be, beyond the ends of rows or beyond the other sides. */
static trl_err find_ghosts(trli_emitter *e, int32_t samples, bool ends)
{
    trl_err err = TRL_OK;
    for (int k = 0; k < e->nlayers; ++k)
        for (int32_t i = 0; i < samples && (e->layer[k].axis == 0) == ends; ++i)
            if (trli_sample_node(e, i)->op == TRLI_OP_FIELD) TRL_TRY(add_ghost(e, i, &e->layer[k]));
    TRL_TRY(trli_emit_operands(e));
done:
    return err;
}

/* Ghosts beyond the same end of the same input's rows. */
static bool are_beyond_one_end(const trli_ghosts *g, const trli_ghosts *h)
{
    return g->axis == 0 && h->axis == 0 && g->input == h->input && g->side == h->side;
}

/* As the points that read the most of them read all. */
static void find_further(trli_emitter *e, trli_ghosts *g)
{
    int depth = 0, reach = 0;
    for (int32_t k = 0; k < e->nghosts; ++k)
        if (are_beyond_one_end(g, &e->ghosts[k]) && depth < e->ghosts[k].depth) depth = e->ghosts[k].depth;
    for (int32_t i = 0; i < e->ends; ++i) {
        const trli_sample *in = &e->sample[i];
        if (in->beyond < 0 || !are_beyond_one_end(g, &e->ghosts[in->beyond])) continue;
        if (reach < abs(in->offset[0])) reach = abs(in->offset[0]);
    }
    g->further = depth - reach;
}

static trl_err find_samples(trli_emitter *e)
{
    trl_err err = TRL_OK;
    for (int32_t i = 0; i < e->walk->count; ++i) e->first[i] = -1;
    for (int r = 0; r < e->nresults; ++r) {
        int8_t offset[3] = {0, 0, (int8_t)(r / e->nroots)};
        trli_ir_value v = trli_emit_see_through(e, e->roots[r % e->nroots], offset);
        TRL_TRY(trli_emit_sample(e, v, offset, 0, &e->root[r]));
    }
    TRL_TRY(trli_emit_operands(e));
    if (e->nlayers > 0 && e->dialect->points) TRL_TRY(trli_emit_find_choices(e));
    e->ends = e->sides = e->count;
    if (e->dialect->points) goto done;
    if (e->nlayers > 0) TRL_TRY(find_ghosts(e, e->ends, true));
    for (int32_t g = 0; g < e->nghosts; ++g) find_further(e, &e->ghosts[g]);
    e->sides = e->count;
    if (e->nlayers > 0) TRL_TRY(find_ghosts(e, e->ends, false));
done:
    return err;
}

static void put_in_order(trli_emitter *e)
{
    int32_t n = 0;
    for (int32_t at = 0; at < e->walk->count; ++at)
        for (int32_t i = e->first[at]; i >= 0; i = e->sample[i].next) {
            e->order[n] = i;
            e->number[i] = n++;
        }
}

/* ---- where and how ---- */

static trli_loop_level place_of(const trli_emitter *e, const trli_sample *in, const trli_node *n)
{
    const unsigned all = (1u << e->ir->grid->dim) - 1, along = in->end == 0 ? n->varies >> e->along & 1 : 0;
    const unsigned varies = (n->varies & 4) | (n->varies >> e->across & 1) << 1 | along;
    if (varies == all || (varies & 3) == 3) return TRLI_IN_POINT;
    if (varies & 2) return TRLI_IN_ROW;
    return varies == 5 ? TRLI_IN_PLANE_ROW : varies == 4 ? TRLI_IN_PLANE : varies == 1 ? TRLI_IN_ROW_X : TRLI_IN_CALL;
}

/* What only ghosts need goes with their rows: no plane waits for it. */
static trli_loop_level place_of_ghosts(trli_loop_level p)
{
    return p == TRLI_IN_PLANE ? TRLI_IN_ROW : p == TRLI_IN_PLANE_ROW ? TRLI_IN_POINT : p;
}

/* In additions of a nominal machine: the text does not depend on the one at hand. */
static int own_cost(const trli_node *n)
{
    return trli_is_leaf(n) ? 0 : (int)trli_op_additions(n->op, n->index, DIVISION_COST, TRLI_EXP_FLOPS);
}

/* A row that a loop inside of its own reads is worth a buffer if computing it is not cheap. */
static void buffer_operand(trli_emitter *e, const trli_sample *user, int32_t arg)
{
    trli_sample *in = &e->sample[arg];
    if (!trli_is_row(in->place) || in->place == user->place || in->cost < BUFFER_COST) return;
    if (in->buffered || e->nbuffers == BUFFERS_MOST) return;
    in->buffered = true;
    ++e->nbuffers;
}

static int capped(int cost)
{
    return cost < COST_MOST ? cost : COST_MOST;
}

static void find_places(trli_emitter *e)
{
    static const trli_sample storing = {.place = TRLI_IN_RESULT};
    for (int32_t o = 0; o < e->count; ++o) {
        trli_sample *in = &e->sample[e->order[o]];
        const trli_node *n = trli_sample_node(e, e->order[o]);
        in->place = place_of(e, in, n);
        if (e->order[o] >= e->ends) in->place = place_of_ghosts(in->place);
        if (e->disabled_passes & TRL_PASS_HOISTING && trli_op_operands(n->op) > 0) in->place = TRLI_IN_POINT;
        in->cost = own_cost(n);
        for (int a = 0; a < 3 && in->arg[a] >= 0; ++a) in->cost = capped(in->cost + e->sample[in->arg[a]].cost);
    }
    for (int32_t o = 0; o < e->count; ++o) {
        const trli_sample *in = &e->sample[e->order[o]];
        for (int a = 0; a < 3 && in->arg[a] >= 0; ++a) buffer_operand(e, in, in->arg[a]);
    }
    for (int r = 0; r < e->nresults; ++r) buffer_operand(e, &storing, e->root[r]);
}

static void find_pointers(trli_emitter *e)
{
    for (int32_t o = 0; o < e->count; ++o) {
        trli_sample *in = &e->sample[e->order[o]];
        const trli_node *n = trli_sample_node(e, e->order[o]);
        if (n->op != TRLI_OP_FIELD) continue;
        trli_row_pointer p = {
            .input = input_of(e, n->index), .y = in->offset[e->across], .z = in->offset[2], .beyond = -1};
        int32_t i = 0;
        while (i < e->npointers && (e->pointer[i].input != p.input || e->pointer[i].y != p.y || e->pointer[i].z != p.z))
            ++i;
        if (i == e->npointers) e->pointer[e->npointers++] = p;
        in->pointer = i;
    }
    for (int32_t g = 0; g < e->nghosts; ++g)
        for (int32_t i = 0; i < e->npointers && e->ghosts[g].axis > 0; ++i) {
            trli_row_pointer *p = &e->pointer[i];
            if (p->input == e->ghosts[g].input && p->y == e->ghosts[g].y && p->z == e->ghosts[g].z) p->beyond = g;
        }
}

/* ---- groups of results ---- */

static bool is_shared(const trli_sample *in)
{
    return in->buffered && in->place == TRLI_IN_POINT;
}

/* Whether the function of a group does not compute it. */
static bool is_given(const trli_emitter *e, int32_t i, int32_t group)
{
    return group != TRLI_ALL_GROUPS && (trli_is_outer(e, i) || (group != TRLI_SHARED && is_shared(&e->sample[i])));
}

void trli_emit_mark_operands(trli_emitter *e, int32_t group)
{
    for (int32_t o = e->count - 1; o >= 0; --o) {
        const int32_t i = e->order[o];
        if (!e->wanted[i] || is_given(e, i, group)) continue;
        for (int a = 0; a < 3 && e->sample[i].arg[a] >= 0; ++a) e->wanted[e->sample[i].arg[a]] = true;
    }
}

/* The same, with the ghosts that are read. */
static void mark_operands(trli_emitter *e, int32_t group)
{
    trli_emit_mark_operands(e, group);
    if (e->nghosts == 0) return;
    for (int32_t i = 0; i < e->ends; ++i) {
        const trli_sample *in = &e->sample[i];
        if (!e->wanted[i] || in->pointer < 0) continue;
        const int32_t ghosts[2] = {in->beyond, e->pointer[in->pointer].beyond};
        for (int at = 0; at < 2; ++at)
            for (int d = 0; ghosts[at] >= 0 && d < e->ghosts[ghosts[at]].depth; ++d)
                e->wanted[e->ghosts[ghosts[at]].sample[d]] = true;
    }
    trli_emit_mark_operands(e, group);
}

void trli_emit_mark_needed(trli_emitter *e, int32_t group)
{
    const bool shared = group < 0;
    const trli_group none = {.end = 0}, all = {.end = e->nresults};
    const trli_group g = group == TRLI_SHARED ? none : group == TRLI_ALL_GROUPS ? all : e->group[group];
    for (int32_t i = 0; i < e->count; ++i) e->wanted[i] = shared && is_shared(&e->sample[i]);
    for (int32_t r = g.first; r < g.end; ++r) e->wanted[e->root[r]] = true;
    mark_operands(e, group);
}

static void mark_results(trli_emitter *e, int32_t first, int32_t end)
{
    memset(e->wanted, 0, (size_t)e->count * sizeof *e->wanted);
    for (int32_t r = first; r < end; ++r) e->wanted[e->root[r]] = true;
    trli_emit_mark_operands(e, TRLI_ALL_GROUPS);
}

/* Rows that are read or written to compute results [first, end). */
static int32_t rows_of(trli_emitter *e, int32_t first, int32_t end)
{
    int32_t rows = end - first;
    mark_results(e, first, end);
    for (int32_t p = 0; p < e->npointers; ++p) e->pointer[p].read = false;
    for (int32_t i = 0; i < e->count; ++i) {
        if (!e->wanted[i] || e->sample[i].pointer < 0) continue;
        trli_row_pointer *p = &e->pointer[e->sample[i].pointer];
        rows += !p->read;
        p->read = true;
    }
    return rows;
}

/* Whether what a result has in common with those from `first` on costs as much as a buffer. */
static bool has_common(trli_emitter *e, int32_t first, int32_t result)
{
    int cost = 0;
    mark_results(e, first, result);
    memcpy(e->also, e->wanted, (size_t)e->count * sizeof *e->also);
    mark_results(e, result, result + 1);
    for (int32_t i = 0; i < e->count; ++i)
        if (e->wanted[i] && e->also[i] && e->sample[i].place == TRLI_IN_POINT) cost += own_cost(trli_sample_node(e, i));
    return cost >= SHARE_COST;
}

static void group_results(trli_emitter *e)
{
    for (int32_t r = 0; r < e->nroots; ++r) {
        const int32_t first = r > 0 ? e->group[e->ngroups - 1].first : 0, rows = r > 0 ? rows_of(e, first, r + 1) : 0;
        const bool full = rows > ROWS_SHARING || (rows > ROWS_MOST && !has_common(e, first, r));
        if (r == 0 || (full && !(e->disabled_passes & TRL_PASS_GROUPS))) e->group[e->ngroups++].first = r;
        e->group[e->ngroups - 1].end = r + 1;
    }
    for (int32_t g = 0; g < e->ngroups; ++g) {
        trli_emit_mark_needed(e, g);
        for (int32_t i = 0; i < e->count; ++i) e->sample[i].groups += e->wanted[i];
    }
    e->group[e->ngroups] = (trli_group){.first = 0, .end = e->nresults};
}

/* What a loop over points computes itself. */
static bool is_computed_there(const trli_emitter *e, int32_t i)
{
    const trli_sample *in = &e->sample[i];
    if (trli_is_leaf(trli_sample_node(e, i))) return false;
    return in->place == TRLI_IN_POINT || (trli_is_row(in->place) && !in->buffered);
}

/* From here on: costs in the loop over points. */
static void find_costs(trli_emitter *e)
{
    for (int32_t o = 0; o < e->count; ++o) {
        trli_sample *in = &e->sample[e->order[o]];
        in->cost = is_computed_there(e, e->order[o]) ? own_cost(trli_sample_node(e, e->order[o])) : 0;
        for (int a = 0; in->cost > 0 && a < 3 && in->arg[a] >= 0; ++a)
            in->cost = capped(in->cost + e->sample[in->arg[a]].cost);
    }
}

/* Buffer what several groups need and is not cheap; each group computes cheap values itself. */
static void share(trli_emitter *e)
{
    memset(e->wanted, 0, (size_t)e->count * sizeof *e->wanted);
    for (int r = 0; r < e->nroots; ++r) e->wanted[e->root[r]] = true;
    for (int32_t o = e->count - 1; o >= 0; --o) {
        const int32_t i = e->order[o];
        trli_sample *in = &e->sample[i];
        if (!e->wanted[i] || !is_computed_there(e, i)) continue;
        if (in->place == TRLI_IN_POINT && in->groups > 1 && in->cost >= SHARE_COST && e->nbuffers < BUFFERS_MOST) {
            in->buffered = true;
            ++e->nbuffers;
            ++e->nshared;
            continue;
        }
        for (int a = 0; a < 3 && in->arg[a] >= 0; ++a) e->wanted[in->arg[a]] = true;
    }
}

static void find_readers(trli_emitter *e)
{
    for (int32_t g = e->ngroups - 1; g >= 0; --g) {
        trli_emit_mark_needed(e, g);
        for (int32_t i = 0; i < e->count; ++i) {
            const int32_t p = e->sample[i].pointer;
            if (e->wanted[i] && p >= 0) e->reader[e->pointer[p].input] = g;
        }
    }
}

/* ---- all of it ---- */

static trl_err no_memory(const trli_emitter *e)
{
    return trli_no_memory(e->ir->ctx, NULL, "to emit a kernel of %d results and %d values", e->nroots, e->count);
}

static trl_err plan(trli_emitter *e, int planes, const char **why)
{
    const int ninputs = e->reads->nfields;
    trl_err err = TRL_OK;
    e->nresults = planes * e->nroots;
    e->root = trli_new(e->ir->ctx, (size_t)e->nresults, sizeof *e->root);
    e->group = trli_new(e->ir->ctx, (size_t)(e->nroots + 1), sizeof *e->group);
    e->reader = trli_new(e->ir->ctx, (size_t)(ninputs + 1), sizeof *e->reader);
    e->first = trli_new(e->ir->ctx, (size_t)e->walk->count, sizeof *e->first);
    if (!e->root || !e->group || !e->reader || !e->first) return no_memory(e);
    for (int i = 0; i < ninputs; ++i) e->reader[i] = -1;
    TRL_TRY(find_samples(e));
    if (e->count > TRLI_SAMPLES_MOST) *why = "it has too many operations";
    if (*why) goto done;
    e->order = trli_new(e->ir->ctx, (size_t)e->count, sizeof *e->order);
    e->number = trli_new(e->ir->ctx, (size_t)e->count, sizeof *e->number);
    e->input_name = trli_new(e->ir->ctx, (size_t)(ninputs + 1), sizeof *e->input_name);
    e->wanted = trli_new(e->ir->ctx, (size_t)e->count, sizeof *e->wanted);
    e->also = trli_new(e->ir->ctx, (size_t)e->count, sizeof *e->also);
    e->pointer = trli_new(e->ir->ctx, (size_t)e->count, sizeof *e->pointer);
    if (!e->order || !e->number || !e->input_name || !e->wanted || !e->also || !e->pointer) return no_memory(e);
    put_in_order(e);
    find_places(e);
    find_pointers(e);
    group_results(e);
    find_costs(e);
    if (e->ngroups > 1) share(e);
    find_readers(e);
done:
    return err;
}

/* Whether planes have something in common: a row that both read, or a value between them; and little enough for one
 * loop. */
static bool is_worth_pairs(trli_emitter *e)
{
    bool both = false;
    if (!e->dialect->pairs || e->disabled_passes & TRL_PASS_PAIRS || e->ir->grid->dim < 3 || e->ngroups > 1 ||
        e->ends > PAIR_MOST)
        return false;
    for (int32_t i = 0; i < e->ends; ++i) {
        const trli_sample *in = &e->sample[i];
        const bool leaf = trli_is_leaf(trli_sample_node(e, i));
        if (!leaf && (in->place == TRLI_IN_PLANE || in->place == TRLI_IN_PLANE_ROW)) return false;
        both |= in->pointer >= 0 && in->offset[2] != 0;
    }
    return both && e->along == 0;
}

trl_err trli_emit_plan(trli_emitter *e, const char **why)
{
    trl_err err = TRL_OK;
    *why = NULL;
    TRL_TRY(plan(e, 1, why));
    if (*why || !is_worth_pairs(e)) goto done;
    trli_emitter_free(e);
    TRL_TRY(plan(e, 2, why));
done:
    return err;
}

void trli_emitter_free(trli_emitter *e)
{
    void *blocks[] = {e->root,   e->group,      e->reader, e->first, e->sample,  e->order,
                      e->number, e->input_name, e->wanted, e->also,  e->pointer, e->ghosts};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; ++i) trli_free(blocks[i]);
    for (int32_t f = 0; e->function && f < e->ngroups + 2; ++f) trli_free(e->function[f].body);
    trli_free(e->function);
    e->function = NULL;
    e->root = e->reader = e->first = e->order = e->number = e->input_name = NULL;
    e->group = NULL;
    e->sample = NULL;
    e->wanted = e->also = NULL;
    e->pointer = NULL;
    e->ghosts = NULL;
    trli_free(e->choice);
    trli_free(e->guard);
    e->choice = NULL;
    e->guard = NULL;
    e->nghosts = e->nchoices = e->choices_capacity = e->nguards = e->guards_capacity = 0;
    e->ngroups = e->count = e->capacity = e->ghosts_capacity = e->npointers = e->nbuffers = e->nshared = 0;
}
