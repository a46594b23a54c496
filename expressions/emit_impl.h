/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The text of a kernel, from the IR alone: nothing that a user wrote reaches a compiler. */
#ifndef TRLI_EMIT_IMPL_H
#define TRLI_EMIT_IMPL_H

#include "interpreter_impl.h"

/* The C text of a kernel that computes the roots as trli_kernel_evaluate does, to the bit:
 *     void trl_kernel(trl_kernel_call *call)
 * look: it also notes values that are not finite. *text is the caller's to free; NULL if the kernel is one that only the interpreter
 * runs (`why` then says so). Fails with MEMORY. */
TRL_NODISCARD trl_err trli_emit_kernel(const trli_ir *ir, trli_walk *walk, const trli_kernel *kernel, int nroots,
                                       const trli_value *roots, bool look, char **text, const char **why);

#endif
