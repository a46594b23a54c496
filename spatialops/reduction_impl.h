/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* What reductions of fields and of formulas share: the part of one worker, and the weights of points on sides. */
#ifndef TRLI_REDUCTION_IMPL_H
#define TRLI_REDUCTION_IMPL_H

#include <trl_field.h>

/* Sums whose terms kernels add up in two totals of lanes (trl_kernel_merged), and what they have added so far. */
typedef struct trli_sum_window {
    double start[2];    /* of the totals; 0: none is known that suits the values */
    long long units[2]; /* added, of the last places of these */
    int pending;        /* additions that the units have had */
} trli_sum_window;
enum { TRLI_WINDOW_VALUES = 1024 }; /* of all lanes of a total, at most */
/* Suit values like these, once what was added so far has gone to the sum. */
void trli_sum_window_choose(trli_sum_window *window, trl_sum *sum, const double *values, int64_t n);
void trli_sum_window_add(trli_sum_window *window, trl_sum *sum, const long long units[2]);
/* Let what was added go to the sum. */
void trli_sum_window_empty(trli_sum_window *window, trl_sum *sum);

typedef enum trli_merge { TRLI_MERGE_SUM, TRLI_MERGE_MIN, TRLI_MERGE_MAX } trli_merge;

/* A part of a reduction. Parts are independent of the order in which they are added to and merged. Copied whole, it has
 * no bytes that belong to no member. */
typedef struct trli_partial {
    trl_sum sum;     /* SUM */
    double extreme;  /* MIN, MAX */
    int64_t invalid; /* a NaN was seen; MIN, MAX */
} trli_partial;

void trli_partial_clear(trli_partial *p, trli_merge merge);
void trli_partial_add(trli_partial *p, trli_merge merge, const double *values, int64_t n);
void trli_partial_merge(trli_partial *p, trli_merge merge, const trli_partial *other);

/* Over the ranks a partial is integers to be summed (SUM: words of the sum), or doubles of which the greatest are
 * taken. */
enum { TRLI_PARTIAL_WORDS = TRL_SUM_WORDS + 3, TRLI_PARTIAL_PAIR = 2 };
void trli_partial_pack_sum(trli_partial *p, int64_t words[TRLI_PARTIAL_WORDS]);
double trli_partial_unpack_sum(const int64_t words[TRLI_PARTIAL_WORDS]);
void trli_partial_pack_extreme(const trli_partial *p, trli_merge merge, double pair[TRLI_PARTIAL_PAIR]);
double trli_partial_unpack_extreme(trli_merge merge, const double pair[TRLI_PARTIAL_PAIR]);
/* What is packed also says, of the rank and then of any rank, that its part is not whole because it failed: the result
 * is NaN. */
void trli_partial_spoil_sum(int64_t words[TRLI_PARTIAL_WORDS]);
void trli_partial_spoil_extreme(double pair[TRLI_PARTIAL_PAIR]);
bool trli_partial_spoilt_sum(const int64_t words[TRLI_PARTIAL_WORDS]);
bool trli_partial_spoilt_extreme(const double pair[TRLI_PARTIAL_PAIR]);

/* Multiply n values along x, from local point (i, j, k) of a patch on, by what is inside of the domain of their cells:
 * a half per axis on a side of it. */
void trli_weigh_row(const trl_layout *layout, const trl_patch *patch, trl_location location, const trl_lidx at[3],
                    trl_lidx n, double *values);

#endif
