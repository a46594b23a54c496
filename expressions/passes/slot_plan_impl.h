/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The memory plan: which slot each field has, and how it lies there. */
#ifndef TRLI_SLOT_PLAN_IMPL_H
#define TRLI_SLOT_PLAN_IMPL_H

#include "model_impl.h"

/* Patches of one kind have as many cells along each axis and the same sides of the domain, so that every field lies
 * alike on them. There are few kinds, however many patches. */
typedef struct trli_patch_kinds {
    int n;
    int *of;        /* [nlocal] */
    int *first;     /* [n] the first patch of the kind */
    int64_t *count; /* [n] its patches */
} trli_patch_kinds;

typedef struct trli_slot {
    int64_t *values; /* [kind of patch] room */
    bool persistent;
} trli_slot;

struct trli_slot_plan {
    int n;
    trli_slot *slot; /* [n] */
    trli_patch_kinds kinds;
    trl_array *geometry; /* [field][kind of patch]: shape, at relative to the slot's base */
    ptrdiff_t *origin;   /* [field][kind of patch]: offset of point (0,0,0) from the slot's base */
    int64_t bytes;       /* of all slots, and of scratch once it is known */
    /* [program][program] of the model: they may run in one frame at once; NULL: none may. A called program does so with
     * its callers. */
    unsigned char *meets;
};

/* Whether two programs of a frozen model may run in one frame at once. */
static inline bool trli_programs_may_meet(const trli_program *one, const trli_program *other)
{
    const trli_model *model = one->model;
    return model->slots->meets && model->slots->meets[one->number * model->nprograms + other->number];
}

/* Where geometry and origin have a field on a local patch. */
static inline size_t trli_slot_plan_index(const trli_slot_plan *plan, int field, int patch)
{
    return (size_t)field * (size_t)plan->kinds.n + (size_t)plan->kinds.of[patch];
}
/* The shape of a field on a local patch. */
static inline const trl_array *trli_shape_of(const trli_model *model, int field, int patch)
{
    return &model->slots->geometry[trli_slot_plan_index(model->slots, field, patch)];
}
/* The room of a slot on a local patch, in values. */
static inline int64_t trli_slot_values(const trli_slot_plan *plan, int slot, int patch)
{
    return plan->slot[slot].values[plan->kinds.of[patch]];
}

/* Fails with MEMORY; the caller frees also then. */
TRL_NODISCARD trl_err trli_patch_kinds_find(trl_context *ctx, const trl_layout *layout, trli_patch_kinds *kinds);
void trli_patch_kinds_free(trli_patch_kinds *kinds);

/* Deal the fields of all programs to slots. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_slots_plan(trli_model *model);
void trli_slot_plan_destroy(trli_slot_plan **plan);

#endif
