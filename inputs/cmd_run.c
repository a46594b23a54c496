/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* `trellis run`: a deck from beginning to end. */
#include "run_impl.h"

#include <inttypes.h>

#include "context_impl.h"
#include "files_impl.h"

static trl_err fail_replaced(trl_context *ctx, const char *option, const char *path)
{
    return trl_fail(ctx, TRL_ERR_INPUT, NULL, "trellis run: %s '%s' would replace the deck; choose another file",
                    option, path);
}

/* What cannot be written at the end is found at the start. Rank 0 looks. */
static trl_err check_targets(trl_context *ctx, const trli_arguments *arguments)
{
    static const char *const option[] = {"--report", "--trace"};
    trl_err err = TRL_OK;
    for (int i = 0; i < 2 && err == TRL_OK && trl_context_rank(ctx) == 0; ++i) {
        const char *path = trli_arguments_value(arguments, option[i]);
        if (path) err = trli_file_check(ctx, "run", option[i], path);
        if (path && err == TRL_OK && trli_file_same(path, arguments->operand[0]))
            err = fail_replaced(ctx, option[i], path);
    }
    return trl_context_agree(ctx, err);
}

static trl_err read_options(trli_session *run)
{
    trl_err err = TRL_OK;
    run->quiet = trli_arguments_value(run->arguments, "--quiet") != NULL;
    TRL_TRY(trli_arguments_integer(run->ctx, run->arguments, "--steps", 0, &run->steps));
done:
    return err;
}

/* No output takes the place of the deck. Rank 0 looks. */
static trl_err check_kept(const trli_session *run)
{
    static const char *const option[] = {"--report", "--trace"};
    trl_err err = TRL_OK;
    if (trl_context_rank(run->ctx) == 0) TRL_TRY(trli_deck_check_kept(run->ctx, run->deck));
    for (int i = 0; i < 2 && err == TRL_OK && trl_context_rank(run->ctx) == 0; ++i) {
        const char *path = trli_arguments_value(run->arguments, option[i]);
        if (path && trli_deck_file_at(run->deck, path)) err = fail_replaced(run->ctx, option[i], path);
    }
done:
    return trl_context_agree(run->ctx, err);
}

/* From the deck to a simulation that stands at its first step. */
static trl_err prepare(trli_session *run)
{
    const char *restart = trli_arguments_value(run->arguments, "--restart");
    trl_err err = TRL_OK;
    TRL_TRY(read_options(run));
    TRL_TRY(trli_command_deck(run->ctx, run->arguments, &run->registry, &run->deck));
    TRL_TRY(check_kept(run));
    run->problem = trli_deck_problem(run->deck);
    run->options = trli_deck_options_of(run->deck);
    TRL_TRY(trl_simulation_create(run->ctx, run->problem, &run->sim));
    TRL_TRY(trli_session_start_trace(run));
    if (run->steps >= 0)
        trl_simulation_set_steps(run->sim, run->steps);
    else
        run->steps = run->problem->time.steps;
    if (restart)
        TRL_TRY(trli_session_resume(run, restart));
    else
        TRL_TRY(trl_simulation_initialise(run->sim));
    run->ready = true;
    TRL_TRY(trli_session_open_output(run));
    TRL_TRY(trli_topology_warn(run->ctx));
    trli_report_keep_warnings(run);
    trli_diagnostics_print(run->ctx);
done:
    return err;
}

static void print_errors(trli_session *run, const trl_field_info *info, const trl_field_stats *stats)
{
    if (!run->quiet && trl_context_rank(run->ctx) == 0 && stats->has_error)
        printf("error of %s: l1 %.3e, l2 %.3e, max %.3e\n", info->name, stats->error_l1, stats->error_l2,
               stats->error_linf);
}

/* What compilers did, and what the next run saves by it. */
static void print_compiled(const trli_session *run)
{
    trl_compile_stats s;
    char others[48] = "";
    trl_simulation_get_compile_stats(run->sim, &s);
    if (s.compiled && s.received) snprintf(others, sizeof others, ", %d by other ranks", s.received);
    if (s.compiled)
        printf("%d kernel%s compiled in %.2g s%s%s\n", s.compiled, s.compiled == 1 ? " was" : "s were", s.seconds,
               others, s.keeps ? ", which later runs save: the cache keeps them ('trellis info')" : "");
    if (s.under_way)
        printf("%d kernel%s still being compiled when the run ended\n", s.under_way,
               s.under_way == 1 ? " was" : "s were");
}

static void print_solvers(const trl_simulation *sim)
{
    for (int i = 0; i < trl_simulation_solvers(sim); ++i) {
        const trl_solve_stats *s = trl_simulation_solver(sim, i);
        if (s->solves == 0) continue;
        if (!s->method) {
            printf("solved for %s %" PRId64 " time%s: the first guess was the solution\n", s->unknowns, s->solves,
                   s->solves == 1 ? "" : "s");
            continue;
        }
        printf("solved for %s %" PRId64 " time%s: %s with preconditioner %s, %.3g iterations each", s->unknowns,
               s->solves, s->solves == 1 ? "" : "s", s->method, s->preconditioner,
               (double)s->iterations / (double)s->solves);
        if (s->last_reference > 0) printf(", residual %.3g of %.3g", s->last_residual, s->last_reference);
        printf("\n");
    }
}

/* What the user wants to know at the end, and what to do next. */
static trl_err summarise(trli_session *run)
{
    const char *directory = run->options->directory, *trace = trli_arguments_value(run->arguments, "--trace");
    trl_gidx steps = trl_simulation_step_number(run->sim) - run->first_step;
    double loop = run->wall[TRLI_WALL_LOOP];
    trl_err err = TRL_OK;
    trl_context_begin_phase(run->ctx);
    if (run->progress.shown) {
        if (!run->problem->time.none)
            printf("%" TRL_GIDX_FMT " steps to t = %g in %.3g s", steps, trl_simulation_time(run->sim), loop);
        if (run->problem->time.adaptive) printf(", %" PRId64 " rejected", trl_simulation_rejected(run->sim));
        if (trl_integrator_of(run->problem->time.method)->multistep)
            printf(", at last of order %d", trl_simulation_order(run->sim));
        if (steps > 0) printf(", %.3g cells/s", run->progress.cells * (double)steps / loop);
        if (run->stopped) printf("; time.stop: %s", run->problem->time.stop.chars);
        if (!run->problem->time.none) putchar('\n');
    }
    if (run->progress.shown) print_solvers(run->sim);
    if (run->progress.shown) print_compiled(run);
    if (run->progress.shown) trli_watch_print(run);
    for (int f = 0; f < trl_simulation_fields(run->sim); ++f) {
        const trl_field_info *info = trl_simulation_field(run->sim, f);
        trl_field_stats stats;
        if (info->exact < 0) continue;
        TRL_TRY(trl_simulation_field_stats(run->sim, f, &stats));
        print_errors(run, info, &stats);
    }
    if (run->progress.shown)
        printf("output is in %s: %s%s%sreport.json\n", directory, run->problem->writes_nothing ? "" : "fields/, ",
               trl_simulation_series_count(run->sim) ? "series.csv, " : "",
               run->problem->receivers.nvalues ? "receivers.nc, " : "");
    if (run->progress.shown && !run->problem->writes_nothing) printf("plot it with: trellis plot %s\n", directory);
    if (run->progress.shown && trace) printf("a trace is in %s: open it in https://ui.perfetto.dev\n", trace);
done:
    return trl_context_end_phase(run->ctx, err);
}

int trli_cmd_run(trl_context *ctx, const trli_arguments *arguments)
{
    trli_session run = {.ctx = ctx,
                        .arguments = arguments,
                        .steps = -1,
                        .fields_step = -1,
                        .series_step = -1,
                        .receivers_step = -1,
                        .checkpoint_step = -1,
                        .observed_step = -1,
                        .lineage = -1};
    double started = trli_clock();
    trl_err err = check_targets(ctx, arguments);
    if (err != TRL_OK) return trli_command_finish(ctx, err);
    trl_context_begin_phase(ctx);
    trl_context_set_stop(ctx, trli_signals_name);
    TRL_TRY(prepare(&run));
    trl_context_set_stop(ctx, NULL); /* from now on a signal is heard between steps */
    trli_progress_start(&run.progress, &run);
    run.wall[TRLI_WALL_SETUP] = trli_clock() - started;
    TRL_TRY(trli_session_loop(&run));
    TRL_TRY(trli_session_observe(&run));
    TRL_TRY(trli_watch_warn(&run, true));
done:
    trl_context_set_stop(ctx, NULL);
    trli_progress_clear(&run.progress);
    err = trl_context_end_phase(ctx, err);
    /* Files first: one that cannot be finished makes the run a failed one, and the report says so. */
    trl_err closed = trli_session_close_output(&run);
    trl_err traced = trli_session_write_trace(&run);
    if (err == TRL_OK) err = closed != TRL_OK ? closed : traced;
    if (err == TRL_ERR_NUMERICS && trli_watch_warn(&run, false) != TRL_OK) err = TRL_ERR_NUMERICS;
    trli_report_keep_warnings(&run);
    trl_err reported = trli_report_write(&run, err);
    if (err == TRL_OK) err = reported;
    if (err == TRL_OK) err = summarise(&run);
    trli_report_free_warnings(&run);
    trli_watch_destroy(&run.watch);
    trl_simulation_destroy(&run.sim);
    trli_deck_destroy(&run.deck);
    trl_registry_destroy(&run.registry);
    return trli_command_finish(ctx, err);
}
