/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_grain_impl.h"

enum {
    STEPS = 5,
    ROUNDS = 15,
    QUICK_ROUNDS = 1,
    PIECES =
        8,    /* narrow tasks of a step, which all wait for all of the step before; shared evenly by 2, 4, 8 threads */
    WIDE = 4, /* wide tasks of a step, one after the other, each of `pieces` chunks */
};

/* Seconds of a piece: as in a deck of few kernels on large patches. */
static const double piece_seconds = 2e-3, quick_seconds = 20e-6;

typedef struct large {
    trli_bench *bench;
    int threads, pieces;
    int64_t iterations; /* of a piece of a narrow task; a chunk does 1/WIDE of it */
    int64_t *calls;     /* [pieces*8] how often a piece was computed, a line apart */
    double *value;      /* [pieces*8] */
    bool wide;
    trl_graph *graph;
    trl_workers *workers;
    struct piece *piece;
} large;

typedef struct piece {
    large *all;
    int index;
} piece;

static void compute(large *g, int index, int64_t iterations)
{
    g->value[(size_t)8 * index] = trli_busy(iterations, g->value[(size_t)8 * index]);
    ++g->calls[(size_t)8 * index];
}

static trl_err narrow(void *data, const trl_task_args *args, bool *done)
{
    const piece *p = data;
    (void)args, (void)done;
    compute(p->all, p->index, p->all->iterations);
    return TRL_OK;
}

static trl_err chunk(void *data, const trl_task_args *args, bool *done)
{
    large *g = data;
    (void)done;
    compute(g, args->chunk, g->iterations / WIDE);
    return TRL_OK;
}

/* The same work, split by hand: each thread its share of each step, then all wait. */
static void split(trli_team *team, int member, void *data)
{
    large *g = data;
    ptrdiff_t begin, end;
    int passes = g->wide ? STEPS * WIDE : STEPS;
    trli_team_share(team, member, g->pieces, &begin, &end);
    for (int pass = 0; pass < passes; ++pass) {
        for (ptrdiff_t p = begin; p < end; ++p) compute(g, (int)p, g->wide ? g->iterations / WIDE : g->iterations);
        trli_team_barrier(team);
    }
}

static trl_err run_split(void *data)
{
    large *g = data;
    return trli_team_run(g->bench->ctx, g->threads, split, g);
}

static trl_err run_graph(void *data)
{
    large *g = data;
    return trl_graph_run(g->graph, g->workers, NULL);
}

static trl_err build_narrow(large *g)
{
    trl_task before[PIECES * 16], now[PIECES * 16];
    trl_err err = TRL_OK;
    for (int step = 0; step < STEPS; ++step) {
        for (int p = 0; p < g->pieces; ++p) {
            const trl_task_desc desc = {.name = "piece", .variant = {{narrow}}, .data = &g->piece[p], .chunks = 1};
            TRL_TRY(trl_graph_add_task(g->graph, &desc, &now[p]));
            for (int q = 0; q < g->pieces && step > 0; ++q)
                TRL_TRY(trl_graph_add_dependency(g->graph, before[q], now[p]));
        }
        memcpy(before, now, sizeof before);
    }
done:
    return err;
}

static trl_err build_wide(large *g)
{
    trl_task before = 0, now;
    trl_err err = TRL_OK;
    for (int pass = 0; pass < STEPS * WIDE; ++pass) {
        const trl_task_desc desc = {.name = "wide", .variant = {{chunk}}, .data = g, .chunks = g->pieces};
        TRL_TRY(trl_graph_add_task(g->graph, &desc, &now));
        if (pass > 0) TRL_TRY(trl_graph_add_dependency(g->graph, before, now));
        before = now;
    }
done:
    return err;
}

/* Every piece was computed in every pass of every round of both ways. */
static trl_err check(const large *g, int rounds)
{
    int64_t expected = 2 * (int64_t)(rounds + 1) * (g->wide ? STEPS * WIDE : STEPS);
    for (int p = 0; p < g->pieces; ++p)
        if (g->calls[(size_t)8 * p] != expected)
            return trl_fail(g->bench->ctx, TRL_ERR_BUG, NULL, "piece %d was computed %lld times instead of %lld", p,
                            (long long)g->calls[(size_t)8 * p], (long long)expected);
    return TRL_OK;
}

static trl_err play(large *g, double *slower)
{
    trli_json *json = g->bench->json;
    int rounds = g->bench->quick ? QUICK_ROUNDS : ROUNDS;
    trli_contender ways[] = {{.name = "split by hand", .run = run_split, .data = g},
                             {.name = "Trellis", .run = run_graph, .data = g}};
    trl_err err = TRL_OK;
    memset(g->calls, 0, 8 * (size_t)g->pieces * sizeof *g->calls);
    TRL_TRY(trl_graph_create(g->bench->ctx, "large", &g->graph));
    TRL_TRY(g->wide ? build_wide(g) : build_narrow(g));
    TRL_TRY(trl_graph_freeze(g->graph));
    trl_graph_set_timing(g->graph, false);
    TRL_TRY(trli_rounds_run(ways, 2, rounds));
    TRL_TRY(check(g, rounds));
    trli_spread ratio = trli_ratio(&ways[0], &ways[1], rounds), own = trli_rate(&ways[1], rounds, 1);
    printf("%-34s %8.3f ms a step, %6.4f (%6.4f, %6.4f) of the time of %s\n",
           g->wide ? "few large tasks, 4 wide in a row" : "few large tasks, 8 narrow or more", 1e3 / own.median / STEPS,
           ratio.median, ratio.min, ratio.max, g->threads > 1 ? "a static split" : "a plain loop");
    trli_spread_report(json, g->wide ? "wide" : "narrow", &ratio);
    if (!(ratio.median <= *slower)) *slower = ratio.median; /* NAN before the first */
done:
    trl_graph_destroy(&g->graph);
    return err;
}

trl_err trli_grain_large(trli_bench *bench, trl_workers *workers, int threads, double *slower)
{
    large g = {.bench = bench, .threads = threads, .workers = workers};
    double seconds = bench->quick ? quick_seconds : piece_seconds;
    trl_err err = TRL_OK;
    g.pieces = threads > PIECES ? threads : PIECES; /* at least one each; more than fit are as many as threads */
    if (g.pieces > PIECES * 16) return TRL_OK;
    g.iterations = (int64_t)(seconds * trli_busy_rate(bench->quick));
    g.calls = calloc(8 * (size_t)g.pieces, sizeof *g.calls);
    g.value = calloc(8 * (size_t)g.pieces, sizeof *g.value);
    g.piece = calloc((size_t)g.pieces, sizeof *g.piece);
    if (!g.calls || !g.value || !g.piece)
        TRL_TRY(trl_fail(bench->ctx, TRL_ERR_MEMORY, NULL, "no memory for the pieces of a benchmark"));
    for (int p = 0; p < g.pieces; ++p) g.piece[p] = (piece){&g, p};
    trli_json_key(bench->json, "large");
    trli_json_begin_object(bench->json);
    TRL_TRY(play(&g, slower));
    g.wide = true;
    TRL_TRY(play(&g, slower));
    trli_json_end_object(bench->json);
done:
    free(g.calls);
    free(g.value);
    free(g.piece);
    return err;
}
