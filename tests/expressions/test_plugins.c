/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The contract of expression types: what the compiler calls with which boxes, and what it does with results and
 * errors. */
// ctest: np=1,2,3
#include <stdatomic.h>

#include "problem_fixture.h"

#define TYPE(type_name) .abi = TRL_PLUGIN_ABI, .size = sizeof(trl_expr_type), .name = (type_name), .doc = "a test"

static double *value(const trl_array *a, trl_lidx i, trl_lidx j, trl_lidx k)
{
    return (double *)a->at + trl_array_offset(a, i, j, k);
}

static void each_point(const trl_eval_args *args, const trl_box *box,
                       void (*set)(const trl_eval_args *, trl_lidx, trl_lidx, trl_lidx))
{
    for (trl_lidx k = box->lo[2]; k < box->hi[2]; ++k)
        for (trl_lidx j = box->lo[1]; j < box->hi[1]; ++j)
            for (trl_lidx i = box->lo[0]; i < box->hi[0]; ++i) set(args, i, j, k);
}

/* ---- square: rate*T^2 at each point ---- */

static const trl_param_desc square_params[] = {
    {.key = "rate", .kind = TRL_PARAM_NUMBER, .required = true, .unit = "", .doc = "a factor"}, {.key = NULL}};

typedef struct square_state {
    double rate;
    int computed, required;
    double spacing;
} square_state;

static trl_err square_setup(void *data, const trl_setup_args *args)
{
    square_state *s = data;
    s->rate = args->params[0].number;
    s->computed = s->required = -1;
    return TRL_OK;
}

static trl_err square_advertise(const void *data, trl_deps *deps)
{
    trl_err err = TRL_OK;
    (void)data;
    TRL_TRY(trl_deps_compute(deps, "omega", TRL_CELL));
    TRL_TRY(trl_deps_require(deps, "temperature", TRL_CELL, NULL, NULL));
done:
    return err;
}

static trl_err square_bind_fields(void *data, const trl_binding *binding)
{
    square_state *s = data;
    s->computed = trl_binding_computed(binding, "omega");
    s->required = trl_binding_required(binding, "temperature");
    return trl_binding_required(binding, "omega") == -1 ? TRL_OK : TRL_ERR_PLUGIN;
}

static trl_err square_bind_operators(void *data, const trl_binding *binding)
{
    ((square_state *)data)->spacing = trl_binding_grid(binding)->spacing[0];
    return TRL_OK;
}

static trl_err square_evaluate(const void *data, const trl_eval_args *args, const trl_box *box)
{
    const square_state *s = data;
    if (s->spacing != args->grid->spacing[0])
        return trl_fail(args->ctx, TRL_ERR_PLUGIN, NULL, "the spacing was not kept");
    for (trl_lidx k = box->lo[2]; k < box->hi[2]; ++k)
        for (trl_lidx j = box->lo[1]; j < box->hi[1]; ++j)
            for (trl_lidx i = box->lo[0]; i < box->hi[0]; ++i) {
                double t = *value(&args->required[s->required], i, j, k);
                *value(&args->computed[s->computed], i, j, k) = s->rate * (t * t);
            }
    return TRL_OK;
}

static const trl_expr_type square = {TYPE("square"),
                                     .params = square_params,
                                     .flags = TRL_EXPR_POINTWISE | TRL_EXPR_TILED | TRL_EXPR_PURE,
                                     .state_size = sizeof(square_state),
                                     .setup = square_setup,
                                     .advertise_dependents = square_advertise,
                                     .bind_fields = square_bind_fields,
                                     .bind_operators = square_bind_operators,
                                     .evaluate = square_evaluate};

/* ---- smooth: reads two neighbours along x; two results at two locations ---- */

static trl_err smooth_advertise(const void *data, trl_deps *deps)
{
    trl_err err = TRL_OK;
    static const int lo[3] = {-1, 0, 0}, hi[3] = {1, 0, 0};
    (void)data;
    TRL_TRY(trl_deps_compute(deps, "mean", TRL_CELL));
    TRL_TRY(trl_deps_require(deps, "f", TRL_CELL, lo, hi));
done:
    return err;
}

static void set_mean(const trl_eval_args *args, trl_lidx i, trl_lidx j, trl_lidx k)
{
    const trl_array *f = &args->required[0];
    *value(&args->computed[0], i, j, k) = *value(f, i - 1, j, k) + *value(f, i + 1, j, k);
}

static trl_err smooth_evaluate(const void *data, const trl_eval_args *args, const trl_box *box)
{
    (void)data;
    each_point(args, box, set_mean);
    return TRL_OK;
}

static const trl_expr_type smooth = {TYPE("smooth"), .flags = TRL_EXPR_TILED, .advertise_dependents = smooth_advertise,
                                     .evaluate = smooth_evaluate};

/* ---- swirl: a vector by components, each on its own face, from the components of another ---- */

static trl_err swirl_advertise(const void *data, trl_deps *deps)
{
    trl_err err = TRL_OK;
    (void)data;
    if (trl_deps_grid(deps)->dim != 2) return TRL_ERR_PLUGIN;
    TRL_TRY(trl_deps_compute(deps, "q.x", TRL_XFACE));
    TRL_TRY(trl_deps_compute(deps, "q.y", TRL_YFACE));
    TRL_TRY(trl_deps_require(deps, "v.x", TRL_XFACE, NULL, NULL));
    TRL_TRY(trl_deps_require(deps, "v.y", TRL_YFACE, NULL, NULL));
done:
    return err;
}

/* The box is the x-component's; the other's points are those of its own array. */
static trl_err swirl_evaluate(const void *data, const trl_eval_args *args, const trl_box *box)
{
    (void)data, (void)box;
    for (int c = 0; c < 2; ++c) {
        const trl_box *own = &args->computed[c].owned;
        for (trl_lidx j = own->lo[1]; j < own->hi[1]; ++j)
            for (trl_lidx i = own->lo[0]; i < own->hi[0]; ++i)
                *value(&args->computed[c], i, j, 0) = 3 * *value(&args->required[c], i, j, 0);
    }
    return TRL_OK;
}

static const trl_expr_type swirl = {TYPE("swirl"), .advertise_dependents = swirl_advertise, .evaluate = swirl_evaluate};

/* ---- clock: what evaluate is told; counts its calls ---- */

static atomic_int calls;

static trl_err clock_advertise(const void *data, trl_deps *deps)
{
    (void)data;
    return trl_deps_compute(deps, "clock", TRL_CELL);
}

static void set_clock(const trl_eval_args *args, trl_lidx i, trl_lidx j, trl_lidx k)
{
    *value(&args->computed[0], i, j, k) =
        args->t + 10 * args->t_step + 100 * args->dt + 1000 * (double)args->step + 10000 * args->stage;
}

static trl_err clock_evaluate(const void *data, const trl_eval_args *args, const trl_box *box)
{
    (void)data;
    if (args->size != sizeof *args || args->axis != -1 || args->side != -1) return TRL_ERR_PLUGIN;
    memset(args->scratch, 1, 1000);
    atomic_fetch_add(&calls, 1);
    each_point(args, box, set_clock);
    return TRL_OK;
}

static const trl_expr_type clock_type = {TYPE("clock"), .flags = TRL_EXPR_POINTWISE, .scratch_bytes = 1000,
                                         .advertise_dependents = clock_advertise, .evaluate = clock_evaluate};
static const trl_expr_type still_type = {TYPE("still"), .flags = TRL_EXPR_POINTWISE | TRL_EXPR_STATIC,
                                         .scratch_bytes = 1000, .advertise_dependents = clock_advertise,
                                         .evaluate = clock_evaluate};

/* ---- mirror: a modifier that sets ghosts to scale times the first interior value ---- */

static trl_err mirror_advertise(const void *data, trl_deps *deps)
{
    trl_err err = TRL_OK;
    (void)data;
    TRL_TRY(trl_deps_compute(deps, "target", TRL_CELL));
    TRL_TRY(trl_deps_require(deps, "scale", TRL_CELL, NULL, NULL));
done:
    return err;
}

static trl_err mirror_evaluate(const void *data, const trl_eval_args *args, const trl_box *box)
{
    (void)data;
    trl_lidx first = args->side ? args->computed[0].owned.hi[args->axis] - 1 : args->computed[0].owned.lo[args->axis];
    for (trl_lidx j = box->lo[1]; j < box->hi[1]; ++j)
        for (trl_lidx i = box->lo[0]; i < box->hi[0]; ++i) {
            trl_lidx at[2] = {i, j};
            at[args->axis] = first;
            *value(&args->computed[0], i, j, 0) =
                *value(&args->required[0], at[0], at[1], 0) * *value(&args->computed[0], at[0], at[1], 0);
        }
    return TRL_OK;
}

static const trl_expr_type mirror = {TYPE("mirror"), .flags = TRL_EXPR_MODIFIER,
                                     .advertise_dependents = mirror_advertise, .evaluate = mirror_evaluate};

/* ---- broken: fails where its parameter says ---- */

static const trl_param_desc broken_params[] = {
    {.key = "where", .kind = TRL_PARAM_TEXT, .required = true, .unit = "", .doc = "a method"},
    {.key = "speak", .kind = TRL_PARAM_BOOL, .unit = "", .doc = "say why"},
    {.key = NULL}};

typedef struct broken_state {
    char where[32];
    bool speak;
    trl_context *ctx;
} broken_state;

static int teardowns;

static trl_err fail_at(const broken_state *s, const char *where)
{
    if (strcmp(s->where, where) != 0) return TRL_OK;
    return s->speak ? trl_fail(s->ctx, TRL_ERR_PLUGIN, NULL, "%s refuses", where) : TRL_ERR_PLUGIN;
}

static trl_err broken_setup(void *data, const trl_setup_args *args)
{
    broken_state *s = data;
    snprintf(s->where, sizeof s->where, "%s", args->params[0].text);
    s->speak = args->params[1].number != 0;
    s->ctx = args->ctx;
    return fail_at(s, "setup");
}

static void broken_teardown(void *data)
{
    (void)data;
    ++teardowns;
}

static trl_err broken_advertise(const void *data, trl_deps *deps)
{
    const broken_state *s = data;
    static const int far[3] = {17, 0, 0};
    trl_err err = TRL_OK;
    if (strcmp(s->where, "nothing") == 0) return TRL_OK;
    TRL_TRY(trl_deps_compute(deps, "b", TRL_CELL));
    if (strcmp(s->where, "twice") == 0) TRL_TRY(trl_deps_compute(deps, "b", TRL_CELL));
    if (strcmp(s->where, "nameless") == 0) TRL_TRY(trl_deps_compute(deps, "", TRL_CELL));
    if (strcmp(s->where, "far") == 0) TRL_TRY(trl_deps_require(deps, "T", TRL_CELL, NULL, far));
    if (strcmp(s->where, "missing") == 0) TRL_TRY(trl_deps_require(deps, "Tt", TRL_CELL, NULL, NULL));
    if (strcmp(s->where, "location") == 0) TRL_TRY(trl_deps_require(deps, "T", TRL_NODE, NULL, NULL));
    if (strcmp(s->where, "vector") == 0) TRL_TRY(trl_deps_require(deps, "v", TRL_XFACE, NULL, NULL));
    err = fail_at(s, "advertise_dependents");
done:
    return err;
}

static trl_err broken_bind_fields(void *data, const trl_binding *binding)
{
    (void)binding;
    return fail_at(data, "bind_fields");
}

static trl_err broken_bind_operators(void *data, const trl_binding *binding)
{
    (void)binding;
    return fail_at(data, "bind_operators");
}

static void set_zero(const trl_eval_args *args, trl_lidx i, trl_lidx j, trl_lidx k)
{
    *value(&args->computed[0], i, j, k) = 0;
}

static trl_err broken_evaluate(const void *data, const trl_eval_args *args, const trl_box *box)
{
    const broken_state *s = data;
    each_point(args, box, set_zero);
    if (args->step < 2) return TRL_OK;
    /* Only the patch with the last cell fails: on one rank of several. */
    bool last = args->patch->first[0] + args->patch->cells[0] == args->grid->cells[0];
    return last ? fail_at(s, "evaluate") : TRL_OK;
}

static const trl_expr_type broken = {TYPE("broken"),
                                     .params = broken_params,
                                     .flags = TRL_EXPR_POINTWISE,
                                     .state_size = sizeof(broken_state),
                                     .setup = broken_setup,
                                     .teardown = broken_teardown,
                                     .advertise_dependents = broken_advertise,
                                     .bind_fields = broken_bind_fields,
                                     .bind_operators = broken_bind_operators,
                                     .evaluate = broken_evaluate};

static const trl_expr_type *const all_types[] = {&square,     &smooth, &swirl,  &clock_type,
                                                 &still_type, &mirror, &broken, NULL};

/* ---- tests ---- */

static const char *const fusions[] = {"run.fusion=none", "run.fusion=node", "run.fusion=full"};

static void same_fields(const char *a, const char *b)
{
    trl_gidx n[3], m[3];
    const double *f = values_of(a, n), *g = values_of(b, m);
    for (int i = 0; i < n[0] * n[1] * n[2]; ++i)
        ck_assert_msg(f[i] == g[i], "%s and %s differ at %d: %.17g, %.17g", a, b, i, f[i], g[i]);
}

START_TEST(a_pointwise_type_is_computed_in_ghosts_like_a_formula)
{
    for (int level = 0; level < 3; ++level) {
        new_deck();
        say("grid: {cells: [9, 6]}\nexpressions:\n"
            "  kinetics: {type: square, computes: [w], inputs: {temperature: T}, parameters: {rate: 0.5}}\n"
            "  plain: \"0.5*(T*T)\"\n"
            "equations:\n  T: {initial: \"1 + x*y\", ddt: \"laplacian(w)\", boundary: {x-: {dirichlet: 1}, x+: "
            "{neumann: 1}, y-: {outflow: true}, y+: {dirichlet: 2}}}\n"
            "  U: {initial: \"1 + x*y\", ddt: \"laplacian(0.5*(U*U))\", boundary: {x-: {dirichlet: 1}, x+: {neumann: "
            "1}, y-: {outflow: true}, y+: {dirichlet: 2}}}\n"
            "time: {dt: 1e-4, steps: 3, method: rk4}\noutput: {fields: [w, plain]}\n");
        ck_ok(open_set(fusions[level]));
        ck_ok(run_steps(3));
        same_fields("w", "plain");
        same_fields("T", "U");
    }
    close_problem();
}
END_TEST

START_TEST(an_opaque_type_with_neighbours_is_exchanged)
{
    for (int level = 0; level < 3; ++level) {
        new_deck();
        say("grid: {cells: [9, 6], periodic: [true, true]}\nexpressions:\n"
            "  s: {type: smooth, computes: [s], inputs: {f: T}}\n  r: {type: smooth, computes: [r], inputs: {f: s}}\n"
            "  d: \"ddy(ddx(r))\"\n  s2: \"left(left(T).x).x + right(right(T).x).x\"\n  r2: \"left(left(s2).x).x + "
            "right(right(s2).x).x\"\n  d2: \"ddy(ddx(r2))\"\n"
            "equations: {T: {initial: \"sin(2*pi*x) + cos(2*pi*y) + x\", ddt: 0}}\ntime: {dt: 1, steps: 1}\noutput: "
            "{fields: [s, r, d, s2, r2, d2]}\n");
        ck_ok(open_set(fusions[level]));
        ck_ok(run_steps(1));
        same_fields("s", "s2");
        same_fields("r", "r2");
        same_fields("d", "d2");
    }
    close_problem();
}
END_TEST

static void say_sided(const char *boundary)
{
    new_deck();
    say("grid: {cells: [9]}\nexpressions:\n  s: {type: smooth, computes: [s], inputs: {f: T}%s}\n  g: \"ddx(s)\"\n"
        "equations: {T: {initial: \"x\", ddt: 0, boundary: {x-: {neumann: -1}, x+: {neumann: 1}}}}\ntime: {dt: 1, "
        "steps: 1}\noutput: {fields: [s, g]}\n",
        boundary);
}

START_TEST(an_opaque_type_read_beyond_a_side_needs_conditions_of_its_own)
{
    trl_gidx n[3];
    say_sided("");
    ck_fails(open_problem(), TRL_ERR_INPUT,
             "'s' needs a boundary condition on x-: this reads 1 point beyond that side");
    test_clear();
    say_sided(", boundary: {x-: {dirichlet: 7}, x+: {neumann: 5}}");
    ck_ok(open_problem());
    ck_ok(run_steps(1));
    const double *s = values_of("s", n), *g = values_of("g", n);
    ck_assert(near(g[0], (s[0] - 7) * 18, 1e-12) && near(g[9], 5, 1e-12) && near(g[4], (s[4] - s[3]) * 9, 1e-12));
    close_problem();
}
END_TEST

START_TEST(a_vector_goes_in_and_out_by_its_components)
{
    new_deck();
    say("grid: {cells: [8, 6]}\nexpressions:\n  v: \"grad(x*x + y)\"\n  other: [\"at(x*x*x, xface)\", \"at(y*x, "
        "yface)\"]\n"
        "  swirl: {type: swirl, inputs: {v.x: other.x, v.y: other.y}}\n  d: \"div(q)\"\n  e: \"3*other\"\n  f: "
        "\"div(e)\"\n  h: \"q.x\"\n  k: \"3*other.x\"\n"
        "equations: {T: {initial: \"0\", ddt: \"0*dot(at(v, cell), at(v, cell))\"}}\ntime: {dt: 1, steps: 1}\noutput: "
        "{fields: [d, f, q, e, h, k]}\n");
    ck_ok(open_problem());
    ck_ok(run_steps(1));
    same_fields("d", "f");
    same_fields("q.x", "e.x");
    same_fields("q.y", "e.y");
    same_fields("h", "k");
    close_problem();
}
END_TEST

START_TEST(evaluate_is_told_times_step_and_stage)
{
    trl_gidx n[3];
    new_deck();
    say("grid: {cells: [6]}\nexpressions:\n  c: {type: clock, computes: [c]}\n"
        "equations: {T: {initial: 0, ddt: c}}\ntime: {dt: 0.5, steps: 2, start: 1, method: ssprk2}\noutput: {fields: "
        "[T]}\n");
    ck_ok(open_problem());
    ck_ok(run_steps(2));
    double expected = 0;
    for (int step = 0; step < 2; ++step) {
        double t = 1 + 0.5 * step, slope[2];
        for (int stage = 0; stage < 2; ++stage)
            slope[stage] = t + 0.5 * stage + 10 * t + 100 * 0.5 + 1000 * step + 10000 * stage;
        expected += 0.5 * (slope[0] + slope[1]) / 2;
    }
    ck_assert_double_eq_tol(values_of("T", n)[3], expected, 1e-9);
    close_problem();
}
END_TEST

START_TEST(a_static_type_is_evaluated_once)
{
    static const char *const types[] = {"clock", "still"};
    int seen[2];
    for (int k = 0; k < 2; ++k) {
        new_deck();
        say("grid: {cells: [6]}\nexpressions:\n  c: {type: %s, computes: [c]}\nequations: {T: {initial: 0, ddt: "
            "c}}\ntime: {dt: 0.5, steps: 3, method: rk4}\n",
            types[k]);
        ck_ok(open_problem());
        atomic_store(&calls, 0);
        ck_ok(trl_simulation_initialise(sim));
        for (int i = 0; i < 3; ++i) ck_ok(trl_simulation_step(sim));
        seen[k] = atomic_load(&calls);
    }
    ck_assert_int_eq(seen[0], 12);
    ck_assert_int_eq(seen[1], 1);
    close_problem();
}
END_TEST

START_TEST(types_that_do_not_promise_the_same_bits_are_named)
{
    char reason[200];
    new_deck();
    say("grid: {cells: [9], periodic: [true]}\nexpressions:\n"
        "  w: {type: square, computes: [w], inputs: {temperature: T}, parameters: {rate: 0.5}}\n"
        "  s: {type: smooth, computes: [s], inputs: {f: T}}\n"
        "  unused: {type: smooth, computes: [u], inputs: {f: T}}\n"
        "equations: {T: {initial: x, ddt: w + s}}\ntime: {dt: 1, steps: 1}\n");
    ck_ok(open_problem());
    ck_assert(trl_simulation_inexact(sim, 0, sizeof reason, reason));
    ck_assert_str_eq(reason, "type 'smooth' of 's' is not TRL_EXPR_PURE");
    ck_assert(!trl_simulation_inexact(sim, 1, sizeof reason, reason));
    close_problem();
}
END_TEST

START_TEST(a_modifier_sets_its_side_after_the_field)
{
    trl_gidx n[3];
    new_deck();
    say("grid: {cells: [6, 5]}\nexpressions:\n  edge: {type: mirror, inputs: {scale: S}}\n  S: {formula: \"2 + y\", "
        "location: cell}\n  g: \"at(T, xface)\"\n  two: \"left(left(left(left(T).x).x).x).x\"\n"
        "equations: {T: {initial: \"1 + x\", ddt: 0, boundary: {x-: {expression: edge}, x+: {dirichlet: 0}}}}\ntime: "
        "{dt: 1, steps: 1}\noutput: {fields: [T, g, two]}\n");
    ck_ok(open_problem());
    ck_ok(run_steps(1));
    const double *t = values_of("T", n), *g = values_of("g", n);
    for (ptrdiff_t j = 0; j < 5; ++j) ck_assert(near(g[7 * j], 0.5 * t[6 * j] * (3 + (j + 0.5) / 5), 1e-14));
    const double *two = values_of("two", n);
    for (ptrdiff_t j = 0; j < 5; ++j)
        for (int i = 0; i < 2; ++i) ck_assert(near(two[6 * j + i], t[6 * j] * (2 + (j + 0.5) / 5), 1e-14));
    close_problem();
}
END_TEST

static void say_broken(const char *where, bool speak, const char *more)
{
    new_deck();
    say("grid: {cells: [8, 6]}\nexpressions:\n  b: {type: broken, parameters: {where: %s, speak: %s}%s}\n  v: "
        "\"grad(T)\"\n  u: v.x\n"
        "equations: {T: {initial: 0, ddt: \"b + 0*div(v) + 0*at(u, cell)\", boundary: {x-: {neumann: 0}, x+: {neumann: "
        "0}, y-: {neumann: 0}, y+: {neumann: 0}}}}\n"
        "time: {dt: 0.5, steps: 5}\n",
        where, speak ? "true" : "false", more);
}

START_TEST(each_method_that_fails_is_named)
{
    static const char *const methods[] = {"setup", "advertise_dependents", "bind_fields", "bind_operators"};
    for (int m = 0; m < 4; ++m)
        for (int speak = 0; speak < 2; ++speak) {
            char text[200];
            teardowns = 0;
            say_broken(methods[m], speak, "");
            snprintf(text, sizeof text, speak ? "%s refuses\n" : "test.yaml:4:3: %s of type 'broken' failed (",
                     methods[m]);
            ck_fails(open_problem(), TRL_ERR_PLUGIN, text);
            ck_assert(speak ? strstr(test_messages(), "without a message") == NULL
                            : strstr(test_messages(), ") without a message") != NULL);
            ck_assert_int_eq(teardowns, 1); /* follows setup, whatever setup returns */
            test_clear();
        }
    close_problem();
}
END_TEST

START_TEST(evaluate_that_fails_on_one_rank_stops_all)
{
    for (int speak = 0; speak < 2; ++speak)
        for (int scheduler = 0; scheduler < 2; ++scheduler) {
            static const char *const policies[] = {"run.scheduler=serial", "run.scheduler=priority"};
            say_broken("evaluate", speak, "");
            ck_ok(open_set(policies[scheduler]));
            ck_ok(trl_simulation_initialise(sim));
            ck_ok(trl_simulation_step(sim));
            ck_ok(trl_simulation_step(sim));
            ck_fails(trl_simulation_step(sim), TRL_ERR_PLUGIN,
                     speak ? "evaluate refuses"
                           : "test.yaml:4:3: evaluate of type 'broken' failed (a plugin is missing, incompatible or "
                             "returned an error) without a message at step 2, t = 1");
            ck_assert_int_eq(trl_simulation_step_number(sim), 2);
            test_clear();
        }
    close_problem();
}
END_TEST

START_TEST(advertised_tags_are_checked)
{
    static const struct {
        const char *where, *more, *message;
        trl_err code;
    } cases[] = {
        {"nothing", "", "test.yaml:4:3: type 'broken' advertises no computed tag\n", TRL_ERR_PLUGIN},
        {"twice", "", "test.yaml:4:3: type 'broken' advertises 'b' twice\n", TRL_ERR_PLUGIN},
        {"nameless", "", "test.yaml:4:3: type 'broken' advertises a tag without a name or with an unknown location\n",
         TRL_ERR_PLUGIN},
        {"far", "",
         "test.yaml:4:3: type 'broken' requires 'T' at offsets 0..17; they must be ordered and within -16..16\n",
         TRL_ERR_PLUGIN},
        {"missing", "",
         "test.yaml:4:3: nothing computes 'Tt': it is no equation, expression or parameter; did you mean 'T'?\n",
         TRL_ERR_INPUT},
        {"location", "", "test.yaml:4:3: 'T' is at cell, and type 'broken' requires it at zedge\n", TRL_ERR_INPUT},
        {"vector", "", "test.yaml:4:3: 'v' is a vector, and type 'broken' requires a scalar: name a component, v.x\n",
         TRL_ERR_INPUT},
        {"none", ", computes: [b, c]", "test.yaml:4:3: type 'broken' computes 1 tag, but `computes` names 2\n",
         TRL_ERR_INPUT},
        {"none", ", inputs: {a: T}", "test.yaml:4:3: type 'broken' requires no 'a'\n", TRL_ERR_INPUT},
        {"none", ", computes: [T]", "'T' names two things: equation here, and expression at test.yaml:4:73\n",
         TRL_ERR_INPUT},
        {"none", ", computes: [v]", "'v' names two things", TRL_ERR_INPUT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        say_broken(cases[i].where, false, cases[i].more);
        ck_fails(open_problem(), cases[i].code, cases[i].message);
        test_clear();
    }
    close_problem();
}
END_TEST

START_TEST(two_producers_of_one_tag_are_named_with_both_places)
{
    new_deck();
    say("grid: {cells: [6]}\nexpressions:\n  first: {type: clock}\n  second: {type: still}\nequations: {T: {initial: "
        "0, ddt: clock}}\ntime: {dt: 1, steps: 1}\n");
    ck_fails(open_problem(), TRL_ERR_INPUT, "test.yaml:5:3: 'clock' is computed twice: first at test.yaml:4:3\n");
    close_problem();
}
END_TEST

static void add_tests(TCase *tc)
{
    test_types = all_types;
    tcase_add_test(tc, a_pointwise_type_is_computed_in_ghosts_like_a_formula);
    tcase_add_test(tc, an_opaque_type_with_neighbours_is_exchanged);
    tcase_add_test(tc, an_opaque_type_read_beyond_a_side_needs_conditions_of_its_own);
    tcase_add_test(tc, a_vector_goes_in_and_out_by_its_components);
    tcase_add_test(tc, evaluate_is_told_times_step_and_stage);
    tcase_add_test(tc, a_static_type_is_evaluated_once);
    tcase_add_test(tc, types_that_do_not_promise_the_same_bits_are_named);
    tcase_add_test(tc, a_modifier_sets_its_side_after_the_field);
    tcase_add_test(tc, each_method_that_fails_is_named);
    tcase_add_test(tc, evaluate_that_fails_on_one_rank_stops_all);
    tcase_add_test(tc, advertised_tags_are_checked);
    tcase_add_test(tc, two_producers_of_one_tag_are_named_with_both_places);
}

TRL_TEST_MAIN("plugins", add_tests)
