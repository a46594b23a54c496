// ctest: np=1,2,3,4 timeout=120
/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Cycles of two grids in one task graph, whose coarse solves are calls inside of a call. They have the bits of a loop
 * on one rank. */
#include "trl_test.h"

#include "called_solve.h"

#include "simulation_impl.h"

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

static void add_tests(TCase *tc)
{
    tcase_add_loop_test(tc, two_grid_cycles_are_calls_inside_of_a_call, 0, SETTINGS);
}

TRL_TEST_MAIN("called cycles", add_tests)
