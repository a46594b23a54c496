/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* What readers need of a field. */
#ifndef TRLI_DEMAND_IMPL_H
#define TRLI_DEMAND_IMPL_H

#include <trl_operator.h>

/* What readers need of a field beyond its owned points. inner: at sides shared with other patches (and periodic ones);
 * side: at the domain's sides. */
typedef struct trli_demand {
    bool live;   /* read at all, or a root */
    bool beyond; /* side is set */
    trl_footprint inner;
    trl_offsets side;
    trl_footprint corner; /* the same as parts: which ghosts beyond several sides are read together */
    bool further[3];      /* beyond the plus side of an axis some reader has points farther out than beyond a patch */
} trli_demand;

#endif
