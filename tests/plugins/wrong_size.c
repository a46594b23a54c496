/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The right abi, with a descriptor of another size. */
#include "idle_type.h"

static const trl_expr_type types[] = {IDLE_TYPE("some_type")};

TRL_API const trl_plugin trl_plugin_entry = {
    TRL_PLUGIN_ABI, sizeof(trl_plugin), sizeof(trl_expr_type) + 8, "wrong_size", types, 1,
};
