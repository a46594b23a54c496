/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Tables that a test prints and a page of docs/ holds: a line that the page lacks fails the test. */
#ifndef DOC_TABLE_H
#define DOC_TABLE_H

#include <stdarg.h>

#include "trl_test.h"

/* The text of a page of docs/. */
static inline const char *read_page(const char *name)
{
    static char text[1 << 18];
    char path[1024];
    snprintf(path, sizeof path, TRL_TEST_SOURCE_DIR "/../docs/%s", name);
    FILE *file = fopen(path, "rb");
    ck_assert_ptr_nonnull(file);
    size_t length = fread(text, 1, sizeof text, file);
    ck_assert_uint_lt(length, sizeof text);
    text[length] = 0;
    fclose(file);
    return text;
}

/* Print a line, on the first rank, and find it on the page; false if it is not there. */
static inline bool print_line(const char *page, const char *format, ...) TRL_PRINTF(2, 3);
static inline bool print_line(const char *page, const char *format, ...)
{
    char line[512];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (trl_context_rank(test_ctx) == 0) printf("%s", line);
    return strstr(page, line) != NULL;
}

#endif
