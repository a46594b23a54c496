/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include "rims_impl.h"

#include <stdlib.h>
#include <string.h>

#include <chunks_impl.h>

#include "ahead_impl.h"
#include "compute_impl.h"
#include "model_run_impl.h"
#include "pipeline_impl.h"
#include "slot_plan_impl.h"
#include "task_parts_impl.h"

enum {
#ifdef TRL_SMALL_SIZES /* builds for testing: small patches are cut too */
    RIMS_MOST = 1,
    ENDS_MOST = 1,
    LINE = 2
#else
    RIMS_MOST = 4,  /* of so many points one may be in rims, which read rows that the inner points read too */
    ENDS_MOST = 16, /* and of a row: what is done for each row costs a half of rows of 64 points more, 3 % of 256 */
    LINE = 8        /* points of a line of the cache: rows are cut between lines, so that no lanes are in vain */
#endif
};

static bool is_exchanged(const trli_model *model, int axis)
{
    return model->run->exchanged_axes >> axis & 1;
}

/* Whether the slabs of a step allow it: each reads its own field only, and is no plugin's. */
static bool slabs_allow(const trli_step_plan *p)
{
    for (int k = 0; k < p->nslabs; ++k) {
        const trli_slab *slab = &p->slab[k];
        if (slab->kind == TRLI_SLAB_MODIFIER) return false;
        for (int i = 0; i < slab->ninputs; ++i)
            if (slab->input[i] != slab->field) return false;
    }
    return true;
}

/* Ghosts that a rank copies from its own patches are there when its kernels begin, except where a kernel computes
 * others beside them: those are not told apart. */
static unsigned axes_of(const trli_model *model, const trli_step_plan *p, int patch, unsigned awaited)
{
    bool told = model->run->points & TRLI_SET_COPIED;
    for (int k = 0; k < p->nslabs; ++k)
        told &= !trli_slab_is_at(model->layout, &model->layout->patch[patch], &p->slab[k]);
    return told ? awaited : model->run->exchanged_axes;
}

/* Narrow a box to points whose reads end before the ghosts of some axes; false: it cannot be cut. Devices go through
 * whole rows. Rims at both ends of rows read, and set, no ghosts of the same points beyond sides along other axes. */
static bool find_inner(const trli_model *model, const trli_reads *reads, int patch, unsigned axes, trl_box *inner)
{
    const trl_lidx begin = inner->lo[0], end = inner->hi[0];
    trl_lidx reach = 1;
    for (int i = 0; i < reads->nfields; ++i) {
        const trl_array *shape = trli_shape_of(model, reads->field[i], patch);
        const trl_offsets hull = trl_footprint_hull(&reads->footprint[i]);
        if (reach < hull.hi[0] - hull.lo[0]) reach = hull.hi[0] - hull.lo[0];
        for (int a = 0; a < 3; ++a) {
            if (!(axes >> a & 1)) continue;
            if (inner->lo[a] < shape->owned.lo[a] - hull.lo[a]) inner->lo[a] = shape->owned.lo[a] - hull.lo[a];
            if (inner->hi[a] > shape->owned.hi[a] - hull.hi[a]) inner->hi[a] = shape->owned.hi[a] - hull.hi[a];
        }
    }
    const bool cuts_rows = inner->lo[0] > begin || inner->hi[0] < end;
    inner->lo[0] = begin + (inner->lo[0] - begin + LINE - 1) / LINE * LINE;
    if (inner->hi[0] < end) inner->hi[0] = begin + (inner->hi[0] - begin) / LINE * LINE;
    for (int a = 0; a < 3; ++a)
        if (inner->lo[a] >= inner->hi[a]) return false;
    if (!cuts_rows) return true;
    const trl_lidx points = inner->hi[0] - inner->lo[0];
    return (end - begin - points) * ENDS_MOST <= end - begin && points >= reach &&
           model->run->lanes == model->run->nworkers;
}

/* A lone worker copies ghosts from the memory of its node itself: it could hide only that others are late, which costs
 * less than rims do, and meanwhile it helps them. TRELLIS_RIMS says otherwise. */
static bool pays(const trli_model *model)
{
#ifdef TRL_SMALL_SIZES
    const bool always = true;
#else
    const bool always = getenv("TRELLIS_RIMS") != NULL;
#endif
    const bool alone = model->run->nworkers == 1 && model->run->lanes == 1;
    return !alone || trli_awaits_mpi(model) || always;
}

static int cut(const trli_model *model, const trli_reads *reads, int patch, unsigned axes, trl_box box[TRLI_RIMS_MOST])
{
    trl_box rest = box[0], inner = box[0];
    int n = 1;
    if (model->settings.disabled_passes & TRL_PASS_OVERLAP || !pays(model)) return 1;
    if (!find_inner(model, reads, patch, axes, &inner)) return 1;
    if ((trl_box_points(&rest) - trl_box_points(&inner)) * RIMS_MOST > trl_box_points(&rest)) return 1;
    for (int a = 2; a >= 0; --a) {
        if (rest.lo[a] < inner.lo[a]) {
            box[n] = rest;
            box[n++].hi[a] = inner.lo[a];
        }
        if (inner.hi[a] < rest.hi[a]) {
            box[n] = rest;
            box[n++].lo[a] = inner.hi[a];
        }
        rest.lo[a] = inner.lo[a];
        rest.hi[a] = inner.hi[a];
    }
    box[0] = inner;
    return n;
}

int trli_rims_cut(const trli_program *program, const trli_step *step, int patch, unsigned *axes,
                  trl_box box[TRLI_RIMS_MOST])
{
    const trli_step_plan *p = trli_plan_of(program, step);
    if (step->kind != TRLI_STEP_KERNEL || !slabs_allow(p)) return 1;
    *axes = axes_of(program->model, p, patch, *axes);
    return cut(program->model, &p->reads, patch, *axes, box);
}

int trli_rims_cut_reductions(const trli_model *model, const trli_reduction_group *group, int patch, unsigned *axes,
                             trl_box box[TRLI_RIMS_MOST])
{
    const bool may = *axes != 0 && model->run->points & TRLI_SET_COPIED;
    const int n = may ? cut(model, &group->reads, patch, *axes, box) : 1;
    if (n == 1) *axes = 0;
    return n;
}

/* Ghosts of a field beyond a side that a kernel computes itself, at the ends of its rows. */
static bool has_own_ghosts(const trli_step_plan *p, int field, int axis, int side)
{
    for (int k = 0; k < p->nslabs; ++k)
        if (p->slab[k].field == field && p->slab[k].axis == axis && p->slab[k].side == side) return true;
    return false;
}

static trl_err access_slab(trli_task_builder *b, trl_task task, const trli_slab *slab, int patch, bool inner)
{
    const trl_layout *layout = b->model->layout;
    const bool beside_others = is_exchanged(b->model, slab->axis);
    trl_err err = TRL_OK;
    if (!trli_slab_is_at(layout, &layout->patch[patch], slab) || (beside_others && inner)) return TRL_OK;
    TRL_TRY(trli_builder_field(b, task, slab->field, patch, TRLI_OWNED, TRL_READ));
    TRL_TRY(trli_builder_field(b, task, slab->field, patch, TRLI_SET_SIDE, TRL_WRITE_PART));
    if (beside_others) TRL_TRY(trli_builder_field(b, task, slab->field, patch, TRLI_SET_HALO, TRL_READ_WRITE));
    if (slab->kind == TRLI_SLAB_KERNEL) TRL_TRY(trli_builder_scalars(b, task, &slab->reads));
done:
    return err;
}

/* Ghosts that the kernel of a plan computes itself are written by each task where it reads them: no other task's are
 * read. */
static trl_err access_input(trli_task_builder *b, trl_task task, const trli_step_plan *p, const trli_reads *reads,
                            int i, const trli_step_task *t, unsigned axes)
{
    const int field = reads->field[i], patch = t->patch;
    const trl_box *box = &t->box;
    const trl_array *shape = trli_shape_of(b->model, field, patch);
    const trl_offsets hull = trl_footprint_hull(&reads->footprint[i]);
    unsigned points = TRLI_OWNED;
    for (int a = 0; a < 3; ++a) {
        const bool beyond[2] = {box->lo[a] +
                                hull.lo[a]<shape->owned.lo[a], box->hi[a] + hull.hi[a]> shape->owned.hi[a]};
        if (is_exchanged(b->model, a) && (beyond[0] || beyond[1]))
            points |= axes >> a & 1 ? TRLI_SET_HALO : TRLI_SET_COPIED;
        for (int side = 0; side < 2 && !is_exchanged(b->model, a); ++side)
            if (beyond[side] && !(p && has_own_ghosts(p, field, a, side))) points |= TRLI_SET_SIDE;
    }
    return trli_builder_field(b, task, field, patch, points, TRL_READ);
}

trl_err trli_rims_access(trli_task_builder *b, trl_task task, const trli_step_task *t, unsigned axes)
{
    const trli_step_plan *p = t->plan;
    trl_err err = TRL_OK;
    for (int k = 0; k < p->nslabs; ++k) TRL_TRY(access_slab(b, task, &p->slab[k], t->patch, !t->inner));
    for (int i = 0; i < p->reads.nfields; ++i) TRL_TRY(access_input(b, task, p, &p->reads, i, t, axes));
    TRL_TRY(trli_builder_scalars(b, task, &p->reads));
    for (int o = 0; o < t->step->nout; ++o)
        if (t->program->plan->demand[t->step->field[o]].live)
            TRL_TRY(trli_builder_field(b, task, t->step->field[o], t->patch, TRLI_OWNED_AND_GHOSTS, TRL_WRITE_PART));
done:
    return err;
}

trl_err trli_rims_access_reductions(trli_task_builder *b, trl_task task, const trli_step_task *t, unsigned axes)
{
    const trli_reads *reads = &t->group->reads;
    trl_err err = TRL_OK;
    for (int i = 0; i < reads->nfields; ++i) TRL_TRY(access_input(b, task, NULL, reads, i, t, axes));
done:
    return err;
}

/* ---- inner points and rims in one ---- */

/* Parts that begin at once, before anything came, gain nothing. TRELLIS_RIMS says otherwise, for tests and
 * measurements: "apart", or "ahead". Devices have tasks of their own for rims. */
static bool parts_take_rims(const trli_model *model, int n)
{
#ifdef TRL_SMALL_SIZES
    const bool always = true;
#else
    const bool always = false;
#endif
    const char *text = getenv("TRELLIS_RIMS");
    if (model->run->lanes > model->run->nworkers || (text && strcmp(text, "apart") == 0)) return false;
    return always || n > model->run->nworkers || (text && strcmp(text, "ahead") == 0);
}

int trli_rims_parts(const trli_model *model, trli_step_task *t, double seconds)
{
    const bool whole_rows = t->plan->nslabs > 0;
    const int n = trli_task_parts(model, &t->around, seconds, whole_rows, t->parts);
    if (parts_take_rims(model, n)) {
        t->first_part = model->run->nparts;
        model->run->nparts += n;
        return n;
    }
    t->nrims = 0;
    for (int a = 0; a < 3; ++a) t->parts[a] = 1;
    return trli_task_parts(model, &t->box, seconds, whole_rows, t->parts);
}

static trl_box common(const trl_box *a, const trl_box *b)
{
    trl_box box;
    for (int i = 0; i < 3; ++i) {
        box.lo[i] = a->lo[i] > b->lo[i] ? a->lo[i] : b->lo[i];
        box.hi[i] = a->hi[i] < b->hi[i] ? a->hi[i] : b->hi[i];
    }
    return box;
}

static int count_parts(const trli_step_task *t)
{
    return t->parts[0] * t->parts[1] * t->parts[2];
}

static bool rims_may_be_done(const trli_step_task *t, const trl_task_args *args)
{
    trl_task rim[TRLI_RIMS_MOST];
    for (int i = 0; i < t->nrims; ++i) rim[i] = t[1 + i].task;
    return trli_run_may_do(args->run, t->nrims, rim);
}

/* A call for one part, or for all. */
static bool choose_box(const trli_step_task *t, const trl_task_args *args, trl_box *box)
{
    const trli_frame *frame = args->frame;
    const bool all = args->chunks == 1;
    trli_frame_part *part = frame->part + t->first_part + args->chunk;
    *box = all ? t->around : trli_box_part(&t->around, t->parts, args->chunk);
    const trl_box inner = common(box, &t->box);
    const bool beside = trl_box_points(&inner) < trl_box_points(box), whole = !beside || rims_may_be_done(t, args);
    part->ahead += beside && whole;
    part->left += !whole;
    if (!whole) *box = inner;
    for (int p = 0; p < (all ? count_parts(t) : 1); ++p) part[p].whole = whole;
    return trl_box_points(box) > 0;
}

static trl_box share_of(const trli_step_task *t, const trl_task_args *args)
{
    return args->chunks == 1 ? t->box : trli_box_part(&t->box, t->parts, args->chunk);
}

/* The next part of the inner points, from *next on, which has done a share of a rim, or has not; what they have in
 * common. False: there is none. */
static bool next_part(const trli_step_task *inner, const trli_frame *frame, bool whole, const trl_box *share, int *next,
                      trl_box *box)
{
    const trli_frame_part *part = frame->part + inner->first_part;
    for (; *next < count_parts(inner); ++*next) {
        if (part[*next].whole != whole) continue;
        const trl_box around = trli_box_part(&inner->around, inner->parts, *next);
        *box = common(share, &around);
        if (trl_box_points(box) > 0) return true;
    }
    return false;
}

/* What parts of the inner points have left of a rim, at once if that is all of it. */
static bool next_left(const trli_step_task *t, const trl_task_args *args, int *next, trl_box *box)
{
    const trl_box share = share_of(t, args);
    int done = *next;
    if (*next == 0 && !next_part(t->inner, args->frame, true, &share, &done, box)) {
        *next = count_parts(t->inner);
        *box = share;
        return true;
    }
    if (!next_part(t->inner, args->frame, false, &share, next, box)) return false;
    ++*next;
    return true;
}

bool trli_rims_next(const trli_step_task *t, const trl_task_args *args, int *next, trl_box *box)
{
    if (t->inner && t->inner->nrims > 0) return next_left(t, args, next, box);
    if (*next > 0) return false;
    ++*next;
    if (t->nrims > 0) return choose_box(t, args, box);
    *box = share_of(t, args);
    return true;
}
