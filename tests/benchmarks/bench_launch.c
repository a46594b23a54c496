/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench_launch_impl.h"
#include "files_impl.h"
#include "memory_impl.h"

enum { OPTIONS_MOST = 28, PATH_ROOM = 128, FILE_MOST = 1 << 24 };

static const char deck_file[] = "deck.yaml", report_file[] = "report.json", log_file[] = "log";

static void path_of(const trli_launch *launch, const char *file, char path[PATH_ROOM])
{
    snprintf(path, PATH_ROOM, "%s/%s", launch->folder, file);
}

trl_err trli_launch_begin(trli_launch *launch)
{
    snprintf(launch->folder, sizeof launch->folder, "/tmp/trellis-bench-XXXXXX");
    if (mkdtemp(launch->folder)) return TRL_OK;
    launch->folder[0] = '\0';
    return trl_fail(launch->ctx, TRL_ERR_IO, NULL, "no folder can be made in /tmp");
}

trl_err trli_launch_prepare(trli_launch *launch, const char *deck)
{
    char path[PATH_ROOM];
    if (!launch->folder[0]) {
        const trl_err err = trli_launch_begin(launch);
        if (err != TRL_OK) return err;
    }
    path_of(launch, deck_file, path);
    return trli_file_write(launch->ctx, path, deck, strlen(deck));
}

/* What a launcher, or MPI in this process, has set for this process is not for its children; settings of the user are.
 */
static bool is_inherited(const char *variable)
{
    static const char *const own[] = {"PMIX_",         "PMI_",          "OMPI_COMM_",
                                      "OMPI_MCA_ess",  "OMPI_MCA_pmix", "OMPI_MCA_orte_",
                                      "OMPI_UNIVERSE", "OMPI_APP_CTX_", "OMPI_FILE_"};
    for (size_t i = 0; i < sizeof own / sizeof *own; ++i)
        if (strncmp(variable, own[i], strlen(own[i])) == 0) return false;
    return true;
}

static char **environment(trl_context *ctx)
{
    int n = 0, kept = 0;
    while (environ[n]) ++n;
    char **list = trli_new(ctx, (size_t)n + 1, sizeof *list);
    for (int i = 0; list && i < n; ++i)
        if (is_inherited(environ[i])) list[kept++] = environ[i];
    return list;
}

static trl_err spawn(const trli_launch *launch, const char *const *argv)
{
    posix_spawn_file_actions_t actions;
    char log[PATH_ROOM];
    pid_t pid;
    int status = -1;
    char **variables = environment(launch->ctx);
    path_of(launch, log_file, log);
    if (!variables || posix_spawn_file_actions_init(&actions) != 0) {
        trli_free(variables);
        return trl_fail(launch->ctx, TRL_ERR_MEMORY, NULL, "no memory to start a program");
    }
    (void)posix_spawn_file_actions_addchdir_np(&actions, launch->folder);
    (void)posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    (void)posix_spawn_file_actions_addopen(&actions, 1, log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    (void)posix_spawn_file_actions_adddup2(&actions, 1, 2);
    const bool started = posix_spawnp(&pid, argv[0], &actions, NULL, (char *const *)argv, variables) == 0;
    posix_spawn_file_actions_destroy(&actions);
    trli_free(variables);
    if (!started) return trl_fail(launch->ctx, TRL_ERR_IO, NULL, "'%s' cannot be started; is it in PATH?", argv[0]);
    if (waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0) return TRL_OK;
    char *said = NULL;
    size_t size;
    if (trli_file_read(launch->ctx, TRL_ERR_IO, NULL, log, FILE_MOST, &said, &size) != TRL_OK) return TRL_ERR_IO;
    trl_err err = trl_fail(launch->ctx, TRL_ERR_IO, NULL, "a run on %s ranks failed: %s", argv[2], said);
    trli_free(said);
    return err;
}

/* Run this program by the launcher, with these arguments, and read the text of its report. */
static trl_err run_ranks(const trli_launch *launch, int ranks, const char *const *arguments, char **report)
{
    char program[PATH_MAX], number[16], path[PATH_ROOM];
    const char *argv[OPTIONS_MOST] = {"mpirun", "-n", number, "--bind-to", "none", "--oversubscribe", program};
    const ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    size_t size;
    trl_err err = TRL_OK;
    if (length <= 0) return trl_fail(launch->ctx, TRL_ERR_IO, NULL, "/proc/self/exe cannot be read");
    program[length] = '\0';
    snprintf(number, sizeof number, "%d", ranks);
    for (int n = 7; *arguments && n + 1 < OPTIONS_MOST; ++n) argv[n] = *arguments++;
    path_of(launch, report_file, path);
    (void)unlink(path);
    TRL_TRY(spawn(launch, argv));
    TRL_TRY(trli_file_read(launch->ctx, TRL_ERR_IO, NULL, path, FILE_MOST, report, &size));
done:
    return err;
}

trl_err trli_launch_run(const trli_launch *launch, int ranks, int threads, const char *const *options, char **report)
{
    char number[16];
    const char *argument[OPTIONS_MOST] = {
        "run",      "--threads", number,  deck_file,        "--quiet", "--set", "output.directory=out",
        "--report", report_file, "--set", "run.devices=cpu"};
    snprintf(number, sizeof number, "%d", threads);
    for (int n = 11; *options && n + 1 < OPTIONS_MOST; ++n) argument[n] = *options++;
    return run_ranks(launch, ranks, argument, report);
}

trl_err trli_launch_bench(const trli_launch *launch, int ranks, const char *const *options, char **printed,
                          char **report)
{
    const char *argument[OPTIONS_MOST] = {"bench", "--json", report_file};
    char log[PATH_ROOM];
    size_t size;
    trl_err err = TRL_OK;
    for (int n = 3; *options && n + 1 < OPTIONS_MOST; ++n) argument[n] = *options++;
    TRL_TRY(run_ranks(launch, ranks, argument, report));
    path_of(launch, log_file, log);
    err = trli_file_read(launch->ctx, TRL_ERR_IO, NULL, log, FILE_MOST, printed, &size);
done:
    return err;
}

void trli_launch_clean(trli_launch *launch)
{
    const char *const argv[] = {"rm", "-rf", launch->folder, NULL};
    pid_t pid;
    if (launch->folder[0] && posix_spawnp(&pid, argv[0], NULL, NULL, (char *const *)argv, environ) == 0)
        (void)waitpid(pid, NULL, 0);
    launch->folder[0] = '\0';
}

/* What follows a key and its colon; NULL: there is none. */
static const char *find(const char *report, const char *key)
{
    const char *at = report ? strstr(report, key) : NULL;
    if (at) at = strchr(at + strlen(key), ':');
    return at ? at + 1 : NULL;
}

double trli_report_number(const char *report, const char *key, const char *inside)
{
    const char *at = find(report, key);
    if (inside) at = find(at, inside);
    return at ? strtod(at, NULL) : NAN;
}

void trli_report_text(const char *report, const char *key, char *text, size_t size)
{
    const char *at = find(report, key);
    if (at) at = strchr(at, '"');
    text[0] = '\0';
    if (!at) return;
    const size_t length = strcspn(at + 1, "\"");
    snprintf(text, size, "%.*s", (int)length, at + 1);
}
