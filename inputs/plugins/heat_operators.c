/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The heat equation as two device-neutral types of four methods each: `fourier_flux`, q = -lambda grad(T), and
 * `heat_balance`, dTdt = (-div(q) + S)/rho_cp (Robison 2014, equations 3.1 and 3.2). Neither knows arrays, workers or
 * devices: what they apply runs where the fields are. */
#include <trl_plugin.h>

/* Names and faces of the flux' components. */
static const char *const component[3] = {"q.x", "q.y", "q.z"};
static const trl_location face[3] = {TRL_XFACE, TRL_YFACE, TRL_ZFACE};

/* ---- fourier_flux ---- */

static const trl_param_desc flux_params[] = {
    {.key = "lambda", .kind = TRL_PARAM_NUMBER, .required = true, .unit = "W/(m K)", .doc = "thermal conductivity"},
    {0},
};

typedef struct flux_state {
    double lambda;
    int temperature, flux[3];
    const trl_operator *gradient[3];
} flux_state;

static trl_err flux_setup(void *data, const trl_setup_args *args)
{
    ((flux_state *)data)->lambda = args->params[0].number;
    return TRL_OK;
}

static trl_err flux_advertise_dependents(const void *data, trl_deps *deps)
{
    trl_err err = TRL_OK;
    (void)data;
    for (int a = 0; a < trl_deps_grid(deps)->dim; ++a) TRL_TRY(trl_deps_compute(deps, component[a], face[a]));
    TRL_TRY(trl_deps_require(deps, "T", TRL_CELL, NULL, NULL));
done:
    return err;
}

static trl_err flux_bind_fields(void *data, const trl_binding *binding)
{
    flux_state *s = data;
    s->temperature = trl_binding_required(binding, "T");
    for (int a = 0; a < 3; ++a) s->flux[a] = trl_binding_computed(binding, component[a]);
    return TRL_OK;
}

static trl_err flux_bind_operators(void *data, const trl_binding *binding)
{
    flux_state *s = data;
    trl_err err = TRL_OK;
    for (int a = 0; a < trl_binding_grid(binding)->dim; ++a) {
        const trl_operator_desc desc = {.kind = TRL_GRADIENT, .from = TRL_CELL, .to = face[a]};
        TRL_TRY(trl_binding_operator(binding, &desc, &s->gradient[a]));
    }
done:
    return err;
}

static trl_err flux_evaluate(const void *data, const trl_eval_args *args, const trl_box *box)
{
    const flux_state *s = data;
    trl_eval_value temperature, factors[2], q;
    trl_err err = TRL_OK;
    (void)box;
    TRL_TRY(trl_eval_required(args, s->temperature, &temperature));
    TRL_TRY(trl_eval_number(args, -s->lambda, &factors[0]));
    for (int a = 0; a < args->grid->dim; ++a) {
        TRL_TRY(trl_eval_apply(args, s->gradient[a], &temperature, &factors[1]));
        TRL_TRY(trl_eval_function(args, "*", 2, factors, &q));
        TRL_TRY(trl_eval_set(args, s->flux[a], q));
    }
done:
    return err;
}

/* ---- heat_balance ---- */

static const trl_param_desc balance_params[] = {
    {.key = "rho_cp",
     .kind = TRL_PARAM_NUMBER,
     .unit = "J/(m^3 K)",
     .doc = "heat capacity of a volume",
     .fallback = 1,
     .min = 1e-30,
     .max = 1e30},
    {0},
};

typedef struct balance_state {
    double rho_cp;
    int flux[3], source, rate;
    const trl_operator *divergence;
} balance_state;

static trl_err balance_setup(void *data, const trl_setup_args *args)
{
    ((balance_state *)data)->rho_cp = args->params[0].number;
    return TRL_OK;
}

static trl_err balance_advertise_dependents(const void *data, trl_deps *deps)
{
    trl_err err = TRL_OK;
    (void)data;
    TRL_TRY(trl_deps_compute(deps, "dTdt", TRL_CELL));
    for (int a = 0; a < trl_deps_grid(deps)->dim; ++a)
        TRL_TRY(trl_deps_require(deps, component[a], face[a], NULL, NULL));
    TRL_TRY(trl_deps_require(deps, "S", TRL_CELL, NULL, NULL));
done:
    return err;
}

static trl_err balance_bind_fields(void *data, const trl_binding *binding)
{
    balance_state *s = data;
    for (int a = 0; a < 3; ++a) s->flux[a] = trl_binding_required(binding, component[a]);
    s->source = trl_binding_required(binding, "S");
    s->rate = trl_binding_computed(binding, "dTdt");
    return TRL_OK;
}

static trl_err balance_bind_operators(void *data, const trl_binding *binding)
{
    const trl_operator_desc desc = {.kind = TRL_DIV, .to = TRL_CELL};
    return trl_binding_operator(binding, &desc, &((balance_state *)data)->divergence);
}

static trl_err balance_evaluate(const void *data, const trl_eval_args *args, const trl_box *box)
{
    const balance_state *s = data;
    trl_eval_value q[3], terms[2], fraction[2], rate;
    trl_err err = TRL_OK;
    (void)box;
    for (int a = 0; a < args->grid->dim; ++a) TRL_TRY(trl_eval_required(args, s->flux[a], &q[a]));
    TRL_TRY(trl_eval_apply(args, s->divergence, q, &terms[0]));
    TRL_TRY(trl_eval_function(args, "-", 1, &terms[0], &terms[0]));
    TRL_TRY(trl_eval_required(args, s->source, &terms[1]));
    TRL_TRY(trl_eval_function(args, "+", 2, terms, &fraction[0]));
    TRL_TRY(trl_eval_number(args, s->rho_cp, &fraction[1]));
    TRL_TRY(trl_eval_function(args, "/", 2, fraction, &rate));
    TRL_TRY(trl_eval_set(args, s->rate, rate));
done:
    return err;
}

static const trl_expr_type types[] = {
    {
        .abi = TRL_PLUGIN_ABI,
        .size = sizeof(trl_expr_type),
        .name = "fourier_flux",
        .doc = "heat flux by Fourier's law, q = -lambda grad(T)",
        .params = flux_params,
        .flags = TRL_EXPR_NEUTRAL,
        .state_size = sizeof(flux_state),
        .setup = flux_setup,
        .advertise_dependents = flux_advertise_dependents,
        .bind_fields = flux_bind_fields,
        .bind_operators = flux_bind_operators,
        .evaluate = flux_evaluate,
    },
    {
        .abi = TRL_PLUGIN_ABI,
        .size = sizeof(trl_expr_type),
        .name = "heat_balance",
        .doc = "rate of temperature from heat flux and source, dTdt = (-div(q) + S)/rho_cp",
        .params = balance_params,
        .flags = TRL_EXPR_NEUTRAL,
        .state_size = sizeof(balance_state),
        .setup = balance_setup,
        .advertise_dependents = balance_advertise_dependents,
        .bind_fields = balance_bind_fields,
        .bind_operators = balance_bind_operators,
        .evaluate = balance_evaluate,
    },
};

TRL_API const trl_plugin trl_plugin_entry = {
    TRL_PLUGIN_ABI, sizeof(trl_plugin), sizeof(trl_expr_type), "heat_operators", types, sizeof types / sizeof *types,
};
