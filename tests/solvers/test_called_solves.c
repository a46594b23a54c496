// ctest: np=1,2,3,4 short=1,3 sanitize=2 timeout=120
/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Solves of Poisson's equation that are one task graph each, on the fields of a model: programs with their messages,
 * boundary conditions and reductions are bodies of calls. They have the bits of a loop on one rank, which runs program
 * after program, and end everywhere in the same round, after an error too. */
#include "trl_test.h"

#include <context_impl.h>
#include <tasks_impl.h>

#include "called_solve.h"

enum { CELLS = 24 };

/* ---- Jacobi and conjugate gradients ---- */

typedef struct both {
    solve called, looped;
    trl_workers *workers, *one;
} both;

static void open_both(both *b, int setting, int cells)
{
    open_alone();
    b->workers = workers_of(setting);
    ck_assert_int_eq(trl_workers_create(alone, "serial", &b->one), TRL_OK);
    poisson_create(&b->called.p, test_ctx, b->workers, cells);
    poisson_create(&b->looped.p, alone, b->one, cells);
}

static void close_both(both *b)
{
    poisson_destroy(&b->called.p);
    poisson_destroy(&b->looped.p);
    trl_workers_destroy(&b->workers);
    trl_workers_destroy(&b->one);
    close_alone();
}

/* Two runs of a graph have the bits of the loop; the end of all. */
static void check_runs(both *b, trl_graph *graph)
{
    for (int run = 0; run < 2; ++run) {
        begin(&b->called);
        ck_ok(trl_graph_run(graph, b->workers, NULL));
        check_same(&b->called, &b->looped);
    }
    trl_graph_destroy(&graph);
    close_both(b);
}

START_TEST(jacobi_in_one_graph_has_the_bits_of_a_loop_on_one_rank)
{
    both b;
    trl_task task;
    open_both(&b, _i, CELLS);
    trl_graph *graph = graph_of("jacobi");
    const trli_program_call call = {.program = b.called.p.sweep,
                                    .frame = b.called.p.frame,
                                    .data = &b.called,
                                    .again = after_sweep,
                                    .rounds = MOST};
    ck_ok(trli_program_add_call(graph, "until small", &call, &task));
    ck_ok(trl_graph_freeze(graph));
    begin(&b.looped);
    loop(&b.looped, b.looped.p.sweep, after_sweep);
    check_runs(&b, graph);
}
END_TEST

START_TEST(conjugate_gradients_in_one_graph_have_the_bits_of_a_loop_on_one_rank)
{
    both b;
    trl_task start, steps;
    open_both(&b, _i, CELLS);
    trl_graph *graph = graph_of("cg");
    solve *s = &b.called;
    const trli_program_call
        first = {.program = s->p.start, .frame = s->p.frame, .data = s, .again = after_start, .rounds = 1},
        rest = {.program = s->p.step, .frame = s->p.frame, .data = s, .again = after_step, .rounds = MOST};
    ck_ok(trli_program_add_call(graph, "start", &first, &start));
    ck_ok(trli_program_add_call(graph, "steps", &rest, &steps));
    ck_ok(trl_graph_add_dependency(graph, start, steps));
    ck_ok(trl_graph_freeze(graph));
    begin(&b.looped);
    ck_ok(trli_program_run(b.looped.p.start, b.looped.p.frame));
    ck_ok(after_start(&b.looped, b.looped.p.frame, 1, NULL));
    loop(&b.looped, b.looped.p.step, after_step);
    check_runs(&b, graph);
}
END_TEST

/* ---- two solves at once ---- */

static double other_source(double x, double y)
{
    return exp(x) * cos(11 * y);
}

/* One program in two frames of its model, whose calls have as many rounds as each of them needs. */
START_TEST(two_solves_go_on_beside_each_other_in_one_graph)
{
    both b;
    solve second;
    trl_task task;
    open_both(&b, _i, CELLS);
    second = b.called;
    ck_ok(trli_frame_create(second.p.model, &second.p.frame));
    trl_graph *graph = graph_of("two");
    solve *const each[2] = {&b.called, &second};
    trli_program_call call[2];
    for (int i = 0; i < 2; ++i) {
        call[i] = (trli_program_call){.program = each[i]->p.sweep,
                                      .frame = each[i]->p.frame,
                                      .data = each[i],
                                      .again = after_sweep,
                                      .rounds = MOST};
        ck_ok(trli_program_add_call(graph, i ? "second" : "first", &call[i], &task));
        begin(each[i]);
    }
    ck_ok(trl_graph_freeze(graph));
    poisson_set(&second.p, second.p.now[POISSON_F], other_source);
    ck_ok(trl_graph_run(graph, b.workers, NULL));
    for (int i = 0; i < 2; ++i) {
        begin(&b.looped);
        if (i) poisson_set(&b.looped.p, b.looped.p.now[POISSON_F], other_source);
        loop(&b.looped, b.looped.p.sweep, after_sweep);
        check_same(each[i], &b.looped);
    }
    ck_assert(b.called.rounds != second.rounds);
    trl_graph_destroy(&graph);
    trli_frame_destroy(&second.p.frame);
    close_both(&b);
}
END_TEST

/* ---- an error on one rank ---- */

enum { WHEN = 13 };

typedef struct faulty {
    solve *s;
    int rank;       /* that fails */
    int64_t rounds; /* ended, by each rank */
} faulty;

static trl_err fail_once(void *data, const trl_task_args *args, bool *done)
{
    const faulty *f = data;
    (void)args, (void)done;
    if (trl_context_rank(test_ctx) != f->rank || f->rounds + 1 != WHEN) return TRL_OK;
    return trl_fail(test_ctx, TRL_ERR_NUMERICS, NULL, "a fault in round %lld", (long long)f->rounds + 1);
}

static trl_err after_iteration(void *data, const trl_task_args *args, int64_t round, bool *again)
{
    faulty *f = data;
    (void)args;
    f->rounds = round;
    if (trli_program_call_is_lost(f->s->p.step, f->s->p.frame)) return TRL_OK;
    return after_step(f->s, f->s->p.frame, round, again);
}

static const struct {
    bool after; /* the reductions of its round: those of the next one tell */
    bool first; /* the rank; else the last */
} faults[] = {{false, false}, {true, false}, {false, true}, {true, true}};
enum { FAULTS = sizeof faults / sizeof *faults };

/* And the next run, without a fault, has the bits of a loop. */
START_TEST(an_error_of_one_rank_ends_all_in_one_round)
{
    const int setting = _i % SETTINGS, fault = _i / SETTINGS;
    both b;
    trl_task start, steps, fails;
    open_both(&b, setting, CELLS);
    solve *s = &b.called;
    faulty f = {.s = s, .rank = faults[fault].first ? 0 : trl_context_ranks(test_ctx) - 1};
    trl_graph *iteration = graph_of("iteration"), *graph = graph_of("cg");
    const trli_program_call first = {
        .program = s->p.start, .frame = s->p.frame, .data = s, .again = after_start, .rounds = 1};
    const trli_program_call step = {.program = s->p.step, .frame = s->p.frame};
    ck_ok(trli_program_add_call(iteration, "step", &step, &steps));
    ck_ok(trl_graph_add_task(
        iteration, &(trl_task_desc){.name = "fault", .variant = {{fail_once}}, .data = &f, .chunks = 1}, &fails));
    ck_ok(faults[fault].after ? trl_graph_add_dependency(iteration, steps, fails)
                              : trl_graph_add_dependency(iteration, fails, steps));
    ck_ok(trl_graph_freeze(iteration));
    const trl_call_desc rest = {.name = "iterate",
                                .body = iteration,
                                .data = &f,
                                .again = after_iteration,
                                .rounds = MOST,
                                .flags = TRL_TASK_ALWAYS};
    ck_ok(trli_program_add_call(graph, "start", &first, &start));
    ck_ok(trl_graph_add_call(graph, &rest, &steps));
    ck_ok(trl_graph_add_dependency(graph, start, steps));
    ck_ok(trl_graph_freeze(graph));
    begin(s);
    trl_err err = trl_graph_run(graph, b.workers, NULL);
    int good = f.rounds == WHEN + faults[fault].after &&
               err == (trl_context_rank(test_ctx) == f.rank ? TRL_ERR_NUMERICS : TRL_OK);
    MPI_Allreduce(MPI_IN_PLACE, &good, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    ck_assert_msg(good, "%lld rounds, %s", (long long)f.rounds, trl_err_name(err));
    ck_assert_int_eq(trl_context_agree(test_ctx, err), TRL_ERR_NUMERICS);
    ck_assert_ptr_nonnull(strstr(test_messages(), "a fault in round 13"));
    test_clear();
    f.rank = -1;
    begin(s);
    trli_reductions_clear(s->p.frame, s->p.step);
    ck_ok(trl_graph_run(graph, b.workers, NULL));
    begin(&b.looped);
    ck_ok(trli_program_run(b.looped.p.start, b.looped.p.frame));
    ck_ok(after_start(&b.looped, b.looped.p.frame, 1, NULL));
    loop(&b.looped, b.looped.p.step, after_step);
    check_same(s, &b.looped);
    trl_graph_destroy(&graph);
    trl_graph_destroy(&iteration);
    close_both(&b);
}
END_TEST

static trl_err begin_or_fail(void *data, trli_frame *frame)
{
    const faulty *f = data;
    (void)frame;
    if (trl_context_rank(test_ctx) != f->rank || f->rounds == 0) return TRL_OK;
    return trl_fail(test_ctx, TRL_ERR_NUMERICS, NULL, "a fault in the beginning");
}

static trl_err step_or_fail(void *data, trli_frame *frame, int64_t round, bool *again)
{
    faulty *f = data;
    f->rounds = round;
    const trl_err err = after_step(f->s, frame, round, again);
    if (err == TRL_OK && trl_context_rank(test_ctx) == f->rank && round == WHEN)
        return trl_fail(test_ctx, TRL_ERR_NUMERICS, NULL, "a fault behind round %d", WHEN);
    return err;
}

/* The functions of a call: the last ones that are called anywhere are those of one round. */
START_TEST(an_error_of_a_calls_function_on_one_rank_ends_all)
{
    const bool first = _i / SETTINGS;
    both b;
    trl_task task;
    open_both(&b, _i % SETTINGS, CELLS);
    solve *s = &b.called;
    faulty f = {.s = s, .rank = trl_context_ranks(test_ctx) - 1, .rounds = first ? -1 : 0};
    trl_graph *graph = graph_of("cg");
    const trli_program_call steps = {.program = s->p.step,
                                     .frame = s->p.frame,
                                     .data = &f,
                                     .begin = begin_or_fail,
                                     .again = step_or_fail,
                                     .rounds = MOST};
    ck_ok(trli_program_add_call(graph, "steps", &steps, &task));
    ck_ok(trl_graph_freeze(graph));
    begin(s);
    ck_ok(trli_program_run(s->p.start, s->p.frame));
    ck_ok(after_start(s, s->p.frame, 1, NULL));
    const trl_err err = trl_graph_run(graph, b.workers, NULL);
    int good =
        f.rounds == (first ? -1 : WHEN) && err == (trl_context_rank(test_ctx) == f.rank ? TRL_ERR_NUMERICS : TRL_OK);
    MPI_Allreduce(MPI_IN_PLACE, &good, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    ck_assert_msg(good, "%lld rounds, %s", (long long)f.rounds, trl_err_name(err));
    ck_assert_int_eq(trl_context_agree(test_ctx, err), TRL_ERR_NUMERICS);
    test_clear();
    trl_graph_destroy(&graph);
    close_both(&b);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_loop_test(tc, jacobi_in_one_graph_has_the_bits_of_a_loop_on_one_rank, 0, SETTINGS);
    tcase_add_loop_test(tc, conjugate_gradients_in_one_graph_have_the_bits_of_a_loop_on_one_rank, 0, SETTINGS);
    tcase_add_loop_test(tc, two_solves_go_on_beside_each_other_in_one_graph, 0, SETTINGS);
    tcase_add_loop_test(tc, an_error_of_one_rank_ends_all_in_one_round, 0, FAULTS * SETTINGS);
    tcase_add_loop_test(tc, an_error_of_a_calls_function_on_one_rank_ends_all, 0, 2 * SETTINGS);
}

TRL_TEST_MAIN("called solves", add_tests)
