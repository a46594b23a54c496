/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* What threads do while they wait for other ranks: work of these. */
#ifndef TRL_AID_IMPL_H
#define TRL_AID_IMPL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct trl_context;
struct trl_workers;

/* Who waits: a worker of some workers, or between runs the main thread. */
typedef struct trli_idler {
    const struct trl_workers *workers; /* NULL: the main thread */
    int worker;
    int64_t ns; /* so long it has waited */
} trli_idler;

/* A way to help, kept by its creator while it is in the context's list. */
typedef struct trli_aid trli_aid;
struct trli_aid {
    _Atomic bool on;                                      /* relaxed: others may want help */
    bool (*help)(trli_aid *aid, const trli_idler *idler); /* whether something was done. Thread: any that waits */
    trli_aid *next;
};

/* Between runs. Thread: main. */
void trli_aid_add(struct trl_context *ctx, trli_aid *aid);
void trli_aid_remove(struct trl_context *ctx, const trli_aid *aid);
/* Whether there may be something to do; and do some of it, if there is. Thread: any that waits. */
bool trli_aid_may_be_wanted(const struct trl_context *ctx);
bool trli_aid_give(const struct trl_context *ctx, const trli_idler *idler);

#endif
