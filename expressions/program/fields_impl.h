/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Fields of a model. */
#ifndef TRLI_FIELDS_IMPL_H
#define TRLI_FIELDS_IMPL_H

#include <trl_entry.h>
#include <trl_operator.h>

typedef struct trli_boundary_source { /* whose conditions fill a field's ghosts */
    const trl_bc_side *side;          /* [6], or NULL */
    const trl_scope *names;
    const char *name; /* of the equation or expression, for messages */
    trl_place place;
} trli_boundary_source;

typedef struct trli_model_field {
    const char *name;
    trl_location location;
    bool persistent; /* has a slot of its own */
    bool exchanged;  /* ghosts come from owners and boundary conditions, not from computing on a larger box */
    trli_boundary_source boundary;
    unsigned char missed;   /* sides whose missing condition was reported: bit 2*axis + side */
    int8_t fixed_planes[6]; /* planes at a side that no kernel computes: a Dirichlet condition sets them */
    bool keeps_planes;      /* no program sets these: what they hold at first stays */
    bool lasting;           /* program `lasting` computes it once, ghosts included, and all others read it as it is */
    int slot;
    trl_lidx ghost_lo[3], ghost_hi[3]; /* allocated */
    const char
        *why; /* of an intermediate: the reason why it is stored, instead of being a part of its readers' kernels */
    int direction, primal; /* direction not 0: its conditions are the derivatives of those of field primal */
    bool only_sides;       /* such a field is 0 but where its conditions say something else */
} trli_model_field;

#endif
