/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Multigrid without grids: matrices, each made of the next finer one by an interpolation of its own. */
#include <math.h>

#include "algebraic_impl.h"
#include "context_impl.h"
#include "memory_impl.h"
#include "row_coarsen_impl.h"

enum { LEVELS_MOST = 30, SMOOTHING = 2, DENSE_MOST = 400, COARSEST_STEPS = 24, CHUNK = 500 };
enum { ENTRIES = 5 /* take as long as a point of a grid with an equation */ };

typedef struct level {
    trli_sparse a, p, back; /* p: from the next coarser one; back: its transpose; none on the coarsest. Those of this
                             * rank's rows, or all */
    double *memory;         /* of all values: */
    int room;
    double *inverse;            /* [rows of this rank] of their own entries; 0: no unknowns */
    double *z, *r, *d, *next_d; /* [rows, and others that are read] solution, residual, direction */
    double old, new;            /* factors of the last direction and of the residual in the next */
    double largest;             /* eigenvalue of the inverse times the matrix: not more than this */
    bool shared;                /* each rank has its own rows; else all of them */
    trli_row_owners owners;     /* if ranks shared them when they were made; and */
    trli_row_gather gather;     /* if they do no more since then, else without rows */
} level;

struct trli_algebraic {
    trl_context *ctx;
    trl_loop *loop;
    int n, axes;
    level level[LEVELS_MOST];
    trli_splitting *splitting;
    trli_sparse_crew *crew;
    bool is_dense; /* the coarsest matrix is small: */
    double *dense; /* its factors, and */
    double x[DENSE_MOST];
    int dense_room;
    double lost; /* pivots that are so much smaller than they were are rounding errors */
};

static trl_err no_memory(const trli_algebraic *st)
{
    return trli_no_memory(st->ctx, NULL, "for coarser grids");
}

void trli_algebraic_destroy(trli_algebraic **algebraic)
{
    trli_algebraic *st = *algebraic;
    *algebraic = NULL;
    if (!st) return;
    for (int k = 0; k < LEVELS_MOST; ++k) {
        trli_sparse *all[] = {&st->level[k].a, &st->level[k].p, &st->level[k].back};
        for (int i = 0; i < 3; ++i) trli_sparse_free(all[i]);
        trli_free(st->level[k].memory);
        trli_row_owners_free(&st->level[k].owners);
        trli_row_gather_free(&st->level[k].gather);
    }
    trli_free(st->dense);
    trli_splitting_destroy(&st->splitting);
    trli_free(st);
}

/* ---- making ---- */

static trl_err make_values(const trli_algebraic *st, level *l)
{
    const ptrdiff_t n = l->shared ? l->owners.all : l->a.rows;
    double **all[] = {&l->inverse, &l->z, &l->r, &l->d, &l->next_d};
    if (!trli_make_room(st->ctx, &l->memory, 0, 5 * n + 1, &l->room, sizeof *l->memory)) return no_memory(st);
    for (int i = 0; i < 5; ++i) *all[i] = l->memory + i * n;
    l->largest = 1;
    for (int i = 0; i < l->a.rows; ++i) {
        double sum = 0;
        for (int e = l->a.begin[i]; e < l->a.begin[i + 1]; ++e) sum += fabs(l->a.value[e]);
        const double own = l->a.begin[i] < l->a.begin[i + 1] ? l->a.value[l->a.begin[i]] : 0;
        l->inverse[i] = own != 0 ? 1 / own : 0;
        const double row = sum * fabs(l->inverse[i]);
        if (isfinite(row) && row > l->largest) l->largest = row;
    }
    return TRL_OK;
}

static trl_err make_dense(trli_algebraic *st, const trli_sparse *a)
{
    const int n = a->rows;
    if (!trli_make_room(st->ctx, &st->dense, 0, n * n, &st->dense_room, sizeof *st->dense)) return no_memory(st);
    for (int i = 0; i < n * n; ++i) st->dense[i] = 0;
    for (int i = 0; i < n; ++i)
        for (int e = a->begin[i]; e < a->begin[i + 1]; ++e) st->dense[i * n + a->column[e]] += a->value[e];
    trli_eliminate(n, st->dense, st->lost);
    return TRL_OK;
}

/* Once rows are made that ranks share: each keeps its own where the work on others' would take long, and all get all
 * of small matrices. */
static trl_err settle(trli_algebraic *st, level *l)
{
    int64_t count[2] = {l->a.rows, l->a.begin[l->a.rows]};
    trl_err err = TRL_OK;
    TRL_TRY(trli_allreduce(st->ctx, count, 2, MPI_INT64_T, MPI_SUM));
    l->gather.rows = 0;
    l->shared = count[0] > TRLI_BLOCK_POINTS ||
                (trli_sparse_crew_shares(st->crew, count[1] / ENTRIES) && count[0] > DENSE_MOST);
    if (l->shared) {
        TRL_TRY(trli_row_owners_add_readers(&l->owners, &l->a));
        return trli_row_owners_connect(&l->owners);
    }
    TRL_TRY(trli_row_gather_begin(&l->owners, &l->gather));
    err = trli_row_gather_matrix(&l->gather, &l->owners, &l->a);
done:
    return err;
}

/* The next matrix, of a worth while share of the points; *made: there is one. */
static trl_err coarsen(trli_algebraic *st, level *l, bool *made)
{
    const double worth = 0.9;
    const trli_sparse_factors factors = {&l->a, &l->p, &l->back};
    trl_err err = TRL_OK;
    l[1].shared = false;
    l[1].gather.rows = 0;
    if (l->shared) {
        const trli_row_coarsening w = {st->crew, st->splitting, worth,        &l->owners, &l->a,
                                       &l->p,    &l->back,      &l[1].owners, &l[1].a};
        TRL_TRY(trli_row_coarsen(&w, made));
        if (*made) TRL_TRY(settle(st, l + 1));
        for (int e = 0; *made && !l[1].shared && e < l->p.begin[l->p.rows]; ++e)
            l->p.column[e] = trli_row_gather_find(&l[1].gather, l[1].owners.point[l->p.column[e]]);
        if (*made && !l[1].shared) l->p.columns = l[1].gather.rows;
        return TRL_OK;
    }
    TRL_TRY(trli_split(st->splitting, &l->a, &l->p));
    *made = l->p.columns > 0 && l->p.columns <= worth * l->a.rows;
    if (!*made) return TRL_OK;
    TRL_TRY(trli_sparse_transpose(st->ctx, &l->p, &l->back));
    err = trli_sparse_make_together(st->crew, l->p.columns, l->p.columns, trli_sparse_product_row, &factors, &l[1].a);
done:
    return err;
}

static trl_err add_level(trli_algebraic *st, bool *made)
{
    level *l = &st->level[st->n - 1];
    trl_err err = TRL_OK;
    *made = false;
    if ((!l->shared && l->a.rows <= DENSE_MOST) || st->n == LEVELS_MOST) return TRL_OK;
    TRL_TRY(coarsen(st, l, made));
    if (!*made) return TRL_OK;
    TRL_TRY(make_values(st, l + 1));
    ++st->n;
done:
    return err;
}

/* The largest values of all ranks' rows. */
static trl_err agree_on_largest(trli_algebraic *st)
{
    double largest[LEVELS_MOST];
    trl_err err = TRL_OK;
    if (!st->level[0].shared) return TRL_OK;
    for (int k = 0; k < st->n; ++k) largest[k] = st->level[k].largest;
    TRL_TRY(trli_allreduce(st->ctx, largest, st->n, MPI_DOUBLE, MPI_MAX));
    for (int k = 0; k < st->n; ++k) st->level[k].largest = largest[k];
done:
    return err;
}

trl_err trli_algebraic_create(trl_context *ctx, trli_sparse_crew *crew, int axes, double lost,
                              trli_algebraic **algebraic)
{
    trli_algebraic *st = *algebraic = trli_new(ctx, 1, sizeof *st);
    if (!st) return trli_no_memory(ctx, NULL, "for coarser grids");
    st->ctx = ctx;
    st->loop = trli_sparse_crew_loop(crew);
    st->crew = crew;
    st->axes = axes;
    st->lost = lost;
    return trli_splitting_create(ctx, crew, &st->splitting);
}

trli_sparse *trli_algebraic_finest(trli_algebraic *st)
{
    return &st->level[0].a;
}

trli_row_owners *trli_algebraic_owners(trli_algebraic *st)
{
    return &st->level[0].owners;
}

trl_err trli_algebraic_make(trli_algebraic *st)
{
    level *l = st->level;
    bool more = true;
    trl_err err = TRL_OK;
    st->n = 1;
    l->shared = false;
    l->gather.rows = 0;
    if (trl_context_ranks(st->ctx) > 1 || l->a.rows > TRLI_BLOCK_POINTS) TRL_TRY(settle(st, l));
    TRL_TRY(make_values(st, l));
    while (more) TRL_TRY(add_level(st, &more));
    l = &st->level[st->n - 1];
    st->is_dense = !l->shared && l->a.rows <= DENSE_MOST;
    if (st->is_dense) TRL_TRY(make_dense(st, &l->a));
    err = agree_on_largest(st);
done:
    return err;
}

int trli_algebraic_row(const trli_algebraic *st, int row)
{
    const level *l = st->level;
    return l->gather.rows > 0 ? trli_row_gather_find(&l->gather, l->owners.point[row]) : row;
}

int trli_algebraic_levels(const trli_algebraic *st)
{
    return st->n;
}

int trli_algebraic_rows(const trli_algebraic *st, int level)
{
    return st->level[level].a.rows;
}

double trli_algebraic_bytes(const trli_algebraic *st)
{
    double bytes = 0;
    for (int k = 0; k < st->n; ++k) {
        const trli_sparse *const all[] = {&st->level[k].a, &st->level[k].p, &st->level[k].back};
        for (int i = 0; i < 3; ++i)
            bytes += (double)all[i]->columns_room * sizeof *all[i]->column +
                     (double)all[i]->values_room * sizeof *all[i]->value;
    }
    return bytes;
}

double *trli_algebraic_residual(const trli_algebraic *st)
{
    const level *l = st->level;
    return l->gather.rows > 0 ? trli_row_gather_own(&l->gather) : l->r;
}

double *trli_algebraic_solution(const trli_algebraic *st)
{
    return st->level[0].z;
}

/* ---- a cycle ---- */

/* After an error a rank goes on, as the others do: they wait for its messages. */
typedef struct chain {
    trli_algebraic *st;
    trl_err err;
} chain;

static void note(chain *c, trl_err err)
{
    if (c->err == TRL_OK) c->err = err;
}

/* Get what this rank reads of a vector. */
static void exchange(chain *c, level *l, double *values)
{
    if (l->shared) note(c, trli_row_owners_exchange(&l->owners, values));
}

static trl_err smooth_chunk(void *data, int chunk, int chunks, int worker)
{
    const level *l = data;
    const int n = l->a.rows, end = (int)((int64_t)n * (chunk + 1) / chunks);
    (void)worker;
    for (int i = (int)((int64_t)n * chunk / chunks); i < end; ++i) {
        double sum = 0;
        for (int e = l->a.begin[i]; e < l->a.begin[i + 1]; ++e) sum += l->a.value[e] * l->d[l->a.column[e]];
        l->r[i] -= sum;
        l->z[i] += l->d[i];
        l->next_d[i] = l->old * l->d[i] + l->new * l->inverse[i] * l->r[i];
    }
    return TRL_OK;
}

/* r' = r - A d, z' = z + d, d' = old * d + new * inverse * r' */
static void step_along(chain *c, level *l, double old, double new)
{
    const int most = 4 * trl_loop_workers(c->st->loop), chunks = 1 + l->a.rows / CHUNK;
    l->old = old;
    l->new = new;
    exchange(c, l, l->d);
    note(c, trl_loop_run(c->st->loop, chunks < most ? chunks : most, smooth_chunk, l));
    double *d = l->d;
    l->d = l->next_d;
    l->next_d = d;
}

static void smooth(chain *c, level *l, int steps, double least)
{
    const double middle = (l->largest + least) / 2, half = (l->largest - least) / 2, sigma = middle / half;
    double rho = 1 / sigma;
    for (int k = 0; k < steps; ++k) {
        const double next = 1 / (2 * sigma - rho);
        const bool last = k + 1 == steps;
        step_along(c, l, last ? 0 : next * rho, last ? 1 / middle : 2 * next / half);
        rho = next;
    }
}

/* z = 0, and the first direction */
static void begin(level *l, double least)
{
    for (int i = 0; i < l->a.rows; ++i) {
        l->z[i] = 0;
        l->d[i] = 2 / (l->largest + least) * l->inverse[i] * l->r[i];
    }
}

static void solve_dense(trli_algebraic *st, const level *l)
{
    for (int i = 0; i < l->a.rows; ++i) st->x[i] = l->r[i];
    trli_eliminated_solve(l->a.rows, st->dense, st->x);
    for (int i = 0; i < l->a.rows; ++i) l->z[i] = st->x[i];
}

static double least_of(const trli_algebraic *st, int k)
{
    const level *l = &st->level[k];
    return l->largest * (k + 1 == st->n ? 0.02 : 0.5 / st->axes);
}

static void cycle(chain *c, int k, trl_solve_cycle kind);

/* A matrix and all coarser ones, from z = 0. */
static void solve(chain *c, int k, trl_solve_cycle kind)
{
    trli_algebraic *st = c->st;
    level *l = &st->level[k];
    if (k + 1 == st->n && st->is_dense) {
        solve_dense(st, l);
        return;
    }
    begin(l, least_of(st, k));
    cycle(c, k, kind);
    if (k + 1 < st->n && kind != TRL_CYCLE_V) cycle(c, k, kind == TRL_CYCLE_F ? TRL_CYCLE_V : kind);
}

/* All ranks get all values of a matrix whose rows they shared when these were made. */
static void gather(chain *c, level *l)
{
    if (l->gather.rows > 0) note(c, trli_row_gather_values(&l->gather, l->r));
}

static void restrict_residual(chain *c, level *l)
{
    level *coarse = l + 1;
    exchange(c, l, l->r);
    note(c,
         trli_sparse_multiply(&l->back, l->r,
                              coarse->gather.rows > 0 ? trli_row_gather_own(&coarse->gather) : coarse->r, c->st->loop));
    gather(c, coarse);
}

static void correct(chain *c, level *l)
{
    exchange(c, l + 1, l[1].z);
    note(c, trli_sparse_multiply(&l->p, l[1].z, l->d, c->st->loop));
}

static void cycle(chain *c, int k, trl_solve_cycle kind)
{
    trli_algebraic *st = c->st;
    level *l = &st->level[k];
    const bool coarsest = k + 1 == st->n;
    const double least = least_of(st, k);
    smooth(c, l, coarsest ? COARSEST_STEPS : SMOOTHING, least);
    if (coarsest) return;
    restrict_residual(c, l);
    solve(c, k + 1, kind);
    correct(c, l);
    step_along(c, l, 0, 2 / (l->largest + least));
    smooth(c, l, SMOOTHING, least);
}

trl_err trli_algebraic_cycle(trli_algebraic *st, trl_solve_cycle kind)
{
    chain c = {st, TRL_OK};
    level *l = st->level;
    gather(&c, l);
    solve(&c, 0, kind);
    exchange(&c, l, l->z);
    return c.err;
}
