/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Steps one after the other that a GPU is given together. */
#ifndef TRLI_CHAINED_STEPS_IMPL_H
#define TRLI_CHAINED_STEPS_IMPL_H

#include "simulation_impl.h"

typedef struct trli_chained_steps trli_chained_steps;

/* What of the problem is in the way; NULL: nothing. */
const char *trli_chained_steps_refusal(const trl_simulation *sim);
/* Once there are frames. *steps: NULL where there is another device than one GPU, or a step takes so long that nothing
 * is gained. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_chained_steps_create(const trl_simulation *sim, trli_chained_steps **steps);
void trli_chained_steps_destroy(trli_chained_steps **steps);
/* The most steps of a chain; asked: the user wants them so, always. */
int trli_chained_steps_most(const trli_chained_steps *steps, bool *asked);
/* Whether those to come take no longer because they are the first ones. */
bool trli_chained_steps_settled(const trli_chained_steps *steps);
/* Whether the GPU has all that a step needs, and makes all of it. */
bool trli_chained_steps_ready(const trl_simulation *sim, const trli_chained_steps *steps);
/* Take chains of steps, up to an event, and wait for them. *count: steps taken, perhaps none. *refused: something in
 * them failed or is not finite, and the state is that before a chain with its first such step; to find which, take it
 * by single steps. */
TRL_NODISCARD trl_err trli_chained_steps_advance(trl_simulation *sim, trli_chained_steps *steps, trl_stop stop,
                                                 void *data, int *count, bool *refused);

#endif
