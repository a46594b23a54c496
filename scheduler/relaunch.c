/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Calls are made to gather what they enqueue. What is the same as before, but perhaps for some arguments, is enqueued
 * as the graph that was made of it then; and in a state that is the same as before, calls need not be made. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "memory_impl.h"
#include "relaunch_impl.h"

enum {
    KEPT = 12,     /* graphs: time levels rotate, and alarms alternate */
    WARM_UP = 3,   /* times that calls enqueue by themselves: placements that are tried do not last longer */
    STALE = 128,   /* launches after which a graph that was in none of them makes room for one of other kernels */
    FEW = 4,       /* kernels of a chain for which no graph is made */
    LANES = 16,    /* of a graph: more take longer to launch than they gain */
    SCALARS = 2,   /* the argument that changes most often */
    ALIGNMENT = 16 /* of arguments, bytes */
};

/* A kernel that was gathered. */
typedef struct entry {
    trli_gpu_work work; /* but its arguments: */
    size_t at[TRLI_GPU_ARGUMENTS], bytes[TRLI_GPU_ARGUMENTS];
    int32_t call;
    const char *label;
} entry;

typedef struct gathered {
    entry *entry;
    int32_t n, capacity;
    char *memory; /* of arguments */
    int32_t used, room;
} gathered;

/* What was enqueued before. */
typedef struct kept {
    gathered work;
    void *graph, *executable; /* NULL: a single kernel */
    void **node;              /* [work.n] */
    void *state;              /* [bytes] in which all arguments are those of `work`; NULL: unknown */
    int64_t used;             /* the last time */
} kept;

struct trli_relaunch {
    trl_device *device;
    trli_stream stream;
    pthread_mutex_t mutex; /* held from begin to end: runs in several frames share the relaunch */
    int32_t calls, *first, *after;
    int32_t call; /* whose kernels are gathered */
    gathered now;
    kept kept[KEPT];
    int nkept;
    void *state; /* [bytes] of the calls now */
    size_t bytes;
    bool has_state;
    int64_t times;
    bool plain; /* graphs cannot be made */
    int lanes;  /* in which kernels follow one another, in graphs */
};

static _Thread_local trli_relaunch *gathering;
static _Thread_local bool sending; /* what a chain has gathered */

static void free_gathered(gathered *g)
{
    trli_free(g->entry);
    trli_free(g->memory);
    *g = (gathered){0};
}

static void forget(const trli_gpu_api *api, kept *k)
{
    if (k->graph) api->graph_destroy(k->graph, k->executable);
    free_gathered(&k->work);
    trli_free(k->node);
    trli_free(k->state);
    *k = (kept){0};
}

trl_err trli_relaunch_create(trl_device *device, trli_stream stream, int32_t calls, const int32_t *first,
                             const int32_t *after, trli_relaunch **relaunch)
{
    trli_relaunch *r = *relaunch = trli_new(device->ctx, 1, sizeof *r);
    if (r) r->first = trli_new(device->ctx, (size_t)calls + 1, sizeof *r->first);
    if (r) r->after = trli_new(device->ctx, (size_t)first[calls] + 1, sizeof *r->after);
    if (!r || !r->first || !r->after) {
        if (r) trli_free(r->first);
        trli_free(r);
        *relaunch = NULL;
        return trli_no_memory(device->ctx, NULL, "for launches of a GPU");
    }
    r->device = device;
    r->stream = stream;
    r->calls = calls;
    memcpy(r->first, first, ((size_t)calls + 1) * sizeof *first);
    memcpy(r->after, after, (size_t)first[calls] * sizeof *after);
    const char *graphs = getenv("TRELLIS_GPU_GRAPHS");
    r->plain = graphs && strcmp(graphs, "off") == 0;
    r->lanes = graphs && atoi(graphs) > 0 ? atoi(graphs) : LANES;
    pthread_mutex_init(&r->mutex, NULL);
    return TRL_OK;
}

void trli_relaunch_destroy(trli_relaunch **relaunch)
{
    trli_relaunch *r = *relaunch;
    *relaunch = NULL;
    if (!r) return;
    for (int i = 0; i < r->nkept; ++i) forget(trli_gpu_api_get(), &r->kept[i]);
    free_gathered(&r->now);
    trli_free(r->state);
    pthread_mutex_destroy(&r->mutex);
    trli_free(r->first);
    trli_free(r->after);
    trli_free(r);
}

/* ---- gathering ---- */

static const void *argument_of(const gathered *g, const entry *e, int i)
{
    return g->memory + e->at[i];
}

static trli_gpu_work work_of(const gathered *g, const entry *e)
{
    trli_gpu_work work = e->work;
    for (int i = 0; i < TRLI_GPU_ARGUMENTS; ++i) work.argument[i] = g->memory + e->at[i];
    return work;
}

static trl_err gather(trli_relaunch *r, const trli_gpu_work *work, const size_t bytes[TRLI_GPU_ARGUMENTS],
                      const char *label)
{
    trl_context *ctx = r->device->ctx;
    gathered *g = &r->now;
    size_t all = TRLI_GPU_ARGUMENTS * ALIGNMENT;
    for (int i = 0; i < TRLI_GPU_ARGUMENTS; ++i) all += bytes[i];
    if (!trli_make_room(ctx, &g->entry, g->n, 1, &g->capacity, sizeof *g->entry) ||
        !trli_make_room(ctx, &g->memory, g->used, (int64_t)all, &g->room, 1))
        return trli_no_memory(ctx, NULL, "for launches of a GPU");
    entry *e = &g->entry[g->n++];
    *e = (entry){.work = *work, .call = r->call, .label = label};
    for (int i = 0; i < TRLI_GPU_ARGUMENTS; ++i) {
        e->at[i] = (size_t)g->used;
        e->bytes[i] = bytes[i];
        memcpy(g->memory + g->used, work->argument[i], bytes[i]);
        g->used += (int32_t)((bytes[i] + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
    }
    return TRL_OK;
}

trl_device *trli_relaunch_device(const trli_relaunch *relaunch)
{
    return relaunch->plain ? NULL : relaunch->device;
}

/* ---- kernels ---- */

static bool joins_chain(const trl_device *device, void *stream)
{
    const trli_gpu_api *api;
    void *compute;
    if (!device->chain || sending) return false;
    return trli_gpu_use((trl_device *)device, TRLI_STREAM_COMPUTE, &api, &compute) == TRL_OK && stream == compute;
}

/* Kernels are enqueued at once, or gathered by the chain that the device has. */
static trl_err launch(trl_device *device, const trli_gpu_api *api, const trli_gpu_work *work,
                      const size_t bytes[TRLI_GPU_ARGUMENTS], void *stream, const char *label)
{
    if (joins_chain(device, stream)) {
        trli_relaunch *chain = device->chain;
        pthread_mutex_lock(&chain->mutex);
        const trl_err err = gather(chain, work, bytes, label);
        pthread_mutex_unlock(&chain->mutex);
        return err;
    }
    const int code = api->launch(work, stream);
    return code ? trli_gpu_fail(device, code, "launching a kernel of '%s'", label) : TRL_OK;
}

trl_err trli_gpu_enqueue(trl_device *device, const trli_gpu_work *work, const size_t bytes[TRLI_GPU_ARGUMENTS],
                         void *stream, const char *label)
{
    if (gathering && gathering->device == device) return gather(gathering, work, bytes, label);
    return launch(device, trli_gpu_api_get(), work, bytes, stream, label);
}

/* ---- comparing ---- */

static bool same_argument(const gathered *a, const gathered *b, int32_t n, int i)
{
    return memcmp(argument_of(a, &a->entry[n], i), argument_of(b, &b->entry[n], i), a->entry[n].bytes[i]) == 0;
}

/* Whether the same kernels are launched in the same way, whatever their arguments are. */
static bool same_kernels(const gathered *a, const gathered *b)
{
    if (a->n != b->n) return false;
    for (int32_t i = 0; i < a->n; ++i) {
        const entry *x = &a->entry[i], *y = &b->entry[i];
        if (x->work.kernel != y->work.kernel || x->work.shared != y->work.shared || x->call != y->call) return false;
        if (memcmp(x->work.blocks, y->work.blocks, sizeof x->work.blocks) != 0) return false;
        if (memcmp(x->work.threads, y->work.threads, sizeof x->work.threads) != 0) return false;
        if (memcmp(x->bytes, y->bytes, sizeof x->bytes) != 0) return false;
    }
    return true;
}

static bool same_but_scalars(const gathered *a, const gathered *b)
{
    if (!same_kernels(a, b)) return false;
    for (int32_t n = 0; n < a->n; ++n)
        for (int i = 0; i < SCALARS; ++i)
            if (!same_argument(a, b, n, i)) return false;
    return true;
}

/* ---- graphs ---- */

/* Where kernels of a graph come to lie while it is made. */
typedef struct lanes {
    int32_t *last; /* [calls] the last kernel of each; of a call without kernels -1 */
    int32_t *lane; /* [calls] */
    int32_t *end;  /* [n] the last kernel so far of each lane, or -1 */
    int n, next;
    void **after; /* room for what a node follows */
    int nafter;
} lanes;

/* A kernel follows another one; CUDA wants each once. */
static void follow(lanes *l, void *node)
{
    for (int i = 0; i < l->nafter; ++i)
        if (l->after[i] == node) return;
    l->after[l->nafter++] = node;
}

/* A kernel follows the last one of a call; or, if it has none, those of the calls that this one follows. */
static void follow_call(const trli_relaunch *r, const kept *k, lanes *l, int32_t call)
{
    if (l->last[call] >= 0) {
        follow(l, k->node[l->last[call]]);
        return;
    }
    for (int32_t i = r->first[call]; i < r->first[call + 1]; ++i) follow_call(r, k, l, r->after[i]);
}

/* The lane of a call: that of a call that it follows and that is the last there, else the next in turn. */
static int32_t choose_lane(const trli_relaunch *r, lanes *l, int32_t call)
{
    for (int32_t i = r->first[call]; i < r->first[call + 1]; ++i) {
        const int32_t before = r->after[i];
        if (l->last[before] >= 0 && l->end[l->lane[before]] == l->last[before]) return l->lane[before];
    }
    l->next = (l->next + 1) % l->n;
    return l->next;
}

/* A kernel follows the one before of its call; the first one of a call the last ones of the calls that it follows, and
 * what is in its lane. */
static int add_node(const trli_relaunch *r, const trli_gpu_api *api, kept *k, int32_t n, lanes *l)
{
    const entry *e = &k->work.entry[n];
    const trli_gpu_work work = work_of(&k->work, e);
    l->nafter = 0;
    if (n > 0 && e[-1].call == e->call) {
        follow(l, k->node[n - 1]);
    } else {
        for (int32_t i = r->first[e->call]; i < r->first[e->call + 1]; ++i) follow_call(r, k, l, r->after[i]);
        l->lane[e->call] = choose_lane(r, l, e->call);
        if (l->end[l->lane[e->call]] >= 0) follow(l, k->node[l->end[l->lane[e->call]]]);
    }
    l->end[l->lane[e->call]] = n;
    return api->graph_add(k->graph, &work, l->nafter, l->after, &k->node[n]);
}

static void find_last(const trli_relaunch *r, const gathered *g, lanes *l)
{
    l->n = r->lanes;
    l->next = l->n - 1;
    for (int32_t c = 0; c < r->calls; ++c) l->last[c] = -1;
    for (int32_t n = 0; n < g->n; ++n) l->last[g->entry[n].call] = n;
    for (int i = 0; i < r->lanes; ++i) l->end[i] = -1;
}

/* Make a graph of what is kept. *code: of CUDA's refusal. */
static trl_err make_graph(const trli_relaunch *r, const trli_gpu_api *api, kept *k, int *code)
{
    trl_context *ctx = r->device->ctx;
    const size_t calls = (size_t)r->calls + 1;
    lanes l = {.last = trli_new(ctx, calls, sizeof *l.last),
               .lane = trli_new(ctx, calls, sizeof *l.lane),
               .end = trli_new(ctx, (size_t)r->lanes, sizeof *l.end),
               .after = trli_new(ctx, calls + 1, sizeof *l.after)};
    trl_err err = TRL_OK;
    k->node = trli_new(ctx, (size_t)k->work.n, sizeof *k->node);
    if (!l.last || !l.lane || !l.end || !l.after || !k->node)
        TRL_TRY(trli_no_memory(ctx, NULL, "for launches of a GPU"));
    find_last(r, &k->work, &l);
    *code = api->graph_create(&k->graph);
    for (int32_t n = 0; n < k->work.n && *code == 0; ++n) *code = add_node(r, api, k, n, &l);
    if (*code == 0) *code = api->graph_make(k->graph, &k->executable);
done:
    trli_free(l.last);
    trli_free(l.lane);
    trli_free(l.end);
    trli_free(l.after);
    return err;
}

/* What is gathered becomes what is kept; only arguments differ. */
static int change(trli_relaunch *r, const trli_gpu_api *api, kept *k)
{
    const gathered before = k->work;
    int code = 0;
    for (int32_t n = 0; n < r->now.n && code == 0 && k->executable; ++n) {
        bool same = true;
        for (int i = 0; i < TRLI_GPU_ARGUMENTS; ++i) same &= same_argument(&before, &r->now, n, i);
        const trli_gpu_work work = work_of(&r->now, &r->now.entry[n]);
        if (!same) code = api->graph_change(k->executable, k->node[n], &work);
    }
    k->work = r->now;
    r->now = before;
    return code;
}

/* Of those kept, perhaps only of those with the kernels that are gathered, the one that was not used for longest. */
static kept *find_oldest(trli_relaunch *r, bool alike)
{
    kept *oldest = NULL;
    for (int i = 0; i < r->nkept; ++i) {
        kept *k = &r->kept[i];
        if ((!oldest || k->used < oldest->used) && (!alike || same_kernels(&k->work, &r->now))) oldest = k;
    }
    return oldest;
}

/* The first of those kept that is as what is gathered is, but for scalars; else a place for it: a new one, or that
 * which was not used for longest. A chain may have other kernels from time to time: graphs are not made anew for it. */
static kept *choose(trli_relaunch *r, bool *fits)
{
    *fits = true;
    for (int i = 0; i < r->nkept; ++i)
        if (same_but_scalars(&r->kept[i].work, &r->now)) return &r->kept[i];
    if (r->nkept < KEPT) {
        *fits = false;
        return &r->kept[r->nkept++];
    }
    kept *oldest = find_oldest(r, false), *alike = find_oldest(r, true);
    *fits = alike && (alike == oldest || r->times - oldest->used < STALE);
    return *fits ? alike : oldest;
}

static trl_err launch_all(const trli_relaunch *r, const trli_gpu_api *api, const gathered *g, void *stream)
{
    trl_err err = TRL_OK;
    for (int32_t n = 0; n < g->n; ++n) {
        const trli_gpu_work work = work_of(g, &g->entry[n]);
        TRL_TRY(launch(r->device, api, &work, g->entry[n].bytes, stream, g->entry[n].label));
    }
done:
    return err;
}

static trl_err launch_kept(trli_relaunch *r, const trli_gpu_api *api, kept *k, void *stream)
{
    k->used = ++r->times;
    if (!k->executable || joins_chain(r->device, stream)) return launch_all(r, api, &k->work, stream);
    const int code = api->graph_launch(k->executable, stream);
    return code ? trli_gpu_fail(r->device, code, "launching kernels of '%s' and others", k->work.entry[0].label)
                : TRL_OK;
}

static trl_err note_state(const trli_relaunch *r, kept *k)
{
    trli_free(k->state);
    k->state = r->has_state ? trli_new(r->device->ctx, r->bytes, 1) : NULL;
    if (!r->has_state) return TRL_OK;
    if (!k->state) return trli_no_memory(r->device->ctx, NULL, "for launches of a GPU");
    memcpy(k->state, r->state, r->bytes);
    return TRL_OK;
}

/* What others gather needs none: it may have been kept so, and be launched by itself now. */
static bool lacks_graph(const trli_relaunch *r, const kept *k)
{
    return k->work.n > 1 && !k->executable && (sending || !r->device->chain);
}

/* Keep what was gathered. */
static trl_err keep(trli_relaunch *r, const trli_gpu_api *api, kept **result, int *code)
{
    bool fits;
    trl_err err = TRL_OK;
    kept *k = *result = choose(r, &fits);
    *code = 0;
    if (fits) {
        *code = change(r, api, k);
    } else {
        forget(api, k);
        k->work = r->now;
        r->now = (gathered){0};
    }
    if (*code == 0 && lacks_graph(r, k)) err = make_graph(r, api, k, code);
    return err;
}

static void warn_refused(const trli_relaunch *r, const trli_gpu_api *api, const kept *k, int code)
{
    static atomic_bool said;
    if (atomic_exchange(&said, true)) return;
    trl_warn(
        r->device->ctx, NULL,
        "GPU %d refuses to make or change a graph of %d kernels of '%s' and others, and gets them one by one, which "
        "takes longer: %s",
        r->device->space - 1, (int)k->work.n, k->work.entry[0].label, api->message(code));
}

/* Where graphs are refused, kernels are launched one by one from then on. */
static trl_err enqueue(trli_relaunch *r)
{
    const trli_gpu_api *api;
    void *stream;
    kept *k;
    int code;
    trl_err err;
    if (r->now.n == 0) return TRL_OK;
    TRL_TRY(trli_gpu_use(r->device, r->stream, &api, &stream));
    if (r->plain || (sending && r->now.n < FEW) || ++r->times <= WARM_UP) return launch_all(r, api, &r->now, stream);
    TRL_TRY(keep(r, api, &k, &code));
    if (code && api->is_fatal(code)) TRL_TRY(trli_gpu_fail(r->device, code, "making a graph of launches"));
    if (code) {
        warn_refused(r, api, k, code);
        r->plain = true;
        TRL_TRY(launch_all(r, api, &k->work, stream));
        for (int i = 0; i < r->nkept; ++i) forget(api, &r->kept[i]);
        r->nkept = 0;
        goto done;
    }
    TRL_TRY(note_state(r, k));
    err = launch_kept(r, api, k, stream);
done:
    return err;
}

/* ---- runs ---- */

static trl_err write_state(trli_relaunch *r, const trli_relaunch_state *state)
{
    r->has_state = state != NULL;
    if (!state) return TRL_OK;
    if (!r->state) {
        r->bytes = state->write(state->data, state->frame, r->device->space, NULL);
        r->state = trli_new(r->device->ctx, r->bytes, 1);
        if (!r->state) return trli_no_memory(r->device->ctx, NULL, "for launches of a GPU");
    }
    (void)state->write(state->data, state->frame, r->device->space, r->state);
    return TRL_OK;
}

static kept *find_state(trli_relaunch *r)
{
    for (int i = 0; i < r->nkept && r->has_state; ++i)
        if (r->kept[i].state && memcmp(r->kept[i].state, r->state, r->bytes) == 0) return &r->kept[i];
    return NULL;
}

trl_err trli_relaunch_begin(trli_relaunch *r, const trli_relaunch_state *state, bool *done)
{
    const trli_gpu_api *api;
    void *stream;
    trl_err err;
    *done = false;
    pthread_mutex_lock(&r->mutex);
    r->now.n = r->now.used = 0;
    TRL_TRY(write_state(r, state));
    kept *k = find_state(r);
    if (!k || lacks_graph(r, k)) return TRL_OK;
    TRL_TRY(trli_gpu_use(r->device, r->stream, &api, &stream));
    err = launch_kept(r, api, k, stream);
    *done = true;
done:
    pthread_mutex_unlock(&r->mutex);
    return err;
}

void trli_relaunch_gather(trli_relaunch *r, int32_t call)
{
    gathering = r;
    r->call = call;
}

trl_err trli_relaunch_end(trli_relaunch *r, trl_err err)
{
    gathering = NULL;
    if (err == TRL_OK) err = enqueue(r);
    pthread_mutex_unlock(&r->mutex);
    return err;
}

/* ---- chains ---- */

void trli_chain_destroy(trli_relaunch **chain)
{
    if (*chain && (*chain)->device->chain == *chain) (*chain)->device->chain = NULL;
    trli_relaunch_destroy(chain);
}

trl_err trli_chain_send(trl_device *device)
{
    trli_relaunch *chain = device->chain;
    trl_err err = TRL_OK;
    if (!chain || sending) return TRL_OK;
    pthread_mutex_lock(&chain->mutex);
    sending = true;
    if (chain->now.n > 0) err = enqueue(chain);
    sending = false;
    chain->now.n = chain->now.used = 0;
    pthread_mutex_unlock(&chain->mutex);
    return err;
}
