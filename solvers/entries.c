/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The entries of an operator by products with vectors of ones and zeros. Along an axis no two of three points in a row
 * have one colour; where a vector is one at points of a colour a row has the entry of one neighbour along that axis, or
 * the sum of those of all points across it. */
#include <math.h>
#include <string.h>

#include "context_impl.h"
#include "galerkin_impl.h"
#include "memory_impl.h"

/* Where an axis is periodic and no multiple of three, its last points have colours of their own. */
static int colour_of(const trli_entries *a, int axis, int i)
{
    const int n = a->n[axis], rest = n % 3;
    return a->periodic[axis] && i >= n - rest ? 3 + i - (n - rest) : i % 3;
}

static int colours_of(const trli_entries *a, int axis)
{
    const int n = a->n[axis];
    return a->periodic[axis] ? 3 + n % 3 : n < 3 ? n : 3;
}

/* Points that conditions set are no columns. */
static bool is_fixed(const trl_simulation *sim, int field, int axis, int i, int n)
{
    const int8_t *fixed = sim->model->field[field].fixed_planes;
    return i < fixed[2 * axis] || i >= n - fixed[2 * axis + 1];
}

/* A loop over the rows of a patch. */
typedef void (*taking)(const trli_entries *a, const int at[3], double product, int axis, int colour, double *entry);
typedef struct pass {
    const trli_entries *a;
    int field, patch, axis, colour; /* axis -1: all points; colour -1: none */
    taking fn;                      /* for the product at each point, and the place of its entries */
    trl_array array;
} pass;

static trl_err run_rows(const pass *w, trl_loop_fn fn)
{
    const trli_sparse_crew *crew = w->a->crew;
    const int *n = w->a->part[w->patch].n;
    const int64_t rows = (int64_t)n[1] * n[2];
    const int chunks = trli_sparse_crew_chunks(crew, rows * n[0]);
    return trl_loop_run(trli_sparse_crew_loop(crew), rows < chunks ? (int)rows : chunks, fn, (void *)w);
}

/* d = 1 at points of a colour along an axis. */
static trl_err set_rows(void *data, int chunk, int chunks, int worker)
{
    const pass *w = data;
    const trli_entries *a = w->a;
    const trli_patch_box *part = &a->part[w->patch];
    const trl_simulation *sim = a->s->sim;
    const int64_t rows = (int64_t)part->n[1] * part->n[2];
    (void)worker;
    for (int64_t row = rows * chunk / chunks; row < rows * (chunk + 1) / chunks; ++row) {
        const int j = (int)(row % part->n[1]), k = (int)(row / part->n[1]);
        int at[3] = {part->first[0], part->first[1] + j, part->first[2] + k};
        double *to = (double *)w->array.at + trl_array_offset(&w->array, 0, j, k);
        bool all = w->axis < 1 || colour_of(a, w->axis, at[w->axis]) == w->colour;
        for (int c = 1; c < 3; ++c) all &= !is_fixed(sim, w->field, c, at[c], a->n[c]);
        for (int i = 0; i < part->n[0]; ++i, ++at[0]) {
            const bool one = w->axis != 0 || colour_of(a, 0, at[0]) == w->colour;
            to[i] = all && one && !is_fixed(sim, w->field, 0, at[0], a->n[0]);
        }
    }
    return TRL_OK;
}

static trl_err set_direction(const trli_entries *a, int unknown, int axis, int colour)
{
    const trl_simulation *sim = a->s->sim;
    const int d = a->s->d.now[unknown];
    trl_err err = TRL_OK;
    for (int p = 0; p < sim->layout->nlocal; ++p) {
        const pass w = {a, d, p, axis, colour, NULL, trli_frame_array(sim->frame, d, p, 0)};
        TRL_TRY(run_rows(&w, set_rows));
    }
    trli_frame_written(sim->frame, d);
done:
    return err;
}

static trl_err multiply(const trli_entries *a, int axis, int colour)
{
    trl_simulation *sim = a->s->sim;
    trl_err err = TRL_OK;
    TRL_TRY(trl_context_agree(sim->ctx, set_direction(a, a->unknown, axis, colour)));
    TRL_TRY(trli_solver_program(a->s, a->s->apply));
    err = trl_context_agree(sim->ctx, trli_frame_fetch(sim->frame, a->s->q.now[a->unknown]));
done:
    return err;
}

/* Beyond a side: -1. */
static int neighbour(const trli_entries *a, int axis, int i, int step)
{
    const int n = a->n[axis], at = i + step;
    if (a->periodic[axis]) return (at + n) % n;
    return at < n ? at : -1;
}

static trl_err take_rows(void *data, int chunk, int chunks, int worker)
{
    const pass *w = data;
    const trli_patch_box *part = &w->a->part[w->patch];
    const int64_t rows = (int64_t)part->n[1] * part->n[2];
    (void)worker;
    for (int64_t row = rows * chunk / chunks; row < rows * (chunk + 1) / chunks; ++row) {
        const int j = (int)(row % part->n[1]), k = (int)(row / part->n[1]);
        const int box[3] = {part->ghosts[0], part->ghosts[1] + j, part->ghosts[2] + k};
        const double *product = (const double *)w->array.at + trl_array_offset(&w->array, 0, j, k);
        double *entry = part->entry + trli_patch_box_index(part, box) * w->a->entries;
        int at[3] = {part->first[0], part->first[1] + j, part->first[2] + k};
        for (int i = 0; i < part->n[0]; ++i, ++at[0], entry += w->a->entries)
            w->fn(w->a, at, product[i], w->axis, w->colour, entry);
    }
    return TRL_OK;
}

/* Call a function for the product at each point of the patches, and the place of its entries. */
static trl_err for_points(const trli_entries *a, taking fn, int axis, int colour)
{
    const trl_simulation *sim = a->s->sim;
    const int q = a->s->q.now[a->unknown];
    trl_err err = TRL_OK;
    for (int p = 0; p < sim->layout->nlocal; ++p) {
        const pass w = {a, q, p, axis, colour, fn, trli_frame_array(sim->frame, q, p, 0)};
        TRL_TRY(run_rows(&w, take_rows));
    }
done:
    return err;
}

/* The entries of neighbours along an axis that have a colour. */
static void take_entries(const trli_entries *a, const int at[3], double product, int axis, int colour, double *entry)
{
    for (int e = 1; e < a->entries; ++e) {
        const int step = a->offset[e][axis];
        const int other = step ? neighbour(a, axis, at[axis], step) : -1;
        if (other >= 0 && colour_of(a, axis, other) == colour) entry[e] = product + 0.0;
    }
}

/* Of the sum of a row its own entry is what the others leave. */
static void take_diagonal(const trli_entries *a, const int at[3], double product, int axis, int colour, double *entry)
{
    (void)at;
    (void)axis;
    (void)colour;
    entry[0] = product + 0.0;
    for (int e = 1; e < a->entries; ++e) entry[0] -= entry[e];
}

/* What a row has of points that are no unknowns does not count: they are 0. The own entries of all are there. */
static void clear_others(const trli_entries *a, const trli_patch_box *part)
{
    int box[3];
    for (box[2] = part->ghosts[2]; box[2] < part->ghosts[2] + part->n[2]; ++box[2])
        for (box[1] = part->ghosts[1]; box[1] < part->ghosts[1] + part->n[1]; ++box[1])
            for (box[0] = part->ghosts[0]; box[0] < part->ghosts[0] + part->n[0]; ++box[0]) {
                double *entry = part->entry + trli_patch_box_index(part, box) * a->entries;
                for (int e = 1; e < a->entries; ++e) {
                    const int to[3] = {box[0] + a->offset[e][0], box[1] + a->offset[e][1], box[2] + a->offset[e][2]};
                    int at[3];
                    const bool is = trli_patch_box_point(a, part, to, at);
                    if (!is || part->entry[trli_patch_box_index(part, to) * a->entries] == 0) entry[e] = 0;
                }
            }
}

static trl_err clear_other_directions(const trli_entries *a)
{
    trl_err err = TRL_OK;
    for (int i = 0; i < a->s->ask.n && err == TRL_OK; ++i)
        if (i != a->unknown) err = set_direction(a, i, 0, -1);
    return trl_context_agree(a->s->sim->ctx, err);
}

trl_err trli_entries_find(trli_entries *a)
{
    const int parts = a->s->sim->layout->nlocal;
    trl_err err = TRL_OK;
    if (a->s->ask.n > 1) TRL_TRY(clear_other_directions(a));
    for (int p = 0; p < parts; ++p) {
        trli_patch_box *part = &a->part[p];
        const int64_t n = (int64_t)part->size[0] * part->size[1] * part->size[2] * a->entries;
        for (int64_t i = 0; i < n; ++i) part->entry[i] = 0;
    }
    for (int axis = 0; axis < 3; ++axis)
        for (int colour = 0; a->n[axis] > 1 && colour < colours_of(a, axis); ++colour) {
            TRL_TRY(multiply(a, axis, colour));
            TRL_TRY(for_points(a, take_entries, axis, colour));
        }
    TRL_TRY(multiply(a, -1, 0));
    TRL_TRY(for_points(a, take_diagonal, -1, 0));
    TRL_TRY(trli_entries_exchange(a, 0));
    for (int p = 0; p < parts; ++p) clear_others(a, &a->part[p]);
    for (int e = 1; e < a->entries; ++e) TRL_TRY(trli_entries_exchange(a, e));
done:
    return err;
}

trl_err trli_entries_mixed(const trli_entries *a, double *mixed)
{
    *mixed = 0;
    for (int p = 0; p < a->s->sim->layout->nlocal; ++p) {
        const trli_patch_box *part = &a->part[p];
        const int64_t points = (int64_t)part->size[0] * part->size[1] * part->size[2];
        for (int64_t i = 0; i < points; ++i) {
            const double *entry = part->entry + i * a->entries;
            double sum = 0;
            for (int e = 1; e < a->entries; ++e) sum += fmax(0, entry[0] < 0 ? -entry[e] : entry[e]);
            if (entry[0] != 0) *mixed = fmax(*mixed, sum / fabs(entry[0]));
        }
    }
    return trli_allreduce(a->s->sim->ctx, mixed, 1, MPI_DOUBLE, MPI_MAX);
}

/* ---- making ---- */

static trl_err make_part(const trli_entries *a, int p)
{
    trl_context *ctx = a->s->sim->ctx;
    const trl_array array = trli_frame_array(a->s->sim->frame, a->level->r.now[a->unknown], p, 0);
    trli_patch_box *part = &a->part[p];
    size_t points = 1;
    for (int c = 0; c < 3; ++c) {
        part->first[c] = (int)a->s->sim->layout->patch[p].first[c];
        part->n[c] = array.owned.hi[c];
        part->ghosts[c] = a->n[c] > 1 ? TRLI_TRANSFER_DEPTH : 0;
        part->size[c] = part->n[c] + 2 * part->ghosts[c];
        points *= (size_t)part->size[c];
    }
    part->entry = trli_new(ctx, points * (size_t)a->entries, sizeof *part->entry);
    part->left_out = trli_new(ctx, points, sizeof *part->left_out);
    part->number = trli_new(ctx, points, sizeof *part->number);
    part->row = trli_new(ctx, points, sizeof *part->row);
    return part->entry && part->left_out && part->number && part->row ? TRL_OK
                                                                      : trli_no_memory(ctx, NULL, "for coarser grids");
}

trl_err trli_entries_create(trli_solver *s, int unknown, const trli_grid_level *level, trli_sparse_crew *crew,
                            trli_entries *a)
{
    static const int offsets[][3] = {{0, 0, 0}, {-1, 0, 0}, {1, 0, 0}, {0, -1, 0}, {0, 1, 0}, {0, 0, -1}, {0, 0, 1}};
    trl_simulation *sim = s->sim;
    const trl_grid *grid = &sim->layout->grid;
    const trl_location location = sim->model->variable[s->ask.variable[unknown]].location;
    const bool thin = trli_transfer_gathers(sim->layout);
    trl_err err = TRL_OK;
    *a = (trli_entries){.s = s, .unknown = unknown, .level = level, .crew = crew};
    for (int axis = 0; axis < 3; ++axis) {
        a->n[axis] = axis < grid->dim ? (int)trl_grid_points(grid, location, axis) : 1;
        a->periodic[axis] = axis < grid->dim && grid->periodic[axis];
    }
    for (int e = 0; e < TRLI_ENTRIES_MOST; ++e)
        if (e == 0 || a->n[(e - 1) / 2] > 1) memcpy(a->offset[a->entries++], offsets[e], sizeof offsets[e]);
    a->part = trli_new(sim->ctx, (size_t)sim->layout->nlocal + 1, sizeof *a->part);
    if (thin) a->whole = trli_new(sim->ctx, (size_t)trli_entries_points(a), sizeof *a->whole);
    if (!a->part || (thin && !a->whole)) TRL_TRY(trli_no_memory(sim->ctx, NULL, "for coarser grids"));
    for (int p = 0; p < sim->layout->nlocal; ++p) TRL_TRY(make_part(a, p));
done:
    return err;
}

void trli_entries_free(trli_entries *a)
{
    for (int p = 0; a->part && p < a->s->sim->layout->nlocal; ++p) {
        trli_patch_box *part = &a->part[p];
        trli_free(part->entry);
        trli_free(part->left_out);
        trli_sparse_free(&part->p);
        trli_sparse_free(&part->back);
        trli_sparse_free(&part->product);
        trli_free(part->number);
        trli_free(part->row);
        trli_free(part->coarse);
        trli_free(part->place);
    }
    trli_free(a->part);
    trli_free(a->whole);
    *a = (trli_entries){0};
}
