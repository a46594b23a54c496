/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Frames of one model: runs at once, with different t and dt, have the bits of each alone. */
// ctest: np=1,2 timeout=120
#include <inttypes.h>
#include <pthread.h>

#include "problem_fixture.h"

#include <lifecycle_impl.h>
#include <program_calls_impl.h>
#include <simulation_impl.h>
#include <trl_integrator.h>

enum { STEPS = 40, FRAMES = 2 };

/* Exchanges, ghosts and planes of t, a reduction within a stage, stored intermediates, a modifier of time. */
static void say_deck(const char *fusion)
{
    new_deck();
    say("grid: {cells: [14, 11], periodic: [false, true], patches: [2, 2]}\n");
    say("expressions: {q: \"-(1 + x*y)*grad(T)\", m: \"integral(T*T)\"}\n");
    say("equations:\n");
    say("  T: {initial: \"sin(2*pi*x) + y\", ddt: \"0.01*(at(S, cell) - m*T) - div(q)\",\n");
    say("      boundary: {x-: {dirichlet: \"sin(40*t)\"}, x+: {robin: {a: 1, b: 1, c: \"t\"}}}}\n");
    say("  S: {location: xface, initial: \"x\", ddt: \"old(S)*sin(t) + ddx(T)\", boundary: {x-: {dirichlet: t}, x+: "
        "{neumann: 0}}}\n");
    say("time: {method: ssprk3, dt: 1.0e-4, steps: 1}\n");
    say("run: {threads: 2, fusion: %s}\n", fusion);
}

typedef struct run {
    trli_frame *frame;
    double t, dt;
    pthread_t thread;
    trl_err err;
} run;

static void set_times(const run *r)
{
    double *scalar = r->frame->scalar;
    scalar[TRLI_SCALAR_STEP_TIME] = r->t;
    scalar[TRLI_SCALAR_DT] = r->dt;
    for (int s = 1; s < sim->integrator->stages; ++s) scalar[sim->stage_time[s]] = r->t + sim->integrator->c[s] * r->dt;
    scalar[sim->stage_time[sim->integrator->stages]] = r->t + r->dt;
}

static void end_step(run *r)
{
    for (int v = 0; v < sim->nequations; ++v) trli_frame_swap(r->frame, sim->equation[v].state, sim->equation[v].next);
    r->t += r->dt;
}

static void *advance(void *arg)
{
    run *r = arg;
    for (int s = 0; s < STEPS && r->err == TRL_OK; ++s) {
        set_times(r);
        r->err = trli_program_run(sim->step, r->frame);
        end_step(r);
    }
    return NULL;
}

static void begin(run *r, int which)
{
    r->t = which;
    r->dt = 1e-4 * (1 + which);
    set_times(r);
    r->err = trli_program_run(sim->initial, r->frame);
    ck_ok(r->err);
}

static uint64_t hash_in(const run *r)
{
    uint64_t hash = 0;
    for (int v = 0; v < sim->nequations; ++v)
        for (int p = 0; p < sim->layout->nlocal; ++p) {
            const trl_array array = trli_frame_array(r->frame, sim->equation[v].state, p, 0);
            hash += (uint64_t)(v + 1) *
                    trl_array_hash(sim->layout, &sim->layout->patch[p], sim->model->variable[v].location, &array);
        }
    return hash;
}

START_TEST(runs_in_two_frames_at_once_have_the_bits_of_each_alone)
{
    static const char *const fusions[] = {"full", "node", "none"};
    run r[FRAMES];
    uint64_t alone[FRAMES];
    say_deck(fusions[_i]);
    ck_ok(open_problem());
    r[0] = (run){.frame = sim->frame};
    r[1] = (run){0};
    ck_ok(trli_frame_create(sim->model, &r[1].frame));
    for (int i = 0; i < FRAMES; ++i) {
        run one = {.frame = sim->frame};
        begin(&one, i);
        (void)advance(&one);
        ck_ok(one.err);
        alone[i] = hash_in(&one);
    }
    ck_assert(alone[0] != alone[1]);
    for (int i = 0; i < FRAMES; ++i) begin(&r[i], i);
    for (int i = 0; i < FRAMES; ++i) ck_assert_int_eq(pthread_create(&r[i].thread, NULL, advance, &r[i]), 0);
    for (int i = 0; i < FRAMES; ++i) pthread_join(r[i].thread, NULL);
    for (int i = 0; i < FRAMES; ++i) {
        ck_ok(r[i].err);
        ck_assert_msg(hash_in(&r[i]) == alone[i], "frame %d has other bits than alone", i);
    }
    trli_frame_destroy(&r[1].frame);
    close_problem();
}
END_TEST

static trl_err begin_calls(void *data, trli_frame *frame)
{
    (void)frame;
    set_times(data);
    return TRL_OK;
}

static trl_err after_step(void *data, trli_frame *frame, int64_t round, bool *again)
{
    run *r = data;
    (void)frame;
    end_step(r);
    set_times(r);
    *again = round < STEPS;
    return TRL_OK;
}

/* One task graph, whose calls of one program make the steps of both frames. */
START_TEST(calls_in_two_frames_of_one_graph_have_the_bits_of_each_alone)
{
    static const char *const fusions[] = {"full", "node", "none"};
    run r[FRAMES] = {0};
    uint64_t alone[FRAMES];
    trli_program_call call[FRAMES];
    trl_graph *graph;
    trl_task task;
    say_deck(fusions[_i]);
    ck_ok(open_problem());
    for (int i = 0; i < FRAMES; ++i) {
        run one = {.frame = sim->frame};
        begin(&one, i);
        (void)advance(&one);
        ck_ok(one.err);
        alone[i] = hash_in(&one);
    }
    ck_ok(trl_graph_create(test_ctx, "steps", &graph));
    r[0].frame = sim->frame;
    ck_ok(trli_frame_create(sim->model, &r[1].frame));
    for (int i = 0; i < FRAMES; ++i) {
        call[i] = (trli_program_call){.program = sim->step,
                                      .frame = r[i].frame,
                                      .data = &r[i],
                                      .begin = begin_calls,
                                      .again = after_step,
                                      .rounds = STEPS};
        ck_ok(trli_program_add_call(graph, i ? "second" : "first", &call[i], &task));
        begin(&r[i], i);
    }
    ck_ok(trl_graph_freeze(graph));
    ck_ok(trl_graph_run(graph, sim->workers, NULL));
    for (int i = 0; i < FRAMES; ++i) ck_assert_msg(hash_in(&r[i]) == alone[i], "frame %d has other bits than alone", i);
    trl_graph_destroy(&graph);
    trli_frame_destroy(&r[1].frame);
    close_problem();
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_loop_test(tc, calls_in_two_frames_of_one_graph_have_the_bits_of_each_alone, 0, 3);
    tcase_add_loop_test(tc, runs_in_two_frames_at_once_have_the_bits_of_each_alone, 0, 3);
}

TRL_TEST_MAIN("frames", add_tests)
