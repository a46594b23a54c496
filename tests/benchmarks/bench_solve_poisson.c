/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Poisson's equation in a cube, from zero to a residual of 1e-8: multigrid and the direct solver beside those of other
 * libraries, on the same threads or ranks. Setup is not counted, but told. */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_solve_impl.h"
#include "bench_solve_peer.h"
#include "context_impl.h"
#include "simulation_impl.h"
#include "solving_impl.h"

enum { WAYS_MAX = 12, QUICK_ROUNDS = 2 };

static const double tolerance = 1e-8;

static const char deck_text[] = "trellis: 1\n"
                                "grid: {cells: [%d, %d, %d]}\n"
                                "solvers: {s: {method: %s, tolerance: %g}}\n" TRLI_BENCH_POISSON_TEXT;

static const struct {
    const char *name, *method;
} asked[] = {{"Trellis, direct", "direct"},
             {"Trellis, cg with multigrid", "cg, preconditioner: multigrid"},
             {"Trellis, multigrid", "multigrid"}};
enum { ASKED = sizeof asked / sizeof *asked };

/* A way to solve: a deck or a peer. */
typedef struct way {
    const char *name;
    trli_case deck;
    const trli_solve_peer *peer;
    void *made;
    double setup; /* seconds */
    int iterations;
} way;

typedef struct game {
    trli_bench *bench;
    trli_poisson problem;
    double *p, *first; /* [n^3] of all ranks; first: the solution of the first way */
    int n;
    way way[WAYS_MAX];
    trli_contender contender[WAYS_MAX];
} game;

static double source(int n, int i, int j, int k)
{
    const double x = (i + 0.5) / n, y = (j + 0.5) / n, z = (k + 0.5) / n;
    return 1 + 5 * sin(13 * x * y + z);
}

static size_t points_of(const trli_poisson *problem)
{
    return (size_t)problem->n * (size_t)problem->n * (size_t)problem->n;
}

/* ---- ways ---- */

static trl_err solve_deck(void *data)
{
    way *w = data;
    const trl_err err = trli_solve_initial(w->deck.sim, false);
    w->iterations = trl_simulation_solver(w->deck.sim, 0)->last_iterations;
    return err;
}

/* The next round begins at zero, too. */
static trl_err clear_deck(void *data)
{
    return trli_bench_clear(&((way *)data)->deck);
}

static trl_err solve_peer(void *data)
{
    way *w = data;
    return w->peer->solve(w->made, &w->iterations) == 0 ? TRL_OK : TRL_ERR_NUMERICS;
}

/* This rank's part. */
static trl_err copy_deck(const trl_simulation *sim, double *p)
{
    const int state = sim->equation[0].state;
    const trl_err err = trli_frame_fetch(sim->frame, state);
    for (int patch = 0; patch < sim->layout->nlocal && err == TRL_OK; ++patch) {
        const trl_array a = trli_frame_array(sim->frame, state, patch, 0);
        const trl_patch *place = &sim->layout->patch[patch];
        const size_t n = (size_t)sim->layout->grid.cells[0];
        for (trl_lidx k = a.owned.lo[2]; k < a.owned.hi[2]; ++k)
            for (trl_lidx j = a.owned.lo[1]; j < a.owned.hi[1]; ++j)
                for (trl_lidx i = a.owned.lo[0]; i < a.owned.hi[0]; ++i)
                    p[((size_t)(place->first[2] + k) * n + (size_t)(place->first[1] + j)) * n +
                      (size_t)(place->first[0] + i)] = ((double *)a.at)[trl_array_offset(&a, i, j, k)];
    }
    return err;
}

static trl_err add_deck(game *g, const char *name, const char *method)
{
    char text[1024];
    way *w = &g->way[g->n];
    const int n = g->problem.n;
    w->name = name;
    snprintf(text, sizeof text, deck_text, n, n, n, method, tolerance);
    g->contender[g->n++] = (trli_contender){.name = name, .run = solve_deck, .after = clear_deck, .data = w};
    trl_err err = trli_case_create(g->bench->ctx, text, TRLI_ON_CORES, &w->deck);
    w->setup = w->deck.create;
    return err == TRL_OK ? clear_deck(w) : err;
}

static trl_err add_peers(game *g, const char *library)
{
    char path[4096];
    const trli_solve_peer *(*export)(void) = NULL;
    snprintf(path, sizeof path, "%s/%s.so", TRL_BASELINE_FOLDER, library);
    void *loaded = dlopen(path, RTLD_NOW | RTLD_LOCAL),
         *symbol = loaded ? dlsym(loaded, "trli_solve_peer_export") : NULL;
    if (!symbol) {
        printf("not built, left out: %s\n", library);
        return TRL_OK;
    }
    memcpy(&export, &symbol, sizeof symbol); /* ISO C knows no cast from data to a function */
    for (const trli_solve_peer *peer = export(); peer->name && g->n < WAYS_MAX; ++peer) {
        way *w = &g->way[g->n];
        if (g->problem.threads > 1 && !peer->threads) continue;
        *w = (way){.name = peer->name, .peer = peer};
        const double start = trli_bench_clock();
        w->made = peer->create(&g->problem);
        w->setup = trli_bench_clock() - start;
        if (!w->made) return trl_fail(g->bench->ctx, TRL_ERR_MEMORY, NULL, "cannot set up '%s'", peer->name);
        g->contender[g->n++] = (trli_contender){.name = peer->name, .run = solve_peer, .data = w};
    }
    return TRL_OK;
}

/* ---- what they found ---- */

/* Solutions differ by no more than the tolerance makes them. The rounds left decks at zero. */
static trl_err compare(game *g, int which, double *difference)
{
    way *w = &g->way[which];
    const size_t n = points_of(&g->problem);
    double most = 0;
    trl_err err = TRL_OK;
    *difference = 0;
    memset(g->p, 0, n * sizeof *g->p);
    if (w->peer) {
        w->peer->copy(w->made, g->p);
    } else {
        TRL_TRY(solve_deck(w));
        TRL_TRY(copy_deck(w->deck.sim, g->p));
    }
    if (trl_context_ranks(g->bench->ctx) > 1) TRL_TRY(trli_allreduce(g->bench->ctx, g->p, (int)n, MPI_DOUBLE, MPI_SUM));
    for (size_t i = 0; i < n; ++i) {
        if (which == 0) g->first[i] = g->p[i];
        most = fmax(most, fabs(g->first[i]));
        *difference = fmax(*difference, fabs(g->p[i] - g->first[i]));
    }
    *difference /= most;
    if (!(*difference < 1e-6))
        err = trl_fail(g->bench->ctx, TRL_ERR_BUG, NULL, "'%s' differs by %g from '%s'", w->name, *difference,
                       g->way[0].name);
done:
    return err;
}

static void report_way(const game *g, int i, int rounds, double difference)
{
    const way *w = &g->way[i];
    trli_json *json = g->bench->json;
    double seconds[TRLI_ROUNDS_MAX];
    const trli_spread ratio = trli_ratio(&g->contender[0], &g->contender[i], rounds);
    memcpy(seconds, g->contender[i].seconds, sizeof seconds); /* their order pairs them with those of others */
    const trli_spread s = trli_spread_of(seconds, rounds);
    printf("%-28s %9.2f %9.2f %9.2f %9.1f %6d %9.1f %9.2f  %.1e\n", w->name, 1e3 * s.median, 1e3 * s.min, 1e3 * s.max,
           1e9 * s.median / (double)points_of(&g->problem), w->iterations, 1e3 * w->setup, ratio.median, difference);
    trli_bench_begin_row(g->bench, w->name, g->problem.n, g->problem.threads);
    trli_json_key(json, "iterations");
    trli_json_integer(json, w->iterations);
    trli_json_key(json, "setup_seconds");
    trli_json_number(json, w->setup);
    trli_spread_report(json, "seconds", &s);
    trli_spread_report(json, "ratio_direct", &ratio);
    trli_json_end_object(json);
}

static trl_err report(game *g, int rounds)
{
    trl_err err = TRL_OK;
    printf("\n%d^3 cells, %d rank%s, %d thread%s, %d rounds\n%-28s %9s %9s %9s %9s %6s %9s %9s  differs by\n",
           g->problem.n, trl_context_ranks(g->bench->ctx), trl_context_ranks(g->bench->ctx) > 1 ? "s" : "",
           g->problem.threads, g->problem.threads > 1 ? "s" : "", rounds, "", "ms", "least", "most", "ns/point",
           "rounds", "setup ms", "of direct");
    for (int i = 0; i < g->n; ++i) {
        double difference;
        TRL_TRY(compare(g, i, &difference));
        report_way(g, i, rounds, difference);
    }
done:
    return err;
}

/* ---- playing ---- */

static trl_err open_game(game *g)
{
    const size_t points = points_of(&g->problem);
    trl_err err = TRL_OK;
    TRL_TRY(trli_bench_alloc(g->bench->ctx, points, &g->p));
    err = trli_bench_alloc(g->bench->ctx, points, &g->first);
done:
    return err;
}

static void close_game(game *g)
{
    for (int i = 0; i < g->n; ++i) {
        way *w = &g->way[i];
        if (w->made) w->peer->destroy(w->made);
        if (!w->peer) trli_case_destroy(&w->deck);
    }
    free(g->p);
    free(g->first);
}

static int rounds_of(const trli_bench *bench, int cells)
{
    return bench->quick ? QUICK_ROUNDS : cells < 100 ? 9 : cells < 200 ? 5 : 3;
}

trl_err trli_bench_solve_poisson(trli_solve_study *study, int cells, int threads)
{
    static const char *const libraries[] = {"fftw", "hypre", "petsc"};
    trli_bench *bench = study->bench;
    const int rounds = rounds_of(bench, cells);
    game g = {
        .bench = bench,
        .problem = {
            .n = cells, .tolerance = tolerance, .comm = trl_context_comm(bench->ctx), .threads = threads, .f = source}};
    trl_err err = TRL_OK;
    TRL_TRY(trl_context_set_threads(bench->ctx, threads));
    TRL_TRY(trl_context_agree(bench->ctx, open_game(&g)));
    for (int i = 0; i < ASKED; ++i) TRL_TRY(add_deck(&g, asked[i].name, asked[i].method));
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries; ++i)
        TRL_TRY(trl_context_agree(bench->ctx, add_peers(&g, libraries[i])));
    TRL_TRY(trli_rounds_run(g.contender, g.n, rounds));
    err = report(&g, rounds);
done:
    close_game(&g);
    return err;
}
