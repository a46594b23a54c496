/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* receivers.nc: what it holds, how it is continued, and what failures leave. tests/inputs/cli/receivers.sh reads it
 * with netCDF's own program. */
// ctest: np=1,2
#include <endian.h>

#include "output_fixture.h"

#define PATH "out/receivers.nc"
enum { POINTS = 3, VALUES = 2, RECORD = (2 + POINTS * VALUES) * 8 };

static const double at[POINTS][2] = {{0.5, 0.25}, {1, 2}, {0, -1}};
static const char *const name[VALUES] = {"p", "q.x"};
static const trli_receivers_request request = {POINTS, 2, at[0], VALUES, name};

static double value_of(int v, int i, trl_gidx step)
{
    return (double)step + 0.1 * v + 0.01 * i;
}

static trl_err write_step(trli_receivers_file *file, trl_gidx step)
{
    double row[VALUES][POINTS];
    const double *const values[VALUES] = {row[0], row[1]};
    for (int v = 0; v < VALUES; ++v)
        for (int i = 0; i < POINTS; ++i) row[v][i] = value_of(v, i, step);
    return trli_receivers_write(file, step, 0.5 * (double)step, values);
}

static double number_at(const char *bytes)
{
    uint64_t word;
    double number;
    memcpy(&word, bytes, sizeof word);
    word = be64toh(word);
    memcpy(&number, &word, sizeof number);
    return number;
}

/* Whether the file holds records of these steps, and no more bytes. */
static bool holds(int n, const trl_gidx *steps)
{
    size_t size;
    uint32_t records;
    char *bytes = fixture_read(PATH, &size);
    if (!bytes || size < 8 + (size_t)n * RECORD) return false;
    memcpy(&records, bytes + 4, sizeof records);
    const char *next = bytes + size - (size_t)n * RECORD;
    bool good = memcmp(bytes, "CDF\2", 4) == 0 && (int)be32toh(records) == n &&
                number_at(next - 8) == at[POINTS - 1][1] && number_at(next - 8 * 2 * POINTS) == at[0][0];
    for (int r = 0; r < n && good; ++r) {
        good = number_at(next) == 0.5 * (double)steps[r] && number_at(next + 8) == (double)steps[r];
        next += 16;
        for (int v = 0; v < VALUES; ++v)
            for (int i = 0; i < POINTS; ++i, next += 8) good = good && number_at(next) == value_of(v, i, steps[r]);
    }
    free(bytes);
    return good;
}

static void write_three(void)
{
    trli_receivers_file *file;
    ck_ok(trli_receivers_create(test_ctx, "out", &request, false, 0, &file));
    for (trl_gidx s = 0; s < 3; ++s) ck_ok(write_step(file, 5 * s));
    ck_ok(trli_receivers_close(&file));
    MPI_Barrier(MPI_COMM_WORLD);
}

START_TEST(is_whole_after_each_record)
{
    trli_receivers_file *file;
    ck_ok(trli_receivers_create(test_ctx, "out", &request, false, 0, &file));
    ck_assert(fixture_all(holds(0, NULL)));
    ck_ok(write_step(file, 0));
    ck_assert(fixture_all(holds(1, (const trl_gidx[]){0})));
    ck_ok(write_step(file, 7));
    ck_assert(fixture_all(holds(2, (const trl_gidx[]){0, 7})));
    ck_ok(trli_receivers_close(&file));
}
END_TEST

START_TEST(continues_behind_the_records_that_stay)
{
    trli_receivers_file *file;
    size_t size;
    write_three();
    ck_ok(trli_receivers_create(test_ctx, "out", &request, true, 5, &file));
    ck_assert(fixture_all(holds(2, (const trl_gidx[]){0, 5})));
    ck_ok(write_step(file, 6));
    ck_ok(trli_receivers_close(&file));
    ck_assert(fixture_all(holds(3, (const trl_gidx[]){0, 5, 6})));
    ck_ok(trli_receivers_create(test_ctx, "out", &request, true, -1, &file));
    ck_ok(trli_receivers_close(&file));
    ck_assert(fixture_all(holds(0, NULL)));
    write_three(); /* half a record, and one that is counted but was lost */
    free(fixture_read(PATH, &size));
    ON_FIRST_RANK(ck_assert_int_eq(truncate(PATH, (off_t)size - 8), 0));
    ck_ok(trli_receivers_create(test_ctx, "out", &request, true, 100, &file));
    ck_ok(trli_receivers_close(&file));
    ck_assert(fixture_all(holds(2, (const trl_gidx[]){0, 5})));
}
END_TEST

START_TEST(is_not_continued_for_other_points_or_values)
{
    static const double other[POINTS][2] = {{0.5, 0.25}, {1, 2}, {0, -1.5}};
    static const trli_receivers_request moved = {POINTS, 2, other[0], VALUES, name},
                                        fewer = {POINTS, 2, at[0], 1, name};
    trli_receivers_file *file;
    write_three();
    ck_fails(
        trli_receivers_create(test_ctx, "out", &moved, true, 5, &file), TRL_ERR_INPUT,
        "the receivers in 'out/receivers.nc' are not those of the deck; a restart continues the file: use the same "
        "points and values in output.receivers, or move the file away");
    trl_context_clear_diagnostics(test_ctx);
    ck_fails(trli_receivers_create(test_ctx, "out", &fewer, true, 5, &file), TRL_ERR_INPUT,
             "are not those of the deck");
    trl_context_clear_diagnostics(test_ctx);
    ck_assert(fixture_all(holds(3, (const trl_gidx[]){0, 5, 10})));
    ON_FIRST_RANK(unlink(PATH), (void)!symlink("elsewhere", PATH), fixture_write("out/elsewhere", "x", 1));
    ck_fails(trli_receivers_create(test_ctx, "out", &request, true, 5, &file), TRL_ERR_IO, "cannot write '" PATH "'");
    ON_FIRST_RANK(unlink(PATH));
}
END_TEST

START_TEST(keeps_what_it_has_when_the_disk_is_full)
{
    trli_receivers_file *file;
    size_t size;
    write_three();
    ck_ok(trli_receivers_create(test_ctx, "out", &request, true, 10, &file));
    free(fixture_read(PATH, &size));
    MPI_Barrier(MPI_COMM_WORLD);
    fixture_limit(size + RECORD / 2);
    trl_err err = write_step(file, 15);
    fixture_limit(0);
    ck_assert_int_eq(err, TRL_ERR_IO);
    ck_assert_ptr_nonnull(strstr(test_messages(), "cannot write 'out/receivers.nc': File too large"));
    trl_context_clear_diagnostics(test_ctx);
    ck_assert(fixture_all(holds(3, (const trl_gidx[]){0, 5, 10})));
    ck_ok(write_step(file, 15));
    ck_assert(fixture_all(holds(4, (const trl_gidx[]){0, 5, 10, 15})));
    ON_FIRST_RANK(rename(PATH, "out/moved"), fixture_write(PATH, "", 0));
    ck_fails(write_step(file, 20), TRL_ERR_IO,
             "the receivers in 'out/receivers.nc' cannot go on: it was replaced by another file while the run wrote");
    trl_context_clear_diagnostics(test_ctx);
    (void)!trli_receivers_close(&file);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, is_whole_after_each_record);
    tcase_add_test(tc, continues_behind_the_records_that_stay);
    tcase_add_test(tc, is_not_continued_for_other_points_or_values);
    tcase_add_test(tc, keeps_what_it_has_when_the_disk_is_full);
}

TRL_TEST_MAIN("receivers_file", add_tests)
