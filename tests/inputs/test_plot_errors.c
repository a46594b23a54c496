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
        {"plane.nc --feild T", "unknown option '--feild'; did you mean '--field'?"},
        {"", "FILE|DIR is missing"},
        {"plane.nc --field ,", "--field names no field"},
        {"plane.nc --field a,b,c,d,e,f,g", "--field names more than 6 fields for one picture"},
        {"plane.nc --slice z", "--slice needs an axis and a coordinate as z=0.5, found 'z'"},
        {"plane.nc --slice w=1", "--slice needs an axis and a coordinate as z=0.5, found 'w=1'"},
        {"cube.nc --slice x=1,x=0", "--slice cuts axis x twice"},
        {"plane.nc --range 1", "--range needs two numbers, the smaller one first, as 0,1; found '1'"},
        {"plane.nc --range 1,0", "--range needs two numbers, the smaller one first, as 0,1; found '1,0'"},
        {"plane.nc --range 0,1,2", "--range needs two numbers"},
        {"plane.nc --range 0,inf", "--range needs two numbers"},
        {"plane.nc --contours 0", "--contours needs a whole number from 1 up, found '0'"},
        {"plane.nc --contours 101", "--contours goes up to 100, found 101"},
        {"plane.nc --size 5000", "--size goes up to 4000, found 5000"},
        {"line.nc --contours 3", "--contours needs a plane, and 'flat' is a line here; leave it out, or cut less"},
        {"plane.nc --movie --slice y=11 --contours 3", "--contours needs a plane, and 'T' is a line here"},
        {"plane.nc --spacetime", "--spacetime draws a line over time, and 'T' has 2 axes: cut it with --slice to one, "
                                 "as --slice y=0.5"},
        {"cube.nc --spacetime --slice y=0.5", "'T' has 3 axes: cut it with --slice to one, as --slice y=0.5,z=0.5"},
        {"line.nc --spacetime", "line.nc: --spacetime needs several output times, and there is one; output.every in "
                                "the deck says when fields are written"},
        {"plane.nc --movie --time 1", "--movie draws all times; leave out --time"},
        {"plane.nc --spacetime --time 1", "--spacetime draws all times; leave out --time"},
        {"plane.nc --spacetime --movie", "--spacetime draws all times in one picture, --movie in one each; choose one"},
        {"plane.nc -o out.jpg",
         "a picture is a .png, .svg or .pdf, and 'out.jpg' ends in '.jpg'; give -o another name"},
        {"plane.nc --movie -o out.pdf", "a movie is an animated .png, found 'out.pdf'; numbered pictures, for ffmpeg, "
                                        "are had with a name as frame%04d.png"},
        {"plane.nc --movie -o out%s.png",
         "the place for the number of a picture is one %d or, with leading zeros, %04d; found 'out%s.png'"},
        {"plane.nc --movie -o out%d%d.png", "the place for the number of a picture is one %d"},
        {"plane.nc -o plane.nc", "the picture would replace 'plane.nc', which holds fields; choose another name"},
        {"plane.nc --time soon", "--time needs a number or 'last', found 'soon'"},
        {"plane.nc --slice z=1", "--slice z: the grid of 'plane.nc' has no axis z"},
        {"line.nc --slice x=0.5", "--slice: 1 of 1 axes are cut, which leaves nothing to draw"},
        {"cube.nc --slice y=1.5", "--slice y=1.5 lies outside the domain, where y goes from 0 to 1"},
        {"plane.nc --field with_man",
         "plane.nc: no field 'with_man'; there is: T, flat, none, u, v, with_nan; did you mean 'with_nan'?"},
        {"plane.nc --field /", "no field '/'; there is: "},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        ck_assert_msg(run_plot(rows[i].words) == 2, "%s", rows[i].words);
        ck_assert_msg(strstr(text_of("stderr.txt"), rows[i].message), "%s: %s", rows[i].words, text_of("stderr.txt"));
    }
}
END_TEST

START_TEST(last_is_a_time_and_help_is_no_error)
{
    ck_assert_int_eq(run_plot("plane.nc --time last -o last.png"), 0);
    ck_assert_int_eq(run_plot("--help"), 0);
    ck_assert_ptr_nonnull(strstr(text_of("stdout.txt"), "usage: trellis plot FILE|DIR"));
}
END_TEST

START_TEST(files_that_cannot_be_read_exit_with_3)
{
    FILE *text = fopen("text.nc", "w");
    fputs("no HDF5", text);
    fclose(text);
    make_plane("cut.nc");
    struct stat status;
    ck_assert_int_eq(stat("cut.nc", &status), 0);
    ck_assert_int_eq(truncate("cut.nc", status.st_size / 2), 0);
    static const struct {
        const char *words, *message;
    } rows[] = {
        {"absent.nc", "absent.nc: cannot be read: No such file or directory"},
        {".", ".: holds no files of fields, such as fields/00000000.nc: is it the output folder of a run?"},
        {"text.nc", "text.nc: is not a file of fields"},
        {"cut.nc", "cut.nc: cannot be read: truncated file"},
        {"plane.nc -o absent/out.png", "cannot write 'absent/out.png': No such file or directory"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        ck_assert_msg(run_plot(rows[i].words) == 3, "%s", rows[i].words);
        ck_assert_msg(strstr(text_of("stderr.txt"), rows[i].message), "%s: %s", rows[i].words, text_of("stderr.txt"));
    }
}
END_TEST

/* A field at the last time of a file; NULL: the first field. */
static trl_err read_last(const char *path, const char *field, trli_plot_set *set)
{
    const trli_plot_request request = {.path = path, .nfields = field ? 1 : 0, .field = {field}};
    trli_plot_source *source;
    *set = (trli_plot_set){0};
    trl_err err = trli_plot_source_open(test_ctx, &request, false, &source);
    if (err == TRL_OK) err = trli_plot_source_read(source, &request, 0, set);
    trli_plot_source_close(&source);
    return err;
}

/* Read a copy of the plane after something in it was taken away. */
static void read_damaged(const char *object, const char *attribute, const char *link, const char *message)
{
    trli_plot_set set;
    make_plane("damaged.nc");
    hid_t file = H5Fopen("damaged.nc", H5F_ACC_RDWR, H5P_DEFAULT);
    if (attribute) ck_assert(H5Adelete_by_name(file, object, attribute, H5P_DEFAULT) >= 0);
    if (link) ck_assert(H5Ldelete(file, link, H5P_DEFAULT) >= 0);
    H5Fclose(file);
    ck_fails(read_last("damaged.nc", NULL, &set), TRL_ERR_IO, message);
    ck_assert_int_eq(set.n, 0);
    trl_context_clear_diagnostics(test_ctx);
}

START_TEST(files_that_miss_a_part_are_refused_with_its_name)
{
    read_damaged(".", "schema", NULL,
                 "damaged.nc: cannot be drawn: Trellis did not write it: it has no attribute 'schema'");
    read_damaged(".", "cells", NULL, "its attributes 'cells', 'origin', 'length' and 'periodic' are no grid");
    read_damaged(".", "length", NULL, "its attributes 'cells', 'origin', 'length' and 'periodic' are no grid");
    read_damaged(NULL, NULL, "time", "cannot be drawn: it has no variables 'time' and 'step' of equal length");
    read_damaged(NULL, NULL, "step", "cannot be drawn: it has no variables 'time' and 'step' of equal length");
}
END_TEST

/* A file with one field whose parts are given. */
static void read_odd(int schema, int cells, bool step, int points, const char *location, const char *message)
{
    trli_plot_set set;
    hid_t file = create_file("odd.nc", 1, &cells, (double[]){0}, (double[]){1});
    hid_t attribute = H5Aopen(file, "schema", H5P_DEFAULT);
    H5Awrite(attribute, H5T_NATIVE_INT, &schema);
    H5Aclose(attribute);
    if (step) add_times(file, 1, (int[]){0}, (double[]){0});
    if (step && points) add_field(file, "T", location, 1, (hsize_t[]){(hsize_t)points}, (double[16]){0});
    H5Fclose(file);
    ck_fails(read_last("odd.nc", NULL, &set), TRL_ERR_IO, message);
    trl_context_clear_diagnostics(test_ctx);
}

START_TEST(files_that_contradict_themselves_are_refused)
{
    read_odd(1, 8, true, 8, "cell", "it has schema 1; this version of Trellis reads schema 2");
    read_odd(2, 0, true, 8, "cell", "its attributes 'cells', 'origin', 'length' and 'periodic' are no grid");
    read_odd(2, 8, false, 8, "cell", "cannot be drawn: it has no variables");
    read_odd(2, 8, true, 0, "cell", "has no fields");
    read_odd(2, 8, true, 9, "cell", "field 'T' at location 'cell' has a shape that does not fit the attribute 'cells'");
    read_odd(2, 8, true, 8, "corner", "field 'T' has no attribute 'location' that names one");
}
END_TEST

START_TEST(objects_of_the_wrong_kind_are_refused)
{
    trli_plot_set set;
    make_plane("kind.nc");
    hid_t file = H5Fopen("kind.nc", H5F_ACC_RDWR, H5P_DEFAULT);
    hid_t group = H5Gcreate2(file, "group", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    add_location(group, "cell");
    H5Gclose(group);
    hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate_simple(3, (hsize_t[]){3, 4, 6}, NULL);
    H5Tset_size(type, 3);
    hid_t text = H5Dcreate2(file, "text", type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    add_location(text, "cell");
    H5Dclose(text);
    H5Sclose(space);
    H5Tclose(type);
    H5Fclose(file);
    ck_fails(read_last("kind.nc", "group", &set), TRL_ERR_IO, "not a dataset");
    trl_context_clear_diagnostics(test_ctx);
    ck_fails(read_last("kind.nc", "text", &set), TRL_ERR_IO, "no appropriate function for conversion path");
}
END_TEST

START_TEST(a_full_disk_leaves_no_picture_behind)
{
    static const struct {
        const char *words, *message;
    } rows[] = {
        {"plane.nc -o folder_of_picture/full.png",
         "cannot write the picture 'folder_of_picture/full.png': File too large"},
        {"plane.nc -o folder_of_picture/full.svg",
         "cannot write the picture 'folder_of_picture/full.svg': File too large"},
        {"plane.nc -o folder_of_picture/full.pdf",
         "cannot write the picture 'folder_of_picture/full.pdf': File too large"},
        {"plane.nc --movie -o folder_of_picture/full.png",
         "cannot write the movie 'folder_of_picture/full.png': File too large"},
    };
    struct rlimit old, small;
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = old;
    small.rlim_cur = 1024;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(mkdir("folder_of_picture", 0777), 0);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
    int status[4];
    char text[4][512];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        status[i] = run_plot(rows[i].words);
        snprintf(text[i], sizeof text[i], "%.500s", text_of("stderr.txt"));
    }
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &old), 0);
    signal(SIGXFSZ, handler);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        ck_assert_int_eq(status[i], 3);
        ck_assert_msg(strstr(text[i], rows[i].message), "%s: %s", rows[i].words, text[i]);
    }
    ck_assert_int_eq(rmdir("folder_of_picture"), 0);
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
