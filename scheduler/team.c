/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Devices that work on something together, in each other's memory: between rounds each waits for fences of all others.
 * Fences of two works take turns, since the host may be ahead of the devices by one. */
#include <sched.h>

#include "memory_impl.h"
#include "team_impl.h"

enum { TURNS = 2, ROUNDS = 8 };

struct trli_team {
    const trl_devices *all;
    int n;
    trl_device *device[TRL_DEVICES_MAX];
    trli_fence *fence[TURNS][ROUNDS][TRL_DEVICES_MAX]; /* NULL: made when needed */
    int turn, round;
};

trl_err trli_team_create(const trl_devices *devices, uint32_t spaces, trli_team **team)
{
    trli_team *t = *team = trli_new(devices->ctx, 1, sizeof *t);
    if (!t) return trli_no_memory(devices->ctx, NULL, "for devices that work together");
    t->all = devices;
    for (int i = 0; i < devices->n; ++i)
        if (spaces >> devices->device[i]->space & 1) t->device[t->n++] = devices->device[i];
    return TRL_OK;
}

void trli_team_destroy(trli_team **team)
{
    trli_team *t = *team;
    *team = NULL;
    if (!t) return;
    for (int turn = 0; turn < TURNS; ++turn)
        for (int r = 0; r < ROUNDS; ++r)
            for (int m = 0; m < t->n; ++m) t->device[m]->ops->fence_destroy(t->device[m], t->fence[turn][r][m]);
    trli_free(t);
}

int trli_team_members(const trli_team *team)
{
    return team->n;
}

trl_device *trli_team_member(const trli_team *team, int member)
{
    return team->device[member];
}

trl_err trli_team_begin(trli_team *t)
{
    trl_err err = TRL_OK;
    t->turn = (t->turn + 1) % TURNS;
    t->round = 0;
    for (int m = 0; m < t->n; ++m) TRL_TRY(trli_device_wait_for_others(t->device[m]));
done:
    return err;
}

trl_err trli_team_call(const trli_team *t, int member, trl_task_fn run, void *data)
{
    trl_device *device = t->device[member];
    const trl_task_args args = {.chunks = 1, .space = device->space};
    trli_outcome outcome = {0};
    trl_err err;
    TRL_TRY(device->ops->call(device, TRLI_STREAM_COMPUTE, run, data, &args, (trli_ticket){&outcome, 0}));
    err = trli_outcome_err(&outcome);
done:
    return err;
}

/* Fences of all members behind what they were given. */
static trl_err set_fences(trli_team *t, trli_fence ***fence)
{
    trl_err err = TRL_OK;
    *fence = t->fence[t->turn][t->round % ROUNDS];
    ++t->round;
    for (int m = 0; m < t->n; ++m) {
        trl_device *device = t->device[m];
        if (!(*fence)[m]) TRL_TRY(device->ops->fence_create(device, false, &(*fence)[m]));
        TRL_TRY(device->ops->set(device, TRLI_STREAM_COMPUTE, (*fence)[m]));
    }
done:
    return err;
}

trl_err trli_team_meet(trli_team *t)
{
    trli_fence **fence;
    trl_err err = TRL_OK;
    if (t->n == 1) return TRL_OK;
    TRL_TRY(set_fences(t, &fence));
    for (int m = 0; m < t->n; ++m)
        for (int o = 0; o < t->n; ++o)
            if (o != m) TRL_TRY(t->device[m]->ops->wait(t->device[m], TRLI_STREAM_COMPUTE, fence[o]));
done:
    return err;
}

trl_err trli_team_wait(trli_team *t)
{
    trli_fence **fence;
    trl_err err;
    TRL_TRY(set_fences(t, &fence));
    for (int m = 0; m < t->n; ++m)
        for (bool passed = false; !passed;) {
            TRL_TRY(t->device[m]->ops->passed(t->device[m], fence[m], &passed));
            if (!passed) sched_yield();
        }
    for (int m = 0; m < t->n; ++m) atomic_fetch_add_explicit(&t->device[m]->waits, 1, memory_order_relaxed);
done:
    return err;
}

trl_err trli_team_end(const trli_team *t)
{
    trl_err err = TRL_OK;
    for (int m = 0; m < t->n; ++m) {
        const trl_err left = trli_device_leave(t->device[m]);
        if (err == TRL_OK) err = left;
    }
    return err;
}
