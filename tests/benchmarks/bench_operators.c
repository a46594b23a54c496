/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <trl_field_manager.h>
#include <trl_limiter_body.h>
#include <trl_operator.h>

#include "bench_dag_impl.h"
#include "bench_operators_impl.h"

enum {
    LARGE = 100,
    WAYS = 4,
    HANDS = 3,
    ROUNDS = 7,
    AGAIN_ROUNDS = 63,
    QUICK_ROUNDS = 2,
    GHOSTS = 3,
    FLUX = TRL_CUSTOM + 1
};

static const double least_of_hand = 0.9, least_of_copy = 0.8;

/* An operator, and who writes it by hand. */
typedef struct kind {
    const char *label;
    int kind, from, to, axis, width; /* FLUX: width is the limiter */
    int hand;
    bool two_points; /* without division: has a gate of its own */
} kind;

static const kind kinds[] = {
    {"interpolant, cell to xface", TRL_INTERPOLANT, TRL_CELL, TRL_XFACE, 0, 0, TRLI_HAND_MEAN, true},
    {"interpolant, cell to yface", TRL_INTERPOLANT, TRL_CELL, TRL_YFACE, 0, 0, TRLI_HAND_MEAN, true},
    {"interpolant, cell to zface", TRL_INTERPOLANT, TRL_CELL, TRL_ZFACE, 0, 0, TRLI_HAND_MEAN, true},
    {"gradient, cell to xface", TRL_GRADIENT, TRL_CELL, TRL_XFACE, 0, 0, TRLI_HAND_DIFFERENCE, true},
    {"gradient, cell to yface", TRL_GRADIENT, TRL_CELL, TRL_YFACE, 0, 0, TRLI_HAND_DIFFERENCE, true},
    {"gradient, cell to zface", TRL_GRADIENT, TRL_CELL, TRL_ZFACE, 0, 0, TRLI_HAND_DIFFERENCE, true},
    {"divergence, xface to cell", TRL_DIVERGENCE, TRL_XFACE, TRL_CELL, 0, 0, TRLI_HAND_DIFFERENCE, true},
    {"divergence, yface to cell", TRL_DIVERGENCE, TRL_YFACE, TRL_CELL, 0, 0, TRLI_HAND_DIFFERENCE, true},
    {"divergence, zface to cell", TRL_DIVERGENCE, TRL_ZFACE, TRL_CELL, 0, 0, TRLI_HAND_DIFFERENCE, true},
    {"central interpolant, x", TRL_CENTRAL_INTERPOLANT, TRL_CELL, TRL_CELL, 0, 0, TRLI_HAND_MEAN, true},
    {"central interpolant, z", TRL_CENTRAL_INTERPOLANT, TRL_CELL, TRL_CELL, 2, 0, TRLI_HAND_MEAN, true},
    {"central gradient, x", TRL_CENTRAL_GRADIENT, TRL_CELL, TRL_CELL, 0, 0, TRLI_HAND_DIFFERENCE, true},
    {"central gradient, y", TRL_CENTRAL_GRADIENT, TRL_CELL, TRL_CELL, 1, 0, TRLI_HAND_DIFFERENCE, true},
    {"central gradient, z", TRL_CENTRAL_GRADIENT, TRL_CELL, TRL_CELL, 2, 0, TRLI_HAND_DIFFERENCE, true},
    {"extrapolant, cell to xface", TRL_EXTRAPOLANT, TRL_CELL, TRL_XFACE, 0, 0, TRLI_HAND_TWO, true},
    {"extrapolant, cell to zface", TRL_EXTRAPOLANT, TRL_CELL, TRL_ZFACE, 0, 0, TRLI_HAND_TWO, true},
    {"second derivative, x", TRL_SECOND, TRL_CELL, TRL_CELL, 0, 0, TRLI_HAND_SECOND, false},
    {"second derivative, y", TRL_SECOND, TRL_CELL, TRL_CELL, 1, 0, TRLI_HAND_SECOND, false},
    {"second derivative, z", TRL_SECOND, TRL_CELL, TRL_CELL, 2, 0, TRLI_HAND_SECOND, false},
    {"laplacian", TRL_LAPLACIAN, TRL_CELL, TRL_CELL, 0, 0, TRLI_HAND_LAPLACIAN, false},
    {"interpolant, cell to zedge", TRL_INTERPOLANT, TRL_CELL, TRL_ZEDGE, 0, 0, TRLI_HAND_MEAN_OF_4, false},
    {"interpolant, xface to yface", TRL_INTERPOLANT, TRL_XFACE, TRL_YFACE, 0, 0, TRLI_HAND_MEAN_OF_4, false},
    {"interpolant, cell to xedge", TRL_INTERPOLANT, TRL_CELL, TRL_XEDGE, 0, 0, TRLI_HAND_MEAN_OF_4, false},
    {"interpolant, cell to node", TRL_INTERPOLANT, TRL_CELL, TRL_NODE, 0, 0, TRLI_HAND_MEAN_OF_8, false},
    {"fourth-order interpolant, cell to xface", TRL_INTERPOLANT4, TRL_CELL, TRL_XFACE, 0, 0, TRLI_HAND_FOUR, false},
    {"fourth-order interpolant, cell to zface", TRL_INTERPOLANT4, TRL_CELL, TRL_ZFACE, 0, 0, TRLI_HAND_FOUR, false},
    {"fourth-order gradient, cell to xface", TRL_GRADIENT4, TRL_CELL, TRL_XFACE, 0, 0, TRLI_HAND_FOUR, false},
    {"fourth-order gradient, cell to yface", TRL_GRADIENT4, TRL_CELL, TRL_YFACE, 0, 0, TRLI_HAND_FOUR, false},
    {"fourth-order divergence, zface to cell", TRL_DIVERGENCE4, TRL_ZFACE, TRL_CELL, 0, 0, TRLI_HAND_FOUR, false},
    {"fourth-order interpolant, cell to zedge", TRL_INTERPOLANT4, TRL_CELL, TRL_ZEDGE, 0, 0, TRLI_HAND_PASSES, false},
    {"fourth-order interpolant, cell to node", TRL_INTERPOLANT4, TRL_CELL, TRL_NODE, 0, 0, TRLI_HAND_PASSES, false},
    {"box filter of 3 cells", TRL_BOX_FILTER, TRL_CELL, TRL_CELL, 0, 3, TRLI_HAND_PASSES, false},
    {"box filter of 5 cells", TRL_BOX_FILTER, TRL_CELL, TRL_CELL, 0, 5, TRLI_HAND_PASSES, false},
    {"top-hat filter of 2 cells", TRL_TOPHAT_FILTER, TRL_CELL, TRL_CELL, 0, 2, TRLI_HAND_PASSES, false},
    {"divergence of a vector", TRL_DIV, TRL_CELL, TRL_CELL, 0, 0, TRLI_HAND_DIVERGENCE, false},
    {"curl, x", TRL_CURL, TRL_CELL, TRL_XFACE, 0, 0, TRLI_HAND_CURL, false},
    {"curl, z", TRL_CURL, TRL_CELL, TRL_ZFACE, 2, 0, TRLI_HAND_CURL, false},
    {"stencil of 5 points", TRL_CUSTOM, TRL_CELL, TRL_CELL, 0, 0, TRLI_HAND_FIVE, false},
    {"flux, central, z", FLUX, TRL_CELL, TRL_ZFACE, 2, -1, TRLI_HAND_CENTRAL_FLUX, false},
    {"flux, vanleer, x", FLUX, TRL_CELL, TRL_XFACE, 0, TRL_LIMITER_VANLEER, TRLI_HAND_FLUX + TRL_LIMITER_VANLEER,
     false},
#define FLUX_KIND(NAME, name, psi)        \
    {"flux, " #name ", z",                \
     FLUX,                                \
     TRL_CELL,                            \
     TRL_ZFACE,                           \
     2,                                   \
     TRL_LIMITER_##NAME,                  \
     TRLI_HAND_FLUX + TRL_LIMITER_##NAME, \
     false},
    TRL_LIMITER_LIST(FLUX_KIND)
#undef FLUX_KIND
};
enum { KINDS = sizeof kinds / sizeof *kinds };

typedef struct match match;

/* A hand-written way at work: the operator, or the copy of its first input that is the limit of all. */
typedef struct by_hand {
    match *m;
    bool streaming, copies;
} by_hand;

/* All of one size and number of threads. */
struct match {
    trli_bench *bench;
    int cells, threads, rounds, repeats;
    trl_workers *workers;
    trl_loop *loop;
    trl_layout *layout;
    trl_field_manager *manager;
    trl_field *field[8], *result[8]; /* by location; made when needed */
    by_hand hand[HANDS];
    double *scratch;  /* of all threads */
    double *expected; /* what the first contender computed */
    bool known;       /* that is there */
    const kind *kind;
    trl_operator *op; /* NULL: a flux */
    trl_field *in[3];
    trli_hand by_hand;
    trli_contender contender[WAYS];
    double worst, worst_two; /* ratio to the best by hand; of two points, fraction of the copy limit */
};

/* ---- fields ---- */

static double number(uint64_t i)
{
    i = (i ^ i >> 30) * 0xbf58476d1ce4e5b9u;
    i = (i ^ i >> 27) * 0x94d049bb133111ebu;
    return (double)(i >> 11) * 0x1p-52 - 1;
}

static trl_err make_field(match *m, const char *role, trl_location at, trl_lidx ghosts, trl_field **field)
{
    char name[64];
    trl_array a;
    trl_err err = TRL_OK;
    if (*field) return TRL_OK;
    snprintf(name, sizeof name, "%s at %s", role, trl_location_name(at));
    TRL_TRY(trl_field_create(
        m->manager, m->layout,
        &(trl_field_desc){
            .name = name, .location = at, .ghost_lo = {ghosts, ghosts, ghosts}, .ghost_hi = {ghosts, ghosts, ghosts}},
        field));
    TRL_TRY(trl_field_array(*field, 0, &a));
    for (trl_lidx k = a.held.lo[2]; k < a.held.hi[2]; ++k)
        for (trl_lidx j = a.held.lo[1]; j < a.held.hi[1]; ++j)
            for (trl_lidx i = a.held.lo[0]; i < a.held.hi[0]; ++i) {
                ptrdiff_t offset = trl_array_offset(&a, i, j, k);
                ((double *)a.at)[offset] = number((uint64_t)offset + 7919 * (uint64_t)at);
            }
    TRL_TRY(trl_field_set_valid(*field, 0, &a.held));
done:
    return err;
}

/* ---- ways ---- */

static trl_err run_trellis(void *data)
{
    match *m = data;
    const kind *k = m->kind;
    trl_err err = TRL_OK;
    for (int r = 0; r < m->repeats; ++r) {
        if (m->op)
            TRL_TRY(trl_operator_apply(m->op, m->loop, m->in, m->result[k->to]));
        else
            TRL_TRY(trl_advective_flux_apply(k->width, k->axis, m->loop, m->in[1], m->in[0], m->result[k->to]));
    }
done:
    return err;
}

static void work(trli_team *team, int member, void *data)
{
    const by_hand *h = data;
    trli_hand hand = h->m->by_hand;
    trl_array out;
    ptrdiff_t plane[2];
    const int name = h->copies ? TRLI_HAND_COPY : h->m->kind->hand;
    const ptrdiff_t block = trli_hand_block(name);
    const trli_hand_loop loop = trli_hand_find(name, h->streaming);
    if (h->copies) memset(hand.at, 0, sizeof hand.at);
    if (trl_field_array(h->m->result[h->m->kind->to], 0, &out) != TRL_OK) return; /* it has memory */
    hand.out = out.at;
    memcpy(hand.out_stride, out.stride, sizeof out.stride);
    hand.scratch = h->m->scratch + trli_hand_scratch(&hand) * (size_t)member;
    hand.streaming = h->streaming;
    trli_team_share(team, member, hand.n[2], &plane[0], &plane[1]);
    for (int r = 0; r < h->m->repeats; ++r) {
        for (ptrdiff_t j = 0; j < hand.n[1]; j += block)
            loop(&hand, (ptrdiff_t[2]){j, j + block < hand.n[1] ? j + block : hand.n[1]}, plane);
        trli_team_barrier(team);
    }
}

static trl_err run_by_hand(void *data)
{
    by_hand *h = data;
    return trli_team_run(h->m->bench->ctx, h->m->threads, work, h);
}

/* All compute into one array, for where arrays lie in their pages makes a difference of some percent. The bits of the
 * first are those of all; what the next one does not write stays NaN. */
static trl_err compare(match *m, const char *who)
{
    trl_array a;
    trl_err err = TRL_OK;
    const size_t n = (size_t)m->cells, bytes = n * sizeof(double);
    TRL_TRY(trl_field_array(m->result[m->kind->to], 0, &a));
    for (int k = 0; k < m->cells; ++k)
        for (int j = 0; j < m->cells; ++j) {
            double *row = (double *)a.at + trl_array_offset(&a, 0, j, k);
            double *expected = m->expected + ((size_t)k * n + (size_t)j) * n;
            if (!m->known)
                memcpy(expected, row, bytes);
            else if (memcmp(expected, row, bytes) != 0)
                return trl_fail(m->bench->ctx, TRL_ERR_BUG, NULL,
                                "%s: Trellis and the loops written by hand do not agree with %s in row y = %d, z = %d",
                                m->kind->label, who, j, k);
            memset(row, 0xff, bytes);
        }
    m->known = true;
done:
    return err;
}

static trl_err compare_trellis(void *data)
{
    return compare(data, "Trellis");
}

static trl_err compare_by_hand(void *data)
{
    const by_hand *h = data;
    return compare(h->m, h->streaming ? "the streaming one" : "the plain one");
}

/* ---- cases ---- */

/* Where the points of a term lie, and their weights: what the programmer would have written down. */
static int note_term(match *m, const trl_term *term, int leaf)
{
    trli_hand *h = &m->by_hand;
    static const trl_stencil_point here = {.weight = 1};
    static const trl_pass none = {.npoints = 1, .point = &here, .scale = 1};
    const trl_pass *p[3];
    for (int i = 0; i < 3; ++i) p[i] = i < term->npasses ? &term->pass[i] : &none;
    for (int z = 0; z < p[2]->npoints; ++z)
        for (int y = 0; y < p[1]->npoints; ++y)
            for (int x = 0; x < p[0]->npoints; ++x) {
                h->at[leaf] = 0;
                h->w[leaf] = p[0]->point[x].weight;
                for (int a = 0; a < 3; ++a)
                    h->at[leaf] +=
                        h->stride[a] * (p[0]->point[x].offset[a] + p[1]->point[y].offset[a] + p[2]->point[z].offset[a]);
                ++leaf;
            }
    return leaf;
}

static void note_passes(match *m, const trl_term *term)
{
    trli_hand *h = &m->by_hand;
    h->npasses = term->npasses;
    h->width = term->pass[0].npoints;
    for (int p = 0; p < term->npasses; ++p)
        for (int i = 0; i < h->width; ++i) {
            const trl_stencil_point *point = &term->pass[p].point[i];
            h->offset[p][i] = point->offset[0] + point->offset[1] + point->offset[2];
            h->w[i] = point->weight;
        }
}

static void note_operator(match *m)
{
    const trl_operator *op = m->op;
    for (int t = 0, leaf = 0; t < op->nterms; ++t) {
        for (int p = 0; p < op->term[t].npasses; ++p) m->by_hand.h[t + p] = op->term[t].pass[p].scale;
        if (m->kind->hand == TRLI_HAND_PASSES)
            note_passes(m, &op->term[t]);
        else
            leaf = note_term(m, &op->term[t], leaf);
    }
}

static void note_flux(match *m)
{
    static const int at[5] = {0, -1, 0, -2, 1};
    for (int leaf = 1; leaf < 5; ++leaf) m->by_hand.at[leaf] = at[leaf] * m->by_hand.stride[m->kind->axis];
}

static trl_err make_operator(match *m)
{
    static const trl_stencil_point star[5] = {
        {{-1, 0, 0}, 0.3}, {{1, 0, 0}, 0.2}, {{0, 2, 0}, -0.7}, {{0, 0, -1}, 1.1}, {{0, 0, 0}, 0.9}};
    const kind *k = m->kind;
    const trl_grid *grid = &m->layout->grid;
    const trl_operator_desc desc = {.kind = (trl_operator_kind)k->kind,
                                    .from = (trl_location)k->from,
                                    .to = (trl_location)k->to,
                                    .axis = k->axis,
                                    .width = k->width};
    if (k->kind == FLUX) return TRL_OK;
    if (k->kind == TRL_CUSTOM)
        return trl_operator_create_custom(m->bench->ctx, grid, "star", desc.from, desc.to, 5, star, &m->op);
    return trl_operator_create(m->bench->ctx, grid, &desc, &m->op);
}

static trl_err prepare(match *m, const kind *k)
{
    trl_err err = TRL_OK;
    trl_array a;
    m->kind = k;
    m->known = false;
    TRL_TRY(make_operator(m));
    const int ninputs = m->op ? m->op->ninputs : 2;
    const trl_location flux_from[2] = {(trl_location)k->to, (trl_location)k->from};
    m->by_hand = (trli_hand){.n = {m->cells, m->cells, m->cells}};
    for (int i = 0; i < ninputs; ++i) {
        const trl_location at = m->op ? m->op->from[i] : flux_from[i];
        TRL_TRY(make_field(m, "input", at, GHOSTS, &m->field[at]));
        TRL_TRY(trl_field_array(m->field[at], 0, &a));
        m->in[i] = m->field[at];
        m->by_hand.in[i] = a.at;
        memcpy(m->by_hand.stride, a.stride, sizeof a.stride);
    }
    for (int i = ninputs; i < 3; ++i) m->by_hand.in[i] = m->by_hand.in[0];
    TRL_TRY(make_field(m, "result", (trl_location)k->to, 0, &m->result[k->to]));
    for (int w = 0; w < HANDS; ++w) {
        m->hand[w].m = m;
        m->hand[w].copies = w == 2;
        m->hand[w].streaming = w == 1 || (w == 2 && m->cells >= LARGE);
    }
    if (m->op)
        note_operator(m);
    else
        note_flux(m);
done:
    return err;
}

/* What some rounds came to. */
typedef struct outcome {
    trli_spread rate, plain, streamed; /* bytes per second */
    trli_spread ratio;                 /* to the best by hand */
    double fraction;                   /* of the copy limit */
    double trip; /* seconds of a cache line between two cores and back, after measuring again; 0: not looked at */
} outcome;

static outcome outcome_of(const match *m, int rounds)
{
    const int ninputs = m->op ? m->op->ninputs : 2;
    const double points = (double)m->cells * m->cells * m->cells * m->repeats, bytes = 8.0 * (ninputs + 1) * points;
    outcome o = {.rate = trli_rate(&m->contender[0], rounds, bytes),
                 .plain = trli_rate(&m->contender[1], rounds, bytes),
                 .streamed = trli_rate(&m->contender[2], rounds, bytes)};
    /* What fits a cache belongs there for its next reader: streaming is then shown, but no competitor. */
    const int best = m->cells < LARGE || o.plain.median >= o.streamed.median ? 1 : 2;
    o.ratio = trli_ratio(&m->contender[0], &m->contender[best], rounds);
    o.fraction = trli_ratio(&m->contender[0], &m->contender[3], rounds).median * (ninputs + 1) / 2;
    return o;
}

static bool misses(const match *m, const outcome *o)
{
    const bool gated = m->kind->two_points && m->cells >= LARGE && m->threads > 1;
    return o->ratio.median < least_of_hand || (gated && o->fraction < least_of_copy);
}

static void report(match *m, const outcome *o, bool again)
{
    trli_json *json = m->bench->json;
    if (o->ratio.median < m->worst) m->worst = o->ratio.median;
    if (m->kind->two_points && o->fraction < m->worst_two) m->worst_two = o->fraction;
    printf("%-41s %7.2f (%5.2f to %5.2f) %7.2f %9.2f %6.2f (%4.2f to %4.2f) %6.2f%s%s", m->kind->label,
           1e-9 * o->rate.median, 1e-9 * o->rate.min, 1e-9 * o->rate.max, 1e-9 * o->plain.median,
           1e-9 * o->streamed.median, o->ratio.median, o->ratio.min, o->ratio.max, o->fraction, again ? " again" : "",
           misses(m, o) ? " <" : "");
    if (o->trip > 0) printf(" %.0f ns", 1e9 * o->trip);
    putchar('\n');
    trli_json_begin_object(json);
    trli_json_key(json, "operator");
    trli_json_string(json, m->kind->label);
    trli_json_key(json, "cells");
    trli_json_integer(json, m->cells);
    trli_json_key(json, "threads");
    trli_json_integer(json, m->threads);
    trli_spread_report(json, "bytes_per_s", &o->rate);
    trli_spread_report(json, "plain_bytes_per_s", &o->plain);
    trli_spread_report(json, "streaming_bytes_per_s", &o->streamed);
    trli_spread_report(json, "ratio_best_by_hand", &o->ratio);
    trli_json_key(json, "fraction_of_copy");
    trli_json_number(json, o->fraction);
    trli_json_key(json, "again");
    trli_json_bool(json, again);
    trli_json_key(json, "round_trip_s");
    trli_json_number(json, o->trip > 0 ? o->trip : NAN);
    trli_json_end_object(json);
}

static trl_err play_kind(match *m, const kind *k)
{
    trl_err err = TRL_OK;
    TRL_TRY(prepare(m, k));
    m->contender[0] = (trli_contender){.name = "Trellis", .run = run_trellis, .after = compare_trellis, .data = m};
    for (int w = 0; w < 2; ++w)
        m->contender[1 + w] = (trli_contender){
            .name = w ? "streaming" : "plain", .run = run_by_hand, .after = compare_by_hand, .data = &m->hand[w]};
    m->contender[3] = (trli_contender){.name = "copy", .run = run_by_hand, .data = &m->hand[2]};
    TRL_TRY(trli_rounds_run(m->contender, WAYS, m->rounds));
    outcome o = outcome_of(m, m->rounds);
    const bool again = misses(m, &o) && !m->bench->quick;
    if (again) {
        TRL_TRY(trli_rounds_run(m->contender, WAYS, AGAIN_ROUNDS));
        o = outcome_of(m, AGAIN_ROUNDS);
        if (m->threads > 1) TRL_TRY(trli_round_trip(m->bench->ctx, 1, &o.trip));
    }
    report(m, &o, again);
done:
    trl_operator_destroy(&m->op);
    return err;
}

static void destroy(match *m)
{
    for (int at = 0; at < 8; ++at) {
        trl_field_destroy(&m->field[at]);
        trl_field_destroy(&m->result[at]);
    }
    trl_field_manager_destroy(&m->manager);
    trl_layout_destroy(&m->layout);
    trl_loop_destroy(&m->loop);
    trl_workers_destroy(&m->workers);
    free(m->scratch);
    free(m->expected);
}

static trl_err play(trli_bench *bench, int cells, const trli_limits *limits, match *m)
{
    trl_err err = TRL_OK;
    const double points = (double)cells * cells * cells, amount = bench->quick ? 1 << 15 : 1 << 25;
    const trl_grid grid = {.dim = 3,
                           .cells = {cells, cells, cells},
                           .length = {1.1, 1.2, 1.3},
                           .spacing = {1.1 / cells, 1.2 / cells, 1.3 / cells},
                           .periodic = {true, true, true}};
    const trli_hand shape = {.n = {cells, cells, cells}};
    *m = (match){.bench = bench,
                 .cells = cells,
                 .threads = limits->threads,
                 .rounds = bench->quick ? QUICK_ROUNDS : ROUNDS,
                 .repeats = amount > points ? (int)(amount / points) : 1,
                 .worst = INFINITY,
                 .worst_two = INFINITY};
    TRL_TRY(trl_context_set_threads(bench->ctx, limits->threads));
    TRL_TRY(trl_workers_create(bench->ctx, "priority", &m->workers));
    TRL_TRY(trl_loop_create(bench->ctx, m->workers, &m->loop));
    TRL_TRY(trl_layout_create(bench->ctx, &grid, (int[3]){1, 1, 1}, NULL, &m->layout));
    TRL_TRY(trl_field_manager_create(bench->ctx, &m->manager));
    TRL_TRY(trli_bench_alloc(bench->ctx, trli_hand_scratch(&shape) * (size_t)limits->threads, &m->scratch));
    TRL_TRY(trli_bench_alloc(bench->ctx, (size_t)points, &m->expected));
    printf("\n%d^3 cells, %d thread%s, %d rounds of %d\n%-41s %24s %7s %9s %22s %6s\n", cells, m->threads,
           m->threads > 1 ? "s" : "", m->rounds, m->repeats, "GB/s", "Trellis", "plain", "streaming",
           "of the best by hand", "of copy");
    for (int i = 0; i < KINDS; ++i) TRL_TRY(play_kind(m, &kinds[i]));
done:
    destroy(m);
    return err;
}

trl_err trli_bench_operators(trli_bench *bench)
{
    static const int sizes[] = {256, 32}, quick_sizes[] = {24, 9};
    trli_limits limits[2];
    trli_gate gates[5];
    char what[4][64];
    int n = 0;
    trl_err err = TRL_OK;
    TRL_TRY(trli_limits_measure(bench, &limits[0], &limits[1]));
    trli_json_key(bench->json, "results");
    trli_json_begin_array(bench->json);
    for (int s = 0; s < 2; ++s)
        for (int t = 0; t < 1 + (limits[1].threads > 1); ++t) {
            match m;
            const int cells = bench->quick ? quick_sizes[s] : sizes[s];
            TRL_TRY(play(bench, cells, &limits[t], &m));
            snprintf(what[n], sizeof what[n], "worst of the best by hand, %d^3, %d thread%s", cells, m.threads,
                     m.threads > 1 ? "s" : "");
            gates[n] = (trli_gate){what[n], m.worst, least_of_hand, true};
            ++n;
            if (s == 0)
                gates[4] = (trli_gate){"worst of two points, of the copy limit, large, all threads", m.worst_two,
                                       least_of_copy, true};
        }
    trli_json_end_array(bench->json);
    gates[n] = gates[4];
    trli_gates_report(bench, gates, n + 1);
done:
    return err;
}
