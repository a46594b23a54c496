/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Checkpoints: exact on any number of ranks, and the previous one survives whatever happens to the next. */
// ctest: np=1,2,3,4
#include "output_fixture.h"

static const trli_checkpoint_state state_100 = {.step = 100, .time = 0.1, .dt = 1e-3, .time_start = -2.5};

/* Remove what an earlier test left. */
static void start_empty(void)
{
    ON_FIRST_RANK(if (system("rm -rf out")) abort());
}

static trl_err write_on(trl_context *ctx, const trl_layout *layout, int keep, trl_gidx step)
{
    trli_checkpoint_state state = state_100;
    fixture_field t = fixture_create(layout, "T", TRL_CELL, (int)(step % 1000)),
                  u = fixture_create(layout, "u.x", TRL_XFACE, 2);
    const trli_output_field fields[] = {t.field, u.field};
    state.step = step;
    trl_err err = trli_checkpoint_write(ctx, layout, "out", keep, &state, 2, fields);
    fixture_destroy(&t);
    fixture_destroy(&u);
    return err;
}

/* Read into empty fields; *same says whether every bit is what write_on wrote for that step. */
static trl_err read_on(trl_context *ctx, const trl_layout *layout, const char *path, trli_checkpoint_state *state,
                       bool *same)
{
    fixture_field t = fixture_create(layout, "T", TRL_CELL, -1), u = fixture_create(layout, "u.x", TRL_XFACE, -1);
    const trli_output_field fields[] = {u.field, t.field};
    *state = (trli_checkpoint_state){0};
    trl_err err = trli_checkpoint_read(ctx, layout, path, state, 2, fields);
    *same = err == TRL_OK && fixture_visit(layout, &t, (int)(state->step % 1000), false) &&
            fixture_visit(layout, &u, 2, false);
    fixture_destroy(&t);
    fixture_destroy(&u);
    return err;
}

START_TEST(reads_back_the_state_and_every_bit)
{
    for (int dim = 1; dim <= 3; ++dim) {
        const trl_grid grid = fixture_grid(dim, 11, 7, 5, dim == 2);
        trl_layout *layout = fixture_layout(test_ctx, &grid);
        trli_checkpoint_state state;
        bool same;
        start_empty();
        ck_ok(write_on(test_ctx, layout, 2, 100));
        ck_ok(read_on(test_ctx, layout, "out/checkpoint", &state, &same));
        ck_assert(fixture_all(same));
        ck_assert(state.step == 100 && state.time == 0.1 && state.dt == 1e-3 && state.time_start == -2.5);
        ck_ok(read_on(test_ctx, layout, "out/checkpoint/00000100.h5", &state, &same));
        ck_assert(fixture_all(same && state.step == 100));
        trl_layout_destroy(&layout);
    }
}
END_TEST

START_TEST(keeps_the_bits_of_special_values)
{
    static const uint64_t bits[] = {
        0x7ff8000000000123u, 0xfff4deadbeef0001u, 0x8000000000000000u, 1u, 0x7ff0000000000000u, 42u, 7u, 8u};
    const trl_grid grid = fixture_grid(1, 8, 1, 1, true);
    trl_layout *layout = fixture_layout(test_ctx, &grid);
    const trl_patch *patch = &layout->patch[layout->local[0]];
    fixture_field f = fixture_create(layout, "T", TRL_CELL, 0), g = fixture_create(layout, "T", TRL_CELL, -1);
    trli_checkpoint_state state;
    bool same = true;
    start_empty();
    memcpy(f.patch[0].at, bits + patch->first[0], (size_t)patch->cells[0] * sizeof *bits);
    ck_ok(trli_checkpoint_write(test_ctx, layout, "out", 1, &state_100, 1, &f.field));
    ck_ok(trli_checkpoint_read(test_ctx, layout, "out/checkpoint", &state, 1, &g.field));
    same = memcmp(g.patch[0].at, bits + patch->first[0], (size_t)patch->cells[0] * sizeof *bits) == 0;
    ck_assert(fixture_all(same));
    fixture_destroy(&f);
    fixture_destroy(&g);
    trl_layout_destroy(&layout);
}
END_TEST

START_TEST(continues_on_another_number_of_ranks)
{
    const trl_grid grid = fixture_grid(3, 11, 7, 5, true);
    bool first = trl_context_rank(test_ctx) == 0, same = true;
    trl_layout *layout = fixture_layout(test_ctx, &grid), *alone_layout = NULL;
    trl_context *alone = NULL;
    trli_checkpoint_state state;
    MPI_Comm part;
    MPI_Comm_split(MPI_COMM_WORLD, first, 0, &part);
    ck_ok(trl_context_create(part, NULL, &alone));
    start_empty();
    if (first) alone_layout = fixture_layout(alone, &grid);
    ON_FIRST_RANK(same = write_on(alone, alone_layout, 1, 3) == TRL_OK);
    ck_assert(fixture_all(same));
    ck_ok(read_on(test_ctx, layout, "out/checkpoint", &state, &same));
    ck_assert(fixture_all(same && state.step == 3));
    ck_ok(write_on(test_ctx, layout, 1, 4));
    ON_FIRST_RANK(same = read_on(alone, alone_layout, "out/checkpoint", &state, &same) == TRL_OK && same &&
                         state.step == 4);
    ck_assert(fixture_all(same));
    trl_layout_destroy(&layout);
    if (alone_layout) trl_layout_destroy(&alone_layout);
    trl_context_destroy(&alone);
    MPI_Comm_free(&part);
}
END_TEST

START_TEST(keeps_the_newest_and_removes_the_rest)
{
    const trl_grid grid = fixture_grid(1, 8, 1, 1, false);
    trl_layout *layout = fixture_layout(test_ctx, &grid);
    trli_checkpoint_state state;
    bool same;
    start_empty();
    for (trl_gidx step = 99999997; step <= 100000001; ++step) ck_ok(write_on(test_ctx, layout, 2, step));
    ck_assert(
        fixture_all(fixture_exists("out/checkpoint/100000001.h5") && fixture_exists("out/checkpoint/100000000.h5")));
    ck_assert(fixture_all(!fixture_exists("out/checkpoint/99999999.h5")));
    ck_ok(read_on(test_ctx, layout, "out/checkpoint", &state, &same));
    ck_assert(fixture_all(same && state.step == 100000001));
    ON_FIRST_RANK(fixture_write("out/checkpoint/00000007.h5.tmp", "", 0),
                  fixture_write("out/checkpoint/notes.txt", "", 0));
    ck_ok(write_on(test_ctx, layout, 2, 50));
    ck_assert(fixture_all(fixture_exists("out/checkpoint/00000050.h5") && fixture_exists("out/checkpoint/notes.txt")));
    ck_assert(fixture_all(!fixture_exists("out/checkpoint/100000001.h5") &&
                          !fixture_exists("out/checkpoint/00000007.h5.tmp")));
    trl_layout_destroy(&layout);
}
END_TEST

START_TEST(warns_when_an_old_checkpoint_stays)
{
    const trl_grid grid = fixture_grid(1, 8, 1, 1, false);
    trl_layout *layout = fixture_layout(test_ctx, &grid);
    start_empty();
    ck_ok(write_on(test_ctx, layout, 1, 1));
    ON_FIRST_RANK(unlink("out/checkpoint/00000001.h5"), mkdir("out/checkpoint/00000001.h5", 0777));
    ck_ok(write_on(test_ctx, layout, 1, 2));
    if (trl_context_rank(test_ctx) == 0)
        ck_assert_ptr_nonnull(
            strstr(test_messages(), "warning: cannot remove the old checkpoint 'out/checkpoint/00000001.h5': "));
    trl_layout_destroy(&layout);
}
END_TEST

/* Cut a file to a part of its size. */
static void cut_file(const char *path, double part)
{
    size_t size;
    char *all = fixture_read(path, &size);
    if (!all) abort();
    fixture_write(path, all, (size_t)(part * (double)size));
    free(all);
}

START_TEST(skips_damaged_checkpoints_with_a_warning)
{
    static const double part[] = {0, 0.01, 0.3, 0.7, 0.999};
    const trl_grid grid = fixture_grid(3, 12, 10, 8, false);
    trl_layout *layout = fixture_layout(test_ctx, &grid);
    trli_checkpoint_state state;
    bool same;
    for (int i = 0; i < 5; ++i) {
        start_empty();
        ck_ok(write_on(test_ctx, layout, 3, 100));
        ck_ok(write_on(test_ctx, layout, 3, 200));
        ON_FIRST_RANK(cut_file("out/checkpoint/00000200.h5", part[i]));
        ck_ok(read_on(test_ctx, layout, "out/checkpoint", &state, &same));
        ck_assert(fixture_all(same && state.step == 100));
        if (trl_context_rank(test_ctx) == 0)
            ck_assert_ptr_nonnull(
                strstr(test_messages(), "warning: checkpoint 'out/checkpoint/00000200.h5' is damaged and skipped: "));
        trl_context_clear_diagnostics(test_ctx);
    }
    ck_fails(read_on(test_ctx, layout, "out/checkpoint/00000200.h5", &state, &same), TRL_ERR_IO,
             "'out/checkpoint/00000200.h5' is not a whole checkpoint: truncated file");
    trl_context_clear_diagnostics(test_ctx);
    ON_FIRST_RANK(cut_file("out/checkpoint/00000100.h5", 0.5));
    ck_fails(read_on(test_ctx, layout, "out/checkpoint", &state, &same), TRL_ERR_IO,
             "no checkpoint in 'out/checkpoint' can be read: 2 damaged");
    trl_layout_destroy(&layout);
}
END_TEST

static void remove_attribute(const char *path, const char *object, const char *attribute)
{
    hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    if (file < 0 || H5Adelete_by_name(file, object, attribute, H5P_DEFAULT) < 0 || H5Fclose(file) < 0) abort();
}

START_TEST(reports_a_field_without_location)
{
    const trl_grid grid = fixture_grid(1, 8, 1, 1, false);
    trl_layout *layout = fixture_layout(test_ctx, &grid);
    trli_checkpoint_state state;
    bool same;
    start_empty();
    ck_ok(write_on(test_ctx, layout, 1, 1));
    ON_FIRST_RANK(remove_attribute("out/checkpoint/00000001.h5", "/00000001/T", "location"));
    ck_fails(read_on(test_ctx, layout, "out/checkpoint", &state, &same), TRL_ERR_IO,
             "field 'T' of checkpoint 'out/checkpoint/00000001.h5' has no attribute 'location'");
    trl_layout_destroy(&layout);
}
END_TEST

START_TEST(says_what_a_file_lacks_to_be_a_checkpoint)
{
    const trl_grid grid = fixture_grid(1, 8, 1, 1, false);
    trl_layout *layout = fixture_layout(test_ctx, &grid);
    fixture_field t = fixture_create(layout, "T", TRL_CELL, 0);
    trli_fields_file *file;
    trli_checkpoint_state state;
    bool same;
    start_empty();
    ck_ok(trli_fields_create(test_ctx, layout, "out", false, 0, &file));
    ck_fails(read_on(test_ctx, layout, "out/fields.h5", &state, &same), TRL_ERR_IO,
             "'out/fields.h5' is not a whole checkpoint: it does not hold one step");
    trl_context_clear_diagnostics(test_ctx);
    ck_ok(trli_fields_write(file, 1, 0, 1, &t.field));
    ck_fails(read_on(test_ctx, layout, "out/fields.h5", &state, &same), TRL_ERR_IO,
             "its step lacks one of the attributes time, dt and start");
    trl_context_clear_diagnostics(test_ctx);
    ON_FIRST_RANK(mkdir("out/checkpoint", 0777));
    ck_fails(read_on(test_ctx, layout, "out/checkpoint", &state, &same), TRL_ERR_INPUT,
             "there is no checkpoint in 'out/checkpoint'");
    trl_context_clear_diagnostics(test_ctx);
    ck_fails(read_on(test_ctx, layout, "nowhere", &state, &same), TRL_ERR_INPUT,
             "there is no checkpoint 'nowhere': No such file or directory");
    ck_ok(trli_fields_close(&file));
    fixture_destroy(&t);
    trl_layout_destroy(&layout);
}
END_TEST

START_TEST(refuses_the_checkpoint_of_another_problem)
{
    const trl_grid grid = fixture_grid(2, 8, 6, 1, false), finer = fixture_grid(2, 16, 6, 1, false);
    trl_layout *layout = fixture_layout(test_ctx, &grid), *other = fixture_layout(test_ctx, &finer);
    fixture_field t = fixture_create(layout, "T", TRL_CELL, 0), u = fixture_create(layout, "u.x", TRL_XFACE, 0),
                  v = fixture_create(layout, "u.x", TRL_YFACE, 0), w = fixture_create(layout, "w", TRL_CELL, 0);
    const trli_output_field both[] = {t.field, u.field}, elsewhere[] = {t.field, v.field},
                            more[] = {t.field, u.field, w.field};
    trli_checkpoint_state state;
    bool same;
    start_empty();
    ck_ok(trli_checkpoint_write(test_ctx, layout, "out", 1, &state_100, 2, both));
    ck_fails(
        trli_checkpoint_read(test_ctx, layout, "out/checkpoint", &state, 2, elsewhere), TRL_ERR_INPUT,
        "field 'u.x' of checkpoint 'out/checkpoint/00000100.h5' is at location 'xface', in the deck it is at 'yface'");
    trl_context_clear_diagnostics(test_ctx);
    ck_fails(trli_checkpoint_read(test_ctx, layout, "out/checkpoint", &state, 3, more), TRL_ERR_INPUT,
             "checkpoint 'out/checkpoint/00000100.h5' has no field 'w', which the deck advances in time");
    trl_context_clear_diagnostics(test_ctx);
    ck_fails(trli_checkpoint_read(test_ctx, layout, "out/checkpoint", &state, 1, both), TRL_ERR_INPUT,
             "checkpoint 'out/checkpoint/00000100.h5' has a field 'u.x', which the deck does not advance in time");
    trl_context_clear_diagnostics(test_ctx);
    ck_fails(read_on(test_ctx, other, "out/checkpoint", &state, &same), TRL_ERR_INPUT,
             "'out/checkpoint/00000100.h5' belongs to another grid: its cells is [8, 6], that of the deck is [16, 6]");
    fixture_destroy(&t);
    fixture_destroy(&u);
    fixture_destroy(&v);
    fixture_destroy(&w);
    trl_layout_destroy(&layout);
    trl_layout_destroy(&other);
}
END_TEST

START_TEST(keeps_the_previous_checkpoint_when_the_disk_is_full)
{
    const trl_grid grid = fixture_grid(3, 24, 20, 16, false);
    trl_layout *layout = fixture_layout(test_ctx, &grid);
    trli_checkpoint_state state;
    bool same;
    start_empty();
    ck_ok(write_on(test_ctx, layout, 1, 100));
    fixture_limit(100000);
    trl_err err = write_on(test_ctx, layout, 1, 200);
    fixture_limit(0);
    ck_assert_int_eq(err, TRL_ERR_IO);
    ck_assert_ptr_nonnull(strstr(test_messages(), " bytes in 'out/checkpoint/00000200.h5.tmp': File too large"));
    ck_assert(fixture_all(!fixture_exists("out/checkpoint/00000200.h5.tmp") &&
                          !fixture_exists("out/checkpoint/00000200.h5")));
    trl_context_clear_diagnostics(test_ctx);
    /* Not even room for the empty file. */
    fixture_limit(100);
    err = write_on(test_ctx, layout, 1, 200);
    fixture_limit(0);
    ck_assert_int_eq(err, TRL_ERR_IO);
    ck_assert_ptr_nonnull(strstr(test_messages(), "cannot write 'out/checkpoint/00000200.h5.tmp': File too large"));
    ck_ok(read_on(test_ctx, layout, "out/checkpoint", &state, &same));
    ck_assert(fixture_all(same && state.step == 100));
    trl_layout_destroy(&layout);
}
END_TEST

START_TEST(keeps_the_previous_checkpoint_when_one_rank_cannot_write)
{
    const trl_grid grid = fixture_grid(3, 24, 20, 16, false);
    trl_layout *layout = fixture_layout(test_ctx, &grid);
    trli_checkpoint_state state;
    bool same;
    int last = trl_context_ranks(test_ctx) - 1;
    start_empty();
    if (last > 0) {
        ck_ok(write_on(test_ctx, layout, 1, 100));
        if (trl_context_rank(test_ctx) == last) fixture_limit(4096);
        trl_err err = write_on(test_ctx, layout, 1, 200);
        fixture_limit(0);
        MPI_Barrier(MPI_COMM_WORLD);
        ck_assert_int_eq(err, TRL_ERR_IO);
        ck_assert_ptr_nonnull(strstr(test_messages(), "cannot write 'out/checkpoint/00000200.h5.tmp': File too large"));
        ck_assert(fixture_all(!fixture_exists("out/checkpoint/00000200.h5.tmp")));
        trl_context_clear_diagnostics(test_ctx);
        ck_ok(read_on(test_ctx, layout, "out/checkpoint", &state, &same));
        ck_assert(fixture_all(same && state.step == 100));
    }
    trl_layout_destroy(&layout);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, reads_back_the_state_and_every_bit);
    tcase_add_test(tc, keeps_the_bits_of_special_values);
    tcase_add_test(tc, continues_on_another_number_of_ranks);
    tcase_add_test(tc, keeps_the_newest_and_removes_the_rest);
    tcase_add_test(tc, warns_when_an_old_checkpoint_stays);
    tcase_add_test(tc, skips_damaged_checkpoints_with_a_warning);
    tcase_add_test(tc, reports_a_field_without_location);
    tcase_add_test(tc, says_what_a_file_lacks_to_be_a_checkpoint);
    tcase_add_test(tc, refuses_the_checkpoint_of_another_problem);
    tcase_add_test(tc, keeps_the_previous_checkpoint_when_the_disk_is_full);
    tcase_add_test(tc, keeps_the_previous_checkpoint_when_one_rank_cannot_write);
}

TRL_TEST_MAIN("checkpoint", add_tests)
