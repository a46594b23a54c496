/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* The copies of an exchange: into messages and out of them, out of fields that are lent, and between patches of a rank.
 */
#include <assert.h>
#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "exchange_impl.h"

#ifdef __SSE2__
enum { STREAMED = 64 /* bytes: a line of the cache, which is not read before it is written */ };

static bool may_stream(const unsigned char *to, size_t bytes)
{
    return (uintptr_t)to % STREAMED == 0 && bytes % STREAMED == 0;
}

static void stream_row(unsigned char *to, const unsigned char *from, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += STREAMED) {
        __m128i part[STREAMED / sizeof(__m128i)];
        memcpy(part, from + i, sizeof part);
        for (size_t k = 0; k < sizeof part / sizeof *part; ++k) _mm_stream_si128((__m128i *)(to + i) + k, part[k]);
    }
}

/* Other ranks see what was streamed before what is stored from now on. */
static void end_streams(void)
{
    _mm_sfence();
}
#else
static bool may_stream(const unsigned char *to, size_t bytes)
{
    (void)to, (void)bytes;
    return false;
}

static void stream_row(unsigned char *to, const unsigned char *from, size_t bytes)
{
    memcpy(to, from, bytes);
}

static void end_streams(void)
{
}
#endif

/* Load the start of the row that is copied next: processors that load ahead by themselves stop at the end of a page. */
static void prefetch_row(const unsigned char *from, size_t bytes)
{
    enum { LINE = 64, MOST = 2048 };
    for (size_t i = 0; i < bytes && i < MOST; i += LINE) __builtin_prefetch(from + i);
}

/* Copy the rows of a box from the first-th on; they are contiguous. Strides in bytes. Values move as bytes, so that any
 * bit pattern survives. late: they are not read before they would have left the caches. */
static void copy_some_rows(unsigned char *to, const ptrdiff_t to_stride[3], const unsigned char *from,
                           const ptrdiff_t from_stride[3], const trl_lidx extent[3], size_t value_bytes, int64_t first,
                           int64_t end, bool late)
{
    const size_t row = (size_t)extent[0] * value_bytes;
    if (first >= end) return;
    ptrdiff_t j = (ptrdiff_t)(first % extent[1]), k = (ptrdiff_t)(first / extent[1]);
    for (int64_t n = first; n < end; ++n) {
        unsigned char *t = to + j * to_stride[1] + k * to_stride[2];
        const unsigned char *f = from + j * from_stride[1] + k * from_stride[2];
        if (++j == extent[1]) {
            j = 0;
            ++k;
        }
        if (row == 8) {
            memcpy(t, f, 8); /* the common one-point row, without a call */
            continue;
        }
        if (late && n + 1 < end) prefetch_row(from + j * from_stride[1] + k * from_stride[2], row);
        if (late && may_stream(t, row))
            stream_row(t, f, row);
        else
            memcpy(t, f, row);
    }
    if (late) end_streams();
}

static unsigned char *byte_at(const trl_array *array, const trl_lidx at[3], size_t value_bytes)
{
    return (unsigned char *)array->at + trl_array_offset(array, at[0], at[1], at[2]) * (ptrdiff_t)value_bytes;
}

static void strides_of(const trl_array *array, size_t value_bytes, ptrdiff_t stride[3])
{
    for (int a = 0; a < 3; ++a) stride[a] = array->stride[a] * (ptrdiff_t)value_bytes;
}

static void packed_strides(const trli_exchange_piece *t, ptrdiff_t stride[3])
{
    stride[0] = (ptrdiff_t)t->value_bytes;
    stride[1] = stride[0] * t->extent[0];
    stride[2] = stride[1] * t->extent[1];
}

static int64_t rows_before(const trli_exchange_piece *t, int chunk, int chunks)
{
    return (int64_t)t->extent[1] * t->extent[2] * chunk / chunks;
}

/* Say where the receiver finds a transfer. */
static void lend(const trl_exchange *exchange, const trli_exchange_piece *t, const trl_array *source,
                 trli_node_piece *piece)
{
    piece->at = trli_open_memory_offset(trli_loans_own(exchange->loans), byte_at(source, t->from, t->value_bytes));
    assert(piece->at >= 0);
    strides_of(source, t->value_bytes, piece->stride);
}

void trli_exchange_pack(const trl_exchange *exchange, int message, int transfer, int chunk, int chunks,
                        const trl_array *source)
{
    const trli_message *m = &exchange->sends.message[message];
    const trli_exchange_piece *t = &exchange->sends.transfer[transfer];
    trli_node_piece *piece = m->slot ? &m->piece[transfer - m->first] : NULL;
    unsigned char *packed = exchange->send_buffer + t->offset;
    ptrdiff_t to[3], from[3];
    if (m->slot) atomic_store_explicit(&m->slot->far[m->round & 1], false, memory_order_relaxed);
    if (piece && piece->lent) {
        if (chunk == 0) lend(exchange, t, source, piece);
        return;
    }
    if (piece) packed = m->room[m->round & 1] + piece->at;
    packed_strides(t, to);
    strides_of(source, t->value_bytes, from);
    copy_some_rows(packed, to, byte_at(source, t->from, t->value_bytes), from, t->extent, t->value_bytes,
                   rows_before(t, chunk, chunks), rows_before(t, chunk + 1, chunks), exchange->late);
}

/* Where a received transfer lies. */
static const unsigned char *find_received(const trl_exchange *exchange, const trli_message *m, int transfer,
                                          ptrdiff_t stride[3])
{
    const trli_exchange_piece *t = &exchange->receives.transfer[transfer];
    const trli_node_piece *piece = m->slot ? &m->piece[transfer - m->first] : NULL;
    if (piece && piece->lent) {
        memcpy(stride, piece->stride, sizeof piece->stride);
        return m->lender + piece->at;
    }
    packed_strides(t, stride);
    return piece ? m->room[(m->round - 1) & 1] + piece->at : exchange->receive_buffer + t->offset;
}

void trli_exchange_unpack(const trl_exchange *exchange, int message, int transfer, int chunk, int chunks,
                          const trl_array *target)
{
    const trli_message *m = &exchange->receives.message[message];
    const trli_exchange_piece *t = &exchange->receives.transfer[transfer];
    ptrdiff_t to[3], from[3];
    const unsigned char *received = find_received(exchange, m, transfer, from);
    strides_of(target, t->value_bytes, to);
    copy_some_rows(byte_at(target, t->to, t->value_bytes), to, received, from, t->extent, t->value_bytes,
                   rows_before(t, chunk, chunks), rows_before(t, chunk + 1, chunks), exchange->late);
}

void trli_exchange_copy(const trli_exchange_piece *t, int chunk, int chunks, const trl_array *source,
                        const trl_array *target)
{
    ptrdiff_t to[3], from[3];
    strides_of(target, t->value_bytes, to);
    strides_of(source, t->value_bytes, from);
    copy_some_rows(byte_at(target, t->to, t->value_bytes), to, byte_at(source, t->from, t->value_bytes), from,
                   t->extent, t->value_bytes, rows_before(t, chunk, chunks), rows_before(t, chunk + 1, chunks), false);
}
