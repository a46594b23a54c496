/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Numbers, functions, selects, products that interpolate, vectors and families: each formula against the value
 * computed in C or against a formula that spells its meaning out with operators alone. */
// ctest: np=1,2 sanitize=1
#include "problem_fixture.h"

static const char *const levels[] = {"none", "node", "full"};

/* A 2-D problem with cell values a, b, c, face vectors v and w and xface value u, and the formulas e0, e1, ... */
static void say_plane(int n, const char *const *formula, const char *fusion)
{
    new_deck();
    say("grid: {cells: [6, 5], length: [1.5, 1], origin: [0.25, 0.5]}\nparameters: {two: 2, n: 3, phi2: "
        "5}\nexpressions:\n"
        "  a: {formula: \"1 + x*y\", location: cell}\n  b: {formula: \"2 + sin(3*x - y)\", location: cell}\n"
        "  c: {formula: \"exp(y - x)\", location: cell}\n"
        "  u: {formula: \"cos(x) + y\", location: xface}\n  s: {formula: \"y*y - x\", location: yface}\n"
        "  v: [u, s]\n  w: \"grad(a*b)\"\n  free: \"x + 10*y\"\n"
        "  \"m{i}\": {for: {i: 1..n}, formula: \"i*a + b^i\"}\n");
    for (int i = 0; i < n; ++i) say("  e%d: \"%s\"\n", i, formula[i]);
    say("equations: {T: {initial: 0, ddt: 0}}\ntime: {dt: 0.1, steps: 1}\nrun: {fusion: %s}\noutput: {fields: [T",
        fusion);
    for (int i = 0; i < n; ++i) say(", e%d", i);
    say("]}\n");
}

/* Two formulas for the same thing. */
typedef struct meaning {
    const char *formula, *spelled;
} meaning;

static void check_component(const char *first, const char *second, const meaning *m, const char *fusion)
{
    trl_gidx n[3], k[3];
    const double *a = values_of(first, n), *b = values_of(second, k);
    ck_assert_msg(location_of(first) == location_of(second), "%s is at %s, %s at %s", m->formula,
                  trl_location_name(location_of(first)), m->spelled, trl_location_name(location_of(second)));
    for (int p = 0; p < n[0] * n[1] * n[2]; ++p)
        ck_assert_msg(memcmp(&a[p], &b[p], sizeof a[p]) == 0, "fusion %s: %s at point %d is %.17g, %s is %.17g", fusion,
                      m->formula, p, a[p], m->spelled, b[p]);
}

static void check_meanings(int n, const meaning *list)
{
    const char *formula[64];
    ck_assert_int_le(n, 32);
    for (ptrdiff_t i = 0; i < n; ++i) {
        formula[2 * i] = list[i].formula;
        formula[2 * i + 1] = list[i].spelled;
    }
    for (int level = 0; level < 3; ++level) {
        say_plane(2 * n, formula, levels[level]);
        ck_ok(open_problem());
        ck_ok(run_steps(0));
        for (int f = 1; f < trl_simulation_fields(sim);) {
            char first[24], second[24];
            int pair;
            const char *name = trl_simulation_field(sim, f)->name, *dot = strchr(name, '.');
            ck_assert_int_eq(sscanf(name, "e%d", &pair), 1);
            snprintf(first, sizeof first, "e%d%s", pair, dot ? dot : "");
            snprintf(second, sizeof second, "e%d%s", pair + 1, dot ? dot : "");
            check_component(first, second, &list[pair / 2], levels[level]);
            for (++f; f < trl_simulation_fields(sim) && sscanf(trl_simulation_field(sim, f)->name, "e%d", &pair) == 1 &&
                      pair % 2;)
                ++f;
        }
    }
    close_problem();
}

START_TEST(a_product_interpolates_its_cell_factors_once_to_the_face_of_the_others)
{
    static const meaning list[] = {
        {"grad(a)/b", "[grad(a).x/at(b, xface), grad(a).y/at(b, yface)]"},
        {"a*b*v", "[at(a*b, xface)*u, at(a*b, yface)*s]"},
        {"b*a*v", "[at(b*a, xface)*u, at(b*a, yface)*s]"},
        {"a*v*b", "[at(a*b, xface)*u, at(a*b, yface)*s]"},
        {"v*a/b/c", "[u*at(a, xface)/at(b*c, xface), s*at(a, yface)/at(b*c, yface)]"},
        {"a/b*v", "[at(a, xface)/at(b, xface)*u, at(a, yface)/at(b, yface)*s]"},
        {"(a/b)*v", "[at(a, xface)/at(b, xface)*u, at(a, yface)/at(b, yface)*s]"},
        {"a*(b*v)", "[at(a, xface)*(at(b, xface)*u), at(a, yface)*(at(b, yface)*s)]"},
        {"2*a*v", "[2*at(a, xface)*u, 2*at(a, yface)*s]"},
        {"-a*v", "[at(-a, xface)*u, at(-a, yface)*s]"},
        {"u*a", "u*at(a, xface)"},
        {"a*u*x", "at(a, xface)*u*at(x, xface)"},
        {"a*b/c", "(a*b)/c"},
        {"free*v", "[at(free, xface)*u, at(free, yface)*s]"},
        {"v*free/a", "[u*(x + 10*y)/at(a, xface), s*(x + 10*y)/at(a, yface)]"},
        {"-a*b*grad(c)/two", "[at(-a*b, xface)*ddx(c)/2, at(-a*b, yface)*ddy(c)/2]"},
    };
    check_meanings(sizeof list / sizeof *list, list);
}
END_TEST

START_TEST(vectors_act_by_component)
{
    static const meaning list[] = {
        {"v + w", "[u + w.x, s + w.y]"},
        {"v - w", "[v.x - ddx(a*b), v.y - ddy(a*b)]"},
        {"-v", "[-u, -s]"},
        {"two*v", "[2*u, 2*s]"},
        {"v/two", "[u/2, s/2]"},
        {"[a, b].y", "b"},
        {"(v + w).x", "u + w.x"},
        {"at(v, cell)", "[at(u, cell), at(s, cell)]"},
        {"at([a, b], faces)", "[at(a, xface), at(b, yface)]"},
        {"at(a, faces)", "[at(a, xface), at(a, yface)]"},
        {"dot(at(v, cell), [a, b])", "at(u, cell)*a + at(s, cell)*b"},
        {"mag([a, b])", "sqrt(a*a + b*b)"},
        {"mag(at(w, cell))", "sqrt(at(w.x, cell)*at(w.x, cell) + at(w.y, cell)*at(w.y, cell))"},
        {"if(x > 1, [a, b], [c, 2])", "[if(x > 1, a, c), if(x > 1, b, 2)]"},
        {"div(grad(a))", "ddx(ddx(a)) + ddy(ddy(a))"},
        {"div(a*grad(b))", "ddx(at(a, xface)*ddx(b)) + ddy(at(a, yface)*ddy(b))"},
        {"div([x*y, y])", "ddx(at(x*y, xface)) + ddy(at(y, yface))"},
        {"at(x*y, node)", "if(1 > 0, at(x*y, node), 0)"},
    };
    check_meanings(sizeof list / sizeof *list, list);
}
END_TEST

START_TEST(families_expand_to_the_terms_they_stand_for)
{
    static const meaning list[] = {
        {"sum(i=1..3, m{i})", "m1 + m2 + m3"},
        {"prod(i=1..n, m{i})", "m1*m2*m3"},
        {"sum(i=1..n, i*m{n + 1 - i})", "1*m3 + 2*m2 + 3*m1"},
        {"sum(i=1..2, prod(j=i..n, m{j} + i))", "(m1 + 1)*(m2 + 1)*(m3 + 1) + (m2 + 2)*(m3 + 2)"},
        {"a + sum(i=2..1, m{i})", "a + 0"},
        {"a*prod(i=2..1, m{i})", "a*1"},
        {"sum(i=1..n, if(i == n, m1, m{i + 1}))", "m2 + m3 + m1"},
        {"m2", "2*a + b^2"},
        {"sum(i=1..n, [m{i}, i*a])", "[m1 + m2 + m3, 1*a + 2*a + 3*a]"},
    };
    check_meanings(sizeof list / sizeof *list, list);
}
END_TEST

START_TEST(operators_bind_as_the_language_says)
{
    static const meaning list[] = {
        {"-a^2", "0 - a*a - 0"},
        {"a^-2", "1/(a*a)"},
        {"a**3", "a*a*a"},
        {"(a*a)^0.5", "sqrt(a*a)"},
        {"(a*a)^-2.5", "1/((a*a)*(a*a)*sqrt(a*a))"},
        {"2^a^two", "2^(a*a)"},
        {"a - b - c", "(a - b) - c"},
        {"a/b/c", "(a/b)/c"},
        {"a < b and b < c or not a > 1", "((a < b) and (b < c)) or (not (a > 1))"},
        {"a > b", "b < a"},
        {"a >= b", "b <= a"},
        {"not a == b", "a != b"},
        {"a^0", "if(1 < 2, 1, a)"},
        {"min(a, b, c)", "min(min(a, b), c)"},
        {"at(x, cell)*dx*dy", "at(x, cell)*0.25*0.2"},
        {"true + false", "1 + 0"},
        {"if(0 < 1, a, sqrt(-a))", "a"},
        {"if(a > 1.9, 1, 0)*3", "3*(a > 1.9)"},
    };
    check_meanings(sizeof list / sizeof *list, list);
}
END_TEST

START_TEST(the_other_side_of_a_select_may_be_nan)
{
    static const char *const formula[] = {"if(x > 0.9, sqrt(x - 0.9), -1)", "if(x > 0.9, 1/0*0, y)"};
    trl_gidx n[3];
    say_plane(2, formula, "full");
    ck_ok(open_problem());
    ck_ok(run_steps(0));
    const double *e = values_of("e0", n), *f = values_of("e1", n);
    for (int j = 0; j < n[1]; ++j)
        for (int i = 0; i < n[0]; ++i) {
            double x = 0.25 + (i + 0.5) * 0.25, y = 0.5 + (j + 0.5) * 0.2;
            ck_assert_double_eq_tol(e[i + n[0] * j], x > 0.9 ? sqrt(x - 0.9) : -1, 1e-14);
            ck_assert(x > 0.9 ? isnan(f[i + n[0] * j]) : near(f[i + n[0] * j], y, 1e-15));
        }
    close_problem();
}
END_TEST

/* An argument inside the function's domain, from a value in (0, 2). */
static const char *argument_of(const char *name)
{
    static const char *const narrow[] = {"asin", "acos", "atanh"};
    for (size_t i = 0; i < sizeof narrow / sizeof *narrow; ++i)
        if (strcmp(name, narrow[i]) == 0) return "0.4*q";
    return strcmp(name, "acosh") == 0 ? "1 + q" : "q";
}

START_TEST(every_function_gives_what_its_table_entry_computes)
{
    int count;
    const trl_function *f = trl_functions(&count);
    trl_gidx n[3];
    new_deck();
    say("grid: {cells: [11]}\nexpressions:\n  q: {formula: \"2*x - 0.04\", location: cell}\n  r: {formula: \"1.3 - "
        "x\", location: cell}\n");
    for (int i = 0; i < count; ++i) {
        say("  e%d: \"%s(%s%s)\"\n", i, f[i].name, argument_of(f[i].name), f[i].arity == 2 ? ", r" : "");
        say("  k%d: \"%s(0.7%s) + 0*x\"\n", i, f[i].name,
            f[i].arity == 2                   ? ", 0.3"
            : strcmp(f[i].name, "acosh") == 0 ? " + 1"
                                              : "");
    }
    say("equations: {T: {initial: 0, ddt: 0}}\ntime: {dt: 0.1, steps: 1}\noutput: {fields: [q, r");
    for (int i = 0; i < count; ++i) say(", e%d, k%d", i, i);
    say("]}\n");
    ck_ok(open_problem());
    ck_ok(run_steps(0));
    const double *at = values_of("q", n), *other = values_of("r", n);
    double q[11], r[11];
    memcpy(q, at, sizeof q);
    memcpy(r, other, sizeof r);
    for (int i = 0; i < count; ++i) {
        char name[16], constant[16];
        snprintf(name, sizeof name, "e%d", i);
        snprintf(constant, sizeof constant, "k%d", i);
        const double *found = values_of(name, n), *folded = values_of(constant, n);
        double fixed = strcmp(f[i].name, "acosh") == 0 ? 1.7 : 0.7;
        for (int p = 0; p < n[0]; ++p) {
            double a = strcmp(argument_of(f[i].name), "0.4*q") == 0 ? 0.4 * q[p]
                       : strcmp(f[i].name, "acosh") == 0            ? 1 + q[p]
                                                                    : q[p];
            double expected = f[i].arity == 1 ? f[i].unary(a) : f[i].binary(a, r[p]);
            ck_assert_msg(near(found[p], expected, 1e-15), "%s(%g): %.17g, not %.17g", f[i].name, a, found[p],
                          expected);
            ck_assert_msg(near(folded[p], f[i].arity == 1 ? f[i].unary(fixed) : f[i].binary(fixed, 0.3), 1e-15),
                          "%s of numbers", f[i].name);
        }
    }
    close_problem();
}
END_TEST

START_TEST(in_one_dimension_a_vector_is_its_component)
{
    static const meaning list[] = {
        {"left(a)^2", "left(a).x^2"},
        {"max(left(a), 1.5)", "max(left(a).x, 1.5)"},
        {"left(a) - right(a).x", "left(a).x - right(a).x"},
        {"1/left(a) + right(a)/grad(a)", "1/left(a).x + right(a).x/grad(a).x"},
        {"if(left(a) < right(a), 2, left(a))", "if(left(a).x < right(a).x, 2, left(a).x)"},
        {"ddx(left(a) + 2*u)", "ddx(left(a).x + 2*u)"},
        {"div(left(a)*u.x)", "div(left(a).x*u)"},
        {"not (grad(a) > 1)", "not (grad(a).x > 1)"},
    };
    enum { N = sizeof list / sizeof *list };
    new_deck();
    say("grid: {cells: [7], periodic: [true]}\nexpressions:\n  a: {formula: \"1 + sin(6*x)\", location: cell}\n"
        "  u: {formula: \"cos(x)\", location: xface}\n");
    for (int i = 0; i < N; ++i) say("  f%d: \"%s\"\n  s%d: \"%s\"\n", i, list[i].formula, i, list[i].spelled);
    say("equations: {T: {initial: 0, ddt: \"at(left(a), cell)\"}}\ntime: {dt: 0.1, steps: 1}\n"
        "output: {fields: [T");
    for (int i = 0; i < N; ++i) say(", f%d, s%d", i, i);
    say("], series: {every: {steps: 1}, values: {n: \"norm(grad(a))\", v: \"[t]\"}}}\n");
    ck_ok(open_problem());
    ck_ok(run_steps(1));
    for (int i = 0; i < N; ++i) {
        char first[24], second[24];
        snprintf(first, sizeof first, "f%d", i);
        snprintf(second, sizeof second, "s%d", i);
        check_component(first, second, &list[i], "full");
    }
    close_problem();
}
END_TEST

START_TEST(cross_and_dot_work_in_three_dimensions)
{
    trl_gidx n[3];
    new_deck();
    say("grid: {cells: [3, 4, 3]}\nexpressions:\n  p: [\"x + y\", \"at(z, cell)\", 2]\n  q: [\"y\", \"x*z\", \"at(x, "
        "cell)\"]\n  e: \"cross(p, q)\"\n  d: \"dot(p, q)\"\n"
        "equations: {T: {initial: 0, ddt: 0}}\ntime: {dt: 0.1, steps: 1}\noutput: {fields: [e, d]}\n");
    ck_ok(open_problem());
    ck_ok(run_steps(0));
    const double *ex = values_of("e.x", n), *ey = values_of("e.y", n), *ez = values_of("e.z", n),
                 *d = values_of("d", n);
    for (int i = 0; i < 36; ++i) {
        double x = (i % 3 + 0.5) / 3, y = (i / 3 % 4 + 0.5) / 4, z = (i / 12 % 3 + 0.5) / 3, p[] = {x + y, z, 2},
               q[] = {y, x * z, x};
        ck_assert(near(ex[i], p[1] * q[2] - p[2] * q[1], 1e-15) && near(ey[i], p[2] * q[0] - p[0] * q[2], 1e-15));
        ck_assert(near(ez[i], p[0] * q[1] - p[1] * q[0], 1e-15) &&
                  near(d[i], p[0] * q[0] + p[1] * q[1] + p[2] * q[2], 1e-15));
    }
    close_problem();
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, a_product_interpolates_its_cell_factors_once_to_the_face_of_the_others);
    tcase_add_test(tc, vectors_act_by_component);
    tcase_add_test(tc, families_expand_to_the_terms_they_stand_for);
    tcase_add_test(tc, operators_bind_as_the_language_says);
    tcase_add_test(tc, the_other_side_of_a_select_may_be_nan);
    tcase_add_test(tc, every_function_gives_what_its_table_entry_computes);
    tcase_add_test(tc, in_one_dimension_a_vector_is_its_component);
    tcase_add_test(tc, cross_and_dot_work_in_three_dimensions);
}

TRL_TEST_MAIN("arithmetic", add_tests)
