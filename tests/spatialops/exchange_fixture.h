/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Exchange problems: arrays filled with values that name their points, and a check of every ghost. */
#ifndef EXCHANGE_FIXTURE_H
#define EXCHANGE_FIXTURE_H

#include "trl_test.h"

#include "owners_fixture.h"

#include <limits.h>

#include <open_memory_impl.h>
#include <trl_field.h>

enum { FIELDS_MAX = 16, SPARE = 1 };

static const uint64_t poison = UINT64_C(0x7ff4dead0000beef); /* a signalling NaN */

typedef struct problem {
    trl_layout *layout;
    int nfields;
    trl_exchange_field field[FIELDS_MAX];
    trl_array *arrays[FIELDS_MAX]; /* [field][local patch] */
    trl_exchange *exchange;
    trli_open_memory *open; /* where arrays are, or NULL */
} problem;

static inline bool on_all_ranks(bool here)
{
    int all = here;
    MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    return all;
}

static inline trl_grid make_grid(int dim, const trl_gidx cells[3], int periodic_bits)
{
    trl_grid grid = {.dim = dim, .cells = {1, 1, 1}, .length = {1, 1, 1}, .spacing = {1, 1, 1}};
    for (int a = 0; a < dim; ++a) {
        grid.cells[a] = cells[a];
        grid.periodic[a] = periodic_bits >> a & 1;
    }
    return grid;
}

static inline trl_footprint footprint_of(int nparts, const trl_offsets *parts, int dim)
{
    trl_footprint f = {0};
    for (int p = 0; p < nparts; ++p) {
        trl_offsets part = parts[p];
        for (int a = dim; a < 3; ++a) part.lo[a] = part.hi[a] = 0;
        trl_footprint_add(&f, &part);
    }
    return f;
}

static inline trl_footprint star(int width, int dim)
{
    trl_offsets arms[3] = {
        {{-width, 0, 0}, {width, 0, 0}}, {{0, -width, 0}, {0, width, 0}}, {{0, 0, -width}, {0, 0, width}}};
    return footprint_of(3, arms, dim);
}

static inline trl_footprint cube(int width, int dim)
{
    trl_offsets all = {{-width, -width, -width}, {width, width, width}};
    return footprint_of(1, &all, dim);
}

static inline trl_footprint lopsided(int dim)
{
    trl_offsets parts[3] = {{{-2, 0, 0}, {1, 0, 0}}, {{0, 0, 0}, {0, 3, 0}}, {{1, -1, -1}, {2, -1, 1}}};
    return footprint_of(3, parts, dim);
}

/* ---- arrays and their expected contents ---- */

static inline void make_array(problem *p, int field, int local)
{
    trl_array *array = &p->arrays[field][local];
    trl_offsets hull = trl_footprint_hull(&p->field[field].footprint);
    ptrdiff_t stride = 1, origin = 0;
    array->type = p->field[field].type;
    array->owned = trl_patch_owned(p->layout, &p->layout->patch[local], p->field[field].location);
    array->held = array->owned;
    for (int a = 0; a < p->layout->grid.dim; ++a) {
        array->held.lo[a] -= (hull.lo[a] < 0 ? -hull.lo[a] : 0) + SPARE;
        array->held.hi[a] += (hull.hi[a] > 0 ? hull.hi[a] : 0) + SPARE;
        array->stride[a] = stride;
        origin -= stride * array->held.lo[a];
        stride *= array->held.hi[a] - array->held.lo[a];
    }
    const size_t bytes = (size_t)stride * trl_scalar_size(array->type);
    char *memory = p->open ? trli_open_memory_take(p->open, bytes) : malloc(bytes);
    array->at = memory + origin * (ptrdiff_t)trl_scalar_size(array->type);
}

static inline void free_array(const problem *p, trl_array *array)
{
    ptrdiff_t origin = trl_array_offset(array, array->held.lo[0], array->held.lo[1], array->held.lo[2]);
    char *memory = (char *)array->at + origin * (ptrdiff_t)trl_scalar_size(array->type);
    if (p->open)
        trli_open_memory_give(p->open, memory);
    else
        free(memory);
    array->at = NULL;
}

static uint64_t exchange_round; /* each may have values of its own */

/* The bits that a point of the whole grid has; round periodic axes. False outside the grid. */
static inline bool point_value(const trl_grid *grid, trl_location location, int field, const trl_gidx at[3],
                               uint64_t *bits)
{
    trl_gidx point = 0;
    for (int a = 2; a >= 0; --a) {
        trl_gidx n = trl_grid_points(grid, location, a), i = at[a];
        if (grid->periodic[a]) i = (i % n + n) % n;
        if (i < 0 || i >= n) return false;
        point = i + n * point;
    }
    *bits = UINT64_C(0x4000000000000000) + (uint64_t)point + ((uint64_t)field << 32) + (exchange_round << 40);
    return true;
}

static inline uint64_t *word_at(const trl_array *array, trl_lidx i, trl_lidx j, trl_lidx k)
{
    return (uint64_t *)array->at + trl_array_offset(array, i, j, k);
}

static inline bool in_box(const trl_box *box, const trl_lidx at[3])
{
    bool in = true;
    for (int a = 0; a < 3; ++a) in = in && at[a] >= box->lo[a] && at[a] < box->hi[a];
    return in;
}

/* Whether the footprint needs a ghost (1), may get it because another part of the same direction is as wide (0), or
 * neither (-1). */
static inline int wants(const trl_footprint *f, const trl_box *owned, const trl_lidx at[3])
{
    bool needed = false, possible = true, touched = false;
    trl_lidx distance[3], widest[3] = {0, 0, 0};
    for (int a = 0; a < 3; ++a) distance[a] = at[a] < 0 ? at[a] : at[a] >= owned->hi[a] ? at[a] - owned->hi[a] + 1 : 0;
    for (int p = 0; p < f->n; ++p) {
        bool touches = true, reaches = true;
        for (int a = 0; a < 3; ++a) {
            trl_lidx reach = distance[a] < 0 ? -f->part[p].lo[a] : distance[a] > 0 ? f->part[p].hi[a] : 0;
            if (distance[a] != 0 && reach <= 0) touches = false;
            if (abs(distance[a]) > reach && distance[a] != 0) reaches = false;
        }
        for (int a = 0; a < 3 && touches; ++a) {
            trl_lidx reach = distance[a] < 0 ? -f->part[p].lo[a] : f->part[p].hi[a];
            if (reach > widest[a]) widest[a] = reach;
        }
        touched = touched || touches;
        needed = needed || reaches;
    }
    for (int a = 0; a < 3; ++a) possible = possible && (distance[a] == 0 || abs(distance[a]) <= widest[a]);
    return needed ? 1 : touched && possible ? 0 : -1;
}

/* Visit all held points: fill (owned values, poison elsewhere), or count those that differ from what the exchange must
 * leave. */
static inline int64_t visit(const problem *p, int field, int local, bool fill)
{
    const trl_array *array = &p->arrays[field][local];
    const trl_patch *patch = &p->layout->patch[local];
    const trl_exchange_field *wanted = &p->field[field];
    const trl_box *held = &array->held;
    int64_t wrong = 0;
    trl_lidx at[3];
    for (at[2] = held->lo[2]; at[2] < held->hi[2]; ++at[2]) {
        for (at[1] = held->lo[1]; at[1] < held->hi[1]; ++at[1]) {
            for (at[0] = held->lo[0]; at[0] < held->hi[0]; ++at[0]) {
                trl_gidx global[3];
                uint64_t value = poison, *word = word_at(array, at[0], at[1], at[2]);
                for (int a = 0; a < 3; ++a) global[a] = patch->first[a] + at[a];
                bool inside = point_value(&p->layout->grid, wanted->location, field, global, &value);
                bool owned = in_box(&array->owned, at);
                if (fill) {
                    *word = owned ? value : poison;
                    continue;
                }
                int want = owned ? 1 : inside ? wants(&wanted->footprint, &array->owned, at) : -1;
                wrong += !((*word == value && want >= 0) || (*word == poison && want <= 0));
            }
        }
    }
    return wrong;
}

static inline int64_t visit_all(const problem *p, bool fill)
{
    int64_t wrong = 0;
    for (int f = 0; f < p->nfields; ++f) {
        for (int l = 0; l < p->layout->nlocal; ++l) wrong += visit(p, f, l, fill);
    }
    return wrong;
}

/* ---- problems ---- */

static inline void make_arrays(problem *p)
{
    for (int f = 0; f < p->nfields; ++f) {
        p->arrays[f] = calloc((unsigned)p->layout->nlocal, sizeof(trl_array));
        for (int l = 0; l < p->layout->nlocal; ++l) make_array(p, f, l);
    }
}

static inline void free_arrays(problem *p)
{
    for (int f = 0; f < p->nfields; ++f) {
        for (int l = 0; l < p->layout->nlocal; ++l) free_array(p, &p->arrays[f][l]);
        free(p->arrays[f]);
    }
}

static inline void setup_owned(problem *p, const trl_grid *grid, const int *counts, const trl_owners *owners)
{
    ck_ok(trl_layout_create_owned(test_ctx, grid, counts, owners, NULL, &p->layout));
    ck_ok(trl_exchange_create(test_ctx, p->layout, p->nfields, p->field, &p->exchange));
    make_arrays(p);
}

static inline void setup(problem *p, const trl_grid *grid, const int *counts)
{
    setup_owned(p, grid, counts, next_owners());
}

static inline void teardown(problem *p)
{
    free_arrays(p);
    trl_exchange_destroy(&p->exchange);
    ck_assert_ptr_null(p->exchange);
    trl_layout_destroy(&p->layout);
}

static const trl_array *const *arrays_of(const problem *p)
{
    return (const trl_array *const *)p->arrays;
}

static inline trl_err exchange_once(problem *p)
{
    bool done = false;
    trl_err err = trl_exchange_begin(p->exchange, arrays_of(p));
    while (err == TRL_OK && !done) err = trl_exchange_finish(p->exchange, arrays_of(p), &done);
    return err;
}

/* Twice, the second time with other memory behind the arrays. */
static inline void check_exchange(problem *p, const trl_grid *grid, const int *counts)
{
    setup(p, grid, counts);
    for (int round = 0; round < 2; ++round) {
        visit_all(p, true);
        trl_err err = exchange_once(p);
        int64_t wrong = err == TRL_OK ? visit_all(p, false) : -1;
        ck_assert_msg(
            on_all_ranks(wrong == 0),
            "%dD grid %ld x %ld x %ld, periodic %d%d%d, %d x %d x %d patches, footprint of %d parts: %ld wrong: %s",
            grid->dim, (long)grid->cells[0], (long)grid->cells[1], (long)grid->cells[2], grid->periodic[0],
            grid->periodic[1], grid->periodic[2], p->layout->counts[0], p->layout->counts[1], p->layout->counts[2],
            p->field[0].footprint.n, (long)wrong, test_messages());
        free_arrays(p);
        make_arrays(p);
    }
    teardown(p);
}

static inline int ranks(void)
{
    return trl_context_ranks(test_ctx);
}

/* All eight locations at once, on every periodicity and on several ways to cut. */
static inline void check_everywhere(int dim, const trl_gidx cells[3], int ncuts, const int (*cuts)[3],
                                    const trl_footprint *footprint)
{
    for (int periodic = 0; periodic < 1 << dim; ++periodic) {
        trl_grid grid = make_grid(dim, cells, periodic);
        for (int cut = -1; cut < ncuts; ++cut) {
            problem p = {.nfields = 8};
            if (cut >= 0 && cuts[cut][0] * cuts[cut][1] * cuts[cut][2] < ranks()) continue;
            for (int f = 0; f < 8; ++f) {
                p.field[f] =
                    (trl_exchange_field){.location = trl_location_on((trl_location)f, dim), .footprint = *footprint};
            }
            check_exchange(&p, &grid, cut < 0 ? NULL : cuts[cut]);
        }
    }
}

#endif
