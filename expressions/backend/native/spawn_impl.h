/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Programs of the system: where they are, and how they are started. */
#ifndef TRLI_SPAWN_IMPL_H
#define TRLI_SPAWN_IMPL_H

#include <trl_context.h>

#include "cache_impl.h"

/* The absolute path of a program: a path, or a name in PATH. */
bool trli_program_find(const char *name, char path[TRLI_PATH_ROOM]);
/* Start argv[0], a path, in an open folder, with what it prints in the file `log` there. It leads a process group of
 * its own, and its temporary files lie in the folder. */
bool trli_program_start(trl_context *ctx, int folder, char *const *argv, const char *log, pid_t *pid);

#endif
