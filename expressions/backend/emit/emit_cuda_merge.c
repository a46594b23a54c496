/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Kernels for GPUs that merge their results. Blocks go through columns of planes, so that all threads of a warp take
 * part. Where little is computed, several points of a column are at once: what they have in common is loaded and
 * computed once, and their loads do not wait for each other, nor for what is made of the values. */
#include <trl_kernel_launch_body.h>

#include "emit_cuda_impl.h"

enum {
    TOGETHER = 4,      /* points of a column */
    TOGETHER_MANY = 2, /* the same, with more results than */
    RESULTS_FEW = 3,
    OPERATIONS = 160,    /* that are computed for several points at once, at most */
    OPERATIONS_FEW = 80, /* for which 64 registers are enough, and */
    FIELDS_FEW = 2       /* that have addresses of 64 bits, to which loads add little */
};

static bool has_sums(const trli_emitter *e)
{
    bool any = false;
    for (int r = e->nstored; r < e->nroots; ++r) any |= e->merge[r] == TRLI_MERGE_SUM;
    return any;
}

static int results_of(const trli_emitter *e)
{
    return e->nroots - e->nstored;
}

/* Whether warps add their sums to shares of the block, before these go to those of the launch: as far as it has memory
 * for them. */
static bool has_block(const trli_emitter *e)
{
    enum { MOST = 40 };
    return has_sums(e) && results_of(e) <= MOST;
}

/* Whether launches may gather results, and let the last block do something with them: it has memory for them, too. */
static bool may_gather(const trli_emitter *e)
{
    return results_of(e) <= TRL_KERNEL_VALUES;
}

static void put_share(const trli_emitter *e, int r)
{
    fprintf(e->out, has_block(e) ? "&block[%d].share" : "&share[%d]", r - e->nstored);
}

static void put_totals(trli_emitter *e)
{
    fprintf(e->out, "    trl_kernel_partial *const share = %s;\n",
            may_gather(e) ? "call.gathered ? call.gathered : call.share" : "call.share");
    if (has_block(e) || may_gather(e)) fprintf(e->out, "    __shared__ trl_kernel_block block[%d];\n", results_of(e));
    if (has_block(e)) fprintf(e->out, "    trl_kernel_block_begin(block, %d);\n", results_of(e));
    for (int r = e->nstored; r < e->nroots; ++r)
        if (e->merge[r] == TRLI_MERGE_SUM)
            fprintf(e->out, "    trl_kernel_sum t%d = {0, 0, {0, 0}};\n", r);
        else
            fprintf(e->out, "    trl_kernel_extreme t%d = {share[%d].extreme, false};\n", r, r - e->nstored);
}

static void put_weights(trli_emitter *e, int r)
{
    static const int order[] = {1, 2, 0}; /* as trli_weigh_row multiplies */
    fprintf(e->out, "                    r%d = r%d * (", r, r);
    for (int a = 0; a < 3; ++a)
        fprintf(e->out, "%strl_kernel_weight(&call, %d, %c)",
                a == 0   ? ""
                : a == 1 ? " * "
                         : ") * ",
                order[a], "ijk"[order[a]]);
    fputs(";\n", e->out);
}

/* A function of a plane: the values of the thread's point there, as the points that others have. Results are stored,
 * and places go on to the next plane. */
static void put_point(trli_emitter *e, const trli_cuda_values *done)
{
    fputs("                const auto point = [&](const long long k", e->out);
    for (int r = e->nstored; r < e->nroots; ++r) fprintf(e->out, ", double &r%d", r);
    fputs(") {\n                    (void)k;\n", e->out);
    trli_cuda_put_rounds(e, false, 5);
    trli_cuda_put_values(e, done, false, 5);
    trli_cuda_put_rounds(e, true, 5);
    trli_cuda_put_values(e, done, true, 5);
    for (int r = 0; r < e->nstored; ++r) {
        fprintf(e->out, "                    trl_kernel_store(out%d, at%d, ", r,
                trli_cuda_shape_of(e, e->reads->nfields + r));
        trli_cuda_put_use(e, TRLI_IN_RESULT, e->root[r]);
        fputs(");\n", e->out);
    }
    for (int r = e->nstored; r < e->nroots; ++r) {
        fprintf(e->out, "                    r%d = ", r);
        trli_cuda_put_use(e, TRLI_IN_RESULT, e->root[r]);
        fputs(";\n", e->out);
        if (e->weighted >> r & 1) put_weights(e, r);
    }
    for (int i = 0; i < e->reads->nfields + e->nstored; ++i)
        if (trli_cuda_shape_of(e, i) == i) fprintf(e->out, "                    at%d += z%d;\n", i, i);
    fputs("                };\n", e->out);
}

static void put_call(const trli_emitter *e, const char *plane, const char *place)
{
    fprintf(e->out, "point(first + %s", plane);
    for (int r = e->nstored; r < e->nroots; ++r) fprintf(e->out, ", r%d[%s]", r, place);
    fputs(");\n", e->out);
}

static void put_merges(const trli_emitter *e, const char *place, const char *indent)
{
    for (int r = e->nstored; r < e->nroots; ++r) {
        if (e->merge[r] != TRLI_MERGE_SUM) {
            fprintf(e->out, "%strl_kernel_merge_extreme(&t%d, r%d[%s], %d);\n", indent, r, r, place,
                    e->merge[r] == TRLI_MERGE_MIN);
            continue;
        }
        fprintf(e->out, "%strl_kernel_merge_sum(&t%d, ", indent, r);
        put_share(e, r);
        fprintf(e->out, ", r%d[%s]);\n", r, place);
    }
}

/* Points of a column that are computed together: kernels that store results, too, have no registers left for them. */
static int together_of(const trli_emitter *e)
{
    const int most = has_sums(e) ? OPERATIONS_FEW : OPERATIONS;
    if (e->ir->grid->dim < 3 || e->nstored > 0 || e->count > most) return 1;
    return e->nroots <= RESULTS_FEW ? TOGETHER : TOGETHER_MANY;
}

/* What a thread merges that has no points: warps that make sums do it together. */
static void put_nothing(const trli_emitter *e, const char *place, const char *indent)
{
    for (int r = e->nstored; r < e->nroots && has_sums(e); ++r)
        if (e->merge[r] == TRLI_MERGE_SUM)
            fprintf(e->out, "%sr%d[%s] = 0;\n", indent, r, place);
        else
            fprintf(e->out, "%sr%d[%s] = t%d.extreme;\n", indent, r, place, r);
}

/* Several points at once, as far as there are so many, then one by one. */
static void put_column(trli_emitter *e)
{
    const int together = together_of(e);
    const char *const points = has_sums(e) ? "planes" : "here"; /* sums are of all threads of a warp */
    fputs("                int p = 0;\n", e->out);
    for (int r = e->nstored; r < e->nroots; ++r) fprintf(e->out, "                double r%d[%d];\n", r, together);
    if (together > 1) {
        fprintf(e->out,
                "                TRL_KERNEL_PLANES\n"
                "                for (; p + %d <= %s; p += %d) {\n"
                "                    TRL_KERNEL_TOGETHER\n"
                "                    for (int u = 0; u < %d; ++u) {\n",
                together, points, together, together);
        put_nothing(e, "u", "                        ");
        fprintf(e->out, "                        %s", has_sums(e) ? "if (here > 0) " : "");
        put_call(e, "p + u", "u");
        fputs("                    }\n", e->out);
        fprintf(e->out, "                    TRL_KERNEL_TOGETHER\n                    for (int u = 0; u < %d; ++u) {\n",
                together);
        put_merges(e, "u", "                        ");
        fputs("                    }\n                }\n", e->out);
    }
    fprintf(e->out, "                TRL_KERNEL_PLANES\n                for (; p < %s; ++p) {\n", points);
    put_nothing(e, "0", "                    ");
    fputs(has_sums(e) ? "                    if (here > 0) " : "                    ", e->out);
    put_call(e, "p", "0");
    put_merges(e, "0", "                    ");
    fputs("                }\n", e->out);
}

static void put_ends(const trli_emitter *e)
{
    for (int r = e->nstored; r < e->nroots; ++r)
        if (e->merge[r] == TRLI_MERGE_SUM)
            fprintf(e->out,
                    has_block(e) ? "    trl_kernel_sum_leave(t%d, &block[%d]);\n"
                                 : "    trl_kernel_sum_empty(t%d, &share[%d]);\n",
                    r, r - e->nstored);
        else
            fprintf(e->out, "    trl_kernel_end_extreme(&t%d, &share[%d], %d);\n", r, r - e->nstored,
                    e->merge[r] == TRLI_MERGE_MIN);
    for (int r = 0; r < results_of(e) && has_block(e); ++r)
        if (e->merge[e->nstored + r] == TRLI_MERGE_SUM)
            fprintf(e->out, "    trl_kernel_block_end(&block[%d], &share[%d], %d);\n", r, r, r);
    if (!may_gather(e)) return;
    unsigned sums = 0, least = 0;
    for (int r = 0; r < results_of(e); ++r) {
        sums |= (unsigned)(e->merge[e->nstored + r] == TRLI_MERGE_SUM) << r;
        least |= (unsigned)(e->merge[e->nstored + r] == TRLI_MERGE_MIN) << r;
    }
    fprintf(e->out, "    if (call.gathered) trl_kernel_let_go(call, block, %d, %#x, %#x);\n", results_of(e), sums,
            least);
}

void trli_cuda_put_merging(trli_emitter *e, const trli_cuda_values *done)
{
    const bool few = together_of(e) > 1 && e->count <= OPERATIONS_FEW && e->reads->nfields <= FIELDS_FEW;
    e->wide |= few;
    trli_cuda_put_head(e, few ? ", 4" : "");
    put_totals(e);
    fputs("    for (long long first = call.lo[2] + blockIdx.z * call.planes; first < call.hi[2];\n"
          "         first += gridDim.z * call.planes) {\n"
          "        const long long rest = call.hi[2] - first;\n"
          "        const int planes = (int)(rest < call.planes ? rest : call.planes);\n"
          "        for (long long above = call.lo[1] + (long long)blockIdx.y * blockDim.y; above < call.hi[1];\n"
          "             above += (long long)gridDim.y * blockDim.y) {\n"
          "            const long long j = above + threadIdx.y;\n"
          "            for (long long left = call.lo[0] + (long long)blockIdx.x * blockDim.x; left < call.hi[0];\n"
          "                 left += (long long)gridDim.x * blockDim.x) {\n"
          "                const long long i = left + threadIdx.x;\n"
          "                const int here = i < call.hi[0] && j < call.hi[1] ? planes : 0;\n",
          e->out);
    trli_cuda_put_arrays(e, 4);
    put_point(e, done);
    put_column(e);
    fputs("            }\n        }\n    }\n", e->out);
    put_ends(e);
    fputs("}\n", e->out);
}
