/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Device-neutral types: what evaluate applies has the bits of the formula that says the same, and misuse is named. */
// ctest: np=1,2 sanitize=1
#include "problem_fixture.h"

#define TYPE(type_name)                                                                         \
    .abi = TRL_PLUGIN_ABI, .size = sizeof(trl_expr_type), .name = (type_name), .doc = "a test", \
    .flags = TRL_EXPR_NEUTRAL

/* ---- random: applications drawn from a seed, and the same as a formula ---- */

enum { DEPTH = 4, TEXT = 20000 };

static uint64_t random_state;

static int draw(int n)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (int)((random_state >> 33) % (uint64_t)n);
}

typedef struct random_type_state {
    int seed, tag[2], result;
    const trl_operator *central[2], *to_face[2], *to_cell[2], *gradient[2], *divergence[2], *laplacian;
} random_type_state;

static const trl_param_desc random_params[] = {
    {.key = "seed", .kind = TRL_PARAM_INTEGER, .required = true, .unit = "", .doc = "of the applications"}, {0}};

static trl_err random_setup(void *data, const trl_setup_args *args)
{
    ((random_type_state *)data)->seed = (int)args->params[0].number;
    return TRL_OK;
}

static trl_err random_advertise(const void *data, trl_deps *deps)
{
    trl_err err = TRL_OK;
    (void)data;
    TRL_TRY(trl_deps_compute(deps, "r", TRL_CELL));
    TRL_TRY(trl_deps_require(deps, "T", TRL_CELL, NULL, NULL));
    TRL_TRY(trl_deps_require(deps, "S", TRL_CELL, NULL, NULL));
done:
    return err;
}

static trl_err random_bind_fields(void *data, const trl_binding *binding)
{
    random_type_state *s = data;
    s->tag[0] = trl_binding_required(binding, "T");
    s->tag[1] = trl_binding_required(binding, "S");
    s->result = trl_binding_computed(binding, "r");
    return TRL_OK;
}

static trl_err random_bind_operators(void *data, const trl_binding *binding)
{
    random_type_state *s = data;
    trl_err err = TRL_OK;
    for (int a = 0; a < 2; ++a) {
        const trl_location face = a == 0 ? TRL_XFACE : TRL_YFACE;
        const struct {
            trl_operator_desc desc;
            const trl_operator **op;
        } list[] = {
            {{.kind = TRL_CENTRAL_GRADIENT, .axis = a}, &s->central[a]},
            {{.kind = TRL_INTERPOLANT, .from = TRL_CELL, .to = face}, &s->to_face[a]},
            {{.kind = TRL_INTERPOLANT, .from = face, .to = TRL_CELL}, &s->to_cell[a]},
            {{.kind = TRL_GRADIENT, .from = TRL_CELL, .to = face}, &s->gradient[a]},
            {{.kind = TRL_GRADIENT, .from = face, .to = TRL_CELL}, &s->divergence[a]},
            {{.kind = TRL_LAPLACIAN}, &s->laplacian},
        };
        for (size_t i = 0; i < sizeof list / sizeof *list; ++i)
            TRL_TRY(trl_binding_operator(binding, &list[i].desc, list[i].op));
    }
done:
    return err;
}

/* Draw a value at cells. args NULL: only its text. */
static trl_err draw_cell(const random_type_state *s, const trl_eval_args *args, int depth, trl_eval_value *out,
                         char *text);

static trl_err draw_leaf(const random_type_state *s, const trl_eval_args *args, trl_eval_value *out, char *text)
{
    static const char *const names[] = {"x", "y", "t", "dt", "dx", "pi"};
    trl_err err = TRL_OK;
    switch (draw(4)) {
    case 0: {
        const double number = draw(16) / 8.0;
        snprintf(text, TEXT, "%g", number);
        if (args) TRL_TRY(trl_eval_number(args, number, out));
        break;
    }
    case 1: {
        const char *name = names[draw(sizeof names / sizeof *names)];
        snprintf(text, TEXT, "%s", name);
        if (args) TRL_TRY(trl_eval_function(args, name, 0, NULL, out));
        break;
    }
    default: {
        const int i = draw(2);
        snprintf(text, TEXT, "%s", i ? "S" : "T");
        if (args) TRL_TRY(trl_eval_required(args, s->tag[i], out));
    }
    }
done:
    return err;
}

static trl_err draw_operator(const random_type_state *s, const trl_eval_args *args, trl_eval_value *v, const char *of,
                             char *text)
{
    const int a = draw(2);
    const char axis = "xy"[a];
    const trl_operator *op[2] = {NULL, NULL};
    trl_err err = TRL_OK;
    switch (draw(5)) {
    case 0:
        snprintf(text, TEXT, "cdd%c(%s)", axis, of);
        op[0] = s->central[a];
        break;
    case 1:
        snprintf(text, TEXT, "laplacian(%s)", of);
        op[0] = s->laplacian;
        break;
    case 2:
        snprintf(text, TEXT, "dd%c(at(%s, %cface))", axis, of, axis);
        op[0] = s->to_face[a], op[1] = s->divergence[a];
        break;
    case 3:
        snprintf(text, TEXT, "at(dd%c(%s), cell)", axis, of);
        op[0] = s->gradient[a], op[1] = s->to_cell[a];
        break;
    default:
        snprintf(text, TEXT, "dd%c(dd%c(%s))", axis, axis, of);
        op[0] = s->gradient[a], op[1] = s->divergence[a];
    }
    for (int i = 0; args && i < 2 && op[i]; ++i) TRL_TRY(trl_eval_apply(args, op[i], v, v));
done:
    return err;
}

static trl_err draw_cell(const random_type_state *s, const trl_eval_args *args, int depth, trl_eval_value *out,
                         char *text)
{
    static const char *const one[] = {"sin", "exp", "tanh", "abs", "-"}, *const two[] = {"+", "-", "*", "<", "max"};
    char *first, *second;
    trl_eval_value v[2];
    trl_err err = TRL_OK;
    if (depth == 0 || draw(8) == 0) return draw_leaf(s, args, out, text);
    first = malloc(2 * (size_t)TEXT);
    if (!first) return TRL_ERR_MEMORY;
    second = first + TEXT;
    TRL_TRY(draw_cell(s, args, depth - 1, &v[0], first));
    const int kind = draw(5);
    if (kind < 2) {
        TRL_TRY(draw_operator(s, args, &v[0], first, text));
        *out = v[0];
    } else if (kind == 2) {
        const char *f = one[draw(sizeof one / sizeof *one)];
        snprintf(text, TEXT, "(%s(%s))", f, first);
        if (args) TRL_TRY(trl_eval_function(args, f, 1, v, out));
    } else {
        const char *f = two[draw(sizeof two / sizeof *two)];
        TRL_TRY(draw_cell(s, args, depth - 1, &v[1], second));
        if (strlen(f) > 1)
            snprintf(text, TEXT, "%s(%s, %s)", f, first, second);
        else
            snprintf(text, TEXT, "((%s) %s (%s))", first, f, second);
        if (args) TRL_TRY(trl_eval_function(args, f, 2, v, out));
    }
done:
    free(first);
    return err;
}

static trl_err random_evaluate(const void *data, const trl_eval_args *args, const trl_box *box)
{
    const random_type_state *s = data;
    static char text[TEXT];
    trl_eval_value value;
    trl_err err = TRL_OK;
    if (box->lo[0] != box->hi[0] || args->required[0].at) return TRL_ERR_PLUGIN; /* there is nothing to compute on */
    random_state = (uint64_t)s->seed;
    TRL_TRY(draw_cell(s, args, DEPTH, &value, text));
    TRL_TRY(trl_eval_set(args, s->result, value));
done:
    return err;
}

static const trl_expr_type random_type = {TYPE("random"),
                                          .params = random_params,
                                          .state_size = sizeof(random_type_state),
                                          .setup = random_setup,
                                          .advertise_dependents = random_advertise,
                                          .bind_fields = random_bind_fields,
                                          .bind_operators = random_bind_operators,
                                          .evaluate = random_evaluate};

/* Two equations advance with the same rate, one by applications, one by the formula. */
START_TEST(what_evaluate_applies_has_the_bits_of_a_formula)
{
    static const char *const fusions[] = {"run.fusion=none", "run.fusion=node", "run.fusion=full"};
    static char text[TEXT];
    for (int seed = 1; seed <= 60; ++seed) {
        random_type_state none = {0};
        trl_eval_value unused;
        random_state = (uint64_t)seed;
        ck_ok(draw_cell(&none, NULL, DEPTH, &unused, text));
        new_deck();
        say("grid: {cells: [9, 7], periodic: [true, true]}\nexpressions:\n  applied: {type: random, computes: [r], "
            "parameters: {seed: %d}}\n  S: \"cos(x) + T\"\n  f: \"%s\"\nequations:\n"
            "  T: {initial: \"sin(2*pi*x)*cos(2*pi*y)\", ddt: \"tanh(r)\"}\n"
            "  U: {initial: \"sin(2*pi*x)*cos(2*pi*y)\", ddt: \"tanh(f)\"}\n"
            "time: {dt: 1e-3, steps: 2, method: rk4}\n",
            seed, text);
        ck_ok(open_set(fusions[seed % 3]));
        ck_ok(run_steps(2));
        trl_gidx n[3], m[3];
        const double *t = values_of("T", n), *u = values_of("U", m);
        for (int i = 0; i < n[0] * n[1]; ++i)
            ck_assert_msg(memcmp(&t[i], &u[i], sizeof *t) == 0, "seed %d, point %d: %.17g, by the formula %s: %.17g",
                          seed, i, t[i], text, u[i]);
    }
    close_problem();
}
END_TEST

/* ---- wrong: uses the functions as its parameter says ---- */

static const trl_param_desc wrong_params[] = {
    {.key = "how", .kind = TRL_PARAM_TEXT, .required = true, .unit = "", .doc = "a mistake"}, {0}};

typedef struct wrong_state {
    char how[32];
    const trl_operator *gradient;
} wrong_state;

static trl_err wrong_setup(void *data, const trl_setup_args *args)
{
    wrong_state *s = data;
    snprintf(s->how, sizeof s->how, "%s", args->params[0].text);
    return TRL_OK;
}

static trl_err wrong_advertise(const void *data, trl_deps *deps)
{
    trl_err err = TRL_OK;
    (void)data;
    TRL_TRY(trl_deps_compute(deps, "w", TRL_CELL));
    TRL_TRY(trl_deps_require(deps, "T", TRL_CELL, NULL, NULL));
done:
    return err;
}

static trl_err wrong_bind_operators(void *data, const trl_binding *binding)
{
    wrong_state *s = data;
    const bool unconnected = strcmp(s->how, "operator") == 0;
    const trl_operator_desc desc = {.kind = TRL_GRADIENT, .from = TRL_CELL, .to = unconnected ? TRL_CELL : TRL_XFACE};
    return trl_binding_operator(binding, &desc, &s->gradient);
}

static trl_err wrong_evaluate(const void *data, const trl_eval_args *args, const trl_box *box)
{
    const wrong_state *s = data;
    trl_eval_value v, g, none = {-1, 0}, pair[2];
    trl_err err = TRL_OK;
    (void)box;
    TRL_TRY(trl_eval_required(args, 0, &v));
    TRL_TRY(trl_eval_apply(args, s->gradient, &v, &g));
    pair[0] = v, pair[1] = g;
    if (strcmp(s->how, "position") == 0) TRL_TRY(trl_eval_required(args, 1, &v));
    if (strcmp(s->how, "from") == 0) TRL_TRY(trl_eval_apply(args, s->gradient, &g, &g));
    if (strcmp(s->how, "no operator") == 0) TRL_TRY(trl_eval_apply(args, NULL, &v, &g));
    if (strcmp(s->how, "no value") == 0) TRL_TRY(trl_eval_apply(args, s->gradient, &none, &g));
    if (strcmp(s->how, "join") == 0) TRL_TRY(trl_eval_function(args, "+", 2, pair, &g));
    if (strcmp(s->how, "unknown") == 0) TRL_TRY(trl_eval_function(args, "sine", 1, &v, &g));
    if (strcmp(s->how, "arity") == 0) TRL_TRY(trl_eval_function(args, "sin", 2, pair, &g));
    if (strcmp(s->how, "many") == 0) TRL_TRY(trl_eval_function(args, "max", 7, pair, &g));
    if (strcmp(s->how, "axis") == 0) TRL_TRY(trl_eval_function(args, "z", 0, NULL, &g));
    if (strcmp(s->how, "tag") == 0) TRL_TRY(trl_eval_set(args, -1, v));
    if (strcmp(s->how, "location") == 0) TRL_TRY(trl_eval_set(args, 0, g));
    if (strcmp(s->how, "silence") == 0) return TRL_ERR_PLUGIN;
    if (strcmp(s->how, "unset") == 0) return TRL_OK;
    TRL_TRY(trl_eval_set(args, 0, v));
    if (strcmp(s->how, "twice") == 0) TRL_TRY(trl_eval_set(args, 0, v));
done:
    return err;
}

static const trl_expr_type wrong_type = {TYPE("wrong"),
                                         .params = wrong_params,
                                         .state_size = sizeof(wrong_state),
                                         .setup = wrong_setup,
                                         .advertise_dependents = wrong_advertise,
                                         .bind_operators = wrong_bind_operators,
                                         .evaluate = wrong_evaluate};

START_TEST(misuse_is_named_with_the_entry)
{
    static const struct {
        const char *how, *message;
    } cases[] = {
        {"position", "type 'wrong' takes required tag 1 of 1; trl_binding_required gives positions"},
        {"from", "type 'wrong' applies a gradient to a value at xface; it takes one at cell"},
        {"no operator", "type 'wrong' applies no operator; trl_binding_operator gives one"},
        {"no value", "type 'wrong' passes gradient something that is no value"},
        {"join", "type 'wrong' calls '+' of values at cell and xface; apply an interpolant to one"},
        {"unknown", "type 'wrong' calls 'sine' of 1 value; there is no such function"},
        {"arity", "type 'wrong' calls 'sin' of values at cell and xface"},
        {"many", "type 'wrong' calls 'max' of 7 values; there is no such function"},
        {"axis", "type 'wrong' uses 'z', and this grid is 2-D"},
        {"tag", "type 'wrong' sets computed tag -1 of 1; trl_binding_computed gives positions"},
        {"location", "type 'wrong' sets 'w' to a value at xface; it advertised cell"},
        {"silence", "evaluate of type 'wrong' failed (a plugin is missing, incompatible or returned an error) without "
                    "a message"},
        {"unset", "evaluate of type 'wrong' does not set 'w'; use trl_eval_set"},
        {"twice", "type 'wrong' sets 'w' twice"},
    };
    for (size_t i = 0; i <= sizeof cases / sizeof *cases; ++i) {
        const bool good = i == sizeof cases / sizeof *cases;
        char text[300];
        new_deck();
        say("grid: {cells: [8, 6], periodic: [true, true]}\nexpressions:\n  w: {type: wrong, parameters: {how: "
            "\"%s\"}}\n"
            "equations: {T: {initial: x, ddt: w}}\ntime: {dt: 0.1, steps: 1}\n",
            good ? "good" : cases[i].how);
        if (good) {
            ck_ok(open_problem());
            ck_ok(run_steps(1));
            continue;
        }
        snprintf(text, sizeof text, "test.yaml:4:3: %s", cases[i].message);
        ck_fails(open_problem(), TRL_ERR_PLUGIN, text);
        test_clear();
    }
    close_problem();
}
END_TEST

START_TEST(operators_are_made_for_locations_that_their_kind_connects)
{
    new_deck();
    say("grid: {cells: [8, 6], periodic: [true, true]}\nexpressions:\n  w: {type: wrong, parameters: {how: operator}}\n"
        "equations: {T: {initial: x, ddt: w}}\ntime: {dt: 0.1, steps: 1}\n");
    ck_fails(open_problem(), TRL_ERR_USAGE, "no gradient leads from cell to cell on a 2-D grid");
    close_problem();
    trl_eval_value v = {0};
    ck_assert_int_eq(trl_eval_required(&(trl_eval_args){0}, 0, &v), TRL_ERR_USAGE); /* no type that is NEUTRAL */
    ck_assert_int_eq(trl_eval_number(NULL, 1, &v), TRL_ERR_USAGE);
    ck_assert_int_eq(trl_eval_apply(NULL, NULL, &v, &v), TRL_ERR_USAGE);
    ck_assert_int_eq(trl_eval_function(NULL, "t", 0, NULL, &v), TRL_ERR_USAGE);
    ck_assert_int_eq(trl_eval_set(NULL, 0, v), TRL_ERR_USAGE);
    ck_assert_int_eq(trl_binding_operator(NULL, NULL, NULL), TRL_ERR_USAGE);
}
END_TEST

static const trl_expr_type *const all_types[] = {&random_type, &wrong_type, NULL};

static void add_tests(TCase *tc)
{
    test_types = all_types;
    tcase_add_test(tc, what_evaluate_applies_has_the_bits_of_a_formula);
    tcase_add_test(tc, misuse_is_named_with_the_entry);
    tcase_add_test(tc, operators_are_made_for_locations_that_their_kind_connects);
}

TRL_TEST_MAIN("neutral", add_tests)
