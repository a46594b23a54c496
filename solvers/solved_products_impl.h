/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Products with the Jacobian of what reads solved unknowns: where p solves G(y, p) = 0, a change v of y changes F(y, p)
 * by F_y v + F_p w, with G_p w = -G_y v. So a product solves one linear system for each system of the problem. */
#ifndef TRLI_SOLVED_PRODUCTS_IMPL_H
#define TRLI_SOLVED_PRODUCTS_IMPL_H

#include "solve_impl.h"

typedef struct trli_solved_products trli_solved_products;

/* of: F, as for a solver; its field is where values are when products are asked for, those of what is solved for in
 * solved, [equations]. They are what trli_solve_stage has put there for stage 0. */
TRL_NODISCARD trl_err trli_solved_products_compile(trl_simulation *sim, const trli_solve_request *of, const int *solved,
                                                   trli_solved_products **products);
void trli_solved_products_destroy(trli_solved_products *p);
/* After the passes, before the model is frozen; once there is a frame. */
void trli_solved_products_equalise(trli_solved_products *p);
void trli_solved_products_clear(trli_solved_products *p);
void trli_solved_products_mark_fields(const trli_solved_products *p, bool *needed);
/* Fields [n] of v, and of the product. */
const int *trli_solved_products_direction(const trli_solved_products *p);
const int *trli_solved_products_result(const trli_solved_products *p);
/* Make one. Fails with NUMERICS where a system is not solved. Collective: yes. */
TRL_NODISCARD trl_err trli_solved_products_multiply(trli_solved_products *p, trl_gidx step, double time);

#endif
