// ctest: np=1,2,3 timeout=240
/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Programs that call each other, and calls of programs beside each other in one frame: the memory of what they compute
 * on the way is apart where it must be, and shared elsewhere. */
#include "trl_test.h"

#include <tasks_impl.h>

#include "called_solve.h"
#include "program_tree.h"

enum { SEEDS = TEST_SANITIZED ? 6 : 40, SEEDS_OF_RANKS = 6, RUNS = 3 };

/* Ranks that share cores with other programs wait for each other for long. */
static uint64_t seeds(void)
{
    return trl_context_ranks(test_ctx) > 1 ? SEEDS_OF_RANKS : SEEDS;
}

START_TEST(programs_that_call_each_other_have_the_bits_of_pieces_one_after_the_other)
{
    static program_tree t, pieces;
    trl_workers *one, *workers = workers_of(_i);
    int deep = 0, temporaries = 0, slots = 0;
    open_alone();
    ck_assert_int_eq(trl_workers_create(alone, "serial", &one), TRL_OK);
    for (uint64_t seed = 1; seed <= seeds(); ++seed) {
        tree_open(&t, test_ctx, workers, seed, false);
        tree_open(&pieces, alone, one, seed, true);
        tree_program *root = tree_add_deep(&t), *root_in_pieces = tree_add_deep(&pieces);
        deep += root->depth >= TREE_DEEP;
        tree_freeze(&t);
        tree_freeze(&pieces);
        tree_set_all(&t, t.frame);
        tree_set_all(&pieces, pieces.frame);
        tree_run_often(root, RUNS);
        tree_run_often(root_in_pieces, RUNS);
        ck_assert_msg(tree_ran_as(&t, &pieces), "seed %d: other values than in pieces", (int)seed);
        slots += tree_slots(&t);
        for (int i = 0; i < t.nprograms; ++i) temporaries += t.program[i].ntemporaries;
        tree_close(&t);
        tree_close(&pieces);
    }
    ck_assert_int_gt(deep, (int)seeds() / 4);
    ck_assert_msg(3 * slots < 2 * temporaries, "%d slots for %d temporaries", slots, temporaries);
    trl_workers_destroy(&one);
    trl_workers_destroy(&workers);
    close_alone();
}
END_TEST

/* ---- calls of a graph that is no program's ---- */

/* Two trees of programs that have none in common, and a call of each of their roots. */
typedef struct two_trees {
    program_tree t;
    tree_program *root[2];
    trli_program_call call[2];
    trl_task task[2];
} two_trees;

static void open_trees(two_trees *w, trl_context *ctx, trl_workers *workers, uint64_t seed, bool in_pieces)
{
    tree_open(&w->t, ctx, workers, seed, in_pieces);
    for (int i = 0; i < 2; ++i) {
        tree_program *inner = tree_begin_program(&w->t);
        trli_ir_value mixed = trli_ir_field(&w->t.model->ir, w->t.source);
        for (int k = 0; k < 3; ++k) tree_add_temporary(&w->t, inner, &mixed);
        tree_end_program(&w->t, inner, mixed);
        tree_program *root = w->root[i] = tree_begin_program(&w->t);
        mixed = trli_ir_field(&w->t.model->ir, w->t.source);
        for (int k = 0; k < 3; ++k) tree_add_temporary(&w->t, root, &mixed);
        tree_add_call(&w->t, root, inner, &mixed);
        tree_add_temporary(&w->t, root, &mixed);
        tree_end_program(&w->t, root, mixed);
        root->rounds += 5;
        w->call[i] = tree_call(root);
    }
}

static trl_graph *graph_of_trees(two_trees *w)
{
    trl_graph *graph = graph_of("both");
    for (int i = 0; i < 2; ++i) ck_ok(trli_program_add_call(graph, i ? "second" : "first", &w->call[i], &w->task[i]));
    return graph;
}

START_TEST(calls_beside_each_other_in_one_frame_have_the_bits_of_one_after_the_other)
{
    static two_trees w, pieces;
    trl_workers *one, *workers = workers_of(_i);
    open_alone();
    ck_assert_int_eq(trl_workers_create(alone, "serial", &one), TRL_OK);
    for (uint64_t seed = 1; seed <= seeds() / 2; ++seed) {
        open_trees(&w, test_ctx, workers, seed, false);
        open_trees(&pieces, alone, one, seed, true);
        ck_ok(trli_programs_meet(w.root[0]->program, w.root[1]->program));
        tree_freeze(&w.t);
        tree_freeze(&pieces.t);
        trl_graph *graph = graph_of_trees(&w);
        ck_ok(trl_graph_freeze(graph));
        tree_set_all(&w.t, w.t.frame);
        tree_set_all(&pieces.t, pieces.t.frame);
        for (int run = 0; run < RUNS; ++run) {
            ck_ok(trl_graph_run(graph, workers, w.t.frame));
            for (int i = 0; i < 2; ++i) tree_run_rounds(pieces.root[i]);
            ck_assert_msg(tree_ran_as(&w.t, &pieces.t), "seed %d, run %d", (int)seed, run);
        }
        trl_graph_destroy(&graph);
        tree_close(&w.t);
        tree_close(&pieces.t);
    }
    trl_workers_destroy(&one);
    trl_workers_destroy(&workers);
    close_alone();
}
END_TEST

/* Graphs are refused alike on all ranks, before anything runs. */
START_TEST(calls_in_one_frame_need_an_order_or_programs_that_meet)
{
    static two_trees w;
    trli_frame *other;
    trl_workers *workers = workers_of(2);
    open_trees(&w, test_ctx, workers, 1, false);
    tree_freeze(&w.t);
    trl_graph *graph = graph_of_trees(&w);
    ck_fails(trl_graph_freeze(graph), TRL_ERR_USAGE,
             "calls 'first' and 'second' of graph 'both' may not go on at once: their programs share the memory of a "
             "frame; add a dependency between them");
    trl_graph_destroy(&graph);
    graph = graph_of_trees(&w);
    ck_ok(trl_graph_add_dependency(graph, w.task[1], w.task[0]));
    ck_ok(trl_graph_freeze(graph));
    tree_set_all(&w.t, w.t.frame);
    ck_ok(trl_graph_run(graph, workers, w.t.frame));
    ck_assert(!tree_has_nan(&w.t, w.t.frame));
    trl_graph_destroy(&graph);
    ck_ok(trli_frame_create(w.t.model, &other));
    w.call[0].frame = other;
    w.call[1].frame = w.t.frame;
    graph = graph_of_trees(&w);
    ck_ok(trl_graph_freeze(graph));
    tree_set_all(&w.t, w.t.frame);
    tree_set_all(&w.t, other);
    ck_ok(trl_graph_run(graph, workers, NULL));
    ck_assert(!tree_has_nan(&w.t, w.t.frame) && !tree_has_nan(&w.t, other));
    trl_graph_destroy(&graph);
    trli_frame_destroy(&other);
    tree_close(&w.t);
    trl_workers_destroy(&workers);
}
END_TEST

static trl_err run_the_other(void *data, trli_frame *frame, int64_t round, bool *again)
{
    const two_trees *w = data;
    bool unused;
    (void)round, (void)again;
    ck_fails(trli_program_run(w->root[1]->program, frame), TRL_ERR_USAGE,
             "programs 'program' and 'program' cannot run in one frame at once: they share its memory");
    return tree_again(w->root[0], frame, 1, &unused);
}

/* What no graph says: here a function of a call runs another program in its frame, as a thread might. */
START_TEST(a_program_that_begins_in_a_frame_where_another_one_runs_is_refused)
{
    static two_trees w;
    trl_workers *workers = workers_of(2);
    trl_task task;
    open_trees(&w, test_ctx, workers, 1, false);
    tree_freeze(&w.t);
    trl_graph *graph = graph_of("one");
    const trli_program_call call = {
        .program = w.root[0]->program, .frame = w.t.frame, .data = &w, .again = run_the_other, .rounds = 1};
    ck_ok(trli_program_add_call(graph, "call", &call, &task));
    ck_ok(trl_graph_freeze(graph));
    tree_set_all(&w.t, w.t.frame);
    ck_fails(trl_graph_run(graph, workers, NULL), TRL_ERR_USAGE, "what the frame holds is not known");
    trl_graph_destroy(&graph);
    tree_run_rounds(w.root[1]); /* which nobody refuses now */
    tree_close(&w.t);
    trl_workers_destroy(&workers);
}
END_TEST

/* ---- an error on one rank ---- */

typedef struct faulty {
    tree_program *inner;
    int rank;     /* that fails, */
    int64_t when; /* after so many rounds of the inner program */
} faulty;

static trl_err again_or_fail(void *data, trli_frame *frame, int64_t round, bool *again)
{
    const faulty *f = data;
    const trl_err err = tree_again(f->inner, frame, round, again);
    if (err != TRL_OK || trl_context_rank(test_ctx) != f->rank || f->inner->done != f->when) return err;
    return trl_fail(test_ctx, TRL_ERR_NUMERICS, NULL, "a fault behind round %d", (int)f->when);
}

enum { FAULTS = 7 }; /* behind some rounds others of the call follow, behind some it is over */

/* In a called program, behind each of its first rounds: all ranks end, after as many rounds, and the next run is as if
 * nothing had been. */
START_TEST(an_error_of_one_rank_in_a_called_program_ends_all)
{
    static program_tree t, pieces;
    trl_workers *one, *workers = workers_of(_i % SETTINGS);
    program_tree *const trees[2] = {&t, &pieces};
    tree_program *inner[2], *root[2];
    trli_program_call call;
    faulty f = {.rank = trl_context_ranks(test_ctx) - 1, .when = 1 + _i / SETTINGS};
    trl_task task;
    open_alone();
    ck_assert_int_eq(trl_workers_create(alone, "serial", &one), TRL_OK);
    for (int i = 0; i < 2; ++i) {
        tree_open(trees[i], i ? alone : test_ctx, i ? one : workers, 2 + (uint64_t)_i / SETTINGS, i);
        inner[i] = tree_begin_program(trees[i]);
        trli_ir_value mixed = trli_ir_field(&trees[i]->model->ir, trees[i]->source);
        tree_add_temporary(trees[i], inner[i], &mixed);
        tree_end_program(trees[i], inner[i], mixed);
        root[i] = tree_begin_program(trees[i]);
        mixed = trli_ir_field(&trees[i]->model->ir, trees[i]->source);
        tree_add_temporary(trees[i], root[i], &mixed);
        tree_add_call(trees[i], root[i], inner[i], &mixed);
        tree_end_program(trees[i], root[i], mixed);
        root[i]->rounds += 4;
    }
    f.inner = inner[0];
    t.call[0].data = &f;
    t.call[0].begin = NULL;
    t.call[0].again = again_or_fail;
    tree_freeze(&t);
    tree_freeze(&pieces);
    trl_graph *graph = graph_of("faulty");
    call = tree_call(root[0]);
    ck_ok(trli_program_add_call(graph, "root", &call, &task));
    ck_ok(trl_graph_freeze(graph));
    tree_set_all(&t, t.frame);
    const trl_err err = trl_graph_run(graph, workers, t.frame);
    int64_t done[2] = {inner[0]->done, -inner[0]->done};
    MPI_Allreduce(MPI_IN_PLACE, done, 2, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD);
    ck_assert_int_eq(done[0], -done[1]);
    int good = err == (trl_context_rank(test_ctx) == f.rank ? TRL_ERR_NUMERICS : TRL_OK);
    MPI_Allreduce(MPI_IN_PLACE, &good, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    ck_assert_msg(good, "%s", trl_err_name(err));
    ck_assert_int_eq(trl_context_agree(test_ctx, err), TRL_ERR_NUMERICS);
    test_clear();
    f.rank = -1;
    for (int i = 0; i < t.nprograms; ++i) trli_reductions_clear(t.frame, t.program[i].program);
    tree_set_all(&t, t.frame);
    tree_set_all(&pieces, pieces.frame);
    ck_ok(trl_graph_run(graph, workers, t.frame));
    tree_run_rounds(root[1]);
    ck_assert(tree_ran_as(&t, &pieces));
    trl_graph_destroy(&graph);
    tree_close(&t);
    tree_close(&pieces);
    trl_workers_destroy(&one);
    trl_workers_destroy(&workers);
    close_alone();
}
END_TEST

/* ---- the plan ---- */

static int add_chain(program_tree *t, tree_program *p, int n, int before)
{
    trli_ir *ir = &t->model->ir;
    for (int i = 0; i < n; ++i) {
        const int field = tree_field(t, "temporary", false);
        tree_store(t, p, field, tree_mix(t, trli_ir_field(ir, t->source), 0.5, trli_ir_field(ir, before)));
        p->temporary[p->ntemporaries++] = before = field;
    }
    return before;
}

static void end_chain(program_tree *t, tree_program *p, int field)
{
    tree_store(t, p, p->next, trli_ir_field(&t->model->ir, field));
    p->sum = -1;
}

/* A chain needs two slots, whatever its length. Two called programs follow each other by what the second one reads. */
START_TEST(called_programs_share_the_memory_of_what_is_not_live_meanwhile)
{
    program_tree t;
    trl_workers *workers = workers_of(0);
    trli_ir_value mixed = 0;
    tree_open(&t, test_ctx, workers, 1, false);
    for (int i = 0; i < 2; ++i) {
        tree_program *p = tree_begin_program(&t);
        end_chain(&t, p, add_chain(&t, p, 6, i ? t.program[0].now : t.source));
    }
    tree_program *root = tree_begin_program(&t);
    const int across = add_chain(&t, root, 4, t.source);
    for (int i = 0; i < 2; ++i) tree_add_call(&t, root, &t.program[i], &mixed);
    const int sum = tree_field(&t, "sum", false);
    tree_store(&t, root, sum,
               tree_mix(&t, trli_ir_field(&t.model->ir, across), 1, trli_ir_field(&t.model->ir, t.program[1].now)));
    end_chain(&t, root, add_chain(&t, root, 4, sum));
    tree_freeze(&t);
    ck_assert_int_eq(tree_slots(&t), 3); /* of the value across the calls, and of the chains */
    for (int i = 0; i < 2; ++i)
        for (int k = 0; k < 6; ++k)
            ck_assert_int_ne(t.model->field[t.program[i].temporary[k]].slot, t.model->field[across].slot);
    tree_close(&t);
    trl_workers_destroy(&workers);
}
END_TEST

/* They read what both find there. */
START_TEST(called_programs_without_an_order_have_memory_apart)
{
    program_tree t;
    trl_workers *workers = workers_of(0);
    trli_ir_value mixed = 0;
    tree_open(&t, test_ctx, workers, 1, false);
    for (int i = 0; i < 2; ++i) {
        tree_program *p = tree_begin_program(&t);
        end_chain(&t, p, add_chain(&t, p, 6, t.source));
    }
    tree_program *root = tree_begin_program(&t);
    for (int i = 0; i < 2; ++i) tree_add_call(&t, root, &t.program[i], &mixed);
    end_chain(&t, root, t.program[1].now);
    tree_freeze(&t);
    ck_assert_int_eq(tree_slots(&t), 4);
    ck_assert(trli_programs_may_meet(t.program[0].program, t.program[1].program));
    ck_assert(!trli_programs_may_meet(t.program[0].program, root->program));
    tree_close(&t);
    trl_workers_destroy(&workers);
}
END_TEST

/* ---- what is refused while programs are made ---- */

START_TEST(calls_that_cannot_be_are_refused)
{
    static two_trees w;
    program_tree other;
    trl_workers *workers = workers_of(0);
    open_trees(&w, test_ctx, workers, 1, false);
    tree_open(&other, test_ctx, workers, 1, false);
    tree_program *inner = &w.t.program[0], *root = w.root[0];
    trli_program_call call = tree_call(root);
    ck_fails(trli_program_append_call(inner->program, "call", &call), TRL_ERR_USAGE,
             "program 'program' cannot call program 'program': it was created after its caller");
    ck_fails(trli_program_append_call(root->program, "call", &call), TRL_ERR_USAGE, "created after its caller");
    tree_program *stranger = tree_begin_program(&other);
    ck_fails(trli_program_append_call(stranger->program, "call", &call), TRL_ERR_USAGE, "belongs to another model");
    call = tree_call(inner);
    call.frame = (trli_frame *)&other;
    ck_fails(trli_program_append_call(root->program, "call", &call), TRL_ERR_USAGE, "in the frame of its caller");
    ck_fails(trli_programs_meet(root->program, inner->program), TRL_ERR_USAGE, "one of them is in the other");
    tree_close(&other);
    tree_freeze(&w.t);
    ck_fails(trli_programs_meet(w.root[0]->program, w.root[1]->program), TRL_ERR_USAGE, "their model is frozen");
    tree_close(&w.t);
    trl_workers_destroy(&workers);
}
END_TEST

START_TEST(programs_with_a_program_in_common_cannot_meet)
{
    static two_trees w;
    trli_ir_value mixed = 0;
    trl_workers *workers = workers_of(0);
    open_trees(&w, test_ctx, workers, 1, false);
    tree_program *third = tree_begin_program(&w.t);
    tree_add_call(&w.t, third, &w.t.program[0], &mixed);
    end_chain(&w.t, third, w.t.program[0].now);
    ck_ok(trli_programs_meet(w.root[0]->program, third->program));
    tree_plan(&w.t);
    ck_fails(trli_model_freeze(w.t.model, NULL, NULL), TRL_ERR_USAGE, "'program' is in both");
    tree_close(&w.t);
    trl_workers_destroy(&workers);
}
END_TEST

START_TEST(ghosts_of_what_a_call_has_changed_are_set_behind_it)
{
    program_tree t;
    trli_ir_value mixed = 0;
    trl_workers *workers = workers_of(0);
    tree_open(&t, test_ctx, workers, 1, false);
    tree_program *inner = tree_begin_program(&t);
    end_chain(&t, inner, t.source);
    tree_program *root = tree_begin_program(&t);
    const trli_ir_value laplacian = tree_laplacian(&t, root->program, inner->now); /* which fills */
    tree_add_call(&t, root, inner, &mixed);
    tree_store(&t, root, root->next, laplacian);
    ck_ok(trli_program_analyse(inner->program));
    ck_fails(trli_program_analyse(root->program), TRL_ERR_USAGE,
             "program 'program' reads ghosts of 'now' after its call of 'program' has changed them; fill them in "
             "between");
    tree_close(&t);
    trl_workers_destroy(&workers);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_loop_test(tc, programs_that_call_each_other_have_the_bits_of_pieces_one_after_the_other, 0, SETTINGS);
    tcase_add_loop_test(tc, calls_beside_each_other_in_one_frame_have_the_bits_of_one_after_the_other, 0, SETTINGS);
    tcase_add_loop_test(tc, an_error_of_one_rank_in_a_called_program_ends_all, 0, FAULTS * SETTINGS);
    tcase_add_test(tc, calls_in_one_frame_need_an_order_or_programs_that_meet);
    tcase_add_test(tc, a_program_that_begins_in_a_frame_where_another_one_runs_is_refused);
    tcase_add_test(tc, called_programs_share_the_memory_of_what_is_not_live_meanwhile);
    tcase_add_test(tc, called_programs_without_an_order_have_memory_apart);
    tcase_add_test(tc, calls_that_cannot_be_are_refused);
    tcase_add_test(tc, programs_with_a_program_in_common_cannot_meet);
    tcase_add_test(tc, ghosts_of_what_a_call_has_changed_are_set_behind_it);
}

TRL_TEST_MAIN("called programs", add_tests)
