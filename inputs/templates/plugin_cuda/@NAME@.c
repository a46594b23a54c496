/* @NAME@: an expression type for Trellis, written in C. It computes a source S = -rate*T from a field T, on CPUs
 * and on GPUs. Change it to what you need.
 *
 * A deck uses it like this:
 *     plugins: [@NAME@]
 *     expressions:
 *       S: {type: @NAME@, computes: [S], inputs: {T: T}, parameters: {rate: 2.0}}
 */
#include <trl_plugin.h>

/* The parameters that a deck may give; Trellis checks kind and range, and fills in defaults. */
enum { PARAM_RATE };

static const trl_param_desc params[] = {
    [PARAM_RATE] = {.key = "rate",
                    .kind = TRL_PARAM_NUMBER,
                    .unit = "1/s",
                    .doc = "how fast T decays",
                    .fallback = 1,
                    .min = 0,
                    .max = 1e6},
    {0}, /* the end of the table */
};

/* What one entry of a deck keeps. It is zero at first, filled in setup and bind_fields, and read-only afterwards. */
typedef struct state {
    double rate;
    int source, temperature; /* positions in args->computed and args->required */
} state;

static trl_err setup(void *data, const trl_setup_args *args)
{
    state *s = data;
    s->rate = args->params[PARAM_RATE].number;
    return TRL_OK;
}

/* Which tags are computed and required, by the type's own names; a deck may rename them with `computes` and
   `inputs`. NULL, NULL: T is read at the point itself; a stencil would give the lowest and the highest offset
   along x, y, z. */
static trl_err advertise_dependents(const void *data, trl_deps *deps)
{
    (void)data;
    trl_err err = TRL_OK;
    TRL_TRY(trl_deps_compute(deps, "S", TRL_CELL));
    TRL_TRY(trl_deps_require(deps, "T", TRL_CELL, NULL, NULL));
done:
    return err;
}

static trl_err bind_fields(void *data, const trl_binding *binding)
{
    state *s = data;
    s->source = trl_binding_computed(binding, "S");
    s->temperature = trl_binding_required(binding, "T");
    return TRL_OK;
}

/* What a point's value is, in C and as text for CUDA, so that both give the same bits. Elementary functions that both
   have are trl_fn_exp(x) and the like; other functions and macros of this file are not known in the text. */
TRL_SHARED_TEXT(
    shared_text, TRL_BODY double decay(double rate, double T) { return -rate * T; })

/* On CPUs: compute every point of a box. Indices are local to the patch; x is the fastest axis and contiguous. Several
   threads may be in here at once, each with a box of its own, because of TRL_EXPR_TILED. */
static trl_err evaluate(const void *data, const trl_eval_args *args, const trl_box *box)
{
    const state *s = data;
    const trl_array *source = &args->computed[s->source], *temperature = &args->required[s->temperature];
    for (trl_lidx k = box->lo[2]; k < box->hi[2]; ++k) {
        for (trl_lidx j = box->lo[1]; j < box->hi[1]; ++j) {
            double *to = (double *)source->at + trl_array_offset(source, 0, j, k);
            const double *from = (const double *)temperature->at + trl_array_offset(temperature, 0, j, k);
            for (trl_lidx i = box->lo[0]; i < box->hi[0]; ++i) to[i] = decay(s->rate, from[i]);
        }
    }
    return TRL_OK;
}

/* On GPUs: what is computed at a point p, by CUDA C++ that is compiled when a run begins. Positions are those of
   advertise_dependents; p.required(0, -1, 0, 0) would be the value at the point before along x. */
static void set_numbers(const void *data, double *number)
{
    const state *s = data;
    number[0] = s->rate;
}

static const trl_cuda_form cuda = {
    .text = {shared_text, TRL_CUDA_TEXT(TRL_BODY void evaluate(const trl_point &p) {
                 p.computed(0) = decay(p.number(0), p.required(0));
             })},
    .nnumbers = 1,
    .set_numbers = set_numbers,
};

static const trl_expr_type types[] = {
    {
        .abi = TRL_PLUGIN_ABI,
        .size = sizeof(trl_expr_type),
        .name = "@NAME@",
        .doc = "a decay, S = -rate*T",
        .params = params,
        /* A point needs its own inputs only; boxes may be cut into pieces; the same inputs give the same bits. */
        .flags = TRL_EXPR_POINTWISE | TRL_EXPR_TILED | TRL_EXPR_PURE,
        .state_size = sizeof(state),
        .setup = setup,
        .advertise_dependents = advertise_dependents,
        .bind_fields = bind_fields,
        .evaluate = evaluate,
        .evaluate_cuda = &cuda,
    },
};

/* The one symbol that Trellis looks for. */
TRL_API const trl_plugin trl_plugin_entry = {
    TRL_PLUGIN_ABI, sizeof(trl_plugin), sizeof(trl_expr_type), "@NAME@", types, sizeof types / sizeof *types,
};
