/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The placement of a graph across its runs. */
#ifndef TRLI_PLACEMENT_RUN_IMPL_H
#define TRLI_PLACEMENT_RUN_IMPL_H

#include "placed_impl.h"
#include "placement_file_impl.h"

/* How tasks are placed. */
typedef enum trli_placement_mode {
    TRLI_PLACE_BY_TIMES,   /* by a method of TRLI_PLACEMENT_LIST, once all tasks are timed */
    TRLI_PLACE_AT_RANDOM,  /* at random, changing all the time: results do not depend on the placement */
    TRLI_PLACE_ON_DEVICES, /* every task that devices can run, on the devices, neighbours together */
    TRLI_PLACE_BY_FILE     /* one graph as a file says, others by times */
} trli_placement_mode;

typedef struct trli_placement_rule {
    trli_placement_mode mode;
    bool named;               /* BY_TIMES: the user named a method, other than "auto" */
    trli_placement_kind kind; /* BY_TIMES: the method */
    uint64_t seed;            /* AT_RANDOM: the seed */
    trli_placement_file file; /* BY_FILE: the file */
} trli_placement_rule;

/* The rule that a text names, as trl_workers_set_placement describes. Fails with INPUT. */
TRL_NODISCARD trl_err trli_placement_rule_of(trl_context *ctx, const char *text, trli_placement_rule *rule);
/* Whether a graph is the one that the rule's file places. */
bool trli_placement_has_file(const trli_placement_rule *rule, const trl_graph *graph);

/* Whether an executor was tried in the place of the placement, whose mean was above the executor's least time. */
typedef enum trli_second_look { TRLI_LOOK_BEFORE, TRLI_LOOK_BEGUN, TRLI_LOOK_OVER } trli_second_look;

/* The devices of some workers. */
typedef struct trli_placing {
    const trl_devices *devices; /* NULL: none */
    trli_platform platform;
    trli_placement_rule rule;
    const trl_placement_policy *policy; /* in place of the rule "auto"; NULL: none */
    bool late;                          /* copies wait for their readers: no prefetch */
} trli_placing;

/* Guarded by the graph's `placing`. */
typedef struct trli_placement {
    trl_graph *graph;
    const trl_devices *devices;
    int workers;
    trli_platform platform;
    trli_placement_rule rule;                 /* with the state of its sequence */
    trli_placement_rule asked;                /* the rule that the user gave */
    bool used;                                /* a run has begun */
    bool late, asked_late;                    /* copies wait for their readers: no prefetch; so the user asked */
    const trl_placement_policy *policy;       /* places BY_TIMES in place of the method; NULL: none */
    const trl_placement_policy *asked_policy; /* the policy of the workers */
    void *policy_state;
    bool policy_is_set_up;
    bool excluded[TRLI_EXECUTORS];    /* devices that are no longer used */
    int stage;                        /* the executor that is being timed; all are timed: the number of executors */
    int64_t runs;                     /* of the placement */
    int64_t untimed;                  /* others, which took what runs of other graphs take */
    int64_t sum_ns;                   /* runs since the last look at the times */
    int64_t least_ns;                 /* s of one of these runs */
    int64_t stage_ns[TRLI_EXECUTORS]; /* s of a run in which one executor ran every task that it may */
    bool stage_left[TRLI_EXECUTORS];  /* such runs are left to it: trli_placed.overlaps */
    int single;      /* the executor that runs every task that it may, because that was faster; -1: as placed */
    int runs_now;    /* runs in progress */
    double usual_ns; /* mean s of its first runs */
    trli_second_look second_look;
    int64_t fetching;    /* runs in a row that workers made alone, and for which devices sent data */
    int64_t fetched;     /* copies from devices before the last of them */
    int64_t patience;    /* so many, and the executors are timed again; 0: as at first */
    int former;          /* BEGUN: what `single` was before */
    double former_ns;    /* and mean s of the runs */
    int32_t *unit;       /* [tasks] the first task of its unit */
    uint16_t *eligible;  /* [tasks] the same for all of a unit */
    uint8_t *executor;   /* [tasks] the executor */
    uint8_t *fixed;      /* [tasks] BY_FILE, else NULL */
    double *seconds;     /* [tasks][executors]; 0: not timed */
    double *latest;      /* [tasks] of the last watched run */
    uint16_t *steady;    /* [handles] assumed spaces with the value when a run begins */
    trli_placed *placed; /* NULL: not made yet */
    int64_t copies[TRL_WAYS], bytes[TRL_WAYS]; /* counts of earlier placed graphs */
    int64_t done[TRLI_EXECUTORS];              /* tasks in all runs */
} trli_placement;

/* A run begins: choose the graph that is run, and provide memory for all data of the frame. A device that has no
 * memory, or that failed, is left out. Fails with MEMORY; with DEVICE if another device has failed, which is left
 * out next time. *apart: the run is one of those whose times decide on the placement. */
TRL_NODISCARD trl_err trli_placement_begin(trl_graph *graph, const trli_placing *placing, void *frame,
                                           trli_placed **placed, bool *apart);
/* Place a graph as its next run will, without memory for data, and keep the placement until it is released. Fails
 * with INPUT, MEMORY. */
TRL_NODISCARD trl_err trli_placement_hold(trl_graph *graph, const trli_placing *placing, trli_placed **placed);
void trli_placement_release(trl_graph *graph);
/* A run has ended with this result, after so many ns; timed: they are its own. */
void trli_placement_end(trl_graph *graph, trl_err err, int64_t ns, bool timed);
/* The expected placement of a graph that was not run: from estimated times, without a graph to run. placing:
 * possibly without devices. The caller frees it with trli_placement_free. Fails with INPUT, MEMORY. */
TRL_NODISCARD trl_err trli_placement_estimate(trl_graph *graph, const trli_placing *placing,
                                              trli_placement **placement);
void trli_placement_free(trli_placement *placement);
/* Executor e runs every task that it may; the workers run the rest. */
void trli_placement_put_on(const trli_placement *placement, int e, uint8_t *executor);
/* Whether the graph is placed where another one is: trl_graph_follow. */
bool trli_placement_follows(const trli_placement *placement);
/* Whether the placement is based on measured times. */
bool trli_placement_is_timed(const trli_placement *placement);
/* The graph as it is placed, with the times known. */
trli_place_graph trli_placement_view(const trli_placement *placement);
void trli_placement_destroy(trl_graph *graph);

/* Seconds of a task on an executor; 0: not timed. */
double *trli_placement_seconds_at(const trli_placement *placement, int32_t task, int executor);
/* Seconds of a task of which all its calls take so many: a wide task occupies all workers. */
double trli_placement_on_workers(const trli_placement *placement, int32_t task, double sum);
bool trli_placement_may_run(const trli_placement *placement, int32_t task, int executor);
/* Whether it follows from times that runs show. */
bool trli_placement_is_by_times(const trli_placement *placement);
/* The graph must be placed again. */
void trli_placement_drop(trli_placement *placement);

/* ---- placement_learn.c ---- */

enum { TRLI_PLACEMENT_TRIED = 8 }; /* runs before a placement is compared with a single executor */

/* The next executor to be timed, one that may run some task; after the last one all are timed. */
void trli_placement_next_stage(trli_placement *placement);
/* Begin to time all executors again. */
void trli_placement_time_again(trli_placement *placement);
/* Learn from a run of so many ns; timed: they are its own. The placement changes only while no run is in progress. */
void trli_placement_learn(trli_placement *placement, int64_t ns, bool timed);

/* ---- placement_policy.c ---- */

/* Call the placement's policy, and check its assignment, [tasks] *executor. After a failure the placement goes on
 * without the policy. Fails with PLUGIN. */
TRL_NODISCARD trl_err trli_policy_assign(trli_placement *placement, uint8_t *executor);
/* Release the policy's state. */
void trli_policy_end(trli_placement *placement);

/* ---- placement_outlook.c ---- */

/* Consequences of a placement. */
typedef struct trli_outlook {
    int32_t *chain, chains;   /* [tasks] number of the chain on one device; -1: none */
    int32_t *region, regions; /* [tasks] number of the region; -1: none */
    trli_transfers transfers;
    trli_prediction prediction;    /* of a run after equal runs, from the best times known */
    size_t memory[TRLI_EXECUTORS]; /* bytes */
} trli_outlook;

/* On failure nothing is left to free. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_outlook_make(const trli_placement *placement, trli_outlook *outlook);
void trli_outlook_free(trli_outlook *outlook);
/* Bytes of its transfers. */
int64_t trli_outlook_bytes(const trli_placement *placement, const trli_outlook *outlook);

/* ---- placement_explain.c ---- */

/* As trl_graph_write_placement describes. */
TRL_NODISCARD trl_err trli_placement_explain(const trli_placement *placement, bool measured, FILE *out);

/* ---- platform.c ---- */

/* The executors of some workers and devices, and measured costs of copies between their memories. Fails with DEVICE
 * if a device fails that the user asked for. */
TRL_NODISCARD trl_err trli_platform_of(const trl_devices *devices, int workers, trli_platform *platform);

#endif
