/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include "open_memory_impl.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "context_impl.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#define OUT_OF_BOUNDS(at, bytes) ASAN_POISON_MEMORY_REGION(at, bytes)
#define IN_BOUNDS(at, bytes) ASAN_UNPOISON_MEMORY_REGION(at, bytes)
#else
#define OUT_OF_BOUNDS(at, bytes) (void)0
#define IN_BOUNDS(at, bytes) (void)0
#endif

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* since Linux 5.14 */
#endif
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* since Linux 6.1 */
#endif

static const size_t huge_page = (size_t)2 << 20, page = 4096, line = 64;
/* Room that a block may need beside its bytes: to begin at a page, and somewhere in it. */
static const size_t block_gap = (size_t)3 << 12;

typedef struct open_block {
    size_t offset, bytes;
    bool used;
} open_block;

struct trli_open_memory {
    trl_context *ctx;
    int file;
    unsigned char *at;
    size_t bytes, top; /* of the file; dealt out so far */
    open_block *block; /* in their order */
    int nblocks, nfree;
    int32_t capacity;
};

static size_t round_up(size_t bytes, size_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

static size_t round_down(size_t bytes, size_t unit)
{
    return bytes / unit * unit;
}

/* Map a file at a huge page. */
static void *map_aligned(int file, size_t bytes, int access)
{
    unsigned char *room = mmap(NULL, bytes + huge_page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED) return NULL;
    unsigned char *at = (unsigned char *)round_up((uintptr_t)room, huge_page);
    const size_t before = (size_t)(at - room), behind = huge_page - before;
    const bool mapped = mmap(at, bytes, access, MAP_SHARED | MAP_FIXED, file, 0) == at;
    if (before > 0) (void)munmap(room, before);
    if (behind > 0) (void)munmap(at + bytes, behind);
    if (!mapped) (void)munmap(at, bytes);
    return mapped ? at : NULL;
}

/* A file in memory has huge pages where an administrator allows them, or the system makes them of small ones when it is
 * asked. */
static bool has_huge_pages(unsigned char *at, size_t bytes)
{
    (void)madvise(at, bytes, MADV_HUGEPAGE);
    return madvise(at, page, MADV_POPULATE_WRITE) == 0 && madvise(at, huge_page, MADV_COLLAPSE) == 0;
}

trli_open_memory *trli_open_memory_create(trl_context *ctx, size_t bytes, bool fast)
{
    trli_open_memory *m = trli_new(ctx, 1, sizeof *m);
    if (!m) return NULL;
    *m = (trli_open_memory){.ctx = ctx, .bytes = round_up(bytes, huge_page)};
    m->file = memfd_create("trellis", MFD_CLOEXEC);
    if (m->file >= 0 && ftruncate(m->file, (off_t)m->bytes) == 0)
        m->at = map_aligned(m->file, m->bytes, PROT_READ | PROT_WRITE);
    if (!m->at || (bytes >= huge_page && !has_huge_pages(m->at, m->bytes) && fast)) trli_open_memory_destroy(&m);
    if (m) OUT_OF_BOUNDS(m->at, m->bytes);
    return m;
}

void trli_open_memory_destroy(trli_open_memory **memory)
{
    trli_open_memory *m = *memory;
    *memory = NULL;
    if (!m) return;
    if (m->at) IN_BOUNDS(m->at, m->bytes);
    if (m->at) (void)munmap(m->at, m->bytes);
    if (m->file >= 0) (void)close(m->file);
    for (int i = 0; i < m->nblocks; ++i)
        if (m->block[i].used) trli_memory_discount(m->ctx, m->block[i].bytes);
    trli_free(m->block);
    trli_free(m);
}

size_t trli_open_memory_room(size_t bytes)
{
    return bytes + block_gap;
}

/* The place of a block of this size that was given back. */
static open_block *find_free(const trli_open_memory *m, size_t bytes)
{
    for (int i = 0; i < m->nblocks && m->nfree > 0; ++i)
        if (!m->block[i].used && m->block[i].bytes == bytes) return &m->block[i];
    return NULL;
}

/* Where another block would begin. */
static size_t next_offset(const trli_open_memory *m, size_t bytes)
{
    return bytes < page ? round_up(m->top, line) : round_up(m->top, page) + trli_memory_stagger(bytes, m->nblocks);
}

static open_block *add_block(trli_open_memory *m, size_t bytes)
{
    const size_t offset = next_offset(m, bytes);
    if (offset + bytes > m->bytes || !trli_make_room(m->ctx, &m->block, m->nblocks, 1, &m->capacity, sizeof *m->block))
        return NULL;
    m->top = offset + bytes;
    m->block[m->nblocks] = (open_block){.offset = offset, .bytes = bytes};
    ++m->nfree;
    return &m->block[m->nblocks++];
}

void *trli_open_memory_take(trli_open_memory *m, size_t bytes)
{
    open_block *block = find_free(m, bytes);
    if (!block) block = add_block(m, bytes);
    if (!block || !trli_memory_count(m->ctx, bytes)) return NULL;
    block->used = true;
    --m->nfree;
    IN_BOUNDS(m->at + block->offset, bytes);
    return m->at + block->offset;
}

bool trli_open_memory_is_full(const trli_open_memory *m, size_t bytes)
{
    return !find_free(m, bytes) && next_offset(m, bytes) + bytes > m->bytes;
}

static int by_offset(const void *left, const void *right)
{
    const open_block *a = left, *b = right;
    return (a->offset > b->offset) - (a->offset < b->offset);
}

void trli_open_memory_give(trli_open_memory *m, void *memory)
{
    const open_block key = {.offset = (size_t)trli_open_memory_offset(m, memory)};
    open_block *block = bsearch(&key, m->block, (size_t)m->nblocks, sizeof key, by_offset);
    const size_t first = round_up(block->offset, page), end = round_down(block->offset + block->bytes, page);
    if (first < end) (void)madvise(m->at + first, end - first, MADV_REMOVE);
    OUT_OF_BOUNDS(memory, block->bytes);
    block->used = false;
    ++m->nfree;
    trli_memory_discount(m->ctx, block->bytes);
}

/* Huge pages are made where there is nothing yet but one small page, which tells near whom: where all small pages are
 * there it takes twenty times as long. A last page that would stay mostly empty is left to small ones. */
void trli_open_memory_settle(const trli_open_memory *m, const void *at, size_t bytes)
{
    const size_t offset = (size_t)trli_open_memory_offset(m, at), whole = round_up(m->top, huge_page);
    const size_t last = whole - m->top <= m->top / 8 ? whole : round_down(m->top, huge_page);
    const size_t first = round_up(offset > block_gap ? offset - block_gap : 0, huge_page);
    size_t end = round_up(offset + bytes, huge_page);
    if (end > last) end = last;
    if (first >= end) return;
    for (size_t i = first; i < end; i += huge_page) (void)madvise(m->at + i, page, MADV_POPULATE_WRITE);
    (void)madvise(m->at + first, end - first, MADV_COLLAPSE);
}

int64_t trli_open_memory_offset(const trli_open_memory *m, const void *at)
{
    const uintptr_t first = (uintptr_t)m->at, place = (uintptr_t)at;
    return place >= first && place < first + m->bytes ? (int64_t)(place - first) : -1;
}

void trli_open_memory_name(const trli_open_memory *m, trli_open_name *name)
{
    struct stat status = {0};
    (void)fstat(m->file, &status);
    *name = (trli_open_name){
        .process = getpid(), .file = m->file, .device = status.st_dev, .inode = status.st_ino, .bytes = m->bytes};
}

void *trli_open_memory_map(const trli_open_name *name, bool writes)
{
    char path[64];
    struct stat status;
    void *mapped = NULL;
    snprintf(path, sizeof path, "/proc/%" PRId64 "/fd/%" PRId64, name->process, name->file);
    const int file = open(path, (writes ? O_RDWR : O_RDONLY) | O_CLOEXEC);
    if (file < 0) return NULL;
    if (fstat(file, &status) == 0 && status.st_dev == name->device && status.st_ino == name->inode)
        mapped = map_aligned(file, name->bytes, writes ? PROT_READ | PROT_WRITE : PROT_READ);
    (void)close(file);
    return mapped;
}

void trli_open_memory_unmap(const void *mapped, const trli_open_name *name)
{
    if (mapped) (void)munmap((void *)(uintptr_t)mapped, name->bytes);
}
