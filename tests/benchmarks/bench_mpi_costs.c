/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* What ranks cost where there is little to compute, and what many patches cost before the first step: heat, by runs as
 * programs of their own, in turns. */
#include <math.h>
#include <stdio.h>

#include "bench_launch_impl.h"
#include "memory_impl.h"

enum { ROUNDS = 5, SPLITS = 3, TEXT_ROOM = 512, OPTION_ROOM = 48 };

static const char heat[] = "trellis: 1\n"
                           "grid: {cells: [%d, %d, %d], patches: %s, periodic: [true, true, true]}\n"
                           "equations: {T: {initial: \"sin(2*pi*x)*sin(2*pi*y)*cos(2*pi*z)\", ddt: \"laplacian(T)\"}}\n"
                           "time: {method: euler, dt: 1.0e-7, end: 1.0}\n"
                           "run: {time_blocking: 1, compile: always}\n";

typedef struct split {
    int ranks, threads;
} split;

static const split splits[SPLITS] = {{1, 1}, {2, 1}, {1, 2}};

/* What is read of a report. */
enum { STEP, LATENCY, SETUP, COMPILE, BYTES, NREAD };

static trl_err run(const trli_launch *launch, const split *at, int steps, double value[NREAD])
{
    char number[16], *report = NULL;
    trl_err err = TRL_OK;
    snprintf(number, sizeof number, "%d", steps);
    const char *const extra[] = {"--steps", number, NULL};
    TRL_TRY(trli_launch_run(launch, at->ranks, at->threads, extra, &report));
    value[STEP] = trli_report_number(report, "\"step_s\"", "\"median\"");
    value[LATENCY] = trli_report_number(report, "\"comm\"", "\"latency_s\"");
    value[SETUP] = trli_report_number(report, "\"wall\"", "\"setup\"");
    value[COMPILE] = trli_report_number(report, "\"wall\"", "\"compile\"");
    value[BYTES] = trli_report_number(report, "\"memory\"", "\"metadata_bytes\"");
done:
    trli_free(report);
    return err;
}

/* Medians over rounds of a deck on all splits. */
static trl_err measure(trli_bench *bench, const char *deck, int steps, double median[SPLITS][NREAD])
{
    const int rounds = bench->quick ? 1 : ROUNDS;
    double value[SPLITS][NREAD][ROUNDS];
    trli_launch launch = {.ctx = bench->ctx};
    trl_err err = TRL_OK;
    TRL_TRY(trli_launch_prepare(&launch, deck));
    for (int r = 0; r < rounds; ++r)
        for (int i = 0; i < SPLITS; ++i) {
            double one[NREAD];
            TRL_TRY(run(&launch, &splits[i], steps, one));
            for (int k = 0; k < NREAD; ++k) value[i][k][r] = one[k];
        }
    for (int i = 0; i < SPLITS; ++i)
        for (int k = 0; k < NREAD; ++k) median[i][k] = trli_spread_of(value[i][k], rounds).median;
done:
    trli_launch_clean(&launch);
    return err;
}

static void put(trli_json *json, const char *key, double value)
{
    trli_json_key(json, key);
    trli_json_number(json, value);
}

static void begin(trli_json *json, const char *name, const split *at)
{
    trli_json_begin_object(json);
    trli_json_key(json, "case");
    trli_json_string(json, name);
    trli_json_key(json, "ranks");
    trli_json_integer(json, at->ranks);
    trli_json_key(json, "threads");
    trli_json_integer(json, at->threads);
}

trl_err trli_bench_mpi_latency(trli_bench *bench, trli_gate *gate)
{
    const int n = bench->quick ? 16 : 32;
    char deck[TEXT_ROOM], name[OPTION_ROOM];
    double median[SPLITS][NREAD];
    trl_err err = TRL_OK;
    snprintf(name, sizeof name, "a step of heat %d^3", n);
    snprintf(deck, sizeof deck, heat, n, n, n, "auto");
    TRL_TRY(measure(bench, deck, bench->quick ? 50 : 20000, median));
    printf("\n%s: us, medians\n  ranks x threads     step   an exchange\n", name);
    for (int i = 0; i < SPLITS; ++i) {
        printf("  %3d x %-3d      %8.2f %13.2f\n", splits[i].ranks, splits[i].threads, 1e6 * median[i][STEP],
               1e6 * median[i][LATENCY]);
        begin(bench->json, name, &splits[i]);
        put(bench->json, "step_s", median[i][STEP]);
        put(bench->json, "latency_s", median[i][LATENCY]);
        trli_json_end_object(bench->json);
    }
    *gate = (trli_gate){.what = "32^3: what a step takes longer on two ranks than on one, in exchanges",
                        .value = (median[1][STEP] - median[0][STEP]) / median[1][LATENCY],
                        .limit = 2};
done:
    return err;
}

trl_err trli_bench_mpi_setup(trli_bench *bench, trli_gate *gate)
{
    const int n = bench->quick ? 8 : 47; /* patches along each axis */
    char deck[TEXT_ROOM], name[OPTION_ROOM], patches[OPTION_ROOM];
    double median[SPLITS][NREAD], most = 0;
    trl_err err = TRL_OK;
    snprintf(name, sizeof name, "setup of %d patches of 4^3 cells", n * n * n);
    snprintf(patches, sizeof patches, "[%d, %d, %d]", n, n, n);
    snprintf(deck, sizeof deck, heat, 4 * n, 4 * n, 4 * n, patches);
    TRL_TRY(measure(bench, deck, 2, median));
    printf("\n%s: seconds, medians, and MB that describe the problem, of the rank with the most\n", name);
    printf("  ranks x threads    setup  compilation      MB\n");
    for (int i = 0; i < SPLITS; ++i) {
        printf("  %3d x %-3d      %8.3f %12.3f %7.0f\n", splits[i].ranks, splits[i].threads, median[i][SETUP],
               median[i][COMPILE], 1e-6 * median[i][BYTES]);
        begin(bench->json, name, &splits[i]);
        put(bench->json, "setup_s", median[i][SETUP]);
        put(bench->json, "compile_s", median[i][COMPILE]);
        put(bench->json, "metadata_bytes", median[i][BYTES]);
        trli_json_end_object(bench->json);
        most = fmax(most, median[i][SETUP] + median[i][COMPILE]);
    }
    *gate = (trli_gate){.what = "1e5 patches: s of setup and compilation, at most", .value = most, .limit = 1};
done:
    return err;
}
