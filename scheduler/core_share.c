/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include "core_share_impl.h"

#include <string.h>

#include "memory_impl.h"

enum { BITS = 64 };

static const uint64_t *set_of(const trli_core_sets *sets, int rank)
{
    return sets->set + (ptrdiff_t)rank * sets->words;
}

static int size_of(const uint64_t *set, int words)
{
    int n = 0;
    for (int i = 0; i < words; ++i) n += __builtin_popcountll(set[i]);
    return n;
}

static bool overlap(const uint64_t *a, const uint64_t *b, int words)
{
    for (int i = 0; i < words; ++i)
        if (a[i] & b[i]) return true;
    return false;
}

/* Smaller sets are dealt before larger ones. */
static int compare(const trli_core_sets *sets, int a, int b)
{
    const int difference = size_of(set_of(sets, a), sets->words) - size_of(set_of(sets, b), sets->words);
    if (difference != 0) return difference;
    return memcmp(set_of(sets, a), set_of(sets, b), (size_t)sets->words * sizeof(uint64_t));
}

/* Ranks with the same set. */
typedef struct group {
    int count, index; /* how many, and which of them the rank is */
    bool crowded;     /* they outnumber what ranks with smaller sets leave */
} group;

/* The group of a rank; dealt: what it shares, all of its set if it is crowded. */
static group group_of(const trli_core_sets *sets, int rank, uint64_t *dealt)
{
    const size_t bytes = (size_t)sets->words * sizeof *dealt;
    group g = {0};
    memcpy(dealt, set_of(sets, rank), bytes);
    for (int r = 0; r < sets->n; ++r) {
        const int order = compare(sets, r, rank);
        g.count += order == 0;
        g.index += order == 0 && r < rank;
        for (int i = 0; order < 0 && i < sets->words; ++i) dealt[i] &= ~set_of(sets, r)[i];
    }
    g.crowded = g.count > size_of(dealt, sets->words);
    if (g.crowded) memcpy(dealt, set_of(sets, rank), bytes);
    return g;
}

/* The ranks that may use some of a rank's cores, or of the cores of such ranks; and all their cores. */
static void note_crowd(const trli_core_sets *sets, int rank, uint64_t *all, trli_core_share *share)
{
    memcpy(all, set_of(sets, rank), (size_t)sets->words * sizeof *all);
    for (int before = -1; before < share->crowd_ranks;) {
        before = share->crowd_ranks;
        share->crowd_ranks = 0;
        for (int r = 0; r < sets->n; ++r) {
            if (!overlap(set_of(sets, r), all, sets->words)) continue;
            ++share->crowd_ranks;
            for (int i = 0; i < sets->words; ++i) all[i] |= set_of(sets, r)[i];
        }
    }
    share->crowd_cores = size_of(all, sets->words);
}

trl_err trli_core_share_of(trl_context *ctx, const trli_core_sets *sets, int rank, int quota, trli_core_share *share)
{
    trl_err err = TRL_OK;
    uint64_t *other = trli_new(ctx, (size_t)sets->words, sizeof *other);
    *share = (trli_core_share){.words = sets->words, .dealt = trli_new(ctx, (size_t)sets->words, sizeof *other)};
    if (!other || !share->dealt) TRL_TRY(trli_no_memory(ctx, NULL, "for the cores of the node"));
    const group own = group_of(sets, rank, share->dealt);
    int usable = size_of(share->dealt, sets->words);
    bool crowded = own.crowded;
    for (int r = 0; r < sets->n && !crowded; ++r)
        crowded = group_of(sets, r, other).crowded && overlap(set_of(sets, r), share->dealt, sets->words);
    share->shared = crowded;
    if (quota > 0 && quota < usable) {
        usable = quota;
        share->shared = true;
        crowded |= own.count > usable;
    }
    if (crowded) note_crowd(sets, rank, other, share);
    if (quota > 0 && quota < share->crowd_cores) share->crowd_cores = quota;
    if (own.count > usable) {
        share->first = own.index % usable;
        share->last = share->first + 1;
    } else {
        share->first = (int)((int64_t)usable * own.index / own.count);
        share->last = (int)((int64_t)usable * (own.index + 1) / own.count);
    }
done:
    trli_free(other);
    return err;
}

bool trli_core_is_dealt(const trli_core_share *share, int core)
{
    return core / BITS < share->words && (share->dealt[core / BITS] >> core % BITS & 1);
}
