/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Types with CUDA forms: one of points, that reads numbers, times and coordinates; one of neighbours, at faces, without
 * numbers; modifiers; one whose texts are wrong; one with results at two locations. The first two bound dt. */
#include <math.h>

#include <trl_plugin.h>

typedef struct state {
    double rate, width;
    int last; /* axis */
} state;

static trl_err setup(void *data, const trl_setup_args *args)
{
    *(state *)data = (state){.rate = 3.7, .width = 0.3, .last = args->grid->dim - 1};
    return TRL_OK;
}

static void set_numbers(const void *data, double *number)
{
    const state *s = data;
    number[0] = s->rate;
    number[1] = s->width;
}

static void set_rate(const void *data, double *number)
{
    number[0] = ((const state *)data)->rate;
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

/* Calls a function with the index of each point of a box as `at`. */
#define FOR_POINTS(box, at)                                               \
    for (int at[3] = {0, 0, (box)->lo[2]}; at[2] < (box)->hi[2]; ++at[2]) \
        for (at[1] = (box)->lo[1]; at[1] < (box)->hi[1]; ++at[1])         \
            for (at[0] = (box)->lo[0]; at[0] < (box)->hi[0]; ++at[0])

static double *value_at(const trl_array *a, const int at[3])
{
    return (double *)a->at + trl_array_offset(a, at[0], at[1], at[2]);
}

TRL_SHARED_TEXT(
    reaction_dt_text, TRL_BODY double reaction_dt(double rate, double time, double x, double T) {
        return 0.02 / (rate + T * T + x * trl_fn_exp(-time));
    })

static trl_err bound_reaction(const void *data, const trl_eval_args *args, double *dt)
{
    const state *s = data;
    const trl_array *from = args->required;
    *dt = INFINITY;
    FOR_POINTS(&from->owned, at)
    {
        const double x = trl_grid_coordinate(args->grid, TRL_CELL, 0, args->patch->first[0] + at[0]);
        const double most = reaction_dt(s->rate, args->t, x, *value_at(from, at));
        if (!(most >= *dt)) *dt = most;
    }
    return TRL_OK;
}

static const trl_cuda_form cuda_reaction_dt = {
    .text = {reaction_dt_text, TRL_CUDA_TEXT(TRL_BODY double stable_dt(const trl_point &p) {
                 return reaction_dt(p.number(0), p.t, p.coordinate(0), p.required(0));
             })},
    .nnumbers = 1,
    .set_numbers = set_rate,
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

TRL_SHARED_TEXT(
    flux_dt_text, TRL_BODY double flux_dt(double left, double right, double spacing) {
        return 0.2 * spacing * spacing / (1 + left * right + left * left + right * right);
    })

/* At faces, of which it reads both sides. */
static trl_err bound_flux(const void *data, const trl_eval_args *args, double *dt)
{
    const trl_array *from = args->required;
    const bool last = args->patch->first[0] + args->patch->cells[0] == args->grid->cells[0];
    trl_box faces = from->owned;
    (void)data;
    faces.hi[0] += last && !args->grid->periodic[0];
    *dt = INFINITY;
    FOR_POINTS(&faces, at)
    {
        const double *here = value_at(from, at);
        const double most = flux_dt(here[-1], here[0], args->grid->spacing[0]);
        if (!(most >= *dt)) *dt = most;
    }
    return TRL_OK;
}

static const trl_cuda_form cuda_flux_dt = {
    .text = {flux_dt_text, TRL_CUDA_TEXT(TRL_BODY double stable_dt(const trl_point &p) {
                 return flux_dt(p.required(0, -1, 0, 0), p.required(0), p.spacing(0));
             })},
};

/* ---- sides ---- */

TRL_SHARED_TEXT(
    wall_text, TRL_BODY double wall(double rate, double time, double x, double beside, double own, int layer) {
        return beside + 0.1 * rate * layer * trl_fn_sin(time + x) - 0.25 * own;
    })

static trl_err advertise_at(trl_deps *deps, trl_location location)
{
    trl_err err = trl_deps_compute(deps, "target", location);
    return err == TRL_OK ? trl_deps_require(deps, "S", TRL_CELL, NULL, NULL) : err;
}

static trl_err advertise_wall(const void *data, trl_deps *deps)
{
    (void)data;
    return advertise_at(deps, TRL_CELL);
}

static trl_err advertise_xwall(const void *data, trl_deps *deps)
{
    (void)data;
    return advertise_at(deps, TRL_XFACE);
}

static int first_inside(const trl_array *a, const trl_eval_args *args)
{
    return args->side ? a->owned.hi[args->axis] - 1 : a->owned.lo[args->axis];
}

/* Values beside the side, and those of the target that it does not set. */
static trl_err evaluate_at(const state *s, const trl_eval_args *args, const trl_box *box, trl_location location)
{
    const trl_array *target = args->computed, *from = args->required;
    const int a = args->axis, inwards = args->side ? -1 : 1, owned = first_inside(target, args);
    FOR_POINTS(box, at)
    {
        int beside[3] = {at[0], at[1], at[2]}, own[3] = {at[0], at[1], at[2]};
        beside[a] = first_inside(from, args);
        own[a] = owned + inwards * (location >> a & 1);
        const double x = trl_grid_coordinate(args->grid, location, s->last, args->patch->first[s->last] + at[s->last]);
        *value_at(target, at) =
            wall(s->rate, args->t, x, *value_at(from, beside), *value_at(target, own), inwards * (owned - at[a]));
    }
    return TRL_OK;
}

static trl_err evaluate_wall(const void *data, const trl_eval_args *args, const trl_box *box)
{
    return evaluate_at(data, args, box, TRL_CELL);
}

static trl_err evaluate_xwall(const void *data, const trl_eval_args *args, const trl_box *box)
{
    return evaluate_at(data, args, box, TRL_XFACE);
}

static void set_numbers_of_wall(const void *data, double *number)
{
    const state *s = data;
    number[0] = s->rate;
    number[1] = s->last;
}

static const trl_cuda_form cuda_wall = {
    .text = {wall_text, TRL_CUDA_TEXT(TRL_BODY void evaluate(const trl_point &p) {
                 const double x = p.coordinate((int)p.number(1));
                 p.computed(0) = wall(p.number(0), p.t, x, p.inside(0, 0), p.target(0), p.layer());
             })},
    .nnumbers = 2,
    .set_numbers = set_numbers_of_wall,
};

static const trl_cuda_form cuda_xwall = {
    .text = {wall_text, TRL_CUDA_TEXT(TRL_BODY void evaluate(const trl_point &p) {
                 const double x = p.coordinate((int)p.number(1));
                 p.computed(0) = wall(p.number(0), p.t, x, p.inside(0, 0), p.target(p.axis == 0), p.layer());
             })},
    .nnumbers = 2,
    .set_numbers = set_numbers_of_wall,
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

#define TYPE(text, what, which, form, ...)                                                                    \
    {                                                                                                         \
        .abi = TRL_PLUGIN_ABI, .size = sizeof(trl_expr_type), .name = text, .doc = "for tests",               \
        .flags = TRL_EXPR_TILED | TRL_EXPR_PURE | (which), .state_size = sizeof(state), .setup = setup,       \
        .advertise_dependents = advertise_##what, .evaluate = evaluate_##what, .evaluate_cuda = &cuda_##form, \
        __VA_ARGS__                                                                                           \
    }

#define BOUND(what, form) .stable_dt = bound_##what, .stable_dt_cuda = &cuda_##form

static const trl_expr_type types[] = {
    TYPE("cuda_reaction", reaction, TRL_EXPR_POINTWISE, reaction, BOUND(reaction, reaction_dt)),
    TYPE("cuda_flux", flux, 0, flux, BOUND(flux, flux_dt)),
    TYPE("cuda_wall", wall, TRL_EXPR_MODIFIER, wall, ),
    TYPE("cuda_xwall", xwall, TRL_EXPR_MODIFIER, xwall, ),
    TYPE("cuda_wrong", reaction, TRL_EXPR_POINTWISE, wrong, BOUND(reaction, wrong)),
    TYPE("cuda_two", two, 0, flux, ),
};

TRL_API const trl_plugin trl_plugin_entry = {
    TRL_PLUGIN_ABI, sizeof(trl_plugin), sizeof(trl_expr_type), "cuda_forms", types, sizeof types / sizeof *types,
};
