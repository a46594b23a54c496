// ctest: np=1,2,4
/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Files that are written while steps go on: steps wait for no disk, all ranks take the next part of a file after the
 * same agreement, and a file that fails on one rank fails on all, with those behind it. */
#include "output_fixture.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>

#include "context_impl.h"
#include "output_beside_impl.h"

/* The disk of this rank: it lets calls of fsync wait, or fail. */
static _Atomic int held, failing;

int fsync(int file)
{
    while (atomic_load(&held)) nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    if (atomic_load(&failing)) {
        errno = EIO;
        return -1;
    }
    return (int)syscall(SYS_fsync, file);
}

typedef struct fixture {
    trl_grid grid;
    trl_layout *layout;
    trli_beside *beside;
    trli_fields_file *file;
    fixture_field f;
} fixture;

static fixture set_up(const char *folder, int level)
{
    fixture x = {.grid = fixture_grid(3, 24, 20, 16, false)};
    x.layout = fixture_layout(test_ctx, &x.grid);
    ck_ok(trli_beside_create(test_ctx, &x.beside));
    ck_assert_ptr_nonnull(x.beside);
    ck_ok(trli_fields_create(test_ctx, x.layout, folder, false, 0, &x.file));
    trli_fields_compress(x.file, level, NULL);
    trli_fields_beside(x.file, x.beside);
    x.f = fixture_create(x.layout, "T", TRL_CELL, 1);
    return x;
}

static void tear_down(fixture *x)
{
    trli_beside_destroy(&x->beside);
    ck_ok(trli_fields_close(&x->file));
    fixture_destroy(&x->f);
    trl_layout_destroy(&x->layout);
}

/* A step of the field and its agreement. */
static void step(fixture *x)
{
    for (int p = 0; p < x->f.npatches; ++p) x->f.memory[p][0] = NAN;
    fixture_visit(x->layout, &x->f, 3, true);
    ck_ok(trl_context_agree(test_ctx, TRL_OK));
}

static bool is_last(void)
{
    return trl_context_rank(test_ctx) == trl_context_ranks(test_ctx) - 1;
}

/* Steps until a part of a file is known to be done: by all ranks after the same one. */
static void step_until_due(fixture *x)
{
    bool due = false;
    for (int i = 0; i < 1000000 && !due; ++i) { /* disks are slow when others write */
        step(x);
        due = trli_beside_is_due(x->beside);
        ck_assert(fixture_all(due) == due);
        if (!due) nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    }
    ck_assert(due);
}

static bool is_right(const fixture *x, const char *path)
{
    hid_t file;
    bool right = false;
    fixture_field found = fixture_create(x->layout, "T", TRL_CELL, -1);
    if (!fixture_exists(path)) return false;
    ck_ok(trli_hdf5_open(test_ctx, path, &file));
    H5Fclose(file);
    if (trli_hdf5_read(test_ctx, x->layout, path, "T", 0, &found.field) == TRL_OK)
        right = fixture_visit(x->layout, &found, 1, false);
    fixture_destroy(&found);
    return right;
}

START_TEST(steps_go_on_while_a_disk_is_slow)
{
    static const char path[] = "slow/fields/00000005.nc";
    const int at_once = trl_context_ranks(test_ctx) == 1; /* parts before a disk is waited for */
    int part = 0;
    fixture x = set_up("slow", _i);
    atomic_store(&held, is_last());
    ck_ok(trli_fields_write(x.file, 5, 0.5, 1, &x.f.field));
    for (int i = 0; i < 50; ++i) {
        step(&x);
        const bool due = trli_beside_is_due(x.beside);
        if (due) ck_ok(trli_beside_go_on(x.beside));
        part += due;
        ck_assert(part <= at_once && !fixture_exists(path));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    atomic_store(&held, 0);
    for (; part < 2; ++part) {
        step_until_due(&x);
        ck_ok(trli_beside_go_on(x.beside));
    }
    const trli_beside_stats stats = trli_beside_get_stats(x.beside);
    ck_assert_int_eq(stats.files, 1);
    ck_assert_int_ge(stats.bytes, _i ? 1 : 24 * 20 * 16 * 8 / trl_context_ranks(test_ctx));
    ck_assert(fixture_all(is_right(&x, path)));
    ck_assert(!trli_beside_is_due(x.beside));
    tear_down(&x);
}
END_TEST

START_TEST(two_files_are_on_their_way_at_most)
{
    fixture x = set_up("two", 0);
    for (int s = 1; s <= 5; ++s) {
        fixture_visit(x.layout, &x.f, 1, true);
        ck_ok(trli_fields_write(x.file, s, s, 1, &x.f.field));
        step(&x);
        ck_assert_int_ge(trli_beside_get_stats(x.beside).files, s - 2);
    }
    ck_ok(trli_beside_finish(x.beside));
    ck_assert_int_eq(trli_beside_get_stats(x.beside).files, 5);
    for (int s = 1; s <= 5; ++s) {
        char path[64];
        snprintf(path, sizeof path, "two/fields/%08d.nc", s);
        ck_assert(fixture_all(is_right(&x, path)));
    }
    ck_assert(fixture_all(fixture_entries("two/fields") == 5));
    tear_down(&x);
}
END_TEST

/* _i: on rank 0, which gives the file its name; else on the last one. */
START_TEST(a_file_that_fails_on_one_rank_fails_on_all_with_those_behind)
{
    fixture x = set_up("fails", 0);
    ck_ok(trli_fields_write(x.file, 1, 1, 1, &x.f.field));
    ck_ok(trli_beside_finish(x.beside));
    atomic_store(&failing, _i ? trl_context_rank(test_ctx) == 0 : is_last());
    ck_ok(trli_fields_write(x.file, 2, 2, 1, &x.f.field));
    ck_ok(trli_fields_write(x.file, 3, 3, 1, &x.f.field));
    trl_err err = TRL_OK;
    for (int part = 0; part < 2 && err == TRL_OK; ++part) {
        step_until_due(&x);
        err = trli_beside_go_on(x.beside);
    }
    atomic_store(&failing, 0);
    ck_fails(err, TRL_ERR_IO, "cannot write 'fails/fields/00000002.nc': Input/output error");
    trl_context_clear_diagnostics(test_ctx);
    ck_assert(trli_beside_has_failed(x.beside));
    ck_ok(trli_beside_finish(x.beside));
    MPI_Barrier(MPI_COMM_WORLD);
    ck_assert(fixture_all(fixture_entries("fails/fields") == 1));
    tear_down(&x);
}
END_TEST

/* What there is no room to copy is written at once. */
START_TEST(without_memory_for_a_copy_a_file_is_written_at_once)
{
    fixture x = set_up("short", 0);
    const size_t limit = test_ctx->memory.limit;
    trl_memory_stats memory;
    trl_memory_get_stats(test_ctx, &memory);
    test_ctx->memory.limit = memory.bytes + (32 << 20);
    ck_ok(trli_fields_write(x.file, 4, 1, 1, &x.f.field));
    step(&x);
    ck_ok(trli_beside_finish(x.beside));
    ck_assert_int_eq(trli_beside_get_stats(x.beside).bytes, 0);
    test_ctx->memory.limit = limit;
    ck_assert(fixture_all(is_right(&x, "short/fields/00000004.nc")));
    tear_down(&x);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_loop_test(tc, steps_go_on_while_a_disk_is_slow, 0, 2);
    tcase_add_test(tc, two_files_are_on_their_way_at_most);
    tcase_add_loop_test(tc, a_file_that_fails_on_one_rank_fails_on_all_with_those_behind, 0, 2);
    tcase_add_test(tc, without_memory_for_a_copy_a_file_is_written_at_once);
}

TRL_TEST_MAIN("beside", add_tests)
