/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Assign each task to the executor where it ends first. */
#include <math.h>

#include "arithmetic_impl.h"
#include "placement_assign_impl.h"
#include "placement_heap_impl.h"

enum { GAPS = 16 }; /* number of idle times of an executor that are remembered: the longest ones */

typedef struct gap {
    double start, end;
} gap;

/* Schedule of an executor: each slot is busy until its `end`, except in the gaps. */
typedef struct timeline {
    double *end; /* [parallel] */
    gap gap[GAPS];
    int gaps;
} timeline;

/* A possible place for a task. */
typedef struct place {
    double start, end;
    int slot, gap; /* a slot or a gap; the other is -1 */
} place;

typedef struct finish {
    trli_assignment *a;
    double *weight; /* [tasks] mean times and copies on the longest path to the end of the graph */
    double *ready;  /* [tasks] end of the last predecessor placed so far */
    double *there;  /* [values][executors] time at which the value is there; infinite: it is not there */
    int32_t *before;
    timeline line[TRLI_EXECUTORS];
    double link_free[TRLI_EXECUTORS][TRLI_EXECUTORS];
    trli_heap next;
} finish;

static double seconds_on(const finish *f, int32_t task, int e)
{
    return f->a->graph->seconds[(size_t)task * (size_t)f->a->machine->executors + (size_t)e];
}

/* ---- the order ---- */

static double mean_seconds(const finish *f, int32_t task)
{
    const unsigned may = f->a->may[f->a->unit[task]];
    double sum = 0.0;
    int n = 0;
    for (int e = 0; e < f->a->machine->executors; ++e) {
        if (!(may >> e & 1)) continue;
        sum += seconds_on(f, task, e);
        ++n;
    }
    return n ? sum / n : 0.0;
}

/* Mean seconds of copies from any space to any space; no time within one space. */
static trli_route mean_link(const trli_platform *machine)
{
    const double pairs = (double)machine->executors * machine->executors;
    double latency = 0.0, per_byte = 0.0;
    for (int from = 0; from < machine->executors; ++from) {
        for (int to = 0; to < machine->executors; ++to) {
            if (from == to) continue;
            latency += machine->link[from][to].latency;
            if (machine->link[from][to].rate > 0.0) per_byte += 1.0 / machine->link[from][to].rate;
        }
    }
    return (trli_route){latency / pairs, per_byte > 0.0 ? pairs / per_byte : INFINITY};
}

/* behind: [values] scratch for the longest path from a reader of the value. */
static void weigh(finish *f, double *behind)
{
    const trli_place_graph *g = f->a->graph;
    const trli_values *v = f->a->values;
    const trli_route link = mean_link(f->a->machine);
    for (int32_t i = g->tasks - 1; i >= 0; --i) {
        const int32_t t = g->order[i], first = g->access_first[t], end = g->access_first[t + 1];
        double rest = 0.0;
        for (int32_t k = g->first[t]; k < g->first[t + 1]; ++k)
            rest = trli_max_double(rest, f->weight[g->successors[k]]);
        for (int32_t k = first; k < end; ++k) {
            if (v->makes[k] < 0 || behind[v->makes[k]] == 0.0) continue;
            const size_t bytes = g->handle[g->access[k].handle].bytes;
            const double pieces = g->pieces ? g->pieces[g->access[k].handle] : 1;
            const double copy = bytes ? link.latency * pieces + (double)bytes / link.rate : 0.0;
            rest = trli_max_double(rest, copy + behind[v->makes[k]]);
        }
        f->weight[t] = rest + mean_seconds(f, t);
        for (int32_t k = first; k < end; ++k)
            if (v->needs[k] >= 0) behind[v->needs[k]] = trli_max_double(behind[v->needs[k]], f->weight[t]);
    }
}

/* ---- times of data ---- */

/* Of the copies that bring a value to an executor, the one that ends first. free: when links to the executor are
 * free. Returns the source; -1: the value is nowhere. */
static int best_copy(const finish *f, int32_t value, int to, const double *free, double *end)
{
    const int executors = f->a->machine->executors;
    const double *there = &f->there[(size_t)value * (size_t)executors];
    int best = -1;
    *end = INFINITY;
    for (int from = 0; from < executors; ++from) {
        if (there[from] == INFINITY) continue;
        const double at = trli_max_double(there[from], free[from]) +
                          trli_copy_seconds(f->a->graph, f->a->machine, f->a->values->handle[value], from, to);
        if (at >= *end) continue;
        *end = at;
        best = from;
    }
    return best;
}

/* The time at which all data of a task is there. Copies are scheduled on their links, and remain so if `keep`. */
static double data_ready(finish *f, int32_t task, int to, bool keep)
{
    const trli_place_graph *g = f->a->graph;
    const size_t executors = (size_t)f->a->machine->executors;
    double free[TRLI_EXECUTORS], ready = f->ready[task];
    for (size_t e = 0; e < executors; ++e) free[e] = f->link_free[e][to];
    for (int32_t k = g->access_first[task]; k < g->access_first[task + 1]; ++k) {
        const int32_t value = f->a->values->needs[k];
        if (value < 0 || g->handle[g->access[k].handle].bytes == 0) continue;
        double *there = &f->there[(size_t)value * executors + (size_t)to], at = *there;
        if (at == INFINITY) {
            const int from = best_copy(f, value, to, free, &at);
            if (from < 0) continue;
            free[from] = at;
            if (keep) f->link_free[from][to] = *there = at;
        }
        ready = trli_max_double(ready, at);
    }
    return ready;
}

/* ---- times of executors ---- */

/* The earliest place: the first gap that is long enough, or after all work, in the slot that is free first. */
static place find_place(const finish *f, int32_t task, int e, double ready)
{
    const timeline *line = &f->line[e];
    const double seconds = seconds_on(f, task, e), launch = f->a->machine->launch[e];
    place best = {.end = INFINITY, .slot = -1, .gap = -1};
    for (int i = 0; i < line->gaps; ++i) {
        const double start = trli_max_double(ready, line->gap[i].start), end = start + seconds + launch;
        if (end <= line->gap[i].end && end < best.end) best = (place){start, end, -1, i};
    }
    if (best.gap >= 0) return best;
    int slot = 0;
    for (int s = 1; s < f->a->machine->parallel[e]; ++s) {
        const double now = line->end[s], least = line->end[slot];
        if (least <= ready ? now > least && now <= ready : now < least) slot = s;
    }
    best.start = trli_max_double(ready, line->end[slot]);
    best.end = best.start + seconds + (best.start == line->end[slot] && best.start > 0.0 ? 0.0 : launch);
    best.slot = slot;
    return best;
}

static void remember_gap(timeline *line, double start, double end)
{
    int shortest = 0;
    if (end <= start) return;
    if (line->gaps < GAPS) {
        line->gap[line->gaps++] = (gap){start, end};
        return;
    }
    for (int i = 1; i < GAPS; ++i)
        if (line->gap[i].end - line->gap[i].start < line->gap[shortest].end - line->gap[shortest].start) shortest = i;
    if (line->gap[shortest].end - line->gap[shortest].start < end - start) line->gap[shortest] = (gap){start, end};
}

static void take_place(timeline *line, const place *p)
{
    if (p->gap >= 0) {
        const gap old = line->gap[p->gap];
        line->gap[p->gap] = line->gap[--line->gaps];
        remember_gap(line, old.start, p->start);
        remember_gap(line, p->end, old.end);
    } else {
        remember_gap(line, line->end[p->slot], p->start);
        line->end[p->slot] = p->end;
    }
}

/* ---- choices ---- */

/* Additional time of the other tasks of a unit, which run on the same executor. */
static double rest_of_unit(const finish *f, int32_t unit, int32_t task, int e)
{
    double sum = 0.0;
    for (int32_t i = f->a->unit_first[unit]; i < f->a->unit_first[unit + 1]; ++i)
        if (f->a->unit_task[i] != task) sum += seconds_on(f, f->a->unit_task[i], e);
    return sum / f->a->machine->parallel[e];
}

/* The first of the executors with the earliest end; -1: the task fits on none. */
static int choose(finish *f, int32_t task)
{
    const int32_t unit = f->a->unit[task];
    int best = -1;
    double least = INFINITY;
    for (int e = 0; e < f->a->machine->executors; ++e) {
        if (!trli_unit_fits(f->a, unit, e)) continue;
        const double end = find_place(f, task, e, data_ready(f, task, e, false)).end + rest_of_unit(f, unit, task, e);
        if (best >= 0 && end >= least) continue;
        best = e;
        least = end;
    }
    return best;
}

static void place_task(finish *f, int32_t task)
{
    const trli_place_graph *g = f->a->graph;
    const int e = f->a->executor[task];
    const size_t executors = (size_t)f->a->machine->executors;
    const place p = find_place(f, task, e, data_ready(f, task, e, true));
    take_place(&f->line[e], &p);
    for (int32_t k = g->access_first[task]; k < g->access_first[task + 1]; ++k) {
        if (f->a->values->makes[k] < 0) continue;
        double *there = &f->there[(size_t)f->a->values->makes[k] * executors + (size_t)e];
        *there = *there == INFINITY ? p.end : trli_max_double(*there, p.end);
    }
    for (int32_t k = g->first[task]; k < g->first[task + 1]; ++k) {
        const int32_t after = g->successors[k];
        f->ready[after] = trli_max_double(f->ready[after], p.end);
        if (--f->before[after] == 0) trli_heap_push(&f->next, -f->weight[after], after);
    }
}

static bool place_all(finish *f)
{
    const trli_place_graph *g = f->a->graph;
    for (int32_t i = 0; i < g->first[g->tasks]; ++i) ++f->before[g->successors[i]];
    for (int32_t t = 0; t < g->tasks; ++t)
        if (f->before[t] == 0) trli_heap_push(&f->next, -f->weight[t], t);
    while (f->next.count) {
        const int32_t task = trli_heap_pop(&f->next).id;
        if (f->a->executor[task] == TRLI_UNPLACED) {
            const int e = choose(f, task);
            if (e < 0) return false;
            trli_unit_place(f->a, f->a->unit[task], e);
        }
        place_task(f, task);
    }
    return true;
}

static double *allocate(finish *f, trli_scratch *scratch)
{
    const trli_platform *machine = f->a->machine;
    const size_t tasks = (size_t)f->a->graph->tasks, values = (size_t)f->a->values->count;
    f->weight = trli_scratch_new(scratch, tasks, sizeof *f->weight);
    f->ready = trli_scratch_new(scratch, tasks, sizeof *f->ready);
    f->before = trli_scratch_new(scratch, tasks, sizeof *f->before);
    f->there = trli_scratch_new(scratch, values * (size_t)machine->executors, sizeof *f->there);
    f->next.item = trli_scratch_new(scratch, tasks, sizeof *f->next.item);
    for (int e = 0; e < machine->executors; ++e)
        f->line[e].end = trli_scratch_new(scratch, (size_t)machine->parallel[e], sizeof(double));
    return trli_scratch_new(scratch, values, sizeof(double));
}

trl_err trli_assign_finish_time(trli_assignment *a, const uint16_t *first, bool *complete)
{
    trl_err err = TRL_OK;
    trli_scratch scratch = {.ctx = a->ctx};
    finish f = {.a = a};
    double *behind = allocate(&f, &scratch);
    if (scratch.failed) {
        err = trli_no_memory(a->ctx, NULL, "to assign %d tasks", a->graph->tasks);
        goto done;
    }
    for (int32_t v = 0; v < a->values->count; ++v) {
        const unsigned spaces = v < a->graph->handles ? first[v] : 0u;
        for (int e = 0; e < a->machine->executors; ++e)
            f.there[(size_t)v * (size_t)a->machine->executors + (size_t)e] = spaces >> e & 1 ? 0.0 : INFINITY;
    }
    weigh(&f, behind);
    trli_assignment_clear(a);
    *complete = place_all(&f);
done:
    trli_scratch_free(&scratch);
    return err;
}
