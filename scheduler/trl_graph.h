/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Task graphs: built once, frozen, run many times on the workers of a context; running tasks may create more. Knows no
 * PDE. docs/scheduler.md is the guide. */
#ifndef TRL_GRAPH_H
#define TRL_GRAPH_H

#include <stdio.h>

#include <trl_context.h>
#include <trl_device.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct trl_graph trl_graph;
typedef struct trl_workers trl_workers;
typedef struct trl_trace trl_trace;
typedef struct trl_run trl_run; /* a run in progress, as its tasks see it */

/* Names of things in a graph. Each knows its graph: that of another one is refused. */
typedef int64_t trl_task;
typedef int64_t trl_handle;
typedef int64_t trl_resource;
/* Something that fires once in a run, when its count comes to zero. 0 is no event. */
typedef int64_t trl_event;

/* What a task function gets. */
typedef struct trl_task_args {
    int chunk, chunks; /* this call's share of a wide task: 0 <= chunk < chunks */
    int worker;        /* index for thread scratch: 0 <= worker < number of workers, devices behind them */
    int space;         /* where the data is: 0 in the host's memory, or in a device's */
    void *stream;      /* of a GPU, to enqueue on: what its backend takes; else NULL */
    bool alone;        /* of a device: in this run workers have no task that devices may run */
    bool failed;       /* an error was recorded in this run: only TRL_TASK_ALWAYS tasks are still called */
    void *frame;       /* the frame given to trl_graph_run: all state that the run changes is reached through it */
    trl_run *run;      /* for trl_run_* below, while the function runs */
} trl_task_args;

/* Does the work and sets *done (true on entry). A TRL_TASK_POLL task may set *done = false: it is called again
 * later, and no worker waits for it. A poll task that was called once is called until it is done, even after another
 * task failed. Any error completes the task and stops the run's other work; trl_graph_run returns the first error. */
typedef trl_err (*trl_task_fn)(void *data, const trl_task_args *args, bool *done);

enum {
    /* May ask to be called again (communication). Every rank adds them in an order in which none waits, on any rank,
     * for one that was added later: tasks are joined in ways that keep to it. */
    TRL_TASK_POLL = 1,
    /* Is called after an error too, once what it waits for is complete, so that no other rank waits for it. */
    TRL_TASK_ALWAYS = 2,
    /* Complete only when all tasks that it creates, directly or through others, are complete: its successors wait
     * for them too. Those tasks belong to no later phase. */
    TRL_TASK_SCOPE = 4,
    /* A wide task that may be called once for all its chunks, as chunk 0 of 1, when a single worker runs it and no poll
     * task waits. */
    TRL_TASK_WHOLE = 8,
    /* Little work that waits for other devices: a GPU that is one of several does it beside its other tasks. */
    TRL_TASK_URGENT = 16,
    /* What a GPU enqueues for it differs from run to run, or is more than kernels: it is not kept for later runs. */
    TRL_TASK_VARIES = 32,
};

enum { TRL_TASK_TYPES = 256 };

/* Kinds of executor: the workers of the pools, and devices. A mock device runs functions of the host in an address
 * space of its own. */
typedef enum trl_kind { TRL_KIND_CPU, TRL_KIND_GPU, TRL_KIND_MOCK, TRL_KINDS } trl_kind;

/* One way to do a task, by executors of one kind. */
typedef struct trl_variant {
    trl_task_fn run; /* NULL: there is none */
} trl_variant;

typedef struct trl_task_desc {
    const char *name;               /* copied */
    trl_variant variant[TRL_KINDS]; /* by kind of executor; a variant for workers is required */
    void *data;                     /* not owned */
    int chunks;                     /* 1: narrow; more: a wide task, whose chunks may run at once on several workers */
    unsigned flags;
    double cost;     /* estimated seconds or any consistent unit; 0: unknown */
    int type;        /* 0 <= type < TRL_TASK_TYPES: selects the phase, and tells tasks apart in traces */
    int priority;    /* -1, 0, 1: behind, among or before all others, whatever the critical path says */
    int64_t signals; /* trl_run_signal_task calls it waits for in each run, beside its predecessors */
} trl_task_desc;

/* What a task does with a piece of data. WRITE_PART: one of disjoint parts is written. ADD: something is added to it,
 * by means that allow others to do so at once. */
typedef enum trl_access {
    TRL_READ,
    TRL_WRITE, /* what was there before does not matter */
    TRL_READ_WRITE,
    TRL_WRITE_PART,
    TRL_ADD
} trl_access;

TRL_API TRL_NODISCARD trl_err trl_graph_create(trl_context *ctx, const char *name, trl_graph **graph);
/* Reserve memory for that many more tasks and dependencies (those of accesses included), so that adding them copies
 * nothing. Optional: a graph may grow beyond it. */
TRL_API TRL_NODISCARD trl_err trl_graph_reserve(trl_graph *graph, int64_t tasks, int64_t dependencies);
TRL_API void trl_graph_destroy(trl_graph **graph);

/* ---- before freeze. All fail with USAGE: frozen graph, foreign or unknown task, handle or resource, bad value. ----
 */

/* Tasks are added in a valid serial order when accesses are used. */
TRL_API TRL_NODISCARD trl_err trl_graph_add_task(trl_graph *graph, const trl_task_desc *desc, trl_task *task);
TRL_API TRL_NODISCARD trl_err trl_graph_add_dependency(trl_graph *graph, trl_task before, trl_task after);

/* A call: a task that runs a frozen graph, its body, once or until a function says that it is enough, by the workers of
 * the run that it is in. It has dependencies, accesses (to all that the body touches) and locks as other tasks have:
 * what comes before it is complete before a task of the body starts, what comes after it waits for the last round, and
 * what it locks is locked in between. Tasks of the body are tasks of the run, named "call/task", in a frame of the
 * call's own, so one body may be in several calls at once. Bodies may have calls, to any depth. A round ends when all
 * tasks of the body, and what they have spawned, are complete. For trl_run_* functions these tasks name tasks, handles
 * and resources of the body, and of graphs around it. */
typedef struct trl_call_desc {
    const char *name; /* copied */
    trl_graph *body;  /* frozen, without phases, of the same context; lives as long as the graph */
    void *data;       /* of the functions, not owned */
    /* OPTIONAL. Called once, before the first round: sets *frame, the body's, which is at first that of the call
     * (args->frame), and what the rounds begin with. Called after an error, too (args->failed), as tasks of the body
     * may be. Must not spawn. */
    trl_err (*begin)(void *data, const trl_task_args *args, void **frame);
    /* Called after each round, of which there were `round`: whether another one follows (*again: false on entry).
     * args->frame is the body's. Not called after an error, which ends the call, unless `flags` has TRL_TASK_ALWAYS:
     * then it decides all the same, also where it returns an error, so that where bodies communicate all ranks leave
     * after the same round (by a number that all of them have). Must not spawn. NULL: one round. */
    trl_err (*again)(void *data, const trl_task_args *args, int64_t round, bool *again);
    /* OPTIONAL. Why this call and another one with the same function may not go on at once; NULL: they may. Freeze asks
     * for all calls, those of bodies included, that no dependencies put in order, and fails with USAGE. other: the
     * other one's data; siblings: they are in one graph or body, so the frames around them are one. */
    const char *(*apart)(const void *data, const void *other, bool siblings);
    int64_t rounds;     /* if `again` wants more, the run fails with NUMERICS */
    unsigned flags;     /* 0 or TRL_TASK_ALWAYS */
    bool in_frame;      /* `begin` leaves the frame as it is: devices may do tasks of the body */
    int type, priority; /* as of a task; those of the body's tasks are their own, but they are in the call's phase */
} trl_call_desc;
/* Devices may do tasks of a graph that has calls and a memory (trl_graph_set_memory), if the accesses of its calls say
 * all that their bodies do with data, by the keys of the handles, in the frame of the graph; else running it on workers
 * with devices is a USAGE error, as it is if a body has a memory and the graph has none. They may do tasks of a body,
 * too, that has the same memory as the graph and runs in its frame (no `begin`, or `in_frame`), if the call writes no
 * part of data and adds to none (TRL_WRITE_PART, TRL_ADD). Then the functions of the call find data where its last
 * writer left it, and where they exchange some, of what the call writes, they exchange it in all memories, with the
 * words that say where it is valid (trl_graph_memory.valid). Workers do other bodies, on the host. */
TRL_API TRL_NODISCARD trl_err trl_graph_add_call(trl_graph *graph, const trl_call_desc *desc, trl_task *task);

/* A data handle stands for a piece of data. add_access derives the dependencies of sequential consistency in the order
 * in which accesses are added: a reader after the last writer, a writer after the last writer and all readers since.
 * Tasks that write parts, or that add, come in any order, and at once, until another access comes between them.
 * Data of several fields may have its turns in the same memory, where each may lie in other places: then accesses tell
 * which of them they mean. A task has one at a time, and who writes one needs nothing of what another left.
 * Accesses are kept when the graph is frozen, for policies (trl_policy.h). */
typedef struct trl_handle_desc {
    const char *name; /* copied */
    size_t bytes;     /* of the data; 0: unknown */
    int64_t block;    /* whose memory it is, a number of the caller's: pieces of one block lie together */
    int64_t key;      /* the caller's number for it, for trl_graph_memory */
} trl_handle_desc;
TRL_API TRL_NODISCARD trl_err trl_graph_add_handle(trl_graph *graph, const trl_handle_desc *desc, trl_handle *handle);
TRL_API TRL_NODISCARD trl_err trl_graph_add_access(trl_graph *graph, trl_task task, trl_handle handle,
                                                   trl_access access);
/* The same, with the caller's number of the data in the memory, for trl_graph_memory; trl_graph_add_access gives 0. */
TRL_API TRL_NODISCARD trl_err trl_graph_add_part_access(trl_graph *graph, trl_task task, trl_handle handle,
                                                        trl_access access, int32_t part);

/* Between two runs the caller exchanges data of handles, as where time levels rotate: what handles[i] has after a run,
 * handles[i + 1] has before the next one, and handles[0] what the last of them had. By this it is known which data the
 * next run finds where. A handle is in one rotation at most. */
TRL_API TRL_NODISCARD trl_err trl_graph_rotate(trl_graph *graph, int n, const trl_handle *handles);

/* Where the data of handles lies, in a frame and in the memory of the host (space 0) or of a device. A graph needs
 * this if devices may run its tasks: data is copied to where it is read. */
typedef struct trl_memory_box {
    void *at;
    size_t row;                         /* bytes */
    int64_t rows, planes;               /* a box: planes of rows */
    ptrdiff_t row_stride, plane_stride; /* bytes from one to the next */
} trl_memory_box;
enum { TRL_MEMORY_BOXES = 8 };
typedef struct trl_graph_memory {
    void *data; /* for the functions, not owned */
    /* Allocate memory for a handle's data in a space; its content does not matter. Space 0: the host has it, and each
     * run copies it to or from a device, so it should be memory that is fast to copy. Fails with MEMORY. Thread: the
     * caller of trl_graph_run; for what a call writes, between its rounds and after them, a worker, one at a time. */
    trl_err (*provide)(void *data, void *frame, int64_t key, int space);
    /* A part of a handle's data in a space, the same pieces in each space; returns how many. Thread: any. */
    int (*locate)(void *data, void *frame, int64_t key, int32_t part, int space,
                  trl_memory_box piece[TRL_MEMORY_BOXES]);
    /* The spaces in which the data is valid, a bit 1 << space each: read and written by runs, one at a time, and, of
     * what a call writes, by its rounds. */
    uint32_t *(*valid)(void *data, void *frame, int64_t key);
} trl_graph_memory;
/* Copied. Before the first run. */
TRL_API TRL_NODISCARD trl_err trl_graph_set_memory(trl_graph *graph, const trl_graph_memory *memory);

/* A resource stands for something that two tasks may not work on at the same time, whichever comes first (a
 * conflict). Resources form a forest: locking one excludes locks and uses of itself, of all its ancestors and of all
 * its descendants. */
#define TRL_NO_PARENT ((trl_resource)-1)
typedef struct trl_resource_desc {
    const char *name;    /* copied */
    trl_resource parent; /* or TRL_NO_PARENT */
    const void
        *data; /* memory it stands for, or NULL: inside the parent's, apart from its siblings' (checked by freeze) */
    size_t bytes;
} trl_resource_desc;
TRL_API TRL_NODISCARD trl_err trl_graph_add_resource(trl_graph *graph, const trl_resource_desc *desc,
                                                     trl_resource *resource);
/* The task runs with the resource locked (no other task has it) or used (other tasks may use it, none locks it). A
 * task gets all its resources at once or waits holding none, so no order of locks can deadlock. A resource that is
 * requested twice, or together with an ancestor, counts as one request that covers both. */
TRL_API TRL_NODISCARD trl_err trl_graph_add_lock(trl_graph *graph, trl_task task, trl_resource resource);
TRL_API TRL_NODISCARD trl_err trl_graph_add_use(trl_graph *graph, trl_task task, trl_resource resource);

/* Phases do not overlap: the tasks with first_type <= type < end_type start when it is the phase's turn. When all
 * existing tasks of the phase are complete, it is the turn of the next phase that has tasks, round and round. Types
 * outside of all phases start at any time. Ranges of phases do not overlap. A task that waits for a task of a later
 * phase is an INPUT error of freeze. */
TRL_API TRL_NODISCARD trl_err trl_graph_add_phase(trl_graph *graph, const char *name, int first_type, int end_type);

/* Check (a cycle is an INPUT error that names the tasks on its path) and flatten; repeated dependencies count once.
 * Linear in tasks and dependencies. Once per graph; after a failure the graph can only be destroyed. Thread: main. */
TRL_API TRL_NODISCARD trl_err trl_graph_freeze(trl_graph *graph);

/* ---- the workers ---- */

/* The workers of a context: one pinned thread per core of the rank's share, a caller of trl_graph_run being worker 0.
 * policy: a built-in one (trl_policy.h lists them) or "FILE.so", a policy plugin. Unknown names are an INPUT error that
 * lists the known ones. count: 1 for serial, else the threads of the context; policy: the name given. Create and
 * destroy on the thread that runs graphs: it is pinned in between. */
TRL_API TRL_NODISCARD trl_err trl_workers_create(trl_context *ctx, const char *policy, trl_workers **workers);
TRL_API void trl_workers_destroy(trl_workers **workers);
TRL_API int trl_workers_count(const trl_workers *workers);
/* Whether the policy places tasks on devices. */
TRL_API bool trl_workers_places(const trl_workers *workers);
/* Number of workers and devices; args->worker of a task is below it. */
TRL_API int trl_workers_lanes(const trl_workers *workers);
TRL_API const trl_devices *trl_workers_devices(const trl_workers *workers); /* NULL: none */
TRL_API const char *trl_workers_policy(const trl_workers *workers);
/* The policy that runs: the one given, unless TRL_POLICY_LIST has another one in its place. */
TRL_API const char *trl_workers_running_policy(const trl_workers *workers);
/* Deal the workers to the pools: the first `tasks` prefer tasks, the other `operators` chunks of wide tasks. A worker
 * whose own pool is empty takes from the other. 0, 0: adapt to tau_1, tau_inf and what the pools lacked, run by run.
 * Their sum is the count of workers, else USAGE. Not during a run. */
TRL_API TRL_NODISCARD trl_err trl_workers_set_pools(trl_workers *workers, int tasks, int operators);
TRL_API void trl_workers_get_pools(const trl_workers *workers, int *tasks, int *operators);

/* Let each graph find out, in its first runs and now and then, with how many of the workers it runs fastest: the
 * other workers sleep, and the caller is not pinned meanwhile. Off at first. Not during a run. */
TRL_API void trl_workers_set_adaptive(trl_workers *workers, bool on);

/* Let devices run tasks, too, of graphs that have a memory (trl_graph_set_memory); NULL: no devices. The devices
 * outlive the workers. Not during a run. */
TRL_API TRL_NODISCARD trl_err trl_workers_set_devices(trl_workers *workers, const trl_devices *devices);
/* Wait for devices: a run whose tasks all run on devices may return before they are done; their errors are returned
 * by a later run. Fails with DEVICE. */
TRL_API TRL_NODISCARD trl_err trl_workers_finish(trl_workers *workers);
/* Whether there are such runs. */
TRL_API bool trl_workers_pending(const trl_workers *workers);
/* How graphs are placed on workers and devices from their first run on: "auto" or "finish_time", "round_robin",
 * "min_load" (docs/hybrid.md); "devices": every task that devices can run; "random:SEED", for tests. Not during a
 * run. Fails with INPUT. */
TRL_API TRL_NODISCARD trl_err trl_workers_set_placement(trl_workers *workers, const char *placement);
/* Whether a text is one of those. */
TRL_API bool trl_placement_is_known(const char *text);
/* Whether data is copied as soon as it can be (prefetch: so it is at first), or only when all else that the first task
 * to read the copy waits for is complete: to measure what prefetch saves. Graphs with phases or signals always copy as
 * soon as they can: a late copy could wait there for one of its own readers. From the first run of a graph on. Not
 * during a run. */
TRL_API TRL_NODISCARD trl_err trl_workers_set_prefetch(trl_workers *workers, bool on);
/* Place the tasks of the graphs of a name as a file of trl_graph_write_placement_file says; other graphs: auto. The
 * path (for messages), the file's text and the name must live as long as the workers. Fails with USAGE. Preparing
 * such a graph fails with INPUT if the file does not fit it, giving the line and what to do. Not during a run. */
TRL_API TRL_NODISCARD trl_err trl_workers_set_placement_file(trl_workers *workers, const char *path, const char *text,
                                                             const char *graph);

/* Allocate what a run of the graph with these workers needs; else the first run does. */
TRL_API TRL_NODISCARD trl_err trl_graph_prepare(trl_graph *graph, trl_workers *workers);
/* Run a frozen graph to the end in a frame: every task once. The frame is the caller's, or NULL. Tasks get it and
 * change nothing that is not reached through it, so a graph may be in several runs at once, each in a frame of its
 * own. Allocates nothing after the first run with these workers, unless there are more runs at once, or more spawned
 * tasks, than before. Collective only as far as its tasks communicate. Thread: any that is not in a task; up to 16
 * runs may be in progress on the same workers. Returns the first error of a task (the graph may then be run again);
 * INTERRUPTED if cancelled; USAGE if the graph is already running in this frame, or if nothing can run while tasks
 * are left, with a list of what waits for what. */
TRL_API TRL_NODISCARD trl_err trl_graph_run(trl_graph *graph, trl_workers *workers, void *frame);
/* Run it as after an error: only TRL_TASK_ALWAYS tasks are called, so that other ranks, which run it, get their
 * messages. */
TRL_API TRL_NODISCARD trl_err trl_graph_drain(trl_graph *graph, trl_workers *workers, void *frame);
/* Cancel the runs in progress, if any: only TRL_TASK_ALWAYS tasks still start. Thread: any, also a task. */
TRL_API void trl_graph_cancel(trl_graph *graph);
/* Name of the task whose error ended the last run; NULL: no task failed. Valid until the next run. */
TRL_API const char *trl_graph_failed_task(const trl_graph *graph);
/* Times of the graph's tasks have changed: forget what was measured on devices and workers, and place the tasks
 * anew. Nothing without devices. Not during a run. */
TRL_API void trl_graph_forget_times(trl_graph *graph);
/* Placed by times, a graph runs where the leader's first task did, and is not timed: it works on what that left there,
 * and copies would take longer than either executor gains. Nothing where tasks are placed otherwise, or by a
 * method or policy of the user's choice. NULL: no longer. The leader outlives the graph's runs. Not during a run. */
TRL_API void trl_graph_follow(trl_graph *graph, trl_graph *leader);
/* Set a new estimate, from the next run on. Thread: one that may run the graph. */
TRL_API TRL_NODISCARD trl_err trl_graph_set_cost(trl_graph *graph, trl_task task, double cost);
/* Bytes that a task moves and flops that it does: they estimate its time on a device before it is timed. */
TRL_API TRL_NODISCARD trl_err trl_graph_set_work(trl_graph *graph, trl_task task, double bytes, double flops);

/* ---- inside a task function: dynamic work. Thread: any worker, with args->run. ---- */

typedef struct trl_spawn_access {
    trl_handle handle; /* of the graph */
    trl_access access;
} trl_spawn_access;

typedef struct trl_spawn_desc {
    const char *name;               /* not copied: lives at least as long as the run */
    trl_variant variant[TRL_KINDS]; /* workers do spawned tasks; variants for devices are not used */
    void *data;                     /* not owned */
    unsigned flags;                 /* as in trl_task_desc; spawned tasks are narrow */
    int type, priority;
    int nwaits; /* starts when these events have fired */
    const trl_event *waits;
    trl_event signals; /* counted down by one when the task is complete; 0: none */
    int nlocks, nuses; /* resources of the graph */
    const trl_resource *locks, *uses;
    /* The data that the task touches, for policies; dependencies are given by `waits` alone. In a graph that has a
     * memory (trl_graph_set_memory) the task is in the scope of a task of the graph (TRL_TASK_SCOPE) that does the same
     * with this data, or writes it. Not copied: lives until the task is complete. */
    int naccesses;
    const trl_spawn_access *accesses;
} trl_spawn_desc;

/* Create a task in the run. done: NULL, or receives the event of its completion, for others to wait for. The run ends
 * when all tasks, spawned ones included, are complete. Fails with MEMORY or USAGE. */
TRL_API TRL_NODISCARD trl_err trl_run_spawn(trl_run *run, const trl_spawn_desc *desc, trl_event *done);
/* Create an event that fires after `count` > 0 signals, so that tasks can wait for tasks that are created later. */
TRL_API TRL_NODISCARD trl_err trl_run_create_event(trl_run *run, int64_t count, trl_event *event);
/* Count an event down by n; at zero the tasks that wait for it start. More signals than the event's count are a
 * USAGE error. */
TRL_API TRL_NODISCARD trl_err trl_run_signal(trl_run *run, trl_event event, int64_t n);
/* Count down the `signals` of a task of the graph. */
TRL_API TRL_NODISCARD trl_err trl_run_signal_task(trl_run *run, trl_task task, int64_t n);

/* From a poll task when what it waited for is there: when that was sent, in ns of CLOCK_MONOTONIC of this machine; 0 if
 * it is not known. A worker that had nothing else to do waited for the sender until then, for the message since. Any
 * thread that runs a task. */
TRL_API void trl_run_note_sent(trl_run *run, int64_t sent_ns);

/* ---- statistics ---- */

typedef struct trl_graph_stats {
    int64_t tasks, dependencies, runs;
    int64_t spawned;  /* tasks created in all runs */
    int64_t repeated; /* tasks done again, in rounds of calls after the first, in all runs */
    double tau_1;     /* sum of the tasks' mean times, s; before the first timed run: of costs (all unknown: 1 each) */
    double tau_inf;   /* longest path, s; the chunks of a wide task count as running at once */
    double outstanding; /* s in all runs with poll tasks (communication) started and not complete */
    double idle;        /* s of that time in which workers had nothing else to do, mean over those that took part, */
    double late;        /* but for this: s in which they waited for a message before it was sent (trl_run_note_sent) */
    double busy; /* part of the workers' time that was spent in tasks, mean over timed runs; 0 before the first */
    int active;  /* workers that take part in the next run; 0: there was none */
    double overhead_ns; /* mean over timed runs of (wall time - time in tasks / workers) / tasks */
} trl_graph_stats;
/* Time every task of following runs (two clock reads per task; of a poll task the last call). Off at first: then the
 * workers time the first runs and now and then one more, for priorities. */
TRL_API void trl_graph_set_timing(trl_graph *graph, bool on);
TRL_API void trl_graph_get_stats(const trl_graph *graph, trl_graph_stats *stats);
/* How a graph was placed last. */
enum { TRL_EXECUTORS_MAX = TRL_DEVICES_MAX + 1 };
typedef enum trl_way { TRL_WAY_IN, TRL_WAY_OUT, TRL_WAY_ACROSS, TRL_WAYS } trl_way; /* to a device, back, between two */
typedef struct trl_placement_stats {
    int executors;                    /* the workers, and devices; 0: the graph has not been placed */
    int64_t tasks[TRL_EXECUTORS_MAX]; /* of each executor */
    double busy[TRL_EXECUTORS_MAX];   /* s of a run, predicted from measured times */
    int64_t regions, transfers;       /* of a run that follows equal ones */
    int64_t transfer_bytes;           /* planned for those transfers */
    int64_t chains;                   /* paths of tasks of one device */
    size_t planned[TRL_EXECUTORS_MAX],
        peak[TRL_EXECUTORS_MAX]; /* bytes of each device: planned for the graph; the most held so far */
    const char *by; /* times, trials (times are being taken), "one executor", "another graph", file, devices, random */
    bool timed;     /* by measured times */
    int single;     /* the executor that runs all tasks that it can, because that was faster; -1: none */
    /* Of timed runs with devices: the part of the copies' time in which devices computed, and the mean time in s
     * from the end of a copy to the first call that reads it. Negative: nothing was copied. */
    double overlap, lead;
    double predicted, measured; /* s of a run: predicted from measured times, and the least measured; 0: unknown */
    double
        on_devices; /* the least s from the begin of a timed run to the last end of a call or copy of a device, by the
                          clocks of devices, whose clocks may be virtual; 0: unknown */
    int64_t copies[TRL_WAYS], bytes[TRL_WAYS]; /* made in all runs */
    int64_t done[TRL_EXECUTORS_MAX];           /* tasks of each executor in all runs */
} trl_placement_stats;
TRL_API void trl_graph_get_placement(const trl_graph *graph, trl_placement_stats *stats);
/* Where these workers and their devices run a graph's tasks, and why, as lines of text: executors, tasks with times
 * by executor and predicted start and end, transfers. From measured times if all tasks were timed, else from
 * estimates (trl_graph_set_cost, trl_graph_set_work). Not during a run. Fails with INPUT, MEMORY, IO. */
TRL_API TRL_NODISCARD trl_err trl_graph_write_placement(trl_graph *graph, const trl_workers *workers, FILE *out);
/* The same placement as a file for trl_workers_set_placement_file: the lines of this rank. Fails in the same way. */
TRL_API TRL_NODISCARD trl_err trl_graph_write_placement_file(trl_graph *graph, const trl_workers *workers, FILE *out);

/* Mean time in s of a task of a frozen graph on executors of a kind in timed runs, all its chunks, and all rounds of a
 * call around it, together; 0: not timed, or not a task of this graph. Not during a run. */
TRL_API double trl_graph_task_seconds(const trl_graph *graph, trl_task task, trl_kind kind);
/* Amdahl score (1 - 1/S_inf)/(1 - 1/n) with S_inf = tau_1/tau_inf, n workers, at most 1 (Robison 2014, sec. 3.5).
 * 0 for n = 1. */
TRL_API double trl_amdahl_score(double tau_1, double tau_inf, int n);

/* Graphviz text of the task graph, edges producer -> consumer, with measured times and the critical path in bold. Fails
 * with IO. */
TRL_API TRL_NODISCARD trl_err trl_graph_write_dot(const trl_graph *graph, FILE *out);
/* The same as lines of text: one task a line, in topological order, `*` on the critical path. Fails with IO. */
TRL_API TRL_NODISCARD trl_err trl_graph_write_text(const trl_graph *graph, FILE *out);

/* A trace records what each worker does: tasks, waits for locks, idleness. It keeps the first `events` of each worker;
 * later ones are counted, not kept. */
TRL_API TRL_NODISCARD trl_err trl_trace_create(trl_context *ctx, int workers, int64_t events, trl_trace **trace);
TRL_API void trl_trace_destroy(trl_trace **trace);
/* Record following runs of these workers; NULL: stop. Not during a run. The trace needs as many workers. */
TRL_API TRL_NODISCARD trl_err trl_workers_set_trace(trl_workers *workers, trl_trace *trace);
/* As JSON for Perfetto or chrome://tracing (Trace Event Format), the rank as process, the worker as thread, times in us
 * since the trace was created; one event a line, the first and last line frame them. Collective: no. Fails with IO. */
TRL_API TRL_NODISCARD trl_err trl_trace_write(const trl_trace *trace, FILE *out);

#ifdef __cplusplus
}
#endif
#endif
