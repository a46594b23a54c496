/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* A type whose evaluation never ends; it says in a file that it began. */
#include <stdio.h>

#include <trl_plugin.h>

static trl_err advertise_dependents(const void *state, trl_deps *deps)
{
    (void)state;
    return trl_deps_compute(deps, "value", TRL_CELL);
}

static trl_err evaluate(const void *state, const trl_eval_args *args, const trl_box *box)
{
    volatile bool ends = false;
    FILE *file = fopen("evaluating.txt", "w");
    (void)state, (void)args, (void)box;
    if (file) {
        fputs("it began\n", file);
        fclose(file);
    }
    while (!ends) continue;
    return TRL_OK;
}

static const trl_expr_type types[] = {
    {
        .abi = TRL_PLUGIN_ABI,
        .size = sizeof(trl_expr_type),
        .name = "endless",
        .doc = "for tests",
        .advertise_dependents = advertise_dependents,
        .evaluate = evaluate,
    },
};

TRL_API const trl_plugin trl_plugin_entry = {
    TRL_PLUGIN_ABI, sizeof(trl_plugin), sizeof(trl_expr_type), "endless", types, 1,
};
