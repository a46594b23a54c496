/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* A random graph beside a plain loop, run by run. Included after placed_graph.h. */
#ifndef PLACED_PAIR_H
#define PLACED_PAIR_H

typedef struct pair {
    placed_graph *g;
    data_frame *f, *plain;
    uint64_t resets;
    int64_t rounds, exchanges; /* of calls, that devices did; those among them after which data was exchanged */
    char fault[200];
} pair;

static void fault(pair *p, const char *what, long long a, long long b)
{
    if (!p->fault[0])
        snprintf(p->fault, sizeof p->fault, "seed %llu: %s %lld %lld", (unsigned long long)p->g->seed, what, a, b);
}

static pair make_pair(uint64_t seed)
{
    placed_graph *g = make_placed_graph(seed);
    return (pair){.g = g, .f = new_data_frame(g, g->nhandles, seed), .plain = new_data_frame(g, g->nhandles, seed)};
}

static void free_frames(pair *p)
{
    free_data_frame(&p->f, p->g->nhandles);
    free_data_frame(&p->plain, p->g->nhandles);
}

static void free_pair(pair *p)
{
    free_frames(p);
    free_placed_graph(&p->g);
}

static void check_data(pair *p)
{
    const placed_graph *g = p->g;
    for (int h = 0; h < g->nhandles; ++h)
        for (int s = 0; s < DATA_SPACES; ++s)
            for (int i = 0; p->f->valid[h] >> s & 1 && i < g->handle[h].words; ++i)
                if (*data_word(p->f, &g->handle[h], h, s, i) != *data_word(p->plain, &g->handle[h], h, 0, i))
                    fault(p, "wrong data of a handle, in space", h, s);
    for (int i = 0; i < g->count; ++i)
        if (p->f->sum[i] != p->plain->sum[i]) fault(p, "wrong data was read by task", i, 0);
}

/* Which executors may do what, and that each task is called once, in all its chunks. */
static void check_places(pair *p)
{
    const unsigned workers_only = TRL_TASK_POLL | TRL_TASK_SCOPE | TRL_TASK_ALWAYS;
    for (int i = 0; i < p->g->count; ++i) {
        const placed_node *n = &p->g->node[i];
        const int space = atomic_load(&p->f->where[i]) - 1, calls = atomic_load(&p->f->calls[i]);
        const bool once = calls == 1 && (space > 0 || n->flags & TRL_TASK_WHOLE);
        if (calls != n->chunks * times_done(n) && !once) fault(p, "a task, and its calls:", i, calls);
        const bool held = n->phase != NONE || n->nlocks + n->nuses + n->signals > 0 || n->flags & workers_only;
        const bool may = is_open(n) || (n->on_mocks && !held);
        if (space > 0 && (!may || i >= p->g->own)) fault(p, "a task, and its space:", i, space);
    }
}

static void check_locks(pair *p)
{
    int64_t locked[PLACED_RESOURCES] = {0};
    for (int i = 0; i < p->g->count; ++i)
        for (int k = 0; k < p->g->node[i].nlocks; ++k) locked[p->g->node[i].lock[k]] += times_done(&p->g->node[i]);
    for (int r = 0; r < p->g->nresources; ++r)
        if (p->f->locked[r] != locked[r]) fault(p, "times that a resource was locked:", p->f->locked[r], locked[r]);
}

static void count_rounds(pair *p)
{
    for (int i = 0; i < p->g->own; ++i) {
        const placed_node *n = &p->g->node[i];
        for (int k = 0; is_open(n) && atomic_load(&p->f->where[i]) > 1 && k < times_done(n); ++k) {
            ++p->rounds;
            p->exchanges += exchanges(n, k + 1);
        }
    }
}

static void check_well(pair *p, const uint32_t *before)
{
    uint32_t after[DATA_HANDLES];
    do_plainly(p->g, p->plain);
    check_places(p);
    check_locks(p);
    count_rounds(p);
    follow_values(p->g, p->f, before, after);
    if (p->f->parted) fault(p, "tasks make parts of a value elsewhere:", p->f->parted, 0);
    for (int h = 0; h < p->g->nhandles; ++h)
        if (p->g->handle[h].nboxes > 0 && p->f->valid[h] != after[h])
            fault(p, "spaces where data is valid, and where it should be:", p->f->valid[h], after[h]);
    check_data(p);
    if (atomic_load(&p->f->wrong)) fault(p, "calls found things wrong:", atomic_load(&p->f->wrong), 0);
}

static void begin(pair *p)
{
    data_frame *f = p->f;
    poison_invalid(f, p->g->nhandles);
    for (int i = 0; i < p->g->count; ++i) {
        atomic_store(&f->calls[i], 0);
        atomic_store(&f->where[i], 0);
    }
    memset(f->locked, 0, sizeof f->locked);
    atomic_store(&f->over, false);
}

static trl_err run_frame(pair *p, trl_workers *workers)
{
    begin(p);
    const trl_err err = trl_graph_run(p->g->graph, workers, p->f);
    if (atomic_load(&p->f->inside)) fault(p, "calls go on after the run:", atomic_load(&p->f->inside), 0);
    atomic_store(&p->f->over, true);
    if (atomic_load(&p->f->late)) fault(p, "calls were made after a run:", atomic_load(&p->f->late), 0);
    return err;
}

static void run_well(pair *p, trl_workers *workers)
{
    uint32_t before[DATA_HANDLES];
    memcpy(before, p->f->valid, sizeof before);
    const trl_err err = run_frame(p, workers);
    if (err != TRL_OK)
        fault(p, test_messages(), err, 0);
    else
        check_well(p, before);
    rotate_data(p->g, p->f);
    rotate_data(p->g, p->plain);
}

static void must(const pair *p)
{
    if (p->fault[0]) ck_abort_msg("%s", p->fault);
}

#endif
