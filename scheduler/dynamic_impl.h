/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Spawned tasks and events of a run. */
#ifndef TRL_DYNAMIC_IMPL_H
#define TRL_DYNAMIC_IMPL_H

#include "graph_impl.h"
#include "worker_impl.h"

struct trli_run_state;

TRL_NODISCARD trl_err trli_nodes_create(struct trli_run_state *run);
void trli_nodes_destroy(struct trli_run_state *run);
/* The number of tasks spawned in a run, after it. */
int64_t trli_nodes_finish(struct trli_run_state *run);
/* Free all nodes, after a run that ended early. */
void trli_nodes_clear(struct trli_run_state *run);
trli_task_record *trli_node_record(const struct trli_run_state *run, int32_t task);
int32_t *trli_node_link(const struct trli_run_state *run, int32_t task);
const char *trli_node_name(const struct trli_run_state *run, int32_t task);
int32_t trli_node_accesses(const struct trli_run_state *run, int32_t task, const trl_spawn_access **access);
int32_t trli_node_wants(const struct trli_run_state *run, int32_t task, const trli_want **want);
/* A spawned task is complete: fire its event and count down the events that it signals. */
void trli_node_complete(struct trli_run_state *run, trli_worker *worker, int32_t task);
/* A task that has a scope, or is in one, is complete: complete the scopes that were waiting for it. */
void trli_scope_leave(struct trli_run_state *run, trli_worker *worker, int32_t task);
/* Append to a text what the waiting nodes wait for. */
void trli_nodes_report(const struct trli_run_state *run, FILE *out, int most);

#endif
