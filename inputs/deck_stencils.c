/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Stencils: linear operators of the deck's own. */
#include <string.h>

#include <trl_formula_operators.h>

#include "deck_build_impl.h"

enum { FARTHEST_POINT = 8 }; /* as trl_operator_create_custom has it */

static trl_err read_offset(trli_deck *deck, const trli_yaml *node, int axis, int8_t *offset)
{
    int dim = deck->problem.grid.dim;
    int64_t whole;
    trl_err err = trli_text_whole(deck, &node->text, deck->problem.parameters, &whole);
    if (err != TRL_OK) return err;
    if (whole < -FARTHEST_POINT || whole > FARTHEST_POINT)
        return trl_fail(deck->ctx, TRL_ERR_INPUT, trli_yaml_place(node),
                        "an offset of a stencil is a whole number from %d to %d, found %lld", -FARTHEST_POINT,
                        FARTHEST_POINT, (long long)whole);
    if (whole != 0 && axis >= dim)
        return trl_fail(deck->ctx, TRL_ERR_INPUT, trli_yaml_place(node),
                        "this offset is along %c, an axis that this %d-D grid lacks", "xyz"[axis], dim);
    *offset = (int8_t)whole;
    return TRL_OK;
}

static trl_err read_point(trli_deck *deck, const trli_yaml *node, trl_stencil_point *point)
{
    const trli_yaml *offsets = node->n == 2 ? node->item[0] : NULL, *weight = node->n == 2 ? node->item[1] : NULL;
    int dim = deck->problem.grid.dim;
    trl_err err = TRL_OK;
    if (!offsets || offsets->kind != TRLI_LIST_NODE || weight->kind != TRLI_SCALAR_NODE)
        return trl_fail(deck->ctx, TRL_ERR_INPUT, trli_yaml_place(node),
                        "a point of a stencil is its offsets and its weight, as in [[%s], 0.5]",
                        dim == 1   ? "-1"
                        : dim == 2 ? "-1, 0"
                                   : "-1, 0, 0");
    if (offsets->n < dim || offsets->n > 3)
        return trl_fail(deck->ctx, TRL_ERR_INPUT, trli_yaml_place(offsets),
                        "a point of a stencil has one offset per axis of the grid, %d, found %d", dim, offsets->n);
    *point = (trl_stencil_point){.weight = 0};
    for (int a = 0; a < offsets->n; ++a) {
        if (offsets->item[a]->kind != TRLI_SCALAR_NODE)
            return trl_fail(deck->ctx, TRL_ERR_INPUT, trli_yaml_place(offsets->item[a]),
                            "an offset of a stencil is a whole number");
        TRL_TRY(read_offset(deck, offsets->item[a], a, &point->offset[a]));
    }
    TRL_TRY(trli_text_number(deck, &weight->text, deck->problem.parameters, &point->weight));
done:
    return err;
}

/* A stencil is called like a function, whose names come first. */
static trl_err claim_name(trli_deck *deck, const trli_yaml *key)
{
    const char *name = key->text.chars;
    bool taken =
        trl_function_find(name) || strcmp(name, "if") == 0 || strcmp(name, "sum") == 0 || strcmp(name, "prod") == 0;
    for (int i = 0; trl_formula_operator_at(i); ++i) taken |= strcmp(trl_formula_operator_at(i)->name, name) == 0;
    if (taken)
        return trl_fail(deck->ctx, TRL_ERR_INPUT, trli_yaml_place(key),
                        "'%s' is a function or operator of formulas and cannot name a stencil", name);
    if (!trl_name_valid(name))
        return trl_fail(deck->ctx, TRL_ERR_INPUT, trli_yaml_place(key), "'%s' cannot name a stencil", name);
    return trli_name_claim(deck, name, trli_yaml_place(key), "stencil");
}

static trl_err read_stencil(trli_deck *deck, const trli_yaml *key, const trli_yaml *entry, trl_stencil_entry *stencil)
{
    const trli_yaml *to = trli_yaml_get(entry, "to"), *from = trli_yaml_get(entry, "from");
    const trli_yaml *points = trli_yaml_get(entry, "points");
    trl_stencil_point *point;
    trl_err err;
    *stencil = (trl_stencil_entry){.name = key->text.chars, .place = *trli_yaml_place(key), .npoints = points->n};
    trl_location_parse(to->text.chars, &stencil->to);
    trl_location_parse((from ? from : to)->text.chars, &stencil->from);
    TRL_TRY(claim_name(deck, key));
    TRL_TRY(trli_arena_alloc(deck->arena, (size_t)points->n * sizeof *point, &point));
    stencil->point = point;
    for (int i = 0; i < points->n; ++i) err = trli_worse(err, read_point(deck, points->item[i], &point[i]));
done:
    return err;
}

trl_err trli_stencils_read(trli_deck *deck)
{
    const trli_yaml *stencils = trli_yaml_get(deck->root, "stencils");
    trl_stencil_entry *stencil;
    if (!stencils) return TRL_OK;
    trl_err err = trli_arena_alloc(deck->arena, (size_t)stencils->n * sizeof *stencil, &stencil);
    if (err != TRL_OK) return err;
    for (int i = 0; i < stencils->n; ++i)
        err = trli_worse(err, read_stencil(deck, stencils->key[i], stencils->item[i], &stencil[i]));
    deck->problem.nstencils = stencils->n;
    deck->problem.stencil = stencil;
    return err;
}
