/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* A registry with one expression type, for tests of decks. */
#ifndef SAMPLE_TYPES_H
#define SAMPLE_TYPES_H

#include <trl_registry.h>

static trl_err sample_advertise(const void *state, trl_deps *deps)
{
    (void)state;
    (void)deps;
    return TRL_OK;
}

static trl_err sample_evaluate(const void *state, const trl_eval_args *args, const trl_box *box)
{
    (void)state;
    (void)args;
    (void)box;
    return TRL_OK;
}

static trl_err sample_bind(void *state, const trl_binding *binding)
{
    (void)state;
    (void)binding;
    return TRL_OK;
}

static const trl_param_desc sample_params[] = {
    {.key = "A", .kind = TRL_PARAM_NUMBER, .required = true, .unit = "1/s", .doc = "rate", .min = 0, .max = 1e9},
    {.key = "Ea", .kind = TRL_PARAM_NUMBER, .unit = "", .doc = "activation energy", .fallback = 12.5},
    {.key = "order",
     .kind = TRL_PARAM_INTEGER,
     .unit = "",
     .doc = "order of the reaction",
     .fallback = 1,
     .min = 1,
     .max = 3},
    {.key = "reversible", .kind = TRL_PARAM_BOOL, .unit = "", .doc = "both ways", .fallback = 1},
    {.key = "label", .kind = TRL_PARAM_TEXT, .unit = "", .doc = "a name", .text = "none"},
    {.key = "path", .kind = TRL_PARAM_PATH, .unit = "", .doc = "a table"},
    {.key = NULL},
};

static const trl_expr_type sample_type = {
    .abi = TRL_PLUGIN_ABI,
    .size = sizeof(trl_expr_type),
    .name = "arrhenius",
    .doc = "a reaction",
    .params = sample_params,
    .advertise_dependents = sample_advertise,
    .bind_fields = sample_bind,
    .evaluate = sample_evaluate,
};

static inline trl_err sample_registry(trl_registry **registry)
{
    trl_err err = trl_registry_create(test_ctx, registry);
    return err == TRL_OK ? trl_registry_add(*registry, &sample_type, "built-in", NULL) : err;
}

#endif
