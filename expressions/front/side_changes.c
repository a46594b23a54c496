/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Which variables change beyond their sides, and on them, though they have no tangent of their own: because their
 * conditions read what has one, or other such variables beyond sides. Those that conditions of one need are looked at
 * together, as if all changed; those that change are then filled in one step, as the variables are. */
#include "boundary_impl.h"
#include "memory_impl.h"
#include "reads_impl.h"
#include "side_changes_impl.h"
#include "sides_impl.h"

enum { UNKNOWN, STAYS, CHANGES };

/* Variables whose conditions are looked at together. */
typedef struct group {
    trli_side_changes *all;
    int n, *variable;       /* [n] in the order in which they are met */
    unsigned char *change;  /* [nvariables] */
    int nneeds, needs_room; /* by changes of others */
    struct {
        int of, by;
    } * need;
} group;

static trl_err no_memory(const trli_side_changes *c)
{
    return trli_no_memory(c->in->model->ctx, NULL, "for derivatives of boundary conditions");
}

trl_err trli_side_changes_begin(trli_side_changes *c, trli_instance *in, int direction)
{
    const size_t n = (size_t)in->model->nvariables;
    *c = (trli_side_changes){.in = in, .direction = direction, .nvariables = (int)n};
    c->field = trli_new(in->model->ctx, n + 1, sizeof *c->field);
    c->known = trli_new(in->model->ctx, n + 1, sizeof *c->known);
    if (!c->field || !c->known) return no_memory(c);
    for (size_t v = 0; v < n; ++v) c->field[v] = -1;
    return TRL_OK;
}

void trli_side_changes_end(trli_side_changes *c)
{
    trli_free(c->field);
    trli_free(c->known);
    *c = (trli_side_changes){0};
}

static bool has_points_on_sides(const trli_model *model, int field)
{
    const trl_grid *g = &model->layout->grid;
    for (int a = 0; a < g->dim; ++a)
        if (model->field[field].location >> a & 1 && !g->periodic[a]) return true;
    return false;
}

/* Whether a footprint is a point inside wherever the reader is. */
static bool is_inside(const trl_footprint *reach, int across)
{
    const trl_offsets h = trl_footprint_hull(reach);
    for (int a = 0; a < 3; ++a)
        if (a != across && (h.lo[a] < 0 || h.hi[a] > 0)) return false;
    return true;
}

/* The tangent of a variable, without steps. */
static trl_err add_field(trli_side_changes *c, int variable)
{
    trli_model *model = c->in->model;
    const int of = c->in->variable[variable];
    const trli_model_field like = model->field[of];
    const char *name = trli_model_name(model, "%s_%s", like.name, model->direction[c->direction - 1].name);
    if (c->field[variable] >= 0) return TRL_OK;
    const int field = c->field[variable] = trli_model_add_field(model, name, like.location);
    if (field < 0) return model->ir.err;
    model->field[field].exchanged = true;
    model->field[field].boundary = like.boundary;
    model->field[field].direction = c->direction;
    model->field[field].primal = of;
    model->field[field].only_sides = true;
    return TRL_OK;
}

/* The variable that a field is the tangent of, or -1. */
static int variable_of(const trli_side_changes *c, int field)
{
    for (int v = 0; v < c->nvariables; ++v)
        if (c->field[v] == field) return v;
    return -1;
}

/* A variable is looked at, too. */
static void add_variable(group *g, int variable)
{
    for (int i = 0; i < g->n; ++i)
        if (g->variable[i] == variable) return;
    g->variable[g->n++] = variable;
}

/* What a derivative in the conditions of a variable reads. */
static trl_err note_value(group *g, int of, trli_ir_value value)
{
    const trli_side_changes *c = g->all;
    trli_model *model = c->in->model;
    trli_reads reads = {0};
    trl_err err = TRL_OK;
    if (value < 0) return TRL_OK;
    TRL_TRY(trli_reads_find(&model->ir, &model->walk, 1, &value, &reads));
    for (int i = 0; i < reads.nfields; ++i) {
        const int by = variable_of(c, reads.field[i]);
        if (by < 0 || c->known[by] != UNKNOWN) continue;
        if (!trli_make_room(model->ctx, &g->need, g->nneeds, 1, &g->needs_room, sizeof *g->need)) TRL_TRY(no_memory(c));
        g->need[g->nneeds].of = of;
        g->need[g->nneeds++].by = by;
        add_variable(g, by);
        value = trli_ir_without(&model->ir, value, trli_ir_field(&model->ir, reads.field[i]));
    }
    if (!trli_ir_is_zero(&model->ir, value)) g->change[of] = true;
    err = model->ir.err;
done:
    trli_reads_free(&reads);
    return err;
}

static trl_err look_at(group *g, int variable)
{
    trli_side lowered[6] = {{0}};
    trli_instance *sides;
    trl_err err = TRL_OK;
    TRL_TRY(trli_instance_sides(g->all->in, &sides));
    TRL_TRY(add_field(g->all, variable));
    TRL_TRY(trli_boundary_lower(sides, g->all->field[variable], lowered));
    for (int s = 0; s < 6; ++s)
        for (int i = 0; i < lowered[s].npieces; ++i) {
            const trli_piece *p = &lowered[s].piece[i];
            const trli_ir_value value[3] = {p->da, p->db, p->dc};
            for (int k = 0; k < 3; ++k) TRL_TRY(note_value(g, variable, value[k]));
        }
done:
    for (int s = 0; s < 6; ++s) trli_free(lowered[s].piece);
    return err;
}

/* Find out which of a group change. */
static trl_err decide(group *g)
{
    trli_side_changes *c = g->all;
    bool more = true;
    trl_err err = TRL_OK;
    c->deciding = true;
    for (int i = 0; i < g->n; ++i) TRL_TRY(look_at(g, g->variable[i])); /* adds some */
    while (more) {
        more = false;
        for (int e = 0; e < g->nneeds; ++e) {
            if (g->change[g->need[e].of] || !g->change[g->need[e].by]) continue;
            g->change[g->need[e].of] = more = true;
        }
    }
    for (int i = 0; i < g->n; ++i) c->known[g->variable[i]] = g->change[g->variable[i]] ? CHANGES : STAYS;
done:
    c->deciding = false;
    return err;
}

/* Append what sets the points of a tangent: 0 inside, and on sides what the conditions say. */
static trl_err store(trli_side_changes *c, int variable)
{
    trli_model *model = c->in->model;
    const int field = c->field[variable];
    trli_ir_value value = trli_ir_constant(&model->ir, 0);
    trli_side lowered[6] = {{0}};
    trli_instance *sides;
    trl_err err = TRL_OK;
    TRL_TRY(trli_instance_sides(c->in, &sides));
    if (has_points_on_sides(model, field)) TRL_TRY(trli_boundary_lower(sides, field, lowered));
    for (int s = 0; s < 6; ++s)
        if (model->field[field].location >> s / 2 & 1)
            trli_side_replace_set(&model->ir, &lowered[s], s, TRLI_NO_VALUE, &value);
    err = trli_program_add_kernel(c->in->program, model->field[field].name, 1, &field, &value, NULL);
done:
    for (int s = 0; s < 6; ++s) trli_free(lowered[s].piece);
    return err;
}

/* Whether points on the sides of a variable may need those of another one that is not stored yet. */
static bool has_to_wait(const group *g, const bool *stored, int variable)
{
    bool waits = false;
    for (int e = 0; e < g->nneeds; ++e) {
        const int by = g->need[e].by;
        waits |= g->need[e].of == variable && by != variable && g->change[by] && !stored[by];
    }
    return waits && has_points_on_sides(g->all->in->model, g->all->field[variable]);
}

static trl_err mutual(const group *g, int variable)
{
    const trli_model *model = g->all->in->model;
    const trli_boundary_source *of = &model->field[g->all->in->variable[variable]].boundary;
    const trli_direction *by = &model->direction[g->all->direction - 1];
    return trl_fail(model->ctx, TRL_ERR_INPUT, &of->place,
                    "points on sides of '%s' need those of another field, which need them, and they change with '%s': "
                    "their derivatives cannot be found; use old(...), the value at the start of the step",
                    of->name, by->solved ? by->solved : by->name);
}

/* Append the steps of those that change. */
static trl_err store_all(const group *g)
{
    trli_side_changes *c = g->all;
    int *field = trli_new(c->in->model->ctx, (size_t)c->nvariables + 1, sizeof *field), n = 0, last = -1;
    bool *stored = trli_new(c->in->model->ctx, (size_t)c->nvariables + 1, sizeof *stored);
    trl_err err = TRL_OK;
    if (!field || !stored) TRL_TRY(no_memory(c));
    while (last < n) {
        last = n;
        for (int i = g->n - 1; i >= 0; --i) {
            const int v = g->variable[i];
            if (!g->change[v] || stored[v] || has_to_wait(g, stored, v)) continue;
            TRL_TRY(store(c, v));
            field[n++] = c->field[v];
            stored[v] = true;
        }
    }
    for (int i = 0; i < g->n; ++i)
        if (g->change[g->variable[i]] && !stored[g->variable[i]]) TRL_TRY(mutual(g, g->variable[i]));
    if (n > 0) TRL_TRY(trli_instance_fill_fields(c->in, n, field));
done:
    trli_free(field);
    trli_free(stored);
    return err;
}

/* Find out whether a variable changes. Appends the steps of all tangents that its own needs. */
static trl_err resolve(trli_side_changes *c, int variable)
{
    group g = {.all = c};
    trl_err err = TRL_OK;
    g.variable = trli_new(c->in->model->ctx, (size_t)c->nvariables + 1, sizeof *g.variable);
    g.change = trli_new(c->in->model->ctx, (size_t)c->nvariables + 1, sizeof *g.change);
    if (!g.variable || !g.change) TRL_TRY(no_memory(c));
    add_variable(&g, variable);
    TRL_TRY(decide(&g));
    TRL_TRY(store_all(&g));
done:
    trli_free(g.variable);
    trli_free(g.change);
    trli_free(g.need);
    return err;
}

trl_err trli_side_changes_of(trli_side_changes *c, int variable, bool sure, trli_ir_value *tangent)
{
    trl_err err = TRL_OK;
    *tangent = TRLI_NO_VALUE;
    if (sure && c->known[variable] == UNKNOWN) TRL_TRY(resolve(c, variable));
    if (c->known[variable] == STAYS) return TRL_OK;
    TRL_TRY(add_field(c, variable));
    *tangent = trli_ir_field(&c->in->model->ir, c->field[variable]);
done:
    return err;
}

trl_err trli_side_changes_settle(trli_side_changes *c, int across, trli_ir_value *value)
{
    trli_model *model = c->in->model;
    trli_ir *ir = &model->ir;
    trli_reads reads = {0};
    trl_err err = TRL_OK;
    if (*value < 0) return TRL_OK;
    TRL_TRY(trli_reads_find(ir, &model->walk, 1, value, &reads));
    for (int i = 0; i < reads.nfields; ++i) {
        const int field = reads.field[i], v = variable_of(c, field);
        if (v < 0) continue;
        const bool zero = !has_points_on_sides(model, field) && is_inside(&reads.footprint[i], across);
        if (!zero && !c->deciding && c->known[v] == UNKNOWN) TRL_TRY(resolve(c, v));
        if (zero || c->known[v] == STAYS) *value = trli_ir_without(ir, *value, trli_ir_field(ir, field));
    }
    TRL_TRY(ir->err);
    if (trli_ir_is_zero(&model->ir, *value)) *value = TRLI_NO_VALUE;
done:
    trli_reads_free(&reads);
    return err;
}
