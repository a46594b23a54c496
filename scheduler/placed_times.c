/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* How copies and calls of devices overlap in time. */
#include <stdlib.h>

#include "arithmetic_impl.h"
#include "placed_run_impl.h"

/* ---- one time for all devices ---- */

/* The device of a space if it has a virtual clock, or NULL. A lost one is left alone. */
static trl_device *virtual_of(const trli_placed *p, int space)
{
    trl_device *device = trli_device_of(p->devices, space);
    return device->adds_up && !atomic_load_explicit(&device->lost, memory_order_relaxed) ? device : NULL;
}

trl_err trli_placed_times_create(trli_run_state *run)
{
    const trli_placed *p = run->graph->placed;
    trl_err err = TRL_OK;
    for (int d = 1; d <= p->devices->n; ++d) {
        trl_device *device = virtual_of(p, d);
        for (int s = 0; device && s < TRLI_STREAMS; ++s)
            TRL_TRY(device->ops->fence_create(device, false, &run->placed->meet[d][s]));
    }
done:
    return err;
}

void trli_placed_times_destroy(trli_run_state *run)
{
    const trli_placed *p = run->graph->placed;
    for (int d = 1; d <= p->devices->n; ++d)
        for (int s = 0; s < TRLI_STREAMS; ++s) {
            trl_device *device = trli_device_of(p->devices, d);
            if (run->placed->meet[d][s]) device->ops->fence_destroy(device, run->placed->meet[d][s]);
        }
}

/* A device that does not answer fails when it gets work. */
void trli_placed_times_meet(trli_run_state *run)
{
    const trli_placed *p = run->graph->placed;
    for (int d = 1; d <= p->devices->n; ++d) {
        trl_device *device = virtual_of(p, d);
        for (int s = 0; device && s < TRLI_STREAMS; ++s)
            if (run->placed->meet[d][s]) (void)device->ops->set(device, (trli_stream)s, run->placed->meet[d][s]);
    }
    for (int d = 1; d <= p->devices->n; ++d) {
        trl_device *device = virtual_of(p, d);
        for (int i = 0; device && i < p->devices->n * TRLI_STREAMS * TRLI_STREAMS; ++i) {
            trli_fence *other = run->placed->meet[1 + i / (TRLI_STREAMS * TRLI_STREAMS)][i % TRLI_STREAMS];
            if (other) (void)device->ops->wait(device, (trli_stream)(i / TRLI_STREAMS % TRLI_STREAMS), other);
        }
    }
}

/* ---- calls and copies ---- */

void trli_placed_times_start(trli_run_state *run)
{
    const int32_t tasks = run->graph->placed->logical->task_count;
    for (int32_t t = 0; t < tasks; ++t) run->placed->call_begin[t] = -1;
}

void trli_placed_times_call(trli_run_state *run, int32_t n, int32_t task, trli_busy_span span)
{
    run->placed->busy[n] = span;
    run->placed->call_begin[task] = trli_max_double(span.begin, 0);
}

static int compare_spans(const void *x, const void *y)
{
    const trli_busy_span *a = x, *b = y;
    return (a->begin > b->begin) - (a->begin < b->begin);
}

int32_t trli_placed_times_merge(trli_run_state *run, int32_t n)
{
    trli_busy_span *span = run->placed->busy;
    int32_t last = -1;
    qsort(span, (size_t)n, sizeof *span, compare_spans);
    for (int32_t i = 0; i < n; ++i) {
        if (last >= 0 && span[i].begin <= span[last].end)
            span[last].end = trli_max_double(span[last].end, span[i].end);
        else
            span[++last] = span[i];
    }
    return last + 1;
}

/* The first span that ends after a time; spans are disjoint and ascending. */
static int32_t first_after(const trli_busy_span *span, int32_t n, double time)
{
    int32_t from = 0, to = n;
    while (from < to) {
        const int32_t middle = from + (to - from) / 2;
        if (span[middle].end <= time)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

void trli_placed_times_copy(trli_run_state *run, int32_t spans, const trli_transfer *transfer, trli_busy_span copy)
{
    const trli_busy_span *busy = run->placed->busy;
    trli_placed_times *times = &run->graph->placed->times;
    times->copying += copy.end - copy.begin;
    for (int32_t i = first_after(busy, spans, copy.begin); i < spans && busy[i].begin < copy.end; ++i) {
        const double begin = trli_max_double(busy[i].begin, copy.begin);
        const double end = busy[i].end < copy.end ? busy[i].end : copy.end;
        times->overlapped += end - begin;
    }
    const double read = run->placed->call_begin[transfer->reader];
    if (read < 0) return;
    times->lead += trli_max_double(read - copy.end, 0);
    ++times->leads;
}

void trli_placed_times_end(trli_run_state *run, double end)
{
    double *least = &run->graph->placed->times.least;
    if (end > 0 && (*least == 0 || end < *least)) *least = end;
}
