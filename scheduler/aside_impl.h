/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Names of files that are written beside their final place and then renamed. Every name is unique, no other process
 * can guess or claim it, and it says which process writes: files of a killed process are found by their names. */
#ifndef TRLI_ASIDE_IMPL_H
#define TRLI_ASIDE_IMPL_H

#include <stdbool.h>

enum { TRLI_ASIDE_ROOM = 80 };

/* ".trellis-HOST-PROCESS-RANDOM", without a folder; a suffix may follow. Thread: any. */
void trli_aside_name(char name[TRLI_ASIDE_ROOM]);

/* Remove what processes that have ended left in an open folder: files of this user with such names whose process no
 * longer exists, or that are older than a day if the process ran on another host. folders: remove folders, too, with
 * the files in them, in places where nobody else can rename any. Without the right to list a folder nothing is
 * removed. */
void trli_aside_sweep(int folder, bool folders);
/* Remove all files of an open folder. */
void trli_aside_empty(int folder);

#endif
