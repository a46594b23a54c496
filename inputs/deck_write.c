/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "deck_build_impl.h"
#include "files_impl.h"
#include "memstream_impl.h"
#include "scalar_impl.h"

enum { INDENT = 2 };
static const char TITLE[] = "# The deck as used: files merged, --set applied, every default written out.";

/* Texts that a YAML 1.1 reader would take for something else. */
static bool is_plain_name(const char *text)
{
    static const char *const words[] = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"};
    for (size_t i = 0; i < sizeof words / sizeof *words; ++i)
        if (strcasecmp(words[i], text) == 0) return false;
    return trl_name_valid(text);
}

/* A character of UTF-8 that readers of YAML take for a line break or refuse outside an escape; 0 for all others. */
static unsigned special_character(const char *text, int *bytes)
{
    const unsigned char *s = (const unsigned char *)text;
    *bytes = 1;
    if (s[0] < 0x20 || s[0] == 0x7F) return s[0];
    if (s[0] == 0xC2 && s[1] >= 0x80 && s[1] <= 0xA0) {
        *bytes = 2;
        return s[1];
    }
    *bytes = 3;
    if (strncmp(text, "\xE2\x80\xA8", 3) == 0) return 0x2028;
    if (strncmp(text, "\xE2\x80\xA9", 3) == 0) return 0x2029;
    if (strncmp(text, "\xEF\xBB\xBF", 3) == 0) return 0xFEFF;
    if (strncmp(text, "\xEF\xBF\xBE", 3) == 0) return 0xFFFE;
    if (strncmp(text, "\xEF\xBF\xBF", 3) == 0) return 0xFFFF;
    *bytes = 1;
    return 0;
}

static void write_quoted(FILE *out, const char *text)
{
    int bytes;
    fputc('"', out);
    for (; *text; text += bytes) {
        unsigned special = special_character(text, &bytes);
        if (special)
            fprintf(out, "\\u%04X", special);
        else if (*text == '"' || *text == '\\')
            fprintf(out, "\\%c", *text);
        else
            fputc(*text, out);
    }
    fputc('"', out);
}

static void write_scalar(FILE *out, const trli_key *key, const trli_yaml *node)
{
    const char *text = node->text.chars;
    unsigned numbers = TRLI_AS_FORMULA | TRLI_AS_NUMBER | TRLI_AS_INTEGER | TRLI_AS_LISTS;
    char number[TRLI_NUMBER_TEXT];
    double value;
    bool truth, whole = text[strspn(text, "+-0123456789")] == 0 || (key && key->forms & TRLI_AS_INTEGER);
    if (key && !node->literal && key->forms & numbers && trli_scalar_number(text, &value)) {
        trli_scalar_print(value, whole, number);
        fputs(number, out);
    } else if (key && !node->literal &&
               (trli_schema_word(key, text) >= 0 || (key->forms & ~TRLI_AS_LIST) == TRLI_AS_BOOLEAN)) {
        fputs(text, out);
    } else if (key && !node->literal && key->forms & TRLI_AS_TEXT && key->forms & TRLI_AS_FORMULA &&
               trli_scalar_boolean(text, &truth)) {
        fputs(text, out);
    } else {
        write_quoted(out, text);
    }
}

static void write_node(FILE *out, const trli_key *key, const trli_yaml *node, int indent);

static void write_flow(FILE *out, const trli_key *key, const trli_yaml *node)
{
    if (node->kind == TRLI_SCALAR_NODE) {
        write_scalar(out, key, node);
        return;
    }
    fputc('[', out);
    for (int i = 0; i < node->n; ++i) {
        if (i > 0) fputs(", ", out);
        write_flow(out, key, node->item[i]);
    }
    fputc(']', out);
}

static void write_pieces(FILE *out, const trli_key *key, const trli_yaml *node, int indent)
{
    for (int i = 0; i < node->n; ++i) {
        fprintf(out, "\n%*s-", indent, "");
        write_node(out, key, node->item[i], indent + INDENT);
    }
}

/* Write a value behind its key: a space and a scalar or list on the same line, or a mapping on the following ones. */
static void write_node(FILE *out, const trli_key *key, const trli_yaml *node, int indent)
{
    if (node->kind == TRLI_LIST_NODE && node->n > 0 && node->item[0]->kind == TRLI_MAPPING_NODE) {
        write_pieces(out, key, node, indent);
        return;
    }
    if (node->kind != TRLI_MAPPING_NODE) {
        fputc(' ', out);
        write_flow(out, key, node);
        return;
    }
    if (node->n == 0) fputs(" {}", out);
    for (int i = 0; i < node->n; ++i) {
        const char *name = node->key[i]->text.chars;
        fprintf(out, "\n%*s", indent, "");
        if (is_plain_name(name))
            fputs(name, out);
        else
            write_quoted(out, name);
        fputc(':', out);
        write_node(out, trli_schema_child(key, name), node->item[i], indent + INDENT);
    }
}

trl_err trli_deck_write(trl_context *ctx, const trli_deck *deck, char **text)
{
    trli_memstream stream;
    *text = NULL;
    if (!trli_memstream_open(ctx, &stream)) return trli_no_memory(ctx, NULL, "to write the deck as used");
    fputs(TITLE, stream.out);
    write_node(stream.out, trli_schema_root(), deck->root, 0);
    fputc('\n', stream.out);
    if (!trli_memstream_close(&stream)) return trli_no_memory(ctx, NULL, "to write the deck as used");
    *text = stream.text;
    return TRL_OK;
}

const char *trli_deck_file_at(const trli_deck *deck, const char *path)
{
    for (int i = 0; i < deck->loaded.npaths; ++i)
        if (trli_file_same(deck->loaded.path[i], path)) return deck->loaded.path[i];
    return NULL;
}

static bool is_deck_as_used(const char *path)
{
    char start[sizeof TITLE] = "";
    FILE *file = fopen(path, "r");
    const bool read = file && fread(start, 1, sizeof TITLE - 1, file) == sizeof TITLE - 1;
    if (file) fclose(file);
    return read && memcmp(start, TITLE, sizeof TITLE - 1) == 0;
}

trl_err trli_deck_check_kept(trl_context *ctx, const trli_deck *deck)
{
    const trli_deck_options *o = &deck->options;
    char *path = NULL;
    trl_err err;
    TRL_TRY(trli_format(ctx, &path, "%s/deck.yaml", o->directory));
    const char *own = trli_deck_file_at(deck, path);
    if (own && !is_deck_as_used(own))
        err = trl_fail(ctx, TRL_ERR_INPUT, &o->directory_place,
                       "output in '%s' would replace '%s', which the deck is read from, by the deck as used; choose "
                       "another output.directory, or rename that file",
                       o->directory, own);
done:
    trli_free(path);
    return err;
}
