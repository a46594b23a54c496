/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Compiled functions, each for all kernels of one form. */
#ifndef TRLI_CODES_IMPL_H
#define TRLI_CODES_IMPL_H

#include "emit_impl.h"
#include "gpu_kernel_impl.h"
#include "native_impl.h"

/* One function. What distinguishes the kernels that it serves are arrays, and numbers that they give it. */
typedef struct trli_code {
    trli_native_fn native; /* of CPUs; NULL: not compiled, or not yet */
    trli_gpu_kernel *gpu;  /* of GPUs; NULL: not asked for */
    int interleave;        /* the most planes whose rows it interleaves */
    char *text;            /* NULL: the kernel is one that only the interpreter runs, and `why` says why */
    const char *why;
    trli_signature signature;
    trli_emit_request request; /* of the first kernel, */
    double *number;            /* and its constants, in the order of the signature's */
    bool *given;               /* of these constants, whether they differ between the kernels, */
    int ngiven;                /* and how many do, once it is emitted */
    bool emitted;
} trli_code;

/* A kernel's use of a function. */
typedef struct trli_code_use {
    const trli_code *code; /* NULL: none was asked for */
    const double *number;  /* that the function is given */
} trli_code_use;

static inline trli_native_fn trli_native_of(const trli_code_use *use)
{
    return use->code ? use->code->native : NULL;
}

typedef struct trli_codes trli_codes;
/* The nodes of all kernels belong to one IR. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_codes_create(const trli_dialect *dialect, const trli_ir *ir, trli_walk *walk,
                                        trli_codes **codes);
void trli_codes_destroy(trli_codes **codes);
/* Find or make the function of a kernel. What the request points at, and the use, stay until the codes are destroyed;
 * its layers and shapes belong to the codes also after a failure. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_codes_add(trli_codes *codes, const trli_emit_request *request, trli_code_use *use);
/* Write the texts of functions that have none yet, once all kernels of their forms were added. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_codes_emit(trli_codes *codes);
/* Ask for all functions, the longest first. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_codes_compile(trli_codes *codes, trli_compiler *compiler);
TRL_NODISCARD trl_err trli_codes_compile_for_gpus(trli_codes *codes, trli_gpu_kernels *kernels);
/* How many functions have no text, and why the first has none. */
int trli_codes_without_text(const trli_codes *codes, const char **why);
/* The functions, in their order; NULL: there are no more. */
const trli_code *trli_codes_get(const trli_codes *codes, int i);

#endif
