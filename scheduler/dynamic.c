/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Work made by running tasks. A node is an event: a count, and a list of the nodes that wait for it; when the count
 * comes to zero, a plain event fires at once, a spawned task becomes ready and fires when it is complete. To fire is to
 * close the list, count down all that were on it and free the node.
 *
 * A node is used again, so its count and its list carry the generation of the use in their upper halves: who holds the
 * name of an event that has fired finds another generation. An edge of a list is a place in the node that waits, 4 to a
 * node; a task that waits for more has events in between. */
#include <stdlib.h>
#include <string.h>

#include "engine_impl.h"

enum {
    EDGES = 4,        /* events that a node waits for, at most */
    FIRST = 256,      /* nodes of the first block; each further one has twice as many */
    BLOCKS = 17,      /* at most */
    KEEP = 4 * FIRST, /* free nodes that a worker keeps for itself */
    CREDIT = 64,      /* tasks added to the remaining ones at once */
    GENERATIONS = INT32_MAX / 2,
};

typedef struct node {
    trli_task_record record;
    _Atomic uint64_t count; /* generation; events and signals waited for */
    _Atomic uint64_t list;  /* generation; first edge + 1, 0: none */
    const char *name;
    trl_event signals;
    int32_t edge_next[EDGES]; /* of the list that the edge is on */
    int32_t link;
    int32_t scope;        /* the task in whose scope this one is, or TRLI_NONE */
    _Atomic int32_t open; /* with TRL_TASK_SCOPE: tasks in its scope that are not complete, itself included */
    int32_t nwants;
    trli_want want[TRLI_SPAWN_WANTS];
} node;

typedef struct free_nodes {
    alignas(TRLI_CACHE_LINE) int32_t first; /* by their links */
    int32_t count;
    int64_t live, spawned; /* nodes taken minus nodes freed; tasks, by this worker */
} free_nodes;

struct trli_nodes {
    pthread_mutex_t lock; /* guards the blocks' number and `common` */
    int32_t blocks;
    int32_t common;  /* free nodes of no worker, by their links */
    free_nodes *own; /* [workers] */
    _Atomic(node *) block[BLOCKS];
};

/* ---- storage ---- */

static int block_of(int32_t index)
{
    return 31 - __builtin_clz((uint32_t)index / FIRST + 1);
}

/* Nodes in the blocks before one. */
static int32_t start_of(int block)
{
    return FIRST * ((1 << block) - 1);
}

/* Acquire: of the block's first contents. */
static node *get(const trli_run_state *run, int32_t index)
{
    int block = block_of(index);
    return &atomic_load_explicit(&run->nodes->block[block], memory_order_acquire)[index - start_of(block)];
}

static node *node_of(const trli_run_state *run, int32_t task)
{
    return get(run, task - run->view.tasks);
}

trli_task_record *trli_node_record(const trli_run_state *run, int32_t task)
{
    return &node_of(run, task)->record;
}

int32_t *trli_node_link(const trli_run_state *run, int32_t task)
{
    return &node_of(run, task)->link;
}

const char *trli_node_name(const trli_run_state *run, int32_t task)
{
    return node_of(run, task)->name;
}

int32_t trli_node_wants(const trli_run_state *run, int32_t task, const trli_want **want)
{
    *want = node_of(run, task)->want;
    return node_of(run, task)->nwants;
}

void trli_nodes_destroy(trli_run_state *run)
{
    struct trli_nodes *nodes = run->nodes;
    trl_context *ctx = run->graph->ctx;
    if (nodes == NULL) return;
    for (int32_t b = 0; b < nodes->blocks; ++b) {
        void *block = atomic_load_explicit(&nodes->block[b], memory_order_relaxed); /* no run is in progress */
        trl_memory_free(ctx, &block);
    }
    pthread_mutex_destroy(&nodes->lock);
    void *memory[] = {nodes->own, nodes};
    for (size_t i = 0; i < sizeof memory / sizeof *memory; ++i) trl_memory_free(ctx, &memory[i]);
    run->nodes = NULL;
}

trl_err trli_nodes_create(trli_run_state *run)
{
    trl_err err;
    void *memory, *own = NULL;
    size_t workers = (size_t)run->view.workers;
    TRL_TRY(trl_memory_alloc(run->graph->ctx, workers * sizeof(free_nodes), "spawned tasks", &own));
    TRL_TRY(trl_memory_alloc(run->graph->ctx, sizeof(struct trli_nodes), "spawned tasks", &memory));
    run->nodes = memset(memory, 0, sizeof *run->nodes);
    run->nodes->own = memset(own, 0, workers * sizeof(free_nodes));
    run->nodes->common = TRLI_NONE;
    for (size_t w = 0; w < workers; ++w) run->nodes->own[w].first = TRLI_NONE;
    pthread_mutex_init(&run->nodes->lock, NULL);
    own = NULL;
done:
    trl_memory_free(run->graph->ctx, &own);
    return err;
}

/* A block of new nodes for a worker. Under the lock. */
static trl_err grow(trli_run_state *run, free_nodes *own)
{
    trl_err err;
    struct trli_nodes *nodes = run->nodes;
    void *memory;
    if (nodes->blocks == BLOCKS)
        return trl_fail(run->graph->ctx, TRL_ERR_MEMORY, NULL,
                        "graph '%s': more than %d spawned tasks and events at once", run->graph->name,
                        start_of(BLOCKS));
    int32_t start = start_of(nodes->blocks), size = start_of(nodes->blocks + 1) - start;
    TRL_TRY(trl_memory_alloc(run->graph->ctx, (size_t)size * sizeof(node), "spawned tasks", &memory));
    node *block = memset(memory, 0, (size_t)size * sizeof(node));
    for (int32_t i = size - 1; i >= 0; --i) {
        block[i].link = own->first;
        own->first = start + i;
        /* Relaxed: published with the block. */
        atomic_store_explicit(&block[i].count, (uint64_t)1 << 32, memory_order_relaxed);
        atomic_store_explicit(&block[i].list, (uint64_t)1 << 32, memory_order_relaxed);
    }
    own->count += size;
    atomic_store_explicit(&nodes->block[nodes->blocks++], block, memory_order_release);
done:
    return err;
}

/* Move free nodes from the common list to a worker, or make new ones. */
static trl_err refill(trli_run_state *run, free_nodes *own)
{
    struct trli_nodes *nodes = run->nodes;
    trl_err err = TRL_OK;
    pthread_mutex_lock(&nodes->lock);
    while (nodes->common != TRLI_NONE && own->count < FIRST) {
        int32_t index = nodes->common;
        nodes->common = get(run, index)->link;
        get(run, index)->link = own->first;
        own->first = index;
        ++own->count;
    }
    if (own->first == TRLI_NONE) err = grow(run, own);
    pthread_mutex_unlock(&nodes->lock);
    return err;
}

static trl_err take_node(trli_run_state *run, const trli_worker *worker, int32_t *index)
{
    trl_err err = TRL_OK;
    free_nodes *own = &run->nodes->own[worker->index];
    if (own->first == TRLI_NONE) TRL_TRY(refill(run, own));
    *index = own->first;
    own->first = get(run, *index)->link;
    --own->count;
    ++own->live;
done:
    return err;
}

static void free_node(trli_run_state *run, const trli_worker *worker, int32_t index)
{
    struct trli_nodes *nodes = run->nodes;
    free_nodes *own = &nodes->own[worker->index];
    get(run, index)->link = own->first;
    own->first = index;
    --own->live;
    if (++own->count < KEEP) return;
    /* Who frees more than it takes gives half back, in one piece. */
    int32_t first = own->first, last = first;
    for (int i = 1; i < KEEP / 2; ++i) last = get(run, last)->link;
    own->first = get(run, last)->link;
    own->count -= KEEP / 2;
    pthread_mutex_lock(&nodes->lock);
    get(run, last)->link = nodes->common;
    nodes->common = first;
    pthread_mutex_unlock(&nodes->lock);
}

/* ---- events ---- */

static uint64_t generation_of(uint64_t word)
{
    return word & ~(uint64_t)UINT32_MAX;
}

static uint64_t next_generation(uint64_t word)
{
    uint64_t generation = word >> 32;
    return (generation < GENERATIONS ? generation + 1 : 1) << 32;
}

/* A bit of the names of tasks' completions, which only their tasks may signal. */
static const uint64_t completion = (uint64_t)1 << 31;

static trl_event name_of(uint64_t generation, int32_t index)
{
    return (trl_event)(generation | (uint64_t)(index + 1));
}

static bool is_completion(trl_event event)
{
    return ((uint64_t)event & completion) != 0;
}

static void count_down(trli_run_state *run, trli_worker *worker, int32_t index, uint32_t n);
static bool signal_event(trli_run_state *run, trli_worker *worker, trl_event event, uint32_t n);

/* Close the list: exchange acquires what those wrote who put themselves on it, and releases what was done before to who
 * finds it closed. */
static void fire(trli_run_state *run, trli_worker *worker, int32_t index)
{
    node *self = get(run, index);
    uint64_t next =
        next_generation(atomic_load_explicit(&self->count, memory_order_relaxed)); /* nobody else has it now */
    atomic_store_explicit(&self->count, next, memory_order_relaxed);
    uint64_t list = atomic_exchange_explicit(&self->list, next, memory_order_acq_rel);
    trl_event signals = self->signals;
    free_node(run, worker, index);
    if (signals && !signal_event(run, worker, signals, 1))
        trli_run_fail(run, TRLI_NONE,
                      trl_fail(run->graph->ctx, TRL_ERR_USAGE, NULL,
                               "graph '%s': a task signals an event that has fired already", run->graph->name));
    for (uint32_t edge = (uint32_t)list; edge != 0;) {
        int32_t waiter = (int32_t)((edge - 1) / EDGES);
        uint32_t following = (uint32_t)get(run, waiter)->edge_next[(edge - 1) % EDGES];
        count_down(run, worker, waiter, 1);
        edge = following;
    }
}

/* Nothing is left to wait for. */
static void become_ready(trli_run_state *run, trli_worker *worker, int32_t index)
{
    if (get(run, index)->record.flags & TRLI_TASK_EVENT)
        fire(run, worker, index);
    else
        trli_ready(run, worker, run->view.tasks + index);
}

/* Release what this worker wrote for the task, acquire what the others wrote. */
static void count_down(trli_run_state *run, trli_worker *worker, int32_t index, uint32_t n)
{
    uint64_t before = atomic_fetch_sub_explicit(&get(run, index)->count, n, memory_order_acq_rel);
    if ((uint32_t)before == n) become_ready(run, worker, index);
}

static bool find_event(const trli_run_state *run, trl_event event, int32_t *index)
{
    *index = (int32_t)(event & INT32_MAX) - 1;
    if (event <= 0 || *index < 0 || *index >= start_of(BLOCKS)) return false;
    return atomic_load_explicit(&run->nodes->block[block_of(*index)], memory_order_acquire) != NULL;
}

/* Put an edge of a node on the list of an event: false if the event has fired. Release: of the edge. Acquire of a
 * closed list: of what was done before the event fired. */
static bool wait_for(trli_run_state *run, int32_t index, int edge, trl_event event)
{
    int32_t other;
    if (!find_event(run, event, &other)) return false;
    uint64_t generation = generation_of((uint64_t)event);
    uint64_t list = atomic_load_explicit(&get(run, other)->list, memory_order_acquire);
    do {
        if (generation_of(list) != generation) return false;
        get(run, index)->edge_next[edge] = (int32_t)(uint32_t)list;
    } while (!atomic_compare_exchange_weak_explicit(&get(run, other)->list, &list,
                                                    generation | (uint64_t)(index * (int64_t)EDGES + edge + 1),
                                                    memory_order_release, memory_order_acquire));
    return true;
}

/* Let a node wait for at most EDGES events, and then drop the guard that kept it from becoming ready. */
static void wait_and_release(trli_run_state *run, trli_worker *worker, int32_t index, int n, const trl_event *events)
{
    uint32_t fired = 0;
    for (int i = 0; i < n; ++i) fired += !wait_for(run, index, i, events[i]);
    count_down(run, worker, index, fired + 1);
}

/* A new node that counts down from `count`. */
static trl_err new_node(trli_run_state *run, trli_worker *worker, uint32_t count, int32_t *index, trl_event *name)
{
    trl_err err;
    TRL_TRY(take_node(run, worker, index));
    node *self = get(run, *index);
    uint64_t generation =
        generation_of(atomic_load_explicit(&self->list, memory_order_relaxed)); /* nobody else has it */
    self->record = (trli_task_record){.flags = TRLI_TASK_EVENT, .chunks = 1};
    self->name = "event";
    self->signals = 0;
    self->nwants = 0;
    self->scope = TRLI_NONE;
    atomic_store_explicit(&self->count, generation | count,
                          memory_order_relaxed); /* published by the list, or the policy */
    *name = name_of(generation, *index);
done:
    return err;
}

/* Let a node, which counts them, wait for any number of events: those beyond EDGES through events that signal the node.
 */
static trl_err wait_for_all(trli_run_state *run, trli_worker *worker, int32_t index, trl_event name, int n,
                            const trl_event *events)
{
    trl_err err = TRL_OK;
    int direct = n < EDGES ? n : EDGES;
    for (int i = direct; i < n; i += EDGES) {
        int part = n - i < EDGES ? n - i : EDGES;
        int32_t between;
        trl_event unused;
        TRL_TRY(new_node(run, worker, (uint32_t)part + 1, &between, &unused));
        get(run, between)->signals = name;
        wait_and_release(run, worker, between, part, events + i);
    }
    wait_and_release(run, worker, index, direct, events);
done:
    return err;
}

/* Things that a node with n waits counts: direct ones, events in between, and a guard. */
static uint32_t count_of_waits(int n)
{
    return 1 + (uint32_t)(n <= EDGES ? n : EDGES + (n - EDGES + EDGES - 1) / EDGES);
}

/* Count an event down; false: it does not exist (any more) or would come below zero. Release and acquire as count_down.
 */
static bool signal_event(trli_run_state *run, trli_worker *worker, trl_event event, uint32_t n)
{
    int32_t index;
    if (!find_event(run, event, &index)) return false;
    uint64_t count = atomic_load_explicit(&get(run, index)->count, memory_order_relaxed);
    do
        if (generation_of(count) != generation_of((uint64_t)event) || (uint32_t)count < n) return false;
    while (!atomic_compare_exchange_weak_explicit(&get(run, index)->count, &count, count - n, memory_order_acq_rel,
                                                  memory_order_relaxed));
    if ((uint32_t)count == n) become_ready(run, worker, index);
    return true;
}

void trli_node_complete(trli_run_state *run, trli_worker *worker, int32_t task)
{
    fire(run, worker, task - run->view.tasks);
}

/* ---- scopes ---- */

static _Atomic int32_t *open_tasks(const trli_run_state *run, int32_t task)
{
    return task < run->view.tasks ? &run->scope[task] : &node_of(run, task)->open;
}

static int32_t scope_of(const trli_run_state *run, int32_t task)
{
    return task < run->view.tasks ? TRLI_NONE : node_of(run, task)->scope;
}

/* Release and acquire: what follows a scope sees what all tasks in it wrote. */
void trli_scope_leave(trli_run_state *run, trli_worker *worker, int32_t task)
{
    while (task != TRLI_NONE) {
        if (trli_record(run, task)->flags & TRL_TASK_SCOPE &&
            atomic_fetch_sub_explicit(open_tasks(run, task), 1, memory_order_acq_rel) > 1)
            return;
        int32_t around = scope_of(run, task);
        trli_finish(run, worker, task);
        task = around;
    }
}

/* ---- what task functions call ---- */

static trl_err bad_spawn(const trli_run_state *run, const trl_spawn_desc *desc, const char *fault)
{
    return trl_fail(run->graph->ctx, TRL_ERR_USAGE, NULL, "graph '%s': task '%s' cannot be spawned: %s",
                    run->graph->name, desc->name ? desc->name : "", fault);
}

static trl_err check_spawn(const trli_run_state *run, const trl_spawn_desc *desc)
{
    unsigned known = TRL_TASK_POLL | TRL_TASK_ALWAYS | TRL_TASK_SCOPE;
    int32_t index;
    if (!desc->name || !desc->run) return bad_spawn(run, desc, "it needs a name and a function");
    if (desc->flags & ~known) return bad_spawn(run, desc, "it has unknown flags");
    if (desc->type < 0 || desc->type >= TRL_TASK_TYPES) return bad_spawn(run, desc, "its type is not in 0..255");
    if (desc->priority < -1 || desc->priority > 1) return bad_spawn(run, desc, "its priority is not -1, 0 or 1");
    if (desc->nwaits < 0) return bad_spawn(run, desc, "it waits for a negative number of events");
    if (desc->nlocks < 0 || desc->nuses < 0 || desc->nlocks + desc->nuses > TRLI_SPAWN_WANTS)
        return bad_spawn(run, desc, "it wants more than 4 resources, or a negative number");
    for (int i = 0; i < desc->nwaits; ++i)
        if (!find_event(run, desc->waits[i], &index))
            return bad_spawn(run, desc, "it waits for something that is no event");
    if (desc->signals && (is_completion(desc->signals) || !find_event(run, desc->signals, &index)))
        return bad_spawn(run, desc, "it signals something that is no event");
    return TRL_OK;
}

static trl_err set_wants(trli_run_state *run, const trl_spawn_desc *desc, node *self)
{
    trl_err err = TRL_OK;
    trli_want want[TRLI_SPAWN_WANTS];
    int n = 0;
    for (int i = 0; i < desc->nlocks; ++i, ++n) {
        TRL_TRY(trli_graph_resource(run->graph, desc->locks[i], &want[n].resource));
        want[n].mode = TRLI_LOCK;
    }
    for (int i = 0; i < desc->nuses; ++i, ++n) {
        TRL_TRY(trli_graph_resource(run->graph, desc->uses[i], &want[n].resource));
        want[n].mode = TRLI_USE;
    }
    self->nwants = trli_graph_normalise_wants(run->graph, n, want);
    memcpy(self->want, want, sizeof want);
    if (n > 0) self->record.flags |= TRLI_TASK_WANTS;
done:
    return err;
}

static uint8_t urgency_of(const trl_spawn_desc *desc)
{
    if (desc->priority > 0 || desc->flags & TRL_TASK_POLL) return 0;
    return desc->priority < 0 ? TRL_URGENCIES - 1 : TRL_URGENCIES / 2;
}

/* The task is in the scope of the task that creates it, or in the same one; and the run does not end before it.
 * Relaxed: whoever is in a scope, or a run, keeps it open meanwhile. */
static void join_scope_and_run(trli_run_state *run, trli_worker *worker, int32_t creator, node *self)
{
    self->scope = trli_record(run, creator)->flags & TRL_TASK_SCOPE ? creator : scope_of(run, creator);
    if (self->scope != TRLI_NONE) atomic_fetch_add_explicit(open_tasks(run, self->scope), 1, memory_order_relaxed);
    if (worker->credit == 0) {
        atomic_fetch_add_explicit(&run->remaining, CREDIT, memory_order_relaxed);
        worker->credit = CREDIT;
    }
    --worker->credit;
    ++run->nodes->own[worker->index].spawned;
}

trl_err trl_run_spawn(trl_run *here, const trl_spawn_desc *desc, trl_event *done)
{
    trl_err err;
    trli_run_state *run = here->run;
    trli_worker *worker = here->worker;
    int32_t index;
    trl_event name;
    TRL_TRY(check_spawn(run, desc));
    TRL_TRY(new_node(run, worker, count_of_waits(desc->nwaits), &index, &name));
    node *self = get(run, index);
    self->record = (trli_task_record){.run = desc->run,
                                      .data = desc->data,
                                      .chunks = 1,
                                      .flags = (uint16_t)desc->flags,
                                      .urgency = urgency_of(desc),
                                      .type = (uint8_t)desc->type};
    if (run->phases.count > 0 && run->phases.of_type[desc->type] != TRLI_NONE) self->record.flags |= TRLI_TASK_PHASED;
    self->name = desc->name;
    self->signals = desc->signals;
    atomic_store_explicit(&self->open, 1, memory_order_relaxed); /* published with the task */
    if (desc->nlocks + desc->nuses > 0) {
        err = set_wants(run, desc, self);
        if (err != TRL_OK) {
            self->signals = 0;
            fire(run, worker, index);
            goto done;
        }
    }
    join_scope_and_run(run, worker, here->task, self);
    trli_phase_enter(run, worker, desc->type);
    if (done) *done = (trl_event)((uint64_t)name | completion);
    TRL_TRY(wait_for_all(run, worker, index, name, desc->nwaits, desc->waits));
done:
    return err;
}

trl_err trl_run_create_event(trl_run *here, int64_t count, trl_event *event)
{
    int32_t index;
    if (count <= 0 || count > INT32_MAX)
        return trl_fail(here->run->graph->ctx, TRL_ERR_USAGE, NULL, "graph '%s': an event cannot count down from %lld",
                        here->run->graph->name, (long long)count);
    return new_node(here->run, here->worker, (uint32_t)count, &index, event);
}

trl_err trl_run_signal(trl_run *here, trl_event event, int64_t n)
{
    if (n > 0 && n <= INT32_MAX && !is_completion(event) && signal_event(here->run, here->worker, event, (uint32_t)n))
        return TRL_OK;
    return trl_fail(here->run->graph->ctx, TRL_ERR_USAGE, NULL,
                    "graph '%s': task '%s' signals an event %lld times, but it has fired or waits for less",
                    here->run->graph->name, trli_task_name(here->run, here->task), (long long)n);
}

static int compare_tasks(const void *a, const void *b)
{
    const int32_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Relaxed: only keeps wrong use from counting below zero. */
trl_err trl_run_signal_task(trl_run *here, trl_task task, int64_t n)
{
    trl_err err;
    trli_run_state *run = here->run;
    int32_t index, left = 0;
    TRL_TRY(trli_graph_task(run->graph, task, &index));
    const int32_t *found =
        bsearch(&index, run->signalled, (size_t)run->nsignalled, sizeof *run->signalled, compare_tasks);
    _Atomic int32_t *signals = found ? &run->signals_left[found - run->signalled] : NULL;
    if (signals) left = atomic_load_explicit(signals, memory_order_relaxed);
    do
        if (n <= 0 || n > left)
            return trl_fail(run->graph->ctx, TRL_ERR_USAGE, NULL,
                            "graph '%s': task '%s' is signalled %lld times, but it waits for less", run->graph->name,
                            trli_task_name(run, index), (long long)n);
    while (!atomic_compare_exchange_weak_explicit(signals, &left, left - (int32_t)n, memory_order_relaxed,
                                                  memory_order_relaxed));
    trli_arrive(run, here->worker, index, (int32_t)n);
done:
    return err;
}

/* ---- the end of a run ---- */

int64_t trli_nodes_finish(trli_run_state *run)
{
    int64_t live = 0, spawned = 0;
    for (int w = 0; run->nodes && w < run->view.workers; ++w) {
        live += run->nodes->own[w].live;
        spawned += run->nodes->own[w].spawned;
        run->nodes->own[w].spawned = 0;
    }
    if (live != 0) run->dirty = true; /* events that never fired */
    return spawned;
}

void trli_nodes_clear(trli_run_state *run)
{
    struct trli_nodes *nodes = run->nodes;
    if (nodes == NULL) return;
    nodes->common = TRLI_NONE;
    for (int w = 0; w < run->view.workers; ++w) nodes->own[w] = (free_nodes){.first = TRLI_NONE};
    for (int32_t i = start_of(nodes->blocks) - 1; i >= 0; --i) {
        node *self = get(run, i);
        /* Relaxed: no worker is inside. */
        uint64_t next = next_generation(atomic_load_explicit(&self->list, memory_order_relaxed));
        atomic_store_explicit(&self->count, next, memory_order_relaxed);
        atomic_store_explicit(&self->list, next, memory_order_relaxed);
        self->link = nodes->common;
        nodes->common = i;
    }
}

void trli_nodes_report(const trli_run_state *run, FILE *out, int most)
{
    int said = 0;
    for (int32_t i = 0; i < start_of(run->nodes->blocks) && said < most; ++i) {
        const node *self = get(run, i);
        uint32_t missing = (uint32_t)atomic_load_explicit(&self->count, memory_order_relaxed);
        if (missing == 0) continue;
        if (self->record.flags & TRLI_TASK_EVENT)
            fprintf(out, "; an event waits for %u more signal%s", missing, missing == 1 ? "" : "s");
        else
            fprintf(out, "; '%s' waits for %u more event%s", self->name, missing, missing == 1 ? "" : "s");
        ++said;
    }
}
