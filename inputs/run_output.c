/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* What a run writes on its way, and what it reads when it continues. */
#include "run_impl.h"

#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "files_impl.h"
#include "memory_impl.h"

static bool is_output(const trl_field_info *info)
{
    return info->output;
}

static bool is_state(const trl_field_info *info)
{
    return info->equation;
}

static void release_set(trli_field_set *set)
{
    trli_free(set->field);
    trli_free(set->array);
    trli_free(set->list);
    trli_free(set->found);
    *set = (trli_field_set){0};
}

static void add_to_set(trli_field_set *set, int number, const char *name, trl_location location, const char *word,
                       bool *found)
{
    set->field[set->n] = number;
    set->list[set->n] = (trli_output_field){.name = name,
                                            .location = location,
                                            .word = word,
                                            .patch = set->array + (size_t)set->n * (size_t)set->nlocal,
                                            .found = found};
    ++set->n;
}

static trl_err create_set(trl_context *ctx, const trl_simulation *sim, bool (*wanted)(const trl_field_info *),
                          trli_field_set *set)
{
    int nfields = trl_simulation_fields(sim);
    set->nlocal = trl_simulation_layout(sim)->nlocal;
    size_t room = (size_t)(nfields + trl_simulation_carried(sim)) + 1;
    set->field = trli_new(ctx, room, sizeof *set->field);
    set->array = trli_new(ctx, room * (size_t)(set->nlocal + 1), sizeof *set->array);
    set->list = trli_new(ctx, room, sizeof *set->list);
    set->found = trli_new(ctx, room, sizeof *set->found);
    if (!set->field || !set->array || !set->list || !set->found)
        return trli_no_memory(ctx, NULL, "for the output of %d fields", nfields);
    for (int f = 0; f < nfields; ++f) {
        const trl_field_info *info = trl_simulation_field(sim, f);
        if (wanted(info)) add_to_set(set, f, info->name, info->location, info->location_word, NULL);
    }
    set->nfields = set->n;
    return TRL_OK;
}

/* Let a set go on with what the simulation carries: all of it, to be read, or what is known, to be written. */
static void add_carried(const trl_simulation *sim, bool all, trli_field_set *set)
{
    set->n = set->nfields;
    for (int i = 0; i < trl_simulation_carried(sim); ++i) {
        const trl_carried_info info = trl_simulation_carried_field(sim, i);
        if (!all && !info.known) continue;
        add_to_set(set, i, info.name, info.location, info.location_word, &set->found[set->n]);
    }
}

/* Time levels rotate: addresses are asked for anew before each use. Collective: yes. */
static trl_err refresh_set(trl_context *ctx, trl_simulation *sim, trli_field_set *set)
{
    for (int i = 0; i < set->n; ++i)
        for (int p = 0; p < set->nlocal; ++p)
            set->array[(size_t)i * (size_t)set->nlocal + (size_t)p] =
                (i < set->nfields ? trl_simulation_array : trl_simulation_carried_array)(sim, set->field[i], p);
    return trl_context_agree(ctx, trl_simulation_fetched(sim));
}

static trl_err open_writers(trli_session *run)
{
    const int n = trl_simulation_series_count(run->sim), received = trl_simulation_received(run->sim);
    const trl_receivers_entry *receivers = &run->problem->receivers;
    trl_err err = TRL_OK;
    const char **names = trli_new(run->ctx, (size_t)(n + received) + 1, sizeof *names);
    if (!names) err = trli_no_memory(run->ctx, NULL, "for %d series", n + received);
    TRL_TRY(trl_context_agree(run->ctx, err));
    for (int i = 0; i < n; ++i) names[i] = trl_simulation_series_name(run->sim, i);
    for (int i = 0; i < received; ++i) names[n + i] = trl_simulation_received_name(run->sim, i);
    const trli_writer_request request = {.ctx = run->ctx,
                                         .layout = trl_simulation_layout(run->sim),
                                         .folder = run->options->directory,
                                         .append = run->first_step > 0,
                                         .after_step = run->first_step - 1,
                                         .compression = run->options->compression,
                                         .workers = trl_simulation_workers(run->sim),
                                         .beside = run->beside,
                                         .nseries = n,
                                         .series = names,
                                         .means = run->options->has_means,
                                         .means_from = run->options->means_from,
                                         .receivers = {.n = receivers->n,
                                                       .dim = run->problem->grid.dim,
                                                       .at = receivers->at,
                                                       .nvalues = received,
                                                       .name = names + n}};
    err = trli_writers_open(&request, NULL, 0, &run->writers);
done:
    trli_free(names);
    return err;
}

/* A restart drops what was written at its first step or later: it is written again, so that the files are those of a
   run that was never interrupted. */
trl_err trli_session_open_output(trli_session *run)
{
    char *text = NULL;
    trl_err err = trli_deck_write(run->ctx, run->deck, &text);
    TRL_TRY(trl_context_agree(run->ctx, err));
    if (trl_context_rank(run->ctx) == 0) trli_folder_sweep(run->options->directory);
    TRL_TRY(trli_text_write(run->ctx, run->options->directory, "deck.yaml", text));
    TRL_TRY(trl_context_agree(run->ctx, create_set(run->ctx, run->sim, is_output, &run->output)));
    if (run->options->beside_steps && (run->output.n > 0 || run->options->has_checkpoint))
        TRL_TRY(trli_beside_create(run->ctx, &run->beside));
    TRL_TRY(open_writers(run));
done:
    trli_free(text);
    return err;
}

/* The folder of checkpoints that --restart means: `latest` that of this deck's output, an output folder the one in
   it. Rank 0 looks. */
static trl_err checkpoint_path(trli_session *run, const char *where, char *path, size_t size)
{
    const char *folder = strcmp(where, "latest") ? where : run->options->directory;
    struct stat status;
    snprintf(path, size, "%s/checkpoint", folder);
    int below = stat(path, &status) == 0 && S_ISDIR(status.st_mode);
    trl_err err = trli_broadcast(run->ctx, &below, 1, MPI_INT, 0);
    if (!below && folder == where) snprintf(path, size, "%s", where);
    return err;
}

trl_err trli_session_resume(trli_session *run, const char *where)
{
    char path[4096];
    trli_checkpoint_state state;
    trl_err err = TRL_OK;
    TRL_TRY(checkpoint_path(run, where, path, sizeof path));
    TRL_TRY(trl_context_agree(run->ctx, create_set(run->ctx, run->sim, is_state, &run->state)));
    add_carried(run->sim, true, &run->state);
    TRL_TRY(refresh_set(run->ctx, run->sim, &run->state));
    TRL_TRY(trli_checkpoint_read(run->ctx, trl_simulation_layout(run->sim), run->options->directory, path, &state,
                                 run->state.n, run->state.list));
    if (state.time_start != run->problem->time.start)
        TRL_TRY(trl_fail(
            run->ctx, TRL_ERR_INPUT, &run->problem->time.place,
            "the checkpoint in '%s' belongs to a problem that starts at t = %.17g, this one at %.17g; use the same "
            "time.start",
            path, state.time_start, run->problem->time.start));
    TRL_TRY(trl_simulation_resume(run->sim, state.step, state.time, state.dt));
    trl_simulation_set_control(run->sim, state.control);
    for (int i = run->state.nfields; i < run->state.n; ++i)
        if (run->state.found[i]) trl_simulation_carry(run->sim, run->state.field[i]);
    run->first_step = run->between_step = state.step;
    run->lineage = state.lineage;
done:
    return err;
}

trl_err trli_session_observe(trli_session *run)
{
    trl_gidx step = trl_simulation_step_number(run->sim);
    trl_err err = TRL_OK;
    if (run->observed_step == step) return TRL_OK;
    TRL_TRY(trl_simulation_observe(run->sim));
    run->observed_step = step;
done:
    return err;
}

static bool is_due(const trli_session *run, const trl_every *every, bool forced)
{
    const trl_simulation *sim = run->sim;
    const trl_gidx step = trl_simulation_step_number(sim);
    const double time = trl_simulation_time(sim), dt = trl_simulation_dt(sim);
    if (forced) return true;
    return trl_simulation_interpolates(sim) ? trli_every_at(every, step, time, dt)
                                            : trli_every_due(every, step, time, dt);
}

/* What is due, at a time after so many steps. */
typedef struct due {
    trl_gidx step;
    double time;
    bool fields, series, receivers;
} due;

/* ---- rows of series whose values come later ---- */

bool trli_session_row_is_late(const trli_session *run)
{
    const trl_simulation *sim = run->sim;
    const trli_deck_options *o = run->options;
    const trl_gidx step = trl_simulation_step_number(sim);
    const double time = trl_simulation_time(sim), dt = trl_simulation_dt(sim);
    return trl_simulation_observes_later(sim) && !trl_simulation_done(sim) && !trl_simulation_interpolates(sim) &&
           is_due(run, &o->series_every, false) && !(run->output.n > 0 && is_due(run, &o->every, false)) &&
           !(run->problem->receivers.nvalues > 0 && is_due(run, &o->receivers_every, false)) &&
           !(o->has_checkpoint && trli_every_due(&o->checkpoint_every, step, time, dt));
}

trl_err trli_session_begin_row(trli_session *run)
{
    trl_err err = TRL_OK;
    TRL_TRY(trl_simulation_observe_later(run->sim));
    run->series_step = trl_simulation_step_number(run->sim);
    run->row.open = true;
done:
    return err;
}

/* A rank that cannot write tells others with the next step. No checkpoint is written before all know that rows before
 * it are: a restart from the one before writes them. */
static trl_err end_row(trli_session *run, bool wait, trl_observed *row)
{
    trl_err err = TRL_OK;
    TRL_TRY(trl_simulation_observed(run->sim, wait, row));
    if (!row->there) return TRL_OK;
    const trl_err written = trli_writers_series(&run->writers, row->step, row->time, trl_simulation_series(run->sim));
    if (run->row.err == TRL_OK) run->row.err = written;
    trl_simulation_note(run->sim, written);
done:
    return err;
}

trl_err trli_session_bring_on_rows(trli_session *run)
{
    trl_observed row;
    return end_row(run, false, &row);
}

static trl_err end_rows(trli_session *run)
{
    trl_observed row = {.there = true};
    trl_err err = TRL_OK;
    while (row.there) TRL_TRY(end_row(run, true, &row));
done:
    return err;
}

void trli_session_leave_rows(trli_session *run)
{
    (void)!end_rows(run);
}

/* Before anything else is written. */
static trl_err close_rows(trli_session *run)
{
    trl_err err = TRL_OK;
    if (!run->row.open) return TRL_OK;
    run->row.open = false;
    TRL_TRY(trl_simulation_settle(run->sim));
    TRL_TRY(end_rows(run));
    err = trl_context_agree(run->ctx, run->row.err);
    run->row.lost = err != TRL_OK;
done:
    return err;
}

trl_err trli_session_rest(trli_session *run)
{
    trl_err err = TRL_OK;
    TRL_TRY(trl_simulation_settle(run->sim));
    TRL_TRY(close_rows(run));
    err = trli_beside_finish(run->beside);
done:
    return err;
}

trl_err trli_session_replace(trli_session *run, trl_simulation *sim)
{
    trl_err err = TRL_OK;
    release_set(&run->output);
    release_set(&run->state);
    run->observed_step = -1;
    TRL_TRY(trli_writers_move(&run->writers, trl_simulation_layout(sim), trl_simulation_workers(sim)));
    err = trl_context_agree(run->ctx, create_set(run->ctx, sim, is_output, &run->output));
done:
    trl_simulation_destroy(&run->sim);
    run->sim = sim;
    return err;
}

static trl_err write_due(trli_session *run, const due *d)
{
    trl_simulation *sim = run->sim;
    const double *const *received;
    trl_err err = TRL_OK;
    trl_context_begin_phase(run->ctx);
    TRL_TRY(close_rows(run));
    if (d->receivers) {
        TRL_TRY(trl_simulation_receive(sim, &received));
        TRL_TRY(trli_writers_receivers(&run->writers, d->step, d->time, received));
    }
    if (d->fields || d->series) TRL_TRY(trli_session_observe(run));
    if (d->fields) {
        TRL_TRY(refresh_set(run->ctx, sim, &run->output));
        TRL_TRY(trli_writers_fields(&run->writers, d->step, d->time, run->output.n, run->output.list));
    }
    if (d->series) TRL_TRY(trli_writers_series(&run->writers, d->step, d->time, trl_simulation_series(sim)));
done:
    return trl_context_end_phase(run->ctx, err);
}

/* The first time after `after` and before the end of the step at which something is due, with all that is due then but
 * for rounding; false: there is none. */
static bool find_between(const trli_session *run, double after, due *d)
{
    const trl_simulation *sim = run->sim;
    const trli_deck_options *o = run->options;
    const double end = trl_simulation_time(sim), begin = end - trl_simulation_dt(sim);
    const trl_every *const every[] = {&o->every, &o->series_every, &o->receivers_every};
    const bool wanted[] = {run->output.n > 0, trl_simulation_series_count(run->sim) > 0,
                           run->problem->receivers.nvalues > 0};
    bool *const found[] = {&d->fields, &d->series, &d->receivers};
    double at[3], first = end;
    *d = (due){.step = trl_simulation_step_number(sim) - 1};
    for (int i = 0; i < 3; ++i) {
        if (!wanted[i] || !trli_every_between(every[i], begin, after, end, &at[i])) at[i] = end;
        if (at[i] < first) first = at[i];
    }
    for (int i = 0; i < 3; ++i) *found[i] = at[i] < end && at[i] - first <= 1e-9 * every[i]->time;
    d->time = first;
    return first < end;
}

/* What is due inside the last step. It belongs to the steps that were taken before: a restart at the end of the step
 * does not repeat it. */
static trl_err write_between(trli_session *run)
{
    trl_simulation *sim = run->sim;
    const trl_gidx step = trl_simulation_step_number(sim);
    due d = {.time = trl_simulation_time(sim) - trl_simulation_dt(sim)};
    trl_err err = TRL_OK;
    if (!trl_simulation_interpolates(sim) || step <= run->between_step) return TRL_OK;
    run->between_step = step;
    while (find_between(run, d.time, &d)) {
        TRL_TRY(trl_simulation_interpolate(sim, d.time));
        run->observed_step = -1;
        err = write_due(run, &d);
        run->observed_step = -1;
        const trl_err back = trl_simulation_return(sim);
        TRL_TRY(err == TRL_OK ? back : err);
    }
done:
    return err;
}

trl_err trli_session_write_output(trli_session *run, bool forced)
{
    const trl_simulation *sim = run->sim;
    const trl_gidx step = trl_simulation_step_number(sim);
    const trli_deck_options *o = run->options;
    trl_err err = TRL_OK;
    TRL_TRY(write_between(run));
    const due d = {.step = step,
                   .time = trl_simulation_time(sim),
                   .fields = run->output.n > 0 && run->fields_step != step && is_due(run, &o->every, forced),
                   .series = trl_simulation_series_count(run->sim) > 0 && run->series_step != step &&
                             is_due(run, &o->series_every, forced),
                   .receivers = run->problem->receivers.nvalues > 0 && run->receivers_step != step &&
                                is_due(run, &o->receivers_every, forced)};
    if (!d.fields && !d.series && !d.receivers) return TRL_OK;
    TRL_TRY(write_due(run, &d));
    if (d.fields) run->fields_step = step;
    if (d.series) run->series_step = step;
    if (d.receivers) run->receivers_step = step;
done:
    return err;
}

/* Behind a checkpoint multistep methods take small steps, of order 1 at first: they take few others where the next one
 * comes soon, and may not get on at all. */
static void watch_checkpoints(trli_session *run, trl_gidx step)
{
    enum { FEW = 20, OFTEN = 3 };
    const trl_method method = run->problem->time.method;
    const trl_gidx before = run->checkpoint_step > run->first_step ? run->checkpoint_step : run->first_step;
    if (!trl_integrator_of(method)->multistep || step - before >= FEW || ++run->close != OFTEN) return;
    trl_warn(run->ctx, &run->options->checkpoint_place,
             "%s begins anew at each checkpoint, with small steps of order 1, and %d of them came fewer than %d steps "
             "after the one before: that takes many more steps; write checkpoints %d or more steps apart",
             trl_method_name(method), OFTEN, FEW, 2 * FEW);
}

trl_err trli_session_write_checkpoint(trli_session *run, bool forced)
{
    trl_simulation *sim = run->sim;
    const trli_deck_options *options = run->options;
    trl_gidx step = trl_simulation_step_number(sim);
    trli_checkpoint_state state = {
        .step = step,
        .time = trl_simulation_time(sim),
        .dt = trl_simulation_dt(sim),
        .time_start = run->problem->time.start,
        .lineage = run->lineage,
    };
    trl_err err = TRL_OK;
    trl_simulation_get_control(sim, state.control);
    if (run->checkpoint_step == step) return TRL_OK;
    if (!forced && !(options->has_checkpoint && trli_every_due(&options->checkpoint_every, step, state.time, state.dt)))
        return TRL_OK;
    TRL_TRY(close_rows(run));
    /* Nothing is left to go on beside one that ends the run, or that a signal asks for. */
    if (forced) TRL_TRY(trli_beside_finish(run->beside));
    if (run->row.lost || trli_beside_has_failed(run->beside)) return TRL_ERR_IO;
    if (!run->state.list) TRL_TRY(trl_context_agree(run->ctx, create_set(run->ctx, sim, is_state, &run->state)));
    add_carried(sim, false, &run->state);
    TRL_TRY(refresh_set(run->ctx, sim, &run->state));
    int keep = options->checkpoint_keep > 0 ? options->checkpoint_keep : 1;
    TRL_TRY(trli_checkpoint_write(run->ctx, forced ? NULL : run->beside, trl_simulation_layout(sim), options->directory,
                                  keep, &state, run->state.n, run->state.list));
    trl_simulation_begin_anew(sim);
    if (!forced) watch_checkpoints(run, step);
    run->checkpoint_step = step;
    run->lineage = state.lineage;
done:
    return err;
}

/* What is under way settles before: a file's end is agreed on. */
trl_err trli_session_bring_on_files(trli_session *run)
{
    trl_err err = TRL_OK;
    TRL_TRY(trl_simulation_settle(run->sim));
    err = trli_beside_go_on(run->beside);
done:
    return err;
}

trl_err trli_session_finish_files(trli_session *run)
{
    const trl_err err = trli_beside_finish(run->beside);
    run->files = trli_beside_get_stats(run->beside);
    return err;
}

trl_err trli_session_close_output(trli_session *run)
{
    const trl_err finished = trli_session_finish_files(run);
    trli_beside_destroy(&run->beside);
    trl_err err = trli_writers_close(&run->writers);
    if (finished != TRL_OK) err = finished;
    release_set(&run->output);
    release_set(&run->state);
    return err;
}
