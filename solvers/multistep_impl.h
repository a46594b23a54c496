/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Steps by a multistep method of variable order, which another library chooses. */
#ifndef TRLI_MULTISTEP_IMPL_H
#define TRLI_MULTISTEP_IMPL_H

#include "solve_impl.h"

/* INPUT where the method is one and does not suit the problem, or this build has none. */
TRL_NODISCARD trl_err trli_multistep_check(trl_simulation *sim);
/* Once formulas are bound: INPUT where rates depend on the step, as steps go back to those of other steps. */
TRL_NODISCARD trl_err trli_multistep_check_rates(trl_simulation *sim);
/* The programs that a step needs. */
TRL_NODISCARD trl_err trli_multistep_compile(trl_simulation *sim);
/* After the passes, before the model is frozen; once there is a frame; at the end. */
void trli_multistep_equalise(trl_simulation *sim);
TRL_NODISCARD trl_err trli_multistep_begin(trl_simulation *sim);
void trli_multistep_destroy(trl_simulation *sim);
void trli_multistep_mark_fields(const trl_simulation *sim, bool *needed);
/* The next step begins at order 1, from the state. */
void trli_multistep_forget(trl_simulation *sim);
/* Make the next level. *next: whence it begins; the method sets its end. Fails with NUMERICS. Collective: yes. */
TRL_NODISCARD trl_err trli_multistep_step(trl_simulation *sim, trli_next_step *next);
/* Let fields, [equations], have the values of a time in the last step, but those of what is solved for. */
TRL_NODISCARD trl_err trli_multistep_between(trl_simulation *sim, double time, const int *field);
/* NULL: it has none. */
const trli_solver *trli_multistep_solver(const trl_simulation *sim);

#endif
