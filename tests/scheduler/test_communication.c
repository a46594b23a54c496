// ctest: np=1,2,4
/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Tasks that communicate: poll tasks around MPI requests, on every policy, also when a rank fails. */
#include "trl_test.h"

#include <time.h>

#include <trl_graph.h>

enum { ROUNDS = 20 };

typedef struct message {
    int peer, tag, value;
    bool send, posted;
    MPI_Request request;
} message;

/* Posts on the first call, tests on the later ones; what MPI returns is checked at the end by the value. */
static trl_err exchange(void *data, const trl_task_args *args, bool *done)
{
    message *m = data;
    int complete = 0;
    (void)args;
    *done = false;
    if (!trl_context_mpi_try_lock(test_ctx)) return TRL_OK;
    MPI_Comm comm = trl_context_comm(test_ctx);
    if (!m->posted && m->send) {
        MPI_Isend(&m->value, 1, MPI_INT, m->peer, m->tag, comm, &m->request);
    } else if (!m->posted) {
        MPI_Irecv(&m->value, 1, MPI_INT, m->peer, m->tag, comm, &m->request);
    }
    m->posted = true;
    MPI_Test(&m->request, &complete, MPI_STATUS_IGNORE);
    trl_context_mpi_unlock(test_ctx);
    *done = complete;
    return TRL_OK;
}

typedef struct increment {
    message *from, *to;
    trl_err result;
} increment;

static trl_err increment_value(void *data, const trl_task_args *args, bool *done)
{
    increment *i = data;
    (void)args;
    (void)done;
    i->to->value = i->from->value + 1;
    return i->result;
}

/* A ring: each round sends to the right, receives from the left and adds one. */
typedef struct ring {
    message send[ROUNDS], receive[ROUNDS];
    increment increments[ROUNDS - 1];
} ring;

static trl_task add_message(trl_graph *graph, message *m)
{
    trl_task task;
    trl_task_desc desc = {.name = m->send ? "send" : "receive",
                          .variant = {{exchange}},
                          .data = m,
                          .chunks = 1,
                          .flags = TRL_TASK_POLL | TRL_TASK_ALWAYS};
    ck_ok(trl_graph_add_task(graph, &desc, &task));
    return task;
}

static void build_ring(ring *r, trl_graph *graph)
{
    int rank = trl_context_rank(test_ctx), ranks = trl_context_ranks(test_ctx);
    trl_task add = -1;
    for (int i = 0; i < ROUNDS; ++i) {
        r->send[i] = (message){.peer = (rank + 1) % ranks, .tag = i, .send = true};
        r->receive[i] = (message){.peer = (rank + ranks - 1) % ranks, .tag = i};
        trl_task send = add_message(graph, &r->send[i]), receive = add_message(graph, &r->receive[i]);
        if (add >= 0) ck_ok(trl_graph_add_dependency(graph, add, send));
        if (i + 1 == ROUNDS) break;
        r->increments[i] = (increment){.from = &r->receive[i], .to = &r->send[i + 1]};
        trl_task_desc desc = {.name = "add", .variant = {{increment_value}}, .data = &r->increments[i], .chunks = 1};
        ck_ok(trl_graph_add_task(graph, &desc, &add));
        ck_ok(trl_graph_add_dependency(graph, receive, add));
    }
    ck_ok(trl_graph_freeze(graph));
}

static void reset_ring(ring *r)
{
    for (int i = 0; i < ROUNDS; ++i) r->send[i].posted = r->receive[i].posted = false;
    r->send[0].value = trl_context_rank(test_ctx);
}

static const char *const policies[] = {"serial", "priority", "priority"};
static const int threads[] = {1, 1, 2};

static int agreed(int good)
{
    MPI_Allreduce(MPI_IN_PLACE, &good, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    return good;
}

START_TEST(a_ring_of_ranks_passes_a_value_round)
{
    static ring r;
    trl_graph *graph;
    trl_workers *workers;
    int rank = trl_context_rank(test_ctx), ranks = trl_context_ranks(test_ctx), good = 1;
    ck_ok(trl_context_set_threads(test_ctx, threads[_i]));
    ck_ok(trl_workers_create(test_ctx, policies[_i], &workers));
    ck_ok(trl_graph_create(test_ctx, "ring", &graph));
    build_ring(&r, graph);
    for (int run = 0; run < 5; ++run) {
        reset_ring(&r);
        trl_err err = trl_graph_run(graph, workers, NULL);
        int origin = (((rank - ROUNDS) % ranks) + ranks) % ranks;
        good = good && err == TRL_OK && r.receive[ROUNDS - 1].value == origin + ROUNDS - 1;
    }
    ck_assert(agreed(good));
    trl_graph_destroy(&graph);
    trl_workers_destroy(&workers);
}
END_TEST

START_TEST(no_rank_waits_for_ever_when_one_fails)
{
    static ring r;
    trl_graph *graph;
    trl_workers *workers;
    int last = trl_context_ranks(test_ctx) - 1;
    ck_ok(trl_context_set_threads(test_ctx, threads[_i]));
    ck_ok(trl_workers_create(test_ctx, policies[_i], &workers));
    ck_ok(trl_graph_create(test_ctx, "ring", &graph));
    build_ring(&r, graph);
    if (trl_context_rank(test_ctx) == last) r.increments[ROUNDS / 2].result = TRL_ERR_NUMERICS;
    reset_ring(&r);
    trl_err err = trl_graph_run(graph, workers, NULL);
    int good = err == (trl_context_rank(test_ctx) == last ? TRL_ERR_NUMERICS : TRL_OK);
    ck_assert(agreed(good));
    ck_assert_int_eq(trl_context_agree(test_ctx, err), TRL_ERR_NUMERICS);
    r.increments[ROUNDS / 2].result = TRL_OK;
    reset_ring(&r);
    err = trl_graph_run(graph, workers, NULL);
    ck_assert(agreed(err == TRL_OK));
    trl_graph_destroy(&graph);
    trl_workers_destroy(&workers);
}
END_TEST

/* A message that takes a while, alone or beside other work. */

enum { MESSAGE_NS = 10000000, PIECE_NS = 500000, PIECES = 100 };

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

typedef struct pretended_message {
    int calls;
    int64_t started, sent, came; /* ns */
    double sent_after;           /* part of its time after which it is sent; 0: that is not known */
    int64_t worked;              /* ns in which the one worker did pieces of work while the message was under way */
} pretended_message;

/* Its time begins with the third call: before, the run counts it as outstanding, and the worker that calls it has
 * looked for other work and found none, or pieces of work. */
static trl_err slow_message(void *data, const trl_task_args *args, bool *done)
{
    pretended_message *m = data;
    if (m->calls++ < 3) m->started = now_ns();
    m->came = now_ns();
    *done = m->came - m->started >= MESSAGE_NS;
    if (*done && m->sent_after > 0) {
        m->sent = m->started + (int64_t)(m->sent_after * MESSAGE_NS);
        trl_run_note_sent(args->run, m->sent);
        m->came = now_ns();
    }
    return TRL_OK;
}

static trl_err piece_of_work(void *data, const trl_task_args *args, bool *done)
{
    const int64_t start = now_ns();
    pretended_message *m = data;
    (void)args, (void)done;
    while (now_ns() - start < PIECE_NS) {
    }
    if (m && m->calls > 2 && m->came - m->started < MESSAGE_NS) m->worked += now_ns() - start;
    return TRL_OK;
}

typedef struct waiting {
    trl_graph_stats stats;
    pretended_message message;
    int workers;
} waiting;

static waiting wait_for_message(const char *policy, int pieces, double sent_after)
{
    trl_graph *graph;
    trl_workers *workers;
    trl_task task;
    waiting w = {.message.sent_after = sent_after};
    trl_task_desc message = {
        .name = "message", .variant = {{slow_message}}, .data = &w.message, .chunks = 1, .flags = TRL_TASK_POLL};
    trl_task_desc piece = {.name = "work", .variant = {{piece_of_work}}, .chunks = 1};
    ck_ok(trl_workers_create(test_ctx, policy, &workers));
    w.workers = trl_workers_count(workers);
    if (w.workers == 1) piece.data = &w.message;
    ck_ok(trl_graph_create(test_ctx, "overlap", &graph));
    ck_ok(trl_graph_add_task(graph, &message, &task));
    for (int i = 0; i < pieces; ++i) ck_ok(trl_graph_add_task(graph, &piece, &task));
    ck_ok(trl_graph_freeze(graph));
    ck_ok(trl_graph_run(graph, workers, NULL));
    trl_graph_get_stats(graph, &w.stats);
    trl_workers_destroy(&workers);
    trl_graph_destroy(&graph);
    ck_assert_double_ge(w.stats.idle, 0);
    ck_assert_double_ge(w.stats.late, 0);
    ck_assert_double_le(w.stats.idle + w.stats.late, w.stats.outstanding * (1 + 1e-12));
    return w;
}

/* What is claimed of times holds however long a thread lacks its core: then it waits, or works, for longer. A mean over
 * workers has the share of one that waits all the time. */
static const double rounding = 1e-8;

START_TEST(idle_time_beside_communication_is_counted)
{
    static const char *const policy[] = {"serial", "priority"};
    for (int i = 0; i < 2; ++i) {
        const waiting w = wait_for_message(policy[i], 0, 0);
        ck_assert_double_ge(w.stats.outstanding, 1e-9 * MESSAGE_NS);
        ck_assert_double_ge(w.stats.idle + rounding, 1e-9 * (double)MESSAGE_NS / w.workers);
        ck_assert_double_eq(w.stats.late, 0);
    }
    const waiting beside = wait_for_message("serial", PIECES, 0);
    ck_assert_int_ge(beside.message.worked, PIECE_NS);
    ck_assert_double_le(beside.stats.idle + 1e-9 * (double)beside.message.worked, beside.stats.outstanding + rounding);
    ck_assert_double_eq(beside.stats.late, 0);
    (void)wait_for_message("priority", PIECES, 0);
}
END_TEST

/* Alone: what is waited before the message is sent is the sender's. Beside work: nothing is. */
START_TEST(waiting_for_a_late_sender_is_not_idle_time_of_communication)
{
    const char *policy = _i == 0 ? "serial" : "priority";
    const waiting w = wait_for_message(policy, 0, 0.75), beside = wait_for_message(policy, PIECES, 0.75);
    const pretended_message *m = &w.message;
    ck_assert_double_ge(w.stats.late + rounding, 1e-9 * (double)(m->sent - m->started) / w.workers);
    if (w.workers > 1) return;
    ck_assert_double_le(w.stats.idle, 1e-9 * (double)(m->came - m->sent) + rounding);
    ck_assert_double_le(beside.stats.idle + beside.stats.late + 1e-9 * (double)beside.message.worked,
                        beside.stats.outstanding + rounding);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_loop_test(tc, a_ring_of_ranks_passes_a_value_round, 0, 3);
    tcase_add_loop_test(tc, no_rank_waits_for_ever_when_one_fails, 0, 3);
    tcase_add_test(tc, idle_time_beside_communication_is_counted);
    tcase_add_loop_test(tc, waiting_for_a_late_sender_is_not_idle_time_of_communication, 0, 2);
}

TRL_TEST_MAIN("communication", add_tests)
