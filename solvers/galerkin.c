/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Coarser grids that have entries in place of equations, and cycles on them. Every rank has all of them. */
#include <math.h>
#include <string.h>

#include "compile_impl.h"
#include "galerkin_impl.h"
#include "memory_impl.h"

/* Each rank holds the entries of all points, some 120 bytes a point: those of larger grids would fill its memory. */
enum { POINTS_MOST = 1 << 22, LEVELS_MOST = 24, SMOOTHING = 2, DENSE_MOST = 400, COARSEST_STEPS = 24 };

/* A vector has a layer of zeros around it, or of values of the other side. */
typedef struct values {
    double *memory;
    trl_array array;
} values;

typedef struct level {
    trli_entries a;
    bool halved[3];               /* the next coarser grid's axes */
    double *share;                /* [points][8] */
    trli_grid_transfer *transfer; /* to the next coarser grid; NULL: there is none */
    double *inverse;              /* [points] of their own entries; 0: no unknowns */
    values z, r, d, next_d;       /* solution, residual, direction; none on the first grid */
    double old, new;              /* factors of the last direction and of the residual in the next */
    double largest;               /* eigenvalue of the inverse times the operator: not more than this */
} level;

struct trli_galerkin {
    trli_solver *s;
    trl_loop *loop;
    int n;
    level level[LEVELS_MOST];
    double *dense; /* factors of the coarsest grid's operator, if it is small */
    double *known; /* [scalars] of the model, with which the entries were found; NULL: they were not */
};

const char *trli_galerkin_missing(const trli_solver *s)
{
    const trl_grid *grid = &s->sim->layout->grid;
    if (s->ask.n != 1) return "it has several unknowns";
    if (!s->star) return "rows are of more than the nearest points along axes";
    if (trli_solver_reads_fields(s) && !s->sim->problem->time.none) return "coefficients are others in each step";
    if (grid->cells[0] * grid->cells[1] > POINTS_MOST / grid->cells[2])
        return "each rank would hold the entries of more than 4 million points";
    for (int a = 0; a < grid->dim; ++a)
        if (grid->periodic[a] && grid->cells[a] < 3) return "a period has fewer than three points";
    return NULL;
}

static trl_err no_memory(const trli_galerkin *st)
{
    return trli_no_memory(st->s->sim->ctx, NULL, "for coarser grids");
}

static void destroy_level(level *l)
{
    trli_transfer_destroy(&l->transfer);
    trli_free(l->a.entry);
    trli_free(l->share);
    trli_free(l->inverse);
    values *all[] = {&l->z, &l->r, &l->d, &l->next_d};
    for (int i = 0; i < 4; ++i) trli_free(all[i]->memory);
    *l = (level){0};
}

void trli_galerkin_destroy(trli_galerkin **galerkin)
{
    trli_galerkin *st = *galerkin;
    *galerkin = NULL;
    if (!st) return;
    for (int k = 0; k < st->n; ++k) destroy_level(&st->level[k]);
    trli_free(st->dense);
    trli_free(st->known);
    trli_free(st);
}

static trl_err make_values(const trli_galerkin *st, const trli_entries *a, values *v)
{
    ptrdiff_t size = 1, before = 0;
    for (int axis = 0; axis < 3; ++axis) {
        v->array.stride[axis] = size;
        v->array.owned.hi[axis] = a->n[axis];
        before += size;
        size *= a->n[axis] + 2;
    }
    v->memory = trli_new(st->s->sim->ctx, (size_t)size, sizeof(double));
    if (!v->memory) return no_memory(st);
    v->array.at = v->memory + before;
    return TRL_OK;
}

static trl_err make_first(trli_galerkin *st)
{
    static const int offsets[][3] = {{0, 0, 0}, {-1, 0, 0}, {1, 0, 0}, {0, -1, 0}, {0, 1, 0}, {0, 0, -1}, {0, 0, 1}};
    const trl_simulation *sim = st->s->sim;
    const trl_grid *grid = &sim->layout->grid;
    const trl_location location = sim->model->variable[st->s->ask.variable[0]].location;
    trli_entries *a = &st->level[0].a;
    for (int axis = 0; axis < 3; ++axis) {
        a->n[axis] = axis < grid->dim ? (int)trl_grid_points(grid, location, axis) : 1;
        a->periodic[axis] = axis < grid->dim && grid->periodic[axis];
    }
    for (int e = 0; e < 7; ++e)
        if (e == 0 || a->n[(e - 1) / 2] > 1) memcpy(a->offset[a->entries++], offsets[e], sizeof offsets[e]);
    a->entry = trli_new(sim->ctx, (size_t)(trli_entries_points(a) * a->entries), sizeof(double));
    st->n = 1;
    return a->entry ? TRL_OK : no_memory(st);
}

trl_err trli_galerkin_create(trli_solver *s, trl_loop *loop, trli_galerkin **galerkin)
{
    trli_galerkin *st = *galerkin = trli_new(s->sim->ctx, 1, sizeof *st);
    if (!st) return trli_no_memory(s->sim->ctx, NULL, "for coarser grids");
    st->s = s;
    st->loop = loop;
    return make_first(st);
}

/* ---- from the entries of the first grid ---- */

static trl_err make_level(const trli_galerkin *st, const level *fine, level *l)
{
    trl_context *ctx = st->s->sim->ctx;
    trl_err err = TRL_OK;
    for (int axis = 0; axis < 3; ++axis) {
        l->a.n[axis] = fine->halved[axis] ? (fine->a.n[axis] + 1) / 2 : fine->a.n[axis];
        l->a.periodic[axis] = fine->a.periodic[axis];
    }
    trli_entries_compact(&l->a);
    const size_t points = (size_t)trli_entries_points(&l->a);
    l->a.entry = trli_new(ctx, points * (size_t)l->a.entries, sizeof(double));
    l->inverse = trli_new(ctx, points, sizeof(double));
    if (!l->a.entry || !l->inverse) TRL_TRY(no_memory(st));
    values *all[] = {&l->z, &l->r, &l->d, &l->next_d};
    for (int i = 0; i < 4; ++i) TRL_TRY(make_values(st, &l->a, all[i]));
done:
    return err;
}

static trl_err add_transfer(trli_galerkin *st, int k)
{
    level *l = &st->level[k];
    trl_context *ctx = st->s->sim->ctx;
    const trl_layout *layout = k == 0 ? st->s->sim->layout : NULL;
    l->share = trli_new(ctx, (size_t)(trli_entries_points(&l->a) * TRLI_CORNERS), sizeof(double));
    if (!l->share) return no_memory(st);
    return trli_transfer_create_shared(ctx, layout, l->a.n, l->a.periodic, l->halved, l->share, &l->transfer);
}

static void find_inverse(level *l)
{
    const int64_t n = trli_entries_points(&l->a);
    l->largest = 1;
    for (int64_t p = 0; p < n; ++p) {
        const double *entry = l->a.entry + p * l->a.entries;
        double sum = 0;
        for (int e = 0; e < l->a.entries; ++e) sum += fabs(entry[e]);
        l->inverse[p] = entry[0] != 0 ? 1 / entry[0] : 0;
        const double row = sum * fabs(l->inverse[p]);
        if (isfinite(row) && row > l->largest) l->largest = row;
    }
}

/* Points and entries of the coarsest grid, by rows. */
static void gather_dense(const level *l, int n, double *m)
{
    const trli_entries *a = &l->a;
    int at[3], p = 0;
    for (at[2] = 0; at[2] < a->n[2]; ++at[2])
        for (at[1] = 0; at[1] < a->n[1]; ++at[1])
            for (at[0] = 0; at[0] < a->n[0]; ++at[0], ++p)
                for (int e = 0; e < a->entries; ++e) {
                    int q = 0;
                    const double entry = a->entry[p * a->entries + e];
                    if (entry == 0) continue;
                    for (int c = 2; c >= 0; --c) q = q * a->n[c] + (at[c] + a->offset[e][c] + a->n[c]) % a->n[c];
                    m[(ptrdiff_t)p * n + q] += entry;
                }
}

/* Elimination in place. A pivot that rounding leaves stands for a null space, or no unknown: it becomes 0. */
static void factor_dense(int n, double *m)
{
    const double lost = 1e-11;
    for (int i = 0; i < n; ++i) {
        double *row = m + (ptrdiff_t)i * n;
        const double before = fabs(row[i]);
        for (int j = 0; j < i; ++j) {
            const double *other = m + (ptrdiff_t)j * n;
            row[j] = other[j] != 0 ? row[j] / other[j] : 0;
            for (int k = j + 1; k < n && row[j] != 0; ++k) row[k] -= row[j] * other[k];
        }
        if (!(fabs(row[i]) > lost * before)) row[i] = 0;
    }
}

static trl_err prepare_dense(trli_galerkin *st)
{
    const level *l = &st->level[st->n - 1];
    const int64_t n = trli_entries_points(&l->a);
    if (n > DENSE_MOST) return TRL_OK;
    st->dense = trli_new(st->s->sim->ctx, (size_t)(n * n), sizeof(double));
    if (!st->dense) return no_memory(st);
    gather_dense(l, (int)n, st->dense);
    factor_dense((int)n, st->dense);
    return TRL_OK;
}

/* Whether the entries may be others than last time. */
static trl_err look_for_changes(trli_galerkin *st, bool *changed)
{
    const trli_model *model = st->s->sim->model;
    *changed = trli_solver_reads_fields(st->s) || !st->known;
    if (!st->known) st->known = trli_new(model->ctx, (size_t)model->nscalars + 1, sizeof *st->known);
    if (!st->known) return no_memory(st);
    *changed |= trli_solver_scalars_change(st->s, st->known);
    return TRL_OK;
}

static trl_err make_levels(trli_galerkin *st)
{
    level *l = st->level;
    trl_err err = TRL_OK;
    for (int k = 1; k < st->n; ++k) destroy_level(&st->level[k]);
    st->n = 1;
    trli_transfer_destroy(&l->transfer);
    trli_free(l->share);
    trli_free(st->dense);
    l->share = st->dense = NULL;
    TRL_TRY(trli_entries_find(st->s, &l->a));
    for (; st->n < LEVELS_MOST && trli_entries_halved(&l->a, l->halved); ++l) {
        TRL_TRY(add_transfer(st, st->n - 1));
        TRL_TRY(trli_entries_shares(&l->a, l->halved, st->loop, l->share));
        ++st->n;
        TRL_TRY(make_level(st, l, l + 1));
        TRL_TRY(trli_entries_product(&l->a, l->halved, l->share, st->loop, &l[1].a));
        find_inverse(l + 1);
    }
    if (st->n > 1) err = prepare_dense(st);
    st->s->stats.levels = st->n;
done:
    return err;
}

trl_err trli_galerkin_prepare(trli_galerkin *st)
{
    bool changed;
    trl_err err = TRL_OK;
    TRL_TRY(look_for_changes(st, &changed));
    if (changed) err = make_levels(st);
done:
    return err;
}

/* ---- a cycle ---- */

typedef struct chain {
    trli_galerkin *st;
    trl_err err;
} chain;

static void note(chain *c, trl_err err)
{
    if (c->err == TRL_OK) c->err = err;
}

/* The layer around periodic axes, one axis after the other, corners included. */
static void wrap(const trli_entries *a, const values *v)
{
    for (int axis = 0; axis < 3; ++axis) {
        if (!a->periodic[axis]) continue;
        const int b = (axis + 1) % 3, c = (axis + 2) % 3, n = a->n[axis];
        const ptrdiff_t *stride = v->array.stride;
        for (int k = -1; k <= a->n[c]; ++k)
            for (int j = -1; j <= a->n[b]; ++j) {
                double *line = (double *)v->array.at + j * stride[b] + k * stride[c];
                line[-stride[axis]] = line[(n - 1) * stride[axis]];
                line[n * stride[axis]] = line[0];
            }
    }
}

static void add_row(level *l, int j, int k)
{
    const trli_entries *a = &l->a;
    const ptrdiff_t begin = trl_array_offset(&l->d.array, 0, j, k);
    const double *d = (const double *)l->d.array.at + begin;
    double *z = (double *)l->z.array.at + begin, *r = (double *)l->r.array.at + begin;
    double *next = (double *)l->next_d.array.at + begin;
    const int64_t first = (int64_t)a->n[0] * (j + (int64_t)a->n[1] * k);
    ptrdiff_t step[TRLI_ENTRIES_MOST];
    for (int e = 0; e < a->entries; ++e)
        step[e] = trl_array_offset(&l->d.array, a->offset[e][0], a->offset[e][1], a->offset[e][2]);
    for (int i = 0; i < a->n[0]; ++i) {
        const double *entry = a->entry + (first + i) * a->entries;
        double sum = 0;
        for (int e = 0; e < a->entries; ++e) sum += entry[e] * d[i + step[e]];
        r[i] -= sum;
        z[i] += d[i];
        next[i] = l->old * d[i] + l->new * l->inverse[first + i] * r[i];
    }
}

static trl_err smooth_chunk(void *data, int chunk, int chunks, int worker)
{
    level *l = data;
    const int64_t rows = (int64_t)l->a.n[1] * l->a.n[2];
    (void)worker;
    for (int64_t row = rows * chunk / chunks; row < rows * (chunk + 1) / chunks; ++row)
        add_row(l, (int)(row % l->a.n[1]), (int)(row / l->a.n[1]));
    return TRL_OK;
}

/* r' = r - A d, z' = z + d, d' = old * d + new * inverse * r' */
static void step_along(chain *c, level *l, double old, double new)
{
    const int64_t rows = (int64_t)l->a.n[1] * l->a.n[2], most = 4 * (int64_t)trl_loop_workers(c->st->loop);
    l->old = old;
    l->new = new;
    wrap(&l->a, &l->d);
    note(c, trl_loop_run(c->st->loop, (int)(rows < most ? rows : most), smooth_chunk, l));
    const values d = l->d;
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

static void for_rows(const level *l,
                     void (*row)(const level *l, double *z, double *r, double *d, int64_t first, double factor),
                     double factor)
{
    for (int k = 0; k < l->a.n[2]; ++k)
        for (int j = 0; j < l->a.n[1]; ++j) {
            const ptrdiff_t at = trl_array_offset(&l->d.array, 0, j, k);
            row(l, (double *)l->z.array.at + at, (double *)l->r.array.at + at, (double *)l->d.array.at + at,
                (int64_t)l->a.n[0] * (j + (int64_t)l->a.n[1] * k), factor);
        }
}

static void begin_row(const level *l, double *z, double *r, double *d, int64_t first, double factor)
{
    for (int i = 0; i < l->a.n[0]; ++i) {
        z[i] = 0;
        d[i] = factor * l->inverse[first + i] * r[i];
    }
}

static double least_of(const level *l)
{
    int axes = 0;
    for (int a = 0; a < 3; ++a) axes += l->a.n[a] > 1;
    return l->largest * 0.5 / axes;
}

static void begin(level *l, double least)
{
    for_rows(l, begin_row, 2 / (l->largest + least));
}

/* z = the solution on the coarsest grid */
static void solve_dense(trli_galerkin *st, const level *l)
{
    const int n = (int)trli_entries_points(&l->a);
    double x[DENSE_MOST];
    const double *m = st->dense;
    for (int pass = 0; pass < 2; ++pass)
        for (int p = 0; p < n; ++p) {
            const int i = p % l->a.n[0], j = p / l->a.n[0] % l->a.n[1], k = p / l->a.n[0] / l->a.n[1];
            const ptrdiff_t at = trl_array_offset(&l->z.array, i, j, k);
            if (pass == 0)
                x[p] = ((const double *)l->r.array.at)[at];
            else
                ((double *)l->z.array.at)[at] = x[p];
            if (pass == 1 || p + 1 < n) continue;
            for (int row = 0; row < n; ++row)
                for (int q = 0; q < row; ++q) x[row] -= m[(ptrdiff_t)row * n + q] * x[q];
            for (int row = n - 1; row >= 0; --row) {
                for (int q = row + 1; q < n; ++q) x[row] -= m[(ptrdiff_t)row * n + q] * x[q];
                const double pivot = m[(ptrdiff_t)row * n + row];
                x[row] = pivot != 0 ? x[row] / pivot : 0;
            }
        }
}

static void cycle(chain *c, int k, trl_solve_cycle kind)
{
    trli_galerkin *st = c->st;
    level *l = &st->level[k];
    const bool coarsest = k + 1 == st->n, twice = kind != TRL_CYCLE_V && k + 2 < st->n;
    const double least = coarsest ? 0.02 * l->largest : least_of(l);
    smooth(c, l, coarsest ? COARSEST_STEPS : SMOOTHING, least);
    if (coarsest) return;
    note(c, trli_restrict_values(l->transfer, &l->r.array, &l[1].r.array, st->loop));
    if (k + 2 == st->n && st->dense) {
        solve_dense(st, l + 1);
    } else {
        begin(l + 1, k + 2 == st->n ? 0.02 * l[1].largest : least_of(l + 1));
        cycle(c, k + 1, kind);
        if (twice) cycle(c, k + 1, kind == TRL_CYCLE_F ? TRL_CYCLE_V : kind);
    }
    note(c, trli_prolong_values(l->transfer, &l[1].z.array, &l->d.array, st->loop));
    step_along(c, l, 0, 2 / (l->largest + least));
    smooth(c, l, SMOOTHING, least);
}

trl_err trli_galerkin_cycle(trli_galerkin *st, trl_solve_cycle kind, int residual, int solution)
{
    chain c = {st, TRL_OK};
    level *l = &st->level[1];
    const bool twice = kind != TRL_CYCLE_V && st->n > 2;
    trl_simulation *sim = st->s->sim;
    if (st->n == 1) { /* no point has neighbours */
        trli_clear_field(sim, solution);
        return TRL_OK;
    }
    note(&c, trli_restrict_field(st->level[0].transfer, sim, residual, &l->r.array, st->loop));
    if (st->n == 2 && st->dense) {
        solve_dense(st, l);
    } else {
        begin(l, st->n == 2 ? 0.02 * l->largest : least_of(l));
        cycle(&c, 1, kind);
        if (twice) cycle(&c, 1, kind == TRL_CYCLE_F ? TRL_CYCLE_V : kind);
    }
    note(&c, trli_prolong_field(st->level[0].transfer, &l->z.array, sim, solution, st->loop));
    return c.err;
}
