/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The memory plan against lifetimes derived from the steps alone. */
// ctest: np=1,2 timeout=300 sanitize=1
#include <glob.h>
#include <inttypes.h>

#include "model_run_impl.h"
#include "plan_impl.h"
#include "problem_fixture.h"
#include "slot_plan_impl.h"

#include <context_impl.h>
#include <simulation_impl.h>
#include <spatialops_impl.h>

/* Of a field's arrays, rows rounded to cache lines included. */
static int64_t bytes_of(int field)
{
    const trli_model *m = sim->model;
    int64_t values = 0;
    for (int p = 0; p < m->layout->nlocal; ++p) {
        trl_array array = *trli_shape_of(m, field, p);
        ptrdiff_t origin;
        values += trli_lay_out(&array, m->layout->grid.dim, m->settings.line, &origin);
    }
    return values * (int64_t)sizeof(double);
}

/* first and last step of a program that touch a field; last < first: none does. */
static void lifetime(const trli_program *program, int field, int *first, int *last)
{
    *first = program->nsteps;
    *last = -1;
    for (int i = 0; i < program->nsteps; ++i) {
        const trli_step *s = &program->step[i];
        const trli_step_plan *plan = &program->plan->step[i];
        bool touched = false;
        if (!plan->live) continue;
        for (int k = 0; k < s->nout; ++k) touched |= s->field[k] == field && program->plan->demand[field].live;
        for (int k = 0; k < plan->ninputs; ++k) touched |= plan->input[k] == field;
        for (int b = 0; b < plan->nslabs; ++b)
            for (int k = 0; k < plan->slab[b].ninputs; ++k) touched |= plan->slab[b].input[k] == field;
        if (!touched) continue;
        if (i < *first) *first = i;
        *last = i;
    }
}

/* The most bytes of fields that are live at once, in any step of any program. Persistent ones always are. */
static int64_t most_live(void)
{
    const trli_model *m = sim->model;
    int64_t most = 0, kept = 0;
    for (int f = 0; f < m->nfields; ++f) kept += m->field[f].persistent ? bytes_of(f) : 0;
    for (int i = 0; i < m->nprograms; ++i) {
        const trli_program *program = m->program[i];
        int64_t *live = calloc((size_t)program->nsteps + 1, sizeof *live);
        for (int f = 0; f < m->nfields; ++f) {
            int first, last;
            if (m->field[f].persistent) continue;
            lifetime(program, f, &first, &last);
            for (int s = first; s <= last; ++s) live[s] += bytes_of(f);
        }
        for (int s = 0; s < program->nsteps; ++s)
            if (live[s] > most) most = live[s];
        free(live);
    }
    return kept + most;
}

static trl_err open_deck(const char *path, int nsets, const char *const *set)
{
    static const char *const plugins = TRL_TEST_PLUGIN_DIR "/../plugins";
    trl_err err = TRL_OK;
    close_problem();
    TRL_TRY(trl_registry_create(test_ctx, &registry));
    const trli_deck_request request = {
        .path = path, .nsets = nsets, .set = set, .nfolders = 1, .plugin_folder = &plugins};
    TRL_TRY(trli_deck_read(test_ctx, registry, &request, &deck));
    TRL_TRY(create_simulation());
done:
    return err;
}

/* Bytes of all fields that have a slot, were none to share; of the slots alone. */
static int64_t bytes_unshared(void)
{
    int64_t all = 0;
    for (int f = 0; f < sim->model->nfields; ++f) all += sim->model->field[f].slot >= 0 ? bytes_of(f) : 0;
    return all;
}

static int64_t bytes_of_slots(void)
{
    return sim->model->slots->bytes - (int64_t)sim->model->run->scratch_bytes * sim->model->run->nworkers;
}

/* Check the plan of a deck; whether fields share memory in it. */
static bool check_plan(const char *path, int nsets, const char *const *set)
{
    trl_context_clear_diagnostics(test_ctx);
    ck_ok(open_deck(path, nsets, set));
    int64_t live = most_live(), planned = bytes_of_slots();
    ck_assert_int_ge(planned, live);
    ck_assert_msg(planned <= live + live / 20, "%s%s%s: %" PRId64 " bytes planned, %" PRId64 " live", path,
                  nsets ? " " : "", nsets ? set[nsets - 1] : "", planned, live);
    return bytes_unshared() > live;
}

/* Whether a deck has a time, in steps of a dt of its own, and no terms that are implicit. */
static bool takes_rk4(const char *path)
{
    char text[8192] = "";
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    const char *time = strstr(text, "\ntime:");
    return time && !strstr(time, "tolerance") && !strstr(text, "implicit:");
}

START_TEST(the_plan_of_no_deck_is_above_its_live_fields_by_more_than_a_twentieth)
{
    static const char *const set[] = {"time.method=rk4", "run.fusion=none", "run.fusion=node"};
    glob_t decks;
    int shared = 0, read = 0;
    ck_assert_int_eq(glob(TRL_TEST_SOURCE_DIR "/../inputs/decks/*.yaml", 0, NULL, &decks), 0);
    for (size_t i = 0; i < decks.gl_pathc; ++i) {
        const char *path = decks.gl_pathv[i];
        if (!test_has((int)i, TEST_SANITIZED ? 4 : 1)) continue;
        if (strstr(path, "hot_start")) continue; /* begins with another deck's output */
        const int first = !takes_rk4(path);
        for (int n = 0; n <= 3 - first; ++n, ++read) shared += check_plan(path, n, &set[first]);
    }
    globfree(&decks);
    ck_assert_int_gt(shared, read / 3);
    close_problem();
}
END_TEST

static trl_pool_stats memory_of_fields(void)
{
    trl_pool_stats stats;
    trl_field_manager_get_stats(sim->frame->memory, 0, &stats);
    return stats;
}

START_TEST(the_measured_peak_is_the_planned_one)
{
    trl_simulation_stats stats;
    new_deck();
    say("grid: {cells: [24, 18], periodic: [true, true]}\nequations: {T: {initial: \"sin(2*pi*x)\", ddt: "
        "\"laplacian(T)\"}}\ntime: {method: ssprk3, dt: 1e-6, steps: 10}\nrun: {threads: 2}\n");
    ck_ok(open_problem());
    int64_t planned = sim->model->slots->bytes;
    ck_assert_int_eq(memory_of_fields().in_use, planned);
    ck_assert_int_eq(memory_of_fields().lost, 0);
    ck_ok(run_steps(10));
    trl_simulation_get_stats(sim, &stats);
    ck_assert_int_eq(stats.planned_bytes, planned);
    ck_assert_int_eq(stats.peak_bytes, planned);
    ck_assert_int_eq(stats.allocations_after_first_step, 0);
    ck_assert_int_eq(memory_of_fields().in_use, planned);
    close_problem();
}
END_TEST

/* Metadata grows with the equations, is given back, and meets the limit before step 0. */
START_TEST(the_limit_sees_what_many_equations_need)
{
    enum { N = 200 };
    trl_memory_stats before, during, after;
    size_t limit = test_ctx->memory.limit;
    trl_memory_get_stats(test_ctx, &before);
    new_deck();
    say("grid: {cells: [8, 8], periodic: [true, true]}\ntime: {dt: 1e-6, steps: 1}\nequations:\n");
    for (int i = 0; i < N; ++i)
        say("  u%d: {initial: \"0\", ddt: \"laplacian(u%d) + u%d*u%d\"}\n", i, i, (i + 1) % N, i);
    ck_ok(open_problem());
    int64_t planned = sim->model->slots->bytes;
    trl_memory_get_stats(test_ctx, &during);
    ck_assert_int_eq(memory_of_fields().in_use, planned);
    ck_assert_uint_gt(during.metadata_bytes - before.metadata_bytes, N * 1024);
    ck_assert_uint_ge(during.metadata_peak_bytes, during.metadata_bytes);
    ck_assert_int_gt(during.metadata_allocations - before.metadata_allocations, N);
    close_problem();
    trl_memory_get_stats(test_ctx, &after);
    ck_assert_uint_eq(after.metadata_bytes, before.metadata_bytes);
    test_ctx->memory.limit = during.bytes - (size_t)planned - (during.metadata_bytes - before.metadata_bytes) / 2;
    trl_err err = open_problem();
    test_ctx->memory.limit = limit;
    ck_fails(err, TRL_ERR_MEMORY, "no memory ");
    ck_assert_ptr_nonnull(strstr(test_messages(), " bytes are in use and "));
    trl_context_clear_diagnostics(test_ctx);
    close_problem();
}
END_TEST

START_TEST(a_problem_that_cannot_fit_is_refused_before_step_0_by_name)
{
    trl_memory_stats memory;
    size_t limit = test_ctx->memory.limit;
    new_deck();
    say("grid: {cells: [256, 256], periodic: [true, true]}\nequations: {T: {initial: \"0\", ddt: "
        "\"laplacian(T)\"}}\ntime: {dt: 1e-6, steps: 10}\n");
    ck_ok(open_problem());
    int64_t planned = sim->model->slots->bytes;
    close_problem();
    trl_memory_get_stats(test_ctx, &memory);
    /* One rank cannot, and all fail. */
    if (trl_context_rank(test_ctx) == trl_context_ranks(test_ctx) - 1)
        test_ctx->memory.limit = memory.bytes + (size_t)planned / 2;
    trl_err err = open_problem();
    test_ctx->memory.limit = limit;
    ck_fails(err, TRL_ERR_MEMORY, "the block '");
    ck_fails(err, TRL_ERR_MEMORY, "T");
    ck_fails(err, TRL_ERR_MEMORY, " (slot ");
    ck_fails(err, TRL_ERR_MEMORY, " bytes (");
    ck_fails(err, TRL_ERR_MEMORY, "more than memory 'host' of rank ");
    ck_fails(err, TRL_ERR_MEMORY, " are cached, everything on the rank ");
    ck_fails(err, TRL_ERR_MEMORY, "use a smaller grid or more nodes");
    trl_context_clear_diagnostics(test_ctx);
    ck_ok(open_problem());
    close_problem();
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, the_plan_of_no_deck_is_above_its_live_fields_by_more_than_a_twentieth);
    tcase_add_test(tc, the_measured_peak_is_the_planned_one);
    tcase_add_test(tc, the_limit_sees_what_many_equations_need);
    tcase_add_test(tc, a_problem_that_cannot_fit_is_refused_before_step_0_by_name);
}

TRL_TEST_MAIN("slots", add_tests)
