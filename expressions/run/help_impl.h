/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Ranks of a node help one another where they are uneven: a thread that waits for other ranks computes planes of a
 * kernel that one of them is at. It calls the same functions on the same arrays, which it has mapped, so the results
 * have the same bits; the rank whose kernel it is goes on when all planes are done. */
#ifndef TRLI_HELP_IMPL_H
#define TRLI_HELP_IMPL_H

#include "compute_impl.h"

typedef struct trli_help trli_help;

/* What this rank computed of others' kernels, and others of its own. */
typedef struct trli_help_given {
    int64_t points;
    double seconds;    /* of its threads, */
    double saved;      /* and those that it would have taken itself for what others computed */
    double step_share; /* seconds of a timed step, divided by the workers: what they add to its kernels' time */
} trli_help_given;

/* Whether ranks of a node may help one another with the kernels of a model: the same on all ranks. */
bool trli_help_may_come(const trli_model *model);
/* For a frame whose slots other ranks of the node have mapped to write to. Nothing is made where a rank has no memory
 * to share, or where ranks have not a core each. Collective: yes. Fails with MPI, MEMORY. */
TRL_NODISCARD trl_err trli_help_create(trli_frame *frame);
/* Between runs. Other ranks may still look at what was offered. */
void trli_help_destroy(trli_frame *frame);
/* What of a kernel's planes is offered at present, in parts of TRLI_HELP_WHOLE. Thread: any. */
int trli_help_share(const trli_help *help);
/* Whether all kernels are offered, for tests, also those that are timed to be tuned. */
bool trli_help_is_forced(const trli_help *help);
/* Compute planes [first, end) of a kernel's box, whose scalars are the frame's, and offer such a share of them; false:
 * there are values that are not finite. Thread: a worker. */
bool trli_help_planes(trli_help *help, const trli_bound_kernel *kernel, int worker, int share, long long first,
                      long long end);
/* Behind a step by one run of a graph: choose whether to help, and to offer anything. help: or NULL. Thread: main. */
void trli_help_end_step(trli_help *help, const trl_graph *graph, bool timed);
/* help: or NULL. */
trli_help_given trli_help_get_given(const trli_help *help);

#endif
