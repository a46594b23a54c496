/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Instances: the problem's expressions evaluated from one set of the variables' values at one time. Equal values of
 * two instances are one node of the IR, so what does not change with time or stage is computed once without being
 * told. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "formula_impl.h"
#include "instance_impl.h"
#include "model_impl.h"
#include "symbols_impl.h"

trl_err trli_instance_create(trli_model *model, trli_program *program, int time_scalar, int stage,
                             const trli_instance *old, trli_instance **instance)
{
    trli_instance *in = calloc(1, sizeof *in);
    size_t nv = (size_t)model->nvariables + 1, ne = (size_t)model->nentries + 1;
    *instance = NULL;
    if (in) {
        *in = (trli_instance){.model = model,
                              .program = program,
                              .old = old,
                              .time_scalar = time_scalar,
                              .stage = stage,
                              .conditions_from = -1};
        in->variable = malloc(nv * sizeof *in->variable);
        in->formula = calloc(ne, sizeof *in->formula);
        in->variable_formula = calloc(nv, sizeof *in->variable_formula);
        in->plugin_field = calloc(ne, sizeof *in->plugin_field);
    }
    if (!in || !in->variable || !in->formula || !in->variable_formula || !in->plugin_field) {
        trli_instance_destroy(&in);
        return trl_fail(model->ctx, TRL_ERR_MEMORY, NULL, "no memory for an instance of %d expressions",
                        model->nentries);
    }
    for (int v = 0; v < model->nvariables; ++v) in->variable[v] = -1;
    *instance = in;
    return TRL_OK;
}

static void destroy_shared(trli_instance **shared)
{
    trli_instance *s = *shared;
    *shared = NULL;
    if (!s) return;
    trli_tangents_free(s);
    free(s->formula);
    free(s->variable_formula);
    free(s);
}

void trli_instance_destroy(trli_instance **instance)
{
    trli_instance *in = *instance;
    *instance = NULL;
    if (!in) return;
    trli_tangents_free(in);
    destroy_shared(&in->sides);
    free(in->variable);
    free(in->formula);
    free(in->variable_formula);
    free(in->plugin_field);
    free(in);
}

/* An instance that shares all with another but its memos, and stores nothing. */
static trl_err share(const trli_instance *instance, trli_instance **shared)
{
    trli_instance *s = *shared = malloc(sizeof *s);
    if (s) {
        *s = *instance;
        s->inline_only = true;
        s->sides = NULL;
        s->tangent = NULL;
        s->ntangents = 0;
        s->formula = calloc((size_t)instance->model->nentries + 1, sizeof *s->formula);
        s->variable_formula = calloc((size_t)instance->model->nvariables + 1, sizeof *s->variable_formula);
        if (s->formula && s->variable_formula) return TRL_OK;
    }
    destroy_shared(shared);
    return trl_fail(instance->model->ctx, TRL_ERR_MEMORY, NULL, "no memory for an instance of %d expressions",
                    instance->model->nentries);
}

trl_err trli_instance_sides(trli_instance *instance, trli_instance **sides)
{
    trl_err err = TRL_OK;
    *sides = instance->inline_only ? instance : instance->sides;
    if (*sides) return TRL_OK;
    err = share(instance, &instance->sides);
    *sides = instance->sides;
    return err;
}

trl_err trli_instance_marked(const trli_instance *instance, const trli_marks *marks, trli_instance **marked)
{
    trl_err err = share(instance, marked);
    if (err != TRL_OK) return err;
    err = share(instance, &(*marked)->apart);
    if (err != TRL_OK) return err;
    (*marked)->marks = marks;
    (*marked)->apart->reads_apart = true;
    return TRL_OK;
}

void trli_instance_marked_destroy(trli_instance **marked)
{
    if (*marked) destroy_shared(&(*marked)->apart);
    destroy_shared(marked);
}

trl_err trli_marks_add(trli_model *model, trli_marks *marks, const trl_ast *node)
{
    if (marks->n == marks->capacity) {
        int more = marks->capacity ? 2 * marks->capacity : 64;
        const trl_ast **longer = realloc(marks->node, (size_t)more * sizeof(const trl_ast *));
        if (!longer) return trl_fail(model->ctx, TRL_ERR_MEMORY, NULL, "no memory for %d parts of formulas", more);
        marks->node = longer;
        marks->capacity = more;
    }
    marks->node[marks->n++] = node;
    return TRL_OK;
}

static int compare_marks(const void *a, const void *b)
{
    const uintptr_t x = (uintptr_t) * (const trl_ast *const *)a, y = (uintptr_t) * (const trl_ast *const *)b;
    return (x > y) - (x < y);
}

void trli_marks_sort(trli_marks *marks)
{
    if (marks->n > 0) qsort(marks->node, (size_t)marks->n, sizeof(const trl_ast *), compare_marks);
}

bool trli_marks_have(const trli_marks *marks, const trl_ast *node)
{
    return marks->n > 0 &&
           bsearch(&node, marks->node, (size_t)marks->n, sizeof(const trl_ast *), compare_marks) != NULL;
}

/* Why a formula's component becomes a field of its own; NULL: it does not, or that is decided when its readers are known (*offered). */
static const char *reason_to_store(const trli_instance *in, const trli_entry *entry, trli_value value, int location,
                                   bool *offered)
{
    const trli_model *model = in->model;
    const trli_node *n = trli_ir_node(&model->ir, value);
    *offered = false;
    if (in->inline_only || location == TRLI_ANYWHERE) return NULL;
    if (entry->has_boundary) return "it has boundary values of its own";
    if (!n->varies || n->unplaced || n->op == TRLI_OP_FIELD) return NULL;
    if (trli_ir_reaches_far(&model->ir, value)) return trli_far_text;
    if (model->settings.fusion != TRL_FUSION_FULL) return "run.fusion is not full";
    *offered = n->varies == (1u << model->layout->grid.dim) - 1 && n->op != TRLI_OP_SHIFT;
    return NULL;
}

static trl_err store_component(trli_instance *in, const trli_entry *entry, int c, trli_operand *operand)
{
    int field;
    trl_err err = TRL_OK;
    trli_model *model = in->model;
    const trl_expression_entry *deck = entry->deck;
    const trli_boundary_source source = {deck->boundary, deck->names, deck->name, deck->place};
    bool offered;
    const char *why = reason_to_store(in, entry, operand->value[c], operand->location[c], &offered);
    if (!why && !offered) return TRL_OK;
    const char *name = operand->components ? trli_model_name(model, "%s.%c", deck->name, "xyz"[c]) : deck->name;
    if (offered)
        return trli_program_add_candidate(in->program, name, operand->value[c], (trl_location)operand->location[c]);
    TRL_TRY(trli_program_store(in->program, name, why, operand->value[c], (trl_location)operand->location[c],
                               entry->has_boundary ? &source : NULL, &field));
    operand->value[c] = trli_ir_field(&model->ir, field);
    if (entry->has_boundary) TRL_TRY(trli_instance_fill_field(in, field));
done:
    return err;
}

static trl_err put_at_location(trli_instance *in, const trli_entry *entry, int c, trli_operand *operand)
{
    const trl_expression_entry *deck = entry->deck;
    int wanted =
        deck->location >= 0 ? (int)trl_location_on((trl_location)deck->location, in->model->layout->grid.dim) : -1;
    if (entry->has_boundary && wanted < 0 && operand->location[c] == TRLI_ANYWHERE) wanted = TRL_CELL;
    if (wanted < 0) return TRL_OK;
    if (operand->location[c] != TRLI_ANYWHERE && operand->location[c] != wanted)
        return trl_fail(in->model->ctx, TRL_ERR_INPUT, &deck->place,
                        "expression '%s' is at %s, but its location says %s: use at(..., %s)", deck->name,
                        trl_location_name((trl_location)operand->location[c]), trl_location_name((trl_location)wanted),
                        trl_location_name((trl_location)wanted));
    operand->value[c] = trli_ir_place(&in->model->ir, operand->value[c], (trl_location)wanted);
    operand->location[c] = wanted;
    return in->model->ir.err;
}

static trl_err lower_list(trli_instance *in, int n, trl_formula *const *formula, const trl_scope *names,
                          trli_operand *operand)
{
    trl_err err = TRL_OK;
    if (n == 1) return trli_lower(in, formula[0], names, operand);
    *operand = (trli_operand){.components = n};
    for (int c = 0; c < n; ++c) {
        trli_operand part;
        TRL_TRY(trli_lower(in, formula[c], names, &part));
        if (part.components)
            return trli_text_fail(in->model->ctx, &formula[c]->text, formula[c]->root->begin, formula[c]->root->end,
                                  "a component of a vector is a scalar");
        operand->location[c] = part.location[0];
        operand->value[c] = part.value[0];
    }
done:
    return err;
}

static trl_err lower_entry(trli_instance *in, int e, trli_operand *operand)
{
    const trli_entry *entry = &in->model->entry[e];
    trl_err err = TRL_OK;
    TRL_TRY(lower_list(in, entry->nformulas, entry->formula, entry->deck->names, operand));
    int n = operand->components ? operand->components : 1;
    for (int c = 0; c < n; ++c) {
        TRL_TRY(put_at_location(in, entry, c, operand));
        TRL_TRY(store_component(in, entry, c, operand));
    }
done:
    return err;
}

static trl_err lower_initial(trli_instance *in, int v, trli_operand *operand)
{
    trli_variable *variable = &in->model->variable[v];
    trl_err err = TRL_OK;
    if (variable->direction) {
        const trli_symbol *primal = trli_symbol_find(in->model, in->model->variable[variable->of].name);
        TRL_TRY(trli_lower_symbol(in, primal, NULL, NULL, operand));
        TRL_TRY(trli_tangent(in, variable->direction, operand->value[0], &operand->value[0]));
        if (operand->value[0] < 0) operand->value[0] = trli_ir_constant(&in->model->ir, 0);
        return in->model->ir.err;
    }
    *operand = (trli_operand){.location = {variable->location, TRLI_ANYWHERE, TRLI_ANYWHERE}};
    TRL_TRY(trli_lower_at(in, variable->initial, variable->names, variable->location, &operand->value[0]));
done:
    return err;
}

/* A lowering under way, and the one that asked for it. */
typedef struct trli_under_way {
    const trli_memo *memo;
    const char *name;
    const struct trli_under_way *outer;
} trli_under_way;

/* "b -> c" of the lowerings from the one of a memo to the innermost. */
static void write_path(const trli_under_way *inner, const trli_memo *memo, char *path, size_t size)
{
    if (inner->memo != memo) write_path(inner->outer, memo, path, size);
    size_t used = strlen(path);
    snprintf(path + used, size - used, "%s -> ", inner->name);
}

/* Run a lowering once per instance; a second request while it runs is a cycle, a request after it failed fails without
 * a word. */
static trl_err remember(trli_instance *in, trli_memo *memo, int index,
                        trl_err (*lower)(trli_instance *, int, trli_operand *), const char *name,
                        const trl_place *place, trli_operand *operand)
{
    trli_model *model = in->model;
    if (memo->state == TRLI_MEMO_BUSY) {
        char path[4096] = "";
        write_path(model->under_way, memo, path, sizeof path);
        return trl_fail(model->ctx, TRL_ERR_INPUT, place, "initial values depend on each other in a cycle: %s%s", path,
                        name);
    }
    if (memo->state == TRLI_MEMO_FAILED) return TRL_ERR_INPUT;
    if (memo->state == TRLI_MEMO_EMPTY) {
        const trli_under_way here = {memo, name, model->under_way};
        memo->state = TRLI_MEMO_BUSY;
        model->under_way = &here;
        trl_err err = lower(in, index, &memo->operand);
        model->under_way = here.outer;
        memo->state = err == TRL_OK ? TRLI_MEMO_DONE : TRLI_MEMO_FAILED;
        if (err != TRL_OK) return err;
    }
    *operand = memo->operand;
    return TRL_OK;
}

/* A variable's initial value, at points: beside a side a formula would have other coordinates than the field. */
static trl_err stored_initial(trli_instance *in, const trli_symbol *symbol, trli_operand *operand)
{
    const trli_variable *v = &in->model->variable[symbol->index];
    int field;
    trl_err err = TRL_OK;
    TRL_TRY(trli_lower_symbol(in->begins, symbol, NULL, NULL, operand));
    TRL_TRY(trli_program_store(in->program, v->name, "a boundary value reads its initial value", operand->value[0],
                               v->location, NULL, &field));
    operand->value[0] = trli_ir_field(&in->model->ir, field);
    err = in->model->ir.err;
done:
    return err;
}

trl_err trli_instance_old(trli_instance *instance, trli_instance **old)
{
    *old = instance->old ? (trli_instance *)instance->old : instance;
    return instance->inline_only && instance->old ? trli_instance_sides(*old, old) : TRL_OK;
}

/* The instance that an entry is evaluated in: what is evaluated once a step belongs to the start of the step. */
static trl_err evaluation_of(trli_instance *in, const trli_entry *entry, trli_instance **evaluation)
{
    bool once =
        entry->deck->evaluate == TRL_EVALUATE_STEP || (!entry->nformulas && entry->deck->type->flags & TRL_EXPR_STATIC);
    *evaluation = in;
    return once ? trli_instance_old(in, evaluation) : TRL_OK;
}

trl_err trli_lower_symbol(trli_instance *in, const trli_symbol *symbol, const trl_text *text, const trl_ast *node,
                          trli_operand *operand)
{
    trli_model *model = in->model;
    trl_err err = TRL_OK;
    if (symbol->kind == TRLI_SYMBOL_VARIABLE) {
        const trli_variable *v = &model->variable[symbol->index];
        if (in->begins) return stored_initial(in, symbol, operand);
        if (in->initial)
            return remember(in, &in->variable_formula[symbol->index], symbol->index, lower_initial, v->name, &v->place,
                            operand);
        const int field = in->variable[symbol->index];
        *operand = (trli_operand){
            .location = {v->location, TRLI_ANYWHERE, TRLI_ANYWHERE},
            .value = {in->reads_apart ? trli_ir_field_no_cse(&model->ir, field) : trli_ir_field(&model->ir, field)}};
        return model->ir.err;
    }
    trli_entry *entry = &model->entry[symbol->index];
    TRL_TRY(evaluation_of(in, entry, &in));
    if (symbol->kind == TRLI_SYMBOL_FORMULA)
        return remember(in, &in->formula[symbol->index], symbol->index, lower_entry, entry->deck->name,
                        &entry->deck->place, operand);
    (void)text, (void)node;
    if (!in->plugin_field[symbol->index]) TRL_TRY(trli_plugin_add(in, symbol->index));
    *operand = (trli_operand){.location = {entry->computed[symbol->output].location, TRLI_ANYWHERE, TRLI_ANYWHERE},
                              .value = {trli_ir_field(&model->ir, in->plugin_field[symbol->index][symbol->output])}};
done:
    return err;
}

trl_err trli_instance_prepare(trli_instance *instance)
{
    trli_model *model = instance->model;
    trl_err err = TRL_OK;
    for (int i = 0; i < model->nentries; ++i) {
        int e = model->order[i];
        trli_operand operand;
        trli_instance *in;
        if (!model->entry[e].used || !model->entry[e].nformulas) continue;
        TRL_TRY(evaluation_of(instance, &model->entry[e], &in));
        trl_err one = remember(in, &in->formula[e], e, lower_entry, model->entry[e].deck->name,
                               &model->entry[e].deck->place, &operand);
        if (err == TRL_OK) err = one;
    }
done:
    return err;
}
