/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "files_impl.h"
#include "output_hdf5_impl.h"

struct trli_fields_file {
    trl_context *ctx;
    trli_step_writer writer;
    char *path;
    /* rank 0: */
    char *xdmf_path;
    FILE *steps; /* writes the text of fields.xdmf between head and tail */
    char *steps_text;
    size_t steps_length;
    trl_gidx last_step; /* in that text; -1: none */
};

/* Start the text of the steps anew. */
static trl_err restart_steps(trli_fields_file *file)
{
    if (file->steps) fclose(file->steps);
    free(file->steps_text);
    file->steps_text = NULL;
    file->last_step = -1;
    file->steps = open_memstream(&file->steps_text, &file->steps_length);
    return file->steps ? TRL_OK : trl_fail(file->ctx, TRL_ERR_MEMORY, NULL, "no memory to write '%s'", file->xdmf_path);
}

/* Append the text of one step, or of all that the file holds. */
static trl_err add_steps(trli_fields_file *file, hid_t data, trl_gidx step)
{
    const trl_grid *grid = &file->writer.layout->grid;
    trl_gidx *steps = NULL;
    int n = 0;
    trl_err err = TRL_OK;
    if (step > file->last_step) {
        TRL_TRY(trli_xdmf_step(file->ctx, grid, data, file->path, step, file->steps));
        file->last_step = step;
        goto done;
    }
    TRL_TRY(restart_steps(file));
    TRL_TRY(trli_hdf5_steps(file->ctx, file->path, data, &steps, &n));
    for (int i = 0; i < n; ++i) {
        TRL_TRY(trli_xdmf_step(file->ctx, grid, data, file->path, steps[i], file->steps));
        file->last_step = steps[i];
    }
done:
    free(steps);
    return err;
}

static trl_err write_xdmf(trli_fields_file *file)
{
    if (fflush(file->steps) || ferror(file->steps))
        return trl_fail(file->ctx, TRL_ERR_MEMORY, NULL, "no memory to write '%s'", file->xdmf_path);
    return trli_xdmf_write(file->ctx, file->xdmf_path, file->steps_text);
}

static trl_err drop_later(trli_fields_file *file, hid_t data, trl_gidx after_step)
{
    trl_gidx *steps;
    int n;
    trl_err err = trli_hdf5_steps(file->ctx, file->path, data, &steps, &n);
    if (err != TRL_OK) return err;
    bool good = trli_step_clean(data);
    for (int i = n - 1; good && i >= 0 && steps[i] > after_step; --i) good = trli_step_remove(data, steps[i]);
    if (!good) err = trli_hdf5_fail(file->ctx, "write", file->path);
    free(steps);
    return err;
}

/* Continue the file of an earlier run. It is looked at first without changing it. */
static trl_err continue_file(trli_fields_file *file, trl_gidx after_step)
{
    const trl_grid *grid = &file->writer.layout->grid;
    hid_t data;
    trl_err err;
    TRL_TRY(trli_hdf5_open(file->ctx, file->path, &data));
    err = trli_hdf5_check_grid(file->ctx, grid, data, file->path);
    H5Fclose(data);
    TRL_TRY(err);
    TRL_TRY(trli_hdf5_open_reserved(file->ctx, file->path, 0, 0, &data));
    err = drop_later(file, data, after_step);
    if (err == TRL_OK) err = add_steps(file, data, -1);
    trl_err closing = trli_hdf5_close(file->ctx, file->path, data);
    TRL_TRY(err != TRL_OK ? err : closing);
    TRL_TRY(write_xdmf(file));
done:
    return err;
}

static trl_err start_file(trli_fields_file *file)
{
    /* What it says of an older fields.h5 is not true of the new one. */
    if (unlink(file->xdmf_path) && errno != ENOENT) return trli_file_fail(file->ctx, "replace", file->xdmf_path, errno);
    return trli_hdf5_create(file->ctx, &file->writer.layout->grid, file->path);
}

/* On rank 0. */
static trl_err open_files(trli_fields_file *file, const char *folder, bool append, trl_gidx after_step)
{
    trl_err err;
    TRL_TRY(trli_folder_create(file->ctx, folder));
    TRL_TRY(trli_format(file->ctx, &file->xdmf_path, "%s/fields.xdmf", folder));
    TRL_TRY(restart_steps(file));
    TRL_TRY(append && access(file->path, F_OK) == 0 ? continue_file(file, after_step) : start_file(file));
done:
    return err;
}

static void destroy(trli_fields_file **file)
{
    trli_fields_file *f = *file;
    if (!f) return;
    trli_step_writer_release(&f->writer);
    if (f->steps) fclose(f->steps);
    free(f->steps_text);
    free(f->xdmf_path);
    free(f->path);
    free(f);
    *file = NULL;
}

trl_err trli_fields_create(trl_context *ctx, const trl_layout *layout, const char *folder, bool append,
                           trl_gidx after_step, trli_fields_file **file)
{
    trl_err err = TRL_OK;
    *file = calloc(1, sizeof **file);
    if (*file) {
        **file = (trli_fields_file){.ctx = ctx, .writer = {.ctx = ctx, .layout = layout}, .last_step = -1};
        err = trli_format(ctx, &(*file)->path, "%s/fields.h5", folder);
    } else {
        err = trl_fail(ctx, TRL_ERR_MEMORY, NULL, "no memory to write fields to '%s'", folder);
    }
    if (err == TRL_OK && trl_context_rank(ctx) == 0) err = open_files(*file, folder, append, after_step);
    err = trl_context_agree(ctx, err);
    if (err != TRL_OK) destroy(file);
    return err;
}

static const trli_output_field *find_field(int n, const trli_output_field *fields, const char *stem, int length,
                                           char axis)
{
    for (int i = 0; i < n; ++i) {
        const char *name = fields[i].name;
        if (strncmp(name, stem, (size_t)length) == 0 && name[length] == '.' && name[length + 1] == axis &&
            !name[length + 2])
            return &fields[i];
    }
    return NULL;
}

/* Whether a field is a component of a vector of which every component is there. */
static bool find_vector(int dim, int n, const trli_output_field *fields, const trli_output_field *field,
                        const trli_output_field *component[3], int *length)
{
    const char *dot = strrchr(field->name, '.');
    if (!dot || !dot[1] || !strchr("xyz", dot[1]) || dot[2]) return false;
    *length = (int)(dot - field->name);
    for (int a = 0; a < 3; ++a) {
        component[a] = a < dim ? find_field(n, fields, field->name, *length, (char)('x' + a)) : NULL;
        if (a < dim && !component[a]) return false;
    }
    return true;
}

/* What fields.xdmf needs beside the fields' own datasets: vectors in one piece; other locations, and grids of fewer
 * axes than its mesh. */
static trl_err plan_averages(trli_fields_file *file, int n, const trli_output_field *fields, int *nparts,
                             trli_part *parts)
{
    int dim = file->writer.layout->grid.dim, length;
    trl_err err = TRL_OK;
    for (int i = 0; i < n; ++i) {
        trli_part part = {.location = TRL_CELL, .averaged = true, .ncomponents = 1};
        bool vector = find_vector(dim, n, fields, &fields[i], part.component, &length);
        if (vector ? part.component[0] != &fields[i] : dim == 3 && fields[i].location == TRL_CELL) continue;
        char *name;
        if (vector) {
            part.ncomponents = 3;
            TRL_TRY(trli_format(file->ctx, &name, "%.*s", length, fields[i].name));
        } else {
            part.component[0] = &fields[i];
            part.component[1] = part.component[2] = NULL;
            TRL_TRY(trli_format(file->ctx, &name, "%s", fields[i].name));
        }
        part.name = part.owned_name = name;
        parts[(*nparts)++] = part;
    }
done:
    return err;
}

static trl_err plan_parts(trli_fields_file *file, int n, const trli_output_field *fields, int *nparts,
                          trli_part **parts)
{
    *nparts = 0;
    *parts = calloc(2 * (size_t)n + 1, sizeof **parts);
    if (!*parts) return trl_fail(file->ctx, TRL_ERR_MEMORY, NULL, "no memory to write %d fields", n);
    for (int i = 0; i < n; ++i) (*parts)[(*nparts)++] = trli_part_of(&fields[i]);
    return plan_averages(file, n, fields, nparts, *parts);
}

/* On rank 0. */
static trl_err describe_step(trli_fields_file *file, trl_gidx step)
{
    hid_t data;
    trl_err err = trli_hdf5_open(file->ctx, file->path, &data);
    if (err != TRL_OK) return err;
    err = add_steps(file, data, step);
    H5Fclose(data);
    return err == TRL_OK ? write_xdmf(file) : err;
}

trl_err trli_fields_write(trli_fields_file *file, trl_gidx step, double time, int n, const trli_output_field *fields)
{
    const trli_stamp stamp = {"time", time};
    trli_part *parts = NULL;
    int nparts = 0;
    trl_err err = plan_parts(file, n, fields, &nparts, &parts);
    TRL_TRY(trl_context_agree(file->ctx, err));
    TRL_TRY(trli_step_write(&file->writer, file->path, step, 1, &stamp, nparts, parts));
    if (trl_context_rank(file->ctx) == 0) err = describe_step(file, step);
    err = trl_context_agree(file->ctx, err);
done:
    for (int i = 0; parts && i < nparts; ++i) free(parts[i].owned_name);
    free(parts);
    return err;
}

trl_err trli_fields_close(trli_fields_file **file)
{
    /* Nothing is left to write: each trli_fields_write closes its files. */
    destroy(file);
    return TRL_OK;
}
