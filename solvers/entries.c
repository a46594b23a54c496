/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The entries of an operator by products with vectors of ones and zeros. Along an axis no two of three points in a row
 * have one colour; where a vector is one at points of a colour a row has the entry of one neighbour along that axis, or
 * the sum of those of all points across it. */
#include "context_impl.h"
#include "galerkin_impl.h"
#include "memory_impl.h"

typedef struct probe {
    trli_solver *s;
    trli_entries *a;
    double *product; /* [points] */
} probe;

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

/* d = 1 at points of a colour along an axis; axis -1: at all. */
static void set_direction(const probe *f, int axis, int colour)
{
    const trl_simulation *sim = f->s->sim;
    const int d = f->s->d.now[0];
    for (int p = 0; p < sim->layout->nlocal; ++p) {
        const trl_array array = trli_frame_array(sim->frame, d, p, 0);
        const trl_box *b = &array.owned;
        const trl_gidx *first = sim->layout->patch[p].first;
        for (trl_lidx k = b->lo[2]; k < b->hi[2]; ++k)
            for (trl_lidx j = b->lo[1]; j < b->hi[1]; ++j)
                for (trl_lidx i = b->lo[0]; i < b->hi[0]; ++i) {
                    const int at[3] = {(int)first[0] + i, (int)first[1] + j, (int)first[2] + k};
                    bool one = axis < 0 || colour_of(f->a, axis, at[axis]) == colour;
                    for (int c = 0; c < 3; ++c) one &= !is_fixed(sim, d, c, at[c], f->a->n[c]);
                    ((double *)array.at)[trl_array_offset(&array, i, j, k)] = one;
                }
    }
    trli_frame_written(sim->frame, d);
}

trl_err trli_entries_collect(const trl_simulation *sim, trl_err err, int field, const int n[3], double *values)
{
    const int64_t points = (int64_t)n[0] * n[1] * n[2];
    for (int64_t i = 0; i < points; ++i) values[i] = 0;
    for (int p = 0; p < sim->layout->nlocal; ++p) {
        const trl_array array = trli_frame_array(sim->frame, field, p, 0);
        const trl_box *b = &array.owned;
        const trl_gidx *first = sim->layout->patch[p].first;
        for (trl_lidx k = b->lo[2]; k < b->hi[2]; ++k)
            for (trl_lidx j = b->lo[1]; j < b->hi[1]; ++j) {
                double *to = values + first[0] + n[0] * (first[1] + j + n[1] * (first[2] + k));
                const double *from = (const double *)array.at + trl_array_offset(&array, 0, j, k);
                for (trl_lidx i = b->lo[0]; i < b->hi[0]; ++i) to[i] = from[i] + 0.0; /* no negative zero */
            }
    }
    return trli_allreduce_after(sim->ctx, err, values, (int)points, MPI_DOUBLE, MPI_SUM);
}

static trl_err multiply(const probe *f, int axis, int colour)
{
    trl_err err = TRL_OK;
    set_direction(f, axis, colour);
    TRL_TRY(trli_solver_program(f->s, f->s->apply));
    const trl_simulation *sim = f->s->sim;
    const int q = f->s->q.now[0];
    err = trli_entries_collect(sim, trli_frame_fetch(sim->frame, q), q, f->a->n, f->product);
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

/* The entries of neighbours along an axis that have a colour. */
static void take_entries(const probe *f, int axis, int colour)
{
    const trli_entries *a = f->a;
    int64_t p = 0;
    int at[3];
    for (at[2] = 0; at[2] < a->n[2]; ++at[2])
        for (at[1] = 0; at[1] < a->n[1]; ++at[1])
            for (at[0] = 0; at[0] < a->n[0]; ++at[0], ++p)
                for (int e = 1; e < a->entries; ++e) {
                    const int step = a->offset[e][axis];
                    const int other = step ? neighbour(a, axis, at[axis], step) : -1;
                    if (other >= 0 && colour_of(a, axis, other) == colour) a->entry[p * a->entries + e] = f->product[p];
                }
}

/* Of the sum of a row its own entry is what the others leave. */
static void take_diagonal(const probe *f)
{
    const trli_entries *a = f->a;
    const int64_t n = trli_entries_points(a);
    for (int64_t p = 0; p < n; ++p) {
        double *entry = a->entry + p * a->entries;
        entry[0] = f->product[p];
        for (int e = 1; e < a->entries; ++e) entry[0] -= entry[e];
    }
}

static bool is_unknown(const trli_entries *a, const int at[3], const int offset[3])
{
    int64_t p = 0;
    for (int c = 2; c >= 0; --c) {
        const int i = offset[c] ? neighbour(a, c, at[c], offset[c]) : at[c];
        if (i < 0) return false;
        p = p * a->n[c] + i;
    }
    return a->entry[p * a->entries] != 0;
}

/* What a row has of points that are no unknowns does not count: they are 0. */
static void clear_others(const trli_entries *a)
{
    int64_t p = 0;
    int at[3];
    for (at[2] = 0; at[2] < a->n[2]; ++at[2])
        for (at[1] = 0; at[1] < a->n[1]; ++at[1])
            for (at[0] = 0; at[0] < a->n[0]; ++at[0], ++p)
                for (int e = 1; e < a->entries; ++e)
                    if (a->entry[p * a->entries + e] != 0 && !is_unknown(a, at, a->offset[e]))
                        a->entry[p * a->entries + e] = 0;
}

trl_err trli_entries_find(trli_solver *s, trli_entries *a)
{
    const int64_t n = trli_entries_points(a);
    probe f = {s, a, trli_new(s->sim->ctx, (size_t)n + 1, sizeof(double))};
    trl_err err = TRL_OK;
    if (!f.product) return trli_no_memory(s->sim->ctx, NULL, "to look at an operator");
    for (int64_t i = 0; i < n * a->entries; ++i) a->entry[i] = 0;
    for (int axis = 0; axis < 3; ++axis)
        for (int colour = 0; a->n[axis] > 1 && colour < colours_of(a, axis); ++colour) {
            TRL_TRY(multiply(&f, axis, colour));
            take_entries(&f, axis, colour);
        }
    TRL_TRY(multiply(&f, -1, 0));
    take_diagonal(&f);
    clear_others(a);
done:
    trli_free(f.product);
    return err;
}
