/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Calls a function that no library has. */
#include <trl_plugin.h>

trl_err trl_function_of_a_later_version(void);

static trl_err advertise_dependents(const void *state, trl_deps *deps)
{
    (void)state;
    return trl_deps_compute(deps, "value", TRL_CELL);
}

static trl_err evaluate(const void *state, const trl_eval_args *args, const trl_box *box)
{
    (void)state, (void)args, (void)box;
    return trl_function_of_a_later_version();
}

static const trl_expr_type types[] = {
    {
        .abi = TRL_PLUGIN_ABI,
        .size = sizeof(trl_expr_type),
        .name = "later_type",
        .doc = "for tests",
        .advertise_dependents = advertise_dependents,
        .evaluate = evaluate,
    },
};

TRL_API const trl_plugin trl_plugin_entry = {
    TRL_PLUGIN_ABI, sizeof(trl_plugin), sizeof(trl_expr_type), "undefined_symbol", types, 1,
};
