/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <string.h>

#include "deck_build_impl.h"

static trl_err add_parameter(trli_deck *deck, const trl_text *name_text, const trl_scope *names, const trl_text *value,
                             const trl_scope *indices)
{
    const char *name;
    trl_err err;
    TRL_TRY(trli_name_spell(deck, name_text, names, &name));
    TRL_TRY(trli_name_claim(deck, name, &name_text->place, "parameter"));
    TRL_TRY(trli_definitions_add(deck, &deck->parameters, name, value, indices));
done:
    return err;
}

/* A family of parameters, or one whose name has braces: both need the values of other parameters to be named. */
static trl_err add_family(trli_deck *deck, const trli_yaml *key, const trli_yaml *entry, const trl_scope *known)
{
    trli_family family;
    const trl_scope *names, *indices;
    trl_err err;
    if (entry->kind == TRLI_SCALAR_NODE) return add_parameter(deck, &key->text, known, &entry->text, NULL);
    const trli_yaml *values = trli_yaml_get(entry, "values");
    TRL_TRY(trli_family_read(deck, entry, known, &family));
    if (values->n != family.members)
        return trl_fail(deck->ctx, TRL_ERR_INPUT, trli_yaml_place(values), "'%s' has %d members but %d values",
                        key->text.chars, family.members, values->n);
    for (int i = 0; i < family.members; ++i) {
        TRL_TRY(trli_family_names(deck, &family, i, known, &names));
        TRL_TRY(trli_family_names(deck, &family, i, NULL, &indices));
        TRL_TRY(add_parameter(deck, &key->text, names, &values->item[i]->text, indices));
    }
done:
    return err;
}

trl_err trli_parameters_read(trli_deck *deck)
{
    const trli_yaml *parameters = trli_yaml_get(deck->root, "parameters");
    const trl_scope *known;
    trl_err err = TRL_OK;
    for (int i = 0; i < parameters->n; ++i) {
        const trli_yaml *key = parameters->key[i], *entry = parameters->item[i];
        if (entry->kind != TRLI_SCALAR_NODE || strchr(key->text.chars, '{')) continue;
        err = trli_worse(err, add_parameter(deck, &key->text, NULL, &entry->text, NULL));
    }
    err = trli_worse(err, trli_definitions_evaluate(deck, &deck->parameters, true));
    if (err != TRL_OK) return err;
    TRL_TRY(trli_definitions_scope(deck, &deck->parameters, NULL, &known));
    for (int i = 0; i < parameters->n; ++i) {
        const trli_yaml *key = parameters->key[i], *entry = parameters->item[i];
        if (entry->kind == TRLI_SCALAR_NODE && !strchr(key->text.chars, '{')) continue;
        err = trli_worse(err, add_family(deck, key, entry, known));
    }
    if (err != TRL_OK) return err;
    TRL_TRY(trli_definitions_evaluate(deck, &deck->parameters, false));
    TRL_TRY(trli_definitions_scope(deck, &deck->parameters, NULL, &deck->problem.parameters));
done:
    return err;
}
