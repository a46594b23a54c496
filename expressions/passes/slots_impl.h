/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The memory plan: what slots.c finds out about temporaries and slots_colour.c deals to slots. */
#ifndef TRLI_SLOTS_IMPL_H
#define TRLI_SLOTS_IMPL_H

#include "slot_plan_impl.h"

/* A field that needs memory from step `first` to step `last` of a program, and none otherwise. */
typedef struct trli_temporary {
    int field, program, first, last;
    int64_t total;   /* on all patches of this rank */
    int64_t *values; /* [kind of patch] */
} trli_temporary;

/* A step that calls a program. */
typedef struct trli_called {
    int program, step;
    const trli_program *called;
} trli_called;

/* Which programs are in one frame at once. */
typedef struct trli_presence {
    int nprograms, ncalls;
    trli_called *call;    /* [ncalls] in the order of programs and steps */
    unsigned char *meets; /* [nprograms][nprograms] any step of one and any step of the other; NULL: none do */
} trli_presence;

typedef struct trli_temporaries {
    trli_model *model;
    const trli_patch_kinds *kinds;
    const trli_presence *presence;
    int n;
    trli_temporary *list; /* in the order in which they are produced: by program, then by first */
} trli_temporaries;

/* A way of dealing temporaries to slots. */
typedef struct trli_colouring {
    int nslots;
    int *slot;       /* [temporary] */
    int64_t *values; /* [slot][kind of patch] */
    int64_t total;   /* of all slots */
} trli_colouring;

/* ---- slots_presence.c ---- */

/* Of the programs of an analysed model. Fails with MEMORY, USAGE; the caller frees also then. */
TRL_NODISCARD trl_err trli_presence_find(const trli_model *model, trli_presence *presence);
void trli_presence_free(trli_presence *presence);
/* Whether a program has calls, or meets others. */
bool trli_presence_binds(const trli_presence *presence, int program);
/* Whether a temporary is live while some step of another program runs. */
bool trli_presence_has(const trli_presence *presence, const trli_temporary *t, int program);

/* ---- slots_colour.c ---- */

/* The colouring that needs the least memory of some; the caller frees it, also after a failure. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_colouring_choose(const trli_temporaries *t, trli_colouring *best);
void trli_colouring_free(trli_colouring *c);
trl_err trli_no_slots(const trli_model *model);

#endif
