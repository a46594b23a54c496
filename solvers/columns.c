/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <string.h>

#include "columns_impl.h"
#include "memory_impl.h"
#include "profiles_impl.h"
#include "spectra_impl.h"

enum { STEP_COLUMNS = 2 };

static int count_columns(const trl_simulation *sim)
{
    int n = 0;
    for (int i = 0; i < sim->problem->nspectra; ++i) n += trli_spectrum_columns(sim, i);
    for (int i = 0; i < sim->problem->nprofiles; ++i) n += trli_profile_columns(sim, i);
    return n + (sim->problem->series_solvers ? STEP_COLUMNS + trl_simulation_solvers(sim) : 0);
}

static trl_err check_name(const trl_simulation *sim, const char *what, const char *name, const trl_place *place,
                          const char *column)
{
    const trl_problem *p = sim->problem;
    for (int v = 0; v < p->nseries && column; ++v)
        if (strcmp(p->series[v].name, column) == 0)
            return trl_fail(sim->ctx, TRL_ERR_INPUT, place,
                            "a value of the series is named '%s', as is a column of %s%s%s; choose another name",
                            column, what, name, *name ? "'" : "");
    return sim->model->ir.err;
}

/* A system is called by its first unknown. */
static trl_err name_steps(trl_simulation *sim)
{
    const char *const step[STEP_COLUMNS] = {"order", "rejected"};
    const int n = STEP_COLUMNS + trl_simulation_solvers(sim);
    trl_err err = TRL_OK;
    for (int i = 0; i < n; ++i) {
        const char *unknowns = i < STEP_COLUMNS ? "" : trl_simulation_solver(sim, i - STEP_COLUMNS)->unknowns;
        const char *column =
            i < STEP_COLUMNS ? step[i]
                             : trli_model_name(sim->model, "%.*s:iterations", (int)strcspn(unknowns, ", "), unknowns);
        sim->column[sim->ncolumns++] = column;
        TRL_TRY(check_name(sim, "solvers", "", NULL, column));
    }
done:
    return err;
}

static void find_steps(const trl_simulation *sim, double *value)
{
    value[0] = trl_simulation_order(sim);
    value[1] = (double)trl_simulation_rejected(sim);
    for (int i = 0; i < trl_simulation_solvers(sim); ++i)
        value[STEP_COLUMNS + i] = (double)trl_simulation_solver(sim, i)->iterations;
}

static trl_err name_columns(trl_simulation *sim, const char *what, const char *name, const trl_place *place,
                            int columns)
{
    trl_err err = TRL_OK;
    for (int k = 0; k < columns; ++k) {
        const char *column = sim->column[sim->ncolumns++] = trli_model_name(sim->model, "%s_%d", name, k);
        TRL_TRY(check_name(sim, what, name, place, column));
    }
done:
    return err;
}

trl_err trli_columns_compile(trl_simulation *sim)
{
    const trl_problem *p = sim->problem;
    double *values;
    trl_err err = TRL_OK;
    if (p->nspectra + p->nprofiles == 0 && !p->series_solvers) return TRL_OK;
    TRL_TRY(trli_spectra_compile(sim));
    TRL_TRY(trli_profiles_compile(sim));
    const int n = count_columns(sim);
    sim->column = trli_new(sim->ctx, (size_t)n + 1, sizeof *sim->column);
    values = trli_new(sim->ctx, (size_t)(p->nseries + n) + 1, sizeof *values);
    if (values) trli_free(sim->series_value);
    if (values) sim->series_value = values;
    if (!values || !sim->column) TRL_TRY(trli_no_memory(sim->ctx, NULL, "for %d columns of series", n));
    for (int i = 0; i < p->nspectra; ++i)
        TRL_TRY(name_columns(sim, "the spectrum '", p->spectrum[i].name, &p->spectrum[i].place,
                             trli_spectrum_columns(sim, i)));
    for (int i = 0; i < p->nprofiles; ++i)
        TRL_TRY(
            name_columns(sim, "the profile '", p->profile[i].name, &p->profile[i].place, trli_profile_columns(sim, i)));
    if (p->series_solvers) TRL_TRY(name_steps(sim));
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

/* Where a row has its spectra, its profiles, and behind them what steps took. */
static double *place_of_spectra(const trl_simulation *sim, double *row)
{
    return row + sim->problem->nseries;
}

static double *place_of_profiles(const trl_simulation *sim, double *row)
{
    double *value = place_of_spectra(sim, row);
    for (int i = 0; i < sim->problem->nspectra; ++i) value += trli_spectrum_columns(sim, i);
    return value;
}

static double *place_of_steps(const trl_simulation *sim, double *row)
{
    double *value = place_of_profiles(sim, row);
    for (int i = 0; i < sim->problem->nprofiles; ++i) value += trli_profile_columns(sim, i);
    return value;
}

trl_err trli_columns_find(trl_simulation *sim)
{
    double *row = sim->series_value;
    trl_err err = TRL_OK;
    TRL_TRY(trli_spectra_find(sim, place_of_spectra(sim, row)));
    TRL_TRY(trli_profiles_find(sim, place_of_profiles(sim, row)));
    if (sim->problem->series_solvers) find_steps(sim, place_of_steps(sim, row));
done:
    return err;
}

int trli_columns_steps(const trl_simulation *sim)
{
    return sim->problem->nspectra > 0 ? TRLI_SPECTRA_PLACES : 1;
}

trl_err trli_columns_begin(trl_simulation *sim, int place, double *row, trl_err *own)
{
    trl_err err = TRL_OK;
    if (sim->problem->series_solvers) find_steps(sim, place_of_steps(sim, row));
    TRL_TRY(trli_spectra_begin(sim, place, own));
    err = trli_profiles_begin(sim, own);
done:
    return err;
}

trl_err trli_columns_bring_on(trl_simulation *sim, int place, int step, double *row, bool own, bool *failed)
{
    enum { TRANSFORM, SUM, END };
    trl_err err = TRL_OK;
    if (step == 0) TRL_TRY(trli_profiles_end(sim, place_of_profiles(sim, row), failed));
    if (sim->problem->nspectra == 0) return TRL_OK;
    if (step == TRANSFORM) err = trli_spectra_transform(sim, place);
    if (step == SUM) err = trli_spectra_sum(sim, place, own);
    if (step == END) err = trli_spectra_end(sim, place_of_spectra(sim, row), failed);
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
