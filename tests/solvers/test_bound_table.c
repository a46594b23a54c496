/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The stable step that Trellis finds, against the one that is measured: the largest dt at which noise does not grow.
 * Prints a table of docs/verification.md. */
// ctest: sanitize=none timeout=300
#include "../expressions/problem_fixture.h"

#include <limit_impl.h>

enum {
#ifdef TRL_SMALL_SIZES
    STEPS = 150,
    HALVINGS = 4,
    SLACK = 25 /* %; sanitizers are slow; the table is that of the release */
#else
    STEPS = 500,
    HALVINGS = 9,
    SLACK = 4
#endif
};

typedef struct known_system {
    const char *name, *method, *grid;
    const char *equations[6]; /* name, ddt, ... */
    double least;             /* of bound over measured */
} known_system;

#define LINE "cells: [40], length: [8], periodic: [true]"
#define PLANE "cells: [12, 10], length: [3, 2], periodic: [true, true]"

static const known_system systems[] = {
    {"diffusion, 2-D", "euler", PLANE, {"u", "0.5*laplacian(u)"}, 0.99},
    {"diffusion and exchange of two",
     "rk4",
     LINE,
     {"u", "0.5*laplacian(u) + 40*(v - u)", "v", "0.1*laplacian(v) + 60*(u - v)"},
     0.7},
    {"upwind advection, written out", "euler", LINE, {"u", "-2*(u - back(u))/0.2"}, 0.9},
    {"central advection, written out", "rk4", LINE, {"u", "-1.5*cddx(u)"}, 0.99},
    {"dispersion, cddx(d2dx(u))", "rk4", LINE, {"u", "-cddx(d2dx(u))"}, 0.6},
    {"biharmonic, 2-D", "ssprk2", PLANE, {"u", "-laplacian(laplacian(u))"}, 0.99},
    {"Kuramoto-Sivashinsky", "ssprk3", LINE, {"u", "-laplacian(u) - laplacian(laplacian(u)) - u*cddx(u)"}, 0.6},
    {"wave, 2-D", "ssprk3", PLANE, {"u", "v", "v", "4*laplacian(u)"}, 0.99},
    {"wave on staggered points, 2-D", "rk4", PLANE, {"p", "-3*div([q, r])", "q", "-ddx(p)", "r", "-ddy(p)"}, 0.99},
    {"beam", "rk4", LINE, {"u", "v", "v", "-laplacian(laplacian(u))"}, 0.99},
    {"Schroedinger, two equations", "ssprk3", LINE, {"u", "-0.5*laplacian(v)", "v", "0.5*laplacian(u)"}, 0.99},
    {"Ginzburg-Landau, linear",
     "euler",
     LINE,
     {"u", "laplacian(u) - 3*laplacian(v)", "v", "laplacian(v) + 3*laplacian(u)"},
     0.99},
    {"kinetics A - B - C", "ssprk2", LINE, {"a", "-30*a + 5*b", "b", "30*a - 25*b + 2*c", "c", "20*b - 2*c"}, 0.6},
    {"rotation of two, a point", "rk4", LINE, {"u", "-7*v", "v", "7*u"}, 0.99},
};

static void open_system(const known_system *s, double dt)
{
    char set[64];
    new_deck();
    say("grid: {%s}\nstencils: {back: {to: cell, points: [[[-1, 0], 1]]}}\nequations:\n", s->grid);
    for (int i = 0; i < 6 && s->equations[i]; i += 2) {
        const char *place = strcmp(s->equations[i], "q") == 0   ? "xface"
                            : strcmp(s->equations[i], "r") == 0 ? "yface"
                                                                : "cell";
        say("  %s: {location: %s, initial: \"random(%d) - 0.5\", ddt: \"%s\"}\n", s->equations[i], place, i + 1,
            s->equations[i + 1]);
    }
    say("time: {method: %s, dt: 1, steps: %d}\nrun: {nan_check: false}\n", s->method, STEPS);
    snprintf(set, sizeof set, "time.dt=%.17g", dt);
    ck_ok(open_set(set));
    ck_ok(trl_simulation_initialise(sim));
    trl_context_clear_diagnostics(test_ctx);
}

static double amplitude(void)
{
    double largest = 0;
    for (int f = 0; f < trl_simulation_fields(sim); ++f) {
        trl_field_stats stats;
        ck_ok(trl_simulation_field_stats(sim, f, &stats));
        if (!isfinite(stats.max) || !isfinite(stats.min)) return INFINITY;
        largest = fmax(largest, fmax(fabs(stats.max), fabs(stats.min)));
    }
    return largest;
}

/* Noise that becomes ten times what it is after some steps, when waves have exchanged their energy, is growth. */
static bool grows(const known_system *s, double dt)
{
    open_system(s, dt);
    for (int n = 0; n < STEPS / 5; ++n) ck_ok(trl_simulation_step(sim));
    ck_ok(trl_simulation_observe(sim));
    const double early = amplitude();
    for (int n = STEPS / 5; n < STEPS; ++n) ck_ok(trl_simulation_step(sim));
    ck_ok(trl_simulation_observe(sim));
    return !(amplitude() <= 10 * early) || early > 1e6;
}

static double measure(const known_system *s, double bound)
{
    double low = bound / 2, high = 4 * bound;
    ck_assert_msg(!grows(s, low), "%s grows at half of the bound", s->name);
    ck_assert_msg(grows(s, high), "%s does not grow at four times the bound", s->name);
    for (int i = 0; i < HALVINGS; ++i) {
        const double middle = (low + high) / 2;
        if (grows(s, middle))
            high = middle;
        else
            low = middle;
    }
    return high;
}

START_TEST(no_step_below_the_bound_grows_and_the_bound_is_near)
{
    printf("| system | method | stable dt found | measured | ratio |\n|---|---|---|---|---|\n");
    for (size_t i = 0; i < sizeof systems / sizeof *systems; ++i) {
        const known_system *s = &systems[i];
        open_system(s, 1);
        const trli_rate rate = trli_bound_rate(sim, false);
        ck_assert_msg(!rate.unstable && rate.rate > 0, "%s has no bound", s->name);
        const double bound = 1 / rate.rate, measured = measure(s, bound);
        printf("| %s | %s | %.4g | %.4g | %.2f |\n", s->name, s->method, bound, measured, bound / measured);
        /* The last halving, and growth too slow to be seen. */
        ck_assert_msg(bound <= (1 + SLACK / 100.0) * measured, "%s: the bound %g is above %g", s->name, bound,
                      measured);
        ck_assert_msg(bound >= (s->least - SLACK / 100.0) * measured, "%s: the bound %g is far below %g", s->name,
                      bound, measured);
    }
    close_problem();
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_unchecked_fixture(tc, NULL, close_problem);
    tcase_add_test(tc, no_step_below_the_bound_grows_and_the_bound_is_near);
}

TRL_TEST_MAIN("bound_table", add_tests)
