/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* series.csv, and whole text files. */
// ctest: np=1,2
#include "output_fixture.h"

static const char *const names[] = {"mass", "mid"};

static bool file_is(const char *path, const char *wanted)
{
    size_t size;
    MPI_Barrier(MPI_COMM_WORLD);
    char *text = fixture_read(path, &size);
    bool same = text && strcmp(text, wanted) == 0;
    free(text);
    return fixture_all(same);
}

START_TEST(writes_17_digits_line_by_line)
{
    static const double values[] = {0.1, -1.0 / 3.0};
    trli_series_file *file;
    ck_ok(trli_series_create(test_ctx, "series/out", "series.csv", 2, names, false, 0, &file));
    ck_assert(file_is("series/out/series.csv", "step,time,mass,mid\n"));
    ck_ok(trli_series_write(file, 0, 0, values));
    ck_ok(trli_series_write(file, 123456789012, 1e-300, values));
    ck_assert(file_is("series/out/series.csv", "step,time,mass,mid\n0,0,0.10000000000000001,-0.33333333333333331\n"
                                               "123456789012,1e-300,0.10000000000000001,-0.33333333333333331\n"));
    ck_ok(trli_series_close(&file));
    ck_assert_ptr_null(file);
}
END_TEST

START_TEST(a_nan_has_no_sign)
{
    const double values[] = {NAN, -NAN};
    trli_series_file *file;
    ck_ok(trli_series_create(test_ctx, "nan/out", "series.csv", 2, names, false, 0, &file));
    ck_ok(trli_series_write(file, 0, 0, values));
    ck_assert(file_is("nan/out/series.csv", "step,time,mass,mid\n0,0,nan,nan\n"));
    ck_ok(trli_series_close(&file));
}
END_TEST

START_TEST(continues_after_a_step_and_drops_half_a_line)
{
    static const char start[] = "step,time,mass,mid\n0,0,1,2\n10,1,1,2\n";
    static const double values[] = {3, 4};
    trli_series_file *file;
    ON_FIRST_RANK(mkdir("again", 0777),
                  fixture_write("again/series.csv", "step,time,mass,mid\n0,0,1,2\n10,1,1,2\n20,2,1,2\n10,1,9,9\n", 55));
    ck_ok(trli_series_create(test_ctx, "again", "series.csv", 2, names, true, 10, &file));
    ck_assert(file_is("again/series.csv", start));
    ck_ok(trli_series_write(file, 11, 1.5, values));
    ck_ok(trli_series_close(&file));
    ck_assert(file_is("again/series.csv", "step,time,mass,mid\n0,0,1,2\n10,1,1,2\n11,1.5,3,4\n"));
    ON_FIRST_RANK(fixture_write("again/series.csv", "step,time,mass,mid\n0,0,1,2\n10,1,1,2\n11,1.", 42));
    ck_ok(trli_series_create(test_ctx, "again", "series.csv", 2, names, true, 100, &file));
    ck_ok(trli_series_close(&file));
    ck_assert(file_is("again/series.csv", start));
    ck_ok(trli_series_create(test_ctx, "again", "series.csv", 2, names, false, 100, &file));
    ck_ok(trli_series_close(&file));
    ck_assert(file_is("again/series.csv", "step,time,mass,mid\n"));
}
END_TEST

START_TEST(refuses_to_continue_other_series)
{
    trli_series_file *file;
    ON_FIRST_RANK(mkdir("other", 0777), fixture_write("other/series.csv", "step,time,energy\n0,0,1\n", 23));
    ck_fails(trli_series_create(test_ctx, "other", "series.csv", 2, names, true, 0, &file), TRL_ERR_INPUT,
             "the series in 'other/series.csv' are 'step,time,energy', those of the deck are 'step,time,mass,mid'");
    ck_assert_ptr_null(file);
    ck_assert(file_is("other/series.csv", "step,time,energy\n0,0,1\n"));
}
END_TEST

START_TEST(takes_half_a_line_back_when_the_disk_is_full)
{
    static const double values[] = {1, 2};
    trli_series_file *file;
    ck_ok(trli_series_create(test_ctx, "full", "series.csv", 2, names, false, 0, &file));
    ck_ok(trli_series_write(file, 1, 0.5, values));
    fixture_limit(30);
    trl_err err = trli_series_write(file, 2, 1, values);
    fixture_limit(0);
    ck_assert_int_eq(err, TRL_ERR_IO);
    ck_assert_ptr_nonnull(strstr(test_messages(), "cannot write 'full/series.csv': File too large"));
    ck_assert(file_is("full/series.csv", "step,time,mass,mid\n1,0.5,1,2\n"));
    ck_ok(trli_series_close(&file));
}
END_TEST

/* Of each kind of mischief: what is done, and what the next line says. */
static void disturb(int way)
{
    if (way == 0 && unlink("mid/series.csv")) abort();
    if (way == 1 && rename("mid", "mid.moved")) abort();
    if (way == 2 && rename("mid/series.csv", "mid/old.csv")) abort();
    if (way == 2) fixture_write("mid/series.csv", "step,time,mass,mid\n", 19);
    if (way == 3 && truncate("mid/series.csv", 10)) abort();
    if (way == 4 && (unlink("mid/series.csv") || mkfifo("mid/series.csv", 0666))) abort();
}

START_TEST(sees_that_the_file_is_no_longer_what_was_written)
{
    static const char *const message[] = {
        "it or its folder was removed", "it or its folder was removed", "it was replaced by another file",
        "it was changed: 29 bytes were written, and it has 10", "it was replaced by another file"};
    static const double values[] = {1, 2};
    trli_series_file *file;
    for (int closing = 0; closing < 2; ++closing) {
        ON_FIRST_RANK(if (system("rm -rf mid mid.moved")) abort());
        ck_ok(trli_series_create(test_ctx, "mid", "series.csv", 2, names, false, 0, &file));
        ck_ok(trli_series_write(file, 1, 0.5, values));
        ON_FIRST_RANK(disturb(_i));
        if (!closing) {
            ck_fails(trli_series_write(file, 2, 1, values), TRL_ERR_IO, message[_i]);
            trl_context_clear_diagnostics(test_ctx);
        }
        ck_fails(trli_series_close(&file), TRL_ERR_IO, message[_i]);
        trl_context_clear_diagnostics(test_ctx);
    }
}
END_TEST

START_TEST(replaces_a_text_whole_or_not_at_all)
{
    ck_ok(trli_text_write(test_ctx, "text/deep", "a.txt", "one"));
    ck_assert(file_is("text/deep/a.txt", "one"));
    ck_ok(trli_text_write(test_ctx, "text/deep", "a.txt", "three"));
    ck_assert(file_is("text/deep/a.txt", "three"));
    fixture_limit(2);
    trl_err err = trli_text_write(test_ctx, "text/deep", "a.txt", "seven");
    fixture_limit(0);
    ck_assert_int_eq(err, TRL_ERR_IO);
    ck_assert(file_is("text/deep/a.txt", "three"));
    ck_assert(fixture_all(fixture_entries("text/deep") == 1));
    trl_context_clear_diagnostics(test_ctx);
    ck_fails(trli_text_write(test_ctx, "text/deep/a.txt", "b.txt", ""), TRL_ERR_IO,
             "cannot create folder 'text/deep/a.txt': Not a directory");
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, writes_17_digits_line_by_line);
    tcase_add_test(tc, a_nan_has_no_sign);
    tcase_add_test(tc, continues_after_a_step_and_drops_half_a_line);
    tcase_add_test(tc, refuses_to_continue_other_series);
    tcase_add_test(tc, takes_half_a_line_back_when_the_disk_is_full);
    tcase_add_loop_test(tc, sees_that_the_file_is_no_longer_what_was_written, 0, 5);
    tcase_add_test(tc, replaces_a_text_whole_or_not_at_all);
}

TRL_TEST_MAIN("series", add_tests)
