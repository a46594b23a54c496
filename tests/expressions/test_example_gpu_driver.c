// ctest: np=1,2 labels=gpu emulated=1
/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The driver of docs/gpu.md: heat on a periodic square, whose fields live on a GPU. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <trl_field_device.h>
#include <trl_operator.h>
#include <trl_reduction.h>

enum { CELLS = 32, STEPS = 50 };
static const double dt = 1e-4, pi = 3.14159265358979323846;

typedef struct square {
    trl_layout *layout;
    trl_field_manager *manager;
    trl_devices *devices;
    trl_field_device *gpu;
    trl_operator *laplacian;
    trl_field *T, *rate;
} square;

/* sin(2 pi x) sin(2 pi y) on the owned points. */
static trl_err set(trl_field *field)
{
    const trl_layout *layout = trl_field_layout(field);
    trl_err err = TRL_OK;
    for (int p = 0; p < layout->nlocal; ++p) {
        const trl_patch *patch = &layout->patch[p];
        trl_array a;
        TRL_TRY(trl_field_array(field, p, &a));
        for (trl_lidx j = a.owned.lo[1]; j < a.owned.hi[1]; ++j)
            for (trl_lidx i = a.owned.lo[0]; i < a.owned.hi[0]; ++i)
                ((double *)a.at)[trl_array_offset(&a, i, j, 0)] =
                    sin(2 * pi * trl_grid_coordinate(&layout->grid, TRL_CELL, 0, patch->first[0] + i)) *
                    sin(2 * pi * trl_grid_coordinate(&layout->grid, TRL_CELL, 1, patch->first[1] + j));
        TRL_TRY(trl_field_set_valid(field, p, &a.owned));
    }
done:
    return err;
}

static trl_err set_up(trl_context *ctx, square *s)
{
    const trl_grid grid = {.dim = 2,
                           .cells = {CELLS, CELLS, 1},
                           .length = {1, 1, 1},
                           .spacing = {1.0 / CELLS, 1.0 / CELLS, 1},
                           .periodic = {true, true, false}};
    const trl_field_desc T = {"T", TRL_CELL, {1, 1, 0}, {1, 1, 0}}, rate = {"rate", TRL_CELL, {0, 0, 0}, {0, 0, 0}};
    trl_err err;
    TRL_TRY(trl_layout_create(ctx, &grid, NULL, NULL, &s->layout));
    TRL_TRY(trl_field_manager_create(ctx, &s->manager));
    TRL_TRY(trl_operator_create(ctx, &grid, &(trl_operator_desc){.kind = TRL_LAPLACIAN}, &s->laplacian));
    TRL_TRY(trl_devices_open(ctx, "gpu", &s->devices));
    TRL_TRY(trl_field_device_create(s->manager, s->devices, 0, &s->gpu)); /* before the fields */
    TRL_TRY(trl_field_create(s->manager, s->layout, &T, &s->T));
    TRL_TRY(trl_field_create(s->manager, s->layout, &rate, &s->rate));
    TRL_TRY(set(s->T));                    /* on the host, through trl_field_array */
    TRL_TRY(trl_field_move(s->T, s->gpu)); /* with its values */
    TRL_TRY(trl_field_move(s->rate, s->gpu));
done:
    return err;
}

/* T += dt laplacian(T): three launches, no copy. */
static trl_err step(square *s)
{
    trl_err err;
    TRL_TRY(trl_field_exchange(s->T));
    TRL_TRY(trl_operator_apply(s->laplacian, NULL, &s->T, s->rate));
    TRL_TRY(trl_field_combine(s->T, NULL, 1, s->T, dt, s->rate));
done:
    return err;
}

/* Only a partial result of the norm comes back. */
static trl_err solve(trl_context *ctx, square *s, double *largest)
{
    trl_err err;
    TRL_TRY(set_up(ctx, s));
    for (int n = 0; n < STEPS; ++n) TRL_TRY(step(s));
    TRL_TRY(trl_field_reduce(s->T, NULL, TRL_REDUCE_LINF, TRL_OVER_POINTS, NULL, largest));
done:
    return err;
}

static void clean_up(square *s)
{
    trl_field_destroy(&s->T);
    trl_field_destroy(&s->rate);
    trl_operator_destroy(&s->laplacian);
    trl_field_device_destroy(&s->gpu);
    trl_field_manager_destroy(&s->manager);
    trl_devices_close(&s->devices);
    trl_layout_destroy(&s->layout);
}

static int fail(const trl_context *ctx, trl_err err)
{
    const trl_diagnostic *list;
    char text[1000];
    const int n = trl_context_diagnostics(ctx, &list);
    for (int i = 0; i < n; ++i) {
        trl_diagnostic_format(&list[i], text, sizeof text);
        fputs(text, stderr);
    }
    return err != TRL_OK;
}

int main(int argc, char **argv)
{
    const char *required = getenv("TRL_REQUIRE_GPU");
    const double decay = 4 * pow(CELLS * sin(pi / CELLS), 2) * 2; /* of the mode on this grid */
    trl_context *ctx = NULL;
    square s = {.layout = NULL};
    double largest = 0;
    int provided;
    if (trl_device_count() == 0) return required && strcmp(required, "1") == 0 ? 1 : 77;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);
    trl_err err = trl_context_create(MPI_COMM_WORLD, NULL, &ctx);
    if (err == TRL_OK) err = solve(ctx, &s, &largest);
    const int failed = ctx ? fail(ctx, err) : 1;
    const double expected = pow(1 - dt * decay, STEPS) * pow(cos(pi / CELLS), 2); /* cells lie beside the maximum */
    if (!failed) printf("largest %.15g, expected %.15g\n", largest, expected);
    clean_up(&s);
    trl_context_destroy(&ctx);
    MPI_Finalize();
    return failed || fabs(largest - expected) > 1e-12;
}
