/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Orders of patches, and pieces of an order for each rank. By ids and along the curve a box of patches is halved, again
 * and again, and the halves follow one another: by ids across the last axis that has several patches, along the curve
 * where a cut costs the least. So the order of one patch, and the cells before it, follow from a descent. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "owners_impl.h"
#include "spatialops_impl.h"

static const char *const names[] = {
#define OWNERS_NAME(NAME, name, doc) [TRL_OWNERS_##NAME] = #name,
    TRL_OWNERS_LIST(OWNERS_NAME)
#undef OWNERS_NAME
};

const char *trl_owners_name(trl_owner_order order)
{
    return names[order];
}

bool trl_owners_parse(const char *text, trl_owners *owners)
{
    const size_t n = strcspn(text, ":");
    char *end;
    for (int i = 0; i < (int)(sizeof names / sizeof *names); ++i) {
        if (strlen(names[i]) != n || strncmp(text, names[i], n) != 0) continue;
        *owners = (trl_owners){.order = (trl_owner_order)i};
        if (owners->order != TRL_OWNERS_RANDOM) return text[n] == '\0';
        if (text[n] == '\0' || strspn(text + n + 1, "0123456789") == 0) return false;
        errno = 0;
        owners->seed = strtoull(text + n + 1, &end, 10);
        return *end == '\0' && errno == 0; /* seeds that are too large would all be one */
    }
    return false;
}

/* Some patches in a row of the order. */
typedef struct patch_box {
    int lo[3], n[3];
} patch_box;

static patch_box all_patches(const trli_owner_map *map)
{
    return (patch_box){{0, 0, 0}, {map->counts[0], map->counts[1], map->counts[2]}};
}

static int patches_of(const patch_box *box)
{
    return box->n[0] * box->n[1] * box->n[2];
}

/* The axis across which a box is halved, which has several patches; of equals the last one. */
static int axis_of(const trli_owner_map *map, const patch_box *box)
{
    int axis = -1;
    for (int a = 2; a >= 0; --a) {
        if (box->n[a] == 1) continue;
        if (axis < 0 || box->n[a] * map->ease[a] > box->n[axis] * map->ease[axis]) axis = a;
        if (map->owners.order != TRL_OWNERS_CURVE) break;
    }
    return axis;
}

/* Halve a box. */
static void halve(const trli_owner_map *map, const patch_box *box, patch_box half[2])
{
    const int axis = axis_of(map, box), n = (box->n[axis] + 1) / 2;
    half[0] = half[1] = *box;
    half[0].n[axis] = n;
    half[1].lo[axis] += n;
    half[1].n[axis] -= n;
}

static bool holds(const patch_box *box, const int index[3])
{
    bool all = true;
    for (int a = 0; a < 3; ++a) all &= index[a] >= box->lo[a] && index[a] < box->lo[a] + box->n[a];
    return all;
}

static int position_of(const trli_owner_map *map, int id)
{
    const int nx = map->counts[0], ny = map->counts[1], index[3] = {id % nx, id / nx % ny, id / nx / ny};
    patch_box box = all_patches(map), half[2];
    int position = 0;
    while (patches_of(&box) > 1) {
        halve(map, &box, half);
        const int which = !holds(&half[0], index);
        if (which) position += patches_of(&half[0]);
        box = half[which];
    }
    return position;
}

static int patch_at(const trli_owner_map *map, int position)
{
    patch_box box = all_patches(map), half[2];
    while (patches_of(&box) > 1) {
        halve(map, &box, half);
        const int first = patches_of(&half[0]), which = position >= first;
        if (which) position -= first;
        box = half[which];
    }
    return box.lo[0] + map->counts[0] * (box.lo[1] + map->counts[1] * box.lo[2]);
}

/* ---- at random: a Feistel network permutes the numbers below a power of 4, and goes on until one is a patch ---- */

enum { ROUNDS = 4 };

static uint32_t mixed(uint64_t seed, int round, uint32_t half)
{
    uint64_t h = seed + ((uint64_t)(round + 1) << 32) + half; /* the mixer of SplitMix64 (Steele et al. 2014) */
    h = (h + 0x9e3779b97f4a7c15u) * 0xbf58476d1ce4e5b9u;
    h = (h ^ h >> 27) * 0x94d049bb133111ebu;
    return (uint32_t)(h ^ h >> 31);
}

static int bits_of(int n)
{
    int bits = 1;
    while (bits < 16 && (int64_t)1 << 2 * bits < n) ++bits;
    return bits;
}

static uint32_t permute(uint64_t seed, int bits, uint32_t number, bool back)
{
    const uint32_t low = ((uint32_t)1 << bits) - 1;
    uint32_t left = number >> bits, right = number & low;
    for (int r = 0; r < ROUNDS; ++r) {
        const uint32_t before = back ? left : right, other = back ? right : left;
        const uint32_t next = (other ^ mixed(seed, back ? ROUNDS - 1 - r : r, before)) & low;
        left = back ? next : before;
        right = back ? before : next;
    }
    return left << bits | right;
}

static int permuted(const trli_owner_map *map, int number, bool back)
{
    const int bits = bits_of(map->npatches);
    uint32_t at = (uint32_t)number;
    do at = permute(map->owners.seed, bits, at, back);
    while (at >= (uint32_t)map->npatches);
    return (int)at;
}

/* ---- pieces ---- */

/* Of a patch of the layout the one of the order at this rank's place. */
static int unmerged(const trli_owner_map *map, int id)
{
    int unit = 0, stride = 1;
    for (int a = 0; a < 3; ++a) {
        const int n = map->counts[a] / map->group[a];
        unit += stride * (id % n * map->group[a] + map->place[a]);
        stride *= map->counts[a];
        id /= n;
    }
    return unit;
}

static int merged(const trli_owner_map *map, int unit)
{
    int id = 0, stride = 1;
    for (int a = 0; a < 3; ++a) {
        id += stride * (unit % map->counts[a] / map->group[a]);
        stride *= map->counts[a] / map->group[a];
        unit /= map->counts[a];
    }
    return id;
}

int trli_owners_position(const trli_owner_map *map, int id)
{
    const int unit = unmerged(map, id);
    switch (map->owners.order) {
    case TRL_OWNERS_RANDOM:
        return permuted(map, unit, false);
    case TRL_OWNERS_CURVE:
        return position_of(map, unit);
    case TRL_OWNERS_BLOCKS:
        break;
    }
    return unit;
}

/* A patch of the order. */
static int unit_at(const trli_owner_map *map, int position)
{
    switch (map->owners.order) {
    case TRL_OWNERS_RANDOM:
        return permuted(map, position, true);
    case TRL_OWNERS_CURVE:
        return patch_at(map, position);
    case TRL_OWNERS_BLOCKS:
        break;
    }
    return position;
}

int trli_owners_at(const trli_owner_map *map, int position)
{
    return merged(map, unit_at(map, position));
}

int trli_owners_rank(const trli_owner_map *map, int id)
{
    const int position = trli_owners_position(map, id);
    int low = 0, high = map->ranks;
    while (high - low > 1) {
        const int middle = low + (high - low) / 2;
        if (map->first[middle] <= position)
            low = middle;
        else
            high = middle;
    }
    return low;
}

int trli_owners_most(const trli_owner_map *map)
{
    int most = 0;
    for (int r = 0; r < map->ranks; ++r)
        if (map->first[r + 1] - map->first[r] > most) most = map->first[r + 1] - map->first[r];
    return most;
}

uint64_t trli_owners_digest(const trli_owner_map *map)
{
    uint64_t sum = (uint64_t)map->owners.order * 1000003 + map->owners.seed;
    for (int a = 0; a < 3; ++a) {
        uint64_t bits;
        memcpy(&bits, &map->ease[a], sizeof bits);
        sum = trl_hash_mix(sum + (uint64_t)map->counts[a], map->group[a]) + bits;
    }
    for (int r = 0; r <= map->ranks; ++r) sum = trl_hash_mix(sum, map->first[r]);
    return sum;
}

static double cells_of(const trl_layout *layout, const patch_box *box)
{
    double cells = 1;
    for (int a = 0; a < 3; ++a)
        cells *=
            (double)(trli_layout_first(layout, a, box->lo[a] + box->n[a]) - trli_layout_first(layout, a, box->lo[a]));
    return cells;
}

/* Where so many cells are before the patches from there on, or nearly so many. */
static int position_behind(const trli_owner_map *map, const trl_layout *layout, double cells)
{
    patch_box box = all_patches(map), half[2];
    int position = 0;
    while (patches_of(&box) > 1) {
        halve(map, &box, half);
        const double first = cells_of(layout, &half[0]);
        const int which = cells >= first;
        if (which) {
            cells -= first;
            position += patches_of(&half[0]);
        }
        box = half[which];
    }
    return position + (cells > 0.5 * cells_of(layout, &box));
}

/* Where the pieces of the first ranks end that have `sum` of all shares. */
static int end_of_pieces(const trli_owner_map *map, const trl_layout *layout, int ranks, double sum, double all)
{
    const patch_box box = all_patches(map);
    if (map->owners.order != TRL_OWNERS_RANDOM) return position_behind(map, layout, cells_of(layout, &box) * sum / all);
    if (sum == ranks && all == map->ranks) return (int)trli_cut_first(map->npatches, map->ranks, ranks);
    return (int)(map->npatches * sum / all + 0.5);
}

static void cut(trli_owner_map *map, const trl_layout *layout, const double *share)
{
    double all = 0, sum = 0;
    for (int r = 0; r < map->ranks; ++r) all += share ? share[r] : 1;
    map->first[0] = 0;
    for (int r = 1; r <= map->ranks; ++r) {
        const int least = map->first[r - 1] + 1, most = map->npatches - (map->ranks - r);
        sum += share ? share[r - 1] : 1;
        int at = end_of_pieces(map, layout, r, sum, all);
        if (at < least) at = least;
        map->first[r] = at < most ? at : most;
    }
}

static size_t bytes_of(int ranks)
{
    return sizeof(trli_owner_map) + ((size_t)ranks + 1) * sizeof(int);
}

trl_err trli_owners_create(const trl_layout *layout, const trl_owners *owners, const double cost[3],
                           trli_owner_map **result)
{
    void *memory = NULL;
    trl_err err = trl_memory_alloc(layout->ctx, bytes_of(layout->ranks), "the owners of patches", &memory);
    trli_owner_map *map = *result = memory;
    if (err != TRL_OK) return err;
    *map =
        (trli_owner_map){.owners = *owners, .npatches = layout->npatches, .ranks = layout->ranks, .group = {1, 1, 1}};
    map->owners.share = NULL;
    memcpy(map->counts, layout->counts, sizeof map->counts);
    for (int a = 0; a < 3; ++a) map->ease[a] = (double)layout->grid.cells[a] / layout->counts[a] / cost[a];
    cut(map, layout, owners->share);
    return TRL_OK;
}

trl_err trli_owners_merge(trl_context *ctx, const trli_owner_map *from, const int by[3], trli_owner_map **map)
{
    void *memory = NULL;
    const trl_err err = trl_memory_alloc(ctx, bytes_of(from->ranks), "the owners of patches", &memory);
    *map = memory;
    if (err != TRL_OK) return err;
    memcpy(*map, from, bytes_of(from->ranks));
    int unit = unit_at(from, from->first[trl_context_rank(ctx)]);
    for (int a = 0; a < 3; ++a) {
        (*map)->group[a] *= by[a];
        (*map)->place[a] = unit % from->counts[a] % (*map)->group[a];
        unit /= from->counts[a];
    }
    return TRL_OK;
}

void trli_owners_destroy(trl_context *ctx, trli_owner_map **map)
{
    void *memory = *map;
    trl_memory_free(ctx, &memory);
    *map = NULL;
}
