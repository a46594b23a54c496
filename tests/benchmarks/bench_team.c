/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "bench_impl.h"
#include "context_impl.h"

enum {
    SPINS = 20000, /* looks at the barrier before a member yields: on a shared machine the others may need the core */
    LARGE_PAGE = 2 << 20
};

typedef struct seat {
    trli_team *team;
    int member;
    pthread_t thread;
} seat;

struct trli_team {
    const trl_context *ctx;
    int size;
    void (*work)(trli_team *team, int member, void *data);
    void *data;
    _Atomic int missing, turn;
    _Atomic bool cancelled;
};

/* Count one member in; the last one opens the barrier. */
static bool arrive(trli_team *team)
{
    if (atomic_fetch_sub(&team->missing, 1) > 1) return false;
    atomic_store(&team->missing, team->size);
    atomic_fetch_add(&team->turn, 1);
    return true;
}

static void *sit(void *arg)
{
    const seat *s = arg;
    trli_team *team = s->team;
    if (trl_context_pinned(team->ctx)) trli_topology_pin(&team->ctx->topology, s->member);
    trli_team_barrier(team);
    if (!atomic_load(&team->cancelled)) team->work(team, s->member, team->data);
    return NULL;
}

trl_err trli_team_run(trl_context *ctx, int n, void (*work)(trli_team *team, int member, void *data), void *data)
{
    trli_team team = {.ctx = ctx, .size = n, .work = work, .data = data, .missing = n};
    seat *seats = calloc((size_t)n, sizeof *seats);
    trl_err err = seats ? TRL_OK : trl_fail(ctx, TRL_ERR_MEMORY, NULL, "no memory for %d threads", n);
    int started = 0;
    for (; err == TRL_OK && started < n; ++started) {
        seats[started] = (seat){.team = &team, .member = started};
        int status = pthread_create(&seats[started].thread, NULL, sit, &seats[started]);
        if (status == 0) continue;
        err = trl_fail(ctx, TRL_ERR_MEMORY, NULL, "cannot start thread %d of %d: %s", started + 1, n, strerror(status));
        atomic_store(&team.cancelled, true);
        for (int absent = started; absent < n; ++absent) arrive(&team); /* those who sit already must not wait for it */
        break;
    }
    for (int i = 0; i < started; ++i) pthread_join(seats[i].thread, NULL);
    free(seats);
    return err;
}

int trli_team_size(const trli_team *team)
{
    return team->size;
}

void trli_team_barrier(trli_team *team)
{
    int turn = atomic_load(&team->turn);
    if (arrive(team)) return;
    for (int spins = 0; atomic_load(&team->turn) == turn; ++spins)
        if (spins > SPINS) sched_yield();
}

void trli_team_share(const trli_team *team, int member, ptrdiff_t n, ptrdiff_t *begin, ptrdiff_t *end)
{
    *begin = n * member / team->size;
    *end = n * (member + 1) / team->size;
}

trl_err trli_bench_alloc(trl_context *ctx, size_t count, double **values)
{
    size_t bytes = (count * sizeof **values + LARGE_PAGE - 1) / LARGE_PAGE * LARGE_PAGE;
    *values = aligned_alloc(LARGE_PAGE, bytes);
    if (!*values) return trl_fail(ctx, TRL_ERR_MEMORY, NULL, "no memory for an array of %zu bytes", bytes);
    madvise(*values, bytes, MADV_HUGEPAGE); /* where that is unknown, small pages serve too */
    memset(*values, 0, bytes);
    return TRL_OK;
}
