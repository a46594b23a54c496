/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Folders of files that are named after steps. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "memory_impl.h"
#include "output_hdf5_impl.h"

#define SUFFIX ".nc"

void trli_step_name(trli_step_key key, char name[TRLI_STEP_ROOM])
{
    const int n = snprintf(name, TRLI_STEP_ROOM, "%08" TRL_GIDX_FMT, key.step);
    if (key.part > 0) snprintf(name + n, (size_t)(TRLI_STEP_ROOM - n), "_%03d", key.part);
}

trl_err trli_step_path(trl_context *ctx, const char *folder, trli_step_key key, char **path)
{
    char name[TRLI_STEP_ROOM];
    trli_step_name(key, name);
    return trli_format(ctx, path, "%s/%s" SUFFIX, folder, name);
}

/* The key of "00000100.nc" or "00000100_001.nc"; its step is -1 for other names. */
static trli_step_key key_of(const char *name)
{
    const trli_step_key none = {.step = -1};
    char same[TRLI_STEP_ROOM];
    trli_step_key key = {0};
    size_t digits = strspn(name, "0123456789"), length = digits;
    if (digits == 0 || digits > 18) return none;
    key.step = strtoll(name, NULL, 10);
    if (name[length] == '_') {
        const size_t more = strspn(name + length + 1, "0123456789");
        if (more == 0 || more > 9) return none;
        key.part = atoi(name + length + 1);
        length += 1 + more;
    }
    trli_step_name(key, same);
    return strncmp(name, same, length) == 0 && strlen(same) == length && !strcmp(name + length, SUFFIX) ? key : none;
}

static int ascending(const void *a, const void *b)
{
    const trli_step_key *x = a, *y = b;
    if (x->step == y->step) return (x->part > y->part) - (x->part < y->part);
    return (x->step > y->step) - (x->step < y->step);
}

trl_err trli_steps_list(trl_context *ctx, const char *folder, trli_step_list *list)
{
    int32_t room = 0;
    trl_err err = TRL_OK;
    *list = (trli_step_list){0};
    DIR *stream = opendir(folder);
    if (!stream) return trli_file_fail(ctx, "read folder", folder, errno);
    for (struct dirent *item; (item = readdir(stream));) {
        const trli_step_key key = key_of(item->d_name);
        if (key.step < 0) continue;
        if (!trli_make_room(ctx, &list->key, list->n, 1, &room, sizeof *list->key))
            TRL_TRY(trli_no_memory(ctx, NULL, "to list the files in '%s'", folder));
        list->key[list->n++] = key;
    }
    /* Names of more than 8 digits do not sort as their numbers do. */
    if (list->n) qsort(list->key, (size_t)list->n, sizeof *list->key, ascending);
done:
    closedir(stream);
    if (err != TRL_OK) trli_steps_release(list);
    return err;
}

void trli_steps_release(trli_step_list *list)
{
    trli_free(list->key);
    *list = (trli_step_list){0};
}

trl_err trli_output_folder_find(trl_context *ctx, const char *path, trli_output_folder *folder)
{
    struct stat status;
    trl_place place = {.file = path};
    trl_err err;
    *folder = (trli_output_folder){0};
    TRL_TRY(trli_format(ctx, &folder->path, "%s/fields", path));
    if (stat(folder->path, &status) || !S_ISDIR(status.st_mode)) folder->path[strlen(path)] = 0;
    TRL_TRY(trli_steps_list(ctx, folder->path, &folder->steps));
    if (folder->steps.n == 0)
        err = trl_fail(ctx, TRL_ERR_IO, &place,
                       "holds no files of fields, such as fields/00000000.nc: is it the output folder of a run?");
done:
    if (err != TRL_OK) trli_output_folder_release(folder);
    return err;
}

void trli_output_folder_release(trli_output_folder *folder)
{
    trli_free(folder->path);
    trli_steps_release(&folder->steps);
    *folder = (trli_output_folder){0};
}
