/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* A mock device: threads that do the work of streams, memory that the host must not touch, and settings. */
#ifndef TRLI_MOCK_IMPL_H
#define TRLI_MOCK_IMPL_H

#include <pthread.h>

#include "executor_impl.h"

/* X(name, unit, default, description). Numbers of TRL_MOCK_DEVICES; seconds and bytes may have a prefix. */
#define TRLI_MOCK_LIST(X)                                                             \
    X(speed, NUMBER, 1, "how many times as fast as a worker it does calls")           \
    X(launch, SECONDS, 0, "what each call takes beside its work")                     \
    X(latency, SECONDS, 0, "what each copy takes beside its bytes")                   \
    X(rate, BYTES, 0, "bytes that a stream copies in a second; 0: as fast as it can") \
    X(bytes, BYTES, 0, "memory; 0: as much as the host has")                          \
    X(seed, NUMBER, 1, "of faults by chance")

/* X(name, description). Operations that may be made to fail, `fail=NAME@N` or `fail=NAME~P`. */
#define TRLI_MOCK_FAULT_LIST(X)      \
    X(call, "a call fails")          \
    X(copy, "a copy fails")          \
    X(memory, "an allocation fails") \
    X(lost, "the device is lost at a call or a copy")

typedef enum trli_mock_fault {
#define TRLI_MOCK_FAULT_ENUM(name, doc) TRLI_MOCK_##name,
    TRLI_MOCK_FAULT_LIST(TRLI_MOCK_FAULT_ENUM)
#undef TRLI_MOCK_FAULT_ENUM
        TRLI_MOCK_FAULTS
} trli_mock_fault;

typedef struct trli_mock_settings {
#define TRLI_MOCK_MEMBER(name, unit, value, doc) double name;
    TRLI_MOCK_LIST(TRLI_MOCK_MEMBER)
#undef TRLI_MOCK_MEMBER
    bool is_virtual; /* the clock */
    struct {
        int64_t at;    /* the at-th of the kind fails, from 1; 0: none */
        double chance; /* each fails with this probability, from 0 to 1 */
    } fail[TRLI_MOCK_FAULTS];
} trli_mock_settings;

/* ---- mock_settings.c ---- */

/* Read "speed=4,latency=10us". Fails with INPUT. */
TRL_NODISCARD trl_err trli_mock_read(trl_context *ctx, const char *text, trli_mock_settings *settings);
/* The settings as text for users: NUL-terminated, cut if there is no room. */
void trli_mock_describe(const trli_mock_settings *settings, char *text, size_t size);

/* ---- mock_memory.c ---- */

typedef struct trli_mock_memory {
    pthread_mutex_t lock;
    struct trli_mock_block *block; /* ascending addresses */
    int64_t count;
    int32_t capacity;
} trli_mock_memory;

typedef struct trli_mock trli_mock;

/* The functions of trli_device_ops; this `allocate` ignores faults and loss of the device. */
TRL_NODISCARD trl_err trli_mock_allocate(trli_mock *mock, size_t bytes, void **memory);
void trli_mock_release(trl_device *device, void *memory);
void trli_mock_release_all(trli_mock *mock);
/* Check that both ends of a copy lie in the right memory: DEVICE, with a message, if not. */
TRL_NODISCARD trl_err trli_mock_check_copy(trli_mock *mock, const trli_box_copy *copy);

/* ---- mock_stream.c ---- */

/* The last time that a fence was passed. */
typedef struct trli_mock_pass {
    uint64_t number; /* number of times that it was set and passed */
    double time;     /* seconds of the device's clock */
} trli_mock_pass;

struct trli_fence {
    bool is_virtual;        /* the clock of its device is virtual */
    _Atomic int references; /* references by its owner and by commands */
    _Atomic uint64_t sets;
    _Atomic uint64_t passes; /* as in `pass`, for readers without the lock */
    pthread_mutex_t lock;    /* guards the following members */
    pthread_cond_t passed;
    trli_mock_pass pass;
};

typedef enum trli_mock_command_kind {
    TRLI_MOCK_DO_CALL,
    TRLI_MOCK_DO_COPY,
    TRLI_MOCK_DO_SET,
    TRLI_MOCK_DO_WAIT
} trli_mock_command_kind;

typedef struct trli_mock_command {
    trli_mock_command_kind kind;
    bool fails, loses;     /* the device is to fail here */
    int64_t number, total; /* number among the calls, or among the copies, of the device; among both */
    double given;          /* host's clock when it was issued */
    uint32_t asker;        /* of its messages */
    trli_ticket ticket;    /* of a call or a copy */
    union {
        struct {
            trl_task_fn run;
            void *data;
            trl_task_args args;
        } call;
        trli_box_copy copy;
        struct {
            trli_fence *fence;
            uint64_t set; /* which of them */
        } fence;
    };
} trli_mock_command;

typedef struct trli_mock_stream {
    trli_mock *mock;
    pthread_t thread;
    bool started;
    pthread_mutex_t lock; /* guards the following members, except those that only the thread uses */
    pthread_cond_t given, idle;
    trli_mock_command *ring; /* command i at i % capacity; capacity is a power of 2 */
    uint64_t capacity, head, tail;
    bool busy, stopping;
    double time; /* of the thread: the device's clock at the end of the last command */
} trli_mock_stream;

struct trli_mock {
    trl_device device;
    int number;
    char name[32];
    trli_mock_settings settings;
    trli_mock_memory memory;
    _Atomic int64_t given[TRLI_MOCK_FAULTS]; /* count of each kind; of `lost`, calls and copies */
    _Atomic bool damaged;                    /* the host wrote beyond an allocation, or released memory that is none */
    trli_mock_stream stream[TRLI_STREAMS];
};

TRL_NODISCARD trl_err trli_mock_stream_start(trli_mock *mock, trli_stream which);
/* Give a command to a stream. Fails with MEMORY. */
TRL_NODISCARD trl_err trli_mock_give(trli_mock *mock, trli_stream which, const trli_mock_command *command);
/* Wait until a stream is idle. */
void trli_mock_stream_finish(trli_mock_stream *stream);
/* Do the remaining commands and end the thread. */
void trli_mock_stream_stop(trli_mock_stream *stream);
void trli_mock_fence_drop(trli_fence *fence);

#endif
