/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The name of a type that two_types.c has too. */
#include "idle_type.h"

static const trl_expr_type types[] = {IDLE_TYPE("second_type")};

TRL_API const trl_plugin trl_plugin_entry = {
    TRL_PLUGIN_ABI, sizeof(trl_plugin), sizeof(trl_expr_type), "duplicate_type", types, 1,
};
