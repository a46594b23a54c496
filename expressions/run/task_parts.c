/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include "task_parts_impl.h"

#include <chunks_impl.h>

#include "context_impl.h"
#include "model_run_impl.h"

/* How long a worker computes, about, before it looks after messages. */
#ifdef TRL_SMALL_SIZES
static const double look_seconds = 1e-7;
#else
static const double look_seconds = 1e-4;
#endif

/* Cut a box that one worker goes through into planes, or rows of one plane, between which it looks after messages: MPI
 * brings them on in calls only. */
static int cut_for_messages(const trl_box *box, double seconds, int parts[3])
{
    enum { MOST = 8 };
    const int axis = box->hi[2] - box->lo[2] > 1 ? 2 : 1;
    const int extent = (int)(box->hi[axis] - box->lo[axis]), most = extent < MOST ? extent : MOST;
    parts[axis] = seconds < MOST * look_seconds ? (int)(seconds / look_seconds) : MOST;
    if (parts[axis] > most) parts[axis] = most;
    if (parts[axis] < 1) parts[axis] = 1;
    return parts[axis];
}

bool trli_awaits_mpi(const trli_model *model)
{
    const trl_context *ctx = model->ctx;
    return ctx->ranks > 1 && (ctx->topology.node_ranks < ctx->ranks || !model->machine.shares);
}

int trli_task_parts(const trli_model *model, const trl_box *box, double seconds, bool whole_rows, int parts[3])
{
    const int workers = model->run->nworkers;
    trl_box cut = *box;
    if (workers == 1 && trli_awaits_mpi(model)) return cut_for_messages(box, seconds, parts);
    if (whole_rows) cut.hi[0] = cut.lo[0] + 1;
    return trli_box_cut(&cut, trli_chunks_wanted(trl_box_points(box), workers), parts);
}
