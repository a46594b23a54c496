/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Messages between ranks as tasks: one posts what is received as soon as the graph runs; of each neighbour some pack
 * and send, when the points are there, and others receive and unpack. Large messages are packed by several workers. */
#ifndef TRLI_MESSAGES_IMPL_H
#define TRLI_MESSAGES_IMPL_H

#include "halos_impl.h"
#include "tasks_impl.h"

/* How many tasks the messages of a plan take; 0: there are none. */
int trli_messages_tasks(const struct trl_exchange *plan);
/* Add them. task: [trli_messages_tasks] with program, step and exchange set. */
TRL_NODISCARD trl_err trli_messages_add(trli_task_builder *builder, const trli_exchanged *exchanged,
                                        const struct trl_exchange *plan, trli_step_task *task);

#endif
