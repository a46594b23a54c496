/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Several executions of a program as one task graph: of each patch tasks (b, g), the fronts of group g in block b, each
 * after (b-1, g) and (b, g-1), and the first after the exchange of deep ghosts. time_plan.c says why that is right. */
#include <stddef.h>
#include <string.h>

#include <chunks_impl.h>

#include "arithmetic_impl.h"
#include "builder_impl.h"
#include "compute_impl.h"
#include "cost_impl.h"
#include "halos_impl.h"
#include "kernels_impl.h"
#include "memory_impl.h"
#include "messages_impl.h"
#include "model_run_impl.h"
#include "pipeline_impl.h"
#include "slot_plan_impl.h"
#include "tasks_impl.h"
#include "time_blocks_impl.h"
#include "time_faces_impl.h"

enum {
#ifdef TRL_SMALL_SIZES /* builds for testing: small problems get blocks too */
    BLOCK_LEAST = 3,
#else
    BLOCK_LEAST = 16,
#endif
    CALL_POINTS = 4096, /* of a call, if the front's planes are fewer */
    INTERLEAVE = 2      /* planes: a row in the first-level cache serves that many */
};

/* Of a task, at least, as the cost model predicts it for values from memory. Its values come from caches for the most
 * part, so that it takes some ten microseconds. */
#ifdef TRL_SMALL_SIZES
static const double task_seconds = 4e-6;
#else
static const double task_seconds = 5e-5;
#endif

/* The kernels of a plan on a patch, bound for the pass under way. */
typedef struct calls {
    int n;
    trli_bound_kernel *kernel; /* [plan.nops] */
    char *room;                /* of all of them */
} calls;

/* The frame of a pass. */
typedef struct pass_frame {
    trli_pass_frame pass;  /* first, for the tasks of messages */
    trli_frame *execution; /* [executions] with scalars and records of its own */
    calls *calls;          /* [local patches] */
} pass_frame;

typedef struct patch_pass patch_pass;

typedef struct part {
    const patch_pass *pass;
    int block, group;
} part;

/* What passes over patches of a kind have in common. */
typedef struct kind_pass {
    trli_time_plan plan; /* of the first patch of the kind */
    trli_time_cuts cuts;
    int group, ngroups; /* fronts of a task */
    double seconds;     /* of a task, as predicted */
} kind_pass;

/* The pass over a patch. */
struct patch_pass {
    const trli_time_blocks *blocks;
    const kind_pass *kind;
    int patch;
    part *part; /* [count[0]][ngroups] */
};

struct trli_time_blocks {
    trli_model *model;
    trli_program *program;
    int executions;          /* of a pass, at most */
    kind_pass *kind;         /* [kinds of patches] */
    patch_pass *pass;        /* [local patches] */
    trli_exchanged deep;     /* before a pass; of no fields: there is none */
    int layers;              /* of the ghosts that it fills, at most */
    trli_time_faces *faces;  /* of a skewed pass; else NULL */
    int sent, read;          /* of a skewed pass: the last task of a block that touches what is sent, and the
                                     first that reads faces */
    trl_exchange *what;      /* that it moves; NULL: no exchange */
    trli_step_task *halo;    /* [local patches] what each copies from others of this rank */
    trli_step_task *message; /* the tasks of messages */
    trl_graph *graph;
    trli_frame *of;    /* the fields' frame */
    pass_frame *frame; /* all that a pass changes beside them */
};

/* ---- running ---- */

/* Where a field has ghosts beyond periodic sides, they are images of points inside: copy those of a box. */
static void put_images(const trl_layout *layout, const trl_array *array, const trl_box *box)
{
    for (int image = 0; image < 27; ++image) {
        const int period[3] = {image % 3 - 1, image / 3 % 3 - 1, image / 9 - 1};
        trl_box to = *box;
        ptrdiff_t back = 0;
        bool there = image != 13; /* the box itself */
        for (int a = 0; a < 3; ++a) {
            const trl_lidx by = period[a] * (trl_lidx)layout->grid.cells[a];
            if (period[a] == 0) continue;
            there &= trli_goes_round(layout, a);
            to.lo[a] = to.lo[a] + by > array->held.lo[a] ? to.lo[a] + by : array->held.lo[a];
            to.hi[a] = to.hi[a] + by < array->held.hi[a] ? to.hi[a] + by : array->held.hi[a];
            there &= to.lo[a] < to.hi[a];
            back += by * array->stride[a];
        }
        if (there) trli_copy_images(array, &to, back);
    }
}

static void run_op(const patch_pass *pass, const pass_frame *in, int i, int worker, const trl_box *box)
{
    const trli_time_blocks *t = pass->blocks;
    const trl_layout *layout = t->model->layout;
    const trli_time_op *op = &pass->kind->plan.op[i];
    const trli_frame *frame = &in->execution[op->execution];
    const trli_step_run *run = trli_run_of(t->program, op->step);
    trli_bound_kernel kernel = in->calls[pass->patch].kernel[i];
    if (op->slab && run->native && run->slab[op->slab - op->plan->slab].within) return;
    if (op->images) {
        put_images(layout, &kernel.array[0], box);
        return;
    }
    /* Other patches check the points that they own; in a skewed pass each point is computed once. */
    trl_box owned = trl_patch_owned(layout, &layout->patch[pass->patch], t->model->field[*op->output].location);
    const int axis = pass->kind->plan.axis[1];
    if (pass->kind->plan.skewed) owned.lo[axis] = op->box.lo[axis], owned.hi[axis] = op->box.hi[axis];
    kernel.within = &owned;
    kernel.block = box->hi[1] - box->lo[1];
    kernel.interleave = INTERLEAVE;
    trli_kernel_compute(&kernel, frame, worker, frame->scratch[worker], box);
    if (op->slab) put_images(layout, &kernel.array[op->ninputs], box);
}

/* Run a kernel on a box; a box beyond the end of a periodic axis is split in two, and the part beyond wraps around. */
static void run_wrapped(const patch_pass *pass, const pass_frame *in, int i, int worker, int which, const trl_box *box)
{
    const trl_layout *layout = pass->blocks->model->layout;
    if (which == 2) {
        if (trl_box_points(box) > 0) run_op(pass, in, i, worker, box);
        return;
    }
    const int axis = pass->kind->plan.axis[which];
    const trl_lidx n = (trl_lidx)layout->grid.cells[axis];
    if (!trli_goes_round(layout, axis) || box->hi[axis] <= n) {
        run_wrapped(pass, in, i, worker, which + 1, box);
        return;
    }
    trl_box first = *box, second = *box;
    first.hi[axis] = n;
    second.lo[axis] = box->lo[axis] > n ? box->lo[axis] - n : 0;
    second.hi[axis] -= n;
    run_wrapped(pass, in, i, worker, which + 1, &first);
    run_wrapped(pass, in, i, worker, which + 1, &second);
}

static trl_err run_part(void *data, const trl_task_args *args, bool *done)
{
    const part *p = data;
    const kind_pass *kind = p->pass->kind;
    const pass_frame *in = args->frame;
    const int first = p->group * kind->group,
              end = p->group + 1 < kind->ngroups ? first + kind->group : kind->cuts.count[1];
    (void)done;
    for (int f = first; f < end; ++f)
        for (int i = 0; i < in->calls[p->pass->patch].n; ++i) {
            trl_box box = kind->plan.op[i].box;
            trli_time_clip(&kind->plan, &kind->cuts, &kind->plan.op[i], 0, p->block, &box);
            trli_time_clip(&kind->plan, &kind->cuts, &kind->plan.op[i], 1, f, &box);
            if (trl_box_points(&box) > 0) run_wrapped(p->pass, in, i, args->worker, 0, &box);
        }
    return TRL_OK;
}

void trli_time_blocks_set_scalars(trli_time_blocks *t, int execution)
{
    const trli_frame *frame = &t->frame->execution[execution];
    memcpy(frame->scalar, t->of->scalar, (size_t)t->model->nscalars * sizeof *frame->scalar);
    for (int i = 0; i < t->program->nsteps; ++i)
        if (t->program->plan->step[i].live && t->program->step[i].kind == TRLI_STEP_SCALAR)
            trli_scalar_compute(t->program, &t->program->step[i], frame, 0);
}

/* Room of a bound kernel; of images, for their array. */
static size_t room_of(const trli_program *program, const trli_time_op *op)
{
    enum { LINE = 64 };
    if (op->images) return (sizeof(trl_array) + LINE - 1) / LINE * LINE;
    return trli_bound_kernel_bytes(program, op->step, op->slab);
}

/* Bind the kernels of a pass: arrays move when time levels rotate. */
static void bind(const patch_pass *pass, const calls *calls)
{
    const trli_time_blocks *t = pass->blocks;
    char *room = calls->room;
    for (int i = 0; i < calls->n; ++i) {
        const trli_time_op *op = &pass->kind->plan.op[i];
        const trli_kernel_place place = {.program = t->program,
                                         .step = op->step,
                                         .slab = op->slab,
                                         .patch = pass->patch,
                                         .input = op->field,
                                         .output = op->field + op->ninputs};
        if (op->images) {
            calls->kernel[i].array = (trl_array *)room;
            calls->kernel[i].array[0] = trli_frame_array(t->of, op->field[0], pass->patch, 0);
        } else {
            trli_kernel_bind(&place, t->of, room, &calls->kernel[i]);
        }
        room += room_of(t->program, op);
    }
}

trl_err trli_time_blocks_run(trli_time_blocks *t, int executions)
{
    for (int p = 0; p < t->model->layout->nlocal; ++p) {
        const trli_time_plan *plan = &t->pass[p].kind->plan;
        calls *calls = &t->frame->calls[p];
        calls->n = 0;
        while (calls->n < plan->nops && plan->op[calls->n].execution < executions) ++calls->n;
        bind(&t->pass[p], calls);
    }
    for (int e = 0; e < t->executions; ++e)
        for (int w = 0; w < t->model->run->lanes; ++w) t->frame->execution[e].nonfinite[w].found = false;
    t->frame->pass.executions = executions;
    return trl_graph_run(t->graph, t->model->run->workers, t->frame);
}

trl_err trli_time_blocks_drain(trli_time_blocks *t)
{
    return trl_graph_drain(t->graph, t->model->run->workers, t->frame);
}

int trli_time_blocks_nonfinite(const trli_time_blocks *t)
{
    for (int e = 0; e < t->executions; ++e)
        for (int w = 0; w < t->model->run->lanes; ++w)
            if (t->frame->execution[e].nonfinite[w].found) return e;
    return -1;
}

void trli_time_blocks_show_nonfinite(trli_time_blocks *t, int execution)
{
    for (int w = 0; w < t->model->run->lanes; ++w) t->of->nonfinite[w] = t->frame->execution[execution].nonfinite[w];
}

/* ---- making ---- */

/* Points that kernels compute along an axis: lo <= i < hi. */
static void extent(const trli_time_plan *plan, int axis, trl_lidx *lo, trl_lidx *hi)
{
    *lo = 0;
    *hi = 1;
    for (int i = 0; i < plan->nops; ++i) {
        const trl_box *box = &plan->op[i].box;
        if (plan->op[i].slab) continue;
        if (box->lo[axis] < *lo) *lo = box->lo[axis];
        if (box->hi[axis] > *hi) *hi = box->hi[axis];
    }
}

/* Rows of a block: those of all planes that are under way have room in the bytes, and all workers have blocks. Planes
 * of a front: enough points for a call. Fronts of a task: enough seconds. */
static void choose_sizes(const trli_time_blocks *t, kind_pass *pass, size_t bytes)
{
    const trli_time_plan *plan = &pass->plan;
    trli_time_cuts *cuts = &pass->cuts;
    const int workers = t->model->run->nworkers;
    trl_lidx n[2], row = 1, before, end; /* row: points of a plane of a front, for each row of a block */
    for (int i = 0; i < 2; ++i) {
        extent(plan, plan->axis[i], &cuts->first[i], &end);
        n[i] = end - cuts->first[i] + plan->most_shift[i] + plan->most_start[i];
    }
    extent(plan, 0, &before, &end);
    if (plan->axis[0] != 0) row = end - before;
    const size_t planes = (size_t)(plan->most_shift[1] + INTERLEAVE + 2) * (size_t)plan->nslots;
    const size_t room = bytes / (planes * (size_t)row * sizeof(double));
    trl_lidx rows =
        room > (size_t)plan->most_shift[0] + BLOCK_LEAST ? (trl_lidx)room - plan->most_shift[0] : BLOCK_LEAST;
    if (rows > n[0]) rows = n[0];
    int blocks = (trl_lidx)trli_ceil_div(n[0], rows);
    if (blocks > 1 || workers > 1)
        blocks = (trl_lidx)trli_ceil_div(blocks, workers) * workers; /* none is idle at the end */
    if (n[0] / blocks < BLOCK_LEAST) blocks = (trl_lidx)trli_max(n[0] / BLOCK_LEAST, 1);
    cuts->thick[0] = (trl_lidx)trli_ceil_div(n[0], blocks);
    cuts->count[0] = (trl_lidx)trli_ceil_div(n[0], cuts->thick[0]);
    cuts->thick[1] = INTERLEAVE;
    while (cuts->thick[1] * cuts->thick[0] * row < CALL_POINTS && cuts->thick[1] < plan->most_shift[1])
        cuts->thick[1] += INTERLEAVE;
    cuts->count[1] = (trl_lidx)trli_ceil_div(n[1], cuts->thick[1]);
    const int64_t points = (int64_t)cuts->thick[0] * cuts->thick[1] * row;
    const double seconds = trli_time_plan_seconds(t->program, plan, points, workers);
    pass->group = (int)trli_max((trl_lidx)(task_seconds / seconds), 1);
    pass->seconds = seconds * pass->group;
    pass->ngroups = (trl_lidx)trli_ceil_div(cuts->count[1], pass->group);
}

/* What messages have to do with the i-th task. */
static unsigned places_of(const trli_time_blocks *t, int groups, int i)
{
    const int group = i % groups;
    return (group == t->sent ? TRLI_FACES_SENT : 0) | (group == t->read ? TRLI_FACES_READ : 0) |
           (group == groups - 1 ? TRLI_FACES_BACK : 0);
}

/* A patch begins when its ghosts are there, and when others have what they get of it. */
static trl_err await_exchange(const trli_time_blocks *t, trli_task_builder *b, int patch, trl_task task)
{
    trl_err err = TRL_OK;
    for (int i = 0; i < t->deep.n; ++i)
        TRL_TRY(trli_builder_field(b, task, t->deep.field[i], patch, TRLI_SET_RIM | TRLI_SET_HALO, TRL_READ_WRITE));
done:
    return err;
}

/* Add the tasks of a pass. Each depends on its two neighbours before it, by handles, and the first on the exchange. */
static trl_err add_pass(trli_time_blocks *t, trli_task_builder *b, patch_pass *pass)
{
    const kind_pass *kind = pass->kind;
    const int groups = kind->ngroups, n = kind->cuts.count[0] * groups;
    trl_handle *front = trli_new(t->model->ctx, (size_t)n, sizeof *front);
    trl_err err = TRL_OK;
    pass->part = trli_new(t->model->ctx, (size_t)n, sizeof *pass->part);
    if (!front || !pass->part) TRL_TRY(trli_no_memory(t->model->ctx, NULL, "for blocks in time"));
    for (int i = 0; i < n; ++i) {
        const int block = i / groups;
        trl_task task;
        pass->part[i] = (part){pass, block, i % groups};
        front[i] = -1;
        TRL_TRY(trli_builder_add(b, t->program->name, run_part, &pass->part[i], 1, 0, kind->seconds, &task));
        if (i >= groups) TRL_TRY(trli_builder_value(b, task, &front[i - groups], "front", TRL_READ));
        if (i % groups > 0) TRL_TRY(trli_builder_value(b, task, &front[i - 1], "front", TRL_READ));
        if (i == 0) TRL_TRY(await_exchange(t, b, pass->patch, task));
        if (t->faces) TRL_TRY(trli_time_faces_before(t->faces, b, block, places_of(t, groups, i), task));
        TRL_TRY(trli_builder_value(b, task, &front[i], "front", TRL_WRITE));
        if (t->faces) TRL_TRY(trli_time_faces_after(t->faces, b, block, places_of(t, groups, i), &front[i]));
    }
done:
    trli_free(front);
    return err;
}

/* What a patch copies from others of this rank: consecutive pieces of the plan, from *next on. */
static trl_err add_halo(const trli_time_blocks *t, trli_task_builder *b, int patch, int *next)
{
    const trli_traffic *copies = &t->what->copies;
    const int first = *next;
    int64_t points = 0;
    trl_task task;
    for (; *next < copies->ntransfers && copies->transfer[*next].target_local == patch; ++*next) {
        const trl_lidx *extent = copies->transfer[*next].extent;
        points += (int64_t)extent[0] * extent[1] * extent[2];
    }
    if (first == *next) return TRL_OK;
    t->halo[patch] = (trli_step_task){.program = t->program,
                                      .patch = patch,
                                      .exchanged = &t->deep,
                                      .piece = copies->transfer + first,
                                      .npieces = *next - first};
    return trli_builder_halo(b, &t->deep, NULL, &t->halo[patch],
                             (int)trli_chunks_wanted(points, t->model->run->nworkers), TRLI_MESSAGE_SECONDS, &task);
}

static trl_err add_exchange(trli_time_blocks *t, trli_task_builder *b)
{
    const int np = t->model->layout->nlocal, messages = trli_messages_tasks(t->what);
    int copied = 0;
    trl_err err = TRL_OK;
    t->halo = trli_new(t->model->ctx, (size_t)np + 1, sizeof *t->halo);
    t->message = trli_new(t->model->ctx, (size_t)messages + 1, sizeof *t->message);
    if (!t->halo || !t->message) return trli_no_memory(t->model->ctx, NULL, "for blocks in time");
    for (int p = 0; p < np; ++p) TRL_TRY(add_halo(t, b, p, &copied));
    for (int i = 0; i < messages; ++i) t->message[i] = (trli_step_task){.program = t->program, .patch = -1};
    if (messages > 0) TRL_TRY(trli_messages_add(b, &t->deep, t->what, t->message));
done:
    return err;
}

static trl_err build_graph(trli_time_blocks *t)
{
    trli_task_builder b;
    trl_err err = TRL_OK;
    TRL_TRY(trli_builder_begin(&b, t->model, "time blocks", &t->graph));
    if (t->what) TRL_TRY(add_exchange(t, &b));
    if (t->faces) TRL_TRY(trli_time_faces_begin(t->faces, &b));
    for (int p = 0; p < t->model->layout->nlocal; ++p) TRL_TRY(add_pass(t, &b, &t->pass[p]));
    if (t->faces) TRL_TRY(trli_time_faces_end(t->faces, &b));
done:
    return trli_builder_end(&b, err);
}

static trl_err connect_exchange(trli_time_blocks *t, trli_exchange_run *run)
{
    trl_err err;
    TRL_TRY(trl_context_agree(t->model->ctx, trli_exchange_plan_of(t->model, &t->deep, &t->what)));
    TRL_TRY(trli_exchange_connect(t->model, t->what, t->of->loans, run));
done:
    return err;
}

trl_err trli_time_blocks_connect(trli_time_blocks *t)
{
    trl_err err = TRL_OK;
    trli_exchange_run *exchange = t->frame->pass.frame.exchange;
    if (t->deep.n > 0) TRL_TRY(connect_exchange(t, &exchange[0]));
    if (t->faces) TRL_TRY(trli_time_faces_connect(t->faces, t->of->loans, &exchange[TRLI_FACES_EXCHANGE]));
    err = build_graph(t);
done:
    return trl_context_agree(t->model->ctx, err);
}

static trl_err allocate_calls(const trli_program *program, const trli_time_plan *plan, calls *calls)
{
    size_t bytes = 0;
    for (int i = 0; i < plan->nops; ++i) bytes += room_of(program, &plan->op[i]);
    calls->kernel = trli_new(plan->model->ctx, (size_t)plan->nops + 1, sizeof *calls->kernel);
    calls->room = trli_new(plan->model->ctx, bytes + 1, 1);
    return calls->kernel && calls->room ? TRL_OK : trli_no_memory(plan->model->ctx, NULL, "for blocks in time");
}

/* Find the tasks of a block before and after messages: what is sent must not wait for what is received. */
static const char *place_faces(trli_time_blocks *t, kind_pass *kind)
{
    int last, first;
    trli_time_faces_fronts(&kind->plan, &kind->cuts, &last, &first);
    if (last >= first) return "patches are too thin to send planes before they need others";
    while (last / kind->group >= first / kind->group) --kind->group;
    kind->ngroups = (trl_lidx)trli_ceil_div(kind->cuts.count[1], kind->group);
    t->sent = last / kind->group;
    t->read = first / kind->group;
    return NULL;
}

/* Plan a patch as the first one of its kind was. */
static trl_err make_pass(trli_time_blocks *t, const trli_rotation *rotation, const trli_time_shape *shape, int patch,
                         const char **why)
{
    kind_pass *kind = &t->kind[t->model->slots->kinds.of[patch]];
    trl_err err = TRL_OK;
    t->pass[patch] = (patch_pass){.blocks = t, .kind = kind, .patch = patch};
    if (kind->plan.model) return TRL_OK;
    TRL_TRY(trli_time_plan_make(t->program, rotation, patch, shape->executions, shape->skewed, &kind->plan, why));
    if (!*why) choose_sizes(t, kind, shape->bytes);
    if (*why || !shape->skewed) goto done;
    *why = place_faces(t, kind);
    if (!*why) TRL_TRY(trli_time_faces_create(&kind->plan, &kind->cuts, &t->faces));
done:
    return err;
}

/* The exchange before a pass: of all that patches read of one another before they compute it. A skewed pass has other
 * messages along the axis of fronts. */
static trl_err plan_exchange(trli_time_blocks *t, const trli_rotation *rotation, bool skewed, const char **why)
{
    const int nfields = t->model->nfields;
    trli_exchanged *e = &t->deep;
    trli_time_plan plan;
    trl_err err = TRL_OK;
    TRL_TRY(trli_time_plan_list(t->program, rotation, TRLI_ANY_PATCH, t->executions, skewed, &plan, why));
    *e = (trli_exchanged){.field = trli_model_keep(t->model, (size_t)nfields * sizeof *e->field),
                          .reach = trli_model_keep(t->model, (size_t)nfields * sizeof *e->reach)};
    if (!e->field || !e->reach) TRL_TRY(t->model->ir.err);
    for (int f = 0; f < nfields; ++f) {
        trl_footprint reach = {.n = 1, .part = {plan.deep[f]}};
        trl_offsets *deep = &reach.part[0];
        if (skewed) deep->lo[plan.axis[1]] = deep->hi[plan.axis[1]] = 0;
        if (t->model->field[f].lasting || !trli_needs_exchange(t->model->layout, &reach)) continue;
        e->field[e->n] = f;
        e->reach[e->n++] = reach;
        for (int a = 0; a < 3; ++a) {
            if (-deep->lo[a] > t->layers) t->layers = -deep->lo[a];
            if (deep->hi[a] > t->layers) t->layers = deep->hi[a];
        }
    }
done:
    trli_time_plan_free(&plan);
    return err;
}

/* The exchange, if there is one, is connected later. */
static trl_err make_frame(trli_time_blocks *t)
{
    const trli_model *model = t->model;
    pass_frame *f = t->frame = trli_new(model->ctx, 1, sizeof *f);
    trl_err err = TRL_OK;
    if (!f) return trli_no_memory(model->ctx, NULL, "for blocks in time");
    f->pass.executions = t->executions; /* until a pass has run: a rank that failed before takes part in its messages */
    TRL_TRY(trli_frame_share(&f->pass.frame, t->of));
    f->pass.frame.exchange = trli_new(model->ctx, TRLI_PASS_EXCHANGES, sizeof *f->pass.frame.exchange);
    f->execution = trli_new(model->ctx, (size_t)t->executions, sizeof *f->execution);
    f->calls = trli_new(model->ctx, (size_t)model->layout->nlocal, sizeof *f->calls);
    if (!f->pass.frame.exchange || !f->execution || !f->calls)
        TRL_TRY(trli_no_memory(model->ctx, NULL, "for blocks in time"));
    for (int e = 0; e < t->executions; ++e) TRL_TRY(trli_frame_share(&f->execution[e], t->of));
    for (int p = 0; p < model->layout->nlocal; ++p)
        TRL_TRY(allocate_calls(t->program, &t->pass[p].kind->plan, &f->calls[p]));
done:
    return err;
}

static void free_frame(const trli_time_blocks *t)
{
    pass_frame *f = t->frame;
    if (!f) return;
    for (int p = 0; f->calls && p < t->model->layout->nlocal; ++p) {
        trli_free(f->calls[p].kernel);
        trli_free(f->calls[p].room);
    }
    for (int e = 0; f->execution && e < t->executions; ++e) trli_frame_release_shared(&f->execution[e]);
    for (int e = 0; f->pass.frame.exchange && e < TRLI_PASS_EXCHANGES; ++e)
        trli_exchange_disconnect(&f->pass.frame.exchange[e]);
    trli_free(f->pass.frame.exchange);
    trli_frame_release_shared(&f->pass.frame);
    trli_free(f->calls);
    trli_free(f->execution);
    trli_free(f);
}

trl_err trli_time_blocks_create(trli_program *program, trli_frame *frame, const trli_rotation *rotation,
                                const trli_time_shape *shape, trli_time_blocks **blocks, const char **why)
{
    trli_model *model = program->model;
    const size_t np = (size_t)model->layout->nlocal;
    trli_time_blocks *t = trli_new(model->ctx, 1, sizeof *t);
    trl_err err = TRL_OK;
    *blocks = NULL;
    if (!t) return trli_no_memory(model->ctx, NULL, "for blocks in time");
    *t = (trli_time_blocks){.model = model, .program = program, .of = frame, .executions = shape->executions};
    t->pass = trli_new(model->ctx, np + 1, sizeof *t->pass);
    t->kind = trli_new(model->ctx, (size_t)model->slots->kinds.n + 1, sizeof *t->kind);
    if (!t->pass || !t->kind) TRL_TRY(trli_no_memory(model->ctx, NULL, "for blocks in time"));
    TRL_TRY(plan_exchange(t, rotation, shape->skewed, why));
    for (int p = 0; p < (int)np && !*why; ++p) TRL_TRY(make_pass(t, rotation, shape, p, why));
    if (*why) goto done;
    TRL_TRY(make_frame(t));
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
    free_frame(t);
    trli_time_faces_destroy(&t->faces);
    trl_exchange_destroy(&t->what);
    trli_free(t->halo);
    trli_free(t->message);
    for (int p = 0; t->pass && p < t->model->layout->nlocal; ++p) trli_free(t->pass[p].part);
    for (int k = 0; t->kind && k < t->model->slots->kinds.n; ++k) trli_time_plan_free(&t->kind[k].plan);
    trli_free(t->pass);
    trli_free(t->kind);
    trli_free(t);
}

void trli_time_blocks_sizes(const trli_time_blocks *t, trli_time_sizes *sizes)
{
    const kind_pass *pass = t->pass[0].kind;
    const trli_exchange_run *exchange = t->frame->pass.frame.exchange;
    *sizes = (trli_time_sizes){.executions = t->executions,
                               .skewed = t->faces != NULL,
                               .blocks = pass->cuts.count[0],
                               .tasks = pass->cuts.count[0] * pass->ngroups,
                               .block = pass->cuts.thick[0],
                               .front = pass->cuts.thick[1],
                               .block_axis = pass->plan.axis[0],
                               .front_axis = pass->plan.axis[1],
                               .layers = t->layers,
                               .comm_bytes = exchange[0].bytes + exchange[TRLI_FACES_EXCHANGE].bytes,
                               .comm_messages = exchange[0].messages + exchange[TRLI_FACES_EXCHANGE].messages};
}
