/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include "output_hdf5_impl.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "context_impl.h"
#include "files_impl.h"
#include "memory_impl.h"

static herr_t keep_innermost(unsigned n, const H5E_error2_t *error, void *reason)
{
    if (n == 0) snprintf(reason, TRLI_REASON_ROOM, "%s", error->desc ? error->desc : "");
    return 0;
}

void trli_hdf5_reason(char reason[TRLI_REASON_ROOM])
{
    snprintf(reason, TRLI_REASON_ROOM, "no reason given");
    (void)H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_innermost, reason);
    for (char *c = reason; (c = strchr(c, '\n'));) *c = ' ';
}

trl_err trli_hdf5_fail(trl_context *ctx, const char *action, const char *path)
{
    char reason[TRLI_REASON_ROOM];
    trli_hdf5_reason(reason);
    return trl_fail(ctx, TRL_ERR_IO, NULL, "cannot %s '%s': HDF5 says: %s", action, path, reason);
}

hid_t trli_hdf5_keep_reason(void)
{
    return H5Eget_current_stack();
}

void trli_hdf5_restore_reason(hid_t reason)
{
    if (reason >= 0) (void)H5Eset_current_stack(reason);
}

static hid_t open_unlocked(const char *path)
{
    (void)H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    hid_t access = H5Pcreate(H5P_FILE_ACCESS), file = -1;
    if (access >= 0 && H5Pset_file_locking(access, false, true) >= 0) file = H5Fopen(path, H5F_ACC_RDONLY, access);
    hid_t reason = trli_hdf5_keep_reason();
    if (access >= 0) H5Pclose(access);
    trli_hdf5_restore_reason(reason);
    return file;
}

hid_t trli_hdf5_try_open(const char *path, char reason[TRLI_REASON_ROOM])
{
    off_t size;
    int probe = trli_file_open(path, &size, reason);
    if (probe < 0) return -1;
    close(probe);
    hid_t file = open_unlocked(path);
    if (file < 0) trli_hdf5_reason(reason);
    return file;
}

trl_err trli_hdf5_open(trl_context *ctx, const char *path, hid_t *file)
{
    char reason[TRLI_REASON_ROOM];
    *file = trli_hdf5_try_open(path, reason);
    if (*file >= 0) return TRL_OK;
    const trl_err err = trl_fail(ctx, TRL_ERR_IO, NULL, "cannot read '%s': %s", path, reason);
    trli_advise_rank(ctx);
    return err;
}

static bool put_attribute(hid_t object, const char *name, hid_t type, hid_t space, const void *values)
{
    hid_t attribute = space >= 0 ? H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT) : -1;
    bool good = attribute >= 0 && H5Awrite(attribute, type, values) >= 0;
    hid_t reason = trli_hdf5_keep_reason();
    if (attribute >= 0) H5Aclose(attribute);
    if (space >= 0) H5Sclose(space);
    trli_hdf5_restore_reason(reason);
    return good;
}

bool trli_hdf5_put(hid_t object, const char *name, hid_t type, const void *value)
{
    return put_attribute(object, name, type, H5Screate(H5S_SCALAR), value);
}

bool trli_hdf5_put_row(hid_t object, const char *name, hid_t type, hsize_t n, const void *values)
{
    return put_attribute(object, name, type, H5Screate_simple(1, &n, NULL), values);
}

bool trli_hdf5_get(hid_t object, const char *name, hid_t type, int n, void *values)
{
    hid_t attribute = H5Aexists(object, name) > 0 ? H5Aopen(object, name, H5P_DEFAULT) : -1;
    if (attribute < 0) return false;
    hid_t space = H5Aget_space(attribute);
    bool good = H5Sget_simple_extent_npoints(space) == n && H5Aread(attribute, type, values) >= 0;
    H5Sclose(space);
    H5Aclose(attribute);
    return good;
}

/* Without a NUL at the end, which netCDF would take for a part of the text. */
bool trli_hdf5_put_text(hid_t object, const char *name, const char *text)
{
    hid_t type = H5Tcopy(H5T_C_S1);
    bool good = H5Tset_size(type, strlen(text)) >= 0 && H5Tset_strpad(type, H5T_STR_NULLPAD) >= 0 &&
                trli_hdf5_put(object, name, type, text);
    hid_t reason = trli_hdf5_keep_reason();
    H5Tclose(type);
    trli_hdf5_restore_reason(reason);
    return good;
}

bool trli_hdf5_get_location(hid_t dataset, trl_location *location)
{
    char word[16] = "";
    hid_t type = H5Tcopy(H5T_C_S1);
    bool good = H5Tset_size(type, sizeof word) >= 0 && trli_hdf5_get(dataset, "location", type, 1, word);
    H5Tclose(type);
    return good && trl_location_parse(word, location);
}

/* The attributes of the root: one number per axis of the grid, and the version of the layout of these files. */
bool trli_hdf5_put_grid(hid_t file, const trl_grid *grid)
{
    const hsize_t dim = (hsize_t)grid->dim;
    int32_t schema = TRLI_SCHEMA, periodic[3];
    for (int a = 0; a < 3; ++a) periodic[a] = grid->periodic[a];
    return trli_hdf5_put(file, "schema", H5T_NATIVE_INT32, &schema) &&
           trli_hdf5_put_row(file, "cells", H5T_NATIVE_INT64, dim, grid->cells) &&
           trli_hdf5_put_row(file, "origin", H5T_NATIVE_DOUBLE, dim, grid->origin) &&
           trli_hdf5_put_row(file, "length", H5T_NATIVE_DOUBLE, dim, grid->length) &&
           trli_hdf5_put_row(file, "periodic", H5T_NATIVE_INT32, dim, periodic);
}

static int print_numbers(char *text, size_t room, int n, const double *number)
{
    int used = snprintf(text, room, "[");
    for (int i = 0; i < n; ++i) used += snprintf(text + used, room - (size_t)used, "%s%.17g", i ? ", " : "", number[i]);
    return used + snprintf(text + used, room - (size_t)used, "]");
}

/* Numbers of an attribute, 3 at most; returns how many, 0: missing or of another kind. */
static int get_few(hid_t object, const char *name, double number[3])
{
    hid_t attribute = H5Aexists(object, name) > 0 ? H5Aopen(object, name, H5P_DEFAULT) : -1;
    if (attribute < 0) return 0;
    hid_t space = H5Aget_space(attribute);
    hssize_t n = H5Sget_simple_extent_npoints(space);
    if (n < 1 || n > 3 || H5Aread(attribute, H5T_NATIVE_DOUBLE, number) < 0) n = 0;
    H5Sclose(space);
    H5Aclose(attribute);
    return (int)n;
}

static bool has_schema(hid_t file, char reason[TRLI_REASON_ROOM])
{
    double schema[3];
    const bool there = get_few(file, "schema", schema) == 1;
    if (there && schema[0] == TRLI_SCHEMA) return true;
    if (there)
        snprintf(reason, TRLI_REASON_ROOM, "it has schema %g; this version of Trellis reads schema %d", schema[0],
                 TRLI_SCHEMA);
    else
        snprintf(reason, TRLI_REASON_ROOM, "Trellis did not write it: it has no attribute 'schema'");
    return false;
}

bool trli_hdf5_get_grid(hid_t file, trl_grid *grid, char reason[TRLI_REASON_ROOM])
{
    double cells[3], periodic[3] = {0};
    *grid = (trl_grid){.cells = {1, 1, 1}, .length = {1, 1, 1}, .spacing = {1, 1, 1}};
    if (!has_schema(file, reason)) return false;
    grid->dim = get_few(file, "cells", cells);
    bool good = grid->dim > 0 && get_few(file, "origin", grid->origin) == grid->dim &&
                get_few(file, "length", grid->length) == grid->dim && get_few(file, "periodic", periodic) == grid->dim;
    for (int a = 0; a < grid->dim && good; ++a) {
        good = cells[a] >= 1 && cells[a] < 2147483648.0 && grid->length[a] > 0 && isfinite(grid->length[a]) &&
               isfinite(grid->origin[a]);
        grid->cells[a] = good ? (trl_gidx)cells[a] : 1;
        grid->periodic[a] = periodic[a] != 0;
        grid->spacing[a] = grid->length[a] / (double)grid->cells[a];
    }
    if (!good)
        snprintf(reason, TRLI_REASON_ROOM, "its attributes 'cells', 'origin', 'length' and 'periodic' are no grid");
    return good;
}

static bool same_numbers(hid_t file, const char *name, int n, const double *wanted, char reason[TRLI_REASON_ROOM])
{
    enum { ROOM = 96 };
    double found[3];
    char there[ROOM], here[ROOM];
    int count = get_few(file, name, found);
    bool same = count == n;
    for (int i = 0; same && i < n; ++i) same = found[i] == wanted[i];
    if (same) return true;
    print_numbers(there, sizeof there, count, found);
    print_numbers(here, sizeof here, n, wanted);
    snprintf(reason, TRLI_REASON_ROOM, "it belongs to another grid: its %s is %s, that of the deck is %s", name, there,
             here);
    return false;
}

bool trli_hdf5_is_grid(const trl_grid *grid, hid_t file, char reason[TRLI_REASON_ROOM])
{
    double cells[3], periodic[3];
    for (int a = 0; a < 3; ++a) {
        cells[a] = (double)grid->cells[a];
        periodic[a] = grid->periodic[a];
    }
    return has_schema(file, reason) && same_numbers(file, "cells", grid->dim, cells, reason) &&
           same_numbers(file, "periodic", grid->dim, periodic, reason) &&
           same_numbers(file, "origin", grid->dim, grid->origin, reason) &&
           same_numbers(file, "length", grid->dim, grid->length, reason);
}

/* All of a row of numbers, for trli_free; NULL: it is not there, or not one. */
static void *read_row(trl_context *ctx, hid_t file, const char *name, hid_t type, size_t size, hssize_t *n)
{
    hid_t data = H5Lexists(file, name, H5P_DEFAULT) > 0 ? H5Dopen2(file, name, H5P_DEFAULT) : -1;
    hid_t space = data >= 0 ? H5Dget_space(data) : -1;
    void *values = NULL;
    if (space >= 0 && H5Sget_simple_extent_ndims(space) == 1) {
        *n = H5Sget_simple_extent_npoints(space);
        if (*n > 0 && *n < INT_MAX) values = trli_new(ctx, (size_t)*n, size);
        if (values && H5Dread(data, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) < 0) {
            trli_free(values);
            values = NULL;
        }
    }
    if (space >= 0) H5Sclose(space);
    if (data >= 0) H5Dclose(data);
    return values;
}

bool trli_hdf5_times(trl_context *ctx, hid_t file, trl_gidx **step, double **time, int *n,
                     char reason[TRLI_REASON_ROOM])
{
    hssize_t steps = 0, times = 0;
    *time = read_row(ctx, file, "time", H5T_NATIVE_DOUBLE, sizeof **time, &times);
    *step = read_row(ctx, file, "step", H5T_NATIVE_INT64, sizeof **step, &steps);
    *n = (int)times;
    if (*time && *step && times == steps) return true;
    snprintf(reason, TRLI_REASON_ROOM,
             "it has no variables 'time' and 'step' of equal length, which every file of fields has");
    trli_free(*time);
    trli_free(*step);
    *time = NULL;
    *step = NULL;
    return false;
}

bool trli_hdf5_is_optional(hid_t file, const char *tag)
{
    return H5Aexists_by_name(file, tag, "optional", H5P_DEFAULT) > 0;
}

typedef struct tag_list {
    trl_context *ctx;
    char **name;
    int32_t n, room;
} tag_list;

/* A tag's variable is known by its attribute `location`. */
static herr_t collect_tag(hid_t file, const char *name, const H5L_info_t *info, void *data)
{
    tag_list *list = data;
    (void)info;
    if (H5Aexists_by_name(file, name, "location", H5P_DEFAULT) <= 0) return 0;
    if (!trli_make_room(list->ctx, &list->name, list->n, 1, &list->room, sizeof *list->name)) return -1;
    list->name[list->n] = trli_copy_text(list->ctx, name);
    return list->name[list->n++] ? 0 : -1;
}

void trli_hdf5_free_tags(char **name, int n)
{
    for (int i = 0; i < n; ++i) trli_free(name[i]);
    trli_free(name);
}

bool trli_hdf5_tags(trl_context *ctx, hid_t file, char ***name, int *n)
{
    tag_list list = {.ctx = ctx};
    unsigned order = 0;
    /* Not of the file: its list forgets the order once the file is closed. */
    hid_t root = H5Gopen2(file, "/", H5P_DEFAULT), creation = root >= 0 ? H5Gget_create_plist(root) : -1;
    if (creation >= 0) {
        (void)H5Pget_link_creation_order(creation, &order);
        H5Pclose(creation);
    }
    if (root >= 0) H5Gclose(root);
    H5_index_t by = order & H5P_CRT_ORDER_INDEXED ? H5_INDEX_CRT_ORDER : H5_INDEX_NAME;
    bool good = H5Literate(file, by, H5_ITER_INC, NULL, collect_tag, &list) >= 0;
    if (!good) trli_hdf5_free_tags(list.name, list.n);
    *name = good ? list.name : NULL;
    *n = good ? list.n : 0;
    return good;
}

int trli_hdf5_shape(const trl_grid *grid, trl_location location, hsize_t shape[3])
{
    for (int a = 0; a < grid->dim; ++a) shape[grid->dim - 1 - a] = (hsize_t)trl_grid_points(grid, location, a);
    return grid->dim;
}

/* Read the points of one patch into a buffer, x fastest. */
static bool read_patch(hid_t dataset, const trl_grid *grid, trl_gidx time, const trl_patch *patch, const trl_box *box,
                       double *values)
{
    hsize_t start[4] = {(hsize_t)time}, count[4] = {1};
    hid_t there = H5Dget_space(dataset), here = -1;
    const int rank = there >= 0 ? H5Sget_simple_extent_ndims(there) : -1;
    const bool fits = rank == grid->dim || rank == grid->dim + 1;
    for (int a = 0; fits && a < grid->dim; ++a) {
        start[rank - 1 - a] = (hsize_t)patch->first[a] + (hsize_t)box->lo[a];
        count[rank - 1 - a] = (hsize_t)(box->hi[a] - box->lo[a]);
    }
    if (fits) here = H5Screate_simple(rank, count, NULL);
    bool good = there >= 0 && here >= 0 && H5Sselect_hyperslab(there, H5S_SELECT_SET, start, NULL, count, NULL) >= 0 &&
                H5Dread(dataset, H5T_NATIVE_DOUBLE, here, there, H5P_DEFAULT, values) >= 0;
    hid_t reason = trli_hdf5_keep_reason();
    if (there >= 0) H5Sclose(there);
    if (here >= 0) H5Sclose(here);
    trli_hdf5_restore_reason(reason);
    return good;
}

static void unpack(const double *values, const trl_box *box, const trl_array *array)
{
    size_t row = (size_t)(box->hi[0] - box->lo[0]);
    for (trl_lidx k = box->lo[2]; k < box->hi[2]; ++k)
        for (trl_lidx j = box->lo[1]; j < box->hi[1]; ++j, values += row)
            memcpy((double *)array->at + trl_array_offset(array, box->lo[0], j, k), values, row * sizeof *values);
}

trl_err trli_hdf5_read(trl_context *ctx, const trl_layout *layout, const char *path, const char *dataset, trl_gidx time,
                       const trli_output_field *field)
{
    hid_t file = -1, data = -1;
    trl_err err;
    TRL_TRY(trli_hdf5_open(ctx, path, &file));
    data = H5Dopen2(file, dataset, H5P_DEFAULT);
    if (data < 0) TRL_TRY(trli_hdf5_fail(ctx, "read", path));
    for (int p = 0; p < layout->nlocal; ++p) {
        const trl_patch *patch = &layout->patch[p];
        const trl_box box = trl_patch_owned(layout, patch, field->location);
        void *values = NULL;
        TRL_TRY(trl_memory_alloc(ctx, (size_t)trl_box_points(&box) * sizeof(double), field->name, &values));
        bool good = read_patch(data, &layout->grid, time, patch, &box, values);
        if (good) unpack(values, &box, &field->patch[p]);
        trl_memory_free(ctx, &values);
        if (!good) TRL_TRY(trli_hdf5_fail(ctx, "read", path));
    }
done:
    if (data >= 0) H5Dclose(data);
    if (file >= 0) H5Fclose(file);
    return err;
}
