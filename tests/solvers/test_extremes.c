/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* What is found of fields between steps does not depend on how many workers look, nor where the values lie. */
// ctest: np=1,3
#include "../expressions/problem_fixture.h"

enum { SEEDS = 12, THREADS = 4 };

static const int cells[][3] = {{37, 1, 1}, {900, 1, 1}, {1, 1, 41}, {33, 29, 1}, {130, 7, 1}, {19, 17, 23}, {3, 2, 90}};
enum { GRIDS = sizeof cells / sizeof *cells };

static void open_grid(const int n[3], int threads)
{
    new_deck();
    say("grid: {cells: [%d, %d, %d], periodic: [true, true, true]}\nequations: {T: {initial: \"sin(9*x + 31*y*z)\", "
        "ddt: \"0\"}}\n"
        "time: {dt: 1e-6, steps: 3}\n",
        n[0], n[1], n[2]);
    close_problem();
    ck_ok(trl_context_set_threads(test_ctx, threads));
    ck_ok(open_problem());
    ck_ok(trl_simulation_initialise(sim));
}

/* Store a value at a point, by its place among all points, on the rank that has it. */
static void store(const int n[3], int place, double value)
{
    const int point[3] = {place % n[0], place / n[0] % n[1], place / n[0] / n[1]};
    const trl_layout *layout = trl_simulation_layout(sim);
    for (int p = 0; p < layout->nlocal; ++p) {
        const trl_patch *patch = &layout->patch[p];
        const trl_array a = trl_simulation_array(sim, 0, p);
        trl_lidx at[3];
        bool inside = true;
        for (int d = 0; d < 3; ++d) {
            at[d] = (trl_lidx)(point[d] - patch->first[d]);
            inside = inside && at[d] >= a.owned.lo[d] && at[d] < a.owned.hi[d];
        }
        if (inside) ((double *)a.at)[trl_array_offset(&a, at[0], at[1], at[2])] = value;
    }
}

START_TEST(a_single_value_is_found_wherever_it_lies)
{
    uint64_t random = (uint64_t)_i + 1;
    for (int g = 0; g < GRIDS; ++g) {
        const int *n = cells[g], points = n[0] * n[1] * n[2];
        int place[3];
        uint64_t hash = 0;
        if (!test_has(g + _i, TEST_SANITIZED ? 6 : 3)) continue; /* seeds take turns */
        for (int i = 0; i < 3; ++i) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            place[i] = (int)((random >> 33) % (uint64_t)points);
        }
        if (place[0] == place[1]) place[1] = (place[0] + 1) % points;
        if (place[2] == place[0] || place[2] == place[1]) continue;
        for (int threads = 1; threads <= THREADS; ++threads) {
            trl_field_stats stats;
            double extremes[2];
            open_grid(n, threads);
            store(n, place[0], -7);
            store(n, place[1], 5);
            ck_ok(trl_simulation_extremes(sim, extremes));
            ck_assert(extremes[0] == -7 && extremes[1] == 5);
            ck_ok(trl_simulation_field_stats(sim, 0, &stats));
            ck_assert(stats.min == -7 && stats.max == 5);
            if (threads > 1) ck_assert(stats.hash == hash);
            hash = stats.hash;
            store(n, place[2], NAN); /* hides no other value from a look */
            ck_ok(trl_simulation_extremes(sim, extremes));
            ck_assert(extremes[0] == -7 && extremes[1] == 5);
            ck_ok(trl_simulation_field_stats(sim, 0, &stats));
            ck_assert(isnan(stats.min) && isnan(stats.max));
            close_problem();
        }
    }
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_loop_test(tc, a_single_value_is_found_wherever_it_lies, 0, SEEDS);
}

TRL_TEST_MAIN("extremes", add_tests)
