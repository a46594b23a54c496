/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Files of fields and fields.xdmf. */
// ctest: np=1,2,3,4
#include "output_fixture.h"

#define STEP_7 "out/fields/00000007.nc"

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

/* Whether a variable holds a field's own values, [1][z][y][x] without absent axes. */
static bool native_is_right(const trl_grid *grid, const char *path, const char *name, trl_location location, int salt)
{
    hsize_t shape[4];
    int rank;
    double *values = read_dataset(path, name, &rank, shape), *next = values;
    trl_gidx n[3];
    bool good = values && rank == grid->dim + 1 && shape[0] == 1;
    for (int a = 0; a < 3; ++a) n[a] = a < grid->dim ? trl_grid_points(grid, location, a) : 1;
    for (int a = 0; good && a < grid->dim; ++a) good = (trl_gidx)shape[grid->dim - a] == n[a];
    for (trl_gidx k = 0; good && k < n[2]; ++k)
        for (trl_gidx j = 0; j < n[1]; ++j)
            for (trl_gidx i = 0; i < n[0]; ++i) good = good && *next++ == fixture_value(salt, i, j, k);
    free(values);
    return good;
}

/* Whether a coordinate variable holds the places of the points along an axis, and says so of a variable. */
static bool coordinate_is_right(const trl_grid *grid, const char *path, const char *name, int axis, bool on_face)
{
    hsize_t shape[4];
    int rank;
    double *at = read_dataset(path, name, &rank, shape);
    bool good = at && rank == 1 &&
                (trl_gidx)shape[0] == trl_grid_points(grid, on_face ? (trl_location)(1 << axis) : TRL_CELL, axis);
    for (trl_gidx i = 0; good && i < (trl_gidx)shape[0]; ++i)
        good = at[i] == grid->origin[axis] + ((double)i + (on_face ? 0 : 0.5)) * grid->spacing[axis];
    free(at);
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
    const trl_grid grid = fixture_grid(dim, 9, 7, 5, periodic);
    trl_layout *layout = fixture_layout(test_ctx, &grid);
    trli_fields_file *file;
    bool good = true;
    ck_ok(trli_fields_create(test_ctx, layout, "out", false, 0, &file));
    fixture_write_locations(layout, file);
    for (int i = 0; i < 1 << dim; ++i)
        good = good && native_is_right(&grid, STEP_7, fixture_names[i], (trl_location)i, i);
    for (int a = 0; a < dim; ++a)
        good = good && coordinate_is_right(&grid, STEP_7, (const char[]){(char)('x' + a), 0}, a, false) &&
               coordinate_is_right(&grid, STEP_7, (const char[]){(char)('x' + a), 'f', 0}, a, true);
    ck_assert(fixture_all(good));
    trl_layout_destroy(&layout);
}

START_TEST(writes_every_location_on_its_own_points)
{
    for (int dim = 1; dim <= 3; ++dim) {
        check_locations(dim, false);
        check_locations(dim, true);
    }
}
END_TEST

START_TEST(has_no_coordinates_that_no_field_needs)
{
    const trl_grid grid = fixture_grid(2, 6, 5, 1, false);
    trl_layout *layout = fixture_layout(test_ctx, &grid);
    trli_fields_file *file;
    fixture_field u = fixture_create(layout, "u", TRL_XFACE, 1);
    ck_ok(trli_fields_create(test_ctx, layout, "out", false, 0, &file));
    ck_ok(trli_fields_write(file, 7, 0, 1, &u.field));
    ck_ok(trli_fields_write(file, 8, 0, 0, NULL));
    ck_ok(trli_fields_close(&file));
    ck_assert(fixture_all(has_link(STEP_7, "xf") && has_link(STEP_7, "y") && !has_link(STEP_7, "x") &&
                          !has_link(STEP_7, "yf") && !has_link(STEP_7, "z")));
    ck_assert(fixture_all(has_link("out/fields/00000008.nc", "time") && !has_link("out/fields/00000008.nc", "y")));
    fixture_destroy(&u);
    trl_layout_destroy(&layout);
}
END_TEST

START_TEST(writes_from_patches_of_any_size)
{
    static const int counts[][3] = {{3, 2, 1}, {4, 3, 1}, {9, 8, 1}, {1, 8, 1}};
    const trl_grid grid = fixture_grid(2, 9, 8, 1, true);
    trli_fields_file *file;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; ++i) {
        trl_layout *layout;
        ck_ok(trl_layout_create_owned(test_ctx, &grid, counts[i], next_owners(), NULL, &layout));
        fixture_field n = fixture_create(layout, "n", TRL_ZEDGE, 3), c = fixture_create(layout, "c", TRL_CELL, 4);
        const trli_output_field fields[] = {n.field, c.field};
        ck_ok(trli_fields_create(test_ctx, layout, "out", false, 0, &file));
        ck_ok(trli_fields_write(file, 7, 0, 2, fields));
        ck_ok(trli_fields_close(&file));
        ck_assert(fixture_all(native_is_right(&grid, STEP_7, "n", TRL_ZEDGE, 3)));
        ck_assert(fixture_all(native_is_right(&grid, STEP_7, "c", TRL_CELL, 4)));
        fixture_destroy(&n);
        fixture_destroy(&c);
        trl_layout_destroy(&layout);
    }
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

/* When a variable was made, in the order of all of them. */
static bool position_of(hid_t file, const char *name, hsize_t *position)
{
    H5L_info_t info;
    bool good = H5Lget_info(file, name, &info, H5P_DEFAULT) >= 0 && info.corder_valid;
    *position = good ? (hsize_t)info.corder : 0;
    return good;
}

START_TEST(says_what_the_file_holds_in_attributes_and_keeps_the_order_of_fields)
{
    const trl_grid grid = fixture_grid(2, 6, 5, 1, true);
    trl_layout *layout = fixture_layout(test_ctx, &grid);
    trli_fields_file *file;
    fixture_field z = fixture_create(layout, "z_first", TRL_YFACE, 1),
                  a = fixture_create(layout, "a_second", TRL_CELL, 2);
    const trli_output_field fields[] = {z.field, a.field};
    char location[16] = "";
    double *number;
    hsize_t shape[4], order[3];
    int rank;
    ck_ok(trli_fields_create(test_ctx, layout, "deep/er/out", false, 0, &file));
    ck_ok(trli_fields_write(file, 12, 0.1, 2, fields));
    ck_ok(trli_fields_close(&file));
    const char *path = "deep/er/out/fields/00000012.nc";
    hid_t data = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    hid_t set = H5Dopen2(data, "z_first", H5P_DEFAULT), attribute = H5Aopen(set, "location", H5P_DEFAULT),
          type = H5Aget_type(attribute);
    bool good = number_of(data, "schema", 0) == 2 && number_of(data, "cells", 0) == 6 &&
                number_of(data, "cells", 1) == 5 && number_of(data, "origin", 1) == 0.5 &&
                number_of(data, "length", 1) == 2 && number_of(data, "periodic", 0) == 1 &&
                number_of(data, "periodic", 1) == 0;
    good = good && position_of(data, "z_first", &order[0]) && position_of(data, "a_second", &order[1]) &&
           order[0] < order[1];
    H5Aread(attribute, type, location);
    H5Tclose(type);
    H5Aclose(attribute);
    H5Dclose(set);
    H5Fclose(data);
    number = read_dataset(path, "step", &rank, shape);
    good = good && number && rank == 1 && shape[0] == 1 && *number == 12;
    free(number);
    number = read_dataset(path, "time", &rank, shape);
    good = good && number && rank == 1 && shape[0] == 1 && *number == 0.1;
    free(number);
    ck_assert(fixture_all(good));
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

START_TEST(continues_a_folder_and_drops_later_steps)
{
    static const trl_gidx before[] = {0, 10, 20, 30}, after[] = {15, 20000000, 100000000};
    const trl_grid grid = fixture_grid(3, 6, 5, 4, false);
    trl_layout *layout = fixture_layout(test_ctx, &grid);
    trli_fields_file *file;
    ck_ok(trli_fields_create(test_ctx, layout, "out", false, 0, &file));
    ck_ok(write_steps(layout, file, 4, before));
    ck_ok(trli_fields_close(&file));
    ON_FIRST_RANK(fixture_write("out/fields/notes.nc", "mine", 4), fixture_write("out/fields/000000020.nc", "mine", 4));
    ck_ok(trli_fields_create(test_ctx, layout, "out", true, 10, &file));
    ck_assert(fixture_all(count_text("out/fields.xdmf", "<Time") == 2));
    ck_assert(fixture_all(!fixture_exists("out/fields/00000020.nc") && !fixture_exists("out/fields/00000030.nc")));
    ck_assert(fixture_all(fixture_exists("out/fields/notes.nc") && fixture_exists("out/fields/000000020.nc")));
    ck_ok(write_steps(layout, file, 3, after));
    ck_ok(trli_fields_close(&file));
    ck_assert(fixture_all(native_is_right(&grid, "out/fields/00000010.nc", "T", TRL_CELL, 10)));
    ck_assert(fixture_all(native_is_right(&grid, "out/fields/00000015.nc", "T", TRL_CELL, 15)));
    ck_assert(fixture_all(native_is_right(&grid, "out/fields/100000000.nc", "T", TRL_CELL, 0)));
    ck_assert(fixture_all(count_text("out/fields.xdmf", "<Time") == 5));
    /* By name 100000000 comes before 20000000; it is later all the same. */
    ck_ok(trli_fields_create(test_ctx, layout, "out", true, 50000000, &file));
    ck_ok(trli_fields_close(&file));
    ck_assert(fixture_all(fixture_exists("out/fields/20000000.nc") && !fixture_exists("out/fields/100000000.nc")));
    trl_layout_destroy(&layout);
}
END_TEST

START_TEST(starts_anew_unless_told_to_continue)
{
    static const trl_gidx steps[] = {0, 10};
    const trl_grid grid = fixture_grid(1, 8, 1, 1, false);
    trl_layout *layout = fixture_layout(test_ctx, &grid);
    trli_fields_file *file;
    ck_ok(trli_fields_create(test_ctx, layout, "anew", false, 0, &file));
    ck_ok(write_steps(layout, file, 2, steps));
    ck_ok(trli_fields_close(&file));
    ck_ok(trli_fields_create(test_ctx, layout, "anew", false, 0, &file));
    ck_ok(trli_fields_close(&file));
    ck_assert(fixture_all(fixture_entries("anew/fields") == 0));
    ck_assert(fixture_all(count_text("anew/fields.xdmf", "<Time") == 0));
    ck_ok(trli_fields_create(test_ctx, layout, "other", true, 5, &file));
    ck_ok(trli_fields_close(&file));
    ck_assert(fixture_all(fixture_exists("other/fields")));
    trl_layout_destroy(&layout);
}
END_TEST

START_TEST(continues_beside_files_that_are_missing_or_damaged)
{
    static const trl_gidx steps[] = {1, 2, 3}, more[] = {4};
    const trl_grid grid = fixture_grid(1, 8, 1, 1, false);
    trl_layout *layout = fixture_layout(test_ctx, &grid);
    trli_fields_file *file;
    for (int i = 0; i < 3; ++i) {
        ck_ok(trli_fields_create(test_ctx, layout, "out", false, 0, &file));
        ck_ok(write_steps(layout, file, 3, steps));
        ck_ok(trli_fields_close(&file));
        if (i == 0) ON_FIRST_RANK(unlink("out/fields/00000001.nc"), fixture_write("out/fields/00000002.nc", "text", 4));
        if (i == 1) ON_FIRST_RANK(unlink("out/fields.xdmf"));
        if (i == 2) ON_FIRST_RANK(fixture_write("out/fields.xdmf", "<Grid Name=", 11));
        ck_ok(trli_fields_create(test_ctx, layout, "out", true, 3, &file));
        ck_ok(write_steps(layout, file, 1, more));
        ck_ok(trli_fields_close(&file));
        ck_assert(fixture_all(native_is_right(&grid, "out/fields/00000003.nc", "T", TRL_CELL, 3)));
        ck_assert(fixture_all(native_is_right(&grid, "out/fields/00000004.nc", "T", TRL_CELL, 4)));
        ck_assert(fixture_all(count_text("out/fields.xdmf", "<Time") == (i == 0 ? 4 : 1)));
    }
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
    ck_assert(fixture_all(native_is_right(&grid, "out/fields/00000005.nc", "T", TRL_CELL, 77)));
    ck_assert(fixture_all(count_text("out/fields.xdmf", "00000005.nc:/T") == 1));
    fixture_destroy(&f);
    trl_layout_destroy(&layout);
}
END_TEST

START_TEST(describes_cells_scalars_and_vectors_in_xdmf)
{
    static const char *const name[] = {"T", "q.x", "q.y", "q.z", "p", "v.x"};
    static const trl_location location[] = {TRL_CELL, TRL_CELL, TRL_CELL, TRL_CELL, TRL_NODE, TRL_XFACE};
    enum { FIELDS = sizeof name / sizeof *name };
    const trl_grid grid = fixture_grid(3, 6, 5, 4, false);
    trl_layout *layout = fixture_layout(test_ctx, &grid);
    trli_fields_file *file;
    fixture_field f[FIELDS];
    trli_output_field fields[FIELDS];
    static const char *const expected[] = {
        "TopologyType=\"3DCoRectMesh\" Dimensions=\"5 6 7\"",
        "<Time Value=\"0.10000000000000001\"/>",
        "<Attribute Name=\"T\" AttributeType=\"Scalar\" Center=\"Cell\">\n<DataItem ItemType=\"HyperSlab\" "
        "Type=\"HyperSlab\" Dimensions=\"4 5 6\"><DataItem Dimensions=\"3 4\" NumberType=\"Int\" "
        "Format=\"XML\">0 0 0 0 1 1 1 1 1 4 5 6</DataItem><DataItem Dimensions=\"1 4 5 6\" NumberType=\"Float\" "
        "Precision=\"8\" Format=\"HDF\">fields/00000003.nc:/T</DataItem></DataItem>",
        "<Attribute Name=\"q\" AttributeType=\"Vector\" Center=\"Cell\">\n<DataItem ItemType=\"Function\" "
        "Function=\"JOIN($0, $1, $2)\" Dimensions=\"4 5 6 3\">",
        "Function=\"0.125 * ($0 + $1 + $2 + $3 + $4 + $5 + $6 + $7)\"",
        ">0 1 1 1 1 1 1 1 1 4 5 6</DataItem><DataItem Dimensions=\"1 5 6 7\"",
        "<Attribute Name=\"v.x\" AttributeType=\"Scalar\"",
        "Function=\"0.5 * ($0 + $1)\"",
        "Format=\"XML\">1 0.5 0</DataItem>",
    };
    for (int i = 0; i < FIELDS; ++i) {
        f[i] = fixture_create(layout, name[i], location[i], i);
        fields[i] = f[i].field;
    }
    ck_ok(trli_fields_create(test_ctx, layout, "out", false, 0, &file));
    ck_ok(trli_fields_write(file, 3, 0.1, FIELDS, fields));
    ck_ok(trli_fields_close(&file));
    for (size_t i = 0; i < sizeof expected / sizeof *expected; ++i)
        ck_assert_msg(fixture_all(count_text("out/fields.xdmf", expected[i]) == 1), "%s", expected[i]);
    ck_assert(fixture_all(count_text("out/fields.xdmf", "<Attribute") == 4));
    ck_assert(fixture_all(count_text("out/fields.xdmf", "fields/00000003.nc:/p<") == 8));
    for (int i = 0; i < FIELDS; ++i) fixture_destroy(&f[i]);
    trl_layout_destroy(&layout);
}
END_TEST

START_TEST(describes_the_cells_at_periodic_sides_as_parts_of_their_own)
{
    trl_grid grid = fixture_grid(2, 6, 5, 1, true);
    char corner[256];
    grid.periodic[1] = true;
    trl_layout *layout = fixture_layout(test_ctx, &grid);
    trli_fields_file *file;
    fixture_field n = fixture_create(layout, "n", TRL_ZEDGE, 1), c = fixture_create(layout, "c", TRL_CELL, 2);
    const trli_output_field fields[] = {n.field, c.field};
    ck_ok(trli_fields_create(test_ctx, layout, "out", false, 0, &file));
    ck_ok(trli_fields_write(file, 0, 0, 1, &c.field));
    ck_assert(fixture_all(count_text("out/fields.xdmf", "<Grid") == 2));
    ck_ok(trli_fields_write(file, 0, 0, 2, fields));
    ck_ok(trli_fields_close(&file));
    ck_assert(fixture_all(count_text("out/fields.xdmf", "<Grid") == 6));
    /* The last column of cells: from the last points and from the first ones. */
    ck_assert(fixture_all(count_text("out/fields.xdmf", ">0 0 5 1 1 1 1 4 1</DataItem>") == 2));
    ck_assert(fixture_all(count_text("out/fields.xdmf", ">0 0 0 1 1 1 1 4 1</DataItem>") == 1));
    const double mean = (fixture_value(1, 5, 4, 0) + fixture_value(1, 0, 4, 0) + fixture_value(1, 5, 0, 0) +
                         fixture_value(1, 0, 0, 0)) /
                        4;
    snprintf(corner, sizeof corner, ">%.17g</DataItem>", mean);
    ck_assert(fixture_all(count_text("out/fields.xdmf", corner) == 1));
    snprintf(corner, sizeof corner, ">%.17g</DataItem>", fixture_value(2, 5, 4, 0));
    ck_assert(fixture_all(count_text("out/fields.xdmf", corner) == 1));
    fixture_destroy(&n);
    fixture_destroy(&c);
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
             "cannot read 'blocked/fields.xdmf': it is a folder, not a file");
    trl_layout_destroy(&layout);
}
END_TEST

START_TEST(leaves_all_files_as_they_were_when_the_disk_is_full)
{
    static const trl_gidx steps[] = {1};
    const trl_grid grid = fixture_grid(3, 24, 20, 16, false);
    trl_layout *layout = fixture_layout(test_ctx, &grid);
    trli_fields_file *file;
    fixture_field f = fixture_create(layout, "T", TRL_CELL, 1), u = fixture_create(layout, "u", TRL_XFACE, 2);
    const trli_output_field fields[] = {f.field, u.field};
    ck_ok(trli_fields_create(test_ctx, layout, "full", false, 0, &file));
    ck_ok(write_steps(layout, file, 1, steps));
    fixture_limit(100000);
    trl_err err = trli_fields_write(file, 2, 1, 2, fields);
    fixture_limit(0);
    ck_assert_int_eq(err, TRL_ERR_IO);
    ck_assert_ptr_nonnull(
        strstr(test_messages(), " bytes for 'full/fields/00000002.nc': File too large; raise the limit"));
    ck_assert(fixture_all(native_is_right(&grid, "full/fields/00000001.nc", "T", TRL_CELL, 1)));
    ck_assert(fixture_all(fixture_entries("full/fields") == 1));
    ck_assert(fixture_all(count_text("full/fields.xdmf", "<Time") == 1));
    ck_ok(trli_fields_write(file, 2, 1, 2, fields));
    ck_ok(trli_fields_close(&file));
    ck_assert(fixture_all(native_is_right(&grid, "full/fields/00000002.nc", "T", TRL_CELL, 1)));
    fixture_destroy(&f);
    fixture_destroy(&u);
    trl_layout_destroy(&layout);
}
END_TEST

START_TEST(leaves_nothing_of_a_step_that_one_rank_could_not_write)
{
    static const trl_gidx steps[] = {1};
    const trl_grid grid = fixture_grid(3, 24, 20, 16, false);
    trl_layout *layout = fixture_layout(test_ctx, &grid);
    trli_fields_file *file;
    for (int rank = 0; rank < trl_context_ranks(test_ctx); ++rank) {
        ck_ok(trli_fields_create(test_ctx, layout, "one", false, 0, &file));
        ck_ok(write_steps(layout, file, 1, steps));
        fixture_field f = fixture_create(layout, "T", TRL_CELL, 2);
        fixture_fail_step(file, "one", rank, &f);
        ck_ok(trli_fields_write(file, 2, 1, 1, &f.field));
        ck_ok(trli_fields_close(&file));
        fixture_destroy(&f);
        ck_assert(fixture_all(native_is_right(&grid, "one/fields/00000002.nc", "T", TRL_CELL, 2)));
    }
    trl_layout_destroy(&layout);
}
END_TEST

START_TEST(removes_what_a_killed_run_left)
{
    const trl_grid grid = fixture_grid(1, 8, 1, 1, false);
    trl_layout *layout = fixture_layout(test_ctx, &grid);
    trli_fields_file *file;
    ck_ok(trli_fields_create(test_ctx, layout, "killed", false, 0, &file));
    ck_ok(trli_fields_close(&file));
    ON_FIRST_RANK(fixture_leave_aside("killed/fields"));
    ck_assert(fixture_all(fixture_entries("killed/fields") == 1));
    ck_ok(trli_fields_create(test_ctx, layout, "killed", true, 0, &file));
    ck_ok(trli_fields_close(&file));
    ck_assert(fixture_all(fixture_entries("killed/fields") == 0));
    trl_layout_destroy(&layout);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, writes_every_location_on_its_own_points);
    tcase_add_test(tc, has_no_coordinates_that_no_field_needs);
    tcase_add_test(tc, writes_from_patches_of_any_size);
    tcase_add_test(tc, says_what_the_file_holds_in_attributes_and_keeps_the_order_of_fields);
    tcase_add_test(tc, continues_a_folder_and_drops_later_steps);
    tcase_add_test(tc, starts_anew_unless_told_to_continue);
    tcase_add_test(tc, continues_beside_files_that_are_missing_or_damaged);
    tcase_add_test(tc, replaces_a_step_that_is_written_again);
    tcase_add_test(tc, describes_cells_scalars_and_vectors_in_xdmf);
    tcase_add_test(tc, describes_the_cells_at_periodic_sides_as_parts_of_their_own);
    tcase_add_test(tc, reports_a_folder_that_cannot_be_made);
    tcase_add_test(tc, leaves_all_files_as_they_were_when_the_disk_is_full);
    tcase_add_test(tc, leaves_nothing_of_a_step_that_one_rank_could_not_write);
    tcase_add_test(tc, removes_what_a_killed_run_left);
}

TRL_TEST_MAIN("output", add_tests)
