/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Explicit slopes of a velocity that are free of divergence by themselves. Where terms are divided, a stage's pressure
 * is weighed as the implicit slopes are. While the density is constant this is no matter: what gradient an explicit
 * slope has goes with any weights. Gradients over densities of different times do not, and a method of order 3 or 4
 * would be of order 2. So each explicit slope f gives way to f - grad(q)/rho, with q such that its divergence is 0, and
 * the method advances u' = P f(u) + P g(u), P being the projection with the density of each time. */
#ifndef TRLI_SLOPES_IMPL_H
#define TRLI_SLOPES_IMPL_H

#include "simulation_impl.h"

/* Once the flow is compiled: fields and programs, where they are needed. */
TRL_NODISCARD trl_err trli_slopes_compile(trl_simulation *sim);
void trli_slopes_destroy(trl_simulation *sim);
/* The fields of the slope of variable v, and of the gradient that it has lost, of the stage found last; of the pressure
 * that of q. -1: there is none. */
int trli_slope_of(const trl_simulation *sim, int v);
int trli_slope_lost(const trl_simulation *sim, int v);
/* The field in which a stage's pressure is kept meanwhile, or -1. */
int trli_slopes_kept(const trl_simulation *sim);
void trli_slopes_mark_fields(const trl_simulation *sim, bool *needed);
/* Find the slopes of stage s, before its program runs. Collective: yes. */
TRL_NODISCARD trl_err trli_slopes_find(trl_simulation *sim, int s, const trli_next_step *next);

#endif
