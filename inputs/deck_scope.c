/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <math.h>
#include <string.h>

#include "deck_build_impl.h"
#include "formula_impl.h"
#include "scalar_impl.h"

/* How far the evaluation of a definition has come. Names in braces and bounds of sums get their values first
 * (INDEXED), since the other names are known only then (NAMED). */
enum { NEW, INDEXED, NAMED, VALUED, FAILED, POSTPONED };

typedef struct evaluator {
    trli_deck *deck;
    trli_definitions *scope;
    trli_named_number *now; /* whose needs are being collected */
    bool partly, missing;   /* a name is not known yet */
    int nstack;
    int *stack; /* definitions whose evaluation has begun, outermost first */
} evaluator;

trl_err trli_definitions_add(trli_deck *deck, trli_definitions *scope, const char *name, const trl_text *text,
                             const trl_scope *indices)
{
    trl_err err =
        trli_arena_grow(deck->arena, &scope->definition, scope->n, &scope->capacity, sizeof *scope->definition);
    if (err != TRL_OK) return err;
    scope->definition[scope->n] = (trli_named_number){.name = name, .text = *text, .indices = indices, .state = NEW};
    return trli_map_add(deck->arena, &scope->map, name, scope->n++);
}

static trl_err append_need(const evaluator *e, trli_definitions *scope, int number, int **list, int *n, int *capacity)
{
    trli_named_number *definition = &scope->definition[number];
    if (definition->collector == e->deck->collections) return TRL_OK;
    definition->collector = e->deck->collections;
    trl_err err = trli_arena_grow(e->deck->arena, list, *n, capacity, sizeof **list);
    if (err == TRL_OK) (*list)[(*n)++] = number;
    return err;
}

static bool is_index(const trl_scope *indices, const char *name)
{
    for (int i = 0; indices && i < indices->n; ++i)
        if (strcmp(indices->name[i], name) == 0) return true;
    return false;
}

/* The nearest name that could have been meant. */
static trl_err fail_unknown(const evaluator *e, const char *name, const trl_ast *node)
{
    trl_place place = trl_text_place(&e->now->text, node->begin, node->end);
    const char *nearest = NULL;
    for (const trli_definitions *scope = e->scope; scope && !nearest; scope = scope->outer) {
        const char **known;
        trl_err err = trli_arena_alloc(e->deck->arena, (size_t)scope->n * sizeof *known, &known);
        if (err != TRL_OK) return err;
        for (int i = 0; i < scope->n; ++i) known[i] = scope->definition[i].name;
        nearest = trl_name_nearest(name, known, scope->n);
    }
    if (!nearest)
        return trl_fail(e->deck->ctx, TRL_ERR_INPUT, &place,
                        "'%s' is no parameter; the formula of a parameter uses parameters and pi only", name);
    return trl_fail(e->deck->ctx, TRL_ERR_INPUT, &place, "'%s' is no parameter; did you mean '%s'?", name, nearest);
}

/* Note that the present definition needs a name; visitor of trl_ast_visit_names. */
static trl_err add_need(void *data, const char *name, const trl_ast *node)
{
    evaluator *e = data;
    trli_named_number *now = e->now;
    int at = trli_map_find(&e->scope->map, name);
    if (is_index(now->indices, name) && (at < 0 || !e->scope->outer)) return TRL_OK;
    if (at >= 0) return append_need(e, e->scope, at, &now->need, &now->nneeds, &now->needs_capacity);
    at = e->scope->outer ? trli_map_find(&e->scope->outer->map, name) : -1;
    if (at >= 0) return append_need(e, e->scope->outer, at, &now->outer, &now->nouter, &now->outer_capacity);
    if (strcmp(name, "pi") == 0) return TRL_OK;
    e->missing = true;
    return e->partly ? TRL_OK : fail_unknown(e, name, node);
}

/* The indices of sums and products around a piece of a formula. */
typedef struct bound_index {
    const char *name;
    const struct bound_index *outer;
} bound_index;

/* Collect the names that stand in braces or in bounds of sums. */
static trl_err add_index_needs(evaluator *e, const trl_ast *node, const bound_index *bound, bool inside)
{
    trl_err err = TRL_OK;
    const bound_index own = {node->kind == TRL_AST_FAMILY ? node->part[0].text : NULL, bound};
    if (node->kind == TRL_AST_NAME) {
        for (int i = 0; i < node->nparts; ++i)
            if (node->part[i].index) TRL_TRY(add_index_needs(e, node->part[i].index, bound, true));
        if (!inside || node->nparts != 1 || node->part[0].index) return TRL_OK;
        for (const bound_index *b = bound; b; b = b->outer)
            if (strcmp(b->name, node->part[0].text) == 0) return TRL_OK;
        return add_need(e, node->part[0].text, node);
    }
    for (int i = 0; i < node->nargs; ++i) {
        bool family = node->kind == TRL_AST_FAMILY;
        TRL_TRY(add_index_needs(e, node->arg[i], family && i == 2 ? &own : bound, inside || (family && i < 2)));
    }
done:
    return err;
}

/* Names and values of what the present definition needs, in front of its indices. */
static trl_err known_names(const evaluator *e, trl_scope *names)
{
    const trli_named_number *d = e->now;
    const char **name;
    double *value;
    trl_err err;
    int n = 0;
    TRL_TRY(trli_arena_alloc(e->deck->arena, (size_t)(d->nneeds + d->nouter) * sizeof *name, &name));
    TRL_TRY(trli_arena_alloc(e->deck->arena, (size_t)(d->nneeds + d->nouter) * sizeof *value, &value));
    for (int i = 0; i < d->nneeds; ++i) {
        name[n] = e->scope->definition[d->need[i]].name;
        value[n++] = e->scope->definition[d->need[i]].value;
    }
    for (int i = 0; i < d->nouter; ++i) {
        name[n] = e->scope->outer->definition[d->outer[i]].name;
        value[n++] = e->scope->outer->definition[d->outer[i]].value;
    }
    *names = (trl_scope){.n = n, .name = name, .value = value, .outer = d->indices};
done:
    return err;
}

static trl_err collect_needs(evaluator *e)
{
    trl_scope names;
    trli_named_number *d = e->now;
    trl_err err;
    e->missing = false;
    ++e->deck->collections;
    if (d->state == NEW) {
        if (trli_scalar_number(d->text.chars, &d->value)) {
            d->state = VALUED;
            return TRL_OK;
        }
        d->nneeds = d->nouter = d->next = 0;
        if (!d->formula) TRL_TRY(trl_formula_parse(e->deck->ctx, &d->text, &d->formula));
        TRL_TRY(add_index_needs(e, d->formula->root, NULL, false));
        d->state = INDEXED;
    } else {
        TRL_TRY(known_names(e, &names));
        TRL_TRY(
            trli_ast_visit_names(e->deck->ctx, &d->text, d->formula->root, &names, &e->deck->operations, add_need, e));
        d->state = NAMED;
    }
    if (e->missing) d->state = POSTPONED;
done:
    return err;
}

static trl_err compute(evaluator *e)
{
    trl_scope names;
    trli_named_number *d = e->now;
    trl_err err;
    TRL_TRY(known_names(e, &names));
    TRL_TRY(trli_ast_number(e->deck->ctx, &d->text, d->formula->root, &names, &e->deck->operations, &d->value));
    if (!isfinite(d->value))
        TRL_TRY(trl_fail(e->deck->ctx, TRL_ERR_INPUT, &d->text.place, "parameter '%s' is %s", d->name,
                         isnan(d->value) ? "not a number" : "infinite"));
    d->state = VALUED;
done:
    return err;
}

/* The definitions on the stack from position first on need each other. */
static trl_err fail_cycle(evaluator *e, int first)
{
    trli_named_number *definition = e->scope->definition;
    size_t bytes = 1;
    char *path;
    for (int i = first; i <= e->nstack; ++i)
        bytes += strlen(definition[e->stack[i < e->nstack ? i : first]].name) + strlen(" -> ");
    trl_err err = trli_arena_alloc(e->deck->arena, bytes, &path);
    if (err != TRL_OK) return err;
    char *end = path;
    for (int i = first; i < e->nstack; ++i) {
        end = stpcpy(stpcpy(end, definition[e->stack[i]].name), " -> ");
        definition[e->stack[i]].state = FAILED;
    }
    strcpy(end, definition[e->stack[first]].name);
    return trl_fail(e->deck->ctx, TRL_ERR_INPUT, &definition[e->stack[first]].text.place,
                    "parameters need each other in a cycle: %s", path);
}

/* One step with the innermost definition: go down to one it needs, or come closer to its value. */
static trl_err advance(evaluator *e)
{
    trli_named_number *d = e->now = &e->scope->definition[e->stack[e->nstack - 1]];
    if (d->state >= VALUED) {
        --e->nstack;
        return TRL_OK;
    }
    if (d->state == NEW || (d->state == INDEXED && d->next == d->nneeds)) return collect_needs(e);
    if (d->next == d->nneeds) return compute(e);
    int need = d->need[d->next];
    const trli_named_number *other = &e->scope->definition[need];
    if (other->state == FAILED || other->state == POSTPONED) d->state = other->state;
    if (other->state >= VALUED) {
        ++d->next;
        return TRL_OK;
    }
    for (int i = e->nstack - 1; other->state != NEW && i >= 0; --i)
        if (e->stack[i] == need) return fail_cycle(e, i);
    e->stack[e->nstack++] = need;
    return TRL_OK;
}

trl_err trli_definitions_evaluate(trli_deck *deck, trli_definitions *scope, bool partly)
{
    evaluator e = {.deck = deck, .scope = scope, .partly = partly};
    trl_err kept = TRL_OK, err = trli_arena_alloc(deck->arena, (size_t)(scope->n + 1) * sizeof *e.stack, &e.stack);
    for (int i = 0; i < scope->n; ++i)
        if (scope->definition[i].state == POSTPONED) scope->definition[i].state = NEW;
    for (int i = 0; i < scope->n && err == TRL_OK; ++i) {
        e.stack[e.nstack++] = i;
        while (e.nstack > 0) {
            err = advance(&e);
            kept = trli_worse(kept, err);
            if (err != TRL_OK && e.now->state < VALUED) e.now->state = FAILED;
        }
        if (err == TRL_ERR_INPUT) err = TRL_OK;
    }
    for (int i = 0; i < scope->n; ++i) trl_formula_destroy(&scope->definition[i].formula);
    return trli_worse(kept, err);
}

trl_err trli_definitions_scope(trli_deck *deck, const trli_definitions *scope, const trl_scope *outer,
                               const trl_scope **names)
{
    trl_scope *made;
    const char **name;
    double *value;
    trl_definition *definition;
    int n = 0, *index;
    trl_err err;
    TRL_TRY(trli_arena_alloc(deck->arena, sizeof *made, &made));
    TRL_TRY(trli_arena_alloc(deck->arena, (size_t)scope->n * sizeof *definition, &definition));
    TRL_TRY(trli_arena_alloc(deck->arena, (size_t)scope->n * sizeof *name, &name));
    TRL_TRY(trli_arena_alloc(deck->arena, (size_t)scope->n * sizeof *value, &value));
    for (int i = 0; i < scope->n; ++i) {
        if (scope->definition[i].state != VALUED) continue;
        name[n] = scope->definition[i].name;
        definition[n] = (trl_definition){scope->definition[i].text, scope->outer ? NULL : scope->definition[i].indices};
        value[n++] = scope->definition[i].value;
    }
    TRL_TRY(trli_arena_alloc(deck->arena, (size_t)trl_scope_index_size(n) * sizeof *index, &index));
    trl_scope_index(n, name, index);
    *made = (trl_scope){.n = n, .name = name, .value = value, .outer = outer, .definition = definition, .index = index};
    *names = made;
done:
    return err;
}
