/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Files that a run appends to, piece by piece: series.csv, receivers.nc. Nothing here is collective: one rank calls. */
#ifndef TRLI_GROWING_FILE_IMPL_H
#define TRLI_GROWING_FILE_IMPL_H

#include "files_impl.h"

typedef struct trli_growing_file {
    trl_context *ctx;
    const char *what; /* "the series", for messages */
    char *path;
    int file, end; /* the file, for any place and for its end; -1: not open */
    off_t size;    /* of what is whole */
} trli_growing_file;

/* Open folder/name, which exists and is `size` bytes long. Fails with IO, MEMORY. */
TRL_NODISCARD trl_err trli_growing_open(trl_context *ctx, const char *what, const char *path, off_t size,
                                        trli_growing_file *file);
/* Append a piece. Half of it, where the disk ran full, is taken back. Fails with IO, also if the file is not the one at
 * its path any more, or was changed. */
TRL_NODISCARD trl_err trli_growing_append(trli_growing_file *file, const void *bytes, size_t size);
/* Bring the file to the disk and close it, unless it is not open. Fails as above. */
TRL_NODISCARD trl_err trli_growing_close(trli_growing_file *file);

#endif
