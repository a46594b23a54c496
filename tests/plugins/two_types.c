/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* A plugin as it should be, with two types. */
#include "idle_type.h"

static const trl_expr_type types[] = {IDLE_TYPE("first_type"), IDLE_TYPE("second_type")};

TRL_API const trl_plugin trl_plugin_entry = {
    TRL_PLUGIN_ABI, sizeof(trl_plugin), sizeof(trl_expr_type), "two_types", types, 2,
};
