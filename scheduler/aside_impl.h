/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Names of files that are written aside of their place and then renamed. Every file has a name of its own, which no
 * other process can guess or take for its own, and which says who writes: what a killed process left is found by its
 * name. */
#ifndef TRLI_ASIDE_IMPL_H
#define TRLI_ASIDE_IMPL_H

#include <stdbool.h>

enum { TRLI_ASIDE_ROOM = 80 };

/* ".trellis-HOST-PROCESS-RANDOM", without a folder; a suffix may follow. Thread: any. */
void trli_aside_name(char name[TRLI_ASIDE_ROOM]);

/* Remove what processes that ended left in an open folder: files of this user with such names whose process is no more,
 * or that are older than a day where it belongs to another host. folders: folders, too, with the files in them, where
 * nobody else can rename any. One without the right to list the folder removes nothing. */
void trli_aside_sweep(int folder, bool folders);
/* Remove all files of an open folder. */
void trli_aside_empty(int folder);

#endif
