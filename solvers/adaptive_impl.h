/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Steps whose dt follows from their error, what they leave to the next one, and values between their ends. */
#ifndef TRLI_ADAPTIVE_IMPL_H
#define TRLI_ADAPTIVE_IMPL_H

#include "simulation_impl.h"

/* adaptive.c: the first dt; INPUT if nothing gives one. Nothing if dt does not follow from errors. */
TRL_NODISCARD trl_err trli_adaptive_start(trl_simulation *sim);
/* The first time after the present one that a step lands on. */
double trli_next_landing(const trl_time_entry *p, double time);
/* dt and time of the step that begins at next->from. */
void trli_adaptive_choose(const trl_simulation *sim, trli_next_step *next);
/* Run the program of the step, with smaller and smaller dt until the error is tolerated. NUMERICS if none is small
 * enough. Collective: yes. */
TRL_NODISCARD trl_err trli_adaptive_step(trl_simulation *sim, trli_next_step *next);
/* Warn once where solvers that find no solution, and not errors, are what chooses dt. */
void trli_warn_of_unsolved(trl_simulation *sim, double dt);
/* first_rates.c */
/* Before a step: see that the rates of the present state are there. Collective: yes. */
TRL_NODISCARD trl_err trli_first_rates_find(trl_simulation *sim, const trli_next_step *next);
/* The state is another. */
void trli_first_rates_forget(trl_simulation *sim);
/* A step is accepted. */
void trli_first_rates_swap(trl_simulation *sim);
void trli_first_rates_mark_fields(const trl_simulation *sim, bool *needed);
/* dense.c */
void trli_dense_mark_fields(const trl_simulation *sim, bool *needed);

#endif
