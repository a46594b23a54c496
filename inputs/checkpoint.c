/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "context_impl.h"
#include "files_impl.h"
#include "memstream_impl.h"
#include "output_beside_impl.h"

/* A checkpoint of a folder. */
typedef struct entry {
    trl_gidx step;
    int64_t lineage; /* INT64_MAX: its seal cannot be read */
} entry;

/* The newest lineage first, in it the latest step; those of an unknown one before all, so that they are named. */
static int newest_first(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    if (x->lineage != y->lineage) return y->lineage > x->lineage ? 1 : -1;
    return (y->step > x->step) - (y->step < x->step);
}

static trl_err list_folder(trl_context *ctx, const char *folder, entry **entries, int *n)
{
    trli_step_list list;
    *entries = NULL;
    *n = 0;
    trl_err err = trli_steps_list(ctx, folder, &list);
    if (err != TRL_OK) return err;
    *entries = trli_new(ctx, (size_t)list.n + 1, sizeof **entries);
    if (!*entries) TRL_TRY(trli_no_memory(ctx, NULL, "to list the checkpoints in '%s'", folder));
    for (int i = 0; i < list.n; ++i) {
        char *path, reason[TRLI_REASON_ROOM];
        trli_seal seal;
        TRL_TRY(trli_step_path(ctx, folder, list.key[i], &path));
        (*entries)[i] = (entry){list.key[i].step, trli_seal_read(path, &seal, reason) ? seal.lineage : INT64_MAX};
        trli_free(path);
    }
    *n = list.n;
    qsort(*entries, (size_t)list.n, sizeof **entries, newest_first);
done:
    trli_steps_release(&list);
    if (err == TRL_OK) return TRL_OK;
    trli_free(*entries);
    *entries = NULL;
    return err;
}

/* A checkpoint on its way. */
typedef struct checkpoint_file {
    trl_context *ctx;
    int keep;
    trl_gidx step;
    int64_t lineage;
    char folder[]; /* of checkpoints */
} checkpoint_file;

/* Remove what a checkpoint, which is whole by now, makes useless of its lineage: the oldest ones, and those of later
 * steps, from which the run went back. Those of other runs stay. */
static trl_err prune(void *data)
{
    const checkpoint_file *file = data;
    entry *entries;
    int n, kept = 0;
    trl_err err = list_folder(file->ctx, file->folder, &entries, &n);
    for (int i = 0; err == TRL_OK && i < n; ++i) {
        char *path;
        if (entries[i].lineage != file->lineage || (entries[i].step <= file->step && kept++ < file->keep)) continue;
        TRL_TRY(trli_step_path(file->ctx, file->folder, (trli_step_key){.step = entries[i].step}, &path));
        if (unlink(path) && errno != ENOENT)
            trl_warn(file->ctx, NULL, "cannot remove the old checkpoint '%s': %s", path, strerror(errno));
        trli_free(path);
    }
done:
    trli_free(entries);
    return err;
}

/* On rank 0: make the folder, and find the lineage of a run that writes its first checkpoint there: the one that it
 * continues if that is the newest, else a new one. */
static trl_err prepare_folder(trl_context *ctx, const char *folder, int64_t *lineage)
{
    entry *entries = NULL;
    int n;
    trl_err err;
    TRL_TRY(trli_folder_create(ctx, folder));
    trli_folder_sweep(folder);
    TRL_TRY(list_folder(ctx, folder, &entries, &n));
    for (int i = 0; i < n; ++i)
        if (entries[i].lineage != INT64_MAX && entries[i].lineage > *lineage) {
            *lineage = entries[i].lineage + 1;
            break;
        }
    if (*lineage < 0) *lineage = 0;
done:
    trli_free(entries);
    return err;
}

static trl_err file_in(trl_context *ctx, const char *folder, int keep, trl_gidx step, checkpoint_file **file)
{
    static const char below[] = "/checkpoint";
    const size_t length = strlen(folder);
    *file = trli_new(ctx, 1, sizeof **file + length + sizeof below);
    if (!*file) return trli_no_memory(ctx, NULL, "for a checkpoint in '%s'", folder);
    **file = (checkpoint_file){.ctx = ctx, .keep = keep, .step = step};
    memcpy((*file)->folder, folder, length);
    memcpy((*file)->folder + length, below, sizeof below);
    return TRL_OK;
}

trl_err trli_checkpoint_write(trl_context *ctx, trli_beside *beside, const trl_layout *layout, const char *folder,
                              int keep, trli_checkpoint_state *state, int n, const trli_output_field *fields)
{
    const bool controlled = state->control[0] > 0;
    const trli_stamp stamps[] = {
        {"dt", state->dt}, {"start", state->time_start}, {"next_dt", state->control[0]}, {"error", state->control[1]}};
    const trli_contents contents = {
        .ntimes = 1, .step = &state->step, .time = &state->time, .nstamps = controlled ? 4 : 2, .stamp = stamps};
    checkpoint_file *file = NULL;
    char *path = NULL;
    int64_t lineage = state->lineage;
    trl_context_begin_phase(ctx);
    trl_err err = file_in(ctx, folder, keep, state->step, &file);
    if (err == TRL_OK) err = trli_step_path(ctx, file->folder, (trli_step_key){.step = state->step}, &path);
    if (err == TRL_OK && trl_context_rank(ctx) == 0) err = prepare_folder(ctx, file->folder, &lineage);
    TRL_TRY(err);
    TRL_TRY(trli_broadcast(ctx, &lineage, 1, MPI_INT64_T, 0));
    file->lineage = lineage;
    const trli_file_owner owner = {file, NULL, prune};
    file = NULL;
    TRL_TRY(trli_fields_store(ctx, beside, &owner, layout, path, lineage, &contents, n, fields));
    state->lineage = lineage;
done:
    trli_free(file);
    trli_free(path);
    return trl_context_end_phase(ctx, err);
}

/* ---- reading ---- */

/* The state in an open checkpoint. */
static bool read_state(trl_context *ctx, hid_t file, trli_checkpoint_state *state, char reason[TRLI_REASON_ROOM])
{
    trl_gidx *step;
    double *time;
    int n;
    if (!trli_hdf5_times(ctx, file, &step, &time, &n, reason)) return false;
    state->step = step[0];
    state->time = time[0];
    trli_free(step);
    trli_free(time);
    bool good = n == 1 && trli_hdf5_get(file, "dt", H5T_NATIVE_DOUBLE, 1, &state->dt) &&
                trli_hdf5_get(file, "start", H5T_NATIVE_DOUBLE, 1, &state->time_start);
    state->control[0] = 0;
    if (!trli_hdf5_get(file, "next_dt", H5T_NATIVE_DOUBLE, 1, &state->control[0]) ||
        !trli_hdf5_get(file, "error", H5T_NATIVE_DOUBLE, 1, &state->control[1]))
        state->control[0] = 0;
    if (!good) snprintf(reason, TRLI_REASON_ROOM, "it does not hold one step with the attributes dt and start");
    return good;
}

/* The length of a field's name as users know it; *before: the field is a rate half a step before. */
static int known_name(const char *name, bool *before)
{
    const size_t length = strlen(name), tail = strlen(TRL_HALF_STEP_BEFORE);
    *before = length > tail && strcmp(name + length - tail, TRL_HALF_STEP_BEFORE) == 0;
    return (int)(*before ? length - tail : length);
}

/* Why a checkpoint is refused that lacks a field: it may have the rate of another time, by another method. */
static void say_missing(hid_t file, const char *name, char reason[TRLI_REASON_ROOM])
{
    char other[TRLI_REASON_ROOM];
    bool before;
    const int length = known_name(name, &before);
    snprintf(other, sizeof other, "%.*s%s", length, name, before ? "" : TRL_HALF_STEP_BEFORE);
    if (H5Lexists(file, other, H5P_DEFAULT) <= 0)
        snprintf(reason, TRLI_REASON_ROOM, "it has no field '%.*s', which the deck advances in time", length, name);
    else if (before)
        snprintf(
            reason, TRLI_REASON_ROOM,
            "it is none of leapfrog, which needs '%.*s' half a step before: set the method under 'time' to the one "
            "that wrote it",
            length, name);
    else
        snprintf(reason, TRLI_REASON_ROOM,
                 "it is one of leapfrog, with '%.*s' half a step before: set the method under 'time' to leapfrog",
                 length, name);
}

static bool has_field(hid_t file, int dim, const trli_output_field *field, char reason[TRLI_REASON_ROOM])
{
    trl_location location = TRL_CELL;
    const bool exists = H5Lexists(file, field->name, H5P_DEFAULT) > 0;
    if (field->found) *field->found = exists;
    if (field->found && !exists) return true;
    hid_t data = exists ? H5Dopen2(file, field->name, H5P_DEFAULT) : -1;
    bool good = data >= 0 && trli_hdf5_get_location(data, &location);
    if (data >= 0) H5Dclose(data);
    if (good && trl_location_on(location, dim) == field->location) return true;
    if (good)
        snprintf(reason, TRLI_REASON_ROOM, "its field '%s' is at location '%s', in the deck it is at '%s'", field->name,
                 trl_location_name(location), field->word ? field->word : trl_location_name(field->location));
    else
        say_missing(file, field->name, reason);
    return false;
}

static bool has_no_more(trl_context *ctx, hid_t file, int n, const trli_output_field *fields,
                        char reason[TRLI_REASON_ROOM])
{
    char **name;
    int tags;
    bool before, good = trli_hdf5_tags(ctx, file, &name, &tags);
    if (!good) snprintf(reason, TRLI_REASON_ROOM, "its fields cannot be listed");
    for (int t = 0; good && t < tags; ++t) {
        bool known = false;
        for (int i = 0; i < n && !known; ++i) known = strcmp(fields[i].name, name[t]) == 0;
        known = known || trli_hdf5_is_optional(file, name[t]);
        good = known;
        if (!known)
            snprintf(reason, TRLI_REASON_ROOM, "it has a field '%.*s', which the deck does not advance in time",
                     known_name(name[t], &before), name[t]);
    }
    trli_hdf5_free_tags(name, tags);
    return good;
}

/* On rank 0: whether a checkpoint, which is whole, belongs to the problem; the state in it. */
static bool belongs(trl_context *ctx, const trl_grid *grid, const char *path, int n, const trli_output_field *fields,
                    trli_checkpoint_state *state, char reason[TRLI_REASON_ROOM])
{
    hid_t file = trli_hdf5_try_open(path, reason);
    if (file < 0) return false;
    bool good = trli_hdf5_is_grid(grid, file, reason) && read_state(ctx, file, state, reason);
    for (int i = 0; good && i < n; ++i) good = has_field(file, grid->dim, &fields[i], reason);
    good = good && has_no_more(ctx, file, n, fields, reason);
    H5Fclose(file);
    return good;
}

/* The checkpoints to try, on rank 0: those of a folder, or one file. */
typedef struct search {
    const char *where;
    bool is_folder;
    entry *entries;
    int n, next;
    trli_memstream refused; /* which ones were, and why */
    bool damaged;           /* one of them was */
} search;

static trl_err start_search(trl_context *ctx, const char *where, search *s)
{
    struct stat status;
    trl_err err = TRL_OK;
    if (stat(where, &status))
        return trl_fail(ctx, TRL_ERR_INPUT, NULL, "there is no checkpoint '%s': %s", where, strerror(errno));
    s->is_folder = S_ISDIR(status.st_mode);
    s->n = 1;
    if (s->is_folder) TRL_TRY(list_folder(ctx, where, &s->entries, &s->n));
    if (s->n == 0)
        TRL_TRY(trl_fail(ctx, TRL_ERR_INPUT, NULL,
                         "there is no checkpoint in '%s'; output.checkpoint in the deck makes a run write some",
                         where));
    if (!trli_memstream_open(ctx, &s->refused)) err = trli_no_memory(ctx, NULL, "to look for a checkpoint");
done:
    return err;
}

static void end_search(search *s)
{
    trli_memstream_discard(&s->refused);
    trli_free(s->entries);
}

/* On rank 0: the path of the next one, for trli_free. An error when none is left. */
static trl_err next_path(trl_context *ctx, search *s, char **path)
{
    if (s->next < s->n && !s->is_folder) return trli_format(ctx, path, "%s", (++s->next, s->where));
    if (s->next < s->n) return trli_step_path(ctx, s->where, (trli_step_key){.step = s->entries[s->next++].step}, path);
    fflush(s->refused.out);
    return trl_fail(ctx, s->damaged ? TRL_ERR_IO : TRL_ERR_INPUT, NULL, "no checkpoint in '%s' can be used: %s",
                    s->where, s->refused.text);
}

/* On rank 0: a checkpoint that cannot be used. The one that was asked for is an error. older: the newest one before it
 * that can, or NULL. */
static trl_err refuse(trl_context *ctx, search *s, const char *path, bool whole, const char *reason, const char *older)
{
    const char *slash = strrchr(path, '/');
    s->damaged |= !whole;
    if (!s->is_folder && !whole) {
        trl_err err = trl_fail(ctx, TRL_ERR_IO, NULL, "'%s' is not a whole checkpoint: %s", path, reason);
        if (older)
            trl_advise(ctx, "go on from the newest one before it that is whole: trellis run DECK --restart %s", older);
        else
            trl_advise(ctx, "name the output folder, or `latest`: the newest checkpoint that is whole is taken");
        return err;
    }
    if (!s->is_folder)
        return trl_fail(ctx, TRL_ERR_INPUT, NULL, "checkpoint '%s' does not fit the deck: %s", path, reason);
    trl_warn(ctx, NULL, "checkpoint '%s' %s skipped: %s", path,
             whole ? "does not fit the deck and is" : "is damaged and", reason);
    fprintf(s->refused.out, "%s%s (%s)", s->next > 1 ? ", " : "", slash ? slash + 1 : path, reason);
    return TRL_OK;
}

/* All ranks get rank 0's text. */
static trl_err share_path(trl_context *ctx, char **path)
{
    int length = *path ? (int)strlen(*path) + 1 : 0;
    trl_err err;
    TRL_TRY(trli_broadcast(ctx, &length, 1, MPI_INT, 0));
    if (!*path) *path = trli_new(ctx, (size_t)length, 1);
    if (!*path) TRL_TRY(trli_no_memory(ctx, NULL, "for the path of a checkpoint"));
    err = trli_broadcast(ctx, *path, length, MPI_CHAR, 0);
done:
    return err;
}

/* Whether rank 0's path is a checkpoint that is whole, and belongs to the problem as well: *fits. All ranks get the
 * path. Collective. */
static trl_err look_at(trl_context *ctx, const trl_layout *layout, int n, const trli_output_field *fields,
                       trli_checkpoint_state *state, char **path, bool *whole, int *fits, char reason[TRLI_REASON_ROOM])
{
    trl_err err;
    TRL_TRY(share_path(ctx, path));
    TRL_TRY(trl_context_agree(ctx, trli_seal_check(ctx, *path, whole, reason)));
    *fits = *whole && trl_context_rank(ctx) == 0 && belongs(ctx, &layout->grid, *path, n, fields, state, reason);
    err = trli_broadcast(ctx, fits, 1, MPI_INT, 0);
done:
    return err;
}

/* On rank 0: the checkpoints beside a file whose steps are before its own. */
static trl_err list_older(trl_context *ctx, const char *path, char folder[PATH_MAX], entry **entries, int *n)
{
    struct stat own, other;
    const char *slash = strrchr(path, '/');
    char *name;
    int kept = 0, step = -1;
    trl_err err;
    snprintf(folder, PATH_MAX, "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
    TRL_TRY(list_folder(ctx, folder, entries, n));
    for (int i = 0; i < *n && step < 0; ++i) {
        TRL_TRY(trli_step_path(ctx, folder, (trli_step_key){.step = (*entries)[i].step}, &name));
        if (!stat(path, &own) && !stat(name, &other) && own.st_ino == other.st_ino && own.st_dev == other.st_dev)
            step = i;
        trli_free(name);
    }
    const trl_gidx before = step < 0 ? 0 : (*entries)[step].step;
    for (int i = 0; i < *n; ++i)
        if ((*entries)[i].step < before) (*entries)[kept++] = (*entries)[i];
    *n = kept;
done:
    return err;
}

/* On rank 0: *older, for trli_free: the newest checkpoint before a damaged one that is whole and belongs to the
 * problem; NULL: there is none. Collective. */
static trl_err find_older(trl_context *ctx, const trl_layout *layout, const char *path, int n,
                          const trli_output_field *fields, char **older)
{
    const bool first = trl_context_rank(ctx) == 0;
    char folder[PATH_MAX], reason[TRLI_REASON_ROOM];
    trli_checkpoint_state state;
    entry *entries = NULL;
    int left = 0, found = 0;
    bool whole;
    trl_err err = first ? list_older(ctx, path, folder, &entries, &left) : TRL_OK;
    TRL_TRY(trl_context_agree(ctx, err));
    TRL_TRY(trli_broadcast(ctx, &left, 1, MPI_INT, 0));
    for (int i = 0; i < left && !found; ++i) {
        trli_free(*older);
        *older = NULL;
        if (first) err = trli_step_path(ctx, folder, (trli_step_key){.step = entries[i].step}, older);
        TRL_TRY(trl_context_agree(ctx, err));
        TRL_TRY(look_at(ctx, layout, n, fields, &state, older, &whole, &found, reason));
    }
done:
    if (!found) trli_free(*older);
    if (!found) *older = NULL;
    trli_free(entries);
    return err;
}

/* Find the newest checkpoint that is whole and belongs to the problem. Collective. */
static trl_err choose(trl_context *ctx, const trl_layout *layout, search *s, int n, const trli_output_field *fields,
                      trli_checkpoint_state *state, char **path)
{
    const bool first = trl_context_rank(ctx) == 0;
    int alone = first && !s->is_folder, chosen = 0;
    char reason[TRLI_REASON_ROOM], *older = NULL;
    trl_err err;
    TRL_TRY(trli_broadcast(ctx, &alone, 1, MPI_INT, 0));
    while (!chosen) {
        bool whole = false;
        trli_free(*path);
        *path = NULL;
        TRL_TRY(trl_context_agree(ctx, first ? next_path(ctx, s, path) : TRL_OK));
        TRL_TRY(look_at(ctx, layout, n, fields, state, path, &whole, &chosen, reason));
        if (alone && !whole) TRL_TRY(find_older(ctx, layout, *path, n, fields, &older));
        if (first && !chosen) err = refuse(ctx, s, *path, whole, reason, older);
        TRL_TRY(trl_context_agree(ctx, err));
    }
done:
    trli_free(older);
    return err;
}

/* On rank 0: the lineage of a checkpoint if it lies in the folder where this run writes its own, else -1. */
static int64_t lineage_of(const char *path, const char *own)
{
    char folder[PATH_MAX], reason[TRLI_REASON_ROOM];
    struct stat here, there;
    trli_seal seal;
    const char *slash = strrchr(path, '/');
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
    if (stat(folder, &there)) return -1;
    snprintf(folder, sizeof folder, "%s/checkpoint", own);
    if (stat(folder, &here) || here.st_ino != there.st_ino || here.st_dev != there.st_dev) return -1;
    return trli_seal_read(path, &seal, reason) ? seal.lineage : -1;
}

/* Read a field on all ranks, if rank 0 found it. */
static trl_err read_field(trl_context *ctx, const trl_layout *layout, const char *path, const trli_output_field *field)
{
    int there = !field->found || *field->found;
    trl_err err = TRL_OK;
    if (field->found) TRL_TRY(trli_broadcast(ctx, &there, 1, MPI_INT, 0));
    if (field->found) *field->found = there;
    if (there) err = trli_hdf5_read(ctx, layout, path, field->name, 0, field);
done:
    return err;
}

trl_err trli_checkpoint_read(trl_context *ctx, const trl_layout *layout, const char *own, const char *where,
                             trli_checkpoint_state *state, int n, const trli_output_field *fields)
{
    search s = {.where = where};
    char *path = NULL;
    const bool first = trl_context_rank(ctx) == 0;
    trl_context_begin_phase(ctx);
    trl_err err = TRL_OK;
    if (first) TRL_TRY(start_search(ctx, where, &s));
    TRL_TRY(choose(ctx, layout, &s, n, fields, state, &path));
    if (first) state->lineage = lineage_of(path, own);
    TRL_TRY(trli_broadcast(ctx, state, sizeof *state, MPI_BYTE, 0));
    for (int i = 0; i < n && err == TRL_OK; ++i) err = read_field(ctx, layout, path, &fields[i]);
done:
    end_search(&s);
    trli_free(path);
    return trl_context_end_phase(ctx, err);
}
