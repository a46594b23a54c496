/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The loop of a worker inside a run: take a task, call it, release its successors, and wait if there is nothing to
 * take. A sleeping worker holds no task, and a worker that holds tasks runs them: no task depends on a wake-up,
 * which only adds workers. The end of a run is the only event that all workers wait for; it is announced under the
 * sleepers' lock. */
#include "ahead_impl.h"
#include "engine_impl.h"
#include "trace_impl.h"

enum { SPINS = 1000 /* times that an idle worker looks for work before it sleeps */ };

/* ---- readiness ---- */

void trli_hand_over(trli_run_state *run, trli_worker *worker, int32_t task)
{
    run->policy->ready(run->policy_state, worker->index, task, trli_record(run, task)->urgency);
    if (run->by_caller || ++worker->pushed < run->wake_after) return;
    trli_workers_wake_one(worker->workers);
}

void trli_ready(trli_run_state *run, trli_worker *worker, int32_t task)
{
    if (trli_record(run, task)->flags & TRLI_TASK_PHASED && !trli_phase_admits(run, task)) return;
    trli_hand_over(run, worker, task);
}

/* Whether a task's last predecessor, or signal, has arrived. Releases what this worker wrote for the task; the last
 * arrival acquires what the others wrote. The count is reset for the next run: nothing else arrives in this run. */
static bool arrive(trli_run_state *run, int32_t task, int32_t n)
{
    trli_join *join = &run->join[task];
    if (join->all == n) return true;
    if (atomic_fetch_sub_explicit(&join->missing, n, memory_order_acq_rel) > n) return false;
    atomic_store_explicit(&join->missing, join->all, memory_order_relaxed);
    return true;
}

void trli_arrive(trli_run_state *run, trli_worker *worker, int32_t task, int32_t n)
{
    if (arrive(run, task, n)) trli_ready(run, worker, task);
}

/* The first successor that becomes ready is the most urgent one and runs next, unless the policy is to choose: what the
 * task wrote is in this core's cache. */
static void release_successors(trli_run_state *run, trli_worker *worker, const trli_task_record *record, bool next)
{
    const int32_t *successors = run->graph->successors;
    for (int32_t i = record->first; i < record->end; ++i) {
        int32_t after = successors[i];
        if (!arrive(run, after, 1)) continue;
        if (trli_graph_records(run->graph)[after].flags & TRLI_TASK_PHASED && !trli_phase_admits(run, after)) continue;
        if (next && worker->next == TRLI_NONE)
            worker->next = after;
        else
            trli_hand_over(run, worker, after);
    }
}

void trli_finish(trli_run_state *run, trli_worker *worker, int32_t task)
{
    const trli_task_record *record = trli_record(run, task);
    int type = record->type;
    bool phased = record->flags & TRLI_TASK_PHASED;
    if (run->policy->completed) run->policy->completed(run->policy_state, worker->index, task);
    ++worker->completed;
    bool next = run->policy->run_next;
    if (record->flags & TRLI_TASK_END) {
        const int32_t from = trli_call_continue(run, worker, task);
        phased = phased && from == task;
        if (from != task) next = next && !run->policy->holds(run->policy_state); /* others have a turn between rounds */
        record = trli_record(run, from);
    }
    if (task < run->view.tasks)
        release_successors(run, worker, record, next);
    else
        trli_node_complete(run, worker, task);
    if (phased) trli_phase_leave(run, worker, type); /* last: the task's successors are counted already */
}

void trli_complete(trli_run_state *run, trli_worker *worker, int32_t task)
{
    if ((trli_record(run, task)->flags & (TRLI_TASK_WANTS | TRLI_TASK_CALL)) == TRLI_TASK_WANTS) {
        const trli_want *want;
        int32_t n = trli_wants(run, task, &want);
        trli_locks_release(run, worker, n, want);
    }
    if (trli_is_scoped(run, task))
        trli_scope_leave(run, worker, task);
    else
        trli_finish(run, worker, task);
}

static bool follows(const trl_graph *graph, int32_t task, int32_t before)
{
    const trli_task_record *record = &trli_graph_records(graph)[before];
    for (int32_t i = record->first; i < record->end; ++i)
        if (graph->successors[i] == task) return true;
    return false;
}

/* Acquire: what those that arrived have written. The present task is not complete, and so none of the others is. */
bool trli_run_may_do(const trl_run *here, int n, const trl_task *tasks)
{
    const trli_run_state *run = here->run;
    if (run->placed || n == 0) return n == 0 && !run->placed;
    const trli_call *call = trli_call_named(run, here->task, tasks[0]);
    const int32_t base = call ? call->first : 0;
    for (int i = 0; i < n; ++i) {
        const int32_t task = base + (int32_t)(tasks[i] & INT32_MAX);
        int32_t awaited = 1;
        if (!follows(run->graph, task, here->task)) return false;
        for (int k = 0; k < n; ++k) awaited += follows(run->graph, task, base + (int32_t)(tasks[k] & INT32_MAX));
        if (atomic_load_explicit(&run->join[task].missing, memory_order_acquire) != awaited) return false;
    }
    return true;
}

/* ---- execution ---- */

/* End the timing of a task: its time is traced and, if the task is done, averaged (a task that asked for more was
 * waiting). */
static void note_time(trli_run_state *run, const trli_worker *worker, int32_t task, int64_t start, bool done)
{
    int64_t end = trli_now_ns();
    const trli_task_record *record = trli_record(run, task);
    if (worker->lane)
        trli_trace_add(worker->lane, done ? TRLI_TRACE_TASK : TRLI_TRACE_POLL, trli_task_name(run, task), record->type,
                       start, end);
    /* Relaxed: read after the run. */
    _Atomic int64_t *sum = task < run->view.tasks ? &run->run_ns[task] : &run->spawned_ns;
    if (done) atomic_fetch_add_explicit(sum, end - start, memory_order_relaxed);
}

/* A poll task that has started is never dropped: the message that it waits for must arrive before its memory is
 * reused. */
bool trli_task_call(trli_run_state *run, trli_worker *worker, int32_t task, int chunk, bool again)
{
    const trli_task_record *record = trli_record(run, task);
    /* Relaxed: a task that must see an error is ordered after it by its dependencies; other tasks that see it late
     * only do unneeded work. */
    bool failed = atomic_load_explicit(&run->error, memory_order_relaxed) != TRL_OK;
    if (failed && !again && !(record->flags & TRL_TASK_ALWAYS)) return true;
    trl_run here = {.run = run, .worker = worker, .task = task};
    trl_task_args args = {.chunk = chunk == TRLI_NONE ? 0 : chunk,
                          .chunks = chunk == TRLI_NONE ? 1 : record->chunks,
                          .worker = worker->index,
                          .failed = failed,
                          .frame = run->call ? trli_call_frame(run, task) : run->frame,
                          .run = &here};
    bool done = true;
    int64_t start = run->watched ? trli_now_ns() : 0;
    trl_err err = record->run(record->data, &args, &done);
    if (err != TRL_OK) trli_run_fail(run, task, err);
    done = done || err != TRL_OK || !(record->flags & TRL_TASK_POLL);
    if (run->watched) note_time(run, worker, task, start, done);
    return done;
}

static void execute_chunks(trli_run_state *run, trli_worker *worker, int32_t task, int chunk, int count)
{
    for (int i = 0; i < count; ++i) {
        (void)trli_task_call(run, worker, task, chunk + i, false);
        if (i + 1 == count) break;
        trli_polls_if_due(run, worker);
        if (worker->next == TRLI_NONE) continue;
        trli_hand_over(run, worker,
                       worker->next); /* other workers can run the task before the remaining chunks are done */
        worker->next = TRLI_NONE;
    }
    if (trli_wide_done(run, task, count)) trli_complete(run, worker, task);
}

static void execute(trli_run_state *run, trli_worker *worker, int32_t task)
{
    const trli_task_record *record = trli_record(run, task);
    if (record->flags & TRLI_TASK_WANTS) {
        const trli_want *want;
        int32_t n = trli_wants(run, task, &want);
        if (!trli_locks_acquire(run, worker, task, n, want)) return;
    }
    const bool whole = run->alone && record->flags & TRL_TASK_WHOLE && !trli_polls_wanted(run);
    if (record->flags & TRLI_TASK_WIDE && !whole) {
        trli_wide_open(run, task);
        if (!run->by_caller) trli_workers_wake_all(worker->workers);
        return;
    }
    if (trli_task_call(run, worker, task, whole ? TRLI_NONE : 0, false))
        trli_complete(run, worker, task);
    else
        trli_poll_later(run, task);
}

static bool work_on_chunks(trli_run_state *run, trli_worker *worker)
{
    int chunk = 0, count = 0;
    int32_t task = trli_wide_take(run, worker, &chunk, &count);
    if (task == TRLI_NONE) return false;
    execute_chunks(run, worker, task, chunk, count);
    return true;
}

static bool work_on_task(trli_run_state *run, trli_worker *worker)
{
    int32_t task = run->policy->take(run->policy_state, worker->index);
    if (task == TRLI_NONE) return false;
    if (worker->pushed > 0) --worker->pushed;
    execute(run, worker, task);
    return true;
}

/* Take something from one of the two pools, the preferred pool first. */
static bool work_once(trli_run_state *run, trli_worker *worker)
{
    bool operators = atomic_load_explicit(&worker->operators, memory_order_relaxed);
    if (operators ? work_on_chunks(run, worker) : work_on_task(run, worker)) return true;
    if (!(operators ? work_on_task(run, worker) : work_on_chunks(run, worker))) return false;
    int64_t foreign = atomic_load_explicit(&worker->foreign, memory_order_relaxed);
    atomic_store_explicit(&worker->foreign, foreign + 1, memory_order_relaxed);
    return true;
}

/* ---- idleness ---- */

enum { ACTIVE = 1 };
static const uint64_t began = (uint64_t)1 << 32;

/* seq_cst here and in trli_run_quiet: a worker that finds nothing sees every worker that has begun to look, or what
 * that worker found. */
static void begin_activity(trli_run_state *run)
{
    atomic_fetch_add_explicit(&run->activity, began + ACTIVE, memory_order_seq_cst);
}

static void end_activity(trli_run_state *run, trli_worker *worker)
{
    int64_t done = worker->completed + worker->credit;
    worker->completed = worker->credit = 0;
    /* Release what this worker's tasks wrote to the worker that sees zero. seq_cst: ordered with the count of
     * sleepers. */
    const bool last = done > 0 && atomic_fetch_sub_explicit(&run->remaining, done, memory_order_seq_cst) == done;
    if (last && (!run->by_caller || trli_workers_wanted_elsewhere(worker->workers)))
        trli_workers_wake_all(worker->workers);
    atomic_fetch_sub_explicit(&run->activity, ACTIVE, memory_order_seq_cst);
}

static bool visible(const trli_run_state *run)
{
    return run->policy->holds(run->policy_state) || trli_wide_visible(run);
}

bool trli_run_quiet(trli_run_state *run)
{
    uint64_t before = atomic_load_explicit(&run->activity, memory_order_seq_cst);
    if ((uint32_t)before != 0 || visible(run)) return false;
    if (atomic_load_explicit(&run->polls.open, memory_order_seq_cst) > 0) return false;
    return atomic_load_explicit(&run->activity, memory_order_seq_cst) == before && !trli_run_over(run);
}

/* Of several messages that come in one wait, the one that was sent first counts. */
void trl_run_note_sent(trl_run *here, int64_t sent_ns)
{
    trli_worker *worker = here->worker;
    if (worker->idle_since == 0) return;
    const int64_t now = trli_now_ns(), sent = sent_ns < now ? sent_ns : now;
    const int64_t late = sent > worker->idle_since ? sent - worker->idle_since : 0;
    if (worker->arrived > 0 && late >= worker->late) return;
    if (worker->arrived == 0) worker->arrived = now;
    atomic_fetch_add_explicit(&here->run->late_ns, late - worker->late, memory_order_relaxed);
    worker->late = late;
}

/* When a wait for work begins or ends. */
typedef struct wait_mark {
    int64_t outstanding, late; /* of the run */
} wait_mark;

static wait_mark mark_wait(const trli_run_state *run)
{
    return (wait_mark){trli_polls_outstanding(run), atomic_load_explicit(&run->late_ns, memory_order_relaxed)};
}

static wait_mark begin_wait(const trli_run_state *run, trli_worker *worker)
{
    worker->idle_since = trli_now_ns();
    worker->arrived = worker->late = 0;
    return mark_wait(run);
}

/* Idle time while messages are under way counts against the overlap of communication with computation: it is the
 * growth of the messages' time meanwhile, until a message came, which the poll task may unpack. Before that message was
 * sent it is the time of another rank that is late. */
static void end_wait(trli_run_state *run, trli_worker *worker, const wait_mark *start, const wait_mark *end)
{
    int64_t idle = start->outstanding >= 0 ? end->outstanding - start->outstanding : 0;
    int64_t late = end->late - start->late;
    if (worker->arrived > 0 && idle > worker->arrived - worker->idle_since) idle = worker->arrived - worker->idle_since;
    if (late > idle) late = idle;
    if (idle > 0) atomic_fetch_add_explicit(&run->idle_ns, idle - late, memory_order_relaxed);
    if (idle > 0 && late > 0) atomic_fetch_add_explicit(&run->idle_late_ns, late, memory_order_relaxed);
    if (worker->lane) trli_trace_add(worker->lane, TRLI_TRACE_IDLE, "idle", 0, worker->idle_since, trli_now_ns());
    worker->idle_since = 0;
}

/* Do some work of other ranks, which is no part of the wait; false: there is none. since: when the worker began to
 * wait, such work aside. */
static bool help_others(trli_run_state *run, trli_worker *worker, int64_t since, wait_mark *start)
{
    const trl_context *ctx = run->graph->ctx;
    if (!trli_aid_may_be_wanted(ctx)) return false;
    const wait_mark end = mark_wait(run);
    const int64_t now = trli_now_ns();
    if (!trli_aid_give(ctx, &(trli_idler){run->workers, worker->index, now - since})) return false;
    end_wait(run, worker, start, &end);
    *start = begin_wait(run, worker);
    if (worker->lane) trli_trace_add(worker->lane, TRLI_TRACE_TASK, "help", 0, now, worker->idle_since);
    return true;
}

/* Wait, testing poll tasks, until there may be something to take (true) or this worker should leave (false). */
static bool wait_for_work(trli_run_state *run, trli_worker *worker)
{
    bool owner = false, found = false;
    wait_mark start = begin_wait(run, worker);
    const int64_t since = worker->idle_since;
    worker->pushed = 0;
    end_activity(run, worker);
    for (int spins = 0; !found && !trli_run_over(run);) {
        owner = owner || trli_polls_own(run);
        if (owner) {
            begin_activity(run);
            trli_polls_round(run, worker);
            found = worker->next != TRLI_NONE || worker->completed > 0;
            if (found) break;
            end_activity(run, worker);
        }
        if (visible(run)) {
            begin_activity(run);
            found = true;
        } else if (trli_run_quiet(run)) {
            trli_run_end_early(run);
        } else if (spins >= SPINS && trli_workers_wanted_elsewhere(worker->workers)) {
            break; /* a worker that tests poll tasks leaves too: another run's work may be what they wait for */
        } else if (help_others(run, worker, since, &start)) {
            continue;
        } else if (owner) {
            spins += trli_workers_rest(worker->workers, &run->job, spins);
        } else if (spins < SPINS) {
            spins += trli_workers_pause(worker->workers);
        } else {
            trli_workers_sleep(worker->workers, &run->job);
            spins = 0;
        }
    }
    const wait_mark end = mark_wait(run);
    end_wait(run, worker, &start, &end);
    if (owner) trli_polls_disown(run);
    return found;
}

static _Thread_local bool inside;

bool trli_is_inside(void)
{
    return inside;
}

void trli_set_inside(bool now)
{
    inside = now;
}

bool trli_run_job_over(const trli_job *job)
{
    return trli_run_over((const trli_run_state *)job);
}

int trli_run_work(trli_job *job, trli_worker *worker)
{
    trli_run_state *run = (trli_run_state *)job;
    if (trli_run_over(run)) return 0;
    bool worked = false;
    inside = true;
    (void)trli_diagnostics_said(); /* earlier messages belong to no task */
    trli_diagnostics_work_for(run->asker);
    worker->next = TRLI_NONE;
    worker->pushed = 0;
    begin_activity(run);
    do {
        for (;;) {
            int32_t next = worker->next;
            if (next != TRLI_NONE) {
                worker->next = TRLI_NONE;
                execute(run, worker, next);
            } else if (!work_once(run, worker)) {
                break;
            }
            worked = true;
            trli_polls_if_due(run, worker);
        }
    } while (wait_for_work(run, worker));
    inside = false;
    return (worked ? TRLI_WORKED : 0) | (trli_run_over(run) ? 0 : TRLI_NOT_OVER);
}
