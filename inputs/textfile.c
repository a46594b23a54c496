/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <string.h>

#include "files_impl.h"
#include "memory_impl.h"
#include "output_impl.h"

static trl_err write_text(trl_context *ctx, const char *folder, const char *name, const char *text)
{
    char *path = NULL;
    trl_err err;
    TRL_TRY(trli_folder_create(ctx, folder));
    TRL_TRY(trli_format(ctx, &path, "%s/%s", folder, name));
    TRL_TRY(trli_file_replace(ctx, path, text, strlen(text)));
done:
    trli_free(path);
    return err;
}

trl_err trli_text_write(trl_context *ctx, const char *folder, const char *name, const char *text)
{
    trl_err err = trl_context_rank(ctx) == 0 ? write_text(ctx, folder, name, text) : TRL_OK;
    return trl_context_agree(ctx, err);
}
