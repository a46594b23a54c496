/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Files of fields that are written while steps go on. A file is begun where all ranks are; each copies its points. Then
 * its thread writes them and brings them to the disk; when all ranks have, that of rank 0 gives the file its name.
 * Agreements carry how far ranks are, so that all take the next part of a file after the same step, with its errors,
 * and nobody waits for a disk. Files get their names in the order in which they were begun: after one that fails, later
 * ones are dropped. */
#ifndef TRLI_OUTPUT_BESIDE_IMPL_H
#define TRLI_OUTPUT_BESIDE_IMPL_H

#include "output_file_impl.h"

typedef struct trli_beside_stats {
    int64_t files;  /* that got their names */
    double seconds; /* that this rank's thread took for them */
    double last;    /* for the last one, with those to begin it */
    int64_t bytes;  /* of copies at most at once */
} trli_beside_stats;

/* Start the thread. *beside is NULL where some rank's system starts none. Fails with MEMORY, MPI. Collective: yes. */
TRL_NODISCARD trl_err trli_beside_create(trl_context *ctx, trli_beside **beside);
/* What is under way is dropped. Not collective. */
void trli_beside_destroy(trli_beside **beside);

/* What rank 0 does with a file on its way, on the main thread. */
typedef struct trli_file_owner {
    void *data; /* for trli_free when it is over */
    /* OPTIONAL. All values are in the file, which is called `aside`: begin another file, if need be, which gets its
     * name after that one. */
    trl_err (*add)(void *data, const char *aside, trli_new_file *more);
    /* OPTIONAL. Both have their names. */
    trl_err (*named)(void *data);
} trli_file_owner;

/* Write a file for one time of fields. beside: while steps go on, two files at most at once; what the fields are called
 * stays where it is until then, their values may change. NULL: at once. Fails with IO, MEMORY, MPI, also because of a
 * file before. Collective: yes. */
TRL_NODISCARD trl_err trli_fields_store(trl_context *ctx, trli_beside *beside, const trli_file_owner *owner,
                                        const trl_layout *layout, const char *path, int64_t lineage,
                                        const trli_contents *contents, int n, const trli_output_field *fields);
/* Whether all ranks have done a part of the oldest file, as they all know. */
bool trli_beside_is_due(const trli_beside *beside);
/* Then go on with it. Fails as above. Collective: yes; no agreement may be late. */
TRL_NODISCARD trl_err trli_beside_go_on(trli_beside *beside);
/* Wait until all files have their names. Collective: yes; likewise. */
TRL_NODISCARD trl_err trli_beside_finish(trli_beside *beside);
/* Whether a file got no name: a restart from a later checkpoint would miss it. */
bool trli_beside_has_failed(const trli_beside *beside);
trli_beside_stats trli_beside_get_stats(const trli_beside *beside);

#endif
