/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Which parts of several executions of a program can be computed together, in one pass over memory.
 *
 * The executions are unrolled to a list of kernels, each on its whole box: those of steps, and those of ghost layers.
 * The pass goes through space block by block (along one axis) and front by front (along another), and at each place
 * runs all kernels of the list in order, each on what is shifted back by some rows and planes of its own: kernel k
 * computes row y in block floor((y + shift)/B), limited to the first and the last block, and likewise for fronts. Both
 * are monotone in y + shift. So if of any two accesses to one value, one of them a write, the earlier one in the list's
 * order has a position y + shift that is no larger than the later one's, along both axes, then it is in no later block
 * and in no later front, and if both are the same the order of the list decides: every value is written and read in the
 * order of the list, as without blocking. Moreover a task of one block and some fronts then needs but those of no later
 * block and no later fronts.
 *
 * The shifts are the smallest for which this holds. For two kernels that touch one array, let the earlier one touch the
 * points y' of its box and the later one, at the points y of its box, values with y' - y in a range that footprints
 * give: then the later one's shift is at least the earlier one's plus the largest y' - y that the range and the boxes
 * allow. Along a periodic axis of n points y' - y may be so or by n more or less. There each kernel begins at a start
 * of its own and ends there after n points, behind the others' ends: n more is impossible if the later one's start is
 * at least the earlier one's less the smallest y' - y, and n less asks for nothing. Images beyond periodic sides are
 * set with the points themselves. The same memory is overwritten after two executions at most, so older accesses need
 * no comparison: the kernel that overwrote the memory was ordered after them, and before the accesses compared.
 *
 * Where a side of the patch is shared with another patch, nothing is awaited during a pass. Both compute what the later
 * executions need of the other's points: each kernel's box is larger by what is read of its results later on, which is
 * found from the last kernel back to the first. What the first execution reads beyond the patch is exchanged before the
 * pass: ghosts as deep as all executions reach together. Where ranks lie behind one another nothing is computed twice
 * (time_skew.c). */
#include <limits.h>
#include <string.h>

#include "cost_impl.h"
#include "memory_impl.h"
#include "pipeline_impl.h"
#include "slot_plan_impl.h"
#include "spatialops_impl.h"
#include "time_plan_impl.h"

enum {
    OPS_MOST = 4096,
    LOOKED_BACK = 2 /* executions */
};

/* ---- what is in the way ---- */

static const char *refuse_step(const trli_step *s, const trli_step_plan *p)
{
    switch (s->kind) {
    case TRLI_STEP_PLUGIN:
        return "a plugin is evaluated";
    case TRLI_STEP_REDUCE:
    case TRLI_STEP_STABLE_DT:
        return "a reduction needs all of a step";
    case TRLI_STEP_FILL:
    case TRLI_STEP_PLANES:
        for (int k = 0; k < p->nslabs; ++k)
            if (p->slab[k].kind == TRLI_SLAB_MODIFIER) return "a plugin sets boundary values";
        return NULL;
    default:
        return NULL;
    }
}

static const char *refuse_program(const trli_program *program)
{
    const trl_layout *layout = program->model->layout;
    if (layout->grid.dim < 2) return "the grid is 1-D";
    for (int i = 0; i < program->nsteps; ++i) {
        const trli_step_plan *p = &program->plan->step[i];
        const char *why = p->live ? refuse_step(&program->step[i], p) : NULL;
        if (why) return why;
    }
    return NULL;
}

/* ---- the list ---- */

/* By field: the one whose memory it has in executions 1, 3, ..., itself if it does not rotate. */
static trl_err find_rotated(const trli_model *model, const trli_rotation *rotation, int **rotated)
{
    int *to = *rotated = trli_new(model->ctx, (size_t)model->nfields + 1, sizeof *to);
    if (!to) return trli_no_memory(model->ctx, NULL, "for the kernels of a pass");
    for (int f = 0; f < model->nfields; ++f) to[f] = f;
    for (int v = 0; v < rotation->n; ++v) {
        to[rotation->state[v]] = rotation->next[v];
        to[rotation->next[v]] = rotation->state[v];
    }
    return TRL_OK;
}

static int some_patch(const trli_time_plan *plan)
{
    return plan->patch == TRLI_ANY_PATCH ? 0 : plan->patch;
}

static const trl_patch *patch_of(const trli_time_plan *plan)
{
    const trl_layout *layout = plan->model->layout;
    return &layout->patch[some_patch(plan)];
}

static trl_err add_op(trli_time_plan *plan, const int *rotated, trli_time_op op)
{
    const int *input = op.slab ? op.slab->input : op.plan->input;
    const trl_layout *layout = plan->model->layout;
    const bool odd = op.execution % 2 == 1;
    for (int a = 0; a < 3; ++a) /* beyond periodic sides there are images of what is inside */
        if (trli_goes_round(layout, a) && op.slab) op.box.lo[a] = 0, op.box.hi[a] = (trl_lidx)layout->grid.cells[a];
    if (!trli_make_room(plan->model->ctx, &plan->op, plan->nops, 1, &plan->capacity, sizeof *plan->op))
        return trli_no_memory(plan->model->ctx, NULL, "for %d kernels of a pass", plan->nops + 1);
    op.field = trli_new(plan->model->ctx, (size_t)(op.ninputs + op.noutputs), sizeof *op.field);
    if (!op.field) return trli_no_memory(plan->model->ctx, NULL, "for the kernels of a pass");
    for (int i = 0; i < op.ninputs; ++i) op.field[i] = odd ? rotated[input[i]] : input[i];
    for (int o = 0; o < op.noutputs; ++o) op.field[op.ninputs + o] = odd ? rotated[op.output[o]] : op.output[o];
    plan->op[plan->nops++] = op;
    return TRL_OK;
}

/* All images of a field beyond periodic sides. slab: one that is among them, or NULL. */
static trl_err add_images(trli_time_plan *plan, const int *rotated, const trli_program *program, const trli_step *s,
                          const trli_slab *slab, const int *field, int execution)
{
    const trli_model *model = plan->model;
    const trl_layout *layout = model->layout;
    const trli_time_op op = {.step = s,
                             .plan = trli_plan_of(program, s),
                             .slab = slab,
                             .images = true,
                             .execution = execution,
                             .box = trl_patch_owned(layout, patch_of(plan), model->field[*field].location),
                             .noutputs = 1,
                             .output = field};
    for (int a = 0; a < layout->grid.dim; ++a)
        if (trli_goes_round(layout, a)) return add_op(plan, rotated, op);
    return TRL_OK;
}

/* Whether an exchange sets points beyond periodic sides that the patch has both of; kernels may have taken them. */
static bool brings_images(const trl_layout *layout, const trl_footprint *reach)
{
    const trl_offsets hull = trl_footprint_hull(reach);
    bool some = false;
    for (int a = 0; a < layout->grid.dim; ++a) some |= trli_goes_round(layout, a) && (hull.lo[a] < 0 || hull.hi[a] > 0);
    return some;
}

static trl_err add_step(trli_time_plan *plan, const trli_program *program, const int *rotated, const trli_step *s,
                        int execution)
{
    const trli_step_plan *p = trli_plan_of(program, s);
    trl_err err = TRL_OK;
    for (int i = 0; i < p->exchanged.n; ++i)
        if (brings_images(plan->model->layout, &p->exchanged.reach[i]))
            TRL_TRY(add_images(plan, rotated, program, s, NULL, &p->exchanged.field[i], execution));
    for (int k = 0; k < p->nslabs; ++k) {
        const trli_slab *slab = &p->slab[k];
        if (slab->kind == TRLI_SLAB_IMAGE) {
            const trli_slab *before = k > 0 ? slab - 1 : NULL;
            const bool more = before && before->kind == TRLI_SLAB_IMAGE && before->field == slab->field;
            if (!more) TRL_TRY(add_images(plan, rotated, program, s, slab, &slab->field, execution));
            continue;
        }
        if (plan->patch != TRLI_ANY_PATCH && !trli_slab_is_at(plan->model->layout, patch_of(plan), slab)) continue;
        const trli_time_op op = {.step = s,
                                 .plan = trli_plan_of(program, s),
                                 .slab = slab,
                                 .execution = execution,
                                 .box = trli_slab_box(program, slab, some_patch(plan)),
                                 .ninputs = slab->ninputs,
                                 .noutputs = 1,
                                 .output = &slab->field};
        TRL_TRY(add_op(plan, rotated, op));
    }
    if (s->kind != TRLI_STEP_KERNEL) goto done;
    const trli_time_op op = {.step = s,
                             .plan = trli_plan_of(program, s),
                             .execution = execution,
                             .box = trli_step_box(program, s, 0, some_patch(plan)),
                             .ninputs = p->ninputs,
                             .noutputs = s->nout,
                             .output = s->field};
    TRL_TRY(add_op(plan, rotated, op));
done:
    return err;
}

/* ---- beyond the patch ---- */

static void include(trl_offsets *all, const trl_offsets *part)
{
    for (int a = 0; a < 3; ++a) {
        if (part->lo[a] < all->lo[a]) all->lo[a] = part->lo[a];
        if (part->hi[a] > all->hi[a]) all->hi[a] = part->hi[a];
    }
}

/* Let a kernel compute what is needed of its results beyond the sides that the patch shares with others. */
static void extend(const trli_time_plan *plan, trli_time_op *op, const trl_offsets *by)
{
    const trl_layout *layout = plan->model->layout;
    for (int a = 0; a < layout->grid.dim; ++a) {
        if (op->slab && !op->images && op->slab->axis == a) continue;
        /* Sides that are shared have no plane of their own: the patch's points are 0 <= i < cells. */
        if (trli_time_plan_shares(plan, a, 0)) op->box.lo[a] = by->lo[a];
        if (trli_time_plan_shares(plan, a, 1)) op->box.hi[a] = trli_time_plan_cells(plan, a) + by->hi[a];
    }
}

/* What a kernel that computes so much more needs of an input. A condition reads points inside along its own axis. */
static void note_need(trli_time_plan *plan, const trli_time_op *op, int input, const trl_offsets *by)
{
    trl_offsets reach = trli_time_op_reach(op, input);
    for (int a = 0; a < 3; ++a) {
        const bool across = op->slab && op->slab->axis == a;
        reach.lo[a] = across ? 0 : reach.lo[a] + by->lo[a];
        reach.hi[a] = across ? 0 : reach.hi[a] + by->hi[a];
    }
    include(&plan->deep[op->field[input]], &reach);
}

/* From the last kernel to the first; plan->deep is then what the first execution reads before it is computed. */
static trl_err find_boxes(trli_time_plan *plan)
{
    static const trl_offsets none;
    trl_err err = TRL_OK;
    if (plan->skewed) TRL_TRY(trli_time_plan_find_skews(plan));
    for (int i = plan->nops - 1; i >= 0; --i) {
        trli_time_op *op = &plan->op[i];
        const int *output = op->field + op->ninputs;
        trl_offsets by = none;
        for (int o = 0; o < op->noutputs; ++o) include(&by, &plan->deep[output[o]]);
        if (plan->skewed) TRL_TRY(trli_time_plan_move(plan, i, &by));
        extend(plan, op, &by);
        for (int o = 0; o < op->noutputs && !op->slab && !op->images; ++o) plan->deep[output[o]] = none;
        for (int k = 0; k < op->ninputs; ++k) note_need(plan, op, k, &by);
    }
    for (int f = 0; f < plan->model->nfields; ++f)
        for (int a = 0; a < 3; ++a)
            if (plan->model->layout->counts[a] == 1) plan->deep[f].lo[a] = plan->deep[f].hi[a] = 0;
    if (plan->skewed) TRL_TRY(trli_time_plan_first_faces(plan));
done:
    return err;
}

/* ---- shifts ---- */

/* Whatever of the earlier kernel's box touches a value that the later one touches, there at a point that is farther by
 * lo to hi, is done no later. */
static void put_after(const trli_time_plan *plan, const trli_time_op *earlier, trli_time_op *later,
                      const trl_lidx lo[3], const trl_lidx hi[3])
{
    const trl_layout *layout = plan->model->layout;
    trl_lidx most[3];
    for (int a = 0; a < 3; ++a) {
        most[a] = hi[a];
        if (trli_goes_round(layout, a)) continue;
        const trl_lidx up = earlier->box.hi[a] - 1 - later->box.lo[a],
                       down = earlier->box.lo[a] - (later->box.hi[a] - 1);
        most[a] = hi[a] < up ? hi[a] : up;
        if (most[a] < (lo[a] > down ? lo[a] : down)) return;
    }
    for (int i = 0; i < 2; ++i) {
        const trl_lidx shift = earlier->shift[i] + most[plan->axis[i]];
        const bool round = trli_goes_round(layout, plan->axis[i]);
        const trl_lidx start = round ? earlier->start[i] - lo[plan->axis[i]] : 0;
        if (shift > later->shift[i]) later->shift[i] = shift;
        if (start > later->start[i]) later->start[i] = start;
    }
}

/* A field of a kernel, and the touch of the same slot before it in the order of the list, or -1. */
typedef struct trli_time_touch {
    int op, place; /* op[].field[place] */
    int before;
} trli_time_touch;

static bool writes(const trli_time_op *op, int place)
{
    return place >= op->ninputs;
}

/* Order two kernels by one slot that both touch. */
static void order(const trli_time_plan *plan, const trli_time_op *earlier, int place, trli_time_op *later,
                  int later_place)
{
    static const trl_lidx here[3];
    if (writes(earlier, place) && writes(later, later_place)) {
        put_after(plan, earlier, later, here, here);
    } else if (writes(earlier, place)) {
        const trl_offsets reach = trli_time_op_reach(later, later_place);
        put_after(plan, earlier, later, reach.lo, reach.hi);
    } else if (writes(later, later_place)) {
        const trl_offsets reach = trli_time_op_reach(earlier, place);
        const trl_lidx lo[3] = {-reach.hi[0], -reach.hi[1], -reach.hi[2]},
                       hi[3] = {-reach.lo[0], -reach.lo[1], -reach.lo[2]};
        put_after(plan, earlier, later, lo, hi);
    }
}

static void find_shift(trli_time_plan *plan, const trli_time_touch *touch, const int *newest, trli_time_op *op)
{
    for (int a = 0; a < 2; ++a) op->shift[a] = INT_MIN / 2;
    for (int f = 0; f < op->ninputs + op->noutputs; ++f)
        for (int t = newest[plan->model->field[op->field[f]].slot];
             t >= 0 && plan->op[touch[t].op].execution >= op->execution - LOOKED_BACK; t = touch[t].before)
            order(plan, &plan->op[touch[t].op], touch[t].place, op, f);
    for (int a = 0; a < 2; ++a) {
        /* A kernel that depends on no other is placed at its nearest point of the patch. */
        const bool beyond = op->slab && !op->images && op->slab->side && op->slab->axis == plan->axis[a];
        if (op->shift[a] < INT_MIN / 4) op->shift[a] = beyond ? -op->slab->layer : 0;
        if (op->shift[a] > plan->most_shift[a]) plan->most_shift[a] = op->shift[a];
        if (op->start[a] > plan->most_start[a]) plan->most_start[a] = op->start[a];
    }
}

static trl_err find_shifts(trli_time_plan *plan)
{
    trl_context *ctx = plan->model->ctx;
    const int nslots = plan->model->slots->n;
    size_t n = 0;
    int count = 0;
    for (int i = 0; i < plan->nops; ++i) n += (size_t)(plan->op[i].ninputs + plan->op[i].noutputs);
    trli_time_touch *touch = trli_new(ctx, n, sizeof *touch);
    int *newest = trli_new(ctx, (size_t)nslots, sizeof *newest); /* touch of each slot, or -1 */
    trl_err err = touch && newest ? TRL_OK : trli_no_memory(ctx, NULL, "for the kernels of a pass");
    for (int s = 0; s < nslots && err == TRL_OK; ++s) newest[s] = -1;
    for (int i = 0; i < plan->nops && err == TRL_OK; ++i) {
        const trli_time_op *op = &plan->op[i];
        find_shift(plan, touch, newest, &plan->op[i]);
        for (int f = 0; f < op->ninputs + op->noutputs; ++f) {
            const int slot = plan->model->field[op->field[f]].slot;
            touch[count] = (trli_time_touch){.op = i, .place = f, .before = newest[slot]};
            newest[slot] = count++;
        }
    }
    trli_free(touch);
    trli_free(newest);
    return err;
}

/* Whether a point has the same place in two fields of one slot. */
static bool same_memory(const trli_time_plan *plan, int f, int g)
{
    const trli_slot_plan *slots = plan->model->slots;
    const size_t a = trli_slot_plan_index(slots, f, plan->patch), b = trli_slot_plan_index(slots, g, plan->patch);
    return slots->origin[a] == slots->origin[b] &&
           memcmp(slots->geometry[a].stride, slots->geometry[b].stride, sizeof slots->geometry[a].stride) == 0;
}

/* Count the slots, whose tenants have to agree about where a point is. */
static trl_err look_at_slots(trli_time_plan *plan, const char **why)
{
    const trli_model *model = plan->model;
    int *tenant = trli_new(model->ctx, (size_t)model->slots->n + 1, sizeof *tenant);
    if (!tenant) return trli_no_memory(model->ctx, NULL, "for the kernels of a pass");
    for (int s = 0; s < model->slots->n; ++s) tenant[s] = -1;
    for (int i = 0; i < plan->nops; ++i)
        for (int f = 0; f < plan->op[i].ninputs + plan->op[i].noutputs; ++f) {
            const int field = plan->op[i].field[f], slot = model->field[field].slot;
            if (tenant[slot] >= 0 && !same_memory(plan, field, tenant[slot]))
                *why = "fields of several shapes share their memory";
            plan->nslots += tenant[slot] < 0;
            tenant[slot] = field;
        }
    trli_free(tenant);
    return TRL_OK;
}

/* A pass wraps around a periodic axis once, by kernels that compute each point once. */
static const char *refuse_periodic(const trli_time_plan *plan)
{
    const trl_layout *layout = plan->model->layout;
    for (int a = 0; a < 3; ++a) {
        const trl_gidx cells = layout->grid.cells[a];
        if (!trli_goes_round(layout, a)) continue;
        for (int i = 0; i < plan->nops; ++i)
            if (plan->op[i].box.lo[a] != 0 || plan->op[i].box.hi[a] != cells)
                return "intermediate values are computed beyond periodic sides";
        for (int i = 0; i < 2; ++i)
            if (plan->axis[i] == a && plan->most_start[i] >= cells) return "a periodic axis is short";
    }
    return NULL;
}

trl_err trli_time_plan_list(const trli_program *program, const trli_rotation *rotation, int patch, int executions,
                            bool skewed, trli_time_plan *plan, const char **why)
{
    const int dim = program->model->layout->grid.dim;
    int *rotated = NULL;
    trl_err err = TRL_OK;
    *plan = (trli_time_plan){.model = program->model, .patch = patch, .axis = {dim - 2, dim - 1}};
    *why = refuse_program(program);
    plan->deep = trli_new(plan->model->ctx, (size_t)plan->model->nfields + 1, sizeof *plan->deep);
    if (!plan->deep) return trli_no_memory(plan->model->ctx, NULL, "for the kernels of a pass");
    TRL_TRY(find_rotated(program->model, rotation, &rotated));
    for (int e = 0; e < executions && !*why; ++e)
        for (int i = 0; i < program->nsteps && !*why; ++i) {
            if (program->plan->step[i].live) TRL_TRY(add_step(plan, program, rotated, &program->step[i], e));
            if (plan->nops > OPS_MOST) *why = "there are too many kernels and ghost layers";
        }
    plan->skewed = skewed;
    TRL_TRY(find_boxes(plan));
done:
    trli_free(rotated);
    return err;
}

trl_err trli_time_plan_make(const trli_program *program, const trli_rotation *rotation, int patch, int executions,
                            bool skewed, trli_time_plan *plan, const char **why)
{
    trl_err err = TRL_OK;
    TRL_TRY(trli_time_plan_list(program, rotation, patch, executions, skewed, plan, why));
    if (!*why) TRL_TRY(look_at_slots(plan, why));
    if (!*why) TRL_TRY(find_shifts(plan));
    if (!*why) *why = refuse_periodic(plan);
    if (!*why && skewed) *why = trli_time_plan_refuse_skew(plan);
    if (*why) trli_time_plan_free(plan);
done:
    return err;
}

double trli_time_plan_seconds(const trli_program *program, const trli_time_plan *plan, int64_t points, int workers)
{
    double seconds = trli_task_seconds(plan->model, NULL, 0, workers);
    for (const trli_time_op *op = plan->op; op < plan->op + plan->nops; ++op)
        if (!op->slab && !op->images)
            seconds += trli_task_seconds(plan->model, &program->work[op->step - program->step], points, workers);
    return seconds;
}

void trli_time_plan_free(trli_time_plan *plan)
{
    for (int i = 0; i < plan->nops; ++i) trli_free(plan->op[i].field);
    trli_free(plan->op);
    trli_free(plan->deep);
    trli_free(plan->touched);
    trli_free(plan->face);
    *plan = (trli_time_plan){0};
}

/* ---- before there is memory ---- */

/* Whether patches have the ghosts of one another, and compute no more than so many times their own points. */
static bool fits(const trli_time_plan *plan, double most)
{
    const trl_layout *layout = plan->model->layout;
    double own = 0, all = 0;
    for (int a = 0; a < layout->grid.dim; ++a)
        for (int f = 0; f < plan->model->nfields; ++f)
            if (-plan->deep[f].lo[a] > trli_time_plan_cells(plan, a) ||
                plan->deep[f].hi[a] > trli_time_plan_cells(plan, a))
                return false;
    for (int i = 0; i < plan->nops; ++i) {
        double points = 1, of_them = 1;
        if (plan->op[i].slab || plan->op[i].images) continue;
        for (int a = 0; a < layout->grid.dim; ++a) {
            const trl_lidx n = plan->op[i].box.hi[a] - plan->op[i].box.lo[a];
            points *= n;
            of_them *= layout->counts[a] > 1 ? trli_time_plan_cells(plan, a) : n;
        }
        all += points;
        own += of_them;
    }
    return all <= most * own;
}

static trl_err find_touched(trli_time_plan *plan)
{
    plan->touched = trli_new(plan->model->ctx, (size_t)plan->model->nfields + 1, sizeof *plan->touched);
    if (!plan->touched) return trli_no_memory(plan->model->ctx, NULL, "for the kernels of a pass");
    for (int i = 0; i < plan->nops; ++i)
        for (int f = 0; f < plan->op[i].ninputs + plan->op[i].noutputs; ++f) plan->touched[plan->op[i].field[f]] = true;
    return TRL_OK;
}

trl_err trli_time_plan_fit(const trli_program *program, const trli_rotation *rotation, double excess, int *executions,
                           trli_time_plan *plan, int64_t *values, const char **why)
{
    const trli_model *model = program->model;
    trl_err err = TRL_OK;
    *values = 0;
    for (; *executions > 1; --*executions) {
        bool skewed = trli_time_may_skew(model);
        TRL_TRY(trli_time_plan_list(program, rotation, TRLI_ANY_PATCH, *executions, skewed, plan, why));
        if (!*why && skewed && !(trli_time_plan_skew_fits(plan) && fits(plan, excess))) {
            skewed = false;
            trli_time_plan_free(plan);
            TRL_TRY(trli_time_plan_list(program, rotation, TRLI_ANY_PATCH, *executions, skewed, plan, why));
        }
        if (*why || skewed || fits(plan, excess)) break;
        trli_time_plan_free(plan);
    }
    if (*executions < 2) *why = "patches are too small for ghosts as deep as several steps need";
    if (*why) goto done;
    TRL_TRY(find_touched(plan));
    for (int f = 0; f < model->nfields; ++f)
        if (plan->touched[f]) *values += trli_model_points(model, model->field[f].location, NULL);
done:
    return err;
}

/* A pass reads so deep at sides that patches share, at all depths that a step reads at along the other axes. */
static void demand_deep(const trli_time_plan *plan, trli_demand *d, const trl_offsets *deep)
{
    const trl_offsets hull = d->inner.n ? trl_footprint_hull(&d->inner) : (trl_offsets){{0}, {0}};
    trl_offsets part = *deep;
    for (int a = 0; a < 3; ++a) {
        if (plan->model->layout->counts[a] > 1) continue;
        part.lo[a] = hull.lo[a] < d->side.lo[a] ? hull.lo[a] : d->side.lo[a];
        part.hi[a] = hull.hi[a] > d->side.hi[a] ? hull.hi[a] : d->side.hi[a];
    }
    trl_footprint_add(&d->inner, &part);
}

void trli_time_plan_deepen(const trli_time_plan *plan, trli_program *program)
{
    trl_offsets all = {0};
    for (int f = 0; f < plan->model->nfields; ++f)
        if (plan->model->field[f].lasting && plan->touched[f])
            demand_deep(plan, &program->plan->demand[f], &plan->deep[f]);
    for (int f = 0; f < plan->model->nfields; ++f) {
        const trli_model_field *field = &plan->model->field[f];
        include(&all, &plan->deep[f]);
        for (int a = 0; a < 3 && plan->touched[f]; ++a) {
            if (-field->ghost_lo[a] < all.lo[a]) all.lo[a] = -field->ghost_lo[a];
            if (field->ghost_hi[a] > all.hi[a]) all.hi[a] = field->ghost_hi[a];
        }
    }
    for (int f = 0; f < plan->model->nfields; ++f) {
        trli_model_field *field = &plan->model->field[f];
        for (int a = 0; a < 3 && plan->touched[f]; ++a) {
            field->ghost_lo[a] = -all.lo[a];
            field->ghost_hi[a] = all.hi[a];
        }
    }
}
