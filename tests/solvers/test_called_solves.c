// ctest: np=1,2,3,4 timeout=120
/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Solves of Poisson's equation that are one task graph each, on the fields of a model: programs with their messages,
 * boundary conditions and reductions are bodies of calls. They have the bits of a loop on one rank, which runs program
 * after program, and end everywhere in the same round, after an error too. */
#include "trl_test.h"

#include <context_impl.h>
#include <tasks_impl.h>

#include "poisson_graph.h"

#include "simulation_impl.h"

enum { CELLS = 24, MOST = 10000 };
static const double tolerance = 1e-10;

static double source(double x, double y)
{
    return 3 * x * x - sin(7 * y) + (x > 0.4 && y < 0.6 ? 20 : 0);
}

/* A solve, by a loop or by calls. */
typedef struct solve {
    poisson p;
    int64_t rounds;
    double norm;
} solve;

static void begin(solve *s)
{
    poisson_set(&s->p, s->p.now[POISSON_U], NULL);
    poisson_set(&s->p, s->p.now[POISSON_F], source);
    s->p.frame->scalar[s->p.omega] = 0.9; /* with 1 the highest mode stays */
    s->rounds = 0;
    s->norm = -1;
}

/* ---- what follows a round, in calls and in loops ---- */

static trl_err after_sweep(void *data, trli_frame *frame, int64_t round, bool *again)
{
    solve *s = data;
    (void)frame;
    s->rounds = round;
    s->norm = poisson_norm(&s->p, s->p.sweep_rr); /* of what the sweep read */
    *again = !(s->norm <= tolerance);
    if (*again) poisson_swap(&s->p, POISSON_U);
    return TRL_OK;
}

static trl_err after_start(void *data, trli_frame *frame, int64_t round, bool *again)
{
    solve *s = data;
    (void)round, (void)again;
    frame->scalar[s->p.rho] = frame->scalar[s->p.start_rr];
    return TRL_OK;
}

static trl_err after_step(void *data, trli_frame *frame, int64_t round, bool *again)
{
    solve *s = data;
    s->rounds = round;
    s->norm = poisson_norm(&s->p, s->p.step_rr);
    for (int v = 0; v < POISSON_NEXT; ++v) poisson_swap(&s->p, v);
    frame->scalar[s->p.rho] = frame->scalar[s->p.step_rr];
    *again = !(s->norm <= tolerance);
    return TRL_OK;
}

static void loop(solve *s, const trli_program *program, trl_err (*after)(void *, trli_frame *, int64_t, bool *))
{
    bool again = true;
    for (int64_t round = 1; again; ++round) {
        again = false;
        ck_ok(trli_program_run(program, s->p.frame));
        ck_ok(after(s, s->p.frame, round, &again));
    }
}

/* ---- settings ---- */

static trl_context *alone; /* of this rank alone, for the loop */

static void open_alone(void)
{
    const trl_context_options options = {.threads = 1};
    ck_assert_int_eq(trl_context_create(MPI_COMM_SELF, &options, &alone), TRL_OK);
}

static void close_alone(void)
{
    trl_context_destroy(&alone);
}

static const struct {
    const char *policy;
    int threads;
} settings[] = {{"serial", 1}, {"priority", 1}, {"priority", 2}};
enum { SETTINGS = sizeof settings / sizeof *settings };

static trl_workers *workers_of(int i)
{
    trl_workers *workers;
    ck_ok(trl_context_set_threads(test_ctx, settings[i].threads));
    ck_ok(trl_workers_create(test_ctx, settings[i].policy, &workers));
    return workers;
}

/* All ranks have what one rank had. */
static void check_same(solve *called, solve *looped)
{
    int good = called->rounds == looped->rounds && called->norm == looped->norm;
    const uint64_t hash = poisson_hash(&called->p, called->p.now[POISSON_U]);
    good = good && hash == poisson_hash(&looped->p, looped->p.now[POISSON_U]);
    MPI_Allreduce(MPI_IN_PLACE, &good, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    ck_assert_msg(good, "%lld rounds to %g, where a loop has %lld to %g", (long long)called->rounds, called->norm,
                  (long long)looped->rounds, looped->norm);
    ck_assert(called->norm <= tolerance && called->rounds > 20);
}

static trl_graph *graph_of(const char *name)
{
    trl_graph *graph;
    ck_ok(trl_graph_create(test_ctx, name, &graph));
    return graph;
}

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
    for (int run = 0; run < 2; ++run) {
        begin(&b.called);
        ck_ok(trl_graph_run(graph, b.workers, NULL));
        check_same(&b.called, &b.looped);
    }
    trl_graph_destroy(&graph);
    close_both(&b);
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
    for (int run = 0; run < 2; ++run) {
        begin(&b.called);
        ck_ok(trl_graph_run(graph, b.workers, NULL));
        check_same(&b.called, &b.looped);
    }
    trl_graph_destroy(&graph);
    close_both(&b);
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

/* ---- two grids ---- */

enum { FINE = 48, SMOOTHINGS = 2, STAGES = 10, MOST_CYCLES = 30 };

typedef struct two_grids {
    solve fine, coarse;
    trl_simulation fine_grid, coarse_grid; /* what transfers take of them */
    trli_grid_transfer *transfer;
    double enough; /* of the coarse residual */
} two_grids;

/* A part of a cycle: a program of a grid, round after round, or a task. */
typedef struct stage {
    const char *name;
    const solve *of;
    const trli_program *program;
    trl_err (*after)(void *data, trli_frame *frame, int64_t round, bool *again);
    trl_err (*task)(two_grids *g);
} stage;

static trl_err after_smoothing(void *data, trli_frame *frame, int64_t round, bool *again)
{
    two_grids *g = data;
    (void)frame;
    poisson_swap(&g->fine.p, POISSON_U);
    *again = round < SMOOTHINGS;
    return TRL_OK;
}

static trl_err after_residual(void *data, trli_frame *frame, int64_t round, bool *again)
{
    two_grids *g = data;
    (void)frame, (void)round, (void)again;
    g->fine.norm = poisson_norm(&g->fine.p, g->fine.p.residual_rr);
    return TRL_OK;
}

static trl_err after_coarse_start(void *data, trli_frame *frame, int64_t round, bool *again)
{
    two_grids *g = data;
    g->enough = 1e-3 * poisson_norm(&g->coarse.p, g->coarse.p.start_rr);
    return after_start(&g->coarse, frame, round, again);
}

static trl_err after_coarse_step(void *data, trli_frame *frame, int64_t round, bool *again)
{
    two_grids *g = data;
    const trl_err err = after_step(&g->coarse, frame, round, again);
    *again = !(g->coarse.norm <= g->enough);
    return err;
}

static trl_err restrict_residual(two_grids *g)
{
    poisson_set(&g->coarse.p, g->coarse.p.now[POISSON_U], NULL);
    return trli_restrict(g->transfer, &g->fine_grid, g->fine.p.now[POISSON_R], &g->coarse_grid,
                         g->coarse.p.now[POISSON_F], NULL);
}

static trl_err prolong_correction(two_grids *g)
{
    return trli_prolong(g->transfer, &g->coarse_grid, g->coarse.p.now[POISSON_U], &g->fine_grid,
                        g->fine.p.now[POISSON_U], NULL);
}

static void list_stages(const two_grids *g, stage list[STAGES])
{
    const poisson *f = &g->fine.p, *c = &g->coarse.p;
    const stage stages[STAGES] = {{"smooth", &g->fine, f->sweep, after_smoothing, NULL},
                                  {"residual", &g->fine, f->residual, after_residual, NULL},
                                  {"edge", &g->fine, f->edge, NULL, NULL},
                                  {"restrict", NULL, NULL, NULL, restrict_residual},
                                  {"start", &g->coarse, c->start, after_coarse_start, NULL},
                                  {"solve", &g->coarse, c->step, after_coarse_step, NULL},
                                  {"ghosts", &g->coarse, c->ghosts, NULL, NULL},
                                  {"prolong", NULL, NULL, NULL, prolong_correction},
                                  {"smooth", &g->fine, f->sweep, after_smoothing, NULL}};
    memcpy(list, stages, sizeof stages);
}

static void open_grids(two_grids *g, trl_context *ctx, trl_workers *workers)
{
    *g = (two_grids){.enough = 0};
    poisson_create(&g->fine.p, ctx, workers, FINE);
    poisson_create(&g->coarse.p, ctx, workers, FINE / 2);
    g->fine_grid =
        (trl_simulation){.ctx = ctx, .layout = g->fine.p.layout, .model = g->fine.p.model, .frame = g->fine.p.frame};
    g->coarse_grid = (trl_simulation){
        .ctx = ctx, .layout = g->coarse.p.layout, .model = g->coarse.p.model, .frame = g->coarse.p.frame};
    const trli_transfer_request request = {.fine = g->fine.p.layout,
                                           .coarse = g->coarse.p.layout,
                                           .location = TRL_CELL,
                                           .mean = true,
                                           .factor = {-1, -1, -1, -1, 1, 1},
                                           .workers = 1};
    ck_ok(trli_transfer_create(ctx, &request, &g->transfer));
}

static void close_grids(two_grids *g)
{
    trli_transfer_destroy(&g->transfer);
    poisson_destroy(&g->fine.p);
    poisson_destroy(&g->coarse.p);
}

static void begin_grids(two_grids *g)
{
    begin(&g->fine);
}

static void loop_cycles(two_grids *g)
{
    stage list[STAGES];
    list_stages(g, list);
    begin_grids(g);
    for (bool more = true; more; more = g->fine.norm > tolerance) {
        ++g->fine.rounds;
        for (const stage *s = list; s->name; ++s) {
            bool again = !s->task;
            if (s->task) ck_ok(s->task(g));
            for (int64_t round = 1; again; ++round) {
                again = false;
                ck_ok(trli_program_run(s->program, s->of->p.frame));
                if (s->after) ck_ok(s->after(g, s->of->p.frame, round, &again));
            }
        }
    }
}

typedef struct grid_task {
    two_grids *g;
    const stage *stage;
} grid_task;

static trl_err run_stage(void *data, const trl_task_args *args, bool *done)
{
    const grid_task *t = data;
    (void)args, (void)done;
    return t->stage->task(t->g);
}

static trl_err after_cycle(void *data, const trl_task_args *args, int64_t round, bool *again)
{
    two_grids *g = data;
    (void)args;
    if (trli_program_call_is_lost(g->fine.p.residual, g->fine.p.frame)) return TRL_OK;
    g->fine.rounds = round;
    *again = g->fine.norm > tolerance;
    return TRL_OK;
}

/* Cycles of two grids, whose coarse solve is a call inside of the cycle's, with restriction and interpolation between
 * the index spaces of both. */
START_TEST(two_grid_cycles_are_calls_inside_of_a_call)
{
    two_grids called, looped;
    stage list[STAGES];
    trli_program_call call[STAGES];
    grid_task tasks[STAGES];
    trl_task before = -1, task;
    open_alone();
    trl_workers *workers = workers_of(_i), *one;
    ck_assert_int_eq(trl_workers_create(alone, "serial", &one), TRL_OK);
    open_grids(&called, test_ctx, workers);
    open_grids(&looped, alone, one);
    loop_cycles(&looped);
    trl_graph *cycle = graph_of("cycle"), *graph = graph_of("two grids");
    list_stages(&called, list);
    for (int i = 0; list[i].name; ++i) {
        const stage *s = &list[i];
        call[i] = (trli_program_call){
            .program = s->program, .frame = s->of ? s->of->p.frame : NULL, .data = &called, .rounds = MOST};
        call[i].again = s->after;
        tasks[i] = (grid_task){&called, s};
        if (s->program)
            ck_ok(trli_program_add_call(cycle, s->name, &call[i], &task));
        else
            ck_ok(trl_graph_add_task(
                cycle, &(trl_task_desc){.name = s->name, .variant = {{run_stage}}, .data = &tasks[i], .chunks = 1},
                &task));
        if (before >= 0) ck_ok(trl_graph_add_dependency(cycle, before, task));
        before = task;
    }
    ck_ok(trl_graph_freeze(cycle));
    const trl_call_desc cycles = {.name = "cycle",
                                  .body = cycle,
                                  .data = &called,
                                  .again = after_cycle,
                                  .rounds = MOST_CYCLES,
                                  .flags = TRL_TASK_ALWAYS};
    ck_ok(trl_graph_add_call(graph, &cycles, &task));
    ck_ok(trl_graph_freeze(graph));
    for (int run = 0; run < 2; ++run) {
        begin_grids(&called);
        ck_ok(trl_graph_run(graph, workers, NULL));
        int good = called.fine.rounds == looped.fine.rounds && called.fine.norm == looped.fine.norm &&
                   poisson_hash(&called.fine.p, called.fine.p.now[POISSON_U]) ==
                       poisson_hash(&looped.fine.p, looped.fine.p.now[POISSON_U]);
        MPI_Allreduce(MPI_IN_PLACE, &good, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
        ck_assert_msg(good, "%lld cycles to %g, where a loop has %lld to %g", (long long)called.fine.rounds,
                      called.fine.norm, (long long)looped.fine.rounds, looped.fine.norm);
    }
    ck_assert_int_lt(called.fine.rounds, MOST_CYCLES);
    ck_assert_int_gt(called.fine.rounds, 4);
    trl_graph_destroy(&graph);
    trl_graph_destroy(&cycle);
    close_grids(&called);
    close_grids(&looped);
    trl_workers_destroy(&workers);
    trl_workers_destroy(&one);
    close_alone();
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

static void add_tests(TCase *tc)
{
    tcase_add_loop_test(tc, jacobi_in_one_graph_has_the_bits_of_a_loop_on_one_rank, 0, SETTINGS);
    tcase_add_loop_test(tc, conjugate_gradients_in_one_graph_have_the_bits_of_a_loop_on_one_rank, 0, SETTINGS);
    tcase_add_loop_test(tc, two_solves_go_on_beside_each_other_in_one_graph, 0, SETTINGS);
    tcase_add_loop_test(tc, two_grid_cycles_are_calls_inside_of_a_call, 0, SETTINGS);
    tcase_add_loop_test(tc, an_error_of_one_rank_ends_all_in_one_round, 0, FAULTS * SETTINGS);
}

TRL_TEST_MAIN("called solves", add_tests)
