/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* What code for an incompressible flow to compare with provides: a shared object of its own, loaded by the benchmark,
 * so that the command does not depend on what it links with. */
#ifndef TRLI_BENCH_FLOW_PEER_H
#define TRLI_BENCH_FLOW_PEER_H

/* Taylor-Green vortices in a periodic cube of n^3 cells and length 2 pi, by ssprk3. */
typedef struct trli_vortices {
    int n;
    double viscosity, dt;
} trli_vortices;

typedef struct trli_flow_peer {
    const char *name;
    /* The velocity at t = 0, and everything that can be done once, on one thread. NULL: failed. */
    void *(*create)(const trli_vortices *problem);
    void (*step)(void *made);
    /* The x-component at the lower faces of cells, the first index fastest. */
    void (*copy)(const void *made, double *u);
    void (*destroy)(void *made);
} trli_flow_peer;

/* What the shared object exports. */
__attribute__((visibility("default"))) const trli_flow_peer *trli_flow_peer_export(void);

#endif
