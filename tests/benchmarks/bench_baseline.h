/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* What a task runtime to compare with provides. Each is a shared object of its own, NAME.so, loaded by the benchmark:
 * neither the library nor the command depends on what it links with. It exports `const trli_baseline
 * *trli_baseline_export(void)`. */
#ifndef TRLI_BENCH_BASELINE_H
#define TRLI_BENCH_BASELINE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Tasks and what they wait for: predecessors[pred_first[t]] .. predecessors[pred_first[t + 1] - 1], all below t. */
typedef struct trli_dag_view {
    int32_t tasks;
    const int32_t *pred_first, *predecessors;
} trli_dag_view;

typedef void (*trli_dag_work)(void *data, int32_t task);

typedef struct trli_baseline {
    const char *name;
    int keeps; /* whether a graph, once made, is run many times; else each run makes it anew */
    /* REQUIRED. Start threads; each calls pin(pin_data, member) once, the caller being member 0 if it works too.
     * Nonzero: failed. */
    int (*start)(int threads, void (*pin)(void *pin_data, int member), void *pin_data);
    /* REQUIRED. */
    void (*stop)(void);
    /* REQUIRED. Prepare what can be run many times; `view` and its arrays stay. NULL: failed. */
    void *(*create)(const trli_dag_view *view, trli_dag_work work, void *data);
    /* REQUIRED. Call work(data, t) for each task once. Nonzero: failed. */
    int (*run)(void *graph);
    /* REQUIRED. */
    void (*destroy)(void *graph);
    /* OPTIONAL. A task that creates two more, and so on, 2^depth - 1 in all; work is called in each, with its number in
     * a heap. */
    int (*tree)(int depth, trli_dag_work work, void *data);
} trli_baseline;

/* What the shared object exports. */
__attribute__((visibility("default"))) const trli_baseline *trli_baseline_export(void);

#ifdef __cplusplus
}
#endif
#endif
