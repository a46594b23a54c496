/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* What a machine can do in a second: what the cost model and the plan reckon with. */
#ifndef TRLI_MACHINE_IMPL_H
#define TRLI_MACHINE_IMPL_H

#include <stdbool.h>

/* Of all workers of a rank at once, while the other ranks do the same. Loops over doubles, by the widest vectors. */
typedef struct trli_balance {
    double memory;      /* bytes/s of a copy with streaming stores, read and written */
    double cache;       /* bytes/s of a copy within the last-level cache */
    double operations;  /* additions and multiplications a second, in registers */
    double division;    /* additions that take as long as a division or a square root */
    double exponential; /* and as an exp */
    double caches;      /* bytes of the last-level cache, the workers' parts together */
} trli_balance;

/* What an exchange of two ranks of a node takes, by messages of MPI and through memory that they share: so long each,
 * and for each byte. */
typedef struct trli_ways {
    bool known;
    double message_s, message_byte_s, shared_s, shared_byte_s;
} trli_ways;

/* Whether ranks of a node help one another, as TRELLIS_HELPING of rank 0 says, for tests and measurements. */
typedef enum trli_helping { TRLI_HELPING_AUTO, TRLI_HELPING_OFF, TRLI_HELPING_ALWAYS } trli_helping;

/* The machine as the cost model sees it. */
typedef struct trli_machine {
    trli_balance balance;  /* measured */
    trli_balance deciding; /* what decides: the measured figures, or run.balance and nothing of this machine */
    bool streaming;        /* the fields of a step outgrow the caches */
    trli_ways ways;
    trli_helping helping;
    bool shares; /* ranks of a node exchange through memory: they may, and messages are not faster */
} trli_machine;

#endif
