// ctest: np=1,2,4
/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Where MPI lets several threads call it at a time, they do not wait for one another. */
#define TRL_TEST_MPI_LEVEL MPI_THREAD_MULTIPLE
#include <pthread.h>

#include "context_impl.h"

#include "trl_test.h"

enum { THREADS = 3, ROUNDS = 10, AGREEMENTS = 300 };

static bool is_multiple(void)
{
    int level = MPI_THREAD_SINGLE;
    MPI_Query_thread(&level);
    return level >= MPI_THREAD_MULTIPLE;
}

START_TEST(the_mpi_lock_admits_all_threads)
{
    if (!is_multiple()) return;
    trl_context_mpi_lock(test_ctx);
    ck_assert(trl_context_mpi_try_lock(test_ctx));
    trl_context_mpi_unlock(test_ctx);
    trl_context_mpi_unlock(test_ctx);
}
END_TEST

static _Atomic int wrong;

/* Pass numbers round the ranks, one message at a time, as the tasks of an exchange do. */
static void *pass_round(void *data)
{
    const int tag = 100 + *(const int *)data, rank = trl_context_rank(test_ctx), ranks = trl_context_ranks(test_ctx);
    for (int64_t round = 0; round < ROUNDS; ++round) {
        MPI_Request request[2];
        int64_t sent = round + rank, received = -1;
        int all = 0;
        trl_context_mpi_lock(test_ctx);
        MPI_Irecv(&received, 1, MPI_INT64_T, (rank + 1) % ranks, tag, trl_context_comm(test_ctx), &request[0]);
        MPI_Isend(&sent, 1, MPI_INT64_T, (rank + ranks - 1) % ranks, tag, trl_context_comm(test_ctx), &request[1]);
        trl_context_mpi_unlock(test_ctx);
        while (!all) {
            if (!trl_context_mpi_try_lock(test_ctx)) continue;
            MPI_Testall(2, request, &all, MPI_STATUSES_IGNORE);
            trl_context_mpi_unlock(test_ctx);
            trli_agree_go_on(test_ctx);
        }
        wrong += received != round + (rank + 1) % ranks;
    }
    return NULL;
}

START_TEST(threads_bring_messages_and_an_agreement_on_together)
{
    pthread_t thread[THREADS];
    int number[THREADS];
    if (!is_multiple()) return;
    for (int64_t n = 0; n < AGREEMENTS; ++n) {
        int64_t most = n + trl_context_rank(test_ctx);
        ck_ok(trli_agree_later(test_ctx, TRL_OK, 1, &most));
        for (int i = 0; i < THREADS; ++i) {
            number[i] = i;
            pthread_create(&thread[i], NULL, pass_round, &number[i]);
        }
        for (int i = 0; i < THREADS; ++i) pthread_join(thread[i], NULL);
        ck_ok(trli_agree_at_last(test_ctx, 1, &most));
        ck_assert_int_eq(most, n + trl_context_ranks(test_ctx) - 1);
    }
    ck_assert_int_eq(wrong, 0);
}
END_TEST

static void add_tests(TCase *tc)
{
    tcase_add_test(tc, the_mpi_lock_admits_all_threads);
    tcase_add_test(tc, threads_bring_messages_and_an_agreement_on_together);
}

TRL_TEST_MAIN("multiple", add_tests)
