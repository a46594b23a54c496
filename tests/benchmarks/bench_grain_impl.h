/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Inside of the benchmark `grain`: what its parts share. */
#ifndef TRLI_BENCH_GRAIN_IMPL_H
#define TRLI_BENCH_GRAIN_IMPL_H

#include "bench_dag_impl.h"

/* Steps of few large tasks, narrow and wide, against loops without a runtime. Adds the key "large" to the report;
 * *slower: the worst time over that of the loop. */
TRL_NODISCARD trl_err trli_grain_large(trli_bench *bench, trl_workers *workers, int threads, double *slower);

#endif
