/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The policies. */
#ifndef TRL_POLICY_IMPL_H
#define TRL_POLICY_IMPL_H

#include <trl_policy.h>

/* Find the policy of a name; library: of a plugin, to be closed by the caller. */
TRL_NODISCARD trl_err trli_policy_find(trl_context *ctx, const char *name, const trl_policy **policy, void **library);
void trli_policy_close(void *library);

extern const trl_policy trli_policy_serial, trli_policy_priority;

#endif
