/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Which rank owns which patch, in memory that grows with the number of ranks alone: patches stand in an order, which is
 * a rule, and each rank has a piece of it. */
#ifndef TRLI_OWNERS_IMPL_H
#define TRLI_OWNERS_IMPL_H

#include <trl_grid.h>

typedef struct trli_owner_map {
    trl_owners owners; /* without shares */
    int counts[3], npatches;
    int ranks;
    double ease[3]; /* cells of a patch along an axis over what a value across it costs to exchange */
    int group[3];   /* patches of the order along an axis that are one patch of the layout; 1: each is one */
    int place[3];   /* of this rank's patch among those of its group */
    int first[];    /* [ranks + 1] where in the order the patches of a rank begin */
} trli_owner_map;

/* Deal the patches of a layout to ranks, none of which is left without one, so that the cells that each has are nearly
 * its share. Needs patches >= ranks. cost: of a value across each axis, of which the curve cuts where least is cut. */
TRL_NODISCARD trl_err trli_owners_create(const trl_layout *layout, const trl_owners *owners, const double cost[3],
                                         trli_owner_map **map);
/* For a layout of which `by` patches of another one along each axis are one, which all their ranks have; where they are
 * several, each rank had one. The map is as this rank sees it: of a patch's ranks it names the one that has this rank's
 * place in its group. */
TRL_NODISCARD trl_err trli_owners_merge(trl_context *ctx, const trli_owner_map *from, const int by[3],
                                        trli_owner_map **map);
void trli_owners_destroy(trl_context *ctx, trli_owner_map **map);

/* Time: the logarithm of the number of patches. */
int trli_owners_rank(const trli_owner_map *map, int id);
/* Where a patch, or of a merged one this rank's part, stands in the order, and which patch stands there. */
int trli_owners_position(const trli_owner_map *map, int id);
int trli_owners_at(const trli_owner_map *map, int position);
/* Patches of the rank that has the most. */
int trli_owners_most(const trli_owner_map *map);
/* A number that is the same for equal maps, and hardly for others; all ranks' views of a map are equal. */
uint64_t trli_owners_digest(const trli_owner_map *map);

#endif
