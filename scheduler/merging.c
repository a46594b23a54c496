/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Places are ranks, or nodes, for which their leaders stand. As many places as are a power of two exchange what they
 * know with the one at distance 1, 2, 4, ..; one beyond them sends its numbers to one of them before, and gets the
 * result behind. No two rounds are between the same places in the same direction, so that a tag is enough. MPI's own
 * collective calls are not used: a blocking one cannot be left, and others have to begin in one order on all ranks,
 * which those that wait for a node cannot keep. */
#include "merging_impl.h"

#include <string.h>

#include "context_impl.h"

static int places(const trl_context *ctx, const trli_merging *m, int *own)
{
    *own = ctx->rank;
    return m->board ? trli_node_board_nodes(m->board, own) : ctx->ranks;
}

static int rank_at(const trli_merging *m, int place)
{
    return m->board ? trli_node_board_leader(m->board, place) : place;
}

static int power_of_two(int n)
{
    int power = 1;
    while (2 * power <= n) power *= 2;
    return power;
}

static void post(const trli_merging *m, int slot)
{
    memcpy(trli_node_board_room(m->board, slot, m->number), m->value, (size_t)m->n * sizeof *m->value);
    trli_node_board_post(m->board, slot, m->number);
}

static void finish(trli_merging *m)
{
    m->under_way = false;
    if (m->board && trli_node_board_size(m->board) > 1) post(m, m->slot + 1);
}

static trl_err exchange(trl_context *ctx, trli_merging *m, int place, bool sends, bool receives)
{
    const int rank = rank_at(m, place);
    trl_err err = TRL_OK;
    if (receives)
        TRL_TRY(trli_mpi_check(ctx, MPI_Irecv(m->received, m->n, MPI_INT64_T, rank, m->tag, m->comm, &m->request[0]),
                               "MPI_Irecv"));
    if (sends)
        TRL_TRY(trli_mpi_check(ctx, MPI_Isend(m->value, m->n, MPI_INT64_T, rank, m->tag, m->comm, &m->request[1]),
                               "MPI_Isend"));
done:
    return err;
}

/* Begin the round at a distance, or the first one after it in which this place takes part. */
static trl_err begin_round(trl_context *ctx, trli_merging *m)
{
    int own;
    const int n = places(ctx, m, &own), power = power_of_two(n);
    const bool paired = own + power < n;
    if (own >= power) return exchange(ctx, m, own - power, true, true);
    if (m->distance == 0 && paired) return exchange(ctx, m, own + power, false, true);
    if (m->distance == 0) m->distance = 1;
    if (m->distance < power) return exchange(ctx, m, own ^ m->distance, true, true);
    if (m->distance == power && paired) return exchange(ctx, m, own + power, true, false);
    finish(m);
    return TRL_OK;
}

static trl_err begin_rounds(trl_context *ctx, trli_merging *m)
{
    m->stage = TRLI_MERGING_ROUNDS;
    m->distance = 0;
    return begin_round(ctx, m);
}

static trl_err look_at_round(trl_context *ctx, trli_merging *m)
{
    int own, complete = 0;
    const int power = power_of_two(places(ctx, m, &own));
    trl_err err = TRL_OK;
    TRL_TRY(trli_mpi_check(ctx, MPI_Testall(2, m->request, &complete, MPI_STATUSES_IGNORE), "MPI_Testall"));
    if (!complete) return TRL_OK;
    if (own >= power) {
        memcpy(m->value, m->received, (size_t)m->n * sizeof *m->value);
        finish(m);
        return TRL_OK;
    }
    if (m->distance < power) m->merge(m->how, m->value, m->received);
    m->distance = m->distance == 0 ? 1 : 2 * m->distance;
    err = begin_round(ctx, m);
done:
    return err;
}

/* One that is no leader of several nodes' has nothing to look for. */
static trl_err look_at_node(trl_context *ctx, trli_merging *m)
{
    int own;
    const bool alone = trli_node_board_nodes(m->board, &own) == 1;
    if (!alone && !trli_node_board_leads(m->board)) {
        m->stage = TRLI_MERGING_LEADER;
        return TRL_OK;
    }
    for (; m->heard < trli_node_board_size(m->board); ++m->heard) {
        const int64_t *said = trli_node_board_read(m->board, m->heard, m->slot, m->number);
        if (!said) return TRL_OK;
        if (m->heard != trli_node_board_place(m->board)) m->merge(m->how, m->value, said);
    }
    if (!alone) return begin_rounds(ctx, m);
    m->under_way = false;
    return TRL_OK;
}

trl_err trli_merging_look(trl_context *ctx, trli_merging *m)
{
    const int64_t *told;
    if (!m->under_way) return TRL_OK;
    if (m->stage == TRLI_MERGING_ROUNDS) return look_at_round(ctx, m);
    if (m->stage == TRLI_MERGING_NODE) return look_at_node(ctx, m);
    told = trli_node_board_read(m->board, 0, m->slot + 1, m->number);
    if (!told) return TRL_OK;
    memcpy(m->value, told, (size_t)m->n * sizeof *m->value);
    m->under_way = false;
    return TRL_OK;
}

bool trli_merging_sends(const trl_context *ctx, const trli_node_board *board)
{
    int own;
    return board ? trli_node_board_nodes(board, &own) > 1 && trli_node_board_leads(board) : ctx->ranks > 1;
}

trl_err trli_merging_begin(trl_context *ctx, trli_merging *m)
{
    ++m->number;
    m->heard = 0;
    m->under_way = true;
    m->stage = TRLI_MERGING_NODE;
    m->request[0] = m->request[1] = MPI_REQUEST_NULL;
    if (!m->board) return begin_rounds(ctx, m);
    post(m, m->slot);
    return TRL_OK;
}

void trli_merging_leave(trl_context *ctx, trli_merging *m)
{
    m->next = ctx->left;
    ctx->left = m;
}

void trli_merging_take_back(trl_context *ctx, trli_merging *m)
{
    for (trli_merging **at = &ctx->left; *at; at = &(*at)->next)
        if (*at == m) {
            *at = m->next;
            return;
        }
}

trl_err trli_mergings_go_on(trl_context *ctx)
{
    trl_err err = TRL_OK;
    for (trli_merging *m = ctx->left; m; m = m->next) TRL_TRY(trli_merging_look(ctx, m));
done:
    return err;
}
