/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Values of symbols in instances: fields of variables, formulas of entries, results of plugins. */
#include <stdio.h>
#include <string.h>

#include "boundary_impl.h"
#include "lower_impl.h"
#include "memory_impl.h"
#include "plugin_step_impl.h"
#include "plugin_values_impl.h"
#include "sides_impl.h"
#include "symbols_impl.h"
#include "values_impl.h"

typedef enum trli_memo_state { TRLI_MEMO_EMPTY, TRLI_MEMO_BUSY, TRLI_MEMO_DONE, TRLI_MEMO_FAILED } trli_memo_state;

/* A value that is found once in an instance: of an entry's formula or, after all entries, of a variable's initial
 * formula. */
typedef struct trli_memo {
    trli_memo_state state;
    trli_operand operand;
    trli_operand *output; /* of an entry with a NEUTRAL type: [ncomputed], owned by the model; else NULL */
} trli_memo;

/* Why a formula's component becomes a field of its own; NULL: it does not, or (*candidate) its cost decides when its
 * readers are known. */
static const char *reason_to_store(const trli_instance *in, const trli_entry *entry, trli_ir_value value, int location,
                                   bool *candidate)
{
    const trli_model *model = in->model;
    const trli_node *n = trli_ir_node(&model->ir, value);
    *candidate = false;
    if (in->inline_only || location == TRLI_ANYWHERE) return NULL;
    if (entry->has_boundary) return "it has boundary values of its own";
    if (!n->varies || n->unplaced || n->op == TRLI_OP_FIELD) return NULL;
    if (trli_ir_reaches_far(&model->ir, value)) return trli_far_text;
    if (model->settings.fusion != TRL_FUSION_FULL) return "run.fusion is not full";
    *candidate = n->varies == (1u << model->layout->grid.dim) - 1 && n->op != TRLI_OP_SHIFT;
    return NULL;
}

/* c: component of the operand that is called `name`. */
static trl_err store_component(trli_instance *in, const trli_entry *entry, const char *name, int c,
                               trli_operand *operand)
{
    int field;
    trl_err err = TRL_OK;
    trli_model *model = in->model;
    const trl_expression_entry *deck = entry->deck;
    const trli_boundary_source source = {deck->boundary, deck->names, deck->name, deck->place};
    bool candidate;
    const char *why = reason_to_store(in, entry, operand->value[c], operand->location[c], &candidate);
    if (!why && !candidate) return TRL_OK;
    if (operand->components) name = trli_model_name(model, "%s.%c", name, "xyz"[c]);
    if (candidate)
        return trli_program_add_candidate(in->program, name, operand->value[c], (trl_location)operand->location[c]);
    if (entry->has_boundary)
        TRL_TRY(trli_boundary_set_points(in, &source, (trl_location)operand->location[c], &operand->value[c]));
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
                        trli_location_text(in->model, operand->location[c]), trli_location_text(in->model, wanted),
                        trli_location_text(in->model, wanted));
    operand->value[c] = trli_ir_place(&in->model->ir, operand->value[c], (trl_location)wanted);
    operand->location[c] = wanted;
    return in->model->ir.err;
}

static trl_err lower_list(trli_instance *in, int n, trl_formula *const *formula, const trl_scope *scope,
                          trli_operand *operand)
{
    trl_err err = TRL_OK;
    if (n == 1) return trli_lower(in, formula[0], scope, operand);
    *operand = (trli_operand){.components = n};
    for (int c = 0; c < n; ++c) {
        trli_operand part;
        TRL_TRY(trli_lower(in, formula[c], scope, &part));
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
    const trli_entry *entry = &in->model->front->entry[e];
    trl_err err = TRL_OK;
    TRL_TRY(lower_list(in, entry->nformulas, entry->formula, entry->deck->names, operand));
    int n = operand->components ? operand->components : 1;
    for (int c = 0; c < n; ++c) {
        TRL_TRY(put_at_location(in, entry, c, operand));
        TRL_TRY(store_component(in, entry, entry->deck->name, c, operand));
    }
done:
    return err;
}

/* What a NEUTRAL type computes is stored, or not, as a formula is. */
static trl_err lower_neutral(trli_instance *in, int e, trli_operand *operand)
{
    const trli_entry *entry = &in->model->front->entry[e];
    trl_err err = TRL_OK;
    trli_operand *output = trli_model_keep(in->model, (size_t)entry->ncomputed * sizeof *output);
    if (!output) return in->model->ir.err;
    TRL_TRY(trli_plugin_values(in, entry, output));
    for (int i = 0; i < entry->ncomputed; ++i)
        TRL_TRY(store_component(in, entry, entry->computed[i].tag, 0, &output[i]));
    in->memo[e].output = output;
    *operand = output[0];
done:
    return err;
}

static trl_err lower_initial(trli_instance *in, int v, trli_operand *operand)
{
    trli_variable *variable = &in->model->variable[v];
    trl_err err = TRL_OK;
    if (variable->direction) {
        const trli_symbol *primal = trli_symbol_find(in->model, in->model->variable[variable->of].name);
        TRL_TRY(trli_lower_symbol(in, primal, operand));
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

/* Run a lowering once per instance; a second request while it runs is a cycle, a request after it failed returns the
 * error without a message. */
static trl_err remember(trli_instance *in, trli_memo *memo, int index,
                        trl_err (*lower)(trli_instance *, int, trli_operand *), const char *name,
                        const trl_place *place, trli_operand *operand)
{
    trli_model *model = in->model;
    if (memo->state == TRLI_MEMO_BUSY) {
        char path[4096] = "";
        write_path(model->front->under_way, memo, path, sizeof path);
        return trl_fail(model->ctx, TRL_ERR_INPUT, place, "initial values depend on each other in a cycle: %s%s", path,
                        name);
    }
    if (memo->state == TRLI_MEMO_FAILED) return TRL_ERR_INPUT;
    if (memo->state == TRLI_MEMO_EMPTY) {
        const trli_under_way here = {memo, name, model->front->under_way};
        memo->state = TRLI_MEMO_BUSY;
        model->front->under_way = &here;
        trl_err err = lower(in, index, &memo->operand);
        model->front->under_way = here.outer;
        memo->state = err == TRL_OK ? TRLI_MEMO_DONE : TRLI_MEMO_FAILED;
        if (err != TRL_OK) return err;
    }
    *operand = memo->operand;
    return TRL_OK;
}

static trl_err need_memos(trli_instance *in)
{
    const size_t n = (size_t)in->model->front->nentries + (size_t)in->model->nvariables;
    if (!in->memo) in->memo = trli_new(in->model->ctx, n + 1, sizeof *in->memo);
    if (in->memo) return TRL_OK;
    return trli_no_memory(in->model->ctx, NULL, "for the values of %d expressions", in->model->front->nentries);
}

static trl_err entry_value(trli_instance *in, int e, trli_operand *operand)
{
    const trli_entry *entry = &in->model->front->entry[e];
    const trl_expression_entry *deck = entry->deck;
    trl_err err = need_memos(in);
    if (err != TRL_OK) return err;
    return remember(in, &in->memo[e], e, entry->neutral ? lower_neutral : lower_entry, deck->name, &deck->place,
                    operand);
}

static trl_err initial_value(trli_instance *in, int v, trli_operand *operand)
{
    const trli_variable *variable = &in->model->variable[v];
    trl_err err = need_memos(in);
    if (err != TRL_OK) return err;
    return remember(in, &in->memo[in->model->front->nentries + v], v, lower_initial, variable->name, &variable->place,
                    operand);
}

bool trli_value_is_of_entry(const trli_instance *in, int entry, trli_ir_value value)
{
    const trli_memo *memo = in->memo ? &in->memo[entry] : NULL;
    if (!memo || memo->state != TRLI_MEMO_DONE) return false;
    for (int c = 0; c < trli_operand_count(&memo->operand); ++c)
        if (memo->operand.value[c] == value) return true;
    for (int i = 0; memo->output && i < in->model->front->entry[entry].ncomputed; ++i)
        if (memo->output[i].value[0] == value) return true;
    return false;
}

/* A variable's initial value, at points: beside a side a formula would have other coordinates than the field. */
static trl_err stored_initial(trli_instance *in, const trli_symbol *symbol, trli_operand *operand)
{
    const trli_variable *v = &in->model->variable[symbol->index];
    int field;
    trl_err err = TRL_OK;
    TRL_TRY(trli_lower_symbol(in->begins, symbol, operand));
    TRL_TRY(trli_program_store(in->program, v->name, "a boundary value reads its initial value", operand->value[0],
                               v->location, NULL, &field));
    operand->value[0] = trli_ir_field(&in->model->ir, field);
    err = in->model->ir.err;
done:
    return err;
}

/* The instance that an entry is evaluated in: what no step changes has one of its own, and what is evaluated once a
 * step belongs to the start of the step. A program that runs once evaluates for itself. */
static trl_err evaluation_of(trli_instance *in, const trli_entry *entry, trli_instance **evaluation)
{
    bool once =
        entry->deck->evaluate == TRL_EVALUATE_STEP || (!entry->nformulas && entry->deck->type->flags & TRL_EXPR_STATIC);
    if (in->with_sides && entry->has_boundary) in = in->of;
    const bool stored = entry->nformulas == 0 || !in->inline_only;
    if (entry->lasting && stored && in->model->front->lasting && !in->program->once) {
        *evaluation = in->model->front->lasting;
        return TRL_OK;
    }
    *evaluation = in;
    return once ? trli_instance_old(in, evaluation) : TRL_OK;
}

trl_err trli_value_of_symbol(trli_instance *in, const trli_symbol *symbol, trli_operand *operand)
{
    trli_model *model = in->model;
    trl_err err = TRL_OK;
    if (symbol->kind == TRLI_SYMBOL_VARIABLE) {
        const trli_variable *v = &model->variable[symbol->index];
        if (in->begins) return stored_initial(in, symbol, operand);
        if (in->initial) return initial_value(in, symbol->index, operand);
        const int field = in->variable[symbol->index];
        *operand = (trli_operand){
            .location = {v->location, TRLI_ANYWHERE, TRLI_ANYWHERE},
            .value = {in->reads_no_cse ? trli_ir_field_no_cse(&model->ir, field) : trli_ir_field(&model->ir, field)}};
        return model->ir.err;
    }
    trli_entry *entry = &model->front->entry[symbol->index];
    TRL_TRY(evaluation_of(in, entry, &in));
    if (symbol->kind == TRLI_SYMBOL_FORMULA) return entry_value(in, symbol->index, operand);
    if (entry->neutral) {
        TRL_TRY(entry_value(in, symbol->index, operand));
        *operand = in->memo[symbol->index].output[symbol->output];
        return TRL_OK;
    }
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
    for (int i = 0; i < model->front->nentries; ++i) {
        int e = model->front->order[i];
        trli_operand operand;
        trli_instance *in;
        const trli_entry *entry = &model->front->entry[e];
        if (!entry->used || (!entry->nformulas && !entry->neutral)) continue;
        trl_err one = evaluation_of(instance, entry, &in);
        if (one == TRL_OK) one = entry_value(in, e, &operand); /* go on: each entry's error is news to the user */
        if (err == TRL_OK) err = one;
    }
    return err;
}
