/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* What the commands that read a deck share: the registry, the folders of plugins, and the deck itself. */
#include "command_impl.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "builtins_impl.h"
#include "context_impl.h"
#include "memory_impl.h"

static bool is_folder(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

trl_err trli_installed_folder(trl_context *ctx, const char *below, const char *fallback, char *path, size_t size)
{
    char program[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    for (int up = 0; up < 2 && length > 0; ++up)
        while (length > 0 && program[--length] != '/') {
        }
    if (length > 0) {
        snprintf(path, size, "%.*s/%s", (int)length, program, below);
        if (is_folder(path)) return TRL_OK;
    }
    snprintf(path, size, "%s", fallback);
    if (is_folder(path)) return TRL_OK;
    return trl_fail(ctx, TRL_ERR_INPUT, NULL,
                    "this installation is incomplete: no folder '%s' beside the program's, and no '%s'", below,
                    fallback);
}

/* The lists that the reader of decks wants during its call; each has room for the one entry that is added. */
typedef struct request_lists {
    const char **set, **folder;
    int nsets, nfolders;
    char threads[64], installed[PATH_MAX];
} request_lists;

static trl_err fill_lists(trl_context *ctx, const trli_arguments *arguments, request_lists *lists)
{
    trl_err err = TRL_OK;
    trl_gidx threads = 0;
    lists->nsets = trli_arguments_values(ctx, arguments, "--set", &lists->set);
    lists->nfolders = trli_arguments_values(ctx, arguments, "--plugin-path", &lists->folder);
    if (lists->nsets < 0 || lists->nfolders < 0) return trli_no_memory(ctx, NULL, "for the command's options");
    TRL_TRY(trli_arguments_integer(ctx, arguments, "--threads", 1, &threads));
    if (threads) {
        snprintf(lists->threads, sizeof lists->threads, "run.threads=%" TRL_GIDX_FMT, threads);
        lists->set[lists->nsets++] = lists->threads;
    }
    TRL_TRY(
        trli_installed_folder(ctx, TRLI_PLUGINS_BELOW, TRL_PLUGIN_FOLDER, lists->installed, sizeof lists->installed));
    lists->folder[lists->nfolders++] = lists->installed;
done:
    return err;
}

trl_err trli_command_deck(trl_context *ctx, const trli_arguments *arguments, trl_registry **registry, trli_deck **deck)
{
    request_lists lists = {0};
    const trl_diagnostic *list;
    trl_err err = TRL_OK;
    *registry = NULL;
    *deck = NULL;
    TRL_TRY(trl_context_agree(ctx, fill_lists(ctx, arguments, &lists)));
    TRL_TRY(trl_registry_create(ctx, registry));
    TRL_TRY(trli_register_builtins(*registry));
    const trli_deck_request request = {
        .path = arguments->operand[0],
        .nsets = lists.nsets,
        .set = lists.set,
        .nfolders = lists.nfolders,
        .plugin_folder = lists.folder,
    };
    TRL_TRY(trli_deck_read(ctx, *registry, &request, deck));
    const trli_deck_options *options = trli_deck_options_of(*deck);
    trl_context_set_memory(ctx, options->memory);
    const int said = trl_context_diagnostics(ctx, &list);
    err = trl_context_agree(ctx, trl_context_set_threads(ctx, options->threads));
    trli_diagnostics_locate(ctx, said, &trli_deck_problem(*deck)->threads_place);
done:
    trli_free(lists.set);
    trli_free(lists.folder);
    return err;
}
