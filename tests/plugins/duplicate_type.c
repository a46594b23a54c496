/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The name of a type that two_types.c has too. */
#include <trl_plugin.h>

static trl_err advertise_dependents(const void *state, trl_deps *deps)
{
    (void)state;
    return trl_deps_compute(deps, "value", TRL_CELL);
}

static trl_err evaluate(const void *state, const trl_eval_args *args, const trl_box *box)
{
    (void)state, (void)args, (void)box;
    return TRL_OK;
}

static const trl_expr_type types[] = {
    {
        .abi = TRL_PLUGIN_ABI,
        .size = sizeof(trl_expr_type),
        .name = "second_type",
        .doc = "for tests",
        .advertise_dependents = advertise_dependents,
        .evaluate = evaluate,
    },
};

TRL_API const trl_plugin trl_plugin_entry = {
    TRL_PLUGIN_ABI, sizeof(trl_plugin), sizeof(trl_expr_type), "duplicate_type", types, 1,
};
