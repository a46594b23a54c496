/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include "memstream_impl.h"

#include <string.h>

/* Double the room until `bytes` fit. */
static bool make_room(trli_memstream *stream, size_t bytes)
{
    enum { FIRST = 256 };
    size_t room = stream->room ? stream->room : FIRST;
    if (bytes <= stream->room) return true;
    while (room < bytes) room *= 2;
    char *text = trli_resize(stream->ctx, stream->text, room, 1);
    if (!text) return false;
    stream->text = text;
    stream->room = room;
    return true;
}

/* The stream takes a result of 0 for an error. */
static ssize_t put(void *data, const char *bytes, size_t size)
{
    trli_memstream *stream = data;
    if (stream->failed || !make_room(stream, stream->length + size + 1)) {
        stream->failed = true;
        return 0;
    }
    memcpy(stream->text + stream->length, bytes, size);
    stream->length += size;
    stream->text[stream->length] = 0;
    return (ssize_t)size;
}

bool trli_memstream_open(trl_context *ctx, trli_memstream *stream)
{
    *stream = (trli_memstream){.ctx = ctx};
    if (!make_room(stream, 1)) return false;
    stream->text[0] = 0;
    stream->out = fopencookie(stream, "w", (cookie_io_functions_t){.write = put});
    if (stream->out) return true;
    trli_memstream_discard(stream);
    return false;
}

bool trli_memstream_close(trli_memstream *stream)
{
    const bool flushed = fclose(stream->out) == 0;
    stream->out = NULL;
    if (flushed && !stream->failed) return true;
    trli_memstream_discard(stream);
    return false;
}

void trli_memstream_discard(trli_memstream *stream)
{
    if (stream->out) (void)fclose(stream->out);
    trli_free(stream->text);
    *stream = (trli_memstream){0};
}
