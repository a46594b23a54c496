/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <stdlib.h>
#include <string.h>

#include "bench_kernels_impl.h"
#include "vector_impl.h"

enum {
    LINE = 8,        /* doubles in a cache line */
    STAGGER = 37,    /* lines by which arrays begin at different places of their pages */
    SCRATCH_ROWS = 8 /* besides those of two planes */
};

static double number(uint64_t i)
{
    i = (i ^ i >> 30) * 0xbf58476d1ce4e5b9u;
    i = (i ^ i >> 27) * 0x94d049bb133111ebu;
    return (double)(i >> 11) * 0x1p-53;
}

double trli_kernel_value(const trli_kernel_size *size, int f, int i, int j, int k)
{
    const int at[3] = {i, j, k};
    uint64_t index = (uint64_t)f;
    for (int a = 2; a >= 0; --a) {
        int n = (int)size->grid.cells[a];
        index = index * (uint64_t)n + (uint64_t)((at[a] + n) % n);
    }
    return size->what->lo + (size->what->hi - size->what->lo) * number(index + 1);
}

void trli_kernel_size_set(const trli_kernel_case *what, int cells, trli_kernel_size *size)
{
    double least = 0;
    *size = (trli_kernel_size){.what = what, .grid = {.dim = what->dim, .cells = {1, 1, 1}, .length = {1, 1, 1}}};
    for (int a = 0; a < what->dim; ++a) {
        trl_grid *g = &size->grid;
        g->cells[a] = cells;
        g->length[a] = what->length[a] > 0 ? what->length[a] : cells;
        g->spacing[a] = g->length[a] / cells;
        g->periodic[a] = !what->boundary;
        if (a == 0 || g->spacing[a] < least) least = g->spacing[a];
    }
    size->dt = what->dt * least * least;
}

/* ---- state ---- */

/* Rows begin on a cache line at cell 0; a ghost on each side, the minus one at a line's end. */
static void shape(trli_hand_state *s)
{
    for (int a = 0; a < 3; ++a) s->n[a] = (ptrdiff_t)s->size->grid.cells[a];
    s->sy = (s->n[0] + (ptrdiff_t)2 * LINE) / LINE * LINE;
    s->sz = s->sy * (s->n[1] + 2);
}

static void set_values(const trli_hand_state *s, int f, double *values)
{
    const int deep = s->size->what->dim > 2;
    for (int k = -deep; k < s->n[2] + deep; ++k)
        for (int j = -1; j <= s->n[1]; ++j)
            for (int i = -1; i <= s->n[0]; ++i)
                values[i + j * s->sy + k * s->sz] = trli_kernel_value(s->size, f, i, j, k);
}

trl_err trli_hand_create(trl_context *ctx, const trli_kernel_size *size, const trli_hand_way *way, trli_hand_state *s)
{
    const trli_kernel_case *what = size->what;
    trl_err err = TRL_OK;
    *s = (trli_hand_state){.ctx = ctx, .size = size, .way = way};
    shape(s);
    const ptrdiff_t planes = what->dim > 2 ? s->n[2] + 2 : 1;
    const ptrdiff_t each = LINE + s->sz * planes + (ptrdiff_t)STAGGER * LINE;
    const int arrays = 2 * what->unknowns + what->coefficients;
    TRL_TRY(trli_bench_alloc(ctx, (size_t)(each * arrays + LINE), &s->memory));
    double *at = s->memory + LINE + s->sy + (what->dim > 2 ? s->sz : 0);
    for (int f = 0; f < arrays; ++f, at += each) {
        if (f < what->unknowns)
            s->now[f] = at;
        else if (f < what->unknowns + what->coefficients)
            s->coefficient[f - what->unknowns] = at;
        else
            s->next[f - what->unknowns - what->coefficients] = at;
        if (f < what->unknowns + what->coefficients) set_values(s, f, at);
    }
    s->scratch_each = (size_t)(s->sy * (2 * s->n[1] + SCRATCH_ROWS));
    TRL_TRY(trli_bench_alloc(ctx, s->scratch_each * (size_t)size->threads, &s->scratch));
done:
    return err;
}

void trli_hand_destroy(trli_hand_state *s)
{
    free(s->memory);
    free(s->scratch);
    *s = (trli_hand_state){0};
}

/* ---- steps ---- */

/* Ghosts of a member's part, which nobody else reads; the members at the ends also fill those beyond the outer axis.
 * Stencils need no corners. */
static void fill(const trli_hand_state *s, double *f, const ptrdiff_t row[2], const ptrdiff_t plane[2])
{
    const ptrdiff_t nx = s->n[0], ny = s->n[1], nz = s->n[2], sy = s->sy, sz = s->sz;
    const size_t bytes = (size_t)nx * sizeof *f;
    for (ptrdiff_t k = plane[0]; k < plane[1]; ++k) {
        double *p = f + k * sz;
        for (ptrdiff_t j = row[0]; j < row[1]; ++j) {
            p[j * sy - 1] = p[j * sy + nx - 1];
            p[j * sy + nx] = p[j * sy];
        }
        if (row[0] == 0) memcpy(p - sy, p + (ny - 1) * sy, bytes);
        if (row[1] == ny) memcpy(p + ny * sy, p, bytes);
    }
    for (ptrdiff_t j = row[0]; j < row[1] && s->size->what->dim > 2; ++j) {
        if (plane[0] == 0) memcpy(f - sz + j * sy, f + (nz - 1) * sz + j * sy, bytes);
        if (plane[1] == nz) memcpy(f + nz * sz + j * sy, f + j * sy, bytes);
    }
}

void trli_hand_point(const trli_hand_sweep *sweep, int first, ptrdiff_t at, trli_hand_row *row)
{
    const trli_hand_state *s = sweep->state;
    const trli_kernel_case *what = s->size->what;
    const int ahead = sweep->way->ahead;
    const ptrdiff_t next = (what->dim > 2 ? s->sz : 0) + ahead * s->sy;
    row->nahead = 0;
    for (int u = 0; u < sweep->way->together; ++u) {
        row->in[u] = s->now[first + u] + at;
        row->out[u] = s->next[first + u] + at;
        if (ahead) row->ahead[row->nahead++] = row->in[u] + next;
    }
    for (int o = 0; o < what->nothers; ++o) row->other[o] = s->now[(first + what->other[o]) % what->unknowns] + at;
    for (int c = 0; c < what->coefficients; ++c) {
        row->coefficient[c] = s->coefficient[c] + at;
        if (ahead) row->ahead[row->nahead++] = row->coefficient[c] + next;
    }
}

static void steps(trli_team *team, int member, void *data)
{
    trli_hand_state *s = data;
    const trli_kernel_size *size = s->size;
    const trli_hand_way *way = s->way;
    trli_hand_sweep sweep = {.state = s, .way = way, .scratch = s->scratch + (size_t)member * s->scratch_each};
    sweep.row = (trli_hand_row){.sy = s->sy, .sz = s->sz, .n = s->n[0], .dt = size->dt};
    for (int a = 0; a < size->what->dim; ++a) {
        sweep.row.h[a] = 1.0 / size->grid.spacing[a];
        sweep.row.h2[a] = 1.0 / size->grid.spacing[a] / size->grid.spacing[a];
    }
    ptrdiff_t part[2], row[2] = {0, s->n[1]}, plane[2] = {0, s->n[2]};
    ptrdiff_t *mine = size->what->dim > 2 ? plane : row;
    trli_team_share(team, member, mine[1], &part[0], &part[1]);
    memcpy(mine, part, sizeof part);
    const ptrdiff_t block = way->block ? way->block : s->n[1];
    for (int step = 0; step < size->steps; ++step) {
        for (int u = 0; u < size->what->unknowns; ++u) fill(s, s->now[u], row, plane);
        for (ptrdiff_t j = row[0]; j < row[1]; j += block)
            way->sweep(&sweep, (ptrdiff_t[2]){j, j + block < row[1] ? j + block : row[1]}, plane);
        if (way->streaming) TRLI_STREAM_FENCE();
        trli_team_barrier(team);
        for (int u = 0; u < size->what->unknowns && member == 0; ++u) {
            double *now = s->now[u];
            s->now[u] = s->next[u];
            s->next[u] = now;
        }
        trli_team_barrier(team);
    }
}

trl_err trli_hand_run(void *data)
{
    trli_hand_state *s = data;
    return trli_team_run(s->ctx, s->size->threads, steps, s);
}
