/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The memory of every field of a rank: blocks of (tag, patch), registered first, given memory at first use from pools of size classes. */
#ifndef TRL_FIELD_MANAGER_H
#define TRL_FIELD_MANAGER_H

#include <trl_field.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Blocks that are still registered are released. */
TRL_API TRL_NODISCARD trl_err trl_field_manager_create(trl_context *ctx, trl_field_manager **manager);
TRL_API void trl_field_manager_destroy(trl_field_manager **manager);

#ifdef __cplusplus
}
#endif
#endif
