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

static void add_tests(TCase *tc)
{
    tcase_add_loop_test(tc, jacobi_in_one_graph_has_the_bits_of_a_loop_on_one_rank, 0, SETTINGS);
    tcase_add_loop_test(tc, conjugate_gradients_in_one_graph_have_the_bits_of_a_loop_on_one_rank, 0, SETTINGS);
}

TRL_TEST_MAIN("called solves", add_tests)
