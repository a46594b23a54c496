/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "machine_record_impl.h"

enum { LINE_ROOM = 256 };

/* Numbers from the start of a text, separated by a character. *end: what follows them. */
static bool read_numbers(const trli_record_kind *kind, const char *text, char separator, double *number,
                         const char **end)
{
    for (int i = 0; i < kind->n; ++i) {
        char *next;
        if (i > 0 && *text++ != separator) return false;
        number[i] = strtod(text, &next);
        if (next == text || !(number[i] >= kind->least && number[i] < kind->most)) return false;
        text = next;
    }
    *end = text;
    return true;
}

void trli_record_name(const trli_record_kind *kind, const int counts[2], char entry[TRLI_ENTRY_ROOM])
{
    uint64_t digest[2];
    char name[TRLI_DIGEST_TEXT];
    trli_digest_start(digest);
    trli_digest_bytes(digest, kind->version, strlen(kind->version) + 1);
    trli_digest_bytes(digest, counts, 2 * sizeof *counts);
    trli_digest_processor(digest);
#ifdef TRL_SANITIZED /* what takes several times as long is no figure of the machine */
    trli_digest_bytes(digest, "sanitized", sizeof "sanitized");
#endif
    trli_digest_write(digest, name);
    snprintf(entry, TRLI_ENTRY_ROOM, "%s.%s", name, kind->suffix);
}

void trli_record_load(const trli_record_kind *kind, const trli_cache *cache, const char *entry, long long now,
                      long long oldest, trli_machine_record *record)
{
    char line[LINE_ROOM];
    const char *rest;
    const bool sound = trli_cache_load(cache, entry, line, sizeof line) &&
                       read_numbers(kind, line, ' ', record->number, &rest) &&
                       sscanf(rest, " %lld %d", &record->at, &record->times) == 2 && record->times > 0;
    if (!sound || now - record->at > oldest) *record = (trli_machine_record){0};
}

void trli_record_keep(const trli_record_kind *kind, const trli_cache *cache, const char *entry,
                      const trli_machine_record *record)
{
    char line[LINE_ROOM];
    int n = 0;
    for (int i = 0; i < kind->n; ++i) n += snprintf(line + n, sizeof line - (size_t)n, "%a ", record->number[i]);
    snprintf(line + n, sizeof line - (size_t)n, "%lld %d\n", record->at, record->times);
    trli_cache_keep(cache, entry, line);
}

trl_err trli_record_read_given(trl_context *ctx, const trli_record_kind *kind, bool *given, trli_machine_record *record)
{
    const char *text = getenv(kind->variable), *rest = "";
    *given = text && *text;
    if (!*given) return TRL_OK;
    record->times = 1;
    if (read_numbers(kind, text, ',', record->number, &rest) && !*rest) return TRL_OK;
    return trl_fail(ctx, TRL_ERR_INPUT, NULL, "%s: '%s' is not %s", kind->variable, text, kind->meaning);
}
