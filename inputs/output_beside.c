/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include "output_beside_impl.h"

#include "clock_impl.h"
#include "context_impl.h"

enum { FILES_MOST = 2 /* fields and a checkpoint of one step */ };

typedef enum stage { WRITING, NAMING, DONE } stage;

/* A file on its way. */
typedef struct stored {
    trli_output_file file;
    trli_file_copy copy;
    trli_file_owner owner;
    trli_new_file more; /* rank 0: gets its name behind the file */
    char reason[TRLI_FILE_REASON];
    stage stage;
    double begin_s, thread_s; /* for what is done at once, and for what waits for the disk */
    trli_file_job job;
    int64_t number; /* of the job */
} stored;

struct trli_beside {
    trl_context *ctx;
    trli_file_thread thread;
    stored file[FILES_MOST];
    int first, n; /* the oldest; how many there are */
    bool failed;  /* a file got no name */
    trli_beside_stats stats;
};

static stored *file_of(trli_beside *b, int i)
{
    return &b->file[(b->first + i) % FILES_MOST];
}

/* ---- the parts of a file ---- */

static trl_err begin(stored *s, trl_context *ctx, bool copied, const trli_file_owner *owner, const trl_layout *layout,
                     const char *path, int64_t lineage, const trli_contents *contents, int n,
                     const trli_output_field *fields)
{
    const double started = trli_clock();
    *s = (stored){.copy = {.ctx = ctx}, .owner = *owner, .more = {.file = -1}};
    trl_context_begin_phase(ctx);
    trl_err err =
        trli_output_fields(ctx, layout, path, lineage, contents, n, fields, copied ? &s->copy : NULL, &s->file);
    err = trl_context_end_phase(ctx, err);
    s->begin_s = trli_clock() - started;
    return err;
}

/* What waits for the disk. Thread: any. */
static void do_stage(void *data)
{
    stored *s = data;
    const double started = trli_clock();
    if (s->stage == WRITING) {
        trli_output_write(&s->file);
    } else if (s->file.first.path) {
        trli_output_name(&s->file);
        if (s->file.first.named && s->more.path) (void)trli_file_publish(&s->more, s->reason);
    }
    s->thread_s += trli_clock() - started;
}

/* The ranks agree on what became of it. Collective. */
static trl_err end_stage(stored *s)
{
    trl_context *ctx = s->file.ctx;
    const bool first = s->file.first.path != NULL;
    trl_err err;
    trl_context_begin_phase(ctx);
    if (s->stage++ == WRITING) {
        TRL_TRY(trli_output_written(&s->file, TRL_OK));
        if (first && s->owner.add) err = s->owner.add(s->owner.data, s->file.first.aside, &s->more);
    } else {
        TRL_TRY(trli_output_named(&s->file));
        if (s->more.path && !s->more.named) TRL_TRY(trli_file_fail_to_publish(&s->more, s->reason));
        if (first && s->owner.named) err = s->owner.named(s->owner.data);
    }
done:
    return trl_context_end_phase(ctx, err);
}

static void release(stored *s)
{
    trli_output_release(&s->file);
    (void)!trli_file_end(&s->more, s->more.named ? TRL_OK : TRL_ERR_IO);
    trli_file_copy_free(&s->copy);
    trli_free(s->owner.data);
}

static trl_err store_at_once(trl_context *ctx, const trli_file_owner *owner, const trl_layout *layout, const char *path,
                             int64_t lineage, const trli_contents *contents, int n, const trli_output_field *fields)
{
    stored s;
    trl_err err = begin(&s, ctx, false, owner, layout, path, lineage, contents, n, fields);
    while (err == TRL_OK && s.stage < DONE) {
        do_stage(&s);
        err = end_stage(&s);
    }
    release(&s);
    return err;
}

/* ---- beside steps ---- */

static int64_t minus_ended(const void *data)
{
    const trli_file_thread *thread = data;
    return -atomic_load_explicit(&thread->ended, memory_order_acquire);
}

trl_err trli_beside_create(trl_context *ctx, trli_beside **beside)
{
    trli_beside *b = trli_new(ctx, 1, sizeof *b);
    const bool started = b && trli_file_thread_start(ctx, &b->thread);
    int64_t missing = !started;
    trl_err err =
        trli_agree_max(ctx, b ? TRL_OK : trli_no_memory(ctx, NULL, "to write files while steps go on"), 1, &missing);
    *beside = NULL;
    if (err == TRL_OK && !missing) {
        b->ctx = ctx;
        trli_agree_carry(ctx, TRLI_CARRIED_FILES, minus_ended, &b->thread);
        *beside = b;
        return TRL_OK;
    }
    if (started) trli_file_thread_end(&b->thread);
    trli_free(b);
    return err;
}

/* Remove files that have no name yet. */
static void drop(trli_beside *b)
{
    for (int i = 0; i < b->n; ++i) {
        stored *s = file_of(b, i);
        trli_file_thread_wait(&b->thread, s->number);
        release(s);
    }
    b->n = 0;
}

void trli_beside_destroy(trli_beside **beside)
{
    trli_beside *b = *beside;
    *beside = NULL;
    if (!b) return;
    drop(b);
    trli_agree_carry(b->ctx, TRLI_CARRIED_FILES, NULL, NULL);
    trli_file_thread_end(&b->thread);
    trli_free(b);
}

/* Each rank posts the same jobs in the same order. */
static void post(trli_beside *b, stored *s)
{
    s->job = (trli_file_job){.call = do_stage, .data = s};
    s->number = trli_file_thread_post(&b->thread, &s->job);
}

/* The oldest file, of which this rank's part is done, and those of others will be. */
static trl_err go_on(trli_beside *b)
{
    stored *s = file_of(b, 0);
    trl_err err = end_stage(s);
    if (err != TRL_OK) {
        b->failed = true;
        drop(b);
    } else if (s->stage < DONE) {
        post(b, s);
    } else {
        ++b->stats.files;
        b->stats.seconds += s->thread_s;
        b->stats.last = s->begin_s + s->thread_s;
        release(s);
        b->first = (b->first + 1) % FILES_MOST;
        --b->n;
    }
    return err;
}

/* Wait until so many files are left at most. */
static trl_err wait_for(trli_beside *b, int left)
{
    trl_err err = TRL_OK;
    while (b->n > left && err == TRL_OK) {
        trli_file_thread_wait(&b->thread, file_of(b, 0)->number);
        err = go_on(b);
    }
    return err;
}

static void note_bytes(trli_beside *b)
{
    int64_t bytes = 0;
    for (int i = 0; i < b->n; ++i) bytes += (int64_t)file_of(b, i)->copy.bytes;
    if (bytes > b->stats.bytes) b->stats.bytes = bytes;
}

trl_err trli_fields_store(trl_context *ctx, trli_beside *b, const trli_file_owner *owner, const trl_layout *layout,
                          const char *path, int64_t lineage, const trli_contents *contents, int n,
                          const trli_output_field *fields)
{
    if (!b) return store_at_once(ctx, owner, layout, path, lineage, contents, n, fields);
    trl_err err = wait_for(b, FILES_MOST - 1);
    if (err != TRL_OK) {
        trli_free(owner->data);
        return err;
    }
    stored *s = file_of(b, b->n);
    err = begin(s, ctx, true, owner, layout, path, lineage, contents, n, fields);
    if (err != TRL_OK) {
        release(s);
        return err;
    }
    ++b->n;
    note_bytes(b);
    post(b, s);
    return TRL_OK;
}

bool trli_beside_is_due(const trli_beside *b)
{
    return b && b->n > 0 && -trli_agree_carried(b->ctx, TRLI_CARRIED_FILES) >= b->file[b->first].number;
}

trl_err trli_beside_go_on(trli_beside *b)
{
    return go_on(b);
}

bool trli_beside_has_failed(const trli_beside *b)
{
    return b && b->failed;
}

trl_err trli_beside_finish(trli_beside *b)
{
    return b ? wait_for(b, 0) : TRL_OK;
}

trli_beside_stats trli_beside_get_stats(const trli_beside *b)
{
    return b ? b->stats : (trli_beside_stats){0};
}
