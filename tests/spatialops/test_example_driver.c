// ctest: np=1,4
/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The program of docs/drivers.md: a warm cylinder in a channel with a cold inlet. */
#include <math.h>
#include <stdio.h>

#include <trl_boundary.h>
#include <trl_field_manager.h>
#include <trl_limiter_body.h>
#include <trl_operator.h>
#include <trl_reduction.h>

enum { NX = 64, NY = 32, STEPS = 200 };
static const double conductivity = 0.005, dt = 0.004;

typedef struct channel {
    trl_layout *layout;
    trl_field_manager *manager;
    trl_workers *workers;
    trl_loop *loop;
    trl_field *T, *rate;                            /* at cells */
    trl_field *velocity[2], *flux[2], *gradient[2]; /* component a at the faces of axis a */
    trl_operator *grad[2], *div;
    trl_boundary *sides;
    trl_mask *cylinder;
} channel;

static double speed(void *data, const double x[3], double t)
{
    (void)data, (void)t;
    return 4 * x[1] * (1 - x[1]);
}

static double in_cylinder(void *data, const double x[3], double t)
{
    (void)data, (void)t;
    return hypot(x[0] - 0.5, x[1] - 0.5) < 0.15;
}

static double in_inlet(void *data, const double x[3], double t)
{
    (void)data, (void)t;
    return x[1] > 0.25 && x[1] < 0.75;
}

static double pulse(void *data, const double x[3], double t)
{
    (void)data, (void)x;
    return 0.5 * sin(10 * t) * sin(10 * t);
}

/* A function's values on the owned points. */
static trl_err set(trl_field *field, double (*value)(void *, const double[3], double))
{
    const trl_layout *layout = trl_field_layout(field);
    trl_location location = trl_field_location(field);
    trl_err err = TRL_OK;
    for (int p = 0; p < layout->nlocal; ++p) {
        const trl_patch *patch = &layout->patch[p];
        trl_array a;
        TRL_TRY(trl_field_array(field, p, &a));
        for (trl_lidx j = a.owned.lo[1]; j < a.owned.hi[1]; ++j)
            for (trl_lidx i = a.owned.lo[0]; i < a.owned.hi[0]; ++i) {
                double x[3] = {trl_grid_coordinate(&layout->grid, location, 0, patch->first[0] + i),
                               trl_grid_coordinate(&layout->grid, location, 1, patch->first[1] + j), 0};
                ((double *)a.at)[trl_array_offset(&a, i, j, 0)] = value ? value(NULL, x, 0) : 0;
            }
        TRL_TRY(trl_field_set_valid(field, p, &a.owned)); /* who writes says what is valid */
    }
done:
    return err;
}

static trl_err new_field(channel *c, const char *name, trl_location location, trl_lidx ghosts, trl_field **field)
{
    trl_field_desc desc = {name, location, {ghosts, ghosts, 0}, {ghosts, ghosts, 0}};
    return trl_field_create(c->manager, c->layout, &desc, field);
}

static trl_err add_conditions(channel *c)
{
    const trl_bc inlet = {.kind = TRL_BC_DIRICHLET, .value.function = pulse, .where = in_inlet};
    const trl_bc cold = {.kind = TRL_BC_DIRICHLET, .value.number = 0}, leaves = {.kind = TRL_BC_OUTFLOW};
    const trl_bc insulated = {.kind = TRL_BC_OPERATOR, .op = c->grad[1], .value.number = 0};
    trl_err err;
    TRL_TRY(trl_boundary_create(c->layout, TRL_CELL, &c->sides));
    TRL_TRY(trl_boundary_add(c->sides, 0, 0, &inlet)); /* x-: the first piece that holds, ... */
    TRL_TRY(trl_boundary_add(c->sides, 0, 0, &cold));  /* ... else this one */
    TRL_TRY(trl_boundary_add(c->sides, 0, 1, &leaves));
    TRL_TRY(trl_boundary_add(c->sides, 1, 0, &insulated));
    TRL_TRY(trl_boundary_add(c->sides, 1, 1, &insulated));
done:
    return err;
}

static trl_err set_up(trl_context *ctx, channel *c)
{
    static const trl_location face[2] = {TRL_XFACE, TRL_YFACE};
    const trl_grid grid = {.dim = 2, .cells = {NX, NY, 1}, .length = {2, 1, 1}, .spacing = {2.0 / NX, 1.0 / NY, 1}};
    trl_operator_desc desc = {.kind = TRL_DIV, .to = TRL_CELL};
    trl_err err;
    TRL_TRY(trl_layout_create(ctx, &grid, NULL, NULL, &c->layout)); /* a patch per rank */
    TRL_TRY(trl_field_manager_create(ctx, &c->manager));
    TRL_TRY(trl_workers_create(ctx, "priority", &c->workers));
    TRL_TRY(trl_loop_create(ctx, c->workers, &c->loop));
    TRL_TRY(trl_operator_create(ctx, &grid, &desc, &c->div));
    TRL_TRY(new_field(c, "T", TRL_CELL, 2, &c->T)); /* limiters read two cells away */
    TRL_TRY(new_field(c, "rate", TRL_CELL, 0, &c->rate));
    for (int a = 0; a < 2; ++a) {
        desc = (trl_operator_desc){.kind = TRL_GRADIENT, .from = TRL_CELL, .to = face[a]};
        TRL_TRY(trl_operator_create(ctx, &grid, &desc, &c->grad[a]));
        TRL_TRY(new_field(c, a ? "v" : "u", face[a], 1, &c->velocity[a]));
        TRL_TRY(new_field(c, a ? "flux y" : "flux x", face[a], 1, &c->flux[a]));
        TRL_TRY(new_field(c, a ? "dT/dy" : "dT/dx", face[a], 1, &c->gradient[a]));
        TRL_TRY(set(c->velocity[a], a ? NULL : speed));
        TRL_TRY(trl_field_exchange(c->velocity[a]));
    }
    TRL_TRY(add_conditions(c));
    TRL_TRY(trl_mask_create(c->layout, TRL_CELL, 0, in_cylinder, NULL, 0, &c->cylinder));
    TRL_TRY(set(c->T, NULL));
done:
    return err;
}

/* T += dt (-div(velocity T - conductivity grad T)), with T = 1 in the cylinder. */
static trl_err step(channel *c, double t)
{
    trl_err err;
    TRL_TRY(trl_mask_assign_number(c->cylinder, c->loop, 1, c->T));
    TRL_TRY(trl_field_exchange(c->T));                      /* ghosts that other patches own, ... */
    TRL_TRY(trl_boundary_fill(c->sides, c->loop, c->T, t)); /* ... then those beyond the sides */
    for (int a = 0; a < 2; ++a) {
        TRL_TRY(trl_advective_flux_apply(TRL_LIMITER_VANLEER, a, c->loop, c->T, c->velocity[a], c->flux[a]));
        TRL_TRY(trl_operator_apply(c->grad[a], c->loop, &c->T, c->gradient[a]));
        TRL_TRY(trl_field_combine(c->flux[a], c->loop, 1, c->flux[a], -conductivity, c->gradient[a]));
    }
    TRL_TRY(trl_operator_apply(c->div, c->loop, c->flux, c->rate));
    TRL_TRY(trl_field_combine(c->T, c->loop, 1, c->T, -dt, c->rate)); /* rate has no ghosts: those of T are stale now */
done:
    return err;
}

static trl_err solve(trl_context *ctx, channel *c, double *least, double *greatest)
{
    double heat;
    trl_err err;
    TRL_TRY(set_up(ctx, c));
    for (int n = 0; n < STEPS; ++n) TRL_TRY(step(c, n * dt));
    trl_mask_not(c->cylinder);
    TRL_TRY(trl_field_reduce(c->T, c->loop, TRL_REDUCE_SUM, TRL_OVER_VOLUMES, c->cylinder, &heat));
    TRL_TRY(trl_field_reduce(c->T, c->loop, TRL_REDUCE_MIN, TRL_OVER_POINTS, c->cylinder, least));
    TRL_TRY(trl_field_reduce(c->T, c->loop, TRL_REDUCE_MAX, TRL_OVER_POINTS, c->cylinder, greatest));
    if (trl_context_rank(ctx) == 0) printf("heat in the fluid %.15g, T from %.15g to %.15g\n", heat, *least, *greatest);
done:
    return err;
}

static void clean_up(channel *c)
{
    for (int a = 0; a < 2; ++a) {
        trl_field_destroy(&c->velocity[a]);
        trl_field_destroy(&c->flux[a]);
        trl_field_destroy(&c->gradient[a]);
        trl_operator_destroy(&c->grad[a]);
    }
    trl_field_destroy(&c->T);
    trl_field_destroy(&c->rate);
    trl_operator_destroy(&c->div);
    trl_boundary_destroy(&c->sides);
    trl_mask_destroy(&c->cylinder);
    trl_loop_destroy(&c->loop);
    trl_workers_destroy(&c->workers);
    trl_field_manager_destroy(&c->manager);
    trl_layout_destroy(&c->layout);
}

static void report(const trl_context *ctx)
{
    const trl_diagnostic *list;
    char text[1000];
    int n = trl_context_diagnostics(ctx, &list);
    for (int i = 0; i < n; ++i) {
        trl_diagnostic_format(&list[i], text, sizeof text);
        fputs(text, stderr);
    }
}

int main(int argc, char **argv)
{
    trl_context *ctx = NULL;
    channel c = {.layout = NULL};
    double least = -1, greatest = 2;
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);
    trl_err err = trl_context_create(MPI_COMM_WORLD, NULL, &ctx);
    if (err == TRL_OK) err = solve(ctx, &c, &least, &greatest);
    if (ctx) report(ctx);
    clean_up(&c);
    trl_context_destroy(&ctx);
    MPI_Finalize();
    return err != TRL_OK || !(least >= 0 && greatest > 0.5 && greatest <= 1);
}
