/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Systems, linear or not, that are solved by explicit steps in pseudo-time: without products with the Jacobian. */
#ifndef TRLI_PSEUDO_TIME_IMPL_H
#define TRLI_PSEUDO_TIME_IMPL_H

#include "krylov_impl.h"

/* Once the diagonal is compiled. Fails with INPUT where it is not known. */
TRL_NODISCARD trl_err trli_pseudo_time_compile(trli_solver *s);
/* Change x until its residual, of which *norm is that of the last one, is solved. Fails with NUMERICS. Collective:
 * yes. */
TRL_NODISCARD trl_err trli_pseudo_time_run(trli_solver *s, bool (*solved)(const trli_solver *s, double norm),
                                           double *norm);

#endif
