/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The total is an integer T times 2^-1075. Word i holds the part of T in units of 2^(32 i), with 32 bits to spare, so
 * that carries need propagating only now and then. A double of exponent field e and significand m adds m << (e % 32)
 * to words e / 32 and up. */
#include <math.h>
#include <string.h>

#include <context_impl.h>
#include <trl_field.h>

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
    int64_t carry = 0;
    for (int i = 0; i < TRL_SUM_WORDS - 1; ++i) {
        int64_t word = s->word[i] + carry;
        int64_t low = word & low_half;
        carry = (word - low) / ((int64_t)1 << 32);
        s->word[i] = low;
    }
    s->word[TRL_SUM_WORDS - 1] += carry; /* keeps the sign */
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

static void add_long(trl_sum *s, const double *values, int64_t n)
{
    int64_t second[TRL_SUM_WORDS] = {0};
    while (n > 0) {
        if (s->pending == PENDING_MAX) {
            add_words(s, second);
            memset(second, 0, sizeof second);
            trl_sum_normalise(s);
        }
        int64_t block = PENDING_MAX - s->pending;
        if (block > n) block = n;
        add_block(s, second, values, block);
        s->pending += (int32_t)block;
        values += block;
        n -= block;
    }
    add_words(s, second);
}

void trl_sum_add(trl_sum *s, const double *values, int64_t n)
{
    if (n > SHORT || n > PENDING_MAX - s->pending) {
        add_long(s, values, n);
    } else if (n > 0) {
        add_block(s, s->word, values, n); /* a second set of words would cost more than it gains */
        s->pending += (int32_t)n;
    }
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

/* The words of |T|, each below 2^32, and its sign. */
static bool magnitude(const trl_sum *s, uint64_t word[TRL_SUM_WORDS])
{
    trl_sum normal = *s;
    trl_sum_normalise(&normal);
    bool negative = normal.word[TRL_SUM_WORDS - 1] < 0;
    if (negative) {
        for (int i = 0; i < TRL_SUM_WORDS; ++i) normal.word[i] = -normal.word[i];
        trl_sum_normalise(&normal);
    }
    for (int i = 0; i < TRL_SUM_WORDS; ++i) word[i] = (uint64_t)normal.word[i];
    return negative;
}

/* The bits of the double nearest to T * 2^-1075, ties to even; the top word is the highest that is not zero. */
static uint64_t round_to_double(const uint64_t word[TRL_SUM_WORDS], int top)
{
    int lead = 31;
    while (!(word[top] >> lead & 1)) --lead;
    int highest = 32 * top + lead;
    uint64_t below = top > 0 ? word[top - 1] : 0;
    if (highest <= 53) return (word[top] << 32 * top | (top > 0 ? below : 0)) >> 1; /* T is even: exact */

    uint64_t last = top > 1 ? word[top - 2] : 0;
    int shift = 31 - lead;
    uint64_t window = (word[top] << 32 | below) << shift | last >> (32 - shift);
    bool rest = (last << shift & 0xffffffff) != 0;
    for (int i = 0; i < top - 2; ++i) rest = rest || word[i] != 0;

    uint64_t significand = window >> 11, dropped = window & 0x7ff;
    uint64_t exponent = (uint64_t)(highest - 52);
    if (exponent >= 0x7ff) return (uint64_t)0x7ff << 52;
    uint64_t bits = ((exponent - 1) << 52) + significand; /* the leading bit adds one to the exponent field */
    bool up = dropped > 0x400 || (dropped == 0x400 && (rest || (significand & 1)));
    return bits + up; /* carries into the exponent, up to infinity */
}

double trl_sum_value(const trl_sum *s)
{
    uint64_t word[TRL_SUM_WORDS], bits;
    double value;
    bool plus = s->special[PLUS_INFINITY] > 0, minus = s->special[MINUS_INFINITY] > 0;

    if (s->special[NOT_A_NUMBER] > 0 || (plus && minus)) return (double)NAN;
    if (plus || minus) return plus ? (double)INFINITY : -(double)INFINITY;
    bool negative = magnitude(s, word);
    int top = TRL_SUM_WORDS - 1;
    while (top > 0 && word[top] == 0) --top;
    if (word[top] == 0) return 0.0;
    bits = round_to_double(word, top) | (uint64_t)negative << 63;
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
