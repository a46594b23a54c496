/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* OpenMP tasks. They are made anew in each run: OpenMP 5.0 has nothing that keeps them. */
#include <omp.h>
#include <stdlib.h>

#include "../bench_baseline.h"

typedef struct graph {
    const trli_dag_view *view;
    trli_dag_work work;
    void *data;
    char *token; /* [tasks] what dependencies name; never touched */
} graph;

static int team;

static int start(int threads, void (*pin)(void *pin_data, int member), void *pin_data)
{
    team = threads;
#pragma omp parallel num_threads(team)
    pin(pin_data, omp_get_thread_num());
    return 0;
}

static void stop(void)
{
    omp_pause_resource_all(omp_pause_hard);
}

static void destroy(void *data)
{
    graph *g = data;
    if (g) free(g->token);
    free(g);
}

static void *create(const trli_dag_view *view, trli_dag_work work, void *data)
{
    graph *g = calloc(1, sizeof *g);
    if (!g) return NULL;
    *g = (graph){.view = view, .work = work, .data = data, .token = calloc((size_t)view->tasks, 1)};
    if (g->token) return g;
    destroy(g);
    return NULL;
}

/* Few predecessors are named one by one, which costs less than an iterator. */
static void add(graph *g, int32_t t)
{
    const int32_t *p = g->view->predecessors + g->view->pred_first[t];
    int32_t n = g->view->pred_first[t + 1] - g->view->pred_first[t];
    trli_dag_work work = g->work;
    void *data = g->data;
    (void)p; /* read in depend clauses only, which the static analysis does not see */
    switch (n) {
    case 0:
#pragma omp task firstprivate(work, data, t) depend(out : g->token[t])
        work(data, t);
        break;
    case 1:
#pragma omp task firstprivate(work, data, t) depend(in : g->token[p[0]]) depend(out : g->token[t])
        work(data, t);
        break;
    case 2:
#pragma omp task firstprivate(work, data, t) depend(in : g->token[p[0]], g->token[p[1]]) depend(out : g->token[t])
        work(data, t);
        break;
    case 3:
#pragma omp task firstprivate(work, data, t) depend(in                                                \
                                                    : g->token[p[0]], g->token[p[1]], g->token[p[2]]) \
    depend(out                                                                                        \
           : g->token[t])
        work(data, t);
        break;
    default:
#pragma omp task firstprivate(work, data, t) depend(iterator(i = 0 : n), in : g->token[p[i]]) depend(out : g->token[t])
        work(data, t);
        break;
    }
}

static int run(void *data)
{
    graph *g = data;
    trli_dag_work work = g->work;
    void *work_data = g->data;
    int32_t n = g->view->tasks;
#pragma omp parallel num_threads(team)
#pragma omp single
    {
        if (g->view->pred_first[n] == 0) {
            for (int32_t t = 0; t < n; ++t) {
#pragma omp task firstprivate(work, work_data, t)
                work(work_data, t);
            }
        } else {
            for (int32_t t = 0; t < n; ++t) add(g, t);
        }
    }
    return 0;
}

static void grow(int depth, int32_t number, trli_dag_work work, void *data)
{
    work(data, number);
    for (int32_t child = 2 * number + 1; depth > 1 && child <= 2 * number + 2; ++child) {
#pragma omp task firstprivate(depth, child, work, data)
        grow(depth - 1, child, work, data);
    }
}

static int tree(int depth, trli_dag_work work, void *data)
{
#pragma omp parallel num_threads(team)
#pragma omp single
    grow(depth, 0, work, data);
    return 0;
}

const trli_baseline *trli_baseline_export(void)
{
    static const trli_baseline openmp = {
        .name = "OpenMP tasks",
        .keeps = 0,
        .start = start,
        .stop = stop,
        .create = create,
        .run = run,
        .destroy = destroy,
        .tree = tree,
    };
    return &openmp;
}
