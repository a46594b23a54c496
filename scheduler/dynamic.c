/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Work made by running tasks. A node is an event: a count, and a list of the nodes that wait for it. When the count
 * reaches zero, a plain event fires at once; a spawned task becomes ready, and fires when it is complete. Firing
 * closes the list, counts down every node on it, and frees the node. Nodes are reused, so count and list carry the
 * generation of the use in their upper halves: a name of an event that has fired has an older generation. An edge of
 * a list is one of the 4 places of the waiting node; a task that waits for more events has intermediate events. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nodes_impl.h"
#include "placed_impl.h"

enum { CREDIT = 64 /* tasks that are added to the remaining ones in one step */ };

/* ---- events ---- */

static uint64_t generation_of(uint64_t word)
{
    return word & ~(uint64_t)UINT32_MAX;
}

/* A bit in the names of completion events, which only their tasks may signal. */
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

/* Close the list. The exchange acquires what the nodes on it were written with, and releases earlier writes to
 * whoever finds the list closed. */
static void fire(trli_run_state *run, trli_worker *worker, int32_t index)
{
    trli_run_node *self = trli_node_at(run, index);
    uint64_t next = trli_next_generation(
        atomic_load_explicit(&self->count, memory_order_relaxed)); /* no other thread has the node now */
    atomic_store_explicit(&self->count, next, memory_order_relaxed);
    uint64_t list = atomic_exchange_explicit(&self->list, next, memory_order_acq_rel);
    trl_event signals = self->signals;
    trli_node_free(run, worker, index);
    if (signals && !signal_event(run, worker, signals, 1))
        trli_run_fail(run, TRLI_NONE,
                      trl_fail(run->graph->ctx, TRL_ERR_USAGE, NULL,
                               "graph '%s': a task signals an event that has fired already", run->graph->name));
    for (uint32_t edge = (uint32_t)list; edge != 0;) {
        int32_t waiter = (int32_t)((edge - 1) / TRLI_NODE_EDGES);
        uint32_t following = (uint32_t)trli_node_at(run, waiter)->edge_next[(edge - 1) % TRLI_NODE_EDGES];
        count_down(run, worker, waiter, 1);
        edge = following;
    }
}

/* The node waits for nothing any more. */
static void become_ready(trli_run_state *run, trli_worker *worker, int32_t index)
{
    if (trli_node_at(run, index)->record.flags & TRLI_TASK_EVENT)
        fire(run, worker, index);
    else
        trli_ready(run, worker, run->view.tasks + index);
}

/* Release what this worker wrote for the task, acquire what other workers wrote. */
static void count_down(trli_run_state *run, trli_worker *worker, int32_t index, uint32_t n)
{
    uint64_t before = atomic_fetch_sub_explicit(&trli_node_at(run, index)->count, n, memory_order_acq_rel);
    if ((uint32_t)before == n) become_ready(run, worker, index);
}

static bool find_event(const trli_run_state *run, trl_event event, int32_t *index)
{
    *index = (int32_t)(event & INT32_MAX) - 1;
    if (event <= 0 || *index < 0 || *index >= trli_nodes_start(TRLI_NODES_BLOCKS)) return false;
    return atomic_load_explicit(&run->nodes->block[trli_nodes_block(*index)], memory_order_acquire) != NULL;
}

/* Put an edge of a node on the list of an event; false: the event has fired. Releases the edge. If the list is
 * closed, acquires everything that was done before the event fired. */
static bool wait_for(trli_run_state *run, int32_t index, int edge, trl_event event)
{
    int32_t other;
    if (!find_event(run, event, &other)) return false;
    uint64_t generation = generation_of((uint64_t)event);
    uint64_t list = atomic_load_explicit(&trli_node_at(run, other)->list, memory_order_acquire);
    do {
        if (generation_of(list) != generation) return false;
        trli_node_at(run, index)->edge_next[edge] = (int32_t)(uint32_t)list;
    } while (!atomic_compare_exchange_weak_explicit(
        &trli_node_at(run, other)->list, &list, generation | (uint64_t)(index * (int64_t)TRLI_NODE_EDGES + edge + 1),
        memory_order_release, memory_order_acquire));
    return true;
}

/* Let a node wait for at most TRLI_NODE_EDGES events, then remove the guard that kept the node from becoming ready. */
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
    TRL_TRY(trli_node_take(run, worker, index));
    trli_run_node *self = trli_node_at(run, *index);
    uint64_t generation =
        generation_of(atomic_load_explicit(&self->list, memory_order_relaxed)); /* no other thread has the node */
    self->record = (trli_task_record){.flags = TRLI_TASK_EVENT, .chunks = 1};
    self->name = "event";
    self->signals = 0;
    self->nwants = 0;
    self->scope = self->call = TRLI_NONE;
    atomic_store_explicit(&self->count, generation | count,
                          memory_order_relaxed); /* published with the list, or by the policy */
    *name = name_of(generation, *index);
done:
    return err;
}

/* Let a node wait for any number of events, which its count includes: events beyond TRLI_NODE_EDGES are waited for
 * by intermediate events that signal the node. */
static trl_err wait_for_all(trli_run_state *run, trli_worker *worker, int32_t index, trl_event name, int n,
                            const trl_event *events)
{
    trl_err err = TRL_OK;
    int direct = n < TRLI_NODE_EDGES ? n : TRLI_NODE_EDGES;
    for (int i = direct; i < n; i += TRLI_NODE_EDGES) {
        int part = n - i < TRLI_NODE_EDGES ? n - i : TRLI_NODE_EDGES;
        int32_t between;
        trl_event unused;
        TRL_TRY(new_node(run, worker, (uint32_t)part + 1, &between, &unused));
        trli_node_at(run, between)->signals = name;
        wait_and_release(run, worker, between, part, events + i);
    }
    wait_and_release(run, worker, index, direct, events);
done:
    return err;
}

/* The count of a node with n waits: direct waits, intermediate events, and a guard. */
static uint32_t count_of_waits(int n)
{
    return 1 + (uint32_t)(n <= TRLI_NODE_EDGES
                              ? n
                              : TRLI_NODE_EDGES + (n - TRLI_NODE_EDGES + TRLI_NODE_EDGES - 1) / TRLI_NODE_EDGES);
}

/* Count an event down; false: it does not exist (any more) or would fall below zero. Releases and acquires as
 * count_down does. */
static bool signal_event(trli_run_state *run, trli_worker *worker, trl_event event, uint32_t n)
{
    int32_t index;
    if (!find_event(run, event, &index)) return false;
    uint64_t count = atomic_load_explicit(&trli_node_at(run, index)->count, memory_order_relaxed);
    do
        if (generation_of(count) != generation_of((uint64_t)event) || (uint32_t)count < n) return false;
    while (!atomic_compare_exchange_weak_explicit(&trli_node_at(run, index)->count, &count, count - n,
                                                  memory_order_acq_rel, memory_order_relaxed));
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
    return task < run->view.tasks ? &run->scope[task] : &trli_node_of(run, task)->open;
}

/* In the body of a call all is in the scope of the end of a round, which counts tasks as predecessors. */
static int32_t scope_of(const trli_run_state *run, int32_t task)
{
    return task < run->view.tasks ? trli_call_end(run, task) : trli_node_of(run, task)->scope;
}

static bool is_end(const trli_run_state *run, int32_t task)
{
    return trli_record(run, task)->flags & TRLI_TASK_END;
}

/* Release and acquire: what follows a scope sees everything that the scope's tasks wrote. */
void trli_scope_leave(trli_run_state *run, trli_worker *worker, int32_t task)
{
    while (task != TRLI_NONE) {
        if (is_end(run, task)) {
            trli_arrive(run, worker, task, 1);
            return;
        }
        if (trli_record(run, task)->flags & TRL_TASK_SCOPE) {
            if (atomic_fetch_sub_explicit(open_tasks(run, task), 1, memory_order_acq_rel) > 1) return;
            atomic_store_explicit(open_tasks(run, task), 1, memory_order_relaxed); /* for the next round or run */
        }
        const int32_t around = task < run->view.tasks ? TRLI_NONE : scope_of(run, task);
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

/* The task of the graph in whose scope a task is that this one creates, or TRLI_NONE. */
static int32_t origin_of(const trli_run_state *run, int32_t creator)
{
    int32_t task = trli_record(run, creator)->flags & TRL_TASK_SCOPE ? creator : scope_of(run, creator);
    while (task != TRLI_NONE && task >= run->view.tasks) task = scope_of(run, task);
    return task == TRLI_NONE || is_end(run, task) ? TRLI_NONE : task;
}

/* Whether what a task does with data lets another one in its scope do this. */
static bool covers(trl_access outer, trl_access inner)
{
    return outer == inner || outer == TRL_WRITE || outer == TRL_READ_WRITE;
}

/* A placement knows the data of the graph's tasks alone: it is on the host while a task of workers has it. */
static trl_err check_data(const trli_run_state *run, int32_t creator, const trl_spawn_desc *desc)
{
    const trl_graph *logical = run->graph->placed ? run->graph->placed->logical : run->graph;
    const int32_t origin = origin_of(run, creator);
    char fault[400];
    if (origin == TRLI_NONE)
        return bad_spawn(run, desc,
                         "it touches data, and is in the scope of no task of the graph; give the task that "
                         "spawns it TRL_TASK_SCOPE");
    const int32_t t = run->graph->placed ? run->graph->placed->task_of[origin] : origin;
    for (int i = 0; i < desc->naccesses; ++i) {
        const int32_t handle = trli_run_handle(run, creator, desc->accesses[i].handle);
        int32_t a = logical->access_first[t];
        while (a < logical->access_first[t + 1] && logical->access[a].handle != handle) ++a;
        if (a < logical->access_first[t + 1] && covers((trl_access)logical->access[a].mode, desc->accesses[i].access))
            continue;
        snprintf(fault, sizeof fault,
                 "it touches '%s' in a way in which '%s', in whose scope it is, does not; add that access to '%s'",
                 trli_graph_text(logical, ((const trl_policy_handle *)logical->handles.data)[handle].name),
                 trli_graph_task_name(logical, t), trli_graph_task_name(logical, t));
        return bad_spawn(run, desc, fault);
    }
    return TRL_OK;
}

static trl_err check_accesses(const trli_run_state *run, int32_t creator, const trl_spawn_desc *desc)
{
    const trl_graph *logical = run->graph->placed ? run->graph->placed->logical : run->graph;
    for (int i = 0; i < desc->naccesses; ++i)
        if (trli_run_handle(run, creator, desc->accesses[i].handle) == TRLI_NONE)
            return bad_spawn(run, desc, "it touches something that is no data handle of this graph");
    return desc->naccesses > 0 && logical->memory.locate ? check_data(run, creator, desc) : TRL_OK;
}

static trl_err check_spawn(const trli_run_state *run, int32_t creator, const trl_spawn_desc *desc)
{
    unsigned known = TRL_TASK_POLL | TRL_TASK_ALWAYS | TRL_TASK_SCOPE;
    int32_t index;
    if (!desc->name || !desc->variant[TRL_KIND_CPU].run)
        return bad_spawn(run, desc, "it needs a name and a function for workers");
    if (desc->flags & ~known) return bad_spawn(run, desc, "it has unknown flags");
    if (desc->type < 0 || desc->type >= TRL_TASK_TYPES) return bad_spawn(run, desc, "its type is not in 0..255");
    if (desc->priority < -1 || desc->priority > 1) return bad_spawn(run, desc, "its priority is not -1, 0 or 1");
    if (desc->nwaits < 0) return bad_spawn(run, desc, "it waits for a negative number of events");
    if (trli_record(run, creator)->flags & (TRLI_TASK_CALL | TRLI_TASK_END))
        return bad_spawn(run, desc, "the functions of a call spawn nothing; let a task of its body do it");
    if (desc->nlocks < 0 || desc->nuses < 0) return bad_spawn(run, desc, "it wants a negative number of resources");
    const trl_err err = check_accesses(run, creator, desc);
    if (err != TRL_OK) return err;
    for (int i = 0; i < desc->nwaits; ++i)
        if (!find_event(run, desc->waits[i], &index))
            return bad_spawn(run, desc, "it waits for something that is no event");
    if (desc->signals && (is_completion(desc->signals) || !find_event(run, desc->signals, &index)))
        return bad_spawn(run, desc, "it signals something that is no event");
    return TRL_OK;
}

static trl_err list_wants(trli_run_state *run, int32_t creator, const trl_spawn_desc *desc, trli_want *want)
{
    trl_err err = TRL_OK;
    int n = 0;
    for (int i = 0; i < desc->nlocks; ++i, ++n) {
        TRL_TRY(trli_run_resource(run, creator, desc->locks[i], &want[n].resource));
        want[n].mode = TRLI_LOCK;
    }
    for (int i = 0; i < desc->nuses; ++i, ++n) {
        TRL_TRY(trli_run_resource(run, creator, desc->uses[i], &want[n].resource));
        want[n].mode = TRLI_USE;
    }
done:
    return err;
}

/* Many wants, ancestors included, are stored outside of the node. */
static trl_err set_many_wants(trli_run_state *run, int32_t creator, const trl_spawn_desc *desc, trli_run_node *self)
{
    trl_err err = TRL_OK;
    const int32_t n = desc->nlocks + desc->nuses;
    if (n > INT32_MAX / (TRLI_RESOURCE_LEVELS + 1)) return bad_spawn(run, desc, "it wants too many resources");
    if (self->room < n * (TRLI_RESOURCE_LEVELS + 1)) {
        void *memory = self->many;
        trl_memory_free(run->graph->ctx, &memory);
        self->many = NULL;
        self->room = 0;
        TRL_TRY(trl_memory_alloc(run->graph->ctx, (size_t)n * (TRLI_RESOURCE_LEVELS + 1) * sizeof *self->many,
                                 "spawned tasks", &memory));
        self->many = memory;
        self->room = n * (TRLI_RESOURCE_LEVELS + 1);
    }
    TRL_TRY(list_wants(run, creator, desc, self->many));
    self->nwants =
        trli_graph_unfold_wants(run->graph, trli_graph_normalise_wants(run->graph, n, self->many), self->many);
    if (self->nwants <= TRLI_SPAWN_WANTS) memcpy(self->want, self->many, (size_t)self->nwants * sizeof *self->want);
done:
    return err;
}

static trl_err set_wants(trli_run_state *run, int32_t creator, const trl_spawn_desc *desc, trli_run_node *self)
{
    trl_err err;
    const int32_t n = desc->nlocks + desc->nuses;
    if (n > TRLI_SPAWN_WANTS) {
        TRL_TRY(set_many_wants(run, creator, desc, self));
    } else {
        TRL_TRY(list_wants(run, creator, desc, self->want));
        self->nwants = trli_graph_normalise_wants(run->graph, n, self->want);
    }
    self->record.flags |= TRLI_TASK_WANTS;
done:
    return err;
}

static uint8_t urgency_of(const trl_spawn_desc *desc)
{
    if (desc->priority > 0 || desc->flags & TRL_TASK_POLL) return 0;
    return desc->priority < 0 ? TRL_URGENCIES - 1 : TRL_URGENCIES / 2;
}

/* The new task is in the scope of the task that creates it, or in the scope that this one is in, and the run does
 * not end before it. Relaxed: the creating task keeps its scope and the run open meanwhile. */
static void join_scope_and_run(trli_run_state *run, trli_worker *worker, int32_t creator, trli_run_node *self)
{
    self->scope = trli_record(run, creator)->flags & TRL_TASK_SCOPE ? creator : scope_of(run, creator);
    if (self->scope != TRLI_NONE)
        atomic_fetch_add_explicit(is_end(run, self->scope) ? &run->join[self->scope].missing
                                                           : open_tasks(run, self->scope),
                                  1, memory_order_relaxed);
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
    TRL_TRY(check_spawn(run, here->task, desc));
    TRL_TRY(new_node(run, worker, count_of_waits(desc->nwaits), &index, &name));
    const int32_t call = trli_call_of(run, here->task); /* bodies are in the phase of their call */
    trli_run_node *self = trli_node_at(run, index);
    self->record = (trli_task_record){.run = desc->variant[TRL_KIND_CPU].run,
                                      .data = desc->data,
                                      .chunks = 1,
                                      .flags = (uint16_t)desc->flags,
                                      .urgency = urgency_of(desc),
                                      .type = (uint8_t)desc->type};
    const bool phased = run->phases.count > 0 && run->phases.of_type[desc->type] != TRLI_NONE && call == TRLI_NONE;
    if (phased) self->record.flags |= TRLI_TASK_PHASED;
    self->name = desc->name;
    self->call = call;
    self->signals = desc->signals;
    self->naccesses = desc->naccesses;
    self->accesses = desc->accesses;
    atomic_store_explicit(&self->open, 1, memory_order_relaxed); /* published with the task */
    if (desc->nlocks + desc->nuses > 0) {
        err = set_wants(run, here->task, desc, self);
        if (err != TRL_OK) {
            self->signals = 0;
            fire(run, worker, index);
            goto done;
        }
    }
    join_scope_and_run(run, worker, here->task, self);
    if (phased) trli_phase_enter(run, worker, desc->type);
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

/* Relaxed: this only keeps wrong use from counting below zero. */
trl_err trl_run_signal_task(trl_run *here, trl_task task, int64_t n)
{
    trl_err err;
    trli_run_state *run = here->run;
    int32_t index, left = 0;
    TRL_TRY(trli_run_task(run, here->task, task, &index));
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
