/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Policies that are refused: the variable TRL_TEST_POLICY says what is wrong. */
#include <stdlib.h>
#include <string.h>

#include <trl_policy.h>

static trl_err setup(const trl_policy_graph *graph, void **state)
{
    trl_err err = trl_memory_alloc(graph->ctx, 64, "half a policy", state);
    return err == TRL_OK ? trl_fail(graph->ctx, TRL_ERR_DEVICE, NULL, "this policy wants another machine") : err;
}

static void teardown(const trl_policy_graph *graph, void **state)
{
    trl_memory_free(graph->ctx, state);
}

static void ready(void *state, int worker, int32_t task, int urgency)
{
    (void)state, (void)worker, (void)task, (void)urgency;
}

static int32_t take(void *state, int worker)
{
    (void)state, (void)worker;
    return -1;
}

static bool holds(void *state)
{
    (void)state;
    return false;
}

TRL_API extern trl_policy trl_policy_plugin;

trl_policy trl_policy_plugin = {
    sizeof(trl_policy), TRL_POLICY_ABI, "bad", false, false, setup, teardown, NULL, ready, take, holds, NULL, NULL};

__attribute__((constructor)) static void spoil(void)
{
    trl_policy *policy = &trl_policy_plugin;
    const char *bad = getenv("TRL_TEST_POLICY");
    if (bad == NULL) return;
    if (strcmp(bad, "abi") == 0) policy->abi = TRL_POLICY_ABI + 6;
    if (strcmp(bad, "size") == 0) policy->size = 8;
    if (strcmp(bad, "name") == 0) policy->name = NULL;
    if (strcmp(bad, "setup") == 0) policy->setup = NULL;
    if (strcmp(bad, "teardown") == 0) policy->teardown = NULL;
    if (strcmp(bad, "ready") == 0) policy->ready = NULL;
    if (strcmp(bad, "take") == 0) policy->take = NULL;
    if (strcmp(bad, "holds") == 0) policy->holds = NULL;
}
