/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Typed entries: the four-method contract of expression types, from the compiler's side. */
#include <stdlib.h>
#include <string.h>

#include "instance_impl.h"
#include "model_impl.h"
#include "symbols_impl.h"

struct trl_deps {
    trli_model *model;
    trli_entry *entry;
};

struct trl_binding {
    const trli_model *model;
    const trli_entry *entry;
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

static trl_err advertise(trl_deps *deps, trli_advertised **list, int *n, const char *name, trl_location location,
                         trli_advertised **added)
{
    trli_model *model = deps->model;
    const trl_expression_entry *deck = deps->entry->deck;
    if (!name || !*name || location > TRL_NODE)
        return trl_fail(model->ctx, TRL_ERR_PLUGIN, &deck->place,
                        "type '%s' advertises a tag without a name or with an unknown location", deck->type->name);
    if (find_own(*n, *list, name) >= 0)
        return trl_fail(model->ctx, TRL_ERR_PLUGIN, &deck->place, "type '%s' advertises '%s' twice", deck->type->name,
                        name);
    trli_advertised *longer = realloc(*list, ((size_t)*n + 1) * sizeof *longer);
    if (!longer)
        return trl_fail(model->ctx, TRL_ERR_MEMORY, &deck->place, "no memory for the tags of type '%s'",
                        deck->type->name);
    *list = longer;
    const char *own = trli_model_name(model, "%s", name);
    longer[*n] = (trli_advertised){.own_name = own,
                                   .tag = own,
                                   .component = -1,
                                   .symbol = -1,
                                   .location = trl_location_on(location, model->layout->grid.dim)};
    *added = &longer[(*n)++];
    return model->ir.err;
}

trl_err trl_deps_compute(trl_deps *deps, const char *name, trl_location location)
{
    trli_advertised *added = NULL;
    if (!deps) return TRL_ERR_USAGE;
    return advertise(deps, &deps->entry->computed, &deps->entry->ncomputed, name, location, &added);
}

trl_err trl_deps_require(trl_deps *deps, const char *name, trl_location location, const int lo[3], const int hi[3])
{
    trli_advertised *added = NULL;
    if (!deps) return TRL_ERR_USAGE;
    trl_err err = advertise(deps, &deps->entry->required, &deps->entry->nrequired, name, location, &added);
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

/* A failing method of a plugin must have said why; if not, say which one it was. */
static trl_err method_failed(trli_model *model, const trli_entry *entry, const char *method, trl_err err,
                             int said_before)
{
    const trl_diagnostic *d;
    if (trl_context_diagnostics(model->ctx, &d) > said_before) return err;
    return trl_fail(model->ctx, TRL_ERR_PLUGIN, &entry->deck->place, "%s of type '%s' failed (%s) without a message",
                    method, entry->deck->type->name, trl_err_meaning(err));
}

static int messages(const trli_model *model)
{
    const trl_diagnostic *d;
    return trl_context_diagnostics(model->ctx, &d);
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

trl_err trli_entry_setup(trli_model *model, trli_entry *entry)
{
    const trl_expression_entry *deck = entry->deck;
    const trl_expr_type *type = deck->type;
    const trl_setup_args args = {model->ctx, &model->layout->grid, model->layout, deck->params, deck->place};
    trl_deps deps = {model, entry};
    const trl_binding binding = {model, entry};
    trl_err err = TRL_OK;
    int said = messages(model);
    entry->state = calloc(1, type->state_size ? type->state_size : 1);
    if (!entry->state)
        return trl_fail(model->ctx, TRL_ERR_MEMORY, &deck->place, "no memory for the state of type '%s'", type->name);
    entry->state_ready = true; /* teardown follows setup, whatever setup returns */
    if (type->setup && (err = type->setup(entry->state, &args)) != TRL_OK)
        return method_failed(model, entry, "setup", err, said);
    if ((err = type->advertise_dependents(entry->state, &deps)) != TRL_OK)
        return method_failed(model, entry, "advertise_dependents", err, said);
    if (entry->ncomputed == 0)
        return trl_fail(model->ctx, TRL_ERR_PLUGIN, &deck->place, "type '%s' advertises no computed tag", type->name);
    TRL_TRY(rename_tags(model, entry));
    if (type->bind_fields && (err = type->bind_fields(entry->state, &binding)) != TRL_OK)
        return method_failed(model, entry, "bind_fields", err, said);
    if (type->bind_operators && (err = type->bind_operators(entry->state, &binding)) != TRL_OK)
        return method_failed(model, entry, "bind_operators", err, said);
done:
    return err;
}

void trli_entry_free(trli_entry *entry)
{
    if (entry->state_ready && entry->deck->type->teardown) entry->deck->type->teardown(entry->state);
    free(entry->state);
    free(entry->computed);
    free(entry->required);
    for (int i = 0; entry->formula && i < entry->nformulas; ++i) trl_formula_destroy(&entry->formula[i]);
    free(entry->formula);
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
        r->symbol = (int)(symbol - model->symbol);
    }
    return TRL_OK;
}

static trl_err input_field(trli_instance *in, const trli_entry *entry, const trli_advertised *r, int *field)
{
    trli_model *model = in->model;
    trli_operand operand;
    trl_err err = TRL_OK;
    const trl_place *place = &entry->deck->place;
    TRL_TRY(trli_lower_symbol(in, &model->symbol[r->symbol], NULL, NULL, &operand));
    int c = r->component < 0 ? 0 : r->component;
    if (operand.components && r->component < 0)
        return trl_fail(model->ctx, TRL_ERR_INPUT, place,
                        "'%s' is a vector, and type '%s' requires a scalar: name a component, %s.x", r->tag,
                        entry->deck->type->name, r->tag);
    if (operand.location[c] != TRLI_ANYWHERE && operand.location[c] != (int)r->location)
        return trl_fail(model->ctx, TRL_ERR_INPUT, place, "'%s' is at %s, and type '%s' requires it at %s", r->tag,
                        trl_location_name((trl_location)operand.location[c]), entry->deck->type->name,
                        trl_location_name(r->location));
    trli_value v = trli_ir_place(&model->ir, operand.value[c], r->location);
    const trli_node *n = trli_ir_node(&model->ir, v);
    if (n->op == TRLI_OP_FIELD)
        *field = n->index;
    else
        TRL_TRY(trli_program_store(in->program, r->tag, "a plugin reads it", v, r->location, NULL, field));
done:
    return err;
}

trl_err trli_plugin_inputs(trli_instance *instance, int e, int **fields)
{
    trli_entry *entry = &instance->model->entry[e];
    trl_err err = TRL_OK;
    *fields = trli_model_keep(instance->model, ((size_t)entry->nrequired + 1) * sizeof **fields);
    if (!*fields) return instance->model->ir.err;
    for (int i = 0; i < entry->nrequired; ++i)
        TRL_TRY(input_field(instance, entry, &entry->required[i], &(*fields)[i]));
done:
    return err;
}

trl_err trli_plugin_add(trli_instance *instance, int e)
{
    trli_model *model = instance->model;
    trli_entry *entry = &model->entry[e];
    const trl_expression_entry *deck = entry->deck;
    int *inputs, *outputs = trli_model_keep(model, (size_t)entry->ncomputed * sizeof *outputs);
    trl_err err = TRL_OK;
    if (!outputs) return model->ir.err;
    TRL_TRY(trli_plugin_inputs(instance, e, &inputs));
    for (int i = 0; i < entry->ncomputed; ++i) {
        outputs[i] = trli_model_add_field(model, entry->computed[i].tag, entry->computed[i].location);
        if (outputs[i] < 0) return model->ir.err;
        trli_field *f = &model->field[outputs[i]];
        f->exchanged = !(deck->type->flags & TRL_EXPR_POINTWISE) || entry->has_boundary;
        f->boundary =
            (trli_boundary_source){entry->has_boundary ? deck->boundary : NULL, deck->names, deck->name, deck->place};
    }
    trli_step *step = trli_program_append(instance->program, TRLI_STEP_PLUGIN, deck->name);
    if (!step) return model->ir.err;
    step->nout = entry->ncomputed;
    step->field = outputs;
    step->plugin = (trli_plugin_step){
        .entry = e, .location = entry->computed[0].location, .ninputs = entry->nrequired, .input = inputs};
    step->time_scalar = instance->time_scalar;
    step->stage = instance->stage;
    instance->plugin_field[e] = outputs;
    for (int i = 0; i < entry->ncomputed; ++i)
        if (model->field[outputs[i]].exchanged) TRL_TRY(trli_instance_fill_field(instance, outputs[i]));
done:
    return err;
}

trl_err trli_plugin_stable_dt(trli_instance *instance, int e, int *scalar)
{
    trli_model *model = instance->model;
    trli_entry *entry = &model->entry[e];
    int *inputs;
    trl_err err = TRL_OK;
    TRL_TRY(trli_plugin_inputs(instance, e, &inputs));
    *scalar = trli_model_add_scalar(model, 0);
    trli_step *step = trli_program_append(instance->program, TRLI_STEP_STABLE_DT, entry->deck->name);
    if (*scalar < 0 || !step) return model->ir.err;
    step->scalar = *scalar;
    step->plugin = (trli_plugin_step){
        .entry = e, .location = entry->computed[0].location, .ninputs = entry->nrequired, .input = inputs};
    step->time_scalar = instance->time_scalar;
done:
    return err;
}
