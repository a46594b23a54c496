/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Steps of an incompressible flow of three stages, in a periodic cube: beside the explicit transport of three scalars,
 * code written by hand with FFTW on one core, and pressures by iterations. On cores, then on a GPU where there is
 * one. */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_dag_impl.h"
#include "bench_flow_peer.h"
#include "trl_device.h"

enum { ROUNDS = 9, QUICK_ROUNDS = 2, SETTLING = 20, QUICK_SETTLING = 2, GATES = 16 };

#define BOX                                                                                                       \
    "trellis: 1\ngrid: {cells: [%d, %d, %d], length: [6.283185307179586, 6.283185307179586, 6.283185307179586], " \
    "periodic: [true, true, true]}\n"
#define TIME "time: {method: ssprk3, dt: %.17g, steps: 100000}\nrun: {compile: always}\n"
#define WAVES_U "sin(x)*cos(y)*cos(z)"
#define WAVES_V "-cos(x)*sin(y)*cos(z)"

static const char flow_text[] =
    BOX TIME "parameters: {nu: %g}\n"
             "incompressible: {velocity: [u, v, w], pressure: p, solver: s}\n"
             "solvers: {s: {method: %s}}\n"
             "equations:\n"
             "  u: {location: xface, initial: '" WAVES_U "',\n"
             "      ddt: '-div(advective_flux(u, [u, at(v, zedge), at(w, yedge)])) + nu*laplacian(u)'}\n"
             "  v: {location: yface, initial: '" WAVES_V "',\n"
             "      ddt: '-div(advective_flux(v, [at(u, zedge), v, at(w, xedge)])) + nu*laplacian(v)'}\n"
             "  w: {location: zface, initial: 0,\n"
             "      ddt: '-div(advective_flux(w, [at(u, yedge), at(v, xedge), w])) + nu*laplacian(w)'}\n";

static const char scalars_text[] =
    BOX TIME "parameters: {nu: %g}\n"
             "expressions:\n"
             "  u: {formula: '" WAVES_U "', location: xface, evaluate: step}\n"
             "  v: {formula: '" WAVES_V "', location: yface, evaluate: step}\n"
             "  w: {formula: '0.1*cos(x)', location: zface, evaluate: step}\n"
             "equations:\n"
             "  a: {initial: 'sin(x)', ddt: '-div(advective_flux(a, [u, v, w])) + nu*laplacian(a)'}\n"
             "  b: {initial: 'sin(y)', ddt: '-div(advective_flux(b, [u, v, w])) + nu*laplacian(b)'}\n"
             "  c: {initial: 'sin(z)', ddt: '-div(advective_flux(c, [u, v, w])) + nu*laplacian(c)'}\n";

enum { SCALARS, DIRECT, CG, MULTIGRID, HAND, WAYS };

static const struct {
    const char *name, *method; /* method NULL: no flow */
    double accuracy;           /* of velocities, beside those of the direct pressure */
} asked[HAND] = {[SCALARS] = {"three scalars", NULL, 0},
                 [DIRECT] = {"flow, direct", "direct", 0},
                 [CG] = {"flow, cg with multigrid", "cg, preconditioner: multigrid", 1e-4},
                 [MULTIGRID] = {"flow, multigrid", "multigrid", 1e-4}};

typedef struct game {
    trli_bench *bench;
    trli_vortices problem;
    int threads, n;
    bool gpu;       /* else cores alone */
    char where[32]; /* in words */
    trli_case deck[HAND];
    const trli_flow_peer *peer;
    void *made;
    double *first, *other; /* [n^3] velocities */
    trli_contender contender[WAYS];
} game;

/* ---- ways ---- */

static trl_err step_deck(void *data)
{
    trl_simulation *sim = ((trli_case *)data)->sim;
    trl_err err = TRL_OK;
    TRL_TRY(trl_simulation_step(sim));
    err = trl_workers_finish(trl_simulation_workers(sim));
done:
    return err;
}

static trl_err step_peer(void *data)
{
    const game *g = data;
    g->peer->step(g->made);
    return TRL_OK;
}

static trl_err add_deck(game *g, int way)
{
    const int n = g->problem.n;
    char text[2048];
    if (asked[way].method)
        snprintf(text, sizeof text, flow_text, n, n, n, g->problem.dt, g->problem.viscosity, asked[way].method);
    else
        snprintf(text, sizeof text, scalars_text, n, n, n, g->problem.dt, g->problem.viscosity);
    g->contender[g->n++] = (trli_contender){.name = asked[way].name, .run = step_deck, .data = &g->deck[way]};
    return trli_case_create(g->bench->ctx, text, g->gpu ? TRLI_ON_GPU : TRLI_ON_CORES, &g->deck[way]);
}

static trl_err add_peer(game *g)
{
    static const char path[] = TRL_BASELINE_FOLDER "/flow.so";
    const trli_flow_peer *(*export)(void) = NULL;
    void *loaded = dlopen(path, RTLD_NOW | RTLD_LOCAL),
         *symbol = loaded ? dlsym(loaded, "trli_flow_peer_export") : NULL;
    if (!symbol) {
        printf("not built, left out: the flow by hand, which needs FFTW\n");
        return TRL_OK;
    }
    memcpy(&export, &symbol, sizeof symbol); /* ISO C knows no cast from data to a function */
    g->peer = export();
    g->made = g->peer->create(&g->problem);
    if (!g->made) return trl_fail(g->bench->ctx, TRL_ERR_MEMORY, NULL, "cannot set up '%s'", g->peer->name);
    g->contender[g->n++] = (trli_contender){.name = g->peer->name, .run = step_peer, .data = g};
    return TRL_OK;
}

/* ---- what they found ---- */

static void copy_deck(const trl_simulation *sim, double *u)
{
    const trl_array a = trl_simulation_array(sim, 0, 0);
    for (trl_lidx k = a.owned.lo[2]; k < a.owned.hi[2]; ++k)
        for (trl_lidx j = a.owned.lo[1]; j < a.owned.hi[1]; ++j)
            for (trl_lidx i = a.owned.lo[0]; i < a.owned.hi[0]; ++i)
                *u++ = ((double *)a.at)[trl_array_offset(&a, i, j, k)];
}

/* All have made as many steps. */
static trl_err compare(game *g, int way, double *difference)
{
    const size_t n = (size_t)g->problem.n, points = n * n * n;
    double most = 0;
    *difference = 0;
    if (way == SCALARS) return TRL_OK;
    copy_deck(g->deck[DIRECT].sim, g->first);
    if (way == HAND)
        g->peer->copy(g->made, g->other);
    else
        copy_deck(g->deck[way].sim, g->other);
    for (size_t i = 0; i < points; ++i) {
        most = fmax(most, fabs(g->first[i]));
        *difference = fmax(*difference, fabs(g->first[i] - g->other[i]));
    }
    *difference /= most;
    if (*difference <= (way == HAND ? 1e-10 : asked[way].accuracy)) return TRL_OK;
    return trl_fail(g->bench->ctx, TRL_ERR_BUG, NULL, "'%s' differs by %g from '%s'", g->contender[way].name,
                    *difference, asked[DIRECT].name);
}

static trl_err report(game *g, int rounds)
{
    trli_json *json = g->bench->json;
    const double points = pow(g->problem.n, 3);
    trl_err err = TRL_OK;
    printf("\n%d^3 cells, %s, %d rounds\n%-36s %9s %9s %9s %9s %9s  differs by\n", g->problem.n, g->where, rounds, "",
           "ms", "least", "most", "ns/cell", "of direct");
    for (int i = 0; i < g->n; ++i) {
        double difference;
        const trli_spread ratio = trli_ratio(&g->contender[DIRECT], &g->contender[i], rounds);
        double seconds[TRLI_ROUNDS_MAX];
        memcpy(seconds, g->contender[i].seconds, sizeof seconds); /* gates look at rounds in their order */
        const trli_spread s = trli_spread_of(seconds, rounds);
        TRL_TRY(compare(g, i, &difference));
        printf("%-36s %9.2f %9.2f %9.2f %9.1f %9.2f  %.1e\n", g->contender[i].name, 1e3 * s.median, 1e3 * s.min,
               1e3 * s.max, 1e9 * s.median / points, ratio.median, difference);
        trli_json_begin_object(json);
        trli_json_key(json, "name");
        trli_json_string(json, g->contender[i].name);
        trli_json_key(json, "cells");
        trli_json_integer(json, g->problem.n);
        trli_json_key(json, "threads");
        trli_json_integer(json, g->threads);
        trli_json_key(json, "devices");
        trli_json_string(json, g->gpu ? "gpu" : "cpu");
        trli_spread_report(json, "seconds", &s);
        trli_spread_report(json, "ratio_direct", &ratio);
        trli_json_end_object(json);
    }
done:
    return err;
}

static void judge(const game *g, int rounds, trli_gate *gate, char (*what)[128], int *n)
{
    static const struct {
        int slow, fast;
        double limit;
        const char *what;
    } list[] = {{DIRECT, SCALARS, 3, "flow, direct, over three scalars"},
                {DIRECT, HAND, 1, "flow, direct, over the step by hand"},
                {CG, DIRECT, 3, "flow, cg with multigrid, over direct"}};
    for (size_t i = 0; i < sizeof list / sizeof *list; ++i) {
        if (list[i].fast >= g->n) continue;
        snprintf(what[*n], sizeof *what, "%d^3, %s: %s", g->problem.n, g->where, list[i].what);
        const trli_spread ratio = trli_ratio(&g->contender[list[i].fast], &g->contender[list[i].slow], rounds);
        gate[*n] = (trli_gate){what[*n], ratio.median, list[i].limit, false};
        ++*n;
    }
}

/* ---- playing ---- */

static void close_game(game *g)
{
    for (int way = 0; way < HAND; ++way) trli_case_destroy(&g->deck[way]);
    if (g->made) g->peer->destroy(g->made);
    free(g->first);
    free(g->other);
}

static trl_err play(trli_bench *bench, int n, int threads, bool gpu, trli_gate *gate, char (*what)[128], int *gates)
{
    const int rounds = bench->quick ? QUICK_ROUNDS : ROUNDS, settling = bench->quick ? QUICK_SETTLING : SETTLING;
    const size_t points = (size_t)n * (size_t)n * (size_t)n;
    game *g = calloc(1, sizeof *g);
    trl_err err = TRL_OK;
    if (!g) return trl_fail(bench->ctx, TRL_ERR_MEMORY, NULL, "no memory for a benchmark");
    *g = (game){
        .bench = bench, .problem = {.n = n, .viscosity = 1.0 / 1600, .dt = 1.0 / n}, .threads = threads, .gpu = gpu};
    snprintf(g->where, sizeof g->where, "%s%d thread%s", gpu ? "a GPU and " : "", threads, threads > 1 ? "s" : "");
    TRL_TRY(trl_context_set_threads(bench->ctx, threads));
    TRL_TRY(trli_bench_alloc(bench->ctx, points, &g->first));
    TRL_TRY(trli_bench_alloc(bench->ctx, points, &g->other));
    for (int way = 0; way < HAND; ++way) TRL_TRY(add_deck(g, way));
    if (threads == 1 && !gpu) TRL_TRY(add_peer(g));
    /* Kernels choose their way through memory. */
    for (int i = 0; i < g->n; ++i)
        for (int s = 0; s < settling; ++s) TRL_TRY(g->contender[i].run(g->contender[i].data));
    TRL_TRY(trli_rounds_run(g->contender, g->n, rounds));
    TRL_TRY(report(g, rounds));
    judge(g, rounds, gate, what, gates);
done:
    close_game(g);
    free(g);
    return err;
}

trl_err trli_bench_flow(trli_bench *bench)
{
    trli_gate gate[GATES];
    char what[GATES][128];
    int gates = 0;
    trl_err err = TRL_OK;
    trli_json_key(bench->json, "flows");
    trli_json_begin_array(bench->json);
    for (int large = 0; large < (bench->quick ? 1 : 2); ++large) {
        const int n = bench->quick ? 12 : large ? 128 : 64;
        TRL_TRY(play(bench, n, 1, false, gate, what, &gates));
        if (bench->threads > 1) TRL_TRY(play(bench, n, bench->threads, false, gate, what, &gates));
        if (trl_device_count() > 0) TRL_TRY(play(bench, n, bench->threads, true, gate, what, &gates));
    }
    trli_json_end_array(bench->json);
    trli_gates_report(bench, gate, gates);
done:
    return err;
}
