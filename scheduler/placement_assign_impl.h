/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Shared by all ways to assign executors: units, and the memory of the devices. */
#ifndef TRLI_PLACEMENT_ASSIGN_IMPL_H
#define TRLI_PLACEMENT_ASSIGN_IMPL_H

#include "placement_values_impl.h"

enum { TRLI_UNPLACED = TRLI_EXECUTORS };

/* A unit is a set of tasks that need a common executor: those that make a value together, and with each of them all
 * others with which it makes a value. */
typedef struct trli_assignment {
    trl_context *ctx;
    const trli_place_graph *graph;
    const trli_platform *machine;
    const trli_values *values;
    trli_scratch scratch; /* owns the following arrays */
    int32_t units;
    int32_t *unit;                   /* [tasks] */
    int32_t *unit_first, *unit_task; /* CSR, by unit */
    uint16_t *may;                   /* [units] executors that may run it, a bit each */
    size_t *block_bytes;             /* [blocks] */
    uint16_t *held;                  /* [blocks] executors that need memory for it, a bit each */
    int32_t *seen, search;           /* [blocks] number of the search that reached it last */
    size_t used[TRLI_EXECUTORS];
    uint8_t *executor; /* [tasks] or TRLI_UNPLACED: the assignment under construction */
} trli_assignment;

/* [tasks] *unit: the first task of a task's unit. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_units_find(trl_context *ctx, const trli_place_graph *graph, int32_t *unit);
/* Start with all units unplaced. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_assignment_begin(trli_assignment *a);
/* Start again. Memory is reserved at once for units that only one executor may run. */
void trli_assignment_clear(trli_assignment *a);
void trli_assignment_end(trli_assignment *a);
/* Whether the executor may run the unit and has the memory. */
bool trli_unit_fits(trli_assignment *a, int32_t unit, int executor);
void trli_unit_place(trli_assignment *a, int32_t unit, int executor);
/* Place a unit on the executor if it fits, else on the first executor where it fits; false: it fits nowhere. */
bool trli_unit_place_near(trli_assignment *a, int32_t unit, int executor);
/* Whether each unit, in any placement of all, may run where it is, and the memory suffices. */
bool trli_assignment_fits(trli_assignment *a);

/* ---- placement_finish.c ---- */

/* Place all units, each where its first task ends first. first: [handles] spaces with the value when a run begins;
 * if no executor has it, no copy is counted. *complete: false if some unit fits nowhere. Fails with MEMORY. Source:
 * Topcuoglu, Hariri and Wu (2002), HEFT. */
TRL_NODISCARD trl_err trli_assign_finish_time(trli_assignment *a, const uint16_t *first, bool *complete);

/* ---- placement_strands.c ---- */

/* Strands: sets of tasks that hand most of their data on to one another, from run to run, too. [tasks] *strand: its
 * number; strands are numbered in the order of their first tasks, so that neighbours are near. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_strands_find(trl_context *ctx, const trli_place_graph *graph, const trli_values *values,
                                        int32_t *strand, int32_t *strands);
/* Deal strands in blocks to executors, a bit each, in proportion to their speeds. *complete: false if some unit fits
 * nowhere. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_assign_blocks(trli_assignment *a, const int32_t *strand, int32_t strands, unsigned among,
                                         bool *complete);

/* ---- placement_improve.c ---- */

/* The best placement so far, by the predicted cost of a run: its seconds, and a small part of those of all copies, also
 * of those that computing hides. */
typedef struct trli_best {
    double cost;    /* infinite: none so far */
    double seconds; /* of a run */
    double most;    /* no placement is kept whose runs take longer, s */
    uint8_t *executor;
} trli_best;

/* Keep the assignment's placement if it costs less. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_best_compare(trli_assignment *a, trli_best *best);
/* Sets of tasks that are moved together. */
typedef struct trli_clusters {
    int32_t n, *of; /* [tasks] the number of its cluster; -1: none */
} trli_clusters;
/* Move units, chains and strands, and exchange units and strands, as long as runs cost less and the graph is small.
 * Fails with MEMORY. */
TRL_NODISCARD trl_err trli_best_improve(trli_assignment *a, const trli_clusters *chains, const trli_clusters *strands,
                                        trli_best *best);

#endif
