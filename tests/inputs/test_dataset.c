/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Datasets of any HDF5 file as fields. */
// ctest: np=1,3
#include "output_fixture.h"

static trli_dataset_name named(const char *path, const char *dataset)
{
    return (trli_dataset_name){
        path, dataset, {.file = "deck.yaml", .line = 6, .column = 3}, {.file = "deck.yaml", .line = 7, .column = 3}};
}

/* A file as another program would write it: single precision, in a group. */
static void write_foreign(const char *path)
{
    hsize_t shape[2] = {5, 8};
    float values[40];
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    hid_t group = H5Gcreate2(file, "ic", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
          space = H5Screate_simple(2, shape, NULL);
    hid_t data = H5Dcreate2(group, "T", H5T_NATIVE_FLOAT, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    for (int i = 0; i < 40; ++i) values[i] = (float)i;
    H5Dwrite(data, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
    H5Dclose(data);
    H5Sclose(space);
    space = H5Screate(H5S_SCALAR);
    hid_t text = H5Dcreate2(file, "text", H5T_C_S1, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    H5Dclose(text);
    data = H5Dcreate2(file, "one", H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    H5Dclose(data);
    H5Sclose(space);
    H5Gclose(group);
    H5Fclose(file);
}

static trl_err read_one(const trl_layout *layout, const char *path, const char *dataset, fixture_field *f)
{
    const trli_dataset_name from = named(path, dataset);
    return trli_dataset_read(test_ctx, layout, &from, &f->field);
}

START_TEST(reads_a_field_of_an_earlier_output)
{
    const trl_grid grid = fixture_grid(3, 8, 6, 5, true);
    trl_layout *layout = fixture_layout(test_ctx, &grid);
    trli_fields_file *file;
    fixture_field f = fixture_create(layout, "v", TRL_YFACE, 3), g = fixture_create(layout, "v", TRL_YFACE, -1);
    ck_ok(trli_fields_create(test_ctx, layout, "out", false, 0, &file));
    ck_ok(trli_fields_write(file, 100, 0, 1, &f.field));
    ck_ok(trli_fields_close(&file));
    ck_ok(read_one(layout, "out/fields/00000100.nc", "v", &g));
    ck_assert(fixture_all(fixture_visit(layout, &g, 3, false)));
    fixture_destroy(&f);
    fixture_destroy(&g);
    trl_layout_destroy(&layout);
}
END_TEST

START_TEST(reads_numbers_of_other_types)
{
    const trl_grid grid = fixture_grid(2, 8, 5, 1, false);
    trl_layout *layout = fixture_layout(test_ctx, &grid);
    fixture_field f = fixture_create(layout, "T", TRL_CELL, -1);
    const trl_patch *patch = &layout->patch[0];
    const trl_array *a = &f.patch[0];
    bool same = true;
    ON_FIRST_RANK(write_foreign("foreign.h5"));
    ck_ok(read_one(layout, "foreign.h5", "ic/T", &f));
    for (trl_lidx j = 0; j < patch->cells[1]; ++j)
        for (trl_lidx i = 0; i < patch->cells[0]; ++i)
            same = same && ((double *)a->at)[trl_array_offset(a, i, j, 0)] ==
                               (double)(8 * (patch->first[1] + j) + patch->first[0] + i);
    ck_assert(fixture_all(same));
    fixture_destroy(&f);
    trl_layout_destroy(&layout);
}
END_TEST

START_TEST(says_what_is_wrong_with_a_dataset)
{
    const trl_grid grid = fixture_grid(2, 8, 5, 1, false);
    trl_layout *layout = fixture_layout(test_ctx, &grid);
    fixture_field f = fixture_create(layout, "T", TRL_XFACE, -1);
    ON_FIRST_RANK(write_foreign("foreign.h5"), fixture_write("text.h5", "text", 4));
    static const struct {
        const char *path, *dataset, *message;
    } bad[] = {
        {"nowhere.h5", "T",
         "deck.yaml:6:3: cannot read 'nowhere.h5': No such file or directory; an HDF5 file is needed"},
        {".", "T", "deck.yaml:6:3: cannot read '.': it is a folder, not a file; an HDF5 file is needed"},
        {"text.h5", "T", "deck.yaml:6:3: cannot read 'text.h5': file signature not found"},
        {"foreign.h5", "T", "deck.yaml:7:3: no dataset 'T' in 'foreign.h5'; there is: /ic/T, /one, /text"},
        {"foreign.h5", "/none/T", "no dataset '/none/T' in 'foreign.h5'; there is: /ic/T, /one, /text"},
        {"foreign.h5", "/ic", "no dataset '/ic' in 'foreign.h5'; there is: /ic/T, /one, /text"},
        {"foreign.h5", "/one/T", "no dataset '/one/T' in 'foreign.h5'"},
        {"foreign.h5", "", "no dataset '' in 'foreign.h5'"},
        {"foreign.h5", "text", "dataset 'text' in 'foreign.h5' holds no numbers"},
        {"foreign.h5", "one",
         "dataset 'one' in 'foreign.h5' has shape (a single value); this grid has [5][9] at location 'xface'"},
        {"foreign.h5", "/ic/T",
         "dataset '/ic/T' in 'foreign.h5' has shape [5][8]; this grid has [5][9] at location 'xface'"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i) {
        ck_fails(read_one(layout, bad[i].path, bad[i].dataset, &f), TRL_ERR_INPUT, bad[i].message);
        trl_context_clear_diagnostics(test_ctx);
    }
    fixture_destroy(&f);
    trl_layout_destroy(&layout);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, reads_a_field_of_an_earlier_output);
    tcase_add_test(tc, reads_numbers_of_other_types);
    tcase_add_test(tc, says_what_is_wrong_with_a_dataset);
}

TRL_TEST_MAIN("dataset", add_tests)
