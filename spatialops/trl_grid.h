/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Uniform structured grids, locations on the unit cell, boxes, and the decomposition of a grid into patches. */
#ifndef TRL_GRID_H
#define TRL_GRID_H

#include <trl_context.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Where values sit on the unit cell: bit a set means on the minus face along axis a. X(name, bits, deck name). */
#define TRL_LOCATION_LIST(X) \
    X(CELL, 0, "cell")       \
    X(XFACE, 1, "xface")     \
    X(YFACE, 2, "yface")     \
    X(ZEDGE, 3, "zedge")     \
    X(ZFACE, 4, "zface")     \
    X(YEDGE, 5, "yedge")     \
    X(XEDGE, 6, "xedge")     \
    X(NODE, 7, "node")

typedef enum trl_location {
#define TRL_LOCATION_ENUM(name, bits, text) TRL_##name = (bits),
    TRL_LOCATION_LIST(TRL_LOCATION_ENUM)
#undef TRL_LOCATION_ENUM
} trl_location;

/* Half-open box of points lo <= i < hi. Axes the grid lacks have lo = 0, hi = 1. Local: relative to the patch's first
 * cell. */
typedef struct trl_box {
    trl_lidx lo[3], hi[3];
} trl_box;

typedef struct trl_grid {
    int dim;           /* 1 to 3 */
    trl_gidx cells[3]; /* 1 on axes the grid lacks */
    double length[3], origin[3], spacing[3];
    bool periodic[3]; /* false on axes the grid lacks */
    bool flat[3];     /* differences along it are 0: there is one cell, and nothing goes through its sides */
} trl_grid;

/* One patch: a box of cells of the global grid. */
typedef struct trl_patch {
    trl_gidx first[3]; /* global index of its first cell */
    trl_lidx cells[3];
    int id; /* over all ranks: x fastest */
    int rank;
    int index[3]; /* position in the array of patches */
} trl_patch;

/* In which order patches are dealt to ranks: each rank has a piece of it. X(NAME, name, doc). */
#define TRL_OWNERS_LIST(X)                                                                                    \
    X(BLOCKS, blocks, "by their numbers, which count along x first")                                          \
    X(CURVE, curve, "half of the grid before the other half, and so on, where ghosts cost least to exchange") \
    X(RANDOM, random, "at random")
#define TRL_OWNERS_ENUM(NAME, name, doc) TRL_OWNERS_##NAME,
typedef enum trl_owner_order { TRL_OWNERS_LIST(TRL_OWNERS_ENUM) } trl_owner_order;
#undef TRL_OWNERS_ENUM

typedef struct trl_owners {
    trl_owner_order order;
    uint64_t seed;       /* of RANDOM; else 0 */
    const double *share; /* [ranks] > 0: of the cells, each beside the others'; NULL: alike. Valid during a call. */
} trl_owners;

/* Parse the word of a deck: a name of TRL_OWNERS_LIST, "random" as "random:SEED" with a number; false: it is none. */
TRL_API bool trl_owners_parse(const char *text, trl_owners *owners);
/* The name of an order. */
TRL_API const char *trl_owners_name(trl_owner_order order);

/* How a grid is cut into patches, and who owns them. A rank holds its own patches alone; those of others, and their
 * owners, follow from their ids. A layout does not change: a run goes to another one, with a later epoch
 * (trl_field_set_layout). */
typedef struct trl_layout {
    trl_grid grid;
    int counts[3];    /* patches per axis */
    trl_gidx *cut[3]; /* [counts + 1] the first cells of patches along an axis; NULL: as even as whole cells allow */
    int npatches;     /* all of them; of a coarser grid fewer than ranks, where several have the same ones */
    int ranks;        /* that share them; 1: this rank has them all */
    struct trli_owner_map *owner; /* which of the ranks has which patch; NULL: this rank has them all */
    unsigned epoch;               /* counts the layouts of a context: what is made for one fits no other */
    int nlocal;
    trl_patch *patch; /* [nlocal] this rank's, by ascending id */
    int *local;       /* [nlocal] their ids */
    trl_context *ctx; /* whose memory this is */
} trl_layout;

TRL_API const char *trl_location_name(trl_location location);
/* Parse a deck name; false if unknown. */
TRL_API bool trl_location_parse(const char *name, trl_location *location);
/* Drop the bits of axes that the grid lacks. */
TRL_API trl_location trl_location_on(trl_location location, int dim);

/* Points of the whole grid at a location along an axis: cells, or cells + 1 where the bit is set and the axis is not
 * periodic. */
TRL_API trl_gidx trl_grid_points(const trl_grid *grid, trl_location location, int axis);
/* Coordinate of global point index i (wrapped along periodic axes) at a location: origin + (i [+ 1/2]) * spacing. */
TRL_API double trl_grid_coordinate(const trl_grid *grid, trl_location location, int axis, trl_gidx i);

/* Cut the grid. counts: patches per axis, or NULL: one per rank, so that ghosts cost the least to exchange, or several
 * where the rank with the most to do then has clearly less. Patches go to ranks in contiguous blocks of ids, of nearly
 * as many cells each. Fails with INPUT when ranks outnumber patches or
 * patches outnumber cells along an axis. Collective: no (the same on every rank). */
TRL_API TRL_NODISCARD trl_err trl_layout_create(trl_context *ctx, const trl_grid *grid, const int *counts,
                                                const trl_place *place, trl_layout **layout);
/* The same with other owners of the patches. With shares that differ, ranks of several patches have more or fewer of
 * them; where each has one, the cuts along an axis lie where the ranks of its layers have their shares together. */
TRL_API TRL_NODISCARD trl_err trl_layout_create_owned(trl_context *ctx, const trl_grid *grid, const int *counts,
                                                      const trl_owners *owners, const trl_place *place,
                                                      trl_layout **layout);
TRL_API void trl_layout_destroy(trl_layout **layout);
/* The patch of an id, whichever rank owns it. Time: the logarithm of the number of patches. */
TRL_API trl_patch trl_layout_patch(const trl_layout *layout, int id);
/* Where a patch is in layout->local; -1: another rank has it. */
TRL_API int trl_layout_local(const trl_layout *layout, int id);
/* Id of the patch that owns a global cell; -1 outside the grid. Constant time. */
TRL_API int trl_layout_owner(const trl_layout *layout, const trl_gidx cell[3]);

/* Points a patch owns at a location, local indices: its cells' minus faces, and the final plane on the last patch of a
 * non-periodic axis. */
TRL_API trl_box trl_patch_owned(const trl_layout *layout, const trl_patch *patch, trl_location location);
/* Whether the patch touches the domain's side (0 minus, 1 plus) along a non-periodic axis. */
TRL_API bool trl_patch_at_side(const trl_layout *layout, const trl_patch *patch, int axis, int side);

static inline int64_t trl_box_points(const trl_box *box)
{
    int64_t n = 1;
    for (int a = 0; a < 3; ++a) n *= box->hi[a] > box->lo[a] ? box->hi[a] - box->lo[a] : 0;
    return n;
}

#ifdef __cplusplus
}
#endif
#endif
