/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <stdint.h>
#include <string.h>

#include "arithmetic_impl.h"
#include "formula_impl.h"

static const char *const reserved_words[] = {"x",  "y",  "z",   "t",  "dt",  "dx",   "dy",
                                             "dz", "pi", "and", "or", "not", "true", "false"};

bool trl_name_reserved(const char *name)
{
    for (size_t i = 0; i < sizeof reserved_words / sizeof reserved_words[0]; ++i) {
        if (strcmp(reserved_words[i], name) == 0) return true;
    }
    return false;
}

bool trl_name_valid(const char *name)
{
    size_t n = 0;
    if (name[0] >= '0' && name[0] <= '9') return false;
    while (trli_name_char(name[n])) ++n;
    return n > 0 && n <= TRLI_NAME_LENGTH && name[n] == 0;
}

/* An index is a hash table with open addressing: its mask, then positions of names, -1 where there is none. */
int trl_scope_index_size(int n)
{
    int slots = 4;
    while (slots / 2 < n) slots *= 2;
    return 1 + slots;
}

/* Where a name is, or where it would be put. */
static int find_slot(const char *const *names, const int *index, const char *name)
{
    uint32_t hash = 2166136261u; /* FNV-1a */
    for (const char *c = name; *c; ++c) hash = (hash ^ (unsigned char)*c) * 16777619u;
    const uint32_t mask = (uint32_t)index[0];
    uint32_t i = hash & mask;
    while (index[1 + i] >= 0 && strcmp(names[index[1 + i]], name) != 0) i = (i + 1) & mask;
    return 1 + (int)i;
}

void trl_scope_index(int n, const char *const *name, int *index)
{
    const int size = trl_scope_index_size(n);
    index[0] = size - 2;
    for (int i = 1; i < size; ++i) index[i] = -1;
    for (int i = 0; i < n; ++i) {
        int *slot = &index[find_slot(name, index, name[i])];
        if (*slot < 0) *slot = i;
    }
}

int trl_scope_position(const trl_scope *level, const char *name)
{
    if (level->index) return level->index[find_slot(level->name, level->index, name)];
    for (int i = 0; i < level->n; ++i)
        if (strcmp(level->name[i], name) == 0) return i;
    return -1;
}

bool trl_scope_find(const trl_scope *names, const char *name, double *value)
{
    for (; names; names = names->outer) {
        const int i = trl_scope_position(names, name);
        if (i < 0) continue;
        *value = names->value[i];
        return true;
    }
    return false;
}

enum { LONGEST_COMPARED = 63 };

/* Insertions, deletions, substitutions and swaps of neighbours (optimal string alignment, Damerau 1964). Both lengths
 * are at most LONGEST_COMPARED. */
static int edit_distance(const char *a, int na, const char *b, int nb)
{
    int rows[3][LONGEST_COMPARED + 1];
    int *before = rows[0], *above = rows[1], *row = rows[2];
    for (int j = 0; j <= nb; ++j) row[j] = j;
    for (int i = 1; i <= na; ++i) {
        int *oldest = before;
        before = above;
        above = row;
        row = oldest;
        row[0] = i;
        for (int j = 1; j <= nb; ++j) {
            row[j] = (int)trli_min((int)trli_min(above[j], row[j - 1]) + 1, above[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = (int)trli_min(row[j], before[j - 2] + 1);
        }
    }
    return row[nb];
}

/* The name that is meant, if one is, and the nearest of names, at most `most` of them, the nearest first, and of
 * equally near ones the first; how many. */
static int nearest_names(const char *name, const char *const *names, int n, int most, const char **nearest)
{
    const int length = (int)strnlen(name, LONGEST_COMPARED + 1), reach = length < 3 ? 1 : length < 6 ? 2 : 3;
    int distances[TRL_REMEDIES_MOST], found = 0;
    if (length > LONGEST_COMPARED) return 0;
    const char *meant = trli_name_meant(name, names, n);
    if (meant) {
        nearest[found] = meant;
        distances[found++] = 0;
    }
    for (int i = 0; i < n; ++i) {
        if (names[i] == meant) continue;
        int other = (int)strnlen(names[i], LONGEST_COMPARED + 1), at = found;
        if (other > LONGEST_COMPARED || other - length > reach || length - other > reach) continue;
        int distance = edit_distance(name, length, names[i], other);
        /* A name of which nothing is left is not near. */
        if (distance > reach || distance >= length) continue;
        if (found == most && distance >= distances[found - 1]) continue;
        if (found < most)
            ++found;
        else
            --at;
        for (; at > 0 && distances[at - 1] > distance; --at) {
            distances[at] = distances[at - 1];
            nearest[at] = nearest[at - 1];
        }
        distances[at] = distance;
        nearest[at] = names[i];
    }
    return found;
}

const char *trl_name_nearest(const char *name, const char *const *names, int n)
{
    const char *nearest = NULL;
    return nearest_names(name, names, n, 1, &nearest) ? nearest : NULL;
}

void trli_advise_names(trl_context *ctx, const char *name, const char *const *names, int n)
{
    const char *nearest[TRL_REMEDIES_MOST];
    const int found = nearest_names(name, names, n, TRL_REMEDIES_MOST, nearest);
    for (int i = 0; i < found; ++i) trl_advise(ctx, "write `%s`", nearest[i]);
}
