/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Steps of a program: what is computed, from what and into what. How passes and runs go about it stands in their plans.
 */
#ifndef TRLI_STEP_IMPL_H
#define TRLI_STEP_IMPL_H

#include "side_impl.h"

typedef enum trli_step_kind {
    TRLI_STEP_KERNEL,    /* values to fields of one location */
    TRLI_STEP_PLUGIN,    /* a plugin's evaluate */
    TRLI_STEP_FILL,      /* ghosts of fields: exchange, then conditions */
    TRLI_STEP_PLANES,    /* points on sides */
    TRLI_STEP_REDUCE,    /* a value over all points to a scalar */
    TRLI_STEP_STABLE_DT, /* the smallest of a plugin's stable_dt over all patches to a scalar */
    TRLI_STEP_SCALAR,    /* a value that varies nowhere to a scalar */
    TRLI_STEP_READ,      /* computes nothing: after the program, its caller reads a field around its points */
    TRLI_STEP_CALL       /* another program of the model, once or round after round */
} trli_step_kind;

typedef enum trli_reduce_kind { TRLI_REDUCE_SUM, TRLI_REDUCE_MIN, TRLI_REDUCE_MAX, TRLI_REDUCE_POINT } trli_reduce_kind;

/* PLUGIN, STABLE_DT: a call of a plugin. */
typedef struct trli_plugin_step {
    const trli_opaque *called;
    int *input; /* [called->ninputs] fields, in the plugin's order */
} trli_plugin_step;

typedef struct trli_fill_step {
    trli_side (*sides)[6]; /* [nout] */
    bool exchange_only;    /* of ghosts that are points of the domain */
} trli_fill_step;

typedef struct trli_planes_step {
    trli_side (*sides)[6]; /* [nout] */
    int nplanes;           /* the sides that it sets, in that order */
    trli_plane *plane;
} trli_planes_step;

typedef struct trli_reduce_step {
    trli_reduce_kind kind;
    trl_location location;
    trl_gidx point[3]; /* POINT */
    bool weighted;     /* SUM: points on a non-periodic side count half */
    bool inside;       /* leave out points whose inputs lie beyond a side */
} trli_reduce_step;

typedef struct trli_read_step {
    int *field;       /* the one */
    int depth;        /* of points around the points owned */
    trl_offsets side; /* beyond the first and the last point of each axis; inside, the next points are read too */
} trli_read_step;

typedef struct trli_step {
    trli_step_kind kind;
    const char *label;
    trl_place place; /* of the formula that it was appended for, where users find what it reads; none: the equations' */
    int nout;        /* results in fields */
    int *field;      /* [nout] that hold them */
    int scalar;      /* that holds the result; -1: fields do */
    trli_ir_value *value; /* [nout], or the one of a scalar; NULL: no results of the IR */
    int *variable;        /* [nout] whose values they are, which must be finite; NULL: they may be anything */
    int time_scalar;      /* the time that plugins are told which the step calls, */
    int stage;            /* and the stage */
    bool again;           /* what another step computed, on more points, if some reader needs them */
    union {
        trli_plugin_step plugin;
        trli_fill_step fill;
        trli_planes_step planes;
        trli_reduce_step reduce;
        trli_read_step read;
        const struct trli_program_call *call; /* called_programs_impl.h */
    };
} trli_step;

/* Whether a step computes fields at points: a kernel or a plugin. */
static inline bool trli_step_computes(const trli_step *s)
{
    return s->kind == TRLI_STEP_KERNEL || s->kind == TRLI_STEP_PLUGIN;
}

/* The call of a plugin that a step is, or NULL. */
static inline const trli_plugin_step *trli_step_plugin(const trli_step *s)
{
    return s->kind == TRLI_STEP_PLUGIN || s->kind == TRLI_STEP_STABLE_DT ? &s->plugin : NULL;
}

/* The conditions of a step that sets ghosts or sides, [nout][6], or NULL. */
static inline trli_side (*trli_step_sides(const trli_step *s))[6]
{
    return s->kind == TRLI_STEP_FILL ? s->fill.sides : s->kind == TRLI_STEP_PLANES ? s->planes.sides : NULL;
}

#endif
