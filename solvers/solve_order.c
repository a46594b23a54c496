/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Which equations without a time derivative need each other, and in which order they are solved. */
#include <string.h>

#include "lower_impl.h"
#include "memory_impl.h"
#include "solving_impl.h"
#include "spectrum_impl.h"
#include "symbols_impl.h"

typedef struct needs {
    trl_simulation *sim;
    bool *of;   /* [equations] that the present one needs */
    bool *seen; /* [entries] */
} needs;

static trl_err visit(void *data, const trl_text *text, const trl_ast *node, const char *name);

static trl_err read_symbol(needs *n, const trli_symbol *symbol)
{
    trli_model *model = n->sim->model;
    trl_err err = TRL_OK;
    if (!symbol) return TRL_OK;
    if (symbol->kind == TRLI_SYMBOL_VARIABLE) {
        if (symbol->index < n->sim->nequations) n->of[symbol->index] = true;
        return TRL_OK;
    }
    const trli_entry *entry = &model->front->entry[symbol->index];
    if (n->seen[symbol->index]) return TRL_OK;
    n->seen[symbol->index] = true;
    for (int i = 0; i < entry->nformulas; ++i)
        TRL_TRY(trli_visit_again(model, entry->formula[i], entry->deck->names, visit, n));
    for (int i = 0; i < entry->nrequired; ++i)
        TRL_TRY(read_symbol(n, &model->front->symbol[entry->required[i].symbol]));
done:
    return err;
}

static trl_err visit(void *data, const trl_text *text, const trl_ast *node, const char *name)
{
    needs *n = data;
    (void)text, (void)node;
    return read_symbol(n, trli_symbol_find(n->sim->model, name));
}

static trl_err read_value(needs *n, const trl_value *value, const trl_scope *names)
{
    trl_err err = TRL_OK;
    for (int i = 0; i < value->count && err == TRL_OK; ++i) {
        trl_formula *f;
        err = trli_formula_of(n->sim, &value->text[i], &f);
        if (err == TRL_OK) err = trli_visit_again(n->sim->model, f, names, visit, n);
        trl_formula_destroy(&f);
    }
    return err;
}

/* What an equation's formulas and conditions need. */
static trl_err find_needs(needs *n, int v)
{
    const trli_equation *eq = &n->sim->equation[v];
    trl_err err = TRL_OK;
    memset(n->of, 0, (size_t)n->sim->nequations);
    memset(n->seen, 0, (size_t)n->sim->model->front->nentries);
    const trl_formula *const formula[] = {eq->solve, eq->equals, eq->implicit};
    for (size_t i = 0; i < sizeof formula / sizeof *formula; ++i)
        if (formula[i]) TRL_TRY(trli_visit_again(n->sim->model, formula[i], eq->deck->names, visit, n));
    for (int side = 0; side < 6; ++side)
        for (int i = 0; i < eq->deck->boundary[side].npieces; ++i) {
            const trl_bc_piece *p = &eq->deck->boundary[side].piece[i];
            TRL_TRY(read_value(n, &p->value, eq->deck->names));
            TRL_TRY(read_value(n, &p->b, eq->deck->names));
            TRL_TRY(read_value(n, &p->c, eq->deck->names));
            if (p->expression) TRL_TRY(read_symbol(n, trli_symbol_find(n->sim->model, p->expression)));
        }
    const int pressure = trli_flow_pressure(n->sim);
    for (int w = 0; w < n->sim->nequations && v != pressure && eq->solve; ++w)
        if (n->of[w] && trli_flow_has(n->sim, w)) n->of[pressure] = true; /* velocities are free of divergence first */
done:
    return err;
}

/* Velocities get the pressure's gradient after their stage, and nothing of the pressure before. */
static trl_err check_velocities(needs *n)
{
    const trl_simulation *sim = n->sim;
    trl_err err = TRL_OK;
    for (int v = 0; v < sim->nequations; ++v) {
        const trl_equation_entry *deck = sim->equation[v].deck;
        if (!trli_flow_has(sim, v)) continue;
        memset(n->of, 0, (size_t)sim->nequations);
        memset(n->seen, 0, (size_t)sim->model->front->nentries);
        TRL_TRY(trli_visit_again(sim->model, sim->equation[v].ddt, deck->names, visit, n));
        if (sim->equation[v].implicit)
            TRL_TRY(trli_visit_again(sim->model, sim->equation[v].implicit, deck->names, visit, n));
        if (!n->of[trli_flow_pressure(sim)]) continue;
        return trl_fail(sim->ctx, TRL_ERR_INPUT, &deck->ddt.text->place,
                        "'ddt' of '%s' needs the pressure '%s', whose gradient it gets by itself after each stage: "
                        "leave it out",
                        deck->name, sim->equation[trli_flow_pressure(sim)].deck->name);
    }
done:
    return err;
}

/* Implicit terms, and conditions of their unknowns, that read what is solved for would make one system of both. */
static trl_err refuse_coupled(const trl_simulation *sim, const needs *n, int v)
{
    const trli_equation *eq = &sim->equation[v];
    for (int w = 0; w < sim->nequations; ++w)
        if (n->of[w] && sim->equation[w].solve)
            return trl_fail(
                sim->ctx, TRL_ERR_INPUT, &eq->implicit->text.place,
                "the implicit terms of '%s', or conditions on its sides, need '%s', which is solved for "
                "after them: let only explicit terms need it, by `ddt: {explicit: ..., implicit: ...}` with "
                "beuler, ark3 or ark4%s",
                eq->deck->name, sim->equation[w].deck->name,
                sim->problem->incompressible.n ? "" : ", or use bdf, whose steps take both at once");
    return TRL_OK;
}

trl_err trli_solving_order(trl_simulation *sim, int *component, int *count)
{
    const size_t n = (size_t)sim->nequations;
    int *first = trli_new(sim->ctx, n + 1, sizeof *first), *column = trli_new(sim->ctx, n * n + 1, sizeof *column);
    needs search = {.sim = sim,
                    .of = trli_new(sim->ctx, n + 1, sizeof *search.of),
                    .seen = trli_new(sim->ctx, (size_t)sim->model->front->nentries + 1, sizeof *search.seen)};
    trl_err err = TRL_OK;
    if (!first || !column || !search.of || !search.seen) TRL_TRY(trli_no_memory(sim->ctx, NULL, "to order equations"));
    TRL_TRY(check_velocities(&search));
    for (int v = 0; v < sim->nequations; ++v) {
        first[v + 1] = first[v];
        if (!sim->equation[v].solve && !sim->equation[v].implicit) continue;
        TRL_TRY(find_needs(&search, v));
        if (sim->equation[v].implicit && !sim->integrator->multistep) TRL_TRY(refuse_coupled(sim, &search, v));
        for (int w = 0; w < sim->nequations; ++w)
            if (search.of[w] && sim->equation[w].solve && sim->equation[v].solve) column[first[v + 1]++] = w;
    }
    const trli_pattern pattern = {sim->nequations, first, column};
    *count = trli_components(sim->ctx, &pattern, component);
    if (*count < 0) err = trli_no_memory(sim->ctx, NULL, "to order equations");
done:
    trli_free(first);
    trli_free(column);
    trli_free(search.of);
    trli_free(search.seen);
    return err;
}
