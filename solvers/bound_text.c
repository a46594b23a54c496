/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* What the largest rate follows from, as text for GPUs: tables in front of trl_bound_body.h's functions. */
#include <math.h>
#include <string.h>

#include "bound_text_impl.h"
#include "memory_impl.h"

enum {
    TOGETHER_MOST = 32,     /* equations of a component: as many as there are threads, a row for each */
    SHARED_MOST = 40 << 10, /* bytes of a block's memory, of 48 KiB that every block may have */
    BLOCKS_MOST = 1024      /* of the Jacobian: text of some 300 KiB, which takes a second to compile */
};

typedef struct writer {
    const trli_rates *all;
    int nvalues, *value; /* scalars in the order in which the kernel has them */
    FILE *out;
} writer;

static int number_of(writer *w, int scalar)
{
    int i = 0;
    while (i < w->nvalues && w->value[i] != scalar) ++i;
    if (i == w->nvalues) w->value[w->nvalues++] = scalar;
    return i;
}

static void write_quantity(writer *w, const trli_quantity *q)
{
    const int scalar = q->kind == TRLI_QUANTITY_SCALAR ? number_of(w, q->scalar) : 0;
    (void)fprintf(w->out, "{(trli_quantity_kind)%d, %d, %a}", (int)q->kind, scalar,
                  q->kind == TRLI_QUANTITY_CONSTANT ? q->constant : 0.0);
}

/* One at least: an array has no length 0. */
static void write_quantities(writer *w, const char *name, int n, const trli_quantity *q)
{
    (void)fprintf(w->out, "static __device__ const trli_quantity %s[] = {", name);
    for (int i = 0; i < n; ++i) {
        write_quantity(w, &q[i]);
        (void)fprintf(w->out, ",\n");
    }
    (void)fprintf(w->out, "%s};\n", n > 0 ? "" : "{}");
}

static void write_integers(writer *w, const char *name, int n, const int *x)
{
    (void)fprintf(w->out, "static __device__ const int %s[] = {", name);
    for (int i = 0; i < n; ++i) (void)fprintf(w->out, "%d,%s", x[i], i % 20 == 19 ? "\n" : "");
    (void)fprintf(w->out, "%s};\n", n > 0 ? "" : "0");
}

static void write_blocks(writer *w, int n)
{
    (void)fprintf(w->out, "static __device__ const trli_coupling block[] = {");
    for (int i = 0; i < n; ++i) {
        const trli_coupling *b = &w->all->block[i];
        (void)fprintf(w->out, "{%d, %d, %s, {", b->row, b->column, b->wide ? "true" : "false");
        for (int p = 0; p < TRLI_COUPLING_PARTS; ++p) {
            write_quantity(w, &b->part[p]);
            (void)fprintf(w->out, p + 1 < TRLI_COUPLING_PARTS ? ", " : "}},\n");
        }
    }
    (void)fprintf(w->out, "%s};\n", n > 0 ? "" : "{}");
}

static int size_of(const trli_rates *all, int component)
{
    return all->begin[component + 1] - all->begin[component];
}

static size_t shared_of(const trli_rates *all, int values)
{
    size_t bytes = (size_t)values * sizeof(double) + ((size_t)all->ncomponents + 1) * sizeof(trli_rate);
    for (int c = 0; c < all->ncomponents; ++c) bytes += (size_t)TRLI_RATE_WORK(size_of(all, c)) * sizeof(double);
    return bytes;
}

static void write_work(writer *w)
{
    int at = 0;
    (void)fprintf(w->out, "static __device__ const int place[] = {");
    for (int c = 0; c < w->all->ncomponents; ++c) {
        (void)fprintf(w->out, "%d,\n", at);
        at += TRLI_RATE_WORK(size_of(w->all, c));
    }
    (void)fprintf(w->out, "%s};\nenum { WORK = %d, COMPONENTS = %d };\n", w->all->ncomponents > 0 ? "" : "0",
                  at > 0 ? at : 1, w->all->ncomponents);
}

/* Equations by themselves by a thread each, coupled ones by all threads of the block, and what follows in the order of
 * components by the first thread. */
static void write_rate(writer *w)
{
    const trli_rates *a = w->all;
    int largest = 1;
    for (int c = 0; c < a->ncomponents; ++c) largest = size_of(a, c) > largest ? size_of(a, c) : largest;
    (void)fprintf(
        w->out,
        "TRL_BODY double rate(const double *value)\n"
        "{\n"
        "    __shared__ trli_rate one[COMPONENTS + 1];\n"
        "    __shared__ double work[WORK];\n"
        "    const trli_rates all = {%d, %d, %d, %d, %d, %d, %s, %a, %a, %a, block, first, component, member,\n"
        "                            begin, known, sum, plugin_dt, given, value};\n"
        "    const trli_lane together = {(int)threadIdx.x, (int)blockDim.x};\n"
        "    for (int c = (int)threadIdx.x; c < COMPONENTS; c += (int)blockDim.x)\n"
        "        if (all.largest == 1 || begin[c + 1] - begin[c] == 1)\n"
        "            one[c] = trli_component_rate(&all, trli_alone(), c, work + place[c]);\n"
        "    for (int c = 0; all.largest > 1 && c < COMPONENTS; ++c) {\n"
        "        if (begin[c + 1] - begin[c] == 1) continue;\n"
        "        const trli_rate r = trli_component_rate(&all, together, c, work + place[c]);\n"
        "        if (threadIdx.x == 0) one[c] = r;\n"
        "    }\n"
        "    __syncthreads();\n"
        "    trli_rate largest = trli_rate_of_nothing();\n"
        "    if (threadIdx.x != 0) return 0;\n"
        "    for (int c = 0; c < COMPONENTS; ++c) trli_rate_take(&one[c], &largest);\n"
        "    trli_rate_of_others(&all, &largest);\n"
        "    return largest.rate;\n"
        "}\n",
        a->dim, a->nequations, a->ncomponents, a->nsums, a->nplugins, largest, a->by_sums ? "true" : "false", a->radius,
        a->imaginary, a->scale);
}

static bool is_finite(const trli_quantity *q)
{
    return q->kind != TRLI_QUANTITY_CONSTANT || isfinite(q->constant);
}

bool trli_bound_may_be_text(const trli_rates *all)
{
    const int n = all->nequations, nblocks = all->by_sums ? 0 : all->first[n];
    bool may = nblocks <= BLOCKS_MOST && shared_of(all, 0) <= SHARED_MOST && is_finite(all->given);
    for (int c = 0; c < all->ncomponents; ++c) may &= size_of(all, c) <= TOGETHER_MOST;
    for (int e = 0; e < n; ++e) may &= is_finite(&all->known[e]);
    for (int i = 0; i < all->nsums; ++i) may &= is_finite(&all->sum[i]);
    for (int i = 0; i < nblocks && may; ++i)
        for (int p = 0; p < TRLI_COUPLING_PARTS; ++p) may &= is_finite(&all->block[i].part[p]);
    return may;
}

int trli_bound_write(const trli_rates *all, int *value, FILE *out)
{
    writer w = {.all = all, .value = value, .out = out};
    const int n = all->nequations, nblocks = all->by_sums ? 0 : all->first[n];
    (void)fputs(trli_bound_prelude, out);
    (void)fprintf(out, "namespace TRL_LATE {\n");
    write_blocks(&w, nblocks);
    write_integers(&w, "first", all->by_sums ? 0 : n + 1, all->first);
    write_integers(&w, "component", all->ncomponents ? n : 0, all->component);
    write_integers(&w, "member", all->ncomponents ? n : 0, all->member);
    write_integers(&w, "begin", all->ncomponents ? all->ncomponents + 1 : 0, all->begin);
    write_quantities(&w, "known", n, all->known);
    write_quantities(&w, "sum", all->nsums, all->sum);
    write_quantities(&w, "plugin_dt", all->nplugins, all->plugin_dt);
    write_quantities(&w, "given", 1, all->given);
    write_work(&w);
    write_rate(&w);
    (void)fprintf(out, "}\n");
    return shared_of(all, w.nvalues) <= SHARED_MOST ? w.nvalues : -1;
}
