/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Solvers: the parts that are asked for, on one thread and on all, and then the same on several ranks, which this
 * program starts as runs of itself. On several ranks each has one thread. */
#include <stdio.h>
#include <string.h>

#include "bench_launch_impl.h"
#include "bench_solve_impl.h"
#include "memory_impl.h"
#include "solving_impl.h"

static const struct {
    const char *name, *words;
    trli_solve_part run;
    const char *cells; /* along an axis */
} parts[] = {
    {"poisson", "Poisson's equation in a cube to 1e-8", trli_bench_solve_poisson, "129,256"},
    {"cycle", "a V cycle beside its memory traffic at the copy limit", trli_bench_solve_cycle, "129,256"},
    {"products", "products with the Jacobian beside right-hand sides", trli_bench_solve_products, "128"},
    {"weak", "cg with multigrid in boxes that grow with ranks and threads", trli_bench_solve_weak, "96"},
};
enum { PARTS = sizeof parts / sizeof *parts, LIST_ROOM = 128 };

static const char quick_cells[] = "16";

/* What the options say. */
typedef struct asked {
    trli_bench *bench;
    bool part[PARTS];
    trli_numbers cells[PARTS], ranks;
    trli_solve_study study;
} asked;

/* ---- shared by parts ---- */

trli_solver *trli_bench_solver_of(const trli_case *c)
{
    const trli_solver *s = c->sim->solving ? c->sim->solving->solver[0] : trli_implicit_solver(c->sim);
    return (trli_solver *)s;
}

trl_err trli_bench_clear(const trli_case *c)
{
    return trli_run_checked(c->sim, c->sim->initial, 0, 0, false);
}

void trli_bench_begin_row(const trli_bench *bench, const char *name, int cells, int threads)
{
    trli_json_begin_object(bench->json);
    trli_json_key(bench->json, "name");
    trli_json_string(bench->json, name);
    trli_json_key(bench->json, "cells");
    trli_json_integer(bench->json, cells);
    trli_json_key(bench->json, "ranks");
    trli_json_integer(bench->json, trl_context_ranks(bench->ctx));
    trli_json_key(bench->json, "threads");
    trli_json_integer(bench->json, threads);
}

/* ---- what is asked for ---- */

static trl_err choose_parts(asked *a)
{
    const char *name[PARTS];
    for (int i = 0; i < PARTS; ++i) name[i] = parts[i].name;
    return trli_bench_parts(a->bench, "solve", name, PARTS, a->part);
}

/* 2, 4, 8, .. and all cores. Poisson's equation is solved on the last of them alone, unless the option says which. */
static void choose_ranks(asked *a)
{
    const int cores = trl_context_cores(a->bench->ctx);
    for (int n = 2; n < 2 * cores && a->ranks.n < TRLI_NUMBERS_MOST; n *= 2)
        a->ranks.at[a->ranks.n++] = n < cores ? n : cores;
}

static trl_err read_options(asked *a)
{
    const trli_bench *bench = a->bench;
    trl_err err = TRL_OK;
    TRL_TRY(choose_parts(a));
    for (int i = 0; i < PARTS; ++i)
        TRL_TRY(
            trli_bench_list(bench, "--cells", bench->cells, bench->quick ? quick_cells : parts[i].cells, &a->cells[i]));
    if (trl_context_ranks(bench->ctx) > 1) goto done;
    if (bench->ranks)
        TRL_TRY(trli_bench_list(bench, "--ranks", bench->ranks, NULL, &a->ranks));
    else if (!bench->quick)
        choose_ranks(a);
done:
    return err;
}

/* ---- measuring ---- */

static trl_err measure_part(asked *a, int part)
{
    trli_bench *bench = a->bench;
    trl_err err = TRL_OK;
    printf("\n%s\n", parts[part].words);
    trli_json_key(bench->json, parts[part].name);
    trli_json_begin_array(bench->json);
    for (int i = 0; i < a->cells[part].n; ++i) {
        TRL_TRY(parts[part].run(&a->study, a->cells[part].at[i], 1));
        if (bench->threads > 1) TRL_TRY(parts[part].run(&a->study, a->cells[part].at[i], bench->threads));
    }
    trli_json_end_array(bench->json);
    fflush(stdout);
done:
    return err;
}

/* Of the parts that are asked for, those that are measured on so many ranks. */
static void list_for(const asked *a, int ranks, char list[LIST_ROOM])
{
    const int most = a->ranks.at[a->ranks.n - 1];
    list[0] = '\0';
    for (int i = 0; i < PARTS; ++i) {
        const size_t used = strlen(list);
        const bool wanted = a->bench->ranks || ranks == most || parts[i].run == trli_bench_solve_weak;
        if (a->part[i] && wanted) snprintf(list + used, LIST_ROOM - used, "%s%s", used ? "," : "", parts[i].name);
    }
}

static trl_err launch(const asked *a, const trli_launch *folder, int ranks)
{
    trli_bench *bench = a->bench;
    char list[LIST_ROOM], *printed = NULL, *report = NULL;
    const char *option[8] = {"solve", "--parts", list};
    int n = 3;
    trl_err err = TRL_OK;
    list_for(a, ranks, list);
    if (!list[0]) return TRL_OK;
    if (bench->quick) option[n++] = "--quick";
    if (bench->cells) {
        option[n++] = "--cells";
        option[n++] = bench->cells;
    }
    printf("\n%d ranks\n", ranks);
    fflush(stdout);
    TRL_TRY(trli_launch_bench(folder, ranks, option, &printed, &report));
    fputs(printed, stdout);
    const double seconds = trli_report_number(report, "\"weak\"", "\"median\"");
    if (seconds > 0)
        printf("weak scaling: %.2f of one rank's speed for each of %d\n", a->study.one_rank / seconds, ranks);
    trli_json_text(bench->json, report);
done:
    trli_free(printed);
    trli_free(report);
    return err;
}

static trl_err measure_on_ranks(asked *a)
{
    trli_launch folder = {.ctx = a->bench->ctx};
    trl_err err = TRL_OK;
    if (a->ranks.n == 0) return TRL_OK;
    trli_json_key(a->bench->json, "on_ranks");
    trli_json_begin_array(a->bench->json);
    TRL_TRY(trli_launch_begin(&folder));
    for (int i = 0; i < a->ranks.n; ++i) TRL_TRY(launch(a, &folder, a->ranks.at[i]));
    trli_json_end_array(a->bench->json);
done:
    trli_launch_clean(&folder);
    return err;
}

trl_err trli_bench_solve(trli_bench *bench)
{
    asked a = {.bench = bench, .study = {.bench = bench}};
    trl_err err = TRL_OK;
    TRL_TRY(read_options(&a));
    if (trl_context_ranks(bench->ctx) > 1) bench->threads = 1;
    for (int i = 0; i < PARTS; ++i)
        if (a.part[i]) TRL_TRY(measure_part(&a, i));
    err = measure_on_ranks(&a);
done:
    return err;
}
