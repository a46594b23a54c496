/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Several hand-written steps of the heat equation in one pass over memory. Blocks of rows in ascending order, fronts of
 * planes in each; step s is s rows and s planes behind the first one, so that of two arrays none is overwritten before
 * it was read. */
#include <sched.h>
#include <stdatomic.h>

#include "bench_heat_impl.h"

enum {
    INTERLEAVE = 2, /* planes of a front: their rows are interleaved */
    SPINS = 2000
};

static ptrdiff_t limited(ptrdiff_t x, ptrdiff_t most)
{
    return x < 0 ? 0 : x > most ? most : x;
}

/* Ghosts that are mirror images of a row. */
static void put_ghosts(const trli_heat *h, double *row, ptrdiff_t j, ptrdiff_t k)
{
    const ptrdiff_t n = h->n[0];
    row[-1] = 0.0 - row[0];
    row[n] = 0.0 - row[n - 1];
    for (int a = 1; a < 3; ++a) {
        const ptrdiff_t at = a == 1 ? j : k;
        for (ptrdiff_t i = 0; at == 0 && i < n; ++i) row[i - h->stride[a]] = 0.0 - row[i];
        for (ptrdiff_t i = 0; at == h->n[a] - 1 && i < n; ++i) row[i + h->stride[a]] = 0.0 - row[i];
    }
}

/* All steps of a front in a block of rows. */
static void take_front(const trli_heat_loops *loops, int steps, ptrdiff_t b, ptrdiff_t blocks, ptrdiff_t front,
                       const trli_heat_coefficients *c)
{
    const trli_heat *h = loops->heat;
    const ptrdiff_t block = loops->way->block, ny = h->n[1], nz = h->n[2];
    for (int s = 0; s < steps; ++s) {
        const double *from = s % 2 ? loops->next : loops->now;
        double *to = s % 2 ? loops->now : loops->next;
        const ptrdiff_t first = limited(b * block - s, ny),
                        end = b + 1 < blocks ? limited((b + 1) * block - s, ny) : ny;
        const ptrdiff_t low = limited(front * INTERLEAVE - s, nz), high = limited((front + 1) * INTERLEAVE - s, nz);
        for (ptrdiff_t j = first; j < end; ++j)
            for (ptrdiff_t k = low; k < high; ++k) {
                const ptrdiff_t at = j * c->sy + k * c->sz;
                trli_heat_row(to + at, from + at, c);
                put_ghosts(h, to + at, j, k);
            }
    }
}

static void wait_for(_Atomic int *fronts, int wanted)
{
    for (int spins = 0; atomic_load_explicit(fronts, memory_order_acquire) < wanted; ++spins)
        if (spins > SPINS) sched_yield();
}

/* Members take turns at the blocks, each a front behind the block before. */
void trli_heat_pass(trli_team *team, int member, trli_heat_loops *loops, int steps)
{
    const trli_heat *h = loops->heat;
    const ptrdiff_t wanted = h->n[1] / loops->way->block,
                    blocks = wanted < 1 ? 1 : limited(wanted, TRLI_HEAT_BLOCKS_MOST);
    const int fronts = (int)((h->n[2] + steps - 1 + INTERLEAVE - 1) / INTERLEAVE);
    trli_heat_coefficients c;
    trli_heat_set_coefficients(h, &c);
    for (ptrdiff_t b = member; b < blocks; b += trli_team_size(team)) atomic_store(&loops->fronts[b], 0);
    trli_team_barrier(team);
    for (ptrdiff_t b = member; b < blocks; b += trli_team_size(team))
        for (int f = 0; f < fronts; ++f) {
            if (b > 0) wait_for(&loops->fronts[b - 1], f + 1);
            take_front(loops, steps, b, blocks, f, &c);
            atomic_store_explicit(&loops->fronts[b], f + 1, memory_order_release);
        }
}
