/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Several steps in one pass over memory: as one at a time, to the bit, up to events, with the same messages. */
// ctest: np=1,2,4 sanitize=2
#include "../expressions/problem_fixture.h"
#include "../spatialops/owners_fixture.h"

#include <late_impl.h>
#include <time_blocking_impl.h>

/* Sides of every kind; the corners of a stencil of 27 points are filled by several. */
static const char *const conditions[][3] = {
    {"x-: {dirichlet: 0}, x+: {dirichlet: \"1 + sin(40*t)*y\"}", "y-: {neumann: 0.3}, y+: {robin: {a: 1, b: 2, c: t}}",
     "z-: {dirichlet: \"x*y + t\"}, z+: {neumann: -0.2}"},
    {"x-: {outflow: true}, x+: {neumann: \"y*t\"}", "y-: {dirichlet: \"x + t\"}, y+: {dirichlet: 1}",
     "z-: {robin: {a: 2, b: 0.5, c: \"x\"}}, z+: {outflow: true}"},
};

/* Each is a way for kernels to depend on one another; `S` is a second equation. */
static const char *const slopes[] = {
    "0.01*laplacian(T) + sin(30*t)*x",
    "-div(advective_flux(T, [0.5, -0.3, 0.2], vanleer))",
    "div4(0.004*grad4(T)) + S*T",
    "0.01*(at(ddx(ddy(T)), cell) + ddy(ddy(T))) + max(S, 0)",
};

typedef struct shape {
    int dim, cells[3];
    bool periodic[3];
    int patches[3]; /* 0: as many as ranks */
} shape;
static const shape shapes[] = {
    {2, {41, 13}, {0}, {0}}, {2, {7, 38}, {0}, {0}}, {3, {9, 37, 6}, {0}, {0}}, {3, {6, 19, 23}, {0}, {0}}};
static const shape periodic_shapes[] = {{2, {41, 33}, {true, true, false}, {0}},
                                        {2, {35, 11}, {true, false, false}, {0}},
                                        {3, {7, 31, 9}, {true, true, false}, {0}},
                                        {3, {6, 19, 37}, {false, false, true}, {0}},
                                        {3, {8, 41, 33}, {true, true, true}, {0}}};
/* Four patches each: of one, two or four ranks. */
static const shape shared_shapes[] = {{2, {41, 57}, {0}, {1, 4, 1}},
                                      {2, {66, 35}, {true, false, false}, {2, 2, 1}},
                                      {2, {64, 37}, {true, true, false}, {4, 1, 1}},
                                      {3, {9, 37, 44}, {false, true, false}, {1, 2, 2}},
                                      {3, {35, 33, 21}, {false, true, true}, {2, 2, 1}},
                                      {3, {33, 17, 34}, {true, true, true}, {2, 1, 2}},
                                      {3, {7, 8, 103}, {0}, {1, 1, 4}}};

/* Long enough for patches behind one another, as many as there are ranks. */
static const shape long_shapes[] = {{3, {7, 35, 131}, {true, true, true}, {1, 1, 1}},
                                    {3, {9, 37, 122}, {0}, {1, 1, 1}},
                                    {3, {6, 34, 140}, {false, true, true}, {1, 1, 1}},
                                    {2, {41, 230}, {true, true, false}, {1, 1, 1}},
                                    {2, {37, 190}, {0}, {1, 1, 1}},
                                    {3, {6, 71, 70}, {false, true, false}, {1, 2, 1}},
                                    {3, {71, 6, 70}, {true, false, true}, {2, 1, 1}}};

static void write_problem(const shape *s, int conditioned, const char *slope, const char *method, const char *run)
{
    const bool plane = s->dim == 2;
    const char *const flag[] = {s->periodic[0] ? "true" : "false", s->periodic[1] ? "true" : "false",
                                s->periodic[2] ? "true" : "false"};
    const char *in_space = slope;
    if (plane && strstr(slope, "advective")) in_space = "-div(advective_flux(T, [0.5, -0.3], vanleer))";
    if (!plane && strstr(slope, "ddx(ddy")) in_space = "1e-3*at(ddx(ddy(ddz(T))), cell) + max(S, 0)";
    char sides[512] = "{";
    for (int a = 0, n = 0; a < s->dim; ++a)
        if (!s->periodic[a])
            n += snprintf(sides + 1 + n, sizeof sides - 2 - (size_t)n, "%s%s", n ? ", " : "",
                          conditions[conditioned][a]);
    strcat(sides, "}");
    new_deck();
    say("grid: {cells: %s, length: %s, periodic: [%s, %s", list_of(s->dim, s->cells), plane ? "[1, 1]" : "[1, 1, 1]",
        flag[0], flag[1]);
    say("%s%s]", plane ? "" : ", ", plane ? "" : flag[2]);
    if (s->patches[0] > 0) say(", patches: %s", list_of(s->dim, s->patches));
    say("}\nequations:\n");
    say("  T: {initial: \"1 + x*y\", ddt: \"%s\", boundary: %s}\n", in_space, sides);
    if (strchr(slope, 'S')) say("  S: {initial: \"x - y\", ddt: \"0.01*laplacian(S) - 0.1*T\", boundary: %s}\n", sides);
    say("time: {method: %s, dt: 1.0e-3, steps: 1000}\n", method);
    say("run: {%s}\n", run);
}

/* Steps until a number of them is done; the largest number that was taken at once. */
static bool reached(void *data, trl_gidx step, double time, double dt)
{
    (void)time, (void)dt;
    return step >= *(const trl_gidx *)data;
}

static int advance_to(trl_gidx steps)
{
    int most = 0;
    while (trl_simulation_step_number(sim) < steps) {
        const trl_gidx before = trl_simulation_step_number(sim);
        ck_ok(trl_simulation_advance(sim, reached, &steps));
        const int taken = (int)(trl_simulation_step_number(sim) - before);
        if (taken > most) most = taken;
    }
    ck_assert_int_eq(trl_simulation_step_number(sim), steps);
    return most;
}

enum { STEPS = 11 };

/* Hashes of all equations after STEPS steps. */
static int hashes_after_steps(uint64_t hash[2])
{
    ck_ok(open_problem());
    ck_ok(trl_simulation_initialise(sim));
    const int most = advance_to(STEPS);
    hash[0] = hash_of("T");
    hash[1] = trl_simulation_fields(sim) > 1 ? hash_of("S") : 0;
    return most;
}

static bool alone(void)
{
    return trl_context_ranks(test_ctx) == 1;
}

static void compare(const shape *s, int conditioned, const char *slope, const char *method, const char *fusion,
                    const char *compile, int steps)
{
    static int compared; /* the short form has one or two threads in turn */
    uint64_t expected[2], found[2];
    char run[128];
    ++compared;
    write_problem(s, conditioned, slope, method, "fusion: full, compile: never, time_blocking: 1");
    ck_assert_int_eq(hashes_after_steps(expected), 1);
    for (int threads = 1; threads <= 2; ++threads) {
        if (!test_has(compared + threads, 2)) continue;
        close_problem();
        ck_ok(trl_context_set_threads(test_ctx, threads));
        snprintf(run, sizeof run, "fusion: %s, compile: %s, time_blocking: %d", fusion, compile, steps);
        write_problem(s, conditioned, slope, method, run);
        const int most = hashes_after_steps(found);
        if (alone() || s->patches[0] > 0)
            ck_assert_msg(most == steps, "%d steps at once, not %d: %s", most, steps, test_messages());
        ck_assert_msg(found[0] == expected[0] && found[1] == expected[1],
                      "%s, %s, fusion %s, compile %s, %d steps at once, %d threads, %d-D", slope, method, fusion,
                      compile, steps, threads, s->dim);
    }
    close_problem();
    ck_ok(trl_context_set_threads(test_ctx, 1));
}

START_TEST(all_conditions_and_methods_give_the_bits_of_one_step_at_a_time)
{
    static const char *const methods[] = {"euler", "ssprk2", "ssprk3", "rk4"};
    int n = 0;
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; ++s)
        for (size_t d = 0; d < sizeof slopes / sizeof *slopes; ++d, ++n) {
            if (!test_has((int)(s / 2 + d), TEST_SANITIZED ? 4 : 2)) continue;
            compare(&shapes[s], n / 2 % 2, slopes[d], methods[(s + d) % 4], "full", "never", 2 + n % 7);
        }
}
END_TEST

START_TEST(periodic_axes_are_gone_round_without_a_seam)
{
    static const char *const methods[] = {"ssprk2", "euler", "rk4", "euler", "ssprk3"};
    static const int steps[] = {3, 5, 2, 8, 2};
    for (size_t s = 0; s < sizeof periodic_shapes / sizeof *periodic_shapes; ++s)
        for (size_t d = 0; d < 2; ++d)
            compare(&periodic_shapes[s], (int)d, slopes[d ? 3 : s % 3], methods[s], "full", s == 4 ? "always" : "never",
                    steps[s]);
}
END_TEST

START_TEST(patches_compute_what_they_need_of_one_another)
{
    static const char *const methods[] = {"euler", "ssprk2", "euler", "ssprk3", "euler", "euler", "rk4"};
    static const int steps[] = {5, 3, 8, 2, 4, 6, 2};
    for (size_t s = 0; s < sizeof shared_shapes / sizeof *shared_shapes; ++s)
        for (size_t d = 0; d < sizeof slopes / sizeof *slopes; ++d) {
            if (!test_has((int)(s + d), TEST_SANITIZED ? 4 : 2)) continue;
            compare(&shared_shapes[s], (int)(s + d) / 2 % 2, slopes[d], methods[s], d == 1 ? "node" : "full", "never",
                    strstr(methods[s], "k4") || d == 2 ? 2 : steps[s]);
        }
    compare(&shared_shapes[3], 0, slopes[0], "euler", "full", "always", 4);
    compare(&shared_shapes[5], 1, slopes[3], "ssprk2", "full", "always", 3);
}
END_TEST

static shape behind_one_another(shape s)
{
    const int beside = s.patches[0] * s.patches[1];
    s.patches[s.dim - 1] = trl_context_ranks(test_ctx) / (s.dim == 2 ? 1 : beside);
    if (s.patches[s.dim - 1] == 0) s.patches[s.dim - 1] = 1;
    return s;
}

static bool is_skewed(void)
{
    char text[256];
    trli_time_blocking_describe(sim, sizeof text, text);
    return strstr(text, "patches move up") != NULL;
}

START_TEST(patches_behind_one_another_compute_nothing_twice)
{
    static const char *const methods[] = {"euler", "ssprk2", "euler", "ssprk3", "euler", "euler", "ssprk2"};
    static const int steps[] = {5, 2, 8, 2, 4, 6, 2};
    for (size_t s = 0; s < sizeof long_shapes / sizeof *long_shapes; ++s) {
        const shape all = behind_one_another(long_shapes[s]);
        for (size_t d = 0; d < sizeof slopes / sizeof *slopes; ++d) {
            if (!test_has((int)(s + d), TEST_SANITIZED ? 4 : 2)) continue;
            compare(&all, (int)(s + d) / 2 % 2, slopes[d], methods[s], d == 1 ? "node" : "full", "never",
                    d == 2 ? 2 : steps[s]);
        }
        write_problem(&all, 0, slopes[0], methods[s], "time_blocking: 3");
        ck_ok(open_problem());
        ck_assert(all.patches[all.dim - 1] == 1 || is_skewed());
        close_problem();
    }
    const shape round = behind_one_another(long_shapes[0]), flat = behind_one_another(long_shapes[3]);
    compare(&round, 0, slopes[0], "euler", "full", "always", 5);
    compare(&flat, 1, slopes[3], "ssprk2", "full", "always", 3);
}
END_TEST

static unsigned below(uint64_t *state, unsigned n)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(*state >> 33) % n;
}

/* Kernels that depend on one another in many ways, by what they read and which results they keep. */
static void write_random(uint64_t seed, int steps)
{
    static const char *const terms[] = {
        "0.01*laplacian(T)",       "0.02*laplacian(S)", "-0.2*T*S",      "div(0.003*at(1 + S*S, faces)*grad(T))",
        "0.01*laplacian(n)",       "1e-8*laplacian(m)", "0.1*max(S, n)", "-div(advective_flux(n, [0.1, -0.2], minmod))",
        "1e-6*at(ddy(n), cell)*m", "sin(30*t)*x"};
    static const char *const methods[] = {"euler", "ssprk2", "ssprk3", "rk4"};
    const unsigned n = sizeof terms / sizeof *terms;
    uint64_t r = seed;
    for (int i = 0; i < 8; ++i) (void)below(&r, 2);
    const bool round[2] = {below(&r, 2), below(&r, 2)};
    const int ranks = trl_context_ranks(test_ctx);
    const int beside = ranks == 4 && below(&r, 3) == 0 ? 2 : 1;
    new_deck();
    say("grid: {cells: [%d, %d], periodic: [%s, %s], patches: [%d, %d]}\n", 30 + (int)below(&r, 40),
        100 * (ranks / beside) + (int)below(&r, 7), round[0] ? "true" : "false", round[1] ? "true" : "false", beside,
        ranks / beside);
    say("expressions: {n: {formula: \"T*S + 1\"}, m: {formula: \"laplacian(T)\"}}\nequations:\n");
    for (int v = 0; v < 2; ++v) {
        say("  %c: {initial: \"%s\", ddt: \"%s + 0.3*(%s) - %s\", boundary: {", "TS"[v], v ? "x - y" : "1 + x*y",
            terms[below(&r, n)], terms[below(&r, n)], terms[below(&r, n)]);
        for (int a = 0; a < 2; ++a)
            if (!round[a]) say("%s%s", a && !round[0] ? ", " : "", conditions[below(&r, 2)][a]);
        say("}}\n");
    }
    const char *const method = methods[below(&r, 4)], *const fusion = below(&r, 3) ? "full" : "node";
    say("time: {method: %s, dt: 1.0e-5, steps: 1000}\n", method);
    say("run: {compile: never, time_blocking: %d, fusion: %s, balance: %s, threads: %d, owners: %s}\n", steps, fusion,
        below(&r, 2) ? "0.01" : "100", 1 + (int)below(&r, 2), next_owners_text());
}

START_TEST(random_kernels_give_the_bits_of_one_step_at_a_time)
{
    const int seeds = test_long() ? 200 : 6;
    int skewed = 0;
    for (int seed = 1; seed <= seeds; ++seed) {
        uint64_t expected[2], found[2];
        write_random((uint64_t)seed, 1);
        (void)hashes_after_steps(expected);
        close_problem();
        write_random((uint64_t)seed, 2 + seed % 6);
        const int most = hashes_after_steps(found);
        skewed += most > 1 && is_skewed();
        close_problem();
        ck_assert_msg(found[0] == expected[0] && found[1] == expected[1], "seed %d: other bits:\n%s", seed, deck_text);
    }
    ck_assert_msg(alone() || 5 * skewed > seeds, "only %d of %d passes are skewed", skewed, seeds);
}
END_TEST

START_TEST(compiled_kernels_give_the_bits_of_interpreted_ones)
{
    compare(&shapes[0], 0, slopes[0], "euler", "full", "always", 4);
    compare(&shapes[2], 1, slopes[0], "ssprk3", "full", "always", 3);
    compare(&shapes[3], 0, slopes[2], "euler", "full", "always", 8);
}
END_TEST

START_TEST(kernels_that_share_their_results_are_ordered_too)
{
    compare(&shapes[2], 0, slopes[1], "euler", "node", "never", 3);
    compare(&shapes[1], 1, slopes[0], "rk4", "full", "never", 2);
}
END_TEST

static uint64_t hash_with_points_on_sides(int together)
{
    new_deck();
    say("grid: {cells: [13, 13], length: [3, 1], patches: [2, 2]}\n"
        "expressions:\n"
        "  n: \"at(T, cell)*at(T, cell) + at(S, cell)^2\"\n"
        "equations:\n"
        "  T: {location: node, initial: \"0.5 + 0.4*sin(3*x)\", ddt: \"0.1*ddy(at(sin(n)*n + 1/(2 + n), xface))\", "
        "boundary: {x-: {outflow: true}, x+: {dirichlet: 0}, y-: {dirichlet: 0}, y+: {dirichlet: 0}}}\n"
        "  S: {location: node, initial: \"0.5 + 0.4*sin(3*x)\", ddt: \"0.1*div([at(S, yface), at(S, xface)])\", "
        "boundary: {x-: {dirichlet: 0}, x+: {dirichlet: 0}, y-: {dirichlet: 0}, y+: {neumann: 0}}}\n"
        "time: {method: ssprk2, dt: 1.0e-3, steps: 1000}\n"
        "run: {balance: 0.01, compile: never, time_blocking: %d}\n",
        together);
    uint64_t hash[2];
    (void)hashes_after_steps(hash);
    close_problem();
    return hash[0] ^ hash[1] << 1;
}

/* In patches at a side nodes have more points than the cells that are kept between kernels, in others they have not. */
START_TEST(fields_of_several_shapes_keep_apart_in_each_patch)
{
    const uint64_t expected = hash_with_points_on_sides(1);
    for (int together = 2; together <= 5; ++together) ck_assert(hash_with_points_on_sides(together) == expected);
}
END_TEST

/* Steps at which a run stops if it asks for every third one, or 7 and 8. */
static bool third_or_seven(void *data, trl_gidx step, double time, double dt)
{
    (void)data, (void)time, (void)dt;
    return step % 3 == 0 || step == 7;
}

START_TEST(stops_after_each_step_that_is_an_event_and_at_the_end)
{
    static const int expected[] = {3, 6, 7, 9, 12, 13};
    uint64_t hash;
    for (int blocked = 0; blocked < 2; ++blocked) {
        new_deck();
        say("grid: {cells: [20, 20]}\n");
        say("equations: {T: {initial: \"x\", ddt: \"0.01*laplacian(T) + t\", boundary: {x-: {dirichlet: 0}, x+: "
            "{dirichlet: 0}, ");
        say("y-: {dirichlet: 0}, y+: {dirichlet: t}}}}\n");
        say("time: {method: euler, dt: 1.0e-3, end: 0.01225}\n");
        say("run: {time_blocking: %d}\n", blocked ? 8 : 1);
        ck_ok(open_problem());
        ck_ok(trl_simulation_initialise(sim));
        for (size_t i = 0; i < sizeof expected / sizeof *expected && blocked; ++i) {
            ck_ok(trl_simulation_advance(sim, third_or_seven, NULL));
            ck_assert_int_eq(trl_simulation_step_number(sim), expected[i]);
        }
        while (!trl_simulation_done(sim)) ck_ok(trl_simulation_step(sim));
        ck_assert_int_eq(trl_simulation_step_number(sim), 13);
        ck_assert(trl_simulation_time(sim) == 0.01225 && trl_simulation_dt(sim) < 0.5e-3);
        if (!blocked) hash = hash_of("T");
    }
    ck_assert(hash == hash_of("T"));
}
END_TEST

START_TEST(a_run_takes_no_more_steps_than_it_was_asked_for)
{
    write_problem(&shared_shapes[0], 0, slopes[0], "euler", "time_blocking: 8");
    ck_ok(open_problem());
    ck_ok(trl_simulation_initialise(sim));
    trl_simulation_set_steps(sim, 10);
    ck_ok(trl_simulation_advance(sim, NULL, NULL));
    ck_assert_int_eq(trl_simulation_step_number(sim), 8);
    ck_ok(trl_simulation_advance(sim, NULL, NULL));
    ck_assert_int_eq(trl_simulation_step_number(sim), 10);
    ck_assert(trl_simulation_done(sim));
}
END_TEST

START_TEST(a_value_that_is_not_finite_is_reported_with_its_step_and_first_point)
{
    static char expected[65536];
    for (int steps = 1; steps <= 8; steps += 7) {
        new_deck();
        say("grid: {cells: [40, 9, 11]}\n");
        say("equations:\n");
        for (int v = 0; v < 2; ++v) {
            say("  %c: {initial: \"1\", boundary: {x-: {dirichlet: 0}, x+: {dirichlet: 0}, y-: {dirichlet: 0}, ",
                "TS"[v]);
            say("y+: {dirichlet: 0}, z-: {dirichlet: 0}, z+: {dirichlet: 0}},\n");
            say("    ddt: \"0.01*laplacian(%c) + if(x + y > %s, sqrt(0.0125 - t), 0)\"}\n", "TS"[v], v ? "0.2" : "1.5");
        }
        say("time: {method: euler, dt: 1.0e-3, steps: 40}\n");
        say("run: {time_blocking: %d}\n", steps);
        ck_ok(open_problem());
        ck_ok(trl_simulation_initialise(sim));
        trl_err err = TRL_OK;
        while (err == TRL_OK && !trl_simulation_done(sim)) err = trl_simulation_advance(sim, NULL, NULL);
        ck_assert_int_eq(err, TRL_ERR_NUMERICS);
        ck_assert_ptr_nonnull(strstr(test_messages(), "after step 14"));
        if (steps == 1) snprintf(expected, sizeof expected, "%s", test_messages());
        ck_assert_ptr_nonnull(strstr(test_messages(), "'T' is NaN"));
        ck_assert_str_eq(test_messages(), expected);
        test_clear();
    }
}
END_TEST

/* The first planes are computed by the last rank, beyond the end of the axis. */
START_TEST(what_is_not_finite_has_its_place_in_the_domain)
{
    static char expected[65536];
    for (int steps = 1; steps <= 8; steps += 7) {
        new_deck();
        say("grid: {cells: [9, 40, 150], periodic: [true, true, true], patches: [1, 1, %d]}\n",
            trl_context_ranks(test_ctx));
        say("equations: {T: {initial: \"1\", ddt: \"laplacian(T) + if(z < 0.02, sqrt(0.0125 - t), 0)\"}}\n");
        say("time: {method: euler, dt: 1.0e-3, steps: 40}\nrun: {time_blocking: %d}\n", steps);
        ck_ok(open_problem());
        ck_assert(alone() || steps == 1 || is_skewed());
        ck_ok(trl_simulation_initialise(sim));
        trl_err err = TRL_OK;
        while (err == TRL_OK && !trl_simulation_done(sim)) err = trl_simulation_advance(sim, NULL, NULL);
        ck_assert_int_eq(err, TRL_ERR_NUMERICS);
        if (steps == 1) snprintf(expected, sizeof expected, "%s", test_messages());
        ck_assert_ptr_nonnull(strstr(test_messages(), "after step 14"));
        ck_assert_str_eq(test_messages(), expected);
        test_clear();
        close_problem();
    }
}
END_TEST

/* In its next pass, which computes nothing. */
START_TEST(a_rank_that_failed_takes_part_in_the_messages_of_a_pass)
{
    for (int passes = 0; passes < 2; ++passes) {
        const shape all = behind_one_another(long_shapes[3]);
        trl_err err = TRL_OK;
        write_problem(&all, 0, slopes[0], "euler", "compile: never, time_blocking: 4");
        ck_ok(open_problem());
        ck_assert(alone() || is_skewed());
        ck_ok(trl_simulation_initialise(sim));
        for (int i = 0; i < passes; ++i) ck_ok(trl_simulation_advance_pending(sim, NULL, NULL));
        if (alone()) continue;
        if (trl_context_rank(test_ctx) == 1) sim->late->noted = trl_fail(test_ctx, TRL_ERR_IO, NULL, "it failed");
        while (err == TRL_OK && trl_simulation_step_number(sim) < 40)
            err = trl_simulation_advance_pending(sim, NULL, NULL);
        ck_assert_int_eq(err, TRL_ERR_IO);
        test_clear();
        close_problem();
    }
}
END_TEST

static void collect(void *data, const char *line)
{
    if (strncmp(line, "time blocks", 11) == 0) snprintf(data, 256, "%s", line);
}

static void takes_one_step_because(const char *grid, const char *ddt, const char *time, const char *why)
{
    char line[256] = "";
    test_clear();
    new_deck();
    say("grid: {%s}\n", grid);
    say("equations: {T: {initial: 1, ddt: \"%s\"", ddt);
    if (!strstr(grid, "periodic")) {
        say(", boundary: {x-: {dirichlet: 0}, x+: {dirichlet: 0}");
        if (strchr(grid, ',')) say(", y-: {dirichlet: 0}, y+: {dirichlet: 0}");
        say("}");
    }
    say("}}\ntime: {method: euler, %s, steps: 4}\n", time);
    say("run: {time_blocking: 4}\n");
    ck_ok(open_problem());
    ck_ok(trl_simulation_describe(sim, false, collect, line));
    ck_assert_msg(strstr(line, "one step at a time") && strstr(line, why), "%s: %s", why, line);
    ck_assert_msg(strstr(test_messages(), "warning: steps are taken one at a time") && strstr(test_messages(), why),
                  "%s: %s", why, test_messages());
}

START_TEST(says_why_steps_are_taken_one_at_a_time)
{
    takes_one_step_because("cells: [12, 8], patches: [4, 1]", "-div(advective_flux(T, [0.5, -0.3], vanleer))",
                           "dt: 1.0e-4", "patches are too small for ghosts as deep as several steps need");
    if (!alone()) return;
    takes_one_step_because("cells: [8, 8]", "laplacian(T)", "dt: {cfl: 0.5}", "dt follows from cfl");
    takes_one_step_because("cells: [8]", "laplacian(T)", "dt: 1.0e-4", "the grid is 1-D");
    takes_one_step_because("cells: [8, 3], periodic: [true, true]", "laplacian(T)", "dt: 1.0e-4",
                           "a periodic axis is short");
    takes_one_step_because("cells: [8, 8]", "laplacian(T) - T/integral(T)", "dt: 1.0e-4",
                           "a reduction needs all of a step");
}
END_TEST

START_TEST(steps_taken_together_allocate_nothing_after_the_first)
{
    trl_simulation_stats stats;
    write_problem(&shared_shapes[2], 0, slopes[2], "euler", "time_blocking: 4");
    ck_ok(open_problem());
    ck_ok(trl_simulation_initialise(sim));
    advance_to(30);
    trl_simulation_get_stats(sim, &stats);
    ck_assert_int_eq(stats.allocations_after_first_step, 0);
}
END_TEST

START_TEST(ranks_choose_one_way_and_exchange_once_for_a_pass)
{
    static const int settings[] = {1, 0, 4};
    int64_t messages[3];
    uint64_t hash[3];
    for (int i = 0; i < 3; ++i) {
        trl_simulation_stats stats;
        char run[64] = "time_blocking: auto";
        if (settings[i] > 0) snprintf(run, sizeof run, "time_blocking: %d", settings[i]);
        close_problem();
        write_problem(&shared_shapes[1], 0, slopes[0], "euler", run);
        ck_ok(open_problem());
        ck_ok(trl_simulation_initialise(sim));
        advance_to(120);
        trl_simulation_get_stats(sim, &stats);
        messages[i] = stats.comm_messages;
        hash[i] = hash_of("T");
    }
    ck_assert(hash[1] == hash[0] && hash[2] == hash[0]);
    ck_assert(alone() || messages[2] < messages[0] / 2);
}
END_TEST

static void add_tests(TCase *tc)
{
    test_compile_quickly();
    tcase_add_unchecked_fixture(tc, NULL, close_problem);
    tcase_add_test(tc, all_conditions_and_methods_give_the_bits_of_one_step_at_a_time);
    tcase_add_test(tc, periodic_axes_are_gone_round_without_a_seam);
    tcase_add_test(tc, patches_compute_what_they_need_of_one_another);
    tcase_add_test(tc, fields_of_several_shapes_keep_apart_in_each_patch);
    tcase_add_test(tc, compiled_kernels_give_the_bits_of_interpreted_ones);
    tcase_add_test(tc, kernels_that_share_their_results_are_ordered_too);
    tcase_add_test(tc, stops_after_each_step_that_is_an_event_and_at_the_end);
    tcase_add_test(tc, a_run_takes_no_more_steps_than_it_was_asked_for);
    tcase_add_test(tc, a_value_that_is_not_finite_is_reported_with_its_step_and_first_point);
    tcase_add_test(tc, patches_behind_one_another_compute_nothing_twice);
    tcase_add_test(tc, random_kernels_give_the_bits_of_one_step_at_a_time);
    tcase_add_test(tc, what_is_not_finite_has_its_place_in_the_domain);
    tcase_add_test(tc, a_rank_that_failed_takes_part_in_the_messages_of_a_pass);
    tcase_add_test(tc, ranks_choose_one_way_and_exchange_once_for_a_pass);
    tcase_add_test(tc, says_why_steps_are_taken_one_at_a_time);
    tcase_add_test(tc, steps_taken_together_allocate_nothing_after_the_first);
}

TRL_TEST_MAIN("time_blocking", add_tests)
