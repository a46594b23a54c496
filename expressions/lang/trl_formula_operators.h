/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The operators of the formula language. */
#ifndef TRL_FORMULA_OPERATORS_H
#define TRL_FORMULA_OPERATORS_H

#include <trl_operator.h>

#ifdef __cplusplus
extern "C" {
#endif

/* X(NAME, name, least, most, family, kind, axis, signature, doc)
 *   least, most   number of arguments
 *   family        operators that one function lowers
 *   kind, axis    the linear operator that a call applies, and its axis; TRL_OPERATOR_KINDS: none */
#define TRL_FORMULA_OPERATOR_LIST(X)                                                                            \
    X(GRAD, grad, 1, 1, grad, TRL_GRADIENT, 0, "grad(s)",                                                       \
      "gradient: component a at s's location with bit a flipped; second order")                                 \
    X(DIV, div, 1, 1, div, TRL_DIV, 0, "div(v)", "divergence of a vector of face values; second order")         \
    X(LAPLACIAN, laplacian, 1, 1, laplacian, TRL_LAPLACIAN, 0, "laplacian(s)",                                  \
      "sum of second derivatives, at s's location; second order")                                               \
    X(CURL, curl, 1, 1, curl, TRL_CURL, 0, "curl(v)",                                                           \
      "curl: faces to edges, edges to faces; in 2-D a face vector to the scalar at zedge")                      \
    X(STRAIN, strain, 1, 2, strain, TRL_GRADIENT, 0, "strain(v[, axis])",                                       \
      "strain rate S of a vector on faces: sqrt(2 S:S) at cells; with an axis that row of S, a vector")         \
    X(DDX, ddx, 1, 1, along_axis, TRL_GRADIENT, 0, "ddx(s)",                                                    \
      "derivative along x; flips that bit of the location; second order")                                       \
    X(DDY, ddy, 1, 1, along_axis, TRL_GRADIENT, 1, "ddy(s)",                                                    \
      "derivative along y; flips that bit of the location; second order")                                       \
    X(DDZ, ddz, 1, 1, along_axis, TRL_GRADIENT, 2, "ddz(s)",                                                    \
      "derivative along z; flips that bit of the location; second order")                                       \
    X(D2DX, d2dx, 1, 1, along_axis, TRL_SECOND, 0, "d2dx(s)",                                                   \
      "second derivative along x, at s's location; second order")                                               \
    X(D2DY, d2dy, 1, 1, along_axis, TRL_SECOND, 1, "d2dy(s)",                                                   \
      "second derivative along y, at s's location; second order")                                               \
    X(D2DZ, d2dz, 1, 1, along_axis, TRL_SECOND, 2, "d2dz(s)",                                                   \
      "second derivative along z, at s's location; second order")                                               \
    X(CDDX, cddx, 1, 1, along_axis, TRL_CENTRAL_GRADIENT, 0, "cddx(s)",                                         \
      "difference of the two neighbours along x over twice the spacing, at s's location; second order")         \
    X(CDDY, cddy, 1, 1, along_axis, TRL_CENTRAL_GRADIENT, 1, "cddy(s)",                                         \
      "difference of the two neighbours along y over twice the spacing, at s's location; second order")         \
    X(CDDZ, cddz, 1, 1, along_axis, TRL_CENTRAL_GRADIENT, 2, "cddz(s)",                                         \
      "difference of the two neighbours along z over twice the spacing, at s's location; second order")         \
    X(CMEANX, cmeanx, 1, 1, along_axis, TRL_CENTRAL_INTERPOLANT, 0, "cmeanx(s)",                                \
      "mean of the two neighbours along x, at s's location; second order")                                      \
    X(CMEANY, cmeany, 1, 1, along_axis, TRL_CENTRAL_INTERPOLANT, 1, "cmeany(s)",                                \
      "mean of the two neighbours along y, at s's location; second order")                                      \
    X(CMEANZ, cmeanz, 1, 1, along_axis, TRL_CENTRAL_INTERPOLANT, 2, "cmeanz(s)",                                \
      "mean of the two neighbours along z, at s's location; second order")                                      \
    X(AT, at, 2, 2, interpolation, TRL_INTERPOLANT, 0, "at(f, L)",                                              \
      "linear interpolation to a location, or to `faces`")                                                      \
    X(HARMONIC, harmonic, 2, 2, interpolation, TRL_OPERATOR_KINDS, 0, "harmonic(s, L)",                         \
      "harmonic mean 2ab/(a+b) of the points on both sides; 0 where a+b = 0")                                   \
    X(LEFT, left, 1, 2, reconstruction, TRL_OPERATOR_KINDS, 0, "left(s[, limiter])",                            \
      "face values reconstructed from the minus side")                                                          \
    X(RIGHT, right, 1, 2, reconstruction, TRL_OPERATOR_KINDS, 0, "right(s[, limiter])",                         \
      "face values reconstructed from the plus side")                                                           \
    X(ADVECTIVE_FLUX, advective_flux, 2, 3, advective_flux, TRL_OPERATOR_KINDS, 0,                              \
      "advective_flux(phi, u[, limiter])",                                                                      \
      "u*phi at faces: central, or upwind minmod vanleer superbee mc koren charm ospre smart")                  \
    X(DOT, dot, 2, 2, product_of_vectors, TRL_OPERATOR_KINDS, 0, "dot(v, w)",                                   \
      "scalar product; all components at one location")                                                         \
    X(CROSS, cross, 2, 2, product_of_vectors, TRL_OPERATOR_KINDS, 0, "cross(v, w)",                             \
      "vector product in 3-D; all components at one location")                                                  \
    X(MAG, mag, 1, 1, product_of_vectors, TRL_OPERATOR_KINDS, 0, "mag(v)",                                      \
      "length of a vector; all components at one location")                                                     \
    X(INTEGRAL, integral, 1, 1, reduction, TRL_OPERATOR_KINDS, 0, "integral(s)",                                \
      "integral over the domain: each point with its volume")                                                   \
    X(NORM, norm, 1, 1, reduction, TRL_OPERATOR_KINDS, 0, "norm(s)", "sqrt(integral(s^2)/V)")                   \
    X(DOMAIN_MAX, domain_max, 1, 1, reduction, TRL_OPERATOR_KINDS, 0, "domain_max(s)",                          \
      "largest value over the domain")                                                                          \
    X(DOMAIN_MIN, domain_min, 1, 1, reduction, TRL_OPERATOR_KINDS, 0, "domain_min(s)",                          \
      "smallest value over the domain")                                                                         \
    X(PROBE, probe, 2, 2, probe, TRL_OPERATOR_KINDS, 0, "probe(s, [x, y, z])",                                  \
      "value at a point, by linear interpolation")                                                              \
    X(OLD, old, 1, 1, old, TRL_OPERATOR_KINDS, 0, "old(f)", "f from the values at the start of the step")       \
    X(DDT, ddt, 1, 1, ddt, TRL_OPERATOR_KINDS, 0, "ddt(f)", "present time derivative of an equation's unknown") \
    X(RANDOM, random, 1, 1, random, TRL_OPERATOR_KINDS, 0, "random(seed)",                                      \
      "uniform in [0, 1), from seed and global cell only")                                                      \
    X(NOISE, noise, 1, 1, noise, TRL_OPERATOR_KINDS, 0, "noise(seed)",                                          \
      "normal, of variance 1/(cell volume * dt), new in each step and cell; in `ddt`")                          \
    X(POINT_SOURCE, point_source, 2, 2, point_source, TRL_OPERATOR_KINDS, 0, "point_source(s, [x, y, z])",      \
      "a source of integral s at a point, spread linearly over the points around it")                           \
    X(GRAD4, grad4, 1, 1, grad, TRL_GRADIENT4, 0, "grad4(s)",                                                   \
      "gradient: component a at s's location with bit a flipped; fourth order")                                 \
    X(DIV4, div4, 1, 1, div, TRL_DIV4, 0, "div4(v)", "divergence of a vector of face values; fourth order")     \
    X(AT4, at4, 2, 2, interpolation, TRL_INTERPOLANT4, 0, "at4(f, L)",                                          \
      "cubic interpolation to a location, or to `faces`; fourth order")                                         \
    X(BOX_FILTER, box_filter, 2, 2, filter, TRL_BOX_FILTER, 0, "box_filter(f, w)",                              \
      "mean over w points along each axis; w odd, from 1 to 15")                                                \
    X(TOPHAT_FILTER, tophat_filter, 2, 2, filter, TRL_TOPHAT_FILTER, 0, "tophat_filter(f, w)",                  \
      "mean of the linear interpolant over a width of w cells along each axis; w from 1 to 15")                 \
    X(EXTRAPOLATE, extrapolate, 2, 2, extrapolation, TRL_EXTRAPOLANT, 0, "extrapolate(f, side)",                \
      "linear extrapolation along an axis from the two points on one side: x- x+ y- y+ z- z+")

typedef enum trl_formula_operator_id {
#define TRL_FORMULA_OPERATOR_ENUM(NAME, name, least, most, family, kind, axis, signature, doc) TRL_FORMULA_##NAME,
    TRL_FORMULA_OPERATOR_LIST(TRL_FORMULA_OPERATOR_ENUM)
#undef TRL_FORMULA_OPERATOR_ENUM
        TRL_FORMULA_OPERATORS
} trl_formula_operator_id;

typedef struct trl_formula_operator {
    trl_formula_operator_id id;
    const char *name;
    int least, most;
    trl_operator_kind kind;
    int axis;
    const char *signature; /* "advective_flux(phi, u[, limiter])" */
    const char *doc;
} trl_formula_operator;

/* Row i of the table, or NULL past its end. Thread: any. */
TRL_API const trl_formula_operator *trl_formula_operator_at(int i);
/* The operator of a name, or NULL. Thread: any. */
TRL_API const trl_formula_operator *trl_formula_operator_find(const char *name);

#ifdef __cplusplus
}
#endif
#endif
