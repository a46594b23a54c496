/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Implicit terms, and steps that solve for their stages. */
#ifndef TRLI_IMPLICIT_IMPL_H
#define TRLI_IMPLICIT_IMPL_H

#include "simulation_impl.h"

/* Of the parsed equations, find the terms that are implicit. Fails with INPUT: they do not suit the method. */
TRL_NODISCARD trl_err trli_split_terms(trl_simulation *sim);
/* After the passes, before the model is frozen; once there is a frame; at the end. */
void trli_implicit_equalise(trl_simulation *sim);
void trli_implicit_begin(trl_simulation *sim);
/* Once dt is known: see what will be solved. Collective: yes. */
TRL_NODISCARD trl_err trli_implicit_foresee(trl_simulation *sim);
void trli_implicit_destroy(trl_simulation *sim);
void trli_implicit_mark_fields(const trl_simulation *sim, bool *needed);
/* A step, with a system that is solved for each stage. check: the new values. Collective: yes. */
TRL_NODISCARD trl_err trli_implicit_step(trl_simulation *sim, const trli_next_step *next, bool check);
/* The programs of a step with implicit stages. */
TRL_NODISCARD trl_err trli_compile_implicit(trl_simulation *sim);

#endif
