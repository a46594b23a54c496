/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The workers of a context, for the files that give them work. */
#ifndef TRLI_WORKERS_IMPL_H
#define TRLI_WORKERS_IMPL_H

#include "placement_run_impl.h"

enum { TRLI_JOBS = 16 /* jobs in progress at once, at most */ };

/* The place of a job in progress. */
typedef struct trli_job_place {
    _Atomic(trli_job *) job; /* not cleared when the place is closed */
    uint32_t generation;     /* generation of the job */
} trli_job_place;

struct trl_workers {
    trl_context *ctx;
    char *name;
    const trl_policy *policy;
    void *library;        /* of a policy plugin */
    uint64_t serial;      /* different from the number of all other workers of the process */
    int count, started;   /* workers, the caller of trl_graph_run among them; threads started */
    int tasks, operators; /* as the user asked; 0, 0: adapt */
    bool yields, pins, adapts;
    pthread_t creator;
    bool pinned_caller; /* it is among those that pinned the creating thread */
    trli_worker *worker;
    trl_trace *trace;
    trli_placing placing;

    TRLI_APART(before_open);
    /* Idle workers watch this line, and find in it the job to begin with, if few are in progress. */
    alignas(TRLI_CACHE_LINE) _Atomic uint64_t
        open;           /* places whose jobs workers may begin; above these bits, the count of openings */
    _Atomic int active; /* workers that take part; the others sleep */
    trli_job_place place[TRLI_JOBS];
    TRLI_APART(before_claimed);
    /* Callers write these. */
    alignas(TRLI_CACHE_LINE) _Atomic uint32_t claimed; /* places that callers hold */
    _Atomic bool seat;                                 /* a caller is worker 0 */
    TRLI_APART(before_stopping);
    alignas(TRLI_CACHE_LINE) _Atomic bool stopping;
    _Atomic int sleepers;
    pthread_mutex_t lock;      /* for going to sleep and waking up */
    pthread_cond_t wake, more; /* active */
};

/* USAGE if the workers are at a job. */
TRL_NODISCARD trl_err trli_workers_check_idle(const trl_workers *workers);
/* Set how many workers take part from now on. */
void trli_workers_set_active(trl_workers *workers, int count);

#endif
