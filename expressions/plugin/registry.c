/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The table of expression types: descriptors are checked once, when they are added. */
#include "memory_impl.h"
#include "registry_impl.h"

#include <dlfcn.h>
#include <math.h>
#include <string.h>

#include <trl_formula.h>

#define KNOWN_FLAGS \
    (TRL_EXPR_POINTWISE | TRL_EXPR_TILED | TRL_EXPR_PURE | TRL_EXPR_MODIFIER | TRL_EXPR_STATIC | TRL_EXPR_NEUTRAL)

trl_err trl_registry_create(trl_context *ctx, trl_registry **registry)
{
    if (!ctx || !registry) return TRL_ERR_USAGE;
    trl_registry *r = trli_new(ctx, 1, sizeof *r);
    *registry = NULL;
    if (!r) return trli_no_memory(ctx, NULL, "for the registry of expression types");
    r->ctx = ctx;
    *registry = r;
    return TRL_OK;
}

/* The types that came from these libraries are removed by now. */
static void close_libraries(trl_registry *registry)
{
    for (int i = registry->nlibraries - 1; i >= 0; --i) dlclose(registry->library[i]);
    trli_free(registry->library);
    registry->library = NULL;
    registry->nlibraries = 0;
}

void trl_registry_destroy(trl_registry **registry)
{
    trl_registry *r = registry ? *registry : NULL;
    if (!r) return;
    *registry = NULL;
    for (int i = 0; i < r->count; ++i) trli_free(r->entry[i].origin);
    trli_free(r->entry);
    close_libraries(r);
    trli_free(r);
}

/* Refuse a descriptor: where it comes from, its name when that can be trusted, and what is wrong. */
static trl_err refuse(trl_registry *r, const trl_place *place, const char *origin, const char *name, const char *what)
{
    return trl_fail(r->ctx, TRL_ERR_PLUGIN, place, "expression type '%s' of %s %s", name, origin, what);
}

static trl_err refuse_param(trl_registry *r, const trl_place *place, const char *origin, const char *name,
                            const trl_param_desc *param, const char *what)
{
    return trl_fail(r->ctx, TRL_ERR_PLUGIN, place, "expression type '%s' of %s: parameter '%s' %s", name, origin,
                    param->key, what);
}

static bool is_number(trl_param_kind kind)
{
    return kind == TRL_PARAM_NUMBER || kind == TRL_PARAM_INTEGER;
}

static trl_err check_param(trl_registry *r, const trl_expr_type *type, const trl_param_desc *param, const char *origin,
                           const trl_place *place)
{
    const char *name = type->name;
    if (!trl_name_valid(param->key)) return refuse_param(r, place, origin, name, param, "has a key that is no name");
    if ((unsigned)param->kind > TRL_PARAM_PATH)
        return refuse_param(r, place, origin, name, param, "has an unknown kind");
    if (!param->doc) return refuse_param(r, place, origin, name, param, "lacks its doc line");
    for (const trl_param_desc *other = type->params; other != param; ++other)
        if (!strcmp(other->key, param->key))
            return refuse_param(r, place, origin, name, param, "is in its table twice");
    if (!is_number(param->kind)) return TRL_OK;
    if (!(param->min <= param->max))
        return refuse_param(r, place, origin, name, param, "has a minimum above its maximum");
    if (param->required || param->min == param->max) return TRL_OK;
    if (!(param->fallback >= param->min && param->fallback <= param->max))
        return refuse_param(r, place, origin, name, param, "has a default outside its range");
    return TRL_OK;
}

static trl_err check_cuda(trl_registry *r, const trl_expr_type *type, const char *origin, const trl_place *place)
{
    const trl_cuda_form *form = type->evaluate_cuda, *bound = type->stable_dt_cuda;
    if (form && (!(type->flags & TRL_EXPR_TILED) || type->flags & TRL_EXPR_NEUTRAL))
        return refuse(r, place, origin, type->name,
                      "has evaluate_cuda, which computes many points at once: it must be TILED, and not NEUTRAL");
    if (form && !form->text[0]) return refuse(r, place, origin, type->name, "has evaluate_cuda without a text");
    if (form && (form->nnumbers < 0 || (form->nnumbers > 0 && !form->set_numbers)))
        return refuse(r, place, origin, type->name, "has numbers for evaluate_cuda, but not set_numbers");
    if (bound && !type->stable_dt) return refuse(r, place, origin, type->name, "has stable_dt_cuda, but not stable_dt");
    if (bound && !bound->text[0]) return refuse(r, place, origin, type->name, "has stable_dt_cuda without a text");
    if (bound && (bound->nnumbers < 0 || (bound->nnumbers > 0 && !bound->set_numbers)))
        return refuse(r, place, origin, type->name, "has numbers for stable_dt_cuda, but not set_numbers");
    return TRL_OK;
}

/* abi and size stand first in every version of the descriptor: nothing else is read before they are known to fit. */
static trl_err check_type(trl_registry *r, const trl_expr_type *type, const char *origin, const trl_place *place)
{
    trl_err err = TRL_OK;
    if (type->abi != TRL_PLUGIN_ABI)
        return trl_fail(
            r->ctx, TRL_ERR_PLUGIN, place,
            "an expression type of %s has plugin abi %u, this Trellis has %u; rebuild it with this version's "
            "trl_plugin.h",
            origin, (unsigned)type->abi, TRL_PLUGIN_ABI);
    if (type->size != sizeof *type)
        return trl_fail(r->ctx, TRL_ERR_PLUGIN, place,
                        "an expression type of %s has a descriptor of %u bytes, this Trellis expects %zu; set .size = "
                        "sizeof(trl_expr_type) and rebuild it with this version's trl_plugin.h",
                        origin, (unsigned)type->size, sizeof *type);
    if (!type->name || !trl_name_valid(type->name))
        return trl_fail(r->ctx, TRL_ERR_PLUGIN, place,
                        "an expression type of %s has the name '%s'; a name is letters, digits and _, no digit first",
                        origin, type->name ? type->name : "");
    if (!type->doc) return refuse(r, place, origin, type->name, "lacks its doc line");
    if (!type->advertise_dependents)
        return refuse(r, place, origin, type->name, "lacks the required slot advertise_dependents");
    if (!type->evaluate) return refuse(r, place, origin, type->name, "lacks the required slot evaluate");
    if (type->flags & ~(unsigned)KNOWN_FLAGS)
        return refuse(r, place, origin, type->name, "has flags that do not exist");
    if (type->flags & TRL_EXPR_NEUTRAL && (type->flags & TRL_EXPR_MODIFIER || type->stable_dt || type->scratch_bytes))
        return refuse(r, place, origin, type->name,
                      "is NEUTRAL: it touches no array, and cannot be a MODIFIER, have stable_dt or scratch_bytes");
    TRL_TRY(check_cuda(r, type, origin, place));
    for (const trl_param_desc *param = type->params; param && param->key; ++param)
        TRL_TRY(check_param(r, type, param, origin, place));
done:
    return err;
}

static const trli_registry_entry *find_entry(const trl_registry *r, const char *name)
{
    for (int i = 0; i < r->count; ++i)
        if (!strcmp(r->entry[i].type->name, name)) return &r->entry[i];
    return NULL;
}

trl_err trl_registry_add(trl_registry *registry, const trl_expr_type *type, const char *origin, const trl_place *place)
{
    trl_registry *r = registry;
    trl_err err = TRL_OK;
    if (!r) return TRL_ERR_USAGE;
    if (!type || !origin)
        return trl_fail(r->ctx, TRL_ERR_USAGE, place, "an expression type is registered without %s",
                        type ? "its origin" : "its descriptor");
    TRL_TRY(check_type(r, type, origin, place));
    const trli_registry_entry *twin = find_entry(r, type->name);
    if (twin)
        return trl_fail(r->ctx, TRL_ERR_PLUGIN, place,
                        "expression type '%s' of %s exists already: it comes from %s; rename one of them", type->name,
                        origin, twin->origin);
    if (!trli_make_room(r->ctx, &r->entry, r->count, 1, &r->capacity, sizeof *r->entry))
        return trli_no_memory(r->ctx, place, "for expression type '%s'", type->name);
    char *copy = trli_copy_text(r->ctx, origin);
    if (!copy) return trli_no_memory(r->ctx, place, "for expression type '%s'", type->name);
    r->entry[r->count++] = (trli_registry_entry){.type = type, .origin = copy};
done:
    return err;
}

const trl_expr_type *trl_registry_find(const trl_registry *registry, const char *name)
{
    const trli_registry_entry *entry = registry && name ? find_entry(registry, name) : NULL;
    return entry ? entry->type : NULL;
}

int trl_registry_count(const trl_registry *registry)
{
    return registry ? registry->count : 0;
}

const trl_expr_type *trl_registry_at(const trl_registry *registry, int i, const char **origin)
{
    if (!registry || i < 0 || i >= registry->count) return NULL;
    if (origin) *origin = registry->entry[i].origin;
    return registry->entry[i].type;
}
