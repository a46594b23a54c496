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

void trli_step_name(trl_gidx step, char name[TRLI_STEP_ROOM])
{
    snprintf(name, TRLI_STEP_ROOM, "%08" TRL_GIDX_FMT, step);
}

trl_err trli_step_path(trl_context *ctx, const char *folder, trl_gidx step, char **path)
{
    char name[TRLI_STEP_ROOM];
    trli_step_name(step, name);
    return trli_format(ctx, path, "%s/%s" SUFFIX, folder, name);
}

/* The step of "00000100.nc"; -1 for other names. */
static trl_gidx step_of(const char *name)
{
    char same[TRLI_STEP_ROOM];
    size_t digits = strspn(name, "0123456789");
    if (digits == 0 || digits > 18 || strcmp(name + digits, SUFFIX)) return -1;
    trl_gidx step = strtoll(name, NULL, 10);
    trli_step_name(step, same);
    return strncmp(name, same, digits) == 0 && strlen(same) == digits ? step : -1;
}

static int ascending(const void *a, const void *b)
{
    trl_gidx x = *(const trl_gidx *)a, y = *(const trl_gidx *)b;
    return (x > y) - (x < y);
}

trl_err trli_steps_list(trl_context *ctx, const char *folder, trli_step_list *list)
{
    int32_t room = 0;
    trl_err err = TRL_OK;
    *list = (trli_step_list){0};
    DIR *stream = opendir(folder);
    if (!stream) return trli_file_fail(ctx, "read folder", folder, errno);
    for (struct dirent *item; (item = readdir(stream));) {
        const trl_gidx step = step_of(item->d_name);
        if (step < 0) continue;
        if (!trli_make_room(ctx, &list->step, list->n, 1, &room, sizeof *list->step))
            TRL_TRY(trli_no_memory(ctx, NULL, "to list the files in '%s'", folder));
        list->step[list->n++] = step;
    }
    /* Names of more than 8 digits do not sort as their numbers do. */
    if (list->n) qsort(list->step, (size_t)list->n, sizeof *list->step, ascending);
done:
    closedir(stream);
    if (err != TRL_OK) trli_steps_release(list);
    return err;
}

void trli_steps_release(trli_step_list *list)
{
    trli_free(list->step);
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
