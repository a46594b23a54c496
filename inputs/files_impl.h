/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Files of the operating system: folders, whole files, and their error messages. Nothing here is collective: one rank
 * calls, and the caller agrees on the error. */
#ifndef TRLI_FILES_IMPL_H
#define TRLI_FILES_IMPL_H

#include <sys/types.h>

#include <trl_context.h>

/* A formatted text, which the caller frees. Fails with MEMORY; *text is then NULL. */
TRL_NODISCARD trl_err trli_format(trl_context *ctx, char **text, const char *format, ...) TRL_PRINTF(3, 4);

/* Record "cannot <action> '<path>': <the system's reason>; <what to do>" and return IO. number: as errno. */
trl_err trli_file_fail(trl_context *ctx, const char *action, const char *path, int number);

/* Create a folder and its parents where they are missing. Fails with IO. */
TRL_NODISCARD trl_err trli_folder_create(trl_context *ctx, const char *path);

/* Write all bytes at a position of an open file, however many calls it takes. Returns 0 or an errno. */
TRL_NODISCARD int trli_file_put(int file, const void *bytes, size_t size, off_t at);

/* Write a file of these bytes and bring it to the disk. On failure it is removed. Fails with IO. */
TRL_NODISCARD trl_err trli_file_write(trl_context *ctx, const char *path, const void *bytes, size_t size);
/* The same aside, then renamed: the path names the old file or the new one, each whole. */
TRL_NODISCARD trl_err trli_file_replace(trl_context *ctx, const char *path, const void *bytes, size_t size);

/* Give a file its final name and bring both to the disk. On failure it keeps its name. Fails with IO. */
TRL_NODISCARD trl_err trli_file_publish(trl_context *ctx, const char *from, const char *to);

/* The whole of a file, NUL-terminated, which the caller frees. Fails with IO or MEMORY. */
TRL_NODISCARD trl_err trli_file_read(trl_context *ctx, const char *path, char **bytes, size_t *size);

#endif
