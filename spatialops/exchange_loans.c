/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Memory of the ranks of a node that they use of one another: each maps the others' once, for many exchanges. */
#include <context_impl.h>

#include "exchange_impl.h"

struct trli_loans {
    trl_context *ctx;
    const trli_open_memory *own;
    int n;                /* ranks of the node */
    int *rank;            /* [n] */
    trli_open_name *name; /* [n] */
    void **borrowed;      /* [n] NULL: this rank's own */
};

/* Send this rank's name to the others of the node, and receive theirs. count: [4][ranks] for bytes sent and where they
 * begin, received and where. */
static trl_err exchange_names(trli_loans *loans, int *count)
{
    trl_context *ctx = loans->ctx;
    const int ranks = trl_context_ranks(ctx);
    int *sent = count, *sent_begin = sent + ranks, *received = sent_begin + ranks, *begin = received + ranks;
    trli_open_name own = {0};
    if (loans->own) trli_open_memory_name(loans->own, &own);
    for (int i = 0; i < loans->n; ++i) {
        sent[loans->rank[i]] = received[loans->rank[i]] = (int)sizeof own;
        begin[loans->rank[i]] = i * (int)sizeof own;
    }
    return trli_alltoallv(ctx, &own, sent, sent_begin, loans->name, received, begin, MPI_BYTE);
}

static trl_err learn_names(trli_loans *loans)
{
    trl_context *ctx = loans->ctx;
    trl_err err;
    loans->name = trli_new(ctx, (size_t)loans->n, sizeof *loans->name);
    loans->borrowed = trli_new(ctx, (size_t)loans->n, sizeof(void *));
    int *count = trli_new(ctx, 4 * (size_t)trl_context_ranks(ctx), sizeof *count);
    const bool all = loans->name && loans->borrowed && count;
    TRL_TRY(trl_context_agree(ctx, all ? TRL_OK : trli_no_memory(ctx, NULL, "for what other ranks may read")));
    err = exchange_names(loans, count);
done:
    trli_free(count);
    return err;
}

static bool borrow_all(trli_loans *loans, bool writes)
{
    for (int i = 0; i < loans->n; ++i) {
        if (loans->rank[i] == loans->ctx->rank) continue;
        if (loans->name[i].bytes > 0) loans->borrowed[i] = trli_open_memory_map(&loans->name[i], writes);
        if (!loans->borrowed[i]) return false;
    }
    return true;
}

trl_err trli_loans_create(trl_context *ctx, const trli_open_memory *own, bool writes, trli_loans **result)
{
    trli_node_ranks node = {.comm = MPI_COMM_NULL};
    int64_t refused = 0;
    trl_err err;
    trli_loans *loans = trli_new(ctx, 1, sizeof *loans);
    *result = NULL;
    trl_context_begin_phase(ctx);
    err = loans ? trli_topology_node(ctx, &node) : trli_no_memory(ctx, NULL, "for what other ranks may read");
    err = trl_context_agree(ctx, err);
    if (err == TRL_OK) {
        *loans = (trli_loans){.ctx = ctx, .own = own, .n = node.size, .rank = node.rank};
        node.rank = NULL;
        err = learn_names(loans);
        refused = err == TRL_OK && !borrow_all(loans, writes);
    }
    err = trli_agree_max(ctx, err, 1, &refused);
    trli_free(node.rank);
    trli_comm_free(ctx, &node.comm);
    if (err != TRL_OK || refused) trli_loans_destroy(&loans);
    *result = loans;
    return trl_context_end_phase(ctx, err);
}

void trli_loans_destroy(trli_loans **result)
{
    trli_loans *loans = *result;
    *result = NULL;
    if (!loans) return;
    for (int i = 0; i < loans->n && loans->borrowed; ++i) trli_open_memory_unmap(loans->borrowed[i], &loans->name[i]);
    trli_free(loans->rank);
    trli_free(loans->name);
    trli_free(loans->borrowed);
    trli_free(loans);
}

const trli_open_memory *trli_loans_own(const trli_loans *loans)
{
    return loans->own;
}

unsigned char *trli_loans_of(const trli_loans *loans, int rank)
{
    for (int i = 0; i < loans->n; ++i)
        if (loans->rank[i] == rank) return loans->borrowed[i];
    return NULL;
}
