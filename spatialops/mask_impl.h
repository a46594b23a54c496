/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Inside of a mask: one bit per point, rows of 64-bit words. */
#ifndef TRLI_MASK_IMPL_H
#define TRLI_MASK_IMPL_H

#include <trl_mask.h>

typedef struct trli_mask_patch {
    trl_box box;
    ptrdiff_t row_words; /* one more than the row needs, so that 64 bits can be read from any point of it */
    uint64_t *bits;
} trli_mask_patch;

/* The points of a mask as numbers, 0 and 1, in the memory of a device. */
typedef struct trli_mask_copy {
    trl_field_device *device; /* NULL: there is none */
    trl_array *array;         /* [nlocal] */
    void **memory;            /* [nlocal] */
} trli_mask_copy;

struct trl_mask {
    const trl_layout *layout;
    trl_location location;
    int ghosts;
    trli_mask_patch *patch; /* [nlocal] */
    trli_mask_copy *copy;   /* made when it is needed, dropped when the mask changes */
};

/* The points of local patch p in the memory of a device. Fails with MEMORY, DEVICE. Thread: main. */
TRL_NODISCARD trl_err trli_mask_there(const trl_mask *mask, trl_field_device *device, int p, trl_array *array);
void trli_mask_drop(const trl_mask *mask);

/* Whether a condition of this value holds: the rule of masks, of `where`, and of if(c, a, b) and masks in formulas
 * (TRLI_OP_SELECT). NaN is not zero. */
static inline bool trli_condition_holds(double value)
{
    return value != 0;
}

static inline uint64_t *trli_mask_row(const trli_mask_patch *m, trl_lidx j, trl_lidx k)
{
    ptrdiff_t row = (j - m->box.lo[1]) + (ptrdiff_t)(m->box.hi[1] - m->box.lo[1]) * (k - m->box.lo[2]);
    return m->bits + row * m->row_words;
}

/* n <= 64 bits of a row, the lowest for the at-th point of the row. */
static inline uint64_t trli_mask_bits(const uint64_t *row, trl_lidx at, trl_lidx n)
{
    const uint64_t *word = row + at / 64;
    unsigned shift = (unsigned)at % 64;
    uint64_t bits = shift ? word[0] >> shift | word[1] << (64 - shift) : word[0];
    return n < 64 ? bits & (((uint64_t)1 << n) - 1) : bits;
}

#endif
