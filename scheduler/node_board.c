/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include "node_board_impl.h"

#include <stdalign.h>
#include <stdint.h>
#include <string.h>

#include "context_impl.h"
#include "memory_impl.h"

enum { LINE = 64, ROUNDS = 2 /* the last even one, and the last odd one */ };

/* A rank's place in a slot. */
typedef struct post {
    alignas(LINE) _Atomic int64_t round; /* released after the numbers */
    int64_t number[];
} post;

struct trli_node_board {
    MPI_Win window;
    int size, place, nodes, node;
    int *leader;           /* [nodes] */
    unsigned char **start; /* [size] of each rank's memory */
    size_t *slot;          /* [slots + 1] where each begins in it: two posts */
};

static size_t post_bytes(size_t numbers)
{
    return (sizeof(post) + numbers * sizeof(int64_t) + LINE - 1) / LINE * LINE;
}

/* Of MPI's memory, which begins anywhere: all ranks map it at a page, so they find the same line. */
static unsigned char *first_line(void *memory)
{
    return (unsigned char *)(((uintptr_t)memory + LINE - 1) / LINE * LINE);
}

/* Which node this is, and who leads each. first: [ranks] 0; own: the first rank of this node. */
static trl_err number_nodes(trl_context *ctx, trli_node_board *b, int *first, int own)
{
    trl_err err;
    first[ctx->rank] = own;
    TRL_TRY(trli_allreduce(ctx, first, ctx->ranks, MPI_INT, MPI_MAX));
    for (int r = 0; r < ctx->ranks; ++r) {
        if (first[r] != r) continue;
        if (r == own) b->node = b->nodes;
        b->leader[b->nodes++] = r;
    }
done:
    return err;
}

/* A refusal is no failure: then there is no window. */
static trl_err map(trl_context *ctx, trli_node_board *b, int slots, MPI_Comm comm)
{
    const size_t bytes = b->slot[slots];
    MPI_Info info = MPI_INFO_NULL;
    void *memory = NULL;
    trl_err err;
    TRL_TRY(trli_mpi_check(ctx, MPI_Info_create(&info), "MPI_Info_create"));
    TRL_TRY(trli_mpi_check(ctx, MPI_Info_set(info, "alloc_shared_noncontig", "true"), "MPI_Info_set"));
    if (MPI_Win_allocate_shared((MPI_Aint)(bytes + LINE), 1, info, comm, (void *)&memory, &b->window) != MPI_SUCCESS)
        b->window = MPI_WIN_NULL;
    else
        memset(first_line(memory), 0, bytes);
done:
    if (info != MPI_INFO_NULL) (void)!MPI_Info_free(&info);
    return err;
}

/* After all ranks have cleared their lines. */
static trl_err find_lines(trl_context *ctx, trli_node_board *b)
{
    trl_err err = TRL_OK;
    for (int i = 0; i < b->size; ++i) {
        MPI_Aint size;
        int unit;
        void *start = NULL;
        TRL_TRY(trli_mpi_check(ctx, MPI_Win_shared_query(b->window, i, &size, &unit, (void *)&start),
                               "MPI_Win_shared_query"));
        b->start[i] = first_line(start);
    }
done:
    return err;
}

static void destroy(trli_node_board *b)
{
    trli_free(b->leader);
    trli_free(b->start);
    trli_free(b->slot);
    trli_free(b);
}

/* *refused: some rank got no memory. */
static trl_err create(trl_context *ctx, const trli_node_ranks *ranks, trli_node_board *b, int slots,
                      const size_t *count, int64_t *refused)
{
    trl_err err = TRL_OK;
    int *first = trli_new(ctx, (size_t)ctx->ranks, sizeof *first);
    b->leader = trli_new(ctx, (size_t)ctx->ranks, sizeof *b->leader);
    b->start = trli_new(ctx, (size_t)ranks->size, sizeof(unsigned char *));
    b->slot = trli_new(ctx, (size_t)slots + 1, sizeof *b->slot);
    if (!first || !b->leader || !b->start || !b->slot) err = trli_no_memory(ctx, NULL, "for what ranks of a node post");
    TRL_TRY(trl_context_agree(ctx, err));
    for (int i = 0; i < slots; ++i) b->slot[i + 1] = b->slot[i] + ROUNDS * post_bytes(count[i]);
    b->size = ranks->size;
    while (ranks->rank[b->place] != ctx->rank) ++b->place;
    TRL_TRY(number_nodes(ctx, b, first, ranks->rank[0]));
    err = map(ctx, b, slots, ranks->comm);
    *refused = b->window == MPI_WIN_NULL;
    TRL_TRY(trli_agree_max(ctx, err, 1, refused)); /* all have cleared their lines */
    if (!*refused) err = find_lines(ctx, b);
done:
    trli_free(first);
    return err;
}

trl_err trli_node_board_create(trl_context *ctx, int slots, const size_t *count, trli_node_board **board)
{
    trli_node_ranks ranks = {.comm = MPI_COMM_NULL};
    int64_t refused = 0;
    trl_err err;
    *board = NULL;
    if (ctx->ranks == 1) return TRL_OK;
    trli_node_board *b = trli_new(ctx, 1, sizeof *b);
    TRL_TRY(trl_context_agree(ctx, b ? TRL_OK : trli_no_memory(ctx, NULL, "for what ranks of a node post")));
    b->window = MPI_WIN_NULL;
    TRL_TRY(trli_topology_node(ctx, &ranks));
    TRL_TRY(create(ctx, &ranks, b, slots, count, &refused));
    if (!refused) *board = b;
done:
    if (b && !*board) destroy(b); /* a window that other ranks lack cannot be freed */
    trli_free(ranks.rank);
    trli_comm_free(ctx, &ranks.comm);
    return err;
}

void trli_node_board_destroy(trl_context *ctx, trli_node_board **board)
{
    trli_node_board *b = *board;
    *board = NULL;
    if (!b) return;
    if (!trl_context_lost(ctx)) (void)!trli_mpi_check(ctx, MPI_Win_free(&b->window), "MPI_Win_free");
    destroy(b);
}

int trli_node_board_size(const trli_node_board *b)
{
    return b->size;
}

int trli_node_board_nodes(const trli_node_board *b, int *own)
{
    *own = b->node;
    return b->nodes;
}

int trli_node_board_leader(const trli_node_board *b, int node)
{
    return b->leader[node];
}

int trli_node_board_place(const trli_node_board *b)
{
    return b->place;
}

bool trli_node_board_leads(const trli_node_board *b)
{
    return b->place == 0;
}

static post *post_of(const trli_node_board *b, int place, int slot, int64_t round)
{
    const size_t bytes = (b->slot[slot + 1] - b->slot[slot]) / ROUNDS;
    return (post *)(void *)(b->start[place] + b->slot[slot] + (size_t)(round % ROUNDS) * bytes);
}

int64_t *trli_node_board_room(const trli_node_board *b, int slot, int64_t round)
{
    return post_of(b, b->place, slot, round)->number;
}

void trli_node_board_post(const trli_node_board *b, int slot, int64_t round)
{
    atomic_store_explicit(&post_of(b, b->place, slot, round)->round, round, memory_order_release);
}

const int64_t *trli_node_board_read(const trli_node_board *b, int place, int slot, int64_t round)
{
    const post *of = post_of(b, place, slot, round);
    return atomic_load_explicit(&of->round, memory_order_acquire) == round ? of->number : NULL;
}
