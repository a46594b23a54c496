/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "context_impl.h"
#include "memory_impl.h"
#include "spawn_impl.h"

static bool is_program(const char *path)
{
    struct stat s;
    return stat(path, &s) == 0 && S_ISREG(s.st_mode) && access(path, X_OK) == 0;
}

static bool find_in_path(const char *name, char path[TRLI_PATH_ROOM])
{
    const char *folders = getenv("PATH");
    if (strchr(name, '/')) return snprintf(path, TRLI_PATH_ROOM, "%s", name) < TRLI_PATH_ROOM && is_program(path);
    while (folders && *folders) {
        int n = (int)strcspn(folders, ":");
        if (n > 0 && snprintf(path, TRLI_PATH_ROOM, "%.*s/%s", n, folders, name) < TRLI_PATH_ROOM && is_program(path))
            return true;
        folders += n + (folders[n] == ':');
    }
    return false;
}

/* Compilers are started in a folder of their own. */
static bool make_absolute(char path[TRLI_PATH_ROOM])
{
    char relative[TRLI_PATH_ROOM], here[TRLI_PATH_ROOM];
    if (path[0] == '/') return true;
    memcpy(relative, path, sizeof relative);
    return getcwd(here, sizeof here) && snprintf(path, TRLI_PATH_ROOM, "%s/%s", here, relative) < TRLI_PATH_ROOM;
}

bool trli_program_find(const char *name, char path[TRLI_PATH_ROOM])
{
    return find_in_path(name, path) && make_absolute(path);
}

/* The environment of this process, but for temporary files: what a killed compiler leaves is removed with the workshop.
 */
static char **environment(trl_context *ctx)
{
    static char temporary[] = "TMPDIR=.";
    int n = 0, kept = 0;
    while (environ[n]) ++n;
    char **list = trli_new(ctx, (size_t)n + 2, sizeof *list);
    for (int i = 0; list && i < n; ++i)
        if (strncmp(environ[i], "TMPDIR=", 7) != 0) list[kept++] = environ[i];
    if (list) list[kept] = temporary;
    return list;
}

bool trli_program_start(trl_context *ctx, int folder, char *const *argv, const char *log, pid_t *pid)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none;
    int status = -1;
    char **variables = environment(ctx);
    sigemptyset(&none);
    if (!variables || posix_spawn_file_actions_init(&actions) != 0) {
        trli_free(variables);
        return false;
    }
    if (posix_spawnattr_init(&attributes) == 0) {
        /* A group of its own: what a user types at the terminal ends the run, which then ends its compilers. */
        (void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
        (void)posix_spawnattr_setpgroup(&attributes, 0);
        (void)posix_spawnattr_setsigmask(&attributes, &none);
        (void)posix_spawn_file_actions_addfchdir_np(&actions, folder);
        (void)posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
        (void)posix_spawn_file_actions_addopen(&actions, 1, log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        (void)posix_spawn_file_actions_adddup2(&actions, 1, 2);
        /* Workers are pinned, the caller too: a compiler would share its core, with all the others. */
        hwloc_bitmap_t bound = trli_topology_unbind(&ctx->topology);
        status = posix_spawn(pid, argv[0], &actions, &attributes, argv, variables);
        trli_topology_rebind(&ctx->topology, bound);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&actions);
    trli_free(variables);
    return status == 0;
}
