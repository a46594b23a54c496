/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The nodes of a run (spawned tasks and events) and their memory. */
#ifndef TRL_NODES_IMPL_H
#define TRL_NODES_IMPL_H

#include "engine_impl.h"

enum {
    TRLI_NODE_EDGES = 4,    /* events that a node waits for, at most */
    TRLI_NODES_FIRST = 256, /* nodes of the first block; each further one has twice as many */
    TRLI_NODES_BLOCKS = 17  /* at most */
};

typedef struct trli_run_node {
    trli_task_record record;
    _Atomic uint64_t count; /* generation; events and signals waited for */
    _Atomic uint64_t list;  /* generation; first edge + 1, 0: none */
    const char *name;
    trl_event signals;
    int32_t edge_next[TRLI_NODE_EDGES]; /* of the list that the edge is on */
    int32_t link;
    int32_t scope;        /* the task whose scope this task is in, or TRLI_NONE */
    int32_t call;         /* the call in whose body it is, or TRLI_NONE */
    _Atomic int32_t open; /* with TRL_TASK_SCOPE: tasks in its scope that are not complete, the task itself included */
    int32_t nwants;
    trli_want want[TRLI_SPAWN_WANTS]; /* wants, if they are few, else: */
    trli_want *many;                  /* [room], kept for later tasks that use the node */
    int32_t room;
    int32_t naccesses;
    const trl_spawn_access *accesses;
} trli_run_node;

typedef struct trli_free_nodes {
    alignas(TRLI_CACHE_LINE) int32_t first; /* by their links */
    int32_t count;
    int64_t live, spawned; /* by this worker: nodes taken minus nodes freed; tasks */
} trli_free_nodes;

struct trli_nodes {
    pthread_mutex_t lock; /* guards the number of blocks and `common` */
    int32_t blocks;
    int32_t common;       /* free nodes of no worker, by their links */
    trli_free_nodes *own; /* [workers] */
    _Atomic(trli_run_node *) block[TRLI_NODES_BLOCKS];
};

/* Block of a node. */
static inline int trli_nodes_block(int32_t index)
{
    return 31 - __builtin_clz((uint32_t)index / TRLI_NODES_FIRST + 1);
}

/* Nodes in the blocks before one. */
static inline int32_t trli_nodes_start(int block)
{
    return TRLI_NODES_FIRST * ((1 << block) - 1);
}

/* Acquire: the block's initial contents. */
static inline trli_run_node *trli_node_at(const trli_run_state *run, int32_t index)
{
    int block = trli_nodes_block(index);
    return &atomic_load_explicit(&run->nodes->block[block], memory_order_acquire)[index - trli_nodes_start(block)];
}

static inline trli_run_node *trli_node_of(const trli_run_state *run, int32_t task)
{
    return trli_node_at(run, task - run->view.tasks);
}

/* The generation of a node's next use, in the upper half of a word. */
static inline uint64_t trli_next_generation(uint64_t word)
{
    enum { GENERATIONS = INT32_MAX / 2 };
    uint64_t generation = word >> 32;
    return (generation < GENERATIONS ? generation + 1 : 1) << 32;
}

/* Take a node for a worker to use, and give it back. */
TRL_NODISCARD trl_err trli_node_take(trli_run_state *run, const trli_worker *worker, int32_t *index);
void trli_node_free(trli_run_state *run, const trli_worker *worker, int32_t index);

#endif
