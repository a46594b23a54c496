/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Every operator of the formula language against its definition, evaluated directly from an analytic function: at
 * every location, in 1-D, 2-D and 3-D, on formulas beyond sides, on ghosts across periodic axes, at every fusion
 * level. */
// ctest: np=1,4 timeout=300 sanitize=1
#include "problem_fixture.h"

#include <trl_limiter_body.h>

enum { CASES_MAX = 400 };

/* What is being tested: a grid, a location of the argument, and on periodic axes an equation instead of a formula.
 * Points are counted in half cells, so that q = 2*index + 1 at cells and 2*index on faces. */
static int dim, cells[3];
static double spacing[3];
static bool periodic;
static const double origin[3] = {0.1, -0.2, 0.3}, extent[3] = {1.2, 0.9, 1.5};

static const char *const function_text[] = {"", "sin(1.3*x + 0.2) + x^2", "sin(1.3*x + 0.2)*cos(0.7*y - 0.1) + x*y + 2",
                                            "sin(1.3*x + 0.2)*cos(0.7*y - 0.1)*exp(0.2*z) + x*y*z + z^2"};

static double function(const int q[3])
{
    double p[3];
    for (int a = 0; a < 3; ++a) {
        int n = 2 * cells[a], i = periodic && a < dim ? (q[a] % n + n) % n : q[a];
        p[a] = a < dim ? origin[a] + i * 0.5 * spacing[a] : 0;
    }
    double wave = sin(1.3 * p[0] + 0.2);
    if (dim == 1) return wave + p[0] * p[0];
    wave *= cos(0.7 * p[1] - 0.1);
    return dim == 2 ? wave + p[0] * p[1] + 2 : wave * exp(0.2 * p[2]) + p[0] * p[1] * p[2] + p[2] * p[2];
}

static double shifted(const int q[3], int axis, int by)
{
    int p[3] = {q[0], q[1], q[2]};
    p[axis] += by;
    return function(p);
}

/* One formula, where its value lies, and its definition. */
typedef struct operator_case {
    char formula[160];
    int location;
    double (*expected)(const struct operator_case *c, const int q[3]);
    int axis, other; /* of the operator; the second axis of a curl's component */
    int from;        /* location of the argument */
    int limiter;
    double velocity;
} operator_case;

static operator_case cases[CASES_MAX];
static int ncases;

static operator_case *add_case(int location, double (*expected)(const operator_case *, const int[3]),
                               const char *format, ...) TRL_PRINTF(3, 4);
static operator_case *add_case(int location, double (*expected)(const operator_case *, const int[3]),
                               const char *format, ...)
{
    va_list args;
    ck_assert_int_lt(ncases, CASES_MAX);
    operator_case *c = &cases[ncases++];
    *c = (operator_case){.location = location, .expected = expected};
    va_start(args, format);
    vsnprintf(c->formula, sizeof c->formula, format, args);
    va_end(args);
    return c;
}

static double derivative(const operator_case *c, const int q[3])
{
    return (shifted(q, c->axis, 1) - shifted(q, c->axis, -1)) / spacing[c->axis];
}

static double second_derivative(const operator_case *c, const int q[3])
{
    return (shifted(q, c->axis, 2) - 2 * function(q) + shifted(q, c->axis, -2)) / (spacing[c->axis] * spacing[c->axis]);
}

static double central_derivative(const operator_case *c, const int q[3])
{
    return (shifted(q, c->axis, 2) - shifted(q, c->axis, -2)) / (2 * spacing[c->axis]);
}

static double central_mean(const operator_case *c, const int q[3])
{
    return (shifted(q, c->axis, 2) + shifted(q, c->axis, -2)) / 2;
}

static double laplacian(const operator_case *c, const int q[3])
{
    double sum = 0;
    for (int a = 0; a < dim; ++a) sum += second_derivative(&(operator_case){.axis = a}, q);
    (void)c;
    return sum;
}

/* Mean over the corners of the box between the two locations. */
static double interpolation(const operator_case *c, const int q[3])
{
    double sum = 0;
    int corners = 0;
    for (int corner = 0; corner < 8; ++corner) {
        int p[3], across = c->from ^ c->location;
        if (corner & ~across) continue;
        for (int a = 0; a < 3; ++a) p[a] = q[a] + (across >> a & 1 ? (corner >> a & 1 ? 1 : -1) : 0);
        sum += function(p);
        ++corners;
    }
    return sum / corners;
}

/* Pairs along z, of pairs along y, of pairs along x: what the language does axis by axis, x first. */
static double harmonic_along(int across, int axis, const int q[3])
{
    if (axis < 0) return function(q);
    if (!(across >> axis & 1)) return harmonic_along(across, axis - 1, q);
    int lo[3] = {q[0], q[1], q[2]}, hi[3] = {q[0], q[1], q[2]};
    --lo[axis];
    ++hi[axis];
    double a = harmonic_along(across, axis - 1, lo), b = harmonic_along(across, axis - 1, hi);
    return a + b == 0 ? 0 : 2 * a * b / (a + b);
}

static double harmonic(const operator_case *c, const int q[3])
{
    return harmonic_along(c->from ^ c->location, 2, q);
}

static double reconstruction(const operator_case *c, const int q[3])
{
    int upwind = c->velocity < 0 ? 1 : -1; /* from the plus side: everything mirrored */
    return trl_limiter_face((trl_limiter)c->limiter, shifted(q, c->axis, 3 * upwind), shifted(q, c->axis, upwind),
                            shifted(q, c->axis, -upwind));
}

static double flux(const operator_case *c, const int q[3])
{
    if (c->limiter < 0) return c->velocity * 0.5 * (shifted(q, c->axis, -1) + shifted(q, c->axis, 1));
    return c->velocity * reconstruction(c, q);
}

/* The vector in g has component a = (a + 1)*f on the a-face. */
static double divergence(const operator_case *c, const int q[3])
{
    double sum = 0;
    for (int a = 0; a < dim; ++a) sum += (a + 1) * derivative(&(operator_case){.axis = a}, q);
    (void)c;
    return sum;
}

static double curl(const operator_case *c, const int q[3])
{
    int a = c->axis, b = c->other;
    return (b + 1) * derivative(&(operator_case){.axis = a}, q) - (a + 1) * derivative(&(operator_case){.axis = b}, q);
}

/* Row `axis`, column `other` of the strain rate of g. */
static double strain(const operator_case *c, const int q[3])
{
    int a = c->axis, b = c->other;
    return ((a + 1) * derivative(&(operator_case){.axis = b}, q) +
            (b + 1) * derivative(&(operator_case){.axis = a}, q)) /
           2;
}

/* sqrt(2 S:S), the squares beside the diagonal being means over four edges. */
static double strain_magnitude(const operator_case *c, const int q[3])
{
    double sum = 0;
    (void)c;
    for (int a = 0; a < dim; ++a)
        for (int b = 0; b < dim; ++b)
            for (int edge = 0; edge < 4; ++edge) {
                int p[3] = {q[0], q[1], q[2]};
                if (a != b) p[a] += edge & 1 ? 1 : -1;
                if (a != b) p[b] += edge & 2 ? 1 : -1;
                double s = strain(&(operator_case){.axis = a, .other = b}, p);
                sum += 2 * s * s / 4;
            }
    return sqrt(sum);
}

static double derivative4(const operator_case *c, const int q[3])
{
    double near_by = shifted(q, c->axis, 1) - shifted(q, c->axis, -1);
    return (27 * near_by - (shifted(q, c->axis, 3) - shifted(q, c->axis, -3))) / (24 * spacing[c->axis]);
}

static double divergence4(const operator_case *c, const int q[3])
{
    double sum = 0;
    for (int a = 0; a < dim; ++a) sum += (a + 1) * derivative4(&(operator_case){.axis = a}, q);
    (void)c;
    return sum;
}

/* Weights at half cells -8..8 around the point, along each axis in `across`. */
static double weighted(const double weight[17], int across, int axis, const int q[3])
{
    double sum = 0;
    if (axis < 0) return function(q);
    if (!(across >> axis & 1)) return weighted(weight, across, axis - 1, q);
    for (int o = -8; o <= 8; ++o) {
        int p[3] = {q[0], q[1], q[2]};
        p[axis] += o;
        if (weight[o + 8] != 0) sum += weight[o + 8] * weighted(weight, across, axis - 1, p);
    }
    return sum;
}

static double interpolation4(const operator_case *c, const int q[3])
{
    static const double weight[17] = {[5] = -1.0 / 16, [7] = 9.0 / 16, [9] = 9.0 / 16, [11] = -1.0 / 16};
    return weighted(weight, c->from ^ c->location, 2, q);
}

static double box_of_three(const operator_case *c, const int q[3])
{
    static const double weight[17] = {[6] = 1.0 / 3, [8] = 1.0 / 3, [10] = 1.0 / 3};
    (void)c;
    return weighted(weight, (1 << dim) - 1, 2, q);
}

static double tophat(const operator_case *c, const int q[3])
{
    static const double weight[3][17] = {
        {[6] = 1.0 / 8, [8] = 3.0 / 4, [10] = 1.0 / 8},
        {[6] = 1.0 / 4, [8] = 1.0 / 2, [10] = 1.0 / 4},
        {[4] = 1.0 / 24, [6] = 7.0 / 24, [8] = 1.0 / 3, [10] = 7.0 / 24, [12] = 1.0 / 24}};
    return weighted(weight[c->other - 1], (1 << dim) - 1, 2, q);
}

static double extrapolation(const operator_case *c, const int q[3])
{
    return 1.5 * shifted(q, c->axis, c->other) - 0.5 * shifted(q, c->axis, 3 * c->other);
}

/* The deck's stencil `skew` leads along x, from the argument's location to the other: one point of the input to the
 * left of the one with the result's index, and two to the right. */
static double skew(const operator_case *c, const int q[3])
{
    int same_index = c->from & 1 ? -1 : 1;
    return 0.75 * shifted(q, 0, same_index - 2) - 0.5 * shifted(q, 0, same_index + 4) + 2 * shifted(q, 0, same_index);
}

static void add_wide_operators(int at)
{
    static const char *const to_name[] = {"cell", "xface", "yface", "zedge", "zface", "yedge", "xedge", "node"};
    for (int to = 0; to < 1 << dim; ++to) add_case(to, interpolation4, "at4(f, %s)", to_name[to])->from = at;
    for (int a = 0; a < dim; ++a) {
        add_case(at ^ 1 << a, interpolation4, "at4(f, faces).%c", "xyz"[a])->from = at;
        add_case(at ^ 1 << a, derivative4, "grad4(f).%c", "xyz"[a])->axis = a;
        for (int side = -1; side <= 1; side += 2) {
            operator_case *c =
                add_case(at ^ 1 << a, extrapolation, "extrapolate(f, %c%c)", "xyz"[a], side < 0 ? '-' : '+');
            c->axis = a;
            c->other = side;
        }
    }
    add_case(at, divergence4, "div4(g)");
    add_case(at, box_of_three, "box_filter(f, 3)");
    add_case(at, box_of_three, "box_filter([%sf], w + 1).%c",
             dim == 1   ? ""
             : dim == 2 ? "f, "
                        : "f, f, ",
             "xyz"[dim - 1]);
    for (int w = 1; w <= 3; ++w) add_case(at, tophat, "tophat_filter(f, w + %d)", w - 2)->other = w;
    add_case(at ^ 1, skew, "skew(f)")->from = at;
}

static void add_derivatives(int at)
{
    for (int a = 0; a < dim; ++a) {
        add_case(at ^ 1 << a, derivative, "grad(f).%c", "xyz"[a])->axis = a;
        add_case(at ^ 1 << a, derivative, "dd%c(f)", "xyz"[a])->axis = a;
        add_case(at, second_derivative, "d2d%c(f)", "xyz"[a])->axis = a;
        add_case(at, central_derivative, "cdd%c(f)", "xyz"[a])->axis = a;
        add_case(at, central_mean, "cmean%c(f)", "xyz"[a])->axis = a;
    }
    add_case(at, laplacian, "laplacian(f)");
}

static void add_interpolations(int at)
{
    for (int to = 0; to < 8; ++to) {
        int on = (int)trl_location_on((trl_location)to, dim);
        const char *name = trl_location_name((trl_location)to);
        add_case(on, interpolation, "at(f, %s)", name)->from = at;
        add_case(on, harmonic, "harmonic(f, %s)", name)->from = at;
    }
    for (int a = 0; a < dim; ++a) {
        add_case(at ^ 1 << a, interpolation, "at(f, faces).%c", "xyz"[a])->from = at;
        add_case(at ^ 1 << a, harmonic, "harmonic(f, faces).%c", "xyz"[a])->from = at;
    }
}

static const char *velocity_text(double velocity, int axis)
{
    static char text[64];
    size_t used = (size_t)snprintf(text, sizeof text, "[");
    for (int a = 0; a < dim; ++a)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%g", a ? ", " : "", a == axis ? velocity : 0.0);
    snprintf(text + used, sizeof text - used, "]");
    return text;
}

static void add_flux(int at, int axis, int limiter, const char *name, double velocity)
{
    operator_case *c = add_case(at ^ 1 << axis, flux, "advective_flux(f, %s%s%s).%c", velocity_text(velocity, axis),
                                name ? ", " : "", name ? name : "", "xyz"[axis]);
    c->axis = axis;
    c->limiter = limiter;
    c->velocity = velocity;
}

static void add_reconstruction(int at, int axis, int limiter, const char *name, bool right)
{
    operator_case *c = add_case(at ^ 1 << axis, reconstruction, "%s(f%s%s).%c", right ? "right" : "left",
                                name ? ", " : "", name ? name : "", "xyz"[axis]);
    c->axis = axis;
    c->limiter = limiter;
    c->velocity = right ? -1 : 1;
}

static void add_fluxes(int at)
{
#define LIMITER_TEXT(NAME, name, psi) #name,
    static const char *const names[] = {TRL_LIMITER_LIST(LIMITER_TEXT)};
#undef LIMITER_TEXT
    for (int a = 0; a < dim; ++a)
        for (int s = -1; s <= 1; s += 2) {
            add_flux(at, a, -1, NULL, 1.5 * s);
            add_reconstruction(at, a, TRL_LIMITER_UPWIND, NULL, s > 0);
            for (int l = 0; l < TRL_LIMITER_COUNT; ++l) {
                add_flux(at, a, l, names[l], 1.5 * s);
                add_reconstruction(at, a, l, names[l], s > 0);
            }
        }
}

static void add_vector_operators(int at)
{
    add_case(at, divergence, "div(g)");
    add_case(at, strain_magnitude, "strain(g)");
    for (int a = 0; a < dim; ++a)
        for (int b = 0; b < dim; ++b) {
            operator_case *one =
                add_case(a == b ? at : at ^ 1 << a ^ 1 << b, strain, "strain(g, %c).%c", "xyz"[a], "xyz"[b]);
            one->axis = a;
            one->other = b;
        }
    if (dim == 2 && at == TRL_CELL)
        *add_case(TRL_ZEDGE, curl, "curl(g)") = (operator_case){"curl(g)", TRL_ZEDGE, curl, 0, 1, 0, 0, 0};
    if (dim != 3 || (at != TRL_CELL && at != TRL_NODE)) return;
    for (int c = 0; c < 3; ++c) {
        operator_case *one = add_case(at ^ (7 & ~(1 << c)), curl, "curl(g).%c", "xyz"[c]);
        one->axis = (c + 1) % 3;
        one->other = (c + 2) % 3;
    }
}

static void say_problem(int at, const char *fusion)
{
    const char *location = trl_location_name((trl_location)at);
    const int wrap[3] = {periodic, periodic, periodic};
    new_deck();
    say("grid: {cells: %s, origin: [0.1", list_of(dim, cells));
    for (int a = 1; a < dim; ++a) say(", %g", origin[a]);
    say("], length: [%g", extent[0]);
    for (int a = 1; a < dim; ++a) say(", %g", extent[a]);
    say("]");
    for (int a = 0; a < dim; ++a) say("%s%s", a ? ", " : ", periodic: [", wrap[a] ? "true" : "false");
    const int left[3] = {-1, 0, 0}, right[3] = {2, 0, 0}, here[3] = {0, 0, 0};
    say("]}\nparameters: {w: 2, half: 0.5}\nstencils:\n  skew: {from: %s, to: %s, points: [[%s, 0.75], [%s, -half], "
        "[%s, 4*half]]}\n",
        location, trl_location_name((trl_location)(at ^ 1)), list_of(dim, left), list_of(dim, right), list_of(3, here));
    say("expressions:\n");
    if (!periodic) say("  f: {formula: \"%s\", location: %s}\n", function_text[dim], location);
    say("  g: [");
    for (int a = 0; a < dim; ++a) say("%sg%c", a ? ", " : "", "xyz"[a]);
    say("]\n");
    for (int a = 0; a < dim; ++a)
        say("  g%c: {formula: \"%d*(%s)\", location: %s}\n", "xyz"[a], a + 1, function_text[dim],
            trl_location_name((trl_location)(at ^ 1 << a)));
    for (int i = 0; i < ncases; ++i) say("  e%d: \"%s\"\n", i, cases[i].formula);
    say("equations: {%s: {location: %s, initial: \"%s\", ddt: 0}}\n", periodic ? "f" : "u", location,
        function_text[dim]);
    say("time: {dt: 0.1, steps: 1}\noutput: {fields: [f");
    for (int i = 0; i < ncases; ++i) say(", e%d", i);
    say("]}\nrun: {fusion: %s}\n", fusion);
}

/* The first point at which a case differs from its definition; false if there is none. */
static bool differs(int i, char *text, size_t size)
{
    char name[16];
    trl_gidx n[3];
    const operator_case *c = &cases[i];
    snprintf(name, sizeof name, "e%d", i);
    const double *found = values_of(name, n);
    if (location_of(name) != (trl_location)c->location) {
        snprintf(text, size, "%.200s is at %s, not %s", c->formula, trl_location_name(location_of(name)),
                 trl_location_name((trl_location)c->location));
        return true;
    }
    for (int p = 0; p < n[0] * n[1] * n[2]; ++p) {
        int at[3] = {(int)(p % n[0]), (int)(p / n[0] % n[1]), (int)(p / (n[0] * n[1]))}, q[3];
        for (int a = 0; a < 3; ++a) q[a] = 2 * at[a] + (c->location >> a & 1 ? 0 : 1);
        double expected = c->expected(c, q);
        if (near(found[p], expected, 1e-11)) continue;
        snprintf(text, size, "%.120s at point (%d, %d, %d) is %.17g, not %.17g", c->formula, at[0], at[1], at[2],
                 found[p], expected);
        return true;
    }
    return false;
}

static void check_location(int at)
{
    static const char *const fusions[] = {"none", "node", "full"};
    static uint64_t hash[CASES_MAX];
    char text[300];
    ncases = 0;
    add_derivatives(at);
    add_interpolations(at);
    add_fluxes(at);
    add_vector_operators(at);
    add_wide_operators(at);
    for (int level = 0; level < 3; ++level) {
        say_problem(at, fusions[level]);
        ck_ok(open_problem());
        ck_ok(run_steps(0));
        for (int i = 0; i < ncases; ++i) {
            char name[16];
            snprintf(name, sizeof name, "e%d", i);
            uint64_t h = hash_of(name);
            ck_assert_msg(!differs(i, text, sizeof text), "%d-D%s, f at %s, fusion %s: %s", dim,
                          periodic ? " periodic" : "", trl_location_name((trl_location)at), fusions[level], text);
            ck_assert_msg(level == 0 || h == hash[i], "other bits with fusion %s: %s", fusions[level],
                          cases[i].formula);
            hash[i] = h;
        }
    }
    close_problem();
}

static void check_all(int dimension, int nx, int ny, int nz, bool wrap)
{
    dim = dimension;
    periodic = wrap;
    cells[0] = nx;
    cells[1] = ny;
    cells[2] = nz;
    for (int a = 0; a < 3; ++a) spacing[a] = extent[a] / cells[a];
    for (int at = 0; at < 1 << dim; ++at) /* under sanitizers each place with walls or without */
        if (test_has(at + wrap, TEST_SANITIZED ? 2 : 1)) check_location(at);
}

START_TEST(operators_in_one_dimension_match_their_definitions)
{
    check_all(1, 17, 1, 1, false);
    check_all(1, 17, 1, 1, true);
}
END_TEST

START_TEST(operators_in_two_dimensions_match_their_definitions)
{
    check_all(2, 7, 8, 1, false);
    check_all(2, 7, 8, 1, true);
}
END_TEST

START_TEST(operators_in_three_dimensions_match_their_definitions)
{
    check_all(3, 5, 4, 8, false);
    check_all(3, 5, 4, 8, true);
}
END_TEST

/* What is read of a value beyond the points owned, on one side only, is there with the points owned in between, which
 * are computed with it. */
START_TEST(what_reaches_to_one_side_has_all_that_it_is_made_of)
{
    static const char *const fusions[] = {"none", "node", "full"};
    uint64_t hash[3];
    for (int i = 0; i < 3; ++i) {
        new_deck();
        say("grid: {cells: [8, 7, 13], periodic: [true, false, true]}\n"
            "stencils: {moved: {from: xface, to: yedge, points: [[[1, -1, -1], -0.25]]}}\n"
            "expressions: {twice: \"2*e\"}\n"
            "equations: {e: {location: yedge, initial: \"random(3)\", ddt: \"moved(at(twice, xface))\",\n"
            "  boundary: {y-: {dirichlet: 0}, y+: {dirichlet: 0}}}}\n"
            "time: {method: euler, dt: 0.01, steps: 1}\nrun: {fusion: %s, compile: never}\n",
            fusions[i]);
        ck_ok(open_problem());
        ck_ok(run_steps(1));
        hash[i] = hash_of("e");
        close_problem();
    }
    ck_assert_uint_eq(hash[0], hash[1]);
    ck_assert_uint_eq(hash[0], hash[2]);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, operators_in_one_dimension_match_their_definitions);
    tcase_add_test(tc, operators_in_two_dimensions_match_their_definitions);
    tcase_add_test(tc, operators_in_three_dimensions_match_their_definitions);
    tcase_add_test(tc, what_reaches_to_one_side_has_all_that_it_is_made_of);
}

TRL_TEST_MAIN("operators", add_tests)
