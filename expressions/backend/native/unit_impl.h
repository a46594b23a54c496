/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* One run of the system's C compiler on the texts of a few kernels, in the workshop of a process: what it reads, what
 * it is called with, and what it leaves. Its files have one name, a digest, and suffixes. */
#ifndef TRLI_UNIT_IMPL_H
#define TRLI_UNIT_IMPL_H

#include <trl_context.h>

#include "cache_impl.h"

enum { TRLI_UNIT_FILE = TRLI_DIGEST_TEXT + 8 /* of a name in the workshop */ };

/* A kernel of a unit. Its function is trl_kernel_<digest>, and all names that TRL_OWN makes end so. */
typedef struct trli_unit_kernel {
    const char *digest, *text;
} trli_unit_kernel;

void trli_unit_file(const char *digest, const char *suffix, char name[TRLI_UNIT_FILE]);
/* Add the options of the compiler, and what precedes each text. */
void trli_unit_digest(uint64_t digest[2], bool fast_math);
/* Write the source of n kernels; its name, as that of all files of the unit, is the digest of the first. False, with
 * errno: it cannot be written. */
bool trli_unit_write(const trli_workshop *workshop, int n, const trli_unit_kernel *kernel);
/* Start a compiler, which leads a process group of its own. */
bool trli_unit_start(trl_context *ctx, const trli_workshop *workshop, const char *program, bool fast_math,
                     const char *digest, pid_t *pid);
/* End a compiler, which then removes its own temporary files, and all that it started. */
void trli_unit_stop(trl_context *ctx, pid_t pid);
/* Tell who started this process of a group of processes that it starts, or that has ended. */
void trli_unit_tell(const trl_context *ctx, pid_t group, bool started);
/* The first line of what the compiler said. */
void trli_unit_log(const trli_workshop *workshop, const char *digest, char *line, int room);
/* Remove the files. */
void trli_unit_clean(const trli_workshop *workshop, const char *digest);

#endif
