// ctest: np=1,2
/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Output writers behind their table: which slots are called, and what failures leave. */
#include "trl_test.h"

#include <unistd.h>

#include "writers_impl.h"

static char events[400];

static void note(const char *event)
{
    strncat(events, event, sizeof events - strlen(events) - 1);
}

/* A writer that notes what it is asked; it fails when its steps reach 9. */
typedef struct notes {
    trl_context *ctx;
    int nseries;
} notes;

static trl_err open_notes(const trli_writer_request *request, void **state)
{
    notes *n = calloc(1, sizeof *n);
    ck_assert_ptr_nonnull(n);
    *n = (notes){request->ctx, request->nseries};
    note("open ");
    *state = n;
    return TRL_OK;
}

static trl_err note_fields(void *state, trl_gidx step, double time, int n, const trli_output_field *fields)
{
    const notes *of = state;
    ck_assert(time == 0.5 && n == 0 && !fields);
    note("fields ");
    return step < 9 ? TRL_OK : trl_fail(of->ctx, TRL_ERR_IO, NULL, "the disk is full");
}

static trl_err note_series(void *state, trl_gidx step, double time, const double *values)
{
    const notes *of = state;
    ck_assert(step == 3 && time == 0.5 && values[of->nseries - 1] == 7);
    note("series ");
    return TRL_OK;
}

static trl_err close_notes(void **state)
{
    free(*state);
    *state = NULL;
    note("close ");
    return TRL_OK;
}

static const trli_writer only_fields = {"f", .open = open_notes, .fields = note_fields, .close = close_notes};
static const trli_writer only_series = {"s", .open = open_notes, .series = note_series, .close = close_notes};
static const trli_writer unclosed = {"unclosed", .open = open_notes};
static const char *const names[] = {"a", "b"};

static trli_writer_request request_of(int nseries)
{
    events[0] = 0;
    return (trli_writer_request){.ctx = test_ctx, .folder = "out", .nseries = nseries, .series = names};
}

START_TEST(a_writer_is_asked_for_what_it_has_slots_for)
{
    const trli_writer *const writers[] = {&only_fields, &only_series};
    const double values[] = {1, 7};
    trli_writers set;
    trli_writer_request request = request_of(2);
    ck_ok(trli_writers_open(&request, writers, 2, &set));
    ck_ok(trli_writers_fields(&set, 3, 0.5, 0, NULL));
    ck_ok(trli_writers_series(&set, 3, 0.5, values));
    ck_ok(trli_writers_close(&set));
    ck_assert_str_eq(events, "open open fields series close close ");
    ck_ok(trli_writers_close(&set));
    request = request_of(0); /* no series: nothing for the second to do */
    ck_ok(trli_writers_open(&request, writers, 2, &set));
    ck_ok(trli_writers_close(&set));
    ck_assert_str_eq(events, "open close ");
}
END_TEST

START_TEST(a_writer_without_a_required_slot_is_refused_and_the_others_can_be_closed)
{
    const trli_writer *const writers[] = {&only_fields, &unclosed};
    trli_writers set;
    const trli_writer_request request = request_of(1);
    trl_err err = trli_writers_open(&request, writers, 2, &set);
    ck_fails(err, TRL_ERR_BUG, "output writer 'unclosed' lacks the required slot 'close'");
    ck_ok(trli_writers_close(&set));
    ck_assert_str_eq(events, "open close ");
}
END_TEST

START_TEST(the_first_writer_that_fails_ends_the_call)
{
    const trli_writer *const writers[] = {&only_fields, &only_fields};
    trli_writers set;
    const trli_writer_request request = request_of(0);
    ck_ok(trli_writers_open(&request, writers, 2, &set));
    ck_fails(trli_writers_fields(&set, 9, 0.5, 0, NULL), TRL_ERR_IO, "the disk is full");
    ck_ok(trli_writers_close(&set));
    ck_assert_str_eq(events, "open open fields close close ");
}
END_TEST

START_TEST(the_built_in_writers_make_files_of_fields_with_xdmf_and_a_series)
{
    const int cells[3] = {4, 3, 1};
    const double values[] = {1, 2};
    trl_grid grid = {.dim = 2, .length = {1, 1, 1}};
    trl_layout *layout;
    trli_writers set;
    for (int a = 0; a < 3; ++a) grid.cells[a] = cells[a];
    for (int a = 0; a < 3; ++a) grid.spacing[a] = grid.length[a] / cells[a];
    ck_ok(trl_layout_create(test_ctx, &grid, NULL, NULL, &layout));
    trli_writer_request request = request_of(2);
    request.layout = layout;
    ck_ok(trli_writers_open(&request, NULL, 0, &set));
    ck_ok(trli_writers_fields(&set, 3, 0.5, 0, NULL));
    ck_ok(trli_writers_series(&set, 3, 0.5, values));
    ck_ok(trli_writers_close(&set));
    ck_ok(trl_context_agree(test_ctx, TRL_OK));
    ck_assert(access("out/fields/00000003.nc", R_OK) == 0 && access("out/fields.xdmf", R_OK) == 0);
    ck_assert(access("out/series.csv", R_OK) == 0);
    trl_layout_destroy(&layout);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, a_writer_is_asked_for_what_it_has_slots_for);
    tcase_add_test(tc, a_writer_without_a_required_slot_is_refused_and_the_others_can_be_closed);
    tcase_add_test(tc, the_first_writer_that_fails_ends_the_call);
    tcase_add_test(tc, the_built_in_writers_make_files_of_fields_with_xdmf_and_a_series);
}

TRL_TEST_MAIN("writers", add_tests)
