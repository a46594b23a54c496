/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* fields.h5 and fields.xdmf. */
// ctest: np=1,2,3,4
#include "output_fixture.h"

/* Read a whole dataset and its shape; NULL if it is not there. */
static double *read_dataset(const char *path, const char *name, int *rank, hsize_t shape[4])
{
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT), data = file >= 0 ? H5Dopen2(file, name, H5P_DEFAULT) : -1;
    double *values = NULL;
    if (data >= 0) {
        hid_t space = H5Dget_space(data);
        *rank = H5Sget_simple_extent_dims(space, shape, NULL);
        values = calloc((size_t)H5Sget_simple_extent_npoints(space), sizeof *values);
        H5Dread(data, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
        H5Sclose(space);
        H5Dclose(data);
    }
    if (file >= 0) H5Fclose(file);
    return values;
}

static bool has_link(const char *path, const char *name)
{
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    bool there = file >= 0 && H5Lexists(file, name, H5P_DEFAULT) > 0;
    if (file >= 0) H5Fclose(file);
    return there;
}

/* Whether a dataset holds a field's own values, [z][y][x] without absent axes. */
static bool native_is_right(const trl_grid *grid, const char *name, trl_location location, int salt)
{
    hsize_t shape[4];
    int rank;
    double *values = read_dataset("out/fields.h5", name, &rank, shape), *next = values;
    trl_gidx n[3];
    bool good = values && rank == grid->dim;
    for (int a = 0; a < 3; ++a) n[a] = a < grid->dim ? trl_grid_points(grid, location, a) : 1;
    for (int a = 0; good && a < grid->dim; ++a) good = (trl_gidx)shape[grid->dim - 1 - a] == n[a];
    for (trl_gidx k = 0; good && k < n[2]; ++k)
        for (trl_gidx j = 0; j < n[1]; ++j)
            for (trl_gidx i = 0; i < n[0]; ++i) good = good && *next++ == fixture_value(salt, i, j, k);
    free(values);
    return good;
}

/* Mean of the points around a cell, in another order than the code's. */
static double cell_mean(const trl_grid *grid, trl_location location, int salt, trl_gidx i, trl_gidx j, trl_gidx k)
{
    double sum = 0;
    int n = 0;
    for (int corner = 7; corner >= 0; --corner) {
        trl_gidx at[3] = {i, j, k};
        if (corner & ~(int)location) continue;
        for (int a = 0; a < 3; ++a) {
            at[a] += corner >> a & 1;
            if (grid->periodic[a]) at[a] %= grid->cells[a];
        }
        sum += fixture_value(salt, at[0], at[1], at[2]);
        ++n;
    }
    return sum / n;
}

/* Whether component c of a dataset below /cells holds a field's averages; salt -1: zeros. */
static bool average_is_right(const trl_grid *grid, const char *name, trl_location location, int salt, int c,
                             int ncomponents)
{
    hsize_t shape[4];
    int rank;
    double *values = read_dataset("out/fields.h5", name, &rank, shape);
    bool good = values && rank == (ncomponents > 1 ? 4 : 3) && (rank == 3 || shape[3] == 3);
    for (int a = 0; good && a < 3; ++a) good = (trl_gidx)shape[2 - a] == grid->cells[a];
    const double *next = values ? values + c : NULL;
    for (trl_gidx k = 0; good && k < grid->cells[2]; ++k)
        for (trl_gidx j = 0; good && j < grid->cells[1]; ++j)
            for (trl_gidx i = 0; good && i < grid->cells[0]; ++i, next += ncomponents) {
                double wanted = salt < 0 ? 0 : cell_mean(grid, location, salt, i, j, k);
                good = fabs(*next - wanted) < 1e-15;
            }
    free(values);
    return good;
}

/* Write one cell-centred field at the given steps, step s with salt s. */
static trl_err write_steps(const trl_layout *layout, trli_fields_file *file, int n, const trl_gidx *steps)
{
    trl_err err = TRL_OK;
    for (int i = 0; i < n && err == TRL_OK; ++i) {
        fixture_field f = fixture_create(layout, "T", TRL_CELL, (int)(steps[i] % 1000));
        err = trli_fields_write(file, steps[i], 0.5 * (double)steps[i], 1, &f.field);
        fixture_destroy(&f);
    }
    return err;
}

static void check_locations(int dim, bool periodic)
{
    static const char *const name[8] = {"T", "u", "v", "ez", "w", "ey", "ex", "n"};
    const trl_grid grid = fixture_grid(dim, 9, 7, 5, periodic);
    trl_layout *layout = fixture_layout(test_ctx, &grid);
    trli_fields_file *file;
    fixture_field f[8];
    trli_output_field fields[8];
    bool good = true;
    char path[64];
    int n = 1 << dim;
    for (int i = 0; i < n; ++i) {
        f[i] = fixture_create(layout, name[i], (trl_location)i, i);
        fields[i] = f[i].field;
    }
    ck_ok(trli_fields_create(test_ctx, layout, "out", false, 0, &file));
    ck_ok(trli_fields_write(file, 7, 0.25, n, fields));
    ck_ok(trli_fields_close(&file));
    for (int i = 0; i < n; ++i) {
        snprintf(path, sizeof path, "/00000007/%s", name[i]);
        good = good && native_is_right(&grid, path, (trl_location)i, i);
        snprintf(path, sizeof path, "/cells/00000007/%s", name[i]);
        if (i > 0 || dim < 3) good = good && average_is_right(&grid, path, (trl_location)i, i, 0, 1);
        if (i == 0 && dim == 3) good = good && !has_link("out/fields.h5", path);
        fixture_destroy(&f[i]);
    }
    ck_assert(fixture_all(good));
    trl_layout_destroy(&layout);
}

START_TEST(writes_every_location_on_its_own_points_and_averaged_to_cells)
{
    for (int dim = 1; dim <= 3; ++dim) {
        check_locations(dim, false);
        check_locations(dim, true);
    }
}
END_TEST

static void check_vector(int dim, bool staggered)
{
    static const char *const name[3] = {"q.x", "q.y", "q.z"};
    const trl_grid grid = fixture_grid(dim, 6, 8, 4, true);
    trl_layout *layout = fixture_layout(test_ctx, &grid);
    trli_fields_file *file;
    fixture_field f[3];
    trli_output_field fields[3];
    bool good = true;
    for (int a = 0; a < dim; ++a) {
        f[a] = fixture_create(layout, name[a], (trl_location)(staggered ? 1 << a : 0), a);
        fields[a] = f[a].field;
    }
    ck_ok(trli_fields_create(test_ctx, layout, "out", false, 0, &file));
    ck_ok(trli_fields_write(file, 0, 0, dim, fields));
    ck_ok(trli_fields_close(&file));
    for (int a = 0; a < 3; ++a)
        good = good && average_is_right(&grid, "/cells/00000000/q", (trl_location)(staggered ? 1 << a : 0),
                                        a < dim ? a : -1, a, 3);
    good = good && !has_link("out/fields.h5", "/cells/00000000/q.x");
    for (int a = 0; a < dim; ++a) fixture_destroy(&f[a]);
    ck_assert(fixture_all(good));
    trl_layout_destroy(&layout);
}

START_TEST(joins_the_components_of_a_vector)
{
    for (int dim = 1; dim <= 3; ++dim) {
        check_vector(dim, false);
        check_vector(dim, true);
    }
}
END_TEST

START_TEST(keeps_the_components_of_an_incomplete_vector_apart)
{
    const trl_grid grid = fixture_grid(3, 6, 5, 4, false);
    trl_layout *layout = fixture_layout(test_ctx, &grid);
    trli_fields_file *file;
    fixture_field x = fixture_create(layout, "q.x", TRL_XFACE, 1), z = fixture_create(layout, "q.z", TRL_ZFACE, 2);
    const trli_output_field fields[] = {x.field, z.field};
    ck_ok(trli_fields_create(test_ctx, layout, "out", false, 0, &file));
    ck_ok(trli_fields_write(file, 0, 0, 2, fields));
    ck_ok(trli_fields_close(&file));
    ck_assert(fixture_all(average_is_right(&grid, "/cells/00000000/q.x", TRL_XFACE, 1, 0, 1)));
    ck_assert(fixture_all(average_is_right(&grid, "/cells/00000000/q.z", TRL_ZFACE, 2, 0, 1)));
    fixture_destroy(&x);
    fixture_destroy(&z);
    trl_layout_destroy(&layout);
}
END_TEST

START_TEST(writes_from_several_patches_per_rank)
{
    const trl_grid grid = fixture_grid(2, 9, 8, 1, true);
    const int counts[3] = {3, 2, 1};
    trl_layout *layout;
    trli_fields_file *file;
    ck_ok(trl_layout_create(test_ctx, &grid, counts, NULL, &layout));
    fixture_field f = fixture_create(layout, "n", TRL_ZEDGE, 3);
    ck_ok(trli_fields_create(test_ctx, layout, "out", false, 0, &file));
    ck_ok(trli_fields_write(file, 1, 0, 1, &f.field));
    ck_ok(trli_fields_close(&file));
    ck_assert(fixture_all(native_is_right(&grid, "/00000001/n", TRL_ZEDGE, 3)));
    ck_assert(fixture_all(average_is_right(&grid, "/cells/00000001/n", TRL_ZEDGE, 3, 0, 1)));
    fixture_destroy(&f);
    trl_layout_destroy(&layout);
}
END_TEST

static double number_of(hid_t object, const char *name, int i)
{
    double value[3] = {NAN, NAN, NAN};
    hid_t attribute = H5Aopen(object, name, H5P_DEFAULT);
    if (attribute >= 0) {
        H5Aread(attribute, H5T_NATIVE_DOUBLE, value);
        H5Aclose(attribute);
    }
    return value[i];
}

START_TEST(says_what_the_file_holds_in_attributes_and_keeps_the_order_of_fields)
{
    const trl_grid grid = fixture_grid(2, 6, 5, 1, true);
    trl_layout *layout = fixture_layout(test_ctx, &grid);
    trli_fields_file *file;
    fixture_field z = fixture_create(layout, "z_first", TRL_YFACE, 1),
                  a = fixture_create(layout, "a_second", TRL_CELL, 2);
    const trli_output_field fields[] = {z.field, a.field};
    char first[16] = "", location[16] = "";
    ck_ok(trli_fields_create(test_ctx, layout, "deep/er/out", false, 0, &file));
    ck_ok(trli_fields_write(file, 12, 0.1, 2, fields));
    ck_ok(trli_fields_close(&file));
    hid_t data = H5Fopen("deep/er/out/fields.h5", H5F_ACC_RDONLY, H5P_DEFAULT);
    hid_t step = H5Gopen2(data, "00000012", H5P_DEFAULT), set = H5Dopen2(step, "z_first", H5P_DEFAULT);
    hid_t attribute = H5Aopen(set, "location", H5P_DEFAULT), type = H5Aget_type(attribute);
    bool good = number_of(data, "schema", 0) == 1 && number_of(data, "cells", 0) == 6 &&
                number_of(data, "cells", 1) == 5 && number_of(data, "origin", 1) == 0.5 &&
                number_of(data, "length", 1) == 2 && number_of(data, "periodic", 0) == 1 &&
                number_of(data, "periodic", 1) == 0 && number_of(step, "step", 0) == 12 &&
                number_of(step, "time", 0) == 0.1;
    H5Lget_name_by_idx(step, ".", H5_INDEX_CRT_ORDER, H5_ITER_INC, 0, first, sizeof first, H5P_DEFAULT);
    H5Aread(attribute, type, location);
    H5Tclose(type);
    H5Aclose(attribute);
    H5Dclose(set);
    H5Gclose(step);
    H5Fclose(data);
    ck_assert(fixture_all(good));
    ck_assert_str_eq(first, "z_first");
    ck_assert_str_eq(location, "yface");
    fixture_destroy(&z);
    fixture_destroy(&a);
    trl_layout_destroy(&layout);
}
END_TEST

static int count_text(const char *path, const char *text)
{
    size_t size;
    char *all = fixture_read(path, &size);
    int n = 0;
    for (const char *c = all; c && (c = strstr(c, text)); c += strlen(text)) ++n;
    free(all);
    return n;
}

START_TEST(continues_a_file_and_drops_later_steps)
{
    static const trl_gidx before[] = {0, 10, 20, 30}, after[] = {15, 20000000, 100000000};
    const trl_grid grid = fixture_grid(3, 6, 5, 4, false);
    trl_layout *layout = fixture_layout(test_ctx, &grid);
    trli_fields_file *file;
    ck_ok(trli_fields_create(test_ctx, layout, "out", false, 0, &file));
    ck_ok(write_steps(layout, file, 4, before));
    ck_ok(trli_fields_close(&file));
    ck_ok(trli_fields_create(test_ctx, layout, "out", true, 10, &file));
    ck_assert(fixture_all(count_text("out/fields.xdmf", "<Time") == 2));
    ck_assert(fixture_all(!has_link("out/fields.h5", "/00000020") && !has_link("out/fields.h5", "/00000030")));
    ck_ok(write_steps(layout, file, 3, after));
    ck_ok(trli_fields_close(&file));
    ck_assert(fixture_all(native_is_right(&grid, "/00000010/T", TRL_CELL, 10)));
    ck_assert(fixture_all(native_is_right(&grid, "/00000015/T", TRL_CELL, 15)));
    ck_assert(fixture_all(native_is_right(&grid, "/100000000/T", TRL_CELL, 0)));
    ck_assert(fixture_all(count_text("out/fields.xdmf", "<Time") == 5));
    /* By name 100000000 comes before 20000000; it is later all the same. */
    ck_ok(trli_fields_create(test_ctx, layout, "out", true, 50000000, &file));
    ck_ok(trli_fields_close(&file));
    ck_assert(fixture_all(has_link("out/fields.h5", "/20000000") && !has_link("out/fields.h5", "/100000000")));
    trl_layout_destroy(&layout);
}
END_TEST

START_TEST(starts_anew_unless_told_to_continue)
{
    static const trl_gidx steps[] = {0, 10};
    const trl_grid grid = fixture_grid(1, 8, 1, 1, false);
    trl_layout *layout = fixture_layout(test_ctx, &grid);
    trli_fields_file *file;
    ck_ok(trli_fields_create(test_ctx, layout, "out", false, 0, &file));
    ck_ok(write_steps(layout, file, 2, steps));
    ck_ok(trli_fields_close(&file));
    ck_ok(trli_fields_create(test_ctx, layout, "out", false, 0, &file));
    ck_ok(trli_fields_close(&file));
    ck_assert(fixture_all(!has_link("out/fields.h5", "/00000010") && !has_link("out/fields.h5", "/cells")));
    ck_assert(fixture_all(!fixture_exists("out/fields.xdmf")));
    ck_ok(trli_fields_create(test_ctx, layout, "other", true, 5, &file));
    ck_ok(trli_fields_close(&file));
    ck_assert(fixture_all(has_link("other/fields.h5", "/")));
    trl_layout_destroy(&layout);
}
END_TEST

START_TEST(replaces_a_step_that_is_written_again)
{
    static const trl_gidx steps[] = {5, 6, 5};
    const trl_grid grid = fixture_grid(2, 6, 5, 1, false);
    trl_layout *layout = fixture_layout(test_ctx, &grid);
    trli_fields_file *file;
    fixture_field f = fixture_create(layout, "T", TRL_CELL, 77);
    ck_ok(trli_fields_create(test_ctx, layout, "out", false, 0, &file));
    ck_ok(write_steps(layout, file, 3, steps));
    ck_ok(trli_fields_write(file, 5, 1, 1, &f.field));
    ck_ok(trli_fields_close(&file));
    ck_assert(fixture_all(native_is_right(&grid, "/00000005/T", TRL_CELL, 77)));
    ck_assert(fixture_all(count_text("out/fields.xdmf", "<Time") == 2));
    ck_assert(fixture_all(count_text("out/fields.xdmf", "00000005/T") == 1));
    fixture_destroy(&f);
    trl_layout_destroy(&layout);
}
END_TEST

START_TEST(describes_cells_scalars_and_vectors_in_xdmf)
{
    static const char *const name[] = {"T", "q.x", "q.y", "q.z", "p"};
    static const trl_location location[] = {TRL_CELL, TRL_CELL, TRL_CELL, TRL_CELL, TRL_NODE};
    const trl_grid grid = fixture_grid(3, 6, 5, 4, false);
    trl_layout *layout = fixture_layout(test_ctx, &grid);
    trli_fields_file *file;
    fixture_field f[5];
    trli_output_field fields[5];
    static const char *const expected[] = {
        "TopologyType=\"3DCoRectMesh\" Dimensions=\"5 6 7\"",
        "<Time Value=\"0.10000000000000001\"/>",
        "<Attribute Name=\"T\" AttributeType=\"Scalar\" Center=\"Cell\">",
        "<DataItem Dimensions=\"4 5 6\" NumberType=\"Float\" Precision=\"8\" "
        "Format=\"HDF\">fields.h5:/00000003/T</DataItem>",
        "<Attribute Name=\"q\" AttributeType=\"Vector\" Center=\"Cell\">",
        "<DataItem Dimensions=\"4 5 6 3\" NumberType=\"Float\" Precision=\"8\" "
        "Format=\"HDF\">fields.h5:/cells/00000003/q</DataItem>",
        "fields.h5:/cells/00000003/p</DataItem>",
        "Format=\"XML\">1 0.5 0</DataItem>",
    };
    for (int i = 0; i < 5; ++i) {
        f[i] = fixture_create(layout, name[i], location[i], i);
        fields[i] = f[i].field;
    }
    ck_ok(trli_fields_create(test_ctx, layout, "out", false, 0, &file));
    ck_ok(trli_fields_write(file, 3, 0.1, 5, fields));
    ck_ok(trli_fields_close(&file));
    for (size_t i = 0; i < sizeof expected / sizeof *expected; ++i)
        ck_assert_msg(fixture_all(count_text("out/fields.xdmf", expected[i]) == 1), "%s", expected[i]);
    ck_assert(fixture_all(count_text("out/fields.xdmf", "<Attribute") == 3));
    for (int i = 0; i < 5; ++i) fixture_destroy(&f[i]);
    trl_layout_destroy(&layout);
}
END_TEST

START_TEST(refuses_to_continue_the_file_of_another_grid)
{
    trl_grid grid = fixture_grid(2, 6, 5, 1, false);
    trl_layout *layout = fixture_layout(test_ctx, &grid), *other;
    trli_fields_file *file;
    ck_ok(trli_fields_create(test_ctx, layout, "out", false, 0, &file));
    ck_ok(trli_fields_close(&file));
    static const char *const message[] = {
        "'out/fields.h5' belongs to another grid: its cells is [6, 5], that of the deck is [7, 5]",
        "its periodic is [0, 0], that of the deck is [0, 1]",
        "its origin is [0, 0.5], that of the deck is [0, 3]",
        "its length is [1, 2], that of the deck is [1, 9]",
        "its cells is [6, 5], that of the deck is [6, 5, 4]",
    };
    for (int i = 0; i < 5; ++i) {
        trl_grid changed = grid;
        if (i == 0) changed.cells[0] = 7;
        if (i == 1) changed.periodic[1] = true;
        if (i == 2) changed.origin[1] = 3;
        if (i == 3) changed.length[1] = 9;
        if (i == 4) changed = fixture_grid(3, 6, 5, 4, false);
        other = fixture_layout(test_ctx, &changed);
        ck_fails(trli_fields_create(test_ctx, other, "out", true, 0, &file), TRL_ERR_INPUT, message[i]);
        ck_assert_ptr_null(file);
        trl_context_clear_diagnostics(test_ctx);
        trl_layout_destroy(&other);
    }
    trl_layout_destroy(&layout);
}
END_TEST

static void put_schema(const char *path, int schema, bool remove)
{
    hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT), attribute = H5Aopen(file, "schema", H5P_DEFAULT);
    H5Awrite(attribute, H5T_NATIVE_INT, &schema);
    H5Aclose(attribute);
    if (remove) H5Adelete(file, "schema");
    H5Fclose(file);
}

static void remove_time(const char *path)
{
    hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    H5Adelete_by_name(file, "/00000005", "time", H5P_DEFAULT);
    H5Fclose(file);
}

START_TEST(reports_a_step_that_it_cannot_describe)
{
    static const trl_gidx steps[] = {5};
    const trl_grid grid = fixture_grid(1, 8, 1, 1, false);
    trl_layout *layout = fixture_layout(test_ctx, &grid);
    trli_fields_file *file;
    ck_ok(trli_fields_create(test_ctx, layout, "out", false, 0, &file));
    ck_ok(write_steps(layout, file, 1, steps));
    ck_ok(trli_fields_close(&file));
    ON_FIRST_RANK(remove_time("out/fields.h5"));
    ck_fails(trli_fields_create(test_ctx, layout, "out", true, 10, &file), TRL_ERR_IO,
             "cannot read a step of 'out/fields.h5': ");
    trl_layout_destroy(&layout);
}
END_TEST

START_TEST(refuses_to_continue_files_that_it_did_not_write)
{
    const trl_grid grid = fixture_grid(1, 8, 1, 1, false);
    trl_layout *layout = fixture_layout(test_ctx, &grid);
    trli_fields_file *file;
    ck_ok(trli_fields_create(test_ctx, layout, "out", false, 0, &file));
    ck_ok(trli_fields_close(&file));
    ON_FIRST_RANK(put_schema("out/fields.h5", 99, false));
    ck_fails(trli_fields_create(test_ctx, layout, "out", true, 0, &file), TRL_ERR_INPUT,
             "'out/fields.h5' has schema 99; this version of Trellis reads and continues schema 1");
    trl_context_clear_diagnostics(test_ctx);
    ON_FIRST_RANK(put_schema("out/fields.h5", 1, true));
    ck_fails(trli_fields_create(test_ctx, layout, "out", true, 0, &file), TRL_ERR_INPUT,
             "'out/fields.h5' is not a file that Trellis wrote: it has no attribute 'schema'");
    trl_context_clear_diagnostics(test_ctx);
    ON_FIRST_RANK(fixture_write("out/fields.h5", "text", 4));
    ck_fails(trli_fields_create(test_ctx, layout, "out", true, 0, &file), TRL_ERR_IO, "cannot read 'out/fields.h5': ");
    trl_layout_destroy(&layout);
}
END_TEST

START_TEST(reports_a_folder_that_cannot_be_made)
{
    const trl_grid grid = fixture_grid(1, 8, 1, 1, false);
    trl_layout *layout = fixture_layout(test_ctx, &grid);
    trli_fields_file *file;
    ON_FIRST_RANK(fixture_write("in_the_way", "", 0));
    ck_fails(trli_fields_create(test_ctx, layout, "in_the_way/out", false, 0, &file), TRL_ERR_IO,
             "cannot create folder 'in_the_way': Not a directory; a file stands where a folder is needed");
    trl_context_clear_diagnostics(test_ctx);
    ON_FIRST_RANK(mkdir("blocked", 0777), mkdir("blocked/fields.xdmf", 0777));
    ck_fails(trli_fields_create(test_ctx, layout, "blocked", false, 0, &file), TRL_ERR_IO,
             "cannot replace 'blocked/fields.xdmf': Is a directory; a folder stands where a file is needed");
    trl_layout_destroy(&layout);
}
END_TEST

START_TEST(leaves_the_file_as_it_was_when_the_disk_is_full)
{
    static const trl_gidx steps[] = {1};
    const trl_grid grid = fixture_grid(3, 24, 20, 16, false);
    trl_layout *layout = fixture_layout(test_ctx, &grid);
    trli_fields_file *file;
    size_t size_before = 0, size_after = 0;
    fixture_field f = fixture_create(layout, "T", TRL_CELL, 1), u = fixture_create(layout, "u", TRL_XFACE, 2);
    const trli_output_field fields[] = {f.field, u.field};
    ck_ok(trli_fields_create(test_ctx, layout, "out", false, 0, &file));
    ck_ok(write_steps(layout, file, 1, steps));
    char *before = fixture_read("out/fields.h5", &size_before);
    fixture_limit(size_before + 100000);
    trl_err err = trli_fields_write(file, 2, 1, 2, fields);
    fixture_limit(0);
    ck_assert_int_eq(err, TRL_ERR_IO);
    ck_assert_ptr_nonnull(strstr(test_messages(), " bytes in 'out/fields.h5': File too large; raise the limit"));
    char *after = fixture_read("out/fields.h5", &size_after);
    ck_assert(fixture_all(before && after && size_before == size_after && memcmp(before, after, size_before) == 0));
    ck_assert(fixture_all(count_text("out/fields.xdmf", "<Time") == 1));
    ck_ok(trli_fields_write(file, 2, 1, 2, fields));
    ck_ok(trli_fields_close(&file));
    ck_assert(fixture_all(native_is_right(&grid, "/00000002/T", TRL_CELL, 1)));
    free(before);
    free(after);
    fixture_destroy(&f);
    fixture_destroy(&u);
    trl_layout_destroy(&layout);
}
END_TEST

START_TEST(gives_no_name_to_a_step_that_one_rank_could_not_write)
{
    static const trl_gidx steps[] = {1}, again[] = {2};
    const trl_grid grid = fixture_grid(3, 24, 20, 16, false);
    trl_layout *layout = fixture_layout(test_ctx, &grid);
    trli_fields_file *file;
    if (trl_context_ranks(test_ctx) > 1) {
        ck_ok(trli_fields_create(test_ctx, layout, "out", false, 0, &file));
        ck_ok(write_steps(layout, file, 1, steps));
        if (trl_context_rank(test_ctx) == 1) fixture_limit(4096);
        trl_err err = write_steps(layout, file, 1, again);
        fixture_limit(0);
        ck_assert_int_eq(err, TRL_ERR_IO);
        ck_assert_ptr_nonnull(strstr(test_messages(), "cannot write 'out/fields.h5': File too large"));
        ck_assert(fixture_all(!has_link("out/fields.h5", "/00000002") && has_link("out/fields.h5", "/writing")));
        ck_ok(trli_fields_close(&file));
        ck_ok(trli_fields_create(test_ctx, layout, "out", true, 1, &file));
        ck_assert(fixture_all(!has_link("out/fields.h5", "/writing")));
        ck_ok(write_steps(layout, file, 1, again));
        ck_ok(trli_fields_close(&file));
        ck_assert(fixture_all(native_is_right(&grid, "/00000002/T", TRL_CELL, 2)));
    }
    trl_layout_destroy(&layout);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, writes_every_location_on_its_own_points_and_averaged_to_cells);
    tcase_add_test(tc, joins_the_components_of_a_vector);
    tcase_add_test(tc, keeps_the_components_of_an_incomplete_vector_apart);
    tcase_add_test(tc, writes_from_several_patches_per_rank);
    tcase_add_test(tc, says_what_the_file_holds_in_attributes_and_keeps_the_order_of_fields);
    tcase_add_test(tc, continues_a_file_and_drops_later_steps);
    tcase_add_test(tc, starts_anew_unless_told_to_continue);
    tcase_add_test(tc, replaces_a_step_that_is_written_again);
    tcase_add_test(tc, describes_cells_scalars_and_vectors_in_xdmf);
    tcase_add_test(tc, refuses_to_continue_the_file_of_another_grid);
    tcase_add_test(tc, reports_a_step_that_it_cannot_describe);
    tcase_add_test(tc, refuses_to_continue_files_that_it_did_not_write);
    tcase_add_test(tc, reports_a_folder_that_cannot_be_made);
    tcase_add_test(tc, leaves_the_file_as_it_was_when_the_disk_is_full);
    tcase_add_test(tc, gives_no_name_to_a_step_that_one_rank_could_not_write);
}

TRL_TEST_MAIN("output", add_tests)
