/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
// ctest: np=1,3
#include "trl_test.h"

#include "../spatialops/owners_fixture.h"

#include <hdf5.h>
#include <math.h>
#include <unistd.h>

#include "builtins_impl.h"

#define PATH "type_file.h5"

static const trl_grid grid = {
    .dim = 2, .cells = {7, 5, 1}, .length = {1, 1, 1}, .spacing = {1.0 / 7, 0.2, 1}, .periodic = {false, true, false}};
static trl_layout *layout;
static void *state;

/* Value of point (i, j) in the file. */
static double expected(trl_gidx i, trl_gidx j)
{
    return 100.0 * (double)j + (double)i + 0.5;
}

/* A dataset on the x-faces: 8 by 5 points, in the order [y][x]. */
static void write_file(void)
{
    double values[5][8];
    const hsize_t size[2] = {5, 8};
    for (int j = 0; j < 5; ++j)
        for (int i = 0; i < 8; ++i) values[j][i] = expected(i, j);
    hid_t file = H5Fcreate(PATH, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    hid_t space = H5Screate_simple(2, size, NULL);
    hid_t set = H5Dcreate2(file, "/u", H5T_IEEE_F64LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    H5Dwrite(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
    H5Dclose(set);
    H5Sclose(space);
    H5Fclose(file);
}

static void open_all(void)
{
    int counts[3] = {trl_context_ranks(test_ctx), 2, 1};
    if (trl_context_rank(test_ctx) == 0) write_file();
    MPI_Barrier(MPI_COMM_WORLD);
    ck_ok(trl_layout_create_owned(test_ctx, &grid, counts, next_owners(), NULL, &layout));
    state = calloc(1, trli_type_file.state_size);
    ck_assert_ptr_nonnull(state);
}

static void close_all(void)
{
    trli_type_file.teardown(state);
    free(state);
    trl_layout_destroy(&layout);
    MPI_Barrier(MPI_COMM_WORLD);
    if (trl_context_rank(test_ctx) == 0) unlink(PATH);
}

static trl_err setup(const char *path, const char *dataset, const char *location)
{
    const trl_param_value params[] = {{.text = path, .place = {.file = "deck.yaml", .line = 8, .column = 14}},
                                      {.text = dataset, .place = {.file = "deck.yaml", .line = 9, .column = 4}},
                                      {.text = location}};
    const trl_setup_args args = {.ctx = test_ctx,
                                 .grid = &grid,
                                 .layout = layout,
                                 .params = params,
                                 .place = {.file = "deck.yaml", .line = 8, .column = 3}};
    trl_err err = trli_type_file.setup(state, &args);
    if (err != TRL_OK) { /* as the contract says: teardown follows setup, whatever setup returns */
        trli_type_file.teardown(state);
        memset(state, 0, trli_type_file.state_size);
    }
    return err;
}

/* Evaluate on a patch's owned points, in two boxes, into an array with a wide rim; the number of wrong values. */
static int count_wrong(const trl_patch *patch)
{
    const trl_box owned = trl_patch_owned(layout, patch, TRL_XFACE);
    enum { RIM = 3, LINE = 32 };
    double memory[LINE][LINE];
    trl_array to = {.at = &memory[RIM][RIM], .stride = {1, LINE, 0}, .owned = owned, .held = owned};
    trl_eval_args args = {.size = sizeof args, .ctx = test_ctx, .grid = &grid, .patch = patch, .computed = &to};
    trl_box low = owned, high = owned;
    int wrong = 0;
    for (int j = 0; j < LINE; ++j)
        for (int i = 0; i < LINE; ++i) memory[j][i] = NAN;
    low.hi[1] = high.lo[1] = (owned.lo[1] + owned.hi[1]) / 2;
    ck_ok(trli_type_file.evaluate(state, &args, &low));
    ck_ok(trli_type_file.evaluate(state, &args, &high));
    for (int j = -RIM; j < LINE - RIM; ++j) {
        for (int i = -RIM; i < LINE - RIM; ++i) {
            bool inside = i >= owned.lo[0] && i < owned.hi[0] && j >= owned.lo[1] && j < owned.hi[1];
            double value = memory[j + RIM][i + RIM];
            wrong += inside ? value != expected(patch->first[0] + i, patch->first[1] + j) : !isnan(value);
        }
    }
    return wrong;
}

START_TEST(gives_the_values_of_the_file)
{
    int wrong = 0;
    ck_ok(setup(PATH, "/u", "xface"));
    for (int p = 0; p < layout->nlocal; ++p) wrong += count_wrong(&layout->patch[p]);
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    ck_assert_int_eq(wrong, 0);
}
END_TEST

START_TEST(rejects_an_unknown_location)
{
    ck_fails(setup(PATH, "/u", "xfce"), TRL_ERR_INPUT,
             "deck.yaml:8:3: unknown location 'xfce'; one of cell xface yface zface xedge yedge zedge node");
}
END_TEST

START_TEST(rejects_a_missing_dataset_and_another_shape)
{
    ck_fails(setup(PATH, "/v", "xface"), TRL_ERR_INPUT, "deck.yaml:9:4: ");
    ck_fails(setup(PATH, "/u", "cell"), TRL_ERR_INPUT, "deck.yaml:9:4: ");
    ck_fails(setup("nothing.h5", "/u", "xface"), TRL_ERR_INPUT, "deck.yaml:8:14: cannot read 'nothing.h5'");
}
END_TEST

START_TEST(gives_back_its_memory)
{
    trl_memory_stats before, after;
    trl_memory_get_stats(test_ctx, &before);
    ck_ok(setup(PATH, "/u", "xface"));
    trl_memory_get_stats(test_ctx, &after);
    ck_assert_uint_gt(after.bytes, before.bytes);
    trli_type_file.teardown(state);
    trl_memory_get_stats(test_ctx, &after);
    ck_assert_uint_eq(after.bytes, before.bytes);
}
END_TEST

START_TEST(rejects_a_patch_of_another_layout)
{
    trl_patch stranger = {.id = 1000};
    const trl_eval_args args = {.ctx = test_ctx, .grid = &grid, .patch = &stranger};
    ck_ok(setup(PATH, "/u", "xface"));
    ck_fails(trli_type_file.evaluate(state, &args, &(trl_box){{0}, {0}}), TRL_ERR_BUG,
             "expression type 'file' got a patch it did not read");
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_checked_fixture(tc, open_all, close_all);
    tcase_add_test(tc, gives_the_values_of_the_file);
    tcase_add_test(tc, rejects_an_unknown_location);
    tcase_add_test(tc, rejects_a_missing_dataset_and_another_shape);
    tcase_add_test(tc, gives_back_its_memory);
    tcase_add_test(tc, rejects_a_patch_of_another_layout);
}

TRL_TEST_MAIN("type_file", add_tests)
