/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Random graphs of tasks on data, which workers and devices may do, and of calls. Included after placed_data.h. */
#ifndef PLACED_GRAPH_H
#define PLACED_GRAPH_H

enum {
    PLACED_RESOURCES = 6,
    PLACED_WANTS = 6,
    PLACED_PHASES = 3,
    PLACED_BEFORE = 3,
    PLACED_CHILDREN = 3,
    PLACED_ROUNDS = 3, /* of a call, and of one inside of it */
    PLACED_TYPES = 10, /* of a phase: the first phase has type 0 */
    PLACED_FREE_TYPE = 200,
    NONE = -1,
};

typedef struct placed_access {
    int handle;
    trl_access mode;
    int part; /* of WRITE_PART: words of this number modulo DATA_PARTS */
} placed_access;

/* A call, or one that is its body. */
typedef struct placed_call {
    struct placed_node *node;
    int rounds;     /* at the most; 0: there is none */
    bool on_mocks;  /* its body may be done there, */
    bool exchanges; /* and after each round data of two handles is exchanged */
    trl_graph *body;
} placed_call;

typedef struct placed_node {
    const struct placed_graph *graph;
    int index;
    char name[16];
    unsigned flags;
    bool on_mocks; /* has a variant for them */
    int chunks, polls, phase, type, priority, delay_us;
    placed_access access[DATA_ACCESSES];
    int naccesses;
    int before[PLACED_BEFORE], nbefore;
    int lock[PLACED_WANTS], nlocks, use[PLACED_WANTS], nuses;
    int signals_task, signals;
    int spawner, first_child, children; /* children are done one after the other */
    placed_call call[2];                /* and one that is its body */
    int exchanged[2];                   /* by calls; NONE: nothing is */
    trl_task task;
    trl_spawn_access spawn_access[DATA_ACCESSES];
} placed_node;

typedef struct placed_graph {
    uint64_t seed, state;
    trl_graph *graph;
    int nhandles, nresources, phases, own, count;
    int inner;     /* tasks of bodies, and ends of rounds */
    bool messages; /* many poll tasks, and nothing but data of few tasks each that orders them */
    data_handle handle[DATA_HANDLES];
    int follows[DATA_HANDLES]; /* the handle whose data after a run is this one's before the next */
    struct {
        int parent;
        trl_resource name;
    } resource[PLACED_RESOURCES];
    placed_node node[DATA_NODES];
} placed_graph;

static const data_handle *data_handles(const placed_graph *graph)
{
    return graph->handle;
}

/* ---- what tasks do ---- */

static inline void change_word(uint64_t *word, const placed_access *a, uint64_t salt, int i)
{
    switch (a->mode) {
    case TRL_READ:
        return;
    case TRL_WRITE:
        *word = data_mix(salt, (uint64_t)i);
        return;
    case TRL_READ_WRITE:
        *word = data_mix(*word, salt);
        return;
    case TRL_WRITE_PART:
        if (i % DATA_PARTS == a->part) *word = data_mix(salt, (uint64_t)i);
        return;
    case TRL_ADD:
        __atomic_fetch_add(word, data_mix(salt, (uint64_t)i), __ATOMIC_RELAXED);
        return;
    }
}

/* All that the task writes depends on all that it reads. */
static inline void work_on_data(const placed_node *n, data_frame *f, int space, int chunk, int chunks)
{
    const placed_graph *g = n->graph;
    uint64_t sum = (uint64_t)n->index;
    for (int a = 0; a < n->naccesses; ++a) {
        const data_handle *h = &g->handle[n->access[a].handle];
        for (int i = 0; n->access[a].mode == TRL_READ && i < h->words; ++i)
            sum = data_mix(sum, *data_word(f, h, n->access[a].handle, space, i));
    }
    if (chunk == 0) f->sum[n->index] = sum;
    for (int a = 0; a < n->naccesses; ++a) {
        const data_handle *h = &g->handle[n->access[a].handle];
        for (int i = chunk; n->access[a].mode != TRL_READ && i < h->words; i += chunks)
            change_word(data_word(f, h, n->access[a].handle, space, i), &n->access[a], sum, i);
    }
}

/* Nobody may need any more what a task that writes a handle alone finds in other spaces. */
static inline void poison_others(const placed_node *n, const data_frame *f, int space)
{
    for (int a = 0; a < n->naccesses; ++a)
        for (int s = 0; s < DATA_SPACES; ++s)
            if (s != space && (n->access[a].mode == TRL_WRITE || n->access[a].mode == TRL_READ_WRITE))
                poison_data(f, &n->graph->handle[n->access[a].handle], n->access[a].handle, s);
}

static trl_err run_placed_node(void *data, const trl_task_args *args, bool *done);

static inline trl_err spawn_placed_node(placed_node *n, data_frame *f, trl_run *run)
{
    const placed_graph *g = n->graph;
    trl_resource locks[PLACED_WANTS], uses[PLACED_WANTS];
    const bool first = n->index == g->node[n->spawner].first_child;
    for (int k = 0; k < n->nlocks; ++k) locks[k] = g->resource[n->lock[k]].name;
    for (int k = 0; k < n->nuses; ++k) uses[k] = g->resource[n->use[k]].name;
    const trl_spawn_desc desc = {.name = n->name,
                                 .variant = {[TRL_KIND_CPU] = {run_placed_node}, [TRL_KIND_MOCK] = {run_placed_node}},
                                 .data = n,
                                 .flags = n->flags,
                                 .type = n->type,
                                 .priority = n->priority,
                                 .nwaits = !first,
                                 .waits = &f->done[n->index - !first],
                                 .nlocks = n->nlocks,
                                 .locks = locks,
                                 .nuses = n->nuses,
                                 .uses = uses,
                                 .naccesses = n->naccesses,
                                 .accesses = n->spawn_access};
    return trl_run_spawn(run, &desc, &f->done[n->index]);
}

static inline void wait_us(int us)
{
    const double until = trli_clock() + 1e-6 * us;
    while (us > 0 && trli_clock() < until) continue;
}

static inline trl_err do_placed_node(placed_node *n, const trl_task_args *args)
{
    data_frame *f = args->frame;
    placed_graph *g = (placed_graph *)n->graph;
    trl_err err = TRL_OK;
    atomic_fetch_add_explicit(&f->calls[n->index], 1, memory_order_relaxed); /* read when the run is over */
    if (args->failed) return TRL_OK; /* other tasks may have been left out, also those that order this one */
    atomic_store_explicit(&f->where[n->index], args->space + 1, memory_order_relaxed);
    wait_us(n->delay_us);
    if (args->chunk == 0) poison_others(n, f, args->space);
    work_on_data(n, f, args->space, args->chunk, args->chunks);
    if (args->chunk > 0) return TRL_OK;
    for (int k = 0; k < n->nlocks; ++k) ++f->locked[n->lock[k]];
    for (int k = 0; k < n->children; ++k) TRL_TRY(spawn_placed_node(&g->node[n->first_child + k], f, args->run));
    if (n->signals_task != NONE) TRL_TRY(trl_run_signal_task(args->run, g->node[n->signals_task].task, 1));
    if (f->cancel_at == n->index) trl_graph_cancel(g->graph);
    if (f->fail_at == n->index) err = TRL_ERR_NUMERICS;
done:
    return err;
}

/* Whether a poll task follows all that were added before it, as if other ranks waited for their messages before they
 * send its own. With phases an earlier task may come later; one that waits may hold no lock. */
static inline bool in_order(const placed_node *n)
{
    return n->polls > 0 && n->index < n->graph->own && n->graph->phases == 0 && n->nlocks == 0 && n->nuses == 0;
}

static inline bool waits_for_earlier(const placed_node *n, const data_frame *f)
{
    for (int i = 0; in_order(n) && i < n->index; ++i)
        if (in_order(&n->graph->node[i]) && atomic_load_explicit(&f->calls[i], memory_order_relaxed) == 0) return true;
    return false;
}

static trl_err run_placed_node(void *data, const trl_task_args *args, bool *done)
{
    placed_node *n = data;
    data_frame *f = args->frame;
    trl_err err = TRL_OK;
    const bool whole = args->chunks == 1 && (args->space > 0 || n->flags & TRL_TASK_WHOLE);
    atomic_fetch_add(&f->inside, 1);
    if (atomic_load(&f->over)) atomic_fetch_add(&f->late, 1);
    if (args->chunks != n->chunks && !whole) atomic_fetch_add(&f->wrong, 1);
    if (n->polls > 0 && app_below(&(uint64_t){(uint64_t)(trli_clock() * 1e9)}, n->polls + 1) > 0)
        *done = false;
    else if (!args->failed && waits_for_earlier(n, f))
        *done = false;
    else
        err = do_placed_node(n, args);
    atomic_fetch_sub(&f->inside, 1);
    return err;
}

/* How often a node's work is done in a run. */
static inline int times_done(const placed_node *n)
{
    int times = 1;
    for (int k = 0; k < 2; ++k) times *= n->call[k].rounds > 0 ? n->call[k].rounds : 1;
    return times;
}

static inline bool is_call(const placed_node *n)
{
    return n->call[0].rounds > 0;
}

/* Whether mock devices may do the work of a call. */
static inline bool is_open(const placed_node *n)
{
    return is_call(n) && n->call[0].on_mocks && (n->call[1].rounds == 0 || n->call[1].on_mocks);
}

/* Whether data is exchanged when a node's work was done so many times. */
static inline bool exchanges(const placed_node *n, int times)
{
    const int inner = n->call[1].rounds > 0 ? n->call[1].rounds : 1;
    return (n->call[1].exchanges ^ (n->call[0].exchanges && times % inner == 0)) & 1;
}

static inline void exchange_data(const placed_node *n, data_frame *f)
{
    const int a = n->exchanged[0], b = n->exchanged[1];
    const uint32_t valid = f->valid[a];
    f->valid[a] = f->valid[b];
    f->valid[b] = valid;
    for (int s = 0; s < DATA_SPACES; ++s)
        for (int k = 0; k < DATA_BOXES; ++k) {
            uint64_t *at = f->at[s][a][k];
            f->at[s][a][k] = f->at[s][b][k];
            f->at[s][b][k] = at;
        }
}

#endif
