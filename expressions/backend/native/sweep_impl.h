/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* How compiled kernels go through their boxes. */
#ifndef TRLI_SWEEP_IMPL_H
#define TRLI_SWEEP_IMPL_H

#include "native_impl.h"
#include "reads_impl.h"

/* The variants of a loop over boxes that were timed for a kernel, and the fastest. */
typedef struct trli_tuning trli_tuning;

/* The median of up to TRLI_SAMPLES_MOST times; of two in the middle, the larger one. */
enum { TRLI_SAMPLES_MOST = 16 };
double trli_median(const double *samples, int n);
/* A kernel, and the size of what it goes through. */
typedef struct trli_tuning_request {
    const char *label;
    int nout;                /* results */
    const trli_reads *reads; /* inputs */
    int64_t points;          /* of all patches of the rank */
    trl_lidx row;            /* of them, along x, at most */
    bool streaming;          /* the fields outgrow the caches */
    int interleave;          /* the most planes whose rows the kernel interleaves */
    int nparts;              /* of the kernel: one after the other in each block */
    int shared_rows;         /* of a point, of what several of them read */
    int part_nout;           /* results and inputs of the largest */
    const trli_reads *part_reads;
    const char *text;              /* of the kernel; NULL: nothing is kept */
    const trli_compiler *compiler; /* what an earlier run found out comes from its cache; NULL: there is none */
} trli_tuning_request;
/* Fails with MEMORY. */
TRL_NODISCARD trl_err trli_tuning_create(trl_context *ctx, const trli_tuning_request *request, trli_tuning **tuning);
/* Try nothing: use the variant that was the fastest for another kernel of the same box. For benchmarks. */
void trli_tuning_follow(trli_tuning *tuning, const trli_tuning *other);
/* Keeps in the cache what was found out. */
void trli_tuning_destroy(trli_tuning **tuning);
/* A function that computes some results of a kernel, and its call, which has the box of all. */
typedef struct trli_native_part {
    trli_native_fn native;
    trl_kernel_call call;
} trli_native_part;

/* Call a compiled kernel for its box, by the fastest variant known so far; false if it checks its results and found
 * values that are not finite. Thread: any. */
bool trli_sweep(const trli_native_part *part, int nparts, trli_tuning *tuning);

#endif
