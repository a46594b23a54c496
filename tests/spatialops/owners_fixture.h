/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Owners of patches in all ways by turns, for tests that must not depend on them. Included after trl_test.h. */
#ifndef OWNERS_FIXTURE_H
#define OWNERS_FIXTURE_H

#include <stdio.h>

#include <trl_grid.h>

/* The next way; all ranks get the same one where all ask as often. */
static inline const trl_owners *next_owners(void)
{
    static trl_owners owners;
    static int n;
    owners.order = (trl_owner_order)(n % (TRL_OWNERS_RANDOM + 1));
    owners.seed = owners.order == TRL_OWNERS_RANDOM ? (uint64_t)n : 0;
    ++n;
    return &owners;
}

/* The same for decks. */
static inline const char *next_owners_text(void)
{
    static char text[32];
    const trl_owners *owners = next_owners();
    const bool random = owners->order == TRL_OWNERS_RANDOM;
    snprintf(text, sizeof text, random ? "%s:%d" : "%s", trl_owners_name(owners->order), (int)owners->seed);
    return text;
}

#endif
