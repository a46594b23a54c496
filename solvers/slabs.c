/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Solving in two distributions: a rank has planes across the last axis, whose lines along the other axes it transforms,
 * and then whole lines along the last. Of these it reads and writes what lies in planes of ranks of its node where it
 * is, and the rest in messages. Each line is worked on as a whole, by one thread. */
#include <string.h>

#include "context_impl.h"
#include "direct_impl.h"
#include "late_impl.h"
#include "memory_impl.h"
#include "model_impl.h"
#include "slabs_impl.h"
#include "spatialops_impl.h"
#include "vector_impl.h"

/* ---- who has what ---- */

/* Rows of an odd number of cache lines: planes and lines do not fall on the same places of the caches. */
static ptrdiff_t row_values(const trli_shuffle_part *part)
{
    return (((part->hi[0] - part->lo[0] + TRLI_LANES - 1) / TRLI_LANES) | 1) * (ptrdiff_t)TRLI_LANES;
}

static ptrdiff_t plane_values(const trli_shuffle_part *part)
{
    return row_values(part) * ((part->hi[1] - part->lo[1]) | 1);
}

/* Where planes of a rank are, from `at` on. */
static trli_view lay_out(const trli_shuffle_part *part, double *at)
{
    trli_view v = {.at = at, .stride = {1, row_values(part), plane_values(part)}};
    for (int a = 0; a < 3; ++a) v.at -= part->lo[a] * v.stride[a];
    return v;
}

static trl_err make_planes(trli_slabs *w, const trli_boxes *planes)
{
    const trl_simulation *sim = w->sim;
    const int ranks = trl_context_ranks(w->ctx), me = trl_context_rank(w->ctx);
    const bool shares = ranks > 1 && !(sim->model->settings.disabled_passes & TRL_PASS_SHARED);
    const trli_shuffle_part *own = &planes->part[me];
    const size_t values = (size_t)(plane_values(own) * (own->hi[2] - own->lo[2]) + TRLI_LANES);
    trl_err err = TRL_OK;
    TRL_TRY(trli_node_slab_create(w->ctx, shares, values * sizeof(double), &w->memory));
    for (int r = 0; r < ranks; ++r) {
        double *at = trli_node_slab_of(w->memory, r);
        w->reach[r] = at != NULL;
        if (at) w->planes[r] = lay_out(&planes->part[r], at);
    }
    w->own = w->planes[me];
    w->own.at = trli_node_slab_of(w->memory, me);
    for (int a = 0; a < 3; ++a) w->n[a] = own->hi[a] - own->lo[a];
done:
    return err;
}

static bool empty(const trli_shuffle_part *box)
{
    return box->hi[0] <= box->lo[0] || box->hi[1] <= box->lo[1] || box->hi[2] <= box->lo[2];
}

/* Lines are in the planes of all ranks that have any, or in messages. */
static void find_pieces(trli_slabs *w, const trli_boxes *planes)
{
    const trli_common *part = NULL;
    const int n = w->inside ? trli_shuffle_parts(w->inside, TRLI_SHUFFLE_THERE, TRLI_SHUFFLE_RECEIVED, &part) : 0;
    for (int r = 0; r < planes->n && !empty(&w->lines); ++r) {
        if (empty(&planes->part[r])) continue;
        trli_slab_piece p = {
            .lo = planes->part[r].lo[w->last], .hi = planes->part[r].hi[w->last], .view = w->planes[r]};
        for (int i = 0; i < n; ++i)
            if (part[i].other == r)
                p.view = trli_shuffle_message(w->inside, TRLI_SHUFFLE_THERE, TRLI_SHUFFLE_RECEIVED, &part[i]);
        w->piece[w->pieces++] = p;
    }
}

static trl_err make_shuffles(trli_slabs *w, trl_location location, const trli_line line[3], const trl_offsets *around,
                             const trli_boxes *planes, const trli_boxes *lines)
{
    static const trli_boxes none = {0};
    const trl_layout *layout = w->sim->layout;
    trli_boxes patches = {0}, ghosts = {0};
    trl_err err = TRL_OK;
    TRL_TRY(trli_patch_boxes(w->ctx, layout, location, line, &patches));
    if (w->brings) TRL_TRY(trli_ghost_boxes(w->ctx, layout, location, line, around, &ghosts));
    if (!w->direct) TRL_TRY(trli_shuffle_create(w->ctx, NULL, w->reach, 1, &patches, &ghosts, planes, &w->outside));
    if (planes->n > 1)
        TRL_TRY(trli_shuffle_create(w->ctx, NULL, w->reach, TRLI_LANES, planes, &none, lines, &w->inside));
    find_pieces(w, planes);
done:
    trli_free(patches.part);
    trli_free(ghosts.part);
    return err;
}

/* Lines beside one another along x that share a cache line are worked on by one rank. */
static trl_err make_distributions(trli_slabs *w, trl_location location, const trli_line line[3],
                                  const trl_offsets *around)
{
    const int ranks = trl_context_ranks(w->ctx), across = trli_other_axis(line, w->last);
    trli_boxes planes = {ranks, trli_new(w->ctx, (size_t)ranks, sizeof *planes.part)};
    trli_boxes lines = {ranks, trli_new(w->ctx, (size_t)ranks, sizeof *lines.part)};
    trl_err err = TRL_OK;
    if (!planes.part || !lines.part) err = trli_no_memory(w->ctx, NULL, "for a direct solver");
    TRL_TRY(trl_context_agree(w->ctx, err));
    trli_cut_boxes(line, w->last, 1, ranks, planes.part);
    trli_cut_boxes(line, across, across == 0 ? TRLI_LANES : 1, ranks, lines.part);
    for (int r = 0; r < ranks; ++r) {
        planes.part[r].rank = lines.part[r].rank = r;
        planes.part[r].array = r;
    }
    w->direct = w->sim->layout->npatches == 1;
    w->lines = lines.part[trl_context_rank(w->ctx)];
    TRL_TRY(make_planes(w, &planes));
    err = make_shuffles(w, location, line, around, &planes, &lines);
done:
    trli_free(planes.part);
    trli_free(lines.part);
    return err;
}

/* What a worker needs: for transforms, and for lines and what elimination keeps of them. */
static size_t scratch_values(const trli_direct_plan *plan)
{
    size_t values = 0;
    for (int a = 0; a < 3; ++a) {
        const trli_transform *t = plan->axis[a].transform;
        if (t && trli_transform_scratch(t) > values) values = trli_transform_scratch(t);
    }
    return values + 2 * TRLI_LANES * (size_t)plan->axis[plan->last].n;
}

static trl_err make_room(trli_slabs *w)
{
    const size_t workers = (size_t)trl_loop_workers(w->loop), local = (size_t)w->sim->layout->nlocal;
    const size_t ranks = (size_t)trl_context_ranks(w->ctx);
    const size_t ghosts = w->brings ? (size_t)trli_ghost_views(w->sim->layout) : 0;
    trl_err err = TRL_OK;
    w->values = scratch_values(w->plan);
    w->reach = trli_new(w->ctx, ranks, sizeof *w->reach);
    w->planes = trli_new(w->ctx, ranks, sizeof *w->planes);
    w->piece = trli_new(w->ctx, ranks, sizeof *w->piece);
    w->residual = trli_new(w->ctx, local, sizeof *w->residual);
    w->solution = trli_new(w->ctx, local + ghosts, sizeof *w->solution);
    w->scratch = trli_new(w->ctx, workers, sizeof *w->scratch);
    if (!w->reach || !w->planes || !w->piece || !w->residual || !w->solution || !w->scratch)
        return trli_no_memory(w->ctx, NULL, "for a direct solver");
    TRL_TRY(trl_memory_alloc(w->ctx, workers * w->values * sizeof(double), "a direct solver", &w->scratch_memory));
    for (size_t k = 0; k < workers; ++k) w->scratch[k] = (double *)w->scratch_memory + k * w->values;
done:
    return err;
}

trl_err trli_slabs_create(trl_simulation *sim, trl_location location, const trli_line line[3],
                          const trli_direct_plan *plan, const trl_offsets *around, trl_loop *loop, trli_slabs **slabs)
{
    trl_context *ctx = sim->ctx;
    trl_err err = TRL_OK;
    trl_context_begin_phase(ctx);
    trli_slabs *w = *slabs = trli_new(ctx, 1, sizeof *w);
    if (!w) {
        err = trli_no_memory(ctx, NULL, "for a direct solver");
    } else {
        *w = (trli_slabs){.ctx = ctx, .sim = sim, .loop = loop, .plan = plan, .last = plan->last};
        for (int a = 0; a < 3; ++a) w->first[a] = line[a].first;
        w->brings = around && trl_context_ranks(ctx) > 1;
        err = make_room(w);
    }
    err = trl_context_agree(ctx, err);
    if (err == TRL_OK) err = make_distributions(w, location, line, around);
    return trl_context_end_phase(ctx, err);
}

bool trli_slabs_suit(const trli_slabs *w, const trl_offsets *around)
{
    return w && w->last == w->plan->last && w->values >= scratch_values(w->plan) &&
           (w->brings || !around || trl_context_ranks(w->ctx) == 1);
}

trl_err trli_slabs_add_gpus(trli_slabs *w, trl_location location, const trli_line line[3])
{
    const trli_slab_grid grid = {
        .sim = w->sim, .plan = w->plan, .location = location, .line = {line[0], line[1], line[2]}};
    trli_slabs_gpu_destroy(&w->gpu);
    return trli_slabs_gpu_create(&grid, &w->gpu);
}

const char *trli_slabs_missing_gpus(const trli_slabs *w)
{
    return w->gpu ? trli_slabs_gpu_missing(w->gpu) : NULL;
}

void trli_slabs_destroy(trli_slabs **slabs)
{
    trli_slabs *w = *slabs;
    *slabs = NULL;
    if (!w) return;
    trli_slabs_gpu_destroy(&w->gpu);
    trli_shuffle_destroy(&w->outside);
    trli_shuffle_destroy(&w->inside);
    trli_node_slab_destroy(&w->memory);
    trl_memory_free(w->ctx, &w->scratch_memory);
    trli_free(w->reach);
    trli_free(w->planes);
    trli_free(w->piece);
    trli_free(w->residual);
    trli_free(w->solution);
    trli_free(w->scratch);
    trli_free(w);
}

/* ---- planes ---- */

/* Rows along x of a box, TRLI_LANES at a time; outside: from the residual to the planes, or back to the solution. */
static void transform_rows(const trli_slabs *w, const int lo[3], const int hi[3], bool outside, double *scratch)
{
    const trli_transform *t = w->plan->axis[0].transform;
    const trli_view *in = outside && !w->back ? w->residual : &w->own;
    const trli_view *out = outside && w->back ? w->solution : &w->own;
    const int high = hi[1] - lo[1], rows = high * (hi[2] - lo[2]);
    for (int begin = 0; begin < rows; begin += TRLI_LANES) {
        const int count = rows - begin < TRLI_LANES ? rows - begin : TRLI_LANES;
        const double *from[TRLI_LANES];
        double *to[TRLI_LANES];
        for (int r = 0; r < count; ++r) {
            const ptrdiff_t j = lo[1] + (begin + r) % high, k = lo[2] + (begin + r) / high;
            from[r] = in->at + j * in->stride[1] + k * in->stride[2];
            to[r] = out->at + j * out->stride[1] + k * out->stride[2];
        }
        trli_transform_rows(t, w->back, count, from, to, outside && w->back && w->add, scratch);
    }
}

/* Lines along y or z. */
static void transform_lines(const trli_slabs *w, const int lo[3], const int hi[3], int axis, double *scratch)
{
    const trli_transform *t = w->plan->axis[axis].transform;
    const trli_view *v = &w->own;
    const int other = axis == 1 ? 2 : 1;
    for (int o = lo[other]; o < hi[other]; ++o)
        for (int i = lo[0]; i < hi[0]; i += TRLI_LANES) {
            double *at = v->at + i + o * v->stride[other];
            trli_transform_lines(t, w->back, at, v->stride[axis], at, v->stride[axis], scratch);
        }
}

TRLI_CLONES static void take_row(double *restrict to, const double *restrict from, int n, bool add)
{
    for (int i = 0; i < n; ++i) to[i] = add ? to[i] + from[i] : from[i];
}

static void move_rows(const trli_slabs *w, const int lo[3], const int hi[3], bool back)
{
    const trli_view *v = &w->own, *r = w->residual, *c = w->solution;
    const int n = hi[0] - lo[0];
    for (int k = lo[2]; k < hi[2]; ++k)
        for (int j = lo[1]; j < hi[1]; ++j) {
            double *restrict row = v->at + lo[0] + j * v->stride[1] + k * v->stride[2];
            if (!back) {
                memcpy(row, r->at + lo[0] + j * r->stride[1] + k * r->stride[2], (size_t)n * sizeof *row);
                continue;
            }
            double *restrict to = c->at + lo[0] + j * c->stride[1] + k * c->stride[2];
            take_row(to, row, n, w->add);
        }
}

/* Chunks are planes across the last axis, as many at once as have TRLI_LANES rows along x; across x as many as fit in a
 * cache line. The planes may be the only patch: then values come from the residual on the way there, and go to the
 * solution on the way back. */
static trl_err transform_planes(void *data, int chunk, int chunks, int worker)
{
    const trli_slabs *w = data;
    const int beside = w->last == 0 ? 1 : w->n[3 - w->last], n = w->n[w->last];
    const int step = beside < TRLI_LANES ? TRLI_LANES / beside : 1, count = (n + step - 1) / step;
    const int begin = (int)((int64_t)count * chunk / chunks) * step;
    const int end = (int)((int64_t)count * (chunk + 1) / chunks) * step;
    const bool rows = w->last != 0 && w->plan->axis[0].transform;
    double *scratch = w->scratch[worker];
    for (int k = begin; k < end && k < n; k += step) {
        int lo[3] = {0}, hi[3] = {w->n[0], w->n[1], w->n[2]};
        lo[w->last] = k;
        hi[w->last] = k + step < n ? k + step : n;
        if (!w->back && rows) transform_rows(w, lo, hi, w->direct, scratch);
        if (!w->back && !rows && w->direct) move_rows(w, lo, hi, false);
        for (int i = 1; i < 3; ++i) {
            const int axis = w->back ? 3 - i : i;
            if (axis != w->last && w->plan->axis[axis].transform) transform_lines(w, lo, hi, axis, scratch);
        }
        if (w->back && rows) transform_rows(w, lo, hi, w->direct, scratch);
        if (w->back && !rows && w->direct) move_rows(w, lo, hi, true);
    }
    return TRL_OK;
}

/* ---- a run ---- */

static trl_err run(trli_slabs *w, bool any, trl_loop_fn work)
{
    enum { CHUNKS = 8 /* for each worker */ };
    return any ? trl_loop_run(w->loop, CHUNKS * trl_loop_workers(w->loop), work, w) : TRL_OK;
}

static trl_err run_planes(trli_slabs *w, bool back)
{
    const int *n = w->n;
    w->back = back;
    return run(w, n[0] > 0 && n[1] > 0 && n[2] > 0, transform_planes);
}

/* What other ranks did to planes is done, and what this one did they see. */
static trl_err meet(trli_slabs *w)
{
    trli_node_slab_arrive(w->memory);
    return trli_node_slab_wait(w->memory);
}

/* Bring a field to planes, which others may still be at from the run before, behind the one agreement of a run. What
 * follows on it are copies and arithmetic, at which no rank fails: all take part in all messages. err: of this rank so
 * far. */
static trl_err enter(trli_slabs *w, trl_err err)
{
    const trli_shuffle_way there = TRLI_SHUFFLE_THERE;
    if (err == TRL_OK) err = trli_node_slab_wait(w->memory);
    if (err == TRL_OK && w->outside) err = trli_shuffle_pack(w->outside, there, w->residual, w->loop);
    if (err == TRL_OK && w->outside) err = trli_shuffle_copy(w->outside, there, false, w->residual, w->planes, w->loop);
    TRL_TRY(trli_agree_within(w->sim, err));
    if (!w->outside) goto done;
    TRL_TRY(meet(w));
    TRL_TRY(trli_shuffle_exchange(w->outside, there));
    err = trli_shuffle_unpack(w->outside, there, false, w->planes, w->loop);
done:
    return err;
}

/* From transformed planes to lines, and after these. */
static trl_err work_on_lines(trli_slabs *w)
{
    trl_err err = TRL_OK;
    if (w->inside) TRL_TRY(trli_shuffle_pack(w->inside, TRLI_SHUFFLE_THERE, w->planes, w->loop));
    TRL_TRY(meet(w));
    if (w->inside) TRL_TRY(trli_shuffle_exchange(w->inside, TRLI_SHUFFLE_THERE));
    err = run(w, w->pieces > 0, trli_slabs_work_on_lines);
done:
    return err;
}

static trl_err leave_lines(trli_slabs *w)
{
    trl_err err = TRL_OK;
    TRL_TRY(meet(w));
    if (!w->inside) goto done;
    TRL_TRY(trli_shuffle_exchange(w->inside, TRLI_SHUFFLE_BACK));
    err = trli_shuffle_unpack(w->inside, TRLI_SHUFFLE_BACK, false, w->planes, w->loop);
done:
    return err;
}

static trl_err leave(trli_slabs *w, trli_shuffle_way back)
{
    trl_err err = TRL_OK;
    if (!w->outside) goto done;
    TRL_TRY(trli_shuffle_pack(w->outside, back, w->planes, w->loop));
    TRL_TRY(meet(w));
    TRL_TRY(trli_shuffle_copy(w->outside, back, w->add, w->planes, w->solution, w->loop));
    TRL_TRY(trli_shuffle_exchange(w->outside, back));
    err = trli_shuffle_unpack(w->outside, back, w->add, w->solution, w->loop);
done:
    trli_node_slab_arrive(w->memory);
    return err;
}

trl_err trli_slabs_solve(trli_slabs *w, int from, int to, bool add, bool around, double mean)
{
    const trl_simulation *sim = w->sim;
    const trli_shuffle_way back = around && w->brings ? TRLI_SHUFFLE_BACK_TO_ALL : TRLI_SHUFFLE_BACK;
    bool solved = false;
    trl_err err = TRL_OK;
    if (w->gpu) {
        const trli_slabs_request request = {.sim = sim,
                                            .from = from,
                                            .to = to,
                                            .first = {w->first[0], w->first[1], w->first[2]},
                                            .add = add,
                                            .mean = mean};
        TRL_TRY(trli_slabs_gpu_solve(w->gpu, &request, &solved));
        if (solved) return TRL_OK;
    }
    err = trli_frame_fetch(sim->frame, from);
    if (err == TRL_OK && add) err = trli_frame_fetch(sim->frame, to);
    w->add = add;
    w->mean = mean;
    for (int p = 0; p < sim->layout->nlocal; ++p) {
        w->residual[p] = trli_patch_view(sim, w->first, from, p, 0);
        w->solution[p] = trli_patch_view(sim, w->first, to, p, 0);
    }
    if (w->brings) trli_set_ghost_views(sim->layout, w->solution);
    TRL_TRY(enter(w, err));
    TRL_TRY(run_planes(w, false));
    TRL_TRY(work_on_lines(w));
    TRL_TRY(leave_lines(w));
    TRL_TRY(run_planes(w, true));
    TRL_TRY(leave(w, back));
    trli_frame_written(sim->frame, to);
done:
    return err;
}

/* ---- visits ---- */

trl_err trli_slabs_send(trli_slabs *w, int from)
{
    const trli_shuffle_way there = TRLI_SHUFFLE_THERE;
    trl_err err = TRL_OK;
    for (int p = 0; p < w->sim->layout->nlocal; ++p) w->residual[p] = trli_patch_view(w->sim, w->first, from, p, 0);
    TRL_TRY(trli_node_slab_wait(w->memory)); /* all are done with the values before */
    if (w->outside) {
        TRL_TRY(trli_shuffle_pack(w->outside, there, w->residual, w->loop));
        TRL_TRY(trli_shuffle_copy(w->outside, there, false, w->residual, w->planes, w->loop));
        TRL_TRY(trli_shuffle_begin(w->outside, there));
    } else {
        TRL_TRY(run_planes(w, false)); /* the field will change */
    }
    trli_node_slab_arrive(w->memory);
done:
    return err;
}

trl_err trli_slabs_transform(trli_slabs *w)
{
    const trli_shuffle_way there = TRLI_SHUFFLE_THERE;
    trl_err err = TRL_OK;
    TRL_TRY(trli_node_slab_wait(w->memory));
    if (w->outside) {
        TRL_TRY(trli_shuffle_end(w->outside));
        TRL_TRY(trli_shuffle_unpack(w->outside, there, false, w->planes, w->loop));
        TRL_TRY(run_planes(w, false));
    }
    if (w->inside) {
        TRL_TRY(trli_shuffle_pack(w->inside, there, w->planes, w->loop));
        TRL_TRY(trli_shuffle_begin(w->inside, there));
    }
    trli_node_slab_arrive(w->memory);
done:
    return err;
}

trl_err trli_slabs_visit(trli_slabs *w, void (*visit)(void *data, int worker, const trli_spectral_lines *lines),
                         void *data)
{
    trl_err err = TRL_OK;
    w->visit = visit;
    w->visitor = data;
    TRL_TRY(trli_node_slab_wait(w->memory));
    if (w->inside) TRL_TRY(trli_shuffle_end(w->inside));
    TRL_TRY(run(w, w->pieces > 0, trli_slabs_work_on_lines));
    trli_node_slab_arrive(w->memory);
done:
    return err;
}
