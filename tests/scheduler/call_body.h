/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* A body for calls, which halves numbers until they are small, and what calls of it do. */
#ifndef CALL_BODY_H
#define CALL_BODY_H

#include <stdatomic.h>

#include "app_support.h"

enum { CHUNKS = 5, POINTS = 40, RUNS = 20 };

/* What a body works on: halve x until it is small. */
typedef struct frame {
    double x[POINTS], factor, limit, largest;
    struct frame *inner;
    int64_t rounds, begun;
    trl_err result; /* of the task that looks, in round `when` */
    int64_t when;
    _Atomic int spawned;
} frame;

static inline trl_err scale(void *data, const trl_task_args *args, bool *done)
{
    frame *f = args->frame;
    (void)data, (void)done;
    for (int i = args->chunk; i < POINTS; i += args->chunks) f->x[i] *= f->factor;
    return TRL_OK;
}

static inline trl_err look(void *data, const trl_task_args *args, bool *done)
{
    frame *f = args->frame;
    (void)data, (void)done;
    f->largest = 0;
    for (int i = 0; i < POINTS; ++i) f->largest = f->x[i] > f->largest ? f->x[i] : f->largest;
    return f->rounds + 1 == f->when ? f->result : TRL_OK;
}

static inline trl_task add(trl_graph *graph, const char *name, trl_task_fn run, void *data, int chunks, unsigned flags)
{
    trl_task task;
    ck_ok(trl_graph_add_task(
        graph, &(trl_task_desc){.name = name, .variant = {{run}}, .data = data, .chunks = chunks, .flags = flags},
        &task));
    return task;
}

static inline trl_graph *halving_body(void)
{
    trl_graph *body = app_graph("halve");
    const trl_handle x = app_handle(body, "x");
    const trl_task scales = add(body, "scale", scale, NULL, CHUNKS, 0), looks = add(body, "look", look, NULL, 1, 0);
    ck_ok(trl_graph_add_access(body, scales, x, TRL_READ_WRITE));
    ck_ok(trl_graph_add_access(body, looks, x, TRL_READ));
    ck_ok(trl_graph_freeze(body));
    return body;
}

/* data: the frame, or NULL: `inner` of the caller's. */
static inline trl_err enter(void *data, const trl_task_args *args, void **at)
{
    frame *f = data ? data : ((frame *)args->frame)->inner;
    f->rounds = 0;
    ++f->begun;
    *at = f;
    return TRL_OK;
}

static inline trl_err until_small(void *data, const trl_task_args *args, int64_t round, bool *again)
{
    frame *f = args->frame;
    (void)data;
    ck_assert_int_eq(round, ++f->rounds);
    *again = f->largest > f->limit;
    return TRL_OK;
}

static inline trl_task add_call(trl_graph *graph, const char *name, trl_graph *body, frame *f, int64_t most)
{
    trl_task task;
    ck_ok(trl_graph_add_call(
        graph,
        &(trl_call_desc){.name = name, .body = body, .data = f, .begin = enter, .again = until_small, .rounds = most},
        &task));
    return task;
}

static inline frame start(double limit)
{
    frame f = {.factor = 0.5, .limit = limit, .when = -1};
    for (int i = 0; i < POINTS; ++i) f.x[i] = 1 + i;
    return f;
}

/* What a loop would give. */
static inline void check(const frame *f, double limit)
{
    double factor = 1;
    int64_t rounds = 0;
    for (; rounds == 0 || POINTS * factor > limit; ++rounds) factor *= 0.5;
    ck_assert_int_eq(f->rounds, rounds);
    for (int i = 0; i < POINTS; ++i) ck_assert(f->x[i] == (1 + i) * factor);
}

static inline trl_err nothing(void *data, const trl_task_args *args, bool *done)
{
    (void)data, (void)args, (void)done;
    return TRL_OK;
}

static inline trl_err count_spawned(void *data, const trl_task_args *args, bool *done)
{
    frame *f = args->frame;
    (void)data, (void)done;
    atomic_fetch_add(&f->spawned, 1);
    return TRL_OK;
}

static inline trl_err three_times(void *data, const trl_task_args *args, int64_t round, bool *again)
{
    (void)data, (void)args;
    *again = round < 3;
    return TRL_OK;
}

static inline trl_err double_all(void *data, const trl_task_args *args, bool *done)
{
    frame *f = data;
    (void)args, (void)done;
    for (int i = 0; i < POINTS; ++i) f->x[i] *= 2;
    return TRL_OK;
}

#endif
