/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Typed entries: the four-method contract of expression types, from the compiler's side. */
#include <string.h>

#include "context_impl.h"
#include "memory_impl.h"
#include "plugin_entry_impl.h"

struct trl_deps {
    trli_model *model;
    trli_entry *entry;
};

struct trl_binding {
    const trli_model *model;
    trli_entry *entry;
};

const trl_grid *trl_deps_grid(const trl_deps *deps)
{
    return deps ? &deps->model->layout->grid : NULL;
}

const trl_grid *trl_binding_grid(const trl_binding *binding)
{
    return binding ? &binding->model->layout->grid : NULL;
}

static int find_own(int n, const trli_advertised *list, const char *name)
{
    for (int i = 0; i < n; ++i)
        if (strcmp(list[i].own_name, name) == 0) return i;
    return -1;
}

int trl_binding_computed(const trl_binding *binding, const char *name)
{
    if (!binding || !name) return -1;
    return find_own(binding->entry->ncomputed, binding->entry->computed, name);
}

int trl_binding_required(const trl_binding *binding, const char *name)
{
    if (!binding || !name) return -1;
    return find_own(binding->entry->nrequired, binding->entry->required, name);
}

static trl_err advertise(trl_deps *deps, trli_advertised **list, int *n, int *capacity, const char *name,
                         trl_location location, trli_advertised **added)
{
    trli_model *model = deps->model;
    const trl_expression_entry *deck = deps->entry->deck;
    if (!name || !*name || location > TRL_NODE)
        return trl_fail(model->ctx, TRL_ERR_PLUGIN, &deck->place,
                        "type '%s' advertises a tag without a name or with an unknown location", deck->type->name);
    if (find_own(*n, *list, name) >= 0)
        return trl_fail(model->ctx, TRL_ERR_PLUGIN, &deck->place, "type '%s' advertises '%s' twice", deck->type->name,
                        name);
    if (!trli_make_room(model->ctx, list, *n, 1, capacity, sizeof **list))
        return trli_no_memory(model->ctx, &deck->place, "for the tags of type '%s'", deck->type->name);
    const char *own = trli_model_name(model, "%s", name);
    (*list)[*n] = (trli_advertised){.own_name = own,
                                    .tag = own,
                                    .component = -1,
                                    .symbol = -1,
                                    .location = trl_location_on(location, model->layout->grid.dim)};
    *added = &(*list)[(*n)++];
    return model->ir.err;
}

trl_err trl_deps_compute(trl_deps *deps, const char *name, trl_location location)
{
    trli_advertised *added = NULL;
    if (!deps) return TRL_ERR_USAGE;
    return advertise(deps, &deps->entry->computed, &deps->entry->ncomputed, &deps->entry->computed_capacity, name,
                     location, &added);
}

trl_err trl_deps_require(trl_deps *deps, const char *name, trl_location location, const int lo[3], const int hi[3])
{
    trli_advertised *added = NULL;
    if (!deps) return TRL_ERR_USAGE;
    trl_err err = advertise(deps, &deps->entry->required, &deps->entry->nrequired, &deps->entry->required_capacity,
                            name, location, &added);
    for (int a = 0; err == TRL_OK && a < deps->model->layout->grid.dim; ++a) {
        int low = lo ? lo[a] : 0, high = hi ? hi[a] : 0;
        if (low < -16 || high > 16 || low > high)
            return trl_fail(deps->model->ctx, TRL_ERR_PLUGIN, &deps->entry->deck->place,
                            "type '%s' requires '%s' at offsets %d..%d; they must be ordered and within -16..16",
                            deps->entry->deck->type->name, name, low, high);
        added->reach.lo[a] = (int8_t)low;
        added->reach.hi[a] = (int8_t)high;
    }
    return err;
}

trl_err trl_binding_operator(const trl_binding *binding, const trl_operator_desc *desc, const trl_operator **op)
{
    trl_operator *made;
    if (!binding || !desc || !op) return TRL_ERR_USAGE;
    trl_context *ctx = binding->model->ctx;
    trli_entry *entry = binding->entry;
    *op = NULL;
    if (!trli_make_room(ctx, &entry->op, entry->nops, 1, &entry->ops_capacity, sizeof *entry->op))
        return trli_no_memory(ctx, &entry->deck->place, "for the operators of type '%s'", entry->deck->type->name);
    trl_err err = trl_operator_create(ctx, &binding->model->layout->grid, desc, &made);
    if (err == TRL_OK) *op = entry->op[entry->nops++] = made;
    return err;
}

/* Whether this thread has recorded an error, or all ranks know one and have not met since: until then what they agree
 * on is that one, without a message. */
static bool is_explained(trl_context *ctx)
{
    const trl_diagnostic *d;
    const int n = trl_context_diagnostics(ctx, &d);
    bool any = trli_diagnostics_said();
    for (int i = 0; i < n && trli_agree_failed(ctx); ++i) any |= d[i].severity == TRL_ERROR;
    return any;
}

trl_err trli_plugin_failed(trli_model *model, const trli_entry *entry, const char *method, trl_err err)
{
    if (is_explained(model->ctx)) return err;
    return trl_fail(model->ctx, TRL_ERR_PLUGIN, &entry->deck->place, "%s of type '%s' failed (%s) without a message",
                    method, entry->deck->type->name, trl_err_meaning(err));
}

/* Give the tags the deck's names. */
static trl_err rename_tags(trli_model *model, trli_entry *entry)
{
    const trl_expression_entry *deck = entry->deck;
    if (deck->ncomputes > 0 && deck->ncomputes != entry->ncomputed)
        return trl_fail(model->ctx, TRL_ERR_INPUT, &deck->place, "type '%s' computes %d tag%s, but `computes` names %d",
                        deck->type->name, entry->ncomputed, entry->ncomputed == 1 ? "" : "s", deck->ncomputes);
    for (int i = 0; i < deck->ncomputes; ++i) entry->computed[i].tag = deck->computes[i];
    for (int i = 0; i < deck->ninputs; ++i) {
        int r = find_own(entry->nrequired, entry->required, deck->input_own[i]);
        if (r < 0)
            return trl_fail(model->ctx, TRL_ERR_INPUT, &deck->place, "type '%s' requires no '%s'%s%s", deck->type->name,
                            deck->input_own[i], entry->nrequired ? "; it requires " : "",
                            entry->nrequired ? entry->required[0].own_name : "");
        entry->required[r].tag = deck->input_tag[i];
    }
    return TRL_OK;
}

/* Copy what steps need to call an entry. */
static trl_err make_opaque(trli_model *model, trli_entry *entry)
{
    const trl_expression_entry *deck = entry->deck;
    const trl_expr_type *type = deck->type;
    trl_footprint *reach = trli_model_keep(model, ((size_t)entry->nrequired + 1) * sizeof *reach);
    trli_opaque *opaque = trli_model_keep(model, sizeof *opaque);
    const char *name = trli_model_name(model, "%s", type->name);
    const bool cpu = deck->device == TRL_TARGET_CPU;
    bool one_location = true;
    if (!reach || !opaque || !name) return model->ir.err;
    for (int c = 1; c < entry->ncomputed; ++c)
        one_location &= entry->computed[c].location == entry->computed[0].location;
    for (int r = 0; r < entry->nrequired; ++r) reach[r] = (trl_footprint){.n = 1, .part = {entry->required[r].reach}};
    *opaque = (trli_opaque){.number = model->nopaques++,
                            .name = deck->name,
                            .type = name,
                            .place = deck->place,
                            .flags = type->flags,
                            .scratch_bytes = type->scratch_bytes,
                            .state = entry->state,
                            .evaluate = type->evaluate,
                            .stable_dt = type->stable_dt,
                            .cuda = {[TRLI_FORM_EVALUATE] = cpu ? NULL : type->evaluate_cuda,
                                     [TRLI_FORM_STABLE_DT] = cpu ? NULL : type->stable_dt_cuda},
                            .cuda_only = deck->device == TRL_TARGET_GPU,
                            .location = entry->computed[0].location,
                            .ninputs = entry->nrequired,
                            .noutputs = entry->ncomputed,
                            .one_location = one_location,
                            .reach = reach};
    entry->opaque = opaque;
    return TRL_OK;
}

static trl_err make_state(trli_model *model, trli_entry *entry)
{
    const trl_expression_entry *deck = entry->deck;
    const trl_expr_type *type = deck->type;
    const trl_setup_args args = {model->ctx, &model->layout->grid, model->layout, deck->params, deck->place};
    entry->state = trli_new(model->ctx, 1, type->state_size ? type->state_size : 1);
    if (!entry->state) return trli_no_memory(model->ctx, &deck->place, "for the state of type '%s'", type->name);
    entry->state_ready = true; /* teardown follows setup, whatever setup returns */
    const trl_err err = type->setup ? type->setup(entry->state, &args) : TRL_OK;
    return err == TRL_OK ? TRL_OK : trli_plugin_failed(model, entry, "setup", err);
}

/* A coarser grid evaluates only what formulas and device-neutral types give: others may not fit it, as a file's field
 * does not. */
trl_err trli_entry_setup(trli_model *model, trli_entry *entry)
{
    const trl_expression_entry *deck = entry->deck;
    const trl_expr_type *type = deck->type;
    const bool shared = entry->finer && !(type->flags & TRL_EXPR_NEUTRAL);
    trl_deps deps = {model, entry};
    const trl_binding binding = {model, entry};
    trl_err err = TRL_OK;
    (void)trli_diagnostics_said(); /* earlier messages are not this entry's */
    if (shared)
        entry->state = entry->finer->state;
    else
        TRL_TRY(make_state(model, entry));
    if ((err = type->advertise_dependents(entry->state, &deps)) != TRL_OK)
        return trli_plugin_failed(model, entry, "advertise_dependents", err);
    if (entry->ncomputed == 0)
        return trl_fail(model->ctx, TRL_ERR_PLUGIN, &deck->place, "type '%s' advertises no computed tag", type->name);
    TRL_TRY(rename_tags(model, entry));
    if (!shared && type->bind_fields && (err = type->bind_fields(entry->state, &binding)) != TRL_OK)
        return trli_plugin_failed(model, entry, "bind_fields", err);
    if (!shared && type->bind_operators && (err = type->bind_operators(entry->state, &binding)) != TRL_OK)
        return trli_plugin_failed(model, entry, "bind_operators", err);
    entry->neutral = type->flags & TRL_EXPR_NEUTRAL;
    if (!entry->neutral) err = make_opaque(model, entry);
done:
    return err;
}

void trli_entry_free(trli_entry *entry)
{
    if (entry->state_ready && entry->deck->type->teardown) entry->deck->type->teardown(entry->state);
    if (entry->state_ready) trli_free(entry->state);
    for (int i = 0; i < entry->nops; ++i) trl_operator_destroy(&entry->op[i]);
    trli_free(entry->op);
    trli_free(entry->computed);
    trli_free(entry->required);
    for (int i = 0; entry->formula && i < entry->nformulas; ++i) trl_formula_destroy(&entry->formula[i]);
    trli_free(entry->formula);
}
