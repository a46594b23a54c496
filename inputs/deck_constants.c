/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <string.h>

#include "deck_build_impl.h"
#include "scalar_impl.h"

enum { EXPECTED_BYTES = 256 };

/* The number that a scalar of the deck stands for, in place of its formula of parameters. */
static trl_err read_constant(trli_deck *deck, const trli_key *key, trli_yaml **node)
{
    const trl_text *text = &(*node)->text;
    const trli_key one = {
        .path = key->path, .forms = TRLI_AS_NUMBER, .flags = key->flags & TRLI_ABOVE, .min = key->min, .max = key->max};
    char printed[TRLI_NUMBER_TEXT], expected[EXPECTED_BYTES];
    const char *chars;
    double value;
    trl_err err;
    if (!trli_schema_computes(key, text->chars)) return TRL_OK;
    TRL_TRY(trli_text_number(deck, text, deck->problem.parameters, &value));
    trli_schema_expected(&one, expected, sizeof expected);
    if (!trli_schema_in_range(key, value))
        return trl_fail(deck->ctx, TRL_ERR_INPUT, &text->place, "'%s' must be %s, found '%s', which is %.15g",
                        trli_schema_name(key), expected, text->chars, value);
    trli_scalar_print(value, false, printed);
    TRL_TRY(trli_arena_text(deck->arena, printed, strlen(printed), &chars));
    TRL_TRY(trli_yaml_scalar(deck->arena, chars, &text->place, node));
done:
    return err;
}

/* Lists are shared with the deck as it was read, mappings are the deck's own. */
static trl_err read_below(trli_deck *deck, const trli_key *key, trli_yaml **node)
{
    trl_err err = TRL_OK, kept = TRL_OK;
    trli_yaml *copy;
    switch ((*node)->kind) {
    case TRLI_SCALAR_NODE:
        return read_constant(deck, key, node);
    case TRLI_LIST_NODE:
        if (!(key->forms & TRLI_AS_NUMBER)) return TRL_OK;
        TRL_TRY(trli_yaml_copy(deck->arena, *node, &copy));
        for (int i = 0; i < copy->n; ++i) kept = trli_worse(kept, read_constant(deck, key, &copy->item[i]));
        *node = copy;
        return kept;
    case TRLI_MAPPING_NODE:
        break;
    }
    for (int i = 0; i < (*node)->n; ++i) {
        const trli_key *child = trli_schema_child(key, (*node)->key[i]->text.chars);
        if (child) kept = trli_worse(kept, read_below(deck, child, &(*node)->item[i]));
    }
    return kept;
done:
    return err;
}

trl_err trli_constants_read(trli_deck *deck)
{
    return read_below(deck, trli_schema_root(), &deck->root);
}
