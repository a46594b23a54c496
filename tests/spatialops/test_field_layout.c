/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Fields that go to other patches and owners while a driver runs. */
// ctest: np=1,2,3,4
#include "trl_test.h"

#include <trl_operator.h>

#include "field_fixture.h"

static trl_field_manager *manager;

static const trl_gidx cells[3] = {9, 12, 10};

/* Cuts of so many axes for the ranks that there are. */
static trl_layout *layout_of(int dim, int periodic_bits, int number)
{
    static const int cuts[][3] = {{4, 1, 1}, {1, 4, 1}, {3, 2, 1}, {2, 5, 1},
                                  {9, 1, 1}, {2, 2, 3}, {1, 3, 2}, {5, 1, 4}};
    int counts[3] = {4, 1, 1};
    if (dim > 1) memcpy(counts, cuts[number % (dim == 2 ? 5 : 8)], sizeof counts);
    return make_layout(dim, cells, periodic_bits, dim == 1 ? (int[3]){4 + number, 1, 1} : counts);
}

static void check_values(trl_field *field, uint64_t seed, bool ghosts)
{
    const trl_layout *layout = trl_field_layout(field);
    for (int p = 0; p < layout->nlocal; ++p) {
        const trl_array a = array_of(field, p);
        const trl_box valid = trl_field_valid(field, p), *box = ghosts ? &valid : &a.owned;
        ck_assert(ghosts || same_box(&valid, &a.owned));
        FOR_BOX(*box, i, j, k)
        ck_assert_msg(same_bits(*value_at(&a, i, j, k), expected_at(field, p, seed, i, j, k)),
                      "patch %d, point %d %d %d", layout->local[p], i, j, k);
    }
}

START_TEST(owned_values_go_to_any_patches_and_owners)
{
    for (int dim = 1; dim <= 3; ++dim)
        for (int location = 0; location < 1 << dim; ++location) {
            const int periodic = location % 3;
            trl_layout *layout = layout_of(dim, periodic, 0);
            trl_field *field = make_field(manager, layout, "T", (trl_location)location, 1);
            fill_field(field, 7, true);
            for (int number = 1; number < 6; ++number) {
                trl_layout *next = layout_of(dim, periodic, number);
                ck_assert_uint_gt(next->epoch, layout->epoch);
                ck_ok(trl_field_set_layout(field, next));
                ck_assert_ptr_eq(trl_field_layout(field), next);
                ck_assert_str_eq(trl_field_name(field), "T");
                check_values(field, 7, false);
                trl_layout_destroy(&layout);
                layout = next;
                if (number % 2 == 0) continue;
                ck_ok(trl_field_exchange(field));
                check_values(field, 7, true);
            }
            trl_field_destroy(&field);
            trl_layout_destroy(&layout);
        }
}
END_TEST

static uint64_t hash_of_field(trl_field *field)
{
    const trl_layout *layout = trl_field_layout(field);
    uint64_t hash = 0;
    for (int p = 0; p < layout->nlocal; ++p) {
        const trl_array a = array_of(field, p);
        hash += trl_array_hash(layout, &layout->patch[p], trl_field_location(field), &a);
    }
    MPI_Allreduce(MPI_IN_PLACE, &hash, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    return hash;
}

/* Steps of diffusion on other patches, of other ranks, now and then. */
static uint64_t diffuse(bool moves, const crew *c)
{
    trl_layout *layout = layout_of(3, 7, 0);
    trl_field *f[2] = {make_field(manager, layout, "T", TRL_CELL, 1), make_field(manager, layout, "rate", TRL_CELL, 0)};
    trl_operator *op;
    ck_ok(trl_operator_create(test_ctx, &layout->grid,
                              &(trl_operator_desc){.kind = TRL_LAPLACIAN, .from = TRL_CELL, .to = TRL_CELL}, &op));
    fill_field(f[0], 3, false);
    trl_field_invalidate_ghosts(f[1]);
    for (int step = 0; step < 12; ++step) {
        if (moves && step % 3 == 2) {
            trl_layout *next = layout_of(3, 7, step);
            for (int i = 0; i < 2; ++i) ck_ok(trl_field_set_layout(f[i], next));
            trl_layout_destroy(&layout);
            layout = next;
        }
        ck_ok(trl_field_exchange(f[0]));
        ck_ok(trl_operator_apply(op, c->loop, &f[0], f[1]));
        ck_ok(trl_field_combine(f[0], c->loop, 1, f[0], 1e-3, f[1]));
    }
    const uint64_t hash = hash_of_field(f[0]);
    trl_operator_destroy(&op);
    for (int i = 0; i < 2; ++i) trl_field_destroy(&f[i]);
    trl_layout_destroy(&layout);
    return hash;
}

START_TEST(a_change_of_layout_does_not_change_a_bit)
{
    for (int threads = 0; threads < 3; ++threads) {
        crew c = make_crew(threads);
        ck_assert_uint_eq(diffuse(true, &c), diffuse(false, &c));
        destroy_crew(&c);
    }
}
END_TEST

START_TEST(refuses_other_grids_and_values_that_are_not_valid)
{
    trl_layout *layout = layout_of(2, 0, 0), *round = layout_of(2, 1, 1), *next = layout_of(2, 0, 1);
    trl_field *field = make_field(manager, layout, "T", TRL_CELL, 1);
    ck_fails(trl_field_set_layout(field, next), TRL_ERR_USAGE, "its owned points are not valid");
    test_clear();
    fill_field(field, 5, true);
    ck_fails(trl_field_set_layout(field, round), TRL_ERR_USAGE, "field 'T' cannot go to a layout of another grid");
    test_clear();
    if (trl_context_rank(test_ctx) == trl_context_ranks(test_ctx) - 1) /* one rank alone */
        ck_ok(trl_field_set_valid(field, 0, &(trl_box){{0, 0, 0}, {0, 0, 0}}));
    const trl_err err = trl_field_set_layout(field, next);
    ck_assert_int_eq(err, TRL_ERR_USAGE);
    test_clear();
    ck_assert_ptr_eq(trl_field_layout(field), layout);
    fill_field(field, 5, true);
    ck_ok(trl_field_set_layout(field, next));
    check_values(field, 5, false);
    trl_field_destroy(&field);
    trl_layout_destroy(&layout);
    trl_layout_destroy(&round);
    trl_layout_destroy(&next);
}
END_TEST

/* A name is that of one field of a manager and a layout. */
START_TEST(fields_of_two_layouts_may_have_one_name)
{
    trl_layout *layout = layout_of(2, 0, 0), *next = layout_of(2, 0, 1);
    trl_field *field = make_field(manager, layout, "T", TRL_CELL, 1), *other, *same;
    const trl_field_desc desc = {.name = "T"};
    ck_fails(trl_field_create(manager, layout, &desc, &same), TRL_ERR_USAGE, "is registered already");
    test_clear();
    ck_ok(trl_field_create(manager, next, &desc, &other));
    trl_field_destroy(&other);
    trl_field_destroy(&field);
    trl_layout_destroy(&layout);
    trl_layout_destroy(&next);
}
END_TEST

static void open_manager(void)
{
    ck_ok(trl_field_manager_create(test_ctx, &manager));
}

static void close_manager(void)
{
    trl_field_manager_destroy(&manager);
}

static void add_tests(TCase *tc)
{
    tcase_add_checked_fixture(tc, open_manager, close_manager);
    tcase_add_test(tc, owned_values_go_to_any_patches_and_owners);
    tcase_add_test(tc, a_change_of_layout_does_not_change_a_bit);
    tcase_add_test(tc, refuses_other_grids_and_values_that_are_not_valid);
    tcase_add_test(tc, fields_of_two_layouts_may_have_one_name);
}

TRL_TEST_MAIN("field layouts", add_tests)
