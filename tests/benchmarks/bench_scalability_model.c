/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* A model of the scalability study. A step takes the larger of what one core takes for its share of the cells and of
 * what memory takes for the shares of all, ghosts included; then each rank's messages; what it takes to pack and unpack
 * them, which is work of the same cores; and rounds of reductions. All costs are measured but those of a network, which
 * are stated. */
#include <math.h>
#include <stdio.h>

#include "bench_scalability_impl.h"
#include "memory_impl.h"
#include "spatialops_impl.h"

enum { TEXT_ROOM = 1024, STEPS = 4000, RUNS = 3 };

/* ---- costs ---- */

/* A periodic grid of so many cells along x, a patch for each rank; dt: of the deck. */
static void write_deck(const char *dt, const int cells[3], int ranks, char text[TEXT_ROOM])
{
    snprintf(text, TEXT_ROOM,
             "trellis: 1\n"
             "grid: {cells: [%d, %d, %d], periodic: [true, true, true], patches: [%d, 1, 1]}\n"
             "equations: {T: {initial: \"sin(2*pi*x)*sin(2*pi*y)*cos(2*pi*z)\", ddt: \"laplacian(T)\"}}\n"
             "time: {method: euler, dt: %s, end: 1.0}\n"
             "output: {fields: []}\n"
             "run: {time_blocking: 1, compile: always, passes: {overlap: false}}\n",
             ranks * cells[0], cells[1], cells[2], ranks, dt);
}

/* The least of the medians of steps in some runs; the deck's cells are each rank's. */
static trl_err measure(trli_bench *bench, const char *dt, const int cells[3], int ranks, double *seconds)
{
    char text[TEXT_ROOM], number[16];
    trli_launch launch = {.ctx = bench->ctx};
    trl_err err = TRL_OK;
    snprintf(number, sizeof number, "%d", bench->quick ? 10 : STEPS);
    const char *const extra[] = {"--steps", number, NULL};
    write_deck(dt, cells, ranks, text);
    TRL_TRY(trli_launch_prepare(&launch, text));
    *seconds = INFINITY;
    for (int r = 0; r < (bench->quick ? 1 : RUNS); ++r) {
        char *report = NULL;
        TRL_TRY(trli_launch_run(&launch, ranks, 1, extra, &report));
        *seconds = fmin(*seconds, trli_report_number(report, "\"step_s\"", "\"median\""));
        trli_free(report);
    }
done:
    trli_launch_clean(&launch);
    return err;
}

trl_err trli_study_measure_costs(trli_bench *bench, trli_study_costs *costs)
{
    static const char fixed[] = "1.0e-9", bounded[] = "{cfl: 0.1, max: 1.0e-9}";
    const int small[3] = {8, 8, 8}, wide[3] = {8, 128, 128};
    const double messages = 2, bytes = 2.0 * sizeof(double) * wide[1] * wide[2]; /* of a rank */
    double alone, both, far, apart, steady[2], reduced[2];
    trl_err err = TRL_OK;
    TRL_TRY(measure(bench, fixed, small, 1, &alone));
    TRL_TRY(measure(bench, fixed, small, 2, &both));
    TRL_TRY(measure(bench, fixed, wide, 1, &far));
    TRL_TRY(measure(bench, fixed, wide, 2, &apart));
    TRL_TRY(measure(bench, bounded, small, 1, &reduced[0]));
    TRL_TRY(measure(bench, bounded, small, 2, &reduced[1]));
    steady[0] = alone;
    steady[1] = both;
    costs->message = fmax(0, both - alone) / messages;
    costs->byte = fmax(0, apart - far - (both - alone)) / bytes;
    costs->reduction = fmax(0, reduced[1] - reduced[0] - (steady[1] - steady[0]));
    printf("\nus a step on one rank, on two: 8 x 8 x 8 cells each %.2f, %.2f; with cfl %.2f, %.2f; 8 x 128 x 128 %.1f, "
           "%.1f\n",
           1e6 * alone, 1e6 * both, 1e6 * reduced[0], 1e6 * reduced[1], 1e6 * far, 1e6 * apart);
    printf("between two ranks: a message %.2f us, a reduction %.2f us, ", 1e6 * costs->message, 1e6 * costs->reduction);
    if (costs->byte > 0)
        printf("%.1f GB/s\n", 1e-9 / costs->byte);
    else
        printf("bytes in no time that other work on the machine leaves to be seen\n");
    trli_json_key(bench->json, "message_s");
    trli_json_number(bench->json, costs->message);
    trli_json_key(bench->json, "message_s_per_byte");
    trli_json_number(bench->json, costs->byte);
    trli_json_key(bench->json, "reduction_s");
    trli_json_number(bench->json, costs->reduction);
done:
    return err;
}

/* ---- the model ---- */

static double cells_of(const trli_curves *c)
{
    return (double)c->cells[0] * c->cells[1] * c->cells[2];
}

double trli_study_roofline(const trli_curves *c, int cores, const trli_study_costs *costs)
{
    const double rate = fmin(cores * costs->one, costs->all);
    return rate > 0 ? cells_of(c) * c->bytes_per_cell / rate : 0;
}

/* Bytes through memory for each that a message brings from a face across an axis: a value is read, with its line, and
 * stored into the message, whose line is read before; it is read from there and stored among ghosts likewise. Values of
 * a face across x have a line each, in the arrays at both ends. */
static double touched(int axis)
{
    enum { LINE = 8, READ = 1, STORE = 2 }; /* doubles of a line */
    return (axis == 0 ? LINE : 1) * (READ + STORE) + READ + STORE;
}

/* What a patch of so many cells has with its ghosts, over its cells. */
static double with_ghosts(const double cells[3])
{
    double ratio = 1;
    for (int a = 0; a < 3; ++a) ratio *= (cells[a] + 2) / cells[a];
    return ratio;
}

/* Seconds of a rank to pack and unpack so many bytes across each axis, by some threads of its own, while others do the
 * same. The costs of bytes were measured across x. */
static double copy_halos(const double bytes[3], double threads, double ranks, const trli_study_costs *costs)
{
    const double rate = fmin(fmin(ranks * threads, costs->cores) * costs->one, costs->all);
    double seconds = 0;
    for (int a = 0; a < 3; ++a) {
        const double alone = costs->byte * touched(a) / touched(0) / threads;
        const double beside_others = rate > 0 ? ranks * touched(a) / rate : 0;
        seconds += bytes[a] * fmax(alone, beside_others);
    }
    return seconds;
}

/* The mean patch of a point's ranks, and the share of their bytes that crosses each axis. */
static void find_patch(const trli_curves *c, int ranks, double cells[3], double share[3])
{
    trl_grid grid = {.dim = 3, .cells = {c->cells[0], c->cells[1], c->cells[2]}};
    int counts[3] = {1, 1, 1};
    double sum = 0;
    (void)trli_layout_choose(&grid, ranks, true, counts);
    for (int a = 0; a < 3; ++a) {
        cells[a] = (double)c->cells[a] / counts[a];
        share[a] = (counts[a] - 1) / (double)c->cells[a];
        sum += share[a];
    }
    for (int a = 0; a < 3 && sum > 0; ++a) share[a] /= sum;
}

double trli_study_predict(const trli_curves *c, const trli_study_point *p, const trli_study_costs *costs)
{
    const double whole[3] = {c->cells[0], c->cells[1], c->cells[2]};
    const int workers = trli_study_workers(p), cores = workers < costs->cores ? workers : costs->cores;
    double cells[3], bytes[3];
    find_patch(c, p->ranks, cells, bytes);
    for (int a = 0; a < 3; ++a) bytes[a] *= p->bytes / p->ranks;
    const double memory = trli_study_roofline(c, cores, costs) * with_ghosts(cells) / with_ghosts(whole);
    const double compute = fmax(c->point[0].time.median / cores, memory);
    return compute + p->messages / p->ranks * costs->message +
           copy_halos(bytes, (double)cores / p->ranks, p->ranks, costs);
}

static void compare_point(trli_bench *bench, const trli_curves *c, const trli_study_point *p,
                          const trli_study_costs *costs)
{
    const double model = trli_study_predict(c, p, costs);
    printf("  %-6s %-36s %5d %6d %10d %11.4g %11.4g %6.2f\n", c->figure, c->name, p->ranks, p->tasks, p->operators,
           p->time.median, model, model / p->time.median);
    trli_json_begin_object(bench->json);
    trli_json_key(bench->json, "figure");
    trli_json_string(bench->json, c->figure);
    trli_json_key(bench->json, "curves");
    trli_json_string(bench->json, c->name);
    trli_json_key(bench->json, "ranks");
    trli_json_integer(bench->json, p->ranks);
    trli_json_key(bench->json, "measured_s");
    trli_json_number(bench->json, p->time.median);
    trli_json_key(bench->json, "model_s");
    trli_json_number(bench->json, model);
    trli_json_end_object(bench->json);
}

/* ---- more ranks than there are ---- */

static const double network_message = 1.5e-6, network_rate = 25e9; /* of a node: seconds, bytes/s */

/* A step of ranks of a core each with side^3 cells, on nodes like this machine, with or without a dt from cfl. */
static double extrapolate(const trli_curves *c, double ranks, double side, bool reduces, const trli_study_costs *costs)
{
    const double all = ranks < costs->cores ? ranks : costs->cores, cells = side * side * side;
    const double ghosts = with_ghosts((double[]){side, side, side});
    const double one = c->point[0].time.median / cells_of(c),
                 memory = ghosts * all * c->bytes_per_cell / fmin(all * costs->one, costs->all);
    const double compute = cells * fmax(one, memory), neighbours = 6,
                 across = 2.0 * c->stages * c->equations * sizeof(double) * side * side;
    if (ranks < 2) return compute;
    const bool far = ranks > costs->cores;
    const double latency = costs->message + (far ? network_message : 0);
    const double sent = far ? 3 * across * costs->cores / network_rate : 0;
    const double copied = copy_halos((double[]){across, across, across}, 1, all, costs);
    const double rounds = ceil(log2(fmin(ranks, costs->cores))) * costs->reduction +
                          (far ? ceil(log2(ranks / costs->cores)) * (costs->reduction + network_message) : 0);
    return compute + copied + neighbours * c->stages * latency + fmax(0, sent - compute) + (reduces ? rounds : 0);
}

static void look_further(trli_bench *bench, const trli_curves *c, const trli_study_costs *costs)
{
    static const double counts[] = {1, 1e1, 1e2, 1e3, 1e4, 1e5}, sides[] = {64, 16, 8};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; ++i)
        for (size_t k = 0; k < sizeof sides / sizeof *sides; ++k) {
            const double full = extrapolate(c, costs->cores, sides[k], false, costs),
                         fixed = extrapolate(c, counts[i], sides[k], false, costs),
                         bounded = extrapolate(c, counts[i], sides[k], true, costs);
            printf("  %-36s %6.0f %4.0f^3 %11.4g %9.3f %12.4g %9.3f\n", c->name, counts[i], sides[k], fixed,
                   full / fixed, bounded, full / bounded);
            trli_json_begin_object(bench->json);
            trli_json_key(bench->json, "curves");
            trli_json_string(bench->json, c->name);
            trli_json_key(bench->json, "ranks");
            trli_json_number(bench->json, counts[i]);
            trli_json_key(bench->json, "cells_per_rank");
            trli_json_number(bench->json, pow(sides[k], 3));
            trli_json_key(bench->json, "fixed_dt_s");
            trli_json_number(bench->json, fixed);
            trli_json_key(bench->json, "cfl_s");
            trli_json_number(bench->json, bounded);
            trli_json_end_object(bench->json);
        }
}

void trli_study_compare(trli_bench *bench, const trli_curves *curves, int ncurves, const trli_study_costs *costs)
{
    double sum = 0;
    int n = 0;
    printf("\n  figure curves                               ranks  tasks  operators    measured       model  ratio\n");
    trli_json_key(bench->json, "model");
    trli_json_begin_array(bench->json);
    for (int i = 0; i < ncurves; ++i)
        for (int k = 1; k < curves[i].n; ++k) {
            const trli_study_point *p = &curves[i].point[k];
            if (p->n == 0 || p->ranks < 2) continue;
            compare_point(bench, &curves[i], p, costs);
            sum += fabs(log(trli_study_predict(&curves[i], p, costs) / p->time.median));
            ++n;
        }
    trli_json_end_array(bench->json);
    if (n > 0) printf("model and measurement differ by a factor of %.2f in the mean (geometric)\n", exp(sum / n));
    printf("\na model, not measured: ranks of one core on nodes of %d cores like these, a network of %.1f us and %.0f "
           "GB/s a node\n  curves                                ranks cells  s per step of a node  dt from cfl of a "
           "node\n",
           costs->cores, 1e6 * network_message, 1e-9 * network_rate);
    trli_json_key(bench->json, "extrapolated");
    trli_json_begin_array(bench->json);
    for (int i = 0; i < ncurves; ++i)
        if (curves[i].point[0].n > 0 && curves[i].figure == curves[0].figure) look_further(bench, &curves[i], costs);
    trli_json_end_array(bench->json);
}
