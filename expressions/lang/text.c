/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <stdarg.h>
#include <stdio.h>

#include "formula_impl.h"

/* UTF-8: a byte that continues a character takes no column. */
static bool continues_character(char c)
{
    return ((unsigned char)c & 0xC0) == 0x80;
}

static int count_characters(const char *chars, int begin, int end)
{
    int n = 0;
    for (int i = begin; i < end && chars[i]; ++i) n += !continues_character(chars[i]);
    return n;
}

trl_place trl_text_place(const trl_text *text, int begin, int end)
{
    trl_place place = text->place;
    if (!text->exact || place.column < 1) return place;
    place.column += count_characters(text->chars, 0, begin);
    place.length = count_characters(text->chars, begin, end);
    if (place.length < 1) place.length = 1;
    return place;
}

/* Length of a piece of one line from begin that fits in a message. */
static int excerpt_length(const char *chars)
{
    enum { LONGEST = 30 };
    int n = 0;
    while (n < LONGEST && chars[n] && chars[n] != '\n') ++n;
    while (n > 0 && continues_character(chars[n])) --n;
    return n;
}

trl_err trli_text_fail(trl_context *ctx, const trl_text *text, int begin, int end, const char *format, ...)
{
    char message[1024];
    trl_place place = trl_text_place(text, begin, end);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    int excerpt = excerpt_length(text->chars + begin);
    if (text->exact || excerpt == 0) return trl_fail(ctx, TRL_ERR_INPUT, &place, "%s", message);
    return trl_fail(ctx, TRL_ERR_INPUT, &place, "%s (at '%.*s')", message, excerpt, text->chars + begin);
}
