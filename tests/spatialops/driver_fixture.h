/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Problems for tests of masks, boundary conditions and reductions: a layout with fields that are set from functions of
 * coordinates. */
#ifndef DRIVER_FIXTURE_H
#define DRIVER_FIXTURE_H

#include <math.h>

#include "trl_test.h"

#include "owners_fixture.h"

#include <trl_field_manager.h>
#include <trl_mask.h>

static trl_field_manager *manager;
static trl_layout *layout;

static inline int ranks(void)
{
    return trl_context_ranks(test_ctx);
}

/* Unit spacing is avoided: a lost factor h must show. */
static inline trl_grid grid_of(int dim, int nx, int ny, int nz, int periodic_bits)
{
    trl_gidx cells[3] = {nx, ny, nz};
    trl_grid grid = {.dim = dim, .cells = {1, 1, 1}, .length = {1, 1, 1}, .spacing = {1, 1, 1}};
    for (int a = 0; a < dim; ++a) {
        grid.cells[a] = cells[a];
        grid.length[a] = 1 + 0.25 * a;
        grid.origin[a] = 0.125 * a;
        grid.spacing[a] = grid.length[a] / (double)cells[a];
        grid.periodic[a] = periodic_bits >> a & 1;
    }
    return grid;
}

/* counts: patches per axis, or NULL. */
static inline void open_layout(const trl_grid *grid, const int counts[3])
{
    ck_ok(trl_layout_create_owned(test_ctx, grid, counts, next_owners(), NULL, &layout));
    ck_ok(trl_field_manager_create(test_ctx, &manager));
}

static inline void close_layout(void)
{
    trl_field_manager_destroy(&manager);
    trl_layout_destroy(&layout);
}

static inline trl_field *new_field(const char *name, trl_location location, trl_lidx ghosts)
{
    trl_field *field;
    trl_field_desc desc = {name, location, {ghosts, ghosts, ghosts}, {ghosts, ghosts, ghosts}};
    ck_ok(trl_field_create(manager, layout, &desc, &field));
    return field;
}

static inline const trl_patch *local_patch(int p)
{
    return &layout->patch[p];
}

static inline trl_array array_of(trl_field *field, int p)
{
    trl_array array;
    ck_ok(trl_field_array(field, p, &array));
    return array;
}

static inline double *value_at(const trl_array *array, const trl_lidx at[3])
{
    return (double *)array->at + trl_array_offset(array, at[0], at[1], at[2]);
}

static inline void coordinates(trl_location location, int p, const trl_lidx at[3], double x[3])
{
    for (int a = 0; a < 3; ++a)
        x[a] = trl_grid_coordinate(&layout->grid, location, a, local_patch(p)->first[a] + at[a]);
}

/* for (each point `at` of a box) ... */
#define EACH_POINT(at, box)                                     \
    for (at[2] = (box).lo[2]; at[2] < (box).hi[2]; ++at[2])     \
        for (at[1] = (box).lo[1]; at[1] < (box).hi[1]; ++at[1]) \
            for (at[0] = (box).lo[0]; at[0] < (box).hi[0]; ++at[0])

/* Set the owned points; they alone are valid then. */
static inline void set_field(trl_field *field, trl_point_fn fn, void *data)
{
    for (int p = 0; p < layout->nlocal; ++p) {
        trl_array array = array_of(field, p);
        trl_lidx at[3];
        EACH_POINT(at, array.owned)
        {
            double x[3];
            coordinates(trl_field_location(field), p, at, x);
            *value_at(&array, at) = fn(data, x, 0);
        }
        ck_ok(trl_field_set_valid(field, p, &array.owned));
    }
}

/* No polynomial, no symmetry. */
static inline double wavy(void *data, const double x[3], double t)
{
    (void)data;
    return 1.5 + sin(3 * x[0] + 0.3) * cos(2 * x[1] - 0.2) + 0.5 * sin(x[2] * 4 + x[0]) + t;
}

static inline bool box_has(const trl_box *box, const trl_lidx at[3])
{
    bool in = true;
    for (int a = 0; a < 3; ++a) in = in && at[a] >= box->lo[a] && at[a] < box->hi[a];
    return in;
}

/* Agreed on by all ranks, so that none leaves the others waiting. */
static inline bool on_all_ranks(bool here)
{
    int all = here;
    MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    return all;
}

static inline double greatest(double here)
{
    MPI_Allreduce(MPI_IN_PLACE, &here, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return here;
}

static inline bool same_bits(double p, double q)
{
    return memcmp(&p, &q, sizeof p) == 0;
}

#endif
