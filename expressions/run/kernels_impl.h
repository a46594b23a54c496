/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Compiled kernels of a model. */
#ifndef TRLI_KERNELS_IMPL_H
#define TRLI_KERNELS_IMPL_H

#include "model_impl.h"
#include <stdio.h>

/* Ask for compiled kernels, once all steps are known. With `always`, wait for them, and fail with INPUT if they cannot
 * be compiled. */
TRL_NODISCARD trl_err trli_kernels_request(trli_model *model);
/* Load kernels that are ready. Call it between runs of programs, in any frame. */
void trli_kernels_poll(trli_model *model);

/* The source of all kernels of a program, for readers. */
TRL_NODISCARD trl_err trli_kernels_write(trli_program *program, trl_kind kind, FILE *out);

#endif
