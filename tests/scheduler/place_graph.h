/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Graphs as placement sees them, made by hand or at random, and machines for them. Included after trl_test.h. */
#ifndef PLACE_GRAPH_H
#define PLACE_GRAPH_H

#include "../../scheduler/placement_impl.h"

/* A sequence of 64-bit numbers (Steele, Lea and Flood 2014, splitmix64): 0 <= result < n. */
static inline int place_below(uint64_t *state, int n)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (int)((z ^ z >> 31) % (uint64_t)n);
}

static inline void *place_calloc(size_t count, size_t size)
{
    void *memory = calloc(count ? count : 1, size);
    if (!memory) ck_abort_msg("no memory");
    return memory;
}

typedef struct place_edge {
    int32_t before, after;
} place_edge;

typedef struct place_graph {
    trli_place_graph graph; /* its arrays are those below */
    int32_t *first, *successors, *order, *access_first;
    trl_policy_access *access;
    trl_policy_handle *handle;
    int32_t *part; /* [handles] whose turn it is to have its data there, by block modulo the number of handles */
    uint16_t *eligible;
    double *seconds;
    int executors;
    place_edge *edge;
    int32_t edges, edges_most, accesses_most;
} place_graph;

/* A graph without tasks yet, of handles of one byte each in blocks of their own. */
static inline place_graph *place_graph_new(int32_t tasks, int32_t handles, int32_t accesses, int32_t edges,
                                           int executors)
{
    place_graph *g = place_calloc(1, sizeof *g);
    const size_t n = (size_t)tasks;
    g->first = place_calloc(n + 1, sizeof *g->first);
    g->successors = place_calloc((size_t)edges, sizeof *g->successors);
    g->order = place_calloc(n, sizeof *g->order);
    g->access_first = place_calloc(n + 1, sizeof *g->access_first);
    g->access = place_calloc((size_t)accesses, sizeof *g->access);
    g->handle = place_calloc((size_t)handles, sizeof *g->handle);
    g->part = place_calloc((size_t)handles, sizeof *g->part);
    g->eligible = place_calloc(n, sizeof *g->eligible);
    g->seconds = place_calloc(n * (size_t)executors, sizeof *g->seconds);
    g->edge = place_calloc((size_t)edges, sizeof *g->edge);
    g->executors = executors;
    g->edges_most = edges;
    g->accesses_most = accesses;
    for (int32_t h = 0; h < handles; ++h) g->handle[h] = (trl_policy_handle){.name = h, .bytes = 1, .block = h};
    g->graph = (trli_place_graph){.first = g->first,
                                  .successors = g->successors,
                                  .order = g->order,
                                  .access_first = g->access_first,
                                  .access = g->access,
                                  .handles = handles,
                                  .handle = g->handle,
                                  .eligible = g->eligible,
                                  .seconds = g->seconds};
    return g;
}

static inline void place_graph_free(place_graph *g)
{
    void *memory[] = {g->first, g->successors, g->order,   g->access_first, g->access, g->handle,
                      g->part,  g->eligible,   g->seconds, g->edge,         g};
    for (size_t i = 0; i < sizeof memory / sizeof *memory; ++i) free(memory[i]);
}

/* A task for all executors, which takes as long on each; its accesses are those added until the next task is. */
static inline int32_t place_task(place_graph *g, double seconds)
{
    const int32_t t = g->graph.tasks++;
    g->eligible[t] = (uint16_t)((1u << g->executors) - 1);
    for (int e = 0; e < g->executors; ++e) g->seconds[t * g->executors + e] = seconds;
    g->access_first[t + 1] = g->access_first[t];
    return t;
}

/* Whose turn it is in the block of a handle. */
static inline int32_t *place_part(const place_graph *g, int32_t handle)
{
    const int64_t n = g->graph.handles;
    return &g->part[(g->handle[handle].block % n + n) % n];
}

static inline void place_access(place_graph *g, int32_t handle, trl_access mode)
{
    int32_t *end = &g->access_first[g->graph.tasks];
    if (*end == g->accesses_most) ck_abort_msg("too many accesses");
    g->access[(*end)++] = (trl_policy_access){.handle = handle, .mode = mode, .part = *place_part(g, handle)};
}

static inline void place_depend(place_graph *g, int32_t before, int32_t after)
{
    if (g->edges == g->edges_most) ck_abort_msg("too many edges");
    g->edge[g->edges++] = (place_edge){before, after};
}

/* Whether tasks that access data after each other, with no other access between their kinds, come in any order. */
static inline bool place_shared(trl_access mode)
{
    return mode == TRL_WRITE_PART || mode == TRL_ADD;
}

/* Whose data a handle has when a run begins: that which is accessed first in its block. */
static inline int32_t place_first_part(const place_graph *g, int32_t handle)
{
    for (int32_t a = 0; a < g->access_first[g->graph.tasks]; ++a)
        if (g->handle[g->access[a].handle].block == g->handle[handle].block) return g->access[a].part;
    return 0;
}

/* The number of the group of each access of a handle: accesses of one group come in any order. [accesses] *group; -1
 * for other handles. */
static inline void place_groups(const place_graph *g, int32_t handle, int32_t *group)
{
    int32_t groups = 0, mode = -1, part = -1;
    for (int32_t a = 0; a < g->access_first[g->graph.tasks]; ++a) {
        group[a] = -1;
        if (g->access[a].handle != handle) continue;
        const bool same = g->access[a].mode == mode && g->access[a].part == part;
        const bool joins = same && (place_shared((trl_access)mode) || mode == TRL_READ);
        group[a] = joins ? groups : ++groups;
        mode = g->access[a].mode;
        part = g->access[a].part;
    }
}

/* Every pair of tasks that must not change places: for small graphs. */
static inline void place_depend_by_accesses(place_graph *g)
{
    const int32_t accesses = g->access_first[g->graph.tasks];
    int32_t *group = place_calloc((size_t)accesses, sizeof *group);
    for (int32_t h = 0; h < g->graph.handles; ++h) {
        place_groups(g, h, group);
        for (int32_t t = 0; t < g->graph.tasks; ++t) {
            for (int32_t a = g->access_first[t]; a < g->access_first[t + 1]; ++a) {
                for (int32_t b = 0, u = 0; group[a] >= 0 && b < g->access_first[t]; ++b) {
                    while (g->access_first[u + 1] <= b) ++u;
                    if (group[b] >= 0 && group[b] != group[a]) place_depend(g, u, t);
                }
            }
        }
    }
    free(group);
}

/* Lists of successors, and the order in which tasks were added. */
static inline void place_finish(place_graph *g)
{
    for (int32_t i = 0; i < g->edges; ++i) ++g->first[g->edge[i].before];
    for (int32_t t = 0; t < g->graph.tasks; ++t) g->first[t + 1] += g->first[t];
    for (int32_t i = g->edges - 1; i >= 0; --i) g->successors[--g->first[g->edge[i].before]] = g->edge[i].after;
    for (int32_t t = 0; t < g->graph.tasks; ++t) g->order[t] = t;
}

/* Workers and devices with links of one rate, which do one task each at once. */
static inline trli_platform place_machine(int executors, double latency, double rate)
{
    trli_platform machine = {.executors = executors};
    for (int e = 0; e < executors; ++e) {
        machine.kind[e] = e == 0 ? TRL_KIND_CPU : TRL_KIND_MOCK;
        machine.parallel[e] = 1;
        for (int f = 0; f < executors; ++f) machine.link[e][f] = (trli_route){latency, rate};
    }
    return machine;
}

/* Random accesses to up to three handles of each task, in all modes. Other data has its turn now and then, and is
 * written then. */
static inline place_graph *place_random(uint64_t *state, int32_t tasks, int32_t handles, int executors)
{
    const int32_t most = 3 * tasks;
    place_graph *g = place_graph_new(tasks, handles, most, most * most, executors);
    for (int32_t h = 0; h < handles; ++h) {
        g->handle[h].bytes = place_below(state, 8) ? 1 + (size_t)place_below(state, 1000) : 0;
        g->handle[h].block = place_below(state, h + 1);
    }
    for (int32_t t = 0; t < tasks; ++t) {
        const int wanted = place_below(state, 4);
        place_task(g, 0.0);
        for (int e = 0; e < executors; ++e) g->seconds[t * executors + e] = 1e-3 * place_below(state, 100000);
        for (int k = 0; k < wanted; ++k) {
            const int32_t h = place_below(state, handles);
            bool twice = false;
            for (int32_t a = g->access_first[t]; a < g->access_first[t + 1]; ++a) twice |= g->access[a].handle == h;
            if (twice) continue;
            const trl_access mode = (trl_access)place_below(state, TRL_ADD + 1);
            *place_part(g, h) += mode != TRL_READ && place_below(state, 4) == 0;
            place_access(g, h, mode);
        }
    }
    place_depend_by_accesses(g);
    place_finish(g);
    return g;
}

/* Random spaces that have each value when a run begins, in some graphs: not known before for one in four. */
static inline void place_random_valid(uint64_t *state, place_graph *g, uint16_t *valid)
{
    for (int32_t h = 0; h < g->graph.handles; ++h) {
        valid[h] = (uint16_t)place_below(state, 1 << g->executors);
        if (place_below(state, 4) == 0) valid[h] = 1u << TRLI_ANYWHERE;
    }
    if (place_below(state, 2)) g->graph.valid = valid;
}

/* In some graphs, data of handles of the same size goes round between runs. */
static inline void place_random_rotation(uint64_t *state, place_graph *g, int32_t *follows)
{
    for (int32_t h = 0; h < g->graph.handles; ++h) follows[h] = h;
    for (int32_t h = 1; h < g->graph.handles; ++h) {
        const int32_t other = place_below(state, h);
        if (place_below(state, 2)) continue;
        g->handle[h].bytes = g->handle[other].bytes;
        follows[h] = follows[other];
        follows[other] = h;
    }
    if (place_below(state, 2)) g->graph.follows = follows;
}

/* Give all tasks that are in groups together the least number of any of them. */
static inline void place_units(const place_graph *g, int32_t *unit)
{
    const int32_t accesses = g->access_first[g->graph.tasks];
    int32_t *group = place_calloc((size_t)accesses, sizeof *group);
    bool changed = true;
    for (int32_t t = 0; t < g->graph.tasks; ++t) unit[t] = t;
    while (changed) {
        changed = false;
        for (int32_t h = 0; h < g->graph.handles; ++h) {
            int32_t last = -1, before = -1;
            if (g->handle[h].bytes == 0) continue;
            place_groups(g, h, group);
            for (int32_t t = 0, a = 0; a < accesses; ++a) {
                while (g->access_first[t + 1] <= a) ++t;
                if (group[a] < 0 || !place_shared((trl_access)g->access[a].mode)) continue;
                if (group[a] == last && unit[t] != unit[before]) {
                    unit[t] = unit[before] = unit[t] < unit[before] ? unit[t] : unit[before];
                    changed = true;
                }
                last = group[a];
                before = t;
            }
        }
    }
    free(group);
}

#endif
