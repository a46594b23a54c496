/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include "memory_file_impl.h"
#include "memory_impl.h"

#include <string.h>

#if H5_VERSION_GE(1, 13, 0)
#include <H5FDdevelop.h>
#endif

/* What HDF5 takes for its open file. The public part comes first. */
typedef struct handle {
    H5FD_t public;
    trli_memory_file *memory;
    haddr_t allocated, written; /* ends of what HDF5 gave out, and of what it wrote */
} handle;

/* What an access list holds of this driver. */
typedef struct access_info {
    trli_memory_file *memory;
} access_info;

static H5FD_t *open_file(const char *name, unsigned flags, hid_t access, haddr_t most)
{
    const access_info *info = H5Pget_driver_info(access);
    handle *h = info ? trli_new(info->memory->ctx, 1, sizeof *h) : NULL;
    (void)name;
    (void)flags;
    (void)most;
    if (info) info->memory->no_memory |= !h;
    if (!h) return NULL;
    h->memory = info->memory;
    return &h->public;
}

static herr_t close_file(H5FD_t *file)
{
    trli_free(file);
    return 0;
}

static herr_t query(const H5FD_t *file, unsigned long *flags)
{
    (void)file;
    *flags = 0;
    return 0;
}

static haddr_t get_allocated(const H5FD_t *file, H5FD_mem_t type)
{
    (void)type;
    return ((const handle *)file)->allocated;
}

static herr_t set_allocated(H5FD_t *file, H5FD_mem_t type, haddr_t end)
{
    handle *h = (handle *)file;
    (void)type;
    h->allocated = end;
    h->memory->end = (int64_t)end;
    return 0;
}

static haddr_t get_written(const H5FD_t *file, H5FD_mem_t type)
{
    (void)type;
    return ((const handle *)file)->written;
}

/* The page of a number, or where it belongs. */
static int find_page(const trli_memory_file *m, int64_t number, bool *there)
{
    int low = 0, high = m->npages;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (m->page[middle].number < number)
            low = middle + 1;
        else
            high = middle;
    }
    *there = low < m->npages && m->page[low].number == number;
    return low;
}

/* A page to write to; NULL: no memory. */
static trli_page *make_page(trli_memory_file *m, int64_t number)
{
    bool there;
    int at = find_page(m, number, &there);
    if (there) return &m->page[at];
    if (!trli_make_room(m->ctx, &m->page, m->npages, 1, &m->room, sizeof *m->page)) return NULL;
    unsigned char *bytes = trli_new(m->ctx, 1, TRLI_PAGE_BYTES + TRLI_PAGE_WORDS * sizeof(bool));
    if (!bytes) return NULL;
    memmove(m->page + at + 1, m->page + at, (size_t)(m->npages - at) * sizeof *m->page);
    m->page[at] = (trli_page){number, bytes, (bool *)(bytes + TRLI_PAGE_BYTES)};
    ++m->npages;
    return &m->page[at];
}

/* The part of [at, at + size) that lies in the page of its first byte. */
static size_t within_page(int64_t at, size_t size)
{
    size_t rest = (size_t)(TRLI_PAGE_BYTES - at % TRLI_PAGE_BYTES);
    return size < rest ? size : rest;
}

static herr_t read_bytes(H5FD_t *file, H5FD_mem_t type, hid_t list, haddr_t from, size_t size, void *to)
{
    const trli_memory_file *m = ((const handle *)file)->memory;
    int64_t at = (int64_t)from;
    unsigned char *next = to;
    (void)type;
    (void)list;
    while (size > 0) {
        bool there;
        size_t n = within_page(at, size);
        int page = find_page(m, at / TRLI_PAGE_BYTES, &there);
        if (there)
            memcpy(next, m->page[page].bytes + at % TRLI_PAGE_BYTES, n);
        else
            memset(next, 0, n);
        next += n;
        at += (int64_t)n;
        size -= n;
    }
    return 0;
}

/* Bytes that lie in one page become or stop to be the structure's. */
static void mark(const trli_page *page, int64_t at, size_t size, bool written)
{
    const int64_t first = at % TRLI_PAGE_BYTES, last = first + (int64_t)size - 1;
    for (int64_t w = first / TRLI_WORD_BYTES; w <= last / TRLI_WORD_BYTES; ++w) page->written[w] = written;
}

/* Values take the place of something that HDF5 wrote and then gave up. */
static void forget(const trli_memory_file *m, int64_t at, size_t size)
{
    const int64_t end = at + (int64_t)size;
    bool there;
    for (int i = find_page(m, at / TRLI_PAGE_BYTES, &there); i < m->npages; ++i) {
        const int64_t page = m->page[i].number * TRLI_PAGE_BYTES, from = page > at ? page : at;
        if (from >= end) break;
        mark(&m->page[i], from, within_page(from, (size_t)(end - from)), false);
    }
}

static herr_t write_bytes(H5FD_t *file, H5FD_mem_t type, hid_t list, haddr_t to, size_t size, const void *from)
{
    handle *h = (handle *)file;
    trli_memory_file *m = h->memory;
    const unsigned char *next = from;
    int64_t at = (int64_t)to;
    (void)type;
    (void)list;
    if (to + size > h->written) h->written = to + size;
    if (from == m->values) {
        m->place = at;
        forget(m, at, size);
        return 0;
    }
    while (size > 0) {
        size_t n = within_page(at, size);
        trli_page *page = make_page(m, at / TRLI_PAGE_BYTES);
        if (page) {
            memcpy(page->bytes + at % TRLI_PAGE_BYTES, next, n);
            mark(page, at, n, true);
        }
        m->no_memory |= !page;
        next += n;
        at += (int64_t)n;
        size -= n;
    }
    return 0;
}

static herr_t truncate_file(H5FD_t *file, hid_t list, hbool_t closing)
{
    handle *h = (handle *)file;
    (void)list;
    (void)closing;
    h->written = h->allocated;
    return 0;
}

static const H5FD_class_t driver = {
#if H5_VERSION_GE(1, 13, 0)
    .version = H5FD_CLASS_VERSION,
    .value = (H5FD_class_value_t)600, /* from the range for applications */
#endif
    .name = "trellis_memory",
    .maxaddr = HADDR_MAX / 2,
    .fc_degree = H5F_CLOSE_STRONG,
    .fapl_size = sizeof(access_info),
    .open = open_file,
    .close = close_file,
    .query = query,
    .get_eoa = get_allocated,
    .set_eoa = set_allocated,
    .get_eof = get_written,
    .read = read_bytes,
    .write = write_bytes,
    .truncate = truncate_file,
    .fl_map = H5FD_FLMAP_DICHOTOMY,
};

/* Names and attributes are listed in the order in which they are made, as netCDF wants it; without the time of day,
 * equal contents make equal files. */
static hid_t creation_list(void)
{
    const unsigned order = H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED;
    hid_t list = H5Pcreate(H5P_FILE_CREATE);
    if (list < 0) return -1;
    if (H5Pset_link_creation_order(list, order) >= 0 && H5Pset_attr_creation_order(list, order) >= 0 &&
        H5Pset_obj_track_times(list, false) >= 0)
        return list;
    H5Pclose(list);
    return -1;
}

hid_t trli_memory_file_create(trli_memory_file *memory)
{
    const access_info info = {memory};
    hid_t access = -1, creation = -1, file = -1;
    *memory = (trli_memory_file){.ctx = memory->ctx, .values = memory->values, .place = -1};
    (void)H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    memory->driver = H5FDregister(&driver);
    access = H5Pcreate(H5P_FILE_ACCESS);
    creation = creation_list();
    if (memory->driver >= 0 && access >= 0 && creation >= 0 && H5Pset_driver(access, memory->driver, &info) >= 0 &&
        H5Pset_alignment(access, 1, TRLI_WORD_BYTES) >= 0 &&
        H5Pset_libver_bounds(access, H5F_LIBVER_V110, H5F_LIBVER_LATEST) >= 0)
        file = H5Fcreate("structure", H5F_ACC_TRUNC, creation, access);
    hid_t reason = H5Eget_current_stack();
    if (creation >= 0) H5Pclose(creation);
    if (access >= 0) H5Pclose(access);
    if (reason >= 0) (void)H5Eset_current_stack(reason);
    return file;
}

void trli_memory_file_release(trli_memory_file *memory)
{
    for (int i = 0; i < memory->npages; ++i) trli_free(memory->page[i].bytes);
    trli_free(memory->page);
    if (memory->driver > 0) H5FDunregister(memory->driver);
    *memory = (trli_memory_file){0};
}
