/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Two heat sources as a plugin: `heat_source`, a spot that pulses in time, and `manufactured_heat`, the source that
 * makes a chosen temperature the exact solution of the heat equation with variable conductivity (method of manufactured
 * solutions; Roache, "Code verification by the method of manufactured solutions", 2002). Both read coordinates and time
 * only. */
#include <math.h>

#include <trl_plugin.h>

#define PI 3.14159265358979323846

/* ---- heat_source: S = amplitude exp(-r^2/width^2) * sin^2(pi*t/period) ---- */

enum { SPOT_AMPLITUDE, SPOT_WIDTH, SPOT_PERIOD, SPOT_CENTRE_X, SPOT_CENTRE_Y, SPOT_CENTRE_Z };

static const trl_param_desc spot_params[] = {
    [SPOT_AMPLITUDE] =
        {.key = "amplitude", .kind = TRL_PARAM_NUMBER, .unit = "K/s", .doc = "largest heating rate", .fallback = 1},
    [SPOT_WIDTH] = {.key = "width",
                    .kind = TRL_PARAM_NUMBER,
                    .required = true,
                    .unit = "m",
                    .min = 1e-12,
                    .max = 1e12,
                    .doc = "distance at which it falls to 1/e"},
    [SPOT_PERIOD] = {.key = "period",
                     .kind = TRL_PARAM_NUMBER,
                     .unit = "s",
                     .fallback = 1,
                     .min = 1e-12,
                     .max = 1e12,
                     .doc = "time from one pulse to the next"},
    [SPOT_CENTRE_X] =
        {.key = "centre_x", .kind = TRL_PARAM_NUMBER, .unit = "m", .fallback = 0.5, .doc = "its centre along x"},
    [SPOT_CENTRE_Y] =
        {.key = "centre_y", .kind = TRL_PARAM_NUMBER, .unit = "m", .fallback = 0.5, .doc = "its centre along y"},
    [SPOT_CENTRE_Z] =
        {.key = "centre_z", .kind = TRL_PARAM_NUMBER, .unit = "m", .fallback = 0.5, .doc = "its centre along z"},
    {0},
};

typedef struct spot_state {
    double amplitude, width, period, centre[3];
} spot_state;

static trl_err spot_setup(void *data, const trl_setup_args *args)
{
    *(spot_state *)data = (spot_state){
        .amplitude = args->params[SPOT_AMPLITUDE].number,
        .width = args->params[SPOT_WIDTH].number,
        .period = args->params[SPOT_PERIOD].number,
        .centre = {args->params[SPOT_CENTRE_X].number, args->params[SPOT_CENTRE_Y].number,
                   args->params[SPOT_CENTRE_Z].number},
    };
    return TRL_OK;
}

static trl_err advertise_source(const void *data, trl_deps *deps)
{
    (void)data;
    return trl_deps_compute(deps, "S", TRL_CELL);
}

/* Coordinate along an axis of a patch's cell. */
static double cell_coordinate(const trl_eval_args *args, int axis, trl_lidx i)
{
    return trl_grid_coordinate(args->grid, TRL_CELL, axis, args->patch->first[axis] + i);
}

/* Square of the distance from the centre along one axis, 0 along an axis that the grid lacks. */
static double square_distance(const spot_state *s, const trl_eval_args *args, int axis, trl_lidx i)
{
    if (axis >= args->grid->dim) return 0;
    double d = cell_coordinate(args, axis, i) - s->centre[axis];
    return d * d;
}

static trl_err spot_evaluate(const void *data, const trl_eval_args *args, const trl_box *box)
{
    const spot_state *s = data;
    const trl_array *source = &args->computed[0];
    double pulse = sin(PI * args->t / s->period), scale = s->amplitude * pulse * pulse;
    for (trl_lidx k = box->lo[2]; k < box->hi[2]; ++k) {
        for (trl_lidx j = box->lo[1]; j < box->hi[1]; ++j) {
            double *row = (double *)source->at + trl_array_offset(source, 0, j, k);
            double r2 = square_distance(s, args, 1, j) + square_distance(s, args, 2, k);
            for (trl_lidx i = box->lo[0]; i < box->hi[0]; ++i)
                row[i] = scale * exp(-(square_distance(s, args, 0, i) + r2) / (s->width * s->width));
        }
    }
    return TRL_OK;
}

/* ---- manufactured_heat: T = cos(omega*t) * product of sin(pi*x_a), k = conductivity*(1 + slope*x) ---- */

enum { HEAT_CONDUCTIVITY, HEAT_SLOPE, HEAT_OMEGA };

static const trl_param_desc heat_params[] = {
    [HEAT_CONDUCTIVITY] =
        {.key = "conductivity", .kind = TRL_PARAM_NUMBER, .required = true, .unit = "m^2/s", .doc = "k where x is 0"},
    [HEAT_SLOPE] = {.key = "slope", .kind = TRL_PARAM_NUMBER, .unit = "1/m", .doc = "relative growth of k along x"},
    [HEAT_OMEGA] =
        {.key = "omega", .kind = TRL_PARAM_NUMBER, .unit = "1/s", .fallback = 1, .doc = "angular frequency of T"},
    {0},
};

typedef struct heat_state {
    double conductivity, slope, omega;
} heat_state;

static trl_err heat_setup(void *data, const trl_setup_args *args)
{
    *(heat_state *)data = (heat_state){
        .conductivity = args->params[HEAT_CONDUCTIVITY].number,
        .slope = args->params[HEAT_SLOPE].number,
        .omega = args->params[HEAT_OMEGA].number,
    };
    return TRL_OK;
}

static double sine(const trl_eval_args *args, int axis, trl_lidx i)
{
    return axis < args->grid->dim ? sin(PI * cell_coordinate(args, axis, i)) : 1;
}

/* S = dT/dt - div(k*grad(T)) = dT/dt - k*laplacian(T) - dk/dx*dT/dx. */
static trl_err heat_evaluate(const void *data, const trl_eval_args *args, const trl_box *box)
{
    const heat_state *s = data;
    const trl_array *source = &args->computed[0];
    double c = cos(s->omega * args->t), rate = -s->omega * sin(s->omega * args->t), dim = args->grid->dim;
    for (trl_lidx k = box->lo[2]; k < box->hi[2]; ++k) {
        for (trl_lidx j = box->lo[1]; j < box->hi[1]; ++j) {
            double *row = (double *)source->at + trl_array_offset(source, 0, j, k);
            double across = sine(args, 1, j) * sine(args, 2, k);
            for (trl_lidx i = box->lo[0]; i < box->hi[0]; ++i) {
                double x = cell_coordinate(args, 0, i), shape = sin(PI * x) * across;
                double diffusion = dim * PI * PI * (1 + s->slope * x) * shape - s->slope * PI * cos(PI * x) * across;
                row[i] = rate * shape + s->conductivity * c * diffusion;
            }
        }
    }
    return TRL_OK;
}

static const trl_expr_type types[] = {
    {
        .abi = TRL_PLUGIN_ABI,
        .size = sizeof(trl_expr_type),
        .name = "heat_source",
        .doc = "a spot of heat that pulses in time",
        .params = spot_params,
        .flags = TRL_EXPR_POINTWISE | TRL_EXPR_TILED | TRL_EXPR_PURE,
        .state_size = sizeof(spot_state),
        .setup = spot_setup,
        .advertise_dependents = advertise_source,
        .evaluate = spot_evaluate,
    },
    {
        .abi = TRL_PLUGIN_ABI,
        .size = sizeof(trl_expr_type),
        .name = "manufactured_heat",
        .doc =
            "the source that makes cos(omega*t)*sin(pi*x)*sin(pi*y)*sin(pi*z) exact for k = conductivity*(1 + slope*x)",
        .params = heat_params,
        .flags = TRL_EXPR_POINTWISE | TRL_EXPR_TILED | TRL_EXPR_PURE,
        .state_size = sizeof(heat_state),
        .setup = heat_setup,
        .advertise_dependents = advertise_source,
        .evaluate = heat_evaluate,
    },
};

TRL_API const trl_plugin trl_plugin_entry = {
    TRL_PLUGIN_ABI, sizeof(trl_plugin), sizeof(trl_expr_type), "heat_source", types, sizeof types / sizeof *types,
};
