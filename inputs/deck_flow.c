/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* `incompressible`: the equation of the pressure, which no entry of the deck's own is. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "deck_build_impl.h"

enum { TEXT_ROOM = 2048 };

static const trl_equation_entry *find_equation(const trl_problem *p, const char *name)
{
    for (int v = 0; v < p->nequations; ++v)
        if (strcmp(p->equation[v].name, name) == 0) return &p->equation[v];
    return NULL;
}

/* A component of the velocity advances in time, on the faces across its axis. */
static trl_err check_component(trli_deck *deck, const trl_incompressible_entry *flow, int a)
{
    const char *name = flow->velocity[a];
    const trl_place *place = &flow->velocity_place[a];
    const trl_equation_entry *e = find_equation(&deck->problem, name);
    const char axis = "xyz"[a];
    if (!e)
        return trl_fail(deck->ctx, TRL_ERR_INPUT, place,
                        "there is no equation '%s': the velocity's components are equations with 'ddt', without the "
                        "pressure's gradient",
                        name);
    for (int b = 0; b < a; ++b)
        if (strcmp(flow->velocity[b], name) == 0)
            return trl_fail(deck->ctx, TRL_ERR_INPUT, place, "'%s' is listed twice: each axis has its own component",
                            name);
    if (e->solve.chars || e->ddt2.count)
        return trl_fail(deck->ctx, TRL_ERR_INPUT, place,
                        "'%s' has '%s': a component of the velocity advances by 'ddt', without the pressure's gradient",
                        name, e->solve.chars ? "solve" : "ddt2");
    if (e->location != (trl_location)(1 << a))
        return trl_fail(deck->ctx, TRL_ERR_INPUT, place,
                        "the %c-component of the velocity must be at %cface, so that its divergence is at cells, and "
                        "'%s' is at %s: give it 'location: %cface'",
                        axis, axis, name, trl_location_name(e->location), axis);
    return TRL_OK;
}

static trl_err read_velocity(trli_deck *deck, const trli_yaml *node, trl_incompressible_entry *flow)
{
    const trli_yaml *list = trli_yaml_get(node, "velocity");
    const int dim = deck->problem.grid.dim;
    trli_words words = {0};
    trl_err err = TRL_OK;
    for (int i = 0; i < list->n; ++i)
        TRL_TRY(trli_names_expand(deck, &list->item[i]->text, deck->problem.parameters, false, &words));
    if (dim < 2)
        return trl_fail(deck->ctx, TRL_ERR_INPUT, trli_yaml_place(node),
                        "an incompressible flow needs 2 or 3 axes: with one, its velocity is the same everywhere");
    if (words.n != dim)
        return trl_fail(deck->ctx, TRL_ERR_INPUT, trli_yaml_place(list),
                        "the velocity has a component for each axis: list %d equations, not %d", dim, words.n);
    flow->n = dim;
    flow->velocity = words.word;
    flow->velocity_place = words.place;
    for (int a = 0; a < dim; ++a) err = trli_worse(err, check_component(deck, flow, a));
done:
    return err;
}

static trl_err write_text(trli_deck *deck, const trl_place *place, const char *text, trl_text *result)
{
    *result = (trl_text){.place = *place};
    if (strlen(text) + 1 >= TEXT_ROOM)
        return trl_fail(deck->ctx, TRL_ERR_INPUT, place, "this is too long: give it a name under 'expressions'");
    return trli_arena_text(deck->arena, text, strlen(text), &result->chars);
}

static trl_err zero_value(trli_deck *deck, const trl_place *place, trl_value *value)
{
    trl_text *text;
    trl_err err;
    TRL_TRY(trli_arena_alloc(deck->arena, sizeof *text, &text));
    *text = (trl_text){.chars = "0", .place = *place};
    *value = (trl_value){.count = 1, .text = text, .place = *place};
done:
    return err;
}

static bool is_given(const trl_bc_piece *piece)
{
    return piece->kind == TRL_BC_DIRICHLET || piece->kind == TRL_BC_EXPRESSION;
}

/* Where the velocity through a side is given, the pressure does not change it; elsewhere the pressure is 0. */
static trl_err derive_side(trli_deck *deck, const trl_bc_side *normal, trl_bc_side *side)
{
    trl_bc_piece *piece;
    trl_err err;
    TRL_TRY(trli_arena_alloc(deck->arena, (size_t)normal->npieces * sizeof *piece, &piece));
    for (int i = 0; i < normal->npieces; ++i) {
        const trl_bc_piece *of = &normal->piece[i];
        piece[i] = (trl_bc_piece){
            .kind = is_given(of) ? TRL_BC_NEUMANN : TRL_BC_DIRICHLET, .where = of->where, .place = of->place};
        TRL_TRY(zero_value(deck, &of->place, &piece[i].value));
    }
    *side = (trl_bc_side){.npieces = normal->npieces, .piece = piece, .place = normal->place};
done:
    return err;
}

static bool is_zero(const char *text)
{
    char *end;
    return strtod(text, &end) == 0 && end > text && !*end;
}

/* Of a side whose condition the deck gives: where the velocity through all of it is given, a pressure whose gradient is
 * not 0 there would move it. */
static trl_err check_side(trli_deck *deck, const trl_incompressible_entry *flow, const trl_equation_entry *e, int s,
                          const trl_bc_side *pressure)
{
    for (int i = 0; i < e->boundary[s].npieces; ++i)
        if (!is_given(&e->boundary[s].piece[i])) return TRL_OK;
    for (int i = 0; i < pressure->npieces; ++i) {
        const trl_bc_piece *piece = &pressure->piece[i];
        const bool flat = piece->kind == TRL_BC_NEUMANN && is_zero(piece->value.text->chars);
        if (flat || piece->kind == TRL_BC_OUTFLOW) continue;
        return trl_fail(deck->ctx, TRL_ERR_INPUT, &piece->place,
                        "on side %c%c both the velocity '%s' through it and the pressure '%s' are given: let '%s' be "
                        "outflow there, or leave the pressure's condition out, which is neumann: 0 then",
                        "xyz"[s / 2], "-+"[s % 2], e -> name, flow -> pressure, e -> name);
    }
    return TRL_OK;
}

static trl_err derive_boundary(trli_deck *deck, const trl_incompressible_entry *flow, trl_bc_side boundary[6])
{
    const trl_grid *grid = &deck->problem.grid;
    trl_err err = TRL_OK;
    for (int s = 0; s < 2 * grid->dim; ++s) {
        const trl_equation_entry *e = find_equation(&deck->problem, flow->velocity[s / 2]);
        if (grid->periodic[s / 2]) continue;
        if (boundary[s].npieces > 0) {
            TRL_TRY(check_side(deck, flow, e, s, &boundary[s]));
            continue;
        }
        if (e->boundary[s].npieces == 0)
            return trl_fail(deck->ctx, TRL_ERR_INPUT, &e->place,
                            "'%s' needs a condition on side %c%c: dirichlet at a wall or an inflow, outflow where the "
                            "flow leaves; the pressure's follows from it",
                            e->name, "xyz"[s / 2], "-+"[s % 2]);
        TRL_TRY(derive_side(deck, &e->boundary[s], &boundary[s]));
    }
done:
    return err;
}

/* A text in the making. */
typedef struct writing {
    char text[TEXT_ROOM];
    size_t used;
} writing;

static void add(writing *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(writing *w, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const int n = vsnprintf(w->text + w->used, sizeof w->text - w->used, format, arguments);
    va_end(arguments);
    const size_t left = sizeof w->text - w->used - 1;
    w->used += n < 0 ? 0 : (size_t)n < left ? (size_t)n : left;
}

/* What a component of the velocity changes by for w = 1: nothing where its mask is 0. */
static void add_gradient(trli_deck *deck, const trl_incompressible_entry *flow, int a, writing *w)
{
    const char *mask = find_equation(&deck->problem, flow->velocity[a])->mask.chars, axis = "xyz"[a];
    if (mask) add(w, "if(at((%s), %cface), ", mask, axis);
    add(w, "dd%c(%s)/at((%s), %cface)", axis, flow->pressure, flow->density.chars, axis);
    if (mask) add(w, ", 0)");
}

/* div(grad(p)/density) = div(velocity), where the velocity is one that the pressure has not changed yet. */
static trl_err write_equation(trli_deck *deck, const trl_incompressible_entry *flow, trl_equation_entry *pressure)
{
    writing left = {.used = 0}, right = {.used = 0};
    trl_err err = TRL_OK;
    for (int a = 0; a < flow->n; ++a) {
        writing one = {.used = 0};
        add_gradient(deck, flow, a, &one);
        TRL_TRY(write_text(deck, &flow->density.place, one.text, &((trl_text *)flow->gradient)[a]));
        add(&left, a ? ", " : "div([");
        add_gradient(deck, flow, a, &left);
        add(&right, "%s%s", a ? ", " : "div([", flow->velocity[a]);
    }
    add(&left, "])");
    add(&right, "])");
    TRL_TRY(write_text(deck, &flow->density.place, left.text, &pressure->solve));
    err = write_text(deck, flow->velocity_place, right.text, &pressure->equals);
done:
    return err;
}

/* There is a pressure in cells of which a face is not masked. */
static trl_err write_mask(trli_deck *deck, const trl_incompressible_entry *flow, trl_equation_entry *pressure)
{
    const trl_equation_entry *e[3];
    const trl_text *mask = NULL;
    writing w = {.used = 0};
    for (int a = 0; a < flow->n; ++a) {
        e[a] = find_equation(&deck->problem, flow->velocity[a]);
        if (e[a]->mask.chars) mask = &e[a]->mask;
    }
    for (int a = 0; a < flow->n && mask; ++a) {
        if (!e[a]->mask.chars)
            return trl_fail(deck->ctx, TRL_ERR_INPUT, &mask->place,
                            "'%s' has no mask, but another component of the velocity has one: a solid holds them all",
                            e[a]->name);
        add(&w, "%sat(if(at((%s), %cface), 1, 0), cell)", a ? " + " : "", e[a]->mask.chars, "xyz"[a]);
    }
    if (!mask) return TRL_OK;
    return write_text(deck, &mask->place, w.text, &pressure->mask);
}

static trl_err add_pressure(trli_deck *deck, const trli_yaml *node, const trl_incompressible_entry *flow)
{
    trl_problem *problem = &deck->problem;
    const trli_yaml *exact = trli_yaml_get(node, "exact");
    trl_equation_entry pressure = {
        .name = flow->pressure, .place = flow->pressure_place, .names = problem->parameters, .location = TRL_CELL};
    trl_equation_entry *list;
    trl_err err;
    TRL_TRY(trli_name_claim(deck, flow->pressure, &flow->pressure_place, "pressure"));
    TRL_TRY(trli_value_read(deck, trli_yaml_get(node, "initial"), &pressure.initial));
    if (exact) pressure.exact = exact->text;
    TRL_TRY(trli_solver_name_read(deck, node, &pressure));
    TRL_TRY(trli_boundary_read(deck, node, problem->parameters, pressure.boundary));
    TRL_TRY(derive_boundary(deck, flow, pressure.boundary));
    TRL_TRY(write_equation(deck, flow, &pressure));
    TRL_TRY(write_mask(deck, flow, &pressure));
    TRL_TRY(trli_arena_alloc(deck->arena, ((size_t)problem->nequations + 1) * sizeof *list, &list));
    memcpy(list, problem->equation, (size_t)problem->nequations * sizeof *list);
    list[problem->nequations++] = pressure;
    problem->equation = list;
done:
    return err;
}

trl_err trli_flow_read(trli_deck *deck)
{
    const trli_yaml *node = trli_yaml_get(deck->root, "incompressible");
    trl_incompressible_entry *flow = &deck->problem.incompressible;
    trl_text *gradient;
    trl_err err = TRL_OK;
    if (!node) return TRL_OK;
    const trl_text *pressure = &trli_yaml_get(node, "pressure")->text;
    flow->place = *trli_yaml_place(node);
    flow->pressure_place = pressure->place;
    flow->density = trli_yaml_get(node, "density")->text;
    TRL_TRY(trli_arena_alloc(deck->arena, 3 * sizeof *gradient, &gradient));
    flow->gradient = gradient;
    TRL_TRY(trli_name_spell(deck, pressure, deck->problem.parameters, &flow->pressure));
    TRL_TRY(read_velocity(deck, node, flow));
    TRL_TRY(add_pressure(deck, node, flow));
done:
    if (err != TRL_OK) flow->n = 0;
    return err;
}
