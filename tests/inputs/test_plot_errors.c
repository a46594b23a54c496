/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* What `trellis plot` refuses, with which message and exit code. */
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "plot_files.h"

START_TEST(command_line_errors_exit_with_2_and_say_what_to_do)
{
    static const struct {
        const char *words, *message;
    } rows[] = {
        {"plane.h5 --feild T", "unknown option '--feild'; did you mean '--field'?"},
        {"", "FILE is missing"},
        {"plane.h5 --field ,", "--field names no field"},
        {"plane.h5 --field a,b,c,d,e,f,g", "--field names more than 6 fields for one picture"},
        {"plane.h5 --slice z", "--slice needs an axis and a coordinate as z=0.5, found 'z'"},
        {"plane.h5 --slice w=1", "--slice needs an axis and a coordinate as z=0.5, found 'w=1'"},
        {"cube.h5 --slice x=1,x=0", "--slice cuts axis x twice"},
        {"plane.h5 --time soon", "--time needs a number or 'last', found 'soon'"},
        {"plane.h5 --slice z=1", "--slice z: the grid of 'plane.h5' has no axis z"},
        {"line.h5 --slice x=0.5", "--slice: 1 of 1 axes are cut, which leaves nothing to draw"},
        {"cube.h5 --slice y=1.5", "--slice y=1.5 lies outside the domain, where y goes from 0 to 1"},
        {"plane.h5 --field with_man",
         "plane.h5: no field 'with_man' at step 10; there is: T, flat, none, u, v, with_nan; did you mean 'with_nan'?"},
        {"plane.h5 --field /", "no field '/' at step 10; there is: "},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        ck_assert_msg(run_plot(rows[i].words) == 2, "%s", rows[i].words);
        ck_assert_msg(strstr(text_of("stderr.txt"), rows[i].message), "%s: %s", rows[i].words, text_of("stderr.txt"));
    }
}
END_TEST

START_TEST(last_is_a_time_and_help_is_no_error)
{
    ck_assert_int_eq(run_plot("plane.h5 --time last -o last.png"), 0);
    ck_assert_int_eq(run_plot("--help"), 0);
    ck_assert_ptr_nonnull(strstr(text_of("stdout.txt"), "usage: trellis plot FILE"));
}
END_TEST

START_TEST(files_that_cannot_be_read_exit_with_3)
{
    FILE *text = fopen("text.h5", "w");
    fputs("no HDF5", text);
    fclose(text);
    make_plane("cut.h5");
    struct stat status;
    ck_assert_int_eq(stat("cut.h5", &status), 0);
    ck_assert_int_eq(truncate("cut.h5", status.st_size / 2), 0);
    static const struct {
        const char *words, *message;
    } rows[] = {
        {"absent.h5", "absent.h5: cannot be read: No such file or directory"},
        {"/tmp", "/tmp: is a folder; give the fields.h5 in it"},
        {"text.h5", "text.h5: is not an HDF5 file, or nothing is written to it yet"},
        {"cut.h5", "cut.h5: cannot be read: truncated file"},
        {"cut.h5", "; is it still being written, or was the run stopped while writing?"},
        {"plane.h5 -o absent/out.png", "cannot write 'absent/out.png': No such file or directory"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        ck_assert_msg(run_plot(rows[i].words) == 3, "%s", rows[i].words);
        ck_assert_msg(strstr(text_of("stderr.txt"), rows[i].message), "%s: %s", rows[i].words, text_of("stderr.txt"));
    }
}
END_TEST

/* Read a copy of the plane after something in it was taken away. */
static void read_damaged(const char *object, const char *attribute, const char *link, const char *message)
{
    trli_plot_set set;
    make_plane("damaged.h5");
    hid_t file = H5Fopen("damaged.h5", H5F_ACC_RDWR, H5P_DEFAULT);
    if (attribute) ck_assert(H5Adelete_by_name(file, object, attribute, H5P_DEFAULT) >= 0);
    if (link) ck_assert(H5Ldelete(file, link, H5P_DEFAULT) >= 0);
    H5Fclose(file);
    ck_fails(trli_plot_read(test_ctx, &(trli_plot_request){.path = "damaged.h5"}, &set), TRL_ERR_IO, message);
    ck_assert_int_eq(set.n, 0);
    trl_context_clear_diagnostics(test_ctx);
}

START_TEST(files_that_miss_a_part_are_refused_with_its_name)
{
    read_damaged(".", "schema", NULL, "damaged.h5: is not a fields file of Trellis: it has no attribute 'schema'");
    read_damaged(".", "cells", NULL, "has no attribute 'cells' of 1 to 3 numbers");
    read_damaged(".", "length", NULL, "has no attributes 'origin' and 'length' with as many numbers as 'cells'");
    read_damaged("00000010", "time", NULL, "has no attribute 'time' at step 10");
    read_damaged("00000010/T", "location", NULL, "field 'T' has no attribute 'location' that names one");
}
END_TEST

/* A file with one field whose parts are given. */
static void read_odd(int schema, int cells, bool step, int points, const char *location, const char *message)
{
    trli_plot_set set;
    hid_t file = create_file("odd.h5", 1, &cells, (double[]){0}, (double[]){1});
    hid_t attribute = H5Aopen(file, "schema", H5P_DEFAULT);
    H5Awrite(attribute, H5T_NATIVE_INT, &schema);
    H5Aclose(attribute);
    if (step) {
        hid_t group = create_step(file, 0, 0);
        if (points) add_field(group, "T", location, 1, (hsize_t[]){(hsize_t)points}, (double[16]){0});
        H5Gclose(group);
    }
    H5Fclose(file);
    ck_fails(trli_plot_read(test_ctx, &(trli_plot_request){.path = "odd.h5"}, &set), TRL_ERR_IO, message);
    trl_context_clear_diagnostics(test_ctx);
}

START_TEST(files_that_contradict_themselves_are_refused)
{
    read_odd(2, 8, true, 8, "cell", "has schema 2; this version of trellis reads 1");
    read_odd(1, 0, true, 8, "cell", "has attributes 'cells', 'origin' and 'length' that are no grid");
    read_odd(1, 8, false, 8, "cell", "holds no step yet");
    read_odd(1, 8, true, 0, "cell", "has a step without fields");
    read_odd(1, 8, true, 9, "cell", "field 'T' at location 'cell' has a shape that does not fit the attribute 'cells'");
    read_odd(1, 8, true, 8, "corner", "field 'T' has no attribute 'location' that names one");
}
END_TEST

START_TEST(objects_of_the_wrong_kind_are_refused)
{
    trli_plot_set set;
    make_plane("kind.h5");
    hid_t file = H5Fopen("kind.h5", H5F_ACC_RDWR, H5P_DEFAULT);
    H5Gclose(H5Gcreate2(file, "00000010/group", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate_simple(2, (hsize_t[]){4, 6}, NULL);
    H5Tset_size(type, 3);
    hid_t text = H5Dcreate2(file, "00000010/text", type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    add_location(text, "cell");
    H5Dclose(text);
    H5Sclose(space);
    H5Tclose(type);
    H5Lcreate_soft("nowhere", file, "99999999", H5P_DEFAULT, H5P_DEFAULT);
    H5Fclose(file);
    trli_plot_request request = {.path = "kind.h5", .nfields = 1, .field = {"T"}};
    ck_fails(trli_plot_read(test_ctx, &request, &set), TRL_ERR_IO, "cannot read 'kind.h5'");
    trl_context_clear_diagnostics(test_ctx);
    file = H5Fopen("kind.h5", H5F_ACC_RDWR, H5P_DEFAULT);
    H5Ldelete(file, "99999999", H5P_DEFAULT);
    H5Fclose(file);
    request.field[0] = "group";
    ck_fails(trli_plot_read(test_ctx, &request, &set), TRL_ERR_IO, "not a dataset");
    trl_context_clear_diagnostics(test_ctx);
    request.field[0] = "text";
    ck_fails(trli_plot_read(test_ctx, &request, &set), TRL_ERR_IO, "no appropriate function for conversion path");
}
END_TEST

START_TEST(a_full_disk_leaves_no_picture_behind)
{
    struct rlimit old, small;
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = old;
    small.rlim_cur = 1024;
    trli_canvas *canvas;
    ck_ok(trli_canvas_create(test_ctx, 400, 300, &canvas));
    for (unsigned i = 0; i < 400 * 300 * 3; ++i) canvas->pixel[i] = (uint8_t)(i * i / 7);
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(mkdir("folder_of_picture", 0777), 0);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
    trl_err err = trli_png_write(test_ctx, "folder_of_picture/full.png", canvas);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &old), 0);
    signal(SIGXFSZ, handler);
    ck_fails(err, TRL_ERR_IO, "cannot write the picture 'folder_of_picture/full.png': File too large");
    ck_assert_int_eq(access("folder_of_picture/full.png", F_OK), -1);
    ck_assert_int_eq(rmdir("folder_of_picture"), 0);
    trli_canvas_destroy(&canvas);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_unchecked_fixture(tc, enter_folder, leave_folder);
    tcase_add_test(tc, command_line_errors_exit_with_2_and_say_what_to_do);
    tcase_add_test(tc, last_is_a_time_and_help_is_no_error);
    tcase_add_test(tc, files_that_cannot_be_read_exit_with_3);
    tcase_add_test(tc, files_that_miss_a_part_are_refused_with_its_name);
    tcase_add_test(tc, files_that_contradict_themselves_are_refused);
    tcase_add_test(tc, objects_of_the_wrong_kind_are_refused);
    tcase_add_test(tc, a_full_disk_leaves_no_picture_behind);
}

TRL_TEST_MAIN("plot errors", add_tests)
