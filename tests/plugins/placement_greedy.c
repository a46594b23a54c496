/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* A placement policy: each task, in serial order, to the executor that has it done soonest, copies of what it reads
 * included. It looks at no other task, and not at memory. */
#include <math.h>
#include <string.h>

#include <trl_policy.h>

/* [handles] the executor that wrote the data last. */
static trl_err setup(const trl_placement_problem *view, void **state)
{
    return trl_memory_alloc(view->ctx, (size_t)view->handles + 1, "a placement policy", state);
}

static void teardown(trl_context *ctx, void **state)
{
    trl_memory_free(ctx, state);
}

static double seconds_on(const trl_placement_problem *view, const uint8_t *home, int32_t t, int e)
{
    double seconds = view->seconds[(size_t)t * (size_t)view->executors + (size_t)e];
    for (int32_t a = view->access_first[t]; a < view->access_first[t + 1]; ++a) {
        const int32_t h = view->access[a].handle;
        if (view->access[a].mode != TRL_WRITE)
            seconds += trl_placement_copy_seconds(view, home[h], e, view->handle[h].bytes);
    }
    return seconds;
}

static trl_err place(void *state, const trl_placement_problem *view, uint8_t *executor)
{
    uint8_t *home = state;
    memset(home, 0, (size_t)view->handles);
    for (int32_t t = 0; t < view->tasks; ++t) {
        double least = INFINITY;
        executor[t] = executor[view->unit[t]]; /* of the first of its unit, for the others */
        for (int e = 0; e < view->executors && view->unit[t] == t; ++e) {
            const double seconds = view->eligible[t] >> e & 1 ? seconds_on(view, home, t, e) : INFINITY;
            if (seconds < least) {
                least = seconds;
                executor[t] = (uint8_t)e;
            }
        }
        for (int32_t a = view->access_first[t]; a < view->access_first[t + 1]; ++a)
            if (view->access[a].mode != TRL_READ) home[view->access[a].handle] = executor[t];
    }
    return TRL_OK;
}

const trl_placement_policy trl_placement_plugin = {
    .size = sizeof(trl_placement_policy),
    .abi = TRL_POLICY_ABI,
    .name = "greedy",
    .setup = setup,
    .place = place,
    .teardown = teardown,
};
