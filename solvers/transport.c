/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The search for advection and diffusion of its own unknown f in the text of an equation: div of products of grad(f)
 * and advective_flux(f, u), laplacian(f), through sums, factors in front and named expressions. What it finds it marks;
 * the Jacobian (jacobian.c) bounds the rest. */
#include <string.h>

#include "limit_impl.h"
#include "memory_impl.h"
#include "operators_impl.h"
#include "symbols_impl.h"

/* What multiplies a term: factors seen on the way down, each lowered to a value. */
typedef struct factors {
    const trli_operand *operand; /* NULL: end of the chain */
    bool divides;
    const struct factors *next;
} factors;

typedef struct search {
    trl_simulation *sim;
    trli_instance *in;
    trl_location location; /* of the equation */
    int equation;
    trli_transport_list *list;
    const bool *entry_differentiates;
    trli_marks *marks; /* parts of formulas that are found, NULL while entries are looked through */
    bool others;       /* there are terms beside those that are found */
    bool mark_others;  /* those that differentiate are marked, too */
    int depth;         /* of named expressions that lead here */
    int scanned;       /* parts of formulas looked at, each as often as names lead to it */
} search;

/* An expression that names another one twice, which does so too, and so on, has more terms than can be looked at. */
enum { SCANNED_MAX = 100000 };

/* A formula being read, with the names it sees. */
typedef struct reader {
    search *s;
    trli_lowering lw;
    const trl_scope *names;
    const trl_ast *term; /* the summand being scanned */
} reader;

static reader read_formula(search *s, const trl_formula *formula, const trl_scope *names)
{
    trli_model *model = s->sim->model;
    return (reader){
        s,
        {.instance = s->in, .model = model, .ir = &model->ir, .text = &formula->text, .dim = model->layout->grid.dim},
        names,
        formula->root};
}

static bool is_call(const trl_ast *node, const char *name)
{
    return node->kind == TRL_AST_CALL && strcmp(node->part[0].text, name) == 0;
}

/* The term is left to the Jacobian. */
static trl_err give_up(reader *r, const trl_ast *node)
{
    trli_transport_list *list = r->s->list;
    r->s->others = true;
    if (!list->text[0])
        snprintf(list->text, sizeof list->text, "%.*s", node->end - node->begin, r->lw.text->chars + node->begin);
    return r->s->mark_others ? trli_marks_add(r->lw.model, r->s->marks, r->term) : TRL_OK;
}

/* There is no end of terms: no bound of them all can be had, and a warning does without the rest. */
static trl_err fail_many(const reader *r, const trl_ast *node)
{
    if (r->s->sim->problem->time.cfl <= 0) return TRL_OK;
    return trli_lower_fail(&r->lw, node,
                           "cfl cannot bound more than %d terms that named expressions multiply: use a fixed dt",
                           (int)SCANNED_MAX);
}

static const trli_symbol *symbol_of(reader *r, const trl_ast *node)
{
    char name[256];
    double number;
    if (node->kind != TRL_AST_NAME) return NULL;
    if (trl_name_expand(r->lw.model->ctx, r->lw.text, node, r->names, name, sizeof name) != TRL_OK) return NULL;
    return trl_scope_find(r->names, name, &number) ? NULL : trli_symbol_find(r->lw.model, name);
}

/* Whether a node names the unknown of the equation. */
static bool is_own(reader *r, const trl_ast *node)
{
    const trli_symbol *s = symbol_of(r, node);
    return s && s->kind == TRLI_SYMBOL_VARIABLE && s->index == r->s->equation;
}

static bool differentiates(reader *r, const trl_ast *node);

static bool member_differentiates(reader *r, const trl_ast *node)
{
    long lo, hi;
    double value;
    const char *const index = node->part[0].text;
    const trl_scope names = {.n = 1, .name = &index, .value = &value, .outer = r->names};
    reader below = *r;
    bool found = false;
    if (trli_family_range(r->lw.model->ctx, r->lw.text, node, r->names, NULL, &lo, &hi) != TRL_OK) return false;
    below.names = &names;
    for (long i = lo; i <= hi && !found; ++i) {
        value = (double)i;
        found = differentiates(&below, node->arg[2]);
    }
    return found;
}

/* Whether a part of a formula differentiates something, directly or in an expression it names. */
static bool differentiates(reader *r, const trl_ast *node)
{
    if (node->kind == TRL_AST_FAMILY) return member_differentiates(r, node);
    static const char *const operators[] = {
        "grad", "div",  "laplacian", "curl",           "ddx",   "ddy",  "ddz",         "d2dx",  "d2dy",
        "d2dz", "left", "right",     "advective_flux", "grad4", "div4", "extrapolate", "strain"};
    for (size_t i = 0; i < sizeof operators / sizeof *operators; ++i)
        if (is_call(node, operators[i])) return true;
    if (node->kind == TRL_AST_CALL && trli_stencil_find(r->lw.model, node->part[0].text)) return true;
    const trli_symbol *symbol = symbol_of(r, node);
    if (symbol && symbol->kind == TRLI_SYMBOL_FORMULA) return r->s->entry_differentiates[symbol->index];
    for (int i = 0; node->kind != TRL_AST_NAME && i < node->nargs; ++i)
        if (differentiates(r, node->arg[i])) return true;
    return false;
}

static trl_err add_term(reader *r, const trli_transport *term)
{
    trli_transport_list *list = r->s->list;
    if (!trli_make_room(r->s->sim->ctx, &list->term, list->n, 1, &list->capacity, sizeof *list->term))
        return trli_no_memory(r->s->sim->ctx, NULL, "for %d transport terms", list->n + 1);
    list->term[list->n++] = *term;
    return trli_marks_add(r->lw.model, r->s->marks, r->term);
}

/* The product of factors at a location; cell values are interpolated to faces. */
static trli_ir_value product_at(reader *r, const factors *f, int axis, int location)
{
    trli_ir *ir = r->lw.ir;
    trli_ir_value product = TRLI_NO_VALUE;
    for (; f && f->operand; f = f->next) {
        int c = f->operand->components ? axis : 0, from = f->operand->location[c];
        trli_ir_value v = trli_operand_at(&r->lw, f->operand, c, location);
        if (from != TRLI_ANYWHERE && from != location) v = trli_interpolate(&r->lw, v, from, location);
        if (product < 0)
            product = f->divides ? trli_ir_binary(ir, TRLI_OP_DIV, trli_ir_constant(ir, 1), v) : v;
        else
            product = trli_ir_binary(ir, f->divides ? TRLI_OP_DIV : TRLI_OP_MUL, product, v);
    }
    return product;
}

static trl_err add_diffusion(reader *r, const factors *inner, const factors *outer, const bool axis[3])
{
    trli_transport t = {.kind = TRLI_DIFFUSION};
    for (int a = 0; a < r->lw.dim; ++a) {
        t.axis[a] = axis[a];
        t.face[a] = product_at(r, inner, a, (int)r->s->location ^ 1 << a);
        if (t.face[a] < 0) t.face[a] = trli_ir_constant(r->lw.ir, 1);
    }
    t.outer = product_at(r, outer, 0, r->s->location);
    return add_term(r, &t);
}

static trl_err add_advection(reader *r, const trl_ast *node, const factors *inner, const factors *outer)
{
    trli_transport t = {.kind = TRLI_ADVECTION, .central = node->nargs < 3};
    trli_operand u;
    trl_err err = trli_lower_node(&r->lw, node->arg[1], r->names, &u);
    if (err != TRL_OK) return err;
    if (!u.components) u.components = 1;
    const factors all = {&u, false, inner};
    for (int a = 0; a < r->lw.dim; ++a) {
        t.axis[a] = true;
        t.face[a] = product_at(r, &all, a, (int)r->s->location ^ 1 << a);
    }
    t.outer = product_at(r, outer, 0, r->s->location);
    return add_term(r, &t);
}

typedef trl_err (*scan_fn)(reader *r, const trl_ast *node, const factors *inner, const factors *outer);
static trl_err scan_flux(reader *r, const trl_ast *node, const factors *inner, const factors *outer);
static trl_err scan_rate(reader *r, const trl_ast *node, const factors *inner, const factors *outer);

/* Walk down the left side of a product: the one factor that differentiates is scanned, the others are in front of it.
 * `into`: which list they belong to (inner for fluxes, outer for rates). */
static trl_err scan_product(reader *r, const trl_ast *node, const factors *inner, const factors *outer, bool flux)
{
    scan_fn scan = flux ? scan_flux : scan_rate;
    const trl_ast *left = node->arg[0], *right = node->arg[1];
    bool on_left = differentiates(r, left), on_right = differentiates(r, right);
    if (!on_left && !on_right) return TRL_OK;
    if ((on_left && on_right) || (on_right && node->op == TRL_AST_DIV)) return give_up(r, node);
    trli_operand other;
    trl_err err = trli_lower_node(&r->lw, on_left ? right : left, r->names, &other);
    if (err != TRL_OK) return err;
    const factors more = {&other, node->op == TRL_AST_DIV, flux ? inner : outer};
    return scan(r, on_left ? left : right, flux ? &more : inner, flux ? outer : &more);
}

static trl_err scan_entry(reader *r, const trl_ast *node, const factors *inner, const factors *outer, scan_fn scan,
                          bool *found)
{
    const trli_symbol *symbol = symbol_of(r, node);
    *found = symbol && symbol->kind == TRLI_SYMBOL_FORMULA;
    if (!*found) return TRL_OK;
    const trli_entry *e = &r->lw.model->front->entry[symbol->index];
    const int deepest = 500;
    if (e->nformulas > 1 || r->s->depth == deepest) return give_up(r, node);
    reader below = read_formula(r->s, e->formula[0], e->deck->names);
    const int marked = r->s->marks->n;
    const bool others = r->s->others;
    r->s->others = false;
    ++r->s->depth;
    trl_err err = scan(&below, e->formula[0]->root, inner, outer);
    --r->s->depth;
    /* Where all of an expression is known, this reading of it is marked, not the expression, which others may read. */
    if (err == TRL_OK && !r->s->others && r->s->marks->n > marked) {
        r->s->marks->n = marked;
        err = trli_marks_add(r->lw.model, r->s->marks, r->term);
    }
    r->s->others |= others;
    return err;
}

/* Sums, signs, products and names: what rates and fluxes have in common. */
static trl_err scan_common(reader *r, const trl_ast *node, const factors *inner, const factors *outer, bool flux)
{
    scan_fn scan = flux ? scan_flux : scan_rate;
    trl_err err = TRL_OK;
    bool found;
    if (node->kind == TRL_AST_UNARY && node->op != TRL_AST_NOT) return scan(r, node->arg[0], inner, outer);
    if (node->kind == TRL_AST_BINARY && (node->op == TRL_AST_ADD || node->op == TRL_AST_SUB)) {
        for (int i = 0; i < 2; ++i) {
            reader summand = *r;
            summand.term = node->arg[i];
            TRL_TRY(scan(&summand, node->arg[i], inner, outer));
        }
        return TRL_OK;
    }
    if (node->kind == TRL_AST_BINARY && (node->op == TRL_AST_MUL || node->op == TRL_AST_DIV))
        return scan_product(r, node, inner, outer, flux);
    TRL_TRY(scan_entry(r, node, inner, outer, scan, &found));
    if (!found) err = give_up(r, node);
done:
    return err;
}

/* The largest derivative that the four-point difference makes of values between -1 and 1, as a multiple of the
 * two-point one's: a wave of two points gives (27 + 27 + 1 + 1)/24 over 2. */
static trli_operand steepness(const reader *r)
{
    return trli_operand_scalar(TRLI_ANYWHERE, trli_ir_constant(r->lw.ir, 56.0 / 48));
}

static trl_err scan_flux(reader *r, const trl_ast *node, const factors *inner, const factors *outer)
{
    static const bool all[3] = {true, true, true};
    if (!differentiates(r, node)) return give_up(r, node); /* its divergence does */
    if (++r->s->scanned > SCANNED_MAX) return fail_many(r, node);
    if (is_call(node, "grad") && node->nargs == 1 && is_own(r, node->arg[0]))
        return add_diffusion(r, inner, outer, all);
    if (is_call(node, "grad4") && node->nargs == 1 && is_own(r, node->arg[0])) {
        const trli_operand steeper = steepness(r);
        const factors all_inner = {&steeper, false, inner};
        return add_diffusion(r, &all_inner, outer, all);
    }
    if (is_call(node, "advective_flux") && node->nargs >= 2 && is_own(r, node->arg[0]))
        return add_advection(r, node, inner, outer);
    return scan_common(r, node, inner, outer, true);
}

static trl_err scan_div(reader *r, const trl_ast *node, const factors *outer)
{
    reader flux = *r;
    flux.term = node->arg[0];
    return scan_flux(&flux, node->arg[0], NULL, outer);
}

static trl_err scan_rate(reader *r, const trl_ast *node, const factors *inner, const factors *outer)
{
    static const bool all[3] = {true, true, true};
    static const char *const second[3] = {"d2dx", "d2dy", "d2dz"};
    if (!differentiates(r, node)) {
        r->s->others = true;
        return TRL_OK;
    }
    if (++r->s->scanned > SCANNED_MAX) return fail_many(r, node);
    if (is_call(node, "div") && node->nargs == 1) return scan_div(r, node, outer);
    if (is_call(node, "div4") && node->nargs == 1) {
        const trli_operand steeper = steepness(r);
        const factors all_outer = {&steeper, false, outer};
        return scan_div(r, node, &all_outer);
    }
    bool of_variable = node->kind == TRL_AST_CALL && node->nargs == 1 && is_own(r, node->arg[0]);
    if (is_call(node, "laplacian") && of_variable) return add_diffusion(r, NULL, outer, all);
    for (int a = 0; a < 3; ++a) {
        const bool one[3] = {a == 0, a == 1, a == 2};
        if (is_call(node, second[a]) && of_variable) return add_diffusion(r, NULL, outer, one);
    }
    if (node->kind == TRL_AST_FAMILY && node->op == TRL_AST_ADD) {
        long lo, hi;
        double value;
        const char *const index = node->part[0].text;
        const trl_scope names = {.n = 1, .name = &index, .value = &value, .outer = r->names};
        reader below = *r;
        trl_err err = trli_family_range(r->lw.model->ctx, r->lw.text, node, r->names, NULL, &lo, &hi);
        below.names = &names;
        below.term = node->arg[2];
        for (long i = lo; err == TRL_OK && i <= hi; ++i) {
            value = (double)i;
            err = scan_rate(&below, node->arg[2], inner, outer);
        }
        return err;
    }
    return scan_common(r, node, inner, outer, false);
}

trl_err trli_find_differentiating(trl_simulation *sim, bool **entries)
{
    trli_model *model = sim->model;
    *entries = trli_new(sim->ctx, (size_t)model->front->nentries + 1, sizeof **entries);
    if (!*entries) return trli_no_memory(sim->ctx, NULL, "to search %d expressions", model->front->nentries);
    search s = {.sim = sim, .entry_differentiates = *entries};
    for (int i = 0; i < model->front->nentries; ++i) { /* dependencies first, so that each looks one level deep */
        const trli_entry *e = &model->front->entry[model->front->order[i]];
        for (int f = 0; f < e->nformulas; ++f) {
            reader r = read_formula(&s, e->formula[f], e->deck->names);
            (*entries)[model->front->order[i]] |= differentiates(&r, e->formula[f]->root);
        }
    }
    return TRL_OK;
}

trl_err trli_find_transport(trl_simulation *sim, trli_instance *in, int equation, const bool *differentiating,
                            bool mark_others, trli_marks *marks, trli_transport_list *list)
{
    const trli_equation *eq = &sim->equation[equation];
    search s = {.sim = sim,
                .in = in,
                .location = sim->model->variable[equation].location,
                .equation = equation,
                .list = list,
                .marks = marks,
                .mark_others = mark_others,
                .entry_differentiates = differentiating};
    reader r = read_formula(&s, eq->ddt, eq->deck->names);
    trl_err err = scan_rate(&r, eq->ddt->root, NULL, NULL);
    return err != TRL_OK ? err : sim->model->ir.err;
}
