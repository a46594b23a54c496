/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Which parts of several executions of a program can be computed together, in one pass over memory.
 *
 * The executions are unrolled to a list of kernels, each on its whole box: those of steps, and those of ghost layers. The pass goes through
 * space block by block (along one axis) and front by front (along another), and at each place runs all kernels of the list in turn, each
 * on what is shifted back by some rows and planes of its own: kernel k computes row y in block floor((y + shift)/B), limited to the first and
 * the last block, and likewise for fronts. Both are monotone in y + shift. So if of any two accesses to one value, one of them a write, the
 * earlier one in the list's order has a position y + shift that is no larger than the later one's, along both axes, then it is in no later
 * block and in no later front, and if both are the same the order of the list decides: every value is written and read in the order of
 * the list, as without blocking. Moreover a task of one block and some fronts then needs but those of no later block and no later fronts.
 *
 * The shifts are the smallest for which this holds. For two kernels that touch one array, let the earlier one touch the points y' of its
 * box and the later one, at the points y of its box, values with y' - y in a range that footprints give: then the later one's shift is at least the
 * earlier one's plus the largest y' - y that the range and the boxes allow. Along a periodic axis of n points y' - y may be so or by n more or less.
 * There each kernel begins at a start of its own and ends there after n points, behind the others' ends: n more is impossible if the later one's start is at
 * least the earlier one's less the smallest y' - y, and n less asks for nothing. Images beyond periodic sides are set with the points themselves. The same memory is written anew after two executions at most, so
 * that older accesses need not be looked at: what wrote it anew was ordered after them, and comes before what is looked at. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "tasks_impl.h"
#include "time_blocks_impl.h"

enum {
    OPS_MOST = 4096, /* the shifts take a time that is quadratic in it */
    LOOKED_BACK = 2  /* executions */
};

/* ---- what is in the way ---- */

static const char *refuse_step(const trli_step *s)
{
    switch (s->kind) {
    case TRLI_STEP_OPAQUE:
        return "a plugin is evaluated";
    case TRLI_STEP_REDUCE:
        return "a reduction needs all of a step";
    case TRLI_STEP_FILL:
    case TRLI_STEP_PLANES:
        for (int k = 0; k < s->nslabs; ++k)
            if (s->slab[k].entry >= 0) return "a plugin sets boundary values";
        return NULL;
    default:
        return NULL;
    }
}

static const char *refuse_program(const trli_program *program)
{
    const trl_layout *layout = program->model->layout;
    if (layout->grid.dim < 2) return "the grid is 1-D";
    if (trl_context_ranks(program->model->ctx) > 1) return "there are several ranks";
    if (layout->counts[0] * layout->counts[1] * layout->counts[2] > 1) return "there are several patches";
    for (int i = 0; i < program->nsteps; ++i) {
        const char *why = program->step[i].live ? refuse_step(&program->step[i]) : NULL;
        if (why) return why;
    }
    return NULL;
}

/* ---- the list ---- */

static int rotated(const trli_rotation *r, int execution, int field)
{
    for (int v = 0; execution % 2 && v < r->n; ++v) {
        if (field == r->state[v]) return r->next[v];
        if (field == r->next[v]) return r->state[v];
    }
    return field;
}

static trl_err add_op(trli_time_plan *plan, const trli_rotation *rotation, trli_time_op op)
{
    const int *input = op.slab ? op.slab->input : op.step->input;
    const trl_grid *grid = &plan->model->layout->grid;
    for (int a = 0; a < 3; ++a) /* beyond periodic sides there are images of what is inside */
        if (grid->periodic[a] && op.slab) op.box.lo[a] = 0, op.box.hi[a] = (trl_lidx)grid->cells[a];
    if (plan->nops == plan->capacity) {
        const int more = plan->capacity ? 2 * plan->capacity : 64;
        trli_time_op *longer = realloc(plan->op, (size_t)more * sizeof *longer);
        if (!longer)
            return trl_fail(plan->model->ctx, TRL_ERR_MEMORY, NULL, "no memory for %d kernels of a pass", more);
        plan->op = longer;
        plan->capacity = more;
    }
    op.field = malloc((size_t)(op.ninputs + op.noutputs) * sizeof *op.field);
    if (!op.field) return trl_fail(plan->model->ctx, TRL_ERR_MEMORY, NULL, "no memory for the kernels of a pass");
    for (int i = 0; i < op.ninputs; ++i) op.field[i] = rotated(rotation, op.execution, input[i]);
    for (int o = 0; o < op.noutputs; ++o) op.field[op.ninputs + o] = rotated(rotation, op.execution, op.output[o]);
    plan->op[plan->nops++] = op;
    return TRL_OK;
}

/* All images of a field beyond periodic sides. slab: one that is among them, or NULL. */
static trl_err add_images(trli_time_plan *plan, const trli_rotation *rotation, const trli_step *s,
                          const trli_slab *slab, const int *field, int execution)
{
    const trli_model *model = plan->model;
    const trl_patch *patch = &model->layout->patch[model->layout->local[0]];
    const trli_time_op op = {.step = s,
                             .slab = slab,
                             .images = true,
                             .execution = execution,
                             .box = trl_patch_owned(model->layout, patch, model->field[*field].location),
                             .noutputs = 1,
                             .output = field};
    return add_op(plan, rotation, op);
}

static trl_err add_step(trli_time_plan *plan, const trli_program *program, const trli_rotation *rotation,
                        const trli_step *s, int execution)
{
    trl_err err = TRL_OK;
    for (int i = 0; i < s->nexchanged; ++i) TRL_TRY(add_images(plan, rotation, s, NULL, &s->exchanged[i], execution));
    for (int k = 0; k < s->nslabs; ++k) {
        const trli_slab *slab = &s->slab[k];
        if (slab->image) {
            const bool more = k > 0 && s->slab[k - 1].image && s->slab[k - 1].field == slab->field;
            if (!more) TRL_TRY(add_images(plan, rotation, s, slab, &slab->field, execution));
            continue;
        }
        const trli_time_op op = {.step = s,
                                 .slab = slab,
                                 .execution = execution,
                                 .box = trli_slab_box(program, slab, 0),
                                 .ninputs = slab->ninputs,
                                 .noutputs = 1,
                                 .output = &slab->field};
        TRL_TRY(add_op(plan, rotation, op));
    }
    if (s->kind != TRLI_STEP_KERNEL) goto done;
    const trli_time_op op = {.step = s,
                             .execution = execution,
                             .box = trli_program_box(program, s->field[0], 0),
                             .ninputs = s->ninputs,
                             .noutputs = s->nout,
                             .output = s->field};
    TRL_TRY(add_op(plan, rotation, op));
done:
    return err;
}

/* ---- shifts ---- */

/* Whatever of the earlier kernel's box touches a value that the later one touches, there at a point that is farther by lo to hi, is done
 * no later. */
static void put_after(const trli_time_plan *plan, const trli_time_op *earlier, trli_time_op *later,
                      const trl_lidx lo[3], const trl_lidx hi[3])
{
    const bool *periodic = plan->model->layout->grid.periodic;
    trl_lidx most[3];
    for (int a = 0; a < 3; ++a) {
        most[a] = hi[a];
        if (periodic[a]) continue;
        const trl_lidx up = earlier->box.hi[a] - 1 - later->box.lo[a],
                       down = earlier->box.lo[a] - (later->box.hi[a] - 1);
        most[a] = hi[a] < up ? hi[a] : up;
        if (most[a] < (lo[a] > down ? lo[a] : down)) return;
    }
    for (int i = 0; i < 2; ++i) {
        const trl_lidx shift = earlier->shift[i] + most[plan->axis[i]];
        const trl_lidx start = periodic[plan->axis[i]] ? earlier->start[i] - lo[plan->axis[i]] : 0;
        if (shift > later->shift[i]) later->shift[i] = shift;
        if (start > later->start[i]) later->start[i] = start;
    }
}

static trl_offsets reach_of(const trli_time_op *op, int input)
{
    const trl_footprint f = trli_kernel_footprint(op->slab ? op->slab->kernel : op->step->kernel, input);
    return trl_footprint_hull(&f);
}

static void order(const trli_time_plan *plan, const trli_time_op *earlier, trli_time_op *later)
{
    static const trl_lidx here[3];
    const trli_field *field = plan->model->field;
    for (int w = earlier->ninputs; w < earlier->ninputs + earlier->noutputs; ++w) {
        const int slot = field[earlier->field[w]].slot;
        for (int i = 0; i < later->ninputs; ++i) { /* read after write */
            if (field[later->field[i]].slot != slot) continue;
            const trl_offsets reach = reach_of(later, i);
            put_after(plan, earlier, later, reach.lo, reach.hi);
        }
        for (int o = later->ninputs; o < later->ninputs + later->noutputs; ++o)
            if (field[later->field[o]].slot == slot) put_after(plan, earlier, later, here, here);
    }
    for (int i = 0; i < earlier->ninputs; ++i)
        for (int o = later->ninputs; o < later->ninputs + later->noutputs; ++o) { /* write after read */
            if (field[later->field[o]].slot != field[earlier->field[i]].slot) continue;
            const trl_offsets reach = reach_of(earlier, i);
            const trl_lidx lo[3] = {-reach.hi[0], -reach.hi[1], -reach.hi[2]},
                           hi[3] = {-reach.lo[0], -reach.lo[1], -reach.lo[2]};
            put_after(plan, earlier, later, lo, hi);
        }
}

static void find_shifts(trli_time_plan *plan)
{
    for (int i = 0; i < plan->nops; ++i) {
        trli_time_op *op = &plan->op[i];
        for (int a = 0; a < 2; ++a) op->shift[a] = INT_MIN / 2;
        for (int j = i - 1; j >= 0 && plan->op[j].execution >= op->execution - LOOKED_BACK; --j)
            order(plan, &plan->op[j], op);
        for (int a = 0; a < 2; ++a) {
            /* What waits for nothing comes with its nearest point of the patch. */
            const bool beyond = op->slab && !op->images && op->slab->side && op->slab->axis == plan->axis[a];
            if (op->shift[a] < INT_MIN / 4) op->shift[a] = beyond ? -op->slab->layer : 0;
            if (op->shift[a] > plan->late[a]) plan->late[a] = op->shift[a];
            if (op->start[a] > plan->turned[a]) plan->turned[a] = op->start[a];
        }
    }
}

static bool same_memory(const trli_model *model, int f, int g)
{
    const trl_array *a = &model->geometry[f], *b = &model->geometry[g];
    return model->origin[f] == model->origin[g] && memcmp(a->stride, b->stride, sizeof a->stride) == 0;
}

/* Count the slots, whose tenants have to agree about where a point is. */
static trl_err look_at_slots(trli_time_plan *plan, const char **why)
{
    const trli_model *model = plan->model;
    int *tenant = malloc(((size_t)model->nslots + 1) * sizeof *tenant);
    if (!tenant) return trl_fail(model->ctx, TRL_ERR_MEMORY, NULL, "no memory for the kernels of a pass");
    for (int s = 0; s < model->nslots; ++s) tenant[s] = -1;
    for (int i = 0; i < plan->nops; ++i)
        for (int f = 0; f < plan->op[i].ninputs + plan->op[i].noutputs; ++f) {
            const int field = plan->op[i].field[f], slot = model->field[field].slot;
            if (tenant[slot] >= 0 && !same_memory(model, field, tenant[slot]))
                *why = "fields of several shapes share their memory";
            plan->nslots += tenant[slot] < 0;
            tenant[slot] = field;
        }
    free(tenant);
    return TRL_OK;
}

/* Periodic axes are gone round once, by kernels that compute each point once. */
static const char *refuse_periodic(const trli_time_plan *plan)
{
    const trl_grid *grid = &plan->model->layout->grid;
    for (int a = 0; a < 3; ++a) {
        if (!grid->periodic[a]) continue;
        for (int i = 0; i < plan->nops; ++i)
            if (plan->op[i].box.lo[a] != 0 || plan->op[i].box.hi[a] != grid->cells[a])
                return "intermediate values are computed beyond periodic sides";
        for (int i = 0; i < 2; ++i)
            if (plan->axis[i] == a && plan->turned[i] >= grid->cells[a]) return "a periodic axis is short";
    }
    return NULL;
}

trl_err trli_time_plan_make(const trli_program *program, const trli_rotation *rotation, int executions,
                            trli_time_plan *plan, const char **why)
{
    const int dim = program->model->layout->grid.dim;
    trl_err err = TRL_OK;
    *plan = (trli_time_plan){.model = program->model, .axis = {dim - 2, dim - 1}};
    *why = refuse_program(program);
    for (int e = 0; e < executions && !*why; ++e)
        for (int i = 0; i < program->nsteps && !*why; ++i) {
            if (program->step[i].live) TRL_TRY(add_step(plan, program, rotation, &program->step[i], e));
            if (plan->nops > OPS_MOST) *why = "there are too many kernels and ghost layers";
        }
    if (!*why) TRL_TRY(look_at_slots(plan, why));
    if (!*why) find_shifts(plan);
    if (!*why) *why = refuse_periodic(plan);
    if (*why) trli_time_plan_free(plan);
done:
    return err;
}

void trli_time_plan_free(trli_time_plan *plan)
{
    for (int i = 0; i < plan->nops; ++i) free(plan->op[i].field);
    free(plan->op);
    *plan = (trli_time_plan){0};
}
