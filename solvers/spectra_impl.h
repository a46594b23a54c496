/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Spectra as columns of series: of wave number k = 2 pi/L times 0, 1, .., L being the length of the axis, or the
 * longest one of all, half of the square of the fields' Fourier coefficients, summed over all of this size. The sum of
 * a spectrum is half of the mean square of the fields (Parseval). */
#ifndef TRLI_SPECTRA_IMPL_H
#define TRLI_SPECTRA_IMPL_H

#include "simulation_impl.h"

enum { TRLI_SPECTRA_PLACES = 3 /* for rows under way, each of which is brought on three times */ };

/* Find the fields and count the columns, once the shown fields are known. INPUT: an axis is not periodic, or there is
 * no such field. */
TRL_NODISCARD trl_err trli_spectra_compile(trl_simulation *sim);
void trli_spectra_destroy(trl_simulation *sim);
/* Columns of spectrum i of the problem. */
int trli_spectrum_columns(const trl_simulation *sim, int i);
/* Compute all columns from the present values. Collective: yes. */
TRL_NODISCARD trl_err trli_spectra_find(trl_simulation *sim, double *value);
/* The same without waiting: make a place for a row, once; send the present values of its fields, *own: as
 * trli_profiles_begin has it; and, a step later each, transform them in planes and along lines, failed: of this rank,
 * before; and wait for the sums. So a rank waits for one that is a whole step behind. The last two are of one row at a
 * time. Collective: yes. */
TRL_NODISCARD trl_err trli_spectra_make(trl_simulation *sim, int place);
bool trli_spectra_are_made(const trl_simulation *sim, int place);
TRL_NODISCARD trl_err trli_spectra_begin(trl_simulation *sim, int place, trl_err *own);
TRL_NODISCARD trl_err trli_spectra_transform(trl_simulation *sim, int place);
TRL_NODISCARD trl_err trli_spectra_sum(trl_simulation *sim, int place, bool failed);
TRL_NODISCARD trl_err trli_spectra_end(trl_simulation *sim, double *value, bool *failed);

#endif
