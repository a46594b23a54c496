/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The passes of transforms on cores (transform_passes.c). */
#ifndef TRLI_TRANSFORM_PASSES_IMPL_H
#define TRLI_TRANSFORM_PASSES_IMPL_H

#include "transform_impl.h"

/* step: of the line, in doubles. */
typedef void trli_pass_fn(const trli_transform *t, const trli_fourier_pass *pass, const double *from, double *to,
                          ptrdiff_t step);

enum { TRLI_PASS_RADICES = 9 /* 0: any radix; 2 to 8 */ };

/* Of TRLI_LANES lines, as these lie beside one another at cache lines; a step is that between their points, in doubles.
 * `from` and `to` are different buffers, except that of filter. All REQUIRED. Thread: any. */
typedef struct trli_passes {
    trli_pass_fn *complex[TRLI_PASS_ROLES][TRLI_PASS_RADICES], *real[TRLI_PASS_ROLES][TRLI_PASS_RADICES];
    void (*enter_convolution)(const trli_fourier *f, const double *table, const double *from, double *to);
    void (*filter)(const trli_fourier *f, const double *table, double *at);
    void (*leave_convolution)(const trli_fourier *f, const double *table, const double *from, double *to);
    void (*first[TRLI_FIRSTS])(const trli_transform *t, const double *from, ptrdiff_t step, double *to);
    void (*last[TRLI_LASTS])(const trli_transform *t, const double *from, double *to, ptrdiff_t step);
    /* From rows to lines, and back, or added to what is there. */
    void (*take_rows)(int rows, const double *const *row, int n, double *to);
    void (*give_rows)(int rows, double *const *row, int n, bool add, const double *from);
} trli_passes;

/* In vectors of so many doubles; NULL: not on this machine. */
const trli_passes *trli_passes_of(int width);
/* Those of the widest vectors of this machine; all have the same bits. */
const trli_passes *trli_passes_widest(void);

#endif
