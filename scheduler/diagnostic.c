/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "context_impl.h"

void trli_diagnostics_init(trli_diagnostics *diagnostics)
{
    pthread_mutex_init(&diagnostics->lock, NULL);
    diagnostics->list = diagnostics->first;
    diagnostics->asker = diagnostics->first_asker;
    diagnostics->capacity = (int)(sizeof diagnostics->first / sizeof *diagnostics->first);
}

static void free_members(trli_diagnostics *diagnostics, trl_diagnostic *d)
{
    free(d->file);
    free(d->source);
    for (int i = 0; i < TRL_REMEDIES_MOST; ++i) free(d->remedy[i]);
    if (d->text == diagnostics->spare)
        diagnostics->spare_used = false;
    else
        free(d->text);
}

static void clear(trli_diagnostics *diagnostics)
{
    for (int i = 0; i < diagnostics->count; ++i) free_members(diagnostics, &diagnostics->list[i]);
    diagnostics->count = 0;
}

void trli_diagnostics_destroy(trli_diagnostics *diagnostics)
{
    clear(diagnostics);
    if (diagnostics->list != diagnostics->first) free(diagnostics->list);
    if (diagnostics->asker != diagnostics->first_asker) free(diagnostics->asker);
    pthread_mutex_destroy(&diagnostics->lock);
}

/* This thread recorded errors since the last trli_diagnostics_said. */
static _Thread_local bool said;

bool trli_diagnostics_said(void)
{
    bool was = said;
    said = false;
    return was;
}

static _Thread_local uint32_t asker; /* 0: not numbered yet */

uint32_t trli_diagnostics_asker(void)
{
    static _Atomic uint32_t last;
    if (asker == 0) asker = atomic_fetch_add(&last, 1) + 1;
    return asker;
}

void trli_diagnostics_work_for(uint32_t other)
{
    asker = other;
}

/* The message that this thread recorded last, which remedies are added to; -1: there was no memory for it. */
static _Thread_local int latest = -1;

static bool grow(trli_diagnostics *diagnostics)
{
    int capacity = 2 * diagnostics->capacity;
    const bool has_list = diagnostics->list != diagnostics->first;
    const bool has_askers = diagnostics->asker != diagnostics->first_asker;
    trl_diagnostic *list = realloc(has_list ? diagnostics->list : NULL, (size_t)capacity * sizeof *list);
    if (!list) return false;
    if (!has_list) memcpy(list, diagnostics->first, sizeof diagnostics->first);
    diagnostics->list = list;
    uint32_t *askers = realloc(has_askers ? diagnostics->asker : NULL, (size_t)capacity * sizeof *askers);
    if (!askers) return false;
    if (!has_askers) memcpy(askers, diagnostics->first_asker, sizeof diagnostics->first_asker);
    diagnostics->asker = askers;
    diagnostics->capacity = capacity;
    return true;
}

/* Takes ownership of the members of d. A message for which there is no memory is dropped, unless it is one of the
 * first: its code still reaches the caller. format and args: of d's text if there was no memory for the text, or
 * NULL. */
static void append(trli_diagnostics *diagnostics, trl_diagnostic *d, const char *format, va_list *args)
{
    if (d->severity == TRL_ERROR) said = true;
    pthread_mutex_lock(&diagnostics->lock);
    if (format && !diagnostics->spare_used) {
        vsnprintf(diagnostics->spare, sizeof diagnostics->spare, format, *args);
        diagnostics->spare_used = true;
        d->text = diagnostics->spare;
    }
    const bool room = diagnostics->count < diagnostics->capacity || grow(diagnostics);
    latest = room ? diagnostics->count : -1;
    if (room) diagnostics->asker[diagnostics->count] = trli_diagnostics_asker();
    if (room)
        diagnostics->list[diagnostics->count++] = *d;
    else
        free_members(diagnostics, d);
    pthread_mutex_unlock(&diagnostics->lock);
}

static void set_place(trl_diagnostic *d, const trl_place *place)
{
    if (!place || !place->file) return;
    d->file = strdup(place->file);
    d->line = place->line;
    d->column = place->column;
    d->length = place->length;
    if (place->source) d->source = strndup(place->source, strcspn(place->source, "\r\n"));
}

static void record(trl_context *ctx, trl_severity severity, trl_err code, const trl_place *place, const char *format,
                   va_list args)
{
    trl_diagnostic d = {.severity = severity, .code = code};
    va_list again;
    if (ctx == NULL) return;
    va_copy(again, args);
    set_place(&d, place);
    if (vasprintf(&d.text, format, args) < 0) d.text = NULL;
    append(&ctx->diagnostics, &d, d.text ? NULL : format, &again);
    va_end(again);
}

trl_err trl_fail(trl_context *ctx, trl_err code, const trl_place *place, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    record(ctx, TRL_ERROR, code, place, format, args);
    va_end(args);
    return code;
}

void trl_warn(trl_context *ctx, const trl_place *place, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    record(ctx, TRL_WARNING, TRL_OK, place, format, args);
    va_end(args);
}

/* Takes ownership of the text, or frees it. */
static void add_remedy(trl_diagnostic *d, char *text)
{
    int i = 0;
    while (i < TRL_REMEDIES_MOST && d->remedy[i] && strcmp(d->remedy[i], text) != 0) ++i;
    if (i < TRL_REMEDIES_MOST && !d->remedy[i])
        d->remedy[i] = text;
    else
        free(text);
}

void trl_advise(trl_context *ctx, const char *format, ...)
{
    char *text = NULL;
    va_list args;
    if (ctx == NULL) return;
    va_start(args, format);
    const bool written = vasprintf(&text, format, args) >= 0;
    va_end(args);
    if (!written) return;
    pthread_mutex_lock(&ctx->diagnostics.lock);
    if (latest >= 0 && latest < ctx->diagnostics.count)
        add_remedy(&ctx->diagnostics.list[latest], text);
    else
        free(text);
    pthread_mutex_unlock(&ctx->diagnostics.lock);
}

void trli_advise_rank(trl_context *ctx)
{
    if (ctx->rank > 0)
        trl_advise(ctx, "rank %d did not find it, but lower ranks did: let all ranks have the same files at that place",
                   ctx->rank);
}

void trli_diagnostics_forgive(trl_context *ctx, int first)
{
    pthread_mutex_lock(&ctx->diagnostics.lock);
    for (int i = first; i < ctx->diagnostics.count; ++i)
        if (ctx->diagnostics.list[i].severity == TRL_ERROR && ctx->diagnostics.asker[i] == trli_diagnostics_asker())
            ctx->diagnostics.list[i].severity = TRL_WARNING;
    pthread_mutex_unlock(&ctx->diagnostics.lock);
}

void trli_diagnostics_locate(trl_context *ctx, int first, const trl_place *place)
{
    pthread_mutex_lock(&ctx->diagnostics.lock);
    for (int i = first; i < ctx->diagnostics.count; ++i)
        if (ctx->diagnostics.list[i].severity == TRL_ERROR && !ctx->diagnostics.list[i].file)
            set_place(&ctx->diagnostics.list[i], place);
    pthread_mutex_unlock(&ctx->diagnostics.lock);
}

static void drop(trl_context *ctx, int first, bool warnings)
{
    trli_diagnostics *d = &ctx->diagnostics;
    pthread_mutex_lock(&d->lock);
    int kept = first < d->count ? first : d->count;
    for (int i = kept; i < d->count; ++i) {
        if (warnings || d->list[i].severity == TRL_ERROR) {
            free_members(d, &d->list[i]);
        } else {
            d->asker[kept] = d->asker[i];
            d->list[kept++] = d->list[i];
        }
    }
    d->count = kept;
    pthread_mutex_unlock(&d->lock);
}

void trli_diagnostics_drop(trl_context *ctx, int first)
{
    drop(ctx, first, false);
}

void trli_diagnostics_drop_all(trl_context *ctx, int first)
{
    drop(ctx, first, true);
}

int trl_context_diagnostics(const trl_context *ctx, const trl_diagnostic **list)
{
    pthread_mutex_t *lock = (pthread_mutex_t *)&ctx->diagnostics.lock;
    pthread_mutex_lock(lock); /* threads of devices may add to them */
    const int count = ctx->diagnostics.count;
    *list = ctx->diagnostics.list;
    pthread_mutex_unlock(lock);
    return count;
}

void trl_context_clear_diagnostics(trl_context *ctx)
{
    pthread_mutex_lock(&ctx->diagnostics.lock);
    clear(&ctx->diagnostics);
    pthread_mutex_unlock(&ctx->diagnostics.lock);
}

/* Text under construction: cut at `size`, its whole length counted. */
typedef struct text_buffer {
    char *data;
    size_t size, used;
} text_buffer;

static void put_char(text_buffer *b, char c)
{
    if (b->used + 1 < b->size) b->data[b->used] = c;
    b->used++;
}

static void put_text(text_buffer *b, const char *text)
{
    while (*text) put_char(b, *text++);
}

static void put_position(text_buffer *b, int number)
{
    char digits[16];
    snprintf(digits, sizeof digits, ":%d", number);
    if (number > 0) put_text(b, digits);
}

/* Columns count characters: bytes after the first of a UTF-8 character take no column. */
static bool starts_character(char c)
{
    return ((unsigned char)c & 0xc0) != 0x80;
}

/* Spaces up to the column (tabs where the source has tabs, so that both lines shift alike), then "^~~~" within the
 * line. */
static void put_underline(text_buffer *b, const trl_diagnostic *d)
{
    const char *s = d->source;
    int column = 1, marks = d->length > 1 ? d->length - 1 : 0;
    for (; column < d->column; ++column) {
        put_char(b, *s == '\t' ? '\t' : ' ');
        if (*s) ++s;
        while (*s && !starts_character(*s)) ++s;
    }
    put_char(b, '^');
    if (*s) ++s;
    for (; *s && marks > 0; ++s) {
        if (!starts_character(*s)) continue;
        put_char(b, '~');
        --marks;
    }
    put_char(b, '\n');
}

int trl_diagnostic_format(const trl_diagnostic *d, char *buffer, size_t size)
{
    static const char *const prefix[] = {[TRL_NOTE] = "note: ", [TRL_WARNING] = "warning: ", [TRL_ERROR] = ""};
    text_buffer b = {.data = buffer, .size = size};
    if (d->file) {
        put_text(&b, d->file);
        put_position(&b, d->line);
        if (d->line > 0) put_position(&b, d->column);
        put_text(&b, ": ");
    }
    put_text(&b, prefix[d->severity]);
    put_text(&b, d->text ? d->text : trl_err_meaning(d->code));
    put_char(&b, '\n');
    if (d->source && d->line > 0) {
        put_text(&b, d->source);
        put_char(&b, '\n');
        if (d->column > 0) put_underline(&b, d);
    }
    for (int i = 0; i < TRL_REMEDIES_MOST && d->remedy[i]; ++i) {
        put_text(&b, i == 0 ? "  fix: " : "  or:  ");
        put_text(&b, d->remedy[i]);
        put_char(&b, '\n');
    }
    if (size > 0) buffer[b.used < size ? b.used : size - 1] = 0;
    return (int)b.used;
}

enum { PIECE = 4096 /* bytes of one piece of the stream between ranks */ };

/* Agreement sends diagnostics as a stream of bytes: per message this header, then its strings. */
enum { STRINGS = 3 + TRL_REMEDIES_MOST };

typedef struct packed_header {
    int severity, code, line, column, length;
    int bytes[STRINGS]; /* of file, source, text and remedies; -1: NULL */
} packed_header;

static int packed_bytes(const char *s)
{
    return s ? (int)strlen(s) : -1;
}

static size_t pack_bytes(char *to, const char *s)
{
    size_t bytes = s ? strlen(s) : 0;
    if (to && bytes) memcpy(to, s, bytes);
    return bytes;
}

/* Pack n messages. Returns the bytes needed; stream NULL: writes nothing. */
static size_t pack(const trl_diagnostic *list, int n, char *stream)
{
    size_t used = 0;
    for (int i = 0; i < n; ++i) {
        const trl_diagnostic *d = &list[i];
        const char *strings[STRINGS] = {d->file, d->source, d->text};
        packed_header head = {d->severity, d->code, d->line, d->column, d->length, {0}};
        for (int k = 3; k < STRINGS; ++k) strings[k] = d->remedy[k - 3];
        for (int k = 0; k < STRINGS; ++k) head.bytes[k] = packed_bytes(strings[k]);
        if (stream) memcpy(stream + used, &head, sizeof head);
        used += sizeof head;
        for (int k = 0; k < STRINGS; ++k) used += pack_bytes(stream ? stream + used : NULL, strings[k]);
    }
    return used;
}

static char *unpack_string(const char **from, int bytes)
{
    char *s;
    if (bytes < 0) return NULL;
    s = malloc((size_t)bytes + 1); /* the stream holds no NUL, so not strndup */
    if (s) {
        memcpy(s, *from, (size_t)bytes);
        s[bytes] = '\0';
    }
    *from += bytes;
    return s;
}

static void unpack(trli_diagnostics *diagnostics, const char *stream, size_t bytes)
{
    const char *end = stream + bytes;
    while (stream < end) {
        packed_header head;
        trl_diagnostic d;
        memcpy(&head, stream, sizeof head);
        stream += sizeof head;
        d = (trl_diagnostic){.severity = (trl_severity)head.severity,
                             .code = (trl_err)head.code,
                             .line = head.line,
                             .column = head.column,
                             .length = head.length};
        d.file = unpack_string(&stream, head.bytes[0]);
        d.source = unpack_string(&stream, head.bytes[1]);
        d.text = unpack_string(&stream, head.bytes[2]);
        for (int k = 3; k < STRINGS; ++k) d.remedy[k - 3] = unpack_string(&stream, head.bytes[k]);
        append(diagnostics, &d, NULL, NULL);
    }
}

/* Broadcast in pieces that fit a local buffer, so that a rank without memory for the whole stream still takes part. */
static int broadcast_stream(char *stream, size_t bytes, int root, MPI_Comm comm, bool sender)
{
    char piece[PIECE];
    for (size_t at = 0; at < bytes; at += sizeof piece) {
        size_t n = bytes - at < sizeof piece ? bytes - at : sizeof piece;
        if (sender) memcpy(piece, stream + at, n);
        int status = MPI_Bcast(piece, (int)n, MPI_BYTE, root, comm);
        if (status != MPI_SUCCESS) return status;
        if (!sender && stream) memcpy(stream + at, piece, n);
    }
    return MPI_SUCCESS;
}

/* The messages as a stream, in `small` if they fit. Without memory for a larger stream, only the essential parts of
 * the first error. */
static char *pack_all(const trli_diagnostics *diagnostics, char small[PIECE], unsigned long long *bytes)
{
    *bytes = pack(diagnostics->list, diagnostics->count, NULL);
    char *stream = *bytes <= PIECE ? small : malloc(*bytes);
    if (stream) {
        pack(diagnostics->list, diagnostics->count, stream);
        return stream;
    }
    char text[PIECE / 2];
    int i = 0;
    while (i + 1 < diagnostics->count && diagnostics->list[i].severity != TRL_ERROR) ++i;
    trl_diagnostic plain = diagnostics->list[i];
    plain.source = NULL;
    trl_diagnostic_format(&plain, text, sizeof text);
    text[strcspn(text, "\n")] = '\0';
    plain = (trl_diagnostic){.severity = plain.severity, .code = plain.code, .text = text};
    *bytes = pack(&plain, 1, small);
    return small;
}

trl_err trli_diagnostics_share(trl_context *ctx, int root)
{
    trl_err err;
    bool sender = ctx->rank == root;
    char small[PIECE], *stream = small;
    unsigned long long bytes = 0;
    if (sender) stream = pack_all(&ctx->diagnostics, small, &bytes);
    TRL_TRY(trli_mpi_check(ctx, MPI_Bcast(&bytes, 1, MPI_UNSIGNED_LONG_LONG, root, ctx->comm), "MPI_Bcast"));
    if (!sender && bytes > sizeof small) stream = malloc(bytes);
    TRL_TRY(trli_mpi_check(ctx, broadcast_stream(stream, bytes, root, ctx->comm, sender), "MPI_Bcast"));
    if (!sender) {
        trl_context_clear_diagnostics(ctx);
        if (stream) unpack(&ctx->diagnostics, stream, bytes);
    }
done:
    if (stream != small) free(stream);
    return err;
}

static bool equal_text(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool same_message(const trl_diagnostic *a, const trl_diagnostic *b)
{
    return a->severity == b->severity && a->line == b->line && a->column == b->column && equal_text(a->text, b->text) &&
           equal_text(a->file, b->file);
}

/* A mistake is found wherever the formula that holds it is used: the user sees its message once. */
void trli_diagnostics_unique(trli_diagnostics *diagnostics)
{
    enum { COMPARED = 200 }; /* more messages than anyone reads */
    int kept = 0;
    for (int i = 0; i < diagnostics->count; ++i) {
        bool repeated = false;
        for (int k = 0; k < kept && k < COMPARED && !repeated; ++k)
            repeated = same_message(&diagnostics->list[k], &diagnostics->list[i]);
        if (repeated)
            free_members(diagnostics, &diagnostics->list[i]);
        else {
            diagnostics->asker[kept] = diagnostics->asker[i];
            diagnostics->list[kept++] = diagnostics->list[i];
        }
    }
    diagnostics->count = kept;
}
