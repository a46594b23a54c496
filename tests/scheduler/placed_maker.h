/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Makes random graphs of tasks on data, and of calls. Included after placed_graph.h. */
#ifndef PLACED_MAKER_H
#define PLACED_MAKER_H

#include "calls_impl.h"

/* What is known of a handle while tasks are added. */
typedef struct handle_use {
    int mode, parts; /* of the last access; parts of a group written so far */
    int latest;      /* phase, of all that touch it and come before */
} handle_use;

typedef struct placed_maker {
    placed_graph *g;
    handle_use use[DATA_HANDLES];
    int latest[DATA_NODES];
} placed_maker;

static inline bool one_in(placed_graph *g, int n)
{
    return app_below(&g->state, n) == 0;
}

static inline void choose_wants(placed_graph *g, placed_node *n)
{
    if (g->nresources == 0 || !one_in(g, 5)) return;
    n->nlocks = app_below(&g->state, one_in(g, 3) ? PLACED_WANTS : 2);
    n->nuses = app_below(&g->state, one_in(g, 3) ? PLACED_WANTS : 2);
    const int first = app_below(&g->state, g->nresources);
    if (n->nlocks > g->nresources) n->nlocks = g->nresources;
    for (int k = 0; k < n->nlocks; ++k) n->lock[k] = (first + k) % g->nresources;
    for (int k = 0; k < n->nuses; ++k) n->use[k] = app_below(&g->state, g->nresources);
}

static inline placed_node *new_placed_node(placed_graph *g, int spawner)
{
    placed_node *n = &g->node[g->count];
    *n = (placed_node){.graph = g,
                       .index = g->count++,
                       .chunks = 1,
                       .phase = NONE,
                       .type = PLACED_FREE_TYPE + app_below(&g->state, 20),
                       .signals_task = NONE,
                       .exchanged = {NONE, NONE},
                       .spawner = spawner,
                       .priority = app_below(&g->state, 3) - 1,
                       .delay_us = one_in(g, 6) ? app_below(&g->state, 40) : 0};
    snprintf(n->name, sizeof n->name, "n%d", n->index);
    return n;
}

static inline void choose_shape(placed_graph *g, placed_node *n)
{
    n->on_mocks = !one_in(g, 4);
    if (one_in(g, g->messages ? 2 : 10)) {
        n->flags |= TRL_TASK_POLL;
        n->polls = 1 + app_below(&g->state, 3);
    } else if (one_in(g, 4)) {
        n->chunks = 2 + app_below(&g->state, DATA_CHUNKS - 1);
        if (one_in(g, 2)) n->flags |= TRL_TASK_WHOLE;
    }
    if (one_in(g, 10)) n->flags |= TRL_TASK_ALWAYS;
    if (g->phases && one_in(g, 3)) {
        n->phase = app_below(&g->state, g->phases);
        n->type = n->phase * PLACED_TYPES + app_below(&g->state, PLACED_TYPES);
    }
}

/* A call, whose body does the node's work in each round, or calls another one that does. */
static inline void choose_call(placed_graph *g, placed_node *n)
{
    if (n->polls > 0 || n->chunks > 1 || !one_in(g, 6)) return;
    n->on_mocks = false;
    n->flags = 0;
    n->call[0].rounds = 1 + app_below(&g->state, PLACED_ROUNDS);
    if (one_in(g, 3)) n->call[1].rounds = 1 + app_below(&g->state, PLACED_ROUNDS);
}

static inline bool same_shape(const data_handle *a, const data_handle *b)
{
    return a->part == b->part && a->nboxes == b->nboxes && memcmp(a->box, b->box, sizeof a->box) == 0;
}

/* Devices may do bodies of calls that make alone what they write, and only what is written may be exchanged. */
static inline void choose_bodies(placed_graph *g, placed_node *n)
{
    bool may = is_call(n);
    for (int a = 0; a < n->naccesses; ++a)
        may &= n->access[a].mode < TRL_WRITE_PART || g->handle[n->access[a].handle].nboxes == 0;
    for (int k = 0; k < 2; ++k) {
        n->call[k].node = n;
        may = n->call[k].on_mocks = may && n->call[k].rounds > 0 && !one_in(g, 4);
    }
    for (int a = 0; a < n->naccesses; ++a)
        for (int b = 0; b < a && n->call[0].on_mocks; ++b)
            if (n->access[a].mode != TRL_READ && n->access[b].mode != TRL_READ && n->access[a].mode < TRL_WRITE_PART &&
                n->access[b].mode < TRL_WRITE_PART &&
                same_shape(&g->handle[n->access[a].handle], &g->handle[n->access[b].handle])) {
                n->exchanged[0] = n->access[a].handle;
                n->exchanged[1] = n->access[b].handle;
            }
    for (int k = 0; k < 2; ++k) n->call[k].exchanges = n->call[k].on_mocks && n->exchanged[0] != NONE && !one_in(g, 3);
}

static inline bool touches(const placed_node *n, int h)
{
    for (int a = 0; a < n->naccesses; ++a)
        if (n->access[a].handle == h) return true;
    return false;
}

/* Groups of several tasks are likely: the mode of the last access, one time in two. */
static inline int choose_mode(placed_graph *g, const handle_use *use)
{
    int mode = app_below(&g->state, 7);
    if (mode > TRL_ADD) mode = TRL_READ;
    if (use->mode >= TRL_WRITE_PART && one_in(g, 2)) mode = use->mode;
    if (mode == TRL_WRITE_PART && use->mode == mode && use->parts == DATA_PARTS) mode = TRL_READ;
    return mode;
}

static inline void add_access(placed_maker *m, placed_node *n, int h, int mode)
{
    placed_graph *g = m->g;
    handle_use *use = &m->use[h];
    if (touches(n, h) || (n->phase != NONE && use->latest > n->phase)) return;
    use->parts = mode == TRL_WRITE_PART ? (use->mode == mode ? use->parts + 1 : 1) : 0;
    use->mode = mode;
    n->access[n->naccesses++] = (placed_access){h, (trl_access)mode, use->parts - 1};
    g->handle[h].written |= mode != TRL_READ;
    if (use->latest > m->latest[n->index]) m->latest[n->index] = use->latest;
}

/* Of a call, old and new values. */
static inline void choose_exchanged(placed_maker *m, placed_node *n)
{
    placed_graph *g = m->g;
    const int h = app_below(&g->state, g->nhandles);
    if (g->follows[h] == h) return;
    add_access(m, n, h, TRL_READ_WRITE);
    add_access(m, n, g->follows[h], one_in(g, 2) ? TRL_READ_WRITE : TRL_WRITE);
}

static inline void choose_accesses(placed_maker *m, placed_node *n)
{
    placed_graph *g = m->g;
    if (is_call(n)) choose_exchanged(m, n);
    const int accesses = app_below(&g->state, DATA_ACCESSES - n->naccesses);
    for (int a = 0; a < accesses; ++a) {
        const int h = app_below(&g->state, g->nhandles);
        add_access(m, n, h, choose_mode(g, &m->use[h]));
    }
}

/* A message is received, sent, or passed on; a task makes one handle's data of another one's. */
static inline void choose_message(placed_maker *m, placed_node *n)
{
    placed_graph *g = m->g;
    const int first = app_below(&g->state, g->nhandles), mode = TRL_READ + app_below(&g->state, 3);
    add_access(m, n, first, n->polls > 0 ? mode : TRL_READ);
    if (n->polls == 0) add_access(m, n, app_below(&g->state, g->nhandles), TRL_WRITE);
}

static inline void choose_order(placed_maker *m, placed_node *n)
{
    placed_graph *g = m->g;
    const int wanted = app_below(&g->state, 2 * PLACED_BEFORE) - PLACED_BEFORE;
    for (int k = 0; n->index > 0 && k < wanted; ++k) {
        const int before = app_below(&g->state, n->index);
        if (n->phase != NONE && m->latest[before] > n->phase) continue;
        n->before[n->nbefore++] = before;
        if (m->latest[before] > m->latest[n->index]) m->latest[n->index] = m->latest[before];
    }
    for (int k = 0; n->index > 0 && one_in(g, 8) && !is_call(n) && k < 2; ++k) {
        const int before = app_below(&g->state, n->index);
        placed_node *other = &g->node[before];
        if (is_call(other) || (n->phase != NONE && m->latest[before] > n->phase) || other->signals_task != NONE)
            continue;
        other->signals_task = n->index;
        other->on_mocks = false; /* devices cannot signal */
        ++n->signals;
        if (m->latest[before] > m->latest[n->index]) m->latest[n->index] = m->latest[before];
    }
}

static inline void make_placed_node(placed_maker *m)
{
    placed_graph *g = m->g;
    placed_node *n = new_placed_node(g, NONE);
    choose_shape(g, n);
    choose_call(g, n);
    m->latest[n->index] = n->phase;
    choose_wants(g, n);
    if (g->messages) {
        choose_message(m, n);
    } else {
        choose_accesses(m, n);
        choose_order(m, n);
    }
    choose_bodies(g, n);
    for (int a = 0; a < n->naccesses; ++a) {
        handle_use *use = &m->use[n->access[a].handle];
        if (m->latest[n->index] > use->latest) use->latest = m->latest[n->index];
    }
}

/* Tasks in the scope of one that has their data. */
static inline void make_placed_children(placed_graph *g, placed_node *n)
{
    n->flags = (n->flags | TRL_TASK_SCOPE) & ~(unsigned)TRL_TASK_WHOLE;
    n->chunks = 1;
    n->on_mocks = false;
    n->first_child = g->count;
    n->children = 1 + app_below(&g->state, PLACED_CHILDREN);
    for (int k = 0; k < n->children; ++k) {
        placed_node *child = new_placed_node(g, n->index);
        child->phase = n->phase;
        child->type = n->type;
        choose_wants(g, child);
        for (int a = 0; a < n->naccesses; ++a)
            if (n->access[a].mode <= TRL_READ_WRITE || n->access[a].mode == TRL_ADD)
                child->access[child->naccesses++] = n->access[a];
        for (int a = 0; a < child->naccesses; ++a)
            child->spawn_access[a] = (trl_spawn_access){g->handle[child->access[a].handle].name, child->access[a].mode};
    }
}

static trl_err end_placed_round(void *data, const trl_task_args *args, int64_t round, bool *again)
{
    const placed_call *call = data;
    data_frame *f = args->frame;
    if (call->exchanges) exchange_data(call->node, f);
    *again = round < call->rounds;
    return TRL_OK;
}

static inline void add_placed_call(placed_graph *g, trl_graph *graph, placed_node *n, int depth, trl_task *task)
{
    const trl_call_desc desc = {.name = n->name,
                                .body = n->call[depth].body,
                                .data = &n->call[depth],
                                .again = end_placed_round,
                                .rounds = PLACED_ROUNDS,
                                .type = n->type,
                                .priority = n->priority};
    trl_graph_stats stats;
    trl_graph_get_stats(n->call[depth].body, &stats);
    g->inner += (int)(depth == 0 ? stats.tasks + 1 : 0); /* the inner body's are among those of the outer one */
    app_must(trl_graph_add_call(graph, &desc, task));
}

/* With handles of its own for the data, by the same keys. */
static inline void make_placed_body(placed_graph *g, placed_node *n, int depth)
{
    const trl_task_desc desc = {
        .name = n->name, .variant = {{run_placed_node}, {NULL}, {run_placed_node}}, .data = n, .chunks = 1};
    trl_graph *body = n->call[depth].body = app_graph("body");
    const trl_graph_memory memory = {g, provide_data, locate_data, valid_data};
    const bool calls = depth == 0 && n->call[1].rounds > 0;
    trl_task task;
    if (calls) {
        make_placed_body(g, n, 1);
        add_placed_call(g, body, n, 1, &task);
    } else {
        app_must(trl_graph_add_task(body, &desc, &task));
    }
    for (int a = 0; a < n->naccesses; ++a) {
        const int number = n->access[a].handle;
        const data_handle *h = &g->handle[number];
        const trl_handle_desc handle = {"data", sizeof(uint64_t) * (size_t)h->words, number,
                                        DATA_KEY + DATA_KEY_STEP * number};
        trl_handle name;
        app_must(trl_graph_add_handle(body, &handle, &name));
        app_must(trl_graph_add_part_access(body, task, name, n->access[a].mode, h->part));
    }
    ck_ok(trl_graph_freeze(body));
    if (n->call[depth].on_mocks) ck_ok(trl_graph_set_memory(body, &memory));
}

static inline void add_placed_node(placed_graph *g, placed_node *n)
{
    const trl_task_desc desc = {
        .name = n->name,
        .variant = {[TRL_KIND_CPU] = {run_placed_node}, [TRL_KIND_MOCK] = {n->on_mocks ? run_placed_node : NULL}},
        .data = n,
        .chunks = n->chunks,
        .flags = n->flags,
        .type = n->type,
        .priority = n->priority,
        .signals = n->signals};
    if (is_call(n)) {
        make_placed_body(g, n, 0);
        add_placed_call(g, g->graph, n, 0, &n->task);
    } else {
        app_must(trl_graph_add_task(g->graph, &desc, &n->task));
    }
    for (int a = 0; a < n->naccesses; ++a) {
        const data_handle *h = &g->handle[n->access[a].handle];
        app_must(trl_graph_add_part_access(g->graph, n->task, h->name, n->access[a].mode, h->part));
    }
    for (int k = 0; k < n->nbefore; ++k)
        app_must(trl_graph_add_dependency(g->graph, g->node[n->before[k]].task, n->task));
    for (int k = 0; k < n->nlocks; ++k) app_must(trl_graph_add_lock(g->graph, n->task, g->resource[n->lock[k]].name));
    for (int k = 0; k < n->nuses; ++k) app_must(trl_graph_add_use(g->graph, n->task, g->resource[n->use[k]].name));
}

/* Some handles have data of one shape, which goes round. */
static inline void choose_rotations(placed_graph *g)
{
    for (int h = 0; h < g->nhandles; ++h) {
        make_data_handle(&g->state, &g->handle[h]);
        g->follows[h] = h;
    }
    for (int h = 1; one_in(g, 2) && h < g->nhandles; ++h) {
        const int other = app_below(&g->state, h);
        g->handle[h] = g->handle[other];
        g->follows[h] = g->follows[other];
        g->follows[other] = h;
    }
}

static inline void add_rotations(placed_graph *g)
{
    bool added[DATA_HANDLES] = {0};
    for (int h = 0; h < g->nhandles; ++h) {
        trl_handle cycle[DATA_HANDLES];
        int n = 0;
        for (int k = h; !added[k]; k = g->follows[k]) {
            added[k] = true;
            cycle[DATA_HANDLES - ++n] = g->handle[k].name; /* backwards */
        }
        if (n > 1) app_must(trl_graph_rotate(g->graph, n, &cycle[DATA_HANDLES - n]));
    }
}

static inline void add_placed_names(placed_graph *g)
{
    choose_rotations(g);
    for (int h = 0; h < g->nhandles; ++h) {
        const trl_handle_desc desc = {.name = "handle",
                                      .bytes = sizeof(uint64_t) * (size_t)g->handle[h].words,
                                      .block = h,
                                      .key = DATA_KEY + DATA_KEY_STEP * h};
        app_must(trl_graph_add_handle(g->graph, &desc, &g->handle[h].name));
    }
    add_rotations(g);
    for (int r = 0; r < g->nresources; ++r) {
        const int parent = r == 0 || one_in(g, 2) ? NONE : app_below(&g->state, r);
        g->resource[r].parent = parent;
        g->resource[r].name =
            app_resource(g->graph, "resource", parent == NONE ? TRL_NO_PARENT : g->resource[parent].name);
    }
    for (int p = 0; p < g->phases; ++p)
        app_must(trl_graph_add_phase(g->graph, "phase", p * PLACED_TYPES, (p + 1) * PLACED_TYPES));
}

static inline placed_graph *make_placed_graph(uint64_t seed)
{
    placed_graph *g = app_calloc(1, sizeof *g);
    const trl_graph_memory memory = {g, provide_data, locate_data, valid_data};
    placed_maker m = {.g = g};
    g->seed = g->state = seed;
    g->graph = app_graph("placed");
    g->messages = one_in(g, 4);
    g->nhandles = g->messages ? DATA_HANDLES : 1 + app_below(&g->state, DATA_HANDLES);
    g->nresources = !g->messages && one_in(g, 2) ? app_below(&g->state, PLACED_RESOURCES + 1) : 0;
    g->phases = !g->messages && one_in(g, 4) ? 2 + app_below(&g->state, PLACED_PHASES - 1) : 0;
    g->own = 1 + app_below(&g->state, g->messages || one_in(g, 3) ? DATA_NODES / 2 : 20);
    add_placed_names(g);
    for (int h = 0; h < g->nhandles; ++h) m.use[h] = (handle_use){.mode = TRL_READ, .latest = NONE};
    while (g->count < g->own) make_placed_node(&m);
    for (int i = 0; i < g->own && !g->messages && one_in(g, 2); ++i) {
        placed_node *n = &g->node[app_below(&g->state, g->own)];
        if (n->children == 0 && !is_call(n) && g->count + PLACED_CHILDREN <= DATA_NODES) make_placed_children(g, n);
    }
    for (int i = 0; i < g->own; ++i) add_placed_node(g, &g->node[i]);
    ck_ok(trl_graph_freeze(g->graph));
    ck_ok(trl_graph_set_memory(g->graph, &memory));
    return g;
}

/* What a call copies in its rounds, and where its body leaves what it writes, is in no plan. */
static inline int count_open(const placed_graph *g)
{
    int n = 0;
    for (int32_t c = 0; c < g->graph->calls.count; ++c) n += trli_call_is_open(g->graph, c);
    return n;
}

static inline void free_placed_graph(placed_graph **graph)
{
    trl_graph_destroy(&(*graph)->graph);
    for (int i = 0; i < (*graph)->own; ++i)
        for (int k = 0; k < 2; ++k) trl_graph_destroy(&(*graph)->node[i].call[k].body);
    free(*graph);
    *graph = NULL;
}

/* Between two runs data of handles goes round. */
static inline void rotate_data(const placed_graph *g, data_frame *f)
{
    const data_frame old = *f;
    for (int h = 0; h < g->nhandles; ++h) {
        f->valid[h] = old.valid[g->follows[h]];
        for (int s = 0; s < DATA_SPACES; ++s) memcpy(f->at[s][h], old.at[s][g->follows[h]], sizeof f->at[s][h]);
    }
}

#endif
