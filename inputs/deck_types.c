/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "deck_build_impl.h"
#include "scalar_impl.h"

/* What one entry's parameters are read with. */
typedef struct type_reader {
    trli_deck *deck;
    trli_yaml *parameters; /* of the entry */
    const trl_expression_entry *member;
} type_reader;

static trl_err find_type(trli_deck *deck, const trli_yaml *node, const trl_expr_type **type)
{
    const char *name = node->text.chars, **known, *origin;
    int n = trl_registry_count(deck->registry);
    *type = trl_registry_find(deck->registry, name);
    if (*type) return TRL_OK;
    if (deck->plugins_missing) return TRL_ERR_PLUGIN;
    trl_err err = trli_arena_alloc(deck->arena, (size_t)(n + 1) * sizeof *known, &known);
    if (err != TRL_OK) return err;
    for (int i = 0; i < n; ++i) known[i] = trl_registry_at(deck->registry, i, &origin)->name;
    const char *nearest = trl_name_nearest(name, known, n);
    if (nearest)
        return trl_fail(deck->ctx, TRL_ERR_INPUT, trli_yaml_place(node),
                        "there is no expression type '%s'; did you mean '%s'?", name, nearest);
    return trl_fail(deck->ctx, TRL_ERR_INPUT, trli_yaml_place(node),
                    "there is no expression type '%s'; list the library that has it under 'plugins'", name);
}

/* Parameters */

static trl_err fail_param(const type_reader *r, const trl_param_desc *row, const trli_yaml *node, const char *wanted)
{
    const char *unit = row->unit && *row->unit ? row->unit : NULL;
    return trl_fail(r->deck->ctx, TRL_ERR_INPUT, trli_yaml_place(node),
                    "parameter '%s' of expression '%s' must be %s%s%s, found '%s'%s", row->key, r->member->name, wanted,
                    unit ? " in " : "", unit ? unit : "", node->text.chars,
                    row->kind == TRL_PARAM_BOOL ? trli_scalar_boolean_advice(node->text.chars) : "");
}

static trl_err read_number(const type_reader *r, const trl_param_desc *row, const trli_yaml *node, double *value)
{
    char wanted[128];
    bool integer = row->kind == TRL_PARAM_INTEGER;
    const char *kind = integer ? "a whole number" : "a number";
    trl_err err = trli_text_number(r->deck, &node->text, r->member->names, value);
    if (err != TRL_OK) return err;
    bool fits = row->min == row->max || (*value >= row->min && *value <= row->max);
    if (fits && (!integer || *value == floor(*value))) return TRL_OK;
    if (row->min == row->max)
        snprintf(wanted, sizeof wanted, "%s", kind);
    else
        snprintf(wanted, sizeof wanted, "%s from %g to %g", kind, row->min, row->max);
    return fail_param(r, row, node, wanted);
}

/* Replace a parameter by a text that the deck as used quotes; a path no longer depends on where the deck lies. */
static trl_err read_text(const type_reader *r, const trl_param_desc *row, const trli_yaml *key, const trli_yaml *node,
                         const char **text)
{
    trli_arena *arena = r->deck->arena;
    trli_yaml *written;
    trl_err err = TRL_OK;
    *text = node->text.chars;
    if (row->kind == TRL_PARAM_PATH && **text)
        TRL_TRY(trli_path_join(arena, trli_loaded_folder(&r->deck->loaded, trli_yaml_place(node)), *text, text));
    TRL_TRY(trli_yaml_scalar(arena, *text, trli_yaml_place(node), &written));
    written->literal = true;
    TRL_TRY(trli_yaml_put(arena, r->parameters, (trli_yaml *)key, written));
done:
    return err;
}

static trl_err read_given(const type_reader *r, const trl_param_desc *row, int at, trl_param_value *value)
{
    const trli_yaml *node = r->parameters->item[at], *key = r->parameters->key[at];
    bool truth;
    value->place = *trli_yaml_place(node);
    switch (row->kind) {
    case TRL_PARAM_NUMBER:
    case TRL_PARAM_INTEGER:
        return read_number(r, row, node, &value->number);
    case TRL_PARAM_BOOL:
        if (!trli_scalar_boolean(node->text.chars, &truth)) return fail_param(r, row, node, "true or false");
        value->number = truth;
        return TRL_OK;
    case TRL_PARAM_TEXT:
    case TRL_PARAM_PATH:
        break;
    }
    return read_text(r, row, key, node, &value->text);
}

/* Write a default into the entry, without a place, from where it is read like any other value. */
static trl_err write_fallback(const type_reader *r, const trl_param_desc *row)
{
    static const trl_place nowhere;
    trli_arena *arena = r->deck->arena;
    char number[TRLI_NUMBER_TEXT] = "";
    const char *text = row->text;
    trli_yaml *key, *node;
    trl_err err;
    if (row->kind == TRL_PARAM_BOOL) text = row->fallback != 0 ? "true" : "false";
    if (row->kind == TRL_PARAM_NUMBER || row->kind == TRL_PARAM_INTEGER) {
        trli_scalar_print(row->fallback, row->kind == TRL_PARAM_INTEGER, number);
        text = number;
    }
    if (!text) return TRL_OK;
    TRL_TRY(trli_arena_text(arena, text, strlen(text), &text));
    TRL_TRY(trli_yaml_scalar(arena, row->key, &nowhere, &key));
    TRL_TRY(trli_yaml_scalar(arena, text, &nowhere, &node));
    TRL_TRY(trli_yaml_put(arena, r->parameters, key, node));
done:
    return err;
}

static trl_err fail_unknown(const type_reader *r, const trl_expr_type *type, const trli_yaml *key, int n)
{
    const char **known;
    trl_err err = trli_arena_alloc(r->deck->arena, (size_t)(n + 1) * sizeof *known, &known);
    if (err != TRL_OK) return err;
    for (int i = 0; i < n; ++i) known[i] = type->params[i].key;
    const char *nearest = trl_name_nearest(key->text.chars, known, n);
    if (nearest)
        return trl_fail(r->deck->ctx, TRL_ERR_INPUT, trli_yaml_place(key),
                        "unknown key '%s' in expression '%s'; did you mean '%s'?", key->text.chars, r->member->name,
                        nearest);
    return trl_fail(r->deck->ctx, TRL_ERR_INPUT, trli_yaml_place(key),
                    "unknown key '%s' in expression '%s'; 'trellis types %s' lists the parameters of its type",
                    key->text.chars, r->member->name, type->name);
}

static trl_err check_keys(const type_reader *r, const trl_expr_type *type, int n)
{
    trl_err err = TRL_OK;
    for (int i = 0; i < r->parameters->n; ++i) {
        bool known = false;
        for (int k = 0; k < n && !known; ++k)
            known = strcmp(type->params[k].key, r->parameters->key[i]->text.chars) == 0;
        if (!known) err = trli_worse(err, fail_unknown(r, type, r->parameters->key[i], n));
    }
    return err;
}

static trl_err read_params(type_reader *r, const trl_expr_type *type, const trl_param_value **params)
{
    trl_param_value *value;
    int n = 0;
    trl_err err, kept;
    while (type->params && type->params[n].key) ++n;
    TRL_TRY(trli_arena_alloc(r->deck->arena, (size_t)(n + 1) * sizeof *value, &value));
    kept = check_keys(r, type, n);
    for (int i = 0; i < n; ++i) {
        const trl_param_desc *row = &type->params[i];
        bool given = trli_yaml_find(r->parameters, row->key) >= 0;
        if (!given && row->required) {
            kept = trli_worse(kept, trl_fail(r->deck->ctx, TRL_ERR_INPUT, &r->member->place,
                                             "expression '%s' of type '%s' needs parameter '%s'", r->member->name,
                                             type->name, row->key));
            continue;
        }
        if (!given) TRL_TRY(write_fallback(r, row));
        int at = trli_yaml_find(r->parameters, row->key);
        if (at >= 0) kept = trli_worse(kept, read_given(r, row, at, &value[i]));
    }
    *params = value;
    err = kept;
done:
    return err;
}

/* Names */

static trl_err read_computes(trli_deck *deck, const trli_yaml *list, trl_expression_entry *member)
{
    trli_words words = {0};
    trl_err err = TRL_OK;
    for (int i = 0; list && i < list->n; ++i)
        TRL_TRY(trli_names_expand(deck, &list->item[i]->text, member->names, true, &words));
    for (int i = 0; i < words.n; ++i) TRL_TRY(trli_name_claim(deck, words.word[i], &words.place[i], "expression"));
    member->ncomputes = words.n;
    member->computes = words.word;
done:
    return err;
}

static trl_err read_inputs(trli_deck *deck, const trli_yaml *inputs, trl_expression_entry *member)
{
    trli_words own = {0}, tags = {0};
    trli_map seen = {0};
    trl_err err = TRL_OK;
    for (int i = 0; inputs && i < inputs->n; ++i) {
        const trli_yaml *key = inputs->key[i], *item = inputs->item[i];
        int before = own.n;
        TRL_TRY(trli_names_expand(deck, &key->text, member->names, true, &own));
        TRL_TRY(trli_names_expand(deck, &item->text, member->names, true, &tags));
        if (own.n != tags.n)
            return trl_fail(deck->ctx, TRL_ERR_INPUT, trli_yaml_place(item), "'%s' stands for %d names but '%s' for %d",
                            key->text.chars, own.n - before, item->text.chars, tags.n - before);
        for (int k = before; k < own.n; ++k) {
            if (trli_map_find(&seen, own.word[k]) >= 0)
                return trl_fail(deck->ctx, TRL_ERR_INPUT, trli_yaml_place(key), "input '%s' is given twice",
                                own.word[k]);
            TRL_TRY(trli_map_add(deck->arena, &seen, own.word[k], k));
        }
    }
    member->ninputs = own.n;
    member->input_own = own.word;
    member->input_tag = tags.word;
done:
    return err;
}

/* Entries with a type have names of their own, beside the one namespace of quantities. */
static trl_err claim_entry(trli_deck *deck, const trl_expression_entry *member)
{
    if (trli_map_find(&deck->types, member->name) >= 0)
        return trl_fail(deck->ctx, TRL_ERR_INPUT, &member->place, "the indices of this family make the name '%s' twice",
                        member->name);
    return trli_map_add(deck->arena, &deck->types, member->name, 0);
}

trl_err trli_type_read(trli_deck *deck, trli_yaml *entry, trl_expression_entry *member)
{
    type_reader r = {.deck = deck, .parameters = trli_yaml_get(entry, "parameters"), .member = member};
    int location = trli_yaml_find(entry, "location");
    trli_yaml *key;
    trl_err err;
    if (location >= 0)
        return trl_fail(deck->ctx, TRL_ERR_INPUT, trli_yaml_place(entry->key[location]),
                        "'location' belongs to formulas, and '%s' is a type, which says itself where it computes",
                        member->name);
    TRL_TRY(claim_entry(deck, member));
    TRL_TRY(find_type(deck, trli_yaml_get(entry, "type"), &member->type));
    if (!r.parameters) {
        TRL_TRY(trli_yaml_scalar(deck->arena, "parameters", trli_yaml_place(entry), &key));
        TRL_TRY(trli_yaml_create(deck->arena, TRLI_MAPPING_NODE, trli_yaml_place(entry), &r.parameters));
        TRL_TRY(trli_yaml_put(deck->arena, entry, key, r.parameters));
    }
    err = read_params(&r, member->type, &member->params);
    err = trli_worse(err, read_computes(deck, trli_yaml_get(entry, "computes"), member));
    err = trli_worse(err, read_inputs(deck, trli_yaml_get(entry, "inputs"), member));
done:
    return err;
}
