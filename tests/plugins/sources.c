/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* A source of 1 everywhere, by a type that says that equal inputs give equal bits, and by one that does not. */
#include <trl_plugin.h>

static trl_err advertise(const void *state, trl_deps *deps)
{
    (void)state;
    return trl_deps_compute(deps, "value", TRL_CELL);
}

static trl_err evaluate(const void *state, const trl_eval_args *args, const trl_box *box)
{
    const trl_array *source = &args->computed[0];
    (void)state;
    for (trl_lidx k = box->lo[2]; k < box->hi[2]; ++k)
        for (trl_lidx j = box->lo[1]; j < box->hi[1]; ++j)
            for (trl_lidx i = box->lo[0]; i < box->hi[0]; ++i)
                ((double *)source->at)[trl_array_offset(source, i, j, k)] = 1;
    return TRL_OK;
}

#define SOURCE(text, flag)                                                                                     \
    {                                                                                                          \
        .abi = TRL_PLUGIN_ABI, .size = sizeof(trl_expr_type), .name = text, .doc = "for tests", .flags = flag, \
        .advertise_dependents = advertise, .evaluate = evaluate                                                \
    }

static const trl_expr_type types[] = {SOURCE("pure_source", TRL_EXPR_PURE), SOURCE("impure_source", 0)};

TRL_API const trl_plugin trl_plugin_entry = {
    TRL_PLUGIN_ABI, sizeof(trl_plugin), sizeof(trl_expr_type), "sources", types, 2,
};
