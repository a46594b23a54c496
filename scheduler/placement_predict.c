/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Simulates a placement on a virtual clock. */
#include "arithmetic_impl.h"
#include "placement_heap_impl.h"
#include "placement_values_impl.h"

/* Copies that wait for a link, in the order in which their values became available. */
typedef struct link_queue {
    int32_t first, last; /* -1: none waits */
    bool busy;
} link_queue;

typedef struct play {
    trl_context *ctx;
    const trli_place_graph *graph;
    const trli_platform *machine;
    const uint8_t *executor;
    const trli_transfer *transfer;
    const trli_transfers *transfers;
    int32_t ntransfers;
    bool prefetch;
    trli_prediction *prediction;
    double *weight;      /* [tasks] longest path to the end of the graph */
    double *copy_weight; /* [transfers] the same */
    double *behind;      /* [tasks] the part of that path which begins with a copy of the task's result */
    int32_t *before;     /* [tasks] predecessors not complete */
    int32_t *missing;    /* [tasks] copies not complete, plus one for the predecessors */
    int32_t *copy_waits; /* [transfers] sources not complete, plus one until wanted, plus one until the run begins */
    int32_t *wanted;     /* [transfers] the task whose predecessors a copy waits for, without prefetch */
    bool *released;      /* [transfers] that task's predecessors are complete */
    uint8_t *from;       /* [transfers] source space; the destination itself: the copy takes no time */
    /* Dependencies: task t waits for the copies made[made_first[t]..); the tasks reader[reader_first[x]..) wait for
     * copy x; and the copies that start from what x brings are next_from[x] and, from there, next_of_source. */
    int32_t *made_first, *made, *reader_first, *reader, *next_from, *next_of_source;
    int32_t *next_in_queue; /* [transfers] */
    link_queue link[TRLI_EXECUTORS][TRLI_EXECUTORS];
    trli_heap ready[TRLI_EXECUTORS]; /* by weight */
    trli_heap events;                /* by time: ends of tasks t, and of copies x as tasks + x */
    int running[TRLI_EXECUTORS];
    double last_end[TRLI_EXECUTORS];
} play;

/* ---- dependencies ---- */

static void list_made(play *p)
{
    const int32_t *writer = p->transfers->writers.data, n = (int32_t)p->transfers->writers.count;
    for (int32_t i = 0; i < n; ++i) ++p->made_first[writer[i]];
    for (int32_t t = 0; t < p->graph->tasks; ++t) p->made_first[t + 1] += p->made_first[t];
    for (int32_t x = p->ntransfers - 1; x >= 0; --x) {
        for (int32_t i = p->transfer[x].writers_first; i < p->transfer[x].writers_end; ++i)
            p->made[--p->made_first[writer[i]]] = x;
    }
}

static void list_readers(play *p)
{
    const int32_t *brought = p->transfers->access_transfer, *first = p->graph->access_first;
    for (int32_t a = 0; a < first[p->graph->tasks]; ++a)
        if (brought[a] >= 0) ++p->reader_first[brought[a]];
    for (int32_t x = 0; x < p->ntransfers; ++x) p->reader_first[x + 1] += p->reader_first[x];
    for (int32_t t = p->graph->tasks - 1; t >= 0; --t) {
        for (int32_t a = first[t + 1] - 1; a >= first[t]; --a) {
            if (brought[a] < 0) continue;
            p->reader[--p->reader_first[brought[a]]] = t;
            ++p->missing[t];
        }
    }
}

static void count_waits(play *p)
{
    const trli_place_graph *g = p->graph;
    for (int32_t t = 0; t < g->tasks; ++t) ++p->missing[t];
    for (int32_t i = 0; i < g->first[g->tasks]; ++i) ++p->before[g->successors[i]];
    for (int32_t x = 0; x < p->ntransfers; ++x) p->next_from[x] = -1;
    for (int32_t x = p->ntransfers - 1; x >= 0; --x) {
        const trli_transfer *transfer = &p->transfer[x];
        p->copy_waits[x] = 1 + transfer->writers_end - transfer->writers_first + !p->prefetch;
        if (transfer->source < 0) continue;
        ++p->copy_waits[x];
        p->next_of_source[x] = p->next_from[transfer->source];
        p->next_from[transfer->source] = x;
    }
}

/* A value that is ANYWHERE when a run begins lies where previous equal runs left it. */
static void find_sources(play *p)
{
    for (int32_t x = 0; x < p->ntransfers; ++x) {
        const trli_transfer *t = &p->transfer[x];
        p->from[x] = t->from;
        if (t->from != TRLI_ANYWHERE) continue;
        const unsigned spaces = trli_steady_spaces(p->graph, p->transfers, t->handle);
        p->from[x] = (uint8_t)trli_cheapest_source(p->graph, p->machine, t->handle, spaces, t->to);
    }
}

/* ---- weights ---- */

static double task_seconds(const play *p, int32_t task)
{
    return p->graph->seconds[(size_t)task * (size_t)p->machine->executors + p->executor[task]];
}

static double copy_seconds(const play *p, int32_t x)
{
    const trli_transfer *t = &p->transfer[x];
    return p->from[x] == t->to ? 0.0 : trli_copy_seconds(p->graph, p->machine, t->handle, p->from[x], t->to);
}

/* A path through copy x continues with `rest` seconds. The weights of the tasks that made the value are computed
 * later: they precede the readers. */
static void weigh_copy(play *p, int32_t x, double rest)
{
    const int32_t *writer = p->transfers->writers.data;
    for (;;) {
        rest += copy_seconds(p, x);
        if (rest <= p->copy_weight[x]) return;
        p->copy_weight[x] = rest;
        if (p->transfer[x].source < 0) break;
        x = p->transfer[x].source;
    }
    for (int32_t i = p->transfer[x].writers_first; i < p->transfer[x].writers_end; ++i)
        p->behind[writer[i]] = trli_max_double(p->behind[writer[i]], rest);
}

static void weigh(play *p)
{
    const trli_place_graph *g = p->graph;
    for (int32_t i = g->tasks - 1; i >= 0; --i) {
        const int32_t t = g->order[i];
        double rest = p->behind[t];
        for (int32_t k = g->first[t]; k < g->first[t + 1]; ++k)
            rest = trli_max_double(rest, p->weight[g->successors[k]]);
        p->weight[t] = rest + task_seconds(p, t);
        for (int32_t a = g->access_first[t]; a < g->access_first[t + 1]; ++a)
            if (p->transfers->access_transfer[a] >= 0) weigh_copy(p, p->transfers->access_transfer[a], p->weight[t]);
    }
}

/* ---- the clock ---- */

static void start_copy(play *p, int32_t x, double now)
{
    const double end = now + copy_seconds(p, x);
    p->link[p->from[x]][p->transfer[x].to].busy = true;
    p->prediction->copy_start[x] = now;
    p->prediction->copy_end[x] = end;
    trli_heap_push(&p->events, end, p->graph->tasks + x);
}

static void queue_copy(play *p, int32_t x, double now)
{
    link_queue *q = &p->link[p->from[x]][p->transfer[x].to];
    if (!q->busy) {
        start_copy(p, x, now);
        return;
    }
    p->next_in_queue[x] = -1;
    if (q->first < 0) {
        q->first = x;
    } else {
        p->next_in_queue[q->last] = x;
    }
    q->last = x;
}

static void release_copy(play *p, int32_t x, double now)
{
    if (--p->copy_waits[x] == 0) queue_copy(p, x, now);
}

/* The predecessors of a task are complete: without prefetch it is time for the copy, and those that it is made from,
 * which wait for the task. */
static void want_copy(play *p, int32_t task, int32_t x, double now)
{
    for (; x >= 0; x = p->transfer[x].source) {
        if (p->wanted[x] != task || p->released[x]) continue;
        p->released[x] = true;
        release_copy(p, x, now);
    }
}

static void make_ready(play *p, int32_t task)
{
    trli_heap_push(&p->ready[p->executor[task]], -p->weight[task], task);
}

/* All predecessors of a task are complete. */
static void follow_predecessors(play *p, int32_t task, double now)
{
    const trli_awaited *more = p->transfers->more.data;
    for (int32_t a = p->graph->access_first[task]; !p->prefetch && a < p->graph->access_first[task + 1]; ++a)
        want_copy(p, task, p->transfers->access_transfer[a], now);
    for (int64_t i = 0; !p->prefetch && i < p->transfers->more.count; ++i)
        if (more[i].task == task) want_copy(p, task, more[i].transfer, now);
    if (--p->missing[task] == 0) make_ready(p, task);
}

static void end_task(play *p, int32_t task, double now)
{
    const int e = p->executor[task];
    --p->running[e];
    p->last_end[e] = now;
    for (int32_t i = p->graph->first[task]; i < p->graph->first[task + 1]; ++i) {
        const int32_t after = p->graph->successors[i];
        if (--p->before[after] == 0) follow_predecessors(p, after, now);
    }
    for (int32_t i = p->made_first[task]; i < p->made_first[task + 1]; ++i) release_copy(p, p->made[i], now);
}

static void end_copy(play *p, int32_t x, double now)
{
    link_queue *q = &p->link[p->from[x]][p->transfer[x].to];
    q->busy = false;
    if (q->first >= 0) {
        const int32_t next = q->first;
        q->first = p->next_in_queue[next];
        start_copy(p, next, now);
    }
    for (int32_t i = p->reader_first[x]; i < p->reader_first[x + 1]; ++i)
        if (--p->missing[p->reader[i]] == 0) make_ready(p, p->reader[i]);
    for (int32_t y = p->next_from[x]; y >= 0; y = p->next_of_source[y]) release_copy(p, y, now);
}

/* A task that follows another without a gap is launched together with it. */
static void start_tasks(play *p, int e, double now)
{
    while (p->running[e] < p->machine->parallel[e] && p->ready[e].count) {
        const int32_t task = trli_heap_pop(&p->ready[e]).id;
        const double launch = p->last_end[e] == now ? 0.0 : p->machine->launch[e];
        const double seconds = launch + task_seconds(p, task);
        ++p->running[e];
        p->prediction->start[task] = now;
        p->prediction->end[task] = now + seconds;
        p->prediction->busy[e] += seconds;
        p->prediction->seconds = trli_max_double(p->prediction->seconds, now + seconds);
        trli_heap_push(&p->events, now + seconds, task);
    }
}

static void begin(play *p)
{
    for (int e = 0; e < p->machine->executors; ++e) {
        p->last_end[e] = -1.0;
        for (int f = 0; f < p->machine->executors; ++f) p->link[e][f].first = -1;
    }
    for (int32_t x = 0; x < p->ntransfers; ++x) release_copy(p, x, 0.0);
    for (int32_t t = 0; t < p->graph->tasks; ++t)
        if (p->before[t] == 0) follow_predecessors(p, t, 0.0);
}

/* Handle everything that ends at one time before anything starts, so that the most urgent of all ready tasks starts. */
static void run(play *p)
{
    double now = 0.0;
    begin(p);
    for (;;) {
        while (p->events.count && p->events.item[0].key == now) {
            const int32_t id = trli_heap_pop(&p->events).id;
            if (id < p->graph->tasks) {
                end_task(p, id, now);
            } else {
                end_copy(p, id - p->graph->tasks, now);
            }
        }
        for (int e = 0; e < p->machine->executors; ++e) start_tasks(p, e, now);
        if (p->events.count == 0) break;
        now = p->events.item[0].key;
    }
}

/* ---- memory ---- */

static void allocate_queues(play *p, trli_scratch *scratch)
{
    const int32_t tasks = p->graph->tasks;
    trli_heap_item *ready = trli_scratch_new(scratch, (size_t)tasks, sizeof *ready);
    int32_t count[TRLI_EXECUTORS] = {0};
    p->events.item = trli_scratch_new(scratch, (size_t)tasks + (size_t)p->ntransfers, sizeof *ready);
    for (int32_t t = 0; t < tasks; ++t) ++count[p->executor[t]];
    for (int e = 0; ready && e < p->machine->executors; ++e) {
        p->ready[e].item = ready;
        ready += count[e];
    }
}

static void allocate(play *p, trli_scratch *scratch)
{
    const size_t tasks = (size_t)p->graph->tasks, copies = (size_t)p->ntransfers;
    const size_t accesses = (size_t)p->graph->access_first[tasks];
    allocate_queues(p, scratch);
    p->weight = trli_scratch_new(scratch, tasks, sizeof *p->weight);
    p->behind = trli_scratch_new(scratch, tasks, sizeof *p->behind);
    p->copy_weight = trli_scratch_new(scratch, copies, sizeof *p->copy_weight);
    p->before = trli_scratch_new(scratch, tasks, sizeof *p->before);
    p->missing = trli_scratch_new(scratch, tasks, sizeof *p->missing);
    p->copy_waits = trli_scratch_new(scratch, copies, sizeof *p->copy_waits);
    p->wanted = trli_scratch_new(scratch, copies, sizeof *p->wanted);
    p->released = trli_scratch_new(scratch, copies, sizeof *p->released);
    p->from = trli_scratch_new(scratch, copies, sizeof *p->from);
    p->made_first = trli_scratch_new(scratch, tasks + 1, sizeof *p->made_first);
    p->made = trli_scratch_new(scratch, (size_t)p->transfers->writers.count, sizeof *p->made);
    p->reader_first = trli_scratch_new(scratch, copies + 1, sizeof *p->reader_first);
    p->reader = trli_scratch_new(scratch, accesses, sizeof *p->reader);
    p->next_from = trli_scratch_new(scratch, copies, sizeof *p->next_from);
    p->next_of_source = trli_scratch_new(scratch, copies, sizeof *p->next_of_source);
    p->next_in_queue = trli_scratch_new(scratch, copies, sizeof *p->next_in_queue);
}

static bool allocate_prediction(play *p)
{
    const size_t tasks = (size_t)p->graph->tasks, copies = (size_t)p->ntransfers;
    *p->prediction = (trli_prediction){.start = trli_new(p->ctx, tasks, sizeof(double)),
                                       .end = trli_new(p->ctx, tasks, sizeof(double)),
                                       .copy_start = trli_new(p->ctx, copies, sizeof(double)),
                                       .copy_end = trli_new(p->ctx, copies, sizeof(double))};
    return p->prediction->start && p->prediction->end && p->prediction->copy_start && p->prediction->copy_end;
}

trl_err trli_predict(trl_context *ctx, const trli_place_graph *graph, const trli_platform *machine,
                     const uint8_t *executor, const trli_transfers *transfers, bool prefetch,
                     trli_prediction *prediction)
{
    trl_err err = TRL_OK;
    trli_scratch scratch = {.ctx = ctx};
    play p = {.ctx = ctx,
              .graph = graph,
              .machine = machine,
              .executor = executor,
              .transfer = transfers->list.data,
              .transfers = transfers,
              .ntransfers = (int32_t)transfers->list.count,
              .prefetch = prefetch,
              .prediction = prediction};
    allocate(&p, &scratch);
    if (!allocate_prediction(&p) || scratch.failed) {
        trli_prediction_free(prediction);
        err = trli_no_memory(ctx, NULL, "to predict a run of %d tasks", graph->tasks);
        goto done;
    }
    if (!prefetch && (err = trli_transfers_wanted(ctx, graph, transfers, p.wanted)) != TRL_OK) {
        trli_prediction_free(prediction);
        goto done;
    }
    list_made(&p);
    list_readers(&p);
    count_waits(&p);
    find_sources(&p);
    weigh(&p);
    run(&p);
done:
    trli_scratch_free(&scratch);
    return err;
}

void trli_prediction_free(trli_prediction *prediction)
{
    trli_free(prediction->start);
    trli_free(prediction->end);
    trli_free(prediction->copy_start);
    trli_free(prediction->copy_end);
    *prediction = (trli_prediction){0};
}
