/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The placement of a graph over its runs. */
#ifndef TRLI_PLACEMENT_RUN_IMPL_H
#define TRLI_PLACEMENT_RUN_IMPL_H

#include "placed_impl.h"

/* Guarded by the graph's `placing`. */
typedef struct trli_placement {
    trl_graph *graph;
    const trl_devices *devices;
    int workers;
    trli_platform platform;
    trli_placement_kind kind;
    bool excluded[TRLI_EXECUTORS]; /* devices that are not used any more */
    int stage;                     /* the executor that is timed; all are: the number of executors */
    int64_t runs;                  /* of the placement */
    int64_t sum_ns;                /* of its runs since it was looked at */
    int runs_now;                  /* in progress */
    double usual_ns;               /* mean of its first runs */
    uint16_t *eligible;            /* [tasks] */
    uint8_t *executor;             /* [tasks] */
    double *seconds;               /* [tasks][executors]; 0: not timed */
    double *latest;                /* [tasks] of the last watched run */
    trli_placed *placed;           /* NULL: to be made */
} trli_placement;

/* A run begins: what the graph is run as, with memory for all data of the frame. A device without memory, or that is
 * lost, is left out. */
TRL_NODISCARD trl_err trli_placement_begin(trl_graph *graph, const trl_devices *devices, int workers, void *frame,
                                           trli_placed **placed);
/* It is over, with this result, after so many ns. */
void trli_placement_end(trl_graph *graph, trl_err err, int64_t ns);
void trli_placement_destroy(trl_graph *graph);

/* ---- platform.c ---- */

/* The executors and links of this machine: measured once for each set of devices. */
void trli_platform_of(const trl_devices *devices, int workers, trli_platform *platform);

#endif
