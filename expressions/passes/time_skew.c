/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Passes of patches that lie behind one another along the axis of fronts, each on a rank of its own, which compute
 * nothing twice: skewed tiles (Wonnacott, "Time skewing for parallel computers", 2000).
 *
 * A pass goes through the patch from its first plane to its last. Each kernel's box is the patch's, moved up by a skew
 * that grows from kernel to kernel, so that what a kernel reads below its box was computed by this patch. What it reads
 * above, some planes of each result, the next patch computes in its first fronts, and sends: the faces. They are there
 * long before the last fronts of this patch read them, so nobody waits, and a kernel's points are computed once: this
 * patch leaves out its first planes, which the patch before computes. After the pass that one sends them back.
 *
 * Faces may be sent and received at any time: no later kernel writes to the planes of a face in that memory, on either
 * side, since its skew is at least as large as the end of the face. */
#include "memory_impl.h"
#include "slot_plan_impl.h"
#include "spatialops_impl.h"
#include "time_plan_impl.h"

bool trli_time_may_skew(const trli_model *model)
{
    const trl_layout *layout = model->layout;
    const int *counts = layout->counts, ranks = trl_context_ranks(model->ctx);
    return counts[layout->grid.dim - 1] > 1 && counts[0] * counts[1] * counts[2] == ranks;
}

/* A layer beyond a side of the axis of fronts: at the ends of the domain, which no patch shares. */
static bool is_at_end(const trli_time_plan *plan, const trli_time_op *op)
{
    return op->slab && !op->images && op->slab->axis == plan->axis[1];
}

static bool is_kernel(const trli_time_op *op)
{
    return !op->slab && !op->images;
}

static bool lasts(const trli_time_plan *plan, int field)
{
    return plan->model->field[field].lasting;
}

trl_err trli_time_plan_find_skews(trli_time_plan *plan)
{
    const int axis = plan->axis[1];
    trl_lidx read = 0; /* the end of what kernels before read, beyond the patch: others do not write there */
    /* By field, the first plane that this patch has of what it holds. */
    trl_lidx *from = trli_new(plan->model->ctx, (size_t)plan->model->nfields + 1, sizeof *from);
    if (!from) return trli_no_memory(plan->model->ctx, NULL, "for the kernels of a pass");
    for (int i = 0; i < plan->nops; ++i) {
        trli_time_op *op = &plan->op[i];
        const int *output = op->field + op->ninputs;
        op->skew = is_kernel(op) ? read : from[*output];
        for (int k = 0; k < op->ninputs; ++k) {
            const trl_lidx skew = from[op->field[k]] - trli_time_op_reach(op, k).lo[axis];
            if (!lasts(plan, op->field[k]) && !is_at_end(plan, op) && skew > op->skew) op->skew = skew;
        }
        for (int k = 0; k < op->ninputs; ++k) {
            const trl_lidx end = op->skew + trli_time_op_reach(op, k).hi[axis];
            if (!lasts(plan, op->field[k]) && !is_at_end(plan, op) && end > read) read = end;
        }
        for (int o = 0; o < op->noutputs && is_kernel(op); ++o) from[output[o]] = op->skew;
    }
    trli_free(from);
    return TRL_OK;
}

static trl_err add_face(trli_time_plan *plan, int op, int field, trl_lidx lo, trl_lidx hi)
{
    if (lasts(plan, field) || hi <= lo) return TRL_OK;
    if (!trli_make_room(plan->model->ctx, &plan->face, plan->nfaces, 1, &plan->faces_capacity, sizeof *plan->face))
        return trli_no_memory(plan->model->ctx, NULL, "for the faces of a pass");
    plan->face[plan->nfaces++] = (trli_time_face){op, field, lo, hi};
    return TRL_OK;
}

/* Ghosts beyond other axes are set for all that is read, also of the next patch's planes. */
trl_err trli_time_plan_move(trli_time_plan *plan, int i, trl_offsets *by)
{
    const trli_time_op *op = &plan->op[i];
    const int axis = plan->axis[1];
    trl_err err = TRL_OK;
    for (int o = op->ninputs; o < op->ninputs + op->noutputs && is_kernel(op); ++o)
        TRL_TRY(add_face(plan, i, op->field[o], op->skew, plan->deep[op->field[o]].hi[axis]));
    by->lo[axis] = op->skew;
    if (is_kernel(op) || by->hi[axis] < op->skew) by->hi[axis] = op->skew;
done:
    return err;
}

trl_err trli_time_plan_first_faces(trli_time_plan *plan)
{
    const int axis = plan->axis[1];
    trl_err err = TRL_OK;
    for (int f = 0; f < plan->model->nfields; ++f) TRL_TRY(add_face(plan, -1, f, 0, plan->deep[f].hi[axis]));
    for (const trli_time_op *op = plan->op; op < plan->op + plan->nops; ++op)
        for (int o = op->ninputs; o < op->ninputs + op->noutputs; ++o)
            if (op->skew > plan->deep[op->field[o]].hi[axis]) plan->deep[op->field[o]].hi[axis] = op->skew;
    for (const trli_time_face *face = plan->face; face < plan->face + plan->nfaces; ++face)
        if (face->hi > plan->deep[face->field].hi[axis]) plan->deep[face->field].hi[axis] = face->hi;
done:
    return err;
}

/* Planes that no kernel computes are those of this patch only. */
static bool has_fixed_planes(const trli_model_field *field)
{
    bool some = field->keeps_planes;
    for (int side = 0; side < 6; ++side) some |= field->fixed_planes[side] != 0;
    return some;
}

bool trli_time_plan_skew_fits(const trli_time_plan *plan)
{
    enum { APART = 4 }; /* times the planes of all faces: fronts lag behind by as many again */
    const trl_lidx cells = trli_time_plan_cells(plan, plan->axis[1]);
    trl_lidx end = 0;
    for (int f = 0; f < plan->nfaces; ++f)
        if (plan->face[f].hi > end) end = plan->face[f].hi;
    for (int i = 0; i < plan->nops; ++i)
        for (int k = 0; k < plan->op[i].ninputs + plan->op[i].noutputs; ++k)
            if (has_fixed_planes(&plan->model->field[plan->op[i].field[k]])) return false;
    return cells >= APART * end;
}

/* Whether an operation touches a face's memory where the face is, before it or after it. */
static bool meets(const trli_time_plan *plan, const trli_time_face *face, int i)
{
    const trli_time_op *op = &plan->op[i];
    const int slot = plan->model->field[face->field].slot, axis = plan->axis[1];
    const trl_lidx cells = trli_time_plan_cells(plan, axis);
    for (int k = 0; k < op->ninputs + op->noutputs; ++k) {
        const bool writes = is_kernel(op) && k >= op->ninputs;
        if (plan->model->field[op->field[k]].slot != slot || is_at_end(plan, op)) continue;
        if (i > face->op && writes && op->skew < face->hi) return true;
        if (i < face->op && !is_kernel(op) && op->box.hi[axis] - cells > face->lo) return true;
    }
    return false;
}

const char *trli_time_plan_refuse_skew(const trli_time_plan *plan)
{
    for (int f = 0; f < plan->nfaces; ++f)
        for (int i = 0; i < plan->nops; ++i)
            if (meets(plan, &plan->face[f], i)) return "what patches read of one another has no memory of its own";
    return NULL;
}
