/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <float.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#include <spatialops_impl.h>

#include "compute_impl.h"
#include "help_impl.h"
#include "pipeline_impl.h"
#include "tasks_impl.h"

/* ---- values that are not finite ---- */

/* Results that have to be finite. */
typedef struct finite_check {
    const trl_grid *grid;
    const trl_patch *patch;
    int noutputs;
    const int *variable;
    const trl_array *output;
    trli_nonfinite *found; /* the first one so far */
    const trl_box *within; /* only these points are checked; NULL: all */
} finite_check;

static bool comes_before(int v, const trl_gidx p[3], const trli_nonfinite *other)
{
    if (!other->found || v != other->variable) return !other->found || v < other->variable;
    for (int a = 2; a >= 0; --a)
        if (p[a] != other->point[a]) return p[a] < other->point[a];
    return false;
}

static void note_nonfinite(const finite_check *c, int variable, const double *row, trl_lidx n, const trl_lidx start[3])
{
    const trl_patch *patch = c->patch;
    for (trl_lidx i = 0; i < n; ++i) {
        if (fabs(row[i]) <= DBL_MAX) continue;
        trl_gidx point[3] = {patch->first[0] + start[0] + i, patch->first[1] + start[1], patch->first[2] + start[2]};
        for (int a = 0; a < 3; ++a)
            if (c->grid->periodic[a] && point[a] >= c->grid->cells[a]) point[a] -= c->grid->cells[a];
        if (!comes_before(variable, point, c->found)) return;
        *c->found = (trli_nonfinite){true, variable, {point[0], point[1], point[2]}, row[i]};
        return;
    }
}

static void note_plane(const finite_check *c, int o, const trl_box *tile, trl_lidx k)
{
    const trl_array *array = &c->output[o];
    const trl_lidx n = tile->hi[0] - tile->lo[0], rows = tile->hi[1] - tile->lo[1];
    const double *row = (const double *)array->at + trl_array_offset(array, tile->lo[0], tile->lo[1], k);
    if (trli_rows_finite(row, n, rows, array->stride[1])) return;
    for (trl_lidx j = tile->lo[1]; j < tile->hi[1]; ++j, row += array->stride[1])
        note_nonfinite(c, c->variable[o], row, n, (trl_lidx[3]){tile->lo[0], j, k});
}

/* Check the row that was just stored, while it is in the cache; data: a finite_check. */
static void check_finite(void *data, const trl_box *tile)
{
    const finite_check *c = data;
    trl_box box = *tile;
    for (int a = 0; a < 3 && c->within; ++a) {
        if (box.lo[a] < c->within->lo[a]) box.lo[a] = c->within->lo[a];
        if (box.hi[a] > c->within->hi[a]) box.hi[a] = c->within->hi[a];
        if (box.lo[a] >= box.hi[a]) return;
    }
    for (int o = 0; o < c->noutputs; ++o)
        for (trl_lidx k = box.lo[2]; k < box.hi[2]; ++k) note_plane(c, o, &box, k);
}

void trli_check_field(const trli_frame *frame, int field, int variable, trli_nonfinite *found)
{
    const trl_layout *layout = frame->model->layout;
    for (int p = 0; p < layout->nlocal; ++p) {
        const trl_array array = trli_frame_array(frame, field, p, 0);
        finite_check check = {&layout->grid, &layout->patch[p], 1, &variable, &array, found, NULL};
        check_finite(&check, &array.owned);
    }
}

/* ---- computing ---- */

void trli_copy_images(const trl_array *array, const trl_box *box, ptrdiff_t behind)
{
    for (trl_lidx k = box->lo[2]; k < box->hi[2]; ++k)
        for (trl_lidx j = box->lo[1]; j < box->hi[1]; ++j) {
            double *row = (double *)array->at + trl_array_offset(array, box->lo[0], j, k);
            memcpy(row, row - behind, (size_t)(box->hi[0] - box->lo[0]) * sizeof *row);
        }
}

void trli_native_set_box(trl_kernel_call *call, const trl_box *box)
{
    for (int a = 0; a < 3; ++a) {
        call->lo[a] = box->lo[a];
        call->hi[a] = box->hi[a];
    }
}

/* Go through a box in the way that is known to be the fastest, once all were tried. */
static bool sweep(const trli_bound_kernel *k, const trli_frame *frame, int worker, const trl_box *box)
{
    const int share = frame->help ? trli_help_share(frame->help) : 0;
    long long plane = box->lo[2];
    bool finite = true;
    for (int i = 0; i < k->nparts; ++i) {
        k->part[i].call.scalar = frame->scalar;
        trli_native_set_box(&k->part[i].call, box);
    }
    if (share == 0 || !trli_help_is_forced(frame->help)) plane = trli_sweep_try(k->part, k->nparts, k->tuning, &finite);
    if (plane == box->hi[2]) return finite;
    if (share > 0) return trli_help_planes(frame->help, k, worker, share, plane, box->hi[2]) && finite;
    const trli_sweep_way way = trli_tuning_best(k->tuning);
    return trli_sweep_planes(k->part, k->nparts, &way, plane, box->hi[2]) && finite;
}

/* Returns whether all values were finite or unchecked. */
static bool call_native(const trli_bound_kernel *k, const trli_frame *frame, int worker, const trl_box *box)
{
    bool finite = true;
    if (k->tuning) return sweep(k, frame, worker, box);
    for (int i = 0; i < k->nparts; ++i) {
        trl_kernel_call call = k->part[i].call;
        call.scalar = frame->scalar;
        call.block = k->block;
        call.interleave = k->interleave;
        trli_native_set_box(&call, box);
        k->part[i].native(&call);
        finite &= call.nonfinite == 0;
    }
    return finite;
}

void trli_kernel_compute(const trli_bound_kernel *k, const trli_frame *frame, int worker, void *registers,
                         const trl_box *box)
{
    const trl_array *output = k->array + k->ninputs;
    if (!k->kernel) {
        trli_copy_images(output, box, k->behind);
        return;
    }
    finite_check check = {k->cells, k->patch, k->noutputs, k->variable, output, &frame->nonfinite[worker], k->within};
    if (k->native) {
        if (!call_native(k, frame, worker, box) && k->variable) check_finite(&check, box);
        return;
    }
    const trli_kernel_run run = {.grid = k->cells,
                                 .patch = k->patch,
                                 .input = k->array,
                                 .output = output,
                                 .scalar = frame->scalar,
                                 .scratch = registers,
                                 .exceeds_caches = k->exceeds_caches,
                                 .after = k->variable ? check_finite : NULL,
                                 .data = &check};
    trli_kernel_evaluate(k->kernel, &run, box);
}

void trli_scalar_compute(const trli_program *program, const trli_step *s, const trli_frame *frame, int worker)
{
    static const trl_box one = {{0, 0, 0}, {1, 1, 1}};
    const trl_layout *layout = program->model->layout;
    const trl_array output = {.at = &frame->scalar[s->scalar]};
    const trli_kernel_run run = {.grid = &layout->grid,
                                 .patch = &layout->patch[0],
                                 .output = &output,
                                 .scalar = frame->scalar,
                                 .scratch = frame->scratch[worker]};
    trli_kernel_evaluate(trli_run_of(program, s)->kernel, &run, &one);
}
