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
    *set = (trli_field_set){0};
}

static trl_err create_set(trl_context *ctx, const trl_simulation *sim, bool (*wanted)(const trl_field_info *),
                          trli_field_set *set)
{
    int nfields = trl_simulation_fields(sim);
    set->nlocal = trl_simulation_layout(sim)->nlocal;
    size_t room = (size_t)nfields + 1;
    set->field = trli_new(ctx, room, sizeof *set->field);
    set->array = trli_new(ctx, room * (size_t)(set->nlocal + 1), sizeof *set->array);
    set->list = trli_new(ctx, room, sizeof *set->list);
    if (!set->field || !set->array || !set->list)
        return trli_no_memory(ctx, NULL, "for the output of %d fields", nfields);
    for (int f = 0; f < nfields; ++f) {
        const trl_field_info *info = trl_simulation_field(sim, f);
        if (!wanted(info)) continue;
        set->field[set->n] = f;
        set->list[set->n] = (trli_output_field){
            .name = info->name,
            .location = info->location,
            .word = info->location_word,
            .patch = set->array + (size_t)set->n * (size_t)set->nlocal,
        };
        ++set->n;
    }
    return TRL_OK;
}

/* Time levels rotate: addresses are asked for anew before each use. Collective: yes. */
static trl_err refresh_set(trl_context *ctx, trl_simulation *sim, trli_field_set *set)
{
    for (int i = 0; i < set->n; ++i)
        for (int p = 0; p < set->nlocal; ++p)
            set->array[(size_t)i * (size_t)set->nlocal + (size_t)p] = trl_simulation_array(sim, set->field[i], p);
    return trl_context_agree(ctx, trl_simulation_fetched(sim));
}

static trl_err open_writers(trli_session *run)
{
    const int n = run->problem->nseries, received = trl_simulation_received(run->sim);
    const trl_receivers_entry *receivers = &run->problem->receivers;
    trl_err err = TRL_OK;
    const char **names = trli_new(run->ctx, (size_t)(n + received) + 1, sizeof *names);
    if (!names) err = trli_no_memory(run->ctx, NULL, "for %d series", n + received);
    TRL_TRY(trl_context_agree(run->ctx, err));
    for (int i = 0; i < n; ++i) names[i] = run->problem->series[i].name;
    for (int i = 0; i < received; ++i) names[n + i] = trl_simulation_received_name(run->sim, i);
    const trli_writer_request request = {.ctx = run->ctx,
                                         .layout = trl_simulation_layout(run->sim),
                                         .folder = run->options->directory,
                                         .append = run->first_step > 0,
                                         .after_step = run->first_step - 1,
                                         .compression = run->options->compression,
                                         .workers = trl_simulation_workers(run->sim),
                                         .nseries = n,
                                         .series = names,
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
    run->first_step = state.step;
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
    return forced ||
           trli_every_due(every, trl_simulation_step_number(sim), trl_simulation_time(sim), trl_simulation_dt(sim));
}

trl_err trli_session_write_output(trli_session *run, bool forced)
{
    trl_simulation *sim = run->sim;
    trl_gidx step = trl_simulation_step_number(sim);
    double time = trl_simulation_time(sim);
    bool fields = run->fields_step != step && is_due(run, &run->options->every, forced);
    bool series =
        run->problem->nseries > 0 && run->series_step != step && is_due(run, &run->options->series_every, forced);
    trl_err err = TRL_OK;
    bool receivers = run->problem->receivers.nvalues > 0 && run->receivers_step != step &&
                     is_due(run, &run->options->receivers_every, forced);
    const double *const *received;
    if (!fields && !series && !receivers) return TRL_OK;
    trl_context_begin_phase(run->ctx);
    if (receivers) {
        TRL_TRY(trl_simulation_receive(sim, &received));
        TRL_TRY(trli_writers_receivers(&run->writers, step, time, received));
        run->receivers_step = step;
    }
    if (fields || series) TRL_TRY(trli_session_observe(run));
    if (fields) {
        TRL_TRY(refresh_set(run->ctx, sim, &run->output));
        TRL_TRY(trli_writers_fields(&run->writers, step, time, run->output.n, run->output.list));
        run->fields_step = step;
    }
    if (series) {
        TRL_TRY(trli_writers_series(&run->writers, step, time, trl_simulation_series(sim)));
        run->series_step = step;
    }
done:
    return trl_context_end_phase(run->ctx, err);
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
    if (!forced && !(options->has_checkpoint && is_due(run, &options->checkpoint_every, false))) return TRL_OK;
    if (!run->state.list) TRL_TRY(trl_context_agree(run->ctx, create_set(run->ctx, sim, is_state, &run->state)));
    TRL_TRY(refresh_set(run->ctx, sim, &run->state));
    int keep = options->checkpoint_keep > 0 ? options->checkpoint_keep : 1;
    TRL_TRY(trli_checkpoint_write(run->ctx, trl_simulation_layout(sim), options->directory, keep, &state, run->state.n,
                                  run->state.list));
    run->checkpoint_step = step;
    run->lineage = state.lineage;
done:
    return err;
}

trl_err trli_session_close_output(trli_session *run)
{
    trl_err err = trli_writers_close(&run->writers);
    release_set(&run->output);
    release_set(&run->state);
    return err;
}
