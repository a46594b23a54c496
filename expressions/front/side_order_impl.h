/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Steps that set sides, and what they wait for: what sides.c and side_order.c share. */
#ifndef TRLI_SIDE_ORDER_IMPL_H
#define TRLI_SIDE_ORDER_IMPL_H

#include "instance_impl.h"
#include "model_impl.h"

typedef enum trli_item_kind { TRLI_ITEM_STEP, TRLI_ITEM_PLANE, TRLI_ITEM_EXCHANGE, TRLI_ITEM_KINDS } trli_item_kind;

typedef struct trli_item {
    trli_item_kind kind;
    int step;         /* STEP: of the program, before they are arranged */
    int variable;     /* PLANE, EXCHANGE */
    int side;         /* PLANE: 2*axis + which */
    int waits;        /* for so many items */
    int first_edge;   /* of those that wait for it; -1: none */
    int next;         /* another one of its kind that is ready; -1: none */
    trl_offsets more; /* STEP: offsets at which the others read its results: it is computed there, too */
    bool done;
} trli_item;

typedef struct trli_edge {
    int before, after;
    int next; /* of the same item before; -1: none */
} trli_edge;

typedef struct trli_queue {
    int head, tail;
} trli_queue;

typedef struct trli_arranging {
    trli_instance *in, *conditions; /* the second: for boundary values */
    trli_model *model;
    trli_side (*sides)[6]; /* [nvariables] those that set points */
    int *variable_of;      /* [nfields] of the instance's values, or -1 */
    int *plane_of;         /* [6 * nvariables] the item, or -1; NULL: there are none */
    int *field_writer;     /* [nfields] the item of the step that computes it, or -1 */
    int *field_filler;     /* [nfields] that of the step that sets its ghosts */
    int *scalar_writer;    /* [nscalars] */
    int *exchange_of;  /* [nvariables] the exchange for the present reader, or -1; later the place in a step's list */
    trli_step *step;   /* the program's steps that are arranged */
    int first, nsteps; /* in the program; how many */
    bool taken;        /* the program no longer has them */
    int nitems, items_room;
    trli_item *item;
    int nedges, edges_room;
    trli_edge *edge;
    trli_queue ready[TRLI_ITEM_KINDS];
    trli_queue pending; /* planes that are to be one step */
    int ncandidates;    /* of the program, before */
    bool inner;         /* steps are appended for conditions whose steps are arranged later, with these */
    bool fills_last;    /* the last step fills several fields, which others read without these ghosts */
    bool check;
} trli_arranging;

trl_err trli_no_memory_for_sides(const trli_model *model);
TRL_NODISCARD trl_err trli_side_item(trli_arranging *ar, const trli_item *one);
/* Whether a piece of a condition sets points on the side. */
/* Let each item come after what it reads; exchanges are added for what is read of other patches. */
TRL_NODISCARD trl_err trli_side_orders(trli_arranging *ar);

#endif
