/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Checkpoints: exact on any number of ranks, and the previous one survives whatever happens to the next. */
// ctest: np=1,2,3,4
#include "output_fixture.h"

static const trli_checkpoint_state state_100 = {.step = 100, .time = 0.1, .dt = 1e-3, .time_start = -2.5, .lineage = 0};

/* Remove what an earlier test left. */
static void start_empty(void)
{
    ON_FIRST_RANK(if (system("rm -rf out")) abort());
}

static trl_err write_lineage(trl_context *ctx, const trl_layout *layout, int keep, trl_gidx step, int64_t *lineage)
{
    trli_checkpoint_state state = state_100;
    fixture_field t = fixture_create(layout, "T", TRL_CELL, (int)(step % 1000)),
                  u = fixture_create(layout, "u.x", TRL_XFACE, 2);
    const trli_output_field fields[] = {t.field, u.field};
    state.step = step;
    state.lineage = *lineage;
    trl_err err = trli_checkpoint_write(ctx, NULL, layout, "out", keep, &state, 2, fields);
    *lineage = state.lineage;
    fixture_destroy(&t);
    fixture_destroy(&u);
    return err;
}

static trl_err write_on(trl_context *ctx, const trl_layout *layout, int keep, trl_gidx step)
{
    int64_t lineage = 0;
    return write_lineage(ctx, layout, keep, step, &lineage);
}

static trl_err write_state(const trl_layout *layout, int keep, int n, const trli_output_field *fields)
{
    trli_checkpoint_state state = state_100;
    return trli_checkpoint_write(test_ctx, NULL, layout, "out", keep, &state, n, fields);
}

/* Read into empty fields; *same says whether every bit is what write_on wrote for that step. */
static trl_err read_on(trl_context *ctx, const trl_layout *layout, const char *path, trli_checkpoint_state *state,
                       bool *same)
{
    fixture_field t = fixture_create(layout, "T", TRL_CELL, -1), u = fixture_create(layout, "u.x", TRL_XFACE, -1);
    const trli_output_field fields[] = {u.field, t.field};
    *state = (trli_checkpoint_state){0};
    trl_err err = trli_checkpoint_read(ctx, layout, "out", path, state, 2, fields);
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
        ck_ok(read_on(test_ctx, layout, "out/checkpoint/00000100.nc", &state, &same));
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
    const trl_patch *patch = &layout->patch[0];
    fixture_field f = fixture_create(layout, "T", TRL_CELL, 0), g = fixture_create(layout, "T", TRL_CELL, -1);
    trli_checkpoint_state state;
    bool same = true;
    start_empty();
    memcpy(f.patch[0].at, bits + patch->first[0], (size_t)patch->cells[0] * sizeof *bits);
    ck_ok(write_state(layout, 1, 1, &f.field));
    ck_ok(trli_checkpoint_read(test_ctx, layout, "out", "out/checkpoint", &state, 1, &g.field));
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
        fixture_all(fixture_exists("out/checkpoint/100000001.nc") && fixture_exists("out/checkpoint/100000000.nc")));
    ck_assert(fixture_all(!fixture_exists("out/checkpoint/99999999.nc")));
    ck_ok(read_on(test_ctx, layout, "out/checkpoint", &state, &same));
    ck_assert(fixture_all(same && state.step == 100000001));
    ON_FIRST_RANK(fixture_leave_aside("out/checkpoint"), fixture_write("out/checkpoint/notes.txt", "", 0));
    ck_ok(write_on(test_ctx, layout, 2, 50));
    ck_assert(fixture_all(fixture_exists("out/checkpoint/00000050.nc") && fixture_exists("out/checkpoint/notes.txt")));
    ck_assert(fixture_all(fixture_entries("out/checkpoint") == 2));
    trl_layout_destroy(&layout);
}
END_TEST

START_TEST(leaves_the_checkpoints_of_other_runs_alone)
{
    const trl_grid grid = fixture_grid(1, 8, 1, 1, false);
    trl_layout *layout = fixture_layout(test_ctx, &grid);
    trli_checkpoint_state state;
    int64_t old = -1, new = -1, third = -1;
    bool same;
    start_empty();
    for (trl_gidx step = 100; step <= 400; step += 100) ck_ok(write_lineage(test_ctx, layout, 2, step, &old));
    ck_assert_int_eq(old, 0);
    for (trl_gidx step = 50; step <= 200; step += 50) ck_ok(write_lineage(test_ctx, layout, 2, step, &new));
    ck_assert_int_eq(new, 1);
    ck_assert(
        fixture_all(fixture_exists("out/checkpoint/00000300.nc") && fixture_exists("out/checkpoint/00000400.nc")));
    ck_assert(
        fixture_all(fixture_exists("out/checkpoint/00000150.nc") && fixture_exists("out/checkpoint/00000200.nc")));
    ck_assert(fixture_all(fixture_entries("out/checkpoint") == 4));
    /* The latest one is that of the latest run, not that of the latest step. */
    ck_ok(read_on(test_ctx, layout, "out/checkpoint", &state, &same));
    ck_assert(fixture_all(same && state.step == 200 && state.lineage == 1));
    /* A run that goes on from an older lineage begins one of its own. */
    ck_ok(read_on(test_ctx, layout, "out/checkpoint/00000300.nc", &state, &same));
    ck_assert(fixture_all(same && state.step == 300 && state.lineage == 0));
    third = state.lineage;
    ck_ok(write_lineage(test_ctx, layout, 2, 350, &third));
    ck_assert_int_eq(third, 2);
    ck_assert(fixture_all(fixture_entries("out/checkpoint") == 5));
    /* And so does one that goes on from another folder. */
    ON_FIRST_RANK(if (system("mv out/checkpoint elsewhere")) abort());
    ck_ok(read_on(test_ctx, layout, "elsewhere", &state, &same));
    ck_assert(fixture_all(same && state.step == 350 && state.lineage == -1));
    ON_FIRST_RANK(if (system("rm -r elsewhere")) abort());
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
        ON_FIRST_RANK(cut_file("out/checkpoint/00000200.nc", part[i]));
        ck_ok(read_on(test_ctx, layout, "out/checkpoint", &state, &same));
        ck_assert(fixture_all(same && state.step == 100));
        if (trl_context_rank(test_ctx) == 0)
            ck_assert_ptr_nonnull(
                strstr(test_messages(), "warning: checkpoint 'out/checkpoint/00000200.nc' is damaged and skipped: "));
        trl_context_clear_diagnostics(test_ctx);
    }
    ck_fails(read_on(test_ctx, layout, "out/checkpoint/00000200.nc", &state, &same), TRL_ERR_IO,
             "'out/checkpoint/00000200.nc' is not a whole checkpoint: its end is not that of a checkpoint");
    trl_context_clear_diagnostics(test_ctx);
    ON_FIRST_RANK(cut_file("out/checkpoint/00000100.nc", 0.5));
    ck_fails(read_on(test_ctx, layout, "out/checkpoint", &state, &same), TRL_ERR_IO,
             "no checkpoint in 'out/checkpoint' can be used: 00000200.nc (its end is not that of a checkpoint: it is "
             "truncated or damaged, or no checkpoint), 00000100.nc (its end is");
    trl_layout_destroy(&layout);
}
END_TEST

/* What is said of a damaged checkpoint that was asked for. */
static void fails_with(const trl_layout *layout, const char *path, const char *remedy)
{
    trli_checkpoint_state state;
    bool same;
    ck_fails(read_on(test_ctx, layout, path, &state, &same), TRL_ERR_IO, "is not a whole checkpoint: ");
    if (trl_context_rank(test_ctx) == 0) ck_assert_msg(strstr(test_messages(), remedy), "%s", test_messages());
    trl_context_clear_diagnostics(test_ctx);
}

START_TEST(names_the_newest_one_before_a_damaged_one)
{
    const trl_grid grid = fixture_grid(2, 8, 6, 1, false);
    trl_layout *layout = fixture_layout(test_ctx, &grid);
    start_empty();
    for (int step = 100; step <= 500; step += 100) ck_ok(write_on(test_ctx, layout, 5, step));
    ON_FIRST_RANK(cut_file("out/checkpoint/00000400.nc", 0.5));
    fails_with(layout, "out/checkpoint/00000400.nc",
               "fix: go on from the newest one before it that is whole: trellis run DECK --restart "
               "out/checkpoint/00000300.nc");
    ON_FIRST_RANK(cut_file("out/checkpoint/00000300.nc", 0.9));
    ON_FIRST_RANK(symlink("checkpoint/00000400.nc", "out/alias.nc"));
    fails_with(layout, "./out/checkpoint/../checkpoint/00000400.nc", "/00000200.nc");
    fails_with(layout, "out/alias.nc", "fix: name the output folder, or `latest`: ");
    ON_FIRST_RANK(cut_file("out/checkpoint/00000100.nc", 0.9));
    fails_with(layout, "out/checkpoint/00000100.nc", "fix: name the output folder, or `latest`: ");
    trl_layout_destroy(&layout);
}
END_TEST

static void flip(const char *path, long bit)
{
    FILE *file = fopen(path, "r+b");
    if (!file || fseek(file, bit / 8, SEEK_SET)) abort();
    int byte = fgetc(file);
    if (byte < 0 || fseek(file, bit / 8, SEEK_SET) || fputc(byte ^ 1 << bit % 8, file) < 0 || fclose(file)) abort();
}

START_TEST(sees_every_bit_that_flips)
{
    const long flips = trl_context_ranks(test_ctx) == 1 ? 200 : 30;
    const trl_grid grid = fixture_grid(2, 5, 3, 1, false);
    trl_layout *layout = fixture_layout(test_ctx, &grid);
    const char *path = "out/checkpoint/00000200.nc";
    trli_checkpoint_state state;
    struct stat status;
    bool same;
    start_empty();
    ck_ok(write_on(test_ctx, layout, 3, 100));
    ck_ok(write_on(test_ctx, layout, 3, 200));
    ck_assert_int_eq(stat(path, &status), 0);
    const long bits = 8 * (long)status.st_size;
    for (long i = 0; i < flips; ++i) {
        /* The last ones are those of the seal. */
        const long bit = i < flips / 2 ? (i * bits / (flips / 2) + i * 37 % 64) % bits : bits - 1 - 2 * (i - flips / 2);
        ON_FIRST_RANK(flip(path, bit));
        ck_ok(read_on(test_ctx, layout, "out/checkpoint", &state, &same));
        ck_assert_msg(fixture_all(same && state.step == 100), "bit %ld", bit);
        trl_context_clear_diagnostics(test_ctx);
        ON_FIRST_RANK(flip(path, bit));
    }
    ck_ok(read_on(test_ctx, layout, "out/checkpoint", &state, &same));
    ck_assert(fixture_all(same && state.step == 200));
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
    ck_ok(trli_fields_write(file, 1, 0, 1, &t.field));
    ck_fails(read_on(test_ctx, layout, "out/fields/00000001.nc", &state, &same), TRL_ERR_IO,
             "'out/fields/00000001.nc' is not a whole checkpoint: its end is not that of a checkpoint: it is truncated "
             "or damaged, or no checkpoint");
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
    const char *file = "out/checkpoint/00000100.nc";
    const trli_output_field both[] = {t.field, u.field}, elsewhere[] = {t.field, v.field},
                            more[] = {t.field, u.field, w.field};
    trli_checkpoint_state state;
    bool same;
    start_empty();
    ck_ok(write_state(layout, 1, 2, both));
    ck_fails(
        trli_checkpoint_read(test_ctx, layout, "out", file, &state, 2, elsewhere), TRL_ERR_INPUT,
        "checkpoint 'out/checkpoint/00000100.nc' does not fit the deck: its field 'u.x' is at location 'xface', in "
        "the deck it is at 'yface'");
    trl_context_clear_diagnostics(test_ctx);
    ck_fails(trli_checkpoint_read(test_ctx, layout, "out", "out/checkpoint", &state, 3, more), TRL_ERR_INPUT,
             "no checkpoint in 'out/checkpoint' can be used: 00000100.nc (it has no field 'w', which the deck advances "
             "in time)");
    trl_context_clear_diagnostics(test_ctx);
    ck_fails(trli_checkpoint_read(test_ctx, layout, "out", "out/checkpoint", &state, 1, both), TRL_ERR_INPUT,
             "00000100.nc (it has a field 'u.x', which the deck does not advance in time)");
    trl_context_clear_diagnostics(test_ctx);
    ck_fails(read_on(test_ctx, other, file, &state, &same), TRL_ERR_INPUT,
             "checkpoint 'out/checkpoint/00000100.nc' does not fit the deck: it belongs to another grid: its cells is "
             "[8, 6], that of the deck is [16, 6]");
    fixture_destroy(&t);
    fixture_destroy(&u);
    fixture_destroy(&v);
    fixture_destroy(&w);
    trl_layout_destroy(&layout);
    trl_layout_destroy(&other);
}
END_TEST

/* Leapfrog's rates are those half a step before, under names that no deck has. */
START_TEST(says_which_method_a_checkpoint_needs)
{
    const trl_grid grid = fixture_grid(2, 8, 6, 1, false);
    trl_layout *layout = fixture_layout(test_ctx, &grid);
    fixture_field w = fixture_create(layout, "w", TRL_CELL, 0), rate = fixture_create(layout, "w_t", TRL_CELL, 1),
                  half = fixture_create(layout, "w_t" TRL_HALF_STEP_BEFORE, TRL_CELL, 1);
    const trli_output_field of_leapfrog[] = {w.field, half.field}, of_others[] = {w.field, rate.field};
    const char *file = "out/checkpoint/00000100.nc";
    trli_checkpoint_state state;
    start_empty();
    ck_ok(write_state(layout, 1, 2, of_leapfrog));
    ck_fails(trli_checkpoint_read(test_ctx, layout, "out", file, &state, 2, of_others), TRL_ERR_INPUT,
             "does not fit the deck: it is one of leapfrog, with 'w_t' half a step before: set the method under 'time' "
             "to leapfrog");
    trl_context_clear_diagnostics(test_ctx);
    ck_fails(trli_checkpoint_read(test_ctx, layout, "out", file, &state, 1, of_others), TRL_ERR_INPUT,
             "it has a field 'w_t', which the deck does not advance in time");
    trl_context_clear_diagnostics(test_ctx);
    ck_ok(write_state(layout, 1, 2, of_others));
    ck_fails(
        trli_checkpoint_read(test_ctx, layout, "out", file, &state, 2, of_leapfrog), TRL_ERR_INPUT,
        "does not fit the deck: it is none of leapfrog, which needs 'w_t' half a step before: set the method under "
        "'time' to the one that wrote it");
    trl_context_clear_diagnostics(test_ctx);
    ck_ok(write_state(layout, 1, 1, of_others));
    ck_fails(trli_checkpoint_read(test_ctx, layout, "out", file, &state, 2, of_leapfrog), TRL_ERR_INPUT,
             "it has no field 'w_t', which the deck advances in time");
    fixture_destroy(&w);
    fixture_destroy(&rate);
    fixture_destroy(&half);
    trl_layout_destroy(&layout);
}
END_TEST

START_TEST(skips_checkpoints_that_do_not_fit)
{
    trl_grid grid = fixture_grid(2, 8, 6, 1, false), changed[5] = {grid, grid, grid, grid};
    static const char *const reason[] = {
        "its cells is [7, 6], that of the deck is [8, 6]", "its periodic is [0, 1], that of the deck is [0, 0]",
        "its origin is [0, 3], that of the deck is [0, 0.5]", "its length is [1, 9], that of the deck is [1, 2]",
        "its cells is [8, 6, 4], that of the deck is [8, 6]"};
    trl_layout *layout = fixture_layout(test_ctx, &grid);
    trli_checkpoint_state state;
    bool same;
    changed[0].cells[0] = 7;
    changed[1].periodic[1] = true;
    changed[2].origin[1] = 3;
    changed[3].length[1] = 9;
    changed[4] = fixture_grid(3, 8, 6, 4, false);
    start_empty();
    ck_ok(write_on(test_ctx, layout, 3, 100));
    for (int i = 0; i < 5; ++i) {
        trl_layout *other = fixture_layout(test_ctx, &changed[i]);
        ck_ok(write_on(test_ctx, other, 3, 200));
        ck_ok(read_on(test_ctx, layout, "out/checkpoint", &state, &same));
        ck_assert(fixture_all(same && state.step == 100));
        if (trl_context_rank(test_ctx) == 0) {
            const char *text =
                strstr(test_messages(), "warning: checkpoint 'out/checkpoint/00000200.nc' does not fit the "
                                        "deck and is skipped: it belongs to another grid: ");
            ck_assert_msg(text && strstr(text, reason[i]), "%s", test_messages());
        }
        trl_context_clear_diagnostics(test_ctx);
        trl_layout_destroy(&other);
    }
    trl_layout_destroy(&layout);
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
    ck_assert_ptr_nonnull(strstr(test_messages(), " bytes for 'out/checkpoint/00000200.nc': File too large"));
    ck_assert(fixture_all(fixture_entries("out/checkpoint") == 1));
    trl_context_clear_diagnostics(test_ctx);
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
        ck_assert_ptr_nonnull(strstr(test_messages(), "cannot write 'out/checkpoint/00000200.nc': File too large"));
        ck_assert(fixture_all(fixture_entries("out/checkpoint") == 1));
        trl_context_clear_diagnostics(test_ctx);
        ck_ok(read_on(test_ctx, layout, "out/checkpoint", &state, &same));
        ck_assert(fixture_all(same && state.step == 100));
    }
    trl_layout_destroy(&layout);
}
END_TEST

/* Write T and some optional fields; read T, and of optional ones those named, of which *found says which are there. */
static void exchange_optional(const trl_layout *layout, int written, const char *const *name, int n, bool *found)
{
    fixture_field t = fixture_create(layout, "T", TRL_CELL, 1), read = fixture_create(layout, "T", TRL_CELL, -1);
    fixture_field more[2], seen[2];
    trli_output_field to[3] = {t.field}, from[3] = {read.field};
    bool unused;
    trli_checkpoint_state state;
    for (int i = 0; i < 2; ++i) {
        more[i] = fixture_create(layout, i ? "p:b" : "p:a", TRL_CELL, 5 + i);
        seen[i] = fixture_create(layout, name[i], TRL_CELL, -1);
        to[i + 1] = more[i].field;
        to[i + 1].found = &unused;
        from[i + 1] = seen[i].field;
        from[i + 1].found = &found[i];
    }
    start_empty();
    ck_ok(write_state(layout, 1, 1 + written, to));
    ck_ok(trli_checkpoint_read(test_ctx, layout, "out", "out/checkpoint", &state, 1 + n, from));
    ck_assert(fixture_all(fixture_visit(layout, &read, 1, false)));
    for (int i = 0; i < n; ++i)
        if (found[i]) ck_assert(fixture_all(fixture_visit(layout, &seen[i], 5 + i, false)));
    for (int i = 0; i < 2; ++i) {
        fixture_destroy(&more[i]);
        fixture_destroy(&seen[i]);
    }
    fixture_destroy(&t);
    fixture_destroy(&read);
}

START_TEST(optional_fields_may_be_missing_on_either_side)
{
    static const char *const same[] = {"p:a", "p:b"}, *const other[] = {"p:a", "p:c"};
    const trl_grid grid = fixture_grid(2, 11, 7, 5, false);
    trl_layout *layout = fixture_layout(test_ctx, &grid);
    for (int written = 0; written <= 2; ++written)
        for (int n = 0; n <= 2; ++n) {
            bool found[2] = {true, true};
            exchange_optional(layout, written, same, n, found);
            for (int i = 0; i < n; ++i) ck_assert_int_eq(found[i], i < written);
        }
    bool found[2] = {false, true};
    exchange_optional(layout, 2, other, 2, found);
    ck_assert(found[0] && !found[1]);
    trl_layout_destroy(&layout);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, reads_back_the_state_and_every_bit);
    tcase_add_test(tc, keeps_the_bits_of_special_values);
    tcase_add_test(tc, continues_on_another_number_of_ranks);
    tcase_add_test(tc, keeps_the_newest_and_removes_the_rest);
    tcase_add_test(tc, leaves_the_checkpoints_of_other_runs_alone);
    tcase_add_test(tc, skips_damaged_checkpoints_with_a_warning);
    tcase_add_test(tc, names_the_newest_one_before_a_damaged_one);
    tcase_add_test(tc, sees_every_bit_that_flips);
    tcase_add_test(tc, says_which_method_a_checkpoint_needs);
    tcase_add_test(tc, skips_checkpoints_that_do_not_fit);
    tcase_add_test(tc, says_what_a_file_lacks_to_be_a_checkpoint);
    tcase_add_test(tc, refuses_the_checkpoint_of_another_problem);
    tcase_add_test(tc, optional_fields_may_be_missing_on_either_side);
    tcase_add_test(tc, keeps_the_previous_checkpoint_when_the_disk_is_full);
    tcase_add_test(tc, keeps_the_previous_checkpoint_when_one_rank_cannot_write);
}

TRL_TEST_MAIN("checkpoint", add_tests)
