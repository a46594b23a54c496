/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* A copy of what goes to a file, so that the fields may change before it is there; and the thread that writes it. */
#ifndef TRLI_OUTPUT_COPY_IMPL_H
#define TRLI_OUTPUT_COPY_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include <trl_context.h>

/* Bytes of a copy, and their place in the file. */
typedef struct trli_file_copy_piece {
    const void *bytes;
    size_t size;
    int64_t at;
} trli_file_copy_piece;

typedef struct trli_file_copy_block trli_file_copy_block;

/* The bytes lie in blocks of counted memory, which do not move. All zero: empty. */
typedef struct trli_file_copy {
    trl_context *ctx;
    trli_file_copy_block *block; /* [nblocks]; the last one is being filled */
    trli_file_copy_piece *piece; /* [npieces] */
    int32_t nblocks, blocks_room, npieces, pieces_room;
    size_t bytes; /* of all blocks */
} trli_file_copy;

/* Room for so many bytes; NULL: memory is short, and the caller writes to the file at once. */
void *trli_file_copy_room(trli_file_copy *copy, size_t bytes);
/* Add bytes, which are copied unless they lie in the room that was given last. False: memory is short. */
bool trli_file_copy_add(trli_file_copy *copy, const void *bytes, size_t size, int64_t at);
void trli_file_copy_free(trli_file_copy *copy);

/* What the thread does; it stays where it is until it is done. */
typedef struct trli_file_job trli_file_job;
struct trli_file_job {
    void (*call)(void *data); /* NULL: nothing */
    void *data;
    trli_file_job *next;
};

/* It does jobs one after the other, and calls neither MPI nor HDF5. */
typedef struct trli_file_thread {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    trli_file_job *first, **last; /* guarded by the lock, as `ending` */
    bool ending;
    int64_t posted;        /* main thread only */
    _Atomic int64_t ended; /* changes with the lock held */
} trli_file_thread;

/* False: the system starts none. It does not move. */
bool trli_file_thread_start(trl_context *ctx, trli_file_thread *thread);
/* Returns the number of the job: it is done when so many have ended. */
int64_t trli_file_thread_post(trli_file_thread *thread, trli_file_job *job);
void trli_file_thread_wait(trli_file_thread *thread, int64_t number);
/* Once all jobs are done. */
void trli_file_thread_end(trli_file_thread *thread);

#endif
