/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <math.h>
#include <string.h>

#include "deck_build_impl.h"
#include "formula_impl.h"
#include "scalar_impl.h"

/* Up to here every whole number is a double and fits an index. */
#define WHOLE_MAX 9007199254740991.0

typedef struct fixed_use {
    trli_deck *deck;
    const trl_text *text;
} fixed_use;

trl_err trli_text_part(trli_deck *deck, const trl_text *text, int begin, int end, trl_text *part)
{
    *part = (trl_text){.place = trl_text_place(text, begin, end), .exact = text->exact};
    return trli_arena_text(deck->arena, text->chars + begin, (size_t)(end - begin), &part->chars);
}

/* Remember that a parameter is fixed by this use; visitor of trl_ast_visit_names. */
static trl_err note_fixed(void *data, const char *name, const trl_ast *node)
{
    const fixed_use *use = data;
    int at = trli_map_find(&use->deck->parameters.map, name);
    trl_place *fixed = at < 0 ? NULL : &use->deck->parameters.definition[at].fixed;
    if (fixed && fixed->line == 0) *fixed = trl_text_place(use->text, node->begin, node->end);
    return TRL_OK;
}

trl_err trli_text_number(trli_deck *deck, const trl_text *text, const trl_scope *names, double *value)
{
    trl_formula *formula = NULL;
    trl_err err;
    if (trli_scalar_number(text->chars, value)) return TRL_OK;
    TRL_TRY(trl_formula_parse(deck->ctx, text, &formula));
    TRL_TRY(trli_ast_number(deck->ctx, text, formula->root, names, &deck->operations, value));
    TRL_TRY(trli_ast_visit_names(deck->ctx, text, formula->root, names, &deck->operations, note_fixed,
                                 &(fixed_use){deck, text}));
    if (!isfinite(*value))
        err = trl_fail(deck->ctx, TRL_ERR_INPUT, &text->place, "'%s' is not a finite number", text->chars);
done:
    trl_formula_destroy(&formula);
    return err;
}

trl_err trli_text_whole(trli_deck *deck, const trl_text *text, const trl_scope *names, int64_t *value)
{
    double number;
    trl_err err = trli_text_number(deck, text, names, &number);
    if (err != TRL_OK) return err;
    if (number != floor(number) || fabs(number) > WHOLE_MAX)
        return trl_fail(deck->ctx, TRL_ERR_INPUT, &text->place, "'%s' must be a whole number, found %.17g", text->chars,
                        number);
    *value = (int64_t)number;
    return TRL_OK;
}

trl_err trli_value_read(trli_deck *deck, const trli_yaml *node, trl_value *value)
{
    trl_text *text;
    bool list = node->kind == TRLI_LIST_NODE;
    int count = list ? node->n : 1;
    if (count == 0)
        return trl_fail(deck->ctx, TRL_ERR_INPUT, trli_yaml_place(node),
                        "a vector needs one formula for each axis, found an empty list");
    trl_err err = trli_arena_alloc(deck->arena, (size_t)count * sizeof *text, &text);
    if (err != TRL_OK) return err;
    for (int i = 0; i < count; ++i) text[i] = list ? node->item[i]->text : node->text;
    *value = (trl_value){.count = count, .text = text, .list = list, .place = *trli_yaml_place(node)};
    return TRL_OK;
}

double trli_yaml_number(const trli_yaml *node)
{
    double value;
    return node && trli_scalar_number(node->text.chars, &value) ? value : NAN;
}

int64_t trli_yaml_whole(const trli_yaml *node, int64_t fallback)
{
    int64_t value;
    return node && trli_scalar_integer(node->text.chars, &value) ? value : fallback;
}

bool trli_yaml_is_true(const trli_yaml *node)
{
    return node && strcmp(node->text.chars, "true") == 0;
}

int trli_yaml_word(const trli_key *below, const trli_yaml *mapping, const char *key)
{
    return trli_schema_word(trli_schema_child(below, key), trli_yaml_get(mapping, key)->text.chars);
}

int trli_deck_word(const trli_deck *deck, const char *mapping, const char *key)
{
    const trli_key *below = trli_schema_child(trli_schema_root(), mapping);
    return trli_yaml_word(below, trli_yaml_get(deck->root, mapping), key);
}
