/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The total is an integer T times 2^-1075. Word i holds the part of T in units of 2^(32 i), with 32 bits to spare, so
 * that carries need propagating only now and then. A double of exponent field e and significand m adds m << (e % 32)
 * to words e / 32 and up. */
#include <math.h>
#include <string.h>

#include <context_impl.h>
#include <trl_field.h>

#include "reduction_impl.h"
#include "trl_sum_body.h"
#include "vector_impl.h"

/* One addition changes a word by at most 2^52. 1024 of them, and the words of a million normalised sums, fit into 63
 * bits. */
enum { PENDING_MAX = 1024, SHORT = 64 };

static const int64_t low_half = 0xffffffff;

enum { PLUS_INFINITY, MINUS_INFINITY, NOT_A_NUMBER };

_Static_assert(sizeof(trl_sum) == (TRL_SUM_WORDS + 4) * sizeof(int64_t),
               "trl_sum_allreduce sends it as 64-bit integers");

void trl_sum_clear(trl_sum *s)
{
    memset(s, 0, sizeof *s);
}

void trl_sum_normalise(trl_sum *s)
{
    trl_sum_carry(s->word, 0, TRL_SUM_WORDS);
    s->pending = 0;
}

static void add_special(trl_sum *s, uint64_t bits)
{
    bool infinite = bits << 12 == 0;
    ++s->special[!infinite ? NOT_A_NUMBER : bits >> 63 ? MINUS_INFINITY : PLUS_INFINITY];
}

static inline void add_value(trl_sum *s, int64_t word[TRL_SUM_WORDS], double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    unsigned field = (unsigned)(bits >> 52) & 0x7ff;
    if (field == 0x7ff) {
        add_special(s, bits);
        return;
    }
    unsigned subnormal = field == 0; /* no leading bit, and the exponent of field 1 */
    uint64_t significand = (bits & 0xfffffffffffff) | (uint64_t)(1 - subnormal) << 52;
    unsigned exponent = field + subnormal, shift = exponent & 31;
    int64_t sign = -(int64_t)(bits >> 63);
    int64_t signed_significand = ((int64_t)significand ^ sign) - sign;
    word[exponent >> 5] += (int64_t)((uint64_t)signed_significand << shift) & low_half;
    word[(exponent >> 5) + 1] += signed_significand >> (32 - shift); /* rounds down: the low half is never negative */
}

/* At most PENDING_MAX values. Two sets of words break the chain of additions to the same word. */
static void add_block(trl_sum *s, int64_t second[TRL_SUM_WORDS], const double *values, int64_t n)
{
    int64_t i = 0;
    for (; i + 1 < n; i += 2) {
        add_value(s, s->word, values[i]);
        add_value(s, second, values[i + 1]);
    }
    if (i < n) add_value(s, s->word, values[i]);
}

static void add_words(trl_sum *s, const int64_t words[TRL_SUM_WORDS])
{
    for (int i = 0; i < TRL_SUM_WORDS; ++i) s->word[i] += words[i];
}

/* Room for more values, at most PENDING_MAX. */
static void make_room(trl_sum *s, int64_t n)
{
    if (n > PENDING_MAX - s->pending) trl_sum_normalise(s);
    s->pending += n;
}

static void add_each(trl_sum *s, const double *values, int64_t n)
{
    make_room(s, n);
    if (n <= SHORT) {
        add_block(s, s->word, values, n); /* a second set of words would cost more than it gains */
        return;
    }
    int64_t second[TRL_SUM_WORDS] = {0};
    add_block(s, second, values, n);
    add_words(s, second);
}

static double number_of(uint64_t field)
{
    const uint64_t bits = field << 52 | (uint64_t)1 << 51;
    double number;
    memcpy(&number, &bits, sizeof number);
    return number;
}

/* ---- in vectors ---- */

enum {
    FIELD_LEAST = 64, /* of the exponent of the largest value: all totals are normal numbers with room, */
    FIELD_MOST = 2030 /* and finite */
};

#if defined(__x86_64__)

/* Of up to PENDING_MAX values none of which is 2^(t + 1) or larger, a total that starts at 1.5 * 2^(t + 13) takes what
 * is a multiple of 2^(t - 39): it stays within its binade, so each addition rounds to such multiples, and what it
 * rounds off is exact (Dekker, "A floating-point technique for extending the available precision", 1971). A second
 * total, from 1.5 * 2^(t - 28) on, takes multiples of 2^(t - 80) of what is left. What is left then, of numbers that
 * are small beside the largest, is added in the same way. Each total, less what it starts at, is a double, and so is
 * the total of all elements of vectors: all of it is exact (the binned sums of Demmel & Nguyen, "Parallel reproducible
 * summation", 2015, have totals like these). */
enum {
    VECTORS_LEAST = 64, /* values from which on vectors pay */
    HIGH = 13,
    LOW = -28,
    PASSES_MOST = 4
};

/* The totals of a block, what it leaves, and whether that is anything but zeros. */
typedef struct split {
    double high, low; /* that the totals start at */
    double total[2];
    bool rest;
} split;

/* width: doubles in a vector; n: a multiple of twice as many. Bits of NaNs and infinities are the largest. */
#define SPLIT(width, attribute)                                                                                 \
    typedef long long bits##width __attribute__((vector_size(8 * (width))));                                    \
    attribute static uint64_t largest##width(const double *values, int64_t n)                                   \
    {                                                                                                           \
        bits##width most[2] = {{0}, {0}};                                                                       \
        uint64_t all = 0;                                                                                       \
        for (int64_t i = 0; i < n; i += 2 * (width))                                                            \
            for (int u = 0; u < 2; ++u) {                                                                       \
                const trli_vector##width x = *(const trli_loose##width *)&values[i + u * (width)];              \
                const bits##width size = (bits##width)x & INT64_MAX, larger = size > most[u];                   \
                most[u] = (size & larger) | (most[u] & ~larger);                                                \
            }                                                                                                   \
        for (int l = 0; l < (width); ++l)                                                                       \
            for (int u = 0; u < 2; ++u)                                                                         \
                if ((uint64_t)most[u][l] > all) all = (uint64_t)most[u][l];                                     \
        return all;                                                                                             \
    }                                                                                                           \
    attribute static void split##width(split *s, const double *values, int64_t n, double *rest)                 \
    {                                                                                                           \
        const trli_vector##width zero = {0};                                                                    \
        trli_vector##width high[2] = {zero + s->high, zero + s->high}, low[2] = {zero + s->low, zero + s->low}; \
        bits##width left[2] = {{0}, {0}};                                                                       \
        for (int64_t i = 0; i < n; i += 2 * (width))                                                            \
            for (int u = 0; u < 2; ++u) {                                                                       \
                const trli_vector##width x = *(const trli_loose##width *)&values[i + u * (width)];              \
                const trli_vector##width sum = high[u] + x, more = x - (sum - high[u]);                         \
                const trli_vector##width less = low[u] + more, none = more - (less - low[u]);                   \
                high[u] = sum, low[u] = less;                                                                   \
                left[u] |= (bits##width)none;                                                                   \
                *(trli_loose##width *)&rest[i + u * (width)] = none;                                            \
            }                                                                                                   \
        s->total[0] = s->total[1] = 0;                                                                          \
        s->rest = false;                                                                                        \
        for (int l = 0; l < (width); ++l)                                                                       \
            for (int u = 0; u < 2; ++u) {                                                                       \
                s->total[0] += high[u][l] - s->high;                                                            \
                s->total[1] += low[u][l] - s->low;                                                              \
                s->rest |= (left[u][l] & INT64_MAX) != 0;                                                       \
            }                                                                                                   \
    }
TRLI_STREAM_VARIANTS(SPLIT)
#undef SPLIT

enum { WIDEST = 8 };

/* n: a multiple of 2 * WIDEST, at most PENDING_MAX. */
static void add_vectors(trl_sum *s, const double *values, int64_t n)
{
    double rest[PENDING_MAX];
    for (int pass = 0; pass < PASSES_MOST; ++pass) {
        const uint64_t largest = TRLI_STREAM_CALL(largest, values, n), field = largest >> 52;
        if (largest == 0) return;
        if (field < FIELD_LEAST || field > FIELD_MOST) break;
        split of = {.high = number_of(field + HIGH), .low = number_of(field + LOW)};
        TRLI_STREAM_CALL(split, &of, values, n, rest);
        make_room(s, 2);
        add_block(s, s->word, of.total, 2);
        if (!of.rest) return;
        values = rest;
    }
    add_each(s, values, n);
}

static void add_some(trl_sum *s, const double *values, int64_t n)
{
    const int64_t whole = n < VECTORS_LEAST ? 0 : n - n % (2 * WIDEST);
    if (whole > 0) add_vectors(s, values, whole);
    if (whole < n) add_each(s, values + whole, n - whole);
}

#else
#define add_some add_each
#endif

void trl_sum_add(trl_sum *s, const double *values, int64_t n)
{
    for (int64_t i = 0; i < n; i += PENDING_MAX) add_some(s, values + i, n - i < PENDING_MAX ? n - i : PENDING_MAX);
}

/* ---- in totals of kernels ---- */

/* Of values below 2^(t + 1) the first total has room for an eighth of TRLI_WINDOW_VALUES in each lane: it starts at
 * 1.5 * 2^(t + HIGH_FROM), and keeps this exponent. It leaves at most 2^(t + HIGH_FROM - 53) of each value, and the
 * second total has room for all of that in one lane. What either adds is 8 lanes of at most 2^51 units. */
enum { HIGH_FROM = 10, LOW_FROM = HIGH_FROM - 42, UNITS_MOST = 256 };

void trli_sum_window_empty(trli_sum_window *w, trl_sum *s)
{
    double values[4];
    if (w->pending == 0) return;
    for (int i = 0; i < 2; ++i) {
        const double unit = nextafter(w->start[i], INFINITY) - w->start[i];
        const long long low = w->units[i] & low_half;
        values[2 * i] = (double)low * unit;
        values[2 * i + 1] = (double)(w->units[i] - low) * unit;
        w->units[i] = 0;
    }
    trl_sum_add(s, values, 4);
    w->pending = 0;
}

void trli_sum_window_add(trli_sum_window *w, trl_sum *s, const long long units[2])
{
    for (int i = 0; i < 2; ++i) w->units[i] += units[i];
    if (++w->pending == UNITS_MOST) trli_sum_window_empty(w, s);
}

void trli_sum_window_choose(trli_sum_window *w, trl_sum *s, const double *values, int64_t n)
{
    uint64_t largest = 0;
    trli_sum_window_empty(w, s);
    for (int64_t i = 0; i < n; ++i) {
        uint64_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        bits &= INT64_MAX;
        if (bits > largest) largest = bits;
    }
    const uint64_t field = largest == 0 ? 1023 : largest >> 52;
    const bool fits = field >= FIELD_LEAST && field + HIGH_FROM <= FIELD_MOST;
    w->start[0] = fits ? number_of(field + HIGH_FROM) : 0;
    w->start[1] = fits ? number_of(field + LOW_FROM) : 0;
}

void trl_sum_merge(trl_sum *s, const trl_sum *other)
{
    trl_sum normal = *other;
    trl_sum_normalise(&normal);
    trl_sum_normalise(s);
    add_words(s, normal.word);
    for (int i = 0; i < 3; ++i) s->special[i] += normal.special[i];
    s->pending = 1;
}

double trl_sum_value(const trl_sum *s)
{
    trl_sum total = *s;
    double value;
    const uint64_t bits = trl_sum_bits(total.word, 0, TRL_SUM_WORDS, TRL_SUM_WORDS, total.special);
    memcpy(&value, &bits, sizeof value);
    return value;
}

trl_err trl_sum_allreduce(trl_context *ctx, int n, trl_sum *sums)
{
    const size_t tail = offsetof(trl_sum, pending);
    for (int i = 0; i < n; ++i) {
        trl_sum_normalise(&sums[i]);
        memset((char *)&sums[i] + tail, 0, sizeof sums[i] - tail); /* the padding is summed too */
    }
    return trli_allreduce(ctx, sums, n * (int)(sizeof *sums / sizeof(int64_t)), MPI_INT64_T, MPI_SUM);
}
