/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Instances that share the fields of another. */

#include "instance_impl.h"
#include "memory_impl.h"

trl_err trli_instance_share(trli_instance *instance, trli_instance **shared)
{
    trli_instance *s = *shared = trli_new(instance->model->ctx, 1, sizeof *s);
    if (!s)
        return trli_no_memory(instance->model->ctx, NULL, "for an instance of %d expressions",
                              instance->model->front->nentries);
    *s = *instance;
    s->inline_only = true;
    s->of = instance;
    s->sides = s->inlined = NULL;
    s->memo = NULL;
    s->tangents = NULL;
    return TRL_OK;
}

trl_err trli_instance_sides(trli_instance *instance, trli_instance **sides)
{
    trl_err err = TRL_OK;
    *sides = instance->inline_only ? instance : instance->sides;
    if (*sides) return TRL_OK;
    err = trli_instance_share(instance, &instance->sides);
    if (err == TRL_OK) instance->sides->at_side = true;
    *sides = instance->sides;
    return err;
}

trl_err trli_instance_old(trli_instance *instance, trli_instance **old)
{
    trli_instance *then = *old = instance->old ? (trli_instance *)instance->old : instance;
    if (!instance->inline_only || then->inline_only) return TRL_OK;
    if (instance->at_side) return trli_instance_sides(then, old);
    const trl_err err = then->inlined ? TRL_OK : trli_instance_share(then, &then->inlined);
    *old = then->inlined;
    return err;
}
