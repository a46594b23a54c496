/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The same problem compiled and run in every way gives the same bits; what is held, masked and wrapped means what
 * the deck says. */
// ctest: np=1,2,3,4 short=1,3 timeout=300 sanitize=3
#include "../expressions/problem_fixture.h"

/* Cells, faces and nodes, conditions of every kind, a mask, reductions, random numbers, old values, limited fluxes. */
static void say_everything(void)
{
    new_deck();
    say("grid: {cells: [12, 13], length: [1, 1.3]}\nparameters: {k: 0.02}\nexpressions:\n"
        "  q: \"-k*grad(T)\"\n  v: [\"at(sin(3*y), xface)\", \"at(cos(2*x), yface)\"]\n"
        "  noise: {formula: \"random(3) + 0*t\", location: cell}\n"
        "  held: {formula: \"T*T + t\", evaluate: step}\n"
        "  p: {formula: \"T + at(N, cell)\", boundary: {x-: {neumann: 0}, x+: {dirichlet: 1}, y-: {outflow: true}, y+: "
        "{neumann: \"x\"}}}\n"
        "  wide: \"laplacian(laplacian(p) - T)\"\n"
        "equations:\n  T:\n    initial: \"exp(-8*(x-0.5)^2 - 8*(y-0.6)^2) + 0.1*random(1)\"\n"
        "    ddt: \"-div(q) - div(advective_flux(T, v, superbee)) + 0.1*held + 1e-5*wide + 0.01*norm(T) - "
        "0.01*old(T)\"\n"
        "    boundary: {x-: {dirichlet: \"sin(t + y)\"}, x+: [{where: \"y > 0.5 + t\", neumann: \"t\"}, {robin: {a: 1, "
        "b: k, c: \"T\"}}], "
        "y-: {outflow: true}, y+: {dirichlet: \"at(N, cell)\"}}\n"
        "    mask: \"(x-0.7)^2 + (y-0.3)^2 > 0.02\"\n"
        "  N:\n    location: xface\n    initial: \"x + y\"\n    ddt: \"k*laplacian(N) + at(noise, xface) + "
        "0.1*probe(T, [0.33, 0.9]) - 0.1*integral(T)\"\n"
        "    boundary: {x-: {dirichlet: \"t\"}, x+: {neumann: 1}, y-: {neumann: 0}, y+: {robin: {a: 1, b: 1, c: 2}}}\n"
        "time: {dt: 1e-3, steps: 3, method: %s}\n"
        "output: {fields: [T, N, q, p, wide, held], series: {every: {steps: 1}, values: {a: \"integral(T*T)\", b: "
        "\"domain_max(N)\", c: \"norm(wide)\"}}}\n"
        "run: {fusion: %s, scheduler: %s}\n",
        "rk4", "full", "priority");
}

typedef struct outcome {
    uint64_t hash[8];
    double series[3];
} outcome;

static void run_everything(int nsets, const char *const *set, outcome *o)
{
    memset(o, 0, sizeof *o);
    say_everything();
    ck_ok(open_problem_with(nsets, set));
    ck_ok(run_steps(3));
    ck_assert_int_eq(trl_simulation_fields(sim), 7);
    for (int f = 0; f < 7; ++f) o->hash[f] = hash_of(trl_simulation_field(sim, f)->name);
    memcpy(o->series, trl_simulation_series(sim), sizeof o->series);
    close_problem();
}

START_TEST(fusion_patches_scheduler_and_threads_do_not_change_a_bit)
{
    static const char *const variants[][2] = {{"run.fusion=node"},
                                              {"run.fusion=none"},
                                              {"run.balance=1e-6"},
                                              {"run.balance=1e-6", "grid.patches=[4, 3]"},
                                              {"run.balance=1e6"},
                                              {"run.scheduler=serial"},
                                              {"run.passes.sharing=false"},
                                              {"run.passes.slots=false"},
                                              {"run.passes.hoisting=false", "run.compile=always"},
                                              {"run.passes.groups=false", "run.compile=always"},
                                              {"grid.patches=[4, 1]", "run.owners=random:3"},
                                              {"grid.patches=[1, 4]"},
                                              {"grid.patches=[3, 4]", "run.owners=random:1"},
                                              {"grid.patches=[4, 3]", "run.fusion=none"},
                                              {"grid.patches=[2, 3]", "run.fusion=node"},
                                              {"grid.patches=[4, 2]", "run.scheduler=serial"}};
    outcome reference, other;
    run_everything(0, NULL, &reference);
    for (size_t i = 0; i < sizeof variants / sizeof *variants; ++i)
        for (int threads = 1; threads <= 2; ++threads) {
            ck_ok(trl_context_set_threads(test_ctx, threads));
            run_everything(variants[i][1] ? 2 : 1, variants[i], &other);
            for (int f = 0; f < 7; ++f)
                ck_assert_msg(reference.hash[f] == other.hash[f], "field %d has other bits with %s, %d threads", f,
                              variants[i][0], threads);
            ck_assert_int_eq(memcmp(reference.series, other.series, sizeof other.series), 0);
        }
    ck_ok(trl_context_set_threads(test_ctx, 1));
}
END_TEST

/* Found on one rank with every patch and fusion alike; a change of these bits is a change of numerics. */
START_TEST(the_number_of_ranks_does_not_change_a_bit)
{
    outcome here, alone;
    run_everything(0, NULL, &here);
    trl_context *all = test_ctx, *self;
    ck_ok(trl_context_create(MPI_COMM_SELF, NULL, &self));
    test_ctx = self;
    run_everything(0, NULL, &alone);
    test_ctx = all;
    trl_context_destroy(&self);
    ck_assert_int_eq(memcmp(&here, &alone, sizeof here), 0);
}
END_TEST

START_TEST(beyond_a_periodic_axis_an_expression_is_its_value_at_the_wrapped_cell)
{
    static const char *const fusions[] = {"run.fusion=none", "run.fusion=node", "run.fusion=full"};
    trl_gidx n[3];
    for (int level = 0; level < 3; ++level) {
        new_deck();
        say("grid: {cells: [8, 6], length: [8, 6], periodic: [true, false]}\nexpressions:\n  r: {formula: "
            "\"random(5)\", location: cell}\n"
            "  f: {formula: \"x + 100*y\", location: cell}\n  e: \"left(f).x\"\n  g: \"left(r).x\"\n"
            "equations: {T: {initial: 0, ddt: 0}}\ntime: {dt: 1, steps: 1}\noutput: {fields: [r, f, e, g]}\n");
        ck_ok(open_set(fusions[level]));
        ck_ok(run_steps(0));
        const double *r = values_of("r", n), *f = values_of("f", n), *e = values_of("e", n), *g = values_of("g", n);
        ck_assert_int_eq(n[0], 8);
        for (int j = 0; j < 6; ++j)
            for (int i = 0; i < 8; ++i) {
                int p = (i + 7) % 8 + 8 * j;
                ck_assert_double_eq(e[i + 8 * j], f[p]);
                ck_assert_double_eq(g[i + 8 * j], r[p]);
                ck_assert(r[p] >= 0 && r[p] < 1 && (p == 0 || r[p] != r[p - 1]));
            }
    }
    close_problem();
}
END_TEST

/* The ends of T's own points are set on y- and y+, so the filter needs S two points beyond them, not three: nor do the
 * corners. */
START_TEST(conditions_set_no_ghost_that_is_beyond_those_read)
{
    new_deck();
    say("grid: {cells: [13, 13, 7], periodic: [true, false, false]}\n");
    say("expressions: {edge: \"0.5\"}\n");
    say("equations:\n");
    say("  T: {location: zedge, initial: \"x*y\", ddt: \"tophat_filter(at(S, zedge), 3)\",\n");
    say("      boundary: {y-: {dirichlet: 0}, y+: {dirichlet: 1}, z-: {neumann: 0}, z+: {neumann: 0}}}\n");
    say("  S: {location: xface, initial: \"1 + x*y\", ddt: \"0.01*laplacian(S)\",\n");
    say("      boundary: {y-: {neumann: 0}, y+: {dirichlet: 2}, z-: {expression: edge}, z+: {expression: edge}}}\n");
    say("time: {method: euler, dt: 1.0e-3, steps: 2}\n");
    say("run: {fusion: none, compile: never, time_blocking: 1}\n");
    ck_ok(open_problem());
    ck_ok(run_steps(2));
    close_problem();
}
END_TEST

START_TEST(a_masked_cell_keeps_its_initial_value_and_is_left_out_of_norms)
{
    static const char *const methods[] = {"time.method=euler", "time.method=ssprk3", "time.method=rk4"};
    trl_gidx n[3];
    for (int m = 0; m < 3; ++m) {
        new_deck();
        say("grid: {cells: [10], length: [10]}\nequations: {T: {initial: \"x\", ddt: \"if(x > 8, 1/0, 1)\", mask: \"x "
            "< 8\", exact: \"x + t\"}}\n"
            "time: {dt: 0.25, steps: 4}\noutput: {series: {every: {steps: 1}, values: {i: \"integral(T)\", m: "
            "\"domain_max(T)\", n: \"norm(T)\"}}}\n");
        ck_ok(open_set(methods[m]));
        ck_ok(run_steps(4));
        const double *t = values_of("T", n), *series = trl_simulation_series(sim);
        double sum = 0, squares = 0;
        for (int i = 0; i < 10; ++i) {
            double expected = i + 0.5 + (i < 8 ? 1 : 0);
            ck_assert_double_eq_tol(t[i], expected, 1e-14);
            if (i < 8) sum += expected, squares += expected * expected;
        }
        ck_assert_double_eq_tol(series[0], sum, 1e-12);
        ck_assert_double_eq_tol(series[1], 8.5, 1e-14);
        ck_assert_double_eq_tol(series[2], sqrt(squares / 8), 1e-13);
        trl_field_stats stats;
        ck_ok(trl_simulation_field_stats(sim, 0, &stats));
        ck_assert(stats.max < 8.6 && near(stats.sum, sum, 1e-14) && near(stats.l2, sqrt(squares / 8), 1e-14) &&
                  stats.error_linf < 1e-13);
    }
    close_problem();
}
END_TEST

START_TEST(old_and_evaluate_step_hold_the_values_of_the_step_start)
{
    static const struct {
        const char *ddt;
        double growth; /* of T = 1 in one step of ssprk2 with dt = 0.5 from t = 1 */
    } cases[] = {{"T", 1 + 0.5 + 0.125}, {"old(T)", 1.5}, {"held", 1.5},      {"t", 1 + 0.25 * (1 + 1.5)},
                 {"old(t)", 1.5},        {"dt", 1.25},    {"held_time", 1.5}, {"T - old(T) + 1", 1.5 + 0.25 * 0.5}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i)
        for (int level = 0; level < 3; ++level) {
            static const char *const fusions[] = {"run.fusion=none", "run.fusion=node", "run.fusion=full"};
            trl_gidx n[3];
            new_deck();
            say("grid: {cells: [5]}\nexpressions:\n  held: {formula: \"T\", evaluate: step}\n  held_time: {formula: "
                "\"t + 0*x\", evaluate: step}\n"
                "equations: {T: {initial: 1, ddt: \"%s\"}}\ntime: {dt: 0.5, steps: 1, method: ssprk2, start: "
                "1}\noutput: {fields: [T, held, held_time]}\n",
                cases[i].ddt);
            ck_ok(open_set(fusions[level]));
            ck_ok(run_steps(1));
            const double *t = values_of("T", n), *h = values_of("held", n), *time = values_of("held_time", n);
            ck_assert_msg(near(t[3], cases[i].growth, 1e-15), "ddt %s: %.17g", cases[i].ddt, t[3]);
            ck_assert(h[3] == t[3] && near(time[3], 1.5, 1e-15)); /* output: of the fields at the end of the step */
        }
    close_problem();
}
END_TEST

START_TEST(reductions_weigh_points_and_probes_interpolate)
{
    trl_gidx n[3];
    static const struct {
        const char *location;
        int lo, hi; /* points counted half at the ends of x and y */
    } cases[] = {{"cell", 0, 0}, {"xface", 1, 0}, {"yface", 0, 1}, {"node", 1, 1}};
    for (int c = 0; c < 4; ++c) {
        new_deck();
        say("grid: {cells: [4, 5], length: [2, 1]}\nexpressions:\n  f: {formula: \"1 + x*x + 3*y - x*y\", location: "
            "%s}\n"
            "equations: {T: {initial: 0, ddt: 0}}\ntime: {dt: 1, steps: 1}\n"
            "output: {fields: [f], series: {every: {steps: 1}, values: {i: \"integral(f)\", n: \"norm(f)\", a: "
            "\"domain_max(f)\", b: \"domain_min(f) + 1\", "
            "p: \"probe(f, [0.9, 0.37])\", q: \"probe(f, [0.01, 0.99])\", r: \"probe(f, [2, 0])\", s: \"probe(x + y, "
            "[0.6, 0.45])\"}}}\n",
            cases[c].location);
        ck_ok(open_problem());
        ck_ok(run_steps(0));
        const double *f = values_of("f", n), *s = trl_simulation_series(sim);
        double sum = 0, squares = 0, weight = 0, most = -1e9, least = 1e9;
        for (int j = 0; j < n[1]; ++j)
            for (int i = 0; i < n[0]; ++i) {
                double w = (cases[c].lo && (i == 0 || i == 4) ? 0.5 : 1) *
                           (cases[c].hi && (j == 0 || j == 5) ? 0.5 : 1),
                       v = f[i + n[0] * j];
                sum += w * v;
                squares += w * v * v;
                weight += w;
                most = fmax(most, v);
                least = fmin(least, v);
            }
        ck_assert_double_eq_tol(weight, 20, 1e-13);
        ck_assert(near(s[0], sum * 0.1, 1e-14) && near(s[1], sqrt(squares / 20), 1e-14) && s[2] == most &&
                  s[3] == least + 1);
        double probes[3][2] = {{0.9, 0.37}, {0.01, 0.99}, {2, 0}};
        for (int k = 0; k < 3;
             ++k) { /* bilinear between points, those beyond sides included: f is the formula there too */
            double v = 0,
                   at[2] = {probes[k][0] / 0.5 - (cases[c].lo ? 0 : 0.5), probes[k][1] / 0.2 - (cases[c].hi ? 0 : 0.5)};
            for (int corner = 0; corner < 4; ++corner) {
                double i = floor(at[0]) + corner % 2, j = floor(at[1]) + corner / 2 % 2,
                       x = (i + (cases[c].lo ? 0 : 0.5)) * 0.5, y = (j + (cases[c].hi ? 0 : 0.5)) * 0.2;
                v += (1 - fabs(at[0] - i)) * (1 - fabs(at[1] - j)) * (1 + x * x + 3 * y - x * y);
            }
            ck_assert_msg(near(s[4 + k], v, 1e-13), "probe %d at %s: %.17g, not %.17g", k, cases[c].location, s[4 + k],
                          v);
        }
        ck_assert(near(s[7], 1.05, 1e-14));
    }
    close_problem();
}
END_TEST

START_TEST(a_probe_near_a_side_reads_the_ghosts_of_its_conditions)
{
    new_deck();
    say("grid: {cells: [4, 4]}\nequations: {T: {initial: \"2 + x\", ddt: 0, boundary: {x-: {dirichlet: \"1 + 2*y\"}, "
        "x+: {neumann: 3}, y-: {outflow: true}, "
        "y+: {dirichlet: 5}}}}\ntime: {dt: 1, steps: 1}\n"
        "output: {series: {every: {steps: 1}, values: {a: \"probe(T, [0, 0.375])\", b: \"probe(T, [1, 0.375])\", c: "
        "\"probe(T, [0.375, 1])\", d: \"probe(T, [0, 0])\"}}}\n");
    ck_ok(open_problem());
    ck_ok(run_steps(0));
    const double *s = trl_simulation_series(sim);
    ck_assert_double_eq_tol(s[0], 1.75, 1e-14);
    ck_assert_double_eq_tol(s[1], 2.875 + 0.5 * 3 * 0.25, 1e-14);
    ck_assert_double_eq_tol(s[2], 5, 1e-14);
    ck_assert_double_eq_tol(s[3], 1 + 2 * 0.125, 1e-14);
    close_problem();
}
END_TEST

static void add_tests(TCase *tc)
{
    test_compile_quickly();
    tcase_add_test(tc, fusion_patches_scheduler_and_threads_do_not_change_a_bit);
    tcase_add_test(tc, the_number_of_ranks_does_not_change_a_bit);
    tcase_add_test(tc, beyond_a_periodic_axis_an_expression_is_its_value_at_the_wrapped_cell);
    tcase_add_test(tc, conditions_set_no_ghost_that_is_beyond_those_read);
    tcase_add_test(tc, a_masked_cell_keeps_its_initial_value_and_is_left_out_of_norms);
    tcase_add_test(tc, old_and_evaluate_step_hold_the_values_of_the_step_start);
    tcase_add_test(tc, reductions_weigh_points_and_probes_interpolate);
    tcase_add_test(tc, a_probe_near_a_side_reads_the_ghosts_of_its_conditions);
}

TRL_TEST_MAIN("programs", add_tests)
