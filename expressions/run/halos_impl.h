/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Exchanges of a program: what comes from other ranks is received by a task for each of them; what one patch of this
 * rank copies from others, by a task of its own, which runs where the patch is. */
#ifndef TRLI_HALOS_IMPL_H
#define TRLI_HALOS_IMPL_H

#include <exchange_impl.h>

#include "plan_impl.h"

/* What is exchanged, as trl_exchange_create takes it. field: [exchanged->n]. */
void trli_exchange_request(const trli_model *model, const trli_exchanged *exchanged, trl_exchange_field *field);
/* What an exchange moves, for building tasks. Fails as trl_exchange_create; destroyed by the caller. */
TRL_NODISCARD trl_err trli_exchange_plan_of(const trli_model *model, const trli_exchanged *exchanged,
                                            struct trl_exchange **plan);
/* Mark the axes, a bit each, along which an exchange receives something of other ranks, for [local patches]: it lies
 * beyond a side along one of them. */
void trli_exchange_mark_receivers(const struct trl_exchange *plan, unsigned char *axes);

#endif
