/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* As if built for another version of the plugin contract. */
#include "idle_type.h"

static const trl_expr_type types[] = {IDLE_TYPE("some_type")};

TRL_API const trl_plugin trl_plugin_entry = {
    TRL_PLUGIN_ABI + 6, sizeof(trl_plugin), sizeof(trl_expr_type), "wrong_abi", types, 1,
};
