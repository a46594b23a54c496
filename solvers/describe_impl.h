/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The plan as text, a line at a time: what describe.c and describe_bound.c share. */
#ifndef TRLI_DESCRIBE_IMPL_H
#define TRLI_DESCRIBE_IMPL_H

#include "simulation_impl.h"

typedef struct trli_listing {
    const trl_simulation *sim;
    void (*write)(void *data, const char *line);
    void *data;
} trli_listing;

/* A line of less than 768 bytes; longer ones are cut. */
void trli_listing_say(const trli_listing *l, const char *format, ...) TRL_PRINTF(2, 3);
/* Bytes with a unit that suits them; returns the buffer. */
const char *trli_with_unit(double bytes, char buffer[32]);
/* What bounds dt: the step, which terms decide, and the table M. */
void trli_describe_bound(const trli_listing *l);

/* describe_solve.c */
void trli_describe_solvers(const trli_listing *l);

#endif
