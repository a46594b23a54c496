/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The scalability study: its measured curves, their pictures, and a model of them. */
#ifndef TRLI_BENCH_SCALABILITY_IMPL_H
#define TRLI_BENCH_SCALABILITY_IMPL_H

#include "bench_launch_impl.h"

enum { TRLI_STUDY_POINTS = 64, TRLI_STUDY_ROUNDS = 3 };

/* Threads of each of so many ranks. */
typedef struct trli_study_point {
    int ranks, tasks, operators;
    bool coarse;      /* its counts are powers of four, or as large as can be: measured before the others */
    int place, curve; /* in the picture: along its axis, and which line: the count of the other threads */
    int n;            /* times it was measured; after that: */
    double seconds[TRLI_STUDY_ROUNDS];
    trli_spread time;       /* of a step; sorted */
    double messages, bytes; /* of a step, of all ranks */
} trli_study_point;

/* A figure of one problem. */
typedef struct trli_curves {
    const char *figure, *shows, *name, *along, *lines;
    int cells[3], equations, stages;
    int n;
    trli_study_point point[1 + TRLI_STUDY_POINTS]; /* the first: one thread */
    double bytes_per_cell;                         /* and step, that memory moves */
} trli_curves;

/* What a machine takes for the parts of a step. */
typedef struct trli_study_costs {
    double one, all; /* bytes/s of memory, for one core and for all */
    int cores;
    double message, byte, reduction; /* seconds of ranks beside each other; of a round of a reduction */
} trli_study_costs;

static inline int trli_study_workers(const trli_study_point *p)
{
    return p->ranks * (p->tasks + p->operators);
}

/* ---- bench_scalability_draw.c ---- */

/* A picture FOLDER/figure-4.3.png of the curves of a figure, a panel for each problem. Fails with IO, MEMORY. */
TRL_NODISCARD trl_err trli_study_draw(trl_context *ctx, const char *folder, const trli_curves *curves, int ncurves,
                                      const trli_study_costs *costs);

/* ---- bench_scalability_model.c ---- */

/* Measure messages and reductions between two ranks, by runs of small decks. Fails as trli_launch_run. */
TRL_NODISCARD trl_err trli_study_measure_costs(trli_bench *bench, trli_study_costs *costs);
/* Seconds of a step at a point, from those of one thread. */
double trli_study_predict(const trli_curves *curves, const trli_study_point *point, const trli_study_costs *costs);
/* Seconds of a step that memory alone would need with so many cores. */
double trli_study_roofline(const trli_curves *curves, int cores, const trli_study_costs *costs);
/* Print and report the model beside what was measured, and what it says of more ranks than the machine has. */
void trli_study_compare(trli_bench *bench, const trli_curves *curves, int ncurves, const trli_study_costs *costs);

#endif
