/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Placements written down. A line is a task: its name, which of the tasks of that name it is, in the order in which
 * they were added, and "workers" or "device N". A line "rank R of N" begins the tasks of one rank. */
#ifndef TRLI_PLACEMENT_FILE_IMPL_H
#define TRLI_PLACEMENT_FILE_IMPL_H

#include <stdio.h>

#include "placement_impl.h"

typedef struct trli_placement_file {
    const char *path, *text; /* not owned */
    const char *graph;       /* the name of the graph that it places; others are placed as if there was no file */
} trli_placement_file;

/* The executor of each task of a frozen graph, as the file says: [tasks] *executor is the caller's. A task that the
 * file does not name is done by workers. Fails with INPUT, MEMORY: a line that is no task, an unknown or repeated task,
 * an executor that is not there or may not do it, tasks that need one executor and have several. */
TRL_NODISCARD trl_err trli_placement_file_read(trl_graph *graph, const trli_platform *platform,
                                               const trli_placement_file *file, uint8_t *executor);
/* The lines of a graph's tasks. */
TRL_NODISCARD trl_err trli_placement_file_write(trl_graph *graph, const uint8_t *executor, FILE *out);

#endif
