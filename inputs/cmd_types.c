/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* `trellis types`: expression types, operators and functions, from the tables that check the input. */
#include "command_impl.h"

#include <limits.h>
#include <string.h>

#include <trl_formula.h>
#include <trl_formula_operators.h>
#include <trl_operator.h>

#include "builtins_impl.h"
#include "files_impl.h"
#include "memory_impl.h"
#include "scalar_impl.h"

/* Load every library of a folder, in the order of their names. */
static trl_err load_folder(trl_context *ctx, trl_registry *registry, const char *folder)
{
    trli_names names;
    trl_err err = TRL_OK;
    if (!trli_folder_list(ctx, folder, trli_scalar_is_library, &names))
        return trl_fail(ctx, TRL_ERR_INPUT, NULL, "trellis types: the folder '%s' cannot be read", folder);
    for (int i = 0; i < names.n && err == TRL_OK; ++i)
        err = trl_registry_load(registry, names.name[i], &folder, 1, NULL);
    trli_names_free(&names);
    return err;
}

static trl_err load_all(trl_context *ctx, const trli_arguments *arguments, trl_registry *registry)
{
    char installed[PATH_MAX];
    const char **folder = NULL;
    trl_err err = TRL_OK;
    int n = trli_arguments_values(ctx, arguments, "--plugin-path", &folder);
    if (n < 0) return trli_no_memory(ctx, NULL, "for the command's options");
    TRL_TRY(trli_register_builtins(registry));
    for (int i = 0; i < n; ++i) TRL_TRY(load_folder(ctx, registry, folder[i]));
    TRL_TRY(trli_installed_folder(ctx, TRLI_PLUGINS_BELOW, TRL_PLUGIN_FOLDER, installed, sizeof installed));
    TRL_TRY(load_folder(ctx, registry, installed));
done:
    trli_free(folder);
    return err;
}

static const char *kind_name(trl_param_kind kind)
{
    switch (kind) {
    case TRL_PARAM_NUMBER:
        return "number";
    case TRL_PARAM_INTEGER:
        return "whole number";
    case TRL_PARAM_BOOL:
        return "true or false";
    case TRL_PARAM_TEXT:
        return "text";
    case TRL_PARAM_PATH:
        return "path";
    }
    return "?";
}

static void print_default(const trl_param_desc *p)
{
    if (p->required)
        printf(", required");
    else if (p->kind == TRL_PARAM_TEXT || p->kind == TRL_PARAM_PATH)
        printf(", default '%s'", p->text ? p->text : "");
    else if (p->kind == TRL_PARAM_BOOL)
        printf(", default %s", p->fallback != 0 ? "true" : "false");
    else
        printf(", default %g", p->fallback);
}

static void print_param(const trl_param_desc *p)
{
    bool number = p->kind == TRL_PARAM_NUMBER || p->kind == TRL_PARAM_INTEGER;
    printf("  %-14s %s\n  %-14s %s", p->key, p->doc, "", kind_name(p->kind));
    if (p->unit && p->unit[0]) printf(" in %s", p->unit);
    print_default(p);
    if (number && p->min != p->max) printf(", from %g to %g", p->min, p->max);
    putchar('\n');
}

static void print_type(const trl_expr_type *type, const char *origin)
{
    printf("%s: %s\nfrom: %s\n", type->name, type->doc, origin);
    if (!type->params || !type->params->key) return;
    puts("parameters:");
    for (const trl_param_desc *p = type->params; p->key; ++p) print_param(p);
}

static void print_operator(const trl_formula_operator *o)
{
    printf("  %s\n      %s\n", o->signature, o->doc);
}

static void print_function(const trl_function *f)
{
    char call[32];
    snprintf(call, sizeof call, "%s(%s)", f->name, f->arity == 1 ? "a" : "a, b");
    printf("  %-16s %s\n", call, f->doc ? f->doc : "");
}

/* X-list's rule: where operators of the kind lead, and a location that one from cells leads to. */
#define LEADS_FLIP                                              \
    {                                                           \
        "to the location with one axis' bit flipped", TRL_XFACE \
    }
#define LEADS_FLIPS                        \
    {                                      \
        "to any other location", TRL_XFACE \
    }
#define LEADS_SAME                       \
    {                                    \
        "to the same location", TRL_CELL \
    }
#define LEADS_VECTOR                                         \
    {                                                        \
        "one input per component, to any location", TRL_CELL \
    }

static const struct {
    const char *name, *doc;
    struct {
        const char *text;
        trl_location sample;
    } leads;
} kinds[TRL_OPERATOR_KINDS] = {
#define KIND_ROW(kind, name, rule, doc) {name, doc, LEADS_##rule},
    TRL_OPERATOR_LIST(KIND_ROW)
#undef KIND_ROW
};

/* A linear operator as its own table has it, on a grid of spacing 1. */
static trl_err print_kind(trl_context *ctx, int k)
{
    const trl_grid grid = {.dim = 3, .cells = {1, 1, 1}, .length = {1, 1, 1}, .spacing = {1, 1, 1}};
    /* The first term of the curl's z-component runs along x. */
    const trl_operator_desc desc = {
        .kind = (trl_operator_kind)k, .to = kinds[k].leads.sample, .axis = k == TRL_CURL ? 2 : 0, .width = 3};
    trl_operator *op;
    trl_err err = trl_operator_create(ctx, &grid, &desc, &op);
    if (err != TRL_OK) return err;
    const trl_pass *pass = &op->term[0].pass[0];
    printf("  %s: %s\n      %s;", kinds[k].name, kinds[k].doc, kinds[k].leads.text);
    for (int i = 0; i < pass->npoints; ++i)
        printf("%s %.4g at %d", i ? "," : "", pass->point[i].weight * pass->scale, pass->point[i].offset[0]);
    putchar('\n');
    trl_operator_destroy(&op);
    return TRL_OK;
}

static trl_err print_kinds(trl_context *ctx)
{
    trl_err err = TRL_OK;
    puts("\nkinds of linear operators, with weights at offsets along x from cells (vectors: to cells), spacing 1, "
         "filters 3 wide:");
    for (int k = 0; k < TRL_OPERATOR_KINDS && err == TRL_OK; ++k) err = print_kind(ctx, k);
    return err;
}

static trl_err print_all(trl_context *ctx, const trl_registry *registry)
{
    int nfunctions;
    const trl_function *function = trl_functions(&nfunctions);
    puts("expression types:");
    for (int i = 0; i < trl_registry_count(registry); ++i) {
        const char *origin;
        const trl_expr_type *type = trl_registry_at(registry, i, &origin);
        printf("  %-16s %s (%s)\n", type->name, type->doc, origin);
    }
    puts("\noperators:");
    for (int i = 0; trl_formula_operator_at(i); ++i) print_operator(trl_formula_operator_at(i));
    puts("\nfunctions:");
    for (int i = 0; i < nfunctions; ++i) print_function(&function[i]);
    return print_kinds(ctx);
}

static trl_err unknown_name(trl_context *ctx, const trl_registry *registry, const char *name)
{
    int ntypes = trl_registry_count(registry), noperators = 0, nfunctions, n = 0;
    const trl_function *function = trl_functions(&nfunctions);
    while (trl_formula_operator_at(noperators)) ++noperators;
    const char **known = trli_new(ctx, (size_t)(ntypes + noperators + nfunctions) + 1, sizeof *known);
    if (!known) return trli_no_memory(ctx, NULL, "for the names of types");
    for (int i = 0; i < ntypes; ++i) known[n++] = trl_registry_at(registry, i, NULL)->name;
    for (int i = 0; i < noperators; ++i) known[n++] = trl_formula_operator_at(i)->name;
    for (int i = 0; i < nfunctions; ++i) known[n++] = function[i].name;
    const char *nearest = trl_name_nearest(name, known, n);
    trl_err err = nearest
                      ? trl_fail(ctx, TRL_ERR_INPUT, NULL,
                                 "trellis types: no type, operator or function '%s'; did you mean '%s'?", name, nearest)
                      : trl_fail(ctx, TRL_ERR_INPUT, NULL,
                                 "trellis types: no type, operator or function '%s'; 'trellis types' lists them", name);
    trli_free(known);
    return err;
}

static trl_err print_one(trl_context *ctx, const trl_registry *registry, const char *name)
{
    for (int i = 0; i < trl_registry_count(registry); ++i) {
        const char *origin;
        const trl_expr_type *type = trl_registry_at(registry, i, &origin);
        if (strcmp(type->name, name)) continue;
        print_type(type, origin);
        return TRL_OK;
    }
    for (int i = 0; trl_formula_operator_at(i); ++i) {
        if (strcmp(trl_formula_operator_at(i)->name, name)) continue;
        print_operator(trl_formula_operator_at(i));
        return TRL_OK;
    }
    for (int k = 0; k < TRL_OPERATOR_KINDS; ++k)
        if (!strcmp(kinds[k].name, name)) return print_kind(ctx, k);
    const trl_function *function = trl_function_find(name);
    if (!function) return unknown_name(ctx, registry, name);
    print_function(function);
    return TRL_OK;
}

int trli_cmd_types(trl_context *ctx, const trli_arguments *arguments)
{
    trl_registry *registry = NULL;
    trl_err err = TRL_OK;
    TRL_TRY(trl_registry_create(ctx, &registry));
    TRL_TRY(load_all(ctx, arguments, registry));
    if (arguments->noperands)
        TRL_TRY(print_one(ctx, registry, arguments->operand[0]));
    else
        TRL_TRY(print_all(ctx, registry));
done:
    trl_registry_destroy(&registry);
    return trli_command_finish(ctx, err);
}
