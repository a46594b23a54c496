/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* What is measured of the machine: sound figures, kept for the next time, the same on all ranks; those of a busy
 * machine do not last. What is compared differs by so much that no load makes up for it. */
// ctest: np=1,2 labels=alone
#include "trl_test.h"

#include <dirent.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "balance_impl.h"
#include "cache_impl.h"

enum { MEMORY, CACHE, OPERATIONS, RATES = 5 };
static const double huge = 1000;

static char folder[64], entry[400];

static void set_up(void)
{
    snprintf(folder, sizeof folder, "balance-XXXXXX");
    if (trl_context_rank(test_ctx) == 0) ck_assert_ptr_nonnull(mkdtemp(folder));
    MPI_Bcast(folder, sizeof folder, MPI_CHAR, 0, MPI_COMM_WORLD);
    setenv("TRELLIS_CACHE_DIR", folder, 1);
}

static trli_balance find(void)
{
    trl_workers *workers;
    trli_balance b;
    ck_ok(trl_workers_create(test_ctx, "priority", &workers));
    ck_ok(trli_balance_find(test_ctx, workers, &b));
    trl_workers_destroy(&workers);
    return b;
}

static int list_folder(void)
{
    int n = 0;
    DIR *d = opendir(folder);
    ck_assert_ptr_nonnull(d);
    for (struct dirent *e = readdir(d); e; e = readdir(d)) {
        if (e->d_name[0] == '.') continue;
        snprintf(entry, sizeof entry, "%s/%s", folder, e->d_name);
        ++n;
    }
    closedir(d);
    return n;
}

/* Keep the rates times some factors, as if measured some seconds ago for the n-th time. Returns what is kept then. */
static trli_balance put(const double factor[RATES], long long ago, int times)
{
    double r[RATES] = {0};
    if (trl_context_rank(test_ctx) == 0) {
        trli_cache cache;
        char line[256];
        const char *name = entry + strlen(folder) + 1;
        ck_assert_int_eq(list_folder(), 1);
        trli_cache_open(&cache);
        ck_assert(trli_cache_load(&cache, name, line, sizeof line));
        ck_assert_int_eq(sscanf(line, "%la %la %la %la %la", &r[0], &r[1], &r[2], &r[3], &r[4]), RATES);
        for (int i = 0; i < RATES; ++i) r[i] *= factor[i];
        snprintf(line, sizeof line, "%a %a %a %a %a %lld %d\n", r[0], r[1], r[2], r[3], r[4],
                 (long long)time(NULL) - ago, times);
        trli_cache_keep(&cache, name, line);
        trli_cache_close(&cache);
    }
    MPI_Bcast(r, RATES, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    return (trli_balance){.memory = r[MEMORY], .cache = r[CACHE], .operations = r[OPERATIONS]};
}

/* Not the machine's speed is tested, but that the figures are of the kind that they are said to be. */
START_TEST(gives_figures_that_are_possible)
{
    set_up();
    const trli_balance b = find();
    ck_assert(b.memory > 1e7 && b.memory < 1e14);
    ck_assert(b.cache > 1e7 && b.cache < 1e15);
    ck_assert(b.operations > 1e7 && b.operations < 1e15);
    ck_assert(b.division >= 1 && b.division < 1e4);
    ck_assert(b.exponential >= 1 && b.exponential < 1e5);
}
END_TEST

START_TEST(gives_all_ranks_what_was_kept_bit_by_bit)
{
    set_up();
    (void)find();
    const trli_balance kept = put((double[]){huge, huge, huge, huge, huge}, 1, 1), first = find(), second = find();
    trli_balance root = second;
    ck_assert_double_eq(first.memory, kept.memory);
    ck_assert_double_eq(first.operations, kept.operations);
    ck_assert_mem_eq(&first, &second, sizeof first);
    MPI_Bcast(&root, sizeof root, MPI_BYTE, 0, MPI_COMM_WORLD);
    ck_assert_mem_eq(&root, &second, sizeof root);
    ck_assert_int_eq(list_folder(), 1);
}
END_TEST

START_TEST(measures_all_again_where_operations_have_become_faster)
{
    set_up();
    (void)find();
    const trli_balance kept = put((double[]){1 / huge, 1 / huge, 1 / huge, 1, 1}, 1, 1), b = find();
    ck_assert(b.memory > 3 * kept.memory && b.cache > 3 * kept.cache && b.operations > 3 * kept.operations);
    put((double[]){huge, huge, huge, huge, huge}, 1, 1);
    const trli_balance good = find();
    ck_assert_double_ge(good.memory, b.memory * huge * (1 - 1e-12)); /* the better ones were kept */
}
END_TEST

START_TEST(measures_again_now_and_then_and_keeps_the_best)
{
    static const struct {
        long long ago;
        int times;
        bool again;
    } due[] = {{30, 1, false}, {61, 1, true}, {400, 2, false}, {500, 2, true}, {-100, 3, true}};
    if (!test_has(_i / 2, TEST_SANITIZED ? 2 : 1)) return;
    set_up();
    (void)find();
    /* The look at operations finds nothing, whatever they are now. */
    const trli_balance kept = put((double[]){1 / huge, 1 / huge, huge, 1, 1}, due[_i].ago, due[_i].times), b = find();
    ck_assert_int_eq(b.memory > 3 * kept.memory, due[_i].again);
    ck_assert_double_eq(b.operations, kept.operations);
}
END_TEST

START_TEST(forgets_what_is_old)
{
    set_up();
    (void)find();
    const trli_balance kept = put((double[]){huge, huge, huge, 1, 1}, 31 * 86400LL, 9), b = find();
    ck_assert(b.memory < kept.memory / 3 && b.operations < kept.operations / 3);
}
END_TEST

START_TEST(takes_given_figures_and_measures_nothing)
{
    set_up();
    setenv("TRL_BALANCE", "2e10,4e10,6e10,2e10,1e9", 1);
    const trli_balance b = find();
    unsetenv("TRL_BALANCE");
    ck_assert_double_eq(b.memory, 2e10);
    ck_assert_double_eq(b.cache, 4e10);
    ck_assert_double_eq(b.operations, 6e10);
    ck_assert_double_eq(b.division, 3);
    ck_assert_double_eq(b.exponential, 60);
    ck_assert_int_eq(list_folder(), 0);
}
END_TEST

START_TEST(refuses_given_figures_that_are_none)
{
    static const char *const wrong[] = {"1e9,1e9", "fast", "1e9,1e9,1e9,1e9,0"};
    trl_workers *workers;
    trli_balance b;
    set_up();
    ck_ok(trl_workers_create(test_ctx, "priority", &workers));
    setenv("TRL_BALANCE", wrong[_i], 1);
    ck_fails(trli_balance_find(test_ctx, workers, &b), TRL_ERR_INPUT, "is not five rates");
    unsetenv("TRL_BALANCE");
    trl_workers_destroy(&workers);
}
END_TEST

static const char *const rubbish[] = {"", "0x1p+30\n", "1 2 3 4 5 6\n00000000000000000000000000000000",
                                      "nan nan nan nan nan nan\n"};

START_TEST(measures_again_where_an_entry_is_damaged)
{
    if (!test_has(_i, TEST_SANITIZED ? 2 : 1)) return;
    set_up();
    (void)find();
    ck_assert_int_eq(list_folder(), 1);
    FILE *file = fopen(entry, "w");
    ck_assert_ptr_nonnull(file);
    fputs(rubbish[_i], file);
    ck_assert_int_eq(fclose(file), 0);
    const trli_balance b = find();
    ck_assert(b.memory > 1e7);
    (void)put((double[]){1, 1, 1, 1, 1}, 1, 1); /* reads what was kept */
}
END_TEST

START_TEST(keeps_nothing_where_others_may_write)
{
    set_up();
    ck_assert_int_eq(chmod(folder, 0777), 0);
    (void)find();
    ck_assert_int_eq(list_folder(), 0);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, gives_figures_that_are_possible);
    tcase_add_test(tc, gives_all_ranks_what_was_kept_bit_by_bit);
    tcase_add_test(tc, measures_all_again_where_operations_have_become_faster);
    tcase_add_test(tc, takes_given_figures_and_measures_nothing);
    tcase_add_loop_test(tc, refuses_given_figures_that_are_none, 0, 3);
    if (trl_context_ranks(test_ctx) > 1) return; /* the others are about one */
    tcase_add_loop_test(tc, measures_again_now_and_then_and_keeps_the_best, 0, 5);
    tcase_add_test(tc, forgets_what_is_old);
    tcase_add_loop_test(tc, measures_again_where_an_entry_is_damaged, 0, 4);
    tcase_add_test(tc, keeps_nothing_where_others_may_write);
}

TRL_TEST_MAIN("balance", add_tests)
