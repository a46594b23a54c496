/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* report.json; docs/output.md says what each key means. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "files_impl.h"
#include "json_impl.h"
#include "memory_impl.h"
#include "run_impl.h"
/* What all ranks together know of the run; zero where the run did not get that far. */
typedef struct report_totals {
    trl_simulation_stats stats;                              /* of rank 0 but for what follows */
    int64_t planned_bytes, peak_bytes, copy_bytes;           /* of the rank with the most */
    int64_t metadata_bytes, metadata_allocations;            /* likewise */
    int64_t comm_bytes, comm_messages, allocations;          /* of all */
    int64_t device_copies[TRL_WAYS], device_bytes[TRL_WAYS]; /* of all */
    int64_t between_gpus;                                    /* messages, of all */
    int64_t device_waits, solver_bytes, solver_messages;     /* of all */
    int64_t helped_points;                                   /* of all: computed for other ranks, */
    double helped;                                           /* and seconds of threads that it took */
    double overlap;                                          /* of communication with work, of all */
    double late, balance;                                    /* mean; of the ranks' time in kernels: mean over most */
} report_totals;

/* What kernels take of a step on this rank, those of other ranks with which it helps, too: mean of the steps that were
 * timed. */
static double kernel_seconds(const trl_simulation *sim, const trl_simulation_stats *stats)
{
    trl_kernel_stats kernel;
    double sum = stats->helped_per_step;
    for (int k = 0; k < trl_simulation_kernels(sim); ++k) {
        trl_simulation_get_kernel(sim, k, &kernel);
        sum += kernel.measured;
    }
    return sum;
}

static trl_err gather_totals(const trli_session *run, report_totals *totals)
{
    trl_err err = TRL_OK;
    *totals = (report_totals){0};
    if (!run->sim) return TRL_OK;
    trl_simulation_get_stats(run->sim, &totals->stats);
    const trl_simulation_stats *s = &totals->stats;
    const int64_t kernels = (int64_t)(1e9 * kernel_seconds(run->sim, s));
    int64_t most[] = {s->planned_bytes,        s->peak_bytes,    s->metadata_bytes,
                      s->metadata_allocations, run->files.bytes, kernels};
    int64_t sum[] = {s->comm_bytes,
                     s->comm_messages,
                     s->allocations_after_first_step,
                     (int64_t)(1e9 * s->step_graph.outstanding),
                     (int64_t)(1e9 * s->step_graph.idle),
                     s->messages_between_gpus,
                     (int64_t)(1e9 * s->step_graph.late),
                     s->device_waits,
                     kernels,
                     s->helped_points,
                     (int64_t)(1e9 * s->helped),
                     s->solver_bytes,
                     s->solver_messages};
    TRL_TRY(trli_allreduce(run->ctx, most, 6, MPI_INT64_T, MPI_MAX));
    memcpy(totals->device_copies, s->device_copies, sizeof s->device_copies);
    memcpy(totals->device_bytes, s->device_bytes, sizeof s->device_bytes);
    TRL_TRY(trli_allreduce(run->ctx, sum, 13, MPI_INT64_T, MPI_SUM));
    TRL_TRY(trli_allreduce(run->ctx, totals->device_copies, TRL_WAYS, MPI_INT64_T, MPI_SUM));
    TRL_TRY(trli_allreduce(run->ctx, totals->device_bytes, TRL_WAYS, MPI_INT64_T, MPI_SUM));
    totals->planned_bytes = most[0];
    totals->peak_bytes = most[1];
    totals->metadata_bytes = most[2];
    totals->metadata_allocations = most[3];
    totals->copy_bytes = most[4];
    totals->comm_bytes = sum[0];
    totals->comm_messages = sum[1];
    totals->allocations = sum[2];
    totals->between_gpus = sum[5];
    totals->device_waits = sum[7];
    totals->helped_points = sum[9];
    totals->helped = 1e-9 * (double)sum[10];
    totals->solver_bytes = sum[11];
    totals->solver_messages = sum[12];
    totals->balance = most[5] > 0 ? (double)sum[8] / ((double)most[5] * trl_context_ranks(run->ctx)) : 0;
    totals->late = 1e-9 * (double)sum[6] / trl_context_ranks(run->ctx);
    if (sum[3] > sum[6])
        totals->overlap = fmin(1, fmax(0, 1 - (double)sum[4] / (double)(sum[3] - sum[6])));
    else if (sum[1] > 0)
        totals->overlap = 1; /* each was there when it was asked for */
done:
    return err;
}

static void put_text(trli_json *json, const char *key, const char *text)
{
    trli_json_key(json, key);
    trli_json_string(json, text);
}

static void put_integer(trli_json *json, const char *key, int64_t value)
{
    trli_json_key(json, key);
    trli_json_integer(json, value);
}

static void put_number(trli_json *json, const char *key, double value)
{
    trli_json_key(json, key);
    trli_json_number(json, value);
}

enum { LINE = 2048, WARNINGS_MOST = 100 };

/* A diagnostic as one line: "file:line:column: text". */
static void write_line(const trl_diagnostic *d, char line[LINE])
{
    trl_diagnostic plain = *d;
    plain.source = NULL;
    trl_diagnostic_format(&plain, line, LINE);
    line[strcspn(line, "\n")] = 0;
}

/* The first error that is recorded. */
static void put_error(const trli_session *run, trli_json *json)
{
    const trl_diagnostic *list;
    char line[LINE];
    const int n = trl_context_diagnostics(run->ctx, &list);
    int i = 0;
    while (i < n && list[i].severity != TRL_ERROR) ++i;
    if (i == n) return;
    write_line(&list[i], line);
    put_text(json, "error", line);
}

void trli_report_keep_warnings(trli_session *run)
{
    const trl_diagnostic *list;
    char text[LINE];
    int n = trl_context_diagnostics(run->ctx, &list);
    for (int i = 0; i < n && run->nwarnings < WARNINGS_MOST; ++i) {
        if (list[i].severity != TRL_WARNING) continue;
        if (!trli_make_room(run->ctx, &run->warning, run->nwarnings, 1, &run->warnings_room, sizeof *run->warning))
            return;
        write_line(&list[i], text);
        char *line = trli_copy_text(run->ctx, text);
        if (line) run->warning[run->nwarnings++] = line;
    }
}

void trli_report_free_warnings(trli_session *run)
{
    for (int i = 0; i < run->nwarnings; ++i) trli_free(run->warning[i]);
    trli_free(run->warning);
    run->warning = NULL;
    run->nwarnings = 0;
}

static void put_warnings(const trli_session *run, trli_json *json)
{
    trli_json_key(json, "warnings");
    trli_json_begin_array(json);
    for (int i = 0; i < run->nwarnings; ++i) trli_json_string(json, run->warning[i]);
    trli_json_end_array(json);
}

static const char *status_of(trl_err err)
{
    if (err == TRL_OK) return "done";
    return err == TRL_ERR_INTERRUPTED ? "interrupted" : "failed";
}

/* Without a simulation nothing is known. */
static void put_inexact(const trli_session *run, trli_json *json)
{
    char reason[256];
    trli_json_key(json, "bits_may_differ");
    trli_json_begin_array(json);
    for (int i = 0; run->sim && trl_simulation_inexact(run->sim, i, sizeof reason, reason); ++i)
        trli_json_string(json, reason);
    trli_json_end_array(json);
}

static void put_head(const trli_session *run, trl_err err, trli_json *json)
{
    put_text(json, "version", TRL_VERSION);
    put_text(json, "deck", run->arguments->operand[0]);
    put_text(json, "status", status_of(err));
    if (err != TRL_OK) put_error(run, json);
    if (run->stopped) put_text(json, "stopped_by", run->problem->time.stop.chars);
    put_warnings(run, json);
    put_inexact(run, json);
    put_integer(json, "ranks", trl_context_ranks(run->ctx));
    put_integer(json, "threads", trl_context_threads(run->ctx));
    trli_json_key(json, "devices");
    trli_json_begin_array(json);
    trli_json_string(json, "cpu");
    const trl_devices *devices = run->sim ? trl_simulation_devices(run->sim) : NULL;
    for (int i = 0; devices && i < trl_devices_opened(devices); ++i)
        trli_json_string(json, trl_devices_info(devices, i)->name);
    trli_json_end_array(json);
}

static void put_grid(const trli_session *run, trli_json *json)
{
    const trl_grid *grid = run->problem ? &run->problem->grid : NULL;
    trli_json_key(json, "grid");
    trli_json_begin_object(json);
    trli_json_key(json, "cells");
    trli_json_begin_array(json);
    for (int a = 0; grid && a < grid->dim; ++a) trli_json_integer(json, grid->cells[a]);
    trli_json_end_array(json);
    trli_json_end_object(json);
    put_integer(json, "patches", run->sim ? trl_simulation_layout(run->sim)->npatches : 0);
}

static double count_cells(const trli_session *run)
{
    double cells = 1;
    for (int a = 0; a < 3; ++a) cells *= (double)run->problem->grid.cells[a];
    return cells;
}

static void put_wall(const trli_session *run, const report_totals *totals, trli_json *json)
{
    static const char *const keys[] = {
#define WALL_KEY(name, key) key,
        TRLI_WALL_LIST(WALL_KEY)
#undef WALL_KEY
    };
    double wall[TRLI_WALL_COUNT];
    memcpy(wall, run->wall, sizeof wall);
    /* Compiling is a part of setting up that the simulation times by itself. */
    wall[TRLI_WALL_COMPILE] = totals->stats.compile_seconds;
    wall[TRLI_WALL_SETUP] -= totals->stats.compile_seconds;
    trli_json_key(json, "wall");
    trli_json_begin_object(json);
    for (int i = 0; i < TRLI_WALL_COUNT; ++i) put_number(json, keys[i], wall[i] > 0 ? wall[i] : 0);
    trli_json_end_object(json);
}

static int compare_seconds(const void *x, const void *y)
{
    const double *a = x, *b = y;
    return (*a > *b) - (*a < *b);
}

static void put_step_times(const trli_session *run, trli_json *json)
{
    const int n = run->step_times.n < TRLI_STEP_TIMES ? (int)run->step_times.n : TRLI_STEP_TIMES;
    double sorted[TRLI_STEP_TIMES + 1] = {0};
    memcpy(sorted, run->step_times.seconds, (size_t)n * sizeof *sorted);
    qsort(sorted, (size_t)n, sizeof *sorted, compare_seconds);
    trli_json_key(json, "step_s");
    trli_json_begin_object(json);
    put_number(json, "least", sorted[0]);
    put_number(json, "median", sorted[n / 2]);
    put_number(json, "most", n > 0 ? sorted[n - 1] : 0);
    trli_json_end_object(json);
}

static void put_progress(const trli_session *run, const report_totals *totals, trli_json *json)
{
    const trl_simulation *sim = run->sim;
    const trl_gidx step = sim ? trl_simulation_step_number(sim) : 0;
    double loop = run->wall[TRLI_WALL_LOOP], updates = 0, equations = 0;
    if (sim && loop > 0) {
        updates = count_cells(run) * (double)(step - run->first_step) / loop;
        for (int f = 0; f < trl_simulation_fields(sim); ++f)
            equations += trl_simulation_field(sim, f)->equation ? updates * trl_simulation_stages(sim) : 0;
    }
    put_integer(json, "steps", step);
    put_integer(json, "steps_run", step - run->first_step);
    put_integer(json, "steps_in_passes", sim ? trl_simulation_in_passes(sim) : 0);
    put_integer(json, "steps_in_chains", sim ? trl_simulation_in_chains(sim) : 0);
    if (sim && run->problem->time.adaptive) {
        put_integer(json, "steps_rejected", trl_simulation_rejected(sim));
        put_integer(json, "unsolved", trl_simulation_unsolved(sim));
    }
    if (sim && trl_integrator_of(run->problem->time.method)->multistep)
        put_integer(json, "order", trl_simulation_order(sim));
    put_number(json, "time", sim ? trl_simulation_time(sim) : 0);
    put_number(json, "dt", sim ? trl_simulation_dt(sim) : 0);
    put_wall(run, totals, json);
    put_step_times(run, json);
    put_number(json, "cell_updates_per_s", updates);
    put_number(json, "equation_updates_per_s", equations);
}

static void put_workers(const trl_simulation_stats *s, trli_json *json)
{
    if (s->policy) {
        trli_json_key(json, "scheduler");
        trli_json_begin_object(json);
        put_text(json, "asked", s->policy);
        put_text(json, "runs", s->running_policy);
        trli_json_end_object(json);
    }
    trli_json_key(json, "workers");
    trli_json_begin_object(json);
    put_integer(json, "tasks", s->task_workers);
    put_integer(json, "operators", s->operator_workers);
    put_integer(json, "active", s->step_graph.active);
    put_number(json, "busy", s->step_graph.busy);
    trli_json_end_object(json);
}

static void put_placement(const trl_placement_stats *p, trli_json *json)
{
    if (p->executors == 0) return;
    trli_json_key(json, "placement");
    trli_json_begin_object(json);
    trli_json_key(json, "tasks");
    trli_json_begin_array(json);
    for (int e = 0; e < p->executors; ++e) trli_json_integer(json, p->tasks[e]);
    trli_json_end_array(json);
    put_text(json, "by", p->by);
    put_integer(json, "chains", p->chains);
    put_integer(json, "regions", p->regions);
    put_integer(json, "transfers", p->transfers);
    put_integer(json, "transfer_bytes", p->transfer_bytes);
    put_number(json, "predicted_s", p->predicted);
    put_number(json, "measured_s", p->measured);
    put_number(json, "devices_s", p->on_devices);
    if (p->overlap >= 0) put_number(json, "copy_overlap", p->overlap);
    if (p->lead >= 0) put_number(json, "prefetch_lead_s", p->lead);
    trli_json_key(json, "memory");
    trli_json_begin_array(json);
    for (int e = 1; e < p->executors; ++e) {
        trli_json_begin_object(json);
        put_integer(json, "planned_bytes", (int64_t)p->planned[e]);
        put_integer(json, "peak_bytes", (int64_t)p->peak[e]);
        trli_json_end_object(json);
    }
    trli_json_end_array(json);
    trli_json_end_object(json);
}

static void put_numbers(trli_json *json, const char *key, int n, const int64_t *number)
{
    trli_json_key(json, key);
    trli_json_begin_array(json);
    for (int i = 0; i < n; ++i) trli_json_integer(json, number[i]);
    trli_json_end_array(json);
}

/* Of the programs that were run, as those that solve, how many of their tasks each executor did in all runs. */
static void put_programs(const trl_simulation *sim, trli_json *json)
{
    if (!sim || trl_simulation_devices(sim) == NULL) return;
    trli_json_key(json, "programs");
    trli_json_begin_array(json);
    for (int i = 0; i < trl_simulation_programs(sim); ++i) {
        trl_program_stats s;
        int64_t cells[3];
        trl_simulation_program(sim, i, &s);
        if (s.placement.executors == 0) continue;
        for (int a = 0; a < s.grid->dim; ++a) cells[a] = s.grid->cells[a];
        trli_json_begin_object(json);
        put_text(json, "name", s.name);
        put_numbers(json, "cells", s.grid->dim, cells);
        put_numbers(json, "tasks", s.placement.executors, s.placement.done);
        put_text(json, "by", s.placement.by);
        trli_json_end_object(json);
    }
    trli_json_end_array(json);
}

static void put_devices(const report_totals *totals, trli_json *json)
{
    static const char *const keys[2][TRL_WAYS] = {{"h2d_bytes", "d2h_bytes", "p2p_bytes"},
                                                  {"h2d_copies", "d2h_copies", "p2p_copies"}};
    trli_json_key(json, "device_transfers");
    trli_json_begin_object(json);
    for (int w = 0; w < TRL_WAYS; ++w) put_integer(json, keys[0][w], totals->device_bytes[w]);
    for (int w = 0; w < TRL_WAYS; ++w) put_integer(json, keys[1][w], totals->device_copies[w]);
    trli_json_end_object(json);
    put_integer(json, "device_waits", totals->device_waits);
    put_placement(&totals->stats.placement, json);
}

static void put_machine(const trli_session *run, const report_totals *totals, trli_json *json)
{
    const trl_simulation_stats *s = &totals->stats;
    put_integer(json, "bytes_per_cell_step", s->bytes_per_cell_step);
    put_integer(json, "tasks_per_step", s->tasks_per_step);
    trli_json_key(json, "tasks");
    trli_json_begin_object(json);
    put_number(json, "overhead_ns", s->step_graph.overhead_ns);
    trli_json_end_object(json);
    put_workers(s, json);
    trli_json_key(json, "memory");
    trli_json_begin_object(json);
    put_integer(json, "peak_bytes", totals->peak_bytes);
    put_integer(json, "planned_bytes", totals->planned_bytes);
    put_integer(json, "copy_bytes", totals->copy_bytes);
    put_integer(json, "metadata_bytes", totals->metadata_bytes);
    put_integer(json, "metadata_allocations", totals->metadata_allocations);
    trli_json_end_object(json);
    put_integer(json, "allocations_after_first_step", totals->allocations);
    trli_json_key(json, "comm");
    trli_json_begin_object(json);
    put_integer(json, "bytes", totals->comm_bytes);
    put_integer(json, "messages", totals->comm_messages);
    put_integer(json, "between_gpus", totals->between_gpus);
    put_integer(json, "solver_bytes", totals->solver_bytes);
    put_integer(json, "solver_messages", totals->solver_messages);
    put_number(json, "overlap", totals->overlap);
    put_number(json, "late_s", totals->late);
    put_number(json, "balance", totals->balance);
    put_integer(json, "helped_points", totals->helped_points);
    put_number(json, "helped_s", totals->helped);
    put_number(json, "latency_s", totals->stats.latency);
    put_integer(json, "waits", run->agreements[0]);
    put_integer(json, "agreements_beside_steps", run->agreements[1]);
    trli_json_end_object(json);
    trli_shares_report(&run->shares, json);
    trli_json_key(json, "files");
    trli_json_begin_object(json);
    put_integer(json, "beside_steps", run->files.files);
    put_number(json, "beside_s", run->files.seconds);
    trli_json_end_object(json);
    trli_json_key(json, "graph");
    trli_json_begin_object(json);
    put_number(json, "tau_1", s->step_graph.tau_1);
    put_number(json, "tau_inf", s->step_graph.tau_inf);
    put_number(json, "amdahl",
               trl_amdahl_score(s->step_graph.tau_1, s->step_graph.tau_inf, trl_context_threads(run->ctx)));
    trli_json_end_object(json);
    put_devices(totals, json);
    put_programs(run->sim, json);
}

static void put_solvers(const trl_simulation *sim, trli_json *json)
{
    if (!sim || trl_simulation_solvers(sim) == 0) return;
    trli_json_key(json, "solvers");
    trli_json_begin_array(json);
    for (int i = 0; i < trl_simulation_solvers(sim); ++i) {
        const trl_solve_stats *s = trl_simulation_solver(sim, i);
        trli_json_begin_object(json);
        put_text(json, "unknowns", s->unknowns);
        put_text(json, "method", s->method ? s->method : "");
        put_text(json, "preconditioner", s->preconditioner ? s->preconditioner : "");
        put_integer(json, "solves", s->solves);
        put_integer(json, "iterations", s->iterations);
        put_integer(json, "last_iterations", s->last_iterations);
        put_integer(json, "last_newton", s->last_newton);
        put_number(json, "last_residual", s->last_residual);
        put_number(json, "last_reference", s->last_reference);
        trli_json_end_object(json);
    }
    trli_json_end_array(json);
}

static void put_field(trli_json *json, const char *name, const trl_field_stats *stats)
{
    char hash[17];
    snprintf(hash, sizeof hash, "%016" PRIx64, stats->hash);
    trli_json_key(json, name);
    trli_json_begin_object(json);
    put_number(json, "min", stats->min);
    put_number(json, "max", stats->max);
    put_number(json, "sum", stats->sum);
    put_number(json, "l2", stats->l2);
    put_text(json, "hash", hash);
    trli_json_end_object(json);
}

static void put_field_error(trli_json *json, const char *name, const trl_field_stats *stats)
{
    if (!stats->has_error) return;
    trli_json_key(json, name);
    trli_json_begin_object(json);
    put_number(json, "l1", stats->error_l1);
    put_number(json, "l2", stats->error_l2);
    put_number(json, "linf", stats->error_linf);
    trli_json_end_object(json);
}

/* The kernels of a step as rank 0 runs them. */
static void put_kernels(const trli_session *run, trli_json *json)
{
    int n = run->sim ? trl_simulation_kernels(run->sim) : 0;
    trli_json_key(json, "kernels");
    trli_json_begin_array(json);
    for (int k = 0; k < n; ++k) {
        trl_kernel_stats s;
        trl_simulation_get_kernel(run->sim, k, &s);
        trli_json_begin_object(json);
        put_text(json, "name", s.name);
        put_integer(json, "results", s.results);
        put_integer(json, "fields_read", s.inputs);
        put_integer(json, "bytes_per_point", s.bytes_per_point);
        put_number(json, "flops_per_point", s.flops_per_point);
        put_text(json, "bound", s.memory_bound ? "memory" : "arithmetic");
        put_number(json, "predicted_s", s.predicted);
        put_number(json, "measured_s", s.measured);
        put_number(json, "roofline", s.measured > 0 ? s.predicted / s.measured : 0);
        trli_json_end_object(json);
    }
    trli_json_end_array(json);
}

/* stats: of every field of the simulation, or NULL when the run failed and its fields mean nothing. */
static void put_fields(const trli_session *run, const trl_field_stats *stats, trli_json *json)
{
    int n = stats ? trl_simulation_fields(run->sim) : 0;
    trli_json_key(json, "fields");
    trli_json_begin_object(json);
    for (int f = 0; f < n; ++f) {
        const trl_field_info *info = trl_simulation_field(run->sim, f);
        if (info->equation || info->output) put_field(json, info->name, &stats[f]);
    }
    trli_json_end_object(json);
    trli_json_key(json, "errors");
    trli_json_begin_object(json);
    for (int f = 0; f < n; ++f) put_field_error(json, trl_simulation_field(run->sim, f)->name, &stats[f]);
    trli_json_end_object(json);
}

/* Statistics of the present step's fields; trli_free gives *stats back. */
static trl_err gather_fields(trli_session *run, trl_field_stats **stats)
{
    int n = trl_simulation_fields(run->sim);
    trl_err err = TRL_OK;
    *stats = trli_new(run->ctx, (size_t)n + 1, sizeof **stats);
    if (!*stats) err = trli_no_memory(run->ctx, NULL, "for the report of %d fields", n);
    TRL_TRY(trl_context_agree(run->ctx, err));
    TRL_TRY(trli_session_observe(run));
    for (int f = 0; f < n; ++f) {
        const trl_field_info *info = trl_simulation_field(run->sim, f);
        if (!info->equation && !info->output) continue;
        TRL_TRY(trl_simulation_field_stats(run->sim, f, &(*stats)[f]));
    }
done:
    return err;
}

static trl_err compose(const trli_session *run, trl_err ended, const report_totals *totals,
                       const trl_field_stats *stats, char **text)
{
    trli_json *json = NULL;
    trl_err err = TRL_OK;
    TRL_TRY(trli_json_create(run->ctx, &json));
    trli_json_begin_object(json);
    put_head(run, ended, json);
    put_grid(run, json);
    put_progress(run, totals, json);
    put_machine(run, totals, json);
    put_solvers(run->sim, json);
    put_kernels(run, json);
    put_fields(run, stats, json);
    trli_json_end_object(json);
    err = trli_json_finish(&json, text);
done:
    return err;
}

/* The copy that --report asks for. On rank 0. */
static trl_err write_to(trl_context *ctx, const char *path, const char *text)
{
    trl_err err;
    TRL_TRY(trli_folder_create_for(ctx, path));
    TRL_TRY(trli_file_write(ctx, path, text, strlen(text)));
done:
    return err;
}

trl_err trli_report_write(trli_session *run, trl_err ended)
{
    const char *path = trli_arguments_value(run->arguments, "--report");
    char *text = NULL;
    trl_field_stats *stats = NULL;
    report_totals totals;
    bool told = false; /* what ended the run */
    trl_err err = TRL_OK;
    if (!run->sim && !path) return TRL_OK;
    trl_context_begin_phase(run->ctx);
    TRL_TRY(gather_totals(run, &totals));
    if (run->ready && (ended == TRL_OK || ended == TRL_ERR_INTERRUPTED)) TRL_TRY(gather_fields(run, &stats));
    TRL_TRY(trl_context_agree(run->ctx, compose(run, ended, &totals, stats, &text)));
    /* What ended the run is the user's message; behind a disk that is full, a report that cannot be written either adds
     * nothing to it. */
    if (ended != TRL_OK) trli_diagnostics_print(run->ctx);
    told = ended != TRL_OK;
    if (run->sim) err = trli_text_write(run->ctx, run->options->directory, "report.json", text);
    if (path && !(run->deck && trli_deck_file_at(run->deck, path))) {
        trl_err copied = trl_context_rank(run->ctx) == 0 ? write_to(run->ctx, path, text) : TRL_OK;
        copied = trl_context_agree(run->ctx, copied);
        if (err == TRL_OK) err = copied;
    }
done:
    err = trl_context_end_phase(run->ctx, err);
    if (ended == TRL_ERR_IO && told) trl_context_clear_diagnostics(run->ctx);
    trli_free(stats);
    trli_free(text);
    return err;
}
