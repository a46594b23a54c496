/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Multistep methods of variable order: errors follow the tolerance, conditions hold, restarts have the same bits. */
// ctest: np=1,2 timeout=120 sanitize=1
#include "cvode_impl.h"
#include "run_fixture.h"

#define FREE "boundary: {x-: {neumann: 0}, x+: {neumann: 0}, y-: {neumann: 0}, y+: {neumann: 0}}"

/* y'' = -y. */
#define OSCILLATOR                                                                                           \
    "grid: {cells: [2], periodic: [true]}\nequations: {u: {initial: 1, ddt: v}, v: {initial: 0, ddt: -u}}\n" \
    "time: {method: {name: %s, tolerance: {relative: %g, absolute: %g}}, end: 10}\n"

START_TEST(errors_follow_the_tolerance)
{
    static const struct {
        const char *name;
        int order; /* reached at least */
    } methods[] = {{"bdf", 4}, {"adams", 5}};
    for (int m = 0; m < 2; ++m) {
        double before = 0;
        for (int digits = 4; digits <= 10; digits += 3) {
            const double tolerance = pow(10, -digits);
            int order = 0;
            open_text(OSCILLATOR, methods[m].name, tolerance, tolerance);
            while (!trl_simulation_done(sim)) {
                ck_ok(trl_simulation_step(sim));
                order = trl_simulation_order(sim) > order ? trl_simulation_order(sim) : order;
            }
            const double error = fabs(value_of("u") - cos(10)) + fabs(value_of("v") + sin(10));
            ck_assert_double_eq(trl_simulation_time(sim), 10);
            ck_assert_msg(error < 500 * tolerance, "%s at %g: error %g", methods[m].name, tolerance, error);
            ck_assert_msg(before == 0 || before / error > 30, "%s at %g: error %g after %g", methods[m].name, tolerance,
                          error, before);
            if (digits == 10) ck_assert_int_ge(order, methods[m].order);
            before = error;
        }
    }
    close_problem();
}
END_TEST

/* Heat with a source, a mask, and points that conditions set; d = t on its side, whatever the steps are. */
#define CONDITIONS                                                                                                 \
    "grid: {cells: [12, 9]}\nequations:\n  c:\n    initial: \"exp(-40*((x - 0.4)^2 + (y - 0.5)^2))\"\n"            \
    "    ddt: {implicit: \"laplacian(c)\", explicit: \"20*c^2*(1 - c)\"}\n    boundary: {x-: {dirichlet: "         \
    "\"sin(t)\"}, x+: {neumann: 0}, y-: {neumann: 0}, y+: {neumann: 0}}\n    mask: \"(x - 0.7)^2 + (y - 0.3)^2 > " \
    "0.01\"\n  d: {location: xface, initial: 0, ddt: {implicit: \"laplacian(d) - d\", explicit: "                  \
    "\"at(c, xface)\"}, boundary: {x-: {dirichlet: t}, x+: {neumann: 0}, y-: {neumann: 0}, y+: {neumann: 0}}}\n"

static double middle_of(const char *name)
{
    trl_gidx n[3];
    const double *values = values_of(name, n);
    return values[4 * n[0] + n[0] / 2];
}

START_TEST(conditions_and_masks_hold_at_and_between_steps)
{
    open_text(CONDITIONS "time: {method: {name: ark4, tolerance: {relative: 1e-8, absolute: 1e-10}}, end: 0.3}\n");
    run_to_end();
    const double c = middle_of("c"), d = middle_of("d");
    uint64_t hash[2];
    for (int looks = 0; looks < 2; ++looks) {
        int steps = 0;
        open_text(CONDITIONS "time: {method: {name: bdf, tolerance: {relative: 1e-6, absolute: 1e-8}}, end: 0.3}\n%s",
                  looks ? "output: {every: {time: 0.1}}\n" : "");
        while (!trl_simulation_done(sim)) {
            ck_ok(trl_simulation_step(sim));
            ++steps;
            ck_assert_double_eq(value_of("d"), trl_simulation_time(sim));
            if (!looks) continue;
            const double at = trl_simulation_time(sim) - trl_simulation_dt(sim) / 3;
            ck_ok(trl_simulation_interpolate(sim, at));
            ck_assert_double_eq(value_of("d"), at);
            ck_ok(trl_simulation_return(sim));
        }
        ck_assert_double_eq_tol(middle_of("c"), c, 2e-5);
        ck_assert_double_eq_tol(middle_of("d"), d, 2e-5);
        ck_assert_int_lt(steps, 150);
        hash[looks] = hash_of("c") + hash_of("d");
    }
    ck_assert(hash[0] == hash[1]); /* steps are the same, whether anybody looks between them or not */
    close_problem();
}
END_TEST

START_TEST(values_between_steps_are_as_good_as_those_at_steps)
{
    double largest = 0;
    open_text(OSCILLATOR "output: {every: {time: 1}}\n", "adams", 1e-8, 1e-8);
    while (!trl_simulation_done(sim)) {
        ck_ok(trl_simulation_step(sim));
        const double end = trl_simulation_time(sim);
        for (int i = 1; i < 4; ++i) {
            const double at = end - trl_simulation_dt(sim) * i / 4;
            ck_ok(trl_simulation_interpolate(sim, at));
            largest = fmax(largest, fabs(value_of("u") - cos(at)));
        }
        ck_ok(trl_simulation_return(sim));
    }
    ck_assert_double_lt(largest, 2e-6);
    close_problem();
}
END_TEST

/* The state after 12 steps, and what a restart needs. */
typedef struct kept {
    double time, dt, *values[2];
    trl_gidx n[2][3];
} kept;
static const char *const names[] = {"c", "d"};

static void keep(kept *k)
{
    for (int i = 0; i < 2; ++i) {
        const double *values = values_of(names[i], k->n[i]);
        const size_t n = (size_t)(k->n[i][0] * k->n[i][1] * k->n[i][2]);
        k->values[i] = malloc(n * sizeof(double));
        ck_assert_ptr_nonnull(k->values[i]);
        memcpy(k->values[i], values, n * sizeof(double));
    }
    k->time = trl_simulation_time(sim);
    k->dt = trl_simulation_dt(sim);
}

static void put_back(const kept *k)
{
    const trl_layout *layout = trl_simulation_layout(sim);
    for (int i = 0; i < 2; ++i)
        for (int p = 0; p < layout->nlocal; ++p) {
            const trl_patch *patch = &layout->patch[p];
            trl_array a = trl_simulation_array(sim, field_index(names[i]), p);
            for (trl_lidx y = a.owned.lo[1]; y < a.owned.hi[1]; ++y)
                for (trl_lidx x = a.owned.lo[0]; x < a.owned.hi[0]; ++x)
                    ((double *)a.at)[trl_array_offset(&a, x, y, 0)] =
                        k->values[i][(patch->first[1] + y) * k->n[i][0] + patch->first[0] + x];
        }
    ck_ok(trl_simulation_resume(sim, 12, k->time, k->dt));
}

START_TEST(a_restart_has_the_bits_of_a_run_that_begins_anew_there)
{
    static const char *const methods[] = {"bdf", "adams"};
    for (int m = 0; m < 2; ++m) {
        kept k;
        uint64_t c[2], d[2];
        trl_gidx steps[2];
        for (int again = 0; again < 2; ++again) {
            open_text(CONDITIONS "time: {method: {name: %s, tolerance: {relative: 1e-4, absolute: 1e-4}}, end: 0.02}\n",
                      methods[m]);
            for (int step = 0; step < 12 && !again; ++step) ck_ok(trl_simulation_step(sim));
            if (again)
                put_back(&k);
            else
                keep(&k);
            if (!again) trl_simulation_begin_anew(sim);
            ck_ok(trl_simulation_step(sim));
            ck_assert_int_eq(trl_simulation_order(sim), 1);
            run_to_end();
            c[again] = hash_of("c");
            d[again] = hash_of("d");
            steps[again] = trl_simulation_step_number(sim);
        }
        ck_assert(c[0] == c[1] && d[0] == d[1] && steps[0] == steps[1]);
        for (int i = 0; i < 2; ++i) free(k.values[i]);
    }
    close_problem();
}
END_TEST

/* exp(-2 pi^2 t) of a mode of a grid, whose rate is that of the grid; a step is large beside the explicit limit. */
START_TEST(diffusion_is_preconditioned_by_multigrid)
{
    static const char *const choices[] = {"auto", "multigrid", "jacobi"};
    double each[3];
    for (int i = 0; i < 3; ++i) {
        open_text("grid: {cells: [32, 32]}\nsolvers: {s: {preconditioner: %s}}\nequations: {T: {solver: s, initial: "
                  "\"x*y*(1 - y)\", ddt: \"laplacian(T)\", boundary: {x-: {dirichlet: 0}, x+: {dirichlet: 0}, y-: "
                  "{dirichlet: 0}, y+: {dirichlet: 0}}}}\n"
                  "time: {method: {name: bdf, tolerance: {relative: 1e-4, absolute: 1e-6}}, end: 0.5}\n",
                  choices[i]);
        run_to_end();
        const trl_solve_stats *s = trl_simulation_solver(sim, 0);
        each[i] = (double)s->iterations / (double)s->solves;
        if (i > 0) ck_assert_str_eq(s->preconditioner, choices[i]); /* by auto that of the last dt */
    }
    ck_assert_msg(each[1] < 3 && each[0] < 3 && each[2] > 2 * each[1], "%g %g %g", each[0], each[1], each[2]);
    close_problem();
}
END_TEST

/* What is left of linear systems is small beside the error: by cycles where a diffusivity depends on u, by blocks of
 * unknowns with kinetics. Either takes several times more steps where the preconditioner stands on the left. */
START_TEST(errors_of_linear_systems_do_not_choose_steps)
{
    static const char *const decks[] = {
        "grid: {cells: [300]}\nsolvers: {s: {preconditioner: auto}}\nequations:\n"
        "  u: {solver: s, initial: x, ddt: \"ddx(at(1 + u^2, xface)*ddx(u))\", boundary: {x-: {dirichlet: 0}, x+: "
        "{dirichlet: 0}}}\ntime: {end: 0.2, ",
        "grid: {cells: [16, 16]}\nsolvers: {s: {preconditioner: jacobi}}\nequations:\n"
        "  u: {solver: s, initial: 1, ddt: \"laplacian(u) - 0.04*u + 1e4*v*w\", " FREE "}\n"
        "  v: {solver: s, initial: 0, ddt: \"0.04*u - 1e4*v*w - 3e7*v^2\", " FREE "}\n"
        "  w: {solver: s, initial: \"0.1*x\", ddt: \"0.3*laplacian(w) + 3e7*v^2\", " FREE "}\ntime: {end: 5, "};
    for (size_t k = 0; k < sizeof decks / sizeof *decks; ++k) {
        open_text("%smethod: {name: bdf, tolerance: 1e-5}}\n", decks[k]);
        run_to_end();
        ck_assert_msg(trl_simulation_step_number(sim) < 300, "%lld steps", (long long)trl_simulation_step_number(sim));
    }
    close_problem();
}
END_TEST

/* Robertson (1966), as in test_implicit. */
START_TEST(robertsons_kinetics_are_solved_by_either_krylov_method)
{
    static const char *const methods[] = {"gmres", "bicgstab"};
    for (int m = 0; m < 2; ++m) {
        open_text("grid: {cells: [2], periodic: [true]}\nsolvers: {s: {method: %s}}\nequations:\n"
                  "  y1: {solver: s, initial: 1, ddt: \"-0.04*y1 + 1e4*y2*y3\"}\n"
                  "  y2: {solver: s, initial: 0, ddt: \"0.04*y1 - 1e4*y2*y3 - 3e7*y2^2\"}\n"
                  "  y3: {solver: s, initial: 0, ddt: \"3e7*y2^2\"}\n"
                  "time: {method: {name: bdf, tolerance: {relative: 1e-6, absolute: 1e-12}}, end: 40}\n",
                  methods[m]);
        run_to_end();
        ck_assert_double_eq_tol(value_of("y1"), 7.158270688e-1, 1e-6);
        ck_assert_double_eq_tol(value_of("y2"), 9.185534765e-6, 1e-10);
        ck_assert_int_lt(trl_simulation_step_number(sim), 300);
        ck_assert_int_ge(trl_simulation_order(sim), 3);
    }
    close_problem();
}
END_TEST

/* u = sin t, w = cos t through what is solved for: p = w, and q + q^3 = u + u^3; and a mode of a periodic grid of
 * spacing 1/8, on which a Laplacian is multiplication with l: with r = c/(l - 1), c = exp(-l t/(l - 1)). */
#define JOINED                                                                                                   \
    "grid: {cells: [8], periodic: [true]}\n"                                                                     \
    "solvers: {s: {method: cg, preconditioner: none, tolerance: 0.01}}\nequations:\n  u: {initial: 0, ddt: p}\n" \
    "  w: {initial: 1, ddt: \"-q\"}\n  c: {initial: \"cos(2*pi*x)\", ddt: \"-laplacian(r)\"}\n  r: {solver: s, " \
    "solve: "                                                                                                    \
    "\"laplacian(r) - r = c*(1 + 0*x)\"}\n  p: {solver: s, solve: \"p = w\"}\n"                                  \
    "  q: {solve: \"q + q^3 = u + u^3\"}\n"                                                                      \
    "time: {method: {name: %s, tolerance: {relative: %g, absolute: %g}}, end: 5}\n"

START_TEST(errors_follow_the_tolerance_through_what_is_solved_for)
{
    static const char *const methods[] = {"bdf", "adams"};
    for (int m = 0; m < 2; ++m) {
        double before = 0;
        for (int digits = 4; digits <= 10; digits += 3) {
            const double tolerance = pow(10, -digits), l = 128 * (cos(acos(-1) / 4) - 1);
            open_text(JOINED, methods[m], tolerance, tolerance);
            run_to_end();
            const double mode = cos(acos(-1) / 8) * exp(-5 * l / (l - 1)),
                         error = fabs(value_of("u") - sin(5)) + fabs(value_of("w") - cos(5)) +
                                 fabs(value_of("q") - sin(5)) + fabs(value_of("p") - cos(5)) +
                                 fabs(value_of("c") - mode) + fabs(value_of("r") - mode / (l - 1));
            ck_assert_msg(error < 1000 * tolerance, "%s at %g: error %g", methods[m], tolerance, error);
            ck_assert_msg(before == 0 || before / error > 30, "%s at %g: error %g after %g", methods[m], tolerance,
                          error, before);
            before = error;
        }
    }
    close_problem();
}
END_TEST

/* The stiff term, of fourth order, is in the equations that are solved alone: explicit steps would be 1e-5. */
START_TEST(products_go_through_what_is_solved_for)
{
    static const char *const ways[] = {"mu: {solve: \"mu = c^3 - c - 1e-3*laplacian(c)\"}",
                                       "mu: {solve: \"mu + 0.1*mu^3 = c^3 - c - 1e-3*nu\"}\n  nu: {solve: \"nu = "
                                       "laplacian(c)\"}"};
    for (int w = 0; w < 2; ++w) {
        open_text("grid: {cells: [32, 24], periodic: [true, true]}\nequations:\n  c: {initial: "
                  "\"0.2*sin(2*pi*x)*cos(2*pi*y)\", ddt: \"laplacian(mu)\"}\n  %s\n"
                  "time: {method: {name: bdf, tolerance: {relative: 1e-4, absolute: 1e-4}}, end: 0.2}\n",
                  ways[w]);
        run_to_end();
        const trl_solve_stats *s = trl_simulation_solver(sim, 1 + w);
        const int64_t steps = trl_simulation_step_number(sim);
        ck_assert_str_eq(s->unknowns, "c");
        ck_assert_msg(steps < 120 && s->solves < 2 * steps, "%lld steps, %lld of Newton's method", (long long)steps,
                      (long long)s->solves);
    }
    close_problem();
}
END_TEST

/* p^2 = 1 - t has no solution beyond t = 1. */
START_TEST(steps_shrink_where_nothing_solves_and_the_error_names_it)
{
    open_text(
        "grid: {cells: [4]}\nequations: {c: {initial: 1, ddt: \"p\", boundary: {}}, p: {initial: 1, solve: \"p^2 = "
        "1 - t\", boundary: {}}}\ntime: {method: {name: bdf, dt: {min: 1e-6}}, end: 2}\n");
    trl_err err = TRL_OK;
    while (err == TRL_OK && !trl_simulation_done(sim)) err = trl_simulation_step(sim);
    ck_fails(err, TRL_ERR_NUMERICS, "'p'");
    ck_assert_double_eq_tol(trl_simulation_time(sim), 1, 1e-3);
    close_problem();
}
END_TEST

#define BLOW_UP "grid: {cells: [4], length: [1]}\nequations: {c: {initial: 1, ddt: \"c^2\", boundary: {}}}\n"

START_TEST(what_does_not_suit_names_place_and_remedy)
{
    new_deck();
    say(BLOW_UP "time: {method: bdf, dt: 0.1, steps: 3}\n");
    ck_fails(open_problem(), TRL_ERR_INPUT,
             "the dt of bdf follows from its error: remove 'time.dt', and give time.method a 'tolerance'");
    new_deck();
    say("grid: {cells: [4]}\nequations: {c: {initial: 1, ddt: \"dt - old(c)\", boundary: {}}}\n"
        "time: {method: adams, end: 1}\n");
    ck_fails(open_problem(), TRL_ERR_INPUT, "adams goes back to rates of several steps");
    new_deck();
    say("grid: {cells: [4]}\nequations: {c: {initial: 1, ddt: \"p\", boundary: {}}, p: {initial: 0, solve: \"p = "
        "c*dt\", "
        "boundary: {}}}\ntime: {method: bdf, end: 1}\n");
    ck_fails(open_problem(), TRL_ERR_INPUT, "bdf goes back to rates of several steps");
    new_deck();
    say("grid: {cells: [4]}\nequations: {p: {initial: 0, solve: \"p = 1\", boundary: {}}}\ntime: {method: bdf, end: "
        "1}\n");
    ck_fails(open_problem(), TRL_ERR_INPUT, "bdf has nothing to advance, as no equation has a 'ddt'");
    new_deck();
    say("grid: {cells: [4, 4], periodic: [true, true]}\nincompressible: {velocity: [u, v], pressure: p}\nequations: "
        "{u: "
        "{location: xface, initial: 0, ddt: \"-u\"}, v: {location: yface, initial: 0, ddt: \"-v\"}}\n"
        "time: {method: adams, end: 1}\n");
    ck_fails(open_problem(), TRL_ERR_INPUT, "adams does not go with an incompressible flow, whose velocities are");
    new_deck();
    say("grid: {cells: [4]}\nsolvers: {s: {method: cg}}\nequations: {c: {solver: s, initial: 1, ddt: \"-c\", boundary: "
        "{}}}\ntime: {method: bdf, end: 1}\n");
    ck_fails(open_problem(), TRL_ERR_INPUT, "the systems of bdf are solved by gmres or bicgstab");
    open_text(BLOW_UP "time: {method: {name: bdf, dt: {min: 1e-6}}, end: 2}\n");
    trl_err err = TRL_OK;
    while (err == TRL_OK && !trl_simulation_done(sim)) err = trl_simulation_step(sim);
    ck_fails(err, TRL_ERR_NUMERICS, "bdf does not get beyond step ");
    ck_assert_double_eq_tol(trl_simulation_time(sim), 1, 1e-3);
    close_problem();
}
END_TEST

START_TEST(a_build_without_sundials_says_so)
{
    new_deck();
    say(BLOW_UP "time: {method: bdf, end: 0.5}\n");
    ck_fails(open_problem(), TRL_ERR_INPUT, "this build has no SUNDIALS, whose CVODE bdf is: install libsundials-dev");
    close_problem();
}
END_TEST

static void add_tests(TCase *tc)
{
    int ranks;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (!trli_cvode_library()) {
        tcase_add_test(tc, a_build_without_sundials_says_so);
        return;
    }
    tcase_add_test(tc, a_restart_has_the_bits_of_a_run_that_begins_anew_there);
    tcase_add_test(tc, what_does_not_suit_names_place_and_remedy);
    if (ranks > 1) return;
    tcase_add_test(tc, conditions_and_masks_hold_at_and_between_steps);
    tcase_add_test(tc, products_go_through_what_is_solved_for);
    tcase_add_test(tc, steps_shrink_where_nothing_solves_and_the_error_names_it);
    if (TEST_SANITIZED && !test_long()) return;
    tcase_add_test(tc, errors_follow_the_tolerance);
    tcase_add_test(tc, errors_follow_the_tolerance_through_what_is_solved_for);
    tcase_add_test(tc, values_between_steps_are_as_good_as_those_at_steps);
    tcase_add_test(tc, diffusion_is_preconditioned_by_multigrid);
    tcase_add_test(tc, errors_of_linear_systems_do_not_choose_steps);
    tcase_add_test(tc, robertsons_kinetics_are_solved_by_either_krylov_method);
}

TRL_TEST_MAIN("multistep", add_tests)
