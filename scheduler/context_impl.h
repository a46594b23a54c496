/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Inside of the context: what the files of scheduler/ share. */
#ifndef TRL_CONTEXT_IMPL_H
#define TRL_CONTEXT_IMPL_H

#include <hwloc.h>
#include <pthread.h>
#include <stdatomic.h>

#include <trl_context.h>

#include "agree_impl.h"
#include "aid_impl.h"
#include "memory_impl.h"
#include "merging_impl.h"

/* A number of workers above this one (or above the number of cores, if that is larger) is taken for a typing error. */
#define TRLI_THREADS_MAX 1024

enum { TRLI_CACHE_LEVELS = 5 };

/* The machine as this rank may use it. */
typedef struct trli_topology {
    hwloc_topology_t machine;  /* restricted to the processors this rank may run on */
    hwloc_bitmap_t share;      /* this rank's cores: logical indices in machine */
    int cores, node_cores;     /* how many these are, and how many the node has for this process */
    int node_rank, node_ranks; /* which of the node's ranks this one is, and how many there are */
    int node_first;            /* the lowest rank of the node */
    bool shared; /* ranks outnumber cores, or a quota hides which cores belong to this process: no worker is pinned */
    bool yields; /* these, or others, want the cores, too: waits let them (trli_context_yields) */
    int crowd_ranks, crowd_cores; /* ranks that outnumber their cores, this one among them; 0: there are none */
    /* Of the data cache of a level, per core that shares it; [0]: the last level. All cores are taken to be alike. */
    size_t cache_bytes[TRLI_CACHE_LEVELS + 1];
} trli_topology;

typedef struct trli_diagnostics {
    pthread_mutex_t lock; /* guards the members below while workers run */
    trl_diagnostic *list;
    uint32_t *asker; /* [list] for which thread the work was done that recorded it */
    int count, capacity;
    /* Room for the first messages, and for the first text, for which there is no memory. */
    trl_diagnostic first[8];
    uint32_t first_asker[8];
    char spare[256];
    bool spare_used;
} trli_diagnostics;

/* Agreements whose result is asked for later: at most one at a time. */
typedef enum trli_late {
    TRLI_LATE_NONE,
    TRLI_LATE_BEGUN,
    TRLI_LATE_KNOWN, /* all messages are there */
    TRLI_LATE_ENDED  /* the ranks have one result, and nobody has asked for it */
} trli_late;

/* How the ranks agree; see agree.c. Main thread only, but for trli_agree_go_on. */
typedef struct trli_agreement {
    MPI_Comm comm;
    int depth;        /* phases begun and not ended */
    trl_err failed;   /* the error on which the ranks agreed, until they meet again */
    int failed_depth; /* they meet at the end of the phase of this depth */
    /* That under way, or the last one. */
    trli_merging all;
    trl_err local;         /* this rank's own error */
    trli_node_board *node; /* of ranks of a node; NULL: they agree by messages */
    int64_t value[TRLI_AGREED], received[TRLI_AGREED];
    _Atomic trli_late late;
    trl_err late_err;
    int64_t late_value[TRLI_AGREED_CALLER];
    int said; /* messages when it was begun */
    struct {
        int64_t (*number)(const void *data); /* of this rank, or NULL: 0 */
        const void *data;
        int64_t most; /* of all ranks in the last one */
    } carried[TRLI_CARRIED];
    /* How many there were of each kind, between several ranks; a dt that is waited for counts among the first. */
    int64_t at_once, later;
} trli_agreement;

/* That a rank failed, before all ranks agree on it; see notice.c. While a run polls, its polls' owner has it; else the
 * main thread. */
typedef struct trli_notice {
    int64_t failures; /* on which all ranks agreed so far */
    int64_t known;    /* the last one that was posted or heard of */
    int64_t number;   /* that failure, and the rank */
    double moved;     /* when a message came last, or the notice */
    double looked;
    bool answered;
} trli_notice;

/* Messages that may arrive after the object that sent them, or waits for them, has ended; its first member. */
typedef struct trli_leftover trli_leftover;
struct trli_leftover {
    bool (*end)(trli_leftover *leftover); /* whether all has arrived; then its memory is gone */
    trli_leftover *next;
};

struct trl_context {
    MPI_Comm comm;
    int rank, ranks;
    int threads;
    trl_context_options options;
    trli_agreement agreement;
    trli_merging *left; /* to the polls of runs */
    trli_notice notice;
    trli_aid *aid; /* the first; NULL: there is none */
    _Atomic bool lost;
    int workers_alive;          /* trl_workers of this context; main thread only */
    _Atomic uint32_t graphs;    /* created so far */
    unsigned layouts;           /* of patches, created so far: their epochs; main thread only */
    unsigned exchanges;         /* created so far: their tags of messages; main thread only */
    trli_sent sent;             /* main thread only */
    bool multiple;              /* MPI lets several threads call it at a time: mpi_lock is not needed */
    pthread_mutex_t mpi_lock;   /* for a call of MPI in a run */
    pthread_mutex_t polls_lock; /* guards what polls change in a run of agreements under way, and of notices */
    trli_topology topology;
    trli_diagnostics diagnostics;
    trli_memory memory;
    trli_leftover *leftover;
};

/* Find the machine and this rank's share of it. Collective: yes. */
TRL_NODISCARD trl_err trli_topology_init(trl_context *ctx, trli_topology *topology);
void trli_topology_destroy(trli_topology *topology);
/* Warn if ranks outnumber the cores that they may use. Collective: yes. */
TRL_NODISCARD trl_err trli_topology_warn(trl_context *ctx);
/* The ranks of this rank's node, and what rank of the context each of them is. */
typedef struct trli_node_ranks {
    MPI_Comm comm;
    int size;
    int *rank; /* [size] */
} trli_node_ranks;
/* Find them. Both members are the caller's, also after a failure. Fails with MPI, MEMORY. Collective: yes. */
TRL_NODISCARD trl_err trli_topology_node(trl_context *ctx, trli_node_ranks *node);
/* Add numbers[n] up over the ranks of a node. Fails with MPI. Collective: yes, of all nodes. */
TRL_NODISCARD trl_err trli_topology_sum(trl_context *ctx, const trli_node_ranks *node, int n, uint64_t *numbers);
/* Bind the calling thread to the core-th core of the share. Failure is harmless: the thread stays where it was. */
void trli_topology_pin(const trli_topology *topology, int core);
/* Let the calling thread, and what it starts, run on all processors of the process. Returns how it was bound, which
 * trli_topology_rebind gives back; NULL: nothing has changed. */
hwloc_bitmap_t trli_topology_unbind(const trli_topology *topology);
void trli_topology_rebind(const trli_topology *topology, hwloc_bitmap_t bound);
/* Let whole pages of memory come from the NUMA node of the core-th core of the share. Does nothing on machines with
 * one node. A refusal by the system costs only speed. */
void trli_topology_bind(const trli_topology *topology, int core, void *memory, size_t bytes);

/* Take the locks for looking at agreements and notices in a run; false: another thread does. Thread: any. */
bool trli_polls_enter(trl_context *ctx);
void trli_polls_leave(trl_context *ctx);

/* This rank failed such that others may wait for its messages, and goes to the next agreement: tell them. Thread:
 * main. */
void trli_notice_post(trl_context *ctx);
/* Whether another rank waits in vain for messages of this one, which failed. Thread: main. */
bool trli_notice_answered(trl_context *ctx);
/* In polls of messages, now and then; moved: some came. May lose the rank. Thread: the polls' owner. */
void trli_notice_look(trl_context *ctx, bool moved);
/* All ranks agreed on a failure. Thread: main. */
void trli_notice_forget(trl_context *ctx);

void trli_diagnostics_init(trli_diagnostics *diagnostics);
void trli_diagnostics_destroy(trli_diagnostics *diagnostics);
/* Whether this thread has recorded an error since the last call. */
bool trli_diagnostics_said(void);
/* The thread that asked for what this one does: itself, or the one whose run or command it works on. A number. */
uint32_t trli_diagnostics_asker(void);
/* From now on this thread works for that one. */
void trli_diagnostics_work_for(uint32_t asker);
/* Behind the error of a file that this rank did not find: of several ranks' errors that of the lowest rank is shown. */
void trli_advise_rank(trl_context *ctx);
/* Turn the errors recorded from the message `first` on for the calling thread, by whichever thread, into warnings: the
 * failed work is done in another way. Those of runs that other threads asked for stay. */
void trli_diagnostics_forgive(trl_context *ctx, int first);

/* Give the errors without a place that were recorded from the message `first` on this one, which may name no file. */
void trli_diagnostics_locate(trl_context *ctx, int first, const trl_place *place);

/* Drop the errors recorded from the message `first` on. */
void trli_diagnostics_drop(trl_context *ctx, int first);
/* The same with warnings, where all was said before. */
void trli_diagnostics_drop_all(trl_context *ctx, int first);
/* Keep the first of several messages with the same text and place. */
void trli_diagnostics_unique(trli_diagnostics *diagnostics);
/* Replace the messages of all ranks by those of root. Collective: yes. */
TRL_NODISCARD trl_err trli_diagnostics_share(trl_context *ctx, int root);

/* Try to end messages now, and again when the context ends, until all have arrived: there all ranks try. Thread:
 * main. */
void trli_context_leave(trl_context *ctx, trli_leftover *leftover);

/* TRL_OK for MPI_SUCCESS; else record MPI's own message about the named call, and this rank is lost. Returns
 * TRL_ERR_MPI. Thread: any. */
TRL_NODISCARD trl_err trli_mpi_check(trl_context *ctx, int status, const char *call);
/* Declare this rank lost, unable to agree with the others: tell the creator of the context, once. Returns err.
 * Thread: any. */
trl_err trli_context_lose(trl_context *ctx, trl_err err);

/* Whether who waits lets others have the core: threads outnumber cores, or others want them, too. */
bool trli_context_yields(const trl_context *ctx);
/* INTERRUPTED, with a message, if the option `stop` says so. */
TRL_NODISCARD trl_err trli_context_stopped(trl_context *ctx);

#endif
