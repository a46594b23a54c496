/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include "arithmetic_impl.h"
#include "chunks_impl.h"

/* The grains of work on a box, for the direct field path and for compiled graphs alike. Kernels fit their tiles to the
 * caches themselves, so chunks only have to spread the work. Every worker gets one chunk, unless the chunk would be too
 * small to pay for its distribution; of a large box every worker gets several chunks, which balance the load, and all
 * get the same number: three chunks would keep two workers busy as long as four.
 *
 * Both grains are in points, because the direct path knows no cost model, and because a chunk costs the same whatever
 * its points cost: about 0.1 us. CHUNK_LEAST points of the cheapest kernels, from caches, take as long; CHUNK_POINTS
 * take about 5 us, of which that is 2 %. Kernels that compute more lose less. */
enum {
#ifdef TRL_SMALL_SIZES
    CHUNK_LEAST = 32, /* builds for testing: small problems have wide tasks too */
#else
    CHUNK_LEAST = 400, /* points: 16 workers share 20^3 */
#endif
    CHUNK_POINTS = 16384, /* points of one of several chunks */
    CHUNKS_MOST = 8,      /* of a worker */
    AHEAD = 4096,         /* values that a caller reads while a loop begins and ends elsewhere: 0.1 to 0.4 us */
    AHEAD_MOST = 8        /* part of a chunk, at most */
};

int64_t trli_chunks_wanted(int64_t points, int64_t workers)
{
    int64_t wanted = points / CHUNK_POINTS, most = points / CHUNK_LEAST;
    if (workers == 1 || most < 1) return 1;
    if (wanted > CHUNKS_MOST * workers) return CHUNKS_MOST * workers;
    if (wanted >= workers) return wanted - wanted % workers;
    return most < workers ? most : workers;
}

/* What a chunk costs beside its points, as points by which it is longer along an axis: the ends of its rows; rows and
 * planes at its sides that another chunk loads too. So rows are cut last, and boxes of many planes into blocks rather
 * than slices; of two cuts that are as good, the one across more planes: what a core writes is then in one piece, and
 * not fetched ahead by another one. */
static const int64_t margin[3] = {8, 1, 1};

/* How long `wanted` workers take for all parts, in points: parts run in rounds, and the largest one counts. */
static int64_t time_of(const int64_t extent[3], const int64_t parts[3], int64_t wanted)
{
    int64_t time = trli_ceil_div(parts[0] * parts[1] * parts[2], wanted);
    for (int a = 0; a < 3; ++a) time *= trli_ceil_div(extent[a], parts[a]) + margin[a];
    return time;
}

int trli_box_cut(const trl_box *box, int64_t wanted, int parts[3])
{
    int64_t extent[3], shortest = INT64_MAX;
    for (int a = 0; a < 3; ++a) {
        extent[a] = box->hi[a] - box->lo[a];
        parts[a] = 1;
    }
    if (wanted <= 1 || trl_box_points(box) == 0) return 1;
    for (int64_t z = 1; z <= trli_min(wanted, extent[2]); ++z)
        for (int64_t y = 1; y <= extent[1] && (y - 1) * z < wanted; ++y) {
            const int64_t tried[3] = {trli_min(trli_ceil_div(wanted, y * z), extent[0]), y, z};
            int64_t time = time_of(extent, tried, wanted);
            if (time > shortest || (time == shortest && z == parts[2])) continue;
            shortest = time;
            for (int a = 0; a < 3; ++a) parts[a] = (int)tried[a];
        }
    return parts[0] * parts[1] * parts[2];
}

trl_box trli_box_part(const trl_box *box, const int parts[3], int chunk)
{
    trl_box part = *box;
    for (int a = 0; a < 3; ++a) {
        if (parts[a] == 1) continue; /* short loops feel a division */
        int n = parts[a], i = chunk % n;
        int64_t extent = box->hi[a] - box->lo[a];
        chunk /= n;
        part.lo[a] = box->lo[a] + (trl_lidx)(extent * i / n);
        part.hi[a] = box->lo[a] + (trl_lidx)(extent * (i + 1) / n);
    }
    return part;
}

/* Rows are not cut. */
static int last_axis(const trl_box *box)
{
    return box->hi[2] - box->lo[2] > 1 ? 2 : 1;
}

trl_lidx trli_planes_ahead(const trl_box *box, int64_t workers, int values)
{
    const int a = last_axis(box);
    const int64_t points = trl_box_points(box), plane = points / (box->hi[a] - box->lo[a]);
    const int64_t ahead = trli_min(AHEAD / values, points / workers / AHEAD_MOST), others = (points - ahead) / workers;
    if (plane > 2 * ahead) return 0; /* cuts too coarsely */
    const int64_t planes = (others + ahead + plane / 2) / plane;
    return (trl_lidx)(planes * plane > trli_ceil_div(points, workers) ? planes : 0);
}

void trli_box_split(const trl_box *box, trl_lidx planes, trl_box *first, trl_box *rest)
{
    const int a = last_axis(box);
    *first = *rest = *box;
    first->hi[a] = rest->lo[a] = box->lo[a] + planes;
}
