/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Trigonometric transforms of lines of values: transform_fftw.c, or transform_missing.c in a build without FFTW. */
#ifndef TRLI_TRANSFORM_IMPL_H
#define TRLI_TRANSFORM_IMPL_H

#include <trl_context.h>

/* X(NAME, words, eigenvalue): the functions that a transform decomposes lines into are eigenvectors of second
 * differences between neighbours, with values that are even or odd about a side of the domain, which lies half a step
 * beyond the first and last point, or where the words say so at a point. eigenvalue: the angle t of function k of n, in
 * units of pi, whose second difference is 2 cos(pi t) - 2 of itself. PERIODIC has the real part of wave k at k and its
 * imaginary part at n - k; COMPLEX, of an even number of points, both parts side by side, those of k at 2k and 2k + 1,
 * except that the last wave, n/2, which has a real part only, is at 1. */
#define TRLI_TRANSFORM_LIST(X)                                             \
    X(PERIODIC, "Fourier", 2.0 * (k < n - k ? k : n - k) / n)              \
    X(COMPLEX, "Fourier", 2.0 * (k == 1 ? n / 2 : k / 2) / n)              \
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

enum { TRLI_LANES = 8 /* lines that are transformed at once: a cache line of values */ };

typedef struct trli_transform trli_transform;

/* FFTW's version; NULL in a build without it. */
const char *trli_transform_library(void);
/* Lines that always come together in twos, which periodic ones are transformed faster in. COMPLEX: along the other axis
 * they were transformed to such waves, and are the parts of one in each pair but the first; of these no more is wanted
 * than what is the same for both, so that their spectrum stays that of complex numbers. */
typedef enum trli_line_pairs { TRLI_PAIRS_NONE, TRLI_PAIRS_REAL, TRLI_PAIRS_COMPLEX } trli_line_pairs;

/* Both directions for lines of n points. pairs: what each two of several lines are, from the first on. Fails with
 * MEMORY. Thread: main. */
TRL_NODISCARD trl_err trli_transform_create(trl_context *ctx, trli_transform_kind kind, int n, trli_line_pairs pairs,
                                            trli_transform **transform);
void trli_transform_destroy(trli_transform **transform);
/* Transform one line, or TRLI_LANES lines whose points lie beside one another, in place; first: they begin with the
 * first of all. Only single lines may be COMPLEX. The memory begins at a cache line, as does the scratch, of n + 2
 * values. Bits depend on the line alone, or where lines are paired on both of a
 * pair, but one line by itself has others than one of several. There and back gives the line times trli_transform_norm.
 * Thread: any. */
void trli_transform_line(const trli_transform *transform, bool back, double *line, double *scratch);
/* One line from somewhere to somewhere else; there `to` begins at a cache line, back `from` does, which is lost. Bits
 * as in place. */
void trli_transform_row(const trli_transform *transform, bool back, double *from, double *to, double *scratch);
void trli_transform_lines(const trli_transform *transform, bool back, bool first, double *lines);
double trli_transform_norm(const trli_transform *transform);
/* Operations there and back, of one line of several. */
double trli_transform_operations(const trli_transform *transform);

#endif
