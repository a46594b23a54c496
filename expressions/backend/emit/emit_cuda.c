/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The text of a kernel for GPUs. Threads lie along x, then y; each goes up z through the planes that are its own. What
 * does not change with z is computed before. A value that is needed at several points is computed at each: neighbours'
 * are in the caches, and nothing is shared between threads. */
#include <stdlib.h>
#include <string.h>

#include "emit_writer_impl.h"

const char *const trli_cuda_options[] = {"--std=c++17",
                                         "--fmad=false",
                                         "--ftz=false",
                                         "--prec-div=true",
                                         "--prec-sqrt=true",
                                         "-DTRL_BODY=static __device__ __forceinline__",
                                         NULL};

static const char axis[3] = {'x', 'y', 'z'};

/* A point of a field, from that of the thread. round: of an image, the axis along which it is at the other side, or -1.
 */
static void put_place(trli_emitter *e, const trli_sample *in, int round, int side)
{
    const int32_t input = e->pointer[in->pointer].input;
    bool any = false;
    fprintf(e->out, "in%d[", input);
    if (round >= 0) {
        fprintf(e->out, "%s(call.to[%d] - call.from[%d])", side ? "-" : "", round, round);
        if (round > 0) fprintf(e->out, " * in%d_%c", input, axis[round]);
        any = true;
    }
    for (int a = 2; a >= 0; --a) {
        const int by = in->offset[a];
        if (by == 0) continue;
        fputs(by < 0 ? (any ? " - " : "-") : (any ? " + " : ""), e->out);
        any = true;
        if (a == 0)
            fprintf(e->out, "%d", abs(by));
        else if (abs(by) == 1)
            fprintf(e->out, "in%d_%c", input, axis[a]);
        else
            fprintf(e->out, "%d * in%d_%c", abs(by), input, axis[a]);
    }
    fputs(any ? "]" : "0]", e->out);
}

static void put_use(trli_emitter *e, trli_loop_level loop, int32_t i);

/* A field, or in a layer of ghosts what it is there. */
static void put_field(trli_emitter *e, trli_loop_level loop, int32_t i)
{
    const trli_sample *in = &e->sample[i];
    int open = 0;
    for (int32_t c = 0; c < e->nchoices && !e->raw; ++c) {
        const trli_choice *choice = &e->choice[c];
        const int a = choice->axis;
        if (choice->sample != i) continue;
        fprintf(e->out, "(%s %c %d == call.%s[%d] %c %d ? ", trli_dialect_cuda.index[a], in->offset[a] < 0 ? '-' : '+',
                abs(in->offset[a]), choice->side ? "to" : "from", a, choice->side ? '+' : '-',
                choice->side ? choice->layer - 1 : choice->layer);
        e->raw = true;
        if (choice->ghost < 0)
            put_place(e, in, a, choice->side);
        else
            put_use(e, loop, choice->ghost);
        e->raw = false;
        fputs(" : ", e->out);
        ++open;
    }
    put_place(e, in, -1, 0);
    while (open-- > 0) fputc(')', e->out);
}

static void put_use(trli_emitter *e, trli_loop_level loop, int32_t i)
{
    const trli_node *n = trli_sample_node(e, i);
    if (n->op == TRLI_OP_CONSTANT)
        trli_put_number(e, n->number);
    else if (n->op == TRLI_OP_SCALAR)
        fprintf(e->out, "s%d", n->index);
    else if (n->op == TRLI_OP_FIELD)
        put_field(e, loop, i);
    else
        fprintf(e->out, "%c%d", e->raw ? 'g' : 'v', e->number[i]);
}

/* What changes with z, or what does not; where there is no z, all is taken to change. */
static void put_wanted(trli_emitter *e, bool along_z, int depth)
{
    for (int32_t o = 0; o < e->count; ++o) {
        const int32_t i = e->order[o];
        const trli_node *n = trli_sample_node(e, i);
        const bool changes = e->ir->grid->dim < 3 || n->varies >> 2 & 1;
        if (!e->wanted[i] || trli_is_leaf(n) || changes != along_z) continue;
        trli_put_indent(e, depth);
        fprintf(e->out, "const double %c%d = ", e->raw ? 'g' : 'v', o);
        trli_put_operation(e, e->sample[i].place, i);
        fputs(";\n", e->out);
    }
}

/* Ghosts, which read fields as they lie in memory, then all that results need. */
static void put_values(trli_emitter *e, bool along_z, int depth)
{
    for (int32_t i = 0; i < e->count; ++i) e->wanted[i] = false;
    for (int32_t c = 0; c < e->nchoices; ++c)
        if (e->choice[c].ghost >= 0) e->wanted[e->choice[c].ghost] = true;
    trli_emit_mark_operands(e, TRLI_ALL_GROUPS);
    e->raw = true;
    put_wanted(e, along_z, depth);
    e->raw = false;
    for (int32_t i = 0; i < e->count; ++i) e->wanted[i] = false;
    for (int r = 0; r < e->nroots; ++r) e->wanted[e->root[r]] = true;
    trli_emit_mark_operands(e, TRLI_ALL_GROUPS);
    put_wanted(e, along_z, depth);
}

/* The thread's point of an array, the first of those that it goes through. */
static void put_array(trli_emitter *e, const char *type, const char *name, int number, int place, int depth)
{
    trli_put_indent(e, depth);
    fprintf(e->out, "const long long %s%d_y = arrays.array[%d].stride[1], %s%d_z = arrays.array[%d].stride[2];\n", name,
            number, place, name, number, place);
    trli_put_indent(e, depth);
    fprintf(e->out, "%s *__restrict__ %s%d = arrays.array[%d].at + i + j * %s%d_y + %s * %s%d_z;\n", type, name, number,
            place, name, number, e->merge ? "k" : "first", name, number);
}

static void put_results(trli_emitter *e)
{
    for (int r = 0; r < e->nroots; ++r) {
        fprintf(e->out, "        const double r%d = ", r);
        put_use(e, TRLI_IN_RESULT, e->root[r]);
        fprintf(e->out, ";\n        *out%d = r%d;\n", r, r);
        if (e->check_finite) fprintf(e->out, "        excess |= trl_kernel_excess(r%d);\n", r);
    }
}

static void put_head(trli_emitter *e)
{
    const int narrays = e->reads->nfields + (e->merge ? 0 : e->nroots), nscalars = e->reads->nscalars;
    fprintf(e->out,
            "extern \"C\" __global__ void __launch_bounds__(TRL_KERNEL_THREADS)\n"
            "trl_kernel(const __grid_constant__ trl_kernel_launch call, const __grid_constant__ trl_kernel_arrays<%d> "
            "arrays,\n           const __grid_constant__ trl_kernel_scalars<%d> scalars)\n"
            "{\n"
            "    const trl_kernel_grid *const grid = &call.grid;\n"
            "    (void)grid;\n",
            narrays > 0 ? narrays : 1, nscalars > 0 ? nscalars : 1);
    for (int i = 0; i < nscalars; ++i)
        fprintf(e->out, "    const double s%d = scalars.value[%d];\n", e->reads->scalar[i], i);
}

/* What stores its results. */
static void put_storing(trli_emitter *e)
{
    const int ninputs = e->reads->nfields;
    put_head(e);
    fputs("    const long long i = call.lo[0] + (long long)blockIdx.x * blockDim.x + threadIdx.x;\n"
          "    const long long j = call.lo[1] + (long long)blockIdx.y * blockDim.y + threadIdx.y;\n"
          "    const long long first = call.lo[2] + blockIdx.z * call.planes, rest = call.hi[2] - first;\n"
          "    const long long end = first + (rest < call.planes ? rest : call.planes);\n"
          "    long long excess = 0;\n"
          "    if (i >= call.hi[0] || j >= call.hi[1]) return;\n",
          e->out);
    for (int i = 0; i < ninputs; ++i) put_array(e, "const double", "in", i, i, 1);
    for (int r = 0; r < e->nroots; ++r) put_array(e, "double", "out", r, ninputs + r, 1);
    put_values(e, false, 1);
    fputs("    for (long long k = first; k < end; ++k) {\n", e->out);
    put_values(e, true, 2);
    put_results(e);
    for (int i = 0; i < ninputs; ++i) fprintf(e->out, "        in%d += in%d_z;\n", i, i);
    for (int r = 0; r < e->nroots; ++r) fprintf(e->out, "        out%d += out%d_z;\n", r, r);
    fputs("    }\n    if (excess < 0) *call.nonfinite = 1;\n}\n", e->out);
}

/* ---- reductions ---- */

static void put_totals(trli_emitter *e)
{
    for (int r = 0; r < e->nroots; ++r)
        if (e->merge[r] == TRLI_MERGE_SUM)
            fprintf(e->out, "    trl_kernel_sum t%d = {0, 0, {0, 0}};\n", r);
        else
            fprintf(e->out, "    trl_kernel_extreme t%d = {call.share[%d].extreme, false};\n", r, r);
}

/* The values of the thread's point, as the points that others have. */
static void put_point(trli_emitter *e)
{
    static const int order[] = {1, 2, 0}; /* as trli_weigh_row multiplies */
    put_values(e, false, 4);
    put_values(e, true, 4);
    for (int r = 0; r < e->nroots; ++r) {
        fprintf(e->out, "                r%d = ", r);
        put_use(e, TRLI_IN_RESULT, e->root[r]);
        fputs(";\n", e->out);
        if (!(e->weighted >> r & 1)) continue;
        fprintf(e->out, "                r%d = r%d * (", r, r);
        for (int a = 0; a < 3; ++a)
            fprintf(e->out, "%strl_kernel_weight(&call, %d, %c)",
                    a == 0   ? ""
                    : a == 1 ? " * "
                             : ") * ",
                    order[a], trli_dialect_cuda.index[order[a]][0]);
        fputs(";\n", e->out);
    }
}

static void put_merges(trli_emitter *e)
{
    for (int r = 0; r < e->nroots; ++r)
        if (e->merge[r] == TRLI_MERGE_SUM)
            fprintf(e->out, "            trl_kernel_merge_sum(&t%d, &call.share[%d], r%d);\n", r, r, r);
        else
            fprintf(e->out, "            trl_kernel_merge_extreme(&t%d, r%d, %d);\n", r, r,
                    e->merge[r] == TRLI_MERGE_MIN);
}

/* What merges its results: blocks go through rows, and parts of them, so that all threads of a warp take part. */
static void put_merging(trli_emitter *e)
{
    put_head(e);
    put_totals(e);
    fputs("    const long long across = call.hi[1] - call.lo[1], rows = across * (call.hi[2] - call.lo[2]);\n"
          "    for (long long above = (long long)blockIdx.y * blockDim.y; above < rows;\n"
          "         above += (long long)gridDim.y * blockDim.y) {\n"
          "        const long long row = above + threadIdx.y, plane = trl_kernel_quotient(row, across);\n"
          "        const long long j = call.lo[1] + row - plane * across, k = call.lo[2] + plane;\n"
          "        for (long long left = call.lo[0] + (long long)blockIdx.x * blockDim.x; left < call.hi[0];\n"
          "             left += (long long)gridDim.x * blockDim.x) {\n"
          "            const long long i = left + threadIdx.x;\n",
          e->out);
    for (int r = 0; r < e->nroots; ++r)
        if (e->merge[r] == TRLI_MERGE_SUM)
            fprintf(e->out, "            double r%d = 0;\n", r);
        else
            fprintf(e->out, "            double r%d = t%d.extreme;\n", r, r);
    fputs("            if (row < rows && i < call.hi[0]) {\n", e->out);
    for (int i = 0; i < e->reads->nfields; ++i) put_array(e, "const double", "in", i, i, 4);
    put_point(e);
    fputs("            }\n", e->out);
    put_merges(e);
    fputs("        }\n    }\n", e->out);
    for (int r = 0; r < e->nroots; ++r)
        if (e->merge[r] == TRLI_MERGE_SUM)
            fprintf(e->out, "    trl_kernel_sum_empty(t%d, &call.share[%d]);\n", r, r);
        else
            fprintf(e->out, "    trl_kernel_end_extreme(&t%d, &call.share[%d], %d);\n", r, r,
                    e->merge[r] == TRLI_MERGE_MIN);
    fputs("}\n", e->out);
}

static trl_err put_kernel(trli_emitter *e)
{
    if (e->nlayers > 0 && !e->choices_fit) return TRL_OK; /* no text: its ghosts have to be in memory */
    if (e->merge)
        put_merging(e);
    else
        put_storing(e);
    return TRL_OK;
}

const trli_dialect trli_dialect_cuda = {
    .put_kernel = put_kernel, .put_use = put_use, .suffix = "", .index = {"i", "j", "k"}, .points = true};
