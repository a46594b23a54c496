/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* What the Jacobian of a system reads. */
#ifndef TRLI_SOLVE_READS_IMPL_H
#define TRLI_SOLVE_READS_IMPL_H

#include "krylov_impl.h"

/* Whether a value at the points of a location depends on one of the unknowns, through what the program computes and the
 * conditions of what is read beyond sides; *does stays true. Notes what is read on the way. */
TRL_NODISCARD trl_err trli_solver_depends(trli_solver *s, const trli_program *program, trli_ir_value value,
                                          trl_location location, bool *does);
/* Likewise of the conditions of the tangents' ghosts. */
TRL_NODISCARD trl_err trli_solver_sides_depend(trli_solver *s, bool *does);
/* Once that is known: what coarser grids need, if there may be some. The instances of the program of the product. */
TRL_NODISCARD trl_err trli_solver_find_needs(trli_solver *s, trli_instance *in, trli_instance *old);

#endif
