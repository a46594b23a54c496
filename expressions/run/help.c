/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Each rank has a board in memory that the others of its node have mapped, with a place for each worker. There a worker
 * offers the last planes of a kernel that it begins. When it has done the others, it takes what is left from the first
 * one on; helpers take from the last one on. */
#include "help_impl.h"

#include <errno.h>
#include <signal.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <context_impl.h>
#include <exchange_impl.h>
#include <graph_impl.h>
#include <workers_impl.h>

#include "clock_impl.h"
#include "help_choice_impl.h"
#include "memory_impl.h"
#include "model_run_impl.h"
#include "tasks_impl.h"

enum {
    APART = 128, /* bytes: neighbouring lines are fetched in pairs */
    ARRAYS_MOST = 128,
    SCALARS_MOST = 512,
    PLANE_BITS = 22,
    LEAST_PLANES = 2,       /* that are taken at once: each two neighbours beside them are read twice */
    LEAST_NS = 20000,       /* of a kernel that is offered */
    LEAST_POINTS = 1 << 15, /* of a rank */
    TURN_NS = 100000,       /* of planes that a helper takes, about: so long may its own tasks wait for it */
    POSTS = 4               /* windows on a board: ranks are less than two steps apart */
};

/* A window of a rank. */
typedef struct post {
    _Atomic int64_t number; /* of the window, from 1 on; released after the rest: */
    _Atomic int64_t share;
    _Atomic double waited, step, taken;
} post;

typedef struct offered_array {
    int64_t at; /* bytes from the start of the rank's memory of slots to local point (0,0,0) */
    long long stride[3];
} offered_array;

typedef struct offer {
    /* Which offer it is, the first plane that nobody took, and where they end: from the lowest bits on the end, the
     * first, and the count of offers. What follows does not change as long as planes are left, or taken and not
     * done. */
    alignas(APART) _Atomic uint64_t left;
    _Atomic uint64_t kernel, texts; /* number of the program << 32 | of its step; trli_step_run.texts */
    _Atomic double plane_ns;
    alignas(APART) _Atomic int64_t done; /* planes that helpers did */
    _Atomic bool nonfinite;              /* these had values that are not finite */
    alignas(APART) trl_kernel_grid grid;
    long long lo[2], hi[2]; /* of each plane */
    trli_sweep_way way;
    offered_array array[ARRAYS_MOST]; /* inputs, then outputs */
    trl_kernel_inside inside[ARRAYS_MOST];
    double scalar[SCALARS_MOST];
} offer;

typedef struct board {
    post post[POSTS];
    int64_t process;
    int n;
    alignas(APART) _Atomic bool offers; /* relaxed: its rank has offered something in the present window */
    offer offer[];                      /* [n] by worker */
} board;

typedef struct peer {
    board *board;
    unsigned char *slots; /* its memory of slots, as this rank has it mapped */
} peer;

struct trli_help {
    trli_aid aid; /* first: what the context's list knows */
    const trli_frame *frame;
    trli_open_memory *open; /* begins with the board */
    trli_loans *loans;
    board *own;
    peer *peer; /* [npeers] other ranks of the node, the one after this rank first */
    int npeers;
    int place;                /* of this rank among those of the node, in the order of ranks */
    trli_help_window *window; /* [npeers + 1] in that order */
    bool forced;              /* TRELLIS_HELPING=always */
    _Atomic int share;        /* relaxed: changes between runs */
    unsigned char *room;      /* by worker, and behind them for the main thread: what a helper's call needs */
    size_t room_bytes;
    _Atomic int64_t points, ns;     /* of other ranks' kernels */
    _Atomic int64_t saved_ns;       /* of this rank's kernels, which others computed */
    _Atomic int64_t offered, taken; /* planes, in the present window */
    trli_help_choice choice;
    int64_t number; /* of the window */
    int steps;
    double step[TRLI_HELP_STEPS];           /* seconds of each */
    int64_t began, ended;                   /* ns; the window, and the last step; 0: none yet */
    double waited;                          /* of the graph when it began */
    int64_t timed_steps, timed_ns, seen_ns; /* of help in timed steps, and of all up to the last step */
};

/* ---- planes that are left ---- */

static const uint64_t plane_mask = ((uint64_t)1 << PLANE_BITS) - 1;

static uint64_t pack(uint64_t count, long long first, long long end)
{
    return count << 2 * PLANE_BITS | (uint64_t)first << PLANE_BITS | (uint64_t)end;
}

static long long first_of(uint64_t left)
{
    return (long long)(left >> PLANE_BITS & plane_mask);
}

static long long end_of(uint64_t left)
{
    return (long long)(left & plane_mask);
}

static uint64_t count_of(uint64_t left)
{
    return left >> 2 * PLANE_BITS;
}

/* How many planes of so many are taken at once: half of them, so that the last ones that are waited for are few. */
static long long part_of(const trli_help *h, long long planes)
{
    const long long least = h->forced ? 1 : LEAST_PLANES, half = (planes + 1) / 2, part = half < least ? least : half;
    return part < planes ? part : planes;
}

/* ---- offering ---- */

static bool may_offer(const trli_help *h, const trli_bound_kernel *k, double ns, long long first, long long end)
{
    const trli_frame *frame = h->frame;
    if (first < 0 || end > (long long)plane_mask || (!h->forced && ns * (double)(end - first) < LEAST_NS)) return false;
    if (!k->step || k->part[0].call.set_edges || k->ninputs + k->noutputs > ARRAYS_MOST) return false;
    for (int i = 0; i < k->ninputs + k->noutputs; ++i)
        if (trli_open_memory_offset(frame->open, k->native_array[i].at) < 0) return false;
    return true;
}

/* How many planes of a kernel are offered. */
static long long offered_of(const trli_help *h, int share, long long planes)
{
    const long long offered = (planes * share + TRLI_HELP_WHOLE / 2) / TRLI_HELP_WHOLE;
    return offered < (h->forced ? 1 : LEAST_PLANES) ? 0 : offered;
}

/* Returns the count of this offer. */
static uint64_t publish(const trli_help *h, offer *o, const trli_bound_kernel *k, const trli_sweep_way *way,
                        long long first, long long end, double plane_ns)
{
    const trli_frame *frame = h->frame;
    const uint64_t count = count_of(atomic_load_explicit(&o->left, memory_order_relaxed)) + 1;
    const uint64_t kernel = (uint64_t)k->program->number << 32 | (uint64_t)(k->step - k->program->step);
    for (int i = 0; i < k->ninputs + k->noutputs; ++i) {
        o->array[i].at = trli_open_memory_offset(frame->open, k->native_array[i].at);
        memcpy(o->array[i].stride, k->native_array[i].stride, sizeof o->array[i].stride);
    }
    memcpy(o->inside, k->inside, (size_t)k->ninputs * sizeof *o->inside);
    memcpy(o->scalar, frame->scalar, (size_t)frame->model->nscalars * sizeof *o->scalar);
    o->grid = *k->grid;
    o->way = *way;
    for (int a = 0; a < 2; ++a) {
        o->lo[a] = k->part[0].call.lo[a];
        o->hi[a] = k->part[0].call.hi[a];
    }
    atomic_store_explicit(&o->kernel, kernel, memory_order_relaxed);
    atomic_store_explicit(&o->texts, trli_run_of(k->program, k->step)->texts, memory_order_relaxed);
    atomic_store_explicit(&o->plane_ns, plane_ns, memory_order_relaxed);
    atomic_store_explicit(&o->done, 0, memory_order_relaxed);
    atomic_store_explicit(&o->nonfinite, false, memory_order_relaxed);
    atomic_store_explicit(&o->left, pack(count, first, end), memory_order_release); /* publishes all of it */
    if (!atomic_load_explicit(&h->own->offers, memory_order_relaxed))
        atomic_store_explicit(&h->own->offers, true, memory_order_relaxed);
    return count & (UINT64_MAX >> 2 * PLANE_BITS);
}

/* The first planes that are left; false: there are none. Relaxed: they are this worker's own. */
static bool take_first(const trli_help *h, offer *o, uint64_t count, long long *first, long long *end)
{
    uint64_t left = atomic_load_explicit(&o->left, memory_order_relaxed);
    do {
        *first = first_of(left);
        if (*first == end_of(left)) return false;
        *end = *first + part_of(h, end_of(left) - *first);
    } while (!atomic_compare_exchange_weak_explicit(&o->left, &left, pack(count, *end, end_of(left)),
                                                    memory_order_relaxed, memory_order_relaxed));
    return true;
}

/* A process that has ended does no more planes. */
static bool is_any_gone(const trli_help *h)
{
    for (int p = 0; p < h->npeers; ++p)
        if (kill((pid_t)h->peer[p].board->process, 0) != 0 && errno == ESRCH) return true;
    return false;
}

/* Wait for what helpers have taken, and acquire what they wrote. They compute it without a pause; if one has ended
 * meanwhile, this rank is lost, since nobody knows what of its planes is done. */
static void await(const trli_help *h, const offer *o, long long taken)
{
    enum { LOOKS = 1024 };
    static const double interval = 0.05; /* s between looks at the others' processes */
    trl_context *ctx = h->frame->model->ctx;
    double next = 0;
    for (int looks = 1; atomic_load_explicit(&o->done, memory_order_acquire) < taken; ++looks) {
        (void)trli_workers_pause(h->frame->model->run->workers);
        if (looks < LOOKS) continue;
        looks = 0;
        if (trl_context_lost(ctx)) return;
        const double now = trli_clock();
        if (next == 0) next = now + interval;
        if (now < next) continue;
        next = now + interval;
        if (!is_any_gone(h)) continue;
        (void)trli_context_lose(ctx,
                                trl_fail(ctx, TRL_ERR_MPI, NULL,
                                         "a rank ended while it computed a part of a kernel of rank %d", ctx->rank));
        return;
    }
}

static double points_of_plane(const trl_kernel_call *call)
{
    return (double)(call->hi[0] - call->lo[0]) * (double)(call->hi[1] - call->lo[1]);
}

bool trli_help_planes(trli_help *h, const trli_bound_kernel *k, int worker, int share, long long first, long long end)
{
    const double points = points_of_plane(&k->part[0].call), ns = trli_tuning_ns(k->tuning) * points;
    const trli_sweep_way way = trli_tuning_best(k->tuning);
    const long long offered = may_offer(h, k, ns, first, end) ? offered_of(h, share, end - first) : 0;
    offer *o = &h->own->offer[worker];
    const uint64_t count = offered > 0 ? publish(h, o, k, &way, end - offered, end, ns) : 0;
    const int64_t start = trli_now_ns();
    long long own = end - offered - first;
    bool finite = own == 0 || trli_sweep_planes(k->part, k->nparts, &way, first, first + own);
    if (own > 0) trli_tuning_note(k->tuning, (double)(trli_now_ns() - start) / ((double)own * points));
    for (long long from, to; offered > 0 && take_first(h, o, count, &from, &to); own += to - from)
        finite &= trli_sweep_planes(k->part, k->nparts, &way, from, to);
    if (offered == 0) return finite;
    atomic_fetch_add_explicit(&h->offered, offered, memory_order_relaxed);
    if (own == end - first) return finite;
    atomic_fetch_add_explicit(&h->taken, end - first - own, memory_order_relaxed);
    atomic_fetch_add_explicit(&h->saved_ns, (int64_t)(ns * (double)(end - first - own)), memory_order_relaxed);
    await(h, o, end - first - own);
    return finite && !atomic_load_explicit(&o->nonfinite, memory_order_relaxed);
}

int trli_help_share(const trli_help *h)
{
    return atomic_load_explicit(&h->share, memory_order_relaxed);
}

bool trli_help_is_forced(const trli_help *h)
{
    return h->forced;
}

/* ---- helping ---- */

/* The step of an offer if this rank has the same functions for it; else NULL. */
static const trli_step *find_step(const trli_help *h, const offer *o, const trli_program **program)
{
    const trli_model *model = h->frame->model;
    const uint64_t kernel = atomic_load_explicit(&o->kernel, memory_order_relaxed);
    const uint64_t number = kernel >> 32, step = (uint32_t)kernel;
    if (number >= (uint64_t)model->nprograms || step >= (uint64_t)model->program[number]->nsteps) return NULL;
    *program = model->program[number];
    const trli_step_run *run = &(*program)->run->step[step];
    const bool same = run->native && run->texts == atomic_load_explicit(&o->texts, memory_order_relaxed);
    return same ? &(*program)->step[step] : NULL;
}

static bool compute(const peer *of, const offer *o, const trli_program *program, const trli_step *step, void *room,
                    const long long planes[2])
{
    const int inputs = trli_plan_of(program, step)->ninputs, n = inputs + step->nout;
    trl_kernel_array *array = room;
    for (int i = 0; i < n; ++i) {
        array[i].at = (double *)(void *)(of->slots + o->array[i].at);
        memcpy(array[i].stride, o->array[i].stride, sizeof array[i].stride);
    }
    const trl_kernel_call call = {.input = array,
                                  .output = array + inputs,
                                  .scalar = o->scalar,
                                  .grid = &o->grid,
                                  .inside = o->inside,
                                  .lo = {o->lo[0], o->lo[1], planes[0]},
                                  .hi = {o->hi[0], o->hi[1], planes[1]}};
    const trli_native_part *part = trli_native_parts(program, step, &call, array + n);
    return trli_sweep_planes(part, trli_parts_of(program, step)->n, &o->way, planes[0], planes[1]);
}

/* How many of the planes that are left a helper takes which has waited so long, as it may wait again; 0: none. */
static long long turn_of(const trli_help *h, const offer *o, long long planes, int64_t idle_ns)
{
    const double ns = atomic_load_explicit(&o->plane_ns, memory_order_relaxed);
    long long turn = part_of(h, planes);
    if (h->forced || planes == 0) return turn;
    if (ns * (double)turn > TURN_NS) turn = (long long)(TURN_NS / ns);
    if (turn < LEAST_PLANES) turn = LEAST_PLANES;
    return turn <= planes && 2 * (double)idle_ns >= ns * (double)turn ? turn : 0;
}

static bool help_with(trli_help *h, const peer *of, offer *o, const trli_idler *idler)
{
    const trli_program *program;
    uint64_t left = atomic_load_explicit(&o->left, memory_order_acquire);
    const long long turn = turn_of(h, o, end_of(left) - first_of(left), idler->ns);
    const trli_step *step = turn > 0 ? find_step(h, o, &program) : NULL;
    const long long taken[] = {end_of(left) - turn, end_of(left)};
    /* Acquire the offer, which is the one that was looked at: its count is in `left`. */
    if (!step ||
        !atomic_compare_exchange_strong_explicit(&o->left, &left, pack(count_of(left), first_of(left), taken[0]),
                                                 memory_order_acquire, memory_order_relaxed))
        return false;
    const int64_t start = trli_now_ns(), points = turn * (o->hi[0] - o->lo[0]) * (o->hi[1] - o->lo[1]);
    const int lane = idler->workers ? idler->worker : h->frame->model->run->nworkers;
    if (!compute(of, o, program, step, h->room + (size_t)lane * h->room_bytes, taken))
        atomic_store_explicit(&o->nonfinite, true, memory_order_relaxed);
    atomic_fetch_add_explicit(&o->done, turn, memory_order_release);
    atomic_fetch_add_explicit(&h->points, points, memory_order_relaxed);
    atomic_fetch_add_explicit(&h->ns, trli_now_ns() - start, memory_order_relaxed);
    return true;
}

static bool help(trli_aid *aid, const trli_idler *idler)
{
    trli_help *h = (trli_help *)aid;
    if (idler->workers && idler->workers != h->frame->model->run->workers) return false;
    for (int p = 0; p < h->npeers; ++p) {
        board *b = h->peer[p].board;
        for (int i = 0; i < b->n && atomic_load_explicit(&b->offers, memory_order_relaxed); ++i)
            if (help_with(h, &h->peer[p], &b->offer[i], idler)) return true;
    }
    return false;
}

/* ---- choosing ---- */

static void set_share(trli_help *h, int share, bool helps)
{
    atomic_store_explicit(&h->share, share, memory_order_relaxed);
    if (share == 0) atomic_store_explicit(&h->own->offers, false, memory_order_relaxed);
    atomic_store_explicit(&h->aid.on, helps, memory_order_relaxed);
}

/* Through memory messages take no time, so a rank that waits for one waits for another rank. */
static double waited_of(const trl_graph *graph)
{
    return 1e-9 * (graph->late_share + graph->idle_share);
}

static int by_size(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static void post_window(trli_help *h, double waited, double seconds)
{
    post *p = &h->own->post[h->number % POSTS];
    const int64_t offered = atomic_exchange_explicit(&h->offered, 0, memory_order_relaxed);
    const int64_t taken = atomic_exchange_explicit(&h->taken, 0, memory_order_relaxed);
    qsort(h->step, (size_t)h->steps, sizeof *h->step, by_size);
    atomic_store_explicit(&p->waited, seconds > 0 ? waited / seconds : 0, memory_order_relaxed);
    atomic_store_explicit(&p->step, h->step[h->steps / 2], memory_order_relaxed);
    atomic_store_explicit(&p->share, trli_help_share(h), memory_order_relaxed);
    atomic_store_explicit(&p->taken, offered > 0 ? (double)taken / (double)offered : 0, memory_order_relaxed);
    atomic_store_explicit(&p->number, h->number, memory_order_release);
}

/* What all ranks measured in a window; false: some rank's is not there. The peers begin with the rank behind this one,
 * `window` with the first of the node. */
static bool read_windows(trli_help *h, int64_t number)
{
    const int n = h->npeers + 1;
    for (int i = 0; i < n; ++i) {
        const board *b = i == 0 ? h->own : h->peer[i - 1].board;
        const post *p = &b->post[number % POSTS];
        if (atomic_load_explicit(&p->number, memory_order_acquire) != number) return false;
        h->window[(h->place + i) % n] =
            (trli_help_window){.waited = atomic_load_explicit(&p->waited, memory_order_relaxed),
                               .step = atomic_load_explicit(&p->step, memory_order_relaxed),
                               .share = (int)atomic_load_explicit(&p->share, memory_order_relaxed),
                               .taken = atomic_load_explicit(&p->taken, memory_order_relaxed)};
    }
    return true;
}

void trli_help_end_step(trli_help *h, const trl_graph *graph, bool timed)
{
    if (!h) return;
    const int64_t now = trli_now_ns(), before = h->ended, ns = atomic_load_explicit(&h->ns, memory_order_relaxed);
    h->timed_steps += timed;
    h->timed_ns += timed ? ns - h->seen_ns : 0;
    h->seen_ns = ns;
    h->ended = now;
    if (h->forced) return;
    if (before == 0) { /* a window begins behind a step */
        h->began = now;
        h->waited = waited_of(graph);
        return;
    }
    h->step[h->steps++] = 1e-9 * (double)(now - before);
    if (h->steps < trli_help_steps_of(&h->choice)) return;
    post_window(h, waited_of(graph) - h->waited, 1e-9 * (double)(now - h->began));
    if (h->number > 1) {
        if (read_windows(h, h->number - 1))
            trli_help_choose(&h->choice, h->npeers + 1, h->window, h->place);
        else /* of a rank that failed */
            h->choice = (trli_help_choice){0};
        set_share(h, trli_help_share_of(&h->choice), h->choice.helps);
    }
    ++h->number;
    h->steps = 0;
    h->began = now;
    h->waited = waited_of(graph);
}

/* ---- making ---- */

bool trli_help_may_come(const trli_model *model)
{
    const trl_gidx *cells = model->layout->grid.cells;
    const double points = (double)cells[0] * (double)cells[1] * (double)cells[2];
    const trli_helping told = model->machine.helping;
    const bool large = points >= (double)LEAST_POINTS * model->ctx->ranks || told == TRLI_HELPING_ALWAYS;
    return model->ctx->ranks > 1 && model->machine.shares && large && cells[2] > 1 && model->nscalars <= SCALARS_MOST &&
           !(model->settings.disabled_passes & TRL_PASS_HELPING) && told != TRLI_HELPING_OFF;
}

static size_t room_of(const trli_model *model)
{
    size_t most = 0;
    for (int i = 0; i < model->nprograms; ++i)
        for (int s = 0; s < model->program[i]->nsteps; ++s) {
            const trli_step *step = &model->program[i]->step[s];
            if (step->kind != TRLI_STEP_KERNEL || !model->program[i]->plan->step[s].live) continue;
            const size_t bytes = trli_bound_kernel_bytes(model->program[i], step, NULL);
            if (bytes > most) most = bytes;
        }
    return most;
}

/* Memory to share that the system refuses is no failure. */
static trl_err make_board(trli_help *h)
{
    const trli_model *model = h->frame->model;
    const int workers = model->run->nworkers;
    const size_t bytes = sizeof(board) + (size_t)workers * sizeof(offer);
    h->room_bytes = room_of(model);
    h->room = trli_new(model->ctx, (size_t)workers + 1, h->room_bytes);
    h->peer = trli_new(model->ctx, (size_t)model->ctx->ranks, sizeof *h->peer);
    h->window = trli_new(model->ctx, (size_t)model->ctx->ranks, sizeof *h->window);
    if (!h->room || !h->peer || !h->window) return trli_no_memory(model->ctx, NULL, "for ranks that help one another");
    h->open = trli_open_memory_create(model->ctx, trli_open_memory_room(bytes + APART), false);
    unsigned char *memory = h->open ? trli_open_memory_take(h->open, bytes + APART) : NULL;
    if (!memory) {
        trli_open_memory_destroy(&h->open);
        return TRL_OK;
    }
    h->own = (board *)(void *)memory; /* at the start, where others find it */
    memset(h->own, 0, bytes);
    h->own->process = getpid();
    h->own->n = workers;
    return TRL_OK;
}

static void find_peers(trli_help *h)
{
    const trl_context *ctx = h->frame->model->ctx;
    for (int i = 1; i < ctx->ranks; ++i) {
        const int rank = (ctx->rank + i) % ctx->ranks;
        board *theirs = (board *)(void *)trli_loans_of(h->loans, rank);
        if (!theirs) continue;
        h->peer[h->npeers++] = (peer){theirs, trli_loans_of(h->frame->loans, rank)};
        h->place += rank < ctx->rank;
    }
}

trl_err trli_help_create(trli_frame *frame)
{
    const trli_model *model = frame->model;
    trl_context *ctx = model->ctx;
    const bool forced = model->machine.helping == TRLI_HELPING_ALWAYS;
    int64_t crowded = !forced && (ctx->topology.shared || ctx->topology.crowd_ranks > 0);
    trl_err err = TRL_OK;
    trli_help *h = frame->help = trli_new(ctx, 1, sizeof *h);
    if (!h) err = trli_no_memory(ctx, NULL, "for ranks that help one another");
    if (h) h->frame = frame;
    if (h) err = make_board(h);
    TRL_TRY(trli_agree_max(ctx, err, 1, &crowded));
    if (!crowded) TRL_TRY(trli_loans_create(ctx, h->open, true, &h->loans));
    if (h->loans) find_peers(h);
    if (h->npeers == 0) { /* also a rank alone on its node */
        trli_help_destroy(frame);
        return TRL_OK;
    }
    h->forced = forced;
    h->number = 1;
    h->aid.help = help;
    set_share(h, h->forced ? TRLI_HELP_MOST : 0, h->forced);
    trli_aid_add(ctx, &h->aid);
done:
    return err;
}

void trli_help_destroy(trli_frame *frame)
{
    trli_help *h = frame->help;
    frame->help = NULL;
    if (!h) return;
    trli_aid_remove(frame->model->ctx, &h->aid);
    trli_loans_destroy(&h->loans);
    trli_open_memory_destroy(&h->open);
    trli_free(h->room);
    trli_free(h->peer);
    trli_free(h->window);
    trli_free(h);
}

trli_help_given trli_help_get_given(const trli_help *h)
{
    if (!h) return (trli_help_given){0};
    const double timed = 1e-9 * (double)h->timed_ns / h->frame->model->run->nworkers;
    return (trli_help_given){.points = atomic_load_explicit(&h->points, memory_order_relaxed),
                             .seconds = 1e-9 * (double)atomic_load_explicit(&h->ns, memory_order_relaxed),
                             .saved = 1e-9 * (double)atomic_load_explicit(&h->saved_ns, memory_order_relaxed),
                             .step_share = h->timed_steps > 0 ? timed / (double)h->timed_steps : 0};
}
