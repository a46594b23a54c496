/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Compiled kernels: the system's C compiler run on emitted text, its results kept in the user's cache by content, and
 * loaded. */
#ifndef TRLI_NATIVE_IMPL_H
#define TRLI_NATIVE_IMPL_H

#include <trl_context.h>
#include <trl_kernel_body.h>

#include "cache_impl.h"

/* The text that precedes every kernel, made by the build of the *_body.h of functions, limiters and kernels. */
extern const char trli_kernel_prelude[];

typedef void (*trli_native_fn)(trl_kernel_call *call);

typedef struct trli_compiler trli_compiler; /* of one rank: what it compiles, and where the results are kept */

/* Find the compiler and the cache. Without a compiler later calls say what is missing; a warning tells of a cache that
 * is not safe. fast_math: a product and a sum may be rounded together. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_compiler_create(trl_context *ctx, bool fast_math, trli_compiler **compiler);
/* Compilers still at work are stopped. Functions stay valid until then. */
void trli_compiler_destroy(trli_compiler **compiler);
/* Ask for a kernel; equal texts are compiled once. The text is copied. *fn is set, now from the cache (if there is one
 * rank), when ranks share, or by a later poll, and stays NULL if there is no way. */
TRL_NODISCARD trl_err trli_compiler_add(trli_compiler *compiler, const char *text, trli_native_fn *fn);
/* The cache, and the name of its entry for what was found out of a text on this machine, for a size; NULL: no cache. */
const trli_cache *trli_compiler_entry(const trli_compiler *compiler, const char *text, const void *size, size_t bytes,
                                      char name[TRLI_ENTRY_ROOM]);
/* After the last kernel was asked for, share the work with all ranks that ask for the same entries of the cache: each
 * is looked up and compiled by one rank of the first node that has such ranks, and comes to the others in messages.
 * Sets the functions that a rank found in its cache. Ranks that alone have their entries, or do not call this, do their
 * own. Fails with MEMORY, MPI. Collective: yes. */
TRL_NODISCARD trl_err trli_compiler_share(trli_compiler *compiler);
/* Start compilers, as many at once as the rank has threads, and take in what they finished, and what other ranks
 * sent. Returns how many kernels are still under way. wait: return when none is. Thread: main, with no kernel
 * running. */
int trli_compiler_poll(trli_compiler *compiler, bool wait);
typedef struct trli_compiler_stats {
    int under_way;                          /* kernels still to come, once the first compiler has started */
    int compiled, cached, received, failed; /* cached: they came from the cache; received: from another rank */
    double seconds;                         /* that compilers took for those compiled, one after the other */
    bool keeps;                             /* there is a cache for them */
    const char *why;                        /* what went wrong with the first that failed, or NULL */
} trli_compiler_stats;
trli_compiler_stats trli_compiler_get_stats(const trli_compiler *compiler);

#endif
