/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Expected speeds of devices before anything was timed on them. */
#ifndef TRLI_MACHINES_IMPL_H
#define TRLI_MACHINES_IMPL_H

#include <stdbool.h>

/* Seconds for a copy of n bytes: latency + n / rate. */
typedef struct trli_route {
    double latency, rate;
} trli_route;

/* All zero: as fast as a worker. */
typedef struct trli_figures {
    double speed;            /* times as fast as a worker; 0: the following members decide, if they are set */
    double bandwidth, flops; /* per second: bytes that kernels move, operations in double precision */
    double launch;           /* s of a call beside its work */
    bool modelled;         /* the machine does not have the device: copies, too, take what the following members say */
    trli_route host, peer; /* copies from and to the host, and between two such devices */
} trli_figures;

/* The figures of the machine of the table that matches a driver's name of a device, with so many bytes of memory;
 * all zero: there is none. machines.c. */
trli_figures trli_figures_of(const char *name, double bytes);

/* Expected seconds of a call for which a worker alone takes `seconds`; bytes and flops: of the call, 0: unknown. */
static inline double trli_figures_seconds(const trli_figures *f, double alone, double bytes, double flops)
{
    if (f->speed > 0) return alone / f->speed + f->launch;
    if (f->bandwidth <= 0) return alone;
    const double moving = bytes / f->bandwidth, computing = flops / f->flops;
    return (moving > computing ? moving : computing) + f->launch;
}

#endif
