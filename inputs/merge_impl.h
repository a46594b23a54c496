/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* From files and --set to one tree. */
#ifndef TRLI_MERGE_IMPL_H
#define TRLI_MERGE_IMPL_H

#include "deck_impl.h"
#include "schema_impl.h"

/* A file as rank 0 read it. */
typedef struct trli_file {
    const char *text;
    const char *path; /* absolute, without links */
} trli_file;

/* Read a text file on rank 0 and give it to all. INPUT errors: missing, no file, larger than 64 MB, a NUL character.
 * place: where the deck names the file, or NULL. Collective: yes. */
TRL_NODISCARD trl_err trli_deck_file_read(trl_context *ctx, trli_arena *arena, const char *path, const trl_place *place,
                                          trli_file *file);
/* The folder of a path, "." if it has none. */
TRL_NODISCARD trl_err trli_path_folder(trli_arena *arena, const char *path, const char **folder);
/* path as seen from a folder: itself if absolute or the folder is ".". */
TRL_NODISCARD trl_err trli_path_join(trli_arena *arena, const char *folder, const char *path, const char **joined);

/* The merged deck and where its files stand. */
typedef struct trli_loaded {
    trli_yaml *root;
    trli_map files; /* name of a file as places have it -> position in folder */
    int nfiles, capacity;
    const char **folder; /* absolute; the first is the deck's own */
    int npaths, paths_capacity;
    const char **path; /* absolute, of the files themselves */
} trli_loaded;

/* Read a deck with all it includes, and apply the settings of the command line. Collective: yes. */
TRL_NODISCARD trl_err trli_deck_load(trl_context *ctx, trli_arena *arena, const trli_deck_request *request,
                                     trli_loaded *loaded);
/* The folder that paths given at a place are relative to; those of --set belong to the deck. */
const char *trli_loaded_folder(const trli_loaded *loaded, const trl_place *place);

/* base with over merged into it; both stay as they are. key: of the schema, NULL where it knows none. */
TRL_NODISCARD trl_err trli_merge(trli_arena *arena, const trli_key *key, trli_yaml *base, trli_yaml *over,
                                 trli_yaml **merged);
/* Apply "a.b.c=value"; number counts the settings from 1 for messages. */
TRL_NODISCARD trl_err trli_merge_setting(trl_context *ctx, trli_arena *arena, const char *setting, int number,
                                         trli_yaml *root, trli_yaml **merged);

#endif
