/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Decks on every split of this machine's cores into ranks x threads. Each run is a program of its own, under the
 * launcher; the runs of a case take turns. Ranks have equal shares, so the slowest core decides, where threads take
 * what they can: "cores" is what this allows, by loops by hand just before each run. */
#include <stdio.h>
#include <string.h>

#include "bench_launch_impl.h"
#include "memory_impl.h"

enum { SPLITS_MOST = 16, ROUNDS = 3, TEXT_ROOM = 2048 };

typedef struct mpi_case {
    const char *part, *name, *deck; /* for --parts; the deck takes cells three times, then steps */
    int equations;
    const char *setting; /* for --set */
    int cells;           /* along each axis, of all ranks together, or */
    bool weak;           /* of each */
    double updates;      /* of equations in a run, per rank of weak cases: how many steps are taken */
} mpi_case;

static const char heat[] = "trellis: 1\n"
                           "grid: {cells: [%d, %d, %d], periodic: [true, true, true]}\n"
                           "equations:\n"
                           "  T: {initial: \"sin(2*pi*x)*sin(2*pi*y)*cos(2*pi*z)\", ddt: \"laplacian(T)\"}\n"
                           "time: {method: euler, dt: 1.0e-7, end: 1.0}\n"
                           "run: {time_blocking: 1, compile: always}\n"; /* shows the exchange of each step */
static const char transport[] = "trellis: 1\n"
                                "grid: {cells: [%d, %d, %d], periodic: [true, true, true]}\n"
                                "expressions: {velocity: [1, 0.5, 0.25]}\n"
                                "equations:\n"
                                "  \"phi{i}\":\n"
                                "    for: {i: 1..16}\n"
                                "    initial: \"i*sin(2*pi*x) + cos(2*pi*y)*cos(2*pi*z)\"\n"
                                "    ddt: \"div(0.001*i*grad(phi{i}) - advective_flux(phi{i}, velocity))\"\n"
                                "time: {method: euler, dt: 1.0e-6, end: 1.0}\n"
                                "run: {time_blocking: 1, compile: always}\n";
static const char coupled[] = "trellis: 1\n" /* each source needs all scalars */
                              "grid: {cells: [%d, %d, %d], periodic: [true, true, true]}\n"
                              "equations:\n"
                              "  \"phi{i}\":\n"
                              "    for: {i: 1..8}\n"
                              "    initial: \"i*sin(2*pi*x) + cos(2*pi*y)*cos(2*pi*z)\"\n"
                              "    ddt: \"laplacian(phi{i}) + prod(j=1..8, exp(-phi{j}^2))\"\n"
                              "time: {method: euler, dt: 1.0e-7, end: 1.0}\n"
                              "run: {time_blocking: 1, compile: always}\n";

#define WITHOUT(pass) "run.passes." pass "=false"
static const char as_it_is[] = "run.passes.overlap=true";

/* The most telling first. */
static const mpi_case cases[] = {
    {"heat", "heat 256^3", heat, 1, as_it_is, 256, false, 4e9},
    {"transport", "transport n = 16, 128^3", transport, 16, as_it_is, 128, false, 3e9},
    {"coupled", "coupled sources n = 8, 128^3", coupled, 8, as_it_is, 128, false, 1.5e9},
    {"blocks", "heat 256^3, time blocks by choice", heat, 1, "run.time_blocking=auto", 256, false, 1e10},
    {"overlap", "transport n = 16, 128^3, without overlap", transport, 16, WITHOUT("overlap"), 128, false, 3e9},
    {"overlap", "heat 256^3, without overlap", heat, 1, WITHOUT("overlap"), 256, false, 4e9},
    {"small", "heat 64^3", heat, 1, as_it_is, 64, false, 1e9},
    {"weak", "heat, 64^3 per rank", heat, 1, as_it_is, 64, true, 5e8},
    {"messages", "transport n = 16, 128^3, without shared memory", transport, 16, WITHOUT("shared"), 128, false, 3e9},
    {"messages", "heat 256^3, without shared memory", heat, 1, WITHOUT("shared"), 256, false, 4e9},
    {"large", "heat 512^3", heat, 1, as_it_is, 512, false, 6e9},
};

enum { CASES = sizeof cases / sizeof *cases };

/* What a run says, and what the cores allowed equal shares just before (trli_cores_allow): updates of equations in a
 * second; part of the loop in which ranks waited for what was not sent yet; of the ranks' time in kernels, mean over
 * most. */
enum { RATE, ALLOWED, BALANCE, OVERLAP, LATE, NMEASURED };

/* A case on one split of the cores. */
typedef struct mpi_run {
    int ranks, threads, cells[3], steps;
    trli_spread spread[NMEASURED]; /* over rounds */
    double messages, bytes;        /* of a step, of all ranks */
    double least_messages, least_bytes;
    char hash[20];
} mpi_run;

/* The cut of a periodic grid into one box per rank with the least surface; each rank's messages: one to each other rank
 * beside it; bytes of all ranks: both ways through each plane of the cut. */
static void find_least(const mpi_case *c, mpi_run *run)
{
    double least = 0;
    for (int x = 1; x <= run->ranks; ++x)
        for (int y = 1; x * y <= run->ranks; ++y) {
            const int parts[3] = {x, y, run->ranks / (x * y)};
            double points = 0, messages = 0;
            if (x * y * parts[2] != run->ranks) continue;
            for (int a = 0; a < 3; ++a) {
                if (parts[a] == 1) continue;
                points += 2.0 * parts[a] * run->cells[(a + 1) % 3] * run->cells[(a + 2) % 3];
                messages += run->ranks * (parts[a] == 2 ? 1 : 2);
            }
            if (least > 0 && points >= least) continue;
            least = points;
            run->least_messages = messages;
            run->least_bytes = points * c->equations * (double)sizeof(double);
        }
}

/* A cube; each doubling of weak scaling doubles an axis. */
static void choose_cells(const mpi_case *c, mpi_run *run)
{
    for (int a = 0; a < 3; ++a) run->cells[a] = c->cells;
    const int boxes = c->weak ? run->ranks * run->threads : 1;
    for (int n = 1, a = 2; n < boxes; n *= 2, a = (a + 2) % 3) run->cells[a] *= 2;
}

static trl_err run_once(trli_bench *bench, const trli_launch *launch, const mpi_case *c, mpi_run *run,
                        double measured[NMEASURED])
{
    char steps[32], *report = NULL, hash[sizeof run->hash];
    trl_err err = TRL_OK;
    snprintf(steps, sizeof steps, "%d", run->steps);
    const char *const extra[] = {"--set", c->setting, "--steps", steps, NULL};
    TRL_TRY(trli_launch_run(launch, run->ranks, run->threads, extra, &report));
    const double loop = trli_report_number(report, "\"loop\"", NULL);
    measured[RATE] = trli_report_number(report, "\"cell_updates_per_s\"", NULL) * c->equations;
    measured[BALANCE] = trli_report_number(report, "\"comm\"", "\"balance\"");
    measured[OVERLAP] = trli_report_number(report, "\"comm\"", "\"overlap\"");
    measured[LATE] = trli_report_number(report, "\"comm\"", "\"late_s\"") / loop;
    run->messages = trli_report_number(report, "\"comm\"", "\"messages\"") / run->steps;
    run->bytes = trli_report_number(report, "\"comm\"", "\"bytes\"") / run->steps;
    trli_report_text(report, "\"hash\"", hash, sizeof hash);
    if (run->hash[0] && strcmp(hash, run->hash) != 0)
        err = trl_fail(bench->ctx, TRL_ERR_BUG, NULL, "%s: %d x %d: hash %s, and %s before", c->name, run->ranks,
                       run->threads, hash, run->hash);
    memcpy(run->hash, hash, sizeof hash);
    if (err == TRL_OK && !(loop > 0 && measured[RATE] > 0))
        err = trl_fail(bench->ctx, TRL_ERR_BUG, NULL, "%s: the report of a run has no times", c->name);
done:
    trli_free(report);
    return err;
}

static void report_run(trli_bench *bench, const mpi_run *run, const mpi_run *one, double best)
{
    trli_json *json = bench->json;
    const struct {
        const char *key;
        double value;
    } number[] = {{"of_best", run->spread[RATE].median / best},
                  {"of_one_rank", run->spread[RATE].median / one->spread[RATE].median},
                  {"cores_allow", run->spread[ALLOWED].median},
                  {"balance", run->spread[BALANCE].median},
                  {"overlap", run->spread[OVERLAP].median},
                  {"late", run->spread[LATE].median},
                  {"messages_per_step", run->messages},
                  {"least_messages_per_step", run->least_messages},
                  {"bytes_per_step", run->bytes},
                  {"least_bytes_per_step", run->least_bytes}};
    printf("  %3d x %-3d %9.0f (%.0f to %.0f) ", run->ranks, run->threads, 1e-6 * run->spread[RATE].median,
           1e-6 * run->spread[RATE].min, 1e-6 * run->spread[RATE].max);
    printf("%7.3f %8.3f %6.3f %8.3f %8.3f %6.3f ", number[0].value, number[1].value, number[2].value, number[3].value,
           number[4].value, number[5].value);
    printf("%9.0f /%5.0f %10.4g /%10.4g\n", run->messages, run->least_messages, run->bytes, run->least_bytes);
    trli_json_begin_object(json);
    trli_json_key(json, "ranks");
    trli_json_integer(json, run->ranks);
    trli_json_key(json, "threads");
    trli_json_integer(json, run->threads);
    trli_json_key(json, "steps");
    trli_json_integer(json, run->steps);
    trli_spread_report(json, "updates_per_s", &run->spread[RATE]);
    for (size_t i = 0; i < sizeof number / sizeof *number; ++i) {
        trli_json_key(json, number[i].key);
        trli_json_number(json, number[i].value);
    }
    trli_json_end_object(json);
}

/* The splits of all cores, from one rank on; of a weak case: 1, 2, 4, .. cores, each as threads and as ranks. */
static int choose_splits(const mpi_case *c, int cores, mpi_run *run)
{
    int n = 0;
    if (!c->weak) {
        for (int ranks = 1; ranks <= cores && n < SPLITS_MOST; ++ranks)
            if (cores % ranks == 0) run[n++] = (mpi_run){.ranks = ranks, .threads = cores / ranks};
        return n;
    }
    for (int used = 1; used <= cores && n + 2 <= SPLITS_MOST; used *= 2) {
        run[n++] = (mpi_run){.ranks = 1, .threads = used};
        if (used > 1) run[n++] = (mpi_run){.ranks = used, .threads = 1};
    }
    return n;
}

static trl_err measure(trli_bench *bench, const mpi_case *c)
{
    mpi_run run[SPLITS_MOST];
    double measured[SPLITS_MOST][ROUNDS][NMEASURED], best = 0;
    double *core = trli_new(bench->ctx, (size_t)bench->threads, sizeof *core);
    char deck[TEXT_ROOM];
    const int n = choose_splits(c, bench->threads, run), rounds = bench->quick ? 1 : ROUNDS;
    trli_launch launch = {.ctx = bench->ctx};
    trl_err err = TRL_OK;
    if (!core) TRL_TRY(trli_no_memory(bench->ctx, NULL, "for the rates of cores"));
    for (int r = 0; r < rounds; ++r)
        for (int i = 0; i < n; ++i) {
            mpi_run *at = &run[r % 2 ? n - 1 - i : i];
            choose_cells(c, at);
            for (int a = 0; a < 3 && bench->quick; ++a) at->cells[a] = at->cells[a] / 8 > 16 ? at->cells[a] / 8 : 16;
            find_least(c, at);
            const double updates = (double)at->cells[0] * at->cells[1] * at->cells[2] * c->equations;
            at->steps = bench->quick ? 10 : (int)(c->updates * (c->weak ? at->ranks * at->threads : 1) / updates) + 60;
            snprintf(deck, sizeof deck, c->deck, at->cells[0], at->cells[1], at->cells[2]);
            TRL_TRY(trli_launch_prepare(&launch, deck));
            TRL_TRY(trli_cores_measure(bench, core));
            double *m = measured[at - run][r];
            m[ALLOWED] = trli_cores_allow(core, bench->threads, at->ranks, at->threads);
            TRL_TRY(run_once(bench, &launch, c, at, m));
        }
    printf("\n%s: million updates per second, all cores\n", c->name);
    printf("  ranks x threads   median (least to most)  of best  of 1 rank  cores  balance  overlap   late  messages / "
           "least   bytes / least\n");
    for (int i = 0; i < n; ++i) {
        for (int k = 0; k < NMEASURED; ++k) {
            double value[ROUNDS];
            for (int r = 0; r < rounds; ++r) value[r] = measured[i][r][k];
            run[i].spread[k] = trli_spread_of(value, rounds);
        }
        if (run[i].spread[RATE].median > best) best = run[i].spread[RATE].median;
    }
    trli_json_begin_object(bench->json);
    trli_json_key(bench->json, "case");
    trli_json_string(bench->json, c->name);
    trli_json_key(bench->json, "runs");
    trli_json_begin_array(bench->json);
    for (int i = 0, one = 0; i < n; ++i) {
        if (run[i].ranks == 1) one = i;
        report_run(bench, &run[i], &run[one], best);
        if (i > 0 && !c->weak && strcmp(run[i].hash, run[0].hash) != 0)
            err = trl_fail(bench->ctx, TRL_ERR_BUG, NULL, "%s: %d x %d and %d x %d differ in their numbers", c->name,
                           run[0].ranks, run[0].threads, run[i].ranks, run[i].threads);
    }
    trli_json_end_array(bench->json);
    trli_json_end_object(bench->json);
    fflush(stdout);
done:
    trli_free(core);
    trli_launch_clean(&launch);
    return err;
}

/* What is no case on every split. */
static const struct {
    const char *part;
    trl_err (*run)(trli_bench *bench, trli_gate *gate);
} others[] = {{"latency", trli_bench_mpi_latency}, {"setup", trli_bench_mpi_setup}};

enum { OTHERS = sizeof others / sizeof *others };

trl_err trli_bench_mpi(trli_bench *bench)
{
    const char *part[CASES + OTHERS];
    bool wanted[CASES + OTHERS];
    trli_gate gate[OTHERS];
    int gates = 0;
    trl_err err = TRL_OK;
    for (int i = 0; i < CASES + OTHERS; ++i) part[i] = i < CASES ? cases[i].part : others[i - CASES].part;
    TRL_TRY(trli_bench_parts(bench, "mpi", part, CASES + OTHERS, wanted));
    trli_json_key(bench->json, "cores");
    trli_json_integer(bench->json, bench->threads);
    trli_json_key(bench->json, "cases");
    trli_json_begin_array(bench->json);
    for (int i = 0; i < CASES; ++i)
        if (wanted[i]) TRL_TRY(measure(bench, &cases[i]));
    for (int i = 0; i < OTHERS; ++i)
        if (wanted[CASES + i]) TRL_TRY(others[i].run(bench, &gate[gates++]));
    trli_json_end_array(bench->json);
    if (gates > 0) trli_gates_report(bench, gate, gates);
done:
    return err;
}
