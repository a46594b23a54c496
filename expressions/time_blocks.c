/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Several executions of a program as one task graph: tasks (b, g), the fronts of group g in block b, each after (b-1, g) and (b, g-1).
 * time_plan.c says why that is right. */
#include <stdlib.h>
#include <string.h>

#include "tasks_impl.h"
#include "time_blocks_impl.h"

enum {
#ifdef TRL_POISON /* builds for testing: small problems get blocks too */
    BLOCK_LEAST = 3,
    TASK_POINTS = 64,
#else
    BLOCK_LEAST = 16,
    TASK_POINTS = 1 << 16, /* of a task, at least, all kernels counted: some ten microseconds */
#endif
    CALL_POINTS = 4096, /* of a call, if the front's planes are fewer */
    TURN = 2            /* planes: rows in the first-level cache serve that many */
};

/* What a kernel of the plan needs when it runs. */
typedef struct call {
    trl_array *array; /* [ninputs + noutputs] */
    trl_kernel_array *native;
    trl_kernel_inside *inside; /* [ninputs], of a step's kernel */
} call;

typedef struct part {
    trli_time_blocks *blocks;
    int block, group;
} part;

struct trli_time_blocks {
    trli_model *model;
    const trli_program *program;
    trli_time_plan plan;
    int executions; /* of a pass, at most */
    int nops;       /* of the pass under way */
    call *call;     /* [plan.nops] */
    trl_array *arrays;
    trl_kernel_array *native_arrays;
    trl_kernel_inside *inside;
    double *scalar;            /* [executions][model->nscalars] */
    trli_nonfinite *nonfinite; /* [workers][executions] */
    trl_kernel_grid grid;
    trl_lidx thick[2];  /* rows of a block, planes of a front */
    int count[2];       /* of blocks and fronts */
    int group, ngroups; /* fronts of a task */
    part *part;
    trl_graph *graph;
};

/* ---- running ---- */

/* The points of a kernel in block b or front f, along that axis; of a periodic axis possibly those one period further. */
static void clip(const trli_time_blocks *t, const trli_time_op *op, int which, int i, trl_box *box)
{
    const int axis = t->plan.axis[which];
    box->lo[axis] += op->start[which];
    box->hi[axis] += op->start[which];
    const trl_lidx lo = i * t->thick[which] - op->shift[which], hi = lo + t->thick[which];
    if (i > 0 && lo > box->lo[axis]) box->lo[axis] = lo;
    if (i + 1 < t->count[which] && hi < box->hi[axis]) box->hi[axis] = hi;
}

static bool call_native(const trli_time_blocks *t, trli_native_fn fn, const trli_time_op *op, const call *c,
                        const trl_box *box)
{
    trl_kernel_call native = {.input = c->native,
                              .output = c->native + op->ninputs,
                              .scalar = t->scalar + (ptrdiff_t)op->execution * t->model->nscalars,
                              .grid = &t->grid,
                              .inside = c->inside,
                              .block = box->hi[1] - box->lo[1],
                              .turn = TURN};
    trli_native_set_box(&native, box);
    fn(&native);
    return native.nonfinite == 0;
}

/* Where a field has ghosts beyond periodic sides, they are images of points inside: copy those of a box. */
static void put_images(const trli_time_blocks *t, const trl_array *array, const trl_box *box)
{
    const trl_grid *g = &t->model->layout->grid;
    for (int image = 0; image < 27; ++image) {
        const int turn[3] = {image % 3 - 1, image / 3 % 3 - 1, image / 9 - 1};
        trl_box to = *box;
        ptrdiff_t back = 0;
        bool there = image != 13; /* the box itself */
        for (int a = 0; a < 3; ++a) {
            const trl_lidx by = turn[a] * (trl_lidx)g->cells[a];
            if (turn[a] == 0) continue;
            there &= g->periodic[a] != 0;
            to.lo[a] = to.lo[a] + by > array->held.lo[a] ? to.lo[a] + by : array->held.lo[a];
            to.hi[a] = to.hi[a] + by < array->held.hi[a] ? to.hi[a] + by : array->held.hi[a];
            there &= to.lo[a] < to.hi[a];
            back += by * array->stride[a];
        }
        if (there) trli_copy_images(array, &to, back);
    }
}

static void run_op(trli_time_blocks *t, int i, int worker, const trl_box *box)
{
    const trli_time_op *op = &t->plan.op[i];
    const trli_step *s = op->step;
    const call *c = &t->call[i];
    if (op->slab && op->slab->within && s->native) return;
    if (op->images) {
        put_images(t, &c->array[0], box);
        return;
    }
    const bool checks = s->check && (!op->slab || s->kind == TRLI_STEP_PLANES);
    const trl_patch *patch = &t->model->layout->patch[t->model->layout->local[0]];
    trli_finite_check check = {.patch = patch,
                               .noutputs = op->noutputs,
                               .variable = checks && op->slab ? trli_slab_variable(s, op->slab) : s->variable,
                               .output = c->array + op->ninputs,
                               .found = &t->nonfinite[(ptrdiff_t)worker * t->executions + op->execution]};
    const trli_native_fn native = op->slab ? op->slab->native : s->native;
    const trli_kernel_run run = {.grid = &t->model->layout->grid,
                                 .patch = patch,
                                 .input = c->array,
                                 .output = check.output,
                                 .scalar = t->scalar + (ptrdiff_t)op->execution * t->model->nscalars,
                                 .scratch = t->model->scratch[worker],
                                 .after = checks ? trli_check_finite : NULL,
                                 .data = &check};
    if (!native)
        trli_kernel_evaluate(op->slab ? op->slab->kernel : s->kernel, &run, box);
    else if (!call_native(t, native, op, c, box))
        trli_check_finite(&check, box);
    if (op->slab) put_images(t, check.output, box);
}

/* A box that goes on from the end of a periodic axis to its beginning is two. */
static void run_turned(trli_time_blocks *t, int i, int worker, int which, const trl_box *box)
{
    const trl_grid *g = &t->model->layout->grid;
    if (which == 2) {
        if (trl_box_points(box) > 0) run_op(t, i, worker, box);
        return;
    }
    const int axis = t->plan.axis[which];
    const trl_lidx n = (trl_lidx)g->cells[axis];
    if (!g->periodic[axis] || box->hi[axis] <= n) {
        run_turned(t, i, worker, which + 1, box);
        return;
    }
    trl_box first = *box, second = *box;
    first.hi[axis] = n;
    second.lo[axis] = box->lo[axis] > n ? box->lo[axis] - n : 0;
    second.hi[axis] -= n;
    run_turned(t, i, worker, which + 1, &first);
    run_turned(t, i, worker, which + 1, &second);
}

static trl_err run_part(void *data, const trl_task_args *args, bool *done)
{
    const part *p = data;
    trli_time_blocks *t = p->blocks;
    const int first = p->group * t->group, end = p->group + 1 < t->ngroups ? first + t->group : t->count[1];
    (void)done;
    for (int f = first; f < end; ++f)
        for (int i = 0; i < t->nops; ++i) {
            trl_box box = t->plan.op[i].box;
            clip(t, &t->plan.op[i], 0, p->block, &box);
            clip(t, &t->plan.op[i], 1, f, &box);
            if (trl_box_points(&box) > 0) run_turned(t, i, args->worker, 0, &box);
        }
    return TRL_OK;
}

void trli_time_blocks_set_scalars(trli_time_blocks *t, int execution)
{
    static const trl_box one = {{0, 0, 0}, {1, 1, 1}};
    double *scalar = t->scalar + (ptrdiff_t)execution * t->model->nscalars;
    memcpy(scalar, t->model->scalar, (size_t)t->model->nscalars * sizeof *scalar);
    for (int i = 0; i < t->program->nsteps; ++i) {
        const trli_step *s = &t->program->step[i];
        if (!s->live || s->kind != TRLI_STEP_SCALAR) continue;
        const trl_array output = {.at = &scalar[s->scalar]};
        const trli_kernel_run run = {.grid = &t->model->layout->grid,
                                     .patch = &t->model->layout->patch[0],
                                     .output = &output,
                                     .scalar = scalar,
                                     .scratch = t->model->scratch[0]};
        trli_kernel_evaluate(s->kernel, &run, &one);
    }
}

/* Arrays move when time levels rotate. */
static void set_arrays(trli_time_blocks *t)
{
    for (int i = 0; i < t->nops; ++i) {
        const trli_time_op *op = &t->plan.op[i];
        for (int f = 0; f < op->ninputs + op->noutputs; ++f) {
            t->call[i].array[f] = trli_model_array(t->model, op->field[f], 0);
            trli_native_set_array(&t->call[i].native[f], &t->call[i].array[f]);
        }
        if (!op->slab && !op->images)
            trli_native_set_inside(t->model, op->step, &t->model->layout->patch[t->model->layout->local[0]],
                                   t->call[i].array, t->call[i].inside);
    }
}

trl_err trli_time_blocks_run(trli_time_blocks *t, int executions)
{
    trli_kernels_poll(t->model);
    t->nops = 0;
    while (t->nops < t->plan.nops && t->plan.op[t->nops].execution < executions) ++t->nops;
    for (int i = 0; i < t->model->nworkers * t->executions; ++i) t->nonfinite[i].found = false;
    set_arrays(t);
    return trl_graph_run(t->graph, t->model->workers);
}

int trli_time_blocks_nonfinite(trli_time_blocks *t)
{
    const trli_model *model = t->model;
    for (int e = 0; e < t->executions; ++e) {
        bool found = false;
        for (int w = 0; w < model->nworkers; ++w) {
            model->nonfinite[w] = t->nonfinite[w * t->executions + e];
            found |= model->nonfinite[w].found;
        }
        if (found) return e;
    }
    return -1;
}

/* ---- making ---- */

/* Points of the patch along an axis, as the kernels see them. */
static trl_lidx extent(const trli_time_plan *plan, int axis)
{
    trl_lidx most = 1;
    for (int i = 0; i < plan->nops; ++i)
        if (!plan->op[i].slab && plan->op[i].box.hi[axis] > most) most = plan->op[i].box.hi[axis];
    return most;
}

static trl_lidx at_least(trl_lidx a, trl_lidx b)
{
    return a > b ? a : b;
}

static trl_lidx divide(trl_lidx a, trl_lidx b)
{
    return (a + b - 1) / b;
}

/* Rows of a block: those of all planes that are under way have room in the bytes, and all workers have blocks. Planes of a front: enough
 * points for a call. Fronts of a task: enough points for a task. */
static void choose_sizes(trli_time_blocks *t, size_t bytes)
{
    const trli_time_plan *plan = &t->plan;
    const int workers = t->model->nworkers;
    trl_lidx n[2] = {extent(plan, plan->axis[0]) + plan->late[0] + plan->turned[0],
                     extent(plan, plan->axis[1]) + plan->late[1] + plan->turned[1]};
    const trl_lidx row =
        plan->axis[0] == 0 ? 1 : extent(plan, 0); /* points of a plane of a front, for each row of a block */
    const size_t planes = (size_t)(plan->late[1] + TURN + 2) * (size_t)plan->nslots;
    const size_t room = bytes / (planes * (size_t)row * sizeof(double));
    trl_lidx rows = room > (size_t)plan->late[0] + BLOCK_LEAST ? (trl_lidx)room - plan->late[0] : BLOCK_LEAST;
    if (rows > n[0]) rows = n[0];
    int blocks = divide(n[0], rows);
    if (blocks > 1 || workers > 1) blocks = divide(blocks, workers) * workers; /* none is idle at the end */
    if (n[0] / blocks < BLOCK_LEAST) blocks = at_least(n[0] / BLOCK_LEAST, 1);
    t->thick[0] = divide(n[0], blocks);
    t->count[0] = divide(n[0], t->thick[0]);
    t->thick[1] = TURN;
    while (t->thick[1] * t->thick[0] * row < CALL_POINTS && t->thick[1] < plan->late[1]) t->thick[1] += TURN;
    t->count[1] = divide(n[1], t->thick[1]);
    const int64_t points = (int64_t)t->thick[0] * t->thick[1] * row * plan->nops;
    t->group = (int)at_least((trl_lidx)(TASK_POINTS / (points + 1)), 1);
    t->ngroups = divide(t->count[1], t->group);
}

static trl_err build_graph(trli_time_blocks *t)
{
    const int groups = t->ngroups;
    trl_task *task = malloc((size_t)t->count[0] * (size_t)groups * sizeof *task);
    trl_err err = TRL_OK;
    t->part = calloc((size_t)t->count[0] * (size_t)groups, sizeof *t->part);
    if (!task || !t->part) TRL_TRY(trl_fail(t->model->ctx, TRL_ERR_MEMORY, NULL, "no memory for blocks in time"));
    TRL_TRY(trl_graph_create(t->model->ctx, "time blocks", &t->graph));
    for (int b = 0; b < t->count[0]; ++b)
        for (int g = 0; g < groups; ++g) {
            const int i = b * groups + g;
            t->part[i] = (part){t, b, g};
            const trl_task_desc desc = {
                .name = t->program->name, .run = run_part, .data = &t->part[i], .chunks = 1, .cost = 1e-4};
            TRL_TRY(trl_graph_add_task(t->graph, &desc, &task[i]));
            if (b > 0) TRL_TRY(trl_graph_add_dependency(t->graph, task[i - groups], task[i]));
            if (g > 0) TRL_TRY(trl_graph_add_dependency(t->graph, task[i - 1], task[i]));
        }
    TRL_TRY(trl_graph_freeze(t->graph));
    TRL_TRY(trl_graph_prepare(t->graph, t->model->workers));
done:
    free(task);
    return err;
}

static trl_err allocate(trli_time_blocks *t)
{
    size_t arrays = 0, n = 0;
    for (int i = 0; i < t->plan.nops; ++i) arrays += (size_t)(t->plan.op[i].ninputs + t->plan.op[i].noutputs);
    t->call = calloc((size_t)t->plan.nops + 1, sizeof *t->call);
    t->arrays = calloc(arrays + 1, sizeof *t->arrays);
    t->native_arrays = calloc(arrays + 1, sizeof *t->native_arrays);
    t->inside = calloc(arrays + 1, sizeof *t->inside);
    t->scalar = calloc((size_t)t->executions * (size_t)t->model->nscalars, sizeof *t->scalar);
    t->nonfinite = calloc((size_t)t->model->nworkers * (size_t)t->executions, sizeof *t->nonfinite);
    if (!t->call || !t->arrays || !t->native_arrays || !t->inside || !t->scalar || !t->nonfinite)
        return trl_fail(t->model->ctx, TRL_ERR_MEMORY, NULL, "no memory for blocks in time");
    for (int i = 0; i < t->plan.nops; ++i) {
        t->call[i] = (call){t->arrays + n, t->native_arrays + n, t->inside + n};
        n += (size_t)(t->plan.op[i].ninputs + t->plan.op[i].noutputs);
    }
    return TRL_OK;
}

trl_err trli_time_blocks_create(trli_program *program, const trli_rotation *rotation, const trli_time_shape *shape,
                                trli_time_blocks **blocks, const char **why)
{
    trli_model *model = program->model;
    trli_time_blocks *t = calloc(1, sizeof *t);
    trl_err err = TRL_OK;
    *blocks = NULL;
    if (!t) return trl_fail(model->ctx, TRL_ERR_MEMORY, NULL, "no memory for blocks in time");
    *t = (trli_time_blocks){.model = model, .program = program, .executions = shape->executions};
    TRL_TRY(trli_time_plan_make(program, rotation, shape->executions, &t->plan, why));
    if (*why) goto done;
    const trli_kernel_run place = {.grid = &model->layout->grid,
                                   .patch = &model->layout->patch[model->layout->local[0]]};
    t->grid = trli_kernel_grid_of(&place);
    choose_sizes(t, shape->bytes);
    TRL_TRY(allocate(t));
    TRL_TRY(build_graph(t));
    *blocks = t;
    t = NULL;
done:
    trli_time_blocks_destroy(&t);
    return err;
}

void trli_time_blocks_destroy(trli_time_blocks **blocks)
{
    trli_time_blocks *t = *blocks;
    *blocks = NULL;
    if (!t) return;
    trl_graph_destroy(&t->graph);
    trli_time_plan_free(&t->plan);
    free(t->call);
    free(t->arrays);
    free(t->native_arrays);
    free(t->inside);
    free(t->scalar);
    free(t->nonfinite);
    free(t->part);
    free(t);
}

void trli_time_blocks_sizes(const trli_time_blocks *t, trli_time_sizes *sizes)
{
    const int64_t points = (int64_t)extent(&t->plan, 0) * extent(&t->plan, 1) * extent(&t->plan, 2);
    *sizes = (trli_time_sizes){.values = points * t->plan.nslots,
                               .executions = t->executions,
                               .blocks = t->count[0],
                               .tasks = t->count[0] * t->ngroups,
                               .block = t->thick[0],
                               .front = t->thick[1],
                               .block_axis = t->plan.axis[0],
                               .front_axis = t->plan.axis[1]};
}
