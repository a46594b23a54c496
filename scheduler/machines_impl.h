/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* What devices are reckoned to do before anything was timed on them. */
#ifndef TRLI_MACHINES_IMPL_H
#define TRLI_MACHINES_IMPL_H

#include <stdbool.h>

/* Seconds for a copy of n bytes: latency + n / rate. */
typedef struct trli_route {
    double latency, rate;
} trli_route;

/* All zero: as a worker. */
typedef struct trli_figures {
    double speed;            /* times as fast as a worker; 0: by what follows, if there is any */
    double bandwidth, flops; /* a second: bytes that kernels move, double precision */
    double launch;           /* s of a call beside its work */
    bool modelled;           /* the device is not there: copies, too, take what follows, not what is measured */
    trli_route host, peer;   /* copies from and to the host, and between two such devices */
} trli_figures;

/* The figures of the machine of the table that a driver's name of a device is about, with so many bytes of memory; all
 * zero: there is none. machines.c. */
trli_figures trli_figures_of(const char *name, double bytes);

/* Seconds of a call that a worker alone does in so many; bytes and flops: of the call, 0: unknown. */
static inline double trli_figures_seconds(const trli_figures *f, double alone, double bytes, double flops)
{
    if (f->speed > 0) return alone / f->speed + f->launch;
    if (f->bandwidth <= 0) return alone;
    const double moving = bytes / f->bandwidth, computing = flops / f->flops;
    return (moving > computing ? moving : computing) + f->launch;
}

#endif
