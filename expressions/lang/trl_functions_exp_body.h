/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Part of trl_functions_body.h: exponentials, logarithms, powers, hyperbolic functions, error functions. */
#ifndef TRL_FUNCTIONS_EXP_BODY_H
#define TRL_FUNCTIONS_EXP_BODY_H

/* log 2, the first part so short that its product with an exponent is exact. */
#define TRL_FN_LN2 0x1.62e42fefa38p-1
#define TRL_FN_LN2_LOW 0x1.ef35793c7673p-45
/* log 2 rounded, and the rest. */
#define TRL_FN_LN2_HIGH 0x1.62e42fefa39efp-1
#define TRL_FN_LN2_REST 0x1.abc9e3b39803fp-56

/* ---- Exponentials. x = n log 2 + r, |r| <= log(2)/2 (Cody and Waite, "Software manual for the elementary functions",
 * 1980); e^r = cosh r + sinh r, each a polynomial in r^2 <= 0.12014: behind 1 + r^2/2 and r 4 and 5
 * coefficients, 2^-57.3 and 2^-61.6 of e^r. ---- */

/* Rounds x/log(2) to n, and leaves n + 2046 in the low bits. */
#define TRL_FN_EXP_ROUNDER (TRL_FN_ROUNDER + 2046.0)

typedef struct trl_fn_reduced {
    double n, sum;    /* n + TRL_FN_EXP_ROUNDER */
    double a, low;    /* r = a + low; a is exact, |low| < 2^-45 or that of the argument */
    double r, z;      /* rounded; z = r^2 */
    double even, odd; /* (cosh r - 1)/r^2 - 1/2 and (sinh r - r)/r^3 */
} trl_fn_reduced;

/* Of x + low, |x| < 2^11; to add a low of -0 costs nothing. */
TRL_BODY trl_fn_reduced trl_fn_reduce(double x, double low)
{
    trl_fn_reduced e;
    e.sum = TRL_FN_FMA(x, 0x1.71547652b82fep+0, TRL_FN_EXP_ROUNDER);
    e.n = e.sum - TRL_FN_EXP_ROUNDER;
    e.a = TRL_FN_FMA(e.n, -TRL_FN_LN2_HIGH, x);
    e.low = TRL_FN_FMA(e.n, -TRL_FN_LN2_REST, low);
    e.r = e.a + e.low;
    e.z = e.r * e.r;
    double w = e.z * e.z;
    double even =
        TRL_FN_FMA(w, 2.7625389847583845e-07, TRL_FN_POLY2(e.z, 0.0013888888927217102, 2.480150816179729e-05));
    double odd = TRL_FN_FMA(w, 2.5109329455203552e-08, TRL_FN_POLY2(e.z, 0.0001984126988683029, 2.755724343217568e-06));
    e.even = TRL_FN_FMA(w, even, e.z * 0.04166666666660291);
    e.odd = TRL_FN_FMA(w, odd, TRL_FN_POLY2(e.z, 0.16666666666666677, 0.008333333333321383));
    return e;
}

/* e^r */
TRL_BODY double trl_fn_mantissa(trl_fn_reduced e)
{
    trl_fn_pair s = trl_fn_sum(1.0, e.a);
    return s.hi + TRL_FN_FMA(e.z, TRL_FN_FMA(e.r, e.odd, 0.5) + e.even, s.lo + e.low);
}

/* p * 2^n for |n| <= 1077: by two factors of about 2^(n/2), so that only the last product can overflow or lose bits. */
TRL_BODY double trl_fn_scale(double p, double sum)
{
    trl_fn_word bits = trl_fn_bits(sum), half = (bits << 51) & TRL_FN_EXPONENT;
    return p * trl_fn_double(half) * trl_fn_double((bits << 52) - half);
}

TRL_BODY double trl_fn_exp(double x)
{
    trl_fn_reduced e = trl_fn_reduce(x, -0.0);
    double y = trl_fn_scale(trl_fn_mantissa(e), e.sum);
    y = x > 710.0 ? TRL_FN_INF : y;
    return x < -746.0 ? 0.0 : y;
}

/* 2^n ((1 - 2^-n) + r + ...). 2^-n does not count above 2^64. */
TRL_BODY double trl_fn_expm1(double x)
{
    trl_fn_reduced e = trl_fn_reduce(x, -0.0);
    double limited = e.n < 64.0 ? e.n : 64.0;
    trl_fn_pair a = trl_fn_any_sum(1.0, -trl_fn_power_of_2(TRL_FN_ROUNDER - limited)), b = trl_fn_sum(a.hi, e.a);
    trl_fn_pair half = trl_fn_product(0.5 * e.r, e.r);
    double rounding = (e.a - e.r) + e.low; /* of r */
    trl_fn_pair c = trl_fn_sum(b.hi, half.hi);
    double rest = TRL_FN_FMA(e.z, TRL_FN_FMA(e.r, e.odd, e.even), half.lo + TRL_FN_FMA(e.r, rounding, e.low));
    double p = c.hi + (c.lo + (b.lo + (a.lo + rest)));
    double y = trl_fn_scale(p, e.sum);
    y = x > 710.0 ? TRL_FN_INF : y;
    y = x < -40.0 ? -1.0 : y;
    return x == 0.0 ? x : y;
}

/* ---- Hyperbolic functions. With q = 2^-2n and x = n log 2 + r >= 0,
 *     2 sinh x = 2^n ((1 - q) cosh r + (1 + q) sinh r),    2 cosh x = 2^n ((1 + q) cosh r + (1 - q) sinh r). ---- */

/* q, without what does not count. */
TRL_BODY double trl_fn_square_inverse(double n)
{
    return trl_fn_power_of_2(TRL_FN_ROUNDER - 2.0 * (n < 64.0 ? n : 64.0));
}

TRL_BODY double trl_fn_sinh(double x)
{
    double y = trl_fn_abs(x);
    trl_fn_reduced e = trl_fn_reduce(y, -0.0);
    double q = trl_fn_square_inverse(e.n), a = 1.0 - q, b = 1.0 + q, even = e.z * (0.5 + e.even),
           odd = e.z * e.r * e.odd + e.low;
    double p = trl_fn_scale(0.5 * (a + (e.a * b + (even * a + odd * b))), e.sum);
    return trl_fn_signed(y > 711.0 ? TRL_FN_INF : p, x);
}

TRL_BODY double trl_fn_cosh(double x)
{
    double y = trl_fn_abs(x);
    trl_fn_reduced e = trl_fn_reduce(y, -0.0);
    double q = trl_fn_square_inverse(e.n), a = 1.0 - q, b = 1.0 + q, even = e.z * (0.5 + e.even),
           odd = e.z * e.r * e.odd + e.low;
    double p = trl_fn_scale(0.5 * (b + (e.a * a + (even * b + odd * a))), e.sum);
    return y > 711.0 ? TRL_FN_INF : p;
}

/* The quotient of the two sums; above 22 it is 1. The product of q is exact. */
TRL_BODY double trl_fn_tanh(double x)
{
    double y = trl_fn_abs(x);
    trl_fn_reduced e = trl_fn_reduce(y, -0.0);
    double q = trl_fn_square_inverse(e.n), even = e.z * (0.5 + e.even), odd = e.z * e.r * e.odd + e.low;
    trl_fn_pair a = trl_fn_sum(1.0, -q), n1 = trl_fn_sum(e.a, e.a * q), n2 = trl_fn_sum(a.hi, n1.hi);
    trl_fn_pair b = trl_fn_sum(1.0, q), d1 = trl_fn_sum(e.a, -(e.a * q)), d2 = trl_fn_sum(b.hi, d1.hi);
    trl_fn_pair n = trl_fn_sum(n2.hi, n2.lo + (n1.lo + a.lo + (even * a.hi + odd * b.hi)));
    trl_fn_pair d = trl_fn_sum(d2.hi, d2.lo + (d1.lo + b.lo + (even * b.hi + odd * a.hi)));
    trl_fn_pair t = trl_fn_quotient(n, d);
    double z = t.hi + t.lo;
    return trl_fn_signed(y > 22.0 ? 1.0 : trl_fn_abs(z), x);
}

/* ---- Logarithms. y = 2^k m with sqrt(1/2) <= m < sqrt(2), f = m - 1, s = f/(2 + f), z = s^2:
 *     log(1 + f) = f - f^2/2 + s (f^2/2 + R(z)),    R(z) = (log((1 + s)/(1 - s)) - 2 s)/s
 * (Ng's form, in fdlibm, 1993). R/z has 7 coefficients on z <= 0.02944, 2^-58.9 of 2 s. ---- */

typedef struct trl_fn_split {
    double k, m;
    trl_fn_word exponent; /* k + 1023 in the bits of a double's exponent */
} trl_fn_split;

/* Of a normal number y > 0. */
TRL_BODY trl_fn_split trl_fn_split_normal(double y)
{
    trl_fn_split s;
    trl_fn_word bits = trl_fn_bits(y), shifted = bits + 0x00095f619980c433u; /* bits of 1 less those of sqrt(1/2) */
    s.exponent = shifted & TRL_FN_EXPONENT;
    s.k = trl_fn_double((shifted >> 52) | 0x4330000000000000u) - (0x1p52 + 1023.0);
    s.m = trl_fn_double(bits - s.exponent + 0x3ff0000000000000u);
    return s;
}

TRL_BODY trl_fn_split trl_fn_split_positive(double y)
{
    int small = y < 0x1p-1022;
    double scaled = y * 0x1p54, less = small ? 54.0 : 0.0;
    trl_fn_split s = trl_fn_split_normal(small ? scaled : y);
    s.k -= less;
    return s;
}

/* log(1 + f) + low/(1 + f), not normalised: |lo| < 0.06 |hi|. */
TRL_BODY trl_fn_pair trl_fn_log_mantissa(double f, double low)
{
    double s = f / (2.0 + f), z = s * s;
    double rest = z * TRL_FN_POLY7(z, 0.6666666666666734, 0.39999999999414726, 0.28571428742372174, 0.22222198575151128,
                                   0.18183564208657427, 0.1531405385906966, 0.14795914336809077);
    trl_fn_pair half = trl_fn_product(0.5 * f, f), l = trl_fn_sum(f, -half.hi);
    l.lo = TRL_FN_FMA(s, half.hi + rest, (l.lo - half.lo) + low);
    return l;
}

/* What logarithms of numbers that are not positive and finite are. */
TRL_BODY double trl_fn_log_of(double x, double y)
{
    y = x < TRL_FN_INF ? y : x;
    y = x == 0.0 ? -TRL_FN_INF : y;
    return x < 0.0 ? TRL_FN_NAN : y;
}

TRL_BODY double trl_fn_log(double x)
{
    trl_fn_split s = trl_fn_split_positive(x);
    trl_fn_pair l = trl_fn_log_mantissa(s.m - 1.0, 0.0), t = trl_fn_sum(s.k * TRL_FN_LN2, l.hi);
    return trl_fn_log_of(x, t.hi + (t.lo + (l.lo + s.k * TRL_FN_LN2_LOW)));
}

TRL_BODY double trl_fn_log2(double x)
{
    trl_fn_split s = trl_fn_split_positive(x);
    trl_fn_pair l = trl_fn_log_mantissa(s.m - 1.0, 0.0);
    l = trl_fn_sum(l.hi, l.lo);
    trl_fn_pair p = trl_fn_product(l.hi, 0x1.71547652b82fep+0), t = trl_fn_sum(s.k, p.hi);
    double low = p.lo + (l.lo * 0x1.71547652b82fep+0 + l.hi * 0x1.777d0ffda0d24p-56);
    return trl_fn_log_of(x, t.hi + (t.lo + low));
}

TRL_BODY double trl_fn_log10(double x)
{
    trl_fn_split s = trl_fn_split_positive(x);
    trl_fn_pair l = trl_fn_log_mantissa(s.m - 1.0, 0.0);
    l = trl_fn_sum(l.hi, l.lo);
    trl_fn_pair p = trl_fn_product(l.hi, 0x1.bcb7b1526e50ep-2), t = trl_fn_sum(s.k * 0x1.34413509f78p-2, p.hi);
    double low = p.lo + (l.lo * 0x1.bcb7b1526e50ep-2 + l.hi * 0x1.95355baaafad3p-57);
    return trl_fn_log_of(x, t.hi + (t.lo + (low + s.k * 0x1.fef311f12b358p-46)));
}

/* log(u) + more*log(2) for normal u > 0, the first double of a sum. Where u is near 1 that sum is 1 + v, and v itself
 * is f; elsewhere the sum's rounding error, divided by 1 + f, is added. */
TRL_BODY double trl_fn_log_sum(trl_fn_pair u, double v, double more)
{
    trl_fn_split s = trl_fn_split_normal(u.hi);
    double scaled = u.lo * trl_fn_double(0x7fe0000000000000u - s.exponent), f = s.m - 1.0;
    double low = s.k > 60.0 ? 0.0 : scaled * (1.0 - f * (1.0 - f * (1.0 - f))), k = s.k + more;
    low = s.k == 0.0 ? 0.0 : low;
    f = s.k == 0.0 ? v : f;
    trl_fn_pair l = trl_fn_log_mantissa(f, low), t = trl_fn_sum(k * TRL_FN_LN2, l.hi);
    return t.hi + (t.lo + (l.lo + k * TRL_FN_LN2_LOW));
}

TRL_BODY double trl_fn_log1p(double x)
{
    double y = trl_fn_log_sum(trl_fn_any_sum(1.0, x), x, 0.0);
    y = x == 0.0 ? x : y;
    y = x < TRL_FN_INF ? y : x;
    y = trl_fn_pick(trl_fn_mask(x == -1.0), -TRL_FN_INF, y);
    return trl_fn_pick(trl_fn_mask(x < -1.0), TRL_FN_NAN, y);
}

/* log(1 + v); log(2 a) if a is so large that nothing else counts. */
TRL_BODY double trl_fn_log_large(double a, double v)
{
    trl_fn_pair u = trl_fn_any_sum(1.0, v);
    double more = a > 0x1p28 ? 1.0 : 0.0;
    u.hi = a > 0x1p28 ? a : u.hi;
    u.lo = a > 0x1p28 ? 0.0 : u.lo;
    return trl_fn_log_sum(u, v, more);
}

/* log1p(a + a^2/(1 + sqrt(1 + a^2))) */
TRL_BODY double trl_fn_asinh(double x)
{
    double a = trl_fn_abs(x), square = a * a, root = TRL_FN_SQRT(1.0 + square);
    double y = trl_fn_log_large(a, a + square / (1.0 + root));
    y = a == 0.0 ? a : y;
    return trl_fn_signed(a < TRL_FN_INF ? y : a, x);
}

/* log1p(t + sqrt(2 t + t^2)) with t = x - 1 */
TRL_BODY double trl_fn_acosh(double x)
{
    double t = x - 1.0, root = TRL_FN_SQRT(t * (2.0 + t));
    double y = trl_fn_log_large(x, t + root);
    y = x < TRL_FN_INF ? y : x;
    return x < 1.0 ? TRL_FN_NAN : y;
}

TRL_BODY double trl_fn_atanh(double x)
{
    double a = trl_fn_abs(x), v = (a + a) / (1.0 - a);
    double y = 0.5 * trl_fn_log_sum(trl_fn_any_sum(1.0, v), v, 0.0);
    y = a == 0.0 ? a : y;
    y = a < 1.0 ? y : TRL_FN_NAN;
    return trl_fn_signed(a == 1.0 ? TRL_FN_INF : y, x);
}

/* ---- Powers: e^(y log x) with the logarithm and its product in two doubles. log m = 2 s + 2/3 s^3 + s^5 Q(s^2), s in
 * two doubles; Q has 8 coefficients on s^2 <= 0.02944, 2^-73.4 of 2 s. ---- */

TRL_BODY trl_fn_pair trl_fn_log_pair(trl_fn_split x)
{
    double f = x.m - 1.0;
    trl_fn_pair d = trl_fn_sum(1.0, x.m), s;
    double inverse = 1.0 / d.hi;
    s.hi = f * inverse;
    s.lo = TRL_FN_FMA(-s.hi, d.lo, TRL_FN_FMA(-s.hi, d.hi, f)) * inverse;
    trl_fn_pair z = trl_fn_product(s.hi, s.hi);
    z.lo += 2.0 * (s.hi * s.lo);
    trl_fn_pair cube = trl_fn_product(s.hi, z.hi);
    cube.lo += s.hi * z.lo + s.lo * z.hi;
    trl_fn_pair third = trl_fn_product(cube.hi, 0x1.5555555555555p-1);
    third.lo += cube.hi * 0x1.5555555555555p-55 + cube.lo * 0x1.5555555555555p-1;
    double rest = cube.hi * z.hi *
                  TRL_FN_POLY8(z.hi, 0.3999999999999998, 0.2857142857144384, 0.2222222221778969, 0.18181818844003064,
                               0.15384558427705783, 0.13336264533485892, 0.11675780002787077, 0.11981759082981631);
    trl_fn_pair a = trl_fn_sum(2.0 * s.hi, third.hi), b = trl_fn_sum(x.k * TRL_FN_LN2, a.hi);
    return trl_fn_sum(b.hi, b.lo + (a.lo + (2.0 * s.lo + third.lo + rest) + x.k * TRL_FN_LN2_LOW));
}

TRL_BODY double trl_fn_clip(double x, double low, double high)
{
    double y = x > high ? high : x;
    return y < low ? low : y;
}

/* a^y for a > 0. y beyond 2^65 gives 0, 1 or infinity as 2^65 does. */
TRL_BODY double trl_fn_pow_positive(double a, double y)
{
    double limited = trl_fn_clip(y, -0x1p65, 0x1p65);
    trl_fn_pair l = trl_fn_log_pair(trl_fn_split_positive(a)), p = trl_fn_product(limited, l.hi);
    trl_fn_reduced e = trl_fn_reduce(p.hi, p.lo + limited * l.lo);
    double r = trl_fn_scale(trl_fn_mantissa(e), e.sum);
    r = p.hi > 710.0 ? TRL_FN_INF : r;
    return p.hi < -746.0 ? 0.0 : r;
}

/* An exponent that is odd gives the result the sign of x. */
TRL_BODY double trl_fn_pow(double x, double y)
{
    double a = trl_fn_abs(x), b = trl_fn_abs(y), r = trl_fn_pow_positive(a, y);
    double of_zero = y < 0.0 ? TRL_FN_INF : 0.0, of_infinity = y < 0.0 ? 0.0 : TRL_FN_INF;
    trl_fn_word whole = trl_fn_mask(trl_fn_even(b) == b), halves = trl_fn_mask(trl_fn_even(0.5 * b) == 0.5 * b);
    trl_fn_word odd = whole & ~halves & trl_fn_mask(b < 0x1p53);
    trl_fn_word undefined = trl_fn_mask(x < 0.0) & trl_fn_mask(a < TRL_FN_INF) & ~whole;
    r = a == 0.0 ? of_zero : r;
    r = a == TRL_FN_INF ? of_infinity : r;
    r = trl_fn_double(trl_fn_bits(r) | (trl_fn_bits(x) & TRL_FN_SIGN & odd));
    r = trl_fn_pick(undefined | trl_fn_mask(x != x) | trl_fn_mask(y != y), TRL_FN_NAN, r);
    return trl_fn_pick(trl_fn_mask(x == 1.0) | trl_fn_mask(y == 0.0), 1.0, r);
}

/* ---- Error functions. erf(x)/x - 1 below 1: 12 coefficients in x^2, 2^-55.3 of erf. Elsewhere
 * (1 + 2 x) e^(x^2) erfc(x) as a polynomial in (x - 4)/(x + 4): 22 coefficients for x in [0.45, 27.4], 2^-54.1 (the
 * variable is that of Shepherd and Laframboise, "Chebyshev approximation of (1 + 2x)exp(x^2)erfc x", 1981). ---- */

TRL_BODY double trl_fn_erf_small(double x)
{
    double z = x * x;
    double p =
        TRL_FN_POLY12(z, 0.12837916709551256, -0.3761263890318352, 0.11283791670944185, -0.026866170643111496,
                      0.005223977606118922, -0.0008548325929336299, 0.00012055293577455808, -1.4924712310186702e-05,
                      1.6447131641426401e-06, -1.6206314084657946e-07, 1.3710981039192277e-08, -7.77946852645613e-10);
    return x + x * p;
}

/* erfc of x >= 0.45; above 27.3 it is 0. */
TRL_BODY double trl_fn_erfc_large(double x)
{
    double y = x > 27.3 ? 27.3 : x, t = (y - 4.0) / (y + 4.0), top = trl_fn_top(y);
    double high =
        TRL_FN_POLY11(t, -0.00019925677625606396, 0.00015062254923515496, -2.4398784383538542e-05,
                      -1.1224861719757754e-05, 5.7082455633382025e-06, 2.9974281656837235e-07, -8.22078575107962e-07,
                      6.688016725526766e-08, 1.0535802650467491e-07, -1.2176799631772496e-08, -1.038564539113859e-08);
    double p = TRL_FN_POLY12(t, 1.2329951186255526, -0.1396211168405625, 0.015379652102618895, 0.06809705425469205,
                             -0.10103906603624575, 0.09373283499838096, -0.06633036581379145, 0.03716751553673839,
                             -0.016197734036144284, 0.005031969987949005, -0.0007577734624999555, high);
    trl_fn_reduced e = trl_fn_reduce(-(top * top), -((y - top) * (y + top)));
    return trl_fn_scale(trl_fn_mantissa(e) * (p / (1.0 + 2.0 * y)), e.sum);
}

TRL_BODY double trl_fn_erf(double x)
{
    double a = trl_fn_abs(x), small = trl_fn_erf_small(a), large = 1.0 - trl_fn_erfc_large(a);
    return trl_fn_signed(a < 1.0 ? small : large, x);
}

TRL_BODY double trl_fn_erfc(double x)
{
    double a = trl_fn_abs(x), small = 1.0 - trl_fn_erf_small(x), large = trl_fn_erfc_large(a), other = 2.0 - large;
    double far = x < 0.0 ? other : large;
    return a < 0.5 ? small : far;
}

#endif
