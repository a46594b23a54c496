/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* How lines are transformed: a list of passes over whole lines, and the tables that these read. All is plain data, for
 * whatever runs the passes, also in the text of kernels for GPUs. */
#ifndef TRLI_TRANSFORM_PLAN_BODY_H
#define TRLI_TRANSFORM_PLAN_BODY_H

/* X(NAME, words, eigenvalue): the functions that a transform decomposes lines into are eigenvectors of second
 * differences between neighbours, with values that are even or odd about a side of the domain, which lies half a step
 * beyond the first and last point, or where the words say so at a point. eigenvalue: the angle t of function k of n, in
 * units of pi, whose second difference is 2 cos(pi t) - 2 of itself. PERIODIC has the real part of wave k at k and its
 * imaginary part at n - k. POINT_EVEN has two points or more. */
#define TRLI_TRANSFORM_LIST(X)                                             \
    X(PERIODIC, "Fourier", 2.0 * (k < n - k ? k : n - k) / n)              \
    X(EVEN, "cosine", (double)k / n)                                       \
    X(ODD, "sine", (k + 1.0) / n)                                          \
    X(EVEN_ODD, "cosine (even and odd)", (k + 0.5) / n)                    \
    X(ODD_EVEN, "sine (odd and even)", (k + 0.5) / n)                      \
    X(POINT_EVEN, "cosine (even about points)", n > 1 ? k / (n - 1.0) : 0) \
    X(POINT_ODD, "sine (odd about points)", (k + 1.0) / (n + 1.0))         \
    X(POINT_EVEN_ODD, "cosine (even and odd about points)", (k + 0.5) / n) \
    X(POINT_ODD_EVEN, "sine (odd and even about points)", (k + 0.5) / n)

#define TRLI_TRANSFORM_ENUM(NAME, words, eigenvalue) TRLI_TRANSFORM_##NAME,
typedef enum trli_transform_kind { TRLI_TRANSFORM_LIST(TRLI_TRANSFORM_ENUM) TRLI_TRANSFORMS } trli_transform_kind;
#undef TRLI_TRANSFORM_ENUM

enum {
    TRLI_ODD_RADIX = 97,       /* the largest; primes above are transformed by a convolution */
    TRLI_TRANSFORM_PASSES = 32 /* at most: each has a radix of 2 or more */
};

/* Spectra of `length` values each become one of radix*length, `batch` of them: decimation in time, from one buffer to
 * another (Stockham 1966). Value k of spectrum c is at k*batch + c. */
typedef struct trli_fourier_pass {
    int radix, length, batch;
    size_t twiddle; /* in the table: [length][radix - 1][2] cosine and sine of 2 pi k q/(radix*length) for q >= 1 */
    size_t root;    /* of odd radices: [radix][2] of 2 pi j/radix */
} trli_fourier_pass;

/* A Fourier transform of n values: sums over j of x[j] exp(-2 pi i j k/n). Complex values have two places, real ones
 * one; the spectrum of real ones, of which n is odd, has the real part of wave k at k, its imaginary part at n - k. */
typedef struct trli_fourier {
    int n;
    bool real;
    int npasses;
    trli_fourier_pass pass[TRLI_TRANSFORM_PASSES]; /* of n values, or of the convolution */
    /* By a convolution (Bluestein 1970): products with chirp, the convolution with `filter`, products with chirp. */
    int convolved; /* complex values of the convolution; 0: there is none */
    size_t chirp;  /* [n][2] cosine and sine of pi j^2/n */
    size_t filter; /* [convolved][2] the spectrum, of the chirp over `convolved` */
} trli_fourier;

/* X(NAME, function): what happens to a line before the Fourier transform. TAKE: values by index, with signs. JOIN: a
 * spectrum to what a transform there makes the line of: of an even line half as many complex numbers, whose parts
 * change places; of an odd one sums and differences of parts. TURN_IN: x[2k] + i x[n - 1 - 2k] times
 * exp(-i pi (4k + 1)/4n). */
#define TRLI_FIRST_LIST(X) X(TAKE, take) X(JOIN_EVEN, join_even) X(JOIN_ODD, join_odd) X(TURN_IN, turn_in)

/* X(NAME, function): and after it. GIVE: what JOIN led to, by index, with signs. SPLIT_EVEN: the transform of half as
 * many complex numbers to a spectrum. SPLIT_ODD: a spectrum as it is. SPLIT_ENDS: as SPLIT_EVEN, only parts that are
 * not zero. TURN_OUT: the parts of 2 z[k] exp(-i pi k/n) to 2k and n - 1 - 2k. MIX: sums and differences of the parts
 * of waves, by index. */
#define TRLI_LAST_LIST(X) \
    X(GIVE, give)         \
    X(SPLIT_EVEN, split_even) X(SPLIT_ODD, split_odd) X(SPLIT_ENDS, split_ends) X(TURN_OUT, turn_out) X(MIX, mix)

#define TRLI_FIRST_ENUM(NAME, function) TRLI_FIRST_##NAME,
#define TRLI_LAST_ENUM(NAME, function) TRLI_LAST_##NAME,
typedef enum trli_transform_first { TRLI_FIRST_LIST(TRLI_FIRST_ENUM) TRLI_FIRSTS } trli_transform_first;
typedef enum trli_transform_last { TRLI_LAST_LIST(TRLI_LAST_ENUM) TRLI_LASTS } trli_transform_last;
#undef TRLI_FIRST_ENUM
#undef TRLI_LAST_ENUM

/* Passes of the Fourier transform from buffer to buffer, of which the first has no factors, and those that begin with a
 * line, or end with one whose parts have changed places, whose values are in their places or by index and signs. */
typedef enum trli_pass_role {
    TRLI_PASS_WITHIN,
    TRLI_PASS_FIRST,
    TRLI_PASS_ENTER,
    TRLI_PASS_ENTER_BY,
    TRLI_PASS_LEAVE, /* of complex values alone */
    TRLI_PASS_LEAVE_BY,
    TRLI_PASS_ROLES
} trli_pass_role;

typedef enum trli_call_kind {
    TRLI_CALL_FIRST,
    TRLI_CALL_PASS,
    TRLI_CALL_ENTER,  /* a convolution */
    TRLI_CALL_FILTER, /* where the values are: all others take them from one place to another */
    TRLI_CALL_LEAVE,
    TRLI_CALL_LAST
} trli_call_kind;

/* The first call takes values from the line to a buffer, the last one to the line, those between from one of two
 * buffers to the other. */
typedef struct trli_transform_call {
    trli_call_kind kind;
    int which; /* trli_transform_first or _last; the pass */
    trli_pass_role role;
} trli_transform_call;

typedef struct trli_transform_way {
    bool reversed_from, reversed_to; /* the line is read, or written, from its end */
    trli_transform_first first;
    trli_transform_last last;
    int ncalls;
    trli_transform_call call[2 * TRLI_TRANSFORM_PASSES + 5];
} trli_transform_way;

/* Tables are at offsets in `table`. */
typedef struct trli_transform {
    trli_transform_kind kind;
    int n;
    trli_transform_way way[2]; /* there, back */
    trli_fourier fourier;
    double norm;
    int room;      /* values of a buffer */
    int values;    /* of the line, extended to a period where it is even or odd about points */
    int *index;    /* [values] of TAKE and GIVE, NULL: each is in its place; then [n] of MIX */
    double *table; /* cosines, sines and signs */
    size_t nindex, ntable;
    size_t sign;  /* [values] of TAKE and GIVE */
    size_t split; /* [values/4 + 1][2] of 2 pi k/values */
    double half;  /* of waves that are split */
    bool turned;  /* waves of the spectrum are turned to values */
    size_t turn;  /* [n/2 + 1][2] of pi k/2n; of TURN_IN [n/2][2]; of MIX [n][2] factors of both parts */
    size_t out;   /* of TURN_OUT [n/2][2], times 2 */
    const struct trli_passes *passes;
} trli_transform;

#endif
