/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "files_impl.h"
#include "memory_impl.h"
#include "memstream_impl.h"
#include "output_beside_impl.h"
#include "writers_impl.h"

struct trli_fields_file {
    trl_context *ctx;
    const trl_layout *layout;
    char *folder; /* of the files of fields */
    int compression;
    trl_loop *loop;
    trli_beside *beside; /* NULL: files are written at once */
    /* rank 0: */
    char *xdmf_path;
    char *steps; /* the text of fields.xdmf between head and tail */
    size_t steps_length;
    trl_gidx last_step; /* in that text; -1: none */
    trli_step_key last; /* written by this run, at that time; step -1: none */
    double last_time;
};

/* Remove the files of later steps: they are of another run, or of the part of this run that is repeated. */
static trl_err drop_later(trli_fields_file *file, trl_gidx after_step)
{
    trli_step_list list;
    trl_err err = trli_steps_list(file->ctx, file->folder, &list);
    for (int i = 0; err == TRL_OK && i < list.n; ++i) {
        char *path;
        if (list.key[i].step <= after_step) continue;
        TRL_TRY(trli_step_path(file->ctx, file->folder, list.key[i], &path));
        if (unlink(path) && errno != ENOENT) err = trli_file_fail(file->ctx, "remove", path, errno);
        trli_free(path);
    }
done:
    trli_steps_release(&list);
    return err;
}

/* What fields.xdmf says of the steps that stay. A restart does not read their files, which may be missing by now. */
static trl_err keep_steps(trli_fields_file *file, trl_gidx after_step)
{
    trli_free(file->steps);
    file->steps = NULL;
    trl_err err = trli_xdmf_read(file->ctx, file->xdmf_path, after_step, &file->steps);
    if (err == TRL_OK) file->steps_length = strlen(file->steps);
    file->last_step = after_step;
    return err;
}

/* On rank 0. */
static trl_err open_folder(trli_fields_file *file, const char *folder, bool append, trl_gidx after_step)
{
    const trl_gidx last = append ? after_step : -1;
    trl_err err;
    TRL_TRY(trli_folder_create(file->ctx, file->folder));
    trli_folder_sweep(file->folder);
    TRL_TRY(trli_format(file->ctx, &file->xdmf_path, "%s/fields.xdmf", folder));
    TRL_TRY(drop_later(file, last));
    TRL_TRY(keep_steps(file, last));
    TRL_TRY(trli_xdmf_write(file->ctx, file->xdmf_path, file->steps));
done:
    return err;
}

static void destroy(trli_fields_file **file)
{
    trli_fields_file *f = *file;
    if (!f) return;
    trli_free(f->steps);
    trli_free(f->xdmf_path);
    trli_free(f->folder);
    trli_free(f);
    *file = NULL;
}

trl_err trli_fields_create(trl_context *ctx, const trl_layout *layout, const char *folder, bool append,
                           trl_gidx after_step, trli_fields_file **file)
{
    trl_err err = TRL_OK;
    *file = trli_new(ctx, 1, sizeof **file);
    if (*file) {
        **file = (trli_fields_file){.ctx = ctx, .layout = layout, .last_step = -1, .last = {.step = -1}};
        err = trli_format(ctx, &(*file)->folder, "%s/fields", folder);
    } else {
        err = trli_no_memory(ctx, NULL, "to write fields to '%s'", folder);
    }
    if (err == TRL_OK && trl_context_rank(ctx) == 0) err = open_folder(*file, folder, append, after_step);
    err = trl_context_agree(ctx, err);
    if (err != TRL_OK) destroy(file);
    return err;
}

void trli_fields_move(trli_fields_file *file, const trl_layout *layout)
{
    file->layout = layout;
}

void trli_fields_compress(trli_fields_file *file, int level, trl_loop *loop)
{
    file->compression = level;
    file->loop = loop;
}

void trli_fields_beside(trli_fields_file *file, trli_beside *beside)
{
    file->beside = beside;
}

/* Put the text of a step behind those before it. */
static trl_err append_text(trli_fields_file *file, const char *text, size_t length)
{
    char *grown = trli_resize(file->ctx, file->steps, file->steps_length + length + 1, 1);
    if (!grown) return trli_no_memory(file->ctx, NULL, "to write '%s'", file->xdmf_path);
    memcpy(grown + file->steps_length, text, length + 1);
    file->steps = grown;
    file->steps_length += length;
    return TRL_OK;
}

/* A file on its way. */
typedef struct fields_step {
    trli_fields_file *file;
    trli_step_key key;
    double time;
    int n;
    const trli_output_field *fields;
} fields_step;

/* What fields.xdmf says of a step whose file is called `path` now, or has a name by which a link leads to it. */
static trl_err append_step(const fields_step *step, const char *path)
{
    trli_fields_file *file = step->file;
    trli_memstream text = {0};
    char name[TRLI_STEP_ROOM], link[TRLI_STEP_ROOM + 16];
    trl_err err = TRL_OK;
    trli_step_name(step->key, name);
    snprintf(link, sizeof link, "fields/%s.nc", name);
    if (!trli_memstream_open(file->ctx, &text))
        TRL_TRY(trli_no_memory(file->ctx, NULL, "to write '%s'", file->xdmf_path));
    TRL_TRY(trli_xdmf_step(file->ctx, &file->layout->grid, path, link, step->key, step->time, step->n, step->fields,
                           text.out));
    if (!trli_memstream_close(&text)) TRL_TRY(trli_no_memory(file->ctx, NULL, "to write '%s'", file->xdmf_path));
    err = append_text(file, text.text, text.length);
done:
    trli_memstream_discard(&text);
    return err;
}

/* On rank 0: fields.xdmf with a step more. */
static trl_err add_step(void *data, const char *path, trli_new_file *more)
{
    const fields_step *step = data;
    trli_fields_file *file = step->file;
    trl_err err = TRL_OK;
    if (step->key.part == 0 && step->key.step <= file->last_step) TRL_TRY(keep_steps(file, step->key.step - 1));
    TRL_TRY(append_step(step, path));
    file->last_step = step->key.step;
    err = trli_xdmf_begin(file->ctx, file->xdmf_path, file->steps, more);
done:
    return err;
}

trl_err trli_fields_write(trli_fields_file *file, trl_gidx step, double time, int n, const trli_output_field *fields)
{
    const trli_contents contents = {
        .ntimes = 1, .step = &step, .time = &time, .compression = file->compression, .loop = file->loop};
    const bool again = step == file->last.step, later = again && time > file->last_time;
    const trli_step_key key = {step, later ? file->last.part + 1 : 0};
    char *path = NULL;
    fields_step *on_its_way = trli_new(file->ctx, 1, sizeof *on_its_way);
    trl_err err = trli_step_path(file->ctx, file->folder, key, &path);
    if (!on_its_way && err == TRL_OK) err = trli_no_memory(file->ctx, NULL, "to write '%s'", path);
    err = trl_context_agree(file->ctx, err);
    if (err != TRL_OK) {
        trli_free(on_its_way);
        goto done;
    }
    *on_its_way = (fields_step){file, key, time, n, fields};
    const trli_file_owner owner = {on_its_way, add_step, NULL};
    err = trli_fields_store(file->ctx, file->beside, &owner, file->layout, path, -1, &contents, n, fields);
    file->last = key;
    file->last_time = time;
done:
    trli_free(path);
    return err;
}

trl_err trli_fields_close(trli_fields_file **file)
{
    /* Nothing is left to write: files that are on their way are those of file->beside. */
    destroy(file);
    return TRL_OK;
}

/* The state of the writer. */
typedef struct netcdf_writer {
    trli_fields_file *file;
    trl_loop *loop; /* of the workers, if they compress */
} netcdf_writer;

static trl_err close_writer(void **state)
{
    netcdf_writer *writer = *state;
    trl_err err = TRL_OK;
    *state = NULL;
    if (!writer) return TRL_OK;
    if (writer->file) err = trli_fields_close(&writer->file);
    trl_loop_destroy(&writer->loop);
    trli_free(writer);
    return err;
}

static trl_err open_writer(const trli_writer_request *request, void **state)
{
    trl_context *ctx = request->ctx;
    netcdf_writer *writer = trli_new(ctx, 1, sizeof *writer);
    trl_err err = writer ? TRL_OK : trli_no_memory(ctx, NULL, "to write fields to '%s'", request->folder);
    *state = writer;
    if (err == TRL_OK && request->compression && request->workers)
        err = trl_loop_create(ctx, request->workers, &writer->loop);
    TRL_TRY(trl_context_agree(ctx, err));
    TRL_TRY(
        trli_fields_create(ctx, request->layout, request->folder, request->append, request->after_step, &writer->file));
    trli_fields_compress(writer->file, request->compression, writer->loop);
    trli_fields_beside(writer->file, request->beside);
done:
    if (err != TRL_OK) (void)!close_writer(state);
    return err;
}

static trl_err write_fields(void *state, trl_gidx step, double time, int n, const trli_output_field *fields)
{
    return trli_fields_write(((netcdf_writer *)state)->file, step, time, n, fields);
}

static trl_err move_writer(void *state, const trl_layout *layout, trl_workers *workers)
{
    netcdf_writer *writer = state;
    trl_context *ctx = writer->file->ctx;
    trl_err err = TRL_OK;
    trli_fields_move(writer->file, layout);
    if (!writer->loop) return TRL_OK;
    trl_loop_destroy(&writer->loop);
    err = trl_loop_create(ctx, workers, &writer->loop);
    trli_fields_compress(writer->file, writer->file->compression, writer->loop);
    return trl_context_agree(ctx, err);
}

/* A netCDF-4 file, which is HDF5, for each output time, and XDMF that shows them all. */
const trli_writer trli_writer_netcdf = {
    .name = "netCDF", .open = open_writer, .fields = write_fields, .move = move_writer, .close = close_writer};
