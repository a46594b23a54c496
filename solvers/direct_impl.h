/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Direct solutions of separable systems: the operator is a sum of tridiagonal ones along the axes. Along all axes but
 * one its eigenvectors are sines and cosines, and that one has a tridiagonal system for each product of these (Buzbee,
 * Golub & Nielson 1970), or is transformed too. */
#ifndef TRLI_DIRECT_IMPL_H
#define TRLI_DIRECT_IMPL_H

#include <trl_loop.h>

#include "krylov_impl.h"
#include "transform_impl.h"

/* ---- direct.c ---- */

/* Why a system cannot be solved directly; NULL: its operator may be separable. */
const char *trli_direct_missing(const trli_solver *s);
/* Of a solver that may have one: whether it solves the system for certain, so that nothing else has to be compiled. */
bool trli_direct_is_sure(const trli_solver *s);
/* The error that says so. */
TRL_NODISCARD trl_err trli_direct_impossible(const trli_solver *s, const char *why);
/* For a system that may be: once it is compiled. */
TRL_NODISCARD trl_err trli_direct_create(trli_solver *s);
void trli_direct_destroy(trli_direct **direct);
/* Look at the operator, if it is another than last time. *why: it is not separable; or NULL. Uses the vectors d and q.
 * Collective: yes. */
TRL_NODISCARD trl_err trli_direct_prepare(trli_direct *direct, const char **why);
/* Once it is prepared: the operations for each point, and what is done, in words. */
double trli_direct_cost(const trli_direct *direct);
const char *trli_direct_words(const trli_direct *direct);

/* Likewise: whether its solutions have a mean that the caller chooses. */
bool trli_direct_sets_mean(const trli_direct *direct);

/* ---- direct_operator.c ---- */

/* What the operator does along an axis: rows of a tridiagonal matrix, which goes around on a periodic one. Other axes
 * are at the base point, whose entry on the diagonal is part of that of each axis. */
typedef struct trli_line {
    int n, first; /* points that are unknown; index of the first among all */
    int base;
    bool periodic;
    double *lower, *diagonal, *upper; /* [n]; of two points on a periodic axis lower and upper share one entry */
} trli_line;

TRL_NODISCARD trl_err trli_lines_create(const trli_solver *s, int unknown, trli_line line[3]);
void trli_lines_destroy(trli_line line[3]);
/* Find the rows by products with a few vectors. all: rows may differ inside. Uses the vectors d and q.
 * Collective: yes. */
TRL_NODISCARD trl_err trli_lines_find(trli_solver *s, int unknown, bool all, trli_line line[3]);

/* Find what the next point along another axis adds in each row of axis `last`, relative to the row at the base: how
 * strong the operator along that axis is there. weight: [3], NULL or [n of last]. Uses d and q. Collective: yes. */
TRL_NODISCARD trl_err trli_lines_weigh(trli_solver *s, int unknown, const trli_line line[3], int last,
                                       double *const weight[3]);

/* ---- direct_plan.c ---- */

/* How a separable system is solved. */
typedef struct trli_direct_plan {
    struct {
        int n;
        trli_transform_kind kind;
        trli_transform *transform; /* NULL: one point, or swept */
        double *value;             /* [n] eigenvalues, less what all of them have in common */
        double common;             /* that, less what the axis adds to the diagonals of lines along others */
        double *weight;            /* [n of the swept axis] of these in its rows; NULL: all 1 */
    } axis[3];
    int last;                       /* the axis that comes last */
    bool swept;                     /* its systems are solved by elimination; else it is transformed */
    double *lower, *middle, *upper; /* [n] swept: rows, to which the other axes' eigenvalues are added */
    double centre;                  /* not swept: what all eigenvalues have in common */
    bool singular;                  /* the first of all eigenvalues is zero */
    bool sets_mean;                 /* then the solution gets a mean that the caller chooses, */
    bool balanced;                  /* and the right-hand side is to have none */
    double scale;                   /* what transforms there and back leave to be done */
} trli_direct_plan;

/* *why: it cannot be solved so; else NULL. wanted: the axis to be swept, or -1. */
TRL_NODISCARD trl_err trli_direct_plan_create(trl_context *ctx, const trli_line line[3], int wanted, bool singular,
                                              trli_direct_plan *plan, const char **why);
/* Give the other axes of a plan that is swept room for weights of their eigenvalues, all 1; use those found. */
TRL_NODISCARD trl_err trli_direct_plan_add_weights(trl_context *ctx, trli_direct_plan *plan);
void trli_direct_plan_use_weights(trli_direct_plan *plan);
void trli_direct_plan_destroy(trli_direct_plan *plan);

/* ---- shuffle.c ---- */

/* A box of points in an array of a rank; indices of the unknown points of the grid. */
typedef struct trli_shuffle_part {
    int rank, array;
    int lo[3], hi[3];
} trli_shuffle_part;

typedef struct trli_boxes {
    int n;
    trli_shuffle_part *part; /* [n] */
} trli_boxes;

/* Where the values of an array are; at: of point (0,0,0). */
typedef struct trli_view {
    double *at;
    ptrdiff_t stride[3];
} trli_view;

/* Values on their way from one set of boxes over all ranks to another, or back. */
typedef struct trli_shuffle trli_shuffle;
typedef enum trli_shuffle_way {
    TRLI_SHUFFLE_THERE,
    TRLI_SHUFFLE_BACK,       /* to the boxes that values came from */
    TRLI_SHUFFLE_BACK_TO_ALL /* and to those beside */
} trli_shuffle_way;

/* beside: boxes that have copies of values, and get them on the way back. device: a GPU where GPUs of this rank move
 * values; NULL: the host does. reach: [ranks] whose boxes `to` this rank reads and writes in place, itself included, as
 * these ranks do its own; outlives the shuffle; NULL: this rank alone. unit: rows in messages are filled up to
 * multiples of it. Fails with MEMORY, DEVICE; INPUT (too many values for messages). */
TRL_NODISCARD trl_err trli_shuffle_create(trl_context *ctx, trl_device *device, const bool *reach, int unit,
                                          const trli_boxes *from, const trli_boxes *beside, const trli_boxes *to,
                                          trli_shuffle **shuffle);
void trli_shuffle_destroy(trli_shuffle **shuffle);
/* Values move in four parts: a rank packs what it sends, copies what it reaches, takes part in the messages
 * (trli_shuffle_exchange), and unpacks what came. Copies write to the boxes `to` of other ranks on the way there, and
 * read them on the way back: the caller has ranks wait for one another before and after. from, to: by array; add: to
 * what is there. */
TRL_NODISCARD trl_err trli_shuffle_pack(trli_shuffle *shuffle, trli_shuffle_way way, const trli_view *from,
                                        trl_loop *loop);
TRL_NODISCARD trl_err trli_shuffle_copy(trli_shuffle *shuffle, trli_shuffle_way way, bool add, const trli_view *from,
                                        const trli_view *to, trl_loop *loop);
TRL_NODISCARD trl_err trli_shuffle_unpack(trli_shuffle *shuffle, trli_shuffle_way way, bool add, const trli_view *to,
                                          trl_loop *loop);

/* What a box has in common with one of the other set. */
typedef struct trli_common {
    int array[2]; /* before, after */
    int lo[3], hi[3];
    int other;    /* the other rank, or this one */
    ptrdiff_t at; /* in the buffer of messages */
    bool beside;  /* moves on the way back to all boxes alone */
} trli_common;

/* For who moves values by itself: what this rank copies, what it sends, and what it receives; where such a part lies
 * in the buffer of messages; and these messages, behind an agreement since which none has failed. Collective: the
 * last, on several ranks. */
typedef enum trli_shuffle_kind { TRLI_SHUFFLE_OWN, TRLI_SHUFFLE_SENT, TRLI_SHUFFLE_RECEIVED } trli_shuffle_kind;
int trli_shuffle_parts(const trli_shuffle *shuffle, trli_shuffle_way way, trli_shuffle_kind kind,
                       const trli_common **part);
/* Once, where GPUs move values: near: read the memory of other ranks' GPUs if all can, for which all are on this node
 * and have one GPU each in it. Collective: yes. Fails with MEMORY, DEVICE. */
TRL_NODISCARD trl_err trli_shuffle_connect(trli_shuffle *shuffle, bool near);
trli_view trli_shuffle_message(const trli_shuffle *shuffle, trli_shuffle_way way, trli_shuffle_kind kind,
                               const trli_common *part);
bool trli_shuffle_has_messages(const trli_shuffle *shuffle); /* of any rank */
TRL_NODISCARD trl_err trli_shuffle_exchange(trli_shuffle *shuffle, trli_shuffle_way way);
/* The same in two parts, where the host moves values and no box is beside: what is packed and what came stays between
 * them. Collective: yes. */
TRL_NODISCARD trl_err trli_shuffle_begin(trli_shuffle *shuffle, trli_shuffle_way way);
TRL_NODISCARD trl_err trli_shuffle_end(trli_shuffle *shuffle);

/* ---- slab_patches.c ---- */

/* Whether all points that a local patch owns are unknown. */
bool trli_patch_is_unknown(const trl_layout *layout, int patch, trl_location location, const trli_line line[3]);
/* Where a local patch has a field in a memory space. */
trli_view trli_patch_view(const trl_simulation *sim, const int first[3], int field, int patch, int space);
/* Boxes cut along an axis into n parts, as far as there are points, at multiples of `unit`; axis < 0: the first has it
 * all. */
void trli_cut_boxes(const trli_line line[3], int axis, int unit, int n, trli_shuffle_part *part);
/* The slowest axis beside the last one; -1: there is none. */
int trli_other_axis(const trli_line line[3], int last);

/* What the patches of all ranks own; array: the index of a local patch. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_patch_boxes(trl_context *ctx, const trl_layout *layout, trl_location location,
                                       const trli_line line[3], trli_boxes *boxes);
/* What the patches of all ranks have around them and another rank owns. array: of a view of ghosts, behind those of
 * the local patches. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_ghost_boxes(trl_context *ctx, const trl_layout *layout, trl_location location,
                                       const trli_line line[3], const trl_offsets *around, trli_boxes *boxes);
/* How many views of ghosts a rank has; and set these, which follow those of its local patches. Ghosts have the indices
 * of the points that they are copies of. */
int trli_ghost_views(const trl_layout *layout);
void trli_set_ghost_views(const trl_layout *layout, trli_view *view);

/* ---- slabs.c ---- */

/* The grid in two distributions over the ranks: planes across the last axis, and all of its lines. */
typedef struct trli_slabs trli_slabs;
/* plan: of all that they solve or visit, as long as they are. around: what solutions may bring along for each patch;
 * NULL: nothing. Collective: yes. Fails with MEMORY, MPI, INPUT. */
TRL_NODISCARD trl_err trli_slabs_create(trl_simulation *sim, trl_location location, const trli_line line[3],
                                        const trli_direct_plan *plan, const trl_offsets *around, trl_loop *loop,
                                        trli_slabs **slabs);
void trli_slabs_destroy(trli_slabs **slabs);
/* Whether they do for their plan, which was made anew for the same lines; NULL does not. around: as above, or NULL. The
 * same on all ranks. */
bool trli_slabs_suit(const trli_slabs *slabs, const trl_offsets *around);
/* Let GPUs solve where they have the right-hand side. Arguments are those of trli_slabs_create, in which `around` was
 * NULL if any rank has GPUs. Collective: yes. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_slabs_add_gpus(trli_slabs *slabs, trl_location location, const trli_line line[3]);
/* Why the last solution was the CPU's though GPUs had the right-hand side; NULL: it was not. The same on all ranks
 * whether there is a reason. */
const char *trli_slabs_missing_gpus(const trli_slabs *slabs);
/* Solve for the right-hand side in the field `from`; the solution is written to the field `to`, or added to it; around:
 * around patches, too. mean: of the solution, if the plan sets it. Collective: yes. */
TRL_NODISCARD trl_err trli_slabs_solve(trli_slabs *slabs, int from, int to, bool add, bool around, double mean);

/* Transformed lines along the last axis. */
typedef struct trli_spectral_lines {
    int at[3];           /* indices of the first one's first point */
    int last, across;    /* the next line is one further along `across` */
    int n, points;       /* lines, and points of each */
    const double *value; /* [points][TRLI_LANES] */
} trli_spectral_lines;
/* Transform a field along all axes that have a transform in the plan, and visit all lines, in three parts; behind each
 * of them values are on their way, for which the next one waits. Only the first one reads the field, which is on the
 * host. The order of visits is open. No rank fails but with MPI. Collective: yes. visit: Thread: any. */
TRL_NODISCARD trl_err trli_slabs_send(trli_slabs *slabs, int from);
TRL_NODISCARD trl_err trli_slabs_transform(trli_slabs *slabs);
TRL_NODISCARD trl_err trli_slabs_visit(trli_slabs *slabs,
                                       void (*visit)(void *data, int worker, const trli_spectral_lines *lines),
                                       void *data);

#endif
