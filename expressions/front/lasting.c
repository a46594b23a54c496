/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Which entries change in time, and the program that evaluates once those that do not and are stored in any case: with
 * a type, or with boundary values of their own. */
#include <string.h>

#include <trl_formula_operators.h>

#include "formula_impl.h"
#include "lasting_impl.h"
#include "plugin_step_impl.h"
#include "symbols_impl.h"

/* Whether a tree names the time, or calls what belongs to a step or to all points. */
static bool names_time(const trl_ast *node)
{
    bool found = node->kind == TRL_AST_NAME && node->nparts == 1 &&
                 (strcmp(node->part[0].text, "t") == 0 || strcmp(node->part[0].text, "dt") == 0);
    const trl_formula_operator *op = node->kind == TRL_AST_CALL ? trl_formula_operator_find(node->part[0].text) : NULL;
    if (op) switch (op->id) {
        case TRL_FORMULA_OLD:
        case TRL_FORMULA_DDT:
        case TRL_FORMULA_NOISE:
        case TRL_FORMULA_INTEGRAL:
        case TRL_FORMULA_NORM:
        case TRL_FORMULA_DOMAIN_MAX:
        case TRL_FORMULA_DOMAIN_MIN:
        case TRL_FORMULA_PROBE:
            return true;
        default:
            break;
        }
    for (int i = 0; i < node->nargs && !found; ++i) found = names_time(node->arg[i]);
    return found;
}

static bool symbol_changes(const trli_model *model, const trli_symbol *symbol)
{
    return symbol->kind == TRLI_SYMBOL_VARIABLE || model->front->entry[symbol->index].changes;
}

/* Stops the visit at a symbol that changes. */
static trl_err look_for_change(void *data, const trl_text *text, const trl_ast *node, const char *name)
{
    const trli_model *model = data;
    (void)text, (void)node;
    return symbol_changes(model, trli_symbol_find(model, name)) ? TRL_ERR_USAGE : TRL_OK;
}

static bool formula_changes(trli_model *model, const trl_formula *formula, const trl_scope *names)
{
    return names_time(formula->root) || trli_visit_again(model, formula, names, look_for_change, model) != TRL_OK;
}

static trl_err text_changes(trli_model *model, const trl_text *text, const trl_scope *names, bool *any)
{
    trl_formula *formula = NULL;
    trl_err err = TRL_OK;
    if (*any || !text->chars) return TRL_OK;
    TRL_TRY(trl_formula_parse(model->ctx, text, &formula));
    *any = formula_changes(model, formula, names);
done:
    trl_formula_destroy(&formula);
    return err;
}

static trl_err boundary_changes(trli_model *model, const trl_bc_side sides[6], const trl_scope *names, bool *any)
{
    trl_err err = TRL_OK;
    for (int s = 0; s < 6; ++s)
        for (int i = 0; i < sides[s].npieces; ++i) {
            const trl_bc_piece *p = &sides[s].piece[i];
            const trl_value *const value[] = {&p->value, &p->b, &p->c};
            *any |= p->expression != NULL;
            TRL_TRY(text_changes(model, &p->where, names, any));
            for (int k = 0; k < 3; ++k)
                for (int c = 0; c < value[k]->count; ++c) TRL_TRY(text_changes(model, &value[k]->text[c], names, any));
        }
done:
    return err;
}

static trl_err find_entry(trli_model *model, trli_entry *entry)
{
    const trl_expression_entry *deck = entry->deck;
    trl_err err = TRL_OK;
    for (int c = 0; c < entry->nformulas; ++c) entry->changes |= formula_changes(model, entry->formula[c], deck->names);
    if (!entry->nformulas) entry->changes |= !(deck->type->flags & TRL_EXPR_STATIC);
    for (int i = 0; i < entry->nrequired; ++i)
        entry->changes |= symbol_changes(model, &model->front->symbol[entry->required[i].symbol]);
    if (entry->has_boundary && !entry->changes)
        TRL_TRY(boundary_changes(model, deck->boundary, deck->names, &entry->changes));
    entry->lasting = !entry->changes && (entry->nformulas ? entry->has_boundary
                                                          : entry->opaque && !(deck->type->flags & TRL_EXPR_MODIFIER));
done:
    return err;
}

trl_err trli_lasting_find(trli_model *model)
{
    trli_front *front = model->front;
    trl_err err = TRL_OK;
    for (int i = 0; i < front->nentries; ++i) TRL_TRY(find_entry(model, &front->entry[front->order[i]]));
done:
    return err;
}

/* What depends on a parameter has a derivative by it, which is found where it is evaluated. */
static bool may_last(const trli_model *model, const trli_entry *entry)
{
    bool parameters = false;
    for (int d = 0; d < model->ndirections; ++d) parameters |= model->direction[d].scalar >= 0;
    return entry->used && entry->lasting && !(parameters && (entry->nrequired > 0 || entry->has_boundary));
}

static void keep_field(trli_model *model, int field)
{
    model->field[field].persistent = model->field[field].lasting = true;
}

static trl_err add_formula(trli_instance *in, const trli_entry *entry)
{
    trli_operand operand;
    const trl_err err = trli_lower_symbol(in, trli_symbol_find(in->model, entry->deck->name), &operand);
    for (int c = 0; err == TRL_OK && c < trli_operand_count(&operand); ++c)
        keep_field(in->model, trli_ir_node(&in->model->ir, operand.value[c])->index);
    return err;
}

static trl_err add_type(trli_instance *in, int e)
{
    const trli_entry *entry = &in->model->front->entry[e];
    const trl_err err = trli_plugin_add(in, e);
    in->model->lasting->once &=
        !entry->opaque->cuda[TRLI_FORM_EVALUATE]; /* what runs one time has no kernels of GPUs */
    for (int c = 0; err == TRL_OK && c < entry->ncomputed; ++c) keep_field(in->model, in->plugin_field[e][c]);
    return err;
}

/* All at once, before the fields of other programs. */
static trl_err add_entries(trli_instance *in)
{
    const trli_front *front = in->model->front;
    trl_err first = TRL_OK;
    for (int i = 0; i < front->nentries; ++i) {
        const int e = front->order[i];
        const trli_entry *entry = &front->entry[e];
        if (!entry->lasting) continue;
        const trl_err err = entry->nformulas ? add_formula(in, entry) : add_type(in, e);
        if (first == TRL_OK) first = err;
    }
    return first;
}

trl_err trli_lasting_begin(trli_model *model, trli_instance **instance)
{
    trli_front *front = model->front;
    bool any = false;
    trl_err err = TRL_OK;
    *instance = NULL;
    model->may_last = true;
    for (int e = 0; e < front->nentries; ++e) any |= front->entry[e].lasting = may_last(model, &front->entry[e]);
    if (!any) return TRL_OK;
    TRL_TRY(trli_program_create(model, TRLI_LASTING_PROGRAM, &model->lasting));
    model->lasting->once = true;
    TRL_TRY(trli_instance_create(model, model->lasting, TRLI_SCALAR_STEP_TIME, 0, NULL, instance));
    front->lasting = *instance;
    err = add_entries(*instance);
done:
    return err;
}

void trli_lasting_end(trli_model *model, trli_instance **instance)
{
    if (model) model->front->lasting = NULL;
    trli_instance_destroy(instance);
}
