/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Random task graphs with everything in them: dependencies, accesses in all modes, locks and uses in a forest of
 * resources, wide, poll and spawned tasks, events, signals, scopes, phases, priorities, and calls of such graphs, some
 * of which share a room where dependencies keep them from being there at once. Tasks take numbers from the clock of
 * their frame when they start and end. check_graph.h says whether a run was right. Included after app_support.h. */
#ifndef RANDOM_GRAPH_H
#define RANDOM_GRAPH_H

#include <sched.h>
#include <stdatomic.h>

enum {
    MOST_RESOURCES = 10,
    MOST_PHASES = 3,
    MOST_CHUNKS = 5,
    MOST_BEFORE = 4,
    MOST_WANTS = 8,
    MOST_HANDLES = 6,
    MOST_ACCESSES = 3,
    MOST_CHILDREN = 5,
    MOST_NODES = 600,
    MOST_ROUNDS = 4, /* of a call, */
    MOST_CALLS = 2,  /* one inside of the other */
    MOST_WORKERS = 16,
    NONE = -1,
};

typedef struct random_resource {
    int parent; /* or NONE */
    trl_resource name;
} random_resource;

typedef struct random_access {
    int handle;
    trl_access mode;
    int group; /* accesses of a handle that have one come in any order, before those of the next */
} random_access;

typedef struct random_node {
    struct random_graph *graph;
    int index;
    char name[16];
    unsigned flags;
    int chunks, polls, type, phase, priority; /* phase: NONE: any time */
    int before[MOST_BEFORE], nbefore;         /* predecessors, or earlier siblings whose completion it waits for */
    int lock[MOST_WANTS], nlocks, use[MOST_WANTS], nuses; /* resources */
    random_access access[MOST_ACCESSES];
    int naccesses;
    int spawner;                                   /* or NONE: of the graph */
    int first_child, children;                     /* nodes that it spawns, in this order */
    int event_count;                               /* of an event that it creates before its children; 0: none */
    bool signals_own;                              /* signals the event itself when its children are spawned */
    bool waits_event, signals_event, calls_signal; /* of its spawner; signals when complete, or by a call */
    int signals_task;                              /* node of the graph that it signals, or NONE */
    int64_t signals;                               /* that a node of the graph waits for */
    struct random_graph *body;                     /* of a call; else NULL */
    int64_t rounds;                                /* of a call */
    int room;                                      /* of a call: memory, which it has for itself */
    trl_task task;                                 /* of the graph */
    trl_err result;                                /* of its last call */
} random_node;

typedef struct random_graph {
    uint64_t seed, state;
    trl_graph *graph;
    random_node *nodes; /* those of the graph first */
    int own, count;     /* nodes of the graph; all */
    int depth;          /* calls around it */
    random_resource resources[MOST_RESOURCES];
    int nresources, nhandles, phases;
    int shared_rooms;         /* calls less rooms */
    bool *apart;              /* [own][own] calls of which freeze asks whether they may go on at once */
    int cancel_at;            /* node that cancels the run, or NONE */
    struct random_gate *gate; /* or NULL: node 0 stays inside until another thread has cancelled the run */
} random_graph;

/* What a run of a node changes. */
typedef struct node_run {
    trl_event done, event; /* of a spawned node; that it created */
    bool whole;            /* it was called once for all its chunks */
    int calls[MOST_CHUNKS];
    int64_t start[MOST_CHUNKS], end[MOST_CHUNKS]; /* 0: never. Poll tasks: of the first and the last call */
} node_run;

typedef struct random_frame {
    random_graph *graph;
    node_run *run;               /* [graph->count] */
    struct random_frame **body;  /* [graph->own] of calls */
    int *room;                   /* [graph->own] calls that are in a room: plain, too */
    struct random_frame *around; /* of the call; or NULL */
    _Atomic int64_t clock;
    _Atomic int wrong;        /* things found wrong while it ran */
    int inside[MOST_WORKERS]; /* functions being called by a worker: plain, for a worker is one thread */
    int64_t
        locked[MOST_RESOURCES]; /* times, by who locked it or one above: plain, for ThreadSanitizer and lost updates */
    int64_t written[MOST_HANDLES]; /* times, by who had it alone: plain, too */
} random_frame;

typedef struct random_gate {
    _Atomic bool reached, cancelled;
} random_gate;

/* ---- what tasks do ---- */

/* Relaxed: the clock must order only what the runtime orders, not help it. A call that happens before another one gets
 * a smaller number all the same, for all changes of one atomic have one order. */
static inline int64_t random_frame_now(random_frame *f)
{
    return atomic_fetch_add_explicit(&f->clock, 1, memory_order_relaxed) + 1;
}

static inline bool is_below(const random_graph *g, int resource, int above)
{
    while (resource != NONE && resource != above) resource = g->resources[resource].parent;
    return resource == above;
}

static inline void random_frame_wrong(random_frame *f, bool wrong)
{
    if (wrong) atomic_fetch_add_explicit(&f->wrong, 1, memory_order_relaxed); /* relaxed: read after the run */
}

static inline bool locks_resource(const random_node *n, int resource)
{
    for (int k = 0; k < n->nlocks; ++k) {
        if (is_below(n->graph, resource, n->lock[k])) return true;
    }
    return false;
}

static inline bool uses_resource(const random_node *n, int resource)
{
    for (int k = 0; k < n->nuses; ++k) {
        if (is_below(n->graph, resource, n->use[k])) return true;
    }
    return false;
}

/* Whether nobody else may be at the data meanwhile. */
static inline bool is_exclusive(trl_access mode)
{
    return mode == TRL_WRITE || mode == TRL_READ_WRITE;
}

/* Plain writes to what is locked or written, plain reads of what is used or shared. */
static inline void touch_what_it_has(const random_node *n, random_frame *f)
{
    const random_graph *g = n->graph;
    for (int r = 0; r < g->nresources; ++r) {
        if (locks_resource(n, r)) {
            ++f->locked[r];
        } else if (uses_resource(n, r)) {
            random_frame_wrong(f, f->locked[r] < 0);
        }
    }
    for (int a = 0; a < n->naccesses; ++a) {
        if (is_exclusive(n->access[a].mode))
            ++f->written[n->access[a].handle];
        else
            random_frame_wrong(f, f->written[n->access[a].handle] < 0);
    }
}

static trl_err run_random_node(void *data, const trl_task_args *args, bool *done);

static inline trl_err spawn_random_node(random_node *n, random_frame *f, trl_run *run)
{
    random_graph *g = n->graph;
    trl_event waits[MOST_BEFORE + 1];
    trl_resource locks[MOST_WANTS], uses[MOST_WANTS];
    int nwaits = 0;
    for (int k = 0; k < n->nbefore; ++k) waits[nwaits++] = f->run[n->before[k]].done;
    if (n->waits_event) waits[nwaits++] = f->run[n->spawner].event;
    for (int k = 0; k < n->nlocks; ++k) locks[k] = g->resources[n->lock[k]].name;
    for (int k = 0; k < n->nuses; ++k) uses[k] = g->resources[n->use[k]].name;
    trl_spawn_desc desc = {.name = n->name,
                           .variant = {{run_random_node}},
                           .data = n,
                           .flags = n->flags,
                           .type = n->type,
                           .priority = n->priority,
                           .nwaits = nwaits,
                           .waits = waits,
                           .signals = n->signals_event ? f->run[n->spawner].event : 0,
                           .nlocks = n->nlocks,
                           .locks = locks,
                           .nuses = n->nuses,
                           .uses = uses};
    return trl_run_spawn(run, &desc, &f->run[n->index].done);
}

static inline trl_err spawn_children(const random_node *n, random_frame *f, trl_run *run)
{
    node_run *own = &f->run[n->index];
    trl_err err = TRL_OK;
    if (n->event_count) TRL_TRY(trl_run_create_event(run, n->event_count, &own->event));
    for (int k = 0; k < n->children; ++k) TRL_TRY(spawn_random_node(&n->graph->nodes[n->first_child + k], f, run));
    if (n->signals_own) TRL_TRY(trl_run_signal(run, own->event, 1));
done:
    return err;
}

/* How often it was to be called, at the least. */
static inline int chunks_of(const random_frame *f, const random_node *n)
{
    return f->run[n->index].whole ? 1 : n->chunks;
}

static inline bool node_complete(const random_frame *f, const random_node *n)
{
    for (int c = 0; c < chunks_of(f, n); ++c) {
        if (f->run[n->index].end[c] == 0) return false;
    }
    return true;
}

/* Relaxed: nothing else is passed on. */
static inline void wait_at_gate(random_gate *gate)
{
    atomic_store_explicit(&gate->reached, true, memory_order_relaxed);
    while (!atomic_load_explicit(&gate->cancelled, memory_order_relaxed)) sched_yield();
}

static inline void begin_random_node(const random_node *n, random_frame *f, const trl_task_args *args)
{
    const random_graph *g = n->graph;
    f->run[n->index].start[args->chunk] = random_frame_now(f);
    if (args->chunk == 0) f->run[n->index].whole = args->chunks == 1 && n->chunks > 1;
    if (g->gate && n->index == 0) wait_at_gate(g->gate);
    /* Plain reads: the runtime alone orders them. After an error predecessors may have been left out. */
    for (int k = 0; k < n->nbefore && !args->failed; ++k)
        random_frame_wrong(f, !node_complete(f, &g->nodes[n->before[k]]));
}

static inline trl_err end_random_node(const random_node *n, random_frame *f, const trl_task_args *args)
{
    const random_graph *g = n->graph;
    trl_err err = TRL_OK;
    if (args->chunk == 0) {
        touch_what_it_has(n, f);
        TRL_TRY(spawn_children(n, f, args->run));
    }
    f->run[n->index].end[args->chunk] = random_frame_now(f);
    if (args->chunk > 0) return TRL_OK;
    if (n->calls_signal) TRL_TRY(trl_run_signal(args->run, f->run[n->spawner].event, 1));
    if (n->signals_task != NONE) TRL_TRY(trl_run_signal_task(args->run, g->nodes[n->signals_task].task, 1));
    if (g->cancel_at == n->index) trl_graph_cancel(g->graph);
    err = n->result;
done:
    return err;
}

static trl_err run_random_node(void *data, const trl_task_args *args, bool *done)
{
    const random_node *n = data;
    random_frame *f = args->frame;
    node_run *run = &f->run[n->index];
    int *inside = &f->inside[args->worker];
    const bool whole = args->chunks == 1 && n->flags & TRL_TASK_WHOLE;
    trl_err err = TRL_OK;
    random_frame_wrong(f, (*inside)++ != 0 || (args->chunks != n->chunks && !whole));
    if (++run->calls[args->chunk] == 1) begin_random_node(n, f, args);
    if (run->calls[args->chunk] <= n->polls) {
        *done = false;
    } else {
        err = end_random_node(n, f, args);
    }
    --*inside;
    return err;
}

/* Whether the tasks of a graph did something wrong in a round of a call (check_graph.h). */
static inline bool random_round_is_wrong(const random_frame *f);

static inline void clear_random_frame(random_frame *f)
{
    /* relaxed: no run is in progress */
    atomic_store_explicit(&f->clock, 0, memory_order_relaxed);
    atomic_store_explicit(&f->wrong, 0, memory_order_relaxed);
    memset(f->locked, 0, sizeof f->locked);
    memset(f->written, 0, sizeof f->written);
    memset(f->run, 0, (size_t)f->graph->count * sizeof *f->run);
    memset(f->room, 0, (size_t)f->graph->own * sizeof *f->room);
}

static trl_err begin_random_call(void *data, const trl_task_args *args, void **frame)
{
    const random_node *n = data;
    random_frame *f = args->frame;
    *frame = f->body[n->index];
    clear_random_frame(*frame);
    if (args->failed && !(n->flags & TRL_TASK_ALWAYS)) return TRL_OK;
    random_frame_wrong(f, f->run[n->index].calls[0]++ != 0 || f->inside[args->worker] != 0);
    if (!args->failed) random_frame_wrong(f, f->room[n->room]++ != 0); /* else some calls have not left theirs */
    begin_random_node(n, f, args);
    return TRL_OK;
}

static trl_err end_random_round(void *data, const trl_task_args *args, int64_t round, bool *again)
{
    const random_node *n = data;
    random_frame *body = args->frame, *f = body->around;
    random_frame_wrong(f, body->graph != n->body || (!args->failed && random_round_is_wrong(body)));
    *again = round < n->rounds;
    if (!*again) {
        if (!args->failed) random_frame_wrong(f, --f->room[n->room] != 0);
        return end_random_node(n, f, args);
    }
    clear_random_frame(body);
    return TRL_OK;
}

/* ---- making graphs ---- */

static inline bool chance(random_graph *g, int one_in)
{
    return app_below(&g->state, one_in) == 0;
}

static inline void make_resources(random_graph *g)
{
    g->nresources = app_below(&g->state, MOST_RESOURCES + 1);
    for (int r = 0; r < g->nresources; ++r) {
        int parent = r == 0 || chance(g, 3) ? NONE : app_below(&g->state, r);
        g->resources[r].parent = parent;
        g->resources[r].name =
            app_resource(g->graph, "resource", parent == NONE ? TRL_NO_PARENT : g->resources[parent].name);
    }
}

static inline random_graph *make_random_body(uint64_t seed, int depth);

static inline random_node *new_random_node(random_graph *g, int spawner)
{
    random_node *n = &g->nodes[g->count];
    *n = (random_node){
        .graph = g, .index = g->count++, .chunks = 1, .spawner = spawner, .phase = NONE, .signals_task = NONE};
    snprintf(n->name, sizeof n->name, "n%d", n->index);
    if (spawner == NONE && g->depth < MOST_CALLS && chance(g, 12)) {
        n->body = make_random_body(app_random(&g->state), g->depth + 1);
        n->rounds = 1 + app_below(&g->state, MOST_ROUNDS);
    } else if (chance(g, 8)) {
        n->flags |= TRL_TASK_POLL;
        n->polls = app_below(&g->state, 4);
    } else if (spawner == NONE && chance(g, 6)) {
        n->chunks = 2 + app_below(&g->state, MOST_CHUNKS - 1);
        if (chance(g, 2)) n->flags |= TRL_TASK_WHOLE;
    }
    if (chance(g, 8)) n->flags |= TRL_TASK_ALWAYS;
    if (!n->body && chance(g, 8)) n->flags |= TRL_TASK_SCOPE;
    n->priority = app_below(&g->state, 3) - 1;
    const int most = chance(g, 6) ? MOST_WANTS : 2;
    if (g->nresources && chance(g, 3)) n->nlocks = 1 + app_below(&g->state, most);
    if (g->nresources && chance(g, 3)) n->nuses = 1 + app_below(&g->state, most);
    for (int k = 0; k < n->nlocks; ++k) n->lock[k] = app_below(&g->state, g->nresources);
    for (int k = 0; k < n->nuses; ++k) n->use[k] = app_below(&g->state, g->nresources);
    return n;
}

enum { TYPES_OF_A_PHASE = 10, FREE_TYPE = 200 };

static inline void set_random_type(random_node *n, int phase)
{
    random_graph *g = n->graph;
    n->phase = phase;
    n->type = (phase == NONE ? FREE_TYPE : phase * TYPES_OF_A_PHASE) + app_below(&g->state, TYPES_OF_A_PHASE);
}

/* The last access to each handle while tasks are added, and the last phase of what touches it or comes before. */
typedef struct random_use {
    int mode, group, latest;
} random_use;

static inline bool is_shared(int mode)
{
    return mode == TRL_READ || mode == TRL_WRITE_PART || mode == TRL_ADD;
}

/* The mode of the last access, one time in two: so there are groups of several. */
static inline void choose_access(random_node *n, random_use *use, int handle, int latest[])
{
    random_graph *g = n->graph;
    const int mode = use->mode != NONE && chance(g, 2) ? use->mode : app_below(&g->state, TRL_ADD + 1);
    for (int a = 0; a < n->naccesses; ++a)
        if (n->access[a].handle == handle) return;
    if (n->phase != NONE && use->latest > n->phase) return;
    use->group += mode != use->mode || !is_shared(mode);
    use->mode = mode;
    if (use->latest > latest[n->index]) latest[n->index] = use->latest;
    n->access[n->naccesses++] = (random_access){handle, (trl_access)mode, use->group};
}

/* latest[n]: the last phase that n, or anything before it, is in. What comes before a task must not be in a later
 * phase. */
static inline bool may_wait_for(const random_graph *g, const int latest[], const random_node *n, int before)
{
    return n->index > before && (n->phase == NONE || latest[g->nodes[before].index] <= n->phase);
}

static inline void make_own_node(random_graph *g, random_use use[], int latest[])
{
    random_node *n = new_random_node(g, NONE);
    int wanted = app_below(&g->state, MOST_BEFORE + 1);
    set_random_type(n, g->phases && !chance(g, 3) ? app_below(&g->state, g->phases) : NONE);
    latest[n->index] = n->phase;
    for (int k = 0; n->index && k < wanted; ++k) {
        int reach = chance(g, 4) || n->index < 12 ? n->index : 12, before = n->index - 1 - app_below(&g->state, reach);
        if (!may_wait_for(g, latest, n, before)) continue;
        n->before[n->nbefore++] = before; /* perhaps once more */
        if (latest[before] > latest[n->index]) latest[n->index] = latest[before];
    }
    for (int k = 0; n->index && !n->body && chance(g, 4) && k < 3; ++k) {
        int before = app_below(&g->state, n->index);
        if (!may_wait_for(g, latest, n, before) || g->nodes[before].signals_task != NONE) continue;
        g->nodes[before].signals_task = n->index;
        ++n->signals;
        if (latest[before] > latest[n->index]) latest[n->index] = latest[before];
    }
    for (int a = g->nhandles ? app_below(&g->state, MOST_ACCESSES + 1) : 0; a > 0; --a) {
        const int handle = app_below(&g->state, g->nhandles);
        choose_access(n, &use[handle], handle, latest);
    }
    for (int a = 0; a < n->naccesses; ++a) {
        random_use *last = &use[n->access[a].handle];
        if (latest[n->index] > last->latest) last->latest = latest[n->index];
    }
}

static inline bool in_scope(const random_graph *g, int node)
{
    for (int s = node; s != NONE; s = g->nodes[s].spawner) {
        if (g->nodes[s].flags & TRL_TASK_SCOPE) return true;
    }
    return false;
}

/* An event between the children: some wait, and those after them signal. Whoever signals waits for nobody who waits. */
static inline void share_event(random_graph *g, random_node *spawner)
{
    int waiting = 1 + app_below(&g->state, 2);
    spawner->signals_own = chance(g, 2);
    spawner->event_count = spawner->signals_own;
    for (int k = 0; k < spawner->children; ++k) {
        random_node *child = &g->nodes[spawner->first_child + k];
        child->waits_event = k < waiting;
        if (k < waiting || chance(g, 3)) continue;
        child->signals_event = chance(g, 2);
        child->calls_signal = !child->signals_event;
        ++spawner->event_count;
    }
    if (spawner->event_count == 0) spawner->signals_own = ++spawner->event_count;
}

/* A child that nobody waits for may be in any phase: its turn comes, perhaps in the next round. */
static inline void make_children(random_graph *g, int spawner, const int latest[])
{
    random_node *s = &g->nodes[spawner];
    s->first_child = g->count;
    s->children = 1 + app_below(&g->state, MOST_CHILDREN);
    for (int k = 0; k < s->children; ++k) set_random_type(new_random_node(g, spawner), s->phase);
    if (s->children > 1 && chance(g, 2)) share_event(g, s);
    for (int k = 0; k < s->children; ++k) {
        random_node *n = &g->nodes[s->first_child + k];
        bool stray = g->phases && k == s->children - 1 && !n->waits_event && !n->signals_event && !n->calls_signal &&
                     !in_scope(g, spawner) && chance(g, 2);
        if (stray) {
            set_random_type(n, app_below(&g->state, g->phases));
            continue;
        }
        for (int j = 0; j < k && n->nbefore < MOST_BEFORE; ++j) {
            if (chance(g, 3) && (n->waits_event || !g->nodes[s->first_child + j].waits_event))
                n->before[n->nbefore++] = s->first_child + j;
        }
        int after = app_below(&g->state, g->own);
        if (s->spawner != NONE || !chance(g, 4) || g->nodes[after].body ||
            !may_wait_for(g, latest, &g->nodes[after], spawner) || latest[spawner] > latest[after])
            continue;
        n->signals_task = after;
        ++g->nodes[after].signals;
    }
}

static const char *note_apart(const void *data, const void *other_data, bool siblings)
{
    const random_node *n = data, *other = other_data;
    random_graph *g = n->graph;
    ck_assert(siblings == (g == other->graph));
    if (siblings) g->apart[n->index * g->own + other->index] = g->apart[other->index * g->own + n->index] = true;
    return NULL;
}

static inline bool is_taken(const random_graph *g, int call, int room)
{
    for (int i = 0; i < call; ++i)
        if (g->nodes[i].body && g->nodes[i].room == room && g->apart[call * g->own + i]) return true;
    return false;
}

/* Calls that are put in order may have one room. Returns how many do. */
static inline int deal_rooms(random_graph *g)
{
    int calls = 0, rooms = 0;
    for (int i = 0; i < g->own; ++i) {
        if (!g->nodes[i].body) continue;
        while (is_taken(g, i, g->nodes[i].room)) ++g->nodes[i].room;
        if (g->nodes[i].room == rooms) ++rooms;
        ++calls;
    }
    return calls - rooms;
}

static inline void add_own_tasks(random_graph *g)
{
    trl_handle handle[MOST_HANDLES];
    for (int h = 0; h < g->nhandles; ++h) handle[h] = app_handle(g->graph, "handle");
    for (int i = 0; i < g->own; ++i) {
        random_node *n = &g->nodes[i];
        trl_task_desc desc = {.name = n->name,
                              .variant = {{run_random_node}},
                              .data = n,
                              .chunks = n->chunks,
                              .flags = n->flags,
                              .cost = app_uniform(&g->state),
                              .type = n->type,
                              .priority = n->priority,
                              .signals = n->signals};
        const trl_call_desc call = {.name = n->name,
                                    .body = n->body ? n->body->graph : NULL,
                                    .data = n,
                                    .begin = begin_random_call,
                                    .again = end_random_round,
                                    .apart = note_apart,
                                    .rounds = n->rounds,
                                    .flags = n->flags,
                                    .type = n->type,
                                    .priority = n->priority};
        app_must(n->body ? trl_graph_add_call(g->graph, &call, &n->task)
                         : trl_graph_add_task(g->graph, &desc, &n->task));
        for (int k = 0; k < n->nbefore; ++k)
            app_must(trl_graph_add_dependency(g->graph, g->nodes[n->before[k]].task, n->task));
        for (int a = 0; a < n->naccesses; ++a)
            app_must(trl_graph_add_access(g->graph, n->task, handle[n->access[a].handle], n->access[a].mode));
        for (int k = 0; k < n->nlocks; ++k)
            app_must(trl_graph_add_lock(g->graph, n->task, g->resources[n->lock[k]].name));
        for (int k = 0; k < n->nuses; ++k) app_must(trl_graph_add_use(g->graph, n->task, g->resources[n->use[k]].name));
    }
}

static inline random_graph *make_random_body(uint64_t seed, int depth)
{
    random_graph *g = app_calloc(1, sizeof *g);
    int latest[MOST_NODES];
    random_use use[MOST_HANDLES];
    g->seed = g->state = seed;
    g->nodes = app_calloc(MOST_NODES, sizeof *g->nodes);
    g->cancel_at = NONE;
    g->depth = depth;
    g->graph = app_graph("random");
    make_resources(g);
    g->phases = depth == 0 && chance(g, 3) ? 2 + app_below(&g->state, MOST_PHASES - 1) : 0;
    g->own = 1 + app_below(&g->state, depth > 0 ? 12 : chance(g, 8) ? 200 : 40);
    g->nhandles = chance(g, 2) ? 1 + app_below(&g->state, MOST_HANDLES) : 0;
    for (int h = 0; h < g->nhandles; ++h) use[h] = (random_use){NONE, 0, NONE};
    while (g->count < g->own) make_own_node(g, use, latest);
    int spawning = chance(g, 3) ? 0 : g->count; /* no spawned tasks in a third of the graphs */
    for (int i = 0; i < spawning && i < g->count && g->count + MOST_CHILDREN <= MOST_NODES; ++i) {
        if (!g->nodes[i].body && chance(g, 4)) make_children(g, i, latest);
        spawning = g->count;
    }
    for (int p = 0; p < g->phases; ++p)
        ck_ok(trl_graph_add_phase(g->graph, "phase", p * TYPES_OF_A_PHASE, (p + 1) * TYPES_OF_A_PHASE));
    g->apart = app_calloc((size_t)g->own * (size_t)g->own, sizeof *g->apart);
    add_own_tasks(g);
    ck_ok(trl_graph_freeze(g->graph));
    g->shared_rooms = deal_rooms(g);
    return g;
}

static inline random_graph *make_random_graph(uint64_t seed)
{
    return make_random_body(seed, 0);
}

static inline void free_random_graph(random_graph *g)
{
    trl_graph_destroy(&g->graph);
    for (int i = 0; i < g->own; ++i)
        if (g->nodes[i].body) free_random_graph(g->nodes[i].body);
    free(g->nodes);
    free(g->apart);
    free(g);
}

#endif
