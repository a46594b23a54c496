/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formula_impl.h"

/* The classification of <ctype.h> depends on the host program's locale; a deck must not. */
static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool trli_name_char(char c)
{
    return is_letter(c) || is_digit(c);
}

static int skip_digits(const char *s, int at)
{
    while (is_digit(s[at])) ++at;
    return at;
}

/* A '.' that no other '.' precedes or follows: only such a one belongs to a number. */
static bool is_lone_dot(const char *s, int at)
{
    return s[at] == '.' && s[at + 1] != '.' && (at == 0 || s[at - 1] != '.');
}

static int skip_number(const char *s, int at)
{
    at = skip_digits(s, at);
    if (is_lone_dot(s, at)) at = skip_digits(s, at + 1);
    if (s[at] == 'e' || s[at] == 'E') {
        int exponent = at + 1 + (s[at + 1] == '+' || s[at + 1] == '-');
        if (is_digit(s[exponent])) at = skip_digits(s, exponent);
    }
    return at;
}

/* The end of everything that a reader would take for one number: "0x10", "1_000", "1:30", "1.2.3". */
static int skip_number_like(const char *s, int at)
{
    while (trli_name_char(s[at]) || is_lone_dot(s, at) || (s[at] == ':' && is_digit(s[at + 1]))) ++at;
    return at;
}

enum { NUMBER_LENGTH = 100 };

/* Whether a number that ends at `end` is followed by a name, as in 2T: not by an exponent or another base. */
static bool is_product(const char *s, int begin, int end, int like)
{
    const bool zero = end == begin + 1 && s[begin] == '0'; /* 0x10 */
    if (s[end] == 'e' || s[end] == 'E' || s[end] == '_' || zero || like - begin > NUMBER_LENGTH) return false;
    while (end < like && trli_name_char(s[end])) ++end;
    return end == like;
}

/* strtod reads the locale's decimal point, so it is given the digits as a whole number with a corrected exponent. */
static double number_value(const char *s, int begin, int end)
{
    char digits[NUMBER_LENGTH + 24];
    int n = 0, at = begin;
    long shift = 0;
    bool fraction = false;
    for (; at < end && s[at] != 'e' && s[at] != 'E'; ++at) {
        if (s[at] == '.') {
            fraction = true;
        } else {
            digits[n++] = s[at];
            shift -= fraction;
        }
    }
    if (at < end) {
        long exponent = strtol(s + at + 1, NULL, 10);
        shift += exponent > 100000 ? 100000 : exponent < -100000 ? -100000 : exponent;
    }
    snprintf(digits + n, sizeof digits - (size_t)n, "e%ld", shift);
    return strtod(digits, NULL);
}

static trl_err read_number(const trli_lexer *lexer, trli_token *token)
{
    const char *s = lexer->text->chars;
    int begin = token->begin, end = skip_number(s, begin), like = skip_number_like(s, end);
    if (like > end && is_product(s, begin, end, like))
        return trli_text_fail(lexer->ctx, lexer->text, begin, like,
                              "%.*s is not a number: write %.*s*%.*s for a product", like - begin, s + begin,
                              end - begin, s + begin, like - end, s + end);
    if (like > end)
        return trli_text_fail(lexer->ctx, lexer->text, begin, like, "%.*s is not a number: numbers are decimal",
                              like - begin < NUMBER_LENGTH ? like - begin : NUMBER_LENGTH, s + begin);
    if (end - begin > NUMBER_LENGTH)
        return trli_text_fail(lexer->ctx, lexer->text, begin, end, "a number has at most %d characters",
                              (int)NUMBER_LENGTH);
    token->kind = TRLI_TOKEN_NUMBER;
    token->end = end;
    token->number = number_value(s, begin, end);
    if (isinf(token->number))
        return trli_text_fail(lexer->ctx, lexer->text, begin, end, "%.*s is too large for a number", end - begin,
                              s + begin);
    return TRL_OK;
}

static const struct {
    const char *word;
    trli_token_kind kind;
    double number;
} keywords[] = {
    {"or", TRLI_TOKEN_OR, 0},       {"and", TRLI_TOKEN_AND, 0},      {"not", TRLI_TOKEN_NOT, 0},
    {"true", TRLI_TOKEN_NUMBER, 1}, {"false", TRLI_TOKEN_NUMBER, 0},
};

static trl_err read_name(const trli_lexer *lexer, trli_token *token)
{
    const char *s = lexer->text->chars;
    int end = token->begin;
    while (trli_name_char(s[end])) ++end;
    size_t length = (size_t)(end - token->begin);
    if (length > TRLI_NAME_LENGTH)
        return trli_text_fail(lexer->ctx, lexer->text, token->begin, end, "a name has at most %d characters",
                              (int)TRLI_NAME_LENGTH);
    token->kind = TRLI_TOKEN_NAME;
    token->end = end;
    if (length > 5 || s[end] == '{') return TRL_OK;
    for (size_t i = 0; i < sizeof keywords / sizeof keywords[0]; ++i) {
        if (strncmp(s + token->begin, keywords[i].word, length) == 0 && keywords[i].word[length] == 0) {
            token->kind = keywords[i].kind;
            token->number = keywords[i].number;
        }
    }
    return TRL_OK;
}

static trl_err read_component(const trli_lexer *lexer, trli_token *token)
{
    const char *s = lexer->text->chars;
    int end = token->begin + 1;
    while (trli_name_char(s[end])) ++end;
    char axis = s[token->begin + 1];
    if (end != token->begin + 2 || axis < 'x' || axis > 'z')
        return trli_text_fail(lexer->ctx, lexer->text, token->begin, end, "'%.*s' is not a component: use .x, .y or .z",
                              end - token->begin < 40 ? end - token->begin : 40, s + token->begin);
    token->kind = TRLI_TOKEN_COMPONENT;
    token->end = end;
    token->axis = axis - 'x';
    return TRL_OK;
}

/* Longer spellings come before their beginnings. */
static const struct {
    const char *text;
    trli_token_kind kind;
} symbols[] = {
    {"<=", TRLI_TOKEN_LE},
    {">=", TRLI_TOKEN_GE},
    {"==", TRLI_TOKEN_EQ},
    {"!=", TRLI_TOKEN_NE},
    {"**", TRLI_TOKEN_POWER},
    {"..", TRLI_TOKEN_RANGE},
    {"<", TRLI_TOKEN_LT},
    {">", TRLI_TOKEN_GT},
    {"+", TRLI_TOKEN_PLUS},
    {"-", TRLI_TOKEN_MINUS},
    {"*", TRLI_TOKEN_STAR},
    {"/", TRLI_TOKEN_SLASH},
    {"^", TRLI_TOKEN_POWER},
    {"(", TRLI_TOKEN_OPEN_PAREN},
    {")", TRLI_TOKEN_CLOSE_PAREN},
    {"[", TRLI_TOKEN_OPEN_BRACKET},
    {"]", TRLI_TOKEN_CLOSE_BRACKET},
    {"{", TRLI_TOKEN_OPEN_BRACE},
    {"}", TRLI_TOKEN_CLOSE_BRACE},
    {",", TRLI_TOKEN_COMMA},
    {"=", TRLI_TOKEN_ASSIGN},
};

/* Spellings of other languages, for messages that name the right one. */
static const struct {
    const char *text, *instead;
} foreign[] = {{"&&", "and"}, {"&", "and"}, {"||", "or"}, {"|", "or"}, {"!", "not"}, {"%", "fmod(a, b)"}};

static trl_err unexpected_character(const trli_lexer *lexer, int begin)
{
    const char *s = lexer->text->chars + begin;
    for (size_t i = 0; i < sizeof foreign / sizeof foreign[0]; ++i) {
        int length = (int)strlen(foreign[i].text);
        if (strncmp(s, foreign[i].text, (size_t)length) == 0)
            return trli_text_fail(lexer->ctx, lexer->text, begin, begin + length, "'%s' is not an operator; use %s",
                                  foreign[i].text, foreign[i].instead);
    }
    int length = 1;
    while (length < 4 && ((unsigned char)s[length] & 0xC0) == 0x80) ++length;
    if ((unsigned char)s[0] < ' ' || s[0] == 127)
        return trli_text_fail(lexer->ctx, lexer->text, begin, begin + 1, "unexpected control character %d", s[0]);
    return trli_text_fail(lexer->ctx, lexer->text, begin, begin + length, "unexpected character '%.*s'", length, s);
}

static trl_err read_symbol(const trli_lexer *lexer, trli_token *token)
{
    const char *s = lexer->text->chars + token->begin;
    for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; ++i) {
        const char *text = symbols[i].text;
        if (s[0] == text[0] && (!text[1] || s[1] == text[1])) {
            token->kind = symbols[i].kind;
            token->end = token->begin + (text[1] ? 2 : 1);
            return TRL_OK;
        }
    }
    return unexpected_character(lexer, token->begin);
}

trl_err trli_lexer_next(trli_lexer *lexer, trli_token *token)
{
    trl_err err = TRL_OK;
    const char *s = lexer->text->chars;
    int at = lexer->at;
    while (s[at] == ' ' || s[at] == '\n' || s[at] == '\t' || s[at] == '\r') ++at;
    *token = (trli_token){.kind = TRLI_TOKEN_END, .begin = at, .end = at};
    if (is_digit(s[at]) || (is_lone_dot(s, at) && is_digit(s[at + 1])))
        TRL_TRY(read_number(lexer, token));
    else if (is_letter(s[at]))
        TRL_TRY(read_name(lexer, token));
    else if (is_lone_dot(s, at) && is_letter(s[at + 1]))
        TRL_TRY(read_component(lexer, token));
    else if (s[at])
        TRL_TRY(read_symbol(lexer, token));
    lexer->at = token->end;
done:
    return err;
}
