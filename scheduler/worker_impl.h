/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Workers and their common work: jobs. */
#ifndef TRL_WORKER_IMPL_H
#define TRL_WORKER_IMPL_H

#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <trl_graph.h>

enum { TRLI_CACHE_LINE = 64, TRLI_NONE = -1 };

/* Padding that separates the members before and after it: processors that fetch a line of memory may fetch its
 * neighbour, too. */
#define TRLI_APART(name) char name[TRLI_CACHE_LINE]

struct trli_worker;

/* Result of working on a job, as bits: there was something to do; the worker left before the job was over. */
enum { TRLI_WORKED = 1, TRLI_NOT_OVER = 2 };

/* Common work of the workers: a run of a graph or of a loop, of which it is the first member. */
typedef struct trli_job {
    /* Work until the job is over, or this worker finds nothing to do. */
    int (*work)(struct trli_job *job, struct trli_worker *worker);
    /* Whether no work is left to begin. */
    bool (*over)(const struct trli_job *job);
} trli_job;

/* One thread of a trl_workers. Members are used by that thread only, except the atomic ones. */
typedef struct trli_worker {
    alignas(TRLI_CACHE_LINE) trl_workers *workers;
    pthread_t thread;
    int index;
    uint32_t generation;    /* generation of the job that the worker is at, given by the caller */
    _Atomic bool operators; /* prefers chunks of wide tasks */
    int32_t next;           /* task that the previous task released and that runs next; TRLI_NONE: none */
    int32_t pushed;    /* approximate number of tasks given to the policy and not taken back: work for other workers */
    int64_t completed; /* tasks not yet subtracted from the run's remaining ones */
    int64_t credit;    /* part of the run's remaining tasks that is reserved for tasks that this worker may spawn */
    _Atomic int64_t foreign;      /* takes from the pool that the worker does not prefer */
    int64_t idle_since;           /* ns; while it waits for work; else 0 */
    int64_t arrived;              /* ns; in this wait: the first message that came; 0: none */
    int64_t late;                 /* ns of this wait before that message was sent */
    struct trli_trace_lane *lane; /* NULL: no trace */
    TRLI_APART(before);
    /* A caller waits here. */
    alignas(TRLI_CACHE_LINE) _Atomic(trli_job *) at; /* its job; not set for worker 0, the caller */
    const void *shared[2], *own; /* lines that its last job began by reading and writing: often the next job's */
    TRLI_APART(after);
} trli_worker;

/* Prefetch a line for writing; harmless on an unmapped address. */
static inline void trli_prefetch_to_write(const void *line)
{
#if defined(__x86_64__)
    __asm__ volatile("prefetchw (%0)" : : "r"(line)); /* other compilers can only prefetch for reading */
#else
    __builtin_prefetch(line, 1);
#endif
}

/* One step of waiting: a pause of the processor, or a yield if threads outnumber cores. Returns how many looks in vain
 * it counts as. */
int trli_workers_pause(const trl_workers *workers);
/* Sleep for a while, or until woken, unless the job is over. A sleeping worker holds no task, so a wake-up that is
 * early or lost costs only time. */
void trli_workers_sleep(trl_workers *workers, const trli_job *job);
/* Between two looks for a message, of which so many were in vain: a pause; where threads outnumber cores, a short sleep
 * after many, as in trli_agree_rest: who yields is still given its share of the core. */
int trli_workers_rest(trl_workers *workers, const trli_job *job, int looks);
/* Wake one sleeping worker, if there is one; wake all. */
void trli_workers_wake_one(trl_workers *workers);
void trli_workers_wake_all(trl_workers *workers);
/* Whether other jobs are in progress. */
bool trli_workers_wanted_elsewhere(const trl_workers *workers);
/* Take a place among the jobs in progress, for trli_workers_do; TRLI_NONE: all are taken. */
int trli_workers_claim(trl_workers *workers);
/* Have the workers, the caller included, do a job that is ready to begin; returns when the job is over and no worker
 * is at it any more. generation: any number, which workers learn without reading a line of the job. */
void trli_workers_do(trl_workers *workers, int place, trli_job *job, uint32_t generation);
/* The same by the caller, which wakes nobody. */
void trli_workers_do_alone(trl_workers *workers, int place, trli_job *job);
/* The trace of the workers, or NULL. */
trl_trace *trli_workers_trace(const trl_workers *workers);
/* Whether the calling thread is at a job; set whether it is. */
bool trli_is_inside(void);
void trli_set_inside(bool inside);

#endif
