/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* What the tests of `trellis plot` share: files of fields made with HDF5 alone, and the command with its output
 * caught. */
#ifndef TRL_TEST_PLOT_FILES_H
#define TRL_TEST_PLOT_FILES_H

#include <math.h>
#include <unistd.h>

#include <hdf5.h>

#include <command_impl.h>
#include <plot_draw_impl.h>
#include <trl_test.h>

static inline void add_attribute(hid_t object, const char *name, hid_t type, int n, const void *value)
{
    hsize_t points = (hsize_t)n;
    hid_t space = H5Screate_simple(1, &points, NULL),
          attribute = H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    ck_assert(H5Awrite(attribute, type, value) >= 0);
    H5Aclose(attribute);
    H5Sclose(space);
}

static inline void add_location(hid_t object, const char *location)
{
    hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate(H5S_SCALAR);
    H5Tset_size(type, strlen(location) + 1);
    hid_t attribute = H5Acreate2(object, "location", type, space, H5P_DEFAULT, H5P_DEFAULT);
    ck_assert(H5Awrite(attribute, type, location) >= 0);
    H5Aclose(attribute);
    H5Sclose(space);
    H5Tclose(type);
}

static inline hid_t create_file(const char *path, int dim, const int *cells, const double *origin, const double *length)
{
    const int schema = 2, periodic[3] = {0};
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    add_attribute(file, "schema", H5T_NATIVE_INT, 1, &schema);
    add_attribute(file, "cells", H5T_NATIVE_INT, dim, cells);
    add_attribute(file, "origin", H5T_NATIVE_DOUBLE, dim, origin);
    add_attribute(file, "length", H5T_NATIVE_DOUBLE, dim, length);
    add_attribute(file, "periodic", H5T_NATIVE_INT, dim, periodic);
    return file;
}

static inline void add_row(hid_t file, const char *name, hid_t type, int n, const void *values)
{
    hsize_t points = (hsize_t)n;
    hid_t space = H5Screate_simple(1, &points, NULL);
    hid_t dataset = H5Dcreate2(file, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    ck_assert(H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    H5Dclose(dataset);
    H5Sclose(space);
}

static inline void add_times(hid_t file, int n, const int *step, const double *time)
{
    add_row(file, "step", H5T_NATIVE_INT, n, step);
    add_row(file, "time", H5T_NATIVE_DOUBLE, n, time);
}

/* shape: as HDF5 stores it, z first; values of shape[0] times. */
static inline void add_values(hid_t file, const char *name, const char *location, int rank, const hsize_t *shape,
                              const double *value)
{
    hid_t space = H5Screate_simple(rank, shape, NULL);
    hid_t dataset = H5Dcreate2(file, name, H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    ck_assert(H5Dwrite(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, value) >= 0);
    add_location(dataset, location);
    H5Dclose(dataset);
    H5Sclose(space);
}

/* The same values at all of the file's times; shape without theirs. */
static inline void add_field(hid_t file, const char *name, const char *location, int rank, const hsize_t *shape,
                             const double *value)
{
    hsize_t whole[4], points = 1;
    hid_t time = H5Dopen2(file, "time", H5P_DEFAULT), space = H5Dget_space(time);
    H5Sget_simple_extent_dims(space, whole, NULL);
    H5Sclose(space);
    H5Dclose(time);
    for (int a = 0; a < rank; ++a) points *= whole[a + 1] = shape[a];
    double *all = malloc(whole[0] * points * sizeof *all);
    ck_assert_ptr_nonnull(all);
    for (hsize_t t = 0; t < whole[0]; ++t) memcpy(all + t * points, value, points * sizeof *all);
    add_values(file, name, location, rank + 1, whole, all);
    free(all);
}

/* 6 x 4 cells on [0, 3] x [10, 12]. T at steps 0, 5, 10 is one value but for a maximum at cell (1, 3) and a minimum
 * at cell (4, 0); u lies on periodic x-faces, v on y-faces with walls; nan, none (all NaN) and flat at the last
 * step. */
static inline void make_plane(const char *path)
{
    enum { X = 6, Y = 4, TIMES = 3 };
    double value[X * Y], faces[X * (Y + 1)], T[TIMES][X * Y];
    hid_t file = create_file(path, 2, (int[]){X, Y}, (double[]){0, 10}, (double[]){3, 2});
    add_times(file, TIMES, (int[]){0, 5, 10}, (double[]){0, 0.5, 1});
    for (int t = 0; t < TIMES; ++t) {
        for (int i = 0; i < X * Y; ++i) T[t][i] = 2;
        T[t][3 * X + 1] = 3 + 5 * t;
        T[t][4] = 1;
    }
    add_values(file, "T", "cell", 3, (hsize_t[]){TIMES, Y, X}, T[0]);
    for (int i = 0; i < X * Y; ++i) value[i] = i % X;
    add_field(file, "u", "xface", 2, (hsize_t[]){Y, X}, value);
    for (int i = 0; i < X * (Y + 1); ++i) {
        int row = i / X;
        faces[i] = row;
    }
    add_field(file, "v", "yface", 2, (hsize_t[]){Y + 1, X}, faces);
    value[0] = value[7] = NAN;
    add_field(file, "with_nan", "cell", 2, (hsize_t[]){Y, X}, value);
    for (int i = 0; i < X * Y; ++i) value[i] = NAN;
    add_field(file, "none", "cell", 2, (hsize_t[]){Y, X}, value);
    for (int i = 0; i < X * Y; ++i) value[i] = -0.25;
    add_field(file, "flat", "cell", 2, (hsize_t[]){Y, X}, value);
    H5Fclose(file);
}

/* 5 x 4 x 6 cells on the unit cube: the value is 100*i + 10*j + k. */
static inline void make_cube(const char *path)
{
    enum { X = 5, Y = 4, Z = 6 };
    double value[Z][Y][X];
    hid_t file = create_file(path, 3, (int[]){X, Y, Z}, (double[]){0, 0, 0}, (double[]){1, 1, 1});
    add_times(file, 1, (int[]){7}, (double[]){0.5});
    for (int k = 0; k < Z; ++k)
        for (int j = 0; j < Y; ++j)
            for (int i = 0; i < X; ++i) value[k][j][i] = 100 * i + 10 * j + k;
    add_field(file, "T", "cell", 3, (hsize_t[]){Z, Y, X}, &value[0][0][0]);
    H5Fclose(file);
}

/* 50 cells on [0, 1]: line is x, peak is 0 but for a maximum in cell 10, gap has a NaN, flat is 0. */
static inline void make_line(const char *path)
{
    enum { X = 50 };
    double line[X], peak[X] = {0}, gap[X] = {0}, flat[X] = {0};
    hid_t file = create_file(path, 1, (int[]){X}, (double[]){0}, (double[]){1});
    add_times(file, 1, (int[]){3}, (double[]){0.25});
    for (int i = 0; i < X; ++i) line[i] = (i + 0.5) / X;
    peak[10] = 1;
    gap[20] = NAN;
    gap[30] = 1;
    add_field(file, "line", "cell", 1, (hsize_t[]){X}, line);
    add_field(file, "peak", "cell", 1, (hsize_t[]){X}, peak);
    add_field(file, "gap", "cell", 1, (hsize_t[]){X}, gap);
    add_field(file, "flat", "cell", 1, (hsize_t[]){X}, flat);
    H5Fclose(file);
}

static char folder[] = "/tmp/trellis_plot_XXXXXX";

static inline void enter_folder(void)
{
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(chdir(folder), 0);
    make_plane("plane.nc");
    make_cube("cube.nc");
    make_line("line.nc");
}

static inline void leave_folder(void)
{
    char command[128];
    ck_assert_int_eq(chdir("/"), 0);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    ck_assert_int_eq(system(command), 0);
}

/* Run the command with its output streams in files; `words` are separated by spaces. */
static inline int run_plot(const char *words)
{
    char text[512], *argv[32] = {"trellis", "plot"}, *rest;
    int argc = 2, kept[2] = {dup(1), dup(2)};
    snprintf(text, sizeof text, "%s", words);
    for (char *w = strtok_r(text, " ", &rest); w; w = strtok_r(NULL, " ", &rest)) argv[argc++] = w;
    fflush(stdout);
    fflush(stderr);
    ck_assert_ptr_nonnull(freopen("stdout.txt", "w", stdout));
    ck_assert_ptr_nonnull(freopen("stderr.txt", "w", stderr));
    int status = trli_command_main(argc, argv);
    fflush(stdout);
    fflush(stderr);
    dup2(kept[0], 1);
    dup2(kept[1], 2);
    close(kept[0]);
    close(kept[1]);
    return status;
}

/* The pixel of an image in a column and row. */
static inline trli_colour pixel(cairo_surface_t *image, int x, int y)
{
    cairo_surface_flush(image);
    const unsigned char *bytes = cairo_image_surface_get_data(image);
    const ptrdiff_t at = (ptrdiff_t)y * cairo_image_surface_get_stride(image) + 4 * (ptrdiff_t)x;
    ck_assert(x >= 0 && x < cairo_image_surface_get_width(image) && y >= 0 &&
              y < cairo_image_surface_get_height(image));
    const uint32_t word = *(const uint32_t *)(const void *)(bytes + at);
    return (trli_colour){(uint8_t)(word >> 16), (uint8_t)(word >> 8), (uint8_t)word};
}

/* A picture as a reader of PNG sees it. */
static inline cairo_surface_t *read_picture(const char *path)
{
    cairo_surface_t *image = cairo_image_surface_create_from_png(path);
    ck_assert_msg(!cairo_surface_status(image), "%s: %s", path, cairo_status_to_string(cairo_surface_status(image)));
    return image;
}

static inline const char *text_of(const char *path)
{
    static char text[4096];
    FILE *stream = fopen(path, "r");
    ck_assert_ptr_nonnull(stream);
    text[fread(text, 1, sizeof text - 1, stream)] = 0;
    fclose(stream);
    return text;
}

#endif
