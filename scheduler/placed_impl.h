/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* A placed graph: it runs in place of a frozen graph if devices run some of its tasks. It has the graph's tasks for
 * workers as they are; a launch for each region (tasks that a device runs without the host in between) and for each
 * transfer; and a watch for each point on a stream that the host waits for. */
#ifndef TRLI_PLACED_IMPL_H
#define TRLI_PLACED_IMPL_H

#include "engine_impl.h"
#include "executor_impl.h"
#include "placement_impl.h"
#include "relaunch_impl.h"

typedef enum trli_device_command_kind {
    TRLI_COMMAND_CALL,
    TRLI_COMMAND_COPY,
    TRLI_COMMAND_WAIT,
    TRLI_COMMAND_WAIT_IF_SET, /* of a transfer that copies nothing where the value is there when a run begins */
    TRLI_COMMAND_SET
} trli_device_command_kind;

/* An item that a launch issues to a device. */
typedef struct trli_device_command {
    uint8_t kind, stream;
    int32_t index; /* of a task of the graph, a transfer, or a fence */
} trli_device_command;

typedef struct trli_launch {
    struct trli_placed *placed;
    int32_t space;    /* of the device; 0: the device that has the value */
    int32_t first, n; /* range of commands */
    int32_t task;     /* logical task: the first one; of transfers, the first one's first reader */
} trli_launch;

typedef struct trli_watch {
    struct trli_placed *placed;
    int32_t fence, n; /* the first of n fences, of which only one is set in a run */
    int32_t task;     /* logical task: the one watched; of a transfer, the first reader */
} trli_watch;

/* Data that needs memory in a space. */
typedef struct trli_provision {
    int32_t handle;
    int32_t space;
} trli_provision;

/* Of watched runs, by the devices' clocks, s. */
typedef struct trli_placed_times {
    double copying, overlapped; /* sums: time of copies; the part of it in which some device computed */
    double lead;                /* sum: from the ends of copies to the first calls that read their data */
    int64_t leads;
    double least; /* of any run: until its last call or copy ended; 0: none */
} trli_placed_times;

typedef struct trli_placed {
    trl_graph *logical; /* the graph that is placed */
    trl_graph *graph;   /* the graph that is run */
    const trl_devices *devices;
    bool late;                     /* copies wait for their readers: no prefetch */
    uint8_t *executor;             /* [logical tasks] executor of each, those of bodies of calls included */
    int32_t nbodies;               /* number of logical calls */
    struct trli_placed_body *body; /* [nbodies] of those that are placed, and in no other one; NULL: no calls */
    bool *lent; /* of a call's body: [logical handles] data that is brought before the call; NULL: it is no body */
    trli_transfers transfers; /* between the logical tasks */
    int32_t *node_of;         /* [logical tasks] its task of `graph` */
    int32_t *task_of;         /* [tasks of graph] its logical task, or -1 */
    int32_t nlaunches, nregions;
    trli_launch *launch; /* regions, then transfers: of a group of them only the first is launched, with all copies */
    trli_list commands;  /* trli_device_command */
    trli_list fences;    /* int32_t: the space of the device whose fence it is */
    bool *joint;         /* [fences] of a copy to a GPU for which only devices wait: it is set when one does */
    int32_t nwatches;
    trli_watch *watch;
    /* Workers touch no data, the host has no part in copies within a run, and devices capture the arguments of calls:
     * the next run may be issued while this one is in progress. */
    bool overlaps;
    bool urgent;              /* GPUs have tasks for their urgent streams */
    bool alone;               /* workers run no task that devices may run */
    bool light;               /* workers touch little data: one is enough */
    int32_t ncalls;           /* number of calls on devices */
    int32_t *call;            /* [ncalls] the logical task */
    trli_relaunch **relaunch; /* [ncalls] of the row of which a call is the first, or NULL; NULL: there are none */
    trli_list provisions;     /* trli_provision */
    uint16_t *changed; /* [logical handles] spaces in which a run overwrites the data that was there when it began */
#ifdef TRL_POISON
    int32_t *part; /* [logical handles] of the data, as the last access names it; -1: no task touches it */
#endif
    /* Of all runs: number of copies, and their bytes. */
    int64_t copies[TRL_WAYS], bytes[TRL_WAYS];
    trli_placed_times times; /* guarded, as the counts are */
} trli_placed;

static inline int32_t trli_placed_fences(const trli_placed *placed)
{
    return (int32_t)placed->fences.count;
}

/* ---- placed_regions.c ---- */

/* Nodes: the tasks of a graph, then its transfers, with the edges between them. */
typedef struct trli_placed_nodes {
    int32_t tasks, n;
    int32_t *after_first, *after;   /* successors of x: after[after_first[x]..after_first[x + 1]) */
    int32_t *before_first, *before; /* predecessors */
    int32_t *space;                 /* [n] space of the device that runs it; 0: workers, or a transfer to the host */
    int32_t *level; /* [n] how many times the host must wait before it, for a device or in a poll task */
    int32_t *poll;  /* [n] number of a poll task, from 1 in the order in which they were added; others: 0 */
    int32_t *feeds; /* [n] the least number of the poll tasks that follow it; INT32_MAX: none does */
    bool *held;     /* [n] it, or a node before it, also waits for signals or a phase */
    double *weight; /* [n] nodes of larger weight go first */
} trli_placed_nodes;

/* Put the tasks of devices into regions, such that a region is launched when everything that it waits for is
 * launched or complete. No region waits for a poll task and is waited for by that one or an earlier one, as messages
 * of several ranks may depend on each other (TRL_TASK_POLL). A held task is a region of its own, since the task that
 * gives the signals, or ends the phase, may follow any other task. order: [n] all nodes, each region contiguous;
 * *region: [n] of a task of a device, else -1. */
TRL_NODISCARD trl_err trli_regions_find(trl_context *ctx, const trli_placed_nodes *nodes, int32_t *order,
                                        int32_t *region, int32_t *regions);

/* ---- placed_groups.c ---- */

/* Find the transfers that are one launch: group[i] is the first one of the group of transfer i, perhaps i. In `order`,
 * of all nodes, those of a group come one after the other. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_groups_find(const trli_placed *placed, const trli_placed_nodes *nodes, int32_t *order,
                                       int32_t *group);

/* ---- placed_nodes.c ---- */

/* late: a transfer follows all that its first reader (trli_transfers_wanted) follows. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_placed_nodes_find(trl_graph *logical, const uint8_t *executor,
                                             const trli_transfers *transfers, bool late, trli_placed_nodes *nodes);
void trli_placed_nodes_free(trli_placed_nodes *nodes);

/* ---- placed_data.c ---- */

/* Find `provisions` and `changed`. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_placed_data_find(trli_placed *placed);
/* Whether workers touch little data. */
bool trli_placed_is_light(const trli_placed *placed);

/* ---- placed_relaunches.c ---- */

/* How many of n commands are a row: calls to one stream; where there is one device, with waits that are seldom needed.
 * *calls: how many are calls. */
int32_t trli_placed_row(const trli_placed *placed, const trli_device_command *command, int32_t n, int32_t *calls);
/* Once there are commands. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_placed_relaunches_create(trli_placed *placed, const trli_placed_nodes *nodes);
void trli_placed_relaunches_destroy(trli_placed *placed);

/* ---- placed.c ---- */

/* A frozen graph as placement sees it, without eligibility, times, and places of values. */
trli_place_graph trli_graph_to_place(const trl_graph *graph);

/* Whether executors of a kind may run a task of a frozen graph: those for which it has a variant. Tasks with locks,
 * phases, signals, scopes, poll tasks, and tasks called after an error run on workers only. */
bool trli_placed_eligible(const trl_graph *graph, int32_t task, trl_kind kind);
/* Whether workers run no task that devices may run. */
bool trli_placed_alone(const trli_placed *placed);
/* Build the graph that runs when these executors run the tasks of a frozen graph. late: copies wait for their readers.
 * Fails with MEMORY. */
TRL_NODISCARD trl_err trli_placed_create(trl_graph *logical, const trl_devices *devices, const trli_platform *platform,
                                         const uint8_t *executor, bool late, trli_placed **placed);
/* The same for the body of a call. lent: as in trli_placed, whose it is from here on. */
TRL_NODISCARD trl_err trli_placed_create_in(trl_graph *logical, const trl_devices *devices,
                                            const trli_platform *platform, const uint8_t *executor, bool late,
                                            bool *lent, trli_placed **placed);
void trli_placed_destroy(trli_placed **placed);

#endif
