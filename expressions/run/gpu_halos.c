/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Pieces of fields that GPUs copy: to ghosts of patches, and to and from messages. Many are one launch. */
#include <string.h>

#include "compute_impl.h"
#include "gpu_impl.h"
#include "gpu_kernel_impl.h"
#include "halos_impl.h"
#include "pipeline_impl.h"

bool trli_gpu_does_halos(const trli_model *model)
{
    return model->run->gpu_pieces && model->run->gpu_pieces->function;
}

size_t trli_gpu_halos_scratch(const trli_model *model)
{
    return model->run->gpu_pieces ? trli_gpu_room(2 * TRLI_GPU_PIECES, 3 * TRLI_GPU_PIECES) : 0;
}

/* ---- halos ---- */

/* Where a piece begins in the memory of a field on a patch. */
static trl_kernel_array place_of(const trl_task_args *args, int field, int patch, const trl_lidx at[3])
{
    const trl_array array = trli_frame_array(args->frame, field, patch, args->space);
    trl_kernel_array to;
    trli_native_set_array(&to, &array);
    to.at += trl_array_offset(&array, at[0], at[1], at[2]);
    return to;
}

/* Copies of pieces as one launch: from where, to where, and which points. */
typedef struct pieces {
    const trl_task_args *args;
    const trli_step_task *task;
    trli_gpu_call call;
    int n;
} pieces;

static void begin_pieces(pieces *p, const char *label)
{
    const trl_box none = {{0, 0, 0}, {0, 0, 1}};
    p->call = trli_gpu_begin_call(p->args, p->task, &none, 2 * TRLI_GPU_PIECES);
    p->call.label = label;
    p->call.shape = TRLI_GPU_BY_PIECES;
    p->n = 0;
    memset(p->call.array, 0, trli_gpu_room(2 * TRLI_GPU_PIECES, 3 * TRLI_GPU_PIECES - 1));
}

static trl_err launch_pieces(pieces *p)
{
    const trli_model_run *run = p->task->program->model->run;
    p->call.launch.hi[1] = p->n;
    return p->n == 0 ? TRL_OK
                     : trli_gpu_launch(run->gpu_kernels, run->gpu_pieces, &p->call, p->args->space, p->args->stream);
}

static trl_err add_piece(pieces *p, const trli_exchange_piece *piece, trl_kernel_array from, trl_kernel_array to)
{
    trl_err err = TRL_OK;
    long long points = 1;
    if (p->n == TRLI_GPU_PIECES) {
        TRL_TRY(launch_pieces(p));
        begin_pieces(p, p->call.label);
    }
    p->call.array[2 * p->n] = from;
    p->call.array[2 * p->n + 1] = to;
    for (int a = 0; a < 3; ++a) {
        p->call.scalar[3 * p->n + a] = piece->extent[a];
        points *= piece->extent[a];
    }
    if (points > p->call.launch.hi[0]) p->call.launch.hi[0] = points;
    ++p->n;
done:
    return err;
}

/* Whether ghosts lie beyond a side where kernels read the points at the other side; the patch has both. */
static bool lies_round(const trl_layout *layout, const trli_exchange_piece *piece, unsigned axes)
{
    for (int a = 0; a < 3; ++a)
        if (axes >> a & 1 && (piece->to[a] < 0 || piece->to[a] >= layout->grid.cells[a])) return true;
    return false;
}

trl_err trli_task_halo_gpu(void *data, const trl_task_args *args, bool *done)
{
    const trli_step_task *t = data;
    const bool unread = t->round && args->alone; /* by kernels of GPUs, and workers have none */
    pieces p = {.args = args, .task = t};
    trl_err err = TRL_OK;
    (void)done;
    begin_pieces(&p, "halo");
    for (int i = 0; i < t->npieces; ++i) {
        const trli_exchange_piece *piece = &t->piece[i];
        const int field = t->exchanged->field[piece->field];
        if (unread && lies_round(t->program->model->layout, piece, t->exchanged->round[piece->field])) continue;
        TRL_TRY(add_piece(&p, piece, place_of(args, field, piece->source_local, piece->from),
                          place_of(args, field, piece->target_local, piece->to)));
    }
    err = launch_pieces(&p);
done:
    return err;
}

/* ---- messages ---- */

/* Where a piece of a message lies packed, after memory of the message. */
static trl_kernel_array packed_place(unsigned char *memory, const trli_message *m, const trli_exchange_piece *piece)
{
    const long long row = piece->extent[0];
    return (trl_kernel_array){.at = (double *)(memory + (piece->offset - m->offset)),
                              .stride = {1, row, row * piece->extent[1]}};
}

trl_err trli_task_pack_gpu(void *data, const trl_task_args *args, bool *done)
{
    const trli_step_task *t = data;
    const trl_exchange *exchange = ((const trli_frame *)args->frame)->exchange[t->exchange].exchange;
    const trli_message *m = &exchange->sends.message[t->message];
    unsigned char *memory = trli_exchange_target(exchange, t->message);
    pieces p = {.args = args, .task = t};
    trl_err err = TRL_OK;
    (void)done;
    begin_pieces(&p, "pack");
    for (int n = m->first; n < m->first + m->n; ++n) {
        const trli_exchange_piece *piece = &exchange->sends.transfer[n];
        TRL_TRY(add_piece(&p, piece,
                          place_of(args, t->exchanged->field[piece->field], piece->source_local, piece->from),
                          packed_place(memory, m, piece)));
    }
    TRL_TRY(launch_pieces(&p));
    err = trli_exchange_packed(exchange, t->message, args->stream);
done:
    return err;
}

trl_err trli_task_unpack_gpu(void *data, const trl_task_args *args, bool *done)
{
    const trli_step_task *t = data;
    const trl_exchange *exchange = ((const trli_frame *)args->frame)->exchange[t->exchange].exchange;
    const trli_message *m = &exchange->receives.message[t->message];
    unsigned char *memory;
    pieces p = {.args = args, .task = t};
    trl_err err = TRL_OK;
    (void)done;
    TRL_TRY(trli_exchange_source(exchange, t->message, args->stream, &memory));
    begin_pieces(&p, "unpack");
    for (int n = m->first; n < m->first + m->n; ++n) {
        const trli_exchange_piece *piece = &exchange->receives.transfer[n];
        TRL_TRY(add_piece(&p, piece, packed_place(memory, m, piece),
                          place_of(args, t->exchanged->field[piece->field], piece->target_local, piece->to)));
    }
    err = launch_pieces(&p);
done:
    return err;
}
