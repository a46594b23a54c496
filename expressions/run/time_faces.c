/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include "time_faces_impl.h"

#include <exchange_impl.h>

#include "arithmetic_impl.h"
#include "context_impl.h"
#include "cost_impl.h"
#include "memory_impl.h"
#include "model_run_impl.h"

typedef struct face_task {
    const trli_time_faces *faces;
    int message;
    trl_handle handle; /* what it has sent, or received */
} face_task;

struct trli_time_faces {
    const trli_time_plan *plan;
    const trli_time_cuts *cuts;
    int blocks;         /* with messages of their own: all, or 1 if ranks cut rows in different ways */
    trl_exchange *what; /* the plan of messages. Labels: by block faces, then what is sent back */
    trli_exchange_piece *receive, *send;
    int nreceives, nsends, receives_capacity, sends_capacity;
    face_task *sent, *received; /* by message */
    trl_handle posted;
};

/* ---- running: after an error too, so that no other rank waits for this one ---- */

static trl_exchange *exchange_of(const trl_task_args *args)
{
    const trli_frame *frame = args->frame;
    return frame->exchange[TRLI_FACES_EXCHANGE].exchange;
}

static int ops_of_execution(const trli_time_plan *plan)
{
    int n = 0;
    while (n < plan->nops && plan->op[n].execution == 0) ++n;
    return n;
}

/* The memory of a piece in a pass, and how many of its planes it has then. What is sent back is what the last execution
 * of the pass computed. */
static int field_of(const trli_time_faces *faces, const trli_exchange_piece *piece, const trl_task_args *args,
                    trl_lidx *planes)
{
    const trli_pass_frame *frame = args->frame;
    const trli_time_plan *plan = faces->plan;
    *planes = piece->extent[plan->axis[1]];
    if (piece->label < faces->blocks) return piece->field;
    const int n = ops_of_execution(plan);
    for (int i = 0, output = 0; i < n; ++i)
        for (int o = 0; o < plan->op[i].noutputs; ++o, ++output) {
            const trli_time_op *op = &plan->op[i + n * (frame->executions - 1)];
            if (output != piece->field) continue;
            *planes = op->skew;
            return op->field[op->ninputs + o];
        }
    return -1;
}

static trl_err post(void *data, const trl_task_args *args, bool *done)
{
    (void)data;
    return trli_exchange_post(exchange_of(args), done);
}

/* Planes of a piece are chunks of it: they follow one another along its last axis. */
static void pack(const face_task *t, const trl_task_args *args)
{
    const trl_exchange *exchange = exchange_of(args);
    const trli_message *m = &exchange->sends.message[t->message];
    for (int n = m->first; n < m->first + m->n; ++n) {
        const trli_exchange_piece *piece = &exchange->sends.transfer[n];
        trl_lidx planes;
        const int field = field_of(t->faces, piece, args, &planes);
        const trl_array source = trli_frame_array(args->frame, field, 0, 0);
        for (trl_lidx k = 0; k < planes; ++k)
            trli_exchange_pack(exchange, t->message, n, k, piece->extent[t->faces->plan->axis[1]], &source);
    }
}

static trl_err pack_and_send(void *data, const trl_task_args *args, bool *done)
{
    const face_task *t = data;
    if (!exchange_of(args)->sends.message[t->message].started) pack(t, args);
    return trli_exchange_send(exchange_of(args), t->message, done);
}

static trl_err receive_and_unpack(void *data, const trl_task_args *args, bool *done)
{
    const face_task *t = data;
    trl_exchange *exchange = exchange_of(args);
    const trli_message *m = &exchange->receives.message[t->message];
    trl_err err;
    TRL_TRY(trli_exchange_receive(exchange, t->message, done));
    if (!*done) return TRL_OK;
    trl_run_note_sent(args->run, m->sent_ns);
    for (int n = m->first; n < m->first + m->n; ++n) {
        const trli_exchange_piece *piece = &exchange->receives.transfer[n];
        trl_lidx planes;
        const int field = field_of(t->faces, piece, args, &planes);
        const trl_array target = trli_frame_array(args->frame, field, 0, 0);
        for (trl_lidx k = 0; k < planes; ++k)
            trli_exchange_unpack(exchange, t->message, n, k, piece->extent[t->faces->plan->axis[1]], &target);
    }
    trli_exchange_release(exchange, t->message);
done:
    return err;
}

/* ---- which fronts ---- */

void trli_time_faces_fronts(const trli_time_plan *plan, const trli_time_cuts *cuts, int *last, int *first)
{
    const int axis = plan->axis[1];
    const trl_lidx cells = trli_time_plan_cells(plan, axis);
    trl_lidx reach = 0, end = 0, read = cells, shift = 0;
    for (const trli_time_op *op = plan->op; op < plan->op + plan->nops; ++op) {
        for (int i = 0; i < op->ninputs; ++i) {
            const trl_offsets r = trli_time_op_reach(op, i);
            reach = trli_max(reach, trli_max(-r.lo[axis], r.hi[axis]));
        }
        end = trli_max(end, op->skew);
        shift = trli_min(shift, op->shift[1]);
    }
    for (int f = 0; f < plan->nfaces; ++f) {
        const trli_time_face *face = &plan->face[f];
        end = trli_max(end, face->hi);
        read = trli_min(read, cells + face->lo - reach + (face->op < 0 ? shift : plan->op[face->op].shift[1]));
    }
    *last = (end + reach + plan->most_shift[1] - cuts->first[1]) / cuts->thick[1];
    *first = (read - cuts->first[1]) / cuts->thick[1];
}

/* ---- the messages ---- */

/* Patches that lie beside this one, not before or behind it: ids count along the axis of fronts last. */
static int columns_of(const trli_time_plan *plan)
{
    const trl_layout *layout = plan->model->layout;
    int n = 1;
    for (int a = 0; a < plan->axis[1]; ++a) n *= layout->counts[a];
    return n;
}

/* The rank of the next patch along the axis of fronts, or of the one before. */
static int rank_beside(const trli_time_plan *plan, int step)
{
    const trl_layout *layout = plan->model->layout;
    const int columns = columns_of(plan), all = columns * layout->counts[plan->axis[1]];
    return trl_layout_patch(layout, (layout->patch[0].id + step * columns + all) % all).rank;
}

/* Add the pieces of a message with the planes lo to hi of some rows. back: they are sent to the next patch, whose first
 * planes they are; else to the patch before, where they lie beyond the end. */
static trl_err add_piece(trli_time_faces *faces, bool back, int label, int field, const trl_box *rows, trl_lidx lo,
                         trl_lidx hi)
{
    const trli_time_plan *plan = faces->plan;
    trl_context *ctx = plan->model->ctx;
    const int axis = plan->axis[1], id = plan->model->layout->patch[0].id;
    const trl_lidx cells = trli_time_plan_cells(plan, axis);
    trli_exchange_piece piece = {.label = label, .field = field, .value_bytes = sizeof(double)};
    if (!trli_make_room(ctx, &faces->send, faces->nsends, 1, &faces->sends_capacity, sizeof piece) ||
        !trli_make_room(ctx, &faces->receive, faces->nreceives, 1, &faces->receives_capacity, sizeof piece))
        return trli_no_memory(ctx, NULL, "for the messages of a pass");
    for (int a = 0; a < 3; ++a) {
        piece.from[a] = piece.to[a] = rows->lo[a];
        piece.extent[a] = rows->hi[a] - rows->lo[a];
    }
    piece.extent[axis] = hi - lo;
    piece.from[axis] = back ? cells + lo : lo;
    piece.to[axis] = back ? lo : cells + lo;
    piece.source = piece.target = id;
    if (trli_time_plan_shares(plan, axis, back)) {
        piece.peer = rank_beside(plan, back ? 1 : -1);
        piece.target_local = -1;
        piece.direction = faces->nsends;
        faces->send[faces->nsends++] = piece;
    }
    if (trli_time_plan_shares(plan, axis, !back)) {
        piece.peer = rank_beside(plan, back ? -1 : 1);
        piece.target_local = 0;
        piece.source_local = -1;
        piece.direction = faces->nreceives;
        faces->receive[faces->nreceives++] = piece;
    }
    return TRL_OK;
}

/* The rows of an operation in a block, which go round the end of a periodic axis at most once. */
static trl_err add_rows(trli_time_faces *faces, bool back, int block, int field, const trli_time_op *op, trl_lidx lo,
                        trl_lidx hi)
{
    const trli_time_plan *plan = faces->plan;
    const trl_layout *layout = plan->model->layout;
    const int axis = plan->axis[0], label = back ? faces->blocks + block : block;
    const trl_lidx n = (trl_lidx)layout->grid.cells[axis];
    trl_box first = op->box, second;
    trl_err err = TRL_OK;
    if (faces->blocks > 1) trli_time_clip(plan, faces->cuts, op, 0, block, &first);
    second = first;
    if (trli_goes_round(layout, axis) && first.hi[axis] > n) {
        first.hi[axis] = n;
        second.lo[axis] = second.lo[axis] > n ? second.lo[axis] - n : 0;
        second.hi[axis] -= n;
        if (second.lo[axis] < second.hi[axis]) TRL_TRY(add_piece(faces, back, label, field, &second, lo, hi));
    }
    if (first.lo[axis] < first.hi[axis]) TRL_TRY(add_piece(faces, back, label, field, &first, lo, hi));
done:
    return err;
}

/* What a field has before the pass, with ghosts beyond other axes that were exchanged. */
static trl_box box_before(const trli_time_plan *plan, int field)
{
    const trl_layout *layout = plan->model->layout;
    trl_box all = trl_patch_owned(layout, &layout->patch[0], plan->model->field[field].location);
    for (int a = 0; a < plan->axis[1]; ++a) {
        if (trli_time_plan_shares(plan, a, 0)) all.lo[a] += plan->deep[field].lo[a];
        if (trli_time_plan_shares(plan, a, 1)) all.hi[a] += plan->deep[field].hi[a];
    }
    return all;
}

static trl_err add_face(trli_time_faces *faces, const trli_time_face *face)
{
    trl_err err = TRL_OK;
    if (face->op < 0) {
        const trl_box all = box_before(faces->plan, face->field);
        return add_piece(faces, false, 0, face->field, &all, face->lo, face->hi);
    }
    for (int b = 0; b < faces->blocks; ++b)
        TRL_TRY(add_rows(faces, false, b, face->field, &faces->plan->op[face->op], face->lo, face->hi));
done:
    return err;
}

/* Of what lasts beyond a pass the last execution's results: by their number within an execution, since which memory
 * they are in depends on how many there are. */
static trl_err add_back(trli_time_faces *faces)
{
    const trli_time_plan *plan = faces->plan;
    const int n = ops_of_execution(plan);
    trl_err err = TRL_OK;
    for (int i = 0, output = 0; i < n; ++i)
        for (int o = 0; o < plan->op[i].noutputs; ++o, ++output) {
            const trli_time_op *op = &plan->op[plan->nops - n + i];
            if (op->slab || op->images || !plan->model->field[op->output[o]].persistent || op->skew == 0) continue;
            for (int b = 0; b < faces->blocks; ++b) TRL_TRY(add_rows(faces, true, b, output, op, 0, op->skew));
        }
done:
    return err;
}

/* What ranks have to have in common for messages of single blocks: a number that is the same if it is. */
static int64_t digest(const trli_time_plan *plan, const trli_time_cuts *cuts)
{
    uint64_t sum = (uint64_t)cuts->count[0];
    const int axis = plan->axis[0];
    sum = sum * 1000003 + (uint64_t)cuts->thick[0];
    sum = sum * 1000003 + (uint64_t)cuts->first[0];
    for (const trli_time_op *op = plan->op; op < plan->op + plan->nops; ++op) {
        if (op->slab || op->images) continue;
        const trl_lidx value[] = {op->shift[0], op->start[0], op->box.lo[axis], op->box.hi[axis]};
        for (size_t k = 0; k < sizeof value / sizeof *value; ++k) sum = sum * 1000003 + (uint64_t)(uint32_t)value[k];
    }
    return (int64_t)(sum >> 2);
}

trl_err trli_time_faces_create(const trli_time_plan *plan, const trli_time_cuts *cuts, trli_time_faces **result)
{
    trli_time_faces *faces = *result = trli_new(plan->model->ctx, 1, sizeof *faces);
    if (!faces) return trli_no_memory(plan->model->ctx, NULL, "for the messages of a pass");
    *faces = (trli_time_faces){.plan = plan, .cuts = cuts};
    return TRL_OK;
}

static face_task *new_tasks(const trli_time_faces *faces, int n)
{
    face_task *task = trli_new(faces->plan->model->ctx, (size_t)n + 1, sizeof *task);
    for (int i = 0; i < n && task; ++i) task[i] = (face_task){faces, i, -1};
    return task;
}

static trl_err plan_messages(trli_time_faces *faces, int labels)
{
    trl_context *ctx = faces->plan->model->ctx;
    trl_err err = TRL_OK;
    for (int f = 0; f < faces->plan->nfaces; ++f) TRL_TRY(add_face(faces, &faces->plan->face[f]));
    TRL_TRY(add_back(faces));
    TRL_TRY(trli_exchange_plan_pieces(ctx, labels, faces->nreceives, faces->receive, faces->nsends, faces->send,
                                      &faces->what));
    faces->what->late = true;
    faces->sent = new_tasks(faces, faces->what->sends.nmessages);
    faces->received = new_tasks(faces, faces->what->receives.nmessages);
    if (!faces->sent || !faces->received) TRL_TRY(trli_no_memory(ctx, NULL, "for the messages of a pass"));
done:
    return err;
}

/* Find out whether patches behind one another have the same blocks, and how many blocks any patch has. Collective: yes.
 */
static trl_err compare_cuts(const trli_time_faces *faces, bool *same, int *most)
{
    const trli_time_plan *plan = faces->plan;
    trl_context *ctx = plan->model->ctx;
    const int columns = columns_of(plan), mine = plan->model->layout->patch[0].id % columns;
    int64_t *value =
        trli_new(ctx, 2 * (size_t)columns + 1, sizeof *value); /* the largest of numbers, of their opposites */
    trl_err err = value ? TRL_OK : trli_no_memory(ctx, NULL, "for the messages of a pass");
    for (int i = 0; value && i < 2 * columns; ++i) value[i] = INT64_MIN;
    if (value) {
        value[mine] = digest(plan, faces->cuts);
        value[columns + mine] = -value[mine];
        value[2 * columns] = faces->cuts->count[0];
    }
    TRL_TRY(trli_allreduce_after(ctx, err, value, 2 * columns + 1, MPI_INT64_T, MPI_MAX));
    *same = true;
    for (int i = 0; i < columns; ++i) *same &= value[i] == -value[columns + i];
    *most = (int)value[2 * columns];
done:
    trli_free(value);
    return err;
}

trl_err trli_time_faces_connect(trli_time_faces *faces, const trli_loans *loans, trli_exchange_run *run)
{
    const trli_model *model = faces->plan->model;
    bool same;
    int most;
    trl_err err;
    TRL_TRY(compare_cuts(faces, &same, &most));
    faces->blocks = same ? faces->cuts->count[0] : 1;
    TRL_TRY(trl_context_agree(model->ctx, plan_messages(faces, 2 * most)));
    TRL_TRY(trli_exchange_connect(model, faces->what, loans, run));
done:
    return err;
}

void trli_time_faces_destroy(trli_time_faces **faces)
{
    trli_time_faces *f = *faces;
    *faces = NULL;
    if (!f) return;
    trl_exchange_destroy(&f->what);
    trli_free(f->send);
    trli_free(f->receive);
    trli_free(f->sent);
    trli_free(f->received);
    trli_free(f);
}

/* ---- building ---- */

static trl_err add(trli_task_builder *b, const char *name, trl_task_fn run, void *data, int priority, trl_task *task)
{
    const trl_task_desc desc = {.name = name,
                                .variant = {[TRL_KIND_CPU] = {run}},
                                .data = data,
                                .chunks = 1,
                                .flags = TRL_TASK_ALWAYS | TRL_TASK_POLL,
                                .cost = TRLI_MESSAGE_SECONDS,
                                .priority = priority};
    return trl_graph_add_task(b->graph, &desc, task);
}

/* The message of a label, or NULL: nothing is sent, or received. */
static face_task *task_of(face_task *task, const trli_traffic *traffic, int label)
{
    for (int i = 0; i < traffic->nmessages; ++i)
        if (traffic->message[i].label == label) return &task[i];
    return NULL;
}

static trl_err add_receive(trli_time_faces *faces, trli_task_builder *b, face_task *t, trl_task *task)
{
    trl_err err = TRL_OK;
    TRL_TRY(add(b, "receive", receive_and_unpack, t, 0, task));
    TRL_TRY(trli_builder_value(b, *task, &faces->posted, "posted", TRL_READ));
    TRL_TRY(trli_builder_value(b, *task, &t->handle, "received", TRL_WRITE));
done:
    return err;
}

trl_err trli_time_faces_begin(trli_time_faces *faces, trli_task_builder *b)
{
    trl_task task;
    trl_err err = TRL_OK;
    faces->posted = -1;
    TRL_TRY(add(b, "post", post, faces, 1, &task));
    TRL_TRY(trli_builder_value(b, task, &faces->posted, "posted", TRL_WRITE));
    for (int i = 0; i < faces->what->receives.nmessages; ++i)
        if (faces->what->receives.message[i].label < faces->blocks)
            TRL_TRY(add_receive(faces, b, &faces->received[i], &task));
done:
    return err;
}

/* The message to which a block belongs, where that block is the first or the last of it; else -1. */
static int message_of(const trli_time_faces *faces, int block, bool last)
{
    if (faces->blocks > 1) return block;
    return block == (last ? faces->cuts->count[0] - 1 : 0) ? 0 : -1;
}

trl_err trli_time_faces_before(trli_time_faces *faces, trli_task_builder *b, int block, unsigned places, trl_task task)
{
    const int label = message_of(faces, block, false);
    face_task *t = task_of(faces->received, &faces->what->receives, label);
    if (!(places & TRLI_FACES_READ) || !t) return TRL_OK;
    return trli_builder_value(b, task, &t->handle, "received", TRL_READ);
}

static trl_err add_send(trli_time_faces *faces, trli_task_builder *b, int label, trl_handle *front)
{
    face_task *t = task_of(faces->sent, &faces->what->sends, label);
    trl_task task;
    trl_err err = TRL_OK;
    if (!t) return TRL_OK;
    TRL_TRY(add(b, "send", pack_and_send, t, 1, &task));
    TRL_TRY(trli_builder_value(b, task, &faces->posted, "posted", TRL_READ));
    TRL_TRY(trli_builder_value(b, task, front, "front", TRL_READ));
    TRL_TRY(trli_builder_value(b, task, &t->handle, "sent", TRL_WRITE));
done:
    return err;
}

trl_err trli_time_faces_after(trli_time_faces *faces, trli_task_builder *b, int block, unsigned places,
                              trl_handle *front)
{
    const int message = message_of(faces, block, true);
    trl_err err = TRL_OK;
    if (message < 0) return TRL_OK;
    if (places & TRLI_FACES_SENT) TRL_TRY(add_send(faces, b, message, front));
    if (places & TRLI_FACES_BACK) TRL_TRY(add_send(faces, b, faces->blocks + message, front));
done:
    return err;
}

/* What comes back is put where faces were: once all of them are sent, and with them the first fronts of all blocks are
 * done. */
trl_err trli_time_faces_end(trli_time_faces *faces, trli_task_builder *b)
{
    const trli_traffic *sends = &faces->what->sends, *receives = &faces->what->receives;
    trl_task task;
    trl_err err = TRL_OK;
    for (int i = 0; i < receives->nmessages; ++i) {
        if (receives->message[i].label < faces->blocks) continue;
        TRL_TRY(add_receive(faces, b, &faces->received[i], &task));
        for (int k = 0; k < sends->nmessages; ++k)
            if (sends->message[k].label < faces->blocks)
                TRL_TRY(trli_builder_value(b, task, &faces->sent[k].handle, "sent", TRL_READ));
    }
done:
    return err;
}
