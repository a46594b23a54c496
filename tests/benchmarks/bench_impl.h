/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Benchmarks of `trellis bench`: their table, and what they share: threads, limits of the machine, rounds of contenders
 * that take turns, spreads, decks, and the report. */
#ifndef TRLI_BENCH_IMPL_H
#define TRLI_BENCH_IMPL_H

#include <trl_simulation.h>

#include "deck_impl.h"
#include "json_impl.h"

/* X(name, collective, doc): the command runs trli_bench_NAME; collective: on all ranks together, else on the first. */
#define TRLI_BENCHMARK_LIST(X)                                                                                     \
    X(heat, false, "T_t = k lap(T) on a 3-D grid, against hand-written unfused and fused loops")                   \
    X(operators, false, "operators on fields, against hand-written loops and the machine's streaming copy")        \
    X(kernels, false,                                                                                              \
      "compiled kernels of systems of equations, against the best loops by hand and the machine's streaming copy") \
    X(boundary, false, "what boundary conditions cost of a step")                                                  \
    X(build, false, "time from a deck of chained expressions to a frozen graph")                                   \
    X(tasks, false, "empty tasks in graphs of several shapes, against a serial replay and other task runtimes")    \
    X(grain, false,                                                                                                \
      "how long tasks must be to keep the cores busy, and what the runtime costs when they are few and long")      \
    X(gpu_heat, false, "T_t = k lap(T) on a GPU, against the best kernels by hand and the copy of the fields")     \
    X(gpu_transport, false,                                                                                        \
      "advection and diffusion of n scalars on a GPU, against the best kernels by hand and the copy")              \
    X(gpu_fields, false, "operators and reductions of a driver's fields that live on a GPU")                       \
    X(mpi, false, "decks on every split of the cores into ranks and threads: speed, messages and bytes")           \
    X(solve, true,                                                                                                 \
      "Poisson's equation in a cube beside FFTW by hand, hypre and PETSc; cycles, products, weak scaling")         \
    X(flow, false, "a step of an incompressible flow, beside scalars, a step by hand with FFTW, and multigrid")    \
    X(scalability, false, "the scalability study of Robison's thesis: task threads, operator threads and ranks")   \
    X(functions, false, "elementary functions of formulas: nanoseconds per value, beside the system's library")

typedef struct trli_bench {
    trl_context *ctx;                  /* of this process alone, or of all ranks where these run it together */
    bool quick;                        /* small sizes, few repetitions: shows that it works, not how fast */
    const char *figure;                /* of a study, that is wanted; NULL: all */
    const char *parts, *cells, *ranks; /* lists: of a benchmark's parts, sizes and numbers of ranks; NULL: its own */
    const char *pictures;              /* folder of those of a study; NULL: none */
    double minutes;                    /* that a study may take; 0: as long as it takes */
    int threads;                       /* what "all cores" means */
    bool busy;                         /* other programs used the cores: times and verdicts say little */
    trli_json *json;                   /* open at an object that takes the benchmark's keys */
} trli_bench;

typedef struct trli_benchmark {
    const char *name, *doc;
    bool collective;
    trl_err (*run)(trli_bench *bench);
} trli_benchmark;

/* All benchmarks. */
const trli_benchmark *trli_benchmarks(int *count);

#define TRLI_BENCHMARK_DECLARE(name, collective, doc) TRL_NODISCARD trl_err trli_bench_##name(trli_bench *bench);
TRLI_BENCHMARK_LIST(TRLI_BENCHMARK_DECLARE)
#undef TRLI_BENCHMARK_DECLARE

/* ---- bench_team.c: threads of hand-written loops ---- */

typedef struct trli_team trli_team;
/* Run work on n threads at once, one per core as long as there are cores; the caller is member 0. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_team_run(trl_context *ctx, int n, void (*work)(trli_team *team, int member, void *data),
                                    void *data);
int trli_team_size(const trli_team *team);
/* Every member waits for all others. Thread: members. */
void trli_team_barrier(trli_team *team);
/* The part of 0..n that a member works on. */
void trli_team_share(const trli_team *team, int member, ptrdiff_t n, ptrdiff_t *begin, ptrdiff_t *end);

/* Memory on a cache line's boundary, in large pages where the system has them, written with zeros. Fails with
 * MEMORY. */
TRL_NODISCARD trl_err trli_bench_alloc(trl_context *ctx, size_t count, double **values);

/* ---- bench_limits.c: what the machine's memory allows ---- */

typedef struct trli_limits {
    int threads;
    double copy, triad; /* bytes/s with streaming stores; the bytes the loop names */
} trli_limits;
/* Best of several passes over arrays that no cache holds, on one thread and on all; printed and reported. */
TRL_NODISCARD trl_err trli_limits_measure(trli_bench *bench, trli_limits *one, trli_limits *all);

/* ---- bench_cores.c: what each core does while all of them work ---- */

/* rate[bench->threads]: cells that a step of heat by hand updates in a second, on each core at once. Fails with
 * MEMORY. */
TRL_NODISCARD trl_err trli_cores_measure(trli_bench *bench, double *rate);
/* How fast equal shares of work on each of some ranks, whose threads have cores that follow one another, are at most,
 * as a part of what the same cores reach if each does what it can; of n cores, whose rates these are. */
double trli_cores_allow(const double *rate, int n, int ranks, int threads);

/* ---- bench_measure.c ---- */

typedef struct trli_spread {
    double median, min, max;
} trli_spread;
/* Of n > 0 numbers, which are sorted. */
trli_spread trli_spread_of(double *number, int n);
void trli_spread_report(trli_json *json, const char *key, const trli_spread *spread);
double trli_bench_clock(void);

enum { TRLI_NUMBERS_MOST = 12 };
typedef struct trli_numbers {
    int n, at[TRLI_NUMBERS_MOST];
} trli_numbers;

#define TRLI_ROUNDS_MAX 640

/* A way to do the work. */
typedef struct trli_contender {
    const char *name;
    trl_err (*run)(void *data);   /* one round */
    trl_err (*after)(void *data); /* each run, before the next contender's; NULL: nothing to do */
    trl_err (*check)(void *data); /* what it computed; NULL: nothing to look at */
    void *data;
    double seconds[TRLI_ROUNDS_MAX];
} trli_contender;

/* Rounds (at most TRLI_ROUNDS_MAX) of all contenders in turn, then a check of each: whatever slows the machine for a
 * while slows them all; every other round goes backwards. One untimed round comes first. */
TRL_NODISCARD trl_err trli_rounds_run(trli_contender *contender, int n, int rounds);
/* Whole numbers from 1 up, separated by commas, in the text of an option, or the default ones if it was not given.
 * Fails with INPUT. */
TRL_NODISCARD trl_err trli_bench_list(const trli_bench *bench, const char *option, const char *text,
                                      const char *otherwise, trli_numbers *numbers);
/* Which parts of a benchmark the option --parts asks for, by name, where the same
 * ones follow each other; all if it was not given. Fails with INPUT. */
TRL_NODISCARD trl_err trli_bench_parts(const trli_bench *bench, const char *benchmark, const char *const *name, int n,
                                       bool *wanted);
/* amount/seconds of a contender. */
trli_spread trli_rate(const trli_contender *contender, int rounds, double amount);
/* Speed of a contender over another's, round by round. */
trli_spread trli_ratio(const trli_contender *contender, const trli_contender *other, int rounds);

/* ---- bench_case.c: a deck from text to a simulation ---- */

typedef struct trli_case {
    trl_registry *registry;
    trli_deck *deck;
    trl_simulation *sim;
    double read, create, initialise; /* seconds */
} trli_case;
/* On what a case computes: run.devices. */
#define TRLI_ON_CORES "run.devices=cpu"
#define TRLI_ON_GPU "run.devices=[0]"
/* Read a deck's text, compile it and evaluate its initial values. The case is always safe to destroy. */
TRL_NODISCARD trl_err trli_case_create(trl_context *ctx, const char *text, const char *on, trli_case *c);
void trli_case_destroy(trli_case *c);

#endif
