/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "context_impl.h"
#include "files_impl.h"
#include "memory_impl.h"
#include "merge_impl.h"

enum { FILE_BYTES_MAX = 64 << 20 };

trl_err trli_path_folder(trli_arena *arena, const char *path, const char **folder)
{
    const char *slash = strrchr(path, '/');
    if (!slash) return trli_arena_text(arena, ".", 1, folder);
    return trli_arena_text(arena, path, slash == path ? 1 : (size_t)(slash - path), folder);
}

trl_err trli_path_join(trli_arena *arena, const char *folder, const char *path, const char **joined)
{
    if (*path == '/' || strcmp(folder, ".") == 0) return trli_arena_text(arena, path, strlen(path), joined);
    return trli_arena_print(arena, joined, "%s%s%s", folder, folder[strlen(folder) - 1] == '/' ? "" : "/", path);
}

/* Whether a text begins as UTF-16 and UTF-32 do, with a byte-order mark or with an ASCII character. */
static bool is_wide(const char *text, size_t length)
{
    if (length < 2) return false;
    return memcmp(text, "\xFF\xFE", 2) == 0 || memcmp(text, "\xFE\xFF", 2) == 0 || !text[0] != !text[1];
}

/* Everything that rank 0 does alone. */
static trl_err read_here(trl_context *ctx, trli_arena *arena, const char *path, const trl_place *place, trli_file *file)
{
    char absolute[PATH_MAX], *text;
    size_t length;
    trl_err err = TRL_OK;
    TRL_TRY(trli_file_read(ctx, TRL_ERR_INPUT, place, path, FILE_BYTES_MAX, &text, &length));
    if (is_wide(text, length))
        err = trl_fail(ctx, TRL_ERR_INPUT, place,
                       "cannot read '%s': it is written in UTF-16 or UTF-32; save it as UTF-8", path);
    else if (memchr(text, 0, length))
        err = trl_fail(ctx, TRL_ERR_INPUT, place, "cannot read '%s': it holds a NUL character, so it is no text", path);
    else
        err = trli_arena_text(arena, text, length, &file->text);
    trli_free(text);
    TRL_TRY(err);
    if (!realpath(path, absolute))
        TRL_TRY(trl_fail(ctx, TRL_ERR_INPUT, place, "cannot read '%s': %s", path, strerror(errno)));
    TRL_TRY(trli_arena_text(arena, absolute, strlen(absolute), &file->path));
done:
    return err;
}

static trl_err broadcast_text(trl_context *ctx, trli_arena *arena, const char **text)
{
    int length = *text ? (int)strlen(*text) : 0;
    char *copy;
    trl_err err;
    TRL_TRY(trli_broadcast(ctx, &length, 1, MPI_INT, 0));
    TRL_TRY(trli_arena_alloc(arena, (size_t)length + 1, &copy));
    if (*text) memcpy(copy, *text, (size_t)length);
    TRL_TRY(trli_broadcast(ctx, copy, length, MPI_CHAR, 0));
    *text = copy;
done:
    return err;
}

trl_err trli_deck_file_read(trl_context *ctx, trli_arena *arena, const char *path, const trl_place *place,
                            trli_file *file)
{
    *file = (trli_file){0};
    trl_err err = trl_context_rank(ctx) == 0 ? read_here(ctx, arena, path, place, file) : TRL_OK;
    TRL_TRY(trl_context_agree(ctx, err));
    TRL_TRY(broadcast_text(ctx, arena, &file->text));
    TRL_TRY(broadcast_text(ctx, arena, &file->path));
done:
    return err;
}
