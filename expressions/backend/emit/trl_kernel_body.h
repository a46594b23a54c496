/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* What emitted kernels and the program that calls them share; part of the text of every emitted kernel. */
#ifndef TRL_KERNEL_BODY_H
#define TRL_KERNEL_BODY_H

#ifndef TRL_BODY
#define TRL_BODY static inline __attribute__((always_inline))
#endif

/* A name that no other kernel has: several may stand in one text, each after a definition of TRL_KERNEL_ID. */
#define TRL_OWN(name) TRL_OWN_OF(name, TRL_KERNEL_ID)
#define TRL_OWN_OF(name, id) TRL_OWN_JOINED(name, id)
#define TRL_OWN_JOINED(name, id) name##_##id

#ifndef TRL_KERNEL_POINT_BODY_H /* before it in the text of a kernel */
#include "trl_kernel_point_body.h"
#endif

/* One component of a field on a patch: the value at local point (0,0,0), and strides in values (stride[0] is 1). */
typedef struct trl_kernel_array {
    double *at;
    long long stride[3];
} trl_kernel_array;

/* One call: compute the points lo <= i < hi of all outputs. */
#define TRL_KERNEL_GHOSTS 4 /* beyond an end of a row, that a kernel computes itself, at most */

/* The points of an input that are not ghosts which a kernel computes itself: lo <= i < hi along each axis. */
typedef struct trl_kernel_inside {
    long long lo[3], hi[3];
} trl_kernel_inside;

/* What a call makes of the values of a result that it merges instead of storing them. A sum has two totals in lanes:
 * one takes the high bits of each value, the other what these leave of it. Each sum has at most 1024 values. */
typedef struct trl_kernel_merged {
    double start[2];    /* of a sum what the totals start at; of an extreme the one so far, and 0 */
    long long units[2]; /* result, of a sum: what is added to the totals, in units of the last place of `start` */
    double extreme;     /* result, of others */
    int failed;         /* result: these are not all of it: totals had no room, or a value is not finite */
} trl_kernel_merged;

typedef struct trl_kernel_call trl_kernel_call;
struct trl_kernel_call {
    const trl_kernel_array *input, *output;
    const double *scalar;
    const double *number; /* of kernels that are given some in place of constants */
    const trl_kernel_grid *grid;
    long long lo[3], hi[3];
    long long block; /* rows of y that are swept together through all z */
    /* Planes whose rows are interleaved. Some kernels take two planes at once if it is above 1, or one. */
    long long interleave;
    int streaming;       /* by streaming stores */
    int ahead;           /* rows, or of kernels that may merge points, by which inputs are prefetched; 0: not */
    long long nonfinite; /* result: not 0 if an output is infinite or NaN, of kernels that check for that */
    /* Of kernels that ask for it: sets the ghosts beside the rows y <= j < y_end of planes z <= k < z_end before these
     * are computed; NULL: they are set. */
    void (*set_edges)(const trl_kernel_call *call, long long y, long long y_end, long long z, long long z_end);
    const void *edges;               /* its data */
    const trl_kernel_inside *inside; /* by input, of kernels that compute ghosts */
    trl_kernel_merged *merged;       /* by output, of kernels that may merge their values; NULL: they store them */
};

/* The number with these bits. */
TRL_BODY double trl_kernel_number(unsigned long long bits)
{
    union {
        unsigned long long bits;
        double number;
    } both;
    both.bits = bits;
    return both.number;
}

/* Negative if the number is not finite: the exponent of such a one runs over into the sign. */
TRL_BODY long long trl_kernel_excess(double number)
{
    union {
        double number;
        unsigned long long bits;
    } both;
    both.number = number;
    return (long long)((both.bits & 0x7fffffffffffffffull) + 0x0010000000000000ull);
}

#ifndef __CUDACC__

/* ---- on CPUs ---- */

#define TRL_KERNEL_ROW 1024 /* points of a row that are computed in one go */

/* Once for all parts of a row. */
TRL_BODY void trl_kernel_set_edges(const trl_kernel_call *call, long long x, long long y, long long y_end, long long z,
                                   long long z_end)
{
    if (call->set_edges && x == call->lo[0]) call->set_edges(call, y, y_end, z, z_end);
}

#if defined(__AVX512F__)
#define TRL_KERNEL_LANES 8
#define TRL_KERNEL_FOLLOWING 7, 8, 9, 10, 11, 12, 13, 14
#define TRL_KERNEL_LEADING 1, 2, 3, 4, 5, 6, 7, 8
#elif defined(__AVX__)
#define TRL_KERNEL_LANES 4
#define TRL_KERNEL_FOLLOWING 3, 4, 5, 6
#define TRL_KERNEL_LEADING 1, 2, 3, 4
#else
#define TRL_KERNEL_LANES 2
#define TRL_KERNEL_FOLLOWING 1, 2
#define TRL_KERNEL_LEADING 1, 2
#endif
/* Values that are computed at once. */
typedef double trl_kernel_lanes __attribute__((vector_size(8 * TRL_KERNEL_LANES), __may_alias__));
typedef double trl_kernel_loose __attribute__((vector_size(8 * TRL_KERNEL_LANES), aligned(8), __may_alias__));
typedef long long trl_kernel_bits __attribute__((vector_size(8 * TRL_KERNEL_LANES)));

/* Before a loop over rows shorter than lanes: not worth making vectors of. */
#define TRL_KERNEL_SHORT _Pragma("GCC unroll 1")

/* The address, of which the compiler forgets how it came about: rows beside it are then found from it. Otherwise gcc
 * keeps an address for each of them in each loop around, and a row begins with hundreds of instructions that move
 * these. */
TRL_BODY double *trl_kernel_row(const double *at)
{
    __asm__("" : "+r"(at));
    return (double *)at;
}

TRL_BODY trl_kernel_lanes trl_kernel_load(const double *at)
{
    return *(const trl_kernel_loose *)at;
}

/* One number in all lanes: x - 0 is x, for -0 too. */
TRL_BODY trl_kernel_lanes trl_lanes_of(double x)
{
    return x - (trl_kernel_lanes){0};
}

/* 1 where the bits of a comparison are set, else 0. */
TRL_BODY trl_kernel_lanes trl_lanes_truth(trl_kernel_bits where)
{
    return (trl_kernel_lanes)(where & (trl_kernel_bits)trl_lanes_of(1.0));
}

/* x, which the compiler then does not look behind: it would compute a quotient anew for each of the two masks of a
 * choice. */
TRL_BODY trl_kernel_lanes trl_lanes_settled(trl_kernel_lanes x)
{
#if defined(__x86_64__)
    __asm__("" : "+v"(x));
#endif
    return x;
}

TRL_BODY trl_kernel_lanes trl_lanes_choose(trl_kernel_bits where, trl_kernel_lanes x, trl_kernel_lanes y)
{
    x = trl_lanes_settled(x);
    y = trl_lanes_settled(y);
    return (trl_kernel_lanes)((where & (trl_kernel_bits)x) | (~where & (trl_kernel_bits)y));
}

TRL_BODY trl_kernel_lanes trl_lanes_select(trl_kernel_lanes c, trl_kernel_lanes x, trl_kernel_lanes y)
{
    return trl_lanes_choose(c != (trl_kernel_lanes){0}, x, y);
}

TRL_BODY trl_kernel_lanes trl_lanes_not(trl_kernel_lanes x)
{
    return trl_lanes_truth(x == (trl_kernel_lanes){0});
}

TRL_BODY trl_kernel_lanes trl_lanes_and(trl_kernel_lanes x, trl_kernel_lanes y)
{
    return trl_lanes_truth((x != (trl_kernel_lanes){0}) & (y != (trl_kernel_lanes){0}));
}

TRL_BODY trl_kernel_lanes trl_lanes_or(trl_kernel_lanes x, trl_kernel_lanes y)
{
    return trl_lanes_truth((x != (trl_kernel_lanes){0}) | (y != (trl_kernel_lanes){0}));
}

TRL_BODY trl_kernel_lanes trl_lanes_abs(trl_kernel_lanes x)
{
    return (trl_kernel_lanes)((trl_kernel_bits)x & 0x7fffffffffffffffll);
}

/* As trl_fn_min and trl_fn_max: NaN stays. NOLINTBEGIN(misc-redundant-expression): only a NaN differs from itself. */
TRL_BODY trl_kernel_lanes trl_lanes_min(trl_kernel_lanes x, trl_kernel_lanes y)
{
    return trl_lanes_choose((x < y) | (x != x), x, y);
}

TRL_BODY trl_kernel_lanes trl_lanes_max(trl_kernel_lanes x, trl_kernel_lanes y)
{
    return trl_lanes_choose((x > y) | (x != x), x, y);
}
/* NOLINTEND(misc-redundant-expression) */

TRL_BODY trl_kernel_lanes trl_lanes_sqrt(trl_kernel_lanes x)
{
    int l;
    for (l = 0; l < TRL_KERNEL_LANES; ++l) x[l] = __builtin_sqrt(x[l]);
    return x;
}

TRL_BODY trl_kernel_bits trl_lanes_excess(trl_kernel_lanes x)
{
    return ((trl_kernel_bits)x & 0x7fffffffffffffffll) + 0x0010000000000000ll;
}

#if defined(__clang__)
#define TRL_LANES_SHUFFLE(x, y, ...) __builtin_shufflevector(x, y, __VA_ARGS__)
#else
#define TRL_LANES_SHUFFLE(x, y, ...) __builtin_shuffle(x, y, (trl_kernel_bits){__VA_ARGS__})
#endif

/* The last lane of those before, then all of x but the last. */
TRL_BODY trl_kernel_lanes trl_lanes_follow(trl_kernel_lanes before, trl_kernel_lanes x)
{
    return TRL_LANES_SHUFFLE(before, x, TRL_KERNEL_FOLLOWING);
}

/* All of x but the first lane, then the first of those after. */
TRL_BODY trl_kernel_lanes trl_lanes_lead(trl_kernel_lanes x, trl_kernel_lanes after)
{
    return TRL_LANES_SHUFFLE(x, after, TRL_KERNEL_LEADING);
}

TRL_BODY long long trl_kernel_least(long long a, long long b)
{
    return a < b ? a : b;
}

TRL_BODY long long trl_kernel_most(long long a, long long b)
{
    return a > b ? a : b;
}

/* Points of a row from `at` on, of which those before point lo are ghosts: the nearest first, at most `depth` of them.
 */
TRL_BODY trl_kernel_lanes trl_kernel_load_lo(const double *row, long long at, long long lo, const double *ghost,
                                             int depth)
{
    trl_kernel_lanes x = trl_kernel_load(row + (at < lo ? lo : at));
    int d;
    for (d = 0; d < depth && at + d < lo; ++d) x = trl_lanes_follow(trl_lanes_of(ghost[d]), x);
    return x;
}

/* The same, where those from point hi on are ghosts. */
TRL_BODY trl_kernel_lanes trl_kernel_load_hi(const double *row, long long at, long long hi, const double *ghost,
                                             int depth)
{
    const long long last = hi - TRL_KERNEL_LANES;
    trl_kernel_lanes x = trl_kernel_load(row + (at > last ? last : at));
    int d;
    for (d = 0; d < depth && at - d > last; ++d) x = trl_lanes_lead(x, trl_lanes_of(ghost[d]));
    return x;
}

/* Points from `at` on, of which the first `beyond` are ghosts. */
TRL_BODY trl_kernel_lanes trl_kernel_load_first(const double *at, const double *ghost, int beyond)
{
    trl_kernel_lanes x = trl_kernel_load(at + beyond);
    int d;
    for (d = 0; d < beyond; ++d) x = trl_lanes_follow(trl_lanes_of(ghost[d]), x);
    return x;
}

/* Points from `at` on, of which the last `beyond` are ghosts if the row ends there. */
TRL_BODY trl_kernel_lanes trl_kernel_load_last(const double *at, int ends, const double *ghost, int beyond)
{
    trl_kernel_lanes x = trl_kernel_load(at - (ends ? beyond : 0));
    int d;
    for (d = 0; ends && d < beyond; ++d) x = trl_lanes_lead(x, trl_lanes_of(ghost[d]));
    return x;
}

/* One point. */
TRL_BODY double trl_kernel_at_lo(const double *row, long long at, long long lo, const double *ghost)
{
    return at < lo ? ghost[lo - 1 - at] : row[at];
}

TRL_BODY double trl_kernel_at_hi(const double *row, long long at, long long hi, const double *ghost)
{
    return at >= hi ? ghost[at - hi] : row[at];
}

/* A part of a row, computed in one go. */
typedef struct trl_kernel_part {
    long long n;            /* points */
    long long begin, end;   /* of them, those at either end that read ghosts which the kernel computes */
    int odd_begin, odd_end; /* whether others do than at the ends of whole rows */
    int lanes;              /* whether it has the lanes that go by themselves at its ends */
} trl_kernel_part;

/* An input has ghosts before point lo. The first points of a whole row, which reaches `further` beyond the input's,
 * read `depth` of them. */
TRL_BODY void trl_kernel_part_begins(trl_kernel_part *part, long long lo, int depth, int further)
{
    part->begin = trl_kernel_most(part->begin, lo - further + depth);
    part->odd_begin |= lo != further;
}

/* From point hi on; the last points. */
TRL_BODY void trl_kernel_part_ends(trl_kernel_part *part, long long hi, int depth, int further)
{
    part->end = trl_kernel_most(part->end, part->n - further - hi + depth);
    part->odd_end |= part->n - further != hi;
}

/* Once all inputs are known. Odd ends become parts of their own, which go point by point. */
TRL_BODY void trl_kernel_part_settle(trl_kernel_part *part)
{
    part->lanes = 0;
    if (part->begin > 0 && part->odd_begin) {
        part->n = trl_kernel_least(part->n, part->begin);
        return;
    }
    if (part->end > 0 && part->odd_end) {
        if (part->n <= part->end) return;
        part->n -= part->end;
        part->end = 0;
    }
    part->lanes = part->begin <= TRL_KERNEL_LANES && part->end <= TRL_KERNEL_LANES &&
                  part->n >= TRL_KERNEL_LANES + part->begin + part->end;
}

/* Rows that a function computes: points [x, x + part.n) of rows [y, end) of planes [z, stop). */
typedef struct trl_kernel_rows {
    trl_kernel_part part;
    long long x, y, end, z, stop;
} trl_kernel_rows;

/* The values of a result so far: of a sum the totals, bits of high totals that have changed, and what the low ones have
 * left; of extremes `high`, and in `low` a sum that is not finite if some value is not. */
typedef struct trl_kernel_total {
    trl_kernel_lanes high, low;
    trl_kernel_bits changed, left;
} trl_kernel_total;

/* What functions have seen of values that are not finite, and merged. */
typedef struct trl_kernel_found {
    long long excess;
    trl_kernel_lanes sums;
    trl_kernel_total *total; /* by output */
} trl_kernel_found;

/* One of several functions: those that are called for several groups stay one piece of code. */
#define TRL_KERNEL_GROUP static __attribute__((noinline, noclone))

TRL_BODY int trl_lanes_any_negative(trl_kernel_bits x)
{
    long long any = 0;
    int l;
    for (l = 0; l < TRL_KERNEL_LANES; ++l) any |= x[l];
    return any < 0;
}

TRL_BODY void trl_kernel_store_streaming(double *out, trl_kernel_lanes value)
{
#if defined(__clang__)
    __builtin_nontemporal_store(value, (trl_kernel_lanes *)out);
#elif defined(__AVX512F__)
    __builtin_ia32_movntpd512(out, value);
#elif defined(__AVX__)
    __builtin_ia32_movntpd256(out, value);
#elif defined(__SSE2__)
    __builtin_ia32_movntpd(out, value);
#else
    *(trl_kernel_lanes *)out = value;
#endif
}

TRL_BODY int trl_kernel_is_aligned(const double *at)
{
    return (unsigned long long)at % sizeof(trl_kernel_lanes) == 0;
}

/* streaming: by a streaming store, which needs an aligned address. */
TRL_BODY void trl_kernel_put(double *out, int streaming, trl_kernel_lanes value)
{
    if (streaming)
        trl_kernel_store_streaming(out, value);
    else
        *(trl_kernel_loose *)out = value;
}

/* Lanes from point i on of a row of n, where the last lanes overlap those before. A store to a line that a streaming
 * store has just left waits for memory, and so does one that a mask keeps from it: these are not stored again. */
TRL_BODY void trl_kernel_put_any(double *row, long long i, long long n, int streaming, trl_kernel_lanes value)
{
    if (!streaming || i % TRL_KERNEL_LANES == 0)
        trl_kernel_put(row + i, streaming, value);
    else
        for (long long l = TRL_KERNEL_LANES - n % TRL_KERNEL_LANES; l < TRL_KERNEL_LANES; ++l) row[i + l] = value[l];
}

/* Values of streaming stores are in memory before what this thread stores next. */
TRL_BODY void trl_kernel_fence(void)
{
#if defined(__SSE2__)
    __builtin_ia32_sfence();
#endif
}

/* Ask for the line of a value that will be read soon. */
TRL_BODY void trl_kernel_fetch(const double *at)
{
    __builtin_prefetch(at);
}

/* ---- functions on lanes ---- */

/* Lanes one by one. */
typedef union trl_lanes_each {
    trl_kernel_lanes all;
    double at[TRL_KERNEL_LANES];
    long long bits[TRL_KERNEL_LANES];
} trl_lanes_each;

/* A loop over the lanes `l` that becomes operations on all of them. Told nothing, clang would unroll it first. */
#if defined(__clang__)
#define TRL_LANES_LOOP                                                                                     \
    _Pragma("clang loop unroll(disable) vectorize(assume_safety) vectorize_width(TRL_KERNEL_LANES)") for ( \
        int l = 0; l < TRL_KERNEL_LANES; ++l)
#else
#define TRL_LANES_LOOP for (int l = 0; l < TRL_KERNEL_LANES; ++l)
#endif

/* Values that are not next to each other. */
TRL_BODY trl_kernel_lanes trl_kernel_gather(const double *at, long long stride)
{
    trl_lanes_each x;
    int l;
    for (l = 0; l < TRL_KERNEL_LANES; ++l) x.at[l] = at[l * stride];
    return x.all;
}

TRL_BODY void trl_kernel_scatter(double *at, long long stride, trl_kernel_lanes value)
{
    int l;
    for (l = 0; l < TRL_KERNEL_LANES; ++l) at[l * stride] = value[l];
}

/* The same for lanes at i, i + 1, ... */
TRL_BODY trl_kernel_lanes trl_lanes_coordinate(const trl_kernel_grid *g, int axis, double shift, long long i)
{
    trl_lanes_each x;
    if (i >= 0 && i + TRL_KERNEL_LANES <= g->cells[axis])
        TRL_LANES_LOOP x.at[l] = (double)(i + l);
    else
        for (int l = 0; l < TRL_KERNEL_LANES; ++l) x.at[l] = (double)trl_kernel_wrap(g, axis, i + l);
    return g->origin[axis] + (x.all + shift) * g->spacing[axis];
}

TRL_BODY trl_kernel_lanes trl_lanes_at(long long where, long long i)
{
    trl_lanes_each x;
    TRL_LANES_LOOP x.at[l] = trl_kernel_at(where, i + l);
    return x.all;
}

TRL_BODY trl_kernel_lanes trl_lanes_random(unsigned long long seed, const trl_kernel_grid *g, int axis, long long i,
                                           long long j, long long k)
{
    trl_lanes_each x;
    for (int l = 0; l < TRL_KERNEL_LANES; ++l)
        x.at[l] = trl_kernel_random(seed, g, axis == 0 ? i + l : i, axis == 1 ? j + l : j, k);
    return x.all;
}

TRL_BODY trl_kernel_lanes trl_lanes_point(const trl_kernel_grid *g, int axis, long long i, long long j, long long k)
{
    trl_lanes_each x;
    for (int l = 0; l < TRL_KERNEL_LANES; ++l)
        x.at[l] = trl_kernel_point(g, axis == 0 ? i + l : i, axis == 1 ? j + l : j, k);
    return x.all;
}

TRL_BODY trl_kernel_lanes trl_lanes_share(const trl_kernel_grid *g, int axis, double shift, double where, long long i)
{
    trl_lanes_each x;
    for (int l = 0; l < TRL_KERNEL_LANES; ++l) x.at[l] = trl_kernel_share(g, axis, shift, where, i + l);
    return x.all;
}

/* A function f of n operands on lanes, f_lanes, and for one point, f_point. A kernel defines those that it calls, each
 * of which is compiled once, or where it calls few (how: FEW) also with each call on lanes. */
#define TRL_KERNEL_FEW TRL_BODY
#define TRL_KERNEL_MANY static __attribute__((noinline, TRL_KERNEL_AS_IT_IS))
#if defined(__clang__)
#define TRL_KERNEL_AS_IT_IS
#else
#define TRL_KERNEL_AS_IT_IS noclone /* nor made anew for operands that are known */
#endif
#define TRL_LANES_TAKEN1 trl_kernel_lanes a
#define TRL_LANES_TAKEN2 trl_kernel_lanes a, trl_kernel_lanes b
#define TRL_LANES_TAKEN3 trl_kernel_lanes a, trl_kernel_lanes b, trl_kernel_lanes c
#define TRL_LANES_GIVEN1 a
#define TRL_LANES_GIVEN2 a, b
#define TRL_LANES_GIVEN3 a, b, c
/* gcc makes no vectors of some loops over lanes that it knows. */
#define TRL_LANES_EACH1 x = {a}
#define TRL_LANES_EACH2 x = {trl_lanes_settled(a)}, y = {trl_lanes_settled(b)}
#define TRL_LANES_EACH3 x = {a}, y = {b}, z = {c}
#define TRL_LANES_ONE1 x.at[l]
#define TRL_LANES_ONE2 x.at[l], y.at[l]
#define TRL_LANES_ONE3 x.at[l], y.at[l], z.at[l]
#define TRL_POINT_TAKEN1 double a
#define TRL_POINT_TAKEN2 double a, double b
#define TRL_POINT_TAKEN3 double a, double b, double c
#define TRL_POINT_GIVEN1 trl_lanes_of(a)
#define TRL_POINT_GIVEN2 trl_lanes_of(a), trl_lanes_of(b)
#define TRL_POINT_GIVEN3 trl_lanes_of(a), trl_lanes_of(b), trl_lanes_of(c)
#define TRL_KERNEL_FUNCTION(how, f, n)                                       \
    TRL_KERNEL_##how trl_kernel_lanes TRL_OWN(f##_lanes)(TRL_LANES_TAKEN##n) \
    {                                                                        \
        const trl_lanes_each TRL_LANES_EACH##n;                              \
        trl_lanes_each r;                                                    \
        TRL_LANES_LOOP r.at[l] = f(TRL_LANES_ONE##n);                        \
        return r.all;                                                        \
    }                                                                        \
    TRL_KERNEL_POINT(f, n)
/* Of a function that has a branch: without it, and all lanes again with it if some operand is not near. (clang would
 * read parts of `far` from where it has just stored all of it, and wait.) */
#define TRL_KERNEL_FUNCTION_NEAR(how, f, n)                                                     \
    TRL_KERNEL_MANY __attribute__((cold)) trl_kernel_lanes TRL_OWN(f##_far)(TRL_LANES_TAKEN##n) \
    {                                                                                           \
        const trl_lanes_each TRL_LANES_EACH##n;                                                 \
        trl_lanes_each r;                                                                       \
        for (int l = 0; l < TRL_KERNEL_LANES; ++l) r.at[l] = f(TRL_LANES_ONE##n);               \
        return r.all;                                                                           \
    }                                                                                           \
    TRL_KERNEL_##how trl_kernel_lanes TRL_OWN(f##_lanes)(TRL_LANES_TAKEN##n)                    \
    {                                                                                           \
        const trl_lanes_each TRL_LANES_EACH##n;                                                 \
        trl_lanes_each r, far;                                                                  \
        TRL_LANES_LOOP                                                                          \
        {                                                                                       \
            r.at[l] = f##_near(TRL_LANES_ONE##n);                                               \
            far.bits[l] = f##_is_near(TRL_LANES_ONE##n) ? 0 : -1;                               \
        }                                                                                       \
        return trl_lanes_any_negative((trl_kernel_bits)trl_lanes_settled(far.all))              \
                   ? TRL_OWN(f##_far)(TRL_LANES_GIVEN##n)                                       \
                   : r.all;                                                                     \
    }                                                                                           \
    TRL_KERNEL_POINT(f, n)
#define TRL_KERNEL_POINT(f, n)                                    \
    TRL_KERNEL_MANY double TRL_OWN(f##_point)(TRL_POINT_TAKEN##n) \
    {                                                             \
        return TRL_OWN(f##_lanes)(TRL_POINT_GIVEN##n)[0];         \
    }

#endif

#endif
