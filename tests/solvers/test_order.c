/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Observed orders of accuracy and conservation, on the decks that users start from. Prints the tables of
 * docs/verification.md. */
// ctest: sanitize=none timeout=600
#include "../expressions/problem_fixture.h"

enum { GRIDS = 3, SETTINGS = 6 };

static bool speaks(void)
{
    return trl_context_rank(test_ctx) == 0;
}

static double order(double coarse, double fine)
{
    return log2(coarse / fine);
}

/* Open a deck of inputs/decks with the settings that are not NULL. */
static void open_deck(const char *name, const char *const set[SETTINGS])
{
    char path[1024];
    int nsets = 0;
    while (nsets < SETTINGS && set[nsets]) ++nsets;
    snprintf(path, sizeof path, TRL_TEST_SOURCE_DIR "/../inputs/decks/%s.yaml", name);
    close_problem();
    ck_ok(trl_registry_create(test_ctx, &registry));
    const trli_deck_request request = {.path = path, .nsets = nsets, .set = set};
    ck_ok(trli_deck_read(test_ctx, registry, &request, &deck));
    ck_ok(trl_simulation_create(test_ctx, trli_deck_problem(deck), &sim));
}

static void run_to_end(void)
{
    ck_ok(trl_simulation_initialise(sim));
    while (!trl_simulation_done(sim)) ck_ok(trl_simulation_step(sim));
    ck_ok(trl_simulation_observe(sim));
}

static const char *dt_setting(double dt)
{
    static char text[64];
    snprintf(text, sizeof text, "time.dt=%.17g", dt);
    return text;
}

/* ---- space ---- */

/* A deck on three grids. dt falls as the square of the spacing where diffusion bounds it and as the spacing elsewhere,
 * with a method whose error in time is then far below that in space. */
typedef struct space_study {
    const char *deck, *sides;
    int cells, dim;
    double dt, end; /* of the coarsest grid; 0: without time, the deck solves once */
    bool diffusion;
    int ntags;
    const char *tag[3], *more[2];
    int order;
} space_study;

static const space_study space_studies[] = {
    {"heat_1d", "Dirichlet, Neumann", 16, 1, 1.6e-3, 0.1, true, 1, {"T"}, {0}, 2},
    {"heat_2d", "Dirichlet", 32, 2, 2e-4, 4e-3, true, 1, {"T"}, {0}, 2},
    {"heat_3d", "Dirichlet", 12, 3, 9e-4, 9e-3, true, 1, {"T"}, {0}, 2},
    {"heat_variable_k", "Dirichlet", 20, 2, 7.5e-4, 3e-2, true, 1, {"T"}, {0}, 2},
    {"robin_cooling", "Neumann, Robin", 16, 1, 3.2e-3, 0.32, true, 1, {"T"}, {0}, 2},
    {"sensitivity", "Neumann, Robin", 16, 1, 3.2e-3, 0.32, true, 2, {"T_k", "T_lambda"}, {0}, 2},
    {"burgers_2d", "Dirichlet in time", 32, 2, 2e-3, 0.1, true, 2, {"u", "v"}, {0}, 2},
    {"advection", "periodic", 80, 2, 5e-3, 0.25, false, 1, {"phi"}, {0}, 2},
    {"transport", "periodic", 16, 3, 5e-3, 0.05, true, 1, {"phi1"}, {"parameters.n=1"}, 2},
    {"wave", "walls", 16, 2, 2e-2, 0.5, false, 3, {"p", "u", "v"}, {0}, 2},
    {"drum", "Dirichlet", 20, 2, 1e-2, 0.5, false, 2, {"h", "h_t"}, {0}, 2},
    {"maxwell", "periodic", 12, 3, 2e-2, 0.2, false, 3, {"Ex", "By", "Bz"}, {0}, 2},
    {"fourth_order", "periodic", 16, 2, 8e-3, 0.16, true, 1, {"phi"}, {"time.method=rk4"}, 4},
    {"poisson", "Dirichlet, Neumann, Robin", 20, 2, 0, 0, false, 1, {"p"}, {0}, 2},
    {"blocks", "Dirichlet; k jumps", 20, 2, 0, 0, false, 1, {"T"}, {0}, 2},
    {"p_laplacian", "Dirichlet, Neumann", 20, 2, 0, 0, false, 1, {"u"}, {0}, 2},
};

typedef struct errors {
    double l2[3], linf[3];
} errors;

static void run_grid(const space_study *s, int level, errors *e)
{
    const int n = s->cells << level, cells[3] = {n, n, n};
    char grid[64], end[64];
    snprintf(grid, sizeof grid, "grid.cells=%s", list_of(s->dim, cells));
    snprintf(end, sizeof end, "time.end=%.17g", s->end);
    const char *const set[SETTINGS] = {grid, end, dt_setting(s->dt / (s->diffusion ? 1 << 2 * level : 1 << level)),
                                       s->more[0], s->more[1]};
    const char *const once[SETTINGS] = {grid, s->more[0], s->more[1]};
    open_deck(s->deck, s->dt > 0 ? set : once);
    run_to_end();
    for (int i = 0; i < s->ntags; ++i) {
        trl_field_stats stats;
        ck_ok(trl_simulation_field_stats(sim, field_index(s->tag[i]), &stats));
        ck_assert(stats.has_error);
        e->l2[i] = stats.error_l2;
        e->linf[i] = stats.error_linf;
    }
    close_problem();
}

static void check_space(const space_study *s)
{
    errors e[GRIDS];
    double expected = s->order;
    const int grids = s->dim < 3 || test_long() ? GRIDS : 2; /* the third one of three dimensions takes most time */
    for (int g = 0; g < grids; ++g) run_grid(s, g, &e[g]);
    for (int i = 0; i < s->ntags; ++i)
        for (int g = 0; g < grids; ++g) {
            double l2 = g ? order(e[g - 1].l2[i], e[g].l2[i]) : expected,
                   linf = g ? order(e[g - 1].linf[i], e[g].linf[i]) : expected;
            if (speaks() && g == 0)
                printf("| %s | %s | %s | %d | %.3e | | %.3e | |\n", s->deck, s->sides, s->tag[i], s->cells, e[g].l2[i],
                       e[g].linf[i]);
            if (speaks() && g > 0)
                printf("| | | | %d | %.3e | %.2f | %.3e | %.2f |\n", s->cells << g, e[g].l2[i], l2, e[g].linf[i], linf);
            ck_assert_msg(fabs(l2 - expected) < 0.1 && fabs(linf - expected) < 0.1,
                          "%s, %s: orders %.3f in l2 and %.3f in the maximum, expected %.0f", s->deck, s->tag[i], l2,
                          linf, expected);
        }
}

START_TEST(decks_converge_with_their_order_in_space)
{
    if (speaks())
        printf("| deck | sides | tag | cells per axis | l2 error | order | largest error | order "
               "|\n|---|---|---|---|---|---|---|---|\n");
    for (size_t i = 0; i < sizeof space_studies / sizeof *space_studies; ++i) check_space(&space_studies[i]);
}
END_TEST

static errors run_fourth_order_sides(const char *solution, const char *boundary, int cells)
{
    trl_field_stats stats;
    new_deck();
    say("grid: {cells: [%d]}\nexpressions: {solution: \"%s\", slope: \"-3*exp(-9*t)*sin(3*x + 0.5)\"}\nequations:\n"
        "  T: {initial: solution, ddt: \"div4(grad4(T))\", exact: solution, boundary: {%s}}\n"
        "time: {method: rk4, dt: %.17g, end: 0.0625}\n",
        cells, solution, boundary, 0.25 / (cells * cells));
    ck_ok(open_problem());
    run_to_end();
    ck_ok(trl_simulation_field_stats(sim, field_index("T"), &stats));
    close_problem();
    return (errors){{stats.error_l2}, {stats.error_linf}};
}

START_TEST(fourth_order_differences_have_order_two_where_a_side_extrapolates)
{
    static const char *const general = "exp(-9*t)*cos(3*x + 0.5)", *const mirrored = "exp(-pi^2/4*t)*sin(pi*x/2)";
    const struct {
        const char *name, *solution, *boundary;
        int order;
    } sides[] = {
        {"Dirichlet", general, "x-: {dirichlet: solution}, x+: {dirichlet: solution}", 2},
        {"Neumann", general, "x-: {neumann: \"-slope\"}, x+: {neumann: slope}", 2},
        {"Robin", general,
         "x-: {robin: {a: 1, b: 1, c: \"solution - slope\"}}, x+: {robin: {a: 1, b: 1, c: \"solution + slope\"}}", 2},
        {"Dirichlet, Neumann, mirrored", mirrored, "x-: {dirichlet: 0}, x+: {neumann: 0}", 4},
    };
    if (speaks()) printf("| sides | cells | l2 error | order | largest error | order |\n|---|---|---|---|---|---|\n");
    for (size_t i = 0; i < sizeof sides / sizeof *sides; ++i) {
        errors before = {{0}, {0}};
        for (int g = 0; g < GRIDS; ++g) {
            errors e = run_fourth_order_sides(sides[i].solution, sides[i].boundary, 32 << g);
            double l2 = order(before.l2[0], e.l2[0]), linf = order(before.linf[0], e.linf[0]);
            if (speaks() && g == 0)
                printf("| %s | 32 | %.3e | | %.3e | |\n", sides[i].name, e.l2[0], e.linf[0]);
            else if (speaks())
                printf("| | %d | %.3e | %.2f | %.3e | %.2f |\n", 32 << g, e.l2[0], l2, e.linf[0], linf);
            ck_assert_msg(g == 0 || (fabs(l2 - sides[i].order) < 0.15 && fabs(linf - sides[i].order) < 0.15),
                          "%s: orders %.3f and %.3f", sides[i].name, l2, linf);
            before = e;
        }
    }
}
END_TEST

/* ---- time ---- */

static double *finest;
static size_t finest_points;

/* The largest difference between a field and the finest solution. */
static double difference(const char *tag)
{
    trl_gidx n[3];
    const double *f = values_of(tag, n);
    double largest = 0;
    ck_assert_uint_eq(finest_points, (size_t)(n[0] * n[1] * n[2]));
    for (size_t i = 0; i < finest_points; ++i) largest = fmax(largest, fabs(f[i] - finest[i]));
    return largest;
}

static void keep_finest(const char *tag)
{
    trl_gidx n[3];
    const double *f = values_of(tag, n);
    finest_points = (size_t)(n[0] * n[1] * n[2]);
    finest = realloc(finest, finest_points * sizeof *finest);
    ck_assert_ptr_nonnull(finest);
    memcpy(finest, f, finest_points * sizeof *finest);
}

typedef struct time_study {
    const char *deck, *tag, *grid, *end;
    double dt;
} time_study;

static const time_study time_studies[] = {
    {"heat_2d", "T", "grid.cells=[12,12]", "time.end=8e-3", 5e-4},
    {"gray_scott", "u", "grid.cells=[24,20]", "time.end=8", 0.5},
    {"transport", "phi2", "grid.cells=[8,8,8]", "time.end=0.08", 1e-2},
};

static const struct method {
    const char *name;
    int order;
} methods[] = {{"euler", 1}, {"ssprk2", 2}, {"ssprk3", 3}, {"rk4", 4}};

enum { METHODS = sizeof methods / sizeof *methods };

static void run_method(const time_study *s, const char *name, double dt)
{
    char method[32];
    snprintf(method, sizeof method, "time.method=%s", name);
    const char *set[SETTINGS] = {s->grid, s->end, method, dt_setting(dt)};
    open_deck(s->deck, set);
    run_to_end();
}

static void check_time(const time_study *s, const struct method *m)
{
    double e[GRIDS];
    for (int g = 0; g < GRIDS; ++g) {
        run_method(s, m->name, s->dt / (1 << g));
        e[g] = difference(s->tag);
    }
    if (speaks())
        printf("| %s | %s | %.3e | %.3e | %.3e | %.2f | %.2f |\n", s->deck, m->name, e[0], e[1], e[2],
               order(e[0], e[1]), order(e[1], e[2]));
    ck_assert_msg(fabs(order(e[1], e[2]) - m->order) < 0.1, "%s on %s: order %.3f, expected %d", m->name, s->deck,
                  order(e[1], e[2]), m->order);
}

START_TEST(methods_have_their_orders_in_time)
{
    if (speaks())
        printf("| deck | method | error at dt | dt/2 | dt/4 | order | order |\n|---|---|---|---|---|---|---|\n");
    for (size_t i = 0; i < sizeof time_studies / sizeof *time_studies; ++i) {
        run_method(&time_studies[i], "rk4", time_studies[i].dt / 64);
        keep_finest(time_studies[i].tag);
        for (int m = 0; m < METHODS; ++m) check_time(&time_studies[i], &methods[m]);
    }
    close_problem();
}
END_TEST

/* The decay of cos(3x + 1/2) with its exact, time-dependent values on both sides. */
static void run_moving_sides(const char *method, int cells, double dt)
{
    new_deck();
    say("grid: {cells: [%d]}\nexpressions: {solution: \"exp(-9*t)*cos(3*x + 0.5)\"}\nequations:\n  T:\n    initial: "
        "solution\n"
        "    ddt: laplacian(T)\n    boundary: {x-: {dirichlet: solution}, x+: {dirichlet: solution}}\n"
        "time: {method: %s, dt: %.17g, end: 0.0625}\n",
        cells, method, dt);
    ck_ok(open_problem());
    run_to_end();
}

/* On one grid, dt alone is refined; otherwise the grid with it, dt/h^2 being constant. */
static double moving_sides_order(const struct method *m, bool one_grid)
{
    double e[GRIDS];
    for (int g = 0; g < GRIDS; ++g) {
        int cells = one_grid ? 8 : 8 << g;
        double dt = 0x1p-9 / (one_grid ? 1 << g : 1 << 2 * g);
        run_moving_sides("rk4", cells, dt / 32);
        keep_finest("T");
        run_moving_sides(m->name, cells, dt);
        e[g] = difference("T");
    }
    double last = order(e[1], e[2]) / (one_grid ? 1 : 2);
    if (speaks())
        printf("| %s | %s | %.3e | %.3e | %.3e | %.2f |\n", m->name, one_grid ? "dt" : "dt and h^2", e[0], e[1], e[2],
               last);
    return last;
}

START_TEST(sides_that_move_in_time_leave_order_two_when_dt_follows_the_grid)
{
    if (speaks()) printf("| method | refined | error at dt | | | order in dt |\n|---|---|---|---|---|---|\n");
    for (int m = 0; m < METHODS; ++m) {
        double fixed = moving_sides_order(&methods[m], true), reduced = moving_sides_order(&methods[m], false);
        ck_assert_msg(fabs(fixed - methods[m].order) < 0.1, "%s: order %.3f on one grid, expected %d", methods[m].name,
                      fixed, methods[m].order);
        double expected = methods[m].order < 2 ? methods[m].order : 2;
        ck_assert_msg(fabs(reduced - expected) < 0.1, "%s: order %.3f, expected %.0f", methods[m].name, reduced,
                      expected);
    }
    close_problem();
}
END_TEST

/* ---- conservation ---- */

/* Relative loss of the standing wave's energy in one period of so many steps. */
static double energy_loss(const char *method_setting, int steps)
{
    const double period = sqrt(2);
    char end[64];
    snprintf(end, sizeof end, "time.end=%.17g", period);
    const char *set[SETTINGS] = {"grid.cells=[32,28]", end, dt_setting(period / steps), method_setting};
    open_deck("wave", set);
    ck_ok(trl_simulation_initialise(sim));
    ck_ok(trl_simulation_observe(sim));
    double first = trl_simulation_series(sim)[0];
    ck_assert_double_eq_tol(first, 0.125, 1e-15);
    while (!trl_simulation_done(sim)) ck_ok(trl_simulation_step(sim));
    ck_ok(trl_simulation_observe(sim));
    ck_assert_int_eq(trl_simulation_step_number(sim), steps);
    double last = trl_simulation_series(sim)[0];
    close_problem();
    return (first - last) / first;
}

START_TEST(the_wave_loses_energy_with_order_five_by_rk4_and_three_by_ssprk3)
{
    static const struct {
        const char *name, *setting;
        int order;
    } cases[] = {{"rk4", "time.method=rk4", 5}, {"ssprk3", "time.method=ssprk3", 3}};
    if (speaks()) printf("| method | 100 steps per period | 200 | 400 | order | order |\n|---|---|---|---|---|---|\n");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        double e[GRIDS];
        for (int g = 0; g < GRIDS; ++g) e[g] = energy_loss(cases[i].setting, 100 << g);
        double first = order(e[0], e[1]), second = order(e[1], e[2]);
        if (speaks())
            printf("| %s | %.3e | %.3e | %.3e | %.2f | %.2f |\n", cases[i].name, e[0], e[1], e[2], first, second);
        ck_assert_msg(fabs(first - cases[i].order) < 0.1 && fabs(second - cases[i].order) < 0.1,
                      "%s: orders %.3f, %.3f", cases[i].name, first, second);
        if (cases[i].order == 5) ck_assert_double_lt(e[0], 1e-6);
    }
}
END_TEST

/* The first value of the series stays what it was, relative to scale, through 1,000 steps. */
static void check_conserved(const char *what, double scale)
{
    double largest = 0;
    ck_ok(trl_simulation_initialise(sim));
    ck_ok(trl_simulation_observe(sim));
    double first = trl_simulation_series(sim)[0];
    for (int step = 1; step <= 1000; ++step) {
        ck_ok(trl_simulation_step(sim));
        if (step % 100) continue;
        ck_ok(trl_simulation_observe(sim));
        largest = fmax(largest, fabs(trl_simulation_series(sim)[0] - first) / scale);
    }
    if (speaks()) printf("| %s | %.17g | %.1e |\n", what, first, largest);
    ck_assert_msg(largest < 1e-13, "%s: the integral changed by %.2e of %g", what, largest, scale);
    close_problem();
}

START_TEST(closed_domains_keep_their_integrals)
{
    static const char *const advection[SETTINGS] = {"grid.cells=[24,20]", "time.dt=5e-3", "time.end=100"};
    static const char *const limited[SETTINGS] = {
        "grid.cells=[24,20]", "time.dt=5e-3", "time.end=100", "time.method=ssprk3",
        "expressions.flux=\"advective_flux(phi, [wind_x, wind_y], superbee)\""};
    static const char *const mixture[SETTINGS] = {"grid.cells=[24,20]", "grid.length=[24,20]"};
    if (speaks()) printf("| problem | integral | largest relative change in 1,000 steps |\n|---|---|---|\n");
    open_deck("advection", advection);
    check_conserved("advection, central, periodic", 0.04);
    open_deck("advection", limited);
    check_conserved("advection, superbee, periodic", 0.04);
    open_deck("cahn_hilliard", mixture);
    check_conserved("cahn_hilliard, periodic", 24 * 20);
    new_deck();
    say("grid: {cells: [20, 16]}\nexpressions: {k: \"1 + x*y\", flow: [\"sin(pi*x)*cos(pi*y)\", "
        "\"-cos(pi*x)*sin(pi*y)\"]}\nequations:\n  T:\n"
        "    initial: \"exp(-20*(x - 0.3)^2 - 10*(y - 0.4)^2)\"\n    ddt: \"div(k*grad(T) - advective_flux(T, flow, "
        "vanleer))\"\n"
        "    boundary: {x-: {neumann: 0}, x+: {neumann: 0}, y-: {neumann: 0}, y+: {neumann: 0}}\n"
        "time: {method: ssprk3, dt: 2e-4, steps: 1000}\noutput: {series: {every: {steps: 1}, values: {heat: "
        "\"integral(T)\"}}}\n");
    ck_ok(open_problem());
    check_conserved("stirred heat in an insulated box", 0.2);
}
END_TEST

static void add_tests(TCase *tc)
{
    test_compile_quickly();
    tcase_add_test(tc, decks_converge_with_their_order_in_space);
    tcase_add_test(tc, fourth_order_differences_have_order_two_where_a_side_extrapolates);
    tcase_add_test(tc, methods_have_their_orders_in_time);
    tcase_add_test(tc, sides_that_move_in_time_leave_order_two_when_dt_follows_the_grid);
    tcase_add_test(tc, the_wave_loses_energy_with_order_five_by_rk4_and_three_by_ssprk3);
    tcase_add_test(tc, closed_domains_keep_their_integrals);
}

TRL_TEST_MAIN("order", add_tests)
