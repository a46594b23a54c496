/* SPDX-License-Identifier: Apache-2.0
 * Part of Trellis, an expression-graph PDE solver framework. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "deck_build_impl.h"

enum { MEMBERS_MAX = 1000000, NAME_BYTES = 256, INDICES_MAX = 8 };

/* Names */

trl_err trli_name_claim(trli_deck *deck, const char *name, const trl_place *place, const char *what)
{
    if (trl_name_reserved(name))
        return trl_fail(deck->ctx, TRL_ERR_INPUT, place, "'%s' is a reserved word and cannot name a quantity", name);
    int at = trli_map_find(&deck->names, name);
    if (at >= 0) {
        const trl_place *other = &deck->owner[at].place;
        if (other->file == place->file && other->line == place->line && other->column == place->column)
            return trl_fail(deck->ctx, TRL_ERR_INPUT, place, "the indices of this family make the name '%s' twice",
                            name);
        return trl_fail(deck->ctx, TRL_ERR_INPUT, place, "'%s' names two things: %s here, and %s at %s:%d:%d", name,
                        what, deck->owner[at].what, other->file, other->line, other->column);
    }
    trl_err err = trli_arena_grow(deck->arena, &deck->owner, deck->nowners, &deck->owner_capacity, sizeof *deck->owner);
    if (err != TRL_OK) return err;
    deck->owner[deck->nowners] = (trli_owner){.what = what, .place = *place};
    return trli_map_add(deck->arena, &deck->names, name, deck->nowners++);
}

/* A name with braces on its way to the names that it stands for. */
typedef struct expansion {
    trli_deck *deck;
    const trl_text *text;
    const trl_scope *names;
    bool ranges, component;
    trli_words *words;
    int nvalues;
    double value[INDICES_MAX]; /* of the ranges so far */
    char spelled[NAME_BYTES];
} expansion;

static trl_err fail_name(const expansion *e, const char *why)
{
    return trl_fail(e->deck->ctx, TRL_ERR_INPUT, &e->text->place, "'%.*s' %s", NAME_BYTES, e->text->chars, why);
}

/* Whether a spelled name is one, with a component behind it if the expansion allows it. */
static bool is_name(const expansion *e)
{
    char base[NAME_BYTES];
    size_t length = strlen(e->spelled);
    if (trl_name_valid(e->spelled)) return true;
    if (!e->component || length < 3 || e->spelled[length - 2] != '.' || !strchr("xyz", e->spelled[length - 1]))
        return false;
    memcpy(base, e->spelled, length - 2);
    base[length - 2] = 0;
    return trl_name_valid(base);
}

/* The numbers of the ranges of a name, as indices of formulas. */
static trl_err add_indices(expansion *e)
{
    static const char *const name[] = {"i", "j", "k"};
    const int most = (int)(sizeof name / sizeof *name), n = e->nvalues < most ? e->nvalues : most;
    trli_words *words = e->words;
    trl_scope *made;
    double *value;
    trl_err err;
    TRL_TRY(
        trli_arena_grow(e->deck->arena, &words->indices, words->n, &words->indices_capacity, sizeof *words->indices));
    TRL_TRY(trli_arena_alloc(e->deck->arena, sizeof *made, &made));
    TRL_TRY(trli_arena_alloc(e->deck->arena, sizeof e->value, &value));
    memcpy(value, e->value, sizeof e->value);
    *made = (trl_scope){.n = n, .name = name, .value = value, .outer = e->names};
    words->indices[words->n] = made;
done:
    return err;
}

static trl_err add_name(expansion *e)
{
    trli_words *words = e->words;
    trli_arena *arena = e->deck->arena;
    trl_err err;
    if (!is_name(e)) {
        if (strcmp(e->spelled, e->text->chars) == 0)
            return fail_name(e, "is no name: a name has letters, digits and '_', and does not start with a digit");
        return trl_fail(e->deck->ctx, TRL_ERR_INPUT, &e->text->place, "'%.*s' gives '%s', which is no name", NAME_BYTES,
                        e->text->chars, e->spelled);
    }
    if (++e->deck->members > MEMBERS_MAX)
        return trl_fail(e->deck->ctx, TRL_ERR_INPUT, &e->text->place, "the deck has more than %d names", MEMBERS_MAX);
    TRL_TRY(trli_arena_grow(arena, &words->word, words->n, &words->capacity, sizeof *words->word));
    TRL_TRY(trli_arena_grow(arena, &words->place, words->n, &words->place_capacity, sizeof *words->place));
    TRL_TRY(trli_arena_text(arena, e->spelled, strlen(e->spelled), &words->word[words->n]));
    if (words->indexed) TRL_TRY(add_indices(e));
    words->place[words->n++] = e->text->place;
done:
    return err;
}

/* End of the braces that open at begin, or -1; *dots: where a range has its "..", or -1. */
static int find_brace_end(const char *chars, int begin, int *dots)
{
    int depth = 0;
    *dots = -1;
    for (int i = begin; chars[i]; ++i) {
        depth += (chars[i] == '{' || chars[i] == '(') - (chars[i] == '}' || chars[i] == ')');
        if (depth == 0) return chars[i] == '}' ? i : -1;
        if (depth == 1 && *dots < 0 && chars[i] == '.' && chars[i + 1] == '.') *dots = i;
    }
    return -1;
}

/* Evaluate a range a..b between begin and end, or one number, its first and last at once. */
static trl_err read_range(trli_deck *deck, const trl_text *text, int begin, int dots, int end, const trl_scope *names,
                          int64_t *first, int64_t *last)
{
    trl_text part;
    trl_err err;
    trl_place place = trl_text_place(text, begin, end);
    TRL_TRY(trli_text_part(deck, text, begin, dots < 0 ? end : dots, &part));
    TRL_TRY(trli_text_whole(deck, &part, names, first));
    *last = *first;
    if (dots < 0) return TRL_OK;
    TRL_TRY(trli_text_part(deck, text, dots + 2, end, &part));
    TRL_TRY(trli_text_whole(deck, &part, names, last));
    if (*last < *first)
        err = trl_fail(deck->ctx, TRL_ERR_INPUT, &place, "the range '%.*s' is empty: from %" PRId64 " to %" PRId64,
                       end - begin, text->chars + begin, *first, *last);
    else if (*last - *first >= MEMBERS_MAX)
        err = trl_fail(deck->ctx, TRL_ERR_INPUT, &place, "the range '%.*s' has more than %d members", end - begin,
                       text->chars + begin, MEMBERS_MAX);
done:
    return err;
}

/* Expand the text from position at on, behind the used characters spelled already. */
static trl_err expand_from(expansion *e, int at, size_t used, int depth)
{
    const char *chars = e->text->chars;
    int length = (int)strcspn(chars + at, "{"), dots;
    int64_t first, last;
    if (used + (size_t)length >= NAME_BYTES) return fail_name(e, "is too long for a name");
    memcpy(e->spelled + used, chars + at, (size_t)length);
    used += (size_t)length;
    e->spelled[used] = 0;
    at += length;
    if (!chars[at]) return add_name(e);
    int end = find_brace_end(chars, at, &dots);
    if (end < 0) return fail_name(e, "has a '{' without its '}'");
    if (depth == INDICES_MAX) return fail_name(e, "has too many braces for a name");
    if (dots >= 0 && !e->ranges)
        return fail_name(e, "has a range in braces, which stands in lists of names only; use 'for' here");
    trl_err err = read_range(e->deck, e->text, at + 1, dots, end, e->names, &first, &last);
    for (int64_t i = first; err == TRL_OK && i <= last; ++i) {
        int digits = snprintf(e->spelled + used, NAME_BYTES - used, "%" PRId64, i);
        if (used + (size_t)digits >= NAME_BYTES) return fail_name(e, "is too long for a name");
        if (dots >= 0) e->value[e->nvalues++] = (double)i;
        err = expand_from(e, end + 1, used + (size_t)digits, depth + 1);
        if (dots >= 0) --e->nvalues;
    }
    return err;
}

trl_err trli_names_expand(trli_deck *deck, const trl_text *text, const trl_scope *names, bool component,
                          trli_words *words)
{
    expansion e = {.deck = deck, .text = text, .names = names, .ranges = true, .component = component, .words = words};
    return expand_from(&e, 0, 0, 0);
}

trl_err trli_name_spell(trli_deck *deck, const trl_text *text, const trl_scope *names, const char **name)
{
    trli_words words = {0};
    expansion e = {.deck = deck, .text = text, .names = names, .words = &words};
    trl_err err = expand_from(&e, 0, 0, 0);
    if (err == TRL_OK) *name = words.word[0];
    return err;
}

/* Families */

static trl_err read_index(trli_deck *deck, const trli_yaml *key, const trli_yaml *range, const trl_scope *names,
                          trli_family *family)
{
    const char *name = key->text.chars;
    int at = family->n, dots, length = (int)strlen(range->text.chars);
    int64_t last;
    trl_err err = TRL_OK;
    if (!trl_name_valid(name) || trl_name_reserved(name))
        return trl_fail(deck->ctx, TRL_ERR_INPUT, trli_yaml_place(key), "'%s' cannot name an index%s", name,
                        trl_name_reserved(name) ? ": it is a reserved word" : "");
    const char *found = strstr(range->text.chars, "..");
    dots = found ? (int)(found - range->text.chars) : -1;
    if (dots < 0)
        return trl_fail(deck->ctx, TRL_ERR_INPUT, trli_yaml_place(range),
                        "index '%s' needs a range like 1..3, found '%s'", name, range->text.chars);
    TRL_TRY(read_range(deck, &range->text, 0, dots, length, names, &family->first[at], &last));
    family->index[at] = name;
    family->count[at] = last - family->first[at] + 1;
    if (family->count[at] > MEMBERS_MAX / family->members)
        return trl_fail(deck->ctx, TRL_ERR_INPUT, trli_yaml_place(range), "a family has at most %d members",
                        MEMBERS_MAX);
    family->members *= (int)family->count[at];
    ++family->n;
done:
    return err;
}

trl_err trli_family_read(trli_deck *deck, const trli_yaml *entry, const trl_scope *names, trli_family *family)
{
    const trli_yaml *ranges = entry->kind == TRLI_MAPPING_NODE ? trli_yaml_get(entry, "for") : NULL;
    trl_err err = TRL_OK;
    *family = (trli_family){.members = 1};
    if (!ranges) return TRL_OK;
    if (ranges->n == 0 || ranges->n > INDICES_MAX)
        return trl_fail(deck->ctx, TRL_ERR_INPUT, trli_yaml_place(ranges), "'for' needs 1 to %d indices, found %d",
                        INDICES_MAX, ranges->n);
    TRL_TRY(trli_arena_alloc(deck->arena, (size_t)ranges->n * sizeof *family->index, &family->index));
    TRL_TRY(trli_arena_alloc(deck->arena, (size_t)ranges->n * sizeof *family->first, &family->first));
    TRL_TRY(trli_arena_alloc(deck->arena, (size_t)ranges->n * sizeof *family->count, &family->count));
    for (int i = 0; i < ranges->n; ++i) TRL_TRY(read_index(deck, ranges->key[i], ranges->item[i], names, family));
done:
    return err;
}

trl_err trli_family_names(trli_deck *deck, const trli_family *family, int member, const trl_scope *outer,
                          const trl_scope **names)
{
    trl_scope *made;
    double *value;
    trl_err err = TRL_OK;
    *names = outer;
    if (family->n == 0) return TRL_OK;
    TRL_TRY(trli_arena_alloc(deck->arena, sizeof *made, &made));
    TRL_TRY(trli_arena_alloc(deck->arena, (size_t)family->n * sizeof *value, &value));
    for (int i = family->n - 1; i >= 0; --i) {
        value[i] = (double)(family->first[i] + member % family->count[i]);
        member = (int)(member / family->count[i]);
    }
    *made = (trl_scope){.n = family->n, .name = family->index, .value = value, .outer = outer};
    *names = made;
done:
    return err;
}
