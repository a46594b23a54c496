/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Data of graphs that devices run: handles of several strided boxes in the memory of each space, and operations on them
 * whose results depend on every word that they read. A frame holds all of it. Included after app_support.h and
 * mock_support.h. */
#ifndef PLACED_DATA_H
#define PLACED_DATA_H

enum {
    DATA_HANDLES = 12,
    DATA_BOXES = 5,
    DATA_SPACES = 5,
    DATA_NODES = 96,
    DATA_ACCESSES = 6,
    DATA_CHUNKS = 4,
    DATA_PARTS = 8,
    DATA_KEY = 1000, /* of the first handle; the next ones follow by DATA_KEY_STEP */
    DATA_KEY_STEP = 7,
};

static const uint64_t data_poison = 0x7ff4deaddeaddeadu;

typedef struct data_box {
    int words, rows, planes; /* of 8 bytes; a box: planes of rows of words */
    int pad[DATA_SPACES];    /* words between two rows, other ones in each space */
} data_box;

typedef struct data_handle {
    trl_handle name;
    int nboxes; /* 0: of no bytes, it only orders tasks */
    int words;  /* of all boxes */
    int32_t part;
    bool written; /* by some task */
    data_box box[DATA_BOXES];
} data_handle;

/* What a run changes. */
typedef struct data_frame {
    const struct placed_graph *graph;
    uint64_t *at[DATA_SPACES][DATA_HANDLES][DATA_BOXES];
    uint32_t valid[DATA_HANDLES];
    uint64_t sum[DATA_NODES];          /* of what a task read */
    _Atomic int calls[DATA_NODES];     /* of a run, chunks counted */
    _Atomic int where[DATA_NODES];     /* space + 1 */
    _Atomic int inside, late;          /* calls in progress; those after the end of the run */
    _Atomic bool over;                 /* no run is in progress */
    _Atomic int wrong;                 /* things found wrong */
    int64_t copies, bytes, copies_out; /* that its runs should have needed */
    int parted;                        /* tasks that make a value together with others elsewhere */
    int64_t locked[DATA_HANDLES];      /* by tasks that had the resource: plain, for ThreadSanitizer */
    trl_event done[DATA_NODES];        /* of spawned tasks */
    int fail_at, cancel_at;            /* a task, or NONE */
} data_frame;

/* ---- boxes ---- */

static inline size_t box_words(const data_box *b, int space)
{
    return (size_t)(b->words + b->pad[space]) * (size_t)b->rows * (size_t)b->planes;
}

static inline uint64_t *box_word(const data_frame *f, int space, int h, int b, const data_box *box, int i)
{
    const int row = i / box->words;
    return f->at[space][h][b] + (size_t)row * (size_t)(box->words + box->pad[space]) + i % box->words;
}

/* The i-th word of a handle's data, 0 <= i < words. */
static inline uint64_t *data_word(const data_frame *f, const data_handle *handle, int h, int space, int i)
{
    int b = 0;
    for (; i >= handle->box[b].words * handle->box[b].rows * handle->box[b].planes; ++b)
        i -= handle->box[b].words * handle->box[b].rows * handle->box[b].planes;
    return box_word(f, space, h, b, &handle->box[b], i);
}

static inline uint64_t data_mix(uint64_t a, uint64_t b)
{
    uint64_t state = a ^ (b + 0x9e3779b97f4a7c15u + (a << 6) + (a >> 2));
    return app_random(&state);
}

static inline void make_data_handle(uint64_t *state, data_handle *h)
{
    *h = (data_handle){.nboxes = app_below(state, 12) ? 1 + app_below(state, DATA_BOXES) : 0,
                       .part = (int32_t)app_below(state, 1000)};
    for (int b = 0; b < h->nboxes; ++b) {
        data_box *box = &h->box[b];
        *box = (data_box){
            .words = 1 + app_below(state, 6), .rows = 1 + app_below(state, 3), .planes = 1 + app_below(state, 2)};
        for (int s = 0; s < DATA_SPACES; ++s) box->pad[s] = app_below(state, 3);
        h->words += box->words * box->rows * box->planes;
    }
}

/* ---- memory, as trl_graph_memory wants it ---- */

static inline int handle_of_key(int64_t key)
{
    return (int)(key - DATA_KEY) / DATA_KEY_STEP;
}

static const data_handle *data_handles(const struct placed_graph *graph);

static trl_err provide_data(void *data, void *frame, int64_t key, int space)
{
    data_frame *f = frame;
    const int h = handle_of_key(key);
    const data_handle *handle = &data_handles(data)[h];
    trl_device *device = mock(space - 1);
    trl_err err = TRL_OK;
    for (int b = 0; b < handle->nboxes; ++b) {
        void *memory;
        if (f->at[space][h][b]) continue;
        TRL_TRY(device->ops->allocate(device, box_words(&handle->box[b], space) * sizeof(uint64_t), &memory));
        f->at[space][h][b] = memory;
    }
done:
    return err;
}

static int locate_data(void *data, void *frame, int64_t key, int32_t part, int space,
                       trl_memory_box piece[TRL_MEMORY_BOXES])
{
    data_frame *f = frame;
    const int h = handle_of_key(key);
    const data_handle *handle = &data_handles(data)[h];
    if (part != handle->part) atomic_fetch_add(&f->wrong, 1);
    for (int b = 0; b < handle->nboxes; ++b) {
        const data_box *box = &handle->box[b];
        const ptrdiff_t stride = (ptrdiff_t)sizeof(uint64_t) * (box->words + box->pad[space]);
        piece[b] = (trl_memory_box){.at = f->at[space][h][b],
                                    .row = sizeof(uint64_t) * (size_t)box->words,
                                    .rows = box->rows,
                                    .planes = box->planes,
                                    .row_stride = stride,
                                    .plane_stride = stride * box->rows};
    }
    return handle->nboxes;
}

static uint32_t *valid_data(void *data, void *frame, int64_t key)
{
    data_frame *f = frame;
    const int h = handle_of_key(key);
    return data_handles(data)[h].nboxes ? &f->valid[h] : NULL;
}

/* ---- frames ---- */

/* A value of a handle that the host gives. */
static inline void set_data(data_frame *f, const data_handle *handle, int h, uint64_t seed)
{
    for (int i = 0; i < handle->words; ++i) *data_word(f, handle, h, 0, i) = data_mix(seed, (uint64_t)(64 * i + h));
    f->valid[h] = 1;
}

static inline data_frame *new_data_frame(const struct placed_graph *graph, int handles, uint64_t seed)
{
    data_frame *f = app_calloc(1, sizeof *f);
    f->graph = graph;
    f->fail_at = f->cancel_at = -1;
    for (int h = 0; h < handles; ++h) {
        const data_handle *handle = &data_handles(graph)[h];
        for (int b = 0; b < handle->nboxes; ++b)
            f->at[0][h][b] = app_calloc(box_words(&handle->box[b], 0), sizeof(uint64_t));
        set_data(f, handle, h, seed);
    }
    return f;
}

/* The memory of the devices, none of which works on it. */
static inline void leave_devices(data_frame *f, int handles)
{
    for (int s = 1; s < DATA_SPACES; ++s)
        for (int h = 0; h < handles; ++h)
            for (int b = 0; b < DATA_BOXES; ++b) {
                if (f->at[s][h][b]) mock(s - 1)->ops->release(mock(s - 1), f->at[s][h][b]);
                f->at[s][h][b] = NULL;
            }
}

static inline void free_data_frame(data_frame **frame, int handles)
{
    data_frame *f = *frame;
    *frame = NULL;
    leave_devices(f, handles);
    for (int h = 0; h < handles; ++h)
        for (int b = 0; b < DATA_BOXES; ++b) free(f->at[0][h][b]);
    free(f);
}

/* Make what is not valid in a space unlike any value. */
static inline void poison_data(const data_frame *f, const data_handle *handle, int h, int space)
{
    for (int i = 0; f->at[space][h][0] && i < handle->words; ++i) *data_word(f, handle, h, space, i) = data_poison;
}

static inline void poison_invalid(const data_frame *f, int handles)
{
    for (int h = 0; h < handles; ++h)
        for (int s = 0; s < DATA_SPACES; ++s)
            if (!(f->valid[h] >> s & 1)) poison_data(f, &data_handles(f->graph)[h], h, s);
}

/* Bring all data to the host: mock devices have memory that it can read. */
static inline void bring_home(data_frame *f, int handles)
{
    for (int h = 0; h < handles; ++h) {
        const data_handle *handle = &data_handles(f->graph)[h];
        const int from = __builtin_ctz(f->valid[h]);
        for (int i = 0; from > 0 && i < handle->words; ++i)
            *data_word(f, handle, h, 0, i) = *data_word(f, handle, h, from, i);
        f->valid[h] = 1;
    }
}

#endif
