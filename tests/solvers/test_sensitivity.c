/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Sensitivities: against solutions known exactly, against differences of two runs for everything a deck can say, with
 * the same bits in every way of running, and without changing what they are derivatives of. */
// ctest: np=1,2 timeout=300 sanitize=1
#include "../expressions/problem_fixture.h"

/* A deck without its parameter's line: `rest` is everything below. The derivatives of the tags by parameter p. */
typedef struct deck_case {
    const char *name;
    double p;
    const char *grid, *rest;
    const char *tag[3]; /* equations */
    int steps;
} deck_case;

#define SIDES_1D "boundary: {x-: {dirichlet: 0}, x+: {neumann: 0}}"

static const deck_case deck_cases[] = {
    {"heat",
     0.7,
     "cells: [12]",
     "equations: {T: {initial: \"sin(p*x)\", ddt: \"p*laplacian(T)\", " SIDES_1D "}}\n",
     {"T"},
     20},
    {"robin in 2-D with corners",
     0.7,
     "cells: [9, 7]",
     "equations:\n"
     "  T:\n"
     "    initial: \"1 + x*y\"\n"
     "    ddt: \"div(T*grad(T)) + at(at(T, node), cell) - T\"\n"
     "    boundary: {x-: {robin: {a: \"1 + p*y\", b: \"p^2\", c: \"p*t\"}}, x+: {dirichlet: \"p*sin(t) + y\"},\n"
     "               y-: {neumann: \"p*x\"}, y+: [{where: \"x > p\", robin: {a: p, b: 1, c: T}}, {outflow: true}]}\n",
     {"T"},
     5},
    {"points on sides",
     1.3,
     "cells: [10]",
     "equations:\n"
     "  u:\n"
     "    location: xface\n"
     "    initial: \"cos(p*x)\"\n"
     "    ddt: \"0.1*laplacian(u) - u*at(at(u, cell), xface)\"\n"
     "    boundary: {x-: {dirichlet: \"exp(-p*t)\"}, x+: {robin: {a: p, b: \"1/p\", c: \"p*cos(t)\"}}}\n",
     {"u"},
     20},
    {"limited transport",
     0.9,
     "cells: [11, 6], periodic: [true, false]",
     "expressions:\n"
     "  wind: [\"p*sin(2*pi*x) + 0.3\", \"0.4*p + 0.1*y\"]\n"
     "equations:\n"
     "  c:\n"
     "    initial: \"2 + sin(2*pi*x)*exp(-p*y)\"\n"
     "    ddt: \"-div(advective_flux(c, wind, vanleer))\"\n"
     "    boundary: {y-: {dirichlet: \"2 + p*x*(1-x)\"}, y+: {outflow: true}}\n",
     {"c"},
     6},
    {"gray-scott",
     0.04,
     "cells: [8, 8], periodic: [true, true]",
     "expressions: {r: \"u*v^2\"}\n"
     "equations:\n"
     "  u: {initial: \"1 - 0.4*sin(2*pi*x)^2\", ddt: \"2e-3*laplacian(u) - r + p*(1 - u)\"}\n"
     "  v: {initial: \"0.3 + 0.1*cos(2*pi*y)\", ddt: \"1e-3*laplacian(v) + r - (p + 0.06)*v\"}\n"
     "  w: {initial: \"x\", ddt: \"-w*u\"}\n",
     {"u", "v"},
     30},
    {"parameters of parameters",
     0.6,
     "cells: [8], periodic: [true]",
     "more:\n"
     "  q: \"p^2 + pi\"\n"
     "  \"D{i}\": {for: {i: 1..2}, values: [\"q/10\", \"p*i/20\"]}\n"
     "expressions:\n"
     "  flux: {formula: \"-a*D1*grad(T)\", parameters: {a: \"b + p\", b: \"sqrt(q)\"}}\n"
     "equations:\n"
     "  T: {initial: \"sin(2*pi*x)\", ddt: \"-div(flux) + sum(j=1..2, D{j}*T) - if(p > 0.5, q, 0)*T\"}\n",
     {"T"},
     20},
    {"integrals, norms, extremes, probes",
     0.8,
     "cells: [9]",
     "equations:\n"
     "  T:\n"
     "    initial: \"1 + p*x*(1 - x)*(x + 0.3)\"\n"
     "    ddt: \"0.1*laplacian(T) - integral(T^2)*T + norm(p*T) - domain_max(T)*x + domain_min(T*x) + probe(T, "
     "[0.4])\"\n"
     "    boundary: {x-: {neumann: \"integral(p*T)\"}, x+: {dirichlet: 1}}\n",
     {"T"},
     10},
    {"values outside the domain of expressions",
     0.8,
     "cells: [9]",
     "expressions:\n"
     "  k: {formula: \"1 + p*T^2\", boundary: {x-: {dirichlet: \"1 + p\"}, x+: {neumann: \"p*T\"}}}\n"
     "  f: {formula: \"x\", boundary: {x-: {dirichlet: p}, x+: {dirichlet: 1}}}\n"
     "  g: {formula: \"p*T\", evaluate: step, boundary: {x-: {dirichlet: \"t*p\"}, x+: {neumann: 0}}}\n"
     "equations:\n"
     "  T: {initial: \"1 + x\", ddt: \"div(at(k, faces)*grad(T)) + laplacian(f) + laplacian(g)/9 + "
     "old(T)*p\", " SIDES_1D "}\n",
     {"T"},
     10},
    {"a mask",
     0.8,
     "cells: [10]",
     "equations:\n"
     "  T: {initial: \"p*x\", ddt: \"p*laplacian(T) + integral(T)\", mask: \"x > 0.3*p\", " SIDES_1D "}\n",
     {"T"},
     10},
    {"wide filters and stencils",
     0.8,
     "cells: [9, 9, 9], periodic: [true, true, true]",
     "stencils: {s: {to: cell, points: [[[-2, 0, 0], 0.5], [[2, 0, 0], 0.5]]}}\n"
     "equations:\n"
     "  T: {initial: \"sin(2*pi*x)*cos(2*pi*y) + z*0\", ddt: \"box_filter(p*T^2, 9) - s(T)*T + div(harmonic(T^2 + p, "
     "faces)*grad(T))/100\"}\n",
     {"T"},
     3},
    {"an expression on a side",
     0.8,
     "cells: [8]",
     "expressions: {outside: \"p*T*t + p^2\"}\n"
     "equations:\n"
     "  T: {initial: \"p*x\", ddt: \"p*laplacian(T)\", boundary: {x-: {expression: outside}, x+: {neumann: 0}}}\n",
     {"T"},
     10},
    {"everything at once",
     0.8,
     "cells: [12, 13], length: [1, 1.3]",
     "expressions:\n"
     "  q: \"-p*grad(T)\"\n"
     "  v: [\"at(sin(3*y*p), xface)\", \"at(cos(2*x), yface)\"]\n"
     "  noise: {formula: \"random(3) + 0*t\", location: cell}\n"
     "  held: {formula: \"T*T + t\", evaluate: step}\n"
     "  r:\n"
     "    formula: \"T + at(N, cell)\"\n"
     "    boundary: {x-: {neumann: 0}, x+: {dirichlet: p}, y-: {outflow: true}, y+: {neumann: \"x\"}}\n"
     "  wide: \"laplacian(laplacian(r) - T)\"\n"
     "equations:\n"
     "  T:\n"
     "    initial: \"exp(-8*(x-0.5)^2 - 8*p*(y-0.6)^2) + 0.1*sin(3*x)\"\n"
     "    ddt: \"-div(q)/50 - div(advective_flux(T, v, vanleer)) + 0.1*held + 1e-6*wide + 0.01*norm(T) - "
     "0.01*old(T)\"\n"
     "    boundary:\n"
     "      x-: {dirichlet: \"sin(t + y*p)\"}\n"
     "      x+: [{where: \"y > 0.51\", neumann: \"t\"}, {robin: {a: 1, b: p, c: \"T\"}}]\n"
     "      y-: {outflow: true}\n"
     "      y+: {dirichlet: \"at(N, cell)\"}\n"
     "    mask: \"(x-0.7)^2 + (y-0.3)^2 > 0.02\"\n"
     "  N:\n"
     "    location: xface\n"
     "    initial: \"x + p*y\"\n"
     "    ddt: \"p*laplacian(N)/50 + at(noise, xface) + 0.1*probe(T, [0.33, 0.9]) - 0.1*integral(T)\"\n"
     "    boundary:\n"
     "      x-: {dirichlet: \"t*p\"}\n"
     "      x+: {neumann: 1}\n"
     "      y-: {neumann: 0}\n"
     "      y+: {robin: {a: 1, b: 1, c: p}}\n",
     {"T", "N"},
     4},
    {"a family",
     0.5,
     "cells: [8], periodic: [true]",
     "equations:\n"
     "  \"c{i}\": {for: {i: 1..3}, initial: \"sin(2*pi*x)/i\", ddt: \"p/i*laplacian(c{i})/50 + prod(j=1..3, "
     "exp(-c{j}))\"}\n",
     {"c1", "c2", "c3"},
     10},
};

enum { NCASES = sizeof deck_cases / sizeof *deck_cases };

static void say_case(const deck_case *c, double p, bool sensitive)
{
    static const char more[] = "more:\n"; /* more parameters come first */
    bool has_more = strncmp(c->rest, more, sizeof more - 1) == 0;
    new_deck();
    say("grid: {%s}\ntime: {method: rk4, dt: 1.0e-3, steps: %d}\nparameters:\n  p: %.17g\n%s", c->grid, c->steps, p,
        has_more ? c->rest + sizeof more - 1 : c->rest);
    if (!sensitive) return;
    say("sensitivity: {");
    for (int i = 0; i < 3 && c->tag[i]; ++i) say("%s%s: [p]", i ? ", " : "", c->tag[i]);
    say("}\n");
}

static const char *derivative_name(const char *tag)
{
    static char name[64];
    snprintf(name, sizeof name, "%s_p", tag);
    return name;
}

enum { POINTS_MAX = 1000 };

/* Add a weight times a tag's values to sum. */
static int add_values(const char *tag, double weight, double sum[POINTS_MAX])
{
    trl_gidx n[3];
    const double *v = values_of(tag, n);
    int points = (int)(n[0] * n[1] * n[2]);
    ck_assert_int_le(points, POINTS_MAX);
    for (int i = 0; i < points; ++i) sum[i] += weight * v[i];
    return points;
}

/* Derivatives by extrapolated central differences: runs at p -+ h and p -+ h/2. */
static void by_differences(const deck_case *c, double result[3][POINTS_MAX])
{
    const double h = 2e-3, at[4] = {-h, h, -h / 2, h / 2};
    const double weight[4] = {1 / (6 * h), -1 / (6 * h), -4 / (3 * h), 4 / (3 * h)};
    memset(result, 0, 3 * sizeof *result);
    for (int k = 0; k < 4; ++k) {
        say_case(c, c->p + at[k], false);
        ck_ok(open_set("run.compile=never"));
        ck_ok(run_steps(c->steps));
        for (int i = 0; i < 3 && c->tag[i]; ++i) add_values(c->tag[i], weight[k], result[i]);
    }
}

static void check_case(const deck_case *c)
{
    static double expected[3][POINTS_MAX];
    by_differences(c, expected);
    say_case(c, c->p, true);
    ck_ok(open_set("run.compile=never"));
    ck_ok(run_steps(c->steps));
    for (int i = 0; i < 3 && c->tag[i]; ++i) {
        static double found[POINTS_MAX];
        double largest = 0, worst = 0;
        memset(found, 0, sizeof found);
        int points = add_values(derivative_name(c->tag[i]), 1, found);
        for (int k = 0; k < points; ++k) {
            largest = fmax(largest, fabs(expected[i][k]));
            worst = fmax(worst, fabs(found[k] - expected[i][k]));
        }
        ck_assert_msg(worst <= 1e-8 * (1 + largest) && largest > 1e-4,
                      "%s: the derivative of '%s', at most %.3g, is off by %.3g", c->name, c->tag[i], largest, worst);
    }
}

/* Whether a test has its case _i: sanitizers see each case in one of the three tests. */
static bool has_case(int i, int test)
{
    return test_has(i + test, TEST_SANITIZED ? 3 : 1);
}

START_TEST(a_sensitivity_is_the_difference_of_two_runs)
{
    if (!has_case(_i, 0)) return;
    check_case(&deck_cases[_i]);
    close_problem();
}
END_TEST

START_TEST(bits_do_not_depend_on_fusion_patches_or_compilation)
{
    const deck_case *c = &deck_cases[_i];
    static const char *const patches[] = {"", "grid.patches=[2]", "grid.patches=[1, 2]", "grid.patches=[2, 1, 1]"};
    const char *settings[][2] = {{"run.fusion=full", "run.compile=never"},
                                 {"run.fusion=node", "run.scheduler=serial"},
                                 {"run.fusion=none", "run.compile=never"},
                                 {"run.fusion=full", NULL},
                                 {"run.fusion=full", "run.compile=always"}};
    const int compiled_cases = 4; /* what the compiler sees differs little from case to case */
    int nsettings = _i < compiled_cases ? 5 : 4;
    uint64_t first[6];
    if (!has_case(_i, 1)) return;
    for (int s = 0; s < nsettings; ++s) {
        if (!settings[s][1]) settings[s][1] = patches[the_grid()->dim];
        say_case(c, c->p, true);
        ck_ok(open_problem_with(2, settings[s]));
        ck_ok(run_steps(c->steps));
        for (int i = 0, n = 0; i < 3 && c->tag[i]; ++i)
            for (int derived = 0; derived < 2; ++derived, ++n) {
                const char *tag = derived ? derivative_name(c->tag[i]) : c->tag[i];
                if (s == 0) first[n] = hash_of(tag);
                ck_assert_msg(first[n] == hash_of(tag), "%s: '%s' with %s and %s", c->name, tag, settings[s][0],
                              settings[s][1]);
            }
    }
    close_problem();
}
END_TEST

START_TEST(an_equation_has_the_same_bits_with_and_without_its_sensitivity)
{
    const deck_case *c = &deck_cases[_i];
    uint64_t without[3];
    if (!has_case(_i, 2)) return;
    for (int sensitive = 0; sensitive < 2; ++sensitive) {
        say_case(c, c->p, sensitive);
        ck_ok(open_set("run.compile=never"));
        ck_ok(run_steps(c->steps));
        for (int i = 0; i < 3 && c->tag[i]; ++i) {
            if (!sensitive) without[i] = hash_of(c->tag[i]);
            ck_assert_msg(without[i] == hash_of(c->tag[i]), "%s: '%s'", c->name, c->tag[i]);
        }
    }
    close_problem();
}
END_TEST

static void add_tests(TCase *tc)
{
    test_compile_quickly();
    tcase_add_loop_test(tc, a_sensitivity_is_the_difference_of_two_runs, 0, NCASES);
    tcase_add_loop_test(tc, bits_do_not_depend_on_fusion_patches_or_compilation, 0, NCASES);
    tcase_add_loop_test(tc, an_equation_has_the_same_bits_with_and_without_its_sensitivity, 0, NCASES);
}

TRL_TEST_MAIN("sensitivity", add_tests)
