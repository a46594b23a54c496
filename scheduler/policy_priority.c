/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Each worker has a ring of ready tasks for each class of urgency. The owner adds at the tail and takes from the
 * head, most urgent class first; a worker without tasks steals half of another worker's most urgent ring. The roots
 * of a graph lie ready in an array, of which each worker hands itself, or others, a share. Tasks for which a ring
 * has no room go to a common list.
 *
 * Ring: slots[head..tail) modulo CAPACITY. Only the owner stores the tail (release: publishes the slots, and what
 * was done before the tasks became ready). The head moves by compare-exchange, by the owner or a thief (acquire of
 * the tail before). The owner writes a slot again only after it has seen the head past it, and a thief that copied a
 * rewritten slot finds the head moved. See tests/scheduler/models/ring.pml. */
#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <string.h>

#include <trl_policy.h>

enum {
    LINE = 64,
    CAPACITY = 256,
    STEAL_MOST = CAPACITY / 4, /* tasks stolen from a ring at once */
    ROOTS_MOST = 16,           /* roots taken at once */
    NONE = -1
};

typedef struct ring {
    alignas(LINE) _Atomic uint32_t head;
    _Atomic uint32_t tail;
    _Atomic int32_t slot[CAPACITY];
} ring;

/* Roots of one class for one worker. */
typedef struct root_share {
    alignas(LINE) _Atomic int32_t next; /* in the array of roots */
    int32_t end;
} root_share;

typedef struct queue {
    /* Bits of the classes that may have tasks. Only a hint: the owner sets a bit when it adds a task, and clears it
     * when it finds none. */
    alignas(LINE) _Atomic unsigned classes;
    int32_t root, root_end; /* roots that the owner took and has not handed out yet */
    unsigned victim;        /* whom to steal from next */
    ring ring[TRL_URGENCIES];
    root_share roots[TRL_URGENCIES];
} queue;

typedef struct priority_state {
    const trl_policy_graph *graph;
    const int32_t *roots;
    queue *queue;                        /* [workers] */
    pthread_mutex_t lock;                /* guards the list */
    alignas(LINE) _Atomic int32_t first; /* list of tasks without room in a ring, by their links */
} priority_state;

/* ---- rings ---- */

/* Owner only. False: no room. */
static bool push(ring *r, int32_t task)
{
    uint32_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed); /* own */
    if (tail - atomic_load_explicit(&r->head, memory_order_acquire) == CAPACITY)
        return false;                                                             /* takers have read the slot */
    atomic_store_explicit(&r->slot[tail % CAPACITY], task, memory_order_relaxed); /* published by the tail */
    atomic_store_explicit(&r->tail, tail + 1, memory_order_release);
    return true;
}

/* Owner only: take the oldest task, or NONE. */
static int32_t pop(ring *r)
{
    uint32_t head = atomic_load_explicit(
        &r->head, memory_order_acquire); /* takers have read the slot: stealing writes without push */
    for (;;) {
        if (head == atomic_load_explicit(&r->tail, memory_order_relaxed)) return NONE; /* own */
        int32_t task = atomic_load_explicit(&r->slot[head % CAPACITY], memory_order_relaxed);
        /* Release: the slot was read. */
        if (atomic_compare_exchange_weak_explicit(&r->head, &head, head + 1, memory_order_acq_rel,
                                                  memory_order_acquire))
            return task;
    }
}

/* Move the older half of a ring into an empty one of the thief. Returns how many. */
static uint32_t steal(ring *from, ring *to)
{
    uint32_t tail_to = atomic_load_explicit(&to->tail, memory_order_relaxed); /* own */
    uint32_t head = atomic_load_explicit(&from->head, memory_order_acquire);
    for (;;) {
        uint32_t n = atomic_load_explicit(&from->tail, memory_order_acquire) - head;
        n = n > 2 * STEAL_MOST ? STEAL_MOST : n - n / 2;
        if (n == 0) return 0;
        for (uint32_t i = 0; i < n; ++i) {
            int32_t task = atomic_load_explicit(&from->slot[(head + i) % CAPACITY], memory_order_relaxed);
            atomic_store_explicit(&to->slot[(tail_to + i) % CAPACITY], task, memory_order_relaxed);
        }
        /* Release: the slots were read. Acquire on failure: as at the first load. */
        if (!atomic_compare_exchange_weak_explicit(&from->head, &head, head + n, memory_order_release,
                                                   memory_order_acquire))
            continue;
        atomic_store_explicit(&to->tail, tail_to + n, memory_order_release);
        return n;
    }
}

static bool ring_holds(ring *r)
{
    /* seq_cst: a run is quiet only when all workers' stores are seen, see trli_run_quiet. */
    return atomic_load_explicit(&r->head, memory_order_seq_cst) != atomic_load_explicit(&r->tail, memory_order_seq_cst);
}

/* ---- the common list ---- */

static void put_in_list(priority_state *s, int32_t task)
{
    pthread_mutex_lock(&s->lock);
    *trl_policy_link(s->graph, task) = atomic_load_explicit(&s->first, memory_order_relaxed); /* under the lock */
    atomic_store_explicit(&s->first, task, memory_order_seq_cst);                             /* as in ring_holds */
    pthread_mutex_unlock(&s->lock);
}

/* Move some of the list into an empty ring. */
static bool take_from_list(priority_state *s, ring *r)
{
    if (atomic_load_explicit(&s->first, memory_order_relaxed) == NONE) return false; /* checked again under the lock */
    bool any = false;
    pthread_mutex_lock(&s->lock);
    int32_t task = atomic_load_explicit(&s->first, memory_order_relaxed);
    for (int i = 0; i < CAPACITY / 2 && task != NONE; ++i) {
        int32_t next = *trl_policy_link(s->graph, task);
        push(r, task);
        task = next;
        any = true;
    }
    atomic_store_explicit(&s->first, task, memory_order_seq_cst);
    pthread_mutex_unlock(&s->lock);
    return any;
}

/* ---- roots ---- */

/* Relaxed: the run was opened after the roots lay ready; the counter only deals them out. */
static bool take_roots(root_share *share, queue *own)
{
    int32_t next = atomic_load_explicit(&share->next, memory_order_relaxed);
    if (next >= share->end) return false;
    int32_t n = (share->end - next) / 4;
    n = n < 1 ? 1 : n > ROOTS_MOST ? ROOTS_MOST : n;
    next = atomic_fetch_add_explicit(&share->next, n, memory_order_relaxed);
    if (next >= share->end) return false;
    own->root = next;
    own->root_end = next + n < share->end ? next + n : share->end;
    return true;
}

static bool roots_hold(root_share *share)
{
    return atomic_load_explicit(&share->next, memory_order_relaxed) < share->end;
}

/* ---- the policy ---- */

/* How many of the roots, which are ordered by class, are of this class or an earlier one. */
static int32_t count_urgent(const trl_policy_graph *g, int32_t nroots, const int32_t *roots, int urgency)
{
    int32_t low = 0, high = nroots;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (trl_policy_urgency(g, roots[middle]) <= urgency)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Each worker gets neighbours among the class's roots. */
static void start(void *state, int32_t nroots, const int32_t *roots)
{
    priority_state *s = state;
    const trl_policy_graph *g = s->graph;
    s->roots = roots;
    for (int w = 0; w < g->workers; ++w) s->queue[w].victim = (unsigned)w + 1;
    for (int32_t begin = 0, end, c = 0; c < TRL_URGENCIES && begin < nroots; ++c, begin = end) {
        end = count_urgent(g, nroots, roots, c);
        const int64_t n = end - begin;
        for (int w = 0; n > 0 && w < g->workers; ++w) {
            root_share *share = &s->queue[w].roots[c];
            share->end = begin + (int32_t)(n * (w + 1) / g->workers);
            /* Relaxed: the run is not open yet. */
            atomic_store_explicit(&share->next, begin + (int32_t)(n * w / g->workers), memory_order_relaxed);
            if (!roots_hold(share)) continue;
            const unsigned classes = atomic_load_explicit(&s->queue[w].classes, memory_order_relaxed);
            atomic_store_explicit(&s->queue[w].classes, classes | 1u << c, memory_order_relaxed);
        }
    }
}

static void ready(void *state, int worker, int32_t task, int urgency)
{
    priority_state *s = state;
    queue *own = &s->queue[worker];
    unsigned classes = atomic_load_explicit(&own->classes, memory_order_relaxed);
    if (!push(&own->ring[urgency], task)) {
        put_in_list(s, task);
        return;
    }
    if (!(classes & 1u << urgency)) atomic_store_explicit(&own->classes, classes | 1u << urgency, memory_order_relaxed);
}

static int32_t give_root(const priority_state *s, queue *own)
{
    return own->root < own->root_end ? s->roots[own->root++] : NONE;
}

static int32_t take_own(priority_state *s, queue *own)
{
    for (;;) {
        unsigned classes = atomic_load_explicit(&own->classes, memory_order_relaxed);
        if (classes == 0) return give_root(s, own);
        int c = __builtin_ctz(classes);
        int32_t task = pop(&own->ring[c]);
        if (task == NONE) task = give_root(s, own);
        if (task == NONE && take_roots(&own->roots[c], own)) task = give_root(s, own);
        if (task != NONE) return task;
        atomic_store_explicit(&own->classes, classes & ~(1u << c), memory_order_relaxed);
    }
}

/* Steal from the most urgent class of the first other worker that has tasks. */
static bool steal_some(priority_state *s, int worker, queue *own)
{
    int n = s->graph->workers;
    for (int i = 1; i < n; ++i, ++own->victim) {
        int v = (int)(own->victim % (unsigned)n);
        if (v == worker) v = (int)(++own->victim % (unsigned)n);
        queue *victim = &s->queue[v];
        unsigned classes = atomic_load_explicit(&victim->classes, memory_order_relaxed);
        for (; classes; classes &= classes - 1) {
            int c = __builtin_ctz(classes);
            if (take_roots(&victim->roots[c], own)) return true;
            if (steal(&victim->ring[c], &own->ring[c]) == 0) continue;
            atomic_store_explicit(&own->classes, 1u << c, memory_order_relaxed);
            return true;
        }
    }
    return false;
}

static int32_t take(void *state, int worker)
{
    priority_state *s = state;
    queue *own = &s->queue[worker];
    int32_t task = take_own(s, own);
    if (task != NONE) return task;
    if (take_from_list(s, &own->ring[0]))
        atomic_store_explicit(&own->classes, 1u, memory_order_relaxed);
    else if (!steal_some(s, worker, own))
        return NONE;
    return take_own(s, own);
}

static bool holds(void *state)
{
    priority_state *s = state;
    if (atomic_load_explicit(&s->first, memory_order_seq_cst) != NONE) return true;
    for (int w = 0; w < s->graph->workers; ++w) {
        unsigned classes = atomic_load_explicit(&s->queue[w].classes, memory_order_seq_cst);
        for (; classes; classes &= classes - 1) {
            int c = __builtin_ctz(classes);
            if (ring_holds(&s->queue[w].ring[c]) || roots_hold(&s->queue[w].roots[c])) return true;
        }
    }
    return false;
}

/* A worker that took all of its tasks is skipped: resetting its rings would cost short runs on many workers time. A
 * class that holds tasks has its bit set. Relaxed: no worker is inside. */
static void finish(void *state)
{
    priority_state *s = state;
    atomic_store_explicit(&s->first, NONE, memory_order_relaxed);
    for (int w = 0; w < s->graph->workers; ++w) {
        queue *q = &s->queue[w];
        if (atomic_load_explicit(&q->classes, memory_order_relaxed) == 0 && q->root == q->root_end) continue;
        atomic_store_explicit(&q->classes, 0, memory_order_relaxed);
        q->root = q->root_end = 0;
        for (int c = 0; c < TRL_URGENCIES; ++c) {
            atomic_store_explicit(&q->ring[c].head, atomic_load_explicit(&q->ring[c].tail, memory_order_relaxed),
                                  memory_order_relaxed);
            atomic_store_explicit(&q->roots[c].next, q->roots[c].end, memory_order_relaxed);
        }
    }
}

static void teardown(const trl_policy_graph *graph, void **state)
{
    priority_state *s = *state;
    if (s == NULL) return;
    void *queues = s->queue;
    trl_memory_free(graph->ctx, &queues);
    pthread_mutex_destroy(&s->lock);
    trl_memory_free(graph->ctx, state);
}

static trl_err setup(const trl_policy_graph *graph, void **state)
{
    trl_err err;
    void *memory;
    TRL_TRY(trl_memory_alloc(graph->ctx, sizeof(priority_state), "priority policy", state));
    priority_state *s = memset(*state, 0, sizeof *s);
    pthread_mutex_init(&s->lock, NULL);
    s->graph = graph;
    TRL_TRY(trl_memory_alloc(graph->ctx, (size_t)graph->workers * sizeof *s->queue, "priority policy", &memory));
    s->queue = memset(memory, 0, (size_t)graph->workers * sizeof *s->queue);
    finish(s);
done:
    return err;
}

const trl_policy trli_policy_priority = {
    .size = sizeof(trl_policy),
    .abi = TRL_POLICY_ABI,
    .name = "priority",
    .run_next = true,
    .setup = setup,
    .teardown = teardown,
    .start = start,
    .ready = ready,
    .take = take,
    .holds = holds,
    .finish = finish,
};
