/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include "files_impl.h"
#include "output_hdf5_impl.h"

/* Where a group is until it is whole, below the root. */
#define WRITING "writing"
#define WRITING_FIELDS WRITING "/fields"
#define WRITING_CELLS WRITING "/" TRLI_CELLS_GROUP

trli_part trli_part_of(const trli_output_field *field)
{
    return (trli_part){.name = field->name, .location = field->location, .ncomponents = 1, .component = {field}};
}

static bool remove_link(hid_t file, const char *name)
{
    htri_t exists = H5Lexists(file, name, H5P_DEFAULT);
    return exists == 0 || (exists > 0 && H5Ldelete(file, name, H5P_DEFAULT) >= 0);
}

bool trli_step_clean(hid_t file)
{
    return remove_link(file, WRITING);
}

bool trli_step_remove(hid_t file, trl_gidx step)
{
    char name[TRLI_STEP_ROOM], averages[sizeof TRLI_CELLS_GROUP + TRLI_STEP_ROOM];
    trli_step_name(step, name);
    snprintf(averages, sizeof averages, TRLI_CELLS_GROUP "/%s", name);
    htri_t has_averages = H5Lexists(file, TRLI_CELLS_GROUP, H5P_DEFAULT);
    return has_averages >= 0 && (has_averages == 0 || remove_link(file, averages)) && remove_link(file, name);
}

/* A group that lists its members in the order in which they are made, which is that of the deck. */
static hid_t create_group(hid_t file, const char *name)
{
    hid_t list = H5Pcreate(H5P_GROUP_CREATE), group = -1;
    if (list >= 0 && H5Pset_link_creation_order(list, H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED) >= 0)
        group = H5Gcreate2(file, name, H5P_DEFAULT, list, H5P_DEFAULT);
    hid_t reason = trli_hdf5_keep_reason();
    if (list >= 0) H5Pclose(list);
    trli_hdf5_restore_reason(reason);
    return group;
}

/* The shape of a part's dataset; returns its rank. */
static int part_shape(const trl_grid *grid, const trli_part *part, hsize_t shape[4])
{
    if (!part->averaged) return trli_hdf5_shape(grid, part->location, shape);
    for (int a = 0; a < 3; ++a) shape[2 - a] = (hsize_t)grid->cells[a];
    shape[3] = (hsize_t)part->ncomponents;
    return part->ncomponents > 1 ? 4 : 3;
}

static int64_t part_bytes(const trl_grid *grid, const trli_part *part)
{
    hsize_t shape[4];
    int64_t bytes = sizeof(double);
    for (int rank = part_shape(grid, part, shape), a = 0; a < rank; ++a) bytes *= (int64_t)shape[a];
    return bytes;
}

/* Make a contiguous dataset whose space is there at once, and say where its values begin. */
static bool create_dataset(hid_t group, const trl_grid *grid, trli_part *part)
{
    hsize_t shape[4];
    int rank = part_shape(grid, part, shape);
    hid_t space = H5Screate_simple(rank, shape, NULL), list = H5Pcreate(H5P_DATASET_CREATE), data = -1;
    if (space >= 0 && list >= 0 && H5Pset_alloc_time(list, H5D_ALLOC_TIME_EARLY) >= 0 &&
        H5Pset_fill_time(list, H5D_FILL_TIME_NEVER) >= 0)
        data = H5Dcreate2(group, part->name, H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, list, H5P_DEFAULT);
    haddr_t offset = data >= 0 ? H5Dget_offset(data) : HADDR_UNDEF;
    bool good = offset != HADDR_UNDEF && trli_hdf5_put_text(data, "location", trl_location_name(part->location));
    part->offset = (int64_t)offset;
    hid_t reason = trli_hdf5_keep_reason();
    if (data >= 0) H5Dclose(data);
    if (list >= 0) H5Pclose(list);
    if (space >= 0) H5Sclose(space);
    trli_hdf5_restore_reason(reason);
    return good;
}

static bool create_structure(hid_t file, const trl_grid *grid, trl_gidx step, int nstamps, const trli_stamp *stamps,
                             int nparts, trli_part *parts)
{
    hid_t fields = -1, cells = -1, writing = -1;
    bool averaged = false;
    for (int i = 0; i < nparts; ++i) averaged |= parts[i].averaged;
    bool good = trli_step_clean(file) && (writing = create_group(file, WRITING)) >= 0 &&
                (fields = create_group(file, WRITING_FIELDS)) >= 0 &&
                (!averaged || (cells = create_group(file, WRITING_CELLS)) >= 0) &&
                trli_hdf5_put(fields, "step", H5T_NATIVE_INT64, 1, &step);
    for (int i = 0; good && i < nstamps; ++i)
        good = trli_hdf5_put(fields, stamps[i].name, H5T_NATIVE_DOUBLE, 1, &stamps[i].value);
    for (int i = 0; good && i < nparts; ++i) good = create_dataset(parts[i].averaged ? cells : fields, grid, &parts[i]);
    hid_t reason = trli_hdf5_keep_reason();
    if (cells >= 0) H5Gclose(cells);
    if (fields >= 0) H5Gclose(fields);
    if (writing >= 0) H5Gclose(writing);
    trli_hdf5_restore_reason(reason);
    return good;
}

/* Close the file whether or not what was done with it is good. */
static trl_err close_after(trl_context *ctx, const char *path, hid_t file, bool good)
{
    trl_err err = good ? TRL_OK : trli_hdf5_fail(ctx, "write", path);
    trl_err closing = trli_hdf5_close(ctx, path, file);
    return err != TRL_OK ? err : closing;
}

/* On rank 0. */
static trl_err prepare(const trli_step_writer *writer, const char *path, trl_gidx step, int nstamps,
                       const trli_stamp *stamps, int nparts, trli_part *parts)
{
    const trl_grid *grid = &writer->layout->grid;
    int64_t bytes = 0;
    hid_t file;
    for (int i = 0; i < nparts; ++i) bytes += part_bytes(grid, &parts[i]);
    trl_err err = trli_hdf5_open_reserved(writer->ctx, path, bytes, nparts, &file);
    if (err != TRL_OK) return err;
    bool good = create_structure(file, grid, step, nstamps, stamps, nparts, parts);
    return close_after(writer->ctx, path, file, good);
}

/* On rank 0: the group gets its name last, so that what bears the name is whole. */
static trl_err publish(trl_context *ctx, const char *path, trl_gidx step)
{
    char name[TRLI_STEP_ROOM], averages[sizeof TRLI_CELLS_GROUP + TRLI_STEP_ROOM];
    hid_t file;
    trli_step_name(step, name);
    snprintf(averages, sizeof averages, TRLI_CELLS_GROUP "/%s", name);
    trl_err err = trli_hdf5_open_reserved(ctx, path, 0, 1, &file);
    if (err != TRL_OK) return err;
    bool good = trli_step_remove(file, step);
    if (good && H5Lexists(file, WRITING_CELLS, H5P_DEFAULT) > 0) {
        if (H5Lexists(file, TRLI_CELLS_GROUP, H5P_DEFAULT) == 0) {
            hid_t group = H5Gcreate2(file, TRLI_CELLS_GROUP, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
            good = group >= 0 && H5Gclose(group) >= 0;
        }
        good = good && H5Lmove(file, WRITING_CELLS, file, averages, H5P_DEFAULT, H5P_DEFAULT) >= 0;
    }
    good = good && H5Lmove(file, WRITING_FIELDS, file, name, H5P_DEFAULT, H5P_DEFAULT) >= 0 && trli_step_clean(file);
    return close_after(ctx, path, file, good);
}

/* A copy of a field with one more layer of points on the plus side of the axes it is staggered along. */
typedef struct extension {
    void *memory;
    trl_array *patch; /* [nlocal] */
} extension;

static void release_extension(trl_context *ctx, extension *e)
{
    trl_memory_free(ctx, &e->memory);
    free(e->patch);
    e->patch = NULL;
}

static void copy_points(const trl_array *from, const trl_box *box, const trl_array *to)
{
    for (trl_lidx k = box->lo[2]; k < box->hi[2]; ++k)
        for (trl_lidx j = box->lo[1]; j < box->hi[1]; ++j)
            for (trl_lidx i = box->lo[0]; i < box->hi[0]; ++i)
                ((double *)to->at)[trl_array_offset(to, i, j, k)] =
                    ((const double *)from->at)[trl_array_offset(from, i, j, k)];
}

static trl_err create_extension(trl_context *ctx, const trl_layout *layout, const trli_output_field *field,
                                extension *e)
{
    size_t points = 0;
    trl_err err = TRL_OK;
    *e = (extension){.patch = calloc((size_t)layout->nlocal + 1, sizeof *e->patch)};
    if (!e->patch) return trl_fail(ctx, TRL_ERR_MEMORY, NULL, "no memory to write field '%s'", field->name);
    for (int p = 0; p < layout->nlocal; ++p) {
        const trl_patch *patch = &layout->patch[layout->local[p]];
        trl_array *a = &e->patch[p];
        *a = (trl_array){.owned = trl_patch_owned(layout, patch, field->location), .type = TRL_F64};
        ptrdiff_t stride = 1;
        for (int axis = 0; axis < 3; ++axis) {
            a->held.hi[axis] = patch->cells[axis] + ((int)field->location >> axis & 1);
            a->stride[axis] = axis < layout->grid.dim ? stride : 0;
            stride *= a->held.hi[axis];
        }
        points += (size_t)stride;
    }
    TRL_TRY(trl_memory_alloc(ctx, points * sizeof(double), field->name, &e->memory));
    double *next = e->memory;
    for (int p = 0; p < layout->nlocal; ++p) {
        e->patch[p].at = next;
        next += trl_box_points(&e->patch[p].held);
        copy_points(&field->patch[p], &e->patch[p].owned, &e->patch[p]);
    }
done:
    return err;
}

/* Fetch the points of the plus-side neighbours (across periodic sides too) that cell averages need. Collective. */
static trl_err extend(trli_step_writer *writer, const trli_output_field *field, extension *e)
{
    trl_location location = field->location;
    trl_err err = TRL_OK;
    bool done = false;
    TRL_TRY(trl_context_agree(writer->ctx, create_extension(writer->ctx, writer->layout, field, e)));
    if (!writer->exchange[location]) {
        trl_exchange_field wanted = {.location = location, .footprint = {.n = 1}};
        for (int a = 0; a < 3; ++a) wanted.footprint.part[0].hi[a] = (int8_t)((int)location >> a & 1);
        TRL_TRY(trl_exchange_create(writer->ctx, writer->layout, 1, &wanted, &writer->exchange[location]));
    }
    const trl_array *const arrays[] = {e->patch};
    TRL_TRY(trl_exchange_begin(writer->exchange[location], arrays));
    while (!done) {
        TRL_TRY(trl_exchange_finish(writer->exchange[location], arrays, &done));
        if (!done) sched_yield();
    }
done:
    return err;
}

/* Mean over the corners of a point's neighbours at offsets 0 and 1 along the axes in bits; the value itself without
 * any. */
static double average(const trl_array *a, int bits, trl_lidx i, trl_lidx j, trl_lidx k)
{
    double sum = 0;
    int corners = 0;
    const double *at = (const double *)a->at + trl_array_offset(a, i, j, k);
    if (!bits) return *at;
    for (int corner = 0; corner < 8; ++corner) {
        if (corner & ~bits) continue;
        sum += at[trl_array_offset(a, corner & 1, corner >> 1 & 1, corner >> 2)];
        ++corners;
    }
    return sum / corners;
}

/* Values of one component on a box to every stride-th place; without an array zeros. */
static void pack(const trl_array *a, const trl_box *box, int bits, int stride, double *to)
{
    for (trl_lidx k = box->lo[2]; k < box->hi[2]; ++k)
        for (trl_lidx j = box->lo[1]; j < box->hi[1]; ++j)
            for (trl_lidx i = box->lo[0]; i < box->hi[0]; ++i, to += stride) *to = a ? average(a, bits, i, j, k) : 0;
}

/* Pack component c of a part for all local patches, one after the other. Collective where averages are needed. */
static trl_err pack_component(trli_step_writer *writer, const trli_part *part, int c, double *values)
{
    const trl_layout *layout = writer->layout;
    const trli_output_field *field = part->component[c];
    int bits = field && part->averaged ? (int)field->location : 0;
    extension e = {0};
    trl_err err = TRL_OK;
    if (bits) TRL_TRY(extend(writer, field, &e));
    for (int p = 0; p < layout->nlocal; ++p) {
        const trl_box box = trl_patch_owned(layout, &layout->patch[layout->local[p]], part->location);
        pack(!field ? NULL : bits ? &e.patch[p] : &field->patch[p], &box, bits, part->ncomponents, values + c);
        values += trl_box_points(&box) * part->ncomponents;
    }
done:
    release_extension(writer->ctx, &e);
    return err;
}

/* Write the packed values of one patch, as few pieces as the shape allows. Returns 0 or an errno. */
static int put_patch(const trl_layout *layout, const trl_patch *patch, const trli_part *part, int file,
                     const double *values)
{
    const trl_grid *grid = &layout->grid;
    const trl_box box = trl_patch_owned(layout, patch, part->location);
    const size_t value = (size_t)part->ncomponents;
    int64_t count[3], points[3], run, total = trl_box_points(&box);
    for (int a = 0; a < 3; ++a) {
        count[a] = box.hi[a] - box.lo[a];
        points[a] = a < grid->dim ? trl_grid_points(grid, part->location, a) : 1;
    }
    run = count[0];
    for (int a = 0; a < 2 && count[a] == points[a]; ++a) run *= count[a + 1];
    for (int64_t from = 0; from < total; from += run) {
        int64_t x = patch->first[0] + box.lo[0] + from % count[0];
        int64_t y = patch->first[1] + box.lo[1] + from / count[0] % count[1];
        int64_t z = patch->first[2] + box.lo[2] + from / (count[0] * count[1]);
        int64_t first = ((z * points[1] + y) * points[0] + x) * (int64_t)value;
        int number = trli_file_put(file, values + from * (int64_t)value, (size_t)run * value * sizeof *values,
                                   part->offset + first * (int64_t)sizeof *values);
        if (number) return number;
    }
    return 0;
}

static trl_err write_part(trli_step_writer *writer, const char *path, int file, const trli_part *part)
{
    const trl_layout *layout = writer->layout;
    void *values = NULL;
    int64_t points = 0;
    int number = 0;
    trl_err err;
    for (int p = 0; p < layout->nlocal; ++p) {
        const trl_box box = trl_patch_owned(layout, &layout->patch[layout->local[p]], part->location);
        points += trl_box_points(&box) * part->ncomponents;
    }
    err = trl_memory_alloc(writer->ctx, (size_t)points * sizeof(double), part->name, &values);
    TRL_TRY(trl_context_agree(writer->ctx, err));
    for (int c = 0; c < part->ncomponents; ++c) TRL_TRY(pack_component(writer, part, c, values));
    const double *next = values;
    for (int p = 0; p < layout->nlocal && !number; ++p) {
        const trl_patch *patch = &layout->patch[layout->local[p]];
        const trl_box box = trl_patch_owned(layout, patch, part->location);
        number = put_patch(layout, patch, part, file, next);
        next += trl_box_points(&box) * part->ncomponents;
    }
    if (number) err = trli_file_fail(writer->ctx, "write", path, number);
    err = trl_context_agree(writer->ctx, err);
done:
    trl_memory_free(writer->ctx, &values);
    return err;
}

static trl_err share_offsets(trl_context *ctx, int nparts, trli_part *parts)
{
    trl_err err = TRL_OK;
    int64_t *offset = calloc((size_t)nparts + 1, sizeof *offset);
    if (!offset) err = trl_fail(ctx, TRL_ERR_MEMORY, NULL, "no memory to write %d fields", nparts);
    TRL_TRY(trl_context_agree(ctx, err));
    for (int i = 0; i < nparts; ++i) offset[i] = parts[i].offset;
    if (MPI_Bcast(offset, nparts, MPI_INT64_T, 0, trl_context_comm(ctx)) != MPI_SUCCESS)
        TRL_TRY(trl_fail(ctx, TRL_ERR_MPI, NULL, "the ranks could not agree on where fields are written"));
    for (int i = 0; i < nparts; ++i) parts[i].offset = offset[i];
done:
    free(offset);
    return err;
}

trl_err trli_step_write(trli_step_writer *writer, const char *path, trl_gidx step, int nstamps,
                        const trli_stamp *stamps, int nparts, trli_part *parts)
{
    trl_context *ctx = writer->ctx;
    bool first = trl_context_rank(ctx) == 0;
    int file = -1;
    trl_err err = first ? prepare(writer, path, step, nstamps, stamps, nparts, parts) : TRL_OK;
    TRL_TRY(trl_context_agree(ctx, err));
    TRL_TRY(share_offsets(ctx, nparts, parts));
    file = open(path, O_WRONLY | O_CLOEXEC);
    if (file < 0) err = trli_file_fail(ctx, "write", path, errno);
    TRL_TRY(trl_context_agree(ctx, err));
    for (int i = 0; i < nparts; ++i) TRL_TRY(write_part(writer, path, file, &parts[i]));
    /* The values reach the disk before the name that promises them. */
    int number = fsync(file) ? errno : 0;
    if (close(file) && !number) number = errno;
    file = -1;
    if (number) err = trli_file_fail(ctx, "write", path, number);
    TRL_TRY(trl_context_agree(ctx, err));
    if (first) err = publish(ctx, path, step);
    err = trl_context_agree(ctx, err);
done:
    if (file >= 0) close(file);
    return err;
}

void trli_step_writer_release(trli_step_writer *writer)
{
    for (int i = 0; i < 8; ++i)
        if (writer->exchange[i]) trl_exchange_destroy(&writer->exchange[i]);
}
