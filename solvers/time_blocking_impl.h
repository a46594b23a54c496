/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Several steps in one pass over memory. */
#ifndef TRLI_TIME_BLOCKING_IMPL_H
#define TRLI_TIME_BLOCKING_IMPL_H

#include "simulation_impl.h"

/* What of the problem is in the way; NULL: nothing. */
const char *trli_time_blocking_refusal(const trl_simulation *sim);
/* Once programs are analysed, and before fields have memory: how many steps at most, and the ghosts that they need.
 * Collective: yes. */
TRL_NODISCARD trl_err trli_time_blocking_prepare(trl_simulation *sim);
/* Once there is memory. Collective: yes. */
TRL_NODISCARD trl_err trli_time_blocking_create(trl_simulation *sim);
void trli_time_blocking_destroy(struct trli_time_blocking **blocking);
/* The steps to come that can be taken at once: of one size, up to an event. */
TRL_NODISCARD trl_err trli_look_ahead(trl_simulation *sim, int most, trl_stop stop, void *data, trli_next_step *next,
                                      int *count);
/* For the plan: how many steps are taken at once, or why they are not. */
void trli_time_blocking_describe(const trl_simulation *sim, size_t size, char *text);

#endif
