/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Placement: which executor runs each task of a frozen graph, and what has to be copied for it. Executor 0 is the
 * pools of workers, whose data is in the host's memory, space 0; executor e > 0 is a device, with space e. */
#ifndef TRLI_PLACEMENT_IMPL_H
#define TRLI_PLACEMENT_IMPL_H

#include <trl_graph.h>
#include <trl_policy.h>

#include "machines_impl.h"
#include "memory_impl.h"

enum {
    TRLI_EXECUTORS = 9,
    TRLI_CALLED = 14,   /* as a space of an access: it is that of a call whose body is placed */
    TRLI_ANYWHERE = 15, /* as a space: the space, known when a run, or what follows a call, begins, with the value */
};

/* Part of its time that a placement must save over one that lets the host go ahead (trli_placed.overlaps). */
#define TRLI_GAIN_AHEAD 0.25

typedef struct trli_platform {
    int executors;
    trl_kind kind[TRLI_EXECUTORS];
    int parallel[TRLI_EXECUTORS];                    /* tasks at once: the number of workers; 1 for a device */
    double launch[TRLI_EXECUTORS];                   /* s that a launch takes on the host and the device */
    size_t bytes[TRLI_EXECUTORS];                    /* bytes of memory; 0: unlimited */
    trli_route link[TRLI_EXECUTORS][TRLI_EXECUTORS]; /* by spaces, from and to */
} trli_platform;

/* A graph as placement sees it. Tasks are numbered in a serial order in which accesses are valid: a task reads the
 * value that was written last before it. */
typedef struct trli_place_graph {
    int32_t tasks;
    const int32_t *first, *successors; /* of t: successors[first[t]..first[t + 1]) */
    const int32_t *order;              /* topological */
    const int32_t *access_first;
    const trl_policy_access *access; /* of t: access[access_first[t]..access_first[t + 1]) */
    int32_t handles;
    const trl_policy_handle *handle;
    const uint16_t *eligible; /* [tasks] executors that may run it, a bit each; never 0 */
    const double *seconds;    /* [tasks][executors] */
    const uint16_t *valid;    /* [handles] spaces with the value when a run begins, a bit each; NULL: the host's */
    const int32_t *follows;   /* [handles] as trl_placement_problem has it */
    const int32_t *homes;     /* [handles] as trli_graph_set_home says, 0: none; NULL: no handle has one */
    const int32_t *pieces;    /* [handles] boxes, each of which takes the latency of a copy; NULL: one each */
    int32_t own;              /* tasks that are not of bodies of calls, which come behind them; 0: all */
    const int32_t *ends;      /* [tasks] the task with which its results are there: of a call; NULL: itself */
    /* [accesses] of calls whose bodies are placed, 0 of others: TRLI_CALLED, and the spaces where tasks of the body
     * read the data, or, if the call writes it, TRLI_ANYWHERE, a bit each. NULL: there are none. */
    const uint16_t *called;
} trli_place_graph;

#define TRLI_PLACEMENT_LIST(X)                                                                                         \
    X(finish_time, "each task where it ends first, transfers counted, the longest path to the end of the graph first") \
    X(round_robin, "chains of tasks to one device after the other")                                                    \
    X(min_load, "chains of tasks to the device with the least of them")

typedef enum trli_placement_kind {
#define TRLI_PLACEMENT_ENUM(name, doc) TRLI_PLACE_##name,
    TRLI_PLACEMENT_LIST(TRLI_PLACEMENT_ENUM)
#undef TRLI_PLACEMENT_ENUM
        TRLI_PLACEMENTS
} trli_placement_kind;

/* ---- placement_assign.c, placement_chains.c ---- */

/* Choose an executor for each task: [tasks] *executor is the caller's. Tasks that write parts of a value, or add to
 * it, without another access between them, get one executor, unless the value has no bytes or no executor may run
 * them all. The blocks that the tasks of an executor touch fit into its memory. By trli_predict with prefetch,
 * finish_time is at least as fast as the better of all tasks on one executor; its time is near-linear in tasks,
 * accesses and edges. Edges must include those of the accesses. Deterministic. Fails with MEMORY, also if no
 * placement is found that fits. */
TRL_NODISCARD trl_err trli_assign(trl_context *ctx, const trli_place_graph *graph, const trli_platform *machine,
                                  trli_placement_kind kind, uint8_t *executor);
/* All that devices may run on devices, in blocks of neighbouring strands; the workers run the rest, and what does not
 * fit into the memory of devices. Fails as trli_assign. */
TRL_NODISCARD trl_err trli_assign_to_devices(trl_context *ctx, const trli_place_graph *graph,
                                             const trli_platform *machine, uint8_t *executor);
/* Chains: paths of tasks that may run on devices, coalesced as in Robison (2014, appendix), with the errors of the
 * printed code corrected. [tasks] *chain: its number, or -1 for a task that runs on no device; returns the number of
 * chains. */
TRL_NODISCARD trl_err trli_chains(trl_context *ctx, const trli_place_graph *graph, int32_t *chain, int32_t *chains);

/* ---- placement_transfers.c ---- */

/* A copy of a value to a space, made once for all its readers there. */
typedef struct trli_transfer {
    int32_t handle;
    int32_t reader; /* the first reader in serial order: its access says which part of the data is copied */
    int32_t writer; /* the last task that wrote the value before; -1: the value is there when a run begins */
    int32_t source; /* the transfer that brought it to `from`; -1: it was written, or lay, there */
    /* The transfer waits for the tasks writers[writers_first..writers_end), which made the value: several if they wrote
     * parts or added; none if it waits for `source`. */
    int32_t writers_first, writers_end;
    uint8_t from, to; /* spaces */
} trli_transfer;

typedef struct trli_transfers {
    trli_list list;           /* trli_transfer, in serial order of their first readers */
    trli_list writers;        /* int32_t, for all of them */
    int32_t *access_transfer; /* [accesses] the transfer that an access waits for, or -1 */
    uint16_t *valid_after;    /* [handles] spaces with the value when a run ends */
    trli_list more;           /* trli_awaited: further transfers, to other spaces, that calls wait for; by task */
    uint16_t *found; /* [accesses] of data that a call writes, before it: spaces with the value; NULL: no `called` */
} trli_transfers;

/* A task waits for a transfer. */
typedef struct trli_awaited {
    int32_t task, transfer;
} trli_awaited;

/* Find the copies that a placement needs: at most one for each value and space. A value that is ANYWHERE, when a run
 * begins or behind a call whose body is placed, is copied to each space where it is read; a value that is valid
 * nowhere, or has no bytes, is not copied. Of tasks that write parts or add, the first one needs the value before
 * theirs, and all of them wait for its copy; what other data left in the memory is no value of theirs. On failure
 * nothing is left to free. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_transfers_find(trl_context *ctx, const trli_place_graph *graph, const trli_platform *machine,
                                          const uint8_t *executor, trli_transfers *transfers);
void trli_transfers_free(trli_transfers *transfers);
/* The spaces, a bit each, with the value of a handle that is ANYWHERE when a run begins, if equal runs came before it;
 * 0: no task touches it. transfers: those of such a run. */
unsigned trli_steady_spaces(const trli_place_graph *graph, const trli_transfers *transfers, int32_t handle);
/* [transfers] *task: of those that read a copy, or one made from it, the first in topological order. All else that it
 * waits for may be complete before the copy is made. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_transfers_wanted(trl_context *ctx, const trli_place_graph *graph,
                                            const trli_transfers *transfers, int32_t *task);

/* ---- placement_predict.c ---- */

typedef struct trli_prediction {
    double seconds;                /* of a run */
    double *start, *end;           /* [tasks] */
    double *copy_start, *copy_end; /* [transfers] */
    double busy[TRLI_EXECUTORS];
} trli_prediction;

/* Simulate a placement on a virtual clock. Each executor takes ready tasks, those with the longest path to the end
 * of the graph first, `parallel` at once. Copies take their links one after the other, as soon as the value is
 * available (prefetch), or only when all predecessors of the first reader (trli_transfers_wanted) are complete. A
 * value that is ANYWHERE when the run begins lies where equal previous runs left it. A task that starts when its
 * executor has just ended another is launched with that task, at no cost. Edges must include those of the accesses.
 * Deterministic. On failure nothing is left to free. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_predict(trl_context *ctx, const trli_place_graph *graph, const trli_platform *machine,
                                   const uint8_t *executor, const trli_transfers *transfers, bool prefetch,
                                   trli_prediction *prediction);
void trli_prediction_free(trli_prediction *prediction);

#endif
