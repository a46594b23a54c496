/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Runs of decks as programs of their own, on several ranks, for benchmarks; and what their reports say. */
#ifndef TRLI_BENCH_LAUNCH_IMPL_H
#define TRLI_BENCH_LAUNCH_IMPL_H

#include "bench_dag_impl.h"

typedef struct trli_launch {
    trl_context *ctx;
    char folder[64]; /* of the deck and what its runs write; "": none yet */
} trli_launch;

/* Write the deck of the runs to come. Fails with IO. */
TRL_NODISCARD trl_err trli_launch_prepare(trli_launch *launch, const char *deck);
/* Run the deck by `mpirun`, with these options of `trellis run` beside those for threads, and read the text of its
 * report, for trli_free. Fails with IO, MEMORY. */
TRL_NODISCARD trl_err trli_launch_run(const trli_launch *launch, int ranks, int threads, const char *const *options,
                                      char **report);
/* Make the folder of runs that need no deck. Fails with IO. */
TRL_NODISCARD trl_err trli_launch_begin(trli_launch *launch);
/* Run `trellis bench` by `mpirun`, with these arguments beside --json, and read what it prints and the text that it
 * writes, both for trli_free. Fails with IO, MEMORY. */
TRL_NODISCARD trl_err trli_launch_bench(const trli_launch *launch, int ranks, const char *const *options,
                                        char **printed, char **report);
/* Remove what the runs wrote. */
void trli_launch_clean(trli_launch *launch);

/* The number behind a key, of the object behind another one; inside: NULL: that of the report. NaN: there is none. */
double trli_report_number(const char *report, const char *key, const char *inside);
/* The text behind the first such key; "": there is none. */
void trli_report_text(const char *report, const char *key, char *text, size_t size);

/* ---- bench_mpi_costs.c: parts of the benchmark mpi, each with objects in the array that is open, and a gate ---- */

TRL_NODISCARD trl_err trli_bench_mpi_latency(trli_bench *bench, trli_gate *gate);
TRL_NODISCARD trl_err trli_bench_mpi_setup(trli_bench *bench, trli_gate *gate);

#endif
