/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "arithmetic_impl.h"
#include "context_impl.h"
#include "files_impl.h"
#include "memory_impl.h"
#include "output_file_impl.h"

enum { WORD = TRLI_WORD_BYTES };

static const char seal_magic[8] = "TRLSEAL";

/* The share of words at a position of the file in its checksum. Zeros add nothing, so bytes that no rank
 * writes need no rank that counts them. */
static uint64_t sum_words(int64_t at, const void *bytes, size_t size)
{
    const char *from = bytes;
    uint64_t sum = 0, position = (uint64_t)at / WORD;
    for (size_t i = 0; i < size; i += WORD, ++position) {
        uint64_t bits;
        memcpy(&bits, from + i, sizeof bits);
        if (bits) sum += trl_hash_bits(position, bits);
    }
    return sum;
}

static uint64_t seal_sum(const trli_seal *seal)
{
    return sum_words(0, seal, offsetof(trli_seal, own));
}

/* Write bytes now. Returns 0 or an errno. */
static int put_now(trli_output_file *file, const void *bytes, size_t size, int64_t at)
{
    if (file->sealed) file->sum += sum_words(at, bytes, size);
    return trli_file_put(file->file, bytes, size, at);
}

int trli_output_put_words(trli_output_file *file, const void *bytes, size_t size, int64_t at)
{
    return file->copy && trli_file_copy_add(file->copy, bytes, size, at) ? 0 : put_now(file, bytes, size, at);
}

/* The words of a page that belong to the structure, in runs. */
static int put_page(trli_output_file *file, const trli_page *page)
{
    int number = 0;
    for (int from = 0, to; from < TRLI_PAGE_WORDS && !number; from = to) {
        to = from + 1;
        if (!page->written[from]) continue;
        while (to < TRLI_PAGE_WORDS && page->written[to]) ++to;
        number = trli_output_put_words(file, page->bytes + (ptrdiff_t)from * WORD, (size_t)(to - from) * WORD,
                                       page->number * TRLI_PAGE_BYTES + (int64_t)from * WORD);
    }
    return number;
}

/* On rank 0: a full disk is found before anything is written. */
static trl_err reserve(trli_output_file *file)
{
    const int64_t size = file->bytes + (file->sealed ? (int64_t)sizeof(trli_seal) : 0);
    char action[64];
    int number;
    do {
        number = posix_fallocate(file->file, 0, size);
    } while (number == EINTR);
    if (!number) return TRL_OK;
    snprintf(action, sizeof action, "reserve %" PRId64 " bytes for", size);
    return trli_file_fail(file->ctx, action, file->path, number);
}

/* On rank 0: complete the structure, which knows the places of all values, and write it. */
static trl_err put_structure(trli_output_file *file)
{
    trli_structure *s = &file->structure;
    int number = 0;
    trl_err err;
    TRL_TRY(trli_structure_close(s));
    file->bytes = trli_ceil_div(s->memory.end, WORD) * WORD;
    TRL_TRY(reserve(file));
    for (int i = 0; i < s->memory.npages && !number; ++i) number = put_page(file, &s->memory.page[i]);
    if (number) err = trli_file_fail(file->ctx, "write", file->path, number);
done:
    return err;
}

/* On rank 0. */
static trl_err begin_first(trli_output_file *file, const trli_contents *contents)
{
    trl_err err;
    TRL_TRY(trli_structure_open(file->ctx, file->path, contents, &file->structure));
    TRL_TRY(trli_file_begin(file->ctx, file->path, false, &file->first));
    file->file = file->first.file;
    if (!contents->compression) err = put_structure(file);
done:
    return err;
}

static trl_err not_joined(const trli_output_file *file, int number)
{
    if (number != ENOENT) return trli_file_fail(file->ctx, "write", file->path, number);
    trl_err err = trl_fail(file->ctx, TRL_ERR_IO, NULL, "cannot write '%s': rank %d does not find what rank 0 created",
                           file->path, trl_context_rank(file->ctx));
    trl_advise(file->ctx, "start all ranks in the same folder, and let output.directory be on a disk that they share");
    return err;
}

/* On other ranks: open the file aside, which rank 0 created. Collective. */
static trl_err join(trli_output_file *file)
{
    const bool first = file->first.path != NULL;
    int length = first ? (int)strlen(file->first.aside) + 1 : 0;
    char *aside = first ? file->first.aside : NULL;
    trl_err err;
    TRL_TRY(trli_broadcast(file->ctx, &length, 1, MPI_INT, 0));
    if (!first) aside = trli_new(file->ctx, (size_t)length, 1);
    if (!aside) TRL_TRY(trli_no_memory(file->ctx, NULL, "to write '%s'", file->path));
    TRL_TRY(trli_broadcast(file->ctx, aside, length, MPI_CHAR, 0));
    if (!first) file->file = open(aside, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
    if (file->file < 0) err = not_joined(file, errno);
done:
    if (!first) trli_free(aside);
    return err;
}

/* All ranks get the places that rank 0's HDF5 chose. */
static trl_err share_places(trl_context *ctx, const trli_contents *contents)
{
    enum { PIECE = 1 << 24 };
    int64_t n = 0;
    trl_err err = TRL_OK;
    for (int i = 0; i < contents->nvariables; ++i)
        n += trli_file_variable_chunks(&contents->variable[i]) * contents->ntimes;
    for (int64_t at = 0; at < n; at += PIECE) {
        const int piece = n - at < PIECE ? (int)(n - at) : PIECE;
        TRL_TRY(trli_broadcast(ctx, contents->variable[0].place + at, piece, MPI_INT64_T, 0));
    }
done:
    return err;
}

static trl_err make_buffer(trli_output_file *file, const trli_contents *contents)
{
    int64_t most = 1;
    void *memory;
    for (int i = 0; i < contents->nvariables; ++i) {
        int64_t points = trli_file_variable_chunk_points(&contents->variable[i]);
        most = points > most ? points : most;
    }
    trl_err err = trl_memory_alloc(file->ctx, (size_t)most * sizeof(double), "a chunk of output", &memory);
    if (err == TRL_OK) file->buffer = memory;
    return err;
}

trl_err trli_output_begin(trl_context *ctx, const char *path, int64_t lineage, const trli_contents *contents,
                          trli_file_copy *copy, trli_output_file *file)
{
    *file = (trli_output_file){.ctx = ctx,
                               .copy = copy,
                               .structure = {.file = -1},
                               .file = -1,
                               .step = contents->step[0],
                               .compression = contents->compression,
                               .loop = contents->loop,
                               .sealed = lineage >= 0,
                               .lineage = lineage};
    trl_err err = trli_format(ctx, &file->path, "%s", path);
    if (err == TRL_OK && !contents->compression) err = make_buffer(file, contents);
    TRL_TRY(trl_context_agree(ctx, err));
    if (trl_context_rank(ctx) == 0) TRL_TRY(begin_first(file, contents));
    TRL_TRY(join(file));
    if (!contents->compression) TRL_TRY(share_places(ctx, contents));
done:
    return err;
}

/* Copy points to the buffer, x fastest; zeros where the piece reaches over the grid's end to that of the chunk. */
static void pack(const trl_array *array, const trl_gidx first[3], const trl_gidx lo[3], const trl_gidx hi[3],
                 const trl_gidx points[3], double *to)
{
    const trl_gidx nx = hi[0] - lo[0], there = (hi[0] < points[0] ? hi[0] : points[0]) - lo[0];
    for (trl_gidx k = lo[2]; k < hi[2]; ++k)
        for (trl_gidx j = lo[1]; j < hi[1]; ++j, to += nx) {
            if (j >= points[1] || k >= points[2]) {
                memset(to, 0, (size_t)nx * sizeof *to);
                continue;
            }
            const double *from =
                (const double *)array->at + trl_array_offset(array, (trl_lidx)(lo[0] - first[0]),
                                                             (trl_lidx)(j - first[1]), (trl_lidx)(k - first[2]));
            memcpy(to, from, (size_t)there * sizeof *to);
            memset(to + there, 0, (size_t)(nx - there) * sizeof *to);
        }
}

/* Write the points from lo to hi, which lie in the chunk that begins at point `chunk` and at byte `place`. */
static int put_piece(trli_output_file *file, const trli_file_variable *v, int64_t place, const trl_gidx chunk[3],
                     const trl_gidx lo[3], const trl_gidx hi[3], const double *values)
{
    trl_gidx count[3], run = 1;
    int number = 0;
    for (int a = 0; a < 3; ++a) count[a] = hi[a] - lo[a];
    /* Rows that fill the chunk lie in one piece, and so do planes. */
    int whole = 0;
    while (whole < 2 && count[whole] == v->chunk[whole]) run *= count[whole++];
    run *= count[whole];
    const trl_gidx total = count[0] * count[1] * count[2];
    for (trl_gidx from = 0; from < total && !number; from += run) {
        const trl_gidx x = lo[0] - chunk[0] + from % count[0], y = lo[1] - chunk[1] + from / count[0] % count[1],
                       z = lo[2] - chunk[2] + from / (count[0] * count[1]);
        const int64_t at = place + ((z * v->chunk[1] + y) * v->chunk[0] + x) * (int64_t)sizeof(double);
        number = trli_output_put_words(file, values + from, (size_t)run * sizeof(double), at);
    }
    return number;
}

/* Where the points from lo to hi are packed: in the copy, or, without one or without memory, in the buffer. */
static double *room_for(const trli_output_file *file, const trl_gidx lo[3], const trl_gidx hi[3])
{
    const trl_gidx points = (hi[0] - lo[0]) * (hi[1] - lo[1]) * (hi[2] - lo[2]);
    double *room = file->copy ? trli_file_copy_room(file->copy, (size_t)points * sizeof *room) : NULL;
    return room ? room : file->buffer;
}

bool trli_part_chunks(const trli_file_variable *v, const trli_part *part, trl_gidx from[3], trl_gidx to[3])
{
    for (int a = 0; a < 3; ++a) {
        if (part->box.hi[a] <= part->box.lo[a]) return false;
        from[a] = (part->first[a] + part->box.lo[a]) / v->chunk[a];
        to[a] = (part->first[a] + part->box.hi[a] - 1) / v->chunk[a] + 1;
    }
    return true;
}

int trli_output_put(trli_output_file *file, const trli_file_variable *v, int time, const trli_part *part)
{
    const int64_t *place = v->place + time * trli_file_variable_chunks(v);
    trl_gidx from[3], to[3], c[3];
    if (!trli_part_chunks(v, part, from, to)) return 0;
    for (c[2] = from[2]; c[2] < to[2]; ++c[2])
        for (c[1] = from[1]; c[1] < to[1]; ++c[1])
            for (c[0] = from[0]; c[0] < to[0]; ++c[0]) {
                trl_gidx chunk[3], lo[3], hi[3];
                for (int a = 0; a < 3; ++a) {
                    const trl_gidx low = part->first[a] + part->box.lo[a], high = part->first[a] + part->box.hi[a];
                    chunk[a] = c[a] * v->chunk[a];
                    lo[a] = low > chunk[a] ? low : chunk[a];
                    hi[a] = high < chunk[a] + v->chunk[a] && high < v->points[a] ? high : chunk[a] + v->chunk[a];
                }
                double *values = room_for(file, lo, hi);
                pack(part->array, part->first, lo, hi, v->points, values);
                int number = put_piece(file, v, place[(c[2] * v->chunks[1] + c[1]) * v->chunks[0] + c[0]], chunk, lo,
                                       hi, values);
                if (number) return number;
            }
    return 0;
}

trl_err trli_output_complete(trli_output_file *file)
{
    void *buffer = file->buffer;
    trl_err err = TRL_OK;
    if (file->compression && trl_context_rank(file->ctx) == 0) err = put_structure(file);
    trl_memory_free(file->ctx, &buffer);
    file->buffer = NULL;
    trli_structure_release(&file->structure);
    return err;
}

/* What rank 0 wrote reaches the disk before the file gets its name, what others wrote before that. */
static int close_other(trli_output_file *file)
{
    int number = 0;
    if (file->first.path || file->file < 0) return 0;
    if (fsync(file->file)) number = errno;
    if (close(file->file) && !number) number = errno;
    file->file = -1;
    return number;
}

void trli_output_write(trli_output_file *file)
{
    const trli_file_copy *copy = file->copy;
    for (int i = 0; copy && i < copy->npieces && !file->number; ++i)
        file->number = put_now(file, copy->piece[i].bytes, copy->piece[i].size, copy->piece[i].at);
    const int number = close_other(file);
    if (!file->number) file->number = number;
}

trl_err trli_output_written(trli_output_file *file, trl_err err)
{
    if (err == TRL_OK && file->number) err = trli_file_fail(file->ctx, "write", file->path, file->number);
    return file->sealed ? trli_allreduce_after(file->ctx, err, &file->sum, 1, MPI_UINT64_T, MPI_SUM)
                        : trl_context_agree(file->ctx, err);
}

static int put_seal(const trli_output_file *file)
{
    trli_seal seal = {.bytes = file->bytes, .step = file->step, .lineage = file->lineage, .sum = file->sum};
    memcpy(seal.magic, seal_magic, sizeof seal.magic);
    seal.own = seal_sum(&seal);
    return trli_file_put(file->file, &seal, sizeof seal, file->bytes);
}

void trli_output_name(trli_output_file *file)
{
    if (file->sealed) file->number = put_seal(file);
    if (!file->number) (void)trli_file_publish(&file->first, file->reason);
}

trl_err trli_output_named(const trli_output_file *file)
{
    if (file->number) return trli_file_fail(file->ctx, "write", file->path, file->number);
    return file->first.path && !file->first.named ? trli_file_fail_to_publish(&file->first, file->reason) : TRL_OK;
}

void trli_output_release(trli_output_file *file)
{
    trl_context *ctx = file->ctx;
    void *buffer = file->buffer;
    if (!file->first.path && file->file >= 0) close(file->file);
    (void)!trli_file_end(&file->first, file->first.named ? TRL_OK : TRL_ERR_IO);
    trl_memory_free(ctx, &buffer);
    trli_structure_release(&file->structure);
    trli_free(file->path);
    *file = (trli_output_file){.ctx = ctx, .structure = {.file = -1}, .file = -1};
}

trl_err trli_output_end(trli_output_file *file, trl_err err)
{
    if (err == TRL_OK) err = trli_output_complete(file);
    err = trl_context_agree(file->ctx, err);
    if (err == TRL_OK) trli_output_write(file);
    err = trli_output_written(file, err);
    if (err == TRL_OK && file->first.path) trli_output_name(file);
    err = trl_context_agree(file->ctx, err == TRL_OK ? trli_output_named(file) : err);
    trli_output_release(file);
    return err;
}

static trli_part part_of(const trl_layout *layout, const trli_output_field *field, int p)
{
    const trl_patch *patch = &layout->patch[p];
    return (trli_part){&field->patch[p], patch->first, trl_patch_owned(layout, patch, field->location)};
}

/* Write the patches of this rank. */
static trl_err put_fields(trli_output_file *file, const trl_layout *layout, const trli_file_variable *variable, int n,
                          const trli_output_field *fields)
{
    int number = 0;
    for (int i = 0; i < n && !number; ++i)
        for (int p = 0; p < layout->nlocal && !number; ++p) {
            const trli_part part = part_of(layout, &fields[i], p);
            number = trli_output_put(file, &variable[i], 0, &part);
        }
    return number ? trli_file_fail(file->ctx, "write", file->path, number) : TRL_OK;
}

/* Compress and write them, with the help of all. Collective. */
static trl_err deflate_fields(trli_output_file *file, const trl_layout *layout, const trli_file_variable *variable,
                              int n, const trli_output_field *fields)
{
    trli_part *part = trli_new(file->ctx, (size_t)layout->nlocal, sizeof *part);
    trl_err err = part ? TRL_OK : trli_no_memory(file->ctx, NULL, "to write '%s'", file->path);
    for (int i = 0; i < n && err == TRL_OK; ++i) {
        for (int p = 0; p < layout->nlocal; ++p) part[p] = part_of(layout, &fields[i], p);
        err = trli_output_deflate(file, &variable[i], 0, 0, trli_file_variable_chunks(&variable[i]), layout->nlocal,
                                  part);
    }
    trli_free(part);
    return err;
}

trl_err trli_output_fields(trl_context *ctx, const trl_layout *layout, const char *path, int64_t lineage,
                           const trli_contents *contents, int n, const trli_output_field *fields, trli_file_copy *copy,
                           trli_output_file *file)
{
    trli_contents all = *contents;
    all.grid = &layout->grid;
    all.nvariables = n;
    *file = (trli_output_file){.ctx = ctx, .structure = {.file = -1}, .file = -1};
    trl_err err = trli_file_variables_create(ctx, &layout->grid, layout->counts, all.compression, all.ntimes, n, fields,
                                             &all.variable);
    TRL_TRY(trl_context_agree(ctx, err));
    TRL_TRY(trli_output_begin(ctx, path, lineage, &all, copy, file));
    TRL_TRY((all.compression ? deflate_fields : put_fields)(file, layout, all.variable, n, fields));
    err = trli_output_complete(file);
done:
    trli_file_variables_release(&all.variable);
    return trl_context_agree(ctx, err);
}

/* Read a piece of a file in full. Returns 0, an errno, or EPIPE where the file ends before. */
static int get_bytes(int file, void *bytes, size_t size, int64_t at)
{
    char *to = bytes;
    while (size > 0) {
        ssize_t got = pread(file, to, size, at);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return errno;
        if (got == 0) return EPIPE;
        to += got;
        at += got;
        size -= (size_t)got;
    }
    return 0;
}

static bool get_seal(int file, int64_t size, trli_seal *seal, char reason[TRLI_REASON_ROOM])
{
    const int64_t at = size - (int64_t)sizeof *seal;
    int number = at < 0 ? EPIPE : get_bytes(file, seal, sizeof *seal, at);
    if (number && number != EPIPE) {
        snprintf(reason, TRLI_REASON_ROOM, "%s", strerror(number));
        return false;
    }
    bool good = !number && memcmp(seal->magic, seal_magic, sizeof seal->magic) == 0 && seal->own == seal_sum(seal) &&
                seal->bytes == at && at % WORD == 0;
    if (!good)
        snprintf(reason, TRLI_REASON_ROOM,
                 "its end is not that of a checkpoint: it is truncated or damaged, or no checkpoint");
    return good;
}

bool trli_seal_read(const char *path, trli_seal *seal, char reason[TRLI_REASON_ROOM])
{
    off_t size;
    int file = trli_file_open(path, &size, reason);
    if (file < 0) return false;
    bool good = get_seal(file, size, seal, reason);
    close(file);
    return good;
}

/* The share of the words of this rank in the checksum. Returns 0 or an errno. */
static int sum_share(trl_context *ctx, int file, int64_t bytes, int rank, int ranks, uint64_t *sum)
{
    enum { PIECE = 1 << 20 };
    const int64_t words = bytes / WORD, from = words * rank / ranks * WORD, to = words * (rank + 1) / ranks * WORD;
    char *piece = trli_new(ctx, PIECE, 1);
    int number = piece ? 0 : ENOMEM;
    *sum = 0;
    for (int64_t at = from; at < to && !number; at += PIECE) {
        size_t size = to - at < PIECE ? (size_t)(to - at) : PIECE;
        number = get_bytes(file, piece, size, at);
        if (!number) *sum += sum_words(at, piece, size);
    }
    trli_free(piece);
    return number;
}

trl_err trli_seal_check(trl_context *ctx, const char *path, bool *whole, char reason[TRLI_REASON_ROOM])
{
    const int ranks = trl_context_ranks(ctx);
    trli_seal seal;
    /* the sum, how many ranks could not read, and how many of these find nothing */
    uint64_t mine[3] = {0, 1, access(path, F_OK) != 0 && errno == ENOENT};
    off_t size;
    int file = trli_file_open(path, &size, reason);
    if (file >= 0 && get_seal(file, size, &seal, reason)) {
        int number = sum_share(ctx, file, seal.bytes, trl_context_rank(ctx), ranks, &mine[0]);
        mine[1] = number != 0;
        if (number) snprintf(reason, TRLI_REASON_ROOM, "%s", strerror(number));
    }
    if (file >= 0) close(file);
    *whole = false;
    uint64_t all[3] = {mine[0], mine[1], mine[2]};
    trl_err err = trli_allreduce(ctx, all, 3, MPI_UINT64_T, MPI_SUM);
    if (err != TRL_OK) return err;
    if (all[2] > 0 && all[2] < (uint64_t)ranks) {
        err = trl_fail(ctx, TRL_ERR_IO, NULL, "cannot read '%s': %d of %d ranks do not find it", path, (int)all[2],
                       ranks);
        trl_advise(ctx, "start all ranks in the same folder, and let it be on a disk that they share");
        return err;
    }
    if (all[1]) {
        if (!mine[1]) snprintf(reason, TRLI_REASON_ROOM, "another rank cannot read it");
        return TRL_OK;
    }
    *whole = all[0] == seal.sum;
    if (!*whole) snprintf(reason, TRLI_REASON_ROOM, "its checksum is not that of its bytes");
    return TRL_OK;
}
