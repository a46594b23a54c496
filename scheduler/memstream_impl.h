/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* A stream that writes to a growing text of metadata memory (trli_new): what open_memstream does, but counted and below
 * the limit of the context. */
#ifndef TRLI_MEMSTREAM_IMPL_H
#define TRLI_MEMSTREAM_IMPL_H

#include <stdio.h>

#include "memory_impl.h"

/* All zero: closed, without a text. */
typedef struct trli_memstream {
    trl_context *ctx;
    FILE *out;  /* NULL: closed */
    char *text; /* NUL-terminated; complete after fflush(out) and after trli_memstream_close; trli_free gives it back */
    size_t length; /* of text, without the NUL */
    size_t room;   /* bytes of text */
    bool failed;   /* memory ran out while the stream was written */
} trli_memstream;

/* Open a stream with an empty text. *stream must not move while it is open. False, without a message, where the limit
 * or the system refuses memory; *stream is then closed. */
TRL_NODISCARD bool trli_memstream_open(trl_context *ctx, trli_memstream *stream);
/* Close the stream, and keep its text for the caller to free. False, without a message and without a text, where memory
 * ran out while the stream was written. */
TRL_NODISCARD bool trli_memstream_close(trli_memstream *stream);
/* Close the stream if it is open, and free its text. */
void trli_memstream_discard(trli_memstream *stream);

#endif
