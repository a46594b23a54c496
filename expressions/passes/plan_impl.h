/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* What the analysis of a program finds out: which steps are live, what readers need of fields, the kernels of
 * conditions, exchanges. */
#ifndef TRLI_PLAN_IMPL_H
#define TRLI_PLAN_IMPL_H

#include "program_impl.h"
#include "reads_impl.h"

/* What readers need of a field beyond its owned points. inner: at sides shared with other patches (and periodic ones);
 * side: at the domain's sides. */
typedef struct trli_demand {
    bool live;                 /* read at all, or a root */
    bool beyond;               /* side is set */
    const trl_place *asker[6]; /* of the step that reads farthest beyond each side */
    trl_footprint inner;
    trl_offsets side;
    trl_footprint corner; /* the same as parts: which ghosts beyond several sides are read together */
    bool further[3];      /* beyond the plus side of an axis some reader has points farther out than beyond a patch */
} trli_demand;

enum { TRLI_LAYERS_OF_ROW = 4 }; /* of ghosts at one side, at most, that a kernel computes from the row beside them */

typedef enum trli_slab_kind {
    TRLI_SLAB_KERNEL,  /* a kernel computes it */
    TRLI_SLAB_IMAGE,   /* copies of points inside that are beyond a periodic side, where one patch has both sides of the
                          axis */
    TRLI_SLAB_MODIFIER /* a plugin sets it */
} trli_slab_kind;

/* A slab of ghost layers or a plane of points: the condition of one layer at one side. */
typedef struct trli_slab {
    trli_slab_kind kind;
    int field; /* its target */
    int axis, side;
    int layer;                                   /* 1, 2, ...; 0: the plane of points on the side */
    int ninputs, *input;                         /* fields read, in the kernel's or plugin's order; none of images */
    trl_lidx tangential_lo[3], tangential_hi[3]; /* ghosts included along the other axes, at inner sides */
    trl_lidx corner_lo[3], corner_hi[3];         /* and beyond the sides of earlier axes */
    trli_ir_value value;                         /* of an image: the field; TRLI_NO_VALUE: a plugin's */
    bool of_row; /* a kernel that reads the slab from the row beside it could compute it from that row */
    int read_as; /* with of_row: the input of its step that it is a layer of */
    bool taken;  /* a kernel step has taken the slab over */
    union {
        trli_reads reads;            /* KERNEL: of its value */
        const trli_opaque *modifier; /* MODIFIER */
    };
} trli_slab;

/* Ghosts that come from other patches. */
typedef struct trli_exchanged {
    int n, *field;        /* in the exchange's order */
    trl_footprint *reach; /* [n] which of their ghosts */
    /* [n] periodic axes of one patch, a bit each, beyond whose sides kernels with such axes alone read the ghosts
     * (trli_step_plan.round). */
    uint8_t *round;
} trli_exchanged;

typedef struct trli_step_plan {
    bool live;
    trli_reads reads;    /* of its values; of plugins: nothing */
    int ninputs, *input; /* fields read, in the kernel's or plugin's order */
    /* KERNEL: [ninputs] periodic axes of one patch, a bit each, beyond whose sides the points at the other side may be
     * read in place of the ghosts. NULL: there are none. GPUs do; on CPUs rows would have to be cut. */
    uint8_t *round;
    bool exceeds_caches;    /* the fields that it reads and stores do */
    int8_t fixed_planes[6]; /* REDUCE: planes at a side that are left out */
    trli_demand *extent; /* [nout] where another step computes the same again: what its own readers need; else NULL */
    int nslabs; /* of fills and planes; of kernels: those at the ends of rows, each set before its row is computed */
    int slabs_capacity;
    trli_slab *slab;          /* [nslabs] */
    trli_exchanged exchanged; /* of fills */
} trli_step_plan;

struct trli_plan {
    int nfields;         /* at analysis */
    trli_demand *demand; /* [nfields] */
    int nsteps;
    trli_step_plan *step; /* [nsteps] */
};

static inline trli_step_plan *trli_plan_of(const trli_program *program, const trli_step *s)
{
    return &program->plan->step[s - program->step];
}

/* Live steps, footprints, boxes and boundary slabs of a program; every problem with a missing side is reported. */
TRL_NODISCARD trl_err trli_program_analyse(trli_program *program);
void trli_plan_destroy(trli_plan **plan);

#endif
