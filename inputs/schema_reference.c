/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <stdio.h>
#include <string.h>

#include "memstream_impl.h"
#include "schema_impl.h"

enum { EXPECTED_BYTES = 512 };

static void write_row(FILE *out, const trli_key *key)
{
    char expected[EXPECTED_BYTES];
    trli_schema_expected(key, expected, sizeof expected);
    fprintf(out, "| `%s` | %s", key->path, expected);
    if (key->flags & TRLI_PER_AXIS) fputs(", one item per axis", out);
    fputs(" | ", out);
    if (key->flags & TRLI_REQUIRED)
        fputs("required", out);
    else if (key->flags & TRLI_CHOICE)
        fputs("one of several", out);
    else if (key->fallback)
        fprintf(out, "`%s`", *key->fallback ? key->fallback : "\"\"");
    if (key->unless) fprintf(out, " without `%s`", key->unless);
    fprintf(out, " | %s", key->doc);
    if (key->like) fprintf(out, "; keys as in `%s`", key->like);
    if (key->flags & TRLI_LATER) fputs("; not available yet in this version", out);
    fputs(" |\n", out);
}

trl_err trli_schema_write_reference(trl_context *ctx, char **text)
{
    trli_memstream stream;
    int n;
    const trli_key *keys = trli_schema_keys(&n);
    *text = NULL;
    if (!trli_memstream_open(ctx, &stream)) return trli_no_memory(ctx, NULL, "for the reference of deck keys");
    fputs("# Keys of a deck\n\n"
          "Generated from the table that checks decks (`inputs/schema.c`). A dot leads into a mapping; `*` stands for "
          "names that the\n"
          "deck chooses. Where a number stands, other than a whole one, a formula of parameters and pi may stand: "
          "`length: [2*pi]`.\n\n"
          "| key | value | default | meaning |\n|---|---|---|---|\n",
          stream.out);
    for (int i = 1; i < n; ++i) write_row(stream.out, &keys[i]);
    if (!trli_memstream_close(&stream)) return trli_no_memory(ctx, NULL, "for the reference of deck keys");
    *text = stream.text;
    return TRL_OK;
}
