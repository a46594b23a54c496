// ctest: np=1
/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The way that was found to be a kernel's fastest is kept in the cache, for runs to come. */
#include "problem_fixture.h"

#include <dirent.h>

#include "cache_impl.h"

static char folder[200];

static void set_up(void)
{
    snprintf(folder, sizeof folder, "cache-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    setenv("TRELLIS_CACHE_DIR", folder, 1);
}

/* Returns how many ways are kept; the path of the last. */
static int find_kept(char *path, size_t room)
{
    int n = 0;
    DIR *d = opendir(folder);
    ck_assert_ptr_nonnull(d);
    for (struct dirent *e = readdir(d); e; e = readdir(d)) {
        if (!strstr(e->d_name, ".way")) continue;
        snprintf(path, room, "%s/%s", folder, e->d_name);
        ++n;
    }
    closedir(d);
    return n;
}

static uint64_t run(int steps)
{
    new_deck();
    say("grid: {cells: [8, 8, 8], periodic: [true, true, true]}\n"
        "equations: {T: {initial: \"random(1)\", ddt: \"div(0.1*grad(T))\"}}\n"
        "time: {method: euler, dt: 1e-4, steps: %d}\n"
        "run: {compile: always, threads: 1, time_blocking: 1}\n",
        steps);
    ck_ok(open_problem());
    ck_ok(run_steps(steps));
    const uint64_t hash = hash_of("T");
    close_problem();
    return hash;
}

START_TEST(the_fastest_way_is_kept_for_runs_to_come)
{
    enum { ENOUGH = 100 /* tries are calls */ };
    char path[512], line[32], again[32];
    set_up();
    (void)run(2);
    ck_assert_int_eq(find_kept(path, sizeof path), 0); /* not found out yet */
    const uint64_t hash = run(ENOUGH);
    const bool tries_all = find_kept(path, sizeof path) == 0; /* builds for testing keep nothing */
    if (tries_all) return;
    ck_assert_int_eq(find_kept(path, sizeof path), 1);
    ck_assert(trli_cache_load(path, line, sizeof line));

    trli_cache_keep(path, "1 2\n");
    ck_assert(run(ENOUGH) == hash);
    ck_assert(trli_cache_load(path, again, sizeof again));
    ck_assert_str_eq(again, "1 2\n"); /* it was believed: two runs had found it */

    trli_cache_keep(path, "1 1\n");
    ck_assert(run(ENOUGH) == hash);
    ck_assert(trli_cache_load(path, again, sizeof again));
    ck_assert_str_ne(again, "1 1\n"); /* found out anew: the same, or another one */

    static const char *const rubbish[] = {"", "1 2\n", "77 2\nnonsense", "\n\n"};
    for (size_t i = 0; i < sizeof rubbish / sizeof *rubbish; ++i) {
        FILE *file = fopen(path, "w");
        ck_assert_ptr_nonnull(file);
        fputs(rubbish[i], file);
        ck_assert_int_eq(fclose(file), 0);
        ck_assert(run(ENOUGH) == hash);
        ck_assert(trli_cache_load(path, line, sizeof line)); /* found out again */
    }
    trli_cache_keep(path, "-1 2\n"); /* whole, but no way */
    ck_assert(run(ENOUGH) == hash);
    ck_assert(trli_cache_load(path, line, sizeof line));
    ck_assert_int_ge(atoi(line), 0);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_unchecked_fixture(tc, NULL, close_problem);
    tcase_add_test(tc, the_fastest_way_is_kept_for_runs_to_come);
}

TRL_TEST_MAIN("ways", add_tests)
