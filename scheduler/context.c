/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <sched.h>
#include <stdlib.h>

#include "context_impl.h"
#include "node_board_impl.h"

/* A rank that fails here cannot tell the others: the caller ends all ranks. */
static trl_err create_comms(trl_context *ctx, MPI_Comm comm)
{
    int level = MPI_THREAD_SINGLE;
    MPI_Comm *const own[] = {&ctx->comm, &ctx->agreement.comm};
    if (MPI_Query_thread(&level) != MPI_SUCCESS || level < MPI_THREAD_SERIALIZED) return TRL_ERR_MPI;
    ctx->multiple = level >= MPI_THREAD_MULTIPLE;
    for (int i = 0; i < 2; ++i) {
        if (MPI_Comm_dup(comm, own[i]) != MPI_SUCCESS) return TRL_ERR_MPI;
        if (MPI_Comm_set_errhandler(*own[i], MPI_ERRORS_RETURN) != MPI_SUCCESS) return TRL_ERR_MPI;
    }
    if (MPI_Comm_rank(ctx->comm, &ctx->rank) != MPI_SUCCESS) return TRL_ERR_MPI;
    if (MPI_Comm_size(ctx->comm, &ctx->ranks) != MPI_SUCCESS) return TRL_ERR_MPI;
    return TRL_OK;
}

/* Before every rank has a context. */
static trl_err worst_of_ranks(MPI_Comm comm, trl_err local)
{
    int code = (int)local;
    if (MPI_Allreduce(MPI_IN_PLACE, &code, 1, MPI_INT, MPI_MAX, comm) != MPI_SUCCESS) return TRL_ERR_MPI;
    return (trl_err)code;
}

trl_err trl_context_create(MPI_Comm comm, const trl_context_options *options, trl_context **result)
{
    trl_err err;
    trl_context *ctx = NULL;
    int initialized = 0;
    *result = NULL;
    if (MPI_Initialized(&initialized) != MPI_SUCCESS || !initialized) return TRL_ERR_MPI;
    ctx = calloc(1, sizeof *ctx);
    err = worst_of_ranks(comm, ctx ? TRL_OK : TRL_ERR_MEMORY);
    if (err != TRL_OK) {
        free(ctx);
        return err;
    }
    ctx->comm = ctx->agreement.comm = MPI_COMM_NULL;
    if (options) ctx->options = *options;
    pthread_mutex_init(&ctx->mpi_lock, NULL);
    pthread_mutex_init(&ctx->polls_lock, NULL);
    trli_diagnostics_init(&ctx->diagnostics);
    err = create_comms(ctx, comm);
    if (err != TRL_OK) return err; /* a communicator that other ranks lack cannot be freed */
    trli_memory_follow_machine(ctx);
    trl_context_begin_phase(ctx);
    err = trli_topology_init(ctx, &ctx->topology);
    if (err == TRL_OK) err = trli_agree_on_node(ctx);
    if (err == TRL_OK) err = trl_context_set_threads(ctx, options ? options->threads : 0);
    err = trl_context_end_phase(ctx, err);
    if (err != TRL_OK) trl_context_destroy(&ctx);
    *result = ctx;
    return err;
}

void trli_context_leave(trl_context *ctx, trli_leftover *leftover)
{
    if (!trl_context_lost(ctx) && leftover->end(leftover)) return;
    leftover->next = ctx->leftover;
    ctx->leftover = leftover;
}

/* Ranks may have left them in different orders. */
static void end_leftovers(trl_context *ctx)
{
    while (ctx->leftover && !trl_context_lost(ctx)) {
        trli_leftover *list = ctx->leftover;
        ctx->leftover = NULL;
        while (list) {
            trli_leftover *next = list->next;
            trli_context_leave(ctx, list);
            list = next;
        }
        if (ctx->leftover) sched_yield();
    }
}

void trl_context_destroy(trl_context **context)
{
    trl_context *ctx = *context;
    *context = NULL;
    if (ctx == NULL || ctx->agreement.all.under_way) return; /* messages of a lost rank's agreement may still arrive */
    end_leftovers(ctx);
    trli_node_board_destroy(ctx, &ctx->agreement.node);
    trli_topology_destroy(&ctx->topology);
    trli_diagnostics_destroy(&ctx->diagnostics);
    pthread_mutex_destroy(&ctx->mpi_lock);
    pthread_mutex_destroy(&ctx->polls_lock);
    trli_comm_free(ctx, &ctx->comm);
    trli_comm_free(ctx, &ctx->agreement.comm);
    free(ctx);
}

MPI_Comm trl_context_comm(const trl_context *ctx)
{
    return ctx->comm;
}

int trl_context_rank(const trl_context *ctx)
{
    return ctx->rank;
}

int trl_context_ranks(const trl_context *ctx)
{
    return ctx->ranks;
}

int trl_context_cores(const trl_context *ctx)
{
    return ctx->topology.cores;
}

int trl_context_threads(const trl_context *ctx)
{
    return ctx->threads;
}

bool trli_context_yields(const trl_context *ctx)
{
    return ctx->topology.yields || ctx->threads > ctx->topology.cores;
}

/* Workers are not pinned if there are fewer of them than cores: which cores other programs keep busy is unknown
 * here, so the operating system chooses. */
bool trl_context_pinned(const trl_context *ctx)
{
    return !ctx->topology.shared && ctx->threads == ctx->topology.cores;
}

size_t trl_context_cache_bytes(const trl_context *ctx, int level)
{
    return level >= 0 && level <= TRLI_CACHE_LEVELS ? ctx->topology.cache_bytes[level] : 0;
}

void trl_context_set_memory(trl_context *ctx, size_t bytes)
{
    if (bytes == 0) {
        trli_memory_follow_machine(ctx);
        return;
    }
    atomic_store_explicit(&ctx->memory.granted, 0, memory_order_relaxed);
    atomic_store_explicit(&ctx->memory.limit, bytes, memory_order_relaxed);
}

trl_err trl_context_set_threads(trl_context *ctx, int threads)
{
    int cores = ctx->topology.cores;
    int most = cores > TRLI_THREADS_MAX ? cores : TRLI_THREADS_MAX;
    if (ctx->workers_alive > 0) {
        return trl_fail(ctx, TRL_ERR_USAGE, NULL,
                        "the number of threads cannot change while workers exist; destroy them first");
    }
    if (threads < 0 || threads > most) {
        return trl_fail(ctx, TRL_ERR_INPUT, NULL,
                        "%d threads asked for; allowed are 1 to %d, or 0 for one per core (%d)", threads, most, cores);
    }
    if (threads > cores) {
        trl_warn(ctx, NULL, "%d threads on %d core%s: threads will take turns and run slower; use at most %d", threads,
                 cores, cores == 1 ? "" : "s", cores);
    }
    ctx->threads = threads ? threads : cores;
    return TRL_OK;
}

void trl_context_mpi_lock(trl_context *ctx)
{
    if (!ctx->multiple) pthread_mutex_lock(&ctx->mpi_lock);
}

bool trl_context_mpi_try_lock(trl_context *ctx)
{
    return ctx->multiple || pthread_mutex_trylock(&ctx->mpi_lock) == 0;
}

void trl_context_mpi_unlock(trl_context *ctx)
{
    if (!ctx->multiple) pthread_mutex_unlock(&ctx->mpi_lock);
}

void trli_aid_add(trl_context *ctx, trli_aid *aid)
{
    aid->next = ctx->aid;
    ctx->aid = aid;
}

void trli_aid_remove(trl_context *ctx, const trli_aid *aid)
{
    trli_aid **at = &ctx->aid;
    while (*at && *at != aid) at = &(*at)->next;
    if (*at) *at = aid->next;
}

bool trli_aid_may_be_wanted(const trl_context *ctx)
{
    for (const trli_aid *aid = ctx->aid; aid; aid = aid->next)
        if (atomic_load_explicit(&aid->on, memory_order_relaxed)) return true;
    return false;
}

bool trli_aid_give(const trl_context *ctx, const trli_idler *idler)
{
    for (trli_aid *aid = ctx->aid; aid; aid = aid->next)
        if (atomic_load_explicit(&aid->on, memory_order_relaxed) && aid->help(aid, idler)) return true;
    return false;
}

bool trli_polls_enter(trl_context *ctx)
{
    if (pthread_mutex_trylock(&ctx->polls_lock)) return false;
    if (trl_context_mpi_try_lock(ctx)) return true;
    pthread_mutex_unlock(&ctx->polls_lock);
    return false;
}

void trli_polls_leave(trl_context *ctx)
{
    trl_context_mpi_unlock(ctx);
    pthread_mutex_unlock(&ctx->polls_lock);
}
