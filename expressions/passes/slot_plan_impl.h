/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The memory plan: which slot each field has, and how it lies there. */
#ifndef TRLI_SLOT_PLAN_IMPL_H
#define TRLI_SLOT_PLAN_IMPL_H

#include "model_impl.h"

typedef struct trli_slot {
    int64_t *values; /* [nlocal] room */
    bool persistent;
} trli_slot;

struct trli_slot_plan {
    int n;
    trli_slot *slot;     /* [n] */
    trl_array *geometry; /* [field][local patch]: shape, at relative to the slot's base */
    ptrdiff_t *origin;   /* [field][local patch]: offset of point (0,0,0) from the slot's base */
    int64_t bytes;       /* of all slots, and of scratch once it is known */
};

/* Deal the fields of all programs to slots. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_slots_plan(trli_model *model);
void trli_slot_plan_destroy(trli_slot_plan **plan);

#endif
