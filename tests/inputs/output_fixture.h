/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* What the tests of output files share: fields with known values at every point, and limits on the size of files. */
#ifndef OUTPUT_FIXTURE_H
#define OUTPUT_FIXTURE_H

#include <dirent.h>
#include <math.h>
#include <signal.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <hdf5.h>

#include "trl_test.h"

#include "../spatialops/owners_fixture.h"

#include <aside_impl.h>
#include <output_impl.h>

typedef struct fixture_field {
    trli_output_field field;
    trl_array *patch;
    double **memory;
    int npatches;
} fixture_field;

/* The value of a field at a global point; salt tells fields apart. */
static inline double fixture_value(int salt, trl_gidx i, trl_gidx j, trl_gidx k)
{
    return sin(1.0 + 0.7 * (double)i + 1.3 * (double)j + 2.1 * (double)k + 5.0 * salt);
}

static inline bool fixture_all(bool local)
{
    int all = local;
    MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    return all;
}

static inline trl_grid fixture_grid(int dim, int nx, int ny, int nz, bool periodic_x)
{
    trl_grid grid = {
        .dim = dim, .cells = {nx, dim > 1 ? ny : 1, dim > 2 ? nz : 1}, .periodic = {periodic_x, false, false}};
    for (int a = 0; a < 3; ++a) {
        grid.length[a] = a < dim ? 1.0 + a : 1;
        grid.origin[a] = a < dim ? 0.5 * a : 0;
        grid.spacing[a] = grid.length[a] / (double)grid.cells[a];
    }
    return grid;
}

static inline trl_layout *fixture_layout(trl_context *ctx, const trl_grid *grid)
{
    trl_layout *layout = NULL;
    ck_ok(trl_layout_create(ctx, grid, NULL, NULL, &layout));
    return layout;
}

/* Visit the owned points: set them (values NaN elsewhere), or compare their bits. */
static inline bool fixture_visit(const trl_layout *layout, const fixture_field *f, int salt, bool set)
{
    for (int p = 0; p < f->npatches; ++p) {
        const trl_patch *patch = &layout->patch[p];
        const trl_array *a = &f->patch[p];
        for (trl_lidx k = a->owned.lo[2]; k < a->owned.hi[2]; ++k)
            for (trl_lidx j = a->owned.lo[1]; j < a->owned.hi[1]; ++j)
                for (trl_lidx i = a->owned.lo[0]; i < a->owned.hi[0]; ++i) {
                    double v = fixture_value(salt, patch->first[0] + i, patch->first[1] + j, patch->first[2] + k);
                    double *at = (double *)a->at + trl_array_offset(a, i, j, k);
                    if (set) *at = v;
                    if (memcmp(at, &v, sizeof v)) return false;
                }
    }
    return true;
}

static inline fixture_field fixture_create(const trl_layout *layout, const char *name, trl_location location, int salt)
{
    enum { GHOSTS = 2 };
    int n = layout->nlocal;
    fixture_field f = {
        .patch = calloc((size_t)n, sizeof *f.patch), .memory = calloc((size_t)n, sizeof *f.memory), .npatches = n};
    for (int p = 0; p < n; ++p) {
        trl_array *a = &f.patch[p];
        a->owned = a->held = trl_patch_owned(layout, &layout->patch[p], location);
        ptrdiff_t stride = 1;
        for (int axis = 0; axis < layout->grid.dim; ++axis) {
            a->held.lo[axis] -= GHOSTS;
            a->held.hi[axis] += GHOSTS;
            a->stride[axis] = stride;
            stride *= a->held.hi[axis] - a->held.lo[axis];
        }
        f.memory[p] = malloc((size_t)stride * sizeof(double));
        for (ptrdiff_t i = 0; i < stride; ++i) f.memory[p][i] = NAN;
        a->at = f.memory[p] - trl_array_offset(a, a->held.lo[0], a->held.lo[1], a->held.lo[2]);
    }
    f.field = (trli_output_field){.name = name, .location = location, .patch = f.patch};
    if (salt >= 0) fixture_visit(layout, &f, salt, true);
    return f;
}

static inline void fixture_destroy(fixture_field *f)
{
    for (int p = 0; p < f->npatches; ++p) free(f->memory[p]);
    free(f->memory);
    free(f->patch);
}

/* Files above this size fail as on a full disk; 0: no limit. */
static inline void fixture_limit(rlim_t bytes)
{
    struct rlimit limit;
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = bytes ? bytes : limit.rlim_max;
    setrlimit(RLIMIT_FSIZE, &limit);
}

/* The whole of a file (NULL: cannot be read), NUL-terminated. */
static inline char *fixture_read(const char *path, size_t *size)
{
    FILE *in = fopen(path, "rb");
    *size = 0;
    if (!in) return NULL;
    fseek(in, 0, SEEK_END);
    *size = (size_t)ftell(in);
    rewind(in);
    char *text = calloc(*size + 1, 1);
    size_t got = fread(text, 1, *size, in);
    fclose(in);
    if (got == *size) return text;
    free(text);
    return NULL;
}

static inline void fixture_write(const char *path, const char *text, size_t size)
{
    FILE *out = fopen(path, "wb");
    fwrite(text, 1, size, out);
    fclose(out);
}

static inline bool fixture_exists(const char *path)
{
    return access(path, F_OK) == 0;
}

/* How many entries a folder has, hidden ones included. */
static inline int fixture_entries(const char *folder)
{
    int n = -2; /* itself and the one above */
    DIR *stream = opendir(folder);
    while (stream && readdir(stream)) ++n;
    if (stream) closedir(stream);
    return n;
}

static const char *const fixture_names[8] = {"T", "u", "v", "ez", "w", "ey", "ex", "n"};

/* Write a field at each location of a grid as step 7, the one at location i with salt i, and close the file. */
static inline void fixture_write_locations(const trl_layout *layout, trli_fields_file *file)
{
    const int n = 1 << layout->grid.dim;
    fixture_field f[8];
    trli_output_field fields[8];
    for (int i = 0; i < n; ++i) {
        f[i] = fixture_create(layout, fixture_names[i], (trl_location)i, i);
        fields[i] = f[i].field;
    }
    ck_ok(trli_fields_write(file, 7, 0.25, n, fields));
    ck_ok(trli_fields_close(&file));
    for (int i = 0; i < n; ++i) fixture_destroy(&f[i]);
}

/* Write a field as step 2 while a rank cannot write to its end: folder/fields keeps only the step before. */
static inline void fixture_fail_step(trli_fields_file *file, const char *folder, int rank, const fixture_field *f)
{
    char path[64], message[128];
    if (trl_context_rank(test_ctx) == rank) fixture_limit(4096);
    trl_err err = trli_fields_write(file, 2, 1, 1, &f->field);
    fixture_limit(0);
    ck_assert_int_eq(err, TRL_ERR_IO);
    snprintf(path, sizeof path, "%s/fields", folder);
    snprintf(message, sizeof message, "'%s/00000002.nc': File too large", path);
    ck_assert_ptr_nonnull(strstr(test_messages(), message));
    trl_context_clear_diagnostics(test_ctx);
    MPI_Barrier(MPI_COMM_WORLD);
    ck_assert(fixture_all(fixture_entries(path) == 1));
}

/* What a process that was killed leaves of a file that it wrote: a name with the number of no process. */
static inline void fixture_leave_aside(const char *folder)
{
    char name[TRLI_ASIDE_ROOM], path[TRLI_ASIDE_ROOM + 128];
    trli_aside_name(name);
    const char *host_end = strchr(name + strlen(".trellis-"), '-');
    snprintf(path, sizeof path, "%s/%.*s-4194305-0123456789abcdef", folder, (int)(host_end - name), name);
    fixture_write(path, "half", 4);
}

/* Rank 0 does a thing to files while the others wait. */
#define ON_FIRST_RANK(...)                     \
    do {                                       \
        MPI_Barrier(MPI_COMM_WORLD);           \
        if (trl_context_rank(test_ctx) == 0) { \
            __VA_ARGS__;                       \
        }                                      \
        MPI_Barrier(MPI_COMM_WORLD);           \
    } while (0)

#endif
