/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The columns of series that are no formulas: spectra, then profiles, as NAME_0, NAME_1, .. each, and last what steps
 * and systems took. */
#ifndef TRLI_COLUMNS_IMPL_H
#define TRLI_COLUMNS_IMPL_H

#include "simulation_impl.h"

/* Compile spectra and profiles, name their columns and make room for their values. INPUT: a name is taken. */
TRL_NODISCARD trl_err trli_columns_compile(trl_simulation *sim);
void trli_columns_destroy(trl_simulation *sim);
/* Compute them from the present values, into the series behind the formulas. Collective: yes. */
TRL_NODISCARD trl_err trli_columns_find(trl_simulation *sim);
/* How many steps behind a row at most its columns come, and so how many rows are under way: 1, or more with spectra. */
int trli_columns_steps(const trl_simulation *sim);
/* Begin to compute them for a row, *own: as trli_profiles_begin has it; and bring them on, a step later each. place: of
 * its spectra, which are made; own: this rank had failed before or until its part was sent; *failed: some rank had,
 * once it is known. Collective: yes. */
TRL_NODISCARD trl_err trli_columns_begin(trl_simulation *sim, int place, double *row, trl_err *own);
TRL_NODISCARD trl_err trli_columns_bring_on(trl_simulation *sim, int place, int step, double *row, bool own,
                                            bool *failed);

#endif
