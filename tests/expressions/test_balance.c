/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* What is measured of the machine: sound figures, kept for the next time, the same on all ranks. */
// ctest: np=1,2
#include "trl_test.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include "balance_impl.h"

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
    const trli_balance first = find(), second = find();
    trli_balance root = second;
    ck_assert_mem_eq(&first, &second, sizeof first);
    MPI_Bcast(&root, sizeof root, MPI_BYTE, 0, MPI_COMM_WORLD);
    ck_assert_mem_eq(&root, &second, sizeof root);
    ck_assert_int_eq(list_folder(), 1);
}
END_TEST

static const char *const rubbish[] = {"", "0x1p+30\n", "1 2 3 4 5 6\n00000000000000000000000000000000",
                                      "nan nan nan nan nan nan\n"};

START_TEST(measures_again_where_an_entry_is_damaged)
{
    set_up();
    (void)find();
    ck_assert_int_eq(list_folder(), 1);
    FILE *file = fopen(entry, "w");
    ck_assert_ptr_nonnull(file);
    fputs(rubbish[_i], file);
    ck_assert_int_eq(fclose(file), 0);
    const trli_balance b = find(), again = find();
    ck_assert(b.memory > 1e7);
    ck_assert_mem_eq(&b, &again, sizeof b);
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
    if (trl_context_ranks(test_ctx) > 1) return; /* the others are about one */
    tcase_add_loop_test(tc, measures_again_where_an_entry_is_damaged, 0, 4);
    tcase_add_test(tc, keeps_nothing_where_others_may_write);
}

TRL_TEST_MAIN("balance", add_tests)
