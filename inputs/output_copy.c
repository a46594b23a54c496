/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include "output_copy_impl.h"

#include <signal.h>
#include <string.h>

#include "context_impl.h"

/* ---- the copy ---- */

struct trli_file_copy_block {
    char *at;
    size_t room, used;
};

enum {
    BLOCK_BYTES = 4 << 20, /* at least */
    LEFT_BYTES = 64 << 20, /* of memory, for what compresses */
    LINE = 64              /* pieces begin at lines of the cache */
};

static bool add_block(trli_file_copy *copy, size_t bytes)
{
    const size_t room = bytes > BLOCK_BYTES ? bytes : BLOCK_BYTES;
    if (!trli_memory_fits(copy->ctx, room + LEFT_BYTES)) return false;
    if (!trli_make_room(copy->ctx, &copy->block, copy->nblocks, 1, &copy->blocks_room, sizeof *copy->block))
        return false;
    char *at = trli_memory_try(copy->ctx, room);
    if (!at) return false;
    copy->block[copy->nblocks++] = (trli_file_copy_block){.at = at, .room = room};
    copy->bytes += room;
    return true;
}

void *trli_file_copy_room(trli_file_copy *copy, size_t bytes)
{
    const size_t room = (bytes + LINE - 1) / LINE * LINE;
    const trli_file_copy_block *last = copy->nblocks ? &copy->block[copy->nblocks - 1] : NULL;
    if ((!last || last->room - last->used < room) && !add_block(copy, room)) return NULL;
    trli_file_copy_block *block = &copy->block[copy->nblocks - 1];
    block->used += room;
    return block->at + block->used - room;
}

static bool holds(const trli_file_copy *copy, const char *bytes)
{
    const trli_file_copy_block *last = copy->nblocks ? &copy->block[copy->nblocks - 1] : NULL;
    return last && bytes >= last->at && bytes < last->at + last->used;
}

bool trli_file_copy_add(trli_file_copy *copy, const void *bytes, size_t size, int64_t at)
{
    if (!trli_make_room(copy->ctx, &copy->piece, copy->npieces, 1, &copy->pieces_room, sizeof *copy->piece))
        return false;
    if (!holds(copy, bytes)) {
        void *to = trli_file_copy_room(copy, size);
        if (!to) return false;
        bytes = memcpy(to, bytes, size);
    }
    copy->piece[copy->npieces++] = (trli_file_copy_piece){bytes, size, at};
    return true;
}

void trli_file_copy_free(trli_file_copy *copy)
{
    for (int i = 0; i < copy->nblocks; ++i) {
        void *memory = copy->block[i].at;
        trl_memory_free(copy->ctx, &memory);
    }
    trli_free(copy->block);
    trli_free(copy->piece);
    *copy = (trli_file_copy){.ctx = copy->ctx};
}

/* ---- the thread ---- */

static void *work(void *data)
{
    trli_file_thread *t = data;
    pthread_mutex_lock(&t->lock);
    for (;;) {
        trli_file_job *job = t->first;
        if (!job && t->ending) break;
        if (!job) {
            pthread_cond_wait(&t->changed, &t->lock);
            continue;
        }
        t->first = job->next;
        if (!t->first) t->last = &t->first;
        pthread_mutex_unlock(&t->lock);
        if (job->call) job->call(job->data);
        pthread_mutex_lock(&t->lock);
        atomic_fetch_add_explicit(&t->ended, 1, memory_order_release); /* what the job did is seen by who sees this */
        pthread_cond_broadcast(&t->changed);
    }
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

/* The thread is for disks, which it waits for: it runs where there is room, and leaves signals to others. */
bool trli_file_thread_start(trl_context *ctx, trli_file_thread *t)
{
    sigset_t all, before;
    *t = (trli_file_thread){.last = &t->first};
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->changed, NULL);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    hwloc_bitmap_t bound = trli_topology_unbind(&ctx->topology);
    const bool started = pthread_create(&t->thread, NULL, work, t) == 0;
    trli_topology_rebind(&ctx->topology, bound);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (started) return true;
    pthread_cond_destroy(&t->changed);
    pthread_mutex_destroy(&t->lock);
    return false;
}

int64_t trli_file_thread_post(trli_file_thread *t, trli_file_job *job)
{
    job->next = NULL;
    pthread_mutex_lock(&t->lock);
    *t->last = job;
    t->last = &job->next;
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->lock);
    return ++t->posted;
}

void trli_file_thread_wait(trli_file_thread *t, int64_t number)
{
    pthread_mutex_lock(&t->lock);
    while (atomic_load_explicit(&t->ended, memory_order_relaxed) < number) pthread_cond_wait(&t->changed, &t->lock);
    pthread_mutex_unlock(&t->lock);
}

void trli_file_thread_end(trli_file_thread *t)
{
    pthread_mutex_lock(&t->lock);
    t->ending = true;
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->lock);
    (void)pthread_join(t->thread, NULL);
    pthread_cond_destroy(&t->changed);
    pthread_mutex_destroy(&t->lock);
}
