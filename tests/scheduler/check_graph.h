/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Whether a run of a random graph was right, from the numbers that its tasks took from the clock. Included after
 * random_graph.h. */
#ifndef CHECK_GRAPH_H
#define CHECK_GRAPH_H

#include <stdarg.h>

/* What is wrong with the run; empty: nothing was found. */
typedef struct run_check {
    const random_graph *graph;
    const random_frame *frame;
    char fault[160];
} run_check;

static inline void found_wrong(run_check *c, const char *format, ...) TRL_PRINTF(2, 3);
static inline void found_wrong(run_check *c, const char *format, ...)
{
    va_list list;
    if (c->fault[0]) return;
    va_start(list, format);
    vsnprintf(c->fault, sizeof c->fault, format, list);
    va_end(list);
}

/* ---- order ---- */

/* When the first chunk started, 0: none did. */
static inline int64_t first_start(const random_frame *f, const random_node *n)
{
    const int64_t *starts = f->run[n->index].start;
    int64_t start = 0;
    for (int c = 0; c < n->chunks; ++c) start = starts[c] && (start == 0 || starts[c] < start) ? starts[c] : start;
    return start;
}

static inline int64_t last_end(const random_frame *f, const random_node *n)
{
    int64_t end = 0;
    for (int c = 0; c < n->chunks; ++c) end = f->run[n->index].end[c] > end ? f->run[n->index].end[c] : end;
    return end;
}

/* When the last task in the node's scope ended. */
static inline int64_t end_of_descendants(const random_frame *f, const random_node *n)
{
    int64_t end = last_end(f, n);
    for (int k = 0; k < n->children; ++k) {
        int64_t other = end_of_descendants(f, &n->graph->nodes[n->first_child + k]);
        end = other > end ? other : end;
    }
    return end;
}

/* When its successors may start. */
static inline int64_t end_for_successors(const random_frame *f, const random_node *n)
{
    return n->flags & TRL_TASK_SCOPE ? end_of_descendants(f, n) : last_end(f, n);
}

static inline void check_calls(run_check *c, const random_node *n, bool all)
{
    const node_run *run = &c->frame->run[n->index];
    for (int i = 0; i < n->chunks; ++i) {
        const bool called = i < chunks_of(c->frame, n);
        bool complete = run->calls[i] == n->polls + 1 && run->start[i] > 0 && run->end[i] > run->start[i];
        if (called && all ? !complete : run->calls[i] > (called ? n->polls + 1 : 0))
            found_wrong(c, "chunk %d of %s: %d calls, from %lld to %lld", i, n->name, run->calls[i],
                        (long long)run->start[i], (long long)run->end[i]);
    }
}

static inline void check_after(run_check *c, const random_node *n, int64_t end, const char *what, const char *before)
{
    const int64_t start = first_start(c->frame, n);
    if (start <= end)
        found_wrong(c, "%s started at %lld, %s %s at %lld", n->name, (long long)start, what, before, (long long)end);
}

/* Whether one node of the graph has to wait for another one, which was added before it. */
static inline bool waits_for(const random_node *n, const random_node *before)
{
    for (int k = 0; k < n->nbefore; ++k)
        if (n->before[k] == before->index) return true;
    for (int a = 0; a < n->naccesses; ++a)
        for (int b = 0; b < before->naccesses; ++b)
            if (n->access[a].handle == before->access[b].handle && n->access[a].group > before->access[b].group)
                return true;
    return false;
}

static inline void check_event(run_check *c, const random_node *n)
{
    const random_node *spawner = &c->graph->nodes[n->spawner];
    for (int k = 0; k < spawner->children; ++k) {
        const random_node *other = &c->graph->nodes[spawner->first_child + k];
        if (other->signals_event)
            check_after(c, n, end_for_successors(c->frame, other), "before the event's", other->name);
        if (other->calls_signal)
            check_after(c, n, c->frame->run[other->index].end[0], "before a signal of", other->name);
    }
}

static inline void check_order(run_check *c, const random_node *n)
{
    const random_graph *g = c->graph;
    const node_run *run = c->frame->run;
    for (int k = 0; n->spawner == NONE ? k < n->index : k < n->nbefore; ++k) {
        const random_node *before = &g->nodes[n->spawner == NONE ? k : n->before[k]];
        if (n->spawner != NONE || waits_for(n, before))
            check_after(c, n, end_for_successors(c->frame, before), "before", before->name);
    }
    if (n->spawner != NONE) check_after(c, n, run[n->spawner].start[0], "before its spawner", "started");
    if (n->waits_event) check_event(c, n);
    if (n->signals_task != NONE)
        check_after(c, &g->nodes[n->signals_task], run[n->index].end[0], "before a signal of", n->name);
}

/* ---- what may not overlap ---- */

enum { FREE, USED, LOCKED };

/* wanted[r]: how the node wants resource r, those covered by one above left out. */
static inline void effective_wants(const random_node *n, int wanted[MOST_RESOURCES])
{
    const random_graph *g = n->graph;
    for (int r = 0; r < g->nresources; ++r) wanted[r] = FREE;
    for (int k = 0; k < n->nuses; ++k) wanted[n->use[k]] = USED;
    for (int k = 0; k < n->nlocks; ++k) wanted[n->lock[k]] = LOCKED;
    for (int r = g->nresources - 1; r >= 0; --r) { /* parents come before their children */
        int above = g->resources[r].parent;
        while (above != NONE && wanted[above] == FREE) above = g->resources[above].parent;
        if (above == NONE || wanted[r] == FREE) continue;
        wanted[above] = wanted[r] > wanted[above] ? wanted[r] : wanted[above];
        wanted[r] = FREE;
    }
}

typedef struct held_resource {
    int locks, uses, locks_below, uses_below;
} held_resource;

typedef struct overlap_check {
    run_check *check;
    held_resource held[MOST_RESOURCES];
    int inside[MOST_PHASES]; /* running tasks of a phase */
} overlap_check;

/* Count the node in or out (by = 1 or -1). */
static inline void count_wants(overlap_check *o, const random_node *n, int by)
{
    const random_graph *g = n->graph;
    int wanted[MOST_RESOURCES];
    effective_wants(n, wanted);
    for (int r = 0; r < g->nresources; ++r) {
        if (wanted[r] == FREE) continue;
        o->held[r].locks += by * (wanted[r] == LOCKED);
        o->held[r].uses += by * (wanted[r] == USED);
        for (int above = g->resources[r].parent; above != NONE; above = g->resources[above].parent) {
            o->held[above].locks_below += by * (wanted[r] == LOCKED);
            o->held[above].uses_below += by * (wanted[r] == USED);
        }
    }
}

static inline void check_wants(overlap_check *o, const random_node *n)
{
    const random_graph *g = n->graph;
    int wanted[MOST_RESOURCES];
    effective_wants(n, wanted);
    for (int r = 0; r < g->nresources; ++r) {
        const held_resource *h = &o->held[r];
        if (wanted[r] == FREE) continue;
        bool wrong = h->locks || h->locks_below || (wanted[r] == LOCKED && (h->uses || h->uses_below));
        for (int above = g->resources[r].parent; above != NONE; above = g->resources[above].parent)
            wrong = wrong || o->held[above].locks || (wanted[r] == LOCKED && o->held[above].uses);
        if (wrong) found_wrong(o->check, "%s started while another task held resource %d", n->name, r);
    }
}

static inline void enter_node(overlap_check *o, const random_node *n)
{
    check_wants(o, n);
    count_wants(o, n, 1);
    for (int p = 0; n->phase != NONE && p < n->graph->phases; ++p) {
        if (p != n->phase && o->inside[p])
            found_wrong(o->check, "%s of phase %d started inside of phase %d", n->name, n->phase, p);
    }
    if (n->phase != NONE) ++o->inside[n->phase];
}

static inline void leave_node(overlap_check *o, const random_node *n)
{
    count_wants(o, n, -1);
    if (n->phase != NONE) --o->inside[n->phase];
}

/* Walk through the times at which tasks started and ended. */
static inline void check_overlaps(run_check *c)
{
    const random_graph *g = c->graph;
    overlap_check o = {.check = c};
    const random_frame *f = c->frame;
    int64_t times = atomic_load_explicit(&f->clock, memory_order_relaxed); /* relaxed: the run is over */
    int *at = app_calloc((size_t)times + 1, sizeof *at);                   /* node + 1 that starts, or minus that */
    for (int i = 0; i < g->count; ++i) {
        if (last_end(f, &g->nodes[i]) == 0) continue;
        at[first_start(f, &g->nodes[i])] = i + 1;
        at[last_end(f, &g->nodes[i])] = -(i + 1);
    }
    for (int64_t t = 1; t <= times; ++t) {
        if (at[t] > 0) enter_node(&o, &g->nodes[at[t] - 1]);
        if (at[t] < 0) leave_node(&o, &g->nodes[-at[t] - 1]);
    }
    free(at);
}

/* In the first round the tasks of the graph run phase by phase. */
static inline void check_phases(run_check *c)
{
    const random_graph *g = c->graph;
    int64_t end[MOST_PHASES] = {0};
    for (int i = 0; i < g->own; ++i) {
        int phase = g->nodes[i].phase;
        int64_t ended = last_end(c->frame, &g->nodes[i]);
        if (phase != NONE && ended > end[phase]) end[phase] = ended;
    }
    for (int i = 0; i < g->own; ++i) {
        for (int p = 0; p < g->nodes[i].phase; ++p)
            check_after(c, &g->nodes[i], end[p], "before the end of", "a phase");
    }
}

/* Increments that got lost. */
static inline void check_resources(run_check *c)
{
    const random_graph *g = c->graph;
    const random_frame *f = c->frame;
    for (int r = 0; r < g->nresources; ++r) {
        int64_t locked = 0;
        for (int i = 0; i < g->count; ++i) locked += f->run[i].end[0] > 0 && locks_resource(&g->nodes[i], r);
        if (locked != f->locked[r])
            found_wrong(c, "resource %d was changed %lld times by %lld tasks", r, (long long)f->locked[r],
                        (long long)locked);
    }
}

static inline void check_handles(run_check *c)
{
    int64_t written[MOST_HANDLES] = {0};
    for (int i = 0; i < c->graph->own; ++i) {
        const random_node *n = &c->graph->nodes[i];
        for (int a = 0; c->frame->run[i].end[0] > 0 && a < n->naccesses; ++a)
            written[n->access[a].handle] += is_exclusive(n->access[a].mode);
    }
    for (int h = 0; h < c->graph->nhandles; ++h)
        if (written[h] != c->frame->written[h])
            found_wrong(c, "handle %d was changed %lld times by %lld tasks", h, (long long)c->frame->written[h],
                        (long long)written[h]);
}

/* all: the run ended well. Else tasks may be missing, but nothing else may be wrong. */
static inline run_check check_run(const random_frame *f, bool all)
{
    const random_graph *g = f->graph;
    run_check c = {.graph = g, .frame = f};
    int wrong = atomic_load_explicit(&f->wrong, memory_order_relaxed); /* relaxed: the run is over */
    for (int i = 0; i < g->count; ++i) check_calls(&c, &g->nodes[i], all);
    for (int i = 0; all && i < g->count; ++i) check_order(&c, &g->nodes[i]);
    if (all) check_phases(&c);
    check_overlaps(&c);
    check_resources(&c);
    check_handles(&c);
    if (wrong) found_wrong(&c, "tasks found %d things wrong", wrong);
    return c;
}

static inline bool random_round_is_wrong(const random_frame *f)
{
    const run_check c = check_run(f, true);
    if (c.fault[0]) fprintf(stderr, "body of seed %llu: %s\n", (unsigned long long)f->graph->seed, c.fault);
    return c.fault[0] != 0;
}

#endif
