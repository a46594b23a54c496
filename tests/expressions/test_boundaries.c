/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Boundary conditions against a direct implementation of their rules: every kind on every side, at every location,
 * two layers deep, corners included, and through the stages of a time step. */
// ctest: np=1,4 timeout=300 sanitize=1
#include "problem_fixture.h"

enum { LAYERS = 2, KINDS = 8, POINTS_MAX = 16 * 16 * 16 };

/* The kinds of the test, dealt to the sides in turn. `v` stands for VALUE below. */
typedef enum kind { DIRICHLET, NEUMANN, ROBIN, OUTFLOW, PIECES, EXPRESSION, ROBIN_DIRICHLET, FIELD } kind;

static int dim, cells[3] = {9, 5, 8}, location, deal;
static double spacing[3];
static bool with_field; /* U exists: only where T is at cells */
static const char *const value_text[] = {"", "0.3 + x + t", "0.3 + x + 2*y + t", "0.3 + x + 2*y + 3*z + t"};

static double value(const double p[3], double t)
{
    return 0.3 + p[0] + (dim > 1 ? 2 * p[1] : 0) + (dim > 2 ? 3 * p[2] : 0) + t;
}

static kind kind_of(int side)
{
    kind k = (kind)((side + deal) % KINDS);
    return k == FIELD && !with_field ? DIRICHLET : k;
}

static void say_side(int side)
{
    const char *v = value_text[dim];
    say("%c%c: ", "xyz"[side / 2], side % 2 ? '+' : '-');
    switch (kind_of(side)) {
    case DIRICHLET:
        say("{dirichlet: \"%s\"}", v);
        return;
    case NEUMANN:
        say("{neumann: \"%s\"}", v);
        return;
    case ROBIN:
        say("{robin: {a: 2, b: \"1.5 + x\", c: \"%s\"}}", v);
        return;
    case OUTFLOW:
        say("{outflow: true}");
        return;
    case PIECES:
        say("[{where: \"%s > 1.2\", dirichlet: \"%s\"}, {where: \"%s > 0.8\", outflow: true}, {neumann: \"%s\"}]", v, v,
            v, v);
        return;
    case EXPRESSION:
        say("{expression: edge}");
        return;
    case ROBIN_DIRICHLET:
        say("{robin: {a: 2, b: 0, c: \"%s\"}}", v);
        return;
    case FIELD:
        say("{dirichlet: \"2*U\"}");
        return;
    }
}

/* ---- the rules, directly ---- */

typedef struct reference {
    int n[3], room[3], lo[3]; /* points, held points, ghosts below */
    double f[POINTS_MAX];
} reference;

static double *at(reference *r, const int i[3])
{
    return &r->f[i[0] + r->lo[0] + r->room[0] * (i[1] + r->lo[1] + r->room[1] * (i[2] + r->lo[2]))];
}

static void shape(reference *r, int where)
{
    for (int a = 0; a < 3; ++a) {
        r->n[a] = a < dim ? cells[a] + (where >> a & 1) : 1;
        r->lo[a] = a < dim ? LAYERS : 0;
        r->room[a] = r->n[a] + 2 * r->lo[a];
    }
    ck_assert_int_le((intmax_t)r->room[0] * r->room[1] * r->room[2], POINTS_MAX);
    for (int i = 0; i < POINTS_MAX; ++i) r->f[i] = NAN;
}

static void coordinates(int where, const int i[3], double p[3])
{
    for (int a = 0; a < 3; ++a) p[a] = a < dim ? (i[a] + (where >> a & 1 ? 0 : 0.5)) * spacing[a] : 0;
}

/* Distance from the side in points of the nearest value, its index, and the side's coordinate at a point along it. */
static void on_side(const int i[3], int side, double p[3])
{
    coordinates(location, i, p);
    p[side / 2] = side % 2 ? 1 : 0;
}

typedef struct condition {
    kind kind; /* after pieces are chosen: DIRICHLET, NEUMANN, ROBIN, OUTFLOW or EXPRESSION */
    double a, b, c;
} condition;

static condition condition_at(const int i[3], int side, double t, reference *other)
{
    double p[3], v;
    int inside[3] = {i[0], i[1], i[2]};
    on_side(i, side, p);
    v = value(p, t);
    kind k = kind_of(side);
    if (k == PIECES) k = v > 1.2 ? DIRICHLET : v > 0.8 ? OUTFLOW : NEUMANN;
    if (k == ROBIN_DIRICHLET) return (condition){DIRICHLET, v / 2, 0, 0};
    if (k == ROBIN) return (condition){ROBIN, 2, 1.5 + p[0], v};
    inside[side / 2] = side % 2 ? cells[side / 2] - 1 : 0;
    if (k == FIELD) return (condition){DIRICHLET, 2 * *at(other, inside), 0, 0};
    return (condition){k, v, 0, 0};
}

static double ghost(reference *r, const int i[3], int side, int m, double t, reference *other)
{
    int axis = side / 2, bit = location >> axis & 1, edge = side % 2 ? r->n[axis] - 1 : 0, in = side % 2 ? -1 : 1;
    int near_side[3] = {i[0], i[1], i[2]}, mirror[3] = {i[0], i[1], i[2]};
    near_side[axis] = edge;
    mirror[axis] = edge + in * (bit ? m : m - 1);
    condition c = condition_at(i, side, t, other);
    double f_m = *at(r, mirror), f_0 = *at(r, near_side), h = spacing[axis], distance = (bit ? 2 * m : 2 * m - 1) * h;
    switch (c.kind) {
    case DIRICHLET:
        return 2 * c.a - f_m;
    case NEUMANN:
        return f_m + distance * c.a;
    case OUTFLOW:
        return f_0;
    case ROBIN:
        if (bit) return f_m + distance * (c.c - c.a * f_0) / c.b;
        /* a*(ghost + f_m)/2 + b*(ghost - f_m)/distance = c */
        return (c.c - f_m * (c.a / 2 - c.b / distance)) / (c.a / 2 + c.b / distance);
    default:
        return c.a;
    }
}

/* Visit the points beside a side (or on it: m = 0), ghosts of earlier axes included. */
static void each_point(reference *r, int side, int m, void (*visit)(reference *, int[3], int, int, double, reference *),
                       double t, reference *other)
{
    int axis = side / 2, lo[3], hi[3], i[3];
    for (int b = 0; b < 3; ++b) {
        int beyond = b < axis && m > 0 ? r->lo[b] : 0;
        lo[b] = -beyond;
        hi[b] = r->n[b] + beyond;
    }
    lo[axis] = side % 2 ? r->n[axis] - 1 + m : -m;
    hi[axis] = lo[axis] + 1;
    for (i[2] = lo[2]; i[2] < hi[2]; ++i[2])
        for (i[1] = lo[1]; i[1] < hi[1]; ++i[1])
            for (i[0] = lo[0]; i[0] < hi[0]; ++i[0]) visit(r, (int[3]){i[0], i[1], i[2]}, side, m, t, other);
}

static void set_ghost(reference *r, int i[3], int side, int m, double t, reference *other)
{
    *at(r, i) = ghost(r, i, side, m, t, other);
}

static void set_point(reference *r, int i[3], int side, int m, double t, reference *other)
{
    (void)m;
    condition c = condition_at(i, side, t, other);
    if (c.kind == DIRICHLET || c.kind == EXPRESSION) *at(r, i) = c.a;
}

static void fill(reference *r, double t, reference *other)
{
    for (int side = 0; side < 2 * dim; ++side)
        for (int m = 1; m <= LAYERS; ++m) each_point(r, side, m, set_ghost, t, other);
}

static void set_planes(reference *r, double t, reference *other)
{
    for (int side = 0; side < 2 * dim; ++side)
        if (location >> side / 2 & 1) each_point(r, side, 0, set_point, t, other);
}

/* ---- the problem ---- */

/* T[i + by] as a formula: each left(left(...)) moves by one point. */
static void say_moved(const int by[3])
{
    char text[512] = "T", longer[512];
    for (int a = 0; a < dim; ++a)
        for (int k = 0; k < abs(by[a]); ++k) {
            const char *f = by[a] < 0 ? "left" : "right";
            snprintf(longer, sizeof longer, "%s(%s(%.400s).%c).%c", f, f, text, "xyz"[a], "xyz"[a]);
            memcpy(text, longer, sizeof text);
        }
    say("\"%s\"", text);
}

static int moved_number(const int by[3])
{
    return by[0] + LAYERS + 5 * (by[1] + LAYERS) + 25 * (by[2] + LAYERS);
}

static bool next_move(int by[3])
{
    for (int a = 0; a < dim; ++a) {
        if (by[a] < LAYERS) {
            ++by[a];
            return true;
        }
        by[a] = -LAYERS;
    }
    return false;
}

static void say_problem(const char *ddt, const char *method, bool moves)
{
    int by[3] = {-LAYERS, dim > 1 ? -LAYERS : 0, dim > 2 ? -LAYERS : 0}, start[3] = {by[0], by[1], by[2]};
    new_deck();
    say("grid: {cells: %s}\nexpressions:\n  edge: \"%s\"\n", list_of(dim, cells), value_text[dim]);
    if (moves) do {
            say("  m%d: ", moved_number(by));
            say_moved(by);
            say("\n");
        } while (next_move(by));
    say("equations:\n  T:\n    location: %s\n    initial: \"cos(3*x%s%s)\"\n    ddt: \"%s\"\n    boundary: {",
        trl_location_name((trl_location)location), dim > 1 ? " + y" : "", dim > 2 ? " - 2*z" : "", ddt);
    for (int s = 0; s < 2 * dim; ++s) {
        if (s) say(", ");
        say_side(s);
    }
    say("}\n");
    if (with_field) {
        say("  U:\n    initial: \"x*x%s%s\"\n    ddt: 1\n    boundary: {", dim > 1 ? " + y" : "", dim > 2 ? "*z" : "");
        for (int s = 0; s < 2 * dim; ++s)
            say("%s%c%c: {outflow: true}", s ? ", " : "", "xyz"[s / 2], s % 2 ? '+' : '-');
        say("}\n");
    }
    say("time: {dt: 0.001, steps: 4, start: 0.1, method: %s}\noutput: {fields: [T", method);
    memcpy(by, start, sizeof by);
    if (moves) do
            say(", m%d", moved_number(by));
        while (next_move(by));
    say("]}\n");
}

static void load(reference *r, const char *name, int where)
{
    trl_gidx n[3];
    const double *f = values_of(name, n);
    shape(r, where);
    for (int p = 0; p < n[0] * n[1] * n[2]; ++p)
        *at(r, (int[3]){(int)(p % n[0]), (int)(p / n[0] % n[1]), (int)(p / n[0] / n[1])}) = f[p];
}

/* U's own conditions are outflow: every ghost is the nearest value, axis by axis. */
static void fill_outflow(reference *r)
{
    int i[3], j[3];
    for (i[2] = -r->lo[2]; i[2] < r->n[2] + r->lo[2]; ++i[2])
        for (i[1] = -r->lo[1]; i[1] < r->n[1] + r->lo[1]; ++i[1])
            for (i[0] = -r->lo[0]; i[0] < r->n[0] + r->lo[0]; ++i[0]) {
                for (int a = 0; a < 3; ++a) j[a] = i[a] < 0 ? 0 : i[a] >= r->n[a] ? r->n[a] - 1 : i[a];
                *at(r, i) = *at(r, j);
            }
}

static void start_case(int dimension, int where, int first)
{
    dim = dimension;
    location = where;
    deal = first;
    with_field = where == TRL_CELL;
    for (int a = 0; a < 3; ++a) spacing[a] = 1.0 / cells[a];
}

static void check_moves(void)
{
    static reference r, other;
    int by[3] = {-LAYERS, dim > 1 ? -LAYERS : 0, dim > 2 ? -LAYERS : 0};
    load(&r, "T", location);
    if (with_field) load(&other, "U", TRL_CELL);
    if (with_field) fill_outflow(&other);
    fill(&r, trl_simulation_time(sim), &other);
    do {
        char name[16];
        trl_gidx n[3];
        snprintf(name, sizeof name, "m%d", moved_number(by));
        const double *f = values_of(name, n);
        for (int p = 0; p < n[0] * n[1] * n[2]; ++p) {
            int i[3] = {(int)(p % n[0]) + by[0], (int)(p / n[0] % n[1]) + by[1], (int)(p / n[0] / n[1]) + by[2]};
            ck_assert_msg(near(f[p], *at(&r, i), 1e-12),
                          "%d-D, T at %s, deal %d: ghost (%d, %d, %d) is %.17g, not %.17g", dim,
                          trl_location_name((trl_location)location), deal, i[0], i[1], i[2], f[p], *at(&r, i));
        }
    } while (next_move(by));
}

static void check_ghosts(int dimension, int deals)
{
    for (int where = 0; where < 1 << dimension; ++where)
        for (int first = 0; first < deals; ++first) {
            start_case(dimension, where, first);
            say_problem("0", "euler", true);
            ck_ok(open_problem());
            ck_ok(run_steps(0));
            check_moves();
        }
    close_problem();
}

START_TEST(ghosts_in_one_dimension_invert_each_condition)
{
    check_ghosts(1, KINDS);
}
END_TEST

START_TEST(ghosts_in_two_dimensions_are_filled_x_then_y_with_corners)
{
    check_ghosts(2, KINDS);
}
END_TEST

START_TEST(ghosts_in_three_dimensions_are_filled_x_then_y_then_z)
{
    check_ghosts(3, 1);
}
END_TEST

/* T moved by half cells, so that it is read from other locations too. */
static void check_alone(const int half[2])
{
    static reference r, other;
    char text[512] = "T", longer[512];
    trl_gidx n[3];
    for (int a = 0; a < 2; ++a)
        for (int k = 0; k < abs(half[a]); ++k) {
            snprintf(longer, sizeof longer, "%s(%.400s).%c", half[a] < 0 ? "left" : "right", text, "xy"[a]);
            memcpy(text, longer, sizeof text);
        }
    say_problem("0", "euler", false);
    deck_length -= strlen("[T]}\n");
    say("[e]}\n");
    const char *set[2];
    snprintf(longer, sizeof longer, "expressions.e=%.400s", text);
    set[0] = longer;
    ck_ok(open_problem_with(1, set));
    ck_ok(run_steps(0));
    load(&r, "T", location);
    if (with_field) load(&other, "U", TRL_CELL);
    if (with_field) fill_outflow(&other);
    fill(&r, trl_simulation_time(sim), &other);
    const double *f = values_of("e", n);
    for (int p = 0; p < n[0] * n[1]; ++p) {
        int i[3] = {(int)(p % n[0]), (int)(p / n[0]), 0};
        for (int a = 0; a < 2; ++a) {
            int bit = location >> a & 1, flipped = abs(half[a]) % 2;
            i[a] = (2 * i[a] + (flipped ? bit : !bit) + half[a] - !bit) / 2;
        }
        ck_assert_msg(near(f[p], *at(&r, i), 1e-12), "T at %s, deal %d, %s: ghost (%d, %d) is %.17g, not %.17g",
                      trl_location_name((trl_location)location), deal, text, i[0], i[1], f[p], *at(&r, i));
    }
}

START_TEST(each_ghost_is_there_when_it_alone_is_read)
{
    for (int where = 0; where < 4; ++where)
        for (int x = -3; x <= 3; ++x)
            for (int y = -3; y <= 3; ++y) {
                start_case(2, where, 3 * where);
                check_alone((int[2]){x, y});
            }
    close_problem();
}
END_TEST

/* ---- stages ---- */

static void laplacian_of(reference *u, double t, reference *other, reference *result)
{
    int i[3];
    fill(u, t, other);
    shape(result, location);
    for (i[2] = 0; i[2] < u->n[2]; ++i[2])
        for (i[1] = 0; i[1] < u->n[1]; ++i[1])
            for (i[0] = 0; i[0] < u->n[0]; ++i[0]) {
                double sum = 0;
                for (int a = 0; a < dim; ++a) {
                    int lo[3] = {i[0], i[1], i[2]}, hi[3] = {i[0], i[1], i[2]};
                    --lo[a];
                    ++hi[a];
                    sum += (*at(u, lo) + *at(u, hi) - 2 * *at(u, i)) / (spacing[a] * spacing[a]);
                }
                *at(result, i) = sum;
            }
}

/* out = alpha*u0 + (1 - alpha)*(u + dt*laplacian(u)), then the points on the sides. */
static void advance(const reference *u0, reference *u, double alpha, double t, double dt, double t_new, reference *out)
{
    static reference slope, other, later;
    if (with_field) { /* U grows by 1 per time: its value at t */
        shape(&other, TRL_CELL);
        shape(&later, TRL_CELL);
        for (int p = 0; p < cells[0] * (dim > 1 ? cells[1] : 1) * (dim > 2 ? cells[2] : 1); ++p) {
            int ny = dim > 1 ? cells[1] : 1, i[3] = {p % cells[0], p / cells[0] % ny, p / cells[0] / ny};
            double q[3];
            coordinates(TRL_CELL, i, q);
            *at(&other, i) = q[0] * q[0] + (dim > 2 ? q[1] * q[2] : dim > 1 ? q[1] : 0) + t - 0.1;
        }
        fill_outflow(&other);
    }
    laplacian_of(u, t, &other, &slope);
    reference result = *u;
    for (int p = 0; p < POINTS_MAX; ++p) result.f[p] = alpha * u0->f[p] + (1 - alpha) * (u->f[p] + dt * slope.f[p]);
    set_planes(&result, t_new, &other);
    *out = result;
}

static void check_stages(int dimension, int where, int first)
{
    static reference u, u0, first_stage, second_stage;
    const double dt = 1e-3;
    trl_gidx n[3];
    start_case(dimension, where, first);
    say_problem("laplacian(T)", "ssprk3", false);
    ck_ok(open_problem());
    ck_ok(run_steps(0));
    load(&u, "T", location);
    for (int step = 0; step < 4; ++step) {
        double t = 0.1 + step * dt, end = 0.1 + (step + 1) * dt;
        u0 = u;
        advance(&u0, &u, 0, t, dt, end, &first_stage);
        advance(&u0, &first_stage, 0.75, end, dt, t + 0.5 * dt, &second_stage);
        advance(&u0, &second_stage, 1.0 / 3, t + 0.5 * dt, dt, end, &u);
        ck_ok(trl_simulation_step(sim));
    }
    const double *f = values_of("T", n);
    for (int p = 0; p < n[0] * n[1] * n[2]; ++p) {
        int i[3] = {(int)(p % n[0]), (int)(p / n[0] % n[1]), (int)(p / n[0] / n[1])};
        ck_assert_msg(near(f[p], *at(&u, i), 1e-11), "%d-D, T at %s, deal %d: point (%d, %d, %d) is %.17g, not %.17g",
                      dim, trl_location_name((trl_location)location), deal, i[0], i[1], i[2], f[p], *at(&u, i));
    }
    close_problem();
}

START_TEST(conditions_hold_at_the_time_of_each_stage)
{
    for (int dimension = 1; dimension <= 3; ++dimension)
        for (int where = 0; where < 1 << dimension; ++where)
            for (int first = 0; first < (dimension < 3 ? KINDS : 2); ++first) check_stages(dimension, where, first);
}
END_TEST

START_TEST(initial_values_on_a_side_are_set_by_dirichlet_and_the_last_axis_wins)
{
    trl_gidx n[3];
    new_deck();
    say("grid: {cells: [4, 4]}\nequations:\n  T:\n    location: node\n    initial: 7\n    ddt: 0\n    boundary: {x-: "
        "{dirichlet: \"1 + t\"}, "
        "x+: {neumann: 0}, y-: {dirichlet: 2}, y+: [{where: \"x > 0.6\", dirichlet: 3}, {outflow: true}]}\n"
        "time: {dt: 0.5, steps: 2, method: rk4}\noutput: {fields: [T]}\n");
    ck_ok(open_problem());
    ck_ok(run_steps(0));
    for (int step = 0; step < 3; ++step) {
        const double *f = values_of("T", n), left = 1 + 0.5 * step;
        for (int j = 0; j < 5; ++j)
            for (int i = 0; i < 5; ++i)
                ck_assert_double_eq(f[i + 5 * j], j == 0 ? 2 : j == 4 && i > 2 ? 3 : i == 0 ? left : 7);
        if (step < 2) ck_ok(trl_simulation_step(sim));
    }
    close_problem();
}
END_TEST

/* At the corner (0, 0) the second piece of x- keeps what is there, and only the Dirichlet side y- sets it. */
START_TEST(a_corner_that_a_later_side_sets_need_not_hold_a_value_before)
{
    trl_gidx n[3];
    new_deck();
    say("grid: {cells: [4, 4]}\nequations:\n  T:\n    location: node\n    initial: 7\n    ddt: 0\n    boundary: {x-: "
        "[{where: \"y > 0.5\", dirichlet: 1}, {neumann: 0}], x+: {dirichlet: 3}, y-: {dirichlet: 2}, y+: {dirichlet: "
        "4}}\n"
        "time: {dt: 0.5, steps: 2, method: rk4}\noutput: {fields: [T]}\n");
    ck_ok(open_problem());
    ck_ok(run_steps(2));
    const double *f = values_of("T", n);
    for (int j = 0; j < 5; ++j)
        for (int i = 0; i < 5; ++i)
            ck_assert_double_eq(f[i + 5 * j], j == 0 ? 2 : j == 4 ? 4 : i == 4 ? 3 : i == 0 && j == 3 ? 1 : 7);
    close_problem();
}
END_TEST

START_TEST(an_advective_flux_uses_the_dirichlet_value_itself)
{
    static const char *const limiter[] = {"", ", upwind", ", superbee"};
    trl_gidx n[3];
    for (int l = 0; l < 3; ++l) {
        new_deck();
        say("grid: {cells: [6, 5]}\nexpressions:\n  e: \"advective_flux(T, [2, -1]%s)\"\nequations:\n  T:\n    "
            "initial: \"x + y\"\n    ddt: 0\n"
            "    boundary: {x-: {dirichlet: \"5 + y\"}, x+: [{where: \"y > 0.5\", dirichlet: 9}, {neumann: 0}], y-: "
            "{robin: {a: 2, b: 0, c: 6}}, "
            "y+: {neumann: 0}}\ntime: {dt: 0.5, steps: 2}\noutput: {fields: [e]}\n",
            limiter[l]);
        ck_ok(open_problem());
        ck_ok(run_steps(0));
        const double *x = values_of("e.x", n);
        for (ptrdiff_t j = 0; j < 5; ++j) {
            double y = (j + 0.5) / 5;
            ck_assert(near(x[7 * j], 2 * (5 + y), 1e-15));
            ck_assert(near(x[7 * j + 6], y > 0.5 ? 18 : 2 * (5.5 / 6 + y), 1e-14));
        }
        const double *y = values_of("e.y", n);
        for (int i = 0; i < 6; ++i) ck_assert(near(y[i], -3, 1e-15));
    }
    close_problem();
}
END_TEST

/* The y-ghosts of T beside its x-ghosts take the value of U there, which nothing else asks for. */
START_TEST(a_value_from_a_field_is_known_beside_the_corner_too)
{
    trl_gidx n[3];
    new_deck();
    say("grid: {cells: [5, 4]}\nexpressions:\n  e: \"at(T, node)\"\nequations:\n  U: {initial: \"1 + x\", ddt: 0, "
        "boundary: {x-: {dirichlet: 3}, x+: {neumann: 1}}}\n"
        "  T: {initial: 0, ddt: 0, boundary: {x-: {dirichlet: 1}, x+: {dirichlet: 1}, y-: {dirichlet: \"U\"}, y+: "
        "{neumann: \"U\"}}}\n"
        "time: {dt: 0.1, steps: 1}\noutput: {fields: [e]}\n");
    ck_ok(open_problem());
    ck_ok(run_steps(1));
    const double *e = values_of("e", n);
    for (int i = 1; i < 5; ++i) ck_assert(near(e[i], 1 + 0.2 * i, 1e-14));
    ck_assert_double_eq_tol(e[0], 3, 1e-14); /* (2*(6 - 1.1) - 2 + 2*1.1 - 0 + 2 + 0)/4 */
    ck_assert_double_eq_tol(e[5], 2, 1e-14); /* (2*2.1 - 2 + 2*1.9 - 0 + 2 + 0)/4 */
    close_problem();
}
END_TEST

START_TEST(conditions_that_cannot_be_met_are_refused)
{
    new_deck();
    say("grid: {cells: [5, 4]}\nequations:\n  T: {initial: 0, ddt: \"laplacian(T)\", boundary: {x-: {dirichlet: "
        "\"d2dy(T)\"}, x+: {dirichlet: 1}, "
        "y-: {dirichlet: 1}, y+: {neumann: 0}}}\ntime: {dt: 0.1, steps: 1}\n");
    ck_fails(open_problem(), TRL_ERR_INPUT,
             "this boundary value reads 'T' beyond y-, and that side is filled later: the order is x, y, z");
    close_problem();
    new_deck();
    say("grid: {cells: [5]}\nequations:\n  T: {initial: 0, ddt: \"laplacian(T)\", boundary: {x-: {robin: {a: 0, b: \"1 "
        "- 1\", "
        "c: 3}}, x+: {dirichlet: 1}}}\ntime: {dt: 0.1, steps: 1}\n");
    ck_fails(open_problem(), TRL_ERR_INPUT,
             "robin with a = 0 and b = 0 says nothing of 'T': one of them has to be another number");
    close_problem();
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, ghosts_in_one_dimension_invert_each_condition);
    tcase_add_test(tc, ghosts_in_two_dimensions_are_filled_x_then_y_with_corners);
    tcase_add_test(tc, ghosts_in_three_dimensions_are_filled_x_then_y_then_z);
    tcase_add_test(tc, each_ghost_is_there_when_it_alone_is_read);
    tcase_add_test(tc, conditions_hold_at_the_time_of_each_stage);
    tcase_add_test(tc, initial_values_on_a_side_are_set_by_dirichlet_and_the_last_axis_wins);
    tcase_add_test(tc, a_corner_that_a_later_side_sets_need_not_hold_a_value_before);
    tcase_add_test(tc, an_advective_flux_uses_the_dirichlet_value_itself);
    tcase_add_test(tc, a_value_from_a_field_is_known_beside_the_corner_too);
    tcase_add_test(tc, conditions_that_cannot_be_met_are_refused);
}

TRL_TEST_MAIN("boundaries", add_tests)
