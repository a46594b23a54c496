/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Layouts, fields with values that follow from the global point, and loops, for tests of direct use. Included after
 * trl_test.h. */
#ifndef FIELD_FIXTURE_H
#define FIELD_FIXTURE_H

#include <trl_field.h>
#include <trl_field_manager.h>
#include <trl_loop.h>

#include "owners_fixture.h"

static const uint64_t untouched = UINT64_C(0x7ff800000badbad0);

static inline trl_layout *make_layout(int dim, const trl_gidx cells[3], int periodic_bits, const int *counts)
{
    trl_grid grid = {.dim = dim, .cells = {1, 1, 1}, .length = {1, 1, 1}, .spacing = {1, 1, 1}};
    trl_layout *layout;
    for (int a = 0; a < dim; ++a) {
        grid.cells[a] = cells[a];
        grid.periodic[a] = periodic_bits >> a & 1;
        grid.length[a] = 1 + 0.1 * a;
        grid.spacing[a] = grid.length[a] / (double)cells[a];
    }
    ck_ok(trl_layout_create_owned(test_ctx, &grid, counts, next_owners(), NULL, &layout));
    return layout;
}

static inline trl_field *make_field(trl_field_manager *manager, const trl_layout *layout, const char *name,
                                    trl_location location, trl_lidx ghosts)
{
    trl_field *field;
    const trl_field_desc desc = {
        .name = name, .location = location, .ghost_lo = {ghosts, ghosts, ghosts}, .ghost_hi = {ghosts, ghosts, ghosts}};
    ck_ok(trl_field_create(manager, layout, &desc, &field));
    return field;
}

static inline trl_array array_of(trl_field *field, int p)
{
    trl_array array;
    ck_ok(trl_field_array(field, p, &array));
    return array;
}

static inline double *value_at(const trl_array *a, trl_lidx i, trl_lidx j, trl_lidx k)
{
    return (double *)a->at + trl_array_offset(a, i, j, k);
}

static inline bool box_holds(const trl_box *box, trl_lidx i, trl_lidx j, trl_lidx k)
{
    const trl_lidx at[3] = {i, j, k};
    for (int a = 0; a < 3; ++a)
        if (at[a] < box->lo[a] || at[a] >= box->hi[a]) return false;
    return true;
}

#define FOR_BOX(box, i, j, k)                                \
    for (trl_lidx k = (box).lo[2]; k < (box).hi[2]; ++k)     \
        for (trl_lidx j = (box).lo[1]; j < (box).hi[1]; ++j) \
            for (trl_lidx i = (box).lo[0]; i < (box).hi[0]; ++i)

/* A number in [-1, 1) for a point of the whole grid, round periodic axes; `seed` tells fields apart. */
static inline double number_at(const trl_layout *layout, trl_location location, uint64_t seed, const trl_gidx point[3])
{
    uint64_t h = seed * UINT64_C(0x9e3779b97f4a7c15) + (uint64_t)location;
    for (int a = 0; a < 3; ++a) {
        const trl_gidx n = trl_grid_points(&layout->grid, location, a);
        const trl_gidx i = layout->grid.periodic[a] ? (point[a] % n + n) % n : point[a];
        h = (h ^ (uint64_t)i) * UINT64_C(0xbf58476d1ce4e5b9);
        h ^= h >> 29;
    }
    return (double)(h >> 11) * 0x1p-52 - 1;
}

static inline double expected_at(const trl_field *field, int p, uint64_t seed, trl_lidx i, trl_lidx j, trl_lidx k)
{
    const trl_layout *layout = trl_field_layout(field);
    const trl_patch *patch = &layout->patch[p];
    return number_at(layout, trl_field_location(field), seed,
                     (trl_gidx[3]){patch->first[0] + i, patch->first[1] + j, patch->first[2] + k});
}

/* Write numbers, to the owned points or to all of them, and say so; the other points get the mark of what nobody
 * touched. */
static inline void fill_field(trl_field *field, uint64_t seed, bool ghosts)
{
    for (int p = 0; p < trl_field_layout(field)->nlocal; ++p) (void)array_of(field, p);
    trl_field_invalidate_ghosts(field);
    for (int p = 0; p < trl_field_layout(field)->nlocal; ++p) {
        const trl_array a = array_of(field, p);
        if (ghosts) ck_ok(trl_field_set_valid(field, p, &a.held));
        FOR_BOX(a.held, i, j, k)
        {
            double number = expected_at(field, p, seed, i, j, k);
            if (!ghosts && !box_holds(&a.owned, i, j, k)) memcpy(&number, &untouched, sizeof number);
            *value_at(&a, i, j, k) = number;
        }
    }
}

static inline bool same_bits(double a, double b)
{
    return memcmp(&a, &b, sizeof a) == 0;
}

static inline bool is_untouched(double a)
{
    return memcmp(&a, &untouched, sizeof a) == 0;
}

static inline bool same_box(const trl_box *a, const trl_box *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

/* Workers and a loop on them; 0 threads: no loop. */
typedef struct crew {
    trl_workers *workers;
    trl_loop *loop;
} crew;

static inline crew make_crew(int threads)
{
    crew c = {0};
    if (threads == 0) return c;
    ck_ok(trl_context_set_threads(test_ctx, threads));
    ck_ok(trl_workers_create(test_ctx, "priority", &c.workers));
    ck_ok(trl_loop_create(test_ctx, c.workers, &c.loop));
    return c;
}

static inline void destroy_crew(crew *c)
{
    trl_loop_destroy(&c->loop);
    trl_workers_destroy(&c->workers);
}

static inline bool on_all_ranks(bool here)
{
    int all = here;
    MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    return all;
}

#endif
