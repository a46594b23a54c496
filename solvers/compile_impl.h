/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* What the files that make the programs of a simulation share. */
#ifndef TRLI_COMPILE_IMPL_H
#define TRLI_COMPILE_IMPL_H

#include "simulation_impl.h"

/* Give a field the boundary conditions of equation v. of: the field of the equation that this one is the rate of; not
 * used for others. */
void trli_set_conditions(trl_simulation *sim, int v, int field, int of);
/* An instance of the state at the start of a step. */
TRL_NODISCARD trl_err trli_instance_of_state(trl_simulation *sim, trli_program *program, trli_instance **instance);
/* leapfrog.c: an instance of the present values, with ghosts: by leapfrog rates are those of the present time, which a
 * kernel makes of the state; else the state itself. Collective: no. */
TRL_NODISCARD trl_err trli_instance_of_present(trl_simulation *sim, trli_program *program, trli_instance **instance);
/* leapfrog.c: the new value of equation v. slope: [nequations] of the present values. */
trli_ir_value trli_leapfrog_update(trl_simulation *sim, int v, const trli_ir_value *slope);
/* leapfrog.c: INPUT if the method is leapfrog and an equation is not of second order. */
TRL_NODISCARD trl_err trli_leapfrog_check(const trl_simulation *sim);
/* adaptive.c: append the estimate of each equation's error. next: the new values, with ghosts. slope: of all stages, as
 * f_k of equation v: [k * nequations + v], and of next. */
TRL_NODISCARD trl_err trli_compile_errors(trl_simulation *sim, trli_instance *next, const trli_ir_value *slope);
/* compile_step.c: the program of a step. */
TRL_NODISCARD trl_err trli_compile_step(trl_simulation *sim);

#endif
