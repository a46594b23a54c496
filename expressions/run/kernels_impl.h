/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Compiled kernels of a model. */
#ifndef TRLI_KERNELS_IMPL_H
#define TRLI_KERNELS_IMPL_H

#include "model_impl.h"
#include <stdio.h>

/* Ask for compiled kernels, once all steps are known. With `always`, wait for them; INPUT error if there is no way. */
TRL_NODISCARD trl_err trli_kernels_request(trli_model *model);
/* Between runs of programs, in whatever frame: take in kernels that are ready. */
void trli_kernels_poll(trli_model *model);

/* The source of all kernels of a program, for readers. */
TRL_NODISCARD trl_err trli_kernels_write(trli_program *program, trl_kind kind, FILE *out);

#endif
