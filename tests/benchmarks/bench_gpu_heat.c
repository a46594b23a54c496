/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Heat on a GPU: a deck's steps against the best kernel by hand and the copy of the same fields. */
#include <stdio.h>
#include <stdlib.h>

#include <trl_device.h>

#include "bench_gpu_impl.h"
#include "bench_impl.h"

enum { CHECKED_STEPS = 10 };

static const char deck_text[] =
    "trellis: 1\n"
    "grid: {cells: [%d, %d, %d], periodic: [%s, %s, %s]}\n"
    "parameters: {k_dt: %.17g}\n"
    "equations: {T: {initial: \"sin(2*pi*x)*cos(2*pi*y)*sin(2*pi*z) + 0.1*random(7)\", ddt: \"k_dt*laplacian(T)\"%s}}\n"
    "time: {method: euler, dt: 1, steps: 1000000000}\n"
    "run: {nan_check: %s, time_blocking: 1}\n";

static const char sides[] = ", boundary: {x-: {dirichlet: 0}, x+: {dirichlet: 0}, y-: {dirichlet: 0}, "
                            "y+: {dirichlet: 0}, z-: {dirichlet: 0}, z+: {dirichlet: 0}}";

typedef struct row {
    int n;
    bool periodic;
    double k_dt;
    double *initial, *by_hand;
    double rate, checked, difference; /* of the deck: updates/s without and with the check of values; to by_hand */
    trli_gpu_heat_result hand;
} row;

static trl_err create(trli_bench *bench, const row *r, bool check, trli_case *c)
{
    const char *round = r->periodic ? "true" : "false";
    char text[1024];
    snprintf(text, sizeof text, deck_text, r->n, r->n, r->n, round, round, round, r->k_dt, r->periodic ? "" : sides,
             check ? "true" : "false");
    return trli_case_create(bench->ctx, text, TRLI_ON_GPU, c);
}

static trl_err measure_row(trli_bench *bench, row *r)
{
    const size_t values = (size_t)r->n * (size_t)r->n * (size_t)r->n;
    const int steps = bench->quick ? 20 : r->n <= 128 ? 2000 : r->n <= 256 ? 500 : 100;
    const trli_gpu_heat heat = {r->n, r->periodic, r->k_dt, CHECKED_STEPS};
    trli_case c = {0};
    double seconds;
    trl_err err = TRL_OK;
    TRL_TRY(trli_bench_alloc(bench->ctx, values, &r->initial));
    TRL_TRY(trli_bench_alloc(bench->ctx, values, &r->by_hand));
    TRL_TRY(create(bench, r, false, &c));
    (void)trli_gpu_visit(c.sim, 0, r->initial, false);
    const char *why = trli_gpu_heat_by_hand(&heat, r->initial, r->by_hand, &r->hand);
    if (why) TRL_TRY(trl_fail(bench->ctx, TRL_ERR_DEVICE, NULL, "the kernels by hand failed: %s", why));
    TRL_TRY(trli_gpu_make_steps(c.sim, CHECKED_STEPS));
    r->difference = trli_gpu_visit(c.sim, 0, r->by_hand, true);
    TRL_TRY(trli_gpu_time_steps(c.sim, steps, &seconds));
    r->rate = (double)values / seconds;
    trli_case_destroy(&c);
    TRL_TRY(create(bench, r, true, &c));
    TRL_TRY(trli_gpu_time_steps(c.sim, steps, &seconds));
    r->checked = (double)values / seconds;
done:
    trli_case_destroy(&c);
    return err;
}

static void report_row(trli_bench *bench, const row *r)
{
    printf("%4d^3 %-9s deck %7.1f, with nan_check %7.1f, by hand %7.1f (%s), copy %7.1f G updates/s: "
           "%.3f of by hand, %.3f of copy; differs by %.1e\n",
           r->n, r->periodic ? "periodic" : "sides", 1e-9 * r->rate, 1e-9 * r->checked, 1e-9 * r->hand.updates,
           r->hand.variant, 1e-9 * r->hand.copy, r->rate / r->hand.updates, r->rate / r->hand.copy, r->difference);
    trli_json_begin_object(bench->json);
    trli_json_key(bench->json, "cells");
    trli_json_integer(bench->json, r->n);
    trli_json_key(bench->json, "periodic");
    trli_json_bool(bench->json, r->periodic);
    const struct {
        const char *key;
        double value;
    } number[] = {{"updates_per_s", r->rate},
                  {"updates_per_s_checked", r->checked},
                  {"by_hand", r->hand.updates},
                  {"copy", r->hand.copy},
                  {"difference", r->difference}};
    for (size_t i = 0; i < sizeof number / sizeof *number; ++i) {
        trli_json_key(bench->json, number[i].key);
        trli_json_number(bench->json, number[i].value);
    }
    trli_json_end_object(bench->json);
}

trl_err trli_bench_gpu_heat(trli_bench *bench)
{
    static const int sizes[] = {128, 256, 512, 640}, quick_sizes[] = {32};
    const int *size = bench->quick ? quick_sizes : sizes;
    const int n = bench->quick ? 1 : (int)(sizeof sizes / sizeof *sizes);
    trl_err err = TRL_OK;
    if (trl_device_count() == 0)
        return trl_fail(bench->ctx, TRL_ERR_DEVICE, NULL,
                        "gpu_heat needs a GPU, and this process finds none: see 'trellis info'");
    trli_json_key(bench->json, "rows");
    trli_json_begin_array(bench->json);
    for (int i = 0; i < 2 * n; ++i) {
        row r = {.n = size[i / 2], .periodic = i % 2 == 0};
        void *memory[2];
        r.k_dt = 0.1 / ((double)r.n * r.n);
        err = measure_row(bench, &r);
        if (err == TRL_OK) report_row(bench, &r);
        memory[0] = r.initial;
        memory[1] = r.by_hand;
        for (int m = 0; m < 2; ++m) free(memory[m]);
        TRL_TRY(err);
    }
    trli_json_end_array(bench->json);
done:
    return err;
}
