/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The expression tree: which entry depends on which, in what order they can be computed, and what is used at all. */
#include <string.h>

#include <trl_formula_operators.h>

#include "formula_impl.h"
#include "memory_impl.h"
#include "symbols_impl.h"
#include "tree_impl.h"

static trl_err add_dependency(void *data, const trl_text *text, const trl_ast *node, const char *name)
{
    trli_model *model = data;
    const trli_symbol *symbol = trli_symbol_find(model, name);
    (void)text, (void)node;
    if (symbol->kind == TRLI_SYMBOL_VARIABLE) return TRL_OK;
    if (!trli_make_room(model->ctx, &model->front->dep, model->front->ndeps, 1, &model->front->deps_capacity,
                        sizeof *model->front->dep))
        return trli_no_memory(model->ctx, NULL, "for %d dependencies", model->front->ndeps + 1);
    model->front->dep[model->front->ndeps++] = symbol->index;
    return TRL_OK;
}

static trl_err collect_entry(trli_model *model, int e)
{
    trli_entry *entry = &model->front->entry[e];
    trl_err err = TRL_OK;
    for (int i = 0; i < entry->nformulas; ++i)
        TRL_TRY(trli_visit_symbols(model, entry->formula[i], entry->deck->names, add_dependency, model));
    TRL_TRY(trli_entry_resolve(model, entry));
    for (int i = 0; i < entry->nrequired; ++i)
        TRL_TRY(add_dependency(model, NULL, NULL, model->front->symbol[entry->required[i].symbol].name));
done:
    return err;
}

static trl_err collect_dependencies(trli_model *model)
{
    trl_err first = TRL_OK;
    model->front->dep_start = trli_new(model->ctx, (size_t)model->front->nentries + 1, sizeof *model->front->dep_start);
    if (!model->front->dep_start) return trli_no_memory(model->ctx, NULL, "for %d entries", model->front->nentries);
    for (int e = 0; e < model->front->nentries; ++e) {
        trl_err err = collect_entry(model, e);
        if (first == TRL_OK) first = err;
        model->front->dep_start[e + 1] = model->front->ndeps;
    }
    return first;
}

enum { NEW, OPEN, CLOSED };

/* The entries on the stack from `e` to the top are the cycle. */
static trl_err report_cycle(trli_model *model, const int *stack, int depth, int e)
{
    char path[4096];
    size_t used = 0;
    int from = 0;
    while (stack[from] != e) ++from;
    for (int i = from; i <= depth; ++i) {
        const char *name = model->front->entry[i < depth ? stack[i] : e].deck->name;
        int n = snprintf(path + used, sizeof path - used, "%s%s", i > from ? " -> " : "", name);
        used += (size_t)n;
        if (used > sizeof path - 300 && i < depth - 1) {
            used += (size_t)snprintf(path + used, sizeof path - used, " -> (%d more)", depth - 1 - i);
            i = depth - 1;
        }
    }
    return trl_fail(model->ctx, TRL_ERR_INPUT, &model->front->entry[e].deck->place,
                    "expressions depend on each other in a cycle: %s", path);
}

static void spread_noise(trli_model *model);

trl_err trli_tree_order(trli_model *model)
{
    trl_err err = TRL_OK;
    int n = model->front->nentries, ordered = 0;
    char *state = trli_new(model->ctx, (size_t)n + 1, 1);
    int *stack = trli_new(model->ctx, (size_t)n + 1, sizeof *stack),
        *next = trli_new(model->ctx, (size_t)n + 1, sizeof *next);
    model->front->order = trli_new(model->ctx, (size_t)n + 1, sizeof *model->front->order);
    if (!state || !stack || !next || !model->front->order) {
        err = trli_no_memory(model->ctx, NULL, "to order %d entries", n);
        goto done;
    }
    TRL_TRY(collect_dependencies(model));
    for (int root = 0; root < n; ++root) {
        if (state[root] != NEW) continue;
        int depth = 0;
        stack[depth++] = root;
        state[root] = OPEN;
        next[root] = model->front->dep_start[root];
        while (depth > 0) {
            int e = stack[depth - 1];
            if (next[e] == model->front->dep_start[e + 1]) {
                state[e] = CLOSED;
                model->front->order[ordered++] = e;
                --depth;
                continue;
            }
            int d = model->front->dep[next[e]++];
            if (state[d] == OPEN) {
                err = report_cycle(model, stack, depth, d);
                goto done;
            }
            if (state[d] == CLOSED) continue;
            state[d] = OPEN;
            next[d] = model->front->dep_start[d];
            stack[depth++] = d;
        }
    }
    spread_noise(model);
done:
    trli_free(state);
    trli_free(stack);
    trli_free(next);
    return err;
}

static trl_err mark(void *data, const trl_text *text, const trl_ast *node, const char *name)
{
    trli_model *model = data;
    const trli_symbol *symbol = trli_symbol_find(model, name);
    (void)text, (void)node;
    if (symbol->kind != TRLI_SYMBOL_VARIABLE) model->front->entry[symbol->index].used = true;
    return TRL_OK;
}

trl_err trli_tree_mark_used(trli_model *model, const trl_formula *formula, const trl_scope *scope)
{
    return trli_visit_symbols(model, formula, scope, mark, model);
}

void trli_tree_spread_used(trli_model *model)
{
    for (int i = model->front->nentries - 1; i >= 0; --i) {
        int e = model->front->order[i];
        if (!model->front->entry[e].used) continue;
        for (int d = model->front->dep_start[e]; d < model->front->dep_start[e + 1]; ++d)
            model->front->entry[model->front->dep[d]].used = true;
    }
}

/* The first call of noise in a tree, or NULL. */
static const trl_ast *find_noise(const trl_ast *node)
{
    const trl_ast *found = NULL;
    if (node->kind == TRL_AST_CALL) {
        const trl_formula_operator *op = trl_formula_operator_find(node->part[0].text);
        if (op && op->id == TRL_FORMULA_NOISE) return node;
    }
    for (int i = 0; i < node->nargs && !found; ++i) found = find_noise(node->arg[i]);
    return found;
}

/* Whether a tree names dt, old(f) or noise. */
static bool names_step(const trl_ast *node)
{
    bool found = node->kind == TRL_AST_NAME && node->nparts == 1 && strcmp(node->part[0].text, "dt") == 0;
    if (node->kind == TRL_AST_CALL)
        found |= strcmp(node->part[0].text, "old") == 0 || strcmp(node->part[0].text, "noise") == 0;
    for (int i = 0; i < node->nargs && !found; ++i) found = names_step(node->arg[i]);
    return found;
}

/* Stops the visit at a variable. */
static trl_err look_for_variable(void *data, const trl_text *text, const trl_ast *node, const char *name)
{
    (void)text, (void)node;
    return trli_symbol_find(data, name)->kind == TRLI_SYMBOL_VARIABLE ? TRL_ERR_USAGE : TRL_OK;
}

/* Which entries are noisy, depend on the step, and are given; all are ordered. */
static void spread_noise(trli_model *model)
{
    trli_front *front = model->front;
    for (int i = 0; i < front->nentries; ++i) {
        const int e = front->order[i];
        trli_entry *entry = &front->entry[e];
        entry->reads_step = entry->nformulas == 0 || entry->deck->evaluate == TRL_EVALUATE_STEP;
        entry->given = !entry->has_boundary;
        for (int c = 0; c < entry->nformulas; ++c) {
            entry->given &=
                trli_visit_again(model, entry->formula[c], entry->deck->names, look_for_variable, model) == TRL_OK;
            entry->noisy |= find_noise(entry->formula[c]->root) != NULL;
            entry->reads_step |= names_step(entry->formula[c]->root);
        }
        for (int d = front->dep_start[e]; d < front->dep_start[e + 1]; ++d) {
            entry->noisy |= front->entry[front->dep[d]].noisy;
            entry->reads_step |= front->entry[front->dep[d]].reads_step;
            entry->given &= front->entry[front->dep[d]].given;
        }
        entry->given &= !entry->reads_step;
    }
}

typedef struct noise_search {
    trli_model *model;
    const char *what;
} noise_search;

static trl_err refuse_noise(const noise_search *s, const trl_text *text, const trl_ast *node, const char *name)
{
    return trli_text_fail(s->model->ctx, text, node->begin, node->end,
                          "%s%s%snoise(seed) is new in each step and belongs to `ddt`, and this is %s: random(seed) is "
                          "the same in all steps",
                          name ? "'" : "", name ? name : "", name ? "' contains noise: " : "", s->what);
}

static trl_err refuse_noisy(void *data, const trl_text *text, const trl_ast *node, const char *name)
{
    const noise_search *s = data;
    const trli_symbol *symbol = trli_symbol_find(s->model, name);
    if (symbol->kind == TRLI_SYMBOL_VARIABLE || !s->model->front->entry[symbol->index].noisy) return TRL_OK;
    return refuse_noise(s, text, node, name);
}

trl_err trli_tree_refuse_noise(trli_model *model, const trl_formula *formula, const trl_scope *scope, const char *what)
{
    noise_search s = {model, what};
    const trl_ast *noise = find_noise(formula->root);
    if (noise) return refuse_noise(&s, &formula->text, noise, NULL);
    return trli_visit_again(model, formula, scope, refuse_noisy, &s);
}

/* Stops the visit at an entry that reads the step. */
static trl_err look_for_step(void *data, const trl_text *text, const trl_ast *node, const char *name)
{
    const trli_model *model = data;
    const trli_symbol *symbol = trli_symbol_find(model, name);
    (void)text, (void)node;
    const bool entry = symbol->kind != TRLI_SYMBOL_VARIABLE;
    return entry && model->front->entry[symbol->index].reads_step ? TRL_ERR_USAGE : TRL_OK;
}

bool trli_tree_reads_step(trli_model *model, const trl_formula *formula, const trl_scope *scope)
{
    return names_step(formula->root) || trli_visit_again(model, formula, scope, look_for_step, model) != TRL_OK;
}

/* Stops the visit at what is not given. */
static trl_err look_for_others(void *data, const trl_text *text, const trl_ast *node, const char *name)
{
    const trli_model *model = data;
    const trli_symbol *symbol = trli_symbol_find(model, name);
    (void)text, (void)node;
    const bool entry = symbol->kind != TRLI_SYMBOL_VARIABLE;
    return entry && model->front->entry[symbol->index].given ? TRL_OK : TRL_ERR_USAGE;
}

bool trli_tree_is_given(trli_model *model, const trl_formula *formula, const trl_scope *scope)
{
    return !names_step(formula->root) && trli_visit_again(model, formula, scope, look_for_others, model) == TRL_OK;
}

typedef struct dot_edge {
    const trli_model *model;
    FILE *out;
    const char *from;
} dot_edge;

static trl_err write_edge(void *data, const trl_text *text, const trl_ast *node, const char *name)
{
    dot_edge *e = data;
    (void)text, (void)node;
    fprintf(e->out, "  \"%s\" -> \"%s\";\n", e->from, name);
    return TRL_OK;
}

trl_err trli_tree_write_dot(const trli_model *model, FILE *out)
{
    trl_err err = TRL_OK;
    fprintf(out, "digraph dependencies {\n  rankdir=LR;\n  node [fontname=\"Helvetica\"];\n");
    for (int v = 0; v < model->nvariables; ++v) {
        const trli_variable *variable = &model->variable[v];
        dot_edge edge = {model, out, variable->name};
        fprintf(out, "  \"%s\" [shape=box, style=bold];\n", variable->name);
        if (variable->direction)
            fprintf(out, "  \"%s\" -> \"%s\" [style=dashed];\n", variable->name, model->variable[variable->of].name);
        else if (err == TRL_OK)
            if (variable->ddt)
                err = trli_visit_again((trli_model *)model, variable->ddt, variable->names, write_edge, &edge);
    }
    for (int e = 0; e < model->front->nentries; ++e) {
        const trli_entry *entry = &model->front->entry[e];
        dot_edge edge = {model, out, entry->deck->name};
        fprintf(out, "  \"%s\" [shape=%s%s];\n", entry->deck->name, entry->nformulas ? "ellipse" : "hexagon",
                entry->used ? "" : ", style=dotted");
        for (int i = 0; i < entry->nformulas && err == TRL_OK; ++i)
            err = trli_visit_again((trli_model *)model, entry->formula[i], entry->deck->names, write_edge, &edge);
        for (int i = 0; i < entry->nrequired; ++i)
            fprintf(out, "  \"%s\" -> \"%s\";\n", entry->deck->name, entry->required[i].tag);
        for (int i = 0; i < entry->ncomputed; ++i)
            if (strcmp(entry->computed[i].tag, entry->deck->name) != 0)
                fprintf(out, "  \"%s\" -> \"%s\" [dir=back, style=dashed];\n", entry->computed[i].tag,
                        entry->deck->name);
    }
    fprintf(out, "}\n");
    if (ferror(out)) err = trl_fail(model->ctx, TRL_ERR_IO, NULL, "cannot write the dependency graph");
    return err;
}
