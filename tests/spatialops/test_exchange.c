/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
// ctest: np=1,2,3,4
#include "trl_test.h"

#include <limits.h>

#include <trl_field.h>

enum { FIELDS_MAX = 16, SPARE = 1 };

static const uint64_t poison = UINT64_C(0x7ff4dead0000beef); /* a signalling NaN */

typedef struct problem {
    trl_layout *layout;
    int nfields;
    trl_exchange_field field[FIELDS_MAX];
    trl_array *arrays[FIELDS_MAX]; /* [field][local patch] */
    trl_exchange *exchange;
} problem;

static bool on_all_ranks(bool here)
{
    int all = here;
    MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    return all;
}

static trl_grid make_grid(int dim, const trl_gidx cells[3], int periodic_bits)
{
    trl_grid grid = {.dim = dim, .cells = {1, 1, 1}, .length = {1, 1, 1}, .spacing = {1, 1, 1}};
    for (int a = 0; a < dim; ++a) {
        grid.cells[a] = cells[a];
        grid.periodic[a] = periodic_bits >> a & 1;
    }
    return grid;
}

static trl_footprint footprint_of(int nparts, const trl_offsets *parts, int dim)
{
    trl_footprint f = {0};
    for (int p = 0; p < nparts; ++p) {
        trl_offsets part = parts[p];
        for (int a = dim; a < 3; ++a) part.lo[a] = part.hi[a] = 0;
        trl_footprint_add(&f, &part);
    }
    return f;
}

static trl_footprint star(int width, int dim)
{
    trl_offsets arms[3] = {
        {{-width, 0, 0}, {width, 0, 0}}, {{0, -width, 0}, {0, width, 0}}, {{0, 0, -width}, {0, 0, width}}};
    return footprint_of(3, arms, dim);
}

static trl_footprint cube(int width, int dim)
{
    trl_offsets all = {{-width, -width, -width}, {width, width, width}};
    return footprint_of(1, &all, dim);
}

static trl_footprint lopsided(int dim)
{
    trl_offsets parts[3] = {{{-2, 0, 0}, {1, 0, 0}}, {{0, 0, 0}, {0, 3, 0}}, {{1, -1, -1}, {2, -1, 1}}};
    return footprint_of(3, parts, dim);
}

/* ---- arrays and their expected contents ---- */

static void make_array(problem *p, int field, int local)
{
    trl_array *array = &p->arrays[field][local];
    trl_offsets hull = trl_footprint_hull(&p->field[field].footprint);
    ptrdiff_t stride = 1, origin = 0;
    array->type = p->field[field].type;
    array->owned = trl_patch_owned(p->layout, &p->layout->patch[p->layout->local[local]], p->field[field].location);
    array->held = array->owned;
    for (int a = 0; a < p->layout->grid.dim; ++a) {
        array->held.lo[a] -= (hull.lo[a] < 0 ? -hull.lo[a] : 0) + SPARE;
        array->held.hi[a] += (hull.hi[a] > 0 ? hull.hi[a] : 0) + SPARE;
        array->stride[a] = stride;
        origin -= stride * array->held.lo[a];
        stride *= array->held.hi[a] - array->held.lo[a];
    }
    char *memory = malloc((size_t)stride * trl_scalar_size(array->type));
    array->at = memory + origin * (ptrdiff_t)trl_scalar_size(array->type);
}

static void free_array(trl_array *array)
{
    ptrdiff_t origin = trl_array_offset(array, array->held.lo[0], array->held.lo[1], array->held.lo[2]);
    free((char *)array->at + origin * (ptrdiff_t)trl_scalar_size(array->type));
    array->at = NULL;
}

/* The bits that a point of the whole grid has; round periodic axes. False outside the grid. */
static bool point_value(const trl_grid *grid, trl_location location, int field, const trl_gidx at[3], uint64_t *bits)
{
    trl_gidx point = 0;
    for (int a = 2; a >= 0; --a) {
        trl_gidx n = trl_grid_points(grid, location, a), i = at[a];
        if (grid->periodic[a]) i = (i % n + n) % n;
        if (i < 0 || i >= n) return false;
        point = i + n * point;
    }
    *bits = UINT64_C(0x4000000000000000) + (uint64_t)point + ((uint64_t)field << 32);
    return true;
}

static uint64_t *word_at(const trl_array *array, trl_lidx i, trl_lidx j, trl_lidx k)
{
    return (uint64_t *)array->at + trl_array_offset(array, i, j, k);
}

static bool in_box(const trl_box *box, const trl_lidx at[3])
{
    bool in = true;
    for (int a = 0; a < 3; ++a) in = in && at[a] >= box->lo[a] && at[a] < box->hi[a];
    return in;
}

/* Whether the footprint needs a ghost (1), may get it because another part of the same direction is as wide (0), or
 * neither (-1). */
static int wants(const trl_footprint *f, const trl_box *owned, const trl_lidx at[3])
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
static int64_t visit(const problem *p, int field, int local, bool fill)
{
    const trl_array *array = &p->arrays[field][local];
    const trl_patch *patch = &p->layout->patch[p->layout->local[local]];
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

static int64_t visit_all(const problem *p, bool fill)
{
    int64_t wrong = 0;
    for (int f = 0; f < p->nfields; ++f) {
        for (int l = 0; l < p->layout->nlocal; ++l) wrong += visit(p, f, l, fill);
    }
    return wrong;
}

/* ---- problems ---- */

static void make_arrays(problem *p)
{
    for (int f = 0; f < p->nfields; ++f) {
        p->arrays[f] = calloc((size_t)p->layout->nlocal, sizeof(trl_array));
        for (int l = 0; l < p->layout->nlocal; ++l) make_array(p, f, l);
    }
}

static void free_arrays(problem *p)
{
    for (int f = 0; f < p->nfields; ++f) {
        for (int l = 0; l < p->layout->nlocal; ++l) free_array(&p->arrays[f][l]);
        free(p->arrays[f]);
    }
}

static void setup(problem *p, const trl_grid *grid, const int *counts)
{
    ck_ok(trl_layout_create(test_ctx, grid, counts, NULL, &p->layout));
    ck_ok(trl_exchange_create(test_ctx, p->layout, p->nfields, p->field, &p->exchange));
    make_arrays(p);
}

static void teardown(problem *p)
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

static trl_err exchange_once(problem *p)
{
    bool done = false;
    trl_err err = trl_exchange_begin(p->exchange, arrays_of(p));
    while (err == TRL_OK && !done) err = trl_exchange_finish(p->exchange, arrays_of(p), &done);
    return err;
}

/* Twice, the second time with other memory behind the arrays. */
static void check_exchange(problem *p, const trl_grid *grid, const int *counts)
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

static int ranks(void)
{
    return trl_context_ranks(test_ctx);
}

/* All eight locations at once, on every periodicity and on several ways to cut. */
static void check_everywhere(int dim, const trl_gidx cells[3], int ncuts, const int (*cuts)[3],
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

START_TEST(fills_the_ghosts_of_a_line)
{
    static const int cuts[][3] = {{1, 1, 1}, {2, 1, 1}, {4, 1, 1}, {5, 1, 1}};
    for (int width = 0; width <= 3; ++width) {
        trl_footprint f = star(width, 1);
        check_everywhere(1, (trl_gidx[3]){17, 1, 1}, 4, cuts, &f);
    }
    trl_footprint f = lopsided(1);
    check_everywhere(1, (trl_gidx[3]){17, 1, 1}, 4, cuts, &f);
}
END_TEST

START_TEST(fills_the_ghosts_of_a_plane)
{
    static const int cuts[][3] = {{1, 1, 1}, {2, 1, 1}, {1, 3, 1}, {2, 2, 1}, {3, 3, 1}};
    for (int width = 1; width <= 3; ++width) {
        trl_footprint arms = star(width, 2), all = cube(width, 2);
        check_everywhere(2, (trl_gidx[3]){13, 10, 1}, 5, cuts, &arms);
        check_everywhere(2, (trl_gidx[3]){13, 10, 1}, 5, cuts, &all);
    }
    trl_footprint f = lopsided(2);
    check_everywhere(2, (trl_gidx[3]){13, 10, 1}, 5, cuts, &f);
}
END_TEST

START_TEST(fills_the_ghosts_of_a_box)
{
    static const int cuts[][3] = {{1, 2, 2}, {2, 2, 2}, {3, 1, 2}};
    trl_footprint arms = star(1, 3), all = cube(2, 3), some = lopsided(3);
    check_everywhere(3, (trl_gidx[3]){9, 7, 5}, 3, cuts, &arms);
    check_everywhere(3, (trl_gidx[3]){9, 7, 5}, 3, cuts, &all);
    check_everywhere(3, (trl_gidx[3]){9, 12, 6}, 3, cuts, &some);
}
END_TEST

START_TEST(one_cell_patches_suffice_for_one_layer)
{
    static const int cuts[][3] = {{4, 3, 1}};
    trl_footprint f = cube(1, 2);
    check_everywhere(2, (trl_gidx[3]){4, 3, 1}, 1, cuts, &f);
}
END_TEST

START_TEST(a_periodic_axis_of_one_cell_wraps_onto_itself)
{
    if (ranks() > 1) return;
    for (int periodic = 0; periodic < 4; ++periodic) {
        trl_grid grid = make_grid(2, (trl_gidx[3]){1, 1, 1}, periodic);
        problem p = {.nfields = 2,
                     .field = {{.footprint = cube(1, 2)}, {.location = TRL_ZEDGE, .footprint = cube(1, 2)}}};
        check_exchange(&p, &grid, NULL);
    }
}
END_TEST

START_TEST(each_field_gets_the_directions_of_its_own_footprint)
{
    trl_grid grid = make_grid(3, (trl_gidx[3]){8, 12, 8}, 5);
    problem p = {.nfields = 5,
                 .field = {{.location = TRL_CELL, .footprint = star(2, 3)},
                           {.location = TRL_XFACE, .footprint = cube(1, 3)},
                           {.location = TRL_CELL, .footprint = {0}},
                           {.location = TRL_NODE, .footprint = lopsided(3)},
                           {.location = TRL_YFACE, .footprint = star(1, 2), .type = TRL_I64}}};
    check_exchange(&p, &grid, (int[3]){2, 2, 2});
    check_exchange(&p, &grid, NULL);
}
END_TEST

START_TEST(no_fields_make_an_exchange_that_is_done_at_once)
{
    trl_grid grid = make_grid(1, (trl_gidx[3]){8, 1, 1}, 1);
    problem p = {.nfields = 0};
    check_exchange(&p, &grid, NULL);
}
END_TEST

START_TEST(values_of_four_bytes_are_exchanged_too)
{
    trl_grid grid = make_grid(1, (trl_gidx[3]){12, 1, 1}, 1);
    problem p = {.nfields = 2,
                 .field = {{.footprint = star(3, 1), .type = TRL_F32}, {.footprint = star(1, 1), .type = TRL_I32}}};
    setup(&p, &grid, (int[3]){4, 1, 1});
    for (int f = 0; f < 2; ++f) {
        for (int l = 0; l < p.layout->nlocal; ++l) {
            int32_t *at = p.arrays[f][l].at, first = (int32_t)p.layout->patch[p.layout->local[l]].first[0];
            for (int i = 0; i < 3; ++i) at[i] = 100 * f + first + i;
        }
    }
    bool good = exchange_once(&p) == TRL_OK;
    for (int f = 0; f < 2; ++f) {
        int width = f == 0 ? 3 : 1;
        for (int l = 0; l < p.layout->nlocal; ++l) {
            int32_t *at = p.arrays[f][l].at, first = (int32_t)p.layout->patch[p.layout->local[l]].first[0];
            for (int i = -width; i < 3 + width; ++i) good = good && at[i] == 100 * f + (first + i + 12) % 12;
        }
    }
    ck_assert(on_all_ranks(good));
    teardown(&p);
}
END_TEST

START_TEST(an_exchange_allocates_nothing)
{
    trl_grid grid = make_grid(2, (trl_gidx[3]){16, 16, 1}, 3);
    problem p = {.nfields = 1, .field = {{.footprint = cube(2, 2)}}};
    trl_memory_stats before, after;
    setup(&p, &grid, (int[3]){2, 4, 1});
    visit_all(&p, true);
    trl_memory_get_stats(test_ctx, &before);
    bool good = exchange_once(&p) == TRL_OK && exchange_once(&p) == TRL_OK;
    trl_memory_get_stats(test_ctx, &after);
    ck_assert(on_all_ranks(good && before.allocations == after.allocations));
    teardown(&p);
}
END_TEST

START_TEST(traffic_counts_one_message_for_each_neighbouring_rank)
{
    trl_grid grid = make_grid(2, (trl_gidx[3]){8, 8 * ranks(), 1}, 2);
    problem p = {.nfields = 2, .field = {{.footprint = star(1, 2)}, {.location = TRL_XFACE, .footprint = cube(2, 2)}}};
    int64_t bytes, messages;
    setup(&p, &grid, (int[3]){1, 2 * ranks(), 1});
    trl_exchange_traffic(p.exchange, &bytes, &messages);
    int64_t neighbours = ranks() < 3 ? ranks() - 1 : 2;
    int64_t each_side = 8 * 8 + 2 * 9 * 8; /* one row of cells and two of x-faces */
    ck_assert(on_all_ranks(messages == neighbours));
    ck_assert(on_all_ranks(bytes == (ranks() == 1 ? 0 : 2 * each_side)));
    teardown(&p);
}
END_TEST

START_TEST(finish_does_not_wait_for_the_lock)
{
    trl_grid grid = make_grid(1, (trl_gidx[3]){16, 1, 1}, 1);
    problem p = {.nfields = 1, .field = {{.footprint = star(1, 1)}}};
    bool done = true;
    setup(&p, &grid, NULL);
    visit_all(&p, true);
    trl_err begun = trl_exchange_begin(p.exchange, arrays_of(&p));
    trl_context_mpi_lock(test_ctx);
    trl_err err = trl_exchange_finish(p.exchange, arrays_of(&p), &done);
    trl_context_mpi_unlock(test_ctx);
    bool good = begun == TRL_OK && err == TRL_OK && done == (ranks() == 1);
    while (err == TRL_OK && !done) err = trl_exchange_finish(p.exchange, arrays_of(&p), &done);
    ck_assert(on_all_ranks(good && visit_all(&p, false) == 0));
    teardown(&p);
}
END_TEST

/* ---- misuse and failures ---- */

START_TEST(refuses_stencils_wider_than_a_patch)
{
    trl_grid grid = make_grid(2, (trl_gidx[3]){32, 11, 1}, 0);
    trl_exchange_field fields[2] = {{.footprint = star(1, 2)},
                                    {.location = TRL_YFACE, .footprint = star(3, 2), .name = "v"}};
    trl_layout *layout;
    trl_exchange *exchange;
    ck_ok(trl_layout_create(test_ctx, &grid, (int[3]){1, 4, 1}, NULL, &layout));
    ck_fails(trl_exchange_create(test_ctx, layout, 2, fields, &exchange), TRL_ERR_INPUT,
             "patches: stencils reach 3 points of 'v' along y, but the thinnest of the 4 patches "
             "there has 2 cells and needs 3; use fewer patches or ranks, or more cells along y");
    ck_assert_ptr_null(exchange);
    trl_layout_destroy(&layout);
}
END_TEST

START_TEST(stencils_wider_than_a_single_patch_without_neighbours_are_fine)
{
    trl_grid grid = make_grid(2, (trl_gidx[3]){2, 16, 1}, 2);
    trl_footprint f = star(3, 2);
    problem p = {.nfields = 1, .field = {{.footprint = f}}};
    check_exchange(&p, &grid, (int[3]){1, 4, 1});
}
END_TEST

START_TEST(refuses_messages_longer_than_mpi_counts)
{
    trl_grid grid = make_grid(3, (trl_gidx[3]){1 << 16, 1 << 16, 4}, 0);
    trl_exchange_field field = {.footprint = star(1, 3)};
    trl_layout *layout;
    trl_exchange *exchange;
    if (ranks() == 1) return;
    ck_ok(trl_layout_create(test_ctx, &grid, (int[3]){1, 1, 4}, NULL, &layout));
    ck_fails(trl_exchange_create(test_ctx, layout, 1, &field, &exchange), TRL_ERR_INPUT,
             "exceed the 17179869176 bytes of one message; run on more ranks or exchange fewer fields");
    ck_assert_ptr_null(exchange);
    trl_layout_destroy(&layout);
}
END_TEST

START_TEST(refuses_arrays_without_the_ghosts)
{
    trl_grid grid = make_grid(1, (trl_gidx[3]){16, 1, 1}, 1);
    problem p = {.nfields = 1, .field = {{.footprint = star(2, 1)}}};
    setup(&p, &grid, (int[3]){4, 1, 1});
    p.arrays[0][0].held.hi[0] -= SPARE + 1;
    char expected[200];
    snprintf(expected, sizeof expected,
             "exchange: the array of field 0 on patch %d holds points -3 to 4 along x, but points 4 to 5 take part; "
             "allocate the hull of the footprint",
             p.layout->local[0]);
    trl_err err = trl_exchange_begin(p.exchange, arrays_of(&p));
    bool good = err == TRL_ERR_USAGE && strstr(test_messages(), expected) != NULL;
    ck_assert_msg(on_all_ranks(good), "%s", test_messages());
    teardown(&p);
}
END_TEST

START_TEST(refuses_arrays_of_another_type)
{
    trl_grid grid = make_grid(1, (trl_gidx[3]){16, 1, 1}, 1);
    problem p = {.nfields = 1, .field = {{.footprint = star(2, 1)}}};
    setup(&p, &grid, (int[3]){4, 1, 1});
    p.arrays[0][0].type = TRL_F32;
    trl_err err = trl_exchange_begin(p.exchange, arrays_of(&p));
    p.arrays[0][0].type = TRL_F64;
    bool good = err == TRL_ERR_USAGE &&
                strstr(test_messages(), "has values of 4 bytes; the exchange was created for 8") != NULL;
    ck_assert_msg(on_all_ranks(good), "%s", test_messages());
    teardown(&p);
}
END_TEST

START_TEST(begin_and_finish_must_alternate)
{
    trl_grid grid = make_grid(1, (trl_gidx[3]){16, 1, 1}, 1);
    problem p = {.nfields = 1, .field = {{.footprint = star(1, 1)}}};
    bool done = true;
    setup(&p, &grid, NULL);
    visit_all(&p, true);
    bool good = trl_exchange_finish(p.exchange, arrays_of(&p), &done) == TRL_ERR_USAGE && !done;
    good = good && strstr(test_messages(), "trl_exchange_finish without trl_exchange_begin before it") != NULL;
    good = good && trl_exchange_begin(p.exchange, arrays_of(&p)) == TRL_OK;
    good = good && trl_exchange_begin(p.exchange, arrays_of(&p)) == TRL_ERR_USAGE;
    good = good &&
           strstr(test_messages(), "begun again before trl_exchange_finish said that the last one is done") != NULL;
    while (good && !done) good = trl_exchange_finish(p.exchange, arrays_of(&p), &done) == TRL_OK;
    ck_assert(on_all_ranks(good && visit_all(&p, false) == 0));
    teardown(&p);
}
END_TEST

START_TEST(an_exchange_that_a_failed_run_left_under_way_can_be_destroyed)
{
    trl_grid grid = make_grid(2, (trl_gidx[3]){16, 8192, 1}, 1); /* messages too long for MPI to buffer */
    problem p = {.nfields = 1, .field = {{.footprint = star(1, 2)}}};
    trl_memory_stats before, after;
    trl_memory_get_stats(test_ctx, &before);
    setup(&p, &grid, (int[3]){ranks(), 1, 1});
    visit_all(&p, true);
    bool good = exchange_once(&p) == TRL_OK;
    if (trl_context_rank(test_ctx) == 0) good = good && trl_exchange_begin(p.exchange, arrays_of(&p)) == TRL_OK;
    teardown(&p);
    trl_memory_get_stats(test_ctx, &after);
    ck_assert(on_all_ranks(good && before.bytes == after.bytes));
}
END_TEST

/* ---- failures of MPI, by wrapping its functions ---- */

static const char *failing_call = "";

static bool fails_now(const char *call)
{
    return strcmp(call, failing_call) == 0;
}

int MPI_Comm_dup(MPI_Comm comm, MPI_Comm *copy)
{
    if (!fails_now("MPI_Comm_dup")) return PMPI_Comm_dup(comm, copy);
    return MPI_ERR_OTHER;
}

int MPI_Comm_set_errhandler(MPI_Comm comm, MPI_Errhandler handler)
{
    return fails_now("MPI_Comm_set_errhandler") ? MPI_ERR_OTHER : PMPI_Comm_set_errhandler(comm, handler);
}

int MPI_Recv_init(void *buffer, int n, MPI_Datatype type, int peer, int tag, MPI_Comm comm, MPI_Request *request)
{
    return fails_now("MPI_Recv_init") ? MPI_ERR_OTHER : PMPI_Recv_init(buffer, n, type, peer, tag, comm, request);
}

int MPI_Send_init(const void *buffer, int n, MPI_Datatype type, int peer, int tag, MPI_Comm comm, MPI_Request *request)
{
    return fails_now("MPI_Send_init") ? MPI_ERR_OTHER : PMPI_Send_init(buffer, n, type, peer, tag, comm, request);
}

int MPI_Startall(int n, MPI_Request *requests)
{
    return fails_now("MPI_Startall") ? MPI_ERR_OTHER : PMPI_Startall(n, requests);
}

int MPI_Testall(int n, MPI_Request *requests, int *flag, MPI_Status *statuses)
{
    return fails_now("MPI_Testall") ? MPI_ERR_OTHER : PMPI_Testall(n, requests, flag, statuses);
}

START_TEST(failures_of_mpi_during_creation_name_the_call)
{
    static const char *const calls[] = {"MPI_Comm_dup", "MPI_Comm_set_errhandler", "MPI_Recv_init", "MPI_Send_init"};
    trl_grid grid = make_grid(1, (trl_gidx[3]){16, 1, 1}, 1);
    trl_exchange_field field = {.footprint = star(1, 1)};
    trl_layout *layout;
    trl_exchange *exchange;
    ck_ok(trl_layout_create(test_ctx, &grid, NULL, NULL, &layout));
    for (int i = 0; i < (ranks() == 1 ? 2 : 4); ++i) {
        char expected[80];
        snprintf(expected, sizeof expected, "%s failed on rank ", calls[i]);
        test_clear();
        failing_call = calls[i];
        trl_err err = trl_exchange_create(test_ctx, layout, 1, &field, &exchange);
        failing_call = "";
        bool good = err == TRL_ERR_MPI && exchange == NULL && strstr(test_messages(), expected) != NULL;
        ck_assert_msg(on_all_ranks(good), "%s: %s", calls[i], test_messages());
    }
    trl_layout_destroy(&layout);
}
END_TEST

START_TEST(failures_of_mpi_during_an_exchange_name_the_call)
{
    trl_grid grid = make_grid(1, (trl_gidx[3]){16, 1, 1}, 1);
    problem p = {.nfields = 1, .field = {{.footprint = star(1, 1)}}};
    bool done = false;
    if (ranks() == 1) return;
    setup(&p, &grid, NULL);
    visit_all(&p, true);
    failing_call = "MPI_Startall";
    bool good = trl_exchange_begin(p.exchange, arrays_of(&p)) == TRL_ERR_MPI;
    failing_call = "";
    good = good && strstr(test_messages(), "MPI_Startall failed on rank ") != NULL;
    good = good && trl_exchange_begin(p.exchange, arrays_of(&p)) == TRL_OK;
    failing_call = "MPI_Testall";
    good = good && trl_exchange_finish(p.exchange, arrays_of(&p), &done) == TRL_ERR_MPI && !done;
    failing_call = "";
    good = good && strstr(test_messages(), "MPI_Testall failed on rank ") != NULL;
    while (good && !done) good = trl_exchange_finish(p.exchange, arrays_of(&p), &done) == TRL_OK;
    ck_assert_msg(on_all_ranks(good && visit_all(&p, false) == 0), "%s", test_messages());
    teardown(&p);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, fills_the_ghosts_of_a_line);
    tcase_add_test(tc, fills_the_ghosts_of_a_plane);
    tcase_add_test(tc, fills_the_ghosts_of_a_box);
    tcase_add_test(tc, one_cell_patches_suffice_for_one_layer);
    tcase_add_test(tc, a_periodic_axis_of_one_cell_wraps_onto_itself);
    tcase_add_test(tc, each_field_gets_the_directions_of_its_own_footprint);
    tcase_add_test(tc, no_fields_make_an_exchange_that_is_done_at_once);
    tcase_add_test(tc, values_of_four_bytes_are_exchanged_too);
    tcase_add_test(tc, an_exchange_allocates_nothing);
    tcase_add_test(tc, traffic_counts_one_message_for_each_neighbouring_rank);
    tcase_add_test(tc, finish_does_not_wait_for_the_lock);
    tcase_add_test(tc, refuses_stencils_wider_than_a_patch);
    tcase_add_test(tc, stencils_wider_than_a_single_patch_without_neighbours_are_fine);
    tcase_add_test(tc, refuses_messages_longer_than_mpi_counts);
    tcase_add_test(tc, refuses_arrays_without_the_ghosts);
    tcase_add_test(tc, refuses_arrays_of_another_type);
    tcase_add_test(tc, begin_and_finish_must_alternate);
    tcase_add_test(tc, an_exchange_that_a_failed_run_left_under_way_can_be_destroyed);
    tcase_add_test(tc, failures_of_mpi_during_creation_name_the_call);
    tcase_add_test(tc, failures_of_mpi_during_an_exchange_name_the_call);
}

TRL_TEST_MAIN("exchange", add_tests)
