/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include "deck_build_impl.h"

/* Mark a parameter and all that need its value, through any number of formulas. */
static void mark_dependent(const trli_definitions *scope, int parameter, bool *marked)
{
    marked[parameter] = true;
    for (bool again = true; again;) {
        again = false;
        for (int i = 0; i < scope->n; ++i) {
            const trli_named_number *d = &scope->definition[i];
            for (int need = 0; need < d->nneeds && !marked[i]; ++need) again |= marked[i] = marked[d->need[need]];
        }
    }
}

/* Numbers that shape the problem itself have no derivative. */
static trl_err check_parameter(trli_deck *deck, const char *name, const trl_place *place)
{
    const trli_definitions *scope = &deck->parameters;
    int parameter = trli_map_find(&scope->map, name);
    bool *marked;
    trl_err err;
    if (parameter < 0) return TRL_OK; /* the solver knows what else it could be */
    TRL_TRY(trli_arena_alloc(deck->arena, (size_t)scope->n * sizeof *marked, &marked));
    for (int i = 0; i < scope->n; ++i) marked[i] = false;
    mark_dependent(scope, parameter, marked);
    for (int i = 0; i < scope->n; ++i) {
        const trl_place *use = &scope->definition[i].fixed;
        if (marked[i] && use->line > 0)
            return trl_fail(
                deck->ctx, TRL_ERR_INPUT, place,
                "there is no sensitivity to '%s': '%s' is used at line %d where a number shapes the problem "
                "(a range, a name, a stencil or a parameter of a type)",
                name, scope->definition[i].name, use->line);
    }
done:
    return err;
}

static trl_err read_parameters(trli_deck *deck, const trli_words *equations, const trli_yaml *list, int *capacity)
{
    trl_problem *problem = &deck->problem;
    trl_sensitivity_entry *entries = (trl_sensitivity_entry *)problem->sensitivity;
    trli_words parameters = {0};
    trl_err err = TRL_OK;
    for (int i = 0; i < list->n; ++i)
        TRL_TRY(trli_names_expand(deck, &list->item[i]->text, problem->parameters, false, &parameters));
    for (int p = 0; p < parameters.n; ++p) TRL_TRY(check_parameter(deck, parameters.word[p], &parameters.place[p]));
    for (int e = 0; e < equations->n; ++e)
        for (int p = 0; p < parameters.n; ++p) {
            TRL_TRY(trli_arena_grow(deck->arena, &entries, problem->nsensitivities, capacity, sizeof *entries));
            entries[problem->nsensitivities++] = (trl_sensitivity_entry){equations->word[e], parameters.word[p],
                                                                         equations->place[e], parameters.place[p]};
            problem->sensitivity = entries;
        }
done:
    return err;
}

trl_err trli_sensitivity_read(trli_deck *deck)
{
    const trli_yaml *node = trli_yaml_get(deck->root, "sensitivity");
    int capacity = 0;
    trl_err err = TRL_OK;
    for (int i = 0; node && i < node->n; ++i) {
        trli_words equations = {0};
        trl_err one = trli_names_expand(deck, &node->key[i]->text, deck->problem.parameters, false, &equations);
        if (one == TRL_OK) one = read_parameters(deck, &equations, node->item[i], &capacity);
        err = trli_worse(err, one);
    }
    return err;
}
