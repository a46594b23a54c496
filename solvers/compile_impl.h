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
/* adaptive.c: append the estimate of each equation's error to an instance's program. sum: [nequations] of slopes with
 * the weights of the error. */
TRL_NODISCARD trl_err trli_compile_errors(trl_simulation *sim, trli_instance *in, const trli_ir_value *sum);
/* compile.c: give two fields that exchange their memory one shape. */
void trli_equalise(trli_model *model, int a, int b);
/* adaptive.c: *value = 0 at points of equation v that do not advance: where the mask is 0, and where conditions set
 * those of its field. */
TRL_NODISCARD trl_err trli_zero_where_set(trl_simulation *sim, trli_instance *in, int v, int field,
                                          trli_ir_value *value);
/* compile.c: whether conditions may set points of equation v. */
bool trli_equation_sets_points(const trl_simulation *sim, int v);
/* first_rates.c: rates that a step leaves to the next one. */
/* Whether rates depend on more than the state and the time. */
TRL_NODISCARD trl_err trli_rates_read_step(trl_simulation *sim, bool *any);
/* Make the fields, if rates depend on state and time alone. */
TRL_NODISCARD trl_err trli_first_rates_prepare(trl_simulation *sim);
/* The fields of the rates at the start and the end of a step, [equations]; NULL: there are none. */
const int *trli_first_rates(const trl_simulation *sim);
const int *trli_last_rates(const trl_simulation *sim);
/* The program that makes the first ones. */
TRL_NODISCARD trl_err trli_first_rates_compile(trl_simulation *sim);
void trli_first_rates_equalise(trl_simulation *sim);
/* A persistent field with the points of the state of equation v. */
TRL_NODISCARD trl_err trli_add_beside(trl_simulation *sim, int v, const char *name, int *field);
/* compile_step.c: whether fields have the same points, so that with full fusion one sweep computes them: along a
 * periodic axis there are as many faces as cells. */
bool trli_share_sweep(const trl_simulation *sim, int a, int b);
/* compile_step.c: append what stores the rates of an instance to fields, [equations]. */
TRL_NODISCARD trl_err trli_store_rates(trl_simulation *sim, trli_instance *in, const int *field);
/* dense.c: values between the ends of a step, if the problem wants them. */
TRL_NODISCARD trl_err trli_dense_prepare(trl_simulation *sim);
/* Append what a step leaves for them. slope: of all stages, as f_k of equation v: [k * nequations + v], and of the new
 * values. */
TRL_NODISCARD trl_err trli_dense_add_sums(trl_simulation *sim, trli_program *program, const trli_ir_value *slope);
TRL_NODISCARD trl_err trli_dense_compile(trl_simulation *sim);
void trli_dense_equalise(trl_simulation *sim);
/* compile_step.c: the program of a step. */
TRL_NODISCARD trl_err trli_compile_step(trl_simulation *sim);

#endif
