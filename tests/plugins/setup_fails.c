/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* A type that fails: in setup when its parameter says so, else in evaluate. */
#include <trl_plugin.h>

static const trl_param_desc params[] = {
    {.key = "late", .kind = TRL_PARAM_BOOL, .doc = "fail in evaluate, not in setup"},
    {0},
};

static trl_err setup(void *state, const trl_setup_args *args)
{
    (void)state;
    if (args->params[0].number != 0) return TRL_OK;
    return trl_fail(args->ctx, TRL_ERR_PLUGIN, &args->place, "this type refuses its set-up");
}

static trl_err advertise_dependents(const void *state, trl_deps *deps)
{
    (void)state;
    return trl_deps_compute(deps, "value", TRL_CELL);
}

static trl_err evaluate(const void *state, const trl_eval_args *args, const trl_box *box)
{
    (void)state, (void)box;
    return trl_fail(args->ctx, TRL_ERR_PLUGIN, NULL, "this type refuses to evaluate");
}

static const trl_expr_type types[] = {
    {
        .abi = TRL_PLUGIN_ABI,
        .size = sizeof(trl_expr_type),
        .name = "setup_fails",
        .doc = "for tests",
        .params = params,
        .setup = setup,
        .advertise_dependents = advertise_dependents,
        .evaluate = evaluate,
    },
};

TRL_API const trl_plugin trl_plugin_entry = {
    TRL_PLUGIN_ABI, sizeof(trl_plugin), sizeof(trl_expr_type), "setup_fails", types, 1,
};
