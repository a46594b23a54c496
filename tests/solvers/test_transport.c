/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Decks of transport: bounds and balances of rotating shapes, a jet and a masked cylinder. Prints a table of
 * docs/verification.md. */
// ctest: sanitize=none timeout=600
#include "../expressions/problem_fixture.h"

enum {
#ifdef TRL_SMALL_SIZES
    LIMITER_STEPS = 20, /* sanitizers are slow; the table is that of the release */
#else
    LIMITER_STEPS = 100000,
#endif
    LOOK_EVERY = 10
};

static void open_deck(const char *name, int nsets, const char *const *set)
{
    char path[1024];
    snprintf(path, sizeof path, TRL_TEST_SOURCE_DIR "/../inputs/decks/%s.yaml", name);
    close_problem();
    ck_ok(trl_registry_create(test_ctx, &registry));
    const trli_deck_request request = {.path = path, .nsets = nsets, .set = set};
    ck_ok(trli_deck_read(test_ctx, registry, &request, &deck));
    ck_ok(trl_simulation_create(test_ctx, trli_deck_problem(deck), &sim));
    ck_ok(trl_simulation_initialise(sim));
}

static trl_field_stats stats_of(const char *name)
{
    trl_field_stats stats;
    ck_ok(trl_simulation_field_stats(sim, field_index(name), &stats));
    return stats;
}

/* Within 0 and 1 up to rounding. */
static void check_bounds(const char *name)
{
    const trl_field_stats stats = stats_of(name);
    ck_assert_msg(stats.min >= -1e-14 && stats.max <= 1 + 1e-14, "%s lies between %.17g and %.17g at t = %g", name,
                  stats.min, stats.max, trl_simulation_time(sim));
}

START_TEST(no_limiter_makes_an_extremum_of_rotating_shapes)
{
    static const char *const names[] = {"upwind", "minmod", "ospre", "vanleer", "charm",
                                        "mc",     "koren",  "smart", "superbee"};
    static const char *const set[] = {"grid.cells=[64, 64]"};
    enum { LIMITERS = sizeof names / sizeof *names };
    open_deck("rotation", 1, set);
    for (int step = 1; step <= LIMITER_STEPS && !trl_simulation_done(sim); ++step) {
        ck_ok(trl_simulation_step(sim));
        for (int l = 0; l < LIMITERS && step % LOOK_EVERY == 0; ++l) check_bounds(names[l]);
    }
    ck_ok(trl_simulation_observe(sim));
    printf("| limiter | l1 error | l2 error | least | largest |\n|---|---|---|---|---|\n");
    const double upwind = stats_of("upwind").error_l1;
    for (int l = 0; l < LIMITERS; ++l) {
        const trl_field_stats s = stats_of(names[l]);
        printf("| %s | %.3e | %.3e | %.1e | %.4f |\n", names[l], s.error_l1, s.error_l2, s.min, s.max);
        check_bounds(names[l]);
        ck_assert_msg(l == 0 || s.error_l1 < 0.7 * upwind, "%s: l1 error %.3e, upwind's is %.3e", names[l], s.error_l1,
                      upwind);
    }
    close_problem();
}
END_TEST

START_TEST(the_dye_of_a_jet_is_bounded_and_changes_by_what_enters_and_leaves)
{
    static const char *const set[] = {"grid.cells=[40, 20]", "time.method=euler", "time.dt=0.01",
                                      "output.series.every={steps: 1}"};
    open_deck("jet", 4, set);
    ck_ok(trl_simulation_observe(sim));
    double largest = 0, entered = 0, left = 0;
    while (!trl_simulation_done(sim)) {
        double before[3];
        memcpy(before, trl_simulation_series(sim), sizeof before);
        ck_ok(trl_simulation_step(sim));
        ck_ok(trl_simulation_observe(sim));
        check_bounds("dye");
        double change = trl_simulation_series(sim)[0] - before[0], expected = 0.01 * (before[1] - before[2]);
        largest = fmax(largest, fabs(change - expected));
        entered += 0.01 * before[1];
        left += 0.01 * before[2];
    }
    ck_assert_msg(largest < 1e-15, "the balance is off by %.2e in a step", largest);
    ck_assert_msg(entered > 0.25 && left > 0.01, "%.3f entered, %.3f left", entered, left);
    close_problem();
}
END_TEST

START_TEST(around_a_masked_cylinder_heat_is_bounded_and_the_cylinder_keeps_its_own)
{
    static const char *const set[] = {"grid.cells=[48, 32]", "time.end=1"};
    trl_gidx n[3];
    open_deck("cylinder", 2, set);
    while (!trl_simulation_done(sim)) {
        ck_ok(trl_simulation_step(sim));
        check_bounds("T");
    }
    ck_ok(trl_simulation_observe(sim));
    const double *t = values_of("T", n);
    int inside = 0;
    for (ptrdiff_t p = 0; p < (ptrdiff_t)n[0] * n[1]; ++p) {
        const ptrdiff_t i = p % n[0], j = p / n[0];
        double x = (double)(2 * i + 1) / 64 - 0.5, y = (double)(2 * j + 1) / 64 - 0.5;
        if (x * x + y * y > 0.15 * 0.15) continue;
        ck_assert_double_eq(t[p], 1);
        ++inside;
    }
    ck_assert_int_gt(inside, 50);
    ck_assert_double_gt(stats_of("T").max, 0.5);              /* heat left the cylinder, */
    ck_assert_double_gt(trl_simulation_series(sim)[0], 0.02); /* and the mask is not counted in it: 0.07 are inside */
    ck_assert_double_lt(trl_simulation_series(sim)[0], 0.2);
    close_problem();
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, no_limiter_makes_an_extremum_of_rotating_shapes);
    tcase_add_test(tc, the_dye_of_a_jet_is_bounded_and_changes_by_what_enters_and_leaves);
    tcase_add_test(tc, around_a_masked_cylinder_heat_is_bounded_and_the_cylinder_keeps_its_own);
}

TRL_TEST_MAIN("transport", add_tests)
