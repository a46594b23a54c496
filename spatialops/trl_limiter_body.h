/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Limited reconstruction of face values from upwind-biased points, for C and CUDA compilers alike. No branches, no
 * includes; IEEE + - * / and comparisons only, so that every compiler gives the same bits with contraction off.
 *
 * With the values fu (far upwind), fc (upwind) and fd (downwind) of a face between fc and fd,
 *     face = fc + psi(r)/2 * (fd - fc),    r = (fc - fu)/(fd - fc).
 * psi(r)*(fd - fc) is written as sign * trl_limiter_slope_*(p, q) with q = |fd - fc| and p = r*q where r > 0, and is 0
 * where p is not positive. Each slope is homogeneous of degree 1 and zero where q is zero: nothing is divided by fd -
 * fc, and face = fc exactly where fd = fc or fc is an extremum. NaN in any of the three values that a limiter reads
 * gives NaN. The slope is chosen after it is computed: with p chosen before, gcc 13 turns minmod into branches and off
 * vectors.
 *
 * Sources write koren, charm and smart as functions of 1/r and of fc - fu as the slope; below they are in the r of
 * this file. Every face value lies between fc and fd; all but charm and smart, which allow psi up to 3r and 4r, are in
 * Sweby's region psi <= min(2r, 2), too.
 *
 * LeVeque, "Finite Volume Methods for Hyperbolic Problems", 2002, sec. 6.11-6.12 (minmod, superbee, mc, van Leer).
 * Koren, "A robust upwind discretization method for advection, diffusion and source terms", 1993 (koren).
 * Zhou, "Numerical modelling of turbulent combustion flows", thesis, 1995 (charm).
 * Waterson and Deconinck, "A unified approach to the design and application of bounded higher-order convection
 * schemes", 1995 (ospre; the survey of all of these). Gaskell and Lau, "Curvature-compensated convective transport:
 * SMART", 1988 (smart). */
#ifndef TRL_LIMITER_BODY_H
#define TRL_LIMITER_BODY_H

/* Qualifiers of every function here; CUDA code defines it as `static __device__ __forceinline__` before it includes
 * this file. */
#ifndef TRL_BODY
#define TRL_BODY static inline __attribute__((always_inline))
#endif

/* X(NAME, name in formulas and of the functions, psi(r) for r > 0). */
#define TRL_LIMITER_LIST(X)                              \
    X(UPWIND, upwind, "0")                               \
    X(MINMOD, minmod, "min(1, r)")                       \
    X(VANLEER, vanleer, "2*r/(1 + r)")                   \
    X(SUPERBEE, superbee, "max(min(2*r, 1), min(r, 2))") \
    X(MC, mc, "min(2*r, (1 + r)/2, 2)")                  \
    X(KOREN, koren, "min(2*r, (2 + r)/3, 2)")            \
    X(CHARM, charm, "r*(r + 3)/(1 + r)^2")               \
    X(OSPRE, ospre, "1.5*r*(1 + r)/(1 + r + r^2)")       \
    X(SMART, smart, "min(4*r, (3 + r)/4, 2)")

typedef enum trl_limiter {
#define TRL_LIMITER_ENUM(NAME, name, psi) TRL_LIMITER_##NAME,
    TRL_LIMITER_LIST(TRL_LIMITER_ENUM)
#undef TRL_LIMITER_ENUM
        TRL_LIMITER_COUNT
} trl_limiter;

/* The first argument where one is NaN. */
TRL_BODY double trl_limiter_min(double a, double b)
{
    return b < a ? b : a;
}

TRL_BODY double trl_limiter_max(double a, double b)
{
    return b > a ? b : a;
}

/* p/(p + q), a number in [0, 1]; 0 where both are zero. Free of the overflow and underflow of p*q. */
TRL_BODY double trl_limiter_share(double p, double q)
{
    double whole = p + q;
    return p / (whole == 0.0 ? 1.0 : whole);
}

TRL_BODY double trl_limiter_slope_minmod(double p, double q)
{
    return trl_limiter_min(p, q);
}

TRL_BODY double trl_limiter_slope_vanleer(double p, double q)
{
    return 2.0 * (p * trl_limiter_share(q, p));
}

TRL_BODY double trl_limiter_slope_superbee(double p, double q)
{
    return trl_limiter_max(trl_limiter_min(2.0 * p, q), trl_limiter_min(p, 2.0 * q));
}

TRL_BODY double trl_limiter_slope_mc(double p, double q)
{
    return trl_limiter_min(trl_limiter_min(2.0 * p, 2.0 * q), 0.5 * (p + q));
}

TRL_BODY double trl_limiter_slope_koren(double p, double q)
{
    return trl_limiter_min(trl_limiter_min(2.0 * p, 2.0 * q), (2.0 * q + p) / 3.0);
}

TRL_BODY double trl_limiter_slope_charm(double p, double q)
{
    double c = trl_limiter_share(p, q), d = trl_limiter_share(q, p);
    return p * d * (3.0 * d + c);
}

TRL_BODY double trl_limiter_slope_ospre(double p, double q)
{
    double c = trl_limiter_share(p, q), d = trl_limiter_share(q, p);
    return 1.5 * (p * d) / (1.0 - c * d);
}

TRL_BODY double trl_limiter_slope_smart(double p, double q)
{
    return trl_limiter_min(trl_limiter_min(4.0 * p, 2.0 * q), 0.25 * (3.0 * q + p));
}

TRL_BODY double trl_limiter_face_upwind(double fu, double fc, double fd)
{
    (void)fu;
    (void)fd;
    return fc;
}

/* trl_limiter_face_NAME(fu, fc, fd) for all the others. */
#define TRL_LIMITER_FACE(name)                                                     \
    TRL_BODY double trl_limiter_face_##name(double fu, double fc, double fd)       \
    {                                                                              \
        double down = fd - fc;                                                     \
        double sign = down < 0.0 ? -1.0 : down > 0.0 ? 1.0 : down; /* NaN stays */ \
        double p = sign * (fc - fu);                                               \
        double slope = trl_limiter_slope_##name(p, sign * down);                   \
        return fc + 0.5 * (sign * (p <= 0.0 ? 0.0 : slope));                       \
    }
TRL_LIMITER_FACE(minmod)
TRL_LIMITER_FACE(vanleer)
TRL_LIMITER_FACE(superbee)
TRL_LIMITER_FACE(mc)
TRL_LIMITER_FACE(koren)
TRL_LIMITER_FACE(charm)
TRL_LIMITER_FACE(ospre)
TRL_LIMITER_FACE(smart)
#undef TRL_LIMITER_FACE

/* The face value of a limiter chosen at run time. */
TRL_BODY double trl_limiter_face(trl_limiter limiter, double fu, double fc, double fd)
{
    switch (limiter) {
#define TRL_LIMITER_CASE(NAME, name, psi) \
    case TRL_LIMITER_##NAME:              \
        return trl_limiter_face_##name(fu, fc, fd);
        TRL_LIMITER_LIST(TRL_LIMITER_CASE)
#undef TRL_LIMITER_CASE
    default:
        return fc;
    }
}

#endif
