/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Files of the operating system: folders, whole files, and their error messages. Nothing here is collective: one rank
 * calls, and the caller agrees on the error. */
#ifndef TRLI_FILES_IMPL_H
#define TRLI_FILES_IMPL_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#include <trl_context.h>

enum { TRLI_FILE_REASON = 160 };

/* A formatted text; trli_free gives it back. Fails with MEMORY; *text is then NULL. */
TRL_NODISCARD trl_err trli_format(trl_context *ctx, char **text, const char *format, ...) TRL_PRINTF(3, 4);

/* Record "cannot <action> '<path>': <the system's reason>; <what to do>" and return IO. number: as errno. */
trl_err trli_file_fail(trl_context *ctx, const char *action, const char *path, int number);

/* Create a folder and its parents where they are missing. Fails with IO. */
TRL_NODISCARD trl_err trli_folder_create(trl_context *ctx, const char *path);

/* The same for the folder that a path is in. */
TRL_NODISCARD trl_err trli_folder_create_for(trl_context *ctx, const char *path);

/* Write all bytes at a position of an open file, however many calls it takes. at: negative for the present position,
 * which devices and pipes alone have. Returns 0 or an errno. */
TRL_NODISCARD int trli_file_put(int file, const void *bytes, size_t size, off_t at);

/* Why a file cannot be written at a path, or NULL. Only a regular file, or nothing, is replaced: no folder, link,
 * device, pipe or socket. streams: devices of characters and pipes (also by links to them, as /dev/stdout) are written
 * to as they are. */
const char *trli_file_refusal(const char *path, bool streams);

/* Whether two paths lead to one file. */
bool trli_file_same(const char *a, const char *b);
/* Whether a folder, or the nearest one above it that exists, can be written to; why not. */
bool trli_folder_possible(const char *path, char reason[TRLI_FILE_REASON]);
/* Before a long run: whether what an option of a command names could be written. Fails with INPUT. */
TRL_NODISCARD trl_err trli_file_check(trl_context *ctx, const char *command, const char *option, const char *path);

/* A file on its way: until it is whole it has another name in the same folder, which no other file can have. */
typedef struct trli_new_file {
    trl_context *ctx;
    char *path;  /* the name that it gets */
    char *aside; /* the name that it has; NULL: a device or a pipe, written to directly */
    int file;    /* open for writing; those that go by `aside` write to the same file */
    bool named;  /* it has its name */
} trli_new_file;

/* Create the file aside. streams: as above. Fails with IO or MEMORY; *file is then empty. */
TRL_NODISCARD trl_err trli_file_begin(trl_context *ctx, const char *path, bool streams, trli_new_file *file);
/* A stream to write to the file, which the caller closes before the end. Fails with IO. */
TRL_NODISCARD trl_err trli_file_stream(const trli_new_file *file, FILE **stream);
/* Bring the file to the disk and give it its name, by which the path names the old file or the new one, each whole.
 * False: why not, after which trli_file_end removes it. Without messages. Thread: any. */
bool trli_file_publish(trli_new_file *file, char reason[TRLI_FILE_REASON]);
/* Record "cannot write '<path>': <reason>" and return IO. */
trl_err trli_file_fail_to_publish(const trli_new_file *file, const char *reason);
/* Publish the file unless that is done. With `ended` an error, or if this fails, it is removed. Returns `ended`, or IO.
 * *file is empty after that, and may have been before. */
TRL_NODISCARD trl_err trli_file_end(trli_new_file *file, trl_err ended);
/* Both, with these bytes between them. */
TRL_NODISCARD trl_err trli_file_replace(trl_context *ctx, const char *path, const void *bytes, size_t size);
TRL_NODISCARD trl_err trli_file_write(trl_context *ctx, const char *path, const void *bytes, size_t size);

typedef struct trli_names {
    char **name; /* [n] */
    int32_t n, capacity;
} trli_names;

/* The names of the entries of a folder that are wanted, sorted by their bytes; trli_names_free gives them back. False,
 * with errno and without names or a message: the folder cannot be read, or there is no memory. */
TRL_NODISCARD bool trli_folder_list(trl_context *ctx, const char *path, bool (*wanted)(const char *name),
                                    trli_names *names);
void trli_names_free(trli_names *names);

/* Remove what killed runs left in a folder, if it exists. */
void trli_folder_sweep(const char *path);

/* "a file", "a folder", "a pipe", ... */
const char *trli_file_kind(mode_t mode);
/* Open a regular file to read it, and find its size. -1, and why: it cannot be opened, or is of another kind, which
 * reading could wait for or act on. */
int trli_file_open(const char *path, off_t *size, char reason[TRLI_FILE_REASON]);
/* The whole of a regular file of at most so many bytes, NUL-terminated; trli_free gives it back. Fails with `class`,
 * which is INPUT or IO, or with MEMORY. */
TRL_NODISCARD trl_err trli_file_read(trl_context *ctx, trl_err class, const trl_place *place, const char *path,
                                     off_t most, char **bytes, size_t *size);

#endif
