/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Part of trl_functions_body.h: bits, sums and products with their rounding errors, polynomials; whole numbers, roots,
 * hypot and fmod. */
#ifndef TRL_FUNCTIONS_BASE_BODY_H
#define TRL_FUNCTIONS_BASE_BODY_H

typedef unsigned long long trl_fn_word;

#ifdef __CUDA_ARCH__
TRL_BODY trl_fn_word trl_fn_bits(double x)
{
    return (trl_fn_word)__double_as_longlong(x);
}

TRL_BODY double trl_fn_double(trl_fn_word bits)
{
    return __longlong_as_double((long long)bits);
}
#define TRL_FN_SQRT(x) __dsqrt_rn(x)
#define TRL_FN_FMA(x, y, z) __fma_rn(x, y, z)
#else
TRL_BODY trl_fn_word trl_fn_bits(double x)
{
    trl_fn_word bits;
    __builtin_memcpy(&bits, &x, sizeof bits);
    return bits;
}

TRL_BODY double trl_fn_double(trl_fn_word bits)
{
    double x;
    __builtin_memcpy(&x, &bits, sizeof x);
    return x;
}
#define TRL_FN_SQRT(x) __builtin_sqrt(x)
#define TRL_FN_FMA(x, y, z) __builtin_fma(x, y, z)
#endif

#define TRL_FN_INF trl_fn_double(0x7ff0000000000000u)
#define TRL_FN_NAN trl_fn_double(0x7ff8000000000000u)
#define TRL_FN_SIGN 0x8000000000000000u
#define TRL_FN_EXPONENT 0xfff0000000000000u
/* Adding it to |x| < 2^51 rounds x to a whole number, ties to even, which then stands in the low bits. */
#define TRL_FN_ROUNDER 0x1.8p52

TRL_BODY double trl_fn_abs(double x)
{
    return trl_fn_double(trl_fn_bits(x) & ~TRL_FN_SIGN);
}

/* magnitude >= 0 with the sign of x. */
TRL_BODY double trl_fn_signed(double magnitude, double x)
{
    return trl_fn_double(trl_fn_bits(magnitude) | (trl_fn_bits(x) & TRL_FN_SIGN));
}

/* All bits if the condition is 1, none if it is 0: for choices that compilers must not make into branches. */
TRL_BODY trl_fn_word trl_fn_mask(trl_fn_word condition)
{
    return 0 - condition;
}

TRL_BODY double trl_fn_pick(trl_fn_word mask, double a, double b)
{
    return trl_fn_double((trl_fn_bits(a) & mask) | (trl_fn_bits(b) & ~mask));
}

/* All bits if n is odd, by the sign of a double: gcc 14 makes no vectors of a bit as a truth value. */
TRL_BODY trl_fn_word trl_fn_odd_mask(trl_fn_word n)
{
    return trl_fn_mask(trl_fn_double(n << 63 | 0x3ff0000000000000u) < 0.0);
}

/* 2^n from a sum n + TRL_FN_ROUNDER, for -1023 < n < 1024. */
TRL_BODY double trl_fn_power_of_2(double sum)
{
    return trl_fn_double((trl_fn_bits(sum) + 1023) << 52);
}

/* ---- An unevaluated sum hi + lo. Knuth, "The Art of Computer Programming", vol. 2, sec. 4.2.2; Dekker, "A
 * floating-point technique for extending the available precision", 1971. ---- */

typedef struct trl_fn_pair {
    double hi, lo;
} trl_fn_pair;

/* a + b exactly, for a = 0 or |a| >= |b|. */
TRL_BODY trl_fn_pair trl_fn_sum(double a, double b)
{
    trl_fn_pair s;
    s.hi = a + b;
    s.lo = (a - s.hi) + b;
    return s;
}

/* a + b exactly. */
TRL_BODY trl_fn_pair trl_fn_any_sum(double a, double b)
{
    trl_fn_pair s;
    s.hi = a + b;
    double from_b = s.hi - a;
    s.lo = (a - (s.hi - from_b)) + (b - from_b);
    return s;
}

/* The first 26 bits of x; what is left has 27. */
TRL_BODY double trl_fn_top(double x)
{
    return trl_fn_double(trl_fn_bits(x) & 0xfffffffff8000000u);
}

/* a*b exactly, where nothing underflows. */
TRL_BODY trl_fn_pair trl_fn_product(double a, double b)
{
    trl_fn_pair p;
    p.hi = a * b;
    p.lo = TRL_FN_FMA(a, b, -p.hi);
    return p;
}

TRL_BODY trl_fn_pair trl_fn_quotient(trl_fn_pair n, trl_fn_pair d)
{
    trl_fn_pair q;
    q.hi = n.hi / d.hi;
    q.lo = (TRL_FN_FMA(-q.hi, d.hi, n.hi) + TRL_FN_FMA(-q.hi, d.lo, n.lo)) / d.hi;
    return q;
}

/* Horner's scheme: a + b*x + c*x^2 + ... with 2, 3, ... coefficients. */
#define TRL_FN_POLY2(x, a, b) TRL_FN_FMA(x, b, a)
#define TRL_FN_POLY3(x, a, ...) TRL_FN_FMA(x, TRL_FN_POLY2(x, __VA_ARGS__), a)
#define TRL_FN_POLY4(x, a, ...) TRL_FN_FMA(x, TRL_FN_POLY3(x, __VA_ARGS__), a)
#define TRL_FN_POLY5(x, a, ...) TRL_FN_FMA(x, TRL_FN_POLY4(x, __VA_ARGS__), a)
#define TRL_FN_POLY6(x, a, ...) TRL_FN_FMA(x, TRL_FN_POLY5(x, __VA_ARGS__), a)
#define TRL_FN_POLY7(x, a, ...) TRL_FN_FMA(x, TRL_FN_POLY6(x, __VA_ARGS__), a)
#define TRL_FN_POLY8(x, a, ...) TRL_FN_FMA(x, TRL_FN_POLY7(x, __VA_ARGS__), a)
#define TRL_FN_POLY9(x, a, ...) TRL_FN_FMA(x, TRL_FN_POLY8(x, __VA_ARGS__), a)
#define TRL_FN_POLY10(x, a, ...) TRL_FN_FMA(x, TRL_FN_POLY9(x, __VA_ARGS__), a)
#define TRL_FN_POLY11(x, a, ...) TRL_FN_FMA(x, TRL_FN_POLY10(x, __VA_ARGS__), a)
#define TRL_FN_POLY12(x, a, ...) TRL_FN_FMA(x, TRL_FN_POLY11(x, __VA_ARGS__), a)
#define TRL_FN_POLY13(x, a, ...) TRL_FN_FMA(x, TRL_FN_POLY12(x, __VA_ARGS__), a)

/* ---- Whole numbers ---- */

/* |x| to a whole number, ties to even; from 2^52 on everything is whole. */
TRL_BODY double trl_fn_even(double magnitude)
{
    double r = (magnitude + 0x1p52) - 0x1p52;
    return magnitude < 0x1p52 ? r : magnitude;
}

TRL_BODY double trl_fn_trunc(double x)
{
    double a = trl_fn_abs(x), r = trl_fn_even(a), less = r - 1.0;
    return trl_fn_signed(r > a ? less : r, x);
}

TRL_BODY double trl_fn_floor(double x)
{
    double r = trl_fn_signed(trl_fn_even(trl_fn_abs(x)), x), less = r - 1.0;
    return r > x ? less : r;
}

TRL_BODY double trl_fn_ceil(double x)
{
    double r = trl_fn_signed(trl_fn_even(trl_fn_abs(x)), x), more = trl_fn_signed(trl_fn_abs(r + 1.0), x);
    return r < x ? more : r;
}

TRL_BODY double trl_fn_round(double x)
{
    double a = trl_fn_abs(x), t = trl_fn_even(a), less = t - 1.0;
    double r = t > a ? less : t, more = r + 1.0;
    return trl_fn_signed(a - r >= 0.5 ? more : r, x);
}

/* Choices. NaN stays NaN in all of these: a solution that breaks must not be hidden by a clip. */

TRL_BODY double trl_fn_sign(double x)
{
    return x > 0.0 ? 1.0 : x < 0.0 ? -1.0 : x;
}

TRL_BODY double trl_fn_min(double x, double y)
{
    return x < y ? x : (x == x ? y : x);
}

TRL_BODY double trl_fn_max(double x, double y)
{
    return x > y ? x : (x == x ? y : x);
}

TRL_BODY double trl_fn_step(double x)
{
    return x >= 0.0 ? 1.0 : x < 0.0 ? 0.0 : x;
}

/* ---- Roots ---- */

TRL_BODY double trl_fn_sqrt(double x)
{
    return TRL_FN_SQRT(x);
}

/* |x| = M * 8^e with 1 <= M < 8. r = M^(-1/3) by a polynomial on [1, 2] (6 coefficients, 2^-17.4) and one step of third
 * order; then one of Newton's on M*r^2 with M - y^3 in two doubles. */
TRL_BODY double trl_fn_cbrt(double x)
{
    double a = trl_fn_abs(x);
    int small = a < 0x1p-1022;
    double scaled = a * 0x1p54;
    trl_fn_word w = trl_fn_bits(small ? scaled : a);
    double k = trl_fn_double((w >> 52) | 0x4330000000000000u) - (small ? 0x1p52 + 1077.0 : 0x1p52 + 1023.0);
    double m = trl_fn_double((w & ~TRL_FN_EXPONENT) | 0x3ff0000000000000u);
    double sum = (k - 1.0) * (1.0 / 3.0) + TRL_FN_ROUNDER, left = k - 3.0 * (sum - TRL_FN_ROUNDER); /* 0, 1, 2 */
    double r = TRL_FN_POLY6(m, 1.7810486184437357, -1.5659981726592582, 1.2437451293586943, -0.597846486584046,
                            0.1560631228263115, -0.017017965730680852);
    double factor = left > 1.5 ? 0x1.428a2f98d728bp-1 : 0x1.965fea53d6e3dp-1; /* 4^(-1/3), 2^(-1/3) */
    double more = left > 1.5 ? 4.0 : 2.0;
    r *= left > 0.5 ? factor : 1.0;
    m *= left > 0.5 ? more : 1.0;
    double h = 1.0 - m * r * (r * r);
    r = r + r * h * (1.0 / 3.0 + h * (2.0 / 9.0));
    double y = m * (r * r);
    trl_fn_pair square = trl_fn_product(y, y), cube = trl_fn_product(square.hi, y);
    double rest = ((m - cube.hi) - cube.lo) - square.lo * y;
    y = (y + rest * (r * r) * (1.0 / 3.0)) * trl_fn_power_of_2(sum);
    return a > 0.0 && a < TRL_FN_INF ? trl_fn_signed(y, x) : x + x;
}

/* Scaled by a power of 2 where squares would leave the range. */
TRL_BODY double trl_fn_hypot(double x, double y)
{
    double a = trl_fn_abs(x), b = trl_fn_abs(y), most = a > b ? a : b;
    double scale = most > 0x1p500 ? 0x1p-600 : most < 0x1p-450 ? 0x1p600 : 1.0;
    double back = most > 0x1p500 ? 0x1p600 : most < 0x1p-450 ? 0x1p-600 : 1.0;
    double c = a * scale, d = b * scale, r = TRL_FN_SQRT(c * c + d * d) * back;
    return a == TRL_FN_INF || b == TRL_FN_INF ? TRL_FN_INF : r;
}

/* ---- Remainder. Exact, and hence the same on either way: trl_fn_fmod_near is free of branches, and right where
 * trl_fn_fmod_is_near. ---- */

TRL_BODY int trl_fn_fmod_is_near(double x, double y)
{
    double b = trl_fn_abs(y);
    int few = trl_fn_abs(x) < b * 0x1p51, finite = b < TRL_FN_INF;
    return few & finite;
}

/* a - b*trunc(a/b) for 0 <= a < 2^51 b. The parts of the quotient have 26 and 25 bits and those of b 26 and 27: their
 * products are exact, and so is every difference. A quotient rounded up to a whole number leaves a remainder below 0.
 */
TRL_BODY double trl_fn_remainder(double a, double b)
{
    double q = trl_fn_trunc(a / b), q1 = trl_fn_top(q), q2 = q - q1, b1 = trl_fn_top(b), b2 = b - b1;
    double p = q * b, low = ((q1 * b1 - p) + q1 * b2 + q2 * b1) + q2 * b2;
    double r = (a - p) - low, more = r + b;
    return r < 0.0 ? more : r;
}

TRL_BODY double trl_fn_fmod_near(double x, double y)
{
    return trl_fn_signed(trl_fn_remainder(trl_fn_abs(x), trl_fn_abs(y)), x);
}

TRL_BODY double trl_fn_fmod(double x, double y)
{
    double a = trl_fn_abs(x), b = trl_fn_abs(y);
    if (!(a < TRL_FN_INF) || !(b > 0.0)) return TRL_FN_NAN;
    if (b == TRL_FN_INF) return x;
    while (a >= b * 0x1p51) { /* take off a large multiple first */
        double c = b;
        while (c < a * 0x1p-51) c *= 0x1p50;
        a = trl_fn_remainder(a, c);
    }
    return trl_fn_signed(trl_fn_remainder(a, b), x);
}

#endif
