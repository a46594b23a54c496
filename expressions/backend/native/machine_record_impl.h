/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* What was measured of this machine, as numbers that the cache keeps from run to run, or an environment variable
 * gives. */
#ifndef TRLI_MACHINE_RECORD_IMPL_H
#define TRLI_MACHINE_RECORD_IMPL_H

#include <trl_context.h>

#include "cache_impl.h"

enum { TRLI_RECORD_NUMBERS = 5 };

typedef struct trli_record_kind {
    const char *suffix;   /* of its entries in the cache */
    const char *version;  /* of what is measured, and how: of another one nothing is read */
    int n;                /* numbers */
    double least, most;   /* each is at least the one, and below the other */
    const char *variable; /* of the environment, with the numbers of another machine */
    const char *meaning;  /* of the numbers, in words */
} trli_record_kind;

typedef struct trli_machine_record {
    double number[TRLI_RECORD_NUMBERS];
    long long at; /* s since 1970, of the last measurement */
    int times;    /* how often all numbers were measured; 0: there are none */
} trli_machine_record;

/* The name of a kind's entry for this processor and two counts of workers, ranks or cores. */
void trli_record_name(const trli_record_kind *kind, const int counts[2], char entry[TRLI_ENTRY_ROOM]);
/* An entry that is not there, not sound, or of more than so many s before now, is a record without numbers. */
void trli_record_load(const trli_record_kind *kind, const trli_cache *cache, const char *entry, long long now,
                      long long oldest, trli_machine_record *record);
void trli_record_keep(const trli_record_kind *kind, const trli_cache *cache, const char *entry,
                      const trli_machine_record *record);
/* The numbers of the environment, if the variable is set: *given. INPUT where they are not numbers of the kind. */
TRL_NODISCARD trl_err trli_record_read_given(trl_context *ctx, const trli_record_kind *kind, bool *given,
                                             trli_machine_record *record);

#endif
