/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Which reductions share a sweep and a message, and that they have the bits of each by itself. */
// ctest: np=1,3 timeout=300
#include "../expressions/problem_fixture.h"

#include <sched.h>

#include <clock_impl.h>
#include <execution_impl.h>
#include <frame_impl.h>
#include <simulation_impl.h>

/* Series in the order of their names; several tiles of rows, and sides on which points count half. */
static void say_deck(const char *values)
{
    new_deck();
    say("grid: {cells: [70, 61], length: [1.3, 0.9], periodic: [false, true]}\n"
        "equations:\n"
        "  T: {initial: \"exp(-90*((x-0.5)^2 + (y-0.4)^2)) - 0.01\", ddt: \"-T\"}\n"
        "  U: {initial: \"cos(7*x*y)\", ddt: \"-U\"}\n"
        "  N: {location: xface, initial: \"sin(3*x)*cos(2*y) - 0.2\", ddt: \"-0.2*N\"}\n"
        "time: {dt: 1e-3, steps: 2}\noutput: {series: {every: {steps: 1}, values: {%s}}}\n",
        values);
}

static void open_and_run(int nsets, const char *const *set)
{
    ck_ok(open_problem_with(nsets, set));
    ck_ok(run_steps(2));
}

static const char *const values[] = {"integral(T)",
                                     "integral(T*T)",
                                     "domain_max(T)",
                                     "domain_min(T)",
                                     "integral(N)",
                                     "integral(N*N)",
                                     "domain_max(N)",
                                     "domain_min(abs(N))",
                                     "norm(T)",
                                     "domain_max(0/(U - U))",
                                     "integral(U/(x - x))",
                                     "probe(T, [0.5, 0.4])",
                                     "domain_max(T - integral(T))",
                                     "domain_max(-0.0*T)",
                                     "integral(x - 0.5)",
                                     "integral(if(x < 0.7, 1.0, 1e9)*T)",
                                     "domain_min(if(x < 0.7, U, 0/(U - U)))",
                                     "norm(T*T*T)"};
enum { VALUES = sizeof values / sizeof *values };

static void say_all(void)
{
    char list[1024];
    int n = 0;
    for (int i = 0; i < VALUES; ++i) n += snprintf(list + n, sizeof list - (size_t)n, "s%d: \"%s\", ", i, values[i]);
    say_deck(list);
}

START_TEST(reductions_together_have_the_bits_of_each_alone)
{
    static const char *const sets[][3] = {{"run.compile=never", "grid.patches=[3, 1]", "run.balance=1"},
                                          {"run.compile=always", "grid.patches=[3, 1]", "run.balance=1"},
                                          {"run.compile=always", "grid.patches=[4, 3]", "run.owners=random:1"},
                                          {"run.compile=always", "grid.patches=[20, 1]", "run.balance=1"},
                                          {"run.compile=never", "grid.patches=[2, 5]", "run.balance=1e3"}};
    double alone[VALUES];
    for (int i = 0; i < VALUES; ++i) {
        char one[128];
        snprintf(one, sizeof one, "s: \"%s\"", values[i]);
        say_deck(one);
        open_and_run(3, sets[0]);
        alone[i] = trl_simulation_series(sim)[0];
        close_problem();
    }
    ck_assert(isnan(alone[9]));
    for (size_t w = 0; w < sizeof sets / sizeof *sets; ++w)
        for (int threads = 1; threads <= 2; ++threads) {
            ck_ok(trl_context_set_threads(test_ctx, threads));
            say_all();
            open_and_run(3, sets[w]);
            for (int i = 0; i < VALUES; ++i)
                ck_assert_msg(memcmp(&alone[i], &trl_simulation_series(sim)[i], sizeof *alone) == 0,
                              "%s: %a alone, %a together, way %zu, %d threads", values[i], alone[i],
                              trl_simulation_series(sim)[i], w, threads);
            close_problem();
        }
    ck_ok(trl_context_set_threads(test_ctx, 1));
}
END_TEST

static void check_shape(const char *series, int n, int groups, int batches)
{
    say_deck(series);
    ck_ok(open_problem_with(0, NULL));
    const trli_reductions *r = &sim->observe->run->reductions;
    ck_assert_msg(r->n == n && r->ngroups == groups && r->nbatches == batches,
                  "%s: %d reductions in %d groups and %d batches, expected %d, %d and %d", series, r->n, r->ngroups,
                  r->nbatches, n, groups, batches);
    close_problem();
}

START_TEST(what_reads_the_same_over_the_same_points_is_one_sweep)
{
    check_shape("a: \"domain_max(T)\"", 1, 1, 1);
    check_shape("a: \"domain_max(T)\", b: \"domain_min(T)\", c: \"integral(T*T)\"", 3, 1, 1);
    check_shape("a: \"domain_max(T)\", b: \"domain_min(N)\", c: \"integral(T*T)\"", 3, 2, 1);
    check_shape("a: \"domain_max(T)\", b: \"probe(T, [0.5, 0.4])\"", 2, 2, 1);
    check_shape("a: \"domain_max(T)\", b: \"domain_max(x)\"", 2, 2, 1);
}
END_TEST

START_TEST(a_reduction_that_needs_another_one_waits)
{
    check_shape("a: \"domain_max(T)\", b: \"domain_min(T/domain_max(T))\"", 2, 2, 2);
    check_shape("a: \"2*domain_max(T) + 1\", b: \"domain_min(T)\"", 2, 1, 1);
    check_shape("a: \"domain_min(T/(2*domain_max(T)))\", b: \"domain_min(T)\"", 3, 2, 2);
}
END_TEST

START_TEST(many_reductions_are_several_sweeps_and_one_message)
{
    char list[1024];
    int n = 0;
    for (int i = 0; i < 9; ++i)
        n += snprintf(list + n, sizeof list - (size_t)n, "s%d: \"domain_max(%d*T)\", ", i, i + 2);
    say_deck(list);
    ck_ok(open_problem_with(0, NULL));
    ck_assert_int_ge(sim->observe->run->reductions.ngroups, 2);
    ck_assert_int_eq(sim->observe->run->reductions.nbatches, 1);
    close_problem();
}
END_TEST

START_TEST(points_on_sides_count_half)
{
    static const char *const compile[] = {"run.compile=never", "run.compile=always"};
    for (int c = 0; c < 2; ++c) {
        say_deck("a: \"integral(0*N + 1)\", b: \"integral(0*T + 1)\", c: \"integral(N + 1 - N)\"");
        open_and_run(1, &compile[c]);
        for (int i = 0; i < 3; ++i) ck_assert_double_eq_tol(trl_simulation_series(sim)[i], 1.3 * 0.9, 1e-12);
        close_problem();
    }
}
END_TEST

/* ---- ranks that reduce in different orders ---- */

static bool waits; /* types do, */
static int stuck;  /* so many of them in vain, */
static int times;  /* of so many on this rank */

static trl_err compute_first(const void *state, trl_deps *deps)
{
    (void)state;
    return trl_deps_compute(deps, "first", TRL_CELL);
}

static trl_err compute_second(const void *state, trl_deps *deps)
{
    (void)state;
    return trl_deps_compute(deps, "second", TRL_CELL);
}

/* Set a number, on one rank once it has posted its part of a batch as often as this is done. */
static void set_after(int rank, int batch, const trl_eval_args *args, const trl_box *box)
{
    const double patience = 20; /* s */
    const double deadline = trli_clock() + patience;
    const trl_array *to = &args->computed[0];
    if (waits && trl_context_rank(test_ctx) == rank) {
        const int first = sim->observe->run->reductions.first_batch;
        const volatile int64_t *posted = &sim->frame->batch[first + batch].all.number;
        ++times;
        while (*posted < times && trli_clock() < deadline) sched_yield();
        if (*posted < times) ++stuck;
    }
    for (trl_lidx j = box->lo[1]; j < box->hi[1]; ++j)
        for (trl_lidx i = box->lo[0]; i < box->hi[0]; ++i)
            ((double *)to->at)[trl_array_offset(to, i, j, 0)] = 3 + batch;
}

static trl_err set_first(const void *state, const trl_eval_args *args, const trl_box *box)
{
    (void)state;
    set_after(0, 1, args, box);
    return TRL_OK;
}

static trl_err set_second(const void *state, const trl_eval_args *args, const trl_box *box)
{
    (void)state;
    set_after(1, 0, args, box);
    return TRL_OK;
}

#define TYPE(called)                                                                           \
    {                                                                                          \
        .abi = TRL_PLUGIN_ABI, .size = sizeof(trl_expr_type), .name = #called, .doc = "waits", \
        .advertise_dependents = compute_##called, .evaluate = set_##called                     \
    }

/* Rank 0 reduces the second before the first, and rank 1 the first before the second. What the last of the series
 * reads keeps the memory of both. */
START_TEST(ranks_reduce_in_different_orders)
{
    static const trl_expr_type one = TYPE(first), other = TYPE(second);
    static const trl_expr_type *const types[] = {&one, &other, NULL};
    test_types = types;
    ck_ok(trl_context_set_threads(test_ctx, 3));
    new_deck();
    say("grid: {cells: [8, 9], periodic: true}\n"
        "expressions: {a: {type: first}, b: {type: second}}\n"
        "equations: {T: {initial: 1, ddt: \"-T\"}}\n"
        "time: {dt: 1e-3, steps: 2}\n"
        "output: {series: {every: {steps: 1}, values: {a: \"domain_max(first)\", b: \"domain_max(second)\","
        " c: \"domain_max(first/domain_max(second))\"}}}\n");
    ck_ok(open_problem());
    ck_assert_int_eq(sim->observe->run->reductions.nbatches, 3);
    waits = trl_context_ranks(test_ctx) > 1;
    ck_ok(run_steps(2));
    waits = false;
    MPI_Allreduce(MPI_IN_PLACE, &stuck, 1, MPI_INT, MPI_SUM, trl_context_comm(test_ctx));
    ck_assert_int_eq(stuck, 0);
    ck_assert_double_eq(trl_simulation_series(sim)[0], 4);
    ck_assert_double_eq(trl_simulation_series(sim)[1], 3);
    ck_assert_double_eq(trl_simulation_series(sim)[2], 4.0 / 3);
    close_problem();
    test_types = NULL;
}
END_TEST

static void add_tests(TCase *tc)
{
    test_compile_quickly();
    tcase_add_test(tc, reductions_together_have_the_bits_of_each_alone);
    tcase_add_test(tc, what_reads_the_same_over_the_same_points_is_one_sweep);
    tcase_add_test(tc, a_reduction_that_needs_another_one_waits);
    tcase_add_test(tc, points_on_sides_count_half);
    tcase_add_test(tc, many_reductions_are_several_sweeps_and_one_message);
    tcase_add_test(tc, ranks_reduce_in_different_orders);
}

TRL_TEST_MAIN("reductions", add_tests)
