/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Masks: sets of points of one location, for geometry inside the grid, pieces of sides, assignments and reductions. */
#ifndef TRL_MASK_H
#define TRL_MASK_H

#include <trl_field.h>
#include <trl_loop.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A value at a point, by its coordinates, at time t; as a condition it holds where it is not zero, as in formulas: NaN
 * is not. */
typedef double (*trl_point_fn)(void *data, const double point[3], double t);

/* On this rank's patches, with `ghosts` layers around the owned points along each axis of the grid: those of neighbours
 * and periodic sides, and points beyond the sides of the domain. The layout outlives the mask. */
typedef struct trl_mask trl_mask;

/* Points where the function holds; beyond a side it is asked at the coordinates there. Collective: no. Thread: main. */
TRL_API TRL_NODISCARD trl_err trl_mask_create(const trl_layout *layout, trl_location location, int ghosts,
                                              trl_point_fn holds, void *data, double t, trl_mask **mask);
/* The listed points of the whole grid, which every rank may list all of. A point beyond a side belongs if the nearest
 * one on this side of it does. Fails with USAGE for a point that the grid lacks. */
TRL_API TRL_NODISCARD trl_err trl_mask_create_points(const trl_layout *layout, trl_location location, int ghosts,
                                                     int64_t npoints, const trl_gidx (*points)[3], trl_mask **mask);
/* Points where the field is not zero; NaN is not. Points beyond a side as for a list. Fails with USAGE unless the field
 * is valid on all points within the domain that the mask holds. */
TRL_API TRL_NODISCARD trl_err trl_mask_create_field(trl_field *field, int ghosts, trl_mask **mask);
TRL_API void trl_mask_destroy(trl_mask **mask);

TRL_API const trl_layout *trl_mask_layout(const trl_mask *mask);
TRL_API trl_location trl_mask_location(const trl_mask *mask);
TRL_API int trl_mask_ghosts(const trl_mask *mask);
/* Whether a point of local patch p (local indices, within the mask's layers) belongs. Thread: any. */
TRL_API bool trl_mask_holds(const trl_mask *mask, int p, trl_lidx i, trl_lidx j, trl_lidx k);

/* mask = mask and other; mask = mask or other. Fails with USAGE for another layout, location or number of layers.
 * Thread: main. */
TRL_API TRL_NODISCARD trl_err trl_mask_and(trl_mask *mask, const trl_mask *other);
TRL_API TRL_NODISCARD trl_err trl_mask_or(trl_mask *mask, const trl_mask *other);
TRL_API void trl_mask_not(trl_mask *mask);
/* Points of the whole grid that belong, each counted once. Collective: yes. Thread: main. */
TRL_API TRL_NODISCARD trl_err trl_mask_count(const trl_mask *mask, int64_t *count);

/* dst = src, or a number, at the owned points that belong; the others keep their values. Only dst's owned points are
 * valid afterwards. Fails with USAGE for other layouts or locations than the mask's, and where dst's or src's owned
 * points are not valid. Collective: no. Thread: main. */
TRL_API TRL_NODISCARD trl_err trl_mask_assign(const trl_mask *mask, trl_loop *loop, trl_field *src, trl_field *dst);
TRL_API TRL_NODISCARD trl_err trl_mask_assign_number(const trl_mask *mask, trl_loop *loop, double number,
                                                     trl_field *dst);

#ifdef __cplusplus
}
#endif
#endif
