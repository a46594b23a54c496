/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The context: owner of communicator, topology, diagnostics and memory accounts. Everything else hangs under it. */
#ifndef TRL_CONTEXT_H
#define TRL_CONTEXT_H

#if defined(__has_include)
#if !__has_include(<mpi.h>)
#define TRL_WITHOUT_MPI /* a plugin compiled with no MPI beside it: what takes a communicator is left out */
#endif
#endif
#ifndef TRL_WITHOUT_MPI
#include <mpi.h>
#endif
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <trl_err.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef int32_t trl_lidx; /* local index: within a patch, a rank */
typedef int64_t trl_gidx; /* global index: over all ranks */
#define TRL_LIDX_MPI MPI_INT32_T
#define TRL_GIDX_MPI MPI_INT64_T
#define TRL_LIDX_FMT PRId32
#define TRL_GIDX_FMT PRId64

typedef struct trl_context trl_context;

typedef enum trl_severity { TRL_NOTE, TRL_WARNING, TRL_ERROR } trl_severity;

enum { TRL_REMEDIES_MOST = 3 };

/* One message for the user. `text` carries no place; trl_diagnostic_format adds it. */
typedef struct trl_diagnostic {
    trl_severity severity;
    trl_err code;
    char *file; /* NULL: no place */
    int line, column, length;
    char *source; /* the line the place points into, or NULL */
    char *text;
    char *remedy[TRL_REMEDIES_MOST]; /* remedies, the most likely one first; NULL: no more */
} trl_diagnostic;

typedef struct trl_context_options {
    int threads; /* workers of this rank; 0: one per core of the rank's share */
    /* OPTIONAL. A communication failed on this rank, or this rank failed where the others wait for it: it cannot agree
     * with them any more. A program of several ranks prints what is recorded and ends them all by MPI_Abort, here or
     * when it sees the error. Called once, from any thread. */
    void (*lost)(trl_context *ctx, trl_err err);
    /* OPTIONAL. What asks the program to stop ("SIGTERM"), or NULL. Asked by agreements and while compilers are waited
     * for, which then fail with INTERRUPTED. */
    const char *(*stop)(void);
    /* OPTIONAL. A group of processes was started or has ended: a program that exits at once must end the group
     * first. Thread: main. */
    void (*child)(pid_t group, bool started);
} trl_context_options;

#ifndef TRL_WITHOUT_MPI
/* Create a context on a duplicate of comm. MPI must be initialised with at least MPI_THREAD_SERIALIZED. options may be
 * NULL. Communication on the duplicate returns errors. Where Open MPI has bound this process of its own accord, it may
 * use all that its launcher may. Collective: yes. Thread: main. Fails without a message, with MEMORY or INPUT (number
 * of threads) on all ranks, with MPI on any. */
TRL_API TRL_NODISCARD trl_err trl_context_create(MPI_Comm comm, const trl_context_options *options, trl_context **ctx);
TRL_API MPI_Comm trl_context_comm(const trl_context *ctx);
#endif
/* Destroy and set to NULL; NULL is allowed. Collective: yes. */
TRL_API void trl_context_destroy(trl_context **ctx);

TRL_API int trl_context_rank(const trl_context *ctx);
TRL_API int trl_context_ranks(const trl_context *ctx);

/* Cores this rank may use (its share of what the launcher's binding and cgroups leave of the node), workers it was
 * given, whether workers are pinned (one fills each core of the share, and no other rank needs it), bytes of the data
 * cache of a level per core that shares it (1: first level; 0: last level; the result 0: unknown; no more than any core
 * has, whatever a virtual machine shows). */
TRL_API int trl_context_cores(const trl_context *ctx);
TRL_API int trl_context_threads(const trl_context *ctx);
TRL_API bool trl_context_pinned(const trl_context *ctx);
TRL_API size_t trl_context_cache_bytes(const trl_context *ctx, int level);
/* Change the number of workers; 0: one per core of the share. More than cores is a warning, and then every wait yields.
 * Fails with INPUT (negative or absurd) or, while any trl_workers exists, USAGE. Thread: main. */
TRL_API TRL_NODISCARD trl_err trl_context_set_threads(trl_context *ctx, int threads);

/* Bytes that this rank may allocate in all; 0: as many as the node has, or a cgroup grants, when they are asked for,
 * which is the default: more memory may be added while a program runs. Thread: main. */
TRL_API void trl_context_set_memory(trl_context *ctx, size_t bytes);

/* Record an error at a place (NULL: none) and return code, so that callers write
 * `return trl_fail(ctx, TRL_ERR_INPUT, &place, "...", ...);`. Thread: any. Never fails itself. */
TRL_API trl_err trl_fail(trl_context *ctx, trl_err code, const trl_place *place, const char *format, ...)
    TRL_PRINTF(4, 5);
TRL_API void trl_warn(trl_context *ctx, const trl_place *place, const char *format, ...) TRL_PRINTF(3, 4);

/* Add a remedy to the message that this thread recorded last; the most likely remedy is added first. A remedy that
 * the message already has, or a fourth one, is dropped. Thread: any. Never fails itself. */
TRL_API void trl_advise(trl_context *ctx, const char *format, ...) TRL_PRINTF(2, 3);

/* The messages recorded so far, in order; valid until the next trl_fail, trl_warn, agree or clear. */
TRL_API int trl_context_diagnostics(const trl_context *ctx, const trl_diagnostic **list);
TRL_API void trl_context_clear_diagnostics(trl_context *ctx);
/* "file:line:column: [warning: ]text\n", then the source line and an underline if the source is known, and a line "
 * fix: ..." or "  or:  ..." for each remedy. Returns the length that the text needs without NUL, as snprintf does. */
TRL_API int trl_diagnostic_format(const trl_diagnostic *d, char *buffer, size_t size);

/* Make all ranks return the same error: the largest code wins, and, if it is one, the diagnostics of the lowest rank
 * that holds it replace those of all others; of messages that say the same about the same place the first stays. What
 * is done between two collective calls, and can fail on one rank alone, ends with it. A rank with an error waits 10 s
 * for the others; then it is lost. Collective: yes. Thread: main. */
TRL_API TRL_NODISCARD trl_err trl_context_agree(trl_context *ctx, trl_err local);
/* A phase is work with several collective calls. A rank that fails may leave it from anywhere, with its error: the
 * others hear of it in the collective call that they come to, which fails likewise, as do all that follow, without
 * communication, until all ranks are at the end of the phase, or of one around it. The end agrees on `local`, how this
 * rank fared. Phases nest. Collective: yes. Thread: main. */
TRL_API void trl_context_begin_phase(trl_context *ctx);
TRL_API TRL_NODISCARD trl_err trl_context_end_phase(trl_context *ctx, trl_err local);
/* Whether this rank can no longer agree with the others; see trl_context_options. Thread: any. */
TRL_API bool trl_context_lost(const trl_context *ctx);
/* Change the option `stop`. Thread: main. */
TRL_API void trl_context_set_stop(trl_context *ctx, const char *(*stop)(void));

/* Whoever calls MPI while a graph runs holds this lock for the call, and only for calls that return at once. try_lock
 * returns false when another thread holds it. With MPI_THREAD_MULTIPLE it does nothing. Thread: any. */
TRL_API void trl_context_mpi_lock(trl_context *ctx);
TRL_API bool trl_context_mpi_try_lock(trl_context *ctx);
TRL_API void trl_context_mpi_unlock(trl_context *ctx);

/* Memory of this rank, 64-byte aligned, accounted by the context. `what` names the owner in the error message.
 * Fails with MEMORY, the message giving name, size and what is in use. Thread: any. */
TRL_API TRL_NODISCARD trl_err trl_memory_alloc(trl_context *ctx, size_t bytes, const char *what, void **memory);
TRL_API void trl_memory_free(trl_context *ctx, void **memory);

typedef struct trl_memory_stats {
    size_t bytes, peak_bytes;
    int64_t allocations; /* since the context was created */
    /* Of these, metadata: what grows with equations, steps, tasks or a deck, but is no array of values. */
    size_t metadata_bytes, metadata_peak_bytes;
    int64_t metadata_allocations;
} trl_memory_stats;
TRL_API void trl_memory_get_stats(const trl_context *ctx, trl_memory_stats *stats);

#ifdef __cplusplus
}
#endif
#endif
