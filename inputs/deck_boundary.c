/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <string.h>

#include "deck_build_impl.h"

static const char axis_name[] = "xyz";

static trl_err read_robin(trli_deck *deck, const trli_yaml *robin, trl_bc_piece *piece)
{
    trl_err err;
    piece->kind = TRL_BC_ROBIN;
    TRL_TRY(trli_value_read(deck, trli_yaml_get(robin, "a"), &piece->value));
    TRL_TRY(trli_value_read(deck, trli_yaml_get(robin, "b"), &piece->b));
    TRL_TRY(trli_value_read(deck, trli_yaml_get(robin, "c"), &piece->c));
done:
    return err;
}

/* The schema has seen to it that exactly one kind is given. */
static trl_err read_piece(trli_deck *deck, const trli_yaml *node, const trl_scope *names, trl_bc_piece *piece)
{
    const trli_yaml *where = trli_yaml_get(node, "where"), *value;
    *piece = (trl_bc_piece){.place = *trli_yaml_place(node)};
    if (where) piece->where = where->text;
    if ((value = trli_yaml_get(node, "dirichlet"))) {
        piece->kind = TRL_BC_DIRICHLET;
        return trli_value_read(deck, value, &piece->value);
    }
    if ((value = trli_yaml_get(node, "neumann"))) {
        piece->kind = TRL_BC_NEUMANN;
        return trli_value_read(deck, value, &piece->value);
    }
    if ((value = trli_yaml_get(node, "robin"))) return read_robin(deck, value, piece);
    if ((value = trli_yaml_get(node, "expression"))) {
        piece->kind = TRL_BC_EXPRESSION;
        return trli_name_spell(deck, &value->text, names, &piece->expression);
    }
    piece->kind = TRL_BC_OUTFLOW;
    return TRL_OK;
}

static trl_err read_side(trli_deck *deck, const trli_yaml *node, const trl_scope *names, trl_bc_side *side)
{
    bool list = node->kind == TRLI_LIST_NODE;
    int n = list ? node->n : 1;
    trl_bc_piece *piece;
    trl_err err = TRL_OK;
    if (n == 0)
        return trl_fail(deck->ctx, TRL_ERR_INPUT, trli_yaml_place(node),
                        "a side needs at least one condition, found an empty list");
    TRL_TRY(trli_arena_alloc(deck->arena, (size_t)n * sizeof *piece, &piece));
    for (int i = 0; i < n; ++i) {
        TRL_TRY(read_piece(deck, list ? node->item[i] : node, names, &piece[i]));
        if (i > 0 && !piece[i - 1].where.chars)
            return trl_fail(deck->ctx, TRL_ERR_INPUT, &piece[i].place,
                            "this condition is never used: the one before it has no 'where', so it holds everywhere");
    }
    *side = (trl_bc_side){.npieces = n, .piece = piece, .place = *trli_yaml_place(node)};
done:
    return err;
}

trl_err trli_boundary_read(trli_deck *deck, const trli_yaml *entry, const trl_scope *names, trl_bc_side side[6])
{
    const trli_yaml *boundary = trli_yaml_get(entry, "boundary");
    const trl_grid *grid = &deck->problem.grid;
    trl_err err = TRL_OK;
    for (int i = 0; boundary && i < boundary->n; ++i) {
        const trli_yaml *key = boundary->key[i];
        const char *name = key->text.chars;
        int axis = (int)(strchr(axis_name, name[0]) - axis_name), at = 2 * axis + (name[1] == '+');
        if (axis >= grid->dim)
            err = trli_worse(err, trl_fail(deck->ctx, TRL_ERR_INPUT, trli_yaml_place(key),
                                           "there is no side '%s': the grid has %d %s", name, grid->dim,
                                           grid->dim == 1 ? "axis" : "axes"));
        else if (grid->periodic[axis])
            err = trli_worse(err,
                             trl_fail(deck->ctx, TRL_ERR_INPUT, trli_yaml_place(key),
                                      "side '%s' cannot have a condition: axis %c is periodic", name, axis_name[axis]));
        else
            err = trli_worse(err, read_side(deck, boundary->item[i], names, &side[at]));
    }
    return err;
}
