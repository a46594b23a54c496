/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Rows of series whose values come while steps go on: reductions a step behind, spectra some more. A rank that failed
 * takes part in all messages of a row, and spoils its sums. */
#include <string.h>

#include "columns_impl.h"
#include "context_impl.h"
#include "frame_impl.h"
#include "late_impl.h"
#include "memory_impl.h"
#include "model_run_impl.h"
#include "reductions_impl.h"
#include "spectra_impl.h"
#include "tasks_impl.h"

enum { ROWS_MOST = 3 };

typedef struct late_row {
    int place;   /* of the row's values, and of its spectra */
    int step;    /* how often it was brought on */
    trl_err err; /* of this rank's part */
    bool spoilt; /* this rank had failed */
    bool failed; /* some rank had */
    trl_observed of;
} late_row;

struct trli_late_rows {
    int most, n; /* as many steps as a row takes; rows under way, the oldest one first */
    late_row row[ROWS_MOST];
    bool taken[ROWS_MOST];    /* places */
    double *value[ROWS_MOST]; /* [series] by place */
    double *scalar;           /* [scalars of the model] of the state that was observed last */
};

/* Whether reductions also tell of ranks that failed. */
static trl_err row_tells(const trl_simulation *sim, bool *tells)
{
    const trl_err err = trli_reductions_come_last(sim->observe, tells);
    *tells |= sim->observe->run->reductions.nbatches == 0 && sim->problem->nprofiles + sim->problem->nspectra > 0;
    return err;
}

trl_err trli_late_rows_create(const trl_simulation *sim, trli_late_rows **rows)
{
    const size_t scalars = (size_t)sim->model->nscalars, columns = (size_t)trl_simulation_series_count(sim);
    const int most = trli_columns_steps(sim);
    bool tells;
    trl_err err;
    *rows = NULL;
    TRL_TRY(row_tells(sim, &tells));
    if (!tells || sim->multistep || sim->nkept > 0) return TRL_OK;
    trli_late_rows *r = trli_new(sim->ctx, 1, sizeof *r + (scalars + (size_t)most * columns) * sizeof(double));
    if (!r) return trli_no_memory(sim->ctx, NULL, "for rows of series");
    r->most = most;
    r->scalar = (double *)(r + 1);
    for (int i = 0; i < most; ++i) r->value[i] = r->scalar + scalars + (size_t)i * columns;
    *rows = r;
done:
    return err;
}

bool trl_simulation_observes_later(const trl_simulation *sim)
{
    return sim && sim->late && sim->late->rows;
}

/* Ranks that wait for one another are at the same step. */
static trl_err make_place(trl_simulation *sim, int place)
{
    trl_err err = TRL_OK;
    if (trli_spectra_are_made(sim, place)) return TRL_OK;
    TRL_TRY(trl_simulation_settle(sim));
    err = trli_spectra_make(sim, place);
done:
    return err;
}

trl_err trl_simulation_observe_later(trl_simulation *sim)
{
    if (!trl_simulation_observes_later(sim)) return TRL_ERR_USAGE;
    trli_late_rows *rows = sim->late->rows;
    late_row row = {.of = {true, sim->step_number, sim->time}};
    trl_err err = TRL_OK;
    if (rows->n == rows->most || (rows->n > 0 && rows->row[rows->n - 1].step == 0)) return TRL_ERR_USAGE;
    while (rows->taken[row.place]) ++row.place;
    TRL_TRY(make_place(sim, row.place));
    trli_set_present(sim);
    row.spoilt = trli_late_is_failed(sim);
    row.err = trli_run_deferring(sim, sim->observe);
    if (!trli_was_made(sim, row.err)) return trl_context_agree(sim->ctx, row.err);
    trli_reductions_leave_to_polls(sim->frame, sim->observe);
    memcpy(rows->scalar, sim->frame->scalar, (size_t)sim->model->nscalars * sizeof *rows->scalar);
    TRL_TRY(trli_columns_begin(sim, row.place, rows->value[row.place], &row.err));
    row.spoilt |= row.err != TRL_OK;
    rows->taken[row.place] = true;
    rows->row[rows->n++] = row;
done:
    return err;
}

static trl_err bring_on(trl_simulation *sim, late_row *row)
{
    const trli_late_rows *rows = sim->late->rows;
    double *value = rows->value[row->place];
    trl_err err = TRL_OK;
    if (row->step == 0) {
        TRL_TRY(trli_reductions_await(sim->frame, sim->observe, rows->scalar));
        row->failed = trli_reductions_failed(sim->frame, sim->observe);
        for (int i = 0; i < sim->problem->nseries; ++i) value[i] = rows->scalar[sim->series_scalar[i]];
    }
    TRL_TRY(trli_columns_bring_on(sim, row->place, row->step, value, row->spoilt, &row->failed));
    ++row->step;
done:
    return err;
}

static trl_err take_oldest(trl_simulation *sim)
{
    trli_late_rows *rows = sim->late->rows;
    const late_row row = rows->row[0];
    memmove(rows->row, rows->row + 1, (size_t)--rows->n * sizeof *rows->row);
    rows->taken[row.place] = false;
    if (row.failed) return trl_context_agree(sim->ctx, row.err);
    memcpy(sim->series_value, rows->value[row.place], (size_t)trl_simulation_series_count(sim) * sizeof(double));
    return TRL_OK;
}

trl_err trl_simulation_observed(trl_simulation *sim, bool wait, trl_observed *row)
{
    trl_err err = TRL_OK;
    if (!sim || !row) return TRL_ERR_USAGE;
    *row = (trl_observed){0};
    trli_late_rows *rows = trl_simulation_observes_later(sim) ? sim->late->rows : NULL;
    if (!rows || rows->n == 0) return TRL_OK;
    const late_row *oldest = &rows->row[0];
    if (trli_agree_failed(sim->ctx) && (oldest->step == 0 /* some rank may not have begun it */ ||
                                        oldest->of.step > sim->step_number /* which does not count */))
        return TRL_OK;
    if (wait)
        while (oldest->step < rows->most) TRL_TRY(bring_on(sim, &rows->row[0]));
    else
        for (int i = 0; i < rows->n; ++i) TRL_TRY(bring_on(sim, &rows->row[i]));
    if (oldest->step < rows->most) return TRL_OK;
    const trl_observed of = oldest->of;
    TRL_TRY(take_oldest(sim));
    *row = of;
done:
    return err;
}
