/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Placements as files. A line is a task: its name, its number among the tasks of that name in the order added, and
 * "workers" or "device N". A line "rank R of N" starts the tasks of one rank. */
#ifndef TRLI_PLACEMENT_FILE_IMPL_H
#define TRLI_PLACEMENT_FILE_IMPL_H

#include <stdio.h>

#include "placement_impl.h"

typedef struct trli_placement_file {
    const char *path, *text; /* not owned */
    const char *graph;       /* the name of the graph that it places; other graphs are placed as without a file */
} trli_placement_file;

/* The executor of each task of a frozen graph, as the file says: [tasks] *executor is the caller's. Tasks that the
 * file does not name run on workers. Fails with MEMORY; with INPUT for a malformed line, an unknown or repeated
 * task, an executor that does not exist or may not run the task, and tasks with several executors that need a common
 * one. */
TRL_NODISCARD trl_err trli_placement_file_read(trl_graph *graph, const trli_platform *platform,
                                               const trli_placement_file *file, uint8_t *executor);
/* Write the lines of a graph's tasks. */
TRL_NODISCARD trl_err trli_placement_file_write(trl_graph *graph, const uint8_t *executor, FILE *out);

#endif
