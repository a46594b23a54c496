// ctest: np=1
/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The variant that was found to be the fastest of a kernel is kept in the cache, for runs to come. */
#include "problem_fixture.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include "cache_impl.h"

static char folder[200];

static void set_up(void)
{
    snprintf(folder, sizeof folder, "cache-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    setenv("TRELLIS_CACHE_DIR", folder, 1);
}

/* Returns how many variants are kept; the name of the last. */
static int find_kept(char *name, size_t room)
{
    int n = 0;
    DIR *d = opendir(folder);
    ck_assert_ptr_nonnull(d);
    for (struct dirent *e = readdir(d); e; e = readdir(d)) {
        if (!strstr(e->d_name, ".variant")) continue;
        snprintf(name, room, "%s", e->d_name);
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

START_TEST(the_fastest_variant_is_kept_for_runs_to_come)
{
    enum { ENOUGH = 100 /* tries are calls */ };
    char name[512], line[32], again[32];
    trli_cache cache;
    set_up();
    trli_cache_open(&cache);
    ck_assert_msg(cache.folder >= 0, "%s", cache.why);
    (void)run(2);
    ck_assert_int_eq(find_kept(name, sizeof name), 0); /* not found out yet */
    const uint64_t hash = run(ENOUGH);
    const bool tries_all = find_kept(name, sizeof name) == 0; /* builds for testing keep nothing */
    if (tries_all) {
        trli_cache_close(&cache);
        return;
    }
    ck_assert_int_eq(find_kept(name, sizeof name), 1);
    ck_assert(trli_cache_load(&cache, name, line, sizeof line));

    trli_cache_keep(&cache, name, "1 2\n");
    ck_assert(run(ENOUGH) == hash);
    ck_assert(trli_cache_load(&cache, name, again, sizeof again));
    ck_assert_str_eq(again, "1 2\n"); /* it was believed: two runs had found it */

    trli_cache_keep(&cache, name, "1 1\n");
    ck_assert(run(ENOUGH) == hash);
    ck_assert(trli_cache_load(&cache, name, again, sizeof again));
    ck_assert_str_ne(again, "1 1\n"); /* found out anew: the same, or another one */

    static const char *const rubbish[] = {"", "1 2\n", "77 2\nnonsense", "\n\n"};
    for (size_t i = 0; i < sizeof rubbish / sizeof *rubbish; ++i) {
        int entry = openat(cache.folder, name, O_WRONLY | O_TRUNC);
        FILE *file = entry >= 0 ? fdopen(entry, "w") : NULL;
        ck_assert_ptr_nonnull(file);
        fputs(rubbish[i], file);
        ck_assert_int_eq(fclose(file), 0);
        ck_assert(run(ENOUGH) == hash);
        ck_assert(trli_cache_load(&cache, name, line, sizeof line)); /* found out again */
    }
    trli_cache_keep(&cache, name, "-1 2\n"); /* whole, but no variant */
    ck_assert(run(ENOUGH) == hash);
    ck_assert(trli_cache_load(&cache, name, line, sizeof line));
    ck_assert_int_ge(atoi(line), 0);
    trli_cache_close(&cache);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_unchecked_fixture(tc, NULL, close_problem);
    tcase_add_test(tc, the_fastest_variant_is_kept_for_runs_to_come);
}

TRL_TEST_MAIN("variants", add_tests)
