/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* For boundary values that read what plugins compute: `twice` is POINTWISE, `beside` adds neighbours along y (or x in
 * 1-D), `held` is a modifier that sets its side to a required field's value there. Parameter `at`: the location's bits,
 * of what is required (`of`) and computed. */
#include <trl_plugin.h>

enum { AT, OF };

static const trl_param_desc params[] = {
    [AT] = {.key = "at", .kind = TRL_PARAM_NUMBER, .doc = "location of the result", .fallback = 0, .max = 7},
    [OF] = {.key = "of", .kind = TRL_PARAM_NUMBER, .doc = "location of the input", .fallback = 0, .max = 7},
    {0},
};

typedef struct state {
    int at, of, along;
} state;

static trl_err setup(void *data, const trl_setup_args *args)
{
    *(state *)data = (state){(int)args->params[AT].number, (int)args->params[OF].number, args->grid->dim > 1};
    return TRL_OK;
}

static trl_err advertise_twice(const void *data, trl_deps *deps)
{
    const state *s = data;
    trl_err err = trl_deps_compute(deps, "twice", (trl_location)s->at);
    return err == TRL_OK ? trl_deps_require(deps, "input", (trl_location)s->at, NULL, NULL) : err;
}

static trl_err advertise_beside(const void *data, trl_deps *deps)
{
    const state *s = data;
    int lo[3] = {0}, hi[3] = {0};
    lo[s->along] = -1;
    hi[s->along] = 1;
    trl_err err = trl_deps_compute(deps, "beside", (trl_location)s->at);
    return err == TRL_OK ? trl_deps_require(deps, "input", (trl_location)s->at, lo, hi) : err;
}

static trl_err advertise_held(const void *data, trl_deps *deps)
{
    const state *s = data;
    trl_err err = trl_deps_compute(deps, "target", (trl_location)s->at);
    return err == TRL_OK ? trl_deps_require(deps, "input", (trl_location)s->of, NULL, NULL) : err;
}

static double value(const trl_array *f, const int p[3])
{
    return ((const double *)f->at)[trl_array_offset(f, p[0], p[1], p[2])];
}

static trl_err evaluate_twice(const void *data, const trl_eval_args *args, const trl_box *box)
{
    double *out = args->computed[0].at;
    (void)data;
    for (int k = box->lo[2]; k < box->hi[2]; ++k)
        for (int j = box->lo[1]; j < box->hi[1]; ++j)
            for (int i = box->lo[0]; i < box->hi[0]; ++i)
                out[trl_array_offset(&args->computed[0], i, j, k)] = 2 * value(&args->required[0], (int[3]){i, j, k});
    return TRL_OK;
}

static trl_err evaluate_beside(const void *data, const trl_eval_args *args, const trl_box *box)
{
    const state *s = data;
    double *out = args->computed[0].at;
    for (int k = box->lo[2]; k < box->hi[2]; ++k)
        for (int j = box->lo[1]; j < box->hi[1]; ++j)
            for (int i = box->lo[0]; i < box->hi[0]; ++i) {
                int before[3] = {i, j, k}, after[3] = {i, j, k};
                --before[s->along];
                ++after[s->along];
                out[trl_array_offset(&args->computed[0], i, j, k)] =
                    value(&args->required[0], before) + value(&args->required[0], after);
            }
    return TRL_OK;
}

/* All ghost layers and the points on the side take the nearest value of the input. */
static trl_err evaluate_held(const void *data, const trl_eval_args *args, const trl_box *box)
{
    const trl_array *f = &args->computed[0], *input = &args->required[0];
    const int a = args->axis, nearest = args->side ? input->owned.hi[a] - 1 : input->owned.lo[a];
    double *out = f->at;
    (void)data;
    for (int k = box->lo[2]; k < box->hi[2]; ++k)
        for (int j = box->lo[1]; j < box->hi[1]; ++j)
            for (int i = box->lo[0]; i < box->hi[0]; ++i) {
                int p[3] = {i, j, k};
                p[a] = nearest;
                out[trl_array_offset(f, i, j, k)] = value(input, p);
            }
    return TRL_OK;
}

#define TYPE(text, what, flag)                                                                                    \
    {                                                                                                             \
        .abi = TRL_PLUGIN_ABI, .size = sizeof(trl_expr_type), .name = text, .doc = "for tests", .params = params, \
        .state_size = sizeof(state), .setup = setup, .advertise_dependents = advertise_##what,                    \
        .evaluate = evaluate_##what, .flags = (flag) | TRL_EXPR_PURE                                              \
    }

static const trl_expr_type types[] = {
    TYPE("twice", twice, TRL_EXPR_POINTWISE),
    TYPE("beside", beside, 0),
    TYPE("held", held, TRL_EXPR_MODIFIER),
};

TRL_API const trl_plugin trl_plugin_entry = {
    TRL_PLUGIN_ABI, sizeof(trl_plugin), sizeof(trl_expr_type), "side_values", types, 3,
};
