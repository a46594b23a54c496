/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Kernels for GPUs that store their results. A thread goes up z through planes, and keeps what it reads of its column:
 * a value is loaded once, as that above, and is then the point's own, and that below. */
#include <stdlib.h>

#include "emit_cuda_impl.h"

/* The sample of an input in the column of the thread's point, in the plane `z` from it; -1: there is none. */
static int32_t find_in_column(const trli_emitter *e, int input, int z)
{
    for (int32_t i = 0; i < e->count; ++i) {
        const trli_sample *in = &e->sample[i];
        if (trli_sample_node(e, i)->op != TRLI_OP_FIELD || trli_cuda_array_of(e, in) != input) continue;
        if (in->offset[0] == 0 && in->offset[1] == 0 && in->offset[2] == z) return i;
    }
    return -1;
}

/* Whether ghosts of a sample are computed, or all lie at the other side. */
static bool is_whole(const trli_emitter *e, int32_t i)
{
    bool computed = true;
    for (int32_t c = 0; c < e->nchoices; ++c) computed &= e->choice[c].sample != i || e->choice[c].ghost >= 0;
    return computed || trli_cuda_goes_round(e, i, 2);
}

/* Which inputs a thread keeps its column of: few, as each takes registers. A loop over planes with as little in it as
 * that gains by points of 32 bits; one of more loses (transport of 16 scalars 3 % on an H200), though it has fewer
 * instructions. */
static void find_kept(trli_emitter *e, bool *kept)
{
    enum { MOST = 2 };
    int n = 0;
    for (int a = 0; a < e->reads->nfields; ++a) {
        const int32_t below = find_in_column(e, a, -1), above = find_in_column(e, a, 1);
        kept[a] = below >= 0 && above >= 0 && find_in_column(e, a, 0) >= 0 && is_whole(e, below) && is_whole(e, above);
        n += kept[a];
    }
    if (e->ir->grid->dim < 3 || n == 0 || n > MOST) return;
    e->kept = kept;
    e->narrow = !e->wide;
}

/* Before the loop over planes: what is kept of the first one, and of that below it; of a ghost there, nothing. */
static void put_first_kept(trli_emitter *e)
{
    for (int a = 0; a < e->reads->nfields && e->kept; ++a) {
        const int32_t i = find_in_column(e, a, -1);
        if (!e->kept[a]) continue;
        fprintf(e->out, "    double here%d = trl_kernel_load(in%d, at%d), below%d;\n", a, a, trli_cuda_shape_of(e, a),
                a);
        fprintf(e->out, "    {\n        const %s k = first;\n", trli_cuda_point(e));
        fprintf(e->out, "        below%d = ", a);
        for (int32_t c = 0; c < e->nchoices; ++c) {
            if (e->choice[c].sample != i || e->choice[c].ghost < 0) continue;
            trli_cuda_put_condition(e, &e->sample[i], &e->choice[c]);
            fputs(" ? 0 : ", e->out);
        }
        fprintf(e->out, "trl_kernel_load(in%d, at%d + ", a, trli_cuda_shape_of(e, a));
        if (trli_cuda_goes_round(e, i, 2))
            trli_cuda_put_round(e, i, 2);
        else
            fprintf(e->out, "(%s)(k - 1 - first) * z%d", trli_cuda_place(e), trli_cuda_shape_of(e, a));
        fputs(");\n    }\n", e->out);
    }
}

/* In it: what is read of the plane above. */
static void put_above(trli_emitter *e, int depth)
{
    bool *const kept = e->kept;
    for (int a = 0; a < e->reads->nfields && kept; ++a) {
        if (!kept[a]) continue;
        trli_put_indent(e, depth);
        fprintf(e->out, "const double above%d = ", a);
        e->kept = NULL;
        trli_cuda_put_field(e, TRLI_IN_RESULT, find_in_column(e, a, 1));
        e->kept = kept;
        fputs(";\n", e->out);
    }
}

static void put_next_kept(trli_emitter *e)
{
    for (int a = 0; a < e->reads->nfields && e->kept; ++a)
        if (e->kept[a]) fprintf(e->out, "        below%d = here%d;\n        here%d = above%d;\n", a, a, a, a);
}

static void put_results(trli_emitter *e)
{
    for (int r = 0; r < e->nroots; ++r) {
        fprintf(e->out, "        const double r%d = ", r);
        trli_cuda_put_use(e, TRLI_IN_RESULT, e->root[r]);
        fprintf(e->out, ";\n        trl_kernel_store(out%d, at%d, r%d);\n", r,
                trli_cuda_shape_of(e, e->reads->nfields + r), r);
        if (e->check_finite) fprintf(e->out, "        excess |= trl_kernel_excess(r%d);\n", r);
    }
}

void trli_cuda_put_storing(trli_emitter *e, const trli_cuda_values *done)
{
    find_kept(e, done->kept);
    const char *const type = trli_cuda_point(e);
    trli_cuda_put_head(e, "");
    fprintf(e->out,
            "    const %s i = (%s)(call.lo[0] + (long long)blockIdx.x * blockDim.x + threadIdx.x);\n"
            "    const %s j = (%s)(call.lo[1] + (long long)blockIdx.y * blockDim.y + threadIdx.y);\n"
            "    const %s first = (%s)(call.lo[2] + blockIdx.z * call.planes), rest = (%s)call.hi[2] - first;\n"
            "    const %s end = first + (rest < (%s)call.planes ? rest : (%s)call.planes);\n"
            "    long long excess = 0;\n"
            "    if (i >= call.hi[0] || j >= call.hi[1]) return;\n",
            type, type, type, type, type, type, type, type, type, type);
    if (e->narrow && e->nlayers > 0)
        fprintf(e->out,
                "    const %s from[3] = {(%s)call.from[0], (%s)call.from[1], (%s)call.from[2]};\n"
                "    const %s to[3] = {(%s)call.to[0], (%s)call.to[1], (%s)call.to[2]};\n",
                type, type, type, type, type, type, type, type);
    trli_cuda_put_arrays(e, 1);
    trli_cuda_put_rounds(e, false, 1);
    trli_cuda_put_values(e, done, false, 1);
    put_first_kept(e);
    fprintf(e->out, "    TRL_KERNEL_PLANES\n    for (%s k = first; k < end; ++k) {\n", type);
    trli_cuda_put_rounds(e, true, 2);
    trli_cuda_put_ghosts(e, done, true, 2);
    put_above(e, 2);
    trli_cuda_put_wanted(e, done, true, 2);
    put_results(e);
    put_next_kept(e);
    for (int i = 0; i < e->reads->nfields + e->nroots; ++i)
        if (trli_cuda_shape_of(e, i) == i) fprintf(e->out, "        at%d += z%d;\n", i, i);
    fputs("    }\n    if (excess < 0) *call.nonfinite = 1;\n}\n", e->out);
    e->kept = NULL;
}
