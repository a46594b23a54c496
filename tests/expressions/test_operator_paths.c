/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* One conformance suite for all ways to evaluate operators. Every operator, on odd sizes, axes and patches of one cell,
 * minimum ghosts, in 1-D, 2-D and 3-D, across patches and ranks: each path gives the bits of the first, the serial
 * interpreter with a kernel per operator. A new way to evaluate is a row of `paths`. */
// ctest: np=1,4 timeout=600 sanitize=1 optimise=2
#include "problem_fixture.h"
#include "spatialops/operator_fixture.h"

#include <trl_limiter_body.h>

enum { CASES_MAX = 500, CENTRAL = -1, CUSTOM_POINTS = 5 };

/* ---- the problem: a grid and patches, f at one location, g with component a at f's location with bit a flipped
 * ---- */

typedef struct setting {
    const char *name;
    int dim, cells[3], counts[3];
    bool periodic; /* f and g are equations, exchanged; else formulas, whose ghosts are their values beyond the sides */
} setting;

static const setting settings[] = {
    {"a line", 1, {17, 1, 1}, {4, 1, 1}, false},
    {"a line of patches of one cell", 1, {4, 1, 1}, {4, 1, 1}, false},
    {"a ring", 1, {13, 1, 1}, {4, 1, 1}, true},
    {"a plane", 2, {7, 5, 1}, {2, 2, 1}, false},
    {"an axis of one cell", 2, {9, 1, 1}, {4, 1, 1}, false},
    {"a plane of patches of one cell", 2, {4, 3, 1}, {4, 3, 1}, false},
    {"a torus", 2, {5, 9, 1}, {2, 3, 1}, true},
    {"a box", 3, {5, 3, 7}, {2, 1, 2}, false},
    {"a box of one layer", 3, {5, 1, 4}, {2, 1, 4}, false},
    {"a periodic box", 3, {5, 4, 8}, {2, 1, 2}, true},
};

static const setting *now;
static trl_location at;
/* Cells of one width, exactly, in all settings: their kernels are then the same and compiled once. */
static const double origin[3] = {0.1, -0.2, 0.3}, width[3] = {11.0 / 64, 9.0 / 64, 13.0 / 64};

/* Values with all bits used that C and formulas round alike: exact numbers up to the root. q is twice the coordinate in
 * cells. The seed is 0 for f and 1, 2, 3 for the components of g. */
static double value(int seed, const trl_gidx q[3])
{
    double s =
        (double)(7 * q[0] * q[0] + 5 * q[1] * q[1] + 11 * q[2] * q[2] + 3 * q[0] * q[1] + q[1] * q[2] + q[0] + seed);
    return sqrt(fmod(fabs(s), 101) + 0.5) - 5;
}

static const char *value_text(int seed)
{
    static char text[512];
    char q[3][48] = {"0", "0", "0"};
    for (int a = 0; a < now->dim; ++a)
        snprintf(q[a], sizeof q[a], "round(2*(%c - (%g))/d%c)", "xyz"[a], origin[a], "xyz"[a]);
    snprintf(text, sizeof text, "sqrt(fmod(abs(7*%s^2 + 5*%s^2 + 11*%s^2 + 3*%s*%s + %s*%s + %s + %d), 101) + 0.5) - 5",
             q[0], q[1], q[2], q[0], q[1], q[1], q[2], q[0], seed);
    return text;
}

static const trl_stencil_point custom_points[CUSTOM_POINTS] = {
    {{-2, 0, 0}, 0.3}, {{1, 0, 0}, -1.7}, {{0, 1, 0}, 0.45}, {{0, -1, 1}, 1}, {{0, 0, -2}, -0.15}};

/* Those of the points that lie on axes of the grid. */
static int custom_points_here(trl_stencil_point *points)
{
    int n = 0;
    for (int i = 0; i < CUSTOM_POINTS; ++i) {
        bool here = true;
        for (int a = now->dim; a < 3; ++a) here = here && custom_points[i].offset[a] == 0;
        if (here) points[n++] = custom_points[i];
    }
    return n;
}

/* ---- what is evaluated: a formula, and how a driver of one's own does the same ---- */

typedef struct operator_case {
    char formula[80];
    trl_location to;
    int nterms; /* operators whose results are added; 0: a flux, or the custom stencil */
    trl_operator_desc term[3];
    bool of_vector; /* of g, else of f */
    int axis, limiter;
    double velocity; /* of a flux, else 0 */
    bool face;       /* the flux of a unit velocity, without its sign */
} operator_case;

static operator_case cases[CASES_MAX];
static int ncases;

static operator_case *add_case(trl_location to, const char *format, ...) TRL_PRINTF(2, 3);
static operator_case *add_case(trl_location to, const char *format, ...)
{
    va_list args;
    ck_assert_int_lt(ncases, CASES_MAX);
    operator_case *c = &cases[ncases++];
    *c = (operator_case){.to = to};
    va_start(args, format);
    vsnprintf(c->formula, sizeof c->formula, format, args);
    va_end(args);
    return c;
}

static trl_operator_desc *add_term(operator_case *c, trl_operator_kind kind)
{
    c->term[c->nterms] = (trl_operator_desc){.kind = kind, .from = at, .to = c->to};
    return &c->term[c->nterms++];
}

static trl_location flipped(int axis)
{
    return (trl_location)((int)at ^ 1 << axis);
}

static void add_derivatives(void)
{
    for (int a = 0; a < now->dim; ++a) {
        add_term(add_case(flipped(a), "grad(f).%c", "xyz"[a]), TRL_GRADIENT);
        add_term(add_case(flipped(a), "dd%c(f)", "xyz"[a]), TRL_GRADIENT);
        add_term(add_case(flipped(a), "grad4(f).%c", "xyz"[a]), TRL_GRADIENT4);
        add_term(add_case(at, "d2d%c(f)", "xyz"[a]), TRL_SECOND)->axis = a;
        add_term(add_case(at, "cdd%c(f)", "xyz"[a]), TRL_CENTRAL_GRADIENT)->axis = a;
        add_term(add_case(at, "cmean%c(f)", "xyz"[a]), TRL_CENTRAL_INTERPOLANT)->axis = a;
    }
    add_term(add_case(at, "laplacian(f)"), TRL_LAPLACIAN);
}

static void add_interpolants(void)
{
    for (int to = 0; to < 1 << now->dim; ++to) {
        if (to == (int)at) continue;
        const char *name = trl_location_name((trl_location)to);
        add_term(add_case((trl_location)to, "at(f, %s)", name), TRL_INTERPOLANT);
        add_term(add_case((trl_location)to, "at4(f, %s)", name), TRL_INTERPOLANT4);
    }
    for (int a = 0; a < now->dim; ++a) {
        add_term(add_case(flipped(a), "at(f, faces).%c", "xyz"[a]), TRL_INTERPOLANT);
        add_term(add_case(flipped(a), "at4(f, faces).%c", "xyz"[a]), TRL_INTERPOLANT4);
        for (int side = 0; side < 2; ++side)
            add_term(add_case(flipped(a), "extrapolate(f, %c%c)", "xyz"[a], side ? '+' : '-'), TRL_EXTRAPOLANT)->side =
                side;
    }
}

/* As wide as patches of two cells allow. */
static void add_filters(void)
{
    for (int width = 1; width <= 4; ++width)
        add_term(add_case(at, "tophat_filter(f, %d)", width), TRL_TOPHAT_FILTER)->width = width;
    for (int width = 1; width <= 5; width += 2)
        add_term(add_case(at, "box_filter(f, %d)", width), TRL_BOX_FILTER)->width = width;
}

static void add_vector_operators(void)
{
    operator_case *c = add_case(at, "div(g)");
    add_term(c, TRL_DIV);
    c->of_vector = true;
    c = add_case(at, "div4(g)");
    for (int a = 0; a < now->dim; ++a) add_term(c, TRL_DIVERGENCE4)->from = flipped(a);
    c->of_vector = true;
    for (int k = now->dim == 2 ? 2 : 0; k < 3 && now->dim > 1; ++k) {
        int to = (int)at ^ (now->dim == 2 ? 3 : 7 & ~(1 << k));
        c = now->dim == 2 ? add_case((trl_location)to, "curl(g)") : add_case((trl_location)to, "curl(g).%c", "xyz"[k]);
        add_term(c, TRL_CURL)->axis = k;
        c->of_vector = true;
    }
}

/* u along one axis is a number, which the formula gives at the faces. */
static void add_flux(int axis, int limiter, const char *name, double velocity)
{
    char u[64] = "", *text = u;
    for (int a = 0; a < now->dim; ++a) text += snprintf(text, 20, "%s%g", a ? ", " : "", a == axis ? velocity : 0.0);
    operator_case *c =
        add_case(flipped(axis), "advective_flux(f, [%s]%s%s).%c", u, name ? ", " : "", name ? name : "", "xyz"[axis]);
    c->axis = axis;
    c->limiter = limiter;
    c->velocity = velocity;
    if (!name) return;
    c = add_case(flipped(axis), "%s(f, %s).%c", velocity > 0 ? "left" : "right", name, "xyz"[axis]);
    c->axis = axis;
    c->limiter = limiter;
    c->velocity = velocity > 0 ? 1 : -1;
    c->face = true;
}

static void add_fluxes(void)
{
#define LIMITER_TEXT(NAME, name, psi) #name,
    static const char *const names[] = {TRL_LIMITER_LIST(LIMITER_TEXT)};
#undef LIMITER_TEXT
    for (int a = 0; a < now->dim; ++a)
        for (int limiter = CENTRAL; limiter < TRL_LIMITER_COUNT; ++limiter)
            for (int side = -1; side <= 1; side += 2)
                add_flux(a, limiter, limiter < 0 ? NULL : names[limiter], 1.7 * side);
}

static void add_cases(void)
{
    ncases = 0;
    add_derivatives();
    add_interpolants();
    add_filters();
    add_vector_operators();
    add_fluxes();
    add_case(flipped(0), "mine(f)");
}

/* ---- paths: each evaluates all cases, and gives the hash of each ---- */

typedef struct path {
    const char *name;
    void (*evaluate)(const struct path *path, uint64_t *hash);
    const char *fusion, *compile;
    bool patches; /* those of the setting; else one per rank */
    int threads;
    bool few; /* slow: only f at cells */
} path;

static void say_values(void)
{
    const char *location = trl_location_name(at);
    say("%s:\n", now->periodic ? "equations" : "expressions");
    for (int v = 0; v <= now->dim; ++v) {
        char name[3] = {v ? 'g' : 'f', v ? "xyz"[v - 1] : 0, 0};
        say("  %s: {%s: \"%s\", location: %s%s}\n", name, now->periodic ? "initial" : "formula", value_text(v),
            v ? trl_location_name(flipped(v - 1)) : location, now->periodic ? ", ddt: 0" : "");
    }
    if (now->periodic) say("expressions:\n");
    say("  g: [%s]\n", now->dim == 1 ? "gx" : now->dim == 2 ? "gx, gy" : "gx, gy, gz");
    for (int i = 0; i < ncases; ++i) say("  e%d: \"%s\"\n", i, cases[i].formula);
    if (!now->periodic) say("equations: {u: {initial: 0, ddt: 0}}\n");
}

static void say_stencil(void)
{
    trl_stencil_point points[CUSTOM_POINTS];
    int n = custom_points_here(points);
    say("stencils: {mine: {from: %s, to: %s, points: [", trl_location_name(at), trl_location_name(flipped(0)));
    for (int i = 0; i < n; ++i) {
        int offset[3];
        for (int a = 0; a < 3; ++a) offset[a] = points[i].offset[a];
        say("%s[%s, %.17g]", i ? ", " : "", list_of(now->dim, offset), points[i].weight);
    }
    say("]}}\n");
}

static void say_path(const path *path)
{
    const int wrap = now->periodic;
    new_deck();
    say("grid: {cells: %s, origin: [0.1", list_of(now->dim, now->cells));
    for (int a = 1; a < now->dim; ++a) say(", %g", origin[a]);
    say("], length: [%.17g", width[0] * now->cells[0]);
    for (int a = 1; a < now->dim; ++a) say(", %.17g", width[a] * now->cells[a]);
    say("], periodic: [%s", wrap ? "true" : "false");
    for (int a = 1; a < now->dim; ++a) say(", %s", wrap ? "true" : "false");
    say("]");
    if (path->patches) say(", patches: %s", list_of(now->dim, now->counts));
    say("}\n");
    say_values();
    say_stencil();
    say("time: {dt: 0.1, steps: 1}\noutput: {fields: [e0");
    for (int i = 1; i < ncases; ++i) say(", e%d", i);
    say("]}\nrun: {fusion: %s, compile: %s, threads: %d}\n", path->fusion, path->compile, path->threads);
}

static trl_grid grid; /* of the problem, from the first path */

static void run_deck(const path *path, uint64_t *hash)
{
    say_path(path);
    ck_ok(open_problem());
    ck_ok(run_steps(0));
    for (int i = 0; i < ncases; ++i) {
        char name[16];
        snprintf(name, sizeof name, "e%d", i);
        hash[i] = hash_of(name);
        ck_assert_msg(location_of(name) == cases[i].to, "%s is at %s", cases[i].formula,
                      trl_location_name(location_of(name)));
    }
    grid = *the_grid();
    close_problem();
}

/* A field with the values that a seed stands for. Ghosts are exchanged, or the values beyond the sides. */
static trl_field *value_field(const domain *d, trl_location location, int seed, const trl_operator *op, int input)
{
    trl_field *field = op ? new_input(d, "values", op, input, 0) : new_field(d, "values", location, 2);
    for (int p = 0; p < d->layout->nlocal; ++p) {
        trl_array array = array_of(field, p);
        const trl_box *box = now->periodic ? &array.owned : &array.held;
        FOR_POINTS(box, point)
        {
            trl_gidx q[3];
            global_point(field, p, point, q);
            for (int a = 0; a < 3; ++a) q[a] = a < now->dim ? 2 * q[a] + !(location >> a & 1) : 0;
            *value_at(&array, point) = value(seed, q);
        }
        ck_ok(trl_field_set_valid(field, p, box));
    }
    if (now->periodic) ck_ok(trl_field_exchange(field));
    return field;
}

static void apply_term(const domain *d, const operator_case *c, int term, trl_loop *loop, trl_field *out)
{
    trl_operator *op;
    trl_field *in[3];
    if (c->nterms) {
        op = new_operator(d, &c->term[term]);
    } else {
        trl_stencil_point points[CUSTOM_POINTS];
        int n = custom_points_here(points);
        ck_ok(trl_operator_create_custom(test_ctx, &grid, "mine", at, c->to, n, points, &op));
    }
    for (int i = 0; i < op->ninputs; ++i) {
        int seed = !c->of_vector ? 0
                                 : 1 + (op->ninputs > 1 ? component_of_input(op, &c->term[term], i)
                                                        : flipped_axis(op->from[i], op->to));
        in[i] = value_field(d, op->from[i], seed, op, i);
    }
    ck_ok(trl_operator_apply(op, loop, in, out));
    for (int i = 0; i < op->ninputs; ++i) trl_field_destroy(&in[i]);
    trl_operator_destroy(&op);
}

static void add_to(trl_field *out, trl_field *term)
{
    for (int p = 0; p < trl_field_layout(out)->nlocal; ++p) {
        trl_array sum = array_of(out, p), a = array_of(term, p);
        FOR_POINTS(&sum.owned, point)
        *value_at(&sum, point) += *value_at(&a, point);
    }
}

static void negate(trl_field *out)
{
    for (int p = 0; p < trl_field_layout(out)->nlocal; ++p) {
        trl_array a = array_of(out, p);
        FOR_POINTS(&a.owned, point)
        *value_at(&a, point) *= -1;
    }
}

static void apply_flux(const domain *d, const operator_case *c, trl_loop *loop, trl_field *out)
{
    trl_field *f = value_field(d, at, 0, NULL, 0), *u = new_field(d, "u", c->to, 0);
    for (int p = 0; p < d->layout->nlocal; ++p) {
        trl_array a = array_of(u, p);
        FOR_POINTS(&a.owned, point)
        *value_at(&a, point) = c->velocity;
        ck_ok(trl_field_set_valid(u, p, &a.owned));
    }
    ck_ok(trl_advective_flux_apply(c->limiter, c->axis, loop, f, u, out));
    if (c->face && c->velocity < 0) negate(out);
    trl_field_destroy(&f);
    trl_field_destroy(&u);
}

static void apply_case(const domain *d, const operator_case *c, trl_loop *loop, trl_field *out)
{
    if (c->velocity != 0) {
        apply_flux(d, c, loop, out);
        return;
    }
    apply_term(d, c, 0, loop, out);
    for (int term = 1; term < c->nterms; ++term) {
        trl_field *next = new_field(d, "term", c->to, 0);
        apply_term(d, c, term, loop, next);
        add_to(out, next);
        trl_field_destroy(&next);
    }
}

static void apply_directly(const path *path, uint64_t *hash)
{
    domain d;
    trl_workers *workers = NULL;
    trl_loop *loop = NULL;
    ck_ok(trl_layout_create(test_ctx, &grid, path->patches ? now->counts : NULL, NULL, &d.layout));
    ck_ok(trl_field_manager_create(test_ctx, &d.manager));
    if (path->threads > 1) {
        ck_ok(trl_context_set_threads(test_ctx, path->threads));
        ck_ok(trl_workers_create(test_ctx, "hybrid", &workers));
        ck_ok(trl_loop_create(test_ctx, workers, &loop));
    }
    for (int i = 0; i < ncases; ++i) {
        trl_field *out = new_field(&d, "result", cases[i].to, 0);
        apply_case(&d, &cases[i], loop, out);
        hash[i] = 0;
        for (int p = 0; p < d.layout->nlocal; ++p) {
            trl_array a = array_of(out, p);
            hash[i] += trl_array_hash(d.layout, local_patch(d.layout, p), cases[i].to, &a);
        }
        trl_field_destroy(&out);
    }
    MPI_Allreduce(MPI_IN_PLACE, hash, ncases, MPI_UINT64_T, MPI_SUM, trl_context_comm(test_ctx));
    trl_loop_destroy(&loop);
    trl_workers_destroy(&workers);
    close_domain(&d);
}

static const path paths[] = {
    {"interpreted, a kernel per operator, serial", run_deck, "none", "never", false, 1, false},
    {"interpreted, a kernel per operator", run_deck, "none", "never", true, 2, false},
    {"interpreted, a kernel per expression", run_deck, "node", "never", true, 2, false},
    {"interpreted, fused", run_deck, "full", "never", true, 2, false},
    {"compiled, a kernel per expression", run_deck, "node", "always", true, 2, true},
    {"direct, serial", apply_directly, NULL, NULL, false, 1, false},
    {"direct, patches", apply_directly, NULL, NULL, true, 1, false},
    {"direct, patches, two threads", apply_directly, NULL, NULL, true, 2, false},
};

static void check_setting(const setting *setting)
{
    static uint64_t expected[CASES_MAX], found[CASES_MAX];
    now = setting;
    if (setting->counts[0] * setting->counts[1] * setting->counts[2] < trl_context_ranks(test_ctx)) return;
    for (int location = 0; location < 1 << now->dim; ++location) {
        at = (trl_location)location;
        add_cases();
        for (size_t p = 0; p < sizeof paths / sizeof *paths; ++p) {
            if (paths[p].few && location != TRL_CELL) continue;
            paths[p].evaluate(&paths[p], found);
            if (p == 0) memcpy(expected, found, sizeof expected);
            for (int i = 0; i < ncases; ++i)
                ck_assert_msg(found[i] == expected[i], "%s, f at %s, %s: other bits of %s", now->name,
                              trl_location_name(at), paths[p].name, cases[i].formula);
        }
    }
}

START_TEST(every_path_gives_the_same_bits_of_every_operator)
{
    const bool ranks = trl_context_ranks(test_ctx) > 1;
    for (int s = 0; s < (int)(sizeof settings / sizeof *settings); ++s)
        if (test_has(s + (ranks ? 1 : 3), TEST_SANITIZED ? 9 : ranks ? 3 : 2)) check_setting(&settings[s]);
}
END_TEST

static void add_tests(TCase *tc)
{
    test_compile_quickly();
    tcase_add_test(tc, every_path_gives_the_same_bits_of_every_operator);
}

TRL_TEST_MAIN("operator paths", add_tests)
