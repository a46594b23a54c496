/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Ranks agree on a step while they are at the next one: they wait for nobody, and end at the same step with the same
 * message as if they had agreed at once. */
// ctest: np=2,3 sanitize=2 labels=gpu emulated=1
#include <limits.h>
#include <math.h>
#include <stdatomic.h>

#include "../expressions/problem_fixture.h"

#include "context_impl.h"
#include "device_impl.h"
#include "late_impl.h"

/* ---- an expression that is 0, but for what it does at some step on some rank ---- */

typedef enum deed { NOTHING, FAIL, NOT_FINITE, WAIT } deed;

static struct {
    deed deed;
    trl_err code; /* of FAIL */
    trl_gidx step;
    int rank;
    bool waited_in_vain;
    _Atomic bool told; /* rank 0 is at the step after */
} plan;
static MPI_Comm messages;

/* Rank 0, at the next step, lets the late rank go on. */
static void tell(void)
{
    if (atomic_exchange(&plan.told, true)) return;
    trl_context_mpi_lock(test_ctx);
    for (int r = 1; r < trl_context_ranks(test_ctx); ++r) {
        MPI_Request request;
        static char nothing;
        MPI_Isend(&nothing, 1, MPI_BYTE, r, 0, messages, &request);
        MPI_Request_free(&request);
    }
    trl_context_mpi_unlock(test_ctx);
}

static void wait_for_rank_0(void)
{
    const double started = MPI_Wtime();
    int there = 0;
    while (!there && MPI_Wtime() < started + 20) {
        trl_context_mpi_lock(test_ctx);
        MPI_Iprobe(0, 0, messages, &there, MPI_STATUS_IGNORE);
        trl_context_mpi_unlock(test_ctx);
        trli_agree_go_on(test_ctx); /* as workers do between tasks */
    }
    plan.waited_in_vain = !there;
}

static trl_err odd_advertise(const void *data, trl_deps *deps)
{
    (void)data;
    return trl_deps_compute(deps, "odd", TRL_CELL);
}

static trl_err odd_evaluate(const void *data, const trl_eval_args *args, const trl_box *box)
{
    const trl_array *to = &args->computed[0];
    const bool here = trl_context_rank(test_ctx) == plan.rank && args->step == plan.step;
    (void)data;
    for (trl_lidx j = box->lo[1]; j < box->hi[1]; ++j)
        for (trl_lidx i = box->lo[0]; i < box->hi[0]; ++i)
            ((double *)to->at)[trl_array_offset(to, i, j, 0)] = here && plan.deed == NOT_FINITE && i == 1 ? NAN : 0;
    if (plan.deed == WAIT && trl_context_rank(test_ctx) == 0 && args->step == plan.step + 1) tell();
    if (here && plan.deed == WAIT) wait_for_rank_0();
    return here && plan.deed == FAIL ? trl_fail(test_ctx, plan.code, NULL, "odd on rank %d", plan.rank) : TRL_OK;
}

static const trl_expr_type odd = {.abi = TRL_PLUGIN_ABI,
                                  .size = sizeof odd,
                                  .name = "odd",
                                  .doc = "0, with exceptions",
                                  .flags = TRL_EXPR_POINTWISE,
                                  .advertise_dependents = odd_advertise,
                                  .evaluate = odd_evaluate};
static const trl_expr_type *const types[] = {&odd, NULL};

/* ---- problems ---- */

static const char *series = "{}"; /* formulas of series */
static const char *written = "";  /* fields, of which series may have spectra */

/* Ranks with GPUs agree on the first step at once. */
static bool gpus(void)
{
    return trli_device_backend_count() > 0;
}

/* Without neighbours nothing but agreements could make a rank wait. */
static void open_odd(const char *slope, const char *method, int blocking)
{
    test_types = types;
    new_deck();
    say("grid: {cells: [6, 24], periodic: [true, true]}\n"
        "expressions: {o: {type: odd}}\n"
        "solvers: {s: {method: cg, preconditioner: none}, d: {method: direct}}\n"
        "equations: {T: {initial: \"sin(2*pi*y)\", ddt: %s\n"
        "time: {method: %s, steps: 12}\nrun: {%s, time_blocking: %d}\n"
        "output: {fields: [%s], series: {every: {steps: 1}, values: %s}}\n",
        slope, method, gpus() ? "compile: always, devices: gpu, placement: devices" : "compile: never", blocking,
        written, series);
    ck_ok(open_problem());
    ck_ok(trl_simulation_initialise(sim));
}

/* Of T, which may have another equation behind it; and the method. The first two need no messages of neighbours. */
#define BESIDE(formula) "\"" formula "\"}"
#define SOLVED(formula, solver) ", p: {initial: \"0\", solve: \"" formula "\", solver: " solver "}}"
#define BOUNDED(conductivity) "div(0.001*at(" conductivity ", faces)*grad(T))"
#define FLOW(u, v, more)                                                   \
    ", u: {location: xface, initial: \"0.1*cos(2*pi*y)\", ddt: " u "}\n, " \
    "v: {location: yface, initial: \"0.1\", ddt: " v "}}\n"                \
    "incompressible: {velocity: [u, v], pressure: p" more "}"
#define CARRIED "-div(advective_flux(u, [u, at(v, zedge)])) + at(odd, xface)"
static const char *const ways[][2] = {
    {BESIDE("odd - 0.1*T") "}", "euler, dt: 0.01"},
    {BESIDE("odd - 0.1*T") "}", "{name: bs3, tolerance: {relative: 1, absolute: 1}, dt: {initial: 0.01, max: 0.01}}"},
    {BESIDE("odd + 0.001*laplacian(T)") "}", "euler, dt: 0.01"},
    {BESIDE("odd + 0.001*laplacian(T)") "}", "euler, dt: {cfl: 0.5}"},
    {BESIDE("div(0.001*at(1 + 0.1*T + odd, faces)*grad(T))") "}", "euler, dt: {cfl: 0.5}"},
    {BESIDE("odd + div(0.001*at(1 + 0.1*T, faces)*grad(T))") "}", "ssprk3, dt: {cfl: 0.5}"},
    {BESIDE("odd + 0.001*laplacian(T)") "}",
     "{name: dp5, tolerance: {relative: 1, absolute: 1}, dt: {initial: 0.01, max: 0.01}}"},
    {BESIDE("odd + 0.1*p") SOLVED("(2 + odd)*p - laplacian(p) = T", "s"), "ssprk2, dt: 0.01"},
    {"{explicit: \"odd\", implicit: \"laplacian(T)\"}, solver: s}}", "ark3, dt: 0.01"},
    {BESIDE("odd + 0.1*p") SOLVED("2*p - laplacian(p) = T + odd", "d"), "ssprk2, dt: 0.01"},
    {BESIDE("odd + 0.1*p + " BOUNDED("1 + 0.1*T")) SOLVED("(2 + odd)*p - laplacian(p) = T", "s"),
     "ssprk2, dt: {cfl: 0.5}"},
    {BESIDE("0.1*p + " BOUNDED("1 + 0.1*T + odd")) SOLVED("2*p - laplacian(p) = T", "d"), "euler, dt: {cfl: 0.5}"},
    {BESIDE("0.1*p + " BOUNDED("1 + 0.1*T + odd")) SOLVED("(2 + dt)*p - laplacian(p) = T + odd", "s"),
     "ssprk2, dt: {cfl: 0.5}"},
    {"{explicit: \"" BOUNDED("1 + 0.1*T + odd") "\", implicit: \"laplacian(T)\"}, solver: s}}", "ark3, dt: {cfl: 0.5}"},
    {"{explicit: \"odd + " BOUNDED("1 + 0.1*T") "\", implicit: \"laplacian(T)\"}, solver: s}}",
     "beuler, dt: {cfl: 0.5}"},
    {BESIDE("odd - T") FLOW("\"" CARRIED "\"", "\"0.001*laplacian(v)\"", ", solver: d"), "ssprk2, dt: {cfl: 0.5}"},
    {BESIDE("-T") FLOW("{explicit: \"" CARRIED "\", implicit: \"0.001*laplacian(u)\"}, solver: s",
                       "{explicit: \"at(T, yface)\", implicit: \"0.001*laplacian(v)\"}, solver: s",
                       ", solver: s, density: \"2 + 0.1*T\""),
     "ark3, dt: {cfl: 0.5}"}};

enum { WAYS = sizeof ways / sizeof *ways };

static bool every_fifth(void *data, trl_gidx step, double time, double dt)
{
    (void)data, (void)time, (void)dt;
    return step % 5 == 0;
}

/* Run until something fails; nothing may fail at an event. */
static trl_err run_pending(void)
{
    trl_err err = TRL_OK;
    while (err == TRL_OK && !trl_simulation_done(sim)) {
        err = trl_simulation_advance(sim, every_fifth, NULL);
        if (err == TRL_OK && trl_simulation_step_number(sim) % 5 == 0) ck_assert(!trli_late_is_pending(sim));
    }
    if (err == TRL_OK) ck_assert(!trli_late_is_pending(sim));
    return err;
}

static trl_err run_at_once(void)
{
    trl_err err = TRL_OK;
    while (err == TRL_OK && !trl_simulation_done(sim)) err = trl_simulation_step(sim);
    return err;
}

/* ---- tests ---- */

START_TEST(a_rank_goes_on_while_another_one_is_late)
{
    plan.deed = WAIT;
    plan.step = 6;
    plan.rank = 1;
    plan.told = false;
    open_odd(ways[0][0], ways[0][1], 1);
    const int64_t before = test_ctx->agreement.at_once;
    ck_ok(run_pending());
    const int64_t waits = test_ctx->agreement.at_once - before;
    ck_assert_int_eq(waits, gpus());
    ck_assert_int_eq(trl_simulation_step_number(sim), 12);
    ck_assert(!plan.waited_in_vain);
    if (trl_context_rank(test_ctx) > 0) {
        char nothing;
        MPI_Recv(&nothing, 1, MPI_BYTE, 0, 0, messages, MPI_STATUS_IGNORE);
    }
    close_problem();
}
END_TEST

static void compare_ends(int way, trl_err expected)
{
    char *message[2];
    trl_gidx step[2];
    double time[2];
    bool stalled[2];
    for (int late = 0; late < 2; ++late) {
        test_clear();
        open_odd(ways[way][0], ways[way][1], 1);
        const trl_err err = late ? run_pending() : run_at_once();
        ck_assert_msg(err == expected, "%s, %s, step %d, rank %d, late %d: %s, not %s, after step %d: %s", ways[way][0],
                      ways[way][1], (int)plan.step, plan.rank, late, trl_err_name(err), trl_err_name(expected),
                      (int)trl_simulation_step_number(sim), test_messages());
        ck_assert_msg(!trl_context_lost(test_ctx), "%s", test_messages());
        message[late] = strdup(test_messages());
        ck_assert_ptr_nonnull(message[late]);
        step[late] = trl_simulation_step_number(sim);
        time[late] = trl_simulation_time(sim);
        stalled[late] = trl_simulation_stalled(sim);
        close_problem();
    }
    ck_assert_str_eq(message[0], message[1]);
    ck_assert_int_eq(step[0], step[1]);
    ck_assert(time[0] == time[1]);
    ck_assert_int_eq(stalled[0], stalled[1]);
    free(message[0]);
    free(message[1]);
}

/* Emulated GPUs compile a kernel for each program: a third of the ways is enough there, of which others follow from the
 * number of ranks. */
static int sparse(void)
{
    return gpus() && !test_long() ? 3 : 1;
}

/* On each rank, at two steps: of all ways those that are its turn, or in long tests half of them. */
static void compare_all_ends(trl_err expected)
{
    const int turns = 2 * trl_context_ranks(test_ctx), apart = test_long() ? 2 : turns * sparse();
    const int first = turns * (trl_context_ranks(test_ctx) - 2);
    for (int turn = 0; turn < turns; ++turn) {
        plan.rank = turn / 2;
        plan.step = turn % 2 ? 6 : 4;
        for (int way = (turn + first) % apart; way < WAYS; way += apart) compare_ends(way, expected);
    }
}

/* Whether the host reads dt before the first stage: what is solved for before a step does, or slopes without divergence
 * follow from one that is tried. */
static bool reads_dt(const char *equations)
{
    return strstr(equations, "+ dt)") || strstr(equations, "density");
}

START_TEST(no_step_waits_for_an_agreement)
{
    plan.deed = NOTHING;
    for (int way = trl_context_ranks(test_ctx) % sparse(); way < WAYS; way += sparse()) {
        open_odd(ways[way][0], ways[way][1], 1);
        if (gpus()) ck_ok(trl_simulation_advance(sim, every_fifth, NULL));
        const int64_t before = test_ctx->agreement.at_once;
        ck_ok(run_pending());
        const int64_t waits = test_ctx->agreement.at_once - before;
        const int most = reads_dt(ways[way][0]) ? 14 : 2; /* 2 where nothing is pending before a bound */
        ck_assert_msg(waits <= most, "%s, %s: %d", ways[way][0], ways[way][1], (int)waits);
        close_problem();
    }
}
END_TEST

START_TEST(a_rank_that_fails_ends_all_at_the_same_step)
{
    plan.deed = FAIL;
    plan.code = TRL_ERR_PLUGIN;
    compare_all_ends(plan.code);
}
END_TEST

/* Codes that also say that a run could not be made at all. */
START_TEST(a_plugin_may_fail_with_any_code)
{
    static const trl_err codes[] = {TRL_ERR_INPUT, TRL_ERR_IO, TRL_ERR_MEMORY};
    plan.deed = FAIL;
    plan.rank = 1;
    plan.step = 6;
    for (int c = 0; c < 3; ++c)
        for (int way = c; way < WAYS; way += 3 * sparse()) {
            plan.code = codes[c];
            compare_ends(way, plan.code);
        }
}
END_TEST

START_TEST(what_is_not_finite_on_a_rank_ends_all_at_the_same_step)
{
    plan.deed = NOT_FINITE;
    compare_all_ends(TRL_ERR_NUMERICS);
}
END_TEST

START_TEST(what_overflows_in_a_pass_over_several_steps_ends_it_there)
{
    char *message = NULL;
    trl_gidx step = -1;
    plan.deed = NOTHING;
    for (int late = 0; late < 2; ++late) { /* on GPUs of several ranks steps are taken one at a time */
        test_clear();
        open_odd(BESIDE("1e40*T*T*T*T*T*y^8 + 0.001*laplacian(T)") "}", "euler, dt: 0.01", late && !gpus() ? 3 : 1);
        const trl_err err = late ? run_pending() : run_at_once();
        ck_assert_int_eq(err, TRL_ERR_NUMERICS);
        ck_assert(!trl_simulation_stalled(sim));
        if (late && gpus()) ck_assert_int_eq(trl_simulation_step_number(sim), step);
        step = trl_simulation_step_number(sim);
        if (message) ck_assert_str_eq(message, test_messages());
        free(message);
        message = strdup(test_messages());
        ck_assert_ptr_nonnull(message);
        close_problem();
    }
    free(message);
}
END_TEST

START_TEST(pending_steps_have_the_bits_of_others)
{
    plan.deed = NOTHING;
    for (int way = (trl_context_ranks(test_ctx) + 2) % sparse(); way < WAYS; way += sparse()) {
        double *expected = NULL;
        trl_gidx n[3];
        for (int late = 0; late < 2; ++late) {
            open_odd(ways[way][0], ways[way][1], 1);
            ck_ok(late ? run_pending() : run_at_once());
            const double *values = values_of("T", n);
            const size_t bytes = (size_t)(n[0] * n[1]) * sizeof *values;
            if (late) {
                ck_assert(memcmp(expected, values, bytes) == 0);
                free(expected);
            } else {
                expected = malloc(bytes);
                ck_assert_ptr_nonnull(expected);
                memcpy(expected, values, bytes);
            }
        }
        close_problem();
    }
}
END_TEST

/* ---- rows of series ---- */

enum { ROWS = 12, COLUMNS = 60, KINDS = 5, FIRST_OF_SPECTRA = 3 };
/* Formulas; both; profiles, with what solvers took; and spectra, alone and with all of these. */
#define MEANS "{mean: \"integral(T)\", other: \"t + 2*domain_max(T)/(1 + integral(T^2))\"}"
static const char *const means[] = {MEANS, MEANS ", profiles: {P: {of: \"T^2\", along: y}}",
                                    "{}, profiles: {P: {of: T, along: x}}, solvers: true", "{}, spectra: {E: {of: T}}",
                                    MEANS ", profiles: {P: {of: \"T^2\", along: y}}, "
                                          "spectra: {E: {of: T}, X: {of: T, along: x}}, solvers: true"};

static void note_row(double row[ROWS + 1][COLUMNS], trl_gidx step)
{
    const int n = trl_simulation_series_count(sim);
    ck_assert_int_le(n, COLUMNS);
    memcpy(row[step], trl_simulation_series(sim), (size_t)n * sizeof(double));
}

static trl_err take_row(double row[ROWS + 1][COLUMNS], bool wait, trl_observed *of)
{
    const trl_err err = trl_simulation_observed(sim, wait, of);
    if (err == TRL_OK && of->there) note_row(row, of->step);
    if (err == TRL_OK && of->there) ck_assert(fabs(of->time - 0.01 * (double)of->step) < 1e-12);
    return err;
}

/* Each row comes after the step behind it, or some steps later. waits: [ROWS + 1] at the end of each step. */
static trl_err run_with_rows(double row[ROWS + 1][COLUMNS], int64_t *waits)
{
    trl_err err = TRL_OK;
    trl_observed of = {0};
    waits[0] = test_ctx->agreement.at_once;
    while (err == TRL_OK && !trl_simulation_done(sim)) {
        err = trl_simulation_advance_pending(sim, NULL, NULL);
        if (err == TRL_OK) err = take_row(row, false, &of);
        if (err == TRL_OK) err = trl_simulation_observe_later(sim);
        waits[trl_simulation_step_number(sim)] = test_ctx->agreement.at_once;
    }
    if (err == TRL_OK) err = trl_simulation_settle(sim);
    do {
        if (err == TRL_OK) err = take_row(row, true, &of);
    } while (err == TRL_OK && of.there);
    return err;
}

static trl_err run_with_rows_at_once(double row[ROWS + 1][COLUMNS])
{
    trl_err err = TRL_OK;
    while (err == TRL_OK && !trl_simulation_done(sim)) {
        err = trl_simulation_step(sim);
        if (err == TRL_OK) err = trl_simulation_observe(sim);
        if (err == TRL_OK) note_row(row, trl_simulation_step_number(sim));
    }
    return err;
}

START_TEST(a_row_of_series_keeps_no_rank_from_the_next_step)
{
    double row[2][ROWS + 1][COLUMNS] = {0};
    int64_t waits[ROWS + 1];
    const int made = _i >= FIRST_OF_SPECTRA ? 3 : 0; /* rows which have made places for later ones */
    series = means[_i];
    for (int late = 0; late < 2; ++late) {
        plan.deed = late ? WAIT : NOTHING;
        plan.step = 6;
        plan.rank = 1;
        plan.told = false;
        open_odd(ways[0][0], ways[0][1], 1);
        ck_assert(trl_simulation_observes_later(sim));
        ck_ok(late ? run_with_rows(row[1], waits) : run_with_rows_at_once(row[0]));
        if (late) ck_assert_int_eq(test_ctx->agreement.at_once - waits[made], made > 0 ? 0 : gpus());
        ck_assert(!plan.waited_in_vain);
        close_problem();
    }
    ck_assert(memcmp(row[0][1], row[1][1], sizeof row[0][1] * ROWS) == 0);
    if (trl_context_rank(test_ctx) > 0) {
        char nothing;
        MPI_Recv(&nothing, 1, MPI_BYTE, 0, 0, messages, MPI_STATUS_IGNORE);
    }
    series = "{}";
}
END_TEST

/* In a row, or in the step before it, and then in a row of the state that it leaves. */
START_TEST(a_rank_that_fails_in_a_row_ends_all)
{
    static const char *const slopes[] = {BESIDE("-0.1*T") "}", BESIDE("odd - 0.1*T") "}"};
    static const char *const odds[] = {"{mean: \"integral(T)\", odd: \"integral(odd)\"}",
                                       "{mean: \"integral(T)\"}, profiles: {P: {of: odd, along: x}}",
                                       "{}, profiles: {P: {of: odd, along: y}, Q: {of: T, along: x}}",
                                       "{}, spectra: {E: {of: odd}}",
                                       "{mean: \"integral(T)\"}, spectra: {E: {of: [T, odd]}}"};
    double row[ROWS + 1][COLUMNS];
    int64_t waits[ROWS + 1];
    char *message[2];
    series = odds[_i];
    written = "odd";
    plan.deed = FAIL;
    plan.code = TRL_ERR_PLUGIN;
    plan.step = 6;
    for (int way = 0; way < 2; ++way)
        for (plan.rank = 0; plan.rank < trl_context_ranks(test_ctx); ++plan.rank) {
            for (int late = 0; late < 2; ++late) {
                test_clear();
                open_odd(slopes[way], "euler, dt: 0.01", 1);
                const trl_err err = late ? run_with_rows(row, waits) : run_with_rows_at_once(row);
                ck_assert_msg(err == plan.code, "way %d, rank %d, late %d: %s: %s", way, plan.rank, late,
                              trl_err_name(err), test_messages());
                ck_assert_msg(!trl_context_lost(test_ctx), "%s", test_messages());
                message[late] = strdup(test_messages());
                ck_assert_ptr_nonnull(message[late]);
                close_problem();
            }
            ck_assert_str_eq(message[0], message[1]);
            free(message[0]);
            free(message[1]);
        }
    series = "{}";
    written = "";
}
END_TEST

/* What a rank notes, as that it cannot write, ends all at a later step. */
START_TEST(what_a_rank_notes_ends_all)
{
    plan.deed = NOTHING;
    open_odd(ways[0][0], ways[0][1], 1);
    ck_ok(trl_simulation_advance_pending(sim, NULL, NULL));
    if (trl_context_rank(test_ctx) == 0) trl_simulation_note(sim, trl_fail(test_ctx, TRL_ERR_IO, NULL, "a full disk"));
    ck_assert_int_eq(run_pending(), TRL_ERR_IO);
    ck_assert_int_eq(trl_simulation_step_number(sim), 1);
    ck_assert_ptr_nonnull(strstr(test_messages(), "a full disk"));
    close_problem();
    test_clear();
}
END_TEST

static void add_tests(TCase *tc)
{
    MPI_Comm_dup(MPI_COMM_WORLD, &messages);
    tcase_add_test(tc, a_rank_goes_on_while_another_one_is_late);
    tcase_add_test(tc, no_step_waits_for_an_agreement);
    tcase_add_test(tc, a_rank_that_fails_ends_all_at_the_same_step);
    tcase_add_test(tc, a_plugin_may_fail_with_any_code);
    tcase_add_test(tc, what_is_not_finite_on_a_rank_ends_all_at_the_same_step);
    tcase_add_test(tc, what_overflows_in_a_pass_over_several_steps_ends_it_there);
    tcase_add_test(tc, pending_steps_have_the_bits_of_others);
    tcase_add_loop_test(tc, a_row_of_series_keeps_no_rank_from_the_next_step, 0, KINDS);
    tcase_add_loop_test(tc, a_rank_that_fails_in_a_row_ends_all, 0, KINDS);
    tcase_add_test(tc, what_a_rank_notes_ends_all);
}

TRL_TEST_MAIN("late", add_tests)
