/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Recording of traces: each worker writes what it does into a lane of its own, without locks and without allocation. */
#ifndef TRL_TRACE_IMPL_H
#define TRL_TRACE_IMPL_H

#include <stdalign.h>
#include <string.h>

#include "graph_impl.h"

/* Kinds of events, their category, and the prefix of their names in the file. X(KIND, category, prefix) */
#define TRLI_TRACE_LIST(X)        \
    X(TASK, "task", "")           \
    X(POLL, "poll", "")           \
    X(PARK, "lock", "waits for ") \
    X(IDLE, "idle", "")           \
    X(CALL, "device", "")         \
    X(COPY, "copy", "")           \
    X(RUN, "run", "")

typedef enum trli_trace_kind {
#define TRLI_TRACE_ENUM(kind, category, prefix) TRLI_TRACE_##kind,
    TRLI_TRACE_LIST(TRLI_TRACE_ENUM)
#undef TRLI_TRACE_ENUM
        TRLI_TRACE_KINDS
} trli_trace_kind;

/* The first bytes of a name are copied: the name may be freed before the trace is written, and a copy is cheaper
 * than a look-up. An event is a cache line. */
enum { TRLI_TRACE_NAME = 42 };
typedef struct trli_trace_event {
    int64_t begin_ns, end_ns; /* of trli_now_ns */
    int32_t calls;            /* of POLL: number of calls merged into the event */
    uint8_t kind, type;
    char name[TRLI_TRACE_NAME]; /* with its NUL */
} trli_trace_event;

/* The events of one worker. Used by one thread at a time. */
typedef struct trli_trace_lane {
    alignas(64) trli_trace_event *events;
    int64_t count, capacity;
    int64_t dropped; /* events for which there was no room */
} trli_trace_lane;

struct trl_trace {
    trl_context *ctx;
    int workers;
    int64_t origin_ns; /* time of creation */
    int64_t events;    /* events that a lane has room for */
    int lanes;         /* lanes made so far */
    int devices;       /* devices, with a lane for each of their streams */
    /* [workers + 1], the last one for whole runs, then those of devices; used by the thread that holds `adding` */
    trli_trace_lane *lane;
    _Atomic bool adding;
};

/* Merge a call of a poll task into the last event, since a worker that waits for messages tests them all the time:
 * consecutive calls with nothing in between are one event. Returns whether the call was merged. */
static inline bool trli_trace_join_polls(trli_trace_lane *lane, const char *name, int64_t end_ns)
{
    if (lane->count == 0) return false;
    trli_trace_event *last = &lane->events[lane->count - 1];
    if (last->kind != TRLI_TRACE_POLL) return false;
    if (strncmp(last->name, name, TRLI_TRACE_NAME - 1) != 0) memcpy(last->name, "poll tasks", sizeof "poll tasks");
    last->end_ns = end_ns;
    ++last->calls;
    return true;
}

/* Add an event to the lane (not NULL) of a worker. TASK, POLL: a call of a task function, after which the task was
 * complete or not; PARK: an instant, at begin_ns, with the name of the resource that a task waits for; IDLE. type:
 * type of the task. */
static inline void trli_trace_add(trli_trace_lane *lane, trli_trace_kind kind, const char *name, int type,
                                  int64_t begin_ns, int64_t end_ns)
{
    if (kind == TRLI_TRACE_POLL && trli_trace_join_polls(lane, name, end_ns)) return;
    if (lane->count == lane->capacity) {
        ++lane->dropped;
        return;
    }
    trli_trace_event *event = &lane->events[lane->count++];
    size_t length = strnlen(name, TRLI_TRACE_NAME - 1);
    event->begin_ns = begin_ns;
    event->end_ns = end_ns;
    event->calls = 1;
    event->kind = (uint8_t)kind;
    event->type = (uint8_t)type;
    memcpy(event->name, name, length);
    event->name[length] = 0;
}

enum { TRLI_TRACE_STREAMS = 3 }; /* of a device: calls, copies to it, copies from it */
/* Make lanes for devices, if they have none. */
TRL_NODISCARD trl_err trli_trace_add_devices(trl_trace *trace, int devices);
/* Add work of a stream of device 0 <= device: CALL or COPY. Thread: any. */
void trli_trace_add_device(trl_trace *trace, int device, int stream, trli_trace_kind kind, const char *name,
                           int64_t begin_ns, int64_t end_ns);
/* Add a whole run, with the graph's name. Thread: any. */
void trli_trace_add_run(trl_trace *trace, const char *name, int64_t begin_ns, int64_t end_ns);

#endif
