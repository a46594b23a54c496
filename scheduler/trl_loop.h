/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Parallel loops for drivers of one's own: chunks of work on all workers, without a task graph of one's own. */
#ifndef TRL_LOOP_H
#define TRL_LOOP_H

#include <trl_graph.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct trl_loop trl_loop;

/* One chunk, 0 <= chunk < chunks, on worker 0 <= worker < trl_loop_workers. Chunks of a loop run in any order and at
 * once. */
typedef trl_err (*trl_loop_fn)(void *data, int chunk, int chunks, int worker);

/* A loop is made once and run any number of times. The workers outlive it. */
TRL_API TRL_NODISCARD trl_err trl_loop_create(trl_context *ctx, trl_workers *workers, trl_loop **loop);
TRL_API void trl_loop_destroy(trl_loop **loop);
/* Call fn for every chunk (no chunks: do nothing) and wait for all of them. After an error no more chunks start, and
 * the first error is returned. loop NULL: the caller runs all chunks, in order. Allocates nothing after the first
 * run. Thread: any that is not in a task; one run of a loop at a time. */
TRL_API TRL_NODISCARD trl_err trl_loop_run(trl_loop *loop, int chunks, trl_loop_fn fn, void *data);
/* 1 without a loop. */
TRL_API int trl_loop_workers(const trl_loop *loop);

#ifdef __cplusplus
}
#endif
#endif
