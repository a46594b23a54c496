/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Part of trl_functions_body.h: trigonometric functions and their inverses. */
#ifndef TRL_FUNCTIONS_ANGLE_BODY_H
#define TRL_FUNCTIONS_ANGLE_BODY_H

#define TRL_FN_PI_2 0x1.921fb54442d18p+0
#define TRL_FN_PI_2_LOW 0x1.1a62633145c07p-54

/* ---- Sine, cosine, tangent. x = n pi/2 + r with |r| <= pi/4, r in two doubles. Up to TRL_FN_NEAR the reduction
 * subtracts n times the parts of pi/2 (Cody and Waite), of which three have 33 bits, so that products are exact:
 * trl_fn_sin_near, trl_fn_cos_near and trl_fn_tan_near have no branches. trl_fn_sin and so on have one, to the
 * reduction of Payne and Hanek
 * ("Radian reduction for trigonometric functions", 1983), which multiplies the bits of 2/pi that matter. ---- */

#define TRL_FN_NEAR 0x1p20

TRL_BODY int trl_fn_sin_is_near(double x)
{
    return trl_fn_abs(x) <= TRL_FN_NEAR;
}

TRL_BODY int trl_fn_cos_is_near(double x)
{
    return trl_fn_sin_is_near(x);
}

TRL_BODY int trl_fn_tan_is_near(double x)
{
    return trl_fn_sin_is_near(x);
}

typedef struct trl_fn_angle {
    double r, low;
    trl_fn_word quadrant; /* n modulo 4, in the last two bits */
} trl_fn_angle;

TRL_BODY trl_fn_angle trl_fn_angle_near(double x)
{
    trl_fn_angle g;
    double sum = x * 0x1.45f306dc9c883p-1 + TRL_FN_ROUNDER, n = sum - TRL_FN_ROUNDER;
    trl_fn_pair a = trl_fn_any_sum(x - n * 0x1.921fb544p+0, -(n * 0x1.0b4611a6p-34));
    trl_fn_pair b = trl_fn_any_sum(a.hi, -(n * 0x1.3198a2ep-69));
    trl_fn_pair c = trl_fn_sum(b.hi, (a.lo + b.lo) - n * 0x1.b839a252049c1p-104);
    g.r = c.hi;
    g.low = c.lo;
    g.quadrant = trl_fn_bits(sum);
    return g;
}

TRL_BODY trl_fn_word trl_fn_high_product(trl_fn_word a, trl_fn_word b)
{
    trl_fn_word a0 = a & 0xffffffffu, a1 = a >> 32, b0 = b & 0xffffffffu, b1 = b >> 32;
    trl_fn_word middle = a1 * b0 + ((a0 * b0) >> 32), other = a0 * b1 + (middle & 0xffffffffu);
    return a1 * b1 + (middle >> 32) + (other >> 32);
}

/* The fraction of w[0] w[1] w[2], a binary number in [0, 1), in two doubles. */
TRL_BODY trl_fn_pair trl_fn_fraction(const trl_fn_word w[3])
{
    trl_fn_pair f = {0.0, 0.0};
    double unit = 0x1p-32;
    for (int i = 0; i < 6; ++i) {
        double piece = (double)(w[i / 2] >> (i % 2 ? 0 : 32) & 0xffffffffu) * unit;
        f = trl_fn_sum(f.hi, f.lo + piece);
        unit *= 0x1p-32;
    }
    return f;
}

/* For finite |x| > TRL_FN_NEAR. |x| = M 2^e with M of 53 bits; of 2/pi the 192 bits count whose product with M 2^e is
 * less than 4, but not negligible even where r is as small as it can be, 2^-62. */
TRL_BODY trl_fn_angle trl_fn_angle_far(double x)
{
    /* 64 zeros, then the bits of 2/pi */
    static const trl_fn_word inverse[20] = {
        0x0000000000000000u, 0xa2f9836e4e441529u, 0xfc2757d1f534ddc0u, 0xdb6295993c439041u, 0xfe5163abdebbc561u,
        0xb7246e3a424dd2e0u, 0x06492eea09d1921cu, 0xfe1deb1cb129a73eu, 0xe88235f52ebb4484u, 0xe99c7026b45f7e41u,
        0x3991d639835339f4u, 0x9c845f8bbdf9283bu, 0x1ff897ffde05980fu, 0xef2f118b5a0a6d1fu, 0x6d367ecf27cb09b7u,
        0x4f463f669e5fea2du, 0x7527bac7ebe5f17bu, 0x3d0739f78a5292eau, 0x6bfb5fb11f8d5d08u, 0x56033046fc7b6babu};
    trl_fn_word bits = trl_fn_bits(x) & ~TRL_FN_SIGN, m = (bits & ~TRL_FN_EXPONENT) | 0x0010000000000000u, w[3], p[3];
    int first = (int)(bits >> 52) - 1023 - 52 - 2 + 64, word = first / 64, shift = first % 64;
    for (int i = 0; i < 3; ++i) w[i] = inverse[word + i] << shift | inverse[word + i + 1] >> 1 >> (63 - shift);
    p[2] = m * w[2];
    p[1] = m * w[1] + trl_fn_high_product(m, w[2]);
    p[0] = m * w[0] + trl_fn_high_product(m, w[1]) + (p[1] < m * w[1] ? 1 : 0);
    trl_fn_word quadrant = p[0] >> 62;
    p[0] = p[0] << 2 | p[1] >> 62;
    p[1] = p[1] << 2 | p[2] >> 62;
    p[2] = p[2] << 2;
    int up = (int)(p[0] >> 63), minus = up != (x < 0.0); /* the nearer multiple is the next one */
    if (up) {
        p[2] = 0 - p[2];
        p[1] = ~p[1] + (p[2] == 0 ? 1 : 0);
        p[0] = ~p[0] + (p[2] == 0 && p[1] == 0 ? 1 : 0);
        ++quadrant;
    }
    trl_fn_pair f = trl_fn_fraction(p), r = trl_fn_product(f.hi, TRL_FN_PI_2);
    r = trl_fn_sum(r.hi, r.lo + (f.hi * TRL_FN_PI_2_LOW + f.lo * TRL_FN_PI_2));
    trl_fn_angle g = {minus ? -r.hi : r.hi, minus ? -r.lo : r.lo, x < 0.0 ? 0 - quadrant : quadrant};
    return g;
}

TRL_BODY trl_fn_angle trl_fn_angle_of(double x)
{
    if (trl_fn_sin_is_near(x) || !(trl_fn_abs(x) < TRL_FN_INF)) return trl_fn_angle_near(x);
    return trl_fn_angle_far(x);
}

/* (sin r - r)/r^3 and (cos r - 1 + r^2/2)/r^4: 6 coefficients each in r^2 <= 0.6169, 2^-57.7 and 2^-63.9 of the
 * results. */
TRL_BODY trl_fn_pair trl_fn_sin_pair(trl_fn_angle g)
{
    double z = g.r * g.r;
    double p = TRL_FN_POLY6(z, -0.1666666666666663, 0.008333333333321844, -0.00019841269829362615,
                            2.7557313540225105e-06, -2.50507348018021e-08, 1.5895472212426424e-10);
    trl_fn_pair s = {g.r, TRL_FN_FMA(g.r * z, p, TRL_FN_FMA(-0.5 * z, g.low, g.low))};
    return s;
}

TRL_BODY trl_fn_pair trl_fn_cos_pair(trl_fn_angle g)
{
    double z = g.r * g.r;
    trl_fn_pair half = trl_fn_product(0.5 * g.r, g.r);
    double p = TRL_FN_POLY6(z, 0.041666666666666595, -0.0013888888888873342, 2.4801587289002252e-05,
                            -2.7557314217161823e-07, 2.087570542340026e-09, -1.1358751162679918e-11);
    trl_fn_pair c = trl_fn_sum(1.0, -half.hi);
    c.lo = (c.lo - half.lo) + TRL_FN_FMA(z * z, p, -(g.r * g.low));
    return c;
}

TRL_BODY double trl_fn_sin_angle(trl_fn_angle g, trl_fn_word quadrant)
{
    trl_fn_pair s = trl_fn_sin_pair(g), c = trl_fn_cos_pair(g);
    double value = trl_fn_pick(trl_fn_odd_mask(quadrant), c.hi + c.lo, s.hi + s.lo);
    return trl_fn_double(trl_fn_bits(value) ^ (quadrant & 2) << 62);
}

TRL_BODY double trl_fn_tan_angle(trl_fn_angle g)
{
    trl_fn_pair s = trl_fn_sin_pair(g), c = trl_fn_cos_pair(g), n, d;
    s = trl_fn_sum(s.hi, s.lo);
    c = trl_fn_sum(c.hi, c.lo);
    trl_fn_word odd = trl_fn_odd_mask(g.quadrant);
    n.hi = trl_fn_pick(odd, c.hi, s.hi);
    n.lo = trl_fn_pick(odd, c.lo, s.lo);
    d.hi = trl_fn_pick(odd, -s.hi, c.hi);
    d.lo = trl_fn_pick(odd, -s.lo, c.lo);
    trl_fn_pair t = trl_fn_quotient(n, d);
    return t.hi + t.lo;
}

TRL_BODY double trl_fn_sin_near(double x)
{
    trl_fn_angle g = trl_fn_angle_near(x);
    double y = trl_fn_sin_angle(g, g.quadrant);
    return x == 0.0 ? x : y;
}

TRL_BODY double trl_fn_cos_near(double x)
{
    trl_fn_angle g = trl_fn_angle_near(x);
    return trl_fn_sin_angle(g, g.quadrant + 1);
}

TRL_BODY double trl_fn_tan_near(double x)
{
    double y = trl_fn_tan_angle(trl_fn_angle_near(x));
    return x == 0.0 ? x : y;
}

TRL_BODY double trl_fn_sin(double x)
{
    trl_fn_angle g = trl_fn_angle_of(x);
    double y = trl_fn_sin_angle(g, g.quadrant);
    return x == 0.0 ? x : y;
}

TRL_BODY double trl_fn_cos(double x)
{
    trl_fn_angle g = trl_fn_angle_of(x);
    return trl_fn_sin_angle(g, g.quadrant + 1);
}

TRL_BODY double trl_fn_tan(double x)
{
    double y = trl_fn_tan_angle(trl_fn_angle_of(x));
    return x == 0.0 ? x : y;
}

/* ---- Arc tangents. The angle of (x, y) in the first quadrant, from pi/8 to 3 pi/8 by its difference from pi/4, beyond
 * that from pi/2; the tangent u of what is left is at most sqrt(2) - 1. (atan u - u)/u^3 has 11 coefficients in u^2,
 * 2^-59.4. ---- */

/* Of x, y >= 0, not both 0, whose sum does not overflow. */
TRL_BODY trl_fn_pair trl_fn_atan_quotient(double y, double x)
{
    trl_fn_word low = trl_fn_mask(y <= 0x1.a827999fcef32p-2 * x), high = trl_fn_mask(y * 0x1.a827999fcef32p-2 > x);
    trl_fn_pair n = trl_fn_any_sum(y, -x), d = trl_fn_any_sum(x, y);
    n.hi = trl_fn_pick(low, y, trl_fn_pick(high, -x, n.hi));
    n.lo = trl_fn_pick(low | high, 0.0, n.lo);
    d.hi = trl_fn_pick(low, x, trl_fn_pick(high, y, d.hi));
    d.lo = trl_fn_pick(low | high, 0.0, d.lo);
    double base = trl_fn_pick(low, 0.0, trl_fn_pick(high, TRL_FN_PI_2, 0.5 * TRL_FN_PI_2));
    double base_low = trl_fn_pick(low, 0.0, trl_fn_pick(high, TRL_FN_PI_2_LOW, 0.5 * TRL_FN_PI_2_LOW));
    trl_fn_pair u = trl_fn_quotient(n, d), s = trl_fn_sum(base, u.hi);
    double z = u.hi * u.hi;
    double p = TRL_FN_POLY11(z, -0.333333333333332, 0.19999999999953674, -0.1428571428019958, 0.1111111078349053,
                             -0.09090897757402554, 0.07692060207592166, -0.06663104059419411, 0.058478904377758864,
                             -0.05039315385937646, 0.03806498336145443, -0.017907841214060694);
    s.lo += base_low + (u.hi * z * p + (u.lo - z * u.lo));
    return s;
}

TRL_BODY double trl_fn_atan(double x)
{
    double a = trl_fn_abs(x);
    trl_fn_pair s = trl_fn_atan_quotient(a > 0x1p60 ? 0x1p60 : a, 1.0); /* beyond it is pi/2 */
    return trl_fn_signed(s.hi + s.lo, x);
}

TRL_BODY double trl_fn_atan2(double y, double x)
{
    double a = trl_fn_abs(x), b = trl_fn_abs(y), most = a > b ? a : b;
    double scale = most > 0x1p500 ? 0x1p-200 : 0x1p300;
    trl_fn_word finite = trl_fn_mask(most < TRL_FN_INF), zero = trl_fn_mask(most == 0.0);
    double c = trl_fn_pick(finite, trl_fn_pick(zero, 1.0, a * scale), a < TRL_FN_INF ? 0.0 : 1.0);
    double d = trl_fn_pick(finite, b * scale, b < TRL_FN_INF ? 0.0 : 1.0);
    trl_fn_pair s = trl_fn_atan_quotient(d, c), t = trl_fn_sum(2.0 * TRL_FN_PI_2, -s.hi);
    double right = s.hi + s.lo, left = t.hi + (t.lo + (2.0 * TRL_FN_PI_2_LOW - s.lo));
    double angle = trl_fn_signed(trl_fn_signed(1.0, x) < 0.0 ? left : right, y);
    return trl_fn_pick(trl_fn_mask(x != x) | trl_fn_mask(y != y), TRL_FN_NAN, angle);
}

/* ---- Arc sine and cosine. asin s = s + s z P(z), z = s^2 <= 1/4: 13 coefficients, 2^-59.1; from |x| = 1/2 on by
 * acos x = 2 asin(sqrt((1 - x)/2)). ---- */

TRL_BODY double trl_fn_asin_rest(double z)
{
    return z * TRL_FN_POLY13(z, 0.1666666666666676, 0.07499999999970787, 0.04464285717462261, 0.030381942707333416,
                             0.022372214998913117, 0.0173516118329181, 0.013980822484354742, 0.011398898051777663,
                             0.010780323829328692, 0.0037061691270295397, 0.02170796582680579, -0.020999712163468846,
                             0.032628980695489994);
}

TRL_BODY double trl_fn_asin(double x)
{
    double a = trl_fn_abs(x), large = (1.0 - a) * 0.5, small = a * a, root = TRL_FN_SQRT(large);
    double s = a > 0.5 ? root : a, p = trl_fn_asin_rest(a > 0.5 ? large : small), w = s + s * p;
    double other = TRL_FN_PI_2 - (2.0 * w - TRL_FN_PI_2_LOW);
    return trl_fn_signed(a > 0.5 ? other : w, x);
}

TRL_BODY double trl_fn_acos(double x)
{
    double a = trl_fn_abs(x), large = (1.0 - a) * 0.5, small = a * a, root = TRL_FN_SQRT(large);
    double s = a > 0.5 ? root : x, sp = s * trl_fn_asin_rest(a > 0.5 ? large : small), twice = 2.0 * (s + sp);
    double middle = TRL_FN_PI_2 - (s - (TRL_FN_PI_2_LOW - sp));
    double left = 2.0 * TRL_FN_PI_2 - (twice - 2.0 * TRL_FN_PI_2_LOW);
    double far = x < 0.0 ? left : twice;
    return a > 0.5 ? far : middle;
}

#endif
