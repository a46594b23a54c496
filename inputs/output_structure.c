/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* What netCDF-4 with CF conventions wants of an HDF5 file: dimension scales, in order, with ids, attached to each
 * variable. */
#include <string.h>
#include <sys/mman.h>

#include <hdf5_hl.h>

#include "memory_impl.h"
#include "output_hdf5_impl.h"

/* Chunks are bounded so that readers of a part need not read, and HDF5 can hold, all of a large patch. Those that are
 * compressed are read as a whole, and are what ranks and workers share out. */
enum { MOST_CHUNK_BYTES = 1 << 25, MOST_COMPRESSED_BYTES = 1 << 20 };

/* The scales: time, then the axes with their points in cells and on faces. */
enum { TIME, CELLS, FACES = CELLS + 3, SCALES = FACES + 3 };

static const char *const scale_name[SCALES] = {"time", "x", "y", "z", "xf", "yf", "zf"};

/* An entry of a scale's REFERENCE_LIST: a variable along one of whose axes it lies. */
typedef struct reference {
    hobj_ref_t variable;
    int axis;
} reference;

/* The scales of a file, and the variables along them. H5DSattach_scale would rewrite the whole list of a scale for each
 * variable. */
typedef struct scale_set {
    trli_memory_file *memory; /* that they are in */
    hid_t data[SCALES];       /* -1: not there */
    hobj_ref_t self[SCALES];
    reference *user[SCALES];
    int32_t users[SCALES], room[SCALES];
} scale_set;

static int scale_of(trl_location location, int axis)
{
    return ((int)location >> axis & 1 ? FACES : CELLS) + axis;
}

static void plan_variable(const trl_grid *grid, const int patches[3], int compression, const trli_output_field *field,
                          trli_file_variable *v)
{
    const int64_t most = compression ? MOST_COMPRESSED_BYTES : MOST_CHUNK_BYTES;
    int64_t bytes = sizeof(double);
    const char *word = field->word ? field->word : trl_location_name(field->location);
    *v = (trli_file_variable){
        .name = field->name, .location = field->location, .word = word, .optional = field->found != NULL};
    for (int a = 0; a < 3; ++a) {
        v->points[a] = a < grid->dim ? trl_grid_points(grid, field->location, a) : 1;
        v->chunk[a] = a < grid->dim ? (v->points[a] + patches[a] - 1) / patches[a] : 1;
        bytes *= v->chunk[a];
    }
    for (int a = 2; a >= 0 && bytes > most; --a) {
        int64_t row = bytes / v->chunk[a], fit = most / row;
        v->chunk[a] = fit > 1 ? fit : 1;
        bytes = row * v->chunk[a];
    }
    for (int a = 0; a < 3; ++a) v->chunks[a] = (v->points[a] + v->chunk[a] - 1) / v->chunk[a];
}

int64_t trli_file_variable_chunks(const trli_file_variable *variable)
{
    return variable->chunks[0] * variable->chunks[1] * variable->chunks[2];
}

int64_t trli_file_variable_chunk_points(const trli_file_variable *variable)
{
    return variable->chunk[0] * variable->chunk[1] * variable->chunk[2];
}

trl_err trli_file_variables_create(trl_context *ctx, const trl_grid *grid, const int patches[3], int compression,
                                   int ntimes, int n, const trli_output_field *fields, trli_file_variable **variables)
{
    trli_file_variable *v = trli_new(ctx, (size_t)n + 1, sizeof *v);
    int64_t chunks = 0;
    for (int i = 0; v && i < n; ++i) {
        plan_variable(grid, patches, compression, &fields[i], &v[i]);
        chunks += trli_file_variable_chunks(&v[i]);
    }
    /* One block for all, which ranks share at once. */
    int64_t *place = v ? trli_new(ctx, (size_t)ntimes * (size_t)chunks + 1, sizeof *place) : NULL;
    for (int i = 0; place && i < n; ++i)
        v[i].place = i ? v[i - 1].place + ntimes * trli_file_variable_chunks(&v[i - 1]) : place;
    if (place && n == 0) trli_free(place);
    *variables = v;
    if (place) return TRL_OK;
    trli_file_variables_release(variables);
    return trli_no_memory(ctx, NULL, "to write %d fields", n);
}

void trli_file_variables_release(trli_file_variable **variables)
{
    if (*variables) trli_free((*variables)[0].place);
    trli_free(*variables);
    *variables = NULL;
}

/* A list for datasets that keep the order of their attributes; chunks of these sizes unless NULL. The filters are those
 * that output_deflate.c applies. */
static hid_t dataset_list(int rank, const hsize_t *chunk, int compression)
{
    hid_t list = H5Pcreate(H5P_DATASET_CREATE);
    if (list < 0) return -1;
    if (H5Pset_attr_creation_order(list, H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED) >= 0 &&
        H5Pset_obj_track_times(list, false) >= 0 && (!chunk || H5Pset_chunk(list, rank, chunk) >= 0) &&
        (!compression || (H5Pset_shuffle(list) >= 0 && H5Pset_deflate(list, (unsigned)compression) >= 0)))
        return list;
    H5Pclose(list);
    return -1;
}

/* A dataset; along the time axis, which is the first if there is one, it may grow. */
static hid_t create_dataset(hid_t file, const char *name, hid_t type, int rank, const hsize_t *shape, bool timed,
                            const hsize_t *chunk, int compression)
{
    hsize_t most[4];
    for (int a = 0; a < rank; ++a) most[a] = timed && a == 0 ? H5S_UNLIMITED : shape[a];
    hid_t space = H5Screate_simple(rank, shape, most), list = dataset_list(rank, timed ? chunk : NULL, compression),
          data = -1;
    if (space >= 0 && list >= 0) data = H5Dcreate2(file, name, type, space, H5P_DEFAULT, list, H5P_DEFAULT);
    hid_t reason = trli_hdf5_keep_reason();
    if (list >= 0) H5Pclose(list);
    if (space >= 0) H5Sclose(space);
    trli_hdf5_restore_reason(reason);
    return data;
}

/* A short row of numbers with its values. */
static hid_t create_row(hid_t file, const char *name, hid_t type, hsize_t n, bool timed, const void *values)
{
    const hsize_t most = 1024, chunk = n < most ? n : most;
    hid_t data = create_dataset(file, name, type, 1, &n, timed, &chunk, 0);
    if (data < 0 || H5Dwrite(data, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0) return data;
    hid_t reason = trli_hdf5_keep_reason();
    H5Dclose(data);
    trli_hdf5_restore_reason(reason);
    return -1;
}

/* No unit is known of the deck's lengths and times: "1" says so, and readers do not take time for a date. Only time
 * says which axis it is: VTK takes others that do for degrees on a sphere. */
static bool describe_row(hid_t data, const char *what)
{
    return data >= 0 && trli_hdf5_put_text(data, "long_name", what) && trli_hdf5_put_text(data, "units", "1");
}

static bool make_scale(hid_t data, int scale, int id)
{
    int32_t number = id;
    return H5DSset_scale(data, scale_name[scale]) >= 0 &&
           trli_hdf5_put(data, "_Netcdf4Dimid", H5T_NATIVE_INT32, &number);
}

/* Note that a variable lies along a scale. */
static bool add_user(scale_set *set, int scale, const reference *user)
{
    trli_memory_file *m = set->memory;
    if (!trli_make_room(m->ctx, &set->user[scale], set->users[scale], 1, &set->room[scale], sizeof *user)) {
        m->no_memory = true;
        return false;
    }
    set->user[scale][set->users[scale]++] = *user;
    return true;
}

/* Say along which scales the axes of a variable lie. */
static bool attach_scales(hid_t file, scale_set *set, const char *name, hid_t data, int rank, const int scale[4])
{
    const hsize_t length = (hsize_t)rank;
    hvl_t list[4];
    reference user;
    bool good = H5Rcreate(&user.variable, file, name, H5R_OBJECT, -1) >= 0;
    for (int a = 0; a < rank; ++a) {
        list[a] = (hvl_t){.len = 1, .p = &set->self[scale[a]]};
        user.axis = a;
        good = good && add_user(set, scale[a], &user);
    }
    hid_t type = good ? H5Tvlen_create(H5T_STD_REF_OBJ) : -1;
    good = good && type >= 0 && trli_hdf5_put_row(data, "DIMENSION_LIST", type, length, list);
    hid_t reason = trli_hdf5_keep_reason();
    if (type >= 0) H5Tclose(type);
    trli_hdf5_restore_reason(reason);
    return good;
}

/* Write to each scale the list of the variables along it. */
static bool list_users(const scale_set *set)
{
    hid_t type = H5Tcreate(H5T_COMPOUND, sizeof(reference));
    bool good = type >= 0 && H5Tinsert(type, "dataset", HOFFSET(reference, variable), H5T_STD_REF_OBJ) >= 0 &&
                H5Tinsert(type, "dimension", HOFFSET(reference, axis), H5T_NATIVE_INT) >= 0;
    for (int s = 0; good && s < SCALES; ++s)
        good = set->users[s] == 0 ||
               trli_hdf5_put_row(set->data[s], "REFERENCE_LIST", type, (hsize_t)set->users[s], set->user[s]);
    hid_t reason = trli_hdf5_keep_reason();
    if (type >= 0) H5Tclose(type);
    trli_hdf5_restore_reason(reason);
    return good;
}

static hid_t create_coordinate(trli_memory_file *memory, hid_t file, const trl_grid *grid, int scale, int id)
{
    const int axis = (scale - CELLS) % 3;
    const bool on_face = scale >= FACES;
    trl_gidx n = trl_grid_points(grid, on_face ? (trl_location)(1 << axis) : TRL_CELL, axis);
    double *at = trli_new(memory->ctx, (size_t)n, sizeof *at);
    char what[32];
    memory->no_memory |= !at;
    if (!at) return -1;
    for (trl_gidx i = 0; i < n; ++i)
        at[i] = grid->origin[axis] + ((double)i + (on_face ? 0 : 0.5)) * grid->spacing[axis];
    hid_t data = create_row(file, scale_name[scale], H5T_NATIVE_DOUBLE, (hsize_t)n, false, at);
    trli_free(at);
    snprintf(what, sizeof what, "%c %s", 'x' + axis, on_face ? "of faces" : "of cell centres");
    if (data < 0 || (make_scale(data, scale, id) && describe_row(data, what))) return data;
    hid_t reason = trli_hdf5_keep_reason();
    H5Dclose(data);
    trli_hdf5_restore_reason(reason);
    return -1;
}

/* time, step, and the coordinates that the variables need. */
static bool create_scales(hid_t file, const trli_contents *c, scale_set *set)
{
    bool wanted[SCALES] = {false};
    int id = 0;
    for (int i = 0; i < c->nvariables; ++i)
        for (int a = 0; a < c->grid->dim; ++a) wanted[scale_of(c->variable[i].location, a)] = true;
    hid_t time = set->data[TIME] = create_row(file, "time", H5T_NATIVE_DOUBLE, (hsize_t)c->ntimes, true, c->time);
    bool good = time >= 0 && make_scale(time, TIME, id++) && describe_row(time, "time of the problem") &&
                trli_hdf5_put_text(time, "axis", "T") && H5Rcreate(&set->self[TIME], file, "time", H5R_OBJECT, -1) >= 0;
    for (int s = CELLS; good && s < SCALES; ++s) {
        if (!wanted[s]) continue;
        set->data[s] = create_coordinate(set->memory, file, c->grid, s, id++);
        good = set->data[s] >= 0 && H5Rcreate(&set->self[s], file, scale_name[s], H5R_OBJECT, -1) >= 0;
    }
    if (!good) return false;
    hid_t step = create_row(file, "step", H5T_NATIVE_INT64, (hsize_t)c->ntimes, true, c->step);
    good = describe_row(step, "number of the time step") &&
           attach_scales(file, set, "step", step, 1, (const int[4]){TIME});
    hid_t reason = trli_hdf5_keep_reason();
    if (step >= 0) H5Dclose(step);
    trli_hdf5_restore_reason(reason);
    return good;
}

/* "T", or "q, component x". */
static bool describe_variable(hid_t data, const trli_file_variable *v)
{
    char what[256];
    const char *dot = strrchr(v->name, '.');
    if (dot)
        snprintf(what, sizeof what, "%.*s, component %s", (int)(dot - v->name), v->name, dot + 1);
    else
        snprintf(what, sizeof what, "%s", v->name);
    return trli_hdf5_put_text(data, "long_name", what) && trli_hdf5_put_text(data, "location", v->word) &&
           (!v->optional || trli_hdf5_put_text(data, "optional", "yes"));
}

/* Let HDF5 place a chunk of so many bytes; filters: bits of those that it did not go through. */
static bool place_chunk(hid_t data, int dim, int time, const trli_file_variable *v, int64_t number, int64_t bytes,
                        uint32_t filters, trli_memory_file *memory)
{
    const trl_gidx at[3] = {number % v->chunks[0], number / v->chunks[0] % v->chunks[1],
                            number / (v->chunks[0] * v->chunks[1])};
    hsize_t offset[4] = {(hsize_t)time};
    for (int a = 0; a < dim; ++a) offset[dim - a] = (hsize_t)(at[a] * v->chunk[a]);
    memory->place = -1;
    if (H5Dwrite_chunk(data, H5P_DEFAULT, filters, offset, (size_t)bytes, memory->values) < 0 || memory->place < 0)
        return false;
    v->place[time * trli_file_variable_chunks(v) + number] = memory->place;
    return true;
}

/* Values that are not compressed have places before there are any. */
static bool place_chunks(hid_t data, int dim, int ntimes, const trli_file_variable *v, trli_memory_file *memory)
{
    const int64_t bytes = trli_file_variable_chunk_points(v) * (int64_t)sizeof(double);
    for (int t = 0; t < ntimes; ++t)
        for (int64_t c = 0; c < trli_file_variable_chunks(v); ++c)
            if (!place_chunk(data, dim, t, v, c, bytes, 0, memory)) return false;
    return true;
}

static bool create_variable(hid_t file, const trli_contents *c, const trli_file_variable *v, scale_set *set,
                            trli_memory_file *memory)
{
    const int dim = c->grid->dim;
    hsize_t shape[4] = {(hsize_t)c->ntimes}, chunk[4] = {1};
    int scale[4] = {TIME};
    for (int a = 0; a < dim; ++a) {
        scale[dim - a] = scale_of(v->location, a);
        shape[dim - a] = (hsize_t)v->points[a];
        chunk[dim - a] = (hsize_t)v->chunk[a];
    }
    hid_t data = create_dataset(file, v->name, H5T_NATIVE_DOUBLE, dim + 1, shape, true, chunk, c->compression);
    bool good = data >= 0 && describe_variable(data, v) && attach_scales(file, set, v->name, data, dim + 1, scale) &&
                (c->compression || place_chunks(data, dim, c->ntimes, v, memory));
    hid_t reason = trli_hdf5_keep_reason();
    if (data >= 0) H5Dclose(data);
    trli_hdf5_restore_reason(reason);
    return good;
}

static bool fill_file(hid_t file, const trli_contents *c, trli_memory_file *memory)
{
    scale_set set = {.memory = memory};
    for (int s = 0; s < SCALES; ++s) set.data[s] = -1;
    bool good = trli_hdf5_put_text(file, "Conventions", "CF-1.8") && trli_hdf5_put_grid(file, c->grid);
    for (int i = 0; good && i < c->nstamps; ++i)
        good = trli_hdf5_put(file, c->stamp[i].name, H5T_NATIVE_DOUBLE, &c->stamp[i].value);
    good = good && create_scales(file, c, &set);
    for (int i = 0; good && i < c->nvariables; ++i) good = create_variable(file, c, &c->variable[i], &set, memory);
    good = good && list_users(&set);
    hid_t reason = trli_hdf5_keep_reason();
    for (int s = 0; s < SCALES; ++s) {
        if (set.data[s] >= 0) H5Dclose(set.data[s]);
        trli_free(set.user[s]);
    }
    trli_hdf5_restore_reason(reason);
    return good;
}

/* What a step of the making has come to. */
static trl_err result(const trli_structure *s, bool good)
{
    if (s->memory.no_memory) return trli_no_memory(s->ctx, NULL, "to write '%s'", s->path);
    return good ? TRL_OK : trli_hdf5_fail(s->ctx, "make the structure of", s->path);
}

trl_err trli_structure_open(trl_context *ctx, const char *path, const trli_contents *contents, trli_structure *s)
{
    int64_t most = 1;
    for (int i = 0; i < contents->nvariables; ++i) {
        int64_t points = trli_file_variable_chunk_points(&contents->variable[i]);
        most = points > most ? points : most;
    }
    /* These values are never read: the mapping gives a chunk an address, and takes no memory. */
    *s = (trli_structure){.ctx = ctx, .path = path, .dim = contents->grid->dim, .file = -1};
    s->bytes = (size_t)most * sizeof(double);
    s->values = mmap(NULL, s->bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (s->values == MAP_FAILED) {
        s->values = NULL;
        return trli_no_memory(ctx, NULL, "to write '%s'", path);
    }
    s->memory = (trli_memory_file){.ctx = ctx, .values = s->values};
    s->file = trli_memory_file_create(&s->memory);
    return result(s, s->file >= 0 && fill_file(s->file, contents, &s->memory));
}

trl_err trli_structure_place(trli_structure *s, const trli_file_variable *v, int time, int64_t from, int n,
                             const int64_t *bytes)
{
    hid_t data = H5Dopen2(s->file, v->name, H5P_DEFAULT);
    bool good = data >= 0;
    for (int i = 0; good && i < n; ++i) {
        const bool whole = bytes[i] == trli_file_variable_chunk_points(v) * (int64_t)sizeof(double);
        good = place_chunk(data, s->dim, time, v, from + i, bytes[i], whole ? TRLI_NO_FILTERS : 0, &s->memory);
    }
    trl_err err = result(s, good);
    if (data >= 0) H5Dclose(data);
    return err;
}

trl_err trli_structure_close(trli_structure *s)
{
    const hid_t file = s->file;
    s->file = -1;
    return result(s, H5Fclose(file) >= 0);
}

void trli_structure_release(trli_structure *s)
{
    if (s->file >= 0) H5Fclose(s->file);
    trli_memory_file_release(&s->memory);
    if (s->values) munmap(s->values, s->bytes);
    *s = (trli_structure){.file = -1};
}
