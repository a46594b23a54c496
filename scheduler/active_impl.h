/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* How many workers take part in the runs of a graph. The number is measured, because neither the tasks of a graph
 * nor its workers show what waking, waiting and other programs cost. */
#ifndef TRL_ACTIVE_IMPL_H
#define TRL_ACTIVE_IMPL_H

#include <stdbool.h>
#include <stdint.h>

enum { TRLI_ACTIVE_LEVELS = 32 };

/* The runs of the last few hundredths of a second at a level: some of them were disturbed by other programs. */
typedef struct trli_active_window {
    double ns, runs; /* both are halved when the runs are long ago */
} trli_active_window;

/* Of one graph, all zero at first. At level l the first workers / 2^l, rounded up, take part: level 0 has all. A trial
 * is a few runs at a neighbouring level. */
typedef struct trli_active {
    int level;           /* of the runs between trials */
    int trial;           /* level under trial, if `trying` */
    bool trying, larger; /* the next trial is with more workers */
    int64_t runs, ns;    /* of the trial, or since the last one */
    int64_t settle;      /* ns: runs before that time pay for the change of workers and do not count */
    int64_t wait;        /* ns of runs before the next trial; 0: no trial was without gain yet */
    trli_active_window window[TRLI_ACTIVE_LEVELS];
} trli_active;

/* Workers for the next run: 1 <= size <= workers. */
int trli_active_workers(const trli_active *a, int workers);
/* Learn from a run with that many workers that took so long. */
void trli_active_learn(trli_active *a, int workers, int64_t ns);

#endif
