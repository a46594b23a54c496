/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <string.h>

#include "deck_build_impl.h"

/* Expressions and equations: what an entry of the deck gives for each member of its family. */

static trl_err add_expression(trli_deck *deck, trl_expression_entry **entry, int *capacity,
                              const trl_expression_entry *member)
{
    trl_problem *problem = &deck->problem;
    trl_err err = trli_arena_grow(deck->arena, entry, problem->nexpressions, capacity, sizeof **entry);
    if (err != TRL_OK) return err;
    (*entry)[problem->nexpressions++] = *member;
    problem->expression = *entry;
    return TRL_OK;
}

/* Parameters of a formula's own, which may use its indices and hide parameters of the deck. */
static trl_err read_locals(trli_deck *deck, const trli_yaml *entry, const trl_scope *indices, const trl_scope **names)
{
    const trli_yaml *parameters = trli_yaml_get(entry, "parameters");
    trli_definitions scope = {.outer = &deck->parameters};
    trl_err err = TRL_OK;
    *names = indices;
    if (!parameters || parameters->n == 0) return TRL_OK;
    for (int i = 0; i < parameters->n; ++i) {
        const trli_yaml *key = parameters->key[i], *value = parameters->item[i];
        const char *name = key->text.chars;
        if (!trl_name_valid(name) || trl_name_reserved(name))
            return trl_fail(deck->ctx, TRL_ERR_INPUT, trli_yaml_place(key), "'%s' cannot name a parameter%s", name,
                            trl_name_reserved(name) ? ": it is a reserved word" : "");
        TRL_TRY(trli_definitions_add(deck, &scope, name, &value->text,
                                     indices == deck->problem.parameters ? NULL : indices));
    }
    TRL_TRY(trli_definitions_evaluate(deck, &scope, false));
    TRL_TRY(trli_definitions_scope(deck, &scope, indices, names));
done:
    return err;
}

static trl_err read_formula(trli_deck *deck, const trli_yaml *entry, trl_expression_entry *member)
{
    static const char *const of_types[] = {"computes", "inputs"};
    const trli_yaml *location = trli_yaml_get(entry, "location");
    trl_location found;
    trl_err err;
    for (size_t i = 0; i < sizeof of_types / sizeof *of_types; ++i) {
        int at = trli_yaml_find(entry, of_types[i]);
        if (at >= 0)
            return trl_fail(deck->ctx, TRL_ERR_INPUT, trli_yaml_place(entry->key[at]),
                            "'%s' belongs to entries with a 'type', and '%s' is a formula", of_types[i], member->name);
    }
    TRL_TRY(trli_value_read(deck, trli_yaml_get(entry, "formula"), &member->formula));
    if (location && trl_location_parse(location->text.chars, &found)) member->location = (int)found;
    TRL_TRY(read_locals(deck, entry, member->names, &member->names));
    TRL_TRY(trli_name_claim(deck, member->name, &member->place, "expression"));
done:
    return err;
}

static trl_err read_expression(trli_deck *deck, const trli_yaml *key, trli_yaml *entry, trl_expression_entry **list,
                               int *capacity)
{
    const trli_key *row = trli_schema_child(trli_schema_child(trli_schema_root(), "expressions"), key->text.chars);
    const trl_evaluate evaluate = (trl_evaluate)trli_yaml_word(row, entry, "evaluate");
    trli_family family;
    trl_err err;
    const int target = trli_yaml_word(row, entry, "device");
    TRL_TRY(trli_family_read(deck, entry, deck->problem.parameters, &family));
    for (int i = 0; i < family.members; ++i) {
        trl_expression_entry member = {.place = key->text.place, .location = -1};
        member.evaluate = evaluate;
        member.device = (trl_target)target;
        TRL_TRY(trli_family_names(deck, &family, i, deck->problem.parameters, &member.names));
        TRL_TRY(trli_name_spell(deck, &key->text, member.names, &member.name));
        TRL_TRY(trli_yaml_get(entry, "type") ? trli_type_read(deck, entry, &member)
                                             : read_formula(deck, entry, &member));
        if (target == TRL_TARGET_CPU && member.type && member.type->flags & TRL_EXPR_NEUTRAL)
            return trl_fail(
                deck->ctx, TRL_ERR_INPUT, trli_yaml_place(trli_yaml_get(entry, "device")),
                "type '%s' is device-neutral: what it applies runs where its fields are; take 'device' out, "
                "or say run.devices: cpu",
                member.type->name);
        if (target == TRL_TARGET_GPU && !(member.type && member.type->evaluate_cuda))
            return trl_fail(deck->ctx, TRL_ERR_INPUT, trli_yaml_place(trli_yaml_get(entry, "device")),
                            "'device: gpu' is for types with a CUDA form (evaluate_cuda), and %s; take it out",
                            member.type ? "this one has none" : "formulas run where their fields are");
        TRL_TRY(trli_boundary_read(deck, entry, member.names, member.boundary));
        TRL_TRY(add_expression(deck, list, capacity, &member));
    }
done:
    return err;
}

trl_err trli_expressions_read(trli_deck *deck)
{
    const trli_yaml *expressions = trli_yaml_get(deck->root, "expressions");
    trl_expression_entry *list = NULL;
    int capacity = 0;
    trl_err err = TRL_OK;
    for (int i = 0; i < expressions->n; ++i)
        err = trli_worse(err, read_expression(deck, expressions->key[i], expressions->item[i], &list, &capacity));
    return err;
}

/* Where the one `=` of an equation stands that is no part of a comparison; -1: nowhere. */
static int find_equals(const char *text)
{
    int depth = 0;
    for (int i = 0; text[i]; ++i) {
        depth += (text[i] == '(') - (text[i] == ')');
        if (depth != 0 || text[i] != '=') continue; /* sum(j=1..n, ...) */
        if (text[i + 1] == '=')
            ++i;
        else if (i == 0 || !strchr("<>!", text[i - 1]))
            return i;
    }
    return -1;
}

/* Whether both sides are compared, outside of parentheses. */
static bool compares(const char *text)
{
    int depth = 0;
    for (int i = 0; text[i]; ++i) {
        depth += (text[i] == '(') - (text[i] == ')');
        if (depth == 0 && text[i] == '=' && text[i + 1] == '=') return true;
    }
    return false;
}

static trl_err read_solve(trli_deck *deck, const trli_yaml *entry, trl_equation_entry *equation)
{
    const trl_text *text = &trli_yaml_get(entry, "solve")->text;
    const int at = find_equals(text->chars);
    trl_err err = TRL_OK;
    equation->solve = *text;
    if (at < 0 && compares(text->chars))
        return trl_fail(deck->ctx, TRL_ERR_INPUT, &text->place,
                        "an equation has '=' between both sides: '==' compares them, and is 1 or 0");
    if (at >= 0) {
        TRL_TRY(trli_text_part(deck, text, 0, at, &equation->solve));
        TRL_TRY(trli_text_part(deck, text, at + 1, (int)strlen(text->chars), &equation->equals));
        if (find_equals(equation->equals.chars) >= 0)
            return trl_fail(deck->ctx, TRL_ERR_INPUT, &text->place, "an equation has one '=', and this has more");
    }
done:
    return err;
}

/* The first guess of what is solved for is 0 where the deck has none. */
static trl_err read_initial(trli_deck *deck, trli_yaml *entry, trl_equation_entry *equation)
{
    trli_yaml *key, *zero;
    trl_err err;
    if (!trli_yaml_get(entry, "initial")) {
        TRL_TRY(trli_yaml_scalar(deck->arena, "initial", trli_yaml_place(entry), &key));
        TRL_TRY(trli_yaml_scalar(deck->arena, "0", trli_yaml_place(entry), &zero));
        TRL_TRY(trli_yaml_put(deck->arena, entry, key, zero));
    }
    TRL_TRY(trli_value_read(deck, trli_yaml_get(entry, "initial"), &equation->initial));
done:
    return err;
}

static trl_err read_equation(trli_deck *deck, const trli_yaml *key, trli_yaml *entry, trl_equation_entry **list,
                             int *capacity)
{
    const trli_yaml *mask = trli_yaml_get(entry, "mask"), *exact = trli_yaml_get(entry, "exact");
    const trli_yaml *ddt = trli_yaml_get(entry, "ddt"), *ddt2 = trli_yaml_get(entry, "ddt2"),
                    *rate = trli_yaml_get(entry, "initial_rate");
    trl_problem *problem = &deck->problem;
    trl_equation_entry common = {.place = key->text.place};
    trli_family family;
    trl_err err;
    if (!trl_location_parse(trli_yaml_get(entry, "location")->text.chars, &common.location)) common.location = TRL_CELL;
    TRL_TRY(read_initial(deck, entry, &common));
    if (ddt && ddt->kind == TRLI_MAPPING_NODE) {
        const trli_yaml *terms = trli_yaml_get(ddt, "explicit");
        if (terms) TRL_TRY(trli_value_read(deck, terms, &common.ddt));
        TRL_TRY(trli_value_read(deck, trli_yaml_get(ddt, "implicit"), &common.implicit));
    } else if (ddt) {
        TRL_TRY(trli_value_read(deck, ddt, &common.ddt));
    }
    if (ddt2) TRL_TRY(trli_value_read(deck, ddt2, &common.ddt2));
    if (rate) TRL_TRY(trli_value_read(deck, rate, &common.initial_rate));
    if (trli_yaml_get(entry, "solve")) TRL_TRY(read_solve(deck, entry, &common));
    TRL_TRY(trli_solver_name_read(deck, entry, &common));
    if (rate && !ddt2)
        return trl_fail(deck->ctx, TRL_ERR_INPUT, trli_yaml_place(rate),
                        "'initial_rate' belongs to an equation with 'ddt2', and this one has 'ddt'");
    if (mask) common.mask = mask->text;
    if (exact) common.exact = exact->text;
    TRL_TRY(trli_family_read(deck, entry, problem->parameters, &family));
    for (int i = 0; i < family.members; ++i) {
        trl_equation_entry member = common;
        TRL_TRY(trli_family_names(deck, &family, i, problem->parameters, &member.names));
        TRL_TRY(trli_name_spell(deck, &key->text, member.names, &member.name));
        TRL_TRY(trli_name_claim(deck, member.name, &member.place, "equation"));
        TRL_TRY(trli_boundary_read(deck, entry, member.names, member.boundary));
        TRL_TRY(trli_arena_grow(deck->arena, list, problem->nequations, capacity, sizeof **list));
        (*list)[problem->nequations++] = member;
        problem->equation = *list;
    }
done:
    return err;
}

trl_err trli_equations_read(trli_deck *deck)
{
    const trli_yaml *equations = trli_yaml_get(deck->root, "equations");
    trl_equation_entry *list = NULL;
    int capacity = 0;
    trl_err err = TRL_OK;
    for (int i = 0; i < equations->n; ++i)
        err = trli_worse(err, read_equation(deck, equations->key[i], equations->item[i], &list, &capacity));
    return err;
}
