/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
// ctest: np=1,2,3,4
#include "exchange_fixture.h"

START_TEST(fills_the_ghosts_of_a_line)
{
    static const int cuts[][3] = {{1, 1, 1}, {2, 1, 1}, {4, 1, 1}, {5, 1, 1}};
    for (int width = 0; width <= 3; ++width) {
        trl_footprint f = star(width, 1);
        check_everywhere(1, (trl_gidx[3]){17, 1, 1}, 4, cuts, &f);
    }
    trl_footprint f = lopsided(1);
    check_everywhere(1, (trl_gidx[3]){17, 1, 1}, 4, cuts, &f);
}
END_TEST

START_TEST(fills_the_ghosts_of_a_plane)
{
    static const int cuts[][3] = {{1, 1, 1}, {2, 1, 1}, {1, 3, 1}, {2, 2, 1}, {3, 3, 1}};
    for (int width = 1; width <= 3; ++width) {
        trl_footprint arms = star(width, 2), all = cube(width, 2);
        check_everywhere(2, (trl_gidx[3]){13, 10, 1}, 5, cuts, &arms);
        check_everywhere(2, (trl_gidx[3]){13, 10, 1}, 5, cuts, &all);
    }
    trl_footprint f = lopsided(2);
    check_everywhere(2, (trl_gidx[3]){13, 10, 1}, 5, cuts, &f);
}
END_TEST

START_TEST(fills_the_ghosts_of_a_box)
{
    static const int cuts[][3] = {{1, 2, 2}, {2, 2, 2}, {3, 1, 2}};
    trl_footprint arms = star(1, 3), all = cube(2, 3), some = lopsided(3);
    check_everywhere(3, (trl_gidx[3]){9, 7, 5}, 3, cuts, &arms);
    check_everywhere(3, (trl_gidx[3]){9, 7, 5}, 3, cuts, &all);
    check_everywhere(3, (trl_gidx[3]){9, 12, 6}, 3, cuts, &some);
}
END_TEST

START_TEST(one_cell_patches_suffice_for_one_layer)
{
    static const int cuts[][3] = {{4, 3, 1}};
    trl_footprint f = cube(1, 2);
    check_everywhere(2, (trl_gidx[3]){4, 3, 1}, 1, cuts, &f);
}
END_TEST

START_TEST(a_periodic_axis_of_one_cell_wraps_onto_itself)
{
    if (ranks() > 1) return;
    for (int periodic = 0; periodic < 4; ++periodic) {
        trl_grid grid = make_grid(2, (trl_gidx[3]){1, 1, 1}, periodic);
        problem p = {.nfields = 2,
                     .field = {{.footprint = cube(1, 2)}, {.location = TRL_ZEDGE, .footprint = cube(1, 2)}}};
        check_exchange(&p, &grid, NULL);
    }
}
END_TEST

START_TEST(each_field_gets_the_directions_of_its_own_footprint)
{
    trl_grid grid = make_grid(3, (trl_gidx[3]){8, 12, 8}, 5);
    problem p = {.nfields = 5,
                 .field = {{.location = TRL_CELL, .footprint = star(2, 3)},
                           {.location = TRL_XFACE, .footprint = cube(1, 3)},
                           {.location = TRL_CELL, .footprint = {0}},
                           {.location = TRL_NODE, .footprint = lopsided(3)},
                           {.location = TRL_YFACE, .footprint = star(1, 2), .type = TRL_I64}}};
    check_exchange(&p, &grid, (int[3]){2, 2, 2});
    check_exchange(&p, &grid, NULL);
}
END_TEST

START_TEST(no_fields_make_an_exchange_that_is_done_at_once)
{
    trl_grid grid = make_grid(1, (trl_gidx[3]){8, 1, 1}, 1);
    problem p = {.nfields = 0};
    check_exchange(&p, &grid, NULL);
}
END_TEST

START_TEST(values_of_four_bytes_are_exchanged_too)
{
    trl_grid grid = make_grid(1, (trl_gidx[3]){12, 1, 1}, 1);
    problem p = {.nfields = 2,
                 .field = {{.footprint = star(3, 1), .type = TRL_F32}, {.footprint = star(1, 1), .type = TRL_I32}}};
    setup(&p, &grid, (int[3]){4, 1, 1});
    for (int f = 0; f < 2; ++f) {
        for (int l = 0; l < p.layout->nlocal; ++l) {
            int32_t *at = p.arrays[f][l].at, first = (int32_t)p.layout->patch[l].first[0];
            for (int i = 0; i < 3; ++i) at[i] = 100 * f + first + i;
        }
    }
    bool good = exchange_once(&p) == TRL_OK;
    for (int f = 0; f < 2; ++f) {
        int width = f == 0 ? 3 : 1;
        for (int l = 0; l < p.layout->nlocal; ++l) {
            int32_t *at = p.arrays[f][l].at, first = (int32_t)p.layout->patch[l].first[0];
            for (int i = -width; i < 3 + width; ++i) good = good && at[i] == 100 * f + (first + i + 12) % 12;
        }
    }
    ck_assert(on_all_ranks(good));
    teardown(&p);
}
END_TEST

START_TEST(an_exchange_allocates_nothing)
{
    trl_grid grid = make_grid(2, (trl_gidx[3]){16, 16, 1}, 3);
    problem p = {.nfields = 1, .field = {{.footprint = cube(2, 2)}}};
    trl_memory_stats before, after;
    setup(&p, &grid, (int[3]){2, 4, 1});
    visit_all(&p, true);
    trl_memory_get_stats(test_ctx, &before);
    bool good = true;
    for (int i = 0; i < 2; ++i) good = good && exchange_once(&p) == TRL_OK;
    trl_memory_get_stats(test_ctx, &after);
    ck_assert(on_all_ranks(good && before.allocations == after.allocations));
    teardown(&p);
}
END_TEST

START_TEST(traffic_counts_one_message_for_each_neighbouring_rank)
{
    trl_grid grid = make_grid(2, (trl_gidx[3]){8, (trl_gidx)8 * ranks(), 1}, 2);
    problem p = {.nfields = 2, .field = {{.footprint = star(1, 2)}, {.location = TRL_XFACE, .footprint = cube(2, 2)}}};
    int64_t bytes, messages;
    setup_owned(&p, &grid, (int[3]){1, 2 * ranks(), 1}, &(trl_owners){.order = TRL_OWNERS_BLOCKS});
    trl_exchange_traffic(p.exchange, &bytes, &messages);
    int64_t neighbours = ranks() < 3 ? ranks() - 1 : 2;
    int64_t each_side = 8 * 8 + 2 * 9 * 8; /* one row of cells and two of x-faces */
    ck_assert(on_all_ranks(messages == neighbours));
    ck_assert(on_all_ranks(bytes == (ranks() == 1 ? 0 : 2 * each_side)));
    teardown(&p);
}
END_TEST

START_TEST(finish_does_not_wait_for_the_lock)
{
    trl_grid grid = make_grid(1, (trl_gidx[3]){16, 1, 1}, 1);
    problem p = {.nfields = 1, .field = {{.footprint = star(1, 1)}}};
    bool done = true;
    setup(&p, &grid, NULL);
    visit_all(&p, true);
    trl_err begun = trl_exchange_begin(p.exchange, arrays_of(&p));
    trl_context_mpi_lock(test_ctx);
    trl_err err = trl_exchange_finish(p.exchange, arrays_of(&p), &done);
    trl_context_mpi_unlock(test_ctx);
    bool good = begun == TRL_OK && err == TRL_OK && done == (ranks() == 1);
    while (err == TRL_OK && !done) err = trl_exchange_finish(p.exchange, arrays_of(&p), &done);
    ck_assert(on_all_ranks(good && visit_all(&p, false) == 0));
    teardown(&p);
}
END_TEST

/* ---- misuse and failures ---- */

START_TEST(refuses_stencils_wider_than_a_patch)
{
    trl_grid grid = make_grid(2, (trl_gidx[3]){32, 11, 1}, 0);
    trl_exchange_field fields[2] = {{.footprint = star(1, 2)},
                                    {.location = TRL_YFACE, .footprint = star(3, 2), .name = "v"}};
    trl_layout *layout;
    trl_exchange *exchange;
    ck_ok(trl_layout_create(test_ctx, &grid, (int[3]){1, 4, 1}, NULL, &layout));
    ck_fails(trl_exchange_create(test_ctx, layout, 2, fields, &exchange), TRL_ERR_INPUT,
             "patches: stencils reach 3 points of 'v' along y, but the thinnest of the 4 patches "
             "there has 2 cells and needs 3; use fewer patches or ranks, or more cells along y");
    ck_assert_ptr_null(exchange);
    trl_layout_destroy(&layout);
}
END_TEST

START_TEST(stencils_wider_than_a_single_patch_without_neighbours_are_fine)
{
    trl_grid grid = make_grid(2, (trl_gidx[3]){2, 16, 1}, 2);
    trl_footprint f = star(3, 2);
    problem p = {.nfields = 1, .field = {{.footprint = f}}};
    check_exchange(&p, &grid, (int[3]){1, 4, 1});
}
END_TEST

START_TEST(refuses_messages_longer_than_mpi_counts)
{
    trl_grid grid = make_grid(3, (trl_gidx[3]){1 << 16, 1 << 16, 4}, 0);
    trl_exchange_field field = {.footprint = star(1, 3)};
    trl_layout *layout;
    trl_exchange *exchange;
    if (ranks() == 1) return;
    ck_ok(trl_layout_create(test_ctx, &grid, (int[3]){1, 1, 4}, NULL, &layout));
    ck_fails(trl_exchange_create(test_ctx, layout, 1, &field, &exchange), TRL_ERR_INPUT,
             "exceed the 17179869176 bytes of one message; run on more ranks or exchange fewer fields");
    ck_assert_ptr_null(exchange);
    trl_layout_destroy(&layout);
}
END_TEST

START_TEST(refuses_layouts_of_which_ranks_have_different_ones)
{
    trl_grid grid = make_grid(2, (trl_gidx[3]){16, 16, 1}, 1);
    const trl_exchange_field field = {.footprint = star(1, 2)};
    for (int what = 0; what < 2 && ranks() > 1; ++what) {
        const bool other = trl_context_rank(test_ctx) == 1;
        const trl_owners owners = {.order = TRL_OWNERS_RANDOM, .seed = what == 0 && other ? 2 : 1};
        trl_layout *layout;
        trl_exchange *exchange;
        if (what == 1 && other) grid.cells[0] = 17;
        ck_ok(trl_layout_create_owned(test_ctx, &grid, (int[3]){4, 4, 1}, &owners, NULL, &layout));
        const trl_err err = trl_exchange_create(test_ctx, layout, 1, &field, &exchange);
        ck_assert_msg(on_all_ranks(err == TRL_ERR_USAGE && !exchange && strstr(test_messages(), "layouts differ")),
                      "%d: %s", what, test_messages());
        test_clear();
        trl_layout_destroy(&layout);
        grid.cells[0] = 16;
    }
}
END_TEST

START_TEST(refuses_arrays_without_the_ghosts)
{
    trl_grid grid = make_grid(1, (trl_gidx[3]){16, 1, 1}, 1);
    problem p = {.nfields = 1, .field = {{.footprint = star(2, 1)}}};
    setup(&p, &grid, (int[3]){4, 1, 1});
    p.arrays[0][0].held.hi[0] -= SPARE + 1;
    char expected[200];
    snprintf(expected, sizeof expected,
             "exchange: the array of field 0 on patch %d holds points -3 to 4 along x, but points 4 to 5 take part; "
             "allocate the hull of the footprint",
             p.layout->local[0]);
    trl_err err = trl_exchange_begin(p.exchange, arrays_of(&p));
    bool good = err == TRL_ERR_USAGE && strstr(test_messages(), expected) != NULL;
    ck_assert_msg(on_all_ranks(good), "%s", test_messages());
    teardown(&p);
}
END_TEST

START_TEST(refuses_arrays_of_another_type)
{
    trl_grid grid = make_grid(1, (trl_gidx[3]){16, 1, 1}, 1);
    problem p = {.nfields = 1, .field = {{.footprint = star(2, 1)}}};
    setup(&p, &grid, (int[3]){4, 1, 1});
    p.arrays[0][0].type = TRL_F32;
    trl_err err = trl_exchange_begin(p.exchange, arrays_of(&p));
    p.arrays[0][0].type = TRL_F64;
    bool good = err == TRL_ERR_USAGE &&
                strstr(test_messages(), "has values of 4 bytes; the exchange was created for 8") != NULL;
    ck_assert_msg(on_all_ranks(good), "%s", test_messages());
    teardown(&p);
}
END_TEST

START_TEST(begin_and_finish_must_alternate)
{
    trl_grid grid = make_grid(1, (trl_gidx[3]){16, 1, 1}, 1);
    problem p = {.nfields = 1, .field = {{.footprint = star(1, 1)}}};
    bool done = true;
    setup(&p, &grid, NULL);
    visit_all(&p, true);
    bool good = trl_exchange_finish(p.exchange, arrays_of(&p), &done) == TRL_ERR_USAGE && !done;
    good = good && strstr(test_messages(), "trl_exchange_finish without trl_exchange_begin before it") != NULL;
    good = good && trl_exchange_begin(p.exchange, arrays_of(&p)) == TRL_OK;
    good = good && trl_exchange_begin(p.exchange, arrays_of(&p)) == TRL_ERR_USAGE;
    good = good &&
           strstr(test_messages(), "begun again before trl_exchange_finish said that the last one is done") != NULL;
    while (good && !done) good = trl_exchange_finish(p.exchange, arrays_of(&p), &done) == TRL_OK;
    ck_assert(on_all_ranks(good && visit_all(&p, false) == 0));
    teardown(&p);
}
END_TEST

START_TEST(an_exchange_that_a_failed_run_left_under_way_can_be_destroyed)
{
    trl_grid grid = make_grid(2, (trl_gidx[3]){16, 8192, 1}, 1); /* messages too long for MPI to buffer */
    problem p = {.nfields = 1, .field = {{.footprint = star(1, 2)}}};
    trl_memory_stats before, after;
    trl_memory_get_stats(test_ctx, &before);
    setup(&p, &grid, (int[3]){ranks(), 1, 1});
    visit_all(&p, true);
    bool good = exchange_once(&p) == TRL_OK;
    if (trl_context_rank(test_ctx) == 0) good = good && trl_exchange_begin(p.exchange, arrays_of(&p)) == TRL_OK;
    teardown(&p);
    trl_memory_get_stats(test_ctx, &after);
    ck_assert(on_all_ranks(good && before.bytes == after.bytes));
}
END_TEST

/* ---- failures of MPI, by wrapping its functions ---- */

static const char *failing_call = "";

static bool fails_now(const char *call)
{
    return strcmp(call, failing_call) == 0;
}

int MPI_Recv_init(void *buffer, int n, MPI_Datatype type, int peer, int tag, MPI_Comm comm, MPI_Request *request)
{
    return fails_now("MPI_Recv_init") ? MPI_ERR_OTHER : PMPI_Recv_init(buffer, n, type, peer, tag, comm, request);
}

int MPI_Send_init(const void *buffer, int n, MPI_Datatype type, int peer, int tag, MPI_Comm comm, MPI_Request *request)
{
    return fails_now("MPI_Send_init") ? MPI_ERR_OTHER : PMPI_Send_init(buffer, n, type, peer, tag, comm, request);
}

int MPI_Startall(int n, MPI_Request *requests)
{
    return fails_now("MPI_Startall") ? MPI_ERR_OTHER : PMPI_Startall(n, requests);
}

int MPI_Testall(int n, MPI_Request *requests, int *flag, MPI_Status *statuses)
{
    return fails_now("MPI_Testall") ? MPI_ERR_OTHER : PMPI_Testall(n, requests, flag, statuses);
}

/* A rank whose communication failed is lost, and its context with it: each failure has its own. */
static trl_context *begin_loss(void)
{
    trl_context *kept = test_ctx;
    ck_assert_int_eq(trl_context_create(MPI_COMM_WORLD, NULL, &test_ctx), TRL_OK);
    return kept;
}

static void end_loss(trl_context *kept)
{
    trl_context_destroy(&test_ctx);
    test_ctx = kept;
}

START_TEST(failures_of_mpi_during_creation_name_the_call)
{
    static const char *const calls[] = {"MPI_Recv_init", "MPI_Send_init"};
    trl_grid grid = make_grid(1, (trl_gidx[3]){16, 1, 1}, 1);
    trl_exchange_field field = {.footprint = star(1, 1)};
    for (int i = 0; i < 2 && ranks() > 1; ++i) {
        trl_layout *layout;
        trl_exchange *exchange;
        char expected[80];
        trl_context *kept = begin_loss();
        ck_ok(trl_layout_create(test_ctx, &grid, NULL, NULL, &layout));
        snprintf(expected, sizeof expected, "%s failed on rank ", calls[i]);
        failing_call = calls[i];
        trl_err err = trl_exchange_create(test_ctx, layout, 1, &field, &exchange);
        failing_call = "";
        bool good = err == TRL_ERR_MPI && exchange == NULL && strstr(test_messages(), expected) != NULL;
        good = good && trl_context_lost(test_ctx) && trl_context_agree(test_ctx, TRL_OK) == TRL_ERR_MPI;
        ck_assert_msg(on_all_ranks(good), "%s: %s", calls[i], test_messages());
        trl_layout_destroy(&layout);
        end_loss(kept);
    }
}
END_TEST

START_TEST(failures_of_mpi_during_an_exchange_name_the_call)
{
    static const char *const calls[] = {"MPI_Startall", "MPI_Testall"};
    static trl_exchange *volatile left_to_mpi; /* with its buffers: what a lost rank began is not freed */
    trl_grid grid = make_grid(1, (trl_gidx[3]){16, 1, 1}, 1);
    for (int i = 0; i < 2 && ranks() > 1; ++i) {
        problem p = {.nfields = 1, .field = {{.footprint = star(1, 1)}}};
        char expected[80];
        bool done = false;
        trl_context *kept = begin_loss();
        setup(&p, &grid, NULL);
        visit_all(&p, true);
        snprintf(expected, sizeof expected, "%s failed on rank ", calls[i]);
        failing_call = calls[i];
        trl_err err = trl_exchange_begin(p.exchange, arrays_of(&p));
        if (err == TRL_OK) err = trl_exchange_finish(p.exchange, arrays_of(&p), &done);
        failing_call = "";
        bool good = err == TRL_ERR_MPI && !done && strstr(test_messages(), expected) != NULL;
        ck_assert_msg(on_all_ranks(good), "%s: %s", calls[i], test_messages());
        if (i == 1) left_to_mpi = p.exchange;
        teardown(&p);
        end_loss(kept);
    }
    (void)left_to_mpi;
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, fills_the_ghosts_of_a_line);
    tcase_add_test(tc, fills_the_ghosts_of_a_plane);
    tcase_add_test(tc, fills_the_ghosts_of_a_box);
    tcase_add_test(tc, one_cell_patches_suffice_for_one_layer);
    tcase_add_test(tc, a_periodic_axis_of_one_cell_wraps_onto_itself);
    tcase_add_test(tc, each_field_gets_the_directions_of_its_own_footprint);
    tcase_add_test(tc, no_fields_make_an_exchange_that_is_done_at_once);
    tcase_add_test(tc, values_of_four_bytes_are_exchanged_too);
    tcase_add_test(tc, an_exchange_allocates_nothing);
    tcase_add_test(tc, traffic_counts_one_message_for_each_neighbouring_rank);
    tcase_add_test(tc, finish_does_not_wait_for_the_lock);
    tcase_add_test(tc, refuses_stencils_wider_than_a_patch);
    tcase_add_test(tc, stencils_wider_than_a_single_patch_without_neighbours_are_fine);
    tcase_add_test(tc, refuses_messages_longer_than_mpi_counts);
    tcase_add_test(tc, refuses_layouts_of_which_ranks_have_different_ones);
    tcase_add_test(tc, refuses_arrays_without_the_ghosts);
    tcase_add_test(tc, refuses_arrays_of_another_type);
    tcase_add_test(tc, begin_and_finish_must_alternate);
    tcase_add_test(tc, an_exchange_that_a_failed_run_left_under_way_can_be_destroyed);
    tcase_add_test(tc, failures_of_mpi_during_creation_name_the_call);
    tcase_add_test(tc, failures_of_mpi_during_an_exchange_name_the_call);
}

TRL_TEST_MAIN("exchange", add_tests)
