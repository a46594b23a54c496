/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Files of fields that are compressed: their values are those of others, and failures leave as little. */
// ctest: np=1,2,3,4
#include "output_fixture.h"

#include <context_impl.h>

/* Whether a dataset holds a field's values: each rank reads its points, as the expression type `file` does. */
static bool reads_back(const trl_layout *layout, const char *path, const char *name, trl_location location, int salt)
{
    const trli_dataset_name from = {.path = path, .name = name};
    fixture_field f = fixture_create(layout, name, location, -1);
    bool good = trli_dataset_read(test_ctx, layout, &from, &f.field) == TRL_OK;
    good = good && fixture_visit(layout, &f, salt, false);
    fixture_destroy(&f);
    return fixture_all(good);
}

static trli_fields_file *open_folder(const trl_layout *layout, const char *folder, int level)
{
    trli_fields_file *file;
    ck_ok(trli_fields_create(test_ctx, layout, folder, false, 0, &file));
    trli_fields_compress(file, level, NULL);
    return file;
}

static void check_locations(const trl_grid *grid, const int *counts, int level)
{
    trl_layout *layout;
    ck_ok(trl_layout_create_owned(test_ctx, grid, counts, next_owners(), NULL, &layout));
    fixture_write_locations(layout, open_folder(layout, "out", level));
    for (int i = 0; i < 1 << grid->dim; ++i)
        ck_assert(reads_back(layout, "out/fields/00000007.nc", fixture_names[i], (trl_location)i, i));
    trl_layout_destroy(&layout);
}

START_TEST(holds_every_location)
{
    for (int dim = 1; dim <= 3; ++dim)
        for (int periodic = 0; periodic < 2; ++periodic) {
            const trl_grid grid = fixture_grid(dim, 9, 7, 5, periodic);
            check_locations(&grid, NULL, periodic ? 1 : 9);
        }
}
END_TEST

START_TEST(is_written_from_patches_of_any_size)
{
    static const int counts[][3] = {{3, 2, 1}, {4, 3, 1}, {9, 8, 1}, {1, 8, 1}};
    const trl_grid grid = fixture_grid(2, 9, 8, 1, true);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; ++i) check_locations(&grid, counts[i], 4);
}
END_TEST

/* The least and the most of what the chunks of a dataset take, the filters that they all went through, their number. */
static int count_chunks(const char *path, const char *name, hsize_t *least, hsize_t *most, unsigned *skipped)
{
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT), data = H5Dopen2(file, name, H5P_DEFAULT);
    hsize_t n = 0;
    *least = HSIZE_UNDEF;
    *most = *skipped = 0;
    hid_t space = H5Dget_space(data); /* HDF5 1.10 does not take H5S_ALL here */
    H5Dget_num_chunks(data, space, &n);
    for (hsize_t i = 0; i < n; ++i) {
        hsize_t offset[4], size = 0;
        haddr_t place;
        unsigned mask = 0;
        H5Dget_chunk_info(data, space, i, offset, &mask, &place, &size);
        *least = size < *least ? size : *least;
        *most = size > *most ? size : *most;
        *skipped |= mask;
    }
    H5Sclose(space);
    H5Dclose(data);
    H5Fclose(file);
    return (int)n;
}

START_TEST(is_small_where_values_are_alike_and_never_larger_than_they_are)
{
    const trl_grid grid = fixture_grid(3, 48, 36, 24, false);
    trl_layout *layout = fixture_layout(test_ctx, &grid);
    trli_fields_file *file = open_folder(layout, "sizes", 4);
    fixture_field alike = fixture_create(layout, "alike", TRL_CELL, 0),
                  noise = fixture_create(layout, "noise", TRL_CELL, 0);
    const trli_output_field fields[] = {alike.field, noise.field};
    hsize_t least, most;
    unsigned skipped;
    uint64_t state = 1 + (uint64_t)trl_context_rank(test_ctx);
    for (int p = 0; p < alike.npatches; ++p)
        for (ptrdiff_t i = 0; i < trl_box_points(&alike.patch[p].held); ++i) {
            alike.memory[p][i] = 1.5;
            state = state * 6364136223846793005u + 1442695040888963407u;
            uint64_t bits = state ^ state >> 29;
            memcpy(&noise.memory[p][i], &bits, sizeof bits);
        }
    ck_ok(trli_fields_write(file, 1, 0, 2, fields));
    ck_ok(trli_fields_close(&file));
    MPI_Barrier(MPI_COMM_WORLD);
    ck_assert_int_eq(count_chunks("sizes/fields/00000001.nc", "alike", &least, &most, &skipped),
                     trl_context_ranks(test_ctx));
    ck_assert(most < 2000 && skipped == 0);
    count_chunks("sizes/fields/00000001.nc", "noise", &least, &most, &skipped);
    ck_assert(least == most && least >= 48 * 36 * 24 * 8 / (unsigned)trl_context_ranks(test_ctx) && skipped == 3);
    fixture_field again = fixture_create(layout, "noise", TRL_CELL, -1);
    ck_ok(trli_dataset_read(test_ctx, layout, &(trli_dataset_name){.path = "sizes/fields/00000001.nc", .name = "noise"},
                            &again.field));
    bool same = true;
    for (int p = 0; p < again.npatches; ++p) {
        const trl_array *a = &noise.patch[p], *b = &again.patch[p];
        for (trl_lidx k = a->owned.lo[2]; k < a->owned.hi[2]; ++k)
            for (trl_lidx j = a->owned.lo[1]; j < a->owned.hi[1]; ++j)
                same = same && memcmp((double *)a->at + trl_array_offset(a, a->owned.lo[0], j, k),
                                      (double *)b->at + trl_array_offset(b, a->owned.lo[0], j, k),
                                      (size_t)(a->owned.hi[0] - a->owned.lo[0]) * sizeof(double)) == 0;
    }
    ck_assert(fixture_all(same));
    fixture_destroy(&alike);
    fixture_destroy(&noise);
    fixture_destroy(&again);
    trl_layout_destroy(&layout);
}
END_TEST

START_TEST(is_written_in_rounds_of_small_chunks)
{
    const trl_grid grid = fixture_grid(3, 70, 250, 170, false);
    trl_layout *layout = fixture_layout(test_ctx, &grid);
    trli_fields_file *file = open_folder(layout, "large", 1);
    fixture_field f = fixture_create(layout, "T", TRL_ZFACE, 5);
    hsize_t least, most;
    unsigned skipped;
    ck_ok(trli_fields_write(file, 1, 0, 1, &f.field));
    ck_ok(trli_fields_close(&file));
    ck_assert(reads_back(layout, "large/fields/00000001.nc", "T", TRL_ZFACE, 5));
    ck_assert_int_gt(count_chunks("large/fields/00000001.nc", "T", &least, &most, &skipped), 20);
    ck_assert(most <= 1 << 20);
    fixture_destroy(&f);
    trl_layout_destroy(&layout);
}
END_TEST

START_TEST(leaves_nothing_of_a_step_that_one_rank_could_not_write)
{
    const trl_grid grid = fixture_grid(3, 24, 20, 16, false);
    trl_layout *layout = fixture_layout(test_ctx, &grid);
    for (int rank = 0; rank < trl_context_ranks(test_ctx); ++rank) {
        trli_fields_file *file = open_folder(layout, "one", 6);
        fixture_field before = fixture_create(layout, "T", TRL_CELL, 1), f = fixture_create(layout, "T", TRL_CELL, 2);
        ck_ok(trli_fields_write(file, 1, 0, 1, &before.field));
        fixture_fail_step(file, "one", rank, &f);
        ck_assert(reads_back(layout, "one/fields/00000001.nc", "T", TRL_CELL, 1));
        ck_ok(trli_fields_write(file, 2, 1, 1, &f.field));
        ck_ok(trli_fields_close(&file));
        ck_assert(reads_back(layout, "one/fields/00000002.nc", "T", TRL_CELL, 2));
        fixture_destroy(&before);
        fixture_destroy(&f);
    }
    trl_layout_destroy(&layout);
}
END_TEST

START_TEST(leaves_nothing_of_a_step_that_one_rank_has_no_memory_for)
{
    const trl_grid grid = fixture_grid(3, 24, 20, 16, false);
    trl_layout *layout = fixture_layout(test_ctx, &grid);
    const size_t limit = test_ctx->memory.limit;
    for (int rank = 0; rank < trl_context_ranks(test_ctx); ++rank)
        for (size_t more = 400; more < 50000; more *= 10) {
            trli_fields_file *file = open_folder(layout, "poor", 6);
            fixture_field f = fixture_create(layout, "T", TRL_CELL, 2);
            trl_memory_stats before, after;
            trl_memory_get_stats(test_ctx, &before);
            if (trl_context_rank(test_ctx) == rank) test_ctx->memory.limit = before.bytes + more;
            trl_err err = trli_fields_write(file, 2, 1, 1, &f.field);
            test_ctx->memory.limit = limit;
            trl_memory_get_stats(test_ctx, &after);
            ck_assert_int_eq(err, TRL_ERR_MEMORY);
            ck_assert(fixture_all(before.bytes == after.bytes && before.metadata_bytes == after.metadata_bytes));
            trl_context_clear_diagnostics(test_ctx);
            MPI_Barrier(MPI_COMM_WORLD);
            ck_assert(fixture_all(fixture_entries("poor/fields") == 0));
            ck_ok(trli_fields_close(&file));
            fixture_destroy(&f);
        }
    trl_layout_destroy(&layout);
}
END_TEST

/* Whatever is missing where HDF5 makes the structure: it must be able to close what it began. */
START_TEST(has_no_memory_for_the_structure_of_plain_files_either)
{
    const trl_grid grid = fixture_grid(2, 8, 6, 1, false);
    trl_layout *layout = fixture_layout(test_ctx, &grid);
    const size_t limit = test_ctx->memory.limit;
    trl_err err = TRL_ERR_MEMORY;
    int refused = -1;
    for (size_t more = 0; err == TRL_ERR_MEMORY; more += 512, ++refused) {
        trli_fields_file *file = open_folder(layout, "bare", 0);
        fixture_field f = fixture_create(layout, "T", TRL_CELL, 2);
        trl_memory_stats before;
        trl_memory_get_stats(test_ctx, &before);
        if (trl_context_rank(test_ctx) == 0) test_ctx->memory.limit = before.bytes + more;
        err = trli_fields_write(file, 2, 1, 1, &f.field);
        test_ctx->memory.limit = limit;
        trl_context_clear_diagnostics(test_ctx);
        ck_ok(trli_fields_close(&file));
        fixture_destroy(&f);
    }
    ck_ok(err);
    ck_assert_int_gt(refused, 10);
    trl_layout_destroy(&layout);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, holds_every_location);
    tcase_add_test(tc, is_written_from_patches_of_any_size);
    tcase_add_test(tc, is_small_where_values_are_alike_and_never_larger_than_they_are);
    if (!TEST_SANITIZED) tcase_add_test(tc, is_written_in_rounds_of_small_chunks);
    tcase_add_test(tc, leaves_nothing_of_a_step_that_one_rank_could_not_write);
    tcase_add_test(tc, leaves_nothing_of_a_step_that_one_rank_has_no_memory_for);
    tcase_add_test(tc, has_no_memory_for_the_structure_of_plain_files_either);
}

TRL_TEST_MAIN("compression", add_tests)
