/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Kernels for GPUs as a dialect of the emitter, and what NVRTC is told. */
#include "emit_cuda_impl.h"
#include "memory_impl.h"

const char *const trli_cuda_options[] = {"--std=c++17",
                                         "--fmad=false",
                                         "--ftz=false",
                                         "--prec-div=true",
                                         "--prec-sqrt=true",
                                         "-DTRL_BODY=static __device__ __forceinline__",
                                         NULL};

static trl_err put_kernel(trli_emitter *e)
{
    bool *there = trli_new(e->ir->ctx, 2 * (size_t)e->count + (size_t)e->reads->nfields + 1, sizeof *there);
    const trli_cuda_values done = {there, there + e->count, there + 2 * e->count};
    if (!there) return trli_no_memory(e->ir->ctx, NULL, "for the text of a kernel");
    if (e->steps)
        trli_cuda_put_steps(e, &done);
    else if (e->merge)
        trli_cuda_put_merging(e, &done);
    else
        trli_cuda_put_storing(e, &done);
    trli_free(there);
    return TRL_OK;
}

const trli_dialect trli_dialect_cuda = {
    .put_kernel = put_kernel, .put_use = trli_cuda_put_use, .suffix = "", .index = {"i", "j", "k"}, .points = true};
