/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Every kind of boundary condition, on every side, for every location: a diffusion problem converges with order 2
 * (order 1 beside an outflow that has points on the side), and the value or derivative on the side is the one asked
 * for, to rounding. Prints a table of docs/verification.md. */
// ctest: sanitize=none timeout=900
#include "../expressions/problem_fixture.h"

enum { GRIDS = 3 };

/* X(name, text): what the condition on the side under test is; the other sides are Dirichlet, but MIXED deals all kinds
 * to all sides. */
#define KIND_LIST(X)          \
    X(DIRICHLET, dirichlet)   \
    X(NEUMANN, neumann)       \
    X(ROBIN, robin)           \
    X(OUTFLOW, outflow)       \
    X(PIECES, pieces)         \
    X(EXPRESSION, expression) \
    X(MIXED, mixed)
#define KIND_ENUM(name, text) name,
typedef enum kind { KIND_LIST(KIND_ENUM) KINDS } kind;
#define KIND_NAME(name, text) #text,
static const char *const kind_name[] = {KIND_LIST(KIND_NAME)};

/* exp(-t) times the product of cos(k (x - c)) over the axes. c is on the side where the derivative must vanish. */
static const double k[3] = {1.3, 1.1, 0.9};
static double c[3];
static int dim, location, tested;
static kind tested_kind;

static double solution(const double p[3], double t)
{
    double u = exp(-t);
    for (int a = 0; a < dim; ++a) u *= cos(k[a] * (p[a] - c[a]));
    return u;
}

/* Its derivative along an axis. */
static double slope(const double p[3], double t, int axis)
{
    double u = exp(-t);
    for (int a = 0; a < dim; ++a) u *= a == axis ? -k[a] * sin(k[a] * (p[a] - c[a])) : cos(k[a] * (p[a] - c[a]));
    return u;
}

static bool on_side(int side)
{
    return location >> side / 2 & 1;
}

static kind kind_of(int side)
{
    static const kind dealt[] = {ROBIN, DIRICHLET, PIECES, NEUMANN, EXPRESSION};
    if (tested_kind == MIXED) return dealt[(side + tested) % 5];
    return side == tested ? tested_kind : DIRICHLET;
}

/* Pieces change their kind along the first other axis. */
static int along(int side)
{
    return side / 2 == 0 ? 1 : 0;
}

static void say_side(int side)
{
    char outward[32];
    snprintf(outward, sizeof outward, "%sslope_%c", side % 2 ? "" : "-", "xyz"[side / 2]);
    say("%s%c%c: ", side ? ", " : "", "xyz"[side / 2], side % 2 ? '+' : '-');
    switch (kind_of(side)) {
    case NEUMANN:
        say("{neumann: \"%s\"}", outward);
        return;
    case ROBIN:
        say("{robin: {a: 2, b: 0.5, c: \"2*solution + 0.5*(%s)\"}}", outward);
        return;
    case OUTFLOW:
        say("{outflow: true}");
        return;
    case PIECES:
        if (dim > 1)
            say("[{where: \"%c > 0.5\", dirichlet: solution}, {neumann: \"%s\"}]", "xyz"[along(side)], outward);
        else
            say("[{where: \"t < 0\", dirichlet: 7}, {neumann: \"%s\"}]", outward);
        return;
    case EXPRESSION:
        say("{expression: edge_%s}", on_side(side) ? "point" : "ghost");
        return;
    default:
        say("{dirichlet: solution}");
    }
}

static void say_expressions(void)
{
    say("expressions:\n  edge_point: solution\n  edge_ghost: \"2*solution - T\"\n  solution: \"exp(-t)");
    for (int a = 0; a < dim; ++a) say("*cos(%.17g*(%c - %g))", k[a], "xyz"[a], c[a]);
    say("\"\n");
    for (int s = 0; s < dim; ++s) {
        say("  slope_%c: \"exp(-t)*(%.17g)", "xyz"[s], -k[s]);
        for (int a = 0; a < dim; ++a) say("*%s(%.17g*(%c - %g))", a == s ? "sin" : "cos", k[a], "xyz"[a], c[a]);
        /* The value on the side, and the derivative there. */
        if (location >> s & 1)
            say("\"\n  value_%c: \"1*T\"\n  along_%c: \"at(dd%c(T), %s)\"\n", "xyz"[s], "xyz"[s], "xyz"[s],
                trl_location_name((trl_location)location));
        else
            say("\"\n  value_%c: \"at(T, %s)\"\n  along_%c: \"dd%c(T)\"\n", "xyz"[s],
                trl_location_name((trl_location)(location | 1 << s)), "xyz"[s], "xyz"[s]);
    }
}

static void say_problem(int n)
{
    const int cells[3] = {n, n, n};
    double decay = -1, dt = 0.4 / dim / (double)(n * n);
    for (int a = 0; a < dim; ++a) {
        decay += k[a] * k[a];
        c[a] = tested_kind == OUTFLOW && a == tested / 2 ? tested % 2 : 0.3;
    }
    new_deck();
    say("grid: {cells: %s}\n", list_of(dim, cells));
    say_expressions();
    say("equations:\n  T:\n    location: %s\n    initial: solution\n    exact: solution\n    ddt: \"laplacian(T) + "
        "%.17g*solution\"\n"
        "    boundary: {",
        trl_location_name((trl_location)location), decay);
    for (int s = 0; s < 2 * dim; ++s) say_side(s);
    say("}\ntime: {method: euler, dt: %.17g, end: 0.05}\noutput: {fields: [", dt);
    for (int a = 0; a < dim; ++a) say("%svalue_%c, along_%c", a ? ", " : "", "xyz"[a], "xyz"[a]);
    say("]}\n");
}

/* How far the condition of a side is from holding at one of its points. */
static double residual(int side, const double p[3], double value, double derivative)
{
    const double t = trl_simulation_time(sim), sign = side % 2 ? 1 : -1, u = solution(p, t),
                 g = sign * slope(p, t, side / 2);
    switch (kind_of(side)) {
    case NEUMANN:
        return sign * derivative - g;
    case ROBIN:
        return 2 * value + 0.5 * sign * derivative - (2 * u + 0.5 * g);
    case OUTFLOW: /* without points on the side; with them the nearest value is beyond it, too */
        return derivative;
    case PIECES:
        return dim > 1 && p[along(side)] > 0.5 ? value - u : sign * derivative - g;
    default:
        return value - u;
    }
}

/* The largest residual on a side, away from points of other sides, whose conditions may win. */
static double check_side(int side, int n)
{
    const char value_name[] = {'v', 'a', 'l', 'u', 'e', '_', "xyz"[side / 2], 0};
    const char along_name[] = {'a', 'l', 'o', 'n', 'g', '_', "xyz"[side / 2], 0};
    trl_gidx points[3];
    int axis = side / 2;
    const double *value = values_of(value_name, points), *derivative = values_of(along_name, points);
    double largest = 0;
    if (on_side(side) && kind_of(side) == OUTFLOW) return 0;
    for (int q = 0; q < points[0] * points[1] * points[2]; ++q) {
        int i[3] = {(int)(q % points[0]), (int)(q / points[0] % points[1]), (int)(q / points[0] / points[1])};
        double p[3] = {0};
        bool corner = false;
        if (i[axis] != (side % 2 ? n : 0)) continue;
        for (int a = 0; a < dim; ++a) {
            p[a] = (i[a] + (a == axis || location >> a & 1 ? 0 : 0.5)) / n;
            corner |= a != axis && location >> a & 1 && (i[a] == 0 || i[a] == n);
        }
        if (!corner) largest = fmax(largest, fabs(residual(side, p, value[q], derivative[q])));
    }
    return largest;
}

/* The least and largest order, and the largest residual, of the cases in a row of the table. */
typedef struct row {
    double least, most, residual;
} row;

static void check_case(int coarsest, row *r)
{
    double error[GRIDS];
    for (int g = 0; g < GRIDS; ++g) {
        int n = coarsest << g;
        say_problem(n);
        ck_ok(open_problem());
        ck_ok(trl_simulation_initialise(sim));
        while (!trl_simulation_done(sim)) ck_ok(trl_simulation_step(sim));
        ck_ok(trl_simulation_observe(sim));
        trl_field_stats stats;
        ck_ok(trl_simulation_field_stats(sim, field_index("T"), &stats));
        error[g] = stats.error_l2;
        for (int s = 0; s < 2 * dim; ++s) r->residual = fmax(r->residual, check_side(s, n));
        close_problem();
    }
    /* An outflow repeats the value on the side beyond it: the derivative there is of half the curvature, not 0. */
    const double order = log2(error[GRIDS - 2] / error[GRIDS - 1]),
                 expected = tested_kind == OUTFLOW && on_side(tested) ? 1 : 2;
    r->least = fmin(r->least, order);
    r->most = fmax(r->most, order);
    const char *where = trl_location_name((trl_location)location);
    ck_assert_msg(order > expected - 0.2 && order < expected + (expected < 2 ? 0.4 : 0.2),
                  "%d-D, T at %s, %s on %c%c: order %.3f, errors %.2e %.2e %.2e", dim, where, kind_name[tested_kind],
                  "xyz"[tested / 2], tested % 2 ? '+' : '-', order, error[0], error[1], error[2]);
    ck_assert_msg(r->residual < 1e-12, "%d-D, T at %s, %s on %c%c: the condition is off by %.2e", dim, where,
                  kind_name[tested_kind], "xyz"[tested / 2], tested % 2 ? '+' : '-', r->residual);
}

/* In three dimensions, where the finest grids take most of the time, the short form has two sides of each location. */
static void check_kind(int coarsest)
{
    for (int points = 0; points < 2; ++points) {
        row r = {INFINITY, -INFINITY, 0};
        for (location = 0; location < 1 << dim; ++location)
            for (tested = 0; tested < 2 * dim; ++tested) {
                if (dim == 3 && !test_has(location + tested + tested_kind, 3)) continue;
                if (on_side(tested) == points) check_case(coarsest, &r);
            }
        printf("| %d | %s | %s | %.2f to %.2f | %.1e |\n", dim, kind_name[tested_kind], points ? "yes" : "no", r.least,
               r.most, r.residual);
    }
}

static void check_dimension(int dimension, int coarsest)
{
    dim = dimension;
    if (dim == 1)
        printf("| axes | condition | points on the side | order in l2 | largest residual |\n|---|---|---|---|---|\n");
    for (int i = 0; i < KINDS; ++i) {
        tested_kind = (kind)i;
        check_kind(coarsest);
    }
}

START_TEST(in_one_dimension_conditions_hold_exactly_and_keep_order_two)
{
    check_dimension(1, 8);
}
END_TEST

START_TEST(in_two_dimensions_conditions_hold_exactly_and_keep_order_two)
{
    check_dimension(2, 6);
}
END_TEST

START_TEST(in_three_dimensions_conditions_hold_exactly_and_keep_order_two)
{
    check_dimension(3, 6);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, in_one_dimension_conditions_hold_exactly_and_keep_order_two);
    tcase_add_test(tc, in_two_dimensions_conditions_hold_exactly_and_keep_order_two);
#ifndef TRL_SMALL_SIZES /* sanitizers are slow, and two dimensions have corners already */
    tcase_add_test(tc, in_three_dimensions_conditions_hold_exactly_and_keep_order_two);
#else
    (void)in_three_dimensions_conditions_hold_exactly_and_keep_order_two;
#endif
}

TRL_TEST_MAIN("boundary_order", add_tests)
