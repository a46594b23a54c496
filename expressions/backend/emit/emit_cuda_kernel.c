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

static trl_err add_guard(trli_emitter *e, int32_t sample, int32_t choice)
{
    if (!trli_make_room(e->ir->ctx, &e->guard, e->nguards, 1, &e->guards_capacity, sizeof *e->guard))
        return trli_no_memory(e->ir->ctx, NULL, "to emit %d reads of ghosts", e->nguards + 1);
    e->guard[e->nguards++] = (trli_guard){sample, choice};
    return TRL_OK;
}

/* Where what ghosts read beside the point is read. */
static trl_err find_guards(trli_emitter *e)
{
    trl_err err = TRL_OK;
    for (int32_t c = 0; c < e->nchoices; ++c) {
        if (e->choice[c].ghost < 0) continue;
        for (int32_t i = 0; i < e->count; ++i) e->wanted[i] = i == e->choice[c].ghost;
        trli_emit_mark_operands(e, TRLI_ALL_GROUPS);
        for (int32_t i = 0; i < e->count; ++i) {
            const int8_t *by = e->sample[i].offset;
            const bool beside = by[0] != 0 || by[1] != 0 || by[2] != 0;
            if (e->wanted[i] && beside && trli_sample_node(e, i)->op == TRLI_OP_FIELD) TRL_TRY(add_guard(e, i, c));
        }
    }
done:
    return err;
}

static trl_err put_kernel(trli_emitter *e)
{
    bool *there = trli_new(e->ir->ctx, 2 * (size_t)e->count + (size_t)e->reads->nfields + 1, sizeof *there);
    const trli_cuda_values done = {there, there + e->count, there + 2 * e->count};
    trl_err err = TRL_OK;
    if (!there) return trli_no_memory(e->ir->ctx, NULL, "for the text of a kernel");
    TRL_TRY(find_guards(e));
    if (e->steps)
        trli_cuda_put_steps(e, &done);
    else if (e->merge)
        trli_cuda_put_merging(e, &done);
    else
        trli_cuda_put_storing(e, &done);
done:
    trli_free(there);
    return err;
}

const trli_dialect trli_dialect_cuda = {
    .put_kernel = put_kernel, .put_use = trli_cuda_put_use, .suffix = "", .index = {"i", "j", "k"}, .points = true};
