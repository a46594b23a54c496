/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "scalar_impl.h"

/* Above this not every whole number is a double. */
#define WHOLE_MAX 9007199254740992.0

static size_t count_digits(const char *s)
{
    return strspn(s, "0123456789");
}

bool trli_scalar_number(const char *text, double *value)
{
    const char *s = text + (*text == '+' || *text == '-');
    size_t whole = count_digits(s), fraction = 0;
    s += whole;
    if (*s == '.') {
        fraction = count_digits(s + 1);
        s += 1 + fraction;
    }
    if (whole + fraction == 0) return false;
    if (*s == 'e' || *s == 'E') {
        s += 1 + (s[1] == '+' || s[1] == '-');
        size_t exponent = count_digits(s);
        if (exponent == 0) return false;
        s += exponent;
    }
    if (*s) return false;
    *value = strtod(text, NULL);
    return isfinite(*value);
}

bool trli_scalar_integer(const char *text, int64_t *value)
{
    double number;
    if (!trli_scalar_number(text, &number) || number != floor(number) || fabs(number) > WHOLE_MAX) return false;
    *value = (int64_t)number;
    return true;
}

bool trli_scalar_boolean(const char *text, bool *value)
{
    *value = strcmp(text, "true") == 0;
    return *value || strcmp(text, "false") == 0;
}

const char *trli_scalar_boolean_advice(const char *text)
{
    static const struct {
        const char *word, *advice;
    } words[] = {
        {"yes", "; write true"}, {"on", "; write true"},   {"true", "; write true"},
        {"no", "; write false"}, {"off", "; write false"}, {"false", "; write false"},
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; ++i)
        if (strcasecmp(text, words[i].word) == 0) return words[i].advice;
    return "";
}

const char *trli_scalar_number_advice(const char *text)
{
    double ignored;
    const char *s = text + (*text == '+' || *text == '-');
    if (!isdigit((unsigned char)*s) || trli_scalar_number(text, &ignored)) return "";
    if (s[0] == '0' && strchr("xXoObB", s[1]) && s[1]) return "; numbers are decimal";
    if (s[strspn(s, "0123456789_.")] == 0 && strchr(s, '_')) return "; write digits without '_'";
    if (s[strspn(s, "0123456789:.")] == 0 && strchr(s, ':')) return "; write a plain number, not minutes or hours";
    if (s[strspn(s, "0123456789.eE+-")] == 0 && isinf(strtod(text, NULL))) return "; it is too large for a number";
    return "";
}

void trli_scalar_print(double value, bool whole, char text[TRLI_NUMBER_TEXT])
{
    if (whole && fabs(value) <= WHOLE_MAX && value == floor(value)) {
        snprintf(text, TRLI_NUMBER_TEXT, "%.0f", value);
        return;
    }
    for (int digits = 15; digits <= 17; ++digits) {
        snprintf(text, TRLI_NUMBER_TEXT, "%.*g", digits, value);
        if (strtod(text, NULL) == value) break;
    }
    if (strchr(text, '.')) return;
    /* YAML 1.1 takes "1e-05" for a text: a number needs its point. */
    char *exponent = strchr(text, 'e');
    size_t at = exponent ? (size_t)(exponent - text) : strlen(text);
    memmove(text + at + 2, text + at, strlen(text + at) + 1);
    memcpy(text + at, ".0", 2);
}

bool trli_scalar_is_file(const char *text)
{
    const char *dot = strrchr(text, '.');
    return dot && isalpha((unsigned char)dot[1]) && !strpbrk(dot, " +-*/()[],");
}

bool trli_scalar_is_library(const char *text)
{
    const size_t length = strlen(text);
    return length > 3 && strcmp(text + length - 3, ".so") == 0;
}
