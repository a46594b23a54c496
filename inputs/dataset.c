/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <limits.h>
#include <string.h>

#include "context_impl.h"
#include "memory_impl.h"
#include "memstream_impl.h"
#include "output_hdf5_impl.h"

/* The datasets of a file as text for a message, the first few of them. */
typedef struct dataset_list {
    FILE *out;
    int n;
} dataset_list;

static herr_t add_dataset(hid_t file, const char *name, const H5O_info_t *info, void *data)
{
    enum { MOST = 12 };
    dataset_list *list = data;
    (void)file;
    if (info->type != H5O_TYPE_DATASET) return 0;
    list->n++;
    if (list->n <= MOST) fprintf(list->out, "%s/%s", list->n > 1 ? ", " : "", name);
    if (list->n == MOST + 1) fputs(", ...", list->out);
    return 0;
}

static trl_err fail_missing(trl_context *ctx, hid_t file, const trli_dataset_name *from)
{
    dataset_list list = {0};
    trli_memstream stream;
    bool written = trli_memstream_open(ctx, &stream);
    list.out = stream.out;
    if (written) {
        (void)H5Ovisit2(file, H5_INDEX_NAME, H5_ITER_INC, add_dataset, &list, H5O_INFO_BASIC);
        written = trli_memstream_close(&stream);
    }
    trl_err err = trl_fail(ctx, TRL_ERR_INPUT, &from->name_place, "no dataset '%s' in '%s'; there is: %s", from->name,
                           from->path, written && list.n ? stream.text : "none");
    trli_memstream_discard(&stream);
    return err;
}

/* "[4][3]", slowest axis first. */
static void print_shape(char *text, size_t room, int rank, const hsize_t *shape)
{
    size_t used = (size_t)snprintf(text, room, "%s", rank ? "" : "(a single value)");
    for (int a = 0; a < rank && used < room; ++a)
        used += (size_t)snprintf(text + used, room - used, "[%llu]", (unsigned long long)shape[a]);
}

static trl_err check_shape(trl_context *ctx, const trl_grid *grid, hid_t data, const trli_dataset_name *from,
                           trl_location location)
{
    enum { ROOM = 128 };
    hsize_t wanted[3], found[H5S_MAX_RANK];
    char here[ROOM], there[ROOM];
    int rank = trli_hdf5_shape(grid, location, wanted);
    hid_t space = H5Dget_space(data), type = H5Dget_type(data);
    int found_rank = H5Sget_simple_extent_dims(space, found, NULL);
    H5T_class_t kind = H5Tget_class(type);
    if (type >= 0) H5Tclose(type);
    if (space >= 0) H5Sclose(space);
    if (found_rank < 0 || (kind != H5T_FLOAT && kind != H5T_INTEGER))
        return trl_fail(ctx, TRL_ERR_INPUT, &from->name_place, "dataset '%s' in '%s' holds no numbers", from->name,
                        from->path);
    /* Files of fields have one axis more, of one time. */
    const int more = found_rank == rank + 1 ? 1 : 0;
    bool same = found_rank == rank + more;
    for (int a = 0; same && a < rank; ++a) same = found[a + more] == wanted[a];
    if (same && more && found[0] != 1)
        return trl_fail(ctx, TRL_ERR_INPUT, &from->name_place,
                        "dataset '%s' in '%s' holds %llu times; use the file of one output time, as those in fields/",
                        from->name, from->path, (unsigned long long)found[0]);
    if (same) return TRL_OK;
    print_shape(there, sizeof there, found_rank, found);
    print_shape(here, sizeof here, rank, wanted);
    return trl_fail(ctx, TRL_ERR_INPUT, &from->name_place,
                    "dataset '%s' in '%s' has shape %s; this grid has %s at location '%s'", from->name, from->path,
                    there, here, trl_location_name(location));
}

/* Whether a path leads to a dataset; HDF5 takes a link that is missing before the last one for a failure, so each is
 * tested. */
static bool leads_to_dataset(trl_context *ctx, hid_t file, const char *dataset)
{
    char *path = trli_copy_text(ctx, dataset);
    bool there = path != NULL;
    for (char *slash = path; there && *slash && (slash = strchr(slash + 1, '/'));) {
        *slash = 0;
        there = H5Lexists(file, path, H5P_DEFAULT) > 0;
        *slash = '/';
    }
    there = there && H5Lexists(file, dataset, H5P_DEFAULT) > 0;
    trli_free(path);
    return there;
}

/* On rank 0: open a file and a dataset in it. */
static trl_err open_dataset(trl_context *ctx, const trli_dataset_name *from, hid_t *file, hid_t *data)
{
    char reason[TRLI_REASON_ROOM];
    *data = -1;
    *file = trli_hdf5_try_open(from->path, reason);
    if (*file < 0)
        return trl_fail(ctx, TRL_ERR_INPUT, &from->path_place, "cannot read '%s': %s; an HDF5 file is needed",
                        from->path, reason);
    if (leads_to_dataset(ctx, *file, from->name)) *data = H5Dopen2(*file, from->name, H5P_DEFAULT);
    return *data >= 0 ? TRL_OK : fail_missing(ctx, *file, from);
}

/* On rank 0: the rows of a dataset, and how many there are. */
static trl_err read_rows(trl_context *ctx, hid_t data, const trli_dataset_name *from, int dim, double **points, int *n)
{
    enum { ROOM = 128 };
    hsize_t found[H5S_MAX_RANK];
    char there[ROOM];
    hid_t space = H5Dget_space(data), type = H5Dget_type(data);
    const int rank = H5Sget_simple_extent_dims(space, found, NULL);
    const H5T_class_t kind = H5Tget_class(type);
    if (type >= 0) H5Tclose(type);
    if (space >= 0) H5Sclose(space);
    if (rank < 0 || (kind != H5T_FLOAT && kind != H5T_INTEGER))
        return trl_fail(ctx, TRL_ERR_INPUT, &from->name_place, "dataset '%s' in '%s' holds no numbers", from->name,
                        from->path);
    /* Along one axis, a row has one number. */
    const bool rows = (rank == 2 && found[1] == (hsize_t)dim) || (rank == 1 && dim == 1);
    print_shape(there, sizeof there, rank, found);
    if (!rows || found[0] == 0 || found[0] > (hsize_t)(INT_MAX / dim))
        return trl_fail(ctx, TRL_ERR_INPUT, &from->name_place,
                        "dataset '%s' in '%s' has shape %s; points are rows of %d coordinate%s: [n][%d], n at least 1",
                        from->name, from->path, there, dim, dim == 1 ? "" : "s", dim);
    *n = (int)found[0];
    *points = trli_new(ctx, (size_t)*n * (size_t)dim, sizeof **points);
    if (!*points) return trli_no_memory(ctx, &from->name_place, "for %d points", *n);
    if (H5Dread(data, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, *points) >= 0) return TRL_OK;
    return trli_hdf5_fail(ctx, "read", from->path);
}

trl_err trli_dataset_points(trl_context *ctx, const trli_dataset_name *from, int dim, double **points, int *n)
{
    const bool first = trl_context_rank(ctx) == 0;
    hid_t file = -1, data = -1;
    trl_err err = first ? open_dataset(ctx, from, &file, &data) : TRL_OK;
    *points = NULL;
    if (first && err == TRL_OK) err = read_rows(ctx, data, from, dim, points, n);
    if (data >= 0) H5Dclose(data);
    if (file >= 0) H5Fclose(file);
    TRL_TRY(trl_context_agree(ctx, err));
    TRL_TRY(trli_broadcast(ctx, n, 1, MPI_INT, 0));
    if (!first) *points = trli_new(ctx, (size_t)*n * (size_t)dim, sizeof **points);
    err = *points ? TRL_OK : trli_no_memory(ctx, &from->name_place, "for %d points", *n);
    TRL_TRY(trl_context_agree(ctx, err));
    err = trli_broadcast(ctx, *points, *n * dim, MPI_DOUBLE, 0);
done:
    if (err == TRL_OK) return TRL_OK;
    trli_free(*points);
    *points = NULL;
    return err;
}

/* On rank 0. */
static trl_err check(trl_context *ctx, const trl_layout *layout, const trli_dataset_name *from, trl_location location)
{
    hid_t file, data;
    trl_err err = open_dataset(ctx, from, &file, &data);
    if (err == TRL_OK) err = check_shape(ctx, &layout->grid, data, from, location);
    if (data >= 0) H5Dclose(data);
    if (file >= 0) H5Fclose(file);
    return err;
}

trl_err trli_dataset_read(trl_context *ctx, const trl_layout *layout, const trli_dataset_name *from,
                          const trli_output_field *field)
{
    trl_err err = trl_context_rank(ctx) == 0 ? check(ctx, layout, from, field->location) : TRL_OK;
    TRL_TRY(trl_context_agree(ctx, err));
    err = trl_context_agree(ctx, trli_hdf5_read(ctx, layout, from->path, from->name, 0, field));
done:
    return err;
}
