/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The policies. */
#ifndef TRL_POLICY_IMPL_H
#define TRL_POLICY_IMPL_H

#include <trl_policy.h>

typedef struct trli_policies {
    const trl_policy *queue;
    const trl_placement_policy *placement; /* NULL: the built-in ones */
    void *library;                         /* of a plugin, to be closed; else NULL */
} trli_policies;

/* Find the policies of a name. Fails with INPUT, PLUGIN. */
TRL_NODISCARD trl_err trli_policy_find(trl_context *ctx, const char *name, trli_policies *policies);
void trli_policy_close(void *library);

extern const trl_policy trli_policy_serial, trli_policy_priority;

#endif
