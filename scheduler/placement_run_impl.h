/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The placement of a graph over its runs. */
#ifndef TRLI_PLACEMENT_RUN_IMPL_H
#define TRLI_PLACEMENT_RUN_IMPL_H

#include "placed_impl.h"
#include "placement_file_impl.h"

/* How tasks are placed. */
typedef enum trli_placement_mode {
    TRLI_PLACE_BY_TIMES,   /* as one of TRLI_PLACEMENT_LIST says, once all are timed */
    TRLI_PLACE_AT_RANDOM,  /* other places each time: whatever the placement, the results are the same */
    TRLI_PLACE_ON_DEVICES, /* whatever devices may do, on one after the other */
    TRLI_PLACE_BY_FILE     /* as a file says, of one graph; others by times */
} trli_placement_mode;

typedef struct trli_placement_rule {
    trli_placement_mode mode;
    trli_placement_kind kind; /* BY_TIMES */
    uint64_t seed;            /* AT_RANDOM */
    trli_placement_file file; /* BY_FILE */
} trli_placement_rule;

/* The rule that a text asks for, as trl_workers_set_placement describes. Fails with INPUT. */
TRL_NODISCARD trl_err trli_placement_rule_of(trl_context *ctx, const char *text, trli_placement_rule *rule);
/* Whether a graph is the one that the rule's file places. */
bool trli_placement_has_file(const trli_placement_rule *rule, const trl_graph *graph);

/* What workers have devices for. */
typedef struct trli_placing {
    const trl_devices *devices; /* NULL: none */
    trli_platform platform;
    trli_placement_rule rule;
} trli_placing;

/* Guarded by the graph's `placing`. */
typedef struct trli_placement {
    trl_graph *graph;
    const trl_devices *devices;
    int workers;
    trli_platform platform;
    trli_placement_rule rule;                  /* with the state of its sequence */
    trli_placement_rule asked;                 /* as it was given */
    bool used;                                 /* some run began */
    bool excluded[TRLI_EXECUTORS];             /* devices that are not used any more */
    int stage;                                 /* the executor that is timed; all are: the number of executors */
    int64_t runs;                              /* of the placement */
    int64_t sum_ns;                            /* of its runs since it was looked at */
    int64_t least_ns;                          /* of one of them */
    int64_t stage_ns[TRLI_EXECUTORS];          /* of a run in which an executor did all that it may */
    int single;                                /* the executor that does all that it may, after all; -1: as placed */
    int runs_now;                              /* in progress */
    double usual_ns;                           /* mean of its first runs */
    int32_t *unit;                             /* [tasks] the first of those that need one executor with it */
    uint16_t *eligible;                        /* [tasks] the same for all of a unit */
    uint8_t *executor;                         /* [tasks] */
    uint8_t *fixed;                            /* [tasks] BY_FILE, else NULL */
    double *seconds;                           /* [tasks][executors]; 0: not timed */
    double *latest;                            /* [tasks] of the last watched run */
    uint16_t *steady;                          /* [handles] spaces with the value when a run begins, as is assumed */
    trli_placed *placed;                       /* NULL: to be made */
    int64_t copies[TRL_WAYS], bytes[TRL_WAYS]; /* of placements that are gone */
} trli_placement;

/* A run begins: what the graph is run as, with memory for all data of the frame. A device without memory, or that
 * failed, is left out. Fails with MEMORY, and with DEVICE when another one has failed, which is left out next time. */
TRL_NODISCARD trl_err trli_placement_begin(trl_graph *graph, const trli_placing *placing, void *frame,
                                           trli_placed **placed);
/* See that a graph is placed, as its next run will find it, without memory for data; and that it stays so until it is
 * released. Fails with INPUT, MEMORY. */
TRL_NODISCARD trl_err trli_placement_hold(trl_graph *graph, const trli_placing *placing, trli_placed **placed);
void trli_placement_release(trl_graph *graph);
/* A run is over, with this result, after so many ns. */
void trli_placement_end(trl_graph *graph, trl_err err, int64_t ns);
/* How a graph that was not run would be placed: with estimated times, and nothing to be run. placing: maybe without
 * devices. The caller's, for trli_placement_free. Fails with INPUT, MEMORY. */
TRL_NODISCARD trl_err trli_placement_estimate(trl_graph *graph, const trli_placing *placing,
                                              trli_placement **placement);
void trli_placement_free(trli_placement *placement);
/* The executor e, or worker 0, does all that it may. */
void trli_placement_put_on(const trli_placement *placement, int e, uint8_t *executor);
/* Whether it follows from measured times. */
bool trli_placement_is_timed(const trli_placement *placement);
/* The graph as it is placed, with the times known. */
trli_place_graph trli_placement_view(const trli_placement *placement);
void trli_placement_destroy(trl_graph *graph);

/* ---- placement_outlook.c ---- */

/* What follows from a placement. */
typedef struct trli_outlook {
    int32_t *chain, chains;   /* [tasks] -1: none; of the tasks of one device */
    int32_t *region, regions; /* [tasks] -1: none */
    trli_transfers transfers;
    trli_prediction prediction;    /* of a run after equal ones; by whatever times there are */
    size_t memory[TRLI_EXECUTORS]; /* bytes */
} trli_outlook;

/* On failure nothing is left to free. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_outlook_make(const trli_placement *placement, trli_outlook *outlook);
void trli_outlook_free(trli_outlook *outlook);

/* ---- placement_explain.c ---- */

/* As trl_graph_write_placement describes. */
TRL_NODISCARD trl_err trli_placement_explain(const trli_placement *placement, bool measured, FILE *out);

/* ---- platform.c ---- */

/* The executors of some workers and devices, and what copies between their memories cost: measured. Fails with
 * DEVICE if a device fails that was asked for. */
TRL_NODISCARD trl_err trli_platform_of(const trl_devices *devices, int workers, trli_platform *platform);

#endif
