// ctest: np=1,4
/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Fields of a driver of one's own: memory, valid points, refusals by name, exchange. */
#include "trl_test.h"

#include "field_fixture.h"

static trl_field_manager *manager;

static const trl_gidx cells[3] = {12, 10, 8};
static const int cuts[3] = {2, 2, 2};

START_TEST(a_field_holds_its_ghosts_on_every_patch_and_axis_of_the_grid)
{
    for (int dim = 1; dim <= 3; ++dim)
        for (int location = 0; location < 1 << dim; ++location) {
            trl_layout *layout = make_layout(dim, cells, 1, (int[3]){4, 1, 1});
            trl_field *field;
            const trl_field_desc desc = {
                .name = "T", .location = (trl_location)location, .ghost_lo = {1, 2, 3}, .ghost_hi = {4, 0, 1}};
            ck_ok(trl_field_create(manager, layout, &desc, &field));
            ck_assert_str_eq(trl_field_name(field), "T");
            ck_assert_int_eq(trl_field_location(field), location);
            ck_assert_ptr_eq(trl_field_layout(field), layout);
            for (int p = 0; p < layout->nlocal; ++p) {
                trl_array a = array_of(field, p), again = array_of(field, p);
                const trl_box owned = trl_patch_owned(layout, &layout->patch[p], (trl_location)location);
                const trl_box valid = trl_field_valid(field, p);
                ck_assert(a.at == again.at && same_box(&a.owned, &owned));
                ck_assert_int_eq(trl_box_points(&valid), 0);
                for (int axis = 0; axis < 3; ++axis) {
                    ck_assert_int_eq(owned.lo[axis] - a.held.lo[axis], axis < dim ? desc.ghost_lo[axis] : 0);
                    ck_assert_int_eq(a.held.hi[axis] - owned.hi[axis], axis < dim ? desc.ghost_hi[axis] : 0);
                    ck_assert(axis < dim || a.stride[axis] == 0);
                }
                double next = 0;
                FOR_BOX(a.held, i, j, k) * value_at(&a, i, j, k) = next++;
                next = 0;
                FOR_BOX(a.held, i, j, k) ck_assert(*value_at(&a, i, j, k) == next++);
            }
            trl_field_destroy(&field);
            ck_assert_ptr_null(field);
            trl_field_destroy(&field);
            trl_layout_destroy(&layout);
        }
}
END_TEST

START_TEST(long_rows_begin_on_cache_lines)
{
    trl_layout *layout = make_layout(3, (trl_gidx[3]){401, 4, 4}, 0, (int[3]){1, 1, 4});
    trl_field *field = make_field(manager, layout, "T", TRL_CELL, 3);
    for (int p = 0; p < layout->nlocal; ++p) {
        const trl_array a = array_of(field, p);
        ck_assert_int_eq((uintptr_t)value_at(&a, 0, 1, 1) % 64, 0);
        ck_assert_int_eq((uintptr_t)value_at(&a, 0, 2, 0) % 64, 0);
    }
    trl_field_destroy(&field);
    trl_layout_destroy(&layout);
}
END_TEST

#ifdef TRL_POISON
START_TEST(memory_and_ghosts_that_nobody_wrote_are_signalling_nans)
{
    trl_layout *layout = make_layout(2, cells, 0, (int[3]){2, 2, 1});
    trl_field *field = make_field(manager, layout, "T", TRL_CELL, 1);
    for (int round = 0; round < 2; ++round)
        for (int p = 0; p < layout->nlocal; ++p) {
            const trl_array a = array_of(field, p);
            FOR_BOX(a.held, i, j, k)
            {
                uint64_t bits;
                memcpy(&bits, value_at(&a, i, j, k), sizeof bits);
                if (round == 1 && box_holds(&a.owned, i, j, k))
                    ck_assert(*value_at(&a, i, j, k) == 1);
                else
                    ck_assert(bits >> 51 == 0xffe && bits << 13 != 0);
            }
            FOR_BOX(a.held, i, j, k) * value_at(&a, i, j, k) = 1;
            trl_field_invalidate_ghosts(field);
        }
    trl_field_destroy(&field);
    trl_layout_destroy(&layout);
}
END_TEST
#endif

static void grow(trl_box *box, int axis, trl_lidx lo, trl_lidx hi)
{
    box->lo[axis] -= lo;
    box->hi[axis] += hi;
}

START_TEST(reading_what_is_not_valid_is_refused_by_name_side_and_cure)
{
    trl_layout *layout = make_layout(2, (trl_gidx[3]){8, 8, 1}, 2, (int[3]){4, 1, 1});
    trl_field *field = make_field(manager, layout, "flux", TRL_CELL, 2);
    const int p = 0, id = layout->local[0];
    const trl_box owned = trl_patch_owned(layout, &layout->patch[p], TRL_CELL);
    trl_box box = owned;
    char patch[64];
    snprintf(patch, sizeof patch, "field 'flux' on patch %d: ", id);
    ck_fails(trl_field_require(field, p, &box), TRL_ERR_USAGE, patch);
    ck_fails(trl_field_require(field, p, &box), TRL_ERR_USAGE,
             "its owned points are not valid; write them, and say so");
    trl_field_invalidate_ghosts(field);
    ck_ok(trl_field_require(field, p, &box));

    grow(&box, 0, 2, 0);
    ck_fails(trl_field_require(field, p, &box), TRL_ERR_USAGE,
             id == 0 ? "on side x-, 2 layers of values are not valid; apply a boundary condition there first"
                     : "on side x-, 2 layers of values are not valid; call trl_field_exchange first");
    box = owned;
    grow(&box, 1, 0, 1);
    ck_fails(trl_field_require(field, p, &box), TRL_ERR_USAGE,
             "on side y+, 1 layer of values are not valid; call trl_field_exchange first");
    ck_ok(trl_field_set_valid(field, p, &box));
    ck_ok(trl_field_require(field, p, &box));
    grow(&box, 1, 0, 4);
    ck_fails(trl_field_require(field, p, &box), TRL_ERR_USAGE,
             "on side y+, 3 layers of values beyond the field's ghosts are read; create the field with more ghosts");
    ck_fails(trl_field_set_valid(field, p, &box), TRL_ERR_USAGE, "along y: points 0 to 12 cannot be valid");
    trl_field_destroy(&field);
    trl_layout_destroy(&layout);
}
END_TEST

START_TEST(negative_ghosts_are_refused)
{
    trl_layout *layout = make_layout(2, cells, 0, (int[3]){2, 2, 1});
    trl_field *field;
    const trl_field_desc desc = {.name = "T", .ghost_hi = {0, -1, 0}};
    ck_fails(trl_field_create(manager, layout, &desc, &field), TRL_ERR_USAGE,
             "field 'T': 0 and -1 layers of ghosts along y; give 0 or more");
    ck_assert_ptr_null(field);
    trl_layout_destroy(&layout);
}
END_TEST

/* What an exchange makes valid, and that it is right there and touches nothing else. */
static bool exchange_is_right(trl_field *field, uint64_t seed)
{
    const trl_layout *layout = trl_field_layout(field);
    bool right = true;
    for (int p = 0; p < layout->nlocal; ++p) {
        const trl_patch *patch = &layout->patch[p];
        const trl_array a = array_of(field, p);
        const trl_box valid = trl_field_valid(field, p);
        trl_box all = a.held;
        for (int axis = 0; axis < 3; ++axis) {
            if (trl_patch_at_side(layout, patch, axis, 0)) all.lo[axis] = a.owned.lo[axis];
            if (trl_patch_at_side(layout, patch, axis, 1)) all.hi[axis] = a.owned.hi[axis];
        }
        right &= same_box(&valid, &all);
        FOR_BOX(a.held, i, j, k)
        {
            const double value = *value_at(&a, i, j, k);
            right &=
                box_holds(&all, i, j, k) ? same_bits(value, expected_at(field, p, seed, i, j, k)) : is_untouched(value);
        }
    }
    return right;
}

START_TEST(an_exchange_makes_the_ghosts_of_other_patches_valid)
{
    for (int dim = 1; dim <= 3; ++dim)
        for (int periodic = 0; periodic < 1 << dim; ++periodic)
            for (int location = 0; location < 1 << dim; ++location) {
                trl_layout *layout = make_layout(dim, cells, periodic, dim == 3 ? cuts : (int[3]){4, 1, 1});
                trl_field *field = make_field(manager, layout, "T", (trl_location)location, 2);
                trl_err err = trl_field_exchange(field);
                ck_assert(on_all_ranks(err == TRL_ERR_USAGE));
                trl_memory_stats first = {0}, last;
                for (uint64_t round = 0; round < 3; ++round) {
                    fill_field(field, round, false);
                    err = trl_field_exchange(field);
                    ck_assert_msg(on_all_ranks(err == TRL_OK && exchange_is_right(field, round)),
                                  "%d-D, periodic %d, location %d: %s", dim, periodic, location, test_messages());
                    trl_memory_get_stats(test_ctx, &last);
                    ck_assert(round == 0 || last.allocations == first.allocations);
                    first = last;
                }
                trl_field_destroy(&field);
                trl_layout_destroy(&layout);
            }
}
END_TEST

START_TEST(corners_beside_fresh_ghosts_are_not_valid)
{
    trl_layout *layout = make_layout(2, cells, 0, (int[3]){4, 1, 1});
    trl_field *field = make_field(manager, layout, "T", TRL_CELL, 1);
    bool right = true;
    fill_field(field, 7, false);
    for (int p = 0; p < layout->nlocal; ++p) { /* a boundary condition wrote the sides along y */
        trl_box valid = trl_field_valid(field, p);
        grow(&valid, 1, 1, 1);
        ck_ok(trl_field_set_valid(field, p, &valid));
    }
    ck_ok(trl_field_exchange(field));
    for (int p = 0; p < layout->nlocal; ++p) {
        const trl_array a = array_of(field, p);
        const trl_box valid = trl_field_valid(field, p);
        right &= valid.lo[1] == a.owned.lo[1] && valid.hi[1] == a.owned.hi[1];
    }
    ck_assert(on_all_ranks(right));
    trl_field_destroy(&field);
    trl_layout_destroy(&layout);
}
END_TEST

START_TEST(a_field_that_one_rank_did_not_write_is_refused_on_all)
{
    trl_layout *layout = make_layout(1, (trl_gidx[3]){16, 1, 1}, 0, (int[3]){4, 1, 1});
    trl_field *field = make_field(manager, layout, "T", TRL_CELL, 1);
    const bool first = trl_context_rank(test_ctx) == 0;
    fill_field(field, 7, false);
    if (first) ck_ok(trl_field_set_valid(field, 0, &(trl_box){{0, 0, 0}, {0, 0, 0}}));
    const trl_err err = trl_field_exchange(field);
    const bool said = !first || strstr(test_messages(), "its owned points are not valid");
    ck_assert(on_all_ranks(err == TRL_ERR_USAGE && said));
    trl_field_destroy(&field);
    trl_layout_destroy(&layout);
}
END_TEST

START_TEST(sides_stay_valid_where_an_exchange_brings_nothing)
{
    trl_layout *layout = make_layout(1, (trl_gidx[3]){16, 1, 1}, 0, (int[3]){4, 1, 1});
    trl_field *field = make_field(manager, layout, "T", TRL_CELL, 1);
    bool right = true;
    fill_field(field, 7, true);
    ck_ok(trl_field_exchange(field));
    for (int p = 0; p < layout->nlocal; ++p) {
        const trl_array a = array_of(field, p);
        const trl_box valid = trl_field_valid(field, p);
        right &= same_box(&valid, &a.held);
    }
    ck_assert(on_all_ranks(right));
    trl_field_destroy(&field);
    trl_layout_destroy(&layout);
}
END_TEST

static void setup(void)
{
    ck_ok(trl_field_manager_create(test_ctx, &manager));
}

static void teardown(void)
{
    trl_field_manager_destroy(&manager);
}

static void add_tests(TCase *tc)
{
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, a_field_holds_its_ghosts_on_every_patch_and_axis_of_the_grid);
    tcase_add_test(tc, long_rows_begin_on_cache_lines);
#ifdef TRL_POISON
    tcase_add_test(tc, memory_and_ghosts_that_nobody_wrote_are_signalling_nans);
#endif
    tcase_add_test(tc, reading_what_is_not_valid_is_refused_by_name_side_and_cure);
    tcase_add_test(tc, negative_ghosts_are_refused);
    tcase_add_test(tc, an_exchange_makes_the_ghosts_of_other_patches_valid);
    tcase_add_test(tc, corners_beside_fresh_ghosts_are_not_valid);
    tcase_add_test(tc, a_field_that_one_rank_did_not_write_is_refused_on_all);
    tcase_add_test(tc, sides_stay_valid_where_an_exchange_brings_nothing);
}
TRL_TEST_MAIN("field", add_tests)
