/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* GPUs of a process that work on something together, in rounds. */
#ifndef TRLI_TEAM_IMPL_H
#define TRLI_TEAM_IMPL_H

#include "executor_impl.h"

/* Between runs. Thread: main. All fail with DEVICE, MEMORY. */
typedef struct trli_team trli_team;
/* Of opened devices that capture, with a bit 1 << space each. */
TRL_NODISCARD trl_err trli_team_create(const trl_devices *devices, uint32_t spaces, trli_team **team);
/* Once members have finished. */
void trli_team_destroy(trli_team **team);
int trli_team_members(const trli_team *team);
trl_device *trli_team_member(const trli_team *team, int member);
/* Work begins, behind all that devices of this process were given. Work has 8 rounds at most. */
TRL_NODISCARD trl_err trli_team_begin(trli_team *team);
/* Give work to a member. */
TRL_NODISCARD trl_err trli_team_call(const trli_team *team, int member, trl_task_fn run, void *data);
/* A round ends: what any member is given from now on is done after all that all of them were given; or, instead, the
 * host waits until that is done. */
TRL_NODISCARD trl_err trli_team_meet(trli_team *team);
TRL_NODISCARD trl_err trli_team_wait(trli_team *team);
/* Work ends: what members were given is a run that is left to them. After failures, too. */
TRL_NODISCARD trl_err trli_team_end(const trli_team *team);

#endif
