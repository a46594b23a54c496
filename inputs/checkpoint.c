/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files_impl.h"
#include "output_hdf5_impl.h"

/* A file of a folder of checkpoints. */
typedef struct entry {
    trl_gidx step;
    bool aside; /* left by an interrupted write */
} entry;

/* "00000100.h5" or, aside, "00000100.h5.tmp". */
static bool parse_entry(const char *name, entry *e)
{
    char digits[TRLI_STEP_ROOM];
    size_t length = strspn(name, "0123456789");
    if (length >= sizeof digits) return false;
    memcpy(digits, name, length);
    digits[length] = 0;
    e->step = trli_step_of(digits);
    e->aside = strcmp(name + length, ".h5.tmp") == 0;
    return e->step >= 0 && (e->aside || strcmp(name + length, ".h5") == 0);
}

static int newest_first(const void *a, const void *b)
{
    trl_gidx x = ((const entry *)a)->step, y = ((const entry *)b)->step;
    return (y > x) - (y < x);
}

static trl_err list_folder(trl_context *ctx, const char *folder, entry **entries, int *n)
{
    int room = 0;
    *entries = NULL;
    *n = 0;
    DIR *stream = opendir(folder);
    if (!stream) return trli_file_fail(ctx, "read folder", folder, errno);
    trl_err err = TRL_OK;
    for (struct dirent *item; (item = readdir(stream));) {
        entry e;
        if (!parse_entry(item->d_name, &e)) continue;
        if (*n == room) {
            room = room ? 2 * room : 16;
            entry *grown = realloc(*entries, (size_t)room * sizeof *grown);
            if (!grown)
                TRL_TRY(trl_fail(ctx, TRL_ERR_MEMORY, NULL, "no memory to list the checkpoints in '%s'", folder));
            *entries = grown;
        }
        (*entries)[(*n)++] = e;
    }
    if (*n) qsort(*entries, (size_t)*n, sizeof **entries, newest_first);
done:
    closedir(stream);
    return err;
}

static trl_err entry_path(trl_context *ctx, const char *folder, trl_gidx step, bool aside, char **path)
{
    char name[TRLI_STEP_ROOM];
    trli_step_name(step, name);
    return trli_format(ctx, path, "%s/%s.h5%s", folder, name, aside ? ".tmp" : "");
}

/* Remove what the checkpoint of a step, which is whole by now, makes useless: the oldest ones, later ones (of a run
 * that this one replaces), and what interrupted writes left. */
static trl_err prune(trl_context *ctx, const char *folder, int keep, trl_gidx step)
{
    entry *entries;
    int n, kept = 0;
    trl_err err = list_folder(ctx, folder, &entries, &n);
    for (int i = 0; err == TRL_OK && i < n; ++i) {
        char *path;
        if (!entries[i].aside && entries[i].step <= step && kept++ < keep) continue;
        TRL_TRY(entry_path(ctx, folder, entries[i].step, entries[i].aside, &path));
        if (unlink(path) && errno != ENOENT)
            trl_warn(ctx, NULL, "cannot remove the old checkpoint '%s': %s", path, strerror(errno));
        free(path);
    }
done:
    free(entries);
    return err;
}

/* On rank 0. */
static trl_err begin_write(trl_context *ctx, const trl_layout *layout, const char *folder, const char *aside)
{
    trl_err err;
    TRL_TRY(trli_folder_create(ctx, folder));
    TRL_TRY(trli_hdf5_create(ctx, &layout->grid, aside));
done:
    return err;
}

static trl_err plan_parts(trl_context *ctx, int n, const trli_output_field *fields, trli_part **parts)
{
    *parts = calloc((size_t)n + 1, sizeof **parts);
    if (!*parts) return trl_fail(ctx, TRL_ERR_MEMORY, NULL, "no memory to write a checkpoint of %d fields", n);
    for (int i = 0; i < n; ++i) (*parts)[i] = trli_part_of(&fields[i]);
    return TRL_OK;
}

trl_err trli_checkpoint_write(trl_context *ctx, const trl_layout *layout, const char *folder, int keep,
                              const trli_checkpoint_state *state, int n, const trli_output_field *fields)
{
    const trli_stamp stamps[] = {{"time", state->time}, {"dt", state->dt}, {"start", state->time_start}};
    trli_step_writer writer = {.ctx = ctx, .layout = layout};
    bool first = trl_context_rank(ctx) == 0, begun = false;
    char *below = NULL, *path = NULL, *aside = NULL;
    trli_part *parts = NULL;
    trl_err err = trli_format(ctx, &below, "%s/checkpoint", folder);
    if (err == TRL_OK) err = entry_path(ctx, below, state->step, false, &path);
    if (err == TRL_OK) err = entry_path(ctx, below, state->step, true, &aside);
    if (err == TRL_OK) err = plan_parts(ctx, n, fields, &parts);
    TRL_TRY(trl_context_agree(ctx, err));
    begun = true;
    if (first) err = begin_write(ctx, layout, below, aside);
    TRL_TRY(trl_context_agree(ctx, err));
    TRL_TRY(trli_step_write(&writer, aside, state->step, 3, stamps, n, parts));
    if (first) err = trli_file_publish(ctx, aside, path);
    if (first && err == TRL_OK) err = prune(ctx, below, keep, state->step);
    err = trl_context_agree(ctx, err);
done:
    if (first && begun && err != TRL_OK) unlink(aside);
    free(parts);
    free(aside);
    free(path);
    free(below);
    return err;
}

/* The state in an open file that holds one whole step. */
static bool read_state(hid_t file, trli_checkpoint_state *state, char reason[TRLI_REASON_ROOM])
{
    char name[TRLI_STEP_ROOM];
    if (!trli_hdf5_only_step(file, &state->step)) {
        snprintf(reason, TRLI_REASON_ROOM, "it does not hold one step");
        return false;
    }
    trli_step_name(state->step, name);
    hid_t group = H5Gopen2(file, name, H5P_DEFAULT);
    bool good = group >= 0 && trli_hdf5_get(group, "time", H5T_NATIVE_DOUBLE, 1, &state->time) &&
                trli_hdf5_get(group, "dt", H5T_NATIVE_DOUBLE, 1, &state->dt) &&
                trli_hdf5_get(group, "start", H5T_NATIVE_DOUBLE, 1, &state->time_start);
    if (group >= 0) H5Gclose(group);
    if (!good) snprintf(reason, TRLI_REASON_ROOM, "its step lacks one of the attributes time, dt and start");
    return good;
}

/* Open a checkpoint if it is whole: HDF5 sees when a file is shorter than it was. -1 and the reason if not. */
static hid_t open_whole(const char *path, trli_checkpoint_state *state, char reason[TRLI_REASON_ROOM])
{
    hid_t file = trli_hdf5_try_open(path, reason);
    if (file < 0 || read_state(file, state, reason)) return file;
    H5Fclose(file);
    return -1;
}

/* Open the newest whole checkpoint of a folder. */
static trl_err open_newest(trl_context *ctx, const char *folder, char **path, trli_checkpoint_state *state, hid_t *file)
{
    char reason[TRLI_REASON_ROOM];
    entry *entries;
    int n, damaged = 0;
    trl_err err;
    TRL_TRY(list_folder(ctx, folder, &entries, &n));
    for (int i = 0; i < n; ++i) {
        if (entries[i].aside) continue;
        TRL_TRY(entry_path(ctx, folder, entries[i].step, false, path));
        *file = open_whole(*path, state, reason);
        if (*file >= 0) goto done;
        trl_warn(ctx, NULL, "checkpoint '%s' is damaged and skipped: %s", *path, reason);
        free(*path);
        *path = NULL;
        ++damaged;
    }
    if (damaged) {
        err = trl_fail(ctx, TRL_ERR_IO, NULL, "no checkpoint in '%s' can be read: %d damaged", folder, damaged);
    } else {
        err = trl_fail(ctx, TRL_ERR_INPUT, NULL,
                       "there is no checkpoint in '%s'; output.checkpoint in the deck makes a run write some", folder);
    }
done:
    free(entries);
    return err;
}

static trl_err open_one(trl_context *ctx, const char *where, char **path, trli_checkpoint_state *state, hid_t *file)
{
    char reason[TRLI_REASON_ROOM];
    trl_err err;
    TRL_TRY(trli_format(ctx, path, "%s", where));
    *file = open_whole(where, state, reason);
    if (*file < 0) err = trl_fail(ctx, TRL_ERR_IO, NULL, "'%s' is not a whole checkpoint: %s", where, reason);
done:
    return err;
}

static trl_err check_location(trl_context *ctx, hid_t group, const char *path, const trli_output_field *field)
{
    trl_location location = TRL_CELL;
    if (H5Lexists(group, field->name, H5P_DEFAULT) <= 0)
        return trl_fail(ctx, TRL_ERR_INPUT, NULL, "checkpoint '%s' has no field '%s', which the deck advances in time",
                        path, field->name);
    hid_t data = H5Dopen2(group, field->name, H5P_DEFAULT);
    bool good = data >= 0 && trli_hdf5_get_location(data, &location);
    if (data >= 0) H5Dclose(data);
    if (!good)
        return trl_fail(ctx, TRL_ERR_IO, NULL, "field '%s' of checkpoint '%s' has no attribute 'location'", field->name,
                        path);
    if (location == field->location) return TRL_OK;
    return trl_fail(ctx, TRL_ERR_INPUT, NULL,
                    "field '%s' of checkpoint '%s' is at location '%s', in the deck it is at '%s'", field->name, path,
                    trl_location_name(location), trl_location_name(field->location));
}

/* The fields that check_no_more compares with, and the first one that is not among them. */
typedef struct known_fields {
    const trli_output_field *field;
    int n;
    char *unknown;
} known_fields;

static herr_t find_unknown(hid_t group, const char *name, const H5L_info_t *info, void *data)
{
    known_fields *known = data;
    (void)group;
    (void)info;
    for (int i = 0; i < known->n; ++i)
        if (strcmp(known->field[i].name, name) == 0) return 0;
    known->unknown = strdup(name);
    return known->unknown ? 1 : -1;
}

static trl_err check_no_more(trl_context *ctx, hid_t group, const char *path, int n, const trli_output_field *fields)
{
    known_fields known = {.field = fields, .n = n};
    herr_t found = H5Literate(group, H5_INDEX_NAME, H5_ITER_NATIVE, NULL, find_unknown, &known);
    if (found < 0) return trli_hdf5_fail(ctx, "read", path);
    if (found == 0) return TRL_OK;
    trl_err err =
        trl_fail(ctx, TRL_ERR_INPUT, NULL, "checkpoint '%s' has a field '%s', which the deck does not advance in time",
                 path, known.unknown);
    free(known.unknown);
    return err;
}

/* On rank 0: find the checkpoint, and check that it belongs to this problem. */
static trl_err choose(trl_context *ctx, const trl_layout *layout, const char *where, trli_checkpoint_state *state,
                      int n, const trli_output_field *fields, char **path)
{
    char name[TRLI_STEP_ROOM];
    struct stat status;
    hid_t file = -1, group = -1;
    trl_err err = TRL_OK;
    if (stat(where, &status))
        TRL_TRY(trl_fail(ctx, TRL_ERR_INPUT, NULL, "there is no checkpoint '%s': %s", where, strerror(errno)));
    TRL_TRY((S_ISDIR(status.st_mode) ? open_newest : open_one)(ctx, where, path, state, &file));
    TRL_TRY(trli_hdf5_check_grid(ctx, &layout->grid, file, *path));
    trli_step_name(state->step, name);
    group = H5Gopen2(file, name, H5P_DEFAULT);
    if (group < 0) TRL_TRY(trli_hdf5_fail(ctx, "read", *path));
    for (int i = 0; i < n; ++i) TRL_TRY(check_location(ctx, group, *path, &fields[i]));
    TRL_TRY(check_no_more(ctx, group, *path, n, fields));
done:
    if (group >= 0) H5Gclose(group);
    if (file >= 0) H5Fclose(file);
    return err;
}

/* All ranks get rank 0's path and state. */
static trl_err share_choice(trl_context *ctx, char **path, trli_checkpoint_state *state)
{
    MPI_Comm comm = trl_context_comm(ctx);
    int length = *path ? (int)strlen(*path) + 1 : 0;
    trl_err err = TRL_OK;
    bool good = MPI_Bcast(&length, 1, MPI_INT, 0, comm) == MPI_SUCCESS;
    if (!*path && good) *path = malloc((size_t)length);
    if (!*path) err = trl_fail(ctx, TRL_ERR_MEMORY, NULL, "no memory for the path of a checkpoint");
    TRL_TRY(trl_context_agree(ctx, err));
    good = good && MPI_Bcast(*path, length, MPI_CHAR, 0, comm) == MPI_SUCCESS &&
           MPI_Bcast(state, sizeof *state, MPI_BYTE, 0, comm) == MPI_SUCCESS;
    if (!good) err = trl_fail(ctx, TRL_ERR_MPI, NULL, "the ranks could not agree on a checkpoint");
done:
    return err;
}

trl_err trli_checkpoint_read(trl_context *ctx, const trl_layout *layout, const char *path, trli_checkpoint_state *state,
                             int n, const trli_output_field *fields)
{
    char *chosen = NULL, *dataset = NULL, name[TRLI_STEP_ROOM];
    trl_err err = trl_context_rank(ctx) == 0 ? choose(ctx, layout, path, state, n, fields, &chosen) : TRL_OK;
    TRL_TRY(trl_context_agree(ctx, err));
    TRL_TRY(share_choice(ctx, &chosen, state));
    trli_step_name(state->step, name);
    for (int i = 0; i < n && err == TRL_OK; ++i) {
        err = trli_format(ctx, &dataset, "/%s/%s", name, fields[i].name);
        if (err == TRL_OK) err = trli_hdf5_read(ctx, layout, chosen, dataset, &fields[i]);
        free(dataset);
    }
    err = trl_context_agree(ctx, err);
done:
    free(chosen);
    return err;
}
