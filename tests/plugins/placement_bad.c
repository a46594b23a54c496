/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Placement policies that are refused, or do what they must not: the variable TRL_TEST_PLACEMENT says what. A policy of
 * queues is exported, too. */
#include <stdlib.h>
#include <string.h>

#include <trl_policy.h>

#include "policy_lifo.c"

static bool does(const char *what)
{
    const char *asked = getenv("TRL_TEST_PLACEMENT");
    return asked && strcmp(asked, what) == 0;
}

static trl_err begin(const trl_placement_problem *view, void **state)
{
    const trl_err err = trl_memory_alloc(view->ctx, 64, "half a policy", state);
    if (err != TRL_OK || !does("no setup")) return err;
    return trl_fail(view->ctx, TRL_ERR_INPUT, NULL, "this policy wants other graphs");
}

static void end(trl_context *ctx, void **state)
{
    trl_memory_free(ctx, state);
}

/* The last executor does what it may, unless something else is asked for. */
static trl_err place(void *state, const trl_placement_problem *view, uint8_t *executor)
{
    const int last = view->executors - 1;
    (void)state;
    for (int32_t t = 0; t < view->tasks; ++t) {
        executor[t] = (uint8_t)(view->eligible[t] >> last & 1 ? last : 0);
        if (does("unit") && view->unit[t] != t) executor[t] = 0;
        if (does("ineligible") && !(view->eligible[t] >> last & 1)) executor[t] = (uint8_t)last;
        if (does("executor")) executor[t] = 9;
    }
    return does("silence") ? TRL_ERR_NUMERICS : TRL_OK;
}

TRL_API extern trl_placement_policy trl_placement_plugin;

trl_placement_policy trl_placement_plugin = {sizeof(trl_placement_policy), TRL_POLICY_ABI, "bad", begin, place, end};

__attribute__((constructor)) static void spoil(void)
{
    trl_placement_policy *policy = &trl_placement_plugin;
    if (does("abi")) policy->abi = TRL_POLICY_ABI - 1;
    if (does("size")) policy->size = 8;
    if (does("name")) policy->name = NULL;
    if (does("place")) policy->place = NULL;
}
