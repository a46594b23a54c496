/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Advection and diffusion of n scalars on a GPU, as inputs/decks/transport.yaml has them: a deck's steps against the
 * best kernels by hand and the copy of the same fields, and many scalars against few. Updates are of a scalar at a
 * point in a stage. */
#include <stdio.h>
#include <stdlib.h>

#include <trl_device.h>

#include "bench_gpu_impl.h"
#include "bench_impl.h"

enum { CHECKED_STEPS = 3 };

/* So small that central differences are stable with up to a hundred scalars on 256^3 cells. */
static const double diffusivity = 1e-4, dt = 1e-4, velocity[3] = {1, 0.5, 0.25};

static const char deck_text[] =
    "trellis: 1\n"
    "grid: {cells: [%d, %d, %d], periodic: [true, true, true]}\n"
    "parameters: {n: %d, D: %.17g}\n"
    "expressions: {velocity: [%.17g, %.17g, %.17g]}\n"
    "equations: {\"phi{i}\": {for: {i: 1..n}, initial: \"sin(2*pi*x)*cos(2*pi*y)*sin(2*pi*z) + 0.1*random(i)\",\n"
    "  ddt: \"div(i*D*grad(phi{i}) - advective_flux(phi{i}, velocity))\"}}\n"
    "time: {method: %s, dt: %.17g, steps: 1000000000}\n"
    "run: {nan_check: false, time_blocking: 1}\n";

typedef struct row {
    int cells, n;
    bool euler;
    double rate, difference; /* updates/s of the deck; by hand: the largest difference to it */
    double seconds;          /* until the deck is ready: its kernels are compiled */
    double few;              /* the rate of TRLI_GPU_SCALARS scalars; 0: this row is that */
    trli_gpu_transport_result hand;
} row;

static double values_of(const row *r)
{
    return (double)r->cells * r->cells * r->cells;
}

/* The fastest kernels by hand, and what becomes of the deck's first steps beside them. */
static trl_err compare_by_hand(trli_bench *bench, trl_simulation *sim, row *r)
{
    trli_gpu_transport by_hand = {.n = r->cells, .stages = r->euler ? 1 : 3, .dt = dt, .steps = CHECKED_STEPS};
    double *field[TRLI_GPU_SCALARS] = {NULL};
    trl_err err = TRL_OK;
    for (int a = 0; a < 3; ++a) by_hand.velocity[a] = velocity[a];
    for (int f = 0; f < TRLI_GPU_SCALARS; ++f) {
        by_hand.diffusivity[f] = (f + 1) * diffusivity;
        TRL_TRY(trli_bench_alloc(bench->ctx, (size_t)values_of(r), &field[f]));
        (void)trli_gpu_visit(sim, f, field[f], false);
    }
    const char *why = trli_gpu_transport_by_hand(&by_hand, field, &r->hand);
    if (why) TRL_TRY(trl_fail(bench->ctx, TRL_ERR_DEVICE, NULL, "the kernels by hand failed: %s", why));
    TRL_TRY(trli_gpu_make_steps(sim, CHECKED_STEPS));
    for (int f = 0; f < TRLI_GPU_SCALARS; ++f) {
        const double found = trli_gpu_visit(sim, f, field[f], true);
        if (!(found <= r->difference)) r->difference = found;
    }
done:
    for (int f = 0; f < TRLI_GPU_SCALARS; ++f) free(field[f]);
    return err;
}

static trl_err measure_row(trli_bench *bench, row *r)
{
    const int steps = bench->quick ? 5 : (int)(2e11 / (values_of(r) * r->n * (r->euler ? 1 : 3))) + 1;
    char text[1024];
    double seconds;
    trli_case c = {0};
    trl_err err = TRL_OK;
    snprintf(text, sizeof text, deck_text, r->cells, r->cells, r->cells, r->n, diffusivity, velocity[0], velocity[1],
             velocity[2], r->euler ? "euler" : "ssprk3", dt);
    const double start = trli_bench_clock();
    TRL_TRY(trli_case_create(bench->ctx, text, TRLI_ON_GPU, &c));
    r->seconds = trli_bench_clock() - start;
    if (r->few == 0) TRL_TRY(compare_by_hand(bench, c.sim, r));
    TRL_TRY(trli_gpu_time_steps(c.sim, steps, &seconds));
    r->rate = values_of(r) * r->n * (r->euler ? 1 : 3) / seconds;
done:
    trli_case_destroy(&c);
    return err;
}

static void report_row(trli_bench *bench, const row *r)
{
    printf("%4d^3, n = %-3d %-6s deck %6.1f G updates/s, ready after %5.1f s", r->cells, r->n,
           r->euler ? "euler" : "ssprk3", 1e-9 * r->rate, r->seconds);
    if (r->few > 0)
        printf(", %.3f of n = %d\n", r->rate / r->few, TRLI_GPU_SCALARS);
    else
        printf(", by hand %6.1f (%s; one by one %6.1f), copy %6.1f: %.3f of by hand, %.3f of copy; differs by %.1e\n",
               1e-9 * r->hand.updates, r->hand.variant, 1e-9 * r->hand.apart, 1e-9 * r->hand.copy,
               r->rate / r->hand.updates, r->rate / r->hand.copy, r->difference);
    trli_json_begin_object(bench->json);
    trli_json_key(bench->json, "cells");
    trli_json_integer(bench->json, r->cells);
    trli_json_key(bench->json, "scalars");
    trli_json_integer(bench->json, r->n);
    trli_json_key(bench->json, "method");
    trli_json_string(bench->json, r->euler ? "euler" : "ssprk3");
    const struct {
        const char *key;
        double value;
        bool by_hand;
    } number[] = {{"updates_per_s", r->rate, false},  {"ready_s", r->seconds, false},
                  {"by_hand", r->hand.updates, true}, {"by_hand_one_by_one", r->hand.apart, true},
                  {"copy", r->hand.copy, true},       {"difference", r->difference, true}};
    for (size_t i = 0; i < sizeof number / sizeof *number; ++i) {
        if (number[i].by_hand && r->few > 0) continue;
        trli_json_key(bench->json, number[i].key);
        trli_json_number(bench->json, number[i].value);
    }
    trli_json_end_object(bench->json);
}

trl_err trli_bench_gpu_transport(trli_bench *bench)
{
    static const struct {
        int cells, n;
    } sizes[] = {{128, TRLI_GPU_SCALARS}, {128, 60}, {128, 100}, {256, TRLI_GPU_SCALARS}};
    static const int quick_scalars[] = {TRLI_GPU_SCALARS, 60};
    const int n = bench->quick ? 2 : (int)(sizeof sizes / sizeof *sizes);
    trl_err err = TRL_OK;
    if (trl_device_count() == 0)
        return trl_fail(bench->ctx, TRL_ERR_DEVICE, NULL,
                        "gpu_transport needs a GPU, and this process finds none: see 'trellis info'");
    trli_json_key(bench->json, "rows");
    trli_json_begin_array(bench->json);
    for (int euler = 1; euler >= 0; --euler) {
        double few = 0;
        for (int i = 0; i < n; ++i) {
            row r = {.cells = bench->quick ? 32 : sizes[i].cells,
                     .n = bench->quick ? quick_scalars[i] : sizes[i].n,
                     .euler = euler};
            if (r.n != TRLI_GPU_SCALARS) r.few = few;
            TRL_TRY(measure_row(bench, &r));
            if (r.n == TRLI_GPU_SCALARS) few = r.rate;
            report_row(bench, &r);
        }
    }
    trli_json_end_array(bench->json);
done:
    return err;
}
