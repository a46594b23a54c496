/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <errno.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "arithmetic_impl.h"
#include "clock_impl.h"
#include "context_impl.h"
#include "mock_impl.h"

static double thread_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void sleep_until(double when)
{
    struct timespec t = {.tv_sec = (time_t)when};
    t.tv_nsec = (long)(1e9 * (when - (double)t.tv_sec));
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR) continue;
}

/* ---- the device's clock ---- */

/* The time of a command is measured where it is done: on a virtual clock as processor time, which does not include
 * what other threads do meanwhile. */
typedef struct watch {
    double wall, processor;
} watch;

static watch watch_start(void)
{
    return (watch){trli_clock(), thread_seconds()};
}

static double watch_seconds(const trli_mock_stream *s, const watch *start)
{
    return s->mock->settings.is_virtual ? thread_seconds() - start->processor : trli_clock() - start->wall;
}

/* Advance the device's clock by the seconds of a command. On a real clock the command begins no earlier than it was
 * issued, and takes as long by the host's clock, too, or longer if the host is slower. */
static void spend(trli_mock_stream *s, double given, const watch *start, double seconds)
{
    if (!s->mock->settings.is_virtual) {
        if (s->time < given) s->time = given;
        if (trli_clock() < start->wall + seconds) sleep_until(start->wall + seconds);
    }
    s->time += seconds;
}

/* ---- commands ---- */

/* Whether the command is to fail: then it is not done. */
static bool is_spoilt(trli_mock *mock, const trli_mock_command *c)
{
    const char *what = c->kind == TRLI_MOCK_DO_CALL ? "call" : "copy";
    if (atomic_load(&mock->device.lost)) {
        trli_outcome_note(c->ticket, TRL_ERR_DEVICE);
        return true;
    }
    if (c->loses) {
        trli_device_lose(&mock->device);
        trli_outcome_note(
            c->ticket, trl_fail(mock->device.ctx, TRL_ERR_DEVICE, NULL,
                                "%s was lost at command %lld, with all that it held: TRL_MOCK_DEVICES asks for that by "
                                "fail=lost; leave it out",
                                mock->name, (long long)c->total));
        return true;
    }
    if (c->fails) {
        atomic_store(&mock->device.failed, true);
        trli_outcome_note(c->ticket,
                          trl_fail(mock->device.ctx, TRL_ERR_DEVICE, NULL,
                                   "%s failed at %s %lld: TRL_MOCK_DEVICES asks for that by fail=%s; leave it out",
                                   mock->name, what, (long long)c->number, what));
        return true;
    }
    return false;
}

static void do_call(trli_mock_stream *s, const trli_mock_command *c)
{
    const trli_mock *mock = s->mock;
    bool done = true;
    if (is_spoilt(s->mock, c)) return;
    (void)trli_diagnostics_said();
    const watch start = watch_start();
    trl_err err = c->call.run(c->call.data, &c->call.args, &done);
    spend(s, c->given, &start, mock->settings.launch + watch_seconds(s, &start) / mock->settings.speed);
    if (err == TRL_OK && !done)
        err = trl_fail(mock->device.ctx, TRL_ERR_USAGE, NULL,
                       "%s: call %lld asks to be called again, which devices do not do: give it a variant for workers "
                       "alone",
                       mock->name, (long long)c->number);
    if (err == TRL_OK) return;
    if (!trli_diagnostics_said())
        (void)trl_fail(mock->device.ctx, err, NULL, "%s: call %lld failed (%s) and does not say why", mock->name,
                       (long long)c->number, trl_err_meaning(err));
    trli_outcome_note(c->ticket, err);
}

static void copy_box(const trli_box_copy *copy)
{
    trli_box_copy c = *copy;
    if (c.row == 0) return;
    if (c.to_row == (ptrdiff_t)c.row && c.from_row == c.to_row && c.rows > 0) {
        c.row *= (size_t)c.rows;
        c.rows = 1;
    }
    for (int64_t plane = 0; plane < c.planes; ++plane)
        for (int64_t row = 0; row < c.rows; ++row)
            memcpy((char *)c.to + plane * c.to_plane + row * c.to_row,
                   (const char *)c.from + plane * c.from_plane + row * c.from_row, c.row);
}

static void do_copy(trli_mock_stream *s, const trli_mock_command *c)
{
    const trli_mock_settings *set = &s->mock->settings;
    const bool some = c->copy.rows > 0 && c->copy.planes > 0;
    const double bytes = some ? (double)c->copy.row * (double)c->copy.rows * (double)c->copy.planes : 0;
    if (is_spoilt(s->mock, c)) return;
    const watch start = watch_start();
    copy_box(&c->copy);
    const double seconds = set->latency + (set->rate > 0 ? bytes / set->rate : 0);
    const double took = set->is_virtual && set->rate > 0 ? 0 : watch_seconds(s, &start);
    spend(s, c->given, &start, took > seconds ? took : seconds);
}

static void do_set(trli_mock_stream *s, const trli_mock_command *c)
{
    trli_fence *fence = c->fence.fence;
    if (!s->mock->settings.is_virtual && s->time < c->given) s->time = c->given;
    pthread_mutex_lock(&fence->lock);
    fence->pass = (trli_mock_pass){c->fence.set, s->time};
    atomic_store_explicit(&fence->passes, c->fence.set, memory_order_release); /* read by trli_mock_passed */
    pthread_cond_broadcast(&fence->passed);
    pthread_mutex_unlock(&fence->lock);
    trli_mock_fence_drop(fence);
}

static void do_wait(trli_mock_stream *s, const trli_mock_command *c)
{
    trli_fence *fence = c->fence.fence;
    pthread_mutex_lock(&fence->lock);
    while (fence->pass.number < c->fence.set) pthread_cond_wait(&fence->passed, &fence->lock);
    const trli_mock_pass pass = fence->pass;
    pthread_mutex_unlock(&fence->lock);
    if (fence->is_virtual == s->mock->settings.is_virtual && s->time < pass.time) s->time = pass.time;
    trli_mock_fence_drop(fence);
}

void trli_mock_fence_drop(trli_fence *fence)
{
    if (atomic_fetch_sub(&fence->references, 1) != 1) return;
    pthread_cond_destroy(&fence->passed);
    pthread_mutex_destroy(&fence->lock);
    trli_free(fence);
}

/* ---- the thread ---- */

/* Returns false when the stream is to end. */
static bool take(trli_mock_stream *s, trli_mock_command *c)
{
    pthread_mutex_lock(&s->lock);
    s->busy = false;
    if (s->head == s->tail) pthread_cond_broadcast(&s->idle);
    while (s->head == s->tail && !s->stopping) pthread_cond_wait(&s->given, &s->lock);
    s->busy = s->head != s->tail;
    if (s->busy) *c = s->ring[s->head++ % s->capacity];
    pthread_mutex_unlock(&s->lock);
    return s->busy;
}

static void *work(void *data)
{
    trli_mock_stream *s = data;
    trli_mock_command c;
    (void)prctl(PR_SET_TIMERSLACK, 1UL); /* ns: sleeps end when they should */
    while (take(s, &c)) {
        trli_diagnostics_work_for(c.asker);
        switch (c.kind) {
        case TRLI_MOCK_DO_CALL:
            if (trli_outcome_err(c.ticket.outcome) == TRL_OK) do_call(s, &c);
            break;
        case TRLI_MOCK_DO_COPY:
            if (trli_outcome_err(c.ticket.outcome) == TRL_OK) do_copy(s, &c);
            break;
        case TRLI_MOCK_DO_SET:
            do_set(s, &c);
            break;
        case TRLI_MOCK_DO_WAIT:
            do_wait(s, &c);
            break;
        }
    }
    return NULL;
}

trl_err trli_mock_stream_start(trli_mock *mock, trli_stream which)
{
    enum { FIRST = 64 };
    trli_mock_stream *s = &mock->stream[which];
    s->mock = mock;
    s->capacity = FIRST;
    s->ring = trli_new(mock->device.ctx, FIRST, sizeof *s->ring);
    if (!s->ring) return trli_no_memory(mock->device.ctx, NULL, "for the streams of %s", mock->name);
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->given, NULL);
    pthread_cond_init(&s->idle, NULL);
    const int status = pthread_create(&s->thread, NULL, work, s);
    s->started = status == 0;
    if (s->started) return TRL_OK;
    trli_mock_stream_stop(s);
    return trl_fail(mock->device.ctx, TRL_ERR_MEMORY, NULL, "cannot start a thread of %s: %s; use fewer mock devices",
                    mock->name, strerror(status));
}

/* The ring is full: double it. The lock is held. */
static bool grow(trli_mock_stream *s)
{
    trli_mock_command *ring = trli_new(s->mock->device.ctx, 2 * s->capacity, sizeof *ring);
    if (!ring) return false;
    for (uint64_t i = s->head; i < s->tail; ++i) ring[i % (2 * s->capacity)] = s->ring[i % s->capacity];
    trli_free(s->ring);
    s->ring = ring;
    s->capacity *= 2;
    return true;
}

trl_err trli_mock_give(trli_mock *mock, trli_stream which, const trli_mock_command *command)
{
    trli_mock_stream *s = &mock->stream[which];
    pthread_mutex_lock(&s->lock);
    const bool room = s->tail - s->head < s->capacity || grow(s);
    const bool first = s->head == s->tail; /* else the thread is awake, or was woken */
    if (room) {
        trli_mock_command *c = &s->ring[s->tail++ % s->capacity];
        *c = *command;
        c->given = trli_clock();
        c->asker = trli_diagnostics_asker();
    }
    pthread_mutex_unlock(&s->lock);
    if (first) pthread_cond_signal(&s->given); /* without the lock, for which a thread woken earlier would wait */
    return room ? TRL_OK : trli_no_memory(mock->device.ctx, NULL, "for the commands given to %s", mock->name);
}

void trli_mock_stream_finish(trli_mock_stream *s)
{
    pthread_mutex_lock(&s->lock);
    while (s->busy || s->head != s->tail) pthread_cond_wait(&s->idle, &s->lock);
    pthread_mutex_unlock(&s->lock);
}

void trli_mock_stream_stop(trli_mock_stream *s)
{
    if (!s->ring) return;
    pthread_mutex_lock(&s->lock);
    s->stopping = true;
    pthread_cond_signal(&s->given);
    pthread_mutex_unlock(&s->lock);
    if (s->started) pthread_join(s->thread, NULL);
    pthread_cond_destroy(&s->idle);
    pthread_cond_destroy(&s->given);
    pthread_mutex_destroy(&s->lock);
    trli_free(s->ring);
    s->ring = NULL;
}
