/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Names of a model: which entry computes a tag, and what a formula refers to. */
#include <math.h>
#include <string.h>

#include "formula_impl.h"
#include "memory_impl.h"
#include "plugin_entry_impl.h"
#include "symbols_impl.h"

static trl_err add_symbol(trli_model *model, const trli_symbol *symbol)
{
    if (!trli_make_room(model->ctx, &model->front->symbol, model->front->nsymbols, 1, &model->front->symbols_capacity,
                        sizeof *model->front->symbol))
        return trli_no_memory(model->ctx, NULL, "for %d names", model->front->nsymbols + 1);
    int existing;
    trl_err err = trli_table_add(model->ctx, &model->front->names, symbol->name, model->front->nsymbols, &existing);
    if (err != TRL_OK) return err;
    if (existing >= 0) {
        const trl_place *first = &model->front->symbol[existing].place;
        return trl_fail(model->ctx, TRL_ERR_INPUT, &symbol->place, "'%s' is computed twice: first at %s:%d:%d",
                        symbol->name, first->file ? first->file : "(no file)", first->line, first->column);
    }
    model->front->symbol[model->front->nsymbols++] = *symbol;
    return TRL_OK;
}

static trl_err parse_entry(trli_model *model, trli_entry *entry)
{
    const trl_value *value = &entry->deck->formula;
    trl_err err = TRL_OK;
    entry->formula = trli_new(model->ctx, (size_t)value->count, sizeof *entry->formula);
    if (!entry->formula) return trli_no_memory(model->ctx, NULL, "for expression '%s'", entry->deck->name);
    entry->nformulas = value->count;
    for (int i = 0; i < value->count; ++i) TRL_TRY(trl_formula_parse(model->ctx, &value->text[i], &entry->formula[i]));
    if (value->list && value->count != model->layout->grid.dim)
        return trl_fail(model->ctx, TRL_ERR_INPUT, &value->place,
                        "a vector needs one component per axis of the grid: %d, not %d", model->layout->grid.dim,
                        value->count);
done:
    return err;
}

static trl_err add_entry(trli_model *model, int e)
{
    trli_entry *entry = &model->front->entry[e];
    trl_err err = TRL_OK;
    for (int s = 0; s < 6; ++s) entry->has_boundary |= entry->deck->boundary[s].npieces > 0;
    if (entry->deck->formula.count > 0) {
        TRL_TRY(parse_entry(model, entry));
        TRL_TRY(add_symbol(model, &(trli_symbol){entry->deck->name, TRLI_SYMBOL_FORMULA, e, 0, entry->deck->place}));
    } else {
        TRL_TRY(trli_entry_setup(model, entry));
        bool modifier =
            entry->deck->type->flags & TRL_EXPR_MODIFIER; /* it changes a target's field and computes no tag */
        for (int i = 0; i < entry->ncomputed && !modifier; ++i)
            TRL_TRY(add_symbol(model,
                               &(trli_symbol){entry->computed[i].tag, TRLI_SYMBOL_OUTPUT, e, i, entry->deck->place}));
    }
done:
    return err;
}

trl_err trli_symbols_build(trli_model *model)
{
    trl_err err = TRL_OK, first = TRL_OK;
    for (int v = 0; v < model->nvariables; ++v)
        TRL_TRY(add_symbol(
            model, &(trli_symbol){model->variable[v].name, TRLI_SYMBOL_VARIABLE, v, 0, model->variable[v].place}));
    for (int e = 0; e < model->front->nentries; ++e) {
        trl_err entry_err = add_entry(model, e); /* go on: each entry's error is news to the user */
        if (first == TRL_OK) first = entry_err;
    }
    err = first;
done:
    return err;
}

trl_err trli_variable_add(trli_model *model, const trli_variable *variable)
{
    trl_err err = TRL_OK;
    if (!trli_make_room(model->ctx, &model->variable, model->nvariables, 1, &model->variables_capacity,
                        sizeof *model->variable))
        return trli_no_memory(model->ctx, NULL, "for %d variables", model->nvariables + 1);
    TRL_TRY(
        add_symbol(model, &(trli_symbol){variable->name, TRLI_SYMBOL_VARIABLE, model->nvariables, 0, variable->place}));
    model->variable[model->nvariables++] = *variable;
done:
    return err;
}

const trli_symbol *trli_symbol_find(const trli_model *model, const char *name)
{
    int i = trli_table_find(&model->front->names, name);
    return i < 0 ? NULL : &model->front->symbol[i];
}

const trl_operator *trli_stencil_find(const trli_model *model, const char *name)
{
    for (int i = 0; i < model->front->nstencils; ++i)
        if (strcmp(model->front->stencil[i]->name, name) == 0) return model->front->stencil[i];
    return NULL;
}

trl_err trli_symbol_missing(trli_model *model, const trl_place *place, const char *name)
{
    const trl_scope *parameters = model->front->parameters;
    int n = model->front->nsymbols, nparameters = parameters ? parameters->n : 0;
    const char **known = trli_new(model->ctx, (size_t)(n + nparameters + 1), sizeof *known);
    if (!known) return trli_no_memory(model->ctx, NULL, "for the names of a problem");
    for (int i = 0; i < n; ++i) known[i] = model->front->symbol[i].name;
    for (int i = 0; i < nparameters; ++i) known[n + i] = parameters->name[i];
    const char *near = trl_name_nearest(name, known, n + nparameters);
    trl_err err = trl_fail(model->ctx, TRL_ERR_INPUT, place,
                           "nothing computes '%s': it is no equation, expression or parameter%s%s%s", name,
                           near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
    trli_advise_names(model->ctx, name, known, n + nparameters);
    if (trl_name_valid(name)) {
        trl_advise(model->ctx, "make it a number: `parameters: {%s: 1.0}`", name);
        trl_advise(model->ctx, "make it a formula: `expressions: {%s: \"...\"}`", name);
    }
    trli_free(known);
    return err;
}

trl_err trli_entry_resolve(trli_model *model, trli_entry *entry)
{
    for (int i = 0; i < entry->nrequired; ++i) {
        trli_advertised *r = &entry->required[i];
        char base[256];
        const char *dot = strrchr(r->tag, '.');
        const trli_symbol *symbol = trli_symbol_find(model, r->tag);
        if (!symbol && dot && dot[1] >= 'x' && dot[1] <= 'z' && !dot[2] && (size_t)(dot - r->tag) < sizeof base) {
            snprintf(base, sizeof base, "%.*s", (int)(dot - r->tag), r->tag);
            symbol = trli_symbol_find(model, base);
            r->component = dot[1] - 'x';
        }
        if (!symbol) return trli_symbol_missing(model, &entry->deck->place, r->tag);
        r->symbol = (int)(symbol - model->front->symbol);
    }
    return TRL_OK;
}

trl_err trli_family_range(trl_context *ctx, const trl_text *text, const trl_ast *node, const trl_scope *scope,
                          int64_t *operations, long *lo, long *hi)
{
    double a, b;
    int64_t own = 0;
    trl_err err = trli_ast_number(ctx, text, node->arg[0], scope, operations ? operations : &own, &a);
    if (err == TRL_OK) err = trli_ast_number(ctx, text, node->arg[1], scope, operations ? operations : &own, &b);
    if (err != TRL_OK) return err;
    if (a != floor(a) || b != floor(b) || fabs(a) > 1e9 || fabs(b) > 1e9) {
        trl_place place = trl_text_place(text, node->arg[0]->begin, node->arg[1]->end);
        return trl_fail(ctx, TRL_ERR_INPUT, &place, "the range of a family goes over whole numbers, not %g..%g", a, b);
    }
    *lo = (long)a;
    *hi = (long)b;
    return TRL_OK;
}

bool trli_decided(const trl_ast *node, const trl_scope *scope)
{
    double value;
    if (node->kind == TRL_AST_NAME) {
        if (node->nparts != 1 || node->part[0].index) return false;
        return strcmp(node->part[0].text, "pi") == 0 || trl_scope_find(scope, node->part[0].text, &value);
    }
    if (node->kind == TRL_AST_VECTOR || node->kind == TRL_AST_COMPONENT || node->kind == TRL_AST_FAMILY) return false;
    if (node->kind == TRL_AST_CALL && !trl_function_find(node->part[0].text)) return false;
    for (int i = 0; i < node->nargs; ++i)
        if (!trli_decided(node->arg[i], scope)) return false;
    return true;
}

typedef struct visitor {
    trli_model *model;
    const trl_text *text;
    trli_visit visit;
    void *data;
    int64_t *expanded;
    const trl_ast *family; /* the outermost sum or product around what is visited */
} visitor;

static trl_err visit_node(visitor *v, const trl_ast *node, const trl_scope *scope);

static trl_err visit_name(visitor *v, const trl_ast *node, const trl_scope *scope)
{
    char name[256], component[272];
    double value;
    trl_err err = trl_name_expand(v->model->ctx, v->text, node, scope, name, sizeof name);
    if (err != TRL_OK) return err;
    if (trl_scope_find(scope, name, &value)) return TRL_OK;
    if (trli_symbol_find(v->model, name)) return v->visit(v->data, v->text, node, name);
    for (int a = 0; a < v->model->layout->grid.dim; ++a) { /* a vector that a plugin entry computes by components */
        snprintf(component, sizeof component, "%s.%c", name, "xyz"[a]);
        if (trli_symbol_find(v->model, component)) err = v->visit(v->data, v->text, node, component);
        if (err != TRL_OK) return err;
    }
    return TRL_OK;
}

static trl_err fail_expansion(const visitor *v)
{
    return trli_text_fail(v->model->ctx, v->text, v->family->begin, v->family->end,
                          "the sums and products of a deck may expand to %d names, numbers and operations in all, "
                          "and here they expand to more; use shorter ranges",
                          (int)TRLI_EXPANSION_MAX);
}

static trl_err visit_family(visitor *v, const trl_ast *node, const trl_scope *scope)
{
    long lo, hi;
    double value;
    trl_err err = trli_family_range(v->model->ctx, v->text, node, scope, v->expanded, &lo, &hi);
    const char *const index = node->part[0].text;
    const trl_scope inner = {.n = 1, .name = &index, .value = &value, .outer = scope};
    const trl_ast *outer = v->family;
    if (!outer) v->family = node;
    if (err == TRL_OK && hi - lo >= TRLI_EXPANSION_MAX - *v->expanded) err = fail_expansion(v);
    for (long i = lo; err == TRL_OK && i <= hi; ++i) {
        value = (double)i;
        err = visit_node(v, node->arg[2], &inner);
    }
    v->family = outer;
    return err;
}

static trl_err visit_node(visitor *v, const trl_ast *node, const trl_scope *scope)
{
    trl_err err = TRL_OK;
    if (v->family && ++*v->expanded > TRLI_EXPANSION_MAX) return fail_expansion(v);
    if (node->kind == TRL_AST_NAME) return visit_name(v, node, scope);
    if (node->kind == TRL_AST_FAMILY) return visit_family(v, node, scope);
    if (node->kind == TRL_AST_CALL && strcmp(node->part[0].text, "if") == 0 && node->nargs == 3 &&
        trli_decided(node->arg[0], scope)) {
        double c;
        err = trl_ast_number(v->model->ctx, v->text, node->arg[0], scope, &c);
        return err == TRL_OK ? visit_node(v, node->arg[c != 0 ? 1 : 2], scope) : err;
    }
    for (int i = 0; err == TRL_OK && i < node->nargs; ++i) err = visit_node(v, node->arg[i], scope);
    return err;
}

trl_err trli_visit_symbols(trli_model *model, const trl_formula *formula, const trl_scope *scope, trli_visit visit,
                           void *data)
{
    visitor v = {
        .model = model, .text = &formula->text, .visit = visit, .data = data, .expanded = &model->front->expanded};
    return visit_node(&v, formula->root, scope);
}

trl_err trli_visit_again(trli_model *model, const trl_formula *formula, const trl_scope *scope, trli_visit visit,
                         void *data)
{
    int64_t expanded = 0;
    visitor v = {.model = model, .text = &formula->text, .visit = visit, .data = data, .expanded = &expanded};
    return visit_node(&v, formula->root, scope);
}
