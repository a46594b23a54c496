/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
/* Tests by pairs: a deck, and beside it the exact messages that it must give. */
#ifndef MESSAGE_PAIRS_H
#define MESSAGE_PAIRS_H

#include "trl_test.h"

static inline char *read_whole(const char *path)
{
    FILE *in = fopen(path, "rb");
    if (!in) return NULL;
    char *text = calloc(1, 1 << 16);
    size_t n = fread(text, 1, (1 << 16) - 1, in);
    text[n] = 0;
    fclose(in);
    return text;
}

/* The messages as a user sees them, without the source lines. */
static inline void format_messages(char *buffer, size_t size)
{
    const trl_diagnostic *d;
    int n = trl_context_diagnostics(test_ctx, &d);
    size_t used = 0;
    buffer[0] = 0;
    for (int i = 0; i < n && used < size; ++i) {
        if (d[i].file && d[i].line)
            used += (size_t)snprintf(buffer + used, size - used, "%s:%d:%d: ", d[i].file, d[i].line, d[i].column);
        if (used < size)
            used += (size_t)snprintf(buffer + used, size - used, "%s%s\n",
                                     d[i].severity == TRL_WARNING ? "warning: " : "", d[i].text);
        for (int r = 0; r < TRL_REMEDIES_MOST && d[i].remedy[r] && used < size; ++r)
            used += (size_t)snprintf(buffer + used, size - used, "  %s%s\n", r ? "or:  " : "fix: ", d[i].remedy[r]);
    }
}

#endif
