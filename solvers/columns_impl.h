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
/* Whether that may end later than it begins: spectra exchange lines, for which ranks wait. */
bool trli_columns_may_come_later(const trl_simulation *sim);
/* As trli_profiles_begin and trli_profiles_end have it, into the series. Collective: yes. */
TRL_NODISCARD trl_err trli_columns_begin(trl_simulation *sim, trl_err *own);
TRL_NODISCARD trl_err trli_columns_end(trl_simulation *sim, bool *failed);

#endif
