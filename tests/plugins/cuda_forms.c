/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Types with CUDA forms: one of points, that reads numbers, times and coordinates; one of neighbours, at faces, without
 * numbers; one whose text is wrong; one with results at two locations. */
#include <trl_plugin.h>

typedef struct state {
    double rate, width;
} state;

static trl_err setup(void *data, const trl_setup_args *args)
{
    (void)args;
    *(state *)data = (state){.rate = 3.7, .width = 0.3};
    return TRL_OK;
}

static void set_numbers(const void *data, double *number)
{
    const state *s = data;
    number[0] = s->rate;
    number[1] = s->width;
}

/* ---- points ---- */

TRL_SHARED_TEXT(
    reaction_text, TRL_BODY double reaction(double rate, double width, double time, double x, double T) {
        const double r = (x - 0.5) / width;
        return rate * trl_fn_exp(-r * r) * (1 + trl_fn_sin(time)) - T * trl_fn_exp(T);
    })

static trl_err advertise_reaction(const void *data, trl_deps *deps)
{
    (void)data;
    trl_err err = TRL_OK;
    TRL_TRY(trl_deps_compute(deps, "S", TRL_CELL));
    TRL_TRY(trl_deps_compute(deps, "twice", TRL_CELL));
    TRL_TRY(trl_deps_require(deps, "T", TRL_CELL, NULL, NULL));
done:
    return err;
}

static trl_err evaluate_reaction(const void *data, const trl_eval_args *args, const trl_box *box)
{
    const state *s = data;
    const trl_array *to = args->computed, *from = args->required;
    for (trl_lidx k = box->lo[2]; k < box->hi[2]; ++k)
        for (trl_lidx j = box->lo[1]; j < box->hi[1]; ++j)
            for (trl_lidx i = box->lo[0]; i < box->hi[0]; ++i) {
                const double x = trl_grid_coordinate(args->grid, TRL_CELL, 0, args->patch->first[0] + i);
                const double T = ((const double *)from->at)[trl_array_offset(from, i, j, k)];
                const double value =
                    reaction(s->rate, s->width, 3 * args->t + args->dt - args->t_step + args->stage, x, T);
                ((double *)to[0].at)[trl_array_offset(&to[0], i, j, k)] = value;
                ((double *)to[1].at)[trl_array_offset(&to[1], i, j, k)] = 2 * value;
            }
    return TRL_OK;
}

static const trl_cuda_form cuda_reaction = {
    .text = {reaction_text, TRL_CUDA_TEXT(TRL_BODY void evaluate(const trl_point &p) {
                 const double time = 3 * p.t + p.dt - p.t_step + p.stage;
                 p.computed(0) = reaction(p.number(0), p.number(1), time, p.coordinate(0), p.required(0));
                 p.computed(1) = 2 * p.computed(0);
             })},
    .nnumbers = 2,
    .set_numbers = set_numbers,
};

/* ---- neighbours ---- */

TRL_SHARED_TEXT(
    flux_text, TRL_BODY double flux(double left, double right, double spacing) {
        return -(1 + left * right) * ((right - left) / spacing);
    })

static trl_err advertise_flux(const void *data, trl_deps *deps)
{
    static const int before[3] = {-1, 0, 0}, here[3] = {0, 0, 0};
    (void)data;
    trl_err err = TRL_OK;
    TRL_TRY(trl_deps_compute(deps, "F", TRL_XFACE));
    TRL_TRY(trl_deps_require(deps, "T", TRL_CELL, before, here));
done:
    return err;
}

static trl_err evaluate_flux(const void *data, const trl_eval_args *args, const trl_box *box)
{
    const trl_array *to = args->computed, *from = args->required;
    (void)data;
    for (trl_lidx k = box->lo[2]; k < box->hi[2]; ++k)
        for (trl_lidx j = box->lo[1]; j < box->hi[1]; ++j)
            for (trl_lidx i = box->lo[0]; i < box->hi[0]; ++i) {
                const double *at = (const double *)from->at + trl_array_offset(from, i, j, k);
                ((double *)to->at)[trl_array_offset(to, i, j, k)] = flux(at[-1], at[0], args->grid->spacing[0]);
            }
    return TRL_OK;
}

static const trl_cuda_form cuda_flux = {
    .text = {flux_text, TRL_CUDA_TEXT(TRL_BODY void evaluate(const trl_point &p) {
                 p.computed(0) = flux(p.required(0, -1, 0, 0), p.required(0), p.spacing(0));
             })},
};

/* ---- what cannot be used ---- */

static const trl_cuda_form cuda_wrong = {
    .text = {reaction_text, TRL_CUDA_TEXT(TRL_BODY void evaluate(const trl_point &p) { p.computed(0) = undeclared; })},
};

static trl_err advertise_two(const void *data, trl_deps *deps)
{
    (void)data;
    trl_err err = TRL_OK;
    TRL_TRY(trl_deps_compute(deps, "S", TRL_CELL));
    TRL_TRY(trl_deps_compute(deps, "F", TRL_XFACE));
done:
    return err;
}

static trl_err evaluate_two(const void *data, const trl_eval_args *args, const trl_box *box)
{
    (void)data;
    (void)box;
    for (int o = 0; o < 2; ++o) {
        const trl_array *to = &args->computed[o];
        for (trl_lidx k = to->owned.lo[2]; k < to->owned.hi[2]; ++k)
            for (trl_lidx j = to->owned.lo[1]; j < to->owned.hi[1]; ++j)
                for (trl_lidx i = to->owned.lo[0]; i < to->owned.hi[0]; ++i)
                    ((double *)to->at)[trl_array_offset(to, i, j, k)] = o + 1;
    }
    return TRL_OK;
}

#define TYPE(text, what, which, form)                                                                        \
    {                                                                                                        \
        .abi = TRL_PLUGIN_ABI, .size = sizeof(trl_expr_type), .name = text, .doc = "for tests",              \
        .flags = TRL_EXPR_TILED | TRL_EXPR_PURE | (which), .state_size = sizeof(state), .setup = setup,      \
        .advertise_dependents = advertise_##what, .evaluate = evaluate_##what, .evaluate_cuda = &cuda_##form \
    }

static const trl_expr_type types[] = {
    TYPE("cuda_reaction", reaction, TRL_EXPR_POINTWISE, reaction),
    TYPE("cuda_flux", flux, 0, flux),
    TYPE("cuda_wrong", reaction, TRL_EXPR_POINTWISE, wrong),
    TYPE("cuda_two", two, 0, flux),
};

TRL_API const trl_plugin trl_plugin_entry = {
    TRL_PLUGIN_ABI, sizeof(trl_plugin), sizeof(trl_expr_type), "cuda_forms", types, sizeof types / sizeof *types,
};
