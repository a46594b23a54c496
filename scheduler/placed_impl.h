/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* A placed graph: what is run in place of a frozen graph of which devices do tasks. It has the graph's tasks for
 * workers as they are; a launch for each region, the tasks that a device does without the host in between, and for each
 * transfer; and a watch for each point on a stream that the host waits for. */
#ifndef TRLI_PLACED_IMPL_H
#define TRLI_PLACED_IMPL_H

#include "engine_impl.h"
#include "executor_impl.h"
#include "placement_impl.h"

typedef enum trli_device_command_kind {
    TRLI_COMMAND_CALL,
    TRLI_COMMAND_COPY,
    TRLI_COMMAND_WAIT,
    TRLI_COMMAND_SET
} trli_device_command_kind;

/* What a launch gives to a device. */
typedef struct trli_device_command {
    uint8_t kind, stream;
    int32_t index; /* a task of the graph, a transfer, a fence */
} trli_device_command;

typedef struct trli_launch {
    struct trli_placed *placed;
    int32_t space;    /* of the device; 0: that of the device that has the value */
    int32_t first, n; /* of the commands */
    int32_t task;     /* logical: the first one, or of a transfer the one that reads first */
} trli_launch;

typedef struct trli_watch {
    struct trli_placed *placed;
    int32_t fence, n; /* one of n, of which only one is set in a run */
    int32_t task;     /* logical: the one watched, or of a transfer the one that reads first */
} trli_watch;

/* Data needs memory in a space. */
typedef struct trli_provision {
    int32_t handle;
    int32_t space;
} trli_provision;

/* What watched runs have shown of the copies of devices, in sums, s. */
typedef struct trli_placed_times {
    double copying, overlapped; /* time of copies; of it, with some device computing */
    double lead;                /* from the ends of copies to the first calls that read them */
    int64_t leads;
} trli_placed_times;

typedef struct trli_placed {
    trl_graph *logical; /* the graph that is placed */
    trl_graph *graph;   /* what is run */
    const trl_devices *devices;
    uint8_t *executor;        /* [logical tasks] */
    trli_transfers transfers; /* of the logical tasks */
    int32_t *node_of;         /* [logical tasks] a task of `graph` */
    int32_t *task_of;         /* [tasks of graph] a logical one, or -1 */
    int32_t nlaunches, nregions;
    trli_launch *launch; /* regions, then transfers */
    trli_list commands;  /* trli_device_command */
    trli_list fences;    /* int32_t: the space of the device whose fence it is */
    int32_t nwatches;
    trli_watch *watch;
    /* Workers touch no data, the host has none of what is copied within a run, and devices capture what they are given:
     * the next run may be given to them while this one is under way. */
    bool overlaps;
    int32_t ncalls;       /* of devices */
    int32_t *call;        /* [ncalls] the logical task */
    trli_list provisions; /* trli_provision */
    uint16_t *changed;    /* [logical handles] spaces in which runs change what was there when they began */
    /* Of all runs: copies made, and their bytes. */
    int64_t copies[TRL_WAYS], bytes[TRL_WAYS];
    trli_placed_times times; /* guarded, as they are */
} trli_placed;

/* s of the host's clock. */
typedef struct trli_busy_span {
    double begin, end;
} trli_busy_span;

/* What a run of a placed graph changes. */
typedef struct trli_placed_run {
    trli_fence **fence;   /* [nfences], then two for each call and each transfer of a device, around it */
    _Atomic bool *set;    /* [nfences] in this run, then those of the others, by twos */
    trli_outcome outcome; /* of what devices were given; numbers are logical tasks */
    /* Of each device, set when a watched run began, and that time of the host's clock. */
    trli_fence *origin[TRLI_EXECUTORS];
    int64_t origin_ns;
    trli_busy_span *busy; /* [calls] of a watched run: when devices computed */
    double *call_begin;   /* [logical tasks] negative: it is no call */
    _Atomic int64_t copies[TRL_WAYS], bytes[TRL_WAYS];
} trli_placed_run;

static inline int32_t trli_placed_fences(const trli_placed *placed)
{
    return (int32_t)placed->fences.count;
}

/* ---- placed_regions.c ---- */

/* Nodes: the tasks of a graph, then its transfers; who follows whom. */
typedef struct trli_placed_nodes {
    int32_t tasks, n;
    int32_t *after_first, *after;   /* successors of x: after[after_first[x]..after_first[x + 1]) */
    int32_t *before_first, *before; /* predecessors */
    int32_t *space;                 /* [n] of the device that does it; 0: workers, or a transfer to the host */
    int32_t *level;                 /* [n] how often the host waits before it: for a device, or in a poll task */
    bool *held;                     /* [n] it, or what it follows, waits for signals or a phase, too */
    double *weight;                 /* [n] the more, the earlier */
} trli_placed_nodes;

/* Put the tasks of devices into regions, such that a region is launched when all that it waits for is launched, or
 * complete. A held task is a region of its own: who gives the signals, or ends the phase, may follow any other. order:
 * [n] all nodes, regions in one piece; *region: [n] of a task of a device, else -1. */
TRL_NODISCARD trl_err trli_regions_find(trl_context *ctx, const trli_placed_nodes *nodes, int32_t *order,
                                        int32_t *region, int32_t *regions);

/* ---- placed_times.c ---- */

/* Begin to note a watched run; each call of a device; then each copy, after all calls; s after the run began. */
void trli_placed_times_start(trli_run_state *run);
/* n: of the calls noted before. */
void trli_placed_times_call(trli_run_state *run, int32_t n, int32_t task, trli_busy_span span);
/* Before copies: of n calls. Returns of how many spans the time is made in which devices computed. */
int32_t trli_placed_times_merge(trli_run_state *run, int32_t n);
void trli_placed_times_copy(trli_run_state *run, int32_t spans, const trli_transfer *transfer, trli_busy_span span);

/* ---- placed_nodes.c ---- */

TRL_NODISCARD trl_err trli_placed_nodes_find(trl_graph *logical, const uint8_t *executor,
                                             const trli_transfers *transfers, trli_placed_nodes *nodes);
void trli_placed_nodes_free(trli_placed_nodes *nodes);

/* ---- placed.c ---- */

/* A frozen graph as placement sees it, without what is eligible, times, and where values are. */
trli_place_graph trli_graph_to_place(const trl_graph *graph);

/* Whether executors of a kind may do a task of a frozen graph: those for which it has a variant; of what the runtime
 * keeps apart (locks, phases, signals, scopes, poll tasks, what is called after an error), only workers. */
bool trli_placed_eligible(const trl_graph *graph, int32_t task, trl_kind kind);
/* Build what is run when the tasks of a frozen graph are done by these executors. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_placed_create(trl_graph *logical, const trl_devices *devices, const trli_platform *platform,
                                         const uint8_t *executor, trli_placed **placed);
void trli_placed_destroy(trli_placed **placed);

/* ---- placed_run.c ---- */

trl_err trli_placed_launch(void *data, const trl_task_args *args, bool *done);
trl_err trli_placed_watch(void *data, const trl_task_args *args, bool *done);
/* The name of what failed, of which the run of a placed graph knows as a task: of the logical graph. */
const char *trli_placed_failed(const trli_run_state *run, int32_t task);
/* A run begins, or was given to the devices: see that runs that are under way do not meet. */
TRL_NODISCARD trl_err trli_placed_enter(const trli_placed *placed);
TRL_NODISCARD trl_err trli_placed_leave(const trli_placed *placed);
/* Memory for all data in the spaces where it is used; *space: of the device that has none, if it fails. */
TRL_NODISCARD trl_err trli_placed_provide(const trli_placed *placed, void *frame, int *space);
TRL_NODISCARD trl_err trli_placed_run_create(trli_run_state *run);
void trli_placed_run_destroy(trli_run_state *run);
void trli_placed_run_start(trli_run_state *run);
/* The run is over, well or not: which data is valid where; counts; and the times of a watched run that went well, by
 * logical task, s: 0 where none was taken. Guarded. */
void trli_placed_run_finish(trli_run_state *run, bool well, double *seconds);

#endif
