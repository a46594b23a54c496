/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Calls in placed graphs. The body of one is a placed graph, too, whose tasks freeze copies into the graph of the call
 * as it does those of any body; its runs are the rounds. A round finds data where the round before it left it, or the
 * graph of the call, and waits for all that it gave to devices. */
#ifndef TRLI_PLACED_CALLS_IMPL_H
#define TRLI_PLACED_CALLS_IMPL_H

#include "placed_run_impl.h"

/* Data in some spaces, a bit each. */
typedef struct trli_spot {
    int64_t key;
    uint16_t spaces;
} trli_spot;

/* The body of a call in a placed graph. */
typedef struct trli_placed_body {
    trli_placed *of;      /* the body's placed graph; NULL: workers do the body as it is */
    int32_t first;        /* where its tasks begin among the logical ones of the graph around it */
    trli_list found;      /* trli_spot, of what the call writes: where the value is before it; none: it has none */
    trli_list provisions; /* trli_provision, of the same data in the graph around it */
} trli_placed_body;

/* Make the bodies of a placed graph whose transfers are known. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_placed_bodies_create(trli_placed *placed, const trli_platform *platform);
/* Once the graph is frozen: find where the bodies' tasks are in it. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_placed_bodies_join(trli_placed *placed);
void trli_placed_bodies_destroy(trli_placed *placed);
/* Regions of a placed graph, with those of its bodies. */
int32_t trli_placed_regions(const trli_placed *placed);

/* ---- runs ---- */

/* Where the tasks of a call's body begin among the logical ones of a run; TRLI_NONE: 0. */
int32_t trli_placed_base(const trli_run_state *run, int32_t call);
/* A call begins, and its first round: its data is where the graph around it has left it. Fails with USAGE, MEMORY. */
TRL_NODISCARD trl_err trli_placed_call_begin(const trli_call *call, const trl_task_args *args);
/* A round is over, before the call's function sees its results. */
void trli_placed_round_end(trli_placed_run *state, trli_call_run *call, bool failed);
/* After it: another round follows, or none. An error is one of the task, the end of the round. */
void trli_placed_round_again(trli_run_state *run, int32_t call, int32_t end);
void trli_placed_call_end(trli_run_state *run, int32_t call, int32_t end);

#endif
