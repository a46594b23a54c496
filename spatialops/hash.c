/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <math.h>
#include <string.h>

#include <trl_field.h>

/* The finaliser of SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014). */
static uint64_t scramble(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

uint64_t trl_hash_bits(uint64_t position, uint64_t bits)
{
    return scramble(bits ^ scramble(position + UINT64_C(0x9e3779b97f4a7c15)));
}

uint64_t trl_hash_mix(uint64_t point, double value)
{
    uint64_t bits;
    if (value != value) value = NAN; /* whose sign and payload depend on the order of operands that compilers choose */
    memcpy(&bits, &value, sizeof bits);
    return trl_hash_bits(point, bits);
}

uint64_t trl_array_hash(const trl_layout *layout, const trl_patch *patch, trl_location location, const trl_array *a)
{
    const double *values = a->at;
    uint64_t nx = (uint64_t)trl_grid_points(&layout->grid, location, 0);
    uint64_t ny = (uint64_t)trl_grid_points(&layout->grid, location, 1);
    uint64_t hash = 0;
    for (trl_lidx k = a->owned.lo[2]; k < a->owned.hi[2]; ++k) {
        for (trl_lidx j = a->owned.lo[1]; j < a->owned.hi[1]; ++j) {
            uint64_t row = nx * ((uint64_t)(patch->first[1] + j) + ny * (uint64_t)(patch->first[2] + k));
            const double *at = values + trl_array_offset(a, 0, j, k);
            for (trl_lidx i = a->owned.lo[0]; i < a->owned.hi[0]; ++i) {
                hash += trl_hash_mix(row + (uint64_t)(patch->first[0] + i), at[i]);
            }
        }
    }
    return hash;
}
