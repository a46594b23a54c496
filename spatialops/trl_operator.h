/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Operators between locations: every one is a short list of weighted shifts, which direct application, the interpreter
 * and the code generators read alike. */
#ifndef TRL_OPERATOR_H
#define TRL_OPERATOR_H

#include <trl_field.h>
#include <trl_loop.h>

#ifdef __cplusplus
extern "C" {
#endif

/* X(KIND, name, rule, doc). What the rule says of the locations:
 *   FLIP one axis' bit changes; FLIPS any bits change; SAME none does; VECTOR one input per component, see the doc. */
#define TRL_OPERATOR_LIST(X)                                                                                          \
    X(INTERPOLANT, "interpolant", FLIPS, "mean of the two points beside, along each axis whose bit differs; order 2") \
    X(GRADIENT, "gradient", FLIP, "difference of the two points beside over the spacing; order 2")                    \
    X(DIVERGENCE, "divergence", FLIP, "the same difference, read as flux balance; order 2")                           \
    X(CENTRAL_INTERPOLANT, "central interpolant", SAME, "mean of the two neighbours along an axis; order 2")          \
    X(CENTRAL_GRADIENT, "central gradient", SAME, "difference of the two neighbours over twice the spacing; order 2") \
    X(SECOND, "second derivative", SAME, "three-point second derivative along an axis; order 2")                      \
    X(LAPLACIAN, "laplacian", SAME, "sum of the second derivatives along all axes; order 2")                          \
    X(INTERPOLANT4, "fourth-order interpolant", FLIPS, "four points along each axis whose bit differs; order 4")      \
    X(GRADIENT4, "fourth-order gradient", FLIP, "four-point difference over the spacing; order 4")                    \
    X(DIVERGENCE4, "fourth-order divergence", FLIP, "four-point difference over the spacing; order 4")                \
    X(EXTRAPOLANT, "extrapolant", FLIP, "linear extrapolation from the two points on one side; order 2")              \
    X(BOX_FILTER, "box filter", SAME, "mean over an odd number of points along every axis; order 2")                  \
    X(TOPHAT_FILTER, "top-hat filter", SAME,                                                                          \
      "mean of the linear interpolant over a width of any number of cells along every axis; order 2")                 \
    X(DIV, "vector divergence", VECTOR,                                                                               \
      "sum of the divergences of one component per axis, at `to` with its bit flipped")                               \
    X(DIV4, "fourth-order vector divergence", VECTOR, "the same sum of fourth-order divergences")                     \
    X(CURL, "curl component", VECTOR,                                                                                 \
      "component `axis` of the curl of two components, at `to` with the other's bit flipped")

typedef enum trl_operator_kind {
#define TRL_OPERATOR_ENUM(kind, name, rule, doc) TRL_##kind,
    TRL_OPERATOR_LIST(TRL_OPERATOR_ENUM)
#undef TRL_OPERATOR_ENUM
        TRL_OPERATOR_KINDS,
    TRL_CUSTOM = TRL_OPERATOR_KINDS /* made by trl_operator_create_custom */
} trl_operator_kind;

/* A value at a point plus `offset`, in points of the input along each axis. */
typedef struct trl_stencil_point {
    int8_t offset[3];
    double weight;
} trl_stencil_point;

/* scale * (the sum of the weighted points, in their order); a weight or scale of 1: no product, a negative weight: its
 * magnitude's product is subtracted. */
typedef struct trl_pass {
    int npoints;
    const trl_stencil_point *point;
    double scale;
} trl_pass;

/* Passes on the result of each other, the first on an input. */
typedef struct trl_term {
    int input;
    bool minus; /* subtracted from the terms before it; not of the first */
    int npasses;
    trl_pass pass[3];
} trl_term;

/* result = the terms, added in their order. This order of operations is part of the definition: whoever evaluates it
 * gets the same bits. Offsets are those of the given locations: face i lies between cells i-1 and i. */
typedef struct trl_operator {
    trl_context *ctx; /* whose memory this is */
    trl_operator_kind kind;
    const char *name; /* of the kind; of a custom operator its own, kept here */
    int ninputs;
    trl_location from[3], to;
    int nterms;
    trl_term term[3];
    trl_footprint reads[3]; /* of each input, relative to the result */
} trl_operator;

typedef struct trl_operator_desc {
    trl_operator_kind kind;
    trl_location from, to; /* VECTOR: from is not read */
    int axis;              /* of SAME along an axis, CURL (whose inputs are the components of the next axis and the one
                            * after it, in the order x y z x y); others: not read */
    int side;              /* EXTRAPOLANT: takes the points on the minus (0) or plus (1) side */
    int width;             /* filters: cells, 1 to 15 */
} trl_operator_desc;

/* Bits of axes that the grid lacks are dropped from locations. Fails with USAGE for locations that the kind does not
 * connect (the message names kind, locations and what is possible), an axis that the grid lacks, an even width of a box
 * filter. Thread: main. */
TRL_API TRL_NODISCARD trl_err trl_operator_create(trl_context *ctx, const trl_grid *grid, const trl_operator_desc *desc,
                                                  trl_operator **op);
/* The user's own stencil from one location to another: points are copied. Fails with USAGE without points, with an
 * offset beyond 8 or along an axis the grid lacks, with a weight that is not finite. */
TRL_API TRL_NODISCARD trl_err trl_operator_create_custom(trl_context *ctx, const trl_grid *grid, const char *name,
                                                         trl_location from, trl_location to, int npoints,
                                                         const trl_stencil_point *points, trl_operator **op);
TRL_API void trl_operator_destroy(trl_operator **op);

TRL_API const char *trl_operator_kind_name(trl_operator_kind kind);
TRL_API const char *trl_operator_kind_doc(trl_operator_kind kind);

/* ---- direct application ---- */

/* out = op(in...) on the owned points of every local patch, and on as many of out's ghosts as the inputs' valid points
 * allow; out's valid points are set to these. Fails with USAGE for fields of other locations or layouts than the
 * operator's, an output that is an input, and inputs that are not valid where the owned points need them. Allocates
 * nothing after the first use with this output. */
TRL_API TRL_NODISCARD trl_err trl_operator_apply(const trl_operator *op, trl_loop *loop, trl_field *const *in,
                                                 trl_field *out);
/* The same on one box of arrays, without checks: `in` must hold the box plus op->reads. Operators in several passes use
 * half a MiB of the stack, on the workers too. */
TRL_API void trl_operator_apply_box(const trl_operator *op, const trl_array *in, const trl_array *out,
                                    const trl_box *box);
/* out = a x + b y, or a x without y (NULL), at all points where these are valid and out has room, which are out's valid
 * points then; out may be x or y. Fails with USAGE for fields of other locations or layouts, and where owned points of
 * x or y are not valid. Allocates nothing. Collective: no. Thread: main. */
TRL_API TRL_NODISCARD trl_err trl_field_combine(trl_field *out, trl_loop *loop, double a, trl_field *x, double b,
                                                trl_field *y);
/* flux = u * (phi at the faces of axis `axis`), reconstructed upwind by a limiter (a row of trl_limiter_body.h), or
 * central for -1. u and flux are at phi's location with the axis' bit flipped. */
TRL_API TRL_NODISCARD trl_err trl_advective_flux_apply(int limiter, int axis, trl_loop *loop, trl_field *phi,
                                                       trl_field *u, trl_field *flux);

#ifdef __cplusplus
}
#endif
#endif
