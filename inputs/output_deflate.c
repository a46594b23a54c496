/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Chunks that are compressed. HDF5 makes only the structure of a file, so what its filters shuffle and deflate do to a
 * chunk is done here, and HDF5 is told the sizes. A chunk's points may come from several ranks: the chunks of a round
 * are dealt out evenly, each rank gets the points of its own and compresses them, HDF5 on rank 0 places the results,
 * and each rank writes its own. */
#include <string.h>

#include <zlib.h>

#include "arithmetic_impl.h"
#include "context_impl.h"
#include "files_impl.h"
#include "output_file_impl.h"

/* What a rank compresses in a round: the memory that this takes is a few times as much. */
enum { ROUND_BYTES = 1 << 24 };

/* What stands in a message before the points of a piece of a chunk, x fastest: words, as they are. */
enum { NUMBER, LOW, HIGH = LOW + 3, HEADER = HIGH + 3 };

/* Chunks `from` to before `to`, dealt out to the ranks in order; this rank's are mine[0] to before mine[1]. */
typedef struct round {
    trl_context *ctx;
    trli_output_file *file;
    const trli_file_variable *v;
    int nparts;
    const trli_part *part;
    int64_t from, to, mine[2];
    int64_t chunk_bytes;
    int *count;              /* [4][ranks] words to and from each rank, and where they begin */
    int64_t total[2];        /* of words sent and received */
    void *sent, *received;   /* pieces */
    void *values, *shuffled; /* [mine] chunks; [workers] chunks */
    void *packed;            /* [mine] chunks, of which the sizes below are used */
    int64_t *bytes;          /* [to - from] of all ranks' chunks */
} round;

static int64_t begin_of(const round *r, int rank)
{
    return r->from + (r->to - r->from) * rank / trl_context_ranks(r->ctx);
}

/* The rank that compresses a chunk: the last one that begins at or before it and has one. */
static int maker_of(const round *r, int64_t number)
{
    return (int)(((number - r->from + 1) * trl_context_ranks(r->ctx) - 1) / (r->to - r->from));
}

/* The points of a part in a chunk, as a piece without its values; returns their number. */
static int64_t cut_piece(const trli_file_variable *v, const trli_part *part, const trl_gidx c[3], int64_t piece[HEADER])
{
    int64_t points = 1;
    piece[NUMBER] = (c[2] * v->chunks[1] + c[1]) * v->chunks[0] + c[0];
    for (int a = 0; a < 3; ++a) {
        const trl_gidx low = part->first[a] + part->box.lo[a], high = part->first[a] + part->box.hi[a];
        const trl_gidx begin = c[a] * v->chunk[a], end = begin + v->chunk[a];
        piece[LOW + a] = low > begin ? low : begin;
        piece[HIGH + a] = high < end ? high : end;
        points *= piece[HIGH + a] - piece[LOW + a];
    }
    return points;
}

/* Put a piece and its values behind what is there; returns its end. */
static int64_t *put_piece(const trli_part *part, const int64_t piece[HEADER], int64_t *to)
{
    const int64_t *lo = piece + LOW, *hi = piece + HIGH, row = hi[0] - lo[0];
    memcpy(to, piece, HEADER * sizeof *to);
    to += HEADER;
    for (int64_t k = lo[2]; k < hi[2]; ++k)
        for (int64_t j = lo[1]; j < hi[1]; ++j, to += row)
            memcpy(to,
                   (const double *)part->array->at + trl_array_offset(part->array, (trl_lidx)(lo[0] - part->first[0]),
                                                                      (trl_lidx)(j - part->first[1]),
                                                                      (trl_lidx)(k - part->first[2])),
                   (size_t)row * sizeof *to);
    return to;
}

/* Go through the pieces of a part: count their words for each rank, or put them to where each rank's go on. */
static void visit_part(const round *r, const trli_part *part, int *words, int64_t **next)
{
    trl_gidx from[3], to[3], c[3];
    int64_t piece[HEADER];
    if (!trli_part_chunks(r->v, part, from, to)) return;
    for (c[2] = from[2]; c[2] < to[2]; ++c[2])
        for (c[1] = from[1]; c[1] < to[1]; ++c[1])
            for (c[0] = from[0]; c[0] < to[0]; ++c[0]) {
                const int64_t points = cut_piece(r->v, part, c, piece);
                if (piece[NUMBER] < r->from || piece[NUMBER] >= r->to) continue;
                const int maker = maker_of(r, piece[NUMBER]);
                if (next)
                    next[maker] = put_piece(part, piece, next[maker]);
                else
                    words[maker] += (int)(HEADER + points);
            }
}

/* Agree on how many words go from each rank to each. Collective. */
static trl_err count_words(round *r)
{
    const int ranks = trl_context_ranks(r->ctx);
    int *count = r->count, *begin = r->count + 2 * ranks;
    trl_err err;
    memset(count, 0, (size_t)ranks * sizeof *count);
    for (int p = 0; p < r->nparts; ++p) visit_part(r, &r->part[p], count, NULL);
    TRL_TRY(trli_alltoall(r->ctx, count, count + ranks));
    for (int side = 0; side < 2; ++side) {
        r->total[side] = 0;
        for (int i = 0; i < ranks; ++i) {
            begin[side * ranks + i] = (int)r->total[side];
            r->total[side] += count[side * ranks + i];
        }
    }
done:
    return err;
}

static trl_err allocate(const round *r, int64_t words, void **memory)
{
    return trl_memory_alloc(r->ctx, (size_t)(words + 1) * TRLI_WORD_BYTES, "chunks of output", memory);
}

/* The points in this round's chunks go to those who compress them. Collective. */
static trl_err send_pieces(round *r)
{
    const int ranks = trl_context_ranks(r->ctx), *begin = r->count + 2 * ranks;
    int64_t **next = trli_new(r->ctx, (size_t)ranks, sizeof *next);
    trl_err err = next ? TRL_OK : trli_no_memory(r->ctx, NULL, "to write '%s'", r->file->path);
    TRL_TRY(err);
    TRL_TRY(allocate(r, r->total[0], &r->sent));
    TRL_TRY(allocate(r, r->total[1], &r->received));
    for (int i = 0; i < ranks; ++i) next[i] = (int64_t *)r->sent + begin[i];
    for (int p = 0; p < r->nparts; ++p) visit_part(r, &r->part[p], NULL, next);
    TRL_TRY(
        trli_alltoallv(r->ctx, r->sent, r->count, begin, r->received, r->count + ranks, begin + ranks, MPI_INT64_T));
done:
    trli_free(next);
    return err;
}

/* Put together this rank's chunks; where they reach over the grid's end they are zero. */
static void unpack(round *r)
{
    const trl_gidx *size = r->v->chunk, *chunks = r->v->chunks;
    const int64_t *words = r->received;
    memset(r->values, 0, (size_t)((r->mine[1] - r->mine[0]) * r->chunk_bytes));
    for (int64_t at = 0; at < r->total[1];) {
        const int64_t *piece = words + at, *lo = piece + LOW, *hi = piece + HIGH, row = hi[0] - lo[0];
        const int64_t c[3] = {piece[NUMBER] % chunks[0], piece[NUMBER] / chunks[0] % chunks[1],
                              piece[NUMBER] / (chunks[0] * chunks[1])};
        double *chunk = (double *)r->values + (piece[NUMBER] - r->mine[0]) * size[0] * size[1] * size[2];
        at += HEADER;
        for (int64_t k = lo[2] - c[2] * size[2]; k < hi[2] - c[2] * size[2]; ++k)
            for (int64_t j = lo[1] - c[1] * size[1]; j < hi[1] - c[1] * size[1]; ++j, at += row)
                memcpy(chunk + (k * size[1] + j) * size[0] + lo[0] - c[0] * size[0], words + at,
                       (size_t)row * sizeof *chunk);
    }
}

/* The first bytes of all values, then the second ones, ...: those of like numbers are alike. */
static void shuffle(const unsigned char *from, int64_t values, unsigned char *to)
{
    for (int byte = 0; byte < (int)sizeof(double); ++byte)
        for (int64_t i = 0; i < values; ++i) *to++ = from[(int64_t)sizeof(double) * i + byte];
}

/* Compress one of this rank's chunks; one that would not get smaller is stored as it is. A whole number of words. */
static trl_err deflate_one(void *data, int chunk, int chunks, int worker)
{
    round *r = data;
    const uint64_t size = (uint64_t)r->chunk_bytes;
    const unsigned char *values = (const unsigned char *)r->values + (uint64_t)chunk * size;
    unsigned char *shuffled = (unsigned char *)r->shuffled + (uint64_t)worker * size,
                  *packed = (unsigned char *)r->packed + (uint64_t)chunk * size;
    uLongf bytes = size - TRLI_WORD_BYTES;
    (void)chunks;
    shuffle(values, r->chunk_bytes / (int64_t)sizeof(double), shuffled);
    const int status =
        size > TRLI_WORD_BYTES ? compress2(packed, &bytes, shuffled, size, r->file->compression) : Z_BUF_ERROR;
    if (status == Z_MEM_ERROR) return trl_fail(r->ctx, TRL_ERR_MEMORY, NULL, "no memory to compress output");
    if (status == Z_OK) {
        memset(packed + bytes, 0, (size - bytes) % TRLI_WORD_BYTES);
    } else {
        memcpy(packed, values, size);
        bytes = size;
    }
    r->bytes[r->mine[0] + chunk - r->from] = (int64_t)bytes;
    return TRL_OK;
}

/* Compress this rank's chunks. */
static trl_err deflate_mine(round *r)
{
    const int64_t mine = r->mine[1] - r->mine[0], words = r->chunk_bytes / TRLI_WORD_BYTES;
    trl_err err;
    TRL_TRY(allocate(r, mine * words, &r->values));
    TRL_TRY(allocate(r, trl_loop_workers(r->file->loop) * words, &r->shuffled));
    TRL_TRY(allocate(r, mine * words, &r->packed));
    unpack(r);
    trl_memory_free(r->ctx, &r->received);
    err = trl_loop_run(r->file->loop, (int)mine, deflate_one, r);
done:
    return err;
}

/* Rank 0's HDF5 gives each chunk its place. Collective. */
static trl_err place_chunks(round *r, int time)
{
    const int n = (int)(r->to - r->from);
    int64_t *place = r->v->place + time * trli_file_variable_chunks(r->v) + r->from;
    trl_err err;
    TRL_TRY(trli_allreduce(r->ctx, r->bytes, n, MPI_INT64_T, MPI_SUM));
    if (trl_context_rank(r->ctx) == 0)
        TRL_TRY(trli_structure_place(&r->file->structure, r->v, time, r->from, n, r->bytes));
    err = trli_broadcast(r->ctx, place, n, MPI_INT64_T, 0);
done:
    return err;
}

static trl_err write_mine(round *r, int time)
{
    const int64_t *place = r->v->place + time * trli_file_variable_chunks(r->v);
    int number = 0;
    for (int64_t c = r->mine[0]; c < r->mine[1] && !number; ++c) {
        const int64_t bytes = trli_ceil_div(r->bytes[c - r->from], TRLI_WORD_BYTES) * TRLI_WORD_BYTES;
        number = trli_output_put_words(r->file, (const char *)r->packed + (c - r->mine[0]) * r->chunk_bytes,
                                       (size_t)bytes, place[c]);
    }
    return number ? trli_file_fail(r->ctx, "write", r->file->path, number) : TRL_OK;
}

/* Collective. */
static trl_err do_round(round *r, int time)
{
    trl_err err = TRL_OK;
    r->mine[0] = begin_of(r, trl_context_rank(r->ctx));
    r->mine[1] = begin_of(r, trl_context_rank(r->ctx) + 1);
    r->bytes = trli_new(r->ctx, (size_t)(r->to - r->from), sizeof *r->bytes);
    if (!r->bytes) TRL_TRY(trli_no_memory(r->ctx, NULL, "to write '%s'", r->file->path));
    TRL_TRY(count_words(r));
    TRL_TRY(send_pieces(r));
    trl_memory_free(r->ctx, &r->sent);
    TRL_TRY(deflate_mine(r));
    TRL_TRY(place_chunks(r, time));
    err = write_mine(r, time);
done:
    trl_memory_free(r->ctx, &r->sent);
    trl_memory_free(r->ctx, &r->received);
    trl_memory_free(r->ctx, &r->values);
    trl_memory_free(r->ctx, &r->shuffled);
    trl_memory_free(r->ctx, &r->packed);
    trli_free(r->bytes);
    r->bytes = NULL;
    return err;
}

trl_err trli_output_deflate(trli_output_file *file, const trli_file_variable *v, int time, int64_t from, int64_t to,
                            int nparts, const trli_part *parts)
{
    const int64_t ranks = trl_context_ranks(file->ctx), bytes = trli_file_variable_chunk_points(v) * sizeof(double);
    const int64_t most = ranks * (bytes < ROUND_BYTES ? ROUND_BYTES / bytes : 1);
    round r = {.ctx = file->ctx, .file = file, .v = v, .nparts = nparts, .part = parts, .chunk_bytes = bytes};
    trl_err err = TRL_OK;
    r.count = trli_new(file->ctx, 4 * (size_t)ranks, sizeof *r.count);
    if (!r.count) return trli_no_memory(file->ctx, NULL, "to write '%s'", file->path);
    for (r.from = from; r.from < to && err == TRL_OK; r.from = r.to) {
        r.to = to - r.from < most ? to : r.from + most;
        err = do_round(&r, time);
    }
    trli_free(r.count);
    return err;
}
