/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include "json_impl.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "memstream_impl.h"

enum { DEEPEST = 32 };

struct trli_json {
    trl_context *ctx;
    FILE *out; /* of stream */
    trli_memstream stream;
    int depth;            /* open objects and arrays */
    char close[DEEPEST];  /* by depth: how it ends */
    bool filled[DEEPEST]; /* by depth: holds something */
    bool keyed;           /* a key waits for its value */
    bool whole;           /* the outermost value is there */
    const char *misuse;   /* the first, or NULL */
};

trl_err trli_json_create(trl_context *ctx, trli_json **json)
{
    trli_json *j = *json = trli_new(ctx, 1, sizeof **json);
    if (j && trli_memstream_open(ctx, &j->stream)) {
        j->ctx = ctx;
        j->out = j->stream.out;
        return TRL_OK;
    }
    trli_free(j);
    *json = NULL;
    return trli_no_memory(ctx, NULL, "for a JSON text");
}

void trli_json_destroy(trli_json **json)
{
    if (!*json) return;
    trli_memstream_discard(&(*json)->stream);
    trli_free(*json);
    *json = NULL;
}

trl_err trli_json_finish(trli_json **json, char **text)
{
    trli_json *j = *json;
    trl_err err = TRL_OK;
    *text = NULL;
    if (!j->misuse && (j->depth > 0 || !j->whole)) j->misuse = "the text ends before its value does";
    fputc('\n', j->out);
    if (!trli_memstream_close(&j->stream)) {
        err = trli_no_memory(j->ctx, NULL, "for a JSON text");
    } else if (j->misuse) {
        err = trl_fail(j->ctx, TRL_ERR_USAGE, NULL, "JSON: %s", j->misuse);
    } else {
        *text = j->stream.text;
        j->stream.text = NULL;
    }
    trli_json_destroy(json);
    return err;
}

static void misuse(trli_json *json, const char *what)
{
    if (!json->misuse) json->misuse = what;
}

static void new_line(trli_json *json)
{
    fprintf(json->out, "\n%*s", 2 * json->depth, "");
}

/* What comes before an item: the comma after the one before it, and its line. */
static void begin_item(trli_json *json)
{
    if (json->filled[json->depth]) fputc(',', json->out);
    json->filled[json->depth] = true;
    new_line(json);
}

/* What comes before a value: nothing after a key. */
static void begin_value(trli_json *json)
{
    if (json->depth == 0) {
        if (json->whole) misuse(json, "a second value after the outermost one");
        json->whole = true;
    } else if (json->close[json->depth] == ']') {
        begin_item(json);
    } else if (!json->keyed) {
        misuse(json, "a value in an object needs a key");
    }
    json->keyed = false;
}

static void begin(trli_json *json, char open, char close)
{
    begin_value(json);
    if (json->depth + 1 >= DEEPEST) {
        misuse(json, "objects and arrays are nested too deeply");
        return;
    }
    fputc(open, json->out);
    json->depth++;
    json->close[json->depth] = close;
    json->filled[json->depth] = false;
}

static void end(trli_json *json, char close)
{
    if (json->depth == 0 || json->close[json->depth] != close || json->keyed) {
        misuse(json, "an end that fits no begin");
        return;
    }
    bool filled = json->filled[json->depth--];
    if (filled) new_line(json);
    fputc(close, json->out);
}

void trli_json_begin_object(trli_json *json)
{
    begin(json, '{', '}');
}

void trli_json_end_object(trli_json *json)
{
    end(json, '}');
}

void trli_json_begin_array(trli_json *json)
{
    begin(json, '[', ']');
}

void trli_json_end_array(trli_json *json)
{
    end(json, ']');
}

/* Length of the valid UTF-8 sequence at s (RFC 3629: no overlong forms, surrogates or values above 10FFFF), or 0. */
static int sequence_length(const unsigned char *s)
{
    int length = s[0] < 0x80                   ? 1
                 : s[0] >= 0xC2 && s[0] < 0xE0 ? 2
                 : (s[0] & 0xF0) == 0xE0       ? 3
                 : s[0] >= 0xF0 && s[0] < 0xF5 ? 4
                                               : 0;
    for (int i = 1; i < length; ++i)
        if ((s[i] & 0xC0) != 0x80) return 0;
    if ((s[0] == 0xE0 && s[1] < 0xA0) || (s[0] == 0xED && s[1] >= 0xA0)) return 0;
    if ((s[0] == 0xF0 && s[1] < 0x90) || (s[0] == 0xF4 && s[1] >= 0x90)) return 0;
    return length;
}

static void put_string(FILE *out, const char *value)
{
    fputc('"', out);
    for (const unsigned char *s = (const unsigned char *)value; *s;) {
        int length = sequence_length(s);
        if (length == 0) {
            fputs("\xEF\xBF\xBD", out);
        } else if (*s == '"' || *s == '\\') {
            fprintf(out, "\\%c", *s);
        } else if (*s < 0x20 || *s == 0x7F) {
            fprintf(out, "\\u%04x", *s);
        } else {
            fwrite(s, 1, (size_t)length, out);
        }
        s += length ? length : 1;
    }
    fputc('"', out);
}

void trli_json_key(trli_json *json, const char *key)
{
    if (json->depth == 0 || json->close[json->depth] != '}' || json->keyed) {
        misuse(json, "a key outside an object, or after a key");
        return;
    }
    begin_item(json);
    put_string(json->out, key);
    fputs(": ", json->out);
    json->keyed = true;
}

void trli_json_string(trli_json *json, const char *value)
{
    begin_value(json);
    if (value) {
        put_string(json->out, value);
    } else {
        fputs("null", json->out);
    }
}

void trli_json_number(trli_json *json, double value)
{
    begin_value(json);
    if (isfinite(value)) {
        fprintf(json->out, "%.17g", value);
    } else {
        fputs("null", json->out);
    }
}

void trli_json_integer(trli_json *json, int64_t value)
{
    begin_value(json);
    fprintf(json->out, "%" PRId64, value);
}

void trli_json_bool(trli_json *json, bool value)
{
    begin_value(json);
    fputs(value ? "true" : "false", json->out);
}

void trli_json_text(trli_json *json, const char *value)
{
    begin_value(json);
    fputs(value, json->out);
}
