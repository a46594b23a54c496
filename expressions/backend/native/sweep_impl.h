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

/* How planes are gone through. */
typedef struct trli_sweep_way {
    int interleave;  /* planes whose rows are interleaved */
    bool streaming;  /* by streaming stores */
    int ahead;       /* rows of the next plane that are prefetched */
    int depth;       /* planes that a part goes through before the next one does; 0: all */
    long long block; /* rows at a time; 0: all */
} trli_sweep_way;

/* Call a compiled kernel for the first planes of its box, as long as there are variants to try. Returns the first plane
 * that is left. Clears *finite if the kernel checks its results and found values that are not finite. Thread: any, as
 * of the functions below. */
long long trli_sweep_try(const trli_native_part *part, int nparts, trli_tuning *tuning, bool *finite);
/* The fastest variant known so far. */
trli_sweep_way trli_tuning_best(const trli_tuning *tuning);
/* Call a compiled kernel for planes [first, end) of its box; false: it found values that are not finite. */
bool trli_sweep_planes(const trli_native_part *part, int nparts, const trli_sweep_way *way, long long first,
                       long long end);
/* ns of a point in the fastest variant, as noted last; 0: not noted yet. */
double trli_tuning_ns(const trli_tuning *tuning);
void trli_tuning_note(trli_tuning *tuning, double ns);

#endif
