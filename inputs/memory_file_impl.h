/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The structure of an HDF5 file, made by HDF5 in memory while the values of its large variables stay outside.
 *
 * HDF5 never writes to the disk: after a write that fails it cannot close the file, and then crashes when MPI ends.
 * Here its writes go to pages of memory. A chunk "written" from `values` only gets its place, which the ranks then
 * fill with their points by themselves. */
#ifndef TRLI_MEMORY_FILE_IMPL_H
#define TRLI_MEMORY_FILE_IMPL_H

#include <hdf5.h>

#include <trl_context.h>

enum {
    TRLI_WORD_BYTES = 8, /* where anything begins: checksums are made of words */
    TRLI_PAGE_BYTES = 4096,
    TRLI_PAGE_WORDS = TRLI_PAGE_BYTES / TRLI_WORD_BYTES
};

typedef struct trli_page {
    int64_t number; /* its bytes begin at number * TRLI_PAGE_BYTES */
    unsigned char *bytes;
    bool *written; /* [TRLI_PAGE_WORDS] behind the bytes: the word belongs to the structure, not to values */
} trli_page;

typedef struct trli_memory_file {
    trl_context *ctx;
    trli_page *page; /* [npages] by number; bytes of other pages are zero */
    int32_t npages, room;
    int64_t end;        /* bytes of the file by now */
    bool no_memory;     /* for all of it. HDF5 is not told of writes that are lost, or it could not close the file */
    const void *values; /* what is written from here is not kept */
    int64_t place;      /* where the last such write went, -1: nowhere yet */
    hid_t driver;
} trli_memory_file;

/* Create an HDF5 file in `memory`, which must stay where it is until the file is closed. -1: HDF5 failed. Not
 * collective. */
hid_t trli_memory_file_create(trli_memory_file *memory);
/* Give back the memory; the file is closed. */
void trli_memory_file_release(trli_memory_file *memory);

#endif
