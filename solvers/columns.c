/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <string.h>

#include "columns_impl.h"
#include "memory_impl.h"
#include "profiles_impl.h"
#include "spectra_impl.h"

static int count_columns(const trl_simulation *sim)
{
    int n = 0;
    for (int i = 0; i < sim->problem->nspectra; ++i) n += trli_spectrum_columns(sim, i);
    for (int i = 0; i < sim->problem->nprofiles; ++i) n += trli_profile_columns(sim, i);
    return n;
}

static trl_err name_columns(trl_simulation *sim, const char *what, const char *name, const trl_place *place,
                            int columns)
{
    const trl_problem *p = sim->problem;
    for (int k = 0; k < columns; ++k) {
        const char *column = sim->column[sim->ncolumns++] = trli_model_name(sim->model, "%s_%d", name, k);
        for (int v = 0; v < p->nseries && column; ++v)
            if (strcmp(p->series[v].name, column) == 0)
                return trl_fail(sim->ctx, TRL_ERR_INPUT, place,
                                "a value of the series is named '%s', as is a column of the %s '%s'; choose another "
                                "name",
                                column, what, name);
    }
    return sim->model->ir.err;
}

trl_err trli_columns_compile(trl_simulation *sim)
{
    const trl_problem *p = sim->problem;
    double *values;
    trl_err err = TRL_OK;
    if (p->nspectra + p->nprofiles == 0) return TRL_OK;
    TRL_TRY(trli_spectra_compile(sim));
    TRL_TRY(trli_profiles_compile(sim));
    const int n = count_columns(sim);
    sim->column = trli_new(sim->ctx, (size_t)n + 1, sizeof *sim->column);
    values = trli_new(sim->ctx, (size_t)(p->nseries + n) + 1, sizeof *values);
    if (values) trli_free(sim->series_value);
    if (values) sim->series_value = values;
    if (!values || !sim->column) TRL_TRY(trli_no_memory(sim->ctx, NULL, "for %d columns of series", n));
    for (int i = 0; i < p->nspectra; ++i)
        TRL_TRY(
            name_columns(sim, "spectrum", p->spectrum[i].name, &p->spectrum[i].place, trli_spectrum_columns(sim, i)));
    for (int i = 0; i < p->nprofiles; ++i)
        TRL_TRY(name_columns(sim, "profile", p->profile[i].name, &p->profile[i].place, trli_profile_columns(sim, i)));
done:
    return err;
}

void trli_columns_destroy(trl_simulation *sim)
{
    trli_spectra_destroy(sim);
    trli_profiles_destroy(sim);
    trli_free(sim->column);
    sim->column = NULL;
}

trl_err trli_columns_find(trl_simulation *sim)
{
    double *value = sim->series_value + sim->problem->nseries;
    trl_err err = TRL_OK;
    TRL_TRY(trli_spectra_find(sim, value));
    for (int i = 0; i < sim->problem->nspectra; ++i) value += trli_spectrum_columns(sim, i);
    err = trli_profiles_find(sim, value);
done:
    return err;
}

int trl_simulation_series_count(const trl_simulation *sim)
{
    return sim->problem->nseries + sim->ncolumns;
}

const char *trl_simulation_series_name(const trl_simulation *sim, int i)
{
    const int n = sim->problem->nseries;
    return i < n ? sim->problem->series[i].name : sim->column[i - n];
}
