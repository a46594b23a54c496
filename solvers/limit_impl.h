/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The stable time step: what the search for transport and the program that bounds it share. */
#ifndef TRLI_LIMIT_IMPL_H
#define TRLI_LIMIT_IMPL_H

#include "simulation_impl.h"

#include "lower_impl.h"

typedef enum trli_transport_kind { TRLI_ADVECTION, TRLI_DIFFUSION } trli_transport_kind;

/* One transport term of an equation: a velocity or a diffusivity on the faces around the equation's points, and what multiplies the
 * divergence there. */
typedef struct trli_transport {
    trli_transport_kind kind;
    bool axis[3];       /* along which it acts */
    trli_value face[3]; /* component a at the equation's location with bit a flipped */
    trli_value outer;   /* at the equation's location; TRLI_NO_VALUE: one */
    bool central;       /* advection without upwinding */
} trli_transport;

typedef struct trli_transport_list {
    int n, capacity;
    trli_transport *term;
    bool unbounded;  /* some transport could not be bounded: */
    trl_place place; /* where it stands */
    char text[80];   /* what it is */
} trli_transport_list;

/* By entry: whether its formula differentiates something, itself or through others. The caller frees *entries. */
TRL_NODISCARD trl_err trli_find_differentiating(trl_simulation *sim, bool **entries);
/* Find the transport in an equation's ddt, through named expressions. Values are lowered in the instance. */
TRL_NODISCARD trl_err trli_find_transport(trl_simulation *sim, trli_instance *in, int equation,
                                          const bool *differentiating, trli_transport_list *list);

#endif
