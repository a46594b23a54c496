/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* A type of expression that advertises a value and does not compute it, for plugins whose descriptor is the test. */
#ifndef IDLE_TYPE_H
#define IDLE_TYPE_H

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

#define IDLE_TYPE(type)                                                                         \
    {                                                                                           \
        .abi = TRL_PLUGIN_ABI, .size = sizeof(trl_expr_type), .name = type, .doc = "for tests", \
        .advertise_dependents = advertise_dependents, .evaluate = evaluate                      \
    }

#endif
