/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Fields of a driver on a GPU: a Laplacian that is applied again and again, and reductions of its result. */
#include <stdio.h>

#include <trl_field_device.h>
#include <trl_operator.h>
#include <trl_reduction.h>

#include "bench_impl.h"
#include "clock_impl.h"

enum { REDUCED = 3 };
static const struct {
    trl_reduction kind;
    const char *key;
} reduced[REDUCED] = {{TRL_REDUCE_SUM, "sum"}, {TRL_REDUCE_L2, "l2"}, {TRL_REDUCE_LINF, "linf"}};

typedef struct row {
    int n;
    double updates, each, reduced[REDUCED]; /* points/s; seconds of an application that is waited for */
} row;

typedef struct problem {
    trl_devices *devices;
    trl_layout *layout;
    trl_field_manager *manager;
    trl_field_device *gpu;
    trl_field *in, *out;
    trl_operator *laplacian;
} problem;

static trl_err fill(trl_field *field)
{
    trl_array a;
    trl_err err;
    TRL_TRY(trl_field_array(field, 0, &a));
    for (trl_lidx k = a.held.lo[2]; k < a.held.hi[2]; ++k)
        for (trl_lidx j = a.held.lo[1]; j < a.held.hi[1]; ++j)
            for (trl_lidx i = a.held.lo[0]; i < a.held.hi[0]; ++i)
                ((double *)a.at)[trl_array_offset(&a, i, j, k)] = 1e-3 * (i * 7 + j * 3 + k * 5);
    err = trl_field_set_valid(field, 0, &a.held);
done:
    return err;
}

static trl_err create(trli_bench *bench, int n, problem *p)
{
    static const int one[3] = {1, 1, 1};
    const trl_grid grid = {.dim = 3,
                           .cells = {n, n, n},
                           .length = {1, 1, 1},
                           .spacing = {1.0 / n, 1.0 / n, 1.0 / n},
                           .periodic = {true, true, true}};
    const trl_operator_desc laplacian = {.kind = TRL_LAPLACIAN};
    const trl_field_desc in = {"in", TRL_CELL, {1, 1, 1}, {1, 1, 1}}, out = {.name = "out", .location = TRL_CELL};
    trl_err err;
    TRL_TRY(trl_devices_open(bench->ctx, "0", &p->devices));
    TRL_TRY(trl_layout_create(bench->ctx, &grid, one, NULL, &p->layout));
    TRL_TRY(trl_field_manager_create(bench->ctx, &p->manager));
    TRL_TRY(trl_field_device_create(p->manager, p->devices, 0, &p->gpu));
    TRL_TRY(trl_operator_create(bench->ctx, &grid, &laplacian, &p->laplacian));
    TRL_TRY(trl_field_create(p->manager, p->layout, &in, &p->in));
    TRL_TRY(trl_field_create(p->manager, p->layout, &out, &p->out));
    TRL_TRY(fill(p->in));
    TRL_TRY(trl_field_move(p->in, p->gpu));
    err = trl_field_move(p->out, p->gpu);
done:
    return err;
}

static void destroy(problem *p)
{
    trl_field_destroy(&p->in);
    trl_field_destroy(&p->out);
    trl_operator_destroy(&p->laplacian);
    trl_field_device_destroy(&p->gpu);
    trl_field_manager_destroy(&p->manager);
    trl_layout_destroy(&p->layout);
    trl_devices_close(&p->devices);
}

static trl_err apply(problem *p, int times, bool wait, double *seconds)
{
    const double start = trli_clock();
    trl_err err = TRL_OK;
    for (int i = 0; i < times; ++i) {
        TRL_TRY(trl_operator_apply(p->laplacian, NULL, &p->in, p->out));
        if (wait) TRL_TRY(trl_field_device_finish(p->gpu));
    }
    TRL_TRY(trl_field_device_finish(p->gpu));
    *seconds = (trli_clock() - start) / times;
done:
    return err;
}

static trl_err reduce(problem *p, trl_reduction kind, int times, double *seconds)
{
    double value, start = 0;
    trl_err err = TRL_OK;
    for (int i = -2; i < times; ++i) {
        if (i == 0) start = trli_clock();
        TRL_TRY(trl_field_reduce(p->out, NULL, kind, TRL_OVER_VOLUMES, NULL, &value));
    }
    *seconds = (trli_clock() - start) / times;
done:
    return err;
}

static trl_err measure(trli_bench *bench, row *r)
{
    const double points = (double)r->n * r->n * r->n;
    const int times = bench->quick ? 5 : r->n <= 256 ? 1000 : 200;
    problem p = {.devices = NULL};
    double seconds;
    trl_err err;
    TRL_TRY(create(bench, r->n, &p));
    TRL_TRY(apply(&p, 3, false, &seconds));
    TRL_TRY(apply(&p, times, false, &seconds));
    r->updates = points / seconds;
    TRL_TRY(apply(&p, times, true, &r->each));
    for (int k = 0; k < REDUCED; ++k) {
        TRL_TRY(reduce(&p, reduced[k].kind, times, &seconds));
        r->reduced[k] = points / seconds;
    }
done:
    destroy(&p);
    return err;
}

static void report(trli_bench *bench, const row *r)
{
    trli_json_begin_object(bench->json);
    trli_json_key(bench->json, "cells");
    trli_json_integer(bench->json, r->n);
    trli_json_key(bench->json, "updates_per_s");
    trli_json_number(bench->json, r->updates);
    trli_json_key(bench->json, "seconds_waited_for");
    trli_json_number(bench->json, r->each);
    printf("%4d^3 laplacian %7.1f G updates/s, %6.1f us if each is waited for", r->n, 1e-9 * r->updates, 1e6 * r->each);
    for (int k = 0; k < REDUCED; ++k) {
        printf("; %s %7.1f G points/s", reduced[k].key, 1e-9 * r->reduced[k]);
        trli_json_key(bench->json, reduced[k].key);
        trli_json_number(bench->json, r->reduced[k]);
    }
    printf("\n");
    trli_json_end_object(bench->json);
}

trl_err trli_bench_gpu_fields(trli_bench *bench)
{
    static const int sizes[] = {64, 128, 256, 512}, quick_sizes[] = {32};
    const int *size = bench->quick ? quick_sizes : sizes;
    const int n = bench->quick ? 1 : (int)(sizeof sizes / sizeof *sizes);
    trl_err err = TRL_OK;
    if (trl_device_count() == 0)
        return trl_fail(bench->ctx, TRL_ERR_DEVICE, NULL,
                        "gpu_fields needs a GPU, and this process finds none: see 'trellis info'");
    trli_json_key(bench->json, "rows");
    trli_json_begin_array(bench->json);
    for (int i = 0; i < n; ++i) {
        row r = {.n = size[i]};
        TRL_TRY(measure(bench, &r));
        report(bench, &r);
    }
    trli_json_end_array(bench->json);
done:
    return err;
}
