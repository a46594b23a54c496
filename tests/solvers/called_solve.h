/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Solves of Poisson's equation by calls of a task graph, and by a loop of programs on one rank. */
#ifndef CALLED_SOLVE_H
#define CALLED_SOLVE_H

#include "poisson_graph.h"

enum { MOST = 10000 };
static const double tolerance = 1e-10;

static inline double source(double x, double y)
{
    return 3 * x * x - sin(7 * y) + (x > 0.4 && y < 0.6 ? 20 : 0);
}

/* A solve, by a loop or by calls. */
typedef struct solve {
    poisson p;
    int64_t rounds;
    double norm;
} solve;

static inline void begin(solve *s)
{
    poisson_set(&s->p, s->p.now[POISSON_U], NULL);
    poisson_set(&s->p, s->p.now[POISSON_F], source);
    s->p.frame->scalar[s->p.omega] = 0.9; /* with 1 the highest mode stays */
    s->rounds = 0;
    s->norm = -1;
}

/* ---- what follows a round, in calls and in loops ---- */

static inline trl_err after_sweep(void *data, trli_frame *frame, int64_t round, bool *again)
{
    solve *s = data;
    (void)frame;
    s->rounds = round;
    s->norm = poisson_norm(&s->p, s->p.sweep_rr); /* of what the sweep read */
    *again = !(s->norm <= tolerance);
    if (*again) poisson_swap(&s->p, POISSON_U);
    return TRL_OK;
}

static inline trl_err after_start(void *data, trli_frame *frame, int64_t round, bool *again)
{
    solve *s = data;
    (void)round, (void)again;
    frame->scalar[s->p.rho] = frame->scalar[s->p.start_rr];
    return TRL_OK;
}

static inline trl_err after_step(void *data, trli_frame *frame, int64_t round, bool *again)
{
    solve *s = data;
    s->rounds = round;
    s->norm = poisson_norm(&s->p, s->p.step_rr);
    for (int v = 0; v < POISSON_NEXT; ++v) poisson_swap(&s->p, v);
    frame->scalar[s->p.rho] = frame->scalar[s->p.step_rr];
    *again = !(s->norm <= tolerance);
    return TRL_OK;
}

static inline void loop(solve *s, const trli_program *program, trl_err (*after)(void *, trli_frame *, int64_t, bool *))
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

static inline void open_alone(void)
{
    const trl_context_options options = {.threads = 1};
    ck_assert_int_eq(trl_context_create(MPI_COMM_SELF, &options, &alone), TRL_OK);
}

static inline void close_alone(void)
{
    trl_context_destroy(&alone);
}

static const struct {
    const char *policy;
    int threads;
} settings[] = {{"serial", 1}, {"priority", 1}, {"priority", 2}};
enum { SETTINGS = sizeof settings / sizeof *settings };

static inline trl_workers *workers_of(int i)
{
    trl_workers *workers;
    ck_ok(trl_context_set_threads(test_ctx, settings[i].threads));
    ck_ok(trl_workers_create(test_ctx, settings[i].policy, &workers));
    return workers;
}

/* All ranks have what one rank had. */
static inline void check_same(solve *called, solve *looped)
{
    int good = called->rounds == looped->rounds && called->norm == looped->norm;
    const uint64_t hash = poisson_hash(&called->p, called->p.now[POISSON_U]);
    good = good && hash == poisson_hash(&looped->p, looped->p.now[POISSON_U]);
    MPI_Allreduce(MPI_IN_PLACE, &good, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    ck_assert_msg(good, "%lld rounds to %g, where a loop has %lld to %g", (long long)called->rounds, called->norm,
                  (long long)looped->rounds, looped->norm);
    ck_assert(called->norm <= tolerance && called->rounds > 20);
}

static inline trl_graph *graph_of(const char *name)
{
    trl_graph *graph;
    ck_ok(trl_graph_create(test_ctx, name, &graph));
    return graph;
}

#endif
