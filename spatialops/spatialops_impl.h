/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* What the files of spatialops/ share, and users of the library do not see. */
#ifndef TRL_SPATIALOPS_IMPL_H
#define TRL_SPATIALOPS_IMPL_H

#include <trl_field.h>

static inline char trli_axis_name(int axis)
{
    return "xyz"[axis];
}

/* Whether a coordinate lies in the domain. One that rounding puts beyond an end becomes that end. */
bool trli_in_domain(const trl_grid *grid, int axis, double *coordinate);
/* Where a coordinate in the domain lies between points of a location along an axis: an owned point, the offset *by from
 * it to the one before or at the coordinate, and the weight of the next one; 0: that is not read. */
void trli_locate(const trl_grid *grid, int axis, trl_location location, double where, trl_gidx *point, int *by,
                 double *weight);

/* First element of part i when n elements are cut into parts as evenly as possible, the larger parts first. */
trl_gidx trli_cut_first(trl_gidx n, trl_gidx parts, trl_gidx i);
/* The part that holds an element. Needs parts <= n. */
trl_gidx trli_cut_part(trl_gidx n, trl_gidx parts, trl_gidx element);

/* The automatic cut: of the factorisations of n that fit, the one whose ghosts cost the least to exchange, but no thin
 * patches where thicker ones are possible; of equals the one with the longest x rows, then the one with the most rows.
 * one_node: of all ranks. false: none fits. */
bool trli_layout_choose(const trl_grid *grid, int n, bool one_node, int best[3]);

/* Patches for ranks, and what they cost the rank that has most to do, in cells. */
typedef struct trli_layout_choice {
    int counts[3];
    double cost;
    int one[3];         /* one patch for each rank, by trli_layout_choose */
    double cost_of_one; /* 0: the grid cannot be cut so */
} trli_layout_choice;
/* Several for each rank may cost so much of one for each, which passes over several steps can skew. */
#define TRLI_PATCHES_PAY 0.9
/* One patch for each rank, or several where that costs clearly less, or one cannot be. false: there are fewer cells
 * than ranks. */
bool trli_layout_choose_patches(const trl_grid *grid, int ranks, bool one_node, trli_layout_choice *choice);

/* Whether all ranks share a node. */
bool trli_layout_in_one_node(const trl_context *ctx);
/* What a value across an axis costs to exchange, against one across the last axis. */
double trli_layout_cost_across(const trl_grid *grid, int axis, bool one_node);
/* What this rank's part of a step over a field costs by the same measure. */
double trli_layout_cost(const trl_layout *layout);

/* First cell of a patch along an axis; of i = counts: the number of cells. */
trl_gidx trli_layout_first(const trl_layout *layout, int axis, int i);
/* Cells of the thinnest and of the thickest patch along an axis, whichever rank has them. */
trl_lidx trli_layout_thinnest(const trl_layout *layout, int axis);
trl_lidx trli_layout_thickest(const trl_layout *layout, int axis);

/* The id of the patch before (step -1) or behind (1) another along an axis, round periodic ones; -1: there is none. */
int trli_layout_beside(const trl_layout *layout, const trl_patch *patch, int axis, int step);
/* A number that is the same for layouts with equal patches and owners, and hardly for others. Its opposite is an
 * int64_t, too. */
int64_t trli_layout_digest(const trl_layout *layout);
/* Whether this rank is the first of those that have its patches: sums over the grid take them from it alone. */
bool trli_layout_leads(const trl_layout *layout);
/* Patches of the rank that has the most. */
int trli_layout_most(const trl_layout *layout);

/* The first cell of a coarser grid whose middle lies in a cell of a finer one, or beyond it. */
trl_gidx trli_layout_coarse_first(const trl_grid *fine, const trl_grid *coarse, int axis, trl_gidx cell);
/* Patches of a finer grid along each axis that have to be one, so that a coarser grid's have `thinnest` cells along
 * every axis that is cut. */
void trli_layout_merging(const trl_layout *fine, const trl_grid *coarse, trl_lidx thinnest, int by[3]);
/* Cut a coarser grid of the same domain as a finer one is cut: a cell belongs to the patch in which its middle lies,
 * and patches to the same ranks. by: patches of the finer grid along each axis that are one; all their ranks have it,
 * and each sees one owner of another patch: the rank that has its own place among those of that patch. Where they are
 * several, the finer grid has a patch for each rank. Collective: no (the same on every rank). */
TRL_NODISCARD trl_err trli_layout_create_coarse(const trl_layout *fine, const trl_grid *grid, const int by[3],
                                                trl_layout **coarse);

/* Let the owned points of a location go from the arrays of one layout to those of another one of the same grid, bit by
 * bit. local: what went wrong before on this rank; then, or after another rank's error, nothing is moved. Fails with
 * MEMORY, MPI. Collective: yes. */
TRL_NODISCARD trl_err trli_layout_move(const trl_layout *from, const trl_layout *to, trl_location location,
                                       trl_err local, const trl_array *source, const trl_array *target);

/* A grid as one patch, which every rank has as its own: reductions over such layouts count it once for each rank. */
TRL_NODISCARD trl_err trli_layout_create_whole(trl_context *ctx, const trl_grid *grid, trl_layout **layout);

/* Values of a cache line: of a processor, and of a GPU, whose rows share lines the less. */
typedef enum trli_cache_line { TRLI_CACHE_LINE_CPU = 8, TRLI_CACHE_LINE_GPU = 16 } trli_cache_line;

/* Set the strides of an array by the points that it holds, for memory that begins at a cache line: long rows begin at
 * one too, with their first owned point. *origin: where point (0,0,0) lies. Returns the values that the memory needs.
 */
int64_t trli_lay_out(trl_array *array, int dim, trli_cache_line line, ptrdiff_t *origin);

/* Values that nothing wrote yet: a read of them shows as (signalling) NaN, of integers as an absurd number. */
void trli_poison(void *values, size_t bytes, trl_scalar_type type);

#endif
