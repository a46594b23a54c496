/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Workers and what they do together: jobs. */
#ifndef TRL_WORKER_IMPL_H
#define TRL_WORKER_IMPL_H

#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <trl_graph.h>

enum { TRLI_CACHE_LINE = 64, TRLI_NONE = -1 };

/* A member that keeps what lies before it from what follows: processors that fetch a line of memory may fetch its
 * neighbour, too. */
#define TRLI_APART(name) char name[TRLI_CACHE_LINE]

struct trli_worker;

/* What came of working on a job, as bits: there was something to do; the job was left before it was over. */
enum { TRLI_WORKED = 1, TRLI_NOT_OVER = 2 };

/* Something that workers do together: a run of a graph or of a loop, of which it is the first member. */
typedef struct trli_job {
    /* Work on it until it is over, or there is nothing to do for this worker. */
    int (*work)(struct trli_job *job, struct trli_worker *worker);
    /* Nothing is left to begin with. */
    bool (*over)(const struct trli_job *job);
} trli_job;

/* One thread of a trl_workers. Members are used by that thread only, but for the atomic ones. */
typedef struct trli_worker {
    alignas(TRLI_CACHE_LINE) trl_workers *workers;
    pthread_t thread;
    int index;
    uint32_t generation;          /* of the job that it is at, as its caller says */
    _Atomic bool operators;       /* prefers chunks of wide tasks */
    int32_t next;                 /* released by the task before, runs next; TRLI_NONE: none */
    int32_t pushed;               /* tasks given to the policy and not taken back, roughly: what others could do */
    int64_t completed;            /* tasks, not yet subtracted from the run's remaining */
    int64_t credit;               /* part of the run's remaining: for tasks that this worker may still spawn */
    _Atomic int64_t foreign;      /* takes from the pool that it does not prefer */
    struct trli_trace_lane *lane; /* NULL: no trace */
    TRLI_APART(before);
    /* A caller waits here. */
    alignas(TRLI_CACHE_LINE) _Atomic(trli_job *) at; /* the job that it is at; not said of worker 0, the caller */
    const void *shared[2], *own; /* lines with which its last job began, read and written: it may be the next one too */
    TRLI_APART(after);
} trli_worker;

/* Prefetch a line for writing; harmless on an unmapped address. */
static inline void trli_prefetch_to_write(const void *line)
{
#if defined(__x86_64__)
    __asm__ volatile("prefetchw (%0)" : : "r"(line)); /* compilers that do not know the processor only fetch to read */
#else
    __builtin_prefetch(line, 1);
#endif
}

/* One step of waiting: a pause of the processor, or a yield where threads outnumber cores. */
void trli_workers_pause(const trl_workers *workers);
/* Sleep for a while, or until woken, unless the job is over. A sleeping worker holds no task, so a wake-up that comes
 * too early or is lost costs time and nothing else. */
void trli_workers_sleep(trl_workers *workers, const trli_job *job);
/* Wake a sleeping worker if there is one; all of them. */
void trli_workers_wake_one(trl_workers *workers);
void trli_workers_wake_all(trl_workers *workers);
/* Whether there are other jobs in progress. */
bool trli_workers_wanted_elsewhere(const trl_workers *workers);
/* A place for a job among those in progress, for trli_workers_do; TRLI_NONE: all are taken. */
int trli_workers_claim(trl_workers *workers);
/* Have the workers do a job, ready to begin, the caller among them; returns when it is over and nobody is at it any
 * more. Workers learn the generation, any number, without reading a line of the job. */
void trli_workers_do(trl_workers *workers, int place, trli_job *job, uint32_t generation);
/* The trace of the workers, or NULL. */
trl_trace *trli_workers_trace(const trl_workers *workers);
/* Whether the calling thread is at a job already; say that it is, or is no more. */
bool trli_is_inside(void);
void trli_set_inside(bool inside);

#endif
