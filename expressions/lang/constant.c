/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <trl_functions_body.h>

#include "formula_impl.h"

/* Operations within sums and products of one number, and of an index in a name, of which there may be many. */
enum { OPERATIONS_MAX = TRLI_EXPANSION_MAX, INDEX_OPERATIONS_MAX = 10000 };

/* The index of a sum or prod around a name that is visited; its value is known if its range is. */
typedef struct bound_index {
    const char *name;
    bool known;
    const struct bound_index *outer;
} bound_index;

typedef struct evaluation {
    trl_context *ctx;
    const trl_text *text;
    int64_t *operations; /* so far, within sums and products: those of huge ranges must not run for hours */
    int64_t most;
    const trl_ast *family; /* the outermost one around what is evaluated */
    trl_err (*visit)(void *data, const char *name, const trl_ast *node); /* while names are visited */
    void *data;
} evaluation;

static trl_err evaluate(evaluation *e, const trl_ast *node, const trl_scope *names, double *value);

static trl_err count_operation(const evaluation *e)
{
    if (!e->family || ++*e->operations <= e->most) return TRL_OK;
    return trli_text_fail(
        e->ctx, e->text, e->family->begin, e->family->end,
        "sums and products may take %lld operations in all, and here they take more; use shorter ranges",
        (long long)e->most);
}

/* Go into a family, or a family within one; returns what to put back behind it. */
static const trl_ast *enter_family(evaluation *e, const trl_ast *node)
{
    const trl_ast *outer = e->family;
    if (!outer) e->family = node;
    return outer;
}

static bool is_plain(const trl_ast *node)
{
    return node->nparts == 1 && !node->part[0].index;
}

/* Names */

static trl_err index_value(evaluation *e, const trl_ast *index, const trl_scope *names, int *whole)
{
    trl_err err = TRL_OK;
    double value;
    TRL_TRY(evaluate(e, index, names, &value));
    if (!(value >= 0 && value <= 1e9) || value != floor(value))
        return trli_text_fail(e->ctx, e->text, index->begin, index->end,
                              "an index in a name is a whole number from 0, found %.17g", isnan(value) ? NAN : value);
    *whole = (int)value;
done:
    return err;
}

static trl_err expand_name(evaluation *e, const trl_ast *node, const trl_scope *names, char *buffer, size_t size)
{
    trl_err err = TRL_OK;
    size_t used = 0;
    for (int i = 0; i < node->nparts && used < size; ++i) {
        const trl_name_part *part = &node->part[i];
        used += (size_t)snprintf(buffer + used, size - used, "%s", part->text);
        if (part->index && used < size) {
            int whole = 0;
            TRL_TRY(index_value(e, part->index, names, &whole));
            used += (size_t)snprintf(buffer + used, size - used, "%d", whole);
        }
    }
    if (used >= size)
        TRL_TRY(trli_text_fail(e->ctx, e->text, node->begin, node->end, "a name has at most %zu characters", size - 1));
done:
    return err;
}

trl_err trl_name_expand(trl_context *ctx, const trl_text *text, const trl_ast *node, const trl_scope *names,
                        char *buffer, size_t size)
{
    int64_t operations = 0;
    evaluation e = {.ctx = ctx, .text = text, .operations = &operations, .most = INDEX_OPERATIONS_MAX};
    return expand_name(&e, node, names, buffer, size);
}

/* The spelling of a NAME: its own text, or the buffer with the braces evaluated. */
static trl_err spell(evaluation *e, const trl_ast *node, const trl_scope *names, char buffer[TRLI_NAME_LENGTH + 1],
                     const char **name)
{
    *name = is_plain(node) ? node->part[0].text : buffer;
    return is_plain(node) ? TRL_OK : expand_name(e, node, names, buffer, TRLI_NAME_LENGTH + 1);
}

static const char *nearest_known(const char *name, const trl_scope *names)
{
    enum { LEVELS = 8 };
    const char *candidates[LEVELS];
    int n = 0;
    for (; names && n < LEVELS; names = names->outer) {
        candidates[n] = trl_name_nearest(name, names->name, names->n);
        n += candidates[n] != NULL;
    }
    return trl_name_nearest(name, candidates, n);
}

static trl_err fail_unknown(const evaluation *e, const trl_ast *node, const char *name, const trl_scope *names)
{
    const char *near = nearest_known(name, names);
    trl_err err = trli_text_fail(e->ctx, e->text, node->begin, node->end, "'%s' is not a number known here%s%s%s", name,
                                 near ? "; did you mean '" : ": only parameters, indices and pi are", near ? near : "",
                                 near ? "'?" : "");
    for (; names; names = names->outer) trli_advise_names(e->ctx, name, names->name, names->n);
    trl_advise(e->ctx, "write a number or a parameter for it");
    if (!trl_name_reserved(name))
        trl_advise(e->ctx, "add it to `parameters`, if nothing else has this name: `parameters: {%s: 1}`", name);
    return err;
}

static trl_err evaluate_name(evaluation *e, const trl_ast *node, const trl_scope *names, double *value)
{
    trl_err err = TRL_OK;
    const char *name;
    char buffer[TRLI_NAME_LENGTH + 1];
    TRL_TRY(spell(e, node, names, buffer, &name));
    if (trl_scope_find(names, name, value)) return TRL_OK;
    if (strcmp(name, "pi") != 0) return fail_unknown(e, node, name, names);
    *value = 3.14159265358979323846;
done:
    return err;
}

/* Operations */

/* Whole exponents up to 8 are products from the left, as in fields: the same power has the same bits in a parameter. */
static double power(double base, double exponent)
{
    double magnitude = fabs(exponent), product = 1;
    if (!(magnitude <= 8) || magnitude != floor(magnitude)) return trl_fn_pow(base, exponent);
    if (magnitude >= 1) product = base;
    for (int i = 2; i <= (int)magnitude; ++i) product *= base;
    return exponent < 0 ? 1 / product : product;
}

static double combine(trl_ast_op op, double a, double b)
{
    switch (op) {
    case TRL_AST_OR:
        return a != 0 || b != 0;
    case TRL_AST_AND:
        return a != 0 && b != 0;
    case TRL_AST_NOT:
        return a == 0;
    case TRL_AST_LT:
        return a < b;
    case TRL_AST_LE:
        return a <= b;
    case TRL_AST_GT:
        return a > b;
    case TRL_AST_GE:
        return a >= b;
    case TRL_AST_EQ:
        return a == b;
    case TRL_AST_NE:
        return a != b;
    case TRL_AST_ADD:
        return a + b;
    case TRL_AST_SUB:
        return a - b;
    case TRL_AST_MUL:
        return a * b;
    case TRL_AST_DIV:
        return a / b;
    case TRL_AST_NEG:
        return -a;
    case TRL_AST_POW:
        return power(a, b);
    case TRL_AST_POS:
    case TRL_AST_NONE:
        break;
    }
    return a;
}

static trl_err evaluate_operation(evaluation *e, const trl_ast *node, const trl_scope *names, double *value)
{
    trl_err err = TRL_OK;
    double a, b = 0;
    TRL_TRY(evaluate(e, node->arg[0], names, &a));
    if (node->kind == TRL_AST_BINARY) TRL_TRY(evaluate(e, node->arg[1], names, &b));
    *value = combine(node->op, a, b);
done:
    return err;
}

static trl_err check_arity(const evaluation *e, const trl_ast *node, int arity)
{
    if (node->nargs == arity) return TRL_OK;
    return trli_text_fail(e->ctx, e->text, node->begin, node->end, "'%s' takes %d argument%s, got %d",
                          node->part[0].text, arity, arity == 1 ? "" : "s", node->nargs);
}

static trl_err fail_function(const evaluation *e, const trl_ast *node)
{
    enum { MANY = 64 };
    const char *names[MANY];
    int n;
    const trl_function *function = trl_functions(&n);
    if (n > MANY) n = MANY;
    for (int i = 0; i < n; ++i) names[i] = function[i].name;
    const char *name = node->part[0].text, *near = trl_name_nearest(name, names, n);
    trl_err err = trli_text_fail(e->ctx, e->text, node->begin, node->end,
                                 "'%s' is not a function of numbers, and only these are allowed here%s%s%s", name,
                                 near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
    trli_advise_names(e->ctx, name, names, n);
    return err;
}

static trl_err evaluate_call(evaluation *e, const trl_ast *node, const trl_scope *names, double *value)
{
    trl_err err = TRL_OK;
    double a, b = 0;
    const char *name = node->part[0].text;
    if (strcmp(name, "if") == 0) {
        TRL_TRY(check_arity(e, node, 3));
        TRL_TRY(evaluate(e, node->arg[0], names, &a));
        return evaluate(e, node->arg[a != 0 ? 1 : 2], names, value);
    }
    const trl_function *function = trl_function_find(name);
    if (!function) return fail_function(e, node);
    TRL_TRY(check_arity(e, node, function->arity));
    TRL_TRY(evaluate(e, node->arg[0], names, &a));
    if (function->arity == 2) TRL_TRY(evaluate(e, node->arg[1], names, &b));
    *value = function->arity == 2 ? function->binary(a, b) : function->unary(a);
done:
    return err;
}

static trl_err evaluate_end(evaluation *e, const trl_ast *end, const trl_scope *names, double *value)
{
    trl_err err = TRL_OK;
    TRL_TRY(evaluate(e, end, names, value));
    if (!(fabs(*value) <= 1e9) || *value != floor(*value))
        TRL_TRY(trli_text_fail(e->ctx, e->text, end->begin, end->end, "a range runs between whole numbers, found %.17g",
                               isnan(*value) ? NAN : *value));
done:
    return err;
}

static trl_err evaluate_family(evaluation *e, const trl_ast *node, const trl_scope *names, double *value)
{
    trl_err err = TRL_OK;
    double index, upper, term, total = node->op == TRL_AST_ADD ? 0 : 1;
    TRL_TRY(evaluate_end(e, node->arg[0], names, &index));
    TRL_TRY(evaluate_end(e, node->arg[1], names, &upper));
    bool first = true;
    const trl_ast *outer = enter_family(e, node);
    for (; index <= upper; ++index) {
        const trl_scope inner = {.n = 1, .name = &node->part[0].text, .value = &index, .outer = names};
        TRL_TRY(evaluate(e, node->arg[2], &inner, &term));
        total = first ? term : combine(node->op, total, term);
        first = false;
    }
    e->family = outer;
    *value = total;
done:
    return err;
}

static trl_err evaluate(evaluation *e, const trl_ast *node, const trl_scope *names, double *value)
{
    trl_err err = TRL_OK;
    TRL_TRY(count_operation(e));
    switch (node->kind) {
    case TRL_AST_NUMBER:
        *value = node->number;
        break;
    case TRL_AST_NAME:
        TRL_TRY(evaluate_name(e, node, names, value));
        break;
    case TRL_AST_CALL:
        TRL_TRY(evaluate_call(e, node, names, value));
        break;
    case TRL_AST_UNARY:
    case TRL_AST_BINARY:
        TRL_TRY(evaluate_operation(e, node, names, value));
        break;
    case TRL_AST_FAMILY:
        TRL_TRY(evaluate_family(e, node, names, value));
        break;
    case TRL_AST_VECTOR:
    case TRL_AST_COMPONENT:
        return trli_text_fail(e->ctx, e->text, node->begin, node->end, "a vector stands where a number is needed");
    case TRL_AST_SIDE:
        return trli_text_fail(e->ctx, e->text, node->begin, node->end, "a side stands where a number is needed");
    }
done:
    return err;
}

trl_err trli_ast_number(trl_context *ctx, const trl_text *text, const trl_ast *node, const trl_scope *names,
                        int64_t *operations, double *value)
{
    evaluation e = {.ctx = ctx, .text = text, .operations = operations, .most = OPERATIONS_MAX};
    return evaluate(&e, node, names, value);
}

trl_err trl_ast_number(trl_context *ctx, const trl_text *text, const trl_ast *node, const trl_scope *names,
                       double *value)
{
    int64_t operations = 0;
    return trli_ast_number(ctx, text, node, names, &operations, value);
}

/* Visiting names */

static trl_err visit(evaluation *e, const trl_ast *node, const trl_scope *names, const bound_index *bound);

static const bound_index *find_bound(const bound_index *bound, const char *name)
{
    while (bound && strcmp(bound->name, name) != 0) bound = bound->outer;
    return bound;
}

static bool is_known_name(const trl_ast *node, const trl_scope *names, const bound_index *bound)
{
    double value;
    const char *name = node->part[0].text;
    const bound_index *index = find_bound(bound, name);
    if (!is_plain(node)) return false;
    return index ? index->known : strcmp(name, "pi") == 0 || trl_scope_find(names, name, &value);
}

/* Whether evaluating an expression needs nothing but names that have values by now. False for some that would do:
 * families and names with braces. */
static bool is_known(const trl_ast *node, const trl_scope *names, const bound_index *bound)
{
    switch (node->kind) {
    case TRL_AST_NAME:
        return is_known_name(node, names, bound);
    case TRL_AST_CALL:
        if (strcmp(node->part[0].text, "if") != 0 && !trl_function_find(node->part[0].text)) return false;
        break;
    case TRL_AST_NUMBER:
    case TRL_AST_UNARY:
    case TRL_AST_BINARY:
        break;
    case TRL_AST_FAMILY:
    case TRL_AST_VECTOR:
    case TRL_AST_COMPONENT:
    case TRL_AST_SIDE:
        return false;
    }
    for (int i = 0; i < node->nargs; ++i) {
        if (!is_known(node->arg[i], names, bound)) return false;
    }
    return true;
}

/* The first name inside an expression that is an index without a value, or NULL. */
static const trl_ast *find_unknown_index(const trl_ast *node, const bound_index *bound)
{
    const trl_ast *found = NULL;
    if (node->kind == TRL_AST_NAME) {
        const bound_index *index = find_bound(bound, node->part[0].text);
        if (is_plain(node) && index && !index->known) return node;
        for (int i = 0; i < node->nparts && !found; ++i) {
            if (node->part[i].index) found = find_unknown_index(node->part[i].index, bound);
        }
    }
    for (int i = 0; i < node->nargs && !found; ++i) found = find_unknown_index(node->arg[i], bound);
    return found;
}

static trl_err visit_name(evaluation *e, const trl_ast *node, const trl_scope *names, const bound_index *bound)
{
    trl_err err = TRL_OK;
    const char *name;
    char buffer[TRLI_NAME_LENGTH + 1];
    if (is_plain(node) && find_bound(bound, node->part[0].text)) return TRL_OK;
    for (int i = 0; i < node->nparts; ++i) {
        if (!node->part[i].index) continue;
        TRL_TRY(visit(e, node->part[i].index, names, bound));
        const trl_ast *unknown = find_unknown_index(node->part[i].index, bound);
        if (unknown)
            return trli_text_fail(e->ctx, e->text, unknown->begin, unknown->end, "the range of '%s' is not known here",
                                  unknown->part[0].text);
    }
    TRL_TRY(spell(e, node, names, buffer, &name));
    TRL_TRY(e->visit(e->data, name, node));
done:
    return err;
}

/* The ends of the range come first, so that a visitor can give their names values before the terms are visited. */
static trl_err visit_family(evaluation *e, const trl_ast *node, const trl_scope *names, const bound_index *bound)
{
    trl_err err = TRL_OK;
    double index, upper;
    TRL_TRY(visit(e, node->arg[0], names, bound));
    TRL_TRY(visit(e, node->arg[1], names, bound));
    bound_index inner = {.name = node->part[0].text, .outer = bound};
    inner.known = is_known(node->arg[0], names, bound) && is_known(node->arg[1], names, bound);
    if (!inner.known) return visit(e, node->arg[2], names, &inner);
    TRL_TRY(evaluate_end(e, node->arg[0], names, &index));
    TRL_TRY(evaluate_end(e, node->arg[1], names, &upper));
    const trl_ast *outer = enter_family(e, node);
    for (; index <= upper; ++index) {
        const trl_scope values = {.n = 1, .name = &node->part[0].text, .value = &index, .outer = names};
        TRL_TRY(visit(e, node->arg[2], &values, &inner));
    }
    e->family = outer;
done:
    return err;
}

static trl_err visit(evaluation *e, const trl_ast *node, const trl_scope *names, const bound_index *bound)
{
    trl_err err = TRL_OK;
    int skipped = -1;
    TRL_TRY(count_operation(e));
    if (node->kind == TRL_AST_NAME) return visit_name(e, node, names, bound);
    if (node->kind == TRL_AST_FAMILY) return visit_family(e, node, names, bound);
    bool is_if = node->kind == TRL_AST_CALL && node->nargs == 3 && strcmp(node->part[0].text, "if") == 0;
    if (is_if && is_known(node->arg[0], names, bound)) {
        double chosen;
        TRL_TRY(evaluate(e, node->arg[0], names, &chosen));
        skipped = chosen != 0 ? 2 : 1;
    }
    for (int i = 0; i < node->nargs; ++i) {
        if (i != skipped) TRL_TRY(visit(e, node->arg[i], names, bound));
    }
done:
    return err;
}

trl_err trli_ast_visit_names(trl_context *ctx, const trl_text *text, const trl_ast *node, const trl_scope *names,
                             int64_t *operations,
                             trl_err (*visit_one)(void *data, const char *name, const trl_ast *node), void *data)
{
    evaluation e = {
        .ctx = ctx, .text = text, .operations = operations, .most = OPERATIONS_MAX, .visit = visit_one, .data = data};
    return visit(&e, node, names, NULL);
}

trl_err trl_ast_visit_names(trl_context *ctx, const trl_text *text, const trl_ast *node, const trl_scope *names,
                            trl_err (*visit_one)(void *data, const char *name, const trl_ast *node), void *data)
{
    int64_t operations = 0;
    return trli_ast_visit_names(ctx, text, node, names, &operations, visit_one, data);
}
